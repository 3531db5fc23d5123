"""Going back: registers, memory and mappings as they were once, and the library's own as it is now.

Slots, detours and call areas are the library's and are left alone. Guest text was kept with the
patches that stood in it; those are taken out, and those that are there now are put in, but only
where they are other ones.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from attrs import define
from unicorn import unicorn_const as const

from ...errors import BadArgument, GuestFault, NoMemory, Unsupported
from .._base import Books, Patched
from .blocks import HostBlock
from .calls import FunctionCalls
from .cpu import UnicornCpu
from .hostpages import KeptBlock, WayBack, best
from .runner import Runner
from .runstate import RunState

Region = tuple[int, int, int]  # start, end, permissions
_WX = const.UC_PROT_WRITE | const.UC_PROT_EXEC
PIECE = 1 << 16  # bytes of an owner's memory that are read and compared at a time


@define(eq=False, repr=False)
class Snapshot:
    """A guest as it was once: see UnicornMachine.snapshot(). It is good for as many restores as one
    likes, and only for its machine.
    """

    _owner: Snapshots
    _layout: list[Region]
    _heap: list[tuple[int, int]]  # of the layout, what alloc() hands out
    _version: int  # of the mappings, for which `held` is right
    _held: list[KeptBlock]
    # puts `held` back, but for fixed code; None: it is made at the next restore
    _way: WayBack | None
    _fixed: set[int]  # code that the guest cannot write, by its start
    _written: int  # how often code had been written when `held` stood in memory last
    _foreign: dict[int, bytes]  # memory of an owner's, in pieces
    _patched: int  # of the sink's, for these:
    _patches: Mapping[int, Patched]
    _calls: Any
    _context: Any
    _sent: tuple[int | None, int | None]  # pc where somebody has written it since the last run
    _books: Mapping[int, tuple[Books, Any]]  # id of books -> they, and what they held
    # the books that there were at the last restore, and (books, what they are to hold)
    _known_books: list[Books]
    _book_rows: list[tuple[Books, Any]]
    _devices: Any

    def __repr__(self) -> str:
        return f"<snapshot: {sum(end - start for start, end, _ in self._layout):,} bytes mapped>"


class StandardInput:
    """The input of a process, with how far it was read, in the shape of Books."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    @property
    def books(self) -> tuple[BytesIO, int]:
        """The stream and its position; set to go back to one."""
        return self._machine.stdin, self._machine.stdin.tell()

    @books.setter
    def books(self, then: tuple[BytesIO, int]) -> None:
        self._machine.stdin = then[0]
        then[0].seek(then[1])


class Snapshots:
    """Takes and restores the snapshots of one machine.

    Attributes:
        pages: how memory is kept, from the first snapshot on: see hostpages.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        runner: Runner,
        calls: FunctionCalls,
        owned: bool,
        books: Sequence[Books],
    ) -> None:
        """owned: the engine is ours, and so is all of its memory."""
        self._cpu = cpu
        self._state = state
        self._runner = runner
        self._calls = calls
        self._memory = cpu.memory
        self._devices = cpu.memory.devices
        self._owned = owned
        self._books = list(books)
        self.pages: Any = None
        self._version = 0  # of the mappings
        self._known: tuple[int, list[Region], list[HostBlock]] = -1, [], []
        cpu.memory.blocks.on_change(self._changed)

    def _changed(self) -> None:
        self._version += 1

    def keep_books(self, books: Books) -> Callable[[], None]:
        """Have books go back with the guest. Returns what ends it."""
        self._books = [*self._books, books]  # another list: snapshots look for that

        def remove() -> None:
            self._books = [book for book in self._books if book is not books]

        return remove

    # --- what is there

    def _now(self) -> tuple[list[Region], list[HostBlock]]:
        """Return the mapped regions and their blocks, without the library's own code and without
        devices.
        """
        if self._known[0] != self._version or not self._owned:
            place = self._memory.windows.place
            blocks = sorted((b for b in self._memory.blocks.held if place(b.start) == b.start),
                            key=lambda block: block.start)
            own = [b for b in blocks if self._memory.own.has(b.start) and not b.room]
            hidden = {b.start for b in own} | self._devices.places()
            layout = [(start, end + 1, perms) for start, end, perms in self._memory.engine.regions()
                      if start not in hidden]
            self._known = self._version, sorted(layout), [b for b in blocks if b not in own]
        return self._known[1], self._known[2]

    # --- taking one

    def take(self) -> Snapshot:
        """Keep registers and memory, to go back to them with restore()."""
        self._runner.hold()
        try:
            return self._take()
        finally:
            self._runner.let_go()

    def _take(self) -> Snapshot:
        cpu, sink = self._cpu, self._state.sink
        layout, blocks = self._now()
        try:
            self.pages = self.pages or best(self._memory.page_size)
            held = [self.pages.keep(block) for block in blocks]
            foreign = self._read_foreign(layout, blocks) if not self._owned else {}
        except (OSError, MemoryError) as error:
            raise NoMemory(
                f"no room for a snapshot ({error})", hint="drop older ones, or unmap something"
            ) from None
        fixed = {start for start, _, perms in layout if perms & _WX == const.UC_PROT_EXEC}
        heap = [(b.start, b.end) for b in blocks if self._memory.own.has(b.start)]
        patched, patches, calls = (
            (0, {}, None) if sink is None else (sink.patched, sink.patches(), sink.under_way())
        )
        context = cpu.engine.save()
        sent = cpu.regs.reported, cpu.regs.target
        books = {id(book): (book, book.books) for book in self._books}
        snapshot = Snapshot(
            self,
            layout,
            heap,
            self._version,
            held,
            None,
            fixed,
            self._memory.written,
            foreign,
            patched,
            patches,
            calls,
            context,
            sent,
            books,
            self._books,
            [*books.values()],
            self._devices.there,
        )
        weakref.finalize(snapshot, cpu.engine.discard, context).atexit = False
        return snapshot

    def _read_foreign(self, layout: list[Region], blocks: list[HostBlock]) -> dict[int, bytes]:
        """Memory that an engine's owner has mapped."""
        ours = {block.start for block in blocks}
        out = {}
        for start, end, _ in layout:
            for at in range(start, end, PIECE) if start not in ours else ():
                out[at] = self._cpu.engine.read(at, min(PIECE, end - at)) or b""
        return out

    # --- restoring one

    def restore(self, snapshot: Snapshot) -> None:
        """Set registers and memory back to what they were at take().

        Raises:
            BadArgument: the snapshot is another machine's.
        """
        if not isinstance(snapshot, Snapshot) or snapshot._owner is not self:
            raise BadArgument(
                f"{snapshot!r} is no snapshot of this machine", hint="pass what its snapshot() gave"
            )
        self._runner.hold()
        try:
            self._restore(snapshot)
        finally:
            self._runner.let_go()

    def _restore(self, snapshot: Snapshot) -> None:
        cpu, sink = self._cpu, self._state.sink
        self._check_calls(snapshot)
        if (
            snapshot._version != self._version
            or snapshot._devices != self._devices.there
            or not self._owned
        ):
            self._map_again(snapshot)
        # before memory: where the CPU saves state in memory this may write there
        cpu.engine.restore(snapshot._context)
        cpu.regs.reported, cpu.regs.target = snapshot._sent
        self._put_back(snapshot)
        self._dress(snapshot)
        if snapshot._known_books is not self._books:
            nothing = None, None
            snapshot._book_rows = [
                (book, snapshot._books.get(id(book), nothing)[1]) for book in self._books
            ]
            snapshot._known_books = self._books
        for book, then in snapshot._book_rows:
            book.books = then
        self._calls.drop_failure()
        self._state.skip = -1
        snapshot._written = self._memory.written
        if sink is not None:
            sink.resume(snapshot._calls)

    def _check_calls(self, snapshot: Snapshot) -> None:
        sink = self._state.sink
        if snapshot._calls is None:
            why = ""
        elif sink is None:
            why = "calls were under way, and nobody follows them"
        else:
            why = sink.cannot_resume(snapshot._calls)
        if why:
            raise Unsupported(
                why,
                hint="restore it while the Kprobes with those return probes is open, or take it between "
                "calls",
            )

    def _put_back(self, snapshot: Snapshot) -> None:
        """Memory as it was."""
        cpu, pages, unwritten = self._cpu, self.pages, snapshot._written == self._memory.written
        for kept in self._not_put_back(snapshot, unwritten):
            block = kept.block
            if not (unwritten and block.start in snapshot._fixed and pages.stands(kept)):
                for start, end in pages.put_back(kept):
                    if not block.room:
                        self._code_changed(block.start + start, end - start)
        for at, then in snapshot._foreign.items():
            now = cpu.engine.read(at, len(then))
            if now != then:
                cpu.engine.write(at, then)
                self._code_changed(at, len(then))

    def _not_put_back(self, snapshot: Snapshot, unwritten: bool) -> list[KeptBlock]:
        """Put memory back by host code where that can do it, and return the blocks that are left.

        Args:
            snapshot: what to go back to.
            unwritten: nobody but the guest has written code since the snapshot stood in memory.
        """
        way = snapshot._way
        if way is not None and way.fits():
            changed = way.written()
            if changed is not None:
                if unwritten:  # no more has fixed code, which stands as long as `way` fits
                    return changed
                return [
                    *(kept for kept in snapshot._held if kept.block.start in snapshot._fixed),
                    *changed,
                ]
        elif all(self.pages.stands(kept) for kept in snapshot._held):
            data = [kept for kept in snapshot._held if kept.block.start not in snapshot._fixed]
            snapshot._way = self.pages.way_back(data)
        return snapshot._held

    def _code_changed(self, place: int, size: int) -> None:
        for addr in self._memory.windows.aliases(place):
            self._memory.code_changed(addr, size)

    # --- probes

    def _dress(self, snapshot: Snapshot) -> None:
        """The patches that there are now, in the place of those there were. The snapshot keeps text
        with these from now on.
        """
        cpu, sink = self._cpu, self._state.sink
        patched = 0 if sink is None else sink.patched
        if patched == snapshot._patched:
            return
        then, now = snapshot._patches, {} if sink is None else sink.patches()
        others = [addr for addr in then.keys() | now.keys() if then.get(addr) is not now.get(addr)]
        for addr in others:
            if (patch := then.get(addr)) is not None:
                self._exchange(addr, patch.new, patch.old)
        for addr in others:
            if (patch := now.get(addr)) is not None:
                self._exchange(addr, patch.old, patch.new)
        snapshot._patched = patched
        snapshot._patches = now
        snapshot._way = None
        snapshot._held = [
            kept if kept.block.room else self.pages.keep(kept.block) for kept in snapshot._held
        ]
        for addr in others:
            for at in (
                addr & -PIECE,
                max(
                    snapshot._foreign.keys()
                    & set(range(addr & -PIECE, addr, self._memory.page_size)),
                    default=0,
                ),
            ):
                if at in snapshot._foreign:
                    snapshot._foreign[at] = cpu.engine.read(at, len(snapshot._foreign[at])) or b""

    def _exchange(self, addr: int, old: bytes, new: bytes) -> None:
        """Code, where it is as expected. What the guest had overwritten is left; and what is not
        mapped.
        """
        try:
            if self._memory.read(addr, len(old)) == old:
                self._memory.patch(addr, new)
        except GuestFault:
            return

    # --- mappings

    def _map_again(self, snapshot: Snapshot) -> None:
        """Map what was mapped, and unmap everything else but the library's own code."""
        changes = [
            (*change, self._memory.own.has(change[0]))
            for change in _changes(self._now()[0], snapshot._layout)
        ]
        own = [
            (b.start, b.end)
            for b in self._memory.blocks.held
            if self._memory.own.has(b.start) and not b.room
        ]
        for start, end, _, then, _ in changes:
            if then is not None and any(a < end and start < b for a, b in own):
                raise NoMemory("the library's own pages are where guest memory was", address=start,
                               hint="unregister the probes made since")
        self._devices.remove_all_but(snapshot._devices)
        for start, end, now, then, heap in changes:
            if now is not None and (then is None or heap):
                self._memory.unmap_told(start, end - start)
            if then is not None and (now is None or heap):
                self._memory.map(start, end - start, _text(then))
            elif then is not None:
                self._memory.protect(start, end - start, _text(then))
        self._devices.add_again(snapshot._devices)
        self._memory.own.only(snapshot._heap, self._memory.is_code)
        self._hold_again(snapshot)
        snapshot._version = self._version

    def _hold_again(self, snapshot: Snapshot) -> None:
        """Other blocks stand where those of the snapshot were: they get what these held, and are
        kept again.
        """
        held = {id(block) for block in self._now()[1]}
        if all(id(kept.block) in held for kept in snapshot._held):
            return
        then = [(kept.block.start, kept.block.end, kept.image) for kept in snapshot._held]
        snapshot._way = None
        snapshot._held = []
        for block in self._now()[1]:
            for start, end, image in then:
                low, high = max(start, block.start), min(end, block.end)
                if low < high:
                    block.view[low - block.start : high - block.start] = image.read(
                        low - start, high - start
                    )
                    self._code_changed(low, high - low)
            snapshot._held.append(self.pages.keep(block))


def _changes(
    now: list[Region], then: list[Region]
) -> Iterator[tuple[int, int, int | None, int | None]]:
    """(start, end, permissions now, permissions then) where these differ; None: not mapped."""
    cuts = sorted({at for start, end, _ in (*now, *then) for at in (start, end)})
    for start, end in pairwise(cuts):
        pair = [
            next((perms for low, high, perms in layout if low <= start < high), None)
            for layout in (now, then)
        ]
        if pair[0] != pair[1]:
            yield start, end, pair[0], pair[1]


def _text(perms: int) -> str:
    return "".join(
        c
        for c, bit in (
            ("r", const.UC_PROT_READ),
            ("w", const.UC_PROT_WRITE),
            ("x", const.UC_PROT_EXEC),
        )
        if perms & bit
    )
