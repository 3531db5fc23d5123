"""A trace as OpenTelemetry's spans, in OTLP's JSON (opentelemetry-proto, trace/v1): what collectors
and Jaeger take.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

from .timeline import BEGIN, END, Spans, clean, task_name

if TYPE_CHECKING:
    from .trace import Trace

INTERNAL = 1  #: kind of a span: within a service
BATCH_OF_SPANS = 1 << 12


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write a trace as OTLP's JSON: a line for each request of some thousand spans, as exporters to
    files write them.

    A call is a span, another hit is a span without length. Times of the host's clock count from
    1970, others are by the trace's clock; without one a record's time is 1,000 times its number.

    Args:
        trace: the records.
        file: an open text file.
        format: not used; all writers of a trace have it.
    """
    _SpanWriter(trace, file).write()


class _SpanWriter:
    """Writes a trace's spans in the order in which they end."""

    def __init__(self, trace: Trace, file: IO[str]) -> None:
        """Prepare; the trace's identifier is made of its number of records and its events'
        definitions.

        Args:
            trace: the records.
            file: an open text file.
        """
        self._trace = trace
        self._file = file
        facts = repr((len(trace), [info.text for info in trace.events])).encode(
            errors="backslashreplace"
        )
        self._id = hashlib.sha256(facts).hexdigest()[:32]
        self._spans: list[dict[str, Any]] = []
        self._count = 0

    def write(self) -> None:
        """Write all spans: one for each call, and one without length for each other hit.

        A record's values, caller and stack are attributes of its span; those of a return are
        attributes of the call, named `return.NAME`.

        Calls that have not returned end with the last record.
        """
        spans = Spans(self._trace)
        readable = self._trace.readable
        callers = lru_cache(1 << 12)(lambda address: readable(self._trace.name(address)))
        stacks = lru_cache(1 << 12)(lambda each: tuple(map(readable, self._trace.names(each))))
        wheres = lru_cache(1 << 12)(
            lambda task, cpu: [
                _attribute("thread.name", task_name(spans.tasks[task])),
                _attribute("cpu", cpu),
            ]
        )
        fields = [[field.name for field in info.fields] for info in self._trace.events]
        functions = [readable(info.function) for info in self._trace.events]
        calls: list[list[dict[str, Any]]] = [[] for _ in spans.tasks]
        for marks in spans:
            left = list(marks.left)
            for place, row in enumerate(marks.batch.rows()):
                _, event, cpu, task, _, caller, values, stack = row
                while left and left[0][0] == place:
                    self._end(calls[left.pop(0)[1]].pop(), marks.times[place])
                info = self._trace.events[event]
                phase = marks.phase(place, event)
                found = dict(zip(fields[event], values, strict=True))
                if info.kind != "p":
                    found["caller"] = callers(caller)
                if stack:
                    found["stack"] = stacks(stack)
                if phase == END:
                    span = calls[task].pop()
                    span["attributes"] += [
                        _attribute(f"return.{name}", value) for name, value in found.items()
                    ]
                    self._end(span, marks.times[place])
                    continue
                name = functions[event] if phase == BEGIN else info.name
                span = self._begin(
                    name, marks.times[place], calls[task][-1] if calls[task] else None
                )
                span["attributes"] = [
                    *wheres(task, cpu),
                    *(_attribute(name, value) for name, value in found.items()),
                ]
                if phase == BEGIN:
                    calls[task].append(span)
                else:
                    self._end(span, marks.times[place])
        for open_calls in calls:
            while open_calls:
                self._end(open_calls.pop(), spans.last)
        self._flush()

    def _begin(self, name: str, time: int, parent: dict[str, Any] | None) -> dict[str, Any]:
        """Return a new span, which has no end and no attributes yet.

        Args:
            name: of the span.
            time: when it begins, in ns.
            parent: the span that it lies within; None: it is outermost.
        """
        self._count += 1
        span = {
            "traceId": self._id,
            "spanId": f"{self._count:016x}",
            "name": _cleaned(name),
            "kind": INTERNAL,
            "startTimeUnixNano": str(self._trace.epoch + time),
        }
        return span | ({} if parent is None else {"parentSpanId": parent["spanId"]})

    def _end(self, span: dict[str, Any], time: int) -> None:
        """End a span and keep it; once BATCH_OF_SPANS have ended, write these as one request.

        Args:
            span: OTLP's object of the span; its end is set.
            time: of the end, in ns.
        """
        span["endTimeUnixNano"] = str(self._trace.epoch + time)
        self._spans.append(span)
        if len(self._spans) == BATCH_OF_SPANS:
            self._flush()

    def _flush(self) -> None:
        """Write the spans that have ended since the last call as one request, even if there are
        none, and forget them.
        """
        resource = {"attributes": [_attribute("service.name", "guest")]}
        scopes = [{"scope": {"name": "kprobes"}, "spans": self._spans}]
        self._file.write(
            json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}) + "\n"
        )
        self._spans = []


def _attribute(name: str, value: Any) -> dict[str, Any]:
    """Return OTLP's KeyValue object of a name and a value."""
    return {"key": _cleaned(name), "value": _any(value)}


@lru_cache(1 << 12)
def _cleaned(text: str) -> str:
    """Return a text without characters that control a terminal."""
    return str(clean(text))


def _any(value: Any) -> dict[str, Any]:
    """Return a value as OTLP's AnyValue. An integer that does not fit its 64 bits with a sign, an
    infinity and NaN become text, and None "(fault)".
    """
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return {"intValue": str(value)}
    if isinstance(value, str):
        return {"stringValue": _cleaned(value)}
    if isinstance(value, tuple):
        return {"arrayValue": {"values": [_any(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [_attribute(name, each) for name, each in value.items()]}}
    if isinstance(value, float) and value - value == 0:
        return {"doubleValue": value}
    return {"stringValue": "(fault)" if value is None else str(value)}
