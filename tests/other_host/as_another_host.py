"""This process as one of another operating system, as far as Python shows it.

KPROBES_AS=win32 or KPROBES_AS=darwin in the environment says which. Modules and names that Python does not have there
are gone, and sys.platform is changed. Standard modules that read it when they are imported are imported before. What
such a system's files, processes and memory do otherwise is not shown by this.

    KPROBES_AS=win32 PYTHONPATH=tests/other_host python -m kprobes archs
    KPROBES_AS=win32 python -m pytest -p tests.other_host.plugin -m quick
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import socket
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

#: what looks at the platform when it is imported, here and in packages that are used
EARLY = ["asyncio", "asyncio.subprocess", "ctypes", "ctypes.util", "getpass", "http.server", "locale", "mmap", "multiprocessing", "multiprocessing.pool", "multiprocessing.popen_fork", "multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver", "multiprocessing.connection", "multiprocessing.managers", "multiprocessing.shared_memory", "concurrent.futures.process", "pathlib", "platform", "pdb", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "urllib.request", "uuid", "webbrowser", "zipfile", "click", "click.testing", "capstone", "llvmlite.binding", "pytest", "rich.console", "unicorn", "pyarrow", "pandas"]
MODULES = {
    "win32": {"fcntl", "grp", "pwd", "pty", "readline", "resource", "termios", "tty"},
    "darwin": {"spwd"},
}
SYSTEMS = {"win32": "Windows", "darwin": "Darwin"}  # as platform.system() calls them
LINUX_ONLY = ("memfd_create", "eventfd", "pidfd_open", "sched_getaffinity", "sched_setaffinity", "setns", "unshare",
              "posix_fadvise", "copy_file_range")
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "darwin": {
        "os": LINUX_ONLY,
        "mmap": ("MAP_POPULATE", "MAP_STACK"),
        "signal": ("sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGRTMAX"),
        "select": ("epoll",),
    },
    "win32": {
        "os": (*LINUX_ONLY, "fchmod", "fork", "forkpty", "getpgid", "getpgrp", "getuid", "geteuid", "killpg", "mkfifo", "nice", "openpty",
               "posix_spawn", "setpgid", "setsid", "uname", "wait3", "wait4", "WNOHANG", "O_CLOEXEC", "sysconf",
               "getloadavg", "pread", "pwrite"),
        "mmap": ("MAP_PRIVATE", "MAP_SHARED", "MAP_ANONYMOUS", "MAP_ANON", "PROT_READ", "PROT_WRITE", "PROT_EXEC",
                 "MAP_POPULATE", "MAP_STACK"),
        "signal": ("SIGALRM", "SIGBUS", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGSYS", "SIGTRAP",
                   "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT", "ITIMER_REAL", "setitimer", "alarm", "pause", "pthread_kill",
                   "pthread_sigmask", "sigpending", "sigwait", "sigtimedwait", "sigwaitinfo", "siginterrupt", "SIGRTMIN",
                   "SIGRTMAX"),
        "select": ("poll", "epoll"),
        "socket": ("AF_UNIX",),
    },
}


class Without(importlib.abc.MetaPathFinder):
    """Finds some modules nowhere."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r} (there is none on {sys.platform})", name=name)
        return None


def change(platform: str) -> None:
    """Make this process one of that platform's, as far as Python shows it."""
    for name in EARLY:
        try:
            importlib.import_module(name)
        except Exception:
            continue
    pair = functools.partial(socket.socketpair, socket.AF_UNIX)  # Windows' Python makes one without that family
    for user in ("subprocess", "multiprocessing.popen_fork"):  # they are this computer's own still
        for used in ("os", "signal"):
            if hasattr(sys.modules[user], used):
                setattr(sys.modules[user], used, SimpleNamespace(**vars(sys.modules[used])))
    sys.meta_path.insert(0, Without(MODULES[platform]))
    for name in MODULES[platform]:
        sys.modules.pop(name, None)
    for name, gone in NAMES[platform].items():
        module = importlib.import_module(name)
        for each in gone:
            if hasattr(module, each):
                delattr(module, each)
    socket.socketpair = pair  # type: ignore[assignment]
    system = SYSTEMS[platform]
    sys.modules["platform"].system = lambda: system  # type: ignore[attr-defined]
    sys.platform = platform

