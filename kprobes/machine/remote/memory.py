"""A remote guest's memory as the core sees it.

A whole machine's breakpoints are the stub's alone: what the core patches into text is shown to it, but is not there. A
kernel reads its own text, compares and patches it, and takes breakpoint instructions there for its own. Only jumps to
programs of ours really stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...arch._base import Arch
from ...errors import GuestFault
from .later import Later
from .layouts import facts_of
from .target import Target
from .threads import Threads

T = TypeVar("T")
BLOCK = 4096  #: bytes of memory for which what is shown is looked up together


class Memory:
    """Reads, writes and patches.

    ours: whether an address lies in pages of ours: code is really written there. system: see above. code: whether one
    lies in what is loaded and executed: that may be flash.
    """

    def __init__(self, target: Target, threads: Threads, arch: Arch, ours: Callable[[int], bool], system: bool,
                 code: Callable[[int], bool]) -> None:
        self._code = code
        self._target, self._threads, self._arch, self.ours, self._system = target, threads, arch, ours, system
        self._shown: dict[int, dict[int, tuple[bytes, bytes]]] = {}  # block -> address -> what is shown, what is there
        self._jumps: dict[int, bytes] = {}  # address of one that really stands in text -> what stood there
        self.later: Later | None = None  # patches of text that other threads execute

    def read(self, addr: int, size: int) -> bytes:
        """Memory with breakpoints; GuestFault."""
        data = self._reaching(addr, lambda: self._target.read(addr, size))
        return self._over(addr, data) if self._shown else data if self.later is None else self.later.over(addr, data)

    def write(self, addr: int, data: bytes) -> None:
        """Write memory, breakpoints too; GuestFault."""
        self._reaching(addr, lambda: self._target.write(addr, data))
        if self._system and self._code(addr) and self._reaching(
                addr, lambda: self._target.read(addr, len(data))) != data:
            raise GuestFault("memory stays as it is when it is written: flash, or ROM", address=addr, access="write")
        for place, (shown, _) in list(self._near(addr, len(data))):
            if place < addr + len(data) and addr < place + len(shown):
                del self._shown[place & -BLOCK][place]

    def forget(self, addr: int, size: int) -> None:
        """That memory is the guest's no more: nothing is shown there."""
        for place, _ in list(self._near(addr, size)):
            del self._shown[place & -BLOCK][place]
        self._jumps = {at: was for at, was in self._jumps.items() if not addr <= at < addr + size}

    def patch(self, addr: int, code: bytes) -> None:
        """Replace code. In a whole machine's text that is only shown, but for jumps; putting back what is there ends
        it."""
        if self.later is not None and not self.ours(addr):
            self.later.patch(addr, code)
            return
        if not self._system or self.ours(addr):
            self.write(addr, code)
            return
        block = self._shown.setdefault(addr & -BLOCK, {})
        if addr in self._jumps:
            self._lay(addr, self._jumps.pop(addr))
        if self._leads(addr, code):
            block.pop(addr, None)
            self._jumps[addr] = self._reaching(addr, lambda: self._target.read(addr, len(code)))
            self._lay(addr, code)
            return
        there = block[addr][1] if addr in block else b""
        if len(there) < len(code):
            there = self._reaching(addr, lambda: self._target.read(addr, len(code)))
        if there == code:
            block.pop(addr, None)
        else:
            block[addr] = (code, there[:len(code)])

    def _leads(self, addr: int, code: bytes) -> bool:
        """True for a jump to pages of ours."""
        target = self._arch.decode(code.ljust(2 * self._arch.max_insn, b"\0"), addr).target
        return target is not None and self.ours(target)

    def _lay(self, addr: int, code: bytes) -> None:
        self._reaching(addr, lambda: self._target.write(addr, code))

    def _near(self, addr: int, size: int) -> Iterator[tuple[int, tuple[bytes, bytes]]]:
        for start in range(addr & -BLOCK, addr + size, BLOCK):
            yield from self._shown.get(start, {}).items()

    def _over(self, addr: int, data: bytes) -> bytes:
        out = bytearray(data)
        for place, (shown, _) in self._near(addr, len(data)):
            lo, hi = max(place, addr), min(place + len(shown), addr + len(data))
            if lo < hi:
                out[lo - addr:hi - addr] = shown[lo - place:hi - place]
        return bytes(out)

    def _reaching(self, addr: int, access: Callable[[], T]) -> T:
        """What `access` answers: in a whole machine by the current CPU's page tables, also where that must not access
        it as it stands."""
        if self._system:
            self._target.choose(self._threads.name)
        try:
            return access()
        except GuestFault:
            facts = facts_of(self._arch)  # QEMU shows what the CPU may access as it stands
            state = facts.kernel if addr >> self._arch.bits - 1 else facts.program
            if not self._system or state is None or state[0] not in self._threads.slots:
                raise
            with self._standing(*state):
                return access()

    @contextmanager
    def _standing(self, name: str, bits: int, value: int) -> Iterator[None]:
        """Bits of a register of the CPU's have this value meanwhile."""
        slot, order = self._threads.slots[name], self._arch.order
        self._target.choose(self._threads.name)
        was = self._target.register(slot.number)
        now = int.from_bytes(was, order.value) & ~bits | value
        self._target.set_registers([(slot.number, now.to_bytes(slot.size, order.value))])
        try:
            yield
        finally:
            self._target.set_registers([(slot.number, was)])
