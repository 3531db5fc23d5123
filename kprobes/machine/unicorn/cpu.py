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
    depth = 0  # nested runs, see Runs

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self.trap: Callable[[Regs], bool] | None = None  # the sink's, looked up once
        self.services: dict[int, Callable[[Regs], None]] = {}  # the sink's
        self.before_run: Callable[[], object] | None = None  # see machine._base.Machine
        self.exit = 0  # page where runs end; 0: there is none yet
        self._cpu_task: Callable[[Regs], Any] | None = None
        self.why_stopped = ""
        self.stopping = RLock()  # held from saying why until the engine knows; reentrant, for Ctrl-C
        self.runs_in = 0  # thread of the run
        self.disturbed = False  # the run was stopped, or another one was nested in it, since the last service
        self.parked: BaseException | None = None
        self._regs = self._make_regs()
        self.followed = FollowedCalls(self)
        self.write_pc = self.engine.writer(self.register(self.arch.regs.pc), self.arch.bits)
        self.read_pc = self.engine.reader(self.register(self.arch.regs.pc), self.arch.bits)
        self.engine.beside = [self.access(name) for name in guest.contexts.beside]
        if guest.contexts.state is not None:
            self.engine.beside.append(guest.contexts.state(self.engine))
        if guest.contexts.rewind is not None:
            self.engine.rewind = guest.contexts.rewind(self.engine)

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
        self.followed.close(TASKS, task is not None)

    def register(self, name: str) -> int:
        return self.guest.registers.number(name)

    def access(self, name: str) -> tuple[Callable[[], int], Callable[[int], None]]:
        """Reader and writer of a register, through the engine's API."""
        number, bits = self.register(name), self.arch.regs.widths.get(name, self.arch.bits)
        return self.engine.reader(number, bits), self.engine.writer(number, bits)

    def _make_regs(self) -> Regs:
        """Registers by the engine's API, and by their words in the engine where these are found to be true."""
        table, engine, bits = self.arch.regs, self.engine, self.arch.bits
        width = {name: table.widths.get(name, bits) for name in table.names}
        number = {name: self.register(name) for name in table.names if name not in self.guest.registers.hidden}
        guest, windowed = self.guest, {name: number[name] for name in table.names if name in self.guest.registers.windowed}
        other = {table.flags, *guest.registers.moving, *windowed, *([] if guest.pc.plain or guest.pc.next else [table.pc])}
        plain = {name: number[name] for name in number if width[name] == bits and name not in other}
        self.cells = find_cells(engine, self.arch.name, plain, bits)
        self.windowed = find_windowed(engine, guest, self.arch.name, self.cells, plain, windowed, bits)
        readers = {name: engine.reader(number[name], width[name]) for name in number}
        writers = {name: engine.writer(number[name], width[name]) for name in number}
        for name, find in guest.registers.hidden.items():
            readers[name], writers[name] = find(engine)
        for name, cell in (self.cells | self.windowed).items():
            if name != table.pc:  # outside of a hook the engine's pc is written through the API
                readers[name], writers[name] = cell.reader(), cell.writer()
        sp, abi = self.cells.get(table.sp), self.arch.abi
        if sp is not None and abi is not None and not abi.args:
            return StackRegs(self, readers, writers, sp, self.blocks)
        return Regs(self, readers, writers)

    def stop(self) -> None:
        """Stop the run, from a handler or another thread: the guest comes to rest before an instruction, and run() returns."""
        self.stop_for("stop")

    def stop_for(self, reason: str) -> None:
        with self.stopping:
            self.note_stop(reason)
            self.disturb(True)
            if get_ident() != self.runs_in:
                self._let_pass()
            self.engine.stop()

    def note_stop(self, reason: str) -> None:
        self.why_stopped = max(self.why_stopped, reason, key=REASONS.index)

    def take_stop(self) -> str:
        """Why the run is to stop. Whoever asked for it has told the engine: nothing stops the next run."""
        with self.stopping:
            reason, self.why_stopped = self.why_stopped, ""
        return reason

    def _let_pass(self) -> None:
        """Between saying that the run is to stop, and telling the engine: let who has served a call site without knowing that pass.

        After a hook the engine looks whether it was stopped, and if so executes the instruction, hook and all, once more when it goes
        on. A handler that takes long, and the next ones, know.
        """
        for n in range(AT_MOST):
            if n >= AT_LEAST and not self.followed.serving:
                break
            sleep(PASSING)

    def disturb(self, on: bool) -> None:
        self.disturbed = on
        self.followed.close(DISTURBED, on)

    def park(self, error: BaseException) -> None:
        """Keep what was raised inside the engine for the run to raise."""
        if self.parked is None:
            self.parked = error
        self.engine.stop()
