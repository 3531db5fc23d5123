"""Alpha as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import StubFacts, file_of, row_of

FILE = f"0 {row_of('r', 0, 31)} {row_of('f', 0, 30)} fpcr pc virtual unique"
ROWS = {"alpha": StubFacts(file=file_of(8, FILE))}
