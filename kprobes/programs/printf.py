"""The formats of trace_printk, trace_vprintk and snprintf."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from ..errors import KprobeError

#: the longest string that %s shows, in bytes
STRING: Final = 511
_FIELD: Final = re.compile(rb"%(?:(?P<percent>%)|(?P<flags>[0+ #-]*)(?P<width>\d{0,3})"
                           rb"(?:(?P<size>l{0,2})(?P<kind>[diuxX])|"
                           rb"(?P<plain>[cs])|p(?P<pointer>[ku]s|[KxsSB](?![a-z0-9]))?(?P<p>)))")
_BITS: Final = {b"": 32, b"l": 64, b"ll": 64}
#: what fields other than %s show of an address of the program's own, which is one of this
#: computer's; Linux's word
_HIDDEN: Final = b"(____ptrval____)"


@frozen
class Own:
    """An argument that is an address of the program's own. text: what lies there, as far as it may
    be looked at.
    """

    text: bytes


def expand(
    pattern: bytes, args: Sequence[int | Own], read: Callable[[int, int], bytes]
) -> bytes | None:
    """Return the text of a NUL-terminated pattern with arguments of 64 bits put in.

    None: it is no pattern, or has more fields than there are arguments. `read` reads guest memory:
    `%s` shows the string at a guest address, nothing where there is none; of an address of the
    program's own, what lies there.
    """
    text, nul, _ = pattern.partition(b"\0")
    if not nul or any(byte >= 128 for byte in text):
        return None
    out, at, left = bytearray(), 0, list(args)
    for match in _FIELD.finditer(text):
        if b"%" in text[at:match.start()]:
            return None
        out += text[at:match.start()]
        at = match.end()
        if match["percent"]:
            out += b"%"
        elif not left:
            return None
        else:
            out += _field(match, left.pop(0), read)
    return None if b"%" in text[at:] else bytes(out + text[at:])


def _field(match: re.Match[bytes], value: int | Own, read: Callable[[int, int], bytes]) -> bytes:
    flags, width = match["flags"], int(match["width"] or 0)
    text = match["plain"] == b"s" or match["pointer"] in (b"ks", b"us")
    if isinstance(value, Own):
        body = value.text.partition(b"\0")[0] if text else _HIDDEN
    elif match["plain"] == b"c":
        body = bytes([value & 0xFF])
    elif text:
        body = _string(value, read)
    elif match["kind"]:
        return _number(value, match["kind"], _BITS[match["size"]], flags, width)
    else:
        body = b"%#018x" % value if match["pointer"] in (None, b"K") else b"%#x" % value
    return body.ljust(width) if b"-" in flags else body.rjust(width)


def _number(value: int, kind: bytes, bits: int, flags: bytes, width: int) -> bytes:
    value &= (1 << bits) - 1
    if kind in b"di" and value >> bits - 1:
        value -= 1 << bits
    keep = flags if kind in b"xX" else flags.replace(b"#", b"")
    form = (
        b"%" + keep + (str(width).encode() if width else b"") + (b"d" if kind in b"diu" else kind)
    )
    return form % value


def _string(addr: int, read: Callable[[int, int], bytes]) -> bytes:
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
