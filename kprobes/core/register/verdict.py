"""Foretells what a probe at an address would be, without registering one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import field, fields, frozen

from ...arch._base import Insn
from ...errors import NoMemory, OutOfReach
from ...notebook import table
from ...symbols import SourceLine
from ..patch.optimizer import Optimizer


@frozen(kw_only=True)
class Verdict:
    """Findings of k.check() about an address.

    Attributes:
        addr: address of the instruction.
        size: its size in bytes.
        name: its name, that of its decode row.
        raw: its encoding.
        probeable: a kprobe may be registered there.
        reason: why none may; "": one may.
        how: how a hit executes it: "step" (out of line), "simulate", "step+simulate" (a branch with
            its delay slot) or "refuse".
        boostable: a hit would take only one trap.
        optimizable: a jump could replace the breakpoint.
        why_not_optimized: why none could; "": one could.
        line: its source line (path, line, address); None where no file tells. It is looked up when
            it is read first.
    """

    addr: int
    size: int
    name: str
    raw: bytes
    probeable: bool
    reason: str
    how: str
    boostable: bool
    optimizable: bool
    why_not_optimized: str
    _line: Callable[[], SourceLine | None] | SourceLine | None = field(
        default=None, repr=False, eq=False
    )

    @property
    def line(self) -> SourceLine | None:
        """Source line of the instruction (path, line, address); None where no file tells."""
        return self._line() if callable(self._line) else self._line

    def __reduce__(self) -> tuple[Any, ...]:
        facts: dict[str, Any] = {str(one.alias): getattr(self, one.name) for one in fields(Verdict)}
        return partial(Verdict, **facts | {"line": self.line}), ()

    def _repr_html_(self) -> str:
        """Return a table of the instruction and what a probe there would be, for a notebook."""
        cost = self.how
        if not self.probeable:
            cost = "refused"
        elif self.optimizable:
            cost = "optimizable"
        elif self.boostable:
            cost = "boosted"
        where = f", {self.line}" if self.line is not None else ""
        return table(
            f"a probe at {self.addr:#x}{where}",
            ("instruction", "bytes", "probe", "why not (a jump)"),
            [(self.name, self.raw.hex(" "), cost, self.reason or self.why_not_optimized)],
        )


def verdict(
    insn: Insn, reason: str, optimizer: Optimizer, line: Callable[[], SourceLine | None]
) -> Verdict:
    """Foretell what a probe on an instruction would be.

    Where there is no room for the probe's memory, or none near enough, it counts as not probeable.

    Args:
        insn: the instruction.
        reason: why no probe may be registered there; "": one may.
        optimizer: finds out about boost and jumps, by trial.
        line: () -> its source line; called when Verdict.line is read.
    """
    parts = (("step", insn.body), ("simulate", insn.simulate))
    how = "+".join(word for word, there in parts if there) or "step"
    boost = False
    why = reason
    if not reason:
        try:
            boost, why = optimizer.trial(insn)
        except (OutOfReach, NoMemory) as error:
            reason = why = error.reason
    return Verdict(
        addr=insn.addr,
        size=insn.size,
        name=insn.name,
        raw=insn.raw,
        probeable=not reason,
        reason=reason,
        how="refuse" if reason else how,
        boostable=boost,
        optimizable=not why,
        why_not_optimized=why,
        line=line,
    )
