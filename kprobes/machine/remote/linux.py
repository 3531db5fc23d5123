"""The system calls of a process that QEMU's user mode tells a stub's client of.

QEMU 10 tells of a call by its number where that is below 1024; of others it tells of all or of none
(MIPS's begin at 4000 and 5000), and each call then costs two stops. It has no clone3().
"""

from __future__ import annotations

from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row

ALONE = 1024


def told_ends(arch: Arch) -> tuple[int, ...]:
    """Return the numbers of exit() and exit_group() where QEMU tells of them alone; else ()."""
    known = _known(arch)
    return known.exits if all(number < ALONE for number in known.exits) else ()


def told_clone(arch: Arch) -> int | None:
    """Return the number of clone() where QEMU tells of it alone; else None."""
    number = _known(arch).clone
    return number if number is not None and number < ALONE else None


def among_all(arch: Arch) -> tuple[int, ...]:
    """Return the numbers of exit(), exit_group() and clone() where QEMU tells of all calls or of
    none; else ().
    """
    known = _known(arch)
    if known.clone is None or known.clone < ALONE:
        return ()
    return (*known.exits, known.clone)


def _known(arch: Arch) -> Linux:
    return row(arch, Linux) or Linux()
