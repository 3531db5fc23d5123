"""ELF files, as pyelftools reads them, with every kind of damage turned into ImageError.

What a loader needs comes from the program headers and the dynamic tags; sections are trusted only
where there is nothing else (relocatable files, .symtab), because files without them, or with a
wrong table, run all the same.
"""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import Container
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_ST_INFO_BIND, ENUM_ST_INFO_TYPE, ENUM_ST_SHNDX
from elftools.elf.gnuversions import GNUVerDefSection
from elftools.elf.hash import ELFHashTable, GNUHashTable
from elftools.elf.relocation import RelrRelocationTable
from elftools.elf.sections import (
    ARMAttributesSection,
    Section,
    StringTableSection,
    SymbolTableIndexSection,
    SymbolTableSection,
)

from ..errors import ImageError, KprobeError
from ._values import TlsBlock

LIMIT = 1 << 30  #: bytes of memory that an image may ask for
_MAX_LOADS = 256
_MAX_TLS_ALIGNMENT = 1 << 16  #: the most that thread-local storage may ask for
_DT_RELA = 7
_EXTENDED: Final = 0xFFFF  # SHN_XINDEX: the section's index is in a table of its own
#: number -> name, of those that have one: st_info's low and high half, st_shndx
_TYPES, _BINDS, _SECTIONS = (
    {number: name for name, number in names.items() if name != "_default_"}
    for names in (ENUM_ST_INFO_TYPE, ENUM_ST_INFO_BIND, ENUM_ST_SHNDX)
)
# Tag_CPU_arch: v6-M, v6S-M, v7E-M, v8-M baseline and mainline, v8.1-M
_M_PROFILE = (11, 12, 13, 16, 17, 21)
_FOREIGN = {  # first bytes -> (what it is, what to do)
    b"MZ": ("a Windows executable", "only ELF files are loaded"),
    b"\xcf\xfa\xed\xfe": ("a Mach-O file", "only ELF files are loaded"),
    b"!<arch>": ("an archive", "take a member out of it: ar x FILE"),
    b"#!": ("a script", "load the program that it starts"),
    b"/* GNU ld": ("a linker script", "load the library that it names"),
}
_FETCH = "the file is damaged or cut off: build or fetch it again"
_DAMAGE = (
    ELFError,
    ConstructError,
    ArithmeticError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    MemoryError,
    EOFError,
    RecursionError,
    struct.error,
    zlib.error,
)


@contextmanager
def damage_is_error(name: str) -> Iterator[None]:
    """Turn the exceptions with which pyelftools meets damage into ImageError, inside a with block.

    Args:
        name: names the file in the error.
    """
    try:
        yield
    except KprobeError:  # some of ours are of those kinds, too
        raise
    except _DAMAGE as error:
        raise ImageError(f"{name}: {type(error).__name__}: {error}", hint=_FETCH) from error


class Load(NamedTuple):
    """A LOAD segment: bytes at a link address; memory beyond them is zero.

    Attributes:
        vaddr: link address of the first byte.
        data: the bytes that the file has.
        memsz: bytes in memory.
        perms: those of "rwx" that hold.
        offset: of the bytes in the file.
    """

    vaddr: int
    data: bytes
    memsz: int
    perms: str
    offset: int = 0


class SymbolEntry(NamedTuple):
    """A row of a symbol table.

    Attributes:
        name: "" for a symbol without one.
        value: usually the link address; in relocatable files an offset in the section.
        size: bytes.
        type: "STT_FUNC" and so on, or the number of an unknown one.
        bind: "STB_LOCAL" and so on, or the number of an unknown one.
        section: an index, or "SHN_UNDEF", "SHN_ABS", "SHN_COMMON".
        local: bits 5-7 of st_other.
        version: of a symbol whose version is not the default one; else "".
    """

    name: str
    value: int
    size: int
    type: str | int
    bind: str | int
    section: str | int
    local: int = 0
    version: str = ""


class Relocation(NamedTuple):
    """An entry of a relocation table.

    Attributes:
        offset: a link address; in relocatable files: within the section.
        type: number of the relocation type; -1 for an entry of RELR's form.
        symbol: index in the symbol table; 0: none.
        addend: None where the addend stands in memory at `offset` (REL).
    """

    offset: int
    type: int
    symbol: int
    addend: int | None


class Elf:
    """An ELF file. Its constructor and methods raise ImageError or whatever pyelftools raises.

    Inside damage_is_error() all of that is ImageError. Addresses are link addresses.

    Attributes:
        data: contents of the file.
        name: names the file in errors.
        bits: 32 or 64.
        order: "little" or "big".
        machine, flags: e_machine and e_flags.
        profile: of an ARM file's CPU; "" where it is not known.
        type: "ET_EXEC", "ET_DYN", "ET_REL" ...; a number that has no name.
        header: the file's header, as pyelftools gives it.
        entry: e_entry.
    """

    def __init__(self, data: bytes, name: str) -> None:
        """Read the file's header; the rest is read when it is asked for.

        Args:
            data: contents of the file.
            name: names the file in errors.

        Raises:
            ImageError: it is no ELF file.
        """
        _refuse_foreign(data, name)
        self.data = data
        self.name = name
        self._file = ELFFile(io.BytesIO(data))
        self._structs: Any = self._file.structs
        self.bits: int = self._file.elfclass
        self.order = "little" if self._file.little_endian else "big"
        self.machine = int.from_bytes(data[18:20], "little" if self._file.little_endian else "big")
        self.flags: int = self._file["e_flags"]
        self.profile = self._profile() if self._file["e_machine"] == "EM_ARM" else ""
        self.type: str | int = self._file["e_type"]
        self.header: Any = self._file.header
        self.entry: int = self._file["e_entry"]

    def _profile(self) -> str:
        """Return the CPU's profile by Arm's build attributes: "A", "R", "M", "S" (A or R).

        "" where they do not tell, or cannot be read.
        """
        try:
            tags = {
                attribute.tag: attribute.value
                for section in self._file.iter_sections()
                if isinstance(section, ARMAttributesSection)
                for part in section.iter_subsections()
                for scope in part.iter_subsubsections()
                for attribute in scope.iter_attributes()
            }
        except _DAMAGE:
            return ""
        profile = tags.get("TAG_CPU_ARCH_PROFILE", 0)
        if profile:
            return chr(profile)
        return "M" if tags.get("TAG_CPU_ARCH") in _M_PROFILE else ""

    # segments

    @cached_property
    def headers(self) -> list[Container]:
        """The program headers, as pyelftools gives them, in the file's order.

        Raises ImageError: an entry is too short.
        """
        step = self._file["e_phentsize"]
        first = self._file["e_phoff"]
        count = self._file.num_segments()
        if count and step < self._structs.Elf_Phdr.sizeof():
            raise ImageError(f"{self.name}: program headers of {step} bytes", hint=_FETCH)
        return [self._parse(self._structs.Elf_Phdr, first + n * step) for n in range(count)]

    @cached_property
    def loads(self) -> list[Load]:
        """The LOAD segments that take memory, in the file's order.

        Raises ImageError: there are none or too many, they need too much memory, or one lies
        outside the file or the address space.
        """
        found = [h for h in self.headers if h["p_type"] == "PT_LOAD" and h["p_memsz"]]
        if not found or len(found) > _MAX_LOADS:
            raise ImageError(
                f"{self.name}: {len(found) or 'no'} LOAD segments",
                hint="link it into an executable or a shared object",
            )
        if sum(h["p_memsz"] for h in found) > LIMIT:
            raise ImageError(
                f"{self.name}: its segments need more than {LIMIT >> 20} MiB", hint=_FETCH
            )
        return [self._load(h) for h in found]

    def _load(self, h: Container) -> Load:
        """Return a LOAD segment by its program header; without bytes in a file of separate debug
        information.

        Args:
            h: the program header, as pyelftools gives it.

        Raises:
            ImageError: the segment does not fit in memory or in the file.
        """
        if h["p_filesz"] > h["p_memsz"] or h["p_vaddr"] + h["p_memsz"] > 1 << self.bits:
            raise ImageError(
                f"{self.name}: a segment does not fit in memory", address=h["p_vaddr"], hint=_FETCH
            )
        perms = "".join(p for bit, p in ((4, "r"), (2, "w"), (1, "x")) if h["p_flags"] & bit)
        has_bytes = h["p_filesz"] and not self.only_debug
        return Load(
            h["p_vaddr"],
            # one without bytes may begin behind the end of the file
            self.bytes_at(h["p_offset"], h["p_filesz"]) if has_bytes else b"",
            h["p_memsz"],
            perms,
            h["p_offset"],
        )

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Return bytes of the file.

        Args:
            offset: of the first byte.
            size: bytes.

        Raises:
            ImageError: the file is too short.
        """
        if offset + size > len(self.data):
            raise ImageError(
                f"{self.name}: truncated: it needs {offset + size} bytes and has {len(self.data)}",
                hint=_FETCH,
            )
        return self.data[offset : offset + size]

    def has(self, segment_type: str) -> bool:
        """Return True where there is a program header of a type.

        Args:
            segment_type: "PT_TLS", say.
        """
        return any(h["p_type"] == segment_type for h in self.headers)

    def tls_block(self) -> TlsBlock | None:
        """Return the template of thread-local storage; None where the file has none.

        Raises:
            ImageError: its program header makes no sense.
        """
        for h in self.headers:
            if h["p_type"] == "PT_TLS":
                if (
                    h["p_filesz"] > h["p_memsz"]
                    or h["p_memsz"] > LIMIT
                    or h["p_align"] > _MAX_TLS_ALIGNMENT
                ):
                    raise ImageError(
                        f"{self.name}: thread-local storage of {h['p_memsz']:#x} bytes, aligned to "
                        f"{h['p_align']:#x}",
                        hint=_FETCH,
                    )
                return TlsBlock(
                    addr=h["p_vaddr"], filesz=h["p_filesz"], memsz=h["p_memsz"], align=h["p_align"]
                )
        return None

    def header_table(self) -> tuple[int, int, int] | None:
        """Find the program headers in memory.

        Returns:
            (link address, bytes of each, how many); None where no segment has them.
        """
        first = self._file["e_phoff"]
        size = self._file["e_phentsize"]
        count = self._file.num_segments()
        for load in self.loads:
            if load.offset <= first and first + size * count <= load.offset + len(load.data):
                return load.vaddr + first - load.offset, size, count
        return None

    # dynamic linking

    @cached_property
    def tags(self) -> dict[str | int, int]:
        """Dynamic tags: name, or number of one without a name -> value; {} for static programs, and
        for separate debug information.

        Of a tag that stands there several times the first value.
        """
        tags: dict[str | int, int] = {}
        if self.only_debug:  # elfutils leaves the program's headers, whose bytes are not there
            return tags
        size = self._structs.Elf_Dyn.sizeof()
        for h in (h for h in self.headers if h["p_type"] == "PT_DYNAMIC"):
            for offset in range(h["p_offset"], h["p_offset"] + h["p_filesz"], size):
                entry = self._parse(self._structs.Elf_Dyn, offset)
                if entry["d_tag"] == "DT_NULL":
                    break
                tags.setdefault(entry["d_tag"], entry["d_val"])
        return tags

    def _offset(self, tag: str) -> int:
        """Return the file offset of what a dynamic tag points at.

        Args:
            tag: its name; the file has it.

        Raises:
            ImageError: no segment has that address.
        """
        vaddr = self.tags[tag]
        for load in self.loads:
            if load.vaddr <= vaddr < load.vaddr + len(load.data):
                return vaddr - load.vaddr + load.offset
        raise ImageError(
            f"{self.name}: {tag} points outside every segment", address=vaddr, hint=_FETCH
        )

    def dynamic_relocations(self) -> list[Relocation]:
        """Return the relocations of all tables that the dynamic tags name; those of the PLT's table
        that another one has as well come once.

        Those of RELR's form have type -1 and no addend.
        """
        tags, found = self.tags, []
        for tag, size, rela in (("DT_RELA", "DT_RELASZ", True), ("DT_REL", "DT_RELSZ", False)):
            if tags.get(tag) and tags.get(size):
                found += self._relocations(self._offset(tag), tags[size], rela)
        if tags.get("DT_RELR") and tags.get("DT_RELRSZ"):
            table = RelrRelocationTable(
                self._file, self._offset("DT_RELR"), tags["DT_RELRSZ"], tags["DT_RELRENT"]
            )
            found += [Relocation(r["r_offset"], -1, 0, None) for r in table.iter_relocations()]
        if tags.get("DT_JMPREL") and tags.get("DT_PLTRELSZ"):
            rela = tags.get("DT_PLTREL") == _DT_RELA
            known = set(found)  # some linkers count the PLT's table in the other one too
            found += [
                r
                for r in self._relocations(self._offset("DT_JMPREL"), tags["DT_PLTRELSZ"], rela)
                if r not in known
            ]
        return found

    def _relocations(self, offset: int, size: int, rela: bool) -> list[Relocation]:
        """Return the entries of a relocation table: Elf32_Rel, Elf64_Rela and so on. Without
        addends in the table, `addend` is None.

        Of MIPS64's three composed types the first is in bits 0 to 7 of `type`, the second and the
        third in the bytes above.

        Args:
            offset: of the table, in the file.
            size: bytes of the table; a rest that is no whole entry is left out.
            rela: True: the entries have addends.
        """
        mips64 = self._file["e_machine"] == "EM_MIPS" and self.bits == 64
        address, addend = ("Q", "q") if self.bits == 64 else ("I", "i")
        info = "I4B" if mips64 else address
        shape = self._struct(address + info + (addend if rela else ""))
        raw = self.bytes_at(offset, size)[: size // shape.size * shape.size]
        # for r_info a symbol, a second one, and three composed types, the last one first
        if mips64:
            return [
                Relocation(
                    where,
                    third << 16 | second << 8 | first,
                    symbol,
                    addends[0] if addends else None,
                )
                for where, symbol, _, third, second, first, *addends in shape.iter_unpack(raw)
            ]
        shift = 32 if self.bits == 64 else 8
        kinds = (1 << shift) - 1
        if rela:
            return [
                Relocation(where, info & kinds, info >> shift, addend)
                for where, info, addend in shape.iter_unpack(raw)
            ]
        return [
            Relocation(where, info & kinds, info >> shift, None)
            for where, info in shape.iter_unpack(raw)
        ]

    def _struct(self, fields: str) -> struct.Struct:
        """Return a struct.Struct in the file's byte order and without padding.

        Args:
            fields: in struct's notation, without a mark of the byte order.
        """
        return struct.Struct(("<" if self.order == "little" else ">") + fields)

    def dynamic_symbols(self, at_least: int) -> list[SymbolEntry]:
        """Return the dynamic symbol table; [] where there is none.

        Args:
            at_least: the least number of entries: those that the relocations use. No tag tells how
                many there are.
        """
        if "DT_SYMTAB" not in self.tags:
            return []
        size = self._structs.Elf_Sym.sizeof()
        count = max(at_least, self._symbol_count())
        self.bytes_at(offset := self._offset("DT_SYMTAB"), count * size)
        entries = self._symbols(offset, count, size, self._offset("DT_STRTAB"))
        return [
            e._replace(version=v) if v else e
            for e, v in zip(entries, self._versions(count), strict=True)
        ]

    @cached_property
    def _strings(self) -> StringTableSection:
        """The string table of the dynamic symbols."""
        return StringTableSection(
            _header(sh_type="SHT_STRTAB", sh_offset=self._offset("DT_STRTAB")),
            ".dynstr",
            self._file,
        )

    def _symbol_count(self) -> int:
        """Return how many dynamic symbols there are, as far as the file tells; it may be too few.

        The section header of .dynsym tells. Where it is missing, a hash table does: GNU's need not
        count imports, for it does not hash them. DT_MIPS_SYMTABNO counts where it says more. 0:
        nothing tells.
        """
        counts = [
            s["sh_size"] // self._structs.Elf_Sym.sizeof()
            for s in self.sections
            if s["sh_type"] == "SHT_DYNSYM"
        ]
        symbols: Any = None  # the hash tables look names up in it; we only count
        if not counts and "DT_GNU_HASH" in self.tags:
            counts.append(
                GNUHashTable(
                    self._file, self._offset("DT_GNU_HASH"), symbols
                ).get_number_of_symbols()
            )
        if not counts and "DT_HASH" in self.tags:
            counts.append(
                ELFHashTable(
                    self._file, self._offset("DT_HASH"), symbols, symbols
                ).get_number_of_symbols()
            )
        return int(max([self.tags.get("DT_MIPS_SYMTABNO", 0), *counts]))

    def _versions(self, count: int) -> list[str]:
        """Return the version of each dynamic symbol that this file defines with a non-default
        version.

        Args:
            count: how many dynamic symbols there are, and entries the result has.

        Returns:
            A version for each symbol; "" for all other symbols.
        """
        if "DT_VERSYM" not in self.tags or "DT_VERDEF" not in self.tags:
            return [""] * count
        raw = self.bytes_at(self._offset("DT_VERSYM"), 2 * count)
        indexes = struct.unpack(f"{'<' if self.order == 'little' else '>'}{count}H", raw)
        header = _header(
            sh_type="SHT_GNU_verdef",
            sh_offset=self._offset("DT_VERDEF"),
            sh_info=self.tags["DT_VERDEFNUM"],
        )
        defined = GNUVerDefSection(header, ".gnu.version_d", self._file, self._strings)
        # a damaged list may be a ring
        names = {
            v["vd_ndx"]: next(iter(aux)).name
            for v, aux in itertools.islice(defined.iter_versions(), 0x1000)
        }
        return [names.get(i & 0x7FFF, "") if i & 0x8000 else "" for i in indexes]

    # sections

    @property
    def has_debug(self) -> bool:
        """True where the file has call frame information or other unwind tables (SFrame, ORC),
        DWARF, BTF or probes of SystemTap's form.
        """
        names = (
            ".eh_frame",
            ".debug_frame",
            ".debug_info",
            ".zdebug_info",
            ".note.stapsdt",
            ".BTF",
            ".sframe",
            ".orc_unwind_ip",
        )
        return any(s.name in names for s in self.sections)

    @property
    def has_attributes(self) -> bool:
        """True where the file has a section of attributes: it, or e_flags beside it, may say by
        which variant of the calling convention the file's functions are called.
        """
        names = (".ARM.attributes", ".MIPS.abiflags", ".gnu.attributes", ".riscv.attributes")
        return any(s.name in names for s in self.sections)

    @cached_property
    def only_debug(self) -> bool:
        """True for separate debug information, which has the sections of a program without their
        bytes."""
        return any(s.name == ".text" and s["sh_type"] == "SHT_NOBITS" for s in self.sections)

    @cached_property
    def sections(self) -> list[Section]:
        """All sections.

        [] where the section table of an executable or a library is damaged: such a file runs
        without one (`sections_damaged`). Of a relocatable file the damage is raised.
        """
        try:
            return list(self._file.iter_sections())
        except _DAMAGE:
            if self.type == "ET_REL":
                raise
            return []

    @property
    def sections_damaged(self) -> bool:
        """True where there should be sections and they cannot be read."""
        return bool(self._file["e_shoff"] and self._file["e_shnum"] and not self.sections)

    def symbols(self, table: SymbolTableSection) -> list[SymbolEntry]:
        """Return all rows of a symbol table, the null row at its start included."""
        return self._symbols(
            table["sh_offset"],
            table.num_symbols(),
            table["sh_entsize"],
            table.stringtable["sh_offset"],
        )

    def _symbols(self, offset: int, count: int, step: int, strings: int) -> list[SymbolEntry]:
        """Return the rows of a symbol table: Elf32_Sym or Elf64_Sym.

        Args:
            offset: of the table, in the file.
            count: of its rows.
            step: bytes from a row to the next.
            strings: offset of its string table, in the file.
        """
        shape = self._struct("IBBHQQ" if self.bits == 64 else "IIIBBH")
        # name, value, size, info, other, section
        pick = itemgetter(0, 4, 5, 1, 2, 3) if self.bits == 64 else itemgetter(0, 1, 2, 3, 4, 5)
        raw = self.bytes_at(offset, count * step)
        if step == shape.size:
            rows = shape.iter_unpack(raw)
        else:
            rows = (shape.unpack_from(raw, at) for at in range(0, count * step, step))
        wide = next((s for s in self.sections if isinstance(s, SymbolTableIndexSection)), None)
        found = []
        for n, row in enumerate(rows):
            at, value, size, info, other, index = pick(row)
            section: str | int = _SECTIONS.get(index, index)
            if index == _EXTENDED and wide is not None:
                section = wide.get_section_index(n)
            found.append(
                SymbolEntry(
                    self._name(strings + at),
                    value,
                    size,
                    _TYPES.get(info & 15, info & 15),
                    _BINDS.get(info >> 4, info >> 4),
                    section,
                    other >> 5,
                )
            )
        return found

    def _name(self, offset: int) -> str:
        """Return the string at an offset of the file, up to its NUL; "" where no NUL follows."""
        end = self.data.find(0, offset)
        return self.data[offset:end].decode("utf-8", "replace") if end >= 0 else ""

    def symbol_table(self) -> list[SymbolEntry]:
        """Return the rows of .symtab; empty where it was stripped."""
        return next(
            (
                self.symbols(s)
                for s in self.sections
                if s["sh_type"] == "SHT_SYMTAB" and isinstance(s, SymbolTableSection)
            ),
            [],
        )

    def section_relocations(
        self, wanted: Callable[[Section], bool]
    ) -> list[tuple[int, list[Relocation]]]:
        """Return the relocations of the relocation sections that a function picks.

        Args:
            wanted: (relocation section) -> True where its relocations are wanted.

        Returns:
            For each such section: (index of the section that is to be relocated, its relocations).
        """
        return [
            (
                s["sh_info"],
                self._relocations(s["sh_offset"], s["sh_size"], s["sh_type"] == "SHT_RELA"),
            )
            for s in self.sections
            if s["sh_type"] in ("SHT_REL", "SHT_RELA") and wanted(s)
        ]

    def _parse(self, shape: Any, offset: int) -> Any:
        """Return the structure at an offset of the file.

        Args:
            shape: of pyelftools, such as its Elf_Phdr.
            offset: in the file.
        """
        return struct_parse(shape, self._file.stream, offset)


def _header(**known: Any) -> Container:
    """Return a section header for a table that only the dynamic tags know.

    Args:
        known: fields of the header, such as sh_offset; the others that readers ask for become 0 (an
            alignment 1).
    """
    return Container(
        **{"sh_flags": 0, "sh_size": 0, "sh_addralign": 1, "sh_entsize": 0, "sh_info": 0, **known}
    )


def _refuse_foreign(data: bytes, name: str) -> None:
    """Check that data begins as an ELF file does.

    Args:
        data: contents of the file.
        name: names the file in the error.

    Raises:
        ImageError: it does not; the message says what it is instead.
    """
    if data[:4] == b"\x7fELF":
        return
    for magic, (what, hint) in _FOREIGN.items():
        if data.startswith(magic):
            raise ImageError(f"{name}: {what}, not an ELF file", hint=hint)
    raise ImageError(
        f"{name}: not an ELF file",
        python="raw machine code is loaded with from_code(code, arch=...)",
        command="--arch NAME and --base ADDRESS, or --board FILE, load a raw image",
    )
