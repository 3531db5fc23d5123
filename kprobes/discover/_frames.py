"""Unwind tables, read from guest memory: which functions they tell of.

The tables are the guest's, and may say anything: what makes no sense ends or skips an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

Read = Callable[[int, int], bytes]
_ABSOLUTE, _RELATIVE = 0x00, 0x10
_SIZES = {
    0x2: 2,
    0x3: 4,
    0x4: 8,
    0xA: 2,
    0xB: 4,
    0xC: 8,
}  # of pointers, by the low half of their encoding
_SIGNED = 8


@frozen
class _Encoding:
    """How a table writes pointers (DW_EH_PE).

    Attributes:
        size: bytes of a pointer.
        relative: True where a pointer is a distance from its own address.
        signed: True where a pointer is a signed number.
    """

    size: int
    relative: bool
    signed: bool


def frame_ranges(table: bytes, address: int, bits: int, order: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) addresses of the code that each entry of an `.eh_frame` is for.

    Entries without code, and those of a CIE that is not known, are left out. Nothing more is
    yielded behind an entry that is cut off or has a size of 64 bits.

    Args:
        table: the section's bytes.
        address: guest address of the section.
        bits: bits of a pointer of the guest's.
        order: the guest's byte order, "little" or "big".
    """
    encodings: dict[int, _Encoding | None] = {}
    mask, at = (1 << bits) - 1, 0

    def number(place: int, size: int, signed: bool = False) -> int:
        return int.from_bytes(table[place : place + size], order, signed=signed)  # type: ignore[arg-type]

    while at + 8 <= len(table):
        size = number(at, 4)
        if size in (0, 0xFFFFFFFF):
            if size == 0:
                at += 4
                continue
            return
        body, end = at + 4, at + 4 + size
        if end > len(table):
            return
        common = number(body, 4)
        if common == 0:
            encodings[at] = _encoding(table[body + 4 : end], bits)
        elif (
            encoding := encodings.get(body - common)
        ) is not None and body + 4 + 2 * encoding.size <= end:
            start = number(body + 4, encoding.size, encoding.signed)
            length = number(body + 4 + encoding.size, encoding.size)
            if encoding.relative:
                start += address + body + 4
            if length:
                yield start & mask, (start & mask) + length
        at = end


def _encoding(common: bytes, bits: int) -> _Encoding | None:
    """Return how the entries of a CIE, the common part of unwind entries, write pointers.

    Args:
        common: the CIE's bytes from its version on.
        bits: bits of a pointer of the guest's.

    Returns:
        What the augmentation's letter R says; without one, unsigned absolute pointers of `bits`.
        None: the CIE has an augmentation or encoding that is not known.
    """
    plain = _Encoding(bits // 8, False, False)
    text, _, rest = common[1:].partition(b"\0")
    if text == b"eh":
        rest, text = rest[bits // 8 :], b""
    if not text.startswith(b"z"):
        return plain if not text else None
    at = 0
    # Alignment factors and the return address's register, which version 1 has as a byte: that reads
    # alike.
    for _ in range(3):
        at = _leb128(rest, at)
    at = _leb128(rest, at)
    for letter in text[1:].decode("latin-1"):
        if letter == "R":
            code = rest[at] if at < len(rest) else 0xFF
            size = bits // 8 if code & 0xF == 0 else _SIZES.get(code & 0xF, 0)
            if code & 0x70 not in (_ABSOLUTE, _RELATIVE) or not size:
                return None
            return _Encoding(size, code & 0x70 == _RELATIVE, bool(code & _SIGNED))
        if letter == "P":
            code = rest[at] if at < len(rest) else 0xFF
            at += 1 + (bits // 8 if code & 0xF == 0 else _SIZES.get(code & 0xF, 0))
        elif letter == "L":
            at += 1
        elif letter not in "SB":
            return None
    return plain


def _leb128(data: bytes, at: int) -> int:
    """Pass over a LEB128 number: return the offset of the byte behind it.

    Args:
        data: the bytes that have the number.
        at: offset of the number's first byte.
    """
    while at < len(data) and data[at] & 0x80:
        at += 1
    return at + 1


def index_starts(table: bytes, address: int, order: str) -> Iterator[int]:
    """Yield the addresses of functions in an `.ARM.exidx`.

    Not all functions have an entry there: neighbours that unwind alike share one.

    Args:
        table: the section's bytes.
        address: guest address of the section.
        order: the guest's byte order, "little" or "big".
    """
    for at in range(0, len(table) - 7, 8):
        word = int.from_bytes(table[at : at + 4], order)  # type: ignore[arg-type]
        yield address + at + (word & 0x7FFFFFFF) - (word & 0x40000000) * 2 & 0xFFFFFFFF
