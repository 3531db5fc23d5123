"""i386 and x86-64 as stubs of GDB's protocol show them."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts

PARTS = {
    "rflags": RegisterPart("eflags"),
    "fpcw": RegisterPart("fctrl"),
    "fpsw": RegisterPart("fstat"),
    "fptag": RegisterPart("ftag"),
}
X86 = StubFacts(parts=PARTS, takes_pc=True)
ROWS = {"x86_64": X86, "i386": X86}
