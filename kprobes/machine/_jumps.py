"""Code in the guest to which jumps lead from its text."""

from __future__ import annotations

from typing import Protocol


class GuestProgram(Protocol):
    """Code of the guest's own that the detour of a machine without call sites in place may run.

    Attributes:
        entry: address of the code, a function of (environment, frame); see machine.detours.
        environment: its address.
        reads: registers that must be in the frame.
        runs: how often it has run.
        text: the code; it may run elsewhere.
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
