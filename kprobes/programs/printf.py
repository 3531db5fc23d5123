"""The formats of trace_printk, trace_vprintk and snprintf."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from ..errors import KprobeError
from .call import RunPlace

#: the longest string that %s shows, in bytes
STRING: Final = 511
_FIELD: Final = re.compile(
    rb"%(?:(?P<percent>%)|(?P<flags>[0+ #-]*)(?P<width>\d{0,3})"
    rb"(?:(?P<size>l{0,2})(?P<kind>[diuxX])|"
    rb"(?P<plain>[cs])|p(?P<pointer>[ku]s|[iI][46]|[KxsSB](?![a-z0-9]))?"
    rb"(?P<p>)))"
)
_BITS: Final = {b"": 32, b"l": 64, b"ll": 64}
#: what fields other than %s show of an address of the program's own, which is one of this
#: computer's; Linux's word
_HIDDEN: Final = b"(____ptrval____)"


@frozen
class Own:
    """An argument that is an address in the program's own memory, not in the guest's.

    Attributes:
        text: the bytes at that address, as far as the program may read them.
    """

    text: bytes


def expand(pattern: bytes, args: Sequence[int | Own], place: RunPlace) -> bytes | None:
    """Format a text as a kernel's printf does: put arguments into the fields of a pattern.

    `%s` shows the string at a guest address, nothing where none is mapped; for an Own, its bytes.
    Other fields but %pI4 and the like hide an Own's address (_HIDDEN).
    `%pI4` and `%pI6` show the Internet address that an argument points at. `%pS`, `%ps` and `%pB`
    show the guest's symbol that covers an address.

    Args:
        pattern: the format, which ends with a NUL.
        args: its arguments, in the order of its fields: numbers of 64 bits, or Own for addresses
            of the program's own memory.
        place: where the program runs; memory and symbols of its guest are shown.

    Returns:
        The text, without a NUL; None: the pattern is no format, or has more fields than there are
        arguments.
    """
    text, nul, _ = pattern.partition(b"\0")
    if not nul or any(byte >= 128 for byte in text):
        return None
    out = bytearray()
    at = 0
    left = list(args)
    for match in _FIELD.finditer(text):
        if b"%" in text[at : match.start()]:
            return None
        out += text[at : match.start()]
        at = match.end()
        if match["percent"]:
            out += b"%"
        elif not left:
            return None
        else:
            out += _field(match, left.pop(0), place)
    return None if b"%" in text[at:] else bytes(out + text[at:])


def _field(match: re.Match[bytes], value: int | Own, place: RunPlace) -> bytes:
    """Return the text of one field of a format, padded to its width.

    Args:
        match: a match of _FIELD in the format: the field.
        value: the field's argument.
        place: where the program runs; memory and symbols of its guest are shown.
    """
    flags = match["flags"]
    width = int(match["width"] or 0)
    text = match["plain"] == b"s" or match["pointer"] in (b"ks", b"us")
    pointer = match["pointer"] or b""
    if pointer[:1] in (b"i", b"I"):
        body = _internet(value, pointer, place)
    elif isinstance(value, Own):
        body = value.text.partition(b"\0")[0] if text else _HIDDEN
    elif match["plain"] == b"c":
        body = bytes([value & 0xFF])
    elif text:
        body = _string(value, place.read)
    elif match["kind"]:
        return _number(value, match["kind"], _BITS[match["size"]], flags, width)
    elif pointer in (b"S", b"s", b"B"):
        body = _symbol(value, pointer, place)
    else:
        body = b"%#x" % value if pointer == b"x" else b"%#018x" % value
    return body.ljust(width) if b"-" in flags else body.rjust(width)


def _internet(value: int | Own, pointer: bytes, place: RunPlace) -> bytes:
    """Return the text of the Internet address that a pointer points at; zeros where nothing is.

    Args:
        value: the pointer: a guest address, or Own.
        pointer: the letters behind %p: I4 and i4 for 4 bytes, the latter with leading zeros; I6
            and i6 for 16 bytes, the latter without colons.
        place: where the program runs; memory of its guest is read.
    """
    size = 4 if pointer[1:] == b"4" else 16
    if isinstance(value, Own):
        raw = value.text[:size]
    else:
        try:
            raw = place.read(value, size)
        except KprobeError:
            raw = b""
    raw = raw.ljust(size, b"\0")
    if size == 4:
        return b".".join((b"%d" if pointer == b"I4" else b"%03d") % byte for byte in raw)
    groups = (raw[at : at + 2].hex().encode() for at in range(0, size, 2))
    return (b":" if pointer == b"I6" else b"").join(groups)


def _symbol(value: int, pointer: bytes, place: RunPlace) -> bytes:
    """Return a guest address as symbol and offset: `name+0x4/0x48 [module]`; else in hexadecimal.

    Args:
        value: the guest address.
        pointer: the letter behind %p: S; s for the name without numbers; B for a return address,
            which may stand behind the end of the function that has called.
        place: where the program runs; symbols of its guest are shown.
    """
    back = int(pointer == b"B")
    found = place.symbol(value - back)
    if found is None:
        return b"%#x" % value
    name, offset, size, module = found
    shown = name.encode("utf-8", "surrogateescape")
    if pointer != b"s":
        shown += b"+0x%x" % (offset + back)
        shown += b"/%#x" % size if size else b""
    return shown + (b" [%s]" % module.encode("utf-8", "surrogateescape") if module else b"")


def _number(value: int, kind: bytes, bits: int, flags: bytes, width: int) -> bytes:
    """Return the text of a number as C's printf writes it.

    Args:
        value: the argument, of which the lower `bits` count.
        kind: the letter of the field: one of d, i, u, x, X.
        bits: 32 or 64.
        flags: printf's flags: some of "0+ #-".
        width: the least number of characters; 0: any.
    """
    value &= (1 << bits) - 1
    if kind in b"di" and value >> bits - 1:
        value -= 1 << bits
    keep = flags if kind in b"xX" else flags.replace(b"#", b"")
    form = (
        b"%" + keep + (str(width).encode() if width else b"") + (b"d" if kind in b"diu" else kind)
    )
    return form % value


def _string(addr: int, read: Callable[[int, int], bytes]) -> bytes:
    """Return the string at a guest address without its NUL, at most STRING bytes.

    It ends as well where memory is not mapped.

    Args:
        addr: guest address.
        read: (address, size) -> guest memory; raises KprobeError.
    """
    out = bytearray()
    try:
        while len(out) < STRING:
            got = read(addr + len(out), min(256 - (addr + len(out)) % 256, STRING - len(out)))
            piece, nul, _ = got.partition(b"\0")
            out += piece
            if nul or not got:
                break
    except KprobeError:
        pass
    return bytes(out)
