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

#: tests whose own lines take what such a system lacks -> what that is, and where it is so
SPARED = {
    "test_a_child_has_its_own": ("os.fork", ("win32",)),
    "test_a_signal_into_the_middle_of_a_jump": ("SIGALRM", ("win32",)),
    "test_a_return_that_was_interrupted": ("os.memfd_create", ("win32", "darwin")),
    "test_a_host_without_host_code_says_so_once": ("another system than Linux to begin with", ("win32", "darwin")),
    "test_commands_load_what_they_use": ("an interpreter that has imported nothing", ("win32", "darwin")),
}


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that cannot be as on that system, and say why."""
    for item in items:
        lacking, systems = SPARED.get(getattr(item, "originalname", item.name), ("", ()))
        if os.environ["KPROBES_AS"] in systems:
            item.add_marker(pytest.mark.skip(reason=f"needs {lacking}"))
