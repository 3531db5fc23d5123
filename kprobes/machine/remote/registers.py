"""Registers of one thread of a remote guest.

A register is read when it is first used after a stop, and written just before the guest runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Literal

from ...arch._base import Arch
from ...arch._stub import RegisterPart, StubRegister
from ...errors import RemoteError
from .layouts import WINDOW, facts_of, parts_of
from .target import RemoteTarget


class StubRegisterFile:
    """The registers of one CPU: of one thread of the guest, as its stub has them.

    Values are read from the stub when they are first used after a stop; values that are set are
    kept until flush().

    Attributes:
        thread: as the stub names it; None while this CPU has no thread. Everything reads as 0 then.
        away: the thread runs. Everything reads as 0 then.
    """

    def __init__(
        self,
        target: RemoteTarget,
        arch: Arch,
        slots: Mapping[str, StubRegister],
        places: Mapping[str, int],
    ) -> None:
        """Prepare; nothing is read.

        Args:
            target: the stub.
            arch: the guest's architecture.
            slots: name -> register, as the stub has them.
            places: name -> its offset in a g packet, as of places().
        """
        self.thread: str | None = None
        self.away = False
        self._target = target
        self._order: Literal["little", "big"] = arch.order.value
        self._slots = slots
        # name -> a function that makes of a value the one that the stub takes for it
        self._taken = facts_of(arch).taken
        self._places = places
        self._together = b""  # the g packet; b"": not read yet
        self._single: dict[str, int] = {}  # name -> value, of registers that are known
        self._changed: set[str] = set()  # names of registers to be written

    def read(self, name: str) -> int:
        """Return a register of the stub's: the value that was set or read since the stop, else the
        stub is asked.

        The value is 0 while this CPU has no thread, or its thread runs.

        Args:
            name: of the register, as the stub has it.
        """
        known = self._single.get(name)
        if known is not None:
            return known
        if self.thread is None or self.away:
            return 0
        slot = self._slots[name]
        place = self._places.get(name)
        if place is None:
            self._target.choose(self.thread)
            data = self._target.register(slot.number)
        else:
            data = self._fetch()[place : place + slot.size]
        known = self._single[name] = int.from_bytes(data, self._order)
        return known

    def read_all(self, names: Iterable[str]) -> dict[str, int]:
        """Return the values of several registers, name -> value. Those to be read one by one are
        asked for in one go.

        Args:
            names: of registers, as the stub has them.
        """
        names = [*names]
        single = [name for name in names if name not in self._places and name not in self._single]
        if single and self.thread is not None:
            self._target.choose(self.thread)
            for name, data in zip(
                single,
                self._target.registers([self._slots[name].number for name in single]),
                strict=True,
            ):
                self._single[name] = int.from_bytes(data, self._order)
        return {name: self.read(name) for name in names}

    def write(self, name: str, value: int) -> None:
        """Keep a register's new value, which flush() writes before the guest runs on; do nothing
        while this CPU has no thread.

        Args:
            name: of the register, as the stub has it.
            value: cut to the register's width.
        """
        if self.thread is not None:
            self._single[name] = value & (1 << 8 * self._slots[name].size) - 1
            self._changed.add(name)

    def check(self) -> None:
        """Check that this CPU's registers can be set.

        Raises:
            RemoteError: this CPU has no thread, or one that runs: the value would be lost.
        """
        if self.away:
            raise RemoteError(
                "the thread that is this CPU runs: its registers cannot be set",
                hint="set them in a handler that it comes to",
            )
        if self.thread is None:
            raise RemoteError(
                "no thread of the guest is this CPU: it has no registers to be set",
                hint="threads become CPUs when they stop in a hit",
            )

    def put(self, name: str, value: int) -> None:
        """Check that the register can be set (check()), and keep its new value, which flush()
        writes before the guest runs on.

        Args:
            name: of the register, as the stub has it.
            value: cut to the register's width.

        Raises:
            RemoteError: this CPU has no thread, or one that runs.
        """
        self.check()
        self.write(name, value)

    def onward(self, pc: str) -> int | None:
        """Take the new pc out of the values to be written, if the packet that resumes the guest can
        carry it.

        Args:
            pc: name of the pc register.

        Returns:
            The new pc; None: other registers have changed as well, or the stub takes no address
            there, and nothing is taken out.
        """
        if self._changed == {pc} and self._target.goes_on(self.thread):
            self._changed.clear()
            return self._single[pc]
        return None

    def flush(self) -> None:
        """Write the registers that were set to the stub, and forget all values: the guest is about
        to run on.

        Raises:
            RemoteError: the stub does not write one of them.
        """
        if self._changed and self.thread is not None:
            self._target.choose(self.thread)
            names = sorted(
                self._changed, key=lambda name: (name not in WINDOW, self._slots[name].number)
            )
            done = self._target.set_registers(
                [(self._slots[name].number, self._bytes(name)) for name in names]
            )
            if again := self._changed & self._taken.keys():
                self._look_again(again)
            slow = [name for name, written in zip(names, done, strict=True) if not written]
            if slow:
                self._write_together(slow)
        self.forget()

    def _look_again(self, names: Iterable[str]) -> None:
        """Read registers back that were written, and write those once more that the stub does not
        show as they were written.

        The bytes written then are what the register's function in StubFacts.taken makes of the
        value: such a stub shows the register in one form and takes it in another.

        Args:
            names: of registers that were written, all of them in StubFacts.taken.
        """
        numbers = {name: self._slots[name].number for name in names}
        shown = dict(zip(numbers, self._target.registers([*numbers.values()]), strict=True))
        self._target.set_registers(
            [
                (number, self._taken[name](self._bytes(name)))
                for name, number in numbers.items()
                if shown[name] != self._bytes(name)
            ]
        )

    def forget(self) -> None:
        """Forget all values, those too that were set and not written."""
        self._together = b""
        self._single.clear()
        self._changed.clear()

    def _fetch(self) -> bytes:
        """Return all registers in one piece, in the layout of the stub's answer to `g`. The stub is
        asked once at each stop.
        """
        if not self._together:
            assert self.thread is not None
            self._target.choose(self.thread)
            self._together = self._target.all_registers()
        return self._together

    def _bytes(self, name: str) -> bytes:
        """Return the known value of a register as bytes in the guest's byte order."""
        return self._single[name].to_bytes(self._slots[name].size, self._order)

    def _write_together(self, names: list[str]) -> None:
        """Write registers by a G packet, which writes all of them: the stub has no P packet for
        these.

        The other registers in the packet are read anew, and written as they are read: as 0 where
        the stub does not know them.

        Args:
            names: registers whose set values are written.

        Raises:
            RemoteError: one of them is not in the packet, or the stub refuses.
        """
        # what was read before has the values of those registers that P packets have just written
        self._together = b""
        together = bytearray(self._fetch())
        for name in names:
            place = self._places.get(name)
            if place is None:
                raise RemoteError(
                    f"the stub does not write {name}", hint="leave that register alone"
                )
            together[place : place + self._slots[name].size] = self._bytes(name)
        self._target.set_all_registers(bytes(together))


def places(slots: Mapping[str, StubRegister], size: int) -> dict[str, int]:
    """Return where registers stand in a g packet: name -> offset in bytes.

    They stand there in the order of their numbers, as far as the packet goes.

    Args:
        slots: the stub's registers, by name.
        size: bytes of the packet.
    """
    out, at = {}, 0
    for slot in sorted(slots.values(), key=lambda slot: slot.number):
        if at + slot.size > size:
            break
        out[slot.name] = at
        at += slot.size
    return out


def slots_of(target: RemoteTarget, arch: Arch) -> dict[str, StubRegister]:
    """Return the stub's registers by name: as the stub describes them, or as GDB knows the
    architecture's.

    Args:
        target: the stub.
        arch: the guest's architecture.

    Raises:
        RemoteError: neither is there, or registers are missing that probes need.
    """
    _, described = target.described()
    slots = {slot.name: slot for slot in described or facts_of(arch).file if slot.size}
    parts, abi = parts_of(arch, slots), arch.abi
    for name in (
        arch.regs.pc,
        arch.regs.sp,
        *(abi.args if abi else ()),
        *(abi.returns if abi else ()),
    ):
        theirs = parts.get(name, RegisterPart(name)).name
        if theirs not in slots:
            raise RemoteError(
                f"the stub shows no {theirs}, so it does not run {arch.name}",
                hint="pass the arch= that it runs",
            )
    return slots


def accessors(
    file: StubRegisterFile, slots: Mapping[str, StubRegister], arch: Arch
) -> tuple[dict[str, Callable[[], int]], dict[str, Callable[[int], None]]]:
    """Make functions that read and write an architecture's registers, for Regs.

    Args:
        file: reads and writes the stub's registers.
        slots: the stub's registers, by name.
        arch: the guest's architecture.

    Returns:
        (name -> function that reads, name -> function that writes), of those registers that the
        stub shows.
    """
    parts = parts_of(arch, slots)
    readers: dict[str, Callable[[], int]] = {}
    writers: dict[str, Callable[[int], None]] = {}
    for name in arch.regs.names:
        part = parts.get(name, RegisterPart(name))
        if part.name not in slots:
            continue
        if part.low or part.width:
            readers[name] = partial(_read_part, file, part, slots[part.name].size)
            writers[name] = partial(_write_part, file, part, slots[part.name].size)
        else:
            readers[name] = partial(file.read, part.name)
            writers[name] = partial(file.put, part.name)
    return readers, writers


def _field(part: RegisterPart, size: int) -> int:
    """Return the mask of an architecture's register that is some bits of one of the stub's, shifted
    down to bit 0.

    Args:
        part: which bits.
        size: bytes of the stub's register.
    """
    return (1 << (part.width or 8 * size - part.low)) - 1


def _read_part(file: StubRegisterFile, part: RegisterPart, size: int) -> int:
    """Return an architecture's register that is a part of one of the stub's.

    Args:
        file: the stub's registers.
        part: which register of the stub, which of its bits, and how far they are shifted left in
            the architecture's.
        size: bytes of the stub's register.
    """
    return (file.read(part.name) >> part.low & _field(part, size)) << part.place


def _write_part(file: StubRegisterFile, part: RegisterPart, size: int, value: int) -> None:
    """Set an architecture's register, which is some bits of one of the stub's; the other bits stay.

    Args:
        file: the stub's registers.
        part: which register of the stub, which of its bits, and how far they are shifted left in
            the architecture's.
        size: bytes of the stub's register.
        value: of the architecture's register.
    """
    mask = _field(part, size) << part.low
    file.put(part.name, file.read(part.name) & ~mask | value >> part.place << part.low & mask)
