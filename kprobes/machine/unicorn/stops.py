"""Breakpoints that the engine does not report: CODE hooks where they stand.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from unicorn import unicorn_const as const

from ...regs import Regs
from .bounds import Bounds
from .cpu import UnicornCpu
from .engine import CALL, WRITE, address_of
from .host.marks import MARKED, STAY, StopMarks, host_function
from .runstate import RunState

MOST = 16  # hooks on single instructions
FEW = 4  # hooks on longer lines
LONGEST = 1 << 19  # bytes of a line


class ArrivalSink(Protocol):
    """The listener that is told of arrivals.

    Attributes:
        trap: given the registers, returns True where the guest goes on as they say; None: nothing
            listens now.
    """

    @property
    def trap(self) -> Callable[[Regs], bool] | None: ...


class HookedStops:
    """Addresses where the guest stops, by hooks of the engine.

    The engine walks its list of hooks at every instruction that one of them is on, and at every
    translation: 1 to 4 ns each. So there are few. Each is on a line of code, which is but one
    instruction as long as there are few stops; lines become longer when there are more. Of the
    instructions in a line host code passes on those that are marked (host/marks.py).
    """

    def __init__(
        self, cpu: UnicornCpu, state: RunState, bounds: Bounds, told: ArrivalSink, most: int = MOST
    ) -> None:
        """Prepare; there are no stops.

        Args:
            cpu: the CPU that is to stop.
            state: of its runs.
            bounds: of its runs; their hooks may let an instruction pass.
            told: its trap() is called where the guest arrives at a stop.
            most: the most hooks on single instructions; beyond, lines become longer.
        """
        self._cpu = cpu
        self._state = state
        self._bounds = bounds
        self._told = told
        self._most = most
        self._stops: set[int] = set()
        self._callback = MARKED(self._on_stop())
        self._hook: Any = host_function() or CALL(self._on_instruction())
        self._about = address_of(self._callback), WRITE, cpu.register(cpu.arch.regs.pc)
        self._shortest = self._line = cpu.arch.insn_align
        self._hooks: dict[int, int] = {}  # start of a line -> its hook
        # and its marks, also of those without a hook now, to be used again
        self._marks: dict[int, StopMarks] = {}
        self._since: dict[int, int] = {}  # and how often bounds were put before it was added
        self._serving = 0  # callbacks under way
        self._empty: set[int] = set()  # lines that were left by all stops meanwhile

    def add(self, addr: int) -> None:
        """Report the guest's arrival at `addr` from now on. Nothing is done if it is reported
        already. Where there are too many hooks by then, lines become longer, but not within a hook.
        """
        if addr in self._stops:
            return
        self._stops.add(addr)
        self._place(addr)
        self._cpu.engine.drop_translations(addr, addr + self._shortest)
        while (
            len(self._hooks) > (self._most if self._line == self._shortest else FEW)
            and self._line < LONGEST
            and not self._serving
        ):
            self._set_line(self._line * 4)

    def remove(self, addr: int) -> None:
        """Stop reporting the guest's arrival at `addr`; nothing is done if it is not reported.

        Hooks that are not needed any more are deleted: now, or behind the hook that is being
        served. Lines become one instruction long again where few stops are left.
        """
        if addr not in self._stops:
            return
        self._stops.discard(addr)
        start = addr & -self._line
        self._marks[start].put(addr, False)
        if not self._marks[start]:
            self._empty.add(start)
        if not self._serving:
            self._tidy()
            if self._line > self._shortest and len(self._stops) <= self._most // 2:
                self._set_line(self._shortest)

    def _place(self, addr: int) -> None:
        """Mark the instruction at `addr` as a stop, and add a hook on its line if there is none."""
        start = addr & -self._line
        if start not in self._marks:
            self._marks[start] = StopMarks(start, self._line, *self._about)
            self._cpu.engine.keep((self._marks[start], self._callback))
        marks = self._marks[start]
        marks.put(addr, True)
        if start not in self._hooks:
            hook = self._cpu.engine.hook
            self._since[start] = self._bounds.installed
            self._hooks[start] = hook(
                const.UC_HOOK_CODE, self._hook, start, start + self._line - 1, marks.data
            )

    def _tidy(self) -> None:
        """Delete the hooks of lines without stops. Not while a hook is served: the engine would
        call the next one on its instruction, too.
        """
        for start in self._empty:
            if not self._marks[start] and start in self._hooks:
                self._unhook(start)
        self._empty.clear()

    def _unhook(self, start: int) -> None:
        """Delete the hook of a line, and drop the line's translations.

        Args:
            start: address of the line.
        """
        m = self._cpu
        m.engine.unhook(self._hooks.pop(start))
        # where nothing is mapped, the engine drops nothing behind it either
        for place in range(start, start + self._line, m.memory.page_size):
            m.engine.drop_translations(place, place + min(self._line, m.memory.page_size))

    def _set_line(self, line: int) -> None:
        """Change the length of lines, and hook all stops anew.

        Args:
            line: bytes of a line from now on, a power of two.
        """
        for start in [*self._hooks]:
            self._unhook(start)
        self._marks = {}
        self._line = line
        for addr in self._stops:
            self._place(addr)

    def _on_stop(self) -> Callable[[int, int], int]:
        """Make the function that marked instructions call; it reports an arrival at a stop to the
        core.

        Nothing is reported where the counting hook is about to stop the run in front of the
        instruction. The function never raises: what the core raises, the run raises.

        Returns:
            (engine's handle, address) -> where the guest goes on; STAY where it goes on in place.
        """
        state, regs, told = self._state, self._cpu.regs, self._told

        def on_stop(_uc: int, address: int) -> int:
            """Report the guest at a stop to the core, and return where it goes on. It never raises:
            what is raised is kept for the run.

            The result is STAY where the guest goes on in place. It is STAY, and nothing is
            reported, where the counting hook is about to stop the run in front of this instruction.
            """
            if (
                self._bounds.stops(address)
                and self._since[address & -self._line] != self._bounds.installed
            ):
                # its hook, where it is the older one, was called and has let this instruction pass
                return STAY
            self._serving += 1
            regs.reported, to = address, STAY
            try:
                if told.trap is not None and told.trap(regs):
                    to = address if regs.target is None else regs.target
            except BaseException as error:
                if regs.target is not None:
                    to = regs.target
                state.park(error)
            regs.reported = regs.target = None
            self._serving -= 1
            if self._empty and not self._serving:
                self._tidy()
            return to

        return on_stop

    def _on_instruction(self) -> Callable[[int, int], None]:
        """Make the hook that all instructions of a line call, where there is no host code that
        looks marks up.

        Returns:
            (engine's handle, address) -> None.
        """
        on_stop, stops, leave_for = self._on_stop(), self._stops, self._cpu.leave_for

        def on_instruction(uc: int, address: int) -> None:
            """Report the guest at a stop, and write pc where it is sent elsewhere; nothing at other
            instructions.
            """
            if address in stops and (to := on_stop(uc, address)) != STAY:
                leave_for(to)

        return on_instruction
