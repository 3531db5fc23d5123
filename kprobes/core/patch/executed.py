"""Instructions that others execute out of their place (z/Architecture's EXECUTE): there they would
execute a breakpoint, or a jump.

A walk knows those of its function. Here is who executes what from other functions, by a look at all
the text around, and what neither a breakpoint nor a jump may replace for that. What becomes of a
hit at one that nobody knew of is in hit/executed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from ...arch._base import COMPUTED, Arch, Insn
from ...errors import Unprobeable
from ...symbols import Symbols

_PAGE = 4096
_MOST = 1 << 14  # pages looked at


class Executed:
    """Addresses of executed instructions, page by page of the text that has symbols, and of what is
    mapped beside it.
    """

    def __init__(
        self,
        arch: Arch,
        read: Callable[[int, int], bytes],
        executable: Callable[[int], bool],
        symbols: Symbols,
    ) -> None:
        self._arch = arch
        self._read = read
        self._executable = executable
        self._symbols = symbols
        # page -> its text and what goes on, what was found in it
        self._pages: dict[int, tuple[bytes, list[tuple[int, int]]]] = {}
        self._by: dict[int, int] = {}
        self._changes = -1

    def by(self, addr: int) -> int | None:
        """Return the instruction that executes the one at `addr` in its own place; None where none
        is known.
        """
        if self._arch.executing is not None and self._changes != self._symbols.changes:
            self._changes = self._symbols.changes
            self._look()
        return self._by.get(addr)

    def check_probe(self, insn: Insn, within: Mapping[int, Insn], places: Container[int],
                    decode: Callable[[int], Insn]) -> None:
        """Raise Unprobeable where somebody executes the instruction's bytes in another place: it
        would execute the breakpoint.

        within: address, or COMPUTED -> who executes what is there, in its function. places: what
        COMPUTED may stand for.
        """
        at = insn.executes
        if (
            at is not None
            and at != COMPUTED
            and at < insn.next
            and insn.addr < at + decode(at).size
        ):
            raise Unprobeable(
                "executes its own bytes, where the breakpoint would be",
                address=insn.addr,
                hint="probe a neighbour",
            )
        inside = within.get(insn.addr) or (within.get(COMPUTED) if insn.addr in places else None)
        by = self.by(insn.addr) if inside is None else inside.addr
        if by is not None:
            name = decode(by).name
            raise Unprobeable(
                f"{insn.name} is executed by the {name} at {by:#x}, which would execute the breakpoint",
                address=insn.addr,
                hint=f"probe the {name}",
            )

    def why_no_jump(self, start: int, end: int, within: Mapping[int, Insn] | None) -> str:
        """Why no jump may stand in [start, end), "" where it may: it would be executed in another
        place, and no trap tells.

        within: as above; None: it is in no function.
        """
        if within is None:
            return "without a symbol nobody knows what executes it from elsewhere"
        if COMPUTED in within:
            return f"{within[COMPUTED].name} at {within[COMPUTED].addr:#x} may execute what the jump replaces"
        known = ((addr, self.by(addr)) for addr in range(start + 1, end))
        return next((f"the instruction at {by:#x} executes the one at {addr:#x}, inside the region"
                     for addr, by in known if by is not None), "")

    def _look(self) -> None:
        """Look at pages that are new or have changed."""
        assert self._arch.executing is not None
        find, pages = self._arch.executing.all, {}
        for page in self._text_pages():
            text, known = self._read(page, _PAGE + 128), self._pages.get(page)
            found = known[1] if known is not None and known[0] == text else list(find(text, page))
            pages[page] = text, found
        self._pages = pages
        self._by = {target: executing for _, found in pages.values() for executing, target in found}

    def _text_pages(self) -> Iterable[int]:
        """Pages of functions, and the executable ones next to them."""
        pages = {page for s in self._symbols if s.kind != "object"
                 for page in range(s.address & -_PAGE, max(s.address + s.size, s.address + 1), _PAGE)}  # fmt: skip
        for step in (-_PAGE, _PAGE):
            for page in sorted(pages, reverse=step < 0):
                while (
                    (page := page + step) not in pages
                    and len(pages) < _MOST
                    and self._executable(page)
                ):
                    pages.add(page)
        return pages
