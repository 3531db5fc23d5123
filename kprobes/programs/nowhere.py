"""The place of a test run (a call.RunPlace)."""

from __future__ import annotations

import time

from ..errors import ProgramError


class Nowhere:
    """A test run: no guest, so no guest memory, no stack and no probe."""

    cpu = 0

    def read(self, addr: int, size: int) -> bytes:
        """Raise ProgramError: there is no guest memory."""
        raise ProgramError("there is no guest memory in a test run")

    def clock(self) -> int:
        """Return the host's time in ns."""
        return time.monotonic_ns()

    def pid_tgid(self) -> int:
        """Return 0: there is no task."""
        return 0

    def comm(self) -> bytes:
        """Return b"": there is no task, so it has no name."""
        return b""

    def stack(self, skip: int, depth: int) -> list[int]:
        """Return []: there is no stack."""
        return []

    def override(self, value: int) -> None:
        """Raise ProgramError: there is no function to skip."""
        raise ProgramError("there is nothing to return from in a test run")

    def func_ip(self) -> int:
        """Return 0: there is no function."""
        return 0

    def cookie(self) -> int:
        """Return 0: the program is not attached."""
        return 0

    def marker_argument(self, number: int) -> None:
        """Return None: there is no static tracepoint."""
        return None

    def at_return(self) -> bool:
        """Return False: there is no probe at a return."""
        return False

    def symbol(self, addr: int) -> None:
        """Return None: there are no symbols."""
        return None
