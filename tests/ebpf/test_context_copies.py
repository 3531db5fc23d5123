"""Objects for a kernel that copy registers out of the context by bpf_probe_read_kernel(), as PT_REGS_PARM1_CORE() does."""

from __future__ import annotations

import pytest

from kprobes import Kprobes, Program, ProgramError, UnicornMachine
from kprobes.programs.helpers import HELPERS
from kprobes.programs.object.clang import compiled

pytest.importorskip("ziglang")

REGISTERS = """
static long (*const bpf_probe_read_kernel)(void *to, unsigned size, const void *from) = (void *)113;
static long (*const bpf_ktime_get_ns)(void) = (void *)5;
struct pt_regs { unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
                 sp, ss; };
typedef const struct pt_regs bpf_user_pt_regs_t;
volatile unsigned long first, second, low, where;
unsigned long data;
#define READ(to, member) bpf_probe_read_kernel(&(to), sizeof(to), &ctx->member)
"""
COPIES = REGISTERS + """
__attribute__((section("kprobe/f"), used)) int copies(struct pt_regs *ctx) {
    unsigned long a = 0, b = 0;
    unsigned short c = 0;
    if (READ(a, di) || READ(b, si) || READ(c, si))
        return 0;
    first = a;
    second = b;
    low = c;
    where = ctx->ip;
    READ(data, di);  /* straight into a global variable */
    return 0;
}
"""
MIXED = REGISTERS + """
__attribute__((section("kprobe/f"), used)) int mixed(struct pt_regs *ctx) {
    unsigned long a = 0;
    const void *from = bpf_ktime_get_ns() & 1 ? (const void *)&ctx->di : (const void *)0x10000;
    bpf_probe_read_kernel(&a, sizeof(a), from);
    first = a;
    return 0;
}
"""
VARIES = REGISTERS + """
__attribute__((section("kprobe/f"), used)) int varies(struct pt_regs *ctx) {
    unsigned long a = 0;
    bpf_probe_read_kernel(&a, (bpf_ktime_get_ns() & 7) + 1, &ctx->di);
    first = a;
    return 0;
}
"""
TOO_LARGE = REGISTERS + """
__attribute__((section("kprobe/f"), used)) int large(struct pt_regs *ctx) {
    unsigned long a[2] = {};
    bpf_probe_read_kernel(a, sizeof(a), &ctx->si);
    first = a[1];
    return 0;
}
"""
CODE = bytes.fromhex("c3")


@pytest.fixture
def guest() -> UnicornMachine:
    """A machine with a function f at 0x10000."""
    return UnicornMachine.from_code(CODE, arch="x86_64", symbols={"f": 0x10000})


@pytest.mark.parametrize("engine", [None, "interpreter"])
def test_copies_of_registers(guest: UnicornMachine, engine: str | None) -> None:
    program = Program.from_elf(compiled(COPIES, "copies.c"))
    with Kprobes(guest) as k, k.attach(program, engine=engine) as a:
        guest.call("f", 0x1122334455667788, 0xABCDEF)
        seen = {name: a.program.variables[name] for name in ("first", "second", "low", "where", "data")}
    assert seen == {"first": 0x1122334455667788, "second": 0xABCDEF, "low": 0xCDEF, "where": 0x10000,
                    "data": 0x1122334455667788}


@pytest.mark.parametrize(("text", "reason"), [
    (MIXED, "reads the context on one path and guest memory on another"),
    (VARIES, "reads the context with a size that varies, or over several of its words"),
    (TOO_LARGE, "reads the context with a size that varies, or over several of its words"),
])
def test_what_is_no_register(guest: UnicornMachine, text: str, reason: str) -> None:
    program = Program.from_elf(compiled(text, "no_register.c"))
    with Kprobes(guest) as k, pytest.raises(ProgramError, match=reason) as caught:
        k.attach(program)
    assert "no_register.c" in str(caught.value)


def test_elsewhere_they_are_refused(guest: UnicornMachine) -> None:
    """Where the guest's architecture is not that of the registers, and in programs that are not for a kernel."""
    program = Program.from_elf(compiled(COPIES, "copies.c"))
    other = UnicornMachine.from_code(bytes.fromhex("c0035fd6"), arch="arm64", symbols={"f": 0x10000})
    with Kprobes(other) as k, pytest.raises(ProgramError, match="takes the context for x86's struct pt_regs"):
        k.attach(program)
    ours = COPIES.replace(REGISTERS, '#include <kprobes/bpf.h>\nvolatile unsigned long first, second, low, where, data;\n')
    ours = ours.replace("READ(a, di) || READ(b, si) || READ(c, si)", "bpf_probe_read_kernel(&a, 8, ctx)")
    ours = ours.replace("ctx->ip", "0").replace("READ(data, di);", "")
    with Kprobes(guest) as k, pytest.raises(ProgramError, match="is a number, but the context"):
        k.attach(Program.from_elf(compiled(ours, "ours.c")))


ASKS = """
static long (*const bpf_ktime_get_ns)(void) = (void *)5;
enum bpf_func_id { BPF_FUNC_get_func_ip = 173, BPF_FUNC_msg_push_data = 90, BPF_FUNC_unheard_of = 9999 };
#define HAS(name) __builtin_preserve_enum_value(*(__typeof__(enum bpf_func_id) *)name, 0)
volatile int has, has_not, unheard_of;
__attribute__((section("kprobe/f"), used)) int asks(void *ctx) {
    has = HAS(BPF_FUNC_get_func_ip);
    has_not = HAS(BPF_FUNC_msg_push_data);
    unheard_of = HAS(BPF_FUNC_unheard_of);
    return 0;
}
"""


def test_programs_ask_for_helpers(guest: UnicornMachine) -> None:
    """A kernel's enumeration says which helpers there are: here it is those of this library."""
    program = Program.from_elf(compiled(ASKS, "asks.c"))
    with Kprobes(guest) as k, k.attach(program) as a:
        guest.call("f")
        seen = [a.program.variables[name] for name in ("has", "has_not", "unheard_of")]
    assert seen == [1, 0, 0]


def test_the_header_has_the_numbers_of_all_helpers(guest: UnicornMachine) -> None:
    names = {helper.name: number for number, helper in HELPERS.items() if number < 1000}
    sums = "".join(f"found += BPF_FUNC_{name} == {number};" for name, number in names.items())
    text = ("#include <kprobes/bpf.h>\nvolatile int found, has;\n"
            'SEC("kprobe/f") int counts(struct pt_regs *ctx) {' + sums +
            "has = bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_func_ip); return 0; }")
    program = Program.from_c(text)
    with Kprobes(guest) as k, k.attach(program) as a:
        guest.call("f")
        assert (a.program.variables["found"], a.program.variables["has"]) == (len(names), 1)
