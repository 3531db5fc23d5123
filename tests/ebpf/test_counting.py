"""Histograms that programs count are those that Python counts, on every architecture."""

from __future__ import annotations

from typing import Any

import pytest
from arches import RUNNABLE
from guests import Guest
from host import why_python
from portion import portion

from kprobes import Kprobes, UnicornMachine
from kprobes.events._counting import COLUMNS

VALUES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, 127, 128, 129, 200, 254, 255]
FIELDS = ("n=$arg1:u8 s=$arg1:s8 x=$arg1:x32 c=$arg1:char b=$arg1:b3@2/32 bad=@8:u32 sbad=@8:s16 at=@{data}:s16 "
          "deep=+0(@8):u8 stack=$stack0")
ENTRY = ["keys=n", "keys=s", "keys=n.log2:vals=n", "keys=s.log2:vals=s", "keys=s.buckets=3:vals=s,n",
         "keys=n.buckets=7,s:vals=hitcount", "keys=b,c:vals=b.percent,x.hex", "keys=x.hex:sort=x.descending",
         "keys=bad:vals=bad,n", "keys=bad.log2,sbad.buckets=2,n", "keys=deep,at:vals=deep,sbad,at", "keys=stack",
         "keys=__probe_ip.sym,cpu,common_pid:vals=x", "keys=n:size=4 if n >= 0", "keys=s.buckets=100:size=2 if n > 3",
         "keys=n if bad == 3", "keys=s if s < -1 || !(n & 3)", "keys=n:vals=n,s,x,n:sort=n.descending,s",
         "keys=n,s,x,b,c,at,bad,sbad:vals=n,s,x,b,c,at"]
RETURN = ["keys=__probe_func.sym,__probe_ret_ip.hex", "keys=v:vals=v", "keys=v.log2"]


def both(arch: str, kind: str, fields: str, texts: list[str]) -> None:
    """The same hits, counted by a program and by Python."""
    g = Guest(arch)
    with g.machine as m, Kprobes(m) as k:
        data = m.alloc(64)
        m.write(data, b"\x81\xfe" * 32)
        python = k.event(f"{kind}:python {g.name} {fields}".format(data=hex(data))).trigger("traceon")
        mine = [k.event(f"{kind}:program{n} {g.name} {fields}".format(data=hex(data))) for n in range(len(texts) // 3)]
        for n, text in enumerate(texts):
            mine[n % len(mine)].trigger(f"hist:{text}")
            python.trigger(f"hist:{text}")
        assert python.why_python and not any(e.why_python for e in mine)
        for value in VALUES + VALUES[3:9]:
            g.value = value
            g.call()
        for n, text in enumerate(texts):
            one, other = mine[n % len(mine)].hists[n // len(mine)], python.hists[n]
            assert list(one) == list(other) and str(one) == str(other), text
            assert (one.hits, one.dropped, len(one)) == (other.hits, other.dropped, len(other)), text
            assert one.hits or "bad ==" in text
        assert {e.hits for e in mine} == {python.hits}
        assert {len(list(e)) for e in mine} == {len(list(python))} == {len(VALUES) + 6}


@pytest.mark.host_code
@pytest.mark.parametrize("arch", RUNNABLE)
def test_programs_count_what_python_counts(arch: str, thorough: bool) -> None:
    both(arch, "p", FIELDS, portion(ENTRY, thorough, arch, 3))


@pytest.mark.host_code
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in ("sparc", "tricore")])
def test_and_at_returns(arch: str) -> None:
    both(arch, "r", "v=$retval:u16", RETURN)


@pytest.fixture
def e() -> Any:
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        yield k.event("p:f fib n=$arg1:u8 name=%rip:symbol")


def run(e: Any, n: int) -> None:
    e._owner.machine.call("fib", n)


@pytest.mark.parametrize(("text", "why"), [
    ("keys=name", "the histogram's key name is no number"), ("keys=comm", "the histogram's key comm is no number"),
    ("keys=common_stacktrace", "the histogram's key common_stacktrace is no number"),
    ("keys=common_pid.execname", "the histogram's key common_pid.execname is no number"),
    ('keys=n if comm == "x"', "a histogram's filter looks at more than numbers"),
    (f"keys={','.join(['n'] * COLUMNS)}:vals=n", f"a histogram has more than {COLUMNS} keys and values")])
def test_what_needs_python_says_why(e: Any, text: str, why: str) -> None:
    e.trigger(f"hist:{text}")
    assert why_python(e) == why and repr(e).endswith(f"; in Python: {why}>")
    run(e, 2)
    assert e.hist.hits == (0 if "comm ==" in text else e.hits)
    e.trigger(f"!hist:{text}")
    assert why_python(e) == ""


@pytest.mark.host_code
def test_counts_survive_when_python_takes_over_and_gives_back(e: Any) -> None:
    e.trigger("hist:keys=n:vals=n")
    run(e, 5)
    before = {row["n"]: (row.hitcount, row["n"]) for row in e.hist}
    hits = e.hist.hits
    assert e.hist._counted.table is not None and sum(n for n, _ in before.values()) == e.hits == hits
    e.trigger("stacktrace")
    assert e.why_python and e.hist._counted.table is None and e.hist.hits == hits
    assert {row["n"]: (row.hitcount, row["n"]) for row in e.hist} == before
    run(e, 5)
    e.trigger("!stacktrace")
    assert e.why_python == "" and e.hist._counted.table is not None
    run(e, 5)
    assert e.hist.hits == 3 * hits == e.hits
    assert {row["n"]: row.hitcount for row in e.hist} == {n: 3 * count for n, (count, _) in before.items()}


def test_pause_clear_and_switch_act_on_programs(e: Any) -> None:
    e.trigger("hist:keys=n:pause")
    run(e, 3)
    assert e.hist.paused and e.hist.hits == 0 and e.hits
    e.trigger("hist:keys=n:continue")
    e.enabled = False
    run(e, 3)
    assert e.hist.hits == e.hits // 2 == len(list(e)) and why_python(e) == ""
    e.trigger("hist:keys=n:clear")
    assert (e.hist.hits, len(e.hist), list(e.hist)) == (0, 0, [])
    e.enabled = True
    run(e, 3)
    assert e.hist.hits == e.hits // 3 and len(list(e)) == 2 * e.hist.hits


def test_sums_wrap_at_64_bits_for_both() -> None:
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        mine = k.event("p:a fib big=\\0xC000000000000000:u64").trigger("hist:keys=cpu:vals=big")
        python = k.event("p:b fib big=\\0xC000000000000000:u64").trigger("hist:keys=cpu:vals=big").trigger("traceon")
        m.call("fib", 1)
        m.call("fib", 1)
        assert why_python(mine) == "" and python.why_python
        assert [row["big"] for row in mine.hist] == [row["big"] for row in python.hist] == [1 << 63]
