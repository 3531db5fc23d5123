"""The host memory that a program under the interpreter may touch, access by access."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .isa import FRAMES, STACK_SIZE
from .maps import Map, Maps, PinnedMemory

_STACK: Final = FRAMES * STACK_SIZE
# farther away from the stack than an instruction's offset reaches
_CONTEXT: Final = _STACK + (1 << 16)


class Invalid(Exception):
    """The program does what it may not do; the interpreter makes a ProgramError of it."""


class ProgramMemory:
    """The memory of a run: stack frames, the context, map values and reserved records.

    Attributes:
        top: host address behind the stack; the entry function's r10.
        context: host address of the context.
        depth: how many stack frames are in use.
        rounds: how often the helper may_loop() was called in this run.
    """

    def __init__(self, maps: Iterable[Map], context: int) -> None:
        """Allocate a stack, and room for the context.

        Args:
            maps: the program's maps.
            context: bytes of the largest context.
        """
        maps = tuple(maps)
        self._maps = [m for m in maps if m.span[1]]
        self._holders = [m for m in maps if isinstance(m, Maps)]
        # address of a reserved record -> its buffer and size
        self._rings: dict[int, tuple[Map, int]] = {}
        self._all = tuple(maps)
        self._block = PinnedMemory(_CONTEXT + context)
        self._bottom = self._block.address
        self.top = self._bottom + _STACK
        self.context = self._bottom + _CONTEXT
        self._context_end = self.context
        self._context_writable = False
        self.depth = 1
        self.rounds = 0

    def begin(self, context: bytes | bytearray, size: int) -> None:
        """Prepare for a run: zero the stack, write the context to memory, forget records, and reset
        `depth` and `rounds`.

        Args:
            context: the context; the program may write it if it is a bytearray.
            size: bytes at r1 that the program may access: zeros follow the context up to there.
        """
        self._rings.clear()
        self.depth = 1
        self.rounds = 0
        self._block.view[:_STACK] = bytes(_STACK)
        self._block.view[_CONTEXT : _CONTEXT + size] = bytes(context).ljust(size, b"\0")
        self._context_end = self.context + size
        self._context_writable = isinstance(context, bytearray)

    def enter(self) -> None:
        """Begin the stack frame of a called function, zeroed.

        A helper may read padding there that the function does not write.
        """
        self.depth += 1
        self._block.view[_STACK - self.depth * STACK_SIZE :][:STACK_SIZE] = bytes(STACK_SIZE)

    def end(self, context: bytes | bytearray) -> None:
        """Copy the context back to the caller's object, at the end of a run.

        Args:
            context: a bytearray gets what the program has written; nothing is done with bytes.
        """
        if isinstance(context, bytearray):
            context[:] = self._block.view[_CONTEXT : _CONTEXT + len(context)]

    def find(self, addr: int, size: int, write: bool) -> tuple[memoryview, int]:
        """Find the memory of an access, and check that the program may make it.

        Args:
            addr: host address of the first byte.
            size: bytes.
            write: True where they are written.

        Returns:
            (a view of the memory block, index of the first byte in it).

        Raises:
            Invalid: the program may not access these bytes.
        """
        if self._bottom <= addr < self.top:
            return self._stack(addr, size)
        if self.context <= addr < self._context_end:
            if write and not self._context_writable:
                raise Invalid("writes to the context, which is read-only")
            return self._within(addr, size, self._context_end, "the context", self._block)
        for m in self._maps:
            start, length = m.span
            if start <= addr < start + length:
                return self._value(m, addr, size, write)
        for m in (held for holder in self._holders for held in holder.held()):
            start, length = m.span
            if start <= addr < start + length:
                return self._value(m, addr, size, write)
        for start, (m, length) in self._rings.items():
            if start <= addr < start + length:
                return self._within(addr, size, start + length, "a record", m.block)
        raise Invalid(f"accesses {size} bytes at {addr:#x}, which is none of its memory")

    def _stack(self, addr: int, size: int) -> tuple[memoryview, int]:
        """Find bytes on the stack, all of them within one frame that is in use.

        Args:
            addr: host address of the first byte.
            size: how many bytes.

        Returns:
            (a view of the memory block, index of the first byte in it).

        Raises:
            Invalid: the bytes are not within such a frame.
        """
        frame = (self.top - 1 - addr) // STACK_SIZE
        if frame >= self.depth:
            raise Invalid("accesses memory below its stack frame")
        return self._within(addr, size, self.top - frame * STACK_SIZE, "a stack frame", self._block)

    def _value(self, m: Map, addr: int, size: int, write: bool) -> tuple[memoryview, int]:
        """Find bytes within one value of a map.

        Args:
            m: the map, in whose span the address lies.
            addr: host address of the first byte.
            size: bytes.
            write: True where they are written.

        Returns:
            (a view of the map's memory, index of the first byte in it).

        Raises:
            Invalid: the bytes are not within one value, or are written and the map is read-only.
        """
        extent = m.extent(addr)
        if extent is None:
            raise Invalid(f"accesses memory between the values of map {m.name}")
        if write and m.readonly:
            raise Invalid(f"writes to map {m.name}, which is read-only")
        return self._within(addr, size, extent[1], f"a value of map {m.name}", m.block)

    @staticmethod
    def _within(
        addr: int, size: int, end: int, what: str, block: PinnedMemory
    ) -> tuple[memoryview, int]:
        """Return (view of the block, index of the first byte in it) of bytes; check their end.

        Args:
            addr: host address of the first byte.
            size: bytes.
            end: host address behind the memory.
            what: names the memory in the error.
            block: the memory.

        Raises:
            Invalid: the bytes go beyond `end`.
        """
        if addr + size > end:
            raise Invalid(f"accesses {size} bytes where {what} has only {end - addr} left")
        return block.view, addr - block.address

    # ---- for helpers

    def read(self, addr: int, size: int) -> bytes:
        """Return bytes of the program's memory; b"" for size 0, whatever the address.

        Raises:
            Invalid: the program may not read them.
        """
        if not size:
            return b""
        view, at = self.find(addr, size, False)
        return bytes(view[at : at + size])

    def write(self, addr: int, data: bytes) -> None:
        """Write bytes to the program's memory.

        Raises:
            Invalid: the program may not write them.
        """
        if data:
            view, at = self.find(addr, len(data), True)
            view[at : at + len(data)] = data

    def own(self, addr: int, size: int) -> bytes | None:
        """Return up to `size` bytes of the program's memory from an address on.

        They end where the value, record or frame does that the address is in.

        Args:
            addr: any number.
            size: bytes at most.

        Returns:
            The bytes; b"": the address is in the context, in a stack frame that is not in use, or
            in a part of a map that programs cannot read. None: the address is in none of the
            program's memory.
        """
        end = self._end(addr)
        return None if end is None else self.read(addr, min(size, end - addr))

    def _end(self, addr: int) -> int | None:
        """Return the address behind the frame, record or value that an address points into.

        Args:
            addr: any number.

        Returns:
            `addr` itself, where own() shows nothing of what is there, such as the context. None:
            the address is in none of the program's memory.
        """
        if self._bottom <= addr < self.top:
            frame = (self.top - 1 - addr) // STACK_SIZE
            return self.top - frame * STACK_SIZE if frame < self.depth else addr
        if self.context <= addr < self._context_end:
            return addr
        for start, (_, size) in self._rings.items():
            if start <= addr < start + size:
                return start + size
        for m in self._all:
            if m.block.address <= addr < m.block.address + m.block.size:
                return (
                    (m.extent(addr) or (0, addr))[1] if 0 <= addr - m.span[0] < m.span[1] else addr
                )
        return None

    def check(self, addr: int, size: int) -> None:
        """Check that the program may write bytes, before a helper makes them.

        Args:
            addr: host address of the first byte.
            size: bytes; 0: nothing is checked.

        Raises:
            Invalid: the program may not write there.
        """
        if size:
            self.find(addr, size, True)

    def grant(self, addr: int, size: int) -> None:
        """Let the program access a ring's record that it has reserved.

        Args:
            addr: host address of the record's data.
            size: bytes of the data.
        """
        for m in self._all:
            if m.block.address <= addr < m.block.address + m.block.size:
                self._rings[addr] = m, size

    def revoke(self, addr: int) -> None:
        """End the program's access to a record, which the program submits or discards.

        Args:
            addr: host address of the record's data, as given to grant().

        Raises:
            Invalid: the program has not reserved a record there.
        """
        if self._rings.pop(addr, None) is None:
            raise Invalid("gives back a record that it has not reserved")

    @property
    def kept(self) -> list[int]:
        """The addresses of records that were reserved, and neither submitted nor discarded."""
        return list(self._rings)
