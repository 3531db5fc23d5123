"""What a probe program costs, compiled and run at a call site, against a raw engine hook in the same run.

    python benchmarks/programs.py [--arch x86_64] [--rounds 25] [--hits 20000]

Every round runs every row, so that whatever disturbs the machine disturbs all alike; shown are medians over the rounds,
in ns of the processor's time, with the loop's own time taken off, and the ratio to the same round's raw hook (an empty
Python function).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from subjects import SUBJECTS
from worlds import BASE, Absent, BareEngine, K, make_machine

from kprobes import Kprobes, Program, UnicornMachine
from kprobes.programs import host
from kprobes.programs.maps.ring import CONSUMER, PRODUCER
from kprobes.programs.site import SiteProgram

CROWD = "count, 10,000 programs elsewhere"
WRITABLE = "hash map update, text is writable"
Run = Callable[[int], object]
MAPS = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 64);
         __type(key, __u32); __type(value, __u64); } a SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024);
         __type(key, __u64); __type(value, __u64); } h SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 21); } r SEC(".maps");
struct event { __u64 a, b, c; };
static __always_inline void add(__u32 at) {
    __u64 *n = bpf_map_lookup_elem(&a, &at); if (n) __sync_fetch_and_add(n, 1); }
static __always_inline __u32 log2l(__u64 v) {
    __u32 r = 0; for (int s = 32; s; s >>= 1) if (v >> s) { v >>= s; r += s; } return r; }
"""
#: row -> (programs at the entry and at the return, the most ns)
ROWS: dict[str, tuple[str, str, float]] = {
    "nothing": ("", "", 10),
    "count": ("__u32 at = 0; __u64 *n = bpf_map_lookup_elem(&a, &at); if (n) ++*n;", "", 10),
    "count, atomically": ("add(0);", "", 15),
    "3 registers, filter, record": (
        """if (PT_REGS_PARM2(ctx) < 5) return 0;
        struct event *e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
        if (e) { e->a = PT_REGS_PARM1(ctx); e->b = PT_REGS_PARM2(ctx); e->c = PT_REGS_SP(ctx);
        bpf_ringbuf_submit(e, 0); }""", "", 25),
    "the same, 8 bytes of memory": (
        """if (PT_REGS_PARM2(ctx) < 5) return 0;
        struct event *e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
        if (e) { e->a = PT_REGS_PARM1(ctx); e->b = PT_REGS_PARM2(ctx);
        bpf_probe_read(&e->c, 8, (void *)PT_REGS_SP(ctx)); bpf_ringbuf_submit(e, 0); }""", "", 60),
    "the same, 16-byte string": (
        """if (PT_REGS_PARM2(ctx) < 5) return 0;
        struct { __u64 a, b; char s[16]; } *e = bpf_ringbuf_reserve(&r, sizeof(*e), 0);
        if (e) { e->a = PT_REGS_PARM1(ctx); e->b = PT_REGS_PARM2(ctx); bpf_probe_read_str(e->s, 16, (void *)(STRING));
        bpf_ringbuf_submit(e, 0); }""", "", 90),
    "log2 histogram": ("add(log2l(PT_REGS_PARM1(ctx)));", "", 50),
    "hash map update": (
        """__u64 k = PT_REGS_PARM1(ctx) & 255, one = 1, *n = bpf_map_lookup_elem(&h, &k);
        if (n) __sync_fetch_and_add(n, 1); else bpf_map_update_elem(&h, &k, &one, BPF_ANY);""", "", 50),
    "entry and return, latency histogram": (
        "__u64 k = PT_REGS_SP(ctx), t = bpf_ktime_get_ns(); bpf_map_update_elem(&h, &k, &t, BPF_ANY);",
        """__u64 k = PT_REGS_SP(ctx) - PUSHED, *t = bpf_map_lookup_elem(&h, &k);
        if (t) { add(log2l(bpf_ktime_get_ns() - *t)); bpf_map_delete_elem(&h, &k); }""", 120),
}


class Call:
    """What helpers in Python would see: there are none."""


def compiled(machine: UnicornMachine, entry: str, back: str = "") -> Program:
    """The programs `entry` and `back` of C."""
    pushed = machine.arch.linkage.pushed if machine.arch.linkage else 0
    text = MAPS
    for name, body in (("entry", entry), ("back", back)):
        text += f'SEC("kprobe") int {name}(struct pt_regs *ctx) {{ {body} return 0; }}\n'
    return Program.from_c(text.replace("PUSHED", str(pushed)).replace("STRING",
                                                                      f"{machine.symbols['text'].address}ull"))


def machine_with_text(arch: str) -> UnicornMachine:
    """The subject, and a string."""
    machine = make_machine(arch)
    text = machine.alloc(64)
    machine.write(text, b"fifteen letters\0")
    machine.symbols.add("text", text, 64)
    return machine


@contextmanager
def row(arch: str, entry: str, back: str, writable: bool = False) -> Iterator[Run]:
    """The loop with these programs. writable: as from_code() maps text; a program's file does not."""
    machine = machine_with_text(arch)
    if writable:
        machine.protect(BASE, machine.page_size, "rwx")
    program = compiled(machine, entry, back)
    records: Any = program.maps["r"]
    with Kprobes(machine) as k:
        attached = [k.attach(program["back"], "tiny", retprobe=True)] if back else []
        attached.append(k.attach(program["entry"], "tiny"))

        def run(count: int) -> None:
            if machine.call("loop", count, K) != 1 + K:
                raise RuntimeError("the guest was disturbed")
            records._head[CONSUMER] = records._head[PRODUCER]  # read, as far as the program knows

        run(100)
        reasons = (a.why_python["back" if n < len(attached) - 1 else "entry"] for n, a in enumerate(attached))
        if why := next(filter(None, reasons), ""):
            raise Absent(f"not at a call site: {why}")
        yield run


FARM, OTHERS = 0x1000000, 10_000


@contextmanager
def crowd(arch: str) -> Iterator[Run]:
    """The loop with `count` as its program, and as many programs elsewhere as OTHERS says."""
    machine, made = machine_with_text(arch), SUBJECTS[arch]
    step = len(made.filler)
    machine.map(FARM, -(-OTHERS * step // 0x10000) * 0x10000, "rx")  # as code is: nobody stores there
    machine.write(FARM, made.filler * OTHERS)
    for n in range(0, OTHERS, 1000):
        machine.symbols.add(f"farm{n}", FARM + n * step, 1000 * step, mode=made.mode)
    program = compiled(machine, *ROWS["count"][:2])["entry"]
    with Kprobes(machine) as k:
        start = time.thread_time()
        for n in range(OTHERS):
            k.attach(program, FARM + n * step)
        print(f"attaching {OTHERS:,} programs: {(time.thread_time() - start) / OTHERS * 1e6:.0f} us each")
        k.attach(program, "tiny")

        def run(count: int) -> None:
            if machine.call("loop", count, K) != 1 + K:
                raise RuntimeError("the guest was disturbed")

        run(100)
        yield run


@contextmanager
def plain(arch: str, writable: bool = False) -> Iterator[Run]:
    """The loop without probes. writable: see row()."""
    machine = make_machine(arch)
    if writable:
        machine.protect(BASE, machine.page_size, "rwx")
    yield lambda count: machine.call("loop", count, K)


LOOP = "loop"


def counted(arch: str) -> dict[str, Callable[[], AbstractContextManager[Run]]]:
    """What instructions.py counts: row -> what gives its run. All are compared with LOOP.

    Under valgrind the clock takes its slow way, since everything there is slow.
    """
    made: dict[str, Callable[[], AbstractContextManager[Run]]] = {LOOP: partial(plain, arch)}
    for name, (entry, back, _) in ROWS.items():
        made[name] = partial(row, arch, entry, back)
    return made


def measure(arch: str, rounds: int, hits: int) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        bare = BareEngine(arch)
        runs: dict[str, Run] = {"loop": stack.enter_context(plain(arch))}
        runs["raw hook"] = stack.enter_context(bare.loop(tiny=lambda uc, address, size, data: None))
        for name, (entry, back, _) in ROWS.items():
            runs[name] = stack.enter_context(row(arch, entry, back))
        runs[WRITABLE] = stack.enter_context(row(arch, *ROWS["hash map update"][:2], writable=True))
        runs["the loop, text is writable"] = stack.enter_context(plain(arch, writable=True))
        runs[CROWD] = stack.enter_context(crowd(arch))
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                count = hits // 20 if name == "raw hook" else hits
                start = time.thread_time()
                run(count)
                times[name].append((time.thread_time() - start) / count * 1e9)
    print(f"{arch}\n{'':38} {'ns':>8} {'target':>8} {'of a raw hook':>14}")
    raw = [t - base for t, base in zip(times["raw hook"], times["loop"], strict=True)]
    print(f"{'raw hook, empty, in Python':38} {statistics.median(raw):8.1f}")
    for name, most in [*((name, most) for name, (_, _, most) in ROWS.items()), (CROWD, 10.0)]:
        costs = [t - base for t, base in zip(times[name], times["loop"], strict=True)]
        ratio = statistics.median(c / r for c, r in zip(costs, raw, strict=True))
        print(f"{name:38} {statistics.median(costs):8.1f} {most:8.0f} {ratio:14.3f}")
    to_loop = [t - base for t, base in zip(times[WRITABLE], times["the loop, text is writable"], strict=True)]
    print(f"{WRITABLE:38} {statistics.median(to_loop):8.1f}  (its stores are watched: no target)")
    crowd_to_one = statistics.median(c / one for c, one in zip(times[CROWD], times["count"], strict=True))
    print(f"the loop with {OTHERS:,} programs elsewhere takes {crowd_to_one:.2f} of the time with one (target 1.1)")


def compiling() -> None:
    """What it takes to compile, anew and from the cache."""
    entry, _, _ = ROWS["the same, 16-byte string"]
    machine = machine_with_text("x86_64")
    program = compiled(machine, entry)["entry"]
    with tempfile.TemporaryDirectory() as empty:
        os.environ["XDG_CACHE_HOME"] = empty
        for name in ("compile", "from the cache"):
            times = []
            for _ in range(9):
                if name == "compile":
                    for file in Path(empty).glob("kprobes/programs/*"):
                        file.unlink()
                host.load.cache_clear()
                start = time.thread_time()
                SiteProgram(program.code, machine.host_view, Call(), False, "host")
                times.append(time.thread_time() - start)
            print(f"{name:38} {statistics.median(times) * 1e3:8.2f} ms")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=sorted(SUBJECTS), help="default: x86_64 and arm64")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--hits", type=int, default=20000)
    options = parser.parse_args()
    for arch in options.arch or ("x86_64", "arm64"):
        measure(arch, options.rounds, options.hits)
    compiling()


if __name__ == "__main__":
    main()
