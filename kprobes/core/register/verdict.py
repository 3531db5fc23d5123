"""What would happen to a probe, told without registering one."""

from __future__ import annotations

from attrs import frozen

from ...arch._base import Insn
from ..patch.region import NotOptimizable, region_of
from ..patch.rooms import Rooms


@frozen(kw_only=True)
class Verdict:
    """What k.check() found out about an address.

    Attributes:
        addr, size, name, raw: the instruction (row name, bytes). probeable: a kprobe may be registered. reason: why not.
        how: "step" (out of line), "simulate", "step+simulate" (a branch with its delay slot) or "refuse".
        boostable: one trap per hit. optimizable: a jump may replace it. why_not_optimized: reason.
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


def verdict(insn: Insn, reason: str, rooms: Rooms) -> Verdict:
    """The verdict on an instruction; `reason`: why no probe may be registered there, or ""."""
    how = "+".join(word for word, there in (("step", insn.body), ("simulate", insn.simulate)) if there) or "step"
    boost = bool(insn.body) and insn.boostable and insn.simulate is None and rooms.arch.jump_in(insn.mode) is not None
    why = reason
    if not reason:
        try:
            region_of(insn, rooms)
        except NotOptimizable as refusal:
            why = str(refusal)
    return Verdict(addr=insn.addr, size=insn.size, name=insn.name, raw=insn.raw, probeable=not reason, reason=reason,
                   how="refuse" if reason else how, boostable=boost and not reason, optimizable=not why, why_not_optimized=why)
