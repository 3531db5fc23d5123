"""Code of this process's own machine, which the engine calls at call sites where nothing need be asked of Python.

A hook is called as hook(uc, address, size, data) by the C ABI. `serve` is the hook of a whole area; it finds the call
site's words by the address and calls the function there: a Python callback, or one of host code's. `count` is that of a
site that is only counted; `enter`, `ask` and `leave` follow calls: a function's entry, one where Python has the say,
and the trampoline.

Words of a call site (SITE) and of the calls being followed (CALLS) are of 64 bits; see callsites.py. The functions are
bytes in ready.py, made from source.py. Where the host is another machine, or forbids it, there are none, and Python
does it all.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import warnings
from functools import cache

from attrs import field, frozen

from .ready import READY

SITE = {name: 8 * n for n, name in enumerate(("function", "hits", "python", "spare", "calls", "entered", "returned",
                                              "program", "after", "ran", "back", "returns"))}
CALLS = {name: 8 * n for n, name in enumerate((
    "gate", "top", "base", "limit", "sp", "link", "trampoline", "pushed", "stack", "room", "host", "frame", "target",
    "inside",
    "bias", "sp_at", "sp_bias", "link_at"))}
#: Bytes of the gate, each a reason why Python is to be asked: a displaced instruction runs; the run was stopped, or
#: another one was nested in it; this one is nested; what is executed is finished, or tried again, and no hit; there are
#: guest tasks, which only matters where calls are followed.
HIT, DISTURBED, NESTED, RESTING, TASKS = 0, 1, 2, 3, 4
CALL = 24  # bytes of a followed call: frame, return address, call site
#: Where a return address is: in a register's cell, in a register of a window, on the stack, and there in the other byte
#: order than the host's.
WHERE = ("cell", "window", "stack", "swapped")
SWITCH = "KPROBES_HOST_CODE"  #: "0" in the environment: no host code
_ALIGN = 16
_memory: list[mmap.mmap] = []  # what the functions are in


class SlowHost(RuntimeWarning):
    """There is no host code on this host: everything works, and calls that are counted or followed cost about ten times
    as much."""


@frozen
class Convention:
    """How a guest's calls leave the return address.

    Attributes:
        bits: of a word, 32 or 64. where: one of WHERE. reloaded: returns put the register back to what it was before
            the call.
        words: values of CALLS: `bias`, to be added to the return address; `sp_at` and `link_at`, bytes from what the
            window's pointer points at to the stack pointer and the return address, and `sp_bias`, to be added to the
            stack pointer there.
    """

    bits: int
    where: str
    reloaded: bool = False
    words: dict[str, int] = field(factory=dict)

    def function(self, kind: str) -> str:
        """Name of the function of a kind (enter, ask, leave) for such guests."""
        return f"{kind}{'-reloaded' * (self.reloaded and kind == 'leave')}-{self.where}-{self.bits}"


@cache
def available() -> bool:
    """True where this process can have such functions. Says once where not, unless it was asked for."""
    if os.environ.get(SWITCH) == "0":
        return False
    why = _why_not() or ("" if _functions() else "memory cannot be made executable")
    if why:
        warnings.warn(f"no host code: {why}; all works, slower ({SWITCH}=0 says that you know)", SlowHost, stacklevel=2)
    return not why


def _why_not() -> str:
    """Why there can be no host code here; empty if there can."""
    host, system = platform.machine(), platform.system()
    if system != "Linux" or host not in READY:
        return f"there is none for {host} under {system}"
    return "" if ctypes.sizeof(ctypes.c_void_p) == 8 else f"this is a 32-bit process on {host}"


def address(name: str) -> int:
    """Where a function is. Only where they are available."""
    return _functions()[name]


@cache
def _functions() -> dict[str, int]:
    """Name -> address of every function; {} where memory cannot be made executable."""
    text, places = bytearray(), {}
    for name, code in READY[platform.machine()].items():
        places[name] = len(text)
        text += bytes.fromhex(code)
        text += bytes(-len(text) % _ALIGN)
    start = executable(bytes(text))
    return {name: start + place for name, place in places.items()} if start else {}


def executable(text: bytes) -> int:
    """Address of these bytes in memory that can be executed, for as long as the process lives; 0 where there is
    none."""
    try:
        memory = mmap.mmap(-1, len(text))
        memory.write(text)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        # Writable first, executable then: an ARM host's kernel makes the instruction cache coherent when it maps a page
        # so.
        protect = ctypes.CDLL(None).mprotect
        failed = protect(ctypes.c_void_p(start), ctypes.c_size_t(len(text)), mmap.PROT_READ | mmap.PROT_EXEC)
    except (OSError, ValueError, AttributeError):
        return 0
    if failed:
        return 0
    _memory.append(memory)
    return start
