"""Helpers that compiled code does by itself: those that a probe needs often and that are short.

Each does what its Python in `helpers` does, on the same memory: see `maps` for how maps lie in it. What is not here is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from . import support
from .maps import EXIST, NOEXIST, Map, MapType
from .maps._base import E2BIG, EEXIST, EINVAL
from .places import Kind
from .writer import Writer

COPIED: Final = 64  # bytes of a value that are copied word by word; larger ones are Python's
_ARRAYS = (MapType.ARRAY, MapType.PERCPU_ARRAY)
#: helpers that are a word of the environment: number -> the word's name
_WORDS: Final[Mapping[int, str]] = {8: "cpu", 173: "func_ip", 174: "cookie"}

#: helpers that read the guest's memory: number -> support function
_READS: Final[Mapping[int, str]] = {4: "read", 112: "read", 113: "read", 45: "read_string", 114: "read_string", 115: "read_string"}


class Inlined:
    """The helpers of a program with these maps. guest: the environment tells where the guest's memory is."""

    def __init__(self, maps: Sequence[Map], guest: bool = False) -> None:
        self._maps, self._guest = maps, guest
        self._helpers: Mapping[int, Callable[[Writer, int, Map], str | None]] = {1: _lookup, 2: _update}

    def __call__(self, writer: Writer, pc: int, number: int) -> str | None:
        if number in _WORDS:
            return writer.word((_WORDS[number], 0))
        if number in _READS:
            return _read(writer, pc, _READS[number]) if self._guest else None
        place = writer.module.places.at(pc, 1)
        if number not in self._helpers or place.kind is not Kind.MAP:
            return None
        return self._helpers[number](writer, pc, self._maps[place.offset])


def _lookup(w: Writer, pc: int, m: Map) -> str | None:
    if m.type not in _ARRAYS:
        return None
    index, inside = _index(w, pc, m)
    return w.emit(f"select i1 {inside}, i64 {_value(w, m, index)}, i64 0")


def _index(w: Writer, pc: int, m: Map) -> tuple[str, str]:
    """(the key as an i64, whether it is one of the array's)"""
    key = w.load(w.address(pc, 2), 32)
    inside = w.emit(f"icmp ult i32 {key}, {m.max_entries}")
    return w.emit(f"zext i32 {key} to i64"), inside


def _value(w: Writer, m: Map, index: str) -> str:
    """Address of an array's value."""
    if m.type is MapType.PERCPU_ARRAY and m.cpus > 1:
        index = w.emit(f"add i64 {w.emit(f'mul i64 {index}, {m.cpus}')}, {w.word(('cpu', 0))}")
    return w.emit(f"add nuw i64 {w.get(1)}, {w.emit(f'mul i64 {index}, {m.stride}')}")


def _update(w: Writer, pc: int, m: Map) -> str | None:
    if m.type not in _ARRAYS or m.value_size > COPIED:
        return None
    index, inside = _index(w, pc, m)
    flags = w.get(4)
    allowed = w.emit(f"icmp ule i64 {flags}, {EXIST}")
    fresh = w.emit(f"icmp eq i64 {flags}, {NOEXIST}")
    error = w.emit(f"select i1 {fresh}, i64 {EEXIST}, i64 0")
    error = w.emit(f"select i1 {inside}, i64 {error}, i64 {E2BIG}")
    error = w.emit(f"select i1 {allowed}, i64 {error}, i64 {EINVAL}")
    store, done = w.label(), w.label()
    w.do(f"br i1 {w.emit(f'icmp eq i64 {error}, 0')}, label %{store}, label %{done}")
    w.begin(store)
    copy(w, w.pointer(_value(w, m, index)), w.address(pc, 3), m.value_size)
    w.do(f"br label %{done}")
    w.begin(done)
    return error


def _read(w: Writer, pc: int, function: str) -> str:
    for name, text in (("find", support.FIND), ("copy", support.COPY), ("clear", support.CLEAR), ("read", support.READ)):
        w.module.need(name, text)
    if function == "read_string":
        w.module.need(function, support.READ_STRING)
    size = w.emit(f"and i64 {w.get(2)}, {0xFFFF_FFFF}")
    words = ", ".join(f"i64 {w.word((name, 0))}" for name in ("blocks", "uc", "uc_mem_read"))
    return w.emit(f"call i64 @{function}(ptr {w.address(pc, 1)}, i64 {size}, i64 {w.get(3)}, {words})")


def copy(w: Writer, to: str, source: str, size: int) -> None:
    """Emit a copy of `size` bytes that do not overlap."""
    at = 0
    for width in (8, 4, 2, 1):
        while size - at >= width:
            value = w.emit(f"load i{8 * width}, ptr {w.emit(f'getelementptr i8, ptr {source}, i64 {at}')}, align 1")
            w.do(f"store i{8 * width} {value}, ptr {w.emit(f'getelementptr i8, ptr {to}, i64 {at}')}, align 1")
            at += width
