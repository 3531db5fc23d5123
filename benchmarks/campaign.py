"""Campaigns: what spreading costs and gains. `python benchmarks/campaign.py [--items 20000]`.

One function of the demo program is called with each input, from the same state: in this process, by one process of a
pool and by two, by two dask workers (where `distributed` is installed). Ratios are to the first, in the same run. Then
100,000 inputs with one that crashes its process and one that hangs it: nothing else may be lost.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

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


def seconds(work: Callable[[], Iterable[Any]], items: int) -> float:
    start = time.perf_counter()
    assert sum(1 for _ in work()) == items
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--hostile", type=int, default=100_000)
    options = parser.parse_args()
    items = inputs(options.items)
    JOB(items[0])
    alone = seconds(lambda: map(JOB, items), len(items))
    print(f"{'in this process':28} {len(items) / alone:10,.0f} items/s")
    for jobs in (1, 2):
        spent = seconds(partial(run, JOB, items, jobs=jobs, timeout=60), len(items))
        print(f"{f'{jobs} of a pool':28} {len(items) / spent:10,.0f} items/s  {alone / spent:5.2f}")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("no dask here")
    else:
        with LocalCluster(n_workers=2, threads_per_worker=1,
                          dashboard_address=None) as cluster, Client(cluster) as client:
            [*run(JOB, items[:100], client.get_executor())]  # they import it
            spent = seconds(lambda: run(JOB, items, client.get_executor(), jobs=2), len(items))
            print(f"{'2 dask workers':28} {len(items) / spent:10,.0f} items/s  {alone / spent:5.2f}")
    start = time.perf_counter()
    outcomes = [*run(Treacherous(), inputs(options.hostile), jobs=2, timeout=5)]
    failed = [(o.item, type(o.error).__name__) for o in outcomes if not o.ok]
    print(f"{len(outcomes):,} inputs in {time.perf_counter() - start:.0f} s, of which failed: {failed}")


if __name__ == "__main__":
    main()
