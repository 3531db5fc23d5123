"""BTF: types of a kernel, or of an eBPF object (kernel documentation, bpf/btf)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

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
QUALIFIERS: Final = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
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
_BARE: Final = {*QUALIFIERS, PTR, FWD, FUNC, FLOAT}  #: kinds without trailing items
_DEEP: Final = 64  # longest chain of qualifiers, deepest nesting


@frozen
class BtfType:
    """A type of an object's BTF.

    Attributes:
        kind: BTF_KIND_*, such as INT or STRUCT.
        name: "" for a type without one.
        size: bytes, or the number of the type that it refers to.
        flag: the kind's flag, such as the signedness of an enum.
        items: its trailing words, in tuples: members, values or parameters; where there may be
            several, the first of each tuple is a name, but for DATASEC.
    """

    kind: int
    name: str
    size: int
    flag: bool
    items: tuple[tuple[Any, ...], ...]


class Btf:
    """The types of a kernel, a module or an object; an empty one has only void.

    Attributes:
        order: byte order of all numbers.
        mark: the byte order as `struct` writes it: "<" or ">".
        types: all types by number, from void (0) on.
        own: number of the first type that is not from the base.
    """

    def __init__(
        self, data: bytes, order: Literal["little", "big"], base: Btf | None = None
    ) -> None:
        """Read types.

        Args:
            data: contents of a section .BTF; b"": there is none.
            order: byte order of its numbers.
            base: what the types and strings of a module count on from: its kernel's; None: nothing.

        Raises:
            ValueError, struct.error: it is damaged.
        """
        self.order = order
        self.mark = "<" if order == "little" else ">"
        self.types: list[BtfType] = (
            [BtfType(0, "void", 0, False, ())] if base is None else [*base.types]
        )
        self.own = len(self.types)
        self._base = base
        self._strings = b"\0"
        if data:
            head, types, size, text, length = header(data, self.mark)
            self._strings = data[head + text : head + text + length]
            self._parse(data[head + types : head + types + size])

    def text(self, offset: int) -> str:
        """Return a string of the string table.

        Args:
            offset: bytes from the start of the base's table, which the own table follows.

        Raises:
            ValueError: no string of the table ends behind that offset.
        """
        if self._base is not None:
            shared = len(self._base._strings)
            if offset < shared:
                return self._base.text(offset)
            offset -= shared
        end = self._strings.index(b"\0", offset)
        return self._strings[offset:end].decode("utf-8", "backslashreplace")

    def _parse(self, data: bytes) -> None:
        """Decode the type section, and append its types to `types`.

        Args:
            data: the section's bytes.

        Raises:
            ValueError, struct.error: the section is damaged, or has a kind that is not known.
        """
        at = 0
        head = struct.Struct(f"{self.mark}III")
        words_of = {width: struct.Struct(f"{self.mark}{width // 4}I") for width in (4, 8, 12)}
        names: dict[int, str] = {}
        while at < len(data):
            name, info, size = head.unpack_from(data, at)
            at += 12
            kind, count = info >> 24 & 31, info & 0xFFFF
            if kind not in _TRAILERS and kind not in _BARE:
                raise ValueError(f"BTF type {len(self.types)} is of unknown kind {kind}")
            width, many = _TRAILERS.get(kind, (0, False))
            items: list[tuple[Any, ...]] = []
            for _ in range(count if many else bool(width)):
                words = words_of[width].unpack_from(data, at)
                if many and kind != DATASEC:
                    text = names.get(words[0])
                    if text is None:
                        text = names[words[0]] = self.text(words[0])
                    items.append((text, *words[1:]))
                else:
                    items.append(words)
                at += width
            self.types.append(BtfType(kind, self.text(name), size, bool(info >> 31), tuple(items)))

    def plain(self, number: int) -> BtfType:
        """Return the type that is behind typedefs and qualifiers such as const.

        Args:
            number: the type's number.

        Raises:
            ValueError: types refer to each other in a ring.
            IndexError: there is no type of such a number.
        """
        for _ in range(_DEEP):
            t = self.types[number]
            if t.kind not in QUALIFIERS:
                return t
            number = t.size
        raise ValueError("BTF types refer to each other in a ring")

    def size(self, number: int, depth: int = 0) -> int:
        """Return the size of a type in bytes: 8 of a pointer, 0 of types without one (functions).

        Args:
            number: the type's number.
            depth: how many arrays are around it.

        Raises:
            ValueError: types contain each other in a ring.
            IndexError: there is no type of such a number.
        """
        t = self.plain(number)
        if depth > _DEEP:
            raise ValueError("BTF types contain each other in a ring")
        if t.kind == PTR:
            return 8
        if t.kind == ARRAY:
            return int(t.items[0][2]) * self.size(t.items[0][0], depth + 1)
        return t.size if t.kind in (INT, STRUCT, UNION, ENUM, ENUM64, FLOAT) else 0

    def variables(self) -> Mapping[str, int]:
        """Return name of each variable -> number of its type."""
        return {t.name: t.size for t in self.types if t.kind == VAR}


def byte_order(data: bytes) -> Literal["little", "big"] | None:
    """Return the byte order of a file or section of BTF; None: the bytes are no BTF."""
    orders: dict[bytes, Literal["little", "big"]] = {b"\x9f\xeb": "little", b"\xeb\x9f": "big"}
    return orders.get(data[:2]) if len(data) >= 24 else None


def header(data: bytes, mark: str) -> tuple[int, int, int, int, int]:
    """Return the first fields of a BTF header.

    Args:
        data: contents of .BTF or .BTF.ext.
        mark: byte order, as `struct` writes it.

    Returns:
        (bytes of the header, offset and bytes of the first subsection, offset and bytes of the
        second one); the offsets count from the header's end. Of .BTF they are types and strings.

    Raises:
        ValueError, struct.error: it is damaged.
    """
    magic, _, _, head, a, size_a, b, size_b = struct.unpack_from(f"{mark}HBBIIIII", data)
    if magic != _MAGIC:
        raise ValueError(f"BTF begins with {magic:#x}")
    return head, a, size_a, b, size_b
