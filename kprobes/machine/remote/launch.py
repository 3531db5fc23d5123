"""QemuMachine: programs of any architecture in qemu-user, kernels and firmware in qemu-system."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import IO, Any

from ...arch import of_elf
from ...errors import RemoteError, Unsupported
from ...image import read_elf
from .._listed import Where
from .files import arch_of
from .machine import RemoteMachine
from .packets import Connection
from .target import Target

OLDEST = 9  #: version of qemu-user: before, its stub cannot write text
#: our names of architectures -> QEMU's, where they differ
NAMES = {"arm64": "aarch64", "arm64be": "aarch64_be", "cortexm": "arm", "mips32r6": "mips", "mips32r6el": "mipsel", "mips64r6": "mips64",
         "mips64r6el": "mips64el"}
#: CPU models without which QEMU does not run what the architecture's compilers make
CPUS = {"mips32r6": "mips32r6-generic", "mips32r6el": "mips32r6-generic", "mips64r6": "I6400", "mips64r6el": "I6400"}
Stream = bytes | str | IO[Any] | int | None


class QemuMachine(RemoteMachine):
    """A RemoteMachine whose stub is a QEMU that it started, and ends with."""

    _process: subprocess.Popen[bytes]
    _folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def user(cls, argv: Sequence[str | os.PathLike[str]], *, arch: str | None = None, sysroot: str | os.PathLike[str] | None = None,
             env: Mapping[str, str] | None = None, stdin: Stream = None, stdout: Stream = None, threads: int = 16,
             timeout: float = 10.0) -> QemuMachine:
        """A Linux process: a program of any architecture with its arguments, in qemu-user, stopped at its first own instruction.

        sysroot: where its dynamic linker and libraries are. env: its environment; default: this process's. stdin: bytes, or as in
        subprocess; stdout: as in subprocess. threads, timeout: see connect(). QEMU is looked for in $KPROBES_QEMU_DIR and on
        PATH; 9 or newer. Raises ImageError, Unsupported (no QEMU), RemoteError.
        """
        program = os.fspath(argv[0])
        image = read_elf(program)
        found = of_elf(image.machine, image.bits, image.order, image.flags, image.profile, arch)
        if not os.access(program, os.X_OK):
            raise Unsupported(f"{program} is not executable", hint=f"chmod +x {program}")
        name = NAMES.get(found.name, found.name)
        command = [find_qemu(f"qemu-{name}", OLDEST)]
        if sysroot is not None:
            command += ["-L", os.fspath(sysroot)]
        if found.name in CPUS:
            command += ["-cpu", CPUS[found.name]]

        def attach(target: Target, process: subprocess.Popen[bytes]) -> QemuMachine:
            return cls(target, found, image=image, threads=threads, sysroot=None if sysroot is None else os.fspath(sysroot),
                       interrupt=lambda: os.kill(process.pid, signal.SIGTRAP))

        machine = cls._start(lambda socket: [*command, "-g", socket, *(os.fspath(word) for word in argv)], attach, timeout,
                             env=dict(os.environ if env is None else env), stdin=stdin, stdout=stdout)
        machine.to_entry()
        return machine

    @classmethod
    def system(cls, arguments: Sequence[str], *, arch: str, symbols: str | os.PathLike[str] | Where | None = None,
               scratch: tuple[int, int] | None = None, timeout: float = 20.0) -> QemuMachine:
        """A whole machine: qemu-system with these arguments, stopped before its first instruction.

        arch: its name. symbols, scratch: see connect(). Run it to where memory is mapped before the first probe is
        registered. Raises Unsupported (no QEMU), RemoteError.
        """
        command = [find_qemu(f"qemu-system-{NAMES.get(arch, arch)}", 7), *arguments]

        def attach(target: Target, process: subprocess.Popen[bytes]) -> QemuMachine:
            return cls(target, arch_of(target, None, arch), symbols=symbols, scratch=scratch, threads=1)

        return cls._start(lambda socket: [*command, "-S", "-chardev", f"socket,path={socket},server=on,wait=off,id=kprobes", "-gdb",
                                          "chardev:kprobes"], attach, timeout, env=dict(os.environ), stdin=b"", stdout=None)

    @classmethod
    def _start(cls, command: Callable[[str], list[str]], attach: Callable[[Target, subprocess.Popen[bytes]], QemuMachine], timeout: float, *,
               env: Mapping[str, str], stdin: Stream, stdout: Stream) -> QemuMachine:
        folder = tempfile.TemporaryDirectory(prefix="kprobes-")
        socket = os.path.join(folder.name, "gdb")
        given = _input(stdin)
        process = subprocess.Popen(command(socket), env=dict(env), stdin=given, stdout=stdout)  # type: ignore[arg-type]
        try:
            machine = attach(Target(Connection.open(socket, timeout, lambda: process.poll() is None)), process)
        except BaseException:
            process.kill()
            process.wait()
            folder.cleanup()
            raise
        machine._process, machine._folder = process, folder
        return machine

    def _let_go(self) -> None:
        """End the guest."""
        self._process.kill()  # before the connection goes: QEMU would let the guest run on
        self._process.wait()
        self._target.link.close()
        self._folder.cleanup()


def find_qemu(name: str, oldest: int) -> str:
    """Path of a QEMU of at least this version, in $KPROBES_QEMU_DIR or on PATH. Raises Unsupported, saying what to install."""
    folder = os.environ.get("KPROBES_QEMU_DIR")
    found = shutil.which(name, path=folder) if folder else shutil.which(name)
    if found is None:
        package = "qemu-system" if "system" in name else "qemu-user"
        raise Unsupported(f"there is no {name} here", hint=f"install the package {package}, version {oldest} or newer, or set KPROBES_QEMU_DIR")
    if version(found) < oldest:
        raise Unsupported(f"{found} is version {version(found)}", hint=f"version {oldest} or newer is needed")
    return found


@cache
def version(path: str) -> int:
    """Major version of a QEMU. Raises RemoteError where it does not tell."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RemoteError(f"{path}: {error}", hint="set KPROBES_QEMU_DIR to where QEMU is") from None
    number = re.search(r"version (\d+)\.", said)
    return int(number[1]) if number else 0


def _input(stdin: Stream) -> Any:
    """Standard input as subprocess takes it; bytes come from a file that is gone when it is closed."""
    if not isinstance(stdin, (bytes, str)):
        return subprocess.DEVNULL if stdin is None else stdin
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the process has it
    file.write(stdin.encode() if isinstance(stdin, str) else stdin)
    file.seek(0)
    return file
