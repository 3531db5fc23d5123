"""Programs at probes: their order, what they are told, what is refused. test_attach_arches.py has every
architecture."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest
from scenes import paper_machine

from kprobes import BadArgument, Kprobe, Kprobes, NotFunctionEntry, Program, ProgramError, UnicornMachine, UnknownSymbol
from kprobes.programs import isa
from kprobes.programs.isa import Instruction as I  # noqa: N817
from kprobes.programs.object import clang
from kprobes.programs.site import SiteProgram

pytest.importorskip("ziglang")
pytestmark = pytest.mark.quick
def insns(*code):
    return [*code, I(isa.EXIT | isa.JMP)]


@pytest.fixture
def demo():
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        yield m, k


COUNT = r"""
#include <kprobes/bpf.h>
u64 order[8]; u32 n;
static __always_inline int note(u64 who) { if (n < 8) order[n++] = who; return 0; }
SEC("kprobe/crc32") int one(void *ctx) { return note(1); }
SEC("kprobe/crc32") int two(void *ctx) { return note(2); }
SEC("?kprobe/crc32") int three(void *ctx) { return note(3); }
SEC("kretprobe/crc32") int four(void *ctx) { return note(4); }
"""


def test_programs_and_probes_at_one_address_run_newest_first(demo):
    m, k = demo
    prog = Program.from_c(COUNT)
    order = prog.variables
    mark = []
    with k.attach(prog) as a:  # one, two, four; three says that it is not attached by itself
        assert set(a.probes) == {"one", "two", "four"}
    with pytest.raises(ProgramError, match="does not say where"):
        k.attach(prog["three"])
    with pytest.raises(ProgramError, match="does not say where"):
        k.attach(Program.from_instructions(insns(I(isa.MOV | isa.ALU64))))
    a = k.attach(prog)
    k.register(Kprobe(symbol_name="crc32", pre_handler=lambda p, regs: mark.append(list(order["order"])[:order["n"]])))
    b = k.attach(prog["three"], "crc32")
    m.call("crc32", 0, b"hello", 5)
    assert list(order["order"])[:order["n"]] == [3, 2, 1, 4]
    assert mark == [[3]]  # between them
    assert (a.runs, b.runs) == (3, 1)
    a.detach()
    m.call("crc32", 0, b"hello", 5)
    assert (a.runs, b.runs) == (3, 2)
    a.detach()  # once more: nothing


def test_offsets_and_lines(demo):
    m, k = demo
    prog = Program.from_c('#include <kprobes/bpf.h>\nSEC("kprobe/string_equal+3") int p(struct pt_regs *ctx)'
                          '{ bpf_printk("%lx %d %d %d %d %s", PT_REGS_IP(ctx), 1, 2, 3, -4, PT_REGS_PARM1(ctx)); '
                          'return bpf_override_return(ctx, 5); }')
    with k.attach(prog) as a:
        wanted = m.symbols["string_equal"].address + 3
        assert m.call("string_equal", b"one", b"one") == 1
        assert a.printed[0] == f"{wanted:x} 1 2 3 -4 one"  # and not skipped: it is no entry
        assert a.probes["p"].symbol == "string_equal+0x3"


@pytest.mark.parametrize("engine", [None, "interpreter"])
def test_names_of_code_in_formats(demo, engine):
    m, k = demo
    prog = Program.from_c('#include <kprobes/bpf.h>\nSEC("kprobe/string_equal+3") int p(struct pt_regs *ctx)'
                          '{ unsigned long pc = PT_REGS_IP(ctx); bpf_printk("%pS %ps %pB", pc, pc, pc - 3); '
                          'bpf_printk("%pS %pI4", 1, PT_REGS_PARM1(ctx)); return 0; }')
    symbol = m.symbols["string_equal"]
    with k.attach(prog, engine=engine) as a:
        m.call("string_equal", b"ABCD", b"one")
        before = m.symbols.covering(symbol.address - 1)
        back = "" if before is None else f"{before.name}+{symbol.address - before.address:#x}/{before.size:#x}"
        assert list(a.printed) == [f"string_equal+0x3/{symbol.size:#x} string_equal {back or hex(symbol.address)}",
                                   "0x1 65.66.67.68"]


def test_stack_traces(demo):
    m, k = demo
    prog = Program.from_c(r'''
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(max_entries, 64); __uint(key_size, 4); __uint(value_size, 8 * 32); } stacks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, s32); __type(value, u64); } counts SEC(".maps");
u64 frames[4]; s64 got;
SEC("kprobe/fib") int on_fib(struct pt_regs *ctx)
{
    s32 id = bpf_get_stackid(ctx, &stacks, 0);
    u64 one = 1, *n = bpf_map_lookup_elem(&counts, &id);
    if (n) ++*n; else bpf_map_update_elem(&counts, &id, &one, BPF_ANY);
    got = bpf_get_stack(ctx, frames, sizeof(frames), 0);
    return 0;
}''')
    traces = []
    k.register(Kprobe(symbol_name="fib", pre_handler=lambda p, regs: traces.append(tuple(k.stack_trace(regs, 32)))))
    with k.attach(prog) as a:
        m.call("fib", 5)
    counted = {a.maps["stacks"][number]: n for number, n in a.maps["counts"].items()}
    assert counted == {trace: traces.count(trace) for trace in traces} and len(traces) == a.runs
    frames = list(prog.variables["frames"])
    depth = prog.variables["got"] // 8
    assert frames[:depth] == list(traces[-1][:4]) and depth == min(4, len(traces[-1]))


def test_missed_runs(demo):
    m, k = demo
    prog = Program.from_c(COUNT)
    inner = []
    k.register(Kprobe(symbol_name="string_equal",
                      pre_handler=lambda p, regs: inner.append(m.call("crc32", 0, b"x", 1))))
    with k.attach(prog["one"]) as a:
        m.call("string_equal", b"a", b"a")
        assert (a.runs, a.missed) == (0, 1)
        m.call("crc32", 0, b"x", 1)
        assert (a.runs, a.missed) == (1, 1)


def test_the_clock_the_task_and_the_name(demo):
    m, k = demo
    prog = Program.from_c(r'''
#include <kprobes/bpf.h>
char comm[16]; u64 time, task; u32 cpu;
SEC("kprobe/crc32") int p(void *ctx)
{
    bpf_get_current_comm(comm, sizeof(comm)); time = bpf_ktime_get_ns(); task = bpf_get_current_pid_tgid(); cpu = bpf_get_smp_processor_id();
    return 0;
}''')
    m.cpu_task = lambda regs: 42
    with k.attach(prog, clock=lambda: 123456789):
        m.call("crc32", 0, b"x", 1)
    v = prog.variables
    assert (v["comm"], v["time"], v["task"], v["cpu"]) == (b"guest", 123456789, 42 << 32 | 42, 0)


def test_what_is_not_safe_is_not_attached(demo):
    _, k = demo
    wild = Program.from_instructions(insns(I(isa.MEM | isa.DW | isa.LDX, 2, 1, 0),
                                           I(isa.MEM | isa.B | isa.LDX, 0, 2, 0)), name="wild")
    for engine in (None, "interpreter", "host"):
        with pytest.raises(ProgramError, match=r"wild: .*instruction 1 \("):
            k.attach(wild, "crc32", engine=engine)
    assert not k.list()


@pytest.mark.parametrize("section, reason", [
    ("kprobe/crc32+zz", "something else"), ("tracepoint/a/b", "something else"),
    ("kretprobe/crc32+4", "a return at an offset"),
    ("xdp", "something else"),
])
def test_sections_that_there_are_not_here(demo, section, reason):
    _, k = demo
    prog = Program.from_c(f'#include <kprobes/bpf.h>\nSEC("{section}") int p(void *c) {{ return 0; }}')
    with pytest.raises(ProgramError, match=rf"p: .*{reason}.*section {section.replace('+', '.')}"):
        k.attach(prog)
    assert not k.list()


def test_all_or_nothing(demo):
    _, k = demo
    prog = Program.from_c('#include <kprobes/bpf.h>\nSEC("kprobe/crc32") int a(void *c) { return 0; '
                          '}\nSEC("kprobe/nowhere") int b(void *c) { return 0; }')
    with pytest.raises(UnknownSymbol, match="nowhere"):
        k.attach(prog)
    with pytest.raises(ProgramError, match="several programs"):
        k.attach(prog, "crc32")
    with pytest.raises(NotFunctionEntry):
        k.attach(prog["a"], "string_equal", 3, retprobe=True)
    with pytest.raises(BadArgument, match="pass a Program"):
        k.attach("count.c")
    assert not k.list()


def test_a_big_endian_object_is_refused(demo, tmp_path):
    _, k = demo
    (tmp_path / "x.c").write_text(COUNT)
    other = "bpfeb" if sys.byteorder == "little" else "bpfel"
    subprocess.run([sys.executable, "-m", "ziglang", "clang", "-target", other, "-O2", "-g", "-c", "x.c", "-o", "x.o",
                    "-I", str(clang.INCLUDE)],
                   cwd=tmp_path, check=True)
    with pytest.raises(ProgramError,
                       match=r"is a big-endian object, and contexts are little-endian here.*kprobe/crc32.*-target "
                             r"bpfel"):
        k.attach(Program.from_elf(tmp_path / "x.o"))
    assert not k.list()


HEADER = "#include <kprobes/bpf.h>\n"
WRONG = {
    "an unknown helper": ('static long (*unknown)(int) = (void *)999;\nSEC("kprobe/crc32") int p(void *c) { return '
                          'unknown(4); }',
                          r"helper 999, which there is not.*section kprobe/crc32, instruction 1 \(call missing\)\); "
                          r"docs/programs.md.*program.c:3: SEC"),
    "registers of another guest": ('SEC("kprobe/crc32") int p(struct pt_regs *c) { return KPROBES_REG(c, arm64_x19); }',
                                   r"names register arm64_x19, and the guest is x86_64.*section "
                                   r"kprobe/crc32.*PT_REGS_\* are there on all"),
    "a register there is not": ('SEC("kprobe/crc32") int p(struct pt_regs *c) { return c->r[90]; }',
                                r"word 90 of the context, which x86_64 has not.*section kprobe/crc32, instruction 0 "
                                r".*program.c:2: SEC"),
    "another kind of context": ('struct xdp { u32 data, end; };\nSEC("xdp") int p(struct xdp *c) { return c->end; }',
                                r"something else than a probe.*section xdp.*use SEC"),
    "a larger context": ('SEC("kprobe/crc32") int p(u64 *c) { return c[400]; }',
                         r"8 bytes at offset 3200 of the context, which has 1024.*section kprobe/crc32, instruction "
                         r"0.*program.c:2: SEC"),
    "a map too large": ('struct { __uint(type, 1); __uint(max_entries, 1 << 28); __type(key, u32); __type(value, '
                        'u64); } m SEC(".maps");\n'
                        'SEC("kprobe/crc32") int p(u64 *c) { return 0; }',
                        r"map m: takes 8,589,934,656 bytes.*section .maps.*make max_entries smaller"),
    "an unknown map": ('struct { __uint(type, 99); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } m '
                       'SEC(".maps");\n'
                       'SEC("kprobe/crc32") int p(u64 *c) { return 0; }',
                       r"map m: there are no maps of type 99 here.*section .maps.*use one of"),
}


@pytest.mark.parametrize("text, told", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_its_place(demo, text, told):
    """Section, instruction, source line, what to do; nothing is attached. Truncated objects: test_objects.py."""
    _, k = demo
    with pytest.raises(ProgramError, match=f"(?s){told}"):
        k.attach(Program.from_c(HEADER + text))
    assert not k.list()


def test_named_registers_are_those_of_the_guests_that_have_them(demo):
    m, k = demo
    prog = Program.from_c(HEADER + """
u64 rdx;
static __noinline u64 length(struct pt_regs *c) { return KPROBES_REG(c, x86_64_rdx); }
SEC("kprobe/crc32") int mine(struct pt_regs *c) { rdx = length(c); return 0; }
SEC("?kprobe/crc32") int other(struct pt_regs *c) { return KPROBES_REG(c, mips_a0); }
""")
    with k.attach(prog["mine"]):
        m.call("crc32", 0, b"hello", 5)
    assert prog.variables["rdx"] == 5
    with pytest.raises(ProgramError, match="names register mips_a0, and the guest is x86_64"):
        k.attach(prog["other"], "crc32")


def test_a_machine_with_two_cpus():
    text = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } hits SEC(".maps");
SEC("kprobe/inc") int p(void *ctx) { u32 zero = 0; u64 *n = bpf_map_lookup_elem(&hits, &zero); if (n) ++*n; return 0; }
"""
    m = paper_machine(cpus=2)
    with Kprobes(m) as k:
        with pytest.raises(ProgramError,
                           match=r"map hits has values for 1 CPUs, and the machine has 2.*load the program with cpus=2"):
            k.attach(Program.from_c(text))
        with k.attach(Program.from_c(text, cpus=2)) as a:
            for cpu, calls in ((0, 3), (1, 2)):
                for _ in range(calls):
                    m.call("inc", 1, cpu=cpu)
            assert a.maps["hits"][0] == [3, 2] and a.runs == 5


@pytest.mark.host_code
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_hits_ask_nobody_in_python(arch, monkeypatch):
    """After the first hit, which optimizes, a program runs as code of this host; what helpers see is what handlers
    see."""
    pytest.importorskip("llvmlite")
    asked = []
    monkeypatch.setattr(SiteProgram, "run", lambda self, pc, run=SiteProgram.run: (asked.append(pc), run(self, pc))[1])
    prog = Program.from_c(r'''
#include <kprobes/bpf.h>
u64 hits, returns, sum;
SEC("kprobe/crc32") int on_crc(struct pt_regs *ctx)
{
    hits += bpf_get_func_ip(ctx) == PT_REGS_IP(ctx) && bpf_get_attach_cookie(ctx) == 5; sum += PT_REGS_PARM3(ctx);
    bpf_printk("%d %lx %lx", PT_REGS_PARM3(ctx), PT_REGS_IP(ctx), PT_REGS_RET(ctx));
    return 0;
}
SEC("kretprobe/crc32") int on_return(struct pt_regs *ctx) { returns += PT_REGS_RC(ctx) == 0x3610a686; return 0; }
''')
    with UnicornMachine.load(f"examples/demo.{arch}") as m, Kprobes(m) as k:
        with k.attach(prog, cookie=5) as a:
            for _ in range(50):
                assert m.call("crc32", 0, b"hello", 5) == 0x3610A686
            v = prog.variables
            assert (v["hits"], v["returns"], v["sum"], a.runs, a.missed) == (50, 50, 250, 100, 0)
            assert len(set(a.printed)) == 1 and len(a.printed) == 50
            assert a.probes["on_crc"].optimized and 0 < len(asked) < 10
            assert a.why_python == {"on_crc": "", "on_return": ""} and "in Python" not in repr(a)
        m.call("crc32", 0, b"hello", 5)
        assert a.runs == 100


def test_why_hits_go_through_python(demo):
    _, k = demo
    prog = Program.from_c('#include <kprobes/bpf.h>\nSEC("kprobe/crc32") int p(struct pt_regs *c) { return '
                          'bpf_override_return(c, 0); }')
    with k.attach(prog) as a:
        assert a.why_python["p"] and repr(a).endswith(f"0 missed; in Python: {a.why_python['p']}>")
    with k.attach(prog, engine="interpreter") as a:
        assert a.why_python == {"p": "the interpreter was asked for"}
    with Kprobes(paper_machine()) as other, other.attach(prog, "inc") as a:
        assert a.why_python == {"p": "this machine runs no code of the host's at its call sites"}


@pytest.mark.parametrize("engine", [None, "interpreter"])
def test_a_program_keeps_no_machine(engine):
    prog = Program.from_c(COUNT)
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        with k.attach(prog, engine=engine) as a:
            m.call("crc32", 0, b"hello", 5)
            assert a.runs == 3
        gone = weakref.ref(m)
    del m, k, a
    gc.collect()
    assert gone() is None
