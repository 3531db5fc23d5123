"""SPARC on Linux."""

from __future__ import annotations

from .._linux import CallRules, Linux, MemoryCalls, ThreadStorage

NOP = bytes.fromhex("01000000")


def _row(table: str, trap: str) -> Linux:
    """Make the row of one architecture.

    Args:
        table: what the list of system calls' numbers calls it.
        trap: the system call instruction, in hexadecimal digits.
    """
    return Linux(
        memory=MemoryCalls(
            code=bytes.fromhex(trap),
            number="g1",
            args=("o0", "o1", "o2", "o3", "o4", "o5"),
            result="o0",
            map=71,
            unmap=73,
            delay=NOP,
        ),
        calls=CallRules(table=table, failed="carry"),
        storage=ThreadStorage(register="g7", below=True, itself=True, frame=16),
        event_names=(*(f"g{n}" for n in range(8)), *(f"i{n}" for n in range(8)), "pc"),
    )


ROWS = {"sparc": _row("sparc", "91d02010"), "sparc64": _row("sparc64", "91d0206d")}
