"""Base of the types of libraries (libcxx.py, libraries.py): how one is described and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Protocol, SupportsInt, TypeVar

from attrs import frozen

from ..errors import KprobeError
from .types import CType

EMPTY: Final = "(empty)"  #: stands for the value of a std::optional or std::variant without one
CUT: Final = "..."  #: stands for elements that are left out
MOST_ELEMENTS: Final = 200  #: elements of a container that are read: gdb's default limit, too
MOST_STEPS: Final = 64  #: links of a tree that are followed from one element to the next
LARGEST_LIST: Final = 1 << 40  #: a count of so many elements is not initialized, or damaged


class LibraryValue(Protocol):
    """The part of a View that this module needs."""

    _type: CType
    _machine: Any

    def _at(self, type: CType, address: int) -> Any: ...
    def __getitem__(self, key: int | str) -> Any: ...
    def __int__(self) -> int: ...


def type_of(value: LibraryValue) -> CType:
    """Return the type of a View, whose own attributes are the members of its type."""
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
    """Reads the parts of a library's value: completely (whole.py), or as text (view.py).

    `depth` is how many structures and arrays are around a value.
    """

    def whole(self, value: Any, depth: int) -> Any:
        """Read a number or View completely. None: it cannot be read."""

    def text(self, value: Any, at: int, size: int, width: int = 1) -> Any:
        """Read characters.

        Args:
            value: a View, from whose machine they are read.
            at: address of the first.
            size: how many characters.
            width: bytes of each.
        """

    def elements(self, value: Any, element: CType, at: int, count: int, depth: int) -> Any:
        """Read elements that lie behind each other, as a tuple.

        Args:
            value: a View, from whose machine they are read.
            element: type of the elements.
            at: address of the first.
            count: how many elements.
            depth: structures and arrays around the container.
        """

    def items(self, items: Iterator[Any], depth: int) -> tuple[Any, ...]:
        """Read numbers and Views, wherever they are, as a tuple."""

    def pairs(self, pairs: Iterator[tuple[Any, Any]], depth: int) -> tuple[Any, ...]:
        """Read pairs of numbers and Views, as a tuple with one item for each pair."""


class NotLaidOut(Exception):
    """Raised where a value does not lie in memory as expected of its library's type."""


Node = TypeVar("Node", bound=SupportsInt)  #: a node's address, or a View of a pointer to it
LEFT: Final = 0
RIGHT: Final = 1
PARENT: Final = 2


def nodes_of_tree(first: Node, count: int, link: Callable[[Node, int], Node]) -> Iterator[Node]:
    """Yield the nodes of a red-black tree, in order.

    Args:
        first: the first node.
        count: how many nodes the tree has.
        link: (node, LEFT, RIGHT or PARENT) -> that child, or the parent; 0 as int(): there is none.

    Raises:
        NotLaidOut: a next node is more than MOST_STEPS links away, as in no tree.
        GuestFault: memory cannot be read.
    """
    node = first
    for n in range(count):
        if n:
            node = _next_in_tree(node, link)
        yield node


def _next_in_tree(node: Node, link: Callable[[Node, int], Node]) -> Node:
    """Return the successor of a node, which is not the last, in a red-black tree.

    Args:
        node: the node.
        link: as nodes_of_tree() takes it.

    Raises:
        NotLaidOut: the successor is more than MOST_STEPS links away, as in no tree.
    """
    right = link(node, RIGHT)
    if int(right):
        for _ in range(MOST_STEPS):
            left = link(right, LEFT)
            if not int(left):
                return right
            right = left
        raise NotLaidOut
    for _ in range(MOST_STEPS):
        parent = link(node, PARENT)
        if int(link(parent, LEFT)) == int(node):
            return parent
        node = parent
    raise NotLaidOut


class LibraryType:
    """One layout that values of a library's type may have.

    Attributes:
        members: names of members that a type of this layout has; a type without them, of the same
            name, is another library's, or of another version.
        is_text: True where values are texts.
    """

    members: ClassVar[frozenset[str]] = frozenset()
    is_text: bool = False

    def fits(self, type: CType) -> bool:
        """Return True where a type of the right name has the right members."""
        return self.members <= type.members.keys()

    def read(self, reader: Reader, value: LibraryValue, depth: int) -> Any:
        """Read a value.

        Args:
            reader: reads the parts that the value consists of.
            value: a View of the value.
            depth: structures and arrays around the value.

        Returns:
            None: a count or a pointer in the value cannot be right.

        Raises:
            NotLaidOut: the value lies otherwise, and is to be read as a structure.
            KprobeError, OverflowError: memory cannot be read.
        """
        try:
            return self._read(reader, value, depth)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            if isinstance(error, KprobeError):
                raise
            raise NotLaidOut from error

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        """Read a value for read(), which takes Python's own errors (a member that is missing, a
        value that is no View) for a value that lies otherwise.
        """
        raise NotImplementedError


def need(type: CType | None) -> CType:
    """Return a type as it is. Raises NotLaidOut for None, and for a type of unknown size."""
    if type is None or not type.size:
        raise NotLaidOut
    return type


def pointer_of(value: Any) -> Any:
    """Return a View of a pointer as it is. Raises NotLaidOut for any other value."""
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
    """Return the bytes of a character that a pointer points at: 2 or 4, or 1 for all else.

    Args:
        first: a View of the pointer.
    """
    target = type_of(first).target
    return target.size if target is not None and target.size in (2, 4) else 1


def linked_nodes(node: Any, link: str, count: int, end: int = 0) -> Iterator[Any]:
    """Yield pointers to the nodes of a linked list.

    Args:
        node: a View of a pointer to the first node.
        link: name of the member that points at the next node.
        count: how many nodes there are at most.
        end: address that the last node's link has.

    Raises:
        NotLaidOut: a link is no pointer.
    """
    for _ in range(count):
        if int(pointer_of(node)) == end:
            return
        yield node
        node = node[link]
