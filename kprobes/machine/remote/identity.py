"""Number and name of the process behind a stub."""

from __future__ import annotations

import os

from ...errors import RemoteError
from ...symbols import Symbols
from .target import RemoteTarget
from .threads import RemoteThreads

LONGEST = 15  #: bytes of a task's name on Linux


class RemoteProcess:
    """The process behind a stub, as its own programs know it (a machine._base.ProcessIdentity)."""

    def __init__(self, threads: RemoteThreads, target: RemoteTarget, symbols: Symbols) -> None:
        """Prepare; nothing is asked of the stub.

        Args:
            threads: the process's threads, which have its number.
            target: the stub, which may know the program's file.
            symbols: the symbol table, which has the name of the program's file where it is known.
        """
        self._threads = threads
        self._target = target
        self._symbols = symbols
        self._name = b""

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._threads.process

    @property
    def name(self) -> bytes:
        """The file name of its program, at most 15 bytes; b"": it is not known."""
        if not self._name:
            path = self._symbols.main or self._executable()
            self._name = os.fsencode(os.path.basename(path))[:LONGEST]
        return self._name

    def _executable(self) -> str:
        """Return the path of the program's file, as the stub tells it; "": it does not."""
        if "qXfer:exec-file:read" not in self._target.features:
            return ""
        try:
            return os.fsdecode(self._target.transfer("exec-file"))
        except RemoteError:
            return ""

    def tid(self, cpu: int) -> int:
        """Return the number of the thread that is a CPU to the core.

        Args:
            cpu: number of the CPU.
        """
        return self._threads.tid(cpu)
