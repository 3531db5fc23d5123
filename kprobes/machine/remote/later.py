"""Text of a process of several threads, as it is to be once the guest goes on: it changes then, and all at once. Never
is there a breakpoint that the next moment is a jump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


class Later:
    """What is not there yet, and what is shown where jumps of ours stand. write: puts it there."""

    def __init__(self, write: Callable[[int, bytes], None]) -> None:
        self._write = write
        self._due: dict[int, int] = {}  # address -> byte that is to be there
        self._led: dict[int, bytes] = {}  # address of a jump to where threads stop -> what is shown there

    @property
    def led(self) -> Mapping[int, bytes]:
        """Address of each such jump -> what is shown there."""
        return self._led

    def patch(self, addr: int, code: bytes) -> None:
        """It is to be there."""
        self._due.update(enumerate(code, addr))

    def belongs(self, addr: int, code: bytes) -> None:
        """What stands there goes when the guest goes on; until then this is shown."""
        self._led[addr] = code
        self.patch(addr, code)

    def over(self, addr: int, data: bytes) -> bytes:
        """Memory as it is to be, with breakpoints."""
        if not self._due and not self._led:
            return data
        out = bytearray(data)
        for place, shown in self._led.items():
            for at in range(max(place, addr), min(place + len(shown), addr + len(data))):
                out[at - addr] = shown[at - place]
        for at, byte in self._due.items():
            if 0 <= at - addr < len(out):
                out[at - addr] = byte
        return bytes(out)

    def settle(self, stops: Iterable[int], lead: Callable[[int], bytes], read: Callable[[int, int], bytes]) -> None:
        """The guest goes on. stops: addresses of breakpoints; lead: the jump that stands there, Unsupported where it
        does not fit. read: memory with breakpoints."""
        if not self._due:
            return
        jumps = {addr: lead(addr) for addr in stops}
        shown = {addr: read(addr, len(jump)) for addr, jump in jumps.items()}
        there = {addr: byte for place, was in self._led.items() if place not in jumps
                 for addr, byte in enumerate(was, place)} | self._due
        there.update((at, byte) for addr, jump in jumps.items() for at, byte in enumerate(jump, addr)
                     if addr not in self._led or self._due.keys() & range(addr, addr + len(jump)))
        self._led, self._due = shown, {}
        for addr, code in _runs(there):
            self._write(addr, code)


def _runs(there: dict[int, int]) -> Iterable[tuple[int, bytes]]:
    """(address, bytes) of what is side by side."""
    start, code = -1, bytearray()
    for addr in sorted(there):
        if addr != start + len(code):
            if code:
                yield start, bytes(code)
            start, code = addr, bytearray()
        code.append(there[addr])
    if code:
        yield start, bytes(code)
