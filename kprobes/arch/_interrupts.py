"""The contract between a machine that delivers interrupts and an architecture's rules of how they
are taken.

A machine asks between two instructions of the guest's. An architecture whose CPU has a few lines
writes `InterruptRules`; one with an interrupt controller in its CPU (Armv7-M) writes an
`InterruptController` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from attrs import define, field, frozen

from ..errors import BadArgument
from ..regs import Regs


class ExceptionCpu(Protocol):
    """A CPU between two instructions, as the rules see it.

    Attributes:
        vectors: address of the vector table that the CPU starts by, if it does.
    """

    vectors: int

    @property
    def bits(self) -> int:
        """Bits of a general register."""

    @property
    def regs(self) -> Regs:
        """The registers that programs use."""

    def system(self, name: str) -> int:
        """Read a system register; its name is the architecture manual's in lower case."""

    def set_system(self, name: str, value: int) -> None:
        """Write a system register."""

    def read(self, addr: int, size: int) -> bytes:
        """Read guest memory. Raises GuestFault."""

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory. Raises GuestFault."""


class InterruptController(Protocol):
    """The interrupts of one CPU: which are pending, and how they are taken.

    Attributes:
        state: a value that a snapshot keeps; assigning one restores the controller.
    """

    state: Any

    def line(self, name: int | str) -> int:
        """Return the number of an interrupt that is given by name or number.

        Raises:
            BadArgument: the CPU has no such interrupt.
        """

    def pend(self, line: int) -> None:
        """Make an interrupt pending until the CPU takes it.

        Args:
            line: number of the interrupt, from line().
        """

    def set_level(self, line: int, on: bool) -> None:
        """Note whether a device asks for an interrupt now, which is pending as long as it does.

        Args:
            line: number of the interrupt, from line().
            on: True: the device asks for it.
        """

    @property
    def pending(self) -> bool:
        """True while any interrupt is pending, masked or not."""

    def due(self) -> bool:
        """Whether take() would take an interrupt now.

        Asked in front of each instruction while one is pending: it may read only registers that the
        engine's API has.
        """

    def take(self) -> int | None:
        """Take the most urgent interrupt that is pending and not masked.

        Returns:
            Where the guest goes on, mode bits included; None where nothing is taken and nothing has
            changed.
        """

    def wakes(self) -> bool:
        """Return True where a CPU that waits for an interrupt (WFI, HLT) goes on."""

    def call(self) -> int | None:
        """Take the exception of a supervisor call; regs.pc is behind the instruction.

        Returns:
            The handler's address, mode bits included; None: nothing is done, and the call is left
            to others.
        """

    def leave(self, value: int) -> int | None:
        """Return from an exception, where the guest has branched to `value` (M profile:
        EXC_RETURN).

        Returns:
            Where the guest goes on, mode bits included; None: that is no exception return, and
            nothing has changed.
        """


@frozen(kw_only=True)
class InterruptRules:
    """A CPU with a few interrupt lines.

    Attributes:
        numbers: of the lines that there are.
        names: name -> number.
        masked: (cpu, line) -> whether the CPU does not take it now.
        enter: (cpu, line) -> change the registers as the CPU does, and return the handler's address
            with mode bits; regs.pc is the next instruction.
        order: (pending lines) -> the most urgent first.
        wakes: (cpu, line) -> whether this one ends WFI.
        show: (cpu, pending lines) -> put them where the guest reads them; None: such a place there
            is not.
    """

    numbers: range
    names: Mapping[str, int]
    masked: Callable[[ExceptionCpu, int], bool]
    enter: Callable[[ExceptionCpu, int], int]
    order: Callable[[Iterable[int]], list[int]] = sorted
    wakes: Callable[[ExceptionCpu, int], bool] = lambda cpu, line: True
    show: Callable[[ExceptionCpu, frozenset[int]], None] | None = None


def line_number(name: int | str, numbers: range, names: Mapping[str, int]) -> int:
    """Return the number of an interrupt that is given by its name or number; raise BadArgument
    where the CPU has no such interrupt.

    Args:
        name: a name in any case, or a number.
        numbers: of the interrupts that there are.
        names: name in lower case -> number.
    """
    number = names.get(name.lower()) if isinstance(name, str) else name
    if isinstance(number, int) and not isinstance(number, bool) and number in numbers:
        return number
    import difflib  # errors alone want it

    near = difflib.get_close_matches(str(name), [*names], 1)
    raise BadArgument(
        f"{name!r} is no interrupt of this CPU",
        hint=f"did you mean {near[0]!r}?"
        if near
        else f"give {numbers[0]} to {numbers[-1]}{''.join(f', {each!r}' for each in names)}",
    )


@define(eq=False)
class InterruptLines:
    """An InterruptController for a CPU with a few lines, by its architecture's InterruptRules."""

    _rules: InterruptRules
    _cpu: ExceptionCpu
    _edges: set[int] = field(factory=set)  # pending until taken
    _levels: set[int] = field(factory=set)  # pending as long as a device says so

    @property
    def state(self) -> tuple[frozenset[int], frozenset[int]]:
        """(lines pending until taken, lines that are on), a value for a snapshot; assigning one
        restores it.
        """
        return frozenset(self._edges), frozenset(self._levels)

    @state.setter
    def state(self, then: tuple[frozenset[int], frozenset[int]]) -> None:
        self._edges = set(then[0])
        self._levels = set(then[1])

    def line(self, name: int | str) -> int:
        """Return the number of a line that is given by name or number."""
        return line_number(name, self._rules.numbers, self._rules.names)

    def pend(self, line: int) -> None:
        """Make a line pending until the CPU takes it."""
        self._edges.add(line)

    def set_level(self, line: int, on: bool) -> None:
        """Make a line pending for as long as it is on."""
        if on:
            self._levels.add(line)
        else:
            self._levels.discard(line)

    @property
    def pending(self) -> bool:
        """True while a line is pending."""
        return bool(self._edges or self._levels)

    def due(self) -> bool:
        """Return True where the CPU would take a pending line now."""
        return any(not self._rules.masked(self._cpu, line) for line in self._edges | self._levels)

    def take(self) -> int | None:
        """Take the most urgent line that the CPU accepts: change the registers as the CPU does, and
        return its handler's address, mode bits included; None where all are masked, or none is
        pending.

        A pend() of the line is used up; a level stays pending. The guest can read which lines are
        pending (InterruptRules.show) in any case.
        """
        self._show()
        for line in self._rules.order(self._edges | self._levels):
            if not self._rules.masked(self._cpu, line):
                target = self._rules.enter(self._cpu, line)
                self._edges.discard(line)
                return target
        return None

    def wakes(self) -> bool:
        """Return True where a pending line ends WFI."""
        return any(self._rules.wakes(self._cpu, line) for line in self._edges | self._levels)

    def call(self) -> int | None:
        """Return None: a supervisor call is left to the machine's interrupt_handler."""
        return None

    def leave(self, value: int) -> int | None:
        """Return None: these CPUs return from exceptions by an instruction, not by a branch."""
        return None

    def _show(self) -> None:
        """Let the guest read which lines are pending, where its architecture has a register for
        that.
        """
        if self._rules.show is not None:
            self._rules.show(self._cpu, frozenset(self._edges | self._levels))
