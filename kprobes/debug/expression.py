"""DWARF expressions (DWARF 5, 2.5 and 2.6): a small stack machine over the guest's registers and memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import frozen

MOST: Final = 1000  #: operations of one evaluation
_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "plus": operator.add, "minus": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: a << b if b < 64 else 0, "shr": operator.rshift, "div": lambda a, b: a // b,
    "mod": operator.mod,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_CONSTANTS: Final = {"addr", "const1u", "const2u", "const4u", "const8u", "constu", "const1s", "const2s", "const4s",
                     "const8s", "consts"}


class Unknown(Exception):
    """The expression is damaged, or of a kind that is not known here."""


@frozen(kw_only=True)
class Surroundings:
    """What an expression may ask for.

    Attributes:
        register: number -> value. word: (address, bytes) -> unsigned number. cfa, frame_base: of the function; None
            where there are none.
        bits: of addresses. bias: added to addresses in the file.
    """

    register: Callable[[int], int]
    word: Callable[[int, int], int]
    bits: int
    bias: int = 0
    cfa: Callable[[], int] | None = None
    frame_base: Callable[[], int] | None = None


@frozen
class Place:
    """Where something is. kind: "memory" (value is its address), "register" (its number), "value" (the thing
    itself)."""

    kind: str
    value: int


def evaluate(ops: Sequence[Any], around: Surroundings, first: Sequence[int] = ()) -> Place:
    """The place that an expression gives. Raises Unknown; GuestFault where guest memory is unreadable."""
    return _Machine(ops, around, first).run()


class _Machine:
    def __init__(self, ops: Sequence[Any], around: Surroundings, first: Sequence[int]) -> None:
        self._ops, self._around, self._stack = ops, around, [*first]
        self._mask = (1 << around.bits) - 1

    def run(self) -> Place:
        try:
            return self._run()
        except (IndexError, ZeroDivisionError, ValueError, TypeError, KeyError, OverflowError) as error:
            raise Unknown from error

    def _run(self) -> Place:
        kind = "memory"
        at, steps = 0, 0
        offsets = {op.offset: n for n, op in enumerate(self._ops)}
        while at < len(self._ops):
            op = self._ops[at]
            name, args = op.op_name.removeprefix("DW_OP_"), op.args
            at, steps = at + 1, steps + 1
            if steps > MOST:
                raise Unknown
            if name.startswith("reg") and not name.startswith("regval"):
                return Place("register", args[0] if name == "regx" else int(name[3:]))
            if name == "stack_value":
                kind = "value"
            elif name == "implicit_value":
                return Place("value", int.from_bytes(bytes(args[0]), "little"))
            elif name in ("skip", "bra"):
                if name == "skip" or self._stack.pop():
                    end = op.offset + 3 + args[0]
                    at = offsets[end] if end in offsets else len(self._ops)
            else:
                self._step(name, args)
        return Place(kind, self._stack[-1] & self._mask)

    def _step(self, name: str, args: Sequence[Any]) -> None:
        stack, around = self._stack, self._around
        if name.startswith("lit"):
            stack.append(int(name[3:]))
        elif name in _CONSTANTS:
            stack.append(args[0] + (around.bias if name == "addr" else 0))
        elif name.startswith("breg"):
            number, offset = args if name == "bregx" else (int(name[4:]), args[0])
            stack.append(around.register(number) + offset & self._mask)
        elif name in _BINARY:
            right, left = stack.pop(), stack.pop()
            stack.append(int(_BINARY[name](left, right)) & self._mask)
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
        elif name in ("drop", "swap", "neg", "not", "nop"):
            self._shuffle(name)
        else:
            raise Unknown

    def _shuffle(self, name: str) -> None:
        stack = self._stack
        if name == "drop":
            stack.pop()
        elif name == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name != "nop":
            stack[-1] = (-stack[-1] if name == "neg" else ~stack[-1]) & self._mask
