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
    """Return the number by which GDB tells a stub what kind of breakpoint to insert at an address.

    It is 2 in Thumb code; else what the architecture's row says of an instruction of that size
    (`StubFacts.kinds`); `arch.insn_align` where the row says nothing, or the code cannot be read.

    Args:
        arch: the guest's architecture.
        symbols: say in which mode (Arm or Thumb) the code there is.
        read: (address, size) -> guest memory without breakpoints.
        addr: address of the breakpoint.
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
        """Prepare; of() is called before the first breakpoint.

        Args:
            link: the connection to the stub.
            read: (address, size) -> guest memory without breakpoints; it calls over().
            write: (address, bytes) writes guest memory.
        """
        self._link = link
        self._read = read
        self._write = write
        self._kind_at: Callable[[int], int] = lambda addr: 1
        self._unwritable: Callable[[], Spans] = tuple
        self._flash: Spans | None = None  # None: the stub was not asked yet
        self._try_at: int | None = None  # where _find_out() tries; None: it need not, or has
        self._scratch = range(0)  # memory of the library's: it can be written, and has traps in it
        # address of a breakpoint -> (its kind, how often it was added)
        self._there: dict[int, tuple[int, int]] = {}
        self._shows = False  # the stub shows its breakpoints in memory
        # address of a breakpoint that is shown -> the bytes beneath it
        self._beneath: dict[int, bytes] = {}
        self.hardware: set[int] = set()

    def of(
        self,
        arch: Arch,
        symbols: Symbols,
        scratch: tuple[int, int] | None,
        unwritable: Callable[[], Spans],
    ) -> None:
        """Set what breakpoints depend on in the guest. Called once, before the first add().

        Args:
            arch: the guest's architecture.
            symbols: the guest's symbols; some say which code is Thumb.
            scratch: (start, bytes) of memory that nothing uses, to find out there whether the stub
                shows its breakpoints in memory, as OpenOCD does; None: it does not show them.
            unwritable: () -> (start, end) of each flash and ROM that the stub knows of. It is
                called once, at the first breakpoint.
        """
        self._kind_at = partial(kind_of, arch, symbols, self._read)
        self._unwritable = unwritable
        if scratch:
            self._try_at = scratch[0]
            self._scratch = range(scratch[0], sum(scratch))

    def add(self, addr: int) -> None:
        """Stop the guest before it executes the instruction at `addr`, until remove().

        An address may be added several times; it is to be removed as often. The stub inserts the
        breakpoint at the first time; before the first breakpoint of all it is found out whether the
        stub shows breakpoints in memory.

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
        """Take back one add(addr). The breakpoint is removed from the guest with the last; nothing
        is done where there is none.
        """
        kind, wanted = self._there.pop(addr, (0, 0))
        if wanted > 1:
            self._there[addr] = kind, wanted - 1
        elif wanted:
            self._take_out(addr, kind)

    def at(self, addr: int) -> bool:
        """Return True where add() has put a breakpoint at `addr`."""
        return addr in self._there

    @contextmanager
    def away(self, start: int, end: int) -> Iterator[None]:
        """Remove the breakpoints in [start, end) from the guest inside a with block, and insert
        them again at its end, also after an exception; not where the connection is closed by then.

        How often each was added is kept.

        Args:
            start: address of the first byte.
            end: address behind the last byte.

        Raises:
            NoBreakpoint: at the end, the stub does not insert one of them.
        """
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
        """Remove all breakpoints from a forked child's memory. The parent keeps its own, and
        nothing that is noted of them here changes.

        The stub must show the child's memory now. gdbserver 13 does not remove them by itself when
        it lets the child go, and puts them back where their memory is written.
        """
        self._link.ask_all(
            [
                self._packet(self._removes(addr), addr, kind)
                for addr, (kind, _) in self._there.items()
            ]
        )

    def suspend(self) -> None:
        """Remove all breakpoints from the guest until resume(), as a child of vfork() runs in the
        same memory.

        gdbserver 13 drops a breakpoint that it does not find in memory.
        """
        self.remove_from_child()

    def resume(self) -> None:
        """Insert the breakpoints that suspend() took out, and those added since.

        Raises:
            NoBreakpoint: the stub does not insert one of them.
        """
        for addr, (kind, _) in self._there.items():
            self._insert(addr, kind)

    def shown(self, start: int, end: int) -> bool:
        """Return True if the stub shows breakpoints in [start, end) when that memory is read:
        writing there would overwrite them.
        """
        return any(
            addr < end and start < addr + len(plain) for addr, plain in self._beneath.items()
        )

    def over(self, start: int, data: bytes) -> bytes:
        """Return memory that the stub has shown, with the guest's own bytes in place of
        breakpoints.

        Args:
            start: address of the first byte.
            data: the bytes as the stub has shown them.
        """
        out = bytearray(data)
        for addr, plain in self._beneath.items():
            lo, hi = max(addr, start), min(addr + len(plain), start + len(data))
            if lo < hi:
                out[lo - start : hi - start] = plain[lo - addr : hi - addr]
        return bytes(out)

    def _insert(self, addr: int, kind: int) -> None:
        """Have the stub insert a breakpoint: in memory (Z0), or by hardware (Z1) where memory is
        flash or ROM, the stub refuses Z0, or memory stays as it was though it should show one.

        What the stub shows over the guest's bytes is noted in `_beneath`; a hardware breakpoint in
        `hardware`.

        Args:
            addr: address of the breakpoint.
            kind: its kind, from kind_of().

        Raises:
            NoBreakpoint: the stub inserts neither.
        """
        plain = self._read(addr, kind) if self._shows else b""
        said = b"" if self._in_flash(addr) else self._ask(b"Z0", addr, kind)
        if (
            said == b"OK"
            and plain
            and addr not in self._scratch
            and self._read(addr, kind) == plain
        ):
            self._ask(b"z0", addr, kind)
            said = b""  # memory is unchanged: it is flash, whatever the stub says
        if said == b"OK":
            if plain:
                self._beneath[addr] = plain
        elif self._ask(b"Z1", addr, kind) == b"OK":
            self.hardware.add(addr)
        else:
            raise self._refusal(addr, kind, said)

    def _refusal(self, addr: int, kind: int, said: bytes) -> NoBreakpoint:
        """Return the error to raise for a breakpoint that the stub does not insert.

        Where there are hardware breakpoints, and the memory can be read, the error says that no
        more are left; else it has the stub's answer.

        Args:
            addr: where it was to be.
            kind: its kind, from kind_of().
            said: the stub's answer to Z0; b"": it knows no such packet, or memory was not written.
        """
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
        return NoBreakpoint(
            f"the stub does not insert a breakpoint: it says {words}",
            address=addr,
            hint="use a stub that does",
        )

    def _in_flash(self, addr: int) -> bool:
        """Return True if the stub's memory map has `addr` in flash or ROM. The map is asked for
        once.
        """
        if self._flash is None:
            self._flash = self._unwritable()
        return any(start <= addr < end for start, end in self._flash)

    def _take_out(self, addr: int, kind: int) -> None:
        """Have the stub remove a breakpoint, and drop it from `hardware` and `_beneath`. A refusal
        of the stub's is ignored: the breakpoint is gone then. How often it was added stays noted.

        Args:
            addr: address of the breakpoint.
            kind: its kind, from kind_of().
        """
        self._ask(self._removes(addr), addr, kind)  # if this is refused it is gone already
        self.hardware.discard(addr)
        self._beneath.pop(addr, None)

    def _ask(self, command: bytes, addr: int, kind: int) -> bytes:
        """Send a breakpoint packet, and return the stub's answer: b"OK", b"" or an error.

        Args:
            command: Z0, Z1 (insert), z0 or z1 (remove): in memory, by hardware.
            addr: address of the breakpoint.
            kind: its kind, from kind_of().
        """
        return self._link.ask(self._packet(command, addr, kind))

    def _removes(self, addr: int) -> bytes:
        """Return the command that removes the breakpoint at `addr`: b"z1" for one of hardware, else
        b"z0".
        """
        return b"z1" if addr in self.hardware else b"z0"

    @staticmethod
    def _packet(command: bytes, addr: int, kind: int) -> bytes:
        """Return a breakpoint packet.

        Args:
            command: Z0, Z1 (insert), z0 or z1 (remove): in memory, by hardware.
            addr: the address.
            kind: GDB's kind, as of kind_of().
        """
        return b"%s,%x,%x" % (command, addr, kind)

    def _find_out(self) -> None:
        """Find out whether the stub shows its breakpoints in memory, by a breakpoint in scratch
        memory.

        Its result is `_shows`. The scratch memory is written for the trial, and put back. Nothing
        is done without scratch memory, or once this was found out; where the memory cannot be
        accessed yet, the next call tries again.
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
