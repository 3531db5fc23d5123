"""Calls that the machine follows by itself, until somebody wants to know of them.

It does so for a probepoint with one return probe and nothing else. Their instances are taken when the call returns, or when
catch_up() is called, which everything does that looks at calls; an entry handler's are taken at entry, and held.
"""

from __future__ import annotations

from collections.abc import Callable

from ...machine._base import Machine
from ...regs import Regs
from ..probe import Kretprobe, KretprobeInstance

Instances = list[KretprobeInstance]


class Followed:
    """Which call sites these calls come from.

    Attributes:
        following: call site -> whose calls the machine follows.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._calls: Instances = []  # of the task that runs on the only CPU while there is no cpu_task; the younger ones are the machine's
        self.following: dict[int, Kretprobe] = {}

    @property
    def can_follow(self) -> bool:
        """True if the machine can follow calls by itself."""
        return self._machine.can_follow and self._machine.cpus == 1

    def follow(self, rp: Kretprobe, call: int, entered: Callable[[Regs, int, int], bool] | None,
               returned: Callable[[Regs, int, int], None]) -> None:
        """Have the calls of a function followed, whose entry is this call site, while instances are free."""
        rp._refill = self._machine.follow_at(call, entered, returned)
        rp._refill(len(rp._pool))
        self.following[call] = rp

    def follow_no_more(self, call: int) -> None:
        """What is followed from there is looked after here from now on."""
        rp = self.following.get(call)
        if rp is not None:
            self.catch_up()
            rp._refill = None
            del self.following[call]

    def add(self, ri: KretprobeInstance) -> None:
        """A call of the only task, which the machine does not follow."""
        self.catch_up()
        self._calls.append(ri)

    def catch_up(self) -> None:
        """Take over the calls that the machine follows: they are the youngest."""
        for call, frame, link in self._machine.take_followed() if self.following else ():
            rp = self.following[call]
            ri = rp._held.pop(0) if rp._held else rp._pool.pop()
            ri.begin(frame, link)
            self._calls.append(ri)
