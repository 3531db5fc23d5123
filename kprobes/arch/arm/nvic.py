"""Exceptions of the M profile: Armv7-M Architecture Reference Manual, B1.5 and B3.4 (NVIC).

An interrupt's number is CMSIS's: 0 and more are the board's, -1 is SysTick, -2 PendSV, -5 SVCall,
-14 NMI. Inside of this module exceptions have their architectural numbers, which are 16 more.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from .._calls import ExceptionReturns, Interrupted
from .._interrupts import ExceptionCpu, line_number

NMI, HARD_FAULT, SV_CALL, PEND_SV, SYS_TICK, FIRST = 2, 3, 11, 14, 15, 16
INTERRUPTS = 240  #: of a board, at most
NAMES = {"nmi": NMI - FIRST, "svcall": SV_CALL - FIRST, "pendsv": PEND_SV - FIRST,
         "systick": SYS_TICK - FIRST}
LOWEST = 256  #: a priority below every exception's: that of thread mode
#: priorities that cannot be chosen
FIXED: Mapping[int, int] = {1: -3, NMI: -2, HARD_FAULT: -1}
SPSEL, FPCA = 2, 4  #: bits of CONTROL
ALIGNED = 1 << 9  #: bit of a stacked xPSR: four bytes were left out to align the frame
BASIC, EXTENDED = 0x20, 0x68  #: bytes of a frame, without and with floating point registers
STACKED = ("r0", "r1", "r2", "r3", "r12", "lr")  #: words of a frame, before pc and xPSR


class Nvic:
    """The interrupt controller of an Armv7-M CPU, and how exceptions are entered and left.

    Exceptions have their architectural numbers here, lines CMSIS's, which are 16 less.

    Attributes:
        enabled: exceptions of board interrupts that are enabled.
        active: exceptions whose handlers have begun and not returned.
        priority: exception -> its priority register.
        vectors: address of the vector table (VTOR).
        group_bits: PRIGROUP; bits of a priority above it decide whether an exception preempts.
        ready: exceptions that are pending, by themselves or by a level.
    """

    def __init__(self, cpu: ExceptionCpu, priority_bits: int = 4) -> None:
        """Begin as after a reset, with nothing pending.

        Args:
            cpu: the CPU, whose registers exceptions change.
            priority_bits: bits that each priority register has, 3 to 8.
        """
        self._cpu = cpu
        self._kept = 0xFF << 8 - priority_bits & 0xFF
        self._edges = set[int]()
        self._levels = set[int]()
        self.enabled = set[int]()
        self.active = set[int]()
        self.priority = dict[int, int]()
        self.vectors = cpu.vectors
        self.group_bits = 0
        # a CPU that is reset has no floating point context: frames are basic until the guest makes
        # one
        cpu.set_system("control", cpu.system("control") & ~FPCA)

    @property
    def state(self) -> Any:
        """The controller's registers, and what is pending and active: a value for a snapshot.

        Assigning one restores the controller.
        """
        return (
            frozenset(self._edges),
            frozenset(self._levels),
            frozenset(self.enabled),
            frozenset(self.active),
            dict(self.priority),
            self.vectors,
            self.group_bits,
        )

    @state.setter
    def state(self, then: Any) -> None:
        edges, levels, enabled, active, priority, self.vectors, self.group_bits = then
        self._edges = set(edges)
        self._levels = set(levels)
        self.enabled = set(enabled)
        self.active = set(active)
        self.priority = dict(priority)

    # --- what is pending

    def line(self, name: int | str) -> int:
        """Return the number of a line that is given by name ("systick") or number. Raises
        BadArgument.
        """
        return line_number(name, range(NMI - FIRST, INTERRUPTS), NAMES)

    def pend(self, line: int) -> None:
        """Make a line pending until its exception is entered, or withdraw()."""
        self._edges.add(line + FIRST)

    def withdraw(self, line: int) -> None:
        """Take back pend(), as a write to ICPR or ICSR does; a line that is on stays pending.

        Args:
            line: number of the interrupt, from 0 on for the board's.
        """
        self._edges.discard(line + FIRST)

    def set_level(self, line: int, on: bool) -> None:
        """Make an interrupt pending for as long as its line is on. A line that stays on is pending
        again once its handler has returned.

        Args:
            line: number of the interrupt, from 0 on for the board's.
            on: True: the line is on from now on.
        """
        if on:
            self._levels.add(line + FIRST)
        else:
            self._levels.discard(line + FIRST)

    @property
    def ready(self) -> set[int]:
        """Exceptions that are pending; a level counts while its handler does not run."""
        return self._edges | (self._levels - self.active)

    @property
    def pending(self) -> bool:
        """Whether any exception is pending and enabled, whatever its priority."""
        return any(self._takes(number) for number in self.ready)

    def _takes(self, number: int) -> bool:
        """Whether an exception is enabled; those of the CPU itself always are.

        Args:
            number: of the exception.
        """
        return number < FIRST or number in self.enabled

    def set_priority(self, number: int, value: int) -> None:
        """Write an exception's priority register; only the bits that the CPU has are kept.

        Args:
            number: of the exception.
            value: eight bits.
        """
        self.priority[number] = value & self._kept

    # --- who comes first (B1.5.4)

    def _group(self, number: int) -> int:
        """Return the part of an exception's priority that decides whether it preempts others: the
        bits above `group_bits`, where they are; a FIXED priority, which is negative, whole.

        Args:
            number: of the exception.
        """
        if number in FIXED:
            return FIXED[number]
        return self._cut(self.priority.get(number, 0))

    def _cut(self, priority: int) -> int:
        """Return the part of a priority that decides about preemption, by PRIGROUP."""
        return priority & -(2 << self.group_bits) & 0xFF

    def execution_priority(self) -> int:
        """Return the priority of what runs now; an exception is taken if its own number is
        lower.

        It is the lowest of the active exceptions' priorities, BASEPRI (0: it does not count), 0
        with PRIMASK and -1 with FAULTMASK; LOWEST without any of them.
        """
        out = min((self._group(number) for number in self.active), default=LOWEST)
        if basepri := self._cpu.system("basepri"):
            out = min(out, self._cut(basepri))
        if self._cpu.system("primask") & 1:
            out = min(out, 0)
        if self._cpu.system("faultmask") & 1:
            out = min(out, -1)
        return out

    def first(self) -> int | None:
        """Return the most urgent exception that is pending and enabled; None: there is none."""
        return min(
            (number for number in self.ready if self._takes(number)),
            key=lambda number: (FIXED.get(number, self.priority.get(number, 0)), number),
            default=None,
        )

    def take(self) -> int | None:
        """Enter the most urgent exception if its priority allows it: it is active from now on, and
        no longer pending by itself.

        Returns:
            Its handler's address, bit 0 set; None: nothing is taken, and nothing has changed.

        Raises:
            GuestFault: the vector cannot be read, or the frame cannot be written.
        """
        number = self.first()
        if number is None or self._group(number) >= self.execution_priority():
            return None
        return self._enter(number)

    def due(self) -> bool:
        """Return True where the CPU would take a pending exception now."""
        number = self.first()
        return number is not None and self._group(number) < self.execution_priority()

    def wakes(self) -> bool:
        """Return True where a pending exception ends WFI: as if PRIMASK were clear (B1.5.19)."""
        number = self.first()
        if number is None:
            return False
        active = min((self._group(each) for each in self.active), default=LOWEST)
        basepri = self._cpu.system("basepri")
        return self._group(number) < min(active, self._cut(basepri) if basepri else LOWEST)

    def call(self) -> int | None:
        """Enter the exception of a supervisor call (SVC).

        Returns:
            Its handler's address, bit 0 set; None: its priority forbids it, which would be a
            HardFault.

        Raises:
            GuestFault: the vector cannot be read, or the frame cannot be written.
        """
        if self._group(SV_CALL) >= self.execution_priority():
            return None
        return self._enter(SV_CALL)

    # --- entry and return

    def _enter(self, number: int) -> int:
        """Enter an exception: push a frame, set LR to EXC_RETURN, change to handler mode and the
        main stack (B1.5.6 PushStack, ExceptionTaken). pc is left to the caller. The exception is
        active from now on, and no longer pending by itself.

        Args:
            number: of the exception.

        Returns:
            The address of its handler, bit 0 set.

        Raises:
            GuestFault: the vector cannot be read, or the frame cannot be written.
        """
        cpu, regs = self._cpu, self._cpu.regs
        handler = int.from_bytes(cpu.read(self.vectors + 4 * number, 4), "little")
        control, xpsr = cpu.system("control"), regs["xpsr"]
        thread, floats = not xpsr & 0x1FF, bool(control & FPCA)
        process = thread and bool(control & SPSEL)
        sp = cpu.system("psp" if process else "msp")
        frame = sp - (EXTENDED if floats else BASIC) & ~7
        left_out = ALIGNED if sp & 4 else 0
        data = struct.pack(
            "<8I",
            *(regs[name] for name in STACKED),
            regs.pc & ~1,
            xpsr & ~ALIGNED | left_out,
        )
        if floats:
            data += struct.pack("<8Q2I", *(regs[f"d{n}"] for n in range(8)), regs["fpscr"], 0)
        cpu.write(frame & 0xFFFFFFFF, data)
        cpu.set_system("psp" if process else "msp", frame)
        regs["xpsr"] = xpsr & 0xF8000000 | 1 << 24 | number  # ITSTATE is clear
        cpu.set_system("ipsr", number)
        cpu.set_system("control", control & ~(SPSEL | FPCA))
        regs["lr"] = (
            0xFFFFFFE1 | (0 if floats else 0x10) | (8 if thread else 0) | (4 if process else 0)
        )
        self._edges.discard(number)
        self.active.add(number)
        return handler | 1

    def leave(self, value: int) -> int | None:
        """Return from an exception: pop its frame into the registers; the exception is no longer
        active, and FAULTMASK is cleared unless it was NMI (B1.5.8 ExceptionReturn, PopStack).

        Args:
            value: EXC_RETURN, which the guest has branched to.

        Returns:
            The address where the guest goes on, bit 0 set. None: the value is no EXC_RETURN, or the
            exception in xPSR is not active; nothing is changed.

        Raises:
            GuestFault: the frame cannot be read.
        """
        cpu, regs = self._cpu, self._cpu.regs
        number = regs["xpsr"] & 0x1FF
        if value < 0xFF000000 or number not in self.active:
            return None
        thread, process, floats = bool(value & 8), bool(value & 4), not value & 0x10
        frame = cpu.system("psp" if process else "msp")
        words = struct.unpack("<8I", cpu.read(frame, BASIC))
        if floats:
            floating = struct.unpack("<8Q2I", cpu.read(frame + BASIC, EXTENDED - BASIC))
            for n in range(8):
                regs[f"d{n}"] = floating[n]
            regs["fpscr"] = floating[8]
        for name, word in zip(STACKED, words, strict=False):
            regs[name] = word
        xpsr = words[7]
        self.active.discard(number)
        if number != NMI:
            cpu.set_system("faultmask", 0)
        sp = frame + (EXTENDED if floats else BASIC) + (4 if xpsr & ALIGNED else 0)
        cpu.set_system("psp" if process else "msp", sp & 0xFFFFFFFF)
        cpu.set_system("ipsr", 0 if thread else xpsr & 0x1FF)
        regs["xpsr"] = xpsr & ~ALIGNED & ~0x1FF | (0 if thread else xpsr & 0x1FF) | 1 << 24
        control = cpu.system("control") & ~(SPSEL | FPCA)
        cpu.set_system("control", control | (SPSEL if process else 0) | (FPCA if floats else 0))
        return int(words[6]) | 1


def _interrupted(
    value: int, sp: int, system: Callable[[str], int], load: Callable[[int], int]
) -> Interrupted | None:
    """Read the frame of an exception (B1.5.8 PopStack) without returning from it.

    Args:
        value: EXC_RETURN.
        sp: the stack pointer when the handler returns: of the main stack, which handlers have.
        system: (name) -> a system register's value.
        load: (address) -> a word of memory.

    Returns:
        None: the frame has more than Armv7-M's (bit 5: the additional state of Armv8-M).
    """
    if not value & 0x20:
        return None
    frame = system("psp") if value & 4 else sp
    size = BASIC if value & 0x10 else EXTENDED
    pc = load(frame + 0x18 & 0xFFFFFFFF)
    xpsr = load(frame + 0x1C & 0xFFFFFFFF)
    return Interrupted(
        pc=pc & ~1,
        sp=frame + size + (4 if xpsr & ALIGNED else 0) & 0xFFFFFFFF,
        saved={name: frame + 4 * n & 0xFFFFFFFF for n, name in enumerate(STACKED)},
    )


#: EXC_RETURN is 0xFFFFFFxx with bit 1 clear; 0xFFFFFFFF is what LR has after a reset. FNC_RETURN of
#: Armv8-M (0xFEFFFFFE) returns from a call.
RETURNS = ExceptionReturns(mask=0xFFFFFF02, value=0xFFFFFF00, interrupted=_interrupted)
