"""Fields: where the bits of a relocation's value go in memory, and whether they fit.

A field's read(memory, p) returns the value at run address `p`. write(x, value) stores a value at
the place of the relocation `x` (x.p), and raises ImageError where it does not fit. The notation of
fields and checks is in _types.
"""

from __future__ import annotations

import re

from attrs import frozen

from ._sites import NEARER, ImageMemory, RelocationField, RelocationSite, signed
from ._types import AARCH64


@frozen
class FieldPicture:
    """A field of one unit of memory: a byte, a word, an instruction.

    Attributes:
        unit: the letter of _types' notation: its size.
        parts: (high, low, at): bits high..low of the value stand at bit `at` of the unit.
        check: which values fit, a letter or two of _types' notation.
        bits: of an address.
        scale: an addend in place is shifted left by so many bits.
        insn_little: units "i" are little-endian, whatever the file's order.
    """

    unit: str
    parts: tuple[tuple[int, int, int], ...]
    check: str
    bits: int
    scale: int = 0
    insn_little: bool = False

    @property
    def top(self) -> int:
        """Number of value bits that are kept or shifted out."""
        return max(high for high, _, _ in self.parts) + 1

    def _little(self) -> bool | None:
        """Return True where the unit is little-endian in any file; None: it has the file's byte
        order.
        """
        return True if self.insn_little and self.unit == "i" else None

    def _load(self, memory: ImageMemory, p: int) -> int:
        """Return the unit's bits at run address `p`; of "t" (two halfwords) the first one is the
        high half.
        """
        if self.unit == "t":
            return memory.read(p, 2) << 16 | memory.read(p + 2, 2)
        return memory.read(p, {"b": 1, "h": 2, "d": 8}.get(self.unit, 4), self._little())

    def _store(self, memory: ImageMemory, p: int, unit: int) -> None:
        """Write the unit's bits at run address `p`; of "t" the high half goes first."""
        if self.unit == "t":
            memory.write(p, 2, unit >> 16)
            memory.write(p + 2, 2, unit)
        else:
            memory.write(p, {"b": 1, "h": 2, "d": 8}.get(self.unit, 4), unit, self._little())

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return the signed value that stands in the field, shifted right by `scale`.

        Args:
            memory: of the image.
            p: run address of the unit.
        """
        unit = self._load(memory, p)
        value = sum((unit >> at & (1 << high - low + 1) - 1) << low for high, low, at in self.parts)
        return signed(value, self.top) >> self.scale

    def write(self, x: RelocationSite, value: int) -> None:
        """Put a value's bits into the unit, and leave the unit's other bits alone.

        Args:
            x: the relocation; x.p is the unit's address.
            value: the relocation's value.

        Raises:
            ImageError: it does not fit.
        """
        self._refuse_misfit(x, value)
        unit = self._load(x.binder.memory, x.p)
        for high, low, at in self.parts:
            mask = (1 << high - low + 1) - 1
            unit = unit & ~(mask << at) | (value >> low & mask) << at
        self._store(x.binder.memory, x.p, unit)

    def _refuse_misfit(self, x: RelocationSite, value: int) -> None:
        """Check that a value fits into the field.

        Args:
            x: the relocation.
            value: its value.

        Raises:
            ImageError: the value has bits below the field, or is out of its range.
        """
        lost = (1 << min(low for _, low, _ in self.parts)) - 1
        if ("a" in self.check or "c" in self.check) and value & lost:
            raise x.refuse(f"is not a multiple of {lost + 1}", "its target must be aligned")
        if not self._in_range(x, signed(value, self.bits)):
            raise x.refuse(
                f"is out of reach: {signed(value, self.bits):#x} does not fit in {self.top} bits",
                NEARER,
            )

    def _in_range(self, x: RelocationSite, value: int) -> bool:
        """Return True where the field has enough bits for a value, by `check`: as a signed number
        (s, c), an unsigned one (u), either (x), in MIPS's region (r), or any (a, -).

        Args:
            x: the relocation: MIPS's regions depend on its place.
            value: signed.
        """
        if "r" in self.check:
            return (value ^ x.p + 4) & (1 << self.bits) - 1 < 1 << self.top
        lowest = -1 << self.top - 1 if self.check[0] in "scx" else 0
        end = 1 << self.top - (self.check[0] in "sc")
        return self.top >= self.bits or self.check in "-a" or lowest <= value < end


def _within(value: int, bits: int) -> bool:
    """Return True where the low 32 bits of a value, as a signed number, fit into `bits` bits."""
    return -1 << bits - 1 <= signed(value, 32) < 1 << bits - 1


class ArmBranch:
    """A32 BL, BLX, B: imm24. A BL to Thumb code becomes BLX and the other way round; a B to Thumb
    code needs a veneer.
    """

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return the distance of the branch, in bytes."""
        return signed(memory.read(p, 4) << 2, 26)

    def write(self, x: RelocationSite, value: int) -> None:
        """Store a branch's distance, and exchange BL and BLX as the target's mode asks.

        A target that is too far away, or Thumb code behind a B or a conditional BL, is reached by a
        veneer, made here.

        Args:
            x: the relocation at the branch.
            value: bytes from the branch's pc to the target; bit 0: Thumb.

        Raises:
            ImageError: the veneer is beyond 32 MiB, too, or the file is linked and has no room for
                veneers.
        """
        word = x.binder.memory.read(x.p, 4)
        links = word >> 24 in (0xEB, 0xFA, 0xFB)
        if (value & 1 and not links) or not _within(value, 26):
            value = x.binder.veneer(x.thumb_sum + 8, "arm") - 8 - x.p
        if not _within(value, 26):
            raise x.refuse("is out of reach (32 MiB)", NEARER)
        if links:
            word = 0xFA000000 | (value & 2) << 23 if value & 1 else 0xEB000000
        x.binder.memory.write(x.p, 4, word & 0xFF000000 | value >> 2 & 0xFFFFFF)


class ThumbBranch:
    """T32 BL, BLX, B.W: S:I1:I2:imm10:imm11 with J = NOT(I XOR S). A BL to ARM code becomes BLX; a
    B.W to it needs a veneer.
    """

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return the distance of the branch, in bytes."""
        first, second = memory.read(p, 2), memory.read(p + 2, 2)
        sign = first >> 10 & 1
        i1, i2 = (second >> 13 ^ sign ^ 1) & 1, (second >> 11 ^ sign ^ 1) & 1
        return signed(
            sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1, 25
        )

    def write(self, x: RelocationSite, value: int) -> None:
        """Store a branch's distance, and exchange BL and BLX as the target's mode asks.

        A target that is too far away, or ARM code behind a B.W, is reached by a veneer, made here.

        Args:
            x: the relocation at the branch.
            value: bytes from the branch's pc to the target; bit 0: Thumb.

        Raises:
            ImageError: the veneer is beyond 16 MiB, too, or the file is linked and has no room for
                veneers.
        """
        memory, second = x.binder.memory, x.binder.memory.read(x.p + 2, 2)
        if (not second & 0x4000 and not value & 1) or not _within(value, 25):
            value = x.binder.veneer(x.thumb_sum + 4, "thumb") + 1 - 4 - x.p
        thumb = value & 1
        # BLX counts from Align(PC, 4)
        value = signed(value - 1 if thumb else value + (x.p & 2), 32)
        if not _within(value, 25):
            raise x.refuse("is out of reach (16 MiB)", NEARER)
        sign = value >> 24 & 1
        j1, j2 = (value >> 23 ^ sign ^ 1) & 1, (value >> 22 ^ sign ^ 1) & 1
        memory.write(x.p, 2, 0xF000 | sign << 10 | value >> 12 & 0x3FF)
        memory.write(
            x.p + 2, 2, second & 0xC000 | thumb << 12 | j1 << 13 | j2 << 11 | value >> 1 & 0x7FF
        )


class Uleb128:
    """A number in groups of 7 bits, the lowest first (ULEB128), that keeps its length."""

    def _length(self, memory: ImageMemory, p: int) -> int:
        """Return the bytes of the number at run address `p`, at most 10."""
        return next((n + 1 for n in range(10) if not memory.read(p + n, 1) & 0x80), 10)

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return the number at run address `p`."""
        return sum((memory.read(p + n, 1) & 0x7F) << 7 * n for n in range(self._length(memory, p)))

    def write(self, x: RelocationSite, value: int) -> None:
        """Store the value in as many groups as the number has now; higher bits are lost."""
        length = self._length(x.binder.memory, x.p)
        for n in range(length):
            x.binder.memory.write(
                x.p + n, 1, value >> 7 * n & 0x7F | (0x80 if n + 1 < length else 0)
            )


@frozen
class SparcPlt:
    """A PLT entry of SPARC, which is code: sethi %hi(S), %g1; jmpl %g1 + %lo(S), %g0.

    For addresses of more than 32 bits it is V9's six instructions and a nop.

    Attributes:
        bits: of an address.
    """

    bits: int

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return 0: no addend stands in a PLT entry."""
        return 0

    def write(self, x: RelocationSite, value: int) -> None:
        """Write the instructions that jump to an address over the PLT entry.

        They are three, or seven where the address has more than 32 bits.

        Args:
            x: the relocation at the PLT entry.
            value: the address; it is cut to `bits`.
        """
        value &= (1 << self.bits) - 1
        low = (0x03000000 | value >> 10 & 0x3FFFFF, 0x81C06000 | value & 0x3FF, 0x01000000)
        high = (
            0x03000000 | value >> 42,
            0x0B000000 | value >> 10 & 0x3FFFFF,
            0x82106000 | value >> 32 & 0x3FF,
            0x83287020,
            0x82104005,
            0x81C06000 | value & 0x3FF,
            0x01000000,
        )
        for n, word in enumerate(high if value >> 32 else low):
            x.binder.memory.write(x.p + 4 * n, 4, word)


_PICTURE = re.compile(r"([bhwdit])([\d:@,]+)(?:/(\d+))?")


def field_of(text: str, check: str, bits: int, machine: int) -> RelocationField:
    """Return the field of a row of _types.

    Args:
        text: the field in the row, such as "w25:2@2".
        check: the check in the row.
        bits: of an address.
        machine: e_machine.
    """
    special: dict[str, RelocationField] = {
        "a32": ArmBranch(),
        "t32": ThumbBranch(),
        "uleb": Uleb128(),
        "plt": SparcPlt(bits),
    }
    if text in special:
        return special[text]
    text = {"n": "d63:0" if bits == 64 else "w31:0", "-": "b7:0"}.get(text, text)
    found = _PICTURE.fullmatch(text)
    assert found, text
    unit, picture, scale = found.groups()
    parts = [re.split("[:@]", part) for part in picture.split(",")]
    places = tuple((int(high), int(low), int(at[0]) if at else 0) for high, low, *at in parts)
    return FieldPicture(unit, places, check, bits, int(scale or 0), machine == AARCH64)
