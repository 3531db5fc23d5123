"""Symbols that a machine's user lists, on any machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..arguments import look, shown
from ..errors import BadArgument
from ..symbols import Symbols

Where = Mapping[str, int | tuple[int, int]]
SymbolList = str | os.PathLike[str] | Where


def add_symbols(table: Symbols, symbols: SymbolList | None) -> None:
    """Add symbols that the user gives to a table.

    Args:
        table: the machine's symbols.
        symbols: name -> address or (address, size in bytes), mode bits included; or a file that
            Symbols.load() takes; None: there are none.

    Raises:
        BadArgument: they are something else.
        ImageError: the file cannot be read.
    """
    if isinstance(symbols, (str, os.PathLike)):
        table.load(symbols)
        return
    if not isinstance(symbols, Mapping | None):
        raise BadArgument(f"symbols is {shown(symbols)}", hint="pass a mapping, or a file's path")
    for name, where in (symbols or {}).items():
        addr, size = where if isinstance(where, tuple) and len(where) == 2 else (where, 0)
        look(f"the address of {shown(name)}", addr)
        mode = addr & table.mode_bits
        table.add(name, addr - mode, size, mode=mode)
