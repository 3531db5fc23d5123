"""Registers that a handler of Python fetches at once are those that the event fetches one by one."""

from __future__ import annotations

import random

import pytest
from arches import RUNNABLE

from kprobes import UnicornMachine
from kprobes.events import parse_event
from kprobes.events._buffer import Buffer
from kprobes.events._handler import AtOnce, RecordedPlace, handler

pytestmark = pytest.mark.quick
TYPES = ("", ":u8", ":s8", ":x16", ":s16", ":u32", ":s32", ":x64", ":s64", ":b3@2/8", ":b8@0/32", ":char")


class Plain:
    """A switch that nobody asks."""

    enabled = True

    def stack_of(self, regs: object) -> tuple[int, ...]:
        return ()


@pytest.mark.parametrize("arch", RUNNABLE)
def test_it_fetches_what_the_event_does(arch: str) -> None:
    """Any registers in any order, twice or in part, of any type; all bits of them set at random."""
    chance, once = random.Random(arch), 0
    with UnicornMachine.from_code(bytes(16), arch=arch) as m:
        cells = [name for name in m.regs.names if m.regs.cell(name)]
        # a signed type that is wider than the word is refused
        types = [each for each in TYPES if m.arch.bits == 64 or each != ":s64"]
        writable = [name for name in cells if name != m.arch.regs.sp]
        for _ in range(40):
            args = [f"%{chance.choice(cells)}{chance.choice(types)}" for _ in range(chance.randrange(1, 7))]
            event = parse_event(f"p 0x10000 {' '.join(args)} $stack", m)
            buffer = Buffer()
            take = handler(RecordedPlace(event, 0), m, buffer, (), Plain(), False)
            for name in writable:
                m.regs[name] = chance.getrandbits(m.arch.bits)
            take(None, m.regs)
            assert buffer.rows[-1][2] == event.fetch(m.regs), event.text
            once += bool(AtOnce(event.args, m).lines({}))
    assert once > 20
