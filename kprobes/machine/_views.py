"""How compilers of programs see a guest: where its registers and memory are, for code of the host's
and of the guest's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..arch._base import Arch
from ..arch._detours import Saving
from ..regs import Regs


class RegisterPlace(Protocol):
    """The place of a register's value, for code of the host's.

    Attributes:
        way: how the value is reached: "cell", "window", "api", "pc", "none" or "python"; what the
            others mean with each is said at the engine's.
        place: a distance in bytes, or the engine's number of the register.
        index: bytes behind where a pointer points.
        bits: of the value there.
    """

    @property
    def way(self) -> str: ...
    @property
    def place(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def bits(self) -> int: ...


class HostCodeView(Protocol):
    """A guest as code of the host's finds it at a call site.

    Attributes:
        base: an address in the engine's structure of the CPU.
        words: name -> address of what the engine has besides.
        fail: takes what a program's helper has raised; the run raises it.
        arch: the guest's architecture.
        regs: the guest's registers, as handlers see them.
    """

    base: int
    words: dict[str, int]
    fail: Callable[[BaseException], None]
    arch: Arch
    regs: Regs

    def where(self, name: str) -> RegisterPlace:
        """Return the place of a register's value, by the register's name."""


class GuestCopies(Protocol):
    """Copies in guest memory of objects of this process, kept the same around each run."""

    def push(self) -> None:
        """Copy the objects into the guest, before the guest runs."""

    def stopped(self) -> None:
        """Copy the objects back, after the guest has run; large ones when they are looked at."""

    def pull(self) -> None:
        """Copy all objects back, before the guest's memory goes."""

    def threads_begin(self) -> None:
        """Tell programs that they may run in several threads from now on."""


class GuestCodeView(Protocol):
    """A guest in which compiled programs run as code of its own.

    Attributes:
        arch: the guest's architecture.
        saving: how a detour saves registers.
        copies: told before and after a run; None: nothing is copied.
        code: (start, end) of programs in guest memory.
        reads: True where programs may read memory: in a process, not in a kernel.
        read: (address, bytes) -> guest memory.
        write: (address, data): writes guest memory.
        alloc: (bytes) -> address of guest memory.
        fresh: (bytes) -> address of zeroed pages that are never taken back.
        asked: (code) -> address of the code in the guest, which a program calls to ask Python.
    """

    arch: Arch
    saving: Saving
    copies: GuestCopies | None
    code: list[tuple[int, int]]
    reads: bool
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], None]
    alloc: Callable[[int], int]

    def fresh(self, size: int) -> int: ...
    def asked(self, code: bytes) -> int: ...
    def waker(self, call: Callable[[], None]) -> int:
        """Return the number by which programs have a function of Python's called."""

    def teller(self, tell: Callable[[Regs], int]) -> int:
        """Return the number by which programs have the host tell them a number of 64 bits."""

    @property
    def gettime(self) -> int:
        """Address of a clock_gettime() in the guest that tells this computer's time; 0: none."""

    @property
    def watched(self) -> bool:
        """True while there is one thread, and programs are told before there is a second one."""

    @property
    def there(self) -> bool:
        """True while the guest still exists."""

    @property
    def several(self) -> bool:
        """True where the guest has several threads."""

    def readable(self) -> list[tuple[int, int]]:
        """Return (start, bytes) of each stretch of memory that programs may read."""
