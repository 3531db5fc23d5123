"""Code that saves a guest's registers, calls compiled programs, and restores the registers.

It is the row that `arch/<family>/detours.py` has. Registers go into a frame on the guest's stack,
as Linux's optimized probes make one. Encodings are the architectures' manuals'; which registers a
called function may change are their ABIs'. Compiled programs use general registers only. Nothing
here changes a flag before it is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

from attrs import field, frozen

__all__ = ["Call", "DetourCode", "Saving", "numbered", "some", "words"]

#: (environment, address of the code, code that may stand in the detour itself or b"")
Call = tuple[int, int, bytes]
_PAD: Final = 16


@frozen(kw_only=True)
class Saving:
    """How to write a detour: code that saves registers, calls programs, and restores the registers.

    All functions here return code; nothing is executed.

    Attributes:
        numbers: name of a general register -> its number.
        volatile: registers that a called function may change.
        word: bytes of a register.
        below: bytes under the stack pointer that the guest uses.
        area: bytes at the frame's start that are for the function that is called.
        scratch: number of a saved register that `special` code uses.
        move: (bytes) -> code that adds them to the stack pointer, and changes no flags.
        store: (register's number, bytes from the stack pointer) -> code that stores the register.
        load: (register's number, bytes from the stack pointer) -> code that loads the register.
        special: other registers: name ("": no program reads it), code that brings it into
            `scratch`, and code that puts it back from there.
        lock: (address of a word) -> (code that takes a lock, code that gives it back), by
            registers that functions may change; None: no such code is written.
        patient: (address of a word) -> code that takes the lock in a process, and while it waits
            leaves the processor to others (sched_yield of Linux): two to three times as many stops
            where threads wait. None: `lock` does.
        call: (environment, address of the code) -> a call with the environment and the stack
            pointer as arguments.
        begin: (environment) -> code that sets these arguments alone.
        returns: the instruction by which programs return; b"": they cannot stand in a detour.
        far: (target, with mode bits) -> code that goes there from anywhere; None: `Arch.jump` does.
        ahead: mode -> code in text of that mode before the jump of mode 0.
        size: bytes of the frame.
    """

    numbers: Mapping[str, int]
    volatile: frozenset[str]
    word: int
    below: int = 0
    area: int = 0
    scratch: int = 0
    move: Callable[[int], bytes]
    store: Callable[[int, int], bytes]
    load: Callable[[int, int], bytes]
    special: tuple[tuple[str, bytes, bytes], ...] = ()
    lock: Callable[[int], tuple[bytes, bytes]] | None = None
    patient: Callable[[int], bytes] | None = None
    call: Callable[[int, int], bytes]
    begin: Callable[[int], bytes] = lambda environment: b""
    returns: bytes = b""
    far: Callable[[int], bytes] | None = None
    ahead: Mapping[int, bytes] = field(factory=dict)
    #: bytes of a frame
    size: int = field(init=False)

    @size.default
    def _size(self) -> int:
        """Compute the bytes of the frame: room for all registers, in multiples of _PAD."""
        return -(-(self.area + (self._first + len(self.special)) * self.word) // _PAD) * _PAD

    @property
    def above(self) -> int:
        """Bytes from the frame to where the stack pointer was before."""
        return self.size + self.below

    def offset(self, name: str) -> int | None:
        """Return the byte offset of a register in the frame; None where it has no place there."""
        number = self.numbers.get(name)
        if number is None and name:
            number = next(
                (self._first + n for n, row in enumerate(self.special) if row[0] == name), None
            )
        return None if number is None else self._room(number)

    @property
    def _first(self) -> int:
        """Number of the first of the `special` registers, behind all general ones."""
        return max(self.numbers.values()) + 1

    def _room(self, number: int) -> int:
        """Return the byte offset of a register in the frame by its number."""
        return self.area + self.word * number

    def code(self, calls: Iterable[Call], also: Iterable[str] = (), lock: int = 0) -> bytes:
        """Return a detour: code that saves registers, runs programs, and restores registers.

        Args:
            calls: (environment, address of the program, the program's code if it stands in the
                detour itself, else b"") of each, in order.
            also: names of registers to be saved besides, for programs that read them.
            lock: address of a word that is a lock, held while programs run; 0: there is none. Where
                `self.lock` is None no lock is taken.
        """
        taking, giving = self.turn(lock) if lock else (b"", b"")
        bodies = [self.begin(environment) + body if body else self.call(environment, entry)
                  for environment, entry, body in calls]
        return self.around(b"".join([taking, *bodies, giving]), also)

    def turn(self, lock: int) -> tuple[bytes, bytes]:
        """Return (code that takes a lock, code that gives it back); (b"", b"") where none can be
        written.

        Args:
            lock: address of the lock's word.
        """
        if self.lock is None:
            return b"", b""
        taking, giving = self.lock(lock)
        return self.patient(lock) if self.patient is not None else taking, giving

    def around(self, code: bytes, also: Iterable[str] = ()) -> bytes:
        """Return code that saves registers, does what `code` does, and puts registers back.

        Args:
            code: what stands between; it finds the saved registers in a frame at the stack pointer.
            also: names of registers that are saved besides, for programs that read them; they are not put
                back. Names that are not in `numbers` are left out.
        """
        numbers = sorted(
            {self.numbers[name] for name in (*self.volatile, *also) if name in self.numbers}
        )
        put_back = sorted(self.numbers[name] for name in self.volatile)
        specials = [
            (read, write, self._room(self._first + n))
            for n, (_, read, write) in enumerate(self.special)
        ]
        return b"".join([
            self.move(-self.above), *(self.store(n, self._room(n)) for n in numbers),
            *(read + self.store(self.scratch, at) for read, _, at in specials), code,
            *(self.load(self.scratch, at) + write for _, write, at in specials),
            *(self.load(n, self._room(n)) for n in put_back), self.move(self.above)])


@frozen(kw_only=True)
class DetourCode:
    """The ways to save registers on an architecture.

    Attributes:
        process: in a process; None: no such code is written.
        kernel: in a kernel, where no interrupt may come between, lest another task come to the same
            program meanwhile; None: no such code is written.
    """

    MODULE: ClassVar[str] = "detours"

    process: Saving | None = None
    kernel: Saving | None = None


def words(order: str, *values: int) -> bytes:
    """Lay out instructions of four bytes in a byte order."""
    return b"".join((value & 0xFFFF_FFFF).to_bytes(4, order) for value in values)  # type: ignore[arg-type]


def numbered(names: str) -> dict[str, int]:
    """Map names to their numbers, given in that order; "-" stands for a number without a name."""
    return {name: n for n, name in enumerate(names.split()) if name != "-"}


def some(text: str) -> frozenset[str]:
    """Split names, separated by blanks, into a set."""
    return frozenset(text.split())
