"""SPARC as stubs of GDB's protocol show it.

QEMU's stubs describe no registers, and have GDB's for this target.
"""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts, file_of, row_of

NOP = bytes.fromhex("01000000")
GENERAL = f"0 {row_of('g', 0, 7)} {row_of('o', 0, 7)} {row_of('l', 0, 7)} {row_of('i', 0, 7)}"
ROWS = {
    "sparc": StubFacts(
        file=file_of(4, GENERAL, f"4 {row_of('f', 0, 31)}", "4 y psr wim tbr pc npc fsr csr"),
        parts={"icc": RegisterPart("psr", 20, 4)}, nop=NOP, qemu_cpu="LEON3"),  # has casa
    "sparc64": StubFacts(
        file=file_of(8, GENERAL, f"4 {row_of('f', 0, 31)}", f"8 {row_of('f', 32, 62, 2)}",
                     "8 pc npc state fsr fprs y"),
        parts={"ccr": RegisterPart("state", 32, 8)}, nop=NOP),
}
