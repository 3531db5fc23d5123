"""PA-RISC as stubs of GDB's protocol show it."""

from __future__ import annotations

from .._stub import RegisterPart, StubFacts, file_of, row_of

# floating-point registers are two halves each
HALVES = " ".join(f"fr{n} fr{n}r" for n in range(32))
ROWS = {"parisc": StubFacts(
    # npc is the address behind pc's in its queue of instructions
    file=file_of(4, f"0 psw {row_of('r', 1, 31)} sar iaoq_f iasq_f npc iasq_b eiem iir isr ior ipsw goto",
                 f"0 sr4 {row_of('sr', 0, 3)} {row_of('sr', 5, 7)} cr0 cr8 cr9 ccr cr12 cr13 {row_of('cr', 24, 30)}",
                 f"0 {HALVES}"),
    parts={"pc": RegisterPart("iaoq_f", 2, 30, 2)},  # the low bits are the privilege level
    nullified=("psw", 1 << 21), nop=bytes.fromhex("08000240"), qemu="hppa")}
