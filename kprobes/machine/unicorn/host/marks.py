"""A CODE hook on marked instructions only: host code looks the address up before it calls Python,
and moves the guest afterwards.

The engine calls hook(uc, address, size, data) at every instruction in a hook's range, by the host's
C ABI. A Python function takes 200 ns to find out that nothing is to be done there, and as much
again to write pc; these instructions take a few.
"""

from __future__ import annotations

import ctypes
from functools import cache

from . import hostcode

STAY = (1 << 64) - 1
#: What a marked instruction calls: (uc, address) -> the pc to write, or STAY.
MARKED = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
# bytes before the marks: the range's start, the function to call, the engine's that writes a
# register, pc's number
HEADER = 32


@cache
def host_function() -> int:
    """Return the address of the host function that looks marks up, to be hooked; 0 where there is
    no host code.
    """
    return hostcode.address("marked") if hostcode.available() else 0


class StopMarks:
    """The marked instructions of a range of guest code; true while there are any.

    Attributes:
        data: address that the hook is given; it must outlive the hook.
    """

    __slots__ = ("_bytes", "_count", "_first", "data")

    def __init__(self, start: int, size: int, called: int, write: int, pc: int) -> None:
        """Make the words for a range without marks.

        Args:
            start: address of the range.
            size: bytes.
            called: address of a MARKED callback, which is called at marked instructions.
            write: address of the engine's function (uc, register, pointer to the value) that writes
                a register.
            pc: the engine's number of pc.
        """
        self._bytes = bytearray(HEADER + size)
        self._bytes[:HEADER] = b"".join(
            word.to_bytes(8, "little") for word in (start, called, write, pc)
        )
        self.data = ctypes.addressof(ctypes.c_char.from_buffer(self._bytes))
        self._first = start - HEADER
        self._count = 0

    def __bool__(self) -> bool:
        """Return True while an instruction is marked."""
        return self._count > 0

    def put(self, addr: int, marked: bool) -> None:
        """Mark the instruction at `addr`, or remove its mark.

        Args:
            addr: address of the instruction, in the range.
            marked: True to mark it.
        """
        self._count += marked - self._bytes[addr - self._first]
        self._bytes[addr - self._first] = marked
