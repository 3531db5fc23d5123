"""A file's debug information as pyelftools' DWARFInfo, opened lazily and kept in the file's cache.

Reading damaged debug information raises one of the exceptions in DAMAGE; callers take it as none.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from mmap import mmap
from typing import Any, Final, Literal, TypeVar

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct.core import ConstructError
from elftools.dwarf.dwarfinfo import DwarfConfig, DWARFInfo
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.sections import Section

from ..arch._dwarf import AttributeTag
from ..btf import byte_order
from ..errors import ImageError
from ..image import (
    LoadedFile,
    SectionedElf,
    alternative_link,
    build_id,
    find_alternative,
    find_separate,
    linked,
)
from .abbreviations import AbbreviationTable
from .cache import UnpackedSection, identity_of, unpacked_section
from .section import SectionWindow

DAMAGE = (
    ImageError,
    DWARFError,
    ELFError,
    ConstructError,
    ArithmeticError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    EOFError,
    RecursionError,
    struct.error,
    zlib.error,
    MemoryError,
)
T = TypeVar("T")
LARGE = 1 << 20  #: bytes of a section that is unpacked more slowly than it is found unpacked
_MOST_KEPT = 1 << 29
_EXECUTABLE = 1  #: PF_X
_COMPRESSED = 0x800  #: SHF_COMPRESSED
#: of .gnu.attributes: a group about the whole file; the one even tag with a text behind its number
_WHOLE_FILE: Final = 1
_COMPATIBILITY: Final = 32


def dwarf(file: LoadedFile) -> Any:
    """Return pyelftools' DWARFInfo of a file, made once; its sections are read when used.

    Raises:
        ValueError: the file is damaged.
    """
    return cached(file, "dwarf", lambda: _dwarf_in(elf_of(file), _identity(file)))


def _identity(file: LoadedFile) -> bytes:
    """Return what tells a file's build from all others: the key under which its sections are kept.

    Returns:
        b"": its sections are not to be kept: it is small, has no build-id, or is relocated here.
    """
    if len(file.data) < LARGE or cached(file, "linked", lambda: linked(file.data)) is not file.data:
        return b""
    build = build_id(file.data)
    return identity_of(file.data, build) if build else b""


#: pyelftools' names of sections that have others than theirs
_OTHERS = {"gnu_debugaltlink_sec": ".gnu_debugaltlink", "eh_frame_sec": ".eh_frame"}
#: sections of debug information, as DWARFInfo's parameters name them
SECTIONS = (
    *(
        f"debug_{name}_sec"
        for name in (
            "info",
            "aranges",
            "abbrev",
            "frame",
            "str",
            "loc",
            "ranges",
            "line",
            "pubtypes",
            "pubnames",
            "addr",
            "str_offsets",
            "line_str",
            "loclists",
            "rnglists",
            "sup",
            "types",
        )
    ),
    *_OTHERS,
)


#: large sections of which nothing has to be copied
_SEEN: Final = tuple(
    f".debug_{name}"
    for name in (
        "info",
        "types",
        "str",
        "line_str",
        "line",
        "loc",
        "loclists",
        "ranges",
        "rnglists",
        "str_offsets",
    )
)


class _DwarfSection:
    """A section with the attributes of pyelftools' DebugSectionDescriptor; read when `stream` is
    used.

    Attributes:
        name: of the section.
        packed: True where the file has it compressed.
        global_offset: of its first byte in the file.
        address: its link address.
    """

    def __init__(self, elf: SectionedElf, name: str, section: Section, identity: bytes) -> None:
        """Note the section's header; its contents are read later.

        Args:
            elf: the file.
            name: of the section.
            section: pyelftools' view of it.
            identity: key under which its unpacked contents are kept for later runs; b"": they are
                not.
        """
        self._elf = elf
        self._section = section
        self._identity = identity
        self.packed = bool(section["sh_flags"] & _COMPRESSED) or name.startswith(".z")
        self.name = name
        self.global_offset = section["sh_offset"]
        self.address = section["sh_addr"]

    @cached_property
    def stream(self) -> io.BytesIO | mmap | SectionWindow:
        """The section's contents, read at the first use. A large compressed section is unpacked
        only as far as it is read, and one that is not compressed is not copied.

        Raises:
            errors in DAMAGE: they are damaged.
        """
        size = self._section.data_size
        if LARGE <= size <= _MOST_KEPT and self._begins_packed:
            start = self.global_offset + self._begins_packed
            packed = memoryview(self._elf.data)[
                start : self.global_offset + self._section["sh_size"]
            ]
            found: mmap = unpacked_section(self._identity, self.name.lstrip("."), packed, size)
            return found
        if size >= LARGE and self._can_be_seen and not self.packed:
            return SectionWindow(self._elf.data, self.global_offset, size)
        return io.BytesIO(self._unpacked())

    @property
    def _can_be_seen(self) -> bool:
        """True where readers of the section do without a copy of it, and the file is in memory.

        Those of frames, abbreviations, .debug_aranges and .debug_addr want bytes, and phantom bytes
        are left out of a copy.
        """
        return (
            self.name in _SEEN
            and self._section["sh_type"] != "SHT_NOBITS"
            and type(self._elf.data) is bytes
            and not self._elf.has_phantom_bytes()
        )

    @cached_property
    def _begins_packed(self) -> int:
        """Bytes of the ELF compression header (Elf_Chdr) that stands before zlib's data; 0: there
        is none.

        It is also 0 for a .zdebug section, whose header is another one, for a section that is
        compressed by another method, and where the file has phantom bytes. `stream` reads
        sections with 0 as a whole.
        """
        if self._section["sh_flags"] & _COMPRESSED and not self._elf.has_phantom_bytes():
            header = self._elf.structs.Elf_Chdr
            start = self.global_offset
            kind = header.parse(self._elf.data[start : start + header.sizeof()])["ch_type"]
            return int(header.sizeof()) if kind == "ELFCOMPRESS_ZLIB" else 0
        return 0

    def _unpacked(self) -> bytes:
        """Return the section's contents, read from the file and decompressed.

        Raises:
            errors in DAMAGE: they are damaged.
        """
        data: bytes = self._section.data()
        if self._elf.has_phantom_bytes():
            data = data[::2]
        if self.name.startswith(".z"):
            if data[:4] != b"ZLIB":
                raise ELFError("a compressed section of another kind than ZLIB")
            size = int.from_bytes(data[4:12], "big")
            data = zlib.decompressobj().decompress(data[12:], size)
            if len(data) != size:
                raise ELFError("a compressed section has fewer bytes than it says")
        return data

    @property
    def size(self) -> int:
        """Bytes of the section's contents, decompressed."""
        return len(contents_as_read(self))


def contents_as_read(section: Any) -> Any:
    """Return a section's contents without unpacking more of a large one than is read.

    Args:
        section: the section, as pyelftools describes it.

    Returns:
        bytes, a SectionWindow, or a map of a file, which may be an UnpackedSection.
    """
    stream = section.stream
    return stream if isinstance(stream, mmap | SectionWindow) else stream.getvalue()


def contents(section: Any) -> Any:
    """Return a section's contents, all of them unpacked.

    Args:
        section: the section, as pyelftools describes it.

    Returns:
        bytes, a SectionWindow, or a map of a file.

    Raises:
        errors in DAMAGE: the section is damaged.
    """
    return all_of(contents_as_read(section))


def all_of(data: Any) -> Any:
    """Unpack the rest of a section's contents, and return them.

    Args:
        data: what contents_as_read() returned.

    Returns:
        `data` itself.

    Raises:
        errors in DAMAGE: the section is damaged.
    """
    if isinstance(data, UnpackedSection):
        data.reach(len(data))
    return data


class FileDwarf(DWARFInfo):  # type: ignore[misc]
    """pyelftools' DWARFInfo of a file, with AbbreviationTable in the place of pyelftools' slow
    tables.
    """

    def get_abbrev_table(self, offset: int) -> Any:
        """Return the table of abbreviations at an offset of .debug_abbrev, made once. pyelftools
        calls it.

        Raises:
            IndexError, ValueError: the section is damaged.
        """
        if offset not in self._abbrevtable_cache:
            data = contents(self.debug_abbrev_sec)
            self._abbrevtable_cache[offset] = AbbreviationTable(data, offset)
        return self._abbrevtable_cache[offset]

    def line_program_for_CU(self, unit: Any) -> Any:  # noqa: N802
        """Return a unit's line program, decoded once; None: it has none.

        The program's own format counts: gcc -gdwarf64 makes units of the 64-bit format, whose line
        programs have the 32-bit one.

        Args:
            unit: pyelftools' view of the unit.

        Raises:
            errors in DAMAGE: the program is damaged.
        """
        start = unit.get_top_DIE().attributes.get("DW_AT_stmt_list")
        if start is None:
            return None
        structs = unit.structs
        length = contents(self.debug_line_sec)[start.value : start.value + 4]
        word = 64 if length == b"\xff\xff\xff\xff" else 32
        if structs.dwarf_format != word:
            structs = DWARFStructs(
                self.config.little_endian, word, structs.address_size, structs.dwarf_version
            )
        return self._parse_line_program_at_offset(start.value, structs)


def _dwarf_in(elf: SectionedElf, identity: bytes) -> DWARFInfo:
    """Return a file's debug information, none of whose sections are read yet.

    pyelftools' own get_dwarf_info() reads all sections at once.

    Args:
        elf: the file.
        identity: key under which unpacked sections are kept for later runs; b"": they are not.
    """
    packed = elf.has_section(".zdebug_info")
    sections: dict[str, Any] = {}
    for key in SECTIONS:
        name = _OTHERS.get(key) or f".{'z' * packed}{key[:-4]}"
        section = elf.get_section_by_name(name)
        sections[key] = None if section is None else _DwarfSection(elf, name, section, identity)
    config = DwarfConfig(elf.little_endian, elf.get_machine_arch(), elf.elfclass // 8)
    return FileDwarf(config, **sections)


def dwarf_of_source(file: LoadedFile) -> tuple[Any, str, bytes]:
    """Return a file's debug information, from the file or from its separate debug file.

    The separate file is looked for where gdb does (build-id, .gnu_debuglink), and so is the
    alternative file of dwz -m: pyelftools follows references to that.

    Returns:
        (pyelftools' DWARFInfo, path of the file that has it, contents of that file);
        (None, "", b"") where neither file has any.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    info, path, data = _own_dwarf(file)
    if info is not None and info.supplementary_dwarfinfo is None:
        found = alternative_of(file, path, data)
        if found is not None:
            info.supplementary_dwarfinfo = dwarf(found)
    return info, path, data


def _own_dwarf(file: LoadedFile) -> tuple[Any, str, bytes]:
    """Return what dwarf_of_source() does, without an alternative file."""
    if byte_order(file.data) is not None:  # BTF, and no ELF file
        return None, "", b""
    info = dwarf(file)
    if info is not None and info.has_debug_info:
        return info, file.path, file.data
    found = cached(file, "separate", lambda: find_separate(file.data, file.path, mapped=True))
    if found is None:
        return None, "", b""
    other = dwarf(LoadedFile(found[1], file.bias, file.module, found[0]))
    return (other, *found) if other is not None and other.has_debug_info else (None, "", b"")


def alternative_of(file: LoadedFile, path: str, data: bytes) -> LoadedFile | None:
    """Return the alternative file to which dwz -m has moved a part of a file's debug information.

    Args:
        file: the file, whose `cache` keeps the result.
        path: path of the file that has the debug information: `file`, or its separate debug file.
        data: contents of the file at `path`.

    Returns:
        None: nothing was moved, or the alternative file is not here, or damaged.
    """

    def find() -> LoadedFile | None:
        found = find_alternative(data, path)
        if found is None:
            return None
        other = LoadedFile(found[1], file.bias, file.module, found[0])
        with suppress(*DAMAGE):  # one that is damaged is as good as none
            if dwarf(other).has_debug_info:
                return other
        return None

    return cached(file, "alternative", find)


def missing_alternative(file: LoadedFile) -> str:
    """Return the path, as the file names it, of an alternative file that is not here or damaged.

    Args:
        file: a file, a part of whose debug information dwz -m may have moved.

    Returns:
        "": nothing is missing, or the file itself is damaged.
    """
    try:
        _, path, data = dwarf_of_source(file)
        link = alternative_link(data) if data else None
        return link[0] if link is not None and alternative_of(file, path, data) is None else ""
    except DAMAGE:
        return ""


def is_same(one: Any, other: Any) -> bool:
    """Whether two pyelftools' entries are the same one. Offsets alone do not tell: an alternative
    file of dwz -m has entries of its own at the same offsets.
    """
    return bool(one.offset == other.offset and one.cu.dwarfinfo is other.cu.dwarfinfo)


def flags_of(file: LoadedFile) -> int | None:
    """Return e_flags of a file; None: it is no ELF file, or damaged."""
    if byte_order(file.data) is not None:  # BTF
        return None
    try:
        flags: int = elf_of(file).header["e_flags"]
        return flags
    except DAMAGE:
        return None


def byte_of(file: LoadedFile, section: str, at: int) -> int | None:
    """Return a byte of a section of a file.

    Args:
        file: the file.
        section: name of the section.
        at: offset of the byte in the section.

    Returns:
        None: it is no ELF file, has no such section or byte, or is damaged.
    """
    byte = _section_of(file, section)[at : at + 1]
    return byte[0] if byte else None


def attribute_of(file: LoadedFile, wanted: AttributeTag) -> int | None:
    """Return a number that a section of attributes has of the whole file.

    Args:
        file: the file.
        wanted: which number.

    Returns:
        The number, 0 where the section does not have it; None: there are no attributes of its
        vendor, or the file is damaged.
    """
    try:
        data = _section_of(file, wanted.section)
        found = _attributes(data, "little" if elf_of(file).little_endian else "big", wanted)
    except DAMAGE:
        return None
    return None if found is None else found.get(wanted.tag, 0)


def _section_of(file: LoadedFile, name: str) -> bytes:
    """Return the contents of a section of a file; b"" where there is none, or the file is damaged
    or no ELF file.

    Args:
        file: the file.
        name: of the section.
    """
    if byte_order(file.data) is not None:  # BTF
        return b""
    try:
        found = elf_of(file).get_section_by_name(name)
        data: bytes = b"" if found is None else found.data()
        return data
    except DAMAGE:
        return b""


def _attributes(
    data: bytes, order: Literal["little", "big"], wanted: AttributeTag
) -> dict[int, int] | None:
    """Return the numbers that a section of attributes has of a whole file: tag -> value. Those of
    other vendors are left out; of several values of one tag the last counts.

    Args:
        data: the section's contents: "A", then for each vendor the size, the name, and groups of
            tags.
        order: byte order of the sizes.
        wanted: a number of the vendor.

    Returns:
        None: the section has none of the vendor.

    Raises:
        LookupError: the section is cut off.
    """
    found: dict[int, int] | None = None
    at = 1
    while data[:1] == b"A" and at + 4 <= len(data):
        end = at + max(int.from_bytes(data[at : at + 4], order), 4)
        name = data[at + 4 : end].partition(b"\0")[0]
        group = at + 4 + len(name) + 1
        while name == wanted.vendor and group + 5 <= end:
            size = int.from_bytes(data[group + 1 : group + 5], order)
            if data[group] == _WHOLE_FILE:
                found = (found or {}) | dict(_tags(data[group + 5 : group + size], wanted))
            group += max(size, 5)
        at = end
    return found


def _tags(data: bytes, wanted: AttributeTag) -> Iterator[tuple[int, int]]:
    """Yield (tag, value) of the numbers of a group; texts, which have odd tags or are
    `wanted.low_texts`, are left out.

    Args:
        data: the group's tags and values.
        wanted: a number of the vendor.

    Raises:
        LookupError: the group is cut off.
    """
    at = 0
    while at < len(data):
        tag, at = _uleb(data, at)
        is_text = bool(tag & 1)
        if wanted.low_texts is not None and tag < _COMPATIBILITY:
            is_text = tag in wanted.low_texts
        if not is_text:
            value, at = _uleb(data, at)
            yield tag, value
        if is_text or tag == _COMPATIBILITY:
            at = data.index(0, at) + 1


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    """Decode a ULEB128 number; return (the number, offset behind it).

    Args:
        data: bytes with the number.
        at: offset of its first byte.

    Raises:
        LookupError: the data ends within the number.
    """
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def elf_of(file: LoadedFile) -> SectionedElf:
    """Return pyelftools' view of a file, made once; an object file is relocated first.

    Raises:
        ValueError: the file is damaged.
    """
    return cached(
        file, "elf", lambda: SectionedElf(cached(file, "linked", lambda: linked(file.data)))
    )


def executable_ranges(file: LoadedFile) -> list[tuple[int, int]]:
    """Return (start, end) of the executable segments of a file, as link addresses.

    Args:
        file: the file.

    Returns:
        [] where none is: an object file has no segments.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    headers = [segment.header for segment in elf_of(file).iter_segments("PT_LOAD")]
    return [
        (header["p_vaddr"], header["p_vaddr"] + header["p_memsz"])
        for header in headers
        if header["p_flags"] & _EXECUTABLE
    ]


def loaded_bytes(file: LoadedFile, address: int, size: int) -> bytes:
    """Return bytes of a file's segments, as they are before anything is written into memory.

    Args:
        file: the file.
        address: link address of the first byte.
        size: number of bytes.

    Returns:
        b"" where no segment has all of them: in an object file, or in one of debug information
        only.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    for segment in elf_of(file).iter_segments("PT_LOAD"):
        header = segment.header
        within = address - header["p_vaddr"]
        if 0 <= within <= header["p_filesz"] - size:
            at = header["p_offset"] + within
            return file.data[at : at + size]
    return b""


def text(die: Any, name: str) -> str:
    """Return the text of an attribute; "": there is none, or it is no text. Bytes that are not
    UTF-8 become backslash escapes.

    Args:
        die: the entry.
        name: of the attribute, "DW_AT_name".
    """
    found = die.attributes.get(name)
    return (
        found.value.decode("utf-8", "backslashreplace")
        if found is not None and isinstance(found.value, bytes)
        else ""
    )


def children(die: Any) -> list[Any]:
    """Return the entries directly within an entry of DWARF; [] where they are damaged."""
    try:
        return [*die.iter_children()]
    except DAMAGE:
        return []


def cached(file: LoadedFile, key: str, make: Callable[[], T]) -> T:
    """Return what `make` made of a file before; call it now if it has not been. Failures are kept,
    too.

    Args:
        file: the file, whose `cache` keeps the results.
        key: name of the result in the cache.
        make: makes the result; called at most once for a file and key.

    Raises:
        ValueError: `make` raises one of DAMAGE, now or before.
    """
    if key not in file.cache:
        try:
            file.cache[key] = make()
        except DAMAGE as error:
            file.cache[key] = error
    found: Any = file.cache[key]
    if isinstance(found, Exception):
        raise ValueError("the debug information is damaged") from found
    return found  # type: ignore[no-any-return]
