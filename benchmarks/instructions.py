"""What a hit costs in instructions of the host, which do not depend on what else the machine does.

    python benchmarks/instructions.py --arch x86_64
    python benchmarks/instructions.py --json benchmarks/instructions.json && python docs/generate.py
    python benchmarks/instructions.py --tree ../before --json before.json    # another checkout's library and rows
    python benchmarks/instructions.py --compare before.json benchmarks/instructions.json
    python benchmarks/instructions.py --programs --arch x86_64               # rows of programs.py

Every row of hit_cost.py runs with HITS and with twice as many hits, under valgrind's callgrind, which counts all
instructions: Python's, the engine's and those that both translate. The difference, less the loop's, is a hit's. Counts
repeat to about a percent on a busy machine; but instructions are not time. Half a minute of the processor's time for
each architecture. Needs valgrind on an x86_64 host. `--profiles DIR` keeps each row's profile there, for
callgrind_annotate.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
Counts = dict[str, dict[str, float]]  #: architecture -> row -> instructions of a hit

#: takes rdi, the address of a request to valgrind: valgrind.h's special sequence, which does nothing elsewhere
ASK = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db c3")
#: callgrind.h's requests
TOOL = ord("C") << 24 | ord("T") << 16
ZERO, DUMP, START = TOOL + 1, TOOL + 3, TOOL + 4
CROWD = 1000  # probes elsewhere, of the rows that have some
LONGER = 20  # rows in which little happens are run so many times longer
#: Not `totals`: in a dump after ZERO that has what ran before it, too.
NAMED = re.compile(r"^desc: Trigger: Client Request: (.*)\|(\d)$.*?^summary: (\d+)$", re.MULTILINE | re.DOTALL)
WORSE = 1.05


# --- within valgrind


class Counter:
    """Callgrind, as the process that it runs sees it."""

    def __init__(self) -> None:
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(ASK)
        self._ask = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(self._code)))

    def request(self, number: int, name: str = "") -> None:
        """Ask for something; a dump has a name."""
        text = ctypes.create_string_buffer(name.encode())
        request = (ctypes.c_uint64 * 6)(number, ctypes.addressof(text))
        self._ask(ctypes.addressof(request))

    def count(self, name: str, run: Callable[[], object]) -> None:
        """Count what this runs."""
        self.request(ZERO)
        run()
        self.request(DUMP, name)


def rows_of(tree: Path, arch: str, of_programs: bool) -> Iterator[Any]:
    """The rows of a checkout.

    Args:
        tree: the checkout.
        arch: the guest's architecture.
        of_programs: those of programs.py, instead of those of hit_cost.py.
    """
    sys.path[:0] = [str(tree), str(tree / "benchmarks")]
    import rows
    import worlds

    import kprobes

    if not Path(kprobes.__file__).is_relative_to(tree):
        raise SystemExit(f"{kprobes.__file__} was imported, which is not in {tree}")
    if of_programs:
        import programs

        for name, enter in programs.counted(arch).items():
            over = programs.LOOP if name != programs.LOOP else ""
            yield rows.Row(name, enter, over=over, longer=rows.LONGER)
        return
    yield from rows.raw_rows(worlds.BareEngine(arch))
    yield from rows.probe_rows(worlds.Machine(arch))
    yield from rows.crowd_rows(worlds.Crowd(arch, CROWD))


def count_rows(tree: Path, arch: str, hits: int, wanted: re.Pattern[str], of_programs: bool) -> None:
    """Run the rows of an architecture, each with two dumps: `row|1` for its hits, `row|2` for twice as many. Prints
    JSON: the names of the rows that ran -> how many hits, and the loop to take off them; "": it is one."""
    counter, ran = Counter(), {}
    rows = list(rows_of(tree, arch, of_programs))
    needed = {row.name for row in rows if wanted.search(row.name)}
    needed |= {row.to for row in rows if row.name in needed}
    needed |= {row.over for row in rows if row.name in needed}
    from worlds import Absent

    counter.request(START)
    for row in (row for row in rows if row.name in needed):
        count = hits * min(row.longer, LONGER)
        try:
            with row.enter() as run:
                count_row(counter, row.name, run, count)
        except Absent:
            continue
        ran[row.name] = count, row.over
    print(json.dumps(ran))


def count_row(counter: Counter, name: str, run: Callable[[int], object], count: int) -> None:
    """Both dumps of a row."""
    for _ in range(3):
        run(50)  # translation, and Python's adaption of its code
    gc.collect()
    gc.freeze()  # what a collection costs depends on what was made before
    counter.count(f"{name}|1", partial(run, count))
    counter.count(f"{name}|2", partial(run, 2 * count))
    gc.unfreeze()


# --- around it


def counted(tree: Path, arch: str, options: argparse.Namespace, where: Path) -> dict[str, float]:
    """Instructions of a hit for every row of an architecture; profiles go to `where`."""
    command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={where / arch}",
               sys.executable, str(HERE), "--within", "--tree", str(tree), "--arch", arch,
               "--hits", str(options.hits), "--rows", options.rows, *["--programs"] * options.programs]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arch}: {done.stderr}")
    totals = {}
    for dump in where.glob(f"{arch}.*"):
        named = NAMED.search(dump.read_text())
        if named:
            totals[named[1], named[2]] = int(named[3])
    ran = json.loads(done.stdout)
    gross = {row: (totals[row, "2"] - totals[row, "1"]) / count for row, (count, _) in ran.items()}
    return {row: round(gross[row] - gross.get(over, 0), 1) for row, (_, over) in ran.items()}


def compared(before: Counts, after: Counts) -> str:
    """A Markdown table: rows down; the ratio's median and range over the architectures that both have, and which are
    worse by more than 5 %."""
    lines = ["| row | least | median | most | worse by more than 5 % |", "| --- | ---: | ---: | ---: | --- |"]
    archs = [arch for arch in after if arch in before]
    for row in dict.fromkeys(row for arch in archs for row in after[arch]):
        ratios = {arch: after[arch][row] / before[arch][row] for arch in archs
                  if row in after[arch] and row in before[arch]}
        if ratios:
            worse = ", ".join(f"{arch} {found:.2f}" for arch, found in ratios.items() if found > WORSE)
            low, middle, high = min(ratios.values()), statistics.median(ratios.values()), max(ratios.values())
            lines.append(f"| {row} | {low:.2f} | {middle:.2f} | {high:.2f} | {worse} |")
    return "\n".join(lines)


def measured(options: argparse.Namespace) -> Counts:
    """Measure, and print what was found as it comes."""
    from subjects import SUBJECTS

    found: Counts = {}
    for arch in options.arch or SUBJECTS:
        with tempfile.TemporaryDirectory() as room:
            where = options.profiles or Path(room)
            where.mkdir(parents=True, exist_ok=True)
            found[arch] = counted(options.tree.resolve(), arch, options, where.resolve())
        print(f"\n{arch:48} {'instructions':>12}")
        for row, count in found[arch].items():
            print(f"{row:48} {count:12,.0f}", flush=True)
        if options.json:
            lines = ",\n".join(f' "{name}": {json.dumps(counts)}' for name, counts in found.items())
            options.json.write_text(f"{{\n{lines}\n}}\n")
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--arch", action="append", help="default: all")
    made.add_argument("--rows", default="", metavar="REGEX", help="default: all")
    made.add_argument("--hits", type=int, default=500, help="per row")
    made.add_argument("--programs", action="store_true", help="rows of programs.py, not of hit_cost.py")
    made.add_argument("--tree", type=Path, default=HERE.parents[1], metavar="DIR", help="default: this checkout")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the counts there")
    made.add_argument("--profiles", type=Path, metavar="DIR", help="keep callgrind's files there")
    made.add_argument("--compare", nargs=2, type=Path, metavar="FILE", help="print ratios of two files of counts")
    made.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    return made


def main() -> None:
    """Parse arguments and count."""
    options = parser().parse_args()
    if options.compare:
        print(compared(*(json.loads(file.read_text()) for file in options.compare)))
    elif options.within:
        count_rows(options.tree, options.arch[0], options.hits, re.compile(options.rows), options.programs)
    elif not shutil.which("valgrind") or platform.machine() != "x86_64":
        raise SystemExit("this needs valgrind, and an x86_64 host")
    else:
        measured(options)


if __name__ == "__main__":
    main()
