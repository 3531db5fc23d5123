"""The grammar of one definition, as Linux has it for kprobe_events."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NoReturn

from ..arch._base import Entry
from ..errors import AmbiguousSymbol, GuestFault, KprobeError, UnknownSymbol
from ..machine._base import Machine
from ..symbols import Symbol
from ._event import Argument, Event, KeptAtEntry, located
from ._messages import make_error
from ._plans import Fetch, Word, comm, memory, plan
from ._styles import Type
from ._types import integer_of, signed_of, type_of, unsigned_of
from ._watchpoint import MOST_WATCHED

if TYPE_CHECKING:
    from ._named import KnownNames

MAX_NAME = 63  #: characters of an event's or a group's name
MAX_ARG_NAME = 32  #: characters of an argument's name
MAX_EXPRESSION = 63  #: characters behind an argument's equals sign
MAX_ARGS = 128
MAX_STEPS = 15  #: steps of a fetch, as Linux counts them
MAX_ACTIVE = 4096  #: instances of a return probe
MAX_STACK = 2048  #: the greatest N of $stackN and $argN
MAX_RECORD = 3072  #: bytes that a hit records
_TAKEN = {
    "common_type",
    "common_flags",
    "common_preempt_count",
    "common_pid",
    "__probe_ip",
    "__probe_ret_ip",
    "__probe_func",
}
#: definitions of Linux's that guests have nothing for, and what is said of each
UNSUPPORTED = {"e": "NO_EPROBES", "t": "NO_TRACEPOINTS", "s": "NO_SYNTHETIC"}
#: bits of registers whose low bits are a floating-point number of IEEE 754
_FLOATS = (32, 64, 128)
WATCHED = ("$before", "$value", "$addr")  #: what an access to watched memory has
#: a variable, in C++ with the scopes that it is in, and the way to a member
_NAMED = re.compile(
    r"([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)((?:(?:->|\.)[A-Za-z_]\w*|\[[^]\[]*\])*)", re.ASCII
)
#: what is fetched, and its type; the colons of scopes stand between names
_BODY = re.compile(r'(\\"[^"]*"|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+[^:]*|[^:]*)(?::(.*))?', re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KIND = re.compile(r"[a-z]\d*(:.*)?", re.ASCII)  #: a definition's first word, of any kind
#: variables that `perf probe` has -> what to write
_OF_PERF = {
    "$params": "write $arg*, which is all parameters",
    "$vars": "write $arg*, which is all parameters, or the variables' names",
}


def _with_kind(word: str) -> str:
    """Return what to write for a first word that has no kind: "p measure" for "measure".

    Args:
        word: the word; of another kind, "x:name", it is "p:name".
    """
    found = _KIND.fullmatch(word)
    return f"p {word}" if found is None else f"p{found[1] or ''} SYMBOL"


class Parser:
    """The parser of a definition. `at` is always the column of the text beside it, from 0.

    Attributes:
        text: the definition, its words joined by single blanks.
        words: (word, column) of each.
        machine: the guest.
        arch: its architecture.
        symbols: its symbols.
        kind: "p", "r" or "w".
        entry: the place is a function's entry.
        written: "f" for an f event, else "".
        saves: what a return event keeps of the function's entry.
        target: the place's address, with mode bits.
        inside: name of the inlined function of which a copy begins at the place, and whose
            variables come before others; "": none is named.
    """

    def __init__(
        self,
        text: str,
        machine: Machine,
        read: Callable[[int, int], bytes] | None = None,
        inside: str = "",
    ) -> None:
        """Split a definition into words.

        Args:
            text: the definition.
            machine: the guest.
            read: gives `size` bytes of code at an address as they are without probes, by which a
                function's entry is known; None: machine.read, as there are no probes.
            inside: name of the inlined function whose copy the place is; "": of none.
        """
        self.inside = inside
        words = text.split() or [""]
        self.text = " ".join(words)
        self.words = [
            *zip(words, accumulate((len(word) + 1 for word in words), initial=0), strict=False)
        ]
        self.machine = machine
        self.arch = machine.arch
        self.symbols = machine.symbols
        self._read = machine.read if read is None else read
        self.kind = "p"
        self.entry = False
        self.written = ""
        self.saves: list[int | KeptAtEntry] = []
        self.target = 0

    @cached_property
    def typed(self) -> KnownNames:
        """The parameters and variables that are known at the place."""
        from ._named import KnownNames

        return KnownNames(self, self.target & ~self.arch.pointers.mode_bits)

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn:
        """Raise the EventError of a kind.

        Args:
            kind: Linux's name of the error.
            at: column in the definition that the error points at.
            facts: fill the error's message.
        """
        raise make_error(kind, at, self.text, *facts)

    def need(self, condition: object, kind: str, at: int, *facts: object) -> None:
        """Raise the EventError of a kind unless a condition is true.

        Args:
            condition: the condition.
            kind: Linux's name of the error.
            at: column in the definition that the error points at.
            facts: fill the error's message.
        """
        if not condition:
            raise make_error(kind, at, self.text, *facts)

    def integer(self, text: str, kind: str, at: int, *facts: object) -> int:
        """Return the number that a text is, with or without a sign.

        Args:
            text: the number, as signed_of() reads it.
            kind: the error's name if it is none, such as "BAD_IMM".
            at: the text's column.
            facts: fill the error's message; none: the text does.

        Raises:
            EventError: the text is no number of at most 64 bits.
        """
        value = signed_of(text)
        if value is None:
            self.fail(kind, at, *(facts or (text,)))
        return value

    def count(self, text: str, at: int, most: int, bad: str, big: str, value: int | None) -> int:
        """Return a number from 1 to `most`.

        Args:
            text: as written.
            at: its column.
            most: the greatest.
            bad: kind of the error for 0, and for what is no number.
            big: kind of the error beyond `most`.
            value: the number that the text is; None: it is none.

        Raises:
            EventError: the value is None, 0, or greater than `most`.
        """
        self.need(value, bad, at, text)
        self.need(value is None or value <= most, big, at, text)
        return value or 0

    # --- what and where

    def event(self) -> Event:
        """Parse the whole definition, and return the event; one without a name is named after its
        kind and place.

        Sets `kind`, `written`, `entry` and `target`.

        Raises:
            EventError: the definition is wrong, or its place is missing.
        """
        maxactive, group, name = self.head(self.words[0][0])
        if len(self.words) == 1:
            place = f"p {name}" if name in self.symbols else "SYMBOL[+OFFSET]"
            self.fail("BAD_PROBE_ADDR", len(self.text), f"the place is missing; write {place}")
        word, at = self.words[1]
        if self.kind == "w":
            return self.watch(group, name, word, at)
        if self.written == "f":
            self.need(
                word.endswith("%return") or not maxactive, "BAD_MAXACT_TYPE", 1, str(maxactive)
            )
        word, semaphore = self.counted(word, at)
        symbol, offset, target = self.place(word, at)
        self.target = target
        address = target & ~self.arch.pointers.mode_bits
        if self.written == "f":
            self.need(self.entry, "BAD_FPROBE", at, word)
            default = f"{symbol or f'{target:#x}'}__{'exit' if self.kind == 'r' else 'entry'}"
        else:
            default = (
                f"{self.kind}_{target:#x}" if symbol is None else f"{self.kind}_{symbol}_{offset}"
            )
        found = self.symbols[symbol] if symbol is not None else self.symbols.covering(address)
        if found is None:
            where = f"{address:#x}"
        else:
            where = found.name if self.kind == "r" else located(self.symbols, found, address)
        return Event(
            kind=self.kind,
            group=group,
            name=name or re.sub(r"\W", "_", default, flags=re.ASCII)[:MAX_NAME],
            symbol=symbol,
            offset=offset,
            address=address,
            target=target,
            maxactive=maxactive,
            args=self.arguments(),
            saves=tuple(self.saves),
            text=self.text,
            position=at,
            where=where,
            symbols=self.symbols,
            semaphore=semaphore,
            written=self.written,
        )

    def counted(self, word: str, at: int) -> tuple[str, int]:
        """Split a place and the address of its semaphore: `FILE:OFFSET(SEMAPHORE)`.

        The semaphore is a number in guest memory that says how many tracers use a marker.

        Args:
            word: the place as written, perhaps with a semaphore.
            at: its column.

        Returns:
            The place without the brackets, and the address. (word, 0): there is none; brackets
            behind anything but a number, as in `f(int)`, belong to the place.

        Raises:
            EventError: what the brackets have is no integer.
        """
        place, bracket, number = word.removesuffix(")").partition("(")
        if not bracket or not word.endswith(")") or integer_of(place.rpartition(":")[2]) is None:
            return word, 0
        return place, self.integer(number, "BAD_REFCNT", at + len(place) + 1)

    def watch(self, group: str, name: str, word: str, at: int) -> Event:
        """Parse a watchpoint's definition: `[r|w|rw]@ADDRESS[:LENGTH]`.

        Without an access it is "rw", without a length 4 bytes. Without arguments it has the value
        before and after, which are added to `words`.

        Args:
            group: the event's.
            name: the event's; "": one is made of the place.
            word: the place.
            at: its column.

        Raises:
            EventError: the access, the address, the length or an argument is wrong.
        """
        access, sign, rest = word.partition("@")
        self.need(
            sign and access in ("r", "w", "rw", ""),
            "BAD_ACCESS_TYPE" if sign else "BAD_ACCESS_FMT",
            at,
            access if sign else word,
        )
        size = 4
        body, colon, digits = rest.rpartition(":")
        if colon and digits[:1].isdecimal():
            size_at = at + len(word) - len(digits)
            wrong = "BAD_ACCESS_LEN"
            size = self.count(digits, size_at, MOST_WATCHED, wrong, wrong, integer_of(digits))
        else:
            body = rest
        address, symbol, offset = self.data(body, word, at + len(access) + 1)
        bits = f":x{8 * size}" if size in (1, 2, 4, 8) else ""
        if len(self.words) == 2:
            self.words += [(f"before=$before{bits}", at), (f"value=$value{bits}", at)]
        default = f"w_{symbol or f'{address:#x}'}_{offset}"
        return Event(
            kind="w",
            group=group,
            name=name or re.sub(r"\W", "_", default, flags=re.ASCII)[:MAX_NAME],
            symbol=symbol,
            offset=offset,
            address=address,
            target=address,
            maxactive=0,
            args=self.arguments(),
            saves=(),
            text=self.text,
            position=at,
            where="",
            symbols=self.symbols,
            watched=f"{access or 'rw'}@{body}:{size}",
            access=access or "rw",
            size=size,
        )

    def data(self, body: str, word: str, at: int) -> tuple[int, str | None, int]:
        """Parse the address of data.

        Args:
            body: SYMBOL or a number, with +OFFSET or -OFFSET behind it or without.
            word: the place that it is part of, for errors.
            at: column of `body`.

        Returns:
            (address, offset included; symbol, None of a number; offset in bytes).

        Raises:
            EventError: the address or the offset is missing or no number, or there is no such
                symbol, or more than one.
        """
        parts = re.fullmatch(r"([^+-]*)([+-]?)(.*)", body)
        assert parts is not None  # it matches any text
        name, sign, digits = parts.groups()
        number = integer_of(name)
        self.need(name, "BAD_ACCESS_FMT", at, word)
        offset = (
            self.integer(sign + digits, "BAD_MEM_ADDR", at, body, "write SYMBOL+OFFSET")
            if sign
            else 0
        )
        try:
            start = self.symbols[name].address if number is None else number
        except KprobeError as error:
            self.fail("BAD_MEM_ADDR", at, body, error.plain)
        return start + offset & self.arch.mask, name if number is None else None, offset

    def head(self, word: str) -> tuple[int, str, str]:
        """Parse the first word, `KIND[MAXACTIVE][:[GROUP/]NAME]`; sets `kind` and `written`.

        Returns:
            (maxactive or 0, group, name or ""). Without a group it is "kprobes", of an f event
            "fprobes".

        Raises:
            EventError: there is no such kind, or the number or a name is wrong.
        """
        instances, colon, name = word[1:].partition(":")
        is_function = _KIND.fullmatch(word) is None and word in self.symbols
        if not is_function:
            self.need(word[:1] not in UNSUPPORTED, UNSUPPORTED.get(word[:1], ""), 0)
        known = word[:1] in ("p", "r", "w", "f") and not is_function
        self.need(known, "BAD_PROBE_TYPE", 0, word, _with_kind(word))
        self.written = "f" if word[0] == "f" else ""
        self.kind = "p" if self.written else word[0]
        self.need(
            self.kind == "r" or self.written or not instances, "BAD_MAXACT_TYPE", 1, instances
        )
        maxactive = (
            self.count(
                instances, 1, MAX_ACTIVE, "BAD_MAXACT", "MAXACT_TOO_BIG", integer_of(instances)
            )
            if instances
            else 0
        )
        return maxactive, *(self.name(name, 2 + len(instances)) if colon else (self.group, ""))

    @property
    def group(self) -> str:
        """The group of an event that names none."""
        return "fprobes" if self.written else "kprobes"

    def name(self, text: str, at: int) -> tuple[str, str]:
        """Parse what stands behind the colon: `[GROUP/]NAME`, or `GROUP/`.

        Args:
            text: what stands there.
            at: its column.

        Returns:
            (group, name); the name is "" where only a group stands there.

        Raises:
            EventError: a name is missing, too long, or has other characters than names have.
        """
        group, slash, event = text.partition("/" if "/" in text else ".")
        if not slash:
            self.need(text, "NO_EVENT_NAME", at)
            return self.group, self.named("EVENT", text, at)
        self.need(group, "NO_GROUP_NAME", at)
        self.named("GROUP", group, at)
        return group, self.named("EVENT", event, at + len(group) + 1) if event else ""

    def named(self, what: str, name: str, at: int) -> str:
        """Check the name of an event or a group, and return `name` itself.

        Args:
            what: "EVENT" or "GROUP": the kinds of errors are made of it.
            name: the name.
            at: its column.

        Raises:
            EventError: the name is too long, or has other characters than names have.
        """
        self.need(len(name) <= MAX_NAME, f"{what}_TOO_LONG", at, name)
        self.need(_NAME.fullmatch(name), f"BAD_{what}_NAME", at, name)
        return name

    def place(self, word: str, at: int) -> tuple[str | None, int, int]:
        """Parse the place of a probe, and set `kind` ("r" with %return) and `entry`.

        Args:
            word: SYMBOL[+OFFSET], an address or FILE:OFFSET, perhaps with %return behind it.
            at: its column.

        Returns:
            (symbol or None, offset from it in bytes, address with mode bits).

        Raises:
            EventError: there is no such place, the name stands for several, something else than
                `return` is behind the %, or a return event's place is no function's entry.
        """
        body, percent, suffix = word.partition("%")
        self.need(
            suffix == "return" or not percent, "BAD_ADDR_SUFFIX", at + len(body), percent + suffix
        )
        self.kind = "r" if percent else self.kind
        numeric = unsigned_of(body.rpartition(":")[2]) is not None and body not in self.symbols
        number = self.in_file(body, at) if numeric else None
        try:
            found = self.symbol(body, at) if number is None else self.address(number, at)
        except AmbiguousSymbol as error:
            self.fail("NON_UNIQ_SYMBOL", at, error.plain)
        except (UnknownSymbol, GuestFault) as error:
            self.fail("BAD_PROBE_ADDR", at, error.plain)
        self.need(self.entry or self.kind == "p", "BAD_RETPROBE", at, body)
        return found

    def in_file(self, body: str, at: int) -> int:
        """Return the address that a number is, as written, or that FILE:OFFSET stands for: with the
        mode bits of the symbol that covers it.

        Args:
            body: the number or FILE:OFFSET; an offset is in bytes from the file's beginning.
            at: its column.

        Raises:
            EventError: no loaded code of such a file is at that offset.
        """
        path, colon, digits = body.rpartition(":")
        offset = unsigned_of(digits) or 0
        if not colon:
            return offset
        address = self.symbols.in_file(os.path.basename(path), offset)
        if address is None:
            self.fail(
                "BAD_PROBE_ADDR",
                at,
                f"no code of a loaded file {path!r} is at offset {offset:#x}; `readelf -lW FILE` "
                "lists what is loaded",
            )
        symbol = self.symbols.covering(address)
        return address | (symbol.mode if symbol else 0)

    def symbol(self, body: str, at: int) -> tuple[str, int, int]:
        """Look SYMBOL[+OFFSET] up, and set `entry`.

        Args:
            body: the text.
            at: its column.

        Returns:
            (symbol, offset from it in bytes, address with mode bits).

        Raises:
            UnknownSymbol: there is none of this name.
            AmbiguousSymbol: there are several.
            EventError: the text behind `+` is no number.
        """
        name, plus, digits = (body, "", "") if body in self.symbols else body.partition("+")
        if not plus and body not in self.symbols and integer_of(body.rpartition("-")[2]) == 0:
            name = body.rpartition("-")[0]  # an offset of -0
        offset = integer_of(digits) if plus else 0
        if offset is None:
            self.fail("BAD_PROBE_ADDR", at, f"{digits!r} is no offset; write SYMBOL+NUMBER")
        start = self.start(self.symbols[name])
        self.entry = offset in start.entries
        return name, offset, start.place(offset) | start.mode

    def address(self, number: int, at: int) -> tuple[None, int, int]:
        """Find out whether an address is a function's entry; set `entry` to that.

        Args:
            number: the address, mode bits included.
            at: column of the address in the definition.

        Returns:
            (None, 0, address with mode bits), as place() returns it: no symbol, no offset.

        Raises:
            EventError: the guest's addresses have fewer bits.
        """
        self.need(
            number <= self.arch.mask,
            "BAD_PROBE_ADDR",
            at,
            f"addresses have {self.arch.bits} bits; write a smaller one",
        )
        here = self.arch.pointers.code_address(number, self._read)
        symbol = self.symbols.covering(here.addr)
        start = self.start(symbol) if symbol else here
        self.entry = here.addr - start.addr in start.entries
        return None, 0, here.addr | here.mode

    def start(self, symbol: Symbol) -> Entry:
        """Return where a function's code begins, and which offsets from there count as its entry.

        Args:
            symbol: the function.
        """
        return self.arch.pointers.code_address(symbol.address | symbol.mode, self._read)

    # --- arguments

    def arguments(self) -> tuple[Argument, ...]:
        """Parse all arguments: the words behind the place. `$arg*` stands for all parameters of the
        function.

        Raises:
            EventError: an argument is wrong, there are too many, `$arg*` cannot be used or stands
                twice, or a record would be too large.
        """
        self.expand()
        alls = [at for word, at in self.words[2:] if word == "$arg*"]
        if alls:
            self.need(len(alls) == 1, "DOUBLE_ARGS", alls[-1])
            self.fail(
                "NOSUP_BTFARG" if self.entry and self.kind == "p" else "NOFENTRY_ARGS",
                alls[0],
                "$arg*",
            )
        args: list[Argument] = []
        for word, at in self.words[2:]:
            self.need(len(args) < MAX_ARGS, "TOO_MANY_ARGS", at)
            args.append(self.argument(word, at, args))
        size = (
            16
            + 8 * (self.kind == "r")
            + sum(max(1, arg.type.count) * arg.type.size for arg in args)
        )
        self.need(size <= MAX_RECORD, "EVENT_TOO_BIG", 0, size)
        return tuple(args)

    def expand(self) -> None:
        """Replace `$arg*` among the definition's words by the names of the function's parameters;
        parameters without a name, as Rust's patterns are, are left out.

        `words` stays as it is where `$arg*` stands more than once, where the place is no function's
        entry, and where debug information has nothing of the function.
        """
        alls = [n for n, (word, _) in enumerate(self.words) if word == "$arg*" and n > 1]
        if len(alls) == 1 and self.entry and self.typed.known:
            at = self.words[alls[0]][1]
            self.words[alls[0] : alls[0] + 1] = [
                (name, at) for name in self.typed.parameters if name
            ]

    def argument(self, word: str, at: int, before: list[Argument]) -> Argument:
        """Parse one argument, `[NAME=]FETCH[:TYPE]`.

        One without a name that fetches by name, such as `it->count`, is named after the last member
        (`count`) where that name is free and debug information has the function; any other is argN.

        Args:
            word: the argument as written.
            at: its column.
            before: the arguments in front of it, whose names are taken.

        Raises:
            EventError: name, fetch or type is wrong.
        """
        name, equals, body = word.partition("=") if word[0] != "\\" else ("", "", word)
        if not equals:
            name = f"arg{len(before) + 1}"
            body = word
            fetched = _BODY.match(word)
            found = _NAMED.fullmatch(fetched[1]) if fetched else None
            last = re.split(r"->|\.|::", re.sub(r"\[.*?\]", "", found[0]))[-1] if found else name
            name = (
                last
                if self.typed.known
                and last not in _TAKEN
                and last not in [arg.name for arg in before]
                else name
            )
        self.need(name, "NO_ARG_NAME", at)
        self.need(len(name) <= MAX_ARG_NAME, "ARG_NAME_TOO_LONG", at, name)
        self.need(_NAME.fullmatch(name), "BAD_ARG_NAME", at, name)
        self.need(
            name not in _TAKEN and name not in [arg.name for arg in before],
            "USED_ARG_NAME",
            at,
            name,
        )
        type, source = self.body(body, at + len(word) - len(body))
        return Argument(
            name=name,
            text=body,
            type=type,
            position=at,
            read=plan(source, type, self.symbols),
            source=source,
        )

    def body(self, body: str, at: int) -> tuple[Type, Fetch]:
        """Parse what stands behind an argument's equals sign: FETCH[:TYPE].

        Args:
            body: the text.
            at: its column.

        Returns:
            (type, fetch).

        Raises:
            EventError: the fetch or the type is wrong, or they do not go together.
        """
        self.need(body, "NO_ARG_BODY", at)
        self.need(len(body) <= MAX_EXPRESSION, "ARG_TOO_LONG", at, len(body))
        found = _BODY.fullmatch(body)
        fetch, suffix = found.groups() if found else (body, None)
        literal = fetch[:2] == '\\"' or fetch in ("$comm", "$COMM")
        type_at = at + len(fetch) + 1
        type, source = None, None
        if _NAMED.fullmatch(fetch) and (
            self.typed.known or self.typed.is_global(re.split(r"->|[.[]", fetch)[0])
        ):
            source, type = self.typed.fetch(fetch, at, suffix)
        elif self.kind == "r" and re.match(r"\$retval(->|[.[]|$)", fetch) and self.symbols.files:
            source, type = self.typed.result(fetch, at, suffix) or (None, None)
        usual = "string" if literal else f"x{self.arch.bits}"
        type = type or type_of(self, usual if suffix is None else suffix, type_at)
        if source is None:
            source = self.fetch(fetch, at)
            if not type.count:
                self.check_width(fetch, type, suffix, type_at)
        self.need(
            not literal or (type.name == "string" and not type.count),
            "NEED_STRING_TYPE",
            type_at,
            suffix,
        )
        self.need(
            literal or source.in_memory or not (type.count or type.is_string),
            "BAD_STRING",
            type_at,
            suffix,
            suffix,
        )
        steps = source.steps + (not source.in_memory) + (type.name[0] == "b") + (type.count > 0)
        self.need(steps <= MAX_STEPS, "TOO_MANY_OPS", at)
        return type, source

    def check_width(self, fetch: str, type: Type, suffix: str | None, at: int) -> None:
        """Check that a word has all bits of the signed or floating-point number it is shown as.

        What is fetched from memory has them. An unsigned number may be wider, and of $stackN any
        integer, as in Linux: the word is taken for one.

        Args:
            fetch: the fetch; only that of a register or of a word is looked at.
            type: as which it is shown.
            suffix: the type as written; None: there is none.
            at: its column.

        Raises:
            EventError: the register or word is narrower, or no floating-point number is passed
                there.
        """
        wanted = type.shift + type.bits
        bits = self.arch.bits
        if fetch == "$retval" or fetch.startswith("$arg"):
            kind = "BAD_RETVAL_TYPE" if fetch == "$retval" else "BAD_ARG_TYPE"
            facts = (suffix, bits) if fetch == "$retval" else (suffix, fetch, bits)
            fits = wanted <= bits or (fetch != "$retval" and not type.is_signed)
            self.need(not type.is_float and fits, kind, at, *facts)
            return
        if fetch.startswith("%"):
            regs = self.arch.regs
            name = regs.aliases.get(fetch[1:], fetch[1:])
            bits = regs.widths.get(name, bits)
        elif not fetch.startswith("$stack"):
            return
        if type.is_float:
            fits = wanted <= bits and bits in _FLOATS
        elif fetch.startswith("$"):
            fits = True  # Linux's $stack0:s64 is the word on 32 bits, too, without its sign
        else:  # a narrow register is a word, too
            fits = not type.is_signed or wanted <= max(bits, self.arch.bits)
        self.need(fits, "BAD_WORD_TYPE", at, suffix, fetch, bits)

    # --- fetches

    def fetch(self, text: str, at: int) -> Fetch:
        r"""Parse a fetch of Linux's grammar, which begins with one of `$%@+-\`.

        Args:
            text: the fetch.
            at: its column.

        Raises:
            EventError: it is wrong.
        """
        parse = {
            "$": self.variable,
            "%": self.register,
            "@": self.at,
            "+": self.dereference,
            "-": self.dereference,
            "\\": self.immediate,
        }.get(text[:1])
        if parse is None:
            untyped = _NAME.match(text) and not self.typed.known
            self.fail("NOSUP_BTFARG" if untyped else "BAD_FETCH_ARG", at, text)
        return parse(text, at)

    def variable(self, text: str, at: int) -> Fetch:
        """Parse `$comm`, `$argN`, `$retval`, `$stack` or `$stackN`; of a "w" event, one of WATCHED.

        Args:
            text: the fetch.
            at: its column.

        Raises:
            EventError: there is no such variable, or not in an event of this kind.
        """
        if text in ("$comm", "$COMM"):
            return Fetch(tree=Word("comm"), text=comm)
        if self.kind == "w" and text in WATCHED:
            place = WATCHED.index(text)
            return Fetch(tree=Word("saved", place, place=place))
        found = re.fullmatch(r"\$(?:(stack)(\d*)|(arg)(\d+)|(retval)([.[-].*)?)", text, re.ASCII)
        if found is None:
            others = "write $argN, $retval, $stack or $stackN"
            self.fail("BAD_VAR", at, text, _OF_PERF.get(text, others))
        self.need(
            found[1] or self.arch.abi,
            "BAD_VAR",
            at,
            text,
            f"{self.arch.name} has no calling convention, write %register",
        )
        if found[5]:
            self.need(not found[6], "NOSUP_BTFARG", at, text)
            self.need(self.kind == "r", "RETVAL_ON_PROBE", at)
            return Fetch(tree=Word("result"))
        if found[3]:
            return self.numbered(int(found[4]), text, at)
        if not found[2]:
            return Fetch(tree=Word("sp"))
        n = int(found[2])
        self.need(n <= MAX_STACK, "BAD_STACK_NUM", at, text)
        return Fetch(tree=Word("stack", n))

    def numbered(self, n: int, text: str, at: int) -> Fetch:
        """Return the fetch of the n-th argument of the call; a return event keeps it at the entry
        (its number is added to `saves`, once).

        Args:
            n: counted from 1.
            text: as written, for errors.
            at: its column.

        Raises:
            EventError: n is 0 or above MAX_STACK, or the place is no function's entry.
        """
        self.need(0 < n <= MAX_STACK, "BAD_ARG_NUM", at, text)
        self.need(self.entry, "NOFENTRY_ARGS", at, text)
        if self.kind == "p":
            return Fetch(tree=Word("argument", n - 1))
        self.saves += [n - 1] * (n - 1 not in self.saves)
        return Fetch(tree=Word("saved", n - 1, place=self.saves.index(n - 1)))

    def kept(self, value: KeptAtEntry) -> Fetch:
        """Have a return event keep a value at the function's entry; return the fetch of the kept
        value.

        Args:
            value: what is kept; it is added to `saves`, once.
        """
        self.saves += [value] * (value not in self.saves)
        return Fetch(tree=Word("kept", place=self.saves.index(value)))

    def register(self, text: str, at: int) -> Fetch:
        """Parse `%REGISTER`, and return the fetch of the register.

        Args:
            text: the fetch as written.
            at: its column, for the error.

        Raises:
            EventError: the architecture has no such register.
        """
        name = text[1:]
        if name not in self.arch.regs.names and name not in self.arch.regs.aliases:
            self.fail("BAD_REG_NAME", at, self.arch.regs.unknown(name))
        return Fetch(tree=Word("register", name=name))

    def at(self, text: str, at: int) -> Fetch:
        """Parse `@ADDRESS` or `@SYMBOL[+-OFFSET]`: the word of memory there.

        Args:
            text: the fetch.
            at: its column.

        Raises:
            EventError: there is no such address or symbol.
        """
        parts = re.fullmatch(r"([^+-]*)([+-]?)(.*)", text[1:])
        assert parts is not None  # it matches any text
        name, sign, digits = parts.groups()
        self.need(name or not sign, "FILE_ON_KPROBE", at)
        offset = (
            self.integer(sign + digits, "BAD_MEM_ADDR", at, text, "write @symbol+offset")
            if sign
            else 0
        )
        if name[:1].isdecimal() or not name:
            address = self.integer(
                name, "BAD_MEM_ADDR", at, text, "write a number, or a symbol's name"
            )
        else:
            try:
                address = self.symbols[name].address
            except KprobeError as error:
                self.fail("BAD_MEM_ADDR", at, text, error.plain)
        return memory(Word("value", address), offset, self.arch.mask, 2)

    def dereference(self, text: str, at: int) -> Fetch:
        """Parse `+OFFSET(FETCH)` or `-OFFSET(FETCH)`, where a `u` may stand in front of the offset.

        Args:
            text: the fetch.
            at: its column.

        Raises:
            EventError: brackets or the offset are wrong, or the inner fetch has no address.
        """
        digits, bracket, rest = text[1:].partition("(")
        inner_at = at + len(text) - len(rest)
        self.need(bracket, "DEREF_NEED_BRACE", at, text)
        number = digits.removeprefix("u")  # behind a `+` it may have a sign of its own
        offset = self.integer(
            "-" + number if text[0] == "-" else number, "BAD_DEREF_OFFS", at, digits
        )
        inner, close, tail = rest.rpartition(")")
        self.need(close, "DEREF_OPEN_BRACE", at + len(text))
        self.need(not tail, "BAD_FETCH_ARG", at + len(text) - len(tail), tail)
        self.need(inner.lower() != "$comm" and inner[:2] != '\\"', "COMM_CANT_DEREF", inner_at)
        self.need(inner != "$arg*", "BAD_VAR_ARGS", inner_at)
        source = self.fetch(inner, inner_at)
        self.need(source.steps < MAX_STEPS, "TOO_MANY_OPS", inner_at)
        return memory(source.tree, offset, self.arch.mask, source.steps + 1)

    def immediate(self, text: str, at: int) -> Fetch:
        r"""Parse `\NUMBER` or `\"TEXT"`, a constant.

        Args:
            text: the fetch.
            at: its column.

        Raises:
            EventError: it is no number, or the closing quote is missing.
        """
        if text[1:2] != '"':
            number = text[1:].removeprefix("+")
            value = self.integer(number, "BAD_IMM", at + 1, text[1:]) & self.arch.mask
            return Fetch(tree=Word("value", value))
        self.need(len(text) > 2 and text.endswith('"'), "IMMSTR_NO_CLOSE", at + len(text))
        return Fetch(tree=Word("value"), literal=text[2:-1])
