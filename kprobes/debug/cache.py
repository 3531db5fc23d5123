"""A cache on disk of what is slow to read from big files' debug information.

Three things are kept in the folder of directory(): names of types and variables with their offsets
(`.names`: to find one in the file itself, all units have to be read), DWARF made of BTF
(`.entries`), and decompressed sections, as far as they have been read. Files are mapped and
searched in place. Each begins with a mark of its format and a checksum; one that is damaged, or
that another user may have written, is made anew. Files are replaced as a whole, so that several
processes may write at once; failing to write is no error. A decompressed section is filled in
place: all write the same.
"""

from __future__ import annotations

import bisect
import hashlib
import mmap
import os
import struct
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

from ..hostsystem import is_private

SMALL: Final = 1 << 18  #: bytes of .debug_info that are read faster than a file is looked for
Kept = TypeVar("Kept")
_MARK: Final = (
    b"kprobes7" + sys.byteorder[:1].encode()
)  #: format of the tables, which have this host's numbers
_HEAD: Final = struct.Struct(
    "=16sQQQ"
)  #: mark, names, bytes of their texts, check sum of what follows
_ENTRIES: Final = struct.Struct(
    "=16sQQ"
)  #: of kept entries: mark, bytes of the first section, check sum
_SECTION: Final = struct.Struct(
    "=16sQQ"
)  #: behind a section: mark, its bytes, how many of them at its beginning are unpacked
#: a private map of a file shows what is written into the file later, as Linux has it
_IN_PLACE: Final = sys.platform == "linux"
_STEP: Final = 1 << 18  #: bytes that zlib gets at once
_MOST: Final = 1 << 31  #: bytes that the cache may have
_ROW: Final = 3  #: words of a name: offset and bytes of its text, offset of its entry
_SAMPLE: Final = 1 << 10
_SAMPLES: Final = 256


class NameIndex:
    """A table of pairs (name, offset of an entry), searched in the bytes that packed_names() has
    packed.

    A name may have several offsets, which keep their order.
    """

    def __init__(self, data: Any) -> None:
        """Check the tables, and note where their parts begin.

        Args:
            data: what packed_names() has packed: bytes, or a map of a file.

        Raises:
            ValueError, struct.error: they are damaged.
        """
        mark, count, size, check = _HEAD.unpack_from(data)
        whole = memoryview(data)
        rows_at = _HEAD.size + 8 * (count // 2 + count % 2)
        texts_at = rows_at + 8 * _ROW * count
        if mark.rstrip(b"\0") != _MARK or len(whole) != texts_at + size:
            raise ValueError("tables of names of another format, or cut off")
        if zlib.crc32(whole[_HEAD.size :]) != check:
            raise ValueError("damaged tables of names")
        self._sums = whole[_HEAD.size : _HEAD.size + 4 * count].cast("I")
        self._rows = whole[rows_at:texts_at].cast("Q")
        self._texts = whole[texts_at:]

    def find(self, name: str) -> list[int]:
        """Return the offsets of a name's entries, in their order; [] where there is none."""
        wanted = name.encode("utf-8", "surrogatepass")
        sum = zlib.crc32(wanted)
        found = []
        for n in range(bisect.bisect_left(self._sums, sum), bisect.bisect_right(self._sums, sum)):
            at, size, offset = self._rows[_ROW * n : _ROW * n + _ROW]
            if self._texts[at : at + size] == wanted:
                found.append(offset)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield the name of each pair; a name with several offsets comes several times."""
        for n in range(len(self._sums)):
            at, size, _ = self._rows[_ROW * n : _ROW * n + _ROW]
            yield bytes(self._texts[at : at + size]).decode("utf-8", "surrogatepass")


def packed_names(pairs: Iterable[tuple[str, int]]) -> bytes:
    """Pack pairs of names and offsets as the bytes that NameIndex reads.

    These are a header with a checksum, the names' CRC-32 in ascending order, a row for each of
    these (place and length of the name, the offset), and the names, each once.

    Args:
        pairs: (name, offset of its entry).
    """
    texts = bytearray()
    known: dict[str, tuple[int, int, int]] = {}  # name -> (check sum, offset, bytes)
    checks: list[int] = []
    places: list[tuple[int, int, int]] = []
    for name, offset in pairs:
        place = known.get(name)
        if place is None:
            text = name.encode("utf-8", "surrogatepass")
            place = known[name] = zlib.crc32(text), len(texts), len(text)
            texts += text
        checks.append(place[0])
        places.append((place[1], place[2], offset))
    order = sorted(range(len(checks)), key=checks.__getitem__)  # several of a name stay in order
    sums = struct.pack(f"={len(order)}I", *map(checks.__getitem__, order))
    sums += bytes(4 * (len(order) % 2))
    rows = map(places.__getitem__, order)
    words = struct.pack(f"={_ROW * len(order)}Q", *chain.from_iterable(rows))
    content = b"".join((sums, words, texts))
    return _HEAD.pack(_MARK, len(order), len(texts), zlib.crc32(content)) + content


def identity_of(data: bytes, build: str) -> bytes:
    """Return a digest that tells a build of a file from others, of the build-id, size and samples.

    Tools that rewrite debug information keep the build-id: so size and samples count, too.

    Args:
        data: the file; only parts of it are read.
        build: its build-id.

    Returns:
        20 bytes.
    """
    digest = hashlib.blake2b(f"{build} {len(data)}".encode(), digest_size=20)
    step = max(len(data) // _SAMPLES, 1)
    digest.update(data[: 1 << 16] + data[-(1 << 16) :])
    for at in range(0, len(data), step):
        digest.update(data[at : at + _SAMPLE])
    return digest.digest()


def directory() -> Path | None:
    """Return the folder of the cache: kprobes/debug in $XDG_CACHE_HOME, or in ~/.cache.

    Returns:
        None: there is no home directory, and nothing is kept.
    """
    try:
        return (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kprobes" / "debug"
        )
    except RuntimeError:
        return None


def kept_names(identity: bytes, make: Callable[[], Iterable[tuple[str, int]]]) -> NameIndex:
    """Return a file's table of names from the cache; make and store it where it is not there.

    Args:
        identity: key of the file in the cache.
        make: called only where nothing is kept; gives (name, offset of its entry) of the file.
    """
    folder = directory()
    if folder is None:
        return NameIndex(packed_names(make()))
    path = folder / f"{identity.hex()}.names"
    found = _read(path, NameIndex)
    if found is None:
        data = packed_names(make())
        _write(path, data)
        found = NameIndex(data)
    return found


def kept_entries(identity: bytes, make: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return two sections of DWARF from the cache; make and store them where they are not there.

    Args:
        identity: key in the cache: a digest of what they are made from.
        make: called only where nothing is kept; returns the contents of .debug_info and
            .debug_abbrev.

    Raises:
        any error of `make`.
    """
    folder = directory()
    if folder is None:
        return make()
    path = folder / f"{identity.hex()}.entries"
    found = _read(path, _sections)
    if found is None:
        found = make()
        content = b"".join(found)
        _write(path, _ENTRIES.pack(_MARK, len(found[0]), zlib.crc32(content)) + content)
    return found


def unpacked_section(identity: bytes, name: str, packed: memoryview, size: int) -> Any:
    """Return a compressed section's contents, from the cache where they are kept.

    Args:
        identity: key of the file in the cache; b"": the cache is not used, nor on other hosts than
            Linux.
        name: of the section, without dots.
        packed: the section's zlib data.
        size: bytes of the decompressed section.

    Returns:
        A map of memory or of a file, of `size` bytes; an UnpackedSection where not all of it is
        decompressed yet.
    """
    folder = directory() if identity and _IN_PLACE else None
    if folder is None:
        return UnpackedSection(packed, size, -1, 0)
    path = folder / f"{identity.hex()}.{name}"
    file, reached = _open_section(path, size)
    if file < 0:
        file, reached = _new_section(path, size), 0
    if reached < size:
        return UnpackedSection(packed, size, file, reached)
    try:
        # dwarf.c is told the address, which ctypes gives of writable maps only
        return mmap.mmap(file, size, access=mmap.ACCESS_COPY)
    finally:
        os.close(file)


class UnpackedSection(mmap.mmap):
    """The contents of a compressed section, decompressed as far as they are read.

    What is decompressed is written into a file of the cache, if there is one. Callers that look at
    the memory other than by read(), find() and indices must call reach() first.
    """

    def __new__(cls, packed: memoryview, size: int, file: int, reached: int) -> UnpackedSection:
        """Map the file, or memory.

        Args:
            packed: the section's zlib data.
            size: bytes of the decompressed section.
            file: descriptor of the file of the cache, which is closed with this object; -1: none.
            reached: bytes at the beginning that the file has already.
        """
        # pages of a file that nobody has written into show what the file gets later
        access = mmap.ACCESS_DEFAULT if file < 0 else mmap.ACCESS_COPY
        return super().__new__(cls, file, size, access=access)

    def __init__(self, packed: memoryview, size: int, file: int, reached: int) -> None:
        """Note the state; the arguments are those of __new__(). Nothing is decompressed yet."""
        self._packed = packed
        self._file = file
        self._reached = reached
        self._stream: Any = None  # zlib's state
        self._consumed = 0  # bytes of `packed` that it has got
        self._made = 0  # bytes that it has made
        self._lock = Lock()  # held while the state above changes
        if file >= 0:
            weakref.finalize(self, os.close, file)

    def reach(self, end: int) -> None:
        """Decompress the section up to an offset, as far as it is not yet.

        Args:
            end: offset behind the last byte that is needed.

        Raises:
            ValueError, zlib.error: the section is damaged.
        """
        if end <= self._reached:
            return
        # zlib lets other threads run, and what two of them mix up would stay in the cache
        with self._lock:
            if self._stream is None:
                self._start()
            while self._made < min(end, len(self)):
                part = self._packed[self._consumed : self._consumed + _STEP]
                data = self._stream.decompress(part, len(self) - self._made + 1)
                self._consumed += len(part)
                if not part or self._made + len(data) > len(self):
                    raise ValueError("a packed section has another size than it says")
                self._take(data)

    def _start(self) -> None:
        """Make zlib's state. It begins at the section's first byte, even if the cache has more
        already.
        """
        self._stream = zlib.decompressobj()

    def _take(self, data: bytes) -> None:
        """Store the next decompressed bytes: in the file of the cache, or in memory where that
        fails.

        Bytes that the file has already are only counted.
        """
        start = self._made
        self._made += len(data)
        if self._made <= self._reached:
            return
        self._reached = self._made
        if self._file >= 0:
            try:
                if os.pwrite(self._file, data, start) == len(data):
                    note = _SECTION.pack(_MARK, len(self), self._reached)
                    os.pwrite(self._file, note, len(self))
                    return
            except OSError:  # the disk is full
                pass
            self._file = -1
        super().__setitem__(slice(start, self._made), data)

    def __getitem__(self, at: Any) -> Any:
        """Return a byte or a slice, decompressed before if need be."""
        if isinstance(at, slice):
            self.reach(at.indices(len(self))[1])
        else:
            self.reach(at + 1 if at >= 0 else len(self))
        return super().__getitem__(at)

    def read(self, count: int | None = None) -> bytes:
        """Return the next `count` bytes of the section, or the rest (None), decompressed if need
        be.
        """
        self.reach(len(self) if count is None or count < 0 else self.tell() + count)
        return super().read(count)

    def find(self, wanted: Any, start: int = 0, end: int | None = None) -> int:
        """Return the offset of the first occurrence of some bytes; -1: there is none. The section
        is decompressed as far as they are looked for.

        Args:
            wanted: the bytes.
            start: offset where the search begins.
            end: offset where it ends; None: where the section does.

        Raises:
            ValueError, zlib.error: the section is damaged.
        """
        last = len(self) if end is None else min(end, len(self))
        until = start
        while until < last:
            until = min(max(until + _STEP, self._reached), last)
            self.reach(until)
            found = super().find(wanted, start, until)
            if found >= 0:
                return found
        return -1


def _open_section(path: Path, size: int) -> tuple[int, int]:
    """Open the file of the cache that has a decompressed section, and mark it as used now.

    Args:
        path: of the file.
        size: bytes of the section.

    Returns:
        (the file's descriptor, bytes at the beginning that it has); (-1, 0): there is none, it is
        of another size or format, or another user may have written it.
    """
    file = -1
    try:
        file = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        status = os.fstat(file)
        if is_private(status) and status.st_size == size + _SECTION.size:
            mark, known, reached = _SECTION.unpack(os.pread(file, _SECTION.size, size))
            if mark.rstrip(b"\0") == _MARK and known == size and reached <= size:
                os.utime(file)
                return file, reached
    except (OSError, struct.error):
        pass
    if file >= 0:
        os.close(file)
    return -1, 0


def _new_section(path: Path, size: int) -> int:
    """Make a file of the cache for a section, of which nothing is decompressed yet. It takes the
    place of an earlier one; other files are removed where the cache gets too large.

    Args:
        path: of the file, whose folder is made.
        size: bytes of the section.

    Returns:
        The file's descriptor; -1: it cannot be made.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(dir=path.parent)  # which nobody else may write
    except OSError:
        return -1
    try:
        os.pwrite(file, _SECTION.pack(_MARK, size, 0), size)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        os.close(file)
        return -1
    _make_room(path.parent)
    return file


def _make_room(folder: Path) -> None:
    """Remove files of the cache until it has at most _MOST bytes, those unused for the longest
    first. An error of the file system ends this, and is ignored.

    Args:
        folder: the cache's folder.
    """
    with suppress(OSError):
        known = [(entry, entry.stat()) for entry in os.scandir(folder)]
        known.sort(key=lambda each: -each[1].st_mtime)
        size = 0
        for entry, status in known:
            size += status.st_size
            if size > _MOST:
                os.unlink(entry)


def _sections(data: Any) -> tuple[bytes, bytes]:
    """Return the contents of .debug_info and .debug_abbrev from a `.entries` file of the cache.

    Args:
        data: the file, mapped.

    Raises:
        ValueError, struct.error: it is damaged.
    """
    mark, size, check = _ENTRIES.unpack_from(data)
    content = bytes(data[_ENTRIES.size :])
    if mark.rstrip(b"\0") != _MARK or size > len(content) or zlib.crc32(content) != check:
        raise ValueError("damaged entries")
    return content[:size], content[size:]


def _read(path: Path, understood: Callable[[Any], Kept]) -> Kept | None:
    """Map a file of the cache and decode it.

    Args:
        path: of the file.
        understood: decodes the mapped bytes. Raises ValueError or struct.error: they are damaged.

    Returns:
        What `understood` returns; None: there is no such file, it is damaged, or another user may
        have written it.
    """
    try:
        with open(path, "rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return None
            return understood(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, struct.error):
        return None


def _write(path: Path, data: bytes, behind: bytes = b"") -> None:
    """Replace a file of the cache as a whole, and remove other files where the cache gets too
    large. Errors are ignored: the file is then not kept.

    Args:
        path: of the file, whose folder is made.
        data: its contents.
        behind: more bytes, written after them.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)  # which nobody else may write
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.write(behind)
        os.replace(name, path)
        _make_room(path.parent)
    except OSError:
        Path(name).unlink(missing_ok=True)
