"""Processes that a guest forks, where the stub reports them (QEMU's user mode and gdbserver).

A child runs on without a stub, and so without the library. Before it begins, the original text is
put back in its memory, and the true return addresses of followed calls. The core (kprobes/core)
knows the patches that probes have made in the text.

A child of vfork() (posix_spawn(), system()) runs in its parent's memory until it executes another
program or ends. Meanwhile the parent's other threads stand still; then its probes are put back.

GDB's manual, "Stop Reply Packets" (fork, vfork, vforkdone) and "Packets" (Hg, D): the stub shows
the child's memory once Hg has named it, and D lets it go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from .._base import Sink
from .memory import RemoteMemory
from .returnaddresses import PutBack, ReturnAddresses
from .runstate import RemoteRunState
from .stopreplies import StopReply
from .target import RemoteTarget
from .threads import RemoteThreads

GAP = 64  #: bytes between patches that are read together


class Children:
    """Lets the processes that one guest forks run on without the library."""

    def __init__(
        self,
        target: RemoteTarget,
        threads: RemoteThreads,
        arch: Arch,
        memory: RemoteMemory,
        runs: RemoteRunState,
    ) -> None:
        """Prepare; watch() begins.

        Args:
            target: the stub.
            threads: the guest's threads, and their registers.
            arch: its architecture.
            memory: its memory, as the core sees it.
            runs: the runs' state, which has the core.
        """
        self._target = target
        self._threads = threads
        self._memory = memory
        self._runs = runs
        self._returns = ReturnAddresses(arch, target.read)
        # (address, bytes) of patches that are taken out for a child in the parent's memory
        self._borrowed: list[tuple[int, bytes]] = []

    def watch(self) -> None:
        """Have the stub stop at each fork from now on; the children are let go there."""
        self._target.report_children(self._forked, self._rejoined)

    def _forked(self, stop: StopReply) -> None:
        """Take the library's patches out of a new child's memory, the trampoline's address out of
        its stack and registers, and detach the stub from the child.

        Called by RemoteTarget.wait() before the child has executed anything. A child of vfork()
        shares its parent's memory: there the stack stays as it is, the patches are noted for
        _rejoined(), and the stub's breakpoints are taken out until then. Registers of the parent
        that were set are written to it first; afterwards no register values are kept.

        Args:
            stop: the stop of the thread that has forked it; its `child` names the new process.
        """
        sink = self._runs.sink
        threads = self._threads
        text: list[tuple[int, bytes, bytes]] = []
        returns = PutBack([], {})
        if sink is not None:
            text = list(self._text(sink))
            # RemoteError: there are more threads than CPUs, so no call of this one is followed;
            # GuestFault: the thread has no stack
            with suppress(RemoteError, GuestFault):
                returns = self._returns.of_thread(sink, threads.stopped(stop.thread))
        threads.flush()
        self._target.choose(stop.thread)
        if stop.borrows:
            self._borrowed = [(addr, there) for addr, there, _ in text]
            self._target.stops.suspend()
        self._turn_to(stop.child)
        if self._target.children_have_breakpoints:
            self._target.stops.remove_from_child()
        memory = [(addr, plain) for addr, _, plain in text]
        if not stop.borrows:  # else its parent returns by what is on the stack
            memory += returns.memory
        for addr, data in memory:
            with suppress(GuestFault):
                self._target.write(addr, data)
        threads.forget_values()  # the child's registers differ: fork() has returned 0 there
        for name, value in returns.registers.items():
            threads.regs[threads.current][name] = value
        threads.flush()  # writes registers of the child, which the stub shows now
        self._target.detach(stop.child)

    def _turn_to(self, child: str) -> None:
        """Have the stub show a child's memory and registers from now on.

        QEMU has a process for each, on one connection: by the first packet the parent's hands the
        connection over, the second one chooses the child in its own.

        Args:
            child: the child's process and thread, as the stop reply names it.
        """
        for _ in range(2):
            self._target.link.ask(b"Hg%s" % child.encode())

    def _rejoined(self) -> None:
        """Put the patches and breakpoints back that were taken out for a child of vfork(), which
        has left its parent's memory.
        """
        for addr, there in self._borrowed:
            with suppress(GuestFault):
                self._target.write(addr, there)
        self._borrowed = []
        self._target.stops.resume()

    def _text(self, sink: Sink) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield each range of guest text that patches have changed.

        Text that the guest has unmapped is left out.

        Args:
            sink: the core, which knows the patches.

        Yields:
            (address, bytes in memory now, the guest's own bytes).
        """
        for start, end in self._places(sink):
            try:
                there = self._target.read(start, end - start)
                plain = sink.without_patches(start, self._memory.read(start, end - start))
            except GuestFault:  # text that the guest has unmapped
                continue
            if plain != there:
                yield start, there, plain

    def _places(self, sink: Sink) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of ranges of guest text that hold patches of the core or jumps to the
        threads' lock, by address. The library's own pages are left out.

        Ranges at most 64 bytes (GAP) apart are one, as they are read at once.

        Args:
            sink: the core, which knows the patches.
        """
        jumps = self._memory.deferred.jumps
        ends = {
            addr: addr + len(patch.new)
            for addr, patch in sink.patches().items()
            if not self._memory.ours(addr)
        }
        for addr, shown in jumps.items():
            ends[addr] = max(ends.get(addr, 0), addr + len(shown))
        start = end = -GAP - 1
        for addr in sorted(ends):
            if addr - end > GAP:
                if start >= 0:
                    yield start, end
                start = addr
            end = max(end, ends[addr])
        if start >= 0:
            yield start, end
