"""The output of a script: messages as text or as JSON, byte for byte as bpftrace writes them.

Text goes out through functions that take `str`; see `printing` for bytes that are not UTF-8.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from .histograms import histogram_json, histogram_text, rows
from .ordering import Item, ordered, topmost
from .printing import json, json_number, json_text, text, zero
from .series import last_start, points, series_json, series_text, unit_of
from .types import (
    AverageType,
    HistogramType,
    LinearHistogramType,
    StatsType,
    TimeSeriesType,
    ValueType,
)

Write = Callable[[str], object]
_E2BIG = 7
_ENOENT = 2
#: bpftrace's numbers of kinds of runtime errors that are not a helper's -> their text.
RUNTIME_ERRORS = {
    "divide_by_zero": (
        "Divide or modulo by 0 detected. This can lead to unexpected "
        "results. 1 is being used as the result."
    ),
    "array_access": "Array access out of bounds. This can lead to unexpected results.",
    "loop": (
        "A loop was ended: the loops of a probe's hit make at most 8388608 rounds. What is behind "
        "the loop goes on."
    ),
    "kstack": "Error reading kstack.",
    "ustack": "Error reading ustack.",
}
_MAP_FULL = (
    "Map full; can't update element. Try increasing max_map_keys config "
    "or manually setting the max entries in a map declaration e.g. `let @a = hash(5000)`"
)


@attrs.frozen
class SourceReference:
    """A place in a script that a message names.

    Attributes:
        label: `stdin:1:9-62`.
        file: the script's name, `stdin` for `-e`.
        line: number of the line, from 1.
        column: number of the column, from 1.
        context: the source lines with marks under them, shown behind the message.
    """

    label: str
    file: str
    line: int
    column: int
    context: tuple[str, ...] = ()


@attrs.frozen
class MapShape:
    """Name and types of a map.

    Attributes:
        name: its name, with its `@`.
        key: type of the keys, a `TupleType` where there are several; None for a scalar map.
        value: type of the values.
    """

    name: str
    key: ValueType | None
    value: ValueType


def _is_chart(type: ValueType) -> bool:
    """Return True for types whose values are shown as charts."""
    return isinstance(type, (HistogramType, LinearHistogramType, TimeSeriesType))


def _is_stats(type: ValueType) -> bool:
    """Return True for types whose values have a mean."""
    return isinstance(type, (AverageType, StatsType))


def _key_text(shape: MapShape, key: Any) -> str:
    """Return a key as it stands between brackets: without parentheses around it, as of a tuple.

    Args:
        shape: the map's name and types.
        key: the key.
    """
    assert shape.key is not None
    shown = text(shape.key, key)
    if len(shown) >= 2 and shown.startswith("(") and shown.endswith(")"):
        return shown[1:-1]
    return shown


def shown_items(shape: MapShape, items: Sequence[Item], top: int, final: bool) -> list[Item]:
    """Return the items of a map that are printed, in the order of printing.

    Args:
        shape: the map's name and types.
        items: (key, value) in the map's own order; at most one for a scalar map, key ignored.
        top: how many of the last are shown; 0 for all. All items of time series are shown, in the
            map's own order.
        final: True where the map is printed because the script ends. Otherwise an unset scalar map
            shows the zero of its type.

    Returns:
        (key, value) of each; the key is None for the zero of an unset scalar map.
    """
    if isinstance(shape.value, TimeSeriesType):
        return list(items)
    if not items and shape.key is None and not final and not _is_chart(shape.value):
        return [(None, zero(shape.value))]
    return topmost(ordered(shape.key, shape.value, items), top)


def strerror(number: int) -> str:
    """Return the message of an errno."""
    return os.strerror(number)


class ScriptOutput(ABC):
    """Takes what a script has to say, and writes it in a format."""

    def __init__(self, out: Write, err: Write, warnings: bool = True) -> None:
        """Prepare.

        Args:
            out: takes what belongs on standard output.
            err: takes what belongs on standard error.
            warnings: False leaves out what `warnf()` formatted.
        """
        self._out = out
        self._err = err
        self._warnings = warnings

    def failure(self, text: str) -> None:
        """Write an error that is about no line of the script, such as a file that does not
        exist.
        """
        self._err(f"ERROR: {text}\n")

    @abstractmethod
    def attached_probes(self, count: int) -> None:
        """Say that `count` probes were attached."""

    @abstractmethod
    def printf(self, text: str) -> None:
        """Write what `printf()` formatted."""

    @abstractmethod
    def message(self, error: bool, text: str, places: Sequence[SourceReference]) -> None:
        """Write what `errorf()` or `warnf()` formatted: text to standard error, JSON to standard
        output with the other objects. Warnings only where `warnings` is True.

        Args:
            error: True for `errorf`.
            text: the message.
            places: the call, then the calls of the macros that it stands in.
        """

    @abstractmethod
    def time(self, text: str) -> None:
        """Write what `time()` formatted."""

    @abstractmethod
    def cat(self, text: str) -> None:
        """Write a file's content."""

    @abstractmethod
    def join(self, text: str) -> None:
        """Write what `join()` joined."""

    @abstractmethod
    def syscall(self, text: str) -> None:
        """Write what a command of `system()` printed."""

    @abstractmethod
    def value(self, type: ValueType, value: Any) -> None:
        """Write the value of `print()`; for `print(@x[1])` of a chart, the chart.

        Args:
            type: the value's type.
            value: the Python value that `types` describes.
        """

    @abstractmethod
    def map(
        self,
        shape: MapShape,
        items: Sequence[Item],
        top: int = 0,
        div: int = 1,
        final: bool = False,
    ) -> None:
        """Write a map.

        Args:
            shape: its name and types.
            items: (key, value) in the map's own order; a scalar map has at most one.
            top: how many of the last are shown; 0 for all.
            div: divides numbers, and counts of `hist()`, before they are shown; 0 is 1.
            final: True at the script's end, where an unset map is left out.
        """

    @abstractmethod
    def lost_events(self, count: int) -> None:
        """Say that `count` records of programs were lost, as the ring was full."""

    @abstractmethod
    def runtime_error(self, kind: str, places: Sequence[SourceReference]) -> None:
        """Warn of what went wrong while a probe's program ran.

        Args:
            kind: a key of `RUNTIME_ERRORS`.
            places: the expression, then the calls of the macros that it stands in.
        """

    @abstractmethod
    def helper_error(self, helper: str, result: int, places: Sequence[SourceReference]) -> None:
        """Warn of a helper that failed.

        Args:
            helper: its name without `bpf_`.
            result: what it returned: a negative errno, or 0 for a lookup that found nothing.
            places: the expression, then the calls of the macros that it stands in.
        """

    @abstractmethod
    def test_result(
        self, names: Sequence[str], passed: Sequence[bool], nanoseconds: int, output: str
    ) -> None:
        """Write the result of a `test:` probe.

        Args:
            names: names of all tests.
            passed: results so far; the last is the one to write.
            nanoseconds: how long it took.
            output: what it printed.
        """

    @abstractmethod
    def benchmark_result(
        self, names: Sequence[str], index: int, nanoseconds: int, iterations: int
    ) -> None:
        """Write the result of a `bench:` probe.

        Args:
            names: names of all benchmarks.
            index: which one.
            nanoseconds: the mean time of an iteration.
            iterations: how many there were.
        """

    @abstractmethod
    def end(self) -> None:
        """Write what stands between a script's last output and its maps."""


def _plural(count: int, noun: str) -> str:
    """Return a number and a noun, with an s unless the number is 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class TextOutput(ScriptOutput):
    """Writes text for people. Where nothing else is said a method writes what ScriptOutput's
    says.
    """

    def attached_probes(self, count: int) -> None:
        self._err(f"Attached {_plural(count, 'probe')}\n")

    def printf(self, text: str) -> None:
        self._out(text)

    def _log(self, kind: str, text: str, places: Sequence[SourceReference], context: bool) -> None:
        """Write a message to standard error: a line for each place, with its source lines.

        Args:
            kind: "ERROR" or "WARNING", which each line says.
            text: the message, in the line of the first place; the others are said to be expanded
                from.
            places: the call, then the calls of the macros that it stands in. Where there is none
                nothing is written.
            context: True to show the source lines of the first of these, too, not of the others
                only.
        """
        text = text.removesuffix("\n")
        for index, place in enumerate(places):
            said = "expanded from" if index else text
            self._err(f"{place.label}: {kind}: {said}\n")
            if context or index:
                self._err("".join(f"{line}\n" for line in place.context))

    def message(self, error: bool, text: str, places: Sequence[SourceReference]) -> None:
        """Write what `errorf()` or `warnf()` formatted to standard error, with the place of the
        call; a warning only where `warnings` is True.
        """
        if error or self._warnings:
            self._log("ERROR" if error else "WARNING", text, places, context=False)

    def time(self, text: str) -> None:
        self._out(text)

    def cat(self, text: str) -> None:
        """Write a file's content."""
        self._out(text)

    def join(self, text: str) -> None:
        """Write what `join()` joined, and a newline."""
        self._out(f"{text}\n")

    def syscall(self, text: str) -> None:
        """Write what a command of `system()` printed, and a newline."""
        self._out(f"{text}\n")

    def value(self, type: ValueType, value: Any) -> None:
        """Write the value of `print()` as text, and a newline."""
        self._out(f"{_value_text(type, value, 1, None)}\n")

    def map(
        self,
        shape: MapShape,
        items: Sequence[Item],
        top: int = 0,
        div: int = 1,
        final: bool = False,
    ) -> None:
        """Write a line for each entry of a map; of a chart, a heading and the chart.

        An unset map without keys that is no chart is a zero, but nothing at the script's end.

        Args:
            shape: its name and types.
            items: (key, value) in the map's own order; a scalar map has at most one.
            top: how many of the last are shown; 0 for all.
            div: divides numbers, and counts of `hist()`, before they are shown; 0 is 1.
            final: True at the script's end, where an unset map is left out.
        """
        last = _latest(shape, items)
        for key, value in shown_items(shape, items, top, final):
            name = shape.name
            if shape.key is not None:
                name += f"[{_key_text(shape, key)}]"
            between = ":\n" if _is_chart(shape.value) else ": "
            self._out(f"{name}{between}{_value_text(shape.value, value, div or 1, last)}\n")

    def lost_events(self, count: int) -> None:
        self._err(f"Lost {count} events\n")

    def runtime_error(self, kind: str, places: Sequence[SourceReference]) -> None:
        """Write to standard error what went wrong while a program ran, with the script's lines."""
        self._log("WARNING", RUNTIME_ERRORS[kind], places, context=True)

    def helper_error(self, helper: str, result: int, places: Sequence[SourceReference]) -> None:
        """Write a warning of a helper that failed, with what it returned: the errno's text, or
        special words for a full map and a missing key.

        Args:
            helper: its name without `bpf_`.
            result: what it returned: a negative errno, or 0 for a lookup that found nothing.
            places: the expression, then the calls of the macros that it stands in.
        """
        said = strerror(-result)
        if helper == "map_update_elem" and result == -_E2BIG:
            said = _MAP_FULL
        elif helper == "map_delete_elem" and result == -_ENOENT:
            said = "Can't delete map element because it does not exist."
        elif helper == "map_lookup_elem":
            said = "Can't lookup map element because it does not exist."
        details = f"Additional Info - helper: {helper}, retcode: {result}"
        self._log("WARNING", f"{said}\n{details}", places, context=True)

    def test_result(
        self, names: Sequence[str], passed: Sequence[bool], nanoseconds: int, output: str
    ) -> None:
        """Write the result of a test; before the first a heading, behind the last a summary.

        Args:
            names: names of all tests.
            passed: results so far; the last is the one to write.
            nanoseconds: how long it took.
            output: what it printed, shown if it failed.
        """
        index = len(passed) - 1
        if index == 0:
            self._out(f"{_green('==========')} Running {len(names)} tests.\n")
        self._out(f"{_green(' RUN      ')} {names[index]}\n")
        if not passed[index]:
            self._out("".join(f"{line}\n" for line in output.split("\n") if line))
        mark = _green("       OK ") if passed[index] else _red("  FAILED  ")
        unit = unit_of(nanoseconds)
        spent = f"{nanoseconds // unit.nanoseconds} {unit.name}"
        self._out(f"{mark} {names[index]} ({spent})\n")
        if len(passed) == len(names):
            self._test_summary(names, passed)

    def _test_summary(self, names: Sequence[str], passed: Sequence[bool]) -> None:
        """Write how many tests there were, and which have failed.

        Args:
            names: names of all tests.
            passed: their results.
        """
        failed = [name for name, good in zip(names, passed, strict=True) if not good]
        self._out(f"{_green('==========')} {_plural(len(names), 'test')} ran.\n")
        self._out(f"{_green('  PASSED  ')} {_plural(len(names) - len(failed), 'test')}.\n")
        if failed:
            self._out(f"{_red('  FAILED  ')} {_plural(len(failed), 'test')}, listed below:\n")
            self._out("".join(f"{_red('  FAILED  ')} {name}\n" for name in failed))

    def benchmark_result(
        self, names: Sequence[str], index: int, nanoseconds: int, iterations: int
    ) -> None:
        """Write the result of a benchmark as a line of a table; before the first the table's head.

        Args:
            names: names of all benchmarks.
            index: which one.
            nanoseconds: the mean time of an iteration.
            iterations: how many there were.
        """
        width = max(40, *map(len, names)) + 1
        if index == 0:
            self._out(f"{'Benchmark':<{width}}{'Time(ns)':<15}Iterations\n")
            self._out("-" * (width + 15 + len("Iterations")) + "\n")
        self._out(f"{names[index]:<{width}}{nanoseconds:<15}{iterations}\n")

    def end(self) -> None:
        """Write two newlines: they stand between a script's last output and its maps."""
        self._out("\n\n")


def _green(text: str) -> str:
    """Return text in brackets, in green."""
    return f"\x1b[32m[{text}]\x1b[0m"


def _red(text: str) -> str:
    """Return text in brackets, in red."""
    return f"\x1b[31m[{text}]\x1b[0m"


def _latest(shape: MapShape, items: Sequence[Item]) -> int | None:
    """Return when the latest interval of all time series of a map begins.

    Args:
        shape: the map's name and types.
        items: (key, value); values have one series each.

    Returns:
        Nanoseconds; None: the map has no time series, or all of them are empty.
    """
    if not isinstance(shape.value, TimeSeriesType):
        return None
    return last_start(value for _, value in items)


def _value_text(type: ValueType, value: Any, div: int, last: int | None) -> str:
    """Return a value as text; of a histogram or time series, the chart.

    Args:
        type: the value's type.
        value: the value.
        div: divides numbers, and counts of histograms, before they are shown.
        last: of a time series, start in nanoseconds of the last interval that is shown: the latest
            of all series of the map; None: the latest of this one.
    """
    if isinstance(type, (HistogramType, LinearHistogramType)):
        return histogram_text(rows(type, value, div))
    if isinstance(type, TimeSeriesType):
        return series_text(type, points(type, value, last or last_start([value])))
    return text(type, value, div)


def _value_json(type: ValueType, value: Any, div: int, last: int | None) -> str:
    """Return a value as JSON.

    Args:
        type: the value's type.
        value: the value.
        div: divides numbers, and counts of histograms, before they are shown.
        last: of a time series, start in nanoseconds of the last interval that is shown: the latest
            of all series of the map; None: the latest of this one.
    """
    if isinstance(type, (HistogramType, LinearHistogramType)):
        return histogram_json(rows(type, value, div))
    if isinstance(type, TimeSeriesType):
        return series_json(points(type, value, last or last_start([value])))
    return json(type, value, div)


class JsonOutput(ScriptOutput):
    """Writes JSON for programs, one object a line: its type, and what the ScriptOutput method
    says.
    """

    def _record(self, type: str, data: str) -> None:
        """Write an object with a type and data, which is JSON already."""
        self._out(f'{{"type": "{type}", "data": {data}}}\n')

    def attached_probes(self, count: int) -> None:
        data = f'{{"probes": {count}}}'
        self._out(f'{{"type": "attached_probes", "count": {count}, "data": {data}}}\n')

    def printf(self, text: str) -> None:
        self._record("printf", json_text(text))

    def _at(self, type: str, fields: str, place: SourceReference) -> None:
        """Write an object with a type, fields, which are JSON already, and a place in the
        script.
        """
        where = f'"filename": {json_text(place.file)}, "line": {place.line}, "col": {place.column}'
        self._out(f'{{"type": "{type}", {fields}, {where}}}\n')

    def message(self, error: bool, text: str, places: Sequence[SourceReference]) -> None:
        """Write an object with what `errorf()` or `warnf()` formatted, and the place of the call; a
        warning only where `warnings` is True.
        """
        if error or self._warnings:
            self._at("errorf" if error else "warnf", f'"msg": {json_text(text)}', places[0])

    def time(self, text: str) -> None:
        self._record("time", json_text(text))

    def cat(self, text: str) -> None:
        self._record("cat", json_text(text))

    def join(self, text: str) -> None:
        self._record("join", json_text(text))

    def syscall(self, text: str) -> None:
        self._record("syscall", json_text(text))

    def value(self, type: ValueType, value: Any) -> None:
        """Write an object with the value of `print()`."""
        self._record("value", _value_json(type, value, 1, None))

    def map(
        self,
        shape: MapShape,
        items: Sequence[Item],
        top: int = 0,
        div: int = 1,
        final: bool = False,
    ) -> None:
        """Write a map as one object.

        For an unset map nothing is written at the script's end. Before the end it is a zero if it
        has no keys and is no chart, and `{}` if it has keys and its values have a mean; else
        nothing.

        Args:
            shape: its name and types.
            items: (key, value) in the map's own order; a scalar map has at most one.
            top: how many of the last are shown; 0 for all.
            div: divides numbers, and counts of `hist()`, before they are shown; 0 is 1.
            final: True at the script's end, where an unset map is left out.
        """
        last = _latest(shape, items)
        shown = shown_items(shape, items, top, final)
        if not shown and (final or not _is_stats(shape.value)):
            return
        values = [(key, _value_json(shape.value, value, div or 1, last)) for key, value in shown]
        if shape.key is None:
            data = values[0][1]
        else:
            entries = [
                f"{json_text(_key_text(shape, key).replace(' ', ''))}: {value}"
                for key, value in values
            ]
            data = "{" + ", ".join(entries) + "}"
        type = "map"
        if _is_stats(shape.value):
            type = "stats"
        elif isinstance(shape.value, TimeSeriesType):
            type = "tseries"
        elif _is_chart(shape.value):
            type = "hist"
        self._record(type, f"{{{json_text(shape.name)}: {data}}}")

    def lost_events(self, count: int) -> None:
        data = f'{{"events": {count}}}'
        self._out(f'{{"type": "lost_events", "count": {count}, "data": {data}}}\n')

    def runtime_error(self, kind: str, places: Sequence[SourceReference]) -> None:
        """Write an object with what went wrong while a program ran, and its place in the script."""
        said = f'"msg": {json_text(RUNTIME_ERRORS[kind])}'
        self._at("runtime_error", said, places[0])

    def helper_error(self, helper: str, result: int, places: Sequence[SourceReference]) -> None:
        """Write an object with a helper that failed: the errno's text, its name, what it returned,
        and the place of the first of `places`.
        """
        said = json_text(strerror(-result))
        fields = f'"msg": {said}, "helper": {json_text(helper)}, "retcode": {json_number(result)}'
        self._at("helper_error", fields, places[0])

    def test_result(
        self, names: Sequence[str], passed: Sequence[bool], nanoseconds: int, output: str
    ) -> None:
        """Write an object with the result of a test: its name -> duration, passed or not, output.

        Args:
            names: names of all tests.
            passed: results so far; the last is the one to write.
            nanoseconds: how long it took.
            output: what it printed.
        """
        good = "true" if passed[-1] else "false"
        result = f'{{"duration": {nanoseconds}, "passed": {good}, "output": {json_text(output)}}}'
        self._record("test_result", f"{{{json_text(names[len(passed) - 1])}: {result}}}")

    def benchmark_result(
        self, names: Sequence[str], index: int, nanoseconds: int, iterations: int
    ) -> None:
        """Write an object with the result of a benchmark.

        Args:
            names: names of all benchmarks.
            index: which one.
            nanoseconds: the mean time of an iteration.
            iterations: how many there were.
        """
        result = f'{{"average": {nanoseconds}, "iters": {iterations}}}'
        self._record("benchmark_result", f"{{{json_text(names[index])}: {result}}}")

    def end(self) -> None:
        """Write nothing: nothing stands between a script's last output and its maps in JSON."""
