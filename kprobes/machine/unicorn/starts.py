"""Starting the engine, and what that takes where a run does not end at its end by itself.

What a start comes to is in RunState: `interrupt`, `failed`, `mended`, `parked`.
"""

from __future__ import annotations

from unicorn import unicorn_const as const

from ...errors import Unsupported
from .aborted import Aborted
from .cpu import UnicornCpu
from .engine import ERRORS, INVALID
from .runstate import RunState

FAILED = {number for number, (access, _) in ERRORS.items() if access in ("read", "write")}
UNALIGNED = const.UC_ERR_READ_UNALIGNED, const.UC_ERR_WRITE_UNALIGNED


class Starts:
    """Starts the engine for a CPU.

    Attributes:
        aborted: translations that a failed fetch has ended.
        dead: the next translation would kill the process (Blocks.fetch_fault_kills). For good.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState) -> None:
        self._cpu = cpu
        self._state = state
        self.aborted = Aborted(cpu.engine, cpu.guest)
        self.dead = False
        # address of a trap where runs start that go on in a delay slot; 0: no run has so far
        self._door = 0
        self._to_trap = not cpu.guest.runs.until_stops
        self._under = b""  # what the trap at RunState.end stands on

    def aside(self, begin: int, until: int) -> int:
        """Run the engine for what is no part of the guest's run; arguments and result as of
        start().

        A thread that stops the run waits meanwhile.
        """
        outside = self._cpu.engine.outside
        if outside is None:
            return self.start(begin, until)
        before = outside.turn(deaf=1)
        try:
            return self.start(begin, until)
        finally:
            outside.turn(before)

    def start(self, begin: int, until: int) -> int:
        """Run the engine.

        Args:
            begin: address where the guest starts, mode bits included.
            until: address where it ends, without mode bits; 0: something else ends it.

        Returns:
            The engine's error number; 0: none.

        Raises:
            Unsupported: the engine cannot run any more.
        """
        cpu, state = self._cpu, self._state
        if self.dead:
            self.check_alive()
        state.failed = None
        state.unfinished = -1
        if until != state.translated_end:
            self.end_elsewhere(until)
        if self._to_trap:
            error = self._start_to_trap(begin, until)
        else:
            # or until an interrupt there: on s390x the first address of a page has one where the
            # page before is not mapped
            outer, state.end = state.end, until or -1
            try:
                error = self._run_engine(begin, until)
            finally:
                state.end = outer
        if error:
            if state.hooked and error in FAILED:
                cpu.put_flags_right()
            self.settle(ERRORS.get(error, ("",))[0])
        if self.dead and state.depth > 1:  # outer runs must not go on either
            cpu.engine.stop()
        return error

    def end_elsewhere(self, until: int) -> None:
        """Drop translations at the end before and at the new one, `until`.

        Translations say where a run ends: those of the end before would stop there for ever, and
        those of the new one may have been made to go on.
        """
        state = self._state
        for place in (state.translated_end, until):
            if place:
                self._cpu.engine.drop_translations(place, place + 1)
        state.translated_end = until

    def settle(self, access: str) -> None:
        """Make sure that the engine can translate after an error, or note that it cannot.

        Args:
            access: what the error stands for: "fetch", "read" ...
        """
        if access == "fetch" and self._cpu.guest.blocks.fetch_fault_kills:
            self.aborted.forget()
            self.dead = not self.aborted.forgotten

    def _start_to_trap(self, begin: int, until: int) -> int:
        """Run the engine until a trap that is put at `until` (Runs.until_stops).

        Meanwhile there is none where the run ends that this one is nested in.
        """
        cpu, state = self._cpu, self._state
        outer, under = state.end, self._under
        trap = cpu.arch.end_bytes(min(cpu.arch.traps.end))
        if under and outer != until:
            cpu.memory.patch(outer, under)
        old = (cpu.engine.read(until, len(trap)) or b"") if until else b""
        put = bool(old) and old != trap
        if put:
            cpu.memory.patch(until, trap)
        state.end = until or -1
        if put:
            self._under = old
        elif outer != until:
            self._under = b""
        try:
            error = self._run_engine(begin, 0)
            return (
                0
                if error == const.UC_ERR_INSN_INVALID and until and cpu.read_pc() == until
                else error
            )
        finally:
            state.end = outer
            self._under = under
            if put:
                cpu.memory.patch(until, old)
            if under and outer != until:
                cpu.memory.patch(outer, trap)

    def _run_engine(self, begin: int, until: int) -> int:
        """Run the engine past ends that mean nothing: another thread's question, a mended access.
        """
        cpu, state = self._cpu, self._state
        start = cpu.engine.start if cpu.pair is None else self._begin
        while cpu.engine.ended(error := start(begin, until)) or (
            state.mended and self._goes_on(error)
        ):
            if state.parked is not None or state.why_stopped or state.unfinished >= 0:
                return 0
            begin = cpu.arch.pointers.same_mode(cpu.regs, cpu.read_pc())
        return error

    def _goes_on(self, error: int) -> bool:
        """Return True for the error of an access that was mended."""
        self._state.mended = False
        return error in UNALIGNED

    def _begin(self, begin: int, until: int) -> int:
        """Start an engine with a next pc, so that a branch still waits whose delay slot is at
        `begin`.

        A start sets the next pc, so it is made at a trap, whose hook sets both.
        """
        cpu, pair = self._cpu, self._cpu.pair
        assert pair is not None
        if pair[0] != begin or pair[1] == begin + cpu.arch.insn_align & cpu.arch.mask:
            return cpu.engine.start(begin, until)
        if not self._door:
            self._door = cpu.memory.map_code()
            cpu.memory.fill(self._door, cpu.memory.page_size)
        waiting = [(begin, pair[1])]

        def on_trap(_uc: int, _user: int) -> bool:
            if pair[0] != self._door or not waiting:
                return False
            pair[0], pair[1] = waiting.pop()
            return True

        hook = cpu.engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(on_trap))
        try:
            return cpu.engine.start(self._door, until)
        finally:
            cpu.engine.unhook(hook)
            if waiting:  # stopped in front of the trap
                pair[0], pair[1] = waiting.pop()

    def check_alive(self) -> None:
        """Check that the engine can run.

        Raises:
            Unsupported: after a failed fetch the next translation would kill the process.
        """
        cpu = self._cpu
        if self.dead:
            raise Unsupported(
                f"Unicorn {cpu.engine.version} cannot run {cpu.arch.name} code any more after a "
                "failed instruction fetch",
                hint="make a new machine",
            )
