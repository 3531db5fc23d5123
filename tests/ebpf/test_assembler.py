"""The assembler of programs, and what only programs made here call: loops that engines count, walks over hash tables."""

import pytest

from kprobes.errors import ProgramError
from kprobes.programs.assembler import Assembler
from kprobes.programs.maps import Map, MapType, Spec, create
from kprobes.programs.meanings import ROUNDS
from kprobes.programs.program import Program

ENGINES = pytest.mark.parametrize(
    "engine", ["interpreter", pytest.param("host", marks=pytest.mark.host_code)])


def words() -> Map:
    """An array of one value of eight words."""
    return create(Spec(type=MapType.ARRAY, name="words", key_size=4, value_size=64, max_entries=1))


def table() -> Map:
    """A hash table with 1 -> 10, 2 -> 20 ..."""
    made = create(Spec(type=MapType.HASH, name="table", key_size=4, value_size=8, max_entries=16))
    for n in range(1, 6):
        made[n] = 10 * n  # type: ignore[index]
    return made


def program(asm: Assembler, *maps: Map) -> Program:
    """What an assembler has written."""
    asm.set(0, 0)
    asm.exit()
    code, _ = asm.finish()
    return Program.from_instructions(code, maps=dict(enumerate(maps)), name="test")


def word(m: Map, n: int) -> int:
    """A word of `words`."""
    return int.from_bytes(m.block.view[8 * n:8 * n + 8], "little")


def loop(asm: Assembler, top: str, out: str) -> None:
    """The begin of a loop that engines count."""
    asm.place(top)
    asm.call("may_loop")
    asm.jump_if_number("==", 0, 0, out)


def count(asm: Assembler, most: int, counted: bool) -> None:
    """Count the first word up to a number."""
    top, out = asm.label(), asm.label()
    if counted:
        loop(asm, top, out)
    else:
        asm.place(top)
        for _ in range(4):
            asm.set(1, 0)
    asm.value(9, 0, 0)
    asm.load(1, 9, 0, 8)
    asm.jump_if_number(">=", 1, most, out)
    asm.compute_with("+", 1, 1)
    asm.store(9, 0, 1, 8)
    asm.jump(top)
    asm.place(out)


@ENGINES
@pytest.mark.parametrize("most", [0, 1, 5000])
def test_a_counted_loop(engine: str, most: int) -> None:
    asm, m = Assembler(), words()
    count(asm, most, True)
    made = program(asm, m)
    assert made.verify().steps < 100
    made.run(engine=engine)
    assert word(m, 0) == most


@pytest.mark.host_code
def test_a_loop_without_an_end_ends() -> None:
    asm, m = Assembler(), words()
    count(asm, (1 << 31) - 1, True)
    program(asm, m).run(engine="host")
    assert word(m, 0) == ROUNDS


def test_a_loop_that_nobody_counts_is_refused() -> None:
    asm = Assembler()
    count(asm, 5, False)
    with pytest.raises(ProgramError, match="loops for ever"):
        program(asm, words()).verify()


def test_nor_is_one_within_a_counted_one_accepted() -> None:
    asm = Assembler()
    top, out = asm.label(), asm.label()
    loop(asm, top, out)
    count(asm, 5, False)
    asm.value(9, 0, 0)
    asm.load(1, 9, 8, 8)
    asm.jump_if_number("!=", 1, 0, top)
    asm.place(out)
    with pytest.raises(ProgramError, match="loops for ever"):
        program(asm, words()).verify()


@ENGINES
def test_a_walk_over_a_table(engine: str) -> None:
    """Word 0: where it is; 1: the key; 2: the sum of all keys."""
    asm, m = Assembler(), words()
    top, out = asm.label(), asm.label()
    loop(asm, top, out)
    asm.value(9, 0, 0)
    asm.map(1, 1)
    asm.move(2, 9)
    asm.compute_with("+", 2, 8)
    asm.load(3, 9, 0, 8)
    asm.call("map_next_key")
    asm.jump_if_number("==", 0, 0, out)
    asm.store(9, 0, 0, 8)
    asm.load(1, 9, 8, 4)
    asm.load(2, 9, 16, 8)
    asm.compute("+", 2, 1)
    asm.store(9, 16, 2, 8)
    asm.jump(top)
    asm.place(out)
    program(asm, m, table()).run(engine=engine)
    assert (word(m, 0), word(m, 2)) == (5, 15)


@ENGINES
def test_arithmetic_far_jumps_and_dead_code(engine: str) -> None:
    asm, m = Assembler(), words()
    far, dead = asm.label(), asm.label()
    asm.value(9, 0, 0)
    asm.set(1, -7)
    asm.set(2, 2)
    asm.divide_signed("/", 1, 2)
    asm.store(9, 0, 1, 8)
    asm.set(1, 0x1234_5678_9ABC)
    asm.extend(1, 16, True)
    asm.store(9, 8, 1, 8)
    asm.set(1, 0x1234)
    asm.swap(1, 16)
    asm.negate(1)
    asm.store(9, 16, 1, 8)
    asm.jump_if_number("==", 2, 2, far)
    for n in range(33_000):
        asm.set(3, n)
    asm.place(far)
    asm.store_number(9, 24, -1, 8)
    end = asm.label()
    asm.jump(end)
    asm.place(dead)
    asm.store_number(9, 32, 1, 8)
    asm.place(end)
    program(asm, m).run(engine=engine)
    u64 = (1 << 64) - 1
    assert [word(m, n) for n in range(5)] == [-3 & u64, -0x6544 & u64, -0x3412 & u64, u64, 0]
