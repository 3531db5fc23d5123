"""The first machine of a guest checks the engine facts that would corrupt the guest if they were
wrong.

A row is what is known of the engine for one architecture (guests/guest.py).
"""

from __future__ import annotations

from contextlib import suppress

import unicorn
from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import Unsupported
from .engine import CALL, INTR, INVALID, Engine
from .guests.guest import HOOK as BY_HOOK
from .guests.guest import INTR as BY_INTERRUPT
from .guests.guest import INVALID as BY_INVALID
from .guests.guest import Guest
from .host.outside import OutsideStops
from .raised import Raised, known
from .registers.cells import find_cells

BASE = 0x10000
NONE = 0xFFFFFFFF  # no exception is under way
# for an engine that never stops; long, since the host may be busy
PATIENCE = 20 * const.UC_SECOND_SCALE
_seen: dict[str, str] = {}
_heard: dict[str, bool] = {}


def self_test(guest: Guest, arch: Arch) -> None:
    """Check that the engine does what the row of a guest says, once for each architecture.

    The first call runs a breakpoint and other checks in new engines.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Raises:
        Unsupported: it does something else, which the text names.
    """
    wrong = _seen[arch.name] if arch.name in _seen else _verdict(guest, arch)
    _seen[arch.name] = wrong
    if wrong:
        raise Unsupported(
            f"this Unicorn ({unicorn.__version__}) differs from what is known for {arch.name}: "
            f"{wrong}",
            hint="install unicorn 2.1.4, or correct the row in kprobes/machine/unicorn/guests/",
        )


def _verdict(guest: Guest, arch: Arch) -> str:
    """Run a breakpoint and all other checks in new engines.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Returns:
        The first thing that is wrong, for the error's text; "": nothing is.
    """
    engine = guest.cpu.fresh()
    trap = arch.end_bytes(min(arch.traps.end))
    mode = min(arch.traps.end)
    engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
    engine.write(BASE, trap * (0x4000 // len(trap)))
    pc = guest.registers.number(arch.regs.pc)
    read, write = engine.reader(pc, arch.bits), engine.writer(pc, arch.bits)
    seen: list[tuple[str, int, int]] = []

    def note(channel: str, number: int = 0) -> bool:
        """Note a report of the breakpoint as (channel, number, pc), and send the guest to the
        second one, or stop it there. Return True: the guest goes on.
        """
        seen.append((channel, number, read()))
        write(BASE + 0x2000 | mode)
        if len(seen) > 1:
            engine.stop()
        return True

    engine.hook(const.UC_HOOK_INTR, INTR(lambda _uc, number, _user: note(BY_INTERRUPT, number)))
    engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(lambda _uc, _user: note(BY_INVALID)))
    if guest.breakpoint.channel == BY_HOOK:
        engine.hook(
            const.UC_HOOK_CODE, CALL(lambda _uc, _address: note(BY_HOOK)), BASE, BASE + 0x3FFF
        )
    engine.start(BASE + 0x100 | mode, 0)
    breakpoint = guest.breakpoint
    number = breakpoint.number if breakpoint.channel == BY_INTERRUPT else 0
    expected = [
        (breakpoint.channel, number, BASE + offset + breakpoint.bias) for offset in (0x100, 0x2000)
    ]
    if seen != expected:
        return f"a breakpoint arrives as {seen}, not {expected}"
    wrong = _flags_verdict(guest, arch, trap) if guest.checks.flags else ""
    wrong = wrong or (_next_pc_verdict(guest, arch, trap, pc) if guest.pc.next else "")
    wrong = wrong or (raised_verdict(guest, arch) if guest.interrupts.lost_pc else "")
    wrong = (
        wrong
        or words_verdict(guest, arch)
        or exception_verdict(guest)
        or context_verdict(guest, arch)
    )
    return wrong or hooked_flags_verdict(guest, arch)


def _next_pc_verdict(guest: Guest, arch: Arch, trap: bytes, pc: int) -> str:
    """Check that the words of pc and the next pc are written where the engine goes by them.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.
        trap: bytes of a breakpoint.
        pc: the engine's number of pc.

    Returns:
        What is wrong; "": nothing is, or the words are not known and so not used.
    """
    engine = guest.cpu.fresh()
    cell = find_cells(engine, f"pc of {arch.name}", {arch.regs.pc: pc}, arch.bits).get(arch.regs.pc)
    if cell is None:
        return ""  # they are not used either
    words, step, to, seen = cell.onward(2), len(guest.pc.next), BASE + 0x2000, []

    def note(_uc: int, _user: int) -> bool:
        """Note pc and the next pc, send the guest to `to`, and return True the first time; False
        ends the run.
        """
        seen.append(words.tolist())
        words[0], words[1] = to, to + step
        return len(seen) < 2

    engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(note))
    engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
    engine.write(BASE, trap)
    engine.write(to, guest.pc.next + trap)
    engine.start(BASE, 0)
    expected = [[BASE, BASE + step], [to + step, to + 2 * step]]
    return "" if seen == expected else f"pc and the next pc are at {seen}, not {expected}"


def raised_verdict(guest: Guest, arch: Arch) -> str:
    """Check that the engine calls the function that `Raised` replaces before it changes pc.

    The engine calls that function with each interrupt, to ask whether it ends the run (raised.py).
    Here a breakpoint runs in a scratch engine.

    Args:
        guest: the engine's row of the architecture.
        arch: the architecture.

    Returns:
        What is wrong; "": nothing.
    """
    engine, trap = guest.cpu.fresh(), arch.end_bytes(min(arch.traps.end))
    read = engine.reader(guest.registers.number(arch.regs.pc), arch.bits)
    read()  # the engine makes its CPU
    if not known(engine):
        return "it does not ask about interrupts where it did"
    raised, seen = Raised(engine, arch.mask, read, None), []
    raised.begin()

    def note(*_: int) -> bool:
        """Note the pc that Raised has, and stop the engine. Return False: an invalid instruction is
        not served.
        """
        seen.append(raised.pc)
        engine.stop()
        return False

    engine.hook(const.UC_HOOK_INTR, INTR(note))
    engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(note))
    engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
    engine.write(BASE + 0x100, trap)
    engine.start(BASE + 0x100, 0)
    raised.end()
    return (
        ""
        if seen == [BASE + 0x100]
        else f"pc was {seen} when it asked about a breakpoint, not {BASE + 0x100}"
    )


def hear(engine: Engine, guest: Guest, arch: Arch) -> None:
    """Set `engine.outside`, by which other threads stop the engine by asking it; to None where that
    does not work.

    Whether it works is tried once for each architecture: an engine of this guest must leave an
    endless loop when it is asked.

    Args:
        engine: the engine.
        guest: the engine's row of the architecture.
        arch: the guest's architecture.
    """
    outside = OutsideStops(engine.handle.value or 0, engine.uc)
    if outside.known and arch.name not in _heard:
        _heard[arch.name] = _comes_out(guest, arch)
    engine.outside = outside if outside.known and _heard[arch.name] else None


def _comes_out(guest: Guest, arch: Arch) -> bool:
    """Return True where a new engine leaves an endless loop when it is asked to stop. False also
    where it cannot be asked, or the architecture has no jump.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.
    """
    jump = arch.jump_in(min(arch.traps.end))
    engine = guest.cpu.fresh()
    outside = OutsideStops(engine.handle.value or 0, engine.uc)
    if jump is None or not outside.known:
        return False
    engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
    engine.write(BASE, jump.encode(BASE, BASE))
    outside.ask()
    with suppress(unicorn.UcError):
        engine.uc.emu_start(BASE | min(arch.traps.end), 0, timeout=PATIENCE)
    return not engine.uc.query(const.UC_QUERY_TIMEOUT)


def _flags_verdict(guest: Guest, arch: Arch, trap: bytes) -> str:
    """Check that flags are read and written where the engine keeps them, as guest code sets them.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.
        trap: bytes of a breakpoint.

    Returns:
        What is wrong; "": nothing is.
    """
    engine = Engine(guest.cpu.open())
    engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
    read, write = guest.registers.hidden[arch.regs.flags or ""](engine)
    seen: list[int] = []

    def note(*_: int) -> bool:
        """Note the flags, and stop the engine. Return True: an invalid instruction is served."""
        seen.append(read())
        engine.stop()
        return True

    if guest.breakpoint.channel == BY_INTERRUPT:
        engine.hook(const.UC_HOOK_INTR, INTR(note))
    elif guest.breakpoint.channel == BY_INVALID:
        engine.hook(const.UC_HOOK_INSN_INVALID, INVALID(note))
    for code, flags in guest.checks.flags:
        engine.write(BASE, bytes.fromhex(code) + trap)
        engine.drop_translations(BASE, BASE + 0x100)
        write(0)
        seen.clear()
        end = BASE + len(bytes.fromhex(code))
        stop = (
            engine.hook(const.UC_HOOK_CODE, CALL(note), end, end)
            if guest.breakpoint.channel == BY_HOOK
            else None
        )
        engine.start(BASE, 0)
        if stop is not None:
            engine.unhook(stop)
        write(flags)
        if seen[:1] != [flags] or read() != flags:
            return f"after {code} the flags are {seen[:1]} and {read():#x}, not {flags:#x}"
    return ""


def words_verdict(guest: Guest, arch: Arch) -> str:
    """Check registers that are words at fixed distances from another one: what guest code sets is
    read there, and guest code sees what is written there.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Returns:
        What is wrong; "": nothing is.
    """
    for check in guest.checks.words:
        scratch = Scratch(guest, arch)
        read, write = guest.registers.hidden[check.name](scratch.engine)
        scratch.run(check.set)
        if (seen := read()) & check.mask != check.value & check.mask:
            return f"{check.name} is {seen:#x} where the guest has made it {check.value:#x}"
        write(other := seen ^ check.mask & -check.mask)  # its lowest bit
        scratch.run(check.get)
        if ((got := scratch.register(check.register)) ^ other) & check.mask:
            return f"the guest sees {check.name} as {got:#x} where {other:#x} was written"
    return ""


def exception_verdict(guest: Guest) -> str:
    """Check the engine's word of the exception under way: it holds none in a new engine, and then
    the one that guest code raises.

    Args:
        guest: the engine's row of the architecture.

    Returns:
        What is wrong; "": nothing is, or the word is not used.
    """
    if guest.interrupts.served is None:
        return ""
    engine = guest.cpu.fresh()
    numbers: list[int] = []

    def note(_uc: int, number: int, _user: int) -> None:
        """Note the interrupt's number, and stop the engine."""
        numbers.append(number)
        engine.stop()

    engine.hook(const.UC_HOOK_INTR, INTR(note))
    engine.uc.mem_map(BASE, 0x1000, const.UC_PROT_ALL)
    engine.write(BASE, guest.interrupts.served.code)
    try:
        read, write = guest.interrupts.served.find(engine)
    except Unsupported:
        return ""  # it is not used where registers are not found
    seen = [read()]
    for _ in range(2):
        if seen[-1] not in (NONE, guest.interrupts.served.number):
            break
        write(NONE)
        engine.start(BASE, 0)
        seen.append(read())
    expected = [guest.interrupts.served.number] * 2
    return (
        ""
        if seen == [NONE, *expected] and numbers == expected
        else f"the exception under way is {seen} at interrupts {numbers}"
    )


def hooked_flags_verdict(guest: Guest, arch: Arch) -> str:
    """Check the correction of flags after an instruction with a CODE hook on it has failed.

    The engine's flags register is wrong there, and the library takes the flags from the engine's
    own state (HookedFlags.find). The result must be what the flags register holds after the same
    failure without a hook.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Returns:
        What is wrong. "": nothing is wrong, the architecture needs no correction, or the flags are
        not found in the engine's state, and then the library does not correct them.
    """
    hooked = guest.faults.hooked_flags
    if hooked is None:
        return ""
    seen = []
    for hooks in (False, True):
        engine = guest.cpu.fresh()
        engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)
        engine.write(BASE, hooked.code)
        read = engine.reader(guest.registers.number(arch.regs.flags or ""), arch.bits)
        read()  # the engine makes its CPU
        try:
            found = hooked.find(engine)[0]
        except Unsupported:
            return ""  # nobody uses it either
        if hooks:
            engine.hook(const.UC_HOOK_CODE, CALL(lambda *_: None))
        engine.start(BASE, 0)
        seen.append(read() & ~hooked.mask | found() & hooked.mask if hooks else read())
    plain, right = seen
    return (
        ""
        if plain == right
        else f"behind a failed instruction with a hook the flags are {right:#x}, not {plain:#x}"
    )


def context_verdict(guest: Guest, arch: Arch) -> str:
    """Check that a copy of the CPU's state as a piece of memory (Contexts.state) puts every
    register back.

    Args:
        guest: the engine's row of the architecture.
        arch: the guest's architecture.

    Returns:
        What is wrong; "": nothing is, or the engine's row has no such copy.
    """
    if guest.contexts.state is None:
        return ""
    engine = guest.cpu.fresh()
    read, write = guest.contexts.state(engine)
    names = [name for name in arch.regs.names if name not in guest.registers.hidden]
    access = [engine.reader(guest.registers.number(name), arch.bits) for name in names]
    hidden = [find(engine) for find in guest.registers.hidden.values()]

    def state() -> list[int]:
        """Return the values of all registers, in a fixed order."""
        return [get() for get in access] + [get() for get, _ in hidden]

    def change(seed: int) -> None:
        """Write a value to every register; another seed gives other values."""
        for n, name in enumerate(names):
            engine.writer(guest.registers.number(name), arch.bits)(
                (seed + 8 * n) * 0x01010101_01010101 & ~7
            )
        for n, (_, put) in enumerate(hidden):
            put(seed + n & 0xF)

    change(0x10)
    before, saved = state(), read()
    change(0x80)
    changed = state()
    write(saved)
    lost = [
        name
        for name, old, new in zip([*names, *guest.registers.hidden], before, state(), strict=True)
        if old != new
    ]
    return f"{', '.join(lost)} cannot be put back" if lost or changed == before else ""


class Scratch:
    """A new engine in which a check runs some instructions."""

    def __init__(self, guest: Guest, arch: Arch) -> None:
        """Open a new engine, with memory for code.

        Args:
            guest: the engine's row of the architecture.
            arch: the guest's architecture.
        """
        self.engine = guest.cpu.fresh()
        self._guest = guest
        self._arch = arch
        self.engine.uc.mem_map(BASE, 0x4000, const.UC_PROT_ALL)

    def run(self, code: str) -> None:
        """Execute instructions once. An error that ends the run early is ignored.

        Args:
            code: the instructions, in hexadecimal digits.
        """
        text = bytes.fromhex(code)
        self.engine.write(BASE, text + self._arch.end_bytes(min(self._arch.traps.end)))
        self.engine.drop_translations(BASE, BASE + 0x100)
        end = BASE + len(text)
        stop = self.engine.hook(const.UC_HOOK_CODE, CALL(lambda *_: self.engine.stop()), end, end)
        self.engine.start(BASE, 0)
        self.engine.unhook(stop)

    def register(self, name: str) -> int:
        """Return the value of the register that is called `name`."""
        return self.engine.reader(self._guest.registers.number(name), self._arch.bits)()
