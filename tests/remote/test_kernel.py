"""Real kernels, as tests/fetch_kernel gets them: $KPROBES_KERNEL_DIR."""

from __future__ import annotations

from types import ModuleType

import pytest

from kprobes import Kprobe, Kprobes, Program, Unsupported

ROUNDS = 100


def test_as_many_hits_as_its_own_kprobes_count(kernel: object, example: ModuleType) -> None:
    """On the same work: of functions, and of returns; with arguments, strings of a program's, results, and the stack."""
    seen = example.count(kernel, ROUNDS)
    assert seen.hits == [2 * ROUNDS, ROUNDS, 2 * ROUNDS] == example.count_by_itself(kernel, ROUNDS)
    assert seen.names == {"/greeting"} and seen.asked == [37, 1000] * ROUNDS
    assert seen.sizes == [37, len(example.GREETING) - 37] * ROUNDS
    assert seen.stack[0].startswith("vfs_read") and seen.stack[1].startswith("ksys_read+")


def test_a_module_comes_and_goes(kernel: object, example: ModuleType) -> None:
    """Its probes are hit as often as its functions run, and are gone afterwards; twice."""
    for _ in range(2):
        hits, gone = example.module(kernel)
        assert hits[0] > 0 and hits[1] == 1 and gone


def test_its_text_stays_as_it_is(kernel: object, example: ModuleType) -> None:
    """Breakpoints are the stub's alone: a kernel that patches its own text beneath them finds what it has put there."""
    m = kernel.m  # type: ignore[attr-defined]
    kernel.tell(example.WORK, 10)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="ksys_read")
        k.register(probe)
        start = m.symbols["ksys_read"].address
        assert m.read(start, 16) != m._target.read(start, 16)
        kernel.answered()  # type: ignore[attr-defined]
        kernel.wait()  # type: ignore[attr-defined]
        assert probe.nhit == 20
        # its own kprobe stands behind ours, and both count
        assert example.count_by_itself(kernel, 10) == [20, 10, 20]
        assert probe.nhit >= 40


def test_where_a_program_runs_the_kernel_gives_no_memory(kernel: object, example: ModuleType) -> None:
    """What to do is said; what was probed before is as it was."""
    m = kernel.m  # type: ignore[attr-defined]
    source = m._pages._source
    free, source._free = source._free, []
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="vfs_read")
        with pytest.raises(Unsupported, match="a function of the kernel first"):
            k.register(probe)
        source._free = free
        k.register(probe)
        kernel.do(example.WORK, 3)  # type: ignore[attr-defined]
        assert probe.nhit == 6


def test_it_is_called(kernel: object, example: ModuleType) -> None:
    """A function of the kernel's, by its name."""
    m = kernel.m  # type: ignore[attr-defined]
    kernel.tell(example.WORK, 1)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    assert m.call("strlen", b"seven", timeout=20) == 5
    kernel.answered()  # type: ignore[attr-defined]
    kernel.wait()  # type: ignore[attr-defined]


def test_programs_run_in_it(kernel: object, example: ModuleType) -> None:
    """They count what the kernel's own kprobes count, the guest stops for none of it, and leave its text as it was."""
    m = kernel.m  # type: ignore[attr-defined]
    start = m.symbols["vfs_read"].address
    before = m.read(start, 16)
    for _ in range(2):
        assert example.in_the_kernel(kernel, 1000)[:2] == (1001, 2000)
        assert m.read(start, 16) == before and not m._memory._jumps
    assert example.count_by_itself(kernel, 10) == [20, 10, 20]


def test_programs_that_read_memory_run_by_stops(kernel: object, example: ModuleType) -> None:
    """Nobody knows what is mapped in a kernel: a fault there would be the guest's. Other probes there stop, too."""
    m = kernel.m  # type: ignore[attr-defined]
    reading = Program.from_c("""
#include <kprobes/bpf.h>
u64 hits, word;
SEC("kprobe/vfs_read") int on_read(struct pt_regs *ctx)
{
    hits += 1;
    bpf_probe_read(&word, 8, (void *)PT_REGS_SP(ctx));
    return 0;
}
""")
    kernel.tell(example.READS, 10)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    seen: list[int] = []
    with Kprobes(m) as k, k.attach(reading) as a:
        assert "it is not known what a kernel has mapped" in a.why_python["on_read"]
        with k.attach(Program.from_c(example.PROGRAM)) as beside:
            k.register(Kprobe(symbol_name="vfs_read", pre_handler=lambda p, regs: seen.append(regs.arg(2))))
            kernel.answered()  # type: ignore[attr-defined]
            assert seen == [1000, *[1] * 10] and a.runs == beside.runs == 11
            assert reading.variables["hits"] == 11 and reading.variables["word"]
            assert beside.program.variables["asked"] == 1010
    kernel.wait()  # type: ignore[attr-defined]


def test_events_run_in_it(kernel: object, example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and histograms as Python makes them, without a stop; what reads memory is Python's, and tasks are."""
    m = kernel.m  # type: ignore[attr-defined]
    kernel.tell(example.READS, 500)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k, k.event("p:tasks vfs_read") as e:
        assert e.why_python == "Python knows which task runs"
    monkeypatch.setattr(m, "cpu_task", None)
    with (Kprobes(m) as k, k.event("p:reads vfs_read n=$arg3:u32", "n == 1") as reads,
          k.event("p:h vfs_read n=$arg3") as h, k.event("p:word vfs_read w=+0($stack)") as word):
        h.trigger("hist:keys=n")
        assert not reads.why_python and not h.why_python
        assert word.why_python == "it reads memory, and it is not known what a kernel has mapped"
        word.remove()
        kernel.answered()  # type: ignore[attr-defined]
        assert reads.places[0].probe.optimized and (reads.hits, h.hits, k.events.buffer.lost) == (501, 501, 0)
        assert [dict(r.args) for r in reads] == [{"n": 1}] * 500
        assert {row["n"]: row.hitcount for row in h.hist} == {1: 500, 1000: 1}
        numbers = [r.seq for r in k.events.buffer]
        assert numbers == sorted(set(numbers)) == list(range(numbers[0], numbers[0] + 1001))
    kernel.wait()  # type: ignore[attr-defined]
