"""What runs programs: an engine is made from verified code and run often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ..errors import ProgramError
from .call import Place
from .code import Code
from .host import HostEngine
from .interpreter import Interpreter


class Engine(Protocol):
    """Runs one program."""

    def run(self, context: bytes | bytearray, place: Place, printed: Callable[[str], None] = ...) -> int:
        """r0 at the end, unsigned. r1 is the context's address, r2 its length; behind it there are zeros up to CONTEXT_SIZE bytes."""


#: name -> engine, the best first, for code that was verified. Only the interpreter takes code that was not verified.
ENGINES: Final[dict[str, Callable[[Code], Engine]]] = {"interpreter": Interpreter, "host": HostEngine}


def engine(code: Code, name: str | None = None) -> Engine:
    """An engine by name; the best that there is, without one. ProgramError: there is none of this name here."""
    make = ENGINES.get(name) if name else next(iter(ENGINES.values()))
    if make is None:
        raise ProgramError(f"there is no engine {name!r} here", program=code.name, hint=f"use one of {', '.join(ENGINES)}")
    return make(code)
