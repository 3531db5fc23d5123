"""Places where no probe may be: what the user forbids, and the library's own pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...errors import BadLocation, NotText
from ...symbols import Symbol, Symbols

#: Functions that return twice. A return probe's instance is gone after the first return, and the
#: second would find none.
RETURNS_TWICE = frozenset(
    {
        "setjmp",
        "_setjmp",
        "__setjmp",
        "sigsetjmp",
        "__sigsetjmp",
        "vfork",
        "__vfork",
        "getcontext",
        "swapcontext",
    }
)
PROGRAM_ENTRY = "_start"  #: where a kernel begins a program


class Blacklist:
    """Forbidden address ranges, each with a name.

    `addr in blacklist` tells whether an address is forbidden. Iteration gives (start, end, name),
    by address.
    """

    def __init__(
        self,
        symbols: Symbols,
        extent: Callable[[Symbol], tuple[int, int]],
        ours: Callable[[int], bool],
        pages: Callable[[], list[tuple[int, int]]],
    ) -> None:
        """Begin with the library's own pages alone.

        Args:
            symbols: the machine's.
            extent: (symbol) -> (start, end) of the function's code.
            ours: (address) -> True in the library's own pages, which cannot be taken off the list.
            pages: () -> [(start, end)] of those pages.
        """
        self._symbols = symbols
        self._extent = extent
        self.ours = ours
        self._pages = pages
        self._entries: dict[tuple[int, int], str] = {}

    def add(self, what: str | tuple[int, int]) -> int:
        """Forbid a function, or a range of addresses.

        Args:
            what: the function's symbol, or (start, end).

        Returns:
            The size of what is forbidden, in bytes.

        Raises:
            UnknownSymbol, AmbiguousSymbol: the symbol does not name one function.
            NotText: the symbol has no size.
            BadLocation: the range is empty.
        """
        key, name = self._key(what)
        self._entries[key] = name
        return key[1] - key[0]

    def remove(self, what: str | tuple[int, int]) -> None:
        """Take an entry off the list.

        Args:
            what: the function's symbol, or (start, end), as it was given to add().

        Raises:
            BadLocation: there is no such entry, or the range is empty.
            UnknownSymbol, AmbiguousSymbol: the symbol does not name one function.
            NotText: the symbol has no size.
        """
        key, name = self._key(what)
        if key not in self._entries:
            raise BadLocation(
                "is not on the blacklist",
                address=key[0],
                symbol=name or None,
                hint="iterate over k.blacklist to see what is",
            )
        del self._entries[key]

    def _key(self, what: str | tuple[int, int]) -> tuple[tuple[int, int], str]:
        """Return the range and the name of what a user forbids.

        Args:
            what: a function's symbol, or (start, end).

        Returns:
            ((start, end), name); the name is "" where no symbol covers the range's start.

        Raises:
            NotText: the symbol has no size.
            BadLocation: the range is empty.
            UnknownSymbol, AmbiguousSymbol: the symbol does not name one function.
        """
        if isinstance(what, str):
            symbol = self._symbols[what]
            start, end = self._extent(symbol)
            if end <= start:
                raise NotText("has no size", address=start, symbol=what, hint="pass (start, end)")
            return (start, end), symbol.name
        start, end = what
        if end <= start:
            raise BadLocation(
                f"the range {start:#x}-{end:#x} is empty", hint="pass (start, end) with start < end"
            )
        found = self._symbols.covering(start)
        return (start, end), found.name if found else ""

    def why(self, addr: int) -> str:
        """Return why an address is forbidden; "": it is not.

        With `foo` its parts are forbidden, too, which compilers call `foo.cold` or `foo.part.0`.
        """
        if self.ours(addr):
            return "this is a page of the library's own"
        entry = self._entry(addr)
        if entry is not None:
            return f"{entry or 'the range'} is blacklisted"
        found = self._symbols.covering(addr)
        base, dot, _ = found.name.lstrip(".").partition(".") if found is not None else ("", "", "")
        if found is not None and dot and self._forbids(base):
            return f"{base} is blacklisted, and with it {found.name}"
        return ""

    def _forbids(self, name: str) -> bool:
        """Return True if a function of this name is on the list."""
        return bool(self._entries) and any(
            s.name == name and self._entry(self._extent(s)[0]) is not None for s in self._symbols
        )

    def _entry(self, addr: int) -> str | None:
        """Return the name of the entry that has an address; None: no entry has it."""
        return next(
            (name for (start, end), name in self._entries.items() if start <= addr < end), None
        )

    def __contains__(self, addr: int) -> bool:
        """Return True if an address is forbidden: by an entry, or as one of the library's own
        pages.
        """
        return bool(self.why(addr))

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        """Iterate over (start, end, name) by address, the library's own pages included."""
        entries = [(start, end, name) for (start, end), name in self._entries.items()]
        own = [(start, end, "kprobe_insn_page") for start, end in self._pages()]
        return iter(sorted(entries + own))
