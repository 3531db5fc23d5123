"""Places as source code has them: lines, labels, patterns, inlined copies, names in quotes; on every architecture."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner
from elftools.dwarf.die import DIE

from kprobes import Coverage, EventError, Kprobes, UnicornMachine, UnknownSymbol, native
from kprobes.cli import main
from kprobes.debug.file import FileDwarf, all_of
from kprobes.debug.lines import path_in
from kprobes.debug.quick import LineScanner, PlaceScanner
from kprobes.debug.sources import line_places, lines_near, units_of_source
from kprobes.debug.units import Units

DATA = Path(__file__).resolve().parents[1] / "data"
with tarfile.open(DATA / "debug.tar.xz") as archive:
    FILES = {member.name.removesuffix(".elf"): archive.extractfile(member).read()  # type: ignore[union-attr]
             for member in archive.getmembers() if member.name.endswith(".elf")}
SOURCE = """
namespace geo { struct N { int x; long y; };
static inline __attribute__((always_inline)) int twice(int q) { int r = q * 2; __asm__ volatile("" :: "r"(r)); return r; }
template <typename T, int K> __attribute__((noinline)) T scaled(T value, N n) { return value * K + n.x; }
__attribute__((noinline)) int plain(int k) { return twice(k) + 1; } }
extern "C" __attribute__((noinline, used)) int weigh(int n) {
  int total = geo::twice(n);
  if (n > 3) goto heavy;
  total += geo::plain(n);
heavy:
  __asm__ volatile("" ::: "memory");
  total += geo::scaled<int, 3>(n, geo::N{1, 2});
  return total;
}
extern "C" void _start() {}
"""

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", FILES)
def test_lines(name: str) -> None:
    """FILE:LINE and FUNCTION:LINE are hit, and variables are those of the place."""
    with UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None) as m:
        start = m.symbols["table_insert"].address
        path, first = m.debug.source_of(start)
        lines = sorted({line.line for line in m.debug.lines(start, start + m.symbols["table_insert"].size)
                        if line.path == path and line.line > first})
        with Kprobes(m) as k:
            by_file = k.event(f"p:a {path.rpartition('/')[2]}:{lines[0]}")
            by_function = k.event(f"p:b table_insert:{lines[0] - first}")
            assert {p.definition.address for p in by_function.places} <= {p.definition.address for p in by_file.places}
            m.call("outer", 1)
            assert by_file.hits and by_function.hits
            with pytest.raises(EventError, match="no code is of this line; there is code at line"):
                k.event(f"p debug.c:{first - 1}")
            with pytest.raises(EventError, match="no code at its line"):
                k.event("p table_insert:900")


def names(units: Units, n: int) -> set[bytes]:
    """The names of the source files that a unit's table of lines has."""
    program = units.info.line_program_for_CU(units.unit(n))
    return set() if program is None else {entry.name.rpartition(b"/")[2] for entry in program["file_entry"]}


@pytest.mark.parametrize("name", FILES)
def test_units_that_name_a_file(name: str) -> None:
    """Files are found in units without decoding their tables, wherever DWARF keeps their names."""
    with UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None) as m:
        units = Units(m.symbols.files[0])
        for wanted in {each for n in range(len(units.headers)) for each in names(units, n)} | {b"c", b"ebug.c", b""}:
            found = [n for n in range(len(units.headers)) if wanted in names(units, n)]
            assert [*units.units_naming(wanted)] == found


@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5", "-gdwarf64"])
def test_only_tables_that_have_the_name_are_decoded(dwarf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5 units, the one that a source file is in has its header of lines decoded: 20 us for each file of it."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no compiler of C")
    for n in range(5):
        (tmp_path / f"a{n}.c").write_text(f"int f{n}(int a) {{\n  return a + {n};\n}}\n")
    command = ["gcc", "-g", dwarf, "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-Wl,-e,f0", "-o", "a"]
    subprocess.run([*command, *(f"a{n}.c" for n in range(5))], cwd=tmp_path, check=True)
    asked = []
    read = FileDwarf.line_program_for_CU
    monkeypatch.setattr(FileDwarf, "line_program_for_CU", lambda self, unit: asked.append(unit.cu_offset) or read(self, unit))
    monkeypatch.setattr("kprobes.debug.units.line_scanner", lambda *given: None)  # C decodes none
    with UnicornMachine.load(tmp_path / "a") as m:
        assert [place.function for place in m.debug.at_line("a3.c", 2)] == ["f3"]
    assert len(set(asked)) == 1


def test_folders_of_files_of_one_name(tmp_path: Path) -> None:
    """A path's folders count, too, as for at_line()."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no compiler of C")
    for name in ("a", "b"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / f"of_{name}").mkdir()
        (tmp_path / name / "src" / f"of_{name}" / "x.c").write_text(f"int f{name}(int a) {{\n  return a + 1;\n}}\n")
        subprocess.run(["gcc", "-g", "-c", "-ffreestanding", f"src/of_{name}/x.c", "-o", f"../{name}.o"],
                       cwd=tmp_path / name, check=True)
    subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-Wl,-e,fa", "-o", "x", "a.o", "b.o"], cwd=tmp_path, check=True)
    with UnicornMachine.load(tmp_path / "x") as m:
        folders = {path: sorted(m.debug.source_folders(path))
                   for path in ("x.c", "of_a/x.c", "src/of_b/x.c", "of_c/x.c", "_a/x.c")}
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert folders == {"x.c": [a, b], "of_a/x.c": [a], "src/of_b/x.c": [b], "of_c/x.c": [], "_a/x.c": []}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("there is no compiler of C++")
    folder = tmp_path_factory.mktemp("places")
    (folder / "shop.cc").write_text(SOURCE)
    subprocess.run(["g++", "-g", "-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-exceptions", "shop.cc", "-o",
                    "shop"], cwd=folder, check=True)
    return folder / "shop"


def hits(program: Path, text: str) -> tuple[int, int]:
    """(places, hits) of an event while weigh(1) and weigh(9) are called."""
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        e = k.event(text)
        m.call("weigh", 1)
        m.call("weigh", 9)
        return len(e.places), e.hits


@pytest.mark.parametrize(("text", "places", "count"), [
    ("p shop.cc:9", 1, 1), ("p weigh:3 n", 1, 1), ("p twice", 2, 3), ("p twice%inlined", 2, 3), ("p geo::twice", 2, 3),
    ("p geo::twice%inlined", 2, 3), ("p geo::scaled", 1, 2), ("p weigh:heavy", 1, 2),
    ("p weigh;total+=geo::scaled*", 1, 2), ("p shop.cc;*scaled<int,3>*", 1, 2), ("p 'geo::scaled<int, 3>(int, geo::N)'", 1, 2),
    ('p "int geo::scaled<int, 3>(int, geo::N)"', 1, 2), ("p geo::*", 2, 3), ("r 'geo::plain(int)' $retval:s32", 1, 1),
    ("p 'geo::pl*' k", 1, 1), ("p 'weigh;total += geo::scaled*' n", 1, 2), ("p 'geo::plain:0' k", 1, 1)])
def test_places_of_cpp(program: Path, text: str, places: int, count: int) -> None:
    assert hits(program, text) == (places, count)


def test_a_line_is_its_first_statement_and_a_pattern_all(tmp_path: Path) -> None:
    """So a variable of a block that begins later in the line is one of the pattern's places alone, as docs/events.md says."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no compiler of C")
    source = "int work(int n) {\n n += 5; for (int i = 0; i < 3; i++) { n += i; }\n return n; }\nvoid _start(void) { work(1); }\n"
    (tmp_path / "one.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O0", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "one.c", "-o", "one"],
                   cwd=tmp_path, check=True)
    with UnicornMachine.load(tmp_path / "one") as m, Kprobes(m) as k:
        with pytest.raises(EventError, match="no parameter or variable 'i' here"):
            k.event("p one.c:2 i")
        line, pattern = k.event("p:line one.c:2 n"), k.event("p:pattern 'one.c;*n += i*' i")
        m.call("work", 1)
        assert (len(line.places), line.hits) == (1, 1)
        assert len(pattern.places) > 1 and {record.args["i"] for record in pattern} >= {0, 1, 2}
        assert {name for name, why in pattern.skipped if "variable 'i'" in why}


COPIES = """
#define MIX(x) __asm__ volatile("" : "+r"(x))
#define INLINE __attribute__((always_inline))
namespace geo {
struct Box { int w; INLINE int twice(int q) const { MIX(q); q *= 2; MIX(q); return q + w; } };
template <typename T> struct Pair { T a; INLINE T sum(T b) const { MIX(b); b += a; MIX(b); return b; } };
template <typename T> static inline INLINE T lower(T n) { MIX(n); n -= 3; return n; }
static inline INLINE int operator<<(Box b, int n) { MIX(n); n += b.w; MIX(n); return n; }
inline __attribute__((noinline)) int kept_once(int n) { Box b{n}; n = b.twice(n); MORE; return b.twice(n); }
}
static inline INLINE int twice(int q) { MIX(q); q *= 2; MIX(q); return q; }
extern "C" __attribute__((noinline, used)) int NAME(int n) {
  geo::Box b{n}; geo::Pair<int> p{n};
  n = b.twice(n); n = twice(n); n = p.sum(n); n = b << n; n = geo::lower<int>(n) + geo::lower<char>(n);
  return geo::kept_once(n);
}
"""


@pytest.fixture(scope="module", params=["-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -flto", "-g -gdwarf64", "-gdwarf-5 -gz"])
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of two units. Both define kept_once, and the linker keeps one of them."""
    if shutil.which("g++") is None:
        pytest.skip("there is no compiler of C++")
    folder = tmp_path_factory.mktemp("copies")
    for name in ("first", "second"):
        more = "MIX(n)" if name == "first" else "n /= 3"  # were both of one size, entries of both were of the one that is kept
        (folder / f"{name}.cc").write_text(COPIES.replace("NAME", name).replace("MORE", more))
    subprocess.run(["g++", *request.param.split(), "-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-exceptions",
                    "-Wl,-e,first", "first.cc", "second.cc", "-o", "copied"], cwd=folder, check=True)
    return folder / "copied"


@pytest.mark.parametrize(("name", "places"), [
    ("twice", {"first": 2, "second": 2, "kept_once": 2}), ("geo::Box::twice", {"first": 1, "second": 1, "kept_once": 2}),
    ("Box::twice", {"first": 1, "second": 1, "kept_once": 2}), ("ox::twice", {}), ("sum", {"first": 1, "second": 1}),
    ("geo::Pair<int>::sum", {"first": 1, "second": 1}), ("geo::Pair<long>::sum", {}), ("operator<<", {"first": 1, "second": 1}),
    ("geo::operator<<", {"first": 1, "second": 1}), ("none", {}), ("geo::lower", {"first": 2, "second": 2}),
    ("geo::lower<int>", {"first": 1, "second": 1}), ("lower<char>", {"first": 1, "second": 1}), ("low", {}),
    ("operator", {})])
def test_copies_of_host_code_are_pythons(copied: Path, name: str, places: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are found in all units, and none in a function that the linker has thrown away."""
    for without in (False, True):
        if without:
            monkeypatch.setattr("kprobes.debug.units.copy_scanner", lambda sections, name: None)
        with UnicornMachine.load(copied) as m:
            found = m.debug.copies(name)
            assert {each: sum(place.function == each for place in found) for each in places} == places
            assert len(found) == sum(places.values()) == len({place.address for place in found})
            assert all(m.symbols.covering(place.address) is not None for place in found)
            if places:
                assert len(Kprobes(m).event(f"p '{name}%inlined'").places) == len(found)


SPLIT = """
volatile int sink;
struct P { int a, b; };
static NOINLINE int whole(int a, int b, int c) { sink = a; for (int i = 0; i < b; i++) sink += c; return sink + a; }
static int rare(int n) { if (__builtin_expect(n > 1000, 0)) { sink = n; sink++; __builtin_trap(); } return n * 2; }
static int both(struct P *p, int k) {
  if (p->a > 10) { for (int i = 0; i < 40; i++) { sink += i * k; sink ^= p->b; sink += 3 * i; sink -= i; } return sink; }
  return p->a + k; }
int first(struct P *p) { return both(p, 3) + whole(1, p->a, 7) + rare(p->a); }
int second(struct P *p) { return both(p, 4) + whole(2, p->b, 7) + rare(p->b * 3) + rare(sink); }
int main(int argc, char **argv) { struct P p = {argc, 2}; return first(&p) + second(&p); }
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not here")
@pytest.mark.parametrize("compiler", ["gcc -O2", "gcc -O3", "g++ -O2", "zig -O2"])
def test_a_name_means_all_copies_as_gdbs_break(compiler: str, tmp_path: Path) -> None:
    """Of rare(), GCC inlines the beginning and keeps the rest as rare.part.0; of whole() a copy is left, whole.constprop.0."""
    name, level = compiler.split()
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl"]
    if name != "zig" and shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    (tmp_path / "split.c").write_text(SPLIT)
    subprocess.run([*(zig if name == "zig" else [name]), "-DNOINLINE=__attribute__((noinline))", "-g", level, "-static",
                    *(() if name == "zig" else ("-fno-ipa-icf",)), "split.c", "-o", "split"], cwd=tmp_path, check=True,
                   capture_output=True)
    kinds = set()
    for function in ("whole", "rare", "both"):
        told = subprocess.run(["gdb", "-nx", "-q", "-batch", "-ex", f"break {function}", "-ex", "info breakpoints", "split"],
                              cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        wanted = re.findall(r"^[\d.]+ .* y +(0x[0-9a-f]+)", told, re.MULTILINE)
        with UnicornMachine.load(tmp_path / "split") as m, Kprobes(m) as k:
            places = k.event(f"p {function}").places
            if function == "rare" and name != "zig":  # a part returns for some of the calls only
                for text in ("r rare $retval", "f rare%return"):
                    with pytest.raises(EventError, match="inlined code has no return"):
                        k.event(text)
            assert wanted and len(places) == len(wanted), (function, told, places)
            names = [m.symbols.describe(place.definition.address) for place in places]
            kinds |= {each.partition("+")[0].partition(".")[2] for each in names}
    assert name == "zig" or kinds >= {"", "part.0", "constprop.0"}


def test_copies_are_found_without_reading_entries(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyelftools takes 20 us an entry; of a big program's millions those of functions that have copies are read."""
    if not native.available():
        pytest.skip("there is no host code")
    read = []
    parse = DIE.__init__
    monkeypatch.setattr(DIE, "__init__", lambda self, *given, **named: read.append(self) or parse(self, *given, **named))
    with UnicornMachine.load(copied) as m:
        assert m.debug.copies("nothing") == []
        assert len(read) <= 2 * len(Units(m.symbols.files[0]).headers)
        assert m.debug.copies("twice")
        assert len(read) < 60


def places_of_lines(m: UnicornMachine) -> list[Any]:
    """All places of all lines of all source files, by number of the file's unit and by line; and the lines beside them."""
    found: list[Any] = []
    for units in (Units(file) for file in m.symbols.files):
        paths = {path_in(program, entry, int(program["version"] < 5))
                 for n in range(len(units.headers)) if (program := units.info.line_program_for_CU(units.unit(n))) is not None
                 for entry in program["file_entry"]}
        for wanted in sorted({part for path in paths for part in (path, path.rpartition("/")[2], f"/{path}", path[1:], "")}):
            numbers = {code.line for _, some in units.lines_of(wanted) for code in some}
            found += [(wanted, number, line_places(units, wanted, number)) for number in sorted(numbers)]
            found.append((wanted, [*units_of_source(units, wanted)], lines_near(units, wanted, 1)))
    assert any(places for *_, places in found)
    return found


def assert_as_python(path: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """The places that C finds are those that Python finds."""
    with UnicornMachine.load(path, **more) as m:
        quick = places_of_lines(m)
    with monkeypatch.context() as patch:
        for name in "line_scanner", "place_scanner", "quick_scanner":
            patch.setattr(f"kprobes.debug.units.{name}", lambda *given: None)
        with UnicornMachine.load(path, **more) as m:
            assert places_of_lines(m) == quick


def test_places_of_lines_of_host_code_are_pythons(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_python(copied, monkeypatch)


@pytest.mark.parametrize("name", FILES)
def test_places_of_lines_of_all_architectures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_python(FILES[name], monkeypatch, name=name, arch="cortexm" if name.startswith("cortexm") else None)


def test_places_of_lines_are_found_without_reading_entries(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a header of C++ is in thousands of functions, whose entries pyelftools would read for half a minute."""
    if not native.available():
        pytest.skip("there is no host code")
    read = []
    parse = DIE.__init__
    monkeypatch.setattr(DIE, "__init__", lambda self, *given, **named: read.append(self) or parse(self, *given, **named))
    with UnicornMachine.load(copied) as m:
        line = 1 + next(n for n, text in enumerate(COPIES.splitlines()) if "int twice" in text and "static" in text)
        places = m.debug.at_line("first.cc", line)
        # the last statement has no code of its own, and begins where the next function's first one does: gdb stops there, too
        assert {("first", "twice")} <= {(place.function, place.inlined) for place in places} <= {("first", "twice"), ("first", "sum")}
        # with -flto names are in another unit
        assert len(read) <= 2 * len(Units(m.symbols.files[0]).headers) + 3


def test_damaged_lines_and_ranges(copied: Path) -> None:
    """Nothing outside the sections is read, and no place is outside the code that is asked for."""
    if not native.available():
        pytest.skip("there is no host code")
    rng = random.Random(26)
    with UnicornMachine.load(copied) as m:
        units = Units(m.symbols.files[0])
    codes = [code for _, some in units.lines_of("first.cc") for code in some]
    wanted = sorted({(piece[0], code.start) for code in codes if (piece := units._piece_at(0, code.start, False)) is not None})
    kept = {name: bytes(all_of(getattr(units._sections, name))) for name in ("info", "abbrev", "ranges", "range_lists", "lines")}
    found = 0
    for name, data in kept.items():
        for _ in range(300 if data else 0):
            damaged = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 0xFF, 0x7F, rng.randrange(256)))
            sections = evolve(units._sections, **{**kept, name: bytes(damaged)})
            places = PlaceScanner(sections, lambda offset: f"at {offset}").scan(units.headers[0], (b"", b""), wanted)
            assert {*places} <= {address for _, address in wanted}
            lines = LineScanner(sections, "first.cc", 0).scan(units.headers[0], (b"", b""))
            found += bool(lines) + bool(places)
    assert found > 300


def test_lines_of_functions_that_are_thrown_away_are_no_places(copied: Path) -> None:
    with UnicornMachine.load(copied) as m:
        line = 1 + next(n for n, text in enumerate(COPIES.splitlines()) if "kept_once" in text)
        found = m.debug.at_line("first.cc", line)
        assert {place.function for place in found} == {"kept_once"}
        assert all(m.symbols.covering(place.address) is not None for place in found)
        with pytest.raises(UnknownSymbol, match="no code is of this line"):
            m.debug.at_line("second.cc", line)
        assert m.debug.function(0) is None and m.debug.line(0) is None


def test_globs_of_names_as_people_write_them(program: Path) -> None:
    """All commands and functions that take a glob of functions."""
    for command in (["list", str(program), "geo::*"], ["list", str(program), "geo::scaled<int, *"],
                    ["symbols", str(program), "geo::*"], ["symbols", str(program), "geo::*", "--format", "map"]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0 and "_ZN3geo6scaledIiLi3EEET_S1_NS_1NE" in done.stdout, done.output
        assert ("_ZN3geo5plainEi" in done.stdout) is ("<" not in command[2]) and "weigh" not in done.stdout
    with UnicornMachine.load(program) as m, Kprobes(m) as k, k.graph("weigh", "geo::pl*") as tree:
        m.call("weigh", 1)
    assert [call.name for call in tree] == ["weigh", "_ZN3geo5plainEi"]
    with UnicornMachine.load(program) as m, Coverage(m, functions="geo::pl*") as cover:
        m.call("weigh", 1)
    assert [m.symbols.at(block.address)[0].name for block in cover.blocks] == ["_ZN3geo5plainEi"]


@pytest.mark.parametrize("place", ["weigh;total+=*", "shop.cc;total += *", "shop.cc;*total*"])
def test_list_has_the_statements_of_lines_that_a_glob_fits(place: str, program: Path) -> None:
    """They are where an event of the same place is; numbers count as those of FUNCTION:* and FILE:* do."""
    listed = CliRunner().invoke(main, ["list", "--json", str(program), place])
    assert listed.exit_code == 0, listed.output
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        event = k.event(f"p '{place}'")
        assert [row["address"] for row in rows] == [probed.definition.address for probed in event.places]
    text = SOURCE.splitlines()
    opening = next(n for n, line in enumerate(text, 1) if "weigh(" in line and line.rstrip().endswith("{"))
    first = opening if place.startswith("weigh") else 0
    assert rows and all(row["n"] == row["line"] - first and row["source"] == text[row["line"] - 1] for row in rows)
    assert all("total" in row["source"] for row in rows)


@pytest.mark.parametrize(("place", "why"), [
    ("shop.cc;nothing", "no line of shop.cc with code fits 'nothing'"), ("shop.cc", "is a source file, no function; 'shop.cc:.' has"),
    ("other.cc;total*", "no source file of the guest is called other.cc"), ("weigh;nothing", "no line of weigh with code fits"),
    (";total*", "no function or source file is named before ';'")])
def test_list_says_why_no_line_fits(place: str, why: str, program: Path) -> None:
    done = CliRunner().invoke(main, ["list", str(program), place])
    assert done.exit_code == 2 and re.search(why, done.stderr), done.output


def test_variables_of_inlined_functions(program: Path) -> None:
    """A place in an inlined copy has the copy's variables and those around."""
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        e = k.event("p:t twice q:s32")
        m.call("weigh", 5)
        assert [r.args["q"] for r in e] == [5]


@pytest.mark.parametrize(("text", "why"), [
    ("p weigh:nothing", "has no label nothing; it has heavy"), ("p weigh%inlined", "stands inlined nowhere"),
    ("p eo::twice%inlined", "stands inlined nowhere"), ("weigh", "(?m)write p weigh$"), ("geo::plain k", "(?m)write p geo::plain$"),
    ("q:x weigh", "(?m)write p:x SYMBOL$"), ("p:weigh", "(?m)missing; write p weigh$"), ("p weigh $params", "write [$]arg"),
    ("p 'geo::none()'", "no function is called"), ("p shop.cc:900", "there is code at line"),
    ("p weigh;nowhere*", "no line of weigh")])
def test_refused_places(program: Path, text: str, why: str) -> None:
    with UnicornMachine.load(program) as m, Kprobes(m) as k, pytest.raises(EventError, match=why):
        k.event(text)


def test_an_array_of_floats_in_a_body(tmp_path: Path) -> None:
    """A local array is shown whole, of whatever numbers it is."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no compiler of C")
    (tmp_path / "a.c").write_text("int sink;\n__attribute__((noinline)) float f(int n) {\n  float x[3] = {n, 2.5f, 3.5f};\n"
                                  '  __asm__ volatile("" :: "r"(x) : "memory");\n  sink = n;\n  return x[0] + x[1];\n}\n'
                                  "void _start(void) { f(3); for (;;); }\n")
    subprocess.run(["gcc", "-g", "-O1", "-nostdlib", "-static", "-no-pie", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    with UnicornMachine.load(tmp_path / "a") as m, Kprobes(m) as k:
        event = k.event("p f:3 x x[1]")
        m.call("f", 3)
        assert [tuple(record.args.values()) for record in event] == [((3.0, 2.5, 3.5), 2.5)]
