"""DWARF expressions (DWARF 5, 2.5 and 2.6): a small stack machine over the guest's registers and
memory.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import field, frozen

MOST: Final = 1000  #: operations of one evaluation


def _divided(left: int, right: int) -> int:
    """Return the quotient of two signed numbers, rounded towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


#: operations on two unsigned numbers
_UNSIGNED: Final[dict[str, Callable[[int, int], int]]] = {
    "plus": operator.add,
    "minus": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: a << b if b < 64 else 0,
    "shr": operator.rshift,
    "mod": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
}
#: operations on two signed numbers (2.5.1.4 and 2.5.1.5)
_SIGNED: Final[dict[str, Callable[[int, int], int]]] = {
    "div": _divided,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
#: operations on two numbers of one type
_TYPED: Final = {"plus", "minus", "mul", "div", "mod", "and", "or", "xor", "shl", "shr", "shra"}
_COMPARING: Final = {"eq", "ne", "lt", "le", "gt", "ge"}
_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_CONSTANTS: Final = {
    "addr",
    "const1u",
    "const2u",
    "const4u",
    "const8u",
    "constu",
    "const1s",
    "const2s",
    "const4s",
    "const8s",
    "consts",
}


class UnknownValue(Exception):
    """The expression is damaged, or of a kind that is not known here."""


@frozen
class BaseType:
    """A base type that an expression names (2.5.1).

    Attributes:
        size: bytes.
        signed: of integers.
        real: True for binary floating-point numbers of 4 or 8 bytes.
    """

    size: int
    signed: bool = False
    real: bool = False

    def number(self, raw: int) -> int | float:
        """Return the number that bits stand for.

        Args:
            raw: the bits, unsigned; those beyond the type's size are ignored.

        Raises:
            UnknownValue: a floating-point type has neither 4 nor 8 bytes.
        """
        raw &= (1 << 8 * self.size) - 1
        if self.real:
            return float(struct.unpack(self._format, raw.to_bytes(self.size, "little"))[0])
        return raw - (raw >> 8 * self.size - 1 << 8 * self.size) if self.signed else raw

    def raw(self, number: int | float) -> int:
        """Return a number's bits in this type, unsigned.

        Args:
            number: an integer is cut to the type's size, a floating-point number rounded to it.

        Raises:
            UnknownValue: a floating-point type has neither 4 nor 8 bytes.
        """
        if self.real:
            return int.from_bytes(struct.pack(self._format, number), "little")
        return int(number) & (1 << 8 * self.size) - 1

    @property
    def _format(self) -> str:
        """struct's format of a floating-point number of this size. Raises UnknownValue: there is
        none.
        """
        if self.size not in (4, 8):
            raise UnknownValue
        return "<f" if self.size == 4 else "<d"


@frozen
class Typed:
    """A number on the stack of an expression that has a type of its own; others are plain ints.

    Attributes:
        type: the number's type.
        raw: its bits, unsigned.
    """

    type: BaseType
    raw: int

    @property
    def number(self) -> int | float:
        """The number that the bits stand for in their type."""
        return self.type.number(self.raw)


@frozen(kw_only=True)
class Surroundings:
    """Answers an expression's questions about the stopped guest and its unit of debug information.

    Attributes:
        register: DWARF number of a register -> its value.
        word: (address, bytes) -> unsigned number in guest memory.
        bits: of addresses.
        order: the guest's byte order, "little" or "big".
        bias: bytes to add to an address in the file for the one in the guest.
        cfa: gives the function's canonical frame address; None: not known.
        frame_base: gives the address from which DW_OP_fbreg counts; None: not known.
        indexed: index in the unit's table of addresses -> address in the file; None: no table.
        base_type: offset of a base type's entry in the unit -> the type; None: types are not known.
        entered: operations that name a register, or memory at one -> what that was at the
            function's entry; None: nothing is known of the caller.
        passed: offset of a parameter's entry in the unit -> what the caller passed for it; None:
            nothing is known of the caller.
        procedure: offset of an entry in the unit -> the operations of its location, which
            DW_OP_call2 and call4 execute; None: there is no unit.
        wide: (DWARF number of a register, bytes) -> the lowest bytes of it, as unsigned bits; None:
            registers have no more than a word.
    """

    register: Callable[[int], int]
    word: Callable[[int, int], int]
    bits: int
    order: str = "little"
    bias: int = 0
    cfa: Callable[[], int] | None = None
    frame_base: Callable[[], int] | None = None
    indexed: Callable[[int], int] | None = None
    base_type: Callable[[int], BaseType] | None = None
    entered: Callable[[Sequence[Any]], int | Typed] | None = None
    passed: Callable[[int], int | Typed] | None = None
    procedure: Callable[[int], Sequence[Any]] | None = None
    wide: Callable[[int, int], int] | None = None


@frozen
class ValuePlace:
    """Where a value is, as an expression tells.

    Attributes:
        kind: "memory", "register", "value" (the value itself, as a number), "bytes" (the value
            itself, as bytes), "pieces" (its parts are in several places), "pointer" (the value
            is a pointer whose target has no address), or "nowhere" (optimized away).
        value: the address of "memory", the DWARF number of "register", the number of "value".
        data: the bytes of "bytes".
        pieces: where each part of the value is, in the order of its bytes in memory.
        size: bytes of "value"; 0: as many as an address has.
    """

    kind: str
    value: int = 0
    data: bytes = b""
    pieces: tuple[Piece, ...] = field(default=())
    size: int = 0


@frozen
class Piece:
    """One part of a value that is in several places (2.6.1.2).

    Attributes:
        bits: how many bits of the value this part has.
        place: where they are.
        first: bits of the place that come before them.
    """

    bits: int
    place: ValuePlace
    first: int = 0


def evaluate(ops: Sequence[Any], around: Surroundings, first: Sequence[int] = ()) -> ValuePlace:
    """Evaluate an expression that tells where a value is.

    Args:
        ops: the operations, as pyelftools parses them.
        around: gives registers, memory and what else operations ask for.
        first: numbers that are on the stack before the first operation, the last one on top.

    Raises:
        UnknownValue: the expression is damaged, or depends on what is not known.
        GuestFault: guest memory cannot be read.
    """
    return _Machine(ops, around, first).run()


def evaluate_number(ops: Sequence[Any], around: Surroundings) -> int | Typed:
    """Evaluate an expression whose result is a number, not a place.

    Args:
        ops: the operations, as pyelftools parses them.
        around: gives registers, memory and what else operations ask for.

    Returns:
        What is on top of the stack at the end, or the value of the register that the expression
        names.

    Raises:
        UnknownValue: the expression is damaged, gives another place, or depends on what is not
            known.
        GuestFault: guest memory cannot be read.
    """
    return _Machine(ops, around, ()).number()


class _Machine:
    """The stack machine that evaluates one expression; run() or number() is called once.

    Args:
        ops: the operations, as pyelftools parses them.
        around: gives registers, memory and what else operations ask for.
        first: numbers that are on the stack before the first operation, the last one on top.
    """

    def __init__(self, ops: Sequence[Any], around: Surroundings, first: Sequence[int]) -> None:
        self._ops = ops
        self._around = around
        self._stack: list[Any] = [*first]
        self._mask = (1 << around.bits) - 1
        self._pieces: list[Piece] = []
        self._steps = 0

    def run(self) -> ValuePlace:
        """Evaluate the expression, and return where its value is.

        Raises:
            UnknownValue: the expression is damaged, or depends on what is not known.
            GuestFault: guest memory cannot be read.
        """
        try:
            return self._run()
        except (
            IndexError,
            ZeroDivisionError,
            ValueError,
            TypeError,
            KeyError,
            OverflowError,
            struct.error,
        ) as error:
            raise UnknownValue from error

    def number(self) -> int | Typed:
        """Execute the expression and return its result as a number, not as a place.

        Returns:
            The top of the stack, or the value of the register that the expression names.

        Raises:
            UnknownValue: it is damaged, of an unknown kind, or gives another place.
            GuestFault: guest memory cannot be read.
        """
        try:
            place = self._executed(self._ops)
            if place is not None and place.kind == "register":
                return self._around.register(place.value)
            found: int | Typed = self._stack[-1]
        except (
            IndexError,
            ZeroDivisionError,
            ValueError,
            TypeError,
            KeyError,
            OverflowError,
            struct.error,
        ) as error:
            raise UnknownValue from error
        if self._pieces or (place is not None and place.kind != "value"):
            raise UnknownValue
        return found

    def _run(self) -> ValuePlace:
        """Do the work of run(), with Python's own errors (IndexError ..) where the expression is
        damaged.
        """
        place = self._executed(self._ops)
        if self._pieces:
            return ValuePlace("pieces", pieces=tuple(self._pieces))
        return place or self._top("")

    def _executed(self, ops: Sequence[Any]) -> ValuePlace | None:
        """Execute operations on `_stack`; append the pieces that they describe to `_pieces`.

        Args:
            ops: the operations: the whole expression, or a procedure that it calls.

        Returns:
            The place that the last operation names (a register, a value ..); None: the result is on
            the stack, or in `_pieces`.

        Raises:
            UnknownValue: the expression has executed more than MOST operations, or one that is not
                known.
            IndexError, ValueError and others, which callers turn into UnknownValue: they are
                damaged.
        """
        place: ValuePlace | None = None  # nothing but pieces may follow one
        at = 0
        offsets = {op.offset: n for n, op in enumerate(ops)}
        while at < len(ops):
            op = ops[at]
            name, args = op.op_name.removeprefix("DW_OP_").removeprefix("GNU_"), op.args
            at += 1
            self._steps += 1
            if self._steps > MOST:
                raise UnknownValue
            if name in ("piece", "bit_piece"):
                bits, first = (8 * args[0], 0) if name == "piece" else args
                self._pieces.append(Piece(bits, place or self._top("nowhere"), first))
                place = None
                self._stack.clear()
            elif name in ("nop", "uninit"):
                continue
            elif place is not None:
                raise UnknownValue  # nothing else goes with a register or a value
            elif name in ("skip", "bra"):
                if name == "skip" or self._truth(self._stack.pop()):
                    end = op.offset + 3 + args[0]
                    at = offsets[end] if end in offsets else len(ops)
            elif name in ("call2", "call4"):
                if self._around.procedure is None:
                    raise UnknownValue
                place = self._executed(self._around.procedure(args[0]))
            else:
                place = self._described(name, args)
                if place is None:
                    self._step(name, args)
        return place

    def _described(self, name: str, args: Sequence[Any]) -> ValuePlace | None:
        """Return the place that an operation names by itself, as DW_OP_reg3 or DW_OP_stack_value
        does.

        Args:
            name: of the operation, without DW_OP_.
            args: its operands.

        Returns:
            None: it is another operation, which _step() is to execute.
        """
        if name.startswith("reg") and not name.startswith("regval"):
            return ValuePlace("register", args[0] if name == "regx" else int(name[3:]))
        if name == "stack_value":
            top = self._stack[-1]
            if isinstance(top, Typed):
                return ValuePlace("value", top.raw, size=top.type.size)
            return ValuePlace("value", top & self._mask)
        if name == "implicit_value":
            return ValuePlace("bytes", data=bytes(args[0]))
        if name == "implicit_pointer":
            return ValuePlace("pointer")
        return None

    @staticmethod
    def _truth(top: Any) -> bool:
        """Whether an entry of the stack (an int, or a Typed) is not zero."""
        return bool(top.number if isinstance(top, Typed) else top)

    def _top(self, otherwise: str) -> ValuePlace:
        """Return the place in memory whose address is on top of the stack.

        Args:
            otherwise: kind of the place that is returned where the stack is empty; "": an error
                then.

        Raises:
            IndexError: the stack is empty, and `otherwise` is "".
            UnknownValue: the top of the stack is floating point.
        """
        if not self._stack and otherwise:
            return ValuePlace(otherwise)
        return ValuePlace("memory", self._address(self._stack[-1]) & self._mask)

    @staticmethod
    def _address(top: Any) -> int:
        """Return an entry of the stack as an integer. Raises UnknownValue: it is floating point."""
        if isinstance(top, Typed):
            if top.type.real:
                raise UnknownValue
            return int(top.number)
        return int(top)

    def _step(self, name: str, args: Sequence[Any]) -> None:
        """Execute an operation that works on the stack: take its operands from `_stack`, and push
        its result.

        Args:
            name: of the operation, without DW_OP_.
            args: its operands in the expression.

        Raises:
            UnknownValue: there is no such operation, or the surroundings lack what it needs.
            GuestFault: guest memory cannot be read.
            IndexError, ValueError and others, which callers turn into UnknownValue: the expression
                is damaged.
        """
        stack, around = self._stack, self._around
        if name.startswith("lit"):
            stack.append(int(name[3:]))
        elif name in _CONSTANTS:
            stack.append(args[0] + (around.bias if name == "addr" else 0) & self._mask)
        elif name in ("addrx", "addr_index", "constx", "const_index"):
            stack.append(
                _known(around.indexed)(args[0]) + (around.bias if "addr" in name else 0)
                & self._mask
            )
        elif name.startswith("breg"):
            number, offset = args if name == "bregx" else (int(name[4:]), args[0])
            stack.append(around.register(number) + offset & self._mask)
        elif name in _TYPED or name in _COMPARING:
            right, left = stack.pop(), stack.pop()
            stack.append(self._binary(name, left, right))
        elif name == "plus_uconst":
            stack.append(self._binary("plus", *self._alike(stack.pop(), args[0])))
        elif name in ("fbreg", "call_frame_cfa"):
            base = _known(around.frame_base if name == "fbreg" else around.cfa)
            stack.append(base() + (args[0] if name == "fbreg" else 0) & self._mask)
        elif name in ("deref", "deref_size"):
            size = args[0] if name == "deref_size" else around.bits // 8
            stack.append(around.word(self._address(stack.pop()) & self._mask, size))
        elif name in ("dup", "over", "pick"):
            stack.append(stack[-1 - {"dup": 0, "over": 1}.get(name, args[0] if args else 0)])
        elif name in ("drop", "swap", "rot"):
            self._shuffle(name)
        elif name in ("neg", "not", "abs"):
            stack.append(self._unary(name, stack.pop()))
        elif name == "entry_value":
            stack.append(_known(around.entered)(args[0]))
        elif name == "parameter_ref":
            stack.append(_known(around.passed)(args[0]))
        else:
            self._step_of_types(name, args)

    def _step_of_types(self, name: str, args: Sequence[Any]) -> None:
        """Execute an operation that names a base type (2.5.1).

        Args:
            name: of the operation, without DW_OP_.
            args: its operands.

        Raises:
            UnknownValue: there is no such operation or type.
            GuestFault: guest memory cannot be read.
            IndexError, ValueError and others, which callers turn into UnknownValue: the expression
                is damaged.
        """
        stack, around = self._stack, self._around
        if name == "regval_type":
            type = self._base(args[1])
            stack.append(
                Typed(
                    type,
                    around.register(args[0]) & (1 << 8 * type.size) - 1
                    if around.wide is None
                    else around.wide(args[0], type.size),
                )
            )
        elif name == "deref_type":
            type = self._base(args[1])
            stack.append(Typed(type, around.word(self._address(stack.pop()) & self._mask, args[0])))
        elif name == "const_type":
            type = self._base(args[0])
            order: Any = around.order
            stack.append(Typed(type, int.from_bytes(bytes(args[1]), order)))
        elif name in ("convert", "reinterpret"):
            stack.append(self._converted(stack.pop(), name == "convert", args[0]))
        else:
            raise UnknownValue

    def _base(self, offset: int) -> BaseType:
        """Return the base type at an offset in the unit. Raises UnknownValue: there is none."""
        found: BaseType = _known(self._around.base_type)(offset)
        return found

    def _converted(self, top: Any, convert: bool, offset: int) -> Any:
        """Return an entry of the stack as another type.

        Args:
            top: the entry: an int, or a Typed.
            convert: True: its value stays (DW_OP_convert); False: its bits stay
                (DW_OP_reinterpret).
            offset: of the type's entry in the unit; 0: the generic type, an address.

        Returns:
            An int of an address's width for the generic type, else a Typed.

        Raises:
            UnknownValue: there is no such type, or bits are to stay and it has another size.
        """
        number = top.number if isinstance(top, Typed) else top
        if not offset:
            if convert:
                return int(number) & self._mask
            return (top.raw if isinstance(top, Typed) else top) & self._mask
        type = self._base(offset)
        if convert:
            return Typed(type, type.raw(number))
        size = top.type.size if isinstance(top, Typed) else self._around.bits // 8
        if size != type.size:
            raise UnknownValue
        return Typed(type, top.raw if isinstance(top, Typed) else top)

    def _alike(self, left: Any, number: int) -> tuple[Any, Any]:
        """Return (left, number): the number as a Typed of left's type, where `left` has one.

        Args:
            left: an entry of the stack: an int, or a Typed.
            number: a constant of the operation.
        """
        return left, Typed(left.type, left.type.raw(number)) if isinstance(left, Typed) else number

    def _binary(self, name: str, left: Any, right: Any) -> Any:
        """Return the result of an operation on two entries of the stack.

        Args:
            name: of the operation, without DW_OP_.
            left: the lower entry: an int, or a Typed.
            right: the upper one; of any integer type where `left` is a Typed that is shifted.

        Returns:
            An int of an address's width for two ints, 0 or 1 for a comparison, else a Typed of
            left's type.

        Raises:
            UnknownValue: the entries have different types, or a floating-point number is shifted.
            ZeroDivisionError, KeyError: there is no such quotient, or operation for the type.
        """
        if not isinstance(left, Typed) and not isinstance(right, Typed):
            return self._generic(name, left, right) & self._mask
        if name in ("shl", "shr", "shra") and isinstance(left, Typed):
            return self._shifted(name, left, self._address(right))
        if not isinstance(left, Typed) or not isinstance(right, Typed) or left.type != right.type:
            raise UnknownValue
        if name in _COMPARING:
            return int(_COMPARED[name](left.number, right.number))
        return Typed(left.type, left.type.raw(self._result(name, left, right)))

    @staticmethod
    def _result(name: str, left: Typed, right: Typed) -> int | float:
        """Return the result of an operation on two numbers of one type, not yet cut to that type.
        Quotients of integers are rounded towards zero.

        Args:
            name: of the operation, without DW_OP_.
            left: the lower entry of the stack.
            right: the upper one.

        Raises:
            ZeroDivisionError: the right number is 0.
            KeyError: the operation is none of floating-point numbers, and they are.
        """
        one, two = left.number, right.number
        if left.type.real:
            made = {
                "plus": operator.add,
                "minus": operator.sub,
                "mul": operator.mul,
                "div": operator.truediv,
            }[name]
            return float(made(one, two))
        if name == "div":
            return _divided(int(one), int(two))
        if name == "mod":
            return int(one) - _divided(int(one), int(two)) * int(two)
        return int(_UNSIGNED[name](int(one), int(two)))

    @staticmethod
    def _shifted(name: str, left: Typed, by: int) -> Typed:
        """Shift a typed number to the left ("shl") or right ("shr", "shra": with its sign).

        Args:
            name: the operation.
            left: the number.
            by: bits.

        Raises:
            UnknownValue: the number is floating point.
        """
        bits = 8 * left.type.size
        if left.type.real:
            raise UnknownValue
        if name == "shl":
            return Typed(left.type, left.type.raw(int(left.number) << by) if by < bits else 0)
        signed = BaseType(left.type.size, signed=name == "shra").number(left.raw)
        return Typed(left.type, left.type.raw(int(signed) >> min(by, bits)))

    def _generic(self, name: str, left: int, right: int) -> int:
        """Return the result of an operation on two numbers without type, not yet cut to an
        address's width.

        Args:
            name: of the operation, without DW_OP_.
            left: the lower entry of the stack, unsigned.
            right: the upper one.
        """
        if name in _UNSIGNED:
            return int(_UNSIGNED[name](left, right))
        if name == "shra":
            return self._signed(left) >> min(right, self._around.bits)
        return int(_SIGNED[name](self._signed(left), self._signed(right)))

    def _signed(self, value: int) -> int:
        """Return an unsigned number of an address's width as a signed one."""
        return value - (self._mask + 1) if value >> self._around.bits - 1 & 1 else value

    def _unary(self, name: str, top: Any) -> Any:
        """Return an entry of the stack negated ("neg"), inverted ("not"), or its absolute value.

        Args:
            name: "neg", "not" or "abs".
            top: the entry: an int, or a Typed.
        """
        made: dict[str, Callable[[Any], Any]] = {
            "neg": operator.neg,
            "not": operator.inv,
            "abs": abs,
        }
        if isinstance(top, Typed):
            return Typed(top.type, top.type.raw(made[name](top.number)))
        return made[name](self._signed(top)) & self._mask

    def _shuffle(self, name: str) -> None:
        """Do DW_OP_drop, DW_OP_swap or DW_OP_rot: move the uppermost entries of the stack.

        Args:
            name: "drop", "swap" or "rot".
        """
        stack = self._stack
        if name == "drop":
            stack.pop()
        elif name == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        else:
            stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]


def _known(found: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a function of Surroundings, if it can be asked.

    Args:
        found: one of its attributes; None: it cannot be asked.

    Raises:
        UnknownValue: `found` is None.
    """
    if found is None:
        raise UnknownValue
    return found
