"""All paths of a program, one after the other, depth first."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from .. import isa
from ..code import Code
from ..meanings import MAY_LOOP
from .budget import HINT, Budget
from .checkpoints import Checkpoints
from .control import Control, control
from .flow import LIMIT, ProgramFlow
from .path import Path, PathFindings, stack_of
from .scalar import between
from .state import START, MemoryRegion, PathState, Pointer, ProgramFrame
from .steps import Step, step

#: fewest instructions between checkpoints
_APART: Final = 4
#: instructions between two looks at the clock, less one: where ways meet, one may compare two dozen
#: states of 8 frames
_BETWEEN: Final = 63
#: how many instructions are walked before assumptions are given up
_PATIENCE: Final = 50_000


class Exploration:
    """The walk over all paths of a program.

    Attributes:
        findings: what was found out so far.
        visited: how many instructions were walked.
    """

    def __init__(
        self,
        code: Code,
        flow: ProgramFlow,
        decided: Set[int],
        budget: Budget,
        context: MemoryRegion,
    ) -> None:
        """Prepare: make a path at the program's beginning, and the function that walks each
        instruction.

        Args:
            code: the program.
            flow: the program's shape.
            decided: slots of branches that are walked only as the numbers that they compare allow;
                other branches are walked both ways.
            budget: how long the whole verification may take.
            context: what r1 points at.
        """
        self._joins = flow.joins
        #: where loops are counted: a path ends there, and nowhere else, when it comes back as it
        #: was
        self._counted = {
            pc
            for pc, insn in isa.steps(code.instructions)
            if insn.is_helper_call and insn.imm == MAY_LOOP
        }
        self._budget = budget
        self.findings = PathFindings()
        self.visited = 0
        self._impatient = False
        self._path = Path(code, _entry(context), self.findings, decided)
        self._checkpoints = Checkpoints(flow)
        self._steps: list[Step | None] = [None] * len(code.instructions)
        self._controls: list[Control | None] = [None] * len(code.instructions)
        self._behind = [pc + (2 if insn.wide else 1) for pc, insn in enumerate(code.instructions)]
        regions: dict[int, MemoryRegion] = {}
        for pc, insn in isa.steps(code.instructions):
            if insn.is_jump or insn.is_exit or insn.is_local_call:
                self._controls[pc] = control(insn, pc)
            else:
                self._steps[pc] = step(code, insn, regions)

    def run(self) -> None:
        """Walk all paths.

        Raises:
            ProgramError: something is wrong on one of them, or there are too many.
        """
        self._walk()
        while self._path.resume():
            self._walk()

    def _walk(self) -> None:
        """Walk one path to its end, or to a state from which all was verified.

        Paths that branch off are kept, to be walked later.

        Raises:
            ProgramError: something is wrong on the path, or the walk takes too long.
        """
        path = self._path
        steps = self._steps
        controls = self._controls
        joins = self._joins
        behind = self._behind
        counted = self._counted
        since = _APART
        while True:
            pc = path.pc
            if pc in joins and (since >= _APART or pc in counted):
                if self._checkpoints.meet(path):
                    return
                since = 0
            since += 1
            self.visited += 1
            if not self.visited & _BETWEEN or self.visited > LIMIT:
                self._check_budget()
            do = steps[pc]
            if do is not None:
                do(path)
                path.pc = behind[pc]
                continue
            leave = controls[pc]
            assert leave is not None
            if not leave(path):
                self._checkpoints.end(path)
                return

    @property
    def doubtful(self) -> frozenset[int]:
        """Slots of branches that an error may be due to, on the path walked last; after too many
        instructions, on all paths.

        They are branches that went both ways though the numbers show one to be impossible; where
        there are none, comparisons of two registers that might have told more.
        """
        path, found = self._path, self.findings
        if self._impatient:
            return frozenset(found.assumed or found.untold)
        return path.assumed or path.untold

    def _check_budget(self) -> None:
        """Check how many instructions were walked, and the time.

        Raises:
            ProgramError: there were too many, it has taken too long, or after 50,000 instructions
                there are branches that may be decided (see `doubtful`).
        """
        if self.visited > LIMIT:
            raise self._path.refuse(
                f"{LIMIT:,} instructions were walked, and there are more: a loop without a bound, "
                "or too many paths",
                HINT,
            )
        if self.visited > _PATIENCE and (self.findings.assumed or self.findings.untold):
            self._impatient = True
        elif not self._budget.spent:
            return
        raise self._path.refuse(
            f"verification takes too long ({self.visited:,} instructions walked): "
            "a loop with a large bound or none, or too many paths",
            HINT,
        )


def _entry(context: MemoryRegion) -> PathState:
    """Return the state at slot 0: r1 is the context, r2 its size, r10 the end of the stack.

    Args:
        context: what r1 points at.
    """
    regs = [
        None,
        Pointer(context, START),
        between(0, context.high),
        *[None] * 7,
        Pointer(stack_of(0), START),
    ]
    return PathState([ProgramFrame(0, -1, regs, {})], ())
