"""A call as one types it: `--call` of the command, and of campaigns.

It is read by hand and not by Python's parser, as most of it means something else there: symbols
have colons and angle brackets, 'a' is a number, 017 is octal, escapes are C's (\\e, \\1), and
@input and &NAME are arguments.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from attrs import evolve, frozen

from .errors import BadArgument, EventError, GuestFault, KprobeError, NotText

if TYPE_CHECKING:
    from .machine.unicorn.machine import UnicornMachine

_HEAD = re.compile(r"\s*([^\s()'\",]+)\s*\(\s*")
_LITERAL = re.compile(
    r"(?P<input>@input\b|len\b)|(?P<number>[+-]?\.?\d(?:[eE][+-]|[\w.])*)"
    r"|(?P<char>'(?:\\.|[^'\\])+')"
    r'|b?"(?P<text>(?:\\.|[^"\\])*)"'
    r"|(?P<address>&?)\s*(?P<name>[A-Za-z_.$][\w.$@:]*)(?:\s*\+\s*(?P<offset>\w+))?",
    re.A | re.S,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-3]?[0-7]{1,2})|(.?))|[^\\]+", re.DOTALL)
_ESCAPES = dict(zip("abtnvfre\\'\"?", b"\a\b\t\n\v\f\r\x1b\\'\"?", strict=True))


class Input(enum.Enum):
    """Arguments that a campaign fills in for each input."""

    BYTES = "@input"
    LENGTH = "len"


@frozen
class NamedAddress:
    """An argument that is the address of a symbol: `&buffer`, `&buffer+8`, or `function`.

    Attributes:
        name: of the symbol.
        offset: bytes behind it.
        explicit: True where it is written with &.
    """

    name: str
    offset: int
    explicit: bool

    def resolved(self, machine: UnicornMachine) -> int:
        """Return the address, with the mode bits of a function's.

        Args:
            machine: has the symbols.

        Raises:
            KprobeError: there is no such symbol.
            BadArgument: without an & it is a variable, whose value might be meant.
        """
        symbol = machine.symbols[self.name]
        if not self.explicit and symbol.kind == "object" and symbol.size <= machine.arch.bits // 8:
            raise BadArgument(
                f"{self.name} is a variable", hint=f"write &{self.name} for its address"
            )
        mode = 0 if self.offset else symbol.mode
        return (symbol.address | mode) + self.offset


@frozen
class Call:
    """A parsed `--call`.

    Attributes:
        text: the call as written.
        function: symbol or address.
        args: integers; text and b"bytes" as bytes (the machine appends a NUL); what a campaign
            fills in; addresses of symbols, which are no arguments until resolved().
        columns: where the function, and each argument, begins in `text`.
    """

    text: str
    function: str | int
    args: tuple[int | bytes | Input | NamedAddress, ...]
    columns: tuple[int, ...]

    def with_input(self, content: bytes = b"") -> list[int | bytes]:
        """Return the call's arguments, with `@input` and `len` replaced by an input and its length.

        Args:
            content: the input of a campaign.
        """
        given: dict[Input, int | bytes] = {Input.BYTES: content, Input.LENGTH: len(content)}
        out: list[int | bytes] = []
        for arg in self.args:
            assert not isinstance(arg, NamedAddress), "the call is not resolved"
            out.append(given[arg] if isinstance(arg, Input) else arg)
        return out

    def resolved(self, machine: UnicornMachine) -> Call:
        """Return the call with the addresses of its symbols. Check that a machine has the function,
        and that integers fit the machine's words.

        Args:
            machine: the one that is to run the call.

        Raises:
            EventError: there is no such function or symbol (with near names), no code is at the
                function's address, or an integer does not fit.
        """
        try:
            if isinstance(self.function, int):
                _check_code(self.function, machine)
            elif (symbol := machine.symbols[self.function]).kind == "object":
                _check_code(symbol.address, machine)
        except KprobeError as error:
            raise EventError("BAD_CALL", error.plain, self.text, self.columns[0]) from error
        bits = machine.arch.bits
        args: list[int | bytes | Input | NamedAddress] = []
        for arg, at in zip(self.args, self.columns[1:], strict=True):
            if isinstance(arg, NamedAddress):
                try:
                    args.append(arg.resolved(machine))
                except KprobeError as error:
                    raise EventError("BAD_CALL", error.plain, self.text, at) from error
                continue
            args.append(arg)
            if isinstance(arg, int) and not -(1 << bits - 1) <= arg < 1 << bits:
                raise EventError(
                    "BAD_CALL",
                    f"{arg} does not fit into {bits} bits; write a smaller one",
                    self.text,
                    at,
                )
        return evolve(self, args=tuple(args))


def _check_code(pointer: int, machine: UnicornMachine) -> None:
    """Check that a pointer is a function's.

    Args:
        pointer: the function's address, as pointers have it.
        machine: whose memory is looked at.

    Raises:
        NotText: no code is there.
    """
    pointers = machine.arch.pointers
    try:
        at = pointers.code_address(pointer & machine.arch.mask, machine.read).addr
        is_code = machine.executable(at)
    except GuestFault:  # no memory is where a descriptor should be
        is_code = False
    if not is_code:
        raise NotText(
            f"no code is at {machine.symbols.describe(pointer)}",
            hint="give a function's name or address; `kprobes symbols FILE` lists them",
        )


def parse_call(text: str, inputs: bool = False) -> Call:
    """Parse `NAME(ARG, ...)`.

    Args:
        text: the call.
        inputs: True where the arguments may be `@input` and `len`. False: `@input` is an error, and
            `len` a symbol's name.

    Raises:
        EventError: of kind BAD_CALL, with the column of what is wrong.
    """

    def fail(at: int, message: str) -> NoReturn:
        raise EventError("BAD_CALL", message, text, at)

    head = _HEAD.match(text)
    if head is None:
        fail(len(text) - len(text.lstrip()), "this is no call; write NAME(ARG, ...)")
    args: list[int | bytes | Input | NamedAddress] = []
    columns = [head.start(1)]
    at = head.end()
    while not text.startswith(")", at) or args:
        found = _LITERAL.match(text, at)
        if found is None or (found["input"] == Input.BYTES.value and not inputs):
            fail(
                at,
                "no argument here; write an integer, a character, a closed string or a symbol: 5 "
                '0x1f \'a\' "text" b"bytes" &buffer',
            )
        if found["name"]:
            args.append(_named(found, fail))
        elif found["input"] and not inputs:
            args.append(NamedAddress(found[0], 0, explicit=False))
        else:
            args.append(Input(found[0]) if found["input"] else _value(found, fail))
        columns.append(found.start())
        separator = re.compile(r"\s*([,)]?)\s*").match(text, found.end())
        assert separator is not None
        at = separator.end()
        if separator[1] == ")":
            at = separator.start(1)
            break
        if not separator[1]:
            fail(at, "the call goes on unexpectedly; write , or )")
    if text[at + 1 :].strip():
        fail(at + 1, "nothing may follow the call; drop it")
    return Call(
        text,
        number if (number := _integer(head[1])) is not None else head[1],
        tuple(args),
        tuple(columns),
    )


def _integer(text: str) -> int | None:
    """Return the integer that a text is, as C or Python writes it; None: it is none, or the text
    has more than 80 characters.
    """
    if len(text) > 80 or not re.fullmatch(
        r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", text, re.ASCII
    ):
        return None
    return int(re.sub(r"^([+-]?)0(?=[0-7])", r"\g<1>0o", text), 0)


def _named(found: re.Match[str], fail: Callable[[int, str], NoReturn]) -> NamedAddress:
    """Return the argument that a symbol's name stands for.

    Args:
        found: a match of _LITERAL with a name.
        fail: (offset in the whole text, message): raises the error of a wrong offset.
    """
    offset = 0
    if found["offset"]:
        number = _integer(found["offset"])
        if number is None:
            fail(found.start("offset"), f"{found['offset']!r} is no integer; write 8 or 0x10")
        offset = number
    return NamedAddress(found["name"], offset, explicit=bool(found["address"]))


def _value(found: re.Match[str], fail: Callable[[int, str], NoReturn]) -> int | bytes:
    """Return the value of a literal: an integer, or the bytes of a text in double quotes.

    A character in single quotes is an integer. Escapes are those of C.

    Args:
        found: a match of _LITERAL other than `@input` and `len`.
        fail: (offset in the whole text, message): raises the error of a wrong literal.
    """
    if found["number"]:
        number = _integer(found["number"])
        return (
            number
            if number is not None
            else fail(found.start(), f"{found[0]!r} is no integer; write 5, 0x1f, 0b101 or 017")
        )
    body, start = (
        (found["char"][1:-1], found.start() + 1)
        if found["char"]
        else (found["text"], found.start("text"))
    )
    raw = bytearray()
    for piece in _ESCAPE.finditer(body):
        hexadecimal, octal, letter = piece.groups()
        if letter is not None and letter not in _ESCAPES:
            fail(start + piece.start(), f"unknown escape {piece[0]}; write \\\\ for a backslash")
        if hexadecimal:
            raw.append(int(hexadecimal, 16))
        elif octal:
            raw += bytes([int(octal, 8)])
        elif letter:
            raw.append(_ESCAPES[letter])
        else:
            raw += os.fsencode(piece[0])
    if not found["char"]:
        return bytes(raw)
    if len(raw) != 1:
        fail(found.start(), "a character constant is one byte; write text in double quotes")
    return raw[0]
