"""Breakpoints of the stub's own: of which kind each is, and what is beneath it.

A memory breakpoint (Z0) that the stub writes into memory stands nowhere in flash or ROM, whether
the stub says so or not: there it is a hardware breakpoint (Z1), of which a processor has a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ...arch._base import Arch
from ...errors import GuestFault, NoBreakpoint, RemoteError
from ...symbols import Symbols
from .layouts import facts_of
from .packets import Connection

Read = Callable[[int, int], bytes]
Spans = tuple[tuple[int, int], ...]


def kind_of(arch: Arch, symbols: Symbols, read: Read, addr: int) -> int:
    """Return GDB's kind of a breakpoint at an address: bytes of the instruction, on most
    architectures.
    """
    kinds = facts_of(arch).kinds
    if not kinds:
        return arch.insn_align
    symbol = symbols.covering(addr)
    if arch.pointers.mode_bits and symbol is not None and symbol.mode:
        return 2
    try:
        code = read(addr, arch.max_insn)
    except GuestFault:
        return arch.insn_align
    return kinds.get(arch.decode(code.ljust(2 * arch.max_insn, b"\0"), addr).size, arch.insn_align)


class StubBreakpoints:
    """The breakpoints of one stub. Each is inserted once, however often it is wanted.

    Attributes:
        hardware: addresses of hardware breakpoints.
    """

    def __init__(self, link: Connection, read: Read, write: Callable[[int, bytes], None]) -> None:
        """Prepare; of() comes before the first breakpoint.

        Args:
            read: reads guest memory, without breakpoints: it asks over().
            write: writes guest memory.
        """
        self._link = link
        self._read = read
        self._write = write
        self._kind_at: Callable[[int], int] = lambda addr: 1
        self._unwritable: Callable[[], Spans] = tuple
        self._flash: Spans | None = None  # None: the stub was not asked yet
        self._try_at: int | None = None  # where _find_out() tries; None: it need not, or has
        self._scratch = range(0)  # memory of the library's: it can be written, and has traps in it
        self._there: dict[int, tuple[int, int]] = {}  # address -> its kind, number of add()s
        self._shows = False  # the stub shows its breakpoints in memory
        self._beneath: dict[int, bytes] = {}  # address of each that is shown -> the bytes beneath
        self.hardware: set[int] = set()

    def of(self, arch: Arch, symbols: Symbols, scratch: tuple[int, int] | None,
           unwritable: Callable[[], Spans]) -> None:
        """Say what the guest is.

        Args:
            scratch: (start, bytes) of memory that nothing uses, where to find out whether the stub
                shows its breakpoints in memory, as OpenOCD does; None: it does not.
            unwritable: returns (start, end) of flash and ROM that the stub knows of.
        """
        self._kind_at = partial(kind_of, arch, symbols, self._read)
        self._unwritable = unwritable
        if scratch:
            self._try_at = scratch[0]
            self._scratch = range(scratch[0], sum(scratch))

    def add(self, addr: int) -> None:
        """Stop before the instruction at `addr` is executed. Every call wants one remove().

        Raises:
            NoBreakpoint: the stub inserts none.
        """
        kind, wanted = self._there.get(addr, (0, 0))
        if not wanted:
            self._find_out()
            kind = self._kind_at(addr)
            self._insert(addr, kind)
        self._there[addr] = kind, wanted + 1

    def remove(self, addr: int) -> None:
        """Remove a breakpoint of add(); the stub's goes when every add() of the address is undone.
        """
        kind, wanted = self._there.pop(addr, (0, 0))
        if wanted > 1:
            self._there[addr] = kind, wanted - 1
        elif wanted:
            self._take_out(addr, kind)

    def at(self, addr: int) -> bool:
        """Return True where a breakpoint stands."""
        return addr in self._there

    @contextmanager
    def away(self, start: int, end: int) -> Iterator[None]:
        """Take those in [start, end) out meanwhile."""
        there = [(addr, kind) for addr, (kind, _) in self._there.items() if start <= addr < end]
        for addr, kind in there:
            self._take_out(addr, kind)
        try:
            yield
        finally:
            for addr, kind in there:
                if not self._link.closed:
                    self._insert(addr, kind)

    def remove_from_child(self) -> None:
        """Take all of them out of a forked child, whose memory the stub shows now; they stay the
        parent's.

        gdbserver 13 lets a child go with those that it has, and puts them back over what is written
        there.
        """
        self._link.ask_all(
            [
                self._packet(self._removes(addr), addr, kind)
                for addr, (kind, _) in self._there.items()
            ]
        )

    def suspend(self) -> None:
        """Take all of them out until resume(): a child runs in the same memory.

        gdbserver 13 drops a breakpoint that it does not find in memory.
        """
        self.remove_from_child()

    def resume(self) -> None:
        """Insert the breakpoints that suspend() took out."""
        for addr, (kind, _) in self._there.items():
            self._insert(addr, kind)

    def shown(self, start: int, end: int) -> bool:
        """Return True where the stub shows some in [start, end), so that a write would overwrite
        them.
        """
        return any(
            addr < end and start < addr + len(plain) for addr, plain in self._beneath.items()
        )

    def over(self, start: int, data: bytes) -> bytes:
        """Return memory without breakpoints; `data` is what the stub shows at `start`."""
        out = bytearray(data)
        for addr, plain in self._beneath.items():
            lo, hi = max(addr, start), min(addr + len(plain), start + len(data))
            if lo < hi:
                out[lo - start:hi - start] = plain[lo - addr:hi - addr]
        return bytes(out)

    def _insert(self, addr: int, kind: int) -> None:
        plain = self._read(addr, kind) if self._shows else b""
        said = b"" if self._in_flash(addr) else self._ask(b"Z0", addr, kind)
        if (
            said == b"OK"
            and plain
            and addr not in self._scratch
            and self._read(addr, kind) == plain
        ):
            self._ask(b"z0", addr, kind)
            said = b""  # it does not stand there
        if said == b"OK":
            if plain:
                self._beneath[addr] = plain
        elif self._ask(b"Z1", addr, kind) == b"OK":
            self.hardware.add(addr)
        else:
            raise self._refusal(addr, kind, said)

    def _refusal(self, addr: int, kind: int, said: bytes) -> NoBreakpoint:
        """Return the error that says why none can be at `addr`; `said` is the stub's answer."""
        with suppress(GuestFault):
            if self.hardware and self._read(addr, kind):
                return NoBreakpoint(
                    "memory that cannot be written wants a hardware breakpoint, and all that the "
                    f"stub has are in use: {len(self.hardware)}",
                    address=addr,
                    hint="unregister or disable a probe in such memory",
                )
        words = (
            repr(said.decode("latin1")[:40])
            if said
            else "nothing: memory is not written, or it does not know how"
        )
        return NoBreakpoint(f"the stub does not insert a breakpoint: it says {words}", address=addr,
                            hint="use a stub that does")

    def _in_flash(self, addr: int) -> bool:
        if self._flash is None:
            self._flash = self._unwritable()
        return any(start <= addr < end for start, end in self._flash)

    def _take_out(self, addr: int, kind: int) -> None:
        self._ask(self._removes(addr), addr, kind)  # refused: it is gone already
        self.hardware.discard(addr)
        self._beneath.pop(addr, None)

    def _ask(self, what: bytes, addr: int, kind: int) -> bytes:
        return self._link.ask(self._packet(what, addr, kind))

    def _removes(self, addr: int) -> bytes:
        """Return what removes one of the kind that stands there."""
        return b"z1" if addr in self.hardware else b"z0"

    @staticmethod
    def _packet(what: bytes, addr: int, kind: int) -> bytes:
        return b"%s,%x,%x" % (what, addr, kind)

    def _find_out(self) -> None:
        """Find out whether the stub shows its breakpoints in memory, once there is memory to try.
        """
        if self._try_at is None:
            return
        with suppress(GuestFault, RemoteError):
            was = self._read(self._try_at, 4)
            self._write(self._try_at, bytes(4))
            if not any(self._read(self._try_at, 4)) and self._ask(b"Z0", self._try_at, 2) == b"OK":
                self._shows = any(self._read(self._try_at, 4))
                self._ask(b"z0", self._try_at, 2)
            self._write(self._try_at, was)
            self._try_at = None
