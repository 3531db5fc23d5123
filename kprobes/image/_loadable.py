"""Executables and shared objects -> Image.

Addresses are link addresses: those that the file itself uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from ..errors import ImageError
from ._elf import Elf, Relocation, SymbolEntry, damage_is_error
from ._layout import code_layout
from ._pclntab import GoFunction, go_functions
from ._placing import Image
from ._plt import plt_symbols
from ._segments import merge, with_addends
from ._separate import packed_symbols
from ._sites import ImageMemory
from ._symbol import Symbol
from ._symbols import data_of, imports_of, local_entries, symbols_of
from ._types import MIPS, PPC
from ._values import Segment, memory_of, page_size, segment_at

_DF_1_PIE = 0x08000000
_ALLOC = 2  # section flag


def loadable(elf: Elf) -> Image:
    """Return the image of an executable or a shared object.

    Raises:
        ImageError: the file is damaged or cannot be loaded; and whatever pyelftools raises.
    """
    segments = merge(elf.loads, page_size(elf.machine))
    memory = memory_of(segments, 0, elf.order, elf.name)
    raw = elf.dynamic_relocations() if elf.tags else _static_relocations(elf)
    entries = elf.dynamic_symbols(max((r.symbol + 1 for r in raw), default=0))
    relocations = (*with_addends(raw, memory, elf), *_mips_got(elf, memory, len(entries)))
    _refuse_code_plt(elf, relocations)
    everything = [*_own_symbols(elf), *entries]
    return Image(
        name=elf.name,
        machine=elf.machine,
        flags=elf.flags,
        profile=elf.profile,
        bits=elf.bits,
        order=elf.order,
        kind="exec" if elf.type == "ET_EXEC" else "dyn",
        segments=segments,
        symbols=_symbols(
            elf,
            everything,
            segments,
            relocations,
            plt_symbols(elf, relocations, entries, everything),
        ),
        relocations=relocations,
        entries=tuple(entries),
        imports=imports_of(entries),
        entry=elf.entry or None,
        init=_init(elf),
        tls=elf.has("PT_TLS"),
        tls_block=elf.tls_block(),
        headers=elf.header_table(),
        relocates_itself=_relocates_itself(elf),
        own_words=_own_words(elf, raw, memory),
        local_entries=local_entries(elf, everything),
        data=data_of(elf, everything, segments),
        file=elf.data if elf.has_debug or elf.has_attributes else b"",
        in_file=tuple(
            (load.offset, load.vaddr, len(load.data))
            for load in sorted(elf.loads, key=lambda load: "x" not in load.perms)
        ),
        layout=code_layout(elf, relocations),
        warnings=("the section headers are damaged: only dynamic symbols are known",)
        if elf.sections_damaged
        else (),
    )


def _symbols(
    elf: Elf,
    everything: list[SymbolEntry],
    segments: tuple[Segment, ...],
    relocations: Iterable[Relocation],
    stubs: Iterable[Symbol],
) -> tuple[Symbol, ...]:
    """Return the symbols of an image, for users: of its symbol tables, PLT stubs and Go's own
    table.

    Go's table is read where a Go program was stripped.

    Args:
        elf: the file.
        everything: entries of all its symbol tables.
        segments: its memory; symbols outside of it are left out.
        relocations: they point into Go's table.
        stubs: symbols of PLT stubs.
    """
    found = (*symbols_of(elf, everything, segments), *stubs)
    if any(s.kind == "func" and s.name == "runtime.text" for s in found):
        return found
    known = {s.address for s in found if s.kind != "object" and s.size}
    return (
        *found,
        *(
            Symbol(f.name, f.address, f.size)
            for f in go_functions(elf, relocations)
            if f.address not in known and _is_code(segments, f)
        ),
    )


def _own_symbols(elf: Elf) -> list[SymbolEntry]:
    """Return the entries of .symtab; where it was stripped, those that .gnu_debugdata has of it. []
    where there are neither, or the latter is damaged.
    """
    found = elf.symbol_table()
    packed = packed_symbols(elf.data) if not found else b""
    if packed:
        with suppress(ImageError), damage_is_error(elf.name):
            return Elf(packed, elf.name).symbol_table()
    return found


def _is_code(segments: tuple[Segment, ...], f: GoFunction) -> bool:
    """Return True where all of a Go function lies in one executable segment.

    Args:
        segments: of the program.
        f: the function.
    """
    segment = segment_at(segments, f.address)
    return (
        segment is not None
        and "x" in segment.perms
        and f.address + f.size <= segment.addr + segment.memsz
    )


def _static_relocations(elf: Elf) -> list[Relocation]:
    """Return the relocations that a static program still has: those of ifuncs, which name no
    symbol.

    They stand in sections that are loaded.
    """
    found = elf.section_relocations(lambda s: bool(s["sh_flags"] & _ALLOC))
    return [r for _, relocations in found for r in relocations if r.symbol == 0]


def _mips_got(elf: Elf, memory: ImageMemory, symbols: int) -> Iterator[Relocation]:
    """Yield a relocation for each entry of MIPS's GOT, which has none in the file, but for the
    linker's own first one or two; nothing on other machines.

    Local entries are moved by the load bias; the others stand for the last dynamic symbols, in
    order.

    Args:
        elf: the file.
        memory: its contents at link addresses.
        symbols: how many dynamic symbols there are.
    """
    if (
        elf.machine != MIPS
        or not {"DT_PLTGOT", "DT_MIPS_LOCAL_GOTNO", "DT_MIPS_GOTSYM"} <= elf.tags.keys()
    ):
        return
    got, local, first = (
        elf.tags[tag] for tag in ("DT_PLTGOT", "DT_MIPS_LOCAL_GOTNO", "DT_MIPS_GOTSYM")
    )
    word = elf.bits // 8
    # the resolver, and GNU's module pointer
    reserved = 2 if memory.read(got + word, word) >> elf.bits - 1 else 1
    for n in range(reserved, local):
        yield Relocation(
            got + n * word, 3 if word == 4 else 3 | 18 << 8, 0, memory.read(got + n * word, word)
        )
    for n, symbol in enumerate(range(first, symbols)):
        yield Relocation(got + (local + n) * word, 51, symbol, 0)


def _refuse_code_plt(elf: Elf, relocations: Iterable[Relocation]) -> None:
    """Check that a 32-bit PowerPC file's PLT is not of the old kind.

    That is code which the dynamic linker writes; DT_PPC_GOT marks the others.

    Args:
        elf: a file of any machine.
        relocations: of the file.

    Raises:
        ImageError: the PLT is of the old kind.
    """
    marked = {"DT_LOPROC", "DT_PPC_GOT", 0x70000000} & elf.tags.keys()
    if elf.machine == PPC and not marked and any(r.type == 21 for r in relocations):
        raise ImageError(
            f"{elf.name}: its PLT is of the old kind, written at run time",
            hint="link it with -msecure-plt",
        )


def _init(elf: Elf) -> tuple[tuple[int, int], ...]:
    """Return the initialisation functions of a file, in the order in which they are due.

    Returns:
        (link address, bytes) of a table of functions, or (link address, 0) of DT_INIT's function.
    """
    due = (
        ("DT_PREINIT_ARRAY", "DT_PREINIT_ARRAYSZ"),
        ("DT_INIT", ""),
        ("DT_INIT_ARRAY", "DT_INIT_ARRAYSZ"),
    )
    return tuple(
        (elf.tags[tag], elf.tags.get(size, 0))
        for tag, size in due
        if elf.tags.get(tag) and (not size or elf.tags.get(size))
    )


def _own_words(
    elf: Elf, raw: Iterable[Relocation], memory: ImageMemory
) -> tuple[tuple[int, int], ...]:
    """Return the words that a static program's start-up code relocates itself, with addends in
    place (REL).

    They are addresses of ifunc resolvers; in a static PIE every word that is relocated.

    Args:
        elf: the file.
        raw: its relocations as in the file.
        memory: its contents at link addresses.

    Returns:
        (link address, what stands there in the file) of each; () for other programs.
    """
    if elf.has("PT_INTERP") or not (elf.type == "ET_EXEC" or _relocates_itself(elf)):
        return ()
    word = elf.bits // 8
    return tuple(
        (r.offset, memory.read(r.offset, word)) for r in raw if r.addend is None and r.type
    )


def _relocates_itself(elf: Elf) -> bool:
    """Return True for a static PIE that relocates itself, with addends in place."""
    in_place = "DT_REL" in elf.tags or "DT_RELR" in elf.tags
    return in_place and bool(elf.tags.get("DT_FLAGS_1", 0) & _DF_1_PIE) and not elf.has("PT_INTERP")
