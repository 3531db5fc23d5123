"""The target of fuzzing: a file of Python, or a call of a function of an image."""

from __future__ import annotations

import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from attrs import field, frozen

from ..board import Board, Fitted
from ..calltext import Input, NamedAddress, parse_call
from ..deprecation import FormerName
from ..errors import BadArgument, KprobeError, Unsupported
from ..kprobes import Kprobes
from ..machine.unicorn.machine import UnicornMachine
from ..symbols import add_names

#: AFL puts the path of its file where `@@` stands in a word of the command line
_AFL_FILE = re.compile(r"(?<=[(,\s])(/.*?/\.cur_input[^,)\s]*|/[^,)]*)")
_WRITTEN = re.compile(r"@@|@input\b")
_ROOM = 1 << 20  # bytes for inputs: as large as AFL++'s may be
_ROOMS = range(0x20000000, 0x78000000, 0x1000000)  # guest addresses where that may be
_GUARD = 1 << 20  # bytes around it where nothing is mapped
_ALIGNED = 16  # what inputs are aligned to, as malloc()'s blocks are
_STRINGS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')""", re.DOTALL)


@frozen(eq=False)
class Target:
    """A loaded target.

    Attributes:
        machine: the guest, in the state that every run begins from.
        fuzz: (bytes of an input) runs the guest with it; its result is not used.
        kprobes: the Kprobes of the machine, where the target has probes; None: it has none.
    """

    machine: UnicornMachine
    fuzz: Callable[[bytes], Any]
    kprobes: Kprobes | None = None


@frozen
class PythonTarget:
    """A file of Python that defines `machine`, and a function `fuzz(data)`.

    Attributes:
        path: path of the file.
    """

    path: str

    mistake = FormerName("error_of", goes="1.2")

    def error_of(self, error: BaseException) -> BadArgument:
        """Return the error for a target that is wrong itself.

        Args:
            error: what its code has raised.
        """
        where = f"{self.path}{_line(error, self.path)}"
        if isinstance(error, KprobeError):
            return BadArgument(f"{where}: {error.plain}")
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        return BadArgument(f"{where}: {said}", hint="mend the file: its own code has failed")

    @property
    def words(self) -> list[str]:
        """The words of a command line that name this target."""
        return [self.path]

    def load(self) -> Target:
        """Execute the file, and return the target that it defines. A Kprobes of its machine that
        the file defines, too, is the target's.

        The file's folder is added to sys.path.

        Raises:
            BadArgument: the file's code fails, or it does not define `machine` and `fuzz`.
            OSError: the file cannot be read.
        """
        folder = os.path.dirname(os.path.abspath(self.path))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        with open(self.path, "rb"):  # the error of a file that cannot be read names it
            pass
        try:
            names = runpy.run_path(self.path, run_name="__fuzz__")
        except (Exception, SystemExit) as error:
            raise self.error_of(error) from None
        machine, fuzz = names.get("machine"), names.get("fuzz")
        if not isinstance(machine, UnicornMachine):
            raise BadArgument(
                f"{self.path} defines no `machine`",
                hint="let `machine` be the UnicornMachine that is to be fuzzed",
            )
        if not callable(fuzz):
            raise BadArgument(
                f"{self.path} defines no function `fuzz`",
                hint="define fuzz(data), which runs the guest with these bytes",
            )
        kprobes = next(
            (k for k in names.values() if isinstance(k, Kprobes) and k.machine is machine), None
        )
        return Target(machine, fuzz, kprobes)


def _line(error: BaseException, path: str) -> str:
    """Return the line of a file that an exception comes from, as `:LINE`; "": not known.

    Args:
        error: the exception, with its traceback.
        path: path of the file.
    """
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f":{error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    return f":{lines[-1]}" if lines else ""


@frozen
class CallTarget:
    """A call of a function of an image, with an input's bytes as argument.

    Attributes:
        image: an ELF file, or with `base` a raw image.
        call: the call as text, `f(@input, len)`: `@input` is the guest address of the input's bytes
            (a NUL follows), `len` their number.
        before: calls, as text, that make the state which every run begins from.
        arch: name of the architecture; None: the file tells it.
        base: guest address of a raw image; None: the file is an ELF file.
        symbols: a file of names; None: those of the image.
        max_insns: instructions after which a run is given up; None: no limit.
        preload: libraries that are loaded behind the image, whose functions it calls.
        syscalls: True where Linux's system calls of library code are served.
        heap: True where a heap check raises what it finds.
        board: memory and devices around the CPU; with a base of its own, the image is raw. None:
            there are none.
        received: bytes that the board's first serial port receives; None: none.
        debug_files: files with debug information of what is loaded.
        servers: addresses of debuginfod servers that are asked for debug information.
        options: words of a command line that give the board, what is received and the files of
            names and debug information; these words follow the others of `words`.
    """

    image: str
    call: str
    before: tuple[str, ...] = ()
    arch: str | None = None
    base: int | None = None
    symbols: str | None = None
    max_insns: int | None = None
    preload: tuple[str, ...] = ()
    syscalls: bool = False
    heap: bool = False
    board: Board | None = field(default=None, eq=repr)  # jobs are keys, and settings are dicts
    received: bytes | None = None
    debug_files: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    mistake = FormerName("error_of", goes="1.2")

    def error_of(self, error: BaseException) -> BadArgument:
        """Return the error for a call that is wrong itself.

        Args:
            error: what the call has raised.
        """
        return BadArgument(f"--call {self.call}: {getattr(error, 'plain', error)}")

    @property
    def words(self) -> list[str]:
        """The words of a command line that name this target."""
        words = [self.image, "--call", self.call]
        for text in self.before:
            words += ["--before", text]
        for name, value in (("--arch", self.arch), ("--symbols", self.symbols)):
            words += [] if value is None or name in self.options else [name, value]
        words += [] if self.base is None else ["--base", hex(self.base)]
        words += [] if self.max_insns is None else ["--max-insns", str(self.max_insns)]
        for library in self.preload:
            words += ["--preload", library]
        words += ["--syscalls"] if self.syscalls else []
        words += ["--heap"] if self.heap else []
        return [*words, *self.options]

    def load(self) -> Target:
        """Load the image, make the calls of `before`, and return the target.

        Raises:
            EventError: a call does not parse, or there is no such function.
            ImageError: the image or a library cannot be loaded.
            BadArgument: no argument is the input, a raw image has no `arch`, with `heap` the guest
                has no allocator functions, or a device of the board is wrong, or `received` is
                given and no device is a serial port.
            NoMemory: the board has memory or a device where something else is.
            GuestFault, GuestTimeout: a call of `before` fails.
            HeapError: with `heap`, a call of `before` makes a memory error.
        """
        call = parse_call(self.call, inputs=True)
        machine = self._machine()
        machine.load_libraries(self.preload)
        if self.syscalls:
            machine.serve_system_calls()
        with suppress(Unsupported):  # where there are processes, their thread-local storage
            machine.process((os.fspath(self.image),))
        call = call.resolved(machine)
        kprobes = None
        if self.heap:
            kprobes = Kprobes(machine)
            kprobes.heap(raising=True, leaks=False)
        for text in self.before:
            first = parse_call(text).resolved(machine)
            machine.call(first.function, *first.with_input(), max_insns=self.max_insns)
        if Input.BYTES not in call.args:
            raise BadArgument(
                f"{self.call}: no argument is the input",
                hint="write @input, and len for its length",
            )

        room, end = _room(machine)
        function, bound = call.function, self.max_insns
        args = [arg for arg in call.args if not isinstance(arg, NamedAddress)]  # none is left

        def fuzz(data: bytes) -> None:
            """Call the function with an input's bytes, at the end of one room if they fit, else in
            memory that the machine finds.
            """
            length = len(data)
            if length >= room:  # the machine finds room for it
                machine.call(function, *call.with_input(data), max_insns=bound)
                return
            at = end - length - 1 & -_ALIGNED
            machine.write(at, data)  # the room was all zeros: a NUL follows
            given = {Input.BYTES: at, Input.LENGTH: length}
            words = [given[arg] if isinstance(arg, Input) else arg for arg in args]
            machine.call(function, *words, max_insns=bound)

        return Target(machine, fuzz, kprobes)

    def _machine(self) -> UnicornMachine:
        """Load the image and its names into a new machine with the board around it, and return the
        machine.

        Raises:
            BadArgument: a raw image has no `arch`; a device of the board is wrong; or `received`
                is given, and no device is a serial port.
            ImageError: a file cannot be loaded.
            NoMemory: the board has memory or a device where something else is.
        """
        if self.board is None and self.base is None:
            machine = UnicornMachine.load(self.image, arch=self.arch)
            self._name(machine)
        else:
            board = (self.board or Board()).with_more(arch=self.arch, base=self.base)
            if board.base is not None and board.arch is None:
                raise BadArgument(
                    "a raw image needs --arch NAME as well", hint="`kprobes archs` lists them"
                )
            machine = board.machine(self.image, named=self._name)
        if self.received is not None:
            ports = machine.board.uarts if isinstance(machine.board, Fitted) else []
            if not ports:
                raise BadArgument(
                    "--input is for a serial port, and there is none",
                    hint="give one, as in --device pl011@0x40000000",
                )
            ports[0].feed(self.received)
        return machine

    def _name(self, machine: UnicornMachine) -> None:
        """Add the names of `symbols` and of separate debug information to a machine.

        Args:
            machine: the machine, which has the image.

        Raises:
            ImageError: a file cannot be read, or is damaged; or no server has debug information.
        """
        add_names(machine.symbols, self.symbols, self.debug_files, self.servers)


def _room(machine: UnicornMachine) -> tuple[int, int]:
    """Map guest memory for inputs; nothing is mapped behind it, so that reading far on faults.

    Args:
        machine: the guest's machine.

    Returns:
        (bytes of that memory, guest address behind it); (0, 0): there is no room for it.
    """
    regions = machine.regions()
    for start in range(_ROOMS.start, _ROOMS.stop, _ROOMS.step):
        if all(end <= start - _GUARD or start + _ROOM + _GUARD <= begin for begin, end in regions):
            with suppress(KprobeError):
                machine.map(start, _ROOM, "rw")
                return _ROOM, start + _ROOM
    return 0, 0


def call_of(text: str) -> tuple[str, str | None]:
    """Translate a call as one types it for AFL into the text that CallTarget.call has. What is in
    quotes stays as it is.

    Args:
        text: the call, with `@@` or `@input` for the input's address, `@len` or `len` for its
            length. AFL has put the path of its file in place of `@@`.

    Returns:
        (the call with `@input` and `len`; the path of AFL's file, the last one where there are
        several; None: there is none).
    """
    path: str | None = None
    pieces = _STRINGS.split(text)
    for n in range(0, len(pieces), 2):  # what is in quotes stays
        found = _AFL_FILE.search(pieces[n])
        if found is not None:
            path = found[0].strip()
            pieces[n] = pieces[n].replace(found[0], "@input")
        pieces[n] = re.sub(r"@len\b", "len", _WRITTEN.sub("@input", pieces[n]))
    return "".join(pieces), path
