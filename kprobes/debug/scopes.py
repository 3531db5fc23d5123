"""Variables of a function: which of them are in scope at an instruction, and where a variable
is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from attrs import field, frozen

from ..arch._base import Arch
from ..image import LoadedFile
from ..regs import Regs
from ..symbols import Symbols
from .expression import (
    BaseType,
    Piece,
    Surroundings,
    Typed,
    UnknownValue,
    ValuePlace,
    evaluate,
    evaluate_number,
)
from .file import DAMAGE, children, is_same, text
from .numbers import real_of_x87, single_of_double
from .pieces import ADDRESS_FORMS, spans
from .registers import X87_SIZE, is_real, is_x87, pairs_are_known, real_registers, register
from .signatures import type_entry
from .types import CType, Derived, constant
from .units import Function, call_site, is_of_gnu, location, named, tail_calls
from .units import callee as callee_of
from .unwind import Unwinder, UnwindFrame

_BLOCK = "DW_TAG_lexical_block"
_INLINED = "DW_TAG_inlined_subroutine"
_CLONE = re.compile(
    r"\.(constprop|isra|part|cold|clone)\b"
)  #: in names of a function's copies for some of its calls
_CALLERS = 16  #: frames above a hit whose call sites are looked at
_PARAMETER = "DW_TAG_formal_parameter"


@frozen
class Variable:
    """A parameter or local variable.

    Attributes:
        name: of the variable.
        type: of the variable.
        parameter: which parameter it is, from 0; None: it is a local variable.
        die: its entry in this function (or copy), which has its location.
        origin: the entry that has its name and type; often `die` itself.
    """

    name: str
    type: CType
    parameter: int | None
    die: Any = field(repr=False)
    origin: Any = field(repr=False)


def entries(
    function: Function, address: int, own: bool = False
) -> Iterator[tuple[Any, Any, int | None]]:
    """Yield the parameters and variables that are in scope at an address, innermost blocks first.

    Without `own`, variables that only other inlined copies of a block have come, too (left_out):
    they hide others of their name, and have no value.

    Args:
        function: whose variables they are.
        address: a link address in it.
        own: True: without those of functions that stand inlined there.

    Yields:
        (entry, entry with its name and type, the index of a parameter of the function itself; else
        None).
    """
    order = _parameters(function.die)
    for block in _blocks(function, address, own):
        count = 0
        for die in children(block):
            if die.tag not in (_PARAMETER, "DW_TAG_variable"):
                continue
            origin = named(die)
            number = None
            if die.tag == _PARAMETER and block is function.die:
                number = order.get(origin.offset, count)
                count += 1
            yield die, origin, number
        if not own:
            for die in left_out(block):
                yield die, die, None


def left_out(block: Any) -> Iterator[Any]:
    """Yield the variables that other inlined copies of a block have and this copy has not: entries
    of the abstract origin that none of the block's entries refers to.

    Their values are not known, but they hide variables of the same name in the blocks around.

    Args:
        block: entry of the block or inlined call.
    """
    if "DW_AT_abstract_origin" not in block.attributes:
        return
    try:
        origin = block.get_DIE_from_attribute("DW_AT_abstract_origin")
        there = {
            die.get_DIE_from_attribute("DW_AT_abstract_origin").offset
            for die in children(block)
            if "DW_AT_abstract_origin" in die.attributes
        }
    except DAMAGE:
        return
    for die in children(origin):
        if die.tag in (_PARAMETER, "DW_TAG_variable") and die.offset not in there:
            yield die


def _blocks(function: Function, address: int, own: bool) -> list[Any]:
    """Return the entries of a function, and of its blocks and inlined calls, around an address.

    Args:
        function: the function.
        address: link address.
        own: True: without inlined calls, and the blocks in them.

    Returns:
        The entries, innermost first.
    """
    found = [function.die]
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag != _BLOCK and (own or die.tag != _INLINED):
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
    """Return the indices of the parameters in the declaration of a function that `die` is a copy
    of.

    A copy (for some calls, or out of line) may lack some of them, so that the order of its own
    entries does not tell a parameter's index.

    Args:
        die: the function's entry.

    Returns:
        offset of a parameter's entry in the abstract origin -> its index; {} where `die` has no
        abstract origin, or the debug information there is damaged.
    """
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


Found = Callable[[int], tuple[LoadedFile, Function] | None]


def enclosing(function: Function) -> Any | None:
    """Return the entry of the function in which a nested function stands.

    Returns:
        None: it stands in none, or does not know its frame (DW_AT_static_link).
    """
    if "DW_AT_static_link" not in function.die.attributes:
        return None
    return _enclosing(named(function.die))


def hosts_of(function: Function) -> Iterator[Any]:
    """Yield the entries of the functions around a nested function, innermost first: none where it
    does not know their frames (it has no DW_AT_static_link).
    """
    die = enclosing(function)
    while die is not None:
        yield die
        die = _enclosing(die)


def _enclosing(die: Any) -> Any | None:
    """Return the entry of the function around a function; None: there is none.

    Args:
        die: the inner function's entry that has its name.
    """
    around = die.get_parent()
    while around is not None and around.tag == _BLOCK:
        around = around.get_parent()
    if around is None or around.tag != "DW_TAG_subprogram":
        return None
    return named(around)


def variables_of(die: Any) -> Iterator[Any]:
    """Yield the entries of a function's parameters and variables, without those of its blocks.

    Args:
        die: the function's entry.
    """
    return (child for child in children(die) if child.tag in (_PARAMETER, "DW_TAG_variable"))


def _register_of(op: Any) -> int | None:
    """Return the DWARF number of the register that an operation names (reg, regx, regval_type, or
    breg with offset 0); None: it names none.
    """
    name = op.op_name.removeprefix("DW_OP_").removeprefix("GNU_")
    if name in ("regx", "regval_type"):
        return int(op.args[0])
    if name.startswith("breg") and name != "bregx" and op.args[0] == 0:
        return int(name[4:])
    return int(name[3:]) if re.fullmatch(r"reg\d+", name) else None


class FrameVariables:
    """Finds and reads a function's variables, at a hit in it or in a caller above the hit.

    Args:
        arch: the guest's.
        symbols: of the machine, whose files have call frame information.
        find: guest address -> (file, function) that has code there; None: none is known.
        file: that has the function.
        function: whose variables they are.
        regs: the registers at the hit.
        frame: the registers of the function's frame; None: the hit is in the function itself.
        depth: frames between the hit and this one.
    """

    def __init__(
        self,
        arch: Arch,
        symbols: Symbols,
        find: Found,
        file: LoadedFile,
        function: Function,
        regs: Regs,
        frame: UnwindFrame | None = None,
        depth: int = 0,
    ) -> None:
        self._arch = arch
        self._symbols = symbols
        self._find = find
        self._file = file
        self._function = function
        self._regs = regs
        # a call may be a function's last instruction
        self._at = regs.pc if frame is None else (frame.pc & ~arch.pointers.mode_bits) - 1
        self._pc = self._at - file.bias
        self._bias = file.bias
        self._depth = depth
        self.frame = UnwindFrame(arch, regs) if frame is None else frame

    def place(self, die: Any) -> ValuePlace:
        """Return where a variable is now.

        Args:
            die: the variable's entry.

        Raises:
            UnknownValue: it is not kept.
            GuestFault: guest memory cannot be read.
            errors in DAMAGE: the debug information is damaged.
        """
        return self.evaluated(location(die, self._function, self._pc))

    def evaluated(self, ops: Any) -> ValuePlace:
        """Evaluate an expression in this frame; return the place. Raises UnknownValue, GuestFault.

        Args:
            ops: the operations, as pyelftools parses them.
        """
        return evaluate(ops, self._around(self._frame_base))

    def _around(self, frame_base: Any) -> Surroundings:
        """Return what expressions of the function may ask of this frame.

        Args:
            frame_base: gives the address from which DW_OP_fbreg counts; None: the expression is the
                frame base itself, and may not ask for it.
        """
        unit = self._function.unit

        def indexed(number: int) -> int:
            return int(unit.dwarfinfo.get_addr(unit, number))

        def procedure(offset: int) -> Any:
            """Return the operations of the location of the entry at an offset in the unit."""
            return location(
                unit.get_DIE_from_refaddr(unit.cu_offset + offset), self._function, self._pc
            )

        return Surroundings(
            register=self.frame.get,
            word=self._regs.word,
            bits=self._arch.bits,
            order=self._arch.order.value,
            bias=self._bias,
            cfa=self._cfa,
            frame_base=frame_base,
            indexed=indexed,
            base_type=self._base_type,
            entered=self._entered,
            passed=self._passed,
            procedure=procedure,
            wide=self._in_register,
        )

    def _base_type(self, offset: int) -> BaseType:
        """Return the base type that an expression of the function's unit refers to.

        Args:
            offset: of the type's entry, in bytes from the start of the unit.

        Raises:
            UnknownValue: it is no integer, character, boolean or float of the guest's byte order.
        """
        unit = self._function.unit
        type = CType(
            unit.get_DIE_from_refaddr(unit.cu_offset + offset),
            self._arch.bits // 8,
            self._arch.order.value,
            lambda die: None,
        )
        if (
            type.kind not in ("int", "char", "bool", "float")
            or type.order != self._arch.order.value
        ):
            raise UnknownValue
        return BaseType(type.size, type.signed, type.kind == "float")

    def _cfa(self) -> int:
        """Return the canonical frame address.

        Raises:
            UnknownValue: there is no unwind information, or a register that it needs is not kept.
            GuestFault: guest memory cannot be read.
        """
        row = self._row()
        if row is None:
            raise UnknownValue
        return self.frame.cfa(row)

    def _row(self) -> Any:
        """Return the row of call frame information at this frame's instruction; None: there is
        none.
        """
        return Unwinder(self._arch, self._symbols).row(self._at)

    def _frame_base(self) -> int:
        """Return the address that DW_OP_fbreg counts from. Raises UnknownValue, GuestFault."""
        found = evaluate(
            location(self._function.die, self._function, self._pc, "DW_AT_frame_base"),
            self._around(None),
        )
        return self.frame.get(found.value) if found.kind == "register" else found.value

    # --- what the caller passed (DWARF 5, 2.5.1.7 and 3.4)

    def _entered(self, ops: Sequence[Any]) -> int | Typed:
        """Return what a register, or memory that it points at, had at the function's entry.

        The caller's call site tells: the compiler describes there what it passed.

        Args:
            ops: of DW_OP_entry_value: the register, then perhaps DW_OP_deref.

        Raises:
            UnknownValue: the caller's call site does not tell.
        """
        what = "data_value" if len(ops) == 2 and ops[1].op_name == "DW_OP_deref" else "value"
        wanted = _register_of(ops[0])
        if wanted is None or len(ops) > (1 if what == "value" else 2):
            raise UnknownValue
        caller, site = self._call
        for die in children(site):
            if "DW_AT_location" in die.attributes:
                given = location(die, caller._function, caller._pc)
                if len(given) == 1 and _register_of(given[0]) == wanted:
                    return caller._given(die, what)
        raise UnknownValue

    def _passed(self, offset: int) -> int | Typed:
        """Return the value that the caller passed for a parameter, as its call site tells.

        Args:
            offset: of the parameter's entry in the unit, in bytes.

        Raises:
            UnknownValue: the caller's call site does not tell.
        """
        parameter = self._function.unit.get_DIE_from_refaddr(self._function.unit.cu_offset + offset)
        caller, site = self._call
        for die in children(site):
            for link in ("DW_AT_call_parameter", "DW_AT_abstract_origin"):
                if (
                    link in die.attributes
                    and die.get_DIE_from_attribute(link).offset == parameter.offset
                ):
                    return caller._given(die, "value")
        raise UnknownValue

    def _given(self, die: Any, what: str) -> int | Typed:
        """Evaluate what a call site of this frame says of a parameter that it passes.

        Args:
            die: the parameter's entry in the call site.
            what: "value" of the parameter, or "data_value" of what it points at.

        Raises:
            UnknownValue: the entry does not tell, or it depends on what is not kept.
        """
        name = f"DW_AT_call_{what}"
        ops = location(
            die,
            self._function,
            self._pc,
            name if name in die.attributes else f"DW_AT_GNU_call_site_{what}",
        )
        return evaluate_number(ops, self._around(self._frame_base))

    @cached_property
    def _call(self) -> tuple[FrameVariables, Any]:
        """(the caller's frame, entry of its call site). UnknownValue: it may have called another
        function.
        """
        caller = self._caller()
        site = call_site(caller._function, caller._at + 1 - caller._bias)
        if site is None or not caller._calls(site, self):
            raise UnknownValue
        return caller, site

    def _caller(self) -> FrameVariables:
        """Return the caller's frame. A return address that a return probe has replaced counts as
        the original one.

        Raises:
            UnknownValue: there is none, it is too far up (_CALLERS), or nothing is known of its
                function.
            GuestFault: guest memory cannot be read.
        """
        row = self._row()
        above = self.frame.caller(row) if row is not None and self._depth < _CALLERS else None
        if above is None:
            raise UnknownValue
        seen = self._regs.true_return
        above.pc = self._arch.pointers.without_signature(above.pc)
        above.pc = above.pc if seen is None else seen(self._regs, above.pc)
        target = above.pc & ~self._arch.pointers.mode_bits
        found = self._find(target - 1)
        if found is None:
            raise UnknownValue
        file, function = found
        return FrameVariables(
            self._arch,
            self._symbols,
            self._find,
            file,
            function,
            self._regs,
            above,
            self._depth + 1,
        )

    def host(self, entered: bool) -> FrameVariables | None:
        """Return the frame of the call to the enclosing function that a nested function belongs to.

        GCC passes a nested function the address of that frame: DW_AT_static_link says where it is.

        Args:
            entered: True: this function has not made its frame yet. If the address is kept in that
                frame, UnknownValue is raised.

        Returns:
            The frame; None: the function stands in no other.

        Raises:
            UnknownValue: the address is not kept, or no frame above has it.
            GuestFault: guest memory cannot be read.
            errors in DAMAGE: the debug information is damaged.
        """
        around = enclosing(self._function)
        if around is None:
            return None
        link = location(self._function.die, self._function, self._pc, "DW_AT_static_link")
        if entered and any(op.op_name == "DW_OP_fbreg" for op in link):
            raise UnknownValue
        base = self.evaluated(link).value
        frame = self
        while True:  # until there is no caller
            frame = frame._caller()
            if is_same(named(frame._function.die), around) and frame._frame_base() == base:
                return frame

    def outermost(self) -> Iterator[Any]:
        """Yield the entries of parameters and variables of the function, without its blocks'."""
        return variables_of(self._function.die)

    def _calls(self, site: Any, callee: FrameVariables) -> bool:
        """Whether a call site surely called the function itself, not one that jumped to it (a tail
        call).

        So it is if the site names the function, or computes its address, and nothing tells that the
        function was reached in another way: tail calls from it to itself, or a copy of it
        (`f.part.0`) at its address.

        Args:
            site: entry of the call in this function.
            callee: the function that was reached.

        Raises:
            UnknownValue: the address that the site computes depends on what is not kept.
            GuestFault: guest memory cannot be read.
        """
        function = callee._function
        start = function.start + callee._bias
        told = callee_of(site)
        if told is not None and is_same(told, function.die):
            return not callee._jumps_to_itself()
        told = None if told is None else named(told)
        if told is None:
            target = next(
                (
                    name
                    for name in ("DW_AT_call_target", "DW_AT_GNU_call_site_target")
                    if name in site.attributes
                ),
                None,
            )
            reached = target is not None and start == evaluate_number(
                location(site, self._function, self._pc, target), self._around(self._frame_base)
            )
        elif is_same(told, named(function.die)):
            there = self._symbols.covering(start)
            reached = there is not None and there.address == start and not _CLONE.search(there.name)
        else:
            names = [
                text(told, name)
                for name in ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name", "DW_AT_name")
            ]
            symbol = self._symbols.find(next((name for name in names if name), ""))
            reached = symbol is not None and symbol.address == start
        return reached and not callee._jumps_to_itself()

    def _jumps_to_itself(self) -> bool:
        """Whether tail calls from this function may lead to it again, directly or through other
        functions. True where that is not known.
        """
        start = self._function.start
        seen: set[int] = set()
        todo = [self._function]
        while todo:
            function = todo.pop()
            for site in tail_calls(function):
                told = callee_of(site)
                if told is None or len(seen) > _CALLERS:
                    return True  # nothing is known of it
                if is_same(named(told), named(self._function.die)):
                    return True
                low = told.attributes.get("DW_AT_low_pc")
                if told.offset not in seen and low is not None and low.form in ADDRESS_FORMS:
                    seen.add(told.offset)
                    further = self._find(low.value + self._bias)
                    todo += (
                        [further[1]] if further is not None and further[1].start != start else []
                    )
        return False

    # --- what is there

    def _in_register(self, number: int, size: int) -> int:
        """Read a value from a register, as unsigned bits.

        Args:
            number: DWARF number of the register.
            size: bytes of the value.

        Raises:
            UnknownValue: the register is narrower, or how it holds such a value is not known.
        """
        value = self.frame.get(number)
        name = register(self._arch, number) or ""
        width = self._arch.regs.widths.get(name, self._arch.bits)
        if is_x87(self._arch, number):
            if size in (4, 8):
                return real_of_x87(value, size)
            if size < X87_SIZE:
                raise UnknownValue
            return value & (1 << 8 * X87_SIZE) - 1
        if 8 * size > max(width, self._arch.bits if not is_real(self._arch, number) else 0):
            raise UnknownValue
        kind = real_registers(self._arch) if is_real(self._arch, number) else "low"
        if not kind or (kind == "double" and size not in (4, 8)) or (kind == "word" and size > 4):
            raise UnknownValue
        if kind == "high":
            return value >> max(width, 64) - 8 * size
        if kind == "double" and size == 4:
            return single_of_double(value)
        return value & (1 << 8 * size) - 1

    def raw(self, place: ValuePlace, size: int) -> int:
        """Read the number at a place, unsigned.

        Args:
            place: where it is.
            size: its bytes.

        Raises:
            UnknownValue: not all of it is kept, or it is in a register that is not known.
            GuestFault: memory cannot be read.
        """
        order: Any = self._arch.order.value
        data, known = self.contents(place, size)
        if 0 in known:
            raise UnknownValue
        return int.from_bytes(data, order)

    def contents(self, place: ValuePlace, size: int) -> tuple[bytes, bytes]:
        """Read the bytes at a place, as memory would have them, and say which of them the compiler
        has kept.

        Args:
            place: where they are.
            size: how many.

        Returns:
            (the bytes, a byte for each of them: 0 where it is not kept, else 1).

        Raises:
            UnknownValue: they are in a register that is not known, or fewer than `size`.
            GuestFault: memory cannot be read.
        """
        order: Any = self._arch.order.value
        if place.kind == "pieces":
            return self._pieces(place.pieces, size)
        if place.kind == "nowhere":
            return bytes(size), bytes(size)
        if place.kind == "register":
            data = self._in_register(place.value, size).to_bytes(size, order)
        elif place.kind == "value" and size <= (place.size or self._arch.bits // 8):
            data = (place.value & (1 << 8 * size) - 1).to_bytes(size, order)
        elif place.kind == "bytes" and (
            len(place.data) == size or (len(place.data) > size and order == "little")
        ):
            data = place.data[:size]
        elif place.kind == "memory":
            data = self._regs.read(place.value, size)
        else:
            raise UnknownValue
        return data, b"\1" * size

    def _pieces(self, pieces: Sequence[Piece], size: int) -> tuple[bytes, bytes]:
        """Read a value whose parts are in several places.

        Args:
            pieces: places of the parts, from the lowest address on; what is missing is not kept.
            size: bytes of the value.

        Returns:
            (the bytes, a byte for each of them: 0 where it is not kept, else 1).

        Raises:
            UnknownValue: how the compiler splits values over registers is not known.
        """
        registers = sum(piece.place.kind == "register" for piece in pieces)
        if registers > 1 and not pairs_are_known(self._arch) and not is_of_gnu(self._function):
            raise UnknownValue
        missing = 8 * size - sum(piece.bits for piece in pieces)
        if missing > 0:
            pieces = [*pieces, Piece(missing, ValuePlace("nowhere"))]
        if any(piece.bits % 8 or piece.first for piece in pieces):
            return self._bits(pieces, size)
        data = known = b""
        for piece in pieces:
            some, kept = self.contents(piece.place, piece.bits // 8)
            data, known = data + some, known + kept
        return data[:size], known[:size]

    def _bits(self, pieces: Sequence[Piece], size: int) -> tuple[bytes, bytes]:
        """Read a value whose parts are no whole bytes.

        Args:
            pieces: places of the parts, in the order of memory: from the lowest bit on where the
                byte order is little, from the highest one on where it is big.
            size: bytes of the value.

        Returns:
            (the bytes, a byte for each of them: 0 where it is not kept, else 1).

        Raises:
            UnknownValue: they are in a register that is not known.
            GuestFault: memory cannot be read.
        """
        order: Any = self._arch.order.value
        value = known = at = 0
        for piece in pieces:
            ones = (1 << piece.bits) - 1
            some, is_kept = self._some_bits(piece)
            kept = ones if is_kept else 0
            if order == "little":
                value |= some << at
                known |= kept << at
            else:
                value = value << piece.bits | some
                known = known << piece.bits | kept
            at += piece.bits
        if order == "big":
            value >>= at - 8 * size
            known >>= at - 8 * size
        mask = (1 << 8 * size) - 1
        kept_bytes = (known & mask).to_bytes(size, order)
        return (value & mask).to_bytes(size, order), bytes(byte == 0xFF for byte in kept_bytes)

    def _some_bits(self, piece: Piece) -> tuple[int, bool]:
        """Read a part of a value as an unsigned number; it is not kept where the second is False.

        Bits of a register are counted from its lowest one on, bits of memory as its byte order
        counts them.
        """
        place = piece.place
        last = piece.first + piece.bits
        size = (last + 7) // 8
        shift = piece.first
        if self._arch.order.value == "big":
            if place.kind == "memory":
                shift = 8 * size - last
            elif place.kind == "register" and is_real(self._arch, place.value):
                size = max(size, 8)  # fewer bytes are not always the lowest ones
        some, kept = self.contents(place, size)
        number = int.from_bytes(some, self._arch.order.value)
        return number >> shift & (1 << piece.bits) - 1, 0 not in kept

    def sized(self, type: CType) -> CType:
        """Return an array's type with the lengths that it leaves to variables (a C array of
        variable length) filled in; a length that nothing tells stays None.

        Args:
            type: of an array; one whose lengths are all told, and any other type, is returned as it
                is.

        Raises:
            UnknownValue: a length is in a variable that is not kept.
            GuestFault: memory cannot be read.
            errors in DAMAGE: the debug information is damaged.
        """
        if type.kind != "array" or None not in type.dims or len(type.subranges) != len(type.dims):
            return type
        return Derived.array(
            type.element,
            tuple(
                n if n is not None else self._bound(type.subranges[i])
                for i, n in enumerate(type.dims)
            ),
        )

    def _bound(self, subrange: Any) -> int | None:
        """Return how many elements a dimension of an array has at this hit.

        Args:
            subrange: the dimension's entry in debug information.

        Returns:
            The number; None: the entry does not tell it.

        Raises:
            UnknownValue: the number is in a variable whose value is not kept at this instruction;
                or it is below 0: GCC's expressions for it may name registers that have something
                else by now; or the dimension's first index is not 0.
            GuestFault: memory cannot be read.
        """
        if (
            "DW_AT_lower_bound" in subrange.attributes
            and constant(subrange, "DW_AT_lower_bound") != 0
        ):
            raise UnknownValue
        for attribute, more in (("DW_AT_count", 0), ("DW_AT_upper_bound", 1)):
            if attribute in subrange.attributes:
                count = self._dynamic(subrange, attribute) + more
                if count < 0:
                    raise UnknownValue
                return count
        return None

    def _dynamic(self, die: Any, attribute: str) -> int:
        """Return the signed number of an attribute that refers to a variable, or has an expression:
        the variable's value, or the expression's.

        Args:
            die: has the attribute.
            attribute: its name, such as "DW_AT_upper_bound".

        Raises:
            UnknownValue: the variable is not kept.
            GuestFault: memory cannot be read.
        """
        form = die.attributes[attribute].form
        bits = self._arch.bits
        if form.startswith("DW_FORM_ref"):
            variable = die.get_DIE_from_attribute(attribute)
            type = CType(type_entry(variable), bits // 8, self._arch.order.value, lambda die: None)
            bits = 8 * type.size
            value = self.raw(self.place(variable), type.size)
        else:
            value = self.evaluated(location(die, self._function, self._pc, attribute)).value
        return value - (value >> bits - 1 << bits)
