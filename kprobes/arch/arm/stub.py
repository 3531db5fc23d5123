"""Arm's 32-bit processors as stubs of GDB's protocol show them."""

from __future__ import annotations

from attrs import evolve

from .._stub import RegisterPart, StubFacts


def _reversed(data: bytes) -> bytes:
    """Return the bytes in reverse order: QEMU's stub takes them in its host's byte order."""
    return data[::-1]


# "ARM Breakpoint Kinds": 2 a 16-bit Thumb breakpoint, 3 a 32-bit one, 4 an ARM one
ARM = StubFacts(parts={"tpidruro": RegisterPart("TPIDRURO")}, kinds={2: 2, 4: 4})
ROWS = {
    "arm": ARM,
    "armeb": evolve(ARM, taken={f"d{n}": _reversed for n in range(32)}),  # QEMU reads them in the host's order
    "cortexm": StubFacts(kinds={2: 2, 4: 3}, qemu="arm"),
}
