"""PowerPC as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts

PPC = StubFacts(parts={f"cr{n}": RegisterPart("cr", 28 - 4 * n, 4) for n in range(8)})
ROWS = {"ppc": PPC, "ppc64": PPC, "ppc64le": PPC}
