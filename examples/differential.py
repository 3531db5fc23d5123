"""A differential campaign: one library on two architectures, the same inputs, and where they do not agree.

    python examples/differential.py FOLDER [SCHEDULER]

FOLDER has inputs: a corpus that AFL++ has left, for instance. They are run on all processors, or by the workers of the
dask cluster at SCHEDULER; with `local`, of a cluster that is made for it.
"""

import sys
from concurrent.futures import Executor
from functools import cache
from pathlib import Path
from threading import get_ident

from kprobes import GuestFault, HeapError, Kprobes, UnicornMachine
from kprobes.campaign import run

HERE = Path(__file__).resolve().parent
FILES = "tags.arm64", "tags.x86_64"
LONGEST = 4096  # bytes of an input


class Guest:
    """A library in the state that every run begins from. Its blocks are a heap check's, which is an oracle, too."""

    def __init__(self, file: str) -> None:
        self.machine = UnicornMachine.load(HERE / file)
        self.text = self.machine.alloc(LONGEST)
        Kprobes(self.machine).heap(raising=True, leaks=False)
        self.start = self.machine.snapshot()

    def outcome(self, data: bytes) -> str:
        """What became of a run, in words that mean the same on every machine."""
        self.machine.restore(self.start)
        self.machine.write(self.text, data)
        try:
            return f"{self.machine.call('tags_read', self.text, len(data), max_insns=1_000_000) & 0xFFFFFFFF:#x}"
        except HeapError as error:
            return f"{error.finding.kind} in {self.machine.symbols.describe(error.finding.pc).partition('+')[0]}"
        except GuestFault as error:
            return f"{error.access} fault"


@cache
def guests(thread: int) -> dict[str, Guest]:
    """The guests of a thread, as dask's workers may have several; loaded when it gets its first input."""
    return {file: Guest(file) for file in FILES}


def both(path: str) -> dict[str, str]:
    """The outcome on each machine."""
    data = Path(path).read_bytes()[:LONGEST]
    return {file: guest.outcome(data) for file, guest in guests(get_ident()).items()}


def compare(folder: str, executor: Executor | None = None, workers: int | None = None) -> None:
    """Run all inputs of a folder, and print those that differ, and what both machines agree is wrong."""
    paths = sorted(str(path) for path in Path(folder).iterdir() if path.is_file())
    outcomes = sorted(run(both, paths, executor, timeout=10, jobs=workers), key=lambda outcome: outcome.item)
    for outcome in outcomes:
        found = outcome.result or {"": str(outcome.error)}
        words = set(found.values())
        name = Path(outcome.item).name
        if len(words) > 1:
            print(f"{name} differs:", ", ".join(f"{file} {said}" for file, said in found.items()))
        elif " " in (said := words.pop()):
            print(f"{name}: {said}")
    print(f"{len(outcomes)} inputs, {sum(len(set((o.result or {}).values())) > 1 for o in outcomes)} differ")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        compare(sys.argv[1])
    else:
        from distributed import Client

        made = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
        with Client(**made if sys.argv[2] == "local" else {"address": sys.argv[2]}) as client:
            compare(sys.argv[1], client.get_executor(), sum(client.nthreads().values()))
