"""Where instructions start, and what their neighbours forbid. docs/optimizer.md, docs/kprobe.md."""

from __future__ import annotations

import pytest
from scenes import Scene, paper, paper_machine

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.core.patch import survey
from kprobes.core.patch.exclusive import LONGEST
from kprobes.core.patch.rooms import Rooms
from kprobes.core.patch.text import Text
from kprobes.core.patch.walk import Walk
from kprobes.errors import NotAnInstruction, Unprobeable
from kprobes.machine.paper import PaperMachine


def probeable(k: Kprobes, start: int, end: int) -> list[int]:
    """Offsets at which a probe may be registered."""
    return [addr - start for addr in range(start, end) if k.check(addr).probeable]


def test_every_boundary_and_nothing_else() -> None:
    with Kprobes(paper_machine(f="add r0 1; nop; jmp +2; load r1 r2; ret")) as k:
        assert probeable(k, 0x1000, 0x100A) == [0, 3, 4, 6, 9]


def test_boundaries_do_not_depend_on_what_was_probed_first() -> None:
    """With breakpoints everywhere, and asked from the end to the start."""
    m = paper_machine(f="add r0 1; nop; jmp +2; load r1 r2; ret")
    with Kprobes(m) as k:
        for offset in (9, 6, 4, 3, 0):
            k.register_kprobe(Kprobe(symbol_name="f", offset=offset))
            assert probeable(k, 0x1000, 0x100A) == [0, 3, 4, 6, 9]


def test_a_function_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to its last instruction, although the longest could not follow there."""
    m = paper_machine(f="nop; " * 60 + "ret", g="ret")
    walks: list[int] = []
    monkeypatch.setattr(survey, "Walk", lambda source, start, end, mode: walks.append(start)
                        or Walk(source, start, end, mode))
    with Kprobes(m) as k:
        k.register_kprobes([Kprobe(symbol_name="f", offset=n) for n in range(61)])
    assert walks == [0x1000]


def test_what_it_falls_into_is_named() -> None:
    with Kprobes(paper_machine(f="nop; add r0 1; ret")) as k, pytest.raises(NotAnInstruction,
        match=r"3-byte instruction 01 00 01 at 0x1001.*did you mean 0x1001"):
        k.register_kprobe(Kprobe(symbol_name="f", offset=3))


def test_text_that_changed_is_walked_anew() -> None:
    m = paper_machine(f="nop; nop; nop; ret")
    with Kprobes(m) as k:
        assert probeable(k, 0x1000, 0x1004) == [0, 1, 2, 3]
        m.write(0x1000, paper("add r0 1; ret"))
        assert probeable(k, 0x1000, 0x1004) == [0, 3]


def test_data_in_a_function_stops_the_walk() -> None:
    m = PaperMachine(paper("nop; ret") + b"\xff\xff" + paper("nop; ret"), symbols={"f": (0x1000, 6)})
    with Kprobes(m) as k:
        assert probeable(k, 0x1000, 0x1006) == [0, 1]
        with pytest.raises(NotAnInstruction, match="add a symbol"):
            k.register_kprobe(Kprobe(addr=0x1004))
        m.symbols.add("f.part", 0x1004, 2)
        assert probeable(k, 0x1004, 0x1006) == [0, 1]


def test_data_that_is_marked_is_passed_over() -> None:
    m = PaperMachine(paper("nop; ret") + b"\x01\x01" + paper("nop; ret"), symbols={"f": (0x1000, 6)})
    m.symbols.add_data(0x1002, 0x1004)
    with Kprobes(m) as k:
        assert probeable(k, 0x1000, 0x1006) == [0, 1, 4, 5]
        with pytest.raises(NotAnInstruction, match="data"):
            k.register_kprobe(Kprobe(addr=0x1002))


def test_a_symbol_without_size_reaches_to_the_next() -> None:
    m = PaperMachine(paper("add r0 1; ret; add r0 1; ret"), symbols={"f": 0x1000, "g": 0x1004})
    with Kprobes(m) as k:
        assert probeable(k, 0x1000, 0x1008) == [0, 3, 4, 7]


def test_without_any_symbol_the_address_is_believed() -> None:
    """On a variable-width ISA nobody can know; what cannot be decoded is refused all the same."""
    with Kprobes(PaperMachine(paper("add r0 1; ret") + b"\xff")) as k:
        assert k.check(0x1000).probeable
        assert k.check(0x1003).probeable
        assert not k.check(0x1004).probeable


def test_a_delay_slot_is_part_of_its_branch() -> None:
    m = paper_machine(f="nop; djmp +6; add r0 1; ret")
    with Kprobes(m) as k:
        assert probeable(k, 0x1000, 0x1008) == [0, 1, 7]
        verdict = k.check("f+1")
        assert (verdict.how, verdict.size) == ("step+simulate", 3)


def test_an_exclusive_sequence_closes() -> None:
    with Kprobes(paper_machine(f="nop; ll r1; nop; sc r1; nop; ret")) as k:
        assert probeable(k, 0x1000, 0x1008) == [0, 6, 7]


@pytest.mark.parametrize(("between", "closes"), [(LONGEST, True), (LONGEST + 1, False)])
def test_an_exclusive_sequence_is_short(between: int, closes: bool) -> None:
    """Architectures promise progress for short sequences only: a store beyond belongs to no load."""
    with Kprobes(paper_machine(f=f"ll r1; {'nop; ' * between} sc r1; ret")) as k:
        assert probeable(k, 0x1002, 0x1002 + between) == ([] if closes else [*range(between)])


@pytest.mark.parametrize("after", ["nop; ret", "call +2; sc r1; ret", "ret; sc r1; ret", "jr r1; sc r1; ret",
                                   "ll r1; sc r1; ret"])
def test_a_load_that_no_store_closes_opens_nothing(after: str) -> None:
    """Calls, returns and another load end what a load began."""
    with Kprobes(paper_machine(f=f"ll r1; nop; nop; {after}")) as k:
        assert probeable(k, 0x1002, 0x1004) == [0, 1]


def test_a_sequence_that_opens_again() -> None:
    """The store belongs to the second of two loads."""
    with Kprobes(paper_machine(f="ll r1; nop; ll r1; nop; sc r1; ret")) as k:
        assert probeable(k, 0x1000, 0x1009) == [2, 8]


def test_a_sequence_along_branches() -> None:
    """The store stands before the load, and one arm of a branch leads to it; the other is outside."""
    with Kprobes(paper_machine(f="jmp +6; nop; sc r1; ret; ll r1; brz r0 +5; jmp -9; nop; ret")) as k:
        assert probeable(k, 0x1000, 0x1000 + 15) == [0, 5, 13, 14]


def test_a_store_without_a_load_is_refused_alone() -> None:
    with Kprobes(paper_machine(f="nop; sc r1; ret")) as k:
        assert probeable(k, 0x1000, 0x1004) == [0, 3]
        with pytest.raises(Unprobeable, match="exclusive"):
            k.register_kprobe(Kprobe(symbol_name="f+1"))


def test_instructions_of_a_function(scene: Scene) -> None:
    survey = Rooms(scene.m).survey
    symbol = scene.m.symbols["probed"]
    insns = survey.instructions(symbol)
    assert [i.addr for i in insns] == [scene.at("probed", n) for n in range(4)]
    assert b"".join(i.raw for i in insns) == scene.m.read(symbol.address, symbol.size)


def test_instructions_are_the_original_ones(scene: Scene) -> None:
    before = scene.k._survey.instructions(scene.m.symbols["twice"])
    scene.k.register_kprobes([Kprobe(addr=i.addr) for i in before])
    assert [i.raw for i in scene.k._survey.instructions(scene.m.symbols["twice"])] == [i.raw for i in before]


def test_many_functions_are_walked_and_forgotten() -> None:
    """More functions than are remembered: the answers stay the same."""
    functions = {f"f{n}": "add r0 1; ret" for n in range(200)}
    m = paper_machine(**functions)
    with Kprobes(m) as k:
        for _ in range(2):
            for name in functions:
                assert k.check(name).probeable
                assert not k.check(f"{name}+1").probeable


@pytest.mark.parametrize(("arch", "code", "probeable"), [
    ("x86_64", "488d05f9ffffff c3", True), ("x86_64", "488b05f9ffffff c3", False),  # lea, mov rax,[rip-7]
    ("s390x", "c02000000000 07fe", True), ("s390x", "c42800000000 07fe", False)])  # larl, lgrl %r2,.
def test_an_instruction_that_reads_itself(arch: str, code: str, probeable: bool) -> None:
    """It would read the breakpoint; one that only works out its own address reads nothing."""
    with UnicornMachine.from_code(bytes.fromhex(code), arch=arch, symbols={"f": (0x10000, 8)}) as m, Kprobes(m) as k:
        verdict = k.check("f")
        assert (verdict.probeable, "its own bytes" in verdict.reason) == (probeable, not probeable)
        if probeable:
            k.register_kprobe(Kprobe(symbol_name="f", pre_handler=lambda p, regs: None))
            assert m.call("f") == 0x10000


@pytest.mark.parametrize(("entries", "why"), [("0004 000c", ""), ("0004 0006", "inside the region"),
                                              ("0004 4000", "may jump into the region")])
def test_a_jump_through_a_table(entries: str, why: str) -> None:
    """Its entries say where it leads; unless one leads to no instruction of the function: then it is no table."""
    # switch (d0) behind the table, from 18 on
    code = f"202f0004 d080 323b0806 4efb1002 {entries} 70014e714e714e75 70024e714e714e75"
    with UnicornMachine.from_code(bytes.fromhex(code), arch="m68k", symbols={"f": (0x10000, 34)}) as m, Kprobes(m) as k:
        verdict = k.check("f+18")
        assert (verdict.optimizable, why in verdict.why_not_optimized) == (not why, True)
        if not why:
            with k.kprobe("f+18", pre_handler=lambda p, regs: None) as p:
                k.flush_optimizer()
                assert (p.optimized, m.call("f", 0), m.call("f", 1), p.nhit) == (True, 1, 2, 1)


def test_a_jump_through_a_table_of_addresses() -> None:
    """Its words are data, which no probe is planted in; the code behind the last of them is code."""
    # mov eax, [esp+4]; jmp [eax*4 + table]; table: case0, case1; case0: mov eax, 7; ret; case1: mov eax, 9; ret
    code = "8b442404 ff24850b000100 13000100 19000100 b807000000c3 b809000000c3"
    with UnicornMachine.from_code(bytes.fromhex(code), arch="i386", symbols={"f": (0x10000, 31)}) as m, Kprobes(m) as k:
        assert probeable(k, 0x10000, 0x1001F) == [0, 4, 19, 24, 25, 30]
        assert "is data: JMP" in k.check("f+11").reason
        with k.kprobe("f+25", pre_handler=lambda p, regs: None) as p:
            assert (m.call("f", 0), m.call("f", 1), p.nhit) == (7, 9, 1)


@pytest.mark.parametrize(("arch", "code", "returns"), [
    ("x86_64", "8b0501000000 c3 90909090", 6), ("s390x", "c42d00000004 07fe 07070707", 6),
    ("m68k", "203a0004 4e75 4e714e71", 4),
    ("riscv64", "17050000 0325c500 0100 8280 01000100", 10)])
def test_data_behind_a_return_stays(arch: str, code: str, returns: int) -> None:
    """The function returns the word behind its return instruction, which could be code as well: no jump may cover
    that."""
    raw = bytes.fromhex(code)
    with UnicornMachine.from_code(raw, arch=arch, symbols={"f": (0x10000, len(raw))}) as m, Kprobes(m) as k:
        plain = m.call("f")
        with k.kprobe(addr=0x10000 + returns, pre_handler=lambda p, regs: None) as p:
            k.flush_optimizer()
            assert "may be data" in p.why_not_optimized
            assert (m.call("f"), p.nhit) == (plain, 1)


#: (architecture, mode, a block of straight-line code that is at least as long as a jump)
BLOCKS = [("x86_64", 0, "89c089c190"), ("i386", 0, "89c089c190"), ("arm", 1, "0000080000bf00bf"),
          ("cortexm", 1, "0000080000bf00bf"), ("s390x", 0, "b90400121812b9040034"), ("m68k", 0, "200124014e714e714e71"),
          ("riscv64", 0, "0100010013000000"), ("riscv32", 0, "0100010013000000")]


@pytest.mark.parametrize(("arch", "mode", "block"), BLOCKS, ids=[row[0] for row in BLOCKS])
def test_many_jumps_in_one_function_cost_in_proportion(monkeypatch: pytest.MonkeyPatch, arch: str, mode: int,
                                                       block: str) -> None:
    """Four times as many jumps: about four times as many patches are looked through, not sixteen times."""
    looks: list[int] = []
    holds = Text._holds
    monkeypatch.setattr(Text, "_holds", lambda *args: (looks.append(1), holds(*args))[1])
    counted = []
    for count in (50, 200):
        code = bytes.fromhex(block) * count
        places = [0x10000 + len(bytes.fromhex(block)) * n | mode for n in range(count)]
        with UnicornMachine.from_code(code, arch=arch, base=0x10000, symbols={"f": (0x10000 | mode, len(code))}) as m, \
                Kprobes(m) as k:
            probes = [Kprobe(addr=addr, pre_handler=lambda p, regs: None) for addr in places]
            k.register_kprobes(probes)
            looks.clear()
            k.flush_optimizer()
            assert all(p.optimized for p in probes[:-1]), probes[0].why_not_optimized
        counted.append(len(looks))
    assert counted[1] <= 5 * counted[0] + 50


def test_only_other_peoples_writes_count_as_changes() -> None:
    code = bytes.fromhex("90") * 0x2000
    with UnicornMachine.from_code(code, arch="x86_64", base=0x10000, symbols={"f": (0x10000, len(code))}) as m:
        text = Text(m)
        before = text.generation(0x10000, 0x2000)
        patch = text.apply(0x10FFE, bytes.fromhex("e900000000"))
        patch = text.replace(patch, 0x10FFF, b"\xcc")
        assert text.generation(0x10000, 0x2000) == before
        text.revert(patch)
        assert text.generation(0x10000, 0x2000) == before
        m.write(0x11800, b"\xc3")
        assert text.generation(0x10000, 0x1000) <= before
        assert (after := text.generation(0x10000, 0x2000)) > before
        m.write(0x10100, b"\xf4")
        text.apply(0x10100, b"\xcc")  # it hides what was written there
        assert text.generation(0x10000, 0x2000) > after


@pytest.mark.parametrize("between", ["nothing", "another probe"])
def test_a_branch_written_later_keeps_a_jump_away(between: str) -> None:
    """The guest's owner writes a branch to the second instruction of the region, perhaps where a probe then stands."""
    code = bytes.fromhex("89c089c190") * 40 + b"\xc3"
    with UnicornMachine.from_code(code, arch="x86_64", base=0x10000, symbols={"f": (0x10000, len(code))}) as m, \
            Kprobes(m) as k:
        assert k.check("f+5").optimizable
        with k.kprobe("f+50", pre_handler=lambda p, regs: None):
            k.flush_optimizer()
            assert k.check("f+5").optimizable
            m.write(0x10000 + 100, bytes.fromhex("eba1 9090 90"))  # jmp f+7
            if between == "another probe":
                k.register_kprobe(Kprobe(addr=0x10000 + 100, pre_handler=lambda p, regs: None))
            assert "f leads to 0x10007" in k.check("f+5").why_not_optimized


#: A function, and where its instructions begin. Each works out the address of one of them.
WORKED_OUT = {
    "in a loop that is entered at its end": ("eb0b 488d0500000000 90909090 75f3 c3", [0, 2, 9, 10, 11, 12, 13, 15]),
    "behind a call": ("e800000000 488d0500000000 90 c3", [0, 5, 12, 13]),
}


@pytest.mark.parametrize("code", WORKED_OUT)
def test_an_address_that_is_worked_out_is_code_where_code_goes_on_to_it(code: str) -> None:
    """SuperH's atomic sequences work out the address of their own end."""
    text, begin = bytes.fromhex(WORKED_OUT[code][0]), WORKED_OUT[code][1]
    with UnicornMachine.from_code(text, arch="x86_64", base=0x10000, symbols={"f": (0x10000, len(text))}) as m, \
            Kprobes(m) as k:
        assert probeable(k, 0x10000, 0x10000 + len(text)) == begin
