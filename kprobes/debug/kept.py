"""The types of big files, kept between processes: one has to look at all units to find a type by its name."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import astuple

from ..hostsystem import is_private
from .scan import NamedType, Sections

_SMALL: Final = 1 << 18  #: bytes of .debug_info that are read faster than a file is looked for
_VERSION: Final = 5  #: of what is kept


def directory() -> Path | None:
    """Return the folder of the cache: kprobes/debug in $XDG_CACHE_HOME, or in ~/.cache. None: there is no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kprobes" / "debug"
    except RuntimeError:
        return None


def kept_types(sections: Sections, make: Callable[[], list[NamedType]]) -> list[NamedType]:
    """Return the types of a file, from the cache if it has them; else make them, and keep them.

    Args:
        sections: the file's, whose contents are the key.
        make: reads the types from the file.
    """
    folder = directory() if len(sections.info) + len(sections.types) >= _SMALL else None
    if folder is None:
        return make()
    digest = hashlib.blake2b(sections.order.encode(), digest_size=20)
    for part in (sections.info, sections.abbrev, sections.strings, sections.line_strings, sections.types):
        digest.update(len(part).to_bytes(8, "little") + part)
    path = folder / f"{digest.hexdigest()}-{_VERSION}.json"
    found = _read(path, len(sections.info) + len(sections.types))
    if found is None:
        found = make()
        _write(path, found)
    return found


def _read(path: Path, size: int) -> list[NamedType] | None:
    """Return the types that a file of the cache has.

    Args:
        path: of the file.
        size: bytes of the debug information; offsets of types are below.

    Returns:
        The types; None: there is no file, it is damaged, or another user may have written it.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not is_private(status):
                return None
            types = [NamedType(*row) for row in json.load(file)]
    except (OSError, ValueError, TypeError):
        return None
    sound = all(isinstance(type.name, str) and isinstance(type.offset, int) and 0 <= type.offset < size
                for type in types)
    return types if sound else None


def _write(path: Path, types: list[NamedType]) -> None:
    """Write types to a file of the cache, as a whole or not at all. No error is raised.

    Args:
        path: of the file, whose folder is made.
        types: the types.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)  # which nobody else may write
    except OSError:
        return
    try:
        with os.fdopen(handle, "w") as file:
            json.dump([astuple(type) for type in types], file)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
