"""Builds `Walking.follow` for instruction sets that compute an address in several instructions."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from ._insn import Insn

#: `AddressUse.base` of a constant, or of an offset from pc: one that the next instructions complete, or an
#: address as it is.
HALF, WHOLE = -1, -2


@frozen
class AddressUse:
    """The effect of one instruction on a register that may hold an address.

    Attributes:
        base: number of the register that it adds to, or accesses memory through; HALF or WHOLE: it
            makes an address of its own (a constant, or from pc); None: nothing that can be
            followed.
        offset: bytes added to the register; of HALF and WHOLE the value itself.
        size: bytes that are read or written at base + offset; 0: no memory is, and the sum goes
            into `into`.
        into: numbers of the registers that get a new value.
    """

    base: int | None = None
    offset: int = 0
    size: int = 0
    into: tuple[int, ...] = ()


Follow = Callable[[Insn, dict[int, int]], tuple[int, int] | None]


def following(use_of: Callable[[Insn], AddressUse], bits: int,
              begins: Callable[[Insn], bool] = lambda _insn: True) -> Follow:
    """Build a `Walking.follow` from a function that says what each instruction does.

    Args:
        use_of: instruction -> its AddressUse.
        bits: width of an address.
        begins: instruction -> False where its AddressUse is surely neither HALF nor WHOLE; a quick test
            that most instructions fail.

    Returns:
        (instruction, register -> address, which it changes) -> (address, bytes accessed) or None.
    """
    mask = (1 << bits) - 1

    def follow(insn: Insn, known: dict[int, int]) -> tuple[int, int] | None:
        """Follow one instruction: update the addresses that registers hold. A register that gets a
        value which is not known is forgotten.

        Args:
            insn: the instruction.
            known: number of a register -> the address that it holds; is changed.

        Returns:
            (address, bytes read or written there; 0: the instruction completes the address); None:
            the instruction completes or uses no known address.
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
