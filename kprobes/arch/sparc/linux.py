"""SPARC on Linux."""

from __future__ import annotations

from .._linux import Linux, MemoryCalls, ThreadStorage

NOP = bytes.fromhex("01000000")


def _row(trap: str) -> Linux:
    """Make the row of one architecture; `trap`: the system call instruction, in hexadecimal
    digits.
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
        storage=ThreadStorage(register="g7", below=True, itself=True, frame=16),
        event_names=(*(f"g{n}" for n in range(8)), *(f"i{n}" for n in range(8)), "pc"),
    )


ROWS = {"sparc": _row("91d02010"), "sparc64": _row("91d0206d")}
