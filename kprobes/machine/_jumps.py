"""Where jumps may take the place of breakpoints, and what runs there in the guest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


def always_jumps(programs: Sequence[Any] | None, mode: int) -> bool:
    """jumps() of a machine that serves call sites in place."""
    return True


def never_here(addr: int, programs: Sequence[Any]) -> None:
    """serve_here() of a machine whose call sites are elsewhere."""


class GuestProgram(Protocol):
    """Code of the guest's own that the detour of a machine without call sites in place may run.

    Attributes:
        entry: address of the code, a function of (environment, frame); see machine.detours. environment: its address.
        reads: registers that must be in the frame. runs: how often it has run. text: the code; it may run elsewhere.
    """

    @property
    def text(self) -> bytes: ...
    @property
    def entry(self) -> int: ...
    @property
    def environment(self) -> int: ...
    @property
    def reads(self) -> frozenset[str]: ...
    @property
    def runs(self) -> int: ...
