"""The region of a jump: the instructions that it would replace, and whether it may.

A probepoint is an address that has probes (patch/probepoint.py).

A jump longer than the probed instruction replaces the next ones too. The region must lie in one
function, all of it must be relocatable, and nothing may jump into its middle (Linux:
Documentation/trace/kprobes, "Safety Check"). Where instructions come in bundles (Itanium), a region
goes to the end of its bundle; no branch leads into the middle of one.
"""

from __future__ import annotations

from attrs import frozen

from ...arch._base import Bundles, Insn
from .arming import Arming
from .rooms import Rooms


class NotOptimizable(Exception):
    """Raised with the reason why a probepoint stays a breakpoint."""


@frozen
class Region:
    """The instructions that a jump at a probepoint replaces.

    Attributes:
        insns: the probed instruction, and those behind it.
        size: their bytes together, delay slots included.
        moved: they are executed in a buffer of the detour's. False where there is only the probed
            one, which has a slot or is simulated.
    """

    insns: tuple[Insn, ...]
    size: int
    moved: bool


def region_of(first: Insn, rooms: Rooms) -> Region:
    """Return the instructions that a jump at an instruction would replace.

    They go as far as the jump's bytes do (where instructions come in bundles, to the end of the
    bundle), and on to the end of a block of instructions that must stay together.

    Args:
        first: the probed instruction.
        rooms: the parts of the Kprobes.

    Raises:
        NotOptimizable: no jump may stand there; the message says why.
    """
    arch = rooms.arch
    jump = arch.jump_in(first.mode)
    if jump is None:
        raise NotOptimizable(f"{arch.name} has no jump that changes nothing else")
    if not rooms.can_call:
        raise NotOptimizable("this machine services nothing in place")
    alone = arch.bundles is None
    limit = first.addr + jump.size if alone else arch.last_of(first.addr) + 1
    if first.displace is None:
        if first.delay_slot:
            raise NotOptimizable(f"{first.name} cannot be displaced with its delay slot")
        if first.simulate is not None and first.next < limit:
            others = "shorter than a jump" if alone else "followed by others in its bundle"
            raise NotOptimizable(f"{first.name} is simulated and {others}")
    if alone and not first.boostable:
        raise NotOptimizable(f"no jump may stand in the place of {first.name}, or behind it")
    insns = [first]
    end = first.next
    block = first.together  # instructions that must stay together with the last one
    while end < limit or block:
        if insns[-1].links:
            raise NotOptimizable(
                f"the jump would cover what {insns[-1].name} returns to, at {end:#x}"
            )
        if alone and not insns[-1].falls_through:
            raise NotOptimizable(
                f"the jump would cover what follows {insns[-1].name}, at {end:#x}, and may be data"
            )
        insn = rooms.survey.decode(end, first.mode)
        _check_follower(insn)
        insns.append(insn)
        end = insn.next
        block = max(block - 1, insn.together)
    region = Region(tuple(insns), end - first.addr, len(insns) > 1 or first.displace is not None)
    _check_executed(first.addr, region, rooms)
    if arch.bundles is not None:
        _check_bundle(first, arch.bundles, rooms)
    elif jump.size > first.size:
        _check_surroundings(first, region, rooms)
    return region


def _check_follower(insn: Insn) -> None:
    """Check that an instruction behind the probed one can be displaced.

    Raises:
        NotOptimizable: it cannot.
    """
    what = "" if insn.span and insn.displace is not None else insn.reject
    if not what and insn.displace is None:
        if insn.simulate:
            what = "it must be simulated at its own address"
        elif not insn.boostable and not insn.span:
            what = "it cannot be displaced"
    if what:
        raise NotOptimizable(f"the jump would cover {insn.name} at {insn.addr:#x}: {what}")


def _check_bundle(first: Insn, bundles: Bundles, rooms: Rooms) -> None:
    """Check that a jump has room in its bundle, and that no other probe is armed there.

    Args:
        first: the probed instruction.
        bundles: how the architecture puts instructions together.
        rooms: the parts of the Kprobes.

    Raises:
        NotOptimizable: it has no room, or another probe is armed there.
    """
    why = bundles.no_jump(first)
    start = bundles.start(first.addr)
    for other in rooms.sites.between(start, start + bundles.size):
        if other.address != first.addr and other.state not in (Arming.DISARMED, Arming.GONE):
            why = why or f"another probe is armed in its bundle, at {other.address:#x}"
    if why:
        raise NotOptimizable(why)


def _check_executed(start: int, region: Region, rooms: Rooms) -> None:
    """Check that no instruction elsewhere executes a part of the region (s390x: EXECUTE).

    Args:
        start: address of the region.
        region: its instructions.
        rooms: the parts of the Kprobes.

    Raises:
        NotOptimizable: one may.
    """
    if rooms.arch.executing is None:
        return
    symbol = rooms.machine.symbols.covering(start)
    why = rooms.survey.executed.why_no_jump(
        start, start + region.size, None if symbol is None else rooms.survey.flow(symbol).executed
    )
    if why:
        raise NotOptimizable(why)


def _check_surroundings(first: Insn, region: Region, rooms: Rooms) -> None:
    """Check that the text of a region is only ever executed from its start.

    That is: it lies in one function, has no other probe and no data, and nothing jumps into its
    middle.

    Args:
        first: the probed instruction, the region's first.
        region: the instructions that the jump would replace.
        rooms: the parts of the Kprobes.

    Raises:
        NotOptimizable: this is not so, or not known.
    """
    symbols = rooms.machine.symbols
    start = first.addr
    end = start + region.size
    symbol = symbols.covering(start)
    if symbol is None:
        raise NotOptimizable("without a symbol nobody knows what jumps into the region")
    limit = symbols.extent(symbol)
    if limit and end > limit:
        raise NotOptimizable(f"the jump would reach beyond {symbol.name}")
    for addr in range(start + 1, end):
        inside = rooms.sites.probepoint(addr)
        if inside is not None and inside.state not in (Arming.DISARMED, Arming.GONE):
            raise NotOptimizable(f"another probe is armed inside the region, at {addr:#x}")
        if symbols.starts(addr):
            raise NotOptimizable(f"a function starts inside the region, at {addr:#x}")
    flow = rooms.survey.flow(symbol)
    why = flow.unknown or rooms.survey.data_in(first.next, end, symbol)
    if why or end > flow.end:
        raise NotOptimizable(
            why
            or f"{symbol.name} has no size: nobody knows what jumps into the region from behind "
            f"{flow.end:#x}"
        )
    inward = [t for t in range(start + 1, end) if t in flow.targets]
    if inward:
        raise NotOptimizable(
            f"a branch of {symbol.name} leads to {inward[0]:#x}, inside the region"
        )
