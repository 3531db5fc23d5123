"""Mends the CPU's state, which the engine leaves wrong when it reports an access.

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
    """Make the function that a hook of accesses calls last.

    Returns:
        The function; None where the engine leaves nothing wrong.

    Raises:
        Unsupported: the engine's words are not where they are known to be.
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
    """Tell whether code that accesses memory in such a place does the same with a hook as without.
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
                told.append(1)
                undo()

            engine.hook(const.UC_HOOK_MEM_READ, CALL(report))
        engine.start(BASE | min(arch.traps.end), BASE + len(mended.code))
        names = [name for name in arch.regs.names if name != arch.regs.pc]
        registers = [engine.reader(guest.registers.number(name), arch.bits)() for name in names
                     if name not in guest.registers.hidden]
        seen.append(registers)
        if hooked and not accesses:
            return False
    return seen[0] == seen[1]
