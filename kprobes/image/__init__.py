"""ELF files -> segments, relocations, symbols. `read_elf` is the door; `Image.place` gives the
image an address.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from attrs import evolve

from ..btf import byte_order, header
from ..collector import collector_paused
from ..errors import ImageError
from ._elf import Elf, damage_is_error
from ._export import EXPORTS, write_names
from ._layout import CodeLayout
from ._loadable import loadable
from ._order import in_order
from ._placing import Image
from ._sections import SectionedElf
from ._separate import (
    FOLDERS,
    alternative_link,
    build_id,
    fetched,
    find_alternative,
    find_separate,
    has_dwarf,
    is_of_same_build,
)
from ._symbol import LoadedFile, Symbol
from ._unlinked import linked
from ._values import (
    TLSDESC,
    Copy,
    Import,
    Placed,
    Resolve,
    ResolveIfunc,
    Segment,
    TlsBlock,
    page_size,
)

__all__ = [
    "EXPORTS",
    "FOLDERS",
    "TLSDESC",
    "CodeLayout",
    "Copy",
    "Image",
    "Import",
    "LoadedFile",
    "Placed",
    "Resolve",
    "ResolveIfunc",
    "SectionedElf",
    "Segment",
    "Symbol",
    "TlsBlock",
    "alternative_link",
    "build_id",
    "collector_paused",
    "fetched",
    "find_alternative",
    "find_separate",
    "has_dwarf",
    "in_order",
    "is_of_same_build",
    "linked",
    "page_size",
    "raw_bytes",
    "read_elf",
    "read_names",
    "write_names",
]


def read_elf(source: str | os.PathLike[str] | bytes, name: str | None = None) -> Image:
    """Parse an ELF file: an executable, a shared object or a relocatable file.

    Args:
        source: a path, or the file's bytes.
        name: of the module; None: the file's base name, or "<bytes>".

    Returns:
        The image; Image.place() gives it an address.

    Raises:
        ImageError: not found, unreadable, truncated, damaged, not ELF, a core file, nothing to
            load, too big.
    """
    data, name = _contents(source, name)
    with damage_is_error(name), collector_paused():
        elf = Elf(data, name)
        if elf.type not in ("ET_EXEC", "ET_DYN", "ET_REL"):
            what = "a core file" if elf.type == "ET_CORE" else f"an ELF file of type {elf.type}"
            raise ImageError(
                f"{name}: {what}",
                hint="executables, shared objects and relocatable files are loaded",
            )
        if elf.type == "ET_REL":
            from ._relocatable import relocatable

            image = relocatable(elf)
        else:
            image = loadable(elf)
    if isinstance(source, bytes | bytearray | memoryview):
        return image
    return evolve(image, path=os.path.abspath(os.fsdecode(source)))


def _contents(source: str | os.PathLike[str] | bytes, name: str | None) -> tuple[bytes, str]:
    """Return (contents, name) of a file.

    Args:
        source: a path, or the contents themselves.
        name: the name to return; None: the base name of the path, or "<bytes>".

    Raises:
        ImageError: the file cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), name or "<bytes>"
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(), name or os.path.basename(path)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ImageError(f"{path}: {reason}", hint="give the path of an ELF file") from error


def read_names(
    source: str | os.PathLike[str] | bytes, format: str | None = None
) -> tuple[Iterable[Symbol], bytes]:
    """Read the names of addresses that a file has: an ELF file, BTF, or text of nm or other tools.

    Addresses of text files keep their mode bits.

    Args:
        source: a path, or the contents themselves.
        format: as Symbols.load() names formats; None: what the contents look like.

    Returns:
        (symbols, contents): the contents of BTF, which has no symbols here, and of an ELF file with
        debug information (of a relocatable one with the symbols' new addresses); else b"".

    Raises:
        ImageError: the file cannot be read, is damaged, or is a text that names no address; or
            there is no such format.
    """
    from ._names import FORMATS, names_in

    if format not in (None, *FORMATS):
        raise ImageError(f"no format {format!r}", hint=f"there are: {', '.join(FORMATS)}")
    data, name = _contents(source, None)
    if format == "elf" or (format is None and data[:4] == b"\x7fELF"):
        image = read_elf(data, name)
        return image.symbols, image.file
    if format == "btf" or (format is None and byte_order(data) is not None):
        return [], _sound_btf(data, name)
    found = list(names_in(data.decode("utf-8", "replace"), format))
    if not found:
        raise ImageError(
            f"{name}: names no address", hint=f"give format=, one of {', '.join(FORMATS)}"
        )
    return found, b""


def _sound_btf(data: bytes, name: str) -> bytes:
    """Check that the data is a whole file of BTF, and return it.

    Args:
        data: contents of the file.
        name: names the file in errors.

    Raises:
        ImageError: the data is no BTF, or cut off.
    """
    order = byte_order(data)
    with damage_is_error(name):
        if order is None:
            raise ImageError(f"{name}: is no BTF", hint="give /sys/kernel/btf/vmlinux or the like")
        head, types, types_size, strings, size = header(data, "<" if order == "little" else ">")
        if max(head + types + types_size, head + strings + size) > len(data):
            raise ImageError(f"{name}: the BTF is cut off", hint="copy the whole file")
    return data


def raw_bytes(source: str | os.PathLike[str] | bytes, name: str | None = None) -> tuple[bytes, str]:
    """Return (bytes of a raw image, its name).

    Args:
        source: a path, or the bytes themselves.
        name: the name to return; None: the base name of the path, or "<bytes>".

    Raises:
        ImageError: the file cannot be read, or is empty.
    """
    data, name = _contents(source, name)
    if not data:
        raise ImageError(f"{name}: is empty", hint="give the image's bytes")
    return data, name
