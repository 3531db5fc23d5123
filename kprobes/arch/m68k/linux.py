"""m68k on Linux."""

from __future__ import annotations

from .._linux import CallRules, Linux, MemoryCalls, ThreadStorage

SIGILL = 4
ROWS = {"m68k": Linux(
    memory=MemoryCalls(code=bytes.fromhex("4e40"), number="d0",
                       args=("d1", "d2", "d3", "d4", "d5", "a0"), result="d0",
                       map=192, unmap=91),
    calls=CallRules(table="m68k", mmap_by_block=True), trap=(SIGILL, 0),
    # pointers are returned in a0
    storage=ThreadStorage(register="", first=-0x7000, bias=0x8000, read="__m68k_read_tp",
                          also="a0"))}
