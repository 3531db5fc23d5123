"""Fetches of parameters, members and elements by name, as debug information has them: `key`,
`table->count`, `it->pts[1].y`.

At a function's entry parameters are where debug information and the calling convention say. Inside
a function they and local variables are where the compiler says. What an event has no type for, and
what is not known, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from attrs import evolve, frozen

from ..arch._base import Order
from ..debug.info import DebugInfo
from ..debug.libraries import is_text
from ..debug.numbers import float_format
from ..debug.passing import Arrival
from ..debug.scopes import Variable
from ..debug.types import CType, Member
from ..debug.view import Held, View, load
from ..debug.whole import whole
from ..errors import GuestFault, KprobeError, Unsupported
from ..machine._base import Machine
from ..regs import Regs
from ._event import KeptAtEntry, Plan, Read, Saved
from ._plans import Fetch, Word, address_reader, memory, reader
from ._styles import Type, Value
from ._types import MAX_ARRAY, TypeContext, type_of

_NUMBER = re.compile(r"([usx])(?:8|16|32|64)")  #: types of events that are numbers
#: one step of the way to a member or element
_STEP = re.compile(r"(->|\.)([A-Za-z_]\w*)|(\[)([^]\[]*)\]", re.ASCII)
_INDEX = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
RESULT = "$retval"
LARGEST = 4096  #: bytes of an array
_U64 = (1 << 64) - 1
_NUMBERS = ("int", "char", "bool", "enum")
_KINDS = {
    "function": "a function",
    "void": "of no type",
    "other": "of a kind that is not understood",
}


class NameContext(TypeContext, Protocol):
    """The definition that is parsed, as names need it.

    Attributes:
        machine: the guest.
        kind: "p" or "r".
        entry: the place is a function's entry.
        inside: name of the inlined function of which a copy begins at the place; "": none is named.
    """

    machine: Machine
    kind: str
    entry: bool
    inside: str

    def numbered(self, n: int, text: str, at: int) -> Fetch:
        """Return the fetch of the n-th argument of the call.

        Args:
            n: counted from 1.
            text: the name as written, for errors.
            at: its column.
        """

    def kept(self, value: KeptAtEntry) -> Fetch:
        """Have a return event keep a value at the function's entry; return the fetch of the kept
        value.
        """


@frozen
class _Found:
    """Where the value of a name lies: what a longer fetch, such as `it->count`, begins with.

    Attributes:
        type: of the value.
        source: fetches the value's word, or, of a structure or array, has its address; None: only
            Python finds the value, by `view`.
        view: function of (registers, saved values) that gives the value: a number, or a View of a
            structure or array; None where `source` is there.
    """

    type: CType
    source: Fetch | None = None
    view: Callable[[Regs, Saved], Any] | None = None


class KnownNames:
    """The parameters and variables that are known at one place.

    Attributes:
        known: False where debug information has nothing of the function.
    """

    def __init__(self, around: NameContext, address: int) -> None:
        """Look up what debug information has of the place.

        Args:
            around: the definition that is parsed.
            address: of the place, without mode bits.
        """
        self._around = around
        self._info = DebugInfo(around.machine)
        self._address = address
        self.known = bool(around.machine.symbols.files) and self._info.function(address) is not None
        self._arrivals = self._info.arrivals(address) if self.known and around.entry else []

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters; none where the place is not its entry."""
        return [variable.name for variable, _ in self._arrivals]

    def fetch(self, text: str, at: int, suffix: str | None) -> tuple[Fetch, Type | None]:
        """Make the fetch of a variable, member or element that a definition names.

        Args:
            text: the name, and the way to a member or element, such as `it->pts[1].y`.
            at: column of the text.
            suffix: the type that the definition asks for; None: the type is that of debug
                information. With "string" or "ustring" a pointer is followed: the text that it
                points at is read.

        Returns:
            (fetch, type). The type is None where a suffix is given, unless the suffix asks for a
            number and the member is a bit field.

        Raises:
            EventError: there is no such variable, member or element, or it cannot be shown.
        """
        steps = [
            (op or bracket, field or index) for op, field, bracket, index in _STEP.findall(text)
        ]
        name = re.split(r"->|[.[]", text, maxsplit=1)[0]
        found = self._result(at) if name == RESULT else self._variable(name, at)
        if found.view is not None:
            return self._viewed(found, steps, text, at, suffix)
        source, type = found.source, found.type
        assert source is not None
        member: Member | None = None
        for n, (op, field) in enumerate(steps):
            if op == "[":
                element = self._element(type, field, at)
                source = self._behind(source, type, element, at)
                type = element.type
                member = None
                continue
            holder = self._holder(type, op, field, at)
            if field not in holder.members:
                found = self._object(holder, self._whereabouts(source, type))
                return self._viewed(found, [(".", field), *steps[n + 1 :]], text, at, suffix)
            before, around = source, type
            member = holder.members[field]
            if (
                suffix is None
                and n == len(steps) - 1
                and member.bits
                and self._unit(member) is None
            ):
                start = self._whereabouts(before, around)
                return self._as_value(holder, start, field, member.type)
            source, member = self._member(source, type, op, field, at)
            type = member.type
        if type.is_reference and type.target is not None:
            source = self._dereferenced(source, 0)
            type = type.target
            member = None
        if _is_string(suffix) and (made := self._text(source, type)) is not None:
            return made
        if (suffix or "").startswith(("string", "ustring")) and type.kind == "pointer":
            source = self._dereferenced(source, 0)
        if suffix is not None:
            return source, None if member is None else self._bit_field(member, suffix, at)
        shown = self._shown(type, member, text, at, source.in_memory)
        if shown is None:
            return self._as_value(type, address_reader(source.tree), "", type)
        return source, shown

    def result(self, text: str, at: int, suffix: str | None) -> tuple[Fetch, Type | None] | None:
        """Make the fetch of `$retval`, `$retval->member` or `$retval[1]`.

        Args:
            text: the argument as it is written in the event's definition.
            at: column of the text.
            suffix: the type that the definition gives to the argument; None: it gives none, and the
                type is that of debug information.

        Returns:
            (fetch, type or None); the type is None where there is a suffix, unless the suffix asks
            for a number and the member is a bit field. None instead of both: the text is a plain
            `$retval`, and the caller shall read the word in the return register. That is so where
            debug information does not know the function's result, where no event's type shows a
            result that fits a register, and where there is a suffix, unless it asks for the
            floating-point number or the number of two words that the function returns, or for the
            text at a pointer.

        Raises:
            EventError: the function returns nothing; a member or element is asked for and the type
                of the result is not known; there is no such member, or it cannot be shown.
        """
        plain = text == RESULT
        type = self._info.result(self._address) if self.known else None
        wants_text = (suffix or "").startswith(("string", "ustring"))
        if type is not None and type.kind == "pointer" and wants_text:
            return self.fetch(text, at, suffix)
        if plain and (type is None or suffix is not None):
            if type is None or suffix is None or self._fits_register(type):
                return None
            if type.kind == "float" and suffix == f"f{8 * type.size}":
                return self.fetch(text, at, None)
            if type.kind in _NUMBERS and _NUMBER.fullmatch(suffix):
                return self.fetch(text, at, suffix)
            return None
        if type is None:
            self._around.fail("NOSUP_BTFARG", at, text)
        if type.kind == "void":
            self._around.fail("NO_RETVAL", at, self._bits)
        if plain and self._fits_register(type) and self._word(type) is None:
            return None
        return self.fetch(text, at, suffix)

    def _fits_register(self, type: CType) -> bool:
        """Return True if a result of a type is the word in the return register."""
        kinds = (*_NUMBERS, "pointer", "function", "other")
        return type.kind in kinds and 8 * type.size <= self._bits

    def is_global(self, name: str) -> bool:
        """Return True if debug information has a global variable of a name, and says where it
        is.
        """
        return self._info.variable(name) is not None

    @property
    def _bits(self) -> int:
        """The width of the guest's words."""
        return self._around.machine.arch.bits

    def _refuse(self, name: str, at: int, reason: str) -> NoReturn:
        """Raise the EventError for a value that debug information has and that an event cannot
        show.

        Args:
            name: of the value.
            at: its column in the definition.
            reason: why it cannot be shown, as one clause.
        """
        self._around.fail("NOSUP_DAT_ARG", at, name, reason)

    # --- where names begin

    def _variable(self, name: str, at: int) -> _Found:
        """Return where the value of a name is: a parameter, a local variable, or a global one.

        Args:
            name: the name.
            at: its column, for errors.

        Raises:
            EventError: there is none of this name, or how the calling convention passes it is not
                known.
        """
        if self._around.inside:
            inlined = self._of_copy(name, at)
            if inlined is not None:
                return inlined
        if not self._around.entry:
            return self._local(name, at)
        found = next(((v, arrival) for v, arrival in self._arrivals if v.name == name), None)
        if found is None:
            return self._global(name, at, self.parameters)
        variable, arrival = found
        return self._arrived(variable, arrival, at)

    def _of_copy(self, name: str, at: int) -> _Found | None:
        """Return a variable of the inlined function whose copy the event names; None: it has none
        of this name.

        Args:
            name: of the variable.
            at: its column, for errors.

        Raises:
            EventError: the compiler has not kept it, or several copies begin at the instruction.
        """
        info = self._info
        inside = self._around.inside
        found = [
            (variable, is_kept)
            for variable, is_kept in info.variables_of_copies(self._address, inside)
            if variable.name == name
        ]
        if not found:
            return None
        if len(found) > 1:
            self._refuse(name, at, f"several copies of {inside} begin at this instruction")
        ((variable, is_kept),) = found
        if not is_kept:
            self._refuse(name, at, "the compiler has not kept it at this instruction")
        return _Found(variable.type, view=lambda regs, saved: info.value_at(variable, regs))

    def _global(self, name: str, at: int, near: list[str]) -> _Found:
        """Return where a global variable is.

        Args:
            name: the variable's.
            at: its column in the definition.
            near: names of the variables that are known at the place, for the error.

        Raises:
            EventError: debug information has none of this name.
        """
        found = self._info.variable(name)
        if found is None:
            known = ", ".join(near) or "none"
            lacking = self._info.lacking()
            self._around.fail("NO_BTFARG", at, name, f"{known}; {lacking}" if lacking else known)
        address, type = found
        return _Found(type, self._at(Word("value", address), 0, 1))

    def _arrived(self, variable: Variable, arrival: Arrival, at: int) -> _Found:
        """Return where a parameter is at the function's entry.

        A plain event fetches it as a word where that can be said (an argument, a register, a
        constant, the caller's part of the stack), else Python reads it at each hit. A return event
        keeps its value from the entry.

        Args:
            variable: the parameter.
            arrival: how the calling convention passes it.
            at: its column.

        Raises:
            EventError: the calling convention's rules for its type are not known here.
        """
        name, type = variable.name, variable.type
        if arrival.kind == "refused":
            self._refuse(name, at, arrival.reason)
        if arrival.kind == "argument":
            return _Found(type, self._around.numbered(arrival.number + 1, name, at))
        if arrival.kind == "value":
            number = arrival.number
            return _Found(type, Fetch(tree=Word("value", number)))
        if self._around.kind == "p" and arrival.kind == "register":
            return _Found(type, Fetch(tree=Word("register", name=arrival.name)))
        frame = self._info.cfa(self._address)
        if self._around.kind == "p" and arrival.kind == "frame" and frame is not None:
            register, above = frame
            base = Word("register", name=register)
            return _Found(type, self._at(base, above + arrival.number, 1))
        info = self._info

        def read(regs: Regs, saved: Saved) -> Any:
            return info.arrived(variable, arrival, regs)

        if self._around.kind == "p":
            return _Found(type, view=read)
        return self._kept(name, type, read)

    def _kept(self, name: str, type: CType, read: Plan) -> _Found:
        """Have a return event keep a value at the function's entry; return where the kept value is.

        Args:
            name: of the variable.
            type: its type; a number or pointer of at most 64 bits is kept as a word, anything else
                whole.
            read: function that reads the value at the entry.
        """
        if type.kind in (*_NUMBERS, "pointer") and 8 * type.size <= 64:
            return _Found(type, self._around.kept(KeptAtEntry(name, _word(read))))
        kept = self._around.kept(KeptAtEntry(name, read))
        return _Found(type, view=reader(kept.tree))

    def _local(self, name: str, at: int) -> _Found:
        """Return a variable inside a function, which Python locates anew at each hit.

        Args:
            name: of a local variable, or, where there is none, of a global one.
            at: its column, for errors.

        Raises:
            EventError: there is none of this name.
        """
        info = self._info
        type = info.type_of(self._address, name)
        if type is None:
            return self._global(name, at, info.names(self._address))
        if info.has_only_prototype(self._address):
            self._refuse(name, at, "BTF does not say where parameters are behind the entry")
        if not info.is_kept(self._address, name):
            self._refuse(name, at, "the compiler has not kept it at this instruction")

        def read(regs: Regs, saved: Saved) -> Any:
            """Return the variable's value at a hit; None: it has no location there."""
            try:
                return info.local(regs, name)
            except KprobeError:
                return None

        return _Found(type, view=read)

    def _result(self, at: int) -> _Found:
        """Return where a function's return value is, at its return: a word in the result register,
        memory at an address that the event keeps from the entry, or parts that Python reads.

        Args:
            at: column of `$retval`, for errors.

        Raises:
            EventError: how it is returned is not known.
        """
        info = self._info
        type = self._info.result(self._address)
        assert type is not None
        if type.kind in (*_NUMBERS, "pointer") and 8 * type.size <= self._bits:
            why = info.result_changed(self._address)
            if why:
                self._refuse(RESULT, at, f"{why}; write $retval:x{self._bits} for the register")
            return _Found(type, Fetch(tree=Word("result")))
        arrival = info.result_arrival(self._address)
        if arrival is None or arrival.kind == "refused":
            self._refuse(
                RESULT,
                at,
                arrival.reason if arrival is not None else "nothing is known of the function",
            )
        parts = arrival.parts
        if parts[0].kind == "given":
            name = parts[0].name
            kept = self._around.kept(KeptAtEntry(RESULT, lambda regs, saved: regs[name]))
            return _Found(type, self._at(kept.tree, 0, 1))
        return _Found(type, view=lambda regs, saved: info.in_parts(type, parts, regs))

    # --- what Python reads

    def _viewed(
        self, found: _Found, steps: list[tuple[str, str]], text: str, at: int, suffix: str | None
    ) -> tuple[Fetch, Type | None]:
        """Make the fetch of a variable, or a member of it, that Python reads at each hit. With a
        suffix, that of a structure, union or array is of memory at its address.

        Args:
            found: the variable; it has a `view`.
            steps: the way to a member: ("->", name), (".", name) or ("[", index) each.
            text: name and way as written.
            at: column of the text.
            suffix: the type that the definition asks for; None: the type is that of debug
                information.

        Returns:
            (fetch, type). The type is None where a suffix is given, unless "string" or "ustring" is
            asked of what is a text, or points at one.

        Raises:
            EventError: there is no such member, or it cannot be shown.
        """
        type = found.type
        member = None
        view = found.view
        assert view is not None
        keys = list[str | int]()
        for op, field in steps:
            if op == "[":
                type = self._element(type, field, at).type
                member = None
                keys.append(int(field, 16 if field[:2] == "0x" else 10))
                continue
            holder = self._holder(type, op, field, at)
            member = holder.members.get(field) or holder.virtual[field].member
            type = member.type
            keys.append(field)

        def read(regs: Regs, saved: Saved) -> Any:
            """Return the value, or a View of it. Raises GuestFault: it has no location at this
            hit, or is in memory that cannot be read.
            """
            value = view(regs, saved)
            try:
                for key in keys:
                    if not isinstance(value, View):
                        break
                    value = value[key]
            except Unsupported:  # the compiler has kept other parts of it
                value = None
            if value is None:
                raise GuestFault("the variable is not kept here", address=regs.pc, access="read")
            if refers and isinstance(value, View):
                return load(machine, type, int(value))
            return value

        machine = self._around.machine
        refers = type.is_reference and type.target is not None
        if refers:
            assert type.target is not None
            type = type.target
            member = None
        tree = Word("variable", name=text, read=_word(read))
        if suffix is None and not keys and _has_lengths_in_variables(type):
            value = Fetch(tree=tree, value=lambda regs, saved: whole(read(regs, saved)))
            return value, _typed(type)
        if _is_string(suffix):
            pointed = type.target if type.kind == "pointer" else None
            if pointed is not None and is_text(pointed):
                keys.append(0)
                type = pointed
            if is_text(type):
                suffix = None
        if suffix is None:
            shown = self._shown(type, member, text, at, True)
            if shown is None or shown.count or shown.is_float or shown.is_string:
                is_number = shown is not None and shown.is_float and not shown.count
                kind = shown if shown is not None and is_number else _typed(type)
                return Fetch(tree=tree, value=lambda regs, saved: whole(read(regs, saved))), kind
            if member is not None and member.bits:  # the view has taken it out of its bytes
                shown = evolve(shown, shift=0, size=8)
            return Fetch(tree=tree), shown
        if type.kind in ("struct", "union", "array"):  # its address is what is read
            return self._at(evolve(tree, read=_address(read)), 0, 1), None
        source = Fetch(tree=tree)
        if suffix.startswith(("string", "ustring")) and type.kind == "pointer":
            source = self._dereferenced(source, 0)
        return source, None

    def _as_value(self, holder: CType, where: Read, field: str, type: CType) -> tuple[Fetch, Type]:
        """Return the fetch of memory that Python reads as a whole, such as a structure, and its
        type.

        Args:
            holder: the C type that lies there.
            where: function that gives the address at a hit.
            field: a member of `holder` that is wanted; "": all of it.
            type: C type of what is wanted.
        """
        machine = self._around.machine

        def read(regs: Regs, saved: Saved) -> Value:
            value = load(machine, holder, where(regs, saved))
            result: Value = whole(value[field] if field else value)
            return result

        tree = Word("variable", name=field, read=where)
        return Fetch(tree=tree, value=read), _typed(type)

    def _text(self, source: Fetch, type: CType) -> tuple[Fetch, Type] | None:
        """Return the fetch of a string of a library, as std::string, and its type.

        Args:
            source: fetches the string, or a pointer to it.
            type: of what it fetches.

        Returns:
            None: it is none, and neither is what it points at.
        """
        if type.kind == "pointer" and type.target is not None and is_text(type.target):
            return self._as_value(type.target, reader(source.tree), "", type.target)
        if not source.in_memory or not is_text(type):
            return None
        return self._as_value(type, address_reader(source.tree), "", type)

    def _object(self, holder: CType, where: Read) -> _Found:
        """Return an object that has virtual bases: Python reads where these are at each hit.

        Args:
            holder: its class.
            where: gives its address.
        """
        machine = self._around.machine
        return _Found(holder, view=lambda regs, saved: load(machine, holder, where(regs, saved)))

    def _whereabouts(self, source: Fetch, type: CType) -> Read:
        """Return the function that gives, at a hit, the address of the structure that has a member.

        Args:
            source: fetches what stands in front of the operator: the pointer or reference, or the
                structure, whose address it has.
            type: of what it fetches.
        """
        if type.kind == "pointer":
            return reader(source.tree)
        return address_reader(source.tree)

    def _holder(self, type: CType, op: str, field: str, at: int) -> CType:
        """Return the structure or union that has a member, itself or from a virtual base. `.`
        follows a reference of C++, as `->` does a pointer.

        Args:
            type: of the value in front of the operator.
            op: "->" or ".".
            field: the member's name.
            at: column, for errors.

        Raises:
            EventError: it is no structure, has no such member, or where the member is is not known.
        """
        around = self._around
        reference = type.kind == "pointer" and type.is_reference
        holder = None
        if type.kind == "pointer" and (op == "->" or reference):
            holder = type.target
        elif op == ".":
            holder = type
        if holder is None or holder.kind not in ("struct", "union"):
            around.fail("NO_PTR_STRCT", at, field, type.name)
        if field in holder.members or field in holder.virtual:
            return holder
        if field in holder.hidden:
            self._refuse(field, at, holder.hidden[field])
        names = ", ".join([*holder.members, *holder.virtual])
        around.fail("NO_BTF_FIELD", at, field, holder.name, names or "none")

    def _element(self, type: CType, index: str, at: int) -> Member:
        """Return an element of an array, or of what a pointer points at, as a member of it.

        Args:
            type: the array or pointer.
            index: the text between the brackets: decimal, or hexadecimal with 0x.
            at: column in the definition, for messages.

        Raises:
            EventError: the index is no number or beyond the array, or there are no elements.
        """
        if not _INDEX.fullmatch(index):
            self._refuse(f"[{index}]", at, "an index is a number, such as [0] or [0x1f]")
        element = type.target
        if element is None or not element.size:
            self._refuse(f"[{index}]", at, f"{type.name} has no elements")
        n = int(index, 16 if index[:2] == "0x" else 10)
        if type.kind == "array" and type.bounded and n >= type.count:
            self._refuse(f"[{index}]", at, f"{type.name} has {type.count} elements, counted from 0")
        return Member(f"[{n}]", element, n * element.size)

    # --- what programs read, too

    def _member(
        self, source: Fetch, type: CType, op: str, field: str, at: int
    ) -> tuple[Fetch, Member]:
        """Return the fetch of a structure's member, and the member; a bit field as 1, 2, 4 or 8
        bytes.

        Args:
            source: fetches what stands in front of the operator.
            type: its C type: a structure, or a pointer to one.
            op: "->" or ".".
            field: the member's name.
            at: column, for errors.

        Raises:
            EventError: it is no structure, or has no such member.
        """
        holder = self._holder(type, op, field, at)
        member = holder.members[field]
        if member.bits:
            member = self._readable(member, holder, at)
        return self._behind(source, type, member, at), member

    def _behind(self, source: Fetch, type: CType, member: Member, at: int) -> Fetch:
        """Return the fetch of a member of a structure, or of an element of an array.

        Args:
            source: fetches a pointer to the structure or array, or has its address.
            type: C type of what `source` fetches.
            member: the member or element, with its offset.
            at: column, for errors.

        Raises:
            EventError: `source` is no pointer, and what it fetches has no address.
        """
        if type.kind == "pointer":
            return self._dereferenced(source, member.offset)
        tree = source.tree
        if tree.base is None:
            self._around.fail("NO_PTR_STRCT", at, member.name, type.name)
        return self._at(tree.base, tree.number + member.offset, source.steps)

    @staticmethod
    def _unit(member: Member) -> int | None:
        """Return how many bytes an event reads for a bit field: 1, 2, 4 or 8; None: it takes more
        than 8.
        """
        return next((size for size in (1, 2, 4, 8) if size >= member.unit), None)

    def _readable(self, member: Member, holder: CType, at: int) -> Member:
        """Return a bit field as it lies in 1, 2, 4 or 8 bytes: events read no other sizes.

        These bytes may begin before the field's own, so that they do not end behind the structure.

        Args:
            member: the bit field.
            holder: the structure that it is in.
            at: column, for errors.

        Raises:
            EventError: the field's bits are in more than 8 bytes.
        """
        unit = self._unit(member)
        if unit is None:
            self._refuse(member.name, at, f"its bits are in {member.unit} bytes")
        offset = max(min(member.offset, holder.size - unit), 0)
        before = 8 * (member.offset - offset)
        if self._around.machine.arch.order is Order.BIG:
            before = 8 * unit - 8 * member.unit - before
        return evolve(member, offset=offset, unit=unit, shift=member.shift + before)

    def _dereferenced(self, source: Fetch, offset: int) -> Fetch:
        """Return the fetch of a word of memory, `offset` bytes behind the address that `source`
        fetches.
        """
        return self._at(source.tree, offset, source.steps + 1)

    def _at(self, base: Word, offset: int, steps: int) -> Fetch:
        """Return the fetch of a word of memory.

        Args:
            base: the address that `offset` is counted from.
            offset: bytes from there to the word.
            steps: number of steps of the fetch, as Linux counts and limits them.
        """
        return memory(base, offset, self._around.machine.arch.mask, steps)

    def _bit_field(self, member: Member, suffix: str, at: int) -> Type | None:
        """Return the type of a bit field where a number is asked for.

        Args:
            member: the member, which may be no bit field.
            suffix: the type that is asked for; of a number only its letter (u, s, x) counts.
            at: column, for errors.

        Returns:
            The type, as wide as the field; None: it is no bit field, or no number is asked for.
        """
        asked = _NUMBER.fullmatch(suffix)
        if not member.bits or asked is None:
            return None
        return evolve(
            self._type(f"b{member.bits}@{member.shift}/{8 * member.unit}", at), style=asked[1]
        )

    def _shown(
        self, type: CType, member: Member | None, name: str, at: int, memory: bool
    ) -> Type | None:
        """Return the event type that shows a C type; None: Python shows it as a whole.

        Args:
            type: of the variable or member.
            member: the member whose type it is; None: it is a variable's.
            name: as written.
            at: its column.
            memory: it is in memory, or Python reads it; False: it is in a register.

        Raises:
            EventError: nothing shows it.
        """
        if member is not None and member.bits:
            made = (
                self._type(f"b{member.bits}@{member.shift}/{8 * member.unit}", at)
                if self._unit(member)
                else None
            )
            if made is None:
                return None
            return evolve(made, style="s") if type.signed and type.kind != "bool" else made
        if type.kind in ("function", "void", "other"):
            self._refuse(name, at, f"it is {_KINDS[type.kind]}")
        if type.kind == "array":
            return self._array(type, name, at)
        word = self._word(type)
        if word is None and not memory:
            self._refuse(name, at, "it is in a register that has not all of it")
        return None if word is None else self._type(word, at)

    def _array(self, type: CType, name: str, at: int) -> Type | None:
        """Return the event type that shows a whole array; a string for an array of char.

        Args:
            type: the array.
            name: the variable or member as written, for messages.
            at: its column in the definition, for messages.

        Returns:
            The type; None: only Python can show it: its elements are no plain numbers, it has
            several dimensions, or more than MAX_ARRAY elements.

        Raises:
            EventError: it has an unknown number of elements; or it is no string and has none, or
                more than LARGEST bytes.
        """
        element = type.element
        if [*type.dims] == [None] and element.kind == "char":  # `char text[]`: to its text's end
            return self._type("string", at)
        if None in type.dims:
            self._refuse(
                name,
                at,
                "how many elements the array has is not known; write a type such as :u8[4]",
            )
        if element.kind == "char" and len(type.dims) == 1:
            return evolve(self._type("string", at), limit=type.count)
        if not type.size:
            self._refuse(name, at, "the array has no elements")
        if type.size > LARGEST:
            self._refuse(
                name,
                at,
                f"the array has {type.size} bytes, and events show {LARGEST}; write a type such as "
                ":u8[4] for the first",
            )
        kind = self._word(element)
        if kind is None or len(type.dims) > 1 or type.count > MAX_ARRAY:
            return None
        return self._type(f"{kind}[{type.count}]", at)

    def _word(self, type: CType) -> str | None:
        """Return the name of the event type that shows a number or pointer, such as u32.

        None: none does, as of numbers in another byte order than the guest's.
        """
        bits = 8 * type.size
        if type.kind == "pointer":
            return f"x{self._bits}"
        if type.order != self._around.machine.arch.order.value or type.bits != bits:
            return None
        if type.kind == "float" and float_format(
            self._around.machine.arch, type.base_name, type.size
        ) in ("single", "double"):
            return f"f{bits}"
        if type.kind not in _NUMBERS or bits not in (8, 16, 32, 64):
            return None
        return f"{'s' if type.signed else 'u'}{bits}"

    def _type(self, name: str, at: int) -> Type:
        """Return the event type of a name, such as u32.

        Args:
            name: as definitions write it.
            at: column, for errors.

        Raises:
            EventError: there is no such type.
        """
        return type_of(self._around, name, at)


def _has_lengths_in_variables(type: CType) -> bool:
    """Return True for an array whose lengths variables have: each hit has its own."""
    if type.kind != "array" or None not in type.dims:
        return False
    lengths = {"DW_AT_count", "DW_AT_upper_bound"}
    return bool(type.subranges) and all(lengths & sub.attributes.keys() for sub in type.subranges)


def _is_string(suffix: str | None) -> bool:
    """Return True where a definition asks for a text."""
    return suffix in ("string", "ustring")


def _typed(type: CType) -> Type:
    """Return the event type, of style "value", of a C type that Python shows as a whole."""
    return Type(name=type.name, style="value", bits=8 * type.size, size=max(type.size, 1))


def _word(read: Plan) -> Read:
    """Return a function that gives, as a word at a hit, the number or address that Python reads.

    Args:
        read: function that gives the number, or a View, whose address is meant.
    """

    def word(regs: Regs, saved: Saved) -> int:
        """Return the number or address as a word. Raises GuestFault: it has no location here."""
        value = read(regs, saved)
        if not isinstance(value, int | View):
            raise GuestFault("the variable is not kept here", address=regs.pc, access="read")
        return int(value) & _U64

    return word


def _address(read: Plan) -> Read:
    """Return a function that gives the guest address of a value that Python finds.

    Args:
        read: function that gives a View of the value at a hit.
    """

    def word(regs: Regs, saved: Saved) -> int:
        """Return the value's address. Raises GuestFault: it lies in no memory, but in registers."""
        value: Any = read(regs, saved)
        if not isinstance(value, View) or isinstance(value._machine, Held):
            raise GuestFault("the variable is not in memory here", address=regs.pc, access="read")
        return int(value)

    return word
