"""A filter means the same to Python, to programs and to machines that record by themselves."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arches import RUNNABLE
from events.drawn import Generated

from kprobes import Kprobes, ProgramError, UnicornMachine, native
from kprobes.events import Event, _filter, parse_event
from kprobes.events._buffer import Buffer
from kprobes.events._filter import COMPARISONS, Filter, parse_filter
from kprobes.events._handler import RecordedPlace, handler
from kprobes.events._layout import RecordLayout
from kprobes.events._program import compiled
from kprobes.events._recording import machine_handler
from kprobes.programs.atprobe import AtProbe, ContextReader
from kprobes.programs.fitting import words

HERE = 0x10000


class Plain:
    """A switch that nobody asks."""

    enabled = True

    def stack_of(self, regs: object) -> tuple[int, ...]:
        return ()


class Targets:
    """An event and its filter, for each target."""

    def __init__(self, m: UnicornMachine, k: Kprobes, event: Event, filter: Filter) -> None:
        self._m = m
        self._rows = Buffer(size=4096)
        self._handler = handler(RecordedPlace(event, 0, filter), m, self._rows, (), Plain(), False)
        self._left: list[object] = []
        self._ring = Buffer(size=4096)
        self._take = machine_handler(RecordedPlace(event, 0, filter), m, self._ring, RecordLayout(event), None,
                                     lambda p, regs: self._left.append(regs))
        self._records = Buffer(size=4096)
        self._engine: Any = None
        if filter.compilable:
            try:
                program = compiled(event, m, self._records, filter).program
            except ProgramError:  # of a register that no program sees
                return
            self._engine = program.engine("interpreter")
            self._contexts = ContextReader(m.arch, words(program, m))
            self._place = AtProbe(k, False, 0, lambda: 0)

    def hit(self) -> dict[str, bool]:
        """Hit it once; target -> whether a record was made, of targets that can make one."""
        self._m.regs.at(HERE)
        self._rows.rows.clear()
        self._handler(None, self._m.regs)
        found = {"python": bool(self._rows.rows)}
        self._left.clear()
        self._take(None, self._m.regs)
        if not self._left:
            found["machine"] = bool(list(self._ring.taken(lambda data: True)))
        if self._engine is not None:
            self._place.regs = self._m.regs
            self._engine.run(self._contexts.of(self._m.regs), self._place)
            found["program"] = bool(list(self._records.taken(lambda data: True)))
        self._m.regs.at(None)
        return found


@pytest.mark.parametrize("arch", RUNNABLE)
def test_targets_agree(arch: str) -> None:
    """Drawn filters keep the same drawn hits; each number's comparison is met, with both results."""
    chance = random.Random(arch)
    met = dict[tuple[str, str], set[bool]]()
    with UnicornMachine.from_code(bytes(64), arch=arch, symbols={"here": (HERE, 16)}) as m, Kprobes(m) as k:
        make = Generated(m, chance, m.alloc(4096))
        for _ in range(120):
            text = " ".join(f"a{n}={make.argument()}" for n in range(chance.randrange(1, 4)))
            event = parse_event(f"p {HERE:#x} {text}", m)
            numbers = [arg.name for arg in event.args if not arg.type.count and arg.type.style in ("u", "s", "x", "char")]
            if not numbers:
                continue
            common = chance.choice(((), (), ("common_pid", "cpu", "__probe_ip")))  # only Python and machines know them
            filter = parse_filter(make.filter(numbers, common=common), event, m.symbols)
            assert filter is not None
            targets = Targets(m, k, event, filter)
            for _ in range(6):
                make.draw_guest()
                found = targets.hit()
                assert len({*found.values()}) == 1, (event.text, filter.text, found)
                for target, kept in found.items():
                    for test in _filter.tests(filter.tree):
                        met.setdefault((target, test.how), set()).add(kept)
    wanted = [name for name, row in COMPARISONS.items() if row.recorded]
    targets_here = ["python", "program", *(["machine"] if native.available() else [])]
    for target in targets_here:
        for how in wanted:
            assert met.get((target, how)) == {True, False}, (target, how)


@pytest.mark.parametrize(("arch", "base"), [("x86_64", 0xFFFF_FFFF_8000_0000), ("mips", 0x8000_0000)])
@pytest.mark.parametrize("type", ["s", "x"])
@pytest.mark.parametrize("end", [0, 1])
def test_functions_are_where_signed_numbers_are_negative(arch: str, base: int, type: str, end: int) -> None:
    """An address has no sign; nor is there anything behind the last one."""
    symbols = {"first": (base, 16), "last": ((1 << base.bit_length()) - 16, 16)}
    with UnicornMachine.from_code(bytes(64), arch=arch, symbols=symbols) as m, Kprobes(m) as k:
        event = parse_event(f"p {HERE:#x} a=$arg1:{type}{m.arch.bits}", m)
        address, size = [*symbols.values()][end]
        for op, inside in (("==", True), ("!=", False)):
            filter = parse_filter(f"a.function {op} {[*symbols][end]}", event, m.symbols)
            assert filter is not None
            targets = Targets(m, k, event, filter)
            for offset in (-1, 0, size - 1, size):
                m.regs[m.arch.abi.args[0]] = address + offset & (1 << m.arch.bits) - 1
                found = targets.hit()
                assert len(found) == 2 + native.available(), found
                assert {*found.values()} == {(0 <= offset < size) == inside}, (offset, found)


def test_what_is_compared_only_by_python_is_said() -> None:
    with UnicornMachine.from_code(bytes(64), arch="x86_64") as m, Kprobes(m):
        event = parse_event(f"p {HERE:#x} a=$arg1:u32 text=+0($arg1):string", m)
        for text, compilable in (("a == 1", True), ('text == "x"', False), ('text ~ "x*"', False), ("cpu == 0", False)):
            filter = parse_filter(text, event, m.symbols)
            assert filter is not None and filter.compilable == compilable
