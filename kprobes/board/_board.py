"""Board: what is around a CPU, as a value or read from a file, and put around a machine by
fit().
"""

from __future__ import annotations

import copy
import difflib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field, frozen

from ..arch.arm.nvic import Nvic
from ..errors import BadArgument, GuestFault, ImageError, Unsupported
from ..symbols import Symbol
from .bus import Bus
from .devices import Device, Unknown, make_device
from .svd import Peripheral, read_svd
from .systemcontrol import START, SystemControl
from .tasks import TaskPointer
from .uarts import Uart

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

if TYPE_CHECKING:
    from ..machine.unicorn.machine import UnicornMachine

SYSTEM = 0xE0000000, 0xE0100000  #: Armv7-M: the private peripheral bus, which is the CPU's own
#: of a board file
KEYS = {
    "arch",
    "base",
    "entry",
    "vectors",
    "symbols",
    "svd",
    "task",
    "registers",
    "ram",
    "rom",
    "device",
}
PART_KEYS = {"ram": {"start", "size"}, "rom": {"start", "file"}}


@frozen
class Part:
    """A device of a board, as described; make() makes it.

    Attributes:
        kind: name of a model (devices.KINDS), or a function that is called as
            ``kind(start, **settings)`` and returns the Device.
        start: its address.
        settings: what else the model takes: size, line (the CPU's interrupt), name, received ...
    """

    kind: str | Callable[..., Device]
    start: int
    settings: Mapping[str, Any] = field(factory=dict)

    def make(self) -> Device:
        """Make the device. It is part of no machine yet.

        Raises:
            BadArgument: there is no model of that name, or it does not take one of the settings.
                What a function in `kind` raises passes through.
        """
        if isinstance(self.kind, str):
            return make_device(self.kind, self.start, self.settings)
        return self.kind(self.start, **self.settings)


@frozen(kw_only=True)
class Board:
    """The memory and the devices around a CPU, as described; machine() makes a machine of it.

    Attributes:
        arch: the architecture; None: the file that is loaded says so.
        base: where a raw image belongs; None: files are ELF files.
        entry: where the image starts; None: as its vector table or its header says, else at its
            first byte.
        vectors: address of the vector table that a Cortex-M starts by; None: the image's start.
        registers: (name, value) of the CPU's registers when it starts, as what runs before the
            image leaves them.
        ram: (start, bytes) of regions that are 0 at first.
        rom: (file, start) of other images.
        devices: what else there is.
        symbols: file with names, as m.symbols.load() takes it.
        svd: CMSIS-SVD file: names registers, and makes each of its peripherals that is no device
            here one whose registers read as after a reset.
        task: tells which task of an operating system's runs: m.cpu_task; None: there are none.
    """

    arch: str | None = None
    base: int | None = None
    entry: int | None = None
    vectors: int | None = None
    registers: Sequence[tuple[str, int]] = ()
    ram: Sequence[tuple[int, int]] = ()
    rom: Sequence[tuple[str | os.PathLike[str], int]] = ()
    devices: Sequence[Part] = ()
    symbols: str | os.PathLike[str] | None = None
    svd: str | os.PathLike[str] | None = None
    task: TaskPointer | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Board:
        """Read a board file, which is TOML; files that it names are looked for beside it.

        Raises:
            ImageError: it cannot be read, or is no TOML; or a device's `input` file cannot be read.
            BadArgument: it says something that no board has.
        """
        name = os.fspath(path)
        try:
            with open(path, "rb") as file:
                said = tomllib.load(file)
        except OSError as error:
            raise ImageError(f"{name}: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:  # TOML's own, and text that is no UTF-8
            raise ImageError(
                f"{name}: no board file ({error})", hint="see `docs/machines.md` for its form"
            ) from None
        try:
            return _board_of(said, Path(path).parent)
        except BadArgument as error:
            raise BadArgument(
                f"{name}: {error.reason}", hint=error.plain.partition("; ")[2]
            ) from None

    def with_more(
        self,
        *,
        arch: str | None = None,
        base: int | None = None,
        entry: int | None = None,
        vectors: int | None = None,
        registers: Sequence[tuple[str, int]] = (),
        ram: Sequence[tuple[int, int]] = (),
        rom: Sequence[tuple[str | os.PathLike[str], int]] = (),
        devices: Sequence[Part] = (),
        symbols: str | os.PathLike[str] | None = None,
        svd: str | os.PathLike[str] | None = None,
        task: TaskPointer | None = None,
    ) -> Board:
        """Return a copy of this board with some attributes changed.

        Args:
            arch, base, entry, vectors, symbols, svd, task: the copy's; None: as this board's.
            registers, ram, rom, devices: what the copy has besides this board's.
        """
        return evolve(
            self,
            arch=self.arch if arch is None else arch,
            base=self.base if base is None else base,
            entry=self.entry if entry is None else entry,
            vectors=self.vectors if vectors is None else vectors,
            registers=(*self.registers, *registers),
            ram=(*self.ram, *ram),
            rom=(*self.rom, *rom),
            devices=(*self.devices, *devices),
            symbols=self.symbols if symbols is None else symbols,
            svd=self.svd if svd is None else svd,
            task=self.task if task is None else task,
        )

    def machine(
        self,
        file: str | os.PathLike[str] | bytes,
        *,
        name: str | None = None,
        named: Callable[[UnicornMachine], object] | None = None,
    ) -> UnicornMachine:
        """Make a machine with a file's image and this board around it.

        The file is a raw image where the board has a base, else an ELF file.

        Args:
            file: its path, or its bytes.
            name: of the image; None: the file's base name.
            named: is called with the machine when it has the image, and adds names to it: the
                board's task pointer may be one of them. None: nothing is called.

        Raises:
            ImageError: a file that cannot be loaded.
            NoMemory: memory or a device where something else is.
            BadArgument: a raw image without an architecture; devices of unknown kinds, or at one
                place.
            Unsupported: interrupts on an architecture without rules for them.
        """
        machine = self.load_image(file, name)
        try:
            if named is not None:
                named(machine)
            self.fit(machine)
        except BaseException:
            machine.close()
            raise
        return machine

    def load_image(
        self, file: str | os.PathLike[str] | bytes, name: str | None = None
    ) -> UnicornMachine:
        """Make a machine with the image of a file, with no memory or devices of the board yet:
        fit() adds these.

        Args:
            file: its path, or its bytes.
            name: of the image; None: the file's base name.

        Raises:
            ImageError: the file cannot be loaded.
            NoMemory: the image cannot be mapped.
            BadArgument: a raw image without an architecture.
        """
        from ..machine.unicorn.machine import UnicornMachine

        if self.base is None:
            return UnicornMachine.load(file, arch=self.arch, name=name, reserve=self._ranges())
        if self.arch is None:
            raise BadArgument(
                "a raw image needs an architecture", hint="say arch; `kprobes archs` lists them"
            )
        return UnicornMachine.load_raw(
            file,
            arch=self.arch,
            base=self.base,
            entry=self.entry,
            name=name,
            reserve=self._ranges(),
        )

    def _ranges(self) -> list[tuple[int, int]]:
        """Return (start, bytes) of the board's memory and devices, as far as known without making
        them.

        A file of `rom` that does not exist is left out; a device without a size among its settings
        counts as Device.SIZE bytes.
        """
        out = [*self.ram]
        out += [
            (start, Path(file).stat().st_size) for file, start in self.rom if Path(file).is_file()
        ]
        for part in self.devices:
            size = part.settings.get("size")
            out.append((part.start, size if isinstance(size, int) else Device.SIZE))
        return out

    def fit(self, machine: UnicornMachine) -> Fitted:
        """Put the board around a machine that has its image already.

        Memory is mapped (pages that are mapped already stay as they are), files of `rom` are
        written, devices are connected, symbols added, machine.cpu_task is set where the board has a
        task pointer, and pc and registers are set as where the CPU starts. A Cortex-M gets a
        SystemControl where no device is in its place.

        Args:
            machine: made by load_image(), or otherwise.

        Returns:
            The board's devices and register names, which are also kept as machine.board.

        Raises:
            ImageError: a file of the board cannot be read.
            NoMemory: memory or a device where something else is.
            BadArgument: devices of unknown kinds, or at one place; a register that the CPU has not.
            UnknownSymbol: the task pointer names no symbol.
            Unsupported: interrupts on an architecture without rules for them; a vector table for a
                CPU that starts at none.
        """
        peripherals = () if self.svd is None else read_svd(self.svd)
        devices = [part.make() for part in self.devices]
        taken = [(device.start, device.start + device.size) for device in devices]
        if machine.arch.interrupts is Nvic and not _overlaps(START, START + 0x1000, taken):
            devices.append(SystemControl())
        devices += _unknown(peripherals, taken)
        bus = Bus(devices)
        for file, start in self.rom:
            data = _contents(file)
            map_free(machine, start, len(data), "rwx")
            machine.write(start, data)
        for start, size in self.ram:
            map_free(machine, start, size, "rwx")
        machine.symbols.add_all(
            Symbol(f"{p.name}.{r.name}", p.start + r.offset, r.size, "", 0, "object")
            for p in peripherals
            for r in p.registers
        )
        if self.symbols is not None:
            machine.symbols.load(self.symbols)
        if self.task is not None:
            machine.cpu_task = self.task.follow(machine)
        self._start(machine)
        bus.connect(machine)
        fitted = Fitted(
            bus,
            {p.start + r.offset: f"{p.name}.{r.name}" for p in peripherals for r in p.registers},
        )
        machine.board = fitted
        machine.keep_snapshot_state(fitted)
        return fitted

    def _start(self, machine: UnicornMachine) -> None:
        """Set pc and registers as where the CPU starts, and where its interrupts' vector table is.

        A vector table that is given sets pc and the stack pointer; then the entry sets pc; then
        come `registers`. Where none is given, a CPU that starts by such a table, and has none yet,
        finds its interrupts' at the start of the lowest image.

        Raises:
            Unsupported: a vector table is given, and the CPU starts at none.
            BadArgument: no memory is there, or the CPU has no such register.
        """
        read = machine.arch.files.vectors
        if self.vectors is not None and read is None:
            raise Unsupported(
                f"{machine.arch.name} starts at no vector table", hint="give the entry instead"
            )
        if self.vectors is not None and read is not None:
            try:
                table = machine.read(self.vectors, 8)
            except GuestFault:
                raise BadArgument(
                    f"no vector table is at {self.vectors:#x}", hint="say where the image's begins"
                ) from None
            machine.regs.sp, entry = read(table)
            machine.regs.go(entry)
            machine.interrupts.vectors = self.vectors
        elif read is not None and machine.interrupts.vectors == 0:
            machine.interrupts.vectors = min(
                (start for start, _ in machine.modules.values()), default=0
            )
        if self.entry is not None:
            machine.regs.go(machine.arch.pointers.same_mode(machine.regs, self.entry))
        for name, value in self.registers:
            if name not in machine.arch.regs.names and name not in machine.arch.regs.aliases:
                raise BadArgument(
                    f"{machine.arch.name} has no register {name!r}",
                    hint=f"it has {', '.join(machine.arch.regs.names)}",
                )
            machine.regs[name] = value


#: types of the attributes that hold a device's state
DATA: Final = (int, float, str, bytes, bytearray, list, tuple, dict, set, deque, type(None),
               FunctionType)  # fmt: skip
#: attributes that are none of the guest's state: counts of accesses, what the host does with output
HOSTS: Final = ("reads", "writes", "show")


@define(eq=False)
class Fitted:
    """The devices of a board that has been put around a machine. They go back with its snapshots.

    Attributes:
        bus: passes accesses to the devices.
        names: address -> name of the register there, from the SVD file.
    """

    bus: Bus
    names: Mapping[int, str]

    def __getitem__(self, name: str) -> Device:
        """Return the device of a name. Raises BadArgument: there is none."""
        for device in self.bus.devices:
            if device.name == name:
                return device
        near = difflib.get_close_matches(name, [device.name for device in self.bus.devices], 1)
        raise BadArgument(
            f"no device {name!r} is on this board",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )

    @property
    def snapshot_state(self) -> list[tuple[object, dict[str, object]]]:
        """The state of the devices, as a copy for a snapshot of the machine; setting it puts the
        devices back. How often they were accessed is no part of it.
        """
        holders = self._holders()
        shared = {id(holder): holder for holder in holders}
        return [(holder, copy.deepcopy(_state(holder), {**shared})) for holder in holders]

    @snapshot_state.setter
    def snapshot_state(self, then: list[tuple[object, dict[str, object]]] | None) -> None:
        """Set the devices to what a snapshot has kept; None: it was taken before they were here."""
        if then is None:
            return
        shared = {id(holder): holder for holder, _ in then}
        for holder, state in then:
            vars(holder).update(copy.deepcopy(state, {**shared}))

    def _holders(self) -> list[object]:
        """Return the devices and the parts that they have in tuples, lists and dicts, as a timer's
        counters: each has state of its own, and stays the object that it is.
        """
        found: list[object] = list(self.bus.devices)
        for device in self.bus.devices:
            for value in vars(device).values():
                items = value.values() if isinstance(value, dict) else value
                if isinstance(value, (dict, list, tuple)):
                    found += [
                        item for item in items if hasattr(item, "__dict__") and not callable(item)
                    ]
        return list({id(holder): holder for holder in found}.values())

    @property
    def uarts(self) -> list[Uart]:
        """The board's serial ports, by address."""
        return [device for device in self.bus.devices if isinstance(device, Uart)]

    def accesses(self) -> list[tuple[str, int, int]]:
        """Return how often devices were accessed, and behind each its registers that have names.

        Left out while nothing has accessed them: the CPU's own device, and devices without a model
        (kind "unknown") that have a register with a name.

        Returns:
            (name, reads, writes) of each.
        """
        out = []
        for device in self.bus.devices:
            if isinstance(device, SystemControl) and not device.reads + device.writes:
                continue
            named = [
                (self.names.get(device.start + at, ""), reads, writes)
                for (owner, at), (reads, writes) in sorted(
                    self.bus.registers.items(), key=lambda item: item[0][1]
                )
                if owner is device
            ]
            if isinstance(device, Unknown) and not named and self._has_names(device):
                continue
            out.append((device.name, device.reads, device.writes))
            out += [row for row in named if row[0]]
        return out

    def _has_names(self, device: Device) -> bool:
        """Return True where a register of a device has a name, wherever in the device it is."""
        return any(0 <= address - device.start < device.size for address in self.names)


def _state(holder: object) -> dict[str, object]:
    """Return what a device, or a part of one, holds: the attributes whose values are plain data, or
    functions, as what cancels a timer. Nothing is copied.

    Args:
        holder: the device, or its part.
    """
    return {
        name: value
        for name, value in vars(holder).items()
        if isinstance(value, DATA) and name not in HOSTS
    }


def map_free(machine: UnicornMachine, start: int, size: int, perms: str) -> None:
    """Map those pages of a range that are not mapped yet: an image may lie in it already.

    Args:
        machine: gets the memory.
        start: first address; rounded down to a page.
        size: bytes; the end is rounded up to a page.
        perms: of "rwx".

    Raises:
        NoMemory: pages cannot be mapped there.
    """
    page = machine.page_size
    at, end = start & -page, start + size + page - 1 & -page
    for first, last in [*sorted(machine.regions()), (end, end)]:
        if at < min(first, end):
            machine.map(at, min(first, end) - at, perms)
        at = max(at, last)
        if at >= end:
            break


def _unknown(peripherals: Iterable[Peripheral], taken: list[tuple[int, int]]) -> list[Device]:
    """Make a device for each peripheral that has no model: its registers read as after a reset.

    Peripherals in the place of another device, or of the CPU's own (SYSTEM), get none; of
    peripherals that overlap only the first one gets one.

    Args:
        peripherals: all that the SVD file names.
        taken: (start, end) of the board's other devices.
    """
    out: list[Device] = []
    for p in sorted(peripherals, key=lambda p: p.start):
        end = p.start + p.size
        if not _overlaps(p.start, end, [*taken, SYSTEM]):
            reset = {r.offset: (r.reset, r.size) for r in p.registers if r.reset}
            out.append(Unknown(p.start, size=p.size, name=p.name, reset=reset))
            taken = [*taken, (p.start, end)]
    return out


def _overlaps(start: int, end: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether [start, end) has addresses in one of some (start, end)."""
    return any(start < last and first < end for first, last in ranges)


def _contents(file: str | os.PathLike[str]) -> bytes:
    """Read a file. Raises ImageError: it cannot be read, or is empty."""
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise ImageError(f"{os.fspath(file)}: {error.strerror or error}") from None
    if not data:
        raise ImageError(f"{os.fspath(file)}: is empty", hint="give the image's bytes")
    return data


# --- board files


def _board_of(said: dict[str, Any], folder: Path) -> Board:
    """Make the board that a board file describes.

    Args:
        said: the file's keys and tables.
        folder: what the files that it names are relative to.

    Raises:
        BadArgument: it has an unknown key, or a value of a wrong kind.
        ImageError: the file of a device's `input` cannot be read, or is empty.
    """
    _check_keys(said, KEYS, "a board")
    plain: dict[str, Any] = {
        name: _integer(said[name], name) for name in ("base", "entry", "vectors") if name in said
    }
    texts: dict[str, Any] = {
        name: _text(said[name], name) for name in ("arch", "symbols", "svd") if name in said
    }
    for name in ("symbols", "svd"):
        if name in texts:
            texts[name] = folder / texts[name]
    if "task" in said:
        texts["task"] = TaskPointer.parse(_text(said["task"], "task"))
    ram = []
    for each in _tables(said, "ram"):
        _check_keys(each, PART_KEYS["ram"], "a [[ram]]")
        ram.append((_integer(each.get("start"), "start"), _integer(each.get("size"), "size")))
    rom = []
    for each in _tables(said, "rom"):
        _check_keys(each, PART_KEYS["rom"], "a [[rom]]")
        rom.append((folder / _text(each.get("file"), "file"), _integer(each.get("start"), "start")))
    registers = said.get("registers", {})
    if not isinstance(registers, dict):
        raise BadArgument(
            "registers is no table", hint="write [registers] above lines as a1 = 0x80000000"
        )
    return Board(
        **plain,
        **texts,
        registers=tuple((name, _integer(value, name)) for name, value in registers.items()),
        ram=tuple(ram),
        rom=tuple(rom),
        devices=tuple(_part_of(each, folder) for each in _tables(said, "device")),
    )


def _part_of(said: dict[str, Any], folder: Path) -> Part:
    """Make the Part that a table [[device]] of a board file describes.

    Its key `interrupt` becomes the setting `line`; the bytes of the file that `input` names become
    the setting `received`.

    Args:
        said: the table: key -> value.
        folder: what the file named by `input` is relative to.

    Raises:
        BadArgument: kind or start is missing or wrong.
        ImageError: the file of `input` cannot be read, or is empty.
    """
    settings = {
        name: value
        for name, value in said.items()
        if name not in ("kind", "start", "input", "interrupt")
    }
    if "interrupt" in said:
        settings["line"] = said["interrupt"]
    if "input" in said:
        settings["received"] = _contents(folder / _text(said["input"], "input"))
    return Part(_text(said.get("kind"), "kind"), _integer(said.get("start"), "start"), settings)


def _tables(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the tables `[[name]]` of a board file; [] where there are none.

    Args:
        said: the file's keys and tables.
        name: of the tables.

    Raises:
        BadArgument: it is no list of tables.
    """
    tables = said.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise BadArgument(f"{name} is no list of tables", hint=f"write [[{name}]]")
    return tables


def _check_keys(said: dict[str, Any], known: set[str], what: str) -> None:
    """Raise BadArgument where a table of a board file has an unknown key.

    Args:
        said: the table.
        known: the keys that it may have.
        what: the table, in words, for the error.
    """
    for name in said:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise BadArgument(
                f"{what} has no {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}",
            )


def _integer(value: Any, name: str) -> int:
    """Return a value of a board file if it is an integer from 0 on; raise BadArgument for any
    other.

    Args:
        value: the value.
        name: of its key, for the error.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadArgument(f"{name} is {value!r}", hint="write a number, as in 0x20000000")
    return value


def _text(value: Any, name: str) -> str:
    """Return a value of a board file if it is a string, not empty; raise BadArgument for any other.

    Args:
        value: the value.
        name: of its key, for the error.
    """
    if not isinstance(value, str) or not value:
        raise BadArgument(f"{name} is {value!r}", hint=f'write a text, as in {name} = "..."')
    return value
