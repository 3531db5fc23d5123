"""Keystone for a Python that runs on AArch64 in QEMU's user mode: there is no wheel for that machine, but the machine
that QEMU runs on has one. It is asked by a child process, which the system runs natively: $KPROBES_HOST_PYTHON.

The whole of Keystone that the library uses: Ks(arch, mode).asm(text, address, as_bytes=True), KsError, the constants.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any


class KsError(Exception):
    """What Keystone raises."""


@cache
def _native() -> subprocess.Popen[str]:
    names = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    child = subprocess.Popen([names["KPROBES_HOST_PYTHON"], __file__], env=names, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(child.communicate)
    return child


def _ask(*question: Any) -> Any:
    child: Any = _native()
    child.stdin.write(json.dumps(question) + "\n")
    child.stdin.flush()
    error, answer = json.loads(child.stdout.readline())
    if error:
        raise KsError(error)
    return answer


def __getattr__(name: str) -> Any:
    if not name.startswith("KS_"):
        raise AttributeError(name)
    return _ask(name)


class Ks:
    """An assembler."""

    def __init__(self, arch: int, mode: int) -> None:
        self._kind = arch, mode

    def asm(self, text: str, address: int, as_bytes: bool = False) -> tuple[bytes | None, int]:
        assert as_bytes
        code, count = _ask(*self._kind, text, address)
        return None if code is None else bytes.fromhex(code), count


def _answer() -> None:
    """The child's side."""
    sys.path.pop(0)  # this file's folder
    import keystone

    for line in sys.stdin:
        question = json.loads(line)
        try:
            if len(question) == 1:
                answer: Any = getattr(keystone, question[0])
            else:
                arch, mode, text, address = question
                code, count = keystone.Ks(arch, mode).asm(text, address, as_bytes=True)
                answer = None if code is None else code.hex(), count
            print(json.dumps(["", answer]), flush=True)
        except keystone.KsError as error:
            print(json.dumps([str(error), None]), flush=True)


if __name__ == "__main__":
    _answer()
