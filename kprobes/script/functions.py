"""Code for builtins and functions; `g` writes the program, and `node` is the call or the name.

A function gives a number in r0 (`number`), a value in memory (`store`), or is called for its effect
(`effect`). "Load into r0" and "store" are what the written code does when the script runs. A value
is stored as type `kind` in `area`.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Sequence
from typing import Final

from ..errors import ProgramError
from ..programs.context import ARGUMENT, PC, RESULT, SP
from . import layout, signatures, texts, tree, types
from .blocks import BlockWriter
from .inference import ArgumentPart, ArgumentSource
from .promotion import promoted
from .storage import FLAG, VARIABLES, Action, Area
from .types import IntegerType, ValueType

_CONTEXT: Final = 6
_POINTER: Final = 7
_ENOENT: Final = -2
#: nanoseconds of one of Linux's ticks, at 250 a second
_TICK: Final = 4_000_000
#: strings that join() reads at most
_JOINED: Final = 16
#: bytes of each of them at most, its NUL included
_JOINED_SIZE: Final = 1024
#: where bpftrace's own library has the errorf() of assert()
_ASSERTED: Final = ("stdlib/base.bt", 6, 5, 37)
_U64 = IntegerType(64, False)
_I64 = IntegerType(64, True)


def _arguments(node: tree.Name | tree.FunctionCall) -> list[tree.Expression]:
    """Return the arguments of a call; a name has none."""
    return node.arguments if isinstance(node, tree.FunctionCall) else []


def _word(node: tree.Name | tree.FunctionCall) -> str:
    """Return the name of a builtin or function, without `__builtin_`."""
    return node.name.removeprefix("__builtin_")


# --- for the effect


def effect(g: BlockWriter, node: tree.FunctionCall | tree.Name, used: bool) -> None:
    """Write a call for what it does; a value that it has is computed and dropped.

    Args:
        g: writes the program.
        node: the call.
        used: matters for delete() only. False: the code warns Python where the key is missing;
            True: it does not.
    """
    word = _word(node)
    rule = _EFFECTS.get(word)
    if rule is not None:
        rule(g, node)
    elif word == "delete":
        number(g, node)
        if not used:
            done = g.asm.label()
            g.asm.jump_if_number("!=", 0, 0, done)
            g.asm.set(0, _ENOENT)
            g.failed("map_delete_elem", node.span)
            g.asm.place(done)
    elif layout.is_number(g.type(node)):
        number(g, node)
    elif not isinstance(g.type(node), types.VoidType):
        g.place(node)


def _values(
    g: BlockWriter, arguments: Sequence[tree.Expression]
) -> list[tuple[tree.Expression, ValueType]]:
    """Return the arguments of a call with the types that they are sent to Python as.

    Args:
        g: knows the types.
        arguments: the expressions.

    Returns:
        (expression, type) of each; the type of an aggregate is a 64-bit integer: what it counts as.
    """
    out = list[tuple[tree.Expression, ValueType]]()
    for argument in arguments:
        kind = g.type(argument)
        if isinstance(kind, types.AggregateType):
            kind = IntegerType(64, getattr(kind, "signed", True))
        out.append((argument, kind))
    return out


def _format(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of printf() and its like, with `g`: an action with the values."""
    text = node.arguments[0]
    assert isinstance(text, tree.StringLiteral)
    g.act(
        node.name,
        node.span,
        _values(g, node.arguments[1:]),
        format=text.value.decode("utf-8", "surrogateescape"),
        expanded=node.expanded,
    )


def _print(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of print(), with `g`: an action for Python.

    The record of a map has its name and the numbers `top` and `div` (0 and 1 if not given); that of
    a value has the value, an aggregate's with all its words.
    """
    first = node.arguments[0]
    if isinstance(first, tree.MapName):
        numbers = [one.value for one in node.arguments[1:] if isinstance(one, tree.NumberLiteral)]
        top, div = [*numbers, *(0, 1)[len(numbers) :]]
        g.act("print_map", node.span, map=first.name, top=top, div=div)
        return
    kind = g.type(first)
    if isinstance(kind, types.AggregateType):
        assert isinstance(first, tree.MapAccess)
        size = layout.room_of(kind)
        area = g.temporary(8 + size)
        g.copy_aggregate(first, g.facts(first), area.at(8))
        g.send(area, 8 + size, Action("print", node.span, ((8, kind),)))
        return
    g.act("print", node.span, [(first, kind)])


def _of_map(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of clear() or zero(), with `g`: an action with the map's name."""
    first = node.arguments[0]
    assert isinstance(first, tree.MapName)
    g.act(node.name, node.span, map=first.name)


def _exit(g: BlockWriter, node: tree.FunctionCall | tree.Name) -> None:
    """Write the call `node` of exit(), with `g`.

    The code sends the action `exit` with the status, if one is given, wakes Python, and jumps to
    the program's end.
    """
    values: list[tuple[tree.Expression, ValueType]] = [
        (argument, _I64) for argument in _arguments(node)
    ]
    g.act("exit", node.span, values)
    g.wake()
    g.asm.jump(g.end)


def _time(g: BlockWriter, node: tree.FunctionCall | tree.Name) -> None:
    """Write the call `node` of time(), with `g`: an action with the format, `%H:%M:%S` and a
    newline where the call has none.
    """
    given = _arguments(node)
    text = (
        given[0].value.decode("utf-8", "surrogateescape")
        if given and isinstance(given[0], tree.StringLiteral)
        else "%H:%M:%S\n"
    )
    g.act("time", node.span, format=text)


def _join(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of join(), with `g`: an action with the delimiter, a space where the
    call has none, and a buffer of the strings, one behind the other, each with its NUL.

    At most 16 strings are read, of each at most 1,024 bytes with its NUL.
    The array ends at a null pointer, and at one to an empty string or to no memory, as in bpftrace.
    """
    asm = g.asm
    first, *rest = node.arguments
    delimiter = rest[0].value if rest and isinstance(rest[0], tree.StringLiteral) else b" "
    kind = types.BufferType(_JOINED * _JOINED_SIZE)
    record = g.temporary(8 + layout.room_of(kind))
    joined = record.at(8)
    state = g.storage.variable(16)  # address of the next pointer, pointers that are left
    top, read, out = (asm.label() for _ in range(3))
    g.number(first)
    g.reading = node.span
    g.point(1, state)
    asm.store(1, 0, 0, 8)
    asm.store_number(1, 8, _JOINED, 8)
    g.clear(joined, 8)
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 8, 8)
    asm.jump_if_number("==", 2, 0, out)
    asm.compute_with("-", 2, 1)
    asm.store(1, 8, 2, 8)
    asm.load(0, 1, 0, 8)
    asm.move(2, 0)
    asm.compute_with("+", 2, g.world.bits // 8)
    asm.store(1, 0, 2, 8)
    g.read_number(IntegerType(g.world.bits, False))
    asm.jump_if_number("==", 0, 0, out)
    asm.move(3, 0)
    g.point(1, joined)
    asm.load(2, 1, 0, 8)
    asm.jump_if_number(
        ">", 2, kind.size - _JOINED_SIZE, out
    )  # tells the verifier that there is room
    asm.compute("+", 1, 2)
    asm.compute_with("+", 1, 8)
    asm.set(2, _JOINED_SIZE)
    asm.call("probe_read_user_str")
    asm.jump_if_number("s>", 0, 1, read)
    g.warn_if_failed("probe_read_user_str")
    asm.jump(out)
    asm.place(read)
    g.point(1, joined)
    asm.load(2, 1, 0, 8)
    asm.compute("+", 2, 0)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(out)
    facts = {"delimiter": delimiter.decode("utf-8", "surrogateescape")}
    g.send(record, 8 + layout.room_of(kind), Action("join", node.span, ((8, kind),), facts))


def _assert(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of assert(), with `g`.

    Where its condition does not hold, Python gets a message, and the script ends with status 1.
    """
    wrong = g.asm.label()
    done = g.asm.label()
    g.jump_unless(node.arguments[0], wrong)
    g.asm.jump(done)
    g.asm.place(wrong)
    g.act(
        "errorf",
        node.span,
        _values(g, node.arguments[1:]),
        format="assert failed: %s",
        expanded=node.expanded,
        library=_ASSERTED,
    )
    one = tree.NumberLiteral(span=node.span, value=1)
    g.typing.of[one] = _I64
    g.act("exit", node.span, [(one, _I64)])
    g.wake()
    g.asm.jump(g.end)
    g.asm.place(done)


def _override(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write the call `node` of override(), with `g`: the probed function returns the number at
    once.
    """
    g.number(node.arguments[0])
    g.asm.move(2, 0)
    g.asm.move(1, _CONTEXT)
    g.asm.call("override_return")


def _ignore(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Write nothing: static_assert() and its like were checked at compile time."""


_EFFECTS: Final[dict[str, Callable[..., None]]] = {
    **dict.fromkeys(("printf", "errorf", "warnf", "cat", "system"), _format),
    "print": _print,
    "clear": _of_map,
    "zero": _of_map,
    "exit": _exit,
    "time": _time,
    "join": _join,
    "assert": _assert,
    "override": _override,
    **dict.fromkeys(("static_assert", "assert_str", "fail"), _ignore),
}


# --- numbers


def number(g: BlockWriter, node: tree.Name | tree.FunctionCall) -> None:
    """Write code that loads into r0 the number that a builtin or function gives, and does its
    effect.

    Args:
        g: writes the program.
        node: the name or call: a constant, argN, sargN, a predicate such as is_literal(), or one of
            `_NUMBERS`.

    Raises:
        ProgramError: the builtin or function gives no number.
    """
    word = _word(node)
    definitions = g.definitions
    if word in definitions.constants and isinstance(node, tree.Name):
        g.asm.set(0, definitions.constants[word])
    elif word.startswith("arg") and word[3:].isdecimal():
        if g.probe.points[0].kind == "usdt":
            _marker_argument(g, int(word[3:]))
        else:
            g.asm.load(0, _CONTEXT, 8 * (ARGUMENT + int(word[3:])), 8)
    elif word.startswith("sarg") and word[4:].isdecimal():
        g.asm.load(0, _CONTEXT, 8 * SP, 8)
        beyond = g.world.callers * int(word[4:]) * g.world.bits // 8
        g.asm.compute_with("+", 0, g.world.stacked + beyond)
        g.read_number(IntegerType(g.world.bits, False))
    elif word in signatures.PREDICATES:
        kind = g.type(_arguments(node)[0])
        literal = isinstance(
            _arguments(node)[0], tree.NumberLiteral | tree.StringLiteral | tree.BooleanLiteral
        )
        g.asm.set(0, int(literal if word == "is_literal" else signatures.PREDICATES[word](kind)))
    else:
        rule = _NUMBERS.get(word)
        if rule is None:
            raise ProgramError(f"{word} gives no number")
        rule(g, node)


def _marker_argument(g: BlockWriter, number: int) -> None:
    """Load `argN` of a USDT marker into r0; 0 where the marker has fewer.

    Args:
        g: writes the program.
        number: N, from 0.
    """
    source = g.probe.operands.get(number)
    if source is None:
        g.asm.set(0, 0)
        return
    if source.word is None:
        g.asm.set(0, source.number)
    else:
        g.asm.load(0, _CONTEXT, 8 * source.word, 8)
        if source.shift:
            g.asm.compute_with(">>", 0, source.shift)
        if source.number:
            g.asm.compute_with("+", 0, source.number)
    if source.memory:
        g.read_number(source.type)
    else:
        g.asm.extend(0, source.type.bits, source.type.signed)


def _source(g: BlockWriter, name: str) -> ArgumentSource:
    """Return where a named argument of the probed function is.

    Args:
        g: knows the block, whose `sources` say it.
        name: the argument's name.

    Raises:
        ProgramError: the argument is nowhere at this probe, or its place is not known.
    """
    source = g.probe.sources.get(name)
    hint = "use arg0, arg1 ... or reg()"
    if any(point.returns for point in g.probe.points):
        hint = f"keep it in a map at the entry: @{name}[tid] = args.{name}"
    if source is None:
        raise ProgramError(f"args.{name} is nowhere at this place", hint=hint)
    if source.reason:
        raise ProgramError(f"args.{name} is not known: {source.reason}", hint=hint)
    return source


def argument(g: BlockWriter, node: tree.FieldAccess) -> None:
    """Write code that loads `args.name`, a number, into r0.

    Args:
        g: writes the program.
        node: the access.

    Raises:
        ProgramError: it is not known where the argument is.
    """
    _argument_number(g, node.name, g.type(node))


def _argument_number(g: BlockWriter, name: str, kind: ValueType) -> None:
    """Load a named argument that is a number into r0.

    Args:
        g: writes the program.
        name: the argument's name.
        kind: the number's type.

    Raises:
        ProgramError: it is not known where the argument is.
    """
    source = _source(g, name)
    if source.parts:
        _number_of_parts(g, source, kind)
        return
    g.asm.load(0, _CONTEXT, 8 * source.word, 8)
    if source.offset is not None:
        if source.offset:
            g.asm.compute_with("+", 0, source.offset)
        g.read_number(kind)
        return
    bits, signed = layout.width(kind)
    g.asm.extend(0, min(bits, g.world.bits) if not signed else bits, signed)


def _number_of_parts(g: BlockWriter, source: ArgumentSource, kind: ValueType) -> None:
    """Load a number that lies in several parts into r0.

    Args:
        g: writes the program.
        source: its parts.
        kind: the number's type.
    """
    size = layout.size_of(kind, g.world.bits // 8)
    area = g.temporary(8)
    _argument_bytes(g, source, size, area)
    g.point(1, area)
    g.asm.load(0, 1, 0, size)
    g.as_guest(kind, size, 0, None)


def argument_store(g: BlockWriter, node: tree.FieldAccess, area: Area) -> None:
    """Store `args.name`, which is no number, in an area of its type; a floating-point one as zeros,
    wherever it is.

    Args:
        g: writes the program.
        node: the access.
        area: where it is stored.

    Raises:
        ProgramError: it is not known where the argument is.
    """
    kind = g.type(node)
    g.clear(area, layout.room_of(kind))
    if not isinstance(kind, types.FloatType):  # of which scripts have no value
        _argument_bytes(
            g, _source(g, node.name), layout.size_in_guest(kind, g.world.bits // 8), area
        )


def _argument_bytes(g: BlockWriter, source: ArgumentSource, size: int, area: Area) -> None:
    """Store the bytes of a named argument in an area, as the guest would have them in memory.

    Args:
        g: writes the program.
        source: where the argument is.
        size: its bytes.
        area: where to.
    """
    asm = g.asm
    if source.offset is not None:
        asm.load(0, _CONTEXT, 8 * source.word, 8)
        if source.offset:
            asm.compute_with("+", 0, source.offset)
        g.read(area, size)
        return
    at = 0
    for part in source.parts or (ArgumentPart(source.word, g.world.bits // 8),):
        held = min(part.size, size - at)
        if part.offset is not None:
            asm.load(0, _CONTEXT, 8 * part.word, 8)
            asm.compute_with("+", 0, part.offset)
            g.read(area.at(at), held)
            at += held
            continue
        g.point(1, area)
        for byte in range(held):
            asm.load(0, _CONTEXT, 8 * part.word, 8)
            shift = 8 * (byte if g.world.order == "little" else held - 1 - byte)
            if shift:
                asm.compute_with(">>", 0, shift)
            asm.store(1, at + byte, 0, 1)
        at += held


def _result(g: BlockWriter, node: tree.Name) -> None:
    """Load `retval` into r0, from the context's word or from the parts that `result_source` names.

    Args:
        g: writes the program.
        node: the builtin.

    Raises:
        ProgramError: the result has two words, and the place of the second is not known.
    """
    source = g.probe.result_source
    if source is not None:
        _number_of_parts(g, source, g.type(node))
        return
    size = layout.size_of(g.type(node), g.world.bits // 8)
    if 8 * size > g.world.bits and g.probe.result is not None:
        raise ProgramError("retval has two words here, and the place of the second is not known")
    g.asm.load(0, _CONTEXT, 8 * RESULT, 8)
    bits, signed = layout.width(g.type(node))
    g.asm.extend(0, bits, signed)


def _pid(g: BlockWriter, node: tree.Name) -> None:
    """Load the process id (`pid`, `curtask`) or the thread id (`tid`) into r0; `g` writes that."""
    g.asm.call("get_current_pid_tgid")
    if _word(node) in ("pid", "curtask"):
        g.asm.compute_with(">>", 0, 32)
    else:
        g.asm.extend(0, 32, False)


def _helper(name: str) -> Callable[[BlockWriter, tree.Name], None]:
    """Return a writer of builtins that load into r0 what a helper without arguments returns.

    Args:
        name: the helper's name without `bpf_`.

    Returns:
        A function (g, node) that writes the helper's call into the program of `g`.
    """

    def write(g: BlockWriter, node: tree.Name) -> None:
        g.asm.call(name)

    return write


def _constant(value: int) -> Callable[[BlockWriter, tree.Name], None]:
    """Return a writer of builtins that load a constant into r0: a function (g, node).

    Args:
        value: the constant.
    """

    def write(g: BlockWriter, node: tree.Name) -> None:
        g.asm.set(0, value)

    return write


def _elapsed(g: BlockWriter, node: tree.Name) -> None:
    """Load the nanoseconds since the script began into r0. `node` is not used."""
    g.asm.call("ktime_get_ns")
    g.point(1, Area(VARIABLES, 0))
    g.asm.load(1, 1, 0, 8)
    g.asm.compute("-", 0, 1)


def _jiffies(g: BlockWriter, node: tree.Name) -> None:
    """Load the time, in Linux's ticks of 4 ms, into r0: the builtin jiffies. `node` is not used."""
    g.asm.call("ktime_get_ns")
    g.asm.compute_with("/", 0, _TICK)


def _cpus(g: BlockWriter, node: tree.Name) -> None:
    """Load the number of the guest's CPUs into r0. `node` is not used."""
    g.asm.set(0, g.world.cpus)


def _longest(g: BlockWriter, node: tree.Name) -> None:
    """Load the setting max_strlen, the greatest length of strings, into r0. `node` is not used."""
    g.asm.set(0, g.settings.max_strlen)


def _register(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load the register that the call `node` of reg() names into r0; `g` writes that."""
    name = node.arguments[0]
    assert isinstance(name, tree.StringLiteral)
    word = g.world.register(name.value.decode("utf-8", "replace"))
    assert word is not None
    g.asm.load(0, _CONTEXT, 8 * word, 8)


def _address(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load the address of a symbol into r0: kaddr() and uaddr().

    Args:
        g: writes the program.
        node: the call, whose argument is the symbol's name.
    """
    name = node.arguments[0]
    assert isinstance(name, tree.StringLiteral)
    found = g.world.symbol(name.value.decode("utf-8", "replace"))
    assert found is not None
    g.asm.set(0, found[0])


def _length(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load the number of a map's entries, or of a stack's addresses, into r0: len().

    Entries of a map are counted in a loop, as many as the engine allows it rounds.

    Args:
        g: writes the program.
        node: the call.
    """
    first, asm = node.arguments[0], g.asm
    if not isinstance(first, tree.MapName):
        g.point(1, g.place(first))
        asm.load(0, 1, 0, 8)
        return
    facts = g.typing.maps[first.name]
    assert facts.key is not None
    key = g.temporary(layout.room_of(facts.key))
    state = g.storage.variable(16)
    g.clear(state, 16)
    top = asm.label()
    out = asm.label()
    asm.place(top)
    asm.call("may_loop")
    asm.jump_if_number("==", 0, 0, out)
    asm.map(1, g.storage.keyed[facts.name])
    g.point(2, key)
    g.point(3, state)
    asm.load(3, 3, 0, 8)
    asm.call("map_next_key")
    asm.jump_if_number("==", 0, 0, out)
    g.point(1, state)
    asm.store(1, 0, 0, 8)
    asm.load(2, 1, 8, 8)
    asm.compute_with("+", 2, 1)
    asm.store(1, 8, 2, 8)
    asm.jump(top)
    asm.place(out)
    g.point(1, state)
    asm.load(0, 1, 8, 8)


def _has_key(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load 1 into r0 where a map has a key, else 0: has_key().

    Args:
        g: writes the program.
        node: the call: map and key.
    """
    first = node.arguments[0]
    assert isinstance(first, tree.MapName)
    facts = g.typing.maps[first.name]
    g.lookup(facts, g.key(facts, node.arguments[1]))
    _is_set(g)


def _is_set(g: BlockWriter) -> None:
    """Write code that replaces r0 by 1, unless it is 0."""
    missing = g.asm.label()
    done = g.asm.label()
    g.asm.jump_if_number("==", 0, 0, missing)
    g.asm.set(0, 1)
    g.asm.jump(done)
    g.asm.place(missing)
    g.asm.set(0, 0)
    g.asm.place(done)


def _delete(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Delete an entry of a map, or the value of a map without keys: delete().

    r0 becomes 1 where an entry was there (for a map without keys: where it was set), else 0.

    Args:
        g: writes the program.
        node: the call: map and key, or the map with a key, or the map without keys.
    """
    asm, first = g.asm, node.arguments[0]
    if isinstance(first, tree.MapName) and len(node.arguments) == 1:
        flag = g.storage.scalars[first.name]
        kind = g.typing.maps[first.name].value
        assert kind is not None
        g.point(2, flag)
        asm.load(0, 2, 0, 8)
        g.clear(flag, FLAG + layout.room_of(kind))
        return
    if isinstance(first, tree.MapAccess):
        facts = g.facts(first)
        key = first.key
    else:
        assert isinstance(first, tree.MapName)
        facts, key = g.typing.maps[first.name], node.arguments[1]
    area = g.key(facts, key)
    asm.map(1, g.storage.keyed[facts.name])
    g.point(2, area)
    asm.call("map_delete_elem")
    missing = asm.label()
    done = asm.label()
    asm.jump_if_number("!=", 0, 0, missing)
    asm.set(0, 1)
    asm.jump(done)
    asm.place(missing)
    asm.set(0, 0)
    asm.place(done)


def _find(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Store a map's value in a variable, and load 1 into r0: find().

    Without such a key r0 becomes 0, and the variable stays as it is.

    Args:
        g: writes the program.
        node: the call: map, key, variable.
    """
    asm, (first, key, target) = g.asm, node.arguments
    assert isinstance(first, tree.MapName) and isinstance(target, tree.ScratchVariable)
    facts, slot = g.typing.maps[first.name], g.typing.slots[target]
    assert facts.value is not None and slot.type is not None
    missing = asm.label()
    done = asm.label()
    g.lookup(facts, g.key(facts, key))
    asm.jump_if_number("==", 0, 0, missing)
    asm.move(_POINTER, 0)
    if isinstance(facts.value, types.AggregateType):
        g.aggregate_read(facts.value)
        g.point(1, g.storage.slot(slot))
        asm.store(1, 0, 0, layout.size_of(slot.type))
    else:
        between = g.temporary(layout.room_of(facts.value))
        g.copy_from(_POINTER, between, layout.room_of(facts.value))
        g.transfer(between, facts.value, g.storage.slot(slot), slot.type)
    asm.set(0, 1)
    asm.jump(done)
    asm.place(missing)
    asm.set(0, 0)
    asm.place(done)


def _swap(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load the argument of bswap(), with its bytes reversed in the width of its type, into r0.

    Args:
        g: writes the program.
        node: the call.
    """
    g.number(node.arguments[0])
    bits, _ = layout.width(g.type(node))
    if bits > 8:
        g.asm.swap(0, bits)
    else:
        g.asm.extend(0, 8, False)


def _same(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 the number that is the call's argument: kptr() and uptr() change nothing."""
    g.number(node.arguments[0])


def _is_error(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load 1 into r0 where a pointer is a kernel's error (-4095 to -1), else 0: is_err().

    Args:
        g: writes the program.
        node: the call.
    """
    g.number(node.arguments[0])
    g.asm.extend(0, g.world.bits, True)
    yes = g.asm.label()
    done = g.asm.label()
    g.asm.jump_if_number(">=", 0, -4095, yes)
    g.asm.set(0, 0)
    g.asm.jump(done)
    g.asm.place(yes)
    g.asm.set(0, 1)
    g.asm.place(done)


def _place_of(g: BlockWriter, node: tree.Expression) -> tuple[Area, int]:
    """Return (the area where a string lies, bytes of its type).

    Args:
        g: writes the program.
        node: the string.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StringType)
    return g.place(node), kind.size


def _string_length(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 the number of bytes of a string before its NUL: strlen()."""
    texts.length(g, *_place_of(g, node.arguments[0]))


def _capacity(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 the bytes that the type of a string has room for: strcap()."""
    kind = g.type(node.arguments[0])
    assert isinstance(kind, types.StringType)
    g.asm.set(0, kind.size)


def _position(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 the offset in bytes of a string in another, -1 where it is not there: strstr().

    Args:
        g: writes the program.
        node: the call: the string that is searched, and what is looked for.
    """
    texts.position(g, *_place_of(g, node.arguments[0]), *_place_of(g, node.arguments[1]))


def _contains(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load 1 into r0 where one string is in another, else 0: the call `node` of strcontains().

    Args:
        g: writes the program.
        node: the call.
    """
    _position(g, node)
    yes = g.asm.label()
    done = g.asm.label()
    g.asm.jump_if_number("s>=", 0, 0, yes)
    g.asm.set(0, 0)
    g.asm.jump(done)
    g.asm.place(yes)
    g.asm.set(0, 1)
    g.asm.place(done)


def _begins(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 0 where the first bytes of two strings are the same, else 1: strncmp().

    Args:
        g: writes the program.
        node: the call: two strings, and how many bytes are compared.
    """
    most = node.arguments[2]
    assert isinstance(most, tree.NumberLiteral)
    texts.differs(g, *_place_of(g, node.arguments[0]), *_place_of(g, node.arguments[1]), most.value)


def _order(g: BlockWriter, node: tree.FunctionCall) -> None:
    """Load into r0 the difference of the first bytes that differ in two strings or arrays, 0 where
    none does: memcmp().

    Args:
        g: writes the program.
        node: the call: two strings or arrays, and how many bytes are compared.
    """
    left, right, most = node.arguments
    assert isinstance(most, tree.NumberLiteral)
    texts.order(g, g.place(left), g.place(right), most.value)


_NUMBERS: Final[dict[str, Callable[..., None]]] = {
    "memcmp": _order,
    "retval": _result,
    "pid": _pid,
    "tid": _pid,
    "curtask": _pid,
    "nsecs": _helper("ktime_get_ns"),
    "elapsed": _elapsed,
    "cpu": _helper("get_smp_processor_id"),
    "rand": _helper("get_prandom_u32"),
    "uid": _constant(0),
    "gid": _constant(0),
    "numaid": _constant(0),
    "usermode": _constant(1),
    "cpid": _constant(0),
    "has_cpid": _constant(0),
    "jiffies": _jiffies,
    "ncpus": _cpus,
    "default_str_length": _longest,
    "reg": _register,
    "kaddr": _address,
    "uaddr": _address,
    "len": _length,
    "has_key": _has_key,
    "delete": _delete,
    "find": _find,
    "bswap": _swap,
    "kptr": _same,
    "uptr": _same,
    "is_err": _is_error,
    "strlen": _string_length,
    "strcap": _capacity,
    "strstr": _position,
    "strcontains": _contains,
    "strncmp": _begins,
}


# --- values in memory


def store(g: BlockWriter, node: tree.Name | tree.FunctionCall, kind: ValueType, area: Area) -> None:
    """Write code that stores a builtin's or function's value in an area, converted to its type.

    Args:
        g: writes the program.
        node: the builtin or the call.
        kind: the type that the area has.
        area: where to.

    Raises:
        ProgramError: the builtin or function gives no value that can be stored.
    """
    word = _word(node)
    own = g.type(node)
    if isinstance(node, tree.Name) and word in g.definitions.texts:
        text = tree.StringLiteral(span=node.span, value=g.definitions.texts[word])
        g.typing.of[text] = own
        g.store(text, kind, area)
        return
    rule = _STORES.get(word)
    if rule is None:
        raise ProgramError(
            f"{word} gives no value that can be kept", hint="use it where it is printed"
        )
    if own == kind:
        rule(g, node, area)
    else:
        between = g.temporary(layout.room_of(own))
        rule(g, node, between)
        g.transfer(between, own, area, kind)


def _every_argument(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store `args`: numbers and structures as the guest has them in memory; zeros for
    floating-point arguments.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.

    Raises:
        ProgramError: it is not known where an argument is.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StructType)
    g.clear(area, layout.room_of(kind))
    for part in kind.fields:
        size = layout.size_in_guest(part.type, g.world.bits // 8)
        if isinstance(part.type, types.FloatType):  # of which scripts have no value
            continue
        if not layout.is_number(part.type):
            _argument_bytes(g, _source(g, part.name), size, area.at(part.offset))
            continue
        _argument_number(g, part.name, part.type)
        if g.world.order != sys.byteorder and size > 1:
            g.asm.swap(0, 8 * size)
        g.point(1, area.at(part.offset))
        g.asm.store(1, 0, 0, size)


def _whole_result(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store `retval` where it is no number: a structure; of a floating-point number zeros, as
    scripts have no value of it.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.

    Raises:
        ProgramError: programs cannot read it where it is.
    """
    kind = g.type(node)
    g.clear(area, layout.room_of(kind))
    if isinstance(kind, types.FloatType):
        return
    source = g.probe.result_source
    if source is None or source.reason:
        why = f"not known: {source.reason}" if source else "where programs cannot read it"
        raise ProgramError(f"retval is {why}", hint="use reg(), or a pointer to it")
    _argument_bytes(g, source, layout.size_in_guest(kind, g.world.bits // 8), area)


def _comm(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store the name of the guest's task: comm.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.
    """
    g.point(1, area)
    g.asm.set(2, 16)
    g.asm.call("get_current_comm")


def _probe(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store the name of the attach point that was hit: the builtin probe.

    Where the block has several, the program's cookie is the index of the attach point; with a
    cookie that is too large nothing is stored.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StringType)
    points = g.probe.points
    if len(points) == 1:
        g.text(points[0].text.encode("utf-8", "surrogateescape"), kind, area)
        return
    room = layout.room_of(kind)
    asm = g.asm
    names = g.storage.constant(
        b"".join(
            point.text.encode("utf-8", "surrogateescape").ljust(room, b"\0") for point in points
        )
    )
    out = asm.label()
    asm.move(1, _CONTEXT)
    asm.call("get_attach_cookie")
    asm.jump_if_number(">=", 0, len(points), out)
    asm.compute_with("*", 0, room)
    g.point(2, names)
    asm.compute("+", 2, 0)
    g.copy_from(2, area, room)
    asm.place(out)


def _probe_type(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store the kind of the block's first attach point, "special" for begin, end and self: the
    builtin probetype.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StringType)
    g.text(signatures.probe_type(g.probe.points[0].kind).encode(), kind, area)


def _string(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store a string of the guest's, or of the script's own: str().

    Args:
        g: writes the program.
        node: the call: text or address, and perhaps the most bytes, the NUL included.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StringType)
    first = node.arguments[0]
    of = g.type(first)
    most = node.arguments[1] if len(node.arguments) == 2 else None
    # a length counts the NUL, and the type has room for one byte more: as bpftrace has it
    size = min(kind.size, most.value) if isinstance(most, tree.NumberLiteral) else kind.size
    if isinstance(of, (types.ArrayType, types.StringType)):
        if not g.in_guest(first):
            g.transfer(g.place(first), of, area, kind)
            if kind.size <= g.settings.max_strlen + 1:
                texts.cut(g, area, kind.size, layout.room_of(kind))
            _cut(g, most, area, kind)
            return
        g.at_address(
            first,
            lambda: _text_at(g, most, size, kind, area),
            lambda: g.clear(area, layout.room_of(kind)),
        )
    else:
        g.number(first)
        g.reading = node.span
        _text_at(g, most, size, kind, area)


def _cut(g: BlockWriter, most: tree.Expression | None, area: Area, kind: types.StringType) -> None:
    """Write code that cuts a string of the script's own to the length given to str().

    Args:
        g: writes the program.
        most: the length, the NUL included; None: none was given, and nothing is cut.
        area: the string.
        kind: its type.
    """
    if most is None:
        return
    if isinstance(most, tree.NumberLiteral):
        if most.value < kind.size:
            texts.cut(g, area, most.value, layout.room_of(kind))
        return
    g.number(most)
    empty = g.asm.label()
    g.asm.jump_if_number("==", 0, 0, empty)
    g.asm.compute_with("+", 0, -1)  # the NUL
    g.asm.place(empty)
    texts.clear_from(g, area, kind.size)


def _text_at(
    g: BlockWriter, most: tree.Expression | None, size: int, kind: types.StringType, area: Area
) -> None:
    """Write code that reads the string at the guest address in r0 into an area, padded with zeros.

    Args:
        g: writes the program.
        most: the length given to str(), the NUL included; None: none was given.
        size: the most bytes, the NUL included; used only where `most` is None or a literal.
        kind: the type of the area, which limits a computed length.
        area: where to.
    """
    asm = g.asm
    if most is None or isinstance(most, tree.NumberLiteral):
        g.read(area, size, True, layout.room_of(kind))
        return
    place = g.push()
    g.clear(area, layout.room_of(kind))
    g.number(most)
    fits = asm.label()
    none = asm.label()
    asm.jump_if_number("<=", 0, kind.size, fits)
    asm.set(0, kind.size)
    asm.place(fits)
    asm.move(2, 0)
    g.pop(place, 3)
    g.guest_address(3)
    asm.jump_if_number("==", 2, 0, none)
    g.point(1, area)
    asm.call("probe_read_user_str")
    g.warn_if_failed("probe_read_user_str")
    asm.place(none)


def _buffer(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store a length, and that many bytes of the guest's or of the script's own: buf().

    The length has the first 8 bytes of the area, the bytes follow. The type of the buffer limits
    the length. Where an index is outside its array, zeros are stored.

    Args:
        g: writes the program.
        node: the call: bytes or address, and perhaps the length.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.BufferType)
    first, asm = node.arguments[0], g.asm
    of = g.type(first)
    g.clear(area, layout.room_of(kind))
    length = node.arguments[1] if len(node.arguments) == 2 else None
    own = isinstance(of, (types.StringType, types.ArrayType)) and not g.in_guest(first)
    if own:
        source = g.place(first)
        size = min(
            kind.size,
            layout.size_in_guest(of, g.world.bits // 8)
            if not isinstance(of, types.StringType)
            else of.size,
        )
        if isinstance(length, tree.NumberLiteral):
            size = min(size, length.value)
        g.copy(source, area.at(8), size)
        if length is None or isinstance(length, tree.NumberLiteral):
            g.point(1, area)
            asm.store_number(1, 0, size, 8)
            return
        g.number(length)
        fits = asm.label()
        asm.jump_if_number("<=", 0, size, fits)
        asm.set(0, size)
        asm.place(fits)
        g.point(1, area)
        asm.store(1, 0, 0, 8)
        texts.clear_from(g, area.at(8), size)
        return
    if isinstance(of, (types.StringType, types.ArrayType)):
        g.at_address(first, lambda: _bytes_at(g, length, kind, area), lambda: None)
    else:
        g.number(first)
        g.reading = node.span
        _bytes_at(g, length, kind, area)


def _bytes_at(
    g: BlockWriter, length: tree.Expression | None, kind: types.BufferType, area: Area
) -> None:
    """Store in an area, which is zeroed, a length and so many bytes at the guest address in r0.

    Args:
        g: writes the program.
        length: how many, at most as many as the type has room for; None: as many as that.
        kind: the type of the area.
        area: where to: the length in the first 8 bytes, the bytes behind.
    """
    asm = g.asm
    place = g.push()
    if length is None:
        asm.set(0, kind.size)
    else:
        g.number(length)
    fits = asm.label()
    none = asm.label()
    asm.jump_if_number("<=", 0, kind.size, fits)
    asm.set(0, kind.size)
    asm.place(fits)
    g.point(1, area)
    asm.store(1, 0, 0, 8)
    asm.move(2, 0)
    g.pop(place, 3)
    g.guest_address(3)
    asm.jump_if_number("==", 2, 0, none)
    g.point(1, area.at(8))
    asm.call("probe_read_user")
    g.warn_if_failed("probe_read_user")
    asm.place(none)


def _symbol(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store an address, which Python shows as a symbol: ksym() and usym().

    Args:
        g: writes the program.
        node: the call.
        area: where it is stored.
    """
    g.number(node.arguments[0])
    g.point(1, area)
    g.asm.store(1, 0, 0, 8)


def _function(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store the address of the probed function, or the pc inside one: the builtin func.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.
    """
    asm = g.asm
    done = g.asm.label()
    asm.move(1, _CONTEXT)
    asm.call("get_func_ip")
    asm.jump_if_number("!=", 0, 0, done)
    asm.load(0, _CONTEXT, 8 * PC, 8)
    asm.place(done)
    g.point(1, area)
    asm.store(1, 0, 0, 8)


def _stack(g: BlockWriter, node: tree.Name, area: Area) -> None:
    """Store the call stack: the number of addresses, then the addresses: kstack and ustack.

    The number is 0 where the stack cannot be read.

    Args:
        g: writes the program.
        node: not used.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StackType)
    asm = g.asm
    fine = g.asm.label()
    g.clear(area, layout.room_of(kind))
    asm.move(1, _CONTEXT)
    g.point(2, area.at(8))
    asm.set(3, 8 * kind.limit)
    asm.set(4, 0)
    asm.call("get_stack")
    asm.jump_if_number("s>=", 0, 0, fine)
    asm.set(0, 0)
    asm.place(fine)
    asm.compute_with(">>", 0, 3)
    g.point(1, area)
    asm.store(1, 0, 0, 8)


def _inet(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store an Internet address: its family (2 or 10, as in Linux), then its bytes: ntop().

    The family has the first 8 bytes of the area. Where it is not given, it follows from the size: 4
    bytes are IPv4.

    Args:
        g: writes the program.
        node: the call: perhaps the family, and the address.
        area: where it is stored.
    """
    kind = g.type(node)
    last, asm = node.arguments[-1], g.asm
    of = g.type(last)
    g.clear(area, layout.room_of(kind))
    size = 4
    if isinstance(of, (types.ArrayType, types.StringType)):
        size = layout.size_in_guest(of, g.world.bits // 8)
        g.copy(g.place(last), area.at(8), size)
    else:
        g.number(last)
        if g.world.order != sys.byteorder:
            asm.swap(0, 32)
        g.point(1, area)
        asm.store(1, 8, 0, 4)
    g.point(1, area)
    asm.store_number(1, 0, 2 if size == 4 else 10, 8)
    if len(node.arguments) == 2:
        g.number(node.arguments[0])
        g.point(1, area)
        asm.store(1, 0, 0, 8)


def _pton(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store the bytes of a literal Internet address: pton().

    Args:
        g: writes the program.
        node: the call.
        area: where it is stored.
    """
    kind = g.type(node)
    text = node.arguments[0]
    assert isinstance(text, tree.StringLiteral)
    packed = ipaddress.ip_address(text.value.decode("utf-8", "replace")).packed
    g.copy(g.storage.constant(packed), area, layout.room_of(kind))


def _mac(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store the six bytes of a MAC address, from the guest's memory or the script's own: macaddr().

    Args:
        g: writes the program.
        node: the call.
        area: where it is stored.
    """
    kind = g.type(node)
    first = node.arguments[0]
    g.clear(area, layout.room_of(kind))
    if isinstance(g.type(first), types.PointerType):
        g.number(first)
        g.read(area, 6)
    else:
        g.copy(g.place(first), area, 6)


def _strftime(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store a time in nanoseconds, and the number of its format, which is kept now: strftime().

    The format is appended to `g.storage.texts` at once; its number is its index there.

    Args:
        g: writes the program.
        node: the call: format and time.
        area: where it is stored.
    """
    text = node.arguments[0]
    assert isinstance(text, tree.StringLiteral)
    g.storage.texts.append(text.value.decode("utf-8", "surrogateescape"))
    g.number(node.arguments[1])
    g.point(1, area)
    g.asm.store(1, 0, 0, 8)
    g.asm.store_number(1, 8, len(g.storage.texts) - 1, 8)


def _concatenation(g: BlockWriter, node: tree.FunctionCall, area: Area) -> None:
    """Store the strings of a call one behind the other, cut to the area's type: str_concat().

    Args:
        g: writes the program.
        node: the call.
        area: where it is stored.
    """
    kind = g.type(node)
    assert isinstance(kind, types.StringType)
    g.clear(area, layout.room_of(kind))
    texts.join(g, area, kind.size, [_place_of(g, argument) for argument in node.arguments])


_STORES: Final[dict[str, Callable[..., None]]] = {
    "args": _every_argument,
    "retval": _whole_result,
    "comm": _comm,
    "probe": _probe,
    "probetype": _probe_type,
    "str": _string,
    "buf": _buffer,
    "ksym": _symbol,
    "usym": _symbol,
    "func": _function,
    "kstack": _stack,
    "ustack": _stack,
    "ntop": _inet,
    "pton": _pton,
    "macaddr": _mac,
    "strftime": _strftime,
    "str_concat": _concatenation,
}


# --- comparisons of what is no number


def compare(g: BlockWriter, node: tree.Binary, label: str) -> None:
    """Write code that jumps to a label where `==` or `!=` of two values in memory does not hold.

    Where it holds, the code goes on with the next instruction.

    Args:
        g: writes the program.
        node: the comparison.
        label: the label.
    """
    left = g.type(node.left)
    right = g.type(node.right)
    asm = g.asm
    differ = asm.label()
    done = asm.label()
    if isinstance(left, types.StringType) and isinstance(right, types.StringType):
        a = _text_place(g, node.left)
        b = _text_place(g, node.right)
        rooms = layout.room_of(left), layout.room_of(right)
        _words(g, a, b, min(rooms), differ)
        if rooms[0] != rooms[1]:
            g.point(1, (a if rooms[0] > rooms[1] else b).at(min(rooms)))
            asm.load(1, 1, 0, 1)
            asm.jump_if_number("!=", 1, 0, differ)
    else:
        kind = promoted(left, right)
        assert kind is not None
        room = layout.room_of(kind)
        a = g.temporary(room)
        b = g.temporary(room)
        g.store(node.left, kind, a)
        g.store(node.right, kind, b)
        _words(
            g,
            a,
            b,
            layout.size_of(kind, g.world.bits // 8) if isinstance(kind, types.ArrayType) else room,
            differ,
        )
    if node.operator == "==":
        asm.jump(done)
        asm.place(differ)
        asm.jump(label)
        asm.place(done)
    else:
        asm.jump(label)
        asm.place(differ)


def _text_place(g: BlockWriter, node: tree.Expression) -> Area:
    """Return the area where a string that is compared lies.

    A literal becomes a constant, cut at its first NUL.

    Args:
        g: writes the program.
        node: the string.
    """
    if isinstance(node, tree.StringLiteral):
        kind = g.type(node)
        return g.storage.constant(node.value.partition(b"\0")[0].ljust(layout.room_of(kind), b"\0"))
    return g.place(node)


def _words(g: BlockWriter, a: Area, b: Area, size: int, differ: str) -> None:
    """Write code that jumps to a label where the bytes of two areas differ.

    Args:
        g: writes the program.
        a: the one area.
        b: the other.
        size: bytes that are compared.
        differ: the label.
    """
    asm = g.asm
    g.point(1, a)
    g.point(2, b)
    at = 0
    for width in (8, 4, 2, 1):
        while size - at >= width:
            asm.load(3, 1, at, width)
            asm.load(4, 2, at, width)
            asm.jump_if("!=", 3, 4, differ)
            at += width
