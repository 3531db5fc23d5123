"""Finds functions that take their context for a kernel's registers, as their types tell.

Kernels' objects read `struct pt_regs` of one architecture. Here the context is the same on all of
them (see `programs.context`), so such an object would read other registers than it means:
`programs.adapting` changes its reads where the guest is of that architecture, and elsewhere the
program is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import field, frozen

from ... import btf as b
from ...btf import Btf, BtfType
from ..context import ARGUMENT, BIG, BITS, COUNT, FRAME, PC, RESULT, RETURN, SP

#: names of structures in which kernels give registers to programs
KERNELS: Final = ("pt_regs", "user_pt_regs", "user_regs_struct", "user_regs")
#: registers of an array, at most
_MOST: Final = 64
#: members of <kprobes/bpf.h>'s structure -> word of the context
_OURS: Final[Mapping[str, int]] = {
    "r": 0,
    "pc": PC,
    "sp": SP,
    "rc": RESULT,
    "ret": RETURN,
    "fp": FRAME,
    "bits": BITS,
    "big_endian": BIG,
    "count": COUNT,
    "parm": ARGUMENT,
}
#: a member that only one architecture's structure has -> whose it is
_WHOSE: Final[Mapping[str, str]] = {
    "orig_ax": "x86's",
    "orig_rax": "x86's",
    "orig_eax": "x86's",
    "pstate": "arm64's",
    "uregs": "arm's",
    "psw": "s390's",
    "nip": "PowerPC's",
    "cp0_epc": "MIPS's",
    "csr_era": "LoongArch's",
    "u_regs": "SPARC's",
    "epc": "RISC-V's",
    "a7": "RISC-V's",
}


@frozen
class KernelsContext:
    """A kernel's structure of registers that a program takes its context for.

    Attributes:
        name: the structure's name with its architecture, as "x86's struct pt_regs".
        members: offset in bytes -> member, as `di` or `regs[3]`.
    """

    name: str
    members: Mapping[int, str] = field(factory=dict)


def foreign(btf: Btf) -> Mapping[str, KernelsContext]:
    """Find the functions of an object that take a pointer to a kernel's structure of registers.

    Args:
        btf: the object's types.

    Returns:
        Name of the function -> that structure.
    """
    out = {}
    for t in btf.types:
        if t.kind == b.FUNC:
            structures = _pointed_at(btf, btf.types[t.size])
            taken = next((s for s in structures if s.name in KERNELS and not _is_ours(s)), None)
            if taken is not None:
                members = {name for name, *_ in _members(btf, taken)}
                whose = next((_WHOSE[name] for name in _WHOSE if name in members), "a kernel's")
                out[t.name] = KernelsContext(
                    f"{whose} struct {taken.name}", dict(_laid_out(btf, taken, 0))
                )
    return out


def _laid_out(btf: Btf, structure: BtfType, base: int, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Yield (offset in bytes, name) of a structure's members. A structure in it gives its members
    instead, as `outer.inner` (`inner` if it has no name); an array its elements, as `regs[3]`, of
    whatever type, _MOST at most.

    Args:
        btf: the object's types.
        structure: the structure.
        base: bytes that are added to each offset: where the structure itself is.
        depth: how many structures are around it. One inside of more than 4 counts as a single
            member.
    """
    for name, kind, where in structure.items:
        at = base + (where & 0xFFFFFF if structure.flag else where) // 8
        inner = btf.plain(kind)
        if inner.kind in (b.STRUCT, b.UNION) and depth < 4:
            for offset, member in _laid_out(btf, inner, at, depth + 1):
                yield offset, f"{name}.{member}" if name else member
        elif inner.kind == b.ARRAY:
            size = btf.size(inner.items[0][0])
            for n in range(min(inner.items[0][2], _MOST)):
                yield at + n * size, f"{name}[{n}]"
        else:
            yield at, name


def _pointed_at(btf: Btf, prototype: BtfType) -> Iterator[BtfType]:
    """Yield the structures and unions that a function's parameters point at.

    Args:
        btf: the object's types.
        prototype: the function's type, whose items are (name, number of the type).
    """
    for _, number in prototype.items:
        pointer = btf.plain(number)
        if pointer.kind == b.PTR:
            target = btf.plain(pointer.size)
            if target.kind in (b.STRUCT, b.UNION):
                yield target


def _is_ours(structure: BtfType) -> bool:
    """Return True where a structure is <kprobes/bpf.h>'s: its members are words of the context.

    Args:
        structure: a structure that is named like a kernel's.
    """
    return all(
        _OURS.get(name) == (where & 0xFFFFFF if structure.flag else where) / 64
        for name, _, where in structure.items
    )


def _members(btf: Btf, structure: BtfType, depth: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield (name, number of the type, offset in bits) of a structure's members.

    Those of structures within it follow their member, with offsets from where that begins.

    Args:
        btf: the object's types.
        structure: the structure.
        depth: how many structures are around it; those deeper than 4 are left out.
    """
    for name, kind, where in structure.items:
        yield name, kind, where
        inner = btf.plain(kind)
        if inner.kind in (b.STRUCT, b.UNION) and depth < 4:
            yield from _members(btf, inner, depth + 1)
