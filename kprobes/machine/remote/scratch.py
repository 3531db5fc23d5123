"""Executable memory in a remote guest, for the library. There are three sources:

- ProcessPages: a process's thread is made to execute a system call that maps pages;
- AreaPages: an area of a kernel's or firmware's memory that the user has set aside;
- KernelPages: a Linux kernel's own allocator is called.

RemotePages hands them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ...arch._base import Arch
from ...arch._linux import Linux
from ...arch._rows import row
from ...errors import GuestFault, NoMemory, OutOfReach, Unsupported
from ...symbols import Symbols
from .injected import InjectedCode

GAPS = (0, 1 << 20, 1 << 24, 1 << 25)  # distances in bytes above an image at which to try for room
READ_WRITE_EXECUTE = 7  # arguments of mmap()
PRIVATE = 2
AT_ONCE = 64  #: pages that a kernel is asked for at a time
#: Functions of Linux that give executable memory near the kernel's text, and the arguments that
#: come before the size.
ALLOCATORS = (("execmem_alloc", (0,)), ("module_alloc", ()))
PROTECT = "set_memory_x"  #: function of Linux that makes memory executable
#: Symbol of Linux's first instruction. It is executed once, when Linux starts, so that a called
#: function may return there.
UNUSED = "_text"
NOTHING = 4095  #: results of system calls from -4095 on are errors


class ProcessPages:
    """Executable pages of a Linux process: one of its threads is made to execute mmap() and
    munmap().
    """

    def __init__(
        self, arch: Arch, execute: Callable[[bytes, Mapping[str, int], bytes, str], int]
    ) -> None:
        """Prepare; nothing is mapped.

        Args:
            arch: the guest's architecture.
            execute: (code, register -> value, bytes for the stack, name of a register) -> that
                register when a thread has executed the code once (InjectedCode.execute).

        Raises:
            Unsupported: the architecture's system calls are not known.
        """
        known = row(arch, Linux)
        calls = known.memory if known is not None else None
        if calls is None:
            raise Unsupported(
                f"it is not known how a process of {arch.name} asks for memory",
                hint="pass scratch=(start, size)",
            )
        self._arch = arch
        self._calls = calls
        self._execute = execute

    def map(self, hint: int, size: int) -> int:
        """Map executable pages in the process, and return their address.

        Args:
            hint: address to be near to, at best there; the guest's system decides.
            size: bytes.

        Raises:
            NoMemory: the system maps none.
        """
        calls, word = self._calls, self._arch.bits // 8
        args = [hint, size, READ_WRITE_EXECUTE, PRIVATE | calls.anonymous, self._arch.mask, 0]
        laid = b""
        if calls.mapped_by_block or calls.on_stack:
            shown = args if calls.mapped_by_block else args[4:]
            laid = bytes(calls.on_stack) + b"".join(
                arg.to_bytes(word, self._arch.order.value) for arg in shown
            )
        found = self._call(calls.map, args, laid)
        if found > self._arch.mask - NOTHING or found % 4096 or not found:
            raise NoMemory(
                "the process gets no memory", hint="the guest's system refuses executable pages"
            )
        return found

    def unmap(self, addr: int, size: int) -> None:
        """Unmap pages of map(). Where the thread can execute nothing now, they stay.

        Args:
            addr: address of the first page.
            size: bytes.
        """
        with suppress(GuestFault):  # it stands where it can execute nothing: the page stays
            self._call(self._calls.unmap, [addr, size], b"")

    def _call(self, number: int, args: list[int], laid: bytes) -> int:
        """Have a thread of the guest make a system call, and return its result, as the register has
        it.

        Args:
            number: of the call.
            args: its arguments.
            laid: bytes for the stack, where the call takes its arguments as a block there; else
                b"".
        """
        calls = self._calls
        code = calls.code
        values = dict(zip(calls.args, args, strict=False))
        if calls.number:
            values[calls.number] = number
        else:
            code += bytes([number])
        if laid and calls.mapped_by_block:
            values = {calls.args[0]: -1}  # the block's address, which execute() knows
        return self._execute(code + calls.delay, values, laid, calls.result)


class AreaPages:
    """Memory that is set aside: pages of [start, start + size), handed out and taken back."""

    def __init__(
        self,
        start: int,
        size: int,
        page: int,
        read: Callable[[int, int], bytes],
        write: Callable[[int, bytes], None],
    ) -> None:
        """Take an area that the user has set aside.

        Args:
            start: address of the area.
            size: its bytes.
            page: bytes of a page.
            read: (address, bytes) -> guest memory.
            write: (address, bytes): writes it. A stub may say that it has written what stays as it
                is.
        """
        first = -(-start // page) * page
        self._page = page
        self._read = read
        self._write = write
        self._tried = set[int]()
        self._free = list(range(first, (start + size) // page * page, page))[::-1]

    def map(self, hint: int, size: int) -> int:
        """Hand out a page of the area, and return its address. When a page is handed out for the
        first time, its first four bytes are inverted, to see whether it can be written.

        Args:
            hint: not used.
            size: bytes; it must be one page.

        Raises:
            NoMemory: no page is left, the memory does not change when it is written, or `size` is
                no page.
        """
        if size != self._page or not self._free:
            raise NoMemory("the scratch area is used up", hint="pass a larger scratch=")
        if self._free[-1] not in self._tried:
            self._try(self._free[-1])
        return self._free.pop()

    def _try(self, page: int) -> None:
        """Check that a page keeps what is written to it. Its first four bytes are changed.

        Args:
            page: its address.

        Raises:
            NoMemory: it does not.
        """
        other = bytes(byte ^ 0xFF for byte in self._read(page, 4))
        self._write(page, other)
        if self._read(page, 4) != other:
            raise NoMemory(
                "the scratch area stays as it is when it is written",
                address=page,
                hint="pass one in memory that is neither flash nor ROM",
            )
        self._tried.add(page)

    def unmap(self, addr: int, size: int) -> None:
        """Take back the page at `addr`; it can be handed out again.

        Args:
            addr: address of the page.
            size: not used.
        """
        self._free.append(addr)


class KernelPages:
    """Pages of a Linux kernel's allocator for modules, many at a time. They are never freed."""

    def __init__(self, symbols: Symbols, page: int, injected: InjectedCode) -> None:
        """Prepare; nothing is allocated.

        Args:
            symbols: the kernel's, for its allocator.
            page: bytes of a page.
            injected: has the current thread, whose pc must be in the kernel, call the kernel's
                functions.
        """
        self._symbols = symbols
        self._page = page
        self._injected = injected
        self._free: list[int] = []

    def map(self, hint: int, size: int) -> int:
        """Hand out a page, or memory of any other size, and return its address.

        Args:
            hint: not used.
            size: bytes. Pages are taken from the kernel many at a time.

        Raises:
            NoMemory: the kernel gives none.
            Unsupported: nothing is known of the kernel's allocator.
        """
        if size != self._page:
            return self._take(size)
        if not self._free:
            start = self._take(AT_ONCE * self._page)
            self._free = list(range(start, start + AT_ONCE * self._page, self._page))[::-1]
        return self._free.pop()

    def unmap(self, addr: int, size: int) -> None:
        """Take back the page at `addr`; map() hands it out again, the kernel does not get it back.

        Args:
            addr: address of the page.
            size: not used.
        """
        self._free.append(addr)

    def _take(self, size: int) -> int:
        """Have the kernel allocate executable memory, which is never given back, and return its
        address.

        Args:
            size: bytes, a multiple of a page.

        Raises:
            NoMemory: the kernel gives none.
            Unsupported: the kernel's allocator is not among the symbols, or no thread stands in
                the kernel.
        """
        ways = [(name, args) for name, args in ALLOCATORS if name in self._symbols]
        if not ways or PROTECT not in self._symbols:
            raise Unsupported(
                "this machine has no executable memory: no kernel that allocates it is known",
                hint="pass scratch=(start, size), or symbols of a Linux kernel",
            )
        if not self._injected.in_kernel:
            raise Unsupported(
                "a kernel gives memory only to code that runs in it",
                hint="run(until=) a function of the kernel first, of a system call for example",
            )
        name, args = ways[0]
        start = self._call(name, *args, size)
        if not start or start % self._page:
            raise NoMemory(
                "the kernel gives no memory",
                hint="give the guest more, or pass scratch=(start, size)",
            )
        self._call(PROTECT, start, size // self._page)
        return start

    def _call(self, function: str, *args: int) -> int:
        """Have the guest call a function of its kernel, and return its result.

        Args:
            function: its symbol.
            args: integers.

        Raises:
            RemoteError, Unsupported: as InjectedCode.call().
        """
        return self._injected.call(
            self._symbols[function].address, args, self._symbols[UNUSED].address
        )


class RemotePages:
    """The library's memory in the guest: pages for code, mapped one by one, and pages that alloc()
    hands out in pieces.
    """

    def __init__(
        self, source: ProcessPages | AreaPages | KernelPages, page: int, arch: Arch
    ) -> None:
        """Prepare; nothing is mapped.

        Args:
            source: where pages come from.
            page: bytes of a page.
            arch: the guest's architecture, for the reach of its jumps.
        """
        self._source = source
        self._page = page
        self._arch = arch
        self._code: set[int] = set()  # addresses of pages for code
        self._spare: list[tuple[int, int]] = []  # (address, bytes) of what alloc() has left
        self._taken: dict[int, int] = {}  # address of what it has handed out -> bytes

    def has(self, addr: int) -> bool:
        """Return True for an address in a page that map_near() has mapped for code."""
        return addr & -self._page in self._code

    def map_near(self, near: int, above: int, below: int = 0) -> int:
        """Map a page for code, as near as possible, and return its address.

        It is tried above pages that are near already; then a little above the image; then, if no
        jump reaches that, below the image, and below pages that are there already. Pages that the
        system gives elsewhere are unmapped again, but for the last one: it is the result if none is
        near, and may be out of the reach of jumps.

        Args:
            near: address that jumps are to lead to.
            above: address behind the image that has `near`.
            below: start of that image; 0: no image has it.

        Raises:
            NoMemory: the system gives none.
        """
        first = -(-above // self._page) * self._page
        page = -1
        for hint in (*self._beside(near, self._page), *(first + gap for gap in GAPS)):
            if page >= 0:
                self._source.unmap(page, self._page)
            page = self._source.map(hint & self._arch.mask, self._page)
            if page == hint:
                break
        if below and not self.reaches(near, page):
            page = self._map_below(near, below, page)
        self._code.add(page)
        return page

    def _map_below(self, near: int, below: int, page: int) -> int:
        """Map a page from which jumps reach `near`, unmap `page`, and return the new page's
        address. If no such page is found, `page` stays mapped and is returned.

        Args:
            near: address that jumps are to lead to.
            below: start of the image that has that address.
            page: address of a page that is mapped already, and too far away.

        Raises:
            NoMemory: the system gives none.
        """
        for hint in (below - self._page & -self._page, *self._beside(near, -self._page)):
            lower = self._source.map(hint, self._page)
            reaches = self.reaches(near, lower)
            self._source.unmap(page if reaches else lower, self._page)
            if reaches:
                return lower
        return page

    def _beside(self, near: int, way: int) -> list[int]:
        """Return at most two addresses at which to ask for one more page for code, the nearest to
        `near` first.

        Each is the address of one page that lies `way` bytes from a page for code, is no page for
        code itself, and from all of which jumps lead to `near` and back.

        Args:
            near: address that jumps are to lead to.
            way: bytes from a page for code; negative: below it.
        """
        pages = {place + way for place in self._code} - self._code
        reached = [page for page in pages if self.reaches(near, page)]
        return sorted(reached, key=lambda page: abs(page - near))[:2]

    def reaches(self, near: int, page: int) -> bool:
        """Return True where jumps lead from `near` to all of a page, and back, or where the
        architecture has no jumps.

        Args:
            near: a guest address.
            page: address of the page.
        """
        jump, end = self._arch.jump, page + self._page - 16
        if jump is None:
            return True
        near &= -16
        try:
            return all(
                jump.encode(frm, to)
                for frm, to in ((near, page), (page, near), (near, end), (end, near))
            )
        except OutOfReach:
            return False

    def unmap(self, page: int, *, there: bool) -> None:
        """Forget a page for code, and unmap it.

        Args:
            page: its address.
            there: True where the guest still exists; else nothing is unmapped.
        """
        self._code.discard(page)
        if there:
            self._source.unmap(page, self._page)

    def alloc(self, size: int) -> int:
        """Hand out `size` bytes of guest memory, aligned to 16, and return their address. They are
        not cleared.

        Raises:
            NoMemory: the source gives none.
        """
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
        """Map whole pages for `size` bytes, which are never unmapped, and return their address. A
        process's are zeros.

        Raises:
            NoMemory: the source gives none.
        """
        return self._source.map(0, -(-size // self._page) * self._page)

    def free(self, addr: int) -> None:
        """Take back memory that alloc() has handed out at `addr`; other addresses are ignored."""
        size = self._taken.pop(addr, 0)
        if size:
            self._spare.append((addr, size))
