"""Programs at probes of every architecture: one source, one object, the same answers."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pytest
from arches import RUNNABLE
from guests import Guest

from kprobes import Kprobe, Kprobes, Kretprobe, Program, ProgramError
from kprobes.programs import isa
from kprobes.programs.isa import Instruction as I  # noqa: N817
from kprobes.programs.isa import lddw
from kprobes.programs.maps import MapType, Spec, create

pytest.importorskip("ziglang")
U64 = (1 << 64) - 1
SOURCE = r"""
#include <kprobes/bpf.h>
struct seen { u64 pc, sp, ret, parm, func, cookie, bits, big, count, half, word, number; char text[8]; s64 bad; u64 zero; };
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 16); } entries SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 16); __type(value, u64); } results SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct seen); } shape SEC(".maps");
SEC("kprobe/f") int on_entry(struct pt_regs *ctx)
{
    struct seen *s = bpf_ringbuf_reserve(&entries, sizeof(*s), 0);
    if (!s) return 0;
    __builtin_memset(s, 0, sizeof(*s));
    u64 at = s->cookie = bpf_get_attach_cookie(ctx);
    s->pc = PT_REGS_IP(ctx); s->sp = PT_REGS_SP(ctx); s->ret = PT_REGS_RET(ctx); s->parm = PT_REGS_PARM1(ctx);
    s->func = bpf_get_func_ip(ctx); s->bits = PT_REGS_WORD_SIZE(ctx) * 8; s->big = PT_REGS_BIG_ENDIAN(ctx); s->count = ctx->count;
    s->half = guest_u16(ctx, at); s->word = guest_word(ctx, at); s->number = guest_u32(ctx, at);
    bpf_probe_read_str(s->text, sizeof(s->text), (void *)(at + 8));
    s->bad = bpf_probe_read(&s->zero, 8, (void *)8);
    bpf_ringbuf_submit(s, 0);
    return 0;
}
SEC("kretprobe/f") int BPF_KRETPROBE(on_return, u64 rc) { bpf_map_push_elem(&results, &rc, 0); return 0; }
SEC("kprobe/f") int on_skip(struct pt_regs *ctx) { return bpf_override_return(ctx, 77); }
"""


def insns(*code):
    return [*code, I(isa.EXIT | isa.JMP)]


@contextmanager
def guest(arch):
    g = Guest(arch)
    with g.machine, Kprobes(g.machine) as k:
        yield g, k


@pytest.mark.parametrize("arch", RUNNABLE)
def test_one_source_gives_the_same_on_every_architecture(arch):
    prog = Program.from_c(SOURCE)
    with guest(arch) as (g, k):
        m = g.machine
        order, word = m.arch.order.value, m.arch.bits // 8
        data = m.alloc(32)
        m.write(data, (0x1122_3344_5566_7788 if word == 8
                       else 0x1122_3344).to_bytes(word, order).ljust(8, b"\0") + b"A longer text\0")
        seen = []
        plain = Kprobe(symbol_name=g.name,
                       pre_handler=lambda p, regs: seen.append((regs.pc, regs.sp, regs.return_address, regs.arg(0))))
        k.register(plain)
        entry = k.attach(prog["on_entry"], g.name, cookie=data)
        back = k.attach(prog["on_return"], g.name, retprobe=True)
        assert [g.call() for _ in range(3)] == [g.want] * 3
        records = [prog.maps["shape"].value_codec.load(r) for r in entry.maps["entries"]]
        assert [(r.pc, r.sp, r.ret, r.parm) for r in records] == seen and len(seen) == 3
        r = records[0]
        assert r.func == r.pc == plain.address and r.cookie == data
        assert (r.bits, r.big, r.count) == (m.arch.bits, order == "big", len(m.arch.regs.names))
        assert r.word == (0x1122_3344_5566_7788 if word == 8 else 0x1122_3344)
        top = int.from_bytes(m.read(data, 4), order)
        assert (r.number, r.half) == (top, int.from_bytes(m.read(data, 2), order))
        assert (r.text, r.bad, r.zero) == (b"A longe", -14, 0)
        assert [v & m.arch.mask for v in back.maps["results"]] == [g.want] * 3
        assert (entry.runs, entry.missed, back.runs, back.missed) == (3, 0, 3, 0)
        entry.detach()
        back.detach()
        assert g.call() == g.want and (entry.runs, back.runs) == (3, 3)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_all_registers_are_there_in_order(arch):
    with guest(arch) as (g, k):
        names = g.machine.arch.regs.names
        m = create(Spec(type=MapType.ARRAY, name="out", key_size=4, value_size=8, max_entries=104))
        code = [*lddw(6, 0, isa.MAP_VALUE, 0)]
        for n in range(len(names)):
            code += [I(isa.MEM | isa.DW | isa.LDX, 2, 1, 8 * n), I(isa.MEM | isa.DW | isa.STX, 6, 2, 8 * n)]
        code.append(I(isa.MOV | isa.ALU64))
        prog = Program.from_instructions(insns(*code), maps={"out": flat(m)})
        wanted = []
        k.register(Kprobe(symbol_name=g.name,
                          pre_handler=lambda p, regs: wanted.extend(regs[name] & U64 for name in names)))
        with k.attach(prog, g.name) as a:
            assert g.call() == g.want
            got = [int.from_bytes(a.maps["out"].block.view[8 * n:8 * n + 8], sys.byteorder) for n in range(len(names))]
        assert dict(zip(names, got, strict=True)) == dict(zip(names, wanted, strict=True))


def flat(m):
    """One entry of the whole size: a program may then write all over it."""
    return create(Spec(type=MapType.ARRAY, name=m.name, key_size=4, value_size=m.span[1], max_entries=1))


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_function_is_skipped(arch):
    with guest(arch) as (g, k):
        returned = []
        with k.attach(Program.from_c(SOURCE)["on_skip"], g.name) as a:
            assert g.call() == 77
            k.register(r := Kretprobe(symbol_name=g.name, handler=lambda ri, regs: returned.append(regs.return_value)))
            assert g.call() == 77
            k.unregister(r)
            assert a.runs == 2
        assert g.call() == g.want


@pytest.mark.parametrize("arch", RUNNABLE)
def test_reading_registers_that_an_architecture_has_not(arch):
    with guest(arch) as (g, k):
        count = len(g.machine.arch.regs.names)
        prog = Program.from_instructions(insns(I(isa.MEM | isa.DW | isa.LDX, 0, 1, 8 * count)))
        with pytest.raises(ProgramError,
                           match=rf"reads word {count} of the context, which {arch} has not.*instruction 0 \(ldxdw r0"):
            k.attach(prog, g.name)
        assert not k.list()


@pytest.mark.quick
@pytest.mark.host_code
@pytest.mark.parametrize("arch", ["sparc", "tricore", "sparc64", "arm64"])
def test_returns_that_need_python_say_so(arch):
    prog = Program.from_instructions(insns(I(isa.MOV | isa.ALU64)))
    with guest(arch) as (g, k), k.attach(prog, g.name, retprobe=True) as a:
        for _ in range(3):
            assert g.call() == g.want
        assert a.runs == 3
        why = a.why_python["main"]
        assert ("return on " + arch in why) if arch in ("sparc", "tricore") else not why
