"""i386 and x86-64 on Linux."""

from __future__ import annotations

from ...regs import Regs
from .._linux import CallRules, KernelRegisters, Linux, MemoryCalls, ThreadStorage

SIGTRAP = 5


def _pair(regs: Regs) -> int:
    """Return the address of the two words for ___tls_get_addr(): i386 passes it in EAX."""
    return regs["eax"]


GENERAL = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip", "flags")
ROWS = {
    "x86_64": Linux(
        memory=MemoryCalls(code=bytes.fromhex("0f05"), number="rax",
                           args=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
                           result="rax", map=9, unmap=11),
        calls=CallRules(table="x86_64"), exits=(60, 231), clone=56, trap=(SIGTRAP, 1),
        storage=ThreadStorage(register="fs_base", below=True, itself=True),
        kernel_registers=KernelRegisters(marks=("orig_ax", "orig_rax"), names={"eflags": "rflags"}),
        event_names=(*GENERAL, *(f"r{n}" for n in range(8, 16)))),
    "i386": Linux(
        memory=MemoryCalls(code=bytes.fromhex("cd80"), number="eax",
                           args=("ebx", "ecx", "edx", "esi", "edi", "ebp"),
                           result="eax", map=192, unmap=91),
        calls=CallRules(table="i386", mmap_by_block=True, descriptor=True),
        exits=(1, 252), clone=120, trap=(SIGTRAP, 1),
        storage=ThreadStorage(register="gs", below=True, itself=True, call="___tls_get_addr",
                              pair=_pair),
        event_names=GENERAL),
}
