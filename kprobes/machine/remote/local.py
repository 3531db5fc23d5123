"""A process behind gdbserver that runs on this computer: it is stopped by a signal to itself.

gdbserver's own interrupt is SIGINT to the process group of which the process would be the leader (gdbserver 13:
kill(-pid)): a process that leads none never gets it, and one that leads one is not the only one to get it. It also
stays away while a thread blocks it, and SIGSTOP cannot be blocked.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from .halting import STOPPED, Interrupt
from .target import Target

PROC = Path("/proc")
NO_GROUP = ("the machine is gone. gdbserver's interrupt goes to the process group that the process leads: start it "
            "with setsid, or connect to gdbserver from the computer that it runs on")


def pid_of(thread: str) -> int:
    """Return the process in a thread's name ("p1a.1b", hexadecimal digits); 0: it names none."""
    process = thread[1:].partition(".")[0] if thread.startswith("p") else ""
    return int(process, 16) if process else 0


def interrupt_of(target: Target, thread: str, auxiliary: bytes) -> Interrupt:
    """Return how the process behind a stub is stopped.

    Args:
        thread: one of its threads, as the stub names it.
        auxiliary: its auxiliary vector, as the stub shows it; b"": the stub shows none.
    """
    pid = pid_of(thread)
    if not auxiliary or not pid:
        return Interrupt(target.link.interrupt)
    if not _is_here(pid, auxiliary):
        return Interrupt(target.link.interrupt, hint=NO_GROUP)

    def send() -> None:
        with suppress(ProcessLookupError):  # it has ended: the stub is about to say so
            os.kill(pid, signal.SIGSTOP)

    return Interrupt(send, frozenset((STOPPED,)))


def _is_here(pid: int, auxiliary: bytes) -> bool:
    """True where this computer's process of that number is the stub's: the vector has random addresses."""
    try:
        traced = b"TracerPid:\t0\n" not in (PROC / str(pid) / "status").read_bytes()
        return traced and (PROC / str(pid) / "auxv").read_bytes().startswith(auxiliary)
    except OSError:
        return False
