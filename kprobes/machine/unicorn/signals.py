"""Python's signal handlers while the guest runs: they wait until it has come to rest.

Python calls them between two bytecodes of the main thread, whichever these are. A running guest
executes none, so that they would never be called; and inside a callback of the engine what they
raise could strike between any two steps of the core, or in ctypes, which loses it. So for the
length of a run every one of them is held: a signal stops the engine, and its handler is called
where the run can raise. In a handler of the user's, which may take its time or never end, it is
called when the signal comes again; after a while it is made to come again.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from threading import get_ident
from types import FrameType
from typing import Any

import attr
import unicorn

from ... import native
from ...hostsystem import at_fork
from .host.signaltable import ROW, SignalTable, find
from .watchdog import AGAIN

Handler = Callable[[int, FrameType | None], Any]

# without the enumerations that signal's own functions make
_plain: Any = sys.modules.get("_signal", signal)
_getsignal, _signal, _set_wakeup_fd = _plain.getsignal, _plain.signal, _plain.set_wakeup_fd
_NOWHERE = -1  # the wake-up file descriptor where there is none
NUMBERS = sorted(map(int, signal.valid_signals()))
BUFFER = 1 << 20  #: bytes; the system may allow less
MANY = 100  #: runs of one machine from which on it pays to look for the interpreter's variables
PATIENCE = 1.0  # seconds that a signal waits in a handler of the user's before it comes again
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LIBRARIES = tuple(os.path.dirname(module.__file__ or "") + os.sep for module in (attr, unicorn))


class _Watcher:
    """A thread that stops the innermost run when the C-level signal handler writes to the wake-up
    socket.

    It is a socket, as Windows cannot wait for a pipe.

    Attributes:
        runs: the machines that run, each in a handler of the one before.
        lock: held while one is stopped: not beyond its own run.
        write: file descriptor to which signals' numbers are written.
        others: file descriptor where the program wants the signals' numbers; -1: nowhere.
    """

    def __init__(self) -> None:
        """Make the sockets, and start the thread."""
        import socket  # of 8 ms, when the first run begins rather than with the package

        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        # a signal that finds it full would be told of on standard error
        self._write.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        self.write = self._write.fileno()
        self.runs: list[HeldSignals] = []
        self.lock = threading.Lock()
        self.others = -1
        threading.Thread(target=self._watch, daemon=True, name="kprobes-signals").start()

    def _watch(self) -> None:
        """Wait for numbers of signals, pass them to the program's own descriptor, and stop the
        innermost run. Signals that have waited in a handler of the user's for PATIENCE seconds are
        made to come again. The thread executes this, for ever.
        """
        patience = None
        while True:
            self._read.settimeout(patience)
            try:
                numbers = self._read.recv(64)
            except TimeoutError:
                numbers = b""
            if numbers and self.others >= 0:
                with contextlib.suppress(OSError):  # closed, full, or a socket of Windows
                    os.write(self.others, numbers)
            with self.lock:
                run = self.runs[-1] if self.runs else None
                late = [] if run is None else run.notice(bool(numbers), patience != AGAIN)
                unheard = run is not None and run.unheard
            for number in late:
                _thread.interrupt_main(signal.Signals(number))
            if unheard:
                patience = AGAIN
            else:
                patience = PATIENCE if numbers or late or patience == AGAIN else None


_watcher: _Watcher | None = None
_main = threading.main_thread().ident


def _watch() -> _Watcher:
    """Start the watcher's thread, and return the watcher. Called when the first run begins."""
    global _watcher
    _watcher = _Watcher()
    return _watcher


def _in_child() -> None:
    """Forget the watcher after a fork, which has left its thread behind; the thread that has forked
    is the main one now. Called in the child.
    """
    global _watcher, _main
    _watcher = None  # the thread has stayed behind
    _main = get_ident()


at_fork(_in_child)


class PlainExchange:
    """Exchanges the handlers of signals for that of a run, and back."""

    def __init__(self) -> None:
        """Prepare; note() comes first."""
        self._seen: tuple[Any, ...] = ()  # the handlers of all signals that were noted last

    def forget(self) -> None:
        """Forget the handlers that were noted: hold() does nothing until note() is called."""
        self._seen = ()

    def note(self, handlers: tuple[Any, ...]) -> None:
        """Note the handlers of all signals for hold().

        Args:
            handlers: of all signals, in the order of NUMBERS.
        """
        self._seen = handlers

    def quicken(self) -> None:
        """Do nothing: Python's functions are all there is."""

    def hold(
        self, numbers: tuple[int, ...], held: list[int], handler: Handler, fd: int
    ) -> int | None:
        """Set one handler for some signals, and a wake-up file descriptor, if all signals have the
        handlers that were noted last.

        Args:
            numbers: of the signals that get `handler`. Where there are none, the descriptor is not
                set.
            held: each number is appended before that signal's handler is set.
            handler: what is set.
            fd: the descriptor that is set.

        Returns:
            The descriptor of before; -1: there was none, or it was not set. None: a signal has
            another handler, or none were noted; nothing has changed.
        """
        if (*map(_getsignal, NUMBERS),) != self._seen:
            return None
        for number in numbers:
            held.append(number)
            _signal(number, handler)
        return _set_wakeup(fd) if numbers else -1

    def let_go(
        self, held: list[int], handler: Handler, usual: dict[int, Handler], fd: int | None
    ) -> None:
        """Put back the handlers of signals.

        Args:
            held: numbers of the signals; each is removed when its handler is back.
            handler: what was set in their place. A signal that has another one now keeps that: the
                program has set it meanwhile.
            usual: number -> the handler to put back.
            fd: wake-up file descriptor that is set first; -1: there is none then. None: the
                present one stays.
        """
        if fd is not None:
            _set_wakeup(fd)
        while held:
            if _getsignal(number := held[-1]) == handler:
                _signal(number, usual[number])
            held.pop()


class HostExchange:
    """Exchanges the handlers of signals as PlainExchange does, by host code; after quicken() in a
    tenth of the time.

    Attributes:
        hold: as PlainExchange.hold().
        let_go: as PlainExchange.let_go().
    """

    def __init__(self) -> None:
        """Make the functions `hold` and `let_go`, and the words of host code that they work on.
        Until note() was called, `hold` does nothing.
        """
        names = native.words("hold")
        self._numbers = _pointers(NUMBERS)
        self._handlers: tuple[Any, ...] = ()
        self._seen = (ctypes.c_uint64 * len(NUMBERS))()  # no handler has address 0
        self._words = (ctypes.c_uint64 * len(names))()
        for name, value in {
            "getsignal": id(_getsignal),
            "setsignal": id(_signal),
            "setwakeup": id(_set_wakeup),
            "count": len(NUMBERS),
            "numbers": ctypes.addressof(self._numbers),
            "seen": ctypes.addressof(self._seen),
            "nowhere": id(_NOWHERE),
        }.items():
            self._words[names[name]] = value
        self._names = names
        address = ctypes.addressof(self._words)
        self.hold: Callable[..., int | None] = _made("signal_holder", address)
        self.let_go: Callable[..., None] = _made("signal_releaser", address)

    def forget(self) -> None:
        """Forget the handlers that were noted: `hold` does nothing until note() is called."""
        self._seen[:] = [0] * len(NUMBERS)

    def note(self, handlers: tuple[Any, ...]) -> None:
        """Note the handlers of all signals for `hold`, and keep them alive.

        Args:
            handlers: of all signals, in the order of NUMBERS.
        """
        self._handlers = handlers  # keeps them as long as their addresses are compared
        self._seen[:] = [*map(id, handlers)]

    def quicken(self) -> None:
        """Have host code use the interpreter's own variables from now on, if these are known."""
        table = _signal_table()
        if table is not None:
            self._words[self._names["handlers"]] = table.handlers
            self._words[self._names["row"]] = ROW
            self._words[self._names["wakeup"]] = table.wakeup


@cache
def _signal_table() -> SignalTable | None:
    """Return where the interpreter keeps handlers of signals; None: that is not known.

    Found out once, in the main thread, while no handler of a signal can raise.
    """
    return find(_plain, NUMBERS, (_watcher or _watch()).write)


def _set_wakeup(fd: int) -> int:
    """Set the wake-up file descriptor, and return the one of before; -1 stands for none.

    Nothing is printed where writing to it fails: a full one has woken its reader.
    """
    before: int = _set_wakeup_fd(fd, warn_on_full_buffer=fd < 0)
    return before


def _made(maker: str, address: int) -> Any:
    """Make a function in host code.

    Args:
        maker: name of the library's function that makes it.
        address: of the words that the function works on.
    """
    return native.function(maker, ctypes.py_object, ctypes.py_object)(address)


def _pointers(objects: Sequence[object]) -> Any:
    """Return an array of the addresses of objects, which the caller keeps."""
    return (ctypes.c_uint64 * len(objects))(*map(id, objects))


class HeldSignals:
    """Holds back the handlers of Python's signals while one machine runs.

    Only in the main thread: Python calls them in no other.

    Attributes:
        held: numbers of signals whose handlers wait now.
        waiting: numbers of those that came, the oldest first.
        hasty: signals stop the run; False: they wait until it ends by itself.
        unheard: the watcher has heard of a signal, and the run has not.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        """Prepare; nothing is held.

        Args:
            stop: () stops the machine's run.
        """
        self._end_run = stop
        exchange = HostExchange() if native.available() else PlainExchange()
        self._exchange: HostExchange | PlainExchange = exchange
        self._to_hold: tuple[int, ...] = ()  # numbers of the signals whose handler can be called
        # number -> handler, of runs before as well: for programs that have kept _hold()
        self._usual: dict[int, Handler] = {}
        self.held: list[int] = []
        self._raised: BaseException | None = None  # what a handler has raised in this run
        self._fd = -1  # the wake-up file descriptor before
        self._runs = 0  # in which handlers were held
        self.waiting: list[int] = []
        self.hasty = True
        self.unheard = False

    def begin(self, thread: int) -> None:
        """Hold all handlers from now on, until end(), and have the watcher's thread stop the run
        when a signal comes. Nothing is done in another thread than the main one, or where no signal
        has a handler.

        Where a handler that is not held yet raises meanwhile, all are put back, and the exception
        is raised.

        Args:
            thread: identity of the calling thread.
        """
        if thread != _main:
            return
        held = self.held
        self.unheard = False
        watcher = _watcher or _watch()
        fd = watcher.write
        hold = self._exchange.hold
        try:
            while (there := hold(self._to_hold, held, self._hold, fd)) is None:
                self._look()
            if not held:
                return
            # a signal that has come by now is found in `waiting` before the engine starts
            watcher.runs.append(self)
            self._fd = there
            self._runs += 1
            if self._runs == MANY:  # all that could raise are held
                self._exchange.quicken()
            if there != fd:
                watcher.others = there
        except BaseException:  # one that was not held yet
            self._let_go()
            raise

    def _look(self) -> None:
        """Note the handlers of all signals as they are now.

        Hazard: a handler may raise anywhere in here. Until all of it is done, no handlers are
        noted, and the next run looks again.
        """
        exchange = self._exchange
        exchange.forget()
        hold = self._hold
        handlers = (*map(_getsignal, NUMBERS),)
        there = zip(NUMBERS, handlers, strict=True)
        found = {number: each for number, each in there if callable(each) and each != hold}
        self._to_hold = (*found,)
        self._usual |= found
        exchange.note(handlers)

    def end(self) -> None:
        """Put the handlers back after begin(), and call those of signals that came. Nothing is done
        where none are held, or in another thread than the main one.

        What a handler has raised in this run, or raises now, is raised.
        """
        if not self.held or get_ident() != _main:
            return
        try:
            self._let_go()
        finally:
            if self.waiting or self._raised is not None:
                self._finish()

    def _finish(self) -> None:
        """Call the handlers of the signals that came; raise what one has raised in this run, else
        what one of them raises now.
        """
        error, self._raised = self._raised, None
        try:
            self._call_rest()
        finally:
            self._raised = None
            if error is not None:
                raise error

    def _let_go(self) -> None:
        """Put the program's handlers back. Where the watcher's thread is about to stop this run,
        this waits until it has.

        A handler that was put back may raise at any moment; the others are put back all the same,
        and then the exception is raised.
        """
        try:
            watcher = _watcher
            fd = None
            if watcher is not None and self in watcher.runs:
                fd = self._fd
                watcher.runs.remove(self)
                if watcher.lock.locked():  # it stops this run: wait until it has done so
                    with watcher.lock:
                        pass
            self._exchange.let_go(self.held, self._hold, self._usual, fd)
        except BaseException:
            self._let_go()
            raise

    def deliver(self) -> None:
        """Call the handlers of the signals that came. Called where the guest is at rest. Nothing is
        done in another thread than the main one.

        What one of them raises is raised here, and by every run that is under way: each later call
        raises it again, until end().
        """
        if get_ident() != _main:
            return
        self.unheard = False
        if self._raised is not None:
            raise self._raised
        self._call_all()

    def _call_all(self) -> None:
        """Call the handlers of the signals that came, the oldest signal's first. What one raises
        ends that.
        """
        while self.waiting:
            self.call(self.waiting.pop(0), sys._getframe(1))

    def _call_rest(self) -> None:
        """Call the handlers of the signals that came, all of them even where one raises; then raise
        what the last one of those that raise has raised.
        """
        try:
            self._call_all()
        except BaseException:
            self._call_rest()  # the other signals' handlers are called all the same
            raise

    def call(self, number: int, frame: FrameType | None) -> None:
        """Call the program's handler of a signal. What it raises is raised here, and stops the run,
        which raises it as well.

        Where another machine's run holds the handler, as this one runs in a handler of that run's,
        its call() is called: that run ends, too.

        Args:
            number: of the signal.
            frame: what it has interrupted; None: nothing of Python's.
        """
        usual = self._usual[number]
        # the run of another machine, in a handler of which this one runs: it ends as well
        outer = getattr(usual, "__self__", None)
        try:
            if isinstance(outer, HeldSignals) and number in outer.held:
                outer.call(number, frame)
            else:
                usual(number, frame)
        except BaseException as error:
            self._raised = error
            self._stop()
            raise

    def _hold(self, number: int, frame: FrameType | None) -> None:
        """Note a signal, and have its handler called later. Python calls this in the handler's
        place.

        The handler is called at once where the program has kept this function beyond the run, or
        where the signal comes again while a handler of the user's runs. Else a signal that waits
        already is not noted again.

        Args:
            number: of the signal.
            frame: Python's frame that it has interrupted; None: there is none.
        """
        self.unheard = False
        if number not in self.held:
            self._usual[number](number, frame)
        elif number not in self.waiting:
            # the watcher stops the run: it lets a call site that is being served pass first
            self.waiting.append(number)
        elif _is_users(frame):
            self.waiting.remove(number)
            self.call(number, frame)

    def _stop(self) -> None:
        """Stop the machine's run, unless signals have to wait until it ends (`hasty`)."""
        if self.hasty:
            self._end_run()

    def notice(self, arrived: bool, late: bool) -> list[int]:
        """Stop the run where that is due, and note in `unheard` whether the run is still to hear of
        a signal. Called by the watcher's thread.

        Args:
            arrived: a signal has come; False: none has for a while.
            late: that was a long while (PATIENCE).

        Returns:
            Numbers of the signals that are to come again: all that wait where `late`, and none has
            arrived; else [].
        """
        self.unheard = (self.unheard or arrived) and self.hasty and not self.waiting
        if arrived or self.unheard:
            self._stop()
        return [*self.waiting] if late and not arrived else []


def _is_users(frame: FrameType | None) -> bool:
    """Return True where a signal has interrupted code of the user's that the core has called: such
    code may raise wherever it is.

    Code of Python's own library, or of a package that the core uses, does not decide: its caller
    does.

    Args:
        frame: what the signal has interrupted; its callers up to the core's function are looked at,
            too. None: the result is False.
    """
    while frame is not None and not (file := frame.f_code.co_filename).startswith(_OURS):
        if not _is_library(file):
            return True
        frame = frame.f_back
    return False


def _is_library(file: str) -> bool:
    """Return True for a file of Python's own library, or of one that the core uses, and for code
    that is in no file, as "<string>". The user's handlers may call such code as well as the core:
    its callers tell which does.

    Args:
        file: path of the code's file, as the code object has it.
    """
    return file.startswith(("<", *_LIBRARIES)) or (
        file.startswith(_STANDARD) and "-packages" not in file
    )
