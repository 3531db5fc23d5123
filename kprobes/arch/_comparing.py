"""Instructions that compare two values, for fuzzers: the row that `arch/<family>/comparing.py` has.

A fuzzer that sees how many bytes of both values are equal finds a magic number byte by byte. Only
comparisons that guest code branches on or keeps the outcome of are meant, and only those whose
values are in registers, in the instruction, or in memory at an address of two registers and a
constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

__all__ = ["Comparing", "OperandComparison", "Value", "constant", "register"]


@frozen
class Value:
    """A side of a comparison: the sum of its parts, or what memory holds at that address.

    Attributes:
        base: number in `Registers.names` of a register; None: there is none.
        index: number of a second register; None: there is none.
        constant: what is added, with its sign.
        memory: the sum is an address.
    """

    base: int | None = None
    index: int | None = None
    constant: int = 0
    memory: bool = False


def register(number: int) -> Value:
    """Return the Value that is a register's, by its number in `Registers.names`."""
    return Value(number)


def constant(value: int) -> Value:
    """Return the Value that is a number in the instruction."""
    return Value(constant=value)


@frozen
class OperandComparison:
    """The operands that an instruction compares.

    Attributes:
        bits: of both values: 16, 32 or 64; in memory they have as many.
        one: the left side.
        other: the right side.
    """

    bits: int
    one: Value
    other: Value


@frozen
class Comparing:
    """The instructions that compare.

    Attributes:
        find: (bytes of an instruction and of what follows it, its address) -> what it compares;
            None: it does not, or its values cannot be said.
    """

    MODULE: ClassVar[str] = "comparing"

    find: Callable[[bytes, int], OperandComparison | None]
