"""The state at a point of a path: registers and stacks of all frames, and the records that are
held.

A register or stack slot holds a `Scalar`, a `Pointer`, or None (nothing was written). Copies are
identical objects: see `scalar`.
"""

from __future__ import annotations

from typing import Final

from ..maps import Map
from .alu import add
from .scalar import M64, SIGN, Scalar, common, const

CTX: Final = "ctx"
STACK: Final = "stack"
MAP: Final = "map"  # the map itself: helpers take it
VALUE: Final = "map value"
RECORD: Final = "record"  # of a ring buffer
DYNPTR: Final = "dynptr"  # the 16 bytes of one on the stack: two slots hold pointers to it
SAMPLE: Final = "sample"  # a user ring's, which a callback gets as a dynptr
SLICE: Final = "slice"  # data of a dynptr

#: what a person calls them
NAMES: Final = {
    CTX: "the context",
    STACK: "the stack",
    MAP: "a map",
    VALUE: "a map value",
    RECORD: "a ring buffer's record",
    DYNPTR: "a dynptr",
    SAMPLE: "a dynptr",
    SLICE: "a dynptr's data",
}


class MemoryRegion:
    """A piece of memory that pointers point into, as the verifier knows it.

    Each look-up in a map gives a region of its own, though two may be of one value.

    Attributes:
        kind: CTX, STACK, MAP, VALUE, RECORD, DYNPTR, SAMPLE or SLICE.
        low: offset of the first byte that may be accessed.
        high: offset behind the last one.
        writable: True where programs may write it.
        map: the map, of MAP, VALUE and RECORD, of a DYNPTR of a ring and of SAMPLE; None of others.
        frame: number of the frame from 0, of STACK.
        plain: True for a context that is memory as any other, in a test run.
        of: the DYNPTR or SAMPLE whose data a SLICE is, or that a clone (DYNPTR) ends with;
            None of others.
    """

    __slots__ = ("frame", "high", "kind", "low", "map", "of", "plain", "writable")

    def __init__(
        self,
        kind: str,
        low: int,
        high: int,
        writable: bool,
        map: Map | None = None,
        frame: int = 0,
        plain: bool = False,
        of: MemoryRegion | None = None,
    ) -> None:
        """Make a region.

        Args:
            kind: CTX, STACK, MAP, VALUE, RECORD, DYNPTR, SAMPLE or SLICE.
            low: offset of the first byte that may be accessed.
            high: offset behind the last one.
            writable: True where programs may write it.
            map: the map, of MAP, VALUE and RECORD, of a DYNPTR of a ring and of SAMPLE.
            frame: number of the frame from 0, of STACK.
            plain: True for a context that is memory as any other, in a test run.
            of: the DYNPTR or SAMPLE whose data a SLICE is, or that a DYNPTR ends with.
        """
        self.kind = kind
        self.low = low
        self.high = high
        self.writable = writable
        self.map = map
        self.frame = frame
        self.plain = plain
        self.of = of

    def ends_with(self, other: MemoryRegion) -> bool:
        """Return True where nothing may be accessed by this region any more when the other has
        ended.
        """
        region: MemoryRegion | None = self
        while region is not None and region is not other:
            region = region.of
        return region is not None

    def like(self, other: MemoryRegion) -> bool:
        """Return True where two regions have the same kind, map, frame and bounds."""
        return (
            self.kind == other.kind
            and self.map is other.map
            and self.frame == other.frame
            and self.high == other.high
            and self.low == other.low
        )


class Pointer:
    """The value of a register or stack slot that is an address.

    Attributes:
        region: the memory that it points into.
        offset: signed, from where the region begins; in a STACK, from r10.
        null: True where it may be 0 instead.
    """

    __slots__ = ("null", "offset", "region")

    def __init__(self, region: MemoryRegion, offset: Scalar, null: bool = False) -> None:
        """Make an address.

        Args:
            region: the memory that it points into.
            offset: signed, from where the region begins; in a STACK, from r10.
            null: True where it may be 0 instead.
        """
        self.region = region
        self.offset = offset
        self.null = null

    def __str__(self) -> str:
        return f"{NAMES[self.region.kind]} + {self.offset}{' or null' if self.null else ''}"


Value = Scalar | Pointer
#: half of a stack slot: a scalar of 4 bytes; or a bit for each byte that is initialised, and << 4
#: for each that was a pointer's
Half = Scalar | int
#: a stack slot, 8 bytes: one value, or halves by address
Cell = Scalar | Pointer | tuple[Half, Half]
START: Final = const(0)
WRITTEN: Final = 15  # all bytes of a half
POINTERS: Final = 0xF0
EMPTY: Final = (0, 0)


class ProgramFrame:
    """Knowledge about the registers and the stack of one active function.

    Attributes:
        start: the function's first slot.
        back: slot where its caller goes on.
        regs: values of r0 .. r10; None: nothing was written to the register.
        stack: stack slot, 8 bytes each -> contents; slot 63 is the 8 bytes below r10. Slots that
            nothing was written to are left out.
    """

    __slots__ = ("back", "regs", "stack", "start")

    def __init__(
        self, start: int, back: int, regs: list[Value | None], stack: dict[int, Cell]
    ) -> None:
        """Make a frame.

        Args:
            start: the function's first slot.
            back: slot where its caller goes on.
            regs: values of r0 .. r10.
            stack: slot -> contents; slot 63 is the 8 bytes below r10.
        """
        self.start = start
        self.back = back
        self.regs = regs
        self.stack = stack

    def copy(self) -> ProgramFrame:
        """Return a copy: what changes in it does not change this frame."""
        return ProgramFrame(self.start, self.back, self.regs.copy(), self.stack.copy())


class PathState:
    """Knowledge at a point of a path: registers, stacks, and records that are held.

    Attributes:
        frames: frames of the active functions, callers first.
        held: records that are reserved and not yet submitted, discarded or found NULL; dynptrs of
            such records, and samples that are not yet given back.
        regs: the registers of the last frame.
    """

    __slots__ = ("frames", "held", "regs")

    def __init__(self, frames: list[ProgramFrame], held: tuple[MemoryRegion, ...]) -> None:
        """Make a state.

        Args:
            frames: frames of the active functions, callers first.
            held: records that are reserved and not yet submitted, discarded or found NULL.
        """
        self.frames = frames
        self.held = held
        self.regs = frames[-1].regs

    def copy(self) -> PathState:
        """Return a copy: what changes in it does not change this state."""
        return PathState([f.copy() for f in self.frames], self.held)

    def replace(self, old: Value, new: Value | None) -> None:
        """Replace every copy of a value, in registers and stack slots of all frames.

        Args:
            old: the value, by identity.
            new: what is there from now on; None: nothing is, as where the memory that a pointer
                points at was given back.
        """
        for frame in self.frames:
            regs, stack = frame.regs, frame.stack
            for i, value in enumerate(regs):
                if value is old:
                    regs[i] = new
            for slot, cell in stack.items():
                if cell is old:
                    stack[slot] = (POINTERS, POINTERS) if new is None else new
                elif (
                    type(cell) is tuple
                    and (cell[0] is old or cell[1] is old)
                    and isinstance(new, Scalar)
                ):
                    stack[slot] = (
                        new if cell[0] is old else cell[0],
                        new if cell[1] is old else cell[1],
                    )

    def learn(self, old: Scalar, new: Scalar) -> None:
        """Replace a scalar, its copies and its relatives by what a comparison has told of them.
        Relatives are numbers, and offsets of pointers, that differ from it by a constant.

        Args:
            old: the scalar.
            new: the same number, as it is known now.
        """
        if new is old or not old.mask:
            return
        root, known = old.root, {old: new}
        if root is None:
            self.replace(old, new)
            return
        if new.mask:
            new.root = new
            new.delta = 0
        for value in {
            v for f in self.frames for cell in (*f.regs, *f.stack.values()) for v in _parts(cell)
        }:
            if isinstance(value, Scalar) and value.root is root:
                self.replace(value, _moved(known, value, old, new))
            elif isinstance(value, Pointer) and value.offset.root is root:
                self.replace(
                    value, Pointer(value.region, _moved(known, value.offset, old, new), value.null)
                )

    def forget(self, region: MemoryRegion) -> None:
        """Take a region off `held`, and replace all pointers to it, and into a dynptr's data, by
        None; in stack slots, by bytes that were a pointer's.

        Called where a record was submitted, discarded or found NULL, or a dynptr is none any more.

        Args:
            region: the record or dynptr.
        """
        self.held = tuple(r for r in self.held if r is not region)
        for frame in self.frames:
            for value in {*frame.regs, *frame.stack.values()}:
                if isinstance(value, Pointer) and value.region.ends_with(region):
                    self.replace(value, None)


def _parts(cell: Cell | int | None) -> tuple[Cell | int | None, ...]:
    """Return the contents of a register or stack slot as a tuple: one value, or two halves."""
    return cell if isinstance(cell, tuple) else (cell,)


def _moved(known: dict[Scalar, Scalar], value: Scalar, old: Scalar, new: Scalar) -> Scalar:
    """Return what is known of a relative of a scalar, now that the scalar is known better.

    Args:
        known: scalar -> what it has become, so that copies stay one object; it is filled.
        value: the relative: it has the root of `old`.
        old: the scalar as it was.
        new: the same, as it is known now.
    """
    if value not in known:
        by = value.delta - old.delta & M64
        there = add(new, const(by))
        known[value] = common(value, there) or there
        known[value].relate(new, by)
    return known[value]


def signed(number: int) -> int:
    """Return the signed number (two's complement) that 64 bits mean."""
    return (number & M64 ^ SIGN) - SIGN


def halves(cell: Cell | None, order: str) -> tuple[Half, Half]:
    """Return (half at the lower address, half at the higher) of a stack slot.

    A half is a constant of 4 bytes where the slot has a constant; otherwise bits that say which of
    the half's bytes are initialised (bits 0 to 3) or were a pointer's (bits 4 to 7).

    Args:
        cell: the slot's contents; None: nothing was written to it; a pair of halves is returned as
            it is.
        order: the program's byte order, "little" or "big".
    """
    if cell is None:
        return EMPTY
    if isinstance(cell, tuple):
        return cell
    if isinstance(cell, Pointer):
        return POINTERS, POINTERS
    if cell.mask:
        return WRITTEN, WRITTEN
    low = const(cell.value & 0xFFFF_FFFF)
    high = const(cell.value >> 32)
    return (low, high) if order == "little" else (high, low)


def bits(half: Half) -> int:
    """Return a mask for half a stack slot: bit n where byte n is initialised, bit 4 + n where it
    was a pointer's.
    """
    return half if isinstance(half, int) else WRITTEN


def _family(a: Scalar) -> int:
    """Return a number that a scalar, its copies and its relatives have in common, and no other."""
    return id(a if a.root is None else a.root)


class Match:
    """A comparison of two states: may a path go on from one only as paths may go on from the other?

    A value is a *case* of another if all that it may be is something that the other may be. What
    was verified for the state `old` holds for `new` if each value of `new` is a case of the one in
    `old`, copies in `old` are copies in `new`, and pointers that point into one region in `old` do
    so in `new`. An object is used for one comparison: it remembers which regions and copies
    correspond.
    """

    def __init__(self) -> None:
        """Begin a comparison in which nothing corresponds yet."""
        self._copies: dict[int, tuple[Scalar, Scalar]] = {}
        self._nulls: dict[int, Pointer] = {}
        self._loose: list[tuple[Scalar, Scalar]] = []
        self._regions: dict[int, MemoryRegion] = {}

    def value(self, old: Value | None, new: Value | None, exact: bool = True) -> bool:
        """Return True where a value may be a case of another.

        Args:
            old: the one that was verified; None: nothing was written there.
            new: the other one.
            exact: False where it only matters that the value is a number; rest() looks at its
                copies then.
        """
        if old is None:
            return True
        if isinstance(old, Scalar):
            if not isinstance(new, Scalar):
                return False
            if not exact:
                if old.mask:
                    self._loose.append((old, new))
                return True
            if not old.mask:
                return not new.mask and new.value == old.value
            return (old is new or old.contains(new)) and self._copy(old, new)
        return isinstance(new, Pointer) and self._pointer(old, new)

    def _copy(self, old: Scalar, new: Scalar) -> bool:
        """Return True where scalars that are copies or relatives of `old` are so of `new`.

        Args:
            old: a scalar of the verified state.
            new: the scalar in its place in the other state.
        """
        first_old, first = self._copies.setdefault(_family(old), (old, new))
        by = old.delta - first_old.delta & M64
        if not first.mask and not new.mask:
            return new.value - first.value & M64 == by
        if first is new:
            return not by
        return (
            new.root is not None and first.root is new.root and new.delta - first.delta & M64 == by
        )

    def _pointer(self, old: Pointer, new: Pointer) -> bool:
        """Return True where a pointer may be a case of another.

        Offsets and regions must match. A pointer that cannot be NULL may be a case of one that may
        be, but for records and samples, which have to be given back.

        Args:
            old: the pointer of the verified state.
            new: the pointer in its place in the other state.
        """
        if old.null != new.null and not (old.null and new.region.kind not in (RECORD, SAMPLE)):
            return False
        a, b = old.offset, new.offset
        if a is not b and not a.contains(b):
            return False
        return (
            self.region(old.region, new.region)
            and (not a.mask or self._copy(a, b))
            and (not old.null or self._nulls.setdefault(id(old), new) is new)
        )

    def region(self, old: MemoryRegion, new: MemoryRegion) -> bool:
        """Return True where two regions may correspond; from then on they do.

        Args:
            old: the region of the verified state.
            new: the one in its place in the other state.
        """
        if old.of is not None and (new.of is None or not self.region(old.of, new.of)):
            return False
        return old.like(new) and self._regions.setdefault(id(old), new) is new

    def rest(self, old: tuple[MemoryRegion, ...], new: tuple[MemoryRegion, ...]) -> bool:
        """Return True where the reserved records of both states correspond.

        Called after all values match. Numbers of which only mattered that they are numbers are
        compared now where they have copies that matter: what a branch tells of a copy holds for
        them, too.

        Args:
            old: the records of the verified state.
            new: those of the other state.
        """
        return (
            len(old) == len(new)
            and all(self.region(a, b) for a, b in zip(old, new, strict=True))
            and all(self._copy(a, b) for a, b in self._loose if _family(a) in self._copies)
        )

    def cell(self, old: Cell | None, new: Cell | None, order: str) -> bool:
        """Return True where a stack slot may be a case of another.

        Whole values are compared as value() does it; else by halves: bytes that are written in
        `old` must be in `new`, and `new` may have parts of pointers only where `old` has.

        Args:
            old: the slot's contents in the verified state; None: nothing was written to it.
            new: its contents in the other state.
            order: the program's byte order.
        """
        if old is None and new is None:
            return True
        if isinstance(old, Pointer):
            return isinstance(new, Pointer) and self.value(old, new)
        if isinstance(old, Scalar) and isinstance(new, Scalar):
            return self.value(old, new)
        if isinstance(old, Scalar) and old.mask:
            return False
        return all(map(self._half, halves(old, order), halves(new, order)))

    def _half(self, old: Half, new: Half) -> bool:
        """Return True where half of a stack slot, `new`, may be a case of another, `old`."""
        if isinstance(old, Scalar):
            return isinstance(new, Scalar) and self.value(old, new)
        new = bits(new)
        return not old & WRITTEN & ~new and not new & POINTERS & ~old
