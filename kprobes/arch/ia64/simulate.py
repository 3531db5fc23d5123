"""Simulates what reads or changes IP ("Instruction Reference", volume 3: br, brl, mov ip).

A breakpoint has its instruction's qualifying predicate, so that is true at a hit; a caller that
simulates without a hit may find it false.

Each simulation changes registers as its instruction does, and returns the target to go to next.
Parameters of one letter are fields of the row's picture: q qualifying predicate, a branch register
that is written, b branch register that is read.
"""

from __future__ import annotations

from ...regs import Regs
from .._base import Insn
from . import frames
from .bundle import SIZE


def holds(regs: Regs, predicate: int) -> bool:
    """Return True where a predicate register is set; p0 always is."""
    return not predicate or bool(regs["pr"] >> predicate & 1)


def taken(insn: Insn) -> int:
    """Return the target of a branch relative to IP."""
    assert insn.target is not None
    return insn.target


def behind(insn: Insn) -> int:
    """Return the next bundle: where a call returns to."""
    return (insn.addr & -SIZE) + SIZE & (1 << 64) - 1


def br_cond(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    return taken(insn) if holds(regs, q) else insn.next


def br_cond_b(regs: Regs, insn: Insn, b: int, q: int, **_: int) -> int:
    return regs[f"b{b}"] & -SIZE if holds(regs, q) else insn.next


def br_call(regs: Regs, insn: Insn, a: int, q: int, **_: int) -> int:
    """Simulate br.call: make the callee's frame, set the return link, and go to the target."""
    if not holds(regs, q):
        return insn.next
    frames.call(regs)
    regs[f"b{a}"] = behind(insn)
    return taken(insn)


def br_call_b(regs: Regs, insn: Insn, a: int, b: int, q: int) -> int:
    """Simulate br.call through a branch register."""
    if not holds(regs, q):
        return insn.next
    target = regs[f"b{b}"] & -SIZE  # first: both may be the same
    frames.call(regs)
    regs[f"b{a}"] = behind(insn)
    return target


def br_ret(regs: Regs, insn: Insn, b: int, q: int) -> int:
    """Simulate br.ret: bring the caller's frame back, and go where the branch register says."""
    if not holds(regs, q):
        return insn.next
    frames.ret(regs)
    return regs[f"b{b}"] & -SIZE


def br_cloop(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate br.cloop: count AR.LC down and branch until it is 0."""
    if not regs["ar_lc"]:
        return insn.next
    regs["ar_lc"] -= 1
    return taken(insn)


def _p63(regs: Regs, value: int) -> None:
    regs["pr"] = regs["pr"] & ~(1 << 63) | value << 63


def _drain(regs: Regs) -> bool:
    """Do what a loop's epilogue does to the registers: begin another stage, or the last one; return
    False for the last one.
    """
    stages = regs["ar_ec"]
    _p63(regs, 0)
    if stages:
        regs["ar_ec"] = stages - 1
        frames.rotate(regs)
    return stages > 1


def _counted(regs: Regs) -> bool:
    """Do what br.ctop and br.cexit do to the registers: begin a counted loop's next iteration.

    Returns:
        True: the loop goes on; False: the epilogue is over, too.
    """
    if not regs["ar_lc"]:
        return _drain(regs)
    regs["ar_lc"] -= 1
    _p63(regs, 1)
    frames.rotate(regs)
    return True


def _while(regs: Regs, predicate: int) -> bool:
    """Rotate the registers where `predicate` holds, else drain the epilogue; return whether the
    loop goes on.
    """
    if not holds(regs, predicate):
        return _drain(regs)
    _p63(regs, 0)
    frames.rotate(regs)
    return True


def br_ctop(regs: Regs, insn: Insn, **_: int) -> int:
    return taken(insn) if _counted(regs) else insn.next


def br_cexit(regs: Regs, insn: Insn, **_: int) -> int:
    return insn.next if _counted(regs) else taken(insn)


def br_wtop(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    return taken(insn) if _while(regs, q) else insn.next


def br_wexit(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    return insn.next if _while(regs, q) else taken(insn)


def mov_ip(regs: Regs, insn: Insn, d: int, q: int) -> int:
    """Simulate MOV from IP: put the bundle's address into register `d`, where predicate `q` holds.
    """
    if holds(regs, q) and d:
        regs[f"r{d}"] = insn.addr & -SIZE
    return insn.next
