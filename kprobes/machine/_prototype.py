"""Calls whose arguments or result are floating-point numbers: by a prototype, which is given as
text or comes from debug information.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, Final

from attrs import frozen

from ..arch._base import Arch, Order
from ..arguments import SORTS, kind_of, look
from ..errors import BadArgument, Unsupported
from ..regs import Regs, real_bits, real_of
from ._passing import Argument, ArgumentMemory, Passing


@frozen
class PassedType:
    """A type of a parameter or result.

    Attributes:
        kind: "real" (a floating-point number), "word" (an integer or a pointer), or "void".
        size: bytes; 0: a register's, of an argument behind `...`.
        signed: of an integer: it is negative where its highest bit is set.
        pointer: True: a "word" that is a pointer.
    """

    kind: str
    size: int
    signed: bool = False
    pointer: bool = False


@frozen
class Prototype:
    """The types of a function.

    Attributes:
        result: of the function's result.
        parameters: of its parameters, in order.
        variadic: True: more arguments may follow.
    """

    result: PassedType
    parameters: tuple[PassedType, ...]
    variadic: bool = False


VOID: Final = PassedType("void", 0)
#: Words of C and of its headers that are types by themselves -> (kind, bytes, signed); 0 bytes: a
#: register's.
_NAMED: Final = {
    "void": ("void", 0, False),
    "float": ("real", 4, True),
    "double": ("real", 8, True),
    "bool": ("word", 1, False),
    "_Bool": ("word", 1, False),
    "size_t": ("word", 0, False),
    "uintptr_t": ("word", 0, False),
    "ssize_t": ("word", 0, True),
    "intptr_t": ("word", 0, True),
    "ptrdiff_t": ("word", 0, True),
    **{f"int{8 * n}_t": ("word", n, True) for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}_t": ("word", n, False) for n in (1, 2, 4, 8)},
}
_INTEGERS: Final = {"char": 1, "short": 2, "int": 4, "long": 0}
_QUALIFIERS: Final = {"const", "volatile", "restrict", "extern", "static", "inline", "register"}
#: Words that make another type of one before them, or after.
_NO_NAMES: Final = {*_INTEGERS, "signed", "unsigned", "float", "double", "complex", "_Complex"}
_DECLARATION: Final = re.compile(r"([^()]*)\(([^()]*)\)\s*;?\s*")


def parsed(text: str, arch: Arch) -> Prototype:
    """Read a prototype as C writes it: "double pow(double, double)". Names may be left out.

    Args:
        text: the prototype.
        arch: the guest's, which says how wide `long` is.

    Raises:
        BadArgument: it is no prototype, or has a type that is not understood: understood are
            numbers of C and stdint.h, void, and pointers.
    """
    look("prototype", text, SORTS["str"])
    found = _DECLARATION.fullmatch(text.strip())
    if found is None:
        raise BadArgument(
            f"{text!r} is no prototype", hint='write it as C does: "double pow(double, double)"'
        )
    given = [one.strip() for one in found[2].split(",")] if found[2].strip() else []
    variadic = given[-1:] == ["..."]
    parameters = [_type(one, arch) for one in given[: len(given) - variadic]]
    if parameters == [VOID]:
        parameters = []
    if VOID in parameters:
        raise BadArgument(f"{text!r} has a parameter of type void", hint="leave it out")
    return Prototype(_type(found[1], arch), tuple(parameters), variadic)


def _type(text: str, arch: Arch) -> PassedType:
    """Return the type of a parameter, or of the result, of a prototype.

    Args:
        text: the type, and a name behind it or not.
        arch: the guest's.

    Raises:
        BadArgument: the type is not understood.
    """
    word = arch.bits // 8
    if "*" in text or "[" in text:
        return PassedType("word", word, pointer=True)
    words = [one for one in text.split() if one not in _QUALIFIERS]
    named = [one for one in words[1:] if one not in _NO_NAMES]
    if words and words[0] in _NAMED and len(words) <= 2 and named == words[1:]:
        kind, size, signed = _NAMED[words[0]]
        return PassedType(kind, size or (word if kind == "word" else 0), signed)
    known = {*_INTEGERS, "signed", "unsigned"}
    numbers = [one for one in words if one in known]
    name = words[len(numbers) :]
    if not numbers or words[: len(numbers)] != numbers or len(name) > 1 or _NO_NAMES & {*name}:
        raise BadArgument(
            f"the type of {text.strip()!r} is not understood",
            hint="numbers of C and stdint.h, void and pointers are; double, not long double",
        )
    if "long" in numbers:
        size = 8 if numbers.count("long") == 2 else word
    else:
        size = next((_INTEGERS[one] for one in numbers if one in ("char", "short")), 4)
    signed = "unsigned" not in numbers
    if "char" in numbers and arch.abi is not None and not arch.abi.char_signed:
        signed = "signed" in numbers
    return PassedType("word", size, signed)


def of_debug(debug: Any, address: int) -> Prototype | None:
    """Return the prototype that debug information has of a function. It is never variadic: `...`
    is not looked at.

    Args:
        debug: the machine's DebugInfo.
        address: of the function, without mode bits.

    Returns:
        None: nothing is known of it.

    Raises:
        Unsupported: a type is neither a number of at most 8 bytes nor a pointer.
    """
    variables, result = debug.parameters(address), debug.result(address)
    if variables is None or result is None:
        return None
    return Prototype(_of_ctype(result), tuple(_of_ctype(one.type) for one in variables))


def _of_ctype(type: Any) -> PassedType:
    """Return the type of a value from its CType.

    Raises:
        Unsupported: it is of another kind than _type() understands.
    """
    if type.kind == "void":
        return VOID
    if type.kind == "float" and type.size in (4, 8):
        return PassedType("real", type.size, True)
    if type.kind in ("int", "char", "bool", "enum", "pointer") and type.size <= 8:
        signed = type.kind in ("int", "char", "enum") and bool(type.signed)
        return PassedType("word", type.size, signed, type.kind == "pointer")
    raise Unsupported(
        f"{type.name} cannot be passed or returned in a call with floating-point numbers",
        python="set registers and use run()",
    )


def has_real(arguments: Iterable[object]) -> bool:
    """Return True if an argument is a float."""
    return any(isinstance(one, float) for one in arguments)


class TypedPassing(Passing):
    """The arguments of a guest call whose types are known, and its result."""

    def __init__(
        self, memory: ArgumentMemory, arguments: Sequence[Any], prototype: Prototype
    ) -> None:
        """Check the arguments of a call, and find their places. Nothing is written to the guest.

        Args:
            memory: the guest's, where buffers and strings will be copied to.
            arguments: as of Passing; for a floating-point parameter a float or an integer.
            prototype: the types of the function.

        Raises:
            BadArgument: an argument cannot be passed as its parameter's type, or there are too few
                or too many.
            Unsupported: it is not known how the architecture passes such numbers.
        """
        many = len(prototype.parameters)
        if len(arguments) < many or (len(arguments) > many and not prototype.variadic):
            raise BadArgument(
                f"{len(arguments)} arguments are given, and the function has {many}",
                hint="pass one for each; prototype= says other types",
            )
        arch = memory.arch
        reals = None if arch.abi is None else arch.abi.reals
        types = [*prototype.parameters]
        more = arguments[many:]
        types += [PassedType("real", 8) if isinstance(one, float) else _WORD for one in more]
        numbers = [type for type in (*types, prototype.result) if type.kind == "real"]
        self.has_reals = bool(numbers)
        wide = any(type.kind == "word" and 8 * type.size > arch.bits for type in types)
        if (numbers and reals is None) or wide:
            what = "64-bit integers" if wide else "floating point"
            raise Unsupported(
                f"how {arch.name} passes {what} is not known here",
                python="set registers and use run()",
            )
        if reals is not None and reals.spare and has_real(more):
            raise Unsupported(f"{arch.name} passes floating point behind `...` otherwise")
        apart = () if arch.abi is None else arch.abi.pointers
        pointers = [_is_pointer(one, type) for one, type in zip(arguments, types, strict=True)]
        if apart and (prototype.result.pointer or sum(pointers) > len(apart)):
            raise Unsupported(
                f"{arch.name} returns pointers elsewhere, and passes {len(apart)} in registers",
                python="set registers and use run()",
            )
        words: list[Any] = []
        for place, (value, type) in enumerate(zip(arguments, types, strict=True), 1):
            words.append(_number(place, value) if type.kind == "real" else _extended(value, type))
        super().__init__(
            memory,
            [value for value, type in zip(words, types, strict=True) if type.kind != "real"],
            _not_floats(arguments, types),
        )
        self._types = types
        self._pointers = pointers
        self._values = words
        self._reals = reals
        self._result = prototype.result

    def set_up(self, regs: Regs) -> None:
        """Set registers and stack as at function entry, but for the return address."""
        arch = self._arch
        abi, linkage = arch.abi, arch.linkage
        if abi is None or linkage is None:
            raise Unsupported(f"{arch.name} has no calling convention")
        integers = iter([self._word(one) for one in self._arguments])
        in_registers, placed, taken = self._placed(integers, len(abi.args))
        spilled = max((place + 1 for place, _ in placed), default=0) - len(abi.args)
        self._make_room(regs, abi, linkage.pushed, max(spilled, 0) * (arch.bits // 8))
        for place, word in placed:
            abi.set_argument(regs, place, word)
        for name, word in in_registers:
            regs[name] = word
        if self._reals is not None and self._reals.count:
            regs[self._reals.count] = taken

    def _placed(
        self, integers: Any, many: int
    ) -> tuple[list[tuple[str, int]], list[tuple[int, int]], int]:
        """Return where the arguments go: pointers to registers of their own where the ABI has them.

        Args:
            integers: yields those that are no floating-point numbers, as words.
            many: registers that the architecture has for integers.

        Returns:
            (name, value) of floating-point registers and those of pointers; (number as of
            Abi.set_argument(), value) of the others; how many floating-point registers are taken.

        Raises:
            Unsupported: a number of 8 bytes goes where there are 4.
        """
        abi = self._arch.abi
        apart = iter(() if abi is None else abi.pointers)
        free = list(self._reals.registers) if self._reals is not None else []
        in_registers: list[tuple[str, int]] = []
        placed: list[tuple[int, int]] = []
        word, stack, taken = 0, many, 0
        for value, type, pointer in zip(self._values, self._types, self._pointers, strict=True):
            real = type.kind == "real"
            bits = real_bits(value, type.size) if real else next(integers)
            if real and free:
                in_registers.append((free.pop(0), self._in_register(bits, type.size)))
                taken += 1
                continue
            if pointer and (name := next(apart, None)) is not None:
                in_registers.append((name, bits))
                continue
            if real and 8 * type.size > self._arch.bits:
                raise Unsupported("more floating-point arguments than registers for them")
            spare = not real or (self._reals is not None and self._reals.spare)
            if spare and word < many:
                placed.append((word, bits))
                word += 1
            else:
                placed.append((stack, bits))
                stack += 1
        return in_registers, placed, taken

    def _in_register(self, bits: int, size: int) -> int:
        """Return the value of a floating-point register that holds a number.

        Args:
            bits: of the number.
            size: its bytes, 4 or 8.
        """
        if size == 8 or self._reals is None:
            return bits
        if self._reals.high:
            return bits << 32
        return bits | 0xFFFFFFFF_00000000 if self._reals.boxed else bits

    def result(self, regs: Regs) -> Any:
        """Return the function's result as a value of its type; None for void."""
        type = self._result
        if type.kind == "void":
            return None
        if type.kind == "real":
            assert self._reals is not None
            bits = regs[self._reals.result]
            return real_of(bits >> 32 if self._reals.high and type.size == 4 else bits, type.size)
        word = regs.return_value
        if 8 * type.size > self._arch.bits:
            assert self._arch.abi is not None
            more = regs[self._arch.abi.returns[1]]
            if self._arch.order is Order.BIG:
                word, more = more, word
            word |= more << self._arch.bits
        width = 8 * type.size
        value = word & (1 << width) - 1
        return value - (1 << width) if type.signed and value >> width - 1 else value


#: type of an argument behind `...` that is no float
_WORD: Final = PassedType("word", 0)


def _extended(value: Any, type: PassedType) -> Any:
    """Return an argument that is no floating-point number as functions rely on it: what stands for
    a negative number of a signed type, as 0xFF for a signed char, becomes that number, -1. All
    others are returned as they are.

    Args:
        value: the argument.
        type: of the parameter.
    """
    sign = 1 << 8 * type.size - 1 if type.size else 0
    if type.signed and isinstance(value, int) and sign <= value < 2 * sign:
        return value - 2 * sign
    return value


def _is_pointer(value: object, type: PassedType) -> bool:
    """Return True if an argument is a pointer: by its type, or behind `...`, where it is of type
    _WORD, because it is a buffer or text.

    Args:
        value: the argument.
        type: of the parameter.
    """
    return type.pointer or (
        type is _WORD and value is not None and not isinstance(value, (int, float))
    )


def _number(place: int, value: object) -> float:
    """Return an argument for a floating-point parameter as a float.

    Args:
        place: number of the argument, from 1 on, for the error.
        value: the argument.

    Raises:
        BadArgument: it is no number, or an integer beyond the largest float.
    """
    try:
        return value if isinstance(value, float) else float(index(value))  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        raise BadArgument(
            f"argument {place} is {kind_of(value)}, and the parameter a floating-point number",
            hint="pass a float or an integer",
        ) from None


def _not_floats(arguments: Sequence[object], types: Sequence[PassedType]) -> list[int]:
    """Return the numbers, from 1 on, of the arguments that go where integers do.

    Args:
        arguments: of the call.
        types: of each.

    Raises:
        BadArgument: one of them is a float.
    """
    places = [n for n, type in enumerate(types, 1) if type.kind != "real"]
    for place in places:
        if isinstance(arguments[place - 1], float):
            raise BadArgument(
                f"argument {place} is a float, and the parameter an integer or a pointer",
                hint="pass an integer",
            )
    return places


def passing_of(
    memory: ArgumentMemory,
    arguments: Sequence[Argument | float],
    prototype: str | None,
    debug: Callable[[], Any],
    entry: Callable[[], int],
) -> Passing:
    """Return the arguments of a call that has a prototype or a float.

    Args:
        memory: the guest's.
        arguments: of the call.
        prototype: as C writes it; None: debug information has it, and an argument is a float.
        debug: () -> the machine's DebugInfo.
        entry: () -> address of the function, without mode bits; called where `prototype` is None.

    Raises:
        BadArgument: there is no prototype, or it or an argument is wrong.
        Unsupported: it is not known how the architecture, or a file of the program, passes such
            numbers.
    """
    if prototype is None:
        types = of_debug(debug(), entry())
    else:
        types = parsed(prototype, memory.arch)
    if types is None:
        place = next(n for n, one in enumerate(arguments, 1) if isinstance(one, float))
        raise BadArgument(
            f"argument {place} is {kind_of(arguments[place - 1])}, and the function's types are "
            "not known",
            hint='say them, as in prototype="double f(double, int)"; debug information also does',
        )
    passing = TypedPassing(memory, arguments, types)
    if passing.has_reals and not debug().doubles_in_registers():
        raise Unsupported(
            "the program's file says that floating-point numbers are passed otherwise (soft-float)",
            python="set registers and use run()",
        )
    return passing
