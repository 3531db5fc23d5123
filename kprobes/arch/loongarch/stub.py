"""LoongArch as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts

ROWS = {"loongarch64": StubFacts(parts={"fcsr0": RegisterPart("fcsr")}, takes_pc=True)}
