"""BTF: types of an object's variables, maps and functions, and its source lines (kernel
documentation, bpf/btf).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from ..code import Asked, CodeLine, TypeRelocation
from ..isa import Order

INT: Final = 1
PTR: Final = 2
ARRAY: Final = 3
STRUCT: Final = 4
UNION: Final = 5
ENUM: Final = 6
FWD: Final = 7
TYPEDEF: Final = 8
VOLATILE: Final = 9
CONST: Final = 10
RESTRICT: Final = 11
FUNC: Final = 12
FUNC_PROTO: Final = 13
VAR: Final = 14
DATASEC: Final = 15
FLOAT: Final = 16
DECL_TAG: Final = 17
TYPE_TAG: Final = 18
ENUM64: Final = 19
_MAGIC: Final = 0xEB9F
_QUALIFIERS: Final = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
#: kind -> bytes of a trailing item, and whether there are vlen of them (else one)
_TRAILERS: Final = {
    INT: (4, False),
    ARRAY: (12, False),
    STRUCT: (12, True),
    UNION: (12, True),
    ENUM: (8, True),
    FUNC_PROTO: (8, True),
    VAR: (4, False),
    DATASEC: (12, True),
    DECL_TAG: (4, False),
    ENUM64: (12, True),
}
_DEEP: Final = 64  # longest chain of qualifiers, deepest nesting


@frozen
class BtfType:
    """A type of an object's BTF.

    Attributes:
        kind: BTF_KIND_*.
        name: "" for a type without one.
        size: bytes, or the type that it refers to.
        items: its trailing words, in tuples; names in them are resolved.
    """

    kind: int
    name: str
    size: int
    flag: bool
    items: tuple[tuple[Any, ...], ...]


class Btf:
    """The types of an object; an empty one has only void. ValueError, struct.error: damaged."""

    def __init__(self, data: bytes, order: Order) -> None:
        self.order = order
        self._mark = "<" if order == "little" else ">"
        self.types: list[BtfType] = [BtfType(0, "void", 0, False, ())]
        self._strings = b"\0"
        if data:
            head, types, size, text, length = _header(data, self._mark)
            self._strings = data[head + text:head + text + length]
            self._parse(data[head + types:head + types + size])

    def text(self, offset: int) -> str:
        """Return a string of the table."""
        end = self._strings.index(b"\0", offset)
        return self._strings[offset:end].decode("utf-8", "backslashreplace")

    def _parse(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            name, info, size = struct.unpack_from(f"{self._mark}III", data, at)
            at += 12
            kind, count = info >> 24 & 31, info & 0xFFFF
            if kind not in _TRAILERS and kind not in (*_QUALIFIERS, PTR, FWD, FUNC, FLOAT):
                raise ValueError(f"BTF type {len(self.types)} is of unknown kind {kind}")
            width, many = _TRAILERS.get(kind, (0, False))
            items = []
            for _ in range(count if many else bool(width)):
                words = struct.unpack_from(f"{self._mark}{width // 4}I", data, at)
                named = many and kind != DATASEC
                items.append((self.text(words[0]), *words[1:]) if named else words)
                at += width
            self.types.append(BtfType(kind, self.text(name), size, bool(info >> 31), tuple(items)))

    def plain(self, number: int) -> BtfType:
        """Return a type without typedefs and qualifiers."""
        for _ in range(_DEEP):
            t = self.types[number]
            if t.kind not in _QUALIFIERS:
                return t
            number = t.size
        raise ValueError("BTF types refer to each other in a ring")

    def size(self, number: int, depth: int = 0) -> int:
        """Bytes of a type."""
        t = self.plain(number)
        if depth > _DEEP:
            raise ValueError("BTF types contain each other in a ring")
        if t.kind == PTR:
            return 8
        if t.kind == ARRAY:
            return int(t.items[0][2]) * self.size(t.items[0][0], depth + 1)
        return t.size if t.kind in (INT, STRUCT, UNION, ENUM, ENUM64, FLOAT) else 0

    def variables(self) -> Mapping[str, int]:
        """Name -> type of each variable."""
        return {t.name: t.size for t in self.types if t.kind == VAR}


def _header(data: bytes, mark: str) -> tuple[int, int, int, int, int]:
    """(length of the header, then offset and length of two subsections)"""
    magic, _, _, head, a, size_a, b, size_b = struct.unpack_from(f"{mark}HBBIIIII", data)
    if magic != _MAGIC:
        raise ValueError(f"BTF begins with {magic:#x}")
    return head, a, size_a, b, size_b


class Ext:
    """.BTF.ext: source lines, and relocations by type.

    Attributes:
        lines: section name -> offset in it -> source line.
        relocations: section name -> offset in it -> relocation by type.
    """

    def __init__(self, data: bytes, btf: Btf) -> None:
        self._btf = btf
        self._mark = btf._mark
        self.lines: dict[str, dict[int, CodeLine]] = {}
        self.relocations: dict[str, dict[int, TypeRelocation]] = {}
        if not data:
            return
        head, _, _, lines, size = _header(data, self._mark)
        for section, record in self._records(data[head + lines:head + lines + size]):
            at, file, text, where = record[:4]
            name = btf.text(file).removeprefix("./")
            self.lines.setdefault(section, {})[at] = CodeLine(
                name, where >> 10, where & 0x3FF, btf.text(text)
            )
        if head >= 32:
            start, size = struct.unpack_from(f"{self._mark}II", data, 24)
            for section, record in self._records(data[head + start:head + start + size]):
                at, number, text, kind = record[:4]
                made = _relocation(btf, number, btf.text(text), kind)
                self.relocations.setdefault(section, {})[at] = made

    def _records(self, data: bytes) -> list[tuple[str, tuple[int, ...]]]:
        """(section, words) of each record of a subsection."""
        out: list[tuple[str, tuple[int, ...]]] = []
        if not data:
            return out
        stride, at = struct.unpack_from(f"{self._mark}I", data)[0], 4
        if stride < 8 or stride % 4:
            raise ValueError(f"BTF records of {stride} bytes")
        while at < len(data):
            name, count = struct.unpack_from(f"{self._mark}II", data, at)
            section = self._btf.text(name)
            at += 8
            for _ in range(count):
                out.append((section, struct.unpack_from(f"{self._mark}{stride // 4}I", data, at)))
                at += stride
        return out


_WORDS: Final = {STRUCT: "struct ", UNION: "union ", ENUM: "enum ", ENUM64: "enum "}


def _relocation(btf: Btf, number: int, access: str, kind: int) -> TypeRelocation:
    """Return a relocation by type, its path by names. ValueError: its path leads nowhere."""
    first, *steps = (int(word) for word in access.split(":"))
    root = btf.types[number]
    while root.kind in _QUALIFIERS and root.kind != TYPEDEF:
        root = btf.types[root.size]
    name = root.name.partition("___")[0]
    plain = btf.plain(number)
    written = name if root.kind == TYPEDEF else f"{_WORDS.get(plain.kind, '')}{name}"
    if kind in (Asked.VALUE_EXISTS, Asked.VALUE):
        item = plain.items[first]
        value = item[1] | (item[2] << 32 if plain.kind == ENUM64 else 0)
        return TypeRelocation(Asked(kind), written, 0, (item[0].partition("___")[0],), value, plain.size)
    path: list[str | int] = []
    at, size = first * btf.size(number), btf.size(number)
    for step in steps:
        if plain.kind == ARRAY:
            path.append(step)
            target = plain.items[0][0]
            at += step * btf.size(target)
        elif plain.kind in (STRUCT, UNION):
            member, target, where = plain.items[step]
            at += (where & 0xFFFFFF if plain.flag else where) // 8
            if member:
                path.append(member)
        else:
            raise ValueError(f"a relocation by type leads into a type of kind {plain.kind}")
        plain, size = btf.plain(target), btf.size(target)
    asked = Asked(kind)
    local = {Asked.OFFSET: at, Asked.SIZE: size, Asked.TYPE_SIZE: size, Asked.EXISTS: 1, Asked.TYPE_EXISTS: 1,
             Asked.MATCHES: 1}.get(asked)
    return TypeRelocation(asked, written, first, tuple(path), local, size)
