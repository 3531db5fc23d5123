"""Processes of several threads under QEMU's user mode, that all come to the same probes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from qemu import qemu_for

from kprobes import (
    GuestFault,
    GuestTimeout,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    OutOfReach,
    Program,
    QemuMachine,
    RemoteError,
    ThreadsUnseen,
    Unsupported,
)
from kprobes.image import read_elf
from kprobes.machine.remote.trampolines import LockTrampolines

PROGRAMS = Path(__file__).parent / "threads"
OTHERS = Path(__file__).parent / "other_threads"  # whose second thread stops for no probe
BARE = Path(__file__).parent / "bare_threads"  # of two threads, where no lock is written
THREADS, ROUNDS = 3, 60  # of threads.c
CALLS = [(number, round) for number in range(1, THREADS + 1) for round in range(ROUNDS)]


@pytest.fixture(params=sorted(path.stem for path in PROGRAMS.glob("*.elf")))
def m(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QemuMachine]:
    """The process, before it has any but its first thread."""
    with process(request.param, tmp_path) as machine:
        yield machine


def process(arch: str, folder: Path, damage: Callable[[bytes], bytes] = bytes,
            programs: Path = PROGRAMS, **more: Any) -> QemuMachine:
    """damage: makes the program another. programs: the folder that it is in."""
    qemu_for(f"{arch}-O2")
    copy = folder / arch
    copy.write_bytes(damage((programs / f"{arch}.elf").read_bytes()))
    copy.chmod(0o755)
    return QemuMachine.user([copy], env={}, timeout=20, **more)


def stripped(elf: bytes) -> bytes:
    """Without section headers: nobody finds its symbols."""
    at, size = (0x28, 8) if elf[4] == 2 else (0x20, 4)  # e_shoff; e_shnum and e_shstrndx stand last of the header
    return elf[:at] + bytes(size) + elf[at + size:(end := 0x40 if size == 8 else 0x34) - 4] + bytes(4) + elf[end:]


def arguments(regs: Any) -> tuple[int, int]:
    return regs.arg(0), regs.arg(1)


def test_every_hit_and_every_return(m: QemuMachine) -> None:
    """None missed, none of another thread's, though they come at once."""
    entered: list[tuple[int, int]] = []
    returned: list[tuple[tuple[int, int], int]] = []

    def enter(ri: Any, regs: Any) -> None:
        ri.data["arguments"] = arguments(regs)

    def leave(ri: Any, regs: Any) -> None:
        returned.append((ri.data["arguments"], regs.return_value))

    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="work", pre_handler=lambda p, regs: entered.append(arguments(regs)))
        back = Kretprobe(symbol_name="work", entry_handler=enter, handler=leave)
        k.register(probe)
        k.register(back)
        m.run(timeout=60)
        assert m.exit_status == 7
        assert sorted(entered) == CALLS and probe.nhit == back.nhit == back.nreturned == len(CALLS)
        assert sorted(returned) == [((number, round), number * 1000 + round) for number, round in CALLS]
        assert probe.nmissed == back.nmissed == 0


def test_probes_that_come_later(m: QemuMachine) -> None:
    """Registered, called and unregistered while the threads run."""
    hits: list[tuple[int, int]] = []
    results: list[int] = []

    def first(p: Kprobe, regs: Any) -> None:
        if not late._point:
            k.register(late)
            results.append(m.call("work", 9, 5))
            m.stop()

    late = Kretprobe(symbol_name="work", handler=lambda ri, regs: hits.append((regs.return_value, regs.cpu)))
    with Kprobes(m) as k:
        one = Kprobe(symbol_name="work", pre_handler=first)
        k.register(one)
        m.run(timeout=60)
        assert m.exit_status is None and one.nhit >= 1
        results.append(m.call("work", 9, 6))
        k.unregister(one)
        m.run(timeout=60)
        assert m.exit_status == 7 and results == [9005, 9006]
        assert late.nmissed <= 2 and len(hits) + late.nmissed >= len(CALLS) - THREADS
        assert len({cpu for _, cpu in hits}) == THREADS


def test_runs_that_end_in_between(m: QemuMachine) -> None:
    """By stop() and by time: nothing is lost."""
    hits: list[tuple[int, int]] = []

    def stops(p: Kprobe, regs: Any) -> None:
        hits.append(arguments(regs))
        if len(hits) % 50 == 0:
            m.stop()

    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="work", pre_handler=stops))
        for _ in range(100):
            if m.exit_status is None:
                m.run(timeout=60)
        assert m.exit_status == 7 and sorted(hits) == CALLS


def test_runs_whose_time_is_over(m: QemuMachine) -> None:
    """They end at a hit, which comes in the next: nothing is lost, nothing twice."""
    hits: list[tuple[int, int]] = []
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="work", pre_handler=lambda p, regs: hits.append(arguments(regs))))
        for n in range(1000):
            with suppress(GuestTimeout):
                m.run(timeout=0.001 + n / 10_000)  # longer on a slow machine, where a short one ends before a hit
                break
        assert m.exit_status == 7 and sorted(hits) == CALLS


def jump_fits(m: QemuMachine, addr: int) -> bool:
    """Into the instruction there."""
    assert m.arch.jump is not None
    return m.arch.decode(m.read(addr, 2 * m.arch.max_insn), addr).size >= m.arch.jump.size


def test_post_handlers(m: QemuMachine) -> None:
    """Where a jump fits into the instruction: it is executed before the next thread's turn."""
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    work = m.symbols["work"].address
    text = m.read(work, 2 * m.arch.max_insn)
    if not jump_fits(m, work):
        pytest.skip("see test_where_no_jump_fits")
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="work", pre_handler=lambda p, regs: before.append(arguments(regs)),
                       post_handler=lambda p, regs, flags: after.append((regs.cpu, regs.pc)))
        k.register(probe)
        m.run(timeout=60)
        assert m.exit_status == 7 and sorted(before) == CALLS and probe.nmissed == 0
        assert len(after) == len(CALLS) and len({cpu for cpu, _ in after}) == THREADS
        assert {pc for _, pc in after} == {work + m.arch.decode(text, work).size}


def test_until(m: QemuMachine) -> None:
    """Where a jump fits, runs end there, one thread after the other; elsewhere a handler that stops does it."""
    work = m.symbols["work"].address
    fits = jump_fits(m, work)
    with Kprobes(m) as k:
        first = Kprobe(symbol_name="work", pre_handler=lambda p, regs: m.stop())
        k.register(first)
        m.run(timeout=60)
        k.unregister(first)
        if not fits:
            with pytest.raises(Unsupported, match="take turns where a jump fits"):
                m.run(until="work", timeout=60)
        for _ in range(5 if fits else 0):
            m.run(until="work", timeout=60)
            assert m.regs.pc == work and arguments(m.regs) in CALLS
        m.run(timeout=60)
        assert m.exit_status == 7


def test_a_process_that_ends_while_a_thread_is_looked_at(m: QemuMachine) -> None:
    """Killed by somebody: that is its end, and no defect of the stub's."""
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="work", pre_handler=lambda p, regs: m._child.process.kill())
        k.register(probe)
        with pytest.raises(GuestFault, match="ended by signal 9"):
            m.run(timeout=60)
        assert m.exit_status == -9 and probe.nhit == 1


def test_no_instructions_are_counted(m: QemuMachine) -> None:
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="work", pre_handler=lambda p, regs: m.stop()))
        m.run(timeout=60)
        with pytest.raises(Unsupported, match="several threads"):
            m.run(max_insns=5)
        with pytest.raises(Unsupported, match="several threads"):
            m.call("work", 1, 2, max_insns=5)
        m.run(timeout=60)


@pytest.mark.parametrize("arch", sorted(path.stem for path in PROGRAMS.glob("*.elf")))
def test_one_thread_alone_comes_to_probes(arch: str, tmp_path: Path) -> None:
    """threads=1: the others end without a stop of theirs, and nobody takes turns."""
    with process(arch, tmp_path, threads=1) as m, Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="main"))
        k.register(back := Kretprobe(symbol_name="main"))
        m.run(timeout=60)
        assert m.exit_status == 7 and probe.nhit == back.nreturned == 1 and not m.in_turn


def other(arch: str, folder: Path, what: str, threads: int) -> QemuMachine:
    """A process of others.c, whose second thread does `what`."""
    qemu_for(f"{arch}-O2")
    copy = folder / arch
    copy.write_bytes((OTHERS / f"{arch}.elf").read_bytes())
    copy.chmod(0o755)
    return QemuMachine.user([copy, what], env={}, timeout=20, threads=threads)


@pytest.mark.parametrize("what", ["signals", "exit"])
@pytest.mark.parametrize("arch", sorted(path.stem for path in OTHERS.glob("*.elf")))
def test_another_thread_stops_for_something_else(arch: str, what: str, tmp_path: Path) -> None:
    """threads=1 is said of probes: a signal of another thread reaches it, and its exit() is the process's end."""
    with other(arch, tmp_path, what, 1) as m, Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="work"))
        assert m.cpus == len(m.cpu_regs) == 1
        m.run(timeout=60)
        assert m.exit_status == 7 and probe.nhit == (what == "signals")


def test_two_threads_at_probes_are_not_one(tmp_path: Path) -> None:
    with other("x86_64", tmp_path, "work", 1) as m, Kprobes(m) as k:
        k.register(Kprobe(symbol_name="main"))
        k.register(Kprobe(symbol_name="work"))
        with pytest.raises(RemoteError, match=r"threads= is 1.*pass a larger threads="):
            m.run(timeout=60)


@pytest.mark.parametrize("kind", ["probe", "return"])
@pytest.mark.parametrize("arch", ["x86_64", "arm64", "mips"])
def test_more_threads_than_there_are_cpus(arch: str, kind: str, tmp_path: Path) -> None:
    """Where they live at a time, the hit of one ends the run and comes again in the next one, until the probe has gone;
    where they come one after the other, those that have ended leave their CPUs, and nothing is to be seen of it."""
    hits: list[tuple[int, int]] = []
    together = apart = False
    for attempt in range(40):  # which of both happens is the host's choice
        (tmp_path / f"{attempt}").mkdir()
        hits.clear()
        refused = 0
        with process(arch, tmp_path / f"{attempt}", threads=2) as m, Kprobes(m) as k:
            probe = (Kprobe(symbol_name="work", pre_handler=lambda p, regs: hits.append(arguments(regs))) if kind == "probe"
                     else Kretprobe(symbol_name="work", entry_handler=lambda ri, regs: hits.append(arguments(regs))))
            k.register(probe)
            while m.exit_status is None:
                try:
                    m.run(timeout=60)
                except RemoteError as error:
                    assert "threads= is 2" in str(error) and "pass a larger threads=" in str(error)
                    refused += 1
                    if refused == 5:
                        k.unregister(probe)
            assert m.exit_status == 7
            assert all([round for of, round in hits if of == number] == [*range(sum(of == number for of, _ in hits))]
                       for number in range(1, THREADS + 1))
            assert refused >= 5 or sorted(hits) == CALLS
        together = together or refused > 0
        apart = apart or len(hits) == len(CALLS)
        if together and (apart or attempt >= 5):  # some hosts never have them one after the other
            return
    raise AssertionError(f"together: {together}, one after the other: {apart}")


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_where_no_jump_fits(arch: str, tmp_path: Path) -> None:
    """It is said before a second thread is there; the process is as it was."""
    with process(arch, tmp_path) as m, Kprobes(m) as k:
        after = Kprobe(symbol_name="work", post_handler=lambda p, regs, flags: None)
        k.register(after)
        with pytest.raises(Unsupported, match="take turns where a jump fits") as error:
            m.run(timeout=20)
        assert error.value.address == after.address and isinstance(error.value, KprobeError)
        k.unregister(after)
        m.run(timeout=20)
        assert m.exit_status == 7


@pytest.mark.parametrize("arch", ["arm64", "s390x"])
def test_a_program_without_symbols(arch: str, tmp_path: Path) -> None:
    """Its second thread is seen in the call that makes it, whoever calls that."""
    work = read_elf(PROGRAMS / f"{arch}.elf").symbols
    hits: list[tuple[int, int]] = []
    with process(arch, tmp_path, damage=stripped) as m, Kprobes(m) as k:
        assert "pthread_create" not in m.symbols
        k.register(Kprobe(addr=next(s.address for s in work if s.name == "work"),
                          pre_handler=lambda p, regs: hits.append(arguments(regs))))
        for _ in range(1000):  # most of these end somewhere else
            with suppress(GuestTimeout):
                m.run(timeout=0.003)
                break
        assert m.exit_status == 7 and sorted(hits) == CALLS


def test_a_thread_that_nobody_saw_coming(tmp_path: Path) -> None:
    """As where the stub tells of no calls: said once, when it stops."""
    with pytest.warns(ThreadsUnseen, match="do not take turns"):
        for _ in range(9):  # it may well be lost before that
            with process("x86_64", tmp_path) as m, suppress(KprobeError), Kprobes(m) as k:
                m._target.report_calls(())
                k.register(Kprobe(symbol_name="work", pre_handler=lambda p, regs: m.stop()))
                m.run(timeout=20)


SOURCE = """
#include <kprobes/bpf.h>
u64 hits, sum;
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16); __type(key, u64); __type(value, u64); } of SEC(".maps");
SEC("kprobe/work") int on_work(struct pt_regs *ctx)
{
    u64 number = PT_REGS_PARM1(ctx), one = 1, *found = bpf_map_lookup_elem(&of, &number);
    hits += 1;
    sum += PT_REGS_PARM2(ctx);
    if (found) *found += 1; else bpf_map_update_elem(&of, &number, &one, BPF_ANY);
    return 0;
}
"""


def test_programs_lose_nothing(m: QemuMachine) -> None:
    """They run one at a time, and what they have counted comes over before the process ends."""
    pytest.importorskip("llvmlite")
    pytest.importorskip("ziglang")
    program = Program.from_c(SOURCE)
    with Kprobes(m) as k, k.attach(program) as attached:
        assert set(attached.why_python.values()) == {""}
        if m.arch.name.startswith("mips"):  # QEMU does not tell of its end
            k.register(Kprobe(symbol_name="exit", pre_handler=lambda p, regs: m.stop()))
        m.run(timeout=60)
        assert m.exit_status in (7, None) and program.variables["hits"] == len(CALLS)
        assert program.variables["sum"] == THREADS * ROUNDS * (ROUNDS - 1) // 2
        assert dict(program.maps["of"]) == dict.fromkeys(range(1, THREADS + 1), ROUNDS)


def test_an_event_has_all_records_when_the_process_ends(m: QemuMachine) -> None:
    """A program in the guest makes them, of all threads; also on MIPS, where the stub does not tell of the end."""
    pytest.importorskip("llvmlite")
    with Kprobes(m) as k, k.event("p work n=$arg1 r=$arg2") as e:
        m.run(timeout=60)
        assert m.exit_status == 7 and e.hits == len(CALLS) and not k.events.buffer.lost
        assert sorted((r.args["n"], r.args["r"]) for r in e) == CALLS


@pytest.mark.parametrize("kind", [Kprobe, Kretprobe])
def test_programs_keep_what_threads_count_beside_handlers_of_python(
        m: QemuMachine, kind: type[Kprobe] | type[Kretprobe]) -> None:
    """Threads may stop for a handler, so that the stub tells of no end; what the program has counted is read first."""
    pytest.importorskip("llvmlite")
    kept = Kprobe(symbol_name="main", pre_handler=lambda p, regs: None)
    if kind is Kretprobe:
        kept = Kretprobe(symbol_name="pthread_create", handler=lambda i, regs: None)
    with Kprobes(m) as k, k.event("p work n=$arg1 r=$arg2") as e:
        k.register(kept)
        m.run(timeout=60)
        assert m.exit_status == 7 and e.hits == len(CALLS) and not k.events.buffer.lost


def test_an_end_that_nobody_tells_of_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr("kprobes.machine.remote.threadlock.ENDS", frozenset({"no such function"}))
    with process("mips", tmp_path) as m, Kprobes(m) as k:
        with k.event("p work"), pytest.raises(Unsupported, match="the end of this process"):
            m.run(timeout=60)
        m.run(timeout=60)
        assert m.exit_status == 7


def grown(elf: bytes) -> bytes:
    """A little-endian program with 4 MiB of zeros behind it: no memory is free within reach of riscv64's jumps."""
    wide = elf[4] == 2
    table = int.from_bytes(elf[0x20:0x28] if wide else elf[0x1c:0x20], "little")
    size, count = struct.unpack_from("<HH", elf, 0x36 if wide else 0x2a)
    field, form = (40, "<Q") if wide else (20, "<I")  # p_memsz
    last = max(at for at in range(table, table + size * count, size) if elf[at:at + 4] == b"\1\0\0\0")  # PT_LOAD
    out = bytearray(elf)
    struct.pack_into(form, out, last + field, struct.unpack_from(form, elf, last + field)[0] + (1 << 22))
    return bytes(out)


@pytest.mark.parametrize("arch", ["riscv32", "riscv64"])
def test_no_memory_is_free_near_the_call_that_makes_a_thread(arch: str, tmp_path: Path) -> None:
    """As in the C library of a dynamic program of riscv64: nothing needs any there."""
    with process(arch, tmp_path, damage=grown) as m, Kprobes(m):
        m.run(timeout=60)
        assert m.exit_status == 7 and m.in_turn


@pytest.mark.parametrize("arch", ["riscv64", "s390x", "x86_64"])
def test_the_stub_gives_the_lock_back(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no jump leads to the call that makes the second thread; then threads take turns as always."""
    way_out = LockTrampolines.way_out
    refused: list[int] = []

    def first_is_far(trampolines: LockTrampolines, target: int) -> int:
        if not refused:
            refused.append(target)
            raise OutOfReach("too far")
        return way_out(trampolines, target)

    monkeypatch.setattr(LockTrampolines, "way_out", first_is_far)
    hits: list[tuple[int, int]] = []
    with process(arch, tmp_path) as m, Kprobes(m) as k:
        k.register(Kprobe(symbol_name="work", pre_handler=lambda p, regs: hits.append(arguments(regs))))
        k.register(back := Kretprobe(symbol_name="work", maxactive=THREADS))
        m.run(timeout=60)
        assert m.exit_status == 7 and sorted(hits) == CALLS and back.nreturned == len(CALLS) and refused


def test_pages_for_code_are_used_up_before_new_ones_are_taken(tmp_path: Path) -> None:
    """Also where a page is farther than half of a jump's reach, as below riscv64's C library."""
    with process("riscv64", tmp_path) as m, Kprobes(m):
        near = m.symbols["main"].address
        first = m._sites.take_memory(near, 64)
        jump = m.arch.jump
        assert jump is not None
        far = first + (1 << 20) - m.page_size - 64  # of which a jump still leads there, and back
        assert jump.encode(far, first) and m._sites.take_memory(far, 64) == first + 64


def test_a_second_page_is_taken_below_the_first(tmp_path: Path) -> None:
    """Where no memory is free above the image within a jump's reach."""
    with process("riscv64", tmp_path) as m, Kprobes(m):
        image = m._pages._source.map(0x400000, m.page_size)
        assert image == 0x400000
        first = m._pages.map_near(0x400000, 0x1000000, 0x400000)
        again = m._pages.map_near(0x400000, 0x1000000, 0x400000)
        assert {first, again} == {0x400000 - m.page_size, 0x400000 - 2 * m.page_size}


@pytest.mark.parametrize("arch", sorted(path.stem for path in BARE.glob("*.elf")))
def test_where_no_lock_is_written_it_is_said(arch: str, tmp_path: Path) -> None:
    """The reason is the architecture's own. Unprobed, and with a probe that one thread alone comes to, it runs."""
    with process(arch, tmp_path, programs=BARE) as m:
        m.run(timeout=20)
        assert m.exit_status == 7
    with process(arch, tmp_path, programs=BARE) as m, Kprobes(m) as k:
        k.register(first := Kprobe(symbol_name="start"))
        m.run(timeout=20)
        assert m.exit_status == 7 and first.nhit == 1 and not m.in_turn
    with pytest.warns(ThreadsUnseen, match=f"threads do not take turns here, since no lock is written for {arch}:"):
        for _ in range(9):  # it may well be lost before that
            with process(arch, tmp_path, programs=BARE) as m, suppress(KprobeError), Kprobes(m) as k:
                k.register(Kprobe(symbol_name="second", pre_handler=lambda p, regs: m.stop()))
                m.run(timeout=20)
