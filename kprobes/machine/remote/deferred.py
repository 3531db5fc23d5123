"""Changes of text in a process whose threads take turns: kept, and written as the guest goes on.

The other threads run while one has stopped. A breakpoint written now that becomes a jump a moment
later could be executed by them. So changes are kept until the guest goes on; reads see the text as
it will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


class DeferredText:
    """Changes of text that are not written yet, and the text that reads see in place of jumps.

    Those jumps lead to code that takes the threads' lock (threadlock.py); the core does not know
    of them, and sees its breakpoints there.

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
        """Jumps in memory that are to be overwritten: address -> the text that reads show there
        already.
        """
        return self._shown

    def patch(self, addr: int, code: bytes) -> None:
        """Write `code` at `addr` when the guest goes on."""
        self._due.update(enumerate(code, addr))

    def put_back(self, addr: int, code: bytes) -> None:
        """Write `code` at `addr` when the guest goes on, over a jump; reads see it until then."""
        self._shown[addr] = code
        self.patch(addr, code)

    def overlay(self, addr: int, data: bytes) -> bytes:
        """Return memory as reads see it, the core's breakpoints included.

        Args:
            addr: where `data` was read.
            data: the bytes in memory.
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
        """Return the changes, which are kept no more. The guest is about to go on.

        Args:
            stops: addresses of breakpoints; jumps are to be written there instead.
            jump_at: (address) -> that jump; raises Unsupported where none fits.
            read: (address, size) -> memory as reads see it.

        Returns:
            (address, bytes) of what is to be written.
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
    """Yield (address, bytes) of each run of neighbouring bytes."""
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
