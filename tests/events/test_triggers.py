"""Triggers and histograms, in ftrace's words and printed as it does."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from ebpf.guests import Guest
from host import why_python

from kprobes import BadLocation, EventError, Kprobes, UnicornMachine

SELFTEST = ["x86_64", "i386", "arm", "arm64", "mips", "ppc64", "riscv64", "s390x"]


@pytest.fixture
def k() -> Iterator[Kprobes]:
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        yield k


def crc(k: Kprobes, *texts: bytes) -> None:
    for text in texts:
        k.machine.call("crc32", 0, text, len(text))  # type: ignore[attr-defined]


@pytest.mark.parametrize("arch", SELFTEST)
def test_hist_counts_on_every_architecture(arch: str) -> None:
    g = Guest(arch)
    with g.machine as m, Kprobes(m) as k:
        e = k.event(f"p:e {g.name} n=$arg1:u8 s=$arg1:s8").trigger("hist:keys=n.log2:vals=n:sort=n.log2")
        e.trigger("hist:keys=s.buckets=4 if s < 4")
        for value in (0, 1, 2, 3, 4, 5, 8, 9, 200, 255):
            g.value = value
            g.call()
        want = Counter(max(v - 1, 0).bit_length() for v in (0, 1, 2, 3, 4, 5, 8, 9, 200, 255))
        assert {row["n"]: row.hitcount for row in e.hist} == want and [row["n"] for row in e.hist] == sorted(want)
        assert e.hists[1].hits == 6 and e.hits == 10 and len(list(e)) == 10


def test_the_printed_form(k: Kprobes) -> None:
    e = k.event('p:crc crc32 len=$arg3:u32 text=+0($arg2):string ip=%ip s=$arg3:s8')
    for text in ("hist:keys=len:vals=len.hex,len.percent,len.graph:sort=len.descending:size=128",
                 "hist:keys=text,len.log2:sort=text if len > 2",
                 "hist:keys=ip.sym,len.buckets=4:nohitcount:vals=len",
                 "hist:keys=ip.sym-offset,ip.hex:vals=hitcount,hitcount.percent:pause"):
        e.trigger(text)
    crc(k, b"hello", b"hi", b"hello", b"well, well, well")
    assert str(e.hists[0]) == (
        "# event histogram\n#\n# trigger info: "
        "hist:keys=len:vals=hitcount,len.hex,len.percent,len.graph:sort=len.hex.descending:size=128 [active]\n#\n\n"
        "{ len:         16 } hitcount:          1  len:         10  len (%):  57.14  len: ####################\n"
        "{ len:          5 } hitcount:          2  len:          a  len (%):  35.71  len: ############        \n"
        "{ len:          2 } hitcount:          1  len:          2  len (%):   7.14  len: ##                  \n"
        "\nTotals:\n    Hits: 4\n    Entries: 3\n    Dropped: 0\n")
    assert str(e.hists[1]) == (
        "# event histogram\n#\n# trigger info: hist:keys=text,len.log2:vals=hitcount:sort=text:size=2048 if len > 2 "
        "[active]\n#\n\n"
        f"{{ text: {'hello':<50}, len: ~ 2^3  }} hitcount:          2\n"
        f"{{ text: {'well, well, well':<50}, len: ~ 2^4  }} hitcount:          1\n"
        "\nTotals:\n    Hits: 3\n    Entries: 2\n    Dropped: 0\n")
    address = k.machine.symbols["crc32"].address
    assert str(e.hists[2]).split("\n")[5:8] == [
        f"{{ ip: [{address:x}] {'crc32':<45}, len: ~ 0-3 }}  len:          2",
        f"{{ ip: [{address:x}] {'crc32':<45}, len: ~ 16-19 }}  len:         16",
        f"{{ ip: [{address:x}] {'crc32':<45}, len: ~ 4-7 }}  len:         10"] or sorted(str(e.hists[2]).split("\n")[5:8])
    assert (":size=2048:nohitcount [active]" in str(e.hists[2]) and e.hists[3].hits == 0
            and "[paused]" in e.hists[3].text)
    e.trigger("hist:keys=ip.sym-offset,ip.hex:vals=hitcount,hitcount.percent:continue")
    crc(k, b"hello")
    assert (f"{{ ip: [{address:x}] {'crc32+0x0/0x64':<55}, ip: {address:x} }} hitcount:          1  hitcount (%): "
            "100.00\n" in str(e.hists[3]))
    e.trigger("hist:keys=ip.sym-offset,ip.hex:vals=hitcount,hitcount.percent:clear")
    assert str(e.hists[3]).endswith("#\n\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n")


def test_stacks_and_tasks_are_keys(k: Kprobes) -> None:
    e = k.event("p:f fib n=$arg1:s8").trigger("hist:keys=common_stacktrace:vals=n").trigger("hist:keys=common_pid.execname,comm,cpu")
    k.machine.call("fib", 1)  # type: ignore[attr-defined]
    lines = str(e.hist).split("\n")
    assert (lines[5:7] == ["{ common_stacktrace:", "         fib+0x0/0x2d"]
            and "} hitcount:          1  n:          1" in lines)
    assert f"{{ common_pid: {'guest':<16}[         0], comm: {'guest':<50}, cpu:          0 }} hitcount:          1" in str(e.hists[1])


def test_what_does_not_fit_is_dropped_and_what_cannot_be_read_is_zero(k: Kprobes) -> None:
    e = k.event("p:f fib n=$arg1:s8 bad=@8:u8 text=@8:string").trigger("hist:keys=n:size=4").trigger("hist:keys=bad,text:vals=bad")
    k.machine.call("fib", 10)  # type: ignore[attr-defined]
    assert len(e.hist) == 4 and e.hist.dropped > 0 and e.hist.hits + e.hist.dropped == e.hits
    assert f"{{ bad:          0, text: {'(fault)':<50} }} hitcount: {e.hits:10}  bad:          0\n" in str(e.hists[1])


def test_traceon_traceoff_with_counts_and_conditions(k: Kprobes) -> None:
    e = k.event("p:crc crc32 len=$arg3:u32").trigger("traceoff if len == 3")
    f = k.event("p:f fib").trigger("traceon:1")
    assert e.triggers == ["traceoff:unlimited if len == 3"] and f.triggers == ["traceon:count=1"]
    crc(k, b"1", b"333", b"22")
    assert [r.args["len"] for r in e] == [1] and not k.events.buffer.on
    k.machine.call("fib", 1)  # type: ignore[attr-defined]
    crc(k, b"22", b"333")
    k.machine.call("fib", 1)  # type: ignore[attr-defined]
    assert [r.args["len"] for r in e] == [1, 2] and not k.events.buffer.on and f.triggers == ["traceon:count=0"]


def test_events_switch_events(k: Kprobes) -> None:
    k.events.write("p:g/crc crc32 len=$arg3:u32")
    e = k.events["g/crc"]
    f = k.event("p:f fib n=$arg1:u8").trigger("enable_event:g:crc if n == 1").trigger("disable_event:kprobes:f:1 if n "
                                                                                      "== 2")
    crc(k, b"1")
    assert not e.enabled
    for n in (1, 2, 1):
        k.machine.call("fib", n)  # type: ignore[attr-defined]
        crc(k, b"22")
    assert e.enabled and [r.args["len"] for r in e] == [2, 2, 2] and why_python(e) == ""
    assert (not f.enabled and [r.args["n"] for r in f] == [1]
            and f.triggers[0] == "enable_event:g:crc:unlimited if n == 1")


def test_stacktrace_and_snapshot(k: Kprobes) -> None:
    e = k.event("p:f fib n=$arg1:u8").trigger("stacktrace:1").trigger("snapshot if n == 1")
    k.machine.call("fib", 2)  # type: ignore[attr-defined]
    first, *others = [k.events.buffer.members[row[1]].record(row) for row in k.events.buffer.shot] + list(e)
    assert first.stack and others and not any(r.stack for r in others) and why_python(e) == "triggers are Python's"
    for text in ("!stacktrace:1", "!snapshot if n == 1"):
        e.trigger(text)
    assert e.triggers == [] and why_python(e) == ""


def test_a_bare_name_sorts_by_the_value(k: Kprobes) -> None:
    """Where a key has the same name, as in Linux; by the key, where there is no such value, or by its modifier."""
    e = k.event("p:crc crc32 len=$arg3:u32")
    for text in ("hist:keys=len:vals=len:sort=len", "hist:keys=len.buckets=1:vals=len:sort=len.buckets=1",
                 "hist:keys=len.hex:sort=len"):
        e.trigger(text)
    crc(k, b"hello", b"xx", b"xx", b"xx", b"xx")
    assert [[row.values.get("len", row.hitcount) for row in hist] for hist in e.hists] == [[5, 8], [8, 5], [4, 1]]
    assert e.hists[2].text.split(":")[3] == "sort=len.hex"


@pytest.mark.parametrize(("text", "kind", "position"), [
    ("nothing", "BAD_TRIGGER", 0), ("", "BAD_TRIGGER", 0), ("traceon:x", "BAD_TRIGGER_COUNT", 8),
    ("traceon:0", "BAD_TRIGGER_COUNT", 8), ("traceon if nope == 3", "FIELD_NOT_FOUND", 0),
    ("traceon if", "NO_FILTER", 7), ("enable_event:no:such", "NO_SUCH_EVENT", 13), ("hist", "NO_HIST_KEYS", 0),
    ("hist:keys=", "NO_HIST_KEYS", 0), ("hist:keys=nope", "FIELD_NOT_FOUND", 10),
    ("hist:keys=len.nope", "BAD_FIELD_MODIFIER", 14), ("hist:keys=len.buckets", "BAD_FIELD_MODIFIER", 14),
    ("hist:keys=len.buckets=0", "BAD_FIELD_MODIFIER", 14), ("hist:keys=len.buckets=1234567890", "BAD_FIELD_MODIFIER", 14),
    ("hist:keys=len.execname", "BAD_FIELD_MODIFIER", 14), ("hist:keys=len.percent", "BAD_FIELD_MODIFIER", 14),
    ("hist:keys=len:vals=len.log2", "BAD_FIELD_MODIFIER", 19),
    ("hist:keys=text.hex", "BAD_FIELD_MODIFIER", 15), ("hist:keys=len:vals=text", "TEXT_AS_VALUE", 19),
    ("hist:keys=len:size=0", "BAD_HIST_SIZE", 19), ("hist:keys=len:size=131073", "BAD_HIST_SIZE", 19),
    ("hist:keys=len:sort=text", "INVALID_SORT_FIELD", 19), ("hist:keys=len:sort=len.up", "INVALID_SORT_MODIFIER", 23),
    ("hist:keys=len:sort=", "EMPTY_SORT_FIELD", 14),
    ("hist:keys=len:sort=len,hitcount,len", "TOO_MANY_SORT_FIELDS", 14),
    ("hist:keys=len:sort=len,e", "INVALID_SORT_FIELD", 23),
    ("hist:keys=len:what", "BAD_HIST_PARAMETER", 14), ("hist:keys=len:nohitcount", "NEED_NOHC_VAL", 14),
    ("hist:keys=array", "FIELD_NOT_FOUND", 10), ("!traceon", "NO_SUCH_TRIGGER", 0)])
def test_wrong_triggers_say_what_and_where(k: Kprobes, text: str, kind: str, position: int) -> None:
    e = k.event("p:crc crc32 len=$arg3:u32 text=+0($arg2):string array=+0($arg2):u8[2]")
    with pytest.raises(EventError) as caught:
        e.trigger(text)
    assert (caught.value.kind, caught.value.position) == (kind, position)
    assert (caught.value.errno == (errno.ENOENT if text[:1] == "!" else errno.EINVAL) and e.triggers == []
            and why_python(e) == "")


@pytest.mark.parametrize(("one", "other"), [("traceon", "traceoff:2"), ("snapshot", "snapshot if len == 3"),
                                            ("hist:keys=len", "hist:keys=len:size=128"),
                                            ("disable_event:kprobes:crc", "enable_event:kprobes:crc")])
def test_one_trigger_of_a_kind(k: Kprobes, one: str, other: str) -> None:
    e = k.event("p:crc crc32 len=$arg3:u32").trigger(one)
    with pytest.raises(EventError) as caught:
        e.trigger(other)
    assert (caught.value.kind, caught.value.errno) == ("TRIGGER_EXISTS", errno.EEXIST) and len(e.triggers) == 1
    e.trigger("!" + one)
    assert e.triggers == []
    with pytest.raises(BadLocation, match="no histogram"):
        e.hist  # noqa: B018  # it raises


def test_triggers_act_while_the_event_is_disabled(k: Kprobes) -> None:
    e: Any = k.event("p:crc crc32 len=$arg3:u32").trigger("hist:keys=len")
    e.enabled = False
    crc(k, b"1", b"1")
    assert list(e) == [] and e.hist.hits == 2
    e.enabled = True
    crc(k, b"1")
    assert len(list(e)) == 1 and e.hist.hits == 3 and e.hits == 3


@pytest.mark.parametrize("condition", ["", " if len > 0", ' if comm == "guest"'])
def test_histograms_of_one_name_share_what_they_count(k: Kprobes, condition: str) -> None:
    hist = "hist:name=foo:keys=len:vals=len"
    e = k.event("p:crc crc32 len=$arg3:u32").trigger(hist)
    crc(k, b"1", b"22")
    f = k.event("p:f fib len=$arg1:u32").trigger(hist + condition)  # programs, or Python for the last
    assert bool(why_python(f)) == ("comm" in condition) and why_python(e) == ""
    crc(k, b"22")
    for n in (2, 0):
        k.machine.call("fib", n)  # type: ignore[attr-defined]
    want = {1: 2, 2: 3, **({} if ">" in condition else {0: 1})}
    for each in (e, f):
        assert {row["len"]: row.hitcount for row in each.hist} == want and each.hist.hits == sum(want.values())
        assert {row["len"]: row["len"] * row.hitcount for row in each.hist} == {
            row["len"]: row.values["len"] for row in each.hist}
    assert f.hist.text == f"hist:name=foo:keys=len:vals=hitcount,len:sort=hitcount:size=2048{condition} [active]"
    assert str(e.hist).split("[active]")[1] == str(f.hist).split("[active]")[1]
    f.trigger(f"{hist}:pause{condition}")
    crc(k, b"1")
    assert e.hist.paused and e.hist.hits == sum(want.values())
    f.trigger(f"{hist}:continue{condition}")
    e.remove()
    k.machine.call("fib", 1)  # type: ignore[attr-defined]
    assert {row["len"]: row.hitcount for row in f.hist} == want | {1: 3}
    f.trigger("!" + hist + condition)
    fresh = k.event("p:crc2 crc32 len=$arg3:u32").trigger(hist)
    assert fresh.hist.hits == 0


@pytest.mark.parametrize(("text", "kind"), [
    ("hist:name=foo:keys=len.hex", "NAMED_MISMATCH"), ("hist:name=foo:keys=len:vals=len", "NAMED_MISMATCH"),
    ("hist:name=foo:keys=signed", "NAMED_MISMATCH"), ("hist:name=foo:keys=len:sort=len", "NAMED_MISMATCH"),
    ("hist:name=:keys=len", "BAD_HIST_NAME"), ("hist:name=a b:keys=len", "BAD_HIST_NAME"),
    ("hist:keys=len.usecs", "BAD_FIELD_MODIFIER"), ("hist:keys=common_timestamp.sym-of", "BAD_FIELD_MODIFIER"),
    ("hist:keys=len:clock=tai", "SET_CLOCK_FAIL"), ("hist:keys=len.syscall", "NO_SYSCALLS")])
def test_named_and_timed_histograms_are_refused_in_words(k: Kprobes, text: str, kind: str) -> None:
    k.event("p:f fib len=$arg1:u32").trigger("hist:name=foo:keys=len")
    e = k.event("p:crc crc32 len=$arg3:u32 signed=$arg3:s32")
    with pytest.raises(EventError) as caught:
        e.trigger(text)
    assert caught.value.kind == kind and e.triggers == []


@pytest.mark.parametrize("python", [False, True])
def test_times_are_keys_and_values(k: Kprobes, python: bool) -> None:
    e = k.event("p:crc crc32 len=$arg3:u32").trigger(
        "hist:keys=common_timestamp.usecs,common_timestamp.log2:vals=common_timestamp:clock=mono")
    if python:
        e.trigger("stacktrace:1")
    assert bool(why_python(e)) == python
    before = time.monotonic_ns()
    crc(k, b"1")
    after = time.monotonic_ns()
    row = next(iter(e.hist))
    micros, nanos = row._raw[0][0], row.values["common_timestamp"]
    assert before // 1000 <= micros <= after // 1000 and before <= nanos <= after
    assert row._raw[0][1] == (nanos - 1).bit_length()
    assert e.hist.text == ("hist:keys=common_timestamp.usecs,common_timestamp.log2:vals=hitcount,common_timestamp"
                           ":sort=hitcount:size=2048:clock=mono [active]")
    assert f"{{ common_timestamp: {micros:10}, " in str(e.hist)


@pytest.mark.parametrize("arch", ["x86_64", "arm", "mips", "s390x"])
def test_system_calls_have_the_names_of_the_kernels_table(arch: str) -> None:
    g = Guest(arch)
    with g.machine as m, Kprobes(m) as k:
        word, order = m.arch.bits // 8, m.arch.order.value
        names = ["__x64_sys_read", "sys_write", "__arm64_sys_ni_syscall", "what"]
        table = 0x3000_0000
        m.map(table, 0x1000)
        for n, name in enumerate(names):
            m.symbols.add(name, 0x70000 + 16 * n, 16)
            m.write(table + n * word, (0x70000 + 16 * n).to_bytes(word, order))
        m.symbols.add("sys_call_table", table, word * len(names), "object")
        e = k.event(f"p:e {g.name} id=$arg1:u16").trigger("hist:keys=id.syscall:sort=id.syscall")
        for g.value in (0, 1, 2, 3, 4, 999):
            g.call()
        unknown = "unknown_syscall"
        shown = ["sys_read", "sys_write", unknown, unknown, unknown, unknown]
        lines = [f"{{ id: {name:<30}[{n:3}] }} hitcount:          1"
                 for n, name in zip((0, 1, 2, 3, 4, 999), shown, strict=True)]
        assert [line for line in str(e.hist).split("\n") if line.startswith("{")] == lines and why_python(e) == ""
