"""Mirrored-argument probes: the entry hook of a jprobe calls the mirror with the probed function's arguments."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

from ...errors import BadLocation, NotFunctionEntry, NotText
from ...machine._base import Machine
from ...regs import Regs, read_cstr
from ..patch.text import Text
from ..probe import Jprobe
from .locate import Location, locate

#: Bytes above the stack pointer that a guest mirror may overwrite: stack arguments are private copies (Linux: 64).
STACK_COPY = 512


def entry_hook(jp: Jprobe, machine: Machine, text: Text) -> Callable[[Jprobe, Regs], int]:
    """The pre-handler that runs jp's mirror.

    BadLocation where the entry is neither callable nor guest code; NotText or NotFunctionEntry where it is no guest function.
    """
    entry = jp.entry
    if isinstance(entry, str):
        symbol = machine.symbols[entry]
        entry = symbol.address | symbol.mode
    if isinstance(entry, int):
        _check_function(locate(machine, text, None, entry, 0), machine)
        return _guest_mirror(machine, entry)
    if not callable(entry):
        raise BadLocation("a jprobe needs entry=", symbol=jp.place(), hint="pass a Python function, or a guest symbol or address")
    return _python_mirror(entry)


def _check_function(place: Location, machine: Machine) -> None:
    if not machine.executable(place.address):
        raise NotText("a mirror must be guest code", address=place.address, hint="pass a guest function, or a Python one")
    if not place.entry:
        raise NotFunctionEntry("a mirror must be a function", address=place.address, hint="pass the function's own address or symbol")


def _guest_mirror(machine: Machine, target: int) -> Callable[[Jprobe, Regs], int]:
    def hook(jp: Jprobe, regs: Regs) -> int:
        sp = regs.sp
        size = _mapped(machine, sp)
        stack = machine.read(sp, size)
        try:
            machine.invoke(target)
        finally:
            machine.write(sp, stack)
        return 0

    return hook


def _mapped(machine: Machine, sp: int) -> int:
    from ...errors import GuestFault

    size = STACK_COPY
    while size:
        try:
            machine.read(sp, size)
            return size
        except GuestFault:
            size //= 2
    return 0


def _python_mirror(entry: Callable[..., Any]) -> Callable[[Jprobe, Regs], int]:
    try:
        parameters = inspect.signature(entry, eval_str=True).parameters.values()
    except (NameError, SyntaxError, TypeError, ValueError):
        parameters = inspect.signature(entry).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    converters = [_converter(p.annotation) for p in positional]

    def hook(jp: Jprobe, regs: Regs) -> int:
        entry(*[convert(regs, regs.arg(n)) for n, convert in enumerate(converters)])
        return 0

    return hook


def _converter(annotation: Any) -> Callable[[Regs, int], Any]:
    """How an argument word becomes what the annotation asks for: ctypes integers by width and sign, strings by pointer."""
    if annotation in (ctypes.c_char_p, bytes):
        return lambda regs, word: read_cstr(regs.machine, word) if word else None
    if annotation is str:
        return lambda regs, word: read_cstr(regs.machine, word).decode(errors="replace") if word else None
    if annotation is bool or annotation is ctypes.c_bool:
        return lambda regs, word: bool(word & 0xFF)
    if annotation is ctypes.c_void_p:
        return lambda regs, word: word
    if isinstance(annotation, type) and issubclass(annotation, ctypes._SimpleCData):
        make: Any = annotation
        return lambda regs, word: make(word).value
    return lambda regs, word: word
