"""The types of a script's values, and which Python value stands for a value of each.

Every class here says, under "Value:", what the decoder returns for a value of the type and the
printer takes. Nothing here computes: passes that infer types, lay out memory, generate code,
decode bytes and print text all share these classes and know nothing of each other.
"""

from collections.abc import Mapping

import attrs


@attrs.frozen
class ValueType:
    """The base of all types of values."""


@attrs.frozen
class VoidType(ValueType):
    """The type of an expression without a value. Value: None."""


@attrs.frozen
class IntegerType(ValueType):
    """A whole number. Value: int, within the type's range.

    Attributes:
        bits: 8, 16, 32 or 64.
        signed: True for two's complement.
    """

    bits: int
    signed: bool


@attrs.frozen
class BooleanType(ValueType):
    """A truth value, one byte. Value: bool."""


@attrs.frozen
class EnumType(ValueType):
    """An integer whose values have names. Value: int.

    Attributes:
        name: the C name, without `enum`.
        bits: 8, 16, 32 or 64.
        signed: True if a member is negative.
        members: number -> name.
    """

    name: str
    bits: int
    signed: bool
    members: Mapping[int, str] = attrs.field(eq=False, repr=False)


@attrs.frozen
class FloatType(ValueType):
    """A floating point field of a structure; scripts cannot compute with it. Value: None.

    Attributes:
        bits: the size.
    """

    bits: int


@attrs.frozen
class StringType(ValueType):
    """Bytes up to a NUL. Value: bytes without the NUL, with the trailer of a cut string.

    Attributes:
        size: bytes of the buffer, the NUL counted.
    """

    size: int


@attrs.frozen
class BufferType(ValueType):
    """Bytes of a length found at run time, as `buf()` makes them. Value: bytes.

    Attributes:
        size: the greatest length, in bytes.
    """

    size: int


@attrs.frozen
class PointerType(ValueType):
    """An address. Value: int, never negative.

    Attributes:
        target: the type of what is there; `VoidType()` for `void *`.
    """

    target: ValueType


@attrs.frozen
class ArrayType(ValueType):
    """A row of values of one type. Value: list.

    Attributes:
        element: the type of each.
        count: how many.
    """

    element: ValueType
    count: int


@attrs.frozen
class TupleType(ValueType):
    """Values in order: `(1, "a")`. Value: tuple.

    Attributes:
        items: their types.
    """

    items: tuple[ValueType, ...]


@attrs.frozen
class RecordField:
    """A named part of a structure or record.

    Attributes:
        name: the name; "" for an anonymous member, whose fields are reached without a name.
        type: the type of its value.
        offset: bytes from the structure's beginning.
        bit_offset: for a bit field, bits from `offset` to the lowest bit (of the value as an
            integer in the guest's byte order); otherwise 0.
        bit_size: for a bit field its bits, otherwise None.
    """

    name: str
    type: ValueType
    offset: int
    bit_offset: int = 0
    bit_size: int | None = None


@attrs.frozen
class RecordType(ValueType):
    """Values by name, made in the script: `(a=1, b="x")`. Value: dict, name -> value.

    Attributes:
        fields: the parts in the order written.
    """

    fields: tuple[RecordField, ...]


@attrs.frozen
class StructType(ValueType):
    """A C structure or union. Value: dict, name -> value, in the order of declaration.

    Attributes:
        name: as bpftrace writes it: `struct Foo`, `union Foo`, or a typedef's name.
        size: bytes.
        fields: the members. A structure that points to itself is named again with no fields, so
            that this is finite; `size` 0 and no fields where only the name is known.
    """

    name: str
    size: int
    fields: tuple[RecordField, ...] = attrs.field(eq=False, repr=False)


@attrs.frozen
class SymbolType(ValueType):
    """An address that prints as a function's name: `ksym()`, `usym()`. Value: str, the name.

    Attributes:
        user: True for `usym`.
    """

    user: bool


@attrs.frozen
class StackFrame:
    """A frame in the value of a `StackType`.

    Attributes:
        address: the pc.
        symbol: the function's name, or None if there is none.
        offset: bytes from the symbol to the pc.
        image: the file or module that has it; "" if not known.
        source: `file.c:12`, or "" if not known or not wanted (`show_debug_info`).
        inlined: True for a function that was inlined into the next frame's.
    """

    address: int
    symbol: str | None
    offset: int
    image: str = ""
    source: str = ""
    inlined: bool = False


@attrs.frozen
class StackType(ValueType):
    """A call stack: `kstack()`, `ustack()`. Value: tuple of `StackFrame`, innermost first.

    Attributes:
        user: True for `ustack`.
        mode: `bpftrace`, `perf`, `raw` or `build_id`.
        limit: the greatest number of frames.
    """

    user: bool
    mode: str
    limit: int


@attrs.frozen
class TextType(ValueType):
    """A value that is decoded when read. Value: str, ready to print.

    Attributes:
        kind: `timestamp`, `inet`, `mac_address`, `username`, `cgroup_path`, `timestamp_mode`:
            the name in messages.
    """

    kind: str


@attrs.frozen
class AggregateType(ValueType):
    """The base of types that only maps hold, made by `count()`, `hist()` and their like."""


@attrs.frozen
class CountType(AggregateType):
    """The number of calls of count(). Value: int."""


@attrs.frozen
class SumType(AggregateType):
    """The sum of sum(), in 64 bits. Value: int. `signed` as in `IntegerType`."""

    signed: bool


@attrs.frozen
class AverageType(AggregateType):
    """The mean of avg(). Value: tuple (total, count); the quotient is the printer's. `signed` as in
    `IntegerType`.
    """

    signed: bool


@attrs.frozen
class MinimumType(AggregateType):
    """The smallest number of min(), in 64 bits. Value: int. `signed` as in `IntegerType`."""

    signed: bool


@attrs.frozen
class MaximumType(AggregateType):
    """The greatest number of max(), in 64 bits. Value: int. `signed` as in `IntegerType`."""

    signed: bool


@attrs.frozen
class StatsType(AggregateType):
    """Count, mean and total of stats(). Value: tuple (total, count).

    `signed` as in `IntegerType`.
    """

    signed: bool


@attrs.frozen
class HistogramType(AggregateType):
    """Numbers by powers of two. Value: list of counts, one for each row.

    Row 0 counts negative numbers; row 1 + i counts bucket i. Bucket i is the number i itself for
    i < 2 * 2**bits; from there on each power of two has 2**bits buckets of equal width.
    A list may be shorter than all rows: those missing are 0.

    Attributes:
        bits: 0 to 5.
    """

    bits: int


@attrs.frozen
class LinearHistogramType(AggregateType):
    """Numbers by steps of one width. Value: list of (high - low) // step + 2 counts.

    The first counts what is below `low`, the last what is `high` or above.

    Attributes:
        low: beginning of the first step.
        high: end of the last step.
        step: width, above 0.
    """

    low: int
    high: int
    step: int


@attrs.frozen
class TimeSeriesType(AggregateType):
    """A number for each interval of time. Value: dict, start of interval -> int, ascending.

    Starts are multiples of `interval`, in nanoseconds since 1970 (or by the clock chosen).
    Intervals without a number are absent.

    Attributes:
        interval: nanoseconds.
        intervals: how many are kept.
        aggregation: `avg`, `max`, `min` or `sum`; None keeps the last number.
        signed: True for two's complement.
    """

    interval: int
    intervals: int
    aggregation: str | None
    signed: bool


#: Any value that `types` describes, as Python.
Value = object
