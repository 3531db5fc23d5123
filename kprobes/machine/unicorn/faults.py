"""Guest faults: what an interrupt or the engine's error stands for, and where it was.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. A displaced instruction is the copy of a probed one that is executed in memory
of the library's: in a slot or a detour.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import unicorn
from unicorn import unicorn_const as const

from ...errors import GuestFault, GuestHalted
from ...symbols import Symbols
from .._base import Fault
from .bounds import Bounds
from .cpu import UnicornCpu
from .delayslots import DelaySlots
from .engine import ERRORS, MEM
from .guests.guest import FETCHED
from .process import LinuxProcess
from .runstate import RunState
from .stackandexit import StackAndExit
from .starts import Starts
from .stubs import Stubs

HALT = "halt"  #: access of a Fault: the guest waits for an interrupt

_WRITES = (const.UC_MEM_WRITE_UNMAPPED, const.UC_MEM_WRITE_PROT)
_FETCHES = (const.UC_MEM_FETCH_UNMAPPED, const.UC_MEM_FETCH_PROT)
#: functions of C libraries that a program's first instructions call
_STARTS = ("__libc_start_main", "__libc_init", "__uClibc_main")


def _is_of_a_store(error: int) -> bool:
    """Tell whether an error of the engine's is that of a store."""
    return ERRORS.get(error, ("", 0))[0] == "write"


class FaultReports:
    """Finds out what a fault was, and reports it to the core."""

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        *,
        starts: Starts,
        bounds: Bounds,
        delay_slots: DelaySlots,
        stubs: Stubs,
        symbols: Symbols,
        stack_and_exit: StackAndExit,
        process: LinuxProcess,
    ) -> None:
        """Prepare; nothing is reported.

        Args:
            cpu: registers and memory.
            state: of the guest's runs; knows the core.
            starts: starts the engine, to execute a failed instruction once more.
            bounds: of runs; such executions are not counted.
            delay_slots: makes branches wait again.
            stubs: knows imports, for messages.
            symbols: names addresses, for messages.
            stack_and_exit: knows where thread-local storage would be.
            process: knows whether thread-local storage is set up.
        """
        self._cpu = cpu
        self._state = state
        self._starts = starts
        self._bounds = bounds
        self._delay_slots = delay_slots
        self._stubs = stubs
        self._symbols = symbols
        self._stack_and_exit = stack_and_exit
        self._process = process
        # failed accesses of an instruction that is executed again
        self._seen: list[tuple[str, int]] = []
        self._telling = MEM(self._tell)

    def report(self, pc: int, fault: Fault) -> int:
        """Report a fault at `pc` to the core.

        A trap that the CPU has taken itself is undone first (TriCore). Where no handler handles the
        fault, the guest is left at the instruction's original address, which may be in a delay slot
        (DelaySlots.pending becomes True).

        Args:
            pc: address of the instruction.
            fault: what has failed.

        Returns:
            The address where the guest goes on, as a handler has handled the fault.

        Raises:
            GuestHalted: no handler has handled it, and `fault.access` is HALT.
            GuestFault: no handler has handled another one.
            BaseException: a handler has raised it.
        """
        if self._cpu.guest.interrupts.taken is not None:
            pc, fault = self._undo_trap(pc, fault)
        on, home = self.ask(pc, fault)
        if on is not None:
            return on
        # a displaced instruction, or one in the core's pages, is home by now
        self._delay_slots.pending = True
        self.fail(home, fault)

    def ask(self, pc: int, fault: Fault) -> tuple[int | None, int]:
        """Report a fault at `pc` to the core, which asks handlers. What they raise is raised; the
        guest is then where they have sent it.

        If no handler handles a fault in a displaced instruction, the guest is put back to that
        instruction's original address. A branch whose delay slot that instruction is waits again,
        as without the probe.

        Args:
            pc: address of the instruction, in a slot where it is a displaced one.
            fault: what has failed.

        Returns:
            (the address where the guest goes on, mode bits included, or None where no handler has
            handled the fault; the address where the guest is then, without mode bits, or `pc` where
            the fault was handled).
        """
        m, sink, regs = self._cpu, self._state.sink, self._cpu.regs
        handled, home, waits = False, None, None
        regs.at(pc)
        try:
            if sink is not None:
                home, waits = sink.home_of(pc), sink.pending_target(regs)
                handled = sink.fault(regs, fault)
        finally:
            moved = regs.target
            regs.at(None)
            if moved is not None:
                m.write_pc(moved)
        if handled:
            return moved if moved is not None else m.arch.pointers.same_mode(regs, pc), pc
        if home is None or moved is None:
            return None, pc if moved is None else moved & ~m.arch.pointers.mode_bits
        m.write_pc(m.arch.pointers.same_mode(regs, home))
        if waits is not None:
            with self._bounds.counting_paused():
                self._delay_slots.wait(home, waits)
        return None, home

    def go_home(self) -> None:
        """Move pc from a displaced instruction, which is not executed, back to its original
        address, and have the core give up the hit.

        A branch whose delay slot that instruction is waits again, as without the probe, and
        DelaySlots.pending becomes True.
        """
        cpu, sink, regs = self._cpu, self._state.sink, self._cpu.regs
        assert sink is not None
        pc = cpu.read_pc()
        regs.at(pc)
        home, waits = sink.home_of(pc), sink.pending_target(regs)
        sink.displaced_left(regs, pc)
        regs.at(None)
        assert home is not None
        cpu.write_pc(cpu.arch.pointers.same_mode(regs, home))
        if waits is not None:
            with self._bounds.counting_paused():
                self._delay_slots.wait(home, waits)
            self._delay_slots.pending = True

    def _undo_trap(self, pc: int, fault: Fault) -> tuple[int, Fault]:
        """Put the CPU back before an instruction whose trap the CPU has taken itself (TriCore):
        registers, by code that returns from the trap and is executed in the exit page, and pc.

        Args:
            pc: where the CPU is.
            fault: what the engine has reported.

        Returns:
            (address of the instruction, the fault that it stands for); (pc, fault) where no trap
            was taken. A fault that is no failed fetch stays what it is, but has no address, and its
            text says that it was here or shortly before.
        """
        m, state = self._cpu, self._state
        taken = (
            m.guest.interrupts.taken(m.regs, pc) if m.guest.interrupts.taken is not None else None
        )
        if taken is None:
            return pc, fault
        number, home, undo = taken
        if undo:
            with self._bounds.counting_paused():
                m.memory.patch(state.exit, undo)
                self._starts.start_outside_of_run(state.exit, home)
                m.memory.fill(state.exit, len(undo))
        m.write_pc(home)
        # the engine notices some failed accesses only instructions later
        if fault.access != "fetch":
            return home, Fault(
                access=fault.access,
                trapnr=fault.trapnr,
                text=f"{fault.text}, here or shortly before",
            )
        return home, self.interrupt(number, home)

    def fail(self, pc: int, fault: Fault) -> NoReturn:
        """Raise the GuestFault of a fault that no handler has handled.

        Its text names the import, the copied breakpoint or whatever else the fault came from.

        Args:
            pc: address of the instruction; the original one of an instruction in a slot.
            fault: what has failed.

        Raises:
            GuestHalted: `fault.access` is HALT.
            GuestFault: in all other cases.
        """
        m, state = self._cpu, self._state
        if fault.access == HALT:
            where = self._symbols.describe(pc)
            raise GuestHalted(pc=pc, symbol=None if where.startswith("0x") else where)
        if pc in self._stubs.imports:
            name = self._stubs.imports[pc]
            serve = (
                f"m.bind({name!r}, function) serves it, "
                "m.load_module() brings a library that has it"
            )
            command = "--preload LIBRARY brings a library that has it"
            if self._process.missing(name):
                serve = "m.process() sets up thread-local storage"
            elif name in _STARTS:
                command = (
                    "it starts a dynamically linked program: --qemu runs it with its libraries, "
                    "--call 'NAME(ARG, ...)' one function of it"
                )
                serve = (
                    "it starts a dynamically linked program: QemuMachine.user() runs it with its "
                    "libraries, m.call() one function of it"
                )
            raise GuestFault(
                f"call of the unresolved import {name}",
                address=pc,
                pc=pc,
                access="fetch",
                symbol=name,
                serve=serve,
                command=command,
            )
        # a copied patch is an instruction that traps, or leads to where there is none
        accessed = fault.access in ("read", "write", "arithmetic")
        copied = "" if accessed or state.sink is None else state.sink.copied_patch(pc)
        if copied:
            raise GuestFault(
                f"{fault.text or fault.access}: {copied}",
                address=pc,
                pc=pc,
                access=fault.access,
                number=fault.number,
                serve="register probes when the guest has moved its text",
            )
        if fault.access == "fetch" and pc & -m.memory.page_size == state.exit:
            raise GuestFault(
                "the guest ran into the library's exit page", address=pc, pc=pc, access="fetch"
            )
        where = self._symbols.describe(pc)
        at = f" at {fault.address:#x}" if fault.address is not None and fault.address != pc else ""
        if not self._process.pointer:
            at += self._without_threads(fault)
        raise GuestFault(
            f"{fault.text or fault.access}{at}",
            address=pc if fault.address is None else fault.address,
            pc=pc,
            access=fault.access,
            symbol=None if where.startswith("0x") else where,
            number=fault.number,
        )

    def _without_threads(self, fault: Fault) -> str:
        """Return what a fault's message adds where the guest may lack thread-local storage; "": the
        fault has another cause.

        It may lack it where the address of a failed load or store is near the thread pointer, or
        is not known and an image uses such storage.

        Args:
            fault: what has failed.
        """
        uses_it = self._stack_and_exit.thread_local
        if fault.address is None:
            if uses_it and fault.access in ("read", "write"):
                return " (its thread-local storage is not set up; m.process() does it)"
            return ""
        if fault.access == "fetch" or not self._stack_and_exit.near_thread_pointer(fault.address):
            return ""
        if uses_it:
            return ", where thread-local storage would be: it is not set up; m.process() does it"
        return (
            ", where the thread pointer points; if this is thread-local storage and no null "
            "pointer, m.process() sets it up"
        )

    def interrupt(self, number: int, pc: int) -> Fault:
        """Return the fault that an interrupt of the guest's stands for.

        Where the number may stand for a failed access, the instruction is executed once more to
        find out, and its effects are undone.

        Args:
            number: the engine's number of the interrupt.
            pc: address of the instruction that has raised it.
        """
        guest = self._cpu.guest
        meanings = guest.faults
        if number in meanings.ambiguous and (failed := self._failed_access(pc)) is not None:
            return Fault(access=failed[0], address=failed[1], text=f"invalid memory {failed[0]}")
        if number in meanings.arithmetic:
            return Fault(
                access="arithmetic", trapnr=8, number=number, text="division or arithmetic error"
            )
        if number in meanings.undefined:
            return Fault(access="undefined", trapnr=4, number=number, text="undefined instruction")
        if number in meanings.breakpoints:
            return Fault(
                access="trap",
                trapnr=5,
                number=number,
                text="breakpoint instruction of the guest's own",
            )
        if number in meanings.fetches:
            text = (
                "unaligned instruction fetch" if number >= FETCHED else "instruction fetch refused"
            )
            return Fault(access="fetch", address=pc, number=number, text=text)
        if number in meanings.unaligned:
            writes = meanings.writes is not None and meanings.writes(
                self._cpu.engine.read(pc, 4) or b""
            )
            return Fault(
                access="write" if writes else meanings.unaligned[number],
                trapnr=7,
                number=number,
                text="unaligned access",
            )
        text = f"interrupt {number} (no operating system)"
        return Fault(access="interrupt", trapnr=5, number=number, text=text)

    def settle_at_failed_instruction(self, error: int) -> int:
        """Return the address of the instruction whose error has ended the run, and set pc to it.
        Where no failed access was noted (RunState.failed), it is the engine's pc.

        If the instruction is in a delay slot, the branch before it is pending again afterwards. If
        it is a store whose failure the engine has noticed only some instructions later
        (Faults.late_stores), the registers are set back to what they were at the store.

        Args:
            error: the engine's error number, not 0.
        """
        m, failed = self._cpu, self._state.failed
        if failed is None:
            return m.read_pc()
        if m.guest.faults.late_stores:
            return self._behind_late_store(error, failed[0])
        at, pc = m.read_pc(), failed[0]
        m.write_pc(m.arch.pointers.same_mode(m.regs, pc))
        # a store failed, and its branch was taken all the same, or not
        if at != pc and self._delay_slots.holds(pc):
            with self._bounds.counting_paused():
                self._delay_slots.leave()
                m.write_pc(pc)
                self._delay_slots.wait(pc, at)
            self._state.failed = failed
        return pc

    def of_late_store(self, error: int) -> int:
        """Return the error that has ended a run: that of a store that was noted, if it has failed
        for good.

        Such a store's failure is noticed late (Faults.late_stores), and the engine may have
        forgotten it by now: something behind the store has failed, or was served.

        Args:
            error: the engine's error number; 0: none.

        Returns:
            The engine's error number of the store; `error` itself where it is that of a store
                already, where no store was noted, or where another hook has had the store done:
                then the note is forgotten.
        """
        m, state = self._cpu, self._state
        if _is_of_a_store(error):
            return error
        if state.failed is not None and not m.engine.may_write(state.failed[1]):
            unmapped = m.engine.read(state.failed[1], 1) is None
            return int(const.UC_ERR_WRITE_UNMAPPED if unmapped else const.UC_ERR_WRITE_PROT)
        state.forget_store()
        return error

    def _behind_late_store(self, error: int, pc: int) -> int:
        """Set registers and pc back to those at the store that was noted, if the engine's error is
        that of a store.

        The note of the store is forgotten (RunState.forget_store()).

        Args:
            error: the engine's error number.
            pc: address of the store, without mode bits.

        Returns:
            The address of the instruction that has ended the run: `pc` where registers were set
            back, else the engine's pc.
        """
        m, state = self._cpu, self._state
        kept = state.failed_registers
        if kept is None:
            return m.read_pc()
        stores = _is_of_a_store(error)
        if stores:
            m.engine.restore(kept)
            m.write_pc(m.arch.pointers.same_mode(m.regs, pc))
        state.forget_store()
        return pc if stores else m.read_pc()

    def error(self, error: int, pc: int) -> Fault:
        """Return the fault that an error of the engine stands for.

        To find the address of a failed access, the instruction may be executed once more.

        Args:
            error: the engine's error number, not 0.
            pc: address of the instruction that has failed, without mode bits: in a slot where it is
                a displaced one.
        """
        m = self._cpu
        access, signal = ERRORS.get(error, ("engine", 11))
        # else a part of it, or EXECUTE's target
        itself = access == "fetch" and (
            m.guest.blocks.fetch_fault_kills or not m.memory.executable(pc)
        )
        address = None
        if itself:
            address = pc
        elif access in ("read", "write", "fetch"):
            address = self._fault_address(pc, access)
        return Fault(
            access=access, address=address, trapnr=signal, text=str(unicorn.UcError(error))
        )

    def _fault_address(self, pc: int, access: str) -> int | None:
        """Find out the address whose access has failed, and return it; None: it is not known.

        The engine does not say it: the instruction is executed once more under a hook that does,
        and pc is put back. With delay slots nothing may be executed again, nor may a store that the
        engine would notice late: the address was noted when the access failed. A fetch's is not
        known then.

        Args:
            pc: address of the instruction.
            access: what has failed: "read", "write" or "fetch".
        """
        m = self._cpu
        failed = self._state.failed
        if m.guest.runs.settle or (
            m.guest.faults.late_stores and access == "write" and failed is not None
        ):
            return (
                None
                if failed is None or access == "fetch"
                else m.memory.windows.shown(failed[1], m.regs)
            )
        seen = self._execute_again(pc)
        m.stay(pc)
        return m.memory.windows.shown(seen[0][1], m.regs) if seen else None

    def _failed_access(self, pc: int) -> tuple[str, int] | None:
        """Find out whether an ambiguous interrupt stands for a failed access, and for which one.

        The instruction is executed once more under the engine's virtual TLB, and its effects are
        undone. Memory cannot be written meanwhile; a write that fails only for that does not count.

        Args:
            pc: address of the instruction.

        Returns:
            ("read", "write" or "fetch", its address) of the first one; None: the interrupt stands
            for something else.
        """
        m, state = self._cpu, self._state
        saved, trap, services = m.engine.save(), state.trap, state.services
        # what comes after a store that fails is executed, too
        state.trial = True
        state.trap = None
        state.services = {}
        m.engine.uc.ctl_set_tlb_mode(const.UC_TLB_VIRTUAL)
        try:
            with self._sealed() as sealed:
                seen = self._execute_again(pc)
        finally:
            m.engine.uc.ctl_set_tlb_mode(const.UC_TLB_CPU)
            state.trial = False
            state.trap = trap
            state.services = services
            m.engine.restore(saved)
            m.engine.discard(saved)
        return next(
            (
                s
                for s in seen
                if not (
                    s[0] == "write"
                    and any(start <= s[1] < start + size for start, size, _ in sealed)
                )
            ),
            None,
        )

    def _execute_again(self, pc: int) -> list[tuple[str, int]]:
        """Execute an instruction that fails once more, and return its failed accesses.

        The CPU's state is changed by what the instruction does before it fails. The instruction is
        not counted, and an interrupt that it raises is forgotten (RunState.interrupt).

        Args:
            pc: address of the instruction.

        Returns:
            ("read", "write" or "fetch", address) of each, in their order.
        """
        m = self._cpu
        seen: list[tuple[str, int]] = []
        self._seen = seen
        hook = m.engine.hook(const.UC_HOOK_MEM_INVALID, self._telling)
        try:
            insn = m.arch.decode(m.engine.read(pc, m.arch.max_insn) or b"", pc)
            # it has been counted already
            with self._bounds.counting_paused(), self._state.executing():
                self._starts.start_outside_of_run(m.arch.pointers.same_mode(m.regs, pc), insn.next)
        finally:
            # where the failure is noticed late, this executed an innocent instruction
            self._state.interrupt = None
            m.engine.unhook(hook)
        return seen

    def _tell(
        self, _uc: int, access: int, address: int, _size: int, _value: int, _user: int
    ) -> bool:
        """Note a failed access of an instruction that is executed again: the engine's callback.
        Return False: the access is to fail.

        Args:
            _uc: not used.
            access: one of unicorn's UC_MEM_ constants.
            address: of the access.
            _size: not used.
            _value: not used.
            _user: not used.
        """
        kind = "read"
        if access in _WRITES:
            kind = "write"
        elif access in _FETCHES:
            kind = "fetch"
        self._seen.append((kind, address))
        return False

    @contextmanager
    def _sealed(self) -> Iterator[list[tuple[int, int, int]]]:
        """Forbid the guest all writes of memory inside a with block; afterwards the permissions are
        put back.

        Yields:
            (start, bytes, permissions) of the ranges that could be written before.
        """
        m = self._cpu
        write = const.UC_PROT_WRITE
        ranges = [
            (start, end + 1 - start, perms)
            for start, end, perms in m.engine.regions()
            if perms & write
        ]
        for start, size, perms in ranges:
            m.engine.uc.mem_protect(start, size, perms & ~write)
        try:
            yield ranges
        finally:
            for start, size, perms in ranges:
                m.engine.uc.mem_protect(start, size, perms)
