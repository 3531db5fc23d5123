"""m68k as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import Part, StubFacts

ROWS = {"m68k": StubFacts(parts={"a6": Part("fp"), "a7": Part("sp"), "ccr": Part("ps", 0, 5),
                                 "fpcr": Part("fpcontrol"), "fpsr": Part("fpstatus")})}
