"""What a guest starts as, what its registers keep, and its system calls."""

from __future__ import annotations

from typing import Any

import pytest
from arches import RUNNABLE

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine, Unprobeable
from kprobes import arch as architectures
from kprobes.machine._passing import Passing, room_maker

pytestmark = pytest.mark.quick

#: (arch, system call instruction, mode bits)
CALLS = [
    ("arm", "000000ef", 0), ("arm", "00df", 1), ("armeb", "000000ef", 0), ("armeb", "00df", 1), ("cortexm", "00df", 1),
    ("arm64", "010000d4", 0), ("arm64be", "010000d4", 0), ("x86_64", "0f05", 0), ("x86_64", "0f34", 0),
    ("x86_64", "cd80", 0),
    ("i386", "0f34", 0), ("i386", "0f05", 0), ("i386", "cd80", 0), ("m68k", "4e40", 0), ("ppc", "44000002", 0),
    ("ppc64", "44000002", 0),
    ("ppc64le", "02000044", 0), ("riscv32", "73000000", 0), ("riscv64", "73000000", 0), ("s390x", "0a01", 0),
    ("sparc", "91d02010", 0),
    ("sparc64", "91d0206d", 0), ("tricore", "ad508000", 0), *((a, "0c000000" if a.endswith("el") else "0000000c", 0) for a in RUNNABLE
                                  if a.startswith("mips")),
]
NOP = {"arm": "00f020e3", "armeb": "00f020e3", "thumb": "00bf", "arm64": "1f2003d5", "arm64be": "1f2003d5",
       "x86_64": "90", "i386": "90", "m68k": "4e71",
       "ppc": "60000000", "ppc64": "60000000", "ppc64le": "00000060", "riscv32": "13000000", "riscv64": "13000000",
       "s390x": "0700", "sparc": "01000000", "sparc64": "01000000", "tricore": "0000"}


def nop(arch: str, mode: int) -> bytes:
    return bytes(4) if arch.startswith("mips") else bytes.fromhex(NOP["thumb" if mode else arch])


def machine_of(arch: str, code: str, mode: int) -> tuple[UnicornMachine, int]:
    """A NOP, the instruction, and NOPs; and where it is."""
    pad = nop(arch, mode)
    return UnicornMachine.from_code(pad + bytes.fromhex(code) + pad * 8, arch=arch, base=0x10000), 0x10000 + len(pad)


def test_every_guest_has_a_system_call() -> None:
    assert {arch for arch, _, _ in CALLS} == set(RUNNABLE)


@pytest.mark.parametrize(("arch", "code", "mode"), CALLS)
def test_a_system_call_that_is_served(arch: str, code: str, mode: int) -> None:
    """The handler's pc is behind the instruction, the guest goes on there, once; or where the handler sends it."""
    m, call = machine_of(arch, code, mode)
    behind, step = call + len(code) // 2, len(nop(arch, mode))
    seen: list[int] = []
    m.interrupt_handler = lambda regs, number: not seen.append(regs.pc)  # type: ignore[func-returns-value]
    for _ in range(2):
        m.run(0x10000 | mode, until=behind + step)
        assert m.regs.pc == behind + step
    assert seen == [behind, behind]

    def away(regs: Any, number: int) -> bool:
        regs.pc = behind + 2 * step
        return True

    m.interrupt_handler = away
    m.run(0x10000 | mode, until=behind + 3 * step)
    assert m.regs.pc == behind + 3 * step


@pytest.mark.parametrize(("arch", "code", "mode"), CALLS)
@pytest.mark.parametrize("handler", [None, lambda regs, number: False])
def test_a_system_call_that_nobody_serves(arch: str, code: str, mode: int, handler: Any) -> None:
    m, call = machine_of(arch, code, mode)
    m.interrupt_handler = handler
    for _ in range(2):
        with pytest.raises(GuestFault) as fault:
            m.run(0x10000 | mode, until=0x10000 + 3 * len(nop(arch, mode)))
        assert (fault.value.access, fault.value.pc, m.regs.pc) == ("interrupt", call, call)


@pytest.mark.parametrize(("arch", "code", "mode"), CALLS)
def test_a_system_call_among_probes(arch: str, code: str, mode: int) -> None:
    """Before it and behind it; on it there is none."""
    m, call = machine_of(arch, code, mode)
    behind, step = call + len(code) // 2, len(nop(arch, mode))
    seen: list[int] = []
    m.interrupt_handler = lambda regs, number: not seen.append(regs.pc)  # type: ignore[func-returns-value]
    with Kprobes(m) as k:
        probes = [Kprobe(addr=at | mode) for at in (0x10000, behind)]
        k.register_kprobes(probes)
        with pytest.raises(Unprobeable):
            k.register_kprobe(Kprobe(addr=call | mode))
        m.run(0x10000 | mode, until=behind + 2 * step)
        assert [p.nhit for p in probes] == [1, 1]
        assert seen == [behind]


def test_syscall_leaves_its_return_address_and_the_flags() -> None:
    m, _ = machine_of("x86_64", "0f05", 0)
    m.regs.flags |= 0x41
    m.interrupt_handler = lambda regs, number: True
    m.run(0x10000, until=0x10004)
    assert (m.regs["rcx"], m.regs["r11"]) == (0x10003, m.regs.flags)


def test_a_handler_of_a_system_call_may_raise_and_call() -> None:
    """inc eax; ret behind it is called from inside the handler."""
    m, call = machine_of("x86_64", "0f05909090909090909090ffc0c3", 0)
    results: list[int] = []
    m.interrupt_handler = lambda regs, number: not results.append(m.call(call + 11))  # type: ignore[func-returns-value]
    m.regs["rax"] = 5
    m.run(0x10000, until=call + 5)
    assert (results, m.regs["rax"]) == ([6], 5)

    def raising(regs: Any, number: int) -> bool:
        raise ZeroDivisionError

    m.interrupt_handler = raising
    with pytest.raises(ZeroDivisionError):
        m.run(0x10000, until=call + 5)
    m.interrupt_handler = lambda regs, number: True
    m.run(0x10000, until=call + 5)
    assert m.regs.pc == call + 5


@pytest.mark.parametrize("arch", RUNNABLE)
def test_writing_what_was_read_changes_nothing(arch: str) -> None:
    """Every register, one after the other, in the state a guest starts with and in another one."""
    m = UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)
    table = m.arch.regs
    names = [name for name in table.names if name != table.pc]
    if arch == "x86_64":
        m.regs["fs_base"], m.regs["gs_base"] = 0x1234_5000, 0x5432_1000
    for _ in range(2):
        before = {name: m.regs[name] for name in table.names}
        for name in names:
            m.regs[name] = before[name]
            assert {n: m.regs[n] for n in table.names} == before, name
        for name in (m.arch.abi.args if m.arch.abi and m.arch.abi.args else names[:4]):
            m.regs[name] = 0x1234_5678


#: what the psABI says of a process's first instruction, where it says more than 0
FLOATS = {"x86_64": {"fpcw": 0x37F, "mxcsr": 0x1F80, "fptag": 0xFFFF},
          "i386": {"fpcw": 0x37F, "mxcsr": 0x1F80, "fptag": 0xFFFF}}
FLOAT_CONTROLS = ("fpcr", "fpsr", "fpscr", "fcsr", "fsr", "fpc", "frm", "fflags", "mxcsr", "fpcw", "fpsw")


@pytest.mark.parametrize("arch", RUNNABLE)
def test_arithmetic_starts_as_the_abi_says(arch: str) -> None:
    """Round to nearest, nothing trapped, nothing accrued; the direction flag is clear. What is beyond that is the CPU's
    version."""
    m = UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)
    fixed = {"fcsr": 0xC0000, "fsr": 0xE0000}  # MIPS: NaNs of IEEE 754-2008; SPARC: the FPU's version
    for name in (*FLOAT_CONTROLS, "fptag"):
        if name in m.arch.regs.names:
            assert m.regs[name] & ~fixed.get(name, 0) == FLOATS.get(arch, {}).get(name, 0), name
    if arch in ("x86_64", "i386"):
        assert not m.regs.flags & 0x400


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_ten_thirds(arch: str) -> None:
    """In extended precision, before and after the control word was written by the guest (with its own value) or by
    us."""
    # fninit; fstcw [sp-8]; fldcw [sp-8] are what programs do; push 10; fild [sp]; push 3; fidiv [sp]; fstp tbyte [data]
    m = UnicornMachine.from_code(bytes(0x100), arch=arch, base=0x10000)
    data = m.alloc(64)
    address = data.to_bytes(4, "little").hex()
    absolute = "0425" if arch == "x86_64" else "05"  # a disp32 operand of /0
    modrm = {n: f"{int(absolute[:2], 16) | n << 3:02x}{absolute[2:]}{address}" for n in range(8)}
    m.write(data, (10).to_bytes(4, "little") + (3).to_bytes(4, "little"))
    def of(place: int, reg: int) -> str:
        return modrm[reg].replace(address, (data + place).to_bytes(4, "little").hex())
    divide = "db" + of(0, 0) + "da" + of(4, 6) + "db" + of(16, 7)
    reload = "d9" + of(8, 7) + "d9" + of(8, 5)
    exact = (0xD555_5555_5555_5555 | 0x4000 << 64).to_bytes(10, "little")
    for code in (divide, reload + divide):
        m.write(0x10000, bytes.fromhex(code) + b"\xc3")
        for _ in range(2):
            m.call(0x10000)
            assert m.read(data + 16, 10) == exact
            m.regs["fpcw"] = m.regs["fpcw"]


def test_segment_registers_of_i386() -> None:
    """Whoever writes them, by Regs or by an instruction: the stack stays 32 bits wide. A selector that is none is
    refused."""
    m = UnicornMachine.from_code(bytes.fromhex("50580f58c3"), arch="i386", base=0x10000)
    for name in ("ds", "es", "fs", "gs", "ss"):
        for value in (m.regs[name], 0x7B if name != "ss" else 0x68, 0 if name != "ss" else 0x68):
            m.regs[name] = value
            sp = m.regs.sp
            m.run(0x10000, until=0x10001)
            assert m.regs.sp == sp - 4
            m.regs.sp = sp
    before = {name: m.regs[name] for name in m.arch.regs.names}
    with pytest.raises(Exception, match="selector"):
        m.regs["ds"] = 0x1234
    assert {name: m.regs[name] for name in m.arch.regs.names} == before
    m.write(0x10000, bytes.fromhex("1e8cd88ed81f50c3"))  # push ds; mov eax, ds; mov ds, eax; pop ds; push eax
    sp = m.regs.sp
    m.run(0x10000, until=0x10007)
    assert m.regs.sp == sp - 4


@pytest.mark.parametrize("arch", RUNNABLE)
def test_the_library_maps_nothing_in_front_of_the_page_where_runs_end(arch: str) -> None:
    """The engine would translate the end of each run again."""
    m = UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)
    for size in (16, 4096, 1 << 16, 1 << 18):
        m.alloc(size)
    Kprobes(m)
    if not m.parts.state.exit:
        m.parts.stack_and_exit.make_exit()
    for _ in range(20):
        m.parts.memory.map_code()
    end = m.parts.state.exit
    assert not end % m.page_size
    with pytest.raises(GuestFault):
        m.read(end - 1, 1)


@pytest.mark.parametrize("arch", [arch for arch in RUNNABLE if architectures.get(arch).abi])
def test_a_call_without_arguments_finds_the_stack_as_one_with(arch: str) -> None:
    m = UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)
    passing = Passing(m.parts.memory, ())
    make_room = room_maker(m.parts.memory, m.regs)
    top = m.regs.sp
    for sp in (top, top - 1, top - 24, top - 4096 + 7):
        m.regs.sp = sp
        passing.set_up(m.regs)
        expected = m.regs.sp
        m.regs.sp = sp
        make_room()
        assert m.regs.sp == expected != sp
