"""Values at entries and returns of compiled C and C++ whose types calls treat specially: what the program has."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kprobes import EventError, Kprobes, UnicornMachine

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
union both { long double x; long l; };
#define NI __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("")
volatile int sink;
NI struct extended extended(struct extended a, struct whole b) { KEEP; sink = b.v; return a; }
NI union both both(int k) { KEEP; union both u = { .l = k }; sink = k; return u; }
NI v4f sum(int k, v4f a, v8s b, v2i c) { KEEP; sink = k; return a + a; }
NI v2i pair(v2i a) { KEEP; return a; }
NI struct vector held(struct vector a, double d) { KEEP; sink = d; return a; }
NI v8i wide(int k, v8i a) { KEEP; return a; }
int main(void)
{
  v4f a = { 1, 2, 3, 4 };
  extended((struct extended){ 1.75L }, (struct whole){ -4 });
  both(7);
  sum(9, a, (v8s){ -1, 2, -3, 4, 5, 6, 7, 8 }, (v2i){ 10, -20 });
  pair((v2i){ 5, 6 });
  held((struct vector){ a }, 2.5);
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_x87_and_vectors_in_calls_of_x86_64(level: str, tmp_path: Path) -> None:
    """A structure of one long double is returned in st(0), a vector of 8 or 16 bytes in xmm0."""
    program = built(SPECIAL, tmp_path, level)
    known = level == "-O0"  # optimized code of gcc does not keep all parameters
    entered = "p extended a.x b", "p both k", "p sum k a b c", "p pair a", "p held a d"
    returned = tuple(f"r {name} $retval" for name in ("extended", "both", "sum", "pair", "held"))
    got = args_of(program, *(entered if known else ()), *returned)
    if known:
        assert got[0] == {"x": 1.75, "b": {"v": -4}}
        assert got[1] == {"k": 7}
        assert got[2] == {"k": 9, "a": (1, 2, 3, 4), "b": (-1, 2, -3, 4, 5, 6, 7, 8), "c": (10, -20)}
        assert got[3] == {"a": (5, 6)}
        assert got[4] == {"a": {"a": (1, 2, 3, 4)}, "d": 2.5}
    results = [next(iter(each.values())) for each in got[-5:]]
    assert results[0] == {"x": 1.75} and results[1]["l"] == 7
    assert results[2:] == [(2, 4, 6, 8), (5, 6), {"a": (1, 2, 3, 4)}]
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
