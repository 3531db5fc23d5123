"""Finds the access behind a signal: a fetch, a read or a write, and its address.

siginfo_t does not tell a read from a write. So the instruction is executed again, in an engine of
this process, which gets the guest's registers and, page by page, the memory that it accesses.
Nothing that it does reaches the guest. Loads and stores need not be decoded here.
"""

from __future__ import annotations

from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, KprobeError, Unsupported
from ...regs import Regs
from .._base import Fault
from ..unicorn.machine import UnicornMachine
from .target import RemoteTarget

SIGINFO = 128  #: bytes of siginfo_t; QEMU refuses to send more
TRIES = 64  #: the most pages that the engine is given for one instruction
#: The most instructions executed again: a fault may be in a branch's delay slot, or in the target
#: of an EXECUTE.
LONGEST = 4
SIGSEGV = 11
#: signal number (12: SIGSYS) -> Fault.access
FAULTS = {
    4: "undefined",
    5: "trap",
    7: "read",
    8: "arithmetic",
    10: "read",
    SIGSEGV: "read",
    12: "trap",
}


class Accesses:
    """Finds out what the instruction of a remote guest did that got a signal: a fetch, a read or a
    write, and at which address.

    The engine in which instructions are executed again is made when the first one is.
    """

    def __init__(self, arch: Arch, target: RemoteTarget) -> None:
        """Prepare; no engine is made yet.

        Args:
            arch: the guest's architecture.
            target: the stub; its siginfo and the guest's memory are read.
        """
        self._arch = arch
        self._target = target
        self._read = target.read
        self._engine: UnicornMachine | None = None

    def fault(self, signal: int, regs: Regs, pc: int) -> Fault:
        """Return what the instruction at `pc` has done to get a signal.

        Nothing is reported here, and the guest does not run: where it is not clear whether memory
        was read or written, the instruction is executed again in an engine of this process. What
        that does not tell counts as a read, and so does every access that got a SIGBUS.

        Args:
            signal: the signal's number, as the stub says it: a key of FAULTS.
            regs: registers of the thread that has stopped.
            pc: address of the instruction.

        Returns:
            The fault: its `access` is "fetch", "read", "write", "undefined", "trap" or
            "arithmetic"; its `address` is the address accessed (of a "fetch" always `pc`), None
            where the stub does not tell; its `trapnr` and `number` are `signal`.
        """
        address, access = self._address(signal), FAULTS[signal]
        if access == "read" and (address == pc or not self._readable(pc)):
            address, access = pc, "fetch"
        elif signal == SIGSEGV and address is not None and self._readable(address):
            access = "write"  # to read-only memory
        elif signal == SIGSEGV and address is not None:
            access = self._kind(regs, pc, address) or access
        return Fault(
            access=access, address=address, trapnr=signal, number=signal, text=f"signal {signal}"
        )

    def _readable(self, addr: int) -> bool:
        """Return True where guest memory can be read at `addr`."""
        try:
            return bool(self._read(addr, 1))
        except GuestFault:
            return False

    def _address(self, signal: int) -> int | None:
        """Ask the stub for the address that a fault is about (si_addr of siginfo_t), and return it.

        Args:
            signal: the signal's number.

        Returns:
            The address. None for every signal but SIGBUS and SIGSEGV (7, 10, 11), and where the
            stub does not show siginfo, or shows too little of it.
        """
        if "qXfer:siginfo:read" not in self._target.features or signal not in (7, 10, 11):
            return None
        info = self._target.transfer("siginfo", chunk=SIGINFO)
        word = self._arch.bits // 8
        at = 16 if word == 8 else 12
        return (
            int.from_bytes(info[at : at + word], self._arch.order.value)
            if len(info) >= at + word
            else None
        )

    def _kind(self, regs: Regs, pc: int, address: int) -> str | None:
        """Find out by execution in the engine how the instruction at `pc` accessed unmapped memory.

        The first call makes the engine.

        Args:
            regs: registers of the thread that has stopped.
            pc: address of the instruction.
            address: address of the access.

        Returns:
            "read" or "write"; None where the engine does not tell: it has no such architecture, it
            fails in another way, or guest memory that it needs cannot be read.
        """
        try:
            m = self._engine = self._engine or UnicornMachine.from_code(b"", arch=self._arch.name)
            return self._replay(m, regs, pc, address)
        except KprobeError:  # there is no such engine, or it does not take such a state
            return None

    def _replay(self, m: UnicornMachine, regs: Regs, pc: int, address: int) -> str | None:
        """Execute the guest's instruction in the engine, again and again, until it fails in the
        page of `address`.

        Where it fails at another page first, that page of guest memory is copied into the engine
        before the next try, 64 pages at most (TRIES). Copied pages are unmapped in the engine at
        the end. A failure in a page that was copied is taken for the one looked for, too. Nothing
        is written to the guest.

        Args:
            m: the engine.
            regs: the guest's registers.
            pc: address of the instruction.
            address: address of the access that has failed in the guest.

        Returns:
            "read" or "write"; None where the engine tells no address, the access to that page is
            another one, or 64 pages were not enough.

        Raises:
            KprobeError: a page of guest memory cannot be read, the engine refuses the state, or
                the instruction is executed without failing.
        """
        given: dict[int, bytes] = {}
        values = {name: regs[name] for name in regs.names if name != self._arch.regs.pc}
        start = self._arch.pointers.same_mode(regs, pc)
        try:
            for _ in range(TRIES):
                found = self._once(m, values, start)
                if found is None or found.address is None:
                    return None
                page = found.address & -m.page_size
                if page == address & -m.page_size or page in given:
                    return found.access if found.access in ("read", "write") else None
                given[page] = self._read(page, m.page_size)
                m.map(page, m.page_size)
                self._fill(m, given)
            return None
        finally:
            for page in given:
                m.unmap(page, m.page_size)

    def _fill(self, m: UnicornMachine, given: dict[int, bytes]) -> None:
        """Write copies of the guest's pages into the engine: an earlier try may have changed them.

        Args:
            m: the engine.
            given: address of a page -> its bytes.
        """
        for page, data in given.items():
            m.write(page, data)

    def _once(self, m: UnicornMachine, values: dict[str, int], start: int) -> GuestFault | None:
        """Execute the instruction at `start` in the engine, and at most three behind it, and return
        how one of them failed.

        Args:
            m: the engine; the method sets its registers.
            values: the guest's registers: name -> value. Those that the engine refuses are left
                out.
            start: address of the instruction, mode bits included.

        Returns:
            The fault; None: the engine has stopped without one.

        Raises:
            GuestTimeout: all of them are executed, and none has failed.
            KprobeError: the engine refuses the state.
        """
        for name, value in values.items():
            with suppress(KprobeError):  # i386: selectors of tables that are the system's
                m.regs[name] = value
        try:
            try:
                m.run(start, max_insns=LONGEST)
            except Unsupported:  # SPARC's engine does not count
                m.run(start, until=start + LONGEST * self._arch.insn_align, timeout=1)
        except GuestFault as fault:
            return fault
        return None
