"""Keeps the text beneath the library's patches, and finds out whether the patches are still there.

The core is this package. It writes text only through this module.

Others may write text: the guest, or the engine's owner, who restores a snapshot. So before a run
the pages that hold patches are compared with what they were. Where the original stands in the place
of a patch, the patch is put back; where a patch stands again that had been taken away, the original
is put back.
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
    """The guest, or its owner, has overwritten bytes that the library had patched. These bytes are
    left as they are.
    """


AT_A_TIME = 32  # pages compared before a run; if one of them has changed, all are
FORMER = 1 << 16  # addresses whose former patches are remembered
_VERSIONS = count(1)  # shared by all Texts: each state of each of them has a number of its own


#: address -> bytes of a patch that stood there, and was taken away -> the patch
Former = dict[int, dict[bytes, Patch]]
#: One for each machine, so that a later Kprobes knows what earlier ones have taken away.
_FORMER: WeakKeyDictionary[Machine, Former] = WeakKeyDictionary()


class Pages:
    """The pages that some addresses are in, each with the number of these addresses."""

    def __init__(self, size: int) -> None:
        """
        Args:
            size: bytes of a page.
        """
        self._size = size
        self._counts: dict[int, int] = {}  # page -> how many of the addresses are in it
        self._list: list[int] | None = None

    def keep(self, addr: int) -> None:
        """Add an address. Add it only once."""
        page = addr & -self._size
        if page not in self._counts:
            self._list = None
        self._counts[page] = self._counts.get(page, 0) + 1

    def drop(self, addr: int) -> None:
        """Remove an address that was added by keep()."""
        page = addr & -self._size
        self._counts[page] -= 1
        if not self._counts[page]:
            del self._counts[page]
            self._list = None

    def listed(self) -> list[int]:
        """Return the pages' addresses: the same list object until a page comes or goes."""
        if self._list is None:
            self._list = list(self._counts)
        return self._list


class Text:
    """Guest text without the library's patches. The core changes guest text only through this.

    Attributes:
        writes: reports the guest's own writes to patched text, before they happen.
        doubtful: addresses of patches with a `tail` that the guest may write without a report.
        version: a number that changes whenever a patch comes or goes.
        touched: page -> addresses of patches that begin or end in it, or did. While it is empty,
            check() has nothing to do.
        warns: warn() has something to warn of.
        suspects: patches that the guest may write: address -> the bytes there.
        suspected: Writes.changes when `suspects` were looked for. While it is still that, and there
            are none, lost() has nothing to do.
    """

    def __init__(self, machine: Machine) -> None:
        """Begin without patches; those that an earlier Kprobes on the machine took out are known as
        former.

        Args:
            machine: runs the guest.
        """
        self._machine = machine
        self.writes = Writes(machine)
        self.doubtful: set[int] = set()
        self.version = next(_VERSIONS)
        self._patches: dict[int, Patch] = {}  # address -> the patch in memory
        self._longest = 1  # bytes of the longest patch so far
        self._former: Former = _FORMER.setdefault(machine, {})
        # addresses to warn of: overwritten patches; patches whose tail the guest has changed
        self._overwritten: list[int] = []
        self._outdated: list[int] = []
        self.touched: dict[int, set[int]] = {}
        self._pages: dict[int, bytes] = {}  # page -> its bytes as the core has left them
        # page -> (its bytes, patches included, when generation() last looked; a number that grows
        # when somebody else has changed them)
        self._compared: dict[int, tuple[bytes, int]] = {}
        self._turn = 0  # which of the pages is compared first, where there are many
        self.suspects: dict[int, bytes] = {}
        self._suspect_pages: Pages = Pages(machine.page_size)
        self.suspected = 0
        self.warns = False
        self._all: list[int] = []  # the pages of `touched`
        self._writable: list[int] = []  # those that the guest may write
        # (pages in `touched`, Writes.changes) when they were looked for
        self._judged = (-1, 0)
        for addr in self._former:
            self.touched.setdefault(addr & -machine.page_size, set()).add(addr)

    def read(self, addr: int, size: int) -> bytes:
        """Return guest text as it would be without the library's patches.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: memory is not mapped there.
        """
        return self.original(addr, self._machine.read(addr, size))

    def original(self, addr: int, data: bytes) -> bytes:
        """Return bytes that were read from memory, with the original text in the place of patches.

        Args:
            addr: address that they were read at.
            data: the bytes. Where they do not show a patch, since the guest has overwritten it,
                they stay.
        """
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
        """Return a number that grows whenever the pages of [addr, addr + size) are written by
        others than the core.

        The pages are compared, patches included, with what they were at the last call, and kept for
        the next: this takes no longer where there are many patches. A page that is not mapped
        counts as changed at each call.

        Args:
            addr: address of the first byte.
            size: bytes.
        """
        page_size = self._machine.page_size
        total = 0
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
        """Write guest text, and note for generation() that the change is the core's own.

        If the bytes there were changed by others before, their page counts as changed.

        Args:
            addr: address of the first byte.
            data: what to write.
        """
        page_size = self._machine.page_size
        end = addr + len(data)
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
        """Return the patches that have a byte in [addr, addr + size), in no order.

        Args:
            addr: address of the first byte.
            size: bytes.
        """
        # look at the addresses or at the patches, whichever are fewer
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
        """Write a patch over the text, where it stays until revert() or replace(). revert() brings
        back the bytes that memory has now.

        Args:
            addr: address of the patch.
            new: its bytes.
            size: bytes of the instruction (or bundle) that it stands for; it may be longer than
                `new`.
            mask: the bits that it replaces; b"": all.

        Returns:
            The patch; it is in the tables now, and writes of the guest to its text are reported.
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

    def _write_masked(self, patch: Patch, now: bytes, bits: bytes) -> None:
        """Write a patch, or the original text under it, over what is in memory.

        Args:
            patch: the patch.
            now: the bytes that are in memory.
            bits: the patch's `new` or `old`; where the patch has a mask, only the bits in it are
                written.
        """
        self._write(patch.addr, over(now, bits, patch.mask))

    def replace(
        self, patch: Patch, addr: int, new: bytes, size: int = 0, mask: bytes = b""
    ) -> Patch:
        """Replace a patch by another one, in one write that covers both.

        A patch that was overwritten meanwhile by others is left alone; after revert(), warn() will
        tell of it. Where the guest has changed the rest of the instruction, warn() will tell of
        that, too.

        Args:
            patch: the patch in memory.
            addr: address of the other one; it touches the first.
            new: its bytes.
            size: bytes of the instruction (or bundle) that it stands for; it may be longer than
                `new`.
            mask: the bits that it replaces; b"": all.

        Returns:
            The other patch; `patch` itself where it was overwritten: nothing was written then.
        """
        if not patch.stands_in(self._machine.read(patch.addr, len(patch.new))):
            return patch
        if self._tail_changed(patch):
            self._outdated.append(patch.addr)
            self.warns = True
        # [lo, hi) is written, [addr, end) with the new patch
        lo = min(addr, patch.addr)
        end = addr + len(new)
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
        """Take a patch out: put the covered bytes back.

        If others than the core have overwritten the patch meanwhile, the text stays as it is, and
        warn() will tell of it; not where they have put the original back. Where the guest has
        changed the rest of the instruction, warn() will tell of that, too. The patch is remembered,
        in case a restored snapshot has it again.

        Args:
            patch: the patch, which is forgotten.
        """
        self._drop(patch)
        now = self._machine.read(patch.addr, len(patch.new))
        if now == patch.new or (patch.mask and patch.stands_in(now)):
            self._write_masked(patch, now, patch.old)
            if self._tail_changed(patch):
                self._outdated.append(patch.addr)
                self.warns = True
        elif (
            only(now, patch.mask) != patch.old
            or patch.old == patch.new
            or self._tail_changed(patch)
        ):
            self._overwritten.append(patch.addr)
            self.warns = True
        self._was_here(patch)

    def _tail_changed(self, patch: Patch) -> bool:
        """Return True if the guest has changed the patched instruction behind the patch's bytes.

        Args:
            patch: a patch; without a `tail` it is False.
        """
        return (
            bool(patch.tail)
            and self.read(patch.addr + len(patch.new), len(patch.tail)) != patch.tail
        )

    def _keep(self, patch: Patch) -> None:
        """Add a patch that was just written to the tables, and have writes to its text reported.

        `version` changes. Where the guest may write the rest of the instruction without a report,
        the address is added to `doubtful`.
        """
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
        """Remove a patch from the tables, and end the reports of writes to its text.

        `version` changes.
        """
        del self._patches[patch.addr]
        if self.suspects.pop(patch.addr, None) is not None:
            self._suspect_pages.drop(patch.addr)
        self.doubtful.discard(patch.addr)
        self.version = next(_VERSIONS)
        self.writes.drop(patch.addr)

    def _was_here(self, patch: Patch) -> None:
        """Remember a patch that was taken out, in case a restored snapshot has it again.

        Of too many, the oldest address is forgotten.
        """
        self._former.setdefault(patch.addr, {})[patch.new] = patch
        self._note(patch)
        if len(self._former) > FORMER:
            del self._former[next(iter(self._former))]

    def _note(self, patch: Patch) -> None:
        """Keep a copy of the bytes of a patch's place that the core has just written.

        check() compares memory with such copies, and must not take the core's own writes for
        others'.

        Args:
            patch: a patch that was written, or taken out.
        """
        size = self._machine.page_size
        for page in {patch.addr & -size, patch.addr + len(patch.new) - 1 & -size}:
            self.touched.setdefault(page, set()).add(patch.addr)
            was = self._pages.get(page)
            if was is not None:
                lo, hi = max(patch.addr, page), min(patch.addr + len(patch.new), page + size)
                self._pages[page] = (
                    was[: lo - page] + self._machine.read(lo, hi - lo) + was[hi - page :]
                )

    # --- somebody else's writes

    def check(self) -> int:
        """Repair patches before a run, as a restored snapshot or the owner may have written text.

        A patch is put back where the original text stands in its place; a former patch that stands
        again is taken out. Where the machine notes what its user writes, only those pages are
        looked at, and the ones that the guest may write. Of more than AT_A_TIME pages that many are
        compared at a call, other ones each time; all, if one of them has changed.

        Returns:
            How many patches were put back.
        """
        if not self.touched:
            return 0
        watching = self._machine.watching
        written = None if watching is None else watching.rewritten()
        if written is None:
            others = self._other(self._kept_pages())
        else:
            if self._judged != (len(self.touched), self.writes.changes):
                self._judge()
            if not (written or self._writable):
                return 0
            others = self._other(self._writable)
            others += [
                page
                for page in written
                if page in self.touched and page not in others and self._differs(page)
            ]
        return sum(self._repair(page) for page in others) if others else 0

    def _kept_pages(self) -> list[int]:
        """Return the addresses of the pages that have patches, or had."""
        if len(self._all) != len(self.touched):
            self._all = list(self.touched)
        return self._all

    def _judge(self) -> None:
        """Find out which of the pages with patches the guest may write, and keep them in
        `_writable`.
        """
        self._judged = (len(self.touched), self.writes.changes)
        may_write = self.writes.may_write
        self._writable = [page for page in self.touched if may_write(page, page + 1)]

    def _suspect(self, patch: Patch) -> None:
        """Add a patch to those that lost() looks at, if the guest may write its text."""
        was = patch.new + patch.tail
        if self.writes.may_write(patch.addr, patch.addr + len(was)):
            if patch.addr not in self.suspects:
                self._suspect_pages.keep(patch.addr)
            self.suspects[patch.addr] = was

    def lost(self) -> list[int]:
        """Return the addresses of patches that the guest has overwritten without a report.

        The stores since the last check() are found; where the guest may write patches in more than
        AT_A_TIME pages, perhaps only at a later call. Called after a run. Where permissions have
        changed, `suspects` is worked out anew first.
        """
        if self.suspected != self.writes.changes:
            self.suspected = self.writes.changes
            self.suspects = {}
            self._suspect_pages = Pages(self._machine.page_size)
            for patch in self._patches.values():
                self._suspect(patch)
        if not self.suspects:
            return []
        if len(self.suspects) <= AT_A_TIME:
            return [
                addr
                for addr, was in self.suspects.items()
                if self._machine.read(addr, len(was)) != was
                and self._differs(addr)
                and self.was_overwritten(addr)
            ]
        return [
            addr
            for page in self._other(self._suspect_pages.listed())
            for addr in self.touched[page]
            if self.was_overwritten(addr)
        ]

    def _other(self, pages: list[int]) -> list[int]:
        """Return those of some pages that others than the core have changed.

        Of many pages AT_A_TIME are compared, other ones at each call; all, if one of them has
        changed.

        Args:
            pages: addresses of pages.
        """
        if not pages:
            return []  # a new list: check() adds to it
        if len(pages) > AT_A_TIME:
            self._turn = (self._turn + AT_A_TIME) % len(pages)
            some = pages[self._turn : self._turn + AT_A_TIME]
            some += pages[: AT_A_TIME - len(some)]
            if not any(self._differs(page) for page in some):
                return []
        return [page for page in pages if self._differs(page)]

    def was_overwritten(self, addr: int) -> bool:
        """Return True if the guest has overwritten a patch, or the patch's `tail`: the bytes of the
        patched instruction behind the patch.

        With the tail unchanged, the result is False where each unit of bytes is the patch's or the
        original one, or a former patch of this address stands there: a machine's owner who restores
        a snapshot brings these back. The result is also False where the address has no patch.

        Args:
            addr: address of the patch.

        Raises:
            GuestFault: memory is not mapped.
        """
        patch = self._patches.get(addr)
        if patch is None or self._tail_changed(patch):
            return patch is not None
        if any(
            former.stands_in(self._machine.read(addr, len(former.new)))
            for former in self._former.get(addr, {}).values()
        ):
            return False
        return self._beneath(patch, self._machine.read(addr, len(patch.new))) != patch.old

    def _differs(self, addr: int) -> bool:
        """Return True where others than the core have changed the page of an address; False where
        it is no longer mapped.
        """
        page = addr & -self._machine.page_size
        try:
            return self._machine.read(page, self._machine.page_size) != self._pages.get(page)
        except GuestFault:
            return False  # it was unmapped: the machine will report that

    def _repair(self, page: int) -> int:
        """Put patches back in a page where the original stands, take former patches out, and note
        the page's bytes.

        Args:
            page: address of the page.

        Returns:
            How many patches were put back.
        """
        back = sum(self._put_back(addr) for addr in self.touched[page])
        self._pages[page] = self._machine.read(page, self._machine.page_size)
        return back

    def _put_back(self, addr: int) -> bool:
        """Put a patch back if the original, or a part of it, stands in its place; return True if it
        was put back.

        A former patch that stands there is taken out first. Nothing is put back where the guest has
        changed the instruction behind the patch.
        """
        self.take_out_stray(addr)
        patch = self._patches.get(addr)
        if patch is None or patch.old == patch.new:
            return False
        now = self._machine.read(addr, len(patch.new))
        if (
            patch.stands_in(now)
            or self._beneath(patch, now) != patch.old
            or self._tail_changed(patch)
        ):
            return False
        self._write_masked(patch, now, patch.new)
        return True

    def take_out_stray(self, addr: int) -> bool:
        """Put the original text back where a former patch stands at an address again.

        It does so after the owner has restored memory from a time when that patch was in use.
        Nothing happens where the present patch stands there.

        Args:
            addr: address of the patch.

        Returns:
            True where a former patch was taken out.
        """
        standing = self._patches.get(addr)
        if standing is not None and standing.stands_in(self._machine.read(addr, len(standing.new))):
            return False
        for former in self._former.get(addr, {}).values():
            now = self._machine.read(addr, len(former.new))
            if former.new != former.old and former.stands_in(now):
                self._write_masked(former, now, former.old)
                return True
        return False

    def restore_unwritten(self, addr: int) -> None:
        """Replace what still stands of a patch by the original text; what was written since stays.

        Called where the guest is about to overwrite the patch, or has overwritten a part of it. The
        caller drops the patch by forget().

        Args:
            addr: address of a patch in memory.
        """
        patch = self._patches[addr]
        now = self._machine.read(addr, len(patch.new))
        bare = self._beneath(patch, now)
        if bare != only(now, patch.mask):
            self._write_masked(patch, now, bare)

    def _beneath(self, patch: Patch, now: bytes) -> bytes:
        """Return the guest's text in the place of a patch: the original, or what was written since.

        A unit of bytes that equals the patch's unit is taken for the patch, and replaced by the
        original. Where stores are reported a unit is a byte. Else a unit has as many bytes as
        instructions are aligned to: one byte of an instruction that was written there may well
        equal a byte of the patch.

        Args:
            patch: the patch.
            now: the bytes in memory.
        """
        unit = 1 if self.writes.watched else self._machine.arch.insn_align
        shown = only(now, patch.mask)
        text = b""
        for at in range(0, len(shown), unit):
            piece = shown[at : at + unit]
            text += patch.old[at : at + unit] if piece == patch.new[at : at + unit] else piece
        return text

    def warn(self) -> None:
        """Warn (TextOverwritten) of the patches overwritten by somebody that were not warned of
        yet.

        A warning may be raised as an exception (python -W error), so callers do this last.

        What was warned of is forgotten. `warns` becomes False.
        """
        if self._overwritten:
            where = ", ".join(f"{addr:#x}" for addr in self._overwritten)
            self._overwritten = []
            self.warns = bool(self._outdated)
            warnings.warn(
                f"text at {where} was overwritten while probed; it is left as it is",
                TextOverwritten,
                stacklevel=2,
            )
        if self._outdated:
            where = ", ".join(f"{addr:#x}" for addr in self._outdated)
            self._outdated = []
            self.warns = False
            warnings.warn(
                f"the guest has changed the instruction at {where} behind the probe's breakpoint: "
                "hits have executed it as it was when the probe was registered",
                TextOverwritten,
                stacklevel=2,
            )

    @contextmanager
    def bare(self) -> Iterator[None]:
        """Have the original text in memory inside a with block, for tests that compare memory.

        The patches are put back at its end. Until then the tables have no patch, so that check()
        does not put them back.
        """
        patches, self._patches = self._patches, {}
        for patch in patches.values():
            self._write_masked(patch, self._machine.read(patch.addr, len(patch.old)), patch.old)
        try:
            yield
        finally:
            for patch in patches.values():
                self._write_masked(patch, self._machine.read(patch.addr, len(patch.new)), patch.new)
            self._patches = patches

    def renew(self) -> None:
        """Forget the patches that were taken out earlier, since the owner has loaded other text.

        A breakpoint instruction at such an address is then the owner's own.
        """
        self._former.clear()

    def forget(self, patch: Patch) -> None:
        """Remove a patch from the tables without writing memory, since its text is gone.

        Former patches at its address are forgotten, too.
        """
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
        """Return True if bytes that were read from memory show a patch.

        The guest may have replaced it.

        Args:
            patch: the patch.
            addr: address of the first of the bytes.
            data: the bytes; True where none of them is the patch's.
        """
        lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.new), addr + len(data))
        return lo >= hi or patch.stands_in(data[lo - addr : hi - addr], lo - patch.addr)
