"""Variables at hits are what gdb shows, or are not shown: random programs in C, C++ and Rust, run natively by gdb.

By hand: `VALUES=40 VALUES_SHARE=0.5 pytest tests/tracing/test_values.py` compares 40 programs of each kind.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from value_judge import compared
from value_programs import RUST_AGGREGATES, RUST_ENTRIES, build, compiler

from kprobes import EventError, Kprobe, Kprobes, UnicornMachine, UnknownSymbol
from kprobes.debug.convention import is_tried_rustc
from kprobes.debug.units import units_of
from kprobes.names import demangle

COUNT = int(os.environ.get("VALUES", "1"))  #: programs of each kind
SHARE = float(os.environ.get("VALUES_SHARE", "0.08"))  #: of their instructions
#: language, optimization, version of DWARF
KINDS = [("c", 0, 5), ("c", 1, 4), ("c", 2, 5), ("c++", 0, 4), ("c++", 2, 5), ("rust", 0, 4), ("rust", 2, 4)]
if COUNT > 1:
    KINDS = [(language, level, dwarf) for language in ("c", "c++", "rust") for level in (0, 1, 2)
             for dwarf in ((2, 3, 4, 5) if language == "c" else (4, 5))]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gdb") is None,
                                reason="gdb shows values of x86-64 programs, natively")


@pytest.mark.parametrize(("language", "level", "dwarf"), KINDS)
@pytest.mark.parametrize("seed", range(COUNT))
def test_variables_are_what_gdb_shows(seed: int, language: str, level: int, dwarf: int, tmp_path: Path) -> None:
    if compiler(language) is None:
        pytest.skip(f"there is no compiler of {language}")
    program = build(language, seed, level, dwarf, tmp_path)
    verdicts = compared(program, seed, SHARE, level > 0, tmp_path)
    print(f"{program.name}: {verdicts.right} right, {verdicts.refused} refused, {len(verdicts.wrong)} wrong, "
          f"{verdicts.stacks} stacks")
    assert verdicts.wrong == []
    if not verdicts.right + verdicts.refused:
        pytest.skip("gdb finds no variables in this program")
    assert verdicts.right > 50


def rustc() -> str:
    """The compiler's name and version, as DW_AT_producer has them."""
    found = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    return found.replace("rustc", "rustc version")


def test_parameters_of_rust_at_entries(tmp_path: Path) -> None:
    """Floats, texts, slices, pairs and large values, in registers and on the stack; what is not known is refused."""
    if compiler("rust") is None:
        pytest.skip("there is no rustc")
    program = build("rust", 0, 0, 4, tmp_path, RUST_ENTRIES)
    verdicts = compared(program, 0, 0.0, False, tmp_path)
    assert verdicts.wrong == [] and verdicts.right > 80 and verdicts.refused < 25
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        # mangled by either scheme: `_ZN...17h...E`, or `_R...` as newer rustcs have it
        names = {demangle(symbol.name).partition("::<")[0]: symbol.name for symbol in m.symbols}
        # the address of what it has captured comes first, and debug information does not say so
        closure = next(symbol.name for symbol in m.symbols if demangle(symbol.name).startswith("rust0::closures::{")
                       and m.debug.parameters(symbol.address)[0].name == "q")
        with pytest.raises(EventError, match="captured"):
            k.event(f"p {closure} q")
        # a function's own type has no bytes, and looks like a pointer to a function
        with pytest.raises(EventError, match="no bytes"):
            k.event(f"p {names['rust0::once']} g")
        words = "floats", "nine", "pairs", "wide", "three"
        events = [k.event(f"r {names[f'rust0::{word}']} got=$retval") for word in words]
        if not is_tried_rustc(rustc()):
            with pytest.raises(EventError, match="result is not known"):
                k.event(f"r {names['rust0::res']} $retval")
        m.run(m.symbols["_start"].address, m.symbols["finished"].address)
        got = [next(iter(event)).args["got"] for event in events]
    assert got[:2] == [1.5 + 2 + 2.25 + 9.5 + 1, 10.0]
    assert got[2] == (97, 5) and len(set(got[4])) == 1 and len(got[4]) == 3
    assert got[3] == (1 << 100) ^ ((-7 << 70) & (1 << 128) - 1) ^ ((1 << 128) - 4)


@pytest.mark.parametrize("level", [0, 2])
def test_aggregates_of_rust(level: int, tmp_path: Path) -> None:
    """Enumerations with payload, tuples and arrays, as parameters and results; what rustc may pass otherwise is refused."""
    if compiler("rust") is None:
        pytest.skip("there is no rustc")
    program = build("rust", 1, level, 4, tmp_path, RUST_AGGREGATES)
    places = {f"{kind} {name}": f"{kind}:{kind}_{name} {name} {fetch}" for name, fetch in [
        ("mixed", "a b"), ("same", "a b"), ("real", "a b"), ("bytes", "a b c"), ("options", "a b c d e f"), ("results", "a b c d"),
        ("large", "a")] for kind in ("p", "r")}
    tried = is_tried_rustc(rustc())
    as_bytes = [("floats", "a"), ("three", "a b"), ("reals", "a b"), ("uneven", "a b"), ("words", "c a b d")]
    if tried:
        places |= {f"{kind} {name}": f"{kind}:{kind}_{name} {name} {fetch}" for name, fetch in as_bytes for kind in ("p", "r")}
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        for name, why in [("marked", "may be #.repr.C.."), ("holder", "may be #.repr.C.."), ("sign", "versions of rustc"), ("vector", "not known"),
                          ("alone", "not known"), *[(name, "not known") for name, _ in as_bytes if not tried]]:
            # of optimized code debug information says where parameters are
            for definition in (f"p {name} a", f"p {name} b", f"r {name} $retval")[2 * (level > 0):]:
                with pytest.raises(EventError, match=why):
                    k.event(definition)
        events = {key: k.event(" ".join(text.split()[:2]) + " got=$retval" if key[0] == "r" else text)
                  for key, text in places.items()}
        m.run(m.symbols["_start"].address, m.symbols["finished"].address)
        shown = {key: [tuple(record.args.values()) for record in event] for key, event in events.items()}
    n = shown["p mixed"][0][1]
    assert shown["p mixed"] == [({"A": 9}, n), ({"B": 8}, n), ("C", n)]
    assert shown["p same"] == [({"A": 3}, n), ("C", n)]
    assert shown["p real"] == [({"A": 0.5}, n), ({"B": 1.5}, n)]
    for name in ("mixed", "same", "real"):
        assert shown[f"r {name}"] == [given[:1] for given in shown[f"p {name}"]]
    assert shown["p bytes"] == [((1, 2, 3, 4, 5), (1, 2, 3), n)] and shown["r bytes"] == [((1, 2, 3, 4, 5),)]
    (first, second), pointer = shown["p options"], shown["p options"][0][1]["Some"]
    assert first == ({"Some": 5}, {"Some": pointer}, {"Some": 1}, {"Some": "text"},
                     {"Some": 1.5}, {"Some": 1 << 40})
    assert pointer and second == ("None",) * 6 and shown["r options"] == [({"Some": 1 << 40},), ("None",)]
    assert shown["p results"] == [
        ({"Ok": 4}, {"Err": 6}, {"Ok": 7}, (-1, 2)),
        ({"Err": n}, {"Ok": 0}, {"Err": (1, 2, 3)}, (3, 4))]
    assert shown["r results"] == [({"Ok": 4},), ({"Err": n},)]
    assert shown["r large"] == [({"Some": (7, 7, 7, 7)},), ("None",)]
    if tried:  # by their addresses, what has more than 8 bytes
        assert shown["p floats"] == [((1.5, 2.5),)] and shown["r floats"] == [((1.5, 2.5),)]
        assert shown["p three"] == [({"__0": n, "__1": 5, "__2": 6}, n)] and shown["r three"] == [shown["p three"][0][:1]]
        assert shown["p reals"] == [({"__0": 1.5, "__1": 1 << 40, "__2": 2.5}, 3.5)] and shown["r reals"] == [shown["p reals"][0][:1]]
        assert shown["p uneven"] == [({"A": (n, 8)}, n), ({"B": 1 << 50}, n), ("C", n)]
        assert shown["r uneven"] == [given[:1] for given in shown["p uneven"]]
        assert shown["p words"] == [(n, (1 << 60, 2), (1, 2, 3, 4, 5, 6, 7, 8, 9), n)] and shown["r words"] == [((1 << 60, 2),)]


def test_types_of_cpp(tmp_path: Path) -> None:
    """Namespaces tell types of one name apart; members of virtual bases and static ones are at no constant place."""
    if compiler("c++") is None:
        pytest.skip("there is no compiler of C++")
    for dwarf in (4, 5):
        with UnicornMachine.load(build("c++", 1, 0, dwarf, tmp_path)) as m:
            assert [*m.type("struct N").members] == ["c", "d"] and [*m.type("struct geo::N").members] == ["x", "y"]
            assert [*m.type("struct Text").members] == ["at", "size", "room"]
            # as C++ writes them
            assert [*m.type("N").members] == ["c", "d"] and [*m.type("geo::N").members] == ["x", "y"]
            assert m.type("geo::N *").target is not None and m.type("color").values == m.type("enum color").values
            left = m.type("struct geo::Left")
            assert "left" in left.members and "counted" not in left.members and "base" in left.hidden
            assert [*left.virtual] == ["_vptr.Base", "base"] == [*m.type("geo::Both").virtual]


VIRTUAL = """
namespace geo { struct Root { int root; int hid; virtual int area(); }; struct Base : virtual Root { int id : 5; int half : 7; };
struct Left : virtual Base { int l; }; struct Right : virtual Base { int r; }; struct Wide { long far; int same; };
struct Other { int same; }; struct Both : Wide, Left, Right, virtual Other { int b; int hid; int area(); };
int Root::area() { return 0; }
__attribute__((noinline)) int Both::area() { return id + l + r + b + root; } }
struct __attribute__((packed)) Bits { unsigned a : 3; unsigned long b : 62; } given = {5, 1ul << 60};
extern "C" int bits(const Bits &r, geo::Left &o) { return r.a + o.id; }
extern "C" int drive(geo::Left *o) { return o->area() + o->id; }
extern "C" int make(int n) { geo::Both o; o.id = n; o.half = n + 1; o.l = n + 2; o.r = n + 3; o.b = n + 4; o.root = n + 5;
  o.hid = n + 6; o.far = n + 7; o.geo::Root::hid = n + 8; bits(given, o); return drive(&o); }
extern "C" void _start() {}
namespace __cxxabiv1 { struct __class_type_info { virtual void a(); }; }
"""


NESTED = """volatile long sink; struct big { long a[5]; };
__attribute__((noinline)) static int outer(int n, struct big b, double f) {
  int local = n * 3; char text[8] = "abcdefg"; { int hidden = 5; sink += hidden; }
  __attribute__((noinline)) int inner(int q, float g) { int mine = q + local; sink += mine + text[q & 7] + b.a[1]; local++;
    __attribute__((noinline)) int deep(long z) {
      long n = z + mine;
      sink += n + q + local; return n; }
    return deep(q * 2L) + (int)g; }
  return inner(n, 1.5f) + inner(n + 1, 2.5f) + local + (int)f; }
__attribute__((noinline)) int start(int n) { struct big b = {{1, 2, 3, 4, 5}}; return outer(n, b, n / 2.0); }
void _start(void) { start(1); }
"""


HIDDEN = """
__attribute__((noinline)) int h(int x) { __asm__ volatile(""); return x * 2; }
__attribute__((noinline)) long q(int n, int m) {
  while (1) { long n = (long)m * 3; __asm__ volatile("" :: "r"(n)); if (h(n)) return n; } }
void _start(void) { q(3, 4); }
"""


def test_a_parameter_that_a_variable_hides(tmp_path: Path) -> None:
    """It is one of the parameters all the same, wherever gcc says that the variable's block begins."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "hidden.c").write_text(HIDDEN)
    subprocess.run(["gcc", "-g", "-O2", "-nostdlib", "-static", "-no-pie", "hidden.c", "-o", "hidden"], cwd=tmp_path, check=True)
    with UnicornMachine.load(tmp_path / "hidden") as m:
        q = m.symbols["q"]
        for place in range(q.address, q.address + q.size):
            assert [(v.name, v.parameter) for v in m.debug.parameters(place) or ()] == [("n", 0), ("m", 1)]
        assert [v.name for v, _ in m.debug.arrivals(q.address)] == ["n", "m"]


def test_variables_around_a_nested_function(tmp_path: Path) -> None:
    """gcc's functions within functions see the variables of the call that they belong to, and so do we."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "nested.c").write_text(NESTED)
    subprocess.run(["gcc", "-g", "-O0", "-nostdlib", "-static", "-no-pie", "-fno-stack-protector", "-w", "-z", "execstack",
                    "nested.c", "-o", "nested"], cwd=tmp_path, check=True)
    seen: list[dict[str, Any]] = []
    with UnicornMachine.load(tmp_path / "nested") as m, Kprobes(m) as k:
        place = min(place.address for place in m.debug.at_line("nested.c", 6))
        k.register(Kprobe(addr=place, pre_handler=lambda p, regs: seen.append(m.debug.locals(regs))))
        event = k.event(f"p:deep {place:#x} local b.a[2] second=text[1] mine q")
        at_entry: list[dict[str, Any]] = []  # its address of the frame is not where the compiler says yet
        deep = next(symbol for symbol in m.symbols if symbol.name.startswith("deep."))
        k.register(Kprobe(addr=deep.address, pre_handler=lambda p, regs: at_entry.append(m.debug.locals(regs))))
        m.call("start", 1)
        right = [{"z": 2, "mine": 4, "q": 1, "local": 4, "f": 0.5}, {"z": 4, "mine": 6, "q": 2, "local": 5, "f": 0.5}]
        for values, expected in zip(seen, right, strict=True):
            assert {name: values[name] for name in expected} == expected
            assert [*values["b"].a] == [1, 2, 3, 4, 5] and str(values["text"]) == "abcdefg"
            assert "hidden" not in values
        assert [dict(record.args) for record in event] == [{"local": 4, "a": 3, "second": ord("b"), "mine": 4, "q": 1},
                                                           {"local": 5, "a": 3, "second": ord("b"), "mine": 6, "q": 2}]
        assert [values["z"] for values in at_entry] == [2, 4] and not any("local" in values for values in at_entry)


def virtual(language: str, folder: Path) -> None:
    """Compile VIRTUAL as `virtual`."""
    found = compiler(language)
    if found is None:
        pytest.skip("there is no such compiler")
    (folder / "virtual.cc").write_text(VIRTUAL)
    subprocess.run([found, "-g", "-O0", "-fno-rtti", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-stack-protector",
                    "virtual.cc", "-o", "virtual"], cwd=folder, check=True)


@pytest.mark.parametrize("language", ["c++", "clang++"])
def test_events_of_members_of_virtual_bases(language: str, tmp_path: Path) -> None:
    """Through pointers, references and from a return; bit fields among them."""
    virtual(language, tmp_path)
    right = {"id": 9, "half": 10, "l": 11, "root": 14, "hid": 17}
    with UnicornMachine.load(tmp_path / "virtual") as m, Kprobes(m) as k:
        events = [k.event(f"{place} o->id o->half o->l o->root o->hid") for place in ("p drive", "r drive")]
        symbol = m.symbols["drive"]
        body = m.debug.lines(symbol.address, symbol.address + symbol.size)[1].address  # where Python finds variables
        events.append(k.event(f"p:body {body:#x} o->id o->half o->l o->root o->hid"))
        by_reference = k.event("p bits r.a r.b o.id o.root s=o->root:s8")
        with pytest.raises(EventError, match=r"it has .*root"):
            k.event("p:none drive o->nothing")
        m.call("make", 9)
        assert [[dict(record.args) for record in event] for event in events] == [[right]] * 3
        assert [dict(record.args) for record in by_reference] == [{"a": 5, "b": 1 << 60, "id": 9, "root": 14, "s": 14}]


@pytest.mark.parametrize("language", ["c++", "clang++"])
def test_members_of_virtual_bases(language: str, tmp_path: Path) -> None:
    """Through a pointer to any part of an object, whose table of virtual functions says where the base is."""
    virtual(language, tmp_path)
    seen = []

    def look(p: Any, regs: Any) -> None:
        o = m.debug.local(regs, "o")
        whole = m.view("geo::Both *", int(o) - m.type("geo::Both").members["l"].offset + m.type("geo::Left").members["l"].offset)
        seen.extend([o.id, o.half, o.l, o.root, o.hid, whole.id, whole.r, whole.b, whole.root, whole.hid, whole.far])
        assert "id = 9, half = 10" in repr(o) and "same" not in whole._type.target.virtual
        whole.id = -3
        whole.root = 1000
    with UnicornMachine.load(tmp_path / "virtual") as m, Kprobes(m) as k:
        k.register(Kprobe(symbol_name="drive", pre_handler=look))
        assert m.call("make", 9) == -3 + 11 + 12 + 13 + 1000 - 3
    assert seen == [9, 10, 11, 14, 17, 9, 12, 13, 14, 15, 16]


@pytest.mark.parametrize("compiled_by", ["c", "clang"])
def test_packed_bit_fields(compiled_by: str, tmp_path: Path) -> None:
    """gcc writes those of DWARF 4 that cross their types' units with offsets below zero."""
    if compiler(compiled_by) is None:
        pytest.skip("there is no such compiler")
    text = """struct __attribute__((packed)) pack { unsigned a : 3; unsigned long b : 40; int c : 30; } given = {5, 0x123456789a, -77};
static inline int within(int p, int q) { int product = p * q; return product + given.c; }
__attribute__((noinline)) int first(int a) { return within(a, 3); }
void _start(void) { first(2); }"""
    (tmp_path / "pack.c").write_text(text)
    for dwarf in (2, 3, 4, 5):
        out = tmp_path / f"pack{dwarf}"
        subprocess.run([str(compiler(compiled_by)), f"-gdwarf-{dwarf}", "-O2", "-w", "-nostdlib", "-static", "-fno-pie",
                        "-fcf-protection=none", str(tmp_path / "pack.c"), "-o", str(out)], check=True)
        with UnicornMachine.load(out) as m, Kprobes(m) as k:
            view = m.view("struct pack", m.symbols["given"].address)
            assert (view.a, view.b, view.c) == (5, 0x123456789A, -77)
            event, seen = k.event("p first a c=given.c"), []
            k.register(Kprobe(symbol_name="first", pre_handler=lambda p, regs, m=m, seen=seen: seen.append(m.debug.locals(regs))))
            m.call("first", 2)
            assert [dict(record.args) for record in event] == [{"a": 2, "c": -77}]
            # the function that stands inlined begins where `first` does
            # what stands inlined begins where `first` does; gcc keeps no values of it
            right = {"a": 2, "p": 2, "q": 3, "product": 6}
            kept = {name: value for name, value in seen[0].items() if value is not None}
            assert kept.items() <= right.items() and (len(kept) > 2 or compiled_by == "c")


@pytest.mark.parametrize("dwarf", [4, 5])
def test_globals_that_are_declared_first(dwarf: int, tmp_path: Path) -> None:
    """A header declares libc's `stdout`, a class its static members: the definition's entry has no name of its own."""
    if compiler("c++") is None:
        pytest.skip("there is no compiler of C++")
    (tmp_path / "globals.cc").write_text("""
        extern int counted; int counted = 5; extern "C" { extern int row[]; int row[3] = {1, 2, 3}; }
        namespace geo { struct Shape { static int count; int x; }; int Shape::count = 7; extern long area; long area = 9; }
        extern "C" void _start() {}""")
    command = [str(compiler("c++")), f"-gdwarf-{dwarf}", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie"]
    subprocess.run([*command, "globals.cc", "-o", "globals"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "globals") as m, Kprobes(m) as k:
        event = k.event("p _start counted row c=geo::Shape::count")
        m.call("_start")
        assert [dict(record.args) for record in event] == [{"counted": 5, "row": (1, 2, 3), "c": 7}]
        address, type = m.debug.variable("area")
        assert (m.read(address, 8), type.name) == (bytes([9, *bytes(7)]), "long int")


@pytest.mark.parametrize("dwarf", [2, 4, 5])
def test_arrays_whose_last_index_is_all_ones(tmp_path: Path, dwarf: int) -> None:
    """255 in one byte and 65,535 in two are no -1: an array of 256 elements is whole, one of 0 is empty."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "ones.c").write_text("""
        struct all { int none[0]; char text[256]; short words[65536]; } all = { {}, "hello", { 1, 2 } };
        volatile int sink;
        __attribute__((noinline)) int show(struct all *p) { sink += p->text[0]; return p->words[1]; }
        void _start(void) { show(&all); }""")
    command = ["gcc", f"-gdwarf-{dwarf}", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie"]
    subprocess.run([*command, "ones.c", "-o", "ones"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "ones") as m, Kprobes(m) as k:
        view = m.view("struct all", m.symbols["all"].address)
        assert (len(view.none), len(view.text), len(view.words)) == (0, 256, 65536)
        assert (bytes(view.text[n] for n in range(5)), view.words[1]) == (b"hello", 2)
        event = k.event("p show p->text word=p->words[1]")
        m.call("_start")
        assert [dict(record.args) for record in event] == [{"text": "hello", "word": 2}]


def test_a_flexible_array_of_characters(tmp_path: Path) -> None:
    """A text that its structure ends in is shown whole, as by gdb; how many numbers there are nobody knows."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "flexible.c").write_text("""
        struct msg { int len; char text[]; };
        struct nums { int n; int v[]; };
        struct { int len; char text[8]; } store = { 5, "hello" };
        volatile int sink;
        __attribute__((noinline)) int show(struct msg *p, struct nums *n) { sink += p->len; return p->text[0] + n->v[0]; }
        void _start(void) { show((struct msg *)&store, (struct nums *)&store); }""")
    command = ["gcc", "-g", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie"]
    subprocess.run([*command, "flexible.c", "-o", "flexible"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "flexible") as m, Kprobes(m) as k:
        events = [k.event(f"{place} p->text n=p->len") for place in ("p show", "r show")]
        m.call("_start")
        for event in events:
            assert [dict(record.args) for record in event] == [{"text": "hello", "n": 5}]
        with pytest.raises(EventError, match="how many elements"):
            k.event("p show n->v")


def test_a_line_of_a_function_with_a_cold_part(tmp_path: Path) -> None:
    """gcc puts the cold part lower than the function; the line's place is where it is entered."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "cold.c").write_text("""volatile int sink;
        __attribute__((cold, noinline)) void rare(int x) { sink = x; }
        __attribute__((noinline)) int work(int a, int b) { if (a > 1000) { rare(a * b); sink += a; rare(b); } return a + b; }
        void _start(void) { work(1, 2); work(2000, 3); }""")
    command = ["gcc", "-g", "-O2", "-nostdlib", "-static", "-fno-pie", "-no-pie"]
    subprocess.run([*command, "cold.c", "-o", "cold"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "cold") as m, Kprobes(m) as k:
        assert m.symbols["work.cold"].address < m.symbols["work"].address
        event = k.event("p cold.c:3 a b")
        m.call("_start")
        assert [dict(record.args) for record in event] == [{"a": 1, "b": 2}, {"a": 2000, "b": 3}]
        assert [place.address for place in m.debug.at_line("cold.c", 3)] == [m.symbols["work"].address]


def test_constants_for_parameters(tmp_path: Path) -> None:
    """clang says of a parameter that all callers give alike what it is: at the entry, too, and of more than a word."""
    if compiler("clang") is None:
        pytest.skip("there is no clang")
    (tmp_path / "same.c").write_text("""volatile long sink;
static __attribute__((noinline)) int first(int a, float f, __int128 w) { sink += a + (long)f + (long)(w >> 64); return a; }
void _start(void) { __int128 w = ((__int128)5 << 70) + 3; first(sink, 2.5f, w); first(sink + 1, 2.5f, w); }""")
    subprocess.run(["clang", "-gdwarf-4", "-O2", "-nostdlib", "-static", "-fno-pie", "same.c", "-o", "same"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "same") as m, Kprobes(m) as k:
        event = k.event("p first f w")
        m.call("_start")
        assert [dict(record.args) for record in event] == 2 * [{"f": 2.5, "w": (5 << 70) + 3}]


def test_units_of_data_are_not_asked_for_code(tmp_path: Path) -> None:
    """libc has 126 of them, and each was read whole for the lines of any function."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "data.c").write_text("struct pair { int a, b; } given = {1, 2};")
    (tmp_path / "code.c").write_text("void _start(void) {} int other(int a) { return a; }")
    subprocess.run(["gcc", "-g", "-O1", "-nostdlib", "-static", "data.c", "code.c", "-o", "both"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "both") as m:
        units = units_of(m.symbols.files[0])
        assert len(units.headers) == 2
        start = m.symbols["_start"].address - m.symbols.files[0].bias
        assert [*units.units_with(start, start + 8)] == [1]
        assert m.type("struct pair").size == 8


def test_a_name_of_types_that_differ(tmp_path: Path) -> None:
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    for n, member in enumerate(("int first", "long second[3]")):
        (tmp_path / f"{n}.c").write_text("\n" * n + f"struct node {{ {member}; }}; struct node node{n}; typedef int same;"
                                         f" same same{n}; void _start(void);" + "void _start(void) {}" * (n == 0))
    out = tmp_path / "both"
    subprocess.run([str(compiler("c")), "-g", "-nostdlib", "-static", "-no-pie", str(tmp_path / "0.c"), str(tmp_path / "1.c"),
                    "-o", str(out)], check=True)
    with UnicornMachine.load(out) as m:
        assert m.type("same").size == 4
        with pytest.raises(UnknownSymbol, match="several types"):
            m.type("struct node")


def test_a_parameter_in_a_register_is_refused_for_the_reason_that_the_convention_gives(tmp_path: Path) -> None:
    """It is copied to a register of its own; the convention's reason, where it has one, says more."""
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "kept.c").write_text("static __attribute__((noinline)) int inner(register int k) { return k + 1; }\n"
                                     "int outer(register int k) { return inner(k); }\nvoid _start(void) {}\n")
    subprocess.run(["gcc", "-g", "-O0", "-nostdlib", "-static", "-no-pie", "-fno-stack-protector", "kept.c", "-o", "kept"],
                   cwd=tmp_path, check=True)
    with UnicornMachine.load(tmp_path / "kept") as m, Kprobes(m) as k:
        with pytest.raises(EventError, match="the compiler may have changed how this function is called"):
            k.event("p inner k")
        with pytest.raises(EventError, match="it is copied to a register of its own"):
            k.event("p outer k")
