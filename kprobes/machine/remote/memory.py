"""A remote guest's memory as the core (kprobes/core, which places and serves probes) sees it.

In a whole machine the core's breakpoints are not written: the stub's stop the guest, and reads only
show the core's bytes. For a kernel reads, compares and patches its own text, and takes a breakpoint
instruction there for its own. Only jumps to programs in the guest are really written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ...arch._base import Arch
from ...errors import GuestFault
from .deferred import DeferredText
from .layouts import facts_of
from .target import RemoteTarget
from .threads import RemoteThreads

T = TypeVar("T")
BLOCK = 4096  #: bytes of memory for which what is shown is looked up together
SMALL = 64  #: bytes: reads of code up to this are served from lines that are kept


class RemoteMemory:
    """Reads, writes and patches a guest's memory.

    Attributes:
        ours: (address) -> True in the library's own pages, where code is really written.
        deferred: changes of text while threads take turns, and what reads see meanwhile.
    """

    def __init__(
        self,
        target: RemoteTarget,
        threads: RemoteThreads,
        arch: Arch,
        ours: Callable[[int], bool],
        system: bool,
        code: Callable[[int], bool],
        deferred: DeferredText,
    ) -> None:
        """Prepare; nothing is read or written.

        Args:
            target: the stub.
            threads: the guest's threads, and their registers.
            arch: its architecture.
            ours: (address) -> True in the library's own pages.
            system: the guest is a whole machine.
            code: (address) -> True in code of loaded files, which may be in flash.
            deferred: takes changes of text while threads take turns.
        """
        self._target = target
        self._threads = threads
        self._arch = arch
        self.ours = ours
        self._system = system
        self._code = code
        self.deferred = deferred
        # block -> address -> (bytes that reads see, bytes in memory)
        self._shown: dict[int, dict[int, tuple[bytes, bytes]]] = {}
        # address of a jump that was written into a whole machine's text -> the bytes beneath it
        self._jumps: dict[int, bytes] = {}

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory as the core has left it: breakpoints included, and patches that are
        only shown or not written yet. The stub's own breakpoints are not seen.

        Up to SMALL bytes of a process's code may come from what was read since the guest stopped
        (RemoteTarget.code).

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: there is no such memory.
        """
        # a whole machine's CPUs, states and devices may show other bytes at any time
        kept = size <= SMALL and not self._system and self._code(addr)
        read = self._target.code if kept else self._target.read
        data = self._reaching(addr, lambda: read(addr, size))
        if self._shown:
            return self._over(addr, data)
        return self.deferred.overlay(addr, data) if self.deferred.active else data

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory.

        A breakpoint that is only shown there is forgotten: reads see `data`.

        Args:
            addr: address of the first byte.
            data: what is written.

        Raises:
            GuestFault: there is no such memory, or it is flash or ROM.
        """
        self._reaching(addr, lambda: self._target.write(addr, data))
        if (
            self._system
            and self._code(addr)
            and self._reaching(addr, lambda: self._target.read(addr, len(data))) != data
        ):
            raise GuestFault(
                "memory stays as it is when it is written: flash, or ROM",
                address=addr,
                access="write",
            )
        for place, (shown, _) in list(self._near(addr, len(data))):
            if place < addr + len(data) and addr < place + len(shown):
                del self._shown[place & -BLOCK][place]

    def forget(self, addr: int, size: int) -> None:
        """Show no patches in [addr, addr + size) any more: the guest has unmapped that memory.
        Nothing is written.

        Args:
            addr: address of the first byte, at the beginning of a page.
            size: bytes, whole pages.
        """
        for place, _ in list(self._near(addr, size)):
            del self._shown[place & -BLOCK][place]
        self._jumps = {at: was for at, was in self._jumps.items() if not addr <= at < addr + size}

    def patch(self, addr: int, code: bytes) -> None:
        """Replace guest code, or let reads show other code there.

        In a whole machine's text nothing is written, but for jumps to the library's own pages:
        reads only show `code`. A patch with the bytes that are in memory ends that. A jump that was
        written at `addr` is overwritten by the bytes beneath it first. While threads take turns, a
        change of text is kept in `deferred`. Everywhere else `code` is written.

        Args:
            addr: address of the first byte.
            code: the new bytes.

        Raises:
            GuestFault: there is no such memory.
        """
        if self.deferred.active and not self.ours(addr):
            self.deferred.patch(addr, code)
            return
        if not self._system or self.ours(addr):
            self.write(addr, code)
            return
        block = self._shown.setdefault(addr & -BLOCK, {})
        if addr in self._jumps:
            self._write_text(addr, self._jumps.pop(addr))
        if self._leads(addr, code):
            block.pop(addr, None)
            self._jumps[addr] = self._reaching(addr, lambda: self._target.read(addr, len(code)))
            self._write_text(addr, code)
            return
        there = block[addr][1] if addr in block else b""
        if len(there) < len(code):
            there = self._reaching(addr, lambda: self._target.read(addr, len(code)))
        if there == code:
            block.pop(addr, None)
        else:
            block[addr] = (code, there[: len(code)])

    def _leads(self, addr: int, code: bytes) -> bool:
        """Return True if `code`, placed at `addr`, is a jump to the library's own pages."""
        target = self._arch.decode(code.ljust(2 * self._arch.max_insn, b"\0"), addr).target
        return target is not None and self.ours(target)

    def _write_text(self, addr: int, code: bytes) -> None:
        """Write code into a whole machine's text, where most patches are only shown.

        Args:
            addr: address of the first byte.
            code: the bytes.
        """
        self._reaching(addr, lambda: self._target.write(addr, code))

    def _near(self, addr: int, size: int) -> Iterator[tuple[int, tuple[bytes, bytes]]]:
        """Yield the patches that are only shown, in the 4 KiB blocks that [addr, addr + size)
        touches.

        Yields:
            (address, (bytes that reads see, bytes in memory)).
        """
        for start in range(addr & -BLOCK, addr + size, BLOCK):
            yield from self._shown.get(start, {}).items()

    def _over(self, addr: int, data: bytes) -> bytes:
        """Return `data`, read at `addr`, with the patches over it that reads are to see."""
        out = bytearray(data)
        for place, (shown, _) in self._near(addr, len(data)):
            lo, hi = max(place, addr), min(place + len(shown), addr + len(data))
            if lo < hi:
                out[lo - addr : hi - addr] = shown[lo - place : hi - place]
        return bytes(out)

    def _reaching(self, addr: int, access: Callable[[], T]) -> T:
        """Access memory by calling `access`, in the CPU state in which that succeeds, and return
        its result.

        A whole machine's stub goes by the current CPU's page tables, and by what that CPU may
        access in its present state. Where the access fails, it is tried once more with the CPU in
        the state (kernel's or program's) in which it may access `addr`. For a process `access` is
        called once.

        Args:
            addr: address that is accessed.
            access: () -> any value; raises GuestFault where it fails.

        Raises:
            GuestFault: from the last call of `access`.
        """
        if self._system:
            self._target.choose(self._threads.name)
        try:
            return access()
        except GuestFault:
            facts = facts_of(self._arch)
            state = facts.kernel if addr >> self._arch.bits - 1 else facts.program
            if not self._system or state is None or state[0] not in self._threads.slots:
                raise
            with self._standing(*state):
                return access()

    @contextmanager
    def _standing(self, name: str, bits: int, value: int) -> Iterator[None]:
        """Set bits of one of the current CPU's registers inside a with block, and put the register
        back at its end.

        Args:
            name: the register, as the stub calls it.
            bits: mask of the bits.
            value: what they are set to, in their places.
        """
        slot = self._threads.slots[name]
        order = self._arch.order
        self._target.choose(self._threads.name)
        was = self._target.register(slot.number)
        now = int.from_bytes(was, order.value) & ~bits | value
        self._target.set_registers([(slot.number, now.to_bytes(slot.size, order.value))])
        try:
            yield
        finally:
            self._target.set_registers([(slot.number, was)])
