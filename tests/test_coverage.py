"""Coverage: blocks and edges on every guest, by host code and by Python alike; probes, snapshots and other memory in
between; files."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of, results
from click.testing import CliRunner

from kprobes import BadArgument, GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine, UnknownSymbol, Unsupported
from kprobes.cli import main
from kprobes.machine.paper import PaperMachine
from kprobes.machine.unicorn.blockcounts import HookedBlockCounts
from kprobes.machine.unicorn.host import hostcode
from kprobes.tracing import coverfiles
from kprobes.tracing.coverage import Coverage
from kprobes.tracing.coverfiles import Block, Module, SourceCoverage, coverage_page

LOOP = bytes.fromhex("31c0 01f8 ffcf 75fa c3")  # xor eax, eax; add eax, edi; dec edi; jne to the second; ret


@pytest.fixture(params=("host code", "python"))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    elif not hostcode.available():
        pytest.skip("no host code here")
    return str(request.param)


def loop() -> UnicornMachine:
    return UnicornMachine.from_code(LOOP, arch="x86_64", symbols={"sum": (0x10000, len(LOOP))})


@pytest.mark.quick
def test_counts(way: str) -> None:
    with loop() as m, Kprobes(m) as k, k.coverage() as c:
        assert m.call("sum", 10) == 55
        assert [(b.address, b.size, b.count) for b in c.blocks] == [(0x10000, 8, 1), (0x10002, 6, 9), (0x10008, 1, 1)]
        assert [b.address for b in c.new()] == [0x10000, 0x10002, 0x10008] and c.new() == []
        assert sorted(n for n in c.bitmap if n) == [1, 1, 1, 8] and len(c.bitmap) == 1 << 16
        c.clear()
        assert not any(c.bitmap) and c.blocks[1].count == 9
        m.call("sum", 300)
        assert c.blocks[1].count == 9 + 299 and max(c.bitmap) == 298 % 256
        c.reset()
        assert [b.count for b in c.blocks] == [0, 0, 0] and not any(c.bitmap) and len(c) == 3 and "3 blocks" in repr(c)
        c.close()
        m.call("sum", 3)
        assert [b.count for b in c.blocks] == [0, 0, 0]


@pytest.mark.parametrize("arch", [a for a in RUNNABLE if programs_of(a)])
def test_programs(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and counts with coverage are those without; host code and Python count the same; so does a run with every
    entry probed, but for the blocks that breakpoints split."""
    path = programs_of(arch)[-1]
    seen = []
    for available in (hostcode.available(), False):
        with monkeypatch.context() as patch:
            patch.setattr(hostcode, "available", lambda available=available: available)
            m = UnicornMachine.load(path)
            table = results(path.stem, m)
            with Kprobes(m) as k, k.coverage() as c:
                for name, values in table.items():
                    if name != "run_all":
                        assert m.call(name, 1) & 0xFFFFFFFF == values[0] & 0xFFFFFFFF, name
                seen.append((c.blocks, bytes(c.bitmap)))
    assert seen[0] == seen[1] and len(seen[0][0]) > 100
    covered = addresses(seen[0][0])
    m = UnicornMachine.load(path)
    with Kprobes(m) as k, k.coverage() as c:
        names = [name for name in table if name != "run_all"]
        probes = [Kprobe(symbol_name=name, pre_handler=lambda p, regs: None) for name in names]
        k.register_all(probes)
        for name in names:
            assert m.call(name, 1) & 0xFFFFFFFF == table[name][0] & 0xFFFFFFFF
        assert all(any(b.address <= p.address < b.address + b.size for b in c.blocks) for p in probes)
        assert not [hex(b.address) for b in c.blocks if b.address not in covered]
        assert all(m.parts.memory.own.has(m.parts.memory.windows.place(b.address)) is False for b in c.blocks)


def addresses(blocks: Any) -> set[int]:
    return {addr for block in blocks for addr in range(block.address, block.address + block.size)}


@pytest.mark.quick
def test_a_table_that_grows(way: str) -> None:
    """Thousands of blocks: jumps over a byte each."""
    count = 9000
    m = UnicornMachine.from_code(b"\xeb\x01\xcc" * count + b"\xc3", arch="x86_64", base=0x10000, symbols={"f": 0x10000})
    with Kprobes(m) as k, k.coverage() as c:
        for n in range(1, 4):
            m.call("f")
            blocks = c.blocks
            assert (len(blocks) >= count and {b.count for b in blocks} == {n}
                    and addresses(blocks) >= set(range(0x10000, 0x10000 + 3 * count, 3)))


@pytest.mark.quick
def test_snapshots_and_other_code(way: str) -> None:
    """Restores count on; a block of other code at the same place is the same block."""
    with loop() as m, Kprobes(m) as k, k.coverage() as c:
        s = m.snapshot()
        for _ in range(3):
            m.restore(s)
            m.call("sum", 5)
        assert [b.count for b in c.blocks] == [3, 12, 3]
        m.write(0x10000, bytes.fromhex("31c0 c3"))
        m.call("sum", 5)
        assert c.blocks[0].count == 4
        other = k.coverage()
        m.restore(s)
        m.call("sum", 5)
        assert [b.count for b in other.blocks] == [1, 4, 1] and [b.count for b in c.blocks] == [5, 16, 4]


def drcov(data: bytes) -> tuple[list[list[str]], list[tuple[int, int, int]]]:
    """A reader made from the format's description: header lines, a table of modules, then blocks of 8 bytes (offset,
    size, module)."""
    head, mark, rest = data.partition(b"BB Table: ")
    lines = head.decode().splitlines()
    assert mark and lines[:2] == ["DRCOV VERSION: 2", "DRCOV FLAVOR: drcov"]
    words = lines[2].removeprefix("Module Table: version 2, count ")
    assert lines[3] == "Columns: id, base, end, entry, path" and len(lines) == 4 + int(words)
    count, _, blocks = rest.partition(b" bbs\n")
    assert len(blocks) == 8 * int(count)
    return [line.split(", ", 4) for line in lines[4:]], list(struct.iter_unpack("<IHH", blocks))


@pytest.mark.quick
def test_closed_it_is_told_of_no_mappings_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that opens and closes thousands of them does not pay for each at every mapping."""
    with loop() as m, Kprobes(m) as k:
        told: list[Any] = []
        plain = HookedBlockCounts._look
        monkeypatch.setattr(HookedBlockCounts, "_look", lambda self: (told.append(self), plain(self))[1])
        with k.coverage() as one:
            m.call("sum", 3)
            m.map(0x7000_0000, m.page_size, "rw")
            assert told
        told.clear()
        m.map(0x7100_0000, m.page_size, "rw")
        assert not told
        assert len(one) == 3


@pytest.mark.quick
def test_drcov(tmp_path: Path) -> None:
    m = UnicornMachine.load("examples/demo.x86_64")
    m.map(0x7000000000, 0x1000)
    m.write(0x7000000000, LOOP)
    with Kprobes(m) as k, k.coverage() as c:
        m.call("crc32", 0, b"hello", 5)
        m.call(0x7000000000, 3)
        c.save(tmp_path / "x.drcov")
        modules, rows = drcov((tmp_path / "x.drcov").read_bytes())
        assert ([row[0].strip() for row in modules] == ["0", "1"] and modules[0][4].startswith("demo")
                and "memory" in modules[1][4])
        assert sorted((int(modules[n][1], 16) + start, size)
                      for start, size, n in rows) == [(b.address, b.size) for b in c.blocks]
        c.save(tmp_path / "edges", format="afl")
        assert (tmp_path / "edges").read_bytes() == bytes(c.bitmap)
        with pytest.raises(BadArgument, match="format"):
            c.save(tmp_path / "x.txt")
        with pytest.raises(Unsupported, match="line tables"):
            c.save(tmp_path / "x.info")


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_drcov_of_raw_images(arch: str, tmp_path: Path) -> None:
    """The module is the image, by its name and with its size; what is in no image is in the memory that was mapped."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m:
        symbol = m.symbols["fib"]
        code = m.arch.pointers.code_address(symbol.address | symbol.mode, m.read)
        base, entry = code.addr & -m.page_size, code.addr | code.mode
        data = m.read(base, code.addr + 64 - base)
    (path := tmp_path / "fw, of.bin").write_bytes(data)
    for options, name in (({}, "fw, of.bin"), ({"name": "boot"}, "boot")):
        with UnicornMachine.load_raw(path, arch=arch, base=base, **options) as m:  # type: ignore[arg-type]
            assert m.modules == {name: (base, base + len(data))} and m.symbols.main == name
            m.map(there := base + (1 << 20), 4 * m.page_size)
            m.write(there, data)
            with Kprobes(m) as k, k.coverage() as c:
                for start in (entry, entry - base + there):
                    with suppress(GuestFault, GuestTimeout):  # where it calls what is not in the image
                        m.regs.go(start)
                        m.run(**{"until": start + 8} if arch.startswith("sparc") else {"max_insns": 4})  # no counting
                c.save(tmp_path / "x.drcov")
            modules, rows = drcov((tmp_path / "x.drcov").read_bytes())
            assert [(int(row[1], 16), int(row[2], 16), row[4]) for row in modules] == [
                (base, base + len(data), name), (there, there + 4 * m.page_size, f"memory at {there:#x}")]
            assert sorted((int(modules[n][1], 16) + start, size)
                          for start, size, n in rows) == [(b.address, b.size) for b in c.blocks]
            assert {n for _, _, n in rows} == {0, 1}


@pytest.mark.quick
def test_drcov_beside_an_image(tmp_path: Path) -> None:
    """What is executed behind an image, in the page that it ends in, is not the image's."""
    with UnicornMachine.load_raw(b"\x90" * 16, arch="x86_64", base=0x400000, name="boot") as m:
        m.write(0x400800, LOOP)
        with Kprobes(m) as k, k.coverage() as c:
            m.run(0x400000, until=0x400010)
            m.call(0x400800, 3)
            c.save(tmp_path / "x.drcov")
        modules, rows = drcov((tmp_path / "x.drcov").read_bytes())
    assert [(int(row[1], 16), int(row[2], 16), row[4]) for row in modules] == [
        (0x400000, 0x400010, "boot"), (0x400010, 0x401000, "memory at 0x400010")]
    assert sorted((int(modules[n][1], 16) + start, size) for start, size, n in rows) == [
        (b.address, b.size) for b in c.blocks]
    assert {n for _, _, n in rows} == {0, 1}


SOURCE = """int classify(int n) {
    if (n < 0)
        return -1;
    int total = 0;
    for (int i = 0; i < n; i++)
        total += i;
    return total;
}
"""


@pytest.mark.parametrize("target", ("x86_64-freestanding-none", "riscv64-freestanding-none",
                                    "mips-freestanding-eabihf"))
def test_lcov(target: str, tmp_path: Path) -> None:
    """Of a program compiled with line tables: what ran, how often, and what did not."""
    pytest.importorskip("ziglang")
    (tmp_path / "f.c").write_text(SOURCE)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O1", "-fno-vectorize",
                    "-fno-unroll-loops", "-nostdlib", "-static",
                    "-Wl,-e,classify", "-o", "f.elf", "f.c"], cwd=tmp_path, check=True, capture_output=True)
    m = UnicornMachine.load(tmp_path / "f.elf")
    with Kprobes(m) as k, k.coverage() as c:
        for _ in range(3):
            m.call("classify", -5 & m.arch.mask)
        c.save(tmp_path / "f.info")
        lines = dict(line[3:].split(",") for line in (tmp_path / "f.info").read_text().splitlines()
                     if line.startswith("DA:"))
        assert {"2", "5", "6"} & lines.keys() and max(lines.values(), key=int) == "3" and lines.get("6", "0") == "0"
        text = (tmp_path / "f.info").read_text()
        assert text.startswith("TN:\nSF:") and f"SF:{tmp_path}/f.c\n" in text and text.endswith("end_of_record\n")
        assert f"LF:{len(lines)}\n" in text and f"LH:{sum(n != '0' for n in lines.values())}\n" in text


GUEST = Path(__file__).resolve().parent / "heap" / "bin" / "x86_64.elf"


@pytest.mark.quick
def test_modules_and_functions(way: str) -> None:
    """Only blocks there are counted, in the bitmap too; names that nothing has are refused."""
    m = UnicornMachine.load("examples/demo.x86_64", name="demo")
    m.map(0x7000000000, 0x1000)
    m.write(0x7000000000, LOOP)
    with Kprobes(m) as k:
        with k.coverage() as everything, k.coverage(modules="dem*") as image, k.coverage(functions=["crc*"]) as function:
            m.call("crc32", 0, b"hello", 5)
            m.call(0x7000000000, 3)
            m.call("table_init")
        start, end = m.modules["demo"]
        assert image.blocks == [b for b in everything.blocks if start <= b.address < end] != everything.blocks
        name = m.symbols.covering
        assert function.blocks == [b for b in everything.blocks if (s := name(b.address)) and s.name[:3] == "crc"]
        assert 0 < sum(function.bitmap) < sum(image.bitmap) < sum(everything.bitmap)
        assert len(function.new()) == len(function) < len(image)
        with pytest.raises(BadArgument, match=r"no module is called 'nine'.*there are demo"):
            k.coverage(modules="nine")
        with pytest.raises(UnknownSymbol, match="no_such"):
            k.coverage(functions="no_such*")
        functions = {s.name for s in m.symbols if s.kind != "object"}
        data = next(s.name for s in m.symbols if s.name not in functions)
        with pytest.raises(UnknownSymbol, match="function"):
            k.coverage(functions=data)


@pytest.mark.quick
def test_edges(way: str) -> None:
    """One by one, with counts; the table grows; resets keep them known."""
    with loop() as m, Kprobes(m) as k, k.coverage(edges=True) as c:
        m.call("sum", 10)
        assert [(e.start, e.target, e.count) for e in c.edges] == [
            (0x10000, 0x10002, 1), (0x10002, 0x10002, 8), (0x10002, 0x10008, 1)]
        c.clear()
        m.call("sum", 3)
        assert [e.count for e in c.edges] == [2, 9, 2]
        c.reset()
        assert [e.count for e in c.edges] == [0, 0, 0]
        with k.coverage() as other, pytest.raises(BadArgument, match="edges=True"):
            assert other.edges
    count = 9000
    m = UnicornMachine.from_code(b"\xeb\x01\xcc" * count + b"\xc3", arch="x86_64", base=0x10000, symbols={"f": 0x10000})
    with Kprobes(m) as k, k.coverage(edges=True) as c:
        for n in range(1, 4):
            c.clear()
            m.call("f")
            edges = c.edges
            assert len(edges) >= count and {e.count for e in edges} == {n}
            assert [e.target for e in edges[:-1]] == [e.start for e in edges[1:]]


@pytest.mark.quick
def test_classes() -> None:
    with loop() as m, Kprobes(m) as k, k.coverage() as c:
        seen = set[int]()
        for n in (1, 2, 3, 4, 5, 9, 17, 33, 40, 150, 255):
            c.clear()
            m.call("sum", n)
            assert [bool(b) for b in c.classes] == [bool(b) for b in c.bitmap]
            seen |= {*zip(c.bitmap, c.classes, strict=True)}
    expected = {0: 0, 1: 1, 2: 2, 3: 4, 7: 8, 8: 16, 15: 16, 16: 32, 31: 32, 38: 64, 127: 64, 148: 128, 253: 128}
    assert all(expected[count] == kind for count, kind in seen if count in expected) and len(seen) > 8


@pytest.mark.quick
def test_lcov_with_functions(tmp_path: Path) -> None:
    """Lines and functions of what was executed, and of what was not; of wanted functions only."""
    with UnicornMachine.load(GUEST) as m, Kprobes(m) as k:
        with k.coverage() as c, k.coverage(functions="good_overflow_b*") as some:
            for _ in range(3):
                m.call("good_overflow_byte")
        records = lcov(c.contents("lcov").decode())
        assert [*records] == ["cases.c"]
        functions, lines = records["cases.c"]
        assert functions["good_overflow_byte"][1] == 3 and functions["malloc"][1] == 3 and functions["walk"][1] == 0
        line = functions["good_overflow_byte"][0]
        text = (GUEST.parent.parent / "cases.c").read_text().splitlines()
        assert "GOOD(overflow_byte)" in text[line - 1] and lines[line] == 3
        assert "walk(" in "".join(text[functions["walk"][0] - 2:functions["walk"][0]])
        assert {*lcov(some.contents("lcov").decode())["cases.c"][0]} == {"good_overflow_byte"}
        c.save(tmp_path / "x.html", sources=GUEST.parent.parent)
        (shown,) = page_files(tmp_path / "x.html")
        assert shown["name"] == "cases.c" and shown["text"] == text
        counts = dict(zip(shown["lines"][::2], shown["lines"][1::2], strict=True))
        assert counts[line] == 3 and "GOOD(overflow_byte) { return fill(13); }" in shown["text"][line - 1]
        assert ["good_overflow_byte", line, 3] in shown["functions"]
        page = (tmp_path / "x.html").read_text()
        parser = Tags()
        parser.feed(page)
        assert parser.open == [] and "files could not be read" not in page
        c.save(tmp_path / "y.html", sources="nowhere")
        assert page_files(tmp_path / "y.html")[0]["text"] is None
        assert "1 of 1 files could not be read" in (tmp_path / "y.html").read_text()


def test_names_of_cpp_on_the_page_are_demangled_unless_told_otherwise(tmp_path: Path) -> None:
    """By the call and by the command, whose JSON has names as its table has them."""
    name = "_Z4areaRK5Shape"
    sources = {"shape.cpp": SourceCoverage(Counter({3: 1}), {name: (3, 1)})}
    for demangle, shown in ((True, "area(Shape const&)"), (False, name)):
        (path := tmp_path / "x.html").write_bytes(coverage_page(sources, tmp_path, demangle))
        assert page_files(path)[0]["functions"] == [[shown, 3, 1]]
    (raw := tmp_path / "x.bin").write_bytes(bytes.fromhex("c0035fd6"))
    (symbols := tmp_path / "x.txt").write_text(f"0000000000010000 0000000000000004 T {name}\n")
    words = ["cover", str(raw), "--arch", "arm64", "--base", "0x10000", "--symbols", str(symbols), "--call", f"{name}(1)", "--json"]
    for options, shown in ((["-C"], "area(Shape const&)"), ([], name)):
        done = CliRunner().invoke(main, [*words, *options])
        assert json.loads(done.stdout.splitlines()[-1])["function"] == shown


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_that_debug_information_names_as_source_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.c")
    (path := tmp_path / "x.html").write_bytes(coverage_page({"pipe.c": SourceCoverage(Counter({3: 1}), {})}, tmp_path))
    assert page_files(path)[0]["text"] is None


def page_files(path: Path) -> list[dict[str, Any]]:
    """The files that a page of coverage draws."""
    found = re.search(r'<script type="application/json">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found
    return list(json.loads(found[1])["files"])


def lcov(text: str) -> dict[str, tuple[dict[str, tuple[int, int]], dict[int, int]]]:
    """A strict reader of tracefiles: file -> ({function: (line, count)}, {line: count})."""
    found = {}
    for record in text.split("end_of_record\n")[:-1]:
        rows = [row.partition(":")[::2] for row in record.splitlines()]
        assert [kind for kind, _ in rows[:2]] == ["TN", "SF"]
        starts = {name: int(line) for line, _, name in (v.partition(",") for kind, v in rows if kind == "FN")}
        counts = {name: int(count) for count, _, name in (v.partition(",") for kind, v in rows if kind == "FNDA")}
        lines = {int(line): int(count) for line, _, count in (v.partition(",") for kind, v in rows if kind == "DA")}
        sums = {kind: int(v) for kind, v in rows if kind in ("FNF", "FNH", "LF", "LH")}
        assert starts.keys() == counts.keys()
        assert sums == {"FNF": len(counts), "FNH": sum(map(bool, counts.values())), "LF": len(lines),
                        "LH": sum(map(bool, lines.values()))}
        found[rows[1][1]] = {name: (starts[name], counts[name]) for name in starts}, lines
    return found


class Tags(HTMLParser):
    """Elements that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.skipif(shutil.which("genhtml") is None, reason="Debian's package lcov is not installed")
def test_genhtml(tmp_path: Path) -> None:
    """lcov's own tools read what is written, and count the same."""
    with UnicornMachine.load(GUEST) as m, Kprobes(m) as k, k.coverage() as c:
        m.call("work", 1)
        c.save(tmp_path / "x.info")
    functions, lines = lcov((tmp_path / "x.info").read_text())["cases.c"]
    done = subprocess.run(["genhtml", str(tmp_path / "x.info"), "-o", str(tmp_path / "html")],
                          cwd=GUEST.parent.parent, capture_output=True, text=True, check=True)
    hit, entered = sum(map(bool, lines.values())), sum(count > 0 for _, count in functions.values())
    assert f"({hit} of {len(lines)} lines)" in done.stdout and f"({entered} of {len(functions)} functions)" in done.stdout


@pytest.mark.quick
def test_ends_of_blocks_in_drcov() -> None:
    """A block ends where its module does, and goes on in the next one; no row is larger than the format can say."""
    blocks = [Block(0x1000, 0x30, 1), Block(0x2000, 0x20000, 2)]
    images = [Module(0x1000, 0x1010, "a"), Module(0x1010, 0x1020, "b"), Module(0x2000, 0x40000, "c")]
    modules, rows = drcov(coverfiles.drcov(blocks, images, [], 0x1000))
    assert [row[4] for row in modules] == ["a", "b", "c"]
    assert rows == [(0, 0x10, 0), (0, 0x10, 1), (0, 0xFFFF, 2), (0xFFFF, 0xFFFF, 2), (0x1FFFE, 2, 2)]


@pytest.mark.quick
def test_machines_that_do_not_tell() -> None:
    with pytest.raises(Unsupported, match="which blocks"):
        Coverage(PaperMachine(b"\x02\x05"))
