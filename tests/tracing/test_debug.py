"""Debug information: types, variables, lines and names, on every architecture that the compiler writes them for."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import pytest
from debug_guests import FILES, load
from host import why_python

from kprobes import (
    BadArgument,
    EventError,
    GuestFault,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    UnicornMachine,
    UnknownSymbol,
    keep_arguments,
)
from kprobes.debug import units as module
from kprobes.debug.units import Units, spelling
from kprobes.debug.view import View
from kprobes.image import LoadedFile
from kprobes.names import demangle, plain

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", FILES)
def test_memory_as_c_sees_it(name: str) -> None:
    with load(name) as m:
        m.call("outer", 1)
        table = m.view("struct table *", m.symbols["the_table"].address)
        assert (table.count, table.kind, table.wide, [*table.u.bytes]) == (1, 7, -5, [1, 2, 3, 4])
        first = table.first
        assert (first.value, str(first.key), bytes(first.key), first.flag, first.rest) == (640, "width", b"width", 5, 0)
        assert (not first.next and first.next == 0 and int(first) == first and first.key[1] == ord("i")
                and len(first.key) == 16)
        table.count, first.rest, first.value = 70, 9, -3
        assert (table.count, first.rest, first.flag, first.value) == (70, 9, 5, -3)
        assert m.view("table_t", int(table)).count == 70 and "count = 70" in repr(table) and '"width"' in repr(first)


@pytest.mark.parametrize("name", ["count", "wide", "kind"])
def test_wrong_values_of_views(name: str) -> None:
    """Of structures, arrays and bit fields. A member that there is not is an AttributeError, as of every object."""
    with load("x86_64-eh") as m:
        m.call("outer", 1)
        table = m.view("struct table *", m.symbols["the_table"].address)
        for value in (None, 2.5, float("nan"), [], {}, object(), ..., (1, 2)):
            for view in (table, table.first, table.u.bytes, table.first.key):
                with pytest.raises(BadArgument, match="index is"):
                    view[value]
            for view, member in ((table, name), (table.first, "flag"), (table.first, "rest")):
                before = bytes(view)
                with pytest.raises(BadArgument, match=re.escape(repr(value))):
                    setattr(view, member, value)
                assert bytes(view) == before


@pytest.mark.parametrize("name", FILES)
def test_writes_that_do_not_fit_are_refused(name: str) -> None:
    """As m.call refuses them: what neither a signed nor an unsigned number of this width can be."""
    with load(name) as m:
        m.call("outer", 1)
        table = m.view("struct table *", m.symbols["the_table"].address)
        first = table.first
        for view, member, bits in ((table, "wide", 64), (table, "count", 32), (first, "value", 32), (first, "flag", 3)):
            before = bytes(view)
            for value in (1 << bits, -(1 << bits - 1) - 1, 1 << 70):
                with pytest.raises(BadArgument, match="does not fit"):
                    setattr(view, member, value)
            assert bytes(view) == before
            for value in ((1 << bits) - 1, -(1 << bits - 1)):
                setattr(view, member, value)
                assert (getattr(view, member) - value) % (1 << bits) == 0
        for value in (1 << 70, 1 << m.arch.bits, -(1 << m.arch.bits - 1) - 1):
            with pytest.raises(BadArgument, match="does not fit"):
                m.regs.set_arg(0, value)
        m.regs.set_arg(0, -1)
        assert m.regs.arg(0) == m.arch.mask


@pytest.mark.parametrize("name", FILES)
def test_structures_are_mappings_and_arrays_are_written(name: str) -> None:
    with load(name) as m:
        m.call("outer", 1)
        table = m.view("struct table *", m.symbols["the_table"].address)
        first = table.first
        for view in (table, m.view("struct table", int(table))):
            assert dict(view)["count"] == 1 and list(view) == dir_of(view) and len(view) == len(list(view))
            assert "count" in view and "nothing" not in view
        with pytest.raises(AttributeError, match="keys"):
            _ = table.u.bytes.keys
        pointer = m.view("char *", int(first.key))
        for wrong in (list, len):
            with pytest.raises(TypeError):
                wrong(pointer)
        table.u.bytes[2] = 30
        table["count"] = 12
        assert [*table.u.bytes] == [1, 2, 30, 4] and table.count == 12
        table.u.bytes = [9, 8, 7, 6]
        assert [*table.u.bytes] == [9, 8, 7, 6]
        first.key = "a key"
        assert str(first.key) == "a key" and first.key[5] == 0
        first.key = b"0123456789abcdef"
        assert bytes(first.key) == b"0123456789abcdef"
        before = bytes(table), bytes(first)
        for view, member, value in ((first, "key", "0123456789abcdefg"), (table.u, "bytes", [1]), (table.u, "bytes", [1, 2, 3, 256]),
                                    (table.u, "bytes", 5), (table.u, "bytes", [1, 2, 3, None]), (first, "key", "\ud800")):
            with pytest.raises(BadArgument):
                setattr(view, member, value)
        with pytest.raises(IndexError):
            table.u.bytes[4] = 1
        assert (bytes(table), bytes(first)) == before


def dir_of(view: View) -> list[str]:
    """The members' names in their order: dir() would sort them."""
    return view.__dir__()


@pytest.mark.parametrize("name", FILES)
def test_text_behind_a_pointer_is_shown_whole(name: str) -> None:
    seen = []
    with load(name) as m, Kprobes(m) as k:
        m.write(m.symbols["the_table"].address, bytes(8))
        text = m.alloc(200)
        m.write(text, b"a key of a length that is not one\0")
        with k.kprobe("table_insert", pre_handler=lambda p, regs: seen.append(repr(regs.local("key")))):
            m.call("table_insert", m.symbols["the_table"].address, text, 1)
    assert len(seen) == 1 and '"a key of a length that is not one"' in seen[0]


def test_types() -> None:
    with load("x86_64-eh") as m:
        table = m.type("struct table")
        assert [*table.members] == ["count", "first", "kind", "u", "wide"] and table.size == 32 and "+8" in str(table)
        assert m.type("enum kind").values == {"PLAIN": 0, "HASHED": 7} and m.type("table_t * *").name == "table_t **"
        assert m.type("unsigned int").size == 4 and m.type("long long int").signed and m.type("char [16]").count == 16
        with pytest.raises(UnknownSymbol, match="struct table"):
            m.type("struct tabel")
        m.symbols.files = ()
        with pytest.raises(UnknownSymbol, match="build the guest with -g"):
            m.view("struct table", 0)


@pytest.mark.parametrize(("one", "other"), [("unsigned long", "long unsigned int"), ("short", "short int"),
                                            ("signed", "int"), ("const char", "char"),
                                            ("struct  table", "struct table"), ("unsigned", "unsigned int")])
def test_spellings(one: str, other: str) -> None:
    assert spelling(one) == spelling(other)


def test_what_views_refuse() -> None:
    with load("arm-eh") as m:
        table = m.view("struct table *", m.symbols["the_table"].address)
        with pytest.raises(AttributeError, match="count"):
            _ = table.cuont
        with pytest.raises(AttributeError):
            table.cuont = 1
        with pytest.raises(BadArgument):
            table.u = 5
        with pytest.raises(IndexError):
            table.u.bytes[4]
        with pytest.raises(GuestFault):
            _ = m.view("struct table *", 0x10).count
        assert "(fault)" in repr(m.view("struct table *", 0x10))


def test_a_view_shows_the_members_of_its_members_and_numbers() -> None:
    """As gdb does; pointers within stay addresses."""
    with load("x86_64-eh") as m:
        table = m.symbols["the_table"].address
        assert repr(m.view("struct table", table)) == (
            f"(struct table) {table:#x} {{count = 0, first = 0x0, kind = 7, "
            "u = {bytes = {1, 2, 3, 4}, word = 67305985}, wide = -5}")
        assert repr(m.view("long long", table + 24)) == f"(long long) {table + 24:#x} -5"
        assert repr(m.view("int", 0x10)) == "(int) 0x10 (fault)"


def test_views_of_types_that_no_file_names() -> None:
    """A pointer to a pointer, and an array: they have no members, and say so."""
    with load("x86_64-eh") as m:
        table = m.symbols["the_table"].address
        for name in ("struct table **", "struct table [2]"):
            view = m.view(name, table)
            assert name in repr(view) and dir(view) == []
            with pytest.raises(AttributeError, match="no member 'count'"):
                _ = view.count


@pytest.mark.parametrize("name", FILES)
def test_variables_at_a_hit(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        seen: list[Any] = []
        k.register(Kprobe(symbol_name="table_insert", pre_handler=lambda p, regs: seen.append(
            (str(m.debug.local(regs, "key")), m.debug.local(regs, "value"), m.debug.local(regs, "table").count))))
        m.call("outer", 1)
        assert seen == [("width", 640, 0)]
        assert [v.name for v in m.debug.parameters(k.check("table_insert").addr) or []] == ["table", "key", "value"]
        assert max(len(repr(v)) for v in m.debug.parameters(k.check("table_insert").addr) or []) < 100  # no entries of DWARF


@pytest.mark.parametrize("name", FILES)
def test_locals_inside_a_function(name: str) -> None:
    """Wherever the compiler says that it keeps `n`, it counts the letters that have been copied."""
    with load(name) as m, Kprobes(m) as k:
        symbol, seen = m.symbols["table_insert"], set()
        address = k.check("table_insert").addr
        end = address + symbol.size
        while address < end:
            verdict = k.check(address | symbol.mode)
            if verdict.probeable:
                k.register(Kprobe(addr=address | symbol.mode,
                                  pre_handler=lambda p, regs: seen.add(m.debug.locals(regs).get("n"))))
            address += verdict.size or m.arch.insn_align
        m.call("outer", 1)
        assert {1, 2, 3, 4} <= seen
        # those compilers move instructions into delay slots, and say of variables what was true before
        if not name.startswith(("mips", "sparc")):
            assert seen <= {None, 0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", FILES)
def test_names_in_events(name: str) -> None:
    events = ("p table_insert key:string value", "p:w walk $arg*",
              "p:l leaf table->count f=table->first->flag k=table->first->key u=table->u.bytes "
              "w=table->wide kind=table->kind", "r:done table_insert n=table->count value $retval:s32")
    with load(name) as m, Kprobes(m) as k, k.trace(*events) as t:
        m.call("outer", 0)
    assert [dict(r.args) for r in t] == [
        {"key": "width", "value": 640}, {"n": 1, "value": 640, "arg3": 5},
        {"table": m.symbols["the_table"].address, "depth": 0},
        {"count": 1, "f": 5, "k": "width", "u": (1, 2, 3, 4), "w": -5, "kind": 7}]


def test_events_are_compiled_with_names() -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k:
        event = k.event("p table_insert value n=table->count", filter="value > 600")
        m.call("outer", 1)
        assert why_python(event) == "" and [dict(r.args) for r in event] == [{"value": 640, "n": 0}]


@pytest.mark.parametrize(("text", "kind"), [
    ("p table_insert nobody", "NO_BTFARG"), ("p table_insert table->nobody", "NO_BTF_FIELD"),
    ("p table_insert value->count", "NO_PTR_STRCT"),
    ("p table_insert table.count", "NO_PTR_STRCT"), ("p table_insert $arg* $arg*", "DOUBLE_ARGS"),
    ("p _start+4 x", "NO_BTFARG")])
def test_names_that_are_none(text: str, kind: str) -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k, pytest.raises(EventError) as error:
        k.event(text)
    assert error.value.kind == kind


@pytest.mark.parametrize("name", FILES)
def test_lines(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        start = k.check("leaf").addr
        lines = m.debug.lines(start, start + m.symbols["leaf"].size)
        assert ({line.path.rpartition("/")[2] for line in lines} == {"debug.c"}
                and {28, 29} <= {line.line for line in lines})
        assert m.debug.line(lines[0].address) == lines[0] and m.debug.line(0x10) is None
        assert all(m.symbols.describe(address).split("+")[0] in ("leaf", "table_insert")
                   for address in m.debug.inlined("squared"))
        assert m.debug.inlined("squared")


@pytest.mark.parametrize("name", FILES)
def test_what_is_inlined(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        symbol = m.symbols["leaf"]
        seen = {tuple((f.function, f.inlined, f.line, f.path.rpartition("/")[2]) for f in m.debug.frames(at))
                for at in range(k.check("leaf").addr, symbol.address + symbol.size)}
        assert {(("squared", True, 25, "debug.c"), ("leaf", False, 28, "debug.c")), (("leaf", False, 29, "debug.c"),
                )} <= seen
        assert m.debug.frames(0x10) == []


def test_ranges_of_inlined_calls_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kprobes check` asks for each instruction of a function: 4,000 times 40 lists of ranges took 10 s of 15."""
    read = []
    whole = module.spans

    def counted(die: Any, unit: Any) -> Any:
        if die.tag == "DW_TAG_inlined_subroutine":
            read.append(die.offset)
        return whole(die, unit)

    monkeypatch.setattr(module, "spans", counted)
    with load("x86_64-eh") as m:
        start = m.symbols["leaf"].address
        frames = [m.debug.frames(at) for at in range(start, start + 12) for _ in range(2)]
    assert any(frame.inlined for each in frames for frame in each)
    assert read and len(read) == len(set(read))


@pytest.mark.parametrize("name", FILES)
def test_lines_of_verdicts(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        verdict = k.check("leaf")
        assert (verdict.line is not None and verdict.line.line in (25, 27, 28)
                and verdict.line == m.debug.line(verdict.addr))
        copied = pickle.loads(pickle.dumps(verdict))
        assert copied == verdict and copied.line == verdict.line and "debug.c:2" in verdict._repr_html_()
        m.symbols.files = ()
        assert k.check("leaf").line is None and k.check("leaf") == verdict


@pytest.mark.parametrize("name", FILES)
def test_arguments_at_the_return(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        seen: list[Any] = []
        r = Kretprobe(symbol_name="walk", entry_handler=keep_arguments,
                      handler=lambda ri, regs: seen.append((ri.args.depth, ri.args.table.count, len(ri.args))))
        k.register(r)
        m.call("outer", 2)
        assert seen == [(0, 1, 2), (1, 1, 2), (2, 1, 2)]
        r.entry_handler, r.handler = None, lambda ri, regs: seen.append(ri.args)
        m.call("outer", 0)
        assert seen[3:] == [None]


def test_what_arguments_show() -> None:
    with load("x86_64-eh") as m, Kprobes(m) as k:
        seen: list[Any] = []
        k.register(Kretprobe(symbol_name="table_insert", entry_handler=keep_arguments,
                             handler=lambda ri, regs: seen.append(ri.args)))
        k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: seen.append(regs.local("depth"))))
        m.call("outer", 1)
        args, depth = seen
        assert (depth == 3 and args[2] == args["value"] == args.value == 640 and dir(args) == ["key", "table", "value"]
                and "value=640" in repr(args))
        assert next(iter(args)).count == 1
        with pytest.raises(AttributeError, match="table, key, value"):
            _ = args.cuont
        with pytest.raises(UnknownSymbol):
            m.regs.local("nobody")


@pytest.mark.parametrize(("mangled", "shown"), [
    ("_ZN5Table6insertEPKci", "Table::insert(char const*, int)"), ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                                                                   "core::fmt::Formatter::pad"),
    ("_RNvC6_123foo3bar", "123foo::bar"), ("main", "main"), ("_Z", "_Z"), ("_ZN", "_ZN"),
    ("_Z" + "9" * 5000, "_Z" + "9" * 5000)])
def test_names(mangled: str, shown: str) -> None:
    assert demangle(mangled) == shown


def test_symbols_by_either_name() -> None:
    with UnicornMachine.from_code(b"\x90\xc3" * 8, arch="x86_64",
                                  symbols={"_ZN5Table6insertEPKci": 0x10000, "_ZN5Table6insertEi": 0x10002,
                                                                          "_ZN5Table5clearEv": 0x10004}) as m:
        assert (m.symbols["Table::insert(int)"].address == 0x10002 and m.symbols["Table::clear"].name
                == "_ZN5Table5clearEv")
        assert "Table::clear" in m.symbols and plain("a::b<(c)>(d)") == "a::b<(c)>"
        with pytest.raises(KprobeError, match="2 addresses"):
            m.symbols["Table::insert"]


@pytest.mark.parametrize("name", ["x86_64-eh", "arm-df", "mips64-eh", "s390x-df"])
def test_damage(name: str) -> None:
    """A refusal, or something else than there was: never anything that is not an exception of ours."""
    import io

    from elftools.elf.elffile import ELFFile

    sections = [s for s in ELFFile(io.BytesIO(FILES[name])).iter_sections() if s.name.startswith(".debug")]
    rng = random.Random(name)
    with load(name) as m, Kprobes(m) as k:
        for _ in range(30):
            data = bytearray(FILES[name])
            for _ in range(rng.choice([1, 3, 30])):
                section = rng.choice(sections)
                data[section["sh_offset"] + rng.randrange(section["sh_size"])] = rng.randrange(256)
            m.symbols.files = (LoadedFile(bytes(data), 0, ""),)
            for ask in (lambda: repr(m.view("struct table *", m.symbols["the_table"].address)),
                        lambda: m.debug.line(m.symbols["leaf"].address),
                        lambda: m.debug.inlined("squared"), lambda: m.debug.frames(m.symbols["leaf"].address + 8),
                        lambda: k.event("p table_insert key:string table->count").remove(),
                        lambda: str(m.type("struct entry")), lambda: m.debug.locals(m.regs)):
                try:
                    ask()
                except (KprobeError, AttributeError):
                    pass


def test_a_parameter_is_another_word_in_another_function() -> None:
    """One event at functions that have a parameter in different places, by programs."""
    with load("x86_64-eh") as m, Kprobes(m) as k:
        e = k.event("p:x outer depth")
        assert k.event("p:x leaf depth") is e and not why_python(e)
        with k.trace("p:x outer depth", "p:x leaf depth") as t:
            m.call("outer", 5)
        said = [r.args["depth"] for r in e]
        m.cpu_task = lambda regs: 0
        with k.trace("p:x outer depth", "p:x leaf depth") as u:
            m.call("outer", 5)
        assert said == [r.args["depth"] for r in t] == [r.args["depth"] for r in u] and len(u) > 1


@pytest.mark.parametrize("name", FILES)
def test_a_line_is_of_all_tables(name: str) -> None:
    """What line_at() finds without reading all tables is what all of them have."""
    with load(name) as m:
        for file in m.symbols.files:
            units, whole = Units(file), Units(file)
            for line in whole.lines:
                assert (found := units.line_at(line.start)) is not None and found.line == line.line
            assert units.line_at(0xFFFF_FFFF) is None


def test_only_tables_that_are_needed_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of three units one is asked, and once; of an address in none of them nobody is."""
    with load("arm64-eh") as m:
        whole, units = (Units(m.symbols.files[0]) for _ in range(2))
        (parts,) = units._unlisted.values()
        assert parts is not None
        units.headers, want = [*units.headers] * 3, whole.lines[0]  # type: ignore[assignment]
        units._unlisted.update({n: [(start + far, end + far) for start, end in parts]
                                for n, far in enumerate((0x10000, 0, 0x20000))})
        asked: list[Any] = []
        read = module.line_table
        monkeypatch.setattr(module, "line_table", lambda info, unit: asked.append(unit) or read(info, unit))
        assert units.line_at(want.start) == units.line_at(want.start) == want and len(asked) == 1
        assert units.line_at(0) is None and len(asked) == 1
