"""Commands in terminals of any size and through pipes: one process has all imported and forks for each.

Run as a program it is that process: a line of JSON asks, a line answers.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pkgutil
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import kprobes

COLOURS = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|38|4[0-7]|48|9[0-7])[0-9;]*m")
_TOKENS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][A-Z0-9]|[\r\n]|[^\x1b\r\n]+")
WHOLE = 300.0  #: seconds that a command may take


class Done(NamedTuple):
    """What a command left. text: what came to the terminal, or through the pipe of stdout and that of stderr."""

    status: int
    text: str

    @property
    def visible(self) -> str:
        """What is left to be seen of it, where nothing has rolled away."""
        lines, row, column = [""], 0, 0
        for token in _TOKENS.finditer(self.text):
            numbers, letter = token[1] or "", token[2]
            if letter == "A":
                row = max(row - int(numbers or 1), 0)
            elif letter == "H":
                row, column = 0, 0
            elif letter == "J":
                lines = [""] * len(lines)
            elif letter == "K":
                lines[row] = "" if numbers == "2" else lines[row][:column]
            elif token[0] == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif token[0] == "\r":
                column = 0
            elif token[0][0] != "\x1b":
                lines[row] = lines[row][:column].ljust(column) + token[0] + lines[row][column + len(token[0]):]
                column += len(token[0])
        return "\n".join(lines)


class Terminals:
    """Runs commands: run("stat", file, size=(24, 80)); size None: stdout and stderr are pipes."""

    def __init__(self) -> None:
        tests = Path(__file__).resolve().parent
        self._child = subprocess.Popen([sys.executable, tests / "terminals.py"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, cwd=tests.parents[1])

    def run(self, *words: str, size: tuple[int, int] | None = None, folder: Path | None = None, interrupt: str = "",
            **environment: str) -> Done:
        """interrupt: control-C is typed when it has been said three times."""
        assert self._child.stdin is not None and self._child.stdout is not None
        ask = {"words": words, "size": size, "folder": str(folder or "."), "interrupt": interrupt, "env": environment}
        self._child.stdin.write(json.dumps(ask) + "\n")
        self._child.stdin.flush()
        return Done(*json.loads(self._child.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._child.communicate()


def become(ask: dict[str, Any]) -> NoReturn:
    """In a child: the command."""
    status = 1
    try:
        for n, name in enumerate(("stdin", "stdout", "stderr")):
            setattr(sys, name, open(n, "w" if n else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
        os.chdir(ask["folder"])
        for name in ("NO_COLOR", "CI", "COLUMNS", "LINES", "FORCE_COLOR"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color", **ask["env"]})
        from kprobes.cli import main

        main(ask["words"], prog_name="kprobes")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        os._exit(status)


def serve(ask: dict[str, Any]) -> Done:
    """One command, in a child of its own."""
    if ask["size"] is None:
        own, theirs = os.pipe()
    else:
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", *ask["size"], 0, 0))
    child = os.fork()
    if not child:
        os.setsid()
        if ask["size"] is not None:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        else:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for n in range(ask["size"] is None, 3):
            os.dup2(theirs, n)
        become(ask)
    os.close(theirs)
    text = listen(own, child, ask["interrupt"].encode())
    return Done(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode(errors="replace"))


def listen(own: int, child: int, interrupt: bytes) -> bytes:
    """All that the command says, until nobody has its terminal open any more."""
    seen, begun = b"", time.monotonic()
    while time.monotonic() - begun < WHOLE:
        if interrupt and seen.count(interrupt) > 2:
            os.write(own, b"\x03")
            interrupt = b""
        if select.select([own], [], [], 0.05)[0]:
            try:
                piece = os.read(own, 1 << 16)
            except OSError:  # Linux's way to say so
                piece = b""
            if not piece:
                break
            seen += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(own)
    return seen


def import_all() -> None:
    """What commands need, so that none of them has to import it for itself."""
    ours = [module.name for module in pkgutil.walk_packages(kprobes.__path__, "kprobes.")]
    for name in (*ours, "rich.progress", "rich.table", "pandas", "pyarrow.dataset", "pyarrow.ipc"):
        if not name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not here
                importlib.import_module(name)


def main() -> None:
    """Answer questions."""
    import_all()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
