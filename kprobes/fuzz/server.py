"""AFL++'s fork server, with one process that runs all inputs.

AFL++ writes a word to start a run, is told the process that runs it, and then how that process has
ended. Here the process is a worker that does not end: it goes back to a snapshot, and tells the
status itself. The server waits for the worker's death, which is that of a run that AFL++ has killed
for its time, or of an engine that has crashed; it tells that status, and forks another worker from
its own, untouched state.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from attrs import frozen

from ..errors import BadArgument
from .bench import InputRunner, Map
from .shared import attached

CONTROL: Final = 198  #: descriptor that AFL++ writes to
STATUS: Final = 199  #: descriptor that AFL++ reads from
MAP, MAP_SIZE, INPUT = "__AFL_SHM_ID", "AFL_MAP_SIZE", "__AFL_SHM_FUZZ_ID"  #: of the environment
DEFAULT_SIZE: Final = 1 << 16  #: bytes of AFL's map, unless AFL_MAP_SIZE says otherwise

# The old handshake: one word of options, which afl-fuzz of every version knows
_ENABLED, _SIZED, _SHARED = 0x80000001, 0x40000000, 0x01000000
# The handshake of AFL++ 4.20 and newer: a version, its complement from AFL++, options, their
# values, the version
_VERSION, _NEW_SIZED, _NEW_SHARED = 0x41464C01, 1, 2

_IDLE, _TAKES, _RUNS, _REPORTS = range(4)  # what the worker does
_PATIENCE: Final = 0.1  # seconds in which AFL++ asks for the next run, if it has read the status
_DEATH_SIGNAL: Final = 1  # prctl(): a signal for when the parent is gone
_WORD: Final = struct.Struct("<I")


def called_by_afl() -> bool:
    """Return True if AFL has started this process: the environment has its map of edges."""
    return MAP in os.environ


def has_server() -> bool:
    """Return True if AFL has opened the fork server's pipes; with AFL_NO_FORKSRV it has not."""
    try:
        os.fstat(CONTROL), os.fstat(STATUS)
    except OSError:
        return False
    return True


def wanted_size(size: int | None) -> int:
    """Return how many bytes the map of edges is to have, and check that AFL's map has as many.

    Args:
        size: bytes that the user wants, returned as they are; None: as many as AFL's map has
            (AFL_MAP_SIZE, else DEFAULT_SIZE), rounded down to a power of two.

    Raises:
        BadArgument: the user wants more than AFL has, which has started this process.
    """
    text = os.environ.get(MAP_SIZE, "")
    there = int(text) if text.isascii() and text.isdecimal() and int(text) else DEFAULT_SIZE
    if size is None:
        return 1 << there.bit_length() - 1
    if size > there and called_by_afl():
        raise BadArgument(
            f"a map of {size} bytes, and AFL has {there}",
            hint=f"set AFL_MAP_SIZE={size} for afl-fuzz",
        )
    return size


def map_of_afl(size: int) -> Map:
    """Attach the map of edges that AFL shares with this process, and return it.

    Args:
        size: bytes of it to use, as wanted_size() gives them.

    Raises:
        BadArgument: the map cannot be attached, or has fewer bytes.
    """
    address, there = attached(MAP)
    if there < size:
        raise BadArgument(
            f"AFL's map has {there} bytes, and {size} are wanted", hint=f"set AFL_MAP_SIZE={size}"
        )
    return (ctypes.c_uint8 * size).from_address(address)


@frozen(eq=False)
class Inputs:
    """The source of test cases.

    Attributes:
        path: path of the file that AFL writes each test case to; None: it is standard input.
        shared: (host address, bytes) of memory that AFL shares: the length of the test case in 4
            bytes, then the test case; None: there is no such memory.
    """

    path: str | None
    shared: tuple[int, int] | None

    def read(self) -> bytes:
        """Return the bytes of the present run's test case: from shared memory where there is some,
        else from the file, else from standard input, from its beginning on.
        """
        if self.shared is not None:
            address, size = self.shared
            length = min(ctypes.c_uint32.from_address(address).value, size - 4)
            return ctypes.string_at(address + 4, length)
        if self.path is not None:
            with open(self.path, "rb") as file:
                return file.read()
        with suppress(OSError):  # a pipe
            os.lseek(0, 0, os.SEEK_SET)
        with open(0, "rb", closefd=False) as file:
            return file.read()


def serve(bench: Callable[[], InputRunner], path: str | None, size: int, new: bool) -> int:
    """Serve AFL++ until it has no more runs. On Linux this process is killed when the one that
    started it ends.

    Args:
        bench: makes what runs inputs. Called once, before AFL++ is told that the server is up.
        path: path of the file that AFL++ writes each test case to; None: it is standard input.
        size: bytes of the map of edges.
        new: True for the handshake of AFL++ 4.20 and newer.

    Returns:
        The exit status of this process.

    Raises:
        BadArgument: AFL++'s shared memory cannot be attached.
        OSError: AFL++ has gone in the middle of the handshake.
    """
    _die_with_parent()  # a run without an end would outlive afl-fuzz
    made = bench()
    shared = attached(INPUT) if os.environ.get(INPUT) else None
    if not (_greet_new if new else _greet)(size, shared is not None):
        return 0
    return _Server(made, Inputs(path, shared)).run()


def _die_with_parent() -> None:
    """Have Linux kill this process when the process that started it ends."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _greet(size: int, shared: bool) -> bool:
    """Do AFL++'s old handshake as a fork server.

    Args:
        size: bytes of the map of edges.
        shared: True: inputs may come by shared memory.

    Returns:
        True: AFL++ may ask for runs now; False: AFL++ has not replied.

    Raises:
        OSError: AFL++ is gone where it is to be told something.
    """
    said = _ENABLED | _SIZED | size - 1 << 1 | (_SHARED if shared else 0)
    os.write(STATUS, _WORD.pack(said))
    return not shared or len(os.read(CONTROL, 4)) == 4


def _greet_new(size: int, shared: bool) -> bool:
    """Do AFL++'s new handshake as a fork server.

    Args:
        size: bytes of the map of edges.
        shared: True: inputs come by shared memory.

    Returns:
        True: AFL++ may ask for runs now; False: AFL++ has not replied, or does not know this
        handshake.

    Raises:
        OSError: AFL++ is gone where it is to be told something.
    """
    os.write(STATUS, _WORD.pack(_VERSION))
    if os.read(CONTROL, 4) != _WORD.pack(_VERSION ^ 0xFFFFFFFF):
        return False
    os.write(STATUS, _WORD.pack(_NEW_SIZED | (_NEW_SHARED if shared else 0)))
    os.write(STATUS, _WORD.pack(size))
    os.write(STATUS, _WORD.pack(_VERSION))
    return True


class _Server:
    """The process that AFL++ has started: forks workers, and waits for their deaths."""

    def __init__(self, bench: InputRunner, inputs: Inputs) -> None:
        """Prepare; no worker is forked yet.

        Args:
            bench: runs inputs; each worker gets a copy of it by fork().
            inputs: where test cases come from.
        """
        self._bench = bench
        self._inputs = inputs
        self._phase = mmap.mmap(-1, mmap.PAGESIZE)  # its first byte; shared with workers

    def run(self) -> int:
        """Have one worker after the other serve AFL++ until AFL++ is gone. The status of a worker
        that has died in a run is told to AFL++.

        Returns:
            The exit status for this process: that of a worker that has ended by itself between
            runs, 0 as AFL++ asked for no more or 1 at an error of its own; 0 where AFL++ is gone
            when a status is to be told.
        """
        parent = os.getpid()
        asked = False
        while True:
            self._phase[0] = _IDLE
            worker = os.fork()
            if worker == 0:
                _Worker(self._bench, self._inputs, self._phase).run(parent, asked)
            _, status = os.waitpid(worker, 0)
            asked = self._phase[0] == _TAKES and not select.select([CONTROL], [], [], 0)[0]
            if self._phase[0] in (_IDLE, _TAKES):
                if os.WIFSIGNALED(
                    status
                ):  # killed for its time when it had just reported, or by somebody else
                    continue
                return os.waitstatus_to_exitcode(status)
            if self._phase[0] == _REPORTS and self._was_read():
                continue
            try:
                os.write(STATUS, _WORD.pack(status & 0xFFFFFFFF))
            except BrokenPipeError:
                return 0

    def _was_read(self) -> bool:
        """Return True if AFL++ has read the status of a worker that it has killed.

        The worker was about to report, or just had. Where it had, AFL++ asks for the next run, for
        which this waits _PATIENCE seconds.
        """
        return bool(select.select([CONTROL], [], [], _PATIENCE)[0])


class _Worker:
    """A process that the server has forked: runs inputs until AFL++ is gone or kills it."""

    def __init__(self, bench: InputRunner, inputs: Inputs, phase: mmap.mmap) -> None:
        """Prepare.

        Args:
            bench: runs inputs.
            inputs: where test cases come from.
            phase: memory that the server sees, too: its first byte says what the worker does.
        """
        self._bench = bench
        self._inputs = inputs
        self._phase = phase

    def run(self, parent: int, asked: bool) -> NoReturn:
        """Run inputs as AFL++ asks for them, and end this process when AFL++ is gone (exit status
        0), or at any error of its own (1, with the error on standard error).

        Args:
            parent: number of the server's process.
            asked: True: AFL++ has asked for the first run already: the worker before was killed
                when it had taken that request.
        """
        _die_with_parent()
        if os.getppid() != parent:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        status = 0
        try:
            self._serve(asked)
        except BrokenPipeError:
            pass
        except BaseException as error:
            status = 1
            print(f"kprobes: {type(error).__name__}: {error}", file=sys.stderr)
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)

    def _serve(self, asked: bool) -> None:
        """Run inputs and tell AFL++ how each run ended, until it asks for no more. `_phase` tells
        the server how far a run has come.

        A run that reaches a bound of the target's own waits for AFL++ to kill it: that is a hang.

        Args:
            asked: True: AFL++ has asked for the first run already.

        Raises:
            BrokenPipeError: AFL++ is gone where it is to be told something.
            OSError: the input cannot be read.
        """
        bench, inputs, phase = self._bench, self._inputs, self._phase
        mine = _WORD.pack(os.getpid())
        control = select.poll()
        control.register(CONTROL, select.POLLIN)
        while asked or self._is_asked(control):
            asked = False
            phase[0] = _RUNS
            os.write(STATUS, mine)
            fate = bench.run(inputs.read())
            if fate.timeout:
                # a bound of the target's own is a hang, which AFL++ tells by its own time
                signal.pause()
            phase[0] = _REPORTS
            os.write(STATUS, _WORD.pack(fate.signal))
            phase[0] = _IDLE

    def _is_asked(self, control: select.poll) -> bool:
        """Wait until AFL++ asks for a run, and take the request; return False where AFL++ is gone.

        A process that waits in read() when it is killed may still take the request, and the server
        would not know: so the worker waits in poll(), and sets its phase before it reads.

        Args:
            control: polls the pipe that AFL++ writes to.
        """
        control.poll()
        self._phase[0] = _TAKES
        return len(os.read(CONTROL, 4)) == 4


def die(number: int) -> NoReturn:
    """End this process by a signal: what AFL sees where there is no fork server.

    Args:
        number: number of the signal; 0: end with exit status 0.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if number:
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
    os._exit(0)
