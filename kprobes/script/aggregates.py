"""Code for `count()`, `hist()` and their like: values of maps that are changed in place.

`g` writes the program; when the code here runs, r7 points at the map's value, and r0 is the
argument of the call.
"""

from __future__ import annotations

from typing import Final

from . import layout, tree, types
from .blocks import BlockWriter
from .inference import MapFacts
from .storage import FLAG

_POINTER: Final = 7
#: bytes from a total to its count, or from an extreme to the word that says it is one
_OFF: Final = 8


def update(
    g: BlockWriter, target: tree.MapName | tree.MapAccess, facts: MapFacts, value: tree.Expression
) -> None:
    """Write `@x[key] = count()` and its like: code that finds or makes the map's entry and changes
    it.

    Where the map is full, the code warns Python and changes nothing.

    Args:
        g: writes the program.
        target: the map, or its entry.
        facts: the map.
        value: the call; or a block that ends in one.
    """
    asm, kind = g.asm, facts.value
    skip = asm.label()
    if isinstance(value, tree.BlockExpression):
        for statement in value.statements:
            g.statement(statement)
        assert value.value is not None
        value = value.value
    arguments = value.arguments if isinstance(value, tree.FunctionCall) else []
    place = None
    if arguments:
        g.number(arguments[0])
        place = g.push()
    g.entry(target, facts, skip)
    if place is not None:
        asm.load(0, 10, place, 8)
    if isinstance(kind, types.CountType):
        asm.load(1, _POINTER, 0, 8)
        asm.compute_with("+", 1, 1)
        asm.store(_POINTER, 0, 1, 8)
    elif isinstance(kind, types.SumType):
        _add(g, 0)
    elif isinstance(kind, (types.AverageType, types.StatsType)):
        _add(g, 0)
        asm.load(1, _POINTER, _OFF, 8)
        asm.compute_with("+", 1, 1)
        asm.store(_POINTER, _OFF, 1, 8)
    elif isinstance(kind, (types.MinimumType, types.MaximumType)):
        _extreme(g, kind)
    elif isinstance(kind, types.HistogramType):
        _log2(g, kind)
    elif isinstance(kind, types.LinearHistogramType):
        _linear(g, kind)
    else:
        assert isinstance(kind, types.TimeSeriesType)
        _series(g, kind)
    asm.place(skip)
    if place is not None:
        g.pop(place, 0)


def _add(g: BlockWriter, offset: int) -> None:
    """Write code that adds r0 to a word of the value.

    Args:
        g: writes the program.
        offset: bytes from the value's beginning to the word.
    """
    g.asm.load(1, _POINTER, offset, 8)
    g.asm.compute("+", 1, 0)
    g.asm.store(_POINTER, offset, 1, 8)


def _extreme(g: BlockWriter, kind: types.MinimumType | types.MaximumType) -> None:
    """Write code that stores r0 as the new extreme, where r0 is below the minimum or above the
    maximum.

    The first number is always stored. With a number that is stored, the value's second word becomes
    1: there is a number.

    Args:
        g: writes the program.
        kind: minimum or maximum, and whether numbers are signed.
    """
    asm = g.asm
    keep = asm.label()
    done = asm.label()
    asm.load(1, _POINTER, _OFF, 8)
    asm.jump_if_number("==", 1, 0, keep)
    asm.load(1, _POINTER, 0, 8)
    condition = "<" if isinstance(kind, types.MinimumType) else ">"
    asm.jump_if(f"s{condition}" if kind.signed else condition, 0, 1, keep)
    asm.jump(done)
    asm.place(keep)
    asm.store(_POINTER, 0, 0, 8)
    asm.store_number(_POINTER, _OFF, 1, 8)
    asm.place(done)


def _log2(g: BlockWriter, kind: types.HistogramType) -> None:
    """Write code that adds 1 to the row of r0 in a histogram by powers of two.

    Row 0 has the negative numbers. The bits below the highest are set, and counted, to find the
    power: no branch, so no paths to verify. r0 to r3 and r7 are overwritten.

    Args:
        g: writes the program.
        kind: the histogram: how many rows each power has.
    """
    asm, bits = g.asm, kind.bits
    negative = asm.label()
    row = asm.label()
    asm.jump_if_number("s<", 0, 0, negative)
    # r1: number of bits of (r0 | 1 << bits); r2: that less one and less `bits`, the power
    asm.move(1, 0)
    if bits:
        asm.compute_with("|", 1, 1 << bits)
    for distance in (1, 2, 4, 8, 16, 32):
        asm.move(2, 1)
        asm.compute_with(">>", 2, distance)
        asm.compute("|", 1, 2)
    _count_ones(g)
    if not bits:
        asm.compute_with("+", 1, 1)  # bucket i is row 1 + i; bucket: number of bits
    else:
        asm.compute_with("-", 1, 1 + bits)
        asm.compute(">>", 0, 1)
        asm.compute_with("<<", 1, bits)
        asm.compute("+", 1, 0)
        asm.compute_with("+", 1, 1)
    asm.jump(row)
    asm.place(negative)
    asm.set(1, 0)
    asm.place(row)
    _row(g, layout.rows(kind))


def _count_ones(g: BlockWriter) -> None:
    """Write code that replaces r1 by the number of its set bits; r2 and r3 are overwritten."""
    asm = g.asm
    asm.move(2, 1)
    asm.compute_with(">>", 2, 1)
    asm.set(3, 0x5555555555555555)
    asm.compute("&", 2, 3)
    asm.compute("-", 1, 2)
    asm.set(3, 0x3333333333333333)
    asm.move(2, 1)
    asm.compute_with(">>", 2, 2)
    asm.compute("&", 2, 3)
    asm.compute("&", 1, 3)
    asm.compute("+", 1, 2)
    asm.move(2, 1)
    asm.compute_with(">>", 2, 4)
    asm.compute("+", 1, 2)
    asm.set(3, 0x0F0F0F0F0F0F0F0F)
    asm.compute("&", 1, 3)
    asm.set(3, 0x0101010101010101)
    asm.compute("*", 1, 3)
    asm.compute_with(">>", 1, 56)


def _row(g: BlockWriter, rows: int) -> None:
    """Write code that adds 1 to row r1 of a histogram; beyond the last row it adds nothing.

    r0 is not used; r1 and r7 are overwritten.

    Args:
        g: writes the program.
        rows: how many rows there are, of 8 bytes each.
    """
    asm = g.asm
    out = asm.label()
    asm.jump_if_number(">=", 1, rows, out)
    asm.compute_with("<<", 1, 3)
    asm.compute("+", _POINTER, 1)
    asm.load(1, _POINTER, 0, 8)
    asm.compute_with("+", 1, 1)
    asm.store(_POINTER, 0, 1, 8)
    asm.place(out)


def _linear(g: BlockWriter, kind: types.LinearHistogramType) -> None:
    """Write code that adds 1 to the row of a linear histogram into which the number in r0 falls.

    Numbers are signed. Those below the limits fall into row 0, those from the upper limit on into
    the last; between them each row has `step` numbers; what is left below the upper limit, less
    than a step, falls into the last row, too.

    Args:
        g: writes the program.
        kind: the histogram: its limits and step.
    """
    asm = g.asm
    rows = (kind.high - kind.low) // kind.step + 2
    below = asm.label()
    above = asm.label()
    row = asm.label()
    asm.jump_if_number("s<", 0, kind.low, below)
    asm.jump_if_number("s>=", 0, kind.high, above)
    asm.move(1, 0)
    asm.compute_with("-", 1, kind.low)
    asm.compute_with("/", 1, kind.step)
    asm.compute_with("+", 1, 1)
    asm.jump(row)
    asm.place(below)
    asm.set(1, 0)
    asm.jump(row)
    asm.place(above)
    asm.set(1, rows - 1)
    asm.place(row)
    _row(g, rows)


def _series(g: BlockWriter, kind: types.TimeSeriesType) -> None:
    """Write code that adds r0 to the present interval of a time series; r0 is kept.

    The present interval's number is the time divided by the interval's length; its entry is that
    number modulo the count of intervals. An entry has four words: the interval's number plus 1,
    total or number, count, and the time of the last number, which only tests that give the time
    themselves look at. An entry of an older interval begins anew with r0 and a count of 1.

    Args:
        g: writes the program.
        kind: the series: its intervals, and what becomes of the numbers of one.
    """
    asm = g.asm
    place = g.push()
    _time(g)
    timed = bool(g.settings.dummy_ts_map)
    moment = g.push() if timed else 0
    asm.set(1, kind.interval)
    asm.compute("/", 0, 1)  # the interval's number
    asm.move(2, 0)
    asm.compute_with("%", 2, kind.intervals)
    out = asm.label()
    fresh = asm.label()
    same = asm.label()
    done = asm.label()
    asm.jump_if_number(">=", 2, kind.intervals, out)
    asm.compute_with("<<", 2, 5)
    asm.compute("+", _POINTER, 2)
    asm.compute_with("+", 0, 1)
    if timed:
        asm.load(1, 10, moment, 8)
        asm.store(_POINTER, 24, 1, 8)
    asm.load(1, _POINTER, 0, 8)
    asm.load(3, 10, place, 8)
    asm.jump_if("==", 1, 0, same)
    asm.store(_POINTER, 0, 0, 8)
    asm.jump(fresh)
    asm.place(same)
    asm.load(1, _POINTER, 8, 8)
    sign = "s" if kind.signed else ""
    if kind.aggregation in ("sum", "avg"):
        asm.compute("+", 1, 3)
        asm.store(_POINTER, 8, 1, 8)
    elif kind.aggregation in ("min", "max"):
        asm.jump_if(f"{sign}{'<' if kind.aggregation == 'max' else '>'}", 3, 1, done)
        asm.store(_POINTER, 8, 3, 8)
    else:
        asm.store(_POINTER, 8, 3, 8)
    asm.load(1, _POINTER, 16, 8)
    asm.compute_with("+", 1, 1)
    asm.store(_POINTER, 16, 1, 8)
    asm.jump(done)
    asm.place(fresh)
    asm.store(_POINTER, 8, 3, 8)
    asm.store_number(_POINTER, 16, 1, 8)
    asm.place(done)
    asm.place(out)
    if timed:
        g.pop(moment, 0)
    g.pop(place, 0)


def _time(g: BlockWriter) -> None:
    """Write code that loads the time in nanoseconds into r0.

    The setting dummy_ts_map, which tests use, names a map: where that is a map without keys that
    has a number, the number is the time instead.
    """
    name = g.settings.dummy_ts_map
    facts = g.typing.maps.get(name)
    if (
        facts is None
        or facts.value is None
        or name not in g.storage.scalars
        or not layout.is_number(facts.value)
    ):
        g.asm.call("ktime_get_ns")
        return
    bits, signed = layout.width(facts.value)
    g.point(0, g.storage.scalars[name].at(FLAG))
    g.asm.load(0, 0, 0, bits // 8, signed)


def read(g: BlockWriter, kind: types.ValueType) -> None:
    """Write code that loads into r0 the number that an aggregate at r7 counts as.

    Args:
        g: writes the program.
        kind: the aggregate; of an average the number is the mean, cut towards zero (0 of no
            numbers), of any other the first word.
    """
    asm = g.asm
    asm.load(0, _POINTER, 0, 8)
    if isinstance(kind, types.AverageType):
        done = asm.label()
        asm.load(1, _POINTER, _OFF, 8)
        asm.jump_if_number("==", 1, 0, done)
        if kind.signed:
            asm.divide_signed("/", 0, 1)
        else:
            asm.compute("/", 0, 1)
        asm.place(done)
