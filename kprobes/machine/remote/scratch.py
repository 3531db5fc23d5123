"""Executable memory in a remote guest: pages of a process, by a system call that one of its threads is made to execute;
an area that somebody has set aside in a kernel or firmware; or what a Linux kernel's own allocator gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row
from ...errors import GuestFault, NoMemory, OutOfReach, Unsupported
from ...symbols import Symbols
from .errands import Errands

GAPS = (0, 1 << 20, 1 << 24, 1 << 25)  # bytes above an image where there may be room
READ_WRITE_EXECUTE = 7
PRIVATE = 2
AT_ONCE = 64  #: pages that a kernel is asked for
#: functions of Linux that give executable memory near the kernel's text, and the arguments before the size
ALLOCATORS = (("execmem_alloc", (0,)), ("module_alloc", ()))
PROTECT = "set_memory_x"
UNUSED = "_text"  #: Linux's first instruction: executed once, when it is started
NOTHING = 4095  #: results from -4095 on are errors


class Process:
    """Pages of a process.

    execute: (code, registers to set, bytes to lay at the stack pointer less `ROOM`, name of a register) -> that
    register when a thread has executed the code once, with everything put back.
    """

    ROOM = 256

    def __init__(self, arch: Arch, execute: Callable[[bytes, Mapping[str, int], bytes, str], int]) -> None:
        known = row(arch, Linux)
        calls = known.memory if known is not None else None
        if calls is None:
            raise Unsupported(f"nobody has said how a process of {arch.name} asks for memory",
                              hint="pass scratch=(start, size)")
        self._arch, self._calls, self._execute = arch, calls, execute

    def map(self, hint: int, size: int) -> int:
        """Map memory as near above `hint` as the system likes; NoMemory."""
        calls, word = self._calls, self._arch.bits // 8
        args = [hint, size, READ_WRITE_EXECUTE, PRIVATE | calls.anonymous, self._arch.mask, 0]
        laid = b""
        if calls.block or calls.on_stack:
            shown = args if calls.block else args[4:]
            laid = bytes(calls.on_stack) + b"".join(arg.to_bytes(word, self._arch.order.value) for arg in shown)
        found = self._call(calls.map, args, laid)
        if found > self._arch.mask - NOTHING or found % 4096 or not found:
            raise NoMemory("the process gets no memory", hint="the guest's system refuses executable pages")
        return found

    def unmap(self, addr: int, size: int) -> None:
        """Unmap it."""
        with suppress(GuestFault):  # it stands where it can execute nothing: the page stays
            self._call(self._calls.unmap, [addr, size], b"")

    def _call(self, number: int, args: list[int], laid: bytes) -> int:
        calls = self._calls
        code = calls.code
        values = dict(zip(calls.args, args, strict=False))
        if calls.number:
            values[calls.number] = number
        else:
            code += bytes([number])
        if laid and calls.block:
            values = {calls.args[0]: -1}  # the block's address; whoever executes it knows that
        return self._execute(code + calls.delay, values, laid, calls.result)


class Area:
    """Memory that somebody has set aside: pages of [start, start + size), handed out and taken back. read, write:
    it; a stub may say that it has written what stays as it is."""

    def __init__(self, start: int, size: int, page: int, read: Callable[[int, int], bytes],
                 write: Callable[[int, bytes], None]) -> None:
        first = -(-start // page) * page
        self._page, self._read, self._write = page, read, write
        self._tried = set[int]()
        self._free = list(range(first, (start + size) // page * page, page))[::-1]

    def map(self, hint: int, size: int) -> int:
        """A page; NoMemory."""
        if size != self._page or not self._free:
            raise NoMemory("the scratch area is used up", hint="pass a larger scratch=")
        if self._free[-1] not in self._tried:
            self._try(self._free[-1])
        return self._free.pop()

    def _try(self, page: int) -> None:
        """NoMemory where nothing can be written."""
        other = bytes(byte ^ 0xFF for byte in self._read(page, 4))
        self._write(page, other)
        if self._read(page, 4) != other:
            raise NoMemory("the scratch area stays as it is when it is written", address=page,
                           hint="pass one in memory that is neither flash nor ROM")
        self._tried.add(page)

    def unmap(self, addr: int, size: int) -> None:
        """Take it back."""
        self._free.append(addr)


class Kernel:
    """Pages that a Linux kernel gives its own modules, many at a time: they stay ours as long as it runs.

    errands: run its functions, with the thread that stands in it.
    """

    def __init__(self, symbols: Symbols, page: int, errands: Errands) -> None:
        self._symbols, self._page, self._errands = symbols, page, errands
        self._free: list[int] = []

    def map(self, hint: int, size: int) -> int:
        """A page, or memory of any other size; NoMemory, Unsupported."""
        if size != self._page:
            return self._take(size)
        if not self._free:
            start = self._take(AT_ONCE * self._page)
            self._free = list(range(start, start + AT_ONCE * self._page, self._page))[::-1]
        return self._free.pop()

    def unmap(self, addr: int, size: int) -> None:
        """Take it back."""
        self._free.append(addr)

    def _take(self, size: int) -> int:
        ways = [(name, args) for name, args in ALLOCATORS if name in self._symbols]
        if not ways or PROTECT not in self._symbols:
            raise Unsupported("a whole machine has nobody to ask for executable memory",
                              hint="pass scratch=(start, size), or symbols of a Linux kernel")
        if not self._errands.in_kernel:
            raise Unsupported("a kernel gives memory only to who runs in it",
                              hint="run(until=) a function of the kernel first, of a system call for example")
        name, args = ways[0]
        start = self._call(name, *args, size)
        if not start or start % self._page:
            raise NoMemory("the kernel gives no memory", hint="give the guest more, or pass scratch=(start, size)")
        self._call(PROTECT, start, size // self._page)
        return start

    def _call(self, function: str, *args: int) -> int:
        return self._errands.call(self._symbols[function].address, args, self._symbols[UNUSED].address)


class Pages:
    """Pages of ours in the guest: for code, each by itself, and for what alloc() hands out in pieces."""

    def __init__(self, source: Process | Area | Kernel, page: int, arch: Arch) -> None:
        self._source, self._page, self._arch = source, page, arch
        self._code: set[int] = set()
        self._spare: list[tuple[int, int]] = []  # (address, size)
        self._taken: dict[int, int] = {}

    def has(self, addr: int) -> bool:
        """True in a page for code."""
        return addr & -self._page in self._code

    def map_near(self, near: int, above: int, below: int = 0) -> int:
        """Map a page for code: beside those that are near already, else not far above an image, else below it where a
        jump reaches no other, else where the system likes.

        Args:
            near: address that jumps are to lead to.
            above: end of the image that it lies in.
            below: start of that image; 0: it lies in none.

        Raises:
            NoMemory: the system gives none.
        """
        first = -(-above // self._page) * self._page
        beside = [place + self._page for place in self._code if place + self._page not in self._code
                  and self._reaches(near, place + self._page)]
        page = -1
        for hint in (*sorted(beside, key=lambda place: abs(place - near))[:2], *(first + gap for gap in GAPS)):
            if page >= 0:
                self._source.unmap(page, self._page)
            page = self._source.map(hint & self._arch.mask, self._page)
            if page == hint:
                break
        if below and not self._reaches(near, page):
            lower = self._source.map(below - self._page & -self._page, self._page)
            page, unused = (lower, page) if self._reaches(near, lower) else (page, lower)
            self._source.unmap(unused, self._page)
        self._code.add(page)
        return page

    def _reaches(self, near: int, page: int) -> bool:
        """Whether jumps lead from all of the page to `near`, and back."""
        jump, end = self._arch.jump, page + self._page - 16
        if jump is None:
            return True
        near &= -16
        try:
            return all(jump.encode(frm, to) for frm, to in ((near, page), (page, near), (near, end), (end, near)))
        except OutOfReach:
            return False

    def unmap(self, page: int, *, there: bool) -> None:
        """Give a page for code back; there: the guest still exists."""
        self._code.discard(page)
        if there:
            self._source.unmap(page, self._page)

    def alloc(self, size: int) -> int:
        """Memory of `size` bytes, aligned to 16. NoMemory."""
        need = -(-max(size, 1) // 16) * 16
        place = next((piece for piece in self._spare if piece[1] >= need), None)
        if place is None:
            room = -(-need // self._page) * self._page
            place = (self._source.map(0, room), room)
        else:
            self._spare.remove(place)
        if place[1] > need:
            self._spare.append((place[0] + need, place[1] - need))
        self._taken[place[0]] = need
        return place[0]

    def fresh(self, size: int) -> int:
        """Pages that are never taken back; a process's are zeros. NoMemory."""
        return self._source.map(0, -(-size // self._page) * self._page)

    def free(self, addr: int) -> None:
        """Take memory from alloc() back."""
        size = self._taken.pop(addr, 0)
        if size:
            self._spare.append((addr, size))
