"""Reads keys that are typed while a command runs in a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def typed() -> Iterator[Callable[[], str] | None]:
    """Read keys as they are typed while the body runs: no line's end is needed, and none is shown.

    Yields a function that returns the keys typed since its last call, and does not wait; None where
    stdin or stdout is no terminal, or the command runs in the background. Ctrl-C and Ctrl-Z do what
    they always do. At the end the terminal is as it was.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield None
        return
    try:
        import termios
    except ImportError:  # not a Unix
        yield None
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    now = termios.tcgetattr(keyboard)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    if _in_background(keyboard):  # and would be stopped by what follows
        yield None
        return
    termios.tcsetattr(keyboard, termios.TCSANOW, now)
    try:
        yield lambda: _waiting(keyboard)
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _in_background(keyboard: int) -> bool:
    """Whether another command has the terminal now.

    Args:
        keyboard: file descriptor of the terminal.
    """
    try:
        return os.tcgetpgrp(keyboard) != os.getpgrp()
    except OSError:  # no terminal that controls this process
        return False


def _waiting(keyboard: int) -> str:
    """Return the keys that can be read without waiting; "" where there are none.

    Args:
        keyboard: file descriptor of the terminal.
    """
    if not select.select([keyboard], [], [], 0)[0]:
        return ""
    try:
        return os.read(keyboard, 256).decode("ascii", "ignore")
    except OSError:
        return ""
