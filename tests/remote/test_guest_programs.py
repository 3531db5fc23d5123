"""Programs that run in a remote guest, without a stop: they do what they do by stops, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arch_rows import SAVINGS
from qemu import start

from kprobes import GuestFault, GuestTimeout, Kprobe, KprobeError, Kprobes, NoMemory, Program
from kprobes.machine.detours.inlined import MOST, bodies
from kprobes.machine.remote.packets import Connection
from kprobes.machine.remote.sites import CallSites
from kprobes.programs.inguest import RETURNS

pytest.importorskip("llvmlite")
pytest.importorskip("ziglang")
SOURCE = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024); __type(key, u64); __type(value, u64); }
    counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 12); } records SEC(".maps");
u64 calls, unreadable;
SEC("kprobe") int on(struct pt_regs *ctx) {
    u64 key = PT_REGS_PARM1(ctx) & 15, one = 1, *n = bpf_map_lookup_elem(&counts, &key);
    if (n) *n += 1; else bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
    struct { u64 first, second, sp, ip, back, function, stack; } *e;
    calls += 1;
    e = bpf_ringbuf_reserve(&records, sizeof(*e), 0);
    if (!e) return 0;
    e->first = PT_REGS_PARM1(ctx); e->second = PT_REGS_PARM2(ctx);
    e->sp = PT_REGS_SP(ctx); e->ip = PT_REGS_IP(ctx); e->back = PT_REGS_RET(ctx); e->function = bpf_get_func_ip(ctx);
    e->stack = 0;
    bpf_probe_read(&e->stack, 8, (void *)PT_REGS_SP(ctx));
    if (bpf_probe_read(&one, 8, (void *)8)) unreadable += 1;
    bpf_ringbuf_submit(e, 0);
    return 0;
}
"""
FUNCTION = "test_crc"
Programs = Callable[[str], Path]


@pytest.fixture(scope="module")
def source() -> Callable[[], Program]:
    made = Program.from_c(SOURCE)
    assert made
    return lambda: Program.from_c(SOURCE)


def seen(m: Any, k: Kprobes, program: Program, engine: str | None) -> tuple[Any, ...]:
    """What a program has counted and recorded, in calls and with an overflowing ring; whether its probe was a jump."""
    with k.attach(program, FUNCTION, engine=engine) as a:
        results = [m.call(FUNCTION, n) for n in range(4)]
        records = [record[:56] for record in a.maps["records"]]
        results += [m.call(FUNCTION, n % 7) for n in range(70)]
        records += list(a.maps["records"])
        jump, = (probe.optimized for probe in a)
        return (results, records, dict(a.maps["counts"]), program.variables["calls"], program.variables["unreadable"],
                a.runs, a.missed, a.maps["records"].lost), jump, a.why_python["on"]


def test_the_same_as_by_stops(m: Any, source: Callable[[], Program]) -> None:
    with Kprobes(m) as k:
        plain = [m.call(FUNCTION, n) for n in range(4)]
        stops, jump, why = seen(m, k, source(), "interpreter")
        assert not jump and why == "the interpreter was asked for"
        inside, jump, why = seen(m, k, source(), None)
        assert inside == stops and inside[0][:4] == plain and stops[3] == stops[5] == 74
        assert jump == (m.arch.name in SAVINGS and not m.symbols[FUNCTION].mode)  # Thumb code's are stops
        assert bool(why) == (m.arch.name not in SAVINGS or bool(m.symbols[FUNCTION].mode))
        assert m.call(FUNCTION, 1) == plain[1]


SMALL = """
#include <kprobes/bpf.h>
u64 calls, odd;
SEC("kprobe") int on(struct pt_regs *ctx) {
    calls += 1;
    if (!(PT_REGS_PARM1(ctx) & 1)) return 0;
    odd += PT_REGS_PARM1(ctx);
    return 0;
}
"""


def test_small_programs_stand_in_their_detour(m: Any) -> None:
    """Nobody calls them. As many as there is room for: the others are called, and all run."""
    saving = SAVINGS.get(m.arch.name)
    with Kprobes(m) as k:
        plain = [m.call(FUNCTION, n) for n in range(8)]
        seen = []
        for engine in ("interpreter", None):
            program = Program.from_c(SMALL)
            with k.attach(program, FUNCTION, engine=engine) as a:
                assert [m.call(FUNCTION, n) for n in range(8)] == plain
                seen.append((program.variables["calls"], program.variables["odd"], a.runs))
        assert seen == [(8, 16, 8)] * 2
        programs = [Program.from_c(SMALL) for _ in range(12)]
        attached = [k.attach(program, FUNCTION) for program in programs]
        assert [m.call(FUNCTION, n) for n in range(8)] == plain
        assert [(p.variables["calls"], p.variables["odd"]) for p in programs] == [(8, 16)] * 12
        if saving is not None and saving.returns and not m.symbols[FUNCTION].mode:
            text = programs[0].in_guest(m.guest_view).text
            standing, = bodies(m.arch, saving.returns, [(0, 0, text)])
            memory = b"".join(m.read(start, end - start) for start, end in m._sites._code)
            assert len(standing[2]) > 8 and memory.count(standing[2]) >= min(12, 2 * MOST // len(text))
        for one in attached:
            one.detach()
        assert [m.call(FUNCTION, n) for n in range(8)] == plain


def test_a_program_whose_detour_finds_no_room_runs_at_stops(
        m: Any, source: Callable[[], Program], monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a dynamic program of riscv64, whose jumps reach 1 MiB; the reason is in why_python."""
    def none_is_near(sites: CallSites, near: int, size: int) -> int:
        raise NoMemory("no room within reach", address=near)

    if m.arch.name not in SAVINGS or m.symbols[FUNCTION].mode:
        pytest.skip("its programs run at stops anyway")
    with Kprobes(m) as k:
        stops, _, _ = seen(m, k, source(), "interpreter")
        monkeypatch.setattr(CallSites, "take_memory", none_is_near)
        assert seen(m, k, source(), None) == (stops, False, "no room within reach")
        monkeypatch.undo()
        assert seen(m, k, source(), None) == (stops, True, "")


def test_probes_join_and_leave(x86: Any, source: Callable[[], Program]) -> None:
    """Where Python is called there is a breakpoint; nothing is counted twice, and nothing is lost."""
    with Kprobes(x86) as k:
        program, other, hits = source(), source(), []
        with k.attach(program, FUNCTION) as a:
            probe, = a
            x86.call(FUNCTION, 1)
            x86.call(FUNCTION, 1)
            assert probe.optimized and a.runs == 2
            p = Kprobe(symbol_name=FUNCTION, pre_handler=lambda p, regs: hits.append(program.variables["calls"]))
            k.register(p)
            assert not probe.optimized
            x86.call(FUNCTION, 1)
            k.unregister(p)
            x86.call(FUNCTION, 1)
            x86.call(FUNCTION, 1)
            assert probe.optimized and a.runs == program.variables["calls"] == 5 and p.nhit == 1 and hits == [2]
            with k.attach(other, FUNCTION) as b:
                x86.call(FUNCTION, 2)
                x86.call(FUNCTION, 2)
                assert (a.runs, b.runs) == (7, 2) and probe.optimized
            x86.call(FUNCTION, 2)
            assert (a.runs, b.runs, program.variables["calls"], other.variables["calls"]) == (8, 2, 8, 2)
        x86.call(FUNCTION, 2)
        assert a.runs == 8


def test_one_that_has_left_leaves_nothing(m: Any, source: Callable[[], Program]) -> None:
    """Its jump was taken out by itself, or with another probe's coming: then the text is as it was, and nothing stops."""
    addr = m.symbols[FUNCTION].address
    before = m.read(addr, 32)
    with Kprobes(m) as k:
        for beside in (False, True):
            with k.attach(source(), FUNCTION):
                result = m.call(FUNCTION, 3)
                if beside:
                    with k.attach(source(), FUNCTION, engine="interpreter"):
                        assert m.call(FUNCTION, 3) == result
            assert m.read(addr, 32) == before and not m._control.breakpoints and m.call(FUNCTION, 3) == result


def packets_sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Whatever way they go."""
    sent: list[bytes] = []
    write = Connection._write
    monkeypatch.setattr(Connection, "_write", lambda link, data: (sent.extend(data.split(b"$")[1:]),
                                                                  write(link, data))[1])
    return sent


def test_one_that_has_left_costs_runs_nothing(m: Any, source: Callable[[], Program], monkeypatch: pytest.MonkeyPatch
                                              ) -> None:
    """Two runs later nobody asks for its maps and its count any more; they are there, also if its probe comes back."""
    sent = packets_sent(monkeypatch)

    def packets(times: int) -> int:
        for _ in range(times):
            sent.clear()
            m.call(FUNCTION, 1)
        return len(sent)

    with Kprobes(m) as k:
        program, idle = source(), []
        for _ in range(3):
            with k.attach(program, FUNCTION) as a:
                packets(1)
            busy = packets(1)  # somebody may be in its code
            idle.append(packets(2))
            assert idle == idle[:1] * len(idle)
            # the ring and the variables; tables are copied when Python looks at them
            assert idle[0] <= busy - 2 * (not a.why_python["on"])
        assert a.runs == 1 and program.variables["calls"] == 3 and dict(program.maps["counts"]) == {1: 3}
        probe, = a
        k.register(probe)
        program.variables["calls"] = 10
        packets(2)
        assert program.variables["calls"] == 12 and a.runs == 2  # since it was registered
        k.unregister(probe)
        packets(1)
        assert program.variables["calls"] == 12 and packets(2) == idle[0]


def test_one_that_is_refused_costs_runs_nothing(m: Any, source: Callable[[], Program], monkeypatch: pytest.MonkeyPatch
                                                ) -> None:
    """Nothing of it is brought over, then or later, and its constants are free."""
    sent = packets_sent(monkeypatch)
    with Kprobes(m) as k:
        with k.attach(source(), FUNCTION):
            m.call(FUNCTION, 1)
        for _ in range(3):
            m.call(FUNCTION, 1)
        sent.clear()
        m.call(FUNCTION, 1)
        before, program = len(sent), source()
        for where, offset in (("no such function", 0), (FUNCTION, 1 << 70), (5, 0)):
            with pytest.raises(KprobeError):
                k.attach(program, where, offset)
            assert not program.variables.frozen
            for _ in range(3):
                sent.clear()
                m.call(FUNCTION, 1)
            assert len(sent) == before


def test_python_may_change_maps_between_runs(x86: Any, source: Callable[[], Program]) -> None:
    with Kprobes(x86) as k, k.attach(program := source(), FUNCTION) as a:
        for _ in range(3):
            x86.call(FUNCTION, 3)
        a.maps["counts"][3] = 1000
        program.variables["calls"] = 50
        x86.call(FUNCTION, 3)
        assert a.maps["counts"][3] == 1001 and program.variables["calls"] == 51
        del a.maps["counts"][3]
        x86.call(FUNCTION, 3)
        assert dict(a.maps["counts"]) == {3: 1}


def test_runs_may_be_interrupted_anywhere(x86: Any, source: Callable[[], Program]) -> None:
    """Nobody is left standing in a detour: its probe can go, and the guest goes on."""
    plain = x86.call(FUNCTION, 5)
    with Kprobes(x86) as k:
        for n in range(1, 60, 7):
            with k.attach(source(), FUNCTION):
                assert x86.call(FUNCTION, 5) == plain
                with pytest.raises(GuestTimeout):
                    x86.call(FUNCTION, 5, max_insns=n)
            assert x86.call(FUNCTION, 5) == plain
        busy = source()
        with k.attach(busy, FUNCTION) as a:
            with pytest.raises(GuestTimeout):
                while True:
                    x86.call(FUNCTION, 5, timeout=0.0001)
            assert a.runs == busy.variables["calls"]
        assert x86.call(FUNCTION, 5) == plain


#: how code ends a process with status 3, and by a signal: instructions
ENDINGS = {"x86_64": ("bf03000000 b8e7000000 0f05", "0f0b"), "arm64": ("600080d2 c80b80d2 010000d4", "00000000"),
           "mips": ("24040003 24021096 0000000c", "8c000000"), "mips64": ("24040003 24021455 0000000c", "8c000000")}


def calls_and_ends(m: Any, calls: int, signal: bool) -> bytes:
    """Code for where the guest stands: it calls FUNCTION so often, and ends the process."""
    at, to, name = m.regs.pc, m.symbols[FUNCTION].address, m.arch.name.removesuffix("el")
    ending = bytes.fromhex(ENDINGS[name][signal])
    if name == "x86_64":
        code = b"".join(b"\xe8" + (to - (at + 5 * n + 5) & 0xFFFFFFFF).to_bytes(4, "little") for n in range(calls))
    elif name == "arm64":
        code = b"".join((0x94000000 | (to - (at + 4 * n) >> 2 & 0x3FFFFFF)).to_bytes(4, "little")
                        for n in range(calls))
    else:
        call = [0x0C000000 | (to >> 2 & 0x3FFFFFF), 0]  # jal
        if m.arch.bits == 64:  # position-independent code wants its address in t9: ori, dsll ..., jalr
            call = [0x34190000 | to >> 32, 0x0019CC38, 0x37390000 | to >> 16 & 0xFFFF, 0x0019CC38,
                    0x37390000 | to & 0xFFFF, 0x0320F809, 0]
        code = b"".join(word.to_bytes(4, m.arch.order.value) for word in call) * calls
        words = [ending[n:n + 4] for n in range(0, len(ending), 4)]
        ending = b"".join(word if m.arch.order.value == "big" else word[::-1] for word in words)
    return code + ending


@pytest.mark.parametrize("signal", [False, True])
@pytest.mark.parametrize("stem", ["x86_64-O2", "arm64-O2", "mips-O2", "mipsel-O2", "mips64-O2", "mips64el-O2"])
def test_what_is_counted_before_the_end_is_not_lost(stem: str, signal: bool, programs: Programs,
                                                    source: Callable[[], Program]) -> None:
    """The maps and the records come over before the guest exits, or is ended by a signal."""
    with start(stem, programs) as m, Kprobes(m) as k, k.attach(program := source(), FUNCTION) as a:
        m.write(m.regs.pc, calls_and_ends(m, 6, signal))
        with k.event(f"p {FUNCTION} a=$arg1") as e:
            if signal:
                with pytest.raises(GuestFault, match="ended by signal"):
                    m.run(timeout=20)
            else:
                m.run(timeout=20)
            assert (m.exit_status or 0) < 0 if signal else m.exit_status == 3
            assert not a.why_python["on"] and not e.why_python and e.hits == 6
        assert (a.runs, program.variables["calls"], len(list(a.maps["records"]))) == (6, 6, 6)
        assert sum(a.maps["counts"].values()) == 6


@pytest.mark.parametrize(("body", "why"), [
    ('(bpf_printk("x") > 0)', "only the host can do bpf_trace_printk() (helper 6)"),
    ("bpf_ktime_get_ns()", ""),
    ("PT_REGS_PARM1(ctx)", "")])
def test_what_only_the_host_can_do_says_so(x86: Any, body: str, why: str) -> None:
    text = f'#include <kprobes/bpf.h>\nu64 n;\nSEC("kprobe") int on(struct pt_regs *ctx) {{ n += !!{body}; return 0; }}'
    with Kprobes(x86) as k, k.attach(program := Program.from_c(text), FUNCTION) as a:
        for _ in range(3):
            x86.call(FUNCTION, 1)
        assert (why in a.why_python["on"]) and bool(why) == bool(a.why_python["on"])
        assert a.runs == 3 and program.variables["n"] == 3


def test_programs_at_returns_say_why_they_are_stops(m: Any) -> None:
    """And so do events; what they find is right."""
    text = ('#include <kprobes/bpf.h>\nu64 n;\n'
            'SEC("kretprobe") int on(struct pt_regs *ctx) { n += PT_REGS_RC(ctx); return 0; }')
    inside = m.guest_view is not None
    with (Kprobes(m) as k, k.attach(program := Program.from_c(text), FUNCTION, retprobe=True) as a,
          k.event(f"r:e {FUNCTION} $retval:u32") as e, k.event(f"r:f {FUNCTION} $retval:u32 a=$arg1") as f):
        results = [m.call(FUNCTION, n) for n in range(3)]
        assert program.variables["n"] & 0xFFFFFFFF == sum(results) & 0xFFFFFFFF and a.runs == e.hits == f.hits == 3
        assert [r.args["arg1"] for r in e] == [r & 0xFFFFFFFF for r in results] == [r.args["arg1"] for r in f]
        assert not inside or a.why_python["on"] == e.why_python == RETURNS
        assert a.why_python["on"] and e.why_python and f.why_python and f.why_python in repr(f)
