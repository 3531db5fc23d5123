"""Facts that an eBPF object has beside its types (kernel documentation, bpf/btf): source lines, and
relocations by type.
"""

from __future__ import annotations

import struct
from typing import Final

from ...btf import ARRAY, ENUM, ENUM64, QUALIFIERS, STRUCT, TYPEDEF, UNION, Btf, header
from ..code import Asked, CodeLine, TypeRelocation


class Ext:
    """.BTF.ext: source lines, and relocations by type.

    Attributes:
        lines: section name -> offset in it -> source line.
        relocations: section name -> offset in it -> relocation by type.
    """

    def __init__(self, data: bytes, btf: Btf) -> None:
        """Read the section.

        Args:
            data: its contents; b"": there are no lines and relocations.
            btf: the object's types.

        Raises:
            ValueError, struct.error: it is damaged.
        """
        self._btf = btf
        self._mark = btf.mark
        self.lines: dict[str, dict[int, CodeLine]] = {}
        self.relocations: dict[str, dict[int, TypeRelocation]] = {}
        if not data:
            return
        head, _, _, lines, size = header(data, self._mark)
        for section, record in self._records(data[head + lines : head + lines + size]):
            at, file, text, where = record[:4]
            name = btf.text(file).removeprefix("./")
            self.lines.setdefault(section, {})[at] = CodeLine(
                name, where >> 10, where & 0x3FF, btf.text(text)
            )
        if head >= 32:
            start, size = struct.unpack_from(f"{self._mark}II", data, 24)
            for section, record in self._records(data[head + start : head + start + size]):
                at, number, text, kind = record[:4]
                made = _relocation(btf, number, btf.text(text), kind)
                self.relocations.setdefault(section, {})[at] = made

    def _records(self, data: bytes) -> list[tuple[str, tuple[int, ...]]]:
        """Return (name of the section that the record is about, its 32-bit words) of each record.

        Args:
            data: the subsection's bytes.

        Raises:
            ValueError, struct.error: it is damaged.
        """
        out: list[tuple[str, tuple[int, ...]]] = []
        if not data:
            return out
        stride = struct.unpack_from(f"{self._mark}I", data)[0]
        at = 4
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
    """Return a relocation by type, with names in place of numbers.

    What follows `___` in a type's or an enumerator's name is cut, and members without a name are
    left out of the path. The object's own number (`local`) is None for shifts, signs and type ids.

    Args:
        btf: the object's types.
        number: the type that the relocation begins at.
        access: numbers of members and elements, the path from there: "0:1:2".
        kind: what is asked for: the number of an `Asked`.

    Raises:
        ValueError, IndexError: the path leads nowhere, or there is no such kind.
    """
    first, *steps = (int(word) for word in access.split(":"))
    root = btf.types[number]
    while root.kind in QUALIFIERS and root.kind != TYPEDEF:
        root = btf.types[root.size]
    name = root.name.partition("___")[0]
    plain = btf.plain(number)
    written = name if root.kind == TYPEDEF else f"{_WORDS.get(plain.kind, '')}{name}"
    if kind in (Asked.VALUE_EXISTS, Asked.VALUE):
        item = plain.items[first]
        value = item[1] | (item[2] << 32 if plain.kind == ENUM64 else 0)
        return TypeRelocation(
            Asked(kind), written, 0, (item[0].partition("___")[0],), value, plain.size
        )
    path: list[str | int] = []
    at = first * btf.size(number)
    size = btf.size(number)
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
        plain = btf.plain(target)
        size = btf.size(target)
    asked = Asked(kind)
    local = {
        Asked.OFFSET: at,
        Asked.SIZE: size,
        Asked.TYPE_SIZE: size,
        Asked.EXISTS: 1,
        Asked.TYPE_EXISTS: 1,
        Asked.MATCHES: 1,
    }.get(asked)
    return TypeRelocation(asked, written, first, tuple(path), local, size)
