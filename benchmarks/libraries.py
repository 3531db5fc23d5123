"""All functions of many shared libraries, checked and traced: `python benchmarks/libraries.py FOLDER ... [-o JOURNAL]`.

Libraries of other architectures come from Debian's packages, into a folder each:

    tests/fetch_qemu FOLDER/s390x s390x zlib1g libexpat1 libsqlite3-0

For each library every instruction of every function is checked. Then each function is called with pointers to zeroed
memory, bounded by instructions, without probes and with an event on every function: result, fault, and the place where
the bound was reached must be the same, and the called function's event must have been hit.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from kprobes import GuestFault, GuestTimeout, KprobeError, Kprobes, UnicornMachine
from kprobes.campaign import Checks, Journal, merged, run
from kprobes.inventory import functions

ROOM = 4096  # zeroed bytes that a function gets three pointers to


@frozen
class Survey:
    """Check a library, and trace its functions. insns: that a call may take. most: functions that are called."""

    insns: int = 300
    most: int = 1000

    def __call__(self, path: str) -> dict[str, Any]:
        """What was found, in numbers that can be added up; "differing" names functions."""
        checked = Checks()(path)
        with UnicornMachine.load(path) as bare, UnicornMachine.load(path) as probed, Kprobes(probed) as k:
            names = [s.name for s in functions(bare) if s.kind == "func" and "@" not in s.name and s.size]
            names = [*dict.fromkeys(names)][: self.most]
            wanted = [*self._calls(bare, names)]
            found: list[tuple[Any, ...]] = []
            hits = probes = 0
            if functions(probed):
                with k.trace("p *", records=1 << 16) as trace:
                    found = [*self._calls(probed, names)]
                    hits, probes = len(trace) + trace.lost, len(trace.events)
            differing = [f"{path}: {name}: {a} / {b}" for name, a, b in zip(names, wanted, found, strict=True)
                         if a != b]
            ends = Counter(outcome[0] for outcome in found)
            return {"arch": {bare.arch.name: 1}, **checked, "called": len(names), "probes": probes, "hits": hits,
                    "ends": dict(ends), "differing": differing}

    def _calls(self, machine: UnicornMachine, names: list[str]) -> Iterator[tuple[Any, ...]]:
        machine.process()
        room = machine.alloc(ROOM)
        start = machine.snapshot()
        for name in names:
            machine.restore(start)
            try:
                yield "returns", machine.call(name, room, room + 1024, room + 2048, max_insns=self.insns)
            except GuestFault as fault:
                yield "faults", fault.reason, machine.symbols.describe(fault.pc), fault.address
            except GuestTimeout as timeout:
                yield "goes on", machine.symbols.describe(timeout.pc)
            except KprobeError as error:
                yield "refused", type(error).__name__, str(error)


def libraries(folders: list[Path], largest: int) -> list[Path]:
    """Shared libraries in these folders, each once, however many names it has; not those of a character set's
    tables."""
    found = {path.resolve() for folder in folders for path in folder.rglob("*.so*") if path.is_file()}
    return sorted(path for path in found if path.stat().st_size <= largest and "gconv" not in path.parts
                  and path.read_bytes()[:4] == b"\x7fELF")


def main() -> None:
    """Do them all, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--count", type=int, default=1 << 30, help="of libraries, at most")
    parser.add_argument("--largest", type=int, default=200_000, help="bytes of a file")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a library may take")
    parser.add_argument("-o", "--output", type=Path, default=Path("libraries.journal"), help="a killed run goes on")
    options = parser.parse_args()
    items = [str(path) for path in libraries(options.folders, options.largest)][: options.count]
    job, start = Survey(), time.perf_counter()
    with Journal(options.output, repr(job)) as journal:
        left = [*journal.left(items)]
        done = [journal.entries[item] for item in items if item in journal.entries]
        done += [journal.note(outcome) for outcome in run(job, left, timeout=options.timeout, jobs=options.jobs)]
    total = merged(entry.result for entry in done) or {}
    for name, value in total.items():
        print(f"{name:16} {len(value) if name == 'differing' else value}")
    for entry in done:
        if entry.error:
            print(f"{entry.item}: {entry.error.splitlines()[0]}")
    print(*total.get("differing", [])[:50], sep="\n")
    print(f"{len(done)} libraries, {sum(bool(e.error) for e in done)} failed, in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
