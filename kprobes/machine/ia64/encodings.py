"""The encodings that the model knows, unit by unit ("Instruction Formats", volume 3, chapter 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...arch._base import signed
from ...arch._decode import DecodeTable, Row
from ...regs import Regs
from . import effects
from .effects import Value

Effect = Callable[..., None]


class Effects:
    """The instructions of one unit that the model knows: their encodings, with what they do."""

    def __init__(self, known: Sequence[tuple[str, Effect]]) -> None:
        """
        Args:
            known: (picture of an encoding, function that executes it) of each. In a picture 0 and 1
                are fixed bits, "-" any bit, and a letter's bits are the function's argument of that
                name.
        """
        self._table = DecodeTable([Row(picture, str(n)) for n, (picture, _) in enumerate(known)])
        self._effects = [effect for _, effect in known]

    def run(self, regs: Regs, word: int, upper: int) -> bool:
        """Execute an instruction of this unit.

        Its qualifying predicate is not looked at: the caller has found that it holds, or that the
        instruction is executed in any case (rows.ALWAYS).

        Args:
            regs: the CPU's registers.
            word: the instruction's 41 bits.
            upper: the 41 bits of the bundle's middle slot, the rest of an instruction of units L
                and X.

        Returns:
            False where the model does not know the instruction: nothing was executed.

        Raises:
            GuestFault: the instruction fails.
        """
        row = self._table.find(word)
        if row is not None:
            self._effects[int(row.name)](regs, upper=upper, **row.extract(word))
        return row is not None


# `q` predicate, `d` result, `s` and `t` sources, `i` immediate, `z` size; `u` and `v` predicates
# that are results

ADD: Value = lambda a, b: a + b  # noqa: E731
SUB: Value = lambda a, b: a - b  # noqa: E731
AND: Value = lambda a, b: a & b  # noqa: E731
ALU: dict[tuple[int, int], Value] = {
    (0, 0): ADD, (0, 1): lambda a, b: a + b + 1, (1, 0): lambda a, b: a - b - 1, (1, 1): SUB,
    (3, 0): AND, (3, 1): lambda a, b: a & ~b, (3, 2): lambda a, b: a | b, (3, 3): lambda a, b: a ^ b}  # fmt: skip
ALU_IMM: dict[tuple[int, int], Value] = {(9, 1): SUB, **{(11, n): ALU[3, n] for n in range(4)}}
SHL: Value = lambda a, b: a << b if b < 64 else 0  # noqa: E731
SHR: Value = lambda a, b: signed(a, 64) >> min(b, 63)  # noqa: E731
SHR_U: Value = lambda a, b: a >> b if b < 64 else 0  # noqa: E731

Known = Sequence[tuple[str, Effect]]
A: Known = (
    *((f"1000 - 00 0 {x:04b} {y:02b} ttttttt sssssss ddddddd qqqqqq", partial(effects.of_two, value))
      for (x, y), value in ALU.items()),
    *((f"1000 i 00 0 {x:04b} {y:02b} ttttttt iiiiiii ddddddd qqqqqq", partial(effects.of_imm, value, 8))
      for (x, y), value in ALU_IMM.items()),
    ("1000 - 00 0 0100 nn ttttttt sssssss ddddddd qqqqqq", effects.shladd),
    ("1000 i 10 0 iiiiii ttttttt iiiiiii ddddddd qqqqqq", partial(effects.of_imm, ADD, 14)),
    ("1001 i jjjjjjjjj kkkkk tt mmmmmmm ddddddd qqqqqq", effects.addl),
    *((f"11{op:02b} b xx a vvvvvv ttttttt sssssss c uuuuuu qqqqqq", partial(effects.cmp, op)) for op in range(3)),
)  # fmt: skip
NOP_AND_HINT: tuple[str, Effect] = (
    "0000 - 000 000001 --------------------- qqqqqq",
    effects.nothing,
)
#: Plain, .a, .bias and .acq, .c.clr, .c.nc, .c.clr.acq.
LOADS = ("0000zz", "0010zz", "010-zz", "1000zz", "1001zz", "1010zz")
STORES = ("1100zz", "1101zz")  # plain, .rel
SPILL, FILL = partial(effects.store, z=3), partial(effects.load, z=3)
M: Known = (
    *A, NOP_AND_HINT,
    *((f"0100 0 {x} -- 0 ttttttt ------- ddddddd qqqqqq", effects.load) for x in LOADS),
    *((f"0100 1 {x} -- 0 ttttttt sssssss ddddddd qqqqqq", effects.load_step) for x in LOADS),
    *((f"0101 i {x} -- i ttttttt iiiiiii ddddddd qqqqqq", effects.load_step) for x in LOADS),
    *((f"0100 0 {x} -- 0 ttttttt sssssss ------- qqqqqq", effects.store) for x in STORES),
    *((f"0101 i {x} -- i ttttttt sssssss iiiiiii qqqqqq", effects.store) for x in STORES),
    ("0100 0 011011 -- 0 ttttttt ------- ddddddd qqqqqq", FILL),
    ("0100 0 111011 -- 0 ttttttt sssssss ------- qqqqqq", SPILL),
    ("0101 i 111011 -- i ttttttt sssssss iiiiiii qqqqqq", SPILL),
    ("0100 0 000-zz -- 1 ttttttt sssssss ddddddd qqqqqq", effects.cmpxchg),
    ("0100 0 0010zz -- 1 ttttttt sssssss ddddddd qqqqqq", effects.xchg),
    ("0100 0 010-1z -- 1 ttttttt ---- s ii ddddddd qqqqqq", effects.fetchadd),
    ("0110 0 011100 00 1 ------- sssssss ddddddd qqqqqq", effects.setf),
    ("0100 0 011100 00 1 ------- sssssss ddddddd qqqqqq", effects.getf),
    ("0110 0 000001 -- 0 ttttttt ------- ddddddd qqqqqq", effects.loadf),
    ("0110 0 110001 -- 0 ttttttt sssssss ------- qqqqqq", effects.storef),
    ("0001 - 000 101010 aaaaaaa sssssss ------- qqqqqq", effects.to_ar),
    ("0000 i 000 101000 aaaaaaa iiiiiii ------- qqqqqq", effects.to_ar),
    ("0001 - 000 100010 aaaaaaa ------- ddddddd qqqqqq", effects.from_ar),
    ("0001 - 110 -- rrrr mmmmmmm nnnnnnn ddddddd qqqqqq", effects.alloc),
    ("0000 - 000 10 001- --------------------- qqqqqq", effects.nothing),  # mf, mf.a
    ("0000 - 000 01 0000 --------------------- qqqqqq", effects.nothing),  # invala
    ("0000 - 000 00 1100 --------------------- qqqqqq", effects.nothing),  # flushrs: all is there
    ("0000 - 000 11 000- --------------------- qqqqqq", effects.nothing),  # srlz
    ("0001 - 000 110000 --------------------- qqqqqq", effects.nothing),  # fc
    ("0110 - 1011-- -- 0 --------------------- qqqqqq", effects.nothing),  # lfetch
)  # fmt: skip
I: Known = (  # noqa: E741
    *A, NOP_AND_HINT,
    ("0111 1 001 000100 ttttttt sssssss ddddddd qqqqqq", partial(effects.of_two, lambda s, t: SHR(t, s))),
    ("0111 1 001 000000 ttttttt sssssss ddddddd qqqqqq", partial(effects.of_two, lambda s, t: SHR_U(t, s))),
    ("0111 1 001 001000 ttttttt sssssss ddddddd qqqqqq", partial(effects.of_two, SHL)),
    ("0101 0 010 nnnnnn ttttttt pppppp y ddddddd qqqqqq", effects.extr),
    ("0101 0 011 nnnnnn 0 pppppp sssssss ddddddd qqqqqq", effects.dep_z),
    ("0101 i 011 nnnnnn 1 pppppp iiiiiii ddddddd qqqqqq", effects.dep_z_imm),
    ("0100 pppppp nnnn ttttttt sssssss ddddddd qqqqqq", effects.dep),
    *((f"0000 - 000 010{sign:b}{size:02b} ttttttt ------- ddddddd qqqqqq",
       partial(effects.extend, 8 << size, bool(sign)))
      for sign in (0, 1) for size in range(3)),
    ("0111 0 011 010010 ttttttt ------- ddddddd qqqqqq", effects.popcnt),
    ("0000 - 000 110001 ----------- bbb ddddddd qqqqqq", effects.from_b),
    ("0000 - 111 ------------- sssssss ---- bbb qqqqqq", effects.to_b),
    ("0000 - 000 110011 -------------- ddddddd qqqqqq", effects.from_pr),
    ("0000 i 011 - iiiiiiii ---- sssssss jjjjjjj qqqqqq", effects.to_pr),
    ("0000 i 010 iiiiiiiiiiiiiiiiiiiiiiiiiii qqqqqq", effects.to_rotating),
    ("0000 - 000 101010 aaaaaaa sssssss ------- qqqqqq", effects.to_ar),
    ("0000 i 000 001010 aaaaaaa iiiiiii ------- qqqqqq", effects.to_ar),
    ("0000 - 000 110010 aaaaaaa ------- ddddddd qqqqqq", effects.from_ar),
    ("0101 b 00 a vvvvvv ttttttt pppppp 0 c uuuuuu qqqqqq", effects.tbit),
)  # fmt: skip
F: Known = (
    ("0000 - -- 0 000001 --------------------- qqqqqq", effects.nothing),
    ("1110 1 00 rrrrrrr ttttttt sssssss ddddddd qqqqqq", partial(effects.xma, False)),
    ("1110 1 10 rrrrrrr ttttttt sssssss ddddddd qqqqqq", partial(effects.xma, True)),
)
B: Known = (
    ("0010 - - -- 000000 --------------------- qqqqqq", effects.nothing),  # nop.b
    ("0010 - - -- 01000- --------------------- qqqqqq", effects.nothing),  # brp, brp.ret
    ("0111 - - -- --------------------------- qqqqqq", effects.nothing),  # brp
    ("0000 - - -- 000010 --------------------- qqqqqq", effects.cover),
    ("0000 - - -- 000100 --------------------- qqqqqq", partial(effects.clrrrb, True)),
    ("0000 - - -- 000101 --------------------- qqqqqq", partial(effects.clrrrb, False)),
)
X: Known = (
    NOP_AND_HINT,
    ("0110 i jjjjjjjjj kkkkk c 0 mmmmmmm ddddddd qqqqqq", effects.movl),
)
EFFECTS = {"M": Effects(M), "I": Effects(I), "F": Effects(F), "B": Effects(B), "X": Effects(X)}
