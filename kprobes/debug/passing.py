"""The places of parameters at a function's entry.

Debug information says it, except where a parameter lives in a frame that the function has not made
yet. There the calling convention says it, unless the compiler may have changed that: then the
parameter is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from attrs import field, frozen

from ..arch._base import Arch, Order, Results
from ..errors import Unsupported
from .btf_units import PRODUCER
from .convention import (
    call_rules,
    is_tried_rustc,
    result_parts,
    rust_parts,
    rust_result,
)
from .copying import NotTold, is_copied_by_function, tells_copying
from .expression import UnknownValue
from .file import DAMAGE, children, text
from .placing import ByReference, NotKnown, ParameterPart, PassingRules, is_empty
from .prototypes import FunctionConvention, Prototype
from .registers import facts, has_windows, register
from .scopes import Variable
from .signatures import type_entry
from .types import CType, constant
from .units import Function, is_of_gnu, location, named, takes_a_word

_RUST: Final = 0x1C
#: DW_LANG: whose functions are called as C's are: C89, C, C++, C99, Objective-C, Objective-C++,
#: C++03 ... C++20, C17
_LIKE_C: Final = {
    0x1,
    0x2,
    0x4,
    0xC,
    0x10,
    0x11,
    0x19,
    0x1A,
    0x1D,
    0x21,
    0x2B,
    0x2C,
    0x3A,
    0x3E,
    0x8001,
}
_C: Final = {0x1, 0x2, 0xC, 0x1D, 0x2C, 0x3E, 0x8001}
#: methods of Rust's traits of functions, whose last parameter has all arguments
_CALLS: Final = {"call", "call_mut", "call_once"}
_LARGE: Final = 16  #: bytes; Rust passes the address of what has more
_BY_REFERENCE, _BY_VALUE = 4, 5  #: DW_CC_pass_by_reference and DW_CC_pass_by_value
_OPTIMIZED: Final = re.compile(r"\s-O(\S*)")
_REGISTER_POINTS: Final = re.compile(r"DW_OP_breg(\d+)")
_REGISTER: Final = re.compile(r"DW_OP_(reg(\d+)|regx)")
#: operations that name no frame: what they give is true at the entry, too
_FRAMELESS: Final = re.compile(
    r"DW_OP_(reg\w+|lit\d+|const\w+|addr|addrx|stack_value|implicit_value|piece|plus\w*|minus|and|or|xor|shl|shra?|neg|not|"
    r"call_frame_cfa|nop|and|mul|div|mod|eq|ne|l[te]|g[te]|deref\w*|breg\w*|dup|over|pick|swap|drop|rot|bit_piece|"
    r"(GNU_)?(parameter_ref|convert|reinterpret|const_type|regval_type|deref_type|implicit_pointer|entry_value))"
)
_OF_A_FRAME: Final = re.compile(r"DW_OP_fbreg")
#: operations that mean the same in the whole function
_ALWAYS: Final = re.compile(
    r"DW_OP_(lit\d+|const\w+|addr|addrx|stack_value|implicit_value|piece|plus\w*|minus|GNU_parameter_ref)"
)
_OWN_CONVENTION: Final = "the function has a calling convention of its own"
NOT_KEPT: Final = "the compiler has not kept it at the entry"


def _has_gaps(ops: Sequence[Any]) -> bool:
    """Return True for a location with pieces of which some are nowhere."""
    names = ["DW_OP_piece", *(op.op_name for op in ops)]
    return ("DW_OP_piece", "DW_OP_piece") in pairwise(names)


@frozen
class Arrival:
    """Where a parameter is at a function's entry, or a result at its return.

    Attributes:
        kind: "argument" (the `number`-th word of the calling convention, from 0), "register" (in
            register `name`), "frame" (in memory, `number` bytes above the canonical frame address),
            "value" (always `number`), "place" (where its location expression says), "parts" (in
            `parts`), "refused" (it cannot be told, for `reason`).
        number: as `kind` says; a value is unsigned.
        name: of the register.
        reason: why it is refused, as one clause.
        parts: registers and memory that it is in; of a "place", only if that is several registers,
            or memory at the address in one.
    """

    kind: str
    number: int = 0
    name: str = ""
    reason: str = field(default="", kw_only=True)
    parts: tuple[ParameterPart, ...] = field(default=(), kw_only=True)


def refused(reason: str) -> Arrival:
    """Return the Arrival of a parameter that cannot be found.

    Args:
        reason: why, as a clause.
    """
    return Arrival("refused", reason=reason)


def is_of_btf(function: Function) -> bool:
    """Return True if only a function's prototype is known, from BTF."""
    return text(function.unit.get_top_DIE(), "DW_AT_producer") == PRODUCER


def _knows_rust(arch: Arch, function: Function) -> bool:
    """Return True if it is known how a Rust function is called: rustc's, on x86-64.

    Args:
        arch: the guest's CPU architecture.
        function: a Rust function.
    """
    producer = text(function.unit.get_top_DIE(), "DW_AT_producer")
    return facts(arch).convention == "sysv" and "rustc" in producer


def _passes_address(type: CType, language: int, producer: str) -> bool:
    """Whether C++ copies a structure by a function of its own, and so passes its address; False in
    C.

    Args:
        type: the structure.
        language: of the unit, a DW_LANG.
        producer: the unit's compiler.

    Raises:
        NotKnown: debug information does not say.
    """
    passing = constant(type.definition, "DW_AT_calling_convention")
    if passing == _BY_REFERENCE:
        return True
    if passing == _BY_VALUE or language in _C:
        return False
    if tells_copying(producer):
        with suppress(NotTold):
            return is_copied_by_function(type)
    raise NotKnown(
        "whether C++ copies it or a parameter before it by a function of its own is not told"
    )


def is_by_reference(type: CType) -> bool:
    """Whether C++ copies a structure of debug information by a function of its own.

    Raises:
        NotKnown: debug information does not say.
    """
    unit = type.definition.cu.get_top_DIE()
    language = constant(unit, "DW_AT_language") or 0
    return _passes_address(type, language, text(unit, "DW_AT_producer"))


def c_convention(
    arch: Arch,
    way: str,
    results: Results | None,
    by_reference: ByReference,
    variadic: bool,
) -> FunctionConvention:
    """Return how C functions of a file are called.

    Args:
        arch: the guest's.
        way: how the file's functions get floating-point numbers (RealFlags.ways); "": not told.
        results: where functions return structures; None: not known.
        by_reference: type -> whether C++ copies it by a function of its own.
        variadic: True for a function with `...`.
    """
    rules = call_rules(arch, way, variadic, results)

    def parameters(types: Sequence[CType], result: CType) -> list[tuple[ParameterPart, ...]]:
        """Return the parts of each argument; raises NotKnown."""
        if rules is None:
            raise NotKnown(f"how {arch.name} passes other types than words is not known")
        return rules.parameters(types, result, by_reference)

    return FunctionConvention(
        parameters, lambda type: result_parts(arch, rules, type, by_reference)
    )


class FunctionEntry:
    """Finds where a function's parameters are at its entry, and its result when it returns.

    Args:
        arch: the guest's.
        function: the function.
        pc: link address of the entry.
        variables: its parameters, in order.
        type_of: entry of a type, None for void -> the type.
        symbol: name of the symbol at the entry; "": there is none.
        way: how the functions of its file get floating-point numbers (RealFlags.ways); "": not
            told.
        results: where functions of the file return structures; None: not known.
    """

    def __init__(
        self,
        arch: Arch,
        function: Function,
        pc: int,
        variables: Sequence[Variable],
        type_of: Callable[[Any], CType],
        symbol: str,
        way: str,
        results: Results | None,
    ) -> None:
        self._arch = arch
        self._function = function
        self._pc = pc
        self._variables = variables
        self._type_of = type_of
        self._symbol = symbol
        self._way = way
        self._results = results

    @cached_property
    def _homes(self) -> list[bool]:
        """Whether each parameter lies at one place of the frame all the time."""
        return [self._has_home(variable.die) for variable in self._variables]

    def prototype(self) -> Prototype:
        """Return the function's types, by which it can be called.

        Raises:
            Unsupported: the compiler has changed how it is called.
        """
        why = self._changed() or self.result_changed()
        numbers = [variable.parameter for variable in self._variables]
        if not why and numbers != [*range(len(numbers))]:
            why = "the compiler has removed parameters"
        if why:
            raise Unsupported(
                f"the function cannot be called by its types: {why}",
                hint="prototype= says the types that the code has",
            )
        types = tuple(variable.type for variable in self._variables)
        variadic = self._is_variadic()
        if self._language() == _RUST:
            tried = self._is_tried_rustc()
            how = FunctionConvention(
                lambda types, result: rust_parts(types, result, tried),
                lambda type: rust_result(type, tried),
            )
        else:
            how = c_convention(self._arch, self._way, self._results, self._by_reference, variadic)
        return Prototype(self._result(), types, variadic, how)

    def arrivals(self) -> list[tuple[Variable, Arrival]]:
        """Return (parameter, where the caller puts it) of each parameter, in order."""
        return [(variable, self.arrival(n)) for n, variable in enumerate(self._variables)]

    def arrival(self, n: int) -> Arrival:
        """Return where a parameter is at the entry; refused, with a reason, if that is not known.

        Args:
            n: the parameter's number, from 0.
        """
        try:
            return self._by_debug_info(n)
        except UnknownValue:
            return refused(NOT_KEPT)
        except DAMAGE:
            return refused("its debug information is damaged")

    def result_changed(self) -> str:
        """Return why the function may return nothing, or its result elsewhere than others of its
        type do.

        LLVM gives a function of which it removed results or parameters a calling convention of its
        own (DW_CC_nocall); GCC calls a copy without result NAME.isra.N.

        Returns:
            A clause; "": it returns as the convention says.
        """
        if self._has_own_convention():
            return _OWN_CONVENTION
        if ".isra." in self._symbol:
            return "the compiler may have removed this copy's result"
        return ""

    def result(self) -> Arrival:
        """Return where the function's result is when it returns, of kind "parts" or "refused"."""
        if why := self.result_changed():
            return refused(why)
        language = self._language()
        rust = language == _RUST and _knows_rust(self._arch, self._function)
        if language not in _LIKE_C and not rust:
            return refused("how this language returns it is not known")
        try:
            type = self._result()
            if not rust:
                parts = result_parts(self._arch, self._rules(), type, self._by_reference)
            else:
                parts = rust_result(type, self._is_tried_rustc())
                why = self._changed() if any(part.kind == "given" for part in parts) else ""
                if why:
                    return refused(why)
        except NotKnown as error:
            parts = () if rust else self._in_memory(type)
            if not parts:
                return refused(str(error))
        except (UnknownValue, *DAMAGE):
            return refused("its debug information is damaged")
        return Arrival("parts", parts=parts) if parts else refused("it has no bytes")

    def _in_memory(self, type: CType) -> tuple[ParameterPart, ...]:
        """Return where a structure is that surely is returned in memory, at the address that the
        caller passes before the first argument.

        Args:
            type: of the function's result.

        Returns:
            (); it is no structure, or not surely in memory; or it is not known where the address
            is.
        """
        abi = self._arch.abi
        if abi is None or type.kind not in ("struct", "union"):
            return ()
        try:
            if self._hidden() != 1:
                return ()
        except DAMAGE:
            return ()
        if abi.args:
            return (ParameterPart("given", type.size, name=abi.args[0]),)
        # all arguments are on the stack, and the function returns the address
        return (ParameterPart("behind", type.size, name=abi.returns[0]),)

    def _by_debug_info(self, n: int) -> Arrival:
        """Return where a parameter is at the entry, by debug information if that can tell.

        Where that gives only a place in the frame, which is not set up yet, or no place for the
        entry, the calling convention tells. A constant is "value", or "place" if it does not fit a
        word; a parameter without location is refused, except of BTF, where the convention tells.

        Args:
            n: the parameter's number, from 0.

        Raises:
            UnknownValue: the compiler has not kept it.
            errors in DAMAGE: the debug information is damaged.
        """
        die, type = self._variables[n].die, self._variables[n].type
        if "DW_AT_const_value" in die.attributes:
            value = constant(die, "DW_AT_const_value")
            if value is None or not takes_a_word(type, self._arch):
                return Arrival("place")  # of a float, or of more than a word
            return Arrival("value", value & (1 << 8 * type.size) - 1)
        if "DW_AT_location" not in die.attributes:
            return self._by_convention(n) if is_of_btf(self._function) else refused(NOT_KEPT)
        try:
            ops = location(die, self._function, self._pc)
        except UnknownValue:  # the list begins behind the entry
            usual = self._by_convention(n)
            is_whole = [part.kind for part in usual.parts] == ["behind"]
            if type.kind in ("struct", "union") and self._may_lack_parts(type) and not is_whole:
                return refused(NOT_KEPT)
            return usual
        always = die.attributes["DW_AT_location"].form in (
            "DW_FORM_exprloc",
            "DW_FORM_block1",
            "DW_FORM_block",
        )
        return self._by_location(n, ops, always)

    def _by_location(self, n: int, ops: Sequence[Any], always: bool) -> Arrival:
        """Return where a parameter is, from the operations of its location.

        A location that holds for the whole function may be in the frame, which is not set up at the
        entry; then the calling convention says where the parameter is. Else the location itself
        counts: a register (_in_register), the caller's part of the stack ("frame"), or "place" for
        what can be evaluated at the entry.

        Args:
            n: the parameter's number, from 0.
            ops: the operations.
            always: True: the location holds in the whole function; False: it is listed for the
                entry.

        Raises:
            UnknownValue: there are no operations: the parameter is not kept.
        """
        names = [op.op_name for op in ops]
        if not names:
            raise UnknownValue
        single = (
            register(self._arch, self._number(ops[0]))
            if len(ops) == 1 and _REGISTER.fullmatch(names[0])
            else None
        )
        if single is not None:
            return self._in_other_registers(n, single) or self._in_register(n, single, always)
        if (
            len(ops) == 1
            and names[0] == "DW_OP_fbreg"
            and self._base_is_cfa()
            and self._passed_there(ops[0].args[0])
        ):
            return Arrival("frame", ops[0].args[0])
        if (
            _has_gaps(ops)
            and not any(map(_OF_A_FRAME.fullmatch, names))
            and self._may_lack_parts(self._variables[n].type)
        ):
            return self._kept_parts()
        if (
            all(
                _FRAMELESS.fullmatch(name) or (_OF_A_FRAME.fullmatch(name) and self._base_is_cfa())
                for name in names
            )
            and not always
        ):
            if self._does_not_tell(ops):
                usual = self._by_convention(n)
                if usual.kind == "parts" or (usual.kind == "refused" and self._begins_at_home(ops)):
                    return usual
            return Arrival("place", parts=self._behind(n, ops) or self._pieces(ops))
        if all(_ALWAYS.fullmatch(name) for name in names):
            return Arrival("place")
        return self._by_convention(n)

    def _may_lack_parts(self, type: CType) -> bool:
        """Return True if callers may leave out parts of a parameter.

        LLVM passes each word of a structure as a parameter of its own, and has callers pass
        anything for one that the function does not use.

        Args:
            type: of the parameter.
        """
        return type.size > self._arch.bits // 8 and not self._is_gnu()

    def _kept_parts(self) -> Arrival:
        """Return where a parameter is of which LLVM says that some parts are nowhere: at its
        location, of which these parts are not kept.

        On 32-bit guests, and where the byte order is big, LLVM may have the other parts at wrong
        offsets: the parameter is refused.
        """
        if self._arch.bits < 64 or self._arch.order is Order.BIG:
            return refused(NOT_KEPT)
        return Arrival("place")

    def _begins_at_home(self, ops: Sequence[Any]) -> bool:
        """Return True for a location in the area of the caller's frame where functions store the
        registers that pass arguments: at the entry nothing is there yet.

        Args:
            ops: the location's operations.
        """
        abi = self._arch.abi
        return abi is not None and any(
            _OF_A_FRAME.fullmatch(op.op_name) and 0 <= op.args[0] < abi.reserve for op in ops
        )

    def _does_not_tell(self, ops: Sequence[Any]) -> bool:
        """Return True for a location that cannot be taken at its word at a function's entry.

        That is one with a register that is not known here; with pieces of which some are nowhere,
        as at the entry none is; with pieces where compilers differ about their order; or in the
        frame, where functions store the registers that pass arguments: GCC names memory for a
        structure of which the function has yet to store the first words.

        Args:
            ops: the location's operations.
        """
        names = [op.op_name for op in ops]
        if _has_gaps(ops):
            return True
        if facts(self._arch).pairs_reversed and "DW_OP_piece" in names:
            return True
        abi = self._arch.abi
        if abi is not None and abi.reserve and any(map(_OF_A_FRAME.fullmatch, names)):
            return True
        return any(
            _REGISTER.fullmatch(op.op_name) and register(self._arch, self._number(op)) is None
            for op in ops
        )

    def _in_other_registers(self, n: int, name: str) -> Arrival | None:
        """Return where the calling convention passes a parameter of which a register is said to be
        the place that passes none of it, or passes it in the register's upper bytes.

        LLVM names the register to which the function's first instructions move the parameter.

        Args:
            n: the parameter's number, from 0.
            name: of the register.

        Returns:
            None: the parameter is a word, or the register may be right.
        """
        if takes_a_word(self._variables[n].type, self._arch):
            return None
        usual = self._by_convention(n)
        if usual.kind != "parts":
            return None
        if any(part.name == name and not part.offset for part in usual.parts):
            return None
        return usual

    def _behind(self, n: int, ops: Sequence[Any]) -> tuple[ParameterPart, ...]:
        """Return the part of a parameter that lies where a register points; () for another one.

        Args:
            n: the parameter's number, from 0.
            ops: the operations of its location.
        """
        found = _REGISTER_POINTS.fullmatch(ops[0].op_name)
        if len(ops) != 1 or found is None or ops[0].args != [0]:
            return ()
        name = register(self._arch, int(found[1]))
        if name is None:
            return ()
        return (ParameterPart("behind", self._variables[n].type.size, name),)

    def _pieces(self, ops: Sequence[Any]) -> tuple[ParameterPart, ...]:
        """Return the registers that a location joins to one value.

        Args:
            ops: the operations: register, piece, register, piece ..

        Returns:
            The parts in the order of bytes; () where the location is not of this form.
        """
        if len(ops) % 2:
            return ()
        parts = list[ParameterPart]()
        for op, piece in zip(ops[::2], ops[1::2], strict=True):
            if not _REGISTER.fullmatch(op.op_name) or piece.op_name != "DW_OP_piece":
                return ()
            name = register(self._arch, self._number(op))
            if name is None:
                return ()
            parts.append(ParameterPart("register", piece.args[0], name))
        if facts(self._arch).pairs_reversed and not self._is_gnu():
            parts.reverse()
        return tuple(parts)

    @staticmethod
    def _number(op: Any) -> int:
        """Return the DWARF number of the register that an operation names."""
        return (
            int(op.args[0])
            if op.op_name == "DW_OP_regx"
            else int(op.op_name.removeprefix("DW_OP_reg"))
        )

    def _in_register(self, n: int, name: str, always: bool) -> Arrival:
        """Return where a parameter is whose location is one register.

        Args:
            n: the parameter's number, from 0.
            name: of the register.
            always: True: the location holds in the whole function, and the parameter may be copied
                there only after the entry; False: it is listed for the entry.

        Returns:
            "place" for one that is no word; "register" where it is there at the entry: the location
            is listed for that, or the register passes parameters, and no copy is made (optimized
            code, and that of other compilers than GNU's). Else what the calling convention says
            where that is the same register or a refusal, or "refused". The convention also answers
            for LLVM's first half of a longer parameter, and for a register of a window not entered
            yet.
        """
        abi = self._arch.abi
        type = self._variables[n].type
        if not takes_a_word(type, self._arch):
            if abi is not None and name in abi.args and type.size > self._arch.bits // 8:
                return self._by_convention(n)  # LLVM says where its first half is, and no more
            return Arrival("place")
        if has_windows(self._arch) and name.startswith(
            "i"
        ):  # the window is not the function's own yet
            return self._by_convention(n)
        passes = abi is not None and name in (*abi.args, *abi.pointers)
        if not always or (passes and (self._optimized() or not self._is_gnu())):
            return Arrival("register", name=name)
        usual = self._by_convention(n)
        if usual.kind == "refused":
            return usual
        if (
            usual.kind == "argument"
            and abi is not None
            and abi.args[usual.number : usual.number + 1] == (name,)
        ):
            return usual
        return refused("it is copied to a register of its own behind the entry")

    def _base_is_cfa(self) -> bool:
        """Return True if the frame base (DW_OP_fbreg) is the canonical frame address."""
        base = location(self._function.die, self._function, self._pc, "DW_AT_frame_base")
        return [op.op_name for op in base] == ["DW_OP_call_frame_cfa"]

    def _passed_there(self, offset: int) -> bool:
        """Return True if the caller has written the parameter that lies at an offset in the stack.

        That is so for the stack at and above the canonical frame address, unless the architecture's
        callers reserve room there in which the function itself stores its register arguments.

        Args:
            offset: bytes above the canonical frame address.
        """
        abi, linkage = self._arch.abi, self._arch.linkage
        return (
            abi is not None
            and linkage is not None
            and offset >= 0
            and not abi.reserve
            and not abi.upwards
        )

    # --- the calling convention

    def _by_convention(self, n: int) -> Arrival:
        """Return where a parameter is by the C calling convention: "argument", "register" where
        pointers are counted apart, or "parts"; refused if that cannot be told.

        Args:
            n: the parameter's number, from 0.
        """
        arch, abi = self._arch, self._arch.abi
        if abi is None:
            return refused(f"{arch.name} has no calling convention here")
        why = self._changed()
        if why:
            return refused(why)
        if self._language() == _RUST and any(map(self._may_be_an_item, self._variables[: n + 1])):
            return refused("a function's item, which has no bytes, is described as a pointer")
        if [v.parameter for v in self._variables[: n + 1]] != [*range(n + 1)]:
            return refused("the compiler has removed parameters")
        words = all(takes_a_word(v.type, arch) for v in self._variables[: n + 1])
        if not words or (self._language() == _RUST and not self._returns_a_word()):
            return self._in_parts(n)
        hidden = self._hidden()
        if hidden is None:
            return refused(
                "how the function's result is returned is not known, and may move parameters"
            )
        if abi.pointers:
            return self._counted_apart(n, hidden)
        return Arrival("argument", n + hidden)

    def _in_parts(self, n: int) -> Arrival:
        """Return where a parameter is by the calling convention, where it or one before it is no
        word: "parts", or refused.

        Args:
            n: the parameter's number, from 0.
        """
        rules = self._rules()
        if rules is None:
            return refused(
                "it or a parameter before it takes more than a word, or is none of the integers"
            )
        types = [v.type for v in self._variables[: n + 1]]
        try:
            if self._language() == _RUST:
                parts = rust_parts(types, self._result(), self._is_tried_rustc())[n]
            else:
                parts = rules.parameters(types, self._result(), self._by_reference)[n]
        except NotKnown as error:
            return refused(str(error))
        if not parts and (not types[n].size or types[n].kind in ("struct", "union")):
            return refused("it has no bytes")
        if not parts:
            return refused("which floating-point register it is in is not known")
        return Arrival("parts", parts=parts)

    def _rules(self) -> PassingRules[Any] | None:
        """Return the convention of C functions of the file; None: it is not known."""
        return call_rules(self._arch, self._way, self._is_variadic(), self._results)

    def _is_variadic(self) -> bool:
        """Return True for a function with `...` behind its parameters."""
        return any(
            die.tag == "DW_TAG_unspecified_parameters"
            for function in (self._function.die, named(self._function.die))
            for die in children(function)
        )

    def _by_reference(self, type: CType) -> bool:
        """Whether C++ passes a structure by its address. Raises NotKnown where that is not told."""
        producer = text(self._function.unit.get_top_DIE(), "DW_AT_producer")
        return _passes_address(type, self._language(), producer)

    def _counted_apart(self, n: int, hidden: int) -> Arrival:
        """Return where a parameter is if pointers and integers have registers of their own: a
        "register", or refused if there are too few.

        Args:
            n: the parameter's number, from 0.
            hidden: number of arguments in front of the first parameter, 0 or 1: a result's address.
        """
        abi = self._arch.abi
        assert abi is not None
        pointer = self._variables[n].type.kind == "pointer"
        before = (
            sum((v.type.kind == "pointer") is pointer for v in self._variables[:n])
            + hidden * pointer
        )
        names = abi.pointers if pointer else abi.args
        return (
            Arrival("register", name=names[before])
            if before < len(names)
            else refused("it is on the stack")
        )

    def _changed(self) -> str:
        """Return a reason why the compiler may have put parameters elsewhere than the convention
        says.

        That is so for a convention of the function's own, another language than Rust and those
        like C, Rust where _changed_in_rust() says so, a copy for some calls, and a function that is
        neither external nor has all parameters in its frame, unoptimized.

        Returns:
            A clause; "": they are where it says.
        """
        die, origin = self._function.die, named(self._function.die)
        if self._has_own_convention():
            return _OWN_CONVENTION
        language = self._language()
        words = all(takes_a_word(v.type, self._arch) for v in self._variables)
        if language == _RUST:
            why = self._changed_in_rust(words)
            if why:
                return why
        elif language not in _LIKE_C:
            return "how this language passes parameters is not known"
        if "DW_AT_abstract_origin" in die.attributes and (not self._symbol or "." in self._symbol):
            return "the compiler has made this copy of the function for some of its calls"
        external = any("DW_AT_external" in each.attributes for each in (die, origin))
        if self._has_homes() and not self._optimized():
            return ""
        return "" if external else "the compiler may have changed how this function is called"

    def _has_own_convention(self) -> bool:
        """Return True for a function whose calling convention is not that of others."""
        return any(
            "DW_AT_calling_convention" in each.attributes
            and constant(each, "DW_AT_calling_convention") != 1
            for each in (self._function.die, named(self._function.die))
        )

    def _may_be_an_item(self, variable: Variable) -> bool:
        """Return True for a parameter of a generic Rust function that is a pointer to a function.

        rustc describes a function's own type, which has no bytes, in the same way; only a generic
        function can have a parameter of it.

        Args:
            variable: a parameter of the function.
        """
        target = variable.type.target if variable.type.kind == "pointer" else None
        generic = any(
            die.tag == "DW_TAG_template_type_param"
            for function in (self._function.die, named(self._function.die))
            for die in children(function)
        )
        return generic and target is not None and target.kind == "function"

    def _has_homes(self) -> bool:
        """Return True if all parameters lie in the frame all the time, as in unoptimized code.

        rustc moves addresses of Rust's larger values between registers and the frame all the same.
        """
        if self._language() != _RUST or not any(self._homes):
            return all(self._homes)
        large = [variable.type.size > _LARGE for variable in self._variables]
        return all(home or moved for home, moved in zip(self._homes, large, strict=True))

    def _changed_in_rust(self, words: bool) -> str:
        """Return why a Rust function's parameters may be elsewhere, as a clause; "": they are not.

        Args:
            words: True: all parameters are integers or pointers of at most a word.
        """
        if not (words and self._returns_a_word()) and not _knows_rust(self._arch, self._function):
            return "how this language passes parameters is not known"
        name = text(named(self._function.die), "DW_AT_name")
        types = [variable.type for variable in self._variables]
        if name.startswith("{") and "_env#" not in (types[0].name if types else ""):
            return "what a closure has captured is passed before its parameters"
        if name.partition("<")[0] in _CALLS and types and types[-1].name.startswith("("):
            return "Rust passes the members of the last parameter one by one"
        return ""

    def _hidden(self) -> int | None:
        """Return the number of arguments before the first parameter: 1 for the address of a result.

        Returns:
            0 or 1; None: it is not known whether the result is returned in memory.
        """
        result = self._result()
        if result.kind in ("void", "bool", "char", "enum", "pointer"):
            return 0
        if result.kind in ("int", "float") and result.size <= 8:
            return 0
        rules = self._rules()
        if rules is not None and self._language() in _LIKE_C:
            try:
                return int(rules.is_in_memory(result, self._by_reference))
            except NotKnown:
                return None
        if is_empty(result) and facts(self._arch).convention == "sysv":
            return 0
        results = self._results
        if results is None or not result.size:
            return None
        if results.apart:
            return 0
        if result.is_vector:
            return None
        if result.kind not in ("struct", "union", "array"):
            return 0 if results.wide and result.size <= 16 else None
        if result.size > results.memory:
            return 1
        # C++ returns by reference what has a copy constructor; whether it has is not always told
        try:
            if self._by_reference(result):
                return 1
        except NotKnown:
            return None
        if result.size > results.registers:
            return 1 if results.floats and not _has_floats(result) else None
        return 0 if _aligned(result) else None

    def _result(self) -> CType:
        """Return the type of the function's result."""
        return result_of(self._function, self._type_of)

    def _returns_a_word(self) -> bool:
        """Return True if the function returns nothing, or at most a word."""
        result = self._result()
        return result.kind == "void" or takes_a_word(result, self._arch)

    def _language(self) -> int:
        """Return the language of the unit, a DW_LANG; 0 where it is not told."""
        return constant(self._function.unit.get_top_DIE(), "DW_AT_language") or 0

    def _is_gnu(self) -> bool:
        """Return True if GCC has compiled the unit.

        LLVM keeps parameters of unoptimized code in frames.
        """
        return is_of_gnu(self._function)

    def _is_tried_rustc(self) -> bool:
        """Return True if is_tried_rustc() of the function's compiler."""
        return is_tried_rustc(text(self._function.unit.get_top_DIE(), "DW_AT_producer"))

    def _optimized(self) -> bool:
        """Return True if the unit says that GCC has compiled it with optimization; False for other
        compilers.
        """
        producer = text(self._function.unit.get_top_DIE(), "DW_AT_producer")
        levels = _OPTIMIZED.findall(producer) if producer.startswith("GNU") else []
        return bool(levels) and levels[-1] != "0"

    def _has_home(self, die: Any) -> bool:
        """Whether a parameter lies at one place of the function's frame all the time.

        Args:
            die: the parameter's entry.
        """
        found = die.attributes.get("DW_AT_location")
        if found is None or found.form not in (
            "DW_FORM_exprloc",
            "DW_FORM_block1",
            "DW_FORM_block",
        ):
            return False
        try:
            names = [op.op_name for op in location(die, self._function, self._pc)]
        except (UnknownValue, *DAMAGE):
            return False
        return bool(names) and (names[0] == "DW_OP_fbreg" or names[0].startswith("DW_OP_breg"))


def result_of(function: Function, type_of: Callable[[Any], CType]) -> CType:
    """Return the type of a function's result.

    Args:
        function: the function.
        type_of: entry of a type, None for void -> the type.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    for die in (function.die, named(function.die)):
        if "DW_AT_type" in die.attributes:
            return type_of(type_entry(die))
    return type_of(None)


def _aligned(type: CType) -> bool:
    """Whether all members of a structure are at multiples of their sizes, those of inner ones as
    well; bit fields do not matter. False as well where the places of members are not known.

    A structure that is not so (packed) is passed in memory.
    """
    for member in type.members.values():
        inner = member.type
        if inner.kind in ("struct", "union"):
            if not _aligned(inner):
                return False
        elif inner.kind == "array":
            inner = inner.element
        if (
            inner.kind not in ("struct", "union")
            and not member.bits
            and inner.size
            and member.offset % inner.size
        ):
            return False
    return not type.hidden


def _has_floats(type: CType) -> bool:
    """Whether a structure has a floating-point member, or members that are not known."""
    inner = [m.type.element if m.type.kind == "array" else m.type for m in type.members.values()]
    return (
        bool(type.hidden)
        or any(each.kind in ("float", "complex", "other") for each in inner)
        or any(_has_floats(each) for each in inner if each.kind in ("struct", "union"))
    )
