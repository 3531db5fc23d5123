"""Events that are armed: records, filters, patterns, Linux's files; the same whether programs or Python record."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from arches import RUNNABLE, programs_of
from ebpf.guests import Guest
from host import why_python

from kprobes import EventError, Kprobes, NotRegistered, UnicornMachine
from kprobes.events import parse_event
from kprobes.events._filter import parse_filter

DEMO = "examples/demo.x86_64"
#: filters of an event with n=$arg1:u32, s=$arg1:s8, m=memory at {data}:s16, bad=unmapped memory, and how many of the
#: arguments 0 .. 255 pass
FILTERS = [
    ("n > 3", 252), ("n >= 250 && n < 253", 3), ("n == 7 || n == 0x9", 2), ("!(n != 5)", 1), ("!n == 5", 255),
    ("n & 0x81", 192),
    ("s < 0", 128), ("s == -1", 1), ("s > -3 && s <= 2", 5), ("s == 255", 1), ("m == -2 && n < 10", 10),
    ("m < 0 || n == 3", 256), ("m > 0", 0),
    ("bad == 0", 0), ("bad != 0", 0), ("!(bad == 0)", 256), ("n == 1 || n == 2 && s == 2", 2),
    ("(n == 1 || n == 2) && s == 2", 1),
    ("n != 4294967295", 256), ("n == -1", 0), ("n < 2 || bad > 1 || n > 254", 3), ("! ! n==1", 1),
]


def furnished(arch: str) -> tuple[Guest, str]:
    g = Guest(arch)
    m = g.machine
    data = m.alloc(16)
    m.write(data, (0xFFFE).to_bytes(2, m.arch.order.value))
    return g, f"p:e {g.name} n=$arg1:u32 s=$arg1:s8 m=@{data:#x}:s16 bad=@8:u8 text=@{data:#x}:string"


def calls(g: Guest, values: Any) -> None:
    for value in values:
        g.value = value
        g.call()


@pytest.mark.parametrize("arch", RUNNABLE)
def test_programs_and_python_record_the_same(arch: str) -> None:
    found = []
    for python in (False, True):
        g, text = furnished(arch)
        with g.machine as m, Kprobes(m) as k:
            if python:
                m.cpu_task = lambda regs: 0
            e = k.event(text, filter="n > 3 && s != 6 || m == 5")
            assert bool(why_python(e)) == python, e.why_python
            r = k.event(f"r:back {g.name} $retval n=$arg1:u8")
            assert bool(why_python(r)) == python, r.why_python
            calls(g, range(12))
            assert (e.hits, e.missed, r.hits) == (12, 0, 12)
            found.append([(x.event, x.seq, x.cpu, x.task, x.address, x.args.get("arg1"), x.args.get("s"),
                           x.args.get("n"), x.args.get("text")) for x in k.events.buffer])
            assert [x.seq for x in e] == sorted(x.seq for x in e) and len(list(e)) == 7 and len(list(r)) == 12
            assert all(x.caller for x in r) and not any(x.caller for x in e)
    assert found[0] == found[1] and len(found[0]) == 19


def signed(value: int) -> int:
    return value - 256 if value > 127 else value


@pytest.mark.parametrize("python", [False, True])
def test_filters_mean_what_they_say(python: bool) -> None:
    g, text = furnished("x86_64")
    with g.machine as m, Kprobes(m) as k:
        if python:
            m.cpu_task = lambda regs: 0
        e = k.event(text)
        for filter, passing in FILTERS:
            k.events.buffer.clear()
            e.filter = filter
            assert e.filter == filter and bool(why_python(e)) == python
            calls(g, range(256))
            assert len(list(e)) == passing, filter
            assert all(r.args["s"] == signed(r.args["n"]) for r in e)


@pytest.mark.parametrize(("filter", "inside"), [
    ("a.function == fib", True), ("a.function != fib", False), ("!(a.function == fib) || a == 1", False),
    ("a.function == fib && a.function != crc32", True)])
def test_addresses_within_a_function(filter: str, inside: bool) -> None:
    """A program keeps what Python keeps: every address of a function is the function's."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        fib = m.symbols.find("fib")
        compiled = k.event("p:compiled crc32 a=$arg1:x64", filter=filter)
        python = k.event("p:python crc32 a=$arg1:x64 text=+0($arg2):string", filter=f'({filter}) && text == "x"')
        assert not why_python(compiled) and why_python(python)
        for address in (0, 1, fib.address - 1, fib.address, fib.address + 4, fib.address + fib.size - 1,
                        fib.address + fib.size, (1 << 64) - 1):
            m.call("crc32", address, b"x", 1)
        kept = [record.args["a"] for record in compiled]
        assert kept == [record.args["a"] for record in python]
        assert (fib.address + 4 in kept) == inside


@pytest.mark.parametrize(("filter", "count"), [
    ('text == "hello"', 1), ('text != "hello"', 2), ('text ~ "*el*"', 2), ('text ~ "[!h]*"', 2),
    ("text ~ 'hel?o' || len == 2", 2), ('comm == "guest"', 3),
    ("common_pid == 0", 3), ("cpu > 0", 0), ('COMM ~ "g*"', 3), ("__probe_ip.function == crc32", 3),
    ("__probe_ip.function != crc32", 0), ('c == "h"', 1), ("c == 104", 1)])
def test_filters_of_text_are_pythons(filter: str, count: int) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:crc crc32 len=$arg3:u32 text=+0($arg2):string c=+0($arg2):char", filter=filter)
        assert (why_python(e) == "") == filter.startswith("c ==")
        for text in (b"hello", b"well", b"ox"):
            m.call("crc32", 0, text, len(text))
        assert len(list(e)) == count and e.hits == 3


@pytest.mark.parametrize(("filter", "kind", "position"), [
    ("len >", "INVALID_VALUE", 5), ("len", "INVALID_OP", 3), ("len = 3", "INVALID_OP", 4),
    ("size > 3", "FIELD_NOT_FOUND", 0), ("> 3", "FIELD_NOT_FOUND", 0),
    ("len > 3 &&", "NO_FILTER", 10), ("(len > 3", "TOO_MANY_OPEN", 0), ("len > 3)", "TOO_MANY_CLOSE", 7),
    ("len > 3 len < 5", "INVALID_FILTER", 8),
    ('text == "x', "MISSING_QUOTE", 8), ("text == x", "INVALID_VALUE", 8), ("text == 3", "EXPECT_STRING", 8),
    ('len == "three"', "EXPECT_DIGIT", 7),
    ('text > "x"', "ILLEGAL_FIELD_OP", 5), ('len ~ "x"', "ILLEGAL_FIELD_OP", 4), ("len == 0x", "ILLEGAL_INTVAL", 7),
    ("len == 08", "ILLEGAL_INTVAL", 7),
    ("len == 99999999999999999999", "ILLEGAL_INTVAL", 7), ("array == 1", "FIELD_NOT_FOUND", 0),
    ("__probe_ip.function == nowhere", "NO_FUNCTION", 23),
    ("__probe_ip.function > crc32", "IP_FIELD_ONLY", 22), ("(" * 100 + "len > 3" + ")" * 100, "TOO_MANY_PREDS", 65),
    ("!" * 10000 + "len > 3", "TOO_MANY_PREDS", 65),
    (" && ".join(["len > 3"] * 257), "TOO_MANY_PREDS", 256 * 11), ("len == é", "INVALID_VALUE", 7),
    ("len.hex == 3", "FIELD_NOT_FOUND", 0)])
def test_wrong_filters_say_what_and_where(filter: str, kind: str, position: int) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        text = "p:crc crc32 len=$arg3:u32 text=+0($arg2):string array=+0($arg2):u8[4]"
        with pytest.raises(EventError) as caught:
            k.event(text, filter=filter)
        error = caught.value
        assert (error.kind, error.position, error.errno, error.event) == (kind, position, errno.EINVAL, filter)
        assert k.list() == [] and not k.events
        e = k.event(text, filter="len > 3")
        with pytest.raises(EventError):
            e.filter = filter
        assert e.filter == "len > 3"
        m.call("crc32", 0, b"hello", 5)
        assert len(list(e)) == 1


@pytest.mark.parametrize("name", ['"fib"', "0x", ")"])
def test_what_names_no_function_does_not_mean_the_one_at_address_0(name: str) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        m.symbols.add("reset", 0, 16)
        with pytest.raises(EventError) as caught:
            k.event("p:crc crc32 a=$arg1:x64", filter=f"a.function == {name}")
        assert caught.value.kind == "NO_FUNCTION"


def test_a_long_filter_is_no_deep_one() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:crc crc32 len=$arg3:u32", filter=" || ".join(f"len == {n}" for n in range(256)))
        m.call("crc32", 0, b"hello", 5)
        assert len(list(e)) == 1
        for cleared in ("0", "", "none"):
            e.filter = cleared
            assert e.filter == ""


# --- patterns


@pytest.mark.parametrize(("pattern", "names"), [
    ("table_*", {"table_delete", "table_init", "table_insert", "table_lookup"}), ("*insert*", {"table_insert"}),
    ("/^(fib|crc32)$/", {"fib", "crc32"}),
    ("table_[il]*", {"table_init", "table_insert", "table_lookup"}), ("fi?", {"fib"})])
def test_patterns_arm_a_probe_each(pattern: str, names: set[str]) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event(f"p {pattern} a=$arg1")
        assert {place.definition.symbol for place in e.places} == names and len(k.list()) == len(names)
        m.call("fib", 1)
        m.call("crc32", 0, b"x", 1)
        assert [m.symbols.at(r.address)[0].name for r in e] == [n for n in ("fib", "crc32") if n in names]
        e.remove()
        assert k.list() == [] and not k.events


@pytest.mark.parametrize(("text", "kind", "position"), [
    ("p nothing_like_*", "BAD_PROBE_ADDR", 2), ("p /(/", "BAD_PROBE_ADDR", 2),
    ("p table_* a=$retval", "RETVAL_ON_PROBE", 12), ("p:g/ table_* %nowhere", "BAD_REG_NAME", 13),
    ("r8:x table_* a=%nowhere", "BAD_REG_NAME", 15), ("x table_*", "BAD_PROBE_TYPE", 0),
    ("p:1 table_*", "BAD_EVENT_NAME", 2)])
def test_errors_in_patterns_point_into_what_was_written(text: str, kind: str, position: int) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        with pytest.raises(EventError) as caught:
            k.event(text)
        assert (caught.value.kind, caught.value.position, caught.value.event) == (kind, position, text)
        assert k.list() == []


# --- Linux's files


def test_the_files_of_events() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        k.events.write("# a comment\np:crc crc32 len=$arg3:u32\n\nr4:g/back fib $retval  # another\n")
        assert k.events.text() == "p:kprobes/crc crc32 len=$arg3:u32\nr4:g/back fib arg1=$retval\n"
        assert list(k.events) == ["crc", "g/back"] and not k.events["crc"].enabled and len(k.list()) == 2
        m.call("crc32", 0, b"hello", 5)
        assert list(k.events["crc"]) == [] and k.events["crc"].hits == 0
        k.events["crc"].enabled = k.events["g/back"].enabled = True
        m.call("crc32", 0, b"hello", 5)
        m.call("fib", 1)
        assert [r.args for r in k.events.buffer] == [{"len": 5}, {"arg1": 1}]
        assert k.events.profile() == f"  {'crc':<44} {1:>15} {0:>15}\n  {'back':<44} {1:>15} {0:>15}\n"
        k.events["crc"].enabled = False
        m.call("crc32", 0, b"hello", 5)
        assert len(list(k.events["crc"])) == 1
        k.events.write("p:crc table_init len=$arg3:u32")
        assert len(k.events["crc"].places) == 2
        k.events.write("-:crc table_init")
        assert k.events.text().startswith("p:kprobes/crc crc32 len=$arg3:u32\nr4")
        k.events["g/back"].enabled = False
        k.events.write("-:g/")
        with pytest.raises(NotRegistered, match="no event g/back to delete") as caught:
            k.events.write("-:g/back")
        assert caught.value.errno == errno.ENOENT and list(k.events) == ["crc"]
        k.events.clear()
        assert k.events.text() == k.events.profile() == "" and k.list() == []


def test_events_of_one_name_agree() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:x crc32 a=$arg1")
        assert k.event("p:x fib a=$arg1") is e and len(e.places) == 2
        for text, kind in (("r:x fib a=$arg1", "DIFF_PROBE_TYPE"), ("p:x table_init b=$arg1", "DIFF_ARG_TYPE"),
                           ("p:x fib a=$arg1", "SAME_PROBE")):
            with pytest.raises(EventError) as caught:
                k.event(text)
            assert caught.value.kind == kind and len(k.list()) == 2
        m.call("fib", 1)
        m.call("crc32", 0, b"", 0)
        assert [r.args["a"] for r in e] == [1, 0] and e.hits == 2


def test_in_a_full_buffer_the_oldest_go_and_are_counted() -> None:
    from kprobes.events._buffer import Buffer
    from kprobes.events._table import Events

    for python in (False, True):
        with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
            if python:
                m.cpu_task = lambda regs: 0
            events = Events(k, Buffer(records=10, size=4096))
            e = events.add("p:f fib")
            m.call("fib", 12)
            assert [r.seq for r in e] == [*range(e.hits - 9, e.hits + 1)] and events.buffer.lost == e.hits - 10
            events.buffer.clear()
            m.call("fib", 1)
            assert [r.seq for r in e] == [e.hits]
            events.buffer.on = False
            m.call("fib", 1)
            assert len(list(e)) == 1


@pytest.mark.host_code
@pytest.mark.parametrize("arch", ["x86_64", "s390x", "arm"])
def test_a_full_ring_of_programs_keeps_the_newest(arch: str) -> None:
    """More is recorded between two looks than the programs' ring holds; nothing is kept twice or out of order."""
    from kprobes.events._buffer import Buffer
    from kprobes.events._table import Events

    with UnicornMachine.load(programs_of(arch)[0]) as m, Kprobes(m) as k:
        events = Events(k, Buffer(size=4096))
        e, other = events.add("p:f fib n=$arg1"), events.add("r:g fib $retval")
        assert not why_python(e)
        for n in (4, 14, 15):
            m.call("fib", n)
            seqs = [r.seq for r in events.buffer]
            assert seqs == sorted(set(seqs)) and seqs[-1] == e.hits + other.hits == len(seqs) + events.buffer.lost
        assert events.buffer.lost


def test_stacks_on_request() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p fib", stack=True)
        m.call("fib", 3)
        assert why_python(e) == "records have stacks" and all(r.stack[0] == r.address for r in e)


def test_filters_are_data() -> None:
    """Nothing that a filter says is executed."""
    with UnicornMachine.load(DEMO) as m:
        event = parse_event("p:crc crc32 len=+0($arg2):string", m)
        found = parse_filter("""len == "') or print('" || len ~ "*__import__('os')*" """, event, m.symbols)
        assert (found is not None and not found.keep(("x",), m.regs, 0, 0)
                and found.keep(("') or print('",), m.regs, 0, 0))
