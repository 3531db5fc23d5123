"""m68k as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts

ROWS = {"m68k": StubFacts(parts={"a6": RegisterPart("fp"), "a7": RegisterPart("sp"),
                                 "ccr": RegisterPart("ps", 0, 5),
                                 "fpcr": RegisterPart("fpcontrol"),
                                 "fpsr": RegisterPart("fpstatus")})}
