"""The grammar of scripts: what text becomes which tree, and what is said of text that becomes none."""

import pytest

from kprobes.script import tree
from kprobes.script.parser import parse, parse_expression
from kprobes.script.points import read
from kprobes.script.scanner import integer
from kprobes.script.source import Diagnostics, ScriptError, ScriptSource

pytestmark = pytest.mark.quick


def script(text: str) -> tree.ParsedScript:
    """The tree of a script."""
    source = ScriptSource("stdin", text)
    return parse(source, Diagnostics(source))


def shape(node: tree.Node | None) -> object:
    """An expression as nested tuples."""
    match node:
        case tree.NumberLiteral(value=value):
            return value
        case tree.StringLiteral(value=value):
            return value
        case tree.Name(name=name) | tree.ScratchVariable(name=name) | tree.MapName(name=name):
            return name
        case tree.Binary(operator=operator, left=left, right=right):
            return operator, shape(left), shape(right)
        case tree.Unary(operator=operator, operand=operand):
            return operator, shape(operand)
        case tree.Conditional(condition=condition, then=then, otherwise=otherwise):
            return "?", shape(condition), shape(then), shape(otherwise)
        case tree.Cast(type=kind, operand=operand):
            return "cast", kind.name, kind.pointers, kind.sizes, shape(operand)
        case tree.FieldAccess(of=of, name=name):
            return ".", shape(of), name
        case tree.TupleAccess(of=of, index=index):
            return ".", shape(of), index
        case tree.Index(of=of, index=index):
            return "[]", shape(of), shape(index)
        case tree.FunctionCall(name=name, arguments=arguments):
            return name, *map(shape, arguments)
        case tree.TupleLiteral(items=items):
            return "tuple", *map(shape, items)
        case tree.RecordLiteral(fields=fields):
            return "record", *((name, shape(value)) for name, value in fields)
        case tree.MapAccess(map=name, key=key):
            return shape(name), shape(key)
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", ("+", 1, ("*", 2, 3))),
        ("1 - 2 - 3", ("-", ("-", 1, 2), 3)),
        ("a | b ^ c & d", ("|", "a", ("^", "b", ("&", "c", "d")))),
        ("1 << 2 + 3 < 4 == 5", ("==", ("<", ("<<", 1, ("+", 2, 3)), 4), 5)),
        ("1 || 2 && 3", ("||", 1, ("&&", 2, 3))),
        ("1 ? 2 : 3 ? 4 : 5", ("?", 1, 2, ("?", 3, 4, 5))),
        ("$a ?: 5", ("?", "$a", "$a", 5)),
        ("-$x.y[2]", ("-", ("[]", (".", "$x", "y"), 2))),
        ("$x->y.0", (".", (".", "$x", "y"), 0)),
        ("*$p++", ("*", ("x++", "$p"))),
        ("(uint8)1 + 2", ("+", ("cast", "uint8", 0, (), 1), 2)),
        ("(struct foo *)arg0", ("cast", "struct foo", 1, (), "arg0")),
        ("(int8[4])$x", ("cast", "int8", 0, (4,), "$x")),
        ("(uint16[])$x", ("cast", "uint16", 0, (None,), "$x")),
        ("(pid) - 1", ("-", "pid", 1)),
        ("(1, \"a\")", ("tuple", 1, b"a")),
        ("(1,)", ("tuple", 1)),
        ("()", ("tuple",)),
        ("(a = 1, b = (c = 2))", ("record", ("a", 1), ("b", ("record", ("c", 2))))),
        ("@x[1, 2]", ("@x", ("tuple", 1, 2))),
        ("@[arg0]", ("@", "arg0")),
        ("f(1, g())", ("f", 1, ("g",))),
        (r'"a\n\x41\101\\\""', b'a\nAA\\"'),
        ("1 /* two */ + // three\n 4", ("+", 1, 4)),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    source = ScriptSource("stdin", text)
    assert shape(parse_expression(source, Diagnostics(source))) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("0x1F", 31), ("0777", 511), ("1_000", 1000), ("2e3", 2000), ("5ms", 5_000_000), ("1m", 60 * 10**9),
     ("123UL", 123), ("0", 0)],
)
def test_integers(text: str, value: int) -> None:
    assert integer(text) == value


@pytest.mark.parametrize("text", ["12e1", "0x", "99999999999999999999", "089", "1e99"])
def test_what_is_no_integer(text: str) -> None:
    assert isinstance(integer(text), str)


def test_statements() -> None:
    body = script("""
        begin {
            let $a: uint16 = 1; $b = 2; @c[1] += 3; @d++; ++$b;
            if ($a) { $b = 1 } else if $b { exit(); } else { 1; }
            while ($b < 3) { continue; }
            unroll (3) { print(1) }
            for $i : 0..5 { break }
            for ($kv : @c) { print($kv.0); }
            _ = delete(@c, 1);
            return;
        }""").probes[0].body
    assert [type(one).__name__ for one in body.statements] == [
        "Declare", "Assign", "Assign", "Evaluate", "Evaluate", "Evaluate", "While", "Unroll", "ForRange", "ForMap",
        "Evaluate", "JumpStatement"]


def test_everything_around_probes() -> None:
    made = script("""#!/usr/bin/bpftrace
        #define N 5
        struct s { int a; } __attribute__((packed));
        config = { max_strlen = 10; stack_mode = perf }
        let @m = lruhash(7);
        macro add($x, @m, e) { $x + e }
        BEGIN, kprobe:f /arg0 > 1/ { }
        uprobe:/lib/x.so:"a,b" { }""")
    assert [name for name, _ in made.definitions] == ["#define N 5", "struct s { int a; } __attribute__((packed));"]
    assert [(one.name, one.value) for one in made.settings] == [("max_strlen", 10), ("stack_mode", "perf")]
    assert (made.maps[0].name, made.maps[0].kind, made.maps[0].entries) == ("@m", "lruhash", 7)
    assert [type(one).__name__ for one in made.macros[0].parameters] == ["ScratchVariable", "MapName", "Name"]
    assert [[point.text for point in probe.points] for probe in made.probes] == [
        ["BEGIN", "kprobe:f"], ['uprobe:/lib/x.so:"a,b"']]
    assert shape(made.probes[0].predicate) == (">", "arg0", 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("begin { $a = ; }", "stdin:1:14-15: ERROR: syntax: expected expression\nbegin { $a = ; }\n             ~"),
        ("begin {\n\tprint(1 }", "stdin:2:10-11: ERROR: syntax: expected ')'\n    print(1 }\n            ~"),
        ("begin { 1 2 }", "stdin:1:11-12: ERROR: syntax: expected ';'\nbegin { 1 2 }\n          ~"),
        ('begin { print("a) }', "stdin:1:20-20: ERROR: syntax: unterminated string\nbegin { print(\"a) }\n"
                                "                   ~"),
        ("begin { 12abc; }", "stdin:1:11-14: ERROR: syntax: invalid integer suffix 'abc'\nbegin { 12abc; }\n"
                             "          ~~~"),
        ("begin", "stdin:1:6-6: ERROR: syntax: expected '{'\nbegin\n     ~"),
    ],
)
def test_messages_have_a_caret(text: str, shown: str) -> None:
    with pytest.raises(ScriptError) as caught:
        script(text)
    assert caught.value.shown == shown


@pytest.mark.parametrize("text", ["begin { $t = (1, 2); print($t.²) }", "begin { print($²) }", "begin { print(²) }"])
def test_digits_that_are_no_numbers(text: str) -> None:
    with pytest.raises(ScriptError):
        script(text)


@pytest.mark.parametrize("text", ["kprobe", "kprobe:f+", "kprobe:f+0x10", "uprobe:a:f", "interval:s:1", "i:10ms",
                                  "watchpoint:0x10:4:rw", "usdt:a:b:c", "self:signal:SIGUSR1", "profile:hz:99"])
def test_points(text: str) -> None:
    source = ScriptSource("stdin", text)
    found = Diagnostics(source)
    made = read(tree.AttachPoint(span=script(f"{text} {{}}").probes[0].points[0].span, text=text), found)
    assert (len(made) == 1) != found.failed
    if text == "kprobe:f+0x10":
        assert (made[0].function, made[0].offset) == ("f", 16)
    if text == "i:10ms":
        assert (made[0].kind, made[0].period) == ("interval", 10_000_000)


def test_a_misspelt_kind_and_one_without_meaning() -> None:
    source = ScriptSource("stdin", "kprob:f {} tracepoint:a:b {}")
    found = Diagnostics(source)
    for probe in script(source.text).probes:
        read(probe.points[0], found)
    assert "HINT: did you mean kprobe?" in found.messages[0].shown(source)
    assert "tracepoint probes have no meaning in this guest" in found.messages[1].text
