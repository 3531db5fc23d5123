"""Loads and stores: where they go, whether that is allowed, and what they leave on the stack.

`path` is always the path with the access, and what raises ProgramError is the refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import isa
from ..maps import Map, MapType
from ..meanings import LINE
from .alu import lsh, or_, rsh
from .facts import Access
from .path import Path
from .scalar import Scalar, between, const, extended, truncated, unknown
from .state import (
    CTX,
    DYNPTR,
    MAP,
    NAMES,
    RECORD,
    SLICE,
    STACK,
    VALUE,
    WRITTEN,
    Cell,
    Half,
    MemoryRegion,
    Pointer,
    ProgramFrame,
    Value,
    bits,
    halves,
)

_GUEST = "guest memory is read with bpf_probe_read_kernel() and its like"


def pointed(path: Path, register: int) -> Pointer:
    """Check that a register holds a pointer to memory, and return the pointer.

    Args:
        path: the path with the access.
        register: number of the register.

    Raises:
        ProgramError: the register holds a number, a map, what may be NULL, or nothing.
    """
    value = path.read(register)
    if isinstance(value, Scalar):
        null = not value.mask and not value.value
        raise path.refuse(
            f"r{register} is {'NULL' if null else f'a number ({value})'} where an address is "
            "needed",
            "this path runs where the pointer is NULL" if null else _GUEST,
        )
    if value.null:
        raise path.refuse(
            f"r{register} may be NULL: {value}", "compare it with NULL before it is used"
        )
    if value.region.kind == MAP:
        raise path.refuse(
            f"r{register} is a map, not memory", "get a value's address with bpf_map_lookup_elem()"
        )
    return value


def access(
    path: Path, pointer: Pointer, offset: int, size: int, write: bool, aligned: bool = False
) -> tuple[int, int]:
    """Check that an instruction may access memory, and add the access to the findings.

    Args:
        path: the path.
        pointer: value of the register with the address.
        offset: bytes that the instruction adds.
        size: bytes that are accessed.
        write: True where they are written.
        aligned: True where it must be aligned, whatever the memory.

    Returns:
        (smallest offset, largest offset) of the first byte in the region; of a stack, from r10.

    Raises:
        ProgramError: the access is not allowed.
    """
    low, high = inside(path, pointer, offset, size, write)
    region = pointer.region
    if aligned or (region.kind in (STACK, CTX) and not region.plain):
        loose = (pointer.offset.value | pointer.offset.mask) & size - 1
        if pointer.offset.mask & size - 1 or loose + offset & size - 1:
            raise path.refuse(
                f"{size} bytes of {NAMES[region.kind]} at {_range(low, high)}: not a multiple of "
                f"{size}",
                "stack, context and atomic operations need natural alignment",
            )
    frame = len(path.state.frames) - 1 - region.frame if region.kind == STACK else None
    path.accessed(Access(region.kind, size, low if low == high else None, region.map, frame))
    return low, high


def inside(path: Path, pointer: Pointer, offset: int, size: int, write: bool) -> tuple[int, int]:
    """Check that an access stays within its region, and that a write goes to a writable one.

    Of a stack, the depth that the access needs is added to the findings.

    Args:
        path: the path.
        pointer: where the access is.
        offset: bytes that the instruction adds.
        size: bytes that are accessed.
        write: True where they are written.

    Returns:
        (smallest offset, largest offset) of the first byte in the region; of a stack, from r10.

    Raises:
        ProgramError: the access is not allowed.
    """
    region, at = pointer.region, pointer.offset
    low = at.smin + offset
    high = at.smax + offset
    if write and not region.writable:
        what = f"map {region.map.name}" if region.map is not None else NAMES[region.kind]
        raise path.refuse(f"writes to {what}, which is read-only", "")
    if low < region.low or high + size > region.high:
        raise _outside(path, region, low, high, size, "writes" if write else "reads")
    if region.kind == STACK:
        path.deepen(region.frame, -low)
    return low, high


def _range(low: int, high: int) -> str:
    """Return offsets as words for a message."""
    return f"offset {low}" if low == high else f"offsets {low}..{high}"


def _outside(
    path: Path, region: MemoryRegion, low: int, high: int, size: int, verb: str
) -> Exception:
    """Return the error that refuses an access which leaves its region; the caller raises it.

    Args:
        path: the path.
        region: the region.
        low: smallest offset of the first byte.
        high: largest offset of the first byte.
        size: bytes that are accessed.
        verb: "reads" or "writes".
    """
    if region.kind == STACK:
        where = f"r10{low:+}{f'..{high:+}' if high != low else ''}"
        return path.refuse(
            f"{verb} {size} bytes of stack at {where}; a frame is {isa.STACK_SIZE} bytes below r10",
            "use less stack: put large data into an array map with one entry",
        )
    name = f" {region.map.name}" if region.map is not None else ""
    hint = (
        "compare the index with the size before it is used, as an unsigned number"
        if low != high
        else ""
    )
    return path.refuse(
        f"{verb} {size} bytes at {_range(low, high)} of {NAMES[region.kind]}{name}, "
        f"which has {region.high} bytes",
        hint,
    )


# ---- loads


def load(path: Path, pointer: Pointer, offset: int, size: int, sign: bool) -> Value:
    """Return the value that an instruction loads: from the stack what was stored, from a read-only
    array with one entry the constant there (the map is frozen then), else any number.

    Args:
        path: the path.
        pointer: value of the register with the address.
        offset: bytes that the instruction adds.
        size: bytes that are loaded.
        sign: True where the value is sign-extended, False where it is zero-extended.

    Raises:
        ProgramError: the access is not allowed, or bytes of the stack are not initialised or a part
            of a pointer.
    """
    low, high = access(path, pointer, offset, size, False)
    value: Value = between(0, (1 << 8 * size) - 1)
    region = pointer.region
    if region.kind == STACK:
        if low == high:
            value = _of_stack(path, region.frame, low, size)
        else:
            need_written(path, region, low, high + size)
    elif low == high and region.map is not None and region.map.readonly:
        value = _constant(path, region.map, low, size) or value
    if sign:
        if isinstance(value, Pointer):
            raise path.refuse("loads a part of a pointer", "")
        return extended(value, 8 * size)
    return value


def _constant(path: Path, of: Map, at: int, size: int) -> Scalar | None:
    """Return a number of read-only data, and freeze the data: they cannot be set any more.

    Args:
        path: the path.
        of: the map that has the data.
        at: offset of the number, in bytes.
        size: bytes of the number.

    Returns:
        The number, a constant; None: the map is no array with a single value.
    """
    if of.type is not MapType.ARRAY or of.max_entries != 1:
        return None
    of.frozen = True
    return const(int.from_bytes(of.block.view[at : at + size], path.code.order))


def _of_stack(path: Path, frame: int, at: int, size: int) -> Value:
    """Return the value that a load from the stack gives, and note in `path.reads` what it reads.

    Args:
        path: the path.
        frame: number of the frame, from 0.
        at: offset of the first byte from r10, negative.
        size: bytes, 1 to 8.

    Raises:
        ProgramError: a byte was never written, or is a part of a pointer or of a dynptr.
    """
    slot = at + 512 >> 3
    half = at >> 2 & 1
    path.reads |= ((3 if size == 8 else 1 << half) << (frame << 7) + (slot << 1)) & ~path.writes
    cell = path.state.frames[frame].stack.get(slot)
    order = path.code.order
    if dynptr_in(cell):
        raise path.refuse(
            f"reads a dynptr at r10{at:+}", "read its data with bpf_dynptr_read() or _data()"
        )
    if size == 8:
        if isinstance(cell, (Scalar, Pointer)):
            return cell
        low, high = halves(cell, order) if order == "little" else halves(cell, order)[::-1]
        _need(path, at, low, high)
        if isinstance(low, Scalar) and isinstance(high, Scalar):
            return or_(low, lsh(high, const(32)))
        return unknown()
    if isinstance(cell, Scalar) and cell.mask and size == 4:
        return truncated(cell, 32) if (half == 0) == (order == "little") else rsh(cell, const(32))
    part = halves(cell, order)[half]
    if size == 4:
        _need(path, at, part)
        return part if isinstance(part, Scalar) else between(0, 0xFFFF_FFFF)
    _need(path, at, part, wanted=(1 << size) - 1 << (at & 3))
    if isinstance(part, Scalar) and not part.mask:
        raw = part.value.to_bytes(4, order)
        return const(int.from_bytes(raw[at & 3 : (at & 3) + size], order))
    return between(0, (1 << 8 * size) - 1)


def _need(path: Path, at: int, *parts: Half, wanted: int = WRITTEN) -> None:
    """Check that bytes of half stack slots are initialised, and are no part of a pointer.

    Args:
        path: the path.
        at: offset of the access from r10, for the message.
        parts: the halves of slots.
        wanted: which bytes of each half are checked: bit n for byte n.

    Raises:
        ProgramError: one of these bytes is not, or is a part of a pointer.
    """
    for part in parts:
        have = bits(part)
        if have & wanted << 4:
            raise path.refuse(
                f"reads a part of a pointer at r10{at:+}",
                "pointers are loaded as a whole, 8 bytes at a time",
            )
        if wanted & ~have:
            raise path.refuse(
                f"reads stack at r10{at:+} that nothing has been written to",
                "initialise the variable",
            )


def _bytes(
    path: Path, frame: ProgramFrame, number: int, low: int, high: int
) -> Iterator[tuple[int, Half, int]]:
    """Yield the halves of stack slots that have bytes within low .. high-1.

    Notes in `path.reads` that they are read.

    Args:
        path: the path.
        frame: the frame.
        number: the frame's number, from 0.
        low: offset of the first byte from r10, negative.
        high: offset behind the last byte.

    Yields:
        (offset of the half, the half, which of its bytes are within: bit n for byte n).
    """
    for at in range(low & ~3, high, 4):
        slot = at + 512 >> 3
        half = at >> 2 & 1
        path.reads |= (1 << half << (number << 7) + (slot << 1)) & ~path.writes
        wanted = WRITTEN
        if at < low:
            wanted &= WRITTEN << low - at
        if at + 4 > high:
            wanted &= WRITTEN >> at + 4 - high
        yield at, halves(frame.stack.get(slot), path.code.order)[half], wanted


def need_written(path: Path, region: MemoryRegion, low: int, high: int) -> None:
    """Check that each byte of a part of the stack is initialised: for loads at offsets that vary.

    Args:
        path: the path.
        region: a frame's stack.
        low: offset of the first byte from r10, negative.
        high: offset behind the last byte.

    Raises:
        ProgramError: a byte is not, or is a part of a pointer.
    """
    for at, part, wanted in _bytes(path, path.state.frames[region.frame], region.frame, low, high):
        _need(path, at, part, wanted=wanted)


def need_readable(
    path: Path, pointer: Pointer, size: int, what: str, pointers: bool = False
) -> None:
    """Check that a helper may read `size` bytes where a pointer points.

    Bytes of the stack that were never written are allowed beside others that were: compilers leave
    the padding of structures alone. They count as zero, and the facts tell the engines to clear
    them.

    Args:
        path: the path with the call.
        pointer: where the helper reads.
        size: bytes, at most.
        what: names the argument in the error.
        pointers: True where whole pointers may be among the bytes: for arguments of a format.

    Raises:
        ProgramError: the bytes are not all in the region; or on the stack, where none of them was
            written or a pointer is among them; or in the context.
    """
    low, high = inside(path, pointer, 0, size, False)
    region = pointer.region
    if region.kind == CTX and not region.plain:
        raise path.refuse(f"{what} is the context", "copy what is needed to a variable")
    if region.kind != STACK:
        return
    some, missing = False, False
    allowed = {low + 8 * n for n in pointers_among(path, pointer, size)} if pointers else set[int]()
    for at, part, wanted in _bytes(
        path, path.state.frames[region.frame], region.frame, low, high + size
    ):
        have = bits(part)
        if at & ~7 in allowed:
            some = True
            continue
        if have & wanted << 4:
            raise path.refuse(
                f"{what} holds a pointer at r10{at:+}",
                "addresses of this machine are of no use outside; store numbers",
            )
        some = some or bool(have & wanted)
        missing = missing or bool(wanted & ~have)
    if not some:
        raise path.refuse(
            f"{what} (stack at r10{low:+}, {size} bytes) has not been written to",
            "initialise the variable",
        )
    if missing:
        path.clear(region.frame, -low)


def pointers_among(path: Path, pointer: Pointer, size: int) -> dict[int, Pointer]:
    """Find the pointers among 64-bit words of memory; only the stack can have some.

    Notes in `path.reads` that their slots are read. Halves of dynptrs are left out.

    Args:
        path: the path with the call.
        pointer: where the words begin.
        size: bytes of all words.

    Returns:
        Number of the word, from 0 -> pointer; {} also where the words' offset varies, is no
        multiple of 8, or leads out of the frame.
    """
    region, at = pointer.region, pointer.offset
    low = at.smin
    if region.kind != STACK or at.mask or low % 8 or low < region.low or low + size > region.high:
        return {}
    stack = path.state.frames[region.frame].stack
    cells = {n: stack.get((low + 512 >> 3) + n) for n in range(size // 8)}
    found = {
        n: cell for n, cell in cells.items() if isinstance(cell, Pointer) and not dynptr_in(cell)
    }
    for n in found:
        path.reads |= (3 << (region.frame << 7) + ((low + 512 >> 3) + n << 1)) & ~path.writes
    return found


def text_at(path: Path, pointer: Pointer) -> int:
    """Return how many bytes a format's %s may look at where a pointer leads: 0 to LINE.

    They end with what it points into, and on the stack at the next pointer there. It is 0 where
    that is no stack, map value, record or dynptr's data, or where the pointer may lead outside.
    Bytes of the stack that nothing was written to count as zero; the facts then tell the engines
    to clear them.

    Args:
        path: the path with the call.
        pointer: where the text begins.
    """
    region, at = pointer.region, pointer.offset
    low, high = at.smin, at.smax
    if region.kind not in (STACK, VALUE, RECORD, SLICE) or low < region.low or high > region.high:
        return 0
    end = region.high
    if region.kind == STACK:
        missing = False
        for half, part, wanted in _bytes(
            path, path.state.frames[region.frame], region.frame, low, end
        ):
            if bits(part) & wanted << 4:
                end = half
                break
            missing = missing or bool(wanted & ~bits(part))
        if missing:
            path.clear(region.frame, -low)
    return min(max(end - high, 0), LINE)


# ---- stores


def store(path: Path, pointer: Pointer, offset: int, size: int, value: Value) -> None:
    """Check that an instruction may store a value, and change the path's stack as the store does.

    Args:
        path: the path.
        pointer: value of the register with the address.
        offset: bytes that the instruction adds.
        size: bytes that are stored.
        value: what is stored.

    Raises:
        ProgramError: the access is not allowed, or the value may not be stored there.
    """
    low, high = access(path, pointer, offset, size, True)
    region = pointer.region
    if isinstance(value, Pointer):
        _may_keep(path, region, value, size, low == high)
    if region.kind != STACK:
        return
    if low == high:
        _to_stack(path, region.frame, low, size, value)
    else:
        write_unknown(path, region, low, high + size)


def _may_keep(path: Path, region: MemoryRegion, value: Pointer, size: int, exact: bool) -> None:
    """Check that a pointer may be stored: whole, on the stack, and not in a frame that outlives it.

    Args:
        path: the path.
        region: where it is stored.
        value: the pointer.
        size: bytes that are stored.
        exact: True where the offset in the region is known.

    Raises:
        ProgramError: the pointer may not be stored there.
    """
    if region.kind != STACK:
        raise path.refuse(
            f"stores a pointer to {NAMES[value.region.kind]} in {NAMES[region.kind]}",
            "addresses of this machine are of no use outside; store numbers",
        )
    if size != 8 or not exact:
        what = "a part of a pointer" if size != 8 else "a pointer at an offset that varies"
        raise path.refuse(
            f"stores {what}",
            "a pointer is stored as a whole, at an offset that is known",
        )
    if value.region.kind == STACK and value.region.frame > region.frame:
        raise path.refuse(
            "stores the address of a local variable in a caller's frame",
            "it ends with its function",
        )


def _to_stack(path: Path, number: int, at: int, size: int, value: Value) -> None:
    """Set the contents of a stack slot, or of a part of it, at a known offset.

    Args:
        path: the path.
        number: number of the frame, from 0.
        at: offset of the first byte from r10, negative.
        size: bytes that are stored, 1 to 8.
        value: what is stored; of fewer than 8 bytes, a scalar.

    Raises:
        ProgramError: a dynptr whose record is held is there. Any other dynptr is forgotten.
    """
    stack = path.state.frames[number].stack
    slot = at + 512 >> 3
    half = at >> 2 & 1
    bit = (number << 7) + (slot << 1)
    overwrite(path, stack.get(slot))
    if size == 8:
        path.writes |= 3 << bit
        stack[slot] = value
        return
    assert isinstance(value, Scalar)
    parts = list(halves(stack.get(slot), path.code.order))
    if size == 4:
        path.writes |= 1 << half << bit
        parts[half] = truncated(value, 32)
    else:
        parts[half] = _patched(
            parts[half], at & 3, truncated(value, 8 * size), size, path.code.order
        )
    stack[slot] = (parts[0], parts[1])


def _patched(part: Half, at: int, value: Scalar, size: int, order: isa.Order) -> Half:
    """Return half of a stack slot after a store of 1 or 2 bytes into it.

    Args:
        part: the half before.
        at: offset of the first byte in the half, 0 to 3.
        value: the number that is stored.
        size: bytes that are stored, 1 or 2.
        order: the program's byte order.

    Returns:
        A constant where both numbers were constants; else which bytes are initialised.
    """
    if isinstance(part, Scalar) and not part.mask and not value.mask:
        raw = bytearray(part.value.to_bytes(4, order))
        raw[at : at + size] = value.value.to_bytes(size, order)
        return const(int.from_bytes(raw, order))
    here = (1 << size) - 1 << at
    return (bits(part) | here) & ~(here << 4)


def write_unknown(
    path: Path, region: MemoryRegion, low: int, high: int, surely: int | None = None
) -> None:
    """Change the path's stack as a write of unknown numbers to bytes low .. high-1 may do.

    Args:
        path: the path.
        region: a frame's stack.
        low: offset of the first byte from r10, negative.
        high: offset behind the last byte that may be written.
        surely: offset behind the bytes that are written in any case, and initialised afterwards;
            None: no byte is sure.

    Raises:
        ProgramError: a dynptr is there.
    """
    frame = path.state.frames[region.frame]
    for at in range(low & ~3, high, 4):
        slot = at + 512 >> 3
        half = at >> 2 & 1
        if dynptr_in(frame.stack.get(slot)):
            raise path.refuse(
                f"may write over the dynptr at r10{at & ~7:+}",
                "dynptrs are changed by the helpers for them only",
            )
        parts = list(halves(frame.stack.get(slot), path.code.order))
        have = bits(parts[half])
        here = 0
        if surely is not None:
            for byte in range(4):
                here |= (low <= at + byte < surely) << byte
        if here == WRITTEN:
            path.writes |= 1 << half << (region.frame << 7) + (slot << 1)
        parts[half] = (have | here) & ~(here << 4)
        frame.stack[slot] = (parts[0], parts[1])


def need_writable(path: Path, pointer: Pointer, least: int, most: int, partly: bool) -> None:
    """Check that a helper may write where a pointer points, and change the path's stack likewise.

    Args:
        path: the path.
        pointer: where the helper writes.
        least: bytes that are initialised afterwards.
        most: bytes that the helper writes at most.
        partly: True where the helper may leave some of these as they were: bytes that were not
            initialised count as zero, and the facts tell the engines to clear them.

    Raises:
        ProgramError: the bytes are not all in the region, or it is read-only, or a dynptr is
            there.
    """
    low, high = inside(path, pointer, 0, most, True)
    if pointer.region.kind != STACK:
        return
    if partly:
        path.clear(pointer.region.frame, -low)
    write_unknown(path, pointer.region, low, high + most, low + least if low == high else None)


# ---- dynptrs


def dynptr_in(cell: Cell | None) -> bool:
    """Return True where a stack slot is half of a dynptr."""
    return isinstance(cell, Pointer) and cell.region.kind == DYNPTR


def overwrite(path: Path, cell: Cell | None) -> None:
    """Prepare for new contents of a stack slot: forget the dynptr that the old ones belong to.

    Args:
        path: the path.
        cell: contents of the slot; None: nothing was written to it.

    Raises:
        ProgramError: `cell` is half of a dynptr whose record is held.
    """
    if isinstance(cell, Pointer) and cell.region.kind == DYNPTR:
        if cell.region in path.state.held:
            raise path.refuse(
                "overwrites a dynptr whose record is held",
                "call bpf_ringbuf_submit_dynptr() or bpf_ringbuf_discard_dynptr() before",
            )
        path.state.forget(cell.region)


def _dynptr_slot(path: Path, pointer: Pointer, name: str) -> int:
    """Return the number of the stack slot (0 to 63) where a dynptr begins, or is to be made.

    Args:
        path: the path with the call.
        pointer: the helper's argument.
        name: names the argument in the error.

    Raises:
        ProgramError: the argument does not point at 16 bytes of the stack at a known offset.
    """
    low, _ = inside(path, pointer, 0, 16, True)
    if pointer.region.kind != STACK or pointer.offset.mask or low % 8:
        raise path.refuse(
            f"{name} is a dynptr, but {pointer} is given",
            "declare it as a variable: struct bpf_dynptr ptr",
        )
    return low + 512 >> 3


def need_room_for_dynptr(path: Path, pointer: Pointer, name: str) -> None:
    """Check that a helper may make a dynptr where a pointer points; one that is there is forgotten.

    Args:
        path: the path with the call.
        pointer: the helper's argument.
        name: names the argument in the error.

    Raises:
        ProgramError: the argument does not point at 16 bytes of the stack at a known offset, or
            points at a dynptr whose record is held.
    """
    slot = _dynptr_slot(path, pointer, name)
    stack = path.state.frames[pointer.region.frame].stack
    for one in (slot, slot + 1):
        overwrite(path, stack.get(one))


def make_dynptr(path: Path, pointer: Pointer, dynptr: MemoryRegion) -> None:
    """Put a dynptr into the two stack slots that a pointer points at.

    Called after need_room_for_dynptr() has checked them.

    Args:
        path: the path with the call.
        pointer: the helper's argument.
        dynptr: the dynptr, a region.
    """
    frame = pointer.region.frame
    slot = pointer.offset.smin + 512 >> 3
    stack = path.state.frames[frame].stack
    stack[slot] = Pointer(dynptr, const(0))
    stack[slot + 1] = Pointer(dynptr, const(8))
    path.writes |= 15 << (frame << 7) + (slot << 1)


def dynptr_at(path: Path, pointer: Pointer, name: str) -> MemoryRegion:
    """Return the dynptr that a pointer points at the beginning of, and note that it is read.

    Args:
        path: the path with the call.
        pointer: the helper's argument.
        name: names the argument in the error.

    Raises:
        ProgramError: no dynptr begins there.
    """
    slot = _dynptr_slot(path, pointer, name)
    frame = pointer.region.frame
    path.reads |= (15 << (frame << 7) + (slot << 1)) & ~path.writes
    cell = path.state.frames[frame].stack.get(slot)
    if not isinstance(cell, Pointer) or cell.region.kind != DYNPTR or cell.offset.value:
        raise path.refuse(
            f"{name} is a dynptr, and none was made at {pointer}",
            "make it with bpf_dynptr_from_mem() or bpf_ringbuf_reserve_dynptr(); what was "
            "submitted or discarded is none any more",
        )
    return cell.region


# ---- atomic operations


def atomic(path: Path, pointer: Pointer, offset: int, size: int) -> Scalar:
    """Check an atomic operation, change the path's stack as it does, and return the old value.

    Args:
        path: the path.
        pointer: value of the register with the address.
        offset: bytes that the instruction adds.
        size: bytes: 4 or 8.

    Returns:
        The memory's old value: any number of `size` bytes, zero-extended.

    Raises:
        ProgramError: the access is not allowed, or the memory holds a pointer, or is not
            initialised.
    """
    if pointer.region.kind not in (STACK, VALUE, RECORD, SLICE) and not pointer.region.plain:
        raise path.refuse(
            f"an atomic operation on {NAMES[pointer.region.kind]}",
            "they work on stack, map values and records",
        )
    low, high = access(path, pointer, offset, size, True, aligned=True)
    if pointer.region.kind == STACK:
        if low == high:
            if isinstance(_of_stack(path, pointer.region.frame, low, size), Pointer):
                raise path.refuse("an atomic operation on a pointer", "store it as a whole")
            _to_stack(path, pointer.region.frame, low, size, between(0, (1 << 8 * size) - 1))
        else:
            need_written(path, pointer.region, low, high + size)
            write_unknown(path, pointer.region, low, high + size)
    return between(0, (1 << 8 * size) - 1)
