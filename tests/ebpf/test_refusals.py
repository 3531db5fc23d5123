"""What is refused changes nothing: a program's constants can be set as before, and what there was stays armed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from arch_rows import TRIPLES
from arches import RUNNABLE
from guests import Guest
from host import host_code
from scenes import Scene

from kprobes import EventError, KprobeError, Kprobes, Program, ProgramError
from kprobes.core.probe import Kprobe
from kprobes.errors import Unsupported
from kprobes.programs import framed
from kprobes.programs.program import Program as Made

pytest.importorskip("ziglang")
pytestmark = pytest.mark.quick
SOURCE = """
#include <kprobes/bpf.h>
const volatile u64 limit = 3;
static const char text[] = "yes";
u64 n;
SEC("?kprobe") int on(struct pt_regs *ctx) { if (limit == 7) n += 1; return bpf_strncmp("yes", 4, text); }
SEC("?kprobe") int unsafe(struct pt_regs *ctx) { return limit > 5 ? 0 : *(u64 *)PT_REGS_PARM1(ctx); }
"""


@pytest.fixture(scope="module")
def program() -> Callable[[], Program]:
    """What is loaded anew each time."""
    assert Program.from_c(SOURCE)
    return lambda: Program.from_c(SOURCE)


def constants(program: Program) -> tuple[Any, ...]:
    return program.variables.frozen, [(m.name, m.frozen) for m in program.maps.values()]


#: what is wrong -> (which program, what is tried with it)
REFUSED: dict[str, tuple[str, Callable[[Kprobes, Made], object]]] = {
    "nowhere": ("on", lambda k, p: k.attach(p, "no such function")),
    "no place": ("on", lambda k, p: k.attach(p)),
    "no engine": ("on", lambda k, p: k.attach(p, "f", engine="none")),
    "no engine to run": ("on", lambda k, p: p.run(engine="none")),
    "unsafe": ("unsafe", lambda k, p: k.attach(p, "f")),
    "unsafe, verified": ("unsafe", lambda k, p: p.verify()),
    "unsafe, compiled": ("unsafe", lambda k, p: p.run(engine="host")),
    "no clock": ("on", lambda k, p: k.attach(p, "f", clock=5)),
    "no number": ("on", lambda k, p: k.attach(p, "f", offset=-1)),
}


@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize("what", REFUSED)
def test_constants_can_be_set_after_a_refusal(arch: str, what: str, program: Callable[[], Program]) -> None:
    there, made, (name, act) = Guest(arch), program(), REFUSED[what]
    with Kprobes(there.machine) as k:
        if there.name != "f":
            there.machine.symbols.add("f", there.machine.symbols[there.name].address)
        before, text = constants(made), k.format_list()
        with pytest.raises(KprobeError):
            act(k, made[name])
        assert constants(made) == before and k.format_list() == text
        made.variables["limit"] = 7  # and what was found out with the other value is forgotten
        with k.attach(made["on"], there.name):
            assert there.call() == there.want
            assert made.variables["n"] == 1
            with pytest.raises(ProgramError, match="constant"):
                made.variables["limit"] = 8
        with k.attach(made["unsafe"], there.name):
            assert there.call() == there.want


def test_what_another_program_has_found_out_stays(program: Callable[[], Program]) -> None:
    made = program()
    made["on"].verify()
    before = constants(made)
    with pytest.raises(ProgramError):
        made["unsafe"].verify()
    assert constants(made) == before and made.variables.frozen
    with pytest.raises(ProgramError, match="constant"):
        made.variables["limit"] = 7
    with made.unless_refused():
        assert made["on"].verify() is made["on"].verify()


class There:
    """A guest as framed wants it."""

    def __init__(self, arch: Any, saving: Any, reads: bool = True) -> None:
        self.arch, self.saving, self.reads = arch, saving, reads


@pytest.mark.parametrize("arch", RUNNABLE)
def test_code_for_the_guest(arch: str, program: Callable[[], Program], monkeypatch: pytest.MonkeyPatch) -> None:
    """No guest code for an architecture, or none of this program."""
    made, view = program(), There(Guest(arch).machine.arch, None)

    def refuse(*_: object, **__: object) -> None:
        raise Unsupported("no code")

    if arch in TRIPLES:
        monkeypatch.setattr(framed, "_compiled", refuse)
    before = constants(made)
    with pytest.raises(Unsupported):
        made["on"].in_guest(view)
    assert constants(made) == before
    made.variables["limit"] = 7
    assert made["on"].run(bytes(512)) == 0 and made.variables["n"] == 1


# --- events

@pytest.fixture
def scene() -> Scene:
    return Scene("x86_64")


def test_a_wrong_filter_adds_no_place(scene: Scene) -> None:
    event = scene.k.event("p:e inc x=$arg1")
    with pytest.raises(EventError):
        scene.k.event("p:e twice x=$arg1", filter="nonsense > 3")
    assert len(event.places) == 1 and event.filter == "" and "twice" not in scene.k.format_list()
    assert scene.m.call("twice", 1) == 3 and event.hits == 2


def test_places_that_are_refused_leave_nothing(scene: Scene) -> None:
    """Neither a reason nor functions that were left out."""
    event = scene.k.event("p:e inc x=$arg1")
    before = event.why_python, list(event.skipped), str(event)
    scene.k.blacklist.add("twice")
    for text in ("p:e twice x=$arg1", "p:e twic? x=$arg1"):
        with pytest.raises(EventError):
            scene.k.event(text)
        assert (event.why_python, list(event.skipped), str(event)) == before


@pytest.mark.parametrize("change", ["filter", "trigger", "enabled"])
def test_a_place_that_is_lost_takes_no_other_along(scene: Scene, change: str) -> None:
    """What cannot be armed again is said, and all others are armed.

    An event that was written has its programs attached when it is enabled. Python's probes are registered already.
    """
    if change == "enabled":
        scene.k.events.write("p:e inc x=$arg1")
    else:
        scene.k.event("p:e inc x=$arg1")
    event = scene.k.events["e"]
    scene.k.event("p:e twice x=$arg1")
    scene.k.event("p:e deep x=$arg1")
    scene.k.blacklist.add("twice")
    if change == "enabled" and not host_code():
        event.enabled = True
        assert scene.m.call("deep", 1) == 3
        assert event.hits == 4  # none is lost: deep, twice, and inc twice
        return
    with pytest.raises(EventError, match="twice"):
        if change == "filter":
            event.filter = "x >= 0"
        elif change == "trigger":
            event.trigger("hist:keys=x")
        else:
            event.enabled = True
    assert scene.m.call("deep", 1) == 3
    assert event.hits == 3  # deep, and inc twice
    assert Kprobe(symbol_name="inc").nhit == 0
