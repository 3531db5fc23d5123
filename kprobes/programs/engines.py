"""What runs programs: an engine is made from verified code and run often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ..errors import ProgramError, Unsupported
from .call import Place
from .code import Code
from .host import HostEngine
from .interpreter import Interpreter


class Engine(Protocol):
    """Runs one program."""

    def run(self, context: bytes | bytearray, place: Place, printed: Callable[[str], None] = ...) -> int:
        """r0 at the end, unsigned.

        r1 is the context's address, r2 its length; behind it there are zeros up to CONTEXT_SIZE bytes.
        """


#: name -> engine, the best first. Only the interpreter takes code that was not verified.
ENGINES: Final[dict[str, Callable[[Code], Engine]]] = {"host": HostEngine, "interpreter": Interpreter}


def named(name: str, code: Code) -> Engine:
    """An engine by name. ProgramError: there is none of this name. Unsupported: not on this host."""
    check(name, code)
    return ENGINES[name](code)


def check(name: str | None, code: Code) -> None:
    """ProgramError: there is no engine of this name."""
    if name is not None and name not in ENGINES:
        raise ProgramError(f"there is no engine {name!r} here", program=code.name,
                           hint=f"use one of {', '.join(ENGINES)}")


def best(code: Code) -> Engine:
    """The best engine that there is for verified code."""
    for make in ENGINES.values():
        try:
            return make(code)
        except Unsupported:
            pass
    raise AssertionError("the interpreter runs everywhere")
