"""Counting without Python: a few bytes of host code as the engine's hook.

A hook that only counts need not be a Python function. The engine calls hook(uc, address, size, data) by the host's C ABI;
this room puts a function of three to seven instructions into executable memory, which adds one to data's counter of the
address. Where the host is another machine, or forbids executable memory, there are no counters and Python counts.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from typing import Any

#: data[0] is the area's address; then a 64-bit counter for every four bytes of it. Arguments: address, data.
_CODE = {
    "x86_64": "4889f0 482b01 48ff444108 c3",  # mov rax, rsi; sub rax, [rcx]; inc qword [rcx + 2 * rax + 8]; ret
    "aarch64": "640040f9 240004cb 6404048b 850440f9 a5040091 850400f9 c0035fd6",  # the same with x1 and x3
}
_function: Any = None


def host_function() -> int:
    """Address of the counting function; 0 where the host cannot have one."""
    global _function
    if _function is None:
        code = bytes.fromhex(_CODE.get(platform.machine(), "")) if platform.system() == "Linux" else b""
        try:
            page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        except (OSError, ValueError):
            code = b""
        if not code:
            _function = 0
        else:
            page.write(code)
            _function = page, ctypes.addressof(ctypes.c_char.from_buffer(page))
    return int(_function[1]) if _function else 0


class Counters:
    """The counters of one area of guest code."""

    def __init__(self, area: int, size: int) -> None:
        self._area = area
        self._words = (ctypes.c_uint64 * (1 + size // 4))()
        self._words[0] = area
        self.data = ctypes.addressof(self._words)

    def read(self, addr: int) -> int:
        """How often the instruction at `addr` was executed."""
        return int(self._words[1 + (addr - self._area) // 4])
