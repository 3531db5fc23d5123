"""Between the engine and its translators: no block of more than MOST instructions is translated at once.

A translator has 512 temporaries, and room for 512 instructions (on MIPS for 341). It counts neither: some instructions
never give their temporaries back, and what comes behind the last of them is the translator's own. So a long straight
line of code would kill the process, whoever made it: a file, the guest, an engine's owner. The engine's library calls
each guest's translator through its own table of functions, by a name that it exports; there a function of ours stands
in between, and lowers the number of instructions that is asked for. This is so for every engine of the process from the
first machine on. Blocks that are cut are chained by the engine, as at a page's end.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from functools import cache

from ..version import library
from . import hostcode
from .ready import READY

MOST = 64  # instructions of a block; see docs/engine.md for what they take
GUESTS = ("x86_64", "arm", "aarch64", "m68k", "mips", "mipsel", "mips64", "mips64el", "ppc", "ppc64", "riscv32",
          "riscv64", "sparc", "sparc64", "tricore")
NAMES = ("gen_intermediate_code", *(f"gen_intermediate_code_{guest}" for guest in GUESTS))  # s390x's has no suffix
_DYNAMIC, _TABLE, _TABLE_SIZE, _WORD = 2, 3, 2, 8  # PT_DYNAMIC; DT_PLTGOT, DT_PLTRELSZ; bytes
_ENTRY = 24  # bytes of Elf64_Rela


class _Info(ctypes.Structure):
    """Dl_info of dladdr()."""

    _fields_ = (("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p))


@cache
def bounded(most: int = MOST) -> bool:
    """Bound the blocks of every engine, if that has not been done. False where it cannot be: without host code, or with
    a library made otherwise."""
    if not hostcode.available():
        return False
    try:
        table = _functions_called()
        called = [*table]
        places = [called.index(_address(name)) for name in NAMES]
    except (AttributeError, ValueError, OSError):
        return False
    code = bytes.fromhex(READY[platform.machine()]["at-most"])
    size = len(code) + 2 * _WORD
    start = hostcode.executable(b"".join(code + table[place].to_bytes(_WORD, "little") + most.to_bytes(_WORD, "little")
                                         for place in places))
    for n, place in enumerate(places if start else ()):
        table[place] = start + n * size
    return bool(start)


def _address(name: str) -> int:
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


def _functions_called() -> ctypes.Array[ctypes.c_uint64]:
    """The addresses of the functions that the library calls by name, where it looks for them: writable, and complete as
    the binding loads it."""
    about, size = _Info(), 0
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(_address("uc_version")), ctypes.byref(about)):
        raise OSError("the library is not known")
    table = 0
    for tag, value in _dynamic(about.base):
        table, size = (value if tag == _TABLE else table), (value if tag == _TABLE_SIZE else size)
    if not table or not size:
        raise ValueError("there is no such table")
    table += about.base if table < about.base else 0  # C libraries differ in whether they make it an address
    return (ctypes.c_uint64 * (3 + size // _ENTRY)).from_address(table)


def _dynamic(base: int) -> Iterator[tuple[int, int]]:
    """The dynamic section of an ELF file in memory: (tag, value)."""
    headers, count = ctypes.c_uint64.from_address(base + 32).value, ctypes.c_uint16.from_address(base + 56).value
    for header in range(base + headers, base + headers + count * 56, 56):
        if ctypes.c_uint32.from_address(header).value == _DYNAMIC:
            at = base + ctypes.c_uint64.from_address(header + 16).value
            while tag := ctypes.c_uint64.from_address(at).value:
                yield tag, ctypes.c_uint64.from_address(at + 8).value
                at += 16
