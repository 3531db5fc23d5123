"""Contexts that are lists of a function's arguments and its result, as fentry's and fexit's are.

A list has a word of 64 bits for each argument that is a number or a pointer, and for the result. A
structure of at most 16 bytes has as many words as its bytes fill. Debug information says which
registers and memory they are in.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from ..arch._base import Arch
from ..errors import KprobeError
from .code import Code
from .context import ARGUMENT, RESULT, WORDS, reader, word_of
from .verifier.facts import Facts

if TYPE_CHECKING:
    from ..debug.info import DebugInfo
    from ..debug.passing import Arrival
    from ..debug.types import CType
    from ..regs import Regs

_MASK: Final = (1 << 64) - 1
_WORD: Final = 8
#: bytes of a structure that a list has at most, as in Linux
_LARGEST: Final = 16
_NUMBERS: Final = ("int", "char", "bool", "enum")
_STRUCTURES: Final = ("struct", "union")


@frozen
class ListWord:
    """A word of a list.

    Attributes:
        read: (registers at the entry, of a result at the return) -> the word; 0 where memory cannot
            be read.
        word: number of the word of a probe's context that has the same; None: none has.
        reason: why there is no such word, as a clause; "": there is.
        given: of a result in memory: register that has its address at the entry, which is the word.
    """

    read: Callable[[Regs], int] = lambda regs: 0
    word: int | None = None
    reason: str = ""
    given: str = ""


@frozen
class ListLayout:
    """The words of a function's list: fentry's, which has arguments, and fexit's, with the result.

    Attributes:
        arguments: the words of its arguments.
        result: the word of its result.
    """

    arguments: tuple[ListWord, ...]
    result: ListWord

    @property
    def is_plain(self) -> bool:
        """True where a probe's context has all words of the arguments that there are."""
        return all(each.word is not None or each.reason for each in self.arguments)

    def check(self, code: Code, facts: Facts, at_return: bool) -> None:
        """Check that a program reads no word that its list does not have.

        Args:
            code: the program.
            facts: what its verification has found.
            at_return: True where the list has the result.

        Raises:
            ProgramError: it reads one.
        """
        for pc, access in facts.accesses.items():
            if access.kind == "ctx" and access.offset is not None:
                self.check_word(code, pc, access.offset // _WORD, at_return)

    def check_word(self, code: Code, pc: int, n: int, at_return: bool) -> None:
        """Check that a list has a word.

        Args:
            code: the program that reads it.
            pc: slot of the instruction that does.
            n: number of the word, from 0.
            at_return: True where the list has the result.

        Raises:
            ProgramError: it has not.
        """
        count = len(self.arguments)
        words = [*self.arguments, self.result] if at_return else self.arguments
        what = "the result" if n == count else f"word {n + 1} of its arguments"
        if n >= len(words):
            raise code.error(f"reads {what}, and the function's arguments have {count}", pc)
        if words[n].reason:
            raise code.error(f"reads {what}: {words[n].reason}", pc)


class ArgumentList:
    """Makes the contexts of calls that are lists, in Python."""

    def __init__(self, layout: ListLayout) -> None:
        """Begin. layout: of the function."""
        self._layout = layout

    def arguments(self, regs: Regs) -> list[int]:
        """Return the words of the arguments at the function's entry, and one more for of_call().

        The last word is the address that a result in memory will have; 0 where the caller gives
        no such address.
        """
        words = [each.read(regs) for each in self._layout.arguments]
        given = self._layout.result.given
        return [*words, regs[given] & _MASK if given else 0]

    def of_call(self, arguments: Sequence[int], regs: Regs | None) -> bytes:
        """Return the context of a call, in the host's byte order.

        Args:
            arguments: what arguments() gave at the call's entry.
            regs: registers at the return; None: the call has not returned, and the result is 0.
        """
        result = 0
        if regs is not None:
            result = arguments[-1] if self._layout.result.given else self._layout.result.read(regs)
        return struct.pack(f"={len(arguments)}Q", *arguments[:-1], result)


def known_layout(debug: DebugInfo, arch: Arch, address: int) -> ListLayout | None:
    """Return the layout of a function, from debug information.

    Args:
        debug: of the guest.
        arch: the guest's architecture.
        address: of the function's entry.

    Returns:
        None: debug information does not know the function.
    """
    if debug.parameters(address) is None:
        return None
    words = list[ListWord]()
    for variable, arrival in debug.arrivals(address):
        words += _argument(debug, arch, variable, arrival)
    return ListLayout(tuple(words), _result(debug, arch, address))


def _word_of_context(arch: Arch, word: int) -> ListWord:
    """Return the word of a list that a probe's context has, too.

    Where `word` is beyond the context, the result has the reason "too many" and reads 0.

    Args:
        arch: the guest's architecture.
        word: its number there.
    """
    return ListWord(reader(arch, word), word) if word < WORDS else ListWord(reason="too many")


def _argument(debug: DebugInfo, arch: Arch, variable: Any, arrival: Arrival) -> list[ListWord]:
    """Return the words of one argument.

    Args:
        debug: of the guest.
        arch: the guest's architecture.
        variable: the parameter.
        arrival: where the caller puts it.
    """
    type = variable.type
    reason = arrival.reason or _why_not(type)
    count = max(1, -(-type.size // _WORD)) if type.size <= _LARGEST else 1
    if reason:
        name = variable.name or "an argument"
        return [ListWord(reason=f"{name} is not in it: {reason}")] * count
    if arrival.kind == "argument":
        return [_word_of_context(arch, ARGUMENT + arrival.number)]
    if arrival.kind == "register" and type.kind not in _STRUCTURES:
        word = word_of(arch, arrival.name)
        if word is not None:
            return [_word_of_context(arch, word)]

    def reading(n: int) -> Callable[[Regs], int]:
        """Return the function that reads the n-th word of the argument."""
        return _quietly(lambda regs: debug.arrived(variable, arrival, regs), type, n)

    return [ListWord(reading(n)) for n in range(count)]


def _why_not(type: CType) -> str:
    """Return why a list has no value of a type, as a clause; "": it has."""
    if type.kind in _STRUCTURES and type.size > _LARGEST:
        return f"{type.name} has {type.size} bytes, and {_LARGEST} are the most"
    if type.kind in (*_NUMBERS, *_STRUCTURES, "pointer", "function") and type.size <= _LARGEST:
        return ""
    if type.kind == "float" and type.size <= _WORD:
        return ""
    return f"programs cannot read a {type.name}"


def _result(debug: DebugInfo, arch: Arch, address: int) -> ListWord:
    """Return the word of a function's result.

    It has a `reason` where the result's place is not known, or more than 8 bytes are in registers.
    A function without a known type of result has the word of the context's result.

    Args:
        debug: of the guest; it knows the function.
        arch: the guest's architecture.
        address: of the function's entry.
    """
    plain = _word_of_context(arch, RESULT)
    type = debug.result(address)
    if type is None or type.kind in ("void", "other"):
        return plain
    if type.kind not in (*_STRUCTURES, "float") and 8 * type.size <= arch.bits:
        return plain
    arrival = debug.result_arrival(address)
    if arrival is None or arrival.reason:
        return evolve(plain, reason=arrival.reason if arrival is not None else "it is not known")
    first = arrival.parts[0]
    if first.kind == "given":
        return ListWord(given=first.name)
    if first.kind == "behind":  # in memory, whose address a register has at the return
        return ListWord(lambda regs: regs[first.name] & _MASK)
    if type.size > _WORD:
        return evolve(plain, reason=f"{type.name} has {type.size} bytes in registers")
    parts = arrival.parts
    return ListWord(_quietly(lambda regs: debug.in_parts(type, parts, regs), type, 0))


def _quietly(read: Callable[[Regs], Any], type: CType, n: int) -> Callable[[Regs], int]:
    """Return a function that reads a word of a value; it returns 0 where that fails.

    Args:
        read: (registers) -> the value, a number or a View; None where it cannot be read.
        type: of the value.
        n: number of the word, from 0.
    """

    def quiet(regs: Regs) -> int:
        """Return the word; 0 where reading it fails."""
        try:
            value = read(regs)
            if value is None:
                return 0
            if type.kind in _STRUCTURES:
                data = bytes(value)[_WORD * n : _WORD * n + _WORD].ljust(_WORD, b"\0")
                return int.from_bytes(data, sys.byteorder)
            if type.kind == "float":
                packed = struct.pack("=f" if type.size < _WORD else "=d", value)
                return int.from_bytes(packed, sys.byteorder)
            return int(value) >> 64 * n & _MASK
        except KprobeError:
            return 0

    return quiet
