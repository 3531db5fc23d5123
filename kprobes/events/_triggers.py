"""Triggers: what is done at a hit, as ftrace has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

from ..regs import Regs
from ..symbols import Symbols
from ._buffer import Buffer
from ._event import Event
from ._filter import EventField, Filter, fields, parse_filter
from ._hist import (
    CLOCK,
    KEY_MODIFIERS,
    SIZE,
    TIMES,
    VALUE_MODIFIERS,
    Column,
    Histogram,
    SortKey,
    power_of_two,
)
from ._messages import make_error

PLAIN: Final = ("traceon", "traceoff", "snapshot", "stacktrace")
SWITCHES: Final = ("enable_event", "disable_event")
VALUED: Final = ("keys", "vals", "sort", "size", "name", "clock")
_IF = re.compile(r"\s+if(?:\s+|$)")


class Switched(Protocol):
    """An event that a trigger switches."""

    enabled: bool


class Context(Protocol):
    """The event that triggers belong to, and what is around it.

    Attributes:
        buffer: the buffer of its records.
    """

    @property
    def definition(self) -> Event:
        """The event, at its first place."""

    buffer: Buffer

    @property
    def symbols(self) -> Symbols:
        """The symbols of its machine."""

    @property
    def stack_of(self) -> Callable[[Regs], tuple[int, ...]]:
        """The function from the registers at a hit to the call stack, a tuple of addresses."""

    def find(self, name: str) -> Switched | None:
        """Return an event by name; None: there is none."""

    def named(self, name: str) -> Histogram | None:
        """Return a histogram by name; None: there is none."""

    def syscalls(self) -> Callable[[int], str] | None:
        """Return the function from a system call's number to its name; None: nothing knows the
        names.
        """


class Command:
    """Any trigger but hist.

    Attributes:
        name: one of PLAIN or SWITCHES.
        target: the event that it switches, as "group:event"; "" for PLAIN.
        left: how often it may still act; -1: for ever.
        filter: at which hits it acts; None: all.
    """

    def __init__(
        self, name: str, target: str, left: int, filter: Filter | None, act: Callable[[], object]
    ) -> None:
        """Make a trigger.

        Args:
            name: one of PLAIN or SWITCHES.
            target: the event that it switches, as "group:event"; "" for PLAIN.
            left: how often it may act; -1: for ever.
            filter: at which hits it acts; None: all.
            act: called at each hit at which the trigger acts; its result is ignored.
        """
        self.name = name
        self.target = target
        self.left = left
        self.filter = filter
        self._act = act

    def hit(self, values: tuple[Any, ...], regs: Regs, caller: int, func: int) -> bool:
        """Act at a hit, if the filter lets it through and `left` is not 0; count `left` down.

        Args:
            values: the arguments' values.
            regs: the registers.
            caller: where a return event's function returns to; of an access to watched memory the
                instruction; 0 in others.
            func: the probed address.

        Returns:
            True: the record is to have a stack.
        """
        if not self.left or (
            self.filter is not None and not self.filter.keep(values, regs, caller, func)
        ):
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
        """Split a trigger at its `if`.

        Args:
            text: the trigger.
            context: the event.
        """
        self.text = text
        self.context = context
        found = _IF.search(text)
        self.body, self.condition = (
            (text, "") if found is None else (text[: found.start()], text[found.end() :])
        )
        self.conditional = found is not None
        self.known: dict[str, EventField] = fields(context.definition)

    def fail(
        self, kind: str, part: str, *facts: object, behind: str = "", skip: int = 0
    ) -> NoReturn:
        """Raise the EventError of a kind, at the column of the text that is wrong.

        Args:
            kind: Linux's name of the error.
            part: the text that is wrong.
            facts: fill the message in.
            behind: text where the search for `part` in the trigger begins, such as ":sort", since
                `part` may stand in front of it, too; "": at the trigger's beginning.
            skip: number of characters at the beginning of `part` that are right.
        """
        word = re.compile(rf"(?<![\w.]){re.escape(part)}(?!\w)").search(
            self.text, max(self.text.find(behind), 0)
        )
        raise make_error(
            kind, skip + (word.start() if word else max(self.text.find(part), 0)), self.text, *facts
        )

    def parse(self) -> Trigger:
        """Parse the trigger, and return it. A histogram with a name counts in the counts of that
        name.

        Raises:
            EventError: there is no such trigger, or a part of it is wrong.
        """
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
        """Parse what stands behind `if`; None: there is no `if`, or it means "all".

        Raises:
            EventError: nothing stands behind `if`, or the filter is wrong.
        """
        if self.conditional and not self.condition.strip():
            self.fail("NO_FILTER", " if")
        return (
            parse_filter(self.condition, self.context.definition, self.context.symbols)
            if self.conditional
            else None
        )

    def command(self, name: str, target: str, count: str) -> Command:
        """Make a trigger that is no histogram; parse its filter.

        Args:
            name: one of PLAIN or SWITCHES.
            target: the event that it switches, as "group:event"; "" for PLAIN.
            count: how often it may act, as written; "": for ever.

        Raises:
            EventError: the count or the filter is wrong, or there is no such event.
        """
        if count and (not re.fullmatch("[0-9]{1,9}", count) or not int(count)):
            self.fail("BAD_TRIGGER_COUNT", count, count)
        return Command(
            name, target, int(count) if count else -1, self.filter(), self.action(name, target)
        )

    def action(self, name: str, target: str) -> Callable[[], object]:
        """Return the function, without arguments, that a trigger calls at a hit. Of "stacktrace" it
        does nothing: it is the hit's handler that adds a stack to the record.

        Args:
            name: one of PLAIN or SWITCHES.
            target: the event that is switched, as "group:event"; "" for PLAIN.

        Raises:
            EventError: there is no such event.
        """
        buffer = self.context.buffer
        if name in SWITCHES:
            event = self.context.find(target.replace(":", "/"))
            if event is None:
                self.fail("NO_SUCH_EVENT", target, target.replace(":", "/"))
            return lambda: setattr(event, "enabled", name == "enable_event")
        return {
            "traceon": lambda: setattr(buffer, "on", True),
            "traceoff": lambda: setattr(buffer, "on", False),
            "snapshot": buffer.snapshot,
            "stacktrace": lambda: None,
        }[name]

    # --- histograms

    def hist(self, rest: str) -> Histogram:
        """Make the histogram of a hist trigger, which counts together with others of its name.

        Args:
            rest: what stands behind `hist:`, without the filter.

        Raises:
            EventError: a parameter, a column or the filter is wrong, or a histogram of its name has
                other columns.
        """
        given: dict[str, str] = {}
        for part in filter(None, rest.split(":")):
            name, equals, value = part.partition("=")
            name = {"key": "keys", "val": "vals", "values": "vals", "cont": "continue"}.get(
                name, name
            )
            if name not in (*VALUED, "pause", "continue", "clear", "nohitcount") or bool(
                equals
            ) != (name in VALUED):
                self.fail("BAD_HIST_PARAMETER", part, part)
            given[name] = value
        if given.get("clock", CLOCK) != CLOCK:
            self.fail("SET_CLOCK_FAIL", f"clock={given['clock']}", given["clock"], CLOCK)
        if "name" in given and not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", given["name"], re.ASCII):
            self.fail("BAD_HIST_NAME", f"name={given['name']}", given["name"])
        if not given.get("keys"):
            self.fail("NO_HIST_KEYS", "hist")
        keys = [self.column(word, KEY_MODIFIERS) for word in given["keys"].split(",")]
        values = [
            self.column(word, VALUE_MODIFIERS)
            for word in given.get("vals", "").split(",")
            if word not in ("hitcount", "")
        ]
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
        sort = (
            [self.sort(word, [*values, *keys]) for word in given["sort"].split(",")]
            if "sort" in given
            else [SortKey(None)]
        )
        hist = Histogram(
            keys,
            values,
            sort,
            size,
            self.filter(),
            self.context.symbols,
            self.context.stack_of,
            shows_count="nohitcount" not in given,
            paused="pause" in given,
            name=given.get("name", ""),
            syscall=self.context.syscalls(),
        )
        return self.shared(hist)

    def shared(self, hist: Histogram) -> Histogram:
        """Let a histogram with a name count in the counts of the histogram of that name, if there
        is one.

        Args:
            hist: the new histogram.

        Returns:
            `hist` itself.

        Raises:
            EventError: the two have different columns, or are sorted otherwise.
        """
        other = self.context.named(hist.name) if hist.name else None
        if other is not None and not hist.share(other):
            self.fail("NAMED_MISMATCH", f"name={hist.name}", hist.name, other.text)
        return hist

    def misfit(self, word: str, behind: str, there_are: str) -> NoReturn:
        """Raise the EventError for a modifier that a column cannot have.

        Args:
            word: the column.
            behind: the parameter that it is in: ":key" or ":val".
            there_are: the modifiers that it can have.
        """
        name, _, modifier = word.partition(".")
        skip = 0 if behind == ":val" and modifier in KEY_MODIFIERS else len(name) + 1
        self.fail("BAD_FIELD_MODIFIER", word, word, there_are, behind=behind, skip=skip)

    def column(self, word: str, modifiers: tuple[str, ...]) -> Column:
        """Parse a column, `FIELD[.MODIFIER]` or `FIELD.buckets=WIDTH`; of a key also `stacktrace`,
        of a value `hitcount`, which have no field.

        Args:
            word: the column as written.
            modifiers: KEY_MODIFIERS for a key, VALUE_MODIFIERS for a value.

        Raises:
            EventError: there is no such field, it cannot have the modifier, or the width is no
                decimal number from 1 on, of 9 digits at most.
        """
        name, dot, modifier = word.partition(".")
        modifier, _, width = modifier.partition("=")
        behind = ":key" if modifiers is KEY_MODIFIERS else ":val"
        if dot and (
            modifier not in modifiers
            or bool(width) != (modifier == "buckets")
            or (width and (not re.fullmatch("[0-9]{1,9}", width) or not int(width)))
        ):
            self.misfit(word, behind, ", ".join(f".{m}" for m in modifiers))
        if (name in ("stacktrace", "common_stacktrace") and modifiers is KEY_MODIFIERS) or (
            name == "hitcount" and modifiers is VALUE_MODIFIERS
        ):
            return Column(name, None, modifier)
        field = (
            TIMES.get(modifier, TIMES[""]) if name == "common_timestamp" else self.known.get(name)
        )
        if field is None:
            self.fail(
                "FIELD_NOT_FOUND",
                word,
                name,
                ", ".join([*self.known, "common_timestamp"]),
                behind=behind,
            )
        if field.text and modifier:
            self.misfit(word, behind, "none for text")
        if modifier == "execname" and name != "common_pid":
            self.misfit(word, behind, ".execname for common_pid only")
        if modifier == "usecs" and name != "common_timestamp":
            self.misfit(word, behind, ".usecs for common_timestamp only")
        if modifier == "syscall" and self.context.syscalls() is None:
            self.fail("NO_SYSCALLS", word, word, behind=behind)
        return Column(name, field, modifier, int(width or 0))

    def sort(self, word: str, columns: list[Column]) -> SortKey:
        """Parse what rows are sorted by.

        Args:
            word: as written: a column's name or "hitcount", perhaps with `.ascending` or
                `.descending` behind it.
            columns: the values, then the keys; a name without a modifier stands for the first
                column of this name, as in Linux.

        Raises:
            EventError: it is no column of the histogram and not "hitcount".
        """
        name = word.partition(".")[0]
        bare = word.removesuffix(".descending").removesuffix(".ascending")
        if not name:
            self.fail("EMPTY_SORT_FIELD", "sort")
        column = next((c for c in columns if (c.name if bare == name else str(c)) == bare), None)
        if column is None and bare != name:
            self.fail("INVALID_SORT_MODIFIER", word, word, behind=":sort", skip=len(name) + 1)
        if column is None and name != "hitcount":
            self.fail("INVALID_SORT_FIELD", word, word, behind=":sort")
        return SortKey(None if name == "hitcount" else column, word.endswith(".descending"))


class Triggers:
    """The triggers of an event.

    Attributes:
        all: the triggers, in the order in which they act.
    """

    def __init__(self, context: Context) -> None:
        """Begin without triggers. context: the event."""
        self._context = context
        self.all: list[Trigger] = []

    def write(self, text: str) -> bool:
        """Carry out a line written to ftrace's file `trigger`.

        Args:
            text: a trigger that is added, `!` and one that is removed, or a histogram's with
                :pause, :continue or :clear.

        Returns:
            True where there is a trigger more, or less; False where a histogram was paused,
            continued or cleared.

        Raises:
            EventError: the trigger is wrong, there already, or not there.
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
        """Do what :pause, :continue and :clear in the text of a hist trigger ask for.

        Args:
            hist: the histogram that is paused, continued or cleared.
            body: the trigger's text.

        Returns:
            True: something was done; False: the text has none of the three.
        """
        words = set(_IF.split(body)[0].split(":"))
        if "pause" in words or words & {"continue", "cont"}:
            hist.paused = "pause" in words
        if "clear" in words:
            hist.clear()
        return bool(words & {"pause", "continue", "cont", "clear"})


def _same(one: Trigger, other: Trigger) -> bool:
    """Return True if an event cannot have both triggers, as they do the same or the opposite.

    Triggers conflict if they have one name, or are a pair such as traceon and traceoff, and switch
    the same event. Histograms conflict if their columns, filter and name are the same.

    Args:
        one: a trigger.
        other: another one.
    """
    if isinstance(one, Histogram) or isinstance(other, Histogram):
        return (
            isinstance(one, Histogram)
            and isinstance(other, Histogram)
            and _identity(one) == _identity(other)
        )
    kinds = ("enable_event", "disable_event"), ("traceon", "traceoff")
    alike = one.name == other.name or any(one.name in pair and other.name in pair for pair in kinds)
    return alike and one.target == other.target


def _identity(hist: Histogram) -> tuple[Any, ...]:
    """Return (name, keys, values, the filter's text): an event has no two histograms that agree
    here.
    """
    return hist.name, hist.keys, hist.values, hist.filter.text if hist.filter else ""
