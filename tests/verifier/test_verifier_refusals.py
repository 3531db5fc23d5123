"""Each rule of the verifier: a program that breaks it, and what is said. Beside many, the program that keeps it."""

from __future__ import annotations

import pytest
from attrs import evolve
from verifier.asm import assemble, code

from kprobes import ProgramError
from kprobes.programs import isa
from kprobes.programs.code import CodeLine
from kprobes.programs.verifier import explore, path, verify

pytestmark = pytest.mark.quick

LOOKUP = "stw [r10-4], 5; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1; "
HASH = "stdw [r10-8], 5; mov64 r2, r10; add64 r2, -8; lddw r1, map[1]; call 1; jeq r0, 0, out; "
RESERVE = "lddw r1, map[2]; mov64 r2, 16; mov64 r3, 0; call 131; "
END = "out: mov64 r0, 0; exit"
BUFFER = "mov64 r1, r10; add64 r1, -16; "

REFUSED = {
    # shape
    "falls off the end": ("mov64 r0, 0", 0, "runs past the program's end"),
    "jumps outside": ("mov64 r0, 0; ja +5; exit", 1, "leads to outside the program (7)"),
    "jumps before": ("mov64 r0, 0; jeq r0, 0, -9; exit", 1, "leads to outside the program (-7)"),
    "jumps into lddw": ("mov64 r0, 0; jeq r0, 0, +1; lddw r0, 5; exit", 1, "leads to the middle of an instruction (3)"),
    "unreachable": ("mov64 r0, 0; exit; mov64 r0, 1; exit", 2, "is unreachable"),
    "unreachable function": ("mov64 r0, 0; exit; f: mov64 r0, 0; call local f; exit", 2, "is unreachable"),
    "jumps to another function": ("call local f; ja inside; f: mov64 r0, 0; inside: exit", 1,
                                  "leads into another function"),
    "falls into another function": ("mov64 r0, 0; call local f; f: mov64 r0, 0; exit", 1,
                                    "leads into another function"),
    "recursion": ("call local f; exit; f: call local f; exit", 2, "which is running already: recursion"),
    "mutual recursion": ("call local f; exit; f: call local g; exit; g: call local f; exit", 4, "recursion"),
    "calls too deep": (";".join(f"f{i}: call local f{i + 1}; exit" for i in range(8)) + "; f8: mov64 r0, 0; exit", 14,
                       "calls are 9 deep"),
    "unknown helper": ("call 9999; exit", 0, "calls helper 9999, which there is not here"),
    "kernel function": ("call btf 7; exit", 0, "calls kernel function 7"),
    "map that is not there": ("lddw r1, map[9]; mov64 r0, 0; exit", 0, "loads map 9, but the program has 7"),
    "value of a map with many": ("lddw r1, map[0].value+0; mov64 r0, 0; exit", 0,
                                 "loads the address of a value of map counts"),
    "beyond a value": ("lddw r1, map[3].value+65; mov64 r0, 0; exit", 0,
                       "loads the address of byte 65 of map .bss, which has 64"),
    "writes r10": ("mov64 r10, 0; exit", 0, "writes to r10, the frame pointer"),
    "adds to r10": ("mov64 r0, 0; add64 r10, -8; exit", 1, "writes to r10, the frame pointer"),
    # registers
    "uninitialised": ("mov64 r0, r3; exit", 0, "r3 is read, but nothing has been written to it"),
    "uninitialised result": ("exit", 0, "r0 is read, but nothing has been written to it"),
    "on one path only": ("jeq r2, 0, l; mov64 r0, 1; l: exit", 2,
                         "r0 is read, but nothing has been written to it on this path"),
    "arguments after a call": ("call 5; mov64 r0, r1; exit", 1, "calls leave nothing in r1..r5"),
    "arguments after a local call": ("call local f; mov64 r0, r1; exit; f: mov64 r0, 0; exit", 1, "r1 is read"),
    "callee's registers": ("mov64 r6, 0; call local f; exit; f: mov64 r0, r6; exit", 3, "r6 is read"),
    "operand": ("mov64 r0, 0; add64 r0, r5; exit", 1, "r5 is read"),
    "branch operand": ("mov64 r0, 0; jeq r0, r5, +0; exit", 1, "r5 is read"),
    "result of a helper without": (RESERVE + "jeq r0, 0, out; mov64 r1, r0; mov64 r2, 0; call 132; mov64 r6, r0; "
                                   + END, 9, "r0 is read"),
    # memory
    "number as an address": ("mov64 r1, 5; ldxb r0, [r1+0]; exit", 1, "r1 is a number (5) where an address is needed"),
    "null": ("mov64 r1, 0; ldxb r0, [r1+0]; exit", 1, "r1 is NULL where an address is needed"),
    "context's word as an address": ("ldxdw r1, [r1+8]; ldxdw r0, [r1+0]; exit", 1, "bpf_probe_read_kernel()"),
    "map as memory": ("lddw r1, map[0]; ldxdw r0, [r1+0]; exit", 2, "r1 is a map, not memory"),
    "no null check": (LOOKUP + "ldxdw r0, [r0+0]; exit", 6, "r0 may be NULL"),
    "null check of another": (LOOKUP + "mov64 r6, r0; " + LOOKUP + "jeq r0, 0, out; ldxdw r0, [r6+0]; " + END, 14,
                              "r6 may be NULL"),
    "beyond a map value": (LOOKUP + "jeq r0, 0, out; ldxdw r1, [r0+1]; " + END, 7,
                           "reads 8 bytes at offset 1 of a map value counts, which has 8"),
    "before a map value": (LOOKUP + "jeq r0, 0, out; ldxb r1, [r0-1]; " + END, 7,
                           "reads 1 bytes at offset -1 of a map value"),
    "unbounded index": (HASH + "ldxdw r6, [r0+0]; add64 r0, r6; ldxb r1, [r0+0]; " + END, 9,
                        "compare the index with the size"),
    "index bounded above only": (HASH + "ldxdw r6, [r0+0]; jsgt r6, 40, out; add64 r0, r6; ldxb r1, [r0+0]; " + END,
                                 10, "reads 1 bytes"),
    "index one too far": (HASH + "ldxdw r6, [r0+0]; jgt r6, 48, out; add64 r0, r6; ldxb r1, [r0+0]; " + END, 10,
                          "at offsets 0..48"),
    "writes to the context": ("mov64 r0, 0; stxdw [r1+0], r0; exit", 1, "writes to the context, which is read-only"),
    "beyond the context": ("ldxdw r0, [r1+1024]; exit", 0,
                           "reads 8 bytes at offset 1024 of the context, which has 1024"),
    "before the context": ("ldxdw r0, [r1-8]; exit", 0, "at offset -8 of the context"),
    "unaligned context": ("ldxw r0, [r1+2]; exit", 0, "not a multiple of 4"),
    "writes to read-only data": ("mov64 r0, 0; lddw r1, map[4].value+0; stxb [r1+0], r0; exit", 3,
                                 "writes to map .rodata, which is read-only"),
    "beyond the stack": ("stdw [r10-520], 0; mov64 r0, 0; exit", 0,
                         "writes 8 bytes of stack at r10-520; a frame is 512 bytes"),
    "above the stack": ("stdw [r10+0], 0; mov64 r0, 0; exit", 0, "writes 8 bytes of stack at r10+0"),
    "unaligned stack": ("stw [r10-6], 0; mov64 r0, 0; exit", 0, "not a multiple of 4"),
    "uninitialised stack": ("ldxdw r0, [r10-8]; exit", 0, "reads stack at r10-8 that nothing has been written to"),
    "partly initialised stack": ("stw [r10-8], 1; ldxdw r0, [r10-8]; exit", 1, "reads stack at r10-8"),
    "uninitialised byte": ("stb [r10-8], 1; ldxh r0, [r10-8]; exit", 1, "reads stack at r10-8"),
    "variable index of the stack": ("stw [r10-8], 0; and64 r2, 7; mov64 r1, r10; sub64 r1, 8; add64 r1, r2; ldxb r0, "
                                    "[r1+0]; exit", 5,
                                    "reads stack at r10-4"),
    "too much stack together": ("stdw [r10-304], 0; call local f; exit; f: stdw [r10-216], 0; mov64 r0, 0; exit", 3,
                                "prog -> f take 520 bytes of stack together"),
    "context or stack": ("stdw [r10-8], 0; mov64 r3, r1; jeq r2, 0, l; mov64 r3, r10; add64 r3, -8; l: ldxdw r0, "
                         "[r3+0]; exit", 5,
                         "accesses the context on one path and other memory on another"),
    # pointers
    "pointer in a map": (LOOKUP + "jeq r0, 0, out; stxdw [r0+0], r10; " + END, 7,
                         "stores a pointer to the stack in a map value"),
    "pointer in a record": (RESERVE + "jeq r0, 0, out; stxdw [r0+0], r0; " + END, 6,
                            "stores a pointer to a ring buffer's record"),
    "part of a pointer": ("stxw [r10-8], r10; mov64 r0, 0; exit", 0, "stores a part of a pointer"),
    "part of a spilled pointer": ("stxdw [r10-8], r10; ldxw r0, [r10-8]; exit", 1, "reads a part of a pointer"),
    "overwritten pointer": ("stxdw [r10-8], r10; stb [r10-8], 0; ldxdw r0, [r10-8]; exit", 2,
                            "reads a part of a pointer"),
    "rest of a pointer": ("stxdw [r10-8], r10; stb [r10-8], 0; ldxb r0, [r10-7]; exit", 2, "reads a part of a pointer"),
    "pointer moved by a wild number": ("mov64 r3, r10; mul64 r3, 2; mov64 r0, 0; exit", 1, "r3 is a pointer"),
    "32-bit pointer arithmetic": ("mov64 r3, r10; add32 r3, 8; mov64 r0, 0; exit", 1, "r3 is a pointer"),
    "32-bit copy of a pointer": ("mov32 r3, r10; mov64 r0, 0; exit", 0, "r10 is a pointer"),
    "negated pointer": ("mov64 r3, r10; neg64 r3; mov64 r0, 0; exit", 1, "r3 is a pointer"),
    "swapped pointer": ("mov64 r3, r10; bswap64 r3; mov64 r0, 0; exit", 1, "r3 is a pointer"),
    "sum of pointers": ("mov64 r3, r10; add64 r3, r10; mov64 r0, 0; exit", 1, "adds pointers"),
    "difference of strangers": ("sub64 r1, r10; mov64 r0, 0; exit", 0, "subtracts pointers"),
    "number minus pointer": ("mov64 r3, 0; sub64 r3, r10; mov64 r0, 0; exit", 1, "subtracts a pointer from a number"),
    "moved before the null check": (LOOKUP + "add64 r0, 4; " + END, 6, "moves a pointer that may be NULL"),
    "moved map": ("lddw r1, map[0]; add64 r1, 8; mov64 r0, 0; exit", 2, "moves the address of a map"),
    "order of strangers": ("mov64 r0, 0; jgt r1, r10, +0; exit", 1, "compares pointers to different things"),
    "pointer and number": ("mov64 r0, 0; jgt r1, 4096, +0; exit", 1,
                           "compares a pointer (the context + 0) with a number (4096)"),
    "bits of a pointer": ("mov64 r0, 0; jset r1, 7, +0; exit", 1, "tests bits of a pointer"),
    "half of a pointer": ("mov64 r0, 0; jeq32 r1, 0, +0; exit", 1, "tests bits of a pointer"),
    "returned pointer": ("mov64 r0, r10; exit", 1, "returns a pointer"),
    "address of a local": ("call local f; mov64 r0, 0; exit; f: mov64 r0, r10; exit", 4,
                           "returns the address of a local variable"),
    "address of a local, kept": ("stdw [r10-8], 0; mov64 r1, r10; call local f; mov64 r0, 0; exit; f: stxdw [r1-8], "
                                 "r10; mov64 r0, 0; exit", 5,
                                 "stores the address of a local variable in a caller's frame"),
    # atomic
    "atomic on the context": ("mov64 r0, 0; lock add64 [r1+0], r0; exit", 1, "an atomic operation on the context"),
    "unaligned atomic": (HASH + "mov64 r1, 1; lock add64 [r0+4], r1; " + END, 8, "not a multiple of 8"),
    "atomic with a pointer": (HASH + "lock xchg64 [r0+0], r10; " + END, 7, "r10 is a pointer"),
    "atomic on a pointer": ("stxdw [r10-8], r10; mov64 r1, 1; lock add_fetch64 [r10-8], r1; mov64 r0, 0; exit", 2,
                            "an atomic operation on a pointer"),
    "atomic on what is not there": ("mov64 r1, 1; lock add64 [r10-8], r1; mov64 r0, 0; exit", 1,
                                    "reads stack at r10-8"),
    "cmpxchg with a pointer": (HASH + "mov64 r6, r0; mov64 r0, r10; mov64 r1, 1; lock cmpxchg64 [r6+0], r1; " + END,
                               10, "r0 is a pointer"),
    "atomic on read-only data": ("mov64 r0, 1; lddw r1, map[4].value+0; lock add64 [r1+0], r0; exit", 3, "read-only"),
    # helpers
    "map argument": ("mov64 r1, 0; mov64 r2, r10; call 1; exit", 2,
                     "argument 1 of bpf_map_lookup_elem() (r1) is a map, but 0 is given"),
    "map of another type": (LOOKUP.replace("map[0]", "map[2]") + "exit", 5, "does not work on map ring, a ringbuf"),
    "uninitialised key": ("mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1; exit", 4,
                          "(stack at r10-4, 4 bytes) has not been written to"),
    "key beyond the stack": ("stw [r10-4], 0; mov64 r2, r10; lddw r1, map[0]; call 1; exit", 4,
                             "reads 4 bytes of stack at r10+0"),
    "key in the context": ("mov64 r2, r1; lddw r1, map[0]; call 1; exit", 3, "copy what is needed to a variable"),
    "pointer in a key": ("stxdw [r10-8], r10; mov64 r2, r10; add64 r2, -8; lddw r1, map[1]; call 1; exit", 5,
                         "holds a pointer at r10-8"),
    "changes read-only data": ("stw [r10-4], 0; mov64 r2, r10; add64 r2, -4; mov64 r3, r2; mov64 r4, 0; lddw r1, "
                               "map[4]; call 2; exit", 7,
                               "bpf_map_update_elem() would change map .rodata"),
    "value too small": ("stdw [r10-8], 5; mov64 r2, r10; add64 r2, -8; mov64 r3, r2; mov64 r4, 0; lddw r1, map[1]; "
                        "call 2; mov64 r0, 0; exit", 7,
                        "reads 48 bytes of stack at r10-8"),
    "context argument": ("mov64 r1, r10; mov64 r2, 0; call 58; exit", 2, "is the context, but the stack + 0 is given"),
    "moved context argument": ("add64 r1, 8; mov64 r2, 0; call 58; exit", 2,
                               "is the context, but the context + 8 is given"),
    "pointer for a number": ("mov64 r2, r10; call 58; exit", 1, "addresses of this machine are of no use in the guest"),
    "read into read-only data": ("lddw r1, map[4].value+0; mov64 r2, 8; mov64 r3, 0; call 113; exit", 4, "read-only"),
    "buffer too small": (BUFFER + "mov64 r2, 17; mov64 r3, 0; call 113; exit", 4, "writes 17 bytes of stack at r10-16"),
    "unbounded size": ("ldxdw r2, [r1+0]; " + BUFFER + "mov64 r3, 0; call 113; exit", 4,
                       "the size in r2 may be negative or huge"),
    "size bounded above only": ("ldxdw r2, [r1+0]; " + BUFFER + "mov64 r3, 0; jsgt r2, 16, out; call 113; " + END, 5,
                                "may be negative or huge: "),
    "size that is a pointer": ("mov64 r2, r1; " + BUFFER + "mov64 r3, 0; call 113; exit", 4,
                               "the size in r2 is a number"),
    "size of zero": (BUFFER + "and64 r2, 15; call 16; exit", 3, "the size in r2 may be 0"),
    "record of a variable size": ("lddw r1, map[2]; and64 r2, 15; mov64 r3, 0; call 131; exit", 4,
                                  "is a constant size"),
    "record never given back": (RESERVE + "jeq r0, 0, out; " + END, 7, "a record of map ring is still held at the end"),
    "record given back on one path": (RESERVE
                                      + "jeq r0, 0, out; ldxw r1, [r0+0]; jeq r1, 5, out; mov64 r1, r0; mov64 r2, 0; "
                                        "call 132; " + END, 12,
                                      "is still held at the end"),
    "record without a null check": (RESERVE + "mov64 r1, r0; mov64 r2, 0; call 132; " + END, 7, "r1 may be NULL"),
    "record used after": (RESERVE
                          + "jeq r0, 0, out; mov64 r6, r0; mov64 r1, r0; mov64 r2, 0; call 132; ldxb r0, [r6+0]; "
                          + END, 10, "r6 is read"),
    "spilled record used after": (RESERVE
                                  + "jeq r0, 0, out; stxdw [r10-8], r0; mov64 r1, r0; mov64 r2, 0; call 132; ldxdw "
                                    "r6, [r10-8]; " + END, 10,
                                  "reads a part of a pointer"),
    "record given back twice": (RESERVE
                                + "jeq r0, 0, out; mov64 r6, r0; mov64 r1, r0; mov64 r2, 0; call 132; mov64 r1, r6; "
                                  "mov64 r2, 0; call 133; "
                                + END, 10, "r6 is read"),
    "middle of a record": (RESERVE + "jeq r0, 0, out; mov64 r1, r0; add64 r1, 8; mov64 r2, 0; call 132; " + END, 9,
                           "is the begin of a record"),
    "something else given back": ("mov64 r1, r10; mov64 r2, 0; call 132; mov64 r0, 0; exit", 2,
                                  "is a record of bpf_ringbuf_reserve()"),
    "beyond a record": (RESERVE + "jeq r0, 0, out; stdw [r0+16], 0; " + END, 6,
                        "writes 8 bytes at offset 16 of a ring buffer's record"),
    # loops
    "endless": ("mov64 r0, 0; l: ja l", 1, "loops for ever"),
    "endless, with a counter nobody looks at": ("mov64 r0, 0; l: add64 r0, 1; ja l", 1, "loops for ever"),
    "endless on one path": ("mov64 r0, 0; l: call 7; jne r0, 5, l; exit", 1, "loops for ever"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, at, reason = REFUSED[name]
    program = evolve(code(text), functions={0: "prog"})
    if name == "too much stack together":
        program = evolve(program, functions={0: "prog", 3: "f"})
    with pytest.raises(ProgramError) as caught:
        verify(program, seconds=60)
    assert reason in str(caught.value), str(caught.value)
    assert caught.value.instruction == at, str(caught.value)
    assert "section kprobe/f" in str(caught.value) and caught.value.program == "prog"


KEPT = {
    "null check by jne": LOOKUP + "jne r0, 0, use; mov64 r0, 0; exit; use: ldxdw r0, [r0+0]; exit",
    "null check of a copy": LOOKUP + "mov64 r6, r0; jeq r6, 0, out; ldxdw r0, [r0+0]; exit; " + END,
    "null check of a spilled copy": LOOKUP
    + "stxdw [r10-16], r0; jeq r0, 0, out; ldxdw r6, [r10-16]; ldxdw r0, [r6+0]; exit; " + END,
    "index": HASH + "ldxdw r6, [r0+0]; jgt r6, 47, out; add64 r0, r6; ldxb r1, [r0+0]; " + END,
    "index, checked on a copy": HASH
    + "ldxdw r6, [r0+0]; mov64 r7, r6; jgt r7, 47, out; add64 r0, r6; ldxb r1, [r0+0]; " + END,
    "index, masked": HASH + "ldxdw r6, [r0+0]; and64 r6, 31; add64 r0, r6; ldxdw r1, [r0+9]; " + END,
    "index, from both sides as signed": HASH
    + "ldxdw r6, [r0+0]; jsgt r6, 47, out; jslt r6, 0, out; add64 r0, r6; ldxb r1, [r0+0]; " + END,
    "index, in 32 bits": HASH + "ldxdw r6, [r0+0]; jgt32 r6, 47, out; mov32 r6, r6; add64 r0, r6; ldxb r1, [r0+0]; "
    + END,
    "index, checked after it was added": HASH
    + "ldxdw r6, [r0+0]; mov64 r7, r0; add64 r7, r6; jgt r6, 47, out; mov64 r7, r0; add64 r7, r6; "
                                         "ldxb r1, [r7+0]; " + END,
    "unaligned map value": HASH + "ldxdw r1, [r0+3]; " + END,
    "size from a string": BUFFER
    + "mov64 r2, 16; mov64 r3, 0; call 115; jsle r0, 0, out; lddw r1, map[2]; mov64 r2, r10; add64 r2, -16; mov64 r3, "
      "r0; "
                          "mov64 r4, 0; call 130; " + END,
    "spilled number": "ldxdw r3, [r1+0]; and64 r3, 7; stxdw [r10-16], r3; ldxdw r4, [r10-16]; lddw r5, "
                      "map[3].value+0; add64 r5, r4; ldxb r0, [r5+0]; exit",
    "spilled half": "ldxdw r3, [r1+0]; and64 r3, 7; stxw [r10-12], r3; ldxw r4, [r10-12]; lddw r5, map[3].value+0; "
                    "add64 r5, r4; ldxb r0, [r5+0]; exit",
    "end pointer": "lddw r3, map[3].value+0; lddw r4, map[3].value+64; mov64 r0, 0; l: ldxb r5, [r3+0]; add64 r0, r5; "
                   "add64 r3, 1; jne r3, r4, l; exit",
    "difference of pointers": "mov64 r3, r10; add64 r3, -8; mov64 r0, r10; sub64 r0, r3; lddw r4, map[3].value+0; "
                              "add64 r4, r0; ldxb r0, [r4+0]; exit",
    "pointer passed down and back": "stdw [r10-8], 7; mov64 r1, r10; add64 r1, -8; call local f; ldxdw r0, [r0+0]; "
                                    "exit; f: mov64 r0, r1; exit",
    "eight frames": ";".join(f"f{i}: call local f{i + 1}; exit" for i in range(7)) + "; f7: mov64 r0, 0; exit",
    "loop": "mov64 r0, 0; l: add64 r0, 1; jne r0, 1000, l; exit",
    "loop with a variable bound": "ldxdw r3, [r1+0]; jgt r3, 100, out; mov64 r4, 0; l: jge r4, r3, out; add64 r4, 1; "
                                  "ja l; " + END,
    "halving": "ldxdw r3, [r1+0]; l: rsh64 r3, 1; jne r3, 0, l; " + END,
    "atomics": HASH
    + "mov64 r6, r0; mov64 r1, 1; lock add64 [r6+0], r1; lock or_fetch32 [r6+4], r1; lock xchg64 [r6+8], r1; mov64 "
      "r0, 3; "
               "lock cmpxchg64 [r6+16], r1; " + END,
    "context, by index": "ldxdw r3, [r1+0]; and64 r3, 15; lsh64 r3, 3; add64 r1, r3; ldxdw r0, [r1+8]; exit",
    "printk with fewer arguments": "stdw [r10-8], 37; mov64 r1, r10; add64 r1, -8; mov64 r2, 8; call 6; " + END,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_the_rules_is_accepted(name: str) -> None:
    verify(code(KEPT[name]))


def test_a_refusal_names_the_source_line() -> None:
    line = CodeLine("crc.bpf.c", 12, 5, "  return regs[999];")
    with pytest.raises(ProgramError) as caught:
        verify(evolve(code("mov64 r0, 0; ldxdw r0, [r1+1024]; exit"),
                      lines={0: CodeLine("crc.bpf.c", 11, 1, "{"), 1: line}))
    assert str(caught.value).endswith("\n  crc.bpf.c:12: return regs[999];") and caught.value.line == str(line)
    assert "instruction 1 (ldxdw r0, [r1+1024])" in str(caught.value)


@pytest.mark.parametrize("insn", [isa.Instruction(0x20, 0, 0, 0, 4), isa.Instruction(0xFF),
                                  isa.Instruction(isa.MOV | isa.ALU64, 11), isa.Instruction(0),
                                  isa.Instruction(isa.MEM | isa.DW | isa.LDX, 0, 12), isa.Instruction(0xE5),
                                  isa.Instruction(isa.DIV | isa.ALU64, 0, 0, 2)])
def test_what_does_not_decode_is_refused(insn: isa.Instruction) -> None:
    program = evolve(code("mov64 r0, 0; mov64 r0, 0; exit"),
                     instructions=(*assemble("mov64 r0, 0"), insn, *assemble("exit")))
    with pytest.raises(ProgramError, match="is not a legal instruction") as caught:
        verify(program)
    assert caught.value.instruction == 1


def test_an_empty_program_is_refused() -> None:
    with pytest.raises(ProgramError, match="there are no instructions"):
        verify(evolve(code("exit"), instructions=()))


@pytest.mark.parametrize("end", [100, 900_000])
def test_loops_have_a_budget(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 is never met by an odd number, 900,000 too late."""
    assert explore.LIMIT == 1_000_000
    monkeypatch.setattr(explore, "LIMIT", 20_000)
    with pytest.raises(ProgramError,
                       match="20,000 instructions were walked, and there are more: a loop without a bound, or too many"):
        verify(code(f"mov64 r0, 1; l: add64 r0, 2; jne r0, {end}, l; exit"), seconds=60)


def test_branches_that_wait_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "_PENDING", 100)
    with pytest.raises(ProgramError, match="100 branches wait to be walked: a loop with too many of them"):
        verify(code("mov64 r6, 0; l: call 7; jeq r0, 5, out; add64 r6, 1; jne r6, 200, l; " + END))


def test_verification_takes_no_longer_than_allowed() -> None:
    text = "mov64 r0, 0; l: add64 r0, 1; " + "ldxdw r3, [r1+0]; mul64 r3, 7; " * 10 + "jne r0, 90000, l; exit"
    with pytest.raises(ProgramError, match="verification takes too long"):
        verify(code(text), seconds=0.05)


def test_read_only_data_is_known_and_stays_as_it_was() -> None:
    """`const volatile` variables bound loops and indices."""
    text = "lddw r3, map[4].value+0; ldxb r4, [r3+1]; lddw r5, map[3].value+0; add64 r5, r4; ldxb r0, [r5+0]; exit"
    good, bad = code(text), code(text)
    good.maps[4][0], bad.maps[4][0] = bytes([99, 63] + [0] * 62), bytes([9, 64] + [0] * 62)
    verify(good)
    with pytest.raises(ProgramError, match="reads 1 bytes at offset 64"):
        verify(bad)
    with pytest.raises(ProgramError, match=r"map .rodata is constant, and a program has been verified with its value"):
        good.maps[4][0] = bytes(64)
    assert good.maps[4][0][:2] == bytes([99, 63])


def test_facts_say_what_is_accessed() -> None:
    facts = verify(code("ldxdw r6, [r1+8]; stxw [r10-4], r6; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1; "
                        "jeq r0, 0, out; "
                        "ldxdw r3, [r0+0]; " + END))
    program = code("exit")
    assert [(pc, a.kind, a.offset, a.size) for pc, a in sorted(facts.accesses.items())] == [
        (0, "ctx", 8, 8), (1, "stack", -4, 4), (8, "map value", 0, 8)]
    assert (facts.accesses[8].map is not None and facts.accesses[8].map.name == program.maps[0].name
            and facts.accesses[1].frame == 0)
    assert {pc: (c.helper.name, c.map and c.map.name)
            for pc, c in facts.calls.items()} == {6: ("map_lookup_elem", "counts")}
    assert (facts.stack == {0: 8} and facts.depth == 8 and facts.frames == 1 and not facts.cleared
            and not facts.whole_context)
    assert facts.steps == 11 - 1  # lddw is one instruction


def test_padding_that_a_helper_reads_has_to_be_cleared() -> None:
    facts = verify(code("stw [r10-8], 5; mov64 r2, r10; add64 r2, -8; lddw r1, map[1]; call 1; mov64 r0, 0; exit"))
    assert facts.cleared == {0: 8}


def test_a_context_used_by_a_variable_index_is_needed_whole() -> None:
    assert verify(code(KEPT["context, by index"])).whole_context


def test_a_context_used_at_another_place_on_another_path_is_needed_whole() -> None:
    facts = verify(code("mov64 r3, r1; add64 r3, 8; jeq r2, 0, l; add64 r3, 8; l: ldxdw r0, [r3+0]; exit"))
    assert facts.accesses[4].offset is None and facts.whole_context


def test_accesses_that_differ_from_path_to_path() -> None:
    facts = verify(code("stdw [r10-8], 0; lddw r3, map[3].value+0; jeq r2, 0, l; mov64 r3, r10; add64 r3, -8; l: "
                        "ldxdw r0, [r3+0]; exit"))
    assert facts.accesses[6].kind == "any" and facts.accesses[6].offset is None and facts.accesses[6].map is None
