"""Functions and instructions of a machine that can be probed, and engines that run an
architecture."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import GuestFault, Unsupported
from .symbols import name_matcher

if TYPE_CHECKING:
    from .arch._base import Arch
    from .kprobes import Kprobes
    from .machine.unicorn.machine import UnicornMachine
    from .symbols import Symbol


def engines(arch: Arch) -> tuple[str, ...]:
    """Return the engines in which guests of an architecture can be tried.

    The support matrix says what was proved in each.

    Args:
        arch: the architecture.

    Returns:
        Of "Unicorn", "QEMU", and "model", a CPU in Python (kprobes.machine.ia64), those that run
        it; () where nothing is known to.
    """
    from .arch._rows import row
    from .arch._stub import StubFacts
    from .machine.unicorn.guests.rows import guest_of

    found = []
    with contextlib.suppress(Unsupported):
        guest_of(arch.name)
        found.append("Unicorn")
    if row(arch, StubFacts) is not None:
        found.append("QEMU")
    if importlib.util.find_spec(f"kprobes.machine.{arch.name}") is not None:
        found.append("model")
    return tuple(found)


def summary() -> str:
    """Return how many architectures run in which engine, as one sentence."""
    from . import arch

    found = [engines(arch.get(name)) for name in arch.names()]
    unicorn = sum("Unicorn" in each for each in found)
    qemu = sum("QEMU" in each and "Unicorn" not in each for each in found)
    model = sum(each == ("model",) for each in found)
    return (
        f"{unicorn} architectures run in Unicorn, {qemu} more in QEMU, and {model} in a model that "
        "is part of this library."
    )


def functions(machine: UnicornMachine, pattern: str = "*") -> list[Symbol]:
    """Return the named functions of a machine, by address.

    Args:
        machine: has the image.
        pattern: a shell glob of their names.
    """
    matches = name_matcher(pattern)
    named = [symbol for symbol in machine.symbols if symbol.kind in ("func", "ifunc")]
    return sorted(
        (s for s in named if matches(s.name)),
        key=lambda s: (s.address, s.name),
    )


def instructions(machine: UnicornMachine, k: Kprobes, symbol: Symbol) -> Iterator[int]:
    """Yield the addresses of a function's instructions, one after the other.

    Data between them is decoded as instructions, too: k.check() says of such an address why no
    probe may be there. A function without a size reaches to the next symbol, or to where memory
    ends.

    Args:
        machine: has the image.
        k: the Kprobes, which tells how long instructions are.
        symbol: the function.
    """
    from .core.register.locate import code_of

    entry = machine.arch.pointers.code_address(symbol.address | symbol.mode, machine.read)
    address, end = entry.addr, machine.symbols.extent(code_of(machine, symbol, entry))
    while address < end and _mapped(
        machine, address
    ):  # a symbol without a size reaches to the next, however far
        yield address
        address += k.check(address).size or machine.arch.insn_align


def _mapped(machine: UnicornMachine, address: int) -> bool:
    """Return True if the guest has memory at an address."""
    try:
        machine.read(address, 1)
    except GuestFault:
        return False
    return True
