"""Resolves what the user wrote (symbol or address, and offset) to an address.

A code address may have mode bits, which say the instruction set's mode (ARM: bit 0 is Thumb).
"""

from __future__ import annotations

import re

from attrs import frozen

from ...arch._base import Entry
from ...errors import BadLocation, GuestFault
from ...machine._base import Machine
from ...symbols import Symbol, address_of
from ..patch.text import Text

#: "sym+0x10", "sym+020" (octal), "sym+16"
_PLUS = re.compile(
    r"(?P<name>.+?)\+(?P<offset>0[xX][0-9a-fA-F]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19})", re.DOTALL
)


@frozen(kw_only=True)
class Location:
    """A resolved place.

    Attributes:
        address: mode bits stripped.
        mode: mode bits.
        symbol: the function it lies in; None: none is known.
        offset: bytes from the symbol; 0 where that is None.
        entry: True at a function entry, and where no function is known.
    """

    address: int
    mode: int
    symbol: Symbol | None
    offset: int
    entry: bool


def locate(
    machine: Machine, text: Text, symbol_name: str | None, addr: int | None, offset: int
) -> Location:
    """Resolve a place that a user has given as a symbol or an address, and an offset.

    Args:
        machine: has the symbols.
        text: original guest text.
        symbol_name: "f", "module:f", "f+0x10", or an address as text, if no symbol is called so;
            None: `addr` is given.
        addr: an address, which may have mode bits; None: `symbol_name` is given.
        offset: bytes that are added.

    Raises:
        BadLocation: not exactly one of `symbol_name` and `addr` is given, `symbol_name` is no
            string, the offset from a symbol is negative or leads out of the function, or an
            address has mode bits that are not those of the function's code.
        UnknownSymbol, AmbiguousSymbol: the symbol does not name one place.
    """
    if (symbol_name is None) == (addr is None):
        raise BadLocation(
            "both symbol_name and addr are given"
            if addr is not None
            else "neither symbol_name nor addr is given",
            symbol=symbol_name,
            address=addr,
            hint="give exactly one of them",
        )
    if symbol_name is not None:
        if not isinstance(symbol_name, str):
            raise BadLocation(
                f"symbol_name is {symbol_name!r}, not a string", hint="give an address as addr="
            )
        name, more = split_offset(symbol_name, machine)
        if (number := address_of(name)) is not None and name not in machine.symbols:
            return _at_address(machine, text, number + offset + more)
        return _at_symbol(machine, text, machine.symbols[name], offset + more)
    assert addr is not None
    return _at_address(machine, text, addr + offset)


def split_offset(name: str, machine: Machine) -> tuple[str, int]:
    """Split "sym+0x10" into ("sym", 16).

    Args:
        name: what the user wrote. A name that the symbol table has as it is stays whole.
        machine: has the symbols.

    Returns:
        (name without offset, offset in bytes, 0 where there is none).
    """
    match = None if name in machine.symbols else _PLUS.fullmatch(name)
    if match is None:
        return name, 0
    return match["name"], int(re.sub("^0(?=[0-7])", "0o", match["offset"]), 0)


def _entry(machine: Machine, text: Text, value: int) -> Entry:
    """Return the function entry that a code address stands for.

    That depends on marks in the text, such as a descriptor or a landing pad. Unmapped memory has
    none.

    Args:
        machine: runs the guest.
        text: reads guest text without breakpoints.
        value: the address, as pointers have it.
    """
    try:
        return machine.arch.pointers.code_address(value, text.read)
    except GuestFault:
        mode = value & machine.arch.pointers.mode_bits
        return Entry(addr=value - mode, mode=mode)


def code_of(machine: Machine, symbol: Symbol, entry: Entry) -> Symbol:
    """Return the symbol of a function's code, where the given symbol may be that of its descriptor.

    Args:
        machine: has the symbols.
        symbol: of the function.
        entry: the function's entry, that the symbol's address stands for.

    Returns:
        The symbol that covers the entry; `symbol` itself where that is at the entry, or none covers
        it.
    """
    if symbol.address == entry.addr:
        return symbol
    return machine.symbols.covering(entry.addr) or symbol


def extent(machine: Machine, text: Text, symbol: Symbol) -> tuple[int, int]:
    """Return (start, end) of a function's code: addresses of its first byte and behind its last.

    Where the code's size is not known, `end` is not above `start`.

    Args:
        machine: has the symbols.
        text: reads guest text without breakpoints.
        symbol: of the function, or of its descriptor.
    """
    entry = _entry(machine, text, symbol.address | symbol.mode)
    code = code_of(machine, symbol, entry)
    return entry.addr, entry.addr + machine.symbols.extent(code) - code.address


def _at_symbol(machine: Machine, text: Text, symbol: Symbol, offset: int) -> Location:
    """Return the location `offset` bytes behind a symbol.

    Args:
        machine: runs the guest.
        text: reads guest text without breakpoints.
        symbol: of a function.
        offset: bytes.

    Returns:
        The location. Its symbol is the one that covers the address, which need not be `symbol`.

    Raises:
        BadLocation: the offset is negative, or leads behind the symbol's end.
    """
    if offset < 0:
        raise BadLocation(
            f"offset {offset} is negative",
            symbol=symbol.name,
            hint="offsets count up from the symbol",
        )
    entry = _entry(machine, text, symbol.address | symbol.mode)
    code = code_of(machine, symbol, entry)
    end = machine.symbols.extent(code)
    address = entry.place(offset)
    if (
        offset
        and end
        and address >= max(end, entry.addr + 1)
        and machine.symbols.covering(address) is not code
    ):
        raise BadLocation(
            f"offset {offset:#x} is beyond its {end - entry.addr} bytes",
            symbol=symbol.name,
            address=address,
            hint="use the symbol that covers the place",
            python="or addr=",
        )
    owner = machine.symbols.covering(address) or symbol
    return Location(
        address=address,
        mode=entry.mode | symbol.mode,
        symbol=owner,
        offset=address - owner.address,
        entry=offset in entry.entries,
    )


def _at_address(machine: Machine, text: Text, addr: int) -> Location:
    """Return the location of an address, which may have mode bits.

    Args:
        machine: runs the guest.
        text: reads guest text without breakpoints.
        addr: the address.

    Raises:
        BadLocation: the mode bits say another mode than the symbol's there.
    """
    entry = _entry(machine, text, addr)
    symbol = machine.symbols.covering(entry.addr)
    if symbol is None:
        return Location(address=entry.addr, mode=entry.mode, symbol=None, offset=0, entry=True)
    start = _entry(machine, text, symbol.address | symbol.mode)
    if entry.mode & ~start.mode:
        raise BadLocation(
            f"an address of {machine.arch.pointers.mode} code, and the code there is not",
            address=addr,
            symbol=symbol.name,
            hint=f"use addr={entry.addr:#x}",
        )
    return Location(
        address=entry.addr,
        mode=entry.mode | symbol.mode,
        symbol=symbol,
        offset=entry.addr - symbol.address,
        entry=entry.addr - start.addr in start.entries,
    )
