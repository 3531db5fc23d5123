"""Services that this computer's operating system may lack, and what is done there instead."""

from __future__ import annotations

import os
from collections.abc import Callable


def at_fork(in_child: Callable[[], None]) -> None:
    """Have a function called in each process that is forked from this one.

    Args:
        in_child: takes nothing. Never called where processes are not forked (Windows).
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def is_private(status: os.stat_result) -> bool:
    """Return True where a file is this user's, and neither its group nor others may write to it.

    Args:
        status: os.stat() of the file. On Windows it does not tell who may write, but other users
            cannot write to the folders that caches are in: always True.
    """
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
