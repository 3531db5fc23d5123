"""Programs in the guest: compiled code to which jumps lead from the guest's text."""

from __future__ import annotations

from typing import Protocol


class GuestProgram(Protocol):
    """A program compiled to the guest's own code, for machines that cannot call the host at a call
    site.

    A probe's detour runs it in the guest.

    Attributes:
        entry: address of the code, a function of (environment, frame); see machine.detours.
        environment: address of the program's data.
        reads: names of the registers that must be in the frame.
        runs: how often it has run.
        text: the code; it may run at another address.
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
