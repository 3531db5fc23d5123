"""The types and variables of big files by name, kept between processes: to find one, all units have
to be read.

What is kept is a file of tables that are searched where they lie, mapped into memory: nothing is
read but what is asked for. It begins with a mark of its format and a check sum; one that is
damaged, or that somebody else may have written, is made anew. Writing is whole or not at all, so
that several processes may do it at once, and failing to write is no error.
"""

from __future__ import annotations

import bisect
import hashlib
import mmap
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from ..hostsystem import is_private

SMALL: Final = 1 << 18  #: bytes of .debug_info that are read faster than a file is looked for
Kept = TypeVar("Kept")
_MARK: Final = (
    b"kprobes6" + sys.byteorder[:1].encode()
)  #: format of the tables, which have this host's numbers
_HEAD: Final = struct.Struct(
    "=16sQQQ"
)  #: mark, names, bytes of their texts, check sum of what follows
_ENTRIES: Final = struct.Struct(
    "=16sQQ"
)  #: of kept entries: mark, bytes of the first section, check sum
_SECTION: Final = struct.Struct("=16sQ")  #: behind a section: mark, its bytes
_MOST: Final = 1 << 31  #: bytes that the cache may have
_ROW: Final = 3  #: words of a name: offset and bytes of its text, offset of its entry
_SAMPLE: Final = 1 << 10
_SAMPLES: Final = 256


class NameIndex:
    """The entries of names: pairs (name, offset of the entry), several of a name in their order."""

    def __init__(self, data: Any) -> None:
        """Take tables, as made() gives them.

        Args:
            data: bytes, or a map of a file.

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
        """Return the offsets of a name's entries."""
        wanted = name.encode("utf-8", "surrogatepass")
        sum = zlib.crc32(wanted)
        found = []
        for n in range(bisect.bisect_left(self._sums, sum), bisect.bisect_right(self._sums, sum)):
            at, size, offset = self._rows[_ROW * n : _ROW * n + _ROW]
            if self._texts[at : at + size] == wanted:
                found.append(offset)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield all names."""
        for n in range(len(self._sums)):
            at, size, _ = self._rows[_ROW * n : _ROW * n + _ROW]
            yield bytes(self._texts[at : at + size]).decode("utf-8", "surrogatepass")


def made(pairs: Iterable[tuple[str, int]]) -> bytes:
    """Return the tables of names.

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
    """Return what tells a file from others: it has a build-id, and is not read whole.

    A build-id stays where tools rewrite debug information, which sizes and samples show.

    Args:
        data: the file.
        build: its build-id.
    """
    digest = hashlib.blake2b(f"{build} {len(data)}".encode(), digest_size=20)
    step = max(len(data) // _SAMPLES, 1)
    digest.update(data[: 1 << 16] + data[-(1 << 16) :])
    for at in range(0, len(data), step):
        digest.update(data[at : at + _SAMPLE])
    return digest.digest()


def directory() -> Path | None:
    """Return the folder of the cache: kprobes/debug in $XDG_CACHE_HOME, or in ~/.cache. None: there
    is no home.
    """
    try:
        return (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kprobes" / "debug"
        )
    except RuntimeError:
        return None


def kept_names(identity: bytes, make: Callable[[], Iterable[tuple[str, int]]]) -> NameIndex:
    """Return a file's names, as they were kept, or made now.

    Args:
        identity: tells the file from others.
        make: reads (name, offset of its entry) from the file.
    """
    folder = directory()
    if folder is None:
        return NameIndex(made(make()))
    path = folder / f"{identity.hex()}.names"
    found = _read(path, NameIndex)
    if found is None:
        data = made(make())
        _write(path, data)
        found = NameIndex(data)
    return found


def kept_entries(identity: bytes, make: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return entries that were made of something else, as they were kept, or made now.

    Args:
        identity: tells what they are made of from everything else.
        make: makes contents of .debug_info and .debug_abbrev.

    Raises:
        what `make` raises.
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


def kept_section(identity: bytes, name: str, make: Callable[[], bytes]) -> Any:
    """Return a section that a file has packed, as it was kept unpacked, or unpacked now.

    Args:
        identity: tells the file from others.
        name: of the section, without dots.
        make: unpacks it.

    Returns:
        bytes, or a map of a file.

    Raises:
        what `make` raises.
    """
    folder = directory()
    if folder is None:
        return make()
    path = folder / f"{identity.hex()}.{name}"
    found = _read_section(path)
    if found is not None:
        return found
    data = make()
    _write(path, data, _SECTION.pack(_MARK, len(data)))
    return data


def _read_section(path: Path) -> mmap.mmap | None:
    """Return a map of a section that was kept, without the mark behind it; None: there is none, or
    somebody else may have written it.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not is_private(status) or status.st_size <= _SECTION.size:
                return None
            file.seek(-_SECTION.size, os.SEEK_END)
            mark, size = _SECTION.unpack(file.read(_SECTION.size))
            if mark.rstrip(b"\0") != _MARK or size != status.st_size - _SECTION.size:
                return None
            # dwarf.c is told the address, which ctypes gives of writable maps only
            found = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        os.utime(path)
        return found
    except (OSError, ValueError):
        return None


def _make_room(folder: Path) -> None:
    """Remove the files of a folder that were not used for the longest time, beyond its limit."""
    with suppress(OSError):
        known = [(entry, entry.stat()) for entry in os.scandir(folder)]
        known.sort(key=lambda each: -each[1].st_mtime)
        size = 0
        for entry, status in known:
            size += status.st_size
            if size > _MOST:
                os.unlink(entry)


def _sections(data: Any) -> tuple[bytes, bytes]:
    """Return the two sections in a file of entries.

    Raises:
        ValueError, struct.error: it is damaged.
    """
    mark, size, check = _ENTRIES.unpack_from(data)
    content = bytes(data[_ENTRIES.size :])
    if mark.rstrip(b"\0") != _MARK or size > len(content) or zlib.crc32(content) != check:
        raise ValueError("damaged entries")
    return content[:size], content[size:]


def _read(path: Path, understood: Callable[[Any], Kept]) -> Kept | None:
    """Return what a file of ours says; None where there is none, or it is damaged, or somebody else
    may have written it.

    Args:
        path: of the file.
        understood: makes what is wanted of its bytes. Raises ValueError or struct.error: they are
            damaged.
    """
    try:
        with open(path, "rb") as file:
            if not is_private(os.fstat(file.fileno())):
                return None
            return understood(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, struct.error):
        return None


def _write(path: Path, data: bytes, behind: bytes = b"") -> None:
    """Write a file of the cache, as a whole or not at all. No error is raised.

    Args:
        path: of the file, whose folder is made.
        data: its contents.
        behind: what stands behind them.
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
