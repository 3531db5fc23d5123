"""Ends a path where ways meet: code that was verified from there on is not walked again.

A **checkpoint** keeps the state where several ways meet. When each path from it on has ended well,
it is done, and a path that comes to the same place with a state that is a case of it (`Match`) ends
there: whatever may follow was verified. Only what matters there is compared: registers that are
live, numbers that bear upon anything, stack slots that a path from there on did read.

Why an accepted program ends: done checkpoints were done before the paths that end at them, so a run
passes each at most once, and executes no more instructions than were walked. A path that comes back
to a state which is not done yet, and nothing has changed that matters, can do that for ever: it is
refused, unless it has passed a call of may_loop(), which engines count. Such a path goes on to that
call, and ends there: every circle that is left has one (looked for by Brent's method: one state for
each place is remembered, anew after 1, 2, 4, 8 .. visits).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .. import isa
from ..meanings import MAY_LOOP
from .flow import CALLEE_SAVED, ProgramFlow
from .path import FRAME_BITS, Checkpoint, Path
from .scalar import Scalar, between, unknown
from .state import Cell, Half, Match, PathState, Pointer, ProgramFrame

#: done checkpoints that are kept for each place; the newest are the likeliest to fit
_KEPT: Final = 24
#: visits of a place from which on not each becomes a checkpoint
_OFTEN: Final = 512
#: visits of a loop that counts its rounds from which on numbers that differ from round to round may
#: be any
_WIDENED: Final = 16
_EVERYTHING: Final = (1 << isa.FRAMES * FRAME_BITS) - 1
_REGISTERS: Final = [tuple(r for r in range(10) if bits >> r & 1) for bits in range(1024)]


class _MeetingPlace:
    """The checkpoints of one place: a slot, together with the slots where the callers go on.

    Attributes:
        done: checkpoints from which all paths have ended well.
        anchor: a state of the path that is being walked; None: there is none.
        visits: how often paths have passed the place.
        next: number of the visit at which the anchor is set anew.
    """

    __slots__ = ("anchor", "done", "next", "visits")

    def __init__(self) -> None:
        """Begin without checkpoints."""
        self.done: deque[Checkpoint] = deque(maxlen=_KEPT)
        self.anchor: Checkpoint | None = None
        self.visits = 0
        self.next = 1


class Checkpoints:
    """The checkpoints of a program."""

    def __init__(self, flow: ProgramFlow) -> None:
        """Begin without checkpoints.

        Args:
            flow: the program's shape.
        """
        self._flow = flow
        self._places: dict[tuple[int, ...], _MeetingPlace] = {}

    def meet(self, path: Path) -> bool:
        """Compare a path, at a slot where ways meet, with the states that were verified there.

        Args:
            path: the path. Where it goes on, its state becomes a checkpoint (in long loops not at
                each visit), and numbers that differ from round to round may be widened.

        Returns:
            True: all that follows was verified, or is being verified from a state that is the same,
            and the path has been ended here; False: it goes on.

        Raises:
            ProgramError: the path comes back to a state that it had: a loop without an end.
        """
        state = path.state
        where = (path.pc, *[f.back for f in state.frames[1:]])
        place = self._places.get(where)
        if place is None:
            place = self._places[where] = _MeetingPlace()
        for old in reversed(place.done):
            if self._covers(path.pc, old.state, state, old.reads):
                path.reads |= old.reads & ~path.writes
                self.end(path)
                return True
        anchor = place.anchor if place.anchor is not None and place.anchor.open else None
        if anchor is not None and self._same(path.pc, anchor.state, state):
            if self._counted(path.pc):
                path.reads |= _EVERYTHING & ~path.writes  # what the anchor reads is not known yet
                self.end(path)
                return True
            if path.rounds == anchor.rounds:
                raise path.refuse(
                    "loops for ever: it comes back here, and nothing that matters has changed",
                    "give the loop a counter and a constant bound",
                )
        if anchor is not None and place.visits >= _WIDENED and self._counted(path.pc):
            _widen(anchor.state, state)
        place.visits += 1
        if place.visits > _OFTEN and place.visits % 8:
            return False  # a long loop: fewer states to keep
        checkpoint = path.checkpoint = Checkpoint(where, path)
        path.reads = path.writes = 0
        if place.visits >= place.next or anchor is None:
            place.anchor = checkpoint
            place.next = place.visits * 2
        return False

    def _counted(self, pc: int) -> bool:
        """Return True where the instruction at a slot is a call of may_loop(), which ends loops."""
        insn = self._flow.code.instructions[pc]
        return insn.is_helper_call and insn.imm == MAY_LOOP

    def end(self, path: Path) -> None:
        """Note that a path has ended well, at its checkpoint and those before. A checkpoint from
        which all paths have ended is done: paths that come there in such a state end.
        """
        at, reads = path.checkpoint, path.reads
        while at is not None:
            at.reads |= reads
            at.open -= 1
            if at.open:
                return
            self._places[at.where].done.append(at)
            reads = at.before_reads | at.reads & ~at.before_writes
            at = at.parent

    def _same(self, pc: int, a: PathState, b: PathState) -> bool:
        """Return True where each of two states at a slot is a case of the other."""
        return self._covers(pc, a, b, _EVERYTHING) and self._covers(pc, b, a, _EVERYTHING)

    def _covers(self, pc: int, old: PathState, new: PathState, reads: int) -> bool:
        """Return True where what was verified for one state holds for another: `new` is a case of
        `old`.

        Args:
            pc: the slot at which both states are.
            old: the state that was verified.
            new: the state that a path has now.
            reads: which stack slots are compared: bit frame * 128 + slot * 2 + half; a slot is
                compared as a whole if one of its two bits is set.
        """
        if len(old.held) != len(new.held):
            return False
        match = Match()
        flow = self._flow
        live, exact = flow.live[pc], flow.exact[pc]
        for depth in range(len(old.frames) - 1, -1, -1):
            a, b = old.frames[depth], new.frames[depth]
            for register in _REGISTERS[live & 1023]:  # r10 is what it is
                if not match.value(a.regs[register], b.regs[register], bool(exact >> register & 1)):
                    return False
            if not self._stack_covers(match, a, b, reads >> depth * FRAME_BITS):
                return False
            live = flow.live[a.back] & CALLEE_SAVED
            exact = flow.exact[a.back] & CALLEE_SAVED
        return match.rest(old.held, new.held)

    def _stack_covers(self, match: Match, old: ProgramFrame, new: ProgramFrame, reads: int) -> bool:
        """Return True where the stack of one frame is a case of another's.

        Args:
            match: the comparison of both states.
            old: the frame of the verified state.
            new: the frame of the other state.
            reads: which stack slots are compared: bit slot * 2 + half; a slot is compared as a
                whole if one of its two bits is set. Bits above those of one frame are not looked
                at.
        """
        reads &= (1 << FRAME_BITS) - 1
        order = self._flow.code.order
        for slot in old.stack.keys() | new.stack.keys():
            if reads >> (slot << 1) & 3 and not match.cell(
                old.stack.get(slot), new.stack.get(slot), order
            ):
                return False
        return True


def _widen(old: PathState, new: PathState) -> None:
    """Replace numbers that differ from an earlier round of the same loop by "any number".

    Whatever a number is in a later round, it is a case of that: so the next round finds nothing
    new, and the walk of the loop ends.

    Args:
        old: the state in the earlier round.
        new: the state now, which is changed.
    """
    for a, b in zip(old.frames, new.frames, strict=True):
        for register, value in enumerate(b.regs):
            before = a.regs[register]
            if (
                isinstance(value, Scalar)
                and isinstance(before, Scalar)
                and not before.contains(value)
            ):
                b.regs[register] = unknown()
        for slot, cell in b.stack.items():
            there = a.stack.get(slot)
            if isinstance(cell, Scalar) and isinstance(there, Scalar) and not there.contains(cell):
                b.stack[slot] = unknown()
            elif isinstance(cell, tuple) and there is not None and not isinstance(there, Pointer):
                b.stack[slot] = _wider(there, cell)


def _wider(old: Cell, new: tuple[Half, Half]) -> tuple[Half, Half]:
    """Return the halves of a stack slot, with numbers replaced that differ from an earlier round.

    Args:
        old: the slot's contents in the earlier round.
        new: the slot's halves now.

    Returns:
        Both halves; one whose numbers `old` does not contain is any number of 32 bits.
    """
    parts = old if isinstance(old, tuple) else (old, old)
    low, high = (
        between(0, 0xFFFF_FFFF)
        if isinstance(mine, Scalar) and (not isinstance(its, Scalar) or not its.contains(mine))
        else mine
        for its, mine in zip(parts, new, strict=True)
    )
    return low, high
