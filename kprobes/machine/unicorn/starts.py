"""Starting the engine, so that it stops at the address where a run ends.

Some engines do not stop there by themselves. What happened during a start is in RunState:
`interrupt`, `failed`, `mended`, `parked`.
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
    """Starts the engine for a CPU, and starts it again where it has stopped for no reason of the
    guest's.

    Attributes:
        aborted: has the engine forget translations that a failed fetch has ended.
        dead: the next translation would kill the process (Blocks.fetch_fault_kills), so the engine
            is never started again.
        to_trap: a trap ends runs; the engine does not end them by itself (Runs.until_stops).
    """

    def __init__(self, cpu: UnicornCpu, state: RunState) -> None:
        """Prepare; the engine is not started.

        Args:
            cpu: whose engine is started.
            state: of its runs.
        """
        self._cpu = cpu
        self._state = state
        self.aborted = Aborted(cpu.engine, cpu.guest)
        self.dead = False
        # address of a page of traps, where the engine starts if the guest goes on in a delay slot;
        # 0: it is not mapped yet
        self._door = 0
        self.to_trap = not cpu.guest.runs.until_stops
        self._trap = b"" if not self.to_trap else cpu.arch.end_bytes(min(cpu.arch.traps.end))
        self._start = cpu.engine.start if cpu.pair is None else self._begin
        self._under = b""  # the guest's bytes beneath the trap at RunState.end; b"": there is none

    def start_outside_of_run(self, begin: int, until: int) -> int:
        """Run the engine for something that is no part of the guest's run, as start() does.
        Requests of other threads to stop the run wait meanwhile.

        Args:
            begin: address where the engine starts, mode bits included.
            until: address where it ends; 0: something else ends it.

        Returns:
            The engine's error number; 0: none.

        Raises:
            Unsupported: the engine cannot run any more.
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
        """Run the engine until it has stopped for a reason of the guest's.

        RunState.failed and `unfinished` are forgotten first. A nested run's end takes the place of
        the outer one's meanwhile.

        Args:
            begin: address where the guest starts, mode bits included.
            until: address where it ends, without mode bits; 0: something else ends it.

        Returns:
            The engine's error number; 0: none.

        Raises:
            Unsupported: the engine cannot run any more.
        """
        state = self._state
        if self.dead:
            self.check_alive()
        state.failed = None
        state.unfinished = -1
        if until != state.translated_end:
            self.end_elsewhere(until)
        if self.to_trap:
            error = self._start_to_trap(begin, until)
        else:
            # The interrupt hook looks at state.end, too: on s390x the first address of a page
            # raises an interrupt where the page before is not mapped.
            outer, state.end = state.end, until or -1
            try:
                error = self._start(begin, until)
                if error or state.mended or state.depth > 1:
                    error = self._go_on(error, until)
            finally:
                state.end = outer
        return self._settled(error)

    def go_on_after(self, error: int, until: int) -> int:
        """Do for an outermost run what start() does behind the engine's first start, which the
        caller has made itself. RunState.end becomes -1: no run has an end any more.

        Args:
            error: the engine's error number of that start; 0: none.
            until: address where the run ends, without mode bits.

        Returns:
            The engine's error number; 0: none.
        """
        try:
            if error or self._state.mended:
                error = self._go_on(error, until)
            if self.to_trap:
                error = self.unless_at_trap(error, until)
        finally:
            self._state.end = -1
        return self._settled(error)

    def is_usual(self, begin: int, until: int) -> bool:
        """Return True if one start of the engine may be enough for a run, with nothing to do before
        it: no branch is pending where the run begins, and where a trap ends runs, one is at `until`
        already.

        Args:
            begin: address where the guest starts, mode bits included.
            until: address where the run ends, without mode bits.
        """
        cpu = self._cpu
        if cpu.pair is not None and self._is_pending(begin):
            return False
        if not self.to_trap:
            return True
        size = len(self._trap)
        block = cpu.memory.blocks.find(until, size)
        if block is None:
            return False
        at = until - block.start
        return bytes(block.view[at : at + size]) == self._trap

    def unless_at_trap(self, error: int, until: int) -> int:
        """Return the engine's error number; 0 where it is that of an invalid instruction, and the
        guest stands at the trap that ends the run.

        Args:
            error: the engine's error number; 0: none.
            until: address of that trap; 0: there is none.
        """
        at_trap = error == const.UC_ERR_INSN_INVALID and until and self._cpu.read_pc() == until
        return 0 if at_trap else error

    def _settled(self, error: int) -> int:
        """Put right what an error leaves wrong in the engine after a start: flags, and what a
        failed fetch leaves behind (forget_failed_fetch()). If the engine is `dead` by then, and
        runs are nested, it is stopped for the outer ones, too.

        Args:
            error: the engine's error number; 0: none.

        Returns:
            The same number.
        """
        cpu, state = self._cpu, self._state
        if error:
            if state.hooked and error in FAILED:
                cpu.put_flags_right()
            self.forget_failed_fetch(ERRORS.get(error, ("",))[0])
        if self.dead and state.depth > 1:  # outer runs must not go on either
            cpu.engine.stop()
        return error

    def end_elsewhere(self, until: int) -> None:
        """Have the engine end runs at `until` from now on, by dropping translations at the end
        before and at the new one.

        Translations say where a run ends: those of the end before would stop there for ever, and
        those of the new one may have been made to go on.

        Args:
            until: address where runs end, without mode bits; 0: at no address.
        """
        state = self._state
        for place in (state.translated_end, until):
            if place:
                self._cpu.engine.drop_translations(place, place + 1)
        state.translated_end = until

    def forget_failed_fetch(self, access: str) -> None:
        """Keep the engine usable after a failed access: have it forget the translation that a
        failed fetch has ended, where its next translation would kill the process otherwise. If that
        is not possible, set `dead`.

        Args:
            access: what has failed: "fetch", "read" and so on, as in Fault.
        """
        if access == "fetch" and self._cpu.guest.blocks.fetch_fault_kills:
            self.aborted.forget()
            self.dead = not self.aborted.forgotten

    def _start_to_trap(self, begin: int, until: int) -> int:
        """Run the engine until a trap that is put at `until` for this time (Runs.until_stops). None
        is put where nothing is mapped, or where one is there already, which ends the run as well.

        If this run is nested, the trap at the end of the outer one is taken out meanwhile.

        Args:
            begin: address where the guest starts, mode bits included.
            until: address where it ends, without mode bits; 0: something else ends it.

        Returns:
            The engine's error number; 0: none, or it has come to the trap.
        """
        cpu = self._cpu
        state = self._state
        outer = state.end
        under = self._under
        trap = self._trap
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
            return self.unless_at_trap(self._go_on(self._start(begin, 0), 0), until)
        finally:
            state.end = outer
            self._under = under
            if put:
                cpu.memory.patch(until, old)
            if under and outer != until:
                cpu.memory.patch(outer, trap)

    def _go_on(self, error: int, until: int) -> int:
        """Start the engine again, as often as it has stopped for no reason of the guest's.

        It stops so where a nested run has left its error behind (Engine.ended), and after a mended
        access (RunState.mended, which is forgotten).

        Args:
            error: the engine's error number; 0: none.
            until: address where the run ends, without mode bits; 0: something else ends it.

        Returns:
            The engine's error number when it has stopped for good. 0 where it would be started
            again, but the run is to stop or raise first, or a displaced instruction is
            `unfinished`.
        """
        cpu, state = self._cpu, self._state
        while cpu.engine.ended(error) or (state.mended and self._goes_on(error)):
            if state.parked is not None or state.why_stopped or state.unfinished >= 0:
                return 0
            begin = cpu.arch.pointers.same_mode(cpu.regs, cpu.read_pc())
            error = self._start(begin, until)
        return error

    def _goes_on(self, error: int) -> bool:
        """Forget that an unaligned access was served (RunState.mended), and return True if an error
        is that access's: the engine is to be started again.

        Args:
            error: the engine's error number.
        """
        self._state.mended = False
        return error in UNALIGNED

    def _is_pending(self, begin: int) -> bool:
        """Return True if the guest stands at `begin`, in the delay slot of a branch.

        Only on an engine that has a next pc.

        Args:
            begin: address, mode bits included.
        """
        pair, arch = self._cpu.pair, self._cpu.arch
        assert pair is not None
        return bool(pair[0] == begin and pair[1] != begin + arch.insn_align & arch.mask)

    def _begin(self, begin: int, until: int) -> int:
        """Start an engine that has a next pc, so that a pending branch stays pending.

        A start sets the next pc as well, so the engine is started at a trap, in a page that the
        first such start maps; the trap's hook sets both. Without a pending branch it is started as
        it is.

        Args:
            begin: address where the guest starts, which may be in the delay slot of that branch.
            until: address where it ends, without mode bits; 0: something else ends it.

        Returns:
            The engine's error number; 0: none.

        Raises:
            NoMemory: there is no room for the page of traps.
        """
        cpu, pair = self._cpu, self._cpu.pair
        assert pair is not None
        if not self._is_pending(begin):
            return cpu.engine.start(begin, until)
        if not self._door:
            self._door = cpu.memory.map_code()
            cpu.memory.fill(self._door, cpu.memory.page_size)
        waiting = [(begin, pair[1])]

        def on_trap(_uc: int, _user: int) -> bool:
            """Send the guest from the page of traps to its delay slot. False: it is another
            trap.
            """
            if pair[0] != self._door or not waiting:
                return False
            pair[0], pair[1] = waiting.pop()
            return True

        hook = cpu.engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(on_trap))
        try:
            return cpu.engine.start(self._door, until)
        finally:
            cpu.engine.unhook(hook)
            if waiting:  # the engine was stopped before the trap
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
