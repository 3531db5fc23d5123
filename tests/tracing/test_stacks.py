"""Stacks by call frame information: on every architecture whose compiler writes it, at every instruction, through
return probes."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of
from debug_guests import FILES, load
from elftools.dwarf.callframe import CallFrameInfo

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, Trace, UnicornMachine, Unsupported
from kprobes import arch as architectures
from kprobes.debug import unwind
from kprobes.debug.file import dwarf
from kprobes.debug.frame_entries import FrameSection
from kprobes.debug.unwind import UnwindRow, _step_of
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

        behind = instructions(m, k, "leaf")[1]
        k.register(Kprobe(addr=behind, pre_handler=handler))
        m.call("outer", 2)
        assert failed


def frame_sections(data: bytes) -> list[range]:
    import io

    from elftools.elf.elffile import ELFFile

    sections = (ELFFile(io.BytesIO(data)).get_section_by_name(name) for name in (".eh_frame", ".debug_frame"))
    return [range(s["sh_offset"], s["sh_offset"] + s["sh_size"]) for s in sections if s is not None]


@pytest.mark.long
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


# --- where they end


@pytest.mark.quick
@pytest.mark.parametrize("name", FILES)
def test_where_a_stack_ends(name: str) -> None:
    """A whole one ends where the call returns to, with and without return probes below; one without information says
    that it is not whole, and so does one that was cut."""
    with load(name) as m, Kprobes(m) as k:
        m.call("outer", 2)  # not the first one: what the engine maps for calls is there
        for returns in ((), ("r walk $retval",)):
            with k.trace("p leaf", *returns, stack=True) as t:
                m.call("outer", 2)
            leaf = [r for r in t if r.event == "p_leaf_0"]
            assert [(*names(k, r.stack)[:5], len(r.stack)) for r in leaf] == [("leaf", *INNER, 6)] * len(leaf)
            assert leaf[0].stack[-1] == m.exit_address & ~m.arch.pointers.mode_bits
            assert not any(r.incomplete for r in t)
        cut: list[Any] = []
        with k.kprobe("leaf", pre_handler=lambda p, regs: cut.append((k.stack_trace(regs, 5), k.stack_trace(regs)))):
            m.call("outer", 2)
        assert [(len(short), short.incomplete, whole.incomplete) for short, whole in cut] == [(5, True, False)] * len(cut)
        assert repr(cut[0][0]).endswith(", [incomplete]]") and "incomplete" not in repr(cut[0][1])
        m.symbols.files = ()
        with k.trace("p leaf", stack=True) as t:
            m.call("outer", 2)
        assert len(t) > 0  # PowerPC's back chain is always there
        assert all(r.incomplete != (names(k, r.stack)[:5] == ["leaf", *INNER] and len(r.stack) == 6) for r in t)
        assert all(r.incomplete for r in t) or name.startswith("ppc")


@pytest.mark.quick
@pytest.mark.parametrize("name", FILES)
def test_followed_calls_are_known(name: str) -> None:
    """Without frame information a call graph knows the callers, at every instruction; where one is missing between them
    the stack ends there."""
    with load(name) as m, Kprobes(m) as k:
        m.symbols.files = ()
        seen: list[Any] = []
        for address in instructions(m, k, "leaf"):
            k.register(Kprobe(addr=address, pre_handler=lambda p, regs: seen.append(k.stack_trace(regs))))
        with k.graph("outer"):
            m.call("outer", 2)
        assert len(seen) > 3 and all(names(k, stack)[:5] == ["leaf", *INNER] for stack in seen), seen
        assert all(len(stack) == 6 and not stack.incomplete for stack in seen)
        seen.clear()
        for probe in (Kretprobe(symbol_name="leaf"), Kretprobe(symbol_name="outer")):
            k.register(probe)
        m.call("outer", 2)
        chained = name.startswith("ppc")  # the frames of the others are known
        want = ["leaf", *INNER] if chained else ["leaf", "walk"]
        assert all(names(k, stack)[:len(want)] == want and stack.incomplete != chained for stack in seen), seen


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_a_recursion_that_is_followed(arch: str) -> None:
    """fib() of a program without frame information: as many frames as there are calls, in handlers of returns, too."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        m.symbols.files = ()
        with k.trace("p:in fib", "r:out fib", stack=True) as t:
            m.call("fib", 4)
        depth = 0
        for r in t:
            depth += r.event == "in"
            frames = [name for name in names(k, r.stack) if name.removeprefix(".") == "fib"]
            assert (len(frames), r.incomplete) == (depth - (r.event == "out"), False), r
            depth -= r.event == "out"
        assert depth == 0 < len(t)


@pytest.mark.quick
def test_a_stack_that_ends_early_is_marked(tmp_path: Any) -> None:
    """In every format; a recording that is loaded has the same."""
    demo = Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64"
    with UnicornMachine.load(demo) as m, Kprobes(m) as k:
        with k.trace("p fib", stack=True) as t:
            m.call("fib", 3)
        e = k.event("p:h fib", stack=True).trigger("hist:keys=common_stacktrace")
        m.call("fib", 3)
        assert [r.incomplete for r in t] == [False, True, True, False, True][:len(t)] == [r.incomplete for r in e]
        assert "         [incomplete]\n" in str(e.hist)
        assert {row["common_stacktrace"][-1] for row in e.hist} == {m.exit_address, "[incomplete]"}
        t.save(tmp_path / "x.arrow")
    for trace in (t, Trace.load(tmp_path / "x.arrow")):
        texts = {}
        for format in ("ftrace", "jsonl", "csv", "chrome", "folded", "speedscope", "svg"):
            trace.export(file := io.StringIO(), format)
            texts[format] = file.getvalue()
            assert "[incomplete]" in texts[format], format
        assert " => fib+0x18/0x2d\n => [incomplete]\n" in texts["ftrace"] and "[incomplete];fib;fib;" in texts["folded"]
        stacks = [json.loads(line)["stack"] for line in texts["jsonl"].splitlines()]
        assert stacks[1][1:] == ["fib+0x18/0x2d", "[incomplete]"] and "[incomplete]" not in stacks[0]
        table = trace.to_arrow().to_pylist()
        assert [(row["stack"], row["incomplete"]) for row in table] == [([*r.stack], r.incomplete) for r in trace]
        assert trace.lines(trace[1].stack) == ["", ""]


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_entries_are_known_where_probes_stand(arch: str) -> None:
    """Where calls skip a function's first instructions (ppc64) these tell so, under probes, too: events, traces and
    call graphs that come later are at the entry that calls pass."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        symbol = m.symbols["fib"]
        for address in instructions(m, k, "fib")[:3]:
            k.register(Kprobe(addr=address, pre_handler=lambda p, regs: None))
        event = k.event("r:back fib $retval")
        with k.trace("r fib", f"r:number {symbol.address | symbol.mode:#x}") as t, k.graph("fib") as tree:
            m.call("fib", 1)
        assert (len(tree), len(t), event.hits) == (1, 2, 1)


@pytest.mark.parametrize(("arch", "usual"), [("arm64", True), ("sparc64", False)])
def test_a_signed_return_address_is_no_register_window(arch: str, usual: bool) -> None:
    """The same opcode of call frame information says both. Rows of the usual kind are walked quickly."""
    regs = architectures.get(arch).regs
    cfa = SimpleNamespace(expr=None, reg=regs.names.index(regs.sp), offset=16)
    assert (_step_of(architectures.get(arch), UnwindRow(cfa, {}, 30, None, window=True)) is not None) is usual


@pytest.mark.parametrize("name", FILES)
def test_entries_are_found_by_their_headers(name: str) -> None:
    """As pyelftools finds them, which reads all of each; one that is asked for has the same rows."""
    file = LoadedFile(FILES[name], 0, "", name)
    info, found = dwarf(file), unwind._entries(file)
    whole: dict[int, tuple[int, Any]] = {}
    for eh, section in ((True, info.eh_frame_sec), (False, info.debug_frame_sec)):
        frames = unwind._ReadFrames(info, eh) if section is not None else None
        for start, end, at in frames.functions if frames is not None else ():
            whole.setdefault(start, (end, frames.entry(at)))  # type: ignore[union-attr]
    assert len(found) == len(whole) > 2
    for start, end, at, section in found:
        wanted = whole[start]
        assert end == wanted[0] and isinstance(section, FrameSection)
        ours, theirs = section.entry(at).get_decoded().table, wanted[1].get_decoded().table
        assert [repr(vars(row["cfa"])) for row in ours] == [repr(vars(row["cfa"])) for row in theirs]
        assert [row["pc"] for row in ours] == [row["pc"] for row in theirs]
        assert [[*row] for row in ours] == [[*row] for row in theirs]


def test_one_entry_is_read_for_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Big programs have ten thousands, of which pyelftools reads some thousand in a second."""
    read = []
    parse = CallFrameInfo._parse_entry_at
    monkeypatch.setattr(CallFrameInfo, "_parse_entry_at", lambda cfi, at: read.append(at) or parse(cfi, at))
    with load("x86_64-eh") as m:
        assert m.debug.cfa(m.symbols["leaf"].address) == ("rsp", 8)
    assert 0 < len(read) <= 6


def test_sizes_of_pushed_arguments_are_passed_over() -> None:
    """C++ compilers write DW_CFA_GNU_args_size where exceptions may be thrown between pushes; rows are as without."""
    with load("x86_64-eh") as m:
        file, leaf = m.symbols.files[0], m.symbols["leaf"].address
        address = next(start for start, end, *_ in unwind._entries(file) if start <= leaf - file.bias < end)
        section = dwarf(file).eh_frame_sec
        at = next(at for start, _, at in FrameSection(dwarf(file), section, True).functions if start == address)
        at += section.global_offset
        end = at + 4 + int.from_bytes(file.data[at:at + 4], "little")
        assert file.data[end - 2:end] == b"\0\0"  # two that do nothing
        changed = LoadedFile(file.data[:end - 2] + b"\x2e\x08" + file.data[end:], file.bias, file.module, file.path)
        one, other = unwind.Frames(file).row(leaf), unwind.Frames(changed).row(leaf)
        assert one is not None is not other and repr(vars(other.cfa)) == repr(vars(one.cfa))
