"""Programs, as users see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import ProgramError
from .code import Code
from .engines import Engine, engine
from .isa import Instruction, Order
from .linker import link
from .maps import Map
from .nowhere import Nowhere


class Program:
    """One probe program.

    Attributes:
        name: of its entry function. section: where the object says it belongs, or "". code: its instructions.
        maps: name -> map; without a name, its index as text.
        printed: the lines of trace_printk in test runs.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        self.name, self.section = code.name, code.section
        self.maps: Mapping[str, Map] = {m.name or str(number): m for number, m in enumerate(code.maps)}
        self.printed: list[str] = []
        self._engines: dict[str | None, Engine] = {}

    @classmethod
    def from_instructions(cls, raw: bytes | Iterable[Instruction], maps: Mapping[int | str, Map] | None = None, name: str = "main",
                          order: Order = "little") -> Program:
        """A program of instructions: bytes of 8 for each slot in byte order `order`, or isa.Instruction.

        maps: file descriptor -> map for LDDW's MAP_FD, and the maps in their order for LDDW's MAP.
        ProgramError: not whole instructions, or a map that is not there.
        """
        return cls(link(raw, maps or {}, name, order))

    def run(self, ctx: bytes | bytearray = b"", engine: str | None = None) -> int:
        """A test run, without a guest: r0 at its end, unsigned 64 bits.

        ctx: the memory that r1 points at (r2 is its size), with zeros behind it; a bytearray may be written by the program.
        engine: "interpreter", "host"; None: the best there is.
        ProgramError: the program does what it may not do, or there is no such engine.
        """
        return self.engine(engine).run(ctx, Nowhere(), self._print())

    def engine(self, name: str | None = None) -> Engine:
        """What runs this program; made once."""
        made = self._engines.get(name)
        if made is None:
            made = self._engines[name] = engine(self.code, name)
        return made

    def _print(self) -> Callable[[str], Any]:
        return self.printed.append

    def __repr__(self) -> str:
        return f"<Program {self.name}{f' {self.section}' if self.section else ''}, {len(self.code.instructions)} instructions>"


__all__ = ["Program", "ProgramError"]
