"""Differences between two runs, with and without probes, and functions that list them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from ..errors import GuestFault
from ..regs import Regs


@frozen
class Difference:
    """A thing that is not as it is without probes.

    Attributes:
        what: "register x0", "memory 0x1000", "fault", "result", "handlers", ...
        plain: without probes, as a string.
        probed: with them.
        where: the run it was seen in, for people.
    """

    what: str
    plain: str
    probed: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.plain} without probes, {self.probed} with them"


@frozen
class Ending:
    """The end of a run.

    Attributes:
        result: what the run returned.
        fault: a GuestFault's facts, or another exception's type and text, or None.
    """

    result: Any = None
    fault: tuple[Any, ...] | None = None


def ending(run: Callable[[], Any]) -> Ending:
    """Call `run`; return its result, or the facts of the GuestFault with which it failed.

    Other exceptions are passed on.
    """
    try:
        return Ending(run())
    except GuestFault as error:
        return Ending(None, facts(error))


def facts(error: GuestFault) -> tuple[Any, ...]:
    """Return the parts of a fault that must be the same with and without probes.

    Args:
        error: the fault that a run has raised.

    Returns:
        (name of the exception's class, access, pc, address, number).
    """
    return type(error).__name__, error.access, error.pc, error.address, error.number


def registers(regs: Regs, names: Iterable[str] | None = None) -> dict[str, int]:
    """Read registers: name -> value.

    Args:
        regs: the registers.
        names: which; None: all that the machine has.
    """
    return {name: regs[name] for name in (regs.names if names is None else names)}


def compare_registers(
    plain: dict[str, int], probed: dict[str, int], where: str
) -> list[Difference]:
    """List the registers that differ.

    Args:
        plain: register name -> value, without probes.
        probed: the same registers with probes.
        where: names the run, for people.
    """
    if plain == probed:
        return []
    return [
        Difference(f"register {name}", hex(plain[name]), hex(probed[name]), where)
        for name in plain
        if plain[name] != probed[name]
    ]


def compare_bytes(base: int, plain: bytes, probed: bytes, where: str) -> list[Difference]:
    """Return the first run of bytes that differs, of 16 bytes at most; [] where all are the same.

    Args:
        base: address of the first byte.
        plain: the bytes without probes.
        probed: the bytes with probes.
        where: names the run, for people.
    """
    if plain == probed:
        return []
    start = next(
        (i for i, (a, b) in enumerate(zip(plain, probed, strict=False)) if a != b),
        min(len(plain), len(probed)),
    )
    end = start + 1
    while end < min(len(plain), len(probed), start + 16) and plain[end] != probed[end]:
        end += 1
    return [
        Difference(
            f"memory {base + start:#x}", plain[start:end].hex(), probed[start:end].hex(), where
        )
    ]


def compare_endings(plain: Ending, probed: Ending, where: str) -> list[Difference]:
    """List how two runs ended differently: their faults, and their results.

    Of an address that a fault has, only the low 48 bits are compared.

    Args:
        plain: how the run ended without probes.
        probed: how it ended with probes.
        where: names the run, for people.
    """
    out = []
    if _shortened(plain.fault) != _shortened(probed.fault):
        out.append(Difference("fault", _fault(plain.fault), _fault(probed.fault), where))
    if plain.result != probed.result:
        out.append(Difference("result", repr(plain.result), repr(probed.result), where))
    return out


def _shortened(fault: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return the facts of a fault (as facts() returns them) with the low 48 bits of its address:
    engines report no more. None, and facts without an address, as they are.
    """
    if fault is None or fault[3] is None:
        return fault
    return (*fault[:3], fault[3] & (1 << 48) - 1, *fault[4:])


def _fault(fault: tuple[Any, ...] | None) -> str:
    """Return a fault's facts as text, integers in hexadecimal; "none" for None: no fault."""
    if fault is None:
        return "none"
    return " ".join(hex(f) if isinstance(f, int) else str(f) for f in fault)
