"""What a stack takes for a function's entry follows the symbols, though it is looked up once for each place."""

from __future__ import annotations

import pytest

from kprobes import Kprobes, UnicornMachine
from kprobes.regs import Regs

pytestmark = pytest.mark.quick


def test_symbols_that_come_later_are_seen() -> None:
    """Where no symbol is, a place counts as an entry, whose caller is on top of the stack; inside a function it is
    not."""
    m, seen = UnicornMachine.from_code(b"\x90" * 7 + b"\xc3", arch="x86_64", base=0x10000), []
    with m, Kprobes(m) as k:
        def look(_: object, regs: Regs) -> None:
            seen.append(len(k.stack_trace(regs)))

        with k.kprobe(addr=0x10004, pre_handler=look):
            for symbol in (None, ("f", 0x10000, 8), ("g", 0x10004, 4)):
                if symbol is not None:
                    m.symbols.add(*symbol)
                m.call(0x10000)
                m.call(0x10000)
    assert seen == [2, 2, 1, 1, 2, 2]
