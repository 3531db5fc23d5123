"""LLVM IR of hash tables: what maps.hash does, on the same memory. See there for how a table lies in it.

Code in a guest looks at numbers before it uses them, and goes round the index once, since the guest may have written
over the table: it finds, puts in and removes what it can, and touches nothing else.
"""

from __future__ import annotations

from string import Template
from typing import Final

from .maps.hash import Hash
from .writer import Writer

COPIED = 64  # bytes of a key or value that are copied word by word; maps with larger ones are Python's

#: (map, words of the key, three words of room) -> address of the key's entry, or 0. The room gets the slot of the index
#: that has it, or where it would be (-1: there is no such slot); the key's home; and the entry's number.
_FIND = Template("""
define internal i64 @find_$shape(i64 %map, $arguments, ptr %room) #0 {
entry:
  %m = inttoptr i64 %map to ptr
  %seedp = getelementptr i8, ptr %m, i64 24
  %h0 = load i64, ptr %seedp
$mix
  %high = lshr i64 %h$words, 32
  %home = and i64 %high, $mask
  %homep = getelementptr i8, ptr %room, i64 8
  store i64 %home, ptr %homep
  br label %look
look:
  %slot = phi i64 [%home, %entry], [%after, %other]
  store i64 %slot, ptr %room
  %at4 = shl i64 %slot, 2
  %at = add i64 %at4, 64
  %ip = getelementptr i8, ptr %m, i64 %at
  %number = load i32, ptr %ip
  %free = icmp eq i32 %number, 0
  br i1 %free, label %none, label %compare
compare:
  %n = zext i32 %number to i64
  %n1 = sub i64 %n, 1
  %inside = $inside
  br i1 %inside, label %equal, label %other
equal:
  %off0 = mul i64 %n1, $entry_size
  %off = add i64 %off0, $entries
  %e = getelementptr i8, ptr %m, i64 %off
$compare
  br i1 %same$words, label %found, label %other
other:
  %next = add i64 %slot, 1
  %after = and i64 %next, $mask
  %round = $round
  br i1 %round, label %crowded, label %look
crowded:
  store i64 -1, ptr %room
  ret i64 0
found:
  %numberp = getelementptr i8, ptr %room, i64 16
  store i64 %n1, ptr %numberp
  %address = add i64 %map, %off
  ret i64 %address
none:
  ret i64 0
}
""")
#: (map, words of the key, room as find has left it) -> address of a new entry, its values zeroed; 0: there is none left
_INSERT = Template("""
define internal i64 @insert_$shape(i64 %map, $arguments, ptr %room) #0 {
entry:
  %slot = load i64, ptr %room
  %crowded = $crowded
  br i1 %crowded, label %none, label %begin
begin:
  %m = inttoptr i64 %map to ptr
  %freep = getelementptr i8, ptr %m, i64 8
  %free = load i64, ptr %freep
  %again = icmp ne i64 %free, 0
  br i1 %again, label %used, label %fresh
used:
  %number0 = sub i64 %free, 1
  %inside = $free
  br i1 %inside, label %reuse, label %none
reuse:
  %o0 = mul i64 %number0, $entry_size
  %o = add i64 %o0, $entries
  %ep0 = getelementptr i8, ptr %m, i64 %o
  %nextfree = load i32, ptr %ep0
  %nextfree64 = zext i32 %nextfree to i64
  store i64 %nextfree64, ptr %freep
  br label %fill
fresh:
  %freshp = getelementptr i8, ptr %m, i64 16
  %number1 = load i64, ptr %freshp
  %left = icmp ult i64 %number1, $most
  br i1 %left, label %take, label %none
take:
  %fresher = add i64 %number1, 1
  store i64 %fresher, ptr %freshp
  br label %fill
fill:
  %number = phi i64 [%number0, %reuse], [%number1, %take]
  %off0 = mul i64 %number, $entry_size
  %off = add i64 %off0, $entries
  %e = getelementptr i8, ptr %m, i64 %off
  %homep = getelementptr i8, ptr %room, i64 8
  %home = load i64, ptr %homep
  %home32 = trunc i64 %home to i32
  store i32 %home32, ptr %e
  %statep = getelementptr i8, ptr %e, i64 4
  store i32 1, ptr %statep
$keys
$zeros
  %at4 = shl i64 %slot, 2
  %at = add i64 %at4, 64
  %ip = getelementptr i8, ptr %m, i64 %at
  %plus = add i64 %number, 1
  %plus32 = trunc i64 %plus to i32
  store i32 %plus32, ptr %ip
  %count = load i64, ptr %m
  %counted = add i64 %count, 1
  store i64 %counted, ptr %m
  %address = add i64 %map, %off
  ret i64 %address
none:
  ret i64 0
}
""")
#: (map, an entry's address and number, the slot of the index that has it): the entry is free, and the gap in the index
#: closed
_REMOVE = Template("""
define internal void @remove_$shape(i64 %map, i64 %address, i64 %number, i64 %slot) #0 {
entry:
  %m = inttoptr i64 %map to ptr
  %e = inttoptr i64 %address to ptr
  %freep = getelementptr i8, ptr %m, i64 8
  %free = load i64, ptr %freep
  %free32 = trunc i64 %free to i32
  store i32 %free32, ptr %e
  %statep = getelementptr i8, ptr %e, i64 4
  store i32 0, ptr %statep
  %plus = add i64 %number, 1
  store i64 %plus, ptr %freep
  %count = load i64, ptr %m
  %counted = sub i64 %count, 1
  store i64 %counted, ptr %m
  %index = getelementptr i8, ptr %m, i64 64
  br label %next
next:
  %gap = phi i64 [%slot, %entry], [%gap, %stays], [%at, %moves]
  %last = phi i64 [%slot, %entry], [%at, %stays], [%at, %moves]
  %at0 = add i64 %last, 1
  %at = and i64 %at0, $mask
  %ip = getelementptr i32, ptr %index, i64 %at
  %n32 = load i32, ptr %ip
  %n = zext i32 %n32 to i64
  %n1 = sub i64 %n, 1
  %outside = $outside
  %round = $back
  %end = or i1 %outside, %round
  br i1 %end, label %close, label %look
look:
  %off0 = mul i64 %n1, $entry_size
  %off = add i64 %off0, $entries
  %homep = getelementptr i8, ptr %m, i64 %off
  %home32 = load i32, ptr %homep
  %home = zext i32 %home32 to i64
  %d0 = sub i64 %at, %home
  %far = and i64 %d0, $mask
  %d1 = sub i64 %at, %gap
  %near = and i64 %d1, $mask
  %may = icmp uge i64 %far, %near
  br i1 %may, label %moves, label %stays
moves:
  %gp = getelementptr i32, ptr %index, i64 %gap
  store i32 %n32, ptr %gp
  br label %next
stays:
  br label %next
close:
  %zp = getelementptr i32, ptr %index, i64 %gap
  store i32 0, ptr %zp
  ret void
}
""")

#: conditions that are looked at where the guest may have written over the table, and where it could not
_DOUBTS: Final = {
    "inside": "icmp ult i64 %n1, $most", "round": "icmp eq i64 %after, %home", "crowded": "icmp eq i64 %slot, -1",
    "free": "icmp ult i64 %number0, $most", "outside": "icmp uge i64 %n1, $most", "back": "icmp eq i64 %at, %slot"}
_TRUST: Final = {**dict.fromkeys(("inside", "free"), "icmp eq i1 0, 0"), "outside": "icmp eq i32 %n32, 0",
                 **dict.fromkeys(("round", "crowded", "back"), "icmp ne i1 0, 0")}


def fits(m: object) -> bool:
    """True for maps that this is for."""
    return isinstance(m, Hash) and m.key_size <= COPIED and m.stride * m.cpus <= COPIED


class Table:
    """Emits operations on one table, whose address is in r1 and whose key is at what r2 points at."""

    def __init__(self, w: Writer, pc: int, m: Hash) -> None:
        self._w, self._m = w, m
        self._map, self._key = w.get(1), self._words(w.address(pc, 2))
        count = len(self._key)
        self._shape = f"{m.key_size}_{m.value_size}_{m.max_entries}_{m.cpus}_{m.entry_size}"
        fields = {"shape": self._shape, "words": count, "mask": m.slots - 1, "entries": m.entries,
                  "entry_size": m.entry_size,
                  "most": m.max_entries, "arguments": ", ".join(f"i64 %w{n}" for n in range(count)), "mix": _mix(count),
                  "compare": _compare(count), "keys": _keys(count), "zeros": _zeros(m.value_at, m.entry_size)}
        doubts = _DOUBTS if w.module.target.alone else _TRUST
        fields |= {name: Template(text).substitute(fields) for name, text in doubts.items()}
        for name, text in (("find", _FIND), ("insert", _INSERT), ("remove", _REMOVE)):
            w.module.need(f"{name}_{self._shape}", text.substitute(fields))
        self._room = w.room(24)

    def _words(self, pointer: str) -> list[str]:
        """The key, padded with zeros, as words in the program's byte order."""
        w, words = self._w, []
        for start in range(0, self._m.key_size, 8):
            word, at = "0", start
            for size in (8, 4, 2, 1):
                while min(self._m.key_size, start + 8) - at >= size:
                    piece = w.load(w.emit(f"getelementptr i8, ptr {pointer}, i64 {at}"), 8 * size)
                    piece = piece if size == 8 else w.emit(f"zext i{8 * size} {piece} to i64")
                    shift = 8 * (at - start if w.module.target.program_order == "little" else 8 - size - (at - start))
                    word = w.emit(f"or i64 {word}, {w.emit(f'shl i64 {piece}, {shift}')}")
                    at += size
            words.append(word)
        return words

    def find(self) -> str:
        """Address of the key's entry, or 0."""
        return self._call("find")

    def insert(self) -> str:
        """The same of a new entry, after find()."""
        return self._call("insert")

    def _call(self, function: str) -> str:
        words = ", ".join(f"i64 {word}" for word in self._key)
        return self._w.emit(f"call i64 @{function}_{self._shape}(i64 {self._map}, {words}, ptr {self._room})")

    def remove(self, entry: str) -> None:
        """Remove the entry that find() has found."""
        w, room = self._w, self._room
        slot, number = w.load(room, 64), w.load(w.emit(f"getelementptr i8, ptr {room}, i64 16"), 64)
        w.do(f"call void @remove_{self._shape}(i64 {self._map}, i64 {entry}, i64 {number}, i64 {slot})")

    def value(self, entry: str) -> str:
        """Address of an entry's value."""
        w, m = self._w, self._m
        address = w.emit(f"add i64 {entry}, {m.value_at}")
        if not m.percpu:
            return address
        cpu = w.word(("cpu", 0))
        return w.emit(f"add i64 {address}, {w.emit(f'mul i64 {cpu}, {m.stride}')}")

    def seen(self, entry: str) -> None:
        """It was looked up."""
        if self._m.lru:
            w = self._w
            w.store("3", w.pointer(w.emit(f"add i64 {entry}, 4")), 32)


def _mix(count: int) -> str:
    return "\n".join(f"  %x{n} = xor i64 %h{n}, %w{n}\n  %y{n} = mul i64 %x{n}, {0x9E3779B97F4A7C15}\n  %z{n} = lshr "
                     f"i64 %y{n}, 29\n"
                     f"  %h{n + 1} = xor i64 %y{n}, %z{n}" for n in range(count))


def _compare(count: int) -> str:
    return "\n".join(["  %same0 = icmp eq i32 0, 0", *(
        f"  %kp{n} = getelementptr i8, ptr %e, i64 {8 + 8 * n}\n  %k{n} = load i64, ptr %kp{n}\n  %eq{n} = icmp eq "
        f"i64 %k{n}, %w{n}\n"
        f"  %same{n + 1} = and i1 %same{n}, %eq{n}" for n in range(count))])


def _keys(count: int) -> str:
    return "\n".join(f"  %kp{n} = getelementptr i8, ptr %e, i64 {8 + 8 * n}\n  store i64 %w{n}, ptr %kp{n}"
                     for n in range(count))


def _zeros(start: int, end: int) -> str:
    return "\n".join(f"  %zp{at} = getelementptr i8, ptr %e, i64 {at}\n  store i64 0, ptr %zp{at}"
                     for at in range(start, end, 8))

