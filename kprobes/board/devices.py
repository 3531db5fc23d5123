"""Devices: what they have in common, and the simplest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import BadArgument
from .wires import Wires


class Device:
    """A range of addresses with registers: the base of all models.

    Attributes:
        name: what tables call it.
        start: its first address.
        size: in bytes.
        line: interrupt of the CPU that it raises; None: none.
        reads, writes: accesses so far.
    """

    SIZE = 0x1000

    def __init__(
        self, start: int, *, size: int | None = None, line: int | str | None = None, name: str = ""
    ) -> None:
        self.start = start
        self.size = self.SIZE if size is None else size
        self.line = line
        self.name = name or f"{start:#x}:{self.size:#x}"
        self.reads = 0
        self.writes = 0
        self._wires: Wires | None = None

    def connect(self, wires: Wires) -> None:
        """Become part of a machine. Raises Unsupported where it needs interrupts and there are
        none.
        """
        self._wires = wires
        if self.line is not None:
            wires.interrupts.set_level(self.line, False)

    @property
    def wires(self) -> Wires:
        """The machine that it is part of. Raises BadArgument where it is part of none yet."""
        if self._wires is None:
            raise BadArgument(f"device {self.name} is part of no machine", hint="put it on a Board")
        return self._wires

    def read(self, offset: int, size: int) -> int:
        """Return what the guest reads.

        Args:
            offset: from the device's start.
            size: bytes of the access: 1, 2, 4 or 8.
        """
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Take what the guest writes.

        Args:
            offset: from the device's start.
            size: bytes of the access: 1, 2, 4 or 8.
            value: what is written, unsigned.
        """

    def ask(self, on: bool) -> None:
        """Raise the device's interrupt (True), or end it (False); nothing happens without a line or
        a machine.
        """
        if self._wires is not None and self.line is not None:
            self._wires.interrupts.set_level(self.line, on)


class Unknown(Device):
    """A region where reads give 0 and writes are dropped."""


class Power(Device):
    """A switch: a write of anything stops the run."""

    SIZE = 4

    def write(self, offset: int, size: int, value: int) -> None:
        """Stop the run."""
        self.wires.stop()


#: kind, as board files and --device say it -> makes one: (start, **settings)
KINDS: dict[str, Callable[..., Device]] = {"unknown": Unknown, "power": Power}


def make_device(kind: str, start: int, settings: Mapping[str, object]) -> Device:
    """Make a device by its kind's name; raise BadArgument for an unknown kind or setting.

    Args:
        kind: one of KINDS.
        start: address of the device.
        settings: what else the model takes: "size", "line", "name" and its own.
    """
    if kind not in KINDS:
        raise BadArgument(f"{kind!r} is no device", hint=f"there are {', '.join(KINDS)}")
    try:
        return KINDS[kind](start, **settings)
    except TypeError:
        raise BadArgument(
            f"{kind} takes no {' or '.join(settings)}",
            hint="size, line and name are what all devices take",
        ) from None
