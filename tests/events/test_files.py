"""Events as files of tracefs: what is written and read is what Linux's tools write and read there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from arches import RUNNABLE
from ebpf.guests import Guest

from kprobes import BadArgument, EventBusy, EventError, Kprobes, NotRegistered, UnicornMachine
from kprobes.events._files import EventFiles

pytestmark = pytest.mark.quick
FIELD = re.compile(r"\tfield:(.+) (\w+)(?:\[(\d+)\])?;\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);")


@pytest.fixture
def k() -> Iterator[Kprobes]:
    with UnicornMachine.load("examples/demo.x86_64") as machine, Kprobes(machine) as k:
        yield k


def refused(files: EventFiles, name: str, text: str) -> tuple[str, int]:
    """(kind, column) of what is wrong with a text; it is in error_log."""
    files.write("error_log", "")
    with pytest.raises(EventError) as raised:
        files.write(name, text, append=True)
    command, caret = files.read("error_log").splitlines()[1:]
    assert command == f"  Command: {raised.value.event}"
    assert caret.index("^") - len("  Command: ") == raised.value.position
    return raised.value.kind, raised.value.position


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_hit_as_files(arch: str) -> None:
    """Definitions, switches, records and layout of guests of any word and byte order."""
    guest = Guest(arch)
    with guest.machine as m, Kprobes(m) as k:
        files, word = k.events.files, m.arch.bits // 8
        files.write("kprobe_events", f"p:in {guest.name} n=$arg1:u32 c=\\65:char both=+0($stack):x8[2]\n"
                                     f"r:out {guest.name} $retval:s16\n")
        files.write("kprobe_events", f"f {guest.name}%return at=\\8\n", append=True)
        assert files.read("dynamic_events").splitlines() == [
            f"p:kprobes/in {guest.name} n=$arg1:u32 c=\\65:char both=+0($stack):x8[2]",
            f"r:kprobes/out {guest.name} arg1=$retval:s16",
            f"f:fprobes/{guest.name}__exit {guest.name}%return at=\\8"]
        assert guest.call() == guest.want
        assert files.read("events/enable") == "0\n"
        assert [line for line in files.read("trace").splitlines() if line[0] != "#"] == []
        files.write("events/kprobes/enable", "1\n")
        assert (files.read("events/kprobes/enable"), files.read("events/enable")) == ("1\n", "X\n")
        assert guest.call() == guest.want
        lines = [line for line in files.read("trace").splitlines() if line[0] != "#"]
        assert [line.split(": ")[1] for line in lines] == ["in", "out"]
        assert lines[1].endswith(f" arg1={(guest.want + 0x8000 & 0xffff) - 0x8000}")
        assert " n=" in lines[0] and " c='A' both={0x" in lines[0]
        assert files.read("kprobe_profile").split() == ["in", "1", "0", "out", "1", "0", f"{guest.name}__exit", "0", "0"]

        text = files.read("events/kprobes/in/format")
        fields = FIELD.findall(text)
        at = 0
        for _, _, _, offset, size, _ in fields:
            assert int(offset) == at
            at += int(size)
        assert [(kind, name, count, int(size)) for kind, name, count, _, size, _ in fields[4:]] == [
            ("unsigned long", "__probe_ip", "", word), ("u32", "n", "", 4), ("u8", "c", "", 1), ("u8", "both", "2", 2)]
        assert text.endswith('print fmt: "(%lx) n=%u c=\'%c\' both={0x%x,0x%x}", '
                             "REC->__probe_ip, REC->n, REC->c, REC->both[0], REC->both[1]\n")
        assert text.startswith(f"name: in\nID: {files.read('events/kprobes/in/id')}format:\n")
        files.write("events/enable", "0")
        files.write("kprobe_events", "\n")
        assert len(k.events) == 0 and "events/kprobes/in/format" not in files.names()


def test_formats_of_every_type(k: Kprobes) -> None:
    """How printf is told to print what ftrace prints."""
    files = k.events.files
    files.write("kprobe_events", "r:t crc32 a=$retval:s64 b=$retval:u64 c=$retval:x64 d=$retval:s8 e=$retval:symbol "
                                 'f=+0($arg2):string g=+0($arg2):string[2] h=$retval:b3@1/16 i=\\"x" j=+0($arg2):f32')
    text = files.read("events/kprobes/t/format")
    assert text.splitlines()[-1] == (
        'print fmt: "(%lx <- %lx) a=%Ld b=%Lu c=0x%Lx d=%d e=%pS f=\\"%s\\" g={\\"%s\\",\\"%s\\"} h=%u i=\\"%s\\" j=%f", '
        "REC->__probe_func, REC->__probe_ret_ip, REC->a, REC->b, REC->c, REC->d, REC->e, __get_str(f), __get_str(g[0]), "
        "__get_str(g[1]), REC->h, __get_str(i), REC->j")
    assert [(kind, name, size, signed) for kind, name, _, _, size, signed in FIELD.findall(text)[6:]] == [
        ("s64", "a", "8", "1"), ("u64", "b", "8", "0"), ("u64", "c", "8", "0"), ("s8", "d", "1", "1"),
        ("u64", "e", "8", "0"), ("__data_loc char[]", "f", "4", "1"), ("__data_loc char[]", "g", "8", "1"),
        ("u16", "h", "2", "0"), ("__data_loc char[]", "i", "4", "1"), ("float", "j", "4", "1")]


def test_records_are_read_once_by_trace_pipe(k: Kprobes) -> None:
    files = k.events.files
    files.write("kprobe_events", "p:f fib n=$arg1:u32")
    files.write("events/kprobes/f/enable", "1")
    k.machine.call("fib", 2)
    shown = [line for line in files.read("trace").splitlines() if line[0] != "#"]
    assert len(shown) == 2
    assert files.read("trace_pipe").splitlines() == shown
    assert files.read("trace_pipe") == ""
    files.write("tracing_on", "0")
    k.machine.call("fib", 2)
    assert (files.read("tracing_on"), files.read("trace_pipe")) == ("0\n", "")
    files.write("tracing_on", "1")
    k.machine.call("fib", 1)
    files.write("trace", "\n")
    assert "entries-in-buffer/entries-written: 0/0" in files.read("trace")


def test_filter_trigger_and_hist(k: Kprobes) -> None:
    files = k.events.files
    files.write("kprobe_events", "p:f fib n=$arg1:u32")
    assert (files.read("events/kprobes/f/filter"), files.read("events/kprobes/f/hist")) == ("none\n", "")
    assert files.read("events/kprobes/f/trigger").startswith("# Available triggers:\n# traceon ")
    files.write("events/kprobes/f/filter", "n == 1\n")
    files.write("events/kprobes/f/trigger", "hist:keys=n\n")
    files.write("events/kprobes/f/enable", "1")
    k.machine.call("fib", 3)
    assert [line.rpartition("=")[2] for line in files.read("trace_pipe").splitlines()] == ["1"]
    assert files.read("events/kprobes/f/filter") == "n == 1\n"
    assert files.read("events/kprobes/f/trigger").startswith("hist:keys=n:vals=hitcount")
    assert "{ n:          3 } hitcount:          1" in files.read("events/kprobes/f/hist")
    files.write("events/kprobes/f/trigger", "!hist:keys=n")
    files.write("events/kprobes/f/filter", "0")
    assert files.read("events/kprobes/f/filter") == "none\n"
    assert refused(files, "events/kprobes/f/trigger", "hist:keys=no") == ("FIELD_NOT_FOUND", 10)
    assert "hist:kprobes:f: error: " in files.read("error_log")
    assert refused(files, "events/kprobes/f/filter", "no == 1") == ("FIELD_NOT_FOUND", 0)
    assert "event filter parse error: error: " in files.read("error_log")


def test_what_replaces_and_what_is_appended(k: Kprobes) -> None:
    files = k.events.files
    files.write("kprobe_events", "p:a fib\np:g/b fib")
    files.write("kprobe_events", "p:c fib")
    assert [*k.events] == ["c"]
    number = k.events["c"].number
    files.write("dynamic_events", "p:c crc32\np:mine/ crc32\n", append=True)
    files.write("dynamic_events", "-:c fib", append=True)  # its first place
    assert k.events["c"].number == number
    assert [*k.events] == ["c", "mine/p_crc32_0"]
    files.write("dynamic_events", "!p:c crc32", append=True)
    files.write("dynamic_events", "-:mine/", append=True)
    files.write("dynamic_events", "\n", append=True)
    assert [*k.events] == []
    files.write("kprobe_events", "p:a fib")
    files.write("events/kprobes/a/enable", "1")
    with pytest.raises(EventBusy):
        files.write("kprobe_events", "p:b fib")
    assert [*k.events] == ["a"]
    with pytest.raises(NotRegistered):
        files.write("kprobe_events", "-:b", append=True)


@pytest.mark.parametrize(("text", "kind", "column"), [
    ("e:x kprobes/a", "NO_EPROBES", 0), ("e", "NO_EPROBES", 0), ("t sched_switch", "NO_TRACEPOINTS", 0),
    ("s:x u64 lat;", "NO_SYNTHETIC", 0), ("f fib+4", "BAD_FPROBE", 2), ("f4 fib", "BAD_MAXACT_TYPE", 1),
    ("fx fib%return", "BAD_MAXACT", 1), ("f", "BAD_PROBE_ADDR", 1), ("!", "NO_EVENT_NAME", 2),
    ("!p", "NO_EVENT_NAME", 2), ("q:x fib", "BAD_PROBE_TYPE", 0)])
def test_definitions_that_are_refused(k: Kprobes, text: str, kind: str, column: int) -> None:
    assert refused(k.events.files, "kprobe_events", text) == (kind, column)
    assert len(k.events) == 0


def test_f_events_are_of_their_own_kind(k: Kprobes) -> None:
    """An f event sits on entries and returns, takes a count on returns, and has no place beside a p event."""
    files = k.events.files
    files.write("kprobe_events", "f fib n=$arg1:u32\nf7 fib%return n=$arg1:u32 v=$retval:u32\nf:all table_*\n")
    assert files.read("kprobe_events").splitlines()[:2] == [
        "f:fprobes/fib__entry fib n=$arg1:u32", "f7:fprobes/fib__exit fib%return n=$arg1:u32 v=$retval:u32"]
    assert len(k.events["fprobes/all"].places) == 4
    assert refused(files, "kprobe_events", "p:fprobes/fib__entry crc32 n=$arg1:u32")[0] == "DIFF_PROBE_TYPE"
    files.write("events/fprobes/enable", "1")
    k.machine.call("fib", 1)
    assert [(r.event, *r.args.values()) for r in k.events.buffer] == [("fib__entry", 1), ("fib__exit", 1, 1)]
    again = files.read("kprobe_events")
    files.write("events/enable", "0")
    files.write("kprobe_events", again)
    assert files.read("kprobe_events") == again


def test_files_that_are_not_there(k: Kprobes) -> None:
    files = k.events.files
    files.write("kprobe_events", "p:f fib")
    for name in ("", "no", "events", "events//enable", "events/kprobes", "events/kprobes/f/no", "events/no/enable",
                 "events/kprobes/f/enable/enable", "../trace", "events/kprobes/g/format"):
        with pytest.raises(BadArgument) as reading:
            files.read(name)
        with pytest.raises(BadArgument) as writing:
            files.write(name, "1")
        assert (reading.value.errno, writing.value.errno) == (2, 2)
    for name in ("trace_pipe", "README", "kprobe_profile", "events/kprobes/f/format", "events/kprobes/f/id"):
        with pytest.raises(BadArgument) as raised:
            files.write(name, "1")
        assert raised.value.errno == 13
    for name, text in (("tracing_on", "7"), ("events/enable", "yes"), ("current_tracer", "function")):
        with pytest.raises(BadArgument, match=re.escape(repr(text))) as raised:
            files.write(name, text)
        assert raised.value.errno == 22
    assert {name: isinstance(files.read(name), str) for name in files.names()} == dict.fromkeys(files.names(), True)


def test_what_a_return_event_takes_is_in_the_readme(k: Kprobes) -> None:
    """Scripts for Linux (kretprobe_entry_arg.tc) look for the line; $arg1 is the value at entry."""
    files = k.events.files
    (line,) = [line for line in files.read("README").splitlines() if "kernel return probes support:" in line]
    fetches = line.partition(":")[2].replace("<N>", "1").replace(",", "").split()
    assert fetches == ["$retval", "$arg1", "$comm"]
    files.write("kprobe_events", "r:f fib " + " ".join(f"a{n}={fetch}" for n, fetch in enumerate(fetches)) + "\n")
    files.write("events/kprobes/f/enable", "1")
    k.machine.call("fib", 5)
    assert re.search(r"f: \(.* <- fib\) a0=0x5 a1=0x5 a2=\"", files.read("trace").splitlines()[-1])
