"""A plugin of pytest: the tests run as on another operating system, and so do processes that they start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .as_another_host import change

FOLDER = str(Path(__file__).parent)
TESTS = Path(__file__).parent.parent
#: tests of what only POSIX has: signals that are sent, terminals, fork servers, stubs of processes
POSIX = (
    "fuzz/test_afl.py",
    "fuzz/test_replay.py",
    "fuzz/test_server.py",
    "fuzzers/test_parsers.py",
    "machine/test_signals.py",
    "remote/test_gdbserver_processes.py",
    "script/test_bpftrace_suite.py",
    "test_cli.py",
    "tracing",
)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Change this process before kprobes is imported, and after pytest has looked at the terminal."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (FOLDER, os.environ.get("PYTHONPATH"))))
    change(os.environ["KPROBES_AS"])


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what needs POSIX where this is to be no such system."""
    if os.environ["KPROBES_AS"] == "win32" and any(collection_path == TESTS / name for name in POSIX):
        return True
    return None
