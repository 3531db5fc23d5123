"""Code that a remote guest is made to execute for us: a system call of a process, a function of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import RemoteError, Unsupported
from ...regs import Regs
from .._passing import Memory, Passing
from .control import Control
from .target import Target
from .threads import Threads

STEPS = 1 << 16  #: stops of one errand, before it is given up


class Errands:
    """Runs the current thread a little; its registers are put back."""

    def __init__(self, guest: Memory, target: Target, control: Control, threads: Threads) -> None:
        """guest: where arguments are copied to."""
        self._guest, self._arch = guest, guest.arch
        self._target, self._control, self._threads = target, control, threads

    def execute(self, code: bytes, values: Mapping[str, int], laid: bytes, result: str) -> int:
        """Have the current thread execute `code` once, with these registers, and put everything back. See
        scratch.Process."""
        target = self._target
        code += self._trap
        with self._restoring() as regs:
            place, sp = self._control.turns.place or regs.pc & -4, regs.sp  # words are aligned
            below = sp - 512 - len(laid) & -64 & self._arch.mask
            old, old_stack = target.read(place, len(code)), target.read(below, len(laid)) if laid else b""
            try:
                target.write(place, code)
                if laid:
                    target.write(below, laid)
                    regs.sp = below
                for name, value in values.items():
                    regs[name] = below if value < 0 else value
                with target.stops.away(place, place + len(code)):
                    self._run(place, place + len(code) - len(self._trap))
                return self._regs[result]
            finally:
                if self._there:
                    target.write(place, old)
                    if laid:
                        target.write(below, old_stack)

    @property
    def in_kernel(self) -> bool:
        """True where the current thread is in a kernel: in the upper half of the addresses."""
        return bool(self._regs.pc >> self._arch.bits - 1)

    def call(self, function: int, args: tuple[int, ...], exit_at: int) -> int:
        """Call a function of a kernel; its result. exit_at: where it is to return to; nobody else comes there."""
        arch = self._arch
        if arch.linkage is None or arch.abi is None:
            raise Unsupported(f"{arch.name} has no calling convention", hint="pass scratch=(start, size)")
        if self._control.depth and len(self._threads.regs) > 1:
            raise Unsupported("a kernel with several processors may move a hit's task while it gives memory",
                              hint="register a probe before the run: it gets memory for many")
        with self._restoring() as regs:
            Passing(self._guest, args).set_up(regs)
            arch.linkage.set(regs, exit_at | arch.linkage.mode)
            if arch.abi.enter is not None:
                arch.abi.enter(regs, function)
            self._run(arch.pointers.code_address(function, self._target.read).addr, exit_at)
            return self._regs.return_value

    @contextmanager
    def _restoring(self) -> Iterator[Regs]:
        """The current thread's registers, put back afterwards."""
        regs, threads = self._regs, self._threads
        cpu, saved, shown = threads.current, threads.save(), (regs.reported, regs.target)
        regs.at(None)
        try:
            yield regs
        finally:
            if self._there:
                threads.restore(saved, moved=threads.current != cpu)
            regs.reported, regs.target = shown

    def _run(self, start: int, end: int) -> None:
        """Run the current thread from `start` to `end`."""
        thread = self._threads.name
        self._threads.start(start)
        if not self._trap:
            self._target.stops.add(end)
        try:
            for _ in range(STEPS):
                stop = self._control.errand(thread)
                if self._regs.pc in (end, end + len(self._trap)):
                    return
                self._control.other(stop)
            raise RemoteError("a call of the guest's system does not return",
                              hint="the guest is stopped; try again elsewhere")
        finally:
            if self._there and not self._trap:
                self._target.stops.remove(end)

    @property
    def _trap(self) -> bytes:
        """What ends code of ours, where no breakpoint of the stub's is to come or go: other threads look at them."""
        turns = self._control.turns
        return turns.trap if turns.several else b""

    @property
    def _regs(self) -> Regs:
        return self._threads.regs[self._threads.current]

    @property
    def _there(self) -> bool:
        return self._control.exit_status is None and not self._target.link.closed
