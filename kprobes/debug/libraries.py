"""Types of C++'s and Rust's libraries whose values are more than their members: strings, lists,
maps, optional values, owners of objects.

Each kind of type is a class, which knows how its values lie in memory; library_type() finds it by
the type's name and members. Layouts are those of GNU's libstdc++, of LLVM's libc++ (libcxx.py) and
of Rust's std; a type that lies otherwise is read as any structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from . import libcxx
from .file import children
from .library import (
    CUT,
    EMPTY,
    LARGEST_LIST,
    MOST_ELEMENTS,
    LibraryType,
    LibraryValue,
    NotLaidOut,
    Reader,
    Wrapped,
    linked_nodes,
    machine_of,
    need,
    nodes_of_tree,
    pointer_of,
    type_of,
    value_at,
    width_of,
)
from .types import CType, Member

__all__ = [
    "CUT",
    "EMPTY",
    "MOST_ELEMENTS",
    "NotLaidOut",
    "is_numbered",
    "is_text",
    "library_text",
    "library_type",
]

_MOST_BUCKETS: Final = 1 << 20
_DEEPEST: Final = 16
_MOST_KEYS: Final = 11  #: of a node of a BTreeMap
_BLOCK: Final = 512  #: bytes of a block of a std::deque
_OF_C: Final = re.compile(r"\w*")  #: names of C's structures
_PARAMETERS: Final = ("DW_TAG_template_type_param", "DW_TAG_template_value_param")
_HEAD: Final = re.compile(r"_Head_base<(\d+)")  #: the part of a std::tuple that has one value


# --- of C++


class _CppString(LibraryType):
    """std::string, std::u16string or std::wstring: a text."""

    members = frozenset({"_M_dataplus", "_M_string_length"})
    is_text = True

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = pointer_of(value["_M_dataplus"]["_M_p"])
        return reader.text(first, int(first), value["_M_string_length"], width_of(first))


class _CppStringView(LibraryType):
    """std::string_view, or one of wider characters: a text."""

    members = frozenset({"_M_len", "_M_str"})
    is_text = True

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = pointer_of(value["_M_str"])
        return reader.text(first, int(first), value["_M_len"], width_of(first))


class _CppTuple(LibraryType):
    """std::tuple: a tuple of its values.

    Each value is in a base class _Head_base<N, ..>, and these are bases of bases.
    """

    def fits(self, type: CType) -> bool:
        """Return True where a type has the one base class that has the values."""
        return [*map(_is_tuple, type.bases)] == [True]

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        return tuple([reader.whole(item, depth + 1) for item in _parts(value)])


def _is_tuple(base: Member) -> bool:
    """Return True for the base class of std::tuple that has the values."""
    return base.type.base_name.startswith("_Tuple_impl<")


def _parts(value: Any) -> Iterator[Any]:
    """Yield the values of a std::tuple, from its first."""
    heads: dict[int, tuple[int, CType]] = {}
    left = [(base.offset, base.type) for base in type_of(value).bases]
    while left:
        offset, type = left.pop()
        found = _HEAD.match(type.base_name)
        if found is not None:
            heads[int(found[1])] = offset, type
        else:
            left += [(offset + base.offset, base.type) for base in type.bases]
    for n in sorted(heads):
        offset, type = heads[n]
        head = value_at(value, type, int(value) + offset)
        yield head["_M_head_impl"] if "_M_head_impl" in type.members else head


class _CppVector(LibraryType):
    """std::vector: a tuple.

    Attributes:
        first: kind of the member that tells where the first element is.
    """

    members = frozenset({"_M_impl"})
    first = "pointer"

    def fits(self, type: CType) -> bool:
        """Return True where a vector's first element is told by a member of the kind `first`."""
        if not super().fits(type):
            return False
        impl = type.members["_M_impl"].type.members
        return {"_M_start", "_M_finish"} <= impl.keys() and impl["_M_start"].type.kind == self.first

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first, last = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
        element = type_of(first).target
        if element is None or not element.size:
            return None
        count = (int(last) - int(first)) // element.size
        return reader.elements(first, element, int(first), count, depth)


class _CppBits(_CppVector):
    """std::vector<bool>, which has a bit for each element: a tuple."""

    first = "struct"

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first, last = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
        word = pointer_of(first["_M_p"])
        bits = 8 * need(type_of(word).target).size
        count = 8 * (int(last["_M_p"]) - int(word)) + last["_M_offset"] - first["_M_offset"]
        if not 0 <= count < LARGEST_LIST:
            return None
        places = range(first["_M_offset"], first["_M_offset"] + count)
        return reader.items((bool(word[n // bits] >> n % bits & 1) for n in places), depth)


class _CppArray(LibraryType):
    """std::array: a tuple."""

    members = frozenset({"_M_elems"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        elements = value["_M_elems"]
        if type_of(elements).kind != "array":  # of an array without elements
            return ()
        return reader.whole(elements, depth)


class _CppOptional(LibraryType):
    """std::optional: its value, or EMPTY."""

    members = frozenset({"_M_payload"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        payload = value["_M_payload"]
        if not payload["_M_engaged"]:
            return EMPTY
        held = payload["_M_payload"]
        return reader.whole(held["_M_value"], depth + 1)


class _CppVariant(LibraryType):
    """std::variant: the value of the alternative that it has, or EMPTY.

    The alternatives are a list: _M_first of the union _M_u, _M_first of its _M_rest.
    """

    members = frozenset({"_M_u", "_M_index"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        index = value["_M_index"]
        size = type_of(value).members["_M_index"].type.size
        if index == (1 << 8 * size) - 1:
            return EMPTY
        left = value["_M_u"]
        for _ in range(index):
            left = left["_M_rest"]
        first = left["_M_first"]
        item = first["_M_storage"]
        own = type_of(first).template("_Type")
        if type_of(first).base_name.endswith("false>"):  # its bytes are in a buffer
            item = value_at(first, need(own), int(item))
        return reader.whole(item, depth + 1)


class _CppUnique(LibraryType):
    """std::unique_ptr: its pointer, the first part of a tuple with the deleter."""

    members = frozenset({"_M_t"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        parts = value["_M_t"]
        if "_M_t" in type_of(parts).members:
            parts = parts["_M_t"]
        for first in _parts(parts):
            return reader.whole(first, depth + 1)
        raise NotLaidOut


class _CppTree(LibraryType):
    """std::map, std::set, and those with equal keys: a tuple of the elements in order; those of a
    map have `first` and `second`.
    """

    members = frozenset({"_M_t"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        tree = value["_M_t"]
        link, item = type_of(tree).inner("_Link_type"), need(type_of(tree).template("_Val"))
        node = need(None if link is None else link.target)
        if not 0 <= tree["_M_impl"]["_M_node_count"] < LARGEST_LIST:
            return None
        storage = node.members["_M_storage"].offset
        impl = tree["_M_impl"]
        first = pointer_of(impl["_M_header"]["_M_left"])  # the header is the topmost one's parent
        nodes = nodes_of_tree(first, impl["_M_node_count"], lambda at, which: at[_LINKS[which]])
        return reader.items((value_at(each, item, int(each) + storage) for each in nodes), depth)


_LINKS: Final = ("_M_left", "_M_right", "_M_parent")  #: LEFT, RIGHT and PARENT


class _CppHash(LibraryType):
    """std::unordered_map, std::unordered_set, and those with equal keys: a tuple of the elements as
    they are linked; those of a map have `first` and `second`.
    """

    members = frozenset({"_M_h"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        table = value["_M_h"]
        node, item = need(type_of(table).inner("__node_type")), type_of(table).template("_Value")
        nodes = linked_nodes(
            table["_M_before_begin"]["_M_nxt"], "_M_nxt", table["_M_element_count"]
        )
        return _stored(reader, nodes, node, need(item), depth)


class _CppList(LibraryType):
    """std::list: a tuple."""

    members = frozenset({"_M_impl"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        node, item = type_of(value).inner("_Node"), type_of(value).template("_Tp")
        first = value["_M_impl"]["_M_node"]
        nodes = linked_nodes(first["_M_next"], "_M_next", LARGEST_LIST, int(first))
        return _stored(reader, nodes, need(node), need(item), depth)


class _CppForwardList(LibraryType):
    """std::forward_list: a tuple."""

    members = frozenset({"_M_impl"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        node, item = type_of(value).inner("_Node"), type_of(value).template("_Tp")
        nodes = linked_nodes(value["_M_impl"]["_M_head"]["_M_next"], "_M_next", LARGEST_LIST)
        return _stored(reader, nodes, need(node), need(item), depth)


def _stored(
    reader: Reader, nodes: Iterator[Any], node: CType, item: CType, depth: int
) -> tuple[Any, ...]:
    """Read what nodes have in the buffer _M_storage, as a tuple.

    Args:
        reader: reads the elements.
        nodes: pointers to the nodes.
        node: the type that tells where the buffer is.
        item: type of what is in it.
        depth: structures and arrays around the list.
    """
    storage = node.members["_M_storage"].offset
    return reader.items((value_at(each, item, int(each) + storage) for each in nodes), depth)


class _CppDeque(LibraryType):
    """std::deque: a tuple. Its elements are in blocks of one size, which an array points at."""

    members = frozenset({"_M_impl"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first, last = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
        element = need(pointer_of(first["_M_cur"])._type.target)
        each = max(_BLOCK // element.size, 1)
        blocks = pointer_of(first["_M_node"])
        word = need(type_of(blocks).target).size
        before = (int(first["_M_cur"]) - int(first["_M_first"])) // element.size
        behind = (int(last["_M_cur"]) - int(last["_M_first"])) // element.size
        count = (int(last["_M_node"]) - int(blocks)) // word * each + behind - before
        if not 0 <= count < LARGEST_LIST:
            return None
        places = range(before, before + count)
        return reader.items((blocks[n // each][n % each] for n in places), depth)


# --- of Rust


class _RustSlice(LibraryType):
    """A slice, also a boxed one: a tuple, or a text for &str."""

    def fits(self, type: CType) -> bool:
        """Return True where a type has these members, and no others."""
        return [*type.members] == ["data_ptr", "length"]

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = pointer_of(value["data_ptr"])
        element = type_of(first).target
        if element is None:
            return None
        if element.base_name == "u8" and "str" in type_of(value).base_name:
            return reader.text(first, int(first), value["length"])
        return reader.elements(first, element, int(first), value["length"], depth)


class _RustString(LibraryType):
    """String: a text."""

    members = frozenset({"vec"})
    is_text = True

    def fits(self, type: CType) -> bool:
        """Return True where a type has the Vec of its bytes."""
        return super().fits(type) and type.members["vec"].type.base_name.startswith("Vec<")

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = _pointer_in(value["vec"]["buf"], 0)
        return None if first is None else reader.text(first, int(first), value["vec"]["len"])


class _RustVec(LibraryType):
    """Vec: a tuple."""

    members = frozenset({"buf", "len"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first, element = _pointer_in(value["buf"], 0), type_of(value).template("T")
        if first is None or element is None:
            return None
        return reader.elements(first, element, int(first), value["len"], depth)


class _RustDeque(LibraryType):
    """VecDeque: a tuple. Its elements go on at the start of its memory when they reach the end."""

    members = frozenset({"head", "len", "buf"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first, element = _pointer_in(value["buf"], 0), need(type_of(value).template("T"))
        room = _number_in(value["buf"], "cap", 0)
        if first is None or not room or not 0 <= value["len"] <= room:
            raise NotLaidOut
        places = range(value["head"], value["head"] + value["len"])
        size = element.size
        return reader.items(
            (value_at(first, element, int(first) + n % room * size) for n in places), depth
        )


class _RustMap(LibraryType):
    """HashMap: a tuple of its pairs; HashSet: of its keys.

    The pairs lie before the bytes that `ctrl` points at, backwards; the highest bit of such a byte
    is set where there is no pair.
    """

    members = frozenset({"base"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        base = value["base"]
        is_set = "map" in type_of(base).members
        table = (base["map"] if is_set else base)["table"]
        pair, control = need(type_of(table).template("T")), table["table"]["ctrl"]["pointer"]
        buckets = table["table"]["bucket_mask"] + 1
        count = table["table"]["items"]
        if not 0 <= count <= buckets < _MOST_BUCKETS:
            raise NotLaidOut
        pairs = _pairs(control, pair, count, buckets)
        return reader.items((each["__0"] for each in pairs) if is_set else pairs, depth)


def _pairs(control: Any, pair: CType, count: int, buckets: int) -> Iterator[Any]:
    """Yield the pairs of Rust's HashMap.

    Args:
        control: a pointer to the bytes behind the pairs.
        pair: their type.
        count: how many there are.
        buckets: how many there is room for.
    """
    if not count:
        return
    at = int(control)
    marks = machine_of(control).read(at, buckets)
    for n, mark in enumerate(marks):
        if not mark & 0x80:
            yield value_at(control, pair, at - (n + 1) * pair.size)


class _RustTree(LibraryType):
    """BTreeMap: a tuple of its pairs in order; BTreeSet: of its keys.

    A leaf has up to 11 keys and values; a node further up has also, behind what a leaf has, the
    addresses of the nodes before, between and behind its keys.
    """

    def fits(self, type: CType) -> bool:
        """Return True where a type has a root and a length, itself or in the map of a set."""
        if "map" in type.members:
            type = type.members["map"].type
        return {"root", "length"} <= type.members.keys()

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        is_set = "map" in type_of(value).members
        tree = value["map"] if is_set else value
        key, held = need(type_of(tree).template("K")), type_of(tree).template("V")
        if held is None or not 0 <= tree["length"] < LARGEST_LIST:
            raise NotLaidOut
        if not tree["length"]:
            return ()
        root = tree["root"]["Some"]["__0"]
        if not 0 <= root["height"] <= _DEEPEST:
            raise NotLaidOut
        node = pointer_of(root["node"]["pointer"])
        places = islice(_places_in_tree(node, int(node), root["height"]), tree["length"])
        leaf = need(type_of(node).target)
        keys, values = leaf.members["keys"].offset, leaf.members["vals"].offset
        found = ((at + keys + n * key.size, at + values + n * held.size) for at, n in places)
        if is_set:
            return reader.items((value_at(node, key, first) for first, _ in found), depth)
        pairs = (
            (value_at(node, key, first), value_at(node, held, second)) for first, second in found
        )
        return reader.pairs(pairs, depth)


def _places_in_tree(node: Any, at: int, height: int) -> Iterator[tuple[int, int]]:
    """Yield where the keys of a BTreeMap are, in the order of the keys.

    Args:
        node: a View of a pointer to a node, for the type of nodes and the machine.
        at: address of the node whose keys, and those below, are yielded.
        height: steps from that node down to a leaf; 0 for a leaf.

    Yields:
        (address of a node, index of the key in it).

    Raises:
        NotLaidOut: a node has more keys than a node has room for.
        GuestFault: memory cannot be read.
    """
    leaf = need(type_of(node).target)
    count = value_at(node, leaf.members["len"].type, at + leaf.members["len"].offset)
    if not 0 <= count <= _MOST_KEYS:
        raise NotLaidOut
    word = need(leaf.members["parent"].type).size  # an Option of a pointer that is not null
    for n in range(count + 1):
        if height:
            below = machine_of(node).read(at + leaf.size + n * word, word)
            order = machine_of(node).arch.order.value
            yield from _places_in_tree(node, int.from_bytes(below, order), height - 1)
        if n < count:
            yield at, n


class _RustShared(LibraryType):
    """Rc, Arc and their Weak: the address of the shared value, as of a reference to it."""

    members = frozenset({"ptr"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        counted = pointer_of(value["ptr"]["pointer"])
        shared = need(type_of(counted).target)
        last = [*shared.members.values()][-1]  # behind two counters
        if last.name not in ("value", "data"):
            raise NotLaidOut
        return int(counted) + last.offset


class _RustTuple(LibraryType):
    """A tuple, whose name begins with "(": a tuple."""

    def fits(self, type: CType) -> bool:
        """Return True where a type's members are numbered."""
        return is_numbered(type)

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        return tuple([reader.whole(value[name], depth + 1) for name in type_of(value).members])


def is_numbered(type: CType) -> bool:
    """Return True for a structure of Rust whose members have numbers instead of names."""
    return [*type.members] == [f"__{n}" for n in range(len(type.members))]


def _pointer_in(value: Any, depth: int) -> Any:
    """Return the first pointer in a structure, at any depth.

    Versions of Rust's library wrap a Vec's pointer in differently many structures.

    Args:
        value: a View of the structure, or any other value.
        depth: structures around it.

    Returns:
        A View of the pointer; None: there is none.
    """
    type = getattr(value, "_type", None)
    if type is None or depth > _DEEPEST:
        return None
    if type.kind == "pointer":
        return value
    for name in type.members if type.kind == "struct" else ():
        found = _pointer_in(value[name], depth + 1)
        if found is not None:
            return found
    return None


def _number_in(value: Any, wanted: str, depth: int) -> int | None:
    """Return the number that a member of a name has, at any depth of a structure; None: there is
    none.

    Args:
        value: a View of the structure, or any other value.
        wanted: name of the member: a number, or a structure of one.
        depth: structures around it.
    """
    type = getattr(value, "_type", None)
    if type is None or type.kind != "struct" or depth > _DEEPEST:
        return None
    for name in type.members:
        item = value[name]
        if name == wanted:
            while not isinstance(item, int):
                (only,) = type_of(item).members
                item = item[only]
            return item
        found = _number_in(item, wanted, depth + 1)
        if found is not None:
            return found
    return None


_TREE, _HASH, _SHARED, _MAP = _CppTree(), _CppHash(), _RustShared(), _RustMap()
_SORTED = _RustTree()
#: names of types, without what they are made for -> how they may lie in memory
_TYPES: Final[dict[str, Sequence[LibraryType]]] = {
    "basic_string": (_CppString(),),
    "basic_string_view": (_CppStringView(),),
    "tuple": (_CppTuple(),),
    "vector": (_CppBits(), _CppVector()),
    "array": (_CppArray(),),
    "optional": (_CppOptional(),),
    "variant": (_CppVariant(),),
    "unique_ptr": (_CppUnique(),),
    "shared_ptr": (Wrapped(("_M_ptr",)),),
    "weak_ptr": (Wrapped(("_M_ptr",)),),
    "map": (_TREE,),
    "multimap": (_TREE,),
    "set": (_TREE,),
    "multiset": (_TREE,),
    "unordered_map": (_HASH,),
    "unordered_multimap": (_HASH,),
    "unordered_set": (_HASH,),
    "unordered_multiset": (_HASH,),
    "list": (_CppList(),),
    "forward_list": (_CppForwardList(),),
    "deque": (_CppDeque(),),
    "stack": (Wrapped(("c",)),),
    "queue": (Wrapped(("c",)),),
    "priority_queue": (Wrapped(("c",)),),
    "atomic": (
        Wrapped(("_M_i",)),
        Wrapped(("_M_base", "_M_i")),
        Wrapped(("_M_b", "_M_p")),
    ),
    "Vec": (_RustVec(),),
    "VecDeque": (_RustDeque(),),
    "BTreeMap": (_SORTED,),
    "BTreeSet": (_SORTED,),
    "HashMap": (_MAP,),
    "HashSet": (_MAP,),
    "Rc": (_SHARED,),
    "Arc": (_SHARED,),
    "Weak": (_SHARED,),
    "Cell": (Wrapped(("value", "value")),),
    "UnsafeCell": (Wrapped(("value",)),),
}
_STRING, _SLICE, _TUPLE = _RustString(), _RustSlice(), _RustTuple()


def _is_instance(type: CType) -> bool:
    """Whether a type is an instance of a template, or generic type, whose name may not say it."""
    return any(child.tag in _PARAMETERS for child in children(type.definition))


def library_type(type: CType) -> LibraryType | None:
    """Return how values of a library's type are read; None: it is no type of a library.

    Structures of C are none, whatever their names and members are.
    """
    if type.kind != "struct":
        return None
    name = type.base_name
    if name == "String":
        return _STRING if _STRING.fits(type) else None
    if _OF_C.fullmatch(name) and not (name in _TYPES and _is_instance(type)):
        return None
    kind = name.partition("<")[0]
    for known in (*_TYPES.get(kind, ()), *libcxx.TYPES.get(kind, ())):
        if known.fits(type):
            return known
    if name.startswith("(") and _TUPLE.fits(type):
        return _TUPLE
    return _SLICE if _SLICE.fits(type) else None


def is_text(type: CType) -> bool:
    """Return True for a type of a library whose values are texts: std::string, String, &str."""
    known = library_type(type)
    if known is _SLICE:  # "str" is in the name of &[alloc::string::String], too
        first = type.members["data_ptr"].type
        element = first.target if first.kind == "pointer" else None
        return "str" in type.base_name and element is not None and element.base_name == "u8"
    return known is not None and known.is_text


def library_text(value: LibraryValue, at: int, size: int, width: int, most: int) -> str | None:
    """Read the text of a library's string; "..." follows where it has more than `most` bytes.

    Args:
        value: a View, from whose machine the memory is read.
        at: address of the first byte.
        size: characters of the text, as the library counts them.
        width: bytes of each: 1 (UTF-8), 2 or 4.
        most: bytes that are read.

    Returns:
        None: `size` cannot be right.

    Raises:
        GuestFault: memory cannot be read.
    """
    if not 0 <= size < LARGEST_LIST:
        return None
    if not size:
        return ""
    order = "le" if machine_of(value).arch.order.value == "little" else "be"
    encoding = "utf-8" if width == 1 else f"utf-{8 * width}-{order}"
    data = machine_of(value).read(at, min(size * width, most))
    read: str = data.decode(encoding, "backslashreplace")
    return read if size * width <= most else f"{read}{CUT}"
