"""Takes bundles apart and makes them: a template of 5 bits and three instructions of 41 bits.

"Instruction Formats", Itanium SDM volume 3, chapter 4. An address is the bundle's plus the slot, as
in PSR.ri: 0, 1 or 2. L+X is one instruction of 82 bits, in slot 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import OutOfReach
from .._base import displacement

SIZE = 16
WIDTH = 41
ONES = (1 << WIDTH) - 1
MASK = (1 << 64) - 1
#: template >> 1 -> units of the slots; bit 0 of a template is a stop at the end. What is not here
#: is reserved.
UNITS = {0: "MII", 1: "MII", 2: "MX", 4: "MMI", 5: "MMI", 6: "MFI", 7: "MMF",
         8: "MIB", 9: "MBB", 11: "BBB", 12: "MMB", 14: "MFB"}  # fmt: skip
MLX = 0x05  # with a stop at the end
NOP = {"M": 1 << 27, "I": 1 << 27, "F": 1 << 27, "X": 1 << 27, "B": 2 << 37}

Parts = tuple[int, list[int]]  #: template and three slots


def parts(bundle: bytes) -> Parts:
    """Return (template, the three instructions of 41 bits each) of a bundle's bytes."""
    value = int.from_bytes(bundle[:SIZE], "little")
    return value & 31, [value >> 5 + WIDTH * n & ONES for n in range(3)]


def join(template: int, slots: Sequence[int]) -> bytes:
    """Return the 16 bytes of a bundle.

    Args:
        template: its 5 bits.
        slots: its three instructions, of 41 bits each.
    """
    return (template | sum(word << 5 + WIDTH * n for n, word in enumerate(slots))).to_bytes(
        SIZE, "little"
    )


def units(template: int) -> str:
    """Return the execution units of a template's slots, a letter each: "MII"; "" where it is
    reserved.
    """
    return UNITS.get(template >> 1, "")


def only(bundle: bytes, kept: Sequence[int]) -> bytes:
    """Return the bundle with only some of its instructions, in their slots; others become nops.

    Its stops stay.

    Args:
        bundle: 16 bytes.
        kept: numbers of the slots that stay.
    """
    template, slots = parts(bundle)
    kinds = units(template)
    for n, unit in enumerate(kinds):
        if n not in kept:
            slots[n] = NOP[unit] if unit != "X" else 0
            if unit == "X":
                slots[2] = NOP["X"]
    return join(template, slots)


def with_slot(bundle: bytes, slot: int, word: int) -> bytes:
    """Return the bundle with another instruction (`word`, 41 bits) in a slot."""
    template, slots = parts(bundle)
    slots[slot] = word
    return join(template, slots)


def long(word: int, upper: int) -> bytes:
    """Return a bundle with an L+X instruction alone: `word` is its X part, `upper` its L part."""
    return join(MLX, (NOP["M"], upper, word))


# --- displacements count bundles, from the bundle of the instruction

# (shift, width) of its pieces behind the sign, which is bit 36
BRANCH, CHK_S, FCHKF = ((13, 20),), ((20, 13), (6, 7)), ((6, 20),)
LONG_FIELDS = 1 << 36 | 0xFFFFF << 13  # of X: i and imm20b

Pieces = tuple[tuple[int, int], ...]


def near(word: int, frm: int, to: int, pieces: Pieces) -> int:
    """Return the instruction with the displacement from `frm` to `to`, of 21 bits.

    Args:
        word: the instruction.
        frm: its address.
        to: the target's address.
        pieces: (shift, width) of the displacement's fields, the highest first.

    Raises:
        OutOfReach: the target is too far.
    """
    left = displacement(frm & -SIZE, to, 21, SIZE, MASK)
    for shift, width in reversed(pieces):
        field = (1 << width) - 1
        word, left = word & ~(field << shift) | (left & field) << shift, left >> width
    return word & ~(1 << 36) | left << 36


def far(word: int, frm: int, to: int) -> bytes:
    """Return a bundle with a BRL to `to`, whose displacement of 60 bits reaches everywhere.

    Args:
        word: the BRL's part in slot 2 (X, 41 bits), with any displacement; its part in slot 1 (L)
            is made here.
        frm: address of the bundle or of an instruction in it.
        to: the target.

    Raises:
        OutOfReach: the target is no bundle's start.
    """
    if to % SIZE:
        raise OutOfReach("a branch leads to the start of a bundle", address=to, hint="go to slot 0")
    offset = (to - (frm & -SIZE) & MASK) >> 4
    word = word & ~LONG_FIELDS | (offset >> 59) << 36 | (offset & 0xFFFFF) << 13
    return long(word, (offset >> 20 & (1 << 39) - 1) << 2)


def long_offset(word: int, upper: int) -> int:
    """Return the bytes from a BRL's bundle to its target; `word` is its X part, `upper` its
    L part.
    """
    return ((word >> 36 & 1) << 59 | (upper >> 2 & (1 << 39) - 1) << 20 | word >> 13 & 0xFFFFF) << 4
