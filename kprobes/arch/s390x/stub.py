"""z/Architecture as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts


def _upper(data: bytes) -> bytes:
    """Return the sixteen bytes of which QEMU's stub reads the upper half, for the eight that it
    shows.
    """
    return bytes(8) + data


ROWS = {"s390x": StubFacts(
    parts={"pc": RegisterPart("pswa"), **{f"a{n}": RegisterPart(f"acr{n}") for n in range(16)},
           **{f"v{n}_low": RegisterPart(f"v{n}l") for n in range(16)},
           **{f"v{n}_low": RegisterPart(f"v{n}", 0, 64) for n in range(16, 32)},
           **{f"f{n}": RegisterPart(f"v{n}", 64, 64) for n in range(16, 32)}},
    taken={f"v{n}l": _upper for n in range(16)}, takes_pc=True)}
