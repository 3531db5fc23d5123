"""Architectures (instruction sets) by name: get("arm64") gives an `Arch`.

A package here is a family: it says in NAMES what its architectures are called, in MACHINES which
files may be for them, in DESCRIBED what GDB's target descriptions call them, and its module `isa`
has them in ARCHES. That module builds decode tables, so it is imported when one of its
architectures is asked for. Its other modules have what only some parts of the library need
(`_rows`). A module here that is no package, and has no leading underscore, has ARCHES itself.

Third parties add theirs through the entry-point group `kprobes.arch`: the entry's name is the
architecture's, its value an `Arch`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from ..errors import Unsupported
from ._base import Arch

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType


@cache
def _families() -> dict[str, ModuleType]:
    """Import the families of this package: name of a family's module -> the module."""
    return {info.name: importlib.import_module(f"{__name__}.{info.name}")
            for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")}


@cache
def _members(family: str) -> dict[str, Arch]:
    """Import a family's decode tables: name -> architecture. The result is remembered."""
    package = _families()[family]
    module = (
        importlib.import_module(f"{package.__name__}.isa") if hasattr(package, "NAMES") else package
    )
    return {arch.name: arch for arch in module.ARCHES}


@cache
def _family_of() -> dict[str, str]:
    """Return name -> family of each architecture of this package."""
    return {name: family for family, module in _families().items()
            for name in getattr(module, "NAMES", None) or _members(family)}


@cache
def _installed() -> dict[str, EntryPoint]:
    """Return name -> entry point of each architecture that other distributions bring and this
    package does not have.

    The result is remembered until refresh().
    """
    from importlib.metadata import entry_points  # it takes longer than all of this module

    return {
        entry.name: entry
        for entry in entry_points(group="kprobes.arch")
        if entry.name not in _family_of()
    }


@cache
def _load(name: str) -> Arch | None:
    """Return the architecture of this name, of this package or of another installed distribution
    (its entry point), imported if need be; None where there is none. The result is remembered until
    refresh().
    """
    family = _family_of().get(name)
    if family is not None:
        return _members(family)[name]
    entry = _installed().get(name)
    return entry.load() if entry is not None else None


def described(description: str) -> str | None:
    """Return the name of the architecture that a GDB target description is of.

    Args:
        description: the text of its `architecture` element. Where byte orders share one, the
            little-endian architecture or the usual one is meant, and only a program's file tells
            more.

    Returns:
        The architecture's name here, or None where no family knows the description.
    """
    return next((module.DESCRIBED[description] for module in _families().values()
                 if description in getattr(module, "DESCRIBED", ())), None)


def refresh() -> None:
    """Forget which architectures other distributions bring; the next call looks for them again.

    Call it where a distribution has been installed or removed since this process began.
    """
    _installed.cache_clear()
    _load.cache_clear()


def names() -> tuple[str, ...]:
    """Return the names of all architectures, those of other distributions included, sorted."""
    return tuple(sorted({*_family_of(), *_installed()}))


def get(name: str) -> Arch:
    """Return the architecture of this name.

    Raises:
        Unsupported: there is none; the error lists the names.
    """
    arch = _load(name)
    if arch is None:
        raise Unsupported(f"no architecture {name!r}", hint=f"there are: {' '.join(names())}")
    return arch


def _running(machine: int, bits: int, order: str) -> list[Arch]:
    """Return the architectures that run ELF files with a header: this package's, else others'.

    Args:
        machine: e_machine.
        bits: 32 or 64, the ELF class.
        order: "little" or "big".

    Returns:
        The usual one first; [] where no architecture runs them.
    """
    ours = [
        arch
        for family, module in _families().items()
        if machine in getattr(module, "MACHINES", (machine,))
        for arch in _members(family).values()
    ]
    header = machine, bits, order
    return ([arch for arch in ours if header in arch.files.machines]
            or [arch for arch in map(get, _installed()) if header in arch.files.machines])


def of_elf(
    machine: int, bits: int, order: str, flags: int = 0, profile: str = "", name: str | None = None
) -> Arch:
    """Return the architecture that runs an ELF file.

    Args:
        machine: e_machine.
        bits: 32 or 64, the ELF class.
        order: "little" or "big".
        flags: e_flags.
        profile: the CPU's profile that the file names ("M": a microcontroller), or "".
        name: of the architecture to choose, of those that run such a header; None: the flags and
            the profile decide. For the name of the usual one the flags may still choose a variant
            of it.

    Raises:
        Unsupported: no architecture runs the file, or not the one that is named.
    """
    running = _running(machine, bits, order)
    what = f"ELF machine {machine}, {bits} bit, {order} endian"
    if not running:
        raise Unsupported(f"no architecture for {what}", hint=f"there are: {' '.join(names())}")
    first = running[0]
    if name is None or name == first.name:
        if first.files.choose is None:
            return first
        return first.files.choose(flags, profile if name is None else "")
    wanted = get(name)
    if (machine, bits, order) not in wanted.files.machines:
        raise Unsupported(
            f"{name} does not run {what}",
            hint=f"these do: {' '.join(arch.name for arch in running)}",
        )
    return wanted
