"""C++ and Rust names as people write them (extra `dwarf`: itanium_demangler, rust_demangler; without it they stay as
they are)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

_MANGLED = re.compile(r"\b__?[ZR][\w$.]+", re.ASCII)
LONGEST = 4096  #: characters of a name that is looked at
_HASH = re.compile(r"::h[0-9a-f]{16}$")


@cache
def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def _cpp(name: str) -> str | None:
    library = _library("itanium_demangler")
    found = library.parse(name) if library is not None else None
    return None if found is None else str(found)


def _rust(name: str) -> str | None:
    library = _library("rust_demangler")
    return None if library is None else _HASH.sub("", str(library.demangle(name)))


def demangle(name: str) -> str:
    """`_ZN5Table6insertEPKci` -> `Table::insert(char const*, int)`; what is no mangled name, or cannot be read, as it
    is."""
    readers: tuple[Callable[[str], str | None], ...] = ()
    if name.startswith("_R") or (name.startswith("_ZN") and re.search(r"17h[0-9a-f]{16}E", name)):
        readers = (_rust,)
    elif name.startswith(("_Z", "__Z")):
        readers = (_cpp,)
    for read in readers if len(name) <= LONGEST else ():
        try:
            found = read(name)
        except Exception:  # damaged names meet whatever comes up there
            found = None
        if found:
            return found
    return name


_cached = lru_cache(1 << 12)(demangle)


def can_demangle() -> bool:
    """False where neither of the libraries is installed."""
    return any(_library(name) is not None for name in ("itanium_demangler", "rust_demangler"))


def readable(text: str, shown: Callable[[str], str] = lambda name: name) -> str:
    """Text with its mangled names as people write them, as c++filt has it. shown: what is done to each, such as JSON's
    escapes."""
    return _MANGLED.sub(lambda found: shown(_cached(found[0])), text)


def plain(name: str) -> str:
    """A demangled name without its parameters: `Table::insert`."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0 and name[at] == "(":
            return name[:at]
    return name
