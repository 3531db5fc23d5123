"""k.kprobe() and the like: decorators that are context managers, too."""

from __future__ import annotations

import gc
import sys

import pytest

from kprobes import Kprobe, Kprobes, ProbeUnused, Regs, UnicornMachine
from kprobes.core.register.shorthand import Shorthand


def test_one_that_is_not_used_warns() -> None:
    """A plain statement registers nothing; the warning names the place and the ways to do it."""
    with UnicornMachine.from_code(b"\xc3", arch="x86_64", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        with pytest.warns(ProbeUnused, match="no probe was registered at f: use with"):
            k.kprobe("f", pre_handler=lambda p, regs: None)
        assert not k.list()


def test_those_that_are_used_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    with UnicornMachine.from_code(b"\xc3", arch="x86_64", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        with k.kprobe("f") as probe:
            m.call("f")
        assert probe.nhit == 1

        @k.kretprobe("f")
        def done(ri: object, regs: object) -> None: ...

        m.call("f")
        assert done.probe.nhit == 1
    assert not recwarn.list


def test_type_checkers_know_decorated_handlers() -> None:
    """The comment is an unused one for mypy where it takes the function for Any."""
    with UnicornMachine.from_code(bytes(8), arch="mips", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        @k.kprobe("f")
        def hit(p: Kprobe, regs: Regs) -> None: ...

        with pytest.raises(TypeError):
            hit(hit.probe)  # type: ignore[call-arg]
        assert hit.probe.nhit == 0 and not hasattr(hit.probe, "hits")


def test_one_whose_arguments_are_wrong_is_only_that_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its constructor has left behind says nothing when it goes: nobody could have used it."""
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    with pytest.raises(TypeError):
        Shorthand(None, None)  # type: ignore[call-arg,arg-type]
    gc.collect()
    assert not said
