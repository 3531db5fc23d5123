"""Snapshots: registers, memory and mappings go back to what they were, but not the library's own.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. An owner is a user of the machine whose knowledge goes back with the guest to
a snapshot.

Slots, detours and call areas are the library's and are left alone. Guest text was kept with the
patches that were in it then; a restore puts the present ones in their place, where they differ.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from attrs import define
from unicorn import unicorn_const as const

from ...errors import BadArgument, GuestFault, NoMemory, Unsupported
from .._base import Patched, StateOwner
from .blocks import HostBlock
from .calls import FunctionCalls
from .cpu import UnicornCpu
from .runner import Runner
from .runstate import RunState

if TYPE_CHECKING:
    from .hostpages import KeptBlock, WayBack

Region = tuple[int, int, int]  # start, end, permissions
_WX = const.UC_PROT_WRITE | const.UC_PROT_EXEC
PIECE = 1 << 16  # bytes of an owner's memory that are read and compared at a time


@define(eq=False, repr=False, kw_only=True)
class KeptGuest:
    """The contents of a snapshot.

    Attributes:
        owner: has taken the snapshot, and can restore it.
        layout: mapped regions, without the library's own code and without devices.
        heap: (start, end) of the memory among them that alloc() hands out.
        version: the version of the mappings for which `held` is right.
        held: contents of the blocks that the library has mapped.
        way: puts `held` back, but for fixed code; None: it is made at the next restore.
        fixed: starts of blocks of code that the guest cannot write.
        written: how often code had been written when `held` was in memory last.
        foreign: address -> bytes of memory that the engine's owner has mapped, in pieces.
        patched: the sink's number for `patches`; 0: there was no sink.
        patches: the core's patches in the text that was kept.
        calls: the sink's copy of the calls being followed.
        context: the engine's registers.
        sent: pc as the core has shown it, and as it was set, since the last run; None: it was not.
        kept_states: id of an owner -> (the owner, its `snapshot_state`).
        known_owners: the list of owners for which `state_rows` is right.
        state_rows: (what sets its state, the owner, the state), for each of them.
        devices: the devices that were mapped.
    """

    owner: Snapshots
    layout: list[Region]
    heap: list[tuple[int, int]]
    version: int
    held: list[KeptBlock]
    way: WayBack | None
    fixed: set[int]
    written: int
    foreign: dict[int, bytes]
    patched: int
    patches: Mapping[int, Patched]
    calls: Any
    context: Any
    sent: tuple[int | None, int | None]
    kept_states: Mapping[int, tuple[StateOwner, Any]]
    known_owners: list[StateOwner]
    state_rows: list[tuple[Callable[[Any, Any], object], StateOwner, Any]]
    devices: Any


class Snapshot:
    """A guest as it was once: UnicornMachine.snapshot() takes one.

    It is good for any number of restores, and only for its machine.

    Attributes:
        kept: what it keeps, for the machine alone.
    """

    def __init__(self, kept: KeptGuest) -> None:
        """Wrap what a snapshot keeps. Snapshots.take() does that."""
        self.kept = kept

    def __repr__(self) -> str:
        size = sum(end - start for start, end, _ in self.kept.layout)
        return f"<snapshot: {size:,} bytes mapped>"


class StandardInput:
    """The standard input of a process, as state that snapshots keep: a restore puts the position
    back.
    """

    def __init__(self, machine: Any) -> None:
        """Prepare.

        Args:
            machine: the machine whose attribute `stdin` is kept.
        """
        self._machine = machine

    @property
    def snapshot_state(self) -> tuple[BytesIO, int]:
        """(the stream, its position), for a snapshot; setting it puts that stream back, and seeks
        it.
        """
        return self._machine.stdin, self._machine.stdin.tell()

    @snapshot_state.setter
    def snapshot_state(self, then: tuple[BytesIO, int]) -> None:
        """Put a stream back as the machine's `stdin`, at its position.

        Args:
            then: (stream, position).
        """
        self._machine.stdin = then[0]
        then[0].seek(then[1])


class Snapshots:
    """Takes and restores the snapshots of one machine.

    Attributes:
        pages: keeps memory (hostpages.best); None before the first snapshot.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        runner: Runner,
        calls: FunctionCalls,
        owned: bool,
        owners: Sequence[StateOwner],
    ) -> None:
        """Prepare; nothing is kept.

        Args:
            cpu: registers and memory.
            state: knows the sink, and whether a run is under way.
            runner: is held while memory changes.
            calls: guest calls, whose last failure a restore forgets.
            owned: the library has made the engine, and mapped all of its memory.
            owners: have further state that goes back with the guest, each as its attribute
                `snapshot_state`.
        """
        self._cpu = cpu
        self._state = state
        self._runner = runner
        self._calls = calls
        self._memory = cpu.memory
        self._devices = cpu.memory.devices
        self._owned = owned
        self._owners = list(owners)
        self.pages: Any = None
        self._version = 0  # a number that grows with each change of the mappings
        self._known: tuple[int, list[Region], list[HostBlock]] = -1, [], []
        cpu.memory.blocks.on_change(self._changed)

    def _changed(self) -> None:
        """Count a change of the mappings, after which a restore has to look at them."""
        self._version += 1

    def keep_snapshot_state(self, owner: StateOwner) -> Callable[[], None]:
        """Have further state kept in snapshots, and go back with the guest.

        Args:
            owner: has the state, as its attribute `snapshot_state`.

        Returns:
            A function that ends that.
        """
        self._owners = [*self._owners, owner]  # a new list: KeptGuest.known_owners tells by that

        def remove() -> None:
            """Keep the state in snapshots no more."""
            self._owners = [one for one in self._owners if one is not owner]

        return remove

    # --- what is there

    def _now(self) -> tuple[list[Region], list[HostBlock]]:
        """Return what is mapped now, without the library's own code and without devices.

        The result is found anew when mappings have changed; at an owner's engine, always.

        Returns:
            ((start, end, permissions) of each region, the blocks of host memory that the library
            has mapped).
        """
        if self._known[0] != self._version or not self._owned:
            place = self._memory.windows.place
            blocks = sorted(
                (b for b in self._memory.blocks.held if place(b.start) == b.start),
                key=lambda block: block.start,
            )
            own = [b for b in blocks if self._memory.own.has(b.start) and not b.room]
            hidden = {b.start for b in own} | self._devices.places()
            layout = [
                (start, end + 1, perms)
                for start, end, perms in self._memory.engine.regions()
                if start not in hidden
            ]
            self._known = self._version, sorted(layout), [b for b in blocks if b not in own]
        return self._known[1], self._known[2]

    # --- taking one

    def take(self) -> Snapshot:
        """Copy the guest's registers and memory, and return the copy, for restore().

        Raises:
            MachineBusy: the guest is in a run, or another thread uses the machine.
            NoMemory: there is no room.
        """
        self._runner.hold()
        try:
            return self._take()
        finally:
            self._runner.let_go()

    def _take(self) -> Snapshot:
        """Copy registers, memory, mappings, devices, states of owners, and the sink's patches and
        followed calls into a snapshot, while nothing can run; return the snapshot.

        Nothing of the guest is changed. `pages` is set at the first call.

        Raises:
            NoMemory: there is no room.
        """
        cpu, sink = self._cpu, self._state.sink
        layout, blocks = self._now()
        try:
            from .hostpages import best

            self.pages = self.pages or best(self._memory.page_size)
            held = [self.pages.keep(block) for block in blocks]
            foreign = self._read_foreign(layout, blocks) if not self._owned else {}
        except (OSError, MemoryError) as error:
            raise NoMemory(
                f"no room for a snapshot ({error})", hint="drop older ones, or unmap something"
            ) from None
        fixed = {start for start, _, perms in layout if perms & _WX == const.UC_PROT_EXEC}
        heap = [(b.start, b.end) for b in blocks if self._memory.own.has(b.start)]
        patched: int = 0
        patches: Mapping[int, Patched] = {}
        calls = None
        if sink is not None:
            patched = sink.patched
            patches = sink.patches()
            calls = sink.under_way()
        context = cpu.engine.save()
        sent = cpu.regs.reported, cpu.regs.target
        states = {id(owner): (owner, owner.snapshot_state) for owner in self._owners}
        kept = KeptGuest(
            owner=self,
            layout=layout,
            heap=heap,
            version=self._version,
            held=held,
            way=None,
            fixed=fixed,
            written=self._memory.written,
            foreign=foreign,
            patched=patched,
            patches=patches,
            calls=calls,
            context=context,
            sent=sent,
            kept_states=states,
            known_owners=self._owners,
            state_rows=_rows(states.values()),
            devices=self._devices.devices,
        )
        snapshot = Snapshot(kept)
        weakref.finalize(snapshot, cpu.engine.discard, context).atexit = False
        return snapshot

    def _read_foreign(self, layout: list[Region], blocks: list[HostBlock]) -> dict[int, bytes]:
        """Return address -> bytes of memory that the engine's owner has mapped, in pieces.

        Args:
            layout: all that is mapped: (start, end, permissions).
            blocks: what the library has mapped, which is left out.
        """
        ours = {block.start for block in blocks}
        out = {}
        for start, end, _ in layout:
            for at in range(start, end, PIECE) if start not in ours else ():
                out[at] = self._cpu.engine.read(at, min(PIECE, end - at)) or b""
        return out

    # --- restoring one

    def restore(self, snapshot: Snapshot) -> None:
        """Set the guest back to what it was at take(): registers, memory, mappings, devices and
        states of owners.

        Args:
            snapshot: what take() has returned.

        Raises:
            BadArgument: the snapshot is another machine's.
            MachineBusy: the guest is in a run, or another thread uses the machine.
            Unsupported: calls cannot be followed again.
            NoMemory: the library's own pages lie in the way, or the system refuses memory.
        """
        if not isinstance(snapshot, Snapshot) or snapshot.kept.owner is not self:
            raise BadArgument(
                f"{snapshot!r} is no snapshot of this machine", hint="pass what its snapshot() gave"
            )
        self._runner.hold()
        try:
            self._restore(snapshot.kept)
        finally:
            self._runner.let_go()

    def _restore(self, guest: KeptGuest) -> None:
        """Set the guest back to what a snapshot has kept, while nothing can run.

        Registers, memory, mappings, devices and states of owners go back. The patches of the
        present probes are put into the text, the core follows the calls of then again, and a failed
        call's registers and RunState.skip are forgotten.

        Args:
            guest: what was kept.

        Raises:
            Unsupported: calls cannot be followed again; nothing was changed.
            NoMemory: the library's own pages lie in the way, or the system refuses memory
                (_map_again()).
        """
        cpu, sink = self._cpu, self._state.sink
        if guest.calls is not None:
            self._check_calls(guest)
        if (
            guest.version != self._version
            or not self._owned
            or ((guest.devices or self._devices.at) and guest.devices != self._devices.devices)
        ):
            self._map_again(guest)
        way = guest.way
        unusual = guest.foreign or guest.written != self._memory.written
        if unusual or way is None or not way.has_gone_back():
            self._put_back(guest)
        cpu.regs.reported, cpu.regs.target = guest.sent
        patched = 0 if sink is None else sink.patched
        if patched != guest.patched:
            self._exchange_patches(guest, patched)
        if guest.known_owners is not self._owners:
            nothing = None, None
            guest.state_rows = _rows(
                (owner, guest.kept_states.get(id(owner), nothing)[1]) for owner in self._owners
            )
            guest.known_owners = self._owners
        for put, owner, then in guest.state_rows:
            put(owner, then)
        if self._calls.has_failed:
            self._calls.drop_failure()
        self._state.skip = -1
        guest.written = self._memory.written
        if sink is not None:
            sink.resume(guest.calls)

    def _check_calls(self, guest: KeptGuest) -> None:
        """Check that calls that were followed at the time of a snapshot can be followed again.

        Args:
            guest: what the snapshot has kept.

        Raises:
            Unsupported: they cannot.
        """
        sink = self._state.sink
        if sink is None:
            why = "calls were under way, and nobody follows them"
        else:
            why = sink.cannot_resume(guest.calls)
        if why:
            raise Unsupported(
                why,
                hint="restore it while the Kprobes with those return probes is open, or take it "
                "between calls",
            )

    def _put_back(self, guest: KeptGuest) -> None:
        """Set registers back, write what has changed in memory since a snapshot back, and drop
        translations of changed code.

        Args:
            guest: what the snapshot has kept.
        """
        cpu, pages, unwritten = self._cpu, self.pages, guest.written == self._memory.written
        left = self._not_put_back(guest, unwritten)
        if not (left or guest.foreign):
            return
        for kept in left:
            block = kept.block
            if not (unwritten and block.start in guest.fixed and pages.stands(kept)):
                for start, end in pages.put_back(kept):
                    if not block.room:
                        self._code_changed(block.start + start, end - start)
        for at, then in guest.foreign.items():
            now = cpu.engine.read(at, len(then))
            if now != then:
                cpu.engine.write(at, then)
                self._code_changed(at, len(then))

    def _not_put_back(self, guest: KeptGuest, unwritten: bool) -> list[KeptBlock]:
        """Set registers back, put memory back by host code where that can do it, and return the
        kept blocks that the caller has to put back.

        Where there is no host code for this, or it does not fit any more, `guest.way` is made for
        the next time, if memory can have one.

        Args:
            guest: what the snapshot has kept.
            unwritten: True where neither the library nor its user has written code since the
                snapshot was taken or restored.
        """
        way = guest.way
        if way is not None and way.fits():
            changed = way.go_back()
            if changed is None:
                return guest.held
            if unwritten:  # fixed code is in place too, as long as `way` fits
                return changed
            return [*(kept for kept in guest.held if kept.block.start in guest.fixed), *changed]
        # before memory: where the CPU saves state in memory this may write there
        engine = self._cpu.engine
        engine.restore(guest.context)
        if all(self.pages.stands(kept) for kept in guest.held):
            data = [kept for kept in guest.held if kept.block.start not in guest.fixed]
            guest.way = self.pages.way_back(data, engine, guest.context)
        return guest.held

    def _code_changed(self, place: int, size: int) -> None:
        """Have translations of changed code dropped, at each address by which the guest sees it.

        Args:
            place: address of the first byte, as the engine has it.
            size: bytes.
        """
        for addr in self._memory.windows.aliases(place):
            self._memory.code_changed(addr, size)

    # --- probes

    def _exchange_patches(self, guest: KeptGuest, patched: int) -> None:
        """Replace the patches in the restored text by those of the present probes.

        The snapshot keeps its text with the present ones from now on; `guest.way` is made anew at
        the next restore.

        Args:
            guest: what the snapshot has kept.
            patched: the sink's number for the present patches; 0: there is no sink.
        """
        cpu, sink = self._cpu, self._state.sink
        then, now = guest.patches, {} if sink is None else sink.patches()
        others = [addr for addr in then.keys() | now.keys() if then.get(addr) is not now.get(addr)]
        for addr in others:
            if (patch := then.get(addr)) is not None:
                self._exchange(addr, patch.new, patch.old)
        for addr in others:
            if (patch := now.get(addr)) is not None:
                self._exchange(addr, patch.old, patch.new)
        guest.patched = patched
        guest.patches = now
        guest.way = None
        guest.held = [
            kept if kept.block.room else self.pages.keep(kept.block) for kept in guest.held
        ]
        for addr in others:
            # the piece that has the patch begins at a multiple of PIECE, or where a region does
            begins = range(addr & -PIECE, addr, self._memory.page_size)
            for at in (addr & -PIECE, max(guest.foreign.keys() & set(begins), default=0)):
                if at in guest.foreign:
                    guest.foreign[at] = cpu.engine.read(at, len(guest.foreign[at])) or b""

    def _exchange(self, addr: int, old: bytes, new: bytes) -> None:
        """Write `new` at `addr` where `old` is there now. Nothing is done where the guest has
        overwritten it, or nothing is mapped.
        """
        try:
            if self._memory.read(addr, len(old)) == old:
                self._memory.patch(addr, new)
        except GuestFault:
            return

    # --- mappings

    def _map_again(self, guest: KeptGuest) -> None:
        """Map what was mapped at the time of a snapshot, devices included, and unmap everything
        else but the library's own code.

        Args:
            guest: what the snapshot has kept; its `version` becomes the present one.

        Raises:
            NoMemory: the library's own pages lie in the way, or memory cannot be mapped that is not
                mapped now; nothing was changed. Or the system has no memory in place of the heap's,
                or a device cannot be mapped: the mappings are then partly those of then.
        """
        changes = [
            (*change, self._memory.own.has(change[0]))
            for change in _changes(self._now()[0], guest.layout)
        ]
        own = [
            (b.start, b.end)
            for b in self._memory.blocks.held
            if self._memory.own.has(b.start) and not b.room
        ]
        for start, end, _, then, _ in changes:
            if then is not None and any(a < end and start < b for a, b in own):
                raise NoMemory(
                    "the library's own pages are where guest memory was",
                    address=start,
                    hint="unregister the probes made since",
                )
        self._map_missing(
            guest, [(start, end, then) for start, end, now, then, _ in changes if now is None]
        )
        for start, end, now, then, heap in changes:
            if now is None:
                continue
            if then is None or heap:
                self._memory.unmap_told(start, end - start)
            if then is not None and heap:
                self._memory.map(start, end - start, _text(then))
            elif then is not None:
                self._memory.protect(start, end - start, _text(then))
        self._devices.add_again(guest.devices)
        self._memory.own.only(guest.heap, self._memory.is_code)
        self._hold_again(guest)
        guest.version = self._version

    def _map_missing(self, guest: KeptGuest, ranges: list[tuple[int, int, int | None]]) -> None:
        """Unmap devices that a snapshot does not have, and map memory where none is now. Where that
        fails, all is as before.

        Args:
            guest: what the snapshot has kept.
            ranges: (start, end, permissions) of the memory; it is not mapped where these are None.

        Raises:
            NoMemory: memory cannot be mapped.
        """
        devices = self._devices.devices
        self._devices.remove_all_but(guest.devices)
        mapped: list[tuple[int, int]] = []
        try:
            for start, end, perms in ranges:
                if perms is not None:
                    self._memory.map(start, end - start, _text(perms))
                    mapped.append((start, end))
        except NoMemory:
            for start, end in mapped:
                self._memory.unmap_pages(start, end - start)
            self._devices.add_again(devices)
            raise

    def _hold_again(self, guest: KeptGuest) -> None:
        """Write the snapshot's memory into the blocks that are mapped now, where they are other
        blocks than those that it has kept, and drop the translations of code there.

        The snapshot keeps those blocks from now on, and `guest.way` is made anew. Nothing is done
        where all blocks that it has kept are still mapped.

        Args:
            guest: what the snapshot has kept.
        """
        held = {id(block) for block in self._now()[1]}
        if all(id(kept.block) in held for kept in guest.held):
            return
        then = [(kept.block.start, kept.block.end, kept.image) for kept in guest.held]
        guest.way = None
        guest.held = []
        for block in self._now()[1]:
            for start, end, image in then:
                low, high = max(start, block.start), min(end, block.end)
                if low < high:
                    block.view[low - block.start : high - block.start] = image.read(
                        low - start, high - start
                    )
                    self._code_changed(low, high - low)
            guest.held.append(self.pages.keep(block))


def _rows(
    owners: Iterable[tuple[StateOwner, Any]],
) -> list[tuple[Callable[[Any, Any], object], StateOwner, Any]]:
    """Return (what sets its state, the owner, the state) for some owners.

    A property's own function takes half the time that setting an attribute does.

    Args:
        owners: (owner, what its state is to be).
    """
    found: list[tuple[Callable[[Any, Any], object], StateOwner, Any]] = []
    for owner, then in owners:
        kind = getattr(type(owner), "snapshot_state", None)
        setter = kind.fset if isinstance(kind, property) else None
        found.append((_set_state if setter is None else setter, owner, then))
    return found


def _set_state(owner: StateOwner, then: Any) -> None:
    """Set an owner's attribute `snapshot_state` to what a snapshot has kept of it."""
    owner.snapshot_state = then


def _changes(
    now: list[Region], then: list[Region]
) -> Iterator[tuple[int, int, int | None, int | None]]:
    """Yield (start, end, permissions now, permissions then) of each range where these differ.

    None stands for the permissions of what is not mapped.

    Args:
        now: what is mapped: (start, end, permissions).
        then: what was mapped.
    """
    cuts = sorted({at for start, end, _ in (*now, *then) for at in (start, end)})
    for start, end in pairwise(cuts):
        pair = [
            next((perms for low, high, perms in layout if low <= start < high), None)
            for layout in (now, then)
        ]
        if pair[0] != pair[1]:
            yield start, end, pair[0], pair[1]


def _text(perms: int) -> str:
    """Return Unicorn's permission bits as letters, such as "rw"."""
    bits = (("r", const.UC_PROT_READ), ("w", const.UC_PROT_WRITE), ("x", const.UC_PROT_EXEC))
    return "".join(letter for letter, bit in bits if perms & bit)
