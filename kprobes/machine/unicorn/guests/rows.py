"""The guests that Unicorn runs: a row per architecture, a file per family. A family's file says
where the engine differs for it.
"""

from __future__ import annotations

import unicorn
from unicorn import unicorn_const as const

from ....arch import get
from ....arch._rows import row
from ....arch._stub import StubFacts
from ....errors import Unsupported
from . import arm, m68k, mips, ppc, riscv, s390x, sparc, tricore, x86
from .guest import Guest

FAMILIES = (m68k, sparc, x86, arm, riscv, mips, ppc, s390x, tricore)
GUESTS: dict[str, Guest] = {
    name: guest for family in FAMILIES for name, guest in family.GUESTS.items()
}


def guest_of(arch: str) -> Guest:
    """Return the engine's row of an architecture.

    It is one of GUESTS, or an entry point of the group `kprobes.unicorn` whose name is the
    architecture's.

    Args:
        arch: name of the architecture.

    Raises:
        Unsupported: there is none, or the entry point is no Guest.
    """
    if arch in GUESTS:
        return GUESTS[arch]
    from importlib.metadata import entry_points  # it takes longer than all of these rows

    for entry in entry_points(group="kprobes.unicorn", name=arch):
        guest = entry.load()
        if not isinstance(guest, Guest):
            raise Unsupported(
                f"the entry point {entry.value!r} is no Guest",
                hint="see docs/adding-an-architecture.md",
            )
        return guest
    if row(get(arch), StubFacts) is None:
        raise Unsupported(
            f"no engine runs {arch}",
            hint="its package has no entry point kprobes.unicorn",
            python="a PaperMachine runs a few of its instructions",
        )
    raise Unsupported(
        f"Unicorn has no {arch} support",
        hint="use --qemu",
        python="which is QemuMachine, or add an entry point kprobes.unicorn",
    )


def arch_of(uc: unicorn.Uc) -> str:
    """Return the name of an engine's architecture, by the engine's kind and mode.

    Raises:
        Unsupported: it is none of GUESTS.
    """
    kind, mode = uc.query(const.UC_QUERY_ARCH), uc.query(const.UC_QUERY_MODE)
    for name, guest in GUESTS.items():
        cpu = guest.cpu
        if (
            cpu.arch == kind
            and not (cpu.mode ^ mode) & ~cpu.state_mode
            and (cpu.recognise is None or cpu.recognise(uc))
        ):
            return name
    raise Unsupported(
        f"no architecture for Unicorn's arch {kind} in mode {mode:#x}",
        hint=f"pass arch=, one of {', '.join(GUESTS)}",
    )
