"""Receives the engine's reports: breakpoints of the core's, and interrupts of the guest's own.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. A displaced instruction is the copy of a probed one that is executed in memory
of the library's: in a slot or a detour. An engine that was made elsewhere has an owner, who runs
it, too. Host code is compiled code of the library's (kprobes/native), which does in this process
what Python would do more slowly. A stub is code of the library's that stands for an imported
function; when the guest calls it, it traps (stubs.py).

There is one hook for each channel (interrupts, invalid instructions and so on). A hook never
raises, since nothing can be raised through the engine: an exception is kept, the run is stopped,
and the run raises it (RunState.park).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import unicorn
from unicorn import unicorn_const as const

from ...errors import Unsupported
from ...regs import Regs
from .._base import Rest, Sink
from .clock import InstructionClock
from .cpu import UnicornCpu
from .delayslots import DelaySlots
from .engine import INSN, INTR, INVALID, MEM, TLB, address_of
from .guests.guest import FETCHED, SystemCall
from .guests.guest import HOOK as BY_HOOK
from .guests.guest import INTR as BY_INTERRUPT
from .host.callsites import FollowedCalls
from .host.usual import SharedHits
from .interrupts import InterruptDelivery
from .owner import EngineOwner
from .raised import Raised
from .registers.cells import ApiCell
from .runstate import RunState
from .services import Services
from .starts import Starts
from .stops import HookedStops
from .stubs import Stubs
from .traps import Finish, ServedBreakpoints

#: accesses to data that fail
REFUSED = (
    const.UC_HOOK_MEM_READ_UNMAPPED
    | const.UC_HOOK_MEM_READ_PROT
    | const.UC_HOOK_MEM_WRITE_UNMAPPED
    | const.UC_HOOK_MEM_WRITE_PROT
)
REFUSED_STORES = const.UC_HOOK_MEM_WRITE_UNMAPPED | const.UC_HOOK_MEM_WRITE_PROT
NONE = 0xFFFFFFFF  # no exception is under way


class Reports:
    """The engine's hooks by which breakpoints and interrupts of one CPU are reported.

    They are always there on an engine of the library's own; on an owner's, while there is a sink.

    Attributes:
        interrupt_handler: the user's handler of the guest's own interrupts: (registers, number) ->
            True if it has handled one. None: there is none.
        traps: the breakpoints that host code serves; None: it cannot.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        *,
        services: Services,
        starts: Starts,
        stubs: Stubs,
        stops: HookedStops,
        owner: EngineOwner | None,
        clock: InstructionClock,
        delay_slots: DelaySlots,
        followed: FollowedCalls,
        shared: SharedHits | None,
        interrupts: InterruptDelivery,
    ) -> None:
        """Make the hooks' functions; add_hooks() adds them to the engine.

        Args:
            cpu: registers and memory.
            state: the state of the guest's runs.
            services: the core's functions at call sites.
            starts: starts the engine.
            stubs: serve traps at imports and the like.
            stops: hooks that stand for breakpoints where the engine reports none.
            owner: the engine's owner; None: it is the library's own.
            clock: counts the guest's instructions.
            delay_slots: tells which instructions are executed together with a branch.
            followed: has the gate of hits that host code serves.
            shared: what those hits have in common; None: there is no host code.
            interrupts: serves exceptions by the CPU's own rules.
        """
        self._raised = (
            Raised(cpu.engine, cpu.arch.mask, cpu.read_pc, cpu.cells.get(cpu.arch.regs.pc))
            if cpu.guest.interrupts.lost_pc
            else None
        )
        self._cpu = cpu
        self._state = state
        self._services = services
        self._starts = starts
        self._stubs = stubs
        self._stops = stops
        self._owner = owner
        self._clock = clock
        self._slots = delay_slots
        self._engine = cpu.engine
        self._guest = cpu.guest
        self._regs = cpu.regs
        self.interrupt_handler: Callable[[Regs, int], bool] | None = None
        self._interrupts = interrupts
        self._hooks: list[int] = []
        # () -> True in single-step mode; None: the guest has none
        self._stepping: Callable[[], bool] | None = None
        step = self._guest.interrupts.step
        if step is not None:
            with suppress(Unsupported):
                read, bit = step.find(self._engine)[0], step.bit
                self._stepping = lambda: bool(read() & bit)
        self._on_interrupt = INTR(self._interrupt_callback())
        self.traps = (
            ServedBreakpoints(
                cpu, followed, shared, address_of(self._on_interrupt), self._finishing
            )
            if shared is not None and ServedBreakpoints.possible(cpu)
            else None
        )
        self._served: Callable[[int], None] | None = None  # see InterruptDelivery.served
        # where registers are not found a second exception is a double fault: nothing else is lost
        with suppress(Unsupported):
            self._served = (
                None
                if self._guest.interrupts.served is None
                else self._guest.interrupts.served.find(self._engine)[1]
            )
        self._refused: Callable[[], int] | None = None  # see InterruptDelivery.refused
        with suppress(Unsupported):
            self._refused = (
                None
                if self._guest.interrupts.refused is None
                else self._guest.interrupts.refused(self._engine)[0]
            )
        cpu.memory.on_unmap(self._unloading)

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to a sink, the core, from now on; None: deliver none.

        None stops the instruction clock, too; a new sink is told if the clock runs
        (Sink.limit_jumps). On an engine that has an owner the hooks are added for a sink, and
        removed for None; so is the method in place of uc.emu_start().

        Args:
            sink: the core, or None.

        Raises:
            AlreadyRegistered: another sink receives them.
        """
        if sink is None:
            # the sink was asked to have each instruction executed at its own address
            self._clock.reset()
        self._state.listen(sink)
        if sink is not None and self._clock.runs:
            sink.limit_jumps(True)
        if self._owner is not None and sink is not None:
            self.add_hooks()
            self._owner.shadow()
        elif self._owner is not None:
            self.remove_hooks()

    def _unloading(self, start: int, end: int) -> None:
        """Tell the sink, if there is one, that guest memory [start, end) is about to be
        unmapped.
        """
        if self._state.sink is not None:
            self._state.sink.about_to_unmap(start, end)

    def is_breakpoint(self, number: int | None = None) -> bool:
        """Return True if the guest stands at a breakpoint of the sink's. Only in a hook of
        interrupts or of invalid instructions.

        Args:
            number: the engine's number of the interrupt: False unless it is that of breakpoints.
                None: only the place counts.
        """
        guest, sink = self._guest, self._state.sink
        return (
            sink is not None
            and number in (None, guest.breakpoint.number)
            and sink.has_breakpoint(self._cpu.read_pc() - guest.breakpoint.bias)
        )

    def stop_at(self, addr: int) -> None:
        """Have the breakpoint at `addr` reported. Most engines report breakpoints by themselves,
        and nothing is done.
        """
        if self._guest.breakpoint.channel == BY_HOOK:
            self._stops.add(addr)

    def release(self, addr: int) -> None:
        """Stop reporting the guest's arrival at `addr`, which stop_at() has asked for."""
        if self._guest.breakpoint.channel == BY_HOOK:
            self._stops.remove(addr)

    def add_hooks(self) -> None:
        """Add the hooks to the engine: of interrupts and, as far as this guest needs them, of
        invalid instructions, system calls, failed accesses and the virtual TLB. On an engine that
        has an owner only the first two kinds are added. Where the engine loses the pc of
        interrupts, it is noted from now on (Raised).
        """
        if self._raised is not None:
            self._raised.begin()
        add = self._engine.hook
        if self.traps is None:
            self._hooks = [add(const.UC_HOOK_INTR, self._on_interrupt)]
        else:
            self._engine.keep((self._on_interrupt, self.traps))
            self._hooks = [add(const.UC_HOOK_INTR, self.traps.hook, data=self.traps.data)]
        if self._guest.breakpoint.channel != BY_INTERRUPT:
            self._hooks.append(add(const.UC_HOOK_INSN_INVALID, INVALID(self._invalid_callback())))
        for insn, call in self._guest.calls.unreported.items() if self._owner is None else ():
            self._hooks.append(
                add(const.UC_HOOK_INSN, INSN(self._system_call_callback(call)), insn=insn)
            )
        if self._guest.runs.settle and self._owner is None:
            self._hooks.append(add(REFUSED, MEM(self._refused_callback())))
        if self._guest.faults.late_stores and self._owner is None:
            self._hooks.append(add(REFUSED_STORES, MEM(self._late_store_callback())))
        if self._guest.memory.virtual_tlb and self._owner is None:
            self._hooks.append(add(const.UC_HOOK_TLB_FILL, TLB(self._fill_callback())))

    def remove_hooks(self) -> None:
        """Remove the hooks that add_hooks() has added, note the pc of interrupts no more (Raised),
        and give an owner the engine's own emu_start() back.
        """
        for hook in self._hooks:
            self._engine.unhook(hook)
        self._hooks = []
        if self._raised is not None:
            self._raised.end()
        if self._owner is not None:
            self._owner.unshadow()

    def _refused_callback(self) -> Callable[..., bool]:
        """Make the hook of accesses that fail, which notes the first one of a run as (pc, address)
        in RunState.failed: only there the engine's pc is right. The hook returns False: the access
        is to fail.
        """
        state, read_pc = self._state, self._cpu.read_pc

        def on_refused(_uc: int, _access: int, address: int, *_: int) -> bool:
            """Note the pc and address of the first access that fails in a run; return False: it is
            to fail.
            """
            if state.failed is None:
                state.failed = read_pc(), address
            return False

        return on_refused

    def _late_store_callback(self) -> Callable[..., bool]:
        """Make the hook of stores that fail, which notes the first one of a run, with the registers
        (RunState.note_store()). The hook returns False: the store is to fail.

        A store is also noted where the one that was noted before would succeed by now: another hook
        has mapped its memory. Outside of runs nothing is noted. The engine is not stopped here: it
        would ask no other hook, which may map memory and have the store done.
        """
        state, engine, read_pc = self._state, self._engine, self._cpu.read_pc

        def on_refused(_uc: int, _access: int, address: int, *_: int) -> bool:
            """Note a store that fails in a run, unless an earlier one still counts; return False:
            it is to fail.
            """
            if not state.depth:  # somebody runs the engine without the machine
                return False
            # what was noted and may be written by now, another hook has served
            if state.failed is None or engine.may_write(state.failed[1]):
                state.note_store(read_pc(), address)
            return False

        return on_refused

    def _fill_callback(self) -> Callable[[int, int, int, Any, int], bool]:
        """Make the hook of the virtual TLB, which makes entries for all kinds of access.

        Without it the engine makes an entry for one kind of access, which evicts that for another.
        Stores through an entry that allows execution are slow, as they look for translations: only
        code gets such an entry. What is not mapped, or not allowed, still fails at the access.
        """
        is_code = self._cpu.memory.is_code
        fetch = const.UC_MEM_FETCH
        code = const.UC_PROT_ALL
        data = const.UC_PROT_READ | const.UC_PROT_WRITE

        def on_miss(_uc: int, address: int, kind: int, entry: Any, _user: int) -> bool:
            """Fill an entry of the virtual TLB: the address itself, executable for code alone.
            Return True.
            """
            entry[0].paddr = address
            entry[0].perms = code if kind == fetch or is_code(address) else data
            return True

        return on_miss

    def _interrupt_callback(self) -> Callable[[int, int, int], None]:
        """Make the engine's interrupt hook, which reports breakpoints to the core and hands all
        else to unclaimed(). It never raises: what is raised inside is kept, and the run raises it.
        Where a store has failed that the engine notices late, the run is stopped, and the interrupt
        dropped.

        It is the hottest Python code of the library: all that it needs is looked up beforehand, and
        the reported pc is put into Regs directly.

        Returns:
            (engine's handle, number of the interrupt, unused) -> None.
        """
        regs, state, bias = self._regs, self._state, self._guest.breakpoint.bias
        ours = (
            self._guest.breakpoint.number if self._guest.breakpoint.channel == BY_INTERRUPT else -1
        )
        cell = self._cpu.cells.get(self._cpu.arch.regs.pc)
        pc_word = cell if cell is not None else ApiCell(self._cpu.read_pc, self._cpu.write_pc)
        view = pc_word.view
        index = pc_word.index
        mask = self._cpu.arch.mask
        write_pc = self._cpu.write_pc
        modes = self._guest.pc.modes if cell is not None else 0
        mode, beyond, plain = self._cpu.mode_word(cell), ~mask, mask & ~modes
        stepping = self._stepping

        def on_interrupt(_uc: int, number: int, _user: int) -> None:
            """Serve an interrupt: the core's breakpoint by its trap(), any other by unclaimed(). It
            never raises.

            Args:
                _uc: not used.
                number: the engine's number of the interrupt.
                _user: not used.
            """
            try:
                if state.failed_registers is not None and state.stop_behind_store():
                    return
                pc = view[index]
                if number == ours and state.trap is not None:
                    regs.reported = pc = pc - bias
                    stepped = stepping is not None and stepping() and not state.ours(pc)
                    if state.trap(regs):
                        target = regs.target
                        if target is None:
                            view[index] = pc
                        elif target & beyond or (modes and target & modes != mode[0]):
                            write_pc(target)
                        else:
                            view[index] = target & plain
                        regs.reported = regs.target = None
                        if stepped:
                            self._step_simulated()
                        return
                    pc += bias
                self.unclaimed(number, pc)
            except BaseException as error:
                self._failed(error)
            regs.reported = regs.target = None

        return on_interrupt

    def _step_simulated(self) -> None:
        """Give the guest its exception of single-step mode (unclaimed()) behind an instruction that
        was simulated.

        The caller has found that the mode was on when the instruction began. Nothing is done where
        the guest goes on in a slot: behind that the engine gives the exception.
        """
        pc = self._cpu.read_pc()
        step = self._guest.interrupts.step
        if step is not None and not self._state.ours(pc):
            self.unclaimed(step.number, pc)
            self._regs.reported = self._regs.target = None

    def _finishing(self, rest: Rest) -> Finish:
        """Make the function that host code calls to finish a breakpoint's unusual hit; it sends the
        guest on, and never raises.

        Args:
            rest: the core's function that finishes the hit.

        Returns:
            (instance of a return probe or None, what the handler has returned, what it has raised
            or None) -> None.
        """
        regs, cpu = self._regs, self._cpu

        def finish(instance: Any, result: Any, error: BaseException | None) -> None:
            """Finish an unusual hit of a breakpoint that host code serves, and send the guest on.
            It never raises.

            Args:
                instance: what the core's function gets as such.
                result: what the handler has returned.
                error: what it has raised; None: nothing.
            """
            here = regs.pc
            try:
                if error is None:
                    rest(regs, instance, result, None)
                else:
                    try:
                        raise error
                    except BaseException:  # `error` becomes the context of what is raised now
                        rest(regs, instance, result, error)
                cpu.write_pc(
                    cpu.arch.pointers.same_mode(regs, here) if regs.target is None else regs.target
                )
            except BaseException as raised:
                self._failed(raised)
            regs.reported = regs.target = None

        return finish

    def _system_call_callback(self, call: SystemCall) -> Callable[[int, int], None]:
        """Make the hook of a system call that the engine does not report as an interrupt.

        Handlers see pc behind the instruction. The engine adds the instruction's size to pc after
        the hook, which allows for that. The hook never raises: an error is kept for the run.

        Args:
            call: the instruction's size, the number to report it by, and what the CPU itself does.

        Returns:
            (engine's handle, unused) -> None.
        """
        cpu, regs = self._cpu, self._regs

        def on_system_call(_uc: int, _user: int) -> None:
            """Serve a system call instruction, and then stand in front of it, for the engine. It
            never raises.
            """
            try:
                behind = cpu.read_pc() + call.size
                if call.effect is not None:
                    call.effect(regs, behind)
                self.unclaimed(call.number, behind)
            except BaseException as error:
                self._failed(error)
            regs.reported = regs.target = None
            cpu.write_pc(cpu.read_pc() - call.size)

        return on_system_call

    def _invalid_callback(self) -> Callable[[int, int], bool]:
        """Make the engine's invalid-instruction hook, where breakpoints arrive that way. It never
        raises: what is raised inside is kept, and the run raises it.

        Returns:
            (engine's handle, unused) -> True where the guest goes on at pc, or a handler has
                raised, which stops the run; False: it has failed, or has come to the run's end.
        """
        regs = self._regs
        state = self._state
        bias = self._guest.breakpoint.bias
        mask = self._cpu.arch.mask
        step = self._cpu.arch.insn_align
        words = (
            ApiCell(self._cpu.read_pc, self._cpu.write_pc)
            if self._cpu.pair is None
            else self._cpu.pair
        )

        def on_invalid(_uc: int, _user: int) -> bool:
            """Serve an invalid instruction: a breakpoint of the core's, or a stub of an import. It
            never raises: what is raised is kept for the run, and the result is True.

            Returns False where it is neither, or the run ends there: the engine then stops with an
            error.
            """
            try:
                pc = words[0] - bias
                if pc == state.end:
                    # an error ends this run alone, a stop would end the outer ones as well
                    return False
                regs.reported = pc
                if state.trap is not None and state.trap(regs):
                    target = regs.target
                    if target is None:
                        target = pc
                    words[0] = target & mask
                    words[1] = target + step & mask
                    regs.reported = regs.target = None
                    return True
                if self._stubs.serve(pc):
                    regs.reported = regs.target = None
                    return True
            except BaseException as error:
                self._failed(error)
                regs.reported = regs.target = None
                return True
            regs.reported = regs.target = None
            return False

        return on_invalid

    def _failed(self, error: BaseException) -> None:
        """Keep an exception that a hook has raised for the run to raise, and stop the engine. The
        guest still goes where it was sent.
        """
        if self._regs.target is not None:
            self._cpu.write_pc(self._regs.target)
        self._state.park(error)

    def _handled(self, number: int, ahead: int, home: int) -> bool:
        """Have the user's handler, else the CPU's own rules, handle an interrupt of the guest's
        own, and send the guest on.

        For both, pc is `ahead`; where a displaced instruction raised the interrupt, pc is as far
        behind the original address of the instruction as `ahead` is behind `home`. Once the
        interrupt is handled the guest goes on at `ahead`, or where the handler or the rules have
        set pc: the hit of a displaced instruction is then given up. RunState.mended becomes True
        where an unaligned access was handled, else False.

        Args:
            number: of the interrupt.
            ahead: where the guest goes on, unless the handler or the rules set pc.
            home: address at which the instruction that raised the interrupt was executed: that of
                its copy, where the instruction is displaced.

        Returns:
            True where the interrupt was handled. False: neither handles it, or the guest has
            strayed into the library's own pages.

        Raises:
            BaseException: the handler has raised it. The hit of a displaced instruction is given up
                then, unless the instruction is to be executed once more (RunState.unfinished).
        """
        cpu, regs, sink = self._cpu, self._regs, self._state.sink
        if self.interrupt_handler is None and not self._interrupts.active:
            return False
        self._state.mended = False
        shown = sink.home_of(home) if sink is not None and sink.owns(home) else home
        if shown is None or home & -cpu.memory.page_size == self._state.exit:
            return False  # the guest has strayed into the library's pages
        regs.at(seen := shown + ahead - home)
        try:
            if not self._ask_handlers(number):
                return False
        except BaseException:
            if regs.target is None and shown != home and ahead == home:
                cpu.stay(home)
                self._state.unfinished = home  # Runner puts pc home before it raises the error
            else:
                self._leave(home)
                if regs.target is None:
                    regs.pc = seen
            raise
        self._state.mended = number in self._guest.faults.unaligned
        if (moved := regs.target) is not None:
            self._leave(home)
            self._slots.finish_branch(shown)
            if sink is not None:
                sink.guest_sent(moved)
            cpu.write_pc(moved)
            return True
        if ahead == home and cpu.pair is not None:
            cpu.stay(home)
        else:
            cpu.write_pc(cpu.arch.pointers.same_mode(regs, ahead))
        if ahead == home:
            self._repeat(home)
        return True

    def _ask_handlers(self, number: int) -> bool:
        """Have the user's handler, else the CPU's own rules, serve an interrupt; return True if one
        of them has. The registers are the CPU's, as the caller has set them.

        Args:
            number: of the interrupt.

        Raises:
            GuestFault: the CPU's rules find no memory where the vectors or the stack are.
            BaseException: the handler has raised it.
        """
        regs, handler = self._regs, self.interrupt_handler
        return (handler is not None and handler(regs, number)) or self._interrupts.serve(
            regs, number
        )

    def _leave(self, pc: int) -> None:
        """Tell the sink that the guest leaves the instruction at `pc` for good, if that is in the
        core's pages: the hit is given up.
        """
        sink = self._state.sink
        if sink is not None and sink.owns(pc):
            sink.displaced_left(self._regs, pc)

    def _repeat(self, pc: int) -> None:
        """Count the instruction at `pc` once more against the run's bound; stop the run if the
        run is over by then, and note a displaced instruction in RunState.unfinished.

        Called where an interrupt was handled and the instruction that raised it is executed again.
        For most instructions the counting hook does the same, and this does nothing. It is needed
        for a displaced instruction, and for one in a delay slot at which the engine cannot stop.

        Args:
            pc: address of the instruction.
        """
        state = self._state
        displaced = state.ours(pc)
        if displaced or (state.left and self._guest.runs.settle and self._slots.goes_along(pc)):
            if state.may_repeat():
                return
            if displaced:
                state.unfinished = pc
            self._engine.stop()

    def unclaimed(self, number: int, pc: int) -> None:
        """Deal with an interrupt that is no breakpoint of the core's: send the guest to what a stub
        stands for (Stubs.serve()), or have the guest's own interrupt handled (_handled()).

        An exception of single-step mode in the core's pages goes to the core. Where nothing handles
        the interrupt, it is noted in RunState.interrupt, and the engine is stopped: the run reports
        a fault then. On an engine that has an owner, it is left to the owner. In a trial
        (RunState.trial), and at the address where the run ends, the engine is only stopped. An
        interrupt that the engine reports once more as it stops (Interrupts.lingers) is ignored.

        Args:
            number: of the interrupt, as the engine has it.
            pc: the engine's pc.

        Raises:
            BaseException: the user's handler, or a stub's function, has raised it.
        """
        cpu = self._cpu
        state = self._state
        guest = self._guest
        regs = self._regs
        fetched = number in guest.faults.unaligned and self._starts.aborted.forget()
        stub = pc - guest.breakpoint.bias  # the address, if this is a trap
        ours = guest.breakpoint.number
        # an engine that loses pc (Interrupts.lost_pc) may show the run's end for an instruction
        # that has failed elsewhere: in the delay slot of the jump that leads there
        if state.trial or (stub == state.end and (self._raised is None or number == ours)):
            self._engine.stop()
            return
        if number == guest.interrupts.lingers and self._engine.stopped:
            return  # the engine is stopping, and will report it again at the next start
        if self._served is not None:
            self._served(NONE)
        if guest.interrupts.renumber is not None:
            number = guest.interrupts.renumber(number, pc)
        if number == ours and (
            (stub in state.services and self._services.send_again()) or self._stubs.serve(stub)
        ):
            return
        if guest.interrupts.step is not None and number == guest.interrupts.step.number:
            if self._single_stepped(pc):
                return
            pc = cpu.read_pc()
        biases = guest.interrupts.mode_bias.get(
            cpu.arch.pointers.same_mode(regs, 0), guest.interrupts.bias
        )
        home = stub if number == ours else pc - biases.get(number, 0)
        if self._raised is not None and number != ours:
            home = self._raised.pc
            if fetched and self._refused is not None:
                number, home = number + FETCHED, self._refused()
            if number not in guest.calls.skip:
                pc = home
        hooked = guest.faults.hooked_flags
        if state.hooked and hooked is not None and number in hooked.numbers:
            cpu.put_flags_right()
        if self._handled(number, pc + guest.calls.skip.get(number, -biases.get(number, 0)), home):
            return
        if self._owner is not None:
            self._unserved_at_owners(number, home)
        else:
            if cpu.pair is not None:
                cpu.stay(home)
            elif self._raised is not None:
                cpu.write_pc(home & -2 if fetched else home)  # an odd one selects MIPS16
            elif home != pc:
                cpu.write_pc(cpu.arch.pointers.same_mode(regs, home))
            state.interrupt = number, home
            self._engine.stop()

    def _single_stepped(self, pc: int) -> bool:
        """Report an exception of single-step mode to the core, where it comes in the core's pages.

        Args:
            pc: where it comes; the core may send the guest elsewhere, which sets pc.

        Returns:
            True where it is none of the guest's. False: it is, at the engine's pc; also where it
            comes elsewhere, or there is no core: nothing was reported then.
        """
        sink, regs = self._state.sink, self._regs
        if sink is None or not sink.owns(pc):
            return False
        regs.at(pc)
        done = sink.single_stepped(regs)
        if regs.target is not None:
            self._cpu.write_pc(regs.target)
        regs.reported = regs.target = None
        return done

    def _unserved_at_owners(self, number: int, home: int) -> None:
        """Leave an interrupt that was not handled here to the engine's owner.

        If a hook of the owner's gets interrupts, that hook has handled it, or will. Else the run is
        stopped, and raises the error by which the engine itself stops at an interrupt; one in a
        displaced instruction is reported to the core before.

        Args:
            number: of the interrupt.
            home: address of the instruction that has raised it.
        """
        assert self._owner is not None
        if self._owner.hooks_interrupts:
            if self._state.ours(home) and self._cpu.read_pc() == home:
                self._repeat(home)  # the owner's hook has served it
            return
        if self._state.ours(home):
            self._state.interrupt = number, home  # Runner puts pc home before it raises the error
        # the error by which an engine without an interrupt hook stops
        self._state.park(unicorn.UcError(const.UC_ERR_EXCEPTION))
