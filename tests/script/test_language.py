"""Scripts without a guest: what the language computes, in the interpreter and in host code."""

import io
import random
import re
from pathlib import Path

import pytest

from kprobes.programs.program import Program
from kprobes.script import ScriptError, blocks, definitions
from kprobes.script.folding import Parameters, _Folder
from kprobes.script.headers import Headers
from kprobes.script.output import JsonOutput
from kprobes.script.script import Script
from kprobes.script.settings import Settings
from kprobes.script.source import NOWHERE, Diagnostics, ScriptSource
from kprobes.script.tree import AttachPoint

ENGINES = ("interpreter", "host")


def run(text: str, engine: str | None = "interpreter", **options: object) -> Script:
    """A script that has run to its end."""
    made = Script(text, engine=engine, quiet=True, environment={}, **options)  # type: ignore[arg-type]
    with made:
        made.wait()
    return made


def printed(expression: str, before: str = "") -> str:
    """What print() shows of an expression."""
    return run(f"{before} begin {{ print({expression}); }}").output.strip()


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("6 * 7", "42"), ("7 - 9", "-2"), ("(uint64)3 - 5", "-2"), ("1 << 16", "65536"), ("(uint16)(1 << 16)", "0"),
        ("(uint8)300", "44"), ("(int8)200", "-56"), ("10 % 4 + 7 / 2", "5"), ("~5", "18446744073709551610"),
        ("1 == 1", "true"), ("!5", "false"), ("1 < 2 && 2 < 1", "false"), ('"a" == "a"', "true"), ("5 ? 6 : 7", "6"),
        ('(1, "x", (2, 3))', "(1, x, (2, 3))"), ("(a = 1, b = \"c\")", "{ .a = 1, .b = c }"), ("(1, 2).1", "2"),
        ('"foo"[0]', "102"), ("(int8[4])1", "[1,0,0,0]"), ("(uint32)pton(\"127.0.0.1\")", "16777343"),
        ('str("abcdef", 3)', "ab"), ("sizeof(uint32)", "4"), ("bswap((uint16)0x1234)", "13330"),
        ('strlen("hello")', "5"), ('strcontains("hello", "ll")', "true"), ('strcontains("hello", "lo!")', "false"),
        ('strstr("hello", "lo")', "3"), ('strncmp("hello", "help", 3)', "0"), ('strncmp("hello", "help", 4)', "1"),
        ('str_concat("a", "bc")', "abc"), ("(uint8)-1 == 255", "true"), ('ntop(2130706433) == ntop(1)', "false"),
        ("comm", "bpftrace"), ("probe", "begin"), ("probetype", "special"), ("is_str(\"a\")", "true"),
        ("1e3", "1000"),
    ],
)
def test_expressions(expression: str, shown: str) -> None:
    assert printed(expression) == shown


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("call", "shown"), [
    ('str("abcdef", $n)', ["", "", "a", "abcd", "abcdef", "abcdef"]),
    ('str((int8[6])"abcdef", $n)', ["", "", "a", "abcd", "abcdef", "abcdef"]),
    ('buf("abcdef", $n)', ["", "a", "ab", "abcde", "abcdef\\x00", "abcdef\\x00"]),
])
def test_computed_lengths_of_own_text(engine: str, call: str, shown: list[str]) -> None:
    """As of the guest's text: str()'s length counts the NUL."""
    lengths = (0, 1, 2, 5, 7, 100)
    made = run(f"begin {{ let $n = (uint64)0; {' '.join(f'$n = {n}; print({call});' for n in lengths)} }}", engine)
    assert made.output.split("\n")[: len(lengths)] == shown


def test_definitions_of_text_and_of_wide_enumerations() -> None:
    assert printed("X", '#define X "a\\tb\\x41\\101"\n') == "a\tbAA"
    assert printed("(A, B, (enum e)B)", "enum e { A = -1, B = 0x80000000 }") == "(A, B, B)"
    with pytest.raises(ScriptError, match="invalid hex escape"):
        printed("X", '#define X "\\xg"\n')


@pytest.mark.parametrize("engine", ENGINES)
def test_control(engine: str) -> None:
    made = run("""
        begin {
            for $i : 0..10 { if ($i == 3) { continue } if ($i == 6) { break } @for[$i] = $i * $i; }
            let $n; while ($n < 5) { $n++; @while += $n; }
            unroll(3) { @unroll++; }
            for ($kv : @for) { @sum += $kv.1; delete(@for, $kv.0); }
            @left = len(@for);
            for $a : 0..3 { for $b : 0..3 { if ($a == $b) { @equal++ } } }
            if (1) { return; }
            @never = 1;
        }""", engine)
    assert {name: made.maps[name] for name in ("while", "unroll", "sum", "left", "equal")} == {
        "while": 15, "unroll": 3, "sum": 0 + 1 + 4 + 16 + 25, "left": 0, "equal": 3}
    assert made.maps["never"] is None


@pytest.mark.parametrize("engine", ENGINES)
def test_maps_and_aggregates(engine: str) -> None:
    made = run("""
        begin {
            @n["a", 1] = count(); @n["a", 1] = count(); @n["b", 2] = count();
            @s = sum(5); @s = sum(-7); @a = avg(4); @a = avg(9); @lo = min(3); @lo = min(-2); @hi = max(7); @hi = max(2);
            @st = stats(10); @st = stats(30);
            @h = hist(0); @h = hist(1); @h = hist(5); @h = hist(-3); @h2 = hist(100, 2);
            @l = lhist(5, 0, 10, 2); @l = lhist(-1, 0, 10, 2); @l = lhist(99, 0, 10, 2);
            @t = (1, "two"); @k[(1, 2)] = "x"; @has = has_key(@k, (1, 2)); @gone = delete(@k, (3, 4));
            let $f; if (find(@k, (1, 2), $f)) { @found = $f; }
            if (@s == -2) { @read = 1 } @c = (int64)@n["a", 1];
        }""", engine)
    maps = made.maps
    assert dict(maps["n"]) == {(b"a", 1): 2, (b"b", 2): 1}
    assert (maps["s"], maps["a"], maps["lo"], maps["hi"], maps["st"]) == (-2, (13, 2), -2, 7, (40, 2))
    assert maps["h"][:6] == [1, 1, 1, 0, 1, 0]
    # 100 is 0b1100100: power 4 above 4, its upper three bits 0b110: bucket 4 * 4 + 6, row one more
    assert maps["h2"].index(1) == 4 * 4 + 6 + 1
    assert maps["l"] == [1, 0, 0, 1, 0, 0, 1]
    assert (maps["t"], maps["has"], maps["gone"], maps["found"]) == ((1, b"two"), True, False, b"x")
    assert (maps["read"], maps["c"]) == (1, 2)


def test_output_at_the_end_is_bpftraces() -> None:
    made = run('begin { printf("%d %s|%5d|%-4s|%x\\n", -1, "text", 7, "ab", 255); @b[2] = 1; @a = 5; print(@a); }')
    assert made.output == "-1 text|    7|ab  |ff\n@a: 5\n\n\n@a: 5\n@b[2]: 1\n"


def test_json() -> None:
    out = io.StringIO()
    run('begin { @x[1, "a"] = 2; print((1, 2)); exit(3); }', output=JsonOutput(out.write, out.write))
    assert out.getvalue() == '{"type": "value", "data": [1,2]}\n{"type": "map", "data": {"@x": {"1,a": 2}}}\n'


def test_clear_zero_exit_and_end() -> None:
    made = run("begin { @a[1] = 5; @b = 7; @c = count(); clear(@a); zero(@b); exit(4); print(1); } end { print(2); }")
    assert (made.status, made.output) == (4, "2\n\n\n@b: 0\n@c: 1\n")


def test_intervals_run_by_the_clock() -> None:
    made = run("interval:ms:1 { @++; if (@ == 3) { exit(); } }")
    assert made.maps[""] == 3


def test_integers_widen_backwards_over_the_whole_script() -> None:
    made = run('begin { $a = 1; print(sizeof($a)); $a = (uint64)2; @m = -1; @m = 70000; print(sizeof(@m)); }')
    assert made.output.splitlines()[:2] == ["8", "4"]


def test_division_by_zero_gives_one_and_warns() -> None:
    made = run("begin { $z = 0; print(5 / $z); }")
    assert made.output.startswith("1\n")
    assert "stdin:1:23-29: WARNING: Divide or modulo by 0 detected." in made.errors


_CAST = ("Expression of type: uint64 being cast to type: int64. This may cause unexpected results. Use an explicit "
         "cast to suppress this warning.")
_SIGNED = "signed operands for '%' can lead to undefined behavior (cast to unsigned to silence warning)"


@pytest.mark.parametrize(
    ("body", "warnings"),
    [
        # as real bpftrace 0.27 says it, tools/beside_bpftrace/answers.json
        ("@[1] = 1; delete(@, 1);", {"19-31": "Return value discarded."}),
        ("$a = (int32)7; print($a % 2);", {"30-36": _SIGNED}),
        ("print((uint64)3 - 5);", {"15-23": _CAST}),
        ("print(3 - 5); $x = (uint64)1; $x++; print($x > 3);", {}),
        ("$x = (uint64)1; $x = (int64)2;", {"14-22": _CAST}),
        ("@x = (uint64)1; @x = -2;", {"14-22": _CAST}),
        ("let $u;", {"9-15": "Variable $u was never assigned to."}),
        ("let $u; print($u); print(sizeof($u)); $u = 1;", {"23-25": "Variable used before it was assigned: $u"}),
        ("$x = (uint64)1; $x = (int64)2; let $u;", {"40-46": "Variable $u was never assigned to.", "14-22": _CAST}),
        ("let $u: int32; if (1) { $u = 2; } print($u);", {}),
    ],
)
def test_warnings(body: str, warnings: dict[str, str]) -> None:
    made = run(f"begin {{ {body} }}")
    lines = [warning.splitlines()[0] for warning in made.warnings]
    assert lines == [f"stdin:1:{place}: WARNING: {text}" for place, text in warnings.items()]


def test_while_is_deprecated() -> None:
    (warning,) = run("begin { while (@x < 3) { @x++; } }").warnings
    lines = warning.splitlines()
    assert lines[0] == "stdin:1:9-33: WARNING: While loops are deprecated and may be removed in the future."
    assert lines[-1].startswith("HINT: For loops support ranges")


@pytest.mark.parametrize(
    ("call", "errors"),
    [
        ("lhist(1, -2, 4, 2)", ["lhist: invalid min value (must be non-negative literal)"]),
        ("lhist(1, 5, 3, 1)", ["lhist() min must be less than max (provided min 5 and max 3)"]),
        ("lhist(1, 0, 3, 10)", ["lhist() step is too large for the given range (provided step 10 for range 3)"]),
        ("lhist(1, 0, 5, $x)", ["lhist: invalid step value"]),
        ("tseries(1, -1, 5)", ["tseries: invalid interval_ns value (must be non-negative literal)"]),
    ],
)
def test_limits_are_literals_that_go_together(call: str, errors: list[str]) -> None:
    with pytest.raises(ScriptError) as caught:
        run(f"begin {{ $x = 1; @ = {call}; }}")
    assert [message.text for message in caught.value.messages if message.kind == "ERROR"] == errors


def test_a_full_map_and_a_missing_key_warn() -> None:
    made = run("let @m = hash(1); begin { @m[1] = 1; @m[2] = 2; delete(@m, 5); }")
    assert "Map full; can't update element" in made.errors
    assert "Can't delete map element because it does not exist." in made.errors


def test_an_endless_loop_ends() -> None:
    made = run("begin { while (1) { @++; } } end { print(1); }", "host")
    assert made.maps[""] == 1 << 23


def test_parameters() -> None:
    made = run('begin { print(($1, str($2), $#)); print(getopt("n", 5)); print(getopt("b")); }',
               parameters=Parameters(["0x10", "word"], {"n": "7", "b": True}))
    assert made.output.splitlines()[:3] == ["(16, word, 2)", "7", "true"]


def test_parameters_in_probes() -> None:
    """A number is read whole, what was not given stays, and a parameter's own text is not read again."""
    found = Diagnostics(ScriptSource("stdin", ""))
    folder = _Folder(Parameters(["a$2", "b"]), Settings(), found)
    point = AttachPoint(span=NOWHERE, text="uprobe:f_$1_$2_$12_$0")
    assert folder.point(point).text == "uprobe:f_a$2_b_$12_$0" and not found.messages


def test_enumerators_of_one_number() -> None:
    made = run("enum e { A = 1, B = 1 }; begin { print(A); print(B); print((enum e)1); }")
    assert made.output.splitlines()[:3] == ["A", "A", "A"]  # of two names the first, as in the definition


def test_macros() -> None:
    made = run("""
        macro add_one(x) { x + 1 }
        macro both($a, @b) { $a += 1; @b += 1; }
        macro one() { 1 }
        begin { $a = 10; @b = 5; both($a, @b); print(add_one($a) + @b + one); }""")
    assert made.output.startswith("19\n")


def test_c_definitions() -> None:
    made = run("""
        #define SIZE (1 << 4)
        enum color { RED, GREEN = 5, BLUE };
        struct inner { char c; short s; };
        struct outer { int a : 3; unsigned b : 5; struct inner in[2]; union { long l; char t[3]; }; struct outer *next; };
        begin {
            print((SIZE, sizeof(struct outer), offsetof(struct outer, in), offsetof(struct outer, l)));
            $c = GREEN; print($c); printf("%s %d\\n", BLUE, BLUE); print((enum color)1);
        }""")
    assert made.output.splitlines()[:4] == ["(16, 32, 2, 16)", "GREEN", "BLUE 6", "1"]


def test_quotients_of_constants_are_cut_toward_zero_as_in_c() -> None:
    made = run("""
        #define HALF (-7 / 2)
        #define REST (-7 % 3)
        enum signs { BELOW = 7 / -2, LEFT = 7 % -3 };
        begin { print((HALF, REST, (int64)BELOW, (int64)LEFT)); }""")
    assert made.output.splitlines()[0] == "(-3, -1, -3, 1)"


def test_characters_of_definitions_have_cs_escapes() -> None:
    made = run(r"""
        #define LINE '\n'
        #define OCTAL '\12'
        #define QUOTE '\''
        enum chars { n = 5, HEX = '\x41', ZERO = '\0' };
        begin { print((LINE, OCTAL, QUOTE, (int64)HEX, (int64)ZERO)); }""")
    assert made.output.splitlines()[0] == "(10, 10, 39, 65, 0)"


def test_characters_of_definitions_are_read_whatever_stands_between_the_apostrophes() -> None:
    """Escapes of one hexadecimal digit, and characters that Python's own literals refuse."""
    texts = {"'\\x7'": 7, "'\\x41'": 65, "'\n'": 10, "'\0'": 0, "'\r'": 13, "'\\''": 39, "'\"'": 34, "'\\101'": 65, "'\\v'": 11}
    assert {text: definitions.constant(text, {}) for text in texts} == texts
    assert definitions.constant("'\\377'", {}) is None and definitions.constant("'\\x'", {}) is None


def test_constants_of_definitions_have_only_what_c_has() -> None:
    assert printed("SUM", "#define SUM (1 + \\\n 2)  // three\n") == "3"
    with pytest.raises(ScriptError, match="Unknown identifier: 'FIRST'"):
        printed("FIRST", "#define FIRST $1\n")


@pytest.mark.parametrize(("probe", "message"), [
    ("kprobe:f+09", "kprobe probe: invalid trailing bytes: 09"),
    ("kprobe:099", "kprobe probe: invalid trailing bytes: 099"),
    ("watchpoint:099:8:w", "watchpoint probe: invalid trailing bytes: 099"),
    ("kprobe:f+010", "there is no guest"), ("watchpoint:0100:8:w", "there is no guest")])
def test_numbers_of_attach_points_are_cs(probe: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        Script(f"{probe} {{ }}", quiet=True, environment={})


@pytest.mark.parametrize("script", [
    "begin { print(N); }", "begin { print((1, 2).N); }", "begin { print($N); }", "begin { print(argN); }",
    "#define X N\nbegin { print(X); }", "struct a { char c[N]; }; begin { }", "config = { max_strlen = N } begin { }",
    "kprobe:N { }", "kprobe:f+N { }", "kprobe:x:a.c:N { }", "watchpoint:N:8:w { }", "interval:s:N { }",
    "interval:Ns { }", 'begin { printf("%Nd", 1); }', "kprobe:$N { }"])
def test_numbers_that_python_refuses_to_convert(script: str) -> None:
    with pytest.raises(ScriptError):
        Script(script.replace("N", "1" * 5000), quiet=True, environment={})


def test_config_and_the_environment() -> None:
    text = 'config = { max_strlen = 64; print_maps_on_exit = 0 } begin { @ = 1; print(sizeof(str(0))); }'
    assert run(text).output == "65\n\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("begin { print($x); }", "stdin:1:15-17: ERROR: Undefined or undeclared variable: $x"),
        ("begin { print(@x); }", "ERROR: Undefined map: @x"),
        ("begin { @counts = 1; print(@conuts); }", "HINT: did you mean @counts?"),
        ("begin { prntf(\"\"); }", "HINT: did you mean printf?"),
        ('begin { $a = 1; $a = "s"; }', "Type mismatch for $a: trying to assign value of type 'string[2]' when variable "
                                        "already has a type 'int8'"),
        ('begin { @a[1] = 1; @a["x"] = 2; }', "Argument mismatch for @a: trying to access with arguments: 'string[2]' "
                                              "when map expects arguments: 'int8'"),
        ("begin { @a = 1; @a[1] = 2; }", "@a used as a map with an explicit key (non-scalar map), previously used "
                                         "without an explicit key (scalar map)"),
        ("begin { if (1) { $a = 1; } print($a); }", "Undefined or undeclared variable: $a"),
        ("begin { $x = hist(1); }", "hist() must be assigned directly to a map"),
        ('begin { printf("%d"); }', "not enough arguments for format string (0 supplied, 1 expected)"),
        ('begin { system("ls"); }', "--unsafe allows it"),
        ("begin { print(arg0); }", "The arg0 builtin can only be used with kprobe, uprobe and usdt probes"),
        ("kprobe:f { }", "there is no guest that could be probed"),
        ("begin { break; }", "can only be used inside of a loop"),
        ("config = { max_strlne = 1 } begin { }", "HINT: did you mean max_strlen?"),
        ("macro m() { @x = 1; } begin { m(); }", "Unhygienic access to map: @x"),
        ("struct s { int a; }; begin { $s = (struct s *)0; print($s.aa); }", "HINT: did you mean a?"),
        ("begin { print(cgroup); }", "cgroup has no meaning in this guest: control groups are Linux's"),
        ("#include <linux/fs.h>\nbegin { }", "'linux/fs.h' file not found"),
        ('begin { signal("KILL"); }', "ERROR: signal() is not supported here: no signal is sent to a guest's task\n"
                                    'begin { signal("KILL"); }\n        ~~~~~~~~~~~~~~'),
        ("begin { join(); }", "join() requires at least one argument (0 provided)"),
        ('begin { join(1, ",", 2); }', "join() requires up to two arguments (3 provided)"),
        ("begin { join(1, 2); }", "join() expects a string literal (int provided)"),
        ('begin { $d = ","; join(1, $d); }', "join() expects a string literal (string provided)"),
        ('begin { join("a"); }', "join() only supports int or pointer arguments (string provided)"),
        ("begin { join((1, 2)); }", "join() only supports int or pointer arguments (tuple provided)"),
        ("begin { $x = join(1); }", "Invalid expression for assignment: $x is given no value"),
        ("begin { print(join(1)); }", "void type passed to print() is not printable"),
        ("begin { ctx }", "ERROR: ctx() is not supported here: registers are read by reg()"),
    ],
)
def test_messages(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        Script(text, environment={})
    assert message in caught.value.shown
    assert "HINT: --unsafe" not in caught.value.shown or "system" in text


def test_a_map_of_an_unknown_kind_that_nothing_uses_is_an_error() -> None:
    with pytest.raises(ScriptError, match="Invalid bpf map type: foo"):
        Script("let @x = foo(10); begin { }")


def test_an_address_of_this_computer_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"stdin:1:22-25: the address of a variable .* means nothing in the guest"):
        Script("begin { $a = 1; $b = &$a; }", environment={})


def test_histograms_show_themselves_as_charts() -> None:
    with Script("begin { @a = hist(5); @b[1] = lhist(30, 0, 100, 10); if (pid == 0) { @c = hist(1); } }", environment={}) as s:
        pass
    assert sum(s.maps["a"]) == 1 and s.maps["a"].index(1) and isinstance(s.maps["a"], list)
    assert repr(s.maps["a"]) == f"[4, 8)                 1 |{'@' * 52}|"
    assert repr(s.maps["b"]) == f"{{1: [30, 40)               1 |{'@' * 52}|}}"
    assert s.maps["c"] is None
    with pytest.raises(KeyError, match="@d: the script's maps are @a, @b, @c"):
        s.maps["d"]


def test_unroll_that_makes_a_program_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LIMIT", 5000)
    with pytest.raises(ScriptError, match=r"stdin:1:28-64: a program has at most .* unroll"):
        Script("begin { unroll (99) { @++; unroll (100) { @x[rand] = hist(1); } } }", environment={})


def test_an_endless_loop_is_told() -> None:
    """It ends after so many rounds that no loop of a probe needs them."""
    s = Script("begin { while (true) { @ = 1; } for ($i : 0..3) { @x++; } @y = 2; }", environment={})
    with s:
        pass
    assert "stdin:1:9-32: WARNING: A loop was ended" in s.errors
    assert "stdin:1:33-58: WARNING: A loop was ended" in s.errors  # the loops of a hit share the limit
    assert (s.maps[""], s.maps["y"]) == (1, 2)


def test_the_part_of_the_script_that_a_verifier_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Program) -> None:
        at = next(pc for pc, i in enumerate(self.code.instructions) if i.is_helper_call and i.imm == 7)
        raise self.code.error("does what it may not", at, "take a die")

    monkeypatch.setattr(Program, "verify", refuse)
    s = Script("begin { @a = 1;\n  @b = 1 + rand; }", environment={})
    with pytest.raises(ScriptError) as caught:
        s.verify()
    assert caught.value.shown == (
        "stdin:2:12-16: ERROR: the verifier refuses what is made of this: does what it may not\n"
        "  @b = 1 + rand; }\n           ~~~~\nHINT: take a die")


class Maker:
    """Makes expressions of integers, and their values by Python.

    Args:
        seed: of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables = {f"$v{n}": self.random.choice((0, 1, 5, 255, 70000, -3, (1 << 40) + 7)) for n in range(4)}

    def expression(self, depth: int) -> str:
        """An expression; every literal is cast, so that nothing is folded."""
        choose = self.random
        if not depth or choose.random() < 0.2:
            return choose.choice([*self.variables, f"(int64)@m[{choose.randrange(3)}]", "(uint8)$v1", "(int16)$v2"])
        kind = choose.randrange(5)
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if kind == 0:
            return f"({left} {choose.choice(['<', '==', '>=', '!='])} {right} ? {left} : {right})"
        if kind == 1:
            return f"({left} {choose.choice(['<<', '>>'])} (uint64){choose.randrange(1, 40)})"
        if kind == 2:
            return f"(uint32)({left})" if choose.random() < 0.5 else f"(int8)({left})"
        return f"({left} {choose.choice(['+', '-', '*', '&', '|', '^'])} {right})"

    def script(self) -> str:
        """Statements that leave what they compute in maps."""
        lines = [f"{name} = (int64){value};" for name, value in self.variables.items()]
        lines += [f"@m[{n}] = (int64){self.random.randrange(1000)};" for n in range(3)]
        lines += [f"@r[{n}] = (int64)({self.expression(3)});" for n in range(4)]
        lines += [f"@h[{n}] = hist((int64)({self.expression(2)}));" for n in range(2)]
        lines += [f"for $i : 0..5 {{ @s[{n}] = sum({self.expression(1)} + $i); }}" for n in range(2)]
        return f"begin {{ {' '.join(lines)} }}"


@pytest.mark.parametrize("seed", range(12))
def test_generated_scripts_agree_between_engines(seed: int) -> None:
    text = Maker(seed).script()
    assert run(text, "interpreter").output == run(text, "host").output


@pytest.mark.parametrize("engine", ENGINES)
def test_what_typeinfo_tells_is_a_record_of_the_script(engine: str) -> None:
    """It is known at compile time, and is a value like any other all the same."""
    text = """begin {
        $a = (uint64)((uint64)5 - (uint64)3);
        print(typeinfo($a).full_type);
        if (typeinfo($a).base_type == "int") { printf("%s\\n", typeinfo(uint8).full_type); }
        if comptime (typeinfo($a).btf_id == 0) { print("no BTF"); }
        $t = typeinfo("abc");
        print(($t.base_type, typeinfo($a).btf_id));
        @ = typeinfo(int32).full_type;
    }"""
    assert run(text, engine).output.split("\n") == [
        "uint64", "uint8", "no BTF", "(string, 0)", "", "", "@: int32", ""]


@pytest.mark.parametrize("expression", ["typeinfo(@x).full_type", "sizeof(@x)"])
def test_a_map_that_nothing_is_put_into_has_no_type(expression: str) -> None:
    with pytest.raises(ScriptError, match="Undefined map: @x"):
        run(f"begin {{ print({expression}); }}")


def test_typeinfo_has_three_members() -> None:
    with pytest.raises(ScriptError, match="foo"):
        run("begin { print(typeinfo(int32).foo); }")


def test_an_interval_begins_when_begin_has_run() -> None:
    made = run("""
        begin { @start = nsecs; }
        interval:ms:100 { print(nsecs - @start >= 100000000); clear(@start); exit(); }""")
    assert made.output.split() == ["true"]


@pytest.mark.parametrize(
    ("expression", "size"),
    [
        ('((int8)1, "abc")', 5), ('("abcdef", 3, (int32)1)', 12), ('((int16)1, (a = (int8)1, b = "xy"), (int8)1)', 8),
        ("((int8)1, (int64)2, (int8)3)", 24), ("((int32)1, pton(\"127.0.0.1\"))", 8), ("()", 0)])
def test_sizes_of_tuples_are_those_of_bpftrace(expression: str, size: int) -> None:
    """However many bytes more they take here."""
    assert printed(f"sizeof({expression})") == str(size)


def test_settings_are_a_record() -> None:
    text = """config = { max_strlen = 77 } begin {
        printf("%d %s %d\\n", config().max_strlen, config.stack_mode, config().cpp_demangle);
        if comptime (__builtin_config.max_strlen == 77) { print("known"); }
        $all = config(); print($all.max_map_keys);
    }"""
    assert run(text).output.split("\n")[:4] == ["77 bpftrace 1", "known", "4096", ""]
    with pytest.raises(ScriptError, match="does not contain a field named 'max_strln'"):
        run("begin { print(config().max_strln); }")


@pytest.mark.parametrize("engine", ENGINES)
def test_messages_of_macros_say_where_these_were_called(engine: str) -> None:
    text = """macro inner(x) { errorf("bad %d", x); }
macro outer(x) { inner(x + 1); }
begin { outer(4); warnf("plain"); assert(false, "no"); }"""
    made = run(text, engine)
    assert made.status == 1
    assert made.errors.splitlines() == [
        "stdin:1:18-37: ERROR: bad 5",
        "stdin:2:18-30: ERROR: expanded from", "macro outer(x) { inner(x + 1); }", " " * 17 + "~" * 12,
        "stdin:3:9-17: ERROR: expanded from", text.splitlines()[2], " " * 8 + "~" * 8,
        "stdin:3:19-33: WARNING: plain",
        "stdin/base.bt:6:5-37: ERROR: assert failed: no".replace("stdin", "stdlib"),
        "stdin:3:35-54: ERROR: expanded from", text.splitlines()[2], " " * 34 + "~" * 19]


def test_macros_that_are_a_literal_are_one() -> None:
    assert run('macro cpu() { "hi %d\\n" } macro two() { 2 } begin { printf(cpu(), two()); }').output == "hi 2\n\n\n"


def test_negative_numbers_as_pointers_keep_their_width() -> None:
    """As in bpftrace."""
    assert printed("((uint8 *)-1, (void *)-300, (uint8 *)(int64)-1)") == "(0xff, 0xfed4, 0xffffffffffffffff)"


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_that_are_not_there_are_told_where_that_is_asked(engine: str) -> None:
    text = 'begin { @[1] = 1; @t[1] = "x"; $n = @[2]; $t = @t[3]; print(($n, $t)); print(@[1]); }'
    said = "WARNING: Can't lookup map element because it does not exist."
    more = "Additional Info - helper: map_lookup_elem, retcode: 0"
    made = run(text, engine, wary=True)
    assert [line for line in made.errors.splitlines() if line[0] in "sA"] == [
        f"stdin:1:37-41: {said}", more, f"stdin:1:48-53: {said}", more]
    assert made.output.startswith("(0, )\n1\n")
    assert run(text, engine).errors == ""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("room", [600, 2048, 9999])
def test_long_texts_take_no_long_programs(room: int, engine: str) -> None:
    """They are copied and zeroed by loops: straight code for 10,000 bytes took a compiler five seconds."""
    text = 'begin { @s = "abc"; @t = @s; @k["x"] = str(0); $u = @t; @v = $u; @n = strlen($u); print(@t); }'
    with Script(text, environment={"BPFTRACE_MAX_STRLEN": str(room)}, engine=engine) as s:
        (program,) = s.programs
    assert len(program.code.instructions) < 1200
    assert s.maps["t"] == s.maps["v"] == b"abc"
    assert s.maps["n"] == 3
    assert s.maps["k"] == {b"x": b""}
    assert s.output.startswith("@t: abc\n")


@pytest.mark.parametrize("body", ["print(typeof($x));", 'print(typeof("a"));', 'printf("%d", typeof($x));'])
def test_a_type_is_no_value(body: str) -> None:
    with pytest.raises(ScriptError, match=r"stdin:1:\d+-\d+: typeof\(\) is a type, and no value"):
        run(f"begin {{ $x = 1; print($x); {body} }}")


@pytest.mark.parametrize("engine", ENGINES)
def test_own_text_is_cut_to_max_strlen(engine: str) -> None:
    text = """config = { max_strlen = 5 } begin {
        print(str("0123")); print(str("01234")); print(str("0123456789abc")); print(str("0123456789abc", 4)); }"""
    assert run(text, engine).output.split()[:4] == ["0123", "01234", "01234..", "012"]


@pytest.mark.parametrize(("members", "reason"), [
    ("int x; struct B b; int y;", "field 'b' has incomplete type 'struct B'"),
    ("struct B b[2];", "array 'b' has incomplete element type 'struct B'"),
    ("struct A a;", "field 'a' has incomplete type 'struct A'"),
    ("int x : 40;", r"width of bit-field 'x' \(40 bits\) exceeds the width of its type \(32 bits\)"),
])
def test_members_that_have_no_room(members: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        run(f"struct A {{ {members} }} begin {{ print(sizeof(struct A)); }}")


def test_members_of_empty_structures_and_pointers_to_unknown_ones() -> None:
    known = "struct E {}; struct A { struct E e; struct B *b; struct {} f; int x : 32; struct E g[2]; };"
    assert printed("sizeof(struct A)", known) == "16"


@pytest.mark.parametrize(("body", "reason"), [
    ("let $x = 1; { let $x = 2; }", r"Variable \$x was already declared\. Variable shadowing is not allowed"),
    ("$x = 1; if (1) { let $x = 2; }", r"Variable \$x was already declared"),
    ("let $x = 1; let $x = 2;", r"Variable \$x was already declared"),
    ("for $x : 1..10 { let $x = 1; }", r"Variable \$x was already declared"),
    ("let $i = 5; for $i : 1..10 { print($i); }", r"Loop declaration shadows existing variable: \$i"),
    ("@[1] = 1; $i = 5; for $i : @ { print($i); }", r"Loop declaration shadows existing variable: \$i"),
])
def test_no_variable_shadows_another_one(body: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        run(f"begin {{ {body} }}")


def test_a_name_can_be_declared_in_blocks_beside_each_other() -> None:
    made = run("begin { if (1) { let $x = 1; print($x); } else { let $x = 2; print($x); } let $x = 3; print($x); "
               "for $i : 0..2 { let $y = $i; print($y); } for $i : 5..6 { print($i); } } end { let $x = 4; print($x); }")
    assert made.output.split() == ["1", "3", "0", "1", "5", "4"]


def test_commands_say_their_errors_and_status() -> None:
    made = run('begin { system("echo out; echo err >&2; exit 3"); system("echo fine"); }', unsafe=True)
    assert made.output.split() == ["out", "err", "fine"]
    assert made.errors == "ERROR: command exited with code 3\n"


def test_find_assigns_a_value() -> None:
    made = run("begin { @m[2] = 5; let $v; if (find(@m, 2, $v)) { print($v); } }")
    assert (made.output.split()[0], made.warnings) == ("5", [])


@pytest.mark.parametrize("probe", ["interval:1000000", "profile:1_000_000", "interval:ms:1e0", "named=interval:1ms"])
def test_periods_in_nanoseconds_and_names_of_probes(probe: str) -> None:
    assert run(f"{probe} {{ @++; if (@ == 2) {{ exit(); }} }}").maps[""] == 2


@pytest.mark.parametrize(("probe", "reason"), [
    ("interval:100", "Invalid rate of interval probe. Minimum is 1000 or 1us. Found: 100 nanoseconds"),
    ("interval:s:1b", "not '1b'"), ("interval:ms:1s", "not '1s'"), ("interval:s:0", "above 0"),
])
def test_periods_that_are_none(probe: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        run(f"{probe} {{ exit(); }}")


HEADER = """
#ifndef LOCAL_H
#define LOCAL_H
#include <stdint.h>
extern int far(int x, struct nowhere *p);
static inline int near(int x) { if (x) { return 1; } return 2; }
struct found { int a; };
struct found *find(int x);
static struct found none = {0}, others[2];
enum color { RED = 1 } paint(void) { return RED; }
#define LENGTH 3
#if LENGTH > 2 && defined(LENGTH) && !defined(MISSING) // the first of these
struct local { int a; /* with { braces */ char n[LENGTH];
#ifdef WIDE
    int64_t wide;
#endif
};
#else
struct local { char z; };
#endif
#endif
"""


def test_headers_and_conditions(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "local.h").write_text(HEADER)
    (tmp_path / "more" / "outer.h").write_text('#pragma once\n#include "../local.h"\nstruct outer { struct local l[2]; };\n')
    text = """
        #define WIDE
        #define FUNCTION(x) ((x) + 1)
        #ifdef FUNCTION
        #include "local.h"
        #include "local.h"
        #endif
        #ifndef BPFTRACE_HAVE_BTF
        #include <linux/sched.h>
        #elif LENGTH == 3
        struct other { struct local l; };
        #else
        #error "another length"
        #endif
        #undef WIDE
        #ifdef WIDE
        struct other { char c; };
        #endif
        begin { print((sizeof(struct local), sizeof(struct other), LENGTH)); }"""
    text = "\n".join(line.strip() for line in text.splitlines())
    assert run(text, name=str(tmp_path / "tool.bt")).output.split("\n")[0] == "(16, 16, 3)"
    given = Headers((str(tmp_path / "more"),), (str(tmp_path / "local.h"),))
    assert run("#include <outer.h>\n#include <outer.h>\nbegin { print(sizeof(struct outer)); }", headers=given).output[:2] == "16"


@pytest.mark.parametrize(("lines", "reason"), [
    ('#include "nowhere.h"', "'nowhere.h' file not found"), ("#ifdef X", "an #endif is missing"),
    ("#endif", "#endif without #if"), ("#if 1 +\n#endif", "nothing is no number"), ("#error no", "#error no"),
    ("#if 1 2\n#endif", "'2' is not expected"), ("#pragma pack(1)", "#pragma pack"),
])
def test_lines_of_the_preprocessor_that_are_wrong(lines: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(reason)):
        run(f"{lines}\nbegin {{ }}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("left", "right", "size", "sign"), [
    ('"hello"', '"help!"', 3, 0), ('"hello"', '"help!"', 4, -1), ('"help!"', '"hello"', 5, 1), ('"a"', '"b"', 0, 0),
    ('(int8[4])"ab"', '"ab"', 3, 0), ("(uint8[4])(uint32)0", "(uint8[4])(uint32)255", 4, -1),
])
def test_memory_is_compared(engine: str, left: str, right: str, size: int, sign: int) -> None:
    made = run(f"begin {{ $x = memcmp({left}, {right}, {size}); @ = $x < 0 ? -1 : ($x > 0 ? 1 : 0); }}", engine)
    assert made.maps[""] == sign


@pytest.mark.parametrize(("call", "reason"), [
    ('memcmp("a", "b", 3)', "memcmp() of 3 bytes, and this has 2"), ('memcmp(1, "b", 1)', "only supports strings and arrays"),
    ('memcmp("a", "b", $n)', "a number of bytes that is a literal"),
])
def test_memory_that_cannot_be_compared(call: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(reason)):
        run(f"begin {{ $n = 1; print({call}); }}")


@pytest.mark.parametrize("text", ["(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "1" + " + 1" * 20000, "~" * 5000 + "1"])
def test_a_script_that_is_nested_too_deeply(text: str) -> None:
    """Python's stack ends where a script goes deeper; that is an error of the script's."""
    with pytest.raises(ScriptError, match="nested too deeply"):
        Script(f"BEGIN {{ $a = {text}; }}", quiet=True, environment={})
