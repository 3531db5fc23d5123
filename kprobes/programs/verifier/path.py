"""A path through a program, as far as it has been walked, and what all paths have found out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

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
    """Findings of all paths so far: see `facts.Facts`.

    Attributes:
        accesses: see Facts.
        calls: see Facts.
        stack: see Facts.
        cleared: see Facts.
        frames: see Facts.
        whole_context: see Facts.
        stores: some path stores to the stack by another register than r10.
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
    """A state where ways meet.

    Attributes:
        where: its place.
        state: as it was there.
        parent: the checkpoint before, on the same path.
        before_reads: Path.reads between the parent and here.
        before_writes: Path.writes between the parent and here.
        rounds: Path.rounds as it was there.
        open: number of paths from here that have not ended.
        reads: what they have read of the stack before they wrote it.
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
        """Keep the state of a path."""
        self.where = where
        self.state = path.state.copy()
        self.parent = path.checkpoint
        self.before_reads = path.reads
        self.before_writes = path.writes
        self.open = 1
        self.reads = 0
        self.rounds = path.rounds


_Pending = tuple[int, PathState, Checkpoint | None, int, int, frozenset[int], frozenset[int], int]


class Path:
    """A path through a program.

    Attributes:
        state: what is known here.
        pc: the slot of the instruction.
        checkpoint: the last one.
        reads: halves of stack slots that were read since the checkpoint before they were
            written: bit frame * 128 + slot * 2 + half.
        writes: those that were written.
        decided: branches that follow the numbers that they compare; others go both ways
            though one may be impossible.
        assumed: those of these others that led here, though the numbers show that one of
            their ways is impossible.
        untold: comparisons of two registers that led here, and might have told more.
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
            findings: what all paths find out, which is added to.
            decided: see the class.
        """
        self.code = code
        self.state = state
        self.findings = findings
        self.decided = decided
        self.pc = self.reads = self.writes = self.rounds = 0
        self.checkpoint: Checkpoint | None = None
        self.assumed: frozenset[int] = frozenset()
        self.untold: frozenset[int] = frozenset()
        self.pending: list[_Pending] = []

    def fork(self, pc: int, state: PathState) -> None:
        """Keep another path from here, to be walked later. Raises ProgramError where too many wait.
        """
        if len(self.pending) == _PENDING:
            raise self.refuse(
                f"{_PENDING} branches wait to be walked: a loop with too many of them",
                "make loops shorter, or branch less in them",
            )
        if self.checkpoint is not None:
            self.checkpoint.open += 1
        self.pending.append(
            (
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
        """Go on with the path that branched off last; False: there is none."""
        if not self.pending:
            return False
        (self.pc, self.state, self.checkpoint, self.reads, self.writes, self.assumed, self.untold,
         self.rounds) = self.pending.pop()
        return True

    def assume(self) -> None:
        """Note that the branch here goes both ways, though one may be impossible."""
        if self.pc not in self.assumed and self.pc not in self.decided:
            self.assumed |= {self.pc}
            self.findings.assumed.add(self.pc)

    def ignore(self) -> None:
        """Note that the branch here compares two registers, and that nothing was learnt from it."""
        if self.pc not in self.untold:
            self.untold |= {self.pc}
            self.findings.untold.add(self.pc)

    def refuse(self, reason: str, hint: str = "") -> ProgramError:
        """Return the error that refuses the program for its instruction at `pc`."""
        return self.code.error(reason, self.pc, hint)

    def read(self, register: int) -> Value:
        """Return the value of a register. Raises ProgramError where nothing was written to it."""
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
        """Note an access of the instruction; Raises ProgramError where other paths access other
        memory.
        """
        known = self.findings.accesses.get(self.pc)
        if known is not access:
            if known is not None and CTX in (known.kind, access.kind) and known.kind != access.kind:
                raise self.refuse(f"accesses {NAMES[CTX]} on one path and other memory on another",
                                  "read the context into a variable before the paths meet")
            access = self.findings.accesses[self.pc] = (
                access if known is None else known.joined(access)
            )
        if access.kind == CTX and access.offset is None:
            self.findings.whole_context = True

    def called(self, helper: Helper, of: Map | None, texts: Mapping[int, int]) -> None:
        """Note what this path gives to a helper.

        Args:
            helper: which one is called.
            of: the map that it is given.
            texts: see HelperCall.
        """
        known = self.findings.calls.get(self.pc)
        self.findings.calls[self.pc] = (
            HelperCall(helper, of, texts) if known is None else known.joined(of, texts)
        )

    def deepen(self, frame: int, size: int) -> None:
        """Note that a frame has `size` bytes of stack at least."""
        _raise(self.findings.stack, self.state.frames[frame].start, size)

    def clear(self, frame: int, size: int) -> None:
        """Note that `size` bytes of a frame must be zero as it begins, as some may be read
        unwritten.
        """
        _raise(self.findings.cleared, self.state.frames[frame].start, size)


def _raise(table: dict[int, int], key: int, size: int) -> None:
    """Raise a function's number of bytes, rounded up to words, to at least `size`."""
    table[key] = max(table.get(key, 0), size + 7 & ~7)


def stack_of(frame: int) -> MemoryRegion:
    """Return the stack of the frame of a number."""
    return _STACKS[frame]


_STACKS: Final = tuple(MemoryRegion(STACK, -512, 0, True, frame=n) for n in range(16))
