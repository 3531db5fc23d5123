"""AFL++ itself finds the planted bugs. It takes Debian's afl++ (`apt-get install afl++`) and some minutes, and runs where
afl-fuzz is on PATH, or KPROBES_AFL_FUZZ names another one. QEMU mode is not needed. .ci/more installs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kprobes.fuzz.bench import InputRunner
from kprobes.fuzz.crash import examine
from kprobes.fuzz.target import CallTarget, PythonTarget

ROOT = Path(__file__).resolve().parents[2]
AFL = shutil.which(os.environ.get("KPROBES_AFL_FUZZ", "afl-fuzz"))
MINUTE = 60.0
PATIENCE = 4 * MINUTE  # seconds: on a machine that others use as well a hang is found late
BUGS = {"take_name", "take_number", "follow"}

pytestmark = pytest.mark.skipif(AFL is None, reason="no afl-fuzz on PATH: apt-get install afl++")


@contextmanager
def fuzzing(out: Path, words: list[str], patience: int = 100, seeds: str = "examples/packets",
            **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """afl-fuzz at work; its output is in `out`.log. patience: milliseconds of a run."""
    variables = {**os.environ, "AFL_NO_UI": "1", "AFL_SKIP_CPUFREQ": "1", "AFL_NO_AFFINITY": "1",
                 "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1", "AFL_HANG_TMOUT": "200",
                 "AFL_FORKSRV_INIT_TMOUT": "60000", **environment}
    with open(f"{out}.log", "wb") as log:
        command = [str(AFL), "-U", "-i", seeds, "-o", str(out), "-t", str(patience), "--", "kprobes", "fuzz",
                   *words]
        fuzzer = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=log)
    try:
        yield fuzzer
    finally:
        fuzzer.send_signal(signal.SIGINT)
        try:
            fuzzer.wait(20)
        finally:
            fuzzer.kill()


def found(bench: InputRunner, folder: Path) -> set[str]:
    """The functions that crashes of a folder are in."""
    functions = set()
    for path in folder.glob("id:*"):
        _, finding = examine(bench, path.read_bytes())
        if finding is not None:
            names = [place.name.partition("+")[0] for place in (*finding.stack[:1], *reversed(finding.path))]
            functions.add(next((name for name in names if name in BUGS | {"parse"}), "elsewhere"))
    return functions


def said(out: Path) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", Path(f"{out}.log").read_text(errors="replace"))


@pytest.mark.parametrize("machine", ["x86_64", "arm64", "arm", "mips"])
def test_the_planted_bugs_are_found(tmp_path: Path, machine: str) -> None:
    """Two wild accesses, an overwritten return address or endless recursion, and a hang."""
    out, image = tmp_path / "out", f"examples/packets.{machine}"
    bench = InputRunner(CallTarget(str(ROOT / image), "parse(@input, len)").load())
    with fuzzing(out, [image, "--call", "parse(@@, @len)"]) as fuzzer:
        end = time.monotonic() + PATIENCE
        crashes, hangs = set[str](), False
        while time.monotonic() < end and not (len(crashes) >= 3 and hangs) and fuzzer.poll() is None:
            time.sleep(1)
            crashes = found(bench, out / "default" / "crashes")
            hangs = any((out / "default" / "hangs").glob("id:*"))
    assert len(crashes) >= 3 and {"take_number", "follow"} < crashes and hangs, f"{crashes} {hangs} {said(out)[-2000:]}"
    stats = (out / "default" / "fuzzer_stats").read_text()
    assert re.search(r"target_mode +: +unicorn.*shmem_testcase", stats)


@pytest.mark.parametrize("words", [["examples/fuzz_packets.py", "@@"], ["examples/fuzz_packets.py"],
                                   ["examples/fuzz_packets.py", "@@", "--map-size", "8192"],
                                   ["examples/packets.arm", "--call", "parse(@@, @len)", "--comparisons"],
                                   ["examples/packets.arm64", "--call", "parse(@@, @len)", "--comparisons"]],
                         ids=["file", "stdin", "small map", "comparisons", "comparisons by instructions"])
def test_ways_to_drive_it(tmp_path: Path, words: list[str]) -> None:
    out = tmp_path / "out"
    with fuzzing(out, words) as fuzzer:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and fuzzer.poll() is None and not any((out / "default" / "crashes").glob("id:*")):
            time.sleep(0.5)
    text = said(out)
    assert any((out / "default" / "crashes").glob("id:*")), text[-2000:]
    if "8192" in words:
        assert "Target map size: 8192" in text
    bench = InputRunner(PythonTarget(str(ROOT / "examples/fuzz_packets.py")).load())
    assert found(bench, out / "default" / "crashes") <= BUGS | {"parse"}


#: of the cookbook: (page, seeds, target, the function that the first crash is in)
RECIPES = [("afl", "examples/tags", ["examples/tags.arm64", "--call", "tags_read(@@, @len)", "--heap"], "keep_text"),
           ("fuzz-firmware", "examples/frames", ["examples/fuzz_radio.py", "@@"], "take_fragment")]


@pytest.mark.parametrize(("page", "seeds", "words", "function"), RECIPES, ids=[row[0] for row in RECIPES])
def test_recipes(tmp_path: Path, page: str, seeds: str, words: list[str], function: str) -> None:
    """The line of the page finds a bug."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    assert f"afl-fuzz -U -i {seeds} -o found -- kprobes fuzz {shown}\n" in (
        ROOT / "docs" / "cookbook" / f"{page}.md").read_text()
    out = tmp_path / "out"
    with fuzzing(out, words, seeds=seeds) as fuzzer:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and fuzzer.poll() is None and not any((out / "default" / "crashes").glob("id:*")):
            time.sleep(0.5)
    named = (CallTarget(words[0], "tags_read(@input, len)", heap=True) if "--heap" in words else PythonTarget(words[0]))
    bench = InputRunner(named.load())
    crashes = [examine(bench, path.read_bytes())[1] for path in (out / "default" / "crashes").glob("id:*")]
    places = [place.name for crash in crashes if crash is not None for place in (*crash.stack, *crash.path[-1:])]
    assert any(place.startswith(function) for place in places), f"{places} {said(out)[-2000:]}"


def test_without_its_fork_server(tmp_path: Path) -> None:
    """A process for each run: slow, and the same."""
    out = tmp_path / "out"
    with fuzzing(out, ["examples/fuzz_packets.py", "@@"], 20000, AFL_NO_FORKSRV="1") as fuzzer:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and fuzzer.poll() is None and "All set and ready to roll" not in said(out):
            time.sleep(0.5)
    assert "All test cases processed" in said(out) or "ready to roll" in said(out), said(out)[-2000:]


def test_a_target_that_fails(tmp_path: Path) -> None:
    """afl-fuzz says that there is no fork server, and shows the sentence where it shows what targets print."""
    out = tmp_path / "out"
    with fuzzing(out, ["examples/nowhere.py", "@@"], AFL_DEBUG_CHILD="1") as fuzzer:
        assert fuzzer.wait(MINUTE) != 0
    assert "examples/nowhere.py" in said(out) and "Traceback" not in said(out)


def test_the_page_has_these_lines() -> None:
    """What docs/fuzzing.md says of afl-fuzz is what is run here."""
    page = (ROOT / "docs" / "fuzzing.md").read_text()
    assert "afl-fuzz -U -i examples/packets -o found -- kprobes fuzz examples/fuzz_packets.py @@\n" in page
    assert "-- kprobes fuzz examples/packets.mips --call 'parse(@@, @len)'\n" in page
