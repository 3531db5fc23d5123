"""The CPU: its registers, by the engine's API and by their words in the engine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress

from ... import native
from ...errors import Unsupported
from ...regs import Regs, RegsMachine
from .engine import Engine, write_batch
from .memory import GuestMemory
from .registers.cells import Cell, find_cells, find_mode
from .registers.stack import StackRegs
from .registers.system import SystemRegisters
from .registers.view import RegisterView
from .registers.windows import callers, find_windowed

UNKNOWN_MODE = b"\2"  # of Cpu.mode_word(): a mode that no target has


class UnicornCpu:
    """The CPU of a guest: its registers, and how the engine is told to change them.

    Attributes:
        memory: the memory that it works on.
        engine: the engine that it is a part of.
        arch: the architecture.
        guest: the engine's row of the architecture.
        regs: its registers, live.
        cells: register -> its word in the engine, of those whose word is known.
        windowed: the same of registers that are in a window.
        read_pc: () -> pc, by the engine's API.
        write_pc: (address) writes pc, but for CODE hooks.
        leave_for: (address) writes pc in CODE hooks.
        view_address: of the words by which the host's library reads registers; 0: there are none.
        pair: words of pc and of the next pc, where the engine has both; None: it has not. A write
            of pc sets both.
    """

    def __init__(self, memory: GuestMemory, machine: RegsMachine) -> None:
        """Find the registers in the engine. `engine.beside` and `engine.rewind` are set, by which
        saved states get what the engine's own contexts lack.

        Args:
            memory: the memory that the CPU works on; its `regs` is set.
            machine: the machine whose CPU it is, for its Regs.
        """
        self.memory = memory
        self.engine = memory.engine
        self.arch = memory.arch
        self.guest = memory.guest
        self.regs = memory.regs = self._make_regs(machine)
        pc = self.register(self.arch.regs.pc), self.arch.bits
        self.read_pc = self.engine.reader(*pc)
        self.write_pc = pc_writer(self.engine, *pc)
        self.leave_for = self.engine.writer(*pc)
        word = self.cells.get(self.arch.regs.pc)
        if self.guest.pc.odd and word is not None:
            self.write_pc = odd_as_well(self.write_pc, word)
            self.leave_for = odd_as_well(self.leave_for, word)
        cell = self.cells.get(self.arch.regs.pc) if self.guest.pc.next else None
        self.pair = None if cell is None else cell.onward(2)
        self.engine.beside = [self.access(name) for name in self.guest.contexts.beside]
        if self.guest.contexts.state is not None:
            self.engine.beside.append(self.guest.contexts.state(self.engine))
        self._hooked_flags = self._find_hooked_flags()
        if self.guest.contexts.rewind is not None:
            self.engine.rewind = self.guest.contexts.rewind(self.engine)

    def _find_hooked_flags(self) -> Callable[[], int] | None:
        """Return a function that reads the right flags behind a hooked instruction that has failed;
        None: the engine's are right, or the right ones are not found.
        """
        hooked = self.guest.faults.hooked_flags
        # where registers are not found the flags are as the engine says
        with suppress(Unsupported):
            return None if hooked is None else hooked.find(self.engine)[0]
        return None

    def put_flags_right(self) -> None:
        """Correct the flags register after an instruction with a CODE hook on it has failed
        (Faults.hooked_flags). Nothing is done where the engine's flags are right, or the right ones
        are not found.
        """
        hooked, flags = self.guest.faults.hooked_flags, self.arch.regs.flags
        if hooked is None or self._hooked_flags is None or flags is None:
            return
        right = self.regs[flags] & ~hooked.mask | self._hooked_flags() & hooked.mask
        if right != self.regs[flags]:
            self.regs[flags] = right

    def register(self, name: str) -> int:
        """Return the engine's number of the register that the architecture calls `name`."""
        return self.guest.registers.number(name)

    def stay(self, pc: int) -> None:
        """Set pc to `pc`, in the present mode. Where the engine has a next pc, that is left alone:
        a branch whose delay slot is at `pc` stays pending.
        """
        if self.pair is None:
            self.write_pc(self.arch.pointers.same_mode(self.regs, pc))
        else:
            self.pair[0] = pc

    def access(self, name: str) -> tuple[Callable[[], int], Callable[[int], None]]:
        """Return (function that reads, function that writes) a register through the engine's API.

        Args:
            name: the architecture's name of the register.
        """
        number, bits = self.register(name), self.arch.regs.widths.get(name, self.arch.bits)
        return self.engine.reader(number, bits), self.engine.writer(number, bits)

    def mode_word(self, pc: Cell | None) -> memoryview | bytes:
        """Return where the engine keeps the mode of the code (Thumb), as a view or bytes of which
        item 0 is the mode.

        Args:
            pc: pc's word in the engine; None: it is not known, and the mode does not matter.

        Returns:
            b"\\0" where the mode does not matter; UNKNOWN_MODE where it is not found: no target has
            that.
        """
        bit, flags = self.guest.pc.mode_bit, self.arch.regs.flags
        if pc is None or bit is None or flags is None:
            return b"\0"
        return (
            find_mode(
                self.engine,
                self.arch.name,
                pc,
                self.register(self.arch.regs.pc),
                self.register(flags),
                bit,
            )
            or UNKNOWN_MODE
        )

    def _make_regs(self, machine: RegsMachine) -> Regs:
        """Make the CPU's registers object, and find where the engine keeps the registers (`cells`,
        `windowed`); `view_address` is set as well.

        Registers are read and written by their words in the engine where these are found to be
        right, else by the engine's API.

        Args:
            machine: the machine whose CPU it is.
        """
        table, engine, bits = self.arch.regs, self.engine, self.arch.bits
        width = {name: table.widths.get(name, bits) for name in table.names}
        number = {
            name: self.register(name)
            for name in table.names
            if name not in self.guest.registers.hidden
        }
        guest, windowed = (
            self.guest,
            {name: number[name] for name in table.names if name in self.guest.registers.windowed},
        )
        other = {
            table.flags,
            *guest.registers.moving,
            *windowed,
            *([] if guest.pc.plain or guest.pc.next else [table.pc]),
        }
        plain = {name: number[name] for name in number if width[name] == bits and name not in other}
        self.cells = find_cells(engine, self.arch.name, plain, bits)
        self.windowed = find_windowed(
            engine, guest, self.arch.name, self.cells, plain, windowed, bits
        )
        # outside of a hook the engine's pc is written through the API
        words = {
            name: cell for name, cell in (self.cells | self.windowed).items() if name != table.pc
        }
        readers = {
            name: words[name].reader()
            if name in words
            else engine.reader(number[name], width[name])
            for name in number
        }
        writers = {
            name: words[name].writer()
            if name in words
            else engine.writer(number[name], width[name])
            for name in number
        }
        for name, find in guest.registers.hidden.items():
            readers[name], writers[name] = find(engine)
        cells = {
            name: (cell.view, cell.index) for name, cell in self.cells.items() if name != table.pc
        }
        sp, abi = self.cells.get(table.sp), self.arch.abi
        regs: Regs
        if sp is not None and abi is not None and not abi.args:
            regs = native.quick(StackRegs, "regs")(
                machine, readers, writers, self.memory, self.memory.blocks, sp, cells
            )
        else:
            regs = native.quick(Regs, "regs")(
                machine, readers, writers, memory=self.memory, cells=cells
            )
        if self.windowed:
            regs.callers_window = callers(
                engine, self.arch.name, self.cells[next(iter(plain))], bits
            )
        if self.arch.linkage is not None and self.arch.linkage.exceptions is not None:
            regs.system_register = SystemRegisters(
                engine.uc,
                guest.registers.constants,
                guest.registers.prefix,
                guest.registers.system,
                _execute_nothing,
            ).read
        self.view_address = 0
        if native.available():
            self._view = RegisterView(
                self.arch, self.cells | self.windowed, self.memory.block_table.address
            )
            self.view_address = self._view.address
            native.see(regs, self.view_address)
        return regs


def _execute_nothing(register: str, value: int | None, code: bytes) -> int:
    """Refuse to execute instructions for a system register: a stack is walked within a hit."""
    raise Unsupported("a system register that only instructions reach")


def odd_as_well(write: Callable[[int], None], word: Cell) -> Callable[[int], None]:
    """Return a function that writes pc, odd addresses too, on a guest where the last bit of an
    address selects no mode.

    Args:
        write: (address) writes pc by the engine's API, which takes that bit for a mode.
        word: pc in the engine.
    """
    view, index = word.view, word.index

    def write_odd(value: int) -> None:
        """Write pc: an even address by the API, and an odd one into pc's word afterwards."""
        write(value & -2)
        if value & 1:
            view[index] = value & (1 << 8 * view.itemsize) - 1

    return write_odd


def pc_writer(engine: Engine, register: int, bits: int) -> Callable[[int], None]:
    """Return a function that writes pc anywhere but in CODE hooks (there: `leave_for`).

    Hazard: after a write by engine.writer() the engine once leaves pc as it is where it should put
    pc right. Outside CODE hooks that comes long after, at an access that fails or is watched.

    Args:
        engine: the engine.
        register: the engine's number of pc.
        bits: width of pc.
    """
    handle = engine.handle
    mask = (1 << bits) - 1
    cell = ctypes.c_uint64()
    registers = (ctypes.c_int * 1)(register)
    values = (ctypes.c_void_p * 1)(ctypes.addressof(cell))

    def write(value: int) -> None:
        """Write pc by the engine's function for several registers, cut to its width."""
        cell.value = value & mask
        write_batch(handle, registers, values, 1)

    return write
