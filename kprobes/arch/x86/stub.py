"""i386 and x86-64 as stubs of GDB's protocol show them."""

from __future__ import annotations

from .._stub import Part, StubFacts

PARTS = {"rflags": Part("eflags"), "fpcw": Part("fctrl"), "fpsw": Part("fstat"), "fptag": Part("ftag")}
X86 = StubFacts(parts=PARTS, takes_pc=True)
ROWS = {"x86_64": X86, "i386": X86}
