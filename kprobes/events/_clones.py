"""The compiler's copies of functions: GCC's clones, and LLVM's."""

from __future__ import annotations

import re

from ..names import demangle, is_mangled, means
from ..symbols import Symbol, Symbols

#: what compilers append to a function's name for a copy of all its code
_CLONE = re.compile(r"(?:\.(?:constprop|isra|lto_priv|llvm|specialized)\.\d+)+", re.ASCII)
#: the same, or also for the part that is left of a function whose beginning is inlined
_PART = re.compile(r"(?:\.(?:constprop|isra|lto_priv|llvm|specialized|part)\.\d+)+", re.ASCII)


def clones_of(symbols: Symbols, name: str, parts: bool = False) -> list[Symbol]:
    """Return the clones of a function: symbols of copies of its code that the compiler has made.

    Args:
        symbols: where to look.
        name: the function's, in C++ with scopes or without parameters.
        parts: True: return also what is left of a function whose beginning is inlined
            (`name.part.0`); False: only copies of all its code.
    """
    behind = _PART if parts else _CLONE
    found = []
    for symbol in symbols:
        base, dot, rest = symbol.name.partition(".")
        if not dot or symbol.kind != "func" or not behind.fullmatch(dot + rest):
            continue
        if base == name or (is_mangled(base) and means(name, demangle(base))):
            found.append(symbol)
    return found


def is_part(name: str) -> bool:
    """Return True for the name of what is left of a function whose beginning is inlined.

    A return of this part is one of the function's, but not every call of the function gets there.

    Args:
        name: of a symbol.
    """
    return ".part." in name
