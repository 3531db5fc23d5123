"""Finds in text the instructions that others execute in their own place (EXECUTE).

It looks for EXECUTE RELATIVE LONG, and for EXECUTE of an address loaded right before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._base import signed

RELATIVE = re.compile(rb"(?=([\xc0\xc6])([\x00\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0])(.{4}))",
                      re.DOTALL)
NEAR = 64  # bytes from LARL to the EX that uses it


def executions(text: bytes, addr: int) -> Iterator[tuple[int, int]]:
    """Yield (address of an EXECUTE, address of the instruction that it executes) for all in a text.

    EXRL, and EX without displacement soon after LARL of its register (`Executing.all`).

    Args:
        text: bytes of code.
        addr: address of the first.
    """
    for match in RELATIVE.finditer(text):
        at = match.start()
        target = addr + at + 2 * signed(int.from_bytes(match[3], "big"), 32)
        if at & 1:
            continue
        if match[1] == b"\xc6":
            yield addr + at, target
        else:
            register = match[2][0] >> 4
            for place in range(at + 6, min(at + 6 + NEAR, len(text) - 3), 2):
                first = text[place]
                x = text[place + 1] & 15
                b = text[place + 2] >> 4
                d = text[place + 2 : place + 4]
                if (
                    first == 0x44
                    and register in (x, b)
                    and 0 in (x, b)
                    and not int.from_bytes(d, "big") & 0xFFF
                ):
                    yield addr + place, target
