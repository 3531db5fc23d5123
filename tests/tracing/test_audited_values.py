"""Values at entries and returns of compiled C and C++ whose types calls treat specially: what the program has."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kprobes import AmbiguousSymbol, Coverage, EventError, Kprobes, UnicornMachine, UnknownSymbol
from kprobes.cli import main
from kprobes.events import parse_event

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("g++") is None,
                                reason="programs of x86-64 are compiled here")

STATIC = ("-g", "-static", "-no-pie", "-fno-pie", "-w")


def built(source: str, folder: Path, *options: str, name: str = "guest.c") -> Path:
    """Compile a program with debug information, and return it."""
    (folder / name).write_text(source)
    program = folder / "guest"
    compiler = "gcc" if name.endswith(".c") else "g++"
    subprocess.run([compiler, *STATIC, *options, "-o", program, folder / name], check=True)
    return program


def args_of(program: Path, *definitions: str) -> list[dict[str, Any]]:
    """Run a program to its end, and return the arguments of each event's first hit."""
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        events = [k.event(definition) for definition in definitions]
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        return [next(iter(event)).args for event in events]


SPECIAL = r"""
typedef float v4f __attribute__((vector_size(16)));
typedef int v2i __attribute__((vector_size(8)));
typedef short v8s __attribute__((vector_size(16)));
typedef int v8i __attribute__((vector_size(32)));
struct whole { __int128 v; };
struct extended { long double x; };
struct vector { v4f a; };
struct complex { _Complex double z; };
union both { long double x; long l; };
#define NI __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("")
volatile int sink;
NI struct extended extended(struct extended a, struct whole b) { KEEP; sink = b.v; return a; }
NI union both both(int k) { KEEP; union both u = { .l = k }; sink = k; return u; }
NI v4f sum(int k, v4f a, v8s b, v2i c) { KEEP; sink = k; return a + a; }
NI v2i pair(v2i a) { KEEP; return a; }
NI struct vector held(struct vector a, double d) { KEEP; sink = d; return a; }
NI struct complex complex(struct complex z, double d) { KEEP; sink = d; return z; }
NI v8i wide(int k, v8i a) { KEEP; return a; }
int main(void)
{
  v4f a = { 1, 2, 3, 4 };
  extended((struct extended){ 1.75L }, (struct whole){ -4 });
  both(7);
  sum(9, a, (v8s){ -1, 2, -3, 4, 5, 6, 7, 8 }, (v2i){ 10, -20 });
  pair((v2i){ 5, 6 });
  held((struct vector){ a }, 2.5);
  complex((struct complex){ 1.5 - 2.5i }, 4.5);
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_x87_and_vectors_in_calls_of_x86_64(level: str, tmp_path: Path) -> None:
    """A structure of one long double is returned in st(0), a vector of 8 or 16 bytes in xmm0."""
    program = built(SPECIAL, tmp_path, level)
    known = level == "-O0"  # optimized code of gcc does not keep all parameters
    entered = "p extended a.x b", "p both k", "p sum k a b c", "p pair a", "p held a d", "p complex z d"
    returned = tuple(f"r {name} $retval" for name in ("extended", "both", "sum", "pair", "held", "complex"))
    got = args_of(program, *(entered if known else ()), *returned)
    if known:
        assert got[0] == {"x": 1.75, "b": {"v": -4}}
        assert got[1] == {"k": 7}
        assert got[2] == {"k": 9, "a": (1, 2, 3, 4), "b": (-1, 2, -3, 4, 5, 6, 7, 8), "c": (10, -20)}
        assert got[3] == {"a": (5, 6)}
        assert got[4] == {"a": {"a": (1, 2, 3, 4)}, "d": 2.5}
        assert got[5] == {"z": {"z": {"real": 1.5, "imag": -2.5}}, "d": 4.5}
    results = [next(iter(each.values())) for each in got[-6:]]
    assert results[0] == {"x": 1.75} and results[1]["l"] == 7
    assert results[2:] == [(2, 4, 6, 8), (5, 6), {"a": (1, 2, 3, 4)}, {"z": {"real": 1.5, "imag": -2.5}}]
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        with pytest.raises(EventError):  # memory, or a register of AVX: that depends on options
            k.event("r wide $retval")
        if known:
            with pytest.raises(EventError):
                k.event("p wide k")


LINES = r"""
volatile long sink;
struct node { struct node *next; int v; };
static inline __attribute__((always_inline)) int twice(int x) { int y = x * 2; sink = y; return y; }
__attribute__((noinline)) int weigh(struct node *list, int limit)
{
    int total = 0;
    int seen = 0;

    for (struct node *n = list; n; n = n->next) {
        total += n->v;
        seen++;
        if (total > limit)
            goto heavy;
    }
    sink = seen;
    return total;
heavy:
    sink = -seen;
    total += twice(limit);
    return -total;
}
int main(void)
{
    struct node b = { 0, 20 }, a = { &b, 10 };
    sink = weigh(&a, 1000);
    sink = weigh(&a, 5);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb says where lines are")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lines_are_where_gdb_has_them(level: str, tmp_path: Path) -> None:
    """Also of a statement that shares its address with the next one, of which no code is left."""
    program = built(LINES, tmp_path, level)
    numbers = (4, 10, 11, 12, 13, 16, 17, 19, 20, 21, 25, 26, 27)  # not of functions' first lines
    breaks = [each for n in numbers for each in ("-ex", f"echo AT {n}\\n", "-ex", f"break guest.c:{n}",
                                                 "-ex", "info breakpoints", "-ex", "delete")]
    placed = subprocess.run(["gdb", "-q", "-batch", *breaks, program], capture_output=True, text=True, check=True).stdout
    compared = 0
    with UnicornMachine.load(program) as m:
        for there in placed.split("AT ")[1:]:
            number = int(there.partition("\n")[0])
            moved = re.search(r"file \S+, line (\d+)\.", there)
            if moved is not None and int(moved[1]) != number:
                continue  # gdb takes the next line
            wanted = sorted({int(at, 16) for at in re.findall(r"^\d.*?(0x[0-9a-f]+)", there, re.M)})
            assert sorted(place.address for place in m.debug.at_line("guest.c", number)) == wanted, number
            compared += 1
        assert compared >= 8
        entry = m.symbols["weigh"].address
        assert [place.address for place in m.debug.at_function_line(entry, 0)] == [entry]
        assert m.debug.at_function_line(entry, 2)[0].address >= entry


NARROW = r"""
#define NI __attribute__((noinline))
volatile int sink;
enum color { RED = -1, GREEN = 3 };
extern "C" {
NI char letter(int x) { sink = x; return x; }
NI short low(int x) { sink = x; return x; }
NI unsigned char byte(unsigned x) { sink = x; return x; }
NI bool odd(int x) { sink = x; return x & 1; }
NI int negative(int x) { sink = x; return -x; }
NI color tint(int x) { sink = x; return x ? RED : GREEN; }
NI const char *text(int x) { sink = x; return "text"; }
}
int main()
{
  letter(0x12345641); low(0x1234fffe); byte(0xffffff80); odd(0x1235); negative(3); tint(1); text(1);
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_results_have_their_types(level: str, tmp_path: Path) -> None:
    """As gdb's finish shows them; the bits above a narrow result are whatever the callee has left there."""
    program = built(NARROW, tmp_path, level, name="guest.cc")
    names = "letter", "low", "byte", "odd", "negative", "tint"
    got = args_of(program, *(f"r {name} got=$retval" for name in names), "r text got=$retval:string")
    assert [each["got"] for each in got] == [0x41, -2, 0x80, 1, -3, -1, "text"]
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        event = k.event("r negative got=$retval:x64")  # Linux's word
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        assert next(iter(event)).args["got"] & 0xFFFF_FFFF == 0xFFFF_FFFD


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no rustc")
def test_a_result_that_llvm_has_removed(tmp_path: Path) -> None:
    """DW_AT_calling_convention of a function whose parameters or result LLVM has removed: nothing is known of it."""
    (tmp_path / "guest.rs").write_text("""
        #[inline(never)] fn noted(key: u32, spare: u32) -> u32 { std::hint::black_box(key); key + 1 }
        fn main() { noted(std::hint::black_box(4), 5); }
    """)
    program = tmp_path / "guest"
    subprocess.run(["rustc", "-g", "-C", "opt-level=2", "-C", "target-feature=+crt-static", "-C", "relocation-model=static",
                    "-A", "warnings", "-o", program, tmp_path / "guest.rs"], check=True)
    told = subprocess.run(["readelf", "--debug-dump=info", program], capture_output=True, text=True, check=True).stdout
    entry = re.search(r"DW_AT_name[^\n]*: noted\n(.*?)\n <", told, re.S)
    if entry is None or "nocall" not in entry[1]:
        pytest.skip("this rustc keeps the result")
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        name = next(symbol.name for symbol in m.symbols if "5noted" in symbol.name)
        with pytest.raises(EventError, match="convention of its own"):
            k.event(f"r {name} $retval")
        k.event(f"r {name} $retval:x64")


LIBRARY = r"""
#include <string>
#include <string_view>
#include <tuple>
#include <vector>
volatile int sink;
struct A { int n = 1; };
struct B { int n = 2; };
struct AB : A, B { int own = 3; };
struct Hides : A { int n = 4; };
struct Point { int x, y; };
struct Holds { std::string name; std::tuple<char, int> pair; std::vector<bool> bits; };
using Tuple = std::tuple<char, int, float>;
extern "C" {
__attribute__((noinline)) int wide(std::u16string *u, std::u32string *l, std::wstring *w, std::string_view *v, std::u16string *none)
{
  sink = 1;
  return u->size() + l->size() + w->size() + v->size() + none->size();
}
__attribute__((noinline)) int bases(AB *ab, Hides *h, Tuple *t, Holds *s)
{
  sink = 2;
  return ab->own + h->n + std::get<1>(*t) + s->name.size();
}
__attribute__((noinline)) int longer(std::vector<int> *v, std::string *s, std::vector<bool> *b)
{
  sink = 3;
  return v->size() + s->size() + b->size();
}
__attribute__((noinline)) int refers(const int &i, const Point &p, const std::string &s, std::string &&r, int *&q)
{
  sink = i;
  return p.x + s.size() + r.size() + *q;
}
}
int main()
{
  std::u16string u = u"w\u00efde \u20ac";
  std::u32string l = U"l\U0001f600";
  std::wstring w = L"wchar";
  std::u16string none;
  std::string_view v("view and more", 4);
  sink = wide(&u, &l, &w, &v, &none);
  AB ab;
  Hides hides;
  Tuple t{'c', 9, 1.5f};
  Holds s{"held", {'d', 7}, {true, false, true}};
  sink = bases(&ab, &hides, &t, &s);
  std::vector<int> many(1000, 3);
  std::string text(5000, 'z');
  std::vector<bool> bits(70, true);
  bits[66] = false;
  sink = longer(&many, &text, &bits);
  int i = -5;
  Point p{1, 2};
  int *q = &i;
  sink = refers(i, p, u.empty() ? "" : "referred to", "temporary", q);
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_values_of_the_library_and_of_bases(level: str, tmp_path: Path) -> None:
    """What is left out at a limit is marked; a reference is what it refers to; no member vanishes."""
    program = built(LIBRARY, tmp_path, level, "-std=c++20", name="guest.cc")
    wide, bases, longer, refers, typed = args_of(
        program, "p wide u=u[0] l=l[0] w=w[0] v=v[0] none=none[0] same=u:string",
        "p bases ab=ab[0] h=h[0] t=t[0] s=s[0]", "p longer v=v[0] s:string b=b[0]", "p refers $arg*",
        "p:typed refers i:s32 low=i:s8 p.y s:string r:string")
    assert wide == {"u": "wïde €", "l": "l\U0001f600", "w": "wchar", "v": "view", "none": "", "same": "wïde €"}
    assert bases == {
        "ab": {"<A>": {"n": 1}, "<B>": {"n": 2}, "own": 3}, "h": {"<A>": {"n": 1}, "n": 4}, "t": (ord("c"), 9, 1.5),
        "s": {"name": "held", "pair": (ord("d"), 7), "bits": (True, False, True)}}
    assert longer["v"] == (3,) * 200 + ("...",)
    assert longer["s"] == "z" * 4096 + "..."
    assert longer["b"] == (True,) * 66 + (False,) + (True,) * 3
    assert refers.pop("q") > 0x1000
    assert refers == {"i": -5, "p": {"x": 1, "y": 2}, "s": "referred to", "r": "temporary"}
    assert typed == {"i": -5, "low": -5, "y": 2, "s": "referred to", "r": "temporary"}


COPIED = r"""
#include <utility>
volatile int sink;
struct Plain { int v; };
struct Defaulted { int v; Defaulted(int n) : v(n) {} Defaulted(const Defaulted &) = default; ~Defaulted() = default; };
struct Outside { int v; Outside(int n) : v(n) {} Outside(const Outside &); };
Outside::Outside(const Outside &) = default;
struct Copies { int v; Copies(int n) : v(n) {} Copies(const Copies &o) : v(o.v) {} };
struct Ends { int v; ~Ends() { sink = v; } };
struct Moves { int v; Moves(int n) : v(n) {} Moves(const Moves &) = delete; Moves(Moves &&) = default; };
struct Stays { int v; Stays(int n) : v(n) {} Stays(const Stays &) = delete; };
struct Virtual { int v; Virtual(int n) : v(n) {} virtual int get() { return v; } };
struct Root { int r; };
struct Shared : virtual Root { int v; Shared(int n) : v(n) { r = 1; } };
struct Inherits : Copies { Inherits(int n) : Copies(n) {} };
struct Has { Ends e[1]; };
struct Generic { int v; Generic(int n) : v(n) {} template <class T> Generic(T &&o) : v(o.v) {} };
struct Other { int v; Other(int n) : v(n) {} Other(const Plain &p) : v(p.v) {} };
struct Hidden : Plain { float v; };
struct Deep { int v; Deep(int n) : v(n) {} Deep(const Deep &o, int how = 0) : v(o.v + how) {} };
union Either { int v; float f; };
namespace deep { template <class T> struct Box { T v; Box(T n) : v(n) {} Box(const Box &o) : v(o.v) {} }; }
template <class T> struct Pair { T v; T w; };
#define F(name, type) extern "C" __attribute__((noinline, noclone)) type name(type a, int tail) \
  { __asm__ volatile("" :: "r"(&a) : "memory"); sink = tail; return type(std::move(a)); }
F(f0, Plain) F(f1, Defaulted) F(f2, Outside) F(f3, Copies) F(f4, Ends) F(f5, Moves) F(f6, Virtual) F(f7, Shared)
F(f8, Inherits) F(f9, Has) F(f10, Generic) F(f11, Other) F(f12, Hidden) F(f13, Either) F(f14, deep::Box<long>)
F(f15, Pair<double>) F(f16, Pair<long>)
extern "C" __attribute__((noinline, noclone)) int copied_by_a_default(Deep a, int tail)
{
  __asm__ volatile("" :: "r"(&a) : "memory");
  return a.v + tail;
}
extern "C" __attribute__((noinline, noclone)) int stays(Stays a, int tail)
{
  __asm__ volatile("" :: "r"(&a) : "memory");
  return a.v + tail;
}
int main()
{
  f0({5}, 9); f1({5}, 9); f2({5}, 9); f3({5}, 9); f4({5}, 9); f5({5}, 9); f6({5}, 9); f7({5}, 9); f8({5}, 9); f9({{{5}}}, 9);
  f10({5}, 9); f11({5}, 9); f12({{4}, 5}, 9); f13({5}, 9); f14({5}, 9); f15({5, 6}, 9); f16({5, 6}, 9); stays({5}, 9);
  Deep deep(5); copied_by_a_default(deep, 9);
  return 0;
}
"""


@pytest.mark.parametrize("options", ["-O0", "-O2", "-O0 -gdwarf-4", "-O0 -fdebug-types-section"])
def test_classes_that_cpp_copies_by_a_function(options: str, tmp_path: Path) -> None:
    """GCC does not say which classes are passed by their address; that follows from what they declare."""
    program = built(COPIED, tmp_path, *options.split(), name="guest.cc")
    members = {7: {"v": 5, "r": 1}, 9: {"e": ({"v": 5},)}, 12: {"<Plain>": {"v": 4}, "v": 5}, 13: {"v": 5, "f": 7e-45},
               15: {"v": 5, "w": 6}, 16: {"v": 5, "w": 6}}
    names = [f"f{n}" for n in range(17)]
    kept = "-O2" not in options
    got = args_of(program, *(f"p {name} a tail" for name in names if kept), "p stays a tail",
                  *(f"r {name} got=$retval" for name in names))
    results = got[-17:]
    for n in range(17):
        wanted = members.get(n, {"v": 5})
        for each in ([got[n]["a"]] if kept else []) + [results[n]["got"]]:
            assert each == pytest.approx(wanted) if n == 13 else each == wanted, (names[n], each)
        assert not kept or got[n]["tail"] == 9
    assert got[-18] == {"a": {"v": 5}, "tail": 9}
    with UnicornMachine.load(program) as m, pytest.raises(EventError, match="copies"):
        parse_event("p copied_by_a_default a", m)  # debug information does not tell of a default


def test_a_name_with_many_brackets_is_refused_at_once() -> None:
    with UnicornMachine.from_code("ret", arch="x86_64") as m, pytest.raises(EventError):
        parse_event("p a" + "<" * 2000 + "!", m)


def test_a_result_that_is_large_is_in_memory_whatever_copies_it(tmp_path: Path) -> None:
    """Strict DWARF 4 does not tell what copies a class; beyond 16 bytes that does not matter."""
    program = built("""
        struct Big { long a[4]; };
        extern "C" __attribute__((noinline)) Big large(int g, int tail) { return {{g, tail, 3, 4}}; }
        volatile long sink;
        int main() { sink = large(7, 9).a[1]; return 0; }
    """, tmp_path, "-O0", "-gstrict-dwarf", "-gdwarf-4", name="guest.cc")
    assert args_of(program, "p large g tail", "r large got=$retval") == [{"g": 7, "tail": 9}, {"got": {"a": (7, 9, 3, 4)}}]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no rustc")
def test_parameters_without_a_name(tmp_path: Path) -> None:
    """A Rust parameter that is taken apart has no name; $arg* is the others."""
    (tmp_path / "guest.rs").write_text("""
        #[inline(never)] fn parts((a, b): (u32, u32), key: u32) -> u32 { std::hint::black_box(a); b + key }
        fn main() { std::hint::black_box(parts(std::hint::black_box((4, 5)), 6)); }
    """)
    program = tmp_path / "guest"
    subprocess.run(["rustc", "-g", "-C", "target-feature=+crt-static", "-C", "relocation-model=static", "-A", "warnings",
                    "-o", program, tmp_path / "guest.rs"], check=True)
    with UnicornMachine.load(program) as m:
        name = next(symbol.name for symbol in m.symbols if "5parts17h" in symbol.name)
        assert [argument.name for argument in parse_event(f"p {name} $arg*", m).args] in (["key"], ["a", "b", "key"])


def test_a_pattern_takes_all_statements_of_its_lines(tmp_path: Path) -> None:
    """As perf does: the line of a loop has its beginning, its condition, and what is done at each turn."""
    program = built(LINES, tmp_path, "-O0")
    told = subprocess.run(["objdump", "--dwarf=decodedline", program], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in told.splitlines() if line.startswith("guest.c ")]
    wanted = {int(row[2], 16) for row in rows if row[1] == "10" and row[-1] == "x"}
    assert len(wanted) > 2
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        event = k.event("p weigh;for*")
        assert {place.definition.address for place in event.places} == wanted


COPIES = r"""
volatile int sink;
static inline __attribute__((always_inline)) int twice(int x) { sink = x; return x * 2; }
__attribute__((noinline)) int one(int x) { return twice(x); }
__attribute__((noinline)) int many(int x)
{
  int y = twice(x);
  y += twice(y);
  y += twice(y);
  return y;
}
int main(void) { one(1); one(2); one(3); many(4); return 0; }
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lines_of_inlined_copies_are_added_up(level: str, tmp_path: Path) -> None:
    """lcov has how often a line was executed in all its copies, and functions at their first lines."""
    program = built(COPIES, tmp_path, level)
    with UnicornMachine.load(program) as m, Coverage(m) as coverage:
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        (part,) = [each for each in coverage.contents("lcov").decode().split("end_of_record") if "guest.c\n" in each]
    lines = part.splitlines()
    assert "DA:3,6" in lines
    assert "FNDA:1,many" in lines
    assert {"FN:5,many", "FN:6,many"} & {*lines}


NAMES = r"""
#include <string>
volatile int sink;
struct Base { virtual ~Base() {} virtual int area(int k) const { return k; } };
struct Left { int l = 1; virtual ~Left() {} };
struct Shape : Left, Base { __attribute__((noinline)) int area(int k) const override { sink = k; return k + l; } };
namespace w { template <class T> struct Wrap { T t; __attribute__((noinline)) T get(int k) const { sink = k; return t; } }; }
__attribute__((noinline)) std::string mk(int a) { return std::string(a, 'x'); }
__attribute__((noinline)) int over(int a) { sink = a; return a; }
__attribute__((noinline)) int over(double a) { sink = a; return a; }
int main()
{
  Shape shape;
  Base *base = &shape;
  w::Wrap<int> wi{4};
  w::Wrap<double> wd{2.5};
  sink = wi.get(1) + (int)wd.get(2) + base->area(3) + (int)mk(3).size() + over(1) + over(2.5);
  return 0;
}
"""


def test_names_of_several_functions(tmp_path: Path) -> None:
    """gdb and perf take all functions of a readable name; a thunk is none of them."""
    program = built(NAMES, tmp_path, name="guest.cc")
    wanted = {"p w::Wrap::get k": [1, 2], "p over c=$comm": ["guest", "guest"], "p Shape::area k": [3], "p:m mk a": [3]}
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        events = []
        for definition in wanted:
            events.append(k.event(definition))
        with pytest.raises(EventError, match="in quotes"):
            k.event("p ove*")
        k.event("p:all 'ove*'")
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        assert [[next(iter(record.args.values())) for record in event] for event in events] == [*wanted.values()]


def test_lines_of_a_source_file_and_what_is_said_of_inlined_functions(tmp_path: Path) -> None:
    program = built(LINES, tmp_path, "-O2")
    listed = CliRunner().invoke(main, ["list", str(program), "guest.c:*", "--json"])
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {4, 10, 20} <= {row["line"] for row in rows} and all(row["n"] == row["line"] for row in rows)
    first = CliRunner().invoke(main, ["list", str(program), "weigh:0", "--json"])
    entry = json.loads(first.stdout)
    assert entry["address"] == min(row["address"] for row in rows if row["line"] == entry["line"])
    inlined = CliRunner().invoke(main, ["list", str(program), "twice:*"])
    assert inlined.exit_code and "inlined" in inlined.output
    with UnicornMachine.load(program) as m, Kprobes(m) as k, pytest.raises(EventError, match="twice is inlined, and inlined code"):
        k.event("p twice%return")
    run = CliRunner().invoke(main, ["trace", str(program), "-e", "p main", "--run"])
    assert run.exit_code and "--syscalls -- ARGUMENTS" in run.output


MEASURED = r"""
volatile int sink;
__attribute__((noinline)) int fill(int n, int m)
{
  int a[n];
  char t[n][m];
  for (int i = 0; i < n; i++) {
    a[i] = i * 3;
    for (int j = 0; j < m; j++)
      t[i][j] = j + 1 == m ? 0 : 'a' + i;
  }
  sink = a[n - 1] + t[0][0];
  return a[0];
}
int main(void) { fill(5, 3); fill(2, 4); return 0; }
"""


def test_arrays_whose_lengths_are_in_variables(tmp_path: Path) -> None:
    program = built(MEASURED, tmp_path, "-O0")
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        event = k.event("p guest.c:12 a t n second=a[1]")
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        assert [record.args for record in event] == [
            {"a": (0, 3, 6, 9, 12), "t": ("aa", "bb", "cc", "dd", "ee"), "n": 5, "second": 3},
            {"a": (0, 3), "t": ("aaa", "bbb"), "n": 2, "second": 3}]


BORROWED = {"inner.h": """static inline int limited(int v)
{
    if (v > 40)
        return 40;
    return v;
}
""", "src/outer.c": """#include "../inner.h"
int outer(int *all, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += limited(all[i] * 3);
    return sum;
}
int main(void)
{
    int all[] = {1, 2, 50};
    return outer(all, 3);
}
"""}


def test_lists_show_sources_and_name_the_files_of_inlined_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources lie where the compiler ran, not in the current folder."""
    for name, text in BORROWED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    made = tmp_path / "guest"
    subprocess.run(["gcc", "-g", "-O2", "-static", "src/outer.c", "-o", "guest"], cwd=tmp_path, check=True)
    monkeypatch.chdir("/")
    listed = CliRunner().invoke(main, ["list", str(made), "outer:*", "--json"])
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    inlined = [row for row in rows if not row["file"].endswith("outer.c")]
    assert inlined and {row["file"].rpartition("/")[2] for row in inlined} == {"inner.h"}
    texts = BORROWED["inner.h"].splitlines()
    assert all(row["n"] is None and row["source"] == texts[row["line"] - 1] for row in inlined)
    texts = BORROWED["src/outer.c"].splitlines()
    own = [row for row in rows if row["file"].endswith("outer.c")]
    assert all(row["n"] == row["line"] - 2 and row["source"] == texts[row["line"] - 1] for row in own)
    shown = CliRunner().invoke(main, ["list", str(made), "outer:*"]).stdout
    assert "inner.h:" in shown and "sum += limited(" in shown
    # a line whose code begins no statement is a place, and is listed, too
    with UnicornMachine.load(made) as m:
        places = {n for n in range(1, 7) if _has_code(m, n)}
    listed = CliRunner().invoke(main, ["list", str(made), "inner.h:*", "--json"])
    assert {json.loads(line)["line"] for line in listed.stdout.splitlines()} == places


def _has_code(m: UnicornMachine, line: int) -> bool:
    try:
        return bool(m.debug.at_line("inner.h", line))
    except UnknownSymbol:
        return False


HIDING = r"""
struct item { int id; struct item *next; };
static inline int clamp(int v, int lo, int hi)
{
    if (v < lo)
        return lo;
    return v > hi ? hi : v;
}
__attribute__((noinline)) int total(struct item *v, int limit)
{
    int t = 0;
    while (v) {
        t += clamp(v->id, 0, limit);
        v = v->next;
    }
    return t;
}
int main(void)
{
    struct item items[4] = {{7, &items[1]}, {8, &items[2]}, {-3, &items[3]}, {2, 0}};
    return total(items, 5);
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_an_event_on_an_inlined_function_has_its_variables(level: str, tmp_path: Path) -> None:
    """Also where the copy has no code of its own at its beginning, and a variable there has the same name."""
    program = built(HIDING, tmp_path, level)
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        event = k.event("p clamp v lo hi")
        around = k.event("p:around clamp%inlined limit")
        with pytest.raises(EventError, match="no parameter or variable 'nothing'"):
            k.event("p:no clamp nothing")
        m.serve_system_calls()
        m.process([bytes(program)])
        with k.trace("p clamp v") as trace:
            m.run()
        assert [dict(record.args) for record in event] == [{"v": v, "lo": 0, "hi": 5} for v in (7, 8, -3, 2)]
        assert [record.args["limit"] for record in around] == [5] * 4
        assert [record.args["v"] for record in trace] == [7, 8, -3, 2]


FROM_ONE_PLACE = r"""
static int counter;
static __attribute__((noinline)) int hidden(int scale, int a)
{
    counter += a;
    return counter * scale;
}
__attribute__((noinline)) int step(int i)
{
    return hidden(3, i) + hidden(3, i + 1);
}
int main(void)
{
    return step(4);
}
"""


def test_names_of_copies_and_names_that_libraries_have_too(tmp_path: Path) -> None:
    program = built(FROM_ONE_PLACE, tmp_path, "-O2")
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        assert "hidden" not in m.symbols  # the compiler has made a copy with fewer parameters
        step = m.symbols["step"].address
        m.symbols.add("step", m.symbols["main"].address, 4, module="libother.so")
        with pytest.raises(AmbiguousSymbol, match=r"write guest:step or libother\.so:step"):
            m.symbols["step"]
        events = [k.event("p hidden a"), k.event("p step i"), k.event("p libother.so:step"), k.event("r step $retval")]
        functions = [event.places[0].definition.function for event in events]
        assert functions[0].startswith("hidden.") and functions[1:] == ["guest:step", "libother.so:step", "guest:step"]
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        assert [record.args["a"] for record in events[0]] == [4, 5]
        assert [(record.address, dict(record.args)) for record in events[1]] == [(step, {"i": 4})]
        assert events[2].hits == 1 and [record.args["arg1"] for record in events[3]] == [3 * 4 + 3 * 9]


RARE = r"""
#define NI __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("")
typedef float v8f __attribute__((vector_size(32)));
struct none { };
struct wide { v8f a; };
struct deep { struct wide w[1]; };
struct aligned { int a; } __attribute__((aligned(16)));
volatile int sink;
NI _Complex long double twice(_Complex long double z) { KEEP; return z + z; }
NI int behind(int a, struct none b, double c, struct none d, int e) { KEEP; return a + e; }
NI struct aligned aligned(struct aligned a, int b, int c) { KEEP; sink = b; a.a += c; return a; }
NI struct none nothing(int k) { KEEP; sink = k; return (struct none){ }; }
NI struct wide wide(int k) { KEEP; sink = k; return (struct wide){ { 1, 2, 3, 4, 5, 6, 7, 8 } }; }
NI struct deep deep(int k) { KEEP; sink = k; return (struct deep){ { { { 1 } } } }; }
NI int taken(int k, struct wide w, int n) { KEEP; sink = k; return n; }
int main(void)
{
  struct none none = { };
  twice(1.5L - 2.25L * 1i);
  behind(3, none, 4.5, none, 5);
  aligned((struct aligned){ 6 }, 7, 8);
  nothing(9);
  wide(10);
  deep(11);
  taken(12, wide(13), 14);
  return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-mavx",)])
def test_rare_types_in_calls_of_x86_64(options: tuple[str, ...], tmp_path: Path) -> None:
    """Complex numbers of the x87, structures without bytes; one vector of 32 bytes is where options of the compiler say."""
    program = built(RARE, tmp_path, "-O0", *options)
    got = [] if options else args_of(program, "r twice $retval", "p behind a c e", "p aligned a b c", "r aligned $retval", "p nothing k")
    if got:  # Unicorn has no AVX
        assert [*got[0].values()] == [{"real": 3.0, "imag": -4.5}] and got[1] == {"a": 3, "c": 4.5, "e": 5}
        assert got[2] == {"a": {"a": 6}, "b": 7, "c": 8} and [*got[3].values()] == [{"a": 14}] and got[4] == {"k": 9}
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        for definition, why in (("p wide k", "may move"), ("r wide $retval", "unusual size"), ("p deep k", "may move"),
                                ("r deep $retval", "unusual size"), ("r nothing $retval", "no bytes"),
                                *[("p taken w", "unusual size")] * bool(options)):
            with pytest.raises(EventError, match=why):
                k.event(definition)


ONE_NAME = r"""
volatile double sink;
__attribute__((noinline)) int over(int a) { sink = a; return a; }
__attribute__((noinline)) int over(double a) { sink = a; return 2; }
__attribute__((noinline)) int over(int a, long b) { sink = a + b; return 3; }
int main() { over(1); over(2.5); over(3, 4); return 0; }
"""


def test_overloaded_functions_in_one_event(tmp_path: Path) -> None:
    """`$arg*` is each function's own parameters, whoever records them; functions without a fetched one are named."""
    program = built(ONE_NAME, tmp_path, "-O0", name="guest.cc")
    right = [{"a": 1}, {"a": 2.5}, {"a": 3, "b": 4}]
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        every = k.event("p over $arg*")
        some = k.event("p:some over b")
        m.serve_system_calls()
        m.process([bytes(program)])
        with k.trace("p:traced over $arg*") as trace:
            m.run()
        assert len(every.places) == 3 and [record.args for record in every] == right == [record.args for record in trace]
        assert [record.args for record in some] == [{"b": 4}]
        assert len(some.skipped) == 2 and all(why.startswith("there is no parameter or variable 'b' here") for _, why in some.skipped)
