"""Registers without a machine, as much of a guest as the simulation of an instruction needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arch._base import Arch
from ..errors import GuestFault
from ..regs import Regs


class _Paper:
    """Stands for a machine in Regs: an architecture, and memory at every address."""

    def __init__(self, arch: Arch) -> None:
        self.arch = arch
        self.cpu_task: Any = None
        self.bytes: dict[int, int] = {}

    def read(self, addr: int, size: int) -> bytes:
        """Return bytes of memory, 0 where nothing was written; raise GuestFault beyond the greatest
        address.
        """
        if not 0 <= addr <= self.arch.mask:
            raise GuestFault("no such address", address=addr)
        return bytes(self.bytes.get(addr + n, 0) for n in range(size))

    def write(self, addr: int, data: bytes) -> None:
        """Write bytes of memory."""
        self.bytes.update({addr + n: byte for n, byte in enumerate(data)})


def paper_regs(arch: Arch) -> Regs:
    """Make registers without a machine: all zero but the stack pointer, with memory at every
    address.
    """
    values = dict.fromkeys(arch.regs.names, 0)
    values[arch.regs.sp] = 0x80000 if arch.bits > 16 else 0x8000
    masks = {name: (1 << arch.regs.widths.get(name, arch.bits)) - 1 for name in values}

    def writer(name: str) -> Callable[[int], None]:
        """Make the function that writes a register, cut to its width."""
        return lambda value: values.__setitem__(name, value & masks[name])

    return Regs(
        _Paper(arch),
        {name: partial(values.__getitem__, name) for name in values},
        {name: writer(name) for name in values},
    )
