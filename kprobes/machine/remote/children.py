"""Processes that a guest forks, where the stub tells of them: QEMU's user mode. A child runs on without a stub, and so
without anything of ours: text is what it was, and calls return to their callers.

GDB's manual, "Stop Reply Packets" (fork) and "Packets" (Hg, D): the stub shows the child's memory once Hg has named it,
and D lets it go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from ...regs import Regs
from .._base import Sink
from .memory import Memory
from .reasons import Stop
from .target import Target
from .threads import Threads

DEEPEST = 1 << 20  #: bytes of stack that are searched for return addresses
GAP = 64  #: bytes between patches that are read together


class Children:
    """Lets them go."""

    def __init__(self, target: Target, threads: Threads, arch: Arch, memory: Memory,
                 sink: Callable[[], Sink | None]) -> None:
        """memory: of the guest, as the core sees it."""
        self._target, self._threads, self._arch, self._memory, self._sink = target, threads, arch, memory, sink

    def watch(self) -> None:
        """Be told of them from now on."""
        self._target.report_children(self._forked)

    def _forked(self, stop: Stop) -> None:
        """One has just begun, as the copy of its parent that it still is."""
        sink, threads, link = self._sink(), self._threads, self._target.link
        laid, shown = list[tuple[int, bytes]](), dict[str, int]()
        if sink is not None:
            laid += self._text(sink)
            # there are as many threads as may be, and no call of this one is followed; there is no stack
            with suppress(RemoteError, GuestFault):
                laid += self._returns(sink, threads.stopped(stop.thread), shown)
        threads.flush()
        self._target.choose(stop.thread)
        for _ in ("its parent hands over", "it turns to itself"):
            link.ask(b"Hg%s" % stop.child.encode())
        for addr, data in laid:
            with suppress(GuestFault):
                self._target.write(addr, data)
        for name, value in shown.items():
            threads.regs[threads.current][name] = value
        threads.flush()  # into the child, which is who answers
        link.ask(b"D;%s" % stop.child[1:].partition(".")[0].encode())

    def _text(self, sink: Sink) -> Iterator[tuple[int, bytes]]:
        """(address, what the guest's own text is) where something of ours stands."""
        for start, end in self._places(sink):
            try:
                there = self._target.read(start, end - start)
                plain = sink.original(start, self._memory.read(start, end - start))
            except GuestFault:  # text that the guest has unmapped
                continue
            if plain != there:
                yield start, plain

    def _places(self, sink: Sink) -> Iterator[tuple[int, int]]:
        """(start, end) of what has patches, those near each other together."""
        led = {} if self._memory.later is None else self._memory.later.led
        ends = {addr: addr + len(patch.new) for addr, patch in sink.patches().items() if not self._memory.ours(addr)}
        for addr, shown in led.items():
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

    def _returns(self, sink: Sink, regs: Regs, shown: dict[str, int]) -> Iterator[tuple[int, bytes]]:
        """(address, true return address) wherever the stack has the trampoline's, and where a register has (shown)."""
        arch, under_way = self._arch, sink.under_way()
        if under_way is None or arch.linkage is None:
            return
        trampoline = under_way.trampoline
        calls = [(call.frame, call.link) for call in reversed(under_way.tasks.get(regs.task, ()))
                 if call.link != trampoline and not call.aside]
        if not calls:
            return
        size, order, bias = arch.bits // 8, arch.order, arch.linkage.bias
        wrong = trampoline - bias & arch.mask
        shown.update((name, calls[0][1] - bias & arch.mask) for name in regs.names
                     if arch.regs.widths.get(name, arch.bits) == arch.bits and regs[name] == wrong)
        found = list(self._places_of(wrong.to_bytes(size, order.value), regs.sp, calls[-1][0]))
        ahead = 0 if len(found) == len(calls) else 1 if shown and len(found) == len(calls) - 1 else None
        for n, at in enumerate(found):
            target = (calls[n + ahead][1] if ahead is not None else
                      next((target for frame, target in calls if (frame - at) * arch.callers + self._room > 0),
                           calls[-1][1]))
            yield at, (target - bias & arch.mask).to_bytes(size, order.value)

    @property
    def _room(self) -> int:
        """A function saves its return address in its own frame, or in so many bytes of its caller's."""
        return self._arch.bits // 8 + (0 if self._arch.abi is None else self._arch.abi.reserve)

    def _places_of(self, word: bytes, sp: int, last: int) -> Iterator[int]:
        """Where a word is on the stack, from the youngest frame to the one that begins at `last`."""
        way, size = self._arch.callers, len(word)
        reach = min(max((last - sp) * way, 0) + self._room, DEEPEST) & -size
        low = sp & -size if way > 0 else sp - reach & -size
        stack = self._target.read(low, reach)
        yield from (low + at for at in range(0, reach, size)[::way] if stack[at:at + size] == word)
