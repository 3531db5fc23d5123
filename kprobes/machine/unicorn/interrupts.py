"""Interrupts of the guest's CPU, and the time that timers go by: one step for each instruction of
the guest's own.

A run whose CPU takes interrupts consists of stretches: between two of them timers are called and an
interrupt is taken.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...arch._interrupts import InterruptController
from ...errors import BadArgument, GuestFault, Unsupported
from ...regs import Regs
from .bounds import Bounds
from .cpu import UnicornCpu
from .registers.system import SystemRegisters
from .runstate import RunState
from .starts import Starts

FAR = 1 << 40  #: instructions: longer than any run
IDLE = 10_000  #: timers in a row that do not wake a waiting CPU: it is halted

# when, a number that orders events of one time, what to call
Event = tuple[int, int, Callable[[], object]]


class PausedCpu:
    """The CPU between two instructions, as an architecture's rules of interrupts see and change it.

    Attributes:
        vectors: address of the vector table that the CPU starts by, if it does.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, starts: Starts, bounds: Bounds) -> None:
        """Prepare; nothing is executed.

        Args:
            cpu: the CPU.
            state: of its runs.
            starts: starts the engine, for instructions that reach system registers.
            bounds: of runs; those instructions are not counted.
        """
        self._cpu = cpu
        self._state = state
        self._starts = starts
        self._bounds = bounds
        self.vectors = 0
        self._page = 0  # for instructions that reach system registers
        registers = cpu.guest.registers
        self._system = SystemRegisters(
            cpu.engine.uc, registers.constants, registers.prefix, registers.system, self._execute
        )

    @property
    def bits(self) -> int:
        """Width of a general register, in bits."""
        return self._cpu.arch.bits

    @property
    def regs(self) -> Regs:
        """The CPU's registers that programs use, live."""
        return self._cpu.regs

    def system(self, name: str) -> int:
        """Return the value of the system register that is called `name`."""
        return self._system.read(name)

    def set_system(self, name: str, value: int) -> None:
        """Write `value` to the system register that is called `name`."""
        self._system.write(name, value)

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest memory at `addr`. GuestFault: it is not mapped."""
        return self._cpu.memory.read(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write `data` to guest memory at `addr`. GuestFault: it is not mapped."""
        self._cpu.memory.write(addr, data)

    def _execute(self, register: str, value: int | None, code: bytes) -> int:
        """Execute instructions in a page of the library's, which read or write a system register by
        way of a general one.

        Args:
            register: name of the general register.
            value: what to put there before; None: nothing.
            code: the instructions.

        Returns:
            What the general register holds behind them. That register and pc are put back, and an
            interrupt that the instructions raise is forgotten.

        Raises:
            Unsupported: the guest may not use system registers in its present mode.
        """
        cpu, regs = self._cpu, self._cpu.regs
        if not self._page:
            self._page = cpu.memory.map_code()
        cpu.memory.patch(self._page, code)
        cpu.memory.fill(self._page + len(code), 16)
        pc, before = cpu.read_pc(), regs[register]
        if value is not None:
            regs[register] = value
        with self._bounds.counting_paused():
            error = self._starts.start_outside_of_run(self._page, self._page + len(code))
        result = regs[register]
        regs[register] = before
        cpu.write_pc(cpu.arch.pointers.same_mode(regs, pc))
        interrupt, self._state.interrupt = self._state.interrupt, None
        if error or interrupt is not None:
            raise Unsupported(
                "the guest may not use its system registers now",
                hint="interrupts are taken in the mode that operating systems run in",
            )
        return result


class InterruptDelivery:
    """The interrupts of a machine's CPU: `machine.interrupts`.

    The CPU takes them between two instructions, by its architecture's rules, in runs that are
    inside no other. While there are any, runs count instructions, which makes them slower.

    Attributes:
        cpu: what the rules change.
        active: True where runs have to look at interrupts.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, starts: Starts, bounds: Bounds) -> None:
        """Prepare; the CPU takes no interrupts until something asks for them.

        Args:
            cpu: the CPU.
            state: of its runs.
            starts: starts the engine, for instructions that reach system registers.
            bounds: counts instructions.
        """
        self.cpu = PausedCpu(cpu, state, starts, bounds)
        self._arch = cpu.arch
        self._state = state
        self._bounds = bounds
        self._numbers = cpu.guest.interrupts
        self._controller: InterruptController | None = None
        self.active = False
        self._events: list[Event] = []
        self._order = itertools.count()
        self._past = 0  # instructions until the present stretch of a run
        self._budget: int | None = None  # instructions of that stretch; None: none is under way

    # --- what users call

    def pend(self, line: int | str) -> None:
        """Make an interrupt pending: the CPU takes it once, as soon as its rules allow.

        Args:
            line: the CPU's number or name of it: Cortex-M -15 to 239 as CMSIS counts, RISC-V the
                cause, MIPS 0 to 7 ("ip0"), Arm and AArch64 "irq" or "fiq", PowerPC "external" or
                "decrementer", x86 the vector.

        Raises:
            BadArgument: the CPU has no such interrupt.
            Unsupported: nothing is known of interrupts of this architecture, or this engine cannot
                count.
        """
        controller = self.controller
        controller.pend(controller.line(line))
        self._ask()

    raise_ = pend

    def look(self) -> None:
        """Have the run look for pending interrupts before the guest's next instruction. Called
        where a device has changed the controller's registers.
        """
        self._ask()

    def set_level(self, line: int | str, on: bool) -> None:
        """Set whether a device asks for an interrupt, which is taken again and again while it does.

        Args:
            line: the interrupt's number or name, as pend() takes it.
            on: True: the device asks.

        Raises:
            BadArgument: the CPU has no such interrupt.
            Unsupported: nothing is known of interrupts of this architecture, or this engine cannot
                count.
        """
        controller = self.controller
        before = controller.state
        controller.set_level(controller.line(line), on)
        if controller.state != before:
            self._ask()

    def every(self, instructions: int, line: int | str) -> Callable[[], None]:
        """Make an interrupt pending again and again, each time so many instructions have been
        executed.

        Args:
            instructions: of the guest's own, from one time to the next.
            line: the interrupt's number or name, as pend() takes it.

        Returns:
            A function that ends it.

        Raises:
            BadArgument: `instructions` is not 1 or more, or the CPU has no such interrupt.
            Unsupported: nothing is known of interrupts of this architecture, or this engine cannot
                count.
        """
        if not isinstance(instructions, int) or instructions < 1:
            raise BadArgument(
                f"{instructions!r} is no number of instructions", hint="give 1 or more"
            )
        controller = self.controller
        number = controller.line(line)
        cancel: Callable[[], None]

        def fire() -> None:
            """Make the interrupt pending, and set the timer for the next time."""
            nonlocal cancel
            controller.pend(number)
            cancel = self.after(instructions, fire)

        def end() -> None:
            """Cancel the timer: the interrupt becomes pending no more."""
            cancel()

        cancel = self.after(instructions, fire)
        return end

    def after(self, instructions: int, function: Callable[[], object]) -> Callable[[], None]:
        """Call a function, as a timer, when so many more instructions of the guest's own were
        executed.

        Args:
            instructions: number of them; less than 1 counts as 1.
            function: is called once, without arguments, between two instructions.

        Returns:
            A function that cancels the call, if it was not made yet.

        Raises:
            Unsupported: nothing is known of interrupts of this architecture.
        """
        self.controller  # noqa: B018  # raises where there can be none
        event = self.now + max(instructions, 1), next(self._order), function
        heapq.heappush(self._events, event)
        self._ask()

        def cancel() -> None:
            """Remove the timer; nothing where its function was called already."""
            if event in self._events:
                self._events.remove(event)
                heapq.heapify(self._events)

        return cancel

    @property
    def now(self) -> int:
        """The number of the guest's own instructions executed since its interrupts are looked at:
        the time that timers go by.
        """
        if self._budget is None or not self._state.left:
            return self._past
        return self._past + self._budget - self._state.left[0]

    @property
    def controller(self) -> InterruptController:
        """The CPU's interrupt controller (arch._interrupts).

        It is made when it is first asked for. From then on `active` is True; an outermost run that
        is under way is asked to stop, and goes on in stretches.

        Raises:
            Unsupported: nothing is known of how this architecture takes interrupts.
        """
        if self._controller is None:
            make = self._arch.interrupts
            if make is None:
                raise Unsupported(
                    f"nothing is known of how {self._arch.name} takes interrupts",
                    hint="set registers, and run() from its handler",
                )
            self._controller = make(self.cpu)
            self.active = True
            if self._state.depth == 1:  # this run goes on in stretches
                self._state.stop_for("interrupt")
        return self._controller

    @property
    def vectors(self) -> int:
        """Address of the vector table that the CPU starts by, where there is such a table
        (Cortex-M).
        """
        return self.cpu.vectors

    @vectors.setter
    def vectors(self, address: int) -> None:
        """Set the address of the vector table that the CPU starts by."""
        self.cpu.vectors = address

    # --- for runs

    def _ask(self) -> None:
        """Ask the outermost run to stop before the guest's next own instruction, where its counting
        hook stops it.
        """
        # a run inside it is no part of the CPU's time
        if self._state.depth == 1 and self._state.left:
            self._state.note_stop("interrupt")

    def begin_stretch(self, target: int, most: int | None) -> tuple[int, int]:
        """Call timers whose time has come, and let the CPU take an interrupt, before a stretch of a
        run. Only while the CPU is between two instructions. Where an interrupt stays pending,
        RunState.due is set, so that the stretch ends when the guest allows it.

        Args:
            target: where the guest goes on, mode bits included.
            most: instructions that are left of the run; None: any number.

        Returns:
            (where the guest goes on now: `target`, or the interrupt's handler; the most
            instructions of the stretch).

        Raises:
            GuestFault: the vectors or the stack are no memory.
            BaseException: a timer's function has raised it.
        """
        assert self._controller is not None
        self._call_timers()
        try:
            taken = self._controller.take()
        except GuestFault as error:
            raise self._refused(error) from None
        if taken is not None:
            target = taken
        budget = FAR
        if self._controller.pending:  # it is taken as soon as the guest allows it
            self._state.due = self._controller.due
        if self._events:
            budget = min(budget, self._events[0][0] - self._past)
        if most is not None:
            budget = min(budget, most)
        self._budget = budget
        return target, budget

    def _refused(self, error: GuestFault) -> GuestFault:
        """Return the error to raise where the vectors or the stack are no memory, so that a real
        CPU would lock up.

        Args:
            error: what the access has raised.
        """
        at = "" if error.address is None else f" at {error.address:#x}"
        return GuestFault(
            f"the CPU cannot take an interrupt: {error.reason}{at}",
            address=error.address,
            pc=self.cpu.regs.pc,
            access=error.access,
            serve="have the guest set its vectors and its stack before interrupts are on",
        )

    def no_stretch(self, target: int) -> tuple[int, int]:
        """Begin a stretch of a run that has no instructions left; end_stretch() ends it.

        Args:
            target: where the guest stands.

        Returns:
            (target, 0): where it goes on, and the instructions that it may execute.
        """
        self._budget = 0
        return target, 0

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Have no run stopped for a pending interrupt inside a with block, which runs other guest
        code. The caller sees to it that this code is not counted, for time goes by instructions.

        When the block ends in an outermost run, and an interrupt is pending, a stop is asked for at
        the next instruction, so that the interrupt is taken.
        """
        due, self._state.due = self._state.due, None
        left = self._state.left
        try:
            yield
        finally:
            self._state.due = due
            if (
                self._state.depth == 1
                and left
                and self._controller is not None
                and self._controller.pending
            ):
                self._state.note_stop("interrupt")

    def end_stretch(self, unused: int) -> int:
        """End the stretch of a run that begin_stretch() or no_stretch() has begun; time goes on by
        what was executed, and RunState.due is None.

        Args:
            unused: instructions of the stretch's budget that were not executed.

        Returns:
            How many instructions were executed.
        """
        assert self._budget is not None
        done = self._budget - unused
        self._past += done
        self._budget = None
        self._state.due = None
        return done

    def sleep(self) -> bool:
        """Pass the time of a CPU that waits for an interrupt: call one timer after the other until
        one ends the waiting. None is called where a pending interrupt ends it already.

        The time (`now`) goes on to that of each timer that is called.

        Returns:
            True where the CPU goes on; False where no timer is left, calling timers 10,000 times
            (IDLE) has not ended the waiting, or a stop is asked for.
        """
        assert self._controller is not None
        for _ in range(IDLE):
            if self._controller.wakes():
                return True
            if not self._events or self._state.why_stopped:
                return False
            self._past = max(self._past, self._events[0][0])
            self._call_timers()
        return False

    def _call_timers(self) -> None:
        """Call the functions of the timers whose time has come, the earliest first; then take back
        a stop that was asked for an interrupt alone. What a function raises is raised.
        """
        while self._events and self._events[0][0] <= self._past:
            heapq.heappop(self._events)[2]()
        if self._state.why_stopped == "interrupt":
            self._state.take_stop()

    def serve(self, regs: Regs, number: int) -> bool:
        """Do what the CPU's own rules say of an exception that an instruction has raised.

        They say something of a supervisor call, and of a branch to a value that stands for an
        exception return: registers and stack are changed, and the guest goes on where the rules
        say.

        Args:
            regs: the CPU's registers.
            number: the engine's number of the interrupt.

        Returns:
            True where that was done. False: the rules say nothing of this interrupt, or nothing has
            asked for interrupts yet; the guest is as it was.

        Raises:
            GuestFault: the vectors or the stack are no memory.
        """
        if self._controller is None:
            return False
        target = None
        try:
            if number == self._numbers.call:
                target = self._controller.call()
            elif number == self._numbers.leave:
                target = self._controller.leave(regs.pc)
        except GuestFault as error:
            raise self._refused(error) from None
        if target is None:
            return False
        regs.go(target)
        self._ask()  # another one may be taken now
        return True

    # --- what snapshots keep

    @property
    def snapshot_state(self) -> Any:
        """The controller's state, the time and the timers, as a copy for a snapshot; setting it
        goes back to such a copy.
        """
        state = None if self._controller is None else self._controller.state
        return state, self._past, list(self._events)

    @snapshot_state.setter
    def snapshot_state(self, then: Any) -> None:
        """Set the controller's state, the time and the timers to what a snapshot has kept. Where
        there was no controller then, the present one is forgotten, and `active` becomes False.
        """
        state, self._past, events = then
        if state is None:
            self._controller = None
            self.active = False
        else:
            self.controller.state = state
        if self._events != events:
            self._events = list(events)
