"""Code that a remote guest executes for the library: a system call, or a function of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import RemoteError, Unsupported
from ...regs import Regs
from .._passing import ArgumentMemory, Passing
from .runcontrol import RunControl
from .target import RemoteTarget
from .threadlock import ThreadLock
from .threads import RemoteThreads

STEPS = 1 << 16  #: stops until code that does not come to its end is given up


class InjectedCode:
    """Has the current thread execute code, and puts its registers back."""

    def __init__(
        self,
        guest: ArgumentMemory,
        target: RemoteTarget,
        control: RunControl,
        lock: ThreadLock,
        threads: RemoteThreads,
    ) -> None:
        """Prepare; nothing is executed.

        Args:
            guest: the guest's memory, where arguments are copied to.
            target: the stub.
            control: runs the guest.
            lock: says where code may stand, and how it ends, while threads take turns.
            threads: the guest's threads, and their registers.
        """
        self._guest = guest
        self._arch = guest.arch
        self._target = target
        self._control = control
        self._lock = lock
        self._threads = threads

    def execute(self, code: bytes, values: Mapping[str, int], laid: bytes, result: str) -> int:
        """Have the current thread execute code once, and put registers and memory back.

        The code is written over what is there (at pc, or where the threads' lock has room for it),
        and ends at a trap or breakpoint.

        Args:
            code: the instructions.
            values: register -> its value; less than 0: the address of `laid`.
            laid: bytes that are on the stack meanwhile; b"": none are.
            result: name of a register.

        Returns:
            The value of that register when the code has been executed.

        Raises:
            GuestFault: the code or `laid` cannot be written where the thread stands.
            RemoteError: the code does not come to its end, or the program ends.
        """
        target = self._target
        trap = self._lock.trap  # else a breakpoint of the stub's ends the code
        code += trap
        with self._restoring() as regs:
            place = self._lock.place or regs.pc & -4  # words are aligned
            below = regs.sp - 512 - len(laid) & -64 & self._arch.mask
            old = target.read(place, len(code))
            old_stack = target.read(below, len(laid)) if laid else b""
            try:
                target.write(place, code)
                if laid:
                    target.write(below, laid)
                    regs.sp = below
                for name, value in values.items():
                    regs[name] = below if value < 0 else value
                with target.stops.away(place, place + len(code)):
                    self._run(place, place + len(code) - len(trap))
                return self._regs[result]
            finally:
                if self._control.state.guest_exists():
                    target.write(place, old)
                    if laid:
                        target.write(below, old_stack)

    @property
    def in_kernel(self) -> bool:
        """Whether the current thread's pc is in a kernel: in the upper half of the addresses."""
        return bool(self._regs.pc >> self._arch.bits - 1)

    def call(self, function: int, args: tuple[int, ...], exit_at: int) -> int:
        """Have the current thread call a function of a kernel, put its registers back, and return
        the function's integer result.

        Args:
            function: its address, as pointers have it.
            args: integers.
            exit_at: address that it is made to return to, and no other thread comes to.

        Raises:
            RemoteError: the function does not return, or the guest ends.
            Unsupported: the architecture has no calling convention, or a run is under way in a
                guest with several processors.
        """
        arch = self._arch
        if arch.linkage is None or arch.abi is None:
            raise Unsupported(
                f"{arch.name} has no calling convention", hint="pass scratch=(start, size)"
            )
        if self._control.state.depth and self._threads.cpus > 1:
            raise Unsupported(
                "a kernel with several processors may move a hit's task while it gives memory",
                hint="register a probe before the run: it gets memory for many",
            )
        with self._restoring() as regs:
            Passing(self._guest, args).set_up(regs)
            arch.linkage.set(regs, exit_at | arch.linkage.mode)
            if arch.abi.enter is not None:
                arch.abi.enter(regs, function)
            self._run(arch.pointers.code_address(function, self._target.read).addr, exit_at)
            return self._regs.return_value

    @contextmanager
    def _restoring(self) -> Iterator[Regs]:
        """Yield the current thread's registers for a with block, and put them back at its end, even
        if the task has moved to another processor; not where the guest is gone by then.
        """
        regs = self._regs
        threads = self._threads
        cpu = threads.current
        saved = threads.save()
        shown = regs.reported, regs.target
        regs.at(None)
        try:
            yield regs
        finally:
            if self._control.state.guest_exists():
                threads.restore(saved, moved=threads.current != cpu)
            regs.reported, regs.target = shown

    def _run(self, start: int, end: int) -> None:
        """Run the current thread from `start` to `end`. Other stops on the way are answered, or
        kept for later, and the thread goes on.

        Args:
            start: address of the first instruction.
            end: address where it stops, at a trap that stands there or at a breakpoint that is put
                there.

        Raises:
            RemoteError: the program ends, or the thread does not come there after many stops.
        """
        trap = self._lock.trap
        thread = self._threads.name
        self._threads.start(start)
        if not trap:
            self._target.stops.add(end)
        try:
            for _ in range(STEPS):
                stop = self._control.errand(thread)
                if self._regs.pc in (end, end + len(trap)):
                    return
                self._control.keep(stop)
            raise RemoteError(
                "a call of the guest's system does not return",
                hint="the guest is stopped; try again elsewhere",
            )
        finally:
            if self._control.state.guest_exists() and not trap:
                self._target.stops.remove(end)

    @property
    def _regs(self) -> Regs:
        """Registers of the current thread."""
        return self._threads.regs[self._threads.current]
