"""Variables of a function: which of them are in scope at an instruction, and where a variable is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from ..arch._base import Arch
from ..image import LoadedFile
from ..regs import Regs
from ..symbols import Symbols
from .expression import Place, Surroundings, Unknown, evaluate
from .file import DAMAGE, children
from .registers import pairs_are_known
from .types import CType, Derived, constant
from .units import Function, location, named, spans
from .unwind import Frame, Unwinder

_BLOCK = "DW_TAG_lexical_block"
_PARAMETER = "DW_TAG_formal_parameter"


@frozen
class Variable:
    """A parameter or local variable.

    Attributes:
        name: of the variable.
        type: of the variable.
        parameter: which parameter it is, from 0; None: it is a local variable.
        die: its entry.
        origin: the entry that has its name and type.
    """

    name: str
    type: CType
    parameter: int | None
    die: Any
    origin: Any


def entries(function: Function, address: int) -> Iterator[tuple[Any, Any, int | None]]:
    """(entry, entry with its name and type, which parameter it is) of what is in scope, innermost blocks first.

    Args:
        function: whose variables they are.
        address: a link address in it.
    """
    order = _parameters(function.die)
    for block in _blocks(function, address):
        count = 0
        for die in children(block):
            if die.tag not in (_PARAMETER, "DW_TAG_variable"):
                continue
            origin = named(die)
            number = None
            if die.tag == _PARAMETER:
                number = order.get(origin.offset, count)
                count += 1
            yield die, origin, number


def _blocks(function: Function, address: int) -> list[Any]:
    """The function's entry and those of the lexical blocks around an address, innermost first."""
    found = [function.die]
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag != _BLOCK:
            continue
        try:
            parts = [*spans(die, function.unit)]
        except DAMAGE:
            continue
        if any(start <= address < end for start, end in parts):
            found.append(die)
            todo = children(die)
    return found[::-1]


def _parameters(die: Any) -> dict[int, int]:
    """Offset of a parameter's own entry -> which one it is, of an instance of a function: it may lack some."""
    origin = die
    try:
        for _ in range(8):
            if "DW_AT_abstract_origin" not in origin.attributes:
                break
            origin = origin.get_DIE_from_attribute("DW_AT_abstract_origin")
    except DAMAGE:
        return {}
    if origin is die:
        return {}
    found = [child for child in children(origin) if child.tag == _PARAMETER]
    return {child.offset: n for n, child in enumerate(found)}


class Whereabouts:
    """Where variables of a function are at a hit.

    Args:
        arch: the guest's.
        symbols: of the machine, whose files have call frame information.
        file: that has the function.
        function: whose variables they are.
        regs: at the hit.
    """

    def __init__(self, arch: Arch, symbols: Symbols, file: LoadedFile, function: Function, regs: Regs) -> None:
        self._arch = arch
        self._symbols = symbols
        self._function = function
        self._regs = regs
        self._pc = regs.pc - file.bias
        self._bias = file.bias
        self.frame = Frame(arch, regs)

    def place(self, die: Any) -> Place:
        """Where a variable is. Raises Unknown, GuestFault, and what is in DAMAGE."""
        return self.evaluated(location(die, self._function, self._pc))

    def evaluated(self, ops: Any) -> Place:
        """The place that operations give. Raises Unknown, GuestFault."""
        return evaluate(ops, self._around(self._frame_base))

    def _around(self, frame_base: Any) -> Surroundings:
        unit = self._function.unit

        def indexed(number: int) -> int:
            return int(unit.dwarfinfo.get_addr(unit, number))

        return Surroundings(register=self.frame.get, word=self._regs.word, bits=self._arch.bits, bias=self._bias,
                            cfa=self._cfa, frame_base=frame_base, indexed=indexed)

    def _cfa(self) -> int:
        row = Unwinder(self._arch, self._symbols).row(self._regs.pc)
        if row is None:
            raise Unknown
        return self.frame.cfa(row)

    def _frame_base(self) -> int:
        found = evaluate(location(self._function.die, self._function, self._pc, "DW_AT_frame_base"),
                         self._around(None))
        return self.frame.get(found.value) if found.kind == "register" else found.value

    def raw(self, place: Place, size: int) -> int:
        """A number of some bytes at a place, unsigned.

        Raises:
            Unknown: not all of it is kept, or it is in a register that is not known.
            GuestFault: memory cannot be read.
        """
        order: Any = self._arch.order.value
        word = self._arch.bits // 8
        if place.kind == "register":
            if size > word:
                raise Unknown
            return self.frame.get(place.value) & (1 << 8 * size) - 1
        if place.kind == "value":
            if size > word:
                raise Unknown
            return place.value & (1 << 8 * size) - 1
        if place.kind == "bytes" and len(place.data) == size:
            return int.from_bytes(place.data, order)
        if place.kind == "memory":
            return int.from_bytes(self._regs.read(place.value, size), order)
        registers = sum(piece.kind == "register" for _, piece in place.pieces)
        if registers > 1 and not pairs_are_known(self._arch):
            raise Unknown
        if place.kind != "pieces" or sum(part for part, _ in place.pieces) != size:
            raise Unknown
        data = b"".join(self.raw(piece, part).to_bytes(part, order) for part, piece in place.pieces)
        return int.from_bytes(data, order)

    def sized(self, type: CType) -> CType:
        """A type whose arrays have as many elements as their bounds are now. Raises Unknown, GuestFault, DAMAGE."""
        if type.kind != "array" or None not in type.dims or len(type.subranges) != len(type.dims):
            return type
        return Derived.array(type.element, tuple(n if n is not None else self._bound(type.subranges[i])
                                                 for i, n in enumerate(type.dims)))

    def _bound(self, subrange: Any) -> int | None:
        """Elements of a dimension; None where nothing says how many."""
        if "DW_AT_lower_bound" in subrange.attributes and constant(subrange, "DW_AT_lower_bound") != 0:
            raise Unknown
        for attribute, more in (("DW_AT_count", 0), ("DW_AT_upper_bound", 1)):
            if attribute in subrange.attributes:
                return max(self._dynamic(subrange, attribute) + more, 0)
        return None

    def _dynamic(self, die: Any, attribute: str) -> int:
        """The number that an attribute refers to, or computes."""
        form = die.attributes[attribute].form
        bits = self._arch.bits
        if form.startswith("DW_FORM_ref"):
            variable = die.get_DIE_from_attribute(attribute)
            type = CType(variable.get_DIE_from_attribute("DW_AT_type"), bits // 8, self._arch.order.value,
                         lambda die: None)
            bits = 8 * type.size
            value = self.raw(self.place(variable), type.size)
        else:
            value = self.evaluated(location(die, self._function, self._pc, attribute)).value
        return value - (value >> bits - 1 << bits)
