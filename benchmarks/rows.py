"""What is compared with what."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import yardsticks
from attrs import frozen
from worlds import Absent, BareEngine, Crowd, Machine, Run

from kprobes import Jprobe, Kprobe, Kretprobe

#: kind of probe -> how its hits come, see Machine.hit
WAYS = {"k": "k", "b": "b", "o": "o", "r": "k", "rb": "b", "ro": "o"}
MODELS = ("x86_64", "arm64")
LONGER = 200  # a loop in which nothing happens is run so many times longer


@frozen
class Row:
    """enter: sets it up and gives what runs it. to: the row it is compared with. over: the loop whose time is taken
    off, so that the hit's remains. most: the ratio it is to stay below; half as much again on architectures other than
    MODELS, where it is compared with a raw hook. longer: factor of iterations."""

    name: str
    enter: Callable[[], AbstractContextManager[Run]]
    to: str = ""
    over: str = ""
    most: float | None = None
    longer: int = 1


ENGINE, MACHINE = "bare engine", "bare machine"
RAW_EMPTY, RAW_TWO = "raw hook, empty", "raw hook, two arguments"
RAW_PAIR, RAW_PAIR_TWO, RAW_PAIR_ONE = ("raw entry and return hooks, empty",
                                        "raw entry and return hooks, two arguments",
                                        "raw entry and return hooks, one register each")
STORES = "stores, bare engine"


def raw_rows(bare: BareEngine) -> Iterator[Row]:
    """What users do without this library."""
    abi = bare.names.arch.abi
    assert abi is not None
    read, read_one = bare.argument_reader(), bare.register_reader(abi.returns[0])

    def empty(uc: Any, address: int, size: int, data: Any) -> None:
        pass

    def two(uc: Any, address: int, size: int, data: Any) -> None:
        read()

    def one(uc: Any, address: int, size: int, data: Any) -> None:
        read_one()

    yield Row(ENGINE, bare.loop, longer=LONGER)
    yield Row(STORES, bare.stores, longer=LONGER)
    yield Row(RAW_EMPTY, lambda: bare.loop(tiny=empty), over=ENGINE)
    yield Row(RAW_TWO, lambda: bare.loop(tiny=two), over=ENGINE)
    yield Row(RAW_PAIR, lambda: bare.loop(tiny=empty, ret=empty), over=ENGINE)
    yield Row(RAW_PAIR_TWO, lambda: bare.loop(tiny=two, ret=empty), over=ENGINE)
    yield Row(RAW_PAIR_ONE, lambda: bare.loop(tiny=one, ret=one), over=ENGINE)
    yield from yardstick_rows(bare)


def yardstick_rows(bare: BareEngine) -> Iterator[Row]:
    """What users can do who go around the engine's Python binding."""
    where, read = bare.arguments(), yardsticks.reader(bare.uc, *bare.arguments())

    def nobody() -> None:
        """A handler that does nothing."""

    def taken(n: int, k: int) -> None:
        """One that has got two arguments."""

    def by_ctypes(reads: bool) -> Callable[[], Any]:
        made = yardsticks.by_ctypes(bare.uc, read if reads else None)
        return lambda: made

    def of_c(name: str, handler: Callable[..., None] | None = None) -> Callable[[], AbstractContextManager[Run]]:
        return lambda: bare.hooked(lambda: yardsticks.in_c(name, *where, handler), count=True)

    empty, two = by_ctypes(False), by_ctypes(True)
    yield Row("hook by ctypes, empty", lambda: bare.hooked(empty), RAW_EMPTY, ENGINE)
    yield Row("hook by ctypes, two arguments", lambda: bare.hooked(two), RAW_TWO, ENGINE)
    yield Row("hook through the C API, empty", of_c("api_empty", nobody), RAW_EMPTY, ENGINE)
    yield Row("hook through the C API, two arguments", of_c("api_two", taken), RAW_TWO, ENGINE)
    yield Row("hook in C, empty", of_c("c_empty"), RAW_EMPTY, ENGINE, longer=LONGER // 10)
    yield Row("hook in C, two arguments", of_c("c_two"), RAW_TWO, ENGINE, longer=LONGER // 10)


def empty(p: Kprobe, regs: Any) -> None:
    """A pre-handler that does nothing."""


def two(p: Kprobe, regs: Any) -> None:
    """A pre-handler that reads two arguments."""
    regs.arg(0)
    regs.arg(1)


def nothing(ri: Any, regs: Any) -> None:
    """A handler of a return probe."""


def value(ri: Any, regs: Any) -> None:
    """A return handler that reads the return value."""
    _ = regs.return_value


def probe_rows(m: Machine) -> Iterator[Row]:
    """Every kind of probe, in Linux's letters."""

    def row(name: str, way: str, make: Callable[[], Any], to: str, most: float | None = None) -> Row:
        return Row(name, lambda: m.probed(way, make()), to, MACHINE, most)

    def kprobe(kind: str, handler: Any) -> Callable[[], Kprobe]:
        return lambda: Kprobe(symbol_name="tiny", pre_handler=handler, optimize=kind != "k")

    def kretprobe(kind: str, handler: Any, entry: Any = None) -> Callable[[], Kretprobe]:
        return lambda: Kretprobe(symbol_name="tiny", handler=handler, entry_handler=entry, optimize=kind != "r")

    yield Row(MACHINE, m.loop, ENGINE, longer=LONGER)
    yield Row("stores, one probe elsewhere", m.stores, STORES, most=1.0, longer=LONGER)
    for kind, most_empty, most_two in (("k", None, 0.8), ("b", None, 0.45), ("o", 0.8, 0.15)):
        yield row(f"{kind}, empty", WAYS[kind], kprobe(kind, empty), RAW_EMPTY, most_empty)
        yield row(f"{kind}, two arguments", WAYS[kind], kprobe(kind, two), RAW_TWO, most_two)
    yield Row("c", lambda: m.probed("c", Kprobe(symbol_name="tiny")), RAW_EMPTY, MACHINE, 0.1, longer=LONGER // 10)
    yield row("j, empty", "o", lambda: Jprobe(symbol_name="tiny", entry=lambda: None), RAW_EMPTY)
    yield row("j, two arguments", "o", lambda: Jprobe(symbol_name="tiny", entry=lambda n, k: None), RAW_TWO)
    for kind in ("r", "rb", "ro"):
        fast = kind == "ro"
        yield row(f"{kind}, empty", WAYS[kind], kretprobe(kind, nothing), RAW_PAIR)
        yield row(f"{kind}, two arguments", WAYS[kind], kretprobe(kind, nothing, two), RAW_PAIR_TWO)
        yield row(f"{kind}, return value", WAYS[kind], kretprobe(kind, value), RAW_PAIR_ONE, 0.3 if fast else None)
    plain, asking = kretprobe("ro", nothing), kretprobe("ro", nothing, nothing)
    yield row("ro, empty at entry and return", "o", asking, RAW_PAIR, 2.0)
    yield Row("ro, two probes", lambda: m.probed("o", plain(), plain()), RAW_PAIR, MACHINE, 2.5)
    yield Row("ro, two probes, one asks at entry", lambda: m.probed("o", plain(), asking()), RAW_PAIR, MACHINE, 4.0)
    yield Row("ro, three probes, all ask at entry", lambda: m.probed("o", asking(), asking(), asking()), RAW_PAIR,
              MACHINE, 4.5)
    yield Row("ro, guest tasks", lambda: m.with_tasks(plain()), RAW_PAIR, MACHINE, 4.0)
    yield Row("ro, guest tasks, two probes, one asks at entry", lambda: m.with_tasks(plain(), asking()), RAW_PAIR,
              MACHINE, 6.0)


def crowd_rows(crowd: Crowd) -> Iterator[Row]:
    """The same among many probes."""
    unprobed = f"unprobed, {crowd.count:,} probes elsewhere"

    def row(kind: str) -> Row:
        made = f"{kind}, two arguments"
        return Row(f"{made}, {crowd.count:,} probes elsewhere",
                   lambda: crowd.probed(WAYS[kind], Kprobe(symbol_name="tiny", pre_handler=two, optimize=kind != "k")),
                   made, unprobed, 1.1)

    yield Row(unprobed, crowd.unhit, ENGINE, most=1.02, longer=LONGER)
    for kind in ("k", "b", "o"):
        yield row(kind)


def measure(arch: str, hits: int, rounds: int, others: list[int]) -> dict[str, Any]:
    """Run everything for one architecture. Returns what JSON can hold: rows, and what registering costs."""
    crowds = [Crowd(arch, count) for count in others]
    rows = [*raw_rows(BareEngine(arch)), *probe_rows(Machine(arch)),
            *(row for crowd in crowds for row in crowd_rows(crowd))]
    samples: dict[str, list[float]] = {row.name: [] for row in rows}
    absent: dict[str, str] = {}
    for _ in range(rounds):
        for row in rows:
            if row.name not in absent:
                try:
                    samples[row.name].append(sample(row, hits * row.longer))
                except Absent as why:
                    absent[row.name] = str(why)
    registering = [{"probes": c.count, "register": c.seconds, "unregister": c.close(), "bytes": c.bytes}
                   for c in crowds]
    results = [result(row, {r.name: r for r in rows}, samples, absent) for row in rows]
    for found in results:
        if arch not in MODELS and "most" in found and found["to"].startswith("raw"):
            found["most"] = round(found["most"] * 1.5, 3)
    return {"rows": results, "registering": registering}


def sample(row: Row, iterations: int) -> float:
    """Seconds of the processor's time per iteration; what a call costs apart from its iterations is taken off."""
    with row.enter() as run:
        begin = time.thread_time()
        run(1)
        middle = time.thread_time()
        run(iterations + 1)
        return (time.thread_time() - middle - (middle - begin)) / iterations


def result(row: Row, rows: dict[str, Row], samples: dict[str, list[float]], absent: dict[str, str]) -> dict[str, Any]:
    """Medians over the rounds: of the cost, and of its ratio to what it is compared with in the same round."""
    if row.name in absent or row.to in absent:
        return {"name": row.name, "absent": absent.get(row.name) or absent[row.to]}

    def costs(of: Row) -> list[float]:
        return [whole - loop for whole, loop in zip(samples[of.name],
                                                    samples.get(of.over) or [0.0] * len(samples[of.name]), strict=True)]

    found: dict[str, Any] = {"name": row.name, "ns": round(statistics.median(costs(row)) * 1e9, 2)}
    if row.to:
        found |= {"to": row.to, "ratio": round(statistics.median(a / b
                                                                 for a, b in zip(costs(row), costs(rows[row.to]),
                                                                     strict=True)), 3)}
    return found | ({} if row.most is None else {"most": row.most})
