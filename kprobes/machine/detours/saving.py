"""What saves the registers of a guest that is about to run code of ours: a frame on its stack, as Linux's optimized
probes make one.

Encodings are the architectures' manuals'; which registers a called function may change are their ABIs'. Compiled
programs use general registers only. Nothing here changes a flag before it is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import field, frozen

from .inlined import Call

_PAD: Final = 16


@frozen(kw_only=True)
class Saving:
    """Attributes:
    numbers: of the general registers, by name. volatile: those that functions may change. word: bytes of a register.
    below: bytes under the stack pointer that the guest uses. area: bytes at the frame's start that are for who is
    called.
    move: adds to the stack pointer, and changes no flags. store, load: (register's number, bytes from the stack
    pointer). special: of other registers: name ("": no program reads it), code that brings it into `scratch`, which is
    saved already, and code that puts it back. lock: (address of a word): code that takes, and code that gives back a
    lock, by registers that functions may change. patient: takes it in a process, and leaves the processor to others
    meanwhile (sched_yield of Linux): two to three times as many stops where threads wait. call: (environment, code's
    address): a call with the environment and the stack pointer as arguments. begin: what sets these alone; returns: the
    instruction by which programs return.
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
    #: bytes of a frame
    size: int = field(init=False)

    @size.default
    def _size(self) -> int:
        return -(-(self.area + (self._first + len(self.special)) * self.word) // _PAD) * _PAD

    @property
    def above(self) -> int:
        """Bytes from the frame to where the stack pointer was."""
        return self.size + self.below

    def offset(self, name: str) -> int | None:
        """Where a register is in the frame; None: it is not."""
        number = self.numbers.get(name)
        if number is None and name:
            number = next((self._first + n for n, row in enumerate(self.special) if row[0] == name), None)
        return None if number is None else self._room(number)

    @property
    def _first(self) -> int:
        return max(self.numbers.values()) + 1

    def _room(self, number: int) -> int:
        return self.area + self.word * number

    def code(self, calls: Iterable[Call], also: Iterable[str] = (), lock: int = 0) -> bytes:
        """Everything: save, run each (environment, code's address, code that may stand here), put back. also: registers
        to be saved for programs that read them. lock: address of a word that who calls holds; 0: of none."""
        taking, giving = self.turn(lock) if lock else (b"", b"")
        bodies = [self.begin(environment) + body if body else self.call(environment, entry)
                  for environment, entry, body in calls]
        return self.around(b"".join([taking, *bodies, giving]), also)

    def turn(self, lock: int) -> tuple[bytes, bytes]:
        """What takes a lock, and what gives it back; nothing where nobody has said how."""
        if self.lock is None:
            return b"", b""
        taking, giving = self.lock(lock)
        return self.patient(lock) if self.patient is not None else taking, giving

    def around(self, code: bytes, also: Iterable[str] = ()) -> bytes:
        """Code between saving and putting back."""
        numbers = sorted({self.numbers[name] for name in (*self.volatile, *also) if name in self.numbers})
        put_back = sorted(self.numbers[name] for name in self.volatile)
        specials = [(read, write, self._room(self._first + n)) for n, (_, read, write) in enumerate(self.special)]
        return b"".join([
            self.move(-self.above), *(self.store(n, self._room(n)) for n in numbers),
            *(read + self.store(self.scratch, at) for read, _, at in specials), code,
            *(self.load(self.scratch, at) + write for _, write, at in specials),
            *(self.load(n, self._room(n)) for n in put_back), self.move(self.above)])


def words(order: str, *values: int) -> bytes:
    """Instructions of four bytes."""
    return b"".join((value & 0xFFFF_FFFF).to_bytes(4, order) for value in values)  # type: ignore[arg-type]


def numbered(names: str) -> dict[str, int]:
    """Names in the order of their numbers; "-" for one that has none."""
    return {name: n for n, name in enumerate(names.split()) if name != "-"}


def some(text: str) -> frozenset[str]:
    """Names."""
    return frozenset(text.split())
