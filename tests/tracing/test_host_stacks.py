"""Stacks that the host's library walks are those of the plain walk, which a machine without that library does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of
from debug_guests import FILES, load

from kprobes import Kprobe, KprobeError, Kprobes, Kretprobe, UnicornMachine, Unsupported
from kprobes.core.hit.trace import stack_trace
from kprobes.debug.unwind import Unwinder
from kprobes.stacks import INCOMPLETE, addresses_of, is_incomplete

pytestmark = pytest.mark.host_code
#: windows are Python's; on Arm returns by POP are, and with them all followed calls
NOT_USUAL = ("sparc", "arm-", "armeb-", "thumb-", "cortexm-")


class Comparison:
    """Walks each stack both ways.

    Attributes:
        served: stacks that the library walked; all: those that were asked for.
    """

    def __init__(self, k: Kprobes) -> None:
        self._k = k
        self._unwinder = Unwinder(k.machine.arch, k.machine.symbols)
        self.served = self.all = 0

    def __call__(self, _probe: Any, regs: Any) -> None:
        k = self._k
        for limit in (64, 3, 1):
            assert k._stacks._walk is not None
            found = k._stacks._walk.walk(regs, limit)
            self.all += 1
            if found is None:
                continue
            self.served += 1
            entry = regs.pc in k._points and k._entry(regs.pc, k.machine.symbols.changes)
            plain = stack_trace(k._calls, self._unwinder, k.machine, regs, limit, bool(entry))
            assert ([*addresses_of(found)], is_incomplete(found)) == ([*plain], plain.incomplete)
        try:
            kept = k.stack_trace(regs).kept()
        except Unsupported:
            kept = regs.pc, INCOMPLETE
        assert k.kept_stack(regs) == kept


def probe_everywhere(k: Kprobes, names: tuple[str, ...], handler: Comparison) -> None:
    """Put a probe on each instruction that may have one."""
    m = k.machine
    for name in names:
        symbol = m.symbols[name]
        address = symbol.address
        while address < m.symbols.extent(symbol):
            verdict = k.check(address | symbol.mode)
            if verdict.probeable:
                k.register(Kprobe(addr=address | symbol.mode, pre_handler=handler))
            address += verdict.size or m.arch.insn_align


@pytest.mark.quick
@pytest.mark.parametrize("name", FILES)
def test_stacks_are_those_of_the_plain_walk(name: str) -> None:
    """At every instruction; with return probes, whose calls the machine follows and, in front of an entry handler,
    others; and in handlers of returns."""
    with load(name) as m, Kprobes(m) as k:
        m.call("outer", 1)
        seen = Comparison(k)
        probe_everywhere(k, ("leaf", "walk", "outer"), seen)
        m.call("outer", 2)
        k.register(Kretprobe(symbol_name="walk", handler=seen))
        m.call("outer", 2)
        k.register(Kretprobe(symbol_name="leaf", handler=seen, entry_handler=lambda ri, regs: None))
        m.call("outer", 2)
        m.cpu_task = lambda regs: "task"
        m.call("outer", 2)
        if not name.startswith("sparc"):  # windows are Python's
            assert seen.served > seen.all // 3, (seen.served, seen.all)


@pytest.mark.quick
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("eh") and not name.startswith(NOT_USUAL)])
def test_usual_stacks_are_walked_by_the_library(name: str) -> None:
    """In a recording of a function's entry and return, not one walk is Python's."""
    with load(name) as m, Kprobes(m) as k:
        m.call("outer", 2)
        plain: list[int] = []
        keep = k._stacks.keeper(lambda regs: (plain.append(regs.pc), k._keep_stack(regs))[1])
        seen: list[tuple[int, ...]] = []
        k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: seen.append(keep(regs)) and None))
        k.register(Kretprobe(symbol_name="walk", handler=lambda ri, regs: seen.append(keep(regs)) and None))
        m.call("outer", 2)  # the first hits put the jumps in: those calls the core follows
        plain.clear()
        seen.clear()
        m.call("outer", 2)
        assert len(seen) > 3
        assert not plain
        assert all(stack[-1] == m.exit_address & ~m.arch.pointers.mode_bits for stack in seen)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("eh")])
def test_damaged_stacks(name: str) -> None:
    """Words of the stack that are anything: addresses of nothing, of the stack itself (a loop), odd ones."""
    rng = random.Random(name)
    with load(name) as m, Kprobes(m) as k:
        m.call("outer", 1)
        compare = Comparison(k)

        def damaging(p: Any, regs: Any) -> None:
            word, sp = m.arch.bits // 8, regs.sp
            start = sp - 8 * word
            kept = m.read(start, 64 * word)
            function = m.symbols["walk"]
            for _ in range(12):
                for _ in range(rng.choice([1, 3, 20])):
                    value = rng.choice([0, 1, m.arch.mask, sp, sp + word * rng.randrange(30),
                                        function.address + rng.randrange(function.size), rng.getrandbits(m.arch.bits)])
                    at = start + word * rng.randrange(64)
                    m.write(at, (value & m.arch.mask).to_bytes(word, m.arch.order.value))
                try:
                    compare(p, regs)
                except Unsupported:
                    pass
                m.write(start, kept)

        for function in ("leaf", "walk"):
            k.register(Kprobe(symbol_name=function, pre_handler=damaging))
        m.call("outer", 2)
        assert compare.all > 100


@pytest.mark.quick
def test_stack_pointer_of_nothing() -> None:
    """The stack is not mapped at all, or ends behind the first word."""
    with load("x86_64-eh") as m, Kprobes(m) as k:
        m.call("outer", 1)
        m.map(there := 0x700000000, 0x1000, "rw")
        compare = Comparison(k)

        def moving(p: Any, regs: Any) -> None:
            kept = regs.sp
            for sp in (0, 8, m.arch.mask - 7, there + 0xFF8, there + 0x1000, there - 8, 0x123456789):
                regs.sp = sp
                compare(p, regs)
            regs.sp = kept

        k.register(Kprobe(symbol_name="leaf", pre_handler=moving))
        m.call("outer", 1)
        assert compare.all > 6


@pytest.mark.quick
def test_limits_that_are_no_number_of_the_librarys() -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k:
        seen: list[list[int]] = []

        def handler(p: Any, regs: Any) -> None:
            whole = k.stack_trace(regs)
            seen.append(whole)
            assert k.stack_trace(regs, 1 << 70) == k.stack_trace(regs, 65) == whole
            assert len(k.stack_trace(regs, 2)) == 2

        with k.kprobe("leaf", pre_handler=handler):
            m.call("outer", 1)
        assert seen


@pytest.mark.quick
def test_registers_of_a_machine_that_was_closed() -> None:
    """What is asked afterwards is refused as on the plain path: registers and memory are gone."""
    with load("x86_64-eh") as m, Kprobes(m) as k:
        found: list[Any] = []

        def handler(p: Any, regs: Any) -> None:
            found.append(regs)
            found.append(k.kept_stack)
            assert len(k.kept_stack(regs)) > 2

        with k.kprobe("leaf", pre_handler=handler):
            m.call("outer", 1)
    with pytest.raises(KprobeError):
        found[1](found[0])


@pytest.mark.quick
def test_other_files_and_symbols() -> None:
    """Rows of files that are gone, or of symbols that were others, are forgotten."""
    with load("arm64-eh") as m, Kprobes(m) as k:
        seen: list[tuple[int, ...]] = []
        with k.kprobe("leaf", pre_handler=lambda p, regs: seen.append(k.kept_stack(regs)) and None):
            m.call("outer", 0)
            m.call("outer", 0)
            files, m.symbols.files = m.symbols.files, ()
            m.call("outer", 0)
            m.symbols.files = files
            m.symbols.add("new", 0x10)
            m.call("outer", 0)
        count = len(seen) // 4
        assert seen[count:2 * count] == seen[3 * count:] != seen[2 * count:3 * count]


@pytest.mark.quick
def test_what_a_lookup_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k:
        def fails(self: Any, pc: int) -> None:
            raise KprobeError("no row today")

        raised: list[str] = []

        def handler(p: Any, regs: Any) -> None:
            with pytest.raises(KprobeError, match="no row today") as error:
                k.stack_trace(regs)
            raised.append(str(error.value))

        monkeypatch.setattr(Unwinder, "step", fails)
        with k.kprobe("leaf", pre_handler=handler):
            m.call("outer", 1)
        assert raised
        monkeypatch.undo()
        assert k.stack_trace(m.regs)  # outside of a hit


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_programs_without_information(arch: str) -> None:
    """By frame pointers and followed calls, or not at all: the same both ways."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        stacks: list[list[int]] = []

        def both(ri: Any, regs: Any) -> None:
            assert k._stacks._walk is not None
            found = k._stacks._walk.walk(regs, 64)
            plain = k.stack_trace(regs)
            assert found in (None, plain.kept())
            stacks.append(plain)

        k.register(Kretprobe(symbol_name="fib", handler=both))
        m.call("fib", 4)
        assert stacks


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_stacks_of_code_without_frame_information(arch: str) -> None:
    """At entries, inside, and in handlers of returns; frame pointers that lead along the stack, in circles, to nothing."""
    rng = random.Random(arch)
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        frame = m.arch.linkage.frame if m.arch.linkage is not None else None
        word, order = m.arch.bits // 8, m.arch.order.value
        compare = Comparison(k)

        def chained(p: Any, regs: Any) -> None:
            compare(p, regs)
            if frame is None or frame.register not in regs:
                return
            before, sp = regs[frame.register], regs.sp
            start = sp - 8 * word
            kept = m.read(start, 64 * word)
            for _ in range(6):
                base = at = sp + word * rng.randrange(-2, 20)
                for _ in range(rng.randrange(5)):
                    above = at + word * rng.choice([3, 4, 4, 6, 0, -4])
                    to = rng.choice([m.symbols["fib"].address + 4 * rng.randrange(9), m.exit_address, 0, 8])
                    for where, value in ((at + frame.next, above),
                                         ((above if frame.above else at) + frame.address, to)):
                        if start <= where <= start + 63 * word:
                            m.write(where, (value & m.arch.mask).to_bytes(word, order))
                    at = above
                if start <= at + frame.next <= start + 63 * word:
                    m.write(at + frame.next, rng.choice([0, 0, at, sp]).to_bytes(word, order))
                regs[frame.register] = rng.choice([base, base, base, 0, 8, sp, m.arch.mask])
                compare(p, regs)
                m.write(start, kept)
                regs[frame.register] = before

        mode = m.symbols["fib"].mode
        for offset in (0, *range(2, 24, 2)):
            if k.check(m.symbols["fib"].address + offset | mode).probeable:
                k.register(Kprobe(symbol_name="fib", offset=offset, pre_handler=chained))
        m.call("fib", 4)
        k.register(Kretprobe(symbol_name="fib", handler=chained))
        m.call("fib", 4)
        assert compare.served > (4 if frame is None else compare.all // 10), (compare.served, compare.all)


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_entries_of_code_without_frame_information_are_the_librarys(arch: str) -> None:
    """In records of a recursive function's entries not one walk is Python's, also behind its first instruction."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        plain: list[int] = []
        seen: list[tuple[int, ...]] = []
        keep = k._stacks.keeper(lambda regs: (plain.append(regs.pc), k._keep_stack(regs))[1])

        def handler(p: Any, regs: Any) -> None:
            seen.append(keep(regs))
            assert seen[-1] == k._keep_stack(regs)

        k.register(Kprobe(symbol_name="fib", pre_handler=handler))
        for _ in range(2):
            plain.clear()
            seen.clear()
            m.call("fib", 4)
        assert len(seen) > 4 and not plain


@pytest.mark.quick
def test_a_back_chain_of_0_is_the_end() -> None:
    """Power's outermost frame: no frame has a return address there, and nothing is read at address 0."""
    with UnicornMachine.load(programs_of("ppc")[-1]) as m, Kprobes(m) as k:
        m.map(0, m.page_size, "rw")
        m.write(4, m.symbols["fib"].address.to_bytes(4, "big"))  # where such a chain would lead
        seen: list[Any] = []

        def handler(p: Any, regs: Any) -> None:
            plain = stack_trace(k._calls, k._stacks._frames, m, regs, 64, at_entry=True)
            assert k._stacks._walk is not None
            seen.append((plain.kept(), k._stacks._walk.walk(regs, 64)))

        k.register(Kprobe(symbol_name="fib", pre_handler=handler))
        m.call("fib", 3)
        assert len(seen) > 2 and all(one == other for one, other in seen)
        assert all(stack[-1] == m.exit_address for stack, _ in seen)


@pytest.mark.quick
def test_entries_that_are_probed_later() -> None:
    """An address is one of those asked whether a function begins there, once it has a probe."""
    with UnicornMachine.load(programs_of("x86_64")[-1]) as m, Kprobes(m) as k:
        compare = Comparison(k)
        m.symbols.add("elsewhere", m.symbols["fib"].address + 1)
        with k.kretprobe("fib", handler=compare), k.kprobe("fib", pre_handler=compare):
            m.call("fib", 3)
            m.symbols.add("another", m.symbols["fib"].address + 2)
            m.call("fib", 3)
        assert compare.served
