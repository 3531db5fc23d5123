"""The compilation units of one file: functions by address, types and variables by name, lines."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from typing import Any

from attrs import evolve, field, frozen

from ..arch._base import Arch
from ..btf import FUNC
from ..image import LoadedFile, build_id
from ..symbols import Symbols
from .btf_units import btf_of, entries_of_btf, identity_of_btf, info_of_entries
from .cache import (
    SMALL,
    NameIndex,
    UnpackedSection,
    identity_of,
    kept_entries,
    kept_names,
    packed_names,
)
from .expression import UnknownValue
from .file import (
    DAMAGE,
    all_of,
    alternative_of,
    cached,
    children,
    contents,
    contents_as_read,
    dwarf_of_source,
    executable_ranges,
    text,
)
from .lines import FileNameSearch, Line, LineTable, is_of, line_table
from .pieces import ADDRESS_FORMS, base_address, spans
from .quick import (
    AddressScope,
    CopyScanner,
    InlinedCopy,
    PlaceScanner,
    QuickScanner,
    SourceCode,
    copy_scanner,
    line_scanner,
    may_name_template,
    place_scanner,
    quick_ranges,
    quick_scanner,
)
from .scan import (
    VARIABLE,
    AddressRanges,
    Header,
    NamedType,
    Sections,
    UnitContents,
    UnitScanner,
    aranges,
    headers,
    type_headers,
)
from .section import buffer_of
from .split_gnu import may_be_split
from .types import CType

_SCOPES = (
    "DW_TAG_namespace",
    "DW_TAG_structure_type",
    "DW_TAG_class_type",
    "DW_TAG_union_type",
    "DW_TAG_module",
)
#: what names in the index begin with: they say all scopes, or leave them out
_WHOLE, _BARE = "*", "."
CALL_SITES = ("DW_TAG_call_site", "DW_TAG_GNU_call_site")
_WITH_CALLS = ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine")


@frozen(eq=False)
class Function:
    """A function, by its entry of debug information.

    Attributes:
        name: its name in the source.
        start: link address at which it is entered.
        end: link address behind the range of code that has `start`; it may have further ranges.
        die: its entry.
        unit: pyelftools' view of its compilation unit.
    """

    name: str
    start: int
    end: int
    die: Any
    unit: Any
    #: offset of an entry -> what scopes_in() gives for it
    _scopes: dict[int, list[tuple[Any, list[tuple[int, int]]]]] = field(
        factory=dict, init=False, repr=False
    )

    def scopes_in(self, die: Any) -> list[tuple[Any, list[tuple[int, int]]]]:
        """Return the blocks and inlined calls that are directly in an entry of this function, each
        with the ranges of its code. The list is made once. Damaged ones are left out.

        Args:
            die: the function's entry, or that of a block or inlined call.

        Raises:
            errors in DAMAGE: the list of entries is damaged.
        """
        found = self._scopes.get(die.offset)
        if found is None:
            found = []
            for child in children(die):
                if child.tag in ("DW_TAG_inlined_subroutine", "DW_TAG_lexical_block"):
                    with suppress(*DAMAGE):
                        found.append((child, [*spans(child, self.unit)]))
            self._scopes[die.offset] = found
        return found


def is_of_gnu(function: Function) -> bool:
    """Return True if GCC has compiled a function's unit."""
    return text(function.unit.get_top_DIE(), "DW_AT_producer").startswith("GNU")


def units_of(file: LoadedFile, symbols: Symbols | None = None, bits: int = 64) -> Units:
    """Return the units of a file, made once; of a file without DWARF those made of its BTF, if any.
    These are made again when symbols have changed.

    Args:
        file: the file.
        symbols: the machine's, which give the addresses of BTF's functions; None: BTF is not read.
        bits: of an address.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    units = cached(file, "units", partial(Units, file))
    if symbols is None or units.info is not None:
        return units
    if file.cache.get("btf units", (-1, None))[0] != symbols.changes:
        file.cache["btf units"] = symbols.changes, _units_of_btf(file, symbols, bits) or units
    return file.cache["btf units"][1]  # type: ignore[no-any-return]


def _units_of_btf(file: LoadedFile, symbols: Symbols, bits: int) -> Units | None:
    """Return the unit that is made of a file's BTF; None: it has none, or it is damaged. What is
    made of a large file is kept on disk.

    Args:
        file: the file.
        symbols: the guest's, which say where functions are.
        bits: of addresses.
    """
    identity = identity_of_btf(file, symbols.files, symbols, bits)
    if not identity:
        return None
    make = partial(_made_of_btf, file, symbols, bits)
    entries = kept_entries(identity, make) if len(file.data) >= SMALL else make()
    return Units(file, info_of_entries(entries, file, bits)) if entries[0] else None


def _made_of_btf(file: LoadedFile, symbols: Symbols, bits: int) -> tuple[bytes, bytes]:
    """Write a file's BTF as DWARF.

    Args:
        file: the file.
        symbols: the guest's, which say where functions are.
        bits: of addresses.

    Returns:
        (contents of .debug_info, contents of .debug_abbrev); (b"", b"") where the file has no BTF,
        or that is damaged.
    """
    types = btf_of(file, symbols.files)
    if types is None:
        return b"", b""
    names = {each.name for each in types.types[types.own :] if each.kind == FUNC}
    functions = {
        name: [(symbol.address - file.bias, symbol.size or 1) for symbol in symbols.of_name(name)]
        for name in names
    }
    return entries_of_btf(types, functions, bits)


class Units:
    """The units of one file. Each thing is read when it is first asked for, from the units that
    have it.

    Addresses are link addresses; `n` is always the index of a unit in `headers`.

    Attributes:
        info: pyelftools' DWARFInfo of the file; None where it has no DWARF.
        headers: headers of the units, decoded as far as they are asked for.
    """

    def __init__(
        self, file: LoadedFile, given: Any = None, only: frozenset[int] | None = None
    ) -> None:
        """Find the file's sections; append the units of split DWARF (.dwo files) if it has some.

        Args:
            file: the file.
            given: DWARFInfo that was made of the file's BTF; None: the file's own DWARF is read.
            only: offsets of the units whose types are found by their names; None: of all.

        Raises:
            errors in DAMAGE: the debug information is damaged.
        """
        self.info: Any
        self._file = file
        self.info, path, data = dwarf_of_source(file) if given is None else (given, "", b"")
        self._source = path, data
        self._only = only
        order = "little" if self.info is None or self.info.config.little_endian else "big"
        self._sections = _sections(self.info, order)
        self.headers = headers(self._sections)
        if may_be_split(self._sections):
            # lists of a .dwo file are found otherwise, and its lines are in the program's file
            self._sections = evolve(self._sections, ranges=b"", range_lists=b"", lines=b"")
            from .split import join_split_units  # imported here: few programs are, it takes 3 ms

            before = self.info.debug_info_sec
            join_split_units(self.info, path, self._sections, self.headers)
            if self.info.debug_info_sec is not before:
                data = b""
                joined = _sections(self.info, order)
                self._sections = evolve(joined, ranges=b"", range_lists=b"", lines=b"")
                self.headers = headers(self._sections)
        self._data = data  # the file that has the entries; b"": they are of several
        self._scanner = UnitScanner(self._sections)
        self._type_headers = type_headers(self._sections)
        self._functions: dict[int, Function | None] = {}
        self._pieces: dict[tuple[int, bool], tuple[list[tuple[int, int, int]], list[int]]] = {}
        self._tables: dict[int, LineTable] = {}

    def unit(self, n: int) -> Any:
        """Return pyelftools' view of the n-th unit. Raises errors in DAMAGE: it is damaged."""
        return self.info.get_CU_at(self.headers[n].offset)

    # --- which unit

    @cached_property
    def _executable(self) -> list[int]:
        """Bounds of the link addresses whose contents the file says are executed, ascending: where
        a range begins, where it ends, where the next one begins; [] where the file does not say.
        """
        try:
            ranges = sorted(executable_ranges(self._file))
        except DAMAGE:
            return []
        bounds: list[int] = []
        for start, end in ranges:
            if bounds and start <= bounds[-1]:
                bounds[-1] = max(bounds[-1], end)
            else:
                bounds += start, end
        return bounds

    def has_code(self, address: int) -> bool:
        """Whether a link address is in code of the file; True where the file does not say where
        its code is.

        Linkers leave the entries of functions that they throw away, and the rows of their lines: at
        0, or behind the last address.

        Args:
            address: the link address.
        """
        bounds = self._executable
        return not bounds or bool(bisect.bisect_right(bounds, address) & 1)

    @cached_property
    def _listed(self) -> AddressRanges:
        """The ranges of .debug_aranges; none where the file has no such section."""
        section = getattr(self.info, "debug_aranges_sec", None)
        data = b"" if section is None else contents(section)
        found: Any = quick_ranges(data, self._sections.order == "big")
        if found is None:
            rows = sorted(aranges(data, self._sections.order))
            found = [*chain.from_iterable(rows)]
        return AddressRanges(found)

    @cached_property
    def _unlisted(self) -> dict[int, list[tuple[int, int]] | None]:
        """n -> (start, end) of each range of code, for units that .debug_aranges leaves out.

        None in the place of a list: the unit does not say where it has code.
        """
        listed = {self.headers.number_at(offset) for offset in self._listed.units()}
        return {n: self._code_of(n) for n in range(len(self.headers)) if n not in listed}

    def _code_of(self, n: int) -> list[tuple[int, int]] | None:
        """Return where a unit has code, by its top entry.

        Args:
            n: index of the unit in `headers`.

        Returns:
            (start, end) link addresses of each range; [] for a unit without code; None: the entry
            does not say, or is damaged.
        """
        try:
            if self._scanner.has_no_code(self.headers[n]):
                return []
            unit = self.unit(n)
            return [*spans(unit.get_top_DIE(), unit)] or None
        except DAMAGE:
            return None

    def units_with(self, start: int, end: int) -> Iterator[int]:
        """Yield the indices in `headers` of the units that may have code in a range.

        First come those that .debug_aranges names. Unless it names units for the whole range, those
        that it does not list follow, if their own entries name the range or do not say where their
        code is. A unit may come several times.

        Args:
            start: first link address.
            end: link address behind the range.
        """
        told = start  # where the first address is of which nothing is said
        for first, last, offset in self._listed.find(start, end):
            n = self.headers.number_at(offset)
            if n is not None:
                told = max(told, last) if first <= told else told
                yield n
        if told >= end:
            return
        for n, parts in self._unlisted.items():
            if parts is None or any(first < end and start < last for first, last in parts):
                yield n

    # --- functions

    @cached_property
    def _places(self) -> PlaceScanner | None:
        """The scanner of what is around addresses in C; None where this host cannot run it.

        Raises:
            errors in DAMAGE: a section is damaged.
        """
        self._unpack(len(self._sections.info), True, True)
        return place_scanner(
            self._sections, lambda offset: text(named(self._entry(offset)), "DW_AT_name")
        )

    def places_of(self, addresses: Iterable[int]) -> dict[int, AddressScope]:
        """Return the functions and inlined copies that link addresses are in; those of which the
        scan in C cannot say it are left out.

        Args:
            addresses: the link addresses, which have code.
        """
        by_unit: dict[int, list[tuple[int, int]]] = {}
        wanted: list[tuple[int, int]] = []
        offset = until = 0  # of the address before, whose function most have
        for address in sorted(set(addresses)):
            if address >= until:
                found = self._entry_of_code(address)
                if found is None:
                    continue
                n, offset, until = found
                wanted = by_unit.setdefault(n, [])
            wanted.append((offset, address))
        places: dict[int, AddressScope] = {}
        for n, wanted in by_unit.items():
            try:
                scanner = self._places
                if scanner is None:
                    break
                places |= scanner.scan(self.headers[n], self._tables_of(n), sorted(wanted))
            except DAMAGE:
                continue
        return places

    def _entry_of_code(self, address: int) -> tuple[int, int, int] | None:
        """Return the entry of the function that has code at a link address. Functions nested in
        others are looked for last.

        Returns:
            (index of the unit in `headers`, offset of the entry, link address behind the code);
            None: no function has.
        """
        for nested in False, True:
            for n in self.units_with(address, address + 1):
                piece = self._piece_at(n, address, nested)
                if piece is not None:
                    return n, *piece
        return None

    @cached_property
    def _quick(self) -> QuickScanner | None:
        """The scanner of units in C; None where this host cannot run it."""
        return quick_scanner(self._sections)

    def _contents(self, n: int, deep: bool, types: bool) -> UnitContents:
        """Scan a unit: in C if possible, else in Python.

        Args:
            n: index of the unit in `headers`.
            deep: True: also what stands within functions.
            types: True: types are wanted; False: functions. The scan in Python gives both.

        Returns:
            Its functions or types; nothing where it is damaged.
        """
        try:
            found = None
            if self._quick is not None:
                header = self.headers[n]
                self._unpack(header.end, types, not types)
                found = self._quick.scan(header, self._tables_of(n), deep, types)
            if found is None:
                unit = self.unit(n)
                found = self._scanner.scan(
                    self.headers[n],
                    partial(_address, self.info, unit),
                    partial(_text, self.info, unit),
                    deep,
                )
            return found
        except DAMAGE:
            return UnitContents()

    def _unpack(self, end: int, texts: bool, ranges: bool) -> None:
        """Decompress the parts of sections that C code is about to read directly.

        Args:
            end: offset in .debug_info up to which they are needed.
            texts: True: sections of strings as well.
            ranges: True: sections of ranges as well.

        Raises:
            errors in DAMAGE: a section is damaged.
        """
        sections = self._sections
        if isinstance(sections.info, UnpackedSection):
            sections.info.reach(end)
        if texts:
            all_of(sections.strings)
            all_of(sections.line_strings)
        if ranges:
            all_of(sections.ranges)
            all_of(sections.range_lists)

    def _tables_of(self, n: int) -> tuple[bytes, bytes]:
        """Return (the n-th unit's part of .debug_addr, of .debug_str_offsets); b"": it has none."""
        names = ("addr", "addr_base"), ("str_offsets", "str_offsets_base")
        found = []
        for name, base in names:
            section = getattr(self.info, f"debug_{name}_sec", None)
            start = (
                None
                if section is None
                else self.unit(n).get_top_DIE().attributes.get(f"DW_AT_{base}")
            )
            found.append(
                b"" if section is None or start is None else contents(section)[start.value :]
            )
        return found[0], found[1]

    def _code(self, n: int, nested: bool = False) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the ranges of code of a unit's functions, by address. Empty ranges, and those that
        do not begin in code of the file (has_code()), are left out.

        Args:
            n: index of the unit in `headers`.
            nested: True: also of those that are nested in others.

        Returns:
            ((start, end, offset of the function's entry) of each range, the starts alone).
        """
        if (n, nested) not in self._pieces:
            found: list[tuple[int, int, int]] = []
            for start, end, offset in self._contents(n, nested, False).functions:
                found += [(start, end, offset)] if end else self._parts(n, offset)
            bounds = self._executable
            found = sorted(
                piece
                for piece in found
                if piece[1] > piece[0] and (not bounds or bisect.bisect_right(bounds, piece[0]) & 1)
            )
            self._pieces[n, nested] = found, [start for start, _, _ in found]
        return self._pieces[n, nested]

    def _parts(self, n: int, offset: int) -> list[tuple[int, int, int]]:
        """Return the ranges of code of one function.

        Args:
            n: index of the unit in `headers`.
            offset: of the function's entry in .debug_info.

        Returns:
            (start, end, `offset`) of each range, link addresses; [] where the entry is damaged.
        """
        try:
            unit = self.unit(n)
            return [
                (start, end, offset)
                for start, end in spans(unit.get_DIE_from_refaddr(offset), unit)
            ]
        except DAMAGE:
            return []

    def function_at(self, address: int) -> Function | None:
        """Return the function that has code at a link address; None: no function has.

        Functions nested in others are looked for last.
        """
        if not self.has_code(address):
            return None
        for nested in False, True:
            for n in self.units_with(address, address + 1):
                piece = self._piece_at(n, address, nested)
                found = None if piece is None else self.function_of_entry(n, piece[0])
                if found is not None:
                    return found
        return None

    def _piece_at(self, n: int, address: int, nested: bool) -> tuple[int, int] | None:
        """Return the n-th unit's function that has code at a link address.

        Args:
            n: index of the unit in `headers`.
            address: the link address.
            nested: True: functions nested in others count.

        Returns:
            (offset of its entry, link address up to which its code goes on, or another's begins);
            None: no function has.
        """
        pieces, starts = self._code(n, nested)
        behind = bisect.bisect_right(starts, address)
        if not behind or address >= pieces[behind - 1][1]:
            return None
        end = pieces[behind - 1][1]
        return pieces[behind - 1][2], min([end, *starts[behind : behind + 1]])

    def function_of_entry(self, n: int, offset: int) -> Function | None:
        """Return the function that an entry describes, made once.

        Args:
            n: index of its unit in `headers`.
            offset: of the entry in .debug_info.

        Returns:
            The function; None: the entry has no name or no code, or is damaged.
        """
        if offset not in self._functions:
            try:
                unit = self.unit(n)
                self._functions[offset] = _function(unit.get_DIE_from_refaddr(offset), unit)
            except DAMAGE:
                self._functions[offset] = None
        return self._functions[offset]

    @cached_property
    def functions(self) -> list[Function]:
        """All functions that have code."""
        return [function for n in range(len(self.headers)) for function in self.functions_of(n)]

    def functions_of(self, n: int) -> Iterator[Function]:
        """Yield the functions of the n-th unit that have code."""
        for offset in dict.fromkeys(offset for _, _, offset in self._code(n)[0]):
            found = self.function_of_entry(n, offset)
            if found is not None:
                yield found

    def inlined_copies(self, name: str) -> Iterator[tuple[int, list[InlinedCopy] | None]]:
        """Yield what a scan in C finds of the inlined copies of functions of a name.

        Args:
            name: of the functions, without scopes.

        Yields:
            (index of a unit in `headers`, its copies); None in the place of the copies: the unit
            may have some, and C cannot say which.

        Raises:
            errors in DAMAGE: a section is damaged.
        """
        scanner = None
        if self._quick is not None:
            self._unpack(len(self._sections.info), True, False)
            scanner = copy_scanner(self._sections, name)
        if scanner is None:
            for n in self._units_with_copies(name):
                yield n, None
            return
        again = []  # units whose copies may be of functions that only a later unit names
        are_all_read = True
        for n in range(len(self.headers)):
            found = self._scanned_copies(scanner, n)
            are_all_read &= found is not None
            if scanner.may_be_of_others:
                again.append(n)
            elif found is None or found:
                yield n, found
        if not are_all_read:  # and the functions that the others name are not known
            yield from ((n, None) for n in again)
            return
        known = -1
        while known != scanner.known:
            known = scanner.known
            found_again = {n: self._scanned_copies(scanner, n) for n in again}
        yield from found_again.items()

    def _scanned_copies(self, scanner: CopyScanner, n: int) -> list[InlinedCopy] | None:
        """Return the inlined copies that a scan in C finds in a unit.

        Args:
            scanner: of the file and the name.
            n: index of the unit in `headers`.

        Returns:
            None: C cannot say.
        """
        try:
            return scanner.scan(self.headers[n], self._tables_of(n))
        except DAMAGE:
            return None

    def _units_with_copies(self, name: str) -> Iterator[int]:
        """Yield the indices in `headers` of the units that may have inlined copies of a function.

        Entries are not read: looking for a name that nothing has would take minutes of a big
        program. A unit is left out if it does not refer to the name's text, nor to entries of other
        units as the originals of its copies. None is left out where the file has the text, and
        .debug_str_offsets, by which units name texts by number.

        Args:
            name: of the function, without scopes.

        Raises:
            errors in DAMAGE: a section is damaged.
        """
        sections = self._sections
        start = name.encode("utf-8", "surrogatepass")
        wanted = [start + b"\0", start + b"<"][: 1 + may_name_template(name)]
        texts = [
            all_of(sections.strings),
            all_of(sections.line_strings),
            all_of(sections.alternative),
        ]
        places = [at for data in texts for each in wanted for at in _occurrences(data, each)]
        by_number = bool(places) and getattr(self.info, "debug_str_offsets_sec", None) is not None
        references = [at.to_bytes(4, sections.order) for at in dict.fromkeys(places)]
        info = all_of(sections.info)
        for n, header in enumerate(self.headers):
            if (
                by_number
                or any(
                    info.find(each, header.first, header.end) >= 0
                    for each in (*wanted, *references)
                )
                or self._scanner.has_originals_elsewhere(header)
            ):
                yield n

    # --- types

    @cached_property
    def alternative(self) -> Units | None:
        """The units that dwz -m has moved out of this file, and of others, to an alternative file.
        By names only types of units that this file imports are found. None: nothing was moved, or
        the alternative file is not here or damaged.
        """
        try:
            found = alternative_of(self._file, *self._source)
            return None if found is None else Units(found, only=self._imported())
        except DAMAGE:
            return None

    def _imported(self) -> frozenset[int]:
        """Return the offsets of the units of the alternative file that units of this file import,
        or that imported units import.

        Raises:
            errors in DAMAGE: the debug information is damaged.
        """
        found: set[int] = set()
        todo = [self.unit(n) for n in range(len(self.headers))]
        while todo:
            for entry in _imports(todo.pop()):
                unit = entry.get_DIE_from_attribute("DW_AT_import").cu
                if unit.dwarfinfo is not self.info and unit.cu_offset not in found:
                    found.add(unit.cu_offset)
                    todo.append(unit)
        return frozenset(found)

    @cached_property
    def _names(self) -> NameIndex:
        """The table of names of types and global variables -> offsets of their entries; kept on
        disk if big.

        Each name begins with _WHOLE (it has all of its scopes: "*geo::Table") or _BARE (it has none
        of its scopes: ".Table").
        """
        if len(self._sections.info) + len(self._sections.types) < SMALL:
            return NameIndex(packed_names(self._all_names()))
        build = build_id(self._data) if self._data else ""
        if build:
            return kept_names(self._identity(identity_of(self._data, build)), self._all_names)
        digest = hashlib.blake2b(self._sections.order.encode(), digest_size=20)
        for part in (
            self._sections.info,
            self._sections.abbrev,
            self._sections.strings,
            self._sections.line_strings,
            self._sections.types,
            self._sections.alternative,
        ):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(buffer_of(all_of(part)))
        return kept_names(self._identity(digest.digest()), self._all_names)

    def _identity(self, contents: bytes) -> bytes:
        """Return the key of the table of names in the cache.

        Args:
            contents: key of the contents of the file that has the entries.
        """
        if self._only is None and not self._sections.alternative:
            return contents
        # the alternative file, which has names, may be missing the next time
        digest = hashlib.blake2b(contents, digest_size=20)
        digest.update(len(self._sections.alternative).to_bytes(8, "little"))
        for offset in sorted(self._only or ()):
            digest.update(offset.to_bytes(8, "little"))
        return digest.digest()

    def _all_names(self) -> Iterator[tuple[str, int]]:
        """Read all units; yield (name with its mark, offset of its entry) of all types and
        variables.
        """
        for type in self._all_types():
            bare = spelling(type.tag + type.name)
            if not type.scopes:
                yield _WHOLE + bare, type.offset
                continue
            yield _WHOLE + spelling(type.tag + type.scopes + type.name), type.offset
            yield _BARE + bare, type.offset

    def _named(self, name: str) -> list[int]:
        """Return the offsets of the entries of a name.

        Args:
            name: with all of its scopes; or without any, if nothing else has exactly this name.
        """
        return self._names.find(_WHOLE + name) or self._names.find(_BARE + name)

    def _all_types(self) -> list[NamedType]:
        """Read all units; return their types and global variables, one of each name, size
        and line.
        """
        found: dict[tuple[Any, ...], NamedType] = {}
        if self._quick is not None:
            self._quick.note_once()
        for n in self._named_units():
            for type in self._contents(n, False, True).types:
                found.setdefault((type.tag, type.scopes, type.name, type.size, type.line), type)
        for type in self._types_of_type_units():
            found.setdefault((type.tag, type.scopes, type.name, type.size, type.line), type)
        return [*found.values()]

    def _named_units(self) -> list[int]:
        """Return the indices in `headers` of the units whose types are found by their names."""
        only = self._only
        return [n for n, each in enumerate(self.headers) if only is None or each.offset in only]

    def _types_of_type_units(self) -> Iterator[NamedType]:
        """Yield the types of .debug_types. To their offsets the size of .debug_info is added."""
        behind = len(self._sections.info)
        scanner = UnitScanner(evolve(self._sections, info=self._sections.types))
        for header in self._type_headers:
            try:
                unit = self._type_unit(header)
                found = scanner.scan(
                    header, partial(_address, self.info, unit), partial(_text, self.info, unit)
                )
            except DAMAGE:
                continue
            yield from (type._replace(offset=type.offset + behind) for type in found.types)

    def _type_unit(self, header: Header) -> Any:
        """Return pyelftools' view of a unit of .debug_types.

        Args:
            header: the unit's.

        Raises:
            errors in DAMAGE: it is damaged.
        """
        # the header ends in the signature, 8 bytes, and the offset of the type's entry
        behind = header.first - header.word
        signature = int.from_bytes(self._sections.types[behind - 8 : behind], self._sections.order)
        return self.info.get_TU_by_sig8(signature)

    @property
    def type_names(self) -> Iterable[str]:
        """The names of all types with their scopes, spelled as spelling() does."""
        return [
            name[1:]
            for name in dict.fromkeys(self._names)
            if name[0] == _WHOLE and name[1:2] != VARIABLE
        ]

    def types(self, name: str) -> list[Any]:
        """Return the entries that define a type: one of each size and line of declaration.

        Args:
            name: as spelling() gives it. Without scopes it stands for types with scopes, where
                there is no type without.

        Raises:
            errors in DAMAGE: the debug information is damaged.
        """
        return [self._entry(offset) for offset in self._named(name)]

    def local_types(self, name: str) -> list[Any]:
        """Return the entries of types of a name, those within functions among them. Reads all
        units.

        Args:
            name: as spelling() gives it, without scopes.

        Raises:
            errors in DAMAGE: the debug information is damaged.
        """
        return [self._entry(offset) for offset in self._all_local.get(name, ())]

    @cached_property
    def _all_local(self) -> dict[str, list[int]]:
        """Spelling without scopes -> offsets of the entries of all types, also those within
        functions. All units are read for it.
        """
        if self._quick is not None:
            self._quick.note_once()
        found: dict[str, list[int]] = {}
        for n in self._named_units():
            for type in self._contents(n, True, True).types:
                found.setdefault(spelling(type.tag + type.name), []).append(type.offset)
        return found

    def variables(self, name: str) -> list[Any]:
        """Return the entries of the global variables of a name.

        Args:
            name: with or without its scopes.

        Raises:
            errors in DAMAGE: the debug information is damaged.
        """
        return [self._entry(offset) for offset in self._named(VARIABLE + name)]

    def _entry(self, offset: int) -> Any:
        """Return the entry at an offset.

        Args:
            offset: in .debug_info; beyond its end: in .debug_types, plus the size of .debug_info.

        Raises:
            errors in DAMAGE: there is no such entry, or it is damaged.
        """
        behind = len(self._sections.info)
        if offset >= behind:
            starts = [header.offset for header in self._type_headers]
            header = self._type_headers[bisect.bisect_right(starts, offset - behind) - 1]
            return self._type_unit(header).get_DIE_from_refaddr(offset - behind)
        return self.unit(self.headers.number_around(offset)).get_DIE_from_refaddr(offset)

    # --- lines

    @cached_property
    def lines(self) -> list[Line]:
        """All code that has a line, by address."""
        found = [line for n in range(len(self.headers)) for line in self._table(n)]
        return sorted(found, key=lambda line: line.start)

    def lines_in(self, start: int, end: int) -> list[Line]:
        """Return the lines whose code begins in a range: one unit after the other, by address in
        each.

        Args:
            start: first link address.
            end: link address behind the range.
        """
        found: list[Line] = []
        for n in dict.fromkeys(self.units_with(start, end)):
            found += self._table(n).between(start, end)
        return found

    def lines_of(self, path: str, number: int = 0) -> Iterator[tuple[int, list[SourceCode]]]:
        """Yield the code of a source file's lines, from all units that have some. Code of no line
        (0), and of functions that the linker has thrown away, is left out.

        Args:
            path: of the source file, or the end of its path.
            number: of the line that is wanted; 0: all are.

        Yields:
            (index of a unit in `headers`, the pieces of code).
        """
        scanner = None
        try:
            all_of(self._sections.lines)
            self._unpack(0, True, False)
            scanner = line_scanner(self._sections, path, number)
        except DAMAGE:
            pass
        naming: set[int] | None = None  # units whose tables name the file
        bounds, find = self._executable, bisect.bisect_right
        for n, header in enumerate(self.headers):
            found = None
            if scanner is not None:
                try:
                    self._unpack(header.end, False, False)
                    found = scanner.scan(header, self._tables_of(n))
                except DAMAGE:
                    continue
            if found is None:
                if naming is None:
                    name = path.rpartition("/")[2].encode(errors="surrogateescape")
                    naming = {*self.units_naming(name)}
                if n not in naming:
                    continue
                found = [
                    SourceCode(line.start, line.line, line.is_stmt)
                    for line in self._table(n).of_file(partial(is_of, wanted=path))
                    if not number or line.line == number
                ]
            found = [
                code for code in found if code[1] and (not bounds or find(bounds, code[0]) & 1)
            ]
            if found:
                yield n, found

    def units_naming(self, name: bytes) -> Iterator[int]:
        """Yield the indices in `headers` of the units whose line tables name a source file, or may:
        a name is in a form that is not read. Damaged units are left out.

        Args:
            name: the file's, without its folder.
        """
        try:
            search = FileNameSearch(self.info, name)
        except DAMAGE:
            return
        for n in range(len(self.headers)):
            try:
                found = search.is_in(self.unit(n))
            except DAMAGE:
                continue
            if found:
                yield n

    def line_at(self, address: int) -> Line | None:
        """Return the line whose code a link address is in; None: it is not known."""
        if not self.has_code(address):
            return None
        for n in self.units_with(address, address + 1):
            found = self._table(n).at(address)
            if found is not None:
                return found
        return None

    def _table(self, n: int) -> LineTable:
        """Return the n-th unit's table of lines, decoded once; an empty one where it is damaged."""
        if n not in self._tables:
            try:
                self._tables[n] = line_table(self.info, self.unit(n))
            except DAMAGE:
                self._tables[n] = LineTable([])
        return self._tables[n]


def _sections(info: Any, order: str) -> Sections:
    """Return the sections of a file that UnitScanner reads; b"" for one that does not exist.

    Args:
        info: pyelftools' view of the file.
        order: the byte order, "little" or "big".
    """

    def data(name: str) -> bytes:
        section = getattr(info, name, None)
        return b"" if section is None else contents_as_read(section)

    other = getattr(getattr(info, "supplementary_dwarfinfo", None), "debug_str_sec", None)

    return Sections(
        data("debug_info_sec"),
        all_of(data("debug_abbrev_sec")),
        data("debug_str_sec"),
        data("debug_line_str_sec"),
        order,
        all_of(data("debug_types_sec")),
        data("debug_ranges_sec"),
        data("debug_rnglists_sec"),
        data("debug_line_sec"),
        b"" if other is None else all_of(contents_as_read(other)),
    )


def _imports(unit: Any) -> Iterator[Any]:
    """Yield a unit's entries DW_TAG_imported_unit, which dwz writes before all other entries.

    Args:
        unit: pyelftools' view of the unit.
    """
    for entry in unit.iter_DIE_children(unit.get_top_DIE()):
        if entry.tag != "DW_TAG_imported_unit":
            return
        yield entry


def _occurrences(data: Any, wanted: bytes) -> Iterator[int]:
    """Yield the offsets in a section at which some bytes begin.

    Args:
        data: the section.
        wanted: the bytes.
    """
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _address(info: Any, unit: Any, number: int) -> int:
    """Return an address of a unit by its index in the unit's table of addresses."""
    return int(info.get_addr(unit, number))


def _text(info: Any, unit: Any, number: int) -> bytes:
    """Return a string of a unit by its index in the unit's table of strings.

    Args:
        info: pyelftools' view of the file.
        unit: the unit.
        number: index of the string.
    """
    base = unit.get_top_DIE().attributes["DW_AT_str_offsets_base"].value
    word = 8 if unit.structs.dwarf_format == 64 else 4
    offsets = contents(info.debug_str_offsets_sec)
    at = int.from_bytes(
        offsets[base + word * number : base + word * (number + 1)],
        "little" if info.config.little_endian else "big",
    )
    strings = contents_as_read(info.debug_str_sec)
    return bytes(strings[at : strings.find(b"\0", at)])


#: what may be in a name that is spelled otherwise, but for names of integers
_RESPELLED = ("const", "volatile", "  ", "\t", "\n", "\r", "\v", "\f")
#: words of C's names of integers
_OF_INTEGERS = frozenset(("char", "short", "long", "int", "unsigned", "signed"))


def spelling(name: str) -> str:
    """Return a type's name in one spelling: without const and volatile, words of integers in
    alphabetical order, and without `int` and `signed` where they say nothing.

    `long unsigned int` and `unsigned long` both give `long unsigned`.
    """
    name = name.strip()
    if name.partition(" ")[0] not in _OF_INTEGERS and not any(map(name.__contains__, _RESPELLED)):
        return name
    words = name.split()
    if "const" in words or "volatile" in words:
        words = [word for word in words if word not in ("const", "volatile")]
    if not _OF_INTEGERS.issuperset(words):
        return " ".join(words)
    useless = {"int"} if len(words) > 1 and set(words) != {"signed", "int"} else set()
    rest = sorted(word for word in words if word not in useless)
    return " ".join(word for word in rest if word != "signed" or "char" in rest) or "int"


def named(die: Any) -> Any:
    """Follow an entry to the one that has its name and type; return `die` where it is that itself.

    Of an inlined or copied function that is the original, of a definition its declaration.
    """
    for _ in range(8):
        link = next(
            (
                name
                for name in ("DW_AT_abstract_origin", "DW_AT_specification")
                if name in die.attributes
            ),
            None,
        )
        if link is None:
            break
        try:
            die = die.get_DIE_from_attribute(link)
        except DAMAGE:
            break
    return die


def scopes_of(die: Any) -> str:
    """Return the namespaces and classes around an entry, as C++ writes them: `geo::`. Those
    without a name are left out.
    """
    names: list[str] = []
    for _ in range(64):
        die = die.get_parent()
        if die is None or die.tag not in _SCOPES:
            break
        names.append(text(die, "DW_AT_name"))
    return "".join(f"{name}::" for name in reversed(names) if name)


def _function(die: Any, unit: Any) -> Function | None:
    """Return the function that an entry describes.

    Args:
        die: the entry.
        unit: its unit.

    Returns:
        The function; None: the entry has no code or no name.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    parts = [*spans(die, unit)]
    name = text(named(die), "DW_AT_name")
    if not parts or not name:
        return None
    given = die.attributes.get("DW_AT_entry_pc")
    start = given.value if given is not None and given.form in ADDRESS_FORMS else parts[0][0]
    end = next((last for first, last in parts if first <= start < last), parts[0][1])
    return Function(name, start, end, die, unit)


def takes_a_word(type: CType, arch: Arch) -> bool:
    """Whether a parameter of a type takes one word of the integer arguments: an integer, or a
    pointer.
    """
    return type.kind in ("int", "char", "bool", "enum", "pointer") and type.size <= arch.bits // 8


def call_site(function: Function, address: int) -> Any:
    """Return the entry of the call after which a function goes on at an address.

    Args:
        function: has the call.
        address: link address to which the call returns.

    Returns:
        None: no entry describes such a call.
    """
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag in CALL_SITES:
            found = die.attributes.get("DW_AT_call_return_pc") or die.attributes.get("DW_AT_low_pc")
            if found is not None and found.value == address:
                return die
        elif die.has_children and die.tag in _WITH_CALLS:
            todo += children(die)
    return None


def tail_calls(function: Function) -> Iterator[Any]:
    """Yield the entries of the tail calls that a function ends in."""
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag in CALL_SITES:
            if "DW_AT_call_tail_call" in die.attributes or "DW_AT_GNU_tail_call" in die.attributes:
                yield die
        elif die.has_children and die.tag in _WITH_CALLS:
            todo += children(die)


def callee(site: Any) -> Any:
    """Return the entry of the function that a call calls; None: the call's entry does not say.

    Args:
        site: the call's entry.

    Raises:
        errors in DAMAGE: the call's entry refers to nothing.
    """
    link = next(
        (
            name
            for name in ("DW_AT_call_origin", "DW_AT_abstract_origin")
            if name in site.attributes
        ),
        None,
    )
    return None if link is None else site.get_DIE_from_attribute(link)


def location(die: Any, function: Function, pc: int, attribute: str = "DW_AT_location") -> Any:
    """Return the operations that say where a variable, or what else an attribute tells, is at an
    address. Of several entries of a list that hold there the last one counts.

    Args:
        die: the entry that has the attribute.
        function: the function that the entry is in.
        pc: link address of the instruction.
        attribute: its name.

    Raises:
        UnknownValue: there is no such attribute, or it says nothing for this address.
        errors in DAMAGE: the debug information is damaged.
    """
    from elftools.dwarf.dwarf_expr import DWARFExprParser
    from elftools.dwarf.locationlists import LocationParser

    unit = function.unit
    if attribute not in die.attributes:
        raise UnknownValue
    lists = unit.dwarfinfo.location_lists()
    found: Any = LocationParser(lists).parse_from_attribute(
        die.attributes[attribute], unit["version"], die
    )
    if isinstance(found, list):
        start, chosen = base_address(unit), None
        for entry in found:
            if type(entry).__name__ == "BaseAddressEntry":
                start = entry.base_address
                continue
            low, high = (
                (entry.begin_offset, entry.end_offset)
                if entry.is_absolute
                else (start + entry.begin_offset, start + entry.end_offset)
            )
            if low <= pc < high:
                chosen = entry.loc_expr
        if chosen is None:
            raise UnknownValue
        return DWARFExprParser(unit.structs).parse_expr(chosen)
    return DWARFExprParser(unit.structs).parse_expr(found.loc_expr)


def static_address(die: Any) -> int | None:
    """Return the link address of a global or static variable; None: it has no constant one.

    LLVM merges variables on RISC-V and Arm: they are at an offset from the first one's address.

    Args:
        die: the variable's entry.
    """
    from elftools.dwarf.dwarf_expr import DWARFExprParser

    found = die.attributes.get("DW_AT_location")
    if found is None or not isinstance(found.value, list | bytes):
        return None
    ops = DWARFExprParser(die.cu.structs).parse_expr(found.value)
    names = [op.op_name for op in ops]
    if len(names) not in (1, 2) or names[1:] not in ([], ["DW_OP_plus_uconst"]):
        return None
    offset = int(ops[1].args[0]) if len(ops) == 2 else 0
    if names[0] == "DW_OP_addr":
        return int(ops[0].args[0]) + offset
    if names[0] in ("DW_OP_addrx", "DW_OP_GNU_addr_index"):
        return int(die.cu.dwarfinfo.get_addr(die.cu, ops[0].args[0])) + offset
    return None
