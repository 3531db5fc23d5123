"""A file's DWARF, as pyelftools reads it, with damage turned into nothing: whoever asks is told that there is none."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile

from ..btf import byte_order
from ..errors import ImageError
from ..image import LoadedFile, find_separate, linked

DAMAGE = (ImageError, DWARFError, ELFError, ConstructError, ArithmeticError, LookupError, ValueError, TypeError,
          AttributeError, AssertionError, NotImplementedError, EOFError, RecursionError, struct.error, zlib.error,
          MemoryError)
T = TypeVar("T")


def dwarf(file: LoadedFile) -> Any:
    """pyelftools' DWARFInfo of a file, or None. Raises what is in DAMAGE."""
    return cached(file, "dwarf", lambda: elf_of(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False))


def dwarf_of_source(file: LoadedFile) -> tuple[Any, str]:
    """Return the debug information of a file, or of the one that has it for this file, where that
    is found as gdb finds it.

    Returns:
        (pyelftools' DWARFInfo, path of the file that has it); (None, "") where neither has any.

    Raises:
        what is in DAMAGE.
    """
    if byte_order(file.data) is not None:  # BTF, and no ELF file
        return None, ""
    info = dwarf(file)
    if info is not None and info.has_debug_info:
        return info, file.path
    found = cached(file, "separate", lambda: find_separate(file.data, file.path))
    if found is None:
        return None, ""
    other = dwarf(LoadedFile(found[1], file.bias, file.module, found[0]))
    return (other, found[0]) if other is not None and other.has_debug_info else (None, "")


def elf_of(file: LoadedFile) -> ELFFile:
    """Return pyelftools' view of a file, relocated if it is an object file.

    Raises:
        what is in DAMAGE: the file is damaged.
    """
    return ELFFile(io.BytesIO(cached(file, "linked", lambda: linked(file.data))))


def children(die: Any) -> list[Any]:
    """Return the entries within an entry; nothing where that is damaged."""
    try:
        return [*die.iter_children()]
    except DAMAGE:
        return []


def cached(file: LoadedFile, key: str, make: Callable[[], T]) -> T:
    """Return what was made of a file before, or make it now. A failure is remembered as well.

    Args:
        file: the file, which has the cache.
        key: name in the cache.
        make: makes it.

    Raises:
        ValueError: the debug information is damaged.
    """
    if key not in file.cache:
        try:
            file.cache[key] = make()
        except DAMAGE as error:
            file.cache[key] = error
    found: Any = file.cache[key]
    if isinstance(found, Exception):
        raise ValueError("the debug information is damaged") from found
    return found  # type: ignore[no-any-return]
