"""Jprobes: the entry hook, which calls the mirror with the probed function's arguments.

A mirror is the handler of a jprobe: a Python or guest function with the probed function's
parameters. The hook runs at the function's entry, as a pre-handler.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from functools import partial
from itertools import count
from operator import methodcaller
from typing import Any

from ...arch._base import Arch
from ...errors import BadLocation, NotFunctionEntry, NotText, Unsupported
from ...machine._base import Machine
from ...regs import Regs, read_cstr, top_of_stack
from ..patch.text import Text
from ..probe import Jprobe
from .locate import Location, locate

Convert = Callable[[Regs, int], Any]  #: (registers, argument word) -> what the mirror gets
Argument = Callable[[Regs], Callable[[], Any]]  #: (a CPU's registers) -> a function that reads it
STRINGS = (ctypes.c_char_p, bytes, str)  # annotations of arguments that point to a string
INTEGERS = "bBhHiIlLqQ"  # type codes of ctypes
FLOATING = "fdg"


def entry_hook(jp: Jprobe, machine: Machine, text: Text) -> Callable[[Jprobe, Regs], int]:
    """Return the pre-handler that runs a jprobe's mirror.

    Args:
        jp: the jprobe; its `entry` is the mirror.
        machine: runs the guest.
        text: reads guest text without breakpoints.

    Returns:
        (jprobe, regs) -> 0, as a pre-handler is called.

    Raises:
        BadLocation: the mirror is neither callable nor guest code, or its address has mode bits
            that are not those of the code.
        NotText, NotFunctionEntry: it is guest memory, but no function.
        UnknownSymbol, AmbiguousSymbol: it is text that does not name one symbol.
        Unsupported: it is a Python function, and an argument cannot be read as its annotation says,
            or a parameter has neither place nor default.
    """
    entry = jp.entry
    if isinstance(entry, str):
        symbol = machine.symbols[entry]
        entry = symbol.address | symbol.mode
    if isinstance(entry, int):
        _check_function(locate(machine, text, None, entry, 0), machine)
        return _guest_mirror(machine, entry)
    if not callable(entry):
        raise BadLocation(
            "a jprobe needs entry=",
            symbol=jp.place(),
            hint="pass a Python function, or a guest symbol or address",
        )
    return _python_mirror(entry, machine)


def _check_function(place: Location, machine: Machine) -> None:
    """Check that a guest mirror is a function.

    Args:
        place: where the mirror is.
        machine: runs the guest.

    Raises:
        NotText: the guest cannot execute the memory there.
        NotFunctionEntry: it is inside a function.
    """
    if not machine.executable(place.address):
        raise NotText(
            "a mirror must be guest code",
            address=place.address,
            hint="pass a guest function, or a Python one",
        )
    if not place.entry:
        raise NotFunctionEntry(
            "a mirror must be a function",
            address=place.address,
            hint="pass the function's own address or symbol",
        )


def _guest_mirror(machine: Machine, target: int) -> Callable[[Jprobe, Regs], int]:
    """Return the hook that calls a guest function as a mirror: (jprobe, regs) -> 0.

    Args:
        machine: runs the guest.
        target: the function's address, mode bits included.
    """

    def hook(jp: Jprobe, regs: Regs) -> int:
        """Run the mirror, then put back the registers and the top of the stack; return 0.

        Args:
            jp: the jprobe; it is not used.
            regs: the registers at the probed function's entry.
        """
        sp, stack = top_of_stack(regs, machine.read)
        try:
            machine.invoke(target)
        finally:
            machine.write(sp, stack)
        return 0

    return hook


def _python_mirror(entry: Callable[..., Any], machine: Machine) -> Callable[[Jprobe, Regs], int]:
    """Return the hook that calls a Python function with the probed function's first arguments: one
    for each positional parameter. Parameters that only a keyword gives keep their defaults.

    Args:
        entry: the mirror. Parameters' annotations say how arguments are converted.
        machine: runs the guest.

    Returns:
        (jprobe, regs) -> 0. What the mirror raises is raised; what it changes in `regs` and at the
        top of the stack is put back.

    Raises:
        Unsupported: an argument cannot be read as its annotation says, or a parameter that only a
            keyword gives has no default.
    """
    try:
        parameters = inspect.signature(entry, eval_str=True).parameters.values()
    except (NameError, SyntaxError, TypeError, ValueError):
        parameters = inspect.signature(entry).parameters.values()
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise Unsupported(
                f"the mirror's parameter {p.name} gets no argument: arguments have no names",
                hint="give it a default, or put it in front of the *",
            )
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
    """Return the hook that calls a Python mirror on one CPU: (jprobe, regs) -> 0.

    Args:
        entry: the mirror.
        arguments: functions that read its arguments on that CPU.
    """

    def hook(jp: Jprobe, regs: Regs) -> int:
        """Run the mirror, then put back the registers and the top of the stack; return 0.

        Args:
            jp: the jprobe; it is not used.
            regs: the registers at the probed function's entry.
        """
        regs.on_copies(entry, [read() for read in arguments] if arguments else ())
        return 0

    return hook


def _arguments(annotations: list[Any], arch: Arch) -> list[Argument]:
    """Return functions that read the arguments of a mirror, one for each parameter.

    Args:
        annotations: those of the mirror's parameters.
        arch: the guest's. It may pass pointers in other registers than integers (Abi.pointers).

    Returns:
        For each: (a CPU's registers) -> () -> the argument, converted as its annotation says.

    Raises:
        Unsupported: an argument cannot be read.
    """
    apart = arch.abi.pointers if arch.abi is not None else ()
    out = []
    integers = count()
    pointers = iter(apart)
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
        out.append(_converted(convert, partial(_reader, register)))
    return out


def _reader(register: str, regs: Regs) -> Callable[[], int]:
    """Return the function that reads a register on a CPU."""
    return regs.accessors(register)[0]


def _converted(convert: Convert | None, argument: Argument) -> Argument:
    """Return a reader of an argument that converts what another reader reads.

    Args:
        convert: (regs, word) -> what the mirror gets; None: `argument` itself is returned.
        argument: (a CPU's registers) -> a function that reads the word.
    """
    if convert is None:
        return argument

    def converted(regs: Regs) -> Callable[[], Any]:
        """Return the function that reads and converts the argument on a CPU."""
        read = argument(regs)
        return lambda: convert(regs, read())

    return converted


def _is_pointer(annotation: Any) -> bool:
    """Return True if an annotation means a pointer: a string's, a ctypes pointer's or c_void_p."""
    return (
        annotation in STRINGS
        or getattr(annotation, "_type_", None) == "P"
        or (isinstance(annotation, type) and issubclass(annotation, ctypes._Pointer))
    )


def _converter(annotation: Any, arch: Arch) -> Convert | None:
    """Return the function that converts an argument word as an annotation asks for.

    Integers of ctypes are cut to their width, with their sign; strings are read where the word
    points to (None for a null pointer); a bool is whether the word's lowest byte is not 0.
    Annotations of other kinds, and c_void_p, leave the word as it is.

    Args:
        annotation: of the mirror's parameter.
        arch: the guest's.

    Returns:
        (regs, word) -> what the mirror gets; None: the word is passed as it is.

    Raises:
        Unsupported: the annotation is of something that is not passed as one integer word.
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
        bits = 8 * ctypes.sizeof(annotation)
        if bits > arch.bits:
            raise Unsupported(
                f"{annotation.__name__} has {bits} bits here, and an argument word of {arch.name} "
                f"{arch.bits}",
                hint="take its words as arguments of their own, c_uint32 each",
            )
        make: Any = annotation
        return lambda regs, word: make(word).value
    if simple or (
        isinstance(annotation, type)
        and issubclass(annotation, ctypes.Structure | ctypes.Union | ctypes.Array)
    ):
        raise Unsupported(
            f"{annotation.__name__} is not passed as an integer is",
            hint="take its words, or a pointer to it as c_void_p",
        )
    return None


def _string(regs: Regs, word: int, decode: bool) -> bytes | str | None:
    """Return the string that a word points to; None for a null pointer.

    Args:
        regs: the registers at the hit.
        word: address of the string in guest memory; it ends with a NUL.
        decode: True: return str (UTF-8); False: bytes.
    """
    text = read_cstr(regs.machine, word) if word else None
    return text.decode(errors="replace") if decode and text is not None else text
