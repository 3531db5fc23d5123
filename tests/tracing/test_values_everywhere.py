"""Values that are easily read wrong, on every architecture: values.c's builds. What is shown is true, the rest is refused."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import tarfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from elftools.dwarf.abbrevtable import AbbrevTable
from elftools.dwarf.structs import DWARFStructs
from host import why_python

from kprobes import (
    BadArgument,
    EventError,
    Kprobe,
    Kprobes,
    Kretprobe,
    Trace,
    UnicornMachine,
    keep_arguments,
    native,
)
from kprobes import arch as arch_module
from kprobes.debug import cache as cache_module
from kprobes.debug import file as file_module
from kprobes.debug.abbreviations import AbbreviationTable
from kprobes.debug.convention import call_rules, result_parts
from kprobes.debug.file import contents, dwarf
from kprobes.debug.lines import _lines, line_table
from kprobes.debug.placing import NotKnown
from kprobes.debug.quick import CopyScanner, QuickScanner, ScopeNames, quick_ranges
from kprobes.debug.scan import AddressRanges, UnitScanner, aranges
from kprobes.debug.section import SectionWindow
from kprobes.debug.units import Units, _address, _text
from kprobes.events import parse_event

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "values.tar.xz"
with tarfile.open(ARCHIVE) as archive:
    FILES = {member.name.removesuffix(".elf"): archive.extractfile(member).read()  # type: ignore[union-attr]
             for member in archive.getmembers()}

pytestmark = pytest.mark.quick


def load(name: str) -> UnicornMachine:
    return UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None)


@pytest.mark.parametrize("name", FILES)
def test_members(name: str) -> None:
    with load(name) as m:
        it = m.view("struct item *", m.symbols["the_item"].address)
        assert (it.level, it.mood, it.rest, it.fl, it.next, it.wide) == (-3, -3, 33, 1.5, 2.5, -0.25)
        assert [(p.x, p.y) for p in it.pts] == [(1, 2), (3, 4), (5, 6)] and (it.at.x, it.at.y) == (7, -8)
        assert [[*row] for row in it.rows] == [[1, 2, 3], [4, 5, -6]] and str(it.name) == "abcd" and len(it.many) == 70
        tight = it.tight
        assert (tight.first, tight.a, tight.b, tight.c) == (1, -4000, 100000000, -500000)
        tight.a, tight.c, it.level = 77, 3, 2
        assert (tight.first, tight.a, tight.b, tight.c, it.level, it.mood, it.rest) == (1, 77, 100000000, 3, 2, -3, 33)


@pytest.mark.parametrize("name", ["x86_64-5", "s390x-5"])
def test_floating_point_members_take_only_what_fits(name: str) -> None:
    """And a view is no number: its address is not written."""
    with load(name) as m:
        it = m.view("struct item *", m.symbols["the_item"].address)
        before = bytes(it)
        wrong = [("fl", "x"), ("wide", None), ("fl", 1e300), ("wide", 10**400), ("wide", 1j), ("fl", it.at)]
        for member, value in wrong:
            with pytest.raises(BadArgument, match=r"cannot be written as (float|double)"):
                setattr(it, member, value)
        assert bytes(it) == before
        it.fl, it.wide = 2, float("inf")
        assert (it.fl, it.wide) == (2.0, float("inf"))


@pytest.mark.parametrize("name", FILES)
def test_parameters(name: str) -> None:
    """Each is the one that was passed, or None."""
    seen: dict[str, Any] = {}
    truth = {"make": {"a": 2, "b": 3}, "few": {"a": 4, "b": 5}, "nothing": {"a": 6, "f": 1.5, "b": 7},
             "half": {"d": 2.5, "n": 1}, "look": {"small": -7, "wide": -4999999999}}
    with load(name) as m, Kprobes(m) as k:
        for function in truth:
            k.register(Kprobe(symbol_name=function, pre_handler=lambda p, regs, function=function: seen.__setitem__(
                function, m.debug.locals(regs))))
        kept: dict[str, Any] = {}
        k.register(Kretprobe(symbol_name="make", entry_handler=keep_arguments,
                             handler=lambda ri, regs: kept.update(ri.args.values)))
        m.call("outer", 1)
    for function, passed in truth.items():
        for parameter, value in passed.items():
            assert seen[function].get(parameter) in (value, None), (function, parameter)
    assert all(kept[parameter] in (value, None) for parameter, value in truth["make"].items())
    assert seen["look"]["small"] == -7 and seen["nothing"]["a"] == 6


@pytest.mark.parametrize("name", FILES)
def test_events(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        e = k.event("p look it->level it->mood it->rest it->at.y it->name behind=it->behind ta=it->tight.a "
                    "tb=it->tight.b tc=it->tight.c small it->fl it->next it->wide as8=it->level:u8 as32=it->mood:s32")
        assert name[:6] != "x86_64" or not why_python(e)
        m.call("outer", 1)
        (record,) = e
        assert dict(record.args) == {
            "level": -3, "mood": -3, "rest": 33, "y": -8, "name": "abcd", "behind": 0x65666768, "ta": -4000,
            "tb": 100000000, "tc": -500000, "small": -7, "fl": 1.5, "next": 2.5, "wide": -0.25,
            "as8": -3 & 31, "as32": -3}


@pytest.mark.parametrize("name", FILES)
def test_values_as_a_whole(name: str, tmp_path: Path) -> None:
    """Structures, arrays of them and of arrays, more elements than Linux shows, globals; nested in Arrow."""
    with load(name) as m, Kprobes(m) as k:
        with k.trace("p:whole look it->pts it->at it->rows it->many it->tight the_item.at.x sink", "p:f look it->fl") as t:
            m.call("outer", 1)
        seen = {record.event: dict(record.args) for record in t}
        whole = seen["whole"]
        many = (9, 8, *(0,) * 68)
        assert whole == {
            "pts": ({"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}), "at": {"x": 7, "y": -8},
            "rows": ((1, 2, 3), (4, 5, -6)), "many": many, "x": 7, "sink": 1,
            "tight": {"first": 1, "a": -4000, "b": 100000000, "c": -500000}}
        t.save(tmp_path / "whole.arrow")
        assert seen["f"] == {"fl": 1.5}
        assert {r.event: dict(r.args) for r in Trace.load(tmp_path / "whole.arrow")} == seen
        t.export(tmp_path / "whole.txt", "ftrace")
        assert " at={x=7,y=-8} rows={{1,2,3},{4,5,-6}} " in (tmp_path / "whole.txt").read_text()
        for format in ("jsonl", "csv", "chrome"):
            t.export(tmp_path / "out", format)


@pytest.mark.parametrize("name", FILES)
def test_elements(name: str) -> None:
    """Elements of arrays, of rows, and behind a pointer; indices that lead out are refused."""
    with load(name) as m, Kprobes(m) as k:
        e = k.event("p look it->pts[1].y it->pts[2] x=it[0].pts[0].x it->rows[1] last=it->rows[0x1][2] one=it->many[1] "
                    "the_item.pts[2].x letter=it->name[1] as8=it->rows[1][2]:x8")
        for index, reason in (("pts[3].y", "3 elements"), ("rows[1][3]", "3 elements"), ("rest[0]", "no elements"),
                              ("pts[n].y", "an index is a number"), ("pts[-1]", "an index is a number")):
            with pytest.raises(EventError, match=reason) as error:
                k.event(f"p look it->{index}")
            assert error.value.kind == "NOSUP_DAT_ARG"
        with pytest.raises(EventError) as error:
            k.event("p look it->pts[1")
        assert error.value.kind == "BAD_FETCH_ARG"
        m.call("outer", 1)
        (record,) = e
    assert dict(record.args) == {
        "y": 4, "pts": {"x": 5, "y": 6}, "x": 1, "rows": (4, 5, -6), "last": -6, "one": 8, "arg7": 5, "letter": 98,
        "as8": 0xFA if m.arch.order.value == "little" else 0xFF}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("text", "value"), [
    ("r half $retval", 2.5), ("r make $retval", {"words": (2, 3, -3, 0, 0, 0)}),
    ("r few $retval.only", 9)])
def test_results(name: str, text: str, value: Any) -> None:
    """What functions return: as it is, or refused with a reason."""
    with load(name) as m, Kprobes(m) as k:
        try:
            e = k.event(text)
        except EventError as error:
            assert not name.startswith(("x86_64", "arm64-"))
            assert error.kind == "NOSUP_DAT_ARG"
            return
        m.call("outer", 1)
        assert [tuple(r.args.values()) for r in e] == [(value,)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fetches", ["b one=$arg1", "one=$arg1 b a", "two=$arg2 a b", "b a one=$arg1 two=$arg2"])
def test_named_and_numbered_arguments_are_kept_apart(name: str, fetches: str) -> None:
    """A return event records of each what the entry had, whoever records: a machine does by number."""
    with load(name) as m, Kprobes(m) as k:
        try:
            parse_event(f"r few {fetches}", m)
        except EventError as error:
            assert error.kind in ("NOSUP_DAT_ARG", "BAD_VAR")
            return
        entry, back = k.event(f"p few {fetches}"), k.event(f"r few {fetches}")
        with k.trace(f"r few {fetches}") as t:
            m.call("outer", 1)
        wanted = [record.args for record in entry]
        assert wanted and [record.args for record in back] == [record.args for record in t] == wanted


@pytest.mark.parametrize("name", FILES)
def test_a_type_that_the_return_register_does_not_fit(name: str) -> None:
    """A floating-point number is where the calling convention says; what no register has is refused."""
    with load(name) as m, Kprobes(m) as k:
        for text in ("r look $retval:f32", "r look $retval:f64", "r half $retval:f32",
                     *(f"r look $retval:{kind}64" for kind in "sux" if m.arch.bits < 64)):
            with pytest.raises(EventError, match="does not fit the return register") as error:
                k.event(text)
            assert error.value.kind == "BAD_RETVAL_TYPE"
        try:
            e = k.event("r half $retval:f64")
        except EventError as error:
            assert not name.startswith(("x86_64", "arm64-"))
            assert error.kind == "NOSUP_DAT_ARG"
            return
        m.call("outer", 1)
        assert [tuple(r.args.values()) for r in e] == [(2.5,)]


@pytest.mark.parametrize("name", FILES)
def test_a_type_that_a_word_does_not_fit(name: str) -> None:
    """Half a number is none: an argument, a register and a word of the stack are refused as what is wider."""
    with load(name) as m, Kprobes(m) as k:
        wide = ["s64"] if m.arch.bits < 64 else []
        narrow = ["f64"] if m.arch.bits < 64 else []
        register = m.arch.abi.args[0] if m.arch.abi.args else m.arch.regs.sp
        for kind, fetch, types in (("BAD_ARG_TYPE", "$arg1", [*wide, "f32", "f64"]),
                                   ("BAD_WORD_TYPE", f"%{register}", [*wide, *narrow]),
                                   ("BAD_WORD_TYPE", "$stack2", narrow)):
            for type in types:
                with pytest.raises(EventError, match=f"type '{type}' does not fit") as error:
                    k.event(f"p look {fetch}:{type}")
                assert error.value.kind == kind
                assert error.value.position == f"p look {fetch}:{type}".index(type)
            parse_event(f"p look {fetch}:s32 {fetch}:x64 {fetch}:b40@8/64 +0({fetch}):s64", m)


@pytest.mark.parametrize("name", FILES)
def test_variables_that_are_not_kept_are_refused_in_bodies(name: str) -> None:
    """gdb calls them optimized out; Kprobe's locals have None. Where the compiler has kept them at other places, not."""
    with load(name) as m, Kprobes(m) as k:
        seen: dict[tuple[int, str], Any] = {}
        gone = []
        for symbol in m.symbols:
            if symbol.kind != "func" or not symbol.size:
                continue
            for insn in k._survey.instructions(symbol):
                names = m.debug.names(insn.addr)
                if k.is_entry(insn.addr) or not names or not k.check(insn.addr).probeable:
                    continue
                gone += [(insn.addr, each) for each in names if not m.debug.is_kept(insn.addr, each)]
                k.register(Kprobe(addr=insn.addr, pre_handler=lambda p, regs: seen.update(
                    {(p.addr, each): value for each, value in m.debug.locals(regs).items()})))
        m.call("outer", 1)
        hit = [each for each in gone if each in seen]
        assert len(gone) > 20
        assert hit
        assert [each for each in hit if seen[each] is not None] == []
        assert sum(value is not None for value in seen.values()) > len(seen) / 3
        for address, variable in random.Random(1).sample(gone, 5):
            with pytest.raises(EventError, match="the compiler has not kept it at this instruction") as error:
                k.event(f"p {address:#x} {variable}")
            assert error.value.kind == "NOSUP_DAT_ARG"


@pytest.mark.parametrize("host_code", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_large_sections_are_not_copied(name: str, host_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of them is the same, by C and by Python."""
    if not host_code:
        monkeypatch.setattr(native, "available", lambda: False)

    def known() -> tuple[Any, ...]:
        with load(name) as m:
            function = m.symbols["look"]
            streams = {type(getattr(dwarf(file), f"debug_{part}_sec").stream) for file in m.debug.files
                       for part in ("info", "str", "line")}
            lines = [str(line) for line in m.debug.lines(function.address, m.symbols.extent(function))]
            number = m.debug.line(function.address).line
            places = [(each.address, each.function) for each in m.debug.at_line("values.c", number)]
            types = [(n, t.name, str(t)) for n, t in m.type("struct item").members.items()]
            arrivals = [(v.name, str(arrival)) for v, arrival in m.debug.arrivals(function.address)]
            return streams, lines, places, types, arrivals, m.debug.inlined("half"), m.debug.variable("the_item")[0]

    plain = known()
    monkeypatch.setattr(file_module, "LARGE", 1)
    seen = known()
    assert (plain[0], seen[0]) == ({io.BytesIO}, {SectionWindow})
    assert seen[1:] == plain[1:]
    assert seen[1]
    assert seen[2]


def test_a_window_of_a_section_is_as_its_bytes() -> None:
    data = random.Random(3).randbytes(500) + b"abcabc"
    window, copy, file = SectionWindow(b"front" + data + b"abc", 5, len(data)), data, io.BytesIO(data)
    assert (len(window), bytes(window.view), window[:]) == (len(data), copy, copy)
    chance = random.Random(4)
    for _ in range(500):
        a, b = chance.randrange(-600, 600), chance.randrange(-600, 600)
        assert window[a:b] == copy[a:b]
        assert window[a:b:3] == copy[a:b:3]
        for wanted in (b"abc", data[100:102], b"none at all"):
            assert (window.find(wanted, a, b), window.rfind(wanted, a, b)) == (copy.find(wanted, a, b), copy.rfind(wanted, a, b))
        count = chance.choice((None, -1, 0, 5, 1000))
        assert (window.seek(abs(a)), window.read(count), window.tell()) == (file.seek(abs(a)), file.read(count), file.tell())
    assert (window.find(b"abc"), window.rfind(b"abc")) == (copy.find(b"abc"), copy.rfind(b"abc"))
    assert (window[-1], window[0]) == (copy[-1], copy[0])
    for at in (len(data), -len(data) - 1):
        with pytest.raises(IndexError):
            window[at]
    with pytest.raises(ValueError, match="beyond its file"):
        SectionWindow(data, 1, len(data))


def test_floating_point_in_registers() -> None:
    """Low bits of what is wide enough; x87's 80 bits are another format."""
    for arch, register, fine in (("x86_64", "xmm0", "f64"), ("x86_64", "rax", "f64"), ("x86_64", "st0", ""),
                                 ("arm64", "v0", "f64"), ("arm", "d0", "f64"), ("arm", "r0", "f32"),
                                 ("i386", "xmm0", "f64"), ("x86_64", "mxcsr", "f32"), ("mips", "f0", "f64")):
        with UnicornMachine.from_code(bytes(16), arch=arch) as m:
            for type in ("f32", "f64"):
                text = f"p 0x10000 %{register}:{type}"
                if type <= fine:
                    parse_event(text, m)
                else:
                    with pytest.raises(EventError, match="does not fit"):
                        parse_event(text, m)


@pytest.mark.parametrize("arch", ["alpha", "sparc64"])
def test_results_of_16_bytes_are_refused_where_they_have_not_been_tried(arch: str) -> None:
    """Alpha returns them in memory, others in two registers."""
    wide: Any = SimpleNamespace(kind="int", size=16, name="__int128")
    with pytest.raises(NotKnown, match=f"how {arch} returns it is not known"):
        known = arch_module.get(arch)
        result_parts(known, call_rules(known, "", False, None), wide, lambda type: False)


@pytest.mark.parametrize("name", FILES)
def test_nothing_returned(name: str) -> None:
    with load(name) as m, Kprobes(m) as k, pytest.raises(EventError, match="returns nothing"):
        k.event("r nothing $retval")


@pytest.mark.parametrize("name", FILES)
def test_parameters_in_events(name: str) -> None:
    """What is not refused is right, at entries and at returns."""
    with load(name) as m, Kprobes(m) as k:
        events = []
        for function, parameter, value in (("make", "a", 2), ("make", "b", 3), ("few", "a", 4), ("few", "b", 5),
                                           ("nothing", "b", 7), ("half", "n", 1)):
            for kind in "pr":
                try:
                    events.append((k.event(f"{kind}:{kind}_{function}_{parameter} {function} {parameter}"), value))
                except EventError as error:
                    assert error.kind == "NOSUP_DAT_ARG"
        m.call("outer", 1)
        for event, value in events:
            assert [tuple(r.args.values()) for r in event] == [(value,)], str(event)


def test_names_that_mean_several_types() -> None:
    with load("x86_64-5") as m:
        assert m.type("struct tight").size == 9 and m.type("short [2][3]").size == 12
        assert [*m.type("short [2][3]").dims] == [2, 3]


def test_types_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a file that another process reads; one that is damaged is made again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("kprobes.debug.units.SMALL", 0)
    made = []
    scan = Units._all_types
    monkeypatch.setattr(Units, "_all_types", lambda units: made.append(1) or scan(units))
    for _ in range(2):
        with load("riscv64-5") as m:
            assert m.type("struct tight").size == 9
    (kept,) = (tmp_path / "kprobes" / "debug").iterdir()
    assert len(made) == 1
    whole = kept.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    for damage in (b"", b"[[1]]", whole[:100], whole + b"x", whole[:-9] + b"structure", bytes(flipped)):
        kept.write_bytes(damage)
        with load("riscv64-5") as m:
            assert m.type("struct tight").size == 9
    assert len(made) == 7
    assert kept.read_bytes() == whole and [*kept.parent.iterdir()] == [kept]


def test_types_are_kept_by_several_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two that begin at once write the same; where nobody may write nothing is kept, and where others may all is made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("kprobes.debug.units.SMALL", 0)
    folder = tmp_path / "kprobes" / "debug"
    folder.parent.mkdir()
    folder.write_text("no folder")  # root may write wherever there is a folder
    with load("riscv64-5") as m:
        assert m.type("struct tight").size == 9
    folder.unlink()
    write = cache_module._write

    def written_twice(path: Path, data: bytes) -> None:
        write(path, data)
        write(path, data)

    monkeypatch.setattr(cache_module, "_write", written_twice)
    with load("riscv64-5") as m:
        assert m.type("struct tight").size == 9
    (kept,) = folder.iterdir()
    kept.chmod(0o666)
    made = []
    monkeypatch.setattr(cache_module, "_write", lambda path, data: made.append(path))
    with load("riscv64-5") as m:
        assert m.type("struct tight").size == 9
    assert made == [kept]


def test_scans_of_host_code_are_pythons() -> None:
    """Units and tables of lines as both read them, of all compilers' versions of DWARF, and damaged ones."""
    if not native.available():
        pytest.skip("there is no host code")
    rng = random.Random(26)
    for name in ("x86_64-5", "s390x-5", "mips-4"):
        with load(name) as m:
            units = Units(m.symbols.files[0])
        for n, header in enumerate(units.headers):
            unit = units.unit(n)
            asked = partial(_address, units.info, unit), partial(_text, units.info, unit)
            tables = units._tables_of(n)
            for deep in (False, True):
                right = units._scanner.scan(header, *asked, deep)
                pieces = [piece for start, end, at in right.functions  # C reads lists of ranges, too
                          for piece in ([(start, end, at)] if end else units._parts(n, at))]
                assert units._quick.scan(header, tables, deep, False).functions == pieces
                assert units._quick.scan(header, tables, deep, True).types == right.types
                assert right.types or right.functions
            table = line_table(units.info, unit)
            program = units.info.line_program_for_CU(unit)
            assert [*table] == sorted(_lines(program), key=lambda line: line.start) and table._rows is not None
            for _ in range(60):
                damaged = bytearray(units._sections.info)
                for _ in range(3):
                    damaged[rng.randrange(header.first, header.end)] = rng.randrange(256)
                sections = evolve(units._sections, info=bytes(damaged))
                found = QuickScanner(sections).scan(header, tables, False, True)
                if found is not None:
                    assert found.types == UnitScanner(sections).scan(header, *asked).types
                for copied in "table_insert", "twice":
                    copies = CopyScanner(sections, copied).scan(header, tables)
                    assert copies is None or all(header.first <= each.offset < header.end for each in copies)


def test_names_of_scopes_are_made_when_they_are_asked_for() -> None:
    """A big C++ program has 335,000 scopes, and types are in a tenth of them."""
    text = memoryview(b"geo Shape other")
    rows = memoryview(struct.pack("=15Q", 0, 2, 0, 3, 0, 1, 2, 4, 5, 0, 0, 2, 10, 5, 0)).cast("Q")  # struct scope of dwarf.c
    names = ScopeNames(rows, [memoryview(b""), memoryview(b""), text])
    assert names[2] == "geo::Shape::" and {*names} == {0, 1, 2}
    assert names[3] == "other::" and names[0] == ""


@pytest.mark.parametrize("name", FILES)
def test_abbreviations_and_ranges_are_those_of_others(name: str) -> None:
    """Abbreviations are pyelftools' own, ranges of host code Python's, of damaged sections too."""
    rng = random.Random(27)
    with load(name) as m:
        units = Units(m.symbols.files[0])
    data = units._sections.abbrev
    for header in units.headers:
        right = AbbrevTable(units.info.structs, io.BytesIO(data), header.abbrev)._abbrev_map
        table = AbbreviationTable(data, header.abbrev)
        assert right and all(table.get_abbrev(code).decl == right[code].decl for code in right)
        assert all(table.get_abbrev(code).has_children() == right[code].has_children() for code in right)
        with pytest.raises(KeyError):
            table.get_abbrev(max(right) + 1)
        cut = AbbreviationTable(data[: header.abbrev + 3], header.abbrev)
        for _ in range(2):
            with pytest.raises(LookupError):
                cut.get_abbrev(max(right))
    section = units.info.debug_aranges_sec
    listed = b"" if section is None else bytes(contents(section))
    order = units._sections.order
    for n in range(200 if listed and native.available() else 0):
        given = bytearray(listed * 3)
        for _ in range(min(n, 4)):
            given[rng.randrange(len(given))] = rng.randrange(256)
        found = quick_ranges(bytes(given), order == "big")
        right = sorted(aranges(bytes(given), order))
        assert found is None or [*zip(*[iter(found)] * 3, strict=True)] == right
        if n == 0:
            assert found is not None and len(right) >= 3
            assert [*AddressRanges(found).find(right[0][0], right[-1][1])] == right
            assert [*AddressRanges(found).find(right[0][1], right[0][1] + 1)] == [
                each for each in right if each[0] <= right[0][1] < each[1]]


def test_signed_constants_of_abbreviations() -> None:
    """A DW_FORM_implicit_const is signed, and attributes may have numbers of several bytes."""
    raw = bytes((0x81, 0x01, 0x34, 0, 0x3B, 0x21, 0x7F, 0x87, 0x40, 0x0E, 0x1C, 0x21, 0x80, 0x7F, 0xFF, 0x7F, 0x0B, 0, 0, 0))
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8, dwarf_version=5)
    found = AbbreviationTable(raw, 0).get_abbrev(0x81)
    assert found.decl == AbbrevTable(structs, io.BytesIO(raw), 0).get_abbrev(0x81).decl
    assert [each.value for each in found["attr_spec"]] == [-1, None, -128, None]


@pytest.mark.parametrize("target", ["aarch64-linux-musl", "arm-linux-musleabihf", "mips64-linux-muslabi64", "riscv64-linux-musl"])
def test_a_parameter_that_is_nested_too_deep_is_refused_in_these_words(target: str, tmp_path: Path) -> None:
    """It was said to have a vector."""
    pytest.importorskip("ziglang")
    inside = "int v"
    for n in range(39):
        inside = f"union {{ {inside}; }} u{n}"
    (tmp_path / "deep.c").write_text(f"struct deep {{ {inside}; }};\n"
                                     "int look(int k, struct deep d) { return k + sizeof d; }\n"
                                     "void _start(void) { struct deep d = {0}; look(1, d); }\n")
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static", "-ffreestanding",
                    "-Wl,-e,_start", "deep.c", "-o", "deep"], cwd=tmp_path, check=True, capture_output=True)
    with UnicornMachine.load(tmp_path / "deep") as m, Kprobes(m) as k:
        with pytest.raises(EventError, match="a parameter before it is nested too deep"):
            k.event("p look d")
        assert k.event("p look k").places
