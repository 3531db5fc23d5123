"""Types of LLVM's libc++, the library of C++ of Clang on macOS, of Android and of zig c++: how
their values lie in memory.

Layouts are those of libc++ 19 and later, which have no __compressed_pair; a type that lies
otherwise is read as any structure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .library import (
    EMPTY,
    LARGEST_LIST,
    LibraryType,
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
from .placing import NotKnown, alignment
from .types import CType

_BLOCK: Final = 4096  #: bytes of a block of a std::deque, where elements are small
_LEAST_BLOCK: Final = 16  #: elements of a block of a std::deque at least
_LEAF: Final = re.compile(r"__tuple_leaf<(\d+)")  #: the part of a std::tuple that has one value


def _element(value: Any, parameter: str) -> CType:
    """Return the type of the elements of a container: what its allocator makes room for.

    Args:
        value: a View of the container.
        parameter: name of the template's parameter that is the allocator.

    Raises:
        NotLaidOut: the debug information does not tell the type.
    """
    return need(need(type_of(value).template(parameter)).template("_Tp"))


def _behind(size: int, element: CType) -> int:
    """Return the offset in bytes from a node's begin to its element.

    Args:
        size: bytes of links, and the like, at the node's begin.
        element: type of the element.

    Raises:
        NotLaidOut: the element's alignment is not known.
    """
    try:
        align = alignment(element)
    except NotKnown as error:
        raise NotLaidOut from error
    return (size + align - 1) // align * align


class _String(LibraryType):
    """std::string, or one of wider characters: a text. Short ones lie in the object itself."""

    members = frozenset({"__rep_"})
    is_text = True

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        short, long = value["__rep_"]["__s"], value["__rep_"]["__l"]
        first = pointer_of(long["__data_"])
        if short["__is_long_"]:
            return reader.text(first, int(first), long["__size_"], width_of(first))
        return reader.text(first, int(short["__data_"]), short["__size_"], width_of(first))


class _StringView(LibraryType):
    """std::string_view, or one of wider characters: a text."""

    members = frozenset({"__data_", "__size_"})
    is_text = True

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = pointer_of(value["__data_"])
        return reader.text(first, int(first), value["__size_"], width_of(first))


class _Tuple(LibraryType):
    """std::tuple: a tuple of its values. Each is in a base class __tuple_leaf<N, ..>."""

    members = frozenset({"__base_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        base = value["__base_"]
        return tuple([reader.whole(item, depth + 1) for item in _leaves(base)])


def _leaves(base: Any) -> Iterator[Any]:
    """Yield the values of a std::tuple, in order.

    A value without members is a base class of its leaf, which then stands for the value.

    Args:
        base: a View of the tuple's member __base_, which has the leaves as base classes.
    """
    for part in type_of(base).bases:
        if not _LEAF.match(part.type.base_name):
            continue
        leaf = value_at(base, part.type, int(base) + part.offset)
        yield leaf["__value_"] if "__value_" in part.type.members else leaf


class _Vector(LibraryType):
    """std::vector: a tuple."""

    members = frozenset({"__begin_", "__end_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        first = pointer_of(value["__begin_"])
        element = need(type_of(first).target)
        count = (int(value["__end_"]) - int(first)) // element.size
        return reader.elements(first, element, int(first), count, depth)


class _Bits(LibraryType):
    """std::vector<bool>, which has a bit for each element: a tuple."""

    members = frozenset({"__begin_", "__size_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        word, count = pointer_of(value["__begin_"]), value["__size_"]
        bits = 8 * need(type_of(word).target).size
        if not 0 <= count < LARGEST_LIST:
            return None
        return reader.items((bool(word[n // bits] >> n % bits & 1) for n in range(count)), depth)


class _Array(LibraryType):
    """std::array: a tuple."""

    members = frozenset({"__elems_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        elements = value["__elems_"]
        if type_of(elements).element.base_name == "__empty":
            return ()
        return reader.whole(elements, depth)


class _Optional(LibraryType):
    """std::optional: its value, or EMPTY."""

    members = frozenset({"__val_", "__engaged_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        return reader.whole(value["__val_"], depth + 1) if value["__engaged_"] else EMPTY


class _Variant(LibraryType):
    """std::variant: the value of its alternative, or EMPTY.

    Storage of the alternatives is a list: __head of the union __data, __head of its __tail.
    """

    members = frozenset({"__impl_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        impl = value["__impl_"]
        index, size = impl["__index"], type_of(impl).members["__index"].type.size
        if index == (1 << 8 * size) - 1:
            return EMPTY
        left = impl["__data"]
        for _ in range(index):
            left = left["__tail"]
        return reader.whole(left["__head"]["__value"], depth + 1)


class _Tree(LibraryType):
    """std::map, std::set, and those with equal keys: a tuple of the elements in order; those of a
    map have `first` and `second`.
    """

    members = frozenset({"__tree_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        tree, item = value["__tree_"], _element(value, "_Allocator")
        count = tree["__size_"]
        if not 0 <= count < LARGEST_LIST:
            return None
        first = pointer_of(tree["__begin_node_"])
        word = machine_of(value).arch.bits // 8
        behind = _behind(3 * word + 1, item)  # three links, and a flag for the colour
        nodes = nodes_of_tree(int(first), count, _links_of(value))
        return reader.items((value_at(value, item, node + behind) for node in nodes), depth)


def _links_of(value: Any) -> Callable[[int, int], int]:
    """Return how the links of a tree's nodes are read, as library.nodes_of_tree() takes it.

    A node begins with the addresses of its left child, its right child, and its parent.

    Args:
        value: a View, from whose machine the nodes are read.
    """
    order = machine_of(value).arch.order.value
    word = machine_of(value).arch.bits // 8

    def link(node: int, which: int) -> int:
        """Return the address that a node has in its word LEFT, RIGHT or PARENT."""
        return int.from_bytes(machine_of(value).read(node + which * word, word), order)

    return link


class _Hash(LibraryType):
    """std::unordered_map, std::unordered_set, and those with equal keys: a tuple of the elements as
    they are linked; those of a map have `first` and `second`.
    """

    members = frozenset({"__table_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        table = value["__table_"]
        item = _element(value, "_Alloc")
        behind = _behind(2 * machine_of(value).arch.bits // 8, item)  # the link, and the hash
        nodes = linked_nodes(table["__first_node_"]["__next_"], "__next_", table["__size_"])
        return reader.items((value_at(value, item, int(node) + behind) for node in nodes), depth)


class _List(LibraryType):
    """std::list: a tuple."""

    members = frozenset({"__end_", "__size_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        end, item = value["__end_"], _element(value, "_Alloc")
        behind = _behind(2 * machine_of(value).arch.bits // 8, item)
        nodes = linked_nodes(end["__next_"], "__next_", value["__size_"], int(end))
        return reader.items((value_at(value, item, int(node) + behind) for node in nodes), depth)


class _ForwardList(LibraryType):
    """std::forward_list: a tuple."""

    members = frozenset({"__before_begin_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        item = _element(value, "_Alloc")
        behind = _behind(machine_of(value).arch.bits // 8, item)
        nodes = linked_nodes(value["__before_begin_"]["__next_"], "__next_", LARGEST_LIST)
        return reader.items((value_at(value, item, int(node) + behind) for node in nodes), depth)


class _Deque(LibraryType):
    """std::deque: a tuple. The elements are in blocks of one size, to which __map_ has pointers."""

    members = frozenset({"__map_", "__start_", "__size_"})

    def _read(self, reader: Reader, value: Any, depth: int) -> Any:
        blocks = pointer_of(value["__map_"]["__begin_"])
        element = need(need(type_of(blocks).target).target)
        in_block = max(_BLOCK // element.size, _LEAST_BLOCK)
        first, count = value["__start_"], value["__size_"]
        if not 0 <= count < LARGEST_LIST:
            return None
        places = range(first, first + count)
        return reader.items((blocks[n // in_block][n % in_block] for n in places), depth)


_TREE = _Tree()
_HASH = _Hash()
_OWNER = Wrapped(("__ptr_",))
#: name of a type, without scopes and template arguments -> layouts that its values may have
TYPES: Final[dict[str, Sequence[LibraryType]]] = {
    "basic_string": (_String(),),
    "basic_string_view": (_StringView(),),
    "tuple": (_Tuple(),),
    "vector": (_Vector(), _Bits()),
    "array": (_Array(),),
    "optional": (_Optional(),),
    "variant": (_Variant(),),
    "unique_ptr": (_OWNER,),
    "shared_ptr": (_OWNER,),
    "weak_ptr": (_OWNER,),
    "map": (_TREE,),
    "multimap": (_TREE,),
    "set": (_TREE,),
    "multiset": (_TREE,),
    "unordered_map": (_HASH,),
    "unordered_multimap": (_HASH,),
    "unordered_set": (_HASH,),
    "unordered_multiset": (_HASH,),
    "list": (_List(),),
    "forward_list": (_ForwardList(),),
    "deque": (_Deque(),),
    "atomic": (Wrapped(("__a_", "__a_value")),),
}
