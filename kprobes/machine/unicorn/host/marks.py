"""A CODE hook on marked instructions only: host code looks the address up before Python hears of it, and moves the guest afterwards.

The engine calls hook(uc, address, size, data) at every instruction in a hook's range, by the host's C ABI. A Python function
takes 200 ns to find out that nothing is to be done there, and as much again to write pc; these instructions take a few.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

from . import hostcode

STAY = (1 << 64) - 1
#: What a marked instruction calls: (uc, address) -> the pc to write, or STAY.
MARKED = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
HEADER = 32
#: data is the range's start, the function to call, the engine's that writes a register, pc's number, and a byte for each of the range.
CODE = {
    "x86_64": """
        mov rax, rsi; sub rax, [rcx]; cmp byte ptr [rcx + rax + 32], 0; jne marked; ret
        marked: push rbx; push rdi; push rax
        mov rbx, rcx; call qword ptr [rcx + 8]
        mov [rsp], rax; inc rax; jz stay
        mov rdi, [rsp + 8]; mov esi, [rbx + 24]; mov rdx, rsp; call qword ptr [rbx + 16]
        stay: add rsp, 16; pop rbx; ret""",
    "aarch64": """
        ldr x4, [x3]; sub x4, x1, x4; add x4, x3, x4; ldrb w4, [x4, #32]; cbnz w4, marked; ret
        marked: stp x29, x30, [sp, #-48]!; stp x0, x3, [sp, #16]
        ldr x4, [x3, #8]; blr x4
        str x0, [sp, #32]; cmn x0, #1; b.eq stay
        ldp x0, x3, [sp, #16]; ldr w1, [x3, #24]; add x2, sp, #32; ldr x4, [x3, #16]; blr x4
        stay: ldp x29, x30, [sp], #48; ret""",
}


@cache
def host_function() -> int:
    """Address of the function that looks marks up; 0 where the host cannot have one."""
    return hostcode.address(CODE[platform.machine()]) if hostcode.available() else 0


class Marks:
    """The marked instructions of a range of guest code. `data` is the hook's, and must outlive it.

    called: address of a MARKED. write: of the engine's function (uc, register, pointer to the value).
    """

    __slots__ = ("_bytes", "_count", "_first", "data")

    def __init__(self, start: int, size: int, called: int, write: int, pc: int) -> None:
        self._bytes = bytearray(HEADER + size)
        self._bytes[:HEADER] = b"".join(word.to_bytes(8, "little") for word in (start, called, write, pc))
        self.data = ctypes.addressof(ctypes.c_char.from_buffer(self._bytes))
        self._first, self._count = start - HEADER, 0

    def __bool__(self) -> bool:
        return self._count > 0

    def put(self, addr: int, marked: bool) -> None:
        """Mark the instruction at `addr`, or do so no more."""
        self._count += marked - self._bytes[addr - self._first]
        self._bytes[addr - self._first] = marked
