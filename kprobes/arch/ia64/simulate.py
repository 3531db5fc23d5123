"""Simulates Itanium's instructions that read or change IP: br, brl, mov ip.

"Instruction Reference", volume 3. A breakpoint has its instruction's qualifying predicate, so that
is true at a hit; a caller that simulates without a hit may find it false. Each simulation changes
registers as its instruction does, and returns the target to go to next. Parameters of one letter
are fields of the row's picture: q qualifying predicate, a branch register that is written, b branch
register that is read.
"""

from __future__ import annotations

from ...regs import Regs
from .._base import Insn
from . import frames
from .bundle import SIZE


def holds(regs: Regs, predicate: int) -> bool:
    """Whether a predicate register is set; p0 always is."""
    return not predicate or bool(regs["pr"] >> predicate & 1)


def taken(insn: Insn) -> int:
    """Return the target of a branch relative to IP."""
    assert insn.target is not None
    return insn.target


def behind(insn: Insn) -> int:
    """Return the address of the next bundle, to which a call returns."""
    return (insn.addr & -SIZE) + SIZE & (1 << 64) - 1


def br_cond(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    """Simulate br.cond: return its target where predicate `q` holds, else the next address."""
    return taken(insn) if holds(regs, q) else insn.next


def br_cond_b(regs: Regs, insn: Insn, b: int, q: int, **_: int) -> int:
    """Simulate br.cond through branch register `b`: return the bundle's address in it where
    predicate `q` holds, else the next address.
    """
    return regs[f"b{b}"] & -SIZE if holds(regs, q) else insn.next


def br_call(regs: Regs, insn: Insn, a: int, q: int, **_: int) -> int:
    """Simulate br.call: make the callee's frame, set branch register `a` to the return address, and
    return the target. Where predicate `q` is false, change nothing and return the next address.
    """
    if not holds(regs, q):
        return insn.next
    frames.call(regs)
    regs[f"b{a}"] = behind(insn)
    return taken(insn)


def br_call_b(regs: Regs, insn: Insn, a: int, b: int, q: int) -> int:
    """Simulate br.call through branch register `b`: make the callee's frame, which writes the
    caller's registers to its backing store in memory; set branch register `a` to the return
    address; and return the bundle's address in the old value of `b`. Where predicate `q` is false,
    change nothing and return the next address.

    Raises:
        GuestFault: the backing store cannot be written.
    """
    if not holds(regs, q):
        return insn.next
    target = regs[f"b{b}"] & -SIZE  # first: both may be the same
    frames.call(regs)
    regs[f"b{a}"] = behind(insn)
    return target


def br_ret(regs: Regs, insn: Insn, b: int, q: int) -> int:
    """Simulate br.ret: restore the caller's frame, and return the bundle's address in branch
    register `b`. Where predicate `q` is false, change nothing and return the next address.
    """
    if not holds(regs, q):
        return insn.next
    frames.ret(regs)
    return regs[f"b{b}"] & -SIZE


def br_cloop(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate br.cloop: count AR.LC down; return the target until it is 0, then the next
    address.
    """
    if not regs["ar_lc"]:
        return insn.next
    regs["ar_lc"] -= 1
    return taken(insn)


def _p63(regs: Regs, value: int) -> None:
    """Set predicate register 63 to `value`, 0 or 1."""
    regs["pr"] = regs["pr"] & ~(1 << 63) | value << 63


def _drain(regs: Regs) -> bool:
    """Do what a loop's epilogue does to the registers: begin another stage, unless it was the last.

    Predicate 63 becomes 0. Where AR.EC is not 0, it counts down and the registers rotate.

    Returns:
        False: it was the last stage, AR.EC was 0 or 1.
    """
    stages = regs["ar_ec"]
    _p63(regs, 0)
    if stages:
        regs["ar_ec"] = stages - 1
        frames.rotate(regs)
    return stages > 1


def _counted(regs: Regs) -> bool:
    """Do what br.ctop and br.cexit do to the registers: begin a counted loop's next iteration.

    Where AR.LC is not 0, it counts down, predicate 63 becomes 1, and the registers rotate; else the
    epilogue goes on (_drain).

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
    """Do what br.wtop and br.wexit do to the registers: begin another iteration.

    Where the predicate holds, predicate 63 becomes 0, and the registers rotate; else the epilogue
    goes on (_drain).

    Args:
        regs: the guest's registers.
        predicate: number of the predicate that says whether the loop has more iterations.

    Returns:
        True: the loop goes on; False: the epilogue is over, too.
    """
    if not holds(regs, predicate):
        return _drain(regs)
    _p63(regs, 0)
    frames.rotate(regs)
    return True


def br_ctop(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate br.ctop: begin the next iteration; return the target while the loop goes on, then
    the next address.
    """
    return taken(insn) if _counted(regs) else insn.next


def br_cexit(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate br.cexit: begin the next iteration; return the next address while the loop goes on,
    then the target.
    """
    return insn.next if _counted(regs) else taken(insn)


def br_wtop(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    """Simulate br.wtop: begin the next iteration; return the target while the loop goes on, then
    the next address.
    """
    return taken(insn) if _while(regs, q) else insn.next


def br_wexit(regs: Regs, insn: Insn, q: int, **_: int) -> int:
    """Simulate br.wexit: begin the next iteration; return the next address while the loop goes on,
    then the target.
    """
    return insn.next if _while(regs, q) else taken(insn)


def mov_ip(regs: Regs, insn: Insn, d: int, q: int) -> int:
    """Simulate MOV from IP: put the bundle's address into register `d`, where predicate `q` holds.
    """
    if holds(regs, q) and d:
        regs[f"r{d}"] = insn.addr & -SIZE
    return insn.next
