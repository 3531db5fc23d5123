"""The places of a script's probes: attach points to addresses of the guest."""

from __future__ import annotations

import copy
import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import evolve

from ..attacher import Attacher
from ..errors import ProgramError, UnknownSymbol
from . import tree
from .access import AtAccess, arguments_of, words_of
from .compiler import Front
from .inference import MarkerArgument, TypedProbe
from .points import OUTSIDE, Point
from .source import did_you_mean

if TYPE_CHECKING:
    from ..events._watchpoint import Watchpoint
    from ..image._symbol import Symbol
    from ..programs.attach import Attachment
    from ..programs.program import Program
    from .guest import GuestWorld


class Probed(Attacher, Protocol):
    """A Kprobes, as far as scripts need it.

    Attributes:
        machine: the guest.
    """

    machine: Any

    def watchpoint(
        self, where: str | int, size: int, access: str = "w", handler: Any = None
    ) -> Watchpoint:
        """Have a handler called at each access to guest memory, until the watchpoint is removed.

        Args:
            where: a symbol's name or an address.
            size: bytes.
            access: "r", "w", "rw", or "x" for instructions that begin there.
            handler: called with (watchpoint, registers).
        """

    def stack_trace(self, regs: Any, limit: int = 64) -> list[int]:
        """Return the pc and return addresses of a hit, innermost first, `limit` at most."""


_IMAGES: Final = 8  #: images that a hint names, at most
_SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".s", ".S")
_WATCHED: Final = ("watchpoint", "asyncwatchpoint")
_FORCE: Final = (
    "Use --unsafe to force attachment. WARNING: This option could lead to data corruption in the "
    "target process."
)


def placed(front: Front, world: GuestWorld | None, unsafe: bool = False) -> list[TypedProbe]:
    """Return a script's blocks with attach points that have their addresses in the guest.

    A block becomes several where the types of its arguments differ between attach points, or the
    kind of these; a block whose attach points mean no place is left out. Errors and warnings go to
    `front.found`.

    Args:
        front: the parsed script: its probes, and the attach points of each.
        world: the guest; None: there is none, and an attach point in a guest is an error.
        unsafe: True also takes addresses that no function is known to cover (--unsafe).
    """
    out = list[TypedProbe]()
    for probe, points in zip(front.script.probes, front.points, strict=True):
        names = {
            node.name
            for part in (probe.predicate, probe.body)
            if part is not None
            for node in tree.walk(part)
            if isinstance(node, tree.Name)
        }
        groups: dict[Any, TypedProbe] = {}
        for point in points:
            if point.kind in OUTSIDE or world is None:
                if point.kind not in OUTSIDE:
                    front.found.error(
                        f"{point.text}: there is no guest that could be probed",
                        point.span,
                        "give a guest, or use begin, interval and end probes only",
                    )
                _add(groups, (point.kind,), TypedProbe(probe, [point]))
                continue
            for real in _found(front, point, world, unsafe):
                made = TypedProbe(probe, [real])
                typed = real.kind == "fexit" or not real.returns
                if real.address is not None and "args" in names and typed:
                    known = world.arguments(real.address, kept=real.returns)
                    if known is not None:
                        made = TypedProbe(probe, [real], known[0], sources=known[1])
                if real.address is not None and real.kind == "fexit" and "retval" in names:
                    found = world.result(real.address)
                    if found is not None:
                        made = evolve(made, result=found[0], result_source=found[1])
                if real.kind in _WATCHED and "args" in names and "x" not in real.access:
                    accessed, sources = arguments_of(real.size, world.bits)
                    made = TypedProbe(probe, [real], accessed, sources=sources)
                if real.kind == "usdt":
                    made = evolve(made, operands=_operands(front, real, names, world))
                fields = made.arguments.fields if made.arguments is not None else None
                places = tuple(made.sources.items()), tuple(made.operands.items())
                result = made.result, made.result_source
                _add(groups, (real.kind, fields, places, result), made)
        out += _apart(list(groups.values()))
    return out


def _apart(blocks: list[TypedProbe]) -> list[TypedProbe]:
    """Give each of a block's groups of attach points a tree of its own.

    Types are kept by node, and `probe` or `args` may have another type in each group.

    Args:
        blocks: the groups, all with the same tree; the first keeps it.
    """
    return [
        *blocks[:1],
        *(evolve(block, probe=copy.deepcopy(block.probe)) for block in blocks[1:]),
    ]


def _add(groups: dict[Any, TypedProbe], key: Any, made: TypedProbe) -> None:
    """Add a block's attach points to the block in `groups` that has the same types.

    Args:
        groups: key -> block; changed. Where it has no such key, `made` is entered.
        key: what blocks must have in common: (kind of attach point, fields of `args`, where
            arguments and operands come from, type of the result and where it is), or (kind,).
        made: the block, with the attach points to be added.
    """
    if key in groups:
        groups[key].points += made.points
    else:
        groups[key] = made


def _operands(
    front: Front, point: Point, names: set[str], world: GuestWorld
) -> dict[int, MarkerArgument]:
    """Return how to read the arguments of a USDT marker that a block uses: number -> reader.

    An argument that the marker has not is left out with a warning; one that cannot be read is an
    error. Both go to `front.found`.

    Args:
        front: the script.
        point: the marker's attach point, with its operands.
        names: all names that the block uses, such as "arg0".
        world: the guest.
    """
    out = dict[int, MarkerArgument]()
    for number in sorted(int(name[3:]) for name in names if re.fullmatch(r"arg\d{1,2}", name)):
        if number >= len(point.operands):
            front.found.warn(
                f"{point.text} has {len(point.operands)} arguments: arg{number} is 0 there",
                point.span,
            )
            continue
        try:
            out[number] = world.marker_argument(point.operands[number])
        except ProgramError as error:
            front.found.error(
                f"arg{number} of {point.text} is {point.operands[number]!r} here: {error.plain}",
                point.span,
                "read registers by reg()",
            )
    return out


def _found(front: Front, point: Point, world: GuestWorld, unsafe: bool) -> Iterator[Point]:
    """Yield an attach point with its address for each place in the guest that a written one means.

    Where there is none, that is an error or a warning in `front.found`, or neither, as the script's
    settings say.

    Args:
        front: the script, whose `found` takes errors.
        point: the attach point as written; it may have a glob.
        world: the guest.
        unsafe: True also takes addresses that no function is known to cover.
    """
    if point.kind in _WATCHED:
        yield from _watched(front, point, world)
        return
    if point.kind == "usdt":
        yield from _marked(front, point, world)
        return
    if point.line is not None:
        yield from _lines(front, point, world)
        return
    if point.address is not None:
        if unsafe or not point.user or _inside(front, point, world):
            yield point
        return
    some = False
    for symbol in world.functions(point.function, point.image):
        some = True
        if not _bounded(front, point, symbol, world, unsafe):
            continue
        image = f"{point.image}:" if point.image else ""
        offset = f"+{point.offset}" if point.offset else ""
        yield evolve(
            point,
            address=(symbol.address | symbol.mode) + point.offset,
            text=f"{point.kind}:{image}{symbol.name}{offset}",
        )
    if not some:
        known = [symbol.name for symbol in world.machine.symbols]
        known += world.names_like(point.function)
        _missing(front, world, point, _no_matches(point), known)


def _inside(front: Front, point: Point, world: GuestWorld) -> bool:
    """Return True where code at an attach point's address may be probed; else note an error, too.

    Allowed is an address that a function with a size covers, and any address where no function of
    the file has a size: in firmware with a map, and in stripped files.

    Args:
        front: the script, whose `found` takes the error.
        point: the attach point, which has an address.
        world: the guest.
    """
    assert point.address is not None
    found = world.machine.symbols.covering(point.address)
    if (found is not None and found.size) or not world.knows_sizes(
        found.module if found is not None else ""
    ):
        return True
    front.found.error(
        f"Could not resolve address: {point.image or '*'}:{point.address:#x}",
        None,
        _hint_of_address(point),
    )
    return False


def _hint_of_address(point: Point) -> str:
    """Return what to do about an address that is in no function.

    Args:
        point: the attach point, which has an address.
    """
    if point.image and point.image.endswith(_SOURCES):
        place = f"{point.kind}:IMAGE@{point.image}:{point.address}"
        return f"line {point.address} of a source file is {place}"
    return "--unsafe probes it all the same"


def _bounded(front: Front, point: Point, symbol: Symbol, world: GuestWorld, unsafe: bool) -> bool:
    """Return True where an attach point is within its function; else note an error, too.

    A function without a size ends at the next symbol; where no offset is given, or no end is known,
    the point counts as within. But that is an error where a uprobe names such a function without a
    glob, and other functions of the file have sizes.

    Args:
        front: the script.
        point: the attach point, with its offset in bytes.
        symbol: the function that it means.
        world: the guest.
        unsafe: True also takes a function without a size in a file whose other functions have
            sizes.
    """
    extent = world.machine.symbols.extent(symbol) - symbol.address
    if symbol.size or (point.offset and extent > 0):
        if point.offset < extent:
            return True
        front.found.error(
            f"Offset outside the function bounds ('{symbol.name}' size is {symbol.size})",
            point.span,
        )
        return False
    named = point.user and symbol.name == point.function
    if unsafe or not named or not world.knows_sizes(symbol.module):
        return True
    front.found.error(
        f"Could not determine boundary for {symbol.name} (symbol has size 0).\n{_FORCE}", None
    )
    return False


def _no_matches(point: Point) -> str:
    """Return the error of an attach point that means no place."""
    return f"No matches for {point.text.replace(':', ' ', 1)}."


def _missing(
    front: Front, world: GuestWorld, point: Point, text: str, known: list[str], hint: str = ""
) -> None:
    """Note in `front.found` that nothing in the guest fits an attach point.

    It is an error, a warning, or not noted at all, as the script's setting missing_probes says.

    Args:
        front: the script.
        world: the guest; its images are named where it has none that the attach point means.
        point: the attach point.
        text: the message.
        known: names that the guest has; similar ones are proposed.
        hint: what to do about it; "": that is found out from `known`.
    """
    images = world.images()
    if images and not any(world.is_of(image, point.image) for image in images):
        hints: tuple[str, ...] = (f"the guest has the images {', '.join(images[:_IMAGES])}",)
        if len(images) == 1:
            hints = (f"the guest is {images[0]}; --preload FILE loads a library",)
    elif f"{point.function}@plt" in known:
        hints = (f"{point.function} is imported: load a library that has it (--preload LIBRARY)",)
    elif hint:
        hints = (hint,)
    else:
        hints = did_you_mean(point.function, (name for name in known if "@" not in name))
    if front.settings.missing_probes == "error":
        front.found.error(text, point.span, *hints)
    elif front.settings.missing_probes == "warn":
        front.found.warn(f"{text} Skipping.", point.span, *hints)


def _watched(front: Front, point: Point, world: GuestWorld) -> Iterator[Point]:
    """Yield a watchpoint's attach point with its address, looked up by name where it has none.

    Where the name is unknown, _missing() notes that, and nothing is yielded.

    Args:
        front: the script.
        point: the attach point as written.
        world: the guest.
    """
    if point.address is not None:
        yield point
        return
    found = world.symbol(point.function)
    if found is None:
        text = f"Could not resolve symbol: {point.function}"
        _missing(front, world, point, text, list(world.names()))
        return
    yield evolve(point, address=found[0])


def _marked(front: Front, point: Point, world: GuestWorld) -> Iterator[Point]:
    """Yield an attach point for each USDT marker that a point's patterns match.

    The copies have the marker's address, operands and semaphore. Where none matches, that is an
    error or a warning in `front.found`, or neither, as the script's settings say.

    Args:
        front: the script.
        point: the point as written: its image, and globs for provider and name.
        world: the guest.
    """
    markers = world.debug.markers()
    same = [
        marker
        for marker in markers
        if fnmatch.fnmatchcase(marker.name, point.function)
        and fnmatch.fnmatchcase(marker.provider, point.provider or "*")
        and world.is_of(marker.module, point.image)
    ]
    for marker in same:
        yield evolve(
            point,
            address=marker.address,
            operands=marker.arguments,
            semaphore=marker.semaphore,
            text=f"usdt:{point.image or '*'}:{marker.provider}:{marker.name}",
        )
    if not same:
        _missing(front, world, point, _no_matches(point), [marker.name for marker in markers])


def _lines(front: Front, point: Point, world: GuestWorld) -> Iterator[Point]:
    """Yield one attach point, at the lowest address of an image that has code of the point's source
    line.

    Where there is no such code, that is an error or a warning in `front.found`, or neither, as the
    script's settings say.

    Args:
        front: the script.
        point: the point as written; its `line` is (file, line number).
        world: the guest.
    """
    assert point.line is not None
    file, number = point.line
    near = ""
    try:
        places = world.debug.at_line(file, number)
    except UnknownSymbol as error:
        places = []
        near = error.hint
    symbols = world.machine.symbols
    for place in sorted(places, key=lambda place: place.address):
        symbol = symbols.covering(place.address)
        if symbol is not None and world.is_of(symbol.module, point.image):
            yield evolve(point, address=place.address | symbol.mode)
            return
    _missing(front, world, point, f"No code of {file}:{number}", [], near)


def attach(
    kprobes: Probed,
    point: Point,
    number: int,
    program: Program,
    clock: Any,
    engine: str | None,
    woken: Callable[[str], None],
) -> Attachment | Watchpoint:
    """Attach a block's program to one attach point in the guest.

    A watchpoint of execution becomes a probe of the instruction where the machine does not report
    accesses.

    Args:
        kprobes: the Kprobes of the guest.
        point: the attach point; none outside of the guest, such as begin and interval.
        number: number of the attach point in its block: the program's cookie.
        program: the block's program.
        clock: what nsecs reads: a name or a function, as of Kprobes.attach().
        engine: name of the engine that runs the program; None: the best. The interpreter, whatever
            is given, where the guest may run it on several processors at once.
        woken: called with a text when the program wants Python to read the ring.

    Returns:
        The attachment, which detach() ends; or the watchpoint, which remove() ends.

    Raises:
        KprobeError: the program cannot be attached there.
    """
    view = kprobes.machine.guest_view
    if view is not None and view.several:
        # programs of a script share memory, and would run on several processors at once
        engine = "interpreter"
    if point.kind in _WATCHED and not _is_breakpoint(kprobes, point):
        return _watch(kprobes, point, program, clock, engine, woken, number)
    assert point.address is not None
    return kprobes.attach(
        program,
        point.address,
        retprobe=point.returns,
        cookie=number,
        clock=clock,
        engine=engine,
        printed=woken,
    )


def _is_breakpoint(kprobes: Probed, point: Point) -> bool:
    """Return True for a watchpoint that is registered as a probe of an instruction.

    That is one of execution ("x"), on a machine that does not report accesses.
    """
    return point.access == "x" and kprobes.machine.watching is None


def _watch(
    kprobes: Probed,
    point: Point,
    program: Program,
    clock: Any,
    engine: str | None,
    woken: Callable[[str], None],
    number: int,
) -> Watchpoint:
    """Set a watchpoint whose handler runs a program at accesses to memory, and return it.

    Args:
        kprobes: the Kprobes of the guest.
        point: the attach point: address, size in bytes and access ("r", "w", "rw", "x").
        program: the program.
        clock: what nsecs reads: a name or a function, as of Kprobes.attach().
        engine: name of the engine that runs the program; None: the best.
        woken: called with a text when the program wants Python to read the ring.
        number: number of the attach point in its block: the program's cookie.

    Raises:
        ProgramError: the program does not fit the machine: byte order, registers or per-CPU maps.
    """
    from ..programs.atprobe import ContextReader
    from ..programs.attach import clock_of
    from ..programs.fitting import fits, words

    machine = kprobes.machine
    fits(program.code, machine)
    place = AtAccess(kprobes, False, number, clock_of(machine, clock).now)
    contexts = ContextReader(machine.arch, words(program, machine))
    runs = program.engine(engine)

    def handler(watchpoint: object, regs: Any) -> None:
        place.regs = regs
        runs.run(contexts.of(regs, words_of(watchpoint)), place, woken)

    assert point.address is not None
    return kprobes.watchpoint(point.address, point.size, point.access, handler)
