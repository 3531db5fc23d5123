"""The guests that Unicorn runs: a row per architecture, a file per family. A family's file says where the engine differs for it."""

from __future__ import annotations

from . import arm, m68k, mips, ppc, riscv, s390x, sparc, tricore, x86
from .guest import Guest

FAMILIES = (m68k, sparc, x86, arm, riscv, mips, ppc, s390x, tricore)
GUESTS: dict[str, Guest] = {name: guest for family in FAMILIES for name, guest in family.GUESTS.items()}
