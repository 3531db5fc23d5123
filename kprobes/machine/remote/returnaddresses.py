"""True return addresses, for a process that runs on without the library.

That is a forked child, or a process that is let go. The calls that return probes follow would
return to a trampoline that is not served any more, and end the process by its trap. So the true
return addresses are written wherever the trampoline's address is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

from ...arch._base import Arch
from ...errors import GuestFault
from ...regs import Regs
from .._base import Sink

DEEPEST = 1 << 20  #: bytes of stack that are searched for return addresses
#: bytes that are searched below the youngest call of a task that no thread runs, as far as there is
#: memory
ASLEEP = (1 << 14, 1 << 8, 0)


@frozen
class PutBack:
    """Writes that make one task's calls return to their callers.

    Attributes:
        memory: (address, bytes) to be written.
        registers: name -> value, of the thread that runs the task.
    """

    memory: list[tuple[int, bytes]]
    registers: dict[str, int]


class ReturnAddresses:
    """Finds where the trampoline's address stands in a guest's stacks and registers."""

    def __init__(self, arch: Arch, read: Callable[[int, int], bytes]) -> None:
        """Prepare; nothing is read.

        Args:
            arch: the guest's architecture.
            read: (address, size) -> guest memory.
        """
        self._arch = arch
        self._read = read

    def of_thread(self, sink: Sink, regs: Regs) -> PutBack:
        """Return the writes that make the calls of the task that one thread runs return to their
        callers; none where no call of the task is followed. Nothing is written here.

        Args:
            sink: the core, which follows the calls.
            regs: registers of the thread.

        Raises:
            GuestFault: there is no stack.
        """
        under_way = sink.under_way()
        if under_way is None:
            return PutBack([], {})
        return self._of_task(under_way.trampoline, under_way.tasks.get(regs.task, ()), regs)

    def of_all(self, sink: Sink, running: Sequence[Regs]) -> Iterator[tuple[Regs | None, PutBack]]:
        """Yield, for each task with followed calls, (registers of the thread that runs it or None,
        the writes that make its calls return to their callers). Nothing is written here.

        A task whose stack is not mapped is left out.

        Args:
            sink: the core, which follows the calls.
            running: registers of every thread that has come to a probe.
        """
        under_way = sink.under_way()
        if under_way is None:
            return
        threads = {regs.task: regs for regs in running}
        for task, calls in under_way.tasks.items():
            regs = threads.get(task)
            for below in ASLEEP if regs is None else (0,):
                try:
                    found = self._of_task(under_way.trampoline, calls, regs, below)
                except GuestFault:  # where the task's stack is unmapped it does not return
                    continue
                yield regs, found
                break

    def _of_task(
        self, trampoline: int, followed: Sequence[Any], regs: Regs | None, below: int = 0
    ) -> PutBack:
        """Return the writes that make the calls of one task return to their callers; none where
        the task has no calls that return to the trampoline.

        Args:
            trampoline: where its calls return to now, mode bits included.
            followed: its calls, oldest first; each has its stack pointer at entry (`frame`), its
                true return address (`link`) and `aside`: True where its frame is gone, so that it
                is left out.
            regs: registers of the thread that runs the task; None: no thread does.
            below: where no thread does, bytes of stack that are searched below the youngest call.

        Raises:
            GuestFault: there is no stack.
        """
        arch = self._arch
        calls = [
            (call.frame, call.link)
            for call in reversed(followed)
            if call.link != trampoline and not call.aside
        ]
        if not calls or arch.linkage is None:
            return PutBack([], {})
        bias = arch.linkage.bias
        wrong = trampoline - bias & arch.mask
        registers = {}
        if regs is not None:
            registers = {
                name: calls[0][1] - bias & arch.mask
                for name in regs.names
                if arch.regs.widths.get(name, arch.bits) == arch.bits and regs[name] == wrong
            }
        word = arch.bits // 8
        sp = calls[0][0] - below * arch.callers if regs is None else regs.sp
        found = list(self._places_of(wrong.to_bytes(word, arch.order.value), sp, calls[-1][0]))
        targets = self._targets(found, calls, bool(registers))
        return PutBack(
            [
                (at, (target - bias & arch.mask).to_bytes(word, arch.order.value))
                for at, target in zip(found, targets, strict=True)
            ],
            registers,
        )

    def _targets(
        self, found: list[int], calls: list[tuple[int, int]], in_register: bool
    ) -> list[int]:
        """Return the true return address that belongs in each place on the stack, in the order of
        `found`.

        The places are those of the calls one by one where there are as many (one less where a
        register has the youngest call's). Else a place gets the address of the youngest call whose
        stack pointer at entry lies beyond the place, towards the caller; the oldest call's where
        none does.

        Args:
            found: addresses where the trampoline's address stands, those of the youngest frame
                first.
            calls: (stack pointer at entry, true return address), youngest first.
            in_register: True where a register has the youngest call's return address.
        """
        if len(found) == len(calls):
            return [link for _, link in calls]
        if in_register and len(found) == len(calls) - 1:
            return [link for _, link in calls[1:]]
        oldest = calls[-1][1]
        return [
            next(
                (
                    link
                    for frame, link in calls
                    if (frame - at) * self._arch.callers + self._room > 0
                ),
                oldest,
            )
            for at in found
        ]

    @property
    def _room(self) -> int:
        """How many bytes of its caller's frame a function may save its return address in."""
        return self._arch.bits // 8 + (0 if self._arch.abi is None else self._arch.abi.reserve)

    def _places_of(self, word: bytes, sp: int, last: int) -> Iterator[int]:
        """Search a stack for a word, from the youngest frame to an older one, and yield its
        addresses.

        Args:
            word: the bytes of the word.
            sp: the stack pointer, where the search begins.
            last: address of the oldest frame that is searched.
        """
        way, size = self._arch.callers, len(word)
        reach = min(max((last - sp) * way, 0) + self._room, DEEPEST) & -size
        low = sp & -size if way > 0 else sp - reach & -size
        stack = self._read(low, reach)
        yield from (
            low + at for at in range(0, reach, size)[::way] if stack[at : at + size] == word
        )
