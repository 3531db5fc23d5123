"""Bytes at link addresses: page-aligned segments, and addends that stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ._elf import Elf, Load, Relocation
from ._relocations import rows, table
from ._sites import ImageMemory, RelocationRow
from ._values import Segment


def merge(loads: Sequence[Load], page: int) -> tuple[Segment, ...]:
    """Join LOAD segments to page-aligned, disjoint ones.

    A page that two of them share has the permissions of both. Neighbours with the same permissions
    become one segment.

    Args:
        loads: bytes at link addresses, which may share pages.
        page: bytes of a page.
    """
    spans = [
        (load.vaddr // page * page, up(load.vaddr + load.memsz, page), load.perms) for load in loads
    ]
    runs: list[tuple[int, int, set[str]]] = []
    for start, end in pairwise(sorted({edge for low, high, _ in spans for edge in (low, high)})):
        here = [perms for low, high, perms in spans if low <= start < high]
        perms = set("".join(here))
        if here and runs and runs[-1][1:] == (start, perms):
            runs[-1] = (runs[-1][0], end, perms)
        elif here:
            runs.append((start, end, perms))
    return tuple(
        Segment(
            addr=start,
            data=_bytes(loads, start, end),
            memsz=end - start,
            perms="".join(p for p in "rwx" if p in perms),
        )
        for start, end, perms in runs
    )


def _bytes(loads: Iterable[Load], start: int, end: int) -> bytes:
    """Return what segments have in [start, end): their bytes, and zeros between segments.

    The result is shorter where no segment reaches `end`: the rest is zeros, too.

    Args:
        loads: the segments; a later one lies over an earlier one.
        start: link address of the first byte.
        end: link address behind the last.
    """
    data = bytearray()
    for load in loads:
        low, high = max(start, load.vaddr), min(end, load.vaddr + len(load.data))
        if low < high:
            data.extend(bytes(max(0, high - start - len(data))))
            data[low - start : high - start] = load.data[low - load.vaddr : high - load.vaddr]
    return bytes(data)


def up(value: int, align: int) -> int:
    """Return a value rounded up to a multiple of `align`."""
    return -(-value // align) * align


def with_addends(raw: Iterable[Relocation], memory: ImageMemory, elf: Elf) -> Iterator[Relocation]:
    """Yield relocations with an addend each; where an entry has none (REL), it is what stands in
    the relocation's field in memory, 0 for types that are not known or do nothing.

    RELR's (type -1) get the type of a relative relocation.

    Args:
        raw: as the file has them.
        memory: contents of the file at link addresses.
        elf: the file.
    """
    relative = next(
        (
            kind
            for kind, row in table(elf.machine, elf.bits).items()
            if row.formula in ("B+A", "REL32")
        ),
        0,
    )
    of_kind: dict[int, list[RelocationRow]] = {}
    for r in raw:
        if r.addend is not None and r.type >= 0:
            yield r
            continue
        kind = relative if r.type < 0 else r.type
        if kind not in of_kind:
            of_kind[kind] = rows(elf.machine, elf.bits, kind)
        known = of_kind[kind]
        in_place = known and known[-1].formula != "-"
        found = known[-1].field.read(memory, r.offset) if in_place and r.addend is None else 0
        yield Relocation(r.offset, kind, r.symbol, found if r.addend is None else r.addend)
