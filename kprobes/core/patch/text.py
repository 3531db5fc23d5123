"""Keeps the text beneath the library's patches, and finds out whether the patches are still there.

Others may write text: the engine's owner who restores a snapshot, or the guest. Before a run the
pages that hold patches are compared with what they were: a patch in whose place the original stands
is put back, and a patch that was taken away and stands there again goes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from weakref import WeakKeyDictionary

from ...errors import GuestFault
from ...machine._base import Machine
from .bits import Patch, only, over
from .writes import Writes


class TextOverwritten(RuntimeWarning):
    """The guest, or its owner, has overwritten a patch of ours; its bytes are left as they are."""


AT_A_TIME = 32  # pages compared before a run, unless one of them has changed: then all are
FORMER = 1 << 16  # patches remembered after they were taken away
_VERSIONS = count(1)  # of all texts, so that no two states of them have the same


Former = dict[int, dict[bytes, Patch]]  # address -> what stood there
#: by machine: a later Kprobes knows what earlier ones have taken away
_FORMER: WeakKeyDictionary[Machine, Former] = WeakKeyDictionary()


class Pages:
    """The pages of some addresses."""

    def __init__(self, size: int) -> None:
        """
        Args:
            size: bytes of a page.
        """
        self._size = size
        self._counts: dict[int, int] = {}  # page -> how many of the addresses are in it
        self._list: list[int] | None = None

    def keep(self, addr: int) -> None:
        """Count an address."""
        page = addr & -self._size
        if page not in self._counts:
            self._list = None
        self._counts[page] = self._counts.get(page, 0) + 1

    def drop(self, addr: int) -> None:
        """Count an address no more."""
        page = addr & -self._size
        self._counts[page] -= 1
        if not self._counts[page]:
            del self._counts[page]
            self._list = None

    def listed(self) -> list[int]:
        """Return the pages, the same list until others are among them."""
        if self._list is None:
            self._list = list(self._counts)
        return self._list


class Text:
    """Guest text with our patches seen through. Every change of guest code by the core goes through
    here.

    Attributes:
        writes: tells of the guest's own, before they happen.
        doubtful: where patches are that stand for bytes behind them, which the guest may
            write unheard of.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._patches: dict[int, Patch] = {}
        self.writes = Writes(machine)
        self.doubtful: set[int] = set()
        self._longest = 1
        self._overwritten: list[int] = []
        self._outdated: list[int] = []
        self._former: Former = _FORMER.setdefault(machine, {})
        # page -> addresses where something of ours stands, or stood
        self._on: dict[int, set[int]] = {}
        self._pages: dict[int, bytes] = {}  # what the page was
        # page -> what stood in it, with our patches, when generation() last looked; how often that
        # was something else
        self._compared: dict[int, tuple[bytes, int]] = {}
        self._turn = 0
        # address of each patch that the guest may write -> what is there; the pages of these; when
        # that was so
        self._suspects: dict[int, bytes] = {}
        self._suspect_pages: Pages = Pages(machine.page_size)
        self._suspected = 0
        self._all: list[int] = []  # the pages of _on
        self._writable: list[int] = []  # the pages of _on that the guest may write
        self._judged = (-1, 0)  # when that was so
        self.version = next(_VERSIONS)  #: another one whenever patches come or go
        for addr in self._former:
            self._on.setdefault(addr & -machine.page_size, set()).add(addr)

    def read(self, addr: int, size: int) -> bytes:
        """Original bytes; GuestFault where memory is not mapped."""
        return self.original(addr, self._machine.read(addr, size))

    def original(self, addr: int, data: bytes) -> bytes:
        """Return `data`, read at `addr`, with the original bytes in the place of patches."""
        touching = self._touching(addr, len(data))
        if not touching:
            return data
        out = bytearray(data)
        for patch in touching:
            if self._holds(patch, addr, data):
                lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.old), addr + len(data))
                at, end = lo - patch.addr, hi - patch.addr
                out[lo - addr : hi - addr] = over(
                    out[lo - addr : hi - addr], patch.old[at:end], patch.mask[at:end]
                )
        return bytes(out)

    def generation(self, addr: int, size: int) -> int:
        """Return a number for [addr, addr + size) that grows whenever somebody else has written the
        pages there.

        The pages are compared as they stand, whatever patches are in them: the costs do not grow
        with the number of patches, as those of original() do.
        """
        page_size, total = self._machine.page_size, 0
        for page in range(addr & -page_size, addr + size, page_size):
            was, generation = self._compared.get(page, (b"", 0))
            try:
                now = self._machine.read(page, page_size)
            except GuestFault:
                now = b""
            if now != was or not now:
                generation += 1
                self._compared[page] = now, generation
            total += generation
        return total

    def _write(self, addr: int, data: bytes) -> None:
        """Write guest text, and note for generation() what stands there now.

        Where somebody else has written there before us, the page counts as changed.
        """
        page_size, end = self._machine.page_size, addr + len(data)
        for page in range(addr & -page_size, end, page_size):
            was, generation = self._compared.get(page, (b"", 0))
            if not was:
                continue
            lo, hi = max(addr, page), min(end, page + page_size)
            if self._machine.read(lo, hi - lo) == was[lo - page : hi - page]:
                was = was[: lo - page] + data[lo - addr : hi - addr] + was[hi - page :]
            else:
                was = b""
            self._compared[page] = was, generation
        self._machine.patch(addr, data)

    def _touching(self, addr: int, size: int) -> list[Patch]:
        """Patches with a byte in [addr, addr + size). Looks at the addresses or at the patches,
        whichever are fewer.
        """
        if size + self._longest < len(self._patches):
            near = (
                self._patches[a]
                for a in range(addr - self._longest + 1, addr + size)
                if a in self._patches
            )
            return [p for p in near if addr < p.addr + len(p.new)]
        return [
            p for p in self._patches.values() if p.addr < addr + size and addr < p.addr + len(p.new)
        ]

    def apply(self, addr: int, new: bytes, size: int = 0, mask: bytes = b"") -> Patch:
        """Put `new` over the text at `addr`, for an instruction of `size` bytes, until revert().
        mask: as in Patch.
        """
        now = self._machine.read(addr, len(new))
        tail = self.read(addr + len(new), size - len(new)) if size > len(new) else b""
        patch = (
            Patch(addr, only(new, mask), only(now, mask), tail, mask)
            if mask
            else Patch(addr, new, now, tail)
        )
        self._write(addr, over(now, patch.new, mask) if mask else new)
        self._keep(patch)
        return patch

    def _lay(self, patch: Patch, now: bytes, bits: bytes) -> None:
        """Write a patch's `new` or `old` over what is there."""
        self._write(patch.addr, over(now, bits, patch.mask))

    def replace(
        self, patch: Patch, addr: int, new: bytes, size: int = 0, mask: bytes = b""
    ) -> Patch:
        """Put `new` at `addr` where `patch` is, in one write that covers both. Returns the patch
        that is there now.

        A patch that somebody has overwritten meanwhile is left alone; revert() will say so.
        """
        if not patch.stands_in(self._machine.read(patch.addr, len(patch.new))):
            return patch
        if self._outlived(patch):
            self._outdated.append(patch.addr)
        lo, end = min(addr, patch.addr), addr + len(new)
        hi = max(end, patch.addr + len(patch.new))
        covered = self.read(lo, max(hi, addr + size) - lo)
        before = covered[: addr - lo]
        old = covered[addr - lo : end - lo]
        behind = covered[end - lo :]
        made = Patch(
            addr, only(new, mask), only(old, mask), behind[: max(addr + size - end, 0)], mask
        )
        self._write(lo, before + over(old, made.new, mask) + behind[: hi - end])
        self._was_here(patch)
        if addr != patch.addr:
            self._drop(patch)
        self._keep(made)
        return made

    def revert(self, patch: Patch) -> None:
        """Put the covered bytes back, unless somebody has overwritten the patch meanwhile: they are
        left, and warn() will say so.
        """
        self._drop(patch)
        now = self._machine.read(patch.addr, len(patch.new))
        if now == patch.new or (patch.mask and patch.stands_in(now)):
            self._lay(patch, now, patch.old)
            if self._outlived(patch):
                self._outdated.append(patch.addr)
        elif only(now, patch.mask) != patch.old or patch.old == patch.new or self._outlived(patch):
            self._overwritten.append(patch.addr)
        self._was_here(patch)

    def _outlived(self, patch: Patch) -> bool:
        """Return True if what the patch stands for is there no more: the guest has changed what
        lies behind its bytes.
        """
        return (
            bool(patch.tail)
            and self.read(patch.addr + len(patch.new), len(patch.tail)) != patch.tail
        )

    def _keep(self, patch: Patch) -> None:
        self._patches[patch.addr] = patch
        self.version = next(_VERSIONS)
        self._longest = max(self._longest, len(patch.new))
        end = patch.addr + len(patch.new) + len(patch.tail)
        self.writes.keep(patch.addr, end)
        self._suspect(patch)
        if patch.tail and not self.writes.watched and self.writes.may_write(patch.addr, end):
            self.doubtful.add(patch.addr)
        self._note(patch)

    def _drop(self, patch: Patch) -> None:
        del self._patches[patch.addr]
        if self._suspects.pop(patch.addr, None) is not None:
            self._suspect_pages.drop(patch.addr)
        self.doubtful.discard(patch.addr)
        self.version = next(_VERSIONS)
        self.writes.drop(patch.addr)

    def _was_here(self, patch: Patch) -> None:
        self._former.setdefault(patch.addr, {})[patch.new] = patch
        self._note(patch)
        if len(self._former) > FORMER:
            del self._former[next(iter(self._former))]

    def _note(self, patch: Patch) -> None:
        """Something was written there, by us."""
        size = self._machine.page_size
        for page in {patch.addr & -size, patch.addr + len(patch.new) - 1 & -size}:
            self._on.setdefault(page, set()).add(patch.addr)
            was = self._pages.get(page)
            if was is not None:
                lo, hi = max(patch.addr, page), min(patch.addr + len(patch.new), page + size)
                self._pages[page] = (
                    was[: lo - page] + self._machine.read(lo, hi - lo) + was[hi - page :]
                )

    # --- somebody else's writes

    def check(self) -> int:
        """Look whether somebody has written what we had: patches that are missing are put back. How
        many.

        Where the machine notes what is written, these pages are looked at, and those that the guest
        may write.
        """
        watching = self._machine.watching
        written = None if watching is None else watching.rewritten()
        if written is None:
            others = self._other(self._kept_pages())
        else:
            others = self._other(self._writable_pages())
            others += [
                page
                for page in written
                if page in self._on and page not in others and self._differs(page)
            ]
        return sum(self._repair(page) for page in others) if others else 0

    def _kept_pages(self) -> list[int]:
        """Return the pages where something of ours stands, or stood."""
        if len(self._all) != len(self._on):
            self._all = list(self._on)
        return self._all

    def _writable_pages(self) -> list[int]:
        """Of these the ones that the guest may write."""
        if self._judged != (state := (len(self._on), self.writes.changes)):
            self._judged, may_write = state, self.writes.may_write
            self._writable = [page for page in self._on if may_write(page, page + 1)]
        return self._writable

    def _suspect(self, patch: Patch) -> None:
        """Note a patch that the guest may write."""
        was = patch.new + patch.tail
        if self.writes.may_write(patch.addr, patch.addr + len(was)):
            if patch.addr not in self._suspects:
                self._suspect_pages.keep(patch.addr)
            self._suspects[patch.addr] = was

    def lost(self) -> list[int]:
        """Return the addresses of patches that the guest has written over since check(), where no
        store was reported.
        """
        if self._suspected != self.writes.changes:
            self._suspected = self.writes.changes
            self._suspects = {}
            self._suspect_pages = Pages(self._machine.page_size)
            for patch in self._patches.values():
                self._suspect(patch)
        if len(self._suspects) <= AT_A_TIME:
            read, changed = self._machine.read, self._differs
            return [addr for addr, was in self._suspects.items()
                    if read(addr, len(was)) != was and changed(addr) and self.outlived(addr)]
        return [
            addr
            for page in self._other(self._suspect_pages.listed())
            for addr in self._on[page]
            if self.outlived(addr)
        ]

    def _other(self, pages: list[int]) -> list[int]:
        """Return those of the pages that are not what they were."""
        if not pages:
            return []  # another list: check() adds to it
        if len(pages) > AT_A_TIME:
            self._turn = (self._turn + AT_A_TIME) % len(pages)
            some = pages[self._turn : self._turn + AT_A_TIME]
            some += pages[: AT_A_TIME - len(some)]
            if not any(self._differs(page) for page in some):
                return []
        return [page for page in pages if self._differs(page)]

    def outlived(self, addr: int) -> bool:
        """Return True if the patch at `addr` is there no more, nor is the original, nor one from
        before that somebody has restored; or if what it stands for besides is not.
        """
        patch = self._patches.get(addr)
        if patch is None or self._outlived(patch):
            return patch is not None
        if any(former.stands_in(self._machine.read(addr, len(former.new)))
               for former in self._former.get(addr, {}).values()):
            return False
        return self._beneath(patch, self._machine.read(addr, len(patch.new))) != patch.old

    def _differs(self, addr: int) -> bool:
        """Return True if the page is not what it was."""
        page = addr & -self._machine.page_size
        try:
            return self._machine.read(page, self._machine.page_size) != self._pages.get(page)
        except GuestFault:
            return False  # somebody has unmapped it: the machine will say so

    def _repair(self, page: int) -> int:
        back = sum(self._put_back(addr) for addr in self._on[page])
        self._pages[page] = self._machine.read(page, self._machine.page_size)
        return back

    def _put_back(self, addr: int) -> bool:
        self.stray(addr)
        patch = self._patches.get(addr)
        if patch is None or patch.old == patch.new:
            return False
        now = self._machine.read(addr, len(patch.new))
        if patch.stands_in(now) or self._beneath(patch, now) != patch.old or self._outlived(patch):
            return False
        self._lay(patch, now, patch.new)
        return True

    def stray(self, addr: int) -> bool:
        """Return True if a patch that was taken away stood there again: the original is back."""
        standing = self._patches.get(addr)
        if standing is not None and standing.stands_in(self._machine.read(addr, len(standing.new))):
            return False
        for former in self._former.get(addr, {}).values():
            now = self._machine.read(addr, len(former.new))
            if former.new != former.old and former.stands_in(now):
                self._lay(former, now, former.old)
                return True
        return False

    def lay_bare(self, addr: int) -> None:
        """The guest is about to write there, and what it writes goes over what it knows; or it has.
        The patch is to be dropped by forget().
        """
        patch = self._patches[addr]
        now = self._machine.read(addr, len(patch.new))
        if (bare := self._beneath(patch, now)) != only(now, patch.mask):
            self._lay(patch, now, bare)

    def _beneath(self, patch: Patch, now: bytes) -> bytes:
        """Return the text beneath a patch: the original, where nothing was written over it.

        The bytes tell what was written from the patch; where stores are not reported, units of
        instructions do: text is made of such, and a byte of another instruction may well equal one
        of the patch.
        """
        n, mine = 1 if self.writes.watched else self._machine.arch.insn_align, only(now, patch.mask)
        return b"".join(
            (patch.old if mine[at : at + n] == patch.new[at : at + n] else mine)[at : at + n]
            for at in range(0, len(mine), n)
        )

    def warn(self) -> None:
        """Warn of overwritten patches that were reverted. A warning may be raised (python -W
        error): so this is the last thing done.
        """
        if self._overwritten:
            where, self._overwritten = ", ".join(f"{addr:#x}" for addr in self._overwritten), []
            warnings.warn(
                f"text at {where} was overwritten while probed; it is left as it is",
                TextOverwritten,
                stacklevel=2,
            )
        if self._outdated:
            where, self._outdated = ", ".join(f"{addr:#x}" for addr in self._outdated), []
            warnings.warn(
                f"the guest has changed the instruction at {where} behind the probe's breakpoint: hits have "
                "executed it as it was "
                "when the probe was registered",
                TextOverwritten,
                stacklevel=2,
            )

    @contextmanager
    def bare(self) -> Iterator[None]:
        """Put the original text everywhere meanwhile, without taking it for a restored snapshot's:
        for proofs.
        """
        patches, self._patches = self._patches, {}
        for patch in patches.values():
            self._lay(patch, self._machine.read(patch.addr, len(patch.old)), patch.old)
        try:
            yield
        finally:
            for patch in patches.values():
                self._lay(patch, self._machine.read(patch.addr, len(patch.new)), patch.new)
            self._patches = patches

    def renew(self) -> None:
        """Forget where breakpoints stood before: the owner has put other text everywhere, and one
        there is the owner's.
        """
        self._former.clear()

    def forget(self, patch: Patch) -> None:
        """Drop a patch without touching memory (the text is gone)."""
        self._drop(patch)
        self._former.pop(patch.addr, None)

    def standing(self) -> Mapping[int, Patch]:
        """Return a copy of the patches in memory now, by address."""
        return self._patches.copy()

    @property
    def patches(self) -> list[Patch]:
        """Every patch in memory, by address."""
        return sorted(self._patches.values(), key=lambda p: p.addr)

    def _holds(self, patch: Patch, addr: int, data: bytes) -> bool:
        """Return True if the patch is still in memory, as far as `data`, read at `addr`, shows it:
        guest code may have replaced itself.
        """
        lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.new), addr + len(data))
        return lo >= hi or patch.stands_in(data[lo - addr : hi - addr], lo - patch.addr)
