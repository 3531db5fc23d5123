"""The maps of an object: `.maps` (described by BTF), `maps` (five words each), and one for each
data section.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from attrs import evolve

from ... import btf as b
from ...btf import Btf
from ...errors import ProgramError
from ..maps import Map, MapType, Spec, create
from .elf import ObjectFile, ObjectSymbol, Section
from .values import Values

_NUMBERS: Final = {
    "type": "type",
    "key_size": "key_size",
    "value_size": "value_size",
    "max_entries": "max_entries",
    "map_flags": "flags",
}
#: addresses of a stack trace, and entries of a map, where an object leaves that to who loads it
_DEPTH: Final = 127
_ENTRIES: Final = 10240
_SIZED: Final = (
    MapType.HASH,
    MapType.PERCPU_HASH,
    MapType.LRU_HASH,
    MapType.LRU_PERCPU_HASH,
    MapType.STACK_TRACE,
    MapType.TASK_STORAGE,
    MapType.LPM_TRIE,
)
_RINGS: Final = (MapType.RINGBUF, MapType.USER_RINGBUF, MapType.PERF_EVENT_ARRAY)
_IGNORED: Final = ("numa_node", "pinning", "map_extra")
_DATA: Final = (".data", ".rodata", ".bss")


def is_data(section: Section) -> bool:
    """Return True for a section of global variables: .data, .rodata, .bss and their like."""
    return (
        section.allocated
        and not section.executable
        and any(section.name == name or section.name.startswith(f"{name}.") for name in _DATA)
    )


def defined(
    obj: ObjectFile, btf: Btf, values: Values, cpus: int
) -> tuple[dict[tuple[int, int], Map], dict[tuple[int, int], ProgramError]]:
    """Make the maps that an object defines.

    Args:
        obj: the object.
        btf: the object's types.
        values: codecs of these types.
        cpus: how many values each entry of a per-CPU map has.

    Returns:
        (where a map is defined -> the map, where a map is defined -> why that map is not supported
        here), both by (index of the section, offset in it). A map of the second is in the first as
        an array with one entry.
    """
    out, absent = {}, {}
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
            absent[symbol.section, symbol.value] = ProgramError(
                error.reason,
                program=obj.name,
                section=section.name,
                hint=error.plain.partition("; ")[2],
            )
            out[symbol.section, symbol.value] = create(
                Spec(
                    type=MapType.ARRAY,
                    name=symbol.name,
                    key_size=4,
                    value_size=8,
                    max_entries=1,
                    order=obj.order,
                )
            )
    return out, absent


def _described(symbol: ObjectSymbol, btf: Btf, values: Values) -> Spec:
    """Return the definition of a map in section `.maps`, from its type.

    Args:
        symbol: the map's symbol.
        btf: the object's types.
        values: codecs of these types.

    Raises:
        ProgramError: the type does not describe a map.
    """
    number = btf.variables().get(symbol.name)
    if number is None or btf.plain(number).kind != b.STRUCT:
        raise ProgramError(f"map {symbol.name}: its type is not in BTF", hint="compile with -g")
    return _of_structure(symbol.name, number, btf, values)


def _of_structure(map_name: str, number: int, btf: Btf, values: Values) -> Spec:
    """Return the definition of a map that a structure of libbpf's macros describes.

    Args:
        map_name: the map's name.
        number: number of the structure's type.
        btf: types of the object.
        values: codecs for them.

    Raises:
        ProgramError: a member is not as libbpf's macros make it.
    """
    known: dict[str, Any] = {"name": map_name}
    for name, kind, _ in btf.plain(number).items:
        target = btf.plain(btf.plain(kind).size) if btf.plain(kind).kind == b.PTR else None
        if target is None and name not in ("values", *_IGNORED):
            raise ProgramError(
                f"map {map_name}: {name} is no pointer", hint="use __uint() and __type()"
            )
        if target is not None and name in _NUMBERS and target.kind == b.ARRAY:
            _once(known, _NUMBERS[name], target.items[0][2], map_name)
        elif name in ("key", "value"):
            of = btf.plain(kind).size
            _once(known, f"{name}_size", btf.size(of), map_name)
            known[name] = values.codec(of, key=name == "key")
        elif name == "values":
            known["inner"] = _inner(map_name, kind, btf, values)
        elif name not in _IGNORED:
            raise ProgramError(f"map {map_name}: {name} is not known here")
    return _completed(Spec(**{"type": 0, **known}))


def _inner(name: str, kind: int, btf: Btf, values: Values) -> Map | None:
    """Return a map like those that a map of maps holds; None: it holds programs.

    Args:
        name: name of the map of maps.
        kind: type of its member `values`, an array of pointers.
        btf: types of the object.
        values: codecs for them.
    """
    array = btf.plain(kind)
    pointer = btf.plain(array.items[0][0]) if array.kind == b.ARRAY else array
    number = pointer.size
    if pointer.kind != b.PTR or btf.plain(number).kind != b.STRUCT:
        return None
    return create(_of_structure(f"of {name}", number, btf, values))


def _once(known: dict[str, Any], name: str, value: int, map_name: str) -> None:
    """Add a number to a map's definition, unless it is there already with the same value.

    Args:
        known: the definition so far: name of a field of Spec -> value; filled.
        name: name of the field.
        value: the number.
        map_name: names the map in the error.

    Raises:
        ProgramError: the definition has another number for this field.
    """
    if known.setdefault(name, value) != value:
        raise ProgramError(f"map {map_name}: {name} is {known[name]} and {value}")


def _legacy(symbol: ObjectSymbol, section: Section, obj: ObjectFile) -> Spec:
    """Return the definition of a map in section `maps`: five 32-bit words.

    Args:
        symbol: the map's symbol, whose value is the offset of the words in the section.
        section: the section.
        obj: the object, which has the byte order.
    """
    words = struct.unpack_from(
        "<5I" if obj.order == "little" else ">5I", section.data, symbol.value
    )
    names = ("type", "key_size", "value_size", "max_entries", "flags")
    return _completed(Spec(name=symbol.name, **dict(zip(names, words, strict=True))))


def _completed(spec: Spec) -> Spec:
    """Return a map's definition with the sizes that libbpf, or tools, give it where it has none.

    A stack trace map gets the sizes of its keys and values, a map of a type in _SIZED its number
    of entries. Rings have no keys and values of their own: the types of these, by which bpf2go's
    users keep the type of a record in BTF, are dropped with their sizes.
    """
    if spec.type in _RINGS:
        size = 4 if spec.type == MapType.PERF_EVENT_ARRAY else 0
        return evolve(
            spec,
            key=None,
            value=None,
            key_size=spec.key_size if spec.key is None else size,
            value_size=spec.value_size if spec.value is None else size,
        )
    changes: dict[str, Any] = {}
    if spec.type == MapType.STACK_TRACE:  # tools give them their sizes before they are loaded
        changes["key_size"] = spec.key_size or 4
        changes["value_size"] = spec.value_size or 8 * _DEPTH
        if not spec.value_size:
            changes["value"] = None
    if not spec.max_entries and spec.type in _SIZED:
        changes["max_entries"] = _ENTRIES
    return evolve(spec, **changes) if changes else spec


def data_map(section: Section, obj: ObjectFile, btf: Btf) -> Map:
    """Make the map of a section's variables: an array with one entry, the section's bytes. That of
    .rodata is read-only.

    Args:
        section: the section.
        obj: the object.
        btf: the object's types.
    """
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
    m.block.view[: len(section.data)] = section.data
    return m
