"""Guest memory: what is mapped, reading and writing it, and the translations of the code in it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable
from itertools import product
from operator import index

import unicorn
from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...arguments import kind_of, look, shown
from ...errors import BadArgument, GuestFault, MachineBusy, NoMemory
from ...regs import Regs
from .blocks import HostBlock, HostBlocks
from .blocktable import BlockTable
from .engine import Engine
from .guests.guest import Guest
from .host.translator import bounded
from .layout import Heap, OwnCode, OwnPages, find_gap, pages_end, permissions, whole
from .longblocks import LongBlocks
from .mmio import MmioDevices
from .windows import SEGMENT, Windows

IMAGE_BASE = 0x400000
#: Where our own pages go that need be near nothing: no linker's script and no processor's memory
#: map begins there, so that programs linked for a customary address can still be mapped.
OURS = 0x6E000000


class GuestMemory:
    """The memory of a guest. All other parts of the machine use it.

    Attributes:
        uc: the engine, by its Python binding.
        engine: the engine, by its C interface.
        arch: the guest's architecture.
        guest: the engine's row of that architecture.
        page_size: bytes of a page.
        regs: the CPU's registers, for the pc of a fault; Cpu puts them here.
        executable_pages: page -> whether the guest may execute it; only pages are in it of which
            that is known.
        hooked: starts of mappings in which every instruction has a hook.
        own: memory that only the library may unmap.
        own_code: the part of it that is code.
        blocks: the host memory that is the guest's, for Python.
        block_table: the same, for host code.
        windows: other addresses of the same memory.
        devices: ranges that Python functions serve.
        heap: the memory that alloc() hands out.
        written: number of times that the library, or its user, has written code.
        reserved: (start, end) of addresses that the guest will use: nothing of the library's is put
            there.
        load_word: (addr) -> the word there, of the architecture's width (HostBlocks.words).
        store_word: (addr, word) writes a word.
        swap_word: (addr, word) writes a word, and returns the one that was there.
    """

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest, shared: bool = False) -> None:
        """Take over the memory of an engine. Nothing is mapped. The first one of the process bounds
        the blocks that engines translate, where that is possible (host/translator.py).

        Args:
            uc: the engine.
            arch: the guest's architecture.
            guest: the engine's row of that architecture.
            shared: others than the library have the engine, and may write its memory.
        """
        self.uc = uc
        self.arch = arch
        self.guest = guest
        self.page_size = guest.memory.page_size
        self.engine = Engine(uc)
        self.engine.undefined_unrecorded = guest.blocks.undefined_unrecorded
        self.regs: Regs | None = None
        self.executable_pages: dict[int, bool] = {}
        self._unmapping: list[Callable[[int, int], None]] = []
        self._highest = (1 << (guest.memory.address_bits or arch.bits)) - 1
        self.blocks = HostBlocks(arch.bits // 8, arch.order.value)
        self.engine.keep(self.blocks.held)
        self.block_table = BlockTable(self.blocks)
        segments, ends = guest.memory.segments, guest.blocks.ends
        self.long_blocks = (
            None
            if bounded() or ends is None
            else LongBlocks(self.engine, ends, [start for start, _ in segments])
        )
        self.hooked: set[int] = set()
        self.own = OwnPages()
        self.own_code = OwnCode()
        self.load_word, self.store_word, self.swap_word = self.blocks.words(self.read, self.store)
        self.windows = Windows(segments, self.blocks)
        # the main image is where images usually are, and a page of ours may be beside it
        self._beside_image = False
        if segments:
            self.engine.place = self.windows.place
        self.devices = MmioDevices(
            self.engine,
            self.windows,
            self.page_size,
            arch.order.value,
            guest.memory.devices_swapped,
        )
        self.written = 0
        self.reserved: list[tuple[int, int]] = []
        self._shared = shared
        self._rewritten: set[int] = set()  # see rewritten()
        self._look_through: Callable[[int, int], object] = lambda _addr, _size: None
        self.heap = Heap(self._map_heap, self.unmap_pages)

    def on_code_change(self, look: Callable[[int, int], object]) -> None:
        """Have a function called with (address, bytes) of code that has changed, behind the change.
        It replaces the function before.
        """
        self._look_through = look

    def share(self) -> None:
        """Note that others than the library have the engine from now on, and may write its memory:
        rewritten() knows nothing then.
        """
        self._shared = True

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory as it is, breakpoints included. For a device its function is called,
        and what that raises is raised; where an instruction is simulated, by the run, later.

        Args:
            addr: address of the first byte; upper bits that the engine does not look at do not
                matter.
            size: bytes.

        Raises:
            GuestFault: it is not mapped.
            BadArgument: `addr` or `size` is no integer, or `size` is negative.
        """
        block: HostBlock | None = self.blocks.last
        try:
            if block is None or addr < block.start or block.end < addr + size or size < 0:
                block = self.blocks.find(addr, size) if size >= 0 else None
            if block is not None:
                at = addr - block.start
                return block.view[at : at + size].tobytes()
        except TypeError:
            raise BadArgument(
                f"cannot read {size!r} bytes at {addr!r}", hint="pass integers"
            ) from None
        look("addr", addr)
        if (data := self.devices.read(addr, size)) is None:
            if self._highest < addr <= self.arch.mask and size >= 0:
                return self.read(addr & self._highest, size)
            self._check_mapped(addr, size, "read")
            data = self.engine.read(addr, size) if size else b""
        assert data is not None
        return data

    def reaches_device(self, addr: int, size: int) -> bool:
        """Return True if a byte of a range is a device's: reading it may change the device.

        Args:
            addr: address of the first byte, as read() takes it.
            size: bytes.

        Raises:
            GuestFault: it is a device's, and the range is not mapped to its end.
        """
        if self.devices.reached(addr, size):
            self._check_mapped(addr, size, "read")
            return True
        if self._highest < addr <= self.arch.mask:
            return self.reaches_device(addr & self._highest, size)
        return False

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, or a device, whatever its protection. Translations of code that is
        overwritten are dropped, and its pages noted for rewritten(). For a device its function is
        called, and what that raises is raised; where an instruction is simulated, by the run,
        later.

        Args:
            addr: address of the first byte; upper bits that the engine does not look at do not
                matter.
            data: what to write.

        Raises:
            GuestFault: it is not mapped.
            BadArgument: `addr` is no integer, or `data` no bytes.
        """
        block: HostBlock | None = self.blocks.last
        try:
            size = len(data)
            if block is None or addr < block.start or block.end < addr + size:
                block = self.blocks.find(addr, size)
            if block is not None:
                at = addr - block.start
                block.view[at : at + size] = data
        except (TypeError, ValueError):
            raise BadArgument(
                f"cannot write {kind_of(data)} at {addr!r}",
                hint="pass an integer and bytes",
            ) from None
        if type(addr) is not int:
            look("addr", addr)
        if block is None and not self.devices.write(addr, data):
            if self._highest < addr <= self.arch.mask:
                self.write(addr & self._highest, data)
                return
            self._check_mapped(addr, size, "write")
            self.engine.write(addr, bytes(data))
        page = addr & -self.page_size
        if addr + size <= page + self.page_size and self.executable_pages.get(page) is False:
            return
        pages = range(page, addr + size, self.page_size) if size else ()
        if any(map(self.is_code, pages)):
            self._rewritten.update(pages)
            self.code_changed(addr, size)

    def rewritten(self) -> Collection[int] | None:
        """Return the addresses of the pages of code that write() has written since the last call.

        None: others may write memory, too, so it is not known.
        """
        if self._shared:
            return None
        if not self._rewritten:
            return ()
        pages, self._rewritten = self._rewritten, set()
        return pages

    def store(self, addr: int, word: bytes) -> None:
        """Write a word as the guest would (the stack's, say): not into the library's own code.

        Args:
            addr: address.
            word: the bytes.

        Raises:
            GuestFault: the memory is not mapped, or is the library's own code.
        """
        block = self.blocks.find(addr, len(word))
        if block is not None and not block.room and self.windows.place(block.start) in self.own:
            raise GuestFault("the library's own code", address=addr, pc=self._pc, access="write")
        self.write(addr, word)

    def patch(self, addr: int, code: bytes) -> None:
        """Write guest code, whatever its protection, and tell of the change as code_changed() does:
        the translations of what was there are dropped. The pages are not noted for rewritten().

        Args:
            addr: address of the first byte.
            code: the bytes.

        Raises:
            GuestFault: the memory is not mapped.
        """
        # the engine's own way to write what the guest may not is slow
        if (block := self.blocks.find(addr, len(code))) is not None:
            block.view[addr - block.start : addr - block.start + len(code)] = code
        elif not 0 <= addr <= self.arch.mask or not self.engine.write(addr, code):
            self._check_mapped(addr, len(code), "write")
        self.code_changed(addr, len(code))

    def alloc(self, size: int) -> int:
        """Hand out `size` bytes of zeroed guest memory, and return their address, a multiple of 16.

        Raises:
            NoMemory: there is no room.
        """
        block = self.heap.alloc(size)
        try:
            self.write(block, bytes(size))  # it may have been used before
        except MemoryError:
            self.heap.free(block)
            raise NoMemory(f"cannot clear {size:#x} bytes", hint="ask for less") from None
        return block

    def free(self, addr: int) -> None:
        """Give the memory at `addr` back, which alloc() has handed out.

        Raises:
            GuestFault: the address is not one that alloc() has returned.
        """
        self.heap.free(addr)

    def executable(self, addr: int) -> bool:
        """Return True if the byte at `addr` is mapped, and the guest may execute it."""
        page = addr & -self.page_size
        if self.executable_pages.get(page) and self.engine.read(addr, 1) is not None:
            return True
        self.executable_pages.pop(page, None)  # somebody may have mapped memory behind our back
        return self.is_code(addr)

    def map(self, addr: int, size: int, perms: str = "rwx") -> None:
        """Map zeroed guest memory.

        Args:
            addr: address, a multiple of a page.
            size: bytes; they are rounded up to whole pages.
            perms: what the guest may do there, of "r", "w" and "x".

        Raises:
            NoMemory: it cannot be mapped.
            BadArgument: `perms` has other letters, or `addr` or `size` is no integer.
            MachineBusy: the engine is in the middle of an instruction.
        """
        bits = permissions(perms)
        pages_end(addr, size, self.page_size, NoMemory)
        self.map_plain(addr, size, bits)
        if self.long_blocks is not None and bits & const.UC_PROT_EXEC:
            start = self.windows.place(addr)
            self.long_blocks.new(start, start + whole(size, self.page_size))

    def protect(self, addr: int, size: int, perms: str) -> None:
        """Change what the guest may do in mapped memory.

        The library still reads and writes all of it. The core is not told here: Parts.protect()
        does that.

        Args:
            addr: address, a multiple of a page.
            size: bytes; they are rounded up to whole pages.
            perms: what the guest may do there, of "r", "w" and "x".

        Raises:
            GuestFault: it is not mapped.
            BadArgument: these are no address, size or permissions, or the memory is the library's
                own or a device's.
            MachineBusy: the engine is in the middle of an instruction.
        """
        bits = permissions(perms)
        self.check_settled()
        end = pages_end(addr, size, self.page_size)
        self.own.check(self.windows.place(addr), end - addr)
        self._check_mapped(addr, end - addr, "protect")
        self.devices.check_free(self.windows.place(addr), end - addr)
        self._forget_code(addr, end - addr)
        self.engine.drop_translations(addr, end)
        start = self.windows.place(addr)
        self.uc.mem_protect(start, end - addr, self._granted(bits))
        self.windows.mark(start, start + end - addr, bool(bits & const.UC_PROT_EXEC))
        if bits & const.UC_PROT_EXEC:
            self.code_changed(addr, end - addr)

    def unmap(self, addr: int, size: int) -> None:
        """Unmap guest memory, after the functions of on_unmap() were called: the core's makes
        probes in it GONE. Devices there are removed.

        Args:
            addr: address, a multiple of a page.
            size: bytes; they are rounded up to whole pages.

        Raises:
            GuestFault: it is not mapped.
            BadArgument: these are no address or size, or the memory is the library's own (slots,
                call areas, what alloc() hands out), or a part of a device.
            MachineBusy: the engine is in the middle of an instruction.
        """
        self.check_settled()
        end = pages_end(addr, size, self.page_size)
        self.own.check(self.windows.place(addr), end - addr)
        self._check_mapped(addr, end - addr, "unmap")
        self.devices.remove(self.windows.place(addr), self.windows.place(addr) + end - addr)
        self.unmap_told(addr, size)

    def unmap_told(self, addr: int, size: int) -> None:
        """Call the functions of on_unmap(), and unmap memory, which may be the library's own.

        Args:
            addr: address of the first page.
            size: bytes, rounded up to whole pages.
        """
        for told, alias in product(self._unmapping, self.windows.aliases(addr)):
            told(alias, alias + whole(size, self.page_size))
        self.unmap_pages(addr, size)

    def on_unmap(self, told: Callable[[int, int], None]) -> None:
        """Have a function called before guest memory is unmapped, for each address that the memory
        is known by (windows).

        Args:
            told: (start, end) of the memory: it is called beside functions given before.
        """
        self._unmapping.append(told)

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """Map executable pages, one behind the other, which only the library may unmap; return
        their address.

        Args:
            near: address to be close to; None: any address will do.
            pages: how many.

        Raises:
            NoMemory: there is no room.
            MachineBusy: the engine is in the middle of an instruction.
        """
        size = pages * self.page_size
        page = self.gap(size, self._ours(IMAGE_BASE) if near is None else near, self.page_size)
        self.map_own(page, size)
        if self.long_blocks is not None:
            self.long_blocks.new(self.windows.place(page), self.windows.place(page) + size)
        return page

    def unmap_code(self, page: int, pages: int = 1) -> None:
        """Unmap pages that map_code() has mapped.

        Args:
            page: address of the first one.
            pages: how many.
        """
        self.unmap_pages(page, pages * self.page_size)

    @property
    def _pc(self) -> int:
        """Pc of the guest, for errors; 0 while there are no registers."""
        return 0 if self.regs is None else self.regs.pc

    def _granted(self, perms: int) -> int:
        """Return the permission bits (UC_PROT_*) to map memory with in the engine, so that the
        guest has `perms`: some engines execute only what can be written.
        """
        if self.guest.memory.text_writable and perms & const.UC_PROT_EXEC:
            perms |= const.UC_PROT_WRITE
        return perms

    def _check_mapped(self, addr: int, size: int, access: str) -> None:
        """Check that memory is mapped.

        Args:
            addr: address of the first byte.
            size: bytes.
            access: what is to be done there, for the error: "read", "write", "protect" and so on.

        Raises:
            GuestFault: it is not; the address is that of the first such byte, where an instruction
                of the guest's would fail, too.
            BadArgument: `size` is negative.
        """
        if size < 0:
            raise BadArgument(f"cannot {access} {size} bytes", hint="pass 0 or more")
        first = at = self.windows.place(addr)
        for start, end in self.regions():
            if start <= at < end:
                at = end
        if at < first + size:
            raise GuestFault(
                "memory is not mapped",
                address=addr + at - first,
                pc=self._pc,
                access=access,
                by_python=True,
            )

    def check_settled(self) -> None:
        """Check that the engine is not in the middle of an instruction, whose access is being
        reported to a device or watchpoint.

        The engine has looked the memory up before it reports an access, and goes on to use it.

        Raises:
            MachineBusy: it is.
        """
        if self.regs is not None and self.regs.midway:
            raise MachineBusy(
                "a device or a watchpoint is served: the engine is in the middle of an instruction",
                hint="note what is to be done, and do it when the run has ended, or in a probe's "
                "handler",
            )

    def is_code(self, addr: int) -> bool:
        """Return True if the guest may execute the page that `addr` is in. The result is kept for
        that page.
        """
        page = addr & -self.page_size
        known = self.executable_pages.get(page)
        if known is None:
            place = self.windows.place(addr)
            known = any(
                start <= place <= end and perms & const.UC_PROT_EXEC
                for start, end, perms in self.engine.regions()
            )
            self.executable_pages[page] = known
        return known

    def _forget_code(self, addr: int, size: int) -> None:
        """Forget which pages in [addr, addr + size) are executable: mappings change there. On
        guests with segments, forget it of all pages.
        """
        if self.guest.memory.segments:
            self.executable_pages.clear()
        for page in [page for page in self.executable_pages if addr <= page < addr + size]:
            del self.executable_pages[page]

    def gap(self, size: int, near: int, align: int, besides: tuple[int, int] = (0, 0)) -> int:
        """Find free guest memory, and return its address. Nothing is mapped.

        Args:
            size: bytes.
            near: address to be close to, in the same segment.
            align: the address is a multiple of this many bytes.
            besides: (start, end) of memory that is not free either.

        Raises:
            NoMemory: there is none.
        """
        window, bits = near - self.windows.place(near), self.arch.bits
        taken = sorted(
            [
                *self.regions(),
                *self.reserved,
                (self.windows.place(besides[0]), self.windows.place(besides[1])),
            ]
        )
        return window + find_gap(
            taken, size, near - window, min(bits, SEGMENT) if window else bits, align
        )

    def reserve(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Keep the library's own memory out of ranges of addresses.

        Args:
            ranges: (start, bytes) of each.

        Raises:
            BadArgument: an element is no such pair; then nothing is kept out.
        """
        reserved: list[tuple[int, int]] = []
        for pair in ranges:
            try:
                start, size = map(index, pair)
            except (TypeError, ValueError):
                raise BadArgument(
                    f"reserve has {shown(pair)}", hint="pass pairs of (start, bytes)"
                ) from None
            if start < 0 or size < 0:
                raise BadArgument(f"reserve has {shown(pair)}", hint="pass pairs of 0 and more")
            place = self.windows.place(start)
            reserved.append((place & -self.page_size, place + whole(size, self.page_size)))
        self.reserved += reserved

    def settle_in(self, addr: int) -> None:
        """Have the library's own memory mapped in the segment of `addr` from now on.

        What is mapped already stays where it is. Where the guest has no segments, this only notes
        whether the image is at its customary address.

        Args:
            addr: where the guest's code begins.
        """
        self.windows.home = addr - self.windows.place(addr)
        self._beside_image = 0 <= addr - IMAGE_BASE < 1 << 24

    def regions(self) -> list[tuple[int, int]]:
        """Return (start, end) of mapped memory, sorted."""
        return sorted((start, end + 1) for start, end, _ in self.engine.regions())

    def map_own(self, addr: int, size: int, *, hooked: bool = False) -> None:
        """Map code that only the library may unmap, and the guest may not write.

        Args:
            addr: address, a multiple of a page.
            size: bytes.
            hooked: every instruction there will have a hook.

        Raises:
            NoMemory: it cannot be mapped.
            MachineBusy: the engine is in the middle of an instruction.
        """
        self.map_plain(addr, size, const.UC_PROT_READ | const.UC_PROT_EXEC)
        self.own.add(self.windows.place(addr), whole(size, self.page_size))
        self.own_code.add(addr, whole(size, self.page_size))
        if hooked:
            self.hooked.add(addr)

    def map_plain(self, addr: int, size: int, perms: int) -> None:
        """Map zeroed memory.

        The memory is a block of this process's, which `blocks` knows from then on.

        Args:
            addr: address, a multiple of a page.
            size: bytes; they are rounded up to whole pages.
            perms: the engine's permission bits.

        Raises:
            NoMemory: it cannot be mapped.
            MachineBusy: the engine is in the middle of an instruction.
        """
        self.check_settled()
        size = whole(size, self.page_size)
        self._forget_code(addr, size)
        if not 0 <= addr <= self.arch.mask + 1 - size:
            raise NoMemory(
                f"cannot map {size:#x} bytes: addresses have {self.arch.bits} bits",
                address=addr,
                hint="choose another base",
            )
        place = self.windows.place(addr)
        if place != addr and self.windows.place(addr + size - 1) != place + size - 1:
            raise NoMemory(
                f"cannot map {size:#x} bytes: they go beyond the segment of addresses",
                address=addr,
                hint="map less",
            )
        reach = self.guest.memory.reach
        if reach and place == addr and addr + size > reach:
            raise NoMemory(
                f"cannot map {size:#x} bytes: this engine's {self.arch.name} guests reach "
                f"addresses below {reach:#x} only",
                address=addr,
                hint="choose another base",
            )
        try:
            block = self.blocks.make(place, size, bool(perms & const.UC_PROT_EXEC))
            self.uc.mem_map_ptr(place, size, self._granted(perms), block.host)
            self.windows.add(block, addr)
        except (unicorn.UcError, ctypes.ArgumentError, OSError, ValueError, OverflowError) as error:
            raise NoMemory(
                f"cannot map {size:#x} bytes ({error})", address=addr, hint="choose another base"
            ) from None

    def code_changed(self, addr: int, size: int) -> None:
        """Drop the translations of code that was written, add 1 to `written`, and call the function
        given to on_code_change(). On engines that die of long blocks, stretches without a branch
        are hooked anew (LongBlocks.changed()).

        Args:
            addr: address of the first byte.
            size: bytes.
        """
        self.written += 1
        self.engine.drop_translations(addr, addr + size)
        self._look_through(addr, size)
        if self.long_blocks is not None:
            block, start = self.blocks.find(addr, size), self.windows.place(addr)
            if block is not None and block.start not in self.hooked:
                self.long_blocks.changed(
                    block.start - addr + start, block.view.cast("I"), start, start + size
                )

    def _ours(self, offset: int) -> int:
        """Return an address near which to map pages of the library's that need not be near
        anything.

        Args:
            offset: where the guest has segments, the offset in the segment of its code. Elsewhere
                only IMAGE_BASE has a meaning: the pages may be beside the main image, if that is at
                its usual place.
        """
        home = self.windows.home
        if home and home + offset <= self.arch.mask:
            return home + offset
        return IMAGE_BASE if self._beside_image and offset == IMAGE_BASE else OURS

    def map_anywhere(self, size: int, near: int | None = None) -> int:
        """Map zeroed memory that the guest may read and write, and return its address.

        Args:
            size: bytes, rounded up to whole pages.
            near: address to be close to, counted from the start of the segment that has the guest's
                code where there are segments; None: any address will do.

        Raises:
            NoMemory: there is no room.
            MachineBusy: the engine is in the middle of an instruction.
        """
        home = self.windows.home
        if near is None:
            near = self._ours(0x10000000)
        elif home + near <= self.arch.mask:
            near += home
        addr = self.gap(whole(size, self.page_size), near, self.page_size)
        self.map_plain(addr, size, const.UC_PROT_READ | const.UC_PROT_WRITE)
        return addr

    def _map_heap(self, size: int) -> int:
        """Map memory for the heap, which only the library may unmap, and return its address.

        Args:
            size: bytes.

        Raises:
            NoMemory: there is no room.
        """
        addr = self.map_anywhere(size)
        self.own.add(self.windows.place(addr), whole(size, self.page_size))
        return addr

    def unmap_pages(self, addr: int, size: int) -> None:
        """Unmap memory, the library's own or not; no function of on_unmap() is called.

        Args:
            addr: address of the first page.
            size: bytes, rounded up to whole pages.
        """
        size = whole(size, self.page_size)
        place = self.windows.place(addr)
        self.own.pop(place, None)
        self.own_code.remove(addr)
        self.hooked.discard(addr)
        self._forget_code(addr, size)
        if self.long_blocks is not None:
            self.long_blocks.forget(place, place + size)
        self.engine.drop_translations(addr, addr + size)
        self.uc.mem_unmap(place, size)
        self.windows.remove(place, place + size)

    def fill(self, addr: int, size: int) -> None:
        """Fill [addr, addr + size) with trap instructions."""
        trap = self.arch.end_bytes(min(self.arch.traps.end))
        self.patch(addr, (trap * (size // len(trap) + 1))[:size])
