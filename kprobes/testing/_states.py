"""Makes random register states, and puts a CPU back into a state that it had."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from attrs import frozen

from ..errors import BadArgument
from ..machine.unicorn.machine import UnicornMachine
from ..regs import Regs

MAX_FLAG_STATES = 64  # all combinations of six flags; beyond that a random choice


@frozen
class StartState:
    """A register state from which runs begin.

    Attributes:
        thaw: writes it into the CPU again.
        before: register name -> value.
        target: where the instruction's simulation goes from it, mode bits included; None: it is not
            simulated, or faults.
    """

    thaw: Callable[[], None]
    before: dict[str, int]
    target: int | None


class Spy:
    """Registers of a guest that note what is read through them.

    Args:
        regs: the registers that are read and written.

    Attributes:
        read_names: names of the registers that were read.
        read_memory: (start, end) of each range of memory that was read.
    """

    def __init__(self, regs: Regs) -> None:
        self._regs = regs
        self.read_names: set[str] = set()
        self.read_memory: list[tuple[int, int]] = []

    def __getitem__(self, name: str) -> int:
        """Read a register, and note its name."""
        table = self._regs.arch.regs
        self.read_names.add(table.aliases.get(name, name))
        return self._regs[name]

    def __setitem__(self, name: str, value: int) -> None:
        self._regs[name] = value

    def word(self, addr: int, size: int = 0) -> int:
        """Read a word of guest memory, and note its range.

        Args:
            addr: of the word.
            size: bytes; 0: of a general register.
        """
        self.read_memory.append((addr, addr + (size or self._regs.arch.bits // 8)))
        return self._regs.word(addr, size)

    def read(self, addr: int, size: int) -> bytes:
        """Read `size` bytes of guest memory at `addr`, and note the range."""
        self.read_memory.append((addr, addr + size))
        return self._regs.read(addr, size)

    @property
    def flags(self) -> int:
        """The flags register; reading it is noted."""
        self.read_names.add(self._regs.arch.regs.flags or "")
        return self._regs.flags

    @flags.setter
    def flags(self, value: int) -> None:
        self._regs.flags = value

    @property
    def sp(self) -> int:
        """The stack pointer."""
        return self._regs.sp

    @sp.setter
    def sp(self, value: int) -> None:
        self._regs.sp = value

    @property
    def pc(self) -> int:
        """The program counter."""
        return self._regs.pc

    @pc.setter
    def pc(self, value: int) -> None:
        self._regs.pc = value

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the registers; nothing is noted."""
        return getattr(self._regs, name)


class Freezer:
    """Saves CPU states and restores them.

    It uses the engine's contexts where these work (they have hidden state, too), else registers.

    Args:
        machine: whose CPU it is.
    """

    def __init__(self, machine: Any) -> None:
        self._regs: Regs = machine.regs
        self._engine = machine.parts.memory.engine if isinstance(machine, UnicornMachine) else None
        self._contexts: list[Any] = []
        if self._engine is not None and not self._contexts_work():
            self._engine = None

    def freeze(self) -> Callable[[], None]:
        """Save the registers as they are now; return a function that restores them, any number of
        times, until forget().
        """
        if self._engine is None:
            values = {name: self._regs[name] for name in self._regs.names}
            return lambda: self._write(values)
        context, engine = self._engine.save(), self._engine
        self._contexts.append(context)
        return lambda: engine.restore(context)

    def forget(self) -> None:
        """Discard all saved states; functions that freeze() has returned must not be called any
        more.
        """
        while self._contexts and self._engine is not None:
            self._engine.discard(self._contexts.pop())

    def _write(self, values: Mapping[str, int]) -> None:
        """Write registers, pc last; those that hold their value already are left alone.

        Args:
            values: register name -> value, of all registers.
        """
        table = self._regs.arch.regs
        for name, value in values.items():
            if name != table.pc and self._regs[name] != value:
                self._regs[name] = value
        self._regs.go(values[table.pc])

    def _contexts_work(self) -> bool:
        """Whether the engine's contexts work: restoring one brings a changed register back.

        The register has its old value afterwards in either case.
        """
        name = self._regs.arch.abi.returns[0] if self._regs.arch.abi else self._regs.arch.regs.sp
        value = self._regs[name]
        assert self._engine is not None
        context = self._engine.save()
        self._regs[name] = value ^ 0x10
        self._engine.restore(context)
        self._engine.discard(context)
        came_back = self._regs[name] == value
        self._regs[name] = value
        return came_back


class States:
    """Makes register states of values that matter.

    They are pointers into `data`, addresses of landings (traps, to which an instruction may jump),
    small, large and arbitrary numbers.
    """

    def __init__(
        self,
        regs: Regs,
        data: tuple[int, int],
        landing: tuple[int, int],
        flags: Mapping[str, int],
        keep: set[str],
    ) -> None:
        """Note what values may be.

        Args:
            regs: registers that states are put into; the present flags are the usual ones.
            data: (start, end) of the memory that pointers point into.
            landing: (start, end) of code to jump to.
            flags: register -> mask of its condition flags.
            keep: registers that are never written.
        """
        table = regs.arch.regs
        self._regs = regs
        self._flags = dict(flags)
        self._data = data
        self._landing = landing
        kept = {table.aliases.get(name, name) for name in keep} | {
            table.pc,
            table.sp,
            table.flags,
            *flags,
        }
        self._names = [
            name for name in table.names if name not in kept and table.widths.get(name) != 0
        ]
        self._width = {name: table.widths.get(name, regs.arch.bits) for name in self._names}
        self._usual = {name: regs[name] for name in flags}

    def randomize(
        self, rng: random.Random, values: Mapping[str, int] | None = None, *, landing: bool = True
    ) -> None:
        """Put a random state into the registers. pc and those to be left alone are not written; one
        that does not take its value keeps the one that it has.

        Args:
            rng: source of random numbers.
            values: register name -> the value that it gets instead of a random one; None: none
                does.
            landing: True: some registers get an address of landing code, to jump to.
        """
        for name in self._names:
            with suppress(BadArgument):  # a segment register, say, takes some values only
                self._regs[name] = self._value(rng, self._width[name], landing)
        start, end = self._data
        middle = (start + end) // 2
        self._regs.sp = middle + rng.randrange(-64, 64) * 16
        for name, value in {**self._random_flags(rng), **(values or {})}.items():
            self._regs[name] = value

    def special(self, names: set[str]) -> list[dict[str, int]]:
        """Return states in which one register has a value that decides something.

        Such are 0, 1, only high or low bits, a sign. Registers that tests leave alone, or that are
        wider than an address, are skipped.

        Args:
            names: of the registers.

        Returns:
            {register: value} of one register each.
        """
        out = []
        for name in sorted(names & set(self._names)):
            width = self._width[name]
            values = {
                0,
                1,
                1 << width - 1,
                (1 << width) - 1,
                1 << width // 2,
                (1 << width // 2) - 1,
                1 << width // 2 - 1,
            }
            out += (
                [{name: value} for value in sorted(values)] if width <= self._regs.arch.bits else []
            )
        return out

    def flag_states(self, rng: random.Random) -> list[dict[str, int]]:
        """Return every combination of the condition flags; a random choice where they are too many.

        Args:
            rng: source of the random choice.

        Returns:
            register -> value, at most MAX_FLAG_STATES times.
        """
        bits = [
            (name, 1 << n)
            for name, mask in self._flags.items()
            for n in range(mask.bit_length())
            if mask >> n & 1
        ]
        if 1 << len(bits) > MAX_FLAG_STATES:
            return [self._random_flags(rng) for _ in range(MAX_FLAG_STATES)]
        return [
            self._flag_values({bit for n, bit in enumerate(bits) if pattern >> n & 1})
            for pattern in range(1 << len(bits))
        ]

    def _flag_values(self, on: set[tuple[str, int]]) -> dict[str, int]:
        """Return the value of each register with condition flags; other bits are the usual ones.

        Args:
            on: the condition flags that are set: (register name, bit as a mask); all others are
                clear.

        Returns:
            name -> value.
        """
        values = {name: usual & ~self._flags[name] for name, usual in self._usual.items()}
        for name, bit in on:
            values[name] |= bit
        return values

    def _random_flags(self, rng: random.Random) -> dict[str, int]:
        """Return a random value of each register with condition flags; other bits are the usual
        ones.

        Returns:
            name -> value.
        """
        return {
            name: usual & ~self._flags[name] | rng.getrandbits(64) & self._flags[name]
            for name, usual in self._usual.items()
        }

    def _value(self, rng: random.Random, width: int, landing: bool) -> int:
        """Draw a random value for a register.

        Of 16 draws seven are a pointer into the data, one an address to jump to, the others small,
        large or arbitrary numbers.

        Args:
            rng: source of random numbers.
            width: bits of the register; one narrower than an address gets no pointer into the data.
            landing: True: draw addresses to jump to, with random mode bits; False: draw pointers
                instead.
        """
        kind, half = rng.randrange(16), width // 2
        if (kind < 7 or (kind == 7 and not landing)) and width >= self._regs.arch.bits:
            start, end = self._data
            step = 16 if rng.randrange(4) else 1
            return (start + end) // 2 + rng.randrange(-32, 32) * 16 + rng.randrange(0, 16, step)
        if kind == 7:
            place = self._landing[0] + rng.randrange(self._landing[1] - self._landing[0]) & -64
            modes = self._regs.arch.pointers.mode_bits
            return (place | rng.getrandbits(8) & modes if modes else place) & (1 << width) - 1
        if kind < 10:
            return 0 if kind == 8 else rng.randrange(-16, 17) & (1 << width) - 1
        if kind == 10:
            return rng.choice([1 << width - 1, (1 << width - 1) - 1, (1 << width) - 1, 1 << half])
        if kind < 13:
            return rng.getrandbits(half) << (half if kind == 11 else 0)
        return rng.getrandbits(width)
