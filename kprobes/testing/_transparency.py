"""transparency(): runs a whole guest with and without probes, and lists the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from ..arch._base import Entry
from ..core.probe import FaultHandler, Kprobe, Kretprobe, Probe, ReturnHandler
from ..core.register.locate import code_of
from ..errors import GuestFault, KprobeError, NotAnInstruction, Unprobeable
from ..kprobes import Kprobes
from ..machine.unicorn.machine import UnicornMachine
from ..symbols import Symbol
from ._difference import (
    Difference,
    Ending,
    compare_bytes,
    compare_endings,
    compare_registers,
    ending,
    registers,
)
from ._states import Freezer

Run = Callable[[Any], Any]
Memory = dict[tuple[int, int], bytes]
PAGE = 4096


@frozen
class GuestState:
    """A stopped machine's registers and memory.

    Attributes:
        registers: name -> value.
        memory: (start, end) -> the bytes there.
    """

    registers: dict[str, int]
    memory: Memory


def snapshot(machine: Any) -> GuestState:
    """Read the registers and all mapped memory of a machine; of a remote one, the memory that is
    known.
    """
    return GuestState(
        registers(machine.regs), {r: machine.read(r[0], r[1] - r[0]) for r in regions(machine)}
    )


def regions(machine: Any) -> list[tuple[int, int]]:
    """Return the mapped memory of a machine as sorted (start, end), as the machine itself, its
    `uc`, its `regions()` or its `snapshot()` says.
    """
    if isinstance(machine, UnicornMachine):
        memory = machine.parts.memory
        home, place = memory.windows.home, memory.windows.place
        return [
            (home + start, home + end) if place(home + start) == start else (start, end)
            for start, end in memory.regions()
        ]
    if hasattr(machine, "uc"):
        return sorted((start, end + 1) for start, end, _ in machine.uc.mem_regions())
    if hasattr(machine, "regions"):
        return list(machine.regions())
    return sorted((page, page + len(data)) for page, data in machine.snapshot().items())


class Comparison:
    """A run of a guest that can be repeated with probes; memory and registers are restored in
    between.

    Attributes:
        machine: the guest's.
        kprobes: registers probes there.
        plain: how the run ends without probes.
    """

    def __init__(self, machine: Any, run: Run) -> None:
        """Run once without probes, note what it leaves, and restore memory and registers.

        Args:
            machine: the guest's; it has no Kprobes.
            run: (machine) -> what is to be compared: runs the guest. A GuestFault that it raises is
                compared, too.
        """
        self.machine = machine
        self._run = run
        self.kprobes = Kprobes(machine)
        self._start = snapshot(machine)
        self._freezer = Freezer(machine)
        self._thaw = self._freezer.freeze()
        self.plain = ending(lambda: run(machine))
        self._after = snapshot(machine)
        self._put_back()

    def close(self) -> None:
        """Close the Kprobes; the machine stays open."""
        self._freezer.forget()
        self.kprobes.close()

    @contextmanager
    def probed(self, probes: Sequence[Probe]) -> Iterator[Comparison]:
        """Register the probes for as long as the `with` lasts; call again() in it, once or several
        times. Gives this object.

        Raises:
            KprobeError: a probe is refused; none is registered then.
        """
        self.kprobes.register_all(probes)
        try:
            yield self
        finally:
            self.kprobes.unregister_all([p for p in probes if p.registered])

    def again(self, where: str = "") -> list[Difference]:
        """Run once more, with the probes registered now; list the differences from the run without.

        Memory and registers are restored afterwards, but not where the run raises anything but a
        GuestFault: that passes through.

        Args:
            where: names the run, for people.
        """
        end = ending(lambda: self._run(self.machine))
        out = compare_endings(self.plain, end, where)
        out += compare_registers(self._after.registers, registers(self.machine.regs), where)
        out += self._compare_memory(where)
        self._put_back()
        return out

    def with_probes(self, probes: Sequence[Probe], where: str = "") -> list[Difference]:
        """Register the probes, run, unregister them; list the differences from the run without
        probes.

        What is left in the guest's text afterwards counts, too.

        Args:
            probes: not registered yet.
            where: names the run, for people.

        Raises:
            KprobeError: a probe is refused; nothing was run.
        """
        with self.probed(probes):
            out = self.again(where)
        return out + self.text_changed(f"{where}, after unregistration")

    def _own(self) -> list[tuple[int, int]]:
        """Return (start, end) of the library's own pages in guest memory."""
        return [
            (start, end)
            for start, end, name in self.kprobes.blacklist
            if name == "kprobe_insn_page"
        ]

    def _memory(self) -> Memory:
        """Read the guest's memory without the library's pages, with the original bytes under its
        patches.

        Returns:
            (start, end) -> bytes.
        """
        own = self._own()
        read = self.kprobes._text.read
        return {
            (a, b): read(a, b - a)
            for a, b in regions(self.machine)
            if not any(start <= a < end for start, end in own)
        }

    def _compare_memory(self, where: str) -> list[Difference]:
        """Compare memory with what the run without probes left; list the differences, the first of
        each mapping. Of the stack only what is in use is compared. `where` names the run.
        """
        now = self._memory()
        out = (
            []
            if now.keys() == self._after.memory.keys()
            else [Difference("mappings", _show(self._after.memory), _show(now), where)]
        )
        for (start, end), plain in self._after.memory.items():
            if (start, end) in now:
                used = self._used(start, end)
                out += compare_bytes(start + used.start, plain[used], now[start, end][used], where)
        return out

    def _used(self, start: int, end: int) -> slice:
        """Return the part of a mapping that is compared: of the stack's, only what is in use.

        Beyond the stack pointer addresses of trampolines may be left over.

        Args:
            start: first address of the mapping.
            end: address behind the mapping.

        Returns:
            A slice of the mapping's bytes.
        """
        sp, abi = self.machine.regs.sp, self.machine.arch.abi
        if not start <= sp < end:
            return slice(0, end - start)
        return (
            slice(0, sp - start)
            if abi is not None and abi.upwards
            else slice(sp - start, end - start)
        )

    def text_changed(self, where: str = "unregistered") -> list[Difference]:
        """List how executable memory differs from the start, breakpoints included.

        Of each mapping the first run of bytes that differs is listed; a mapping that is gone is a
        difference, too. Objects that symbols name there are left out.

        Args:
            where: names the moment, for people.
        """
        out = []
        for (start, end), plain in self._start.memory.items():
            if self.machine.executable(start):
                try:
                    now = self.machine.read(start, end - start)
                except GuestFault:
                    out.append(Difference(f"mapping {start:#x}-{end:#x}", "there", "gone", where))
                    continue
                # a small program's variables may share a page with its code
                for low, high in self._data(start, end):
                    now = (
                        now[: low - start] + plain[low - start : high - start] + now[high - start :]
                    )
                out += compare_bytes(start, plain, now, where)
        return out

    def _data(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (start, end) of the objects that symbols name in [start, end)."""
        objects = [
            s for s in self.machine.symbols if s.kind == "object" and start <= s.address < end
        ]
        return [(s.address, min(s.address + s.size, end)) for s in objects]

    def _put_back(self) -> None:
        """Restore memory, registers and the CPU's hidden state as at the start; breakpoints stay.

        Registers come first: a CPU that saves contexts in memory (TriCore) takes back those that
        were left there.
        """
        self._thaw()
        now = self._memory()
        changed = [(r, data) for r, data in self._start.memory.items() if now.get(r) != data]
        covered = (
            {a for p in self.kprobes._text.patches for a in range(p.addr, p.addr + len(p.new))}
            if changed
            else set()
        )
        for (start, end), data in changed:
            self._write(start, now.get((start, end), b""), data, covered)

    def _write(self, start: int, now: bytes, then: bytes, covered: set[int]) -> None:
        """Write those bytes of guest memory that changed; bytes under the library's patches stay.

        Args:
            start: address of the first byte.
            now: the bytes as they are.
            then: the bytes as they were, of the same length.
            covered: addresses under patches.
        """
        for at in range(0, len(then), PAGE):
            old, new = now[at : at + PAGE], then[at : at + PAGE]
            if old == new:
                continue
            if covered.isdisjoint(range(start + at, start + at + PAGE)):
                self.machine.write(start + at, new)
                continue
            for n in (
                n
                for n, byte in enumerate(new)
                if old[n : n + 1] != bytes([byte]) and start + at + n not in covered
            ):
                self.machine.write(start + at + n, new[n : n + 1])


def _show(memory: Memory) -> str:
    """Return the (start, end) of mappings as text."""
    return " ".join(f"{start:#x}-{end:#x}" for start, end in memory)


def transparency(
    make_machine: Callable[[], Any],
    run: Run,
    probes: Callable[[Any], Sequence[Probe]],
    where: str = "",
) -> list[Difference]:
    """Run a guest without probes and with them, and list the differences.

    Compared are registers, memory (of the stack what is in use; the library's own pages are left
    out), the result of `run`, and faults; and, when the probes are unregistered, the guest's text.
    The machine stays open.

    Args:
        make_machine: makes the machine; called once.
        run: runs the guest of the machine that it gets, and returns what is to be compared.
        probes: makes the probes for the machine that it gets.
        where: names the run, for people.
    """
    comparison = Comparison(make_machine(), run)
    try:
        return comparison.with_probes(probes(comparison.machine), where)
    finally:
        comparison.close()


def functions(machine: Any) -> list[Symbol]:
    """Return the main image's functions that have a size, one symbol for each address, sorted.

    Descriptors of functions are left out.
    """
    found = {
        s.address: s
        for s in machine.symbols
        if s.kind == "func" and s.size and not s.module and machine.executable(s.address)
    }
    return [found[address] for address in sorted(found)]


def _entry(kprobes: Kprobes, symbol: Symbol) -> Entry:
    """Return the entry that calls of a function lead to, and its mode.

    Args:
        kprobes: knows the guest.
        symbol: the function.
    """
    return kprobes.machine.arch.pointers.code_address(
        symbol.address | symbol.mode, kprobes.original
    )


def instructions(kprobes: Kprobes, symbol: Symbol) -> list[int]:
    """Return the addresses in a function, mode bits included, where a kprobe may be registered.

    Args:
        kprobes: knows the guest, and where probes are refused.
        symbol: the function.
    """
    out = []
    symbol = code_of(kprobes.machine, symbol, _entry(kprobes, symbol))
    for insn in kprobes._survey.instructions(symbol):
        try:
            kprobes._survey.at(insn.addr, symbol.mode, symbol)
        except (Unprobeable, NotAnInstruction):
            continue
        out.append(insn.addr | symbol.mode)
    return out


def kprobes_everywhere(
    kprobes: Kprobes, symbols: Iterable[Symbol], pre_handler: Any = None
) -> list[Probe]:
    """Make a kprobe for every instruction of functions that may be probed; none is registered.

    Args:
        kprobes: knows the guest, and where probes are refused.
        symbols: the functions.
        pre_handler: of every probe.
    """
    return [
        Kprobe(addr=address, pre_handler=pre_handler)
        for symbol in symbols
        for address in instructions(kprobes, symbol)
    ]


def kretprobes_everywhere(
    kprobes: Kprobes,
    symbols: Iterable[Symbol],
    *,
    handler: ReturnHandler | None = None,
    entry_handler: ReturnHandler | None = None,
    fault_handler: FaultHandler | None = None,
    maxactive: int = 0,
    data_size: int = 0,
    disabled: bool = False,
    optimize: bool = True,
) -> list[Probe]:
    """Make a kretprobe for each function that may have one.

    Each is registered and unregistered once to find out; none is registered afterwards. A function
    whose probe is refused gets none.

    Args:
        kprobes: registers the probes, and unregisters them again.
        symbols: the functions.
        handler, entry_handler, fault_handler, maxactive, data_size, disabled, optimize: of every
            Kretprobe.
    """
    out: list[Probe] = []
    for symbol in symbols:
        entry = _entry(kprobes, symbol)
        probe = Kretprobe(
            addr=entry.place(0) | entry.mode | symbol.mode,
            handler=handler,
            entry_handler=entry_handler,
            fault_handler=fault_handler,
            maxactive=maxactive,
            data_size=data_size,
            disabled=disabled,
            optimize=optimize,
        )
        try:
            kprobes.register_kretprobe(probe)
        except KprobeError:
            continue
        kprobes.unregister_kretprobe(probe)
        out.append(probe)
    return out


__all__ = [
    "Comparison",
    "Ending",
    "GuestState",
    "functions",
    "instructions",
    "kprobes_everywhere",
    "kretprobes_everywhere",
    "snapshot",
    "transparency",
]
