"""Symbol tables -> the symbols that users see, imports, entry points."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ._elf import Elf, SymbolEntry
from ._symbol import Symbol
from ._types import AARCH64, ARM, MIPS, PPC64, RISCV, SPARC, SPARC32PLUS, SPARCV9
from ._values import FUNCTIONS, SPECIAL, Import, Segment, segment_at

_KINDS: dict[str | int, str] = {
    "STT_FUNC": "func",
    "STT_LOOS": "ifunc",
    "STT_OBJECT": "object",
    "STT_COMMON": "object",
}
MARKED = (ARM, AARCH64, RISCV)  #: their symbol tables tell code from data


def symbols_of(
    elf: Elf, entries: Iterable[SymbolEntry], segments: tuple[Segment, ...]
) -> tuple[Symbol, ...]:
    """Return the functions and objects that symbol tables name, each (name, address) once, with the
    largest of its sizes.

    Of several versions of a symbol at different addresses only the default one keeps the plain
    name; others are NAME@VERSION. Mode bits are not in an address but in Symbol.mode. A size ends
    with the segment.

    Args:
        elf: the file.
        entries: of all its symbol tables.
        segments: its memory; symbols outside of it are left out.
    """
    entries = list(entries)
    marks = _arm_marks(elf, entries)
    found: dict[tuple[str, int], Symbol] = {}
    versions: dict[tuple[str, int], str] = {}
    starts = [segment.addr for segment in segments]
    ends = [segment.addr + segment.memsz for segment in segments]
    with_modes = bool(marks) or elf.machine in (ARM, MIPS)
    for e in _naming(elf, entries):
        n = bisect.bisect_right(starts, e.value) - 1
        if n < 0 or e.value >= ends[n]:
            continue
        # .symtab has name@VERSION, and name@@VERSION for the default one
        name, at, version = e.name.partition("@")
        kind = _KINDS.get(e.type) or ("func" if "x" in segments[n].perms else "object")
        mode = _mode(elf, e, kind, marks) if with_modes else 0
        key = name, e.value & ~1 if mode else e.value
        # a damaged size would be walked for hours
        room = ends[n] - e.value
        size = min(e.size, room)
        known = found.get(key)
        if known is None or size > known.size:
            found[key] = Symbol(name, key[1], size, "", mode, kind)
        hidden = e.version or (version if at and not version.startswith("@") else "")
        versions[key] = hidden if versions.get(key, hidden) else ""
    addresses: dict[str, int] = {}
    for name, _ in found:
        addresses[name] = addresses.get(name, 0) + 1
    return tuple(
        Symbol(f"{s.name}@{versions[key]}", s.address, s.size, s.module, s.mode, s.kind)
        if versions[key] and addresses[s.name] > 1
        else s
        for key, s in found.items()
    )


def _naming(elf: Elf, entries: Iterable[SymbolEntry]) -> Iterator[SymbolEntry]:
    """Yield the entries that name code or data of this file.

    Sections, files, registers, thread-local symbols, marks and labels (.L) of the assembler,
    symbols of sections that are not loaded, and imports are left out; so are absolute symbols,
    except in an executable with fixed addresses.

    Args:
        elf: the file.
        entries: of its symbol tables.
    """
    elsewhere = {"SHN_UNDEF", "none"} | (set() if elf.type == "ET_EXEC" else {"SHN_ABS"})
    unnamed = {"STT_SECTION", "STT_FILE", "STT_TLS"}
    if elf.machine in (SPARC, SPARC32PLUS, SPARCV9):
        unnamed.add("STT_LOPROC")  # a register
    marked = elf.machine in MARKED
    for e in entries:
        if not e.name or e.section in elsewhere or e.type in unnamed or e.name.startswith(".L"):
            continue
        if not (marked and _is_mark(e)):
            yield e


def data_of(
    elf: Elf, entries: Iterable[SymbolEntry], segments: tuple[Segment, ...]
) -> tuple[tuple[int, int], ...]:
    """Return (start, end) of data amid code: from a mark $d to the next mark of code.

    Args:
        elf: the file.
        entries: of all its symbol tables.
        segments: its memory; only marks in executable segments count.

    Returns:
        Link addresses; () where the machine has no marks.
    """
    if elf.machine not in MARKED:
        return ()
    marks = sorted(
        (e.value, e.name[1] != "d") for e in entries if _is_mark(e) and e.section != "none"
    )
    found: list[tuple[int, int]] = []
    for (start, code), (end, _) in pairwise([*marks, (1 << elf.bits, True)]):
        segment = segment_at(segments, start)
        if not code and segment is not None and "x" in segment.perms:
            found.append((start, min(end, segment.addr + segment.memsz)))
    return tuple((start, end) for start, end in found if start < end)


def _is_mark(e: SymbolEntry) -> bool:
    """Return True for an assembler's mark of where code or data begins: $a, $t, $d or $x."""
    return e.name[:2] in ("$a", "$t", "$d", "$x") and e.type == "STT_NOTYPE"


def _mode(elf: Elf, e: SymbolEntry, kind: str, marks: list[tuple[int, str]]) -> int:
    """Return the mode bits of the code at a symbol: 1 for Thumb, MIPS16 and microMIPS.

    A function symbol of Arm or MIPS has the bit in its value. For other labels of Arm the last mark
    before the address decides.

    Args:
        elf: the file.
        e: the symbol's entry.
        kind: "func" or "object".
        marks: (address, "a" for A32, "t" for Thumb or "d" for data), sorted, as _arm_marks()
            returns them; empty: not an Arm file, or it has none.
    """
    if elf.machine in (ARM, MIPS) and e.type in FUNCTIONS:
        return e.value & 1
    if marks and kind == "func":
        at = bisect.bisect_right(marks, (e.value, "~")) - 1
        return int(at >= 0 and marks[at][1] == "t")
    return 0


def _arm_marks(elf: Elf, entries: Iterable[SymbolEntry]) -> list[tuple[int, str]]:
    """Return where ARM code, Thumb code and data begin, by the assembler's marks.

    For labels without a type they are the only sign of the mode.

    Args:
        elf: the file.
        entries: of all its symbol tables.

    Returns:
        Sorted (address, "a", "t" or "d"); [] on other machines.
    """
    if elf.machine != ARM:
        return []
    return sorted(
        (e.value, e.name[1])
        for e in entries
        if e.name[:2] in ("$a", "$t", "$d") and e.type == "STT_NOTYPE"
    )


def imports_of(entries: Iterable[SymbolEntry]) -> dict[str, Import]:
    """Return the undefined symbols: name -> import. Thread-local symbols, registers and names of
    the linker's own (SPECIAL) are left out.

    Args:
        entries: of a symbol table.
    """
    kinds: dict[str | int, str] = {"STT_FUNC": "func", "STT_LOOS": "func", "STT_OBJECT": "object"}
    return {
        e.name: Import(
            name=e.name, weak=e.bind == "STB_WEAK", kind=kinds.get(e.type, ""), size=e.size
        )
        for e in entries
        if e.name
        and e.section == "SHN_UNDEF"
        and e.type not in ("STT_TLS", "STT_LOPROC")
        and e.name not in SPECIAL
    }


def local_entries(elf: Elf, entries: Iterable[SymbolEntry]) -> dict[int, int]:
    """Return ELFv2's local entry points: symbol's address -> bytes from there to its local entry.

    The top bits of st_other say 2 ** n bytes; 0 and 1 mean that both entries are one.

    Args:
        elf: the file.
        entries: of all its symbol tables.
    """
    if elf.machine != PPC64:
        return {}
    return {e.value: 1 << e.local for e in entries if e.section != "SHN_UNDEF" and 2 <= e.local < 7}
