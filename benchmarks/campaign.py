"""Campaigns: what spreading costs and gains. `python benchmarks/campaign.py [--items 20000]`.

One function of the demo program is called with each input, from the same state: in this process, by one process of a
pool and by two, by two dask workers; each gives the same. Ratios are to the first,
in the same run: of time, and what two processors would make of the processor time spent, which other programs that run
at the same time do not change. Then 100,000 inputs with one that crashes its process and one that hangs it: nothing
else may be lost.
"""

from __future__ import annotations

import argparse
import ctypes
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dask.config
import psutil  # distributed brings it
from attrs import frozen
from distributed import Client, LocalCluster

from kprobes.campaign import Calls, run

DEMO = str(Path(__file__).resolve().parent.parent / "examples" / "demo.x86_64")
JOB = Calls(DEMO, "parse_settings(@input)", ("p table_insert",), ("table_init()",))


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


def measured(what: str, work: Callable[[], Iterable[Any]], wanted: Mapping[bytes, Any], alone: tuple[float, float],
             workers: int) -> None:
    """Do it, and say how long it took. What comes of each item must be what came of it here."""
    before = spent()
    outcomes = [*work()]
    wall, busy = (after - start for start, after in zip(before, spent(), strict=True))
    assert {outcome.item: outcome.result for outcome in outcomes} == wanted
    print(f"{what:28} {len(wanted) / wall:10,.0f} items/s  {alone[0] / wall:5.2f}, {workers * alone[1] / busy:5.2f} "
          "undisturbed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--hostile", type=int, default=100_000)
    options = parser.parse_args()
    items = inputs(options.items)
    JOB(items[0])
    before = spent()
    wanted = {item: JOB(item) for item in items}
    wall, busy = (after - start for start, after in zip(before, spent(), strict=True))
    print(f"{'in this process':28} {len(items) / wall:10,.0f} items/s")
    for jobs in (1, 2):
        measured(f"{jobs} of a pool", partial(run, JOB, items, jobs=jobs, timeout=60), wanted, (wall, busy), jobs)
    dask.config.set({"distributed.worker.profile.enabled": False})  # it takes as much as the work
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
          Client(cluster) as client):
        [*run(JOB, items[:100], client.get_executor())]  # they import it
        measured("2 dask workers", lambda: run(JOB, items, client.get_executor(), jobs=2), wanted, (wall, busy), 2)
    start = time.perf_counter()
    outcomes = [*run(Treacherous(), inputs(options.hostile), jobs=2, timeout=5)]
    failed = [(o.item, type(o.error).__name__) for o in outcomes if not o.ok]
    print(f"{len(outcomes):,} inputs in {time.perf_counter() - start:.0f} s, of which failed: {failed}")


if __name__ == "__main__":
    main()
