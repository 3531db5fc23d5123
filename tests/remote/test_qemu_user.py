"""Linux processes of every architecture that qemu-user runs: the contract, the compiled programs, real ones."""

from __future__ import annotations

import random
import struct
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import pytest
from arch_rows import STUBS
from arches import ARCHES, HERE, NO_ENGINE, expected
from portion import portion
from qemu import NO_ROW, RUN_HERE, USER_MODE, arch_of, compiled_functions, qemu_for

from kprobes import (
    GuestFault,
    GuestTimeout,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    QemuMachine,
    RemoteError,
    UnknownRegister,
    Unsupported,
)
from kprobes.conformance import Conformance
from kprobes.machine.remote import launch
from kprobes.machine.remote.launch import OLDEST
from kprobes.machine.remote.packets import Connection
from kprobes.testing import _check_machine, check_machine

Programs = Callable[[str], Path]


@pytest.fixture(params=RUN_HERE)
def program(request: pytest.FixtureRequest, programs: Programs) -> Path:
    qemu_for(request.param)
    return programs(request.param)


def machine(program: Path) -> QemuMachine:
    return QemuMachine.user([program], env={}, timeout=20, stdout=subprocess.DEVNULL)


@pytest.fixture
def proves(program: Path, conformance: Conformance) -> Callable[[str, int], None]:
    return partial(conformance.under(USER_MODE), arch_of(program.name))


@pytest.mark.quick
@pytest.mark.parametrize("arch", ARCHES)
def test_every_architecture_has_a_row_or_a_reason(arch: str, conformance: Conformance) -> None:
    """In the support matrix, also where there is no QEMU."""
    table, stems = conformance.under(USER_MODE), [stem for stem in RUN_HERE if arch_of(stem) == arch]
    assert bool(stems) != (arch in NO_ROW)
    if arch in NO_ROW:
        table.absent(arch, NO_ROW[arch])
        return
    if arch not in NO_ENGINE:
        for capability in ("decode", "step", "simulate"):
            table.blank(arch, capability, "proved above: instructions one by one, in every state, need no QEMU")
    try:
        qemu_for(stems[0])
    except pytest.skip.Exception:
        table.absent(arch, f"skipped, no QEMU: install the package qemu-user, version {OLDEST} or newer, or set "
                           "KPROBES_QEMU_DIR")
        raise


def test_the_contract(program: Path, proves: Callable[[str, int], None], thorough: bool,
                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check starts a process. Without --thorough every fifth runs, other ones of each program."""
    monkeypatch.setattr(_check_machine, "CHECKS", portion(_check_machine.CHECKS, thorough, program.name, 5))
    assert check_machine(lambda: machine(program)) == []
    proves("engine", 1)


def test_compiled_programs_run_as_ever(program: Path, proves: Callable[[str, int], None], thorough: bool) -> None:
    with machine(program) as m, Kprobes(m) as k:
        proves("return probe", compiled_functions(m, k, thorough))


def test_every_instruction_of_a_function(program: Path, proves: Callable[[str, int], None]) -> None:
    with machine(program) as m:
        plain = m.call("test_crc", 7)
        symbol = m.symbols["test_crc"]
        with Kprobes(m) as k:
            probes = []
            start = m.arch.pointers.code_address(symbol.address, m.read).addr
            for place in range(start, start + symbol.size, m.arch.insn_align):
                if k.check(place).probeable:
                    probes.append(Kprobe(addr=place))
            k.register_kprobes(probes)
            assert m.call("test_crc", 7) == plain
            hit = sum(p.nhit > 0 for p in probes)
            assert hit > len(probes) // 2
            proves("real program", hit)
        assert m.call("test_crc", 7) == plain


def test_a_stop_takes_one_exchange(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest goes on, from another place where nothing else has changed, and is asked for its next stop's registers
    already. Where it cannot be told the place, that is written first."""
    with machine(program) as m, Kprobes(m) as k:
        plain, sent, apart, writes = m.call("fib", 9), list[bytes](), list[bytes](), list[bytes]()
        k.register(Kprobe(symbol_name="fib", pre_handler=lambda p, regs: None))
        m.call("fib", 2)  # the first hit looks around
        monkeypatch.setattr(Connection, "send", partialmethod(noting, sent, Connection.send))
        monkeypatch.setattr(Connection, "send_apart", partialmethod(noting_apart, apart, Connection.send_apart))
        monkeypatch.setattr(Connection, "_write", partialmethod(noting, writes, Connection._write))
        m.call("fib", 2)
        few, few_stops, few_writes = len(sent), len(apart), len(writes)
        sent.clear()
        writes.clear()
        apart.clear()
        assert m.call("fib", 9) == plain
        stops = len(apart) - few_stops
        assert stops > 30 and set(apart) == {b"g"}
        assert b"g" not in sent[few:]
        if STUBS[m.arch.name].takes_pc:
            assert len(sent) == few and len(writes) == few_writes + stops


def test_a_version_that_nobody_has_read_is_asked_after_each_stop(
        programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many bytes a stub reads at once is known of some."""
    qemu_for("x86_64-O2")
    monkeypatch.setattr(launch, "READS", {})
    apart = list[bytes]()
    monkeypatch.setattr(Connection, "send_apart", partialmethod(noting_apart, apart, Connection.send_apart))
    with machine(programs("x86_64-O2")) as m, Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="fib", pre_handler=lambda p, regs: None))
        m.call("fib", 9)
        assert probe.nhit > 30 and not apart


def noting(link: Connection, sent: list[bytes], send: Callable[..., None], *payloads: bytes) -> None:
    """Connection.send() or _write()."""
    sent.extend(payloads)
    send(link, *payloads)


def noting_apart(link: Connection, then: list[bytes], send: Callable[..., None], *args: Any) -> None:
    """Connection.send_apart()."""
    then.append(args[1])
    send(link, *args)


def test_registers_that_the_stub_shows(program: Path) -> None:
    """All but MIPS's userlocal; that one is said to be hidden."""
    with machine(program) as m:
        hidden = set(m.arch.regs.names) - set(m.regs.names)
        assert hidden == ({"userlocal"} if m.arch.name.startswith("mips") else set())
        assert all(m.regs[name] >= 0 for name in m.regs.names)
        for name in hidden:
            with pytest.raises(UnknownRegister, match="does not show"):
                print(m.regs[name])


#: architecture -> registers that the stub shows and leaves as they are
LEFT = {"arm64": {"tpidr_el0"}, "arm64be": {"tpidr_el0"}, "arm": {"tpidruro"}, "armeb": {"tpidruro"},
        "x86_64": {"fptag"}, "i386": {"fptag"}}
#: those that take some values only: a wrong one ends the process
SELECTORS = {"cs", "ss", "ds", "es", "fs", "gs"}


def test_registers_are_what_was_written(program: Path) -> None:
    """Bits that there are: what has been seen can be put back. QEMU takes some otherwise than it shows them."""
    rng = random.Random(program.name)
    with machine(program) as m:
        table, left = m.arch.regs, set()
        for name in sorted({*m.regs.names} - SELECTORS):
            width = table.widths.get(name, m.arch.bits)
            first, seen = m.regs[name], []
            for value in (0, (1 << width) - 1, *(rng.getrandbits(width) for _ in range(4 if width else 0))):
                m.regs[name] = value
                m._threads.flush()
                seen.append(m.regs[name])
            for value in (*seen, first):
                m.regs[name] = value
                m._threads.flush()
                assert m.regs[name] == value, name
            if len({*seen}) == 1 and width:
                left.add(name)
        assert left == LEFT.get(m.arch.name, set())


def test_bounds(program: Path) -> None:
    with machine(program) as m:
        with pytest.raises(GuestTimeout):
            m.call("test_crc", 1, max_insns=3)
        assert m.call("test_arith32", 1) & 0xFFFFFFFF == expected()["tests"]["test_arith32"][0]


def test_memory_where_a_probe_stands(program: Path) -> None:
    """The process asks for memory where it stands: not the probe there is what stops it."""
    with machine(program) as m, Kprobes(m) as k:
        pc = m.regs.pc
        start = pc & -4
        first = Kprobe(addr=next(at for at in (start, start + m.arch.insn_align) if k.check(at).probeable))
        k.register(first)
        assert m.map_code() != m.map_code()
        with pytest.raises(GuestTimeout):
            m.run(max_insns=4)
        assert first.nhit == (first.address == pc)


#: architecture -> a return with a load from its first argument in the delay slot
FAILS_BEHIND = {"sh4": "0b004260", "sh4eb": "000b6042", "mips": "03e000088c820000", "mips64": "03e000088c820000",
                "mipsel": "0800e0030000828c", "mips64el": "0800e0030000828c"}


@pytest.mark.parametrize("arch", FAILS_BEHIND)
def test_no_branch_waits_for_its_delay_slot(programs: Programs, arch: str) -> None:
    """Wherever steps end, and whatever fails: the next call goes its own way."""
    qemu_for(f"{arch}-O2")
    with machine(programs(f"{arch}-O2")) as m:
        plain = m.call("test_arith32", 1)
        delayed = 0
        for steps in range(1, 80):
            with pytest.raises(GuestTimeout) as caught:
                m.call("test_crc", 1, max_insns=steps)
            assert caught.value.pc is not None
            before = caught.value.pc - m.arch.insn_align
            delayed += m.arch.decode(m.read(before, 16), before).delay_slot
            assert m.call("test_arith32", 1, timeout=60) == plain, steps
        assert not delayed
        page, gone = m.map_code(), m.map_code()
        m.unmap_code(gone)
        m.patch(page, bytes.fromhex(FAILS_BEHIND[arch]))
        with pytest.raises(GuestFault) as failed:
            m.call(page, gone)
        assert failed.value.address == gone
        assert m.read(page, 8)[:len(FAILS_BEHIND[arch]) // 2] == bytes.fromhex(FAILS_BEHIND[arch])
        assert m.call("test_arith32", 1, timeout=60) == plain


def test_a_fault_is_at_home(program: Path) -> None:
    with machine(program) as m, Kprobes(m):
        nowhere = m.map_code()
        m.unmap_code(nowhere)
        with pytest.raises(GuestFault) as caught:
            m.call(nowhere | (m.arch.linkage.mode if m.arch.linkage else 0))
        assert caught.value.access == "fetch"
        assert m.call("test_arith32", 1) & 0xFFFFFFFF == expected()["tests"]["test_arith32"][0]


#: A store of a word to the address in the first argument, and a return.
STORES = {"x86_64": "c70705000000c3", "arm64": "1f0000b9c0035fd6"}


def test_a_write_through_a_null_pointer(program: Path) -> None:
    """The address 0, which Linux tells, counts as one."""
    code = STORES.get(program.name.rpartition("-")[0])
    if code is None:
        pytest.skip("this test has no code for the architecture")
    with machine(program) as m:
        page = m.map_code()
        m.patch(page, bytes.fromhex(code))
        with pytest.raises(GuestFault) as caught:
            m.call(page, 0, timeout=60)
        assert (caught.value.access, caught.value.address) == ("write", 0)


#: Not called by a bare address (function descriptors), or not tried here (armeb: code in which order is QEMU's
#: business).
NOT_BARE = ("ppc64", "ppc64le", "ppc64v1", "armeb")


def test_what_failed(program: Path) -> None:
    """Reads and writes of what is not mapped, writes to what can be read only; where. s390x tells pages only."""
    if program.name.rpartition("-")[0] in NOT_BARE:
        pytest.skip("this test's code cannot be called by its address alone")
    with machine(program) as m, Kprobes(m) as k:
        code = dict(line.split() for line in (HERE / "data" / "device.txt").read_text().splitlines())[m.arch.name]
        page = m.map_code()
        m.symbols.add("device", page, m.page_size)
        m.patch(page, bytes.fromhex(code))
        k.register(Kprobe(addr=page))  # the page of slots is there before there is a hole for it
        gone = m.map_code()
        m.unmap_code(gone)
        assert m.read(gone - 16, 16), "the code reads at +0 and writes at +16"
        text = m.symbols["test_crc"].address & -8
        failed: dict[int, Kprobe] = {}
        for _ in ("at home", "in slots"):  # where a probe stands
            for place, access, address in ((text, "write", text + 16), (gone, "read", gone),
                                           (gone - 16, "write", gone)):
                if place == text and m.arch.name == "sparc64":
                    continue  # see qemu.executable()
                with pytest.raises(GuestFault) as caught:
                    m.call(page, place, timeout=60)
                shown = address & -m.page_size if m.arch.name == "s390x" else address
                # no engine does it again, aside
                told = "read" if m.arch.name in NO_ENGINE and place == gone - 16 else access
                assert (caught.value.access, caught.value.address) == (told, shown)
                at = caught.value.pc
                assert at is not None
                if at not in failed:
                    failed[at] = Kprobe(addr=at)
                    k.register(failed[at])
        assert all(probe.nhit for probe in failed.values())


# --- real programs: this machine's own, under an emulator of it


@pytest.fixture
def echo() -> Path:
    found = Path("/bin/echo")
    if (subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip() != "x86_64"
        or not found.exists()):
        pytest.skip("no x86-64 echo here")
    qemu_for("x86_64-O2")
    return found


def test_a_dynamically_linked_process(echo: Path) -> None:
    """Arguments, output, libraries found through the link map, probes in them, the exit status."""
    with tempfile.TemporaryFile() as out:
        with QemuMachine.user([echo, "hello", "world"], stdout=out, timeout=20) as m, Kprobes(m) as k:
            written: list[bytes] = []
            sizes: list[int] = []
            k.register(Kprobe(symbol_name="libc.so.6:write",
                              pre_handler=lambda p, regs: written.append(regs.read(regs.arg(1), regs.arg(2)))))
            k.register(Kretprobe(symbol_name="libc.so.6:malloc",
                                 handler=lambda ri, regs: sizes.append(regs.return_value)))
            m.run(timeout=60)
            assert m.exit_status == 0
            with pytest.raises(RemoteError, match="the program has ended"):
                m.run()
            with pytest.raises(RemoteError, match="the program has ended"):
                m.call("main", 1)
            with pytest.raises(KprobeError, match="the program has ended"):
                k.watchpoint(0x1000, 4)
        out.seek(0)
        assert (out.read(), written) == (b"hello world\n", [b"hello world\n"])
        assert len(sizes) > 3 and all(sizes)


def test_a_running_guest_is_stopped(echo: Path) -> None:
    with QemuMachine.user(["/bin/sleep", "100"], timeout=20) as m:
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.3)
        assert m.exit_status is None
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.3)


def test_a_dying_guest(programs: Programs) -> None:
    """_start of the test programs returns to nowhere."""
    qemu_for("arm64-O2")
    with machine(programs("arm64-O2")) as m, Kprobes(m) as k:
        probe = Kprobe(symbol_name="run_all")
        k.register(probe)
        with pytest.raises(GuestFault, match="signal"):
            m.run(timeout=60)
        assert m.exit_status is not None and m.exit_status < 0
        assert probe.nhit == 1


@pytest.mark.parametrize("probed", [(), (0,), (1,), (8, 9), (10,)])
def test_traps_of_the_guests_own_end_the_run_with_probes_as_without(probed: tuple[int, ...], tmp_path: Path) -> None:
    """Single-step mode that it turns on, and its own breakpoint: the stub takes them for stops that it was asked for."""
    qemu_for("x86_64-O2")
    code = bytes.fromhex("9c" "810c2400010000" "9d" "90" "4889c3" "ffc0"  # PUSHF; OR [rsp], TF; POPF; NOP; MOV; INC eax
                         "9c" "812424fffeffff" "9d" "cc" "b83c000000" "bf07000000" "0f05")  # no TF; INT3; exit(7)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 120 + len(code), 120 + len(code), 0x1000)
    file = tmp_path / "steps"
    file.write_bytes(head + load + code)
    file.chmod(0o755)
    stops = []
    with machine(file) as m, Kprobes(m) as k:
        probes = [Kprobe(addr=0x400078 + at, pre_handler=lambda p, regs: None) for at in probed]
        for probe in probes:
            k.register(probe)
        while m.exit_status is None:
            try:
                m.run(timeout=20)
            except GuestFault as fault:
                stops.append((fault.number, m.regs.pc - 0x400078))
        assert m.exit_status == 7 and [p.nhit for p in probes] == [1] * len(probes)
    # behind the instruction in front of a probe the stop is taken for that at the probe, which is hit once
    assert stops == [(5, at) for at in (10, 13, 15, 16, 23, 24, 25) if at not in probed]


def test_what_cannot_be_started(tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plain"
    file.write_bytes(programs("arm-O2").read_bytes())
    with pytest.raises(Unsupported, match=r"not executable|no qemu"):
        QemuMachine.user([file])
    monkeypatch.setenv("KPROBES_QEMU_DIR", str(tmp_path))
    with pytest.raises(Unsupported, match="install the package qemu-user"):
        QemuMachine.user([programs("arm-O2")])
