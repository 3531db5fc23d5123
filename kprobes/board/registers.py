"""A device that is only described: registers with values, or with one value after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import BadArgument
from .devices import KINDS, Device, DeviceSettings, bits_below

if TYPE_CHECKING:
    from typing_extensions import Unpack

WIDTHS = (1, 2, 4, 8)  #: bytes that registers may have


class RegisterBank(Device):
    """Registers whose reads give values that are described; the guest's writes do not change these.

    A register without values reads as the guest has last written it, 0 at first. An access of a
    part of a register gives that part, in the guest's byte order.

    Args:
        start: its address.
        width: bytes of each register: 1, 2, 4 or 8.
        values: offset -> value, or values: each read gives the next one, and the last one again
            and again.
        settings: of DeviceSettings.

    Raises:
        BadArgument: an offset or a value is no integer from 0 on, or there is no value; no register
            is at an offset; or `width` is another.
    """

    def __init__(
        self,
        start: int,
        *,
        width: int = 4,
        values: Mapping[int, int | Sequence[int]] | None = None,
        **settings: Unpack[DeviceSettings],
    ) -> None:
        described: dict[int, tuple[int, ...]] = {}
        for offset, given in (values or {}).items():
            described[offset] = _sequence(f"{offset:#x}", given)
        super().__init__(start, **settings)
        if width not in WIDTHS:
            raise BadArgument(f"width is {width!r}", hint="write 1, 2, 4 or 8 bytes")
        self.width = width
        for offset in described:
            if not 0 <= offset < self.size or offset % width:
                raise BadArgument(
                    f"{self.name} has no register at {offset:#x}",
                    hint=f"it has {self.size:#x} bytes, and registers of {width}",
                )
        self._values = described
        self._next = dict.fromkeys(described, 0)
        self._written: dict[int, int] = {}

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset`, or the part of it that an access of `size` bytes reads.

        A register with several values goes on to its next one, whatever part of it was read.
        """
        register = offset - offset % self.width
        values = self._values.get(register)
        if values is None:
            value = self._written.get(register, 0)
        else:
            at = self._next[register]
            value = values[at]
            self._next[register] = min(at + 1, len(values) - 1)
        return value >> self._shift(offset, size) & (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        """Keep `value` in the register at `offset`, or in the part of it that an access of `size`
        bytes writes; a register with values stays as it is.
        """
        register = offset - offset % self.width
        if register not in self._values:
            shift = self._shift(offset, size)
            mask = (1 << 8 * size) - 1 << shift
            self._written[register] = self._written.get(register, 0) & ~mask | value << shift & mask

    def _shift(self, offset: int, size: int) -> int:
        """Return how many bits of its register are below the part that an access has.

        Args:
            offset: of the access, from the device's start.
            size: bytes of the access.
        """
        return bits_below(offset, size, self.width, self.wires.regs.arch.order.value)


def _offset(text: str) -> int | None:
    """Return the integer that a text is; None: it is none, but the name of a setting."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def _sequence(name: str, given: Any) -> tuple[int, ...]:
    """Return the values of a register.

    Args:
        name: its offset as text, for the error.
        given: an integer, a list of integers, or integers as text with a slash between two.

    Raises:
        BadArgument: it is something else, or there is no value.
    """
    values: Any = given
    if isinstance(given, str):
        values = given.split("/")
        with contextlib.suppress(ValueError):
            values = [int(text, 0) for text in values]
    elif isinstance(given, int):
        values = [given]
    good = isinstance(values, list | tuple) and values
    if not good or not all(type(value) is int and value >= 0 for value in values):
        raise BadArgument(
            f"register {name} is {given!r}",
            hint="write a value as 0x83, or several for one read after the other: [0, 0, 1]",
        )
    return tuple(values)


class _WrittenRegisters(RegisterBank):
    """Registers as board files and --device describe them: settings are offsets, too.

    Args:
        start: its address.
        settings: those of RegisterBank; and offsets as text, with an integer, a list of integers,
            or these as text: "0/0/1".
    """

    def __init__(self, start: int, **settings: Any) -> None:
        values = {**(settings.pop("values", None) or {})}
        for name in [*settings]:
            at = _offset(name)
            if at is not None:
                values[at] = _sequence(name, settings.pop(name))
        super().__init__(start, values=values, **settings)


KINDS["registers"] = _WrittenRegisters
