"""Crashes of runs: where the guest stood, how it came there, and which other runs did so in the
same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attrs import asdict, frozen

from ..errors import GuestFault, KprobeError
from ..kprobes import Kprobes
from ..machine.unicorn.machine import UnicornMachine
from .bench import Fate, InputRunner, signal_name

FRAMES = 5  #: of the stack that tell one crash from another
PATH = 32  #: blocks of the path that is kept
_OUTSIDE = "?"


class Crash(KprobeError):
    """An oracle has found an error of the guest's. Raise it in a handler, or in a target's
    fuzz().
    """


@frozen
class CodePlace:
    """An address of guest code, in words.

    Attributes:
        address: of the guest.
        name: "function+0xOFFSET", or the address.
        line: "FILE:LINE" of the source; "" where that is not known.
    """

    address: int
    name: str
    line: str


@frozen
class Finding:
    """A crash, as it is kept and reported.

    Attributes:
        hash: the same for crashes that have the same signal, kind and innermost functions.
        signal: name of the signal that a process would have died of.
        kind: class of the error: "GuestFault", or an oracle's, behind a slash what that has found.
        reason: what the error says.
        access: of a fault: "read", "write", "fetch" ...; "" of others.
        address: that a fault's access was to; None: not known.
        registers: name -> value, where the guest stopped.
        stack: innermost first.
        incomplete: True where the stack's outermost caller was not reached.
        path: the blocks that the guest executed last, the latest last.
        details: what an oracle says beyond that, a line each.
    """

    hash: str
    signal: str
    kind: str
    reason: str
    access: str
    address: int | None
    registers: dict[str, int]
    stack: list[CodePlace]
    incomplete: bool
    path: list[CodePlace]
    details: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a value for json.dumps()."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Finding:
        """Make a finding of what to_json() gave."""
        known = dict(value)
        known["stack"] = [CodePlace(**place) for place in known["stack"]]
        known["path"] = [CodePlace(**place) for place in known["path"]]
        return cls(**known)


def examine(
    bench: InputRunner, data: bytes, seconds: float | None = None
) -> tuple[Fate, Finding | None]:
    """Run an input, and find out what goes wrong. It takes many times as long as a plain run.

    Args:
        bench: runs it.
        data: the input.
        seconds: what the run may take; None: as long as it likes.

    Returns:
        The run's fate, and the finding; None: nothing went wrong this time, or the run reached a
        bound.
    """
    machine = bench.target.machine
    blocks = machine.last_blocks(PATH)
    try:
        fate = bench.run(data, seconds)
    finally:
        blocks.close()
    if fate.error is None or fate.timeout:
        return fate, None
    path = [_place(machine, address) for address in blocks.addresses]
    stack, incomplete = _stack(bench)
    error = fate.error
    fault = error if isinstance(error, GuestFault) else None
    name = signal_name(fate.signal)
    kind, details = _told(error)
    reason = error.plain if isinstance(error, KprobeError) else str(error)
    known = Finding(
        hash=_hash(
            machine,
            [name, kind, fault.access if fault else ""],
            [place.address for place in stack],
            blocks.addresses,
        ),
        signal=name,
        kind=kind,
        reason=reason,
        access=fault.access if fault else "",
        address=fault.address if fault else None,
        registers=_registers(machine),
        stack=stack,
        incomplete=incomplete,
        path=path,
        details=details,
    )
    return fate, known


def _told(error: Exception) -> tuple[str, list[str]]:
    """Return the kind of an error for a Finding, and the lines that it has beyond its message.

    An oracle's error may have a `finding`, as those of a heap check have: an object with a `kind`,
    whose text has more lines than the message, other stacks for instance.

    Returns:
        ("CLASS/KIND", the lines of the finding's text but the first); ("CLASS", []) without a
        finding.
    """
    name, finding = type(error).__name__, getattr(error, "finding", None)
    kind = getattr(finding, "kind", None)
    if not isinstance(kind, str):
        return name, []
    return f"{name}/{kind}", str(finding).splitlines()[1:]


def _registers(machine: UnicornMachine) -> dict[str, int]:
    """Return the values of the registers that can be read, by name."""
    found = {}
    for name in machine.regs.names:
        with suppress(KprobeError):
            found[name] = machine.regs[name]
    return found


def _stack(bench: InputRunner) -> tuple[list[CodePlace], bool]:
    """Return the stack where the guest stopped, and True if callers are missing."""
    machine = bench.target.machine
    try:
        if bench.target.kprobes is not None:
            stack = bench.target.kprobes.stack_trace(machine.regs)
        else:
            with Kprobes(machine) as kprobes:
                stack = kprobes.stack_trace(machine.regs)
    except KprobeError:  # no way to walk it, or no memory where it should be
        return [_place(machine, machine.regs.pc)], True
    if stack[-1] == machine.exit_address and len(stack) > 1:  # the call that the run was begun by
        stack.pop()
    return [_place(machine, address, n > 0) for n, address in enumerate(stack)], stack.incomplete


def _place(machine: UnicornMachine, address: int, returns: bool = False) -> CodePlace:
    """Describe a code address.

    Args:
        machine: the guest's.
        address: the address.
        returns: True for a return address: the line is that of the call before it.
    """
    line = None
    with suppress(KprobeError):
        line = machine.debug.line(address - returns)
    return CodePlace(
        address, machine.symbols.describe(address), str(line) if line is not None else ""
    )


def _hash(
    machine: UnicornMachine, kind: Sequence[str], stack: Sequence[int], path: Sequence[int]
) -> str:
    """Return a hash that is the same for crashes of one origin: 12 hexadecimal digits.

    Where pc is in no image, as behind a return address that was overwritten, the block that led
    there stands for it.

    Args:
        machine: names functions.
        kind: words for the kind of crash.
        stack: code addresses, innermost first, at least one; FRAMES of them count.
        path: addresses of the last executed blocks, the oldest first.
    """
    frames = [_function(machine, address) for address in stack]
    if frames[0] == _OUTSIDE:
        came_from = next(
            (
                name
                for address in reversed(path)
                if (name := _function(machine, address)) != _OUTSIDE
            ),
            _OUTSIDE,
        )
        frames = [_OUTSIDE, came_from]
    text = "\n".join([*kind, *frames[:FRAMES]])
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


def _function(machine: UnicornMachine, address: int) -> str:
    """Return the name of the function at an address, as hashes have it.

    Args:
        machine: has symbols and images.
        address: a code address.

    Returns:
        The name; IMAGE+0xOFFSET where there is no symbol; `?` where there is no image.
    """
    covering = machine.symbols.covering(address)
    if covering is not None:
        return str(covering.name).removeprefix(".")  # code of ELFv1's descriptors
    for name, (start, end) in machine.modules.items():
        if start <= address < end:
            return f"{name}+{address - start:#x}"
    return _OUTSIDE
