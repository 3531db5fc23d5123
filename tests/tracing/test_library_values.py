"""Values of the types of C++'s and Rust's libraries, as libstdc++'s printers for gdb and as the programs have them."""

from __future__ import annotations

import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kprobes import Kprobes, UnicornMachine
from kprobes.debug.libraries import is_text
from kprobes.debug.view import load
from kprobes.debug.whole import whole

HERE = Path(__file__).resolve().parent
PRINTERS = Path("/usr/share/gcc/python/libstdcxx/v6/printers.py")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("g++") is None,
                                reason="programs of x86-64 are compiled here")
WORDS = ["", "xx", "xxxx", "x", "xxx"]
PAIRS = tuple({"first": n, "second": WORDS[n]} for n in range(5))
POINTERS = {"owned", "null", "shared", "weak"}
WANTED = {
    "some": 5, "none": "(empty)", "text": "text", "large": {"a": -7, "name": "seven"}, "number": 3, "word": "word",
    "object": {"a": 9, "name": "nine"}, "mono": 2.5, "map": PAIRS, "set": (-4, -3, -2, -1, 0),
    "multi": ({"first": "a", "second": 1}, {"first": "a", "second": 2}),
    "aligned": ({"first": 1, "second": {"w": 11}}, {"first": 2, "second": {"w": 12}}),
    "list": (0, 1, 2, 3, 4), "forward": (4, 3, 2, 1, 0), "deque": tuple(range(150, 300)),
    "bigs": tuple({"a": n, "name": f"b{chr(ord('a') + n)}"} for n in range(20)), "array": (1, 2, 3), "empty": (),
    "pair": {"first": 8, "second": "eight"}, "tuple": (1, {"first": 99, "second": 1.5}), "stack": (0, 1, 2, 3, 4),
    "queue": (0, 1, 2, 3, 4), "heap": (4, 3, 1, 0, 2), "atomic": 6, "flag": True, "options": (1, "(empty)", 3),
    "maps": ({"first": 1, "second": ({"first": 2, "second": 3},)},), "bits": (True, False, True), "nothing": (),
}


def compiled(library: str, level: str, folder: Path) -> Path:
    """Compile library_values.cpp with GNU's library, or with LLVM's, which zig brings."""
    path = folder / "guest"
    if library == "libc++":
        pytest.importorskip("ziglang")
        if "KPROBES_LIBCXX" not in os.environ:
            pytest.skip("zig compiles LLVM's library first, in a minute: KPROBES_LIBCXX=1, as .ci/more does")
        command = [sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-musl"]
    else:
        command = ["g++", "-static", "-no-pie"]
    subprocess.run([*command, "-std=c++17", "-g", "-w", level, "-o", path, HERE / "library_values.cpp"], check=True,
                   capture_output=True)
    return path


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with GNU's library."""
    return compiled("libstdc++", request.param, tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="module", params=["libstdc++ -O0", "libstdc++ -O2", "libc++ -O0", "libc++ -O2"])
def of_library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with either library."""
    return compiled(*request.param.split(), tmp_path_factory.mktemp("libraries"))


def at_hit(program: Path, function: str, work: Callable[[UnicornMachine, Any], Any]) -> Any:
    """Run a program; return what `work` returns at the hit of a function, of the machine and the registers."""
    found = []
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        k.kprobe(function)(lambda p, regs: found.append(work(m, regs)))
        m.serve_system_calls()
        for name in ("poll", "sigaltstack", "sched_getaffinity", "rt_sigaction", "openat"):
            if name not in m.system_calls:
                m.system_calls[name] = lambda *args: 0
        m.process([bytes(program)])
        m.run()
    (one,) = found
    return one


def test_values_of_libraries(of_library: Path) -> None:
    """Optional values, alternatives, lists, maps and owners are what they stand for, in structures, too."""
    program = of_library
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        names = [*WANTED, *sorted(POINTERS), "chars", "hashed", "numbers"]
        events = {name: k.event(f"p:one_{name} look it->{name}") for name in names}
        given = k.event("p:given look map may")
        results = k.event("r half $retval")
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        got = {name: next(iter(event)).args[name] for name, event in events.items()}
        # LLVM's debug information has no place for the optional's value before the frame is set up
        in_part = {"__null_state_": "(not kept)", "__val_": "(not kept)", "__engaged_": True}
        arguments = next(iter(given)).args
        assert arguments["map"] == PAIRS and arguments["may"] in (12, in_part)
        assert [next(iter(record.args.values())) for record in results] == [4, "(empty)"]
    assert {name: got[name] for name in WANTED} == WANTED
    assert got["null"] == 0 and got["owned"] and got["shared"] == got["weak"] != 0
    assert sorted(got["chars"]) == [97, 98, 99, 100, 101]
    assert {each["first"]: each["second"] for each in got["hashed"]} == {"one": 1, "two": 2}
    assert {each["first"]: each["second"] for each in got["numbers"]} == {n: n / 2 for n in range(5)}


def _shown(value: Any, is_pointer: bool = False) -> Any:
    """A value of ours as library_gdb.py has it, which has a pair for each element of a map."""
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_shown(each) for each in value]
    return value != 0 if is_pointer else value


def _mapped(value: Any, theirs: Any) -> Any:
    """A map of ours as a list of pairs, where `theirs` is one."""
    if isinstance(value, list) and isinstance(theirs, list):
        pairs = [[each["first"], each["second"]] if isinstance(each, dict) and isinstance(other, list) else each
                 for each, other in zip(value, theirs, strict=True)]
        return [_mapped(each, other) for each, other in zip(pairs, theirs, strict=True)]
    return value


@pytest.mark.skipif(shutil.which("gdb") is None or not PRINTERS.exists(), reason="libstdc++'s printers are not here")
def test_values_are_as_printers_of_gdb_show_them(program: Path) -> None:
    """In the same order, also of what is hashed."""
    found = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "break look", "-ex", "run",
                            "-ex", f"source {HERE / 'library_gdb.py'}", program], capture_output=True, text=True, check=False)
    lines = [line for line in found.stdout.splitlines() if line.startswith("VALUES ")]
    assert lines, found.stdout + found.stderr
    theirs = json.loads(lines[0].partition(" ")[2])
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        events = {name: k.event(f"p:one_{name} look it->{name}") for name in theirs}
        m.serve_system_calls()
        m.process([bytes(program)])
        m.run()
        got = {name: _shown(next(iter(event)).args[name], name in POINTERS) for name, event in events.items()}
    got["pair"] = [*got["pair"].values()]
    # printers of this version have none for std::array, and only a text for std::atomic
    known = {*theirs} - {"array", "empty", "atomic", "flag"}
    assert len(known) > 30
    assert {name: _mapped(got[name], theirs[name]) for name in known} == {name: theirs[name] for name in known}


def test_others_types_of_these_names_are_structures(of_library: Path) -> None:
    program = of_library
    found = at_hit(program, "look_at_others", lambda m, regs: whole(m.view("other::all", regs.arg(0))))
    assert found == {"o": {"_M_payload": 1}, "v": {"_M_impl": 0}, "m": {"_M_t": {"_M_impl": 2}},
                     "w": {"_M_u": 3, "_M_index": 0}, "u": {"_M_t": {"_M_t": 0}}, "l": {"_M_impl": {"_M_node": 4}},
                     "d": {"_M_impl": {"_M_start": 5, "_M_finish": 6}}, "h": {"_M_h": {"_M_element_count": 7}}}


C = """
struct stack { int a, b; char c; } stack = {1, 2, 3};
struct Vec { char *buf; int len; } vec = {0, 4};
struct String { struct Vec vec; } string = {{0, 5}};
struct V { int value, more; };
struct Cell { struct V value; int other; } cell = {{6, 7}, 8};
struct UnsafeCell { int value, other; } unsafe = {9, 10};
typedef struct { void *data_ptr; long length; } Slice;
Slice slice = {0, 11};
int main(void) { return 0; }
"""


def test_structures_of_c_are_no_types_of_libraries(tmp_path: Path) -> None:
    """Structures that have the names, and the members, of libraries' types keep all of their members."""
    (tmp_path / "guest.c").write_text(C)
    subprocess.run(["gcc", "-g", "-static", "-no-pie", "-o", tmp_path / "guest", tmp_path / "guest.c"], check=True)
    with UnicornMachine.load(tmp_path / "guest") as m:
        views = {}
        for name in ("stack", "vec", "string", "cell", "unsafe", "slice"):
            address, type = m.debug.variable(name)
            views[name] = load(m, type, address)
        assert {name: whole(view) for name, view in views.items()} == {
            "stack": {"a": 1, "b": 2, "c": 3}, "vec": {"buf": 0, "len": 4}, "string": {"vec": {"buf": 0, "len": 5}},
            "cell": {"value": {"value": 6, "more": 7}, "other": 8}, "unsafe": {"value": 9, "other": 10},
            "slice": {"data_ptr": 0, "length": 11}}
        assert repr(views["stack"]).endswith(" {a = 1, b = 2, c = 3}")


def _damage(m: UnicornMachine, regs: Any) -> tuple[int, float, Any]:
    """Read what `it` points at with words of it overwritten: (how often it was read, CPU seconds, the last value)."""
    it, draw, seen = m.view("all", regs.arg(0)), random.Random(26), 0
    at, size = int(it), it._type.size
    before = bytes(m.read(at, size))
    begun = time.process_time()
    for words in [1, 4, 40, 400] * 15:
        data = bytearray(before)
        for _ in range(words):
            place = draw.randrange(size // 8) * 8
            word = draw.choice([0, 1, 255, 1 << 31, (1 << 64) - 1, at, at + place, at + draw.randrange(size), draw.getrandbits(64)])
            data[place:place + 8] = word.to_bytes(8, "little")
        m.write(at, bytes(data))
        seen += isinstance(whole(it), dict)
    m.write(at, before)
    return seen, time.process_time() - begun, whole(it)


def test_damaged_memory_neither_hangs_nor_raises(of_library: Path) -> None:
    program = of_library
    seen, seconds, found = at_hit(program, "look", _damage)
    assert seen == 60 and seconds < 60
    assert {name: found[name] for name in WANTED} == WANTED


RUST = """
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
pub struct Inner { pub a: i32, pub b: String }
pub enum Shape { Dot, Circle { r: f64 }, Rect(i32, i32) }
pub struct All<'a> {
    some: Option<i32>, none: Option<i32>, niche: Option<Box<i32>>, empty: Option<Box<i32>>, text: Option<String>,
    boxed: Box<i32>, rc: Rc<Inner>, arc: Arc<i32>, map: HashMap<i32, String>, set: HashSet<u64>, deque: VecDeque<i32>,
    slice: &'a [i32], word: &'a str, tuple: (i32, String), ok: Result<i32, String>, err: Result<i32, String>,
    cell: Cell<i32>, refcell: RefCell<i32>, vec: Vec<Option<u8>>, shape: Shape, dot: Shape, rect: Shape,
    list: Box<[i32]>, pairs: Vec<(i32, i32)>, sorted: BTreeMap<String, Vec<u8>>, many: BTreeMap<u16, u64>,
    nothing: BTreeMap<u8, u8>, ordered: BTreeSet<i64>, units: BTreeMap<u8, ()>,
}
#[inline(never)] #[no_mangle]
pub fn look(it: &All, rc: &Inner, arc: &i32) -> i32 { std::hint::black_box(it.tuple.0 + rc.a + *arc) }
fn main() {
    let numbers = vec![1, 2, 3, 4];
    let map = HashMap::from([(1, "one".to_string()), (2, "two".to_string())]);
    let mut deque = VecDeque::with_capacity(8);
    for n in 0..12 { deque.push_back(n); if n > 5 { deque.pop_front(); } }
    let all = All {
        some: Some(5), none: None, niche: Some(Box::new(6)), empty: None, text: Some("text".to_string()), boxed: Box::new(7),
        rc: Rc::new(Inner { a: 3, b: "rc".into() }), arc: Arc::new(8), map, set: HashSet::from([77]), deque,
        slice: &numbers[1..], word: "word", tuple: (9, "nine".into()), ok: Ok(10), err: Err("bad".into()), cell: Cell::new(11),
        refcell: RefCell::new(12), vec: vec![Some(1), None], shape: Shape::Circle { r: 1.5 }, dot: Shape::Dot,
        rect: Shape::Rect(3, 4), list: vec![5, 6].into_boxed_slice(), pairs: vec![(1, 2), (3, 4)],
        sorted: BTreeMap::from([("b".to_string(), vec![]), ("a".to_string(), vec![1, 2])]),
        many: (0..1000u64).map(|n| ((n * 7 % 1000) as u16, n)).collect(), nothing: BTreeMap::new(),
        ordered: (0..40).map(|n| -n).collect(), units: BTreeMap::from([(5, ())]),
    };
    println!("{}", look(&all, &all.rc, &all.arc));
}
"""


@pytest.mark.parametrize("level", ["0", "2"])
def test_values_of_rust(level: str, tmp_path: Path) -> None:
    """A map has its pairs as tuples; of Rc and Arc the address is the shared value's."""
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc")
    (tmp_path / "guest.rs").write_text(RUST)
    program = tmp_path / "guest"
    subprocess.run(["rustc", "-g", "-Cdebuginfo=2", f"-Copt-level={level}", "-Ctarget-feature=+crt-static", "--cap-lints=allow", "-o", program,
                    tmp_path / "guest.rs"], check=True)
    got, rc, arc = at_hit(program, "look", lambda m, regs: (whole(m.view("guest::All", regs.arg(0))), regs.arg(1), regs.arg(2)))
    assert (got["rc"], got["arc"]) == (rc, arc) and got["boxed"] and got["niche"]["Some"]
    assert dict(got["map"]) == {1: "one", 2: "two"}
    # of a list the first 200 are read
    many = [(n, next(k for k in range(1000) if k * 7 % 1000 == n)) for n in range(200)]
    assert [*got.pop("many")] == [*many, "..."]
    assert {name: value for name, value in got.items() if name not in ("rc", "arc", "boxed", "niche", "map")} == {
        "some": {"Some": 5}, "none": "None", "empty": "None", "text": {"Some": "text"}, "set": (77,),
        "deque": (6, 7, 8, 9, 10, 11), "slice": (2, 3, 4), "word": "word", "tuple": (9, "nine"), "ok": {"Ok": 10},
        "err": {"Err": "bad"}, "cell": 11, "refcell": {"borrow": 0, "value": 12}, "vec": ({"Some": 1}, "None"),
        "shape": {"Circle": {"r": 1.5}}, "dot": "Dot", "rect": {"Rect": (3, 4)}, "list": (5, 6), "pairs": ((1, 2), (3, 4)),
        "sorted": (("a", (1, 2)), ("b", ())), "nothing": (), "ordered": (*range(-39, 1),), "units": ((5, 0),)}


def test_of_a_slice_whose_pointer_is_not_kept_the_length_is_shown(tmp_path: Path) -> None:
    """LLVM drops a pointer that a function does not use. gdb says that the value has been optimized out."""
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc")
    (tmp_path / "guest.rs").write_text("""
        #[inline(never)] #[no_mangle] pub fn total(s: &str, v: &[i32]) -> usize { std::hint::black_box(s.len() * 3 + v.len()) }
        #[inline(never)] #[no_mangle] pub fn first(s: &str) -> u8 { std::hint::black_box(s.as_bytes()[0]) }
        fn main() { println!("{}", total("abc", &[1, 2]) + first("xy") as usize); }""")
    program = tmp_path / "guest"
    subprocess.run(["rustc", "-g", "-O", "-Ctarget-feature=+crt-static", "-o", program, tmp_path / "guest.rs"], check=True)
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        part, all = k.event("p total s v n=s.length d=s.data_ptr"), k.event("p first s")
        m.call("total", 0, 3, 0, 2)
        address = m.symbols["main"].address
        m.call("first", address, 1)
        text = chr(m.read(address, 1)[0])
    assert next(iter(part)).args == {"s": {"data_ptr": "(not kept)", "length": 3}, "v": {"data_ptr": "(not kept)", "length": 2},
                                     "n": 3, "d": None}
    assert str(next(iter(part))) and len(next(iter(all)).args["s"]) >= len(text) > 0


def test_slices_of_texts_are_no_texts(tmp_path: Path) -> None:
    """"str" is in the names of `&[alloc::string::String]` and `&[&str]`, too."""
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc")
    (tmp_path / "slices.rs").write_text("""
        #[inline(never)] #[no_mangle] pub fn total(s: &str, v: &[String], w: &[&str]) -> usize {
            std::hint::black_box(s.len() + v.len() + w.len()) }
        fn main() { println!("{}", total("x", &[String::from("ab")], &["y"])); }""")
    program = tmp_path / "slices"
    subprocess.run(["rustc", "-g", "-Ctarget-feature=+crt-static", "-o", program, tmp_path / "slices.rs"], check=True)
    with UnicornMachine.load(program) as m:
        parameters = m.debug.parameters(m.symbols["total"].address)
        assert parameters is not None
        assert [(one.name, is_text(one.type)) for one in parameters] == [("s", True), ("v", False), ("w", False)]


def test_views_show_values_of_libraries(program: Path) -> None:
    """Their members are still those that the type has."""
    names = ("some", "none", "text", "large", "word", "null", "map", "deque", "tuple", "options", "bits", "nothing")
    shown, value = at_hit(program, "look", lambda m, regs: (
        {name: repr(m.view("all", regs.arg(0))[name]).partition("0x")[2].partition(" ")[2] for name in names},
        m.view("all", regs.arg(0)).some._M_payload._M_payload._M_value))
    assert value == 5
    assert shown == {"some": "5", "none": "(empty)", "text": '"text"', "large": '{a = -7, name = "seven"}', "word": '"word"',
                     "null": "0x0", "map": "{" + ", ".join(f'{{first = {n}, second = "{WORDS[n]}"}}' for n in range(5)) + "}",
                     "deque": "{" + ", ".join(map(str, range(150, 166))) + ", ...}", "tuple": "{1, {first = 99, second = 1.5}}",
                     "options": "{1, (empty), 3}", "bits": "{True, False, True}", "nothing": "{}"}
