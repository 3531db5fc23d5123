"""Triggers: what is done at a hit, in ftrace's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

from ..regs import Regs
from ..symbols import Symbols
from ._buffer import Buffer
from ._event import Event
from ._filter import Field, Filter, fields, parse_filter
from ._hist import CLOCK, KEY_MODIFIERS, SIZE, TIMES, VALUE_MODIFIERS, Column, Histogram, Sort, power_of_two
from ._messages import make_error

PLAIN: Final = ("traceon", "traceoff", "snapshot", "stacktrace")
SWITCHES: Final = ("enable_event", "disable_event")
VALUED: Final = ("keys", "vals", "sort", "size", "name", "clock")
_IF = re.compile(r"\s+if(?:\s+|$)")


class Switched(Protocol):
    """An event that a trigger switches."""

    enabled: bool


class Context(Protocol):
    """The event and kprobes that triggers act upon.

    Attributes:
        definition: of the event.
        buffer: its records'.
        symbols: of its machine.
    """

    @property
    def definition(self) -> Event: ...
    buffer: Buffer

    @property
    def symbols(self) -> Symbols: ...
    @property
    def stack_of(self) -> Callable[[Regs], tuple[int, ...]]: ...
    def find(self, name: str) -> Switched | None: ...
    def named(self, name: str) -> Histogram | None: ...
    def syscalls(self) -> Callable[[int], str] | None: ...


class Command:
    """Any trigger but hist.

    Attributes:
        name: what it does.
        target: for events that it switches, their name.
        left: how often it may still act; -1: for ever.
    """

    def __init__(self, name: str, target: str, left: int, filter: Filter | None, act: Callable[[], object]) -> None:
        self.name = name
        self.target = target
        self.left = left
        self.filter = filter
        self._act = act

    def hit(self, values: tuple[Any, ...], regs: Regs, caller: int, func: int) -> bool:
        """Act; True: the record is to have a stack."""
        if not self.left or (self.filter is not None and not self.filter.keep(values, regs, caller, func)):
            return False
        self.left -= self.left > 0
        self._act()
        return self.name == "stacktrace"

    @property
    def text(self) -> str:
        """The trigger as ftrace prints it."""
        count = "unlimited" if self.left < 0 else f"count={self.left}"
        condition = f" if {self.filter.text}" if self.filter else ""
        return f"{self.name}:{self.target}{':' * bool(self.target)}{count}{condition}"


Trigger = Command | Histogram


class TriggerParser:
    """The parser of a trigger's text, without the `!` of a removal."""

    def __init__(self, text: str, context: Context) -> None:
        self.text, self.context = text, context
        found = _IF.search(text)
        self.body, self.condition = (text, "") if found is None else (text[:found.start()], text[found.end():])
        self.conditional = found is not None
        self.known: dict[str, Field] = fields(context.definition)

    def fail(self, kind: str, part: str, *facts: object, behind: str = "", skip: int = 0) -> NoReturn:
        """behind: the parameter that the part is in. skip: characters of it that are right."""
        word = re.compile(rf"(?<![\w.]){re.escape(part)}(?!\w)").search(self.text, max(self.text.find(behind), 0))
        raise make_error(kind, skip + (word.start() if word else max(self.text.find(part), 0)), self.text, *facts)

    def parse(self) -> Trigger:
        """Raises EventError."""
        name, _, rest = self.body.strip().partition(":")
        if name == "hist":
            return self.hist(rest)
        if name in PLAIN:
            return self.command(name, "", rest)
        if name in SWITCHES:
            group, _, more = rest.partition(":")
            event, _, count = more.partition(":")
            return self.command(name, f"{group}:{event}", count)
        self.fail("BAD_TRIGGER", name, name)

    def filter(self) -> Filter | None:
        if self.conditional and not self.condition.strip():
            self.fail("NO_FILTER", " if")
        return parse_filter(self.condition, self.context.definition, self.context.symbols) if self.conditional else None

    def command(self, name: str, target: str, count: str) -> Command:
        if count and (not re.fullmatch("[0-9]{1,9}", count) or not int(count)):
            self.fail("BAD_TRIGGER_COUNT", count, count)
        return Command(name, target, int(count) if count else -1, self.filter(), self.action(name, target))

    def action(self, name: str, target: str) -> Callable[[], object]:
        buffer = self.context.buffer
        if name in SWITCHES:
            event = self.context.find(target.replace(":", "/"))
            if event is None:
                self.fail("NO_SUCH_EVENT", target, target.replace(":", "/"))
            return lambda: setattr(event, "enabled", name == "enable_event")
        return {"traceon": lambda: setattr(buffer, "on", True), "traceoff": lambda: setattr(buffer, "on", False),
                "snapshot": buffer.snapshot, "stacktrace": lambda: None}[name]

    # --- histograms

    def hist(self, rest: str) -> Histogram:
        given: dict[str, str] = {}
        for part in filter(None, rest.split(":")):
            name, equals, value = part.partition("=")
            name = {"key": "keys", "val": "vals", "values": "vals", "cont": "continue"}.get(name, name)
            if name not in (*VALUED, "pause", "continue", "clear", "nohitcount") or bool(equals) != (name in VALUED):
                self.fail("BAD_HIST_PARAMETER", part, part)
            given[name] = value
        if given.get("clock", CLOCK) != CLOCK:
            self.fail("SET_CLOCK_FAIL", f"clock={given['clock']}", given["clock"], CLOCK)
        if "name" in given and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", given["name"], re.ASCII):
            self.fail("BAD_HIST_NAME", f"name={given['name']}", given["name"])
        if not given.get("keys"):
            self.fail("NO_HIST_KEYS", "hist")
        keys = [self.column(word, KEY_MODIFIERS) for word in given["keys"].split(",")]
        values = [self.column(word, VALUE_MODIFIERS) for word in given.get("vals", "").split(",")
                  if word not in ("hitcount", "")]
        text = next((str(column) for column in values if column.text), None)
        if text is not None:
            self.fail("TEXT_AS_VALUE", text, text, behind=":val")
        if "nohitcount" in given and not values:
            self.fail("NEED_NOHC_VAL", "nohitcount")
        size = power_of_two(given["size"]) if "size" in given else SIZE
        if not size:
            self.fail("BAD_HIST_SIZE", given["size"] or "size", given["size"])
        if given.get("sort", "").count(",") > 1:
            self.fail("TOO_MANY_SORT_FIELDS", f"sort={given['sort']}")
        sort = ([self.sort(word, [*values, *keys]) for word in given["sort"].split(",")] if "sort" in given
                else [Sort(None)])
        hist = Histogram(keys, values, sort, size, self.filter(), self.context.symbols, self.context.stack_of,
                         shows_count="nohitcount" not in given, paused="pause" in given, name=given.get("name", ""),
                         syscall=self.context.syscalls())
        return self.shared(hist)

    def shared(self, hist: Histogram) -> Histogram:
        """With what others of its name have counted."""
        other = self.context.named(hist.name) if hist.name else None
        if other is not None and not hist.share(other):
            self.fail("NAMED_MISMATCH", f"name={hist.name}", hist.name, other.text)
        return hist

    def misfit(self, word: str, behind: str, there_are: str) -> NoReturn:
        """A modifier that does not go there: shown where it stands; at the field, where values take none of a key's."""
        name, _, modifier = word.partition(".")
        skip = 0 if behind == ":val" and modifier in KEY_MODIFIERS else len(name) + 1
        self.fail("BAD_FIELD_MODIFIER", word, word, there_are, behind=behind, skip=skip)

    def column(self, word: str, modifiers: tuple[str, ...]) -> Column:
        name, dot, modifier = word.partition(".")
        modifier, _, width = modifier.partition("=")
        behind = ":key" if modifiers is KEY_MODIFIERS else ":val"
        if dot and (modifier not in modifiers or bool(width) != (modifier == "buckets")
                    or (width and (not width.isdecimal() or not int(width[:9])))):
            self.misfit(word, behind, ", ".join(f".{m}" for m in modifiers))
        if ((name in ("stacktrace", "common_stacktrace") and modifiers is KEY_MODIFIERS)
            or (name == "hitcount" and modifiers is VALUE_MODIFIERS)):
            return Column(name, None, modifier)
        field = TIMES.get(modifier, TIMES[""]) if name == "common_timestamp" else self.known.get(name)
        if field is None:
            self.fail("FIELD_NOT_FOUND", word, name, ", ".join([*self.known, "common_timestamp"]), behind=behind)
        if field.text and modifier:
            self.misfit(word, behind, "none for text")
        if modifier == "execname" and name != "common_pid":
            self.misfit(word, behind, ".execname for common_pid only")
        if modifier == "usecs" and name != "common_timestamp":
            self.misfit(word, behind, ".usecs for common_timestamp only")
        if modifier == "syscall" and self.context.syscalls() is None:
            self.fail("NO_SYSCALLS", word, word, behind=behind)
        return Column(name, field, modifier, int(width[:9] or 0))

    def sort(self, word: str, columns: list[Column]) -> Sort:
        """columns: the values first; a bare name is the first one's of this name, as in Linux."""
        name, bare = word.partition(".")[0], word.removesuffix(".descending").removesuffix(".ascending")
        if not name:
            self.fail("EMPTY_SORT_FIELD", "sort")
        column = next((c for c in columns if (c.name if bare == name else str(c)) == bare), None)
        if column is None and bare != name:
            self.fail("INVALID_SORT_MODIFIER", word, word, behind=":sort", skip=len(name) + 1)
        if column is None and name != "hitcount":
            self.fail("INVALID_SORT_FIELD", word, word, behind=":sort")
        return Sort(None if name == "hitcount" else column, word.endswith(".descending"))


class Triggers:
    """The triggers of an event. Iterating gives them; `text` their lines, as ftrace's file `trigger`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.all: list[Trigger] = []

    def write(self, text: str) -> bool:
        """Add a trigger, or remove it (`!...`); True where there is one more, or one less.

        EventError: it is wrong, or there already, or not there.
        """
        removes = text.strip().startswith("!")
        body = text.strip().removeprefix("!").strip()
        parser = TriggerParser(body, self._context)
        trigger = parser.parse()
        same = next((t for t in self.all if _same(t, trigger)), None)
        if removes:
            if same is None:
                parser.fail("NO_SUCH_TRIGGER", body, body)
            self.all.remove(same)
            return True
        if isinstance(same, Histogram) and self._control(same, body):
            return False
        if same is not None:
            parser.fail("TRIGGER_EXISTS", body, same.text)
        self.all.append(trigger)
        return True

    @staticmethod
    def _control(hist: Histogram, body: str) -> bool:
        """`:pause`, `:continue`, `:clear` of a histogram that there is."""
        words = set(_IF.split(body)[0].split(":"))
        if "pause" in words or words & {"continue", "cont"}:
            hist.paused = "pause" in words
        if "clear" in words:
            hist.clear()
        return bool(words & {"pause", "continue", "cont", "clear"})


def _same(one: Trigger, other: Trigger) -> bool:
    """ftrace has one trigger of a kind, one for each event that is switched, and histograms that differ."""
    if isinstance(one, Histogram) or isinstance(other, Histogram):
        return isinstance(one, Histogram) and isinstance(other, Histogram) and _identity(one) == _identity(other)
    kinds = ("enable_event", "disable_event"), ("traceon", "traceoff")
    alike = one.name == other.name or any(one.name in pair and other.name in pair for pair in kinds)
    return alike and one.target == other.target


def _identity(hist: Histogram) -> tuple[Any, ...]:
    return hist.name, hist.keys, hist.values, hist.filter.text if hist.filter else ""
