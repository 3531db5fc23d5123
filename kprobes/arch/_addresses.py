"""`Walking.follow` of instruction sets that work out an address in several instructions: what their
families share.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from ._insn import Insn

#: `Use.base` of a constant, or of an offset from pc: one that the next instructions complete, or an
#: address as it is.
HALF, WHOLE = -1, -2


@frozen
class Use:
    """The effect of an instruction on a base register.

    Attributes:
        base: the number of the register, HALF or WHOLE; None: nothing that can be followed.
        offset: what is added to the register; of HALF and WHOLE the value itself.
        size: bytes that are read or written at base + offset; 0: the sum goes to `into`.
        into: registers that get a new value.
    """

    base: int | None = None
    offset: int = 0
    size: int = 0
    into: tuple[int, ...] = ()


Follow = Callable[[Insn, dict[int, int]], tuple[int, int] | None]


def following(use_of: Callable[[Insn], Use], bits: int,
              begins: Callable[[Insn], bool] = lambda _insn: True) -> Follow:
    """`Walking.follow` from what each instruction does with a base register.

    Args:
        use_of: (instruction) -> its Use.
        bits: width of an address.
        begins: (instruction) -> False where its Use is neither HALF nor WHOLE: a quick answer, for
            most instructions.
    """
    mask = (1 << bits) - 1

    def follow(insn: Insn, known: dict[int, int]) -> tuple[int, int] | None:
        """Return (address, bytes read or written there; 0: the instruction completes it), or None;
        bring `known` up to date.

        Args:
            insn: the instruction.
            known: register -> the address that it holds.
        """
        if not known and not begins(insn):
            return None
        use, at = use_of(insn), None
        if use.base is not None and (use.base < 0 or use.base in known):
            at = known.get(use.base, 0) + use.offset & mask
        for register in use.into:
            known.pop(register, None)
        if at is None:
            return None
        if not use.size:
            known.update(dict.fromkeys(use.into, at))
        return None if use.base == HALF else (at, use.size)

    return follow
