"""Devices: ranges of guest memory that Python functions stand for.

The engine calls them in the middle of a translated block: it goes on behind the access whatever
happens there, does not say where the guest is, and must not be started. What a function raises is
kept; the run stops in front of the next block, and raises it there. Until then a read gives 0 where
its function has raised.

A place is an address "as the engine has it": the one that the engine's functions take, which
differs from the guest's where guest addresses have segments (windows.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import unicorn
from attrs import field, frozen

from ...errors import BadArgument, NoMemory
from ...regs import Regs
from .engine import Engine, map_device
from .layout import pages_end
from .windows import Windows

Read = Callable[[int, int], int]  # (offset, bytes) -> value
Write = Callable[[int, int, int], object]  # (offset, bytes, value)
_READ = ctypes.CFUNCTYPE(
    ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_void_p
)
_WRITE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint64, ctypes.c_void_p
)
SIZES = 8, 4, 2, 1


class DeviceRun(Protocol):
    """Requests of a device to the run in which the guest accesses it.

    Attributes:
        parked: the exception that a hook has raised, for the run to raise; None: there is none.
        regs: the CPU's registers.
    """

    parked: BaseException | None
    regs: Regs

    def keep_for_end_of_instruction(self, error: BaseException) -> None:
        """Keep what a device's function has raised, for the run to raise, and stop the run behind
        the instruction.
        """

    def accessed(self) -> None:
        """Note that a device's function has served an access of the guest's."""


@frozen(eq=False)
class MmioDevice:
    """A range of guest memory whose accesses call the user's functions.

    Attributes:
        place: address of the first byte, as the engine has it.
        size: bytes.
        read: the user's function for reads.
        write: the user's function for writes.
        run: takes what a function raises.
        callbacks: ctypes functions that the engine calls: (read, write).
    """

    place: int
    size: int
    read: Read
    write: Write
    run: DeviceRun = field(repr=False)
    callbacks: Any = field(repr=False)


class MmioDevices:
    """The devices of a machine: which there are, and the library's own accesses to them.

    Attributes:
        accessed: True while a device's function is at work.
        at: where a device begins, as the engine has it -> the device.
    """

    def __init__(
        self,
        engine: Engine,
        windows: Windows,
        page_size: int,
        order: Literal["little", "big"],
        swapped: bool,
    ) -> None:
        """Prepare; there are no devices.

        Args:
            engine: the engine.
            windows: know the engine's address of a guest address.
            page_size: bytes of a page.
            order: the guest's byte order.
            swapped: the engine hands values to and from devices in the other byte order.
        """
        self._engine = engine
        self._windows = windows
        self._page_size = page_size
        self._order = order
        self._swapped = swapped
        self.at: dict[int, MmioDevice] = {}
        self.accessed = False

    # --- which there are

    def add(
        self, run: DeviceRun, start: int, size: int, read: Read | None, write: Write | None
    ) -> None:
        """Put a device into guest memory.

        Args:
            run: the run that the guest accesses it in.
            start: address of its first page.
            size: bytes; they are rounded up to whole pages.
            read: (offset, bytes) -> value; None: reads give 0.
            write: (offset, bytes, value); None: writes are lost.

        Raises:
            NoMemory: something else is there, `start` is no page's address, or `size` is not above
                0.
            BadArgument: `read` or `write` is no function, or `start` or `size` no integer.
        """
        end = pages_end(start, size, self._page_size, NoMemory)
        for function in read, write:
            if function is not None and not callable(function):
                raise BadArgument(
                    f"{function!r} is no function",
                    hint="pass read=lambda offset, size: 0, write=lambda offset, size, value: None",
                )
        self._map(
            self._make(
                run,
                self._windows.place(start),
                end - start,
                read or (lambda offset, size: 0),
                write or (lambda offset, size, value: None),
            )
        )

    def _map(self, device: MmioDevice) -> None:
        """Map a device in the engine, and add it to `at`.

        Args:
            device: the device.

        Raises:
            NoMemory: the engine does not map it there.
        """
        try:
            self._engine.keep(device.callbacks)
            map_device(self._engine, device.place, device.size, *device.callbacks)
        except (unicorn.UcError, ctypes.ArgumentError) as error:
            why = str(error)
            end = device.place + device.size
            for first, last, _ in self._engine.regions():
                if first < end and device.place <= last:
                    why = f"memory or another device is at {first:#x} to {last:#x}"
                    break
            raise NoMemory(
                f"cannot map a device of {device.size:#x} bytes ({why})",
                address=device.place,
                hint="choose another place",
            ) from None
        self.at[device.place] = device

    def remove(self, place: int, end: int) -> None:
        """Forget the devices in [place, end), which the caller unmaps.

        Args:
            place: address of the first byte, as the engine has it.
            end: address behind the last byte.

        Raises:
            BadArgument: the range has only a part of a device; nothing was forgotten.
        """
        touched = [d for d in self.at.values() if d.place < end and place < d.place + d.size]
        for device in touched:
            if device.place < place or end < device.place + device.size:
                raise BadArgument(
                    "that is a part of a device",
                    hint=f"unmap all of its {device.size:#x} bytes at {device.place:#x}",
                )
        for device in touched:
            del self.at[device.place]

    def check_free(self, place: int, size: int) -> None:
        """Check that no device is in a range whose permissions are to change.

        Args:
            place: address of the first byte, as the engine has it.
            size: bytes.

        Raises:
            BadArgument: one is.
        """
        if any(d.place < place + size and place < d.place + d.size for d in self.at.values()):
            raise BadArgument("a device has no permissions", hint="leave it out")

    def reached(self, addr: int, size: int) -> bool:
        """Return True if a byte of a range is a device's, an attached engine's owner's included.

        Args:
            addr: guest address of the first byte.
            size: bytes.
        """
        owners = self._owners()
        if not self.at and not owners:  # asked at each hit of a watchpoint
            return False
        place = self._windows.place(addr)
        end = place + size
        return any(d.place < end and place < d.place + d.size for d in self.at.values()) or any(
            start < end and place < behind for start, behind in owners
        )

    def _owners(self) -> Collection[tuple[int, int]]:
        """The ranges (start, end) of the devices of an attached engine's owner, as the engine's
        binding keeps them.
        """
        found: Collection[tuple[int, int]] = getattr(self._engine.uc, "_mmio_callbacks", ())
        return found

    def places(self) -> set[int]:
        """Return the engine's addresses at which devices begin, those of an attached engine's owner
        included.
        """
        return {*self.at, *(start for start, _ in self._owners())}

    @property
    def devices(self) -> tuple[MmioDevice, ...]:
        """The devices, but for those of an attached engine's owner."""
        return tuple(self.at.values())

    def remove_all_but(self, these: tuple[MmioDevice, ...]) -> None:
        """Unmap all devices that are not among `these`, but for an attached engine's owner's."""
        for device in [d for d in self.at.values() if d not in these]:
            self._engine.uc.mem_unmap(device.place, device.size)
            del self.at[device.place]

    def add_again(self, these: tuple[MmioDevice, ...]) -> None:
        """Map those of `these` devices again that are not mapped.

        Raises:
            NoMemory: the engine does not map one there.
        """
        for device in [d for d in these if d.place not in self.at]:
            self._map(device)

    # --- accesses

    @contextmanager
    def _access(self, run: DeviceRun) -> Iterator[None]:
        """Mark the registers and the devices as in an access (`accessed`, `regs.midway`) inside a
        with block, in which a device's function runs.

        Args:
            run: the run in which the guest accesses the device; its registers are marked.
        """
        regs = run.regs
        outer = self.accessed, regs.midway
        self.accessed = regs.midway = True
        try:
            yield
        finally:
            self.accessed, regs.midway = outer

    def _find(self, place: int, size: int) -> MmioDevice | None:
        """Return the device that all of a range is in; None: none is.

        Args:
            place: address of the first byte, as the engine has it.
            size: bytes.
        """
        for device in self.at.values():
            if device.place <= place and place + size <= device.place + device.size:
                return device
        return None

    def read(self, addr: int, size: int) -> bytes | None:
        """Read from a device, for the library or for a simulated instruction: by one access, or
        several aligned ones.

        Args:
            addr: guest address.
            size: bytes.

        Returns:
            The bytes; None where the range is not a single device's, and nothing was read.

        Raises:
            BaseException: the device's function has raised it, or BadArgument: it has returned no
                integer. Where an instruction is simulated, the run raises it later, and the access
                gives 0.
        """
        place, out = self._windows.place(addr), b""
        device = self._find(place, size)
        if device is None:
            return None
        for offset, part in _parts(place - device.place, size):
            value = self._call(device.run, _read, device, offset, part)
            out += value.to_bytes(part, self._order)
        return out

    def write(self, addr: int, data: bytes) -> bool:
        """Write to a device, for the library or for a simulated instruction.

        Args:
            addr: address of the first byte.
            data: the bytes. A size that is no access becomes several.

        Returns:
            False where the range is not a single device's; nothing was written then.

        Raises:
            BaseException: the device's function has raised it, unless an instruction is simulated:
                then the run raises it later.
        """
        place = self._windows.place(addr)
        device = self._find(place, len(data))
        if device is None:
            return False
        at = place - device.place
        for offset, part in _parts(at, len(data)):
            value = int.from_bytes(data[offset - at : offset - at + part], self._order)
            self._call(device.run, device.write, offset, part, value)
        return True

    def _call(self, run: DeviceRun, function: Callable[..., Any], *args: Any) -> Any:
        """Call a device's function, for an access of the library's or of a simulated instruction.

        Args:
            run: the run that the guest accesses it in.
            function: what is called.
            args: its arguments.

        Returns:
            What it has returned; 0 where it has raised, and the instruction is simulated: the run
            raises that behind the instruction, as it does when the guest executes it.

        Raises:
            BaseException: the function has raised it in an access of the library's, or of another
                device's function.
        """
        guests = run.regs.simulating and not self.accessed
        with self._access(run):
            try:
                return function(*args)
            except BaseException as error:
                if not guests:
                    raise
                run.keep_for_end_of_instruction(error)
                return 0

    def _make(self, run: DeviceRun, place: int, size: int, read: Read, write: Write) -> MmioDevice:
        """Return a device, with the callbacks by which the engine calls its functions.

        Args:
            run: takes what a function raises.
            place: address of the first byte, as the engine has it.
            size: bytes.
            read: (offset, bytes) -> value.
            write: (offset, bytes, value).
        """
        swapped = self._swapped

        def on_read(_uc: int, offset: int, part: int, _user: int) -> int:
            """Serve a read: return the function's value. It never raises: what the function raises
            is kept for the run, and 0 is returned.

            The function is not called, and the result is 0, where a hook has raised
            (DeviceRun.parked).

            Args:
                _uc: not used.
                offset: in the device.
                part: bytes.
                _user: not used.
            """
            value = 0
            if run.parked is None:
                with self._access(run):
                    try:
                        value = _value(read(offset, part), part)
                    except BaseException as error:
                        run.keep_for_end_of_instruction(error)
            run.accessed()
            return _swap(value, part) if swapped else value

        def on_write(_uc: int, offset: int, part: int, value: int, _user: int) -> None:
            """Serve a write. It never raises: what the function raises is kept for the run.

            The function is not called where a hook has raised (DeviceRun.parked).

            Args:
                _uc: not used.
                offset: in the device.
                part: bytes.
                value: what is written, in the engine's byte order.
                _user: not used.
            """
            if run.parked is None:
                value &= (1 << 8 * part) - 1
                with self._access(run):
                    try:
                        write(offset, part, _swap(value, part) if swapped else value)
                    except BaseException as error:
                        run.keep_for_end_of_instruction(error)
            run.accessed()

        return MmioDevice(place, size, read, write, run, (_READ(on_read), _WRITE(on_write)))


def _read(device: MmioDevice, offset: int, size: int) -> int:
    """Call a device's read function, and return the value cut to `size` bytes.

    Args:
        device: the device.
        offset: in the device.
        size: bytes of the access.
    """
    return _value(device.read(offset, size), size)


def _value(value: Any, size: int) -> int:
    """Return what a device's read function has returned, cut to `size` bytes. BadArgument: it is no
    integer.
    """
    if not isinstance(value, int):
        raise BadArgument(f"a device's read() returned {value!r}", hint="return an integer")
    return value & (1 << 8 * size) - 1


def _swap(value: int, size: int) -> int:
    """Return a number of `size` bytes with its bytes in the other order."""
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def _parts(offset: int, size: int) -> list[tuple[int, int]]:
    """Return the accesses that make up one of any size, as (offset, bytes).

    That is the access itself where its size is possible, else aligned ones.

    Args:
        offset: in the device.
        size: bytes.
    """
    if size in SIZES:
        return [(offset, size)]
    out, end = [], offset + size
    while offset < end:
        part = next(part for part in SIZES if not offset % part and offset + part <= end)
        out.append((offset, part))
        offset += part
    return out
