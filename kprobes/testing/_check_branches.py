"""Checks of check_arch() about what follows a branch: a return address, or data.

Each check takes the architecture and a source of random numbers, and yields a sentence for each
breach.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from ..arch._base import Arch
from ..errors import KprobeError
from ._check_decode import home
from ._paper import paper_regs

LINKING = 3000  # random instructions looked at for return addresses


def check_links(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that a simulated instruction that keeps its next address somewhere has `links` set.

    Else a jump might cover the place to which it returns. Of random instructions only the first
    that breaks this is reported.
    """
    if arch.jump is None:
        return
    step = max(map(len, arch.traps.end.values()))
    for _ in range(LINKING):
        code, mode = rng.randbytes(2 * arch.max_insn), rng.choice(tuple(arch.traps.end))
        insn = arch.decode(code, home(arch) & -step | mode)
        if insn.reject or insn.simulate is None or insn.displace is None or insn.links:
            continue
        regs = paper_regs(arch)
        try:
            target = insn.simulate(regs)
        except KprobeError:
            continue
        after = insn.next | insn.mode
        kept = after in (regs[name] for name in regs.names if name != arch.regs.pc) or after in (
            regs.stack(n) for n in (-1, 0)
        )
        if target != after and kept:
            yield (
                f"{insn.name} {insn.raw.hex()} keeps its next address and does not say that "
                "it links"
            )
            return


def check_falls_through(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that `falls_through` is False for simulated instructions that never go on, and only for
    them.

    Data may stand behind those; exclusive sequences are followed along the others. An instruction
    that goes on although it says that it does not is reported, and ends the check. Else names are
    reported that never went on: of instructions shorter than a jump, seen more than 20 times.
    """
    often, going_on = Counter[str](), set()
    for _ in range(2 * LINKING):
        code, mode = rng.randbytes(2 * arch.max_insn), rng.choice(tuple(arch.traps.end))
        insn, jump = arch.decode(code, home(arch) | mode), arch.jump_in(mode)
        if (
            insn.reject
            or insn.simulate is None
            or insn.displace is None
            or insn.links
            or insn.target == insn.next
        ):
            continue
        regs = paper_regs(arch)
        # which may hold ITSTATE
        for name in set(arch.regs.names) - {
            arch.regs.pc,
            arch.regs.sp,
            arch.walking.conditioned and arch.regs.flags,
        }:
            regs[name] = rng.choice((0, 1, rng.getrandbits(128)))
        try:
            goes_on = insn.simulate(regs) == insn.next | mode
        except KprobeError:
            continue
        if goes_on and not insn.falls_through:
            yield (
                f"{insn.name} {insn.raw.hex()} goes on to its next address, and says that it "
                "never falls through"
            )
            return
        going_on |= {insn.name} if goes_on else set()
        often[insn.name] += (
            insn.falls_through and jump is not None and insn.next < insn.addr + jump.size
        )
    yield from (
        f"{name} never goes on to its next address; does it fall through?"
        for name in often
        if often[name] > 20 and name not in going_on
    )
