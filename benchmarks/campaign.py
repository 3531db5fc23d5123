"""Campaigns: what spreading costs and gains. `python benchmarks/campaign.py [--items 20000] [--rounds 5]`.

One function of the demo program is called with each input, from the same state: in this process, by one process of a
pool and by two, by two dask workers, in turn; each gives the same. Ratios are to the first of the same round: of time,
and what as many processors would make of the processor time spent, which other programs that run at the same time
change less. dask's settings are those of examples/dask.yaml. Then 100,000 inputs with one that crashes its process and
one that hangs it: nothing else may be lost.
"""

from __future__ import annotations

import argparse
import ctypes
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask.config
import psutil  # distributed brings it
import yaml  # dask does
from attrs import frozen
from distributed import Client, LocalCluster

from kprobes.campaign import Calls, Outcome, run

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
JOB = Calls(str(EXAMPLES / "demo.x86_64"), "parse_settings(@input)", ("p table_insert",), ("table_init()",))


@frozen
class Treacherous:
    """JOB, but two inputs do what guests have done to engines."""

    def __call__(self, item: bytes) -> Any:
        if item == b"n=50000":
            ctypes.string_at(0)
        while item == b"n=70000":
            time.sleep(1)
        return JOB(item)


def inputs(count: int) -> list[bytes]:
    return [b"n=%d" % n for n in range(count)]


def spent() -> tuple[float, float]:
    """Seconds since whenever, and of the processors' time, that of the processes below this one included."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    below = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in usages) + sum(c.user + c.system for c in below)


class Spent(NamedTuple):
    """Seconds for all items. busy: of the processors' time."""

    wall: float
    busy: float


def measured(work: Callable[[], Iterable[Any]], wanted: Mapping[bytes, Any]) -> Spent:
    """Do it. What comes of each item must be what came of it here."""
    before = spent()
    outcomes = [*work()]
    wall, busy = (after - start for start, after in zip(before, spent(), strict=True))
    assert {outcome.item: outcome.result for outcome in outcomes} == wanted
    return Spent(wall, busy)


def here(items: list[bytes]) -> Iterable[Any]:
    """In this process."""
    return [Outcome(item, JOB(item), None, 0) for item in items]


def said(what: str, workers: int, items: int, rounds: list[Spent], alone: list[Spent]) -> None:
    """A line: items each second, and ratios to one process, in the middle of the rounds and (least)."""
    faster = [one.wall / this.wall for one, this in zip(alone, rounds, strict=True)]
    undisturbed = [workers * one.busy / this.busy for one, this in zip(alone, rounds, strict=True)]
    print(f"{what:16} {items / statistics.median(each.wall for each in rounds):8,.0f} items/s"
          f"  {statistics.median(faster):5.2f} ({min(faster):.2f})"
          f"  by processor time {statistics.median(undisturbed):5.2f} ({min(undisturbed):.2f})", flush=True)


def by_dask(items: list[bytes], wanted: Mapping[bytes, Any]) -> Spent:
    """A cluster of two workers, once they have imported what they need."""
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
          Client(cluster) as client):
        client.run(JOB, items[0])
        return measured(lambda: run(JOB, items, client.get_executor(), jobs=2), wanted)


def spread(count: int, rounds: int) -> None:
    """The same items in each way, in turn."""
    items = inputs(count)
    wanted = {item: JOB(item) for item in items}
    dask.config.update(dask.config.config, yaml.safe_load((EXAMPLES / "dask.yaml").read_text()))
    alone: list[Spent] = []
    workers: list[Spent] = []
    pools: dict[int, list[Spent]] = {1: [], 2: []}
    for _ in range(rounds):
        alone.append(measured(partial(here, items), wanted))
        for jobs, times in pools.items():
            times.append(measured(partial(run, JOB, items, jobs=jobs, timeout=60), wanted))
        workers.append(by_dask(items, wanted))
    said("in this process", 1, count, alone, alone)
    for jobs, times in pools.items():
        said(f"{jobs} of a pool", jobs, count, times, alone)
    said("2 dask workers", 2, count, workers, alone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hostile", type=int, default=100_000)
    options = parser.parse_args()
    spread(options.items, options.rounds)
    if options.hostile:
        start = time.perf_counter()
        outcomes = [*run(Treacherous(), inputs(options.hostile), jobs=2, timeout=5)]
        failed = [(o.item, type(o.error).__name__) for o in outcomes if not o.ok]
        print(f"{len(outcomes):,} inputs in {time.perf_counter() - start:.0f} s, of which failed: {failed}")


if __name__ == "__main__":
    main()
