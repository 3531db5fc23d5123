"""LLVM IR of hash tables: what maps.hash does, on the same memory, by functions of support.c.

See maps.hash for how a table lies in memory, and kprobes/native/support.c.
"""

from __future__ import annotations

from typing import Final

from . import support
from .maps.hash import SEED, Hash
from .writer import IrWriter

COPIED: Final = 64  # bytes of a key or value, at most; maps with larger ones are Python's
_FOUND: Final = 24  # bytes of support.c's struct found, at most
#: of support.c's functions, without their `table_`: what differs from use to use
_PARAMETERS: Final = {
    "find": "i64 %map, ptr %key, ptr %found, i64 %seed",
    "insert": "i64 %map, ptr %key, ptr %found",
    "remove": "i64 %map, ptr %found",
}


def fits(m: object) -> bool:
    """Return True for a hash table whose keys and values are small enough for this code."""
    return isinstance(m, Hash) and m.key_size <= COPIED and m.stride * m.cpus <= COPIED


class KeyedTable:
    """Writes operations on one hash table, whose address is in r1 and whose key is where r2 points.

    Methods return names of values in the IR.
    """

    def __init__(self, w: IrWriter, pc: int, m: Hash) -> None:
        """Write what reads the key.

        Args:
            w: writes the function.
            pc: slot of the helper's call.
            m: the table.
        """
        self._w = w
        self._m = m
        self._map = w.get(1)
        words = self._words(w.address(pc, 2))
        self._key = w.room(8 * len(words))
        for n, word in enumerate(words):
            at = w.emit(f"getelementptr i8, ptr {self._key}, i64 {8 * n}")
            w.do(f"store i64 {word}, ptr {at}")
        self._found = w.room(_FOUND)
        self._count = len(words)

    def _specialised(self, operation: str) -> str:
        """Add a function to the module that calls support.c's with this table's shape as constants,
        unless it is there; return its name.

        Args:
            operation: the function's name without `table_`.
        """
        w, m = self._w, self._m
        result = "void" if operation == "remove" else "i64"
        word = f"i{w.module.target.bits}"
        parameters = _PARAMETERS[operation]
        shape = ", ".join(
            (
                f"i32 {self._count}",
                *(
                    f"{word} {number}"
                    for number in (m.slots - 1, m.entries, m.entry_size, m.max_entries)
                ),
            )
        )
        call = f"call {result} @table_{operation}({parameters}, {shape})"
        body = f"  %entry = {call}\n  ret i64 %entry"
        if result == "void":
            body = f"  {call}\n  ret void"
        name = f"{operation}_{m.key_size}_{m.value_size}_{m.max_entries}_{m.cpus}_{m.entry_size}"
        support.need(w.module, f"table_{operation}")
        w.module.need(name, f"define internal {result} @{name}({parameters}) #0 {{\n{body}\n}}")
        return name

    def _words(self, pointer: str) -> list[str]:
        """Write reads of the key, and return the names of its 64-bit words, zeros behind it.

        Args:
            pointer: where the key is.
        """
        w, words = self._w, []
        for start in range(0, self._m.key_size, 8):
            word, at = "0", start
            for size in (8, 4, 2, 1):
                while min(self._m.key_size, start + 8) - at >= size:
                    piece = w.load(w.emit(f"getelementptr i8, ptr {pointer}, i64 {at}"), 8 * size)
                    piece = piece if size == 8 else w.emit(f"zext i{8 * size} {piece} to i64")
                    shift = 8 * (
                        at - start
                        if w.module.target.program_order == "little"
                        else 8 - size - (at - start)
                    )
                    word = w.emit(f"or i64 {word}, {w.emit(f'shl i64 {piece}, {shift}')}")
                    at += size
            words.append(word)
        return words

    def find(self) -> str:
        """Write a search for the key; return the name of its entry's address, 0 where it has
        none.
        """
        w = self._w
        place = w.pointer(w.emit(f"add i64 {self._map}, {8 * SEED}"))
        # HAZARD: a guest may write to its tables, so there the seed is loaded at each search.
        known = "" if w.module.target.alone else ", !invariant.load !1"
        seed = w.swap(w.emit(f"load i64, ptr {place}{known}"), 64)
        arguments = f"i64 {self._map}, ptr {self._key}, ptr {self._found}, i64 {seed}"
        return w.emit(f"call i64 @{self._specialised('find')}({arguments})")

    def insert(self) -> str:
        """Write a new entry for the key; return the name of its address, 0 where there is no room.

        find() must have found none before.
        """
        arguments = f"i64 {self._map}, ptr {self._key}, ptr {self._found}"
        return self._w.emit(f"call i64 @{self._specialised('insert')}({arguments})")

    def remove(self) -> None:
        """Write the removal of the entry that find() has found."""
        arguments = f"i64 {self._map}, ptr {self._found}"
        self._w.do(f"call void @{self._specialised('remove')}({arguments})")

    def value(self, entry: str) -> str:
        """Write the address of an entry's value, in a per-CPU table for this CPU; return its name.

        Args:
            entry: name of the entry's address.
        """
        w, m = self._w, self._m
        address = w.emit(f"add nuw i64 {entry}, {m.value_at}")
        if not m.percpu:
            return address
        cpu = w.word(("cpu", 0))
        return w.emit(f"add i64 {address}, {w.emit(f'mul i64 {cpu}, {m.stride}')}")

    def seen(self, entry: str) -> None:
        """Write a mark that the entry was looked up: an LRU table does not evict it soon.

        Args:
            entry: name of the entry's address.
        """
        if self._m.lru:
            w = self._w
            w.store("3", w.pointer(w.emit(f"add i64 {entry}, 4")), 32)
