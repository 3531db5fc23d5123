"""A walk along the guest's frame pointers, seen through return probes."""

from __future__ import annotations

from collections.abc import Iterator

from ...arch._base import Arch
from ...errors import GuestFault, Unsupported
from ...regs import Regs
from .calls import Calls


def stack_trace(calls: Calls, arch: Arch, regs: Regs, limit: int, at_entry: bool) -> list[int]:
    """See Kprobes.stack_trace(). at_entry: pc is at a function's entry."""
    frame = arch.linkage.frame if arch.linkage is not None else None
    if frame is None:
        raise Unsupported(f"{arch.name} has no frame-pointer convention", hint="walk the stack by the guest's own means")
    links = iter(calls.above(regs))
    trace = [regs.pc]
    if at_entry and arch.linkage is not None:
        trace.append(_seen_through(arch.linkage.get(regs), calls.trampoline, links))
    base = regs[frame.register]
    while base and len(trace) < limit:
        try:
            above = regs.word(base + frame.next)
            address = regs.word((above if frame.above else base) + frame.address)
        except GuestFault:
            break
        if not address:
            break
        trace.append(_seen_through(address, calls.trampoline, links))
        if above <= base:
            break
        base = above
    return trace[:limit]


def _seen_through(address: int, trampoline: int, links: Iterator[int]) -> int:
    """The true address behind one found in a frame: trampolines stand in the order of the followed calls."""
    return next(links, address) if address == trampoline else address
