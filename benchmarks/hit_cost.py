"""What a hit costs, against a raw engine hook that does the same, measured in the same run.

    python benchmarks/hit_cost.py --json benchmarks/results.json && python docs/generate.py    # docs/cost.md,
    docs/cost.svg python benchmarks/hit_cost.py --arch x86_64 --quick

Every round runs every row for a few milliseconds, so that whatever disturbs the machine disturbs all rows alike; what
is shown is the median over the rounds, of the cost and of its ratio to the same round's raw hook. Trust the ratios.
Times are the processor's, not the clock's. Each architecture has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import report
import unicorn
from rows import measure
from subjects import SUBJECTS


def host() -> dict[str, Any]:
    """What it runs on."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return {"processor": found[1] if found else platform.machine(), "processors": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
            "unicorn": unicorn.__version__, "date": date.today().isoformat()}


def measured(options: argparse.Namespace, others: Sequence[int]) -> dict[str, Any]:
    """Measure, and print what was found as it comes."""
    settings = {"hits": options.hits, "rounds": options.rounds, "probes": list(others)}
    results: dict[str, Any] = {"host": host(), "settings": settings, "architectures": {}}
    if options.markdown:
        print(f"# What a hit costs\n\n{report.host(results)}")
    for arch in options.arch or SUBJECTS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            results["architectures"][arch] = process.submit(measure, arch, options.hits, options.rounds,
                                                            list(others)).result()
        if options.markdown:
            print(f"\n## {arch}\n\n{report.rows(results, arch)}\n{report.registering(results, arch)}", flush=True)
        else:
            print(report.text(results, arch), flush=True)
    return results


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--arch", action="append", choices=sorted(SUBJECTS), help="default: all")
    made.add_argument("--hits", type=int, default=2500, help="per row and round")
    made.add_argument("--rounds", type=int, default=25)
    made.add_argument("--probes", default="1,1000,100000", help="numbers of other probes")
    made.add_argument("--quick", action="store_true",
                      help="5 rounds, 1,000 other probes: a minute for all architectures")
    made.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    return made


def main() -> None:
    """Parse arguments and measure."""
    options = parser().parse_args()
    if options.quick:
        options.rounds, options.probes = 5, "1000"
    results = measured(options, [int(n) for n in options.probes.split(",") if n])
    if options.json:
        # a line for each row
        options.json.write_text(re.sub(r"\n( {5,}| {4}(?=\}))", " ", json.dumps(results, indent=1)) + "\n")


if __name__ == "__main__":
    main()
