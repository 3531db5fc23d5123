"""The guest's addresses that a section's target means."""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from attrs import frozen

from .code import Code
from .sections import SectionTarget


class TargetSymbols(Protocol):
    """The guest's symbols, as far as targets need them. Iterating gives them all."""

    @property
    def main(self) -> Any:
        """The file that the guest's own symbols are of."""

    def __iter__(self) -> Iterator[Any]: ...
    def find(self, name: str) -> Any:
        """Return the symbol of a name; None: there is none."""


@frozen
class Aim:
    """An address of the guest that a section's target means.

    Attributes:
        symbol: name or address of the function; address of a marker.
        name: how it is told from the target's other addresses; "" for the only one.
        operands: a marker's arguments, as the compiler wrote them.
        semaphore: address of 16 bits that count the tracers of a marker; 0: there are none.
    """

    symbol: str | int
    name: str = ""
    operands: tuple[str, ...] = ()
    semaphore: int = 0


def aims(
    code: Code, target: SectionTarget, symbols: TargetSymbols, markers: Callable[[], Iterable[Any]]
) -> list[Aim]:
    """Return the addresses of the guest that a target means, at least one.

    Args:
        code: the program, for the refusal.
        target: where its section says that it belongs.
        symbols: the guest's symbols.
        markers: returns the guest's static tracepoints (debug.markers.Marker).

    Raises:
        ProgramError: the guest has nothing of that.
    """
    if target.on == "marker":
        return _marked(code, target, list(markers()))
    if target.on in ("syscall", "sysreturn"):
        return [Aim(_serving(target.function, symbols))]
    if not target.image and not target.many:
        return [Aim(target.function)]
    found = list(functions(symbols, target.function, target.image))
    if not found:
        near = difflib.get_close_matches(
            target.function, {s.name for s in symbols if s.kind == "func"}, 3
        )
        of = f" of {target.image}" if target.image else ""
        raise code.error(
            f"the guest has no function {target.function}{of}",
            hint=f"did you mean {' or '.join(near)}?"
            if near
            else "`kprobes symbols GUEST` lists what there is",
        )
    if not target.many:
        found = found[:1]
    return [Aim(s.address | s.mode, s.name if target.many else "") for s in found]


def functions(symbols: TargetSymbols, pattern: str, image: str) -> Iterator[Any]:
    """Yield the symbols of functions by their names; of several at one address, the first.

    Args:
        symbols: the guest's.
        pattern: a glob of the names.
        image: a glob of the names of files that they are in; "": any.
    """
    matches = re.compile(fnmatch.translate(pattern)).match
    seen = set[int]()
    for symbol in symbols:
        if (
            symbol.kind not in ("func", "ifunc")
            or symbol.address in seen
            or not matches(symbol.name)
        ):
            continue
        if _of_image(str(symbol.module or symbols.main or ""), bool(symbol.module), image):
            seen.add(symbol.address)
            yield symbol


def _of_image(module: str, loaded: bool, image: str) -> bool:
    """Return True for a symbol of an image; a path stands for the file's name, `libc` for
    libc.so.6.

    Args:
        module: the symbol's file.
        loaded: True for one that was loaded beside the guest's own file.
        image: what was asked for; "" and * are all, /proc/self/exe is the guest's own.
    """
    if image in ("", "*"):
        return True
    base = os.path.basename(module)
    wanted = os.path.basename(image)
    if not loaded and (not base or image == "/proc/self/exe"):
        return True
    return (
        fnmatch.fnmatchcase(module, image)
        or fnmatch.fnmatchcase(base, wanted)
        or base.startswith(f"{wanted}.so")
        or base.startswith(f"lib{wanted}.so")
    )


def _serving(name: str, symbols: TargetSymbols) -> str:
    """Return the name of the function that serves a system call: a kernel's, or else a library's.

    Args:
        name: the system call's name.
        symbols: the guest's symbols.

    Returns:
        `name` itself, where the guest has no function named like a kernel's.
    """
    ends = (f"_sys_{name}", f"__se_sys_{name}")
    for symbol in symbols:
        if symbol.kind == "func" and (symbol.name == f"sys_{name}" or symbol.name.endswith(ends)):
            return str(symbol.name)
    return name


def _marked(code: Code, target: SectionTarget, markers: list[Any]) -> list[Aim]:
    """Return the addresses of a static tracepoint, one for each place in the code that has it.

    Args:
        code: the program, for the refusal.
        target: provider, name and image, which may be globs.
        markers: the guest's static tracepoints.

    Raises:
        ProgramError: none of them fits.
    """
    wanted = os.path.basename(target.image)
    found = [
        m
        for m in markers
        if fnmatch.fnmatchcase(m.name, target.function)
        and fnmatch.fnmatchcase(m.provider, target.provider)
        and (not m.module or _of_image(m.module, True, wanted))
    ]
    if not found:
        there = ", ".join(sorted({f"{m.provider}:{m.name}" for m in markers})[:8]) or "none"
        raise code.error(
            f"the guest has no static tracepoint {target.provider}:{target.function}",
            hint=f"there is {there}",
        )
    several = len(found) > 1
    return [
        Aim(
            m.address,
            f"{m.provider}:{m.name}@{m.address:#x}" if several else "",
            tuple(m.arguments),
            m.semaphore,
        )
        for m in found
    ]
