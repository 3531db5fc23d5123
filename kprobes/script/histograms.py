"""Histograms of `hist()` and `lhist()`: which rows are shown, as text and as JSON."""

import struct
from collections.abc import Sequence

import attrs

from .printing import json_number
from .types import HistogramType, LinearHistogramType

_WIDTH = 52
_MASK = (1 << 64) - 1
_SUFFIXES = ("", "K", "M", "G", "T", "P", "E")


def single(number: float) -> float:
    """Return a number rounded to single precision, in which bpftrace computes the length of
    bars.
    """
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded


@attrs.frozen
class Bound:
    """An end of a row.

    Attributes:
        number: the bound.
        label: how it is written; equal to the number, or with a suffix such as K.
        plain: True if the label is only the number. Two plain bounds that differ by one are
            shown as one number.
    """

    number: int
    label: str
    plain: bool


@attrs.frozen
class Rows:
    """The part of a histogram that is shown.

    Attributes:
        lower: where the first row begins; None if it has no beginning.
        upper: where each row ends, exclusively. One fewer than rows if the last has no end.
        counts: how many numbers fell in each row.
    """

    lower: Bound | None
    upper: tuple[Bound, ...]
    counts: tuple[int, ...]


def _plain(number: int) -> Bound:
    """Return a bound that is written as its number."""
    return Bound(number, str(number), True)


def _power_bound(index: int, bits: int) -> Bound:
    """Return the bound where a bucket of hist() begins, labelled with a suffix (K, M, ...) where it
    is large.

    Args:
        index: the bucket's number, from 0.
        bits: each power of two has 2**bits buckets.
    """
    buckets = 1 << bits
    if index <= 2 * buckets:
        return _plain(index)
    exponent = (index >> bits) - 1
    mantissa = buckets + (index & (buckets - 1))
    decade, rest = divmod(exponent, 10)
    return Bound(mantissa << exponent, f"{mantissa << rest}{_SUFFIXES[decade]}", False)


def _linear_bound(number: int, step: int) -> Bound:
    """Return a bound of lhist(): with the suffix M or K where it can be, else as its number.

    That is where the step is a multiple of 1024, and the bound one of 1024 * 1024 (M) or 1024 (K),
    but not 0.

    Args:
        number: the bound.
        step: width of the rows.
    """
    if step % 1024:
        return _plain(number)
    label = str(number)
    if number and number % (1 << 20) == 0:
        label = f"{number >> 20}M"
    elif number and number % 1024 == 0:
        label = f"{number >> 10}K"
    return Bound(number, label, False)


def _shown(counts: Sequence[int]) -> range:
    """Return the indices of the counts that are shown: from the first that is not 0 to the last."""
    used = [index for index, count in enumerate(counts) if count > 0]
    return range(used[0], used[-1] + 1) if used else range(0)


def rows(type: HistogramType | LinearHistogramType, counts: Sequence[int], div: int = 1) -> Rows:
    """Return the rows of a histogram that are shown: from the first with a count to the last.

    Args:
        type: which histogram.
        counts: one for each row, as `types` describes them.
        div: divides the counts of `hist()`; those of `lhist()` stay.

    Returns:
        Where the first of these rows begins (None: it has no lower bound), where each ends (the
        last may have no end), and their counts; no rows where all counts are 0.
    """
    shown = _shown(counts)
    if not shown:
        return Rows(None, (), ())
    lower = None
    if isinstance(type, LinearHistogramType):
        if shown.start:
            lower = _linear_bound(type.low + (shown.start - 1) * type.step, type.step)
        ends = [type.low + index * type.step for index in shown]
        upper = tuple(_linear_bound(end, type.step) for end in ends if end <= type.high)
        return Rows(lower, upper, tuple(counts[index] for index in shown))
    if shown.start:
        lower = _power_bound(shown.start - 1, type.bits)
    upper = tuple(_power_bound(index, type.bits) for index in shown)
    return Rows(lower, upper, tuple(counts[index] // div for index in shown))


class HistogramCounts(list[int]):
    """The counts of a histogram's rows, those that are 0 included; shown as a chart.

    Attributes:
        type: which histogram.
    """

    def __init__(self, type: HistogramType | LinearHistogramType, counts: Sequence[int]) -> None:
        super().__init__(counts)
        self.type = type

    def __repr__(self) -> str:
        return histogram_text(rows(self.type, self)).rstrip("\n") or "<no counts>"


def _header(lower: Bound | None, upper: Bound | None) -> str:
    """Return how a row is labelled: `[1, 2)`, or `[1]` where it has one number.

    Args:
        lower: the smallest number of the row; None: there is none.
        upper: the first number behind the row; None: there is none.
    """
    if lower is None:
        return f"(..., {upper.label})" if upper else "(..., ...)"
    if upper is None:
        return f"[{lower.label}, ...)"
    if lower.plain and upper.plain and lower.number + 1 == upper.number:
        return f"[{lower.label}]"
    return f"[{lower.label}, {upper.label})"


def _bounds(shown: Rows) -> list[tuple[Bound | None, Bound | None]]:
    """Return (beginning, end) of each row; None: it has none on that side."""
    upper: list[Bound | None] = list(shown.upper)
    upper += [None] * (len(shown.counts) - len(upper))
    return list(zip([shown.lower, *upper[:-1]], upper, strict=True)) if upper else []


def histogram_text(shown: Rows) -> str:
    """Return a line for each row, with a bar in proportion to its count."""
    greatest = single(max(shown.counts, default=0))
    lines = []
    for (lower, upper), count in zip(_bounds(shown), shown.counts, strict=True):
        share = single(single(count) / greatest) if greatest else 0.0
        bar = "@" * int(single(share * _WIDTH))
        lines.append(f"{_header(lower, upper):<16}{count:>8} |{bar:<{_WIDTH}}|\n")
    return "".join(lines)


def _json_bound(bound: Bound) -> str:
    """Return a bound as JSON."""
    return json_number(bound.number if bound.plain else bound.number & _MASK)


def histogram_json(shown: Rows) -> str:
    """Return the rows as a JSON array of objects; both ends are inclusive, open ends left out."""
    found = []
    for (lower, upper), count in zip(_bounds(shown), shown.counts, strict=True):
        parts = []
        if lower is not None:
            parts.append(f'"min": {_json_bound(lower)}')
        if upper is not None:
            parts.append(f'"max": {json_number(upper.number - 1)}')
        parts.append(f'"count": {count}')
        found.append("{" + ", ".join(parts) + "}")
    return "[" + ",".join(found) + "]"
