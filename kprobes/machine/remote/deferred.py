"""Changes of text in a process whose threads take turns: kept, and written as the guest goes on.

The other threads run while one has stopped. A breakpoint that the core (kprobes/core, which places
probes) writes now, and that becomes a jump a moment later, could be executed by them. So changes
are kept until the guest goes on; reads see the text as it will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


class DeferredText:
    """Changes of text that are not written to the guest yet, and the text that reads see in place
    of jumps.

    Those jumps are in the guest's memory where the core has breakpoints; they lead to code that
    takes the threads' lock (threadlock.py). The core does not know of them: its reads show its
    breakpoints there.

    Attributes:
        active: threads take turns, so changes of text are to be kept here.
    """

    def __init__(self) -> None:
        """Prepare; nothing is kept."""
        self.active = False
        self._due: dict[int, int] = {}  # address -> the byte that is to be written there
        self._shown: dict[int, bytes] = {}  # address of a jump -> the text that reads see there

    @property
    def jumps(self) -> Mapping[int, bytes]:
        """The jumps to the lock's code that are in guest memory: address -> the text that reads see
        there in place of the jump.
        """
        return self._shown

    def patch(self, addr: int, code: bytes) -> None:
        """Keep a change of text, which is written when the guest goes on. overlay() shows it at
        once.

        Args:
            addr: address of the first byte.
            code: the new bytes.
        """
        self._due.update(enumerate(code, addr))

    def put_back(self, addr: int, code: bytes) -> None:
        """Keep a change of text that is to overwrite a jump when the guest goes on. overlay() shows
        it at once.

        Args:
            addr: address of the jump, which is in guest memory.
            code: the text that belongs there.
        """
        self._shown[addr] = code
        self.patch(addr, code)

    def overlay(self, addr: int, data: bytes) -> bytes:
        """Return memory as reads of the core are to see it: without the jumps, and with the changes
        that are kept.

        Args:
            addr: where `data` was read.
            data: the bytes in guest memory.
        """
        if not self._due and not self._shown:
            return data
        out = bytearray(data)
        for place, shown in self._shown.items():
            for at in range(max(place, addr), min(place + len(shown), addr + len(data))):
                out[at - addr] = shown[at - place]
        for at, byte in self._due.items():
            if 0 <= at - addr < len(out):
                out[at - addr] = byte
        return bytes(out)

    def take_all(
        self,
        stops: Iterable[int],
        jump_at: Callable[[int], bytes],
        read: Callable[[int, int], bytes],
    ) -> list[tuple[int, bytes]]:
        """Return what is to be written to guest memory now, and forget the changes that were kept.

        Called when the guest is about to go on; the caller writes. From now on `jumps` has the
        jumps at `stops` alone; where another one stood, the text beneath it is among the writes.
        Where no change is kept, the result is [], and `jumps` stays as it was.

        Args:
            stops: addresses where threads are to stop; a jump is to be written at each.
            jump_at: (address) -> the bytes of that jump; raises Unsupported where none fits.
            read: (address, size) -> memory as reads see it.

        Returns:
            (address, bytes) of each write, by address; a jump that stands already is not among
            them, unless a change was kept for its bytes.

        Raises:
            Unsupported: from jump_at(). As after any other exception of jump_at() or read(),
                nothing is changed then.
        """
        if not self._due:
            return []
        jumps = {addr: jump_at(addr) for addr in stops}
        shown = {addr: read(addr, len(jump)) for addr, jump in jumps.items()}
        text: dict[int, int] = {}
        for place, was in self._shown.items():
            if place not in jumps:
                text.update(enumerate(was, place))
        text.update(self._due)
        for addr, jump in jumps.items():
            if addr not in self._shown or self._due.keys() & range(addr, addr + len(jump)):
                text.update(enumerate(jump, addr))
        self._shown = shown
        self._due = {}
        return list(_runs(text))


def _runs(text: dict[int, int]) -> Iterable[tuple[int, bytes]]:
    """Join neighbouring bytes: yield (address, bytes) of each run of them, by address.

    Args:
        text: address -> byte there.
    """
    start = -1
    code = bytearray()
    for addr in sorted(text):
        if addr != start + len(code):
            if code:
                yield start, bytes(code)
            start = addr
            code = bytearray()
        code.append(text[addr])
    if code:
        yield start, bytes(code)
