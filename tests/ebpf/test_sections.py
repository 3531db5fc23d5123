"""Where programs go by their sections, and what they find there: globs, files, sessions, lists of arguments, markers."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typed import load

from kprobes import KprobeError, Kprobes, Kretprobe, Program, ProgramError, UnicornMachine

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


WIDE = """
struct pair { int x, y; };
struct big { int words[6]; };
volatile long long sink;
struct big some = {{1, 2, 3, 4, 5, 6}};
__attribute__((noinline)) long long wide(int a, long long b, signed char c, unsigned long long d, short e, long long f) {
    sink = a + c + e;
    return b + (long long)d + f;
}
__attribute__((noinline)) int take(char *s, struct pair p, struct big big, long long k, int n) {
    sink = *s + p.x + big.words[3] + k;
    return n + p.y;
}
__attribute__((noinline)) struct big make(int first, long long last) {
    struct big r = some;
    r.words[0] = first;
    r.words[5] = (int)last;
    return r;
}
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size) {
    for (__SIZE_TYPE__ n = 0; n < size; n++)
        ((volatile char *)to)[n] = ((const char *)from)[n];
    return to;
}
void _start(void) {
    struct pair p = {11, -12};
    sink = wide(1, -0x123456789abLL, -3, 0xfedcba9876543210ULL, -5, 0x1122334455667788LL);
    sink = take("text", p, some, 0x500000006LL, -7);
    sink = make(21, 0x100000016LL).words[0];
    for (;;);
}
"""
WIDE_TARGETS = ("arm-linux-musleabihf", "armeb-linux-musleabi", "mips-linux-musleabi", "mipsel-linux-musleabi",
                "powerpc-linux-musleabi", "riscv32-linux-musl", "x86-linux-musl", "x86_64-linux-musl", "aarch64-linux-musl")


@pytest.mark.parametrize("engine", ["interpreter", None])
@pytest.mark.parametrize("target", WIDE_TARGETS)
def test_lists_of_arguments_of_two_words(target: str, engine: str | None, tmp_path: Path) -> None:
    """A number of 64 bits is one argument of a 32-bit guest, too; results in two registers and in memory."""
    source, built = tmp_path / "wide.c", tmp_path / "wide"
    source.write_text(WIDE)
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-g", "-O0", "-nostdlib", "-static",
                    "-fno-sanitize=undefined", "-Wl,-e,_start", str(source), "-o", str(built)], check=True, timeout=300)
    program = Program.from_c(C + """
        s64 in[6], out[7]; u32 first, last;
        SEC("fentry/wide") int BPF_PROG(on_wide, int a, s64 b, s8 c, u64 d, s16 e, s64 f)
        {
            in[0] = a; in[1] = b; in[2] = c; in[3] = d; in[4] = e; in[5] = f;
            return 0;
        }
        SEC("fexit/wide") int BPF_PROG(off_wide, int a, s64 b, s8 c, u64 d, s16 e, s64 f, s64 result)
        {
            out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = result;
            return 0;
        }
        SEC("fexit/make") int BPF_PROG(off_make, int n, s64 k, void *result)
        {
            bpf_probe_read_user(&first, 4, result);
            bpf_probe_read_user(&last, 4, result + 20);
            return 0;
        }
    """)
    structures = Program.from_c(C + """
        s64 taken[3], left[2]; u32 pair[2];
        SEC("fentry/take") int on_take(u64 *ctx)
        {
            char c = 0;
            bpf_probe_read_user(&c, 1, (void *)ctx[0]);
            taken[0] = c; taken[1] = ctx[3]; taken[2] = (int)ctx[4];
            __builtin_memcpy(pair, &ctx[1], 8);
            return 0;
        }
        SEC("fexit/take") int off_take(u64 *ctx)
        {
            left[0] = (int)ctx[4]; left[1] = (int)ctx[5];
            return 0;
        }
    """)
    with UnicornMachine.load(str(built)) as m, Kprobes(m) as k, k.attach(program, engine=engine):
        order = m.arch.order.value
        k.attach(structures, engine=engine)
        with pytest.raises(KprobeError):
            m.run(max_insns=10000)  # it loops for ever
    given = [1, -0x123456789AB, -3, 0xFEDCBA9876543210 - (1 << 64), -5, 0x1122334455667788]
    variables = dict(program.variables)
    assert variables["in"] == given
    assert variables["out"] == [*given, given[1] + given[3] + given[5]]
    numbers = [variables[name].to_bytes(4, "little") for name in ("first", "last")]
    assert [int.from_bytes(raw, order) for raw in numbers] == [21, 22]
    found = dict(structures.variables)
    assert (found["taken"], found["left"]) == ([ord("t"), 0x500000006, -7], [-7, -19])
    pair = [int.from_bytes(each.to_bytes(4, "little"), order, signed=True) for each in found["pair"]]
    assert pair == [11, -12]
    for section, reads, why in (("fentry/take", 2, "big is not in it: struct big has 24 bytes, and 16 are the most"),
                                ("fentry/take", 5, "reads the result, and the function's arguments have 5"),
                                ("fexit/take", 6, "reads word 7 of its arguments, and the function's arguments have 5")):
        program = Program.from_c(C + f"""u64 n; SEC("{section}") int p(u64 *ctx) {{ n = ctx[{reads}]; return 0; }}""")
        with Kprobes(UnicornMachine.load(str(built))) as k, pytest.raises(ProgramError, match=why):
            k.attach(program, engine=engine)
    follows = Program.from_c(C + """
        int second(u64 *ctx);
        struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 1); __uint(key_size, 4);
                 __array(values, int (void *)); } next SEC(".maps") = { .values = { (void *)&second } };
        u64 n;
        SEC("fexit") int second(u64 *ctx) { n = ctx[6]; return 0; }
        SEC("fexit/take") int first(u64 *ctx) { bpf_tail_call(ctx, &next, 0); return 0; }""")
    with Kprobes(UnicornMachine.load(str(built))) as k, pytest.raises(ProgramError, match="reads word 7 of its arguments"):
        k.attach(follows, only=["first"], engine=engine)


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
