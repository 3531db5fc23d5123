"""A guest interrupt or signal-like redirection while a slot executes. docs/reentrancy.md.

PaperMachine.before plays the interrupt: before one chosen instruction it saves the CPU's registers and sends it
elsewhere.
"""

from __future__ import annotations

from typing import Any

import pytest
from scenes import Scene, hook

from kprobes import Kprobe, Kretprobe
from kprobes.core.hit.ctlblk import HitState
from kprobes.errors import GuestTimeout, ReentryError


class Interrupt:
    """Before the instruction at `at`, once, the CPU goes to a function; when that returns, it comes back, if
    `returning`."""

    def __init__(self, scene: Scene, at: int, to: str, *, returning: bool = True, times: int = 1) -> None:
        self.at, self.to, self.returning, self.times = at, scene.at(to), returning, times
        self.saved: dict[str, int] | None = None
        self.states: list[HitState] = []
        self.scene = scene
        scene.m.before = self

    BACK = 0xE800  # in an executable page; nothing is there

    def __call__(self, m: Any, cpu: int) -> None:
        values = m._values[cpu]
        if values["pc"] == self.at and self.times and self.saved is None:
            self.times -= 1
            self.states.append(self.scene.k._driver.blocks[cpu].state)
            self.saved = dict(values)
            values.update(pc=self.to, lr=self.BACK, sp=values["sp"] - 16)
        elif values["pc"] == self.BACK:
            assert self.returning
            values.update(self.saved)
            self.saved = None


def stepped(paper: Scene, where: str = "probed") -> tuple[Kprobe, int, int]:
    """A probe that is stepped in its slot: (probe, slot, slot end)."""
    p = paper.probe("p", where)
    point = paper.k.get_kprobe(paper.at(where))
    return p, point.slot, point.slot_end


@pytest.mark.parametrize("place", ["slot", "slot end"])
def test_an_interrupt_that_hits_nothing(paper: Scene, place: str) -> None:
    _, slot, end = stepped(paper)
    interrupt = Interrupt(paper, slot if place == "slot" else end, "twice")
    assert paper.play("probed", 4) == ["pre p", "post p", "= 7"]
    assert interrupt.states == [HitState.HIT_SS]
    assert paper.k.idle


@pytest.mark.parametrize("place", ["slot", "slot end"])
def test_hits_in_an_interrupt_are_missed_and_the_slot_goes_on(paper: Scene, place: str) -> None:
    p, slot, end = stepped(paper)
    other = paper.probe("other", "inc")
    Interrupt(paper, slot if place == "slot" else end, "twice")
    assert paper.play("probed", 4) == ["pre p", "post p", "= 7"]
    assert (p.nhit, p.nmissed, other.nhit, other.nmissed) == (1, 0, 0, 2)
    assert paper.play("inc", 4) == ["pre other", "post other", "= 5"]


def test_the_interrupted_function_itself_is_hit_in_the_interrupt(paper: Scene) -> None:
    """Back at the start of the very probepoint whose slot was left: that hit never ends, and a new one begins.

    Should the interrupt return after all, its slot's end leads to the next instruction, without post-handlers.
    """
    p, slot, _ = stepped(paper)
    Interrupt(paper, slot, "probed")
    assert paper.play("probed", 4) == ["pre p", "pre p", "post p", "= 7"]
    assert p.nhit == 2
    assert paper.k.idle


def test_an_interrupt_that_never_returns(paper: Scene) -> None:
    """A longjmp out of a signal handler: the hit never ends, and the next run is as good as new."""
    p, slot, _ = stepped(paper)
    other = paper.probe("other", "inc")
    interrupt = Interrupt(paper, slot, "spin", returning=False)
    with pytest.raises(GuestTimeout):
        paper.m.run(paper.at("probed"), limit=200)
    assert interrupt.states == [HitState.HIT_SS]
    assert paper.lines == ["pre p"]
    paper.lines.clear()
    paper.m.before = None
    assert paper.play("twice", 4) == ["pre other", "post other"] * 2 + ["= 6"]
    assert (other.nhit, other.nmissed) == (2, 0)
    assert paper.play("probed", 4) == ["pre p", "post p", "= 7"]
    assert p.nhit == 2


def test_closing_after_an_interrupt_that_never_returned(paper: Scene) -> None:
    _, slot, _ = stepped(paper)
    Interrupt(paper, slot, "spin", returning=False)
    with pytest.raises(GuestTimeout):
        paper.m.run(paper.at("probed"), limit=200)
    paper.k.close()
    assert paper.m.sink is None, "nothing is left, though no slot's end was ever reached"


def test_an_interrupt_that_goes_straight_on(paper: Scene) -> None:
    """It never returns but runs the same text again and again: every later hit of that probe is a first-level hit."""
    p, slot, _ = stepped(paper)
    Interrupt(paper, slot, "probed", returning=False, times=3)

    def again(m: Any, cpu: int) -> None:
        values = m._values[cpu]
        if values["pc"] == slot and again.times:
            again.times -= 1
            values["pc"] = paper.at("probed")

    again.times = 3
    paper.m.before = again
    assert paper.play("probed", 4) == ["pre p"] * 4 + ["post p", "= 7"]
    assert (p.nhit, p.nmissed) == (4, 0)
    assert paper.k.idle


def test_an_interrupt_in_a_missed_hits_slot(paper: Scene) -> None:
    """A handler's guest call is in a slot when the interrupt comes: a hit there would be the third level."""
    stepped(paper)
    slot = paper.k.get_kprobe(paper.at("probed")).slot
    results: list[int] = []
    outer = Kprobe(symbol_name="fetch", pre_handler=hook("outer", paper.lines,
                                                         lambda *_: results.append(paper.m.call("probed", 1))))
    paper.k.register_kprobe(outer)
    interrupt = Interrupt(paper, slot, "twice")
    assert paper.play("fetch", paper.word(9)) == ["outer", "= 9"]
    assert results == [4]
    assert interrupt.states == [HitState.REENTER]
    third = paper.probe("third", "inc")
    Interrupt(paper, slot, "twice")
    with pytest.raises(ReentryError, match="disable one of them"):
        paper.m.call("fetch", paper.word(9))
    paper.m.before = None
    assert third.nhit == 0
    assert paper.k.idle
    assert paper.play("inc", 4) == ["outer", "pre third", "post third", "= 5"][1:]


def test_an_interrupt_in_a_boosted_slot(paper: Scene) -> None:
    """The hit is over when the slot begins: hits in the interrupt are first-level hits."""
    paper.k.optimization = False
    p = Kprobe(symbol_name="probed", pre_handler=paper.r.pre("p"))
    paper.k.register_kprobe(p)
    other = paper.probe("other", "inc")
    assert p.boosted
    interrupt = Interrupt(paper, paper.k.get_kprobe(paper.at("probed")).slot, "inc")
    assert paper.play("probed", 4) == ["pre p", "pre other", "post other", "= 7"]
    assert interrupt.states == [HitState.IDLE]
    assert (other.nhit, other.nmissed) == (1, 0)


def test_an_interrupt_in_a_detour(paper: Scene) -> None:
    p = Kprobe(symbol_name="probed", pre_handler=paper.r.pre("p"))
    paper.k.register_kprobe(p)
    paper.k.flush_optimizer()
    assert p.optimized
    paper.probe("other", "inc")
    Interrupt(paper, paper.k.get_kprobe(paper.at("probed")).slot, "inc")
    assert paper.play("probed", 4) == ["pre p", "pre other", "post other", "= 7"]


def test_a_followed_call_in_an_interrupt(paper: Scene) -> None:
    """A missed entry is not followed; calls followed before the interrupt return as ever."""
    _, slot, _ = stepped(paper)
    inner = Kretprobe(symbol_name="twice", handler=paper.r.returns("twice"))
    outer = Kretprobe(symbol_name="probed", handler=paper.r.returns("probed"))
    paper.k.register_kretprobes([inner, outer])
    Interrupt(paper, slot, "twice")
    assert paper.play("probed", 4) == ["pre p", "post p", "return probed", "= 7"]
    assert (inner.nhit, inner.entry_nmissed) == (0, 1)


def test_a_return_during_an_interrupted_hit(paper: Scene) -> None:
    """The interrupt leaves the slot for the end of a followed call: its handler is missed, its return is right."""
    r = Kretprobe(symbol_name="deep", handler=paper.r.returns("deep"))
    paper.k.register_kretprobe(r)
    _, slot, _ = stepped(paper, "inc")

    def leave(m: Any, cpu: int) -> None:
        values = m._values[cpu]
        if values["pc"] == slot:
            values.update(pc=paper.at("deep", 3), sp=frame)  # like throw: straight to deep's last instructions

    frame = paper.m.regs.sp - 4
    paper.m.before = leave
    assert paper.play("deep", 4) == ["pre p", "= 4"]
    assert paper.k._calls.pending == 0
    paper.m.before = None
    paper.lines.clear()
    assert paper.play("deep", 4) == ["pre p", "post p"] * 2 + ["return deep", "= 6"]


def test_the_probe_is_unregistered_while_its_slot_is_left(paper: Scene) -> None:
    """Its slot stays as long as somebody may come back to it."""
    p, slot, _ = stepped(paper)
    done: list[bool] = []
    interrupt = Interrupt(paper, slot, "inc")
    usual = interrupt.__call__

    def before(m: Any, cpu: int) -> None:
        usual(m, cpu)
        if interrupt.saved is not None and not done:
            done.append(True)
            paper.k.unregister_kprobe(p)
            other = Kprobe(symbol_name="twice")
            paper.k.register_kprobe(other)
            assert paper.k.get_kprobe(other.address).slot != slot

    paper.m.before = before
    assert paper.play("probed", 4) == ["pre p", "= 7"]
    assert done
    assert paper.k.idle
