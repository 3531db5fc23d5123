"""The heap check: each class of mistake and its correct twin on every machine, by host code and by Python; programs
without mistakes do what they did; going back to snapshots; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kprobes import (
    BadArgument,
    GuestFault,
    HeapError,
    Kprobe,
    Kprobes,
    Kretprobe,
    UnicornMachine,
    UnknownSymbol,
    Unsupported,
)
from kprobes.cli import main
from kprobes.heap import HeapCheck, HeapFinding
from kprobes.machine.paper import PaperMachine
from kprobes.machine.unicorn import mended
from kprobes.machine.unicorn.host import hostcode

BIN = Path(__file__).resolve().parent / "bin"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in BIN.glob("*.elf"))
#: case -> (kind, access, bytes accessed, bytes from the block's start to the address; None: there is no block)
FOUND: dict[str, tuple[str, str, int, int | None]] = {
    "overflow_byte": ("overflow", "w", 1, 13),
    "overflow_word": ("overflow", "w", 4, 40),
    "overflow_copy": ("overflow", "w", 1, 50),
    "overflow_string": ("overflow", "w", 1, 10),
    "overflow_shrunk": ("overflow", "w", 1, 24),
    "overread": ("overflow", "r", 2, 18),
    "underread": ("underflow", "r", 2, -2),
    "underwrite": ("underflow", "w", 1, -1),
    "use_after_free_read": ("use-after-free", "r", 4, -1),  # the structure's second field
    "use_after_free_write": ("use-after-free", "w", 4, -1),
    "use_after_realloc": ("use-after-free", "w", 1, 0),
    "double_free": ("double-free", "", 0, 0),
    "free_of_stack": ("invalid-free", "", 0, None),
    "free_of_static": ("invalid-free", "", 0, None),
    "free_of_midst": ("invalid-free", "", 0, 4),
    "mismatched_free": ("mismatched-free", "", 0, 0),
    "mismatched_delete": ("mismatched-free", "", 0, 0),
    "mismatched_array": ("mismatched-free", "", 0, 0),
    "mismatched_size": ("mismatched-free", "", 0, 0),
    "leak": ("leak", "", 0, 0),
    "uninitialized": ("uninitialized-read", "r", 1, 11),
}
#: What is noticed where accesses are not seen: writes.
NOTICED = {case: row for case, row in FOUND.items() if row[1] != "r" and row[0] != "leak"}


@pytest.fixture(params=("host code", "python"))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    elif not hostcode.available():
        pytest.skip("no host code here")
    return str(request.param)


def checked(name: str, *calls: str, **options: Any) -> tuple[list[int], list[HeapFinding]]:
    """Results of a program's functions, and what was found meanwhile."""
    with UnicornMachine.load(BIN / f"{name}.elf") as m, Kprobes(m) as k:
        with k.heap(**options) as heap:
            results = [m.call(call) & 0xFFFFFFFF for call in calls]
        return results, heap.findings


def plain(name: str, *calls: str) -> list[int]:
    with UnicornMachine.load(BIN / f"{name}.elf") as m:
        return [m.call(call) & 0xFFFFFFFF for call in calls]


def test_every_case_is_listed() -> None:
    with UnicornMachine.load(BIN / "x86_64.elf") as m:
        names = {s.name for s in m.symbols}
    assert {f"bad_{case}" for case in FOUND} == {name for name in names if name.startswith("bad_")}
    assert {f"good_{case}" for case in FOUND} < names


@pytest.mark.parametrize("name", NAMES)
def test_mistakes(name: str) -> None:
    """Each is found once, with its place, its block, and both stacks; the guest goes on as without the check."""
    for case, (kind, access, size, offset) in FOUND.items():
        results, findings = checked(name, f"bad_{case}", uninitialized=kind == "uninitialized-read")
        assert results == plain(name, f"bad_{case}"), case
        assert [f.kind for f in findings] == [kind], (
            case, [str(f) for f in findings])
        finding = findings[0]
        assert (finding.access, finding.size if access else 0) == (access, size), str(finding)
        assert not finding.noticed
        if offset is None:
            assert finding.block is None, str(finding)
            continue
        assert finding.block is not None and finding.allocated, str(finding)
        if offset != -1 or case == "underwrite":
            assert finding.address - finding.block.address == offset, str(finding)
        if kind != "leak":
            assert any("cases.c:" in frame for frame in finding.frames), str(finding)
        assert any("cases.c:" in frame for frame in finding.allocated), str(finding)
        assert (finding.freed is not None) == (kind in ("use-after-free", "double-free")), str(finding)
        if finding.freed is not None:
            assert any("cases.c:" in frame for frame in finding.released), str(finding)


@pytest.mark.parametrize("name", NAMES)
def test_correct_twins(name: str) -> None:
    """Nothing is found in any, all in one run; and every function returns what it returned."""
    with UnicornMachine.load(BIN / f"{name}.elf") as m:
        cases = sorted(s.name for s in m.symbols if s.name.startswith("good_"))
    results, findings = checked(name, *cases, "work", uninitialized=True)
    assert [str(f) for f in findings] == [] and results == plain(name, *cases, "work")


@pytest.mark.parametrize("name", ["x86_64", "mips"])
def test_mistakes_where_accesses_are_not_seen(name: str) -> None:
    """Writes are noticed when the block is freed, or at the end; calls are seen as ever."""
    for case, (kind, access, _, offset) in NOTICED.items():
        results, findings = checked(name, f"bad_{case}", leaks=False, accesses=False)
        assert results == plain(name, f"bad_{case}"), case
        assert [(f.kind, f.noticed) for f in findings] == [(kind, bool(access))], (case, [str(f) for f in findings])
        if offset is not None and offset >= 0:
            block = findings[0].block
            assert block is not None and findings[0].address - block.address == offset


def test_an_engine_that_cannot_report_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mended._tried, "mips", False)
    with UnicornMachine.load(BIN / "mips.elf") as m, Kprobes(m) as k:
        with pytest.raises(Unsupported, match="when it reports an access"):
            k.heap(accesses=True)
        with k.heap() as heap:
            assert not heap.watching and "when it reports an access" in heap.why_not_watching


@pytest.mark.quick
def test_two_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host code and Python find the same, word for word."""
    cases = [f"bad_{case}" for case in FOUND]
    texts = []
    for available in (hostcode.available(), False):
        with monkeypatch.context() as patch:
            patch.setattr(hostcode, "available", lambda available=available: available)
            results, findings = checked("x86_64", *cases, "work", uninitialized=True)
            texts.append((results, [str(f) for f in findings]))
    assert texts[0] == texts[1] and len(texts[0][1]) >= len(FOUND)


@pytest.mark.quick
def test_snapshots(way: str) -> None:
    """The heap goes back with the guest, also to one without blocks, and to one in which blocks were alive."""
    with UnicornMachine.load(BIN / "arm64.elf") as m, Kprobes(m) as k:
        before = m.snapshot()
        with k.heap(leaks=False) as heap:
            start = m.snapshot()
            block = m.call("malloc", 100)
            assert m.call("work", 3) and len(heap.blocks) == 1
            alive = m.snapshot()
            for _ in range(3):
                m.restore(alive)
                assert [b.address for b in heap.blocks] == [block]
                m.call("free", block)
                assert heap.blocks == [] and heap.new() == []
            m.restore(start)
            assert heap.blocks == [] and m.call("malloc", 100) == block
            m.call("free", block)
            assert heap.findings == []
            m.call("free", block)
            assert [f.kind for f in heap.new()] == ["double-free"]
            m.restore(alive)
            m.call("free", block)
            assert heap.new() == []
            m.restore(before)
            assert heap.blocks == []
            m.call("bad_overflow_byte")
            assert [f.kind for f in heap.new()] == ["overflow"]
            m.restore(alive)
            m.call("bad_overread")
            assert [f.kind for f in heap.new()] == ["overflow"]


@pytest.mark.quick
def test_raising() -> None:
    """A finding leaves the run as an error, at the instruction that has made the access; the guest can be used again."""
    with UnicornMachine.load(BIN / "riscv64.elf") as m, Kprobes(m) as k, k.heap(raising=True) as heap:
        for case in ("overflow_byte", "double_free", "use_after_free_read", "overflow_byte"):
            with pytest.raises(HeapError, match=r"heap overflow|double free|use after free") as caught:
                m.call(f"bad_{case}")
            finding = caught.value.finding
            assert finding.kind == FOUND[case][0]
            assert m.regs.pc == finding.pc or not finding.access
        assert m.call("good_overflow_byte") == 1 and len(heap.findings) == 3


@pytest.mark.quick
@pytest.mark.parametrize("function", ["free", "realloc"])
def test_what_is_raised_leaves_the_heap_as_it_was(function: str) -> None:
    """Nothing is freed and nothing allocated, so that the same call is wrong in the same way again; a snapshot before the
    damage has none."""
    arguments = (500,) * (function == "realloc")
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, \
            k.heap(raising=True, accesses=False, quarantine=0) as heap:
        start = m.snapshot()
        for _ in range(2):
            block = m.call("malloc", 100)
            m.write(block + 100, b"A")  # as a Python function does that stands for an import
            before = heap.blocks, heap._memory.in_use
            for _ in range(2):
                with pytest.raises(HeapError, match="heap overflow"):
                    m.call(function, block, *arguments)
                assert (heap.blocks, heap._memory.in_use) == before
            m.restore(start)
        assert len(heap.findings) == 1 and heap.findings[0].count == 4


@pytest.mark.quick
def test_a_freed_block_that_was_written_is_raised_before_the_next_one_is_freed() -> None:
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, \
            k.heap(raising=True, accesses=False, quarantine=200) as heap:
        first, second = m.call("malloc", 64), m.call("malloc", 64)
        m.call("free", first)
        m.write(first + 8, b"A")
        for _ in range(2):
            with pytest.raises(HeapError, match="use after free"):
                m.call("free", second)
            assert [block.address for block in heap.blocks] == [second]


@pytest.mark.quick
def test_a_result_that_cannot_be_written_leaves_no_block() -> None:
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
        code = m.symbols["work"].address
        with k.heap({code: "posix_memalign"}, leaks=False) as heap:
            with pytest.raises(GuestFault):
                m.call(code, 8, 16, 50)
            assert heap.blocks == [] and heap._memory.in_use == 0
            address = m.call("malloc", 50)
            assert heap.blocks[0].address == address and heap.findings == []


@pytest.mark.quick
def test_leaks_of_each_run_from_a_snapshot_are_found() -> None:
    """Blocks that were allocated since the snapshot have numbers that others had in the run before."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, k.heap() as heap:
        start = m.snapshot()
        for run in (1, 2):
            m.call("malloc", 10)
            assert [finding.count for finding in heap.leaks()] == [run] and heap.leaks() == []
            m.restore(start)


@pytest.mark.quick
def test_other_probes_at_the_functions() -> None:
    """They see what they always saw: calls, their arguments, and what is returned."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
        sizes, results = list[int](), list[int]()
        k.register(Kprobe(symbol_name="malloc", pre_handler=lambda p, regs: sizes.append(regs.arg(0))))
        with k.heap() as heap:
            k.register(Kretprobe(symbol_name="malloc", handler=lambda ri, regs: results.append(regs.return_value)))
            m.call("good_overflow_copy")
            assert sizes == [100, 50] and len(results) == 2 and all(r % 16 == 0 for r in results)
        assert heap.findings == []
        m.call("good_overflow_copy")
        assert sizes == [100, 50] * 2


@pytest.mark.quick
def test_functions_of_other_names() -> None:
    """By symbol, and by address; without those of usual names."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
        release = m.symbols["free"].address
        with k.heap({"malloc": "malloc", release: "free"}, defaults=False, leaks=False) as heap:
            assert heap.functions == {"malloc": "malloc", hex(release): "free"}
            m.call("bad_overflow_byte")
            assert [f.kind for f in heap.findings] == ["overflow"]
        with pytest.raises(UnknownSymbol, match="no_such"):
            k.heap({"no_such": "malloc"})
        with pytest.raises(BadArgument, match="no allocator function"):
            k.heap({"malloc": "mallok"})
        with pytest.raises(BadArgument, match="no allocator functions"):
            k.heap(defaults=False)
        with pytest.raises(BadArgument, match="zone"):
            k.heap(zone=0)
        m.call("work", 1)


@pytest.mark.quick
def test_blocks_from_before() -> None:
    """What the guest had before the check began is freed by its own allocator, and no mistake."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
        m.map(0x10000000, 0x1000)
        with k.heap() as heap:
            assert m.call("free", 0x10000000) is not None and heap.findings == []
            m.call("free", 0x30000000)  # mapped nowhere
            assert [f.kind for f in heap.findings] == ["invalid-free"]


@pytest.mark.quick
@pytest.mark.parametrize("depth", [8, 80])
def test_depth(depth: int) -> None:
    """Stacks have as many return addresses as was asked for, also more than records keep of one."""
    code = bytes.fromhex("554889e5 4885ff 740a 48ffcf e8efffffff 5d c3"  # a function that calls itself rdi times,
                         "bf10000000 e804000000 31c0 5d c3 c3")  # then the allocator, whose return is the last byte
    with UnicornMachine.from_code(code, arch="x86_64", base=0x10000, symbols={
            "deep": (0x10000, len(code) - 1), "alloc": (0x10000 + len(code) - 1, 1)}) as m, Kprobes(m) as k:
        with HeapCheck(k, {"alloc": "malloc"}, defaults=False, depth=depth) as heap:
            m.call("deep", 90)
        (leak,) = heap.findings
        assert leak.kind == "leak" and len(leak.allocated) == depth


def test_limit_and_quarantine() -> None:
    """No more than the limit is handed out; freed memory is used again, and checked before that."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
        with k.heap(limit=1000, quarantine=0, leaks=False) as heap:
            first = m.call("malloc", 900)
            assert first and m.call("malloc", 101) == 0 and m.call("malloc", 100)
            m.call("free", first)
            assert m.call("malloc", 900) == first
        with k.heap(quarantine=1000, leaks=False) as heap:
            block = m.call("malloc", 100)
            m.call("free", block)
            m.write(block + 50, b"x")  # nobody sees this
            for _ in range(20):
                m.call("free", m.call("malloc", 100))
            assert [(f.kind, f.noticed, f.address) for f in heap.findings] == [("use-after-free", True, block + 50)]
            large = m.call("malloc", 3 << 20)
            m.write(large + (3 << 20), b"x")
            assert [(f.kind, f.address) for f in heap.check()] == [("overflow", large + (3 << 20))]


@pytest.mark.quick
def test_what_is_told() -> None:
    _, findings = checked("arm64", "bad_use_after_free_read", "bad_leak")
    text = str(findings[0])
    assert text.startswith("use after free: read of 4 bytes at 0x") and ", 8 bytes into a block of 16 bytes" in text
    assert "\n  at\n    list+0x" in text or "\n  at\n    bad_use" in text
    assert "\n  allocated by malloc at\n" in text and "\n  freed by free at\n" in text
    with UnicornMachine.load(BIN / "arm64.elf") as m, Kprobes(m) as k, k.heap() as heap:
        assert heap.report() == "no findings" and json.loads(heap.json()) == []
        for _ in range(5):
            m.call("bad_use_after_free_read")
        assert len(heap) == 1 and heap.findings[0].count == 5 and ", 5 times" in heap.report()
        (found,) = json.loads(heap.json())
        assert found["kind"] == "use-after-free" and found["count"] == 5 and found["block"]["size"] == 16
        assert found["stack"][0]["address"] == found["pc"] and "cases.c" in found["stack"][0]["text"]
        assert found["freed"]["stack"] and "1 findings" in repr(heap)


@pytest.mark.quick
def test_many_times(way: str) -> None:
    """An instruction that goes wrong again and again is told of once, and counted."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, k.heap(leaks=False) as heap:
        text = m.call("malloc", 10)
        m.call("length", text)
        for _ in range(100):
            m.call("bad_overread")
        assert sum(f.count for f in heap.findings if f.access == "r" and f.size == 2) == 100


@pytest.mark.quick
def test_leaks() -> None:
    """A block that something leads to is none, unless all are asked for."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, k.heap() as heap:
        m.call("good_leak_that_is_kept")
        assert heap.leaks() == [] and len(heap.blocks) == 2
        assert [f.block.size for f in heap.leaks(reachable=True) if f.block] == [16, 16]
        assert heap.leaks(reachable=True) == []
        m.call("bad_leak")
        assert [f.block.size for f in heap.leaks() if f.block] == [16]  # the other one is led to by this one
        m.call("bad_leak")
        m.call("bad_leak")
        assert [(f.size, f.note) for f in heap.leaks()] == [(32, "2 blocks of one call, 32 bytes")]  # the later ones
        assert heap.leaks() == []
    assert len(heap.findings) == 4


@pytest.mark.quick
def test_an_import_that_nothing_serves() -> None:
    """The check serves it: with a bound function no less."""
    with UnicornMachine.load("examples/notes.arm64") as m, Kprobes(m) as k:
        m.bind("malloc", lambda regs: pytest.fail("not called"))
        with k.heap() as heap:
            book = m.call("book_open")
            m.call("book_add", book, b"sleep", 1)
            m.call("book_add", book, b"work", 0)
            m.call("book_trim", book)
            m.call("book_close", book)
        assert [f.kind for f in heap.findings] == ["double-free"] and "notes.c:69" in heap.report()
        given = HeapCheck(k)
        address = given.allocate(10, "strdup")
        assert [b.function for b in given.blocks] == ["strdup"] and given.blocks[0].address == address
        given.close()
        given.close()


@pytest.mark.quick
def test_machines_that_cannot() -> None:
    with pytest.raises(Unsupported, match="cannot be checked"), Kprobes(PaperMachine(b"\x02\x05")) as k:
        k.heap()


@pytest.mark.quick
def test_command(tmp_path: Path) -> None:
    """Texts, JSON, a file, exit statuses; what cannot be is said in a sentence."""
    def run(*words: str) -> Any:
        return CliRunner().invoke(main, ["heap", *words])

    program = str(BIN / "x86_64.elf")
    told = run(program, "--call", "bad_double_free()", "-o", str(tmp_path / "found.json"))
    assert told.exit_code == 1 and told.stdout.startswith("double free of 0x") and "freed by free at" in told.stdout
    assert [f["kind"] for f in json.loads((tmp_path / "found.json").read_text())] == ["double-free"]
    told = run(program, "--call", "bad_overread()", "--first", "--json")
    assert told.exit_code == 1 and [json.loads(line)["kind"] for line in told.stdout.splitlines()] == ["overflow"]
    assert run(program, "--call", "bad_leak()").exit_code == 1
    assert run(program, "--call", "bad_leak()", "--no-leaks").exit_code == 0
    assert run(program, "--call", "bad_uninitialized()").exit_code == 0
    told = run(program, "--call", "bad_uninitialized()", "--uninitialized")
    assert told.exit_code == 1 and "never written" in told.stdout
    told = run(str(BIN / "mips.elf"), "--call", "work(1)")
    assert told.exit_code == 0 and told.stdout == "no findings\n"
    told = run("examples/demo.x86_64", "--call", "crc32(0, \"a\", 1)")
    assert told.exit_code == 2 and "no allocator functions" in told.stderr and len(told.stderr.splitlines()) == 1
    told = run(program, "--call", "work(1)", "-f", "take")
    assert told.exit_code == 2 and "PLACE=LIKE" in told.stderr
    assert "no allocator function" in run(program, "--call", "work(1)", "-f", "take=mallok").stderr


@pytest.mark.quick
def test_realloc() -> None:
    """Contents move along; what is no block is told of, and so is what another family has allocated."""
    with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k, k.heap(leaks=False) as heap:
        block = m.call("malloc", 20)
        m.write(block, bytes(range(20)))
        longer = m.call("realloc", block, 5000)
        assert longer not in (0, block) and m.read(longer, 20) == bytes(range(20)) and heap.findings == []
        assert m.call("realloc", block, 10) == 0 and m.call("realloc", longer + 16, 10) == 0
        assert m.call("realloc", longer, 0) == 0 and m.call("realloc", longer, 10) == 0
        made = m.call("_Znwm", 8)
        m.write(made, b"12345678")
        assert m.read(m.call("realloc", made, 100), 8) == b"12345678"
        assert [f.kind for f in heap.findings] == ["double-free", "invalid-free", "mismatched-free"]


@pytest.mark.quick
def test_functions_that_read_on() -> None:
    """C libraries' functions read words and vectors behind a text, aligned or not; never what was freed."""
    for name, overflows in (("strlen_by_words", 1), ("parse", 3)):
        with UnicornMachine.load(BIN / "x86_64.elf") as m, Kprobes(m) as k:
            code = 0x10000000
            m.map(code, m.page_size, "rx")
            m.write(code, bytes.fromhex("488b07c3"))  # mov rax, [rdi]; ret
            m.symbols.add(name, code, 4)
            with k.heap(zone=128, leaks=False) as heap:
                block, gone = m.call("malloc", 24), m.call("malloc", 24)
                m.call("free", gone)
                for address in (block + 20, block + 24, block + 24 + 64, gone + 20):
                    m.call(code, address)
            assert [(f.kind, f.count) for f in heap.findings] == [("overflow", overflows), ("use-after-free", 1)]


@pytest.mark.quick
@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_stacks_of_a_library(machine: str) -> None:
    """Imports' stubs have no call frame information; their callers' callers are found all the same."""
    with UnicornMachine.load(EXAMPLES / f"tags.{machine}") as m, Kprobes(m) as k, k.heap(raising=True) as heap:
        for length in (3, 5):
            text = b"T%c%s" % (length, b"a" * length)
            with pytest.raises(HeapError) as caught:
                m.call("tags_read", b"TG" + text + b"D\0A\1z", 2 + len(text) + 5)
            finding = caught.value.finding
            named = [[frame.partition("+")[0] for frame in stack]
                     for stack in (finding.frames, finding.allocated, finding.released)]
            assert named == [[name, "tags_read"] for name in ("replace_letter", "keep_text", "drop_text")]
        assert heap.findings[0].count == 2 and finding.count == 1  # each run's own is raised
