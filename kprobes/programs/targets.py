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
    """The guest's symbols, as far as this file needs them. Iterating gives all symbols."""

    @property
    def main(self) -> Any:
        """Name of the guest's own file, which symbols without a `module` are of; or None."""

    def __iter__(self) -> Iterator[Any]: ...
    def find(self, name: str) -> Any:
        """Return the symbol that has a name; None: there is none."""


@frozen
class Aim:
    """An address of the guest that a section's target means.

    Attributes:
        symbol: name or address of the function; address of a static tracepoint.
        name: how it is told from the target's other addresses; "" where it is the only one.
        operands: arguments of a static tracepoint, as the compiler wrote them: `-4@%eax`.
        semaphore: address of 16 bits that count the tracers of a static tracepoint; 0: there are
            none.
    """

    symbol: str | int
    name: str = ""
    operands: tuple[str, ...] = ()
    semaphore: int = 0


def aims(
    code: Code, target: SectionTarget, symbols: TargetSymbols, markers: Callable[[], Iterable[Any]]
) -> list[Aim]:
    """Find the guest's addresses that a section's target means: at least one.

    A name without image or glob, and a system call's function, are not looked up: their Aim has the
    name instead. Of several functions of one name only the first is taken, unless the target is a
    glob.

    Args:
        code: the program, for the error.
        target: where the program's section says that it belongs.
        symbols: the guest's symbols.
        markers: returns the guest's static tracepoints (debug.markers.Marker); called only for
            targets that are one.

    Raises:
        ProgramError: the guest has no such function or tracepoint.
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
    """Yield the symbols of functions whose names match; of several at one address, the first.

    Args:
        symbols: the guest's symbols.
        pattern: a glob for the functions' names.
        image: name, path or glob of the file that the functions are in; "" or "*": any.
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
    """Return True where a symbol's file is the one that was asked for.

    Args:
        module: name or path of the symbol's file.
        loaded: True where that file was loaded beside the guest's own one, such as a library.
        image: what was asked for: a name, path or glob; of a path the file's name is enough, and
            `libc` or `c` means libc.so.6. "" and "*" mean any file, "/proc/self/exe" the guest's
            own; so does any image where the guest's own file has no name.
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
    """Return the name of the guest's function that serves a system call.

    Args:
        name: the system call's name: `openat`.
        symbols: the guest's symbols.

    Returns:
        The name of the first kernel's function that is found, such as `__x64_sys_openat`; `name`
        itself, a library's function, where the guest has none named like that.
    """
    ends = (f"_sys_{name}", f"__se_sys_{name}")
    for symbol in symbols:
        if symbol.kind == "func" and (symbol.name == f"sys_{name}" or symbol.name.endswith(ends)):
            return str(symbol.name)
    return name


def _marked(code: Code, target: SectionTarget, markers: list[Any]) -> list[Aim]:
    """Return the addresses of a static tracepoint, one for each place in the code that has it.

    Args:
        code: the program, for the error.
        target: the tracepoint's provider, name and image, which may be globs.
        markers: the guest's static tracepoints (debug.markers.Marker).

    Raises:
        ProgramError: none of `markers` fits the target.
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
