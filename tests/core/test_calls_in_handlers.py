"""A handler calls guest code in the middle of a run: the run goes on as if it had not."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import SUBJECTS, subject_machine

from kprobes import Kprobe, Kprobes, Kretprobe

TIMES = 5


def probe_of(kind: str, handler: Any) -> Kprobe | Kretprobe:
    """A probe at `tiny` that calls `handler` in one of its roles."""
    if kind == "return":
        return Kretprobe(symbol_name="tiny", handler=handler)
    if kind == "entry":
        return Kretprobe(symbol_name="tiny", entry_handler=handler, handler=lambda ri, regs: None)
    return Kprobe(symbol_name="tiny", pre_handler=handler, optimize=kind == "jump")


@pytest.mark.parametrize("arch", SUBJECTS)
def test_the_run_goes_on(arch: str) -> None:
    """Whichever hit it is, by breakpoint, jump or followed call."""
    with subject_machine(arch) as m:
        plain = m.call("loop", TIMES, 3)
        for kind in ("breakpoint", "jump", "entry", "return"):
            for when in (1, 2, 3):
                hits: list[int] = []

                def calls(*_: Any, when: int = when, hits: list[int] = hits) -> None:
                    hits.append(len(hits) + 1)
                    if hits[-1] == when:
                        m.call("tiny", 5)

                with Kprobes(m) as k:
                    k.register(probe_of(kind, calls))
                    assert m.call("loop", TIMES, 3, timeout=20) == plain, (kind, when)
                assert len(hits) == TIMES, (kind, when)
