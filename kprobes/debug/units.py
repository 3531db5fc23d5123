"""What a file's compilation units have: functions by name and address, types by name, lines."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

from attrs import frozen

from ..arch._base import Arch
from ..image import LoadedFile
from .expression import Unknown
from .file import DAMAGE, cached, children, dwarf
from .types import CType

_TYPES = {"structure_type": "struct ", "class_type": "struct ", "union_type": "union ", "enumeration_type": "enum ",
          "typedef": "", "base_type": ""}
_SCOPES = ("namespace", "structure_type", "class_type", "module")


@frozen(eq=False)
class Function:
    """A function, by its entry. start, end: link addresses; 0 where it has no code of its own. unit: its compilation
    unit."""

    name: str
    start: int
    end: int
    die: Any
    unit: Any


@frozen
class Line:
    """Code of a line. start, end: link addresses."""

    start: int
    end: int
    path: str
    line: int


def units_of(file: LoadedFile) -> Units:
    """The units of a file. Raises what is in DAMAGE."""
    return cached(file, "units", partial(Units, file))


class Units:
    """The units of one file; all is read when it is first asked for."""

    def __init__(self, file: LoadedFile) -> None:
        self.info = dwarf(file)
        self._tables: dict[int, tuple[list[Line], list[int]]] = {}
        self.units = [*self.info.iter_CUs()] if self.info is not None and self.info.has_debug_info else []

    @cached_property
    def _entries(self) -> tuple[list[Function], dict[str, Any]]:
        functions: list[Function] = []
        types: dict[str, Any] = {}
        for unit in self.units:
            todo = _top(unit)[::-1]
            while todo:
                die = todo.pop()
                tag = str(die.tag).removeprefix("DW_TAG_")
                if tag == "subprogram":
                    functions += _function(die, unit)
                elif tag in _TYPES and "DW_AT_declaration" not in die.attributes and "DW_AT_name" in die.attributes:
                    types.setdefault(spelling(_TYPES[tag] + text(die, "DW_AT_name")), die)
                if tag in _SCOPES:
                    todo += children(die)[::-1]
        return functions, types

    @property
    def types(self) -> dict[str, Any]:
        """Spelling of a type -> its entry."""
        return self._entries[1]

    @property
    def functions(self) -> list[Function]:
        return self._entries[0]

    @cached_property
    def _by_start(self) -> list[Function]:
        return sorted((f for f in self.functions if f.end > f.start), key=lambda f: f.start)

    def function_at(self, address: int) -> Function | None:
        """The function that has a link address."""
        at = bisect.bisect_right(self._entry_points, address) - 1
        return self._by_start[at] if at >= 0 and address < self._by_start[at].end else None

    @cached_property
    def _entry_points(self) -> list[int]:
        return [function.start for function in self._by_start]

    @cached_property
    def lines(self) -> list[Line]:
        """All code that has a line, by address."""
        found = [line for n in range(len(self.units)) for line in self._table(n)[0]]
        return sorted(found, key=lambda line: line.start)

    def line_at(self, address: int) -> Line | None:
        """The line of a link address. Only tables of units that say that they have code there are read."""
        for n, parts in enumerate(self._code):
            if parts is None or any(start <= address < end for start, end in parts):
                lines, starts = self._table(n)
                at = bisect.bisect_right(starts, address) - 1
                if at >= 0 and address < lines[at].end:
                    return lines[at]
        return None

    @cached_property
    def _code(self) -> list[list[tuple[int, int]] | None]:
        """Where each unit has code; None: it does not say."""
        return [_code_of(unit) for unit in self.units]

    def _table(self, n: int) -> tuple[list[Line], list[int]]:
        """The lines of a unit, by address, and where each begins; read once."""
        found = self._tables.get(n)
        if found is None:
            try:
                lines = sorted(_lines(self.info, self.units[n]), key=lambda line: line.start)
            except DAMAGE:
                lines = []
            found = self._tables[n] = lines, [line.start for line in lines]
        return found


def _code_of(unit: Any) -> list[tuple[int, int]] | None:
    try:
        return [*spans(unit.get_top_DIE(), unit)] or None
    except DAMAGE:
        return None


def _top(unit: Any) -> list[Any]:
    """What a unit has; nothing where it is damaged."""
    try:
        return children(unit.get_top_DIE())
    except DAMAGE:
        return []


def spelling(name: str) -> str:
    """A type's name with the words of C's integers in one order: `long unsigned int`, `unsigned long` -> `long
    unsigned`."""
    words = [word for word in name.split() if word not in ("const", "volatile")]
    if not {"char", "short", "long", "int", "unsigned", "signed"}.issuperset(words):
        return " ".join(words)
    useless = {"int"} if len(words) > 1 and set(words) != {"signed", "int"} else set()
    rest = sorted(word for word in words if word not in useless)
    return " ".join(word for word in rest if word != "signed" or "char" in rest) or "int"


def text(die: Any, name: str) -> str:
    """A text attribute, or ""."""
    found = die.attributes.get(name)
    return (found.value.decode("utf-8", "backslashreplace") if found is not None and isinstance(found.value, bytes)
            else "")


def named(die: Any) -> Any:
    """The entry that has an entry's name and type: of an instance or a definition, that of which it is one."""
    for _ in range(8):
        link = next((name for name in ("DW_AT_abstract_origin", "DW_AT_specification") if name in die.attributes), None)
        if link is None:
            break
        try:
            die = die.get_DIE_from_attribute(link)
        except DAMAGE:
            break
    return die


def _function(die: Any, unit: Any) -> Iterator[Function]:
    try:
        low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
        start = low.value if low is not None else 0
        end = 0 if high is None else high.value if high.form == "DW_FORM_addr" else start + high.value
        name = text(named(die), "DW_AT_name")
        if name:
            yield Function(name, start, end, die, unit)
    except DAMAGE:
        return


def _lines(info: Any, unit: Any) -> Iterator[Line]:
    program = info.line_program_for_CU(unit)
    if program is None:
        return
    files, before = program["file_entry"], None
    base = 0 if program["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if (before is not None and before.line and before.address < state.address and 0 <= before.file - base
            < len(files)):
            yield Line(before.address, state.address, _path(program, files[before.file - base], base), before.line)
        before = None if state.end_sequence else state


def _path(program: Any, entry: Any, base: int) -> str:
    name = entry.name.decode("utf-8", "backslashreplace") if isinstance(entry.name, bytes) else str(entry.name)
    directories = program["include_directory"]
    index = entry.dir_index - base
    if name.startswith("/") or not 0 <= index < len(directories) or (base == 0 and entry.dir_index == 0):
        return name
    directory = directories[index]
    return f"{directory.decode('utf-8', 'backslashreplace') if isinstance(directory, bytes) else directory}/{name}"


def source_path(unit: Any, file: int) -> str:
    """A source file by its number in the unit; "": there is none. Raises what is in DAMAGE."""
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return ""
    base = 0 if program["version"] >= 5 else 1
    files = program["file_entry"]
    return _path(program, files[file - base], base) if 0 <= file - base < len(files) else ""


def spans(die: Any, unit: Any) -> Iterator[tuple[int, int]]:
    """(start, end) of an entry's code, link addresses. Raises what is in DAMAGE."""
    low, high, ranges = (die.attributes.get(f"DW_AT_{name}") for name in ("low_pc", "high_pc", "ranges"))
    if ranges is None:
        if low is not None and high is not None:
            yield low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value
        return
    start = _base(unit)
    for entry in unit.dwarfinfo.range_lists().get_range_list_at_offset(ranges.value, cu=unit):
        if type(entry).__name__ == "BaseAddressEntry":
            start = entry.base_address
        else:
            bias = 0 if entry.is_absolute else start
            yield bias + entry.begin_offset, bias + entry.end_offset


def _base(unit: Any) -> int:
    base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    return base.value if base is not None else 0


def takes_a_word(type: CType, arch: Arch) -> bool:
    """True for parameters that take one word of the integer arguments."""
    return type.kind in ("int", "char", "bool", "enum", "pointer") and type.size <= arch.bits // 8


def inlined_in(die: Any, name: str) -> Iterator[int]:
    """Link addresses where a function stands inlined in another one."""
    todo = children(die)
    while todo:
        each = todo.pop()
        if each.tag == "DW_TAG_inlined_subroutine" and text(named(each), "DW_AT_name") == name:
            entry = next((each.attributes[a] for a in ("DW_AT_entry_pc", "DW_AT_low_pc") if a in each.attributes), None)
            if entry is not None and entry.form != "DW_FORM_udata":
                yield entry.value
        if each.has_children:
            todo += children(each)


def location(die: Any, function: Function, pc: int, attribute: str = "DW_AT_location") -> Any:
    """The operations of the expression that says where something is at a link address. Raises Unknown, and what is in
    DAMAGE."""
    from elftools.dwarf.dwarf_expr import DWARFExprParser
    from elftools.dwarf.locationlists import LocationParser

    unit = function.unit
    if attribute not in die.attributes:
        raise Unknown
    lists = unit.dwarfinfo.location_lists()
    found: Any = LocationParser(lists).parse_from_attribute(die.attributes[attribute], unit["version"], die)
    if isinstance(found, list):
        start, chosen = _base(unit), None
        for entry in found:
            if type(entry).__name__ == "BaseAddressEntry":
                start = entry.base_address
                continue
            low, high = ((entry.begin_offset, entry.end_offset) if entry.is_absolute
                         else (start + entry.begin_offset, start + entry.end_offset))
            if low <= pc < high:
                chosen = entry.loc_expr
        if chosen is None:
            raise Unknown
        return DWARFExprParser(unit.structs).parse_expr(chosen)
    return DWARFExprParser(unit.structs).parse_expr(found.loc_expr)
