"""A parsed event: what it fetches at a hit, and how a hit is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen

from ..errors import EventError, GuestFault, KprobeError, NotAnInstruction, NotFunctionEntry
from ..regs import Regs
from ..stacks import INCOMPLETE, MARK
from ..symbols import CONTROLS, Symbol, Symbols
from ._styles import Type, Value

Saved = Sequence[Any]  #: a return event's `$argN` as they were at entry; None where unreadable
Read = Callable[[Regs, Saved], int]
Plan = Callable[[Regs, Saved], Value]


@frozen
class KeptAtEntry:
    """A value that a return event keeps of its function's entry, besides arguments by number.

    Attributes:
        name: the variable's.
        read: fetches it at the entry.
    """

    name: str
    read: Plan = field(eq=False, repr=False)


_REFUSALS = {NotAnInstruction: "BAD_INSN_BNDRY", NotFunctionEntry: "BAD_RETPROBE"}


@frozen(kw_only=True)
class Argument:
    """An argument `name=fetch[:type]` of an event.

    Attributes:
        name: as written, or made up.
        text: what stands behind the equals sign.
        type: of its value.
        position: column of the argument in the definition.
        read: fetches its value at a hit.
        source: the parsed fetch.
    """

    name: str
    text: str
    type: Type
    position: int
    read: Plan = field(eq=False, repr=False)
    source: Any = field(eq=False, repr=False)  #: the parsed fetch


@frozen(kw_only=True)
class Event:
    """A parsed event; str() gives its normalized definition.

    Attributes:
        kind: "p", "r", or "w" for accesses to memory.
        group: as written, or "kprobes"; of f events "fprobes".
        name: as written, or made of the place.
        symbol: as written (`module:name` too); None for a bare address.
        offset: bytes from the symbol.
        address: of the place; of a "w" event, of the memory.
        target: the same with mode bits (ARM: bit 0), what a probe's addr= takes.
        maxactive: calls that a return event follows at once; 0: as many as are usual.
        args: what is fetched at a hit.
        saves: what a return event keeps of the function's entry: arguments (from 0), and others.
        text: the definition, its words joined by single blanks.
        position: column of the place in it.
        watched: of a "w" event, how the place is written; else "".
        access: of a "w" event, "r", "w" or "rw"; else "".
        size: of a "w" event, bytes of the memory; else 0.
        semaphore: address of the 16 bits that count who traces this marker; 0: there are none.
        written: "f" where it was written as an f event; else "".
    """

    kind: str
    group: str
    name: str
    symbol: str | None
    offset: int
    address: int
    target: int
    maxactive: int
    args: tuple[Argument, ...]
    saves: tuple[int | KeptAtEntry, ...]
    text: str
    position: int
    watched: str = ""
    access: str = ""
    size: int = 0
    semaphore: int = 0
    written: str = ""
    _where: str = field(repr=False)
    _symbols: Symbols = field(eq=False, repr=False)

    def __str__(self) -> str:
        """Return the normalized definition: `p:GROUP/NAME PLACE NAME=FETCH:TYPE ...`."""
        place = self.watched or (
            f"{self.target:#x}"
            if self.symbol is None
            else f"{self.symbol}+{self.offset}".removesuffix("+0")
        )
        place += f"({self.semaphore:#x})" if self.semaphore else ""
        place += "%return" if self.written and self.kind == "r" else ""
        head = f"{self.written or self.kind}{self.maxactive or ''}:{self.group}/{self.name} {place}"
        return " ".join([head, *(f"{arg.name}={arg.text}" for arg in self.args)])

    @property
    def function(self) -> str:
        """Name of the function that the place is in, with the image's in front where several
        addresses have the name; the address where no function is known.
        """
        if self.symbol is not None:
            return self.symbol
        found = self._symbols.covering(self.address)
        if found is None:
            return f"{self.target:#x}"
        same = {symbol.address for symbol in self._symbols.of_name(found.name)}
        module = found.module or self._symbols.main
        return f"{module}:{found.name}" if len(same) > 1 and module else found.name

    def enter(self, regs: Regs) -> tuple[Value, ...]:
        """Fetch at the function's entry what a return event keeps.

        Returns:
            The values for fetch()'s `saved`, in the order of `saves`; None where memory is
            unreadable.
        """
        return tuple([_argument(regs, n) for n in self.saves])

    def fetch(self, regs: Regs, saved: Saved = ()) -> tuple[Value, ...]:
        """Return the arguments' values at a hit.

        Args:
            regs: the registers at the hit.
            saved: of a return event, what enter() gave; of a "w" event, the value before, the value
                after, and the address.

        Returns:
            A value for each argument: None where guest memory is unreadable, a tuple for an array.
        """
        return tuple([arg.read(regs, saved) for arg in self.args])

    def format(self, values: Sequence[Value], return_address: int = 0) -> str:
        """Return a hit as ftrace prints it: `name: (sym+0xOFF/0xSIZE) a=0x1`.

        Args:
            values: as fetch() gives them.
            return_address: where a return event's function returns to; of a "w" event, the
                instruction that accessed. Not used for "p".
        """
        back = "" if self.kind == "p" else locate(self._symbols, return_address)
        where = {"p": self._where, "w": back}.get(self.kind, f"{back} <- {self._where}")
        shown = [
            f" {arg.name}={arg.type.show(value)}"
            for arg, value in zip(self.args, values, strict=True)
        ]
        return f"{self.name}: ({where}){''.join(shown)}"

    def as_dict(self, values: Sequence[Value], return_address: int = 0) -> dict[str, object]:
        """Return a hit as a record for JSON: the event's own facts, and the values by name under
        `args`.

        Args:
            values: as fetch() gives them.
            return_address: where a return event's function returns to; of a "w" event, the
                instruction that accessed. Not used for "p".

        Returns:
            "group", "name", "kind", "symbol", "offset", "address" and "args"; of a return event
            also "return_address" and "caller" (its name), of a "w" event also "access", "size" and
            "caller".
        """
        record = {
            name: getattr(self, name)
            for name in ("group", "name", "kind", "symbol", "offset", "address")
        }
        if self.kind == "r":
            record |= {
                "return_address": return_address,
                "caller": locate(self._symbols, return_address),
            }
        if self.kind == "w":
            record |= {
                "access": self.access,
                "size": self.size,
                "caller": locate(self._symbols, return_address),
            }
        return record | {
            "args": {arg.name: value for arg, value in zip(self.args, values, strict=True)}
        }

    def refused(self, error: KprobeError) -> EventError:
        """Return the EventError for a probe whose registration was refused; it points at the
        event's place.
        """
        return EventError(
            _REFUSALS.get(type(error), "FAIL_REG_PROBE"), error.plain, self.text, self.position
        )


def place_of(event: Event) -> str:
    """Return the place of an event as ftrace shows it: `sym+0xOFF/0xSIZE`, of return events the
    function's name, of watch events the memory.
    """
    return event._where or event.watched


def locate(symbols: Symbols, address: int, returns: bool = False) -> str:
    """Return an address as `name+0xOFF/0xSIZE`, or as a bare number where no symbol covers it.

    Args:
        symbols: of the guest.
        address: the address; INCOMPLETE, which ends an incomplete stack, gives MARK.
        returns: True for a return address: the function that has the call before it is meant,
            which may end there.
    """
    if address == INCOMPLETE:
        return MARK
    symbol = symbols.covering(address - 1) if returns else None
    if symbol is None:
        symbol = symbols.covering(address)
    return f"{address:#x}" if symbol is None else located(symbols, symbol, address)


def located(symbols: Symbols, symbol: Symbol, address: int) -> str:
    """Return an address as `name+0xOFF/0xSIZE` of a symbol that covers it."""
    size = max(symbols.extent(symbol) - symbol.address, 0)
    return f"{symbol.name.translate(CONTROLS)}+{address - symbol.address:#x}/{size:#x}"


def _argument(regs: Regs, n: int | KeptAtEntry) -> Value:
    """Return what a return event keeps of the function's entry, or None where memory is unreadable.

    Args:
        regs: the registers at the entry.
        n: an argument's number, from 0, or what is fetched by name.
    """
    try:
        return n.read(regs, ()) if isinstance(n, KeptAtEntry) else regs.arg(n)
    except GuestFault:
        return None
