"""Scripts at probes of guests: arguments, returns, symbols, stacks, watchpoints, on many architectures."""

import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from arches import RUNNABLE, integer, programs_of, results
from scenes import paper_machine
from script.test_language import Maker

from kprobes import Kprobes, UnicornMachine
from kprobes.debug.types import Member
from kprobes.errors import GuestStopped, KprobeError, Unsupported
from kprobes.programs.meanings import WAKE
from kprobes.script import ScriptError
from kprobes.script.guest import GuestWorld
from kprobes.script.output import JsonOutput, json_text
from kprobes.script.script import Script

DEMO = "examples/demo.arm64"


@pytest.fixture
def demo() -> Iterator[Kprobes]:
    """Probes of the example program."""
    with Kprobes(UnicornMachine.load(DEMO)) as k:
        yield k


ENGINES = pytest.mark.parametrize("engine", ["interpreter", None])


@ENGINES
def test_arguments_and_returns(demo: Kprobes, engine: str | None) -> None:
    text = """
        kprobe:crc32 { @size[tid] = arg2; @text = str(arg1, 6); @hist = hist(arg2); @buf = buf(arg1, 3); }
        kretprobe:crc32 /@size[tid] > 5/ { @crc = (uint32)retval; @f[func] = count(); printf("%d\\n", @size[tid]); }"""
    with demo.script(text, engine=engine) as s:
        demo.machine.call("crc32", 0, b"hello\0", 5)
        demo.machine.call("crc32", 0, b"hello, world\0", 12)
    crc = demo.machine.call("crc32", 0, b"hello, world\0", 12)
    assert s.maps["crc"] == crc
    assert (s.maps["text"], s.maps["buf"], dict(s.maps["f"])) == (b"hello", b"hel", {"crc32": 1})
    assert s.output == (
        "12\n\n\n@buf: hel\n@crc: " f"{crc}\n@f[crc32]: 1\n@hist:\n"
        "[4, 8)                 1 |" + "@" * 52 + "|\n[8, 16)                1 |" + "@" * 52 + "|\n\n@size[0]: 12\n"
        "@text: hello\n")
    assert s.errors == "Attached 2 probes\n"


@ENGINES
def test_globs_stacks_and_symbols(demo: Kprobes, engine: str | None) -> None:
    text = """kprobe:fi*,uprobe:*:crc32 { @[probe, func] = count(); @p = usym(reg("pc")); @s = ustack(2); @n = len(ustack(2)); }
              kprobe:fib+4 { @inside = count(); }"""
    with demo.script(text, engine=engine) as s:
        demo.machine.call("fib", 3)
        demo.machine.call("crc32", 0, b"a", 1)
    assert dict(s.maps[""]) == {(b"kprobe:fib", "fib"): 3, (b"uprobe:*:crc32", "crc32"): 1}
    assert (s.maps["p"], s.maps["s"][0].symbol, s.maps["n"]) == ("crc32", "crc32", 2)
    assert s.maps["inside"] == 3


@ENGINES
def test_guest_memory_and_structures(demo: Kprobes, engine: str | None) -> None:
    """A structure of the script's, read through a pointer of the guest's."""
    text = """struct s { uint8_t a; uint16_t b; char t[4]; struct { uint32_t d : 4; uint32_t e : 12; }; uint8_t f[3]; };
        kprobe:crc32 {
            $s = (struct s *)arg1; @a = $s->a; @b = $s.b; @t = $s.t; @d = $s.d; @e = $s.e; @f1 = $s.f[1]; @f = $s.f;
            @whole = *$s; @next = *(uint16 *)(arg1 + 2); @p = *((uint8 *)arg1 + 2); @bad = *(uint32 *)1; $w = *$s; @w = $w.b;
        }"""
    raw = bytes([7, 0, 0x34, 0x12]) + b"abcd" + (0x5A3).to_bytes(4, "little") + bytes([9, 8, 7])
    with demo.script(text, engine=engine) as s:
        demo.machine.call("crc32", 0, raw, 4)
    maps = s.maps
    assert [maps[name] for name in ("a", "b", "t", "d", "e", "f1", "f")] == [7, 0x1234, b"abcd", 3, 0x5A, 8, [9, 8, 7]]
    assert maps["whole"] == {"a": 7, "b": 0x1234, "t": b"abcd", "d": 3, "e": 0x5A, "f": [9, 8, 7]}
    assert (maps["next"], maps["p"], maps["bad"], maps["w"]) == (0x1234, 0x34, 0, 0x1234)


@ENGINES
def test_an_index_behind_its_array_is_told_and_reads_nothing(demo: Kprobes, engine: str | None) -> None:
    """Not what lies behind the array, and not what a negative index would find before it."""
    text = """struct in { uint8_t a; uint8_t b; char t[2]; }; struct s { uint8_t n[4]; struct in i[2]; uint8_t rest[2]; };
        kprobe:crc32 {
            $s = (struct s *)arg1; $i = (uint64)INDEX;
            @n = $s.n[$i]; @member = $s.i[$i].b; @text = $s.i[$i].t; @whole = $s.i[$i]; @str = str($s.i[$i].t, 3);
            @buf = buf($s.i[$i].t, 2); @own = ((uint8[4])(uint32)0x04030201)[$i]; @deep = $s.n[$s.n[$i]];
            @fine = $s.rest[1];
        }"""
    raw = bytes([1, 2, 3, 4, 11, 12, *b"ab", 21, 22, *b"cd", 98, 99])
    for index in ("1", "4", "-1"):
        with demo.script(text.replace("INDEX", index), engine=engine) as s:
            demo.machine.call("crc32", 0, raw, len(raw))
        maps = s.maps
        seen = [maps[name] for name in ("n", "member", "text", "str", "buf", "own", "deep", "fine")]
        warnings = s.errors.count("WARNING: Array access out of bounds. This can lead to unexpected results.\n")
        if index == "1":
            assert seen == [2, 22, b"cd", b"cd", b"cd", 2, 3, 99]
            assert (maps["whole"], warnings) == ({"a": 21, "b": 22, "t": b"cd"}, 0)
        else:
            assert seen == [0, 0, b"", b"", b"", 0, 1, 99]
            assert (maps["whole"], warnings) == ({"a": 0, "b": 0, "t": b""}, 8)
    with pytest.raises(ScriptError, match="index -1 is out of bounds for array of size 4"):
        demo.script("struct s { uint8_t n[4]; }; kprobe:crc32 { @ = ((struct s *)arg1).n[-1]; }")


@ENGINES
def test_memory_that_cannot_be_read_is_told_where_that_is_asked(demo: Kprobes, engine: str | None) -> None:
    text = "kprobe:fib { $a = *(uint32 *)16; $b = str(8); $c = buf(4, 2); @ = 1; }"
    for wary in (False, True):
        with Script(text, kprobes=demo, engine=engine, wary=wary, environment={}) as s:
            demo.machine.call("fib", 1)
        told = [line for line in s.errors.splitlines() if "retcode" in line]
        places = [line.partition(" ")[0] for line in s.errors.splitlines() if line.startswith("stdin")]
        assert (told, places) == ((
            [f"Additional Info - helper: probe_read_user{kind}, retcode: -14" for kind in ("", "_str", "")],
            ["stdin:1:19-32:", "stdin:1:39-45:", "stdin:1:52-61:"]) if wary else ([], []))


def test_the_structure_around_a_member(demo: Kprobes) -> None:
    text = """struct in { uint16_t a; uint16_t b; }; struct s { uint32_t n; struct in i; };
        kprobe:crc32 {
            $b = (uint16 *)(arg1 + 6); $s = container_of($b, typeof(struct s), i.b); print(*$s);
            print(container_of(arg1 + 4, typeof(struct s), i).n);
        }"""
    with demo.script(text) as s:
        demo.machine.call("crc32", 0, bytes([1, 0, 0, 0, 2, 0, 3, 0]), 8)
    assert s.output == "{ .n = 1, .i = { .a = 2, .b = 3 } }\n1\n\n\n"
    with pytest.raises(ScriptError, match="container_of"):
        demo.script("kprobe:crc32 { container_of(arg1, 4, i); }")


def test_a_whole_structure_of_debug_information() -> None:
    """By a pointer, whose type knows no more than the structure's name."""
    with Kprobes(UnicornMachine.load("examples/notes.arm64")) as k:
        text = "fentry:book_trim { print(*args.book); print(args.book[0]); @ = *args.book; print(sizeof(*args.book)); }"
        with k.script(text) as s:
            k.machine.call("book_trim", (0).to_bytes(8, "little") + (7).to_bytes(8, "little"))
    assert s.output == "{ .first = 0x0, .count = 7 }\n" * 2 + "16\n\n\n@: { .first = 0x0, .count = 7 }\n"


def test_members_of_an_anonymous_union_stand_where_it_does() -> None:
    word = SimpleNamespace(kind="int", name="int", size=4, signed=True)
    members = [Member("within", word, 4), Member("first", word, 0), Member("last", word, 8)]
    of = SimpleNamespace(kind="struct", name="struct s", size=12, members={one.name: one for one in members})
    with Kprobes(UnicornMachine.load("examples/notes.arm64")) as k:
        found = GuestWorld(k.machine).converted(of)  # type: ignore[arg-type]
    assert [field.name for field in found.fields] == ["first", "within", "last"]


def test_tables_with_large_keys_and_values_are_compiled(demo: Kprobes) -> None:
    """Python is not called: a hit with a histogram for each key took 18 us, one with a text as the key 54 us."""
    text = """kprobe:fib { @rows[arg0 & 3] = hist(arg0); @texts[str(kaddr("crc32") + (arg0 & 1))] = count();
        if (arg0 == 4) { delete(@texts, str(kaddr("crc32"))); } }"""
    outputs, called = [], {0}
    for engine in ("interpreter", None):
        with demo.script(text, engine=engine) as s:
            demo.machine.call("fib", 8)
            probe, = (probe for one in s.attachments for probe in one)
            if engine is None:
                called = {number for kind, number in probe._host._made.slots if kind == "call"}
        outputs.append(s.output)
    assert outputs[0] == outputs[1] and "@texts[" in outputs[0]
    assert called == {WAKE}  # where a map is full


@ENGINES
def test_exit_stops_the_guest(demo: Kprobes, engine: str | None) -> None:
    text = "kprobe:fib { @++; if (@ == 3) { exit(5); } }"
    with demo.script(text, engine=engine) as s, pytest.raises(GuestStopped):
        demo.machine.call("fib", 12)
    assert (s.status, s.maps[""]) == (5, 3)


def test_a_full_ring_loses_nothing(demo: Kprobes) -> None:
    with demo.script('kprobe:fib { printf("%d %s\\n", arg0, str(0)); }') as s:
        for _ in range(8):
            demo.machine.call("fib", 12)
    assert s.output.count("\n") == 8 * 233 + 2


def test_timers_go_by_the_guests_instructions(demo: Kprobes) -> None:
    def once() -> str:
        with demo.script("interval:us:1 { @t = count(); } kprobe:fib { @f = count(); }", clock="instructions") as s:
            demo.machine.call("fib", 16)
        return s.output
    first = once()
    assert "@t: " in first and int(first.partition("@t: ")[2]) > 10
    assert first == once()


def test_args_name_the_functions_that_nothing_describes() -> None:
    """A glob has some that are described and some that are not."""
    with UnicornMachine.load("examples/notes.arm64") as m, Kprobes(m) as k:
        for n, at in enumerate((4, 8, 12, 20, 24)):
            m.symbols.add(f"book_bare{n}", m.symbols["malloc@plt"].address + at, 4, kind="func")
        with k.script("kprobe:book_trim { print(args); }"):
            pass
        for text, said in (
            ("kprobe:book_* { print(args); }", "kprobe:book_bare0, kprobe:book_bare1, kprobe:book_bare2 and 2 more; arg0"),
            ("fexit:book_bare4, kprobe:book_trim { print(args); }", "fexit:book_bare4; arg0"),
        ):
            with pytest.raises(ScriptError, match=f"watchpoints of data; not described: {said}"):
                k.script(text)
        with pytest.raises(ScriptError, match="watchpoints of data; fexit:FUNCTION has"):
            k.script("kretprobe:book_trim { print(args); }")


@ENGINES
@pytest.mark.parametrize("name", ["demo.x86_64", "demo.arm64"])
def test_values_of_a_watchpoint(name: str, engine: str | None) -> None:
    """Before and after each access, as the library's watchpoints have them."""
    with UnicornMachine.load(f"examples/{name}") as m, Kprobes(m) as k:
        want: list[tuple[int, int]] = []
        address = m.symbols["free_list"].address
        k.watchpoint(address, 8, "rw", lambda w, regs: want.append((w.before, w.value)))
        text = f"watchpoint:{address:#x}:8:rw {{ print((args.old, args.new)); }} watchpoint:{address:#x}:1:w {{ print(args.new); }}"
        with k.script(text, engine=engine) as s:
            m.call("table_init")
        assert want and want[-1][1]
        byte = [str(new & 0xFF) for old, new in want if new != old]
        assert sorted(line for line in s.output.splitlines() if line) == sorted([*map(str, want), *byte])
        with pytest.raises(ScriptError, match="watchpoints of data"):
            k.script(f"watchpoint:{m.symbols['fib'].address:#x}:4:x {{ print(args.old); }}")


def test_values_of_a_watchpoint_of_a_big_endian_guest() -> None:
    with UnicornMachine.from_code("stw 4, 0(3); sth 4, 2(3); blr", arch="ppc", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        at = m.alloc(8)
        with k.script(f"watchpoint:{at:#x}:4:w {{ print(args); }} watchpoint:{at + 2:#x}:2:w {{ @[args.old, args.new] = count(); }}") as s:
            m.call("f", at, 0x11223344)
            m.call("f", at, 0x55667788)
        assert s.output.split("@")[0].split("\n")[:4] == [
            f"{{ .old = {old}, .new = {new} }}" for old, new in (
                (0, 0x11223344), (0x11223344, 0x11223344), (0x11223344, 0x55667788), (0x55667788, 0x55667788))]
        assert "@[13124, 30600]: 1" in s.output and "@[0, 13124]: 1" in s.output
        with pytest.raises(ScriptError, match="more than a word of the guest"):
            k.script(f"watchpoint:{at:#x}:8:w {{ print(args.old); }}")


def test_watchpoints(demo: Kprobes) -> None:
    symbol = next(one for one in demo.machine.symbols if one.kind == "object" and one.size >= 4)
    with demo.script(f"watchpoint:{symbol.address:#x}:4:w {{ @ = count(); }}") as s:
        demo.machine.write(symbol.address, b"\1\2\3\4")
    assert s.maps[""] is None  # this was not the guest's


def test_watchpoints_of_execution(demo: Kprobes) -> None:
    """Without a breakpoint: the code stays as it is."""
    address = demo.machine.symbols["fib"].address
    before = demo.machine.read(address, 4)
    with demo.script(f"watchpoint:{address:#x}:4:x {{ @[reg(\"x0\")] = count(); @code = *(uint32 *)reg(\"pc\"); }}") as s:
        demo.machine.call("fib", 3)
    assert s.maps[""] == {3: 1, 2: 1, 1: 1}
    assert s.maps["code"] == int.from_bytes(before, "little")


def test_arguments_by_name() -> None:
    with Kprobes(UnicornMachine.load("examples/notes.arm64")) as k:
        known = [one for one in k.machine.symbols if one.kind == "func" and k.machine.debug.parameters(one.address)]
        assert known
        function = next(one for one in known if k.machine.debug.parameters(one.address))
        name = k.machine.debug.parameters(function.address)[0].name
        with k.script(f"fentry:{function.name} {{ @ = args.{name}; }}") as s:
            assert s.attachments
        with pytest.raises(ScriptError, match="Can't find function parameter"):
            k.script(f"fentry:{function.name} {{ @ = args.nothing; }}")


def test_a_function_that_is_not_there(demo: Kprobes) -> None:
    with pytest.raises(ScriptError, match="did you mean crc32"):
        demo.script("kprobe:crc23 { }")
    with demo.script('config = { missing_probes = warn } kprobe:crc23 { } begin { }') as s:
        assert "No matches for kprobe crc23" in s.warnings[0]


def test_nothing_stays_when_attaching_fails(demo: Kprobes) -> None:
    with pytest.raises(KprobeError), demo.script("kprobe:fib { } kprobe:0x10 { }"):
        pass
    assert demo.list() == []


#: what every architecture computes of a function's argument and result
SCRIPT = """
    kprobe:{name} {{ @arg = (uint32)arg0; @h = hist((uint32)arg0); @k[(uint32)arg0 & 7, "x"] = sum((uint32)arg0 >> 3); @in[func] = count(); }}
    kretprobe:{name} {{ @out = (uint32)retval; @all[(uint32)retval] = count(); @m = max((uint32)retval);
        @st = stats((uint32)retval); $i = 0; while ($i < 3) {{ $i++; @loop += $i * (uint32)retval; }} }}"""


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if any(p.stem.endswith("-O2") for p in programs_of(name))])
def test_architectures_agree(arch: str) -> None:
    """Interpreter and host code give the same, and it is what the function got and gave.

    The same of numbers that a generated script computes of the argument.
    """
    path = next(p for p in programs_of(arch) if p.stem.endswith("-O2"))
    made = re.sub(r"\$v0 = \S+;", "$v0 = (int64)(uint32)arg0;", Maker(RUNNABLE.index(arch)).script())
    outputs = []
    for engine in ("interpreter", None):
        machine = UnicornMachine.load(str(path))
        name = next(one for one in ("test_arith32", "test_bits", "test_narrow") if one in results(path.stem, machine))
        generated = made.replace("begin", f"kprobe:{name}", 1)
        with (Kprobes(machine) as k, k.script(SCRIPT.format(name=name), engine=engine) as s,
              k.script(generated, engine=engine) as numbers):
            for seed in (5, 1234):
                given = machine.call(name, integer(machine.arch, seed))
        assert (s.maps["arg"], s.maps["out"]) == (1234, given & 0xFFFF_FFFF)
        assert dict(s.maps["in"]) == {name: 2}
        assert s.maps["st"][1] == 2
        assert "@r[" in numbers.output
        outputs.append(s.output + numbers.output)
    assert outputs[0] == outputs[1]


def strings(machine: UnicornMachine, *texts: bytes | int | None) -> int:
    """The address of an array of pointers in the guest: to texts, to addresses, and null ones."""
    size = machine.arch.bits // 8
    array = machine.alloc(size * max(len(texts), 1))
    for number, text in enumerate(texts):
        address = text or 0
        if isinstance(text, bytes):
            address = machine.alloc(len(text) + 1)
            machine.write(address, text + b"\0")
        machine.write(array + size * number, address.to_bytes(size, machine.arch.order.value))
    return array


@ENGINES
@pytest.mark.parametrize("arch", ["arm64", "arm64be", "i386", "ppc"])
def test_strings_of_an_array_are_joined(arch: str, engine: str | None) -> None:
    """Up to a null pointer, or one to no memory or to an empty text; 16 at most, of 1023 bytes each."""
    path = next(p for p in programs_of(arch) if p.stem.endswith("-O2"))
    out = io.StringIO()
    with UnicornMachine.load(str(path)) as m, Kprobes(m) as k:
        name = next(one for one in ("test_arith32", "test_bits", "test_narrow") if one in results(path.stem, m))
        text = f'kprobe:{name} {{ join(arg0); join(arg0, ", "); join((char **)arg0, ""); }}'
        many, long, bad = [b"%d" % n for n in range(20)], b"x" * 2000, (1 << m.arch.bits) - 4096
        arrays = [
            (strings(m, b"ls", b"-l", b"/a b", None, b"behind"), [b"ls", b"-l", b"/a b"]),
            (strings(m, *many), many[:16]),
            (strings(m, b"one", b"two", bad, b"behind"), [b"one", b"two"]),
            (strings(m, b"one", b"", b"behind", None), [b"one"]),
            (strings(m, b"a", long, b"c", *[long] * 13), [b"a", long[:1023], b"c", *[long[:1023]] * 13]),
            (strings(m, "ü\n".encode(), b"\xff", None), ["ü\n".encode(), b"\xff"]),
            (strings(m, None), []),
            (0, []),
            (bad, []),
        ]
        lines = [by.join(shown).decode("utf-8", "surrogateescape") for _, shown in arrays for by in (b" ", b", ", b"")]
        with (k.script(text, engine=engine) as s,
              Script(text, kprobes=k, engine=engine, environment={}, output=JsonOutput(out.write, out.write))):
            for array, _ in arrays:
                m.call(name, array)
    assert s.output == "".join(f"{line}\n" for line in lines) + "\n\n"
    records = [json.loads(line) for line in out.getvalue().splitlines()]
    shown = [one["data"] for one in records if one["type"] == "join"]
    assert shown == [json.loads(json_text(line)) for line in lines]


@ENGINES
def test_a_pointer_that_join_cannot_follow_is_told_where_that_is_asked(demo: Kprobes, engine: str | None) -> None:
    """A null pointer is the end, and nothing to tell."""
    array = strings(demo.machine, b"a", 16, b"c", None)
    for given, helpers in ((array, ["probe_read_user_str"]), (16, ["probe_read_user"]),
                           (strings(demo.machine, b"a", None), [])):
        for wary in (False, True):
            with Script("kprobe:crc32 { join(arg1); }", kprobes=demo, engine=engine, wary=wary, environment={}) as s:
                demo.machine.call("crc32", 0, given, 0)
            told = [line for line in s.errors.splitlines() if "retcode" in line]
            assert set(told) == {f"Additional Info - helper: {one}, retcode: -14" for one in helpers if wary}


def _marked() -> dict[str, bytes]:
    """Architecture -> a program with two places of the marker lab:work, compiled for it."""
    with tarfile.open("tests/data/sdt.tar.xz") as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive.getmembers())
        return {name.removesuffix(".elf"): file.read() for name, file in files if file is not None}


MARKED = _marked()


@ENGINES
@pytest.mark.parametrize("name", MARKED)
def test_arguments_of_markers(name: str, engine: str | None) -> None:
    """As the compiler left them at each of a marker's places; one that it has not is 0."""
    arch = "cortexm" if name.startswith("cortexm") else None
    text = """usdt:*:lab:work { printf("%lld %s %lld %d\\n", arg0, str(arg1), arg2, arg9); @n = max((int64)arg0); }
              usdt:*:lab:busy { @busy = arg0; }"""
    with UnicornMachine.load(MARKED[name], name="sdt", arch=arch) as m, Kprobes(m) as k:
        with k.script(text, engine=engine) as s:
            m.call("call", 1)
        lines = [line.split(" ") for line in s.output.splitlines() if line and line[0] != "@"]
        assert [(line[0], line[-2:]) for line in lines] == [("1", ["-7", "0"]), ("-5", ["-7", "0"])]
        assert s.maps["busy"] == 1  # a variable of the program's, which counts its semaphore
        assert s.maps["n"] == 1
        assert "has 4 arguments: arg9 is 0 there" in s.warnings[0]


@ENGINES
def test_blocks_at_one_place_run_as_they_are_written(demo: Kprobes, engine: str | None) -> None:
    text = """kprobe:fib { printf("a"); } kretprobe:fib { printf("c"); } kprobe:fib { printf("b"); }
              kretprobe:fib { printf("d"); }"""
    with demo.script(text, engine=engine) as s:
        demo.machine.call("fib", 1)
    assert s.output.strip() == "abcd"


def test_globs_mean_no_stubs_of_imports(demo: Kprobes) -> None:
    fib = demo.machine.symbols["fib"].address
    demo.machine.symbols.add("fib2", fib + 4)
    demo.machine.symbols.add("fib@plt", fib + 8)
    names = {"kprobe:fib*": {"fib", "fib2"}, "kprobe:fib@plt": {"fib@plt"}, "kprobe:f*@*": {"fib@plt"}}
    for point, expected in names.items():
        with demo.script(f"{point} {{ @[func] = count(); }}") as s:
            assert {p.text.removeprefix("kprobe:") for one, _ in s._compiled.programs for p in one.points} == expected
    demo.machine.symbols.add("mallok@plt", fib + 12)
    with pytest.raises(ScriptError) as caught:
        demo.script("kprobe:mallok { }")
    assert "HINT: mallok is imported: load a library that has it (--preload LIBRARY)" in caught.value.shown
    with pytest.raises(ScriptError) as caught:
        demo.script("kprobe:mallo { }")
    assert "@plt" not in caught.value.shown


def test_semaphores_of_markers() -> None:
    """A marker that nobody looks at may be skipped: the script is counted while it runs."""
    with UnicornMachine.load(MARKED["arm64"], name="sdt") as m, Kprobes(m) as k:
        semaphore = m.symbols["busy_semaphore"].address
        counts = [m.read(semaphore, 2)[0]]
        with k.script("usdt:*:lab:busy { }"), k.script("usdt:sdt:lab:* { }"):
            counts.append(m.read(semaphore, 2)[0])
        assert [*counts, m.read(semaphore, 2)[0]] == [0, 2, 0]
        with pytest.raises(ScriptError, match="No matches"), k.script("usdt:other:lab:busy { }"):
            pass


def test_places_that_no_function_is_known_to_cover_need_unsafe(demo: Kprobes) -> None:
    """An offset behind its function is another function's code, and is never probed."""
    fib = demo.machine.symbols["fib"]
    demo.machine.symbols.add("bare", fib.address + 4)
    refused = {
        f"uprobe:*:fib+{fib.size} {{ }}": rf"Offset outside the function bounds \('fib' size is {fib.size}\)",
        "kprobe:fib+4096 { }": "Offset outside the function bounds",
        "uprobe:*:bare { }": r"Could not determine boundary for bare \(symbol has size 0\)",
        "uprobe:demo.arm64:0x1000 { }": "Could not resolve address: demo.arm64:0x1000",
        "uprobe:demo.c:17 { }": "line 17 of a source file is uprobe:IMAGE@demo.c:17"}
    for text, why in refused.items():
        with pytest.raises(ScriptError, match=why):
            demo.script(text)
    assert demo.list() == []
    with pytest.raises(ScriptError, match="Offset outside"):
        demo.script("uprobe:*:fib+4096 { }", unsafe=True)
    with pytest.raises(KprobeError, match="0x1000"), demo.script("uprobe:demo.arm64:0x1000 { }", unsafe=True):
        pass  # the machine has the last word
    for text in ("uprobe:*:bare { @ = count(); }", f"uprobe:*:{fib.address:#x} {{ @ = count(); }}"):
        with demo.script(text, unsafe="bare" in text) as s:
            demo.machine.call("fib", 1)
        assert s.maps[""] == 1


def test_symbols_of_a_map_say_no_sizes() -> None:
    """Where no function says how long it is, a script's places are taken as they are."""
    code = UnicornMachine.load(DEMO)
    fib = code.symbols["fib"]
    raw = code.read(fib.address, fib.size)
    with UnicornMachine.from_code(raw, arch="arm64", base=0x10000) as m, Kprobes(m) as k:
        m.symbols.add("start", 0x10000)
        for place in ("start", "start+4", "0x10008"):
            with k.script(f"uprobe:*:{place} {{ }}") as s:
                assert len(s.attachments) == 1


def _debugged() -> dict[str, bytes]:
    """Architecture -> tests/data/debug.c, compiled for it."""
    with tarfile.open("tests/data/debug.tar.xz") as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive.getmembers())
        return {name.removesuffix("-eh.elf"): file.read() for name, file in files
                if file is not None and name.endswith("-eh.elf") and not name.startswith(("sparc", "ppc64"))}


DEBUGGED = _debugged()


@pytest.mark.parametrize("name", DEBUGGED)
def test_all_arguments_are_a_value(name: str) -> None:
    """They are printed, kept, keys, parts of tuples; those on the stack, and of either byte order."""
    text = """
        kprobe:many { print(args); @many[args] = args.i; }
        kprobe:leaf { @ = args; $kept = (1, "x", args); @depth = @.depth; print($kept.2.depth); @[$kept] = 1; }"""
    arch = "cortexm" if name == "cortexm" else None
    outputs = []
    for engine in ("interpreter", None):
        with UnicornMachine.load(DEBUGGED[name], name=name, arch=arch) as m, Kprobes(m) as k:
            with k.script(text.replace("@[", "@key["), engine=engine) as s:
                m.call("many", *range(1, 11))
            table = m.symbols["the_table"].address
        shown = " , ".join(f".{letter} = {n}" for n, letter in enumerate("abcdefghij", 1)).replace(" , ", ", ")
        leaf = f"{{ .table = {table:#x}, .depth = 3 }}"
        assert s.output == (f"{{ {shown} }}\n3\n\n\n@: {leaf}\n@depth: 3\n@key[1, x, {leaf}]: 1\n"
                            f"@many[{{ {shown} }}]: 9\n")
        outputs.append(s.output)
    assert outputs[0] == outputs[1]


BY_VALUE = """
struct two { short x, y; };
struct three { int x, y, z; };
struct big { long words[5]; };
volatile int sink;
struct big c = {{1, 2, 3, 4, -5}}, e = {{6}};
void *memcpy(void *to, const void *from, unsigned long size) {
    for (unsigned long n = 0; n < size; n++)
        ((volatile char *)to)[n] = ((const char *)from)[n];
    return to;
}
void take(struct two a, struct three b, struct big c, char d, struct big e, struct three f) {
    sink = a.x + b.z + c.words[4] + d + e.words[0] + f.y;
}
void _start(void) {
    take((struct two){-1, 2}, (struct three){3, -4, 5}, c, 'x', e, (struct three){7, 8, 9});
}
"""


@ENGINES
@pytest.mark.parametrize("target", ["x86_64-linux-musl", "aarch64-linux-musl", "powerpc-linux-musleabi"])
def test_structures_that_are_passed_by_value(target: str, engine: str | None, tmp_path: Path) -> None:
    """In registers, in memory, behind a pointer: as the calling convention has it."""
    pytest.importorskip("ziglang")
    source, built = tmp_path / "take.c", tmp_path / "take"
    source.write_text(BY_VALUE)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", str(source), "-o", str(built)], check=True, timeout=300)
    text = "uprobe:take:take { print(args); $b = args.b; print(($b.y, args.a, args.c.words[4], args.f.z)); }"
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k, k.script(text, engine=engine) as s:
        m.call("_start")
    shown = ("{ .a = { .x = -1, .y = 2 }, .b = { .x = 3, .y = -4, .z = 5 }, .c = { .words = [1,2,3,4,-5] }, .d = 120, "
             ".e = { .words = [6,0,0,0,0] }, .f = { .x = 7, .y = 8, .z = 9 } }")
    assert s.output.strip().splitlines() == [shown, "(-4, { .x = -1, .y = 2 }, -5, 9)"]


WIDE = """
volatile long long sink;
__attribute__((noinline)) int wide(int a, long long b, signed char c, unsigned long long d, short e, long long f) {
    sink = b + (long long)d + f;
    return a + c + e;
}
void _start(void) {
    sink = wide(1, -0x123456789abLL, -3, 0xfedcba9876543210ULL, -5, 0x1122334455667788LL);
    for (;;);
}
"""


@pytest.mark.parametrize("optimized", [0, 1])
@pytest.mark.parametrize("target", ["arm-linux-musleabihf", "armeb-linux-musleabi", "mips-linux-musleabi",
                                    "mipsel-linux-musleabi", "powerpc-linux-musleabi", "riscv32-linux-musl",
                                    "x86-linux-musl"])
def test_numbers_of_two_words(target: str, optimized: int, tmp_path: Path) -> None:
    """In two registers of a 32-bit guest, on its stack, and behind others of them.

    LLVM writes the registers of big-endian Arm and PowerPC in the other order than they are in. In RISC-V `f` is half in
    a register and half on the stack.
    """
    pytest.importorskip("ziglang")
    source, built = tmp_path / "wide.c", tmp_path / "wide"
    source.write_text(WIDE)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", f"-O{optimized}", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)], check=True, timeout=300)
    shown = "1 -1250999896491 -3 fedcba9876543210 -5 1122334455667788"
    text = 'kprobe:wide { printf("%d %lld %d %llx %d %llx", args.a, args.b, args.c, args.d, args.e, args.f); }'
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k, k.script(text) as s, pytest.raises(KprobeError):
        m.run(max_insns=1000)  # it loops for ever
    assert s.output.strip() == shown


FLOATS = """
#ifdef FP_ABI  /* as gcc says it; clang does not */
__asm__(".gnu_attribute 4, " FP_ABI);
#endif
#ifdef __SOFTFP__  /* without a library for arithmetic */
#define SUM(...) 1.0
#else
#define SUM(...) (__VA_ARGS__)
#endif
struct point { int x; float f; double d; };
volatile double sink;
volatile long long wide;
__attribute__((noinline)) long long big(int a, int b, int c, long long d, double z, int e) {
    sink = SUM(z + a + b + c + e);
    return 0x123456789abcdef0LL + d;
}
__attribute__((noinline)) double mixed(float f, double g, int i) { sink = SUM(f + g + i); return SUM(f * g); }
__attribute__((noinline)) int structure(struct point p, int k) { sink = p.d; return p.x + k; }
__attribute__((noinline)) int many(float a, int b, double c, long d) { sink = SUM(a + c); return b + (int)d; }
struct triple { int a, b, c; };
__attribute__((noinline)) int split(int i, double d, struct triple t, float f, int k) {
    sink = SUM(d + f);
    return i + t.a + t.b + t.c + k;
}
__attribute__((noinline)) int full(float a, double b, float c, double d, double e, double f, double g, double h,
                                   int i, double j, long long k, int l) {
    sink = SUM(a + b + c + d + e + f + g + h + j);
    return i + (int)k + l;
}
void _start(void) {
    struct point p = {3, 1.5f, 2.5};
    struct triple t = {21, 22, 23};
    wide = split(20, 1.0, t, 2.0f, 24);
    wide = full(1, 2, 3, 4, 5, 6, 7, 8, 31, 9, 0x500000006LL, 33);
    wide = big(1, 2, 3, 0x100000004LL, 1.25, 5);
    sink = mixed(1.5f, 2.5, 7);
    wide = structure(p, 4) + many(0.5f, 11, 2.0, 12);
    for (;;);
}
"""


@pytest.mark.parametrize("target", ["x86_64-linux-musl", "aarch64-linux-musl", "x86-linux-musl", "mips-linux-musleabihf",
                                    "mipsel-linux-musleabihf", "arm-linux-musleabihf", "arm-linux-musleabi",
                                    "powerpc-linux-musleabihf", "powerpc-linux-musleabihf 1",
                                    "powerpc-linux-musleabi 2", "riscv32-linux-musl", "riscv64-linux-musl"])
def test_arguments_behind_floating_point_numbers(target: str, tmp_path: Path) -> None:
    """Such numbers have no value, the others have theirs, where the calling convention has one answer for them; a result
    of two words has both."""
    pytest.importorskip("ziglang")
    source, built = tmp_path / "floats.c", tmp_path / "floats"
    target, _, attribute = target.partition(" ")
    said = [f'-DFP_ABI="{attribute}"'] if attribute else []
    if attribute == "2":
        said.append("-D__SOFTFP__")
    source.write_text(FLOATS)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    *said, "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)],
                   check=True, timeout=300)
    shown = {"kprobe:big": "{ .a = 1, .b = 2, .c = 3, .d = 4294967300, .z = null, .e = 5 }",
             "kprobe:mixed": "{ .f = null, .g = null, .i = 7 }",
             "kprobe:many": "{ .a = null, .b = 11, .c = null, .d = 12 }",
             "kprobe:structure": "{ .p = { .x = 3, .f = null, .d = null }, .k = 4 }",
             "kprobe:split": "{ .i = 20, .d = null, .t = { .a = 21, .b = 22, .c = 23 }, .f = null, .k = 24 }",
             "kprobe:full": "{ .a = null, .b = null, .c = null, .d = null, .e = null, .f = null, .g = null, .h = null, "
                            ".i = 31, .j = null, .k = 21474836486, .l = 33 }"}
    refused = dict[str, str]()
    if target.startswith("powerpc") and not attribute:  # with or without registers for such numbers: nothing says which
        refused = {"big": "z", "mixed": "f", "many": "a", "split": "d", "full": "a"}
    results = {"fexit:big": "1311768471758757620", "fexit:mixed": "null"}
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k:
        for function in refused:
            shown.pop(f"kprobe:{function}")
            with pytest.raises(ScriptError, match=r"stdin:1:\d+-\d+: args\.\w+ is (not known: |nowhere)"):
                k.script(f"kprobe:{function} {{ print(args); }}")
        text = " ".join(f"{point} {{ print(args); }}" for point in shown)
        text += " ".join(f"{point} {{ print(retval); }}" for point in results)
        events = [k.event(f"r:big{n} big got=$retval{suffix}") for n, suffix in enumerate(("", ":u64", ":s64", ":x64"))]
        with k.script(text) as s, pytest.raises(KprobeError):
            m.run(max_insns=6000)  # it loops for ever
        assert [[record.args["got"] for record in event] for event in events] == [[1311768471758757620]] * 4
    assert sorted(s.output.strip().splitlines()) == sorted([*shown.values(), *results.values()])


PAIR = """
struct pair { long x; int y; };
__attribute__((noinline)) struct pair twice(long n) { struct pair p = {n, (int)n + 1}; return p; }
__attribute__((noinline)) struct pair (*volatile call)(long) = twice;
void _start(void) { call(5); for (;;); }
"""


@ENGINES
@pytest.mark.parametrize("target", ["x86_64-linux-musl", "aarch64-linux-musl"])
def test_a_structure_that_is_returned(target: str, engine: str | None, tmp_path: Path) -> None:
    """In two registers."""
    pytest.importorskip("ziglang")
    source, built = tmp_path / "pair.c", tmp_path / "pair"
    source.write_text(PAIR.replace("__attribute__((noinline)) struct pair (*", "struct pair (*"))
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)], check=True, timeout=300)
    text = "fexit:twice { print(retval); @ = retval.y; }"
    with (UnicornMachine.load(str(built)) as m, Kprobes(m) as k, k.script(text, engine=engine) as s,
          pytest.raises(KprobeError)):
        m.run(max_insns=1000)  # it loops for ever
    assert s.output.split("\n\n\n")[0] == "{ .x = 5, .y = 6 }" and "@: 6" in s.output


AT_RETURN = """
struct pair { long x; int y; };
struct big { long words[5]; };
volatile long sink;
void *memcpy(void *to, const void *from, unsigned long n) {
    for (char *end = (char *)to + n, *at = to; at < end;) *at++ = *(const char *)from++;
    return to;
}
struct big b = {{1, 2, 3, 4, 5}};
__attribute__((noinline)) long work(long n, char *text, struct pair p) {
    long got = n + p.x + p.y + text[0];
    n = 77; text = 0; p.x = 88; sink = n + p.x;
    if (got > 500) return got;
    return work(got + 300, "deeper", p) + 1;
}
__attribute__((noinline)) struct pair twice(struct pair p, long n) { struct pair q = {p.x + n, p.y}; return q; }
__attribute__((noinline)) long sum(long n, struct big b) { b.words[0] = 5; return b.words[0] + n; }
void _start(void) {
    struct pair p = {20, 3};
    work(4, "text", p); twice(p, 6); sum(7, b);
    for (;;);
}
"""


@ENGINES
@pytest.mark.parametrize("target", ["x86_64-linux-musl", "aarch64-linux-musl", "x86-linux-musl", "mips-linux-musleabihf"])
def test_arguments_of_the_entry_at_fexit(target: str, engine: str | None, tmp_path: Path) -> None:
    """They are the entry's, whatever the function makes of them, each call its own; reg() stays the return's."""
    pytest.importorskip("ziglang")
    source, built = tmp_path / "return.c", tmp_path / "return"
    source.write_text(AT_RETURN)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)], check=True, timeout=300)
    text = "fexit:work { print((args.n, str(args.text), retval)); } fexit:sum { print((args.n, retval)); }"
    if not target.startswith("x86-"):  # where structures are on the stack
        text += "fexit:twice { print(args.n); print(retval.x); }" if "mips" not in target else ""
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k:
        with k.script(text, engine=engine) as s, pytest.raises(KprobeError):
            m.run(max_insns=4000)  # it loops for ever
        with pytest.raises(ScriptError, match="which the function may have changed"):
            k.script("fexit:sum { print(args.b); }")
        with pytest.raises(ScriptError, match=r"fexit:FUNCTION has args"):
            k.script("kretprobe:work { print(args.n); }")
    said = s.output.strip().splitlines()
    pairs = ["6", "26"] if "twice" in text else []
    assert said == ["(443, deeper, 634)", "(4, text, 635)", *pairs, "(7, 12)"], s.output


POWERPC = """
#ifdef RETURNS  /* as gcc says it; clang does not */
__asm__(".gnu_attribute 12, " RETURNS);
#endif
struct two { short x, y; };
struct three { char a, b, c; };
struct six { int n; short m; };
struct big { long words[5]; };
union either { int i; short s[4]; };
volatile int sink;
struct big c = {{1, 2, 3, 4, -5}};
struct two a = {-1, 2};
struct three t = {3, 4, 5};
union either j = {.s = {0, 256, 1, 2}};
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size) {
    for (__SIZE_TYPE__ n = 0; n < size; n++)
        ((volatile char *)to)[n] = ((const char *)from)[n];
    return to;
}
__attribute__((noinline)) struct big take(struct two a, long long w, struct big c, char d, int f, int g, struct two h,
                                          struct three i, union either j, long long k, int l) {
    c.words[1] = a.x + d + f + g + h.y + i.c + j.i + (int)(k + w) + l;
    return c;
}
__attribute__((noinline)) struct two two(int a, struct two b) { struct two r = {b.y, a}; return r; }
__attribute__((noinline)) struct three three(int a) { struct three r = {a, a + 1, a + 2}; return r; }
__attribute__((noinline)) struct six six(int a) { struct six r = {a, a + 1}; return r; }
void _start(void) {
    sink = take(a, 0x100000002LL, c, 'x', 7, 8, two(21, a), t, j, 0x300000004LL, 9).words[4];
    sink = three(31).b + six(41).m;
    for (;;);
}
"""


@ENGINES
@pytest.mark.parametrize("flags", ["-O0 2", "-O1 2", "-O0 1 -msvr4-struct-return", "-O1 1 -msvr4-struct-return", "-O0"])
def test_structures_of_powerpc(flags: str, engine: str | None, tmp_path: Path) -> None:
    """Of a structure the address is passed, in a register or on the stack; one that is returned is in memory at an
    address that the caller gives, or, where the file says so, in one or two registers."""
    pytest.importorskip("ziglang")
    level, *said = flags.split()
    more = [f'-DRETURNS="{said[0]}"', *said[1:]] if said else []
    source, built = tmp_path / "power.c", tmp_path / "power"
    source.write_text(POWERPC)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", "powerpc-linux-musleabi", "-g", level, "-nostdlib",
                    "-static", *more, "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)],
                   check=True, timeout=300)
    total = -1 + ord("x") + 7 + 8 + 21 + 5 + 0x100 + 4 + 2 + 9
    shown = {"fexit:take { print(retval); }": f"{{ .words = [1,{total},3,4,-5] }}"}
    if level == "-O0":  # optimized code does not keep them all
        shown["fentry:take { print(args); }"] = (
            "{ .a = { .x = -1, .y = 2 }, .w = 4294967298, .c = { .words = [1,2,3,4,-5] }, .d = 120, .f = 7, .g = 8, "
            ".h = { .x = 2, .y = 21 }, .i = { .a = 3, .b = 4, .c = 5 }, .j = { .i = 256, .s = [0,256,1,2] }, "
            ".k = 12884901892, .l = 9 }")
    small = {"fexit:two { print(retval); }": "{ .x = 2, .y = 21 }",
             "fexit:three { print(retval); }": "{ .a = 31, .b = 32, .c = 33 }",
             "fexit:six { print(retval.m); print(retval); }": "42\n{ .n = 41, .m = 42 }"}
    if level == "-O0":
        small["fentry:two { print(args); }"] = "{ .a = 21, .b = { .x = -1, .y = 2 } }"
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k:
        if said:
            shown |= small
        else:  # nothing says where small ones are returned, and whether an address comes before the parameters
            for text in small:
                with pytest.raises(ScriptError, match=r"(retval|args\.\w) is not known: "):
                    k.script(text)
        with k.script(" ".join(shown), engine=engine) as s, pytest.raises(KprobeError):
            m.run(max_insns=2500)  # it loops for ever
    lines = "\n".join(shown.values()).splitlines()
    assert sorted(s.output.strip().splitlines()) == sorted(lines)


NAMES = """
#include <stdint.h>
struct named { char name[8]; unsigned char other[4]; uint8_t bytes[2]; };
struct named one = {"square", "abc", {1, 2}};
__attribute__((noinline)) const char *name_of(const struct named *of) { return of->name; }
const char *volatile sink;
void _start(void) { sink = name_of(&one); for (;;); }
"""


@ENGINES
@pytest.mark.parametrize("target", ["aarch64-linux-musl", "powerpc-linux-musleabi", "x86-linux-musl"])
def test_texts_where_characters_are_unsigned(target: str, engine: str | None, tmp_path: Path) -> None:
    """Arrays of characters are texts, as bpftrace has them; an address that a 32-bit guest returns is one word."""
    pytest.importorskip("ziglang")
    source, built = tmp_path / "names.c", tmp_path / "names"
    source.write_text(NAMES)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)], check=True, timeout=300)
    text = """fentry:name_of { print(args.of->name); print(*args.of); @[args.of->other] = count(); }
              fexit:name_of { print(str(retval)); print(retval == kaddr("one")); }"""
    with (UnicornMachine.load(str(built)) as m, Kprobes(m) as k, k.script(text, engine=engine) as s,
          pytest.raises(KprobeError)):
        m.run(max_insns=1000)  # it loops for ever
    shown = ["square", "{ .name = square, .other = abc, .bytes = [1,2] }", "square", "true", "@[abc]: 1"]
    assert [line for line in s.output.splitlines() if line] == shown


@ENGINES
def test_frames_say_their_lines_and_what_is_inlined(engine: str | None) -> None:
    """Of callers the line of the call; functions that are inlined come before the one that has them."""
    with UnicornMachine.load(DEBUGGED["arm64"], name="debug") as m, Kprobes(m) as k:
        at = next(one for one in m.debug.inlined("squared") if m.symbols.covering(one).name == "leaf")
        caller = next(one for one in Path("tests/data/debug.c").read_text().splitlines() if "leaf(table, 3)" in one)
        number = 1 + Path("tests/data/debug.c").read_text().splitlines().index(caller)
        shown = {}
        for mode, more in (("bpftrace", ""), ("perf", ""), ("raw", ""), ("bpftrace", "show_debug_info = 0;")):
            text = f"config = {{ {more} }} uprobe:*:{at:#x} {{ @s = ustack({mode}, 2); print(ustack({mode}, 2)); exit(); }}"
            with k.script(text, engine=engine) as s, pytest.raises(GuestStopped):
                m.call("outer", 0)
            shown[mode + more] = [line.strip() for line in s.output.splitlines() if line.strip()]
            shown[mode + more] = shown[mode + more][:len(shown[mode + more]) // 2]
            assert [frame.inlined for frame in s.maps["s"]] == ([False] * 2 if more or mode == "raw" else [True, False, False])
        symbol = m.symbols["leaf"].address
        inner, leaf, walk = shown["bpftrace"]
        assert inner.startswith("[inlined] squared@") and inner.endswith("debug.c:25")
        assert leaf.startswith(f"leaf+{at - symbol}@") and leaf.endswith("debug.c:28")
        assert walk.startswith("walk+") and walk.endswith(f"debug.c:{number}")
        assert shown["perf"][0] == f"{at:x} squared (inlined)"
        assert shown["perf"][1] == f"{at:x} leaf+{at - symbol} (debug)"
        assert shown["raw"][0] == f"{at:x}"
        assert shown["bpftraceshow_debug_info = 0;"][0] == f"leaf+{at - symbol}"


@pytest.mark.parametrize("name", ["arm64", "arm"])
def test_a_source_line_is_one_place(name: str) -> None:
    """The lowest address of the line in the image that is meant, with the bit of Thumb code."""
    with UnicornMachine.load(DEBUGGED[name], name="debug") as m, Kprobes(m) as k:
        lines = {line.line: line for line in m.debug.lines(m.symbols["leaf"].address, m.symbols.extent(m.symbols["leaf"]))}
        number = max(lines)
        place = min(place.address for place in m.debug.at_line("debug.c", number))
        with k.script(f'uprobe:debug@debug.c:{number} {{ @[reg("pc")] = count(); exit(); }}') as s, pytest.raises(GuestStopped):
            m.call("outer", 0)
        assert dict(s.maps[""]) == {place: 1}
        for image, path in (("other", "debug.c"), ("debug", "bug.c"), ("debug", "debug.c")):
            with pytest.raises(ScriptError, match=f"No code of {path}:9999") as error:
                k.script(f"uprobe:{image}@{path}:9999 {{ }}")
            assert ("there is code at line" in str(error.value)) == ((image, path) == ("debug", "debug.c"))
        with pytest.raises(ScriptError, match=f"No code of debug.c:{number}"):
            k.script(f"uprobe:other@debug.c:{number} {{ }}")


def test_a_marker_is_one_probe_at_all_its_places() -> None:
    with UnicornMachine.load(MARKED["arm64"], name="sdt") as m, Kprobes(m) as k:
        places = [marker for marker in m.debug.markers() if marker.name == "work"]
        names = {marker.name for marker in m.debug.markers() if marker.provider == "lab"}
        with k.script("usdt:*:lab:work { @ = count(); } usdt:*:lab:* { } kprobe:call { }") as s:
            m.call("call", 1)
        assert len(places) > 1
        assert s.maps[""] == len(places)
        assert s.errors == f"Attached {2 + len(names)} probes\n"


def test_maps_show_themselves(demo: Kprobes) -> None:
    """As bpftrace prints them, in the order of their names; notebooks get the same."""
    with demo.script("kprobe:fib { @b[probe] = count(); @a = sum(arg0); if (arg0 > 100) { @never = 1; } }") as s:
        assert repr(s.maps) == "<no maps>"
        demo.machine.call("fib", 3)
    assert repr(s.maps) == "@a: 6\n@b[kprobe:fib]: 3"
    assert s.output.endswith(repr(s.maps) + "\n")
    assert s.maps._repr_html_() == f"<pre>{s.maps!r}</pre>" and repr(s) == "<Script stdin: 1 program>"
    assert s.json() == '{"type": "map", "data": {"@a": 6}}\n{"type": "map", "data": {"@b": {"kprobe:fib": 3}}}\n'


def test_a_machine_that_counts_no_instructions_has_no_such_clock() -> None:
    with Kprobes(paper_machine()) as k:
        with pytest.raises(Unsupported, match="does not count instructions"):
            k.script('begin { printf("%d\\n", nsecs); }', clock="instructions")
        k.script('begin { printf("%d\\n", nsecs); }')


@ENGINES
def test_probe_is_whole_where_one_block_has_several_kinds_of_attach_points(demo: Kprobes, engine: str | None) -> None:
    text = """begin, uprobe:*:crc32, kprobe:fib, end { @[probe] = count(); @ends[probe == "end"] = count();
              if (probe == "uprobe:*:crc32") { @crc = strlen(probe); } }"""
    with demo.script(text, engine=engine) as s:
        demo.machine.call("fib", 1)
        demo.machine.call("crc32", 0, b"a", 1)
    names = [b"begin", b"uprobe:*:crc32", b"kprobe:fib", b"end"]
    assert dict(s.maps[""]) == dict.fromkeys(names, 1)
    assert (dict(s.maps["ends"]), s.maps["crc"]) == ({False: 3, True: 1}, len(names[1]))


@ENGINES
def test_parts_of_a_copied_structure(demo: Kprobes, engine: str | None) -> None:
    """They are not padded as the script's own values are: the next part follows."""
    text = """struct in { uint16_t n; char t[5]; uint8_t u[2]; }; struct out { struct in a; char s[2][3]; struct in m[2]; };
        kprobe:crc32 {
            @o = *(struct out *)arg1; $o = *(struct out *)arg1; print(@o.a.t); @key[$o.m[1].t] = 1;
            @in = $o.m[1]; @u = $o.m[1].u; @s = $o.s[1]; @same = $o.a.t == "ab"; @row = ($o.m[0].n, $o.m[0].t);
            @at = $o.m[0].t[1]; @wide = @o.m; }"""
    raw = (bytes([1, 2, *b"ab\0zz", 3, 4, 0]) + b"123456" + bytes([5, 6, *b"hello", 7, 8, 0, 9, 1, *b"x\0yyy", 2, 3, 0]))
    with demo.script(text, engine=engine) as s:
        demo.machine.call("crc32", 0, raw, len(raw))
    maps = s.maps
    assert s.output.split("\n")[0] == "ab"
    assert (dict(maps["key"]), maps["u"], maps["s"], maps["same"]) == ({b"x": 1}, [2, 3], b"456", True)
    assert (maps["in"], maps["row"], maps["at"]) == ({"n": 0x109, "t": b"x", "u": [2, 3]}, (0x605, b"hello"), ord("e"))
    assert maps["wide"] == [{"n": 0x605, "t": b"hello", "u": [7, 8]}, {"n": 0x109, "t": b"x", "u": [2, 3]}]


@ENGINES
def test_func_at_an_access_is_the_function(engine: str | None) -> None:
    """One key, wherever in the function memory is accessed."""
    with UnicornMachine.load(DEBUGGED["x86_64"]) as m, Kprobes(m) as k:
        table = k.machine.symbols["the_table"].address
        with k.script("watchpoint:the_table:4:rw { @[func] = count(); @at[reg(\"pc\")] = count(); }", engine=engine) as s:
            k.machine.call("table_insert", table, b"width", 640)
            k.machine.call("leaf", table, 3)
        assert set(s.maps[""]) == {"table_insert", "leaf"} and len(s.maps["at"]) > 2


@ENGINES
def test_enumerators_of_the_guest(engine: str | None) -> None:
    """By their names, as values and in conditions; the script's own come first."""
    text = "kprobe:leaf { @same = args.table->kind == HASHED; @one = HASHED; @number = (int32)PLAIN; @cast = (enum kind)7; }"
    with UnicornMachine.load(DEBUGGED["x86_64"]) as m, Kprobes(m) as k:
        with k.script(text, engine=engine) as s:
            m.call("leaf", m.symbols["the_table"].address, 3)
        assert [s.maps[name] for name in ("same", "number")] == [True, 0]
        assert "@cast: HASHED" in s.output and "@one: HASHED" in s.output
        with k.script("enum mine { HASHED = 3 } kprobe:leaf { @ = (int32)HASHED; }", engine=engine) as s:
            m.call("leaf", m.symbols["the_table"].address, 3)
        assert s.maps[""] == 3
        with pytest.raises(ScriptError, match="Unknown identifier: 'HASHEED'"):
            k.script("kprobe:leaf { @ = HASHEED; }")


WRITTEN = {"_ZN4bank8withdrawEPNS_7AccountEi": 0x10000, "_ZN4bank8withdrawEd": 0x10004, "_ZN1b4area17h672610d0173b35e4E": 0x10008}


@pytest.mark.parametrize(("place", "hit"), [
    ('cpp:"bank::withdraw"', [0, 4]), ('"bank::withdraw"', [0, 4]), ('cpp:"bank::withdraw(double)"', [4]), ("bank::withdraw", [0, 4]),
    ("bank::*", [0, 4]), ('cpp:"b*::*"', [0, 4, 8]), ("b::area", [8]), ('"b::*"', [8]), ("_ZN4bank8withdrawEd", [4]),
])
def test_names_as_people_write_them(place: str, hit: list[int]) -> None:
    """C++ names without parameters mean all functions of that name, as in bpftrace; Rust's go as well."""
    with UnicornMachine.from_code("ret; nop; " * 6, arch="arm64", base=0x10000, symbols={n: (a, 4) for n, a in WRITTEN.items()}) as m, \
            Kprobes(m) as k:
        for probe in (f"uprobe:*:{place}", f"kprobe:{place.removeprefix('cpp:')}"):
            with k.script(f"{probe} {{ @[reg(\"pc\")] = count(); }}") as s:
                for address in WRITTEN.values():
                    m.call(address)
            assert sorted(s.maps[""]) == [0x10000 + n for n in hit]


@pytest.mark.parametrize("probe", ['uprobe:*:cpp:"bank::withdrwa"', 'uprobe:*:"bnak::withdraw(int)"', "kprobe:bank::withdrav"])
def test_mistyped_names_of_cpp_get_a_hint(probe: str) -> None:
    """Names of C did; those of C++ and Rust were compared as they are mangled."""
    with UnicornMachine.from_code("ret; nop; " * 6, arch="arm64", base=0x10000, symbols={n: (a, 4) for n, a in WRITTEN.items()}) as m, \
            Kprobes(m) as k, pytest.raises(ScriptError, match=r"; did you mean bank::withdraw\?"):
        k.script(f"{probe} {{ @ = count(); }}")


def test_symbols_are_shown_as_people_write_them() -> None:
    """As in bpftrace, unless the setting cpp_demangle says otherwise."""
    text = 'uprobe:*:"b*::*" { @s[usym(reg("pc"))] = count(); @u[ustack(1)] = count(); }'
    with UnicornMachine.from_code("ret; nop; " * 6, arch="arm64", base=0x10000, symbols={n: (a, 4) for n, a in WRITTEN.items()}) as m, \
            Kprobes(m) as k:
        for setting, names in (("", ["b::area", "bank::withdraw(bank::Account*, int)", "bank::withdraw(double)"]),
                               ("config = { cpp_demangle = false } ", sorted(WRITTEN))):
            with k.script(setting + text) as s:
                for address in WRITTEN.values():
                    m.call(address)
            assert sorted(s.maps["s"]) == names
            for name in names:
                assert f"\n        {name}+0\n" in s.output, s.output
