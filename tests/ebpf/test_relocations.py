"""CO-RE: numbers of the guest's types in programs, on every architecture; and objects made for a kernel's registers."""

from __future__ import annotations

import pytest
from typed import FILES, load

from kprobes import Kprobes, Program, ProgramError
from kprobes.programs.object.clang import compiled

pytest.importorskip("ziglang")
C = "#include <kprobes/bpf.h>\n"
#: the guest's structures, members elsewhere and some left out
SOURCE = C + """
struct entry { unsigned rest : 5; int value; unsigned flag : 3; void *next; } __attribute__((preserve_access_index));
enum kind { OTHER = 1, HASHED = 2, NEW = 9 };
struct table___mine { long long wide; unsigned count; struct entry___mine *first; char missing; }
    __attribute__((preserve_access_index));
struct nowhere { int x; } __attribute__((preserve_access_index));
s64 count, wide, value, flag, rest, there, size, hashed, missing = -1, new_ = -1;
SEC("kprobe/leaf") int p(struct pt_regs *ctx)
{
    struct table___mine *t = (void *)PT_REGS_PARM1(ctx);
    struct entry *e = (void *)BPF_CORE_READ(t, first);
    count = BPF_CORE_READ(t, count);
    wide = BPF_CORE_READ(t, wide);
    there = bpf_core_field_exists(t->count) + 2 * bpf_core_field_exists(t->missing)
        + 4 * bpf_core_type_exists(struct entry) + 8 * bpf_core_type_exists(struct nowhere);
    if (bpf_core_field_exists(t->missing)) missing = BPF_CORE_READ(t, missing);
    size = bpf_core_type_size(struct entry);
    hashed = bpf_core_enum_value(enum kind, HASHED);
    if (bpf_core_enum_value_exists(enum kind, NEW)) new_ = bpf_core_enum_value(enum kind, NEW);
    value = BPF_CORE_READ(e, value);
    flag = BPF_CORE_READ_BITFIELD_PROBED(e, flag);
    rest = BPF_CORE_READ_BITFIELD_PROBED(e, rest);
    return 0;
}
"""


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("-eh") and not name.startswith("sparc")])
def test_members_of_the_guest_s_types(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        program = Program.from_c(SOURCE)
        table = m.symbols["the_table"].address
        m.call("table_insert", table, b"width", 640)
        with k.attach(program):
            m.call("leaf", table, 3)
    found = dict(program.variables)
    assert found.pop("size") in (32, 40, 28)
    assert found == {"count": 1, "wide": -5, "value": 640, "flag": 5, "rest": 0, "there": 5, "hashed": 7,
                     "missing": -1, "new_": -1}


PATHS = C + """
struct entry { struct entry *next; int value; char key[16]; } __attribute__((preserve_access_index));
struct table { struct entry *first; long long wide; } __attribute__((preserve_access_index));
s64 two, three, nested; s32 value; s16 narrow; char key[16], name[4], behind[16];
SEC("kprobe/leaf") int p(struct pt_regs *ctx)
{
    struct table *t = (void *)PT_REGS_PARM1(ctx);
    two = BPF_CORE_READ(t, first, value);
    three = BPF_CORE_READ(t, first, next, value);
    nested = BPF_CORE_READ(BPF_CORE_READ(t, first), next, value);
    BPF_CORE_READ_INTO(&value, t, first, value);
    BPF_CORE_READ_INTO(&narrow, t, wide);
    BPF_CORE_READ_INTO(&key, t, first, key);
    BPF_CORE_READ_STR_INTO(&name, t, first, key);
    BPF_CORE_READ_STR_INTO(&behind, t, first, next, key);
    return 0;
}
"""


@pytest.mark.parametrize("name", ["x86_64-eh", "mips-eh"])
def test_paths_of_several_members(name: str) -> None:
    with load(name) as m, Kprobes(m) as k:
        program = Program.from_c(PATHS)
        table = m.symbols["the_table"].address
        m.call("table_insert", table, b"height", 480)
        m.call("table_insert", table, b"width", 640)
        with k.attach(program):
            m.call("leaf", table, 3)
    assert dict(program.variables) == {
        "two": 640, "three": 480, "nested": 480, "value": 640, "narrow": -5, "key": b"width", "name": b"wid",
        "behind": b"height"}


@pytest.mark.parametrize(("text", "wanted"), [
    ("struct nowhere { int x; }", "the guest has no type struct nowhere"),
    ("struct entry { int other; }", "struct entry of the guest has no member other"),
])
def test_what_the_guest_has_not(text: str, wanted: str) -> None:
    """Only where a path leads there: the program says what is missing, and at which of its lines."""
    member = text.split()[-2].rstrip(";")
    kind = text.split()[1]
    program = Program.from_c(C + f"""{text} __attribute__((preserve_access_index));
        SEC("kprobe/leaf") int p(struct pt_regs *ctx)
        {{ struct {kind} *e = (void *)PT_REGS_PARM1(ctx); return BPF_CORE_READ(e, {member}); }}""")
    with load("x86_64-eh") as m, Kprobes(m) as k:
        with pytest.raises(ProgramError, match=wanted) as caught:
            k.attach(program)
        assert "program.c:" in str(caught.value)
    with pytest.raises(ProgramError, match=rf"depends on the guest's struct {kind}\.{member}.*attach it"):
        program.verify()


OBJECT = """
struct entry { long value; } __attribute__((preserve_access_index));
static long (*const bpf_probe_read)(void *dst, unsigned size, const void *guest) = (void *)4;
__attribute__((section("kprobe/leaf"), used)) int p(void *ctx)
{ long v; struct entry *e = (void *)8; bpf_probe_read(&v, sizeof(v), &e->value); return v; }
"""


@pytest.mark.parametrize(("name", "kind", "wanted"), [
    ("x86_64-eh", "long", "struct entry.value has 4 bytes in the guest and 8 in the program"),
    ("s390x-eh", "int", "struct entry.value is in the other byte order in the guest"),
])
def test_an_object_that_reads_bytes(name: str, kind: str, wanted: str) -> None:
    """It was made for guests of its own byte order and sizes: it never reads something else."""
    program = Program.from_elf(compiled(OBJECT.replace("long", kind), "bytes.c"))
    with load(name) as m, Kprobes(m) as k, pytest.raises(ProgramError, match=wanted):
        k.attach(program)


#: architecture of a guest -> structure in which its kernel gives registers, and what the first argument is in it
KERNELS = {
    "x86_64": ("pt_regs", "unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, "
               "cs, flags, sp, ss;", "di", "ax", "ip"),
    "arm64": ("user_pt_regs", "unsigned long long regs[31], sp, pc, pstate;", "regs[0]", "regs[0]", "pc"),
    "riscv64": ("user_regs_struct", "unsigned long pc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;",
                "a0", "a0", "pc"),
    "s390x": ("user_pt_regs", "unsigned long args[1]; struct { unsigned long mask, addr; } psw; unsigned long gprs[16];",
              "gprs[2]", "gprs[2]", "psw.addr"),
    "ppc64le": ("pt_regs", "unsigned long gpr[32], nip, msr, orig_gpr3, ctr, link;", "gpr[3]", "gpr[3]", "nip"),
}
RAW = """
struct NAME { MEMBERS };
__attribute__((section(".maps"))) int unused;
unsigned long long first, back; unsigned low;
__attribute__((section("kprobe/leaf"), used)) int entry(struct NAME *ctx)
{ first = ctx->SECOND; low = (unsigned)ctx->PC; return 0; }
__attribute__((section("kretprobe/leaf"), used)) int leave(struct NAME *ctx) { back = ctx->RESULT; return 0; }
"""


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("guest", KERNELS)
def test_an_object_for_a_kernel_s_registers(name: str, guest: str) -> None:
    """Reads its own architecture's guests, and is refused for all others: it never reads something else."""
    structure, members, argument, result, pc = KERNELS[name]
    text = RAW.replace("NAME", structure).replace("MEMBERS", members).replace("SECOND", argument).replace(
        "RESULT", result).replace("PC", pc).replace('__attribute__((section(".maps"))) int unused;\n', "")
    program = Program.from_elf(compiled(text, "raw.c"))
    with load(f"{guest}-eh") as m, Kprobes(m) as k:
        table = m.symbols["the_table"].address
        if name != guest:
            with pytest.raises(ProgramError, match=f"takes the context for .*struct {structure}"):
                k.attach(program)
            return
        with k.attach(program) as a:
            returned, place = m.call("leaf", table, 3), a.probes["entry"].address or 0
        assert dict(program.variables) == {"first": table, "back": returned,
                                           "low": place & 0xFFFF_FFFF}
