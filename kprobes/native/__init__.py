"""Host code: C functions that the engine calls in this process, above all to serve usual hits.

It is one small shared library for each host, compiled from the C files here (build.py). The
libraries are part of the package, so users need no compiler. docs/host-code.md says what they do.
Where there is none for the host, or KPROBES_HOST_CODE is "0", Python does the same, more slowly.
Begin with words.h, then sites.c and hits.c.

support.c is another thing: functions that compiled eBPF programs call. support/ has the LLVM IR
that clang makes of it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sysconfig
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

#: In the environment, "0": no host code; "1": also where it was built and never run.
SWITCH = "KPROBES_HOST_CODE"
HERE = Path(__file__).parent
_HOSTS = ("x86_64", "aarch64")
#: Operating system, as platform.system() calls it -> end of the library's name there. Of these, the
#: library has run under Linux only: elsewhere SWITCH has to be "1".
_ENDINGS = {"Linux": ".so", "Darwin": ".dylib", "Windows": ".dll"}
#: Processor, as macOS and Windows call it -> as Linux does.
_AS_LINUX_CALLS_IT = {"arm64": "aarch64", "ARM64": "aarch64", "AMD64": "x86_64"}

Class = TypeVar("Class", bound=type)


class SlowHost(RuntimeWarning):
    """A warning: this host has no host code. All works, but hits cost 8 to 30 times as much."""


@cache
def available() -> bool:
    """Return True if this process can use the library of host code; found out once.

    Where it cannot, the warning SlowHost is given, unless KPROBES_HOST_CODE is "0".
    """
    if os.environ.get(SWITCH) == "0":
        return False
    why = _why_not()
    if not why:
        try:
            _library()
        except OSError as error:
            why = f"the library cannot be loaded ({error})"
    if why:
        warnings.warn(
            f"no host code: {why}; all works, slower ({SWITCH}=0 says that you know)",
            SlowHost,
            stacklevel=2,
        )
    return not why


def _why_not() -> str:
    """Return why this process can have no host code, as a clause; "": it can."""
    host, system = host_name(), platform.system()
    path = library_path(host, system)
    if host not in _HOSTS or not path.exists():
        if system == "Linux" and host in _HOSTS:
            return f"this installation is without it: it has no {path.name}"
        return f"there is none for {host} under {system}"
    if system != "Linux" and os.environ.get(SWITCH) != "1":
        return f"it was never run under {system}, only built: {SWITCH}=1 tries it"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"this is a 32-bit process on {host}"
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "it is for CPython with a GIL"
    return ""


@cache
def _library() -> ctypes.PyDLL:
    """Load the library of this host, once, and return it.

    Raises:
        OSError: the system refuses to load it.
    """
    return ctypes.PyDLL(str(library_path(host_name(), platform.system())))


def host_name() -> str:
    """Return the name of this host's architecture, as Linux calls it: "x86_64"."""
    machine = platform.machine()
    return _AS_LINUX_CALLS_IT.get(machine, machine)


def library_path(host: str, system: str = "Linux") -> Path:
    """Return the path of the library for a host; there need not be one.

    Args:
        host: the host's architecture, as Linux calls it: "x86_64".
        system: its operating system, as platform.system() calls it: "Linux".
    """
    return HERE / f"{host}{_ENDINGS.get(system, '.so')}"


def support_path(bits: int, guest: bool, swapped: bool) -> Path:
    """Return the path of the LLVM IR of support.c's functions for a kind of target.

    Args:
        bits: width of a pointer in bits, 32 or 64.
        guest: True where the code runs in a guest, False where it runs in this process.
        swapped: True where the program's byte order is not that of the memory that it runs in.
    """
    place = "guest" if guest else "host"
    return HERE / "support" / f"{place}{bits}{'-swapped' if swapped else ''}.ll"


@cache
def address(name: str) -> int:
    """Return the address in this process of a function or variable of the library.

    To be called only where available().

    Args:
        name: its name in C.

    Raises:
        ValueError: the library has none of that name.
    """
    return ctypes.addressof(ctypes.c_char.in_dll(_library(), name))


def function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the library for Python to call; calls keep the interpreter's lock.

    To be called only where available().

    Args:
        name: its name in C.
        result: the ctypes type of its result.
        arguments: the ctypes types of its arguments.

    Raises:
        ValueError: the library has none of that name.
    """
    return _prototype(result, *arguments)(address(name))


@cache
def _prototype(result: Any, *arguments: Any) -> Any:
    """Return the type of the functions of these arguments: ctypes makes a new class each time."""
    return ctypes.PYFUNCTYPE(result, *arguments)


@cache
def words(name: str) -> Mapping[str, int]:
    """Return the layout of one of the library's structures: member -> its index in 64-bit words.

    To be called only where available().

    Args:
        name: the structure's name in C.
    """
    text = ctypes.c_char_p(address(f"{name}_words")).value or b""
    return {word: n for n, word in enumerate(text.decode().split())}


def quick(base: Class, kind: str) -> Class:
    """Return a quicker subclass, made in C, of a class whose objects are used on every hit.

    Attributes that the C code uses are members of a C structure in the objects.

    Args:
        base: the class in Python, complete by itself.
        kind: name of that structure: "regs" (for Regs), "instance" (for KretprobeInstance) or
            "block" (for ControlBlock).

    Returns:
        A class of the same name; `base` itself where there is no host code.
    """
    return _made(base, kind) if available() else base


@cache
def _made(base: Class, kind: str) -> Class:
    """Make the quicker subclass of a class in C; once for each class and structure.

    Args:
        base: the class in Python.
        kind: name of the C structure: "regs", "instance" or "block".
    """
    make = _library().make_type
    make.argtypes = ctypes.py_object, ctypes.py_object, ctypes.c_char_p, ctypes.c_char_p
    make.restype = ctypes.py_object
    name = f"{base.__module__}.{base.__qualname__}".encode()
    _names.append(name)
    made: Class = make((base,), base, name, kind.encode())
    return made


_names: list[bytes] = []  # names of classes: before Python 3.11 a class keeps a pointer to its name


def see(regs: Any, view: int) -> None:
    """Have a Regs object read its registers from the engine's memory from now on.

    Args:
        regs: an object of the class that quick() made of Regs.
        view: host address of a `struct view`, which says where registers are; the caller keeps it
            alive.
    """
    _library().see(ctypes.py_object(regs), ctypes.c_void_p(view))
