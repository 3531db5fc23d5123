"""The system calls of a process that the stub of QEMU's user mode can report.

QEMU 10 can report a single system call if its number is below 1024. With larger numbers (MIPS's
begin at 4000 and 5000) it reports all calls or none, and every call then costs two stops. It has no
clone3().
"""

from __future__ import annotations

from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row

ALONE = 1024  #: a call with a smaller number can be reported alone


def told_ends(arch: Arch) -> tuple[int, ...]:
    """Return the numbers of the system calls exit() and exit_group() if QEMU can report single ones
    of them; else ().
    """
    known = _known(arch)
    return known.exits if all(number < ALONE for number in known.exits) else ()


def told_clone(arch: Arch) -> int | None:
    """Return the number of the system call clone() if QEMU can report it without the other calls;
    else None.
    """
    number = _known(arch).clone
    return number if number is not None and number < ALONE else None


def among_all(arch: Arch) -> tuple[int, ...]:
    """Return the numbers of exit(), exit_group() and clone() where QEMU reports all system calls or
    none.

    The result is () where QEMU can report these calls alone, or they are not known.
    """
    known = _known(arch)
    if known.clone is None or known.clone < ALONE:
        return ()
    return (*known.exits, known.clone)


def _known(arch: Arch) -> Linux:
    """Return what is known of Linux's system calls on an architecture; default values where nothing
    is.
    """
    return row(arch, Linux) or Linux()
