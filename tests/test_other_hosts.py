"""The main jobs on Windows and macOS, as far as Python shows them: see other_host/as_another_host.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DEMO = str(TESTS.parent / "examples" / "demo.x86_64")
CALL = ["--call", 'crc32(0, "hello", 5)']

pytestmark = [pytest.mark.quick, pytest.mark.parametrize("platform", ["win32", "darwin"])]


def run_as(platform: str, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command as on another operating system, without code of this computer's."""
    environment = {**os.environ, "KPROBES_AS": platform, "KPROBES_HOST_CODE": "0",
                   "PYTHONPATH": str(TESTS / "other_host")}
    done = subprocess.run([sys.executable, "-m", "kprobes", *words], env=environment, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done


def test_the_other_system_is_seen(platform: str) -> None:
    environment = {**os.environ, "KPROBES_AS": platform, "PYTHONPATH": str(TESTS / "other_host")}
    code = "import os, signal, sys; print(sys.platform, hasattr(os, 'fork'), hasattr(signal, 'SIGHUP'))"
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    unix = str(platform != "win32")
    assert said.split() == [platform, unix, unix]


def test_a_trace(platform: str) -> None:
    done = run_as(platform, "trace", DEMO, "-e", "p crc32 len=$arg3", "-e", "r crc32 ret=$retval:x32", *CALL)
    assert "len=0x5" in done.stdout and "ret=0x3610a686" in done.stdout


def test_system_calls_are_served(platform: str) -> None:
    pytest.importorskip("system_calls")
    done = run_as(platform, "trace", str(TESTS.parent / "examples" / "licence.armhf"), "--syscalls", "--run",
                  "-e", "p 0x20368", "--", "KP-12A")
    assert "guest, 1: no licence" in done.stderr


@pytest.mark.long
def test_a_script(platform: str) -> None:
    done = run_as(platform, "script", DEMO, "-e", "uprobe:crc32 { @[arg2] = count(); }", *CALL)
    assert "@[5]: 1" in done.stdout


@pytest.mark.long
def test_a_recording(platform: str, tmp_path: Path) -> None:
    file = str(tmp_path / "hits.arrow")
    run_as(platform, "record", DEMO, "-o", file, "-e", "p crc32 len=$arg3", *CALL)
    assert "crc32" in run_as(platform, "report", file).stdout


@pytest.mark.long
def test_an_input_that_hangs(platform: str, tmp_path: Path) -> None:
    target = tmp_path / "target.py"
    target.write_text("import kprobes\n"
                      "machine = kprobes.UnicornMachine.from_code(b'\\xeb\\xfe', arch='x86_64', symbols={'f': 0x10000})\n"
                      "def fuzz(data):\n    machine.call('f')\n")
    (tmp_path / "input").write_bytes(b"x")
    done = run_as(platform, "fuzz", str(target), str(tmp_path / "input"), "--timeout", "0.5", status=1)
    assert "hangs" in done.stdout


@pytest.mark.long
def test_wrong_words(platform: str, tmp_path: Path) -> None:
    assert "Traceback" not in run_as(platform, "trace", str(tmp_path / "missing"), "-e", "p f", status=2).stderr
