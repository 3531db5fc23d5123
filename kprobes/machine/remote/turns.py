"""Threads under QEMU's user mode take turns. Its stub lets the others run on while one is looked at, and two that stop
at once read from the same connection. So nobody stops but with a lock of the guest's: where a breakpoint would be, a
jump leads to code that takes it, puts all registers back, and stops; it is given back on the way on.

A process of one thread stops as all do. The second is noticed where the first is about to make it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from ...arch._detours import Saving
from ...errors import NoMemory, OutOfReach, RemoteError, Unsupported
from ...regs import Regs
from .._base import Sink
from .clones import Clones
from .later import Later
from .linux import among_all, told_ends
from .locked import Locked
from .memory import Memory
from .reasons import Stop
from .sites import CallSites
from .target import Target
from .threads import Threads

#: functions by which a process gets threads
STARTS = frozenset({"pthread_create", "__pthread_create"})
#: functions by which a process ends, where the stub does not tell of its calls one by one (MIPS)
ENDS = frozenset({"_exit", "_Exit"})
TRAPS = (5, 4)  #: what QEMU makes of an architecture's trap: SIGTRAP, SIGILL
COUNTED = "instructions are not counted in a process of several threads"
UNSEEN = ("a second thread of this process has stopped, and threads do not take turns here, {why}: where two come to "
          "probes at once, the stub mixes up its answers, and the machine is lost")
TRIES = 200


class ThreadsUnseen(RuntimeWarning):
    """A process under QEMU's user mode has a second thread, and threads cannot take turns, or nobody saw it come."""


class Turns:
    """One process.

    Attributes:
        several: there are several threads, or are about to be. due: the current one is in the call that makes the
        second. starts: functions that make it, where nobody tells of calls.
        stands: where threads stop with the lock -> for what. held: the current one has, and goes on to `onward`.
        trap: what stops threads. last: when one did, or the second was about to be, by the monotonic clock. place: of
        code that the process is made to execute for us; 0: wherever it is. exits: functions by which it ends, at which
        the maps of programs are read for the last time, where nobody tells of calls.
    """

    def __init__(self, guest: Any, target: Target, threads: Threads, memory: Memory, sites: CallSites,
                 breakpoints: set[int], there: Callable[[], bool], ending: Callable[[], None]) -> None:
        """Prepare; watch() begins.

        Args:
            guest: the process's machine.
            breakpoints: addresses of the core's breakpoints.
            there: returns True while there is a guest.
            ending: reads the maps of programs for the last time; the process is about to end.
        """
        self._ending = ending
        self._why_unseen = "since nobody saw it begin"
        self._notices_end = False
        self.exits: set[int] = set()
        self._guest, self._arch, self._target, self._threads = guest, guest.arch, target, threads
        self._memory, self._sites, self._breakpoints, self._there = memory, sites, breakpoints, there
        self._locked = Locked(guest.arch, sites.take, guest.patch)
        self.trap, self.stands = self._locked.trap, self._locked.stands
        self.several = self.held = self.due = False
        self._clones = Clones(guest, target, threads)
        self._lent = False  # the lock is ours: nobody stops until the guest goes on
        self._told: bool | None = None  # whether anybody is told of stops
        self.last = -math.inf
        self._first = ""  # thread of a process that is watched
        self._keeper = ""  # the thread that has gone on with it
        self._lock = self._entry = self.place = self.onward = 0
        self.starts: frozenset[int] = frozenset()
        self._ends: set[int] = set()  # of slots, that stop
        self._until: list[int] = []  # where runs end that are under way
        self._sink: Sink | None = None
        self._later = Later(target.write)

    # --- the second thread

    def watch(self) -> None:
        """Notice it: the stub does not hold the first."""
        view, self._first = self._guest.guest_view, self._threads.name
        if view is None or view.saving.lock is None:
            self._why_unseen = f"since no lock is written for {self._arch.name}"
            return
        self._saving: Saving = view.saving
        self._entry = self._guest.regs.pc & -4
        if self._clones.watch():
            return
        self.starts = frozenset(self._entries(STARTS))
        for addr in self.starts:
            self._target.stops.add(addr)

    def _entries(self, names: frozenset[str]) -> set[int]:
        """Return where functions of these names begin: addresses that every call of them comes to."""
        entries = [self._arch.pointers.code_address(symbol.address, self._guest.read)
                   for symbol in self._guest.symbols if symbol.name in names]
        return {entry.addr + max(entry.entries) for entry in entries}

    def begin(self, sink: Sink | None, stepping: bool) -> None:
        """It is about to be. NoMemory; Unsupported in a run that counts instructions."""
        if stepping:
            raise Unsupported(COUNTED, hint="run without max_insns=")
        self._unstop()
        self._take_turns(sink)

    def second(self, sink: Sink | None, step: Callable[[str], Stop], other: Callable[[Stop], bool]) -> None:
        """Make threads take turns: the current one is in the call that makes the second.

        Args:
            sink: receives reports from now on.
            step, other: see Clones.let().

        Raises:
            NoMemory: there is no room for the lock.
            RemoteError: the call does not end.
            Unsupported: no memory within a jump's reach of the call is free.

        After each of these the machine is gone: the threads wait where the call ends.
        """
        self.due = False
        self._unstop()
        at, mode, code = self._clones.let(step, other)
        self._later.belongs(at, code)
        self.place = self._entry  # where a program begins it comes once: not where the new one waits
        try:
            self._take_turns(sink)
            self._guest.write(self._lock, (1).to_bytes(4, self._arch.order.value))
            self.held = True  # the new one may not stop before this has gone
            self._threads.move(self.way(at | mode))
        except (NoMemory, OutOfReach) as error:  # it would wait for ever
            self._target.link.close()
            if isinstance(error, NoMemory):
                raise
            raise Unsupported("threads cannot take turns: no memory is free within a jump's reach of the call that "
                              "makes the second", address=at, symbol=self._guest.symbols.describe(at),
                              hint="the machine is gone; threads=1 says that one thread alone comes to probes"
                              ) from error

    def _unstop(self) -> None:
        """No breakpoint of the stub's stands any more: other threads look at them."""
        for addr in (*self._breakpoints, *self.starts, *self._until):
            self._target.stops.remove(addr)
        self.several, self.starts = True, frozenset()

    def _take_turns(self, sink: Sink | None) -> None:
        self._lock = self._guest.guest_view.fresh(256)
        self.place, self._sink = self._lock + 64, sink
        self._locked.by(self._saving, self._lock)
        self._memory.later, self._threads.apart, self.last = self._later, True, time.monotonic()
        self._sites.take_turns(self._lock, self._locked.lead)
        for addr in (*self._breakpoints, *self._until):
            self._stop_at(addr)
        if among_all(self._arch):
            self.exits = self._entries(ENDS)
            self._notices_end = bool(self.exits)
            for addr in self.exits - self._breakpoints:
                self._stop_at(addr)
        if sink is not None:
            sink.in_turn()

    def check(self) -> None:
        """No instructions are counted where there are several: Unsupported."""
        if self.several:
            raise Unsupported(COUNTED, hint="run without max_insns=")

    # --- stops

    def add(self, addr: int) -> None:
        """Stop there, and report it."""
        if self._there() and addr not in self._breakpoints:
            self._breakpoints.add(addr)
            if self.several or self._target.traps is None:
                self._stop_at(addr)

    def drop(self, addr: int) -> None:
        """Undo add()."""
        if addr in self._breakpoints:
            self._breakpoints.discard(addr)
            if self._there() and (self.several or self._target.traps is None):
                self._release(addr)

    def _stop_at(self, addr: int) -> None:
        """The guest is to stop there. In text of several threads a jump stands for that when it goes on."""
        if not self.several:
            self._target.stops.add(addr)
        elif not self._ours(addr):
            self._later.patch(addr, self._guest.read(addr, 1))
        elif self._sink is not None and self._sink.home(addr) is not None:  # a slot's: who comes there has the lock
            self._ends.add(addr)
            self._locked.stop_at(addr, addr)
        else:
            linkage = self._arch.linkage
            self._guest.patch(addr, self._locked.lead(addr, 0 if linkage is None else linkage.mode))

    def _release(self, addr: int) -> None:
        """It is not, any more."""
        if not self.several:
            self._target.stops.remove(addr)
        elif addr in self._ends:
            self._ends.discard(addr)
        elif not self._ours(addr):
            self._later.patch(addr, self._guest.read(addr, 1))

    def _ours(self, addr: int) -> bool:
        return self._memory.ours(addr)

    def end_at(self, addr: int) -> None:
        """A run is to end there."""
        self._until.append(addr)
        self._stop_at(addr)

    def end_at_no_more(self, addr: int) -> None:
        """It has ended."""
        self._until.remove(addr)
        self._release(addr)

    def arrived(self, pc: int, end: int) -> bool:
        """True where a run is over that ends there."""
        if self.stands.get(pc) != end:
            return pc == end
        self.again()
        return True

    def _in_text(self, addr: int) -> bytes:
        """The jump that stands there, where it fits. Unsupported."""
        if addr in self.exits and addr not in self._breakpoints:  # nobody jumps behind a function's first instruction
            return self._locked.lead(addr)
        code, symbol = self._guest.read(addr, 2 * self._arch.max_insn), self._guest.symbols.covering(addr)
        insn = self._arch.decode(code if self._sink is None else self._sink.original(addr, code), addr)
        if insn.size < self._arch.jump.size or (symbol is not None and symbol.mode):
            raise Unsupported("threads take turns where a jump fits, and none does here", address=addr,
                              symbol=self._guest.symbols.describe(addr),
                              hint="probe another instruction, or without a post_handler, or in a whole machine; "
                                   "threads=1 says that one thread alone comes to probes")
        return self._locked.lead(addr)

    # --- going on

    def way(self, target: int) -> int:
        """Where the current thread goes on, that is to come to `target`: by code that gives the lock back, but for a
        slot whose end stops, too."""
        if not self.held:
            return target
        self.onward = target
        keeps = any(0 < end - target <= self._arch.max_body for end in self._ends)
        self._keeper = self._threads.name if keeps else ""
        if keeps:
            return target
        return self._locked.way(target)

    def stopped(self, thread: str, call: int | None) -> None:
        """It is the current one. call: the system call that it is about to enter."""
        if call is not None and not self.several:
            self.due = self._clones.made_by(call)
        if self._first and not self.several and thread != self._first:
            self._first = ""
            warnings.warn(UNSEEN.format(why=self._why_unseen), ThreadsUnseen, stacklevel=2)
        if self._keeper and self._keeper == thread:
            self.held, self._keeper = True, ""

    def serve(self, sink: Sink | None) -> None:
        """The current thread has stopped with the lock: what for is reported, and it goes on without."""
        threads, cpu = self._threads, self._threads.current
        regs = threads.regs[cpu]
        at = onward = self.stands[regs.pc]
        self.held, self.last = True, time.monotonic()
        if at in self.exits:
            self._ending()
            self.exits.discard(at)
            if at not in self._breakpoints:  # else it is a probe's as well
                self._release(at)
                threads.move(self.way(at))
                return
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
            threads.move(self.way(target))

    def again(self) -> None:
        """The current thread has stopped with the lock: it comes there again."""
        self.held = True
        self._threads.move(self.way(self.stands[self._threads.regs[self._threads.current].pc]))

    def stand(self, regs: Regs, outermost: bool) -> None:
        """A run is over. The current thread is shown where it goes on."""
        if not self._there():
            return
        if self.held and outermost:
            regs.at(self.onward & ~self._arch.pointers.mode_bits)
        elif self.several and not self.held:
            self._stay()

    def _stay(self) -> None:
        """The guest stands, and its other threads run: none may stop. RemoteError where one has."""
        for _ in range(TRIES if not self._lent else 0):
            if not any(self._guest.read(self._lock, 4)):
                self._guest.write(self._lock, (1).to_bytes(4, self._arch.order.value))
                self._lent = True
                return
        if not self._lent:
            self._target.link.close()
            raise RemoteError("two threads have stopped at once", hint="the machine is gone: start another")

    def go_on(self) -> None:
        """The guest goes on. Unsupported where a breakpoint is that cannot be."""
        if not self.several:
            return
        if among_all(self._arch) and self._sites.runs_programs and not self._notices_end:
            raise Unsupported("nobody tells when this process of several threads ends: it has no symbol _exit, and "
                              "what programs count would be lost", hint="detach them, and use a handler of Python's")
        self._later.settle([addr for addr in (*self._breakpoints, *self._until, *self.exits) if not self._ours(addr)],
                          self._in_text, self._guest.read)
        told = bool(self._until) or self._sites.calls or any(addr not in self._ends for addr in self._breakpoints)
        if told is not self._told:  # where threads stop for us, none may for its end
            self._target.report_calls(() if told else told_ends(self._arch)[1:])
            self._told = told
        if self._lent:
            self._guest.write(self._lock, bytes(4))
        self._lent = self.held = False
