"""Guest memory: what is mapped, reading and writing it, and the translations of the code in it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import unicorn
from attrs import evolve
from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import GuestFault, NoMemory
from ...regs import Regs, read_cstr
from .._base import Sink
from .blocks import Block, Blocks
from .engine import Engine
from .guests.rows import Guest
from .layout import Heap, find_gap

IMAGE_BASE = 0x400000


class Memory:
    """The memory of a guest. Everything else of the machine stands on it."""

    # the CPU's, see Processor
    _regs: Regs
    cpu_task: Callable[[Regs], Any] | None

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        self.uc = uc
        self.arch = arch if guest.traps is None else evolve(arch, traps=guest.traps)
        self.page_size = guest.page_size
        self._guest = guest
        self._engine = Engine(uc)
        self._engine.undefined_unrecorded = guest.undefined_unrecorded
        self._sink: Sink | None = None
        self._executable: dict[int, bool] = {}  # page -> may execute; forgotten whenever mappings may have changed
        self._blocks = Blocks(arch.bits // 8, arch.order.value)
        #: (addr) -> word, and (addr, word), already cut to its width: read() and write() for the stack
        self.load_word, self.store_word = self._blocks.words(self.read, self.write)
        self._heap = Heap(self._map_anywhere, self._unmap)

    def read(self, addr: int, size: int) -> bytes:
        """`size` bytes of guest memory as they are, breakpoints included; GuestFault where it is not mapped."""
        block: Block | None = self._blocks.last
        if block is None or addr < block.start or block.end < addr + size:
            block = self._blocks.find(addr, size)
        if block is not None:
            at = addr - block.start
            return block.view[at : at + size].tobytes()
        data = self._engine.read(addr, size) if size > 0 else b""
        if data is None:
            raise self._not_mapped(addr, size, "read")
        return data

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, whatever its protection; GuestFault where it is not mapped."""
        block = self._blocks.find(addr, len(data))
        if block is not None:
            block.view[addr - block.start : addr - block.start + len(data)] = data
        elif data and not self._engine.write(addr, bytes(data)):
            raise self._not_mapped(addr, len(data), "write")
        if data and self._is_code(addr):
            self._engine.drop_translations(addr, addr + len(data))

    def patch(self, addr: int, code: bytes) -> None:
        """Replace code; stale translations are dropped."""
        if not self._engine.write(addr, code):
            raise self._not_mapped(addr, len(code), "write")
        self._engine.drop_translations(addr, addr + len(code))

    def read_cstr(self, addr: int, limit: int = 4096) -> bytes:
        """Bytes up to the first NUL, at most `limit`."""
        return read_cstr(self, addr, limit)

    def alloc(self, size: int) -> int:
        """Guest memory, zeroed, 16-byte aligned; its address. NoMemory where there is no room."""
        block = self._heap.alloc(size)
        self.write(block, bytes(size))  # it may have been used before
        return block

    def free(self, addr: int) -> None:
        """Give alloc()ed memory back; GuestFault for any other address."""
        self._heap.free(addr)

    def executable(self, addr: int) -> bool:
        """True where the guest may execute."""
        page = addr & -self.page_size
        if self._executable.get(page) and self._engine.read(addr, 1) is not None:
            return True
        self._executable.pop(page, None)  # somebody may have mapped memory behind our back
        return self._is_code(addr)

    def map(self, addr: int, size: int, perms: str = "rwx") -> None:
        """Map zeroed guest memory; addr and size in whole pages, perms of "r", "w", "x". NoMemory where it cannot be mapped."""
        bits = {"r": const.UC_PROT_READ, "w": const.UC_PROT_WRITE, "x": const.UC_PROT_EXEC}
        self._map(addr, size, sum(bits[c] for c in set(perms) & set("rwx")))

    def unmap(self, addr: int, size: int) -> None:
        """Unmap guest memory; probes in it are GONE."""
        if self._sink is not None:
            self._sink.unloading(addr, addr + size)
        self._unmap(addr, size)

    def map_code(self, near: int | None = None) -> int:
        """Map an executable page as close to `near` as there is room; NoMemory where there is none."""
        page = find_gap(self._regions(), self.page_size, IMAGE_BASE if near is None else near, self.arch.bits, self.page_size)
        self._map(page, self.page_size, const.UC_PROT_ALL)
        return page

    def unmap_code(self, page: int) -> None:
        """Unmap a page from map_code()."""
        self._unmap(page, self.page_size)

    def _not_mapped(self, addr: int, size: int, access: str) -> GuestFault:
        """The error of an access: at the first byte that is not mapped, which is what a guest's instruction fails at."""
        pages = range(addr // self.page_size * self.page_size + self.page_size, addr + size, self.page_size)
        first = next((at for at in (addr, *pages) if self._engine.read(at, 1) is None), addr)
        return GuestFault("memory is not mapped", address=first, pc=self._regs.pc, access=access)

    def _is_code(self, addr: int) -> bool:
        page = addr & -self.page_size
        known = self._executable.get(page)
        if known is None:
            known = any(start <= addr <= end and perms & const.UC_PROT_EXEC for start, end, perms in self.uc.mem_regions())
            self._executable[page] = known
        return known

    def _forget_code(self, addr: int, size: int) -> None:
        """Mappings change in [addr, addr + size)."""
        for page in [page for page in self._executable if addr <= page < addr + size]:
            del self._executable[page]

    def _regions(self) -> list[tuple[int, int]]:
        return sorted((start, end + 1) for start, end, _ in self.uc.mem_regions())

    def _whole(self, size: int) -> int:
        """In whole pages."""
        return -(-size // self.page_size) * self.page_size

    def _map(self, addr: int, size: int, perms: int) -> None:
        size = self._whole(size)
        self._forget_code(addr, size)
        if self._guest.reach and addr + size > self._guest.reach:
            raise NoMemory(f"cannot map {size:#x} bytes: this engine's {self.arch.name} guests reach addresses below {self._guest.reach:#x} only",
                           address=addr, hint="choose another base")
        if self._guest.text_writable and perms & const.UC_PROT_EXEC:
            perms |= const.UC_PROT_WRITE
        try:
            block = self._blocks.make(addr, size, bool(perms & const.UC_PROT_EXEC))
            self.uc.mem_map_ptr(addr, size, perms, block.host)
            self._blocks.add(block)
        except (unicorn.UcError, ctypes.ArgumentError, OSError, ValueError, OverflowError) as error:
            raise NoMemory(f"cannot map {size:#x} bytes ({error})", address=addr, hint="choose another base") from None

    def _map_anywhere(self, size: int, near: int = 0x10000000) -> int:
        addr = find_gap(self._regions(), self._whole(size), near, self.arch.bits, self.page_size)
        self._map(addr, size, const.UC_PROT_READ | const.UC_PROT_WRITE)
        return addr

    def _unmap(self, addr: int, size: int) -> None:
        size = self._whole(size)
        self._forget_code(addr, size)
        self._engine.drop_translations(addr, addr + size)
        self.uc.mem_unmap(addr, size)
        self._blocks.remove(addr, addr + size)

    def _write_filler(self, addr: int, size: int) -> None:
        trap = self.arch.end_bytes(min(self.arch.traps.end))
        self.patch(addr, (trap * (size // len(trap) + 1))[:size])
