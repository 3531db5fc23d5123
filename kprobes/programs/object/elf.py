"""ELF objects for the BPF machine, as far as a loader needs them."""

from __future__ import annotations

import io
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from attrs import evolve, frozen
from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile

from ...errors import ProgramError
from ..isa import Order

_DAMAGE: Final = (
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
_FETCH: Final = "the object is damaged or cut off: build it again"
_OTHERS: Final = (".debug", ".BTF", ".eh")  # relocations of these are for debuggers
#: the largest section in memory only (.bss), in bytes
LIMIT: Final = 1 << 30


@contextmanager
def damage_is_error(name: str) -> Iterator[None]:
    """Turn whatever a damaged object raises inside a with block into a ProgramError.

    Args:
        name: name of the object, for the error.
    """
    try:
        yield
    except _DAMAGE as error:
        what = str(error) or type(error).__name__
        raise ProgramError(f"cannot be read: {what}", program=name, hint=_FETCH) from error


@frozen
class Section:
    """A section of an object.

    Attributes:
        index: the section's number.
        name: the section's name.
        data: its bytes; zeros where the file has none.
        executable: True where its flags say so.
        writable: True where its flags say so.
        allocated: True where its flags say so.
    """

    index: int
    name: str
    data: bytes
    executable: bool
    writable: bool
    allocated: bool


@frozen
class ObjectSymbol:
    """A symbol of an object.

    Attributes:
        name: the symbol's name.
        value: its offset in the section.
        size: bytes of what it names.
        section: the section's index; 0 where it is in none: undefined, absolute or common.
        type: "FUNC", "OBJECT", "SECTION", ...
        bind: "LOCAL", "GLOBAL", "WEAK".
    """

    name: str
    value: int
    size: int
    section: int
    type: str
    bind: str


@frozen
class ObjectRelocation:
    """A relocation of an object.

    Attributes:
        offset: bytes from the section's beginning to the instruction.
        symbol: the symbol that the instruction refers to.
        type: the BPF machine's number of the relocation's kind.
    """

    offset: int
    symbol: ObjectSymbol
    type: int


class ObjectFile:
    """A relocatable object for BPF.

    Attributes:
        name: the object's name, for messages.
        order: byte order.
        sections: its sections, by index.
        symbols: its symbols, in the file's order.
        relocations: section index -> offset -> relocation.
    """

    def __init__(self, data: bytes, name: str) -> None:
        """Read an object.

        Args:
            data: its bytes.
            name: the object's name, for messages.

        Raises:
            ProgramError: it is no BPF object, or damaged.
        """
        self.name = name
        with damage_is_error(name):
            if data[:4] != b"\x7fELF":
                raise ProgramError(
                    "is no ELF file",
                    program=name,
                    hint="give an object made by clang -target bpf -c",
                )
            elf = ELFFile(io.BytesIO(data))
            if elf["e_machine"] != "EM_BPF" or elf["e_type"] != "ET_REL" or elf.elfclass != 64:
                raise ProgramError(
                    f"is no BPF object but {elf['e_type']} for {elf['e_machine']}",
                    program=name,
                    hint="compile it with -target bpf -c",
                )
            self.order: Order = "little" if elf.little_endian else "big"
            self.sections = [self._section(i, s) for i, s in enumerate(elf.iter_sections())]
            self.symbols = self._with_types(self._symbols(elf))
            self.relocations = self._relocations(elf)

    def _section(self, index: int, s: Any) -> Section:
        """Return a section with its bytes. A section that has no bytes in the file (SHT_NOBITS, as
        .bss) gets zeros.

        Args:
            index: the section's number.
            s: the section as pyelftools reads it.

        Raises:
            ProgramError: the file ends before the section does; or the zeros would be more than
                LIMIT.
        """
        flags = s["sh_flags"]
        if s["sh_type"] == "SHT_NOBITS" and s["sh_size"] > LIMIT:
            raise ProgramError(
                f"section {s.name} takes {s['sh_size']:,} bytes where {LIMIT:,} are the most",
                program=self.name,
            )
        data = bytes(s["sh_size"]) if s["sh_type"] == "SHT_NOBITS" else s.data()
        if len(data) != s["sh_size"]:
            raise ProgramError(f"section {s.name} is cut off", program=self.name, hint=_FETCH)
        return Section(index, s.name, data, bool(flags & 4), bool(flags & 1), bool(flags & 2))

    @staticmethod
    def _symbols(elf: Any) -> list[ObjectSymbol]:
        """Return the symbols of .symtab by their numbers; none where there is no such section."""
        table = elf.get_section_by_name(".symtab")
        if table is None:
            return []
        return [
            ObjectSymbol(
                s.name,
                s["st_value"],
                s["st_size"],
                s["st_shndx"] if isinstance(s["st_shndx"], int) else 0,
                str(s["st_info"]["type"]).removeprefix("STT_"),
                str(s["st_info"]["bind"]).removeprefix("STB_"),
            )
            for s in table.iter_symbols()
        ]

    def _with_types(self, symbols: list[ObjectSymbol]) -> list[ObjectSymbol]:
        """Return symbols with the types and sizes that clang before version 11 did not write.

        A global symbol without a type is a function where its section is executable, and an object
        in the section `maps`. It ends where the next one begins, or at the section's end.

        Args:
            symbols: all symbols of the object.
        """
        starts: dict[int, list[int]] = {}
        for s in symbols:
            if s.type == "NOTYPE" and s.bind != "LOCAL" and 0 < s.section < len(self.sections):
                starts.setdefault(s.section, []).append(s.value)
        for values in starts.values():
            values.sort()
        return [
            self._with_type(s, starts[s.section])
            if s.type == "NOTYPE" and s.bind != "LOCAL" and s.section in starts
            else s
            for s in symbols
        ]

    def _with_type(self, symbol: ObjectSymbol, starts: Sequence[int]) -> ObjectSymbol:
        """Return a symbol with type and size where its section tells what it is.

        Args:
            symbol: a global symbol without a type, in a section.
            starts: offsets of all such symbols of its section, in order.
        """
        section = self.sections[symbol.section]
        if not section.executable and section.name != "maps":
            return symbol
        after = bisect_right(starts, symbol.value)
        end = starts[after] if after < len(starts) else len(section.data)
        kind = "FUNC" if section.executable else "OBJECT"
        return evolve(symbol, type=kind, size=max(end - symbol.value, 0))

    def _relocations(self, elf: Any) -> dict[int, dict[int, ObjectRelocation]]:
        """Return section index -> offset -> relocation; those of debug information are left out.

        Raises:
            ProgramError: a section has relocations of a kind that BPF objects do not have.
        """
        out: dict[int, dict[int, ObjectRelocation]] = {}
        for s in elf.iter_sections():
            if s["sh_type"] in ("SHT_REL", "SHT_RELA") and not elf.get_section(
                s["sh_info"]
            ).name.startswith(_OTHERS):
                if s["sh_type"] == "SHT_RELA":
                    raise ProgramError(
                        f"section {s.name} has relocations with addends, which BPF objects have "
                        "not",
                        program=self.name,
                    )
                rows = out.setdefault(s["sh_info"], {})
                for r in s.iter_relocations():
                    rows[r["r_offset"]] = ObjectRelocation(
                        r["r_offset"], self.symbols[r["r_info_sym"]], r["r_info_type"]
                    )
        return out

    def section(self, name: str) -> Section | None:
        """Return the first section of a name; None: there is none."""
        return next((s for s in self.sections if s.name == name), None)
