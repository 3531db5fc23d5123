"""Meanings of helpers: for each a function of a ProgramRun and the registers r1 to r5.

Parameters are 64-bit numbers; unless said otherwise they are addresses in the program's memory
(`map_` is a map's address), and sizes are in bytes. The result is r0: of most 0, or a negative
errno.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import KprobeError, ProgramError
from .call import ProgramRun, RunPlace
from .maps import ENOENT, SESSION, Bloom, Hash, Programs, Ring, StackTraces, UserRing
from .printf import STRING, Own, expand

E2BIG: Final = -7
EAGAIN: Final = -11
EFAULT: Final = -14
EBUSY: Final = -16
EINVAL: Final = -22
ENOSPC: Final = -28
ERANGE: Final = -34
EOPNOTSUPP: Final = -95
_NUMBER: Final = re.compile(r"\s*(-?)(0[xX][0-9a-fA-F]+|[0-9a-fA-F]+)")
#: bpf_tail_call, and how often a run may go on with another program (Linux's number)
TAIL_CALL: Final = 12
TAILS: Final = 33
#: the longest line of trace_printk, in bytes
LINE: Final = 1024
#: argument of a format -> how many bytes may be looked at where it points: HelperCall.texts
Texts = Mapping[int, int]
#: an address of the program's own on one path and a number on another: its value tells
EITHER: Final = -1
#: nothing was written to it, or it is no memory: it is shown as an address without a text
UNSET: Final = -2
#: the most arguments of trace_vprintk
ARGUMENTS: Final = 12
#: helpers that Linux does not have, for programs that are made here
MAY_LOOP: Final = 0x4B50_0001
NEXT_KEY: Final = 0x4B50_0002
CALL_SLOT: Final = 0x4B50_0003
#: calls that a machine follows by itself at a time, at most: what call_slot() says is not above
SLOTS: Final = 1024
USDT_ARGUMENT: Final = 0x4B50_0004
SESSION_COOKIE: Final = 0x4B50_0005
SESSION_IS_RETURN: Final = 0x4B50_0006
GUEST_IS_BIG: Final = 0x4B50_0007
USER_RING_BEGIN: Final = 0x4B50_0008
USER_RING_NEXT: Final = 0x4B50_0009
USER_RING_DONE: Final = 0x4B50_000A
#: a kernel's functions that are helpers here
DYNPTR_SIZE: Final = 0x4B50_000B
DYNPTR_IS_NULL: Final = 0x4B50_000C
DYNPTR_IS_RDONLY: Final = 0x4B50_000D
DYNPTR_ADJUST: Final = 0x4B50_000E
WAKE: Final = 0x4B50_000F
DYNPTR_CLONE: Final = 0x4B50_0010
DYNPTR_SLICE: Final = 0x4B50_0011
DYNPTR_SLICE_RDWR: Final = 0x4B50_0012
#: how often may_loop() says yes in one run
ROUNDS: Final = 1 << 23
_U32: Final = (1 << 32) - 1
_U64: Final = (1 << 64) - 1


# ---- maps


def lookup(call: ProgramRun, map_: int, key: int, *_: Any) -> int:
    """Return the address of a key's value, for this CPU in a per-CPU map (bpf_map_lookup_elem).

    Args:
        call: the run.
        map_: address of the map.
        key: address of the key.

    Returns:
        0: there is no such key.
    """
    m = call.maps[map_]
    return m.lookup_elem(call.read(key, m.key_size), call.place.cpu)


def update(call: ProgramRun, map_: int, key: int, value: int, flags: int, *_: Any) -> int:
    """Set the value of a key, for this CPU in a per-CPU map (bpf_map_update_elem).

    Args:
        call: the run.
        map_: address of the map.
        key: address of the key.
        value: address of the value.
        flags: ANY, NOEXIST or EXIST.

    Returns:
        0, or the negative errno that the map's update_elem() gives.
    """
    m = call.maps[map_]
    return m.update_elem(
        call.read(key, m.key_size), call.read(value, m.value_size), flags, call.place.cpu
    )


def delete(call: ProgramRun, map_: int, key: int, *_: Any) -> int:
    """Delete a key (bpf_map_delete_elem).

    Args:
        call: the run.
        map_: address of the map.
        key: address of the key.
    """
    m = call.maps[map_]
    return m.delete_elem(call.read(key, m.key_size))


def push(call: ProgramRun, map_: int, value: int, flags: int, *_: Any) -> int:
    """Add a value to a queue, a stack or a bloom filter (bpf_map_push_elem).

    Args:
        call: the run.
        map_: address of the map.
        value: address of the value.
        flags: ANY; EXIST: a full queue drops its oldest value.
    """
    m = call.maps[map_]
    return m.push_elem(call.read(value, m.value_size), flags)


def pop(call: ProgramRun, map_: int, value: int, *_: Any) -> int:
    """Take the next value out of a queue or stack, and write it to memory (bpf_map_pop_elem).

    Args:
        call: the run.
        map_: address of the map.
        value: address that it is written to.

    Returns:
        0; ENOENT, with zeros written: the map is empty.
    """
    return _given(call, value, call.maps[map_].pop_elem(), call.maps[map_].value_size)


def peek(call: ProgramRun, map_: int, value: int, *_: Any) -> int:
    """Write the next value of a queue or stack to `value`, and leave it in the map
    (bpf_map_peek_elem).

    A bloom filter is asked whether it has the value at `value`, which is only read.

    Args:
        call: the run.
        map_: address of the map.
        value: address that the value is written to; of a bloom filter, that it is read from.

    Returns:
        0; ENOENT, for a queue or stack with zeros written: the map is empty, or does not have the
        value.
    """
    m = call.maps[map_]
    if isinstance(m, Bloom):  # its value is asked for
        return 0 if m.has(call.read(value, m.value_size)) else ENOENT
    return _given(call, value, m.peek_elem(), m.value_size)


def _given(call: ProgramRun, to: int, value: bytes | None, size: int) -> int:
    """Write the value that a helper gives to program memory.

    Args:
        call: the run.
        to: address that it is written to.
        value: the value's bytes; None: there is none, and zeros are written.
        size: bytes of a value.

    Returns:
        0; ENOENT: `value` is None.
    """
    call.write(to, bytes(size) if value is None else value)
    return ENOENT if value is None else 0


def storage_get(call: ProgramRun, map_: int, task: int, value: int, flags: int, *_: Any) -> int:
    """Return the address of a task's value (bpf_task_storage_get).

    Args:
        call: the run.
        map_: address of the map.
        task: the task's number, as task() gives it.
        value: address of the value that a new entry gets; 0: zeros.
        flags: 1: add an entry where the task has none.

    Returns:
        The value's address; 0: the task has no entry, and none was added.
    """
    m = call.maps[map_]
    key = _task_key(call, task)
    found = m.lookup_elem(key)
    if not found and flags & 1:
        m.update_elem(key, call.read(value, m.value_size) if value else bytes(m.value_size))
        found = m.lookup_elem(key)
    return found


def storage_delete(call: ProgramRun, map_: int, task: int, *_: Any) -> int:
    """Delete a task's value (bpf_task_storage_delete); return 0, or ENOENT."""
    return call.maps[map_].delete_elem(_task_key(call, task))


def _task_key(call: ProgramRun, task: int) -> bytes:
    """Return the key that a task's number is in a map of tasks: 4 bytes."""
    return (task & _U32).to_bytes(4, call.order)


def next_key(call: ProgramRun, map_: int, key: int, cursor: int, *_: Any) -> int:
    """Find the next key of a hash table, and write it to memory: a step of a loop over all keys.

    Args:
        call: the run.
        map_: address of the table.
        key: address that the key is written to; zeros where there is none.
        cursor: what the step before has returned; 0: begin with the first key.

    Returns:
        The cursor for the next step; 0: there are no more keys.
    """
    m = call.maps[map_]
    assert isinstance(m, Hash)
    following, found = m.next_key(cursor & _U32)
    call.write(key, found)
    return following


def call_slot(call: ProgramRun, *_: Any) -> int:
    """Return the index of the call that begins or returns at the probe: 0 in the interpreter.

    Only compiled programs, whose code does not call this, run where a machine follows calls by
    itself. There it is how many calls are being followed, the same at a call's entry and at its
    return; SLOTS: there is no room for one more.
    """
    return 0


def wake(call: ProgramRun, *_: Any) -> int:
    """Have Python look at what the program has left for it: print an empty line, and return 0.

    In guest code it is the one helper of this kind: the guest stops only where it is called.
    """
    call.printed("")
    return 0


def may_loop(call: ProgramRun, *_: Any) -> int:
    """Count a round of a loop: return 1 for the first ROUNDS rounds of a run, then 0."""
    call.rounds += 1
    return int(call.rounds <= ROUNDS)


# ---- the guest's memory


def probe_read(call: ProgramRun, to: int, size: int, source: int, *_: Any) -> int:
    """Copy guest memory to the program's memory (bpf_probe_read).

    Args:
        call: the run.
        to: address in the program's memory.
        size: bytes, the lower 32 bits count.
        source: guest address.

    Returns:
        0; EFAULT, with zeros written: the guest's memory is not mapped.
    """
    size &= _U32
    call.check(to, size)
    try:
        call.write(to, call.place.read(source, size) if size else b"")
    except KprobeError:
        call.write(to, bytes(size))
        return EFAULT
    return 0


def probe_read_str(call: ProgramRun, to: int, size: int, source: int, *_: Any) -> int:
    """Copy a string of the guest's to the program's memory (bpf_probe_read_str).

    Args:
        call: the run.
        to: address in the program's memory.
        size: bytes at most, the NUL included.
        source: guest address.

    Returns:
        The bytes that were written, the NUL included; EFAULT, with zeros written: it is not mapped.
    """
    size &= _U32
    call.check(to, size)
    try:
        text = _string(call.place, source, size)
    except KprobeError:
        call.write(to, bytes(size))
        return EFAULT
    call.write(to, text)
    return len(text)


def _string(place: RunPlace, addr: int, size: int) -> bytes:
    """Read a string from guest memory: return it with its NUL, cut to `size` bytes; b"" for size 0.

    It is read in pieces that do not cross 256-byte lines, so that nothing behind its end has to be
    mapped.

    Args:
        place: the guest.
        addr: guest address.
        size: bytes at most, the NUL included.

    Raises:
        KprobeError: it is not mapped.
    """
    out = bytearray()
    while len(out) < size - 1:
        piece = place.read(addr + len(out), min(256 - (addr + len(out)) % 256, size - 1 - len(out)))
        head, nul, _ = piece.partition(b"\0")
        out += head
        if nul:
            break
    return bytes(out) + b"\0" if size else b""


# ---- time, CPU, task


def ktime(call: ProgramRun, *_: Any) -> int:
    """Return the time in ns (bpf_ktime_get_ns and its kin)."""
    return call.place.clock()


def prandom(call: ProgramRun, *_: Any) -> int:
    """Return a random number of 32 bits."""
    return random.getrandbits(32)


def cpu(call: ProgramRun, *_: Any) -> int:
    """Return the number of the CPU."""
    return call.place.cpu


def pid_tgid(call: ProgramRun, *_: Any) -> int:
    """Return tgid << 32 | pid of the guest's task."""
    return call.place.pid_tgid()


def task(call: ProgramRun, *_: Any) -> int:
    """Return a number for the guest's task: its pid.

    A Linux kernel gives the address of a structure, which guests do not have.
    """
    return call.place.pid_tgid() & _U32


def nobody(call: ProgramRun, *_: Any) -> int:
    """Return 0, as user and group: guests have none."""
    return 0


def jiffies(call: ProgramRun, *_: Any) -> int:
    """Return the clock in units of 4 ms, as most kernels count."""
    return call.place.clock() // 4_000_000


def comm(call: ProgramRun, to: int, size: int, *_: Any) -> int:
    """Write the name of the guest's task (bpf_get_current_comm), and return 0.

    Args:
        call: the run.
        to: address that it is written to, cut to 15 bytes and padded with zeros.
        size: bytes there.
    """
    size &= _U32
    call.check(to, size)
    call.write(to, call.place.comm()[: min(15, size - 1)].ljust(size, b"\0"))
    return 0


# ---- output


def printk(call: ProgramRun, text: int, size: int, *args: int, texts: Texts | None = None) -> int:
    """Print a line (bpf_trace_printk): `call.printed` gets it.

    Args:
        call: the run.
        text: address of the format.
        size: bytes of it.
        args: up to three arguments.
        texts: number of an argument, from 0, that is an address in the program's memory -> bytes
            that may be read there (or EITHER, UNSET); None: the arguments' values tell.

    Returns:
        Bytes of the line; EINVAL, with nothing printed: the format is none, or has too many fields.
    """
    return _print(call, text, size, _given_to_format(call, args[:3], texts))


def vprintk(
    call: ProgramRun,
    text: int,
    size: int,
    data: int,
    length: int,
    *_: Any,
    texts: Texts | None = None,
) -> int:
    """Print a line whose arguments lie in memory (bpf_trace_vprintk).

    Args:
        call: the run.
        text: address of the format.
        size: bytes of it.
        data: address of the arguments, 64 bits each.
        length: bytes of them.
        texts: number of an argument, from 0, that is an address in the program's memory -> bytes
            that may be read there (or EITHER, UNSET); None: the arguments' values tell.

    Returns:
        Bytes of the line; EINVAL, with nothing printed: the format is none, or has too many fields,
        or `length` is no multiple of 8, or stands for more than ARGUMENTS.
    """
    args = _words(call, data, length & _U32)
    return EINVAL if args is None else _print(call, text, size, _given_to_format(call, args, texts))


def _words(call: ProgramRun, data: int, length: int) -> list[int] | None:
    """Return the arguments of a format, which lie in memory as 64-bit words.

    Args:
        call: the run.
        data: address of the words.
        length: bytes of all words.

    Returns:
        None: `length` is no multiple of 8, or they are more than ARGUMENTS.
    """
    raw = call.read(data, length)
    if len(raw) % 8 or len(raw) > 8 * ARGUMENTS:
        return None
    return [int.from_bytes(raw[at : at + 8], call.order) for at in range(0, len(raw), 8)]


def _given_to_format(call: ProgramRun, args: Sequence[int], texts: Texts | None) -> list[int | Own]:
    """Return the arguments of a format for printf.expand(), with addresses of the program's as Own.

    Args:
        call: the run, whose memory is read.
        args: the arguments' values, 64 bits each.
        texts: number of an argument, from 0, that is an address in the program's memory -> bytes
            that may be read there (or EITHER, UNSET); None: the arguments' values tell.
    """
    out: list[int | Own] = []
    for number, value in enumerate(args):
        most = EITHER if texts is None else texts.get(number)
        if most is None or (value == 0 and most >= 0):  # a number; or NULL
            out.append(value)
        elif most == EITHER:
            there = call.own(value, STRING)
            out.append(value if there is None else Own(there))
        else:
            out.append(Own(call.read(value, min(most, STRING)) if most > 0 else b""))
    return out


def snprintf(
    call: ProgramRun,
    to: int,
    size: int,
    text: int,
    data: int,
    length: int,
    texts: Texts | None = None,
) -> int:
    """Write a formatted text to memory, cut where it does not fit, with zeros behind it.

    Args:
        call: the run.
        to: address that the text is written to.
        size: bytes there.
        text: address of the format.
        data: address of the arguments, 64 bits each.
        length: bytes of the arguments.
        texts: number of an argument, from 0, that is an address in the program's memory -> bytes
            that may be read there (or EITHER, UNSET); None: the arguments' values tell.

    Returns:
        The length of the whole text, its NUL included; EINVAL, with zeros written: the format is
        none, has too many fields, or `length` is wrong.
    """
    size &= _U32
    call.check(to, size)
    args = _words(call, data, length & _U32)
    out = None
    if args is not None:
        out = expand(_text(call, text), _given_to_format(call, args, texts), call.place)
    call.write(to, (out or b"")[: max(size - 1, 0)].ljust(size, b"\0"))
    return EINVAL if out is None else len(out) + 1


def strncmp(call: ProgramRun, one: int, size: int, other: int, *_: Any) -> int:
    """Compare a text of the program's with a constant one, up to a NUL (bpf_strncmp).

    Args:
        call: the run.
        one: address of the text.
        size: bytes that are compared at most.
        other: address of the constant text.

    Returns:
        -1, 0 or 1.
    """
    size &= _U32
    mine, theirs = (
        raw[:size].partition(b"\0")[0] for raw in (call.read(one, size), _text(call, other))
    )
    return (mine > theirs) - (mine < theirs)


def strtol(call: ProgramRun, text: int, size: int, flags: int, to: int, out: int, *_: Any) -> int:
    """Read a signed number at the beginning of a text (bpf_strtol).

    Args:
        call: the run.
        text: address of the text.
        size: bytes of the text.
        flags: the base, 8, 10 or 16; 0: 0x and 0 tell it.
        to: address of 8 bytes that the number is written to.
        out: r5, which is not used.

    Returns:
        How many bytes of the text it has, blanks in front included; with nothing written, EINVAL:
        there is none, or the base is another; ERANGE: it has more than 64 bits.
    """
    return _to_number(call, text, size, flags, to, True)


def strtoul(call: ProgramRun, text: int, size: int, flags: int, to: int, out: int, *_: Any) -> int:
    """Read an unsigned number at the beginning of a text (bpf_strtoul).

    Args:
        call: the run.
        text: address of the text.
        size: bytes of the text.
        flags: the base, 8, 10 or 16; 0: 0x and 0 tell it.
        to: address of 8 bytes that the number is written to.
        out: r5, which is not used.

    Returns:
        How many bytes of the text it has, blanks in front included; with nothing written, EINVAL:
        there is none, it is negative, or the base is another; ERANGE: it has more than 64 bits.
    """
    return _to_number(call, text, size, flags, to, False)


def _to_number(call: ProgramRun, text: int, size: int, flags: int, to: int, sign: bool) -> int:
    """Read a number at the beginning of a text, and write it to memory.

    Args:
        call: the run.
        text: address of the text.
        size: bytes of the text.
        flags: the base, 8, 10 or 16; 0: 0x and 0 tell it.
        to: address of 8 bytes that the number is written to.
        sign: True where it may be negative.

    Returns:
        How many bytes of the text it has, blanks in front included; with nothing written, EINVAL:
        there is none, or the base is another; ERANGE: it has more than 64 bits.
    """
    call.check(to, 8)
    base = flags & 31
    raw = call.read(text, size & _U32).partition(b"\0")[0].decode("latin-1")
    match = _NUMBER.match(raw) if base in (0, 8, 10, 16) and flags >> 5 == 0 else None
    if match is None or (match[1] and not sign):
        return EINVAL
    digits = match[2]
    if base in (0, 16) and digits[:2].lower() == "0x" and len(digits) > 2:
        base, digits = 16, digits[2:]
    elif base == 0:
        base = 8 if digits[0] == "0" else 10
    allowed = re.match({8: "[0-7]+", 10: "[0-9]+", 16: "[0-9a-fA-F]+"}[base], digits)
    if allowed is None:
        return EINVAL
    number = int(match[1] + allowed[0], base)
    if not (-(1 << 63) <= number < 1 << 63 if sign else number <= _U64):
        return ERANGE
    call.write(to, (number & _U64).to_bytes(8, call.order))
    return match.start(2) + len(match[2]) - len(digits) + len(allowed[0])


def _text(call: ProgramRun, addr: int) -> bytes:
    """Return the constant text at an address in a map, its NUL included."""
    raw, nul, _ = _constant(call, addr, LINE).partition(b"\0")
    return raw + nul


def _print(call: ProgramRun, text: int, size: int, args: Sequence[int | Own]) -> int:
    """Print a formatted line, cut to less than LINE bytes.

    Args:
        call: the run, whose `printed` takes the line.
        text: address of the format.
        size: bytes of the format.
        args: its arguments: numbers, or bytes of the program's own memory.

    Returns:
        Bytes of the line; EINVAL: the format is none.
    """
    out = expand(call.read(text, size & _U32), args, call.place)
    if out is None:
        return EINVAL
    out = out[: LINE - 1]
    call.printed(out.decode("utf-8", "backslashreplace"))
    return len(out)


def _constant(call: ProgramRun, addr: int, size: int) -> bytes:
    """Return up to `size` bytes of a map's values, the program's variables and constants included.

    Args:
        call: the run.
        addr: address of the first byte.
        size: bytes at most.

    Returns:
        The bytes, which end where the map's memory does; b"": the address is in no map.
    """
    for m in call.maps.values():
        start, length = m.span
        if start <= addr < start + length:
            at = addr - m.address
            return bytes(m.block.view[at : min(at + size, start - m.address + length)])
    return b""


def perf_output(call: ProgramRun, _ctx: int, map_: int, flags: int, data: int, size: int) -> int:
    """Add a record to a perf event array (bpf_perf_event_output).

    Args:
        call: the run.
        map_: address of the array.
        flags: number of the CPU that the record is of; 0xffffffff: this one.
        data: address of the record's data.
        size: bytes of the data.

    Returns:
        0; EINVAL: other flags; E2BIG: the array has no such CPU; ENOSPC: there is no room.
    """
    m = call.maps[map_]
    assert isinstance(m, Ring)
    if flags >> 32:
        return EINVAL
    cpu = call.place.cpu if flags & _U32 == _U32 else flags & _U32
    if m.max_entries and cpu >= m.max_entries:
        return E2BIG
    return 0 if m.output(call.read(data, size), cpu) else ENOSPC


def ring_output(call: ProgramRun, map_: int, data: int, size: int, flags: int, *_: Any) -> int:
    """Add a record to a ring (bpf_ringbuf_output).

    Args:
        call: the run.
        map_: address of the ring.
        data: address of the record's data.
        size: bytes of the data.
        flags: 0 to 3, which ask for wake-ups: they change nothing here.

    Returns:
        0; EINVAL: other flags; EAGAIN: there is no room.
    """
    m = call.maps[map_]
    assert isinstance(m, Ring)
    if flags & ~3:
        return EINVAL
    return 0 if m.output(call.read(data, size), call.place.cpu) else EAGAIN


def ring_reserve(call: ProgramRun, map_: int, size: int, flags: int, *_: Any) -> int:
    """Reserve a record, and let the program write its data (bpf_ringbuf_reserve).

    Args:
        call: the run.
        map_: address of the ring.
        size: bytes of the data.
        flags: must be 0.

    Returns:
        The address of the data; 0: there is no room, or there are flags.
    """
    m = call.maps[map_]
    assert isinstance(m, Ring)
    record = 0 if flags else m.reserve(size, call.place.cpu)
    if record:
        call.grant(record, size)
    return record


def ring_submit(call: ProgramRun, record: int, *_: Any) -> int:
    """Complete a reserved record (bpf_ringbuf_submit)."""
    return _commit(call, record, False)


def ring_discard(call: ProgramRun, record: int, *_: Any) -> int:
    """Discard a reserved record: readers pass it over (bpf_ringbuf_discard)."""
    return _commit(call, record, True)


def _commit(call: ProgramRun, record: int, discard: bool) -> int:
    """Complete or discard a reserved record, which the program cannot access any more; return 0.

    Args:
        call: the run.
        record: address of the record's data.
        discard: True to discard: readers never get the record.
    """
    call.revoke(record)
    for m in call.maps.values():
        if isinstance(m, (Ring, UserRing)) and m.holds(record):
            m.commit(record, discard)
    return 0


def ring_query(call: ProgramRun, map_: int, what: int, *_: Any) -> int:
    """Return a number about a ring (bpf_ringbuf_query).

    Args:
        call: the run.
        map_: address of the ring.
        what: 0: bytes not consumed; 1: size; 2: consumer position; 3: producer position; others: 0
            is returned.
    """
    m = call.maps[map_]
    assert isinstance(m, Ring)
    return m.query(what)


# ---- dynptrs: 16 bytes that say where memory of a size is, which may be known only at run time
#
# As in Linux: address of the data (0: the dynptr is NULL), 32 bits of size, 32 of an offset into
# the data. A dynptr is read through ProgramRun.read(): an interpreted program that no verifier has
# seen can make one up, and reaches nothing but its own memory with it.

#: bytes of a dynptr's data, at most
DYNPTR_MOST: Final = (1 << 24) - 1


def _dynptr(call: ProgramRun, at: int) -> tuple[int, int, int]:
    """Read a dynptr from program memory.

    Args:
        call: the run.
        at: address of the dynptr.

    Returns:
        (address of the data, 0 for a dynptr that is NULL; bytes that the dynptr covers; offset of
        the first of them in the data).
    """
    raw = call.read(at, 16)
    return (
        int.from_bytes(raw[:8], call.order),
        int.from_bytes(raw[8:12], call.order),
        int.from_bytes(raw[12:], call.order),
    )


def _make_dynptr(call: ProgramRun, at: int, data: int, size: int, offset: int = 0) -> None:
    """Write a dynptr to memory.

    Args:
        call: the run.
        at: address that it is written to.
        data: address of its data; 0: the dynptr is NULL.
        size: bytes of the data that it covers.
        offset: offset of the first of them in the data.
    """
    call.write(
        at,
        data.to_bytes(8, call.order)
        + size.to_bytes(4, call.order)
        + offset.to_bytes(4, call.order),
    )


def dynptr_from_mem(call: ProgramRun, data: int, size: int, flags: int, to: int, *_: Any) -> int:
    """Make a dynptr of a part of a map's value (bpf_dynptr_from_mem).

    Args:
        call: the run.
        data: address of the part.
        size: bytes of it.
        flags: must be 0.
        to: address that the dynptr is written to.

    Returns:
        0; with a dynptr that is NULL, E2BIG: more than DYNPTR_MOST bytes; EINVAL: there are flags.
    """
    size &= _U32
    call.check(data, size)
    wrong = 0
    if size > DYNPTR_MOST:
        wrong = E2BIG
    elif flags:
        wrong = EINVAL
    _make_dynptr(call, to, *((0, 0) if wrong else (data, size)))
    return wrong


def dynptr_read(
    call: ProgramRun, to: int, size: int, dynptr: int, offset: int, flags: int, *_: Any
) -> int:
    """Copy bytes of a dynptr's data to memory (bpf_dynptr_read).

    Args:
        call: the run.
        to: address that they are copied to.
        size: how many.
        dynptr: address of the dynptr.
        offset: offset of the first of these bytes in the dynptr's data.
        flags: must be 0.

    Returns:
        0; EINVAL: there are flags, or the dynptr is NULL; E2BIG: it has fewer bytes.
    """
    size &= _U32
    call.check(to, size)
    data, there, begin = _dynptr(call, dynptr)
    if not data or flags:
        return EINVAL
    if offset + size > there:
        return E2BIG
    call.write(to, call.read(data + begin + offset, size))
    return 0


def dynptr_write(
    call: ProgramRun, dynptr: int, offset: int, source: int, size: int, flags: int, *_: Any
) -> int:
    """Copy memory to a dynptr's data (bpf_dynptr_write).

    Args:
        call: the run.
        dynptr: address of the dynptr.
        offset: offset in the dynptr's data that the first byte goes to.
        source: address of the bytes.
        size: how many.
        flags: must be 0.

    Returns:
        0; EINVAL: there are flags, or the dynptr is NULL; E2BIG: it has fewer bytes.
    """
    size &= _U32
    data, there, begin = _dynptr(call, dynptr)
    if not data or flags:
        return EINVAL
    if offset + size > there:
        return E2BIG
    call.write(data + begin + offset, call.read(source, size))
    return 0


def dynptr_data(call: ProgramRun, dynptr: int, offset: int, size: int, *_: Any) -> int:
    """Return the address of bytes in a dynptr's data (bpf_dynptr_data).

    Args:
        call: the run.
        dynptr: address of the dynptr.
        offset: offset of the first of these bytes in the dynptr's data.
        size: how many bytes there must be.

    Returns:
        The address; 0: the dynptr is NULL, or has fewer bytes.
    """
    data, there, begin = _dynptr(call, dynptr)
    return data + begin + offset if data and offset + (size & _U32) <= there else 0


def dynptr_slice(
    call: ProgramRun, dynptr: int, offset: int, buffer: int, size: int, *_: Any
) -> int:
    """Return the address of bytes in a dynptr's data (bpf_dynptr_slice, bpf_dynptr_slice_rdwr).

    Args:
        call: the run.
        dynptr: address of the dynptr.
        offset: offset of the first of these bytes in the dynptr's data, 32 bits.
        buffer: not used: Linux copies data there that is not in one piece, and here all is.
        size: how many bytes there must be.

    Returns:
        The address; 0: the dynptr is NULL, or has fewer bytes.
    """
    return dynptr_data(call, dynptr, offset & _U32, size)


def dynptr_clone(call: ProgramRun, dynptr: int, to: int, *_: Any) -> int:
    """Make another dynptr of a dynptr's data (bpf_dynptr_clone).

    Args:
        call: the run.
        dynptr: address of the dynptr.
        to: address that the other is written to.

    Returns:
        0; with a clone that is NULL, EINVAL: the dynptr is NULL.
    """
    data, size, begin = _dynptr(call, dynptr)
    _make_dynptr(call, to, data, size, begin)
    return 0 if data else EINVAL


def dynptr_size(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """Return the bytes of a dynptr's data; EINVAL: it is NULL (bpf_dynptr_size)."""
    data, size, _begin = _dynptr(call, dynptr)
    return size if data else EINVAL & _U32


def dynptr_is_null(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """Return 1 where a dynptr is NULL (bpf_dynptr_is_null)."""
    return int(not _dynptr(call, dynptr)[0])


def dynptr_is_rdonly(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """Return 0: the data of every dynptr here may be written (bpf_dynptr_is_rdonly)."""
    return 0


def dynptr_adjust(call: ProgramRun, dynptr: int, start: int, end: int, *_: Any) -> int:
    """Narrow a dynptr to a part of its data (bpf_dynptr_adjust).

    Args:
        call: the run.
        dynptr: address of the dynptr.
        start: offset of the part's first byte.
        end: offset behind its last byte.

    Returns:
        0; EINVAL: `end` is before `start`, or the dynptr is NULL; ERANGE: it has fewer bytes.
    """
    start &= _U32
    end &= _U32
    data, size, begin = _dynptr(call, dynptr)
    if not data or start > end:
        return EINVAL
    if end > size:
        return ERANGE
    _make_dynptr(call, dynptr, data, end - start, begin + start)
    return 0


def ring_reserve_dynptr(
    call: ProgramRun, map_: int, size: int, flags: int, to: int, *_: Any
) -> int:
    """Reserve a record, and make a dynptr of its data (bpf_ringbuf_reserve_dynptr).

    Args:
        call: the run.
        map_: address of the ring.
        size: bytes of the data.
        flags: must be 0.
        to: address that the dynptr is written to.

    Returns:
        0; with a dynptr that is NULL, EINVAL: there is no room, or there are flags; E2BIG: more
        than DYNPTR_MOST bytes.
    """
    size &= _U32
    m = call.maps[map_]
    assert isinstance(m, Ring)
    wrong = 0
    if flags:
        wrong = EINVAL
    elif size > DYNPTR_MOST:
        wrong = E2BIG
    record = 0 if wrong else m.reserve(size, call.place.cpu)
    if record:
        call.grant(record, size)
    _make_dynptr(call, to, record, size if record else 0)
    return wrong if record else wrong or EINVAL


def ring_submit_dynptr(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """Complete a reserved record, whose dynptr becomes NULL (bpf_ringbuf_submit_dynptr)."""
    return _commit_dynptr(call, dynptr, False)


def ring_discard_dynptr(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """Discard a reserved record, whose dynptr becomes NULL (bpf_ringbuf_discard_dynptr)."""
    return _commit_dynptr(call, dynptr, True)


def _commit_dynptr(call: ProgramRun, dynptr: int, discard: bool) -> int:
    """Complete or discard the record of a dynptr, which becomes NULL; return 0.

    Nothing happens where the dynptr is NULL.

    Args:
        call: the run.
        dynptr: address of the dynptr.
        discard: True to discard: readers never get the record.
    """
    record = _dynptr(call, dynptr)[0]
    if record:
        _commit(call, record, discard)
        _make_dynptr(call, dynptr, 0, 0)
    return 0


# ---- rings that Python fills: bpf_user_ringbuf_drain() is a loop with these, see object.callbacks


def user_ring_begin(call: ProgramRun, map_: int, *_: Any) -> int:
    """Check that a ring can be drained now: return 0; EBUSY: a callback still uses a sample of it.

    Called as bpf_user_ringbuf_drain() begins.
    """
    m = call.maps[map_]
    assert isinstance(m, UserRing)
    return EBUSY if m.busy else 0


def user_ring_next(call: ProgramRun, map_: int, *_: Any) -> int:
    """Take the oldest sample out of a ring, and let the program access it.

    Called in each round of bpf_user_ringbuf_drain().

    Args:
        call: the run.
        map_: address of the ring.

    Returns:
        The address of a dynptr of the sample; 0: the ring is empty.
    """
    m = call.maps[map_]
    assert isinstance(m, UserRing)
    data = m.take()
    if data is None:
        return 0
    call.grant(m.sample, len(data))
    call.grant(m.dynptr, 16)
    _make_dynptr(call, m.dynptr, m.sample, len(data))
    return m.dynptr


def user_ring_done(call: ProgramRun, dynptr: int, *_: Any) -> int:
    """End the program's access to a sample, given by its dynptr's address; return 0.

    Called in each round of bpf_user_ringbuf_drain(), after the callback.
    """
    call.revoke(dynptr)
    for m in call.maps.values():
        if isinstance(m, UserRing) and m.dynptr == dynptr:
            call.revoke(m.sample)
            m.commit(dynptr)
    return 0


# ---- stacks


def stackid(call: ProgramRun, _ctx: int, map_: int, flags: int, *_: Any) -> int:
    """Keep the call stack in a map of stacks, and return its number there (bpf_get_stackid).

    Args:
        call: the run.
        map_: address of the map.
        flags: bits 0-7: frames to skip; FAST_COMPARE and REUSE: see maps.stacks.

    Returns:
        The number; EFAULT: there is no stack; EEXIST: another stack has the number; EINVAL: other
        flags.
    """
    m = call.maps[map_]
    assert isinstance(m, StackTraces)
    if flags & ~0x7FF:
        return EINVAL
    try:
        trace = call.place.stack(flags & 0xFF, m.depth)
    except KprobeError:
        trace = []
    return m.number(trace, flags) if trace else EFAULT


def stack(call: ProgramRun, _ctx: int, to: int, size: int, flags: int, *_: Any) -> int:
    """Write the call stack to memory: the probed address, then return addresses (bpf_get_stack).

    Args:
        call: the run.
        to: address that they are written to, 8 bytes each; zeros follow them.
        size: bytes there, a multiple of 8.
        flags: bits 0-7: frames to skip; bit 8 changes nothing.

    Returns:
        Bytes of the addresses; EFAULT, with zeros written: there is no stack; EINVAL, with nothing
        written: other flags, or another size.
    """
    size &= _U32
    call.check(to, size)
    if flags & ~0x1FF or size % 8:
        return EINVAL
    try:
        trace = call.place.stack(flags & 0xFF, size // 8)
    except KprobeError:
        trace = []
    raw = b"".join((a & _U64).to_bytes(8, call.order) for a in trace[: size // 8])
    call.write(to, raw.ljust(size, b"\0"))
    return len(raw) if raw else EFAULT


# ---- the probe


def override(call: ProgramRun, _ctx: int, value: int, *_: Any) -> int:
    """Skip the probed function, and have it return `value` (bpf_override_return).

    Args:
        call: the run.
        value: the result, a number.

    Returns:
        0; EOPNOTSUPP: the function cannot be skipped here.
    """
    try:
        call.place.override(value)
    except KprobeError:
        return EOPNOTSUPP
    return 0


def func_ip(call: ProgramRun, *_: Any) -> int:
    """Return the address of the probed function (bpf_get_func_ip); 0 for a probe inside one."""
    return call.place.func_ip()


def cookie(call: ProgramRun, *_: Any) -> int:
    """Return the number that the program was attached with (bpf_get_attach_cookie); 0: none was
    given.
    """
    return call.place.cookie()


def marker_argument(call: ProgramRun, _ctx: int, number: int, to: int, size: int, *_: Any) -> int:
    """Write an argument of the static tracepoint that was hit to `to`, as a number of 64 bits.

    Args:
        call: the run.
        number: number of the argument, from 0.
        to: address that it is written to.
        size: bytes there: 8.

    Returns:
        0; with 0 written, ENOENT: the tracepoint has fewer arguments, EFAULT: it cannot be read;
        EINVAL, with nothing written: another size.
    """
    if size & _U32 != 8:
        return EINVAL
    call.check(to, 8)
    try:
        found = call.place.marker_argument(number)
    except KprobeError:
        call.write(to, bytes(8))
        return EFAULT
    call.write(to, ((found or 0) & _U64).to_bytes(8, call.order))
    return ENOENT if found is None else 0


def session_cookie(call: ProgramRun, *_: Any) -> int:
    """Return the address of 8 bytes that a session's program at the entry of a call leaves for
    itself at the return (bpf_session_cookie).
    """
    return next(m.address for m in call.maps.values() if m.name == SESSION)


def session_is_return(call: ProgramRun, *_: Any) -> int:
    """Return 1 where a session's program runs at the function's return, 0 at its entry
    (bpf_session_is_return).
    """
    return int(call.place.at_return())


def tail_call(call: ProgramRun, _ctx: int, map_: int, index: int, *_: Any) -> int:
    """Return ENOENT: there is no program to go on with.

    Where there is one, the interpreter goes on with it and does not call this.
    """
    assert isinstance(call.maps[map_], Programs)
    return ENOENT


def guest_is_big(call: ProgramRun, *_: Any) -> int:
    """Return 0: a test run has no guest.

    Where a program is attached, programs.adapting replaces the call by a constant: 1 for a
    big-endian guest, else 0.
    """
    return 0


def missing(call: ProgramRun, *_: Any) -> int:
    """Raise ProgramError: the program reads or calls something that the guest does not have."""
    raise ProgramError("reads what the guest's types have not")
