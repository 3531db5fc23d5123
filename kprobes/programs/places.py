"""Finds what registers point at, as far as it is known without running the program.

Compilers ask before they emit an access. It is a forward walk over each function, and decides
nothing about safety, which is the verifier's: it tells a register that certainly holds the
context's address plus a constant, a frame's end plus a constant, a map or a function from one that
holds something else.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from attrs import evolve, field, frozen

from . import isa
from .isa import Instruction


class PlaceKind(enum.Enum):
    """Kinds of what a register points at."""

    OTHER = enum.auto()  #: a number, or a pointer into anything but the context
    CONTEXT = enum.auto()
    FRAME = enum.auto()  #: the end of this function's stack frame
    MAP = enum.auto()  #: offset: its index
    FUNCTION = enum.auto()  #: offset: its first slot
    MIXED = enum.auto()  #: perhaps the context, by one way here but not by another


@frozen
class PointedPlace:
    """Knowledge about a register's value.

    Attributes:
        kind: what it points at.
        offset: bytes from there; for MAP the map's index, for FUNCTION its first slot.
    """

    kind: PlaceKind
    offset: int = 0


OTHER = PointedPlace(PlaceKind.OTHER)
MIXED = PointedPlace(PlaceKind.MIXED)
_MOVABLE = (PlaceKind.CONTEXT, PlaceKind.FRAME)
Row = tuple[PointedPlace, ...]  # of r0 .. r10


@frozen
class Places:
    """The places that registers point at, in a whole program.

    Attributes:
        functions: first slot of each function that can be reached -> the slots that can be reached
            in it, in order.
        rows: slot -> what r0 .. r10 point at before it.
        escapes: True where the context's address is used for more than loads at constant offsets
            and as a helper's argument, so there must be memory behind it.
    """

    functions: dict[int, tuple[int, ...]]
    rows: dict[int, Row]
    escapes: bool

    def at(self, pc: int, register: int) -> PointedPlace:
        """Return what a register points at before an instruction.

        Args:
            pc: slot of the instruction.
            register: number of the register.
        """
        return self.rows[pc][register]


@frozen
class _FunctionWalk:
    """The walk over all functions of a program.

    Attributes:
        code: the program.
        entries: first slot of a function -> what r0 .. r10 point at where it is called.
        rows: function -> slot -> what r0 .. r10 point at before it.
        todo: functions that are to be walked, again where they are called in another way.
        escapes: slots where the context's address is used as any other number.
    """

    code: tuple[Instruction, ...]
    entries: dict[int, Row] = field(factory=dict)
    rows: dict[int, dict[int, Row]] = field(factory=dict)  # function -> slot -> row
    todo: list[int] = field(factory=list)
    escapes: list[int] = field(factory=list)

    def enter(self, function: int, row: Row) -> None:
        """Note what registers point at where a function is entered.

        Where that is not known yet, it is joined to `entries`, and the function is put on `todo`.

        Args:
            function: the function's first slot.
            row: what r0 .. r10 point at as it is entered.
        """
        known = self.entries.get(function)
        met = row if known is None else _meet(known, row)
        if met != known:
            self.entries[function] = met
            self.todo.append(function)

    def function(self, entry: int) -> None:
        """Fill `rows` for one function: walk it until nothing changes any more.

        Functions that it calls are added to `entries` and `todo`, and uses of the context's address
        to `escapes`.

        Args:
            entry: the function's first slot, which `entries` has.
        """
        rows = self.rows.setdefault(entry, {})
        todo = [(entry, self.entries[entry])]
        while todo:
            pc, row = todo.pop()
            known = rows.get(pc)
            met = row if known is None else _meet(known, row)
            if met == known:
                continue
            rows[pc] = met
            i = self.code[pc]
            after = self._after(pc, i, met)
            todo.extend((to, after) for to in successors(self.code, pc))

    def _after(self, pc: int, i: Instruction, row: Row) -> Row:
        """Return what r0 .. r10 point at behind an instruction.

        Adds to `entries` and `todo` what it calls, and to `escapes` uses of the context's address.

        Args:
            pc: slot of the instruction.
            i: the instruction.
            row: what r0 .. r10 point at before it.
        """
        if i.op == isa.CALL and i.cls == isa.JMP:
            return self._call(pc, i, row)
        if i.cls in (isa.STX, isa.LDX):
            self._access(pc, i, row)
        if i.cls in (isa.ALU, isa.ALU64, isa.LDX) or i.wide:
            return _put(row, i.dst, self._result(pc, i, row))
        if i.cls == isa.STX and i.mode == isa.ATOMIC and i.imm & isa.FETCH:
            return _put(row, 0 if i.imm == isa.CMPXCHG else i.src, OTHER)
        return row

    def _access(self, pc: int, i: Instruction, row: Row) -> None:
        """Note in `escapes` an access that stores the context's address, or may go through it.

        That is: the register whose value is stored points at the context, or may (MIXED); or the
        register that the access goes through may point at the context or elsewhere (MIXED).

        Args:
            pc: slot of the instruction.
            i: the load or store.
            row: what r0 .. r10 point at before the instruction.
        """
        stored = i.cls == isa.STX and row[i.src].kind in (PlaceKind.CONTEXT, PlaceKind.MIXED)
        if stored or row[i.src if i.cls == isa.LDX else i.dst].kind is PlaceKind.MIXED:
            self.escapes.append(pc)

    def _result(self, pc: int, i: Instruction, row: Row) -> PointedPlace:
        """Return what the result of an arithmetic instruction, a load or LDDW points at.

        Arithmetic that uses the context's address as any number is noted in `escapes`.

        Args:
            pc: slot of the instruction.
            i: the instruction.
            row: what r0 .. r10 point at before it.
        """
        if i.wide:
            return _loaded(pc, i)
        if i.cls == isa.LDX:
            return OTHER
        old = row[i.dst]
        new = row[i.src] if i.by_register and i.op != isa.END else OTHER
        if i.cls == isa.ALU64 and i.op == isa.MOV and i.by_register and not i.offset:
            return new
        if (
            i.cls == isa.ALU64
            and i.op in (isa.ADD, isa.SUB)
            and not i.by_register
            and old.kind in _MOVABLE
        ):
            return evolve(old, offset=old.offset + (i.imm if i.op == isa.ADD else -i.imm))
        used = (new,) if i.op == isa.MOV else (old, new)
        if any(place.kind in (PlaceKind.CONTEXT, PlaceKind.MIXED) for place in used):
            self.escapes.append(pc)
        return OTHER

    def _call(self, pc: int, i: Instruction, row: Row) -> Row:
        """Return what r0 .. r10 point at behind a call.

        Notes what a local function, or a helper's callback, is entered with; and in `escapes` the
        calls that give an address in the context away.

        Args:
            pc: slot of the call.
            i: the call.
            row: what r0 .. r10 point at before it.
        """
        arguments = row[1:6]
        if i.is_local_call:
            passed = tuple(
                p if p.kind in (PlaceKind.CONTEXT, PlaceKind.MIXED, PlaceKind.MAP) else OTHER
                for p in arguments
            )
            self.enter(i.target(pc), (OTHER, *passed, *(OTHER,) * 4, PointedPlace(PlaceKind.FRAME)))
        elif any(
            p.kind is PlaceKind.MIXED or (p.kind is PlaceKind.CONTEXT and p.offset)
            for p in arguments
        ):
            self.escapes.append(pc)
        for place in arguments:
            # a callback: what it gets is the helper's business
            if place.kind is PlaceKind.FUNCTION:
                self.enter(place.offset, (OTHER, *(OTHER,) * 9, PointedPlace(PlaceKind.FRAME)))
                self.escapes.extend(pc for p in arguments if p.kind is PlaceKind.CONTEXT)
        return (*(OTHER,) * 6, *row[6:])


def find(code: tuple[Instruction, ...]) -> Places:
    """Find what registers point at, at each slot of a program; r1 is the context at slot 0.

    Args:
        code: the program's instructions, one for each slot.

    Raises:
        IndexError: a jump leaves the program.
    """
    walk = _FunctionWalk(code)
    walk.enter(
        0, (OTHER, PointedPlace(PlaceKind.CONTEXT), *(OTHER,) * 8, PointedPlace(PlaceKind.FRAME))
    )
    while walk.todo:
        walk.function(walk.todo.pop())
    functions = {entry: tuple(sorted(rows)) for entry, rows in walk.rows.items()}
    return Places(
        functions,
        {pc: row for rows in walk.rows.values() for pc, row in rows.items()},
        bool(walk.escapes),
    )


def successors(code: tuple[Instruction, ...], pc: int) -> tuple[int, ...]:
    """Return the slots where control may go from an instruction, within its function.

    Args:
        code: the program.
        pc: slot of the instruction.
    """
    i = code[pc]
    if i.is_exit:
        return ()
    after = pc + (2 if i.wide else 1)
    if not i.is_jump:
        return (after,)
    return (after, i.target(pc)) if i.is_conditional else (i.target(pc),)


def _loaded(pc: int, i: Instruction) -> PointedPlace:
    """Return what the value that an LDDW loads points at: a map, a function, or OTHER.

    Args:
        pc: slot of the instruction.
        i: the instruction.
    """
    kinds: Mapping[int, PointedPlace] = {
        isa.MAP: PointedPlace(PlaceKind.MAP, i.imm),
        isa.CODE: PointedPlace(PlaceKind.FUNCTION, i.target(pc)),
    }
    return kinds.get(i.src, OTHER)


def _put(row: Row, register: int, place: PointedPlace) -> Row:
    """Return a row in which a register points at another place.

    Args:
        row: what r0 .. r10 point at.
        register: number of the register.
        place: what it points at now.
    """
    return (*row[:register], place, *row[register + 1 :])


def _meet(one: Row, other: Row) -> Row:
    """Return what r0 .. r10 point at where two paths come together.

    Args:
        one: what they point at on the first path.
        other: what they point at on the second.
    """
    return tuple(map(_either, one, other))


def _either(a: PointedPlace, b: PointedPlace) -> PointedPlace:
    """Return what a register points at where it points at `a` on one path and `b` on another.

    MIXED where one of both is, or may be, the context; OTHER where they differ otherwise.
    """
    if a == b:
        return a
    return OTHER if {PlaceKind.CONTEXT, PlaceKind.MIXED}.isdisjoint((a.kind, b.kind)) else MIXED
