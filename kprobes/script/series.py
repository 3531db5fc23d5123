"""Time series of `tseries()`: which intervals are shown, the chart, and the JSON."""

import time
from collections.abc import Iterable, Mapping, Sequence

import attrs

from .histograms import single
from .types import TimeSeriesType

_BILLION = 1_000_000_000
_WIDTH = 53
#: Where the smallest and the greatest number stand above and below the chart.
_LEFT = 21
_UNITS = ((_BILLION, "s", 0), (1_000_000, "ms", 3), (1000, "μs", 6), (1, "ns", 9))


@attrs.frozen
class TimeUnit:
    """The unit of the times beside a chart.

    Attributes:
        nanoseconds: how long it is.
        name: `s`, `ms`, `μs` or `ns`.
        digits: digits of the fraction of a second.
    """

    nanoseconds: int
    name: str
    digits: int


def unit_of(nanoseconds: int) -> TimeUnit:
    """Return the greatest unit that is not longer than `nanoseconds`."""
    for size, name, digits in _UNITS:
        if nanoseconds >= size:
            return TimeUnit(size, name, digits)
    return TimeUnit(1, "ns", 9)


@attrs.frozen
class Points:
    """The part of a time series that is shown.

    Attributes:
        values: (start of an interval in nanoseconds, its number or None), in order, without
            gaps.
    """

    values: tuple[tuple[int, int | None], ...]


def last_start(series: Iterable[Mapping[int, int]]) -> int | None:
    """Return when the latest interval of all series of a map begins, in ns; None: they are empty.

    Args:
        series: for each key of the map, start of an interval in ns -> number.
    """
    return max((start for values in series for start in values), default=None)


def points(type: TimeSeriesType, values: Mapping[int, int], last: int | None) -> Points:
    """Return the part of a time series that is shown: each interval in it with its number or None.

    The part ends with the interval `last`, and has at most as many intervals as the type says. Of
    these, the ones before the first number are left out. It is empty where all have no number.

    Args:
        type: the series' type, which has the length and the number of the intervals.
        values: start of an interval in ns -> number.
        last: start of the latest interval of all series of the map, where the charts of all of
            them end; None: no series of the map has a number.
    """
    if last is None:
        return Points(())
    earliest = last - (type.intervals - 1) * type.interval
    kept = [start for start in values if earliest <= start <= last]
    if not kept:
        return Points(())
    starts = range(min(kept), last + 1, type.interval)
    return Points(tuple((start, values.get(start)) for start in starts))


def _clock(nanoseconds: int, unit: TimeUnit) -> str:
    """Return a time of day in the host's time zone, with as many digits of the second as the unit
    has.

    Args:
        nanoseconds: since 1970.
        unit: the unit.
    """
    seconds, rest = divmod(nanoseconds, _BILLION)
    text = time.strftime("%H:%M:%S", time.localtime(seconds))
    if not unit.digits:
        return text
    return f"{text}.{rest // unit.nanoseconds:0{unit.digits}}"


def _range(numbers: Sequence[int], signed: bool) -> tuple[int, int]:
    """Return (lowest, highest) of the chart: one below and one above where all numbers are equal.

    Args:
        numbers: what is shown.
        signed: True for signed numbers, which bound the result.
    """
    lowest = min(numbers)
    highest = max(numbers)
    if lowest != highest:
        return lowest, highest
    least = -(1 << 63) if signed else 0
    greatest = (1 << 63) - 1 if signed else (1 << 64) - 1
    return max(lowest - 1, least), min(highest + 1, greatest)


def _column(steps: int, distance: int, length: int) -> int:
    """Return steps * distance / length as an integer, cut, computed in single precision as bpftrace
    does.

    Args:
        steps: columns of the chart.
        distance: from the lowest number to the one that is shown.
        length: from the lowest number to the highest.
    """
    return int(single(single(steps * single(distance)) / single(length)))


def series_text(type: TimeSeriesType, shown: Points) -> str:
    """Return a chart with a line for each interval; `<no data>` where there are no numbers.

    A line has the time of day when its interval begins, a mark where its number lies between the
    lowest and the highest, and the number; `-` where it has none.

    Args:
        type: the series' type.
        shown: the intervals, each with its number or None.
    """
    numbers = [number for _, number in shown.values if number is not None]
    if not numbers:
        return "<no data>"
    lowest, highest = _range(numbers, type.signed)
    first, last = shown.values[0][0], shown.values[-1][0]
    unit = unit_of((last - first) // max(len(shown.values) - 1, 1))
    clock = "hh:mm:ss"
    width = len(clock)
    if unit.digits:
        clock += f".{unit.name}"
        width += 1 + unit.digits
    # The columns are counted in bytes: the Greek letter of microseconds takes two.
    clock += " " * (width + 1 - len(clock.encode()))
    margin = " " * (width + 1)
    ends = f"{lowest:<{_LEFT}}{highest:>{_WIDTH - _LEFT}}\n"
    lines = [f"{margin}{ends}", f"{clock}|{'_' * (_WIDTH - 2)}|\n"]
    zero = _column(_WIDTH, -lowest, highest - lowest) if lowest < 0 < highest else 0
    for start, number in shown.values:
        row = ["|", *" " * (_WIDTH - 2), "|"]
        if zero > 0:
            row[zero] = "."
        label = "-"
        if number is not None:
            column = _WIDTH // 2
            if highest != lowest:
                column = _column(_WIDTH - 1, number - lowest, highest - lowest)
            row[max(0, min(_WIDTH - 1, column))] = "*"
            label = str(number)
        lines.append(f"{_clock(start, unit)} {''.join(row)} {label}\n")
    lines.append(f"{margin}v{'_' * (_WIDTH - 2)}v\n")
    lines.append(f"{margin}{ends}")
    return "".join(lines)


def series_json(shown: Points) -> str:
    """Return a time series as a JSON array of objects, one for each interval that has a number.

    Args:
        shown: the intervals that are shown. Their times are written in UTC.
    """
    found = []
    for start, number in shown.values:
        if number is None:
            continue
        seconds, rest = divmod(start, _BILLION)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{rest:09}"
        found.append(f'{{"interval_start":"{moment}","value":{number}}}')
    return "[" + ",".join(found) + "]"
