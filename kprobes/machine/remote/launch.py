"""QemuMachine: programs of any architecture in qemu-user, kernels and firmware in qemu-system."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

from ...arch import get, names, of_elf
from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row
from ...arguments import checked, shown
from ...errors import BadArgument, RemoteError, Unsupported
from ...image import read_elf
from .._listed import Where
from .calls import check_limits
from .files import arch_of
from .interrupts import Interrupt
from .layouts import facts_of
from .machine import RemoteMachine
from .packets import Connection
from .target import RemoteTarget

#: major versions of qemu-user -> bytes that its stub reads at once (gdb_handlesig)
READS = {9: 256, 10: 256}
#: version of QEMU from which an instruction that EXECUTE executes counts from its own address: its
#: branches from 8.1, its other instructions from 8.0
_COUNTS = 9
OLDEST = 9  #: version of qemu-user: before, its stub cannot write text
Stream = bytes | str | IO[Any] | int | None


def qemu_name(arch: Arch) -> str:
    """Return QEMU's name of an architecture, as in qemu-aarch64."""
    return facts_of(arch).qemu or arch.name


@checked("__init__")
class QemuMachine(RemoteMachine):
    """A RemoteMachine whose stub is a QEMU that it started, and ends with."""

    _child: Child

    @classmethod
    def user(
        cls,
        argv: Sequence[str | os.PathLike[str]],
        *,
        arch: str | None = None,
        sysroot: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Stream = None,
        stdout: Stream = None,
        threads: int = 16,
        timeout: float = 10.0,
    ) -> QemuMachine:
        """Start a Linux process of any architecture in qemu-user, and stop it at its first own
        instruction.

        QEMU is looked for in $KPROBES_QEMU_DIR, or where that is not set on PATH; 9 or newer. The
        dynamic linker has run by then, and the symbols of the libraries are known. Children that
        the process forks run on without the library.

        Args:
            argv: path of the program, and its arguments.
            arch: name of its architecture, where its file leaves several.
            sysroot: folder of its dynamic linker and libraries.
            env: its environment; None: this process's.
            stdin: bytes, or as in subprocess.
            stdout: as in subprocess.
            threads: number of living threads that may come to probes; where one more does,
                RemoteError ends the run. 1: threads do not take turns at probes.
            timeout: seconds that the stub may take for an answer.

        Raises:
            BadArgument: an argument is of the wrong kind.
            ImageError: the file is no program.
            RemoteError: QEMU ends, or does not answer.
            Unsupported: there is no QEMU, it is too old, or the file is not executable or of an
                architecture that is not known.
        """
        check_limits(timeout, threads)
        program, *words = _words("argv", argv)
        image = read_elf(program)
        found = of_elf(image.machine, image.bits, image.order, image.flags, image.profile, arch)
        if not os.access(program, os.X_OK):
            raise Unsupported(f"{program} is not executable", hint=f"chmod +x {program}")
        environment = os.environ if env is None else _environment(env)
        _check_stream("stdin", stdin, text=True)
        _check_stream("stdout", stdout)
        facts, linux = facts_of(found), row(found, Linux) or Linux()
        command = [qemu := find_qemu(f"qemu-{qemu_name(found)}", OLDEST)]
        command += [] if sysroot is None else ["-L", os.fspath(sysroot)]
        command += ["-cpu", facts.qemu_cpu] if facts.qemu_cpu else []
        child = Child(
            lambda socket: [*command, "-g", socket, program, *words], environment, stdin, stdout
        )
        with child.ended_by_errors():
            target = child.target(timeout, facts.takes_pc, READS.get(version(qemu), 0), linux.trap)
            machine = cls(
                target,
                found,
                image=image,
                threads=threads,
                sysroot=None if sysroot is None else os.fspath(sysroot),
                interrupt=Interrupt(
                    lambda: os.kill(child.process.pid, signal.SIGTRAP), frozenset((signal.SIGTRAP,))
                ),
                here=True,
                status=child.status,
                counts_from_executed=version(qemu) >= _COUNTS,
            )
        machine._child = child
        machine.to_entry()
        machine.watch_children()
        if threads > 1:
            machine.watch_threads()
        else:
            machine.leave_threads()
        return machine

    @classmethod
    def system(
        cls,
        arguments: Sequence[str],
        *,
        arch: str,
        symbols: str | os.PathLike[str] | Where | None = None,
        scratch: tuple[int, int] | None = None,
        timeout: float = 20.0,
    ) -> QemuMachine:
        """Start a whole machine in qemu-system, stopped before its first instruction.

        QEMU is looked for in $KPROBES_QEMU_DIR, or where that is not set on PATH; 7 or newer. Run
        the machine to where memory is mapped before the first probe is registered.

        Args:
            arguments: of qemu-system.
            arch: name of its architecture.
            symbols: name -> address or (address, size), or a file as symbols.load() takes it; None:
                there are no symbols.
            scratch: (start, bytes) of executable guest memory that nothing uses; None: a Linux
                kernel in the guest is asked for memory.
            timeout: seconds that the stub may take for an answer.

        Raises:
            BadArgument: an argument is of the wrong kind.
            ImageError: the file of symbols cannot be read.
            RemoteError: QEMU ends, or does not answer.
            Unsupported: there is no QEMU, it is too old, or the architecture is not known.
        """
        check_limits(timeout)
        name = qemu_name(get(arch)) if arch in names() else arch
        command = [find_qemu(f"qemu-system-{name}", 7), *_words("arguments", arguments, least=0)]
        child = Child(
            lambda socket: [
                *command,
                "-S",
                "-chardev",
                f"socket,path={socket},server=on,wait=off,id=kprobes",
                "-gdb",
                "chardev:kprobes",
            ],
            os.environ,
            b"",
            None,
        )
        with child.ended_by_errors():
            target = child.target(timeout)
            machine = cls(
                target,
                arch_of(target, None, arch),
                symbols=symbols,
                scratch=scratch,
                system=True,
                counts_from_executed=version(command[0]) >= _COUNTS,
            )
        machine._child = child
        return machine

    def _let_go(self) -> None:
        """End QEMU and the guest in it, and close the connection. Called by close()."""
        self._child.end()  # before the connection goes: QEMU would let the guest run on
        self._target.link.close()


class Child:
    """A QEMU that the library has started, and the folder that the socket of its stub is in.

    Attributes:
        process: the subprocess.
    """

    def __init__(
        self,
        command: Callable[[str], list[str]],
        env: Mapping[str, str],
        stdin: Stream,
        stdout: Stream,
    ) -> None:
        """Start QEMU.

        Args:
            command: (path of the stub's socket) -> the command line.
            env: QEMU's environment.
            stdin, stdout: as subprocess takes them; stdin also as bytes or text.

        Raises:
            BadArgument: subprocess does not take a stream.
            OSError: QEMU cannot be started.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="kprobes-")
        self._socket = os.path.join(self._folder.name, "gdb")
        streams: dict[str, Any] = {"stdin": _input(stdin), "stdout": stdout}
        try:
            self.process = subprocess.Popen(command(self._socket), env=dict(env), **streams)
        # there is nothing else that is wrong
        except (AttributeError, OverflowError, TypeError, ValueError) as error:
            raise BadArgument(
                f"stdin is {shown(stdin)}, stdout is {shown(stdout)}: {error}",
                hint="pass what subprocess takes",
            ) from None
        # where end() is not called, and where Python ends
        self._kill = weakref.finalize(self, self.process.kill)

    def target(
        self,
        timeout: float,
        takes_pc: bool = False,
        reads: int = 0,
        traps: tuple[int, int] | None = None,
    ) -> RemoteTarget:
        """Connect to the stub of this QEMU, and return it.

        Args:
            timeout: seconds that it may take for an answer.
            takes_pc: True where resume() may be told where the thread that stopped goes on.
            reads: bytes that the stub reads at once; 0: not known.
            traps: (the signal of a trap instruction, bytes from there to pc); None: a trap
                instruction does not stop the guest.

        Raises:
            RemoteError: QEMU has ended, or does not answer.
        """
        try:
            connection = Connection.open(self._socket, timeout, lambda: self.process.poll() is None)
            return RemoteTarget(connection, takes_pc, reads, traps)
        except RemoteError:
            if (status := self.process.poll()) is None:
                raise
            raise RemoteError(
                f"QEMU has ended before the program began (status {status})",
                hint="it has said why; a program's dynamic linker and libraries are looked for in "
                "sysroot= (--sysroot)",
            ) from None

    def status(self) -> int | None:
        """Wait a second at most for QEMU to end, and return its exit status: minus the signal's
        number where a signal has ended it; None: it still runs.
        """
        try:
            return self.process.wait(1)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill the QEMU process, wait for its end, and remove the folder."""
        self._kill()
        self.process.wait()
        self._folder.cleanup()

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """End QEMU where the with block raises: no machine is made of it."""
        try:
            yield
        except BaseException:
            self.end()
            raise


def _words(name: str, words: Iterable[Any], least: int = 1) -> list[str]:
    """Return a command line's words as text, after a check that a process can be given them.

    Args:
        name: of the argument, for the error.
        words: strings and paths.
        least: how many there must be.

    Raises:
        BadArgument: `words` is something else.
    """
    found: list[Any] = [words] if isinstance(words, bytes) else [*words]
    for word in found:
        if isinstance(words, str) or not isinstance(word, (str, os.PathLike)):
            raise BadArgument(f"{name} has {shown(word)}", hint="pass a list of words")
    if len(found) < least or any("\0" in os.fspath(word) for word in found):
        raise BadArgument(f"{name} is {shown(words)}", hint="pass a list of words without NULs")
    return [os.fspath(word) for word in found]


def _environment(env: Mapping[str, str]) -> Mapping[str, str]:
    """Check that a process can have an environment, and return it.

    Args:
        env: name -> value, both without NULs; names without "=".

    Raises:
        BadArgument: it cannot.
    """
    for name, value in env.items():
        if (
            not isinstance(name, str)
            or not isinstance(value, str)
            or "=" in name
            or "\0" in name + value
        ):
            raise BadArgument(
                f"env has {shown(name)}: {shown(value)}",
                hint='pass {"NAME": "value"}, without NULs',
            )
    return env


def find_qemu(name: str, oldest: int) -> str:
    """Return the path of a QEMU, in $KPROBES_QEMU_DIR, or where that is not set on PATH.

    Args:
        name: of the program.
        oldest: its least major version.

    Raises:
        Unsupported: there is none, or an older one; the hint says what to install.
        RemoteError: it cannot be asked for its version.
    """
    folder = os.environ.get("KPROBES_QEMU_DIR")
    found = shutil.which(name, path=folder) if folder else shutil.which(name)
    there = "" if found is None else f": {found} is version {version(found)}"
    if found is None or version(found) < oldest:
        package = "qemu-system" if "system" in name else "qemu-user"
        raise Unsupported(
            f"there is no {name} of version {oldest} or newer here{there}",
            hint=f"install the package {package} in such a version, or set KPROBES_QEMU_DIR",
        )
    return found


@cache
def version(path: str) -> int:
    """Ask a QEMU for its version, and return the major number; 0: it does not tell.

    Args:
        path: of the program.

    Raises:
        RemoteError: it cannot be asked.
    """
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RemoteError(
            f"{path}: {error}", hint="set KPROBES_QEMU_DIR to where QEMU is"
        ) from None
    number = re.search(r"version (\d+)\.", said)
    return int(number[1]) if number else 0


def _check_stream(name: str, stream: object, *, text: bool = False) -> None:
    """Check that subprocess takes an object as a stream, before anything is started.

    Args:
        name: of the argument, for the error.
        stream: the object.
        text: True where bytes and text are streams as well.

    Raises:
        BadArgument: it does not.
    """
    if isinstance(stream, int):
        good = subprocess.DEVNULL <= stream < 1 << 31
    else:
        good = (
            stream is None
            or (text and isinstance(stream, (bytes, str)))
            or hasattr(stream, "fileno")
        )
    if not good:
        raise BadArgument(f"{name} is {shown(stream)}", hint="pass what subprocess takes")


def _input(stdin: Stream) -> Any:
    """Return what to pass to subprocess as standard input.

    Args:
        stdin: bytes or text become a temporary file, which is gone when it is closed; None: no
            input (DEVNULL); anything else is returned as it is.
    """
    if not isinstance(stdin, (bytes, str)):
        return subprocess.DEVNULL if stdin is None else stdin
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the process has it
    file.write(stdin.encode() if isinstance(stdin, str) else stdin)
    file.seek(0)
    return file
