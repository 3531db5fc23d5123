"""Knowledge that a script can have of its guest, before and while it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from . import types
from .types import ValueType


class World(Protocol):
    """A guest, or none, as a script sees it.

    Attributes:
        bits: bits of an address, 32 or 64.
        order: byte order of the guest's memory, "little" or "big".
        cpus: how many there are.
        stacked: bytes from the stack pointer to the first argument on the stack, at a function's
            entry; negative where the stack grows upwards.
        callers: direction of the next argument on the stack: 1 above, -1 below.
    """

    bits: int
    order: str
    cpus: int
    stacked: int
    callers: int

    def type(self, name: str) -> ValueType | None:
        """Return a C type by its name, as debug information has it: `struct foo`, a typedef; None:
        there is none.
        """

    def enumerator(self, name: str) -> tuple[int, types.EnumType] | None:
        """Return (number, type) of an enumerator of debug information; None: there is none."""

    def names(self) -> Sequence[str]:
        """Return the names of functions and data, for suggestions."""

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return (address, size) of a symbol; None: there is none."""

    def register(self, name: str) -> int | None:
        """Return the number of the context's word that has a register; None: no such register."""

    def registers(self) -> Sequence[str]:
        """Return the names of registers, for messages."""


class NoGuest:
    """No guest at all: what begin, end and interval probes find."""

    bits = 64
    order: str = sys.byteorder
    cpus = 1
    stacked = 0
    callers = 1

    def type(self, name: str) -> ValueType | None:
        """Return None: there are no types."""
        return None

    def enumerator(self, name: str) -> tuple[int, types.EnumType] | None:
        """Return None: there are no types."""
        return None

    def names(self) -> Sequence[str]:
        """Return no names."""
        return ()

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return None: there are no symbols."""
        return None

    def register(self, name: str) -> int | None:
        """Return None: there are no registers."""
        return None

    def registers(self) -> Sequence[str]:
        """Return no names."""
        return ()


#: integer types by their names in scripts and in C
INTEGERS: dict[str, ValueType] = {
    **{f"int{bits}": types.IntegerType(bits, True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": types.IntegerType(bits, False) for bits in (8, 16, 32, 64)},
    **{f"int{bits}_t": types.IntegerType(bits, True) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": types.IntegerType(bits, False) for bits in (8, 16, 32, 64)},
    **{f"s{bits}": types.IntegerType(bits, True) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": types.IntegerType(bits, False) for bits in (8, 16, 32, 64)},
    **{f"__s{bits}": types.IntegerType(bits, True) for bits in (8, 16, 32, 64)},
    **{f"__u{bits}": types.IntegerType(bits, False) for bits in (8, 16, 32, 64)},
    "char": types.IntegerType(8, True),
    "signed char": types.IntegerType(8, True),
    "unsigned char": types.IntegerType(8, False),
    "short": types.IntegerType(16, True),
    "short int": types.IntegerType(16, True),
    "unsigned short": types.IntegerType(16, False),
    "unsigned short int": types.IntegerType(16, False),
    "int": types.IntegerType(32, True),
    "signed": types.IntegerType(32, True),
    "signed int": types.IntegerType(32, True),
    "unsigned": types.IntegerType(32, False),
    "unsigned int": types.IntegerType(32, False),
    "long long": types.IntegerType(64, True),
    "long long int": types.IntegerType(64, True),
    "unsigned long long": types.IntegerType(64, False),
    "unsigned long long int": types.IntegerType(64, False),
    "bool": types.BooleanType(),
    "_Bool": types.BooleanType(),
    "void": types.VoidType(),
}


def integer(name: str, bits: int) -> ValueType | None:
    """Return a basic type of C by its name: an integer, bool, a floating-point type or void; None:
    the name is none of these.

    Args:
        name: the type's name, as C writes it.
        bits: bits of an address, which `long` has as well.
    """
    words = {
        "long": True,
        "long int": True,
        "unsigned long": False,
        "unsigned long int": False,
        "size_t": False,
        "ssize_t": True,
        "intptr_t": True,
        "uintptr_t": False,
    }
    if name in words:
        return types.IntegerType(bits, words[name])
    if name in ("float", "double"):
        return types.FloatType(32 if name == "float" else 64)
    return INTEGERS.get(name)
