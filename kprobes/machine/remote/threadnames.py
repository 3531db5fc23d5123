"""Numbers of a process and its threads in the names that a stub has for threads."""

from __future__ import annotations


def pid_of(thread: str) -> int:
    """Return the process's number in a thread's name ("p1a.1b", hexadecimal digits); 0: it names
    none.
    """
    process = thread[1:].partition(".")[0] if thread.startswith("p") else ""
    return int(process, 16) if process else 0


def tid_of(thread: str) -> int:
    """Return the thread's number in its name ("p1a.1b", or "1b"; hexadecimal digits); 0: it names
    none.
    """
    number = thread.rpartition(".")[2]
    return int(number, 16) if number else 0
