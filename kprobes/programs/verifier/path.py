"""A path through a program, as far as it has been walked, and what all paths have found out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from attrs import frozen

from ...errors import ProgramError
from ..code import Code
from ..helpers import Helper
from ..maps import Map
from .facts import Access, HelperCall
from .state import CTX, NAMES, STACK, MemoryRegion, PathState, Value

#: each frame's slots in halves: bits of Path.reads and Path.writes
FRAME_BITS: Final = 128
#: branches that may wait to be walked (Linux's number)
_PENDING: Final = 8192


class PathFindings:
    """Findings of all paths so far. Those without a description are as in facts.Facts.

    Attributes:
        accesses: slot -> what the instruction accesses.
        calls: slot -> what is given to the helper.
        stack: first slot of a function -> bytes of stack.
        cleared: first slot of a function -> bytes below r10 that must be zero as it begins.
        frames: functions active at a time, at most.
        whole_context: True where the context's address is used at an offset that varies.
        stores: True where some path stores to the stack by another register than r10.
        assumed: slots that are in some path's `assumed`.
        untold: slots that are in some path's `untold`.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.accesses: dict[int, Access] = {}
        self.calls: dict[int, HelperCall] = {}
        self.stack: dict[int, int] = {}
        self.cleared: dict[int, int] = {}
        self.frames = 1
        self.whole_context = False
        self.stores = False  # through another register than r10 to the stack
        self.assumed: set[int] = set()  # what paths have assumed, all together
        self.untold: set[int] = set()


class Checkpoint:
    """The state of a path at a slot where ways meet, kept to compare later paths with it.

    Attributes:
        where: the slot, and the slots where the callers go on, the outermost first.
        state: what was known there.
        parent: the checkpoint before, on the same path.
        before_reads: Path.reads between the parent and here.
        before_writes: Path.writes between the parent and here.
        rounds: Path.rounds as it was there.
        open: number of paths from here that have not ended.
        reads: halves of stack slots that those paths have read before they wrote them, as
            Path.reads.
    """

    __slots__ = (
        "before_reads",
        "before_writes",
        "open",
        "parent",
        "reads",
        "rounds",
        "state",
        "where",
    )

    def __init__(self, where: tuple[int, ...], path: Path) -> None:
        """Keep a copy of a path's state.

        Args:
            where: the slot, and the slots where the callers go on, the outermost first.
            path: the path.
        """
        self.where = where
        self.state = path.state.copy()
        self.parent = path.checkpoint
        self.before_reads = path.reads
        self.before_writes = path.writes
        self.open = 1
        self.reads = 0
        self.rounds = path.rounds


@frozen
class _PendingPath:
    """A path that waits to be walked: the attributes of Path of the same names."""

    pc: int
    state: PathState
    checkpoint: Checkpoint | None
    reads: int
    writes: int
    assumed: frozenset[int]
    untold: frozenset[int]
    rounds: int


class Path:
    """A path through a program.

    Attributes:
        state: what is known at `pc`.
        pc: the slot of the instruction that comes next.
        checkpoint: the last one that the path has passed.
        reads: halves of stack slots that were read since the checkpoint, before they were written:
            bit frame * 128 + slot * 2 + half.
        writes: halves that were written since the checkpoint, as bits alike.
        decided: slots of branches that are walked only as the numbers that they compare allow;
            other branches are walked both ways, though one may be impossible.
        assumed: slots of other branches that led here, though the numbers show that one of their
            ways is impossible.
        untold: slots of comparisons of two registers that led here, and might have told more.
        rounds: calls of may_loop() so far.
        pending: paths that branch off, to be walked later.
    """

    def __init__(
        self, code: Code, state: PathState, findings: PathFindings, decided: Set[int]
    ) -> None:
        """Begin at slot 0.

        Args:
            code: the program.
            state: what is known there.
            findings: what all paths find out; this path adds to it.
            decided: slots of branches that are walked only as the numbers that they compare allow.
        """
        self.code = code
        self.state = state
        self.findings = findings
        self.decided = decided
        self.pc = 0
        self.reads = 0
        self.writes = 0
        self.rounds = 0
        self.checkpoint: Checkpoint | None = None
        self.assumed: frozenset[int] = frozenset()
        self.untold: frozenset[int] = frozenset()
        self.pending: list[_PendingPath] = []

    def fork(self, pc: int, state: PathState) -> None:
        """Keep another path that begins here, to be walked later by resume(). The checkpoint counts
        it as open.

        Args:
            pc: slot where it goes on.
            state: what is known there.

        Raises:
            ProgramError: too many paths wait.
        """
        if len(self.pending) == _PENDING:
            raise self.refuse(
                f"{_PENDING} branches wait to be walked: a loop with too many of them",
                "make loops shorter, or branch less in them",
            )
        if self.checkpoint is not None:
            self.checkpoint.open += 1
        self.pending.append(
            _PendingPath(
                pc,
                state,
                self.checkpoint,
                self.reads,
                self.writes,
                self.assumed,
                self.untold,
                self.rounds,
            )
        )

    def resume(self) -> bool:
        """Take the path that fork() has kept last, and go on with it; False: there is none."""
        if not self.pending:
            return False
        path = self.pending.pop()
        self.pc = path.pc
        self.state = path.state
        self.checkpoint = path.checkpoint
        self.reads = path.reads
        self.writes = path.writes
        self.assumed = path.assumed
        self.untold = path.untold
        self.rounds = path.rounds
        return True

    def assume(self) -> None:
        """Note in `assumed`, and in the findings, that the branch at `pc` goes both ways, though
        one is impossible. Nothing is noted of a branch in `decided`.
        """
        if self.pc not in self.assumed and self.pc not in self.decided:
            self.assumed |= {self.pc}
            self.findings.assumed.add(self.pc)

    def ignore(self) -> None:
        """Note in `untold`, and in the findings, that the comparison of registers at `pc` has not
        narrowed them.
        """
        if self.pc not in self.untold:
            self.untold |= {self.pc}
            self.findings.untold.add(self.pc)

    def refuse(self, reason: str, hint: str = "") -> ProgramError:
        """Return the error that refuses the program for its instruction at `pc`.

        Args:
            reason: what the instruction does, as a clause without a subject.
            hint: what to do instead; "": nothing is known.
        """
        return self.code.error(reason, self.pc, hint)

    def read(self, register: int) -> Value:
        """Return the value of a register, by its number.

        Raises:
            ProgramError: nothing was written to it on this path.
        """
        value = self.state.regs[register]
        if value is None:
            raise self.refuse(
                f"r{register} is read, but nothing has been written to it on this path",
                "initialise it; calls leave nothing in r1..r5"
                if 0 < register < 6
                else "initialise it",
            )
        return value

    def accessed(self, access: Access) -> None:
        """Note an access of the instruction at `pc`, joined with those of other paths. One of the
        context at a varying offset sets the findings' `whole_context`.

        Args:
            access: what is accessed.

        Raises:
            ProgramError: it is the context on one path, and other memory on another.
        """
        known = self.findings.accesses.get(self.pc)
        if known is not access:
            if known is not None and CTX in (known.kind, access.kind) and known.kind != access.kind:
                raise self.refuse(
                    f"accesses {NAMES[CTX]} on one path and other memory on another",
                    "read the context into a variable before the paths meet",
                )
            access = self.findings.accesses[self.pc] = (
                access if known is None else known.joined(access)
            )
        if access.kind == CTX and access.offset is None:
            self.findings.whole_context = True

    def called(self, helper: Helper, of: Map | None, texts: Mapping[int, int]) -> None:
        """Note what this path gives to the helper that is called at `pc`, joined with other paths.

        Args:
            helper: the helper.
            of: the map among its arguments; None: none.
            texts: number of an argument of its format -> bytes that may be read there; see
                facts.HelperCall.
        """
        known = self.findings.calls.get(self.pc)
        self.findings.calls[self.pc] = (
            HelperCall(helper, of, texts) if known is None else known.joined(of, texts)
        )

    def deepen(self, frame: int, size: int) -> None:
        """Note that a function needs at least `size` bytes of stack.

        Args:
            frame: number of the function's frame on this path, from 0.
            size: bytes below r10.
        """
        _raise(self.findings.stack, self.state.frames[frame].start, size)

    def clear(self, frame: int, size: int) -> None:
        """Note that the last `size` bytes below a function's r10 must be zero as it begins.

        Some of them may be read before they are written.

        Args:
            frame: number of the function's frame on this path, from 0.
            size: bytes below r10.
        """
        _raise(self.findings.cleared, self.state.frames[frame].start, size)


def _raise(table: dict[int, int], key: int, size: int) -> None:
    """Increase a number in a table to at least `size`, rounded up to a multiple of 8.

    Args:
        table: first slot of a function -> bytes; changed.
        key: first slot of the function whose number it is.
        size: bytes.
    """
    table[key] = max(table.get(key, 0), size + 7 & ~7)


def stack_of(frame: int) -> MemoryRegion:
    """Return the region that is the stack of a frame, given by the frame's number from 0."""
    return _STACKS[frame]


_STACKS: Final = tuple(MemoryRegion(STACK, -512, 0, True, frame=n) for n in range(16))
