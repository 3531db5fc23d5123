"""Lines of source code by address: a unit's table of lines."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from attrs import frozen

from .file import contents
from .quick import rows_of
from .scan import leb

_STRING, _LINE_STRP = 0x08, 0x1F  #: DW_FORM of names in the header, and in .debug_line_str
_LONG: Final = 0xFFFF_FFFF  #: length of a table in the 64-bit format
_WORDS: Final = 5  #: of a row: start, end, file, line, is_stmt


@frozen
class Line:
    """The code of a source line, or a part of it.

    Attributes:
        start: link address of the first byte.
        end: link address behind the last; `start` for a statement that has no code of its own.
        path: of the source file.
        line: number of the line; 0: of none.
        is_stmt: a debugger should stop here: a statement begins.
    """

    start: int
    end: int
    path: str
    line: int
    is_stmt: bool = True


class LineTable:
    """The lines of a unit that have code, by address.

    Line objects are made when they are asked for: a unit of C++ has hundreds of thousands.
    """

    def __init__(
        self, lines: Sequence[Line], rows: memoryview | None = None, program: Any = None
    ) -> None:
        """Keep the lines, in one of two forms.

        Args:
            lines: the lines as objects; [] where there are `rows`.
            rows: the lines as five words each, as rows_of() gives them; None: `lines` has them.
            program: pyelftools' line program, whose header has the files' names; None: no `rows`.
        """
        self._lines = sorted(lines, key=lambda line: line.start)
        self._rows = rows
        self._program = program
        self._paths: dict[int, str] = {}

    @cached_property
    def _order(self) -> list[int]:
        """The indices of rows whose files are known, by address."""
        assert self._rows is not None
        starts = self._rows[0::_WORDS].tolist()
        files = self._rows[2::_WORDS].tolist()
        base = _base(self._program)
        count = len(self._program["file_entry"])
        return sorted(
            (n for n, file in enumerate(files) if 0 <= file - base < count), key=starts.__getitem__
        )

    @cached_property
    def _starts(self) -> list[int]:
        """The lines' first addresses, ascending."""
        if self._rows is None:
            return [line.start for line in self._lines]
        starts = self._rows[0::_WORDS].tolist()
        return [starts[n] for n in self._order]

    def _line(self, at: int) -> Line:
        """Return the n-th line by address, `at` from 0."""
        if self._rows is None:
            return self._lines[at]
        n = _WORDS * self._order[at]
        start, end, file, line, is_stmt = self._rows[n : n + _WORDS]
        if file not in self._paths:
            base = _base(self._program)
            self._paths[file] = path_in(
                self._program, self._program["file_entry"][file - base], base
            )
        return Line(start, end, self._paths[file], line, bool(is_stmt))

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines by address."""
        return map(self._line, range(len(self._starts)))

    def between(self, start: int, end: int) -> list[Line]:
        """Return the lines whose code begins in [start, end): link addresses, in their order."""
        first, behind = (
            bisect.bisect_left(self._starts, start),
            bisect.bisect_left(self._starts, end),
        )
        return [self._line(at) for at in range(first, behind)]

    def at(self, address: int) -> Line | None:
        """Return the line whose code a link address is in; None: it is in none."""
        at = bisect.bisect_right(self._starts, address) - 1
        found = self._line(at) if at >= 0 else None
        return found if found is not None and address < found.end else None

    def of_file(self, wanted: Any) -> Iterator[Line]:
        """Yield the lines of the source files whose paths `wanted` accepts.

        Args:
            wanted: path -> True for a file that is wanted.
        """
        if self._rows is None:
            yield from (line for line in self._lines if wanted(line.path))
            return
        base = _base(self._program)
        entries = enumerate(self._program["file_entry"], base)
        files = {n for n, entry in entries if wanted(path_in(self._program, entry, base))}
        numbers = self._rows[2::_WORDS].tolist()
        yield from (self._line(at) for at, n in enumerate(self._order) if numbers[n] in files)


def is_of(path: str, wanted: str) -> bool:
    """Whether a path ends in another, component by component: "src/a.c" ends in "a.c", not in ".c".

    Args:
        path: the source file's, as the compiler saw it.
        wanted: as a user wrote it.
    """
    given = wanted.split("/")
    return path.split("/")[-len(given) :] == given


def line_table(info: Any, unit: Any) -> LineTable:
    """Decode the table of lines of a unit, in C where possible; a unit without one gets an empty
    table.

    Args:
        info: pyelftools' DWARFInfo of the file.
        unit: pyelftools' view of the unit.

    Raises:
        errors in DAMAGE: the table is damaged.
    """
    program = info.line_program_for_CU(unit)
    if program is None:
        return LineTable([])
    if program["version"] < 4 or program["maximum_operations_per_instruction"] == 1:
        facts = {
            "address": program.structs.address_size,
            "least": program["minimum_instruction_length"],
            "is_stmt": bool(program["default_is_stmt"]),
            "line_base": program["line_base"],
            "line_range": program["line_range"],
            "opcode_base": program["opcode_base"],
        }
        data = contents(info.debug_line_sec)
        rows = rows_of(
            data,
            program.program_start_offset,
            program.program_end_offset,
            facts,
            not info.config.little_endian,
        )
        if rows is not None:
            return LineTable([], rows, program)
    return LineTable([*_lines(program)])


class FileNameSearch:
    """Looks for a source file's name in headers of line tables, without decoding their entries.

    A unit of C++ names hundreds of files, and pyelftools takes 20 microseconds for each.
    Source: DWARF 5, section 6.2.4.
    """

    def __init__(self, info: Any, name: bytes) -> None:
        """Find where .debug_line_str has the name.

        Args:
            info: pyelftools' DWARFInfo of the file that has the tables.
            name: the source file's, without its folder.

        Raises:
            errors in DAMAGE: a section is damaged.
        """
        self._info = info
        self._order: Literal["little", "big"] = "little" if info.config.little_endian else "big"
        section = info.debug_line_sec
        self._data = b"" if section is None else contents(section)
        self._name = name
        self._text = name + b"\0"
        #: what refers to the name in a header: the lower 32 bits of its offset in .debug_line_str
        self._references: list[bytes] = []
        strings = info.debug_line_str_sec
        if strings is not None:
            texts = contents(strings)
            at = texts.find(self._text)
            while at >= 0:
                # an offset may be anywhere in the text: names of one end are kept as one
                start = texts.rfind(b"\0", 0, at) + 1
                self._references += [n.to_bytes(4, self._order) for n in range(start, at + 1)]
                at = texts.find(self._text, at + 1)

    def is_in(self, unit: Any) -> bool:
        """Whether a unit's line table names the file; True, too, where a name in it is in a form
        that is not read.

        Args:
            unit: pyelftools' view of the unit.

        Raises:
            errors in DAMAGE: the table is damaged.
        """
        if not self._may_be_in(unit):
            return False
        program = self._info.line_program_for_CU(unit)
        names = [entry.name for entry in program["file_entry"]]
        return any(
            not isinstance(each, bytes) or each.rpartition(b"/")[2] == self._name for each in names
        )

    def _may_be_in(self, unit: Any) -> bool:
        """Whether the name's bytes are in the header of a unit's line table; True, too, where the
        header has names in a form that is not searched.

        Args:
            unit: pyelftools' view of the unit.

        Raises:
            errors in DAMAGE: the table is damaged.
        """
        begin = unit.get_top_DIE().attributes.get("DW_AT_stmt_list")
        if begin is None:
            return False
        data, at, word = self._data, begin.value + 4, 4
        if self._number(begin.value, 4) == _LONG:
            at += 8
            word = 8
        version = self._number(at, 2)
        at += 2 if version < 5 else 4
        end = at + word + self._number(at, word)
        if version < 5:
            return data.find(self._text, at, end) >= 0
        # behind five numbers of one byte: how many opcodes there are, their lengths, and the
        # directories' format. Compilers give names of directories and of files one form
        count = at + word + 5
        form = leb(data, count + data[count] + 2)[0]
        if form == _STRING:
            return data.find(self._text, at, end) >= 0
        if form != _LINE_STRP:
            return True
        return any(data.find(each, at, end) >= 0 for each in self._references)

    def _number(self, at: int, size: int) -> int:
        """Return a number of the section.

        Args:
            at: its offset.
            size: its bytes.
        """
        return int.from_bytes(self._data[at : at + size], self._order)


def _base(program: Any) -> int:
    """Return the number by which a line program names its first file: 0 in DWARF 5, else 1."""
    return 0 if program["version"] >= 5 else 1


def _lines(program: Any) -> Iterator[Line]:
    """Execute a line program, and yield a Line for each of its rows() whose file is known.

    Args:
        program: the unit's line program, as pyelftools reads it.
    """
    files = program["file_entry"]
    base = 0 if program["version"] >= 5 else 1
    for start, end, file, line, is_stmt in rows(program):
        if 0 <= file - base < len(files):
            yield Line(start, end, path_in(program, files[file - base], base), line, is_stmt)


def rows(program: Any) -> Iterator[tuple[int, int, int, int, bool]]:
    """Execute a line program, and yield its rows of code, and the statements without code of their
    own that begin where the next row does: GCC writes several rows for one address.

    Rows of no line (0) are left out.

    Args:
        program: the unit's line program, as pyelftools reads it.

    Yields:
        (first link address, link address behind the last, number of the file, line, is_stmt).
    """
    before = None
    is_stmt = False
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        here = False
        again = False
        if before is not None and before.line:
            here = before.address == state.address and not state.end_sequence
            again = here and (before.file, before.line) == (state.file, state.line)
            if before.address < state.address or (here and is_stmt and not again):
                yield before.address, state.address, before.file, before.line, is_stmt
        is_stmt = bool(state.is_stmt) or (again and is_stmt)
        before = None if state.end_sequence else state


def statements(program: Any) -> Iterator[tuple[int, int, int, int]]:
    """Yield where statements begin, also several at one address.

    Args:
        program: the unit's line program, as pyelftools reads it.

    Yields:
        (link address, number of the file, line, column).
    """
    for entry in program.get_entries():
        state = entry.state
        if state is not None and state.is_stmt and state.line and not state.end_sequence:
            yield state.address, state.file, state.line, state.column


def path_in(program: Any, entry: Any, base: int) -> str:
    """Return a source file's path, which may be relative.

    That is the name alone where it is absolute, where the directory is not in the table, and in
    DWARF 5 where it is the compilation's.

    Args:
        program: the unit's line program, as pyelftools reads it.
        entry: the file's, in that program's header.
        base: number of the first file: 0 in DWARF 5, else 1.
    """
    name = (
        entry.name.decode("utf-8", "backslashreplace")
        if isinstance(entry.name, bytes)
        else str(entry.name)
    )
    directories = program["include_directory"]
    index = entry.dir_index - base
    if (
        name.startswith("/")
        or not 0 <= index < len(directories)
        or (base == 0 and entry.dir_index == 0)
    ):
        return name
    directory = directories[index]
    if isinstance(directory, bytes):
        directory = directory.decode("utf-8", "backslashreplace")
    return f"{directory}/{name}"


def source_path(unit: Any, file: int) -> str:
    """Return the path of a source file from its number in a unit's table.

    Args:
        unit: pyelftools' view of the unit.
        file: number of the file in the unit's table of lines.

    Returns:
        The path; "": there is no such file.

    Raises:
        errors in DAMAGE: the table is damaged.
    """
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return ""
    base = 0 if program["version"] >= 5 else 1
    files = program["file_entry"]
    return path_in(program, files[file - base], base) if 0 <= file - base < len(files) else ""
