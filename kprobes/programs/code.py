"""A program ready to be verified and run: what loaders make, and verifier, interpreter and
compilers read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from attrs import field, frozen

from ..errors import ProgramError, Unsupported
from .disassembly import disassemble
from .isa import Instruction, Order
from .maps import Map

#: bytes of a context: engines give every program this much memory at r1, zeroed behind what there
#: is
CONTEXT_SIZE: Final = 1024


@frozen
class CodeLine:
    """A line of source.

    Attributes:
        file: name of the source file.
        number: the line's number, from 1.
        column: number of the column, from 1; 0: unknown.
        text: the line itself.
        end: column behind the part of the line that the instructions are made of; 0: unknown.
    """

    file: str
    number: int
    column: int
    text: str
    end: int = 0

    @property
    def word(self) -> str:
        """The part of the line that the instructions are made of; "": it is not known."""
        return self.text[self.column - 1 : self.end - 1] if self.end else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text.strip()}"


class NotCompiled(Unsupported):
    """A program that cannot be compiled, because of some of its instructions.

    Attributes:
        lines: source lines of these instructions, without repetitions; empty where the program has
            no lines.
    """

    def __init__(self, reason: str, lines: tuple[CodeLine, ...], hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.lines = lines


class Asked(IntEnum):
    """Kinds of TypeRelocation: which number about the guest's types is asked for, as Linux counts
    them.
    """

    OFFSET = 0
    SIZE = 1
    EXISTS = 2
    SIGNED = 3
    LSHIFT = 4
    RSHIFT = 5
    LOCAL_ID = 6
    TARGET_ID = 7
    TYPE_EXISTS = 8
    TYPE_SIZE = 9
    VALUE_EXISTS = 10
    VALUE = 11
    MATCHES = 12


@frozen
class TypeRelocation:
    """A number of an instruction that depends on the guest's types (CO-RE).

    Attributes:
        kind: which number.
        type: the type that it begins at, as C writes it: `struct task_struct`.
        index: element of an array that this type is taken for; usually 0.
        path: the way from that type on: names of members, numbers of elements.
        local: the number by the object's own types; None: it has none.
        size: bytes of what the path leads to, in the object's own types.
    """

    kind: Asked
    type: str
    index: int
    path: tuple[str | int, ...]
    local: int | None
    size: int

    def __str__(self) -> str:
        return self.type + "".join(
            f"[{one}]" if isinstance(one, int) else f".{one}" for one in self.path
        )


@frozen(eq=False)  # its maps would be compared entry by entry
class Code:
    """A program with all that it calls.

    Attributes:
        name: name of its entry function.
        section: name of the object's section that has it, or "".
        instructions: one for each slot, entry function first, then each function that is
            called locally, once. Linked: calls are of kind HELPER or LOCAL, LDDW of kind
            VALUE64, CODE, MAP or MAP_VALUE.
        maps: what LDDW's MAP and MAP_VALUE count.
        functions: first slot -> name, of each function; 0 is the entry. A function ends
            where the next begins.
        lines: slot -> source line from there on, where the object has them.
        names: registers that the program names, as "arm64_x19": it is for that architecture.
        foreign: what it takes its context for, where that is a kernel's registers: "x86's
            struct pt_regs"; or "".
        members: offset -> member of that structure, as `di` or `regs[3]`.
        relocations: slot -> what its number is of the guest's types; see
            programs.relocations.
        numbers_read: True where members are read as numbers of the guest's, by
            <kprobes/bpf.h>; else as bytes.
        unknown: slots of calls of something that does not exist on any guest.
        missing: slot -> why the guest does not have what the instruction there would read or call.
        license: the license that the object names.
        order: byte order of the memory that its instructions access.
    """

    name: str
    instructions: tuple[Instruction, ...]
    maps: tuple[Map, ...] = ()
    section: str = ""
    functions: Mapping[int, str] = field(factory=lambda: {0: "main"})
    lines: Mapping[int, CodeLine] = field(factory=dict)
    names: frozenset[str] = frozenset()
    foreign: str = ""
    members: Mapping[int, str] = field(factory=dict)
    relocations: Mapping[int, TypeRelocation] = field(factory=dict)
    numbers_read: bool = False
    unknown: frozenset[int] = frozenset()
    missing: Mapping[int, str] = field(factory=dict)
    license: str = "GPL"
    order: Order = "little"

    def line(self, pc: int) -> CodeLine | None:
        """Return the source line of a slot: of the nearest before it in the same function.

        Returns:
            None: the function has no lines up to there.
        """
        start = max((s for s in self.functions if s <= pc), default=0)
        at = max((s for s in self.lines if start <= s <= pc), default=None)
        return None if at is None else self.lines[at]

    def not_compiled(self, reason: str, slots: Iterable[int], hint: str = "") -> NotCompiled:
        """Return an error that says which instructions cannot be compiled.

        Args:
            reason: why not, as a clause.
            slots: the instructions.
            hint: what to do.
        """
        lines = [line for pc in slots if (line := self.line(pc)) is not None]
        return NotCompiled(reason, tuple(dict.fromkeys(lines)), hint)

    def error(self, reason: str, pc: int | None = None, hint: str = "") -> ProgramError:
        """Return an error about this program.

        Args:
            reason: what is wrong, as a clause.
            pc: slot of the instruction, which the error then shows, with its source line; None: of
                no one.
            hint: what to do.
        """
        inside = pc is not None and 0 <= pc < len(self.instructions)
        line = self.line(pc) if pc is not None and inside else None
        text = disassemble(self.instructions[pc]) if pc is not None and inside else ""
        return ProgramError(
            reason,
            program=self.name,
            section=self.section or None,
            instruction=pc,
            text=text,
            line=str(line) if line else None,
            hint=hint,
        )
