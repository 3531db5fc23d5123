"""Keys that are typed while a command runs in a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def typed() -> Iterator[Callable[[], str] | None]:
    """Give keys as they are typed, without a line's end and without showing them.

    Yields:
        What returns the keys that have been typed since it was last asked, and waits for none. None where stdin or
        stdout is no terminal. Ctrl-C and Ctrl-Z do what they always do.
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
    """Return True where the terminal is another command's at the moment."""
    try:
        return os.tcgetpgrp(keyboard) != os.getpgrp()
    except OSError:  # no terminal that controls this process
        return False


def _waiting(keyboard: int) -> str:
    """The keys that wait at a file descriptor; none where it was closed."""
    if not select.select([keyboard], [], [], 0)[0]:
        return ""
    try:
        return os.read(keyboard, 256).decode("ascii", "ignore")
    except OSError:
        return ""
