"""Calls of functions with parameters and results of every type.

Each function keeps the arguments that it got (call_programs.py). By hand: `CALLS=50 pytest
tests/machine/test_typed_calls.py -s` calls the functions of 50 programs for each architecture.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tracing"))
from call_programs import TARGETS, build, compiled
from elftools.elf.elffile import ELFFile
from test_calls_everywhere import same

from kprobes import BadArgument, GuestFault, UnicornMachine, Unsupported
from kprobes.debug.view import View, load
from kprobes.debug.whole import whole

COUNT = int(os.environ.get("CALLS", "1"))  #: programs for each architecture
#: targets that are not called here: Unicorn does not run them, or their convention is not known
OTHERS = ("loongarch64", "ppc64", "ppc64le")
#: targets that are called in every run; by hand all but OTHERS are
USUAL = ("riscv64", "riscv32 soft", "s390x", "arm64", "arm64be", "x86_64", "mips64", "mips32el", "arm", "armeb soft", "i386")
KINDS = [target for target in TARGETS if target in USUAL or (COUNT > 1 and target not in OTHERS)]

pytestmark = pytest.mark.skipif(find_spec("ziglang") is None, reason="there is no clang of all targets: pip install ziglang")


def called(target: str, seed: int, level: int, folder: Path, cpp: bool) -> tuple[Counter[str], list[Any]]:
    """Call a drawn program's functions with the values that the program itself has passed, and compare what they keep.

    Args:
        target: of call_programs.TARGETS.
        seed: what the program is drawn by.
        level: of optimization.
        folder: for the program's files.
        cpp: True for a program of C++.

    Returns:
        (how many values were "right", and how often each reason was given for a refusal; what is wrong).
    """
    program = build(target, seed, level, folder, cpp)
    found: Counter[str] = Counter()
    wrong: list[Any] = []
    with UnicornMachine.load(program.path) as m:
        try:
            m.call("driver")
        except GuestFault:  # clang 20 at -O0 jumps to a bit field; it does so under QEMU, too
            found["the program fails by itself"] += 1
            return found, wrong
        for name, (count, returns) in program.functions.items():
            address = m.symbols[name].address
            variables = m.debug.parameters(address & ~m.arch.pointers.mode_bits)
            if variables is None or len(variables) != count:
                found["the compiler has removed a parameter"] += 1
                continue
            homes = [m.symbols[f"got_{name[1:]}_{n}"] for n in range(count)]
            values = [
                argument(load(m, variable.type, home.address))
                for variable, home in zip(variables, homes, strict=True)
            ]
            kept = [whole(value) for value in values]
            wanted = None
            if returns:
                home = m.symbols[f"got_{name[1:]}"]
                result = m.debug.result(address & ~m.arch.pointers.mode_bits)
                assert result is not None
                wanted = whole(load(m, result, home.address))
            passed = [copied(m, value) if isinstance(value, View) else value for value in values]
            for home in homes:
                m.write(home.address, bytes(home.size))
            try:
                returned = m.call(name, *passed, prototype=True)
            except Unsupported as error:
                found[str(error)] += 1
                continue
            for variable, home, before in zip(variables, homes, kept, strict=True):
                after = whole(load(m, variable.type, home.address))
                if same(after, before):
                    found["right"] += 1
                else:
                    wrong.append((target, seed, level, name, home.name, before, after))
            if returns:
                if same(returned, wanted):
                    found["right"] += 1
                else:
                    wrong.append((target, seed, level, name, "result", wanted, returned))
    return found, wrong


def argument(value: Any) -> Any:
    """Return a value that was loaded from a variable as a call takes it: a pointer as its address."""
    return int(value) if isinstance(value, View) and value._type.kind == "pointer" else value


def copied(m: Any, view: View) -> View:
    """Return a View of a copy of a structure in new guest memory, which the call does not overwrite."""
    at = m.alloc(view._type.size)
    m.write(at, bytes(view))
    return View(m, view._type, at)


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("cpp", [False, True])
def test_functions_get_what_is_passed(target: str, cpp: bool, tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    for seed in range(COUNT):
        for level in (0, 2):
            found, wrong = called(target, seed, level, tmp_path, cpp)
            assert wrong == []
            total += found
    print(target, "C++" if cpp else "C", total.most_common())
    assert total["right"] > 30 * COUNT, total


CIRCLE: dict[str, Any] = {}  #: a mapping that has itself as a member
CIRCLE["next"] = CIRCLE
SOURCE = """
struct point { short x, y; };
struct bits { unsigned a : 3; int b : 5; unsigned char c; };
struct item { struct point at; double weight; struct bits bits; char name[6]; };
union word { int number; float real; };
struct pair { float a, b; };
struct point moved(struct point p, int by) { p.x += by; p.y -= by; return p; }
double weigh(struct item i) { return i.weight + i.at.x + 10 * i.at.y + 100 * i.bits.a + 1000 * i.bits.b + i.bits.c + i.name[1]; }
struct item made(int n) { struct item i = { { n, n + 1 }, n / 2.0, { n, -n, n }, "ab" }; return i; }
int as_number(union word w) { return w.number; }
float sum(struct pair p) { return p.a + p.b; }
_Complex double turned(_Complex double c) { _Complex double out; __real__ out = -__imag__ c; __imag__ out = __real__ c; return out; }
unsigned low(unsigned n) { return n; }
long double same(long double n) { return n; }
void _start(void) {}
void *memcpy(char *to, const char *from, unsigned long n) { while (n--) *to++ = *from++; return to; }
void *memset(char *to, int c, unsigned long n) { for (unsigned long k = 0; k < n; k++) ((volatile char *)to)[k] = c; return to; }
char narrow(signed char c) { return c; }
struct node { struct node *next; int v; struct point p[2]; };
int points_on(struct node n) { return n.v + 10 * n.p[1].y + 1000 * (n.next != 0); }
struct mixed { _Complex double c; struct point p[2]; int g[2][2]; void *at; };
struct mixed mixed(int n) { struct mixed m = { n, { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }; return m; }
double weighed(struct mixed m) { return __real__ m.c + 10 * __imag__ m.c + 100 * m.p[1].y + 1000 * m.g[1][0] + (m.at != 0); }
struct line { long at[8]; } __attribute__((aligned(64)));
int misplaced(struct line a, int by, struct line b) { return ((unsigned long)&a | (unsigned long)&b) % 64 + by; }
struct sixteen { int a; } __attribute__((aligned(16)));
int odd(int n, struct sixteen s, char c, struct line a) { return n + 10 * s.a + 100 * c + 1000 * a.at[1]; }
int far(int a, int b, int c, int d, int e, int f, int g, int h, int i, struct sixteen s, int j, struct line x) { return s.a + 10 * j + 100 * x.at[1] + 1000 * i; }
struct part { int a __attribute__((aligned(16))); };
int parted(int a, int b, int c, int d, int e, int f, int g, int h, int i, struct part s, int j) { return s.a + 10 * j + 1000 * i; }
int second(int n, struct part s, char c) { return n + 10 * s.a + 100 * c; }
struct line line(long n) { struct line made = { { n } }; return made; }
"""


@pytest.fixture(scope="module", params=["x86_64", "arm64", "riscv64", "s390x", "mips32el", "mips64"])
def m(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("typed")
    with UnicornMachine.load(compiled(request.param, SOURCE, folder / "typed", 0)) as machine:
        yield machine


def test_structures_are_mappings(m: Any) -> None:
    assert m.call("moved", {"x": 5, "y": 7}, 2) == {"x": 7, "y": 5}
    assert m.call("moved", {"y": -1}, 2) == {"x": 2, "y": -3}
    item = {"at": {"x": 1, "y": 2}, "weight": 0.5, "bits": {"a": 3, "b": -2, "c": 4}, "name": "ab"}
    assert m.call("weigh", item) == 0.5 + 1 + 20 + 300 - 2000 + 4 + ord("b")
    made = m.call("made", 3, prototype=True)
    assert (made["at"], made["weight"], made["bits"]) == ({"x": 3, "y": 4}, 1.5, {"a": 3, "b": -3, "c": 3})
    assert m.call("weigh", made) == 1.5 + 3 + 40 + 300 - 3000 + 3 + ord("b")
    assert m.call("sum", {"a": 1, "b": 2.5}) == 3.5
    assert m.call("as_number", {"real": 1.0}) == 0x3F800000
    assert m.call("turned", 1 + 2j) == -2 + 1j
    assert m.call("turned", 3, prototype=True) == 3j
    assert m.call("turned", 1 + 2j, prototype="_Complex double turned(double _Complex value)") == -2 + 1j


def test_structures_are_bytes_and_views(m: Any) -> None:
    size = m.type("struct point").size
    order = m.arch.order.value
    data = (5).to_bytes(2, order) + (7).to_bytes(2, order)
    assert m.call("moved", data, 2, prototype=True) == {"x": 7, "y": 5}
    at = m.alloc(size)
    m.write(at, data)
    assert m.call("moved", m.view("struct point", at), 2, prototype=True) == {"x": 7, "y": 5}
    assert m.call("moved", {"x": 5, "y": 7}, 2, prototype="struct point moved(struct point p, int)") == {"x": 7, "y": 5}


def test_arrays_pointers_and_complex_members(m: Any) -> None:
    """What a call returns can be passed to another."""
    assert m.call("points_on", {"next": None, "v": 3, "p": [{}, {"y": 7}]}) == 73
    assert m.call("points_on", {"next": 0x1000, "p": {1: {"y": 7}}}) == 1070
    made = m.call("mixed", 5, prototype=True)
    assert (made["p"], made["g"]) == (({"x": 1, "y": 2}, {"x": 3, "y": 4}), ((5, 6), (7, 8)))
    assert m.call("weighed", made) == 5 + 400 + 7000
    assert m.call("weighed", {"c": 1 + 2j, "p": ({}, {"y": 5}), "g": [[1, 2], [7, 8]]}) == 21 + 500 + 7000


def test_structures_lie_as_they_ask_for(m: Any) -> None:
    """An alignment of 64 bytes is more than stack and heap have by themselves."""
    for n in range(3):
        assert m.call("misplaced", {"at": [n] * 8}, 1, {}) == 1
    assert m.call("odd", 1, {"a": 2}, 3, {"at": {1: 4}}) == 4321
    assert m.call("far", *range(1, 10), {"a": 2}, 3, {"at": {1: 4}}) == 9432
    assert m.call("second", 1, {"a": 2}, 3) == 321
    assert m.call("parted", *range(1, 10), {"a": 2}, 3) == 9032
    assert m.call("line", 5, prototype=True) == {"at": (5, *[0] * 7)}


def test_integers_by_types(m: Any) -> None:
    assert m.call("low", 0xFFFFFFFF, prototype=True) == 0xFFFFFFFF
    assert m.call("low", -1, prototype=True) == 0xFFFFFFFF
    assert m.call("narrow", 0x85, prototype=True) == (-123 if m.arch.abi.char_signed else 133)


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("moved", ({"z": 1}, 2), "'z'"),
        ("moved", (b"abc", 2), "has 3 bytes, and struct point has 4"),
        ("moved", ({"x": 70000}, 2), "does not fit"),
        ("moved", ({"x": {}}, 2), "argument 1"),
        ("moved", ({"x": "a"}, 2), "written as short"),
        ("moved", ({1: 2}, 2), "argument 1"),
        ("moved", (1, 2), "argument 1 is an int, and the parameter struct point"),
        ("moved", ({"x": 1},), "1 arguments are given, and the function has 2"),
        ("low", (1 << 32,), "does not fit"),
        ("narrow", ("text",), "argument 1 is a bytes, and the parameter signed char"),
        ("low", (1.5,), "is a float, and the parameter an integer"),
        ("sum", ({"a": 1j},), "written as float"),
        ("turned", ("x",), "floating-point"),
        ("weigh", ({"at": 5},), "written as struct"),
        ("low", (object(),), "argument 1 is"),
        ("low", (1 << 100000,), r"0x10{74}\.\.\., does not fit"),
        ("low", ({},), "is a dict, and the parameter"),
        ("low", (Fraction(0),), "is a Fraction"),
        ("points_on", ({"next": {"v": 5}},), "'next': .* written as struct node"),
        ("points_on", (CIRCLE,), "'next': .* written as struct node"),
        ("points_on", ({"p": {5: {"x": 1}}},), "'p', 5: struct point .* has elements 0 to 1"),
        ("points_on", ({"p": [{}]},), "has 2 elements, not 1"),
        (
            "points_on",
            ({"p": [{}, {"z": 1}]},),
            "argument 1, 'p', 1, 'z': struct point has no member",
        ),
        ("sum", ({"a": 1 << 5000},), "written as float"),
        ("moved", ({"x": View}, 2), "argument 1"),
        ("weighed", ({"c": {}},), "'c'"),
        ("weighed", ({"c": 1 << 5000},), "'c'"),
    ],
)
def test_arguments_that_are_not_of_their_types(
    m: Any, name: str, args: tuple[Any, ...], text: str
) -> None:
    with pytest.raises(BadArgument, match=text):
        m.call(name, *args, prototype=True)


def test_types_are_those_of_the_file_that_is_loaded(tmp_path: Path) -> None:
    """Types that were not known are looked for again when another file is loaded."""
    text = "struct real { float f; }; float get(struct real r) { return r.f; } void _start(void) {}"
    program = compiled("x86_64", text, tmp_path / "typed", 0)
    stripped = tmp_path / "stripped"
    linker = [sys.executable, "-m", "ziglang", "ld.lld", "--image-base=0x400000", "-static", "-e", "_start"]
    subprocess.run([*linker, "--strip-all", f"{program}.o", "-o", stripped], check=True, capture_output=True)
    with UnicornMachine.load(program) as whole_one, UnicornMachine.load(stripped) as m:
        address = whole_one.symbols["get"].address
        for prototype in (True, "float get(struct real)"):
            with pytest.raises(BadArgument):
                m.call(address, {"f": 1.5}, prototype=prototype)
        m.symbols.load(program)
        for prototype in (True, "float get(struct real)"):
            for n in range(3):
                assert m.call(address, {"f": n + 0.5}, prototype=prototype) == n + 0.5


def test_damaged_types(tmp_path: Path) -> None:
    program = compiled("x86_64", SOURCE, tmp_path / "typed", 0)
    data = bytearray(program.read_bytes())
    with program.open("rb") as file:
        elf = ELFFile(file)
        unit = next(elf.get_dwarf_info().iter_CUs())
        entry = next(die for die in unit.iter_DIEs() if die.tag == "DW_TAG_subprogram" and die.attributes["DW_AT_name"].value == b"mixed")
        at = elf.get_section_by_name(".debug_info")["sh_offset"] + entry.attributes["DW_AT_type"].offset
        data[at:at + 4] = (entry.offset + 1 - unit.cu_offset).to_bytes(4, "little")  # no entry begins there
    program.write_bytes(data)
    with UnicornMachine.load(program) as m, pytest.raises(Unsupported, match="is damaged"):
        m.call("mixed", 1, prototype=True)


def test_long_double(m: Any) -> None:
    """The formats are that of x87, that of 16 bytes, and a double on MIPS' o32."""
    for value in (2.5, -0.0, 1e308, 5e-324, math.inf, 0.1):
        returned = m.call("same", value, prototype=True)
        assert (returned, math.copysign(1, returned)) == (value, math.copysign(1, value))
    assert math.isnan(m.call("same", math.nan, prototype=True))


RUST = """
pub struct Pair { x: i32, y: i32 }
pub struct Large { v: [i64; 5] }
#[inline(never)] #[no_mangle] pub fn add(a: f64, b: i32) -> f64 { a + b as f64 }
#[inline(never)] #[no_mangle] pub fn sum(large: Large, by: i64) -> i64 { large.v.iter().sum::<i64>() * by }
#[inline(never)] #[no_mangle] pub fn large(n: i64) -> Large { Large { v: [n, n + 1, n + 2, n + 3, n + 4] } }
#[inline(never)] #[no_mangle] pub fn tens(pair: Pair) -> i32 { pair.x * 10 + pair.y }
#[inline(never)] #[no_mangle] pub fn length(text: &str, more: u8) -> usize { text.len() + more as usize }
fn main() {
    println!("{} {} {} {} {}", add(1.5, 2), sum(Large { v: [1; 5] }, 2), large(3).v[2], tens(Pair { x: 1, y: 2 }), length("ab", 1));
}
"""


@pytest.mark.skipif(shutil.which("rustc") is None or platform.machine() != "x86_64", reason="Rust's convention is known on x86-64")
def test_rust(tmp_path: Path) -> None:
    (tmp_path / "guest.rs").write_text(RUST)
    subprocess.run(["rustc", "-g", "-O", "guest.rs"], cwd=tmp_path, check=True, capture_output=True)
    with UnicornMachine.load(tmp_path / "guest") as m:
        assert m.call("add", 1.5, 2) == 3.5
        assert m.call("sum", {"v": [1, 2, 3, 4, 5]}, 2) == 30
        assert m.call("large", 3, prototype=True) == {"v": (3, 4, 5, 6, 7)}
        assert m.call("tens", {"x": 1, "y": 2}) == 12
        assert m.call("length", {"data_ptr": 0x1000, "length": 7}, 3) == 10
