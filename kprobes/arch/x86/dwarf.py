"""i386 and x86-64 in debug information: the ABIs' supplements."""

from __future__ import annotations

from .._dwarf import DwarfFacts

LONG_DOUBLE = {10: "x87", 12: "x87", 16: "x87"}


def x87(first: int) -> dict[int, str]:
    """Return the registers of x87: number -> name, from the number of st0 on."""
    return {first + n: f"st{n}" for n in range(8)}


ROWS = {
    "x86_64": DwarfFacts(
        numbers=("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                 *(f"r{n}" for n in range(8, 16)), "rip"),
        others=x87(33) | {17 + n: f"xmm{n}" for n in range(16)}, first_real=17, reals="low",
        x87=range(33, 41),
        convention="sysv", variadic_reals="named", real_count="rax",
        long_double=LONG_DOUBLE),
    "i386": DwarfFacts(numbers=("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"),
                       others=x87(11) | {21 + n: f"xmm{n}" for n in range(8)}, first_real=11,
                       reals="low", x87=range(11, 19),
                       convention="stack", variadic_reals="named", long_double=LONG_DOUBLE),
}
