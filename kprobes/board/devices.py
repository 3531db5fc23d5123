"""Device, the base class of all models, and the simplest devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, TypedDict

from ..errors import BadArgument
from .wires import Wires

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DeviceSettings(TypedDict, total=False):
    """Arguments of all devices that are given by name.

    Attributes:
        size: bytes; None: the model's SIZE.
        line: interrupt of the CPU that it raises; None: none.
        name: what tables call it; "": its addresses.
    """

    size: int | None
    line: int | str | None
    name: str


class Device:
    """A range of addresses with registers: the base class of all models.

    A model overrides read() and write().

    Args:
        start: its first address.
        size: bytes; None: SIZE.
        line: interrupt of the CPU that it raises; None: none.
        name: what tables call it; "": its addresses.

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
        """Become part of a machine, with the device's interrupt low. Called once, by Bus.connect().

        Args:
            wires: the machine: its registers, interrupts and stop().

        Raises:
            Unsupported: the device needs interrupts, and the machine has none.
        """
        self._wires = wires
        if self.line is not None:
            wires.interrupts.set_level(self.line, False)

    @property
    def wires(self) -> Wires:
        """The machine that the device is part of. Raises BadArgument: it is part of none yet."""
        if self._wires is None:
            raise BadArgument(f"device {self.name} is part of no machine", hint="put it on a Board")
        return self._wires

    def read(self, offset: int, size: int) -> int:
        """Return what the guest reads; called at each read. 0, unless a model overrides this.

        Args:
            offset: from the device's start.
            size: bytes of the access: 1, 2, 4 or 8.
        """
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Do what a write of the guest's does; called at each write. Nothing, unless a model
        overrides this.

        Args:
            offset: from the device's start.
            size: bytes of the access: 1, 2, 4 or 8.
            value: what is written, unsigned.
        """

    def ask(self, on: bool) -> None:
        """Raise the device's interrupt, or end it; nothing happens without a line or a machine.

        Args:
            on: True: raise it; False: end it.
        """
        if self._wires is not None and self.line is not None:
            self._wires.interrupts.set_level(self.line, on)


LARGEST = 8  #: bytes of a register at most


def bits_below(offset: int, size: int, width: int, order: str) -> int:
    """Return how many bits of a register are below the part of it that an access has.

    Args:
        offset: of the access, from any multiple of `width`.
        size: bytes of the access.
        width: bytes of the register.
        order: "little" or "big": the guest's byte order.
    """
    before = offset % width
    if order == "big":
        before = width - size - before
    return 8 * max(before, 0)


class Unknown(Device):
    """A region where reads give 0, or what registers have after a reset, and writes are dropped.

    Args:
        start: its address.
        reset: offset of a register -> (its value after a reset, its bytes); other reads give 0.
        settings: of DeviceSettings.
    """

    def __init__(
        self,
        start: int,
        *,
        reset: Mapping[int, tuple[int, int]] | None = None,
        **settings: Unpack[DeviceSettings],
    ) -> None:
        super().__init__(start, **settings)
        self._reset = reset or {}

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset` as a reset leaves it, or the part of it that an access of
        `size` bytes reads; 0 where no register is known.
        """
        for start in range(offset, max(offset - LARGEST, -1), -1):
            value, width = self._reset.get(start, (0, 0))
            if offset < start + width:
                order = self.wires.regs.arch.order.value
                shift = bits_below(offset - start, size, width, order)
                return value >> shift & (1 << 8 * size) - 1
        return 0


class Power(Device):
    """A switch: any write to it stops the run."""

    SIZE = 4

    def write(self, offset: int, size: int, value: int) -> None:
        """Stop the run."""
        self.wires.stop()


#: kind, as board files and --device say it -> makes one: (start, **settings)
KINDS: dict[str, Callable[..., Device]] = {"unknown": Unknown, "power": Power}


def make_device(kind: str, start: int, settings: Mapping[str, object]) -> Device:
    """Make a device by the name of its kind.

    Args:
        kind: one of KINDS.
        start: address of the device.
        settings: what else the model takes: "size", "line", "name" and its own.

    Raises:
        BadArgument: there is no such kind, or it does not take one of the settings, or its value.
    """
    if kind not in KINDS:
        raise BadArgument(f"{kind!r} is no device", hint=f"there are {', '.join(KINDS)}")
    try:
        return KINDS[kind](start, **settings)
    except BadArgument:  # which is a TypeError, too
        raise
    except TypeError:
        wrong = [name for name in settings if name not in _settings_of(KINDS[kind])]
        raise BadArgument(
            f"{kind} takes no {' or '.join(wrong or settings)}",
            hint="size, name and interrupt (line in Python) are what all devices take",
        ) from None


def _settings_of(model: Callable[..., Device]) -> set[str]:
    """Return the names of the settings that a model and the classes that it is derived from take.

    Args:
        model: one of KINDS.
    """
    makers = [each.__dict__.get("__init__") for each in getattr(model, "__mro__", ())]
    return {
        name for each in (model, *filter(callable, makers)) for name in signature(each).parameters
    }
