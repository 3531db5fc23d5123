"""i386 and x86-64 in debug information: the ABIs' supplements."""

from __future__ import annotations

from .._dwarf import DwarfFacts

LONG_DOUBLE = {10: "x87", 12: "x87", 16: "x87"}
ROWS = {
    "x86_64": DwarfFacts(
        numbers=("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip"),
        long_double=LONG_DOUBLE),
    "i386": DwarfFacts(numbers=("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"),
                       long_double=LONG_DOUBLE),
}
