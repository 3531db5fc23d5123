"""`w:` events and `$comm`: records of accesses to memory."""

from __future__ import annotations

from typing import Any

import pytest
from arches import integer, programs_of

from kprobes import EventError, Kprobes, UnicornMachine, Unsupported
from kprobes.events import parse_event, parse_events


def program(arch: str) -> UnicornMachine:
    return UnicornMachine.load(programs_of(arch)[0])


@pytest.mark.parametrize("arch", ["x86_64", "i386", "arm64", "arm", "cortexm", "mips", "mips64el", "ppc64", "riscv64",
                                  "s390x", "sparc", "m68k"])
def test_records_of_writes(arch: str) -> None:
    with program(arch) as m, Kprobes(m) as k:
        e = k.event("w:cfg w@counter:4", filter="value > 3")
        named = k.event("w:low rw@counter:1 byte=$value:u8 at=$addr task=$comm")
        seed = integer(m.arch, 3)
        m.call("test_atomics", seed)
        records = list(e)
        assert (records and e.hits > len(records) and all(r.args["value"] > 3 and set(r.args) == {"before", "value"}
                                                          for r in records))
        assert all(m.symbols.at(r.caller)[0].name in ("test_atomics", "add_if_below")
                   and r.address == m.symbols["counter"].address for r in records)
        assert {r.args["task"] for r in named} == {"guest"} and named.hits >= e.hits
        assert (str(e) == "w:kprobes/cfg w@counter:4 before=$before:x32 value=$value:x32"
                and e.definition.format((1, 2), records[0].caller).startswith("cfg: ("))
        e.enabled = False
        hits = e.hits
        m.call("test_atomics", seed)
        assert e.hits == hits
        e.enabled = True
        e.filter = ""
        e.trigger("hist:keys=__probe_ip.sym")
        m.call("test_atomics", seed)
        assert sum(row.hitcount for row in e.hist) == e.hist.hits > 10 and e.hits > hits
        e.enabled = False
        e.trigger("!hist:keys=__probe_ip.sym")
        k.events.write("-:cfg")
        assert list(k.events) == ["low"]


def test_refused_where_the_engine_cannot() -> None:
    with program("mips") as m:
        m.watching = None
        k = Kprobes(m)
        with pytest.raises(EventError, match="does not report accesses") as caught:
            k.event("w:cfg w@counter")
        assert isinstance(caught.value.__cause__, Unsupported) and not k.events


def test_definitions() -> None:
    with program("x86_64") as m:
        for text, shown in (("w @counter", "w:kprobes/w_counter_0 rw@counter:4 before=$before:x32 value=$value:x32"),
                            ("w:g/x r@counter+2:2 v=$value:u16", "w:g/x r@counter+2:2 v=$value:u16"),
                            ("w rw@0x10:64", None)):
            event = parse_event(text, m)
            assert str(parse_event(str(event), m)) == str(event) and (shown is None or str(event) == shown)
        assert [event.kind for event in parse_events(["w @counter"], m)] == ["w"]


def test_the_task_s_name_is_text() -> None:
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        m.cpu_task = lambda regs: "a task with a long name"
        e: Any = k.event("p:f fib who=$comm also=$COMM:string", filter='who ~ "a task*"')
        r = k.event("r:back fib who=$comm")
        m.call("fib", 1)
        assert ([x.args for x in e] == [{"who": "a task with a l", "also": "a task with a l"}]
                and [x.args["who"] for x in r] == ["a task with a l"])


def test_an_address_needs_no_length() -> None:
    """As in Linux, four bytes are watched where no length is given, behind a number as behind a symbol."""
    with program("x86_64") as m:
        at = m.symbols["counter"].address
        event = parse_event(f"w:a w@{at:#x}", m)
        assert (event.address, event.size) == (at, 4)
        assert parse_event(f"w:a w@{at:#x}:2", m).size == 2
        with pytest.raises(EventError) as caught:
            parse_event("w:a w@", m)
        assert caught.value.kind == "BAD_ACCESS_FMT"
