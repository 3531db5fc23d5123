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


def of_elf(machine: int, bits: int, order: str, flags: int = 0) -> Arch:
    """The architecture that runs an ELF header's (e_machine, class, "little"/"big", e_flags); Unsupported where none does."""
    for arch in _all().values():
        if (machine, bits, order) in arch.elf_machines:
            return arch if arch.for_flags is None else arch.for_flags(flags)
    raise Unsupported(f"no architecture for ELF machine {machine}, {bits} bit, {order} endian", hint=f"there are: {' '.join(names())}")
