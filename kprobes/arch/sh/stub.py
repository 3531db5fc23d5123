"""SuperH as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._base import Order
from .._stub import StubFacts, file_of, row_of

NOP = 0x0009
FILE = file_of(4, f"0 {row_of('r', 0, 15)} pc pr gbr vbr mach macl sr fpul fpscr {row_of('fr', 0, 15)} ssr spc")
ROWS = {"sh4": StubFacts(file=FILE, nop=NOP.to_bytes(2, Order.LITTLE.value)),
        "sh4eb": StubFacts(file=FILE, nop=NOP.to_bytes(2, Order.BIG.value))}
