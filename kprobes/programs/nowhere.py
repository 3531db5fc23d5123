"""Places where programs run: see call.RunPlace."""

from __future__ import annotations

import time

from ..errors import ProgramError


class Nowhere:
    """A test run: no guest, so no guest memory, no stack and no probe."""

    cpu = 0

    def read(self, addr: int, size: int) -> bytes:
        raise ProgramError("there is no guest memory in a test run")

    def clock(self) -> int:
        return time.monotonic_ns()

    def pid_tgid(self) -> int:
        return 0

    def comm(self) -> bytes:
        return b""

    def stack(self, skip: int, depth: int) -> list[int]:
        return []

    def override(self, value: int) -> None:
        raise ProgramError("there is nothing to return from in a test run")

    def func_ip(self) -> int:
        return 0

    def cookie(self) -> int:
        return 0

    def marker_argument(self, number: int) -> None:
        return None

    def at_return(self) -> bool:
        return False

    def symbol(self, addr: int) -> None:
        return None
