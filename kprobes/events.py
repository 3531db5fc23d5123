"""Kprobe events: Linux's one-line probe definitions, compiled once into fetch plans.

`parse_event("p:crc crc32 len=$arg3:u32 head=+0($arg2):string", machine)` gives an Event: where to probe, and closures
that fetch its arguments from Regs at a hit. Symbols and registers are looked up while parsing, so a hit only reads. A
wrong definition raises EventError with Linux's error name and the column Linux points at.

Beyond Linux: unreadable integers are (fault) like strings, control characters in strings are escaped, an address that
lies in no symbol counts as a function entry, and `$argN` in a return event works everywhere (see Event.enter).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NoReturn

from attrs import field, frozen

from .arch._base import Entry
from .errors import AmbiguousSymbol, EventError, GuestFault, KprobeError, NotAnInstruction, NotFunctionEntry, UnknownSymbol
from .machine._base import Machine
from .regs import Regs
from .symbols import Symbol, Symbols

Saved = Sequence[int | None]  #: a return event's `$argN` as they were at entry; None where unreadable
Scalar = int | str | None
Value = Scalar | tuple[Scalar, ...]
Read = Callable[[Regs, Saved], int]
Plan = Callable[[Regs, Saved], Value]

MAX_NAME, MAX_ARG_NAME, MAX_EXPRESSION = 63, 32, 63  # characters
MAX_ARGS, MAX_STEPS, MAX_ARRAY, MAX_ACTIVE, MAX_STACK, MAX_RECORD = 128, 15, 64, 4096, 2048, 3072  # MAX_RECORD: bytes of a hit
_TAKEN = {"common_type", "common_flags", "common_preempt_count", "common_pid", "__probe_ip", "__probe_ret_ip", "__probe_func"}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TYPES = "u8..u64 s8..s64 x8..x64 char string symbol symstr b<width>@<offset>/<size>, [count] behind it for an array"
_ERRNO = {"ARG_TOO_LONG": errno.E2BIG, "TOO_MANY_ARGS": errno.E2BIG, "EVENT_TOO_BIG": errno.E2BIG,
          "NOSUP_BTFARG": errno.EOPNOTSUPP, "NON_UNIQ_SYMBOL": errno.EADDRNOTAVAIL}

#: What is wrong, and what to do. BAD_PROBE_TYPE is ours: Linux has no name for an unknown first letter.
_MESSAGES = {
    "BAD_PROBE_TYPE": "an event starts with p (probe) or r (return probe), not {!r}; write p:NAME or r:NAME",
    "BAD_MAXACT_TYPE": "only return probes take a count of instances; drop {!r}, or write r instead of p",
    "BAD_MAXACT": "{!r} is no count of instances; write 1 to 4096, or nothing",
    "MAXACT_TOO_BIG": "{} instances are too many; write 4096 at most",
    "NO_GROUP_NAME": "the group's name is empty; write one before the slash, or drop the slash",
    "GROUP_TOO_LONG": "the group's name {!r} is too long; shorten it to 63 characters",
    "BAD_GROUP_NAME": "{!r} is no group name; use letters, digits and _, no digit first",
    "NO_EVENT_NAME": "there is no name behind the colon; write one, or drop the colon",
    "EVENT_TOO_LONG": "the event's name {!r} is too long; shorten it to 63 characters",
    "BAD_EVENT_NAME": "{!r} is no event name; use letters, digits and _, no digit first",
    "BAD_ADDR_SUFFIX": "a place cannot end in {!r}; write %return, or use r instead of p",
    "BAD_PROBE_ADDR": "{}",
    "NON_UNIQ_SYMBOL": "{}",
    "BAD_RETPROBE": "{!r} is no function entry, and return probes sit on entries only; drop the offset, or use p",
    "NO_ARG_NAME": "there is no name before the equals sign; write NAME=FETCH",
    "ARG_NAME_TOO_LONG": "the argument's name {!r} is too long; shorten it to 32 characters",
    "BAD_ARG_NAME": "{!r} is no argument name; use letters, digits and _, no digit first",
    "USED_ARG_NAME": "the argument name {!r} is taken; choose another",
    "NO_ARG_BODY": "there is nothing behind the equals sign; write what to fetch, such as $arg1 or %register",
    "ARG_TOO_LONG": "the expression has {} characters; shorten it to 63",
    "TOO_MANY_ARGS": "an event takes 128 arguments; leave some out from here on",
    "EVENT_TOO_BIG": "one hit would record {} bytes, 3072 is the limit; fetch fewer or smaller arguments",
    "BAD_FETCH_ARG": "{!r} cannot be fetched; write %reg $argN $retval $stackN @address @symbol \\number or +offset(FETCH)",
    "RETVAL_ON_PROBE": "$retval exists when a function returns; write r instead of p",
    "BAD_STACK_NUM": "{!r} is no word of the stack; write $stack0 to $stack2048",
    "BAD_ARG_NUM": "{!r} is no argument; write $arg1 to $arg2048",
    "NOFENTRY_ARGS": "{!r} is known at function entry only; fetch a %register here, or name single arguments of a return event",
    "DOUBLE_ARGS": "$arg* is there already; write it once",
    "BAD_VAR_ARGS": "$arg* stands alone; fetch $arg1, $arg2 ... here",
    "NOSUP_BTFARG": "{!r} needs type information that guests do not carry; write $arg1, $arg2 ... or $retval",
    "BAD_VAR": "there is no variable {!r} here; {}",
    "BAD_REG_NAME": "{}",
    "BAD_MEM_ADDR": "{!r} is no address: {}",
    "FILE_ON_KPROBE": "file offsets are for user probes; write @address or @symbol+offset",
    "BAD_IMM": "{!r} is no number; write one behind the backslash, or text in double quotes",
    "IMMSTR_NO_CLOSE": "the string is not closed; end it with a double quote, without blanks inside",
    "DEREF_NEED_BRACE": "{!r} lacks its bracket; write +offset(FETCH)",
    "BAD_DEREF_OFFS": "{!r} is no offset; write a number between the sign and the bracket",
    "DEREF_OPEN_BRACE": "a bracket is not closed; add )",
    "COMM_CANT_DEREF": "$comm is text and has nothing behind it; drop the brackets",
    "TOO_MANY_OPS": "one argument takes 16 steps at most; nest fewer dereferences",
    "BAD_TYPE": "{!r} is no type; use " + _TYPES,
    "BAD_BITFIELD": "{!r} is no bit field within its size; write b<width>@<offset>/<size>, bits counted from the lowest",
    "BAD_STRING": "type {!r} is read from memory; write +0(FETCH):{} to follow a pointer",
    "NEED_STRING_TYPE": "text cannot be of type {!r}; write string, or no type",
    "ARRAY_NO_CLOSE": "the array's count is not closed; add ]",
    "BAD_ARRAY_SUFFIX": "{!r} cannot follow an array; end the type with ]",
    "BAD_ARRAY_NUM": "{!r} is no count of elements; write 1 to 64",
    "ARRAY_TOO_BIG": "an array of {} is too big; write 64 at most",
    "DIFF_PROBE_TYPE": "this event is defined with the other kind ({}); choose another name",
    "DIFF_ARG_TYPE": "this event is defined with other arguments ({}); give the same names and types, or choose another name",
    "SAME_PROBE": "the same probe is defined already ({}); leave one out",
}


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}
_REFUSALS = {NotAnInstruction: "BAD_INSN_BNDRY", NotFunctionEntry: "BAD_RETPROBE"}


@frozen(kw_only=True)
class Type:
    """How a word or memory is understood.

    Attributes:
        name: as written, without the array's count. style: "u", "s", "x", "char", "string", "symbol" or "symstr".
        size: bytes in memory. bits, shift: the part of them that counts. count: elements of an array, 0: not an array.
    """

    name: str
    style: str
    bits: int
    size: int
    shift: int = 0
    count: int = 0

    def show(self, value: Value) -> str:
        """A value as ftrace prints it; None is unreadable memory."""
        if isinstance(value, tuple):
            return f"{{{','.join(map(self.show, value))}}}"
        if value is None:
            return "(fault)"
        if isinstance(value, int):
            return hex(value) if self.style == "x" else str(value)
        quote = {"char": "'", "symbol": ""}.get(self.style, '"')
        return quote + value.translate(_CONTROLS) + quote


@frozen(kw_only=True)
class Argument:
    """One `name=fetch[:type]`: `text` is what stands behind the equals sign, `position` the word's column, `read` its plan."""

    name: str
    text: str
    type: Type
    position: int
    read: Plan = field(eq=False, repr=False)


@frozen(kw_only=True)
class Event:
    """A parsed event; str() gives its normalized definition.

    Attributes:
        kind: "p" or "r". symbol: as written (`module:name` too), None for a bare address. offset: bytes from symbol.
        address: of the place. target: the same with mode bits (ARM: bit 0), what a probe's addr= takes. maxactive: 0 where
        not given. saves: the arguments (from 0) that a return event wants from entry.
        text: the definition, its words joined by single blanks. position: column of the place in it.
    """

    kind: str
    group: str
    name: str
    symbol: str | None
    offset: int
    address: int
    target: int
    maxactive: int
    args: tuple[Argument, ...]
    saves: tuple[int, ...]
    text: str
    position: int
    _where: str = field(repr=False)
    _symbols: Symbols = field(eq=False, repr=False)

    def __str__(self) -> str:
        place = f"{self.target:#x}" if self.symbol is None else f"{self.symbol}+{self.offset}".removesuffix("+0")
        head = f"{self.kind}{self.maxactive or ''}:{self.group}/{self.name} {place}"
        return " ".join([head, *(f"{arg.name}={arg.text}" for arg in self.args)])

    def enter(self, regs: Regs) -> tuple[int | None, ...]:
        """At the function entry of a return event: the arguments to hand to fetch() as `saved`."""
        return tuple([_argument(regs, n) for n in self.saves])

    def fetch(self, regs: Regs, saved: Saved = ()) -> tuple[Value, ...]:
        """The arguments' values at a hit; None where guest memory is unreadable, tuples for arrays."""
        return tuple([arg.read(regs, saved) for arg in self.args])

    def format(self, values: Sequence[Value], return_address: int = 0) -> str:
        """A hit as a line of ftrace's: `name: (sym+0xOFF/0xSIZE) a=0x1`; a return event's wants where it returns to."""
        where = self._where if self.kind == "p" else f"{locate(self._symbols, return_address)} <- {self._where}"
        shown = [f" {arg.name}={arg.type.show(value)}" for arg, value in zip(self.args, values, strict=True)]
        return f"{self.name}: ({where}){''.join(shown)}"

    def as_dict(self, values: Sequence[Value], return_address: int = 0) -> dict[str, object]:
        """A hit as a record for JSON: the event's own facts, and `args` by name. Return events add where they return to."""
        record = {name: getattr(self, name) for name in ("group", "name", "kind", "symbol", "offset", "address")}
        if self.kind == "r":
            record |= {"return_address": return_address, "caller": locate(self._symbols, return_address)}
        return record | {"args": {arg.name: value for arg, value in zip(self.args, values, strict=True)}}

    def refused(self, error: KprobeError) -> EventError:
        """A refused registration, as an error that points at this event's place."""
        return EventError(_REFUSALS.get(type(error), "FAIL_REG_PROBE"), str(error), self.text, self.position)


def locate(symbols: Symbols, address: int) -> str:
    """`name+0xOFF/0xSIZE`, or the bare address where no symbol covers it."""
    symbol = symbols.covering(address)
    return f"{address:#x}" if symbol is None else _located(symbols, symbol, address)


def _located(symbols: Symbols, symbol: Symbol, address: int) -> str:
    return f"{symbol.name}+{address - symbol.address:#x}/{max(symbols.extent(symbol) - symbol.address, 0):#x}"


def parse_event(text: str, machine: Machine) -> Event:
    """Parse one definition against a machine's symbols and registers; EventError where it is wrong."""
    return _Parser(text, machine).event()


def parse_events(texts: Iterable[str], machine: Machine) -> list[Event]:
    """Parse definitions that live together: under one name, kind and arguments must agree and no two may be the same."""
    events: list[Event] = []
    for text in texts:
        event = parse_event(text, machine)
        for other in events:
            if (event.group, event.name) == (other.group, other.name):
                _check_sibling(event, other)
        events.append(event)
    return events


def _check_sibling(event: Event, other: Event) -> None:
    mine, theirs = ([(arg.name, arg.type) for arg in each.args] for each in (event, other))
    if event.kind != other.kind:
        raise _error("DIFF_PROBE_TYPE", 0, event.text, other)
    if mine != theirs:
        differing = (arg.position for i, arg in enumerate(event.args) if mine[i : i + 1] != theirs[i : i + 1])
        raise _error("DIFF_ARG_TYPE", next(differing, len(event.text)), event.text, other)
    if (event.address, [arg.text for arg in event.args]) == (other.address, [arg.text for arg in other.args]):
        raise _error("SAME_PROBE", 0, event.text, other)


def _error(kind: str, position: int, event: str, *facts: object) -> EventError:
    error = EventError(kind, _MESSAGES[kind].format(*facts), event, position)
    error.errno = _ERRNO.get(kind, error.errno)
    return error


# --- fetch plans: closures made once


@frozen(kw_only=True)
class _Source:
    """A parsed fetch: `word` reads its word, `where` gives its address when it lies in memory. steps: what Linux counts."""

    word: Read
    where: Read | None = None
    literal: str | None = None
    steps: int = 1


def _argument(regs: Regs, n: int) -> int | None:
    try:
        return regs.arg(n)
    except GuestFault:
        return None


def _saved(slot: int) -> Read:
    def read(regs: Regs, saved: Saved) -> int:
        value = saved[slot]
        if value is None:
            raise GuestFault("the argument was unreadable at function entry", access="read")
        return value
    return read


def _memory(base: Read, offset: int, mask: int, steps: int) -> _Source:
    def where(regs: Regs, saved: Saved) -> int:
        return base(regs, saved) + offset & mask
    return _Source(word=lambda regs, saved: regs.word(where(regs, saved)), where=where, steps=steps)


def _converter(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    mask, shift, sign = (1 << type.bits) - 1, type.shift, 1 << type.bits - 1
    if type.style in ("symbol", "symstr"):
        return symbols.describe
    if type.style == "char":
        return lambda word: chr(word & mask)
    return (lambda word: ((word & mask) ^ sign) - sign) if type.style == "s" else (lambda word: word >> shift & mask)


def _string(regs: Regs, address: int) -> str:
    return regs.read_cstr(address).decode("utf-8", "backslashreplace")


def _plan(source: _Source, type: Type, symbols: Symbols) -> Plan:
    convert, size, word, where = _converter(type, symbols), type.size, source.word, source.where

    def element(regs: Regs, address: int) -> Scalar:
        try:
            if type.style == "string":  # an array of strings is an array of pointers
                return _string(regs, regs.word(address) if type.count else address)
            return convert(regs.word(address, size))
        except GuestFault:
            return None

    def read(regs: Regs, saved: Saved) -> Value:
        try:
            if where is None:
                return convert(word(regs, saved))
            start = where(regs, saved)
        except GuestFault:
            return None
        return tuple([element(regs, start + offset) for offset in offsets]) if offsets else element(regs, start)

    offsets = range(0, type.count * size, size)
    return read if source.literal is None else lambda regs, saved: source.literal


# --- the grammar


def _number(text: str) -> int | None:
    """An unsigned 64-bit integer as C writes it, or None."""
    if len(text) > 24 or not re.fullmatch(r"0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*", text, re.ASCII | re.IGNORECASE):
        return None
    value = int(re.sub("^0(?=[0-7])", "0o", text), 0)
    return value if value < 1 << 64 else None


class _Parser:
    """One definition. `at` is always the column of the text beside it."""

    def __init__(self, text: str, machine: Machine) -> None:
        words = text.split() or [""]
        self.text = " ".join(words)
        self.words = [*zip(words, accumulate((len(word) + 1 for word in words), initial=0), strict=False)]
        self.machine, self.arch, self.symbols = machine, machine.arch, machine.symbols
        self.kind, self.entry = "p", False
        self.saves: list[int] = []

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn:
        raise _error(kind, at, self.text, *facts)

    def need(self, condition: object, kind: str, at: int, *facts: object) -> None:
        if not condition:
            raise _error(kind, at, self.text, *facts)

    def integer(self, text: str, kind: str, at: int, *facts: object) -> int:
        """A number with or without a sign."""
        value = _number(text[text[:1] in ("+", "-"):])
        if value is None:
            self.fail(kind, at, *(facts or (text,)))
        return -value if text[0] == "-" else value

    def count(self, text: str, at: int, most: int, bad: str, big: str) -> int:
        """A number from 1 to `most`."""
        value = _number(text)
        self.need(value, bad, at, text)
        self.need(value is None or value <= most, big, at, text)
        return value or 0

    # --- what and where

    def event(self) -> Event:
        maxactive, group, name = self.head(self.words[0][0])
        self.need(len(self.words) > 1, "BAD_PROBE_ADDR", len(self.text), "the place is missing; write SYMBOL[+OFFSET]")
        word, at = self.words[1]
        symbol, offset, target = self.place(word, at)
        address = target & ~self.arch.mode_bits
        default = f"{self.kind}_{target:#x}" if symbol is None else f"{self.kind}_{symbol}_{offset}"
        found = self.symbols[symbol] if symbol is not None else self.symbols.covering(address)
        where = f"{address:#x}" if found is None else found.name if self.kind == "r" else _located(self.symbols, found, address)
        return Event(kind=self.kind, group=group, name=name or re.sub(r"\W", "_", default, flags=re.ASCII)[:MAX_NAME],
                     symbol=symbol, offset=offset, address=address, target=target, maxactive=maxactive, args=self.arguments(),
                     saves=tuple(self.saves), text=self.text, position=at, where=where, symbols=self.symbols)

    def head(self, word: str) -> tuple[int, str, str]:
        instances, colon, name = word[1:].partition(":")
        self.need(word[:1] in ("p", "r"), "BAD_PROBE_TYPE", 0, word[:1])
        self.kind = word[0]
        self.need(self.kind == "r" or not instances, "BAD_MAXACT_TYPE", 1, instances)
        maxactive = self.count(instances, 1, MAX_ACTIVE, "BAD_MAXACT", "MAXACT_TOO_BIG") if instances else 0
        return maxactive, *(self.name(name, 2 + len(instances)) if colon else ("kprobes", ""))

    def name(self, text: str, at: int) -> tuple[str, str]:
        group, slash, event = text.partition("/" if "/" in text else ".")
        if not slash:
            self.need(text, "NO_EVENT_NAME", at)
            return "kprobes", self.named("EVENT", text, at)
        self.need(group, "NO_GROUP_NAME", at)
        self.named("GROUP", group, at)
        return group, self.named("EVENT", event, at + len(group) + 1) if event else ""

    def named(self, what: str, name: str, at: int) -> str:
        self.need(len(name) <= MAX_NAME, f"{what}_TOO_LONG", at, name)
        self.need(_NAME.fullmatch(name), f"BAD_{what}_NAME", at, name)
        return name

    def place(self, word: str, at: int) -> tuple[str | None, int, int]:
        body, percent, suffix = word.partition("%")
        self.need(suffix == "return" or not percent, "BAD_ADDR_SUFFIX", at + len(body), percent + suffix)
        self.kind = "r" if percent else self.kind
        number = _number(body)
        try:
            found = self.symbol(body, at) if number is None else self.address(number, at)
        except AmbiguousSymbol as error:
            self.fail("NON_UNIQ_SYMBOL", at, error)
        except (UnknownSymbol, GuestFault) as error:
            self.fail("BAD_PROBE_ADDR", at, error)
        self.need(self.entry or self.kind == "p", "BAD_RETPROBE", at, body)
        return found

    def symbol(self, body: str, at: int) -> tuple[str, int, int]:
        name, plus, digits = (body, "", "") if body in self.symbols else body.partition("+")
        offset = _number(digits) if plus else 0
        if offset is None:
            self.fail("BAD_PROBE_ADDR", at, f"{digits!r} is no offset; write SYMBOL+NUMBER")
        start = self.start(self.symbols[name])
        self.entry = offset in start.entries
        return name, offset, start.place(offset) | start.mode

    def address(self, number: int, at: int) -> tuple[None, int, int]:
        self.need(number <= self.arch.mask, "BAD_PROBE_ADDR", at, f"addresses have {self.arch.bits} bits; write a smaller one")
        here = self.arch.code_address(number, self.machine.read)
        symbol = self.symbols.covering(here.addr)
        start = self.start(symbol) if symbol else here
        self.entry = here.addr - start.addr in start.entries
        return None, 0, here.addr | here.mode

    def start(self, symbol: Symbol) -> Entry:
        return self.arch.code_address(symbol.address | symbol.mode, self.machine.read)

    # --- arguments

    def arguments(self) -> tuple[Argument, ...]:
        alls = [at for word, at in self.words[2:] if word == "$arg*"]
        if alls:
            self.need(len(alls) == 1, "DOUBLE_ARGS", alls[-1])
            self.fail("NOSUP_BTFARG" if self.entry and self.kind == "p" else "NOFENTRY_ARGS", alls[0], "$arg*")
        args: list[Argument] = []
        for word, at in self.words[2:]:
            self.need(len(args) < MAX_ARGS, "TOO_MANY_ARGS", at)
            args.append(self.argument(word, at, args))
        size = 16 + 8 * (self.kind == "r") + sum(max(1, arg.type.count) * arg.type.size for arg in args)
        self.need(size <= MAX_RECORD, "EVENT_TOO_BIG", 0, size)
        return tuple(args)

    def argument(self, word: str, at: int, before: list[Argument]) -> Argument:
        name, equals, body = word.partition("=") if word[0] != "\\" else ("", "", word)
        if not equals:
            name, body = f"arg{len(before) + 1}", word
        self.need(name, "NO_ARG_NAME", at)
        self.need(len(name) <= MAX_ARG_NAME, "ARG_NAME_TOO_LONG", at, name)
        self.need(_NAME.fullmatch(name), "BAD_ARG_NAME", at, name)
        self.need(name not in _TAKEN and name not in [arg.name for arg in before], "USED_ARG_NAME", at, name)
        type, source = self.body(body, at + len(word) - len(body))
        return Argument(name=name, text=body, type=type, position=at, read=_plan(source, type, self.symbols))

    def body(self, body: str, at: int) -> tuple[Type, _Source]:
        self.need(body, "NO_ARG_BODY", at)
        self.need(len(body) <= MAX_EXPRESSION, "ARG_TOO_LONG", at, len(body))
        found = re.fullmatch(r'(\\"[^"]*"|[^:]*)(?::(.*))?', body)
        fetch, suffix = found.groups() if found else (body, None)
        literal = fetch[:2] == '\\"'
        type_at = at + len(fetch) + 1
        type = self.type(("string" if literal else f"x{self.arch.bits}") if suffix is None else suffix, type_at)
        source = self.fetch(fetch, at)
        self.need(not literal or (type.name == "string" and not type.count), "NEED_STRING_TYPE", type_at, suffix)
        self.need(literal or source.where or not (type.count or type.style == "string"), "BAD_STRING", type_at, suffix, suffix)
        steps = source.steps + (source.where is None) + (type.name[0] == "b") + (type.count > 0)
        self.need(steps <= MAX_STEPS, "TOO_MANY_OPS", at)
        return type, source

    def type(self, text: str, at: int) -> Type:
        name, bracket, rest = text.partition("[")
        count = self.array(rest, at + len(name) + 1) if bracket else 0
        plain = re.fullmatch(r"([usx])(8|16|32|64)|char|u?string|symbol|symstr", name)
        if plain:
            bits = int(plain[2] or (8 if name == "char" else self.arch.bits))
            return Type(name=name, style=plain[1] or name.removeprefix("u"), bits=bits, size=bits // 8, count=count)
        bit_field = re.fullmatch(r"b(.*)/(8|16|32|64)", name)
        if bit_field is None:
            self.fail("BAD_TYPE", at, name)
        width, _, low = bit_field[1].partition("@")
        wide, shift, whole = _number(width), _number(low), int(bit_field[2])
        if not wide or shift is None or wide + shift > whole:
            self.fail("BAD_BITFIELD", at, name)
        return Type(name=name, style="u", bits=wide, shift=shift, size=whole // 8, count=count)

    def array(self, text: str, at: int) -> int:
        digits, close, rest = text.partition("]")
        self.need(close, "ARRAY_NO_CLOSE", at + len(text))
        self.need(not rest, "BAD_ARRAY_SUFFIX", at + len(digits) + 1, rest)
        return self.count(digits, at, MAX_ARRAY, "BAD_ARRAY_NUM", "ARRAY_TOO_BIG")

    # --- fetches

    def fetch(self, text: str, at: int) -> _Source:
        parse = {"$": self.variable, "%": self.register, "@": self.at, "+": self.dereference, "-": self.dereference,
                 "\\": self.immediate}.get(text[:1])
        if parse is None:
            self.fail("NOSUP_BTFARG" if _NAME.match(text) else "BAD_FETCH_ARG", at, text)
        return parse(text, at)

    def variable(self, text: str, at: int) -> _Source:
        found = re.fullmatch(r"\$(?:(stack)(\d*)|(arg)(\d+)|(retval)([.-].*)?)", text, re.ASCII)
        if found is None:
            self.fail("BAD_VAR", at, text, "write $argN, $retval, $stack or $stackN")
        self.need(found[1] or self.arch.abi, "BAD_VAR", at, text, f"{self.arch.name} has no calling convention, write %register")
        if found[5]:
            self.need(not found[6], "NOSUP_BTFARG", at, text)
            self.need(self.kind == "r", "RETVAL_ON_PROBE", at)
            return _Source(word=lambda regs, saved: regs.return_value)
        if found[3]:
            return self.numbered(int(found[4]), text, at)
        if not found[2]:
            return _Source(word=lambda regs, saved: regs.sp)
        n = int(found[2])
        self.need(n <= MAX_STACK, "BAD_STACK_NUM", at, text)
        return _Source(word=lambda regs, saved: regs.stack(n))

    def numbered(self, n: int, text: str, at: int) -> _Source:
        self.need(0 < n <= MAX_STACK, "BAD_ARG_NUM", at, text)
        self.need(self.entry, "NOFENTRY_ARGS", at, text)
        if self.kind == "p":
            return _Source(word=lambda regs, saved: regs.arg(n - 1))
        self.saves += [n - 1] * (n - 1 not in self.saves)
        return _Source(word=_saved(self.saves.index(n - 1)))

    def register(self, text: str, at: int) -> _Source:
        name = text[1:]
        if name not in self.arch.regs.names and name not in self.arch.regs.aliases:
            self.fail("BAD_REG_NAME", at, self.arch.regs.unknown(name))
        return _Source(word=lambda regs, saved: regs[name])

    def at(self, text: str, at: int) -> _Source:
        name, sign, digits = re.fullmatch(r"([^+-]*)([+-]?)(.*)", text[1:]).groups()  # type: ignore[union-attr]  # always matches
        self.need(name or not sign, "FILE_ON_KPROBE", at)
        offset = self.integer(sign + digits, "BAD_MEM_ADDR", at, text, "write @symbol+offset") if sign else 0
        if name[:1].isdigit() or not name:
            address = self.integer(name, "BAD_MEM_ADDR", at, text, "write a number, or a symbol's name")
        else:
            try:
                address = self.symbols[name].address
            except KprobeError as error:
                self.fail("BAD_MEM_ADDR", at, text, error)
        return _memory(lambda regs, saved: address, offset, self.arch.mask, 2)

    def dereference(self, text: str, at: int) -> _Source:
        digits, bracket, rest = text[1:].partition("(")
        inner_at = at + len(text) - len(rest)
        self.need(bracket, "DEREF_NEED_BRACE", at, text)
        offset = self.integer(text[0] + digits.removeprefix("u"), "BAD_DEREF_OFFS", at, digits)
        inner, close, tail = rest.rpartition(")")
        self.need(close, "DEREF_OPEN_BRACE", at + len(text))
        self.need(not tail, "BAD_FETCH_ARG", at + len(text) - len(tail), tail)
        self.need(inner.lower() != "$comm" and inner[:2] != '\\"', "COMM_CANT_DEREF", inner_at)
        self.need(inner != "$arg*", "BAD_VAR_ARGS", inner_at)
        source = self.fetch(inner, inner_at)
        self.need(source.steps < MAX_STEPS, "TOO_MANY_OPS", inner_at)
        return _memory(source.word, offset, self.arch.mask, source.steps + 1)

    def immediate(self, text: str, at: int) -> _Source:
        if text[1:2] != '"':
            value = self.integer(text[1:], "BAD_IMM", at + 1) & self.arch.mask
            return _Source(word=lambda regs, saved: value)
        self.need(len(text) > 2 and text.endswith('"'), "IMMSTR_NO_CLOSE", at + len(text))
        return _Source(word=lambda regs, saved: 0, literal=text[2:-1])
