"""Handlers of events whose hits Python records: written out for each place, so that a hit only does what its definition
needs.

What is executed is text of ours: names and numbers. What users wrote goes in as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..machine._base import Machine
from ..regs import Regs
from ._buffer import ON, SEQ, Buffer
from ._event import Argument, Event
from ._filter import Filter
from ._plans import Word

Handler = Callable[[Any, Regs], None]


class Trigger(Protocol):
    """What is asked at each hit; True: the record is to have a stack."""

    def hit(self, values: tuple[Any, ...], regs: Regs, caller: int, func: int) -> bool: ...


class Switch(Protocol):
    """The event."""

    @property
    def enabled(self) -> bool: ...
    def stack_of(self, regs: Regs) -> tuple[int, ...]: ...


def handler(event: Event, machine: Machine, buffer: Buffer, cookie: int, filter: Filter | None,
            triggers: Sequence[Trigger], switch: Switch, stacked: bool) -> Handler:
    """handler(probe or instance, regs) for one place. switch: asked whether hits are recorded, where triggers may
    change that; it gives the stacks for records, always where `stacked`."""
    names: dict[str, Any] = {"words": buffer.words, "rows": buffer.rows, "buffer": buffer, "machine": machine,
                             "stack": switch.stack_of, "triggers": triggers, "switch": switch}
    fetches = [_fetch(arg, n, machine, names) for n, arg in enumerate(event.args)]
    returns = event.kind == "r"
    lines = [f"saved = {'p.data.get(' + repr('saved') + ', ())' if event.saves else '()'}"]
    if event.kind == "w":
        lines = ["saved = (p.before, p.value, p.accessed)"]
    lines += ["back = 0"] if event.kind == "p" else ["back = regs.pc"]
    lines += [f"v = ({''.join(f'{fetch}, ' for fetch in fetches)})", f"func = {event.address}", f"stacked = {stacked}"]
    if triggers:
        lines += ["for trigger in triggers:", "    stacked |= trigger.hit(v, regs, back, func)",
                  "if not switch.enabled: return"]
    lines += [f"if not words[{ON}]: return"]
    if filter is not None:
        names |= filter.constants
        lines.append(f"if not {filter.python}: return")
    lines += [f"number = words[{SEQ}] + 1", f"words[{SEQ}] = number",
              "if len(rows) >= buffer.limit:", "    buffer.dropped += 1", "    rows.popleft()",
              "task = machine.cpu_task",
              f"rows.append((number, {cookie}, v, regs.cpu, regs.cpu if task is None else "
              f"{'p.task' if returns else 'task(regs)'}, back, "
              "stack(regs) if stacked else ()))"]
    exec("def take(p, regs):\n" + "\n".join(f"    {line}" for line in lines), names)
    return names["take"]  # type: ignore[no-any-return]


def _fetch(arg: Argument, n: int, machine: Machine, names: dict[str, Any]) -> str:
    """An expression for an argument's value."""
    kind, tree = arg.type, arg.source.tree
    reader = (_reader(tree, machine) if arg.source.where is None and arg.source.literal is None and kind.style in "usx"
              else None)
    if reader is None:
        names[f"read{n}"] = arg.read
        return f"read{n}(regs, saved)"
    names[f"word{n}"] = reader
    word, mask = f"word{n}()", (1 << kind.bits) - 1
    if kind.style == "s":
        return f"(({word} & {mask} ^ {1 << kind.bits - 1}) - {1 << kind.bits - 1})"
    if kind.bits == machine.arch.bits and not kind.shift:
        return word
    return f"({word} >> {kind.shift} & {mask})" if kind.shift else f"({word} & {mask})"


def _reader(tree: Word, machine: Machine) -> Callable[[], int] | None:
    """What reads a register that a word is in; None where it is in none, or it depends on the CPU whose."""
    abi = machine.arch.abi
    name = tree.name if tree.kind == "register" else ""
    if abi is not None and tree.kind == "argument" and tree.number < len(abi.args):
        name = abi.args[tree.number]
    elif abi is not None and tree.kind == "result":
        name = abi.returns[0]
    return machine.cpu_regs[0].accessors(name)[0] if name and machine.cpus == 1 else None
