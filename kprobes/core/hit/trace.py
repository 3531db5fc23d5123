"""The stack of a hit, seen through return probes: by call frame information, else along the guest's frame pointers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...arch._base import Arch
from ...debug.unwind import Unwinder
from ...errors import GuestFault, Unsupported
from ...regs import Regs
from .calls import Calls


def stack_trace(calls: Calls, unwinder: Unwinder, arch: Arch, regs: Regs, limit: int, at_entry: bool) -> list[int]:
    """See Kprobes.stack_trace(). at_entry: pc is at a function's entry."""
    if unwinder.row(regs.pc) is not None:
        links = iter(calls.above(regs))
        above = unwinder.walk(regs, lambda address: _seen_through(address, calls.trampoline, links))
        return [regs.pc, *islice(above, max(limit - 1, 0))]
    return _by_pointers(calls, arch, regs, limit, at_entry)


def _by_pointers(calls: Calls, arch: Arch, regs: Regs, limit: int, at_entry: bool) -> list[int]:
    frame = arch.linkage.frame if arch.linkage is not None else None
    if frame is None:
        raise Unsupported(f"{arch.name} has no frame-pointer convention, and the code at pc no call frame information",
                          address=regs.pc, hint="build the guest with -fasynchronous-unwind-tables or -g")
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
