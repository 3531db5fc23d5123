"""What a script prints: values, maps and printf as bpftrace writes them.

Expected texts follow bpftrace's runtime and unit tests at e1b7c393.
"""

import json as standard_json
import os
import time
from collections.abc import Iterator, Sequence

import pytest

from kprobes.script.gfp import gfp_text
from kprobes.script.output import JsonOutput, MapShape, SourceReference, TextOutput
from kprobes.script.printf import Format
from kprobes.script.printing import decode, encode, json, text, zero
from kprobes.script.times import strftime, time_of_day
from kprobes.script.types import (
    ArrayType,
    AverageType,
    BooleanType,
    BufferType,
    CountType,
    EnumType,
    FloatType,
    HistogramType,
    IntegerType,
    LinearHistogramType,
    MaximumType,
    PointerType,
    RecordField,
    RecordType,
    StackFrame,
    StackType,
    StatsType,
    StringType,
    StructType,
    SumType,
    SymbolType,
    TimeSeriesType,
    TupleType,
    ValueType,
    VoidType,
)

pytestmark = pytest.mark.quick

INT = IntegerType(64, True)
UNSIGNED = IntegerType(64, False)
BYTE = IntegerType(8, True)
STRING = StringType(32)
FOO = EnumType("Foo", 32, False, {1: "ONE", 2: "TWO"})
POINT = StructType("struct Foo", 8, (RecordField("m", INT, 0), RecordField("n", INT, 4)))
BAR = "@" * 52


@pytest.fixture
def utc() -> Iterator[None]:
    """The host's time zone is UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


def printed_text(shape: MapShape, items: Sequence[tuple[object, object]], **options: int) -> str:
    """Return a map as text."""
    found: list[str] = []
    TextOutput(found.append, found.append).map(shape, items, **options)  # type: ignore[arg-type]
    return "".join(found)


def printed_json(shape: MapShape, items: Sequence[tuple[object, object]], **options: int) -> str:
    """Return a map as JSON."""
    found: list[str] = []
    JsonOutput(found.append, found.append).map(shape, items, **options)  # type: ignore[arg-type]
    return "".join(found)


@pytest.mark.parametrize(
    ("type", "value", "shown", "as_json"),
    [
        (BYTE, -1, "-1", "-1"),
        (UNSIGNED, 1 << 60, str(1 << 60), str(1 << 60)),
        (UNSIGNED, (1 << 60) + 1, str((1 << 60) + 1), f'"{(1 << 60) + 1}"'),
        (BooleanType(), True, "true", "true"),
        (PointerType(VoidType()), 0x33, "0x33", "51"),
        (FOO, 2, "TWO", "2"),
        (FOO, 7, "7", "7"),
        (STRING, b'a "b"\n', 'a "b"\n', '"a \\"b\\"\\n"'),
        (STRING, b"\x01\xe4", "\x01\udce4", '"\\u0001\\uffffffe4"'),
        (BufferType(8), b"a\\\x00\xff", "a\\\\x00\\xff", "[97,92,0,-1]"),
        (FloatType(32), None, "null", "null"),
        (ArrayType(ArrayType(BYTE, 2), 2), [[5, 6], [7, 8]], "[[5,6],[7,8]]", "[[5,6],[7,8]]"),
        (TupleType((BYTE, STRING)), (1, b"hi"), "(1, hi)", '[1,"hi"]'),
        (
            TupleType((BYTE, POINT)),
            (0, {"m": 2, "n": 3}),
            "(0, { .m = 2, .n = 3 })",
            '[0,{"m": 2, "n": 3}]',
        ),
        (RecordType(()), {}, "{}", "{}"),
        (
            StatsType(True),
            (6, 3),
            "{ .count = 3, .average = 2, .total = 6 }",
            '{"count": 3, "average": 2, "total": 6}',
        ),
        (AverageType(True), (-10, 3), "-3", "-3"),
        (SymbolType(user=True), "0x1", "0x1", '"0x1"'),
    ],
)
def test_value(type: ValueType, value: object, shown: str, as_json: str) -> None:
    assert text(type, value) == shown
    assert json(type, value) == as_json


def test_bytes_survive() -> None:
    data = bytes(range(1, 256))
    assert encode(decode(data)) == data


@pytest.mark.parametrize(
    ("mode", "user", "shown"),
    [
        ("bpftrace", True, "\n        fib+16\n        0x1234\n"),
        ("perf", True, "\n\t10010 fib+16 (demo)\n\t1234 0x1234 ([unknown])\n"),
        ("perf", False, "\n\t10010 fib+16\n\t1234 0x1234\n"),
        ("raw", True, "\n10010\n1234\n"),
    ],
)
def test_stack(mode: str, user: bool, shown: str) -> None:
    frames = (StackFrame(0x10010, "fib", 16, "demo"), StackFrame(0x1234, None, 0))
    assert text(StackType(user, mode, 127), frames) == shown


@pytest.mark.parametrize(
    ("format", "type", "value", "shown"),
    [
        ("%d", UNSIGNED, (1 << 64) - 2, "-2"),
        ("%x", INT, 0x12345678ABCDEF, "78abcdef"),
        ("%hhx %%", INT, 0x12345678ABCDEF, "ef %"),
        ("%hx", INT, 0x12345678ABCDEF, "cdef"),
        ("%jx", INT, 0x12345678ABCDEF, "12345678abcdef"),
        ("%llu", INT, -1, str((1 << 64) - 1)),
        ("%u", INT, -1, str((1 << 32) - 1)),
        ("%05d", INT, -5, "000-5"),
        ("%+d", INT, 5, "+5"),
        ("%+u", INT, 5, "5"),
        ("%-5d|", INT, 5, "5    |"),
        ("%*d", INT, 5, "5"),
        ("%.3d", INT, 5, "5"),
        ("%#x", INT, 255, "0xff"),
        ("%#X", INT, 255, "0XFF"),
        ("%#o", INT, 8, "010"),
        ("%#x", INT, 0, "0"),
        ("%p", PointerType(VoidType()), 0, "0"),
        ("%p", INT, -1, "0xffffffffffffffff"),
        ("%c", INT, 0x41, "A"),
        ("%3c", INT, 0x141, "  A"),
        ("%d", BooleanType(), True, "1"),
        ("%s", BooleanType(), True, "true"),
        ("%s", FOO, 1, "ONE"),
        ("%-5s|", FOO, 1, "ONE  |"),
        ("%d", FOO, 1, "1"),
        ("%5s", STRING, "é".encode(), "   é"),
        ("%4s", TupleType((BYTE, BYTE)), (1, 2), "   (1, 2)"),
        ("%+s", TupleType((BYTE, BYTE)), (1, 2), "(+1, +2)"),
        ("%r", BufferType(8), b"Hi\x00", "Hi\\x00"),
        ("%rx", BufferType(8), b"Hi\x00", "\\x48\\x69\\x00"),
        ("%rh", BufferType(8), b"Hi\x00", "48 69 00"),
        ("%gr", INT, 1, "GFP_DMA"),
        ("%d", STRING, b"hi", "!{invalid integer conversion: hi}"),
        ("%q%d", INT, 1, "%q1"),
    ],
)
def test_printf(format: str, type: ValueType, value: object, shown: str) -> None:
    assert Format.parse(format).apply([(type, value)]) == shown


def test_several_arguments() -> None:
    format = Format.parse("%dst: %sa; %rx")
    arguments = [(INT, 1), (STRING, b"ab"), (BufferType(1), b"\x07")]
    assert format.apply(arguments) == "1st: aba; \\x07"


@pytest.mark.parametrize(
    ("format", "types", "problem"),
    [
        ("%d %d", [INT], "not enough arguments for format string (1 supplied, 2 expected)"),
        ("%d", [INT, INT], "too many arguments for format string (2 supplied, 1 expected)"),
        ("%d", [STRING], "unsupported format specifier for type 'string[3]': d"),
        ("%f", [INT], "unsupported format specifier: f"),
        ("%s", [VoidType()], "unable to print none type for specifier: s"),
        ("%s %% %r", [INT, BufferType(4)], None),
    ],
)
def test_problem(format: str, types: list[ValueType], problem: str | None) -> None:
    assert Format.parse(format).problem(types, lambda type: "string[3]") == problem


def test_stack_with_source() -> None:
    frames = (
        StackFrame(0x10010, "add", 0, "demo", "demo.c:3", inlined=True),
        StackFrame(0x10010, "fib", 16, "demo", "demo.c:9"),
    )
    shown = "\n        [inlined] add@demo.c:3\n        fib+16@demo.c:9\n"
    assert text(StackType(True, "bpftrace", 127), frames) == shown
    shown = "\n\t10010 add (inlined)\n\t10010 fib+16 (demo)\n"
    assert text(StackType(True, "perf", 127), frames) == shown


def test_gfp_flags() -> None:
    assert gfp_text(0) == "0"
    assert gfp_text(0xCC0) == "GFP_KERNEL"
    assert gfp_text(0x820) == "GFP_ATOMIC"
    assert gfp_text(0x820 | 0x200) == "GFP_ATOMIC|0x200"


@pytest.mark.parametrize(
    ("top", "div", "keys", "values"),
    [
        (3, 0, [9, 3, 7], [7, 10, 11]),
        (0, 0, [5, 1, 9, 3, 7], [4, 5, 7, 10, 11]),
        (0, 2, [5, 1, 9, 3, 7], [2, 2, 3, 5, 5]),
        (8, 2, [5, 1, 9, 3, 7], [2, 2, 3, 5, 5]),
    ],
)
def test_map_of_integers(top: int, div: int, keys: list[int], values: list[int]) -> None:
    items = [(1, 5), (3, 10), (5, 4), (7, 11), (9, 7)]
    shown = "".join(f"@m[{k}]: {v}\n" for k, v in zip(keys, values, strict=True))
    assert printed_text(MapShape("@m", INT, INT), items, top=top, div=div) == shown


def test_map_sorted_by_key() -> None:
    shape = MapShape("@", TupleType((INT, STRING)), STRING)
    items = [((2, b"a"), b"x"), ((1, b"b"), b"y"), ((1, b"a"), b"z"), ((-1, b"c"), b"")]
    shown = "@[-1, c]: \n@[1, a]: z\n@[1, b]: y\n@[2, a]: x\n"
    assert printed_text(shape, items) == shown


def test_order_of_aggregations() -> None:
    averages = [(1, (16, 3)), (2, (28, 2)), (3, (8, 2))]
    assert (
        printed_text(MapShape("@a", INT, AverageType(False)), averages)
        == "@a[3]: 4\n@a[1]: 5\n@a[2]: 14\n"
    )
    greatest = [(1, -1), (2, 5)]
    assert printed_text(MapShape("@m", INT, MaximumType(True)), greatest) == "@m[2]: 5\n@m[1]: -1\n"


def test_key_loses_parentheses() -> None:
    nested = MapShape("@", TupleType((STRING, TupleType((STRING, INT)))), INT)
    assert printed_text(nested, [((b"hi", (b"x", 2)), 1)]) == "@[hi, (x, 2)]: 1\n"
    assert printed_text(MapShape("@", STRING, INT), [(b"(x)", 1)]) == "@[x]: 1\n"
    assert (
        printed_json(nested, [((b"h i", (b"x", 2)), 1)])
        == '{"type": "map", "data": {"@": {"hi,(x,2)": 1}}}\n'
    )


@pytest.mark.parametrize(
    ("type", "shown"),
    [
        (INT, "@: 0\n"),
        (CountType(), "@: 0\n"),
        (SumType(True), "@: 0\n"),
        (StatsType(False), "@: { .count = 0, .average = 0, .total = 0 }\n"),
        (
            RecordType((RecordField("a", INT, 0), RecordField("b", TupleType((INT, STRING)), 8))),
            "@: { .a = 0, .b = (0, ) }\n",
        ),
        (HistogramType(0), ""),
    ],
)
def test_unset_scalar_map(type: ValueType, shown: str) -> None:
    shape = MapShape("@", None, type)
    assert printed_text(shape, []) == shown
    assert printed_text(shape, [], final=True) == ""
    assert printed_json(shape, [], final=True) == ""


def test_zero() -> None:
    assert zero(TupleType((INT, STRING, ArrayType(BYTE, 2), POINT))) == (0, b"", [0, 0], {"m": 0, "n": 0})


def test_histogram() -> None:
    counts = [1, 0, 0, 2, 1, 0, 1]
    shown = (
        "@:\n"
        "(..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n"
        "[0]                    0 |                                                    |\n"
        "[1]                    0 |                                                    |\n"
        f"[2, 4)                 2 |{BAR}|\n"
        "[4, 8)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n"
        "[8, 16)                0 |                                                    |\n"
        "[16, 32)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n"
        "\n"
    )
    assert printed_text(MapShape("@", None, HistogramType(0)), [(None, counts)]) == shown


def test_histogram_of_large_numbers() -> None:
    shape = MapShape("@", None, HistogramType(0))
    counts = [0] * 35 + [1]
    assert printed_text(shape, [(None, counts)]) == f"@:\n[8G, 16G)              1 |{BAR}|\n\n"
    shown = '[{"min": 8589934592, "max": 17179869183, "count": 1}]'
    assert (
        printed_json(shape, [(None, counts)]) == f'{{"type": "hist", "data": {{"@": {shown}}}}}\n'
    )


def test_histogram_with_finer_rows() -> None:
    counts = [0] * 16 + [1, 2, 0, 2]
    found = standard_json.loads(printed_json(MapShape("@", None, HistogramType(3)), [(None, counts)]))
    assert found["data"]["@"] == [
        {"min": 15, "max": 15, "count": 1},
        {"min": 16, "max": 17, "count": 2},
        {"min": 18, "max": 19, "count": 0},
        {"min": 20, "max": 21, "count": 2},
    ]


def test_zeroed_histogram() -> None:
    shape = MapShape("@h", None, LinearHistogramType(0, 100, 10))
    assert printed_json(shape, [(None, [0] * 12)]) == '{"type": "hist", "data": {"@h": []}}\n'
    assert printed_text(shape, [(None, [0] * 12)]) == "@h:\n\n"


def test_histograms_by_key() -> None:
    shape = MapShape("@", INT, HistogramType(0))
    items = [(0, [0, 10, 20]), (1, [0, 2, 2])]
    shown = (
        f"@[1]:\n[0]                    2 |{BAR}|\n[1]                    2 |{BAR}|\n\n"
        "@[0]:\n[0]                   10 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |\n"
        f"[1]                   20 |{BAR}|\n\n"
    )
    assert printed_text(shape, items) == shown
    assert printed_text(shape, items, top=1, div=2).startswith("@[0]:\n[0]                    5 |")


@pytest.mark.parametrize(
    ("type", "counts", "rows"),
    [
        (
            LinearHistogramType(610000, 630000, 10000),
            [0, 1, 1, 0],
            ["[610000, 620000)", "[620000, 630000)"],
        ),
        (LinearHistogramType(0, 3072, 1024), [0, 1, 1, 1, 0], ["[0, 1K)", "[1K, 2K)", "[2K, 3K)"]),
        (LinearHistogramType(0, 100, 10), [0] * 11 + [1], ["[100, ...)"]),
        (LinearHistogramType(10, 110, 10), [1] + [0] * 11, ["(..., 10)"]),
        (LinearHistogramType(0, 3, 1), [0, 1, 0, 1, 1], ["[0]", "[1]", "[2]", "[3, ...)"]),
    ],
)
def test_linear_histogram(type: LinearHistogramType, counts: list[int], rows: list[str]) -> None:
    lines = printed_text(MapShape("@", None, type), [(None, counts)]).splitlines()[1:-1]
    assert [line[:16].rstrip() for line in lines] == rows


def test_linear_histogram_as_json() -> None:
    shape = MapShape("@h", None, LinearHistogramType(0, 20, 10))
    shown = '[{"max": -1, "count": 1},{"min": 0, "max": 9, "count": 0},{"min": 10, "max": 19, "count": 2},{"min": 20, "count": 1}]'
    assert (
        printed_json(shape, [(None, [1, 0, 2, 1])])
        == f'{{"type": "hist", "data": {{"@h": {shown}}}}}\n'
    )


def test_avg_is_stats_in_json() -> None:
    shape = MapShape("@", STRING, AverageType(True))
    items = [
        (name, (number, 1)) for name, number in ((b"a", 10), (b"b", 20), (b"c", 30), (b"d", 40))
    ]
    shown = '{"type": "stats", "data": {"@": {"c": 3, "d": 4}}}\n'
    assert printed_json(shape, items, top=2, div=10) == shown


MS = 1_000_000


@pytest.mark.usefixtures("utc")
def test_time_series() -> None:
    shape = MapShape("@a", None, TimeSeriesType(100 * MS, 5, None, True))
    values = {start * 100 * MS: 9 for start in range(10)}
    row = "|                         *                         |"
    shown = (
        "@a:\n"
        "             8                                                  10\n"
        "hh:mm:ss.ms  |___________________________________________________|\n"
        + "".join(f"00:00:00.{start}00 {row} 9\n" for start in range(5, 10))
        + "             v___________________________________________________v\n"
        "             8                                                  10\n\n"
    )
    assert printed_text(shape, [(None, values)]) == shown
    found = standard_json.loads(printed_json(shape, [(None, values)]))
    assert found["type"] == "tseries"
    assert found["data"]["@a"][0] == {"interval_start": "1970-01-01 00:00:00.500000000", "value": 9}
    assert len(found["data"]["@a"]) == 5


@pytest.mark.usefixtures("utc")
def test_time_series_with_gaps_and_zero() -> None:
    shape = MapShape("@a", INT, TimeSeriesType(100 * MS, 4, None, True))
    lines = printed_text(shape, [(1, {0: -5, 100 * MS: 5}), (2, {300 * MS: 0})]).splitlines()
    assert lines[3:7] == [
        "00:00:00.000 *                         .                         | -5",
        "00:00:00.100 |                         .                         * 5",
        "00:00:00.200 |                         .                         | -",
        "00:00:00.300 |                         .                         | -",
    ]
    assert "@a[2]:" in lines


def test_empty_time_series() -> None:
    shape = MapShape("@a", None, TimeSeriesType(100 * MS, 5, None, True))
    assert printed_text(shape, [(None, {})]) == "@a:\n<no data>\n"
    assert printed_json(shape, [(None, {})]) == '{"type": "tseries", "data": {"@a": []}}\n'


@pytest.mark.usefixtures("utc")
def test_points_in_time() -> None:
    assert strftime("%s.%f", 1_000_123_000) == "1.000123"
    assert strftime("%H %l %k", 3_600_123_456_789) == "01 123 123456789"
    assert strftime("%H", 5) == "(?)"
    assert time_of_day("%H:%M:%S\n", 60) == "00:01:00\n"
    assert time_of_day("x" * 64, 60) is None


CALL = SourceReference("stdin:1:15-38", "stdin", 1, 15)
EXPANSION = SourceReference("stdin:1:50-55", "stdin", 1, 50, ("macro", "~~~"))


def messages(output: type[TextOutput] | type[JsonOutput]) -> tuple[str, str]:
    """Return what goes to standard output and error when each kind of message is written."""
    out: list[str] = []
    err: list[str] = []
    writer = output(out.append, err.append)
    writer.attached_probes(1)
    writer.attached_probes(2)
    writer.printf("a\n")
    writer.message(True, "bad\n", [CALL, EXPANSION])
    writer.time("12\n")
    writer.cat("c")
    writer.join("j")
    writer.syscall("s")
    writer.value(INT, 5)
    writer.lost_events(3)
    writer.runtime_error("divide_by_zero", [CALL])
    writer.helper_error("map_update_elem", -7, [CALL])
    writer.end()
    return "".join(out), "".join(err)


def test_messages_as_text() -> None:
    out, err = messages(TextOutput)
    assert out == "a\n12\ncj\ns\n5\n\n\n"
    assert err == (
        "Attached 1 probe\n"
        "Attached 2 probes\n"
        "stdin:1:15-38: ERROR: bad\n"
        "stdin:1:50-55: ERROR: expanded from\nmacro\n~~~\n"
        "Lost 3 events\n"
        "stdin:1:15-38: WARNING: Divide or modulo by 0 detected. This can lead to unexpected "
        "results. 1 is being used as the result.\n"
        "stdin:1:15-38: WARNING: Map full; can't update element. Try increasing max_map_keys "
        "config or manually setting the max entries in a map declaration e.g. "
        "`let @a = hash(5000)`\n"
        "Additional Info - helper: map_update_elem, retcode: -7\n"
    )


def test_messages_as_json() -> None:
    out, err = messages(JsonOutput)
    assert err == ""
    assert out.splitlines() == [
        '{"type": "attached_probes", "count": 1, "data": {"probes": 1}}',
        '{"type": "attached_probes", "count": 2, "data": {"probes": 2}}',
        '{"type": "printf", "data": "a\\n"}',
        '{"type": "errorf", "msg": "bad\\n", "filename": "stdin", "line": 1, "col": 15}',
        '{"type": "time", "data": "12\\n"}',
        '{"type": "cat", "data": "c"}',
        '{"type": "join", "data": "j"}',
        '{"type": "syscall", "data": "s"}',
        '{"type": "value", "data": 5}',
        '{"type": "lost_events", "count": 3, "data": {"events": 3}}',
        '{"type": "runtime_error", "msg": "Divide or modulo by 0 detected. This can lead to '
        'unexpected results. 1 is being used as the result.", "filename": "stdin", "line": 1, '
        '"col": 15}',
        '{"type": "helper_error", "msg": "Argument list too long", "helper": "map_update_elem", '
        '"retcode": -7, "filename": "stdin", "line": 1, "col": 15}',
    ]


def test_results_of_tests_and_benchmarks() -> None:
    out: list[str] = []
    writer = TextOutput(out.append, out.append)
    writer.test_result(["a", "b"], [True], 1500, "")
    writer.test_result(["a", "b"], [True, False], 2_000_000, "oh\n")
    writer.benchmark_result(["x"], 0, 12, 1000)
    plain = "".join(out).replace("\x1b[32m", "").replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert plain == (
        "[==========] Running 2 tests.\n[ RUN      ] a\n[       OK ] a (1 μs)\n"
        "[ RUN      ] b\noh\n[  FAILED  ] b (2 ms)\n[==========] 2 tests ran.\n"
        "[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] b\n"
        f"{'Benchmark':<41}{'Time(ns)':<15}Iterations\n{'-' * 66}\n{'x':<41}{'12':<15}1000\n"
    )
