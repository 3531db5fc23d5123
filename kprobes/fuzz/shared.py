"""Shared memory of System V, by the numbers that AFL hands over in the environment."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from ..errors import BadArgument

_IPC_STAT = 2
_SIZE_AT = 48  # bytes to shm_segsz in struct shmid_ds, of 64-bit Linux
_FAILED = ctypes.c_void_p(-1).value


@cache
def _libc() -> Any:
    """Return the C library, with the types of shmat() set."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    return libc


def attached(variable: str) -> tuple[int, int]:
    """Attach a segment of shared memory to this process, for as long as the process lives.

    Args:
        variable: name of the environment's variable that has the segment's number.

    Returns:
        (host address of the segment, its size in bytes).

    Raises:
        BadArgument: the variable has no number of a segment that can be attached.
    """
    text = os.environ.get(variable, "")
    hint = "let afl-fuzz start this"
    if not text.isascii() or not text.isdecimal():
        raise BadArgument(f"{variable} is {text!r}, and no number of shared memory", hint=hint)
    described = (ctypes.c_uint64 * 32)()
    number = ctypes.c_int(int(text) & 0x7FFFFFFF)
    address = _libc().shmat(number, None, 0)
    if address in (None, _FAILED) or _libc().shmctl(number, _IPC_STAT, described) < 0:
        reason = os.strerror(ctypes.get_errno())
        raise BadArgument(
            f"{variable}: shared memory {text} cannot be attached: {reason}", hint=hint
        )
    return int(address), int(described[_SIZE_AT // 8])
