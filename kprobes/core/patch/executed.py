"""Instructions that another instruction executes out of their place (z/Architecture's EXECUTE).

EXECUTE reads its target as data, so it would execute a breakpoint or a jump that stands there.
walk.py finds the targets within a function. This module looks at all text around for EXECUTEs in
other functions, and refuses probes and jumps at their targets. hit/executed.py deals with an
EXECUTE that was not found.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from ...arch._base import COMPUTED, Arch, Insn
from ...errors import Unprobeable
from ...symbols import Symbols

_PAGE = 4096
_MOST = 1 << 14  # pages looked at
_LONGEST = 128  # bytes behind a page that an instruction sequence at its end may need


def is_relative(insn: Insn) -> bool:
    """Return True where an instruction has an operand or a target at an address relative to it.

    z/Architecture counts from the instruction's own address, even if EXECUTE executes it
    (Principles of Operation, "Address Generation"). Not all engines do: then the address changes
    where the EXECUTE is displaced.
    """
    return insn.operand is not None or insn.target is not None


class Executed:
    """Finds the EXECUTEs and their targets, in text that has symbols or is mapped beside such
    text.
    """

    def __init__(
        self,
        arch: Arch,
        read: Callable[[int, int], bytes],
        executable: Callable[[int], bool],
        symbols: Symbols,
        counts_from_executed: bool,
    ) -> None:
        """Prepare; no text is searched yet.

        Args:
            arch: the guest's architecture.
            read: (address, bytes) -> original text, fewer bytes where memory ends.
            executable: (address) -> True where the guest may execute.
            symbols: the machine's; they say where text is.
            counts_from_executed: True where relative addresses of executed instructions count from
                these on this machine.
        """
        self._arch = arch
        self._read = read
        self._executable = executable
        self._symbols = symbols
        self._counts_from_executed = counts_from_executed
        # page -> (its text and what follows it, [(address of an EXECUTE, of its target)])
        self._pages: dict[int, tuple[bytes, list[tuple[int, int]]]] = {}
        self._by: dict[int, int] = {}  # target -> EXECUTE
        self._changes = -1  # Symbols.changes at the last look

    def by(self, addr: int) -> int | None:
        """Return the address of an EXECUTE whose target is `addr`; None where none is known.

        Where symbols have changed since the last call, all text is searched again first.
        """
        if self._arch.executing is not None and self._changes != self._symbols.changes:
            self._changes = self._symbols.changes
            self._look()
        return self._by.get(addr)

    def check_probe(
        self,
        insn: Insn,
        within: Mapping[int, Insn],
        places: Container[int],
        decode: Callable[[int], Insn],
    ) -> None:
        """Check that no EXECUTE has the instruction as its target, and that it is not an EXECUTE of
        its own bytes, or of an instruction whose relative address the machine counts from the
        EXECUTE.

        Args:
            insn: the instruction to be probed.
            within: the EXECUTEs of the instruction's function: target address -> the EXECUTE;
                COMPUTED -> one whose target is not known.
            places: the addresses that a COMPUTED target may be.
            decode: (address) -> the instruction there.

        Raises:
            Unprobeable: an EXECUTE would execute the breakpoint, or would find another operand or
                target where it is displaced.
        """
        at = insn.executes
        if at is not None and at != COMPUTED:
            target = decode(at)
            if at < insn.next and insn.addr < at + target.size:
                raise Unprobeable(
                    "executes its own bytes, where the breakpoint would be",
                    address=insn.addr,
                    hint="probe a neighbour",
                )
            if not self._counts_from_executed and is_relative(target):
                raise Unprobeable(
                    f"executes {target.name} at {at:#x}, whose relative address this machine "
                    f"counts from the {insn.name}, which is displaced, or it is not known that it "
                    "does not",
                    address=insn.addr,
                    hint="probe a neighbour",
                )
        inside = within.get(insn.addr) or (within.get(COMPUTED) if insn.addr in places else None)
        by = self.by(insn.addr) if inside is None else inside.addr
        if by is not None:
            name = decode(by).name
            raise Unprobeable(
                f"{insn.name} is executed by the {name} at {by:#x}, which would execute the "
                "breakpoint",
                address=insn.addr,
                hint=f"probe the {name}",
            )

    def why_no_jump(self, start: int, end: int, within: Mapping[int, Insn] | None) -> str:
        """Return why no jump may replace [start, end), as far as EXECUTEs matter; "": one may.

        An EXECUTE of a part of the jump would execute anything, without a trap that tells of it.
        The first byte is not looked at here.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
            within: the EXECUTEs of the function: target address -> the EXECUTE; COMPUTED -> one
                whose target is computed, which may execute any part. None: the text belongs to no
                known function, which is a reason.
        """
        if within is None:
            return "without a symbol nobody knows what executes it from elsewhere"
        if COMPUTED in within:
            by_address = within[COMPUTED]
            return f"{by_address.name} at {by_address.addr:#x} may execute what the jump replaces"
        for addr in range(start + 1, end):
            by = self.by(addr)
            if by is not None:
                return (
                    f"the instruction at {by:#x} executes the one at {addr:#x}, inside the region"
                )
        return ""

    def _look(self) -> None:
        """Search text for EXECUTEs, in the pages that are new or have changed; set `_pages` and
        `_by` anew, for all pages.
        """
        assert self._arch.executing is not None
        find = self._arch.executing.all
        pages = {}
        for page in self._text_pages():
            text = self._read(page, _PAGE + _LONGEST)
            known = self._pages.get(page)
            found = known[1] if known is not None and known[0] == text else list(find(text, page))
            pages[page] = text, found
        self._pages = pages
        self._by = {target: executing for _, found in pages.values() for executing, target in found}

    def _text_pages(self) -> Iterable[int]:
        """Return the addresses of pages that have functions, and of executable pages around them.

        Those around are added up to the first that is not executable, or _MOST pages in all.
        """
        pages: set[int] = set()
        for symbol in self._symbols:
            if symbol.kind != "object":
                end = symbol.address + max(symbol.size, 1)
                pages.update(range(symbol.address & -_PAGE, end, _PAGE))
        for step in (-_PAGE, _PAGE):
            for page in sorted(pages, reverse=step < 0):
                while (
                    (page := page + step) not in pages
                    and len(pages) < _MOST
                    and self._executable(page)
                ):
                    pages.add(page)
        return pages
