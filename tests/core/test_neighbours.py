"""What instructions say of their neighbours, on every architecture that has such: data amid code, exclusive sequences,
jumps that leave."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from arches import RUNNABLE, programs_of

from kprobes import Kprobes, UnicornMachine
from kprobes import arch as architectures
from kprobes.core.patch.rooms import Rooms
from kprobes.core.patch.walk import MOST, Walk
from kprobes.errors import KprobeError
from kprobes.machine.paper import PaperMachine
from kprobes.symbols import Symbol
from kprobes.testing import functions, instructions

BASE = 0x10000
#: (architecture, mode, code, offset of what an instruction of it loads, offset at which the code goes on or None)
LITERALS = [
    ("arm", 0, "00009fe5 1eff2fe1 78563412", 8, None), ("armeb", 0, "00009fe5 1eff2fe1 12345678", 8, None),
    ("arm", 1, "0148 7047 00bf 00bf 78563412", 8, None), ("cortexm", 1, "0148 7047 00bf 00bf 78563412", 8, None),
    *((arch, 1, code, 20, None) for arch in ("arm", "cortexm") for code in (  # code behind a jump table, reached otherwise
        "0128 02d8 dfe800f0 0303 0248 7047 0720 7047 00bf 78563412",
        "0028 01d9 0720 7047 dfe800f0 0303 0148 7047 fce7 78563412")),
    ("arm", 0, "0000a0e3 000000ea 78563412 0c001fe5 1eff2fe1", 8, 12),  # it stands before the instruction that loads it
    ("arm64", 0, "40000018 c0035fd6 78563412", 8, None), ("arm64be", 0, "40000018 c0035fd6 12345678", 8, None),
    ("arm64", 0, "02000014 78563412 e0ffff18 c0035fd6", 4, 8),
    ("m68k", 0, "203a0004 4e75 12345678", 6, None), ("s390x", 0, "c42d00000004 07fe 12345678", 8, None),
    ("x86_64", 0, "8b0501000000 c3 78563412", 7, None), ("x86_64", 0, "8b0502000000 eb08 e800000000000000 c3", 8, 16),
    ("riscv32", 0, "17050000 0325c500 0100 8280 78563412", 12, None),
    ("riscv64", 0, "17050000 0325c500 0100 8280 78563412", 12, None),
    ("mips32r6el", 0, "020048ec 00001fd8 78563412", 8, None), ("mips32r6", 0, "ec480002 d81f0000 12345678", 8, None),
    ("mips64r6el", 0, "020048ec 00001fd8 78563412", 8, None), ("ppc64le", 0, "00001006 0c006080 2000804e 78563412", 12,
                                                               None),
]
#: Where a guest runs it: the engine knows neither POWER10's prefixed loads nor release 6's pc-relative ones.
RUNS = [case for case in LITERALS if not case[0].startswith(("ppc", "mips"))]


def guest(arch: str, mode: int, code: str) -> UnicornMachine:
    raw = bytes.fromhex(code)
    return UnicornMachine.from_code(raw, arch=arch, base=BASE, symbols={"f": (BASE | mode, len(raw))})


@pytest.mark.parametrize(("arch", "mode", "code", "at", "on"), LITERALS)
def test_what_an_instruction_loads_is_data(arch: str, mode: int, code: str, at: int, on: int | None) -> None:
    with guest(arch, mode, code) as m, Kprobes(m) as k:
        verdict = k.check(BASE + at | mode)
        assert not verdict.probeable
        assert "is data" in verdict.reason
        assert on is None or k.check(BASE + on | mode).probeable


@pytest.mark.parametrize(("arch", "mode", "code", "at", "on"), RUNS)
def test_no_jump_covers_data(arch: str, mode: int, code: str, at: int, on: int | None) -> None:
    """A probe wherever one may be, each as a jump if it can: the function still returns what it loads."""
    with guest(arch, mode, code) as m, Kprobes(m) as k:
        plain, text, probed = m.call("f"), m.read(BASE + at, 4), []
        for offset in range(0, len(bytes.fromhex(code)), m.arch.insn_align):
            if k.check(BASE + offset | mode).probeable:
                with k.kprobe(addr=BASE + offset | mode, pre_handler=lambda p, regs: None) as p:
                    k.flush_optimizer()
                    assert m.read(BASE + at, 4) == text, f"{offset:#x}: {p.why_not_optimized or 'the jump covers data'}"
                    assert m.call("f") == plain
                probed.append(offset)
        assert len(probed) > 1


#: (architecture, mode, code, offset of data whose address one or more instructions work out before it is read)
WORKED_OUT = [
    ("arm", 0, "0c308fe2 0410a0e3 d000c3e1 1eff2fe1 00f020e3 0000a0e1 0000a0e1", 20),
    ("armeb", 0, "0c308fe2 0410a0e3 d000c3e1 1eff2fe1 00f020e3 0000a0e1 0000a0e1", 20),
    ("arm", 0, "143000e3 013040e3 00f020e3 000093e5 1eff2fe1 00bf00bf", 20),  # MOVW, MOVT: see PLACED
    ("arm", 1, "0ff20c03 0421 d3e90001 7047 00bf 00bf00bf 00bf00bf", 16),
    ("cortexm", 1, "0ff20c03 0421 d3e90001 7047 00bf 00bf00bf 00bf00bf", 16),
    ("arm", 1, "02a3 0433 00f0feff 00bf 00bf 00bf00bf 00bf00bf", 12),  # behind a call that may not return
    ("arm64", 0, "83000010 810080d2 600440a9 c0035fd6 1f2003d5 1f2003d5", 16),
    ("arm64be", 0, "83000010 810080d2 600440a9 c0035fd6 1f2003d5 1f2003d5", 16),
    ("arm64", 0, "03000090 1f2003d5 63600091 600040f9 c0035fd6 1f2003d5 1f2003d5 1f2003d5", 24),  # ADRP
    ("riscv64", 0, "97060000 0100 b9068280 01000100 01000100", 14),
    ("riscv64", 0, "97060000 0100 03b50601 8280 0100 01000100 01000100", 16),
    ("riscv32", 0, "c166 0100 c846 8280 0100 0100 01000100", 12),
    ("loongarch64", 0, "0400001a 00004003 8450c002 8500c028 2000004c 00004003 00004003", 20),
    ("mips", 0, "3c040001 00000000 24840018 8c820000 03e00008 00000000 00000000 00000000", 24),
    ("mipsel", 0, "0100043c 00000000 18008424 0000828c 0800e003 00000000 00000000 00000000", 24),
    ("mips64", 0, "3c040001 00000000 64840018 dc820000 03e00008 00000000 00000000 00000000", 24),
    ("mips32r6", 0, "ec9e0000 00000000 24840018 8c820000 03e00009 00000000 00000000 00000000", 24),
    ("ppc", 0, "3c600001 60000000 38630014 80830000 4e800020 60000000 60000000", 20),
    ("ppc", 0, "7c0802a6 429f0005 7c6802a6 38630014 7c0803a6 4e800020 60000000 60000000 60000000", 28),  # BCL, MFLR
    ("ppc64", 0, "3c600001 60000000 38630014 e8830000 4e800020 60000000 60000000", 20),
    ("ppc64le", 0, "0100603c 00000060 14006338 000083e8 2000804e 00000060 00000060", 20),
    ("sparc", 0, "13000040 01000000 92126020 d0024000 81c3e008 01000000 01000000 01000000 01000000", 32),
    ("sparc", 0, "8210000f 40000002 01000000 9203e01c d0024000 81c06008 01000000 01000000 01000000", 32),  # CALL
    ("sparc64", 0, "13000040 01000000 92126020 d0024000 81c3e008 01000000 01000000 01000000 01000000", 32),
    ("i386", 0, "e800000000 59 8d510c 8b02 c3 9090909090 9090909090", 17),  # CALL, POP
    ("x86_64", 0, "488d1504000000 90 8b02 c3 90 9090909090", 11),
    ("s390x", 0, "c01000000008 e32010000004 07fe 0700 0700 0700 0700", 16),
    ("m68k", 0, "41fa0006 2010 4e75 4e71 4e71 4e71", 8),
    ("sh4", 0, "02c7 0261 0260 0b00 0900 0900 0900 0900 0900", 12),
]


def of_any(arch: str, mode: int, code: str) -> UnicornMachine | PaperMachine:
    """A guest that is looked at only: on paper where the engine does not run it."""
    if arch in RUNNABLE:
        return guest(arch, mode, code)
    raw = bytes.fromhex(code)
    return PaperMachine(raw, arch=architectures.get(arch), base=BASE, symbols={"f": (BASE | mode, len(raw))})


@pytest.mark.parametrize(("arch", "mode", "code", "at"), WORKED_OUT)
def test_data_whose_address_is_worked_out_first(arch: str, mode: int, code: str, at: int) -> None:
    """It decodes as instructions, and nothing leads there."""
    size, m = len(bytes.fromhex(code)), of_any(arch, mode, code)
    with Kprobes(m) as k:
        assert k.check(BASE | mode).probeable
        for offset in range(at, min(size, at + 4), m.arch.insn_align):
            verdict = k.check(BASE + offset | mode)
            assert not verdict.probeable, hex(offset)
            assert "is data" in verdict.reason


#: (architecture, code, offset of code whose address the function works out)
CODE_POINTERS = [
    ("arm64", "61000010 2088208b 00001fd6 200080d2 c0035fd6", 12),  # the base of a switch
    ("arm64", "61000010 400000b4 02000014 200080d2 c0035fd6", 12),  # a branch leads there, too
    ("arm64", "01000010 1f2003d5 c0035fd6", 0),  # the function itself
    ("x86_64", "488d0500000000 90 c3", 7), ("x86_64", "488d0501000000 90 90 c3", 8),  # it goes on there
    ("x86_64", "488d0502000000 7401 c3 90 c3", 9), ("i386", "e800000000 58 90 c3", 5),
    ("ppc", "7c0802a6 429f0005 7c6802a6 7c0803a6 4e800020", 8), ("sparc", "40000002 01000000 81c3e008 01000000", 8),
]


@pytest.mark.parametrize(("arch", "code", "at"), CODE_POINTERS)
def test_code_whose_address_is_worked_out(arch: str, code: str, at: int) -> None:
    with guest(arch, 0, code) as m, Kprobes(m) as k:
        verdict = k.check(BASE + at)
        assert verdict.probeable, verdict.reason


@pytest.mark.parametrize(("arch", "mode", "code", "at"), [
    ("arm", 1, "0ff2080e 5ef820c0 e644 7047 09000000 0b000000 00bf 7047", 12),
    ("cortexm", 1, "0ff2080e 5ef820c0 e644 7047 09000000 0b000000 00bf 7047", 12),
    ("arm", 0, "08108fe2 000191e7 01f080e0 00f020e3 08000000 0c000000 00f020e3 1eff2fe1", 16),
    ("armeb", 0, "08108fe2 000191e7 01f080e0 00f020e3 00000008 0000000c 00f020e3 1eff2fe1", 16)])
def test_a_table_of_distances_from_itself(arch: str, mode: int, code: str, at: int) -> None:
    """A switch of position-independent code: the table is data, what is behind it code, and nothing else is entered."""
    with guest(arch, mode, code) as m, Kprobes(m) as k:
        assert k.check(BASE + at + 8 | mode).probeable
        assert not any(k.check(BASE + at + n | mode).probeable for n in range(0, 8, m.arch.insn_align))
        flow = k._rooms.survey.flow(m.symbols["f"])
        assert flow.unknown == ""
        assert BASE + at + 8 in flow.targets
        for index in (0, 1):
            m.regs["r0"] = index
            m.run("f", until=BASE + at + 8 | mode if index == 0 else BASE + at + (10 if mode else 12) | mode)


@pytest.mark.parametrize(("arch", "mode", "code", "at"), WORKED_OUT)
def test_a_symbol_makes_it_code(arch: str, mode: int, code: str, at: int) -> None:
    m = of_any(arch, mode, code)
    with Kprobes(m) as k:
        if k._rooms.survey._walked(BASE, mode, m.symbols["f"]).reader(BASE + at, BASE + at + 1) is not None:
            return  # an instruction reads it: that is stronger
        m.symbols.add("handler", BASE + at, mode=mode)
        assert k.check(BASE + at | mode).probeable


def test_data_before_what_works_out_its_address() -> None:
    """A first look took it for code."""
    code = "03000014 1f2003d5 1f2003d5 c3ffff10 1f2003d5 c0035fd6"
    with guest("arm64", 0, code) as m, Kprobes(m) as k:
        assert [k.check(BASE + at).probeable for at in range(0, 24, 4)] == [True, False, False, True, True, True]


def test_a_later_branch_into_supposed_data_proves_it_code() -> None:
    """Only the last block, behind the place, branches back to it."""
    code = "63000010 e00000b4 c0035fd6 1f2003d5 1f2003d5 c0035fd6 1f2003d5 1f2003d5 fcffff17"
    with guest("arm64", 0, code) as m, Kprobes(m) as k:
        assert [k.check(BASE + at).probeable for at in range(0, 36, 4)] == [True] * 3 + [False] + [True] * 5


def test_a_jump_stops_before_marked_data() -> None:
    """Here a mapping symbol alone tells: nothing loads it."""
    with guest("arm", 1, "7047 00bf 00bf 7856") as m, Kprobes(m) as k:
        m.symbols.add_data(BASE + 6, BASE + 8)
        assert "cover data" in k.check(BASE + 5).why_not_optimized


@pytest.mark.parametrize(("arch", "path"), [pytest.param(arch, path, id=path.stem) for arch in RUNNABLE
                                            for path in programs_of(arch)])
def test_data_in_programs_is_found_without_marks(arch: str, path: Path) -> None:
    """What mapping symbols mark is found from the instructions that use it; nothing else is taken for data. (Where there
    are no marks, test_every_instruction_at_once says so.)"""
    with UnicornMachine.load(path) as m:
        assert bool(m.symbols._data) == (arch in MARKED)
        if arch not in MARKED:
            return
        symbols = functions(m)
        marked = {(s, addr) for s in symbols for addr in code_addresses(m, s) if m.symbols.data_end(addr)}
        with_marks = accepted(m, symbols)
        m.symbols._data.clear()
        without = accepted(m, symbols)
        assert with_marks - without == set(), "code is taken for data"
        assert without & marked == set(), "data is taken for code"


def code_addresses(m: UnicornMachine, symbol: Symbol) -> Iterator[int]:
    yield from range(symbol.address, m.symbols.extent(symbol), m.arch.insn_align)


def accepted(m: UnicornMachine, symbols: list[Symbol]) -> set[tuple[Symbol, int]]:
    """Where probes may be."""
    survey, found = Rooms(m).survey, set()
    for symbol in symbols:
        for insn in survey.instructions(symbol):
            try:
                survey.at(insn.addr, symbol.mode, symbol)
            except KprobeError:
                continue
            found.add((symbol, insn.addr))
    return found


MARKED = ("arm", "armeb", "cortexm")  #: whose programs have data in their text, and mapping symbols
#: (architecture, mode, load-exclusive, nop, store-exclusive, return)
EXCLUSIVE = [
    ("arm64", 0, "017c5f88", "1f2003d5", "017c0288", "c0035fd6"),
    ("arm", 0, "9f1f90e1", "00f020e3", "912f80e1", "1eff2fe1"),
    ("arm", 1, "50e8001f", "00bf", "40e80012", "7047"), ("cortexm", 1, "50e8001f", "00bf", "40e80012", "7047"),
    ("riscv64", 0, "af250510", "0100", "2f26b518", "8280"), ("riscv32", 0, "af250510", "0100", "2f26b518", "8280"),
    ("mipsel", 0, "000088c0", "00000000", "000088e0", "0800e003 00000000"),
    ("mips64", 0, "c0880000", "00000000", "e0880000", "03e00008 00000000"),
    ("mips32r6el", 0, "3600887c", "00000000", "2600887c", "00001fd8"),
    ("ppc", 0, "7ca01828", "60000000", "7ca0192d", "4e800020"), ("ppc64le", 0, "2818a07c", "00000060", "2d19a07c",
                                                                 "2000804e"),
]


@pytest.mark.parametrize(("arch", "mode", "load", "nop", "store", "back"), EXCLUSIVE)
@pytest.mark.parametrize("shape", ["load nop nop back", "load nop nop back store", "load nop load store back",
                                   "load nop nop store back"])
def test_a_load_exclusive_opens_what_a_store_closes(shape: str, arch: str, mode: int, load: str, nop: str, store: str,
                                                    back: str) -> None:
    code = " ".join({"load": load, "nop": nop, "store": store, "back": back}[word] for word in shape.split())
    with guest(arch, mode, code) as m, Kprobes(m) as k:
        verdict = k.check(BASE + len(bytes.fromhex(load)) | mode)
        assert verdict.probeable == (shape != "load nop nop store back"), verdict.reason


@pytest.mark.parametrize(("arch", "mode", "code", "inside", "outside"), [
    # LR, XOR, BNEZ, WRS.NTO: a wait for a change
    ("riscv64", 0, "af250510 b3c5c500 89e5 7300d000 0100 2f26b518 8280", (), (4, 8, 14)),
    ("arm", 0, "9f4fb0e1 00f020e3 1eff2fe1 912f80e1", (), (4, 8)),  # LDREXD, an atomic load of 64 bits
    ("arm64", 0, "03000014 017c0288 c0035fd6 1f2003d5 017c5f88 3f0000f1 60ffff54 1f2003d5 5f3f03d5 c0035fd6",
     (20, 24), (0, 8, 12, 28, 36)),  # the store stands before the load, on one arm of a branch
    # BXEQ in an IT block goes on where its condition does not hold
    ("arm", 1, "50e8001f 08bf 7047 40e80012 7047", (4, 6), (12,)),
])
def test_exclusive_sequences_are_followed(arch: str, mode: int, code: str, inside: tuple[int, ...],
                                          outside: tuple[int, ...]) -> None:
    with guest(arch, mode, code) as m, Kprobes(m) as k:
        verdicts = {offset: k.check(BASE + offset | mode) for offset in (*inside, *outside)}
        assert ["exclusive" in verdicts[offset].reason for offset in inside] == [True] * len(inside)
        assert [verdicts[offset].reason for offset in outside] == [""] * len(outside)


#: (architecture, code, offset of a place whose jump would cover more than an instruction, whether it may)
LEAVING = [
    ("s390x", "ebbff0580024 a7fbff60 0707 0707 0707 e340f1100004 ebbff0f80004 07f4", 10, True),  # GCC's epilogue
    ("s390x", "ebbff0580024 a7fbff60 0707 0707 0707 e310f0a00004 ebbff0f80004 07f1", 10, True),  # a tail call
    ("s390x", "ebbff0580024 a7fbff60 0707 0707 0707 e340f1100004 07f4", 10, False),  # its frame still stands
    ("s390x", "ebbff0580024 a7fbff60 0707 0707 0707 e341f1100004 ebbff0f80004 07f4", 10, False),  # out of a table
    # a branch leads between: who knows what r4 is
    ("s390x", "a7f40009 0707 0707 0707 e340f1100004 ebbff0f80004 07f4", 4, False),
    ("mipsel", "00000000 00000000 2080998f 00003927 0800 2003 00000000", 0, True),  # from the global offset table
    ("mipsel", "00000000 00000000 0000828f 08004000 00000000", 0, False),
    ("riscv64", "0100 0100 17030000 67000308", 0, True), ("riscv64", "0100 0100 13030000 67000308", 0, False),
    ("x86_64", "90 90 90 90 90 ff2500010000", 0, True), ("x86_64", "90 90 90 90 90 ff24c500010000", 0, False),
    ("i386", "90 90 90 90 90 ff2500010000", 0, True), ("i386", "90 90 90 90 90 ff2485 00010000", 0, False),
    ("m68k", "4e71 4e71 4e71 4ef900020000", 0, True), ("m68k", "4e71 4e71 4e71 4efa0100", 0, True),
    ("m68k", "4e71 4e71 4e71 4ed0", 0, False),
]


@pytest.mark.parametrize(("arch", "code", "at", "leaves"), LEAVING)
def test_what_leaves_the_function_jumps_into_no_region(arch: str, code: str, at: int, leaves: bool) -> None:
    with guest(arch, 0, code) as m, Kprobes(m) as k:
        verdict = k.check(BASE + at)
        assert (verdict.optimizable, "may jump into the region" in verdict.why_not_optimized) == (leaves,
            not leaves), verdict.why_not_optimized


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The instructions that walks have come to."""
    out: list[int] = []
    take = Walk._take
    monkeypatch.setattr(Walk, "_take", lambda walk, insn: (out.append(insn.addr), take(walk, insn))[1])
    return out


@pytest.mark.parametrize(("arch", "mode", "nop"), [("x86_64", 0, "90"), ("arm", 1, "00bf"), ("s390x", 0, "0707"),
                                                   ("m68k", 0, "4e71"),
                                                   ("riscv64", 0, "0100"), ("arm64", 0, "1f2003d5")])
def test_far_behind_the_last_symbol_walks_go_on(noted: list[int], arch: str, mode: int, nop: str) -> None:
    """Raw code with a symbol at its start: whatever the order of questions, no instruction is looked at often."""
    step, count = len(nop) // 2, 20000
    with UnicornMachine.from_code(bytes.fromhex(nop) * count, arch=arch, base=BASE,
                                  symbols={"start": BASE | mode}) as m, Kprobes(m) as k:
        places = [BASE + step * n | mode for n in range(0, count, 50)]
        assert all(k.check(addr).probeable for addr in (*places, *reversed(places)))
    assert len(noted) < 2 * count


@pytest.mark.parametrize(("arch", "mode", "nop"), [("x86_64", 0, "90"), ("arm", 1, "00bf"), ("s390x", 0, "0707"),
                                                   ("m68k", 0, "4e71"), ("mips", 0, "00000000"),
                                                   ("riscv64", 0, "0100"), ("arm64", 0, "1f2003d5")])
def test_walks_of_short_functions_are_kept(noted: list[int], monkeypatch: pytest.MonkeyPatch, arch: str, mode: int,
                                           nop: str) -> None:
    """A walk of 16 bytes counts as such, and not as the KiB that is read at a time: beyond 8,192 probed functions every
    first hit walked again."""
    monkeypatch.setattr("kprobes.core.patch.survey._KEPT", 1 << 17)
    count = 800
    code = bytes.fromhex(nop) * (16 * count // (len(nop) // 2))
    symbols = {f"f{n}": (BASE + 16 * n | mode, 16) for n in range(count)}
    with UnicornMachine.from_code(code, arch=arch, base=BASE, symbols=symbols) as m, Kprobes(m) as k:
        assert all(k.check(name).probeable for name in symbols)
        looked = len(noted)
        assert looked == count * 16 // (len(nop) // 2)
        assert all(k.check(name).probeable for name in symbols)
        assert len(noted) == looked, "walked again"


@pytest.mark.parametrize("arch", ["x86_64", "arm64", "mips"])
def test_a_function_of_a_megabyte_is_bounded(noted: list[int], arch: str) -> None:
    """Where decoding may start anywhere the end of it is looked at by itself; elsewhere there is a reason."""
    code = bytes.fromhex({"x86_64": "90909090", "arm64": "1f2003d5", "mips": "00000000"}[arch]) * (1 << 18)
    with UnicornMachine.from_code(code, arch=arch, base=1 << 20,
                                  symbols={"f": (1 << 20, len(code))}) as m, Kprobes(m) as k:
        verdict = k.check("f+0xffff0")
        assert verdict.probeable == (arch != "x86_64")
        assert verdict.probeable or "instructions are followed to" in verdict.reason
        looked = len(noted)
        assert looked <= 2 * MOST
        assert k.check("f+0xfffe0").probeable == verdict.probeable
        assert len(noted) == looked, "walked again"


@pytest.mark.parametrize("path", [path for arch in RUNNABLE for path in programs_of(arch)[-1:]],
                         ids=lambda path: path.stem)
def test_what_check_says_comes_true(path: Path) -> None:
    """Registered and asked for, each probe is what check() said it would be."""
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        places = [addr for symbol in functions(m) for addr in instructions(k, symbol)]
        for addr in random.Random(path.stem).sample(places, 150):
            verdict = k.check(addr)
            with k.kprobe(addr=addr, pre_handler=lambda p, regs: None) as p:
                boosted = p.boosted
                k.flush_optimizer()
                assert (boosted, p.optimized, p.why_not_optimized) == (verdict.boostable, verdict.optimizable,
                    verdict.why_not_optimized), hex(addr)


@pytest.mark.parametrize(("arch", "reach"), [("riscv32", 1 << 20), ("riscv64", 1 << 20), ("sparc", 1 << 23),
                                             ("tricore", 1 << 24), ("ppc", 1 << 25), ("arm", 1 << 25)])
def test_what_no_detour_reaches_is_not_optimizable(arch: str, reach: int) -> None:
    """All memory within the jump's reach is taken: check() says what registering finds out."""
    nop = {"riscv32": "13000000", "riscv64": "13000000", "sparc": "01000000", "tricore": "0000" * 2, "ppc": "60000000",
           "arm": "00f020e3"}[arch]
    base = max(1 << 26, 4 * reach)
    with UnicornMachine.from_code(bytes.fromhex(nop) * 4096, arch=arch, base=base,
                                  symbols={"f": (base, 0x4000)}) as m, Kprobes(m) as k:
        m.map(base - 2 * reach, 2 * reach)
        m.map(base + 0x4000, 2 * reach)
        verdict = k.check("f+8")
        assert (verdict.probeable, verdict.boostable, verdict.optimizable) == (True, False, False)
        with k.kprobe("f+8", pre_handler=lambda p, regs: None) as p:
            k.flush_optimizer()
            assert (p.boosted, p.optimized, p.why_not_optimized) == (False, False, verdict.why_not_optimized)


def test_check_leaves_nothing_behind() -> None:
    """It tries a detour out, and gives back what that took."""
    with guest("x86_64", 0, "90" * 64 + "c3") as m, Kprobes(m) as k:
        text = m.read(BASE, 65)
        for offset in range(60):
            assert k.check(BASE + offset).optimizable
        assert m.read(BASE, 65) == text
        assert [area.used for cache in k._rooms.caches for area in cache._areas.values()] == [0, 0, 0]
        assert not list(k.list())
