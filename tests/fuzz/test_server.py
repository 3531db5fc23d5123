"""The fork server: what afl-fuzz sees of runs, crashes, hangs and deaths; and its map."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from afl import CONTROL, STATUS, Segment, afl
from click.testing import CliRunner

from kprobes.cli import main
from kprobes.fuzz import server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FINE, CRASH, HANG = b"KPN\x05hello", b"KPR\x01\x02", b"KPS\x01\x00"
CALL = ("--call", "parse(@@, @len)")
MACHINES = ("x86_64", "arm64", "arm", "mips")


def packets(machine: str) -> str:
    return str(EXAMPLES / f"packets.{machine}")


@pytest.mark.parametrize("machine", MACHINES)
def test_runs(tmp_path: Path, machine: str) -> None:
    """A run that returns, one that faults, one that is killed for its time; the same run has the same map before and
    after these."""
    with afl(tmp_path, (packets(machine), *CALL)) as fuzzer:
        fuzzer.greet()
        assert fuzzer.size == 1 << 16
        assert fuzzer.run(FINE) == 0
        fine, worker = fuzzer.hits(), fuzzer.pid
        assert len(fine) > 8 and fuzzer.run(FINE) == 0 and fuzzer.hits() == fine
        assert fuzzer.run(CRASH) == signal.SIGSEGV and fuzzer.hits().keys() - fine.keys()
        assert fuzzer.run(FINE) == 0 and fuzzer.hits() == fine and fuzzer.pid == worker
        assert fuzzer.run(HANG, seconds=0.3) is None
        assert fuzzer.run(FINE) == 0 and fuzzer.hits() == fine and fuzzer.pid != worker
    assert fuzzer.server.returncode == 0


def test_python_target(tmp_path: Path) -> None:
    """Inputs in a file, the new handshake, a small map; oracles are crashes of SIGABRT."""
    target = tmp_path / "target.py"
    target.write_text(f"""
from kprobes import UnicornMachine
from kprobes.fuzz import Crash

machine = UnicornMachine.load({packets('arm64')!r})
text = machine.alloc(64)


def fuzz(data):
    machine.write(text, data[:64])
    if machine.call("parse", text, len(data[:64])) == 2:
        raise Crash("two records")
""")
    with afl(tmp_path, (str(target), "@@", "--handshake", "new", "--map-size", "4096"), shared=False) as fuzzer:
        fuzzer.greet_new()
        assert fuzzer.size == 4096
        assert fuzzer.run(FINE) == 0 and max(fuzzer.hits()) < 4096
        assert fuzzer.run(b"KPx\1yx\1y") == signal.SIGABRT
        assert fuzzer.run(CRASH) == signal.SIGSEGV


def test_death_of_a_worker(tmp_path: Path) -> None:
    """A process that dies in a run is a crash of that run; the next run has another process."""
    target = tmp_path / "target.py"
    target.write_text(f"""
import os, signal, sys
from kprobes import UnicornMachine

machine = UnicornMachine.load({packets('x86_64')!r})


def fuzz(data):
    if data == b"die":
        os.kill(os.getpid(), signal.SIGBUS)
    if data == b"leave":
        os._exit(3)
""")
    with afl(tmp_path, (str(target), "@@")) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(b"live") == 0
        worker = fuzzer.pid
        assert fuzzer.run(b"die") == signal.SIGBUS and fuzzer.run(b"live") == 0 and fuzzer.pid != worker
        assert fuzzer.run(b"leave") == 3 << 8 and fuzzer.run(b"live") == 0


def test_a_worker_that_is_killed_between_runs(tmp_path: Path) -> None:
    """As by afl-fuzz, where a run has reported just when its time was over."""
    with afl(tmp_path, (packets("x86_64"), *CALL)) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(FINE) == 0
        worker = fuzzer.pid
        os.kill(worker, signal.SIGKILL)
        assert fuzzer.run(FINE) == 0 and fuzzer.pid != worker
        assert fuzzer.run(CRASH) == signal.SIGSEGV


#: words after the first are the command line's. The first worker dies of what it reads, as if a signal had waited.
DYING = """
import os, runpy, signal, sys
from pathlib import Path

from kprobes.fuzz import server

mark, *words = sys.argv[1:]
parent, read = os.getpid(), os.read


def dying(descriptor, size):
    taken = read(descriptor, size)
    if descriptor == server.CONTROL and os.getpid() != parent and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return taken


os.read = dying
sys.argv = ["kprobes", *words]
runpy.run_module("kprobes", run_name="__main__")
"""


def test_a_worker_that_dies_when_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was asked for is run by the next one: nobody else knows of it."""
    script, mark = tmp_path / "dying.py", tmp_path / "mark"
    script.write_text(DYING)
    monkeypatch.setattr("afl.PREFIX", [sys.executable, str(script), str(mark), "fuzz"])
    with afl(tmp_path, (packets("x86_64"), *CALL)) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(FINE) == 0 and mark.exists()
        assert fuzzer.run(CRASH) == signal.SIGSEGV and fuzzer.run(FINE) == 0


def test_a_bound_of_its_own_is_a_hang(tmp_path: Path) -> None:
    with afl(tmp_path, (packets("arm"), *CALL, "--max-insns", "20000")) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(HANG, seconds=0.5) is None and fuzzer.run(FINE) == 0


def test_no_worker_outlives_its_server(tmp_path: Path) -> None:
    with afl(tmp_path, (packets("arm64"), *CALL)) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(FINE) == 0
        fuzzer.server.kill()
        fuzzer.server.wait()
        end = time.monotonic() + 20
        while time.monotonic() < end and _runs(fuzzer.pid):
            time.sleep(0.05)
        assert not _runs(fuzzer.pid)


def _runs(pid: int) -> bool:
    """A process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_chosen_code(tmp_path: Path) -> None:
    """Edges of one range of code only, and comparisons."""
    with afl(tmp_path, (packets("x86_64"), *CALL, "--range", "0x10000000:0x1000")) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(FINE) == 0 and not fuzzer.hits()
    with afl(tmp_path, (packets("x86_64"), *CALL, "--module", "packets.x86_64", "--comparisons")) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(FINE) == 0 and fuzzer.hits()


TAGS = (str(EXAMPLES / "tags.arm64"), "--call", "tags_read(@@, @len)")
#: input -> signal: nothing wrong, a block one byte short, a use after free
TAGGED = {b"TGT\x05helloA\x01jD\x00": 0, b"TGT\x10" + 16 * b"a": signal.SIGABRT, b"TGT\x01aD\x00A\x01z": signal.SIGABRT}


def test_a_heap_check(tmp_path: Path) -> None:
    """Mistakes that crash nothing are crashes; each run has the blocks of the first one."""
    with afl(tmp_path, (*TAGS, "--heap")) as fuzzer:
        fuzzer.greet()
        for data, status in [*TAGGED.items(), *reversed(TAGGED.items())]:
            assert fuzzer.run(data) == status, data
    with afl(tmp_path, (str(EXAMPLES / "fuzz_radio.py"), "@@")) as fuzzer:  # a device's registers, from the midst of a loop
        fuzzer.greet()
        assert fuzzer.run(b"\x01\x04name") == 0 and fuzzer.hits()
        assert fuzzer.run(bytes([2, 202, 100, 1]) + 200 * b"A") == signal.SIGSEGV
        assert fuzzer.run(b"\x01\x04name") == 0


def test_chosen_functions(tmp_path: Path) -> None:
    with afl(tmp_path, (*TAGS, "--heap", "--function", "hash_*")) as fuzzer:
        fuzzer.greet()
        assert fuzzer.run(b"TGT\x01a") == 0 and not fuzzer.hits()
        assert fuzzer.run(b"TGH\x01a") == 0 and fuzzer.hits()


REFUSED = [
    ((packets("arm64"), *CALL, "--module", "libz"), "no module 'libz' is loaded"),
    ((packets("arm64"), *CALL, "--function", "no_such*"), "no function is called 'no_such*'"),
    ((packets("arm64"), *CALL, "--heap"), "no allocator functions"),
    ((packets("arm64"), *CALL, "--preload", "nowhere.so"), "nowhere.so"),
    (("nowhere.py", "@@"), "nowhere.py"),
    (("nowhere", *CALL), "nowhere"),
    ((packets("arm64"), "--call", "no_such(@@, @len)"), "no_such"),
    ((packets("arm64"), "--call", "0x123(@@, @len)"), "no code is at 0x123"),
    ((packets("arm64"), "--call", "parse(1)"), "no argument is the input"),
    ((packets("arm64"), *CALL, "--map-size", "131072"), "AFL has 65536"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[said.partition(" ")[0] + str(n) for n, (_, said) in enumerate(REFUSED)])
def test_refusals(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str) -> None:
    """One sentence."""
    monkeypatch.setenv("__AFL_SHM_ID", str(Segment(1 << 16).number))
    done = CliRunner().invoke(main, ["fuzz", *words])
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.output, done.output


def test_a_single_input_finds_code_that_is_none(tmp_path: Path) -> None:
    """One seed is run without afl-fuzz first, which hides what its targets say."""
    seed = tmp_path / "seed"
    seed.write_bytes(b"KPN\x01a")
    for option, name in (("--module", "libz"), ("--function", "no_such*")):
        done = CliRunner().invoke(main, ["fuzz", packets("arm64"), *CALL, option, name, str(seed)])
        assert done.exit_code == 2 and repr(name) in done.stderr, done.output


def test_an_input_that_is_not_there() -> None:
    done = CliRunner().invoke(main, ["fuzz", packets("arm64"), *CALL, "no/seed"])
    assert (done.exit_code, done.stderr) == (2, "kprobes: no/seed: No such file or directory\n")


def test_a_server_that_cannot_be(tmp_path: Path) -> None:
    """It is gone before it has greeted."""
    with afl(tmp_path, (packets("arm64"), "--call", "no_such(@@)")) as fuzzer, pytest.raises(EOFError):
        fuzzer.word()
    assert fuzzer.server.returncode == 2
    assert "no_such" in fuzzer.said and "Traceback" not in fuzzer.said


@pytest.mark.quick
@pytest.mark.parametrize("number", ["", "x", "-1", "99999999999999999999", "1 2"])
def test_no_shared_memory(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv("__AFL_SHM_ID", number)
    with pytest.raises(Exception, match=r"shared memory|no number"):
        server.map_of_afl(1 << 16)


@pytest.mark.quick
def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFL_MAP_SIZE", raising=False)
    assert server.wanted_size(None) == 1 << 16 and server.wanted_size(1 << 20) == 1 << 20
    monkeypatch.setenv("AFL_MAP_SIZE", "100000")
    assert server.wanted_size(None) == 1 << 16
    monkeypatch.setenv("AFL_MAP_SIZE", "no number")
    assert server.wanted_size(None) == 1 << 16


@pytest.mark.parametrize(("data", "status"), [(FINE, 0), (CRASH, -signal.SIGSEGV)])
def test_without_a_fork_server(tmp_path: Path, data: bytes, status: int) -> None:
    """AFL_NO_FORKSRV: a process for each run, which dies as the guest does."""
    edges = Segment(1 << 16)
    file = tmp_path / "input"
    file.write_bytes(data)
    done = subprocess.run([sys.executable, "-m", "kprobes", "fuzz", packets("mips"), "--call", f"parse({file}, @len)"],
                          env={**os.environ, "__AFL_SHM_ID": str(edges.number)}, check=False)
    assert done.returncode == status and any(edges.bytes)


def test_descriptors() -> None:
    """What AFL opens."""
    assert (server.CONTROL, server.STATUS) == (CONTROL, STATUS)
