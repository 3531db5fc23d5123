"""Mirrored-argument probes: the entry hook of a jprobe calls the mirror with the probed function's
arguments.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from itertools import count
from operator import methodcaller
from typing import Any

from ...arch._base import Arch
from ...errors import BadLocation, GuestFault, NotFunctionEntry, NotText, Unsupported
from ...machine._base import Machine
from ...regs import Regs, read_cstr
from ..patch.text import Text
from ..probe import Jprobe
from .locate import Location, locate

Convert = Callable[[Regs, int], Any]
Argument = Callable[[Regs], Callable[[], Any]]  #: what reads it on a CPU
STRINGS = (ctypes.c_char_p, bytes, str)
INTEGERS, FLOATING = "bBhHiIlLqQ", "fdg"  # ctypes' letters
#: Bytes above the stack pointer that a guest mirror may overwrite: stack arguments are private
#: copies (Linux: 64).
STACK_COPY = 512


def entry_hook(jp: Jprobe, machine: Machine, text: Text) -> Callable[[Jprobe, Regs], int]:
    """Return the pre-handler that runs jp's mirror.

    BadLocation where the entry is neither callable nor guest code; NotText or NotFunctionEntry
    where it is no guest function.
    """
    entry = jp.entry
    if isinstance(entry, str):
        symbol = machine.symbols[entry]
        entry = symbol.address | symbol.mode
    if isinstance(entry, int):
        _check_function(locate(machine, text, None, entry, 0), machine)
        return _guest_mirror(machine, entry)
    if not callable(entry):
        raise BadLocation("a jprobe needs entry=", symbol=jp.place(),
                          hint="pass a Python function, or a guest symbol or address")
    return _python_mirror(entry, machine)


def _check_function(place: Location, machine: Machine) -> None:
    if not machine.executable(place.address):
        raise NotText("a mirror must be guest code", address=place.address,
                      hint="pass a guest function, or a Python one")
    if not place.entry:
        raise NotFunctionEntry("a mirror must be a function", address=place.address,
                               hint="pass the function's own address or symbol")


def _guest_mirror(machine: Machine, target: int) -> Callable[[Jprobe, Regs], int]:
    def hook(jp: Jprobe, regs: Regs) -> int:
        sp, stack = _top_of_stack(machine, regs)
        try:
            machine.invoke(target)
        finally:
            machine.write(sp, stack)
        return 0

    return hook


def _top_of_stack(machine: Machine, regs: Regs) -> tuple[int, bytes]:
    """Of the callers' stack a guest mirror has a copy: where it is, and the bytes; fewer where
    mapped memory ends.
    """
    sp, size = regs.sp, STACK_COPY
    while size:
        try:
            start = sp if machine.arch.callers > 0 else sp - size
            return start, machine.read(start, size)
        except GuestFault:
            size //= 2
    return sp, b""


def _python_mirror(entry: Callable[..., Any], machine: Machine) -> Callable[[Jprobe, Regs], int]:
    try:
        parameters = inspect.signature(entry, eval_str=True).parameters.values()
    except (NameError, SyntaxError, TypeError, ValueError):
        parameters = inspect.signature(entry).parameters.values()
    arguments = _arguments(
        [
            p.annotation
            for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ],
        machine.arch,
    )
    hooks = [_hook(entry, [argument(regs) for argument in arguments]) for regs in machine.cpu_regs]
    return hooks[0] if len(hooks) == 1 else lambda jp, regs: hooks[regs.cpu](jp, regs)


def _hook(
    entry: Callable[..., Any], arguments: list[Callable[[], Any]]
) -> Callable[[Jprobe, Regs], int]:
    """Return the hook of one CPU, with what never changes looked up beforehand."""

    def hook(jp: Jprobe, regs: Regs) -> int:
        regs.on_copies(entry, [read() for read in arguments] if arguments else ())
        return 0

    return hook


def _arguments(annotations: list[Any], arch: Arch) -> list[Argument]:
    """Return what reads each argument. Pointers may be counted apart from integers (Abi.pointers)."""
    apart = arch.abi.pointers if arch.abi is not None else ()
    out, integers, pointers = [], count(), iter(apart)
    for annotation in annotations:
        convert = _converter(annotation, arch)
        if not apart or not _is_pointer(annotation):
            out.append(_converted(convert, methodcaller("argument", next(integers))))
            continue
        register = next(pointers, None)
        if register is None:
            raise Unsupported(
                f"the mirror takes more pointers than {arch.name} passes in registers",
                hint="leave the last of them out",
            )
        out.append(_converted(convert, lambda regs, at=register: regs.accessors(at)[0]))  # type: ignore[misc]
    return out


def _converted(convert: Convert | None, argument: Argument) -> Argument:
    if convert is None:
        return argument

    def converted(regs: Regs) -> Callable[[], Any]:
        read = argument(regs)
        return lambda: convert(regs, read())

    return converted


def _is_pointer(annotation: Any) -> bool:
    return annotation in STRINGS or getattr(annotation, "_type_", None) == "P" or (
        isinstance(annotation, type) and issubclass(annotation, ctypes._Pointer))


def _converter(annotation: Any, arch: Arch) -> Convert | None:
    """How an argument word becomes what the annotation asks for: ctypes integers by width and sign,
    strings by pointer. None: as it is.

    Raises Unsupported for what is not passed as one integer word.
    """
    if annotation in STRINGS:
        decode = annotation is str
        return lambda regs, word: _string(regs, word, decode)
    if annotation is bool or annotation is ctypes.c_bool:
        return lambda regs, word: bool(word & 0xFF)
    simple = isinstance(annotation, type) and issubclass(annotation, ctypes._SimpleCData)
    if annotation is float or annotation is complex or (simple and annotation._type_ in FLOATING):
        raise Unsupported(
            f"{annotation.__name__}: floating-point arguments are not passed as integers are",
            hint="use a kprobe and read the register by its name",
        )
    if simple and annotation._type_ == "P":
        return None
    if simple and annotation._type_ in INTEGERS:
        if 8 * ctypes.sizeof(annotation) > arch.bits:
            raise Unsupported(
                f"{annotation.__name__} has {8 * ctypes.sizeof(annotation)} bits here, and an argument "
                f"word of {arch.name} {arch.bits}",
                hint="take its words as arguments of their own, c_uint32 each",
            )
        make: Any = annotation
        return lambda regs, word: make(word).value
    if simple or (
        isinstance(annotation, type)
        and issubclass(annotation, ctypes.Structure | ctypes.Union | ctypes.Array)
    ):
        raise Unsupported(f"{annotation.__name__} is not passed as an integer is",
                          hint="take its words, or a pointer to it as c_void_p")
    return None


def _string(regs: Regs, word: int, decode: bool) -> bytes | str | None:
    text = read_cstr(regs.machine, word) if word else None
    return text.decode(errors="replace") if decode and text is not None else text
