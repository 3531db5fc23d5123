"""From bytes of programs' memory to Python values."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from attrs import define, field

from ..clocknames import host_epoch
from . import layout, types
from .settings import Settings
from .types import ValueType


class Symbolizer(Protocol):
    """Names of a guest's addresses."""

    def __call__(self, address: int) -> tuple[str | None, int, str]:
        """Return (name of the symbol at an address or None, bytes behind it, the image)."""


class Sourcer(Protocol):
    """The functions that an address is part of, by debug information."""

    def __call__(self, address: int) -> Sequence[tuple[str, str, bool]]:
        """Return the functions that an address is part of; empty where none is known.

        Each is (name, `file.c:12` or "", inlined): those inlined there, innermost first, then that
        whose code it is.
        """


def unknown(address: int) -> Sequence[tuple[str, str, bool]]:
    """Return no functions, as without a guest no address has a source."""
    return ()


def nowhere(address: int) -> tuple[str | None, int, str]:
    """Return no name, as without a guest no address has one."""
    return None, 0, ""


@define
class Decoder:
    """Decodes values of one script.

    Attributes:
        settings: the script's.
        bits: bits of the guest's addresses.
        order: the guest's byte order.
        symbols: (guest address) -> (name of the symbol or None, bytes behind its beginning, image).
        texts: formats of strftime(), by number.
        strftime: (format, ns since 1970) -> text.
        since: what is added to the clock of programs to get ns since 1970.
        sources: (guest address) -> (function, source line, inlined) of each function there.
    """

    settings: Settings
    bits: int
    order: str
    symbols: Symbolizer
    texts: Sequence[str]
    strftime: Callable[[str, int], str]
    since: int = field(factory=host_epoch)
    sources: Sourcer = unknown
    _frames: dict[tuple[int, int, bool], tuple[types.StackFrame, ...]] = field(factory=dict)

    def value(self, type: ValueType, raw: bytes) -> Any:
        """Return the Python value that `types` describes.

        Args:
            type: the value's type.
            raw: its bytes in a program's memory.
        """
        return self._value(type, raw, sys.byteorder, 8)

    def _value(self, type: ValueType, raw: bytes, order: Any, word: int) -> Any:
        """Return the Python value of bytes.

        Args:
            type: the value's type.
            raw: its bytes.
            order: their byte order.
            word: bytes of a pointer.

        Returns:
            An int, a bool, bytes for strings and buffers, a tuple, a dict for records and
            structures, a list for arrays, text for symbols, times and addresses, a tuple of frames
            for stacks, or what _aggregate() gives; None for any other type.
        """
        if isinstance(type, (types.IntegerType, types.EnumType)):
            return int.from_bytes(raw[: type.bits // 8], order, signed=type.signed)
        if isinstance(type, types.BooleanType):
            return raw[0] != 0
        if isinstance(type, types.PointerType):
            return int.from_bytes(raw[:word], order)
        if isinstance(type, types.StringType):
            return self._string(type, raw, word)
        if isinstance(type, types.TupleType):
            return tuple(
                self.value(part, raw[at : at + layout.room_of(part)])
                for at, part in layout.members(type)
            )
        if isinstance(type, types.RecordType):
            return {
                one.name: self.value(
                    one.type, raw[one.offset : one.offset + layout.room_of(one.type)]
                )
                for one in type.fields
            }
        if isinstance(type, types.StructType):
            return {one.name: self._member(one, raw) for one in type.fields}
        if isinstance(type, types.ArrayType):
            size = layout.size_in_guest(type.element, self.bits // 8)
            return [
                self._value(
                    type.element, raw[n * size : (n + 1) * size], self.order, self.bits // 8
                )
                for n in range(type.count)
            ]
        if isinstance(type, types.BufferType):
            return raw[8 : 8 + min(_word(raw), type.size)]
        if isinstance(type, types.SymbolType):
            return self._symbol(_word(raw))
        if isinstance(type, types.StackType):
            return tuple(
                frame
                for n in range(min(_word(raw), type.limit))
                for frame in self._frames_of(type, _word(raw, 8 + 8 * n), n > 0)
            )
        if isinstance(type, types.TextType):
            return self._text(type, raw)
        if isinstance(type, types.AggregateType):
            return self._aggregate(type, raw)
        return None

    def _string(self, type: types.StringType, raw: bytes, word: int) -> bytes:
        """Return the bytes of a string up to its NUL; one that was cut gets the settings' trailer,
        unless it is empty.

        It was cut if it fills its type without a NUL, or is as long as str() makes a string at
        most: max_strlen bytes, or, where max_strlen is 1024 or more, one less.

        Args:
            type: the string's type.
            raw: its bytes in memory.
            word: not used.
        """
        raw = raw[: type.size]
        text, nul, _ = raw.partition(b"\0")
        cut = not nul and len(raw) == type.size
        if (
            not cut
            and type.size == self.settings.max_strlen
            and len(text) == type.size - 1
            and type.size >= 1024
        ):
            cut = True  # the helper that reads strings puts a NUL where it cuts them
        elif (
            not cut
            and len(text) == self.settings.max_strlen
            and type.size == self.settings.max_strlen + 1
        ):
            cut = True
        return text + self.settings.str_trunc_trailer.encode() if cut and text else text

    def _member(self, one: types.RecordField, raw: bytes) -> Any:
        """Return the value of a structure's member; a bit field is unsigned, whatever its type.

        Args:
            one: the member.
            raw: the structure's bytes.
        """
        word = self.bits // 8
        part = raw[one.offset : one.offset + layout.size_in_guest(one.type, word)]
        if one.bit_size is None:
            return self._value(one.type, part, self.order, word)
        number = int.from_bytes(part, self.order)  # type: ignore[arg-type]
        bits, _ = layout.width(one.type)
        shift = one.bit_offset if self.order == "little" else bits - one.bit_offset - one.bit_size
        return number >> shift & (1 << one.bit_size) - 1  # without a sign, as in bpftrace

    def _symbol(self, address: int) -> str:
        """Return the name of the symbol at an address; without one, the address as 0x1234."""
        name, _, _ = self.symbols(address)
        return name if name is not None else f"0x{address:x}"

    def _frames_of(
        self, type: types.StackType, address: int, returns: bool
    ) -> tuple[types.StackFrame, ...]:
        """Return the frames that an address of a stack stands for, innermost first.

        Functions that are inlined there come before that which has them. The answer is kept for the
        next call.

        Args:
            type: type of the stack.
            address: the pc.
            returns: True for a return address: the function and line of the call before it are
                meant.
        """
        sourced = type.user and type.mode != "raw" and self.settings.show_debug_info
        key = address, returns, sourced
        if key not in self._frames:
            name, offset, image = self.symbols(address - returns)
            if returns and name is not None:
                offset += 1  # from the function's beginning to the return address
            elif returns:
                name, offset, image = self.symbols(address)
            known = self.sources(address - returns) if sourced else ()
            inlined = [
                types.StackFrame(address, function, 0, image, source, True)
                for function, source, within in known
                if within
            ]
            own = known[-1][1] if known else ""
            self._frames[key] = (*inlined, types.StackFrame(address, name, offset, image, own))
        return self._frames[key]

    def _text(self, type: types.TextType, raw: bytes) -> str:
        """Return a value that is shown as text: a time, an Internet or MAC address, or a number.

        The text of an Internet address of an unknown family is "".

        Args:
            type: the value's type, whose kind says what it is.
            raw: its bytes in memory.
        """
        if type.kind == "timestamp":
            return self.strftime(self.texts[_word(raw, 8)], _word(raw) + self.since)
        if type.kind == "inet":
            if _word(raw) in (4, 2):
                return str(ipaddress.IPv4Address(raw[8:12]))
            return str(ipaddress.IPv6Address(raw[8:24])) if _word(raw) == 10 else ""
        if type.kind == "mac_address":
            return ":".join(f"{byte:02X}" for byte in raw[:6])
        return str(_word(raw))

    def _aggregate(self, type: types.AggregateType, raw: bytes) -> Any:
        """Return the Python value of an aggregate: what count(), sum(), hist() or the like has
        gathered in a map.

        Args:
            type: the aggregate's type.
            raw: the aggregate's bytes in memory, words of 64 bits.

        Returns:
            An int for a count, sum, minimum or maximum; (total, count) for avg() and stats(); for a
            time series a dict, start of an interval -> value; for a histogram a list of counts, one
            for each row.
        """
        words = [_word(raw, at) for at in range(0, len(raw) & ~7, 8)]
        if isinstance(type, types.CountType):
            return words[0]
        if isinstance(type, (types.SumType, types.MinimumType, types.MaximumType)):
            return _signed(words[0], type.signed)
        if isinstance(type, (types.AverageType, types.StatsType)):
            return _signed(words[0], type.signed), words[1]
        if isinstance(type, types.TimeSeriesType):
            return self._series(type, words)
        return words

    def _series(self, type: types.TimeSeriesType, words: list[int]) -> dict[int, int]:
        """Decode a time series.

        Args:
            type: type of the series.
            words: four words for each interval that is kept: its number plus 1 (0: it is empty),
                the total or the last value, how many values, and the time of the last value where
                a map says the time.

        Returns:
            Start of an interval in ns since 1970, or, where a map says the time, by that time ->
            its value, in order of time. An average is cut towards zero.
        """
        found = dict[int, int]()
        since = 0 if self.settings.dummy_ts_map else self.since
        for at in range(0, len(words), 4):
            number, total, count, moment = words[at : at + 4]
            if not number:
                continue
            value = _signed(total, type.signed)
            if type.aggregation == "avg" and count:
                value = abs(value) // count * (1 if value >= 0 else -1)
            if self.settings.dummy_ts_map and type.aggregation is None and not moment:
                value = 0  # bpftrace takes a last value of time 0 for none
            start = (number - 1) * type.interval
            found[start + since // type.interval * type.interval] = value
        return dict(sorted(found.items()))


def hashable(value: Any) -> Any:
    """Return a value that can be a key of a dictionary: lists become tuples, dictionaries tuples of
    their values, with what is in them; any other value is returned itself.
    """
    if isinstance(value, dict):
        return tuple(hashable(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(hashable(one) for one in value)
    return value


def _word(raw: bytes, at: int = 0) -> int:
    """Return the word at an offset."""
    return int.from_bytes(raw[at : at + 8], sys.byteorder)


def _signed(number: int, signed: bool) -> int:
    """Return a number of 64 bits as a signed one (two's complement) if `signed`, else as it is."""
    return number - (1 << 64) if signed and number >> 63 else number
