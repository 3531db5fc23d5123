"""Records as lines of ftrace's `trace`, and an event's layout as its `format`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..symbols import CONTROLS, Symbols
from ._event import Argument, Event, locate
from ._place import EventPlace
from ._styles import STYLES, Type

if TYPE_CHECKING:
    from ._buffer import Buffer, Row

#: what stands above the lines of `trace`; to be filled in: records there, records ever
HEAD: Final = """# tracer: nop
#
# entries-in-buffer/entries-written: {0}/{1}   #P:1
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""
#: (type in C, name, offset, bytes, signed) of what every record begins with
_COMMON: Final = (
    ("unsigned short", "common_type", 0, 2, 0),
    ("unsigned char", "common_flags", 2, 1, 0),
    ("unsigned char", "common_preempt_count", 3, 1, 0),
    ("int", "common_pid", 4, 4, 1),
)
_FLOATS: Final = {32: "float", 64: "double"}


def task_column(task: Any) -> str:
    """Return a task as ftrace writes it, `comm-pid`: 16 characters of a name, and a number.

    An integer is the number of a task called "guest"; any other task's text is its name, with
    blanks as `_`, and its number is 0.
    """
    name, number = (
        ("guest", task)
        if isinstance(task, int)
        else (str(task).translate(CONTROLS).replace(" ", "_"), 0)
    )
    return f"{name[:16]:>16}-{number:<7}"


def line_of(place: EventPlace, row: Row, symbols: Symbols) -> str:
    """Return a record as a line of ftrace's `trace`, followed by lines for its stack.

    Args:
        place: whose record it is.
        row: the record as the buffer keeps it; its number stands where ftrace has the time, as
            with ftrace's clock "counter".
        symbols: name addresses.
    """
    record = place.record(row)
    definition = place.definition
    head = f"{task_column(record.task)} [{record.cpu:03d}] ..... {record.seq:12d}: "
    line = f"{head}{definition.format(tuple(record.args.values()), record.caller)}\n"
    if not record.stack:
        return line
    return f"{line}{head}<stack trace>\n" + "".join(
        f" => {locate(symbols, address)}\n" for address in record.stack
    )


def trace_text(buffer: Buffer, symbols: Symbols) -> str:
    """Return the file `trace`: all records of a buffer, which stay."""
    lines = lines_of(buffer, symbols)
    return HEAD.format(len(lines), len(lines) + buffer.lost) + "".join(lines)


def lines_of(buffer: Buffer, symbols: Symbols) -> list[str]:
    """Return a line of ftrace's `trace` for each record of a buffer, oldest first.

    Args:
        buffer: the records; those that programs have written are fetched first.
        symbols: name addresses.
    """
    out = []
    for row in list(buffer.pull()):
        member = buffer.members[row[1]]
        assert isinstance(member, EventPlace)
        out.append(line_of(member, row, symbols))
    return out


def format_text(definition: Event, number: int, word: int) -> str:
    """Return the file `format` of an event: where its fields are in a record, and how they are
    printed.

    Args:
        definition: of one of the event's places.
        number: the event's ID.
        word: bytes of the guest's addresses.
    """
    where = ["__probe_ip"] if definition.kind != "r" else ["__probe_func", "__probe_ret_ip"]
    fields = [
        _field(kind, name, offset, size, signed) for kind, name, offset, size, signed in _COMMON
    ]
    fields.append("\n")
    at = 8
    for name in where:
        fields.append(_field("unsigned long", name, at, word, 0))
        at += word
    for argument in definition.args:
        kind, size, signed = _stored(argument.type)
        count = argument.type.count
        shown = f"{argument.name}[{count}]" if count else argument.name
        fields.append(_field(kind, shown, at, size * max(count, 1), signed))
        at += size * max(count, 1)
    head = " <- ".join(["%lx"] * len(where))
    forms = "".join(f" {argument.name}={_form(argument.type)}" for argument in definition.args)
    values = [f"REC->{name}" for name in where]
    for argument in definition.args:
        values += _values(argument)
    return (
        f"name: {definition.name}\nID: {number}\nformat:\n{''.join(fields)}\n"
        f'print fmt: "({head}){forms}", {", ".join(values)}\n'
    )


def _field(kind: str, name: str, offset: int, size: int, signed: int) -> str:
    """Return the line of one field in a file `format`.

    Args:
        kind: the field's type in C.
        name: its name.
        offset: bytes from the record's beginning.
        size: its bytes.
        signed: 1 where it is signed, else 0.
    """
    return f"\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"


def _stored(type: Type) -> tuple[str, int, int]:
    """Return (type in C, bytes, 1 where it is signed) of one element in a record."""
    style = STYLES[type.style]
    if style.beside_record:
        return "__data_loc char[]", 4, 1  # offset and length, 16 bits each
    if style.values == "float":
        return _FLOATS.get(type.bits, "long double"), type.size, 1
    return f"{'s' if style.signed else 'u'}{8 * type.size}", type.size, int(style.signed)


def _form(type: Type) -> str:
    """Return printf's conversion for values of a type, such as "%u"; of an array one for each
    element.
    """
    form = STYLES[type.style].printf.format(long="L" if type.size == 8 else "")
    return f"{{{','.join([form] * type.count)}}}" if type.count else form


def _values(argument: Argument) -> list[str]:
    """Return the C expressions that `print fmt` passes to printf for an argument of the event."""
    name, type = argument.name, argument.type
    if STYLES[type.style].beside_record:
        get = f"__get_str({name}"
        return [f"{get}[{n}])" for n in range(type.count)] if type.count else [f"{get})"]
    return [f"REC->{name}[{n}]" for n in range(type.count)] if type.count else [f"REC->{name}"]
