"""Where programs go by their sections, and what they find there: globs, files, sessions, lists of arguments, markers."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from typed import load

from kprobes import Kprobes, Kretprobe, Program, ProgramError, UnicornMachine

pytest.importorskip("ziglang")
ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
DEMO = str(ROOT / "examples" / "demo.arm64")
C = "#include <kprobes/bpf.h>\n"


def _markers() -> dict[str, bytes]:
    with tarfile.open(DATA / "sdt.tar.xz") as archive:
        files = ((m.name, archive.extractfile(m)) for m in archive.getmembers())
        return {name.removesuffix(".elf"): file.read() for name, file in files if file is not None}


MARKED = _markers()


def call(program: Program, function: str, *arguments: Any, **how: Any) -> Any:
    """The attachment, after a call in the demo."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, k.attach(program, **how) as a:
        m.call(function, *arguments)
        return a


def test_globs_and_images() -> None:
    """A program at several functions has a probe at each, which say where they are."""
    program = Program.from_c(C + """
        u64 tables, fibs, calls;
        SEC("kprobe.multi/table_*") int on_table(struct pt_regs *ctx) { tables += 1; return 0; }
        SEC("uretprobe/demo.arm64:fib") int on_fib(struct pt_regs *ctx) { fibs += PT_REGS_RC(ctx); return 0; }
        SEC("ksyscall/crc32") int on_call(struct pt_regs *ctx) { calls = PT_REGS_PARM3(ctx); return 0; }
    """)
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, k.attach(program) as a:
        m.call("table_init")
        m.call("table_insert", b"key", 1)
        m.call("fib", 3)
        m.call("crc32", 0, b"text", 4)
        assert {"on_table@table_init", "on_table@table_insert", "on_fib", "on_call"} <= a.probes.keys()
    assert program.variables["tables"] >= 2 and program.variables["calls"] == 4 and program.variables["fibs"] >= 2


@pytest.mark.parametrize(("section", "wanted"), [
    ("kprobe.multi/nothing_*", "has no function nothing_"),
    ("uprobe/other.so:fib", "has no function fib of other.so"),
    ("kprobe.multi/fibb*", "did you mean fib"),
    ("usdt/demo:lab:work", "no static tracepoint lab:work.*; there is none"),
    ("usdt/demo", "says 'demo' where FILE:provider:name is expected"),
    ("kretprobe/fib+4", "for a return at an offset"),
    ("tp/sched/sched_switch", "tracepoints are places in Linux's kernel"),
    ("xdp", "packets in Linux's kernel"),
    ("lsm/file_open", "security modules"),
    ("something/else", "for something else than a probe of a guest"),
])
def test_sections_that_a_guest_has_not(section: str, wanted: str) -> None:
    program = Program.from_c(C + f'SEC("{section}") int p(void *ctx) {{ return 0; }}')
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, pytest.raises(ProgramError, match=wanted):
        k.attach(program)


@pytest.mark.parametrize("engine", ["interpreter", None])
def test_a_session_has_a_number_for_each_call(engine: str | None) -> None:
    """The entry leaves a number for its own return, however deep calls are nested; 1 at the entry: no return."""
    program = Program.from_c(C + """
        u64 sum, returns, ip;
        SEC("kprobe.session/fib") int both(struct pt_regs *ctx)
        {
            u64 *cookie = bpf_session_cookie();
            if (!bpf_session_is_return()) {
                *cookie = PT_REGS_PARM1(ctx);
                ip = bpf_get_func_ip(ctx);
                return PT_REGS_PARM1(ctx) == 0;
            }
            returns += 1;
            sum += *cookie * 1000 + PT_REGS_RC(ctx);
            return 0;
        }
    """)
    calls = list[tuple[int, int]]()

    def entered(instance: Any, regs: Any) -> None:
        instance.data["n"] = regs.arg(0)

    def left(instance: Any, regs: Any) -> None:
        calls.append((instance.data["n"], regs.return_value))

    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        fib = m.symbols["fib"].address
        with k.attach(program, engine=engine):
            m.call("fib", 4)
        k.register(Kretprobe(symbol_name="fib", handler=left, entry_handler=entered))
        m.call("fib", 4)
    calls = [(n, value) for n, value in calls if n]
    assert len(calls) > 3
    assert (program.variables["returns"], program.variables["sum"], program.variables["ip"]) == (
        len(calls), sum(n * 1000 + value for n, value in calls), fib)


@pytest.mark.parametrize("engine", ["interpreter", None])
@pytest.mark.parametrize("name", ["x86_64-eh", "arm-eh", "s390x-eh"])
def test_lists_of_arguments(name: str, engine: str | None) -> None:
    """fentry finds the arguments, fexit these and the result; and what runs in host code finds the same."""
    program = Program.from_c(C + """
        u64 in, out, back, first;
        SEC("fentry/table_insert") int BPF_PROG(on_entry, void *table, const char *key, int value)
        {
            char c = 0;
            bpf_probe_read_user(&c, 1, key);
            in = value; first = c;
            return 0;
        }
        SEC("fexit/table_insert") int BPF_PROG(on_exit, void *table, const char *key, int value, int result)
        {
            out = value; back = result;
            return 0;
        }
    """)
    with load(name) as m, Kprobes(m) as k, k.attach(program, engine=engine):
        m.call("table_insert", m.symbols["the_table"].address, b"hello", 77)
    assert dict(program.variables) == {"in": 77, "out": 77, "back": 5, "first": ord("h")}


def test_lists_with_results_need_debug_information() -> None:
    program = Program.from_c(C + 'SEC("fexit/fib") int BPF_PROG(p, int n, int result) { return result; }')
    with pytest.raises(ProgramError, match="debug information does not say how many arguments"):
        call(program, "fib", 1)


@pytest.mark.parametrize("name", MARKED)
def test_arguments_of_static_tracepoints(name: str) -> None:
    """As the compiler left them at each of a marker's places, on every architecture."""
    program = Program.from_c(C + """
        s64 numbers[2], thirds[2]; u32 n;
        SEC("usdt/sdt:lab:work") int BPF_USDT(on_work, int number, char *text, int third)
        {
            long none;
            if (n < 2) { numbers[n] = number; thirds[n] = third; }
            if (bpf_usdt_arg(ctx, 9, &none) == 0) return 0;
            n += 1;
            return 0;
        }
        int looked_at;
        SEC("usdt/sdt:lab:busy") int BPF_USDT(on_busy, int looked) { looked_at = looked; return 0; }
    """)
    arch = "cortexm" if name.startswith("cortexm") else None
    with UnicornMachine.load(MARKED[name], name="sdt", arch=arch) as m, Kprobes(m) as k, k.attach(program) as a:
        m.call("call", 1)
        assert len(a.probes) == 3
    # the program comes by there only where somebody looks, and counts that in a variable
    assert program.variables["looked_at"] == 1
    assert (list(program.variables["numbers"]), list(program.variables["thirds"])) == ([1, -5], [-7, -7])


def test_programs_that_are_meant() -> None:
    """One that cannot be here does not keep the others away."""
    program = Program.from_c(C + """
        u64 calls;
        SEC("tp/sched/sched_switch") int kernels(void *ctx) { return 0; }
        SEC("kprobe/fib") int ours(void *ctx) { calls += 1; return 0; }
    """)
    assert call(program, "fib", 1, only=["ours"]).runs == 1
    with pytest.raises(ProgramError, match="tracepoints are places"):
        call(program, "fib", 1)
