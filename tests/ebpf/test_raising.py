"""What a program calls of Python may raise: the clock, who prints, the guest's memory, its task, stack walks. The run ends
there, on every engine alike: maps have what was done before, and no record is delivered that the program had not submitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kprobes import Kprobes, Program, UnicornMachine, Unsupported
from kprobes.programs.engines import ENGINES
from kprobes.programs.nowhere import Nowhere

pytest.importorskip("ziglang")

SOURCE = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } r SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, u32); __type(value, u64); } h SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 1); __type(key, u32); __type(value, u64); } l SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(key_size, 4); __uint(value_size, 32); __uint(max_entries, 8); } s SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 8); __type(value, u64); } q SEC(".maps");
struct record { u64 a, b; };
u64 before, behind;
char text[16];
static __noinline u64 deeper(struct pt_regs *ctx) { u64 v = CALL; return v + 1; }
SEC("kprobe/f") int straight(struct pt_regs *ctx)
{
    u64 one = 1, key = 1;
    struct record *e;
    before += 1;
    bpf_ringbuf_output(&r, &one, 8, 0);
    e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
    if (!e) return 0;
    e->a = 7;
    e->b = CALL;
    bpf_ringbuf_submit(e, 0);
    behind += 1;
    bpf_map_update_elem(&h, &key, &one, BPF_ANY);
    bpf_map_push_elem(&q, &one, 0);
    return 5;
}
SEC("kprobe/g") int nested(struct pt_regs *ctx)
{
    struct record *e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
    if (!e) return 0;
    e->a = 8;
    e->b = deeper(ctx);
    behind += 1;
    bpf_ringbuf_discard(e, 0);
    return 6;
}
"""
#: what is called -> the member of the place that raises
CALLS = {
    "bpf_ktime_get_ns()": "clock", "bpf_ktime_get_boot_ns()": "clock", "bpf_get_current_pid_tgid()": "pid_tgid",
    "bpf_get_current_comm(text, sizeof(text))": "comm", "bpf_get_stackid(ctx, &s, 0)": "stack",
    "bpf_get_stack(ctx, text, sizeof(text), 0)": "stack", "bpf_override_return(ctx, 1)": "override",
    "bpf_probe_read_kernel(text, 8, (void *)0x1000)": "read", "bpf_probe_read_kernel_str(text, 8, (void *)0x1000)": "read",
    'bpf_printk("%d", 1)': "printed", 'bpf_printk("%d %d %d %d", 1, 2, 3, 4)': "printed",
    'bpf_printk("%s", 0x1000)': "read", 'BPF_SNPRINTF(text, sizeof(text), "%s", 0x1000)': "read",
}


class Failure(Exception):
    """Not the library's."""


class Failing(Nowhere):
    """A guest of which one member raises. printed: the lines that came before."""

    def __init__(self, member: str) -> None:
        self.lines: list[str] = []
        if member != "printed":
            setattr(self, member, self.fail)
        self.printed: Callable[[str], None] = self.fail if member == "printed" else self.lines.append

    def fail(self, *_: object) -> Any:
        raise Failure

    def read(self, addr: int, size: int) -> bytes:
        return b"text\0".ljust(size, b"\0")[:size]

    def stack(self, skip: int, depth: int) -> list[int]:
        return [0x10, 0x20][skip:]

    def override(self, value: int) -> None:
        pass


def engines() -> list[str]:
    """Those that there are here."""
    found = []
    for name in ENGINES:
        try:
            Program.from_c(SOURCE.replace("CALL", "0"))["straight"].engine(name)
        except Unsupported:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("entry", ["straight", "nested"])
@pytest.mark.parametrize("call", CALLS)
def test_a_run_ends_where_python_raises(call: str, entry: str) -> None:
    """Nothing is done behind it, what was reserved is discarded, and the next run is as if nothing had been."""
    for name in engines():
        program = Program.from_c(SOURCE.replace("CALL", call))
        made, ring = program[entry].engine(name), program.maps["r"]
        place = Failing(CALLS[call])
        with pytest.raises(Failure):
            made.run(b"", place, place.printed)
        done = [(1).to_bytes(8, "little")] if entry == "straight" else []
        assert (list(ring), program.variables["behind"], dict(program.maps["h"]), list(program.maps["q"])) == (done, 0, {}, [])
        assert program.variables["before"] == len(done)
        good = Failing("none")
        assert made.run(b"", good, good.printed) == 5 + (entry == "nested")
        assert program.variables["behind"] == 1
        assert len(list(ring)) == 2 * len(done)


@pytest.mark.parametrize("engine", [None, "interpreter"])
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_a_clock_that_raises_at_a_probe(arch: str, engine: str | None) -> None:
    """Between reserve and submit, by the interpreter and by compiled code: no record is delivered. As a trap and
    optimized; the exception comes out of the guest's call."""
    text = bytes.fromhex({"x86_64": "90909090c3", "arm64": "1f2003d5c0035fd6"}[arch])
    machine = UnicornMachine.from_code(text * 2, arch=arch, symbols={"f": 0x10000, "g": 0x10000 + len(text)})
    program = Program.from_c(SOURCE.replace("CALL", "bpf_ktime_get_ns()"))
    failing: list[bool] = []

    def clock() -> int:
        if failing:
            raise Failure
        return 9

    with Kprobes(machine) as k, k.attach(program, clock=clock, engine=engine) as a:
        for n in range(4):
            for name, records in (("f", 2), ("g", 0)):
                program.variables["behind"] = 0
                failing.append(True)
                with pytest.raises(Failure):
                    machine.call(name)
                assert len(list(a.maps["r"])) == bool(records), n
                failing.clear()
                machine.call(name)
                assert program.variables["behind"] == 1
                assert len(list(a.maps["r"])) == records, n


@pytest.mark.parametrize("outer", ["host", "interpreter"])
@pytest.mark.parametrize("inner", ["host", "interpreter"])
def test_a_program_that_fails_within_a_helper_leaves_the_outer_one_s_records(outer: str, inner: str) -> None:
    if {outer, inner} - set(engines()):
        pytest.skip("no host code here")
    program = Program.from_c(SOURCE.replace("CALL", "bpf_ktime_get_ns()"))
    first, second, ring = program["straight"].engine(outer), program["nested"].engine(inner), program.maps["r"]
    other = program["straight"].engine(inner)
    place = Failing("none")

    def clock() -> int:
        for one in (second, other):
            failing = Failing("clock")
            with pytest.raises(Failure):
                one.run(b"", failing, failing.printed)
        return 3

    place.clock = clock  # type: ignore[method-assign]
    assert first.run(b"", place, place.printed) == 5
    word = [n.to_bytes(8, "little") for n in (1, 7, 3)]
    assert list(ring) == [word[0], word[1] + word[2], word[0]]
