"""A trace as Perfetto's protobuf: what ui.perfetto.dev and its trace processor open."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from .columns import need
from .timeline import Hex, Marks, task_name

if TYPE_CHECKING:
    from .trace import Trace

PID = 1
SEQUENCE = 1  #: of packets: there is one writer


def write(trace: Trace, file: IO[bytes], format: str) -> None:
    """A thread for each task. Raises Unsupported: the package perfetto is not installed (extra `perfetto`)."""
    builder = need("perfetto.trace_builder.proto_builder", "perfetto").StreamingTraceProtoBuilder(file)
    protos = need("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto")
    marks = Marks(trace)
    packet = builder.create_packet()
    packet.track_descriptor.uuid = PID
    packet.track_descriptor.process.pid, packet.track_descriptor.process.process_name = PID, "guest"
    builder.write_packet(packet)
    for n, task in enumerate(marks.tasks):
        packet = builder.create_packet()
        packet.track_descriptor.uuid, packet.track_descriptor.parent_uuid = PID + 1 + n, PID
        thread = packet.track_descriptor.thread
        thread.pid, thread.tid, thread.thread_name = PID, 1 + n, task_name(task)
        builder.write_packet(packet)
    kinds = {"B": protos.TrackEvent.TYPE_SLICE_BEGIN, "E": protos.TrackEvent.TYPE_SLICE_END,
             "i": protos.TrackEvent.TYPE_INSTANT}
    for mark in marks:
        packet = builder.create_packet()
        packet.timestamp, packet.trusted_packet_sequence_id = mark.time, SEQUENCE
        event = packet.track_event
        event.type, event.track_uuid = kinds[mark.phase], PID + 1 + mark.task
        if mark.phase != "E":
            event.name = mark.name
        event.categories.append("kprobes")
        for name, value in mark.args.items():
            _annotate(event.debug_annotations.add(), name, value)
        builder.write_packet(packet)


def _annotate(annotation: Any, name: str, value: Any) -> None:
    if name:
        annotation.name = name
    if isinstance(value, dict):
        for key, each in value.items():
            _annotate(annotation.dict_entries.add(), key, each)
    elif isinstance(value, tuple):
        for element in value:
            _annotate(annotation.array_values.add(), "", element)
    elif isinstance(value, float):
        annotation.double_value = value
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        kind = "pointer" if isinstance(value, Hex) else "int" if value < 1 << 63 else "uint"
        setattr(annotation, f"{kind}_value", value)
    else:
        annotation.string_value = "(fault)" if value is None else str(value)
