"""Functions of eBPF's that a program is linked with: loops with callbacks, and iterators.

Linux's bpf_loop() and bpf_for_each_map_elem() take a function. Which one is known where the program
is linked, so a call becomes one of a small function, made here, that loops and calls it. Verifier,
interpreter and compilers see an ordinary loop. Its rounds are counted by may_loop(), which ends it
in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import frozen

from .. import isa
from ..assembler import Assembler
from ..helpers import HELPERS
from ..isa import Instruction
from ..maps import Map, MapType

LOOP: Final = 181
FOR_EACH: Final = 164
DRAIN: Final = 209
#: helpers that take a callback -> the register with it
TAKEN_IN: Final[Mapping[int, int]] = {LOOP: 2, FOR_EACH: 2, DRAIN: 2}
#: rounds of bpf_loop(), at most
_MOST: Final = 1 << 23
#: samples that one call of bpf_user_ringbuf_drain() takes, at most
_SAMPLES: Final = 128 << 10
_E2BIG: Final = -7
_EINVAL: Final = -22
_HASHES: Final = (MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH)
_ARRAYS: Final = (MapType.ARRAY, MapType.PERCPU_ARRAY)


@frozen
class Known:
    """The value that a register holds for certain.

    Attributes:
        kind: "function" or "map".
        number: the function's first slot, or the map's number.
    """

    kind: str
    number: int


class CalledBack(Assembler):
    """An assembler of functions that call a function of the program's in a loop.

    Its loops are written so that the verifier need not walk all rounds.
    """

    def call_back(self) -> None:
        """Append the call of the callback, whose slot the linker puts in later."""
        self._put(isa.CALL | isa.JMP, src=isa.LOCAL, imm=0)

    def next_of(self, register: int, base: int, offset: int) -> None:
        """Append an atomic increment: add 1 to 32 bits in memory, and load what they were before.

        The verifier takes the number that is loaded for any number, so it need not walk each round.

        Args:
            register: register that gets the number.
            base: register with the address.
            offset: bytes that are added to it.
        """
        self.set(register, 1)
        self._put(isa.ATOMIC | isa.W | isa.STX, base, register, offset, isa.ADD | isa.FETCH)


def loop() -> CalledBack:
    """Assemble bpf_loop(r1 rounds, r2 callback, r3 context, r4 flags) as a function of eBPF's.

    The loop ends early where the callback returns anything but 0, or the run has looped too often
    (may_loop). The function returns how many rounds were made; E2BIG or EINVAL for bad
    arguments.
    """
    a = CalledBack()
    head, done, large, flags = (a.label() for _ in range(4))
    a.extend(1, 32, False)
    a.jump_if_number("!=", 4, 0, flags)
    a.jump_if_number(">", 1, _MOST, large)
    a.move(6, 1)
    a.move(7, 3)
    a.store_number(10, -8, 0, 8)
    a.place(head)
    a.call("may_loop")
    a.jump_if_number("==", 0, 0, done)
    a.load(1, 10, -8, 4)
    a.jump_if(">=", 1, 6, done)
    a.next_of(1, 10, -8)
    a.jump_if(">=", 1, 6, done)
    a.move(2, 7)
    a.call_back()
    a.jump_if_number("==", 0, 0, head)
    a.place(done)
    a.load(0, 10, -8, 4)
    a.exit()
    a.place(large)
    a.set(0, _E2BIG)
    a.exit()
    a.place(flags)
    a.set(0, _EINVAL)
    a.exit()
    return a


def for_each(number: int, m: Map) -> CalledBack | None:
    """Assemble bpf_for_each_map_elem(r1 map, r2 callback, r3 context, r4 flags) for one map.

    The loop ends before the last entry where the callback returns anything but 0, or the run has
    looped too often (may_loop). The function of eBPF's returns how many entries were visited;
    EINVAL for flags.

    Args:
        number: index of the map in the program's maps.
        m: the map.

    Returns:
        The function's instructions; None: the map is neither a hash table nor an array.
    """
    a = CalledBack()
    head, done, flags = (a.label() for _ in range(3))
    key = -16 - (m.key_size + 7 & ~7)
    a.jump_if_number("!=", 4, 0, flags)
    a.move(7, 3)
    a.store_number(10, -8, 0, 8)
    a.store_number(10, -16, 0, 8)
    a.place(head)
    a.call("may_loop")
    a.jump_if_number("==", 0, 0, done)
    a.map(1, number)
    a.move(2, 10)
    a.compute_with("+", 2, key)
    if m.type in _HASHES:
        a.load(3, 10, -16, 8)
        a.call("map_next_key")
        a.jump_if_number("==", 0, 0, done)
        a.store(10, -16, 0, 8)
    elif m.type in _ARRAYS:
        a.next_of(3, 10, -16)
        a.jump_if_number(">=", 3, m.max_entries, done)
        a.store(10, key, 3, 4)
    else:
        return None
    a.map(1, number)
    a.move(2, 10)
    a.compute_with("+", 2, key)
    a.call("map_lookup_elem")
    a.jump_if_number("==", 0, 0, head)
    a.move(3, 0)
    a.map(1, number)
    a.move(2, 10)
    a.compute_with("+", 2, key)
    a.move(4, 7)
    a.next_of(5, 10, -8)
    a.call_back()
    a.jump_if_number("==", 0, 0, head)
    a.place(done)
    a.load(0, 10, -8, 4)
    a.exit()
    a.place(flags)
    a.set(0, _EINVAL)
    a.exit()
    return a


def drain(number: int, m: Map) -> CalledBack | None:
    """Assemble bpf_user_ringbuf_drain(r1 map, r2 callback, r3 context, r4 flags) for one map.

    It ends before the ring is empty where the callback returns anything but 0, after _SAMPLES, or
    where the run has looped too often (may_loop). The function of eBPF's returns how many samples
    the callback has got; EINVAL for other flags, EBUSY within a callback.

    Args:
        number: index of the map in the program's maps.
        m: the map.

    Returns:
        The function's instructions; None: the map is no user ring buffer.
    """
    if m.type is not MapType.USER_RINGBUF:
        return None
    a = CalledBack()
    head, done, flags, left = (a.label() for _ in range(4))
    a.move(7, 3)
    a.compute_with("&", 4, ~3)  # 1 and 2 ask for wake-ups
    a.jump_if_number("!=", 4, 0, flags)
    a.map(1, number)
    a.call("user_ringbuf_begin")
    a.jump_if_number("!=", 0, 0, left)
    a.store_number(10, -8, 0, 8)
    a.place(head)
    a.call("may_loop")
    a.jump_if_number("==", 0, 0, done)
    a.load(1, 10, -8, 4)
    a.jump_if_number(">=", 1, _SAMPLES, done)
    a.map(1, number)
    a.call("user_ringbuf_next")
    a.jump_if_number("==", 0, 0, done)
    a.move(6, 0)
    a.next_of(2, 10, -8)
    a.move(1, 6)
    a.move(2, 7)
    a.call_back()
    a.move(8, 0)
    a.move(1, 6)
    a.call("user_ringbuf_done")
    a.jump_if_number("==", 8, 0, head)
    a.place(done)
    a.load(0, 10, -8, 4)
    a.exit()
    a.place(flags)
    a.set(0, _EINVAL)
    a.place(left)
    a.exit()
    return a


#: those of them that take a map -> what they do with which maps
OF_MAPS: Final[Mapping[int, str]] = {
    FOR_EACH: "it does through hashes and arrays",
    DRAIN: "it does through user ring buffers",
}


def made(number: int, of: int, m: Map | None) -> CalledBack | None:
    """Assemble the function that a call of a helper with a callback becomes.

    Args:
        number: the helper's number: LOOP, FOR_EACH or DRAIN.
        of: index of its map in the program's maps; -1: the helper takes none.
        m: the map; None: the helper takes none.

    Returns:
        The function's instructions; None: the helper does not take such a map.
    """
    if m is None:
        return loop()
    return drain(of, m) if number == DRAIN else for_each(of, m)


def _new() -> Assembler:
    """Assemble bpf_iter_num_new(r1 iterator, r2 first number, r3 the number behind the last).

    The function returns 0; EINVAL, with an empty iterator, where the first number is beyond r3.
    """
    a = Assembler()
    wrong = a.label()
    a.extend(2, 32, True)
    a.extend(3, 32, True)
    a.jump_if("s>", 2, 3, wrong)
    a.compute_with("-", 2, 1)
    a.store(1, 0, 2, 4)
    a.store(1, 4, 3, 4)
    a.set(0, 0)
    a.exit()
    a.place(wrong)
    a.store_number(1, 0, 0, 8)
    a.set(0, _EINVAL)
    a.exit()
    return a


def _next() -> Assembler:
    """Assemble bpf_iter_num_next(r1 iterator).

    The function returns the address of the next number, which is the iterator's first word; or
    NULL behind the last, or where the run has looped too often (may_loop).
    """
    a = CalledBack()
    head = a.label()
    done = a.label()
    a.move(6, 1)
    a.set(0, 0)
    # two ways lead there: where they meet, the verifier looks for circles
    a.jump_if_number("==", 0, 0, head)
    a.place(head)
    a.call("may_loop")
    a.jump_if_number("==", 0, 0, done)
    a.next_of(2, 6, 0)
    a.extend(2, 32, True)
    a.compute_with("+", 2, 1)
    a.load(3, 6, 4, 4, True)
    a.jump_if("s>=", 2, 3, done)
    a.move(0, 6)
    a.exit()
    a.place(done)
    a.set(0, 0)
    a.exit()
    return a


def _destroy() -> Assembler:
    """Assemble bpf_iter_num_destroy(r1 iterator), which does nothing."""
    a = Assembler()
    a.set(0, 0)
    a.exit()
    return a


def _marker_argument() -> Assembler:
    """Assemble bpf_usdt_arg(r1 context, r2 argument's number, r3 address that it is written to).

    The function calls the helper usdt_argument for 8 bytes, and returns what that returns.
    """
    a = Assembler()
    a.set(4, 8)
    a.call("usdt_argument")
    a.exit()
    return a


def _marker_cookie() -> Assembler:
    """Assemble bpf_usdt_cookie(r1 context), which returns what get_attach_cookie returns."""
    a = Assembler()
    a.call("get_attach_cookie")
    a.exit()
    return a


#: functions of libbpf's that an object brings, and that read what libbpf tells it of a tracepoint's
#: arguments
REPLACED: Final[Mapping[str, Callable[[], Assembler]]] = {
    "bpf_usdt_arg": _marker_argument,
    "bpf_usdt_cookie": _marker_cookie,
}
#: the map in which it tells it
SPECIFIED: Final = "__bpf_usdt_specs"
#: kernel functions that are functions of eBPF's here
FUNCTIONS: Final[Mapping[str, Callable[[], Assembler]]] = {
    "bpf_iter_num_new": _new,
    "bpf_iter_num_next": _next,
    "bpf_iter_num_destroy": _destroy,
}


def registers_at(
    code: Sequence[Instruction], start: int, end: int, entry: Mapping[int, Known]
) -> Mapping[int, Mapping[int, Known]]:
    """Find what registers hold for certain, before each instruction of a function.

    That is the address of a function or map: LDDW loads it, moves copy it. Calls leave r6 to r10.

    Args:
        code: the program's instructions.
        start: first slot of the function.
        end: slot behind its last.
        entry: number of a register -> what it holds where the function is called.

    Returns:
        Slot -> number of a register -> what it holds on every path that leads there; slots that no
        path reaches are left out.
    """
    found: dict[int, dict[int, Known]] = {start: dict(entry)}
    todo = [start]
    while todo:
        pc = todo.pop()
        i = code[pc]
        state = dict(found[pc])
        if i.wide and i.src in (isa.CODE, isa.MAP):
            target = i.target(pc) if i.src == isa.CODE else i.imm
            state[i.dst] = Known("function" if i.src == isa.CODE else "map", target)
        elif (
            i.cls == isa.ALU64
            and i.op == isa.MOV
            and i.by_register
            and not i.offset
            and i.src in state
        ):
            state[i.dst] = state[i.src]
        elif i.cls == isa.JMP and i.op == isa.CALL:
            state = {register: known for register, known in state.items() if register > 5}
        elif i.cls in (isa.ALU, isa.ALU64, isa.LD, isa.LDX):
            state.pop(i.dst, None)
        elif i.cls == isa.STX and i.mode == isa.ATOMIC:
            state.pop(i.src, None)
            state.pop(0, None)
        following = [i.target(pc)] if i.is_jump and not i.is_exit else []
        if not i.is_exit and (not i.is_jump or i.is_conditional):
            following.append(pc + (2 if i.wide else 1))
        for to in following:
            if not start <= to < end:
                continue
            if to not in found:
                found[to] = dict(state)
                todo.append(to)
                continue
            both = {
                register: known
                for register, known in found[to].items()
                if state.get(register) == known
            }
            if both != found[to]:
                found[to] = both
                todo.append(to)
    return found


def name_of(number: int) -> str:
    """Return the name of a helper as programs write it: `bpf_loop`.

    Args:
        number: Linux's number of the helper.
    """
    names = {
        LOOP: "bpf_loop",
        FOR_EACH: "bpf_for_each_map_elem",
        DRAIN: "bpf_user_ringbuf_drain",
    }
    return names.get(number) or f"bpf_{HELPERS[number].name}"
