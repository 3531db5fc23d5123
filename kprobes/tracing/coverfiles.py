"""Files of coverage: drcov, lcov, HTML."""

from __future__ import annotations

import posixpath
import re
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from ..debug.file import DAMAGE, dwarf, text
from ..debug.lines import rows, statements
from ..debug.quick import AddressScope
from ..debug.sources import scopes_at
from ..debug.units import units_of
from ..image import LoadedFile
from ..names import readable
from ..pictures.page import ChartView, page
from ..symbols import CONTROLS

#: characters that control a terminal, but those of texts of several lines
_LINES = {code: shown for code, shown in CONTROLS.items() if chr(code) not in "\t\n"}

#: bytes of guest memory that stand for a module of their own, where blocks are in none
REACH = 1 << 31
#: what GCC calls itself in a unit whose rows tell where statements begin: from version 8 on, for
#: languages of C's family, and without -flto
_OPTIMIZED = re.compile(
    r"^GNU (?:C|Objective)\S* (?:[89]|\d\d+)\.(?!.* -(?:gno-statement-frontiers|flto))"
    r".* -O([1-9sg]|fast)?(?= |$)"
)
LARGEST = 0xFFFF  #: bytes that drcov's row of a block can have


@frozen(order=True)
class Block:
    """A block of guest code.

    Attributes:
        address: of its first instruction.
        size: bytes.
        count: how often it was executed since the start, or since reset().
    """

    address: int
    size: int
    count: int


@frozen
class Module:
    """A row of drcov's table of modules.

    Attributes:
        base: address of the first byte.
        end: address behind the last byte.
        path: its name.
    """

    base: int
    end: int
    path: str


class ExecutionCounts:
    """Tells how often the instruction at an address was executed: the counts of all blocks that
    hold it, added up.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        """Read how often each block was executed. blocks: the executed blocks, which may
        overlap.
        """
        steps: Counter[int] = Counter()
        for block in blocks:
            steps[block.address] += block.count
            steps[block.address + block.size] -= block.count
        self._cuts = sorted(steps)
        self._counts = [*accumulate(steps[cut] for cut in self._cuts)]

    def count(self, address: int) -> int:
        """Return how often the instruction at an address was executed; 0: never."""
        at = bisect_right(self._cuts, address) - 1
        return self._counts[at] if at >= 0 else 0


# --- drcov


def drcov(
    blocks: Iterable[Block],
    images: Iterable[Module],
    regions: Sequence[tuple[int, int]],
    page: int,
) -> bytes:
    """Return the contents of a drcov file, version 2, for executed blocks.

    A block that goes on in the next module, or has more than LARGEST bytes, is cut into several
    rows. Equal rows are written once. What lies in no module is left out.

    Args:
        blocks: those that were executed.
        images: the loaded files.
        regions: (start, end) of each range of mapped memory, for blocks that are in no image.
        page: bytes of a page.
    """
    blocks = list(blocks)
    modules = sorted(_modules(blocks, list(images), regions, page), key=lambda module: module.base)
    bases = [module.base for module in modules]
    rows = dict[bytes, None]()
    for block in blocks:
        at = block.address
        end = block.address + block.size
        while at < end:
            number = bisect_right(bases, at) - 1
            if number < 0 or at >= modules[number].end:
                break  # it goes on in memory that no block begins in
            size = min(end, modules[number].end, at + LARGEST) - at
            rows[struct.pack("<IHH", at - bases[number], size, number)] = None
            at += size
    table = "".join(
        f"{n:3}, {m.base:#018x}, {m.end:#018x}, {0:#018x}, {m.path.translate(CONTROLS)}\n"
        for n, m in enumerate(modules)
    )
    head = (
        f"DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\nModule Table: version 2, count {len(modules)}\n"
        f"Columns: id, base, end, entry, path\n{table}BB Table: {len(rows)} bbs\n"
    )
    return head.encode() + b"".join(rows)


def _modules(
    blocks: Iterable[Block],
    images: list[Module],
    regions: Sequence[tuple[int, int]],
    page: int,
) -> Iterator[Module]:
    """Yield the modules of a drcov file: the images, and the memory that holds blocks of no image.

    Memory is cut into modules of at most REACH bytes, since a block's offset in its module is 32
    bits.

    Args:
        blocks: the executed blocks.
        images: the loaded files.
        regions: (start, end) of each range of mapped memory.
        page: bytes of a page, a power of two; code that is mapped no more gets a module that begins
            at a page.
    """
    yield from images
    others = [
        block
        for block in blocks
        if not any(image.base <= block.address < image.end for image in images)
    ]
    while others:
        first = others[0].address
        there = next((region for region in regions if region[0] <= first < region[1]), None)
        if there is None:  # mapped no more, or known by another address
            start = first & -page
            end = max(
                block.address + block.size for block in others if block.address < start + REACH
            )
        else:  # without the images in it
            start = max([there[0], *(image.end for image in images if image.end <= first)])
            end = min([there[1], *(image.base for image in images if image.base > first)])
        base = start + (first - start) // REACH * REACH
        end = min(end, base + REACH)
        yield Module(base, end, f"memory at {start:#x}")
        others = [block for block in others if not base <= block.address < end]


# --- source files


@define
class SourceCoverage:
    """The executed lines of a source file.

    Attributes:
        lines: number of a line that has code -> how often it was executed: the largest count among
            its statements in each function and inlined copy, added up. Of a statement that GCC's
            optimizer has copied, the copies are added up, too.
        functions: name -> (first line, how often it was entered).
    """

    lines: Counter[int] = field(factory=Counter)
    functions: dict[str, tuple[int, int]] = field(factory=dict)


def source_coverage(
    files: Iterable[LoadedFile], executed: ExecutionCounts, wanted: Callable[[int], bool] | None
) -> dict[str, SourceCoverage]:
    """Return the coverage of the source files that line tables name, by path.

    A function is left out where no row of a line table begins at its address.

    Args:
        files: the loaded files, with their debug information.
        executed: counts of executions by address.
        wanted: tells whether an address is to be looked at; None: all are.
    """
    found: dict[str, SourceCoverage] = {}
    for loaded in files:
        starts: dict[int, tuple[str, int]] = {}
        code: dict[tuple[str, int], list[_LineRow]] = {}
        for row in lines_of(loaded):
            if wanted is None or wanted(row.start + loaded.bias):
                code.setdefault((row.path, row.line), []).append(row)
                starts.setdefault(row.start, (row.path, row.line))
        begun: dict[tuple[str, int], set[tuple[int, int]]] = {}
        for path, line, column, start in _statements(loaded):
            if (path, line) in code and (wanted is None or wanted(start + loaded.bias)):
                begun.setdefault((path, line), set()).add((column, start))
        at_statements = {start for each in begun.values() for _, start in each}
        scopes = _scopes(loaded, starts.keys() | at_statements)
        for (name, line), found_rows in code.items():
            counts = {_copy(row.start, scopes): 0 for row in _telling(found_rows)}
            sums = Counter[tuple[tuple[int, int], int]]()
            for column, start in begun.get((name, line), ()):
                sums[_copy(start, scopes), column] += executed.count(start + loaded.bias)
            for (copy, _), count in sums.items():
                if copy in counts:
                    counts[copy] = max(counts[copy], count)
            for row in found_rows:
                copy = _copy(row.start, scopes)
                if copy in counts:
                    count = executed.count(row.start + loaded.bias)
                    counts[copy] = max(counts[copy], count)
            # files of the same source, such as a library that is loaded twice, are added up, too
            found.setdefault(name, SourceCoverage()).lines[line] += sum(counts.values())
        for function, start in _functions_of(loaded):
            if start not in starts:
                continue
            name, line = starts[start]
            functions = found[name].functions
            count = executed.count(start + loaded.bias)
            functions[function] = line, max(count, functions.get(function, (0, 0))[1])
    return found


def _functions_of(file: LoadedFile) -> Iterator[tuple[str, int]]:
    """Yield (name, link address) of each function that a file's debug information has.

    Where that is damaged, nothing more is yielded.
    """
    try:
        for function in units_of(file).functions:
            yield function.name, function.start
    except DAMAGE:
        return


@frozen
class _LineRow:
    """A row of a line table.

    Attributes:
        path: of the source file.
        line: number of the line.
        start: link address of its first byte.
        has_code: it has code of its own.
        is_stmt: a statement begins there.
    """

    path: str
    line: int
    start: int
    has_code: bool
    is_stmt: bool


def _telling(rows: Sequence[_LineRow]) -> Sequence[_LineRow]:
    """Return the rows of a line that say which functions and inlined copies have code of it.

    These are statements with code of their own; others may be among the code of another copy. Where
    there are none, they are the rows with code of their own, or else all rows.

    Args:
        rows: all rows of the line; at least one is returned.
    """
    for wanted in (
        [row for row in rows if row.is_stmt and row.has_code],
        [row for row in rows if row.has_code],
    ):
        if wanted:
            return wanted
    return rows


def _copy(start: int, scopes: Mapping[int, AddressScope | None]) -> tuple[int, int]:
    """Return what tells the function or inlined copy that code is in from others.

    Args:
        start: link address of the code.
        scopes: link address -> what it is in.

    Returns:
        (its link address, number of the inlined copy); (0, 0): it is not known.
    """
    scope = scopes.get(start)
    return (0, 0) if scope is None else (scope.start, scope.block)


def _scopes(file: LoadedFile, addresses: Collection[int]) -> dict[int, AddressScope | None]:
    """Return the functions and inlined copies that link addresses are in.

    Args:
        file: has them.
        addresses: the link addresses.

    Returns:
        {} where the file's debug information is damaged.
    """
    try:
        return scopes_at(units_of(file), addresses)
    except DAMAGE:
        return {}


def lines_of(file: LoadedFile) -> Iterator[_LineRow]:
    """Yield each of the rows() of a file's line tables.

    Where a table is damaged, nothing more is yielded.
    """
    try:
        info = dwarf(file)
        for unit in info.iter_CUs() if info is not None and info.has_debug_info else ():
            program = info.line_program_for_CU(unit)
            names = _Names(unit, program)
            for start, end, number, line, is_stmt in rows(program) if program is not None else ():
                yield _LineRow(names.of(number), line, start, end > start, is_stmt)
    except DAMAGE:
        return


def _statements(file: LoadedFile) -> Iterator[tuple[str, int, int, int]]:
    """Yield where statements begin in the units of a file that GCC has optimized.

    It copies code, as it unrolls loops and tests their conditions twice: a statement then begins
    at several addresses, which have its column. Without optimization such rows are parts of one
    statement, and other compilers, GCC before version 8 among them, have more rows than statements.
    Where a table is damaged, nothing more is yielded.

    Yields:
        (path of the source file, line, column, link address).
    """
    try:
        info = dwarf(file)
        for unit in info.iter_CUs() if info is not None and info.has_debug_info else ():
            if not _OPTIMIZED.search(text(unit.get_top_DIE(), "DW_AT_producer")):
                continue
            program = info.line_program_for_CU(unit)
            names = _Names(unit, program)
            for start, number, line, column in statements(program) if program is not None else ():
                yield names.of(number), line, column, start
    except DAMAGE:
        return


class _Names:
    """The paths of the source files that a unit's line table has by number."""

    def __init__(self, unit: Any, program: Any) -> None:
        """Prepare.

        Args:
            unit: pyelftools' compile unit.
            program: pyelftools' line program of that unit.
        """
        self._program = program
        self._known = dict[int, str]()
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        self._folder = folder.value.decode(errors="replace") if folder is not None else ""

    def of(self, number: int) -> str:
        """Return the path of a source file.

        Args:
            number: of the file in the line table: from 0 on in DWARF 5, from 1 on before.
        """
        if number not in self._known:
            header = self._program.header
            old = header.version < 5
            entry = header.file_entry[number - old]
            folders = [b"", *header.include_directory] if old else [*header.include_directory]
            folder = folders[entry.dir_index].decode(errors="replace")
            name = entry.name.decode(errors="replace")
            self._known[number] = posixpath.normpath(posixpath.join(self._folder, folder, name))
        return self._known[number]


# --- lcov


def lcov(sources: dict[str, SourceCoverage]) -> bytes:
    """Return the contents of an lcov tracefile: executed lines, and functions with their lines.

    Args:
        sources: path of a source file -> what of it was executed.
    """
    return "".join(_record(name, source) for name, source in sorted(sources.items())).encode()


def _record(name: str, source: SourceCoverage) -> str:
    """Return the part of an lcov tracefile that tells of one source file.

    Args:
        name: the file's path, as the tracefile has it.
        source: its lines and functions, and how often each was executed.
    """
    functions = sorted(
        (line, function, count) for function, (line, count) in source.functions.items()
    )
    known = "".join(
        f"FN:{line},{function.translate(CONTROLS)}\n" for line, function, _ in functions
    )
    entered = "".join(
        f"FNDA:{count},{function.translate(CONTROLS)}\n" for _, function, count in functions
    )
    lines = "".join(f"DA:{line},{source.lines[line]}\n" for line in sorted(source.lines))
    hit = sum(map(bool, source.lines.values()))
    return (
        f"TN:\nSF:{name.translate(CONTROLS)}\n{known}{entered}FNF:{len(functions)}\n"
        f"FNH:{sum(count > 0 for _, _, count in functions)}\n{lines}LF:{len(source.lines)}\n"
        f"LH:{hit}\n"
        "end_of_record\n"
    )


# --- HTML


def coverage_page(
    sources: dict[str, SourceCoverage], folder: str | Path, demangle: bool = True
) -> bytes:
    """Return a page of HTML: a table of the source files, and of each its lines and functions with
    how often they were executed.

    Args:
        sources: path of a source file -> what of it was executed.
        folder: where relative paths begin. A file that cannot be read is shown without its text.
        demangle: False: C++ and Rust names are as in the debug information.
    """
    shown = readable if demangle else str
    files = [
        {
            "name": name.translate(CONTROLS),
            "lines": [number for line in sorted(source.lines.items()) for number in line],
            "functions": [
                (shown(function).translate(CONTROLS), line, count)
                for function, (line, count) in sorted(
                    source.functions.items(), key=lambda row: row[1][0]
                )
            ],
            "text": _read(Path(folder) / name),
        }
        for name, source in sorted(sources.items())
    ]
    lines = [count for source in sources.values() for count in source.lines.values()]
    entered = [count for source in sources.values() for _, count in source.functions.values()]
    unread = sum(file["text"] is None for file in files)
    return page(
        "Coverage",
        [ChartView(key="coverage", title="Source files", chart="coverage", data={"files": files})],
        facts=[
            f"{_share(lines)} of {len(lines):,} lines",
            f"{_share(entered)} of {len(entered):,} functions",
            f"{len(files):,} file{'s' * (len(files) != 1)}",
        ],
        warnings=[
            f"{unread:,} of {len(files):,} files could not be read, and are shown without their "
            "text: say where relative paths begin (sources=, --sources)."
        ]
        * bool(unread),
    ).encode()


def _share(counts: Collection[int]) -> str:
    """Return the share of counts that are not 0, in per cent."""
    return f"{100 * sum(map(bool, counts)) / max(len(counts), 1):.1f} %"


def _read(path: Path) -> list[str] | None:
    """Return the lines of a source file, without characters that control a terminal; None where it
    cannot be read.
    """
    try:
        if not path.is_file():  # debug information may name a pipe or device, too
            return None
        text = path.read_text(errors="replace")
    except (OSError, ValueError):
        return None
    return text.removesuffix("\n").translate(_LINES).split("\n")
