"""Accesses to guest memory, reported before they happen.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. A slot is memory of the library's with the copy of a probed instruction, which
is executed there. A place is an address "as the engine has it": the one that the engine's functions
take, which differs from the guest's where guest addresses have segments (windows.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from unicorn import unicorn_const as const

from ...errors import MachineBusy, Unsupported
from .._base import UNWRITTEN, Watched
from .cpu import UnicornCpu
from .engine import CODE, address_of
from .host import hostcode
from .mended import mending
from .runstate import RunState
from .silenced import hear_again

MEMORY = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_void_p,
)
WIDEST = 16  #: bytes that one access may have
KINDS = {"r": const.UC_HOOK_MEM_READ, "w": const.UC_HOOK_MEM_WRITE}


class Watches:
    """Reports accesses to guest memory by the engine's memory hooks: the power of
    machine._base.Watching.

    Hooks never raise: what is raised inside is kept, and the run raises it.

    A hook that is deleted while the engine runs is used after it was freed: those are deleted when
    the next one comes or goes between runs, and an engine whose runs are its owner's keeps them.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, owned: bool) -> None:
        """Prepare; nothing is watched.

        Args:
            cpu: whose accesses are reported.
            state: of its runs.
            owned: True where the library has made the engine: then hooks are deleted between runs.
        """
        self._cpu = cpu
        self._state = state
        self._owned = owned
        self._left: list[int] = []
        #: by number: the first address, the engine's own address of that, whom to tell, and what
        #: takes what that raises
        self._watches: dict[int, tuple[int, int, Watched, Callable[[BaseException], None]]] = {}
        self._mend: Callable[[], None] | None = None
        self._last = 0
        self.rewritten = cpu.memory.rewritten
        # the hook that has accesses reported behind blocks that change themselves; 0: there is none
        self._hears = 0
        # one for all: the engine may use a deleted hook's, which is kept for good
        self._callback = MEMORY(self._on_access)
        #: by number, where Python looks at marks: the engine's address of the first byte, and they
        self._marks: dict[int, tuple[int, memoryview]] = {}
        self._callback_marked = MEMORY(self._on_marked)

    def watch_at(self, start: int, size: int, access: str, report: Watched) -> Callable[[], None]:
        """Report accesses to a range of guest memory.

        Args:
            start: address of the first byte.
            size: bytes.
            access: "r", "w" or "rw"; "x": instructions that begin in the range are reported, each
                time before it is executed.
            report: called with (registers, address, bytes, what is written or None for a read) at
                each access, before memory changes; for "x" with (registers, address of the
                instruction, its bytes, None). What it raises, the run raises.

        Returns:
            A function that ends it.

        Raises:
            MachineBusy: "x" in a run: what is translated already would not be reported.
            Unsupported: "x" of delay slots alone, in which the engine cannot be hooked; or this
                engine cannot report accesses (`unwatchable`).
        """
        if access == "x":
            return self._executed_at(start, size, report)
        number = self._begin(start, report, self._state.keep_for_end_of_instruction)
        return self._hooked(number, start, size, access, self._callback, number)

    def _executed_at(self, start: int, size: int, report: Watched) -> Callable[[], None]:
        """Report instructions that begin in a range before they are executed, by a hook of the
        engine.

        While it lasts, the core takes out jumps that cover several instructions.

        Args:
            start: address of the first byte.
            size: bytes.
            report: is called for each instruction with (registers, address, size in bytes, None).

        Returns:
            A function that ends it.

        Raises:
            MachineBusy: the guest is in a run.
            Unsupported: the range has delay slots alone, in which the engine cannot be hooked.
        """
        state, engine = self._state, self._cpu.engine
        if state.depth:
            raise MachineBusy(
                "instructions are watched from between two runs on",
                hint="call watchpoint() before run() or call()",
            )
        place = self._cpu.memory.windows.place(start)
        ranges = self._hookable(start, place, size)
        twice = self._cpu.guest.blocks.reported_twice
        watched, last = True, -1

        def on_instruction(_uc: int, address: int, length: int, _user: int) -> None:
            """Report an instruction, unless it is executed again at rest, or the engine reports it
            twice. Nothing is reported after remove(), and while an exception waits to be raised.
            """
            nonlocal last
            if not watched or state.parked is not None or state.resting == state.depth:
                return
            if twice is not None and address == last and twice(engine.read(address, 2) or b"\0\0"):
                last = -1
            else:
                last = address
                self._executed(start + address - place, length, report)

        state.stop_in_front_of_blocks()
        callback = CODE(on_instruction)
        hooks = [engine.hook(const.UC_HOOK_CODE, callback, first, end - 1) for first, end in ranges]
        engine.retranslate()
        # a jump over several instructions would have them executed elsewhere
        sink = state.sink
        if sink is not None:
            sink.limit_jumps(True)

        def remove() -> None:
            """End the reports, and let the core make jumps again."""
            nonlocal watched
            if watched:
                watched = False
                self._left += hooks
                self._tidy()
                if sink is not None and sink is state.sink:
                    sink.limit_jumps(False)

        return remove

    def _hookable(self, start: int, place: int, size: int) -> list[tuple[int, int]]:
        """Return the ranges of the engine's addresses that a hook on instructions may be on: all of
        a range, but for instructions in delay slots on engines that cannot be hooked there. Each is
        (first address, address behind the last byte).

        Args:
            start: guest address of the first byte.
            place: the engine's address of it.
            size: bytes.

        Raises:
            Unsupported: there is none.
        """
        arch, sink = self._cpu.arch, self._state.sink
        if self._cpu.guest.blocks.hooked_delay_slots:
            return [(place, place + size)]
        ranges: list[tuple[int, int]] = []
        step = arch.insn_align
        for at in range(place - place % step, place + size, step):
            home = start + at - place
            before = self._cpu.engine.read(at - step, step) or b""
            if sink is not None and before:
                before = sink.without_patches(home - step, before)
            if before and arch.decode(before + bytes(arch.max_insn), home - step).delay_slot:
                continue
            if ranges and ranges[-1][1] == at:
                ranges[-1] = ranges[-1][0], at + step
            else:
                ranges.append((at, at + step))
        if not ranges:
            raise Unsupported(
                f"the engine destroys {arch.name} jumps whose delay slot is watched",
                hint="watch the branch in front of it",
            )
        return [(max(first, place), min(end, place + size)) for first, end in ranges]

    def _executed(self, address: int, size: int, report: Watched) -> None:
        """Report an instruction that is about to be executed. What the report raises is noted, and
        the run raises it.

        Args:
            address: of the instruction.
            size: its bytes.
            report: is called with (registers, address, size, None).
        """
        regs = self._cpu.regs
        before = regs.reported, regs.target, regs.midway
        regs.midway = True  # a stop comes behind the instruction, which is not executed again
        try:
            regs.at(address)
            report(regs, address, size, None)
        except BaseException as error:
            self._state.park(error)
        regs.reported, regs.target, regs.midway = before

    def add_marked(self, start: int, marks: memoryview, report: Watched) -> Callable[[], None]:
        """Report accesses to bytes whose mark is not 0. Host code looks at the marks.

        Python does where there is no host code, and where the CPU's state has to be mended at each
        report. A write to bytes whose marks are only UNWRITTEN is not reported, and clears these
        marks.

        Args:
            start: guest address of the first byte that has a mark.
            marks: a mark for each byte of memory from there.
            report: called with (registers, address, size in bytes, what is written or None for a
                read) at each access to a marked byte. What it raises ends the run at once, in the
                middle of the instruction that makes the access, so that the run cannot be
                continued.

        Returns:
            A function that ends it.

        Raises:
            Unsupported: this engine cannot report accesses (`unwatchable`).
        """
        number = self._begin(start, report, self._state.park)
        place = self._cpu.memory.windows.place(start)
        if self._mend is not None or not hostcode.available():
            self._marks[number] = place, marks
            return self._hooked(number, start, len(marks), "rw", self._callback_marked, number)
        words = (ctypes.c_uint64 * 5)(
            place,
            len(marks),
            ctypes.addressof(ctypes.c_char.from_buffer(marks)),
            address_of(self._callback),
            number,
        )
        self._cpu.engine.keep(words)
        self._cpu.engine.keep(marks)
        return self._hooked(
            number,
            start,
            len(marks),
            "rw",
            hostcode.address("marked_access"),
            ctypes.addressof(words),
        )

    def _begin(self, start: int, report: Watched, park: Callable[[BaseException], None]) -> int:
        """Note a new watch, and return its number; the caller adds its hook.

        Hooks of watches that have ended are deleted, if the engine is at rest. The first watch adds
        hooks that all share: those that carry out stops (RunState.stop_in_front_of_blocks()) and
        have accesses reported behind blocks that change themselves.

        Args:
            start: guest address of the first byte.
            report: called at each access.
            park: called with the exception that `report` has raised.

        Raises:
            Unsupported: this engine cannot report accesses (`unwatchable`).
        """
        m = self._cpu
        self._state.stop_in_front_of_blocks()
        if not self._watches:
            self._mend = mending(m.engine, m.guest, m.arch)
        self._tidy()
        self._last += 1
        if not self._watches and not self._hears:
            self._hears = hear_again(m.engine, m.guest)
        self._watches[self._last] = start, m.memory.windows.place(start), report, park
        return self._last

    @property
    def unwatchable(self) -> str:
        """Why accesses cannot be reported; "": they can."""
        try:
            mending(self._cpu.engine, self._cpu.guest, self._cpu.arch)
        except Unsupported as error:
            return str(error)
        return ""

    def _hooked(
        self, number: int, start: int, size: int, access: str, function: Any, data: int
    ) -> Callable[[], None]:
        """Add the engine's hook of a watch. Between runs all code is translated anew; within a run,
        code that is translated already may report only some accesses.

        Args:
            number: of the watch.
            start: guest address of the first byte.
            size: bytes.
            access: "r", "w" or "rw".
            function: what the engine calls: a callback, or a host function's address.
            data: number or address that it is given as its last argument.

        Returns:
            A function that ends the watch.
        """
        m = self._cpu
        place = m.memory.windows.place(start)
        hook = m.engine.hook(
            sum(KINDS[kind] for kind in access),
            function,
            # the engine goes by an access's first byte
            max(place - WIDEST + 1, 0),
            place + size - 1,
            data=data,
        )
        if not self._state.depth:  # code that was translated before reports only some
            m.engine.retranslate()

        def remove() -> None:
            """End a watch; its hook is deleted when the engine does not run."""
            self._marks.pop(number, None)
            if self._watches.pop(number, None) is not None:
                self._left.append(hook)
                if not self._watches and self._hears:
                    self._left.append(self._hears)
                    self._hears = 0
                self._tidy()

        return remove

    def reaches_device(self, start: int, size: int) -> bool:
        """Return True if a byte of a range is a device's. Nothing is read.

        Args:
            start: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is a device's, and the range is not mapped to its end.
        """
        return self._cpu.memory.reaches_device(start, size)

    def writable(self, addr: int) -> bool:
        """Return True where the guest may write at `addr`, by the engine's mappings."""
        memory = self._cpu.memory
        place = memory.windows.place(addr)
        return any(
            start <= place <= end and perms & const.UC_PROT_WRITE
            for start, end, perms in memory.engine.regions()
        )

    def _tidy(self) -> None:
        """Delete the hooks of watches that have ended, if the library's own engine is at rest."""
        if self._owned and not self._state.depth and self._left:
            for hook in self._left:
                self._cpu.engine.unhook(hook)
            self._left.clear()
            if not self._watches:  # code that was translated meanwhile is slow
                self._cpu.engine.retranslate()

    def _on_marked(
        self, _uc: int, kind: int, place: int, size: int, value: int, number: int
    ) -> None:
        """Report an access if a byte of it is marked, then mend the CPU's state: the engine's
        callback, in place of host code (marked_access of counting.c).

        Args:
            _uc: not used.
            kind: of the access, one of unicorn's UC_MEM_ constants.
            place: address of the first byte, as the engine has it.
            size: bytes.
            value: what is written.
            number: of the watch.
        """
        try:
            self._look_at_marks(kind, place, size, value, number)
        finally:
            if self._mend is not None:
                self._mend()

    def _look_at_marks(self, kind: int, place: int, size: int, value: int, number: int) -> None:
        """Report an access if a byte of it is marked. A write to bytes that are only UNWRITTEN
        clears their marks.

        Args:
            kind: of the access, one of unicorn's UC_MEM_ constants.
            place: address of the first byte, as the engine has it.
            size: bytes.
            value: what is written.
            number: of the watch.
        """
        start, marks = self._marks.get(number, (0, memoryview(b"")))
        first, last = max(place - start, 0), min(place + size - start, len(marks))
        there = marks[first:last] if first < last else b""
        if not any(there):
            return
        if kind == const.UC_MEM_WRITE and not any(mark & ~UNWRITTEN for mark in there):
            marks[first:last] = bytes(last - first)
        else:
            self._report(kind, place, size, value, number)

    def _on_access(
        self, _uc: int, kind: int, place: int, size: int, value: int, number: int
    ) -> None:
        """Report an access to its watch, then mend the CPU's state: the engine's callback.

        Args:
            _uc: not used.
            kind: one of Unicorn's UC_MEM_ constants.
            place: address of the access, as the engine has it.
            size: bytes.
            value: what is written; of no meaning for a read.
            number: of the watch.
        """
        try:
            self._report(kind, place, size, value, number)
        finally:
            if self._mend is not None:
                self._mend()

    def _report(self, kind: int, place: int, size: int, value: int, number: int) -> None:
        """Call the function of a watch with an access. What the function raises goes to the watch's
        `park` (_begin()): the run raises it.

        The function gets the registers, with pc at the guest's instruction, the guest address, the
        size, and the bytes that are written; None for a read. Nothing is called where the watch has
        ended, an exception waits already for the run to raise it, or the access ends before the
        watch's first byte.

        Args:
            kind: of the access, one of unicorn's UC_MEM_ constants.
            place: address of the first byte, as the engine has it.
            size: bytes.
            value: what is written.
            number: of the watch.
        """
        state, regs = self._state, self._cpu.regs
        start, first, report, park = self._watches.get(number, (0, 0, None, state.park))
        if report is None or state.parked is not None or place + size <= first:
            return
        before = regs.reported, regs.target, regs.midway
        regs.midway = True
        try:
            regs.at(self._home(self._cpu.read_pc()))
            written = kind == const.UC_MEM_WRITE
            report(
                regs,
                start + place - first,
                size,
                (value & (1 << 8 * size) - 1).to_bytes(size, self._cpu.arch.order.value)
                if written
                else None,
            )
        except BaseException as error:
            park(error)
        regs.reported, regs.target, regs.midway = before
        state.accessed()

    def _home(self, pc: int) -> int:
        """Return the address of the instruction that runs at `pc`: the original one where that is a
        displaced instruction in a slot.
        """
        home = self._state.sink.home_of(pc) if self._state.sink is not None else None
        return pc if home is None else home
