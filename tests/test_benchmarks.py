"""The benchmark runs for every architecture, counts what it says it counts, and its page shows what it found."""

from __future__ import annotations

import copy
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE
from host import host_code

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import aims  # noqa: E402
import calls  # noqa: E402
import instructions  # noqa: E402
import others  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import worlds  # noqa: E402
import yardsticks  # noqa: E402
from subjects import SUBJECTS  # noqa: E402

from kprobes import Kprobe, Unsupported  # noqa: E402
from kprobes.machine.remote.launch import OLDEST, find_qemu  # noqa: E402
from kprobes.machine.unicorn.host import hostcode  # noqa: E402

RESULTS = json.loads((BENCHMARKS / "results.json").read_text())


def test_every_architecture_is_measured() -> None:
    assert set(SUBJECTS) == set(RUNNABLE)
    assert list(RESULTS["architectures"]) == list(SUBJECTS), "run benchmarks/hit_cost.py --json benchmarks/results.json"


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_rows(arch: str) -> None:
    """Each row runs; that the guest's result is right, every hit counted and of the kind that the row says, it checks
    itself."""
    found = rows.measure(arch, hits=20, rounds=1, others=[1, 30])
    reasons = {row["name"]: row["absent"] for row in found["rows"] if "absent" in row}
    absent = [name for name, why in reasons.items() if "compiler" not in why and "Python 3.10" not in why]
    assert absent == ([] if hostcode.available() else ["c"])
    assert len(found["rows"]) == 47
    assert [registering["probes"] for registering in found["registering"]] == [1, 30]


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_raw_hooks_are_called(arch: str) -> None:
    """What is compared with does happen, at the function's entry and its return, and is over afterwards."""
    bare, calls = worlds.BareEngine(arch), []
    with bare.loop(tiny=lambda *_: calls.append("tiny"), ret=lambda *_: calls.append("ret")) as run:
        run(5)
    assert calls == ["tiny", "ret"] * (worlds.WARM + 5)
    with bare.loop() as run:
        run(5)
    assert len(calls) == 2 * (worlds.WARM + 5)


@pytest.mark.host_code
def test_aims() -> None:
    """Each aim names rows that there are, and the table says of each whether it is reached."""
    wanted = re.compile("^(event|program: count|ro, empty|m.call of)")
    found = aims.measured("x86_64", 1, wanted)
    lines = aims.table("x86_64", found, wanted).splitlines()
    names = [aim.row for aim in aims.AIMS if wanted.search(aim.row)]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[4:4 + len(names)]] == names
    assert all(line.endswith(("| reached |", "NOT REACHED |")) for line in lines[4:4 + len(names)])
    assert aims.line(aims.Aim("x", 10), {"x": [9.0, 9.0]}, 1.0)[1]
    assert not aims.line(aims.Aim("x", 8), {"x": [9.0, 9.0]}, 1.0)[1]
    assert aims.line(aims.Aim("x", None, "y", 0.9, speed=True), {"x": [10.0], "y": [9.5]}, 1.0)[1]
    assert not aims.line(aims.Aim("x", None, "y", 0.9, speed=True), {"x": [10.0], "y": [8.0]}, 1.0)[1]


@pytest.mark.quick
def test_aims_of_all_architectures() -> None:
    """One line for each aim: the architecture that is furthest from it, and all that miss it."""
    rows = ("m.call of an empty function", "program: count", aims.IN_C)
    found = {arch: aims.Found({name: [time] for name, time in zip(rows, times, strict=True)}, {"x": "because"})
             for arch, times in (("a", (9000.0, 4.0, 4.0)), ("b", (15000.0, 6.0, 3.0)), ("c", (20000.0, 4.5, 2.0)))}
    found["c"].times.pop("m.call of an empty function")
    lines = aims.overview(found, re.compile("m.call of|program: count")).splitlines()
    worst = [(line.split(" | ")[1], line.split(" | ")[-2], line.split(" | ")[-1].strip(" |")) for line in lines[4:7]]
    assert worst == [("b", "1 of 2", "b"), ("b", "2 of 3", "b"), ("c", "1 of 3", "b, c")]
    assert "x on a: because" in lines


@pytest.mark.quick
def test_aims_go_on_behind_what_was_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is ended in its middle is not lost."""
    asked: list[str] = []

    def measured(arch: str, rounds: int, wanted: re.Pattern[str]) -> aims.Found:
        asked.append(arch)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return aims.Found({"program: record": [10.0 + len(asked)]}, {"x": "because"})

    monkeypatch.setattr(aims, "measured", measured)
    monkeypatch.setattr(sys, "argv", ["aims.py", "--all", "--keep", str(tmp_path / "kept.json"),
                                      *(f"--arch={arch}" for arch in ("arm", "mips", "ppc", "s390x"))])
    with pytest.raises(KeyboardInterrupt):
        aims.main()
    aims.main()
    assert asked == ["arm", "mips", "ppc", "ppc", "s390x"]
    assert "4 architectures" in capsys.readouterr().out


@pytest.mark.quick
def test_yardsticks_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows in C are left out, with the reason; the others are measured."""
    def none() -> list[str]:
        raise yardsticks.NoCompiler("no C compiler: install cc")

    yardsticks.library.cache_clear()
    monkeypatch.setattr(yardsticks, "compiler", none)
    for row in rows.yardstick_rows(worlds.BareEngine("arm64")):
        if "ctypes" in row.name:
            assert rows.sample(row, 20) is not None
        else:
            with pytest.raises(worlds.Absent, match="no C compiler"):
                rows.sample(row, 20)


def test_a_row_that_is_not_what_it_says_is_seen() -> None:
    machine = worlds.Machine("x86_64")
    with pytest.raises(worlds.Absent, match="optimize=False"), machine.probed("o",
        Kprobe(symbol_name="tiny", optimize=False)):
        pass
    with pytest.raises(RuntimeError, match="iterations, but"), machine.probed("o",
                                                                     probe := Kprobe(symbol_name="tiny",
                                                                         pre_handler=rows.empty)):
        probe._nhit = -worlds.WARM
    with pytest.raises(RuntimeError, match="returned"):
        worlds.check(9)


def test_command(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "hit_cost.py"), "--arch", "arm64", "--hits", "20", "--rounds", "1",
               "--probes", "5"]
    printed = subprocess.run([*command, "--json", str(tmp_path / "out.json")], capture_output=True, text=True,
                             timeout=600, check=True).stdout
    assert "o, two arguments" in printed and "5 probes: registered in" in printed
    assert list(json.loads((tmp_path / "out.json").read_text())["architectures"]) == ["arm64"]
    printed = subprocess.run([*command, "--markdown"], capture_output=True, text=True, timeout=600, check=True).stdout
    assert "## arm64" in printed and "| o, two arguments |" in printed


def test_misses_are_marked() -> None:
    results: Any = copy.deepcopy(RESULTS)
    row = report.by_name(results, "x86_64")["o, two arguments"]
    row |= {"ratio": 0.1, "most": 0.15}
    assert " > 0.15" not in next(line for line in report.text(results, "x86_64").splitlines()
                                 if line.startswith("o, two arguments  "))
    row["ratio"] = 0.2
    assert " > 0.15" in next(line for line in report.text(results, "x86_64").splitlines()
                             if line.startswith("o, two arguments  "))


def test_what_an_architecture_lacks_is_blank() -> None:
    results: Any = copy.deepcopy(RESULTS)
    row = report.by_name(results, "x86_64")["o, two arguments"]
    row.clear()
    row |= {"name": "o, two arguments", "absent": "no jump"}
    assert "no jump" in report.text(results, "x86_64") and "no jump" in report.rows(results, "x86_64")
    line = next(line for line in report.ratios(results, "two arguments").splitlines() if "`x86_64`" in line)
    assert line.split(" | ")[3] == ""
    assert plot.svg(results).count("<title>") == plot.svg(RESULTS).count("<title>") - 1


@pytest.mark.quick
@pytest.mark.parametrize("arch", calls.RETURNS)
def test_calls(arch: str) -> None:
    """Each row of what calls cost runs."""
    made, kept = calls.rows_of(arch)
    found = calls.measured(made, rounds=2, calls=2)
    assert kept and all(len(times) == 2 and min(times) >= 0 for times in found.values())


def test_remote_counts_what_is_hit() -> None:
    """The rows of benchmarks/remote.py: no time is trusted here, but that hits are those of probes. In the demo a loop
    stands for the second call of fib: fib(12) enters it 233 times, not 465."""
    import remote

    try:
        find_qemu("qemu-x86_64", OLDEST)
    except Unsupported as error:
        pytest.skip(str(error))
    pytest.importorskip("llvmlite")
    pytest.importorskip("ziglang")
    found, hits = remote.measured("x86_64", rounds=1)
    assert {*hits.values()} == {233, 317811}
    assert found.keys() == hits.keys() == remote.ROWS.keys() and all(seconds > 0 for row in found.values() for seconds in row)


def test_fuzzing_measures_all_it_says() -> None:
    """The rows of benchmarks/fuzzing.py, on a few rounds: no time is trusted here."""
    import fuzzing

    found = fuzzing.measure(str(fuzzing.HERE.parent / "examples" / "demo.x86_64"), rounds=2)
    assert found.keys() == {"snapshot", "restore", "snapshot, comparing", "restore, comparing", *fuzzing.CYCLES,
                             "fuzz", "coverage", "heap", "heap, a call"}
    assert all(value > 0 for value in found.values()) and found["coverage"] < (10 if host_code() else 60)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("valgrind") or platform.machine() != "x86_64", reason="counts under valgrind")
def test_instructions(tmp_path: Path) -> None:
    """A hit's instructions repeat, and rows that are not asked for do not run but for what they need."""
    command = [sys.executable, str(BENCHMARKS / "instructions.py"), "--arch", "arm64", "--rows", "^o, ", "--hits", "400",
               "--profiles", str(tmp_path / "profiles"), "--json", str(tmp_path / "out.json")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    found = json.loads((tmp_path / "out.json").read_text())["arm64"]
    assert "o, two arguments" in printed and "k, empty" not in found
    assert 500 < found["o, empty"] < found["o, two arguments"] < found["raw hook, two arguments"]
    assert abs(found["bare machine"] - found["bare engine"]) < 200
    assert len(list((tmp_path / "profiles").glob("arm64.*"))) == 2 * len(found)


@pytest.mark.quick
def test_counts_are_compared() -> None:
    before = {"arm64": {"k": 100.0, "gone": 1.0}, "mips": {"k": 100.0}}
    after = {"arm64": {"k": 106.0, "new": 1.0}, "mips": {"k": 95.0}, "ppc": {"k": 1.0}}
    assert instructions.compared(before, after).splitlines()[2:] == ["| k | 0.95 | 1.00 | 1.06 | arm64 1.06 |"]


def test_every_architecture_is_counted() -> None:
    counts = json.loads((BENCHMARKS / "instructions.json").read_text())
    assert list(counts) == list(SUBJECTS), "run benchmarks/instructions.py --json benchmarks/instructions.json"


def test_other_tools_are_measured_or_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "HITS", 50)
    found = others.measure(1)
    assert list(found) == ["kprobes", "Qiling", "Frida, script", "Frida, CModule"]
    assert isinstance(found["kprobes"], float)
    for name in ("Qiling", "Frida, script"):
        assert isinstance(found[name], float) or "not installed" in str(found[name])
