"""Stacks by call frame information: on every architecture whose compiler writes it, at every instruction, through
return probes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from debug_guests import FILES, load

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, UnicornMachine, Unsupported
from kprobes.image import LoadedFile

INNER = ["walk", "walk", "walk", "outer"]


def names(k: Kprobes, stack: Sequence[int]) -> list[str]:
    return [k.machine.symbols.describe(address).partition("+")[0] for address in stack]


def instructions(m: UnicornMachine, k: Kprobes, name: str) -> list[int]:
    """Where a probe can be, in a function."""
    symbol = m.symbols[name]
    address, found = symbol.address, []
    while address < m.symbols.extent(symbol):
        verdict = k.check(address | symbol.mode)
        found += [address | symbol.mode] * verdict.probeable
        address += verdict.size or m.arch.insn_align
    return found


@pytest.mark.quick
@pytest.mark.parametrize("name", FILES)
def test_at_every_instruction(name: str) -> None:
    """With and without a return probe below, no function keeps a frame pointer: outer(2) calls walk() three times, and
    that leaf()."""
    with load(name) as m, Kprobes(m) as k:
        seen: list[list[str]] = []
        for address in instructions(m, k, "leaf"):
            k.register(Kprobe(addr=address, pre_handler=lambda p, regs: seen.append(names(k, k.stack_trace(regs)))))
        bare = m.call("outer", 2)
        hits = len(seen)
        assert hits > 3
        k.register(Kretprobe(symbol_name="walk", handler=lambda ri, regs: None))
        assert m.call("outer", 2) == bare + 1  # the table has grown
        assert len(seen) == 2 * hits
        assert all(stack[:5] == ["leaf", *INNER] for stack in seen), seen


@pytest.mark.quick
@pytest.mark.parametrize("name", FILES)
def test_when_a_function_has_returned(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        seen: list[list[str]] = []
        k.register(Kretprobe(symbol_name="walk", handler=lambda ri, regs: seen.append(names(k, k.stack_trace(regs)))))
        m.call("outer", 2)
        assert [stack[: 3 - n] for n, stack in enumerate(seen)] == [["walk", "walk", "outer"], ["walk", "outer"],
                                                                    ["outer"]]


WINDOWS = [name for name in FILES if name.startswith("sparc")]


@pytest.mark.quick
@pytest.mark.parametrize("name", WINDOWS)
def test_wherever_the_present_window_is(name: str) -> None:
    """At every instruction of all functions, from each of the eight windows that the processor has, and round."""
    with load(name) as m, Kprobes(m) as k:
        for function in ("outer", "walk", "leaf"):
            for address in instructions(m, k, function):
                k.register(Kprobe(addr=address, pre_handler=lambda p, regs: seen.append(names(k, k.stack_trace(regs)))))
        m.map(there := 0x800000, 0x1000, "rwx")
        m.write(there, bytes.fromhex("81e00000"))  # SAVE: the next window
        for _ in range(9):
            seen: list[list[str]] = []
            m.call("outer", 2)
            assert {len(stack) for stack in seen} == {2, 3, 4, 5, 6}
            assert all(stack[:-1] == ["leaf", *INNER][1 - len(stack) :] for stack in seen), seen
            m.run(there, until=there + 4)
            m.regs["o6"] = m.regs["i6"]


@pytest.mark.quick
@pytest.mark.parametrize("name", WINDOWS)
def test_no_more_callers_than_windows(name: str) -> None:
    """outer(9) goes round: what is shown is right as far as it goes."""
    with load(name) as m, Kprobes(m) as k:
        deepest: list[list[str]] = []
        k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: deepest.append(names(k, k.stack_trace(regs)))))
        with suppress(GuestFault):  # the engine's windows go round in silence: what was in them is lost
            m.call("outer", 9, timeout=5)
        assert deepest[0] == ["leaf", *["walk"] * 8]


@pytest.mark.quick
@pytest.mark.parametrize("name", WINDOWS)
def test_where_the_processor_cannot_be_looked_into(name: str) -> None:
    """As on a machine in another process: the caller is known by the present window."""
    with load(name) as m, Kprobes(m) as k:
        m.regs.callers_window = None
        seen: list[list[str]] = []
        k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: seen.append(names(k, k.stack_trace(regs)))))
        m.call("outer", 2)
        assert seen == [["leaf", "walk", "walk"]]


@pytest.mark.quick
def test_in_records() -> None:
    with load("mips-eh") as m, Kprobes(m) as k, k.trace("p leaf depth=$arg2", "r leaf $retval", stack=True) as t:
        m.call("outer", 2)
    assert [names(k, r.stack)[:5] for r in t] == [["leaf", *INNER], [*INNER, t.name(t[1].stack[4])]]
    assert len(t[0].stack) == len(t[1].stack) + 1


@pytest.mark.quick
def test_a_symbol_file_brings_frames() -> None:
    """The code alone, and its file loaded for its names: what a stripped program and its .debug file are."""
    with load("arm64-df") as m:
        m.symbols.files = ()
        with Kprobes(m) as k:
            seen: list[Any] = []
            k.register(Kprobe(symbol_name="leaf",
                              pre_handler=lambda p, regs: seen.append(names(k, k.stack_trace(regs)))))
            m.call("outer", 2)
            m.symbols.add_file(FILES["arm64-df"], 0)
            m.call("outer", 2)
    assert seen[0] != seen[1] and seen[1][:5] == ["leaf", *INNER]


@pytest.mark.quick
def test_nothing_to_go_by() -> None:
    with load("mips-eh") as m, Kprobes(m) as k:
        m.symbols.files = ()
        failed: list[str] = []

        def handler(p: Any, regs: Any) -> None:
            with pytest.raises(Unsupported, match="asynchronous-unwind-tables") as error:
                k.stack_trace(regs)
            failed.append(str(error.value))

        k.register(Kprobe(symbol_name="leaf", pre_handler=handler))
        m.call("outer", 2)
        assert failed


def frame_sections(data: bytes) -> list[range]:
    import io

    from elftools.elf.elffile import ELFFile

    sections = (ELFFile(io.BytesIO(data)).get_section_by_name(name) for name in (".eh_frame", ".debug_frame"))
    return [range(s["sh_offset"], s["sh_offset"] + s["sh_size"]) for s in sections if s is not None]


@pytest.mark.parametrize("name", ["x86_64-eh", "arm-df", "mips64-eh", "ppc-df", "s390x-eh"])
def test_damaged_tables(name: str) -> None:
    """A shorter stack, or a wrong one: never anything else."""
    rng = random.Random(name)
    with load(name) as m, Kprobes(m) as k:
        lengths = []
        k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: lengths.append(len(k.stack_trace(regs, 64)))))
        for _ in range(60):
            data = bytearray(FILES[name])
            for _ in range(rng.choice([1, 4, 40])):
                data[rng.choice(rng.choice(frame_sections(FILES[name])))] = rng.randrange(256)
            m.symbols.files = (LoadedFile(bytes(data), 0, ""),)
            try:
                m.call("outer", 2)
            except Unsupported:  # no frame pointers there
                lengths.append(1)
        assert len(lengths) == 60 and max(lengths) <= 64
