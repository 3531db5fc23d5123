"""Reads a View completely, into Python's own objects: numbers, texts, tuples and members, for
records.

Strings, vectors and tuples of C++'s and Rust's libraries become texts and tuples, as their printers
for gdb show them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ..errors import KprobeError
from .types import CType, Member
from .view import View, load

MOST: Final = 4096  #: numbers and texts of one value
_LISTED: Final = 200  #: elements of a library's list, as gdb shows
_TEXT: Final = 4096  #: bytes of a text
_DEEPEST: Final = 16
_CUT: Final = "..."  #: stands for elements that are left out
_HEAD: Final = re.compile(r"_Head_base<(\d+)")  #: the part of a std::tuple that has one value


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
        be read. Pointers are addresses; a reference is what it refers to. What is left out at a
        limit is "..." at the end.
    """
    if isinstance(value, View) and value._type.is_reference and value._type.target is not None:
        try:
            value = load(value._machine, value._type.target, int(value))
        except (KprobeError, OverflowError):
            return None
    return _LimitedReader().whole(value, 0)


def is_text(type: CType) -> bool:
    """Return True for a type of a library whose values are texts: std::string, String, &str."""
    made = _library(type)
    if made is _rust_slice:
        return "str" in type.base_name
    return made in (_cpp_string, _cpp_view, _rust_string)


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
        found = list[Any]()
        for n in range(len(value)):
            if self._left <= 0:
                return (*found, _CUT)
            found.append(self._item(value, n, depth))
        return tuple(found)

    def _item(self, value: View, key: int | str, depth: int) -> Any:
        """Read one element or member of a View completely; None: it cannot be read."""
        return self._tried(lambda: self.whole(value[key], depth + 1))

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
                part = View(value._machine, base.type, int(value) + base.offset)
                read = self._tried(lambda part=part: self.whole(part, depth + 1))  # type: ignore[misc]
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
        if not 0 <= size <= 1 << 40:
            return None
        if not size:
            return ""
        encoding = _encoding(value, width)
        read = value._machine.read(at, min(size * width, _TEXT)).decode(
            encoding, "backslashreplace"
        )
        return read if size * width <= _TEXT else f"{read}{_CUT}"

    def elements(self, value: View, element: CType, at: int, count: int, depth: int) -> Any:
        """Read the elements of a library's list, at most _LISTED; "..." follows where there are
        more.

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
        found = list[Any]()
        for n in range(count):
            if n == _LISTED or self._left <= 0:
                return (*found, _CUT)
            item = load(value._machine, element, at + n * element.size)
            found.append(self.whole(item, depth + 1))
        return tuple(found)


_Made = Callable[[_LimitedReader, View, int], Any]


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


def _encoding(value: View, width: int) -> str:
    """Return the encoding of a text of characters of 1, 2 or 4 bytes, as Python names it.

    Args:
        value: a View of the text, whose machine has the byte order.
        width: bytes of a character.
    """
    order = "le" if value._machine.arch.order.value == "little" else "be"
    return "utf-8" if width == 1 else f"utf-{8 * width}-{order}"


def _library(type: CType) -> _Made | None:
    """Return the function that reads a library's type as text or tuple: C++'s std::string,
    std::string_view, std::vector and std::tuple, Rust's slices, &str, String and Vec, known by name
    and members; None for other types.
    """
    if type.kind != "struct":
        return None
    name, members = type.base_name, type.members
    if name.startswith("basic_string<") and {"_M_dataplus", "_M_string_length"} <= members.keys():
        return _cpp_string
    if name.startswith("basic_string_view<") and {"_M_len", "_M_str"} <= members.keys():
        return _cpp_view
    if name.startswith("tuple<") and [*map(_is_tuple, type.bases)] == [True]:
        return _cpp_tuple
    if name.startswith("vector<") and "_M_impl" in members:
        impl = members["_M_impl"].type.members
        if not {"_M_start", "_M_finish"} <= impl.keys():
            return None
        return _cpp_bits if impl["_M_start"].type.kind == "struct" else _cpp_vector
    if [*members] == ["data_ptr", "length"]:
        return _rust_slice
    if name == "String" and "vec" in members:
        return _rust_string
    if name.startswith("Vec<") and {"buf", "len"} <= members.keys():
        return _rust_vec
    return None


def _cpp_string(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::string, std::u16string or std::wstring as text.

    Args:
        reader: reads the text.
        value: a View of the string.
        depth: structures and arrays around it.
    """
    first = value["_M_dataplus"]["_M_p"]
    return reader.text(first, int(first), value["_M_string_length"], _width(first))


def _cpp_view(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::string_view, or one of wider characters, as text.

    Args:
        reader: reads the text.
        value: a View of the std::string_view.
        depth: structures and arrays around it.
    """
    first = value["_M_str"]
    return reader.text(first, int(first), value["_M_len"], _width(first))


def _width(first: View) -> int:
    """Return the bytes of a character that a pointer points at."""
    target = first._type.target
    return target.size if target is not None and target.size in (2, 4) else 1


def _is_tuple(base: Member) -> bool:
    """Return True for the base class of std::tuple that has the values."""
    return base.type.base_name.startswith("_Tuple_impl<")


def _cpp_tuple(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::tuple as a tuple of its values.

    Each value is in a base class _Head_base<N, ..>, and these are bases of bases.

    Args:
        reader: reads the values.
        value: a View of the std::tuple.
        depth: structures and arrays around it.
    """
    heads: dict[int, tuple[int, CType]] = {}
    left = [(base.offset, base.type) for base in value._type.bases]
    while left:
        offset, type = left.pop()
        found = _HEAD.match(type.base_name)
        if found is not None:
            heads[int(found[1])] = offset, type
        else:
            left += [(offset + base.offset, base.type) for base in type.bases]
    values = list[Any]()
    for n in sorted(heads):
        offset, type = heads[n]
        head = View(value._machine, type, int(value) + offset)
        item = head["_M_head_impl"] if "_M_head_impl" in type.members else head
        values.append(reader.whole(item, depth + 1))
    return tuple(values)


def _cpp_bits(reader: _LimitedReader, value: View, depth: int) -> Any:
    """Read a std::vector<bool>, which has a bit for each element, as a tuple.

    Args:
        reader: reads nothing here.
        value: a View of the vector.
        depth: structures and arrays around it.

    Returns:
        None: the number of its elements cannot be right.
    """
    first, last = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
    word = first["_M_p"]
    bits = 8 * word._type.target.size
    count = 8 * (int(last["_M_p"]) - int(word)) + last["_M_offset"] - first["_M_offset"]
    if not 0 <= count <= 1 << 40:
        return None
    places = range(first["_M_offset"], first["_M_offset"] + min(count, _LISTED))
    found = [bool(word[n // bits] >> n % bits & 1) for n in places]
    return tuple(found) if count <= _LISTED else (*found, _CUT)


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
