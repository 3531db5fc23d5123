"""Whatever public functions are given: a KprobeError that names it, nothing changed, and no other exception."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from scenes import Scene
from wrong import WRONG, methods, refused, said

from kprobes import BadArgument, Jprobe, Kprobe, KprobeError, Kretprobe, Program, Regs, Symbols, Trace, UnicornMachine
from kprobes.arguments import SORTS, sort_of
from kprobes.campaign import Calls, Journal, Outcome, local, run
from kprobes.debug.info import DebugInfo
from kprobes.events._armed import TraceEvent
from kprobes.events._table import Events
from kprobes.kprobes import Kprobes
from kprobes.programs.maps import MapType, Plain, Spec, create
from kprobes.programs.object.variables import GlobalVariable, Variables
from kprobes.tracing.coverage import Coverage

pytestmark = pytest.mark.quick
DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.x86_64"
#: class -> its public methods that are the core's and the engines' alone
KINDS: dict[type, tuple[str, ...]] = {
    UnicornMachine: (), Kprobes: ("program_calls",), Symbols: ("add_file",), Regs: ("at", "on_copies"),
    DebugInfo: ("place", "type_of", "typed", "arrived", "in_parts", "typed_call", "value_at", "variables_of_copies"), Events: (),
    TraceEvent: ("add", "leave"), Trace: ("name",), Coverage: (), Program: ("at_sites", "in_guest", "replaced"),
}
#: what fits there and nowhere else
GOOD: dict[tuple[type, str], dict[str, Any]] = {
    (UnicornMachine, "bind"): {"name": "puts", "function": lambda regs: 0}, (Symbols, "add"): {"name": "new"},
    (Regs, "accessors"): {"name": "rdi"},
    **{(UnicornMachine, name): {"addr": 0x900000, "size": 0x1000} for name in ("protect", "unmap")},
    (UnicornMachine, "map"): {"addr": 0xA00000},
    (UnicornMachine, "unload_module"): {"name": "demo"}, (UnicornMachine, "type"): {"name": "int"},
    (Program, "from_c"): {"text": "int a;"}, (Kprobes, "heap"): {"functions": {"inc": "malloc"}},
    (Kprobes, "trace"): {"events": "p inc"}, (DebugInfo, "at_function_line"): {"number": 1},
    (DebugInfo, "is_kept"): {"name": "len"},
    **{(DebugInfo, name): {"path": "x.c"} for name in ("at_line", "source_folders", "statements")},
    **{(Coverage, name): {"format": "afl"} for name in ("contents", "save")},
}
HARMLESS = {"data_end", "get"}  # questions that have an answer for everything: there is no such thing


def closing(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, but that what it makes is closed: where a wrong value is taken, nothing stays."""
    @wraps(method)
    def call(*args: Any, **named: Any) -> None:
        method(*args, **named).close()

    return call


class World:
    """Something of everything."""

    def __init__(self) -> None:
        self.scene = Scene("x86_64")
        self.m, self.k = self.scene.m, self.scene.k
        self.k.register(Kprobe(symbol_name="twice", optimize=False))
        self.event = self.k.event("p:known inc len=$arg1:u32")
        self.recording = self.k.trace("p:traced inc len=$arg1:u32")
        self.trace = self.recording.__enter__()
        self.m.call("inc", 1)
        self.room = self.m.alloc(64)
        self.m.map(0x900000, 0x10000)
        self.program = Program.from_instructions(bytes.fromhex("b700000000000000 9500000000000000"))
        self.coverage = self.k.coverage()
        self.of: dict[type, Any] = {
            UnicornMachine: self.m, Kprobes: self.k, Symbols: self.m.symbols, Regs: self.m.regs,
            DebugInfo: self.m.debug, Events: self.k.events,
            TraceEvent: self.event, Trace: self.trace, Coverage: self.coverage, Program: self.program,
        }

    def good(self, tmp_path: Path) -> dict[str, Any]:
        """What fits, by the name of the parameter."""
        return {"addr": self.room, "address": self.room, "size": 8, "data": b"x", "function": "inc", "where": "inc",
                "perms": "rw", "max_insns": 5,
                "regs": self.m.regs, "text": "p inc", "n": 0, "value": 0, "symbol": self.m.symbols["inc"],
                "start": 0x10000, "until": "inc",
                "file": DEMO, "end": 0x10004, "bias": 0, "parts": [], "offset": 0, "source": b"", "type": "int",
                "uc": self.m.uc, "program": self.program,
                "line": 1, "module": "", "raw": bytes.fromhex("b700000000000000 9500000000000000"),
                "path": tmp_path / "out", "format": "jsonl", "cpus": 1, "code": b"\xc3", "arch": "x86_64",
                "base": 0x40000}

    def state(self) -> Any:
        """What a refused call must not change."""
        m, k = self.m, self.k
        return (sorted(m.uc.mem_regions()), sorted(map(repr, m.symbols)), k.format_list(), m.regs.pc, m.regs.sp,
                m.regs["rax"], list(k.events),
                k.enabled, k.optimization, k.instances, m.read(self.room, 64), len(self.trace), self.event.filter,
                self.event.triggers)


@pytest.mark.parametrize(("kind", "name"), [pytest.param(kind, name, id=f"{kind.__name__}.{name}")
                                           for kind, without in KINDS.items()
                                            for name in methods(kind, ("close", *without))])
def test_methods(kind: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files of any name are written
    world = World()
    inc = world.m.symbols["inc"].address
    good = {**world.good(tmp_path), **GOOD.get((kind, name), {})}
    method = getattr(world.of[kind], name)
    assert refused(closing(method) if name == "heap" else method, good, world.state) or name in HARMLESS
    assert world.m.call(inc, 4) == 5


@pytest.mark.parametrize("name", ["pc", "sp", "flags", "return_value", "rdi", "xmm0"])
@pytest.mark.parametrize("value", [None, 2.5, "1", b"1", [], object()], ids=lambda value: type(value).__name__)
def test_registers_take_integers(name: str, value: Any) -> None:
    regs = Scene("x86_64").m.regs
    if (name, value) == ("xmm0", 2.5):
        pytest.skip("xmm0 has floating-point numbers")
    before = regs.pc, regs.sp, regs.flags, regs["rdi"], regs["xmm0"]
    with pytest.raises(BadArgument, match="pass an integer"):
        if hasattr(Regs, name):
            setattr(regs, name, value)
        else:
            regs[name] = value
    assert before == (regs.pc, regs.sp, regs.flags, regs["rdi"], regs["xmm0"])
    for key in (value, 5):
        with pytest.raises(KprobeError):
            regs[key]  # type: ignore[index]
        with pytest.raises(KprobeError):
            regs[key] = 1  # type: ignore[index]


@pytest.mark.parametrize("name", ["cpu_task", "interrupt_handler", "before_run"])
def test_handlers_of_the_machine(name: str) -> None:
    m = Scene("x86_64").m
    for value in (5, "f", b"", [], object()):
        with pytest.raises(BadArgument, match=f"{name} is"):
            setattr(m, name, value)
    assert getattr(m, name) is None or name == "before_run"
    assert m.call("inc", 4) == 5


FIELDS = {Kprobe: ("symbol_name", "addr", "offset", "pre_handler", "post_handler", "fault_handler", "disabled",
                   "optimize"),
          Kretprobe: ("symbol_name", "addr", "offset", "handler", "entry_handler", "maxactive", "data_size"),
          Jprobe: ("symbol_name", "addr", "entry")}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in FIELDS.items() for field in fields])
def test_probes(kind: Any, field: str) -> None:
    """As they are made, and while they are registered."""
    scene = Scene("x86_64")
    for value in WRONG:
        fields = {"symbol_name": "inc", **({"entry": lambda a: None} if kind is Jprobe else {}), field: value}
        before = scene.text(), scene.k.format_list()
        try:
            scene.k.register(made := kind(**fields))
        except KprobeError:
            assert (scene.text(), scene.k.format_list()) == before
        else:
            scene.k.unregister(made)
        made = kind(**{"symbol_name": "inc", **({"entry": lambda a: None} if kind is Jprobe else {})})
        scene.k.register(made)
        was = getattr(made, field)
        try:
            setattr(made, field, value)
        except KprobeError:
            assert getattr(made, field) == was
        scene.k.unregister(made)
    assert scene.m.call("inc", 4) == 5


def test_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good = {"job": len, "items": [], "path": tmp_path / "journal", "campaign": "c"}
    for function in (run, local, Journal):
        assert refused(function, good, lambda: None)


NOTHING = Program.from_instructions(bytes.fromhex("b700000000000000 9500000000000000"))
HELD = create(Spec(type=MapType.ARRAY, name="held", key_size=4, value_size=8, max_entries=2))
FITTING: dict[MapType, dict[str, Any]] = {
    **{kind: {"key_size": 0} for kind in (MapType.QUEUE, MapType.STACK, MapType.BLOOM_FILTER)},
    MapType.LPM_TRIE: {"key_size": 8},
    **{kind: {"inner": HELD} for kind in (MapType.ARRAY_OF_MAPS, MapType.HASH_OF_MAPS)}, MapType.STACK_TRACE: {"value_size": 64},
    **{kind: {"key_size": 0, "value_size": 0, "max_entries": 4096} for kind in (MapType.RINGBUF, MapType.USER_RINGBUF)},
    MapType.PERF_EVENT_ARRAY: {"value_size": 4}}


@pytest.mark.parametrize("kind", MapType, ids=lambda kind: kind.name)
def test_maps(kind: MapType) -> None:
    """As they are made, and what is put in. What is not there is a KeyError, as in every mapping."""
    fits: dict[str, Any] = {"type": kind, "key_size": 4, "value_size": 8, "max_entries": 4, "cpus": 2,
                            **FITTING.get(kind, {})}
    for field in ("type", "name", "key_size", "value_size", "max_entries", "flags", "cpus", "readonly", "order"):
        assert any(was_refused(lambda value, field=field: create(Spec(**{**fits, field: value})), value)
                   for value in WRONG), field
    made: Any = create(Spec(**fits))
    values = {MapType.ARRAY_OF_MAPS: HELD, MapType.HASH_OF_MAPS: HELD, MapType.PROG_ARRAY: NOTHING}
    one = values.get(kind, [7, 8] if made.percpu else 7)
    acts: list[Any] = []
    if isinstance(made, MutableMapping):
        made[1] = one
        acts = [made.__getitem__, made.__delitem__, made.__contains__, lambda value: made.__setitem__(value, one),
                lambda value: made.__setitem__(1, value), lambda value: made.__setitem__(1, [value, value])]
    elif isinstance(made, Mapping):
        acts = [made.__getitem__]
    elif hasattr(made, "push"):
        acts = [made.push]
    for act, value in product(acts, (*WRONG, range(3), 1 << 33, "x" * 99)):
        before = repr(made)
        if was_refused(act, value):
            assert repr(made) == before
        elif isinstance(made, MutableMapping):
            made[1] = one


def was_refused(act: Callable[[Any], Any], value: Any) -> bool:
    """By a KprobeError that says what was given, or what there is none of."""
    try:
        act(value)
    except KprobeError as error:
        assert any(word in str(error) for word in (*said(value), "name", "size", "order", "entries", "map")), error
        return True
    except KeyError as error:
        assert isinstance(value, int), error
        return True
    return False


def test_values_of_maps_are_those_that_were_given() -> None:
    """What has an index is a number, not so many zeros; and none loses what is above its size."""
    made = create(Spec(type=MapType.HASH, name="m", key_size=4, value_size=8, max_entries=4))
    assert isinstance(made, MutableMapping)
    made[Eight()] = Eight()
    assert dict(made) == {8: 8}
    for key, value, what in ((1 << 32 | 8, 1, "key"), (8, 1 << 64, "value"), (8, -(1 << 63) - 1, "value")):
        with pytest.raises(BadArgument, match=f"map m: {what} is .*does not fit"):
            made[key] = value
    assert dict(made) == {8: 8}


class Eight:
    """An integer, as numpy's are."""

    def __index__(self) -> int:
        return 8


def test_variables_of_programs() -> None:
    made = create(Spec(type=MapType.ARRAY, name=".bss", key_size=4, value_size=8, max_entries=1))
    variables = Variables({"count": GlobalVariable(made, 0, 8, Plain(8))})
    variables["count"] = 5
    for value in (None, 2.5, "5", object(), b"123", 1 << 64):
        with pytest.raises(BadArgument, match="count is"):
            variables["count"] = value
        for act in (variables.__getitem__, variables.__contains__):
            if not isinstance(value, str):
                with pytest.raises(BadArgument, match="name is"):
                    act(value)
    with pytest.raises(BadArgument, match="cannot be deleted"):
        del variables["count"]
    assert dict(variables) == {"count": 5} and variables.get("no such") is None


@pytest.mark.parametrize("field", ["image", "call", "events", "before", "arch", "timeout", "max_insns", "coverage",
                                   "dataset"])
def test_jobs(field: str) -> None:
    """As they are made, not in a worker. A list of events is as good as a tuple."""
    for value in (5.5j, [5], object(), {1: 2}):
        with pytest.raises(BadArgument):
            Calls(**{"image": str(DEMO), "call": "inc(1)", field: value})
    job = Calls(DEMO, "string_length(@input)", ["p string_length"], [])
    assert job(b"")["hits"] == {"p_string_length_0": 1}
    for text in ("p inc", b"p inc"):
        with pytest.raises(BadArgument):
            Calls(str(DEMO), "inc(1)", text)  # type: ignore[arg-type]


def test_what_no_journal_holds(tmp_path: Path) -> None:
    """The file stays as it was: the next outcome is noted."""
    with Journal(tmp_path / "journal", "c") as journal:
        wrong: tuple[Any, ...] = (None, 5, Outcome("a", b"bytes", None, 0.1), Outcome("a", object(), None, 0.1),
                                  Outcome("a", 1, None, "long"))  # type: ignore[arg-type]
        for outcome in wrong:
            with pytest.raises(KprobeError):
                journal.note(outcome)
        assert not journal.entries
        journal.note(Outcome("a", 1, None, 0.1))
    with pytest.raises(KprobeError, match="keep the journal open"):
        journal.note(Outcome("b", 1, None, 0.1))
    with Journal(tmp_path / "journal", "c") as journal:
        assert list(journal.entries) == ["a"]


def test_watchpoints() -> None:
    """What was the handler still is."""
    world = World()
    hits: list[int] = []
    with world.k.watchpoint(world.room, 4, "rw", was := lambda w, regs: hits.append(w.nhit)) as w:
        for value in (5, "f", b"", [], object()):
            with pytest.raises(BadArgument, match="no handler"):
                w.handler = value
        assert w.handler is was


@pytest.mark.parametrize("value", [None, -1, 2, 2.5, "on", [], object()],
                         ids=["none", "negative", "two", "float", "text", "list", "object"])
def test_histograms_and_call_trees(value: Any, tmp_path: Path) -> None:
    world = World()
    world.event.trigger("hist:keys=len")
    world.m.call("inc", 3)
    before = str(world.event.hist)
    with pytest.raises(BadArgument, match="paused is"):
        world.event.hist.paused = value
    assert str(world.event.hist) == before and not world.event.hist.paused
    with world.k.graph("inc") as tree:
        world.m.call("inc", 3)
    if not isinstance(value, str):
        with pytest.raises(BadArgument, match="path is"):
            tree.export(value, "text")
    with pytest.raises(BadArgument, match="format"):
        tree.export(tmp_path / "out", value)
    assert not (tmp_path / "out").exists() and len(tree) == 1


@pytest.mark.parametrize("annotation", ["int", "str | int | None", "Callable[[int | str], bool] | None",
                                        "str | os.PathLike[str] | bytes", "Mapping[str, str] | None"])
def test_annotations(annotation: str) -> None:
    sort = sort_of(annotation)
    assert sort is not None
    assert sort_of(f"{annotation} | Unknown") is None
    fits = {value for value in ("text", 5, None, len, b"b") if type(value) in sort.exact or sort.fits(value)}
    assert ((None in fits) == ("None" in annotation) and (len in fits) == ("Callable" in annotation)
            and ("text" in fits) == annotation.startswith("str"))
    assert 5 in fits or annotation[0] not in "i"
    assert copy.copy(sort).said and "int" in SORTS
