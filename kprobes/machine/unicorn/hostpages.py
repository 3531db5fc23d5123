"""Host memory whose changes are found and undone at the price of what has changed: private mappings
of a file without a name.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.

What is kept of a block of guest memory is an image in that file, and the block becomes a private
mapping of it, at its own address: the operating system copies a page when it is written, says which
ones it has copied, and drops the copies when it is asked to.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from attrs import field, frozen

from ... import native
from ...hostsystem import at_fork
from .blocks import HostBlock
from .engine import CONTEXT_RESTORE, Engine

Range = tuple[int, int]
PAGE = mmap.PAGESIZE
# Of Linux: madvise(), mmap().
_DONTNEED, _NO_HUGE = 4, 15
_READ, _READ_WRITE = 1, 3
_SHARED, _PRIVATE_FIXED = 1, 0x12
_FAILED = (1 << 64) - 1
_PUNCH = 3  # fallocate(): a hole, of the same size
#: The highest byte of a page's word in /proc/self/pagemap: bit 7, it is present; 6, swapped out; 5,
#: the file's own, or nobody's copy
_IN_USE = bytes(bool(flags & 0xC0) for flags in range(256))
_COPIED = bytes(bool(flags & 0xC0) and not flags & 0x20 for flags in range(256))
_RUN = re.compile(b"\1+")


@frozen(eq=False)
class PageImage:
    """Former contents of a block, in the file.

    Attributes:
        file: holds the pages.
        at: offset in it, in bytes.
        data: for each page 1 if it may be other than zeros.
    """

    file: _File
    at: int
    data: bytes

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, counted from the block's start."""
        return os.pread(self.file.fd, end - start, self.at + start).ljust(end - start, b"\0")


class _File:
    """The file without a name that images are in. It belongs to one process: a forked one only
    reads it, and makes its own.
    """

    def __init__(self) -> None:
        """Make the file without a name, which is gone with this object."""
        self.pid = os.getpid()
        self.fd = os.memfd_create("guest memory", os.MFD_CLOEXEC)
        self._end = 0
        weakref.finalize(self, os.close, self.fd)

    def image(self, data: bytes) -> PageImage:
        """Return an image with room in the file; the caller writes its pages there. The room is
        freed with the image.

        Args:
            data: for each page 1 if it may be other than zeros.
        """
        image = PageImage(self, self._end, data)
        self._end += len(data) * PAGE
        os.ftruncate(self.fd, self._end)
        weakref.finalize(image, self._punch, image.at, len(data) * PAGE).atexit = False
        return image

    def _punch(self, at: int, size: int) -> None:
        """Give the file's bytes of an image back to the system, in the process that has made the
        file.

        Args:
            at: offset of the first byte.
            size: bytes.
        """
        if os.getpid() == self.pid:
            _libc().fallocate(self.fd, _PUNCH, at, size)

    def pages(self, host: int, size: int, table: bytes) -> Iterator[Range]:
        """Return an iterator over runs of pages of this process that are in a certain state now, as
        /proc/self/pagemap tells.

        Args:
            host: address in this process.
            size: bytes from there on.
            table: 256 bytes: for each value of the highest byte of a page's word in
                /proc/self/pagemap 1, where such pages are wanted.

        Returns:
            An iterator over (start, end) of each run, counted from `host`.
        """
        flags = os.pread(_pagemap(self.pid), size // PAGE * 8, host // PAGE * 8)[7::8].translate(
            table
        )
        return ((run.start() * PAGE, run.end() * PAGE) for run in _RUN.finditer(flags))


_forks = 0  # how often this process's line has forked


def _in_child() -> None:
    """Count a fork of this process: mappings are others' from then on. Called in the child."""
    global _forks
    _forks += 1


at_fork(_in_child)


@cache
def _pagemap(_pid: int) -> int:
    """Return a file descriptor of /proc/self/pagemap, which tells of this process's pages.

    Args:
        _pid: the process's number: one that was forked opens its own.
    """
    return os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)


@cache
def _libc() -> Any:
    """Return the C library with the types of the functions that are called here."""
    libc = ctypes.PyDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    )
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return libc


class HostPages:
    """Keeps images of blocks in a file, and puts them back by dropping the pages that were written
    since. PageCopies does the same by copying.

    Attributes:
        file: the file that images are in.
        mappings: how often an image was about to be mapped.
    """

    def __init__(self) -> None:
        """Make the file for images; nothing is kept."""
        self.file = _File()
        self.mappings = 0  #: how often an image was about to be mapped
        #: host memory -> address -> the image that is mapped there
        self._mapped: weakref.WeakKeyDictionary[Any, dict[int, PageImage]] = (
            weakref.WeakKeyDictionary()
        )

    def keep(self, block: HostBlock) -> KeptBlock:
        """Keep the present contents of a block: write its pages that may be other than zeros to an
        image in the file, and map the block from there.

        A block that has not changed since it was mapped from an image is left alone: that image is
        kept.

        Args:
            block: the block of guest memory.

        Returns:
            What put_back() takes.

        Raises:
            OSError: the file cannot become larger, or cannot be mapped.
        """
        host = block.host
        size = block.end - block.start
        file = self._own_file()
        known = self._mapped.setdefault(block.view.obj, {})
        base = known.get(host)
        data = bytearray(size // PAGE)
        if not known:
            runs = [*file.pages(host, size, _IN_USE)]
        elif base is None or len(base.data) != len(data):
            runs = [(0, size)]
        else:
            runs = [*file.pages(host, size, _COPIED)]
            if not runs:
                return KeptBlock(block, host, size, base, known)
            data[:] = base.data
        for start, end in runs:
            data[start // PAGE : end // PAGE] = b"\1" * ((end - start) // PAGE)
        image = file.image(bytes(data))
        for run in _RUN.finditer(data):
            _write(
                file.fd,
                block.view[run.start() * PAGE : run.end() * PAGE],
                image.at + run.start() * PAGE,
            )
        kept = KeptBlock(block, host, size, image, known)
        self._map(kept)
        return kept

    def stands(self, kept: KeptBlock) -> bool:
        """Return True where a block is mapped from what was kept of it, so that it differs only in
        the pages written since.
        """
        return kept.mapped.get(kept.host) is kept.image

    def put_back(self, kept: KeptBlock) -> list[Range]:
        """Put kept contents back into their block: drop the pages that were written since, or map
        the image again where it is mapped no more.

        Args:
            kept: what keep() has returned.

        Returns:
            (start, end) of the bytes that have changed, counted from the block's start, for a block
            that may have code; [] for others.

        Raises:
            OSError: the image cannot be mapped.
        """
        block = kept.block
        host = kept.host
        size = kept.size
        code = not kept.block.room
        if not self.stands(kept):
            before = block.view.tobytes() if code else b""
            self._map(kept)
            return differing(before, block.view.tobytes()) if code else []
        if not code:
            _libc().madvise(host, size, _DONTNEED)
            return []
        out = []
        for start, end in self._own_file().pages(host, size, _COPIED):
            now = block.view[start:end].tobytes()
            _libc().madvise(host + start, end - start, _DONTNEED)
            out += [
                (start + a, start + b) for a, b in differing(now, block.view[start:end].tobytes())
            ]
        return out

    def way_back(
        self, kepts: Sequence[KeptBlock], engine: Engine, context: ctypes.c_void_p
    ) -> WayBack | None:
        """Make an object that puts registers and blocks back by host code.

        Args:
            kepts: blocks that stand as they were kept.
            engine: whose registers they are.
            context: has the registers (Engine.save()).

        Returns:
            The object; None where there is no host code, or the images cannot be mapped.
        """
        try:
            return WayBack(self, kepts, engine, context) if native.available() else None
        except OSError:
            return None

    def _own_file(self) -> _File:
        """Return this process's file; after a fork it is a new one."""
        if self.file.pid != os.getpid():
            self.file = _File()
        return self.file

    def _map(self, kept: KeptBlock) -> None:
        """Map an image at the block's own address in this process, so that the block has its
        contents.

        1 is added to `mappings`, and other images that were mapped there are forgotten in
        `kept.mapped`, even where this fails.

        Args:
            kept: the block and its image.

        Raises:
            OSError: the system refuses.
        """
        host = kept.host
        size = kept.size
        image = kept.image
        known = kept.mapped
        self.mappings += 1  # before anything changes: this may be interrupted
        for at in [
            at
            for at, other in known.items()
            if at < host + size and host < at + len(other.data) * PAGE
        ]:
            # first: who interrupts this leaves memory of which nobody knows what it is mapped from
            del known[at]
        if _libc().mmap(host, size, _READ_WRITE, _PRIVATE_FIXED, image.file.fd, image.at) != host:
            raise OSError(ctypes.get_errno(), "cannot map an image of guest memory")
        known[host] = image


#: Of kprobes/native/pages.c: kinds of a stretch, words of one, and which of them says that it has
#: changed.
_COPY = 0
_DROP = 1
_TELL = 2
_STRETCH, _CHANGED = 5, 4
_WINDOW = 16 * PAGE
_SMALL = 64 * PAGE  # a block that is looked through at each return
_MOST_WINDOWS = 32  # of a larger block
_MOST_COPIED = 512  # written pages that are noted
# returns, after which pages that were copied once are dropped, and may be free again
_ALL_DROPPED = 1024


class WayBack:
    """Puts a snapshot's registers and blocks back by host code, which copies pages that were
    written.

    A page that is dropped costs the guest's next access a fault of the host, some 4 us under a
    hypervisor; copying it costs 0.1 us. But a page that was written once is copied at each return
    from then on, and in a large block the operating system takes long to say which ones these are.
    So a large block is dropped, but for windows in which pages were written before; and all is
    dropped now and then.
    """

    def __init__(
        self,
        pages: HostPages,
        kepts: Sequence[KeptBlock],
        engine: Engine,
        context: ctypes.c_void_p,
    ) -> None:
        """Make the table by which host code puts the blocks back.

        Args:
            pages: keeps the blocks.
            kepts: blocks that stand as they were kept. Code is not put back: go_back() tells of it.
            engine: whose registers are put back.
            context: has the registers, as long as this object is used.

        Raises:
            OSError: an image cannot be mapped.
        """
        self._engine = engine
        self._context = context
        self._plain_registers = engine.rewind is None and not engine.beside
        self._pages = pages
        self._kepts = list(kepts)
        self._pid = os.getpid()
        self._forks = _forks
        self._mappings = pages.mappings
        self._copies = (ctypes.c_uint64 * (2 * _MOST_COPIED))()
        self._windows: dict[KeptBlock, set[int]] = {kept: set() for kept in kepts}
        self._images = {id(kept.image): _Readable(kept.image) for kept in kepts}
        self._returns = 0
        self._make_table()

    def fits(self) -> bool:
        """Return True while this object may be used: the blocks are mapped as when it was made, in
        the same process.
        """
        return self._mappings == self._pages.mappings and self._forks == _forks

    def has_gone_back(self) -> bool:
        """Put registers and blocks of data back by host code, if nothing else has to be done at
        this return.

        Returns:
            True: all is back. False: the caller has to call go_back() if fits(), else to put
            everything back itself. It is False where not fits(), where host code cannot put all
            registers back, where it has found written code or has failed, and at returns whose
            number is a power of two (go_back() then looks for windows) or a multiple of
            _ALL_DROPPED.
        """
        turn = self._returns + 1
        if (
            self._mappings != self._pages.mappings
            or self._forks != _forks
            or not self._plain_registers
            or turn % _ALL_DROPPED == 0
            or turn & turn - 1 == 0
        ):
            return False
        if self._by_host():
            return False
        self._returns = turn
        return True

    def go_back(self) -> list[KeptBlock] | None:
        """Put registers and blocks of data back, and find out which blocks of code were written.

        Returns:
            Blocks that the caller has to put back one by one: code that was written. None: the
            registers are back, but the caller has to put all blocks back, those of data, too: at
            each _ALL_DROPPED-th return, or where host code has failed.

        Raises:
            UcError: the engine refuses the registers.
        """
        self._returns = turn = self._returns + 1
        last = turn % _ALL_DROPPED == 0
        if last or not self._plain_registers:
            self._engine.restore(self._context)
        if last:
            return None
        if turn & turn - 1 == 0:
            self._learn()
        changed = self._by_host()
        if changed < 0:
            if changed != -1:
                self._engine.restore(self._context)  # it says why it has refused
            return None
        if not changed:
            return []
        return [kept for row, kept in self._told if self._stretches[row * _STRETCH + _CHANGED]]

    def _learn(self) -> None:
        """Find parts of large blocks (windows) in which pages have been written since the last
        return; they are copied from now on.
        """
        found = False
        for kept, windows in self._windows.items():
            if kept.block.room and kept.size > _SMALL and len(windows) <= _MOST_WINDOWS:
                before = len(windows)
                for start, end in self._pages.file.pages(kept.host, kept.size, _COPIED):
                    windows.update(range(start // _WINDOW, -(-end // _WINDOW)))
                found = found or len(windows) > before
        if found:
            self._make_table()

    def _make_table(self) -> None:
        """Make the host function for returns (`_by_host`), and the table of stretches that it goes
        through.

        A row says where a stretch of a block is in this process, how long it is, where its kept
        contents are, and whether it is copied, dropped, or only looked at for changes (code).
        """
        rows: list[tuple[int, int, int, int, int]] = []
        self._told: list[tuple[int, KeptBlock]] = []
        for kept in self._kepts:
            image = self._images[id(kept.image)]
            if not kept.block.room:
                self._told.append((len(rows), kept))
            for start, end, kind in self._parts(kept):
                rows.append((kept.host + start, end - start, image.address + start, kind, 0))
        libc = _libc()
        self._stretches = (ctypes.c_uint64 * (_STRETCH * len(rows)))(
            *(word for row in rows for word in row)
        )
        names = native.words("return")
        words = {
            "pread": _address(libc.pread),
            "madvise": _address(libc.madvise),
            "getrusage": _address(libc.getrusage) if _counts_faults() else 0,
            "pagemap": _pagemap(self._pid),
            "page": PAGE,
            "count": len(rows),
            "first": ctypes.addressof(self._stretches),
            "copies": ctypes.addressof(self._copies),
            "room": _MOST_COPIED,
            "engine": self._engine.handle.value or 0,
            "context": (self._context.value or 0) if self._plain_registers else 0,
            "restore": CONTEXT_RESTORE,
        }
        self._words = (ctypes.c_uint64 * len(names))(*(words.get(name, 0) for name in names))
        make = native.function("back_goer", ctypes.py_object, ctypes.py_object)
        self._by_host: Callable[[], int] = make(ctypes.addressof(self._words))

    def _parts(self, kept: KeptBlock) -> Iterator[tuple[int, int, int]]:
        """Yield the stretches of a block that host code treats alike.

        Args:
            kept: what was kept of the block.

        Yields:
            (start, end, kind: _COPY, _DROP or _TELL), counted from the block's start.
        """
        windows = self._windows[kept]
        if not kept.block.room:
            yield 0, kept.size, _TELL
        elif kept.size <= _SMALL:
            yield 0, kept.size, _COPY
        elif len(windows) > _MOST_WINDOWS:
            yield 0, kept.size, _DROP
        else:
            last = 0
            for window in sorted(windows):
                start = window * _WINDOW
                end = min(start + _WINDOW, kept.size)
                if last < start:
                    yield last, start, _DROP
                yield start, end, _COPY
                last = end
            if last < kept.size:
                yield last, kept.size, _DROP


def _address(function: Any) -> int:
    """Return the address of a ctypes function of the C library in this process."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _counts_faults() -> bool:
    """Return True if this system counts a page fault where a page is written first. Some pages are
    written to find out.
    """
    pages = 8
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # a huge page would be one fault for all
    _libc().madvise(ctypes.addressof(ctypes.c_char.from_buffer(memory)), pages * PAGE, _NO_HUGE)
    before = _faults()
    for n in range(pages):
        memory[n * PAGE] = 1
    return before > 0 and _faults() >= before + pages


def _faults() -> int:
    """Return how many page faults this process has had; 0: the system does not tell."""
    usage = (ctypes.c_uint64 * 64)()
    failed = _libc().getrusage(0, usage)
    return 0 if failed else usage[8] + usage[9]  # minor and major ones


class _Readable:
    """A mapping of an image's bytes in this process's memory, as long as this object lives.

    Attributes:
        address: where they begin. Nobody writes there.
    """

    def __init__(self, image: PageImage) -> None:
        """Map the image's bytes, to be read only, until this object is gone.

        Raises:
            OSError: the system refuses.
        """
        libc = _libc()
        size = len(image.data) * PAGE
        # not by Python's mmap, which keeps a file descriptor for each
        self.address = libc.mmap(None, size, _READ, _SHARED, image.file.fd, image.at)
        if self.address in (None, _FAILED):
            raise OSError(ctypes.get_errno(), "cannot map an image of guest memory")
        weakref.finalize(self, libc.munmap, self.address, size).atexit = False


@frozen(eq=False)
class PageCopy:
    """Former contents of a block, copied to memory.

    Attributes:
        held: all of its bytes.
    """

    held: bytes

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, counted from the block's start."""
        return self.held[start:end]


@frozen(eq=False)
class KeptBlock:
    """The kept state of a block.

    Attributes:
        block: the block.
        host: address of its memory in this process.
        size: in bytes.
        image: a PageImage, or a PageCopy.
        mapped: address -> the image that is mapped there now.
    """

    block: HostBlock
    host: int
    size: int
    image: Any  # as HostPages, or PageCopies, has made it
    mapped: dict[int, PageImage] = field(factory=dict)


class PageCopies:
    """Keeps blocks by copying and comparing whole ones, where the operating system does not tell
    which pages changed.
    """

    def keep(self, block: HostBlock) -> KeptBlock:
        """Copy the present contents of a block, and return the copy for put_back()."""
        return KeptBlock(block, block.host, block.end - block.start, PageCopy(block.view.tobytes()))

    def stands(self, kept: KeptBlock) -> bool:
        """Return False: it is not known what has changed since the block was kept."""
        return False

    def way_back(
        self, kepts: Sequence[KeptBlock], engine: Engine, context: ctypes.c_void_p
    ) -> None:
        """Return None: there is no host code for copies. The arguments are ignored."""

    def put_back(self, kept: KeptBlock) -> list[Range]:
        """Put kept contents back into their block.

        Args:
            kept: what keep() has returned.

        Returns:
            (start, end) of the ranges that this has changed, counted from the block's start.
        """
        view, held = kept.block.view, kept.image.held
        ranges = differing(view.tobytes(), held)
        for start, end in ranges:
            view[start:end] = held[start:end]
        return ranges


def differing(before: bytes, now: bytes) -> list[Range]:
    """Compare two pieces of memory page by page.

    Args:
        before: bytes, from the beginning of a page.
        now: as many bytes.

    Returns:
        (start, end) of the bytes that differ, one range for each page that has any, counted from
        the beginning.
    """
    if before == now:
        return []
    out = []
    for at in range(0, len(now), PAGE):
        one = before[at : at + PAGE]
        other = now[at : at + PAGE]
        if one != other:
            bits = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
            out.append(
                (at + ((bits & -bits).bit_length() - 1) // 8, at + (bits.bit_length() + 7) // 8)
            )
    return out


def _write(fd: int, data: memoryview, at: int) -> None:
    """Write all of `data` to the file `fd`, from offset `at` on."""
    while data:
        written = os.pwrite(fd, data, at)
        data = data[written:]
        at = at + written


def best(page_size: int) -> HostPages | PageCopies:
    """Return HostPages where this system tells which pages have changed, else PageCopies.

    Args:
        page_size: bytes of the guest's pages; PageCopies, unless it is a multiple of the host's.
    """
    return HostPages() if page_size % PAGE == 0 and _tells() else PageCopies()


@cache
def _tells() -> bool:
    """Return True if this system copies pages of private mappings when they are written, and says
    which: tried on three pages.
    """
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        return False
    try:
        pages = HostPages()
        memory = mmap.mmap(-1, 3 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block = HostBlock(0, 3 * PAGE, memoryview(memory), None, 3 * PAGE, 0)
        memory[PAGE] = memory[2 * PAGE] = 1
        kept = pages.keep(block)
        memory[0], memory[PAGE] = 2, memory[2 * PAGE]
        memory[2 * PAGE] = 3
        copied = [*pages.file.pages(block.host, 3 * PAGE, _COPIED)]
        return (
            copied == [(0, 3 * PAGE)]
            and pages.put_back(kept) == [(0, 1), (2 * PAGE, 2 * PAGE + 1)]
            and (memory[0], memory[PAGE], memory[2 * PAGE]) == (0, 1, 1)
            and not [*pages.file.pages(block.host, 3 * PAGE, _COPIED)]
        )
    except (OSError, AttributeError):
        return False
