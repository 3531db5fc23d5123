"""afl-fuzz's end of the fork server's pipes, for tests without afl-fuzz; it follows AFL++'s docs and both handshakes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ENABLED, SIZED, SHARED = 0x80000001, 0x40000000, 0x01000000
VERSION = 0x41464C01
CONTROL, STATUS = 198, 199
PATIENCE = 60  # seconds
PREFIX = [sys.executable, "-m", "kprobes", "fuzz"]

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p


class Segment:
    """Shared memory of System V, removed with its last process."""

    def __init__(self, size: int) -> None:
        self.number = libc.shmget(0, ctypes.c_size_t(size), 0o11600)  # IPC_CREAT, SHM_NORESERVE
        assert self.number >= 0
        self.address = libc.shmat(self.number, None, 0)
        libc.shmctl(self.number, 0, None)
        self.bytes = (ctypes.c_uint8 * size).from_address(self.address)


class Afl:
    """Drives one fork server."""

    def __init__(self, server: subprocess.Popen[bytes], control: int, status: int, edges: Segment,
                 shared: Segment | None, file: Path) -> None:
        self.server, self._control, self._status = server, control, status
        self.edges, self._shared, self._file = edges, shared, file
        self.size = 0
        self._ahead: int | None = None  # a word that has been looked at
        self.killed = 0
        self.pid = 0
        self.said = ""  #: what the server has written to stderr, when it is gone

    def speaks_new(self) -> bool:
        """Whether the server begins the new handshake; the word that says so is read again."""
        self._ahead = self.word()
        return self._ahead == VERSION

    def word(self, seconds: float = PATIENCE) -> int | None:
        """The next word of the server's; None: none came in time. EOFError: the server is gone."""
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        if not select.select([self._status], [], [], seconds)[0]:
            return None
        said = os.read(self._status, 4)
        if len(said) < 4:
            raise EOFError
        return int(struct.unpack("<I", said)[0])

    def send(self, word: int) -> None:
        os.write(self._control, struct.pack("<I", word))

    def greet(self) -> None:
        """The old handshake."""
        said = self.word()
        assert said is not None and said & ENABLED == ENABLED
        assert bool(said & SHARED) == (self._shared is not None)
        self.size = ((said & 0x00FFFFFE) >> 1) + 1
        if self._shared is not None:
            self.send(ENABLED | SHARED)

    def greet_new(self) -> None:
        """AFL++ 4.20's."""
        assert self.word() == VERSION
        self.send(VERSION ^ 0xFFFFFFFF)
        options = self.word()
        assert options is not None and options & 1 and bool(options & 2) == (self._shared is not None)
        size = self.word()
        assert size is not None
        self.size = size
        assert self.word() == VERSION

    def run(self, data: bytes, seconds: float = PATIENCE) -> int | None:
        """The status of a run; None: it was killed for its time."""
        if len(self.edges.bytes) <= 1 << 23:
            ctypes.memset(self.edges.address, 0, len(self.edges.bytes))
        if self._shared is not None:
            self._shared.bytes[: 4 + len(data)] = [*struct.pack("<I", len(data)), *data]
        else:
            self._file.write_bytes(data)
        self.send(self.killed)
        pid = self.word()
        assert pid
        self.pid, self.killed = pid, 0
        status = self.word(seconds)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            self.killed = 1
            assert self.word() == signal.SIGKILL
            return None
        return status

    def hits(self) -> dict[int, int]:
        """The map of the last run: number of an edge -> its counter."""
        return {number: count for number, count in enumerate(self.edges.bytes) if count}


@contextlib.contextmanager
def afl(tmp_path: Path, words: Sequence[str], *, shared: bool = True, size: int = 1 << 16,
        environment: dict[str, str] | None = None) -> Iterator[Afl]:
    """A fork server that runs `kprobes fuzz WORDS`. `@@` among the words is the file of inputs."""
    edges, inputs = Segment(size), Segment(4 + (1 << 16)) if shared else None
    file = tmp_path / ".cur_input"
    file.write_bytes(b"")
    control, status = os.pipe(), os.pipe()
    variables: dict[str, Any] = {**os.environ, "__AFL_SHM_ID": str(edges.number), **(environment or {})}
    if inputs is not None:
        variables["__AFL_SHM_FUZZ_ID"] = str(inputs.number)

    def pipes() -> None:
        for end, place in ((control[0], CONTROL), (status[1], STATUS)):
            os.dup2(end, place)
        for end in (*control, *status):
            os.close(end)

    command = [*PREFIX, *(word.replace("@@", str(file)) for word in words)]
    with open(file, "rb") as stdin:
        server = subprocess.Popen(command, preexec_fn=pipes,  # noqa: PLW1509
                                  close_fds=False, env=variables, stdin=stdin, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
    os.close(control[0])
    os.close(status[1])
    driven = Afl(server, control[1], status[0], edges, inputs, file)
    try:
        yield driven
    finally:
        os.close(control[1])
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(PATIENCE)
        if server.poll() is None:
            server.kill()
            server.wait()
        assert server.stderr is not None
        driven.said = server.stderr.read().decode()
        server.stderr.close()
        os.close(status[0])
