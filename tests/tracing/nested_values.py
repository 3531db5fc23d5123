"""What every export of a recording says of its values, read back; and what it ought to say."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from kprobes import Trace

EXACT = 1 << 53  #: integers up to here are doubles, too


def _text(t: Trace, format: str) -> str:
    t.export(file := io.StringIO(), format)
    return file.getvalue()


def _bytes(t: Trace, format: str) -> bytes:
    t.export(file := io.BytesIO(), format)
    return file.getvalue()


def plain(value: Any, leaf: Callable[[Any], Any] = lambda value: value) -> Any:
    """A value in lists and dicts. leaf: what becomes of numbers, texts and None."""
    if isinstance(value, dict):
        return {name: plain(each, leaf) for name, each in value.items()}
    return [plain(each, leaf) for each in value] if isinstance(value, tuple | list) else leaf(value)


def _words(value: Any) -> Any:
    """As JSON has it, which has no words for infinity and what is no number."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _doubles(value: Any) -> Any:
    """As readers take it that have doubles for all numbers."""
    big = isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT
    return "(fault)" if value is None else str(value) if big else _words(value)


def _of_64_bits(value: Any, lowest: int, highest: int) -> Any:
    wide = isinstance(value, int) and not lowest <= value < highest
    return "(fault)" if value is None else str(value) if wide else value


def _annotated(value: Any) -> Any:
    """As Perfetto has it, whose texts are UTF-8."""
    found = _of_64_bits(value, -(1 << 63), 1 << 64)
    return found.encode(errors="backslashreplace").decode() if isinstance(found, str) else found


def _parquet(t: Trace) -> list[dict[str, Any]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(_bytes(t, "parquet")))
    return _rows(t, table)


def _rows(t: Trace, table: Any) -> list[dict[str, Any]]:
    """An Arrow table's arguments. What its metadata calls JSON is read as such."""

    def value(found: Any, field: Any) -> Any:
        if found is not None and (field.metadata or {}).get(b"kprobes") == b"json":
            return json.loads(found)
        if isinstance(found, list):
            return [value(each, field.type.value_field) for each in found]
        return {each.name: value(found[each.name], each) for each in field.type} if isinstance(found, dict) else found

    from kprobes.tracing.columns import names_of

    names, kinds = names_of(t.events), t.source.infos
    return [{field.name: value(row[name], table.schema.field(name))
             for field, name in zip(kinds[t.source.row(n)[1]].fields, names[t.source.row(n)[1]], strict=True)}
            for n, row in enumerate(table.to_pylist())]


def _otlp(t: Trace) -> list[dict[str, Any]]:
    def value(found: dict[str, Any]) -> Any:
        (kind, each), = found.items()
        if kind == "kvlistValue":
            return {one["key"]: value(one["value"]) for one in each["values"]}
        return [value(one) for one in each["values"]] if kind == "arrayValue" else int(each) if kind == "intValue" else each

    return [{one["key"]: value(one["value"]) for one in span["attributes"] if one["key"] not in ("thread.name", "cpu")}
            for line in _text(t, "otlp").splitlines()
            for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def _perfetto(t: Trace) -> list[dict[str, Any]]:
    read = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace
    trace, out, names = read.FromString(_bytes(t, "perfetto")), list[dict[str, Any]](), dict[int, str]()
    texts = dict[int, str]()

    def value(found: Any, empty: Any) -> Any:
        if found.dict_entries:
            return {each.name: value(each, None) for each in found.dict_entries}
        if found.array_values:
            return [value(each, None) for each in found.array_values]
        kind = found.WhichOneof("value")
        if kind == "string_value_iid":
            return texts[found.string_value_iid]
        return empty if kind is None else getattr(found, kind)

    for packet in trace.packet:
        names |= {each.iid: each.name for each in packet.interned_data.debug_annotation_names}
        texts |= {each.iid: each.str.decode() for each in packet.interned_data.debug_annotation_string_values}
        if packet.track_event.debug_annotations:
            out.append({names[each.name_iid]: value(each, None) for each in packet.track_event.debug_annotations})
    return out


def _csv(t: Trace) -> list[dict[str, Any]]:
    from kprobes.tracing.columns import names_of

    rows, names, out = [*csv.DictReader(io.StringIO(_text(t, "csv")))], names_of(t.events), []
    for n, row in enumerate(rows):
        event = t.source.row(n)[1]
        found = {}
        for field, name in zip(t.events[event].fields, names[event], strict=True):
            cell = row[name]
            words = field.type.style == "f" or (field.type.style == "value" and cell[:1] in "[{")
            found[field.name] = json.loads(cell) if words and cell != "(fault)" else cell
        out.append(found)
    return out


def _empty(value: Any) -> Any:
    """As Perfetto's annotations have it: what has no members is nothing."""
    if isinstance(value, dict):
        return {name: _empty(each) for name, each in value.items()} or None
    return [_empty(each) for each in value] or None if isinstance(value, list) else value


def compare(t: Trace, path: Any) -> None:
    """Every export says the same values as the records. The types are the same, too: 1 is neither 1.0 nor True."""
    seen = [dict(record.args) for record in t]
    exact = [repr(plain(args)) for args in seen]
    t.save(path)
    loaded = Trace.load(path)
    again = [dict(record.args) for record in loaded]
    assert [repr(args) for args in again] == [repr(args) for args in seen]
    assert [hash(tuple(args.values())) for args in again if repr(args).find("nan") < 0] == [
        hash(tuple(args.values())) for args in seen if repr(args).find("nan") < 0]
    for one in (t, loaded):
        assert [*map(repr, _rows(one, one.to_arrow()))] == exact
        assert [*map(repr, _parquet(one))] == exact
        lines = [json.loads(line)["args"] for line in _text(one, "jsonl").splitlines()]
        assert repr(lines) == repr([plain(args, _words) for args in seen])
        rows = [row["args"] for row in json.loads(_text(one, "chrome"))["traceEvents"] if row["ph"] == "i"]
        assert repr(rows) == repr([plain(args, _doubles) for args in seen])
        signed = [plain(args, lambda value: _of_64_bits(value, -(1 << 63), 1 << 63)) for args in seen]
        assert repr(_otlp(one)) == repr([plain(args, _words) for args in signed])
        assert repr(_perfetto(one)) == repr(_empty([plain(args, _annotated) for args in seen]))
        cells = [{name: "(fault)" if value is None else plain(value, _words) for name, value in args.items()}
                 for args in seen]
        assert repr(_csv(one)) == repr(cells)
    assert _text(loaded, "ftrace") == _text(t, "ftrace")
