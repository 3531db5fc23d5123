"""Mends the CPU's state, which the engine leaves wrong when it reports an access.

A row is what is known of the engine for one architecture (guests/guest.py).

Before the engine calls a hook of accesses it works out where the guest is: pc, and what the
instruction's place means for it (the branch that a delay slot belongs to, the rest of an IT block).
It writes that over the CPU's state, and leaves it there. The code that was translated knows its
place by itself and writes no more than what follows: so behind the instruction the CPU would still
be in that slot or block. Undone in the hook, as its last act, it is as without one. The engine does
that only where a hook is called, never for accesses that no hook is for.
"""

from __future__ import annotations

from collections.abc import Callable

from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import Unsupported
from .engine import CALL, Engine
from .guests.guest import Guest, Mended

BASE = 0x10000
_tried: dict[str, bool] = {}


def mending(engine: Engine, guest: Guest, arch: Arch) -> Callable[[], None] | None:
    """Return the function that a hook of accesses calls last, to mend the CPU's state.

    The first call for an architecture tries in an engine of its own whether that helps.

    Args:
        engine: whose state is mended.
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Returns:
        The function; None where the engine leaves nothing wrong.

    Raises:
        Unsupported: that does not help, or the engine's words are not where they are known to be.
    """
    mended = guest.memory.mended
    if mended is None:
        return None
    if arch.name not in _tried:
        _tried[arch.name] = _known(guest, arch, mended)
    if not _tried[arch.name]:
        raise Unsupported(
            f"this Unicorn ({engine.version}) changes {arch.name} guests when it reports an "
            "access, in a way that is not known",
            hint="install unicorn 2.1.4",
        )
    return mended.undo(engine)


def _known(guest: Guest, arch: Arch, mended: Mended) -> bool:
    """Try in two new engines whether mending helps, and return whether it does: code that accesses
    memory in a delay slot or IT block must leave the same registers with a hook as without one.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.
        mended: the code, and how the state is mended.

    Returns:
        True: it does. False: registers differ, or the hook was not called.
    """
    seen = []
    for hooked in (False, True):
        engine = guest.cpu.fresh()
        engine.uc.mem_map(BASE, 0x1000)
        engine.write(BASE, mended.code)
        accesses: list[int] = []
        if hooked:
            undo = mended.undo(engine)

            def report(
                _uc: int, _kind: int, undo: Callable[[], None] = undo, told: list[int] = accesses
            ) -> None:
                """Count an access, and mend the state."""
                told.append(1)
                undo()

            engine.hook(const.UC_HOOK_MEM_READ, CALL(report))
        engine.start(BASE | min(arch.traps.end), BASE + len(mended.code))
        names = [name for name in arch.regs.names if name != arch.regs.pc]
        registers = [
            engine.reader(guest.registers.number(name), arch.bits)()
            for name in names
            if name not in guest.registers.hidden
        ]
        seen.append(registers)
        if hooked and not accesses:
            return False
    return seen[0] == seen[1]
