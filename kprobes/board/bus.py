"""The bus between a machine and its board's devices, of which several may share a page of
memory.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from ..errors import BadArgument
from .devices import Device
from .wires import Wires


class Host(Wires, Protocol):
    """A machine as Bus needs it: devices can be mapped into its memory."""

    @property
    def page_size(self) -> int:
        """Bytes of a page, of which devices take whole ones."""

    def mmio(
        self,
        start: int,
        size: int,
        read: Callable[[int, int], int] | None,
        write: Callable[[int, int, int], object] | None,
    ) -> None:
        """Map whole pages of guest memory whose accesses call functions.

        Args:
            start: address of the first page.
            size: bytes, whole pages.
            read: (offset, bytes) -> value; None: reads give 0.
            write: (offset, bytes, value); None: writes are lost.
        """


class Bus:
    """Passes a guest's accesses to devices, and counts them.

    Args:
        devices: all of them.

    Attributes:
        devices: all of them, by address.
        registers: (device, offset) -> [reads, writes].
        between: address -> accesses in devices' pages that are no device's.

    Raises:
        BadArgument: two devices overlap.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = sorted(devices, key=lambda device: device.start)
        self._starts = [device.start for device in self.devices]
        self.registers: dict[tuple[Device, int], list[int]] = {}
        self.between: Counter[int] = (
            Counter()
        )  #: accesses in devices' pages that are no device's, by address
        for one, other in zip(self.devices, self.devices[1:], strict=False):
            if one.start + one.size > other.start:
                raise BadArgument(
                    f"devices {one.name} and {other.name} are both at {other.start:#x}",
                    hint="give them places or sizes that do not overlap",
                )

    def connect(self, machine: Host) -> None:
        """Map the devices into a machine's memory, whole pages, and connect each to the machine.

        Raises:
            NoMemory: something else is mapped in a device's pages.
            Unsupported: a device needs interrupts, and the machine has none.
        """
        page = machine.page_size
        ranges: list[list[int]] = []
        for device in self.devices:
            start, end = device.start & -page, device.start + device.size + page - 1 & -page
            if ranges and start <= ranges[-1][1]:
                ranges[-1][1] = max(end, ranges[-1][1])
            else:
                ranges.append([start, end])
        for start, end in ranges:
            machine.mmio(
                start, end - start, partial(self._read, start), partial(self._write, start)
            )
        for device in self.devices:
            device.connect(machine)

    def _find(self, address: int) -> Device | None:
        """Return the device at an address; count the access in `between` and return None where none
        is.
        """
        at = bisect.bisect_right(self._starts, address) - 1
        if at >= 0 and address < self.devices[at].start + self.devices[at].size:
            return self.devices[at]
        self.between[address] += 1
        return None

    def _read(self, base: int, offset: int, size: int) -> int:
        """Read from the device at `base` + `offset`, and count the access, in `registers` and
        Device.reads. Where there is no device, return 0, and count it in `between`.

        Args:
            base: address of the first page of the devices' range.
            offset: bytes from `base`.
            size: bytes of the access.
        """
        device = self._find(base + offset)
        if device is None:
            return 0
        at = base + offset - device.start
        device.reads += 1
        self.registers.setdefault((device, at), [0, 0])[0] += 1
        return device.read(at, size)

    def _write(self, base: int, offset: int, size: int, value: int) -> None:
        """Write to the device at `base` + `offset`, and count the access for it. Where there is no
        device nothing is written, and the access is counted in `between`.

        Args:
            base: address of the first page of the devices' range.
            offset: bytes from `base`.
            size: bytes of the access.
            value: unsigned.
        """
        device = self._find(base + offset)
        if device is None:
            return
        at = base + offset - device.start
        device.writes += 1
        self.registers.setdefault((device, at), [0, 0])[1] += 1
        device.write(at, size, value)
