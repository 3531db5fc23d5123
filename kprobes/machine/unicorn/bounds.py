"""Bounds of runs, in seconds and in instructions. RunState.left counts the instructions.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. A slot is memory of the library's with the copy of a probed instruction, which
is executed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from unicorn import unicorn_const as const

from ...errors import Unsupported
from .cpu import UnicornCpu
from .delayslots import DelaySlots
from .engine import CODE
from .runstate import RunState
from .watchdog import Deadline

SINGLE_STEP = 2  # instructions of a single step: one, or a branch and its delay slot
#: Instructions in a row in the core's pages that are not counted. There are more only if the guest
#: itself executes what is there.
PASSING = 1 << 12
#: Instructions of which a counting hook remembers whether they repeat themselves.
MOST_KNOWN = 1 << 12


class Bounds:
    """Bounds runs of the guest in time and in instructions.

    Instructions are counted by a hook of the engine on every instruction.

    Attributes:
        installed: number of times that the hook that counts was added.
        unused: instructions that the last counted run had left.
    """

    def __init__(
        self, cpu: UnicornCpu, state: RunState, delay_slots: DelaySlots, owned: bool
    ) -> None:
        """Prepare; nothing is bounded.

        Args:
            cpu: whose instructions are counted.
            state: the state of its runs.
            delay_slots: tells which instructions are executed together with a branch.
            owned: the library has made the engine, and alone runs it.
        """
        # the hook is on all instructions, and stays after a run
        self._keeps = owned and cpu.guest.blocks.hooked_delay_slots
        self._cpu = cpu
        self._state = state
        self._delay_slots = delay_slots
        self.installed = 0
        self.unused = 0
        self._hooks: list[int] = []
        self._counting: Any = None  # the hook's function
        # address of the last instruction that was counted, where some are reported more than once
        self._last = -1

    def begin(self, timeout: float | None, max_insns: int | None) -> Deadline | None:
        """Bound the innermost run, until end().

        Where instructions are bounded, the counting hook is added, and the core makes breakpoints
        of jumps that cover several instructions.

        Args:
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Returns:
            The deadline, for end(); None: there is none.

        Raises:
            Unsupported: the engine cannot count so far.
        """
        if max_insns is not None:
            self._count(max_insns)
        try:
            if timeout is None:
                return None
            return Deadline(timeout, partial(self._expire, self._state.depth))
        except BaseException:
            self.end(None, max_insns is not None)
            raise

    def end(self, deadline: Deadline | None, counted: bool) -> None:
        """Remove the bounds that begin() set, in whatever way the run has ended.

        A stop that the deadline has asked for after the end is taken back. Where instructions were
        bounded, `unused` gets what is left of them, the core may make jumps again, and the counting
        hook is removed if it does harm.

        Args:
            deadline: what begin() has returned; None: time was not bounded.
            counted: True where instructions were bounded.
        """
        try:
            if deadline is not None:
                self._in_time(deadline)
        finally:
            if counted:
                self._counted()

    def stops(self, address: int) -> bool:
        """Return True where the innermost run has no instructions left for the one at `address`.
        The core's own instructions always pass.
        """
        return bool(self._state.left) and self._state.left[-1] <= 0 and not self._passes(address)

    def _passes(self, address: int) -> bool:
        """Return True for an instruction of the core's own, which does not count.

        Args:
            address: of the instruction.
        """
        return self._state.ours(address) and self._state.own_in_row < PASSING

    @contextmanager
    def counting_paused(self) -> Iterator[None]:
        """Count no instructions inside a with block."""
        left, self._state.left = self._state.left, []
        try:
            yield
        finally:
            self._state.left = left

    @contextmanager
    def counting_removed(self) -> Iterator[None]:
        """Count no instructions inside a with block.

        On engines whose hook does harm in delay slots (Blocks.hooked_delay_slots) the hook is
        removed meanwhile.
        """
        hooked = bool(self._hooks) and not self._cpu.guest.blocks.hooked_delay_slots
        with self.counting_paused():
            if hooked:
                self.close()
            try:
                yield
            finally:
                if hooked:
                    self._install_hook()

    @contextmanager
    def none_but_ours(self) -> Iterator[None]:
        """Stop the guest before the first instruction outside of the core's own pages, inside a
        with block. The counting hook is added, and removed afterwards where it does harm.
        """
        self._state.left.append(0)
        self._state.own_in_row = 0
        try:
            self._install_hook()
            yield
        finally:
            self._state.left.pop()
            self._harm_no_more()

    def close(self) -> None:
        """Remove the counting hook, if it is there; all code is translated anew then. Called when
        nothing runs, or an unbounded run begins.

        Within a run it stays, as hooks that come and go would pile up. It also stays after a run on
        an engine of the library's own, as the next run is likely to be bounded as well.
        """
        if self._hooks:
            for hook in self._hooks:
                self._cpu.engine.unhook(hook)
            self._hooks = []
            self._state.hooked = False
            self._cpu.engine.retranslate()

    def ended(self) -> None:
        """Remove the counting hook after the outermost run, unless it may stay."""
        if not self._keeps:
            self.close()

    def _expire(self, depth: int) -> None:
        """Ask the run to stop, as its time is up, and note whose time that is (RunState.timed_out).
        The watchdog's thread calls this.

        It is called again until the run has stopped, as a stop before the engine has started is
        lost.

        Args:
            depth: number of nested runs, up to the one whose time is up.
        """
        self._state.timed_out = depth
        self._state.stop_for("timeout")

    def _in_time(self, deadline: Deadline) -> None:
        """Cancel a deadline, and the stop that it has asked for when the run had just ended.

        Args:
            deadline: what begin() has returned.
        """
        deadline.cancel()
        if self._state.timed_out == self._state.depth and self._state.why_stopped == "timeout":
            self._state.take_stop()

    def _count(self, instructions: int) -> None:
        """Bound the innermost run to a number of instructions: add the counting hook, and tell the
        core that instructions are counted.

        Raises:
            Unsupported: the engine cannot count beyond a jump.
        """
        guest, sink = self._cpu.guest, self._state.sink
        if instructions > SINGLE_STEP and not guest.blocks.hooked_delay_slots:
            raise Unsupported(
                f"this engine cannot count {self._cpu.arch.name} instructions beyond a jump",
                hint="bound the run by a timeout",
            )
        self._install_hook()
        if sink is not None:
            sink.limit_jumps(True)
        self._last = -1
        self._state.left.append(instructions)

    def _counted(self) -> None:
        """Remove the innermost run's bound on instructions, which _count() has set: note in
        `unused` how many were left, and tell the core that they are counted no more. The counting
        hook is removed if it does harm.
        """
        self.unused = max(self._state.left.pop(), 0)
        self._harm_no_more()
        if self._state.sink is not None:
            self._state.sink.limit_jumps(False)

    def _harm_no_more(self) -> None:
        """Remove the counting hook if no run is counted any more and the hook does harm in delay
        slots.
        """
        if not (self._state.left or self._cpu.guest.blocks.hooked_delay_slots):
            self.close()

    def _install_hook(self) -> None:
        """Add the counting hook to the engine, unless it is there.

        All code is translated anew then, and `installed` grows by 1.
        """
        if not self._hooks:
            self.installed += 1
            self._counting = self._counting or CODE(self._callback())
            self._hooks = [
                self._cpu.engine.hook(const.UC_HOOK_CODE, self._counting, start, end)
                for start, end in self._hooked()
            ]
            self._state.hooked = True
            self._cpu.engine.retranslate()

    def _hooked(self) -> list[tuple[int, int]]:
        """Return the ranges of code that the counting hook is to be on: (first address, last
        address); [(1, 0)]: everything.

        It is on everything, unless it does harm in delay slots (Blocks.hooked_delay_slots): then on
        the guest's code, and of the library's pages only on the one where runs end.
        """
        if self._cpu.guest.blocks.hooked_delay_slots:
            return [(1, 0)]
        return [
            (start, end)
            for start, end in self._code()
            if start == self._state.exit or not self._cpu.memory.own.has(start)
        ]

    def _code(self) -> list[tuple[int, int]]:
        """Return (first address, last address) of each executable range of memory."""
        return [
            (start, end)
            for start, end, perms in self._cpu.engine.regions()
            if perms & const.UC_PROT_EXEC
        ]

    def _callback(self) -> Callable[[int, int, int, int], None]:
        """Make the function that the engine calls before each instruction; it counts instructions,
        and stops the engine in front of one where the run's bound has come, a stop was asked for,
        or an interrupt of the CPU's is due.

        It counts the guest's own instructions, and does not stop inside a slot; only where 4,096
        (PASSING) of the library's instructions come in a row, these count, and stop, too. Where the
        engine cannot stop in a delay slot (Runs.settle), a branch and the instruction behind it
        count as one. Of an instruction that repeats itself only the first repetition counts, and
        the bound does not stop the engine between two of them (a stop that was asked for does).

        Returns:
            (engine's handle, address, bytes, unused) -> None.
        """
        m = self._cpu
        state = self._state
        twice = m.guest.blocks.reported_twice
        repetitions = m.guest.blocks.repetitions_reported
        # address -> the instruction is executed together with the branch before it
        delayed: dict[int, bool] | None = {} if m.guest.runs.settle else None

        @lru_cache(MOST_KNOWN)
        def repeats(code: bytes) -> bool:
            """Return True for an instruction that repeats itself, such as MOVS with REP."""
            return m.arch.decode(code, 0).repeats

        def on_instruction(_uc: int, address: int, size: int, _user: int) -> None:
            """Count an instruction of the guest's own; stop the run in front of it if its bound has
            come.

            The run is also stopped if a stop was asked for, or an interrupt can be taken. Nothing
            is done where no run counts instructions, and for the core's own.
            """
            if not state.left:
                return
            if state.sink is not None and state.sink.owns(address):
                state.own_in_row += 1
                if state.own_in_row < PASSING:
                    return
            else:
                state.own_in_row = 0
            if twice is not None:
                again = address == self._last and twice(m.engine.read(address, 2) or b"\0\0")
                self._last = address
                if again:
                    self._last = -1
                    return
            if repetitions:
                if address == self._last and repeats(m.engine.read(address, size) or b""):
                    if state.why_stopped:
                        m.engine.stop()
                    return
                self._last = address
            if delayed is not None:
                if address not in delayed:
                    delayed[address] = self._delay_slots.goes_along(address)
                if delayed[address]:
                    return
            if state.left[-1] <= 0:
                state.note_stop("max_insns")
                m.engine.stop()
            elif state.why_stopped:
                m.engine.stop()
            elif state.due is not None and state.due():
                state.note_stop("interrupt")
                m.engine.stop()
            else:
                state.left[-1] -= 1

        return on_instruction
