"""Guest code of check_machine(): chains of traps, and the sink that is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..machine._base import Fault, Patched, Sink
from ..regs import Regs


class ToldSink:
    """A machine's sink with a function for each address, which notes what it is told.

    At other addresses it answers that the event is not its own. Methods without docstring are those
    of Sink, and do nothing.

    Attributes:
        services: address in a call area -> function that is called there.
        at: address -> function that a trap there calls.
        on_fault: (regs, fault) -> whether the guest goes on; called for every fault.
        traps: addresses of the traps that were reported.
        faults: (address, fault) of the faults that were reported.
        runs: "starting" and "ended", as reported.
    """

    def __init__(self) -> None:
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.at: dict[int, Callable[[Regs], Any]] = {}
        self.on_fault: Callable[[Regs, Fault], bool] = lambda regs, fault: False
        self.traps: list[int] = []
        self.faults: list[tuple[int, Fault]] = []
        self.runs: list[str] = []

    def close(self) -> None:
        """The machine is closed."""

    def trap(self, regs: Regs) -> bool:
        """Note a trap and call the function for its address; return True, or False where there is
        none. What the function raises passes through.
        """
        self.traps.append(regs.pc)
        act = self.at.get(regs.pc)
        if act is None:
            return False
        act(regs)
        return True

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """Note a fault; return what `on_fault` says: True where the guest goes on, False where the
        run ends by the fault.
        """
        self.faults.append((regs.pc, fault))
        return self.on_fault(regs, fault)

    def run_begins(self, target: int) -> None:
        """Note that a run starts."""
        self.runs.append("starting")

    def guest_sent(self, target: int) -> None: ...

    def run_ended(self) -> None:
        """Note that a run has ended."""
        self.runs.append("ended")

    def limit_jumps(self, on: bool) -> None: ...

    def displaced_left(self, regs: Regs, pc: int) -> None: ...

    def home_of(self, pc: int) -> int | None:
        return None

    def single_stepped(self, regs: Regs) -> bool:
        return False

    def pending_target(self, regs: Regs) -> int | None:
        return None

    def owns(self, pc: int) -> bool:
        return False

    def has_breakpoint(self, pc: int) -> bool:
        """Whether a trap at an address is this sink's own: it has a function there."""
        return pc in self.at

    def without_patches(self, addr: int, data: bytes) -> bytes:
        return data

    def copied_patch(self, pc: int) -> str:
        return ""

    def threads_take_turns(self) -> None: ...
    def about_to_unmap(self, start: int, end: int) -> None: ...
    def permissions_changed(self, start: int, end: int) -> None: ...

    patched = 1

    def patches(self) -> Mapping[int, Patched]:
        return {}

    def under_way(self) -> None: ...

    def cannot_resume(self, calls: object | None) -> str:
        return ""

    def resume(self, calls: object | None) -> None: ...


class TrapPage:
    """A machine with a sink and a page of traps, three of which stop it.

    Args:
        machine: the machine, which has no sink yet.

    Attributes:
        machine: the machine that is checked.
        arch: its architecture.
        mode: mode bits of the traps.
        trap: bytes of a trap.
        listener: the machine's sink.
        page: address of the page.
        a, b, c: addresses of traps in it, at which the machine stops.
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.arch = machine.arch
        self.mode = min(self.arch.traps.end)
        self.trap = self.arch.end_bytes(self.mode)
        self.listener = ToldSink()
        sink: Sink = self.listener  # nothing of the protocol is missing
        machine.report_to(sink)
        self.page = machine.map_code()
        machine.patch(
            self.page, (self.trap * (machine.page_size // len(self.trap) + 1))[: machine.page_size]
        )
        step = max(16, 4 * len(self.trap))
        self.a = self.page + step
        self.b = self.page + 2 * step
        self.c = self.page + 3 * step
        for place in (self.a, self.b, self.c):
            machine.stop_at(place)

    def go(self, addr: int) -> Callable[[Regs], None]:
        """Make an action for ToldSink.at, (regs) -> None, that sends the guest to an address."""
        return lambda regs: regs.go(addr | self.mode)

    def return_to_caller(self, regs: Regs) -> None:
        """Send the guest to the return address, which ends the run: an action for ToldSink.at."""
        regs.go(self.arch.linkage.get(regs))

    def nowhere(self) -> int:
        """Return the address of an unmapped page: it maps one and unmaps it again."""
        page = int(self.machine.map_code(self.page))
        self.machine.unmap_code(page)
        return page

    def run(self, addr: int) -> None:
        """Run guest code at an address until it returns."""
        self.machine.invoke(addr | self.mode)
