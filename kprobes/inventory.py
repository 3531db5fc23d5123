"""What there is to probe in a machine, its functions and their instructions; and what runs an
architecture."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import GuestFault

if TYPE_CHECKING:
    from .arch._base import Arch
    from .kprobes import Kprobes
    from .machine.unicorn.machine import UnicornMachine
    from .symbols import Symbol


def engines(arch: Arch) -> tuple[str, ...]:
    """Return what runs guests of an architecture: "Unicorn", "QEMU", both, or "model".

    "model" is a machine in Python, made from the architecture's own description
    (`kprobes.testing`): no other engine is known that runs it.
    """
    from .arch._rows import row
    from .arch._stub import StubFacts
    from .machine.unicorn.guests.rows import GUESTS

    found = []
    if arch.name in GUESTS:
        found.append("Unicorn")
    if row(arch, StubFacts) is not None:
        found.append("QEMU")
    return tuple(found) or ("model",)


def functions(machine: UnicornMachine, pattern: str = "*") -> list[Symbol]:
    """Named functions, by address; `pattern`: a shell glob of their names."""
    named = [symbol for symbol in machine.symbols if symbol.kind in ("func", "ifunc")]
    return sorted((s for s in named if fnmatch.fnmatchcase(s.name, pattern)), key=lambda s: (s.address, s.name))


def instructions(machine: UnicornMachine, k: Kprobes, symbol: Symbol) -> Iterator[int]:
    """Addresses of a function's instructions, one after the other, data amid them as far as it is known left out."""
    from .core.register.locate import code_of

    entry = machine.arch.pointers.code_address(symbol.address | symbol.mode, machine.read)
    address, end = entry.addr, machine.symbols.extent(code_of(machine, symbol, entry))
    while address < end and _mapped(machine, address):  # a symbol without a size reaches to the next, however far
        yield address
        address += k.check(address).size or machine.arch.insn_align


def _mapped(machine: UnicornMachine, address: int) -> bool:
    try:
        machine.read(address, 1)
    except GuestFault:
        return False
    return True
