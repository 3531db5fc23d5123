"""What readers of libraries' types share: how such a type is described, and ways to its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Protocol

from attrs import frozen

from ..errors import KprobeError
from .types import CType

EMPTY: Final = "(empty)"  #: value of a std::optional or std::variant that has none
CUT: Final = "..."  #: stands for elements that are left out
MOST_ELEMENTS: Final = 200  #: elements of a library's list that are read, as gdb shows
MOST_STEPS: Final = 64  #: links that are followed from one element of a tree to the next
LARGEST_LIST: Final = 1 << 40  #: no list has so many elements


class LibraryValue(Protocol):
    """A View, as far as this module needs it."""

    _type: CType
    _machine: Any

    def _at(self, type: CType, address: int) -> Any: ...
    def __getitem__(self, key: int | str) -> Any: ...
    def __int__(self) -> int: ...


def type_of(value: LibraryValue) -> CType:
    """Return the type of a View. Attributes of a View are the members of its type."""
    return value._type


def machine_of(value: LibraryValue) -> Any:
    """Return the machine that a View reads: the guest, or a copy of a variable (Held)."""
    return value._machine


def value_at(value: LibraryValue, type: CType, address: int) -> Any:
    """Return what lies at another address of what a View reads.

    Args:
        value: the View.
        type: of what lies there.
        address: of its first byte.

    Raises:
        GuestFault, BadArgument, Unsupported: as view.load().
    """
    return value._at(type, address)


class Reader(Protocol):
    """Reads what the values of a library consist of.

    `depth` is how many structures and arrays are around a value.
    """

    def whole(self, value: Any, depth: int) -> Any:
        """Read a value completely. None: it cannot be read."""

    def text(self, value: Any, at: int, size: int, width: int = 1) -> Any:
        """Read `size` characters of `width` bytes at an address."""

    def elements(self, value: Any, element: CType, at: int, count: int, depth: int) -> Any:
        """Read `count` elements that lie behind each other, as a tuple."""

    def items(self, items: Iterator[Any], depth: int) -> tuple[Any, ...]:
        """Read elements that are anywhere, as a tuple."""

    def pairs(self, pairs: Iterator[tuple[Any, Any]], depth: int) -> tuple[Any, ...]:
        """Read pairs whose two values are anywhere, as a tuple of what tuples of two are."""


class NotLaidOut(Exception):
    """A value does not lie in memory as its library lays its values out."""


class LibraryType:
    """How values of a kind of type are read.

    Attributes:
        members: names of members that its types have; others of the same name are somebody
            else's.
        is_text: its values are texts.
    """

    members: ClassVar[frozenset[str]] = frozenset()
    is_text: bool = False

    def fits(self, type: CType) -> bool:
        """Return True where a type of the right name has the right members."""
        return self.members <= type.members.keys()

    def read(self, reader: Reader, value: LibraryValue, depth: int) -> Any:
        """Read a value.

        Args:
            reader: reads what the value consists of.
            value: a View of it.
            depth: structures and arrays around it.

        Returns:
            None: a count or a pointer of it cannot be right.

        Raises:
            NotLaidOut: it is to be read as a structure.
            KprobeError, OverflowError: its memory cannot be read.
        """
        try:
            return self._read(reader, value, depth)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            if isinstance(error, KprobeError):
                raise
            raise NotLaidOut from error

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        """Read a value, as read(). Python's own errors mean that it lies otherwise."""
        raise NotImplementedError


def need(type: CType | None) -> CType:
    """Return a type. Raises NotLaidOut where there is none, or its size is not known."""
    if type is None or not type.size:
        raise NotLaidOut
    return type


def pointer_of(value: Any) -> Any:
    """Return a value that is a View of a pointer. Raises NotLaidOut for others."""
    if type_of(value).kind != "pointer":
        raise NotLaidOut
    return value


@frozen
class Wrapped(LibraryType):
    """A type whose value is that of one of its members.

    Attributes:
        path: names of the member, and of the members within members that lead to it.
    """

    path: tuple[str, ...]

    def fits(self, type: CType) -> bool:
        """Return True where a type has the members of the path."""
        for name in self.path:
            if name not in type.members:
                return False
            type = type.members[name].type
        return True

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        for name in self.path:
            value = value[name]
        return reader.whole(value, depth + 1)


def width_of(first: Any) -> int:
    """Return the bytes of a character that a pointer points at."""
    target = type_of(first).target
    return target.size if target is not None and target.size in (2, 4) else 1


def linked_nodes(node: Any, link: str, count: int, end: int = 0) -> Iterator[Any]:
    """Yield pointers to the nodes of a linked list.

    Args:
        node: a pointer to the first.
        link: name of the member that points at the next one.
        count: how many there are at most.
        end: address that the last one's link has.
    """
    for _ in range(count):
        if int(pointer_of(node)) == end:
            return
        yield node
        node = node[link]
