"""Helpers that compiled code does by itself: those that a probe needs often and that are short.

Each does what its Python in `meanings` does, on the same memory: see `maps` for how maps lie in it.
Other helpers are called. In all functions `w` writes the IR, and `pc` is the slot of the call;
values are names of the IR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..clocknames import HOST_CLOCK, INSTRUCTION_CLOCK
from ..errors import Unsupported
from . import keyed, support
from .emit import call_helper
from .helpers import HELPERS
from .keyed import COPIED, KeyedTable
from .maps import EXIST, NOEXIST, Map, MapType, Ring
from .maps._base import E2BIG, EAGAIN, EEXIST, EINVAL, ENOENT
from .maps.hash import Hash
from .meanings import CALL_SLOT, EITHER, MAY_LOOP, NEXT_KEY, ROUNDS, WAKE
from .places import PlaceKind
from .writer import IrWriter, Slot

if TYPE_CHECKING:
    from .verifier import HelperCall

_ARRAYS: Final = (MapType.ARRAY, MapType.PERCPU_ARRAY)
_U32: Final = (1 << 32) - 1
#: helpers that are a word of the environment: number -> the word's name
_WORDS: Final[Mapping[int, str]] = {8: "cpu", 173: "func_ip", 174: "cookie"}
#: helpers that read the guest's memory: number -> support function
_READS: Final[Mapping[int, str]] = {
    4: "read",
    112: "read",
    113: "read",
    45: "read_string",
    114: "read_string",
    115: "read_string",
}
_CLOCKS: Final = (5, 125)
RANDOM: Final = 7  #: bpf_get_prandom_u32
#: word of a detour's environment: what bpf_get_current_pid_tgid is; 0: the host is asked
TASK: Final[Slot] = ("task", 0)
FOLLOWED_CALL: Final = 24  # bytes of struct call in kprobes/native/words.h
#: of records: number -> the bit that the record's length gets
_COMMITS: Final[Mapping[int, int]] = {132: 0, 133: 1 << 30}


class Inlined:
    """Emits IR for helpers in place of calls, for one program (a writer.Inline)."""

    def __init__(
        self,
        maps: Sequence[Map],
        guest: bool = False,
        clock: str = "",
        calls: Mapping[int, HelperCall] | None = None,
    ) -> None:
        """Prepare.

        Args:
            maps: the program's maps, by the index that LDDW has.
            guest: True where the code can read guest memory by itself: the environment has the
                table of that memory.
            clock: what ktime_get_ns reads: HOST_CLOCK: the struct clock whose address is in the
                environment (hostclock); INSTRUCTION_CLOCK: the count of instructions whose address
                is there; "": Python is called.
            calls: slot of a helper's call -> what the verifier has found out about it; None: not
                known. With it, each call of a helper with a format has an own function.
        """
        self._maps = maps
        self._guest = guest
        self._clock = clock
        self._calls = calls

    def __call__(self, w: IrWriter, pc: int, number: int, /) -> str | None:
        """Emit IR for a helper's code.

        Args:
            w: writer of the IR of the current function.
            pc: slot of the call.
            number: number of the helper.

        Returns:
            IR name of the result; None, with nothing written: the caller has to emit a call of the
            helper.
        """
        if number in _WORDS:
            return w.word((_WORDS[number], 0))
        if number in _READS and self._guest:
            return _read(w, pc, _READS[number])
        if number in _CLOCKS and self._clock == INSTRUCTION_CLOCK:
            return w.emit(f"load i64, ptr {w.pointer(w.word((INSTRUCTION_CLOCK, 0)))}")
        if number in _CLOCKS and self._clock == HOST_CLOCK:
            support.need(w.module, "clock")
            return w.emit(f"call i64 @clock(i64 {w.word(('clock', 0))})")
        if number in _COMMITS:
            support.need(w.module, "commit")
            w.append(f"call void @commit(i64 {w.get(1)}, i32 {_COMMITS[number]})")
            return "0"
        if number == MAY_LOOP:
            return _may_loop(w)
        if number == CALL_SLOT and self._guest:
            return _call_slot(w)
        if w.module.target.asks and number in _IN_DETOURS:
            return _IN_DETOURS[number](w, pc)
        if w.module.target.alone and number == RANDOM:
            return _random(w)
        if HELPERS[number].formats and self._calls is not None and pc in self._calls:
            return _format(w, pc, self._calls[pc])
        place = w.module.places.at(pc, 1)
        if number not in _ON_MAPS or place.kind is not PlaceKind.MAP:
            return None
        return _ON_MAPS[number](w, pc, self._maps[place.offset])


def _may_loop(w: IrWriter) -> str:
    """Emit IR for the helper may_loop(), which counts rounds of all loops of one function together.

    Args:
        w: writer of the IR of the current function.

    Returns:
        IR name of its result, an i64: 1 for the first ROUNDS rounds, then 0.
    """
    counter = w.counter(ROUNDS)
    left = w.emit(f"load i64, ptr {counter}")
    w.append(f"store i64 {w.emit(f'sub i64 {left}, 1')}, ptr {counter}")
    return w.emit(f"zext i1 {w.emit(f'icmp sgt i64 {left}, 0')} to i64")


def _wake(w: IrWriter, pc: int) -> str:
    """Write a call of wake() in guest code: the guest stops, and the host calls Python.

    Returns:
        The result, 0.
    """
    support.need(w.module, "wake")
    w.append(f"call void @wake(i64 {w.word(('uc_mem_read', 0))}, i64 {w.word(('waker', 0))})")
    return "0"


def _task(w: IrWriter, pc: int) -> str:
    """Write bpf_get_current_pid_tgid() in guest code, and return the name of its result.

    A word of the environment has it while the process has one thread; else the host is asked.
    """
    support.need(w.module, "task")
    reader = w.word(("uc_mem_read", 0))
    return w.emit(
        f"call i64 @task(i64 {w.word(TASK)}, i64 {reader}, i64 {w.word(('task_source', 0))})"
    )


def _guest_clock(w: IrWriter, pc: int) -> str:
    """Write bpf_ktime_get_ns() in guest code, and return the name of its result.

    A function of the guest's own is called where a word of the environment has one; else the host
    is asked.
    """
    support.need(w.module, "clock")
    gettime = w.word(("gettime", 0))
    reader = w.word(("uc_mem_read", 0))
    return w.emit(
        f"call i64 @clock(i64 {gettime}, i64 {reader}, i64 {w.word(('clock_source', 0))})"
    )


def _comm(w: IrWriter, pc: int) -> str:
    """Write bpf_get_current_comm() in guest code: two words of the environment have the name.

    Returns:
        The result, 0.
    """
    support.need(w.module, "comm")
    size = w.emit(f"and i64 {w.get(2)}, {_U32}")
    first = w.word(("comm", 0))
    second = w.word(("comm", 1))
    w.append(f"call void @comm(ptr {w.address(pc, 1)}, i64 {size}, i64 {first}, i64 {second})")
    return "0"


def _random(w: IrWriter) -> str:
    """Write bpf_get_prandom_u32() in guest code, and return the name of its result.

    A word of the environment is the generator's state.
    """
    support.need(w.module, "random")
    slot = w.module.slot(("random", 0))
    return w.emit(f"call i64 @random(ptr {w.emit(f'getelementptr i8, ptr %env, i64 {slot}')})")


def _call_slot(w: IrWriter) -> str:
    """Emit IR for the helper call_slot(): how many calls the machine is following at the moment.

    The IR computes it from the end of the machine's stack of followed calls.

    Args:
        w: writer of the IR of the current function.

    Returns:
        IR name of that number, an i64.
    """
    top = w.emit(f"load i64, ptr {w.pointer(w.word(('followed_top', 0)))}")
    bytes_used = w.emit(f"sub i64 {top}, {w.word(('followed_base', 0))}")
    return w.emit(f"udiv exact i64 {bytes_used}, {FOLLOWED_CALL}")


def _format(w: IrWriter, pc: int, call: HelperCall) -> str:
    """Emit IR for a call of a helper that has a format, such as bpf_trace_printk().

    The IR calls a function in the environment (its word ("format", pc)), which is made for this
    call alone. That function knows from `call.texts` which arguments are addresses in the
    program's own memory, so that texts there can be formatted.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call in the program.
        call: what the verifier knows of the call.

    Returns:
        The IR name of the result.

    Raises:
        Unsupported: an argument is an address in the program's own memory on one path, and a
            number on another.
    """
    mixed = min((n for n, most in call.texts.items() if most == EITHER), default=None)
    if mixed is not None:
        raise Unsupported(
            f"argument {mixed + 1} of bpf_{call.helper.name}()'s format is an address of the "
            "program's own on one path, and a number on another",
            hint="call it once for each of them; the interpreter tells them by their values",
        )
    return call_helper(w, pc, "format")


# --- maps


def _lookup(w: IrWriter, pc: int, m: Map) -> str | None:
    """Write bpf_map_lookup_elem() on an array or a hash table, and return the name of its result.

    In an LRU table the entry is marked as looked up.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the map.

    Returns:
        None, with nothing written: the map is of another type, or a table whose keys keyed.fits()
        refuses.
    """
    if m.type in _ARRAYS:
        index, inside = _index(w, pc, m)
        return w.emit(f"select i1 {inside}, i64 {_value(w, m, index)}, i64 0")
    if not isinstance(m, Hash) or not keyed.fits(m):
        return None
    table = KeyedTable(w, pc, m)
    out = Result(w)
    entry = table.find()
    with_entry = out.unless(w.emit(f"icmp eq i64 {entry}, 0"), 0)
    w.start_block(with_entry)
    table.seen(entry)
    return out.end(table.value(entry))


def _update(w: IrWriter, pc: int, m: Map) -> str | None:
    """Write bpf_map_update_elem() on an array or a hash table, and return the name of its result.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the map.

    Returns:
        None, with nothing written: the map is of another type, an array with values of more than
        COPIED bytes, or a table whose keys keyed.fits() refuses.
    """
    if m.type in _ARRAYS and m.value_size <= COPIED:
        return _update_array(w, pc, m)
    return _update_hash(w, pc, m) if isinstance(m, Hash) and keyed.fits(m) else None


def _delete(w: IrWriter, pc: int, m: Map) -> str | None:
    """Emit bpf_map_delete_elem() on a hash table.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call in the program.
        m: the map.

    Returns:
        The IR name of the result, 0 or ENOENT; None, with nothing emitted: the map is no hash
        table, or one whose keys keyed.fits() refuses.
    """
    if not isinstance(m, Hash) or not keyed.fits(m):
        return None
    table = KeyedTable(w, pc, m)
    out = Result(w)
    entry = table.find()
    w.start_block(out.unless(w.emit(f"icmp eq i64 {entry}, 0"), ENOENT))
    table.remove()
    return out.end("0")


def _index(w: IrWriter, pc: int, m: Map) -> tuple[str, str]:
    """Emit IR that reads an array's index from where r2 points, and compares it with the length.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the array.

    Returns:
        (IR name of the index, an i64; IR name of an i1: true where the array has that index).
    """
    key = w.load(w.address(pc, 2), 32)
    inside = w.emit(f"icmp ult i32 {key}, {m.max_entries}")
    return w.emit(f"zext i32 {key} to i64"), inside


def _value(w: IrWriter, m: Map, index: str) -> str:
    """Emit IR that computes the address of an array's value; return its name, an i64.

    Args:
        w: writer of the IR of the current function.
        m: the array, whose address is in r1.
        index: name of the index, an i64.
    """
    if m.type is MapType.PERCPU_ARRAY and m.cpus > 1:
        cpu = w.word(("cpu", 0))
        index = w.emit(f"add i64 {w.emit(f'mul i64 {index}, {m.cpus}')}, {cpu}")
    return w.emit(f"add nuw i64 {w.get(1)}, {w.emit(f'mul i64 {index}, {m.stride}')}")


def _update_array(w: IrWriter, pc: int, m: Map) -> str:
    """Write bpf_map_update_elem() on an array, and return the name of its result.

    The result is 0; EINVAL: wrong flags; E2BIG: there is no such index; EEXIST: with NOEXIST.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the array.
    """
    out = Result(w)
    flags = w.get(4)
    index, inside = _index(w, pc, m)
    w.start_block(out.unless(w.emit(f"icmp ugt i64 {flags}, {EXIST}"), EINVAL))
    w.start_block(out.unless(w.emit(f"xor i1 {inside}, true"), E2BIG))
    w.start_block(out.unless(w.emit(f"icmp eq i64 {flags}, {NOEXIST}"), EEXIST))
    copy(w, w.pointer(_value(w, m, index)), w.address(pc, 3), m.value_size)
    return out.end("0")


def _update_hash(w: IrWriter, pc: int, m: Hash) -> str:
    """Write bpf_map_update_elem() on a hash table, and return the name of its result.

    The result is 0; EINVAL: wrong flags; EEXIST: with NOEXIST, where the key exists; ENOENT: with
    EXIST, where it does not; E2BIG: the table is full. For a full LRU table Python's helper is
    called, which evicts an entry.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the table.
    """
    out = Result(w)
    flags = w.get(4)
    found = w.allocate(8)
    w.start_block(out.unless(w.emit(f"icmp ugt i64 {flags}, {EXIST}"), EINVAL))
    table = KeyedTable(w, pc, m)
    entry = table.find()
    w.append(f"store i64 {entry}, ptr {found}")
    there, new, full, store = (w.label() for _ in range(4))
    w.append(f"br i1 {w.emit(f'icmp eq i64 {entry}, 0')}, label %{new}, label %{there}")
    w.start_block(there)
    out.unless(w.emit(f"icmp eq i64 {flags}, {NOEXIST}"), EEXIST, store)
    w.start_block(new)
    w.start_block(out.unless(w.emit(f"icmp eq i64 {flags}, {EXIST}"), ENOENT))
    made = table.insert()
    w.append(f"store i64 {made}, ptr {found}")
    w.append(f"br i1 {w.emit(f'icmp eq i64 {made}, 0')}, label %{full}, label %{store}")
    w.start_block(full)
    out.leave(call_helper(w, 2) if m.lru else str(E2BIG))  # which evicts an entry
    w.start_block(store)
    copy(
        w, w.pointer(table.value(w.emit(f"load i64, ptr {found}"))), w.address(pc, 3), m.value_size
    )
    return out.end("0")


class Result:
    """Emits the result of a helper that several paths of the IR set; they meet at end()."""

    def __init__(self, w: IrWriter) -> None:
        """Emit room on the function's stack for the result, and make the label where paths meet.

        Args:
            w: writer of the IR of the current function.
        """
        self._w = w
        self._room = w.allocate(8)
        self._done = w.label()

    def unless(self, condition: str, value: int, onward: str = "") -> str:
        """Emit a branch that ends this path with a result if a condition is true.

        Args:
            condition: IR name of the condition, an i1.
            value: the helper's result then, a constant.
            onward: label where the code goes on if the condition is false; "": a new label.

        Returns:
            That label; the caller has to begin a block there.
        """
        onward = onward or self._w.label()
        leave = self._w.label()
        self._w.append(f"br i1 {condition}, label %{leave}, label %{onward}")
        self._w.start_block(leave)
        self.leave(str(value))
        return onward

    def leave(self, value: str) -> None:
        """Emit IR for a store of the result, and a jump to where the paths meet.

        Args:
            value: IR name of the result on this path, or a constant as text.
        """
        self._w.append(f"store i64 {value}, ptr {self._room}")
        self._w.append(f"br label %{self._done}")

    def end(self, value: str) -> str:
        """End the last path with a result, and begin the block where all paths meet.

        Args:
            value: IR name of the result on the last path, or a constant as text.

        Returns:
            IR name of the result of whichever path is taken, an i64.
        """
        self.leave(value)
        self._w.start_block(self._done)
        return self._w.emit(f"load i64, ptr {self._room}")


# --- records


def _reserve(w: IrWriter, pc: int, m: Map) -> str | None:
    """Write bpf_ringbuf_reserve(), and return the name of its result: 0 where there is no room, or
    flags are given.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the map.

    Returns:
        None, with nothing written: the map is no ring.
    """
    if not isinstance(m, Ring):
        return None
    out = Result(w)
    w.start_block(out.unless(w.emit(f"icmp ne i64 {w.get(3)}, 0"), 0))
    return out.end(_reserved(w, m, w.get(2)))


def _reserved(w: IrWriter, m: Ring, size: str) -> str:
    """Emit IR for the reservation of a record in a ring, whose address is in r1.

    Args:
        w: writer of the IR of the current function.
        m: the ring.
        size: IR name of the number of bytes of the record's data, an i64.

    Returns:
        IR name of the address of the record's data; that is 0 where the ring has no room.
    """
    support.need(w.module, "reserve")
    name = f"reserve_{m.size}_{int(m.overwrites)}"
    w.module.need(
        name,
        f"define internal i64 @{name}(i64 %map, i64 %size, i64 %cpu) #0 {{\n"
        f"  %data = call i64 @reserve(i64 %map, i64 %size, i64 %cpu, i64 {m.size}, "
        f"i32 {int(m.overwrites)})\n  ret i64 %data\n}}",
    )
    cpu = w.word(("cpu", 0))
    return w.emit(f"call i64 @{name}(i64 {w.get(1)}, i64 {size}, i64 {cpu})")


def _output(w: IrWriter, pc: int, m: Map) -> str | None:
    """Write bpf_ringbuf_output(), and return the name of its result.

    The result is 0; EINVAL: wrong flags; EAGAIN: the ring has no room.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the map.

    Returns:
        None, with nothing written: the map is no ring.
    """
    if not isinstance(m, Ring):
        return None
    support.need(w.module, "copy")
    support.need(w.module, "commit")
    out = Result(w)
    size = w.get(3)
    w.start_block(out.unless(w.emit(f"icmp ugt i64 {w.get(4)}, 3"), EINVAL))
    record = _reserved(w, m, size)
    w.start_block(out.unless(w.emit(f"icmp eq i64 {record}, 0"), EAGAIN))
    w.append(f"call void @copy(ptr {w.pointer(record)}, ptr {w.address(pc, 2)}, i64 {size})")
    w.append(f"call void @commit(i64 {record}, i32 0)")
    return out.end("0")


def _next_key(w: IrWriter, pc: int, m: Map) -> str | None:
    """Write map_next_key() on a hash table in guest code, and return the name of its result.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        m: the map.

    Returns:
        None, with nothing written: the map is no hash table, or the code is the host's; the caller
        emits a call of the helper.
    """
    if not isinstance(m, Hash) or not w.module.target.alone:
        return None
    support.need(w.module, "table_next")
    word = f"i{w.module.target.bits}"
    return w.emit(
        f"call i64 @table_next(i64 {w.get(1)}, ptr {w.address(pc, 2)}, i32 {w.get(3, 32)}, "
        f"i32 {m.key_size}, {word} {m.entries}, {word} {m.entry_size}, i32 {m.max_entries})"
    )


_ON_MAPS: Final[Mapping[int, Callable[[IrWriter, int, Map], str | None]]] = {
    1: _lookup,
    2: _update,
    3: _delete,
    130: _output,
    131: _reserve,
    NEXT_KEY: _next_key,
}
#: helpers that need what only a detour's environment has
_IN_DETOURS: Final[Mapping[int, Callable[[IrWriter, int], str]]] = {
    5: _guest_clock,
    14: _task,
    16: _comm,
    125: _guest_clock,
    WAKE: _wake,
}


# --- memory


def _read(w: IrWriter, pc: int, function: str) -> str:
    """Emit IR for a helper that copies guest memory to program memory; return its result's name.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the call.
        function: "read" or "read_string", of support.c.
    """
    support.need(w.module, function)
    size = w.emit(f"and i64 {w.get(2)}, {_U32}")
    return w.emit(
        f"call i64 @{function}(ptr {w.address(pc, 1)}, i64 {size}, i64 {w.get(3)}, "
        f"{support.memory(w)})"
    )


def copy(w: IrWriter, to: str, source: str, size: int) -> None:
    """Emit IR for a copy of a known number of bytes, in pieces of up to 8 bytes.

    More than COPIED bytes are copied by a loop.

    Args:
        w: writer of the IR of the current function.
        to: IR name of the pointer that they are written to.
        source: IR name of the pointer that they are read from; both must not overlap.
        size: how many bytes.
    """
    if size > COPIED:
        support.need(w.module, "copy")
        w.append(f"call void @copy(ptr {to}, ptr {source}, i64 {size})")
        return
    at = 0
    for width in (8, 4, 2, 1):
        while size - at >= width:
            value = w.emit(
                f"load i{8 * width}, ptr {w.emit(f'getelementptr i8, ptr {source}, i64 {at}')}, "
                "align 1"
            )
            w.append(
                f"store i{8 * width} {value}, ptr "
                f"{w.emit(f'getelementptr i8, ptr {to}, i64 {at}')}, align 1"
            )
            at += width
