"""Static tracepoints as places of events: `p %PROVIDER:NAME`.

Each place of the marker becomes a definition of Linux's grammar, in which `$argN` is replaced by
what the compiler says of them there: `$arg2` by `-80(%rbx):u64`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

from attrs import frozen

from ..arch._base import Arch
from ..debug.info import DebugInfo
from ..debug.markers import Marker
from ..debug.operands import Unfetchable, operand_of
from ..errors import EventError
from ..machine._base import Machine
from ..symbols import Symbols
from ._messages import make_error

_GROUP: Final = "sdt_"  #: before the provider's name, as perf has it
_ARGUMENT: Final = re.compile(r"\$arg(\d+)(?!\d)")


@frozen
class Fetched:
    """The fetch of a marker's argument.

    Attributes:
        fetch: as in definitions.
        type: of the value, as in definitions; "" where the marker says none.
        word: the value is a whole word of the guest.
    """

    fetch: str
    type: str
    word: bool


def marked(words: list[str], machine: Machine) -> tuple[tuple[str, str], ...]:
    """Return the definitions, one for each place of a marker, that a marker's definition stands
    for.

    Args:
        words: of the definition; the second one is %PROVIDER:NAME, each a glob.
        machine: whose files have the markers.

    Returns:
        For each place (the place as definitions have it, the definition).

    Raises:
        EventError: there is no such marker, it lacks an argument or has one that cannot be fetched,
            or the event's kind is not "p".
    """
    joined = " ".join(words)
    at = len(words[0]) + 1
    if words[0][0] != "p":
        raise make_error("BAD_RETPROBE", at, joined, words[1])
    provider, _, name = words[1][1:].partition(":")
    provider = provider.removeprefix(_GROUP)
    known = DebugInfo(machine).markers()
    found = [
        marker
        for marker in known
        if fnmatchcase(marker.provider, provider) and fnmatchcase(marker.name, name)
    ]
    if not found:
        there = (
            ", ".join(sorted({f"%{marker.provider}:{marker.name}" for marker in known})[:8])
            or "none"
        )
        raise make_error(
            "BAD_PROBE_ADDR", at, joined, f"no static tracepoint is {words[1]}; there is {there}"
        )
    places = [
        (_Place(marker, machine, joined), words[0] if ":" in words[0] else _first(marker))
        for marker in found
    ]
    return tuple((str(place), place.definition(first, words, at)) for place, first in places)


def _first(marker: Marker) -> str:
    """Return `p:GROUP/NAME` of a marker: the first word for a definition that gives no name, as in
    perf.
    """
    group, event = (
        re.sub(r"\W", "_", text, flags=re.ASCII)[:60]
        for text in (_GROUP + marker.provider, marker.name)
    )
    return f"p:{group}/{event}"


class _Place:
    """One place of a marker; str() is how a definition has it: ADDRESS, or ADDRESS(SEMAPHORE)."""

    def __init__(self, marker: Marker, machine: Machine, text: str) -> None:
        """Prepare.

        Args:
            marker: the marker at this place: its address, semaphore and arguments.
            machine: the guest.
            text: the definition as written, for errors.
        """
        self._marker = marker
        self._arch = machine.arch
        self._symbols = machine.symbols
        self._text = text

    def __str__(self) -> str:
        """Return the place as a definition has it: ADDRESS, or ADDRESS(SEMAPHORE), in
        hexadecimal.
        """
        covering = self._symbols.covering(self._marker.address)
        mode = covering.mode if covering is not None else 0
        semaphore = f"({self._marker.semaphore:#x})" if self._marker.semaphore else ""
        return f"{self._marker.address | mode:#x}{semaphore}"

    def definition(self, first: str, words: list[str], at: int) -> str:
        """Return the definition of an event at this place, in Linux's grammar.

        The place's address stands for `%PROVIDER:NAME`, and a fetch for each `$argN`. `$arg*` is
        all of the marker's arguments, named arg1, arg2 and so on. A definition without arguments
        fetches all of them, too.

        Args:
            first: first word of the result, as "p:GROUP/NAME".
            words: all words of the definition as the user wrote it.
            at: column of `%PROVIDER:NAME` in what the user wrote, for errors.

        Raises:
            EventError: the marker has no such argument at this place, or an argument cannot be
                fetched.
        """
        at += len(words[1]) + 1
        out = [first, str(self)]
        for word in words[2:] or [
            f"arg{n + 1}=$arg{n + 1}" for n in range(len(self._marker.arguments))
        ]:
            if word == "$arg*":
                out += [
                    self._word(f"arg{n + 1}=$arg{n + 1}", at)
                    for n in range(len(self._marker.arguments))
                ]
            else:
                out.append(self._word(word, at))
            at += len(word) + 1
        return " ".join(out)

    def _word(self, word: str, at: int) -> str:
        """Return an argument of the definition with each `$argN` in it replaced by a fetch.

        Args:
            word: the argument as written: `[NAME=]FETCH[:TYPE]`. Without a type `$argN` alone gets
                the marker's type.
            at: its column in the definition, for errors.

        Raises:
            EventError: the marker has no such argument here, or it cannot be fetched.
        """
        name, equals, body = word.partition("=") if "=" in word else ("", "", word)
        whole = _ARGUMENT.fullmatch(body.partition(":")[0])
        if whole is not None:
            operand = self._operand(int(whole[1]), whole[0], at)
            typed = (
                f":{operand.type}" if operand.type and ":" not in body else body[len(whole[0]) :]
            )
            return f"{name}{equals}{operand.fetch}{typed}"
        return (
            name
            + equals
            + _ARGUMENT.sub(lambda found: self._inside(int(found[1]), found[0], at), body)
        )

    def _inside(self, number: int, text: str, at: int) -> str:
        """Return the fetch that replaces `$argN` inside a longer fetch, as in `+8($arg1)`.

        Args:
            number: N, counted from 1.
            text: "$argN" as written, for messages.
            at: column of the whole argument in the definition, for messages.

        Raises:
            EventError: there is no such argument, it cannot be fetched, or is not a whole word.
        """
        operand = self._operand(number, text, at)
        if not operand.word:
            raise make_error(
                "NOSUP_DAT_ARG", at, self._text, text, "it takes more than a word, or is no integer"
            )
        return operand.fetch

    def _operand(self, number: int, text: str, at: int) -> Fetched:
        """Return what fetches an argument of the marker at this place.

        Args:
            number: of the argument, counted from 1.
            text: "$argN" as written, for messages.
            at: column of the whole argument.

        Raises:
            EventError: the marker has no such argument, or it cannot be fetched.
        """
        if not 0 < number <= len(self._marker.arguments):
            raise make_error("BAD_ARG_NUM", at, self._text, text)
        written = self._marker.arguments[number - 1]
        try:
            return fetched(written, self._arch, self._symbols)
        except Unfetchable as error:
            raise EventError(
                "BAD_FETCH_ARG",
                f"{text} is {written!r} here: {error}; fetch registers",
                self._text,
                at,
            ) from None


def fetched(written: str, arch: Arch, symbols: Symbols) -> Fetched:
    """Return the fetch, in words of a definition, of an operand of a marker.

    Args:
        written: the operand in the compiler's words: `-4@%eax`.
        arch: the guest's.
        symbols: the guest's, as operands may name them.

    Raises:
        Unfetchable: no fetch reads such an operand.
    """
    found = operand_of(written, arch, symbols)
    bits = arch.bits
    if found.symbol:
        fetch = f"@{found.symbol}"
    elif found.memory:
        fetch = f"{found.number:+d}(%{found.register})"
    else:
        fetch = f"%{found.register}" if found.register else f"\\{found.number}"
    type = f"{'s' if found.signed else 'u'}{8 * found.size}" if found.sized else ""
    if found.shift:
        type = f"b8@{found.shift}/{bits}"
    return Fetched(fetch, type, 8 * found.size == bits and not found.shift)
