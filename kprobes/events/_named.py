"""Fetches of parameters and members by name, as debug information has them: `key`, `table->count`, `entry->key`.

Parameters are taken as the calling convention passes them: at a function entry nothing else is true yet. Inside a
function they and local variables are where the compiler says.
"""

from __future__ import annotations

import re
from typing import NoReturn, Protocol

from ..debug.info import DebugInfo
from ..debug.types import CType
from ..debug.units import takes_a_word
from ..errors import GuestFault, KprobeError
from ..machine._base import Machine
from ..regs import Regs
from ._event import Read, Saved
from ._plans import Source, Word, memory

NAMED = re.compile(r"([A-Za-z_]\w*)((?:(?:->|\.)[A-Za-z_]\w*)*)", re.ASCII)


class Around(Protocol):
    """The definition that is parsed."""

    machine: Machine
    entry: bool

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn: ...
    def numbered(self, n: int, text: str, at: int) -> Source: ...


class Named:
    """Names at one place. known: nothing is, where this is False."""

    def __init__(self, around: Around, address: int) -> None:
        self._around, self._info, self._address = around, DebugInfo(around.machine), address
        self._parameters = self._info.parameters(address) if around.machine.symbols.files else None
        self.known = self._parameters is not None

    @property
    def parameters(self) -> list[str]:
        """Their names."""
        return [variable.name for variable in self._parameters or ()]

    def fetch(self, text: str, at: int, string: bool) -> tuple[Source, str]:
        """(what fetches it, the type that it has by itself). string: text is asked for: of a pointer, what it points
        at."""
        name, *path = re.split(r"(->|\.)", text)
        source, type = self._variable(name, at)
        for op, field in zip(path[::2], path[1::2], strict=True):
            source, type = self._member(source, type, op, field, at)
        if string and type.kind == "pointer":
            source = self._dereferenced(source, 0)
        return source, self._shown(type, source)

    def _variable(self, name: str, at: int) -> tuple[Source, CType]:
        around = self._around
        parameters = self._parameters or []
        found = next((variable for variable in parameters if variable.name == name), None)
        if not around.entry:
            return self._local(name, at)
        if found is None:
            around.fail("NO_BTFARG", at, name, ", ".join(self.parameters) or "none")
        if not all(takes_a_word(variable.type, around.machine.arch)
                   for variable in parameters[: (found.parameter or 0) + 1]):
            around.fail("NOSUP_DAT_ARG", at, name)
        return around.numbered((found.parameter or 0) + 1, name, at), found.type

    def _local(self, name: str, at: int) -> tuple[Source, CType]:
        info = self._info
        type = info.type_of(self._address, name)
        if type is None:
            self._around.fail("NO_BTFARG", at, name, ", ".join(info.names(self._address)) or "none")

        def read(regs: Regs, saved: Saved) -> int:
            try:
                value = info.local(regs, name)
            except KprobeError:
                value = None
            if value is None or isinstance(value, float):
                raise GuestFault("the variable is not kept here", address=regs.pc, access="read")
            return int(int(value) & regs.arch.mask)
        return Source(word=read, tree=Word("variable", name=name)), type

    def _member(self, source: Source, type: CType, op: str, field: str, at: int) -> tuple[Source, CType]:
        around = self._around
        holder = type.target if op == "->" and type.kind == "pointer" else type if op == "." else None
        if holder is None or holder.kind not in ("struct", "union"):
            around.fail("NO_PTR_STRCT", at, field, type.name)
        member = holder.members.get(field)
        if member is None:
            around.fail("NO_BTF_FIELD", at, field, holder.name, ", ".join(holder.members) or "none")
        if op == "->":
            found = self._dereferenced(source, member.offset)
        else:
            if source.base is None:
                around.fail("NO_PTR_STRCT", at, field, type.name)
            base, tree, offset = source.base
            found = self._at(base, tree, offset + member.offset, source.steps)
        return found, _BitField(member.type, member.bits, member.shift) if member.bits else member.type

    def _dereferenced(self, source: Source, offset: int) -> Source:
        return self._at(source.word, source.tree, offset, source.steps + 1)

    def _at(self, base: Read, tree: Word, offset: int, steps: int) -> Source:
        return memory(base, tree, offset, self._around.machine.arch.mask, steps)

    def _shown(self, type: CType, source: Source) -> str:
        """The event type that shows a C type."""
        bits = 8 * type.size
        if isinstance(type, _BitField):
            return f"b{type.width}@{type.shift}/{bits}"
        if type.kind == "array" and type.target is not None:
            if type.target.kind == "char":
                return "string"
            return f"{self._shown(type.target, source)}[{min(max(type.count, 1), 64)}]"
        if type.kind in ("int", "char", "bool", "enum") and bits in (8, 16, 32, 64):
            return f"{'s' if type.signed else 'u'}{bits}"
        return f"x{self._around.machine.arch.bits}"


class _BitField(CType):
    """A bit field: its type, and which bits of that it has."""

    def __init__(self, type: CType, width: int, shift: int) -> None:
        self.__dict__.update(type.__dict__, width=width, shift=shift)

    width: int
    shift: int
