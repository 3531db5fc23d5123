"""Guest calls and runs, by the architecture's calling convention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import GuestStopped, GuestTimeout, Unsupported
from .._ends import ending_at
from .._passing import Argument, Passing, check_bounds, code_pointer
from .cpu import Cpu
from .delayslots import DelaySlots
from .functions import Functions
from .furniture import Furniture
from .runner import Runner
from .runstate import RunState
from .stubs import Stubs


class Calls:
    """Calls functions, by name or address."""

    def __init__(self, cpu: Cpu, state: RunState, runner: Runner, functions: Functions, stubs: Stubs,
                 delay_slots: DelaySlots, furniture: Furniture) -> None:
        self._cpu, self._state, self.runs_in, self._functions, self.stubs = cpu, state, runner, functions, stubs
        self.delay_slots, self._furniture = delay_slots, furniture
        self._abandoned: Any = None  # the state before a call that failed
        self._nothing = Passing(cpu.memory, ())

    def call(self, function: str | int, args: Sequence[Argument], timeout: float | None, max_insns: int | None) -> int:
        """See UnicornMachine.call()."""
        if timeout is not None or max_insns is not None:
            check_bounds(timeout, max_insns)
        passing = Passing(self._cpu.memory, args) if args else self._nothing
        if not self.runs_in.begin():
            return self._call(function, passing, timeout, max_insns)
        try:
            return self._call(function, passing, timeout, max_insns)
        finally:
            self.runs_in.finish()

    def _call(self, function: str | int, passing: Passing, timeout: float | None, max_insns: int | None) -> int:
        cpu, state = self._cpu, self._state
        pointer = self._pointer(function)
        target = self._functions.target(pointer)
        if cpu.arch.abi is None or cpu.arch.linkage is None:
            raise Unsupported(f"{cpu.arch.name} has no calling convention", python="set registers and use run()")
        if not state.exit:
            self._furniture.make_exit()
        if self._abandoned is not None:
            self.forget_failure()
        outer = cpu.regs.reported, cpu.regs.target
        saved = cpu.engine.save()
        cpu.regs.at(None)
        failed = True
        try:
            self.delay_slots.settle(outer[0])
            passing.set_up(cpu.regs)
            self._functions.return_to_exit()
            self._functions.introduce(pointer)
            if self.runs_in.run(target, state.exit, timeout, max_insns):
                raise GuestStopped(pc=cpu.read_pc())
            result = cpu.regs.return_value
            failed = False
            return result
        finally:
            if passing is not self._nothing:
                passing.finish()
            if failed and state.depth == 0:
                self._abandoned = saved
            else:
                cpu.engine.restore(saved)
                cpu.engine.discard(saved)
                cpu.regs.reported, cpu.regs.target = outer

    def forget_failure(self) -> None:
        """The registers of before a call that failed, which have been the guest's as it stopped."""
        cpu, state = self._cpu, self._state
        if state.depth == 0 and self._abandoned is not None:
            cpu.engine.restore(self._abandoned)
            cpu.engine.discard(self._abandoned)
            self._abandoned = None

    def drop_failure(self) -> None:
        """The same, but nobody wants them back."""
        if self._abandoned is not None:
            self._cpu.engine.discard(self._abandoned)
            self._abandoned = None

    def run(self, start: int | str | None, until: int | str | None, timeout: float | None,
            max_insns: int | None) -> None:
        """See UnicornMachine.run()."""
        check_bounds(timeout, max_insns)
        outermost = self.runs_in.begin()
        try:
            self._run_from(start, until, timeout, max_insns)
        finally:
            if outermost:
                self.runs_in.finish()

    def _run_from(self, start: int | str | None, until: int | str | None, timeout: float | None,
                  max_insns: int | None) -> None:
        cpu, state = self._cpu, self._state
        end = state.exit if until is None else self._functions.target(self._pointer(until))
        if until is not None:  # code translated before does not stop there
            stop = end & ~cpu.arch.pointers.mode_bits
            cpu.engine.drop_translations(stop, stop + cpu.arch.insn_align)
        if start is None:
            target = (cpu.regs.target if cpu.regs.target is not None
                      else cpu.arch.pointers.same_mode(cpu.regs, cpu.regs.pc))
        else:
            target = self._functions.target(self._pointer(start))
            if isinstance(start, str):
                self._functions.introduce(self._pointer(start))
            if cpu.arch.linkage is not None and state.exit:
                self._functions.return_to_exit()
        if start is not None or cpu.regs.target is not None:
            self.delay_slots.settle(cpu.regs.reported)
        cpu.regs.at(None)
        if max_insns == 0:
            cpu.write_pc(target)
            raise GuestTimeout("max_insns is 0", pc=target & ~cpu.arch.pointers.mode_bits)
        with ending_at(state.sink, cpu.arch, None if until is None else end & ~cpu.arch.pointers.mode_bits):
            self.runs_in.run(target, end, timeout, max_insns)

    def invoke(self, target: int) -> None:
        """See machine._base.Machine.invoke()."""
        outermost = self.runs_in.begin()
        try:
            self._invoke(target)
        finally:
            if outermost:
                self.runs_in.finish()

    def _invoke(self, target: int) -> None:
        cpu, state = self._cpu, self._state
        assert cpu.arch.linkage is not None
        start = self._functions.target(target)
        outer = cpu.regs.reported, cpu.regs.target
        saved = cpu.engine.save()
        cpu.regs.at(None)
        try:
            self._functions.return_to_exit()
            self._functions.introduce(target)
            if self.runs_in.run(start, state.exit, None, None):
                raise GuestStopped(pc=cpu.read_pc())
        finally:
            cpu.engine.restore(saved)
            cpu.engine.discard(saved)
            cpu.regs.reported, cpu.regs.target = outer

    def _pointer(self, function: str | int) -> int:
        """A function's address as its pointers have it."""
        if not isinstance(function, str):
            return code_pointer(function, self._cpu.arch.bits)
        return self.stubs.resolved(self._functions.symbols[function])
