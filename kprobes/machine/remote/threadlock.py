"""The lock by which threads of a process under QEMU's user mode take turns at probes.

QEMU's stub lets the other threads run while one has stopped, and two that stop at once read from
the same connection. So a thread may stop only while it has a lock, which is in guest memory: in the
place of a breakpoint a jump leads to code that takes the lock, restores all registers, and stops
(trampolines.py). The thread gives the lock back as it goes on. A process of one thread needs no
lock; its second thread is noticed just before it is made (secondthread.py). The core is
kprobes/core, which places and serves probes; a slot is memory in which a copy of a probed
instruction is executed.

The lock's states and events are a table (lockstate.py). Where the making of the second thread
cannot be noticed, the process stays ALONE, and a warning says so when another thread stops.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from ...arch._detours import Saving
from ...errors import KprobeError, OutOfReach, RemoteError, Unsupported
from ...regs import Regs
from .._base import Sink
from .deferred import DeferredText
from .linux import among_all, told_ends
from .lockstate import LockEvent, LockState, LockStatus
from .secondthread import SecondThread
from .sites import CallSites
from .stopreplies import StopReply
from .target import RemoteTarget
from .threads import RemoteThreads
from .trampolines import LockTrampolines

#: functions that make a thread
STARTS = frozenset({"pthread_create", "__pthread_create"})
#: functions that end a process, for stubs that do not report single system calls (MIPS)
ENDS = frozenset({"_exit", "_Exit"})
TRAPS = (5, 4)  #: signals that QEMU makes of an architecture's trap: SIGTRAP, SIGILL
COUNTED = "instructions are not counted in a process of several threads"
UNSEEN = (
    "a second thread of this process has stopped, and threads do not take turns here, {why}: "
    "where two come to probes at once, the stub mixes up its answers, and the machine is lost"
)
#: How often the lock is read until a thread that has it is taken for one that has stopped.
TRIES = 200
ROOM = 256  #: bytes of guest memory for the lock, and code behind it
CODE_AT = 64  #: offset of that code, which the process executes for the library


class ThreadsUnseen(RuntimeWarning):
    """A process under QEMU's user mode has a second thread, and its threads do not take turns."""


class ThreadLock:
    """The lock by which a process's threads take turns at probes, and the places where its threads
    stop.

    While there is one thread, threads stop at the stub's breakpoints. From the second one on they
    stop in trampolines, each with the lock, and give it back as they go on.

    Attributes:
        status: its state.
        trampolines: code by which threads take the lock and give it back.
        starts: addresses of functions that make threads; empty where the stub reports system calls.
        exits: addresses of functions that end the process, where the maps of programs are read for
            the last time; empty where the stub reports system calls.
        onward: address where the current thread goes on, mode bits included, in the state HELD.
        last: time.monotonic() of the last stop of a thread, or when the second was made.
        place: address of memory for code that the process executes for the library; 0: any will do.
    """

    def __init__(
        self,
        status: LockStatus,
        guest: Any,
        target: RemoteTarget,
        threads: RemoteThreads,
        *,
        deferred: DeferredText,
        sites: CallSites,
        breakpoints: set[int],
        is_own: Callable[[int], bool],
        there: Callable[[], bool],
        ending: Callable[[], None],
    ) -> None:
        """Prepare; watch() begins.

        Args:
            status: the lock's state, which is changed here alone.
            guest: the process's machine.
            target: the stub.
            threads: the process's threads, and their registers.
            deferred: keeps changes of text until the guest goes on, once threads take turns.
            sites: the machine's call sites.
            breakpoints: addresses of the core's breakpoints, a set that is changed here.
            is_own: (address) -> True in pages of the library's.
            there: () -> True while there is a guest.
            ending: called when the process is about to end, to read the maps of programs.
        """
        self.status = status
        self._guest = guest
        self._arch = guest.arch
        self._target = target
        self._threads = threads
        self._deferred = deferred
        self._sites = sites
        self._breakpoints = breakpoints
        self._is_own = is_own
        self._there = there
        self._ending = ending
        self._second_thread = SecondThread(guest, target, threads)
        self.trampolines = LockTrampolines(guest.arch, sites.take_memory, guest.patch)
        self.starts: frozenset[int] = frozenset()
        self.exits: set[int] = set()
        self.onward = 0
        self.last = -math.inf
        self.place = 0
        self._sink: Sink | None = None
        self._lock = 0  # address of the lock
        self._entry = 0  # address where the program begins
        self._awaited = -1  # address behind the call that makes the second thread; -1: unknown
        self._keeper = ""  # name of the thread that keeps the lock in a slot; "": none does
        self._first = ""  # name of the first thread, until another one has stopped
        self._one_comes = False  # only one thread comes to probes: threads take no turns
        self._why_unseen = "since nobody saw it begin"
        self._notices_end = False  # `exits` has been filled
        # True: threads stop for probes; False: for their end alone; None: not decided yet
        self._told: bool | None = None
        self._slot_ends: set[int] = set()  # ends of slots, to which a thread comes with the lock
        self._run_ends: list[int] = []  # addresses where the runs under way end

    @property
    def several(self) -> bool:
        """Whether the process has several threads, which take turns at probes."""
        return self.status.several

    @property
    def due(self) -> bool:
        """Whether the current thread is about to make the second one, by a system call."""
        return self.status.due

    @property
    def held(self) -> bool:
        """Whether the current thread has stopped with the lock."""
        return self.status.held

    @property
    def stops(self) -> dict[int, int]:
        """Pc of a thread that has stopped with the lock -> the probed address it had come to."""
        return self.trampolines.stops

    @property
    def trap(self) -> bytes:
        """The trap instruction that ends code executed for the library; b"": a breakpoint of the
        stub's ends it.
        """
        return self.trampolines.trap if self.several else b""

    # --- the second thread

    def watch(self) -> None:
        """Begin to watch for the making of the second thread: by system calls that the stub
        reports, else by breakpoints at pthread_create().

        Where no lock is written for the architecture, nothing is watched; stopped() warns when a
        second thread stops.
        """
        view = self._guest.guest_view
        self._first = self._threads.name
        if view is None or view.saving.lock is None:
            self._why_unseen = f"since no lock is written for {self._arch.name}"
            return
        self._saving: Saving = view.saving
        self._entry = self._guest.regs.pc & -4
        if self._second_thread.watch():
            self.status.watches = True
            return
        self.starts = frozenset(self._entries(STARTS))
        self.status.watches = bool(self.starts)
        for addr in self.starts:
            self._target.stops.add(addr)

    def leave_out(self) -> None:
        """Have threads take no turns, since only one of them comes to probes (threads=1).

        From the call on that makes the second thread, the stub no longer reports that a thread
        ends, as two might stop there at once; it still reports the end of the process. Where the
        stub cannot report clone() alone, nothing is asked of it.
        """
        self._one_comes = self._second_thread.watch()

    def _entries(self, names: frozenset[str]) -> set[int]:
        """Return the addresses to which every call of some functions comes: where a function has
        several entries, the last one.

        Args:
            names: of the functions' symbols; all functions of these names are included.
        """
        entries = [
            self._arch.pointers.code_address(symbol.address, self._guest.read)
            for symbol in self._guest.symbols
            if symbol.name in names
        ]
        return {entry.addr + max(entry.entries) for entry in entries}

    def begin(self, sink: Sink | None, stepping: bool) -> None:
        """Make threads take turns from now on. Called where the current thread stops at a function
        that makes the second.

        Args:
            sink: the core, which receives reports from now on; None: nothing does.
            stepping: True in a run that counts instructions.

        Raises:
            NoMemory: there is no room for the lock near the text.
            Unsupported: `stepping` is True.
        """
        if stepping:
            raise Unsupported(COUNTED, hint="run without max_insns=")
        self._remove_breakpoints()
        self._take_turns(sink)

    def second(
        self, sink: Sink | None, step: Callable[[str], StopReply], keep: Callable[[StopReply], bool]
    ) -> None:
        """Make threads take turns from now on. Called where the current thread stands before the
        system call that makes the second; the call is made here.

        After an exception the machine is gone: the threads wait where the call ends.

        Args:
            sink: the core, which receives reports from now on; None: nothing does.
            step: (thread) -> the stop at the end of one step that the thread makes.
            keep: (stop) -> True for a stop that is not that step's end, which it has dealt with.

        Raises:
            NoMemory: there is no room for the lock.
            RemoteError: the call does not end.
        """
        self._remove_breakpoints()
        at, mode, code = self._second_thread.catch(step, keep)
        self._deferred.put_back(at, code)
        # the new thread waits at pc; a program executes its entry only once, so it is free
        self.place = self._entry
        try:
            self._take_turns(sink)
        except KprobeError:
            self._target.link.close()  # else the new thread would wait for ever
            raise
        self._lend()  # the new thread cannot stop before this one has gone on
        self._awaited = at
        try:
            out = self.trampolines.way_out(at | mode)
        except OutOfReach:  # the stub gives the lock back, in go_on()
            self._threads.move(at | mode)
            return
        self.status.change(LockEvent.ARRIVE)
        self.onward = at | mode
        self._threads.move(out)

    def _remove_breakpoints(self) -> None:
        """Remove all breakpoints of the stub's, as other threads would come to them, too; the state
        is UNLOCKED from now on.
        """
        for addr in (*self._breakpoints, *self.starts, *self._run_ends):
            self._target.stops.remove(addr)
        self.starts = frozenset()
        self.status.change(LockEvent.SECOND)

    def _take_turns(self, sink: Sink | None) -> None:
        """Map the lock, write its trampolines, and have jumps to them written where threads are to
        stop. From now on changes of text are kept until the guest goes on (DeferredText).

        Args:
            sink: the core, which is told that threads take turns; None: there is none.

        Raises:
            NoMemory: there is no room for the lock.
        """
        self._lock = self._guest.guest_view.fresh(ROOM)
        self.place = self._lock + CODE_AT
        self._sink = sink
        self.trampolines.use_lock(self._saving, self._lock)
        self._deferred.active = True
        self._threads.apart = True
        self.last = time.monotonic()
        self._sites.take_turns(self._lock, self.trampolines.jump_in)
        for addr in (*self._breakpoints, *self._run_ends):
            self._insert(addr)
        if among_all(self._arch):
            self._stop_at_ends()
        if sink is not None:
            sink.threads_take_turns()

    def _stop_at_ends(self) -> None:
        """Have threads stop for the library at the functions that end the process (`exits`)."""
        self.exits = self._entries(ENDS)
        self._notices_end = bool(self.exits)
        for addr in self.exits - self._breakpoints:
            self._insert(addr)

    def check_countable(self) -> None:
        """Check that instructions can be counted in a run.

        Raises:
            Unsupported: there are several threads.
        """
        if self.several:
            raise Unsupported(COUNTED, hint="run without max_insns=")

    # --- where threads stop

    def add(self, addr: int) -> None:
        """Note `addr` as a breakpoint of the core's, and have the guest stop there, so that the
        stop is reported to the core. Nothing is done where there is one already, or no guest.

        Nothing is inserted where the core's own trap instruction, which the core writes, stops the
        guest (`RemoteTarget.traps`).

        Raises:
            NoBreakpoint: the stub inserts none.
        """
        if self._there() and addr not in self._breakpoints:
            self._breakpoints.add(addr)
            if self.several or self._target.traps is None:
                self._insert(addr)

    def drop(self, addr: int) -> None:
        """Remove the core's breakpoint that add() put at `addr`, if there is one."""
        if addr in self._breakpoints:
            self._breakpoints.discard(addr)
            if self._there() and (self.several or self._target.traps is None):
                self._remove(addr)

    def end_at(self, addr: int) -> None:
        """Have the guest stop at `addr`, where a run is to end."""
        self._run_ends.append(addr)
        self._insert(addr)

    def end_at_no_more(self, addr: int) -> None:
        """Take out the breakpoint of end_at(addr), as the run has ended."""
        self._run_ends.remove(addr)
        self._remove(addr)

    def _insert(self, addr: int) -> None:
        """Make the guest stop at an address: by a breakpoint of the stub's, or by a jump to a
        trampoline where threads take turns.

        A jump in the guest's text is written just before the guest goes on, one in the library's
        pages at once. At the end of a slot nothing is written: the trap that stands there stops the
        thread, which has the lock.

        Args:
            addr: the address.
        """
        if not self.several:
            self._target.stops.add(addr)
        elif not self._is_own(addr):
            self._deferred.patch(addr, self._guest.read(addr, 1))
        elif self._sink is not None and self._sink.home_of(addr) is not None:
            # the end of a slot: the thread that comes there has the lock, so it stops by a trap
            self._slot_ends.add(addr)
            self.trampolines.add_stop(addr, addr)
        else:
            linkage = self._arch.linkage
            self._guest.patch(
                addr, self.trampolines.jump_in(addr, 0 if linkage is None else linkage.mode)
            )

    def _remove(self, addr: int) -> None:
        """Take out what _insert(addr) has put in. In the guest's text that happens just before the
        guest goes on; a jump in the library's pages stays.
        """
        if not self.several:
            self._target.stops.remove(addr)
        elif addr in self._slot_ends:
            self._slot_ends.discard(addr)
        elif not self._is_own(addr):
            self._deferred.patch(addr, self._guest.read(addr, 1))

    def arrived(self, pc: int, end: int) -> bool:
        """Return True if the current thread has come to the end of its run.

        A thread that has stopped there with the lock is moved on to that address, without a report
        (again()).

        Args:
            pc: where the thread has stopped, which may be in a trampoline.
            end: address where the run ends.
        """
        if self.stops.get(pc) != end:
            return pc == end
        self.move_back()
        return True

    def _jump_in_text(self, addr: int) -> bytes:
        """Return the bytes of the jump that is to stand at an address of the guest's text. The
        trampoline that it leads to is written if there is none; the jump is not.

        Args:
            addr: the address.

        Raises:
            NoMemory, OutOfReach: there is no room for the trampoline within reach.
            Unsupported: the instruction there is shorter than a jump, or is Thumb code.
        """
        # _exit(): the jump may be longer, as nothing leads behind a function's first instruction
        if addr in self.exits and addr not in self._breakpoints:
            return self.trampolines.jump_in(addr)
        code = self._guest.read(addr, 2 * self._arch.max_insn)
        symbol = self._guest.symbols.covering(addr)
        insn = self._arch.decode(
            code if self._sink is None else self._sink.without_patches(addr, code), addr
        )
        if insn.size < self._arch.jump.size or (symbol is not None and symbol.mode):
            raise Unsupported(
                "threads take turns where a jump fits, and none does here",
                address=addr,
                symbol=self._guest.symbols.describe(addr),
                hint="probe another instruction, or without a post_handler, or in a whole machine; "
                "threads=1 says that one thread alone comes to probes",
            )
        return self.trampolines.jump_in(addr)

    # --- stops

    def stopped(self, thread: str, call: int | None) -> None:
        """Change the state for a stop of the current thread, where that stop tells something of the
        lock.

        It does before a system call while there is one thread, and at the end of a slot. Where only
        one thread comes to probes (leave_out()), the call that makes the second one ends the
        reports of exit() instead. Where a second thread stops though threads take no turns, a
        warning says so, once (ThreadsUnseen).

        Args:
            thread: as the stub names it.
            call: number of the system call that it is about to make; None: it makes none.
        """
        if call is not None and self._one_comes:
            if self._second_thread.made_by(call):
                # several threads may now make the system call exit at once, and two that stop
                # there mix up the stub's answers: it is not reported any more
                self._target.report_calls(told_ends(self._arch)[1:])
        elif call is not None and not self.several:
            self.status.change(
                LockEvent.CALL if self._second_thread.made_by(call) else LockEvent.OTHER_CALL
            )
        if self._first and not self.several and thread != self._first:
            self._first = ""
            warnings.warn(UNSEEN.format(why=self._why_unseen), ThreadsUnseen, stacklevel=2)
        if self._keeper and self._keeper == thread:
            self._keeper = ""
            self.status.change(LockEvent.ARRIVE)

    def serve(self, sink: Sink | None) -> None:
        """Report the current thread's stop with the lock to the core, and move the thread to where
        it goes on.

        At a function that ends the process the maps of programs are read, and threads no longer
        stop there; it is reported only where the core has a breakpoint there. Where the core sends
        the thread nowhere else, it goes on at the address that it had come to, or behind a call
        site. The move is made as well where a handler raises, which goes to the caller.

        Args:
            sink: the core; its service is called at a call site, else its trap(). None: nothing is
                reported.

        Raises:
            RemoteError: no CPU is left for the thread. It is moved back, and comes again when the
                guest runs.
        """
        threads = self._threads
        cpu = threads.current
        regs = threads.regs[cpu]
        at = onward = self.stops[regs.pc]
        self.status.change(LockEvent.ARRIVE)
        self.last = time.monotonic()
        if at in self.exits:
            self._ending()
            self.exits.discard(at)
            if at not in self._breakpoints:  # else it is a probe's as well
                self._remove(at)
                threads.move(self.address_to_move_to(at))
                return
        if sink is not None and not threads.is_cpu:
            self.move_back()
            threads.check_cpu()
        regs.at(at)
        try:
            if sink is not None and at in sink.services:
                sink.services[at](regs)
                onward = self._sites.onward(at)
            elif sink is not None:
                sink.trap(regs)
        finally:
            threads.current = cpu
            target = onward if regs.target is None else regs.target
            regs.at(None)
            threads.move(self.address_to_move_to(target))

    def move_back(self) -> None:
        """Move the current thread, which has stopped with the lock, to the address that it had come
        to, without a report: where a thread still stops there, it stops again.
        """
        self.status.change(LockEvent.ARRIVE)
        self._threads.move(
            self.address_to_move_to(self.stops[self._threads.regs[self._threads.current].pc])
        )

    # --- going on

    def address_to_move_to(self, target: int) -> int:
        """Return the address to move the current thread to, so that it comes to `target`. The
        thread is not moved here.

        A thread that has the lock is led through a trampoline that gives the lock back, which is
        written if there is none; it keeps the lock where `target` is in a slot, at whose end it
        stops again. For such a thread `target` is noted in `onward`, and whether it keeps the lock,
        for go_on().

        Args:
            target: address, mode bits included, as the result's.
        """
        if not self.held:
            return target
        self.onward = target
        if any(0 < end - target <= self._arch.max_body for end in self._slot_ends):
            self._keeper = self._threads.name
            return target
        self._keeper = ""
        return self.trampolines.way_out(target)

    def stand(self, regs: Regs, outermost: bool) -> None:
        """Keep other threads from stopping between runs. Called at the end of each run.

        Where threads take turns and none has the lock, the library takes it until the guest goes
        on. A thread that has stopped with the lock keeps it.

        Args:
            regs: registers of the current thread. If it has the lock, and the run is the outermost,
                their pc is set to show the address where the thread will go on.
            outermost: the run was not nested in another one.

        Raises:
            RemoteError: another thread has stopped.
        """
        if not self._there():
            return
        if self.held and outermost:
            regs.at(self.onward & ~self._arch.pointers.mode_bits)
        elif self.several and not self.held:
            self._lend()

    def _lend(self) -> None:
        """Wait until the lock is free, and take it for the library, so that the other threads,
        which run on, cannot stop.

        Raises:
            RemoteError: the lock does not become free, as another thread has stopped; the
                connection is closed then.
        """
        if self.status.state is not LockState.LENT:
            for _ in range(TRIES):
                if not any(self._guest.read(self._lock, 4)):
                    self._guest.write(self._lock, (1).to_bytes(4, self._arch.order.value))
                    break
            else:
                self._target.link.close()
                raise RemoteError(
                    "two threads have stopped at once", hint="the machine is gone: start another"
                )
        self.status.change(LockEvent.REST)

    def go_on(self) -> list[tuple[int, bytes]]:
        """Change the state, and return what has to be written to guest memory: the guest is about
        to run.

        IN_SLOT follows where the thread that has the lock keeps it, in a slot; else UNLOCKED. No
        register is changed: address_to_move_to() has said where the thread goes on.

        To be written are the changes of text that were kept, and the lock where the library has it;
        neither is kept any longer, so the caller writes them. The stub is told to stop at the
        process's end where no thread stops for the library, and not to where one may.

        Returns:
            (address, bytes) of each write, in the order in which they have to be made: after the
            last one another thread may stop at once. [] while threads take no turns.

        Raises:
            NoMemory, OutOfReach: there is no room for a trampoline within reach of a breakpoint.
            Unsupported: a breakpoint is where no jump fits; or programs run in the guest, and
                nothing tells when it ends.
        """
        if not self.several:
            return []
        stops_at_probes = any(addr not in self._slot_ends for addr in self._breakpoints)
        told = bool(self._run_ends) or self._sites.calls or stops_at_probes
        unseen = told or bool(among_all(self._arch))  # the stub does not tell of the process's end
        if unseen and self._sites.runs_programs and not self._notices_end:
            self._stop_at_ends()
            if not self._notices_end:
                raise Unsupported(
                    "the end of this process of several threads is not noticed: it has no symbol "
                    "_exit, and what programs count would be lost",
                    hint="detach them, and use a handler of Python's",
                )
        in_text = [
            addr
            for addr in (*self._breakpoints, *self._run_ends, *self.exits)
            if not self._is_own(addr)
        ]
        if told is not self._told:  # where threads stop for the library, none may for its end
            self._target.report_calls(() if told else told_ends(self._arch)[1:])
            self._told = told
        writes = self._deferred.take_all(in_text, self._jump_in_text, self._guest.read)
        # the new thread waits for this one, and then runs on
        writes.sort(key=lambda write: write[0] <= self._awaited < write[0] + len(write[1]))
        if self.status.state is LockState.LENT:
            writes.append((self._lock, bytes(4)))
        keeps = bool(self._keeper) and self.status.state in (LockState.HELD, LockState.IN_SLOT)
        self.status.change(LockEvent.GO_ON_IN_SLOT if keeps else LockEvent.GO_ON)
        return writes
