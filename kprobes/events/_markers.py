"""Static tracepoints as places of events: `p %PROVIDER:NAME`. Each place of the marker becomes a definition of Linux's
grammar, its `$argN` what the compiler says of them there: `$arg2` is `-80(%rbx):u64`.

Operands are as the assembler of the architecture writes them: `%eax`, `x0`, `[sp, #16]`, `16($sp)`, `$5`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

from attrs import frozen

from ..arch._assembly import AssemblyText
from ..arch._base import Arch
from ..arch._rows import row
from ..debug.info import DebugInfo
from ..debug.markers import Marker
from ..errors import EventError, KprobeError
from ..machine._base import Machine
from ..symbols import Symbols
from ._messages import make_error

_GROUP: Final = "sdt_"  #: before the provider's name, as perf has it
_SIZED: Final = re.compile(r"(-?)(1|2|4|8)(f?)@(.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[#$i]?(-?(?:0x[0-9a-fA-F]+|\d+))")
_BRACKETS: Final = re.compile(r"\[([%$]?\w+)(?:[,+]?#?(-?\w+))?\]")
_BEHIND: Final = re.compile(r"(.*?)\(([%$]?\w+)\)", re.DOTALL)
_LOW: Final = re.compile(r"%lo\((\w+)([+-]\d+)?\)")
_SYMBOL: Final = re.compile(r"([A-Za-z_.][\w.$@]*)([+-]\d+)?")
_ARGUMENT: Final = re.compile(r"\$arg(\d+)(?!\d)")


class Unfetchable(Exception):
    """An operand that no fetch stands for; the reason."""


@frozen
class Operand:
    """fetch: as in definitions. type: of what it fetches; "" where the marker says none. word: it fetches a whole
    one."""

    fetch: str
    type: str
    word: bool


def marked(words: list[str], machine: Machine) -> tuple[tuple[str, str], ...]:
    """(place, definition) of each place of the marker that is an event's. EventError: there is none, or it has not the
    arguments."""
    joined, at = " ".join(words), len(words[0]) + 1
    if words[0][0] != "p":
        raise make_error("BAD_RETPROBE", at, joined, words[1])
    provider, _, name = words[1][1:].partition(":")
    provider = provider.removeprefix(_GROUP)
    known = DebugInfo(machine).markers()
    found = [marker for marker in known if fnmatchcase(marker.provider, provider) and fnmatchcase(marker.name, name)]
    if not found:
        there = ", ".join(sorted({f"%{marker.provider}:{marker.name}" for marker in known})[:8]) or "none"
        raise make_error("BAD_PROBE_ADDR", at, joined, f"no static tracepoint is {words[1]}; there is {there}")
    places = [(_Place(marker, machine, joined), words[0] if ":" in words[0] else _first(marker)) for marker in found]
    return tuple((str(place), place.definition(first, words, at)) for place, first in places)


def _first(marker: Marker) -> str:
    """The first word of a definition that has no name: the marker's provider and name, as perf has them."""
    group, event = (re.sub(r"\W", "_", text, flags=re.ASCII)[:60] for text in (_GROUP + marker.provider, marker.name))
    return f"p:{group}/{event}"


class _Place:
    """One of a marker's places."""

    def __init__(self, marker: Marker, machine: Machine, text: str) -> None:
        self._marker, self._arch, self._symbols, self._text = marker, machine.arch, machine.symbols, text

    def __str__(self) -> str:
        covering = self._symbols.covering(self._marker.address)
        mode = covering.mode if covering is not None else 0
        semaphore = f"({self._marker.semaphore:#x})" if self._marker.semaphore else ""
        return f"{self._marker.address | mode:#x}{semaphore}"

    def definition(self, first: str, words: list[str], at: int) -> str:
        """What is to be parsed."""
        at += len(words[1]) + 1
        out = [first, str(self)]
        for word in words[2:] or [f"arg{n + 1}=$arg{n + 1}" for n in range(len(self._marker.arguments))]:
            if word == "$arg*":
                out += [self._word(f"arg{n + 1}=$arg{n + 1}", at) for n in range(len(self._marker.arguments))]
            else:
                out.append(self._word(word, at))
            at += len(word) + 1
        return " ".join(out)

    def _word(self, word: str, at: int) -> str:
        """An argument, its $argN put in."""
        name, equals, body = word.partition("=") if "=" in word else ("", "", word)
        whole = _ARGUMENT.fullmatch(body.partition(":")[0])
        if whole is not None:
            operand = self._operand(int(whole[1]), whole[0], at)
            typed = f":{operand.type}" if operand.type and ":" not in body else body[len(whole[0]):]
            return f"{name}{equals}{operand.fetch}{typed}"
        return name + equals + _ARGUMENT.sub(lambda found: self._inside(int(found[1]), found[0], at), body)

    def _inside(self, number: int, text: str, at: int) -> str:
        operand = self._operand(number, text, at)
        if not operand.word:
            raise make_error("NOSUP_DAT_ARG", at, self._text, text,
                             "it takes more than a word, or is no integer")
        return operand.fetch

    def _operand(self, number: int, text: str, at: int) -> Operand:
        if not 0 < number <= len(self._marker.arguments):
            raise make_error("BAD_ARG_NUM", at, self._text, text)
        written = self._marker.arguments[number - 1]
        try:
            return operand_of(written, self._arch, self._symbols)
        except Unfetchable as error:
            raise EventError("BAD_FETCH_ARG", f"{text} is {written!r} here: {error}; fetch registers", self._text,
                             at) from None


def operand_of(written: str, arch: Arch, symbols: Symbols) -> Operand:
    """What fetches an operand: `-4@%eax`. Unfetchable: nothing does."""
    sized = _SIZED.fullmatch(written)
    if sized is None and "@" in written:
        raise Unfetchable("numbers of 1, 2, 4 and 8 bytes can be fetched")
    sign, digits, float, body = sized.groups() if sized else ("", str(arch.bits // 8), "", written)
    if float:
        raise Unfetchable("floating-point numbers are not fetched")
    size, body = int(digits), re.sub(r"\s", "", body)
    fetch, shift = _fetch(body, arch, symbols)
    if fetch[0] == "%" and 8 * size > arch.bits:
        raise Unfetchable("it is in two registers")
    if shift and sign:
        raise Unfetchable("signed bytes of a register's middle are not fetched")
    type = f"b8@{shift}/{arch.bits}" if shift else f"{'s' if sign else 'u'}{8 * size}" if sized else ""
    return Operand(fetch, type, 8 * size == arch.bits and not shift)


def _fetch(body: str, arch: Arch, symbols: Symbols) -> tuple[str, int]:
    """(a fetch, the bits of a register below those that are meant)"""
    brackets, behind = _BRACKETS.fullmatch(body), _BEHIND.fullmatch(body)
    if brackets is not None:
        return _memory(brackets[1], brackets[2] or "0", arch, symbols), 0
    if behind is not None:
        return _memory(behind[2], behind[1] or "0", arch, symbols), 0
    if not body:
        raise Unfetchable("there is nothing behind the @")
    number = _NUMBER.fullmatch(body)
    if number is not None and not _is_register(body, arch):
        return f"\\{number[1]}", 0
    name, shift = _register(body, arch)
    if name is not None:
        return f"%{name}" if name else "\\0", shift
    if _SYMBOL.fullmatch(body) and body[0] not in "%$#":
        return f"@{body}", 0
    raise Unfetchable("it has more parts than a register and an offset")


def _memory(register: str, offset: str, arch: Arch, symbols: Symbols) -> str:
    """Memory behind a register: [sp, #16], -8(%rbp), counter(%rip), %lo(counter)(a0)."""
    if register == "%rip" and _SYMBOL.fullmatch(offset):
        return f"@{offset}"
    name, shift = _register(register, arch)
    low = _LOW.fullmatch(offset)
    if low is not None:
        try:
            behind = (symbols[low[1]].address + int(low[2] or 0) + 0x800 & 0xFFF) - 0x800
        except KprobeError as error:
            raise Unfetchable(error.plain) from None
    else:
        try:
            behind = int(offset, 0)
        except ValueError:
            raise Unfetchable("it has more parts than a register and an offset") from None
    if not name or shift:
        raise Unfetchable(f"{register} is no register that memory is behind")
    return f"{behind:+d}(%{name})"


def _text(arch: Arch) -> AssemblyText:
    """Return how the architecture's assembly is written."""
    return row(arch, AssemblyText) or AssemblyText()


def _is_register(body: str, arch: Arch) -> bool:
    """Whether a number means a register: `9` of PowerPC, `$9` of MIPS."""
    return _text(arch).is_register(body)


def _register(body: str, arch: Arch) -> tuple[str | None, int]:
    """(a register's name; "" for one that is always 0; None: it is none, how far above its lowest bit)"""
    name = body.removeprefix("%").removeprefix("$")
    name = f"r{name}" if name.isdecimal() else name
    name, shift = _text(arch).register(name, arch.bits)
    return (name if not name or name in arch.regs.names or name in arch.regs.aliases else None), shift
