"""The maps of an object: `.maps` (described by BTF), `maps` (five words each), and one for each
data section.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from attrs import evolve

from ...errors import ProgramError
from ..maps import Map, MapType, Spec, create
from . import btf as b
from .btf import Btf
from .elf import ObjectFile, ObjectSymbol, Section
from .values import Values

_NUMBERS: Final = {
    "type": "type",
    "key_size": "key_size",
    "value_size": "value_size",
    "max_entries": "max_entries",
    "map_flags": "flags",
}
_IGNORED: Final = ("numa_node", "pinning", "map_extra")
_DATA: Final = (".data", ".rodata", ".bss")


def is_data(section: Section) -> bool:
    """True for a section of variables."""
    return section.allocated and not section.executable and any(
        section.name == name or section.name.startswith(f"{name}.") for name in _DATA)


def defined(obj: ObjectFile, btf: Btf, values: Values, cpus: int) -> dict[tuple[int, int], Map]:
    """The maps that an object defines: (section, offset) -> map. ProgramError: one that there
    cannot be here.
    """
    out = {}
    for symbol in obj.symbols:
        section = obj.sections[symbol.section] if 0 < symbol.section < len(obj.sections) else None
        if section is None or section.name not in (".maps", "maps") or symbol.type != "OBJECT":
            continue
        try:
            spec = (
                _described(symbol, btf, values)
                if section.name == ".maps"
                else _legacy(symbol, section, obj)
            )
            out[symbol.section, symbol.value] = create(evolve(spec, cpus=cpus, order=obj.order))
        except ProgramError as error:
            raise ProgramError(error.reason, program=obj.name, section=section.name,
                               hint=error.plain.partition("; ")[2]) from None
    return out


def _described(symbol: ObjectSymbol, btf: Btf, values: Values) -> Spec:
    number = btf.variables().get(symbol.name)
    if number is None or btf.plain(number).kind != b.STRUCT:
        raise ProgramError(f"map {symbol.name}: its type is not in BTF", hint="compile with -g")
    known: dict[str, Any] = {"name": symbol.name}
    for name, kind, _ in btf.plain(number).items:
        target = btf.plain(btf.plain(kind).size) if btf.plain(kind).kind == b.PTR else None
        if target is None:
            raise ProgramError(
                f"map {symbol.name}: {name} is no pointer", hint="use __uint() and __type()"
            )
        if name in _NUMBERS and target.kind == b.ARRAY:
            _once(known, _NUMBERS[name], target.items[0][2], symbol.name)
        elif name in ("key", "value"):
            of = btf.plain(kind).size
            _once(known, f"{name}_size", btf.size(of), symbol.name)
            known[name] = values.codec(of)
        elif name not in _IGNORED:
            raise ProgramError(f"map {symbol.name}: {name} is not known here")
    return _checked(Spec(**{"type": 0, **known}))


def _once(known: dict[str, Any], name: str, value: int, map_name: str) -> None:
    if known.setdefault(name, value) != value:
        raise ProgramError(f"map {map_name}: {name} is {known[name]} and {value}")


def _legacy(symbol: ObjectSymbol, section: Section, obj: ObjectFile) -> Spec:
    words = struct.unpack_from(
        "<5I" if obj.order == "little" else ">5I", section.data, symbol.value
    )
    names = ("type", "key_size", "value_size", "max_entries", "flags")
    return _checked(Spec(name=symbol.name, **dict(zip(names, words, strict=True))))


def _checked(spec: Spec) -> Spec:
    """libbpf's readings of what was left out."""
    if spec.type == MapType.PERF_EVENT_ARRAY:
        return evolve(spec, key=None, value=None)
    return spec


def data_map(section: Section, obj: ObjectFile, btf: Btf) -> Map:
    """The map of a section's variables: one entry, the whole section."""
    readonly = section.name.startswith(".rodata")
    spec = Spec(
        type=MapType.ARRAY,
        name=section.name,
        key_size=4,
        value_size=max(len(section.data), 1),
        max_entries=1,
        readonly=readonly,
        order=obj.order,
    )
    m = create(spec)
    m.block.view[:len(section.data)] = section.data
    return m
