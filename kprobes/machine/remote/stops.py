"""Breakpoints of the stub's own (Z0): of which kind each is, and what is beneath it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from ...symbols import Symbols
from .packets import Connection

#: architecture, or how it begins -> bytes of the instruction -> GDB's word for the breakpoint that goes there ("ARM
#: Breakpoint Kinds"; a RISC-V hart without compressed instructions has no short one, a Thumb one is 2 bytes long)
KINDS = {"riscv": {2: 2, 4: 4}, "arm": {2: 2, 4: 4}, "cortexm": {2: 2, 4: 3}}
Read = Callable[[int, int], bytes]


def kind_of(arch: Arch, symbols: Symbols, read: Read, addr: int) -> int:
    """The kind of a breakpoint at an address."""
    kinds = next((KINDS[name] for name in KINDS if arch.name in (name, f"{name}32", f"{name}64", f"{name}eb")), None)
    if kinds is None:
        return arch.insn_align
    symbol = symbols.covering(addr)
    if arch.pointers.mode_bits and symbol is not None and symbol.mode:
        return 2
    try:
        code = read(addr, arch.max_insn)
    except GuestFault:
        return arch.insn_align
    return kinds.get(arch.decode(code.ljust(2 * arch.max_insn, b"\0"), addr).size, arch.insn_align)


class Stops:
    """Breakpoints that somebody wants, each inserted once."""

    def __init__(self, link: Connection, read: Read, write: Callable[[int, bytes], None]) -> None:
        """read, write: guest memory; what read() gets has been through over()."""
        self._link, self._read, self._write = link, read, write
        self._kind_at: Callable[[int], int] = lambda addr: 1
        self._try_at: int | None = None
        self._there: dict[int, tuple[int, int]] = {}  # address -> its kind, how many want it
        self._shows = False
        self._beneath: dict[int, bytes] = {}  # of those that are shown

    def of(self, arch: Arch, symbols: Symbols, nobodys: tuple[int, int] | None) -> None:
        """What runs there. nobodys: (start, size) of executable memory, to find out whether the stub shows its
        breakpoints to who reads memory, as OpenOCD does; None: it does not."""
        self._kind_at = partial(kind_of, arch, symbols, self._read)
        self._try_at = nobodys[0] if nobodys else None

    def add(self, addr: int) -> None:
        """Stop before the instruction at `addr` is executed. Every call wants one remove()."""
        kind, wanted = self._there.get(addr, (0, 0))
        if not wanted:
            self._find_out()
            kind = self._kind_at(addr)
            self._insert(addr, kind)
        self._there[addr] = kind, wanted + 1

    def remove(self, addr: int) -> None:
        """Undo one add()."""
        kind, wanted = self._there.pop(addr, (0, 0))
        if wanted > 1:
            self._there[addr] = kind, wanted - 1
        elif wanted:
            self._take_out(addr, kind)

    @contextmanager
    def away(self, start: int, end: int) -> Iterator[None]:
        """None of those in [start, end) stands meanwhile."""
        there = [(addr, kind) for addr, (kind, _) in self._there.items() if start <= addr < end]
        for addr, kind in there:
            self._take_out(addr, kind)
        try:
            yield
        finally:
            for addr, kind in there:
                if not self._link.closed:
                    self._insert(addr, kind)

    def shown(self, start: int, end: int) -> bool:
        """True where a read of the stub's sees some, and a write would overwrite them."""
        return any(addr < end and start < addr + len(plain) for addr, plain in self._beneath.items())

    def over(self, start: int, data: bytes) -> bytes:
        """Memory as it is without them."""
        out = bytearray(data)
        for addr, plain in self._beneath.items():
            lo, hi = max(addr, start), min(addr + len(plain), start + len(data))
            if lo < hi:
                out[lo - start:hi - start] = plain[lo - addr:hi - addr]
        return bytes(out)

    def _insert(self, addr: int, kind: int) -> None:
        plain = self._read(addr, kind) if self._shows else b""
        answer = self._link.ask(b"Z0,%x,%x" % (addr, kind))
        if answer != b"OK":
            said = answer.decode("latin1")[:40] or "nothing: it does not know how"
            raise RemoteError(f"the stub does not insert a breakpoint: it says {said!r}", address=addr,
                              hint="use a stub that does")
        if plain:
            self._beneath[addr] = plain

    def _take_out(self, addr: int, kind: int) -> None:
        self._link.ask(b"z0,%x,%x" % (addr, kind))  # refused: it is gone already
        self._beneath.pop(addr, None)

    def _find_out(self) -> None:
        """Whether it shows them, once there is memory."""
        if self._try_at is None:
            return
        with suppress(GuestFault, RemoteError):
            was = self._read(self._try_at, 4)
            self._write(self._try_at, bytes(4))
            self._insert(self._try_at, 2)
            self._shows = any(self._read(self._try_at, 4))
            self._take_out(self._try_at, 2)
            self._write(self._try_at, was)
            self._try_at = None
