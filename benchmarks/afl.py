"""Runs a second under AFL++'s protocol, of one function of x86-64:
`python benchmarks/afl.py [--unicornafl PYTHON] [--qemu FILE] [--rounds 5]`. With `--bugs 10`: how many runs Debian's
afl-fuzz takes to find each planted bug of examples/packets.c, in so many campaigns of half a minute, from the same
seeds.

Every harness serves the same inputs, all of which return, with test cases in shared memory; what it takes for a few of
them is taken off. Processor time of the harness alone; medians of rounds in which all have their turn, and the lowest
and highest. The driver is that of the tests, so that no afl-fuzz is needed. Prints the table of docs/fuzzing.md with
its date and machine; a peer that is not there has a row that says so.

    plain Unicorn                 no AFL, no map: context_restore, write and emu_start in a loop
    kprobes fuzz TARGET.py        restore, write, call, map
    kprobes fuzz FILE --call      the same without a file of Python
    without host code             the same with KPROBES_HOST_CODE=0: Python fills the map
    unicornafl                    PyPI's 2.1.0 with the Python PYTHON: registers are put back, memory is not. Its hash
                                  is not cut to the map's size, so that it gets a map of 4 GiB here
    AFL++'s QEMU mode             FILE, or the afl-qemu-trace on PATH, runs the image in persistent mode; memory is
                                  put back with AFL_QEMU_PERSISTENT_MEM. No Debian package has it: it is built of
                                  https://github.com/AFLplusplus/qemuafl, for x86_64-linux-user
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import importlib.metadata
import os
import platform
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
FEW, MANY = 500, 16500
HUGE = 1 << 32
STOPPED = signal.SIGSTOP << 8 | 0x7F  #: the status of a process that waits for its next run
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
#: Puts a test case below the guest's stack, and its address and size into the arguments. The registers are those of
#: qemuafl's api.h: RAX, RBX, RCX, RDX, RDI, RSI, RBP, R8 to R15, RIP, RSP.
QEMU_HOOK = """
#include <stdint.h>
#include <string.h>

void afl_persistent_hook(uint64_t *regs, uint64_t guest_base, uint8_t *input, uint32_t size)
{
    regs[4] = (regs[16] & ~15ull) - 0x8000;
    regs[5] = size;
    memcpy((void *)(guest_base + regs[4]), input, size);
}

int afl_persistent_hook_init(void)
{
    return 1;
}
"""
PLAIN_ROW = "plain Unicorn in a loop, no map, memory not put back"
Row = tuple[list[str], int, dict[str, str]]  # command, bytes of the map, environment


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
        fuzzer.greet_new() if fuzzer.speaks_new() else fuzzer.greet()
        for data in given:
            if fuzzer.run(data) not in (0, STOPPED):
                sys.exit(f"{command}: a run has not returned")
        # peers leave their child stopped, and it keeps the pipe of messages open: it goes before its server
        with contextlib.suppress(OSError):
            os.kill(fuzzer.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):  # its time counts when it was waited for
        os.waitpid(fuzzer.pid, 0)
    return children() - before


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unicornafl", metavar="PYTHON", help="an interpreter that has unicornafl")
    parser.add_argument("--qemu", metavar="FILE", default=shutil.which("afl-qemu-trace"), help="an afl-qemu-trace")
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
        rows: dict[str, Row] = {
            "`kprobes fuzz TARGET.py`": ([*start, str(work / "target.py"), "@@"], 1 << 16, {}),
            "`kprobes fuzz FILE --call`": (call, 1 << 16, {}),
            "the same without host code": (call, 1 << 16, {"KPROBES_HOST_CODE": "0"}),
        }
        missing: dict[str, str] = {}
        if options.unicornafl:
            rows[f"unicornafl {version_of(options.unicornafl)}, memory not put back"] = (
                [options.unicornafl, str(work / "harness.py"), "@@"], HUGE, {})
        else:
            missing["unicornafl"] = "not measured: pip install unicornafl, and --unicornafl PYTHON"
        if options.qemu:
            rows |= qemu_rows(options.qemu, work, parse)
        else:
            missing["AFL++'s QEMU mode"] = "not measured: there is no afl-qemu-trace"
        found: dict[str, list[float]] = {PLAIN_ROW: []} | {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, (command, size, environment) in rows.items():
                spent = served(command, many, work, size, environment) - served(command, few, work, size, environment)
                found[name].append((MANY - FEW) / max(spent, 1e-6))
            spent = plain(work, MANY) - plain(work, FEW)
            found[PLAIN_ROW].append((MANY - FEW) / max(spent, 1e-6))
    print(f"{datetime.datetime.now(tz=datetime.timezone.utc):%Y-%m-%d}, {processor()}, {os.cpu_count()} processors, "
          f"load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, "
          f"Unicorn {importlib.metadata.version('unicorn')}, medians of {options.rounds}\n")
    print("| | runs a second | lowest to highest |\n|---|---:|---:|")
    for name, values in found.items():
        print(f"| {name} | {statistics.median(values):,.0f} | {min(values):,.0f} to {max(values):,.0f} |")
    for name, reason in missing.items():
        print(f"| {name} | | {reason} |")


def qemu_rows(trace: str, work: Path, parse: int) -> dict[str, Row]:
    """Rows of AFL++'s QEMU mode: the function is run again and again in one process.

    Args:
        trace: an afl-qemu-trace.
        work: where its hook is built.
        parse: address of the function.
    """
    (work / "hook.c").write_text(QEMU_HOOK)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(work / "hook.so"), str(work / "hook.c")], check=True)
    image = shutil.copy(IMAGE, work / "packets")
    image.chmod(0o755)  # it loads executable files only
    command = [trace, str(image)]
    environment = {"AFL_QEMU_PERSISTENT_ADDR": hex(parse), "AFL_QEMU_PERSISTENT_GPR": "1",
                   "AFL_QEMU_PERSISTENT_HOOK": str(work / "hook.so"), "AFL_QEMU_PERSISTENT_CNT": "100000"}
    return {
        "AFL++'s QEMU mode, persistent, memory not put back": (command, 1 << 16, environment),
        "AFL++'s QEMU mode, persistent, memory put back": (
            command, 1 << 16, {**environment, "AFL_QEMU_PERSISTENT_MEM": "1"}),
    }


def version_of(python: str) -> str:
    """The release of unicornafl that an interpreter has."""
    said = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('unicornafl'))"],
                          check=True, capture_output=True, text=True)
    return said.stdout.strip()


def processor() -> str:
    """The processor's name."""
    found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found is not None else platform.machine()


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
