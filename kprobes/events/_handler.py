"""Handlers of events whose hits Python records. The source of each is generated for its place, so
that a hit does only what its definition needs, in one function: closures that call each other
took 1.5 to 2.2 times as long.

What is executed is text of this module's: names and numbers. What users wrote goes in as values.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from attrs import frozen

from ..machine._base import Machine
from ..regs import Regs
from ._event import Argument, Event
from ._filter import Filter, python_of
from ._layout import ON, SEQ
from ._styles import Type

Handler = Callable[[Any, Regs], None]
_U64: Final = (1 << 64) - 1
#: struct's letters for unsigned integers, by their bits
_LETTERS: Final = {8: "B", 16: "H", 32: "I", 64: "Q"}


@frozen
class RecordedPlace:
    """An event at one place, and which of its hits are recorded there.

    Attributes:
        event: the event, at this place.
        cookie: the place's number in the store of records.
        filter: which hits are recorded; None: all.
    """

    event: Event
    cookie: int
    filter: Filter | None = None


class Trigger(Protocol):
    """A trigger, which is asked at each hit; True: the record is to have a stack."""

    def hit(self, values: tuple[Any, ...], regs: Regs, caller: int, func: int) -> bool:
        """Act at a hit.

        Args:
            values: the arguments' values.
            regs: the registers.
            caller: where a return event's function returns to; of an access to watched memory the
                instruction; 0 in others.
            func: the probed address.

        Returns:
            True: the record is to have a stack.
        """


class Store(Protocol):
    """Where a handler's hits go.

    Attributes:
        words: two words, SEQ and ON of _layout: records so far, and whether any are taken.
    """

    words: Any

    def fetch_from_guests(self) -> None:
        """Copy the records that programs in a guest have written into this process.

        Called before Python records a hit, where the guest may have such programs.
        """
        ...

    def lines(
        self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]
    ) -> Sequence[str]:
        """Return the lines of Python that keep a hit.

        They may use `number` (of the record), `who` (the task), `back` (where a return event
        returns to; of an access to watched memory the instruction), and what they add to `names`.

        Args:
            cookie: the place's number in the store.
            cpu: an expression for the CPU's number.
            stack: an expression for the stack, a tuple.
            values: the arguments' values: "v0, v1, ".
            names: the handler's globals, which are added to.
        """
        ...


class Switch(Protocol):
    """The event that a handler belongs to, as far as the handler asks it."""

    @property
    def enabled(self) -> bool:
        """Whether hits are recorded; a trigger may change it at any hit."""

    @property
    def stack_of(self) -> Callable[[Regs], tuple[int, ...]]:
        """The function from the registers at a hit to the call stack, a tuple of addresses."""


def handler(
    place: RecordedPlace,
    machine: Machine,
    store: Store,
    triggers: Sequence[Trigger],
    switch: Switch,
    stacked: bool,
) -> Handler:
    """Generate the handler of an event's hits at one place.

    At a hit the handler fetches the arguments, calls the triggers, and adds a record to the store;
    no record is added where the store is off, a trigger has switched the event off, or the filter
    does not hold.

    Args:
        place: the event, at this place, and which hits are recorded.
        machine: whose hits they are.
        store: where records go.
        triggers: what acts at each hit, before the filter is asked.
        switch: the event: asked after triggers whether hits are recorded, and gives stacks.
        stacked: each record has a stack; False: those that a trigger wants one for.

    Returns:
        The function, called with the probe (or a return probe's instance) and the registers.
    """
    event = place.event
    filter = place.filter
    names: dict[str, Any] = {
        "words": store.words,
        "machine": machine,
        "triggers": triggers,
        "switch": switch,
    }
    if triggers or stacked:
        names["stack"] = switch.stack_of
    at_once = AtOnce(event.args, machine)
    fetches = [
        "" if n in at_once else _fetch(arg, n, machine, names) for n, arg in enumerate(event.args)
    ]
    task = "p.task" if event.kind == "r" else "task(regs)"
    cpu = "regs.cpu" if machine.cpus > 1 else "0"
    lines = ["saved = p.data.get('saved', ())"] if event.saves else []
    if event.kind == "w":
        lines = ["saved = (p.before, p.value, p.accessed)"]
    names |= {"saved": (), "back": 0, "func": event.address}  # unless a hit has others
    lines += [] if event.kind == "p" else ["back = regs.pc"]
    lines += at_once.lines(names) + [f"v{n} = {fetch}" for n, fetch in enumerate(fetches) if fetch]
    values = "".join(f"v{n}, " for n in range(len(fetches)))
    if triggers:
        lines += [
            f"stacked, v = {stacked}, ({values})",
            "for trigger in triggers:",
            f"    stacked |= trigger.hit(v, regs, back, {event.address})",
            "if not switch.enabled: return",
        ]
    if machine.guest_view is not None:
        lines, names["fetch_from_guests"] = [*lines, "fetch_from_guests()"], store.fetch_from_guests
    lines += [f"if not words[{ON}]: return"]
    if filter is not None:
        variables = [f"v{n}" for n in range(len(fetches))]
        # a word of a register is always there
        readable = [n for n, fetch in enumerate(fetches) if "read" not in fetch]
        lines += [f"if not {python_of(filter.tree, variables, readable, names)}: return"]
    # a guest may have written over it
    wrapped = f" & {_U64}" if machine.guest_view is not None else ""
    lines += [
        f"words[{SEQ}] = number = words[{SEQ}] + 1{wrapped}",
        "task = machine.cpu_task",
        f"who = {cpu} if task is None else {task}",
    ]
    if triggers:
        stack = "(stack(regs) if stacked else ())"
    else:
        stack = "stack(regs)" if stacked else "()"
    lines += store.lines(place.cookie, cpu, stack, values, names)
    exec("def take(p, regs):\n" + "\n".join(f"    {line}" for line in lines), names)
    return names["take"]  # type: ignore[no-any-return]


def _fetch(arg: Argument, n: int, machine: Machine, names: dict[str, Any]) -> str:
    """Return an expression of Python that gives an argument's value at a hit.

    Args:
        arg: the argument.
        n: its number, which makes names unique.
        machine: the guest.
        names: names that the generated code uses -> objects; the expression's are added.
    """
    kind = arg.type
    name = _register(arg, machine)
    reader = machine.cpu_regs[0].accessors(name)[0] if name else None
    if reader is None:
        names[f"read{n}"] = arg.read
        return f"read{n}(regs, saved)"
    names[f"word{n}"] = reader
    word = f"word{n}()"
    mask = (1 << kind.bits) - 1
    if kind.is_signed:
        word = f"({word} >> {kind.shift})" if kind.shift else word
        return f"(({word} & {mask} ^ {1 << kind.bits - 1}) - {1 << kind.bits - 1})"
    if kind.bits == machine.arch.bits and not kind.shift:
        return word
    return f"({word} >> {kind.shift} & {mask})" if kind.shift else f"({word} & {mask})"


def _register(arg: Argument, machine: Machine) -> str:
    """Return the name of the register whose content, cut to its type, is an argument's value.

    Args:
        arg: the argument.
        machine: the guest.

    Returns:
        The name; "": the value is not a register's, or the guest has several CPUs.
    """
    abi = machine.arch.abi
    tree = arg.source.tree
    name = ""
    if arg.source.in_memory or arg.source.literal is not None or not arg.type.is_integer:
        return ""
    if tree.kind == "register":
        name = tree.name
    elif abi is not None and tree.kind == "argument" and tree.number < len(abi.args):
        name = abi.args[tree.number]
    elif abi is not None and tree.kind == "result":
        name = abi.returns[0]
    return name if machine.cpus == 1 else ""


class AtOnce:
    """Arguments of an event that generated code fetches all by one call of struct.

    They are registers that the engine keeps in one piece of this process's memory; struct cuts and
    extends them as their types say. `n in at_once` tells whether argument n is one of them.
    """

    def __init__(self, args: Sequence[Argument], machine: Machine) -> None:
        """Choose the arguments that are plain registers in the engine's memory, of a type that
        struct reads; where these are fewer than two, choose none.

        Args:
            args: the event's arguments.
            machine: the guest, whose engine keeps the registers.
        """
        found: list[tuple[int, str, int]] = []  # where, struct's letter, the argument's number
        self._words = memoryview(b"")
        for n, arg in enumerate(args):
            name = _register(arg, machine)
            cell = machine.cpu_regs[0].cell(name) if name else None
            if cell is not None and arg.type.bits in _LETTERS and not arg.type.shift:
                self._words, index = cell
                found.append((*_part(self._words.itemsize, index, arg.type), n))
        self._format = "="
        self._taken = list[int]()
        end = 0
        found.sort()
        for at, letter, n in found:
            if not self._taken:
                end = self._start = at
            if at >= end:  # else it is part of the one before
                self._format += f"{at - end}x{letter}"
                end = at + struct.calcsize("=" + letter)
                self._taken.append(n)
        if len(self._taken) < 2:
            self._taken.clear()

    def __contains__(self, n: int) -> bool:
        """Return True where argument n, counted from 0, is fetched by the call of struct."""
        return n in self._taken

    def lines(self, names: dict[str, Any]) -> list[str]:
        """Return the line of Python that sets v0, v1 ... to the arguments; [] where there are none.

        Args:
            names: names that the line uses -> objects; they are added to it.
        """
        if not self._taken:
            return []
        names |= {"fetch": struct.Struct(self._format).unpack_from, "cells": self._words}
        return [f"{', '.join(f'v{n}' for n in self._taken)} = fetch(cells, {self._start})"]


def _part(size: int, index: int, kind: Type) -> tuple[int, str]:
    """Return where struct finds the low bits of a register in this process's memory.

    Args:
        size: bytes of each cell of that memory.
        index: of the register's cell.
        kind: the type that is fetched, which says how many bits, and whether they are signed.

    Returns:
        (offset in bytes from the beginning of the memory, struct's letter).
    """
    bits = min(kind.bits, 8 * size)
    letter = _LETTERS[bits].lower() if kind.is_signed and bits == kind.bits else _LETTERS[bits]
    return size * index + (size - bits // 8 if sys.byteorder == "big" else 0), letter
