"""Names of system calls: those of the functions in a guest kernel's own table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from ..errors import GuestFault
from ..machine._base import Machine

TABLE: Final = "sys_call_table"
UNKNOWN: Final = "unknown_syscall"  # as ftrace prints it


def syscall_names(machine: Machine) -> Callable[[int], str] | None:
    """Return a function from a system call's number to its name ("sys_read").

    Args:
        machine: the guest, a kernel: the function reads the table of system calls in its memory.

    Returns:
        None: the guest's symbols have no table of system calls.
    """
    table = machine.symbols.find(TABLE)
    if table is None:
        return None
    word = machine.arch.bits // 8
    end = machine.symbols.extent(table) or math.inf

    def name(number: int) -> str:
        """Return a system call's name, read from the guest's table; UNKNOWN: there is none."""
        at = table.address + number * word
        if at + word > end:
            return UNKNOWN
        try:
            address = int.from_bytes(machine.read(at, word), machine.arch.order.value)
        except GuestFault:
            return UNKNOWN
        function = machine.symbols.covering(address)
        found = (
            re.search("sys_(?!ni_syscall)[a-z0-9_]+$", function.name)
            if function is not None
            else None
        )
        return found[0] if found else UNKNOWN

    return name
