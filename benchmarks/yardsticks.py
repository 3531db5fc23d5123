"""Hooks of the engine's beside those of its Python binding: what a hit costs whoever takes more trouble.

- by ctypes: a callback of ctypes' own, and registers by the engine's C function, called by ctypes;
- through the C API: a function of Python's that C code calls, with the arguments that it has read;
- in C: no Python at all.

The last two need a C compiler: cc, or the package ziglang.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import unicorn
from unicorn import unicorn_const as const

from kprobes.machine.unicorn import engine

SOURCE = Path(__file__).with_suffix(".c")
CODE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class NoCompiler(Exception):
    """There is none, or it fails; says which."""


class About(ctypes.Structure):
    """struct about of yardsticks.c."""

    _fields_ = (*((name, ctypes.c_void_p) for name in ("read_register", "read_memory", "ensure", "release", "call",
                                                       "number", "forget", "handler")),
                ("first", ctypes.c_int), ("second", ctypes.c_int), ("stack", ctypes.c_int), ("above", ctypes.c_uint64),
                ("size", ctypes.c_uint64), ("hits", ctypes.c_uint64), ("seen", ctypes.c_uint64))


def compiler() -> list[str]:
    """The words that begin a compiler's command. Raises NoCompiler."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoCompiler("no C compiler: install cc, or the package ziglang")


@cache
def library() -> ctypes.CDLL:
    """yardsticks.c, compiled for this process. Raises NoCompiler."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "yardsticks.so")
        command = [*compiler(), "-O2", "-shared", "-fPIC", "-o", str(made), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoCompiler(f"{command[0]} fails: {(done.stderr.splitlines() or ['it says nothing'])[0]}")
        return ctypes.CDLL(str(made))  # the file may go: it is mapped


@cache
def unicorn_library() -> ctypes.PyDLL:
    """The engine's own functions, without types of arguments: the ones that are passed are made before."""
    return ctypes.PyDLL(engine.library()._name)


def address_of(function: Any) -> int:
    """Where a function of ctypes lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def in_c(name: str, registers: tuple[int, int], above: int, size: int, handler: Callable[..., object] | None = None,
         stack: int = 0) -> int:
    """The address of a hook of yardsticks.c, made ready. Raises NoCompiler.

    Args:
        name: c_empty, c_atomic, c_two, c_record, c_entered, c_returning, api_empty or api_two.
        registers: the engine's numbers of the arguments' registers; of the stack pointer and -1 where arguments are on
            the stack.
        above: bytes from the stack pointer to the first argument there.
        size: bytes of an argument there.
        handler: of the hooks through the C API. The caller keeps it.
        stack: the engine's number of the stack pointer, for those that look at it.
    """
    made, python = library(), ctypes.pythonapi
    about = About.in_dll(made, "about")
    about.read_register = address_of(unicorn_library().uc_reg_read)
    about.read_memory = address_of(unicorn_library().uc_mem_read)
    about.ensure, about.release = address_of(python.PyGILState_Ensure), address_of(python.PyGILState_Release)
    call = getattr(python, "PyObject_Vectorcall", None)
    if call is None and handler is not None:
        raise NoCompiler("Python 3.10 exports no PyObject_Vectorcall, which hooks through the C API call")
    about.call = 0 if call is None else address_of(call)
    about.number, about.forget = address_of(python.PyLong_FromUnsignedLongLong), address_of(python.Py_DecRef)
    about.handler = id(handler)  # an object's address, in CPython
    about.first, about.second = registers
    about.stack = stack
    about.above, about.size, about.hits = above, size, 0
    return address_of(getattr(made, name))


def hits() -> int:
    """How often hooks of yardsticks.c have been called since in_c()."""
    return int(About.in_dll(library(), "about").hits)


def by_ctypes(uc: unicorn.Uc, read: Callable[[], object] | None) -> Any:
    """A callback for UC_HOOK_CODE. read: what it does; None: nothing. The caller keeps it."""
    return CODE((lambda handle, address, size, data: None) if read is None
                else (lambda handle, address, size, data: read()))


def reader(uc: unicorn.Uc, registers: tuple[int, int], above: int, size: int) -> Callable[[], object]:
    """Reads two arguments by ctypes: see in_c() for the parameters."""
    read, memory = unicorn_library().uc_reg_read, unicorn_library().uc_mem_read
    handle, first, second = ctypes.c_void_p(uc._uch.value), ctypes.c_int(registers[0]), ctypes.c_int(registers[1])
    values = (ctypes.c_uint64 * 2)()
    one, other = ctypes.byref(values), ctypes.byref(values, 8)

    def of_registers() -> object:
        read(handle, first, one)
        read(handle, second, other)
        return values[0], values[1]

    words = ctypes.create_string_buffer(2 * size)

    def of_the_stack() -> object:
        read(handle, first, one)
        memory(handle, ctypes.c_uint64(values[0] + above), words, ctypes.c_size_t(2 * size))
        return words.raw

    return of_registers if registers[1] >= 0 else of_the_stack


def add(uc: unicorn.Uc, hook: Any, address: int) -> Callable[[], None]:
    """Add a hook at an address, by its ctypes callback or by its own address; what is returned deletes it."""
    own, handle, kind = unicorn_library(), ctypes.c_size_t(), ctypes.c_int(const.UC_HOOK_CODE)
    function = ctypes.c_void_p(hook) if isinstance(hook, int) else ctypes.cast(hook, ctypes.c_void_p)
    where = ctypes.c_uint64(address)
    error = own.uc_hook_add(uc._uch, ctypes.byref(handle), kind, function, None, where, where)
    if error:
        raise unicorn.UcError(error)

    def delete() -> None:
        own.uc_hook_del(uc._uch, handle)

    return delete
