"""Reads a View completely, into Python's own objects: numbers, texts, tuples and members, for
records.

Values of C++'s and Rust's libraries become what they stand for: libraries.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..errors import KprobeError, Unsupported
from .libraries import CUT, MOST_ELEMENTS, NotLaidOut, is_numbered, library_text, library_type
from .library import machine_of, type_of, value_at
from .types import CType
from .view import Held, View, load

MOST: Final = 4096  #: numbers and texts of one value
_TEXT: Final = 4096  #: bytes of a text
NOT_KEPT: Final = "(not kept)"  #: a part of a variable of which the compiler has kept others
_DEEPEST: Final = 16


class Members(dict[str, Any]):
    """A structure that was read: name of a member -> its value. Never changed, and so hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def whole(value: Any) -> Any:
    """Read everything that a value consists of.

    Args:
        value: a number, or a View.

    Returns:
        A number; text; Members of a structure; a tuple of an array's elements; None for what cannot
        be read; NOT_KEPT for a part of a variable that the compiler has kept in part. Pointers are
        addresses; a reference is what it refers to. What is left out at a limit is "..." at the
        end.
    """
    target = type_of(value).target if isinstance(value, View) else None
    if isinstance(value, View) and type_of(value).is_reference and target is not None:
        try:
            value = load(machine_of(value), target, int(value))
        except (KprobeError, OverflowError):
            return None
    return _LimitedReader().whole(value, 0)


class _LimitedReader:
    """Reads one value completely, but at most MOST numbers and texts of it.

    In all methods `depth` is how many structures and arrays are around the value, and None as a
    result means that it cannot be read, or is beyond the limits.
    """

    def __init__(self) -> None:
        self._left = MOST

    def whole(self, value: Any, depth: int) -> Any:
        """Read a value completely; it counts as one of the MOST.

        Args:
            value: a number, or a View.
            depth: structures and arrays around it.

        Returns:
            A number (of a pointer its address), text, Members (of a complex number `real` and
            `imag`), or a tuple; None: it cannot be read, or is beyond the limits.
        """
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            return None
        if isinstance(value, complex):
            return Members(real=value.real, imag=value.imag)
        if not isinstance(value, View):
            return value
        type = type_of(value)
        if type.kind == "pointer":
            return int(value)
        if type.kind == "array":
            return self._array(value, type, depth)
        if type.kind not in ("struct", "union"):
            return None
        known = library_type(type)
        if known is not None:
            try:
                found = self._tried(lambda: known.read(self, value, depth), value)
            except NotLaidOut:
                found = NOT_KEPT
            if found is not NOT_KEPT:
                return found
        return self._structure(value, type, depth)

    def _tried(self, read: Callable[[], Any], value: View) -> Any:
        """Call a function that reads a part of a value.

        Args:
            read: the function.
            value: a View of the value.

        Returns:
            The function's result; NOT_KEPT where the compiler has not kept what it reads; None
            where it raises another KprobeError or an OverflowError.
        """
        try:
            return read()
        except Unsupported:
            return NOT_KEPT if isinstance(machine_of(value), Held) else None
        except (KprobeError, OverflowError):
            return None

    def _array(self, value: View, type: CType, depth: int) -> Any:
        """Return an array as a tuple; one of char as text, or None if that cannot be read.

        Args:
            value: a View of the array.
            type: its type.
            depth: structures and arrays around it.
        """
        if type.target is not None and type.target.kind == "char":
            return self._tried(lambda: str(value), value)
        found = list[Any]()
        for n in range(len(value)):
            if self._left <= 0:
                return (*found, CUT)
            found.append(self._item(value, n, depth))
        return tuple(found)

    def _item(self, value: View, key: int | str, depth: int) -> Any:
        """Read one element or member of a View completely; None: it cannot be read."""
        return self._tried(lambda: self.whole(value[key], depth + 1), value)

    def _structure(self, value: View, type: CType, depth: int) -> Any:
        """Read the members of a structure, without pointers to tables of virtual functions; of a
        Rust enumeration its variant.

        Members of base classes stand beside the structure's own. Where that would leave one out,
        because another has its name, each base is a member `<Base>`, as in gdb.

        Args:
            value: a View of the structure.
            type: its type.
            depth: structures and arrays around it.

        Returns:
            Members; of an enumeration what _variant() returns.
        """
        if type.variants is not None:
            return self._variant(value, type, depth)
        inherited = [name for base in type.bases for name in _names(base.type)]
        own = type.own
        if len({*inherited, *own}) == len(inherited) + len(own):
            names = [name for name in (*type.members, *type.virtual) if not _is_table(name)]
            return Members({name: self._item(value, name, depth) for name in names})
        found = Members()
        for base in type.bases:
            if _names(base.type):
                part = View(machine_of(value), base.type, int(value) + base.offset)
                read = self._tried(lambda part=part: self.whole(part, depth + 1), part)  # type: ignore[misc]
                dict.__setitem__(found, f"<{base.type.base_name}>", read)
        names = [name for name in (*own, *type.virtual) if not _is_table(name)]
        return Members(found | {name: self._item(value, name, depth) for name in names})

    def _variant(self, value: View, type: CType, depth: int) -> Any:
        """Read a Rust enumeration: which variant it is, and what the variant has.

        Args:
            value: a View of the enumeration.
            type: its type.
            depth: structures and arrays around it.

        Returns:
            The variant's name; Members {name: what the variant has} where it has something: its
            Members, or where these have no names its value, or a tuple of several; None: there is
            no such variant.
        """
        member = value.variant
        if member is None:
            return None
        if not member.type.members:
            return member.name
        held = self._item(value, member.name, depth)
        if is_numbered(member.type) and held is not None:
            values = tuple(held.values())
            held = values if len(values) > 1 else values[0]
        return Members({member.name: held})

    # --- of libraries

    def text(self, value: View, at: int, size: int, width: int = 1) -> Any:
        """Read the text of a library's string, at most _TEXT bytes; "..." follows where there are
        more.

        Args:
            value: a View, from whose machine the memory is read.
            at: address of the first byte.
            size: characters of the text, as the library counts them.
            width: bytes of each: 1 (UTF-8), 2 or 4.

        Returns:
            None: `size` cannot be right.

        Raises:
            GuestFault: memory cannot be read; _tried() turns it into None.
        """
        return library_text(value, at, size, width, _TEXT)

    def elements(self, value: View, element: CType, at: int, count: int, depth: int) -> Any:
        """Read the elements of a library's list that lie behind each other, at most MOST_ELEMENTS;
        "..." follows where there are more.

        Args:
            value: a View, from whose machine the memory is read.
            element: type of each.
            at: address of the first one.
            count: how many the list has.
            depth: structures and arrays around the list.

        Returns:
            A tuple; None: `count` cannot be right, or the elements' size is not known.

        Raises:
            KprobeError: an element cannot be read; _tried() turns it into None.
        """
        if not 0 <= count <= 1 << 40 or not element.size:
            return None
        size = element.size
        return self.items((value_at(value, element, at + n * size) for n in range(count)), depth)

    def items(self, items: Iterable[Any], depth: int) -> tuple[Any, ...]:
        """Read the elements of a library's list, at most MOST_ELEMENTS; "..." follows where there
        are more.

        Args:
            items: the elements, numbers or Views.
            depth: structures and arrays around the list.

        Raises:
            GuestFault: memory cannot be read; _tried() turns it into None.
        """
        found = list[Any]()
        for item in items:
            if len(found) == MOST_ELEMENTS or self._left <= 0:
                return (*found, CUT)
            found.append(self.whole(item, depth + 1))
        return tuple(found)

    def pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> tuple[Any, ...]:
        """Read pairs of a library's map as tuples of two, at most MOST_ELEMENTS; "..." follows
        where there are more.

        Args:
            pairs: two values each, numbers or Views.
            depth: structures and arrays around the map.

        Raises:
            GuestFault: memory cannot be read; _tried() turns it into None.
        """
        found = list[Any]()
        for first, second in pairs:
            if len(found) == MOST_ELEMENTS or self._left <= 0:
                return (*found, CUT)
            found.append((self.whole(first, depth + 2), self.whole(second, depth + 2)))
        return tuple(found)


def _is_table(name: str) -> bool:
    """Return True for the name of a pointer to a table of virtual functions."""
    return name.startswith("_vptr")


def _names(type: CType) -> list[str]:
    """Return the names of all members of a class and its bases that are not virtual, each as often
    as there are members of that name.

    Args:
        type: the class.
    """
    inherited = [name for base in type.bases for name in _names(base.type)]
    return [*inherited, *(name for name in type.own if not _is_table(name))]
