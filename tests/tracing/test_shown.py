"""What prompts and notebooks show."""

from __future__ import annotations

from pathlib import Path

import pytest

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine

pytestmark = pytest.mark.quick
DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")


def test_each_kind_of_thing() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        k.register(Kprobe(symbol_name="fib", pre_handler=lambda p, regs: None))
        k.register(Kretprobe(symbol_name="crc32", handler=lambda ri, regs: None))
        event = k.event("p:e fib n=$arg1:u32")
        with k.trace("p fib n=$arg1:u32", "p:s string_equal a=+0($arg1):string") as t, k.graph("fib") as tree:
            m.call("fib", 3)
            m.call("string_equal", b"<b>&\x1b", b"x")
        things = (m, k, k.check("fib"), event, t, tree)
        for thing in things:
            assert "\n" not in repr(thing) and len(repr(thing)) < 300 and repr(thing).startswith(("<", "Verdict("))
            shown = thing._repr_html_()
            assert shown.startswith(("<table", "<pre")) and "\x1b" not in shown and "<b>" not in shown
        assert ("x86_64" in repr(m) and "fib" in k._repr_html_() and "&lt;b&gt;" in t._repr_html_()
                and "optimizable" in k.check("fib")._repr_html_().lower())
