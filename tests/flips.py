"""Changes what decides between breakpoint, slot and jump, from inside handlers."""

from __future__ import annotations

import random

from kprobes import Kprobe, Kprobes
from kprobes.core.probe import Probe


class Flips:
    """Changes something now and then."""

    def __init__(self, kprobes: Kprobes) -> None:
        self._k = kprobes
        self.probes: list[Probe] = []
        self.count, self._left = 0, 1

    def tick(self, rng: random.Random) -> None:
        self._left -= 1
        if not self._left:
            self._left = rng.randrange(1, 600)
            self.count += 1
            rng.choice((self.switch, self.flush, self.flush, self.post, self.post, self.able))(rng.choice(self.probes))

    def switch(self, probe: Probe) -> None:
        self._k.optimization = not self._k.optimization

    def flush(self, probe: Probe) -> None:
        self._k.flush_optimizer()

    def post(self, probe: Kprobe) -> None:
        probe.post_handler = None if probe.post_handler else lambda p, regs, flags: None

    def able(self, probe: Probe) -> None:
        (self._k.disable if probe.enabled else self._k.enable)(probe)
