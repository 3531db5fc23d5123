"""Runs a second under AFL++'s protocol, of one function of x86-64:
`python benchmarks/afl.py [--unicornafl PYTHON] [--rounds 5]`. With `--bugs 10`: how many runs Debian's afl-fuzz takes
to find each planted bug of examples/packets.c, in so many campaigns of half a minute, from the same seeds.

Every harness serves the same inputs, all of which return, with test cases in shared memory; what it takes for a few of
them is taken off. Processor time of the harness alone; medians of rounds in which all have their turn. The driver is
that of the tests, so that no afl-fuzz is needed. Prints the table of docs/fuzzing.md.

    plain Unicorn                 no AFL, no map: context_restore, write and emu_start in a loop
    kprobes fuzz TARGET.py        restore, write, call, map
    kprobes fuzz FILE --call      the same without a file of Python
    without host code             the same with KPROBES_HOST_CODE=0: Python fills the map
    unicornafl                    PyPI's 2.1.0 with the Python PYTHON: registers are put back, memory is not. Its hash
                                  is not cut to the map's size, so that it gets a map of 4 GiB here
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from kprobes.fuzz.bench import Bench
from kprobes.fuzz.crash import examine
from kprobes.fuzz.target import CallTarget

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import afl as driver  # noqa: E402

IMAGE = ROOT / "examples" / "packets.x86_64"
FEW, MANY = 500, 8500
HUGE = 1 << 32
CAMPAIGN = 30  # seconds
BUGS = {"take_name": "a name overwrites the return address", "take_number": "a number below its table",
        "follow": "two references to each other", "step": "a loop without an end"}
SUBREAPER = 36  # prctl(): orphans of this process's children are its own

TARGET = f"""
from kprobes import UnicornMachine

machine = UnicornMachine.load({str(IMAGE)!r})
text = machine.alloc(4096)


def fuzz(data):
    machine.write(text, data)
    machine.call("parse", text, len(data))
"""

#: The guest as harnesses by hand load it, and its registers, as in unicornafl's samples. parse: the function's address.
BY_HAND = """
import struct, sys
from unicorn import *
from unicorn.x86_const import *

file = open({image!r}, "rb").read()
INPUT, STACK, EXIT = 0x10000000, 0x20000000, 0x30000000
uc = Uc(UC_ARCH_X86, UC_MODE_64)
at, size, count = *struct.unpack_from("<Q", file, 32), *struct.unpack_from("<HH", file, 54)
pages = set()
for n in range(count):
    kind, _, offset, addr, _, filled, whole, _ = struct.unpack_from("<IIQQQQQQ", file, at + n * size)
    if kind == 1:
        for page in range(addr & -4096, addr + whole, 4096):
            if page not in pages:
                pages.add(page)
                uc.mem_map(page, 4096)
        uc.mem_write(addr, file[offset:offset + filled])
for page in (INPUT, STACK, EXIT):
    uc.mem_map(page, 1 << 16)


def place(uc, data, rounds, _):
    if len(data) > 4096:
        return False
    uc.mem_write(INPUT, bytes(data))
    uc.mem_write(STACK + 0x8000, struct.pack("<Q", EXIT))
    for register, value in ((UC_X86_REG_RSP, STACK + 0x8000), (UC_X86_REG_RDI, INPUT), (UC_X86_REG_RSI, len(data)),
                            (UC_X86_REG_RIP, {parse})):
        uc.reg_write(register, value)
    return True
"""
PLAIN = BY_HAND + """
context = uc.context_save()
inputs = [open(name, "rb").read() for name in sys.argv[1:]]
for data in inputs:
    uc.context_restore(context)
    place(uc, data, 0, None)
    uc.emu_start({parse}, EXIT)
"""
UNICORNAFL = BY_HAND + """
import distutils.sysconfig
import unicornafl
unicornafl.uc_afl_fuzz(uc, input_file=sys.argv[1], place_input_callback=place, exits=[EXIT], persistent_iters=100000)
"""


def inputs(count: int) -> list[bytes]:
    """Inputs that all return."""
    bench, rng = Bench(CallTarget(str(IMAGE), "parse(@input, len)", max_insns=10000).load()), random.Random(1)
    seeds = [path.read_bytes() for path in sorted((ROOT / "examples" / "packets").iterdir())]
    made: list[bytes] = []
    while len(made) < count:
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(4)):
            data[rng.randrange(2, len(data))] = rng.randrange(256)
        if not bench.run(bytes(data)).signal:
            made.append(bytes(data))
    return made


def children() -> float:
    """Processor time of all processes that were waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def served(command: list[str], given: list[bytes], work: Path, size: int, environment: dict[str, str]) -> float:
    """Processor time of a harness over inputs, loading included."""
    before = children()
    with (mock.patch.object(driver, "PREFIX", []),
          driver.afl(work, command, size=size, environment=environment) as fuzzer):
        fuzzer.greet()
        for data in given:
            if fuzzer.run(data):
                sys.exit(f"{command}: a run has not returned")
    with contextlib.suppress(OSError):  # unicornafl leaves its child stopped: its time counts when it was waited for
        os.kill(fuzzer.pid, signal.SIGKILL)
        os.waitpid(fuzzer.pid, 0)
    return children() - before


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unicornafl", metavar="PYTHON", help="an interpreter that has unicornafl")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bugs", type=int, metavar="N", help="count runs until each bug is found, N times")
    options = parser.parse_args()
    if options.bugs:
        bugs(options.bugs)
        return
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    few, many = inputs(FEW), inputs(MANY)
    parse = Bench(CallTarget(str(IMAGE), "parse(@input, len)").load()).target.machine.symbols["parse"].address
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        (work / "target.py").write_text(TARGET)
        (work / "plain.py").write_text(PLAIN.format(image=str(IMAGE), parse=parse))
        (work / "harness.py").write_text(UNICORNAFL.format(image=str(IMAGE), parse=parse))
        for n, data in enumerate(many):
            (work / f"{n:05}").write_bytes(data)
        start = [sys.executable, "-m", "kprobes", "fuzz"]
        call = [*start, str(IMAGE), "--call", "parse(@@, @len)"]
        rows: dict[str, tuple[list[str], int, dict[str, str]]] = {
            "`kprobes fuzz TARGET.py`": ([*start, str(work / "target.py"), "@@"], 1 << 16, {}),
            "`kprobes fuzz FILE --call`": (call, 1 << 16, {}),
            "the same without host code": (call, 1 << 16, {"KPROBES_HOST_CODE": "0"}),
        }
        if options.unicornafl:
            rows["unicornafl 2.1.0"] = ([options.unicornafl, str(work / "harness.py"), "@@"], HUGE, {})
        found: dict[str, list[float]] = {"plain Unicorn in a loop, no map": []} | {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, (command, size, environment) in rows.items():
                spent = served(command, many, work, size, environment) - served(command, few, work, size, environment)
                found[name].append((MANY - FEW) / max(spent, 1e-6))
            spent = plain(work, MANY) - plain(work, FEW)
            found["plain Unicorn in a loop, no map"].append((MANY - FEW) / max(spent, 1e-6))
    print("| | runs a second |\n|---|---:|")
    for name, values in found.items():
        print(f"| {name} | {statistics.median(values):,.0f} |")


def bugs(campaigns: int) -> None:
    """Print runs until each bug was found: a median over campaigns."""
    if shutil.which("afl-fuzz") is None:
        sys.exit("afl-fuzz is not installed: apt-get install afl++")
    bench = Bench(CallTarget(str(IMAGE), "parse(@input, len)").load())
    found: dict[str, list[int]] = {name: [] for name in BUGS}
    with tempfile.TemporaryDirectory() as place:
        for seed in range(campaigns):
            for name, runs in campaign(bench, Path(place, str(seed)), seed).items():
                found[name].append(runs)
    print(f"| planted bug | found in {campaigns} campaigns | runs, median |\n|---|---:|---:|")
    for name, counts in found.items():
        print(f"| {BUGS[name]} | {len(counts)} | {f'{statistics.median(counts):,.0f}' if counts else '-'} |")


def campaign(bench: Bench, out: Path, seed: int) -> dict[str, int]:
    """Run afl-fuzz. Returns the number of runs after which it had each bug."""
    variables = {"AFL_NO_UI": "1", "AFL_SKIP_CPUFREQ": "1", "AFL_NO_AFFINITY": "1", "AFL_HANG_TMOUT": "200",
                 "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1", "AFL_FORKSRV_INIT_TMOUT": "60000"}
    subprocess.run(["afl-fuzz", "-U", "-s", str(seed), "-V", str(CAMPAIGN), "-t", "100", "-i",
                    str(ROOT / "examples" / "packets"), "-o", str(out), "--", "kprobes", "fuzz", str(IMAGE), "--call",
                    "parse(@@, @len)"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    first: dict[str, int] = {}
    for path in sorted((out / "default").glob("[ch]*s/id:*")):
        found = re.search(r",execs:(\d+)", path.name)
        name = "step" if path.parent.name == "hangs" else bug(bench, path.read_bytes())
        if found is not None and name in BUGS:
            first[name] = min(int(found[1]), first.get(name, int(found[1])))
    return first


def bug(bench: Bench, data: bytes) -> str:
    """The function with the bug that an input finds; "" where that is not told."""
    _, finding = examine(bench, data)
    if finding is None:
        return ""
    names = [place.name.partition("+")[0] for place in (*finding.stack[:1], *reversed(finding.path))]
    return next((name for name in names if name in BUGS), "")


def plain(work: Path, count: int) -> float:
    """Processor time of the loop by hand."""
    before = children()
    subprocess.run([sys.executable, "plain.py", *(f"{n:05}" for n in range(count))], cwd=work, check=True)
    return children() - before


if __name__ == "__main__":
    main()
