"""Machine code for the machine that runs Python: what serves the usual hit, and what the engine calls besides.

It is one small library a host, compiled from the C files here (build.py) and part of the package, so that nobody needs
a compiler. docs/host-code.md says what it does. Where there is none for the host, or KPROBES_HOST_CODE is "0", Python
does all of it: the same results, slower. Begin with words.h, then sites.c and hits.c.

support.c is what compiled eBPF programs call; support/ has the LLVM IR that clang makes of it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sysconfig
import warnings
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

SWITCH = "KPROBES_HOST_CODE"  #: "0" in the environment: no host code
HERE = Path(__file__).parent
_HOSTS = ("x86_64", "aarch64")

Class = TypeVar("Class", bound=type)


class SlowHost(RuntimeWarning):
    """No host code exists for this host: everything works, and hits cost eight to thirty times as much."""


@cache
def available() -> bool:
    """True where this process has the library. Warns once where it cannot have it (SlowHost), unless asked not to."""
    if os.environ.get(SWITCH) == "0":
        return False
    why = _why_not()
    if not why:
        try:
            _library()
        except OSError as error:
            why = f"the library cannot be loaded ({error})"
    if why:
        warnings.warn(f"no host code: {why}; all works, slower ({SWITCH}=0 says that you know)", SlowHost, stacklevel=2)
    return not why


def _why_not() -> str:
    """Why there can be no host code here; empty if there can."""
    host, system = platform.machine(), platform.system()
    if system != "Linux" or host not in _HOSTS:
        return f"there is none for {host} under {system}"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"this is a 32-bit process on {host}"
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "it is for CPython with a GIL"
    return ""


@cache
def _library() -> ctypes.PyDLL:
    """The library of this host. OSError where the system refuses to load it."""
    return ctypes.PyDLL(str(library_path(platform.machine())))


def library_path(host: str) -> Path:
    """The file of the library for a host, as platform.machine() calls it."""
    return HERE / f"{host}.so"


def support_path(bits: int, guest: bool, swapped: bool) -> Path:
    """The file of support.c's functions for a target.

    Args:
        bits: of a pointer: 32 or 64.
        guest: True where the code runs in a guest, False where it runs in this process.
        swapped: True where the program's byte order is not that of the memory that it runs in.
    """
    place = "guest" if guest else "host"
    return HERE / "support" / f"{place}{bits}{'-swapped' if swapped else ''}.ll"


@cache
def address(name: str) -> int:
    """Return where a function or an object of the library is. Only where available()."""
    return ctypes.addressof(ctypes.c_char.in_dll(_library(), name))


def function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of the library, to be called with the interpreter's lock held. Only where available().

    Args:
        name: as C has it.
        result: its type, of ctypes.
        arguments: theirs.
    """
    return ctypes.PYFUNCTYPE(result, *arguments)(address(name))


def words(name: str) -> dict[str, int]:
    """The words of one of the library's structures: name -> place, counted in words of 64 bits."""
    text = ctypes.c_char_p(address(f"{name}_words")).value or b""
    return {word: n for n, word in enumerate(text.decode().split())}


def quick(base: Class, kind: str) -> Class:
    """A subclass of a class whose objects are looked at on every hit, with what is looked at in words of C.

    Args:
        base: the class in Python, complete by itself.
        kind: which words: "regs" (of Regs), "instance" (of KretprobeInstance) or "block" (of ControlBlock).

    Returns:
        A class of the same name, or `base` itself where there is no host code.
    """
    return _made(base, kind) if available() else base


@cache
def _made(base: Class, kind: str) -> Class:
    make = _library().make_type
    make.argtypes = ctypes.py_object, ctypes.py_object, ctypes.c_char_p, ctypes.c_char_p
    make.restype = ctypes.py_object
    name = f"{base.__module__}.{base.__qualname__}".encode()
    _names.append(name)
    made: Class = make((base,), base, name, kind.encode())
    return made


_names: list[bytes] = []  # before 3.11 types keep the pointer


def see(regs: Any, view: int) -> None:
    """Have a quick() Regs read its registers by the words at `view` (struct view), which the caller keeps."""
    _library().see(ctypes.py_object(regs), ctypes.c_void_p(view))


