"""A folder that behaves as tracefs, for one process and its children: `preload.c` asks, files of `k.events` answer."""

from __future__ import annotations

import errno
import os
import re
import selectors
import shutil
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from ftrace.kernel import Kernel

from kprobes import KprobeError

CHUNK = 1 << 15
DEFINITIONS = ("kprobe_events", "dynamic_events")
_ANSWER = struct.Struct("=II")
#: commands that would look at this computer: what they do instead
_COMMANDS = {"uname": 'echo "$KPROBES_TRACEFS_UNAME"', "id": "echo 0", "modprobe": "exit 1", "rmmod": "exit 1"}
_RESULT = re.compile(r"\t\[(PASS|FAIL|UNRESOLVED|UNTESTED|UNSUPPORTED|XFAIL|UNDEFINED)\]$", re.MULTILINE)


class Tracefs:
    """The folder, and who answers.

    Attributes:
        kernel: whose events these are.
        folder: what is to be taken for tracefs.
    """

    def __init__(self, kernel: Kernel, work: Path, preload: Path, uname: str) -> None:
        """work: an empty folder. preload: the compiled library. uname: what `uname -m` is to say."""
        self.kernel, self.work, self.folder = kernel, work, work / "tracing"
        self._preload, self._uname = preload, uname
        self._shown: set[str] = set()
        self._opened: dict[socket.socket, str] = {}
        proc, commands = work / "proc", work / "bin"
        for folder in (self.folder, proc, commands):
            folder.mkdir()
        (proc / "kallsyms").write_text(kernel.kallsyms())
        (proc / "mounts").write_text(f"tracefs {self.folder} tracefs rw 0 0\n")
        (proc / "sched_rt_runtime_us").write_text("950000\n")
        for name, text in _COMMANDS.items():
            (commands / name).write_text(f"#!/bin/sh\n{text}\n")
            (commands / name).chmod(0o755)
        self._show()

    def run(self, command: list[str | Path], timeout: float = 120) -> tuple[int, str]:
        """Run a command that finds the folder mounted: exit status, and all that it prints."""
        with tempfile.TemporaryDirectory(dir="/tmp") as place:  # a socket's path has 108 bytes
            return self._run(command, f"{place}/socket", timeout)

    def _run(self, command: list[str | Path], path: str, timeout: float) -> tuple[int, str]:
        environment = {**os.environ, "LD_PRELOAD": str(self._preload), "KPROBES_TRACEFS": str(self.folder),
                       "KPROBES_TRACEFS_SERVER": path, "KPROBES_TRACEFS_PROC": str(self.work / "proc"),
                       "KPROBES_TRACEFS_UNAME": self._uname, "LC_ALL": "C",
                       "PATH": f"{self.work / 'bin'}:{os.environ['PATH']}"}
        with (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, selectors.DefaultSelector() as waiting,
              open(self.work / "output", "w+") as output):
            listening.bind(path)
            listening.listen(64)
            waiting.register(listening, selectors.EVENT_READ)
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True,
                                       start_new_session=True)
            try:
                self._serve(process, listening, waiting, timeout)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                process.wait()
                for connection in list(self._opened):
                    connection.close()
                self._opened.clear()
                os.unlink(path)
            output.seek(0)
            return process.returncode, output.read()

    def _serve(self, process: subprocess.Popen[str], listening: socket.socket, waiting: selectors.BaseSelector,
               timeout: float) -> None:
        turns = int(timeout / 0.05)
        while process.poll() is None and turns:
            ready = waiting.select(0.05)
            turns -= not ready
            for key, _ in ready:
                if key.fileobj is listening:
                    connection, _ = listening.accept()
                    self._opened[connection] = ""
                    waiting.register(connection, selectors.EVENT_READ)
                    continue
                connection = key.fileobj  # type: ignore[assignment]
                try:
                    packet = connection.recv(1 << 16)
                    if packet:
                        self._answer(connection, chr(packet[0]), packet[1:])
                        continue
                except OSError:  # who asked has gone
                    pass
                waiting.unregister(connection)
                connection.close()
                del self._opened[connection]

    def _answer(self, connection: socket.socket, letter: str, text: bytes) -> None:
        data = b""
        try:
            if letter == "R":
                data = self.kernel.files.read(text.decode()).encode()
            elif letter in "TA":
                self._opened[connection] = text.decode()
                self._open(text.decode(), letter == "T")
            elif letter == "W":
                self._write(self._opened[connection], text.decode())
            else:
                self._happened(letter, text)
            number = 0
        except KprobeError as error:
            number = error.errno or errno.EINVAL
        connection.send(_ANSWER.pack(number, len(data)))
        for at in range(0, len(data), CHUNK):
            connection.send(data[at:at + CHUNK])

    def _open(self, name: str, truncated: bool) -> None:
        if truncated and name in (*DEFINITIONS, "trace", "error_log"):
            self.kernel.files.write(name, "")
            self._show()
        self.kernel.files.read(name)

    def _write(self, name: str, text: str) -> None:
        try:
            self.kernel.files.write(name, text, append=True)
        finally:
            self._show()

    def _happened(self, letter: str, text: bytes) -> None:
        """What a process does is a call in the kernel."""
        if letter == "F":
            self.kernel.call("kernel_clone")
        elif letter == "O":
            self.kernel.call("do_sys_openat2", 0, text + b"\0", 0)
        elif letter == "L":
            self.kernel.call("vfs_symlink", 0, 0, text + b"\0")

    def _show(self) -> None:
        """Have an empty file for each name; a new event's folder is one that the kernel has made."""
        names = set(self.kernel.files.names())
        for name in self._shown - names:
            (self.folder / name).unlink()
        for folder in sorted({os.path.dirname(name) for name in self._shown - names}, key=len, reverse=True):
            if folder and not any((self.folder / folder).iterdir()):
                shutil.rmtree(self.folder / folder)
        made = set[str]()
        for name in names - self._shown:
            path = self.folder / name
            if not path.parent.exists():
                path.parent.mkdir(parents=True)
                made.add(path.parent.name)
            path.touch()
        self._shown = names
        for name in sorted(made - {"events"}):
            self.kernel.call("tracefs_create_dir", name.encode() + b"\0")


def compiled(folder: Path) -> Path:
    """The library that is loaded before others, compiled into a folder."""
    library = folder / "preload.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library,
                    Path(__file__).with_name("preload.c"), "-ldl"], check=True)
    return library


def run_scripts(suite: Path, scripts: list[Path], uname: str, work: Path) -> tuple[dict[str, str], str]:
    """Run scripts of the kernel's by ftracetest.

    Args:
        suite: the folder of ftracetest.
        scripts: to run.
        uname: what `uname -m` says, of PROCESSORS.
        work: an empty folder.

    Returns:
        What it says of each by its path under test.d, without suffix; all that was printed.
    """
    kernel = Kernel(uname)
    try:
        folder = Tracefs(kernel, work, compiled(work), uname)
        _, output = folder.run(["sh", suite / "ftracetest", "-vv", "-l", work / "logs", *scripts])
    finally:
        kernel.close()
    return dict(zip([name_of(suite, script) for script in scripts], _RESULT.findall(output), strict=True)), output


def name_of(suite: Path, script: Path) -> str:
    """A script's path under test.d, without suffix."""
    return str(script.relative_to(suite / "test.d").with_suffix(""))
