"""What a hit costs, against a raw engine hook measured in the same run.

    python benchmarks/hit_cost.py [--arch x86_64 --arch arm64] [--hits 20000] [--rounds 5] [--probes 1,1000,10000]

Each row runs one guest loop that calls a two-instruction function; the cost of a hit is the row's time less the bare
loop's, divided by the hits, and the median over the rounds is shown. Rounds interleave the rows, so a noisy machine
disturbs all of them alike: trust the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import unicorn
from attrs import frozen
from unicorn import arm64_const, x86_const

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe, UnicornMachine

BASE, FARM = 0x10000, 0x200000


@frozen
class Subject:
    """The guest loop of one architecture. `filler` is a straight-line instruction to put other probes on."""

    code: str
    tiny: int  # offset of the probed function
    ret: int  # offset of its return instruction
    filler: bytes
    arg: tuple[int, int]
    result: int


SUBJECTS = {
    "x86_64": Subject("loop: call tiny; dec rdi; jnz loop; ret; tiny: lea rax, [rdi + rsi]; nop; ret", 11, 16, b"\x0f\x1f\x44\x00\x00",
                      (x86_const.UC_X86_REG_RDI, x86_const.UC_X86_REG_RSI), x86_const.UC_X86_REG_RAX),
    "arm64": Subject("mov x9, x30; loop: bl tiny; subs x0, x0, #1; b.ne loop; ret x9; tiny: add x2, x0, x1; ret", 20, 24,
                     bytes.fromhex("1f2003d5"), (arm64_const.UC_ARM64_REG_X0, arm64_const.UC_ARM64_REG_X1), arm64_const.UC_ARM64_REG_X0),
}


class Bench:
    """One architecture's machine and its rows."""

    def __init__(self, arch: str, hits: int) -> None:
        self.subject = SUBJECTS[arch]
        self.hits = hits
        self.m = UnicornMachine.from_code(self.subject.code, arch=arch, base=BASE)
        self.m.symbols.add("loop", BASE, self.subject.tiny)
        self.m.symbols.add("tiny", BASE + self.subject.tiny, self.subject.ret + 1 - self.subject.tiny)
        self.tiny, self.ret = BASE + self.subject.tiny, BASE + self.subject.ret

    def once(self) -> float:
        """Seconds of one run of the loop."""
        start = time.perf_counter()
        self.m.call("loop", self.hits, 7)
        return time.perf_counter() - start

    @contextmanager
    def hook(self, address: int, callback: Callable[..., None]) -> Iterator[None]:
        """A raw engine hook, as a user adds it."""
        self.m.uc.ctl_remove_cache(address, address + 1)
        handle = self.m.uc.hook_add(unicorn.UC_HOOK_CODE, callback, begin=address, end=address)
        yield
        self.m.uc.hook_del(handle)
        self.m.uc.ctl_remove_cache(BASE, BASE + 0x1000)

    @contextmanager
    def raw(self, *callbacks: tuple[int, Callable[..., None]]) -> Iterator[Bench]:
        if not callbacks:
            yield self
            return
        with self.hook(*callbacks[0]), self.raw(*callbacks[1:]):
            yield self

    @contextmanager
    def probes(self, *probes: Kprobe | Kretprobe | Jprobe, others: int = 0, jumps: bool = True) -> Iterator[Bench]:
        with Kprobes(self.m) as k:
            k.optimization = jumps
            if others:
                k.register_kprobes(self.farm(others))
            for probe in probes:
                k.register(probe)
            yield self

    def farm(self, count: int) -> list[Kprobe]:
        """`count` probes on code that never runs, in functions of 1000 instructions."""
        filler = self.subject.filler
        size = -(-count * len(filler) // 4096) * 4096
        if (self.m.uc.mem_regions is not None) and not self.m.executable(FARM):
            self.m.uc.mem_map(FARM, max(size, 1 << 20))
            self.m.write(FARM, filler * ((1 << 20) // len(filler)))
            for i in range((1 << 20) // len(filler) // 1000):
                self.m.symbols.add(f"farm{i}", FARM + i * 1000 * len(filler), 1000 * len(filler))
        return [Kprobe(addr=FARM + i * len(filler), pre_handler=empty) for i in range(count)]


def empty(p: Kprobe, regs: object) -> None:
    """A handler that does nothing."""


def two(p: Kprobe, regs: object) -> None:
    """A handler that reads two arguments."""
    regs.arg(0)
    regs.arg(1)


def post(p: Kprobe, regs: object, flags: int) -> None:
    """A post-handler that does nothing."""


def rows(b: Bench, others: list[int]) -> dict[str, Callable[[], object]]:
    """Row name -> context manager that sets it up."""
    read, (a0, a1), tiny = b.m.uc.reg_read, b.subject.arg, b.tiny

    def raw_empty(*_: object) -> None:
        pass

    def raw_two(*_: object) -> None:
        read(a0)
        read(a1)

    def raw_result(*_: object) -> None:
        read(b.subject.result)

    def kprobe(**fields: object) -> Callable[[], object]:
        return lambda: b.probes(Kprobe(addr=tiny, **fields))

    def boosted(**fields: object) -> Callable[[], object]:
        return lambda: b.probes(Kprobe(addr=tiny, **fields), jumps=False)

    def ret(**fields: object) -> Callable[[], object]:
        return lambda: b.probes(Kretprobe(addr=tiny, **fields))

    table: dict[str, Callable[[], object]] = {
        "bare": b.raw,
        "raw hook, empty": lambda: b.raw((tiny, raw_empty)),
        "raw hook, two arguments": lambda: b.raw((tiny, raw_two)),
        "raw entry + return hooks, empty": lambda: b.raw((tiny, raw_empty), (b.ret, raw_empty)),
        "raw entry + return hooks, one register each": lambda: b.raw((tiny, raw_result), (b.ret, raw_result)),
        "kprobe k, empty": kprobe(pre_handler=empty, optimize=False),
        "kprobe k, two arguments": kprobe(pre_handler=two, optimize=False),
        "kprobe k, two arguments, post": kprobe(pre_handler=two, post_handler=post, optimize=False),
        "boosted b, empty": boosted(pre_handler=empty),
        "boosted b, two arguments": boosted(pre_handler=two),
        "optimized o, empty": kprobe(pre_handler=empty),
        "optimized o, two arguments": kprobe(pre_handler=two),
        "counted c": kprobe(),
        "jprobe j, empty": lambda: b.probes(Jprobe(addr=tiny, entry=lambda: None)),
        "jprobe j, two arguments": lambda: b.probes(Jprobe(addr=tiny, entry=lambda a, b: None)),
        "return probe r, empty": ret(handler=lambda ri, regs: None, optimize=False),
        "return probe ro, empty": ret(handler=lambda ri, regs: None),
        "return probe ro, entry and return empty": ret(handler=lambda ri, regs: None, entry_handler=lambda ri, regs: None),
        "return probe ro, return value": ret(handler=lambda ri, regs: regs.return_value),
    }
    for n in others:
        table[f"optimized o, two arguments, {n} others"] = lambda n=n: b.probes(Kprobe(addr=tiny, pre_handler=two), others=n)
        table[f"not hit, {n} others"] = lambda n=n: b.probes(others=n)
    return table





def baseline(row: str) -> str:
    """The raw row that a row is compared with."""
    if "return probe" in row:
        return "raw entry + return hooks, one register each" if "value" in row else "raw entry + return hooks, empty"
    if "not hit" in row or row == "bare":
        return "bare"
    return "raw hook, empty" if "empty" in row or "counted" in row else "raw hook, two arguments"


def measure(arch: str, hits: int, rounds: int, others: list[int], markdown: bool = False) -> None:
    """Run and print one architecture's table."""
    b = Bench(arch, hits)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, setup in rows(b, others).items():
            with setup():
                b.m.call("loop", 100, 7)
                times.setdefault(name, []).append(b.once())
    bare = statistics.median(times["bare"])
    title = f"{arch}: {hits} hits, {rounds} rounds; bare loop {bare / hits * 1e9:.1f} ns per iteration"
    line = print_markdown if markdown else print_text
    print(f"\n## {title}\n" if markdown else f"\n{title}")
    line("row", "ns/hit", "ratio", "to")
    if markdown:
        print("|---|---|---|---|")
    for name, seen in times.items():
        if name == "bare":
            continue
        to = baseline(name)
        if to == "bare":
            ratio = statistics.median(t / base for t, base in zip(seen, times["bare"], strict=True))
            line(name, "", f"{ratio:.3f}", "the bare loop")
            continue
        cost = [(t - bare) / hits for t in seen]
        ratio = statistics.median(c / ((r - bare) / hits) for c, r in zip(cost, times[to], strict=True))
        line(name, f"{statistics.median(cost) * 1e9:.0f}", f"{ratio:.2f}", to)


def print_text(row: str, cost: str, ratio: str, to: str) -> None:
    """A line for people."""
    print(f"{row:52} {cost:>8} {ratio:>7}  {to}")


def print_markdown(row: str, cost: str, ratio: str, to: str) -> None:
    """A line for docs/cost.md."""
    print(f"| {row} | {cost} | {ratio} | {to} |")


def registration(arch: str, count: int) -> None:
    """Print what registering and unregistering costs."""
    import tracemalloc

    b = Bench(arch, 1)
    with Kprobes(b.m) as k:
        probes = b.farm(count)
        start = time.perf_counter()
        k.register_kprobes(probes)
        middle = time.perf_counter()
        k.unregister_kprobes(probes)
        end = time.perf_counter()
        del probes
        tracemalloc.start()
        probes = b.farm(count)
        k.register_kprobes(probes)
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        k.unregister_kprobes(probes)
    print(f"{arch}: register {count}: {middle - start:.2f} s, unregister: {end - middle:.2f} s, {used / count:.0f} bytes per probe")


def main() -> None:
    """Parse arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=sorted(SUBJECTS), help="default: all")
    parser.add_argument("--hits", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--probes", default="1,1000,10000", help="numbers of other probes")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    options = parser.parse_args()
    if options.markdown:
        print("# What a hit costs\n\nPrinted by `python benchmarks/hit_cost.py --markdown`; trust the ratios, not the nanoseconds.")
    others = [int(n) for n in options.probes.split(",") if n]
    for arch in options.arch or sorted(SUBJECTS):
        measure(arch, options.hits, options.rounds, others, options.markdown)
    for arch in options.arch or sorted(SUBJECTS):
        registration(arch, max(others, default=1000))


if __name__ == "__main__":
    main()
