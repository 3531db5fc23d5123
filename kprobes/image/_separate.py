"""Separate debug information: which file has that of another, and what a stripped file has packed
in itself.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from ..errors import ImageError
from ._elf import damage_is_error
from ._sections import SectionedElf, SectionPlace, section_places

if TYPE_CHECKING:
    from pathlib import Path

_DAMAGE: Final = (ValueError, IndexError, struct.error)
_NOTE: Final = 7  #: SHT_NOTE
_BUILD_ID: Final = 3  #: NT_GNU_BUILD_ID
_DWARF: Final = (b".debug_info", b".zdebug_info")
FOLDERS: Final = ("/usr/lib/debug",)
_MOST: Final = 1 << 30  #: bytes of a file that is unpacked or fetched
_LARGE: Final = 1 << 24  #: bytes of a file that takes longer to read than what is looked for in it
#: that a server may be silent, as debuginfod's own client waits without DEBUGINFOD_TIMEOUT
_SECONDS: Final = 90
_ID: Final = re.compile(r"[0-9a-f]{4,128}")


def build_id(data: bytes) -> str:
    """Return a file's build-id in hexadecimal; "" where it has none, or is damaged."""
    with suppress(*_DAMAGE):
        numbers = struct.Struct(f"{'<' if data[5] == 1 else '>'}III")
        for section in section_places(data):
            if section.type != _NOTE:
                continue
            notes = section.contents(data)
            at = 0
            while at + numbers.size < len(notes):
                name_size, size, type = numbers.unpack_from(notes, at)
                name = at + numbers.size
                description = name + -(-name_size // 4) * 4
                if type == _BUILD_ID and notes[name : name + name_size] == b"GNU\0":
                    return notes[description : description + size].hex()
                at = description + -(-size // 4) * 4
    return ""


def _section(data: bytes, name: bytes) -> SectionPlace | None:
    """Return where a section of a file is.

    Args:
        data: contents of an ELF file.
        name: of the section.

    Returns:
        None: the file has no such section, or is damaged.
    """
    with suppress(*_DAMAGE):
        return next((each for each in section_places(data) if each.name == name), None)
    return None


def debug_link(data: bytes) -> tuple[str, int] | None:
    """Return (name, CRC-32) of the file that .gnu_debuglink names; None where there is none.

    Args:
        data: contents of the ELF file.
    """
    section = _section(data, b".gnu_debuglink")
    if section is None:
        return None
    with suppress(*_DAMAGE):
        content = section.contents(data)
        order: Any = "little" if data[5] == 1 else "big"
        return content.partition(b"\0")[0].decode(), int.from_bytes(content[-4:], order)
    return None


def alternative_link(data: bytes) -> tuple[str, str] | None:
    """Return what names a file's alternative file: that to which dwz -m has moved the debug
    information that several files have in common (.gnu_debugaltlink, or DWARF 5's .debug_sup).

    Args:
        data: contents of an ELF file.

    Returns:
        (path, identity in hexadecimal: a build-id, or the checksum of .debug_sup); None: the file
        has no alternative file.
    """
    with suppress(*_DAMAGE):
        section = _section(data, b".gnu_debugaltlink")
        if section is not None:
            path, _, identity = section.contents(data).partition(b"\0")
            return os.fsdecode(path), identity.hex()
        found = _supplementary(data)
        if found is not None and not found[0]:
            return found[1], found[2]
    return None


def find_alternative(data: bytes, path: str, folders: Sequence[str] = FOLDERS) -> Any:
    """Find a file's alternative file (alternative_link()).

    The path in the file is looked for as it is, from the folder of the file, and below the root of
    a tree that the file was unpacked into; then the identity among the system's files.

    Args:
        data: contents of the file that names it.
        path: of the file that names it; "": not known.
        folders: folders with debug information of all programs, as /usr/lib/debug.

    Returns:
        (path, contents) of the alternative file; None: none is named, or none of the same identity
        is there.
    """
    link = alternative_link(data)
    if link is None or not link[1]:  # without an identity any file would fit
        return None
    name, identity = link
    places = [name]
    if path:
        places.append(os.path.join(os.path.dirname(os.path.realpath(path)), name))
    for folder in folders:
        root, there, _ = os.path.abspath(path).rpartition(f"{folder}/")
        if there and root:
            places.append(root + name)
        places.append(os.path.join(folder, ".build-id", identity[:2], f"{identity[2:]}.debug"))
    for place in filter(os.path.isfile, places):  # a pipe or device may be named, too
        try:
            with open(place, "rb") as file:
                found = _contents(file, mapped=True)
        except (OSError, ValueError):
            continue
        if _has_identity(found, identity):
            return place, found
    return None


def _supplementary(data: bytes) -> tuple[bool, str, str] | None:
    """Return what section .debug_sup of a file says (DWARF 5, 7.3.6).

    Args:
        data: contents of the file.

    Returns:
        (True: the file is an alternative file itself, path of its alternative file, checksum of
        the alternative file in hexadecimal); None: there is no such section.

    Raises:
        errors in _DAMAGE: the file is damaged.
    """
    section = _section(data, b".debug_sup")
    content = b"" if section is None else section.contents(data)
    if len(content) <= 3:
        return None
    path, _, rest = content[3:].partition(b"\0")  # behind the version, and a flag
    return bool(content[2]), os.fsdecode(path), rest[1 : 1 + rest[0]].hex() if rest else ""


def _has_identity(data: bytes, identity: str) -> bool:
    """Whether a file is the alternative file of an identity, by its build-id or its checksum."""
    if build_id(data) == identity:
        return True
    with suppress(*_DAMAGE):
        found = _supplementary(data)
        return found is not None and found[2] == identity
    return False


def has_dwarf(data: bytes) -> bool:
    """Return True where a file has DWARF: types, variables and lines.

    Args:
        data: contents of an ELF file.
    """
    with suppress(*_DAMAGE):
        return any(each.name in _DWARF for each in section_places(data))
    return False


def packed_symbols(data: bytes) -> bytes:
    """Return the ELF file that a stripped one has packed in .gnu_debugdata, for its symbols.

    Args:
        data: contents of the stripped file.

    Returns:
        Contents of the packed one; b"" where there is none, or it is damaged.
    """
    import lzma

    with suppress(ImageError, lzma.LZMAError), damage_is_error(""):
        section = SectionedElf(data).get_section_by_name(".gnu_debugdata")
        if section is not None:
            found = lzma.LZMADecompressor().decompress(section.data(), max_length=_MOST)
            return found if found[:4] == b"\x7fELF" else b""
    return b""


def is_of_same_build(one: bytes, other: bytes) -> bool:
    """Return True if two files are the same program, so that one's debug information is the
    other's.

    Build-ids decide; where neither has one, the address and size of their code.

    Args:
        one: contents of an ELF file.
        other: contents of an ELF file.
    """
    ids = build_id(one), build_id(other)
    if any(ids):
        return ids[0] == ids[1]
    text = _text(one)
    return text is not None and text == _text(other)


def _text(data: bytes) -> tuple[int, int] | None:
    """Return (link address, bytes) of a file's code; None where it has none."""
    section = _section(data, b".text")
    return None if section is None else (section.address, section.size)


def candidates(data: bytes, path: str, folders: Sequence[str] = FOLDERS) -> Iterator[str]:
    """Yield the paths where a file's debug information may be, as gdb looks for it.

    Args:
        data: contents of the file.
        path: of the file; "": not known.
        folders: that have debug information for all files.
    """
    identity = build_id(data)
    if identity:
        for folder in folders:
            yield os.path.join(folder, ".build-id", identity[:2], f"{identity[2:]}.debug")
    link = debug_link(data)
    if link is not None and link[0] and "/" not in link[0]:
        home = os.path.dirname(os.path.realpath(path)) if path else ""
        if home:
            yield os.path.join(home, link[0])
            yield os.path.join(home, ".debug", link[0])
        for folder in folders:
            yield os.path.join(folder, home.lstrip("/"), link[0])


def find_separate(
    data: bytes, path: str, folders: Sequence[str] = FOLDERS, mapped: bool = False
) -> tuple[str, bytes] | None:
    """Find the file with another one's debug information: the first of candidates() with the same
    build-id or, where the file has none, with the checksum of its debug link. Candidates that
    cannot be read are passed over.

    Args:
        data: contents of the file that lacks it.
        path: of that file; "": not known.
        folders: that have debug information for all files.
        mapped: True: a large file in one of `folders`, where packages are installed by renaming, is
            mapped and not read.

    Returns:
        (path, contents); None where there is no file of the same build.
    """
    link = debug_link(data)
    for candidate in candidates(data, path, folders):
        try:
            with open(candidate, "rb") as file:
                found = _contents(file, mapped and candidate.startswith(tuple(folders)))
        except (OSError, ValueError):
            continue
        right = (
            is_of_same_build(data, found)
            if build_id(data)
            else link is not None and zlib.crc32(found) == link[1]
        )
        if right and found != data:
            return candidate, found
    return None


def _contents(file: BinaryIO, mapped: bool) -> Any:
    """Return the contents of a file: bytes, or a map of it.

    Args:
        file: the file.
        mapped: True: a large file is mapped.
    """
    if mapped and os.fstat(file.fileno()).st_size >= _LARGE:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return file.read()


def _debuginfod_cache() -> Path:
    """Return the folder in which elfutils' client, and so gdb, keeps what it has fetched:
    $DEBUGINFOD_CACHE_PATH, else debuginfod_client in $XDG_CACHE_HOME or ~/.cache.
    """
    from pathlib import Path

    given = os.environ.get("DEBUGINFOD_CACHE_PATH")
    if given:
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "debuginfod_client"


def _patience() -> float:
    """Return for how many seconds a server may send nothing: those of $DEBUGINFOD_TIMEOUT, where
    that is a number above 0.
    """
    try:
        given = float(os.environ.get("DEBUGINFOD_TIMEOUT", ""))
    except ValueError:
        return _SECONDS
    return given if 0 < given < 1e6 else _SECONDS


def fetched(identity: str, servers: Sequence[str]) -> bytes:
    """Return the debug information of a build, from debuginfod servers, or what was fetched before.

    What a server gives is kept on disk, if it is an ELF file with that build-id; else, as where a
    proxy answers with a page of its own, the next server is asked.

    Args:
        identity: the build-id, in hexadecimal.
        servers: their addresses, such as those in DEBUGINFOD_URLS; they are asked in this order.

    Returns:
        Contents of the file. Only that it is an ELF file, and its build-id, are checked.

    Raises:
        ImageError: no server has it, or `identity` is no build-id.
    """
    if not _ID.fullmatch(identity):
        raise ImageError(
            "the file has no build-id, by which servers know it", hint="give its debug file's path"
        )
    folder = _debuginfod_cache() / identity
    kept = folder / "debuginfo"
    if kept.is_file():
        before = kept.read_bytes()
        if not _why_not_of_build(before, identity):
            return before
    # imported here: they cost 20 ms, and few ask a server
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import urlopen

    reasons = []
    for server in servers:
        if not server.startswith(("http://", "https://")):
            reasons.append(f"{server}: is no address of http")
            continue
        try:
            address = f"{server.rstrip('/')}/buildid/{identity}/debuginfo"
            with urlopen(address, timeout=_patience()) as answer:
                data: bytes = answer.read(_MOST)
        except (URLError, HTTPException, OSError, ValueError) as error:
            reasons.append(f"{server}: {error}")
            continue
        why = _why_not_of_build(data, identity)
        if why:
            reasons.append(f"{server}: {why}")
            continue
        _keep(kept, data)
        return data
    raise ImageError(
        f"no server has debug information of build {identity}: "
        f"{'; '.join(reasons) or 'none is given'}",
        hint="set DEBUGINFOD_URLS to addresses of servers, or give the debug file's path",
    )


def _why_not_of_build(data: bytes, identity: str) -> str:
    """Return why data is no file of a build, as one clause; "": it is.

    Args:
        data: contents of what may be the file.
        identity: the build-id, in hexadecimal.
    """
    if data[:4] != b"\x7fELF":
        return "it gives no ELF file"
    found = build_id(data)
    if not found:
        return "its file has no build-id, or is cut off"
    return "" if found == identity else f"its file is of another build, {found}"


def _keep(path: Path, data: bytes) -> None:
    """Write a file that was fetched; where that is not possible, nothing happens.

    Args:
        path: of the file; its folder is made.
        data: the contents.
    """
    import tempfile

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(name)
