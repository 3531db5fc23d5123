"""What the engine reports: breakpoints, which are the sink's, and interrupts of the guest's own.

There is one hook per channel, added once through ctypes and never raising: an exception is parked, the run stopped, and the
run raises it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import unicorn
from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import AlreadyRegistered, Unsupported
from ...regs import Regs
from .._base import Sink
from .areas import Areas
from .engine import INSN, INTR, INVALID, TLB
from .guests.guest import HOOK as BY_HOOK
from .guests.guest import INTR as BY_INTERRUPT
from .guests.guest import Guest, SystemCall
from .owner import Owner
from .registers.cells import Cell, find_mode
from .starts import Starts
from .stops import Stops
from .stubs import Stubs

NONE = 0xFFFFFFFF  # no exception is under way


class Reports(Areas):
    """A processor that reports to a sink."""

    starts: Starts
    owner: Owner | None
    stops: Stops
    stubs: Stubs

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self.interrupt_handler: Callable[[Regs, int], bool] | None = None
        self._hooks: list[int] = []
        self._served: Callable[[int], None] | None = None  # see Interrupts.served
        with suppress(Unsupported):  # where registers are not found a second exception is a double fault: nothing else is lost
            self._served = None if guest.interrupts.served is None else guest.interrupts.served.find(self.engine)[1]

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink`; None: to nobody. AlreadyRegistered where another one listens."""
        if sink is not None and self.sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="use that one, or close it first")
        self.sink = sink
        self.trap = None if sink is None else sink.trap
        self.services = {} if sink is None else sink.services
        if self.owner is not None and sink is not None:
            self._add_hooks()
            self.owner.shadow()
        elif self.owner is not None:
            self._remove_hooks()

    def is_breakpoint(self, number: int | None = None) -> bool:
        """For an engine's owner who hooks interrupts (with their number) or invalid instructions: True where it is the library's own.

        Such a hook is to leave it alone. It has to be there before Kprobes is made: then the engine calls it before ours, and
        pc is still at the breakpoint.
        """
        guest, sink = self.guest, self.sink
        return sink is not None and number in (None, guest.breakpoint.number) and sink.stops(self.read_pc() - guest.breakpoint.bias)

    def stop_at(self, addr: int) -> None:
        """Report a breakpoint in memory; most arrive by themselves."""
        if self.guest.breakpoint.channel == BY_HOOK:
            self.stops.add(addr)

    def release(self, addr: int) -> None:
        """Undo stop_at()."""
        if self.guest.breakpoint.channel == BY_HOOK:
            self.stops.remove(addr)

    def _add_hooks(self) -> None:
        add = self.engine.hook
        self._hooks = [add(const.UC_HOOK_INTR, INTR(self._interrupt_callback()))]
        if self.guest.breakpoint.channel != BY_INTERRUPT:
            self._hooks.append(add(const.UC_HOOK_INSN_INVALID, INVALID(self._invalid_callback())))
        for insn, call in self.guest.calls.unreported.items() if self.owner is None else ():
            self._hooks.append(add(const.UC_HOOK_INSN, INSN(self._system_call_callback(call)), insn=insn))
        if self.guest.memory.virtual_tlb and self.owner is None:
            self._hooks.append(add(const.UC_HOOK_TLB_FILL, TLB(self._fill_callback())))

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            self.engine.unhook(hook)
        self._hooks = []
        if self.owner is not None:
            self.owner.unshadow()

    def _fill_callback(self) -> Callable[[int, int, int, Any, int], bool]:
        """The hook of the virtual TLB: the engine itself makes an entry for one kind of access, which evicts the other's.

        Stores through an entry that may be executed are slow, as they look for translations: only code gets such. What
        is not mapped or not allowed still fails, at the access.
        """
        is_code, fetch, code, data = self.is_code, const.UC_MEM_FETCH, const.UC_PROT_ALL, const.UC_PROT_READ | const.UC_PROT_WRITE

        def on_miss(_uc: int, address: int, kind: int, entry: Any, _user: int) -> bool:
            entry[0].paddr = address
            entry[0].perms = code if kind == fetch or is_code(address) else data
            return True

        return on_miss

    def _interrupt_callback(self) -> Callable[[int, int, int], None]:
        """The engine's interrupt hook. It never raises: what is raised inside is parked.

        The hottest code of the library: registers are moved by the engine's own calls with prebuilt arguments, and the
        report's pc is put into Regs directly.
        """
        regs, bias = self._regs, self.guest.breakpoint.bias
        ours = self.guest.breakpoint.number if self.guest.breakpoint.channel == BY_INTERRUPT else -1
        cell = self.cells.get(self.arch.regs.pc)
        pc_word = cell if cell is not None else _Register(self.read_pc, self.write_pc)
        view, index, mask, write_pc = pc_word.view, pc_word.index, self.arch.mask, self.write_pc
        modes = self.guest.pc.modes if cell is not None else 0
        mode, beyond, plain = self._mode_word(cell), ~mask, mask & ~modes
        note = self.starts.seen.append if self.guest.interrupts.lost_pc else None

        def on_interrupt(_uc: int, number: int, _user: int) -> None:
            try:
                pc = view[index]
                if number == ours and self.trap is not None:
                    regs.reported = pc = pc - bias
                    if note is not None:
                        note(pc)
                    if self.trap(regs):
                        target = regs.target
                        if target is None:
                            view[index] = pc
                        elif target & beyond or (modes and target & modes != mode[0]):
                            write_pc(target)
                        else:
                            view[index] = target & plain
                        regs.reported = regs.target = None
                        return
                    pc += bias
                self._unclaimed(number, pc)
            except BaseException as error:
                if regs.target is not None:
                    self.write_pc(regs.target)
                self.park(error)
            regs.reported = regs.target = None

        return on_interrupt

    def _system_call_callback(self, call: SystemCall) -> Callable[[int, int], None]:
        """The hook of a system call that the engine does not report as an interrupt. It adds the instruction's size to pc afterwards."""

        def on_system_call(_uc: int, _user: int) -> None:
            try:
                behind = self.read_pc() + call.size
                if call.effect is not None:
                    call.effect(self._regs, behind)
                self._unclaimed(call.number, behind)
            except BaseException as error:
                if self._regs.target is not None:
                    self.write_pc(self._regs.target)
                self.park(error)
            self._regs.reported = self._regs.target = None
            self.write_pc(self.read_pc() - call.size)

        return on_system_call

    def _mode_word(self, pc: Cell | None) -> memoryview | bytes:
        """Where the present mode is, in the shape of a view. Unknown modes are none that a target has."""
        bit, flags = self.guest.pc.mode_bit, self.arch.regs.flags
        if pc is None or bit is None or flags is None:
            return b"\0"
        return find_mode(self.engine, self.arch.name, pc, self.register(self.arch.regs.pc), self.register(flags), bit) or b"\2"

    def _invalid_callback(self) -> Callable[[int, int], bool]:
        """The engine's invalid-instruction hook, where breakpoints arrive that way. True: go on at pc."""
        regs, bias, mask, step = self._regs, self.guest.breakpoint.bias, self.arch.mask, self.arch.insn_align
        cell = self.cells.get(self.arch.regs.pc) if self.guest.pc.next else None
        words = _Register(self.read_pc, self.write_pc) if cell is None else cell.onward(2)  # pc, next pc

        def on_invalid(_uc: int, _user: int) -> bool:
            try:
                pc = words[0] - bias
                if pc == self.starts.end:
                    return False  # an error ends this run alone, a stop would end the outer ones as well
                regs.reported = pc
                if self.trap is not None and self.trap(regs):
                    target = regs.target
                    if target is None:
                        target = pc
                    words[0] = target & mask
                    words[1] = target + step & mask
                    regs.reported = regs.target = None
                    return True
                if self.stubs.serve(pc):
                    regs.reported = regs.target = None
                    return True
            except BaseException as error:
                if regs.target is not None:
                    self.write_pc(regs.target)
                self.park(error)
                regs.reported = regs.target = None
                return True
            regs.reported = regs.target = None
            return False

        return on_invalid

    def _unclaimed(self, number: int, pc: int) -> None:
        """An interrupt that is not ours: the guest's own."""
        # with a next pc that is what pc shows: of the guest's end, for a fault in the delay slot of the jump there
        if self.starts.again or (pc - self.guest.breakpoint.bias == self.starts.end and not self.guest.pc.next):
            self.engine.stop()
            return
        if self._served is not None:
            self._served(NONE)
        if self.guest.interrupts.renumber is not None:
            number = self.guest.interrupts.renumber(number, pc)
        stub = pc - self.guest.breakpoint.bias
        if number == self.guest.breakpoint.number and ((stub in self.services and self.send_again()) or self.stubs.serve(stub)):
            return
        biases = self.guest.interrupts.mode_bias.get(self.arch.pointers.same_mode(self._regs, 0), self.guest.interrupts.bias)
        home = stub if number == self.guest.breakpoint.number else pc - biases.get(number, 0)
        if self.guest.interrupts.lost_pc and number != self.guest.breakpoint.number:
            before, last = self.starts.seen
            home = pc = before if self.sink is not None and self.sink.ours(last) else last
            if self.owner is None:
                self.write_pc(home)
        strayed = (self.sink is not None and self.sink.ours(stub)) or stub & -self.page_size == self.exit  # no system call of the guest's
        if self.interrupt_handler is not None and not strayed:
            ahead = pc + self.guest.calls.skip.get(number, -biases.get(number, 0))
            self._regs.at(ahead)
            if self.interrupt_handler(self._regs, number):
                self.write_pc(self._regs.target if self._regs.target is not None else self.arch.pointers.same_mode(self._regs, ahead))
                return
        if self.owner is None:
            if home != pc:
                self.write_pc(self.arch.pointers.same_mode(self._regs, home))
            self.starts.interrupt = number, home
            self.engine.stop()
        elif not self.owner.hooks_interrupts:
            self.park(unicorn.UcError(const.UC_ERR_EXCEPTION))  # what the engine says when nobody hooks interrupts


class _Register:
    """A pc that only the API may write, in the shape of a cell."""

    def __init__(self, read: Callable[[], int], write: Callable[[int], None]) -> None:
        self.view, self.index, self._read, self._write = self, 0, read, write

    def __getitem__(self, index: int) -> int:
        return self._read()

    def __setitem__(self, index: int, value: int) -> None:
        if index == self.index:
            self._write(value)
