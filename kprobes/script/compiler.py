"""From a script's text to programs: the passes, one after the other."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve

from ..errors import ProgramError
from ..programs import maps as kinds
from ..programs.code import CodeLine
from ..programs.isa import Instruction
from ..programs.linker import link
from ..programs.maps import Map, MapType, Spec
from ..programs.program import Program
from . import definitions, folding, layout, macros, points, tree
from .deduction import infer
from .definitions import Definitions
from .folding import Parameters
from .generator import Generator
from .headers import Headers
from .inference import MapFacts, TypedProbe, Typing
from .names import ASYNCHRONOUS
from .parser import parse
from .points import OUTSIDE, Point
from .settings import Settings, configured
from .source import Diagnostics, Message, ScriptError, ScriptSource
from .storage import Storage
from .world import World

#: bytes of the ring through which programs speak to Python
RING: int = 1 << 20
#: kinds of declared maps -> types of maps here; values for each CPU are one value here
_KINDS: dict[str, MapType] = {
    "hash": MapType.HASH,
    "percpuhash": MapType.HASH,
    "lruhash": MapType.LRU_HASH,
    "percpulruhash": MapType.LRU_HASH,
    "array": MapType.HASH,
    "percpuarray": MapType.HASH,
}


@define
class Front:
    """A script that was read, before its probes are looked up in the guest.

    Attributes:
        source: the text.
        script: the tree, without macros and parameters.
        points: the parsed attach points of each block.
        settings: settings from its config block and the environment.
        definitions: C types and constants.
        found: warnings so far.
    """

    source: ScriptSource
    script: tree.ParsedScript
    points: list[list[Point]]
    settings: Settings
    definitions: Definitions
    found: Diagnostics


@define
class Compiled:
    """A script's programs.

    Attributes:
        typing: types of all expressions, variables and maps.
        programs: (block, program), one for each block and kind of attach points, in the order of
            the text.
        maps: the script's maps with keys, by name.
        ring: the map through which programs send records to Python.
        variables: the map that holds the scratch variables.
        globals: the map that holds the script's maps without keys.
        storage: where everything lies in these maps.
    """

    typing: Typing
    programs: list[tuple[TypedProbe, Program]]
    maps: dict[str, Map]
    ring: Map
    variables: Map
    globals: Map
    storage: Storage


@contextlib.contextmanager
def _bounded_nesting(source: ScriptSource) -> Iterator[None]:
    """Raise ScriptError where the script in the block is nested deeper than Python's stack allows.

    Args:
        source: the script's text.
    """
    try:
        yield
    except RecursionError:
        hint = "split it: give inner parts to variables"
        error = Message("ERROR", "the script is nested too deeply", None, (hint,))
        raise ScriptError([error], source) from None


def read(
    source: ScriptSource,
    parameters: Parameters,
    environment: Mapping[str, str],
    bits: int,
    headers: Headers | None = None,
) -> Front:
    """Parse a script: its tree without macros, its settings, C types and attach points.

    Args:
        source: its text.
        parameters: the arguments that follow the script on the command line.
        environment: the process's environment variables.
        bits: bits of the guest's addresses.
        headers: headers that stand in front, and where others are; None: there are none.

    Returns:
        What translate() takes: source, tree, attach points of each block, settings, definitions,
        and the messages so far.

    Raises:
        ScriptError: the script is wrong.
    """
    with _bounded_nesting(source):
        found = Diagnostics(source)
        script = parse(source, found)
        settings = configured(script.settings, environment, found)
        for one in script.imports:
            found.error(
                f'import "{one.path}": imports are not supported',
                one.span,
                "put its text into the script",
            )
        known = definitions.read(script.definitions, bits, found, headers)
        script = folding.fold(macros.expand(script, found), parameters, settings, found)
        taken = [
            [made for point in probe.points for made in points.read(point, found)]
            for probe in script.probes
        ]
        found.check()
        return Front(source, script, taken, settings, known, found)


def translate(
    front: Front,
    probes: list[TypedProbe],
    world: World,
    unsafe: bool,
    at_once: bool,
    wary: bool = False,
) -> Compiled:
    """Infer the types of a script, compile its blocks, and make their maps.

    Args:
        front: the script.
        probes: its blocks, one for each kind of attach points, with the types of the guest.
        world: the guest.
        unsafe: True where functions that change the guest, or run programs of the host, are
            allowed.
        at_once: True where Python reads each record at once.
        wary: True where Python gets warnings of missing keys and of guest memory that cannot be
            read.

    Returns:
        The types, the programs with their blocks, and the maps that they share.

    Raises:
        ScriptError: the script is wrong, or a block cannot be compiled.
    """
    with _bounded_nesting(front.source):
        found = front.found
        typing = infer(
            front.script, probes, front.definitions, world, front.settings, unsafe, found
        )
        found.check()
        storage = Storage(at_once=at_once)
        for facts in sorted(typing.maps.values(), key=lambda facts: facts.name):
            if facts.value is not None:
                storage.take(facts)
        codes = []
        ticks = has_timers(probes) if at_once else speaks(probes)
        for probe in probes:
            generator = Generator(
                storage,
                typing,
                probe,
                world,
                front.settings,
                front.definitions,
                front.source,
                probe.points[0].kind not in OUTSIDE and ticks,
                wary,
            )
            try:
                codes.append((probe, generator.program()))
            except ProgramError as error:
                found.error(error.reason, generator.written, *([error.hint] if error.hint else []))
        found.check()
        return _linked(codes, typing, storage, front.settings)


def speaks(probes: list[TypedProbe]) -> bool:
    """Return True where a script needs Python while the guest runs: for timers, or to print and the
    like.

    Args:
        probes: its blocks.
    """
    return has_timers(probes) or any(
        isinstance(node, tree.FunctionCall | tree.Name) and node.name in ASYNCHRONOUS
        for probe in probes
        for node in tree.walk(probe.probe.body)
    )


def has_timers(probes: list[TypedProbe]) -> bool:
    """Return True for a script with interval or profile probes."""
    return any(point.kind in ("interval", "profile") for probe in probes for point in probe.points)


_Written = tuple[TypedProbe, tuple[Sequence[Instruction], dict[int, CodeLine]]]


def _linked(
    codes: list[_Written], typing: Typing, storage: Storage, settings: Settings
) -> Compiled:
    """Make the maps of a script, and link each program's code with them.

    Args:
        codes: (block, (instructions, slot -> line of the script)) of each program.
        typing: types of the script.
        storage: how large the shared areas are, and which maps have keys.
        settings: the script's settings.

    Returns:
        The types, the programs with their blocks, and the maps that they share.
    """
    ring = kinds.create(Spec(type=MapType.RINGBUF, name="ring", max_entries=RING))
    variables = _array("variables", storage.variables)
    constants = _array("constants", len(storage.constants), bytes(storage.constants))
    globals_ = _array("globals", storage.globals)
    scratch = _array("scratch", storage.scratch)
    keyed = {name: _keyed(typing.maps[name], settings) for name in storage.keyed}
    every = [ring, variables, constants, globals_, scratch, *keyed.values()]
    programs = []
    for probe, (code, lines) in codes:
        name = probe.points[0].text if probe.points else "script"
        made = evolve(link(code, dict(enumerate(every)), name, sys.byteorder), lines=lines)
        program = Program(
            name,
            {name: made},
            {m.name: m for m in every},
            result_at=probe.result_source.given if probe.result_source is not None else "",
            entry_words=sorted(probe.entry_words),
        )
        programs.append((probe, program))
    return Compiled(typing, programs, keyed, ring, variables, globals_, storage)


def _array(name: str, size: int, data: bytes = b"") -> Map:
    """Make an array map with one value.

    Args:
        name: the map's name.
        size: bytes of the value, at least 8 of which are made.
        data: the value's first bytes. Programs cannot write the value of a map that is given any.
    """
    made = kinds.create(
        Spec(
            type=MapType.ARRAY,
            name=name,
            key_size=4,
            value_size=max(8, size),
            max_entries=1,
            readonly=bool(data),
            order=sys.byteorder,
        )
    )
    made.block.view[: len(data)] = data
    return made


def _keyed(facts: MapFacts, settings: Settings) -> Map:
    """Make the hash table of a script's map with keys.

    Args:
        facts: the map's types.
        settings: the script's settings, for the number of entries.
    """
    assert facts.key is not None and facts.value is not None
    return kinds.create(
        Spec(
            type=_KINDS[facts.kind],
            name=facts.name,
            key_size=layout.room_of(facts.key),
            value_size=layout.room_of(facts.value),
            max_entries=facts.entries or settings.max_map_keys,
            order=sys.byteorder,
        )
    )


__all__ = ["Compiled", "Front", "ScriptError", "read", "translate"]
