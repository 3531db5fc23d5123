"""Static tracepoints: places of events by what sys/sdt.h's macros left in a file. sdt.c calls work(1, "height",
{.number = -7, .name = "width"}); what its markers say is the same on every architecture, by whatever operands."""

from __future__ import annotations

import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from host import why_python

from kprobes import EventError, Gone, GuestFault, Kprobes, MachineBusy, Program, UnicornMachine
from kprobes import arch as architectures
from kprobes.cli import main
from kprobes.debug.markers import markers_of
from kprobes.debug.operands import Unfetchable
from kprobes.events._markers import Fetched, fetched
from kprobes.image import LoadedFile

pytestmark = pytest.mark.quick
DATA = Path(__file__).resolve().parents[1] / "data"


def _read() -> dict[str, bytes]:
    with tarfile.open(DATA / "sdt.tar.xz") as archive:
        files = ((m.name, archive.extractfile(m)) for m in archive.getmembers())
        return {name.removesuffix(".elf"): file.read() for name, file in files if file is not None}


FILES = _read()


def load(name: str) -> UnicornMachine:
    return UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None)


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_markers(name: str, python: bool) -> None:
    """Numbers in registers, in memory and in the instruction, texts behind either, of a marker with two places."""
    with load(name) as m, Kprobes(m) as k:
        if python:
            m.cpu_task = lambda regs: 0
        text = "p:w %lab:work n=$arg1 text=+0($arg2):string number=$arg3 small=$arg4 raw=$arg4:x8"
        e, none = k.event(text), k.event("p %sdt_lab:none")
        assert m.call("call", 1) & 0xFFFFFFFF == (1 - 7) & 0xFFFFFFFF
        assert [dict(r.args) for r in e] == [
            {"n": 1, "text": "height", "number": -7, "small": 1, "raw": 1},
            {"n": -5, "text": "width", "number": -7, "small": 9, "raw": 9}]
        assert len(e.places) == 2 and bool(why_python(e)) is python
        assert (none.group, none.name, [dict(r.args) for r in none]) == ("sdt_lab", "none", [{}])
        k.events.clear()
        with k.trace("p %lab:work") as t:
            m.call("call", 1)
        assert [[*r.args] for r in t] == [["arg1", "arg2", "arg3", "arg4"]] * 2
        assert [r.args["arg3"] for r in t] == [-7, -7] and t[0].event == "work"
        k.events.write(text := str(k.event("p %lab:work")).splitlines()[0].replace("work ", "again "))
        assert str(k.events["sdt_lab/again"]) == text, "what is read back can be written"


@pytest.mark.parametrize("name", FILES)
def test_semaphores(name: str) -> None:
    """The program sees that somebody looks, while somebody does, and how many."""
    with load(name) as m:
        def count() -> int:
            return int.from_bytes(m.read(m.symbols["busy_semaphore"].address, 2), m.arch.order.value)

        with Kprobes(m) as k:
            k.event("p %lab:work")
            m.call("call", 1)
            assert count() == 0 and not any(m.read(m.symbols["looked"].address, 4))
            e = k.event("p:one %lab:busy seen=$arg1")
            assert count() == 1 and f"({m.symbols['busy_semaphore'].address:#x}) " in str(e)
            with k.trace("p:two %lab:busy seen=$arg1") as t:
                assert count() == 2
                m.call("call", 1)
            assert count() == 1 and [r.args["seen"] for r in t] == [r.args["seen"] for r in e] == [2]
            e.filter = "seen > 2"
            assert count() == 1
            e.enabled = False
            assert count() == 0
            e.enabled = e.enabled = True
            assert count() == 1
            m.call("call", 1)
            assert [r.args["seen"] for r in e] == [2, 3]
            e.remove()
            e.remove()
            assert count() == 0
            k.events.write(str(e))
            assert count() == 0, "defined, and disabled"
            k.events["one"].enabled = True
            assert count() == 1
        assert count() == 0


@contextmanager
def held(m: UnicornMachine) -> Iterator[None]:
    """Another thread holds the machine."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        assert m.busy.acquire(False)
        taken.set()
        over.wait(60)
        m.busy.release()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("python", [False, True])
def test_a_switch_that_is_refused_changes_nothing(python: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what `enabled` says nor the semaphore, by which the program would look for a tracer that is not there."""
    with load("x86_64") as m, Kprobes(m) as k:
        if python:
            m.cpu_task = lambda regs: 0
        e = k.event("p:one %lab:busy seen=$arg1")

        def state() -> tuple[bool, int]:
            return e.enabled, int.from_bytes(m.read(m.symbols["busy_semaphore"].address, 2), "little")

        for on in (False, True):
            with held(m), pytest.raises(MachineBusy):
                e.enabled = on
            assert state() == ((not on), int(not on))
            e.enabled = on
            assert state() == (on, int(on))
        e.enabled = False
        gone = Gone("the text has gone")
        monkeypatch.setattr(k, "enable", lambda probe: (_ for _ in ()).throw(gone))
        with pytest.raises(EventError, match="the text has gone"):
            e.enabled = True
        assert state()[1] == 0


@pytest.mark.parametrize("what", ["trace", "graph", "program", "script"])
def test_an_end_that_is_refused_can_come_again(what: str) -> None:
    """Where another thread runs the machine nothing is forgotten that is still there."""
    with load("x86_64") as m, Kprobes(m) as k:
        marker = m.symbols["busy_semaphore"].address
        if what == "trace":
            made: Any = k.trace("p:two %lab:busy seen=$arg1")
        elif what == "graph":
            made = k.graph("call")
        elif what == "program":
            made = k.attach(Program.from_instructions(bytes([0xB7, *bytes(7), 0x95, *bytes(7)])), "call")
        else:
            made = k.script("usdt:*:lab:busy { @ = count(); }", quiet=True)
        made.__enter__()
        raised = m.read(marker, 2)
        assert k.list() and (raised == b"\1\0") is (what in ("trace", "script"))
        with held(m), pytest.raises(MachineBusy):
            made.__exit__(None, None, None)
        assert k.list() and m.read(marker, 2) == raised
        made.__exit__(None, None, None)
        assert not k.list() and m.read(marker, 2) == bytes(2)


@pytest.mark.parametrize("text, kind, column", [
    ("p %lab:nobody", "BAD_PROBE_ADDR", 2), ("p %lab", "BAD_PROBE_ADDR", 2), ("p %", "BAD_PROBE_ADDR", 2),
    ("r %lab:work", "BAD_RETPROBE", 2), ("p %lab:work $arg5", "BAD_ARG_NUM", 12),
    ("p %lab:work a=$arg0", "BAD_ARG_NUM", 12),
    ("p %lab:work +0($arg1):string", "NOSUP_DAT_ARG", 12), ("p %lab:work $arg1:moon", "BAD_TYPE", None),
    ("p %lab:work%return", "BAD_PROBE_ADDR", 2)])
def test_wrong_events(text: str, kind: str, column: int | None) -> None:
    with load("x86_64") as m, Kprobes(m) as k:
        for arm in (k.event, lambda text: k.trace(text).__enter__()):
            with pytest.raises(EventError) as raised:
                arm(text)
            assert raised.value.kind == kind and column in (None, raised.value.position) and not k.list()


def test_what_is_there_is_said() -> None:
    with load("arm64") as m, Kprobes(m) as k, pytest.raises(EventError, match="%lab:busy, %lab:none, %lab:work"):
        k.event("p %lab:nobody")
    with load("arm64") as m, Kprobes(m) as k, pytest.raises(EventError, match="reference counter"):
        k.event(f"p {m.symbols['work'].address:#x}(moon)")


@pytest.mark.parametrize("arch, written, fetch", [
    ("x86_64", "8@%rdx", "%rdx:u64"), ("x86_64", "-4@%r8d", "%r8:s32"), ("x86_64", "1@%ah", "%rax:b8@8/64"),
    ("x86_64", "1@%sil", "%rsi:u8"), ("x86_64", "8@-80(%rbx)", "-80(%rbx):u64"), ("x86_64", "-8@$-3", "\\-3:s64"),
    ("x86_64", "4@counter+4(%rip)", "@counter+4:u32"), ("x86_64", "%rax", "%rax"), ("i386", "2@%dx", "%edx:u16"),
    ("i386", "8@16(%ebp)", "+16(%ebp):u64"), ("arm64", "8@[x1]", "+0(%x1):u64"),
    ("arm64", "-4@[sp, 12]", "+12(%sp):s32"),
    ("arm64", "4@w3", "%x3:u32"), ("arm64", "8@xzr", "\\0:u64"), ("arm64", "4@17", "\\17:u32"),
    ("arm", "4@[r4, #-32]", "-32(%r4):u32"), ("arm", "-4@#5", "\\5:s32"), ("arm", "4@fp", "%fp:u32"),
    ("ppc64le", "8@3", "%r3:u64"), ("ppc64le", "8@i3", "\\3:u64"), ("ppc64", "8@-8(9)", "-8(%r9):u64"),
    ("ppc", "4@%r11", "%r11:u32"), ("s390x", "-8@160(%r15)", "+160(%r15):s64"), ("s390x", "4@7", "\\7:u32"),
    ("riscv64", "8@-80(s0)", "-80(%s0):u64"), ("riscv64", "8@a5", "%a5:u64"), ("mips", "4@$5", "%r5:u32"),
    ("mips64", "4@16($sp)", "+16(%sp):u32"), ("loongarch64", "8@$r5", "%r5:u64"),
    ("sparc64", "4@[%fp-20]", "-20(%fp):u32"),
    ("sparc", "4@%o0", "%o0:u32"), ("m68k", "4@%d0", "%d0:u32"), ("m68k", "-4@-4(%fp)", "-4(%fp):s32")])
def test_operands(arch: str, written: str, fetch: str) -> None:
    """As GNU's and LLVM's assemblers write them."""
    with load("x86_64") as m:
        found = fetched(written, architectures.get(arch), m.symbols)
    assert f"{found.fetch}:{found.type}".removesuffix(":") == fetch and isinstance(found, Fetched)


@pytest.mark.parametrize("arch, written", [
    ("x86_64", "8f@%xmm0"), ("x86_64", "4@8(%rax,%rbx,4)"), ("i386", "8@%eax"), ("x86_64", "-1@%ah"),
    ("arm64", "8@[x0, x1]"),
    ("arm", "4@[r0, r1, lsl #2]"), ("x86_64", "3@%rax"), ("x86_64", "8@%nobody"), ("s390x", "8@0(%r1,%r2)"),
    ("x86_64", "8@"), ("riscv64", "4@%lo(nobody)(a0)"), ("x86_64", "@"), ("x86_64", "8@(%rip"),
    ("x86_64", "8@-(%rax)")])
def test_operands_that_nothing_fetches(arch: str, written: str) -> None:
    with load("x86_64") as m, pytest.raises(Unfetchable):
        fetched(written, architectures.get(arch), m.symbols)


@pytest.mark.long
def test_damaged_notes() -> None:
    """Each byte of the notes, wrong: markers or none, and no exception."""
    data = FILES["x86_64"]
    at = data.index(b"stapsdt\0") - 12
    whole = markers_of(LoadedFile(data, 0, ""))
    assert [(m.provider, m.name) for m in whole] == [("lab", "work"), ("lab", "busy"), ("lab", "work"), ("lab", "none")]
    for n in range(at, at + 200):
        for value in (0, 0x7F, 0xFF):
            damaged = bytearray(data)
            damaged[n] = value
            assert len(markers_of(LoadedFile(bytes(damaged), 0, ""))) <= 4
    for size in range(0, len(data), 97):
        markers_of(LoadedFile(data[:size], 0, ""))


def test_the_command(tmp_path: Path) -> None:
    (path := tmp_path / "sdt.elf").write_bytes(FILES["x86_64"])
    def run(*words: str) -> Any:
        return CliRunner().invoke(main, words, prog_name="kprobes")

    rows = [line.split() for line in run("list", str(path), "--sdt").stdout.splitlines()]
    assert [row[1] for row in rows] == ["place", "%lab:work", "%lab:busy", "%lab:work", "%lab:none"]
    assert rows[1][4:] == ["-4@%edi", "8@%rsi", "-2@4(%rdx)", "1@%al"]
    assert len(run("list", str(path), "busy", "--sdt").stdout.splitlines()) == 2
    assert run("list", str(path), "moon", "--sdt").exit_code == 2
    out = run("trace", str(path), "p %lab:work n=$arg1 text=+0($arg2):string", "--call", "call(1)").stdout.splitlines()
    assert [line.partition(") ")[2] for line in out] == ['n=1 text="height"', 'n=-5 text="width"']


LIBRARY = next((p for p in (Path("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), Path("/usr/lib64/libstdc++.so.6"))
                if p.exists()), None)


@pytest.mark.skipif(LIBRARY is None, reason="this host has no libstdc++ for x86-64")
def test_a_library_of_this_host() -> None:
    """libstdc++ marks throw, catch and rethrow; m.debug has them, behind its bias."""
    assert LIBRARY is not None
    found = markers_of(LoadedFile(LIBRARY.read_bytes(), 0x10000, "libstdc++"))
    assert {(m.provider, m.name) for m in found} >= {("libstdcxx", "throw"), ("libstdcxx", "catch")}
    with load("x86_64") as m:
        for marker in found:
            assert marker.address > 0x10000 and len(marker.arguments) == 2
            assert all(fetched(each, m.arch, m.symbols).word for each in marker.arguments)


def test_a_semaphore_that_cannot_be_raised_leaves_nothing_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pattern's functions that one is skipped; alone it is an error. Neither is hit."""
    raised: list[tuple[str, int]] = []

    def add(owner: Any, event: Any, number: int) -> None:
        if event.symbol == "table_init" and number > 0:
            raise GuestFault("read of no memory", address=1, access="read", pc=0)
        raised.append((event.symbol, number))

    monkeypatch.setattr("kprobes.tracing.recorder.add_to_semaphore", add)
    monkeypatch.setattr("kprobes.tracing.recorder.lower_semaphore", lambda owner, event: add(owner, event, -1))
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        recorder = k.trace("p:t table_*")
        with recorder as trace:
            m.call("table_init")
        assert [place for place, _ in recorder.skipped] == ["table_init"] and len(trace) == 0
        assert sorted(raised) == sorted((name, n) for name in ("table_delete", "table_insert", "table_lookup") for n in (-1, 1))
        with pytest.raises(EventError), k.trace("p:t table_init"):
            pass
        assert [*k.list()] == []
