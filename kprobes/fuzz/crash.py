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
    """An error of the guest's, found by a check of the user's own (an oracle).

    Raise it in a probe's handler, or in a target's fuzz(): the run counts as a crash.
    """


@frozen
class CodePlace:
    """An address of guest code, with its names for people.

    Attributes:
        address: the guest address.
        name: "function+0xOFFSET", or the address.
        line: "FILE:LINE" of the source; "" where that is not known.
    """

    address: int
    name: str
    line: str


@frozen
class Finding:
    """A crash of a run, as it is kept and reported.

    Attributes:
        hash: the same for crashes that have the same signal, kind and innermost functions.
        signal: name of the signal that a process would have died of.
        kind: class of the error: "GuestFault", or an oracle's, behind a slash what that has found.
        reason: what the error says.
        access: the access that has faulted: "read", "write", "fetch" ...; "" of other errors.
        address: guest address of that access; None: not known, or no fault.
        registers: name of a register -> value, where the guest stopped.
        stack: where the guest stopped, then its callers, innermost first.
        incomplete: True where the stack's outermost caller was not reached.
        path: the blocks that the guest executed last, the latest last.
        details: what an oracle says beyond `reason`, a line each.
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
        """Return the finding as a value for json.dumps(): its attributes by name, places of `stack`
        and `path` as mappings, too.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Finding:
        """Make a finding of a value that to_json() gave."""
        known = dict(value)
        known["stack"] = [CodePlace(**place) for place in known["stack"]]
        known["path"] = [CodePlace(**place) for place in known["path"]]
        return cls(**known)


def examine(
    bench: InputRunner, data: bytes, seconds: float | None = None
) -> tuple[Fate, Finding | None]:
    """Run an input again, and describe the crash that it leads to.

    The run's last blocks are recorded, so it takes many times as long as a plain one. The guest
    stays as the run left it.

    Args:
        bench: runs the input.
        data: the input.
        seconds: what the run may take; None: there is no limit.

    Returns:
        (how the run has ended, the finding). The finding is None where nothing went wrong this
        time, or the run was ended by `seconds` or a bound of the target's own.
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
    """Return the kind of an error for Finding.kind, and its lines for Finding.details.

    An oracle's error may have an attribute `finding`, as those of a heap check have: an object with
    a `kind`, whose text has more lines than the message, other stacks for instance.

    Args:
        error: what the run raised.

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
    """Return name -> value of the registers that can be read."""
    found = {}
    for name in machine.regs.names:
        with suppress(KprobeError):
            found[name] = machine.regs[name]
    return found


def _stack(bench: InputRunner) -> tuple[list[CodePlace], bool]:
    """Walk the stack of the guest, which has stopped. The address that its call returns to, at the
    end, is left out.

    Args:
        bench: has the target, whose Kprobes walks the stack. Where it has none, one is made for
            this and closed.

    Returns:
        (places, innermost first; True if outer callers are missing). Where the stack cannot be
        walked, only the place where the guest stopped.
    """
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
    """Return a code address with its symbol and its source line.

    Args:
        machine: the guest's machine.
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

    Functions are hashed by name, without offsets; where there is no symbol, by image and offset.
    Where pc is in no image, as behind a return address that was overwritten, the rest of the stack
    is not used either: the last executed block that is in an image stands for all of it.

    Args:
        machine: the guest's machine, whose symbols name functions.
        kind: words for the kind of crash, which are hashed, too.
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
    """Return the name of the function at an address, as _hash() uses it.

    Args:
        machine: the guest's machine, which has symbols and images.
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
