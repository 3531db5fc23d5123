"""The CPU: its registers, by the engine's API and by their words in the engine, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock, get_ident
from time import sleep
from typing import Any

import unicorn

from ...arch._base import Arch
from ...regs import Regs
from .guests.guest import Guest
from .host.callsites import FollowedCalls
from .host.hostcode import DISTURBED, TASKS
from .memory import Memory
from .registers.cells import find_cells
from .registers.stack import StackRegs
from .registers.windows import find_windowed

REASONS = "", "signal", "stop", "max_insns", "timeout"  #: why a run stops; of several the last counts
PASSING, AT_LEAST, AT_MOST = 50e-6, 1, 200  # seconds, and how many times these: see _let_pass()


class Processor(Memory):
    """Memory and the CPU that works on it."""

    cpus = 1
    _depth = 0  # nested runs, see Runs

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self._cpu_task: Callable[[Regs], Any] | None = None
        self._why_stopped = ""
        self._stopping = RLock()  # held from saying why until the engine knows; reentrant, for Ctrl-C
        self._runner = 0  # thread of the run
        self._disturbed = False  # the run was stopped, or another one was nested in it, since the last service
        self._parked: BaseException | None = None
        self._regs = self._make_regs()
        self._followed = FollowedCalls(self)
        self._write_pc = self._engine.writer(self._register(self.arch.regs.pc), self.arch.bits)
        self._read_pc = self._engine.reader(self._register(self.arch.regs.pc), self.arch.bits)
        self._engine.beside = [self._access(name) for name in guest.outside_context]
        if guest.context is not None:
            self._engine.beside.append(guest.context(self._engine))
        if guest.rewind is not None:
            self._engine.rewind = guest.rewind(self._engine)

    @property
    def regs(self) -> Regs:
        """The CPU's registers, live."""
        return self._regs

    @property
    def cpu_regs(self) -> list[Regs]:
        """Registers of every CPU."""
        return [self._regs]

    @property
    def cpu_task(self) -> Callable[[Regs], Any] | None:
        """regs -> identity of the running guest task; None: one task per CPU."""
        return self._cpu_task

    @cpu_task.setter
    def cpu_task(self, task: Callable[[Regs], Any] | None) -> None:
        self._cpu_task = task
        self._followed.close(TASKS, task is not None)

    def _register(self, name: str) -> int:
        constant = f"UC_{self._guest.prefix}_REG_{self._guest.registers.get(name, name.upper())}"
        return int(getattr(self._guest.constants, constant))

    def _access(self, name: str) -> tuple[Callable[[], int], Callable[[int], None]]:
        """Reader and writer of a register, through the engine's API."""
        number, bits = self._register(name), self.arch.regs.widths.get(name, self.arch.bits)
        return self._engine.reader(number, bits), self._engine.writer(number, bits)

    def _make_regs(self) -> Regs:
        """Registers by the engine's API, and by their words in the engine where these are found to be true."""
        table, engine, bits = self.arch.regs, self._engine, self.arch.bits
        width = {name: table.widths.get(name, bits) for name in table.names}
        number = {name: self._register(name) for name in table.names if name not in self._guest.hidden}
        guest, windowed = self._guest, {name: number[name] for name in table.names if name in self._guest.windowed}
        other = {table.flags, *guest.moving, *windowed, *([] if guest.plain_pc or guest.next_pc else [table.pc])}
        plain = {name: number[name] for name in number if width[name] == bits and name not in other}
        self._cells = find_cells(engine, self.arch.name, plain, bits)
        self._windowed = find_windowed(engine, guest, self.arch.name, self._cells, plain, windowed, bits)
        readers = {name: engine.reader(number[name], width[name]) for name in number}
        writers = {name: engine.writer(number[name], width[name]) for name in number}
        for name, find in guest.hidden.items():
            readers[name], writers[name] = find(engine)
        for name, cell in (self._cells | self._windowed).items():
            if name != table.pc:  # outside of a hook the engine's pc is written through the API
                readers[name], writers[name] = cell.reader(), cell.writer()
        sp, abi = self._cells.get(table.sp), self.arch.abi
        if sp is not None and abi is not None and not abi.args:
            return StackRegs(self, readers, writers, sp, self._blocks)
        return Regs(self, readers, writers)

    def stop(self) -> None:
        """Stop the run, from a handler or another thread: the guest comes to rest before an instruction, and run() returns."""
        self._stop("stop")

    def _stop(self, reason: str) -> None:
        with self._stopping:
            self._stop_because(reason)
            self._disturb(True)
            if get_ident() != self._runner:
                self._let_pass()
            self._engine.stop()

    def _stop_because(self, reason: str) -> None:
        self._why_stopped = max(self._why_stopped, reason, key=REASONS.index)

    def _let_pass(self) -> None:
        """Between saying that the run is to stop, and telling the engine: let who has served a call site without knowing that pass.

        After a hook the engine looks whether it was stopped, and if so executes the instruction, hook and all, once more when it goes
        on. A handler that takes long, and the next ones, know.
        """
        for n in range(AT_MOST):
            if n >= AT_LEAST and not self._followed.serving:
                break
            sleep(PASSING)

    def _disturb(self, on: bool) -> None:
        self._disturbed = on
        self._followed.close(DISTURBED, on)

    def _park(self, error: BaseException) -> None:
        """Keep what was raised inside the engine for the run to raise."""
        if self._parked is None:
            self._parked = error
        self._engine.stop()
