"""Files of events through a shell: a folder that behaves as tracefs, and the kernel's own scripts in it.

These are not in this repository: KPROBES_FTRACE names the folder of ftracetest, tools/testing/selftests/ftrace of a kernel's
sources.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ftrace.kernel import PROCESSORS, Kernel
from ftrace.suite import REASONS, expected, scripts_of
from ftrace.tracefs import Tracefs, compiled, run_scripts

RECORDED = Path(__file__).resolve().parents[2] / "docs" / "ftrace-tests.json"
SUITE = os.environ.get("KPROBES_FTRACE", "")

pytestmark = pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None,
                                reason="no compiler, cc, for what is loaded before a shell's own library")


@pytest.fixture(params=["x86_64", "s390x"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tracefs]:
    kernel = Kernel(request.param)
    yield Tracefs(kernel, tmp_path, compiled(tmp_path), request.param)
    kernel.close()


def test_a_shell_defines_reads_and_fails(folder: Tracefs) -> None:
    """echo writes, and learns that it failed; folders come and go; what a process does is recorded."""
    status, output = folder.run(["sh", "-ec", f"""
        cd {folder.folder}
        echo 'p:mine kernel_clone' > kprobe_events
        echo 'p:made tracefs_create_dir name=+0($arg1):string' >> kprobe_events
        test -d events/kprobes/mine && test -f events/kprobes/mine/format
        echo 1 > events/enable
        ! echo > kprobe_events
        ( : forked )
        grep -c 'mine: (kernel_clone+0x0/0x40)$' trace
        echo 'r:mine2 vfs_read' >> kprobe_events
        grep -c 'made: .* name="mine2"$' trace
        ! echo 'p no_such' >> kprobe_events
        tail -n 1 error_log
        echo 0 > events/enable
        echo > kprobe_events
        ls events
        ! cat events/kprobes/mine/format
    """])
    assert status == 0, output
    lines = [line for line in output.splitlines() if "error" not in line and "No such" not in line and "create" not in line]
    forks, made, caret, left = lines
    assert int(forks) >= 1  # programs of the shell are processes, too
    assert (made, caret, left) == ("1", " " * 13 + "^", "enable")


def test_every_recorded_script_is_named_as_it_is_expected() -> None:
    """The page's table says of each script what the test wants."""
    recorded = {name: (result, reason) for name, result, reason in json.loads(RECORDED.read_text())["scripts"]}
    assert set(REASONS) <= set(recorded)
    for name, (result, reason) in recorded.items():
        passing = [uname for uname in PROCESSORS if expected(name, uname) == "PASS"]
        assert result == ("passes" if passing == [*PROCESSORS] else ", ".join(passing)), name
        assert bool(reason) == (result != "passes")


@pytest.mark.skipif(not SUITE, reason="KPROBES_FTRACE names no folder of ftracetest")
@pytest.mark.parametrize("uname", PROCESSORS)
def test_the_kernels_scripts(uname: str, tmp_path: Path) -> None:
    """All that were recorded, by their own script; some 10 s a machine, of which one script sleeps 5."""
    suite = Path(SUITE).resolve()
    names = {name for name, _, _ in json.loads(RECORDED.read_text())["scripts"]}
    found, output = run_scripts(suite, scripts_of(suite), uname, tmp_path)
    assert set(found) == names, "scripts of another kernel than those of the table"
    assert found == {name: expected(name, uname) for name in found}, output[-20000:]
