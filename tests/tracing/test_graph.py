"""Call trees."""

from __future__ import annotations

import io
import json
import math
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from debug_guests import FILES, load

from kprobes import (
    BadArgument,
    GuestTimeout,
    KprobeError,
    Kprobes,
    ReturnMissed,
    UnicornMachine,
    UnknownSymbol,
    Unsupported,
)
from kprobes.debug.whole import Members
from kprobes.tracing.graph import CallTree, GraphedCall

pytestmark = pytest.mark.quick
TREE = "outer {\n  table_insert;\n  walk {\n    walk {\n      leaf;\n    }\n  }\n}\n"


def shape(text: str) -> str:
    """A tree without arguments and results."""
    return "".join(line.split("(")[0] + (" {" if line.endswith("{") else ";") + "\n" if "(" in line
                   else line.split("}")[0] + "}\n" for line in text.splitlines())


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("-eh")])
def test_the_tree(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        with k.graph("outer", args=2) as tree:
            m.call("walk", m.symbols["the_table"].address, 1)  # not below outer
            result = m.call("outer", 1)
        assert shape(str(tree)) == TREE and len(tree) == 5 and tree.missed == 0 and tree.skipped == {}
        root = tree.calls[0]
        assert root.result == result and root.args[0] == 1 and [c.depth for c in tree] == [0, 1, 1, 2, 3]
        assert root.calls[0].result == 5 and root.calls[1].args == (m.symbols["the_table"].address, 1)
        assert k.list() == []


def needed(m: UnicornMachine, function: str, *args: int) -> int:
    """The least max_insns with which a call comes to its end."""
    low, high = 1, 500
    while low < high:
        middle = (low + high) // 2
        try:
            m.call(function, *args, max_insns=middle)
            high = middle
        except GuestTimeout:
            low = middle + 1
    return low


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("-eh") and not name.startswith("sparc")])
def test_instructions(name: str) -> None:
    """They are the guest's own: the same whatever is probed below, and as many as max_insns counts, or the code has."""
    with load(name) as m, Kprobes(m) as k:
        counts = []
        for functions in ("*", "leaf", "nothing"):
            with k.graph("walk", functions=functions, instructions=True) as tree:
                m.call("walk", m.symbols["the_table"].address, 1)
            counts.append([c.instructions for c in tree])
        outer, inner, leaf = counts[0]
        assert ([each[0] for each in counts] == [outer] * 3 and counts[1] == counts[0] and counts[2] == counts[0][:2]
                and m.clock is not None and not m.clock.runs)
        assert tree.counted and outer > inner > leaf
        if not name.startswith("mips"):  # where no bound can end a run in a delay slot
            # PPC64's entry for other modules
            skipped = m.arch.pointers.code_address(m.symbols["walk"].address, m.read).local // 4
            table = m.symbols["the_table"].address
            assert [outer, inner, leaf] == [needed(m, *call) - skipped
                                            for call in (("walk", table, 1), ("walk", table, 0), ("leaf", table, 3))]
        else:
            assert leaf == m.symbols["leaf"].size // 4


def test_instructions_in_files() -> None:
    with load("mips-eh") as m, Kprobes(m) as k:
        with k.graph("walk", instructions=True) as tree:
            m.call("walk", m.symbols["the_table"].address, 1)
        outer, inner, leaf = tree
        assert str(tree).splitlines() == ["instructions |", f"{'':12} | walk() {{", f"{'':12} |   walk() {{",
                                          f"{leaf.instructions:12} |     leaf() = {leaf.result:#x};",
                                          f"{inner.instructions:12} |   }} = {inner.result:#x}",
                                          f"{outer.instructions:12} | }} = {outer.result:#x}"]
        assert tree.folded() == {("walk",): outer.own, ("walk", "walk"): inner.own,
                                 ("walk", "walk", "leaf"): leaf.instructions}
        assert sum(tree.folded().values()) == outer.instructions
        tree.export(file := io.StringIO(), "jsonl")
        assert ([json.loads(line)["instructions"] for line in file.getvalue().splitlines()]
                == [c.instructions for c in tree])
        m.clock = None
        with pytest.raises(Unsupported, match="count instructions"):
            k.graph("walk", instructions=True)


def test_files() -> None:
    with load("mips-eh") as m, Kprobes(m) as k, k.graph("walk", args=2) as tree:
        m.call("outer", 2)
    assert tree.folded() == {("walk",): 1, ("walk", "walk"): 1, ("walk",) * 3: 1, ("walk", "walk", "walk", "leaf"): 1}
    made: dict[str, Any] = {}
    for format in ("text", "jsonl", "folded", "speedscope", "svg", "html"):
        file = io.StringIO()
        tree.export(file, format)
        made[format] = file.getvalue()
    assert made["text"] == str(tree) and "walk;walk;walk;leaf 1" in made["folded"] and "<svg" in made["svg"]
    assert [json.loads(line)["name"] for line in made["jsonl"].splitlines()] == ["walk", "walk", "walk", "leaf"]
    with pytest.raises(BadArgument, match="speedscope"):
        tree.export("/dev/null", "pdf")


def test_results_that_are_no_numbers_of_json_are_texts() -> None:
    """Infinity and NaN have no words in JSON."""
    tree = CallTree()
    tree.calls.append(GraphedCall(name="f", address=4096, depth=0, result=Members(a=(math.inf, math.nan), b=1.5)))
    tree.export(file := io.StringIO(), "jsonl")
    assert json.loads(file.getvalue(), parse_constant=pytest.fail)["result"] == {"a": ["inf", "nan"], "b": 1.5}


def test_what_limits_it() -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k:
        with k.graph("outer", depth=1) as tree:
            m.call("outer", 2)
        assert [c.name for c in tree] == ["outer", "table_insert", "walk"]
        with k.graph("outer", functions="wa*") as tree:
            m.call("outer", 1)
        assert [c.name for c in tree] == ["outer", "walk", "walk"]


def test_a_loop_through_the_entry_is_no_wall_of_blanks() -> None:
    """A function that jumps to its own entry calls itself, as far as anybody can see: lines stay short."""
    m = UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64", base=0x1000)
    m.symbols.add("f", 0x1000, 2)
    with Kprobes(m) as k, k.graph("f") as tree:
        with pytest.raises(GuestTimeout), pytest.warns(ReturnMissed):
            m.call("f", max_insns=5_000)
        lines = str(tree).splitlines()
        assert tree.count > 1_000 and len(lines) == 2 * tree.count - 1
        assert max(map(len, lines)) == 2 * 50 + len("f() {") and max(call.depth for call in tree) == tree.count - 1


def test_what_is_left_has_no_result() -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k, k.graph("outer") as tree:
        with pytest.raises(KprobeError):
            m.call("outer", 2, max_insns=80)
        m.call("outer", 0)
        assert [call.result is None for call in tree.calls] == [True, False]


@pytest.mark.parametrize("wrong", [{"args": -1}, {"args": True}, {"function": "nobody"}])
def test_wrong_options(wrong: Any) -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k, pytest.raises((BadArgument, UnknownSymbol)):
        k.graph(**{"function": "outer", **wrong})


RESULTS = """
struct pair { int a; double b; };
struct large { long v[4]; };
volatile int sink;
#define NI __attribute__((noinline, noclone))
NI double half(int n) { return n / 2.0; }
NI int below(int n) { return -n; }
NI void nothing(int n) { sink = n; }
NI struct pair pair(int n) { struct pair p = { n, 1.5 }; return p; }
NI struct large large(int n) { struct large p = { { n, 2, 3, 4 } }; return p; }
NI _Bool odd(int n) { return n & 1; }
NI unsigned char byte(int n) { __asm__ volatile("" : "+r"(n)); return n; }
NI int all(int n)
{
    nothing(n); sink = half(n); sink = pair(n).a; sink = large(n).v[1]; sink = odd(n); sink = byte(n);
    return below(n);
}
int main(void) { return all(3); }
"""


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="a program of x86-64 is compiled here")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_results_have_the_types_of_the_source(level: str, tmp_path: Path) -> None:
    """Of a function that returns nothing there is none; without debug information it is the register."""
    (tmp_path / "guest.c").write_text(RESULTS)
    subprocess.run(["gcc", "-g", level, "-static", "-no-pie", "-o", tmp_path / "guest", tmp_path / "guest.c"], check=True)
    with UnicornMachine.load(tmp_path / "guest") as m, Kprobes(m) as k, k.graph("all", args=1) as tree:
        m.call("all", 3)
    assert {call.name: call.result for call in tree} == {
        "nothing": None, "half": 1.5, "pair": {"a": 3, "b": 1.5}, "large": {"v": (3, 2, 3, 4)}, "odd": True, "byte": 3,
        "below": -3, "all": -3}
    shown = str(tree)
    for line in ("nothing(0x3);", "half(0x3) = 1.5;", "= {a=3,b=1.5};", "= {v={3,2,3,4}};", "odd(0x3) = true;",
                 "byte(0x3) = 0x3;", "below(0x3) = -3;", "} = -3"):
        assert line in shown, line
    subprocess.run(["strip", "-g", tmp_path / "guest"], check=True)
    with UnicornMachine.load(tmp_path / "guest") as m, Kprobes(m) as k, k.graph("all") as tree:
        m.call("all", 3)
    assert tree.calls[0].result & 0xFFFFFFFF == 0xFFFFFFFD
    tree.export(text := io.StringIO(), "jsonl")
    assert json.loads(text.getvalue().splitlines()[0])["name"] == "all"
