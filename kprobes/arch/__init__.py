"""Architectures by name. Every module here without a leading underscore defines one or more, in ARCHES.

Third parties add theirs through the entry-point group `kprobes.arch`: the entry's name is the architecture's, its value
an `Arch`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from ..errors import Unsupported
from ._base import Arch


@cache
def _all() -> dict[str, Arch]:
    found: dict[str, Arch] = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            for arch in importlib.import_module(f"{__name__}.{info.name}").ARCHES:
                found[arch.name] = arch
    for entry in entry_points(group="kprobes.arch"):
        arch = entry.load()
        found.setdefault(arch.name, arch)
    return found


def names() -> tuple[str, ...]:
    """Names of every architecture there is, sorted."""
    return tuple(sorted(_all()))


def get(name: str) -> Arch:
    """The architecture of this name; Unsupported (listing the names) where there is none."""
    try:
        return _all()[name]
    except KeyError:
        raise Unsupported(f"no architecture {name!r}", hint=f"there are: {' '.join(names())}") from None


def of_elf(machine: int, bits: int, order: str, flags: int = 0, profile: str = "", name: str | None = None) -> Arch:
    """The architecture that runs an ELF file of this e_machine, class, byte order ("little" or "big"), e_flags and CPU
    profile.

    name: the one to choose of those that run such a header. Unsupported where none does.
    """
    running = [arch for arch in _all().values() if (machine, bits, order) in arch.files.machines]
    what = f"ELF machine {machine}, {bits} bit, {order} endian"
    if not running:
        raise Unsupported(f"no architecture for {what}", hint=f"there are: {' '.join(names())}")
    first = running[0]
    if name is None or name == first.name:
        return first if first.files.choose is None else first.files.choose(flags, profile if name is None else "")
    if get(name) not in running:
        raise Unsupported(f"{name} does not run {what}", hint=f"these do: {' '.join(arch.name for arch in running)}")
    return get(name)
