"""Register files of stubs, and what stubs call an architecture's registers.

Stubs number registers and send them in that order; most describe them by target.xml. The files of
those that do not, and names that are not the architecture's own, are in the architecture's row
(`StubFacts`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...arch._base import Arch
from ...arch._rows import row
from ...arch._stub import RegisterPart, StubFacts, StubRegister

#: registers of stubs that say which window others are in: they are written first
WINDOW = frozenset({"psr", "state"})


def facts_of(arch: Arch) -> StubFacts:
    """Return what is known of an architecture's stubs; default facts where nothing is."""
    return row(arch, StubFacts) or StubFacts()


def parts_of(arch: Arch, slots: Mapping[str, StubRegister]) -> Mapping[str, RegisterPart]:
    """Return where a stub has those of an architecture's registers that it calls otherwise.

    Args:
        arch: the architecture.
        slots: the stub's registers by name. A register that is not there under its other name, and
            is there under its own, is left out (arm64: only a CPU with SVE has z0, not v0).

    Returns:
        The architecture's register -> the stub's register, and which of its bits.
    """
    return {
        name: part
        for name, part in facts_of(arch).parts.items()
        if part.name in slots or name not in slots
    }
