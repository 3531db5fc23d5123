"""LLVM IR of hash tables: what maps.hash does, on the same memory, by functions of support.c.

See maps.hash for how a table lies in memory, and kprobes/native/support.c.
"""

from __future__ import annotations

from typing import Final

from . import support
from .maps.hash import SEED, Hash
from .writer import IrWriter

COPIED: Final = 64  # bytes of a key or value that is copied without a loop, at most
#: bytes of a key at most, which is copied to the stack; maps with larger ones are Python's
LONGEST: Final = 1024
_FOUND: Final = 24  # bytes of support.c's struct found, at most
#: of support.c's functions, without their `table_`: what differs from use to use
_PARAMETERS: Final = {
    "find": "i64 %map, ptr %key, ptr %found, i64 %seed",
    "insert": "i64 %map, ptr %key, ptr %found",
    "remove": "i64 %map, ptr %found",
}


def fits(m: object) -> bool:
    """Return True for a hash table whose keys this code can read.

    Such are keys of at most COPIED bytes, and those of whole 8-byte words, up to LONGEST bytes.

    Args:
        m: the map.
    """
    if not isinstance(m, Hash):
        return False
    return m.key_size <= COPIED or (m.key_size % 8 == 0 and m.key_size <= LONGEST)


class KeyedTable:
    """Emits IR that works on a hash table, whose address is in r1, and on the key at r2.

    Methods return names of values in the IR.
    """

    def __init__(self, w: IrWriter, pc: int, m: Hash) -> None:
        """Emit IR that reads the key into the function's stack, for the operations that follow.

        Args:
            w: writer of the IR of the current function.
            pc: slot of the helper's call.
            m: the table, whose shape becomes constants in the IR.
        """
        self._w = w
        self._m = m
        self._map = w.get(1)
        self._count = -(-m.key_size // 8)
        self._key = w.allocate(8 * self._count)
        self._found = w.allocate(_FOUND)
        pointer = w.address(pc, 2)
        if m.key_size > COPIED:
            support.need(w.module, "table_key")
            w.append(f"call void @table_key(ptr {self._key}, ptr {pointer}, i64 {self._count})")
            return
        for n, word in enumerate(self._words(pointer)):
            at = w.emit(f"getelementptr i8, ptr {self._key}, i64 {8 * n}")
            w.append(f"store i64 {word}, ptr {at}")

    def _specialised(self, operation: str) -> str:
        """Return the name of an IR function that does an operation on tables of this shape.

        It calls support.c's function with the shape as constants; it is added to the module where
        the module does not have it yet.

        Args:
            operation: "find", "insert" or "remove".
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
        """Emit IR that reads the key; return the names of its 64-bit words, padded with zeros.

        Args:
            pointer: IR name of the pointer to the key.
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
        """Emit IR that searches the table for the key; return the name of its entry's address.

        That is an i64; 0 where the table does not have the key.
        """
        w = self._w
        place = w.pointer(w.emit(f"add i64 {self._map}, {8 * SEED}"))
        # HAZARD: a guest may write to its tables, so there the seed is loaded at each search.
        known = "" if w.module.target.alone else ", !invariant.load !1"
        seed = w.swap(w.emit(f"load i64, ptr {place}{known}"), 64)
        arguments = f"i64 {self._map}, ptr {self._key}, ptr {self._found}, i64 {seed}"
        return w.emit(f"call i64 @{self._specialised('find')}({arguments})")

    def insert(self) -> str:
        """Emit IR that adds an entry for the key; return the name of its address, an i64.

        The address is 0 where the table has no room. The IR of find() must stand before, and must
        have found no entry when this IR runs.
        """
        arguments = f"i64 {self._map}, ptr {self._key}, ptr {self._found}"
        return self._w.emit(f"call i64 @{self._specialised('insert')}({arguments})")

    def remove(self) -> None:
        """Emit IR that removes the entry that find()'s IR has found."""
        arguments = f"i64 {self._map}, ptr {self._found}"
        self._w.append(f"call void @{self._specialised('remove')}({arguments})")

    def value(self, entry: str) -> str:
        """Emit IR that computes the address of an entry's value; return its name, an i64.

        In a per-CPU table it is the value of the CPU on which the program runs.

        Args:
            entry: IR name of the entry's address, an i64.
        """
        w, m = self._w, self._m
        address = w.emit(f"add nuw i64 {entry}, {m.value_at}")
        if not m.percpu:
            return address
        cpu = w.word(("cpu", 0))
        return w.emit(f"add i64 {address}, {w.emit(f'mul i64 {cpu}, {m.stride}')}")

    def seen(self, entry: str) -> None:
        """Emit IR that marks an entry as looked up, so that an LRU table does not evict it soon.

        Emits nothing for other tables.

        Args:
            entry: IR name of the entry's address, an i64.
        """
        if self._m.lru:
            w = self._w
            w.store("3", w.pointer(w.emit(f"add i64 {entry}, 4")), 32)
