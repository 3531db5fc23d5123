"""ELF files -> segments, relocations, symbols; and what guest memory holds once they have an address.

`read_elf` parses, `Image.place` computes. Nothing here maps memory or runs code; every answer is a value.

Thread-local storage is not set up: words that hold offsets from the thread pointer are bound as if it were 0, so code that
uses them faults at a small (or, negative, a very high) address; `Placed.warnings` says so.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import field, frozen

from .elf import LIMIT, Elf, Entry, Load, Relocation, damage_is_error
from .errors import ImageError
from .relocation_types import AARCH64, ARM, MIPS, PPC, PPC64, RISCV, SPARCV9, X86_64
from .relocations import Memory, Row, Site, Target, apply, rows, signed, table
from .symbols import Symbol

PAGE = 0x1000  #: bytes; segments are cut and merged at multiples of it
_KINDS = {"ET_EXEC": "exec", "ET_DYN": "dyn", "ET_REL": "rel"}
_FUNCTIONS = ("STT_FUNC", "STT_LOOS", "STT_LOPROC")  # STT_LOOS: an ifunc; STT_LOPROC: Thumb code in old ARM files
_SPECIAL = ("_GLOBAL_OFFSET_TABLE_", "_gp_disp", "_gp", "__gnu_local_gp", ".TOC.")  # the linker's own; of a .o, ours
_DESCRIPTOR = 24  # bytes: code address, TOC, environment (PPC64 ELFv1)
_DF_1_PIE = 0x08000000
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400  # section flags


@frozen(kw_only=True)
class Segment:
    """Memory to map. addr and memsz (bytes) are multiples of PAGE; what lies beyond `data` is zero. perms: out of "rwx"."""

    addr: int
    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    memsz: int
    perms: str


@frozen(kw_only=True)
class Import:
    """An undefined symbol. kind: "func", "object" or "" where the file does not say. size: bytes, of objects, or 0."""

    name: str
    weak: bool
    kind: str
    size: int


@frozen(kw_only=True)
class Copy:
    """Bytes of another image: after everything is mapped, copy `size` bytes from address `frm` to `to`."""

    to: int
    frm: int
    size: int


#: name of an undefined symbol -> its address (on ARM with bit 0 set for Thumb code; on PPC64 ELFv1 the function descriptor's,
#: and the code itself is asked for as `.name`), or None where nobody has it
Resolve = Callable[[str], int | None]
#: address of an ifunc's resolver function -> the address to use for the function
ResolveIfunc = Callable[[int], int]


@frozen(kw_only=True)
class Placed:
    """An image at its address.

    Attributes:
        segments: disjoint, in order, relocated. symbols: at run addresses. entry: where a program starts, or None.
        init: addresses of initialisation functions in the order in which they are due; nobody has called them.
        local_entries: PPC64 ELFv2: function address -> bytes from it to the entry for callers of the same image.
        copies: to be done after mapping. warnings: what will not work, one sentence each.
    """

    name: str
    base: int
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    entry: int | None
    init: tuple[int, ...]
    local_entries: dict[int, int]
    copies: tuple[Copy, ...]
    warnings: tuple[str, ...]


@frozen(kw_only=True)
class Image:
    """A parsed file. Addresses are link addresses; `place` moves them.

    Attributes:
        name: module name, the file's base name. e_machine, e_flags: as in the file. bits: 32 or 64. order: "little" or "big".
        kind: "exec" (fixed addresses), "dyn" (shared object or PIE), "rel" (.o, .ko; laid out here from address 0).
        entry: None where there is none. symbols: functions and objects, a PLT stub of f as `f@plt`.
        imports: undefined symbols by name. tls: it has thread-local storage.
        init: (address, 0) of an initialisation function, (address, bytes) of a table of them, in the order in which they are due.
        local_entries: see Placed. descriptors: PPC64 ELFv1: function symbols are descriptors.
        relocates_itself: a static PIE with addends in place, see `place`. warnings: what could not be read.
    """

    name: str
    e_machine: int
    e_flags: int
    bits: int
    order: str
    kind: str
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    relocations: tuple[Relocation, ...] = field(repr=lambda relocations: f"<{len(relocations)} relocations>")
    entries: tuple[Entry, ...] = field(repr=False)  #: the symbol table that relocations count in
    imports: dict[str, Import] = field(repr=lambda imports: f"<{len(imports)} imports>")
    entry: int | None = None
    init: tuple[tuple[int, int], ...] = ()
    tls: bool = False
    relocates_itself: bool = False
    local_entries: dict[int, int] = field(factory=dict)
    got: int = 0  #: relocatable files: where the slots are that relocations ask for
    warnings: tuple[str, ...] = ()

    @property
    def lowest(self) -> int:
        """Lowest link address, a multiple of PAGE."""
        return self.segments[0].addr

    @property
    def span(self) -> int:
        """Bytes from the lowest address to the end of the highest segment, a multiple of PAGE."""
        return self.segments[-1].addr + self.segments[-1].memsz - self.lowest

    @property
    def descriptors(self) -> bool:
        """PPC64 ELFv1: function symbols are descriptors. Old files do not say so; little-endian ones never are."""
        return self.e_machine == PPC64 and self.e_flags & 3 != 2 and self.order == "big"

    def place(self, base: int, resolve: Resolve, resolve_ifunc: ResolveIfunc | None = None, *,
              module: str | None = None, relocate: bool = True) -> Placed:
        """What memory holds with the image loaded `base` bytes above its link addresses.

        base: a multiple of PAGE; 0 for kind "exec". resolve: addresses of undefined symbols; where it has none a weak symbol
        is 0. resolve_ifunc: without it functions that choose their implementation at load time are bound to 0.
        module: of the symbols; default: the image's name. relocate=False: leave that to the start-up code of a static PIE,
        which would add the base a second time where addends stand in place.
        Raises ImageError: no room, an undefined symbol, a relocation that is unknown or does not reach.
        """
        end = base + self.lowest + self.span
        if base % PAGE or base + self.lowest < 0 or end > 1 << self.bits or self.kind == "exec" and base:
            raise ImageError(f"{self.name}: cannot be moved by {base:#x}",
                             hint=f"the base is a multiple of {PAGE:#x}, and 0 for executables with fixed addresses")
        return _Placing(self, base, resolve, resolve_ifunc).placed(self.name if module is None else module, relocate)


def read_elf(source: str | os.PathLike[str] | bytes, name: str | None = None) -> Image:
    """Parse an ELF file, or the bytes of one. name: of the module; default: the file's base name.

    Raises ImageError: not found, unreadable, truncated, damaged, not ELF, a core file, nothing to load, too big.
    """
    data, name = _contents(source, name)
    with damage_is_error(name):
        elf = Elf(data, name)
        if elf.type not in _KINDS:
            what = "a core file" if elf.type == "ET_CORE" else f"an ELF file of type {elf.type}"
            raise ImageError(f"{name}: {what}", hint="executables, shared objects and relocatable files are loaded")
        return _relocatable(elf) if elf.type == "ET_REL" else _loadable(elf)


def _contents(source: str | os.PathLike[str] | bytes, name: str | None) -> tuple[bytes, str]:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), name or "<bytes>"
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(), name or os.path.basename(path)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ImageError(f"{path}: {reason}", hint="give the path of an ELF file") from error


# executables and shared objects


def _loadable(elf: Elf) -> Image:
    segments = _merge(elf.loads)
    memory = _memory(segments, 0, elf.order, elf.name)
    raw = elf.dynamic_relocations() if elf.tags else _static_relocations(elf)
    entries = elf.dynamic_symbols(max((r.symbol + 1 for r in raw), default=0))
    relocations = (*_with_addends(raw, memory, elf), *_mips_got(elf, memory, len(entries)))
    _refuse_code_plt(elf, relocations)
    everything = [*elf.symbol_table(), *entries]
    return Image(
        name=elf.name, e_machine=elf.machine, e_flags=elf.flags, bits=elf.bits, order=elf.order, kind=_KINDS[str(elf.type)],
        segments=segments, symbols=(*_symbols(elf, everything, segments), *_plt_symbols(elf, relocations, entries)),
        relocations=relocations, entries=tuple(entries), imports=_imports(entries), entry=elf.entry or None,
        init=_init(elf), tls=elf.has("PT_TLS"), relocates_itself=_relocates_itself(elf), local_entries=_local(elf, everything),
        warnings=("the section headers are damaged: only dynamic symbols are known",) if elf.sections_damaged else ())


def _merge(loads: Sequence[Load]) -> tuple[Segment, ...]:
    """Page-aligned, disjoint segments; a page that two of them share has the permissions of both."""
    spans = [(load.vaddr // PAGE * PAGE, _up(load.vaddr + load.memsz, PAGE), load.perms) for load in loads]
    runs: list[tuple[int, int, set[str]]] = []
    for start, end in pairwise(sorted({edge for low, high, _ in spans for edge in (low, high)})):
        here = [perms for low, high, perms in spans if low <= start < high]
        perms = set("".join(here))
        if here and runs and runs[-1][1:] == (start, perms):
            runs[-1] = (runs[-1][0], end, perms)
        elif here:
            runs.append((start, end, perms))
    return tuple(Segment(addr=start, data=_bytes(loads, start, end), memsz=end - start,
                         perms="".join(p for p in "rwx" if p in perms)) for start, end, perms in runs)


def _bytes(loads: Iterable[Load], start: int, end: int) -> bytes:
    data = bytearray()
    for load in loads:
        low, high = max(start, load.vaddr), min(end, load.vaddr + len(load.data))
        if low < high:
            data.extend(bytes(max(0, high - start - len(data))))
            data[low - start:high - start] = load.data[low - load.vaddr:high - load.vaddr]
    return bytes(data)


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _memory(segments: Iterable[Segment], base: int, order: str, name: str) -> Memory:
    return Memory(((s.addr + base, s.memsz, s.data) for s in segments), order, name)


def _static_relocations(elf: Elf) -> list[Relocation]:
    """What is left in static programs: ifuncs, which name no symbol, in sections that are loaded."""
    found = elf.section_relocations(lambda s: bool(s["sh_flags"] & _ALLOC))
    return [r for _, relocations in found for r in relocations if r.symbol == 0]


def _with_addends(raw: Iterable[Relocation], memory: Memory, elf: Elf) -> Iterator[Relocation]:
    """Every addend made explicit, whatever form the tables have."""
    relative = next((kind for kind, row in table(elf.machine, elf.bits).items() if row.formula in ("B+A", "REL32")), 0)
    for r in raw:
        kind = relative if r.type < 0 else r.type
        known = rows(elf.machine, elf.bits, kind)
        addend = (known[-1].field.read(memory, r.offset) if known else 0) if r.addend is None else r.addend
        yield Relocation(r.offset, kind, r.symbol, addend)


def _mips_got(elf: Elf, memory: Memory, symbols: int) -> Iterator[Relocation]:
    """The GOT's entries have no relocations: local ones are moved, the rest stand for the last symbols, in order."""
    if elf.machine != MIPS or not {"DT_PLTGOT", "DT_MIPS_LOCAL_GOTNO", "DT_MIPS_GOTSYM"} <= elf.tags.keys():
        return
    got, local, first = (elf.tags[tag] for tag in ("DT_PLTGOT", "DT_MIPS_LOCAL_GOTNO", "DT_MIPS_GOTSYM"))
    word = elf.bits // 8
    reserved = 2 if memory.read(got + word, word) >> elf.bits - 1 else 1  # the resolver, and GNU's module pointer
    for n in range(reserved, local):
        yield Relocation(got + n * word, 3 if word == 4 else 3 | 18 << 8, 0, memory.read(got + n * word, word))
    for n, symbol in enumerate(range(first, symbols)):
        yield Relocation(got + (local + n) * word, 51, symbol, 0)


def _refuse_code_plt(elf: Elf, relocations: Iterable[Relocation]) -> None:
    """Old 32-bit PowerPC PLTs are code that the dynamic linker writes; DT_PPC_GOT marks the others."""
    if elf.machine == PPC and not {"DT_LOPROC", "DT_PPC_GOT", 0x70000000} & elf.tags.keys():
        if any(r.type == 21 for r in relocations):
            raise ImageError(f"{elf.name}: its PLT is of the old kind that is written at run time", hint="link it with -msecure-plt")


def _imports(entries: Iterable[Entry]) -> dict[str, Import]:
    kinds: dict[str | int, str] = {"STT_FUNC": "func", "STT_LOOS": "func", "STT_OBJECT": "object"}
    return {e.name: Import(name=e.name, weak=e.bind == "STB_WEAK", kind=kinds.get(e.type, ""), size=e.size) for e in entries
            if e.name and e.section == "SHN_UNDEF" and e.type not in ("STT_TLS", "STT_LOPROC") and e.name not in _SPECIAL}


def _init(elf: Elf) -> tuple[tuple[int, int], ...]:
    due = (("DT_PREINIT_ARRAY", "DT_PREINIT_ARRAYSZ"), ("DT_INIT", ""), ("DT_INIT_ARRAY", "DT_INIT_ARRAYSZ"))
    return tuple((elf.tags[tag], elf.tags.get(size, 0)) for tag, size in due
                 if elf.tags.get(tag) and (not size or elf.tags.get(size)))


def _relocates_itself(elf: Elf) -> bool:
    in_place = "DT_REL" in elf.tags or "DT_RELR" in elf.tags
    return in_place and bool(elf.tags.get("DT_FLAGS_1", 0) & _DF_1_PIE) and not elf.has("PT_INTERP")


def _local(elf: Elf, entries: Iterable[Entry]) -> dict[int, int]:
    """ELFv2: st_other's top bits say 2 ** n bytes; 0 and 1 mean that both entries are one."""
    if elf.machine != PPC64:
        return {}
    return {e.value: 1 << e.local for e in entries if e.section != "SHN_UNDEF" and 2 <= e.local < 7}


# relocatable files


def _relocatable(elf: Elf) -> Image:
    layout = _Layout(elf)
    raw = elf.section_relocations(lambda s: s["sh_info"] in layout.members)
    layout.slots = sum(row.slots for _, found in raw for r in found for row in rows(elf.machine, elf.bits, r.type))
    entries = layout.arrange(elf.symbol_table())
    segments = _merge(layout.loads)
    memory = _memory(segments, 0, elf.order, elf.name)
    relocations: list[Relocation] = []
    for section, found in raw:
        moved = [r._replace(offset=r.offset + layout.at[section]) for r in found]
        explicit = list(_with_addends(moved, memory, elf))
        paired = elf.machine == MIPS and any(r.addend is None for r in found)
        relocations += _mips_pairs(explicit, entries) if paired else explicit
    return Image(
        name=elf.name, e_machine=elf.machine, e_flags=elf.flags, bits=elf.bits, order=elf.order, kind="rel", segments=segments,
        symbols=_symbols(elf, entries, segments), relocations=tuple(relocations), entries=tuple(entries),
        imports=_imports(entries), local_entries=_local(elf, entries), got=layout.got, tls=layout.tls,
        init=tuple((layout.at[n], s["sh_size"]) for n, s in layout.members.items() if s["sh_type"] == "SHT_INIT_ARRAY"))


class _Layout:
    """Where the sections of a relocatable file go: grouped by permissions, so that code and data share no page."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self.members = {n: s for n, s in enumerate(elf.sections) if s["sh_flags"] & _ALLOC}
        self.tls = any(s["sh_flags"] & _TLS for s in self.members.values())
        self.at: dict[int, int] = {}  #: section -> address
        self.loads: list[Load] = []
        self.slots = 0  #: how many words the GOT may need
        self.got = 0
        if not self.members:
            raise ImageError(f"{elf.name}: nothing in it is to be loaded", hint="compile it again: it has no code and no data")

    def arrange(self, entries: list[Entry]) -> list[Entry]:
        """Lay out; return the symbols at their addresses. Common symbols get theirs at the end."""
        for perms in ("rx", "r", "rwx", "rw"):
            self._group(perms)
        return [self._moved(e) for e in entries]

    def _group(self, perms: str) -> None:
        start = end = _up(self.loads[-1].vaddr + self.loads[-1].memsz, PAGE) if self.loads else 0
        data = bytearray()
        if perms == "rw" and self.slots:
            self.got, end = start, start + self.slots * self._elf.bits // 8
        for n, s in sorted(self.members.items(), key=_small_data_first):
            if perms != "r" + "w" * bool(s["sh_flags"] & _WRITE) + "x" * bool(s["sh_flags"] & _EXEC):
                continue
            self.at[n] = _up(end, max(1, s["sh_addralign"]))
            end = self._checked(self.at[n] + s["sh_size"])
            if s["sh_type"] != "SHT_NOBITS":
                data.extend(bytes(self.at[n] - start - len(data)) + self._elf.bytes_at(s["sh_offset"], s["sh_size"]))
        if end > start:
            self.loads.append(Load(start, bytes(data), end - start, perms))

    def _moved(self, e: Entry) -> Entry:
        if e.section in ("SHN_COMMON", 0xFF03):  # the second: MIPS's small ones; the value is an alignment
            addr = _up(self.loads[-1].vaddr + self.loads[-1].memsz, max(1, e.value)) if self.loads else 0
            self._extend(addr, self._checked(addr + e.size))
            return e._replace(value=addr, section="common")
        if isinstance(e.section, str):
            return e
        if e.section not in self.at:
            return e._replace(section="none")
        name = e.name or self.members[e.section].name
        return e._replace(name=name, value=e.value + self.at[e.section])

    def _extend(self, addr: int, end: int) -> None:
        if self.loads and self.loads[-1].perms == "rw":
            self.loads[-1] = self.loads[-1]._replace(memsz=end - self.loads[-1].vaddr)
        else:
            start = _up(addr, PAGE)
            self.loads.append(Load(start, b"", end - addr, "rw"))

    def _checked(self, end: int) -> int:
        if end > LIMIT:
            raise ImageError(f"{self._elf.name}: its sections need more than {LIMIT >> 20} MiB", hint="is the file damaged?")
        return end
