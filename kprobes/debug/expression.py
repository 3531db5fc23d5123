"""DWARF expressions (DWARF 5, 2.5 and 2.6): a small stack machine over the guest's registers and memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import field, frozen

MOST: Final = 1000  #: operations of one evaluation


def _divided(left: int, right: int) -> int:
    """The quotient of signed numbers, rounded towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


#: operations on two unsigned numbers
_UNSIGNED: Final[dict[str, Callable[[int, int], int]]] = {
    "plus": operator.add, "minus": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": lambda a, b: a << b if b < 64 else 0, "shr": operator.rshift, "mod": operator.mod,
    "eq": operator.eq, "ne": operator.ne,
}
#: operations on two signed numbers (2.5.1.4 and 2.5.1.5)
_SIGNED: Final[dict[str, Callable[[int, int], int]]] = {
    "div": _divided, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}
_CONSTANTS: Final = {"addr", "const1u", "const2u", "const4u", "const8u", "constu", "const1s", "const2s", "const4s",
                     "const8s", "consts"}


class Unknown(Exception):
    """The expression is damaged, or of a kind that is not known here."""


@frozen(kw_only=True)
class Surroundings:
    """What an expression may ask for.

    Attributes:
        register: number -> value.
        word: (address, bytes) -> unsigned number.
        bits: of addresses.
        bias: added to addresses in the file.
        cfa: the function's canonical frame address; None where there is none.
        frame_base: what DW_OP_fbreg counts from; None where there is none.
        indexed: number of an address in the unit's table -> address in the file; None where there is no table.
    """

    register: Callable[[int], int]
    word: Callable[[int, int], int]
    bits: int
    bias: int = 0
    cfa: Callable[[], int] | None = None
    frame_base: Callable[[], int] | None = None
    indexed: Callable[[int], int] | None = None


@frozen
class Place:
    """Where something is.

    Attributes:
        kind: "memory", "register", "value" (the thing itself: a number), "bytes" (the thing itself), "pieces", or
            "nowhere" (a piece that is not kept).
        value: the address, the register's number, or the number.
        data: the bytes of "bytes".
        pieces: (bytes, where each of them is), in the order of the thing's bytes in memory.
    """

    kind: str
    value: int = 0
    data: bytes = b""
    pieces: tuple[tuple[int, Place], ...] = field(default=())


def evaluate(ops: Sequence[Any], around: Surroundings, first: Sequence[int] = ()) -> Place:
    """The place that an expression gives. Raises Unknown; GuestFault where guest memory is unreadable.

    Args:
        ops: the operations, as pyelftools parses them.
        around: what they refer to.
        first: what is on the stack before the first operation.
    """
    return _Machine(ops, around, first).run()


class _Machine:
    def __init__(self, ops: Sequence[Any], around: Surroundings, first: Sequence[int]) -> None:
        self._ops = ops
        self._around = around
        self._stack = [*first]
        self._mask = (1 << around.bits) - 1
        self._pieces: list[tuple[int, Place]] = []

    def run(self) -> Place:
        try:
            return self._run()
        except (IndexError, ZeroDivisionError, ValueError, TypeError, KeyError, OverflowError) as error:
            raise Unknown from error

    def _run(self) -> Place:
        place: Place | None = None  # a location description that nothing but pieces may follow
        at = 0
        steps = 0
        offsets = {op.offset: n for n, op in enumerate(self._ops)}
        while at < len(self._ops):
            op = self._ops[at]
            name, args = op.op_name.removeprefix("DW_OP_"), op.args
            at += 1
            steps += 1
            if steps > MOST:
                raise Unknown
            if name == "piece":
                self._pieces.append((args[0], place or self._top("nowhere")))
                place = None
                self._stack.clear()
            elif place is not None:
                raise Unknown  # nothing else goes with a register or a value
            elif name.startswith("reg") and not name.startswith("regval"):
                place = Place("register", args[0] if name == "regx" else int(name[3:]))
            elif name == "stack_value":
                place = Place("value", self._stack[-1] & self._mask)
            elif name == "implicit_value":
                place = Place("bytes", data=bytes(args[0]))
            elif name in ("skip", "bra"):
                if name == "skip" or self._stack.pop():
                    end = op.offset + 3 + args[0]
                    at = offsets[end] if end in offsets else len(self._ops)
            else:
                self._step(name, args)
        if self._pieces:
            return Place("pieces", pieces=tuple(self._pieces))
        return place or self._top("")

    def _top(self, otherwise: str) -> Place:
        """The address on top of the stack as a place. otherwise: the kind where the stack is empty; "": Unknown."""
        if not self._stack and otherwise:
            return Place(otherwise)
        return Place("memory", self._stack[-1] & self._mask)

    def _step(self, name: str, args: Sequence[Any]) -> None:
        stack, around = self._stack, self._around
        if name.startswith("lit"):
            stack.append(int(name[3:]))
        elif name in _CONSTANTS:
            stack.append(args[0] + (around.bias if name == "addr" else 0) & self._mask)
        elif name in ("addrx", "GNU_addr_index", "constx", "GNU_const_index"):
            if around.indexed is None:
                raise Unknown
            stack.append(around.indexed(args[0]) + (around.bias if "addr" in name else 0) & self._mask)
        elif name.startswith("breg"):
            number, offset = args if name == "bregx" else (int(name[4:]), args[0])
            stack.append(around.register(number) + offset & self._mask)
        elif name in _UNSIGNED or name in _SIGNED or name == "shra":
            right, left = stack.pop(), stack.pop()
            stack.append(self._binary(name, left, right) & self._mask)
        elif name == "plus_uconst":
            stack[-1] = stack[-1] + args[0] & self._mask
        elif name in ("fbreg", "call_frame_cfa"):
            base = around.frame_base if name == "fbreg" else around.cfa
            if base is None:
                raise Unknown
            stack.append(base() + (args[0] if name == "fbreg" else 0) & self._mask)
        elif name in ("deref", "deref_size"):
            stack[-1] = around.word(stack[-1], args[0] if name == "deref_size" else around.bits // 8)
        elif name in ("dup", "over", "pick"):
            stack.append(stack[-1 - {"dup": 0, "over": 1}.get(name, args[0] if args else 0)])
        elif name in ("drop", "swap", "rot", "neg", "not", "abs", "nop"):
            self._shuffle(name)
        else:
            raise Unknown

    def _binary(self, name: str, left: int, right: int) -> int:
        if name in _UNSIGNED:
            return int(_UNSIGNED[name](left, right))
        if name == "shra":
            return self._signed(left) >> min(right, self._around.bits)
        return int(_SIGNED[name](self._signed(left), self._signed(right)))

    def _signed(self, value: int) -> int:
        return value - (self._mask + 1) if value >> self._around.bits - 1 & 1 else value

    def _shuffle(self, name: str) -> None:
        stack = self._stack
        if name == "drop":
            stack.pop()
        elif name == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "rot":
            stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
        elif name == "abs":
            stack[-1] = abs(self._signed(stack[-1])) & self._mask
        elif name != "nop":
            stack[-1] = (-stack[-1] if name == "neg" else ~stack[-1]) & self._mask
