"""Fetches of parameters and members by name, as debug information has them: `key`, `table->count`, `entry->key`.

At a function's entry parameters are where debug information and the calling convention say. Inside a function they and
local variables are where the compiler says. What an event has no type for, and what is not known, is refused.
"""

from __future__ import annotations

import re
from math import prod
from typing import NoReturn, Protocol

from attrs import evolve

from ..arch._base import Arch, Order
from ..debug.info import DebugInfo
from ..debug.passing import Arrival
from ..debug.scopes import Variable
from ..debug.types import CType, Member
from ..debug.view import View
from ..errors import GuestFault, KprobeError
from ..machine._base import Machine
from ..regs import Regs
from ._event import AtEntry, Read, Saved, Type
from ._plans import Source, Word, memory
from ._types import MAX_ARRAY, type_of

NAMED = re.compile(r"([A-Za-z_]\w*)((?:(?:->|\.)[A-Za-z_]\w*)*)", re.ASCII)
_U64 = (1 << 64) - 1
_NUMBERS = ("int", "char", "bool", "enum")
_KINDS = {"float": "a floating-point number, and events have integers", "complex": "a complex number",
          "struct": "a structure: name a member", "union": "a union: name a member", "function": "a function",
          "void": "of no type", "other": "of a kind that is not understood"}


class Around(Protocol):
    """The definition that is parsed."""

    machine: Machine
    arch: Arch
    kind: str
    entry: bool

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn: ...
    def need(self, condition: object, kind: str, at: int, *facts: object) -> None: ...
    def count(self, text: str, at: int, most: int, bad: str, big: str, value: int | None) -> int: ...
    def numbered(self, n: int, text: str, at: int) -> Source: ...
    def kept(self, value: AtEntry) -> Source: ...


class Named:
    """Names at one place.

    Attributes:
        known: False where nothing is known of the function.
    """

    def __init__(self, around: Around, address: int) -> None:
        self._around = around
        self._info = DebugInfo(around.machine)
        self._address = address
        self.known = bool(around.machine.symbols.files) and self._info.function(address) is not None
        self._arrivals = self._info.arrivals(address) if self.known and around.entry else []

    @property
    def parameters(self) -> list[str]:
        """Their names."""
        return [variable.name for variable, _ in self._arrivals]

    def fetch(self, text: str, at: int, suffix: str | None) -> tuple[Source, Type | None]:
        """What fetches a variable or member.

        Args:
            text: its name, and the way to a member.
            at: column of the text.
            suffix: the type that the definition asks for; None: as debug information has it. Text is asked for of a
                pointer: what it points at.

        Returns:
            What fetches it, and the type that it has by itself; None where a suffix is given.
        """
        name, *path = re.split(r"(->|\.)", text)
        source, type = self._variable(name, at)
        member: Member | None = None
        for op, field in zip(path[::2], path[1::2], strict=True):
            source, member = self._member(source, type, op, field, at)
            type = member.type
        if (suffix or "").startswith(("string", "ustring")) and type.kind == "pointer":
            source = self._dereferenced(source, 0)
        return source, None if suffix is not None else self._shown(type, member, text, at)

    def result_is_shown(self, at: int) -> None:
        """Refuse `$retval` without a type where the function returns what is in no integer register."""
        result = self._info.result(self._address) if self.known else None
        if result is not None and result.kind == "void":
            self._around.fail("NO_RETVAL", at)
        if result is not None and (result.kind in _KINDS or result.kind == "array"):
            self._refuse("$retval", at, f"it is {_KINDS.get(result.kind, 'an array')}")

    def _refuse(self, name: str, at: int, reason: str) -> NoReturn:
        self._around.fail("NOSUP_DAT_ARG", at, name, reason)

    def _variable(self, name: str, at: int) -> tuple[Source, CType]:
        if not self._around.entry:
            return self._local(name, at)
        found = next(((v, arrival) for v, arrival in self._arrivals if v.name == name), None)
        if found is None:
            self._around.fail("NO_BTFARG", at, name, ", ".join(self.parameters) or "none")
        variable, arrival = found
        return self._arrived(variable, arrival, at), variable.type

    def _arrived(self, variable: Variable, arrival: Arrival, at: int) -> Source:
        """A parameter at the function's entry."""
        name = variable.name
        if arrival.kind == "refused":
            self._refuse(name, at, arrival.reason)
        if arrival.kind == "argument":
            return self._around.numbered(arrival.number + 1, name, at)
        if arrival.kind == "value":
            number = arrival.number
            return Source(word=lambda regs, saved: number, tree=Word("value", number))
        if self._around.kind == "p" and arrival.kind == "register":
            return Source(word=lambda regs, saved: regs[arrival.name], tree=Word("register", name=arrival.name))
        frame = self._info.cfa(self._address)
        if self._around.kind == "p" and arrival.kind == "frame" and frame is not None:
            above = frame
            return self._at(lambda regs, saved: regs[above[0]], Word("register", name=above[0]),
                            above[1] + arrival.number, 1)
        if self._around.kind == "p":
            return self._in_place(name, variable.type)
        if variable.type.kind not in (*_NUMBERS, "pointer"):
            self._refuse(name, at, "return events keep words of the entry, and it is none")
        return self._around.kept(AtEntry(name, self._in_place(name, variable.type).word))

    def _local(self, name: str, at: int) -> tuple[Source, CType]:
        info = self._info
        type = info.type_of(self._address, name)
        if type is None:
            self._around.fail("NO_BTFARG", at, name, ", ".join(info.names(self._address)) or "none")
        return self._in_place(name, type), type

    def _in_place(self, name: str, type: CType) -> Source:
        """A variable that Python finds where debug information says that it is at the hit."""
        info = self._info

        def read(regs: Regs, saved: Saved) -> int:
            try:
                value = info.local(regs, name)
            except KprobeError:
                value = None
            if not isinstance(value, int | View):
                raise GuestFault("the variable is not kept here", address=regs.pc, access="read")
            return int(value) & _U64

        tree = Word("variable", name=name)
        if type.kind in ("struct", "union", "array"):  # its address is what is read
            return self._at(read, tree, 0, 1)
        return Source(word=read, tree=tree)

    def _member(self, source: Source, type: CType, op: str, field: str, at: int) -> tuple[Source, Member]:
        around = self._around
        holder = type.target if op == "->" and type.kind == "pointer" else type if op == "." else None
        if holder is None or holder.kind not in ("struct", "union"):
            around.fail("NO_PTR_STRCT", at, field, type.name)
        if field in holder.hidden:
            self._refuse(field, at, holder.hidden[field])
        member = holder.members.get(field)
        if member is None:
            around.fail("NO_BTF_FIELD", at, field, holder.name, ", ".join(holder.members) or "none")
        if member.bits:
            member = self._readable(member, holder, at)
        if op == "->":
            return self._dereferenced(source, member.offset), member
        if source.base is None:
            around.fail("NO_PTR_STRCT", at, field, type.name)
        base, tree, offset = source.base
        return self._at(base, tree, offset + member.offset, source.steps), member

    def _readable(self, member: Member, holder: CType, at: int) -> Member:
        """A bit field in 1, 2, 4 or 8 bytes, which is what events read: these may begin before its own."""
        unit = next((size for size in (1, 2, 4, 8) if size >= member.unit), 0)
        if not unit:
            self._refuse(member.name, at, f"its bits are in {member.unit} bytes")
        offset = max(min(member.offset, holder.size - unit), 0)
        before = 8 * (member.offset - offset)
        if self._around.machine.arch.order is Order.BIG:
            before = 8 * unit - 8 * member.unit - before
        return evolve(member, offset=offset, unit=unit, shift=member.shift + before)

    def _dereferenced(self, source: Source, offset: int) -> Source:
        return self._at(source.word, source.tree, offset, source.steps + 1)

    def _at(self, base: Read, tree: Word, offset: int, steps: int) -> Source:
        return memory(base, tree, offset, self._around.machine.arch.mask, steps)

    def _shown(self, type: CType, member: Member | None, name: str, at: int) -> Type:
        """The event type that shows a C type. member: whose type it is, of members."""
        if member is not None and member.bits:
            made = self._type(f"b{member.bits}@{member.shift}/{8 * member.unit}", at)
            return evolve(made, style="s") if type.signed and type.kind != "bool" else made
        if type.kind == "array":
            return self._array(type, name, at)
        return self._type(self._word(type, name, at), at)

    def _array(self, type: CType, name: str, at: int) -> Type:
        element = type.element
        if element.kind == "char" and len(type.dims) == 1:
            return evolve(self._type("string", at), limit=type.count)
        if None in type.dims:
            self._refuse(name, at, "how many elements the array has is not known; write a type such as :u8[4]")
        kind = self._word(element, name, at, "an array, each of whose elements is ")
        count = prod(n or 0 for n in type.dims)
        if not count:
            self._refuse(name, at, "the array has no elements")
        if count > MAX_ARRAY:
            self._refuse(name, at, f"the array has {count} elements, and events show {MAX_ARRAY}; "
                                   f"write :{kind}[{MAX_ARRAY}] for the first")
        return self._type(f"{kind}[{count}]", at)

    def _word(self, type: CType, name: str, at: int, before: str = "") -> str:
        """The name of the event type of a number or pointer. before: what the reason of a refusal begins with."""
        bits = 8 * type.size
        if type.kind == "pointer":
            return f"x{self._around.machine.arch.bits}"
        if type.kind in _KINDS:
            self._refuse(name, at, f"it is {before}{_KINDS[type.kind]}")
        if type.kind not in _NUMBERS or bits not in (8, 16, 32, 64) or type.bits != bits:
            self._refuse(name, at, f"it is {before}a number of {type.bits} bits")
        if type.order != self._around.machine.arch.order.value:
            self._refuse(name, at, f"it is {before}of the other byte order")
        return f"{'s' if type.signed else 'u'}{bits}"

    def _type(self, name: str, at: int) -> Type:
        return type_of(self._around, name, at)
