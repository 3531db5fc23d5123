"""Helpers: what Linux's documentation says of each, in a test run, by every engine."""

from __future__ import annotations

import pytest

from kprobes import KprobeError, Program, ProgramError
from kprobes.programs import isa, meanings
from kprobes.programs.engines import ENGINES
from kprobes.programs.helpers import HELPERS
from kprobes.programs.nowhere import Nowhere

pytest.importorskip("ziglang")
pytestmark = pytest.mark.quick

SOURCE = r"""
#include <kprobes/bpf.h>
struct pair { u64 a, b; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 2); __type(key, u32); __type(value, struct pair); } h SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 2); __type(value, u64); } q SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } r SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __uint(key_size, 4); __uint(value_size, 4); __uint(max_entries, 2); } p SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(key_size, 4); __uint(value_size, 32); __uint(max_entries, 1024); } s SEC(".maps");
s64 out[16]; char text[32]; u64 frames[4];

SEC("kprobe") int hash(void *ctx)
{
    u32 one = 1, two = 2, three = 3;
    struct pair v = {10, 20}, *found;
    out[0] = bpf_map_update_elem(&h, &one, &v, BPF_EXIST);
    out[1] = bpf_map_update_elem(&h, &one, &v, BPF_NOEXIST);
    out[2] = bpf_map_update_elem(&h, &one, &v, BPF_NOEXIST);
    out[3] = bpf_map_update_elem(&h, &two, &v, 7);
    out[4] = bpf_map_update_elem(&h, &two, &v, BPF_ANY);
    out[5] = bpf_map_update_elem(&h, &three, &v, BPF_ANY);
    found = bpf_map_lookup_elem(&h, &two);
    out[6] = found ? found->b : 0;
    if (found) found->a = 99;
    out[7] = bpf_map_delete_elem(&h, &one);
    out[8] = bpf_map_delete_elem(&h, &one);
    out[9] = bpf_map_lookup_elem(&h, &one) != NULL;
    return 0;
}
SEC("kprobe") int texts(void *ctx)
{
    static const char bad[] = "%q", plain[] = "plain";
    u64 none[] = {1};
    char mine[8] = "abc";
    out[0] = BPF_SNPRINTF(text, sizeof(text), "%d of 0x%x", -5, 255);
    out[1] = BPF_SNPRINTF(mine, sizeof(mine), "%llx|%d", 0x123456789, 1);
    out[2] = bpf_strncmp(mine, sizeof(mine), "1234567");
    out[3] = bpf_snprintf(text + 16, 8, bad, none, 8);
    out[4] = bpf_snprintf(text + 16, 8, plain, none, 4);
    out[5] = bpf_snprintf(NULL, 0, plain, none, 0);
    __builtin_memcpy(mine, "abd\0xyz", 8);
    out[6] = bpf_strncmp(mine, sizeof(mine), "abd");
    out[7] = bpf_strncmp(mine, sizeof(mine), "abc");
    out[8] = bpf_strncmp(mine, sizeof(mine), "abdx");
    out[9] = bpf_strncmp(mine, 2, "abx");
    return 0;
}
SEC("kprobe") int queue(void *ctx)
{
    u64 v = 5, got = 1;
    out[0] = bpf_map_pop_elem(&q, &got); out[1] = got;
    out[2] = bpf_map_push_elem(&q, &v, 0); v = 6;
    out[3] = bpf_map_push_elem(&q, &v, 0); v = 7;
    out[4] = bpf_map_push_elem(&q, &v, 0);
    out[5] = bpf_map_push_elem(&q, &v, BPF_EXIST);
    out[6] = bpf_map_peek_elem(&q, &got); out[7] = got;
    out[8] = bpf_map_pop_elem(&q, &got); out[9] = got;
    return 0;
}
SEC("kprobe") int rings(void *ctx)
{
    struct pair v = {1, 2}, *e;
    out[0] = bpf_ringbuf_output(&r, &v, sizeof(v), 0);
    out[1] = bpf_ringbuf_output(&r, &v, 8, 4);
    out[2] = bpf_ringbuf_query(&r, BPF_RB_AVAIL_DATA); out[3] = bpf_ringbuf_query(&r, BPF_RB_RING_SIZE);
    out[4] = bpf_ringbuf_query(&r, BPF_RB_CONS_POS); out[5] = bpf_ringbuf_query(&r, BPF_RB_PROD_POS); out[6] = bpf_ringbuf_query(&r, 9);
    e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
    if (e) { e->a = 3; e->b = 4; bpf_ringbuf_discard(e, 0); }
    e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
    if (e) { e->a = 5; e->b = 6; bpf_ringbuf_submit(e, 0); }
    e = bpf_ringbuf_reserve(&r, 4090, 0);
    out[7] = !e; if (e) bpf_ringbuf_discard(e, 0);
    out[8] = bpf_perf_event_output(ctx, &p, BPF_F_CURRENT_CPU, &v, sizeof(v));
    out[9] = bpf_perf_event_output(ctx, &p, 1, &v, 8);
    out[10] = bpf_perf_event_output(ctx, &p, 2, &v, 8);
    out[11] = bpf_perf_event_output(ctx, &p, 1ULL << 40, &v, 8);
    return 0;
}
SEC("kprobe") int memory(void *ctx)
{
    out[0] = bpf_probe_read(text, 4, (void *)0x1000); out[1] = text[0] << 8 | text[3];
    text[0] = text[1] = 1;
    out[2] = bpf_probe_read_user(text, 2, (void *)0x5000); out[3] = text[0] | text[1];
    out[4] = bpf_probe_read_kernel(text, 2, (void *)0x1001);
    out[5] = bpf_probe_read_str(text, 32, (void *)0x1000); out[6] = text[9];
    out[7] = bpf_probe_read_user_str(text + 16, 4, (void *)0x1000); out[8] = text[19];
    out[9] = bpf_probe_read_kernel_str(text, 4, (void *)0x5000); out[10] = text[0];
    out[11] = bpf_probe_read(text, 0, (void *)0x5000);
    return 0;
}
SEC("kprobe") int task(struct pt_regs *ctx)
{
    out[0] = bpf_ktime_get_ns(); out[1] = bpf_ktime_get_boot_ns(); out[2] = bpf_get_smp_processor_id();
    out[3] = bpf_get_current_pid_tgid(); out[4] = bpf_get_current_comm(text, 6); out[5] = text[4] << 8 | text[5];
    out[6] = bpf_get_prandom_u32() == bpf_get_prandom_u32() && bpf_get_prandom_u32() == bpf_get_prandom_u32();
    out[7] = bpf_get_func_ip(ctx); out[8] = bpf_get_attach_cookie(ctx); out[9] = bpf_override_return(ctx, 1);
    return 0;
}
SEC("kprobe") int stacks(struct pt_regs *ctx)
{
    out[0] = bpf_get_stackid(ctx, &s, 0); out[1] = bpf_get_stackid(ctx, &s, 1); out[2] = bpf_get_stackid(ctx, &s, 9);
    out[3] = bpf_get_stackid(ctx, &s, 1 << 20);
    out[4] = bpf_get_stack(ctx, frames, sizeof(frames), 1); out[5] = bpf_get_stack(ctx, frames, 12, 0);
    out[6] = bpf_get_stack(ctx, frames + 3, 8, 9);
    return 0;
}
SEC("kprobe") int print(struct pt_regs *ctx)
{
    static const char bad[] = "%y";
    out[0] = bpf_printk("%d|%5u|%-4x|%lld|%c|%%", -1, 7, 255); out[1] = bpf_printk("%d|%5u|%-4x", -1, 7, 255);
    out[2] = bpf_printk("%s %d %llx %c", (void *)0x1000, -2, -1ULL, 'z');
    out[3] = bpf_trace_printk(bad, sizeof(bad)); out[4] = -22; out[5] = bpf_printk("%p %08x", 0x1234, 0xab);
    return 0;
}
SEC("kprobe") int addresses(struct pt_regs *ctx)
{
    unsigned char ip[16] = {192, 168, 0, 7, [14] = 0xab, [15] = 0xcd};
    out[0] = bpf_printk("%pI4|%16pi4|%pI6", ip, ip, ip); out[1] = bpf_printk("%pi6", ip);
    out[2] = bpf_printk("%pI4 %pI4", 0x1000, 0x10); out[3] = bpf_printk("%pS %ps %pB", 0x4004, 0x4004, 0x9000);
    out[4] = bpf_snprintf(text, sizeof(text), "%pI4", (unsigned long long[]){(long)ip}, 8);
    return 0;
}
"""


class Somewhere(Nowhere):
    """A small guest: ten letters and a NUL at 0x1000, three frames."""

    def read(self, addr, size):
        text = b"0123456789\0"
        if not 0 <= addr - 0x1000 <= len(text) - size:
            if addr >> 8 == 0x10 and size > len(text):
                return text[addr - 0x1000:].ljust(size, b"x")
            raise KprobeError("nothing there")
        return text[addr - 0x1000:addr - 0x1000 + size]

    def clock(self):
        return 123456789012

    def pid_tgid(self):
        return 7 << 32 | 8

    def comm(self):
        return b"a long name"

    def stack(self, skip, depth):
        return [0x10, 0x20, 0x30][skip:skip + depth]

    def symbol(self, addr):
        return ("f", addr - 0x4000, 0x48, "lib.so") if addr >> 12 == 4 else None

    def func_ip(self):
        return 0x4000

    def cookie(self):
        return 0xC00C1E


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.host_code) if name == "host" else name
                        for name in ENGINES])
def run(request):
    """Runs one of the programs; gives it, and what it left in `out`."""
    if request.param == "host":
        pytest.importorskip("llvmlite")

    def go(name):
        prog = Program.from_c(SOURCE)
        printed = []
        prog[name].engine(request.param).run(b"", Somewhere(), printed.append)
        prog.printed = printed
        return prog, list(prog.variables["out"])
    return go


def test_every_helper_is_called_here():
    called = {i.imm for code in Program.from_c(SOURCE).codes.values() for _, i in isa.steps(code.instructions)
              if i.is_helper_call}
    elsewhere = {meanings.MAY_LOOP, meanings.NEXT_KEY}  # no compiler knows them: test_assembler.py calls them
    elsewhere |= {meanings.TAIL_CALL, 15, 35, 105, 106, 118, 148, 156, 157, 158, 160, 208}  # test_callbacks.py
    elsewhere |= {meanings.SESSION_COOKIE, meanings.SESSION_IS_RETURN, meanings.USDT_ARGUMENT}  # test_sections.py
    elsewhere |= {isa.MISSING, meanings.GUEST_IS_BIG, meanings.CALL_SLOT}  # test_relocations.py, tests of events
    elsewhere |= {meanings.WAKE}  # remote/test_guest_scripts.py
    elsewhere |= {*range(197, 204), *range(meanings.USER_RING_BEGIN, meanings.DYNPTR_ADJUST + 1)}  # test_dynptrs.py
    elsewhere |= {meanings.DYNPTR_CLONE, meanings.DYNPTR_SLICE, meanings.DYNPTR_SLICE_RDWR}  # test_dynptrs.py
    assert called == set(HELPERS) - elsewhere


def test_hash_tables(run):
    prog, out = run("hash")
    assert out[:10] == [-2, 0, -17, -22, 0, -7, 20, 0, -2, 0]
    assert {key: (v.a, v.b) for key, v in prog.maps["h"].items()} == {2: (99, 20)}


def test_queues(run):
    prog, out = run("queue")
    assert out[:10] == [-2, 0, 0, 0, -7, 0, 0, 6, 0, 6]
    assert list(prog.maps["q"]) == [7]


def test_ring_buffers_and_perf_events(run):
    prog, out = run("rings")
    assert out[:12] == [0, -22, 24, 4096, 0, 24, 0, 1, 0, 0, -7, -22]
    assert list(prog.maps["r"]) == [pair(1, 2), pair(5, 6)]
    assert list(prog.maps["p"]) == [pair(1, 2), pair(1, 2)[:8]]
    assert prog.maps["r"].lost == 1


def pair(a, b):
    return a.to_bytes(8, "little") + b.to_bytes(8, "little")


def test_guest_memory(run):
    _, out = run("memory")
    assert out[:12] == [0, ord("0") << 8 | ord("3"), -14, 0, 0, 11, ord("9"), 4, 0, -14, 0, 0]


def test_time_task_and_probe(run):
    _, out = run("task")
    assert out[:10] == [123456789012, 123456789012, 0, 7 << 32 | 8, 0, ord("n") << 8, 0, 0x4000, 0xC00C1E, -95]


def test_stacks(run):
    prog, out = run("stacks")
    assert out[2:7] == [-14, -22, 16, -22, -14]
    assert {number: trace for number, trace in prog.maps["s"].items()} == {out[0]: (0x10, 0x20, 0x30), out[1]: (0x20, 0x30)}  # noqa: C416
    assert list(prog.variables["frames"]) == [0x20, 0x30, 0, 0]


def test_texts(run):
    prog, out = run("texts")
    assert bytes(prog.variables["text"]) == b"-5 of 0xff"
    assert out[:10] == [11, 12, 0, -22, -22, 6, 0, 1, -1, 0]


@pytest.mark.parametrize(("text", "why"), [
    ("(const char *)out", "is a constant text, but"), ("(const char *)ctx", "is a constant text, but"),
    ("end", "no end within 1024 bytes")])
def test_texts_are_constants(text, why):
    prog = Program.from_c(f"""#include <kprobes/bpf.h>
        s64 out[2]; static const char end[3] = {{'a', 'b', 'c'}}; char mine[4];
        SEC("kprobe") int on(void *ctx) {{ return bpf_strncmp(mine, 4, {text}); }}""")
    with pytest.raises(ProgramError, match=why):
        prog.verify()


def test_printing(run):
    prog, out = run("print")
    lines = ["-1|    7|ff  ", "0123456789 -2 ffffffffffffffff z", "0x0000000000001234 000000ab"]
    assert prog.printed == lines
    assert out[:6] == [-22, len(lines[0]), len(lines[1]), -22, -22, len(lines[2])]


def test_formats_of_addresses(run):
    """Internet addresses in memory of the program's and of the guest's, and names of code."""
    prog, out = run("addresses")
    assert prog.printed == [
        "192.168.0.7| 192.168.000.007|c0a8:0007:0000:0000:0000:0000:0000:abcd", "c0a800070000000000000000" "0000abcd",
        "48.49.50.51 0.0.0.0", "f+0x4/0x48 [lib.so] f [lib.so] 0x9000"]
    assert out[4] == len("192.168.0.7") + 1
