"""Paths that meet are told apart wherever that matters: what holds on the first one is not believed of the second.

Each program comes to `join` by two ways, and only one of them is safe from there on; it is walked first, or second.
"""

from __future__ import annotations

import pytest
from verifier.asm import code

from kprobes import ProgramError
from kprobes.programs.verifier import verify

pytestmark = pytest.mark.quick

VALUE = "lddw r9, map[3].value+0"
BYTE = "add64 r9, {0}; ldxb r0, [r9+0]"
LOOKUP = "stw [r10-4], 5; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1"
RESERVE = "lddw r1, map[2]; mov64 r2, 16; mov64 r3, 0; call 131"
SUBMIT = "mov64 r1, {0}; mov64 r2, 0; call 132"

#: name -> (before, the safe way, the other way, behind)
MERGED = {
    "constant index": (VALUE, "mov64 r8, 5", "mov64 r8, 64", BYTE.format("r8")),
    "index": (VALUE, "ldxdw r8, [r6+0]; and64 r8, 63", "ldxdw r8, [r6+0]; and64 r8, 127", BYTE.format("r8")),
    "index with known bits": (VALUE, "ldxdw r8, [r6+0]; and64 r8, 48", "ldxdw r8, [r6+0]; and64 r8, 49",
                              "add64 r9, r8; mov64 r1, 1; lock add64 [r9+0], r1"),
    "index as signed": (VALUE, "ldxdw r8, [r6+0]; and64 r8, 31", "ldxdw r8, [r6+0]; and64 r8, 31; sub64 r8, 1",
                        BYTE.format("r8")),
    "lower half": (VALUE, "ldxdw r8, [r6+0]; jgt32 r8, 63, out", "ldxdw r8, [r6+0]; jgt32 r8, 64, out",
                   "mov32 r8, r8; " + BYTE.format("r8")),
    "a decided branch": (VALUE, "mov64 r8, 0", "mov64 r8, 1", "jeq r8, 0, out; ldxb r0, [r9+64]"),
    "a decided branch on bounds": (VALUE, "ldxdw r8, [r6+0]; and64 r8, 7", "ldxdw r8, [r6+0]; and64 r8, 15",
                                   "jlt r8, 8, out; ldxb r0, [r9+64]"),
    "a decided branch on bits": (VALUE, "ldxdw r8, [r6+0]; and64 r8, 6", "ldxdw r8, [r6+0]; and64 r8, 7",
                                 "jset r8, 1, bad; ja out; bad: ldxb r0, [r9+64]"),
    "a decided comparison of registers": (VALUE, "mov64 r7, 3; mov64 r8, 3", "mov64 r7, 3; mov64 r8, 4",
                                          "jeq r7, r8, out; ldxb r0, [r9+64]"),
    "a decided comparison of pointers": (VALUE, "mov64 r8, 5", "mov64 r8, 7",
                                         "mov64 r3, r9; add64 r3, r8; mov64 r4, r9; add64 r4, 5; jeq r3, r4, out; "
                                                                          "ldxb r0, [r9+64]"),
    "a decided comparison with NULL": (VALUE, "mov64 r8, 5", "ldxdw r8, [r6+0]",
                                       "mov64 r3, r9; add64 r3, r8; jne r3, 0, out; ldxb r0, [r9+64]"),
    "NULL in a register": (VALUE, "mov64 r8, 0", "mov64 r8, 7", LOOKUP + "; jeq r0, r8, out; ldxb r0, [r0+0]"),
    "a bound in a register": (VALUE, "mov64 r7, 64", "mov64 r7, 65",
                              "ldxdw r8, [r6+0]; jge r8, r7, out; " + BYTE.format("r8")),
    "a bound in a register, of a copy": (VALUE, "mov64 r7, 64", "mov64 r7, 65",
                                         "ldxdw r8, [r6+0]; mov64 r3, r8; jge r3, r7, out; " + BYTE.format("r8")),
    "a copy": (VALUE, "ldxdw r8, [r6+0]; mov64 r7, r8", "ldxdw r8, [r6+0]; ldxdw r7, [r6+8]",
               "jgt r7, 63, out; " + BYTE.format("r8")),
    "a copy, narrower": (VALUE, "ldxb r8, [r6+0]; mov32 r7, r8", "ldxb r8, [r6+0]; ldxb r7, [r6+8]",
                         "jgt32 r7, 63, out; " + BYTE.format("r8")),
    "a sum": (VALUE, "ldxdw r8, [r6+0]; mov64 r7, r8; sub64 r7, 4", "ldxdw r8, [r6+0]; mov64 r7, r8; sub64 r7, 5",
              "jgt r7, 59, out; " + BYTE.format("r8")),
    "a sum with something else": (VALUE, "ldxdw r8, [r6+0]; mov64 r7, r8; add64 r7, 4",
                                  "ldxdw r8, [r6+0]; ldxdw r7, [r6+8]; add64 r7, 4",
                                  "jgt r7, 67, out; jlt r7, 4, out; " + BYTE.format("r8")),
    "a spilled copy": (VALUE, "ldxdw r8, [r6+0]; stxdw [r10-8], r8",
                       "ldxdw r8, [r6+0]; ldxdw r7, [r6+8]; stxdw [r10-8], r7",
                       "jgt r8, 63, out; ldxdw r7, [r10-8]; " + BYTE.format("r7")),
    "a spilled number": (VALUE, "stdw [r10-8], 5", "stdw [r10-8], 64", "ldxdw r8, [r10-8]; " + BYTE.format("r8")),
    "half of a spilled number": (VALUE + "; stdw [r10-8], 0", "stw [r10-8], 5", "stw [r10-8], 64",
                                 "ldxw r8, [r10-8]; " + BYTE.format("r8")),
    "a byte of a spilled number": (VALUE + "; stdw [r10-8], 0", "stb [r10-8], 5", "stb [r10-8], 64",
                                   "ldxdw r8, [r10-8]; " + BYTE.format("r8")),
    "a number stored through a pointer": (VALUE + "; mov64 r7, r10; stdw [r10-8], 0", "mov64 r8, 5; stxdw [r7-8], r8",
                                          "mov64 r8, 64; stxdw [r7-8], r8", "ldxdw r8, [r10-8]; " + BYTE.format("r8")),
    "a number to be stored through a pointer": (VALUE + "; mov64 r7, r10; stdw [r10-8], 0", "mov64 r8, 5",
                                                "mov64 r8, 64",
                                                "stxdw [r7-8], r8; ldxdw r8, [r10-8]; " + BYTE.format("r8")),
    "a spilled pointer": ("stdw [r10-8], 0", "stxdw [r10-8], r10; stdw [r10-16], 0",
                          "stdw [r10-8], 7; stdw [r10-16], 0", "ldxdw r8, [r10-8]; ldxdw r0, [r8-16]"),
    "a spilled pointer, partly overwritten": ("stdw [r10-8], 0", "stxdw [r10-8], r10; stdw [r10-16], 0",
                                              "stxdw [r10-8], r10; stb [r10-8], 0; stdw [r10-16], 0",
                                              "ldxdw r8, [r10-8]; ldxdw r0, [r8-16]"),
    "uninitialised register": ("mov64 r7, 0", "mov64 r8, 0", "mov64 r7, 0", "mov64 r0, r8"),
    "uninitialised stack": ("mov64 r7, 0", "stdw [r10-8], 0", "mov64 r7, 0", "ldxdw r0, [r10-8]"),
    "uninitialised stack, for a helper": ("mov64 r7, 0", "stdw [r10-8], 0", "stdw [r10-16], 0",
                                          "mov64 r2, r10; add64 r2, -8; lddw r1, map[1]; call 1"),
    "pointer in a key": ("mov64 r7, 0", "stdw [r10-8], 0", "stxdw [r10-8], r10",
                         "mov64 r2, r10; add64 r2, -8; lddw r1, map[1]; call 1"),
    "null check": (LOOKUP + "; mov64 r8, r0", "jeq r8, 0, out", "mov64 r7, 0", "ldxb r0, [r8+0]"),
    "null check of a copy": (LOOKUP + "; mov64 r8, r0; " + LOOKUP, "mov64 r8, r0", "mov64 r7, 0",
                             "jeq r0, 0, out; ldxb r0, [r8+0]"),
    "size of the region": (LOOKUP + "; jeq r0, 0, out; mov64 r8, r0", "lddw r8, map[3].value+0", "mov64 r7, 0",
                           "ldxb r0, [r8+8]"),
    "kind of the region": (LOOKUP + "; jeq r0, 0, out; mov64 r8, r0", "mov64 r7, 0", "lddw r8, map[4].value+0",
                           "stb [r8+0], 1"),
    "difference of pointers": (LOOKUP + "; jeq r0, 0, out; mov64 r7, r0; mov64 r8, r0", "mov64 r8, r7", "mov64 r8, r9",
                               "sub64 r8, r7; lddw r9, map[3].value+0; "
                               + BYTE.format("r8")),
    "record given back": (RESERVE + "; jeq r0, 0, out; mov64 r8, r0", SUBMIT.format("r8"), "mov64 r7, 0",
                          "mov64 r0, 0"),
    "record given back, and used": (RESERVE + "; jeq r0, 0, out; mov64 r8, r0", "mov64 r7, 0", SUBMIT.format("r8"),
                                    SUBMIT.format("r8")),
    "which of two records": (RESERVE + "; jeq r0, 0, out; mov64 r8, r0; " + RESERVE
                             + "; jeq r0, 0, one; mov64 r9, r0; mov64 r7, r9",
                             "mov64 r7, r9", "mov64 r7, r8",
                             SUBMIT.format("r7") + "; " + SUBMIT.format("r8") + "; ja out; one: "
                             + SUBMIT.format("r8")),
    "context": ("mov64 r8, r6", "mov64 r7, 0", "add64 r8, 8", "mov64 r1, r8; mov64 r2, 0; call 58"),
    "size": ("stdw [r10-8], 0; stdw [r10-16], 0", "mov64 r8, 16", "mov64 r8, 17",
             "mov64 r1, r10; add64 r1, -16; mov64 r2, r8; mov64 r3, 0; call 113"),
    "constant size": ("mov64 r7, 0", "mov64 r8, 16", "mov64 r8, 8",
                      "lddw r1, map[2]; mov64 r2, r8; mov64 r3, 0; call 131; jeq r0, 0, out; mov64 r8, r0; "
                      "stdw [r8+8], 0; " + SUBMIT.format("r8")),
    "a caller's register": (VALUE, "mov64 r8, 5", "mov64 r8, 64", "call local f; " + BYTE.format("r8")),
    "a caller's register, where ways meet in the callee": (VALUE, "mov64 r8, 5", "mov64 r8, 64",
                                                           "mov64 r1, 5; call local g; " + BYTE.format("r8")),
    "a caller's stack": (VALUE, "stdw [r10-8], 5", "stdw [r10-8], 64",
                         "mov64 r1, 5; call local g; ldxdw r8, [r10-8]; " + BYTE.format("r8")),
    "an argument": (VALUE, "mov64 r8, 5", "mov64 r8, 64",
                    "mov64 r1, r8; call local f; mov64 r8, r0; " + BYTE.format("r8")),
    "an argument behind a pointer": (VALUE, "stdw [r10-8], 5", "stdw [r10-8], 64",
                                     "mov64 r1, r10; call local h; mov64 r8, r0; " + BYTE.format("r8")),
    "a counter": (VALUE, "mov64 r8, 0", "mov64 r8, 1",
                  "mov64 r7, 0; loop: add64 r8, 1; add64 r7, 1; jne r7, 63, loop; " + BYTE.format("r8")),
}
FUNCTIONS = {"f": "f: mov64 r0, r1; exit",
             "g": "g: mov64 r0, 1; mov64 r2, r1; mov64 r3, r2; jeq r3, 0, k; mov64 r0, 0; mov64 r1, 0; mov64 r2, 0; "
                  "k: exit",
             "h": "h: ldxdw r0, [r1-8]; exit"}


def program(name: str, first: str, second: str, jump: str) -> str:
    before, _, _, behind = MERGED[name]
    needed = [text for f, text in FUNCTIONS.items() if f"call local {f}" in behind]
    if "call local f" in behind and name == "a caller's register":
        behind = behind.replace("call local f", "mov64 r1, 5; call local f")
    return "\n".join([f"mov64 r6, r1; {before}; ldxdw r3, [r6+16]", f"{jump} r3, 0, other", first, "ja join",
                      f"other: {second}",
                      f"join: {behind}", "mov64 r0, 0; exit",
                      "out: mov64 r0, 0; exit" if ", out" in "".join(MERGED[name]) or "ja out" in behind
                      else "", *needed])


@pytest.mark.parametrize("jump", ["jeq", "jne"])
@pytest.mark.parametrize("name", MERGED)
def test_only_the_safe_way_is_accepted(name: str, jump: str) -> None:
    _, safe, other, _ = MERGED[name]
    verify(code(program(name, safe, safe, jump)))
    for ways in ((other, other), (safe, other), (other, safe)):
        with pytest.raises(ProgramError):
            verify(code(program(name, *ways, jump)))
