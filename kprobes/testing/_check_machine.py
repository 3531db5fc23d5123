"""check_machine(): tests an engine against the Machine contract (kprobes/machine/_base.py).

The guest code used is the architecture's own trap and, where there is one, its jump: nothing else
of the ISA is known here. The listener moves the guest on at each trap, so that a run is a chain of
traps.

Each check takes the scene (a machine with a listener and a page of traps) and yields a sentence for
each breach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import GuestFault, KprobeError, NoMemory, Unsupported
from ..regs import Regs
from ._check_runs import RUNS
from ._listener import TrapPage

if TYPE_CHECKING:
    from ..machine._base import CallsInPlace, Machine
    from ..machine.paper import PaperCalls, PaperMachine
    from ..machine.remote.machine import RemoteMachine
    from ..machine.remote.sites import CallSites
    from ..machine.unicorn.areas import CallAreas
    from ..machine.unicorn.machine import UnicornMachine

    def machines(
        unicorn: UnicornMachine, remote: RemoteMachine, paper: PaperMachine
    ) -> list[Machine]:
        """Have type checkers see that each engine keeps the contract; never called."""
        return [unicorn, remote, paper]

    def call_sites(unicorn: CallAreas, remote: CallSites, paper: PaperCalls) -> list[CallsInPlace]:
        """Have type checkers see that each engine keeps the contract of calls in place; never
        called.
        """
        return [unicorn, remote, paper]


def check_machine(make: Callable[[], Any]) -> list[str]:
    """Run all checks of an engine, each on a machine of its own, which is closed afterwards, and
    list what is wrong. A KprobeError of a check becomes a sentence, and so do the exceptions of
    wrong code (LookupError, TypeError, ValueError ...); any other passes through.

    Args:
        make: makes a fresh machine, with a stack, whose architecture has a linkage.

    Returns:
        Sentences; [] where nothing was found.
    """
    problems = []
    for check in CHECKS:
        machine = make()
        try:
            problems += [
                f"{check.__name__.strip('_')}: {text}" for text in check(TrapPage(machine))
            ]
        except (
            KprobeError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            AssertionError,
        ) as error:
            problems.append(f"{check.__name__.strip('_')}: raises {type(error).__name__}: {error}")
        finally:
            getattr(machine, "close", lambda: None)()
    return problems


# --- memory


def _memory(s: TrapPage) -> Iterator[str]:
    """Check reads, writes, and that a page of map_code() is executable."""
    data = bytes(range(256))
    s.machine.write(s.b, data)
    if s.machine.read(s.b, 256) != data or s.machine.read(s.b + 255, 1) != data[255:]:
        yield "read does not give what write wrote"
    if s.machine.read(s.b, 0) != b"":
        yield "a read of nothing is something"
    s.machine.write(s.b, b"")
    if not s.machine.executable(s.b):
        yield "a page of map_code() is not executable"


def _unmapped(s: TrapPage) -> Iterator[str]:
    """Check that accesses to unmapped memory raise GuestFault with the address and the access."""
    nowhere = s.nowhere()
    accesses: dict[str, Callable[[], Any]] = {
        "read": lambda: s.machine.read(nowhere, 4),
        "write": lambda: s.machine.write(nowhere, b"1234"),
    }
    for name, act in accesses.items():
        try:
            act()
            yield f"{name} of unmapped memory succeeds"
        except GuestFault as error:
            if (
                error.address is None
                or not nowhere <= error.address < nowhere + 4
                or error.access != name
            ):
                yield f"{name} of unmapped memory: address {error.address}, access {error.access}"
    if s.machine.executable(nowhere):
        yield "unmapped memory is executable"


def _pages(s: TrapPage) -> Iterator[str]:
    """Check map_code() and unmap_code(): pages are distinct, aligned, near the given address, and
    empty.
    """
    size = s.machine.page_size
    pages = [s.machine.map_code(near) for near in (None, s.page, s.page, s.page)]
    if len({*pages, s.page}) != 5 or any(p % size for p in pages):
        yield f"map_code gives {list(map(hex, pages))}, not pages of their own"
    if max(abs(p - s.page) for p in pages[1:]) > 64 * size:
        yield f"{list(map(hex, pages[1:]))} are not close to {s.page:#x}"
    for page in pages:
        s.machine.patch(page, s.trap)
        s.machine.unmap_code(page)
    try:
        s.machine.read(pages[0], 1)
        yield "an unmapped page can still be read"
    except GuestFault:
        pass
    again = s.machine.map_code(pages[1])
    if any(s.machine.read(again, size)):
        yield "a page that is mapped again still has its old contents"


# --- traps


def _trap_pc(s: TrapPage) -> Iterator[str]:
    """Check that each trap is reported at its own address, and that the pc register holds it."""
    seen: list[int] = []

    def look(regs: Regs) -> None:
        """Note the pc register, and end the run."""
        seen.append(regs[regs.arch.regs.pc])
        s.return_to_caller(regs)

    for addr in (s.a, s.b, s.page):
        s.machine.stop_at(addr)
        s.listener.at[addr] = look
        s.run(addr)
    if s.listener.traps != [s.a, s.b, s.page] or seen != s.listener.traps:
        yield (
            f"traps at {list(map(hex, (s.a, s.b, s.page)))} are reported at "
            f"{list(map(hex, s.listener.traps))}, pc "
            f"register {list(map(hex, seen))}"
        )


def _moves(s: TrapPage) -> Iterator[str]:
    """Check a chain of traps a -> b -> c -> b -> the return address (TrapPage.return_to_caller), in
    which the same trap is visited twice with different answers.
    """
    answers = [s.return_to_caller, s.go(s.c)]

    def answer(regs: Regs) -> None:
        """Do the last action in `answers`, and remove it."""
        answers.pop()(regs)

    s.listener.at = {s.a: s.go(s.b), s.b: answer, s.c: s.go(s.b)}
    s.run(s.a)
    if s.listener.traps != [s.a, s.b, s.c, s.b]:
        yield f"a chain of traps is reported as {list(map(hex, s.listener.traps))}"


def _registers_come_back(s: TrapPage) -> Iterator[str]:
    """Check that a run puts all registers but pc back, also one that a handler wrote."""
    regs = s.machine.regs
    names = [name for name in regs.names if name != regs.arch.regs.pc]
    before = {name: regs[name] for name in names}
    first = regs.arch.abi.args[0] if regs.arch.abi and regs.arch.abi.args else None
    inside: list[int] = []

    def spoil(regs: Regs) -> None:
        """Note the first argument's register, write it and note it again; end the run."""
        if first is not None:
            inside.append(regs[first])
            regs[first] = 0x1234
            inside.append(regs[first])
        s.return_to_caller(regs)

    s.listener.at[s.a] = spoil
    s.run(s.a)
    after = {name: regs[name] for name in names}
    if before != after:
        yield f"invoke changes {[name for name in names if before[name] != after[name]]}"
    if first is not None and inside != [before[first], 0x1234]:
        yield f"{first} is {inside} inside a report, not what it was and what was written"


def _patches(s: TrapPage) -> Iterator[str]:
    """Check that code that has run already can be replaced, from outside and from a report."""
    jump = s.arch.jump
    if jump is None:
        return
    s.listener.at = {s.b: s.return_to_caller, s.c: s.return_to_caller}
    s.machine.release(s.a)  # a breakpoint there is none
    for target in (s.b, s.c, s.b):
        s.machine.patch(s.a, jump.encode(s.a, target))
        for _ in range(2):
            s.listener.traps.clear()
            s.run(s.a)
            if s.listener.traps != [target]:
                yield (
                    f"a jump to {target:#x}, put over code that has run, goes to "
                    f"{list(map(hex, s.listener.traps))}"
                )

    def patch_and_go(regs: Regs) -> None:
        """Write another jump over the code at `a`, and go there."""
        s.machine.patch(s.a, jump.encode(s.a, s.c))
        regs.go(s.a | s.mode)

    s.listener.at[s.b] = patch_and_go
    s.listener.traps.clear()
    s.run(s.a)
    if s.listener.traps != [s.b, s.c]:
        yield (
            f"a patch made in a report takes no effect at once: {list(map(hex, s.listener.traps))}"
        )


def _calls(s: TrapPage) -> Iterator[str]:
    """Check a call area: services there are called in place, and the guest moves only if they say
    so.
    """
    sites = s.machine.call_sites
    if s.arch.jump is None or sites is None or not sites.jumps(None, 0):
        return
    try:
        area = sites.map_calls(s.page)
    except (Unsupported, NoMemory):
        return
    if area % sites.call_area:
        yield f"map_calls gives {area:#x}, which is not aligned to {sites.call_area:#x}"
    seen: list[int] = []
    s.machine.patch(area, s.arch.jump.encode(area, s.b))
    sites.call_at(area)
    s.listener.services[area] = lambda regs: seen.append(regs.pc)
    s.listener.at = {s.b: s.return_to_caller, s.c: s.return_to_caller}
    s.run(area)
    if (seen, s.listener.traps) != ([area], [s.b]):
        yield (
            f"a service at {area:#x} runs at {list(map(hex, seen))}, then the guest goes to "
            f"{list(map(hex, s.listener.traps))}"
        )
    s.listener.services[area] = s.go(s.c)
    s.listener.traps.clear()
    s.run(area)
    if s.listener.traps != [s.c]:
        yield (
            f"a service that moves the guest: it goes to {list(map(hex, s.listener.traps))}, "
            f"not {s.c:#x}"
        )
    sites.unmap_calls(area)


def _not_ours(s: TrapPage) -> Iterator[str]:
    """Check that a trap which the listener leaves alone raises GuestFault with its address."""
    s.listener.at = {s.a: s.go(s.b)}
    try:
        s.run(s.a)
        yield "a trap that nobody claims is swallowed"
    except GuestFault as error:
        if error.pc != s.b:
            yield f"a trap of the guest's own at {s.b:#x} is a GuestFault at pc {error.pc}"
        if error.access not in ("trap", "undefined", "interrupt"):
            yield f"a trap of the guest's own is a GuestFault of access {error.access!r}"
    s.listener.at = {s.a: s.return_to_caller}
    s.run(s.a)  # and the machine goes on working


def _fetch_fault(s: TrapPage) -> Iterator[str]:
    """Check that running unmapped memory raises GuestFault and is reported to the listener once."""
    nowhere = s.nowhere()
    s.listener.at = {s.a: s.go(nowhere)}
    try:
        s.run(s.a)
        yield "code runs where nothing is mapped"
    except GuestFault as error:
        if (error.access, error.pc) != ("fetch", nowhere):
            yield f"a fetch at {nowhere:#x} fails as {error.access!r} at pc {error.pc}"
    if [(pc, fault.access) for pc, fault in s.listener.faults] != [(nowhere, "fetch")]:
        yield f"the listener is told of {s.listener.faults}"


#: what check_machine() does, each on a machine of its own
CHECKS = (
    _memory,
    _pages,
    _unmapped,
    _trap_pc,
    _moves,
    _registers_come_back,
    _patches,
    _calls,
    _not_ours,
    _fetch_fault,
    *RUNS,
)
