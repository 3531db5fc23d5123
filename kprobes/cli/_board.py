"""Options of commands that describe what is around a CPU: memory, devices, where an image
belongs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click
from attrs import define, frozen

from ..controls import CONTROLS
from ..errors import GuestFault, ImageError
from ..symbols import add_names
from ._render import table

if TYPE_CHECKING:
    from ..board import Board, Fitted, Part
    from ..machine.remote import QemuMachine
    from ..machine.unicorn.machine import UnicornMachine


ELF_MAGIC: Final = b"\x7fELF"  #: bytes that an ELF file begins with


class NumberOption(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value that is an integer as C writes it: 4096, 0x1000."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer of an option's text; fail with a usage error where it is none, or has
        40 characters or more. A value that is an integer already is returned as it is. click calls
        it.
        """
        if isinstance(value, int):
            return value
        with contextlib.suppress(ValueError):
            if len(value) < 40:
                return int(value, 0)
        self.fail(f"{value!r} is no number; write 4096 or 0x1000", param, ctx)


class RegionOption(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value START:SIZE, two integers as C writes them."""

    name = "start:size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return (start, bytes) of START:SIZE; fail with a usage error where the text is no region.
        A tuple is returned as it is.
        """
        if isinstance(value, tuple):
            return value
        start, colon, size = value.partition(":")
        if not colon:
            self.fail(
                f"{value!r} is no region; write START:SIZE, as in 0x40000000:0x1000", param, ctx
            )
        where, many = (
            NumberOption().convert(start, param, ctx),
            NumberOption().convert(size, param, ctx),
        )
        if where < 0 or many < 1:
            self.fail(
                f"{value!r} is no region; addresses are 0 or more, sizes 1 or more", param, ctx
            )
        return where, many


class FileAt(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value FILE@ADDRESS."""

    name = "file@address"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return (file, address) of FILE@ADDRESS; fail with a usage error for any other text. A
        tuple is returned as it is.
        """
        if isinstance(value, tuple):
            return value
        file, at, address = value.rpartition("@")
        if not at or not file:
            self.fail(
                f"{value!r} names no place; write FILE@ADDRESS, as in boot.bin@0x1000", param, ctx
            )
        return file, NumberOption().convert(address, param, ctx)


class RegisterAs(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value NAME=VALUE, which sets a register."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return (register, value) of NAME=VALUE; fail with a usage error for any other text. A
        tuple is returned as it is.
        """
        if isinstance(value, tuple):
            return value
        name, equals, number = value.partition("=")
        if not equals or not name:
            self.fail(
                f"{value!r} sets no register; write NAME=VALUE, as in a1=0x82200000", param, ctx
            )
        return name, NumberOption().convert(number, param, ctx)


class DeviceAt(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value KIND@ADDRESS[,KEY=VALUE]..., which describes a device."""

    name = "kind@address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Part:
        """Return the device of KIND@ADDRESS[,KEY=VALUE]...; fail with a usage error for any other
        text. A Part is returned as it is.

        A value that is no number stays text. `interrupt` is the setting `line` of a device's model.
        """
        from ..board import Part

        if isinstance(value, Part):
            return value
        place, *said = value.split(",")
        kind, at, address = place.partition("@")
        if not at:
            self.fail(
                f"{value!r} names no place; write KIND@ADDRESS, as in pl011@0x40000000", param, ctx
            )
        settings: dict[str, Any] = {}
        for each in said:
            key, equals, text = each.partition("=")
            if not equals:
                self.fail(f"{each!r} sets nothing; write KEY=VALUE, as in interrupt=5", param, ctx)
            number: int | str = text
            with contextlib.suppress(ValueError):
                number = int(text, 0)
            settings["line" if key == "interrupt" else key] = number
        return Part(kind, NumberOption().convert(address, param, ctx), settings)


@frozen(kw_only=True)
class BoardOptions:
    """Values of the options for a guest's surroundings.

    Attributes:
        board: the board; None: none of its options was given.
        fed: file whose bytes the first serial port receives; None: none.
        symbols: file with more names; None: none.
        debug_files: files with debug information of what is loaded.
        debuginfod: True: servers are asked for debug information.
        words: of a command line that give these options.
    """

    board: Board | None
    fed: str | None
    symbols: str | None
    debug_files: tuple[str, ...] = ()
    debuginfod: bool = False
    words: tuple[str, ...] = ()

    @property
    def raw(self) -> bool:
        """Whether FILE is a raw image: the board has a base."""
        return self.board is not None and self.board.base is not None

    def load(self, file: str, arch: str | None) -> UnicornMachine:
        """Make a machine with an image and this board around it; add the names of --symbols and of
        separate debug information.

        Args:
            file: path of the image.
            arch: the architecture's name; None: the file's header or the board tells it.

        Raises:
            UsageError: a raw image has no architecture, --input no serial port, or --debuginfod no
                server.
            KprobeError: the file or the board is wrong.
        """
        from ..machine.unicorn.machine import UnicornMachine

        if self.board is None and self.fed is None:
            machine = UnicornMachine.load(file, arch=arch)
            self.name(machine)
            return machine
        return self._load_onto_board(file, arch)

    def name(self, machine: UnicornMachine | QemuMachine) -> None:
        """Add the names of --symbols and of separate debug information to a machine.

        Args:
            machine: the machine, whose symbols and files are added to.

        Raises:
            UsageError: --debuginfod was given, and $DEBUGINFOD_URLS names no server.
            ImageError: a file cannot be read, or is damaged; or no server has debug information.
        """
        add_names(machine.symbols, self.symbols, self.debug_files, self.servers)

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that are asked for debug information; without --debuginfod none are.

        Raises:
            UsageError: --debuginfod was given, and $DEBUGINFOD_URLS names no server.
        """
        if not self.debuginfod:
            return ()
        servers = tuple(os.environ.get("DEBUGINFOD_URLS", "").split())
        if not servers:
            raise click.UsageError(
                "--debuginfod asks the servers in $DEBUGINFOD_URLS, which has none"
            )
        return servers

    def _load_onto_board(self, file: str, arch: str | None) -> UnicornMachine:
        """Do the work of load() where there is a board or --input: memory, devices and serial ports
        are added, too. On an error the machine is closed.

        Args:
            file: path of the image.
            arch: the architecture's name; None: the file's header or the board tells it.

        Raises:
            UsageError: a raw image has no architecture, --input no serial port, or --debuginfod no
                server.
            KprobeError: the file or the board is wrong.
        """
        from ..board import Board

        board = (self.board or Board()).with_more(arch=arch)
        if board.base is not None and board.arch is None:
            raise click.UsageError(
                "a raw image needs --arch NAME as well; `kprobes archs` lists them"
            )
        machine = board.machine(file, named=self.name)
        self.say_taken_raw(file)
        try:
            self._wire(cast("Fitted", machine.board))
        except BaseException:
            machine.close()
            raise
        return machine

    def say_taken_raw(self, file: str) -> None:
        """Print on stderr that a file is taken as a raw image, where it is an ELF file. Nothing is
        printed where the board has no base, or the file cannot be read.

        Args:
            file: path of the image.
        """
        if not self.raw:
            return
        with contextlib.suppress(OSError), open(file, "rb") as opened:
            if opened.read(4) == ELF_MAGIC:
                click.echo(
                    f"kprobes: {file.translate(CONTROLS)} is an ELF file, taken as a raw image, "
                    "header and all, because of --base or the board's base; without a base it is "
                    "loaded where it says",
                    err=True,
                )

    def _wire(self, fitted: Fitted) -> None:
        """Have serial ports print on stderr what the guest sends, and give the first one --input.

        Args:
            fitted: the devices of the machine.

        Raises:
            UsageError: --input was given, and there is no serial port.
            ImageError: the file of --input cannot be read.
        """
        if self.fed is not None and not fitted.uarts:
            raise click.UsageError(
                "--input is for a serial port: give one, as in --device pl011@0x40000000"
            )
        for uart in fitted.uarts:
            uart.show = Lines().add
        if self.fed is not None:
            fitted.uarts[0].feed(contents_of(self.fed))

    def explain(self, error: GuestFault, firmware: bool = False) -> None:
        """Append to an error's message the options that put memory or a device at its address.

        Nothing is appended for errors other than reads and writes, or where the address is not
        known; without a board only firmware's errors get them, and not in the first page, which is
        where null pointers lead. Reads and writes that memory refuses (its
        permissions, unaligned) get the options, too.

        Args:
            error: what the guest's access raised; its `plain` is changed.
            firmware: True where the guest runs without an operating system, as far as is known.
        """
        if (
            error.access in ("read", "write")
            and error.address is not None
            and (self.board is not None or (firmware and error.address >= 0x1000))
        ):
            page = error.address & -0x1000
            error.plain += (
                f"; --ram {page:#x}:0x1000 puts memory there, --mmio {page:#x}:0x1000 a "
                "device of zeros"
            )

    def check_unused(self) -> None:
        """Raise UsageError where an option of a board or --input was given: QEMU has no board."""
        if self.board is not None or self.fed is not None:
            raise click.UsageError("boards are for guests in Unicorn: give no --qemu")


@define
class Lines:
    """Prints the lines that a serial port sends on stderr, each when it is complete."""

    _line: bytes = b""

    def add(self, data: bytes) -> None:
        """Add a byte that was sent; print the line when a newline ends it, or it is too long.

        Args:
            data: one byte.
        """
        self._line += data
        if data == b"\n" or len(self._line) >= 1 << 12:
            text = self._line.decode(errors="backslashreplace")
            self._line = b""
            click.echo(text.rstrip("\r\n").translate(CONTROLS), err=True)

    def end(self) -> None:
        """Print the last line, if no newline has ended it."""
        if self._line:
            self.add(b"\n")


def show_accesses(fitted: Fitted | None) -> None:
    """Print on stderr the unfinished lines of serial ports, and how often each device was used.

    Nothing is printed while a BrokenPipeError is handled; and no table after another error, where
    no device was used: the guest has not run.

    Args:
        fitted: the devices of a machine; None: it has no board, and nothing is printed.
    """
    if fitted is None or isinstance(sys.exc_info()[1], BrokenPipeError):
        return
    for uart in fitted.uarts:
        if isinstance(lines := getattr(uart.show, "__self__", None), Lines):
            lines.end()
    rows = fitted.accesses()
    used = any(reads or writes for _, reads, writes in rows)
    if rows and (used or sys.exc_info()[1] is None):
        table(("device", "reads", "writes"), rows, to_stderr=True)


def contents_of(file: str) -> bytes:
    """Read a file, or stdin for "-". Raises ImageError: it cannot be read."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise ImageError(f"{file}: {error.strerror or error}") from None


def with_board(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command the options of a board: a decorator.

    The command is called with the argument `around`, a BoardOptions, in the place of these options.

    Args:
        command: the function below the decorator.

    Returns:
        The function to be decorated further.
    """

    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        """Make the BoardOptions of the options, and call the command."""
        said = {name: options.pop(name) for name in NAMES}
        words = tuple(_words(said))
        others = {name: said.pop(name) for name in ("fed", "symbols", "debug_files", "debuginfod")}
        command(around=BoardOptions(board=_board(**said), words=words, **others), **options)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _words(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a command line that give options of a board.

    Args:
        said: name of NAMES -> value, as click gives it.
    """
    for name, value in said.items():
        option = OPTION_NAMES.get(name, f"--{name}")
        if isinstance(value, bool):
            yield from [option] if value else []
            continue
        values = value if isinstance(value, tuple) else (value,)
        for each in values:
            if each is not None:
                yield option
                yield _word(name, each)


def _word(name: str, value: Any) -> str:
    """Return the value of an option as the word of a command line that gives it.

    Args:
        name: of NAMES.
        value: one value of it, which is not None.
    """
    if name in ("ram", "mmio"):
        return f"{value[0]:#x}:{value[1]:#x}"
    if name == "rom":
        return f"{value[0]}@{value[1]:#x}"
    if name == "registers":
        return f"{value[0]}={value[1]:#x}"
    if name == "device":
        settings = [
            f",{'interrupt' if key == 'line' else key}={setting}"
            for key, setting in value.settings.items()
        ]
        return f"{value.kind}@{value.start:#x}{''.join(settings)}"
    return hex(value) if isinstance(value, int) else str(value)


def _board(
    board: str | None, mmio: tuple[tuple[int, int], ...], device: tuple[Part, ...], **more: Any
) -> Board | None:
    """Make the board that the options describe.

    Args:
        board: a file with a board, to which the other options add; None: none.
        mmio: (start, bytes) of devices of which nothing is known.
        device: devices with a model.
        more: the other options, by Board's names; `task` as text.

    Returns:
        None: none of the options was given.

    Raises:
        ImageError: the file cannot be read, or is no TOML.
        BadArgument: the file, or the text of `task`, says something that no board has.
    """
    if (
        board is None
        and not (mmio or device)
        and not any(value is not None and value != () for value in more.values())
    ):
        return None
    from ..board import Board, Part, TaskPointer

    if more.get("task") is not None:
        more["task"] = TaskPointer.parse(more["task"])
    unknown = tuple(Part("unknown", start, {"size": size}) for start, size in mmio)
    return (Board() if board is None else Board.load(board)).with_more(
        devices=(*device, *unknown), **more
    )


OPTIONS = (
    click.option(
        "--base",
        type=NumberOption(),
        metavar="ADDRESS",
        help="Load address of FILE, a raw image; needs --arch.",
    ),
    click.option(
        "--entry",
        type=NumberOption(),
        metavar="ADDRESS",
        help="Entry point, if it is not the file's own.",
    ),
    click.option(
        "--vectors",
        type=NumberOption(),
        metavar="ADDRESS",
        help="Address of a Cortex-M's vector table; without it the image's start.",
    ),
    click.option(
        "--reg",
        "registers",
        type=RegisterAs(),
        multiple=True,
        metavar="NAME=VALUE",
        help="Initial value of a CPU register; may be given again.",
    ),
    click.option(
        "--ram",
        type=RegionOption(),
        multiple=True,
        metavar="START:SIZE",
        help="Memory; may be given again.",
    ),
    click.option(
        "--rom",
        type=FileAt(),
        multiple=True,
        metavar="FILE2@ADDRESS",
        help="Another image; may be given again.",
    ),
    click.option(
        "--mmio",
        type=RegionOption(),
        multiple=True,
        metavar="START:SIZE",
        help="A device of the board: reads give 0, writes are dropped, both are counted; may "
        "be given again.",
    ),
    click.option(
        "--device",
        type=DeviceAt(),
        multiple=True,
        metavar="KIND@ADDRESS",
        help="A device with a model: simple-uart, pl011, 16550, stm32f4-usart, stm32l4-usart, "
        "sp804, clint, registers, power, unknown. Settings behind it: "
        "pl011@0x40000000,interrupt=5,name=UART0; registers@0x40001000,0x0=0/0/1,0x4=0x83 (values "
        "of reads by offset). May be given again.",
    ),
    click.option(
        "--svd", metavar="FILE2", help="Names of registers and peripherals: a CMSIS-SVD file."
    ),
    click.option("--board", metavar="FILE2", help="All of this from a file (TOML)."),
    click.option(
        "--input", "fed", metavar="FILE2", help="What the first serial port receives; - is stdin."
    ),
    click.option(
        "--task",
        metavar="POINTER[:OFFSET]",
        help="Where an operating system points to its running task, and the task's name in "
        "what is there: "
        "pxCurrentTCB:52 for FreeRTOS.",
    ),
    click.option(
        "--symbols",
        metavar="FILE2",
        help="Names: an ELF file, nm's or a linker's list, lines of address and name.",
    ),
    click.option(
        "--debug-file",
        "debug_files",
        metavar="FILE2",
        multiple=True,
        help="Separate debug information; may be given again. Without it, it is looked for as "
        "gdb does.",
    ),
    click.option(
        "--debuginfod",
        is_flag=True,
        help="Ask the servers in $DEBUGINFOD_URLS for debug information.",
    ),
)
#: where an option is called otherwise than its value
OPTION_NAMES = {"registers": "--reg", "fed": "--input", "debug_files": "--debug-file"}
NAMES = (
    "base",
    "entry",
    "vectors",
    "registers",
    "ram",
    "rom",
    "mmio",
    "device",
    "svd",
    "board",
    "task",
    "fed",
    "symbols",
    "debug_files",
    "debuginfod",
)
