"""The functions that the engine's library calls by name: where it looks for them, others may
stand.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache

from ..version import library

#: What the library's functions of each guest's end in. s390x's translator has no such suffix.
GUESTS = (
    "x86_64",
    "arm",
    "aarch64",
    "m68k",
    "mips",
    "mipsel",
    "mips64",
    "mips64el",
    "ppc",
    "ppc64",
    "riscv32",
    "riscv64",
    "s390x",
    "sparc",
    "sparc64",
    "tricore",
)
WORD = 8  # bytes
_DYNAMIC, _TABLE, _TABLE_SIZE = 2, 3, 2  # PT_DYNAMIC; DT_PLTGOT, DT_PLTRELSZ
_ENTRY = 24  # bytes of Elf64_Rela


class _Info(ctypes.Structure):
    """Dl_info, the result of dladdr(): what an address of this process belongs to."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def address(name: str) -> int:
    """Return the address of a function that the engine's library exports.

    Raises:
        AttributeError: it exports no such function.
    """
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


@cache
def called() -> Called:
    """Return the table of functions that the engine's library calls by name, made once for this
    process.

    Raises:
        OSError: the library is not known to the dynamic linker.
        ValueError: it has no such table.
        AttributeError: it is no such library.
    """
    return Called(_table())


class Called:
    """The table (GOT) in which the engine's library has the addresses of the functions that it
    calls by name: writable, and complete as the binding loads it.

    Attributes:
        originals: the addresses that were there at first, by position in the table.
    """

    def __init__(self, table: ctypes.Array[ctypes.c_uint64]) -> None:
        """Keep the table.

        Args:
            table: the words of the library's table, in its memory.
        """
        self._table = table
        self.originals = [*table]

    def places(self, names: list[str]) -> list[int]:
        """Return the positions in the table of functions of the library.

        Args:
            names: of the functions.

        Raises:
            ValueError: a function is not called by name.
            AttributeError: the library exports no such function.
        """
        return [self.originals.index(address(name)) for name in names]

    def put(self, place: int, function: int) -> None:
        """Have another function called from now on, by every engine of the process.

        Args:
            place: position in the table.
            function: address of the function that is called instead.
        """
        self._table[place] = function


def _table() -> ctypes.Array[ctypes.c_uint64]:
    """Return the words of the table by which the engine's library calls its functions by name.

    Raises:
        OSError: the library is not known to the dynamic linker, or no ELF file (macOS, Windows).
        ValueError: it has no such table.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("the library is no ELF file")
    about, size = _Info(), 0
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address("uc_version")), ctypes.byref(about)):
        raise OSError("the library is not known")
    table = 0
    for tag, value in _dynamic(about.base):
        table, size = (value if tag == _TABLE else table), (value if tag == _TABLE_SIZE else size)
    if not table or not size:
        raise ValueError("there is no such table")
    # C libraries differ in whether they make it an address
    table += about.base if table < about.base else 0
    return (ctypes.c_uint64 * (3 + size // _ENTRY)).from_address(table)


def _dynamic(base: int) -> Iterator[tuple[int, int]]:
    """Yield the entries of the dynamic section of an ELF file in this process's memory: (tag,
    value).

    Args:
        base: address of the file's header.
    """
    headers = ctypes.c_uint64.from_address(base + 32).value
    count = ctypes.c_uint16.from_address(base + 56).value
    for header in range(base + headers, base + headers + count * 56, 56):
        if ctypes.c_uint32.from_address(header).value == _DYNAMIC:
            at = base + ctypes.c_uint64.from_address(header + 16).value
            while tag := ctypes.c_uint64.from_address(at).value:
                yield tag, ctypes.c_uint64.from_address(at + 8).value
                at += 16
