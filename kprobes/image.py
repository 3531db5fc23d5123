"""ELF files -> segments, relocations, symbols. `read_elf` is the door; `Image.place` gives the image an address."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from .elf import LIMIT, Elf, Entry, Load, Relocation, damage_is_error
from .errors import ImageError
from .placing import FUNCTIONS, SPECIAL, Copy, Image, Import, Placed, Resolve, ResolveIfunc, Segment, memory_of, page_size, segment_at
from .relocation_types import AARCH64, ARM, MIPS, PPC, PPC64, RISCV, SPARC, SPARC32PLUS, SPARCV9, X86_64
from .relocations import Memory, rows, signed, table
from .symbols import Symbol

__all__ = ["Copy", "Image", "Import", "Placed", "Resolve", "ResolveIfunc", "Segment", "page_size", "read_elf"]

_KINDS = {"ET_EXEC": "exec", "ET_DYN": "dyn", "ET_REL": "rel"}
_DF_1_PIE = 0x08000000
_MAX_ALIGNMENT = 1 << 21
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400  # section flags
_COMMON = ("SHN_COMMON", 0xFF03)  # the second: MIPS's small ones; the value is an alignment


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
    segments = _merge(elf.loads, page_size(elf.machine))
    memory = memory_of(segments, 0, elf.order, elf.name)
    raw = elf.dynamic_relocations() if elf.tags else _static_relocations(elf)
    entries = elf.dynamic_symbols(max((r.symbol + 1 for r in raw), default=0))
    relocations = (*_with_addends(raw, memory, elf), *_mips_got(elf, memory, len(entries)))
    _refuse_code_plt(elf, relocations)
    everything = [*elf.symbol_table(), *entries]
    return Image(
        name=elf.name, machine=elf.machine, flags=elf.flags, bits=elf.bits, order=elf.order, kind=_KINDS[str(elf.type)],
        segments=segments, symbols=(*_symbols(elf, everything, segments), *_plt_symbols(elf, relocations, entries)),
        relocations=relocations, entries=tuple(entries), imports=_imports(entries), entry=elf.entry or None,
        init=_init(elf), tls=elf.has("PT_TLS"), relocates_itself=_relocates_itself(elf), local_entries=_local(elf, everything),
        warnings=("the section headers are damaged: only dynamic symbols are known",) if elf.sections_damaged else ())


def _merge(loads: Sequence[Load], page: int) -> tuple[Segment, ...]:
    """Page-aligned, disjoint segments; a page that two of them share has the permissions of both."""
    spans = [(load.vaddr // page * page, _up(load.vaddr + load.memsz, page), load.perms) for load in loads]
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
    marked = {"DT_LOPROC", "DT_PPC_GOT", 0x70000000} & elf.tags.keys()
    if elf.machine == PPC and not marked and any(r.type == 21 for r in relocations):
        raise ImageError(f"{elf.name}: its PLT is of the old kind, written at run time", hint="link it with -msecure-plt")


def _imports(entries: Iterable[Entry]) -> dict[str, Import]:
    kinds: dict[str | int, str] = {"STT_FUNC": "func", "STT_LOOS": "func", "STT_OBJECT": "object"}
    return {e.name: Import(name=e.name, weak=e.bind == "STB_WEAK", kind=kinds.get(e.type, ""), size=e.size) for e in entries
            if e.name and e.section == "SHN_UNDEF" and e.type not in ("STT_TLS", "STT_LOPROC") and e.name not in SPECIAL}


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
    segments = _merge(layout.loads, page_size(elf.machine))
    memory = memory_of(segments, 0, elf.order, elf.name)
    relocations: list[Relocation] = []
    for section, found in raw:
        moved = [r._replace(offset=r.offset + layout.at[section]) for r in found]
        explicit = list(_with_addends(moved, memory, elf))
        paired = elf.machine == MIPS and any(r.addend is None for r in found)
        relocations += _mips_pairs(explicit, entries) if paired else explicit
    return Image(
        name=elf.name, machine=elf.machine, flags=elf.flags, bits=elf.bits, order=elf.order, kind="rel", segments=segments,
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
        self._commons: dict[int, int] = {}  # symbol -> address
        if not self.members:
            raise ImageError(f"{elf.name}: nothing in it is to be loaded", hint="compile it again: it has no code and no data")

    def arrange(self, entries: list[Entry]) -> list[Entry]:
        """Lay out; return the symbols at their addresses."""
        for perms in ("rx", "r", "rwx", "rw"):
            self._group(perms, entries)
        return [self._moved(n, e) for n, e in enumerate(entries)]

    def _group(self, perms: str, entries: list[Entry]) -> None:
        start = end = _up(self.loads[-1].vaddr + self.loads[-1].memsz, page_size(self._elf.machine)) if self.loads else 0
        data = bytearray()
        if perms == "rw":
            self.got, end = start, start + self.slots * self._elf.bits // 8
        for n, s in sorted(self.members.items(), key=_small_data_first):
            if _perms(s) != perms:
                continue
            self.at[n] = _up(end, self._alignment(s["sh_addralign"]))
            end = self._checked(self.at[n] + s["sh_size"])
            if s["sh_type"] != "SHT_NOBITS":
                data.extend(bytes(self.at[n] - start - len(data)) + self._elf.bytes_at(s["sh_offset"], s["sh_size"]))
        for n, e in enumerate(entries if perms == "rw" else ()):
            if e.section in _COMMON:
                self._commons[n] = _up(end, self._alignment(e.value))
                end = self._checked(self._commons[n] + e.size)
        if end > start:
            self.loads.append(Load(start, bytes(data), end - start, perms))

    def _moved(self, n: int, e: Entry) -> Entry:
        if n in self._commons:
            return e._replace(value=self._commons[n], section="common")
        if isinstance(e.section, str):
            return e
        if e.section not in self.at:
            return e._replace(section="none")
        return e._replace(name=e.name or str(self.members[e.section].name), value=e.value + self.at[e.section])

    def _alignment(self, asked: int) -> int:
        if asked > _MAX_ALIGNMENT:
            raise ImageError(f"{self._elf.name}: a section asks for an alignment of {asked:#x} bytes", hint="is the file damaged?")
        return max(1, asked)

    def _checked(self, end: int) -> int:
        if end > LIMIT:
            raise ImageError(f"{self._elf.name}: its sections need more than {LIMIT >> 20} MiB", hint="is the file damaged?")
        return end


def _perms(section: Any) -> str:
    return "r" + "w" * bool(section["sh_flags"] & _WRITE) + "x" * bool(section["sh_flags"] & _EXEC)


def _small_data_first(member: tuple[int, Any]) -> tuple[bool, bool, int]:
    """Data that code reaches with 16 bits from the GOT stands next to it; what has no bytes in the file comes last."""
    n, section = member
    small = section.name.startswith((".toc", ".got", ".sdata", ".sbss", ".lit"))
    return section["sh_type"] == "SHT_NOBITS", not small, n


def _mips_pairs(relocations: list[Relocation], entries: list[Entry]) -> list[Relocation]:
    """An addend in place is cut in two: the high half's other half is the next low half's for the same symbol."""
    low: dict[int, int] = {}
    found = []
    for r in reversed(relocations):
        addend = r.addend or 0
        if r.type in (6, 65):  # LO16, PCLO16
            low[r.symbol] = addend
        elif r.type == 9 and entries[r.symbol].bind == "STB_LOCAL":  # GOT16
            addend = (addend << 16) + low.get(r.symbol, 0)
        elif r.type in (5, 64):  # HI16, PCHI16: read as bits 31..16
            addend += low.get(r.symbol, 0)
        found.append(r._replace(addend=addend))
    return found[::-1]


# symbols


def _symbols(elf: Elf, entries: Iterable[Entry], segments: tuple[Segment, ...]) -> tuple[Symbol, ...]:
    """Functions and objects, each (name, address) once; of several versions only the default one keeps the plain name."""
    entries = list(entries)
    marks = _arm_marks(elf, entries)
    found: dict[tuple[str, int], Symbol] = {}
    versions: dict[tuple[str, int], str] = {}
    for e in entries:
        segment = segment_at(segments, e.value)
        if segment is None or _hidden(elf, e):
            continue
        name, at, version = e.name.partition("@")  # .symtab has name@VERSION, and name@@VERSION for the default one
        symbol = _symbol(elf, e, name, "x" in segment.perms, marks)
        key = name, symbol.address
        if key not in found or symbol.size > found[key].size:
            found[key] = symbol
        hidden = e.version or (version if at and not version.startswith("@") else "")
        versions[key] = hidden if versions.get(key, hidden) else ""
    addresses: dict[str, int] = {}
    for name, _ in found:
        addresses[name] = addresses.get(name, 0) + 1
    return tuple(Symbol(f"{s.name}@{versions[key]}", s.address, s.size, s.module, s.mode, s.kind)
                 if versions[key] and addresses[s.name] > 1 else s for key, s in found.items())


def _hidden(elf: Elf, e: Entry) -> bool:
    """What is no name for code or data: sections, files, registers, marks of the assembler, addresses of elsewhere."""
    marks = elf.machine in (ARM, AARCH64, RISCV) and e.name[:2] in ("$a", "$t", "$d", "$x") and e.type == "STT_NOTYPE"
    register = elf.machine in (SPARC, SPARC32PLUS, SPARCV9) and e.type == "STT_LOPROC"
    elsewhere = e.section in ("SHN_UNDEF", "none") or (e.section == "SHN_ABS" and elf.type != "ET_EXEC")
    unnamed = not e.name or e.name.startswith(".L") or e.type in ("STT_SECTION", "STT_FILE", "STT_TLS")
    return marks or register or elsewhere or unnamed


def _symbol(elf: Elf, e: Entry, name: str, executable: bool, marks: list[tuple[int, str]]) -> Symbol:
    kind = {"STT_FUNC": "func", "STT_LOOS": "ifunc", "STT_OBJECT": "object", "STT_COMMON": "object"}.get(
        str(e.type), "func" if executable else "object")
    mode = 0
    if elf.machine in (ARM, MIPS) and e.type in FUNCTIONS:
        mode = e.value & 1  # Thumb; MIPS16 and microMIPS
    elif marks and kind == "func":
        at = bisect.bisect_right(marks, (e.value, "~")) - 1
        mode = int(at >= 0 and marks[at][1] == "t")
    return Symbol(name, e.value & ~1 if mode else e.value, e.size, "", mode, kind)


def _arm_marks(elf: Elf, entries: Iterable[Entry]) -> list[tuple[int, str]]:
    """Where ARM code ($a), Thumb code ($t) and data ($d) begin: the only sign for labels that are not typed."""
    if elf.machine != ARM:
        return []
    return sorted((e.value, e.name[1]) for e in entries if e.name[:2] in ("$a", "$t", "$d") and e.type == "STT_NOTYPE")


def _plt_symbols(elf: Elf, relocations: Iterable[Relocation], entries: Sequence[Entry]) -> Iterator[Symbol]:
    """`f@plt` for the stubs that jump through f's slot."""
    find = {X86_64: _x86_64_stubs, AARCH64: _aarch64_stubs}.get(elf.machine)
    names = {r.offset: entries[r.symbol].name for r in relocations if r.symbol}
    for section in elf.sections if find else ():
        if section.name.startswith(".plt") and section["sh_type"] == "SHT_PROGBITS":
            code = elf.bytes_at(section["sh_offset"], section["sh_size"])
            for addr, size, slot in find(code, section["sh_addr"], section["sh_entsize"]) if find else ():
                if names.get(slot):
                    yield Symbol(f"{names[slot]}@plt", addr, size)


def _x86_64_stubs(code: bytes, start: int, size: int) -> Iterator[tuple[int, int, int]]:
    """[endbr64] [bnd] jmp *slot(%rip)"""
    size = size if size in (8, 16) else 16
    for at in range(0, len(code), size):
        jump = code[at:at + size].find(b"\xff\x25")
        if jump in (0, 1, 4, 5):
            behind = at + jump + 6
            yield start + at, size, start + behind + int.from_bytes(code[behind - 4:behind], "little", signed=True)


def _aarch64_stubs(code: bytes, start: int, size: int) -> Iterator[tuple[int, int, int]]:
    """[bti c] adrp x16, page; ldr x17, [x16, #offset]"""
    words = [int.from_bytes(code[at:at + 4], "little") for at in range(0, len(code) - 3, 4)]
    for n, (adrp, ldr) in enumerate(pairwise(words)):
        if adrp & 0x9F00001F == 0x90000010 and ldr & 0xFFC003FF == 0xF9400211:
            page = (start + 4 * n & ~0xFFF) + signed((adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3, 21) * 0x1000
            marked = n > 0 and words[n - 1] == 0xD503245F
            yield start + 4 * n - 4 * marked, 16 + 4 * marked, page + (ldr >> 10 & 0xFFF) * 8
