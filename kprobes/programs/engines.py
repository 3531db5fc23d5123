"""The engines that run programs: each is made from verified code and run often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ..errors import ProgramError, Unsupported
from .call import RunPlace
from .code import CONTEXT_SIZE, Code
from .host import HostEngine
from .interpreter import Interpreter

if TYPE_CHECKING:
    from .verifier import Facts


class ProgramEngine(Protocol):
    """Runs one program."""

    def run(
        self, context: bytes | bytearray, place: RunPlace, printed: Callable[[str], None] = ...
    ) -> int:
        """Run the program.

        r1 is the context's address, r2 its length; behind it there are zeros up to CONTEXT_SIZE
        bytes.

        Args:
            context: the context; a bytearray is written back.
            place: where it runs, for helpers.
            printed: called with each line of trace_printk.

        Returns:
            r0 at the end, unsigned.
        """


#: name -> engine, the best first. Only the interpreter takes code that was not verified.
ENGINES: Final[dict[str, Callable[[Code, Facts | None, int], ProgramEngine]]] = {
    "host": HostEngine,
    "interpreter": lambda code, facts, size: Interpreter(code, facts),
}


def named(name: str, code: Code, facts: Facts | None, size: int = CONTEXT_SIZE) -> ProgramEngine:
    """Make an engine by its name.

    Args:
        name: one of ENGINES.
        code: the program.
        facts: findings of the verifier; None: the program was not verified.
        size: bytes of the largest context.

    Raises:
        ProgramError: there is no engine of this name; or host code is asked for, `facts` is None,
            and the program is not safe.
        Unsupported: the engine does not run on this host, or not this program.
    """
    check(name, code)
    return ENGINES[name](code, facts, size)


def check(name: str | None, code: Code) -> None:
    """Check that there is an engine of this name, or that the name is None.

    Args:
        name: the engine's name.
        code: the program, for the error.

    Raises:
        ProgramError: there is no such engine.
    """
    if name is not None and name not in ENGINES:
        raise ProgramError(
            f"there is no engine {name!r} here",
            program=code.name,
            hint=f"use one of {', '.join(ENGINES)}",
        )


def best(code: Code, facts: Facts | None, size: int = CONTEXT_SIZE) -> tuple[ProgramEngine, str]:
    """Make the best engine that there is for verified code.

    Args:
        code: the program.
        facts: what the verifier has found out.
        size: bytes of the largest context.

    Returns:
        (the engine, why it is the interpreter and not host code, as one clause; "" for host code).
    """
    why = ""
    for make in ENGINES.values():
        try:
            return make(code, facts, size), why
        except Unsupported as error:
            why = why or error.reason
    raise AssertionError("the interpreter runs everywhere")
