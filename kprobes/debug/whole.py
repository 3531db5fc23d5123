"""Reads a View completely, into Python's own objects: numbers, texts, tuples and members, for
records.

Strings and vectors of C++'s and Rust's libraries become texts and tuples, as their printers for gdb
show them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..errors import KprobeError
from .types import CType
from .view import View, load

MOST: Final = 4096  #: numbers and texts of one value
_LISTED: Final = 64  #: elements of a library's list
_TEXT: Final = 4096  #: bytes of a text
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
        be read. Pointers are addresses.
    """
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
        type = value._type
        if type.kind == "pointer":
            return int(value)
        if type.kind == "array":
            return self._array(value, type, depth)
        if type.kind not in ("struct", "union"):
            return None
        made = _library(type)
        if made is not None:
            return self._tried(lambda: made(self, value, depth))
        return self._structure(value, type, depth)

    def _tried(self, read: Callable[[], Any]) -> Any:
        """Call a function; return its result, or None where it raises a KprobeError or an
        OverflowError.
        """
        try:
            return read()
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
            return self._tried(lambda: str(value))
        return tuple([self._item(value, n, depth) for n in range(len(value))])

    def _item(self, value: View, key: int | str, depth: int) -> Any:
        """Read one element or member of a View completely; None: it cannot be read."""
        return self._tried(lambda: self.whole(value[key], depth + 1))

    def _structure(self, value: View, type: CType, depth: int) -> Any:
        """Read the members of a structure, without pointers to tables of virtual functions; of a
        Rust enumeration its variant.

        Args:
            value: a View of the structure.
            type: its type.
            depth: structures and arrays around it.

        Returns:
            Members; of an enumeration what _variant() returns.
        """
        if type.variants is not None:
            return self._variant(value, type, depth)
        names = [name for name in type.members if not name.startswith("_vptr")]
        return Members({name: self._item(value, name, depth) for name in names})

    def _variant(self, value: View, type: CType, depth: int) -> Any:
        """Read a Rust enumeration: which variant it is, and what the variant has.

        Args:
            value: a View of the enumeration.
            type: its type.
            depth: structures and arrays around it.

        Returns:
            The variant's name; Members {name: the variant's members} where it has some; None: there
            is no such variant.
        """
        member = value.variant
        if member is None:
            return None
        if not member.type.members:
            return member.name
        return Members({member.name: self._item(value, member.name, depth)})

    # --- of libraries

    def text(self, value: View, at: int, size: int) -> Any:
        """Read the text of a library's string, at most _TEXT bytes.

        Args:
            value: a View, from whose machine the memory is read.
            at: address of the first byte.
            size: bytes of the text.

        Returns:
            None: `size` cannot be right.

        Raises:
            GuestFault: memory cannot be read; _tried() turns it into None.
        """
        if not 0 <= size <= 1 << 40:
            return None
        return (
            value._machine.read(at, min(size, _TEXT)).decode("utf-8", "backslashreplace")
            if size
            else ""
        )

    def elements(self, value: View, element: CType, at: int, count: int, depth: int) -> Any:
        """Read the elements of a library's list, at most _LISTED.

        Args:
            value: a View, from whose machine the memory is read.
            element: type of each.
            at: address of the first one.
            count: how many the list has.
            depth: structures and arrays around the list.

        Returns:
            A tuple; None: `count` cannot be right, or the elements' size is not known.
        """
        if not 0 <= count <= 1 << 40 or not element.size:
            return None
        return tuple(
            [
                self.whole(load(value._machine, element, at + n * element.size), depth + 1)
                for n in range(min(count, _LISTED))
            ]
        )


_Made = Callable[[_LimitedReader, View, int], Any]


def _library(type: CType) -> _Made | None:
    """Return the function that reads a library's type as text or tuple: C++'s std::string and
    std::vector, Rust's slices, &str, String and Vec, known by name and members; None for other
    types.
    """
    name, members = type.base_name, type.members
    if (
        name.startswith("basic_string<char")
        and {"_M_dataplus", "_M_string_length"} <= members.keys()
    ):
        return _cpp_string
    if name.startswith("vector<") and "_M_impl" in members:
        impl = members["_M_impl"].type.members
        return _cpp_vector if {"_M_start", "_M_finish"} <= impl.keys() else None
    if [*members] == ["data_ptr", "length"]:
        return _rust_slice
    if name == "String" and "vec" in members:
        return _rust_string
    if name.startswith("Vec<") and {"buf", "len"} <= members.keys():
        return _rust_vec
    return None


def _cpp_string(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::string as text.

    Args:
        reader: reads the text.
        value: a View of the string.
        depth: structures and arrays around it.
    """
    return reader.text(
        value["_M_dataplus"]["_M_p"], int(value["_M_dataplus"]["_M_p"]), value["_M_string_length"]
    )


def _cpp_vector(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::vector as a tuple.

    Args:
        reader: reads the elements.
        value: a View of the vector.
        depth: structures and arrays around it.

    Returns:
        None: the type of its elements is not known.
    """
    impl = value["_M_impl"]
    first, last = impl["_M_start"], impl["_M_finish"]
    element = first._type.target
    if element is None or not element.size:
        return None
    return reader.elements(
        first, element, int(first), (int(last) - int(first)) // element.size, depth
    )


def _rust_slice(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a Rust slice as a tuple, or a &str as text.

    Args:
        reader: reads the elements.
        value: a View of the slice.
        depth: structures and arrays around it.

    Returns:
        None: its elements' type is not known.
    """
    first, element = value["data_ptr"], value["data_ptr"]._type.target
    if element is None:
        return None
    if element.base_name == "u8" and "str" in value._type.base_name:
        return reader.text(first, int(first), value["length"])
    return reader.elements(first, element, int(first), value["length"], depth)


def _rust_string(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a Rust String as text.

    Args:
        reader: reads the text.
        value: a View of the String.
        depth: structures and arrays around it.

    Returns:
        None: its pointer is not found.
    """
    first = _pointer_in(value["vec"]["buf"], 0)
    return None if first is None else reader.text(first, int(first), value["vec"]["len"])


def _rust_vec(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a Rust Vec as a tuple.

    Args:
        reader: reads the elements.
        value: a View of the Vec.
        depth: structures and arrays around it.

    Returns:
        None: its pointer or the type of its elements is not found.
    """
    first, element = _pointer_in(value["buf"], 0), value._type.template("T")
    if first is None or element is None:
        return None
    return reader.elements(first, element, int(first), value["len"], depth)


def _pointer_in(value: Any, depth: int) -> View | None:
    """Return the first pointer in a structure, at any depth.

    Versions of Rust's library wrap a Vec's pointer in differently many structures.

    Args:
        value: a View of the structure, or any other value.
        depth: structures around it.

    Returns:
        A View of the pointer; None: there is none.
    """
    if not isinstance(value, View) or depth > _DEEPEST:
        return None
    if value._type.kind == "pointer":
        return value
    for name in value._type.members if value._type.kind == "struct" else ():
        found = _pointer_in(value[name], depth + 1)
        if found is not None:
            return found
    return None
