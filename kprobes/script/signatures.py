"""Builtins and functions: what they take, and which type they give.

Functions here take the walk (`inference`) and the call or name (`node`), walk through the
arguments, note errors in the walk, and return the type: VoidType() of a function that gives no
value; None where it is not known yet, or wrong.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Final

from . import layout, tree, types
from .inference import Inference
from .names import AGGREGATES, AT_CODE, CLOCKS, KNOWN, REFUSED, SIMPLE, UNSAFE, UNSUPPORTED
from .points import Point
from .promotion import base_name, name_of, settled
from .settings import STACK_MODES
from .source import did_you_mean
from .types import IntegerType, ValueType

_U8 = IntegerType(8, False)
_U64 = IntegerType(64, False)
_I64 = IntegerType(64, True)
_U32 = IntegerType(32, False)
_INT32 = IntegerType(32, True)
_NOTHING = types.VoidType()
_BOOLEAN = types.BooleanType()
#: kinds of attach points at which a function has `args`
_DESCRIBED: Final = ("fentry", "fexit", "kprobe", "uprobe")
#: attach points that a message names, at most
_NAMED: Final = 3


def name(inference: Inference, node: tree.Name) -> ValueType | None:
    """Return the type of a name: a builtin, an enumerator or a constant.

    An enumerator of the guest's debug information is entered in `inference.definitions`.

    Args:
        inference: the walk, which takes errors.
        node: the name.

    Returns:
        None: it is not known yet, or the name is unknown, which is an error.
    """
    word = node.name
    definitions = inference.definitions
    if word in definitions.enumerators:
        return definitions.enumerators[word]
    if word in definitions.constants:
        from .promotion import literal

        return literal(definitions.constants[word])
    if word in definitions.texts:
        return types.StringType(len(definitions.texts[word]) + 1)
    if re.fullmatch(r"s?arg\d{1,20}", word):
        return _argument(inference, node)
    word = word.removeprefix("__builtin_")
    if word == "args":
        return _args(inference, node)
    if word in KNOWN:
        return call(inference, tree.FunctionCall(span=node.span, name=word, arguments=[]), node)
    of_guest = inference.world.enumerator(node.name)
    if of_guest is not None:
        definitions.constants[node.name], definitions.enumerators[node.name] = of_guest
        return of_guest[1]
    inference.error(
        f"Unknown identifier: '{node.name}'",
        node,
        *did_you_mean(node.name, {*KNOWN, *definitions.constants, "args", "arg0", "arg1", "arg2"}),
    )
    return None


def _argument(inference: Inference, node: tree.Name) -> ValueType | None:
    """Return the type of argN or sargN, an integer.

    Returns:
        None, after an error in `inference`: N is above 15, or a probe of the block has no
        arguments (for sargN: none on the stack, as USDT markers).

    Args:
        inference: the walk.
        node: the name.
    """
    number = int(node.name.lstrip("sarg"))
    kinds = {point.kind for point in inference.probe.points}
    stack = node.name.startswith("sarg")
    if not kinds <= {"kprobe", "uprobe", "usdt", "fentry"} or (stack and "usdt" in kinds):
        wrong = sorted(kinds - {"kprobe", "uprobe", "usdt", "fentry"}) or sorted(kinds)
        hint = (
            "keep it in a map at the entry: @x[tid] = arg0"
            if any(p.returns for p in inference.probe.points)
            else ""
        )
        inference.error(
            f"The {node.name} builtin can only be used with kprobe, uprobe and usdt probes, and "
            f"this is {'/'.join(wrong)}",
            node,
            *([hint] if hint else []),
        )
        return None
    if number > 15:
        inference.error(f"{node.name}: programs see 16 arguments, arg0 to arg15", node)
        return None
    return _U64


def _args(inference: Inference, node: tree.Name) -> ValueType | None:
    """Return the structure that `args` is; None, after an error: nothing says what arguments there
    are.

    Args:
        inference: the walk, which takes the error.
        node: the name.
    """
    found = inference.probe.arguments
    if found is None:
        undescribed = _undescribed(inference.probe.points)
        inference.error(
            "Cannot read function parameters: args is for fentry, fexit, kprobe and uprobe of "
            "functions that debug information describes, and for watchpoints of data"
            + (f"; not described: {undescribed}" if undescribed else ""),
            node,
            "fexit:FUNCTION has args and retval"
            if any(point.kind in ("kretprobe", "uretprobe") for point in inference.probe.points)
            else "arg0, arg1 ... go by the calling convention alone",
        )
    return found


def _undescribed(points: Sequence[Point]) -> str:
    """Return which functions have no parameters that are known, as text: `kprobe:f, kprobe:g` and
    how many more; "" where none of the attach points is one at which functions have `args`.

    Args:
        points: attach points of which debug information describes none.
    """
    entries = [point.text for point in points if point.kind in _DESCRIBED]
    shown = ", ".join(entries[:_NAMED])
    more = len(entries) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _counted(inference: Inference, node: tree.FunctionCall, least: int, most: int) -> bool:
    """Return True where a call has as many arguments as the function takes; else note an error.

    The arguments are not walked.

    Args:
        inference: the walk.
        node: the call.
        least: the fewest arguments.
        most: the most arguments.
    """
    given = len(node.arguments)
    if least <= given <= most:
        return True
    words = {
        0: "no arguments",
        1: "one argument",
        2: "two arguments",
        3: "three arguments",
        4: "4 arguments",
    }
    if given < least and most > least:
        wanted = f"at least {words[least]}"
    elif most > least:
        wanted = f"up to {words[most]}"
    else:
        wanted = words.get(least, f"{least} arguments")
    inference.error(f"{node.name}() requires {wanted} ({given} provided)", node)
    return False


def call(
    inference: Inference, node: tree.FunctionCall, at: tree.Node | None = None
) -> ValueType | None:
    """Return the type of a call, after its check.

    Args:
        inference: the walk, which takes errors.
        node: the call.
        at: the name in the script, where it had no parentheses; None: it had.

    Returns:
        VoidType() of a function that gives no value; None: it is not known yet, or an error was
        noted. After some errors the type is returned, too, such as that of an unsafe function in
        safe mode.
    """
    word = node.name.removeprefix("__builtin_")
    if word in REFUSED:
        inference.error(f"{word} has no meaning in this guest: {REFUSED[word]}", at or node)
        return None
    if word in UNSUPPORTED:
        inference.error(f"{word}() is not supported here: {UNSUPPORTED[word]}", at or node)
        return None
    if word in AGGREGATES:
        inference.error(
            f"{word}() must be assigned directly to a map", at or node, f"@ = {word}(...)"
        )
        return None
    if word not in KNOWN:
        inference.error(f"Unknown function: '{node.name}'", node, *did_you_mean(word, KNOWN))
        return None
    if word in UNSAFE and not inference.unsafe:
        inference.error(
            f"{word}() is an unsafe function being used in safe mode",
            at or node,
            "--unsafe allows it",
        )
    if word in AT_CODE and not all(
        point.at_code or point.kind in ("watchpoint", "asyncwatchpoint", "profile")
        for point in inference.probe.points
    ):
        kinds = "/".join(sorted({point.kind for point in inference.probe.points}))
        inference.error(
            f"{word} can not be used with {kinds} probes: they are at no place of the guest's code",
            at or node,
        )
        return None
    if word in SIMPLE and word not in ("nsecs", "comm", "pid", "tid"):
        return SIMPLE[word] if _counted(inference, node, 0, 0) else None
    return _CALLS[word](inference, node)


def constant(inference: Inference, node: tree.Expression) -> str | int | None:
    """Return the value that an expression has at compile time.

    Literals have one (of a boolean 0 or 1), fields of typeinfo(), `probetype`,
    `__builtin_safe_mode`, questions about a type (PREDICATES), and sizeof().

    Args:
        inference: the walk, which knows types and settings.
        node: the expression.

    Returns:
        None: it is known only when the script runs, or not yet, as a type is not known yet.
    """
    if isinstance(node, tree.NumberLiteral | tree.BooleanLiteral):
        return int(node.value)
    if isinstance(node, tree.StringLiteral):
        return node.value.decode("utf-8", "replace")
    if isinstance(node, tree.FieldAccess) and isinstance(node.of, tree.TypeInfo):
        kind = inference.written(node.of.type)
        if kind is None:
            return None
        named: dict[str, str | int] = {
            "btf_id": 0,
            "base_type": base_name(kind),
            "full_type": name_of(settled(kind)),
        }
        return named.get(node.name)  # another name is an error, which inference tells
    if isinstance(node, tree.Name) and node.name.removeprefix("__builtin_") == "probetype":
        return probe_type(inference.probe.points[0].kind)
    if isinstance(node, tree.Name) and node.name == "__builtin_safe_mode":
        return int(not inference.unsafe)
    if isinstance(node, tree.FunctionCall) and node.name in PREDICATES and len(node.arguments) == 1:
        if node.name == "is_literal":
            return int(
                isinstance(
                    node.arguments[0], tree.NumberLiteral | tree.StringLiteral | tree.BooleanLiteral
                )
            )
        kind = inference.type(node.arguments[0])
        return None if kind is None else int(PREDICATES[node.name](kind))
    if isinstance(node, tree.SizeOf):
        inference.type(node)
        return inference.typing.sizes.get(node)
    return None


def probe_type(kind: str) -> str:
    """Return the value of the builtin `probetype`: "special" for begin, end and self, else the
    kind.
    """
    return "special" if kind in ("begin", "end", "self") else kind


PREDICATES: Final[dict[str, Callable[[ValueType], bool]]] = {
    "is_str": lambda kind: isinstance(kind, types.StringType),
    "is_ptr": lambda kind: isinstance(kind, types.PointerType),
    "is_array": lambda kind: isinstance(kind, types.ArrayType),
    "is_integer": lambda kind: isinstance(kind, IntegerType),
    "is_unsigned_integer": lambda kind: isinstance(kind, IntegerType) and not kind.signed,
    "is_literal": lambda kind: False,
}


# --- aggregates

#: Function -> what its arguments after the number are called where they are no literals.
_LITERALS: Final = {
    "hist": ("bits value, need integer literal",),
    "lhist": (
        "min value (must be non-negative literal)",
        "max value (must be non-negative literal)",
        "step value",
    ),
    "tseries": (
        "interval_ns value (must be non-negative literal)",
        "num_intervals value (must be non-negative literal)",
    ),
}


def aggregate(inference: Inference, node: tree.FunctionCall) -> types.AggregateType | None:
    """Return the type of a map that is assigned by `count()` and its like.

    Args:
        inference: the walk, which takes errors.
        node: the call.

    Returns:
        None: it is not known yet, or wrong.
    """
    word = node.name
    least, most = {"count": (0, 0), "hist": (1, 2), "lhist": (4, 4), "tseries": (3, 4)}.get(
        word, (1, 1)
    )
    if not _counted(inference, node, least, most):
        return None
    if word == "count":
        return types.CountType()
    number = inference.number(
        node.arguments[0], f"{word}() only supports integer arguments ({{}} provided)"
    )
    if number is None:
        return None
    rest = []
    for position, argument in enumerate(node.arguments[1:], 1):
        inference.type(argument)
        if word == "tseries" and position == 3:
            continue
        if not isinstance(argument, tree.NumberLiteral) or argument.value < 0:
            if inference.type(argument) is not None:
                inference.error(f"{word}: invalid {_LITERALS[word][position - 1]}", node)
            return None
        rest.append(argument.value)
    signed = number.signed
    simple: dict[str, type] = {
        "sum": types.SumType,
        "avg": types.AverageType,
        "min": types.MinimumType,
        "max": types.MaximumType,
        "stats": types.StatsType,
    }
    if word in simple:
        made: types.AggregateType = simple[word](signed)
        return made
    if word == "hist":
        bits = rest[0] if rest else 0
        if not 0 <= bits <= 5:
            inference.error(f"hist: bits {bits} must be 0..5", node)
            return None
        return types.HistogramType(bits)
    if word == "lhist":
        return _linear(inference, node, *rest)
    return _series(inference, node, rest, signed)


def _linear(
    inference: Inference, node: tree.FunctionCall, low: int, high: int, step: int
) -> types.AggregateType | None:
    """Check the limits of lhist(), and return its type; None after an error.

    Args:
        inference: the walk, which takes errors.
        node: the call.
        low: where the first row begins.
        high: where the last row ends.
        step: numbers in a row.
    """
    rows = (high - low) // step if step > 0 else 0
    wrong = []
    if step <= 0:
        wrong.append(f"lhist() step must be >= 1 ({step} provided)")
    elif rows > 1000:
        wrong.append(f"lhist() too many buckets, must be <= 1000 (would need {rows})")
    if low > high:
        wrong.append(f"lhist() min must be less than max (provided min {low} and max {high})")
    elif high - low < step:
        wrong.append(
            "lhist() step is too large for the given range (provided step "
            f"{step} for range {high - low})"
        )
    if not wrong and high >= 1 << 31:
        wrong.append("lhist() limits have 31 bits here")
    for text in wrong:
        inference.error(text, node)
    return None if wrong else types.LinearHistogramType(low, high, step)


def _series(
    inference: Inference, node: tree.FunctionCall, rest: list[int], signed: bool
) -> types.AggregateType | None:
    """Check the numbers of tseries(), and return its type.

    Args:
        inference: the walk.
        node: the call.
        rest: nanoseconds of an interval, and how many intervals there are.
        signed: True for signed numbers.

    Returns:
        The type, also after the error of the last walk that the settings refuse tseries(); None:
        another error was noted.
    """
    interval, count = rest
    how = node.arguments[3] if len(node.arguments) == 4 else None
    aggregation = (
        how.value.decode("utf-8", "replace") if isinstance(how, tree.StringLiteral) else None
    )
    if interval <= 0:
        inference.error(f"tseries() interval_ns must be >= 1 ({interval} provided)", node)
    elif not 1 <= count <= 1000000:
        inference.error(
            f"tseries() num_intervals must be >= 1 ({count} provided)"
            if count < 1
            else f"tseries() num_intervals must be < 1000000 ({count} provided)",
            node,
        )
    elif how is not None and aggregation not in ("avg", "max", "min", "sum"):
        inference.error(
            "tseries() expects one of the following aggregation functions: avg, max, min, sum "
            f'("{aggregation}" provided)',
            node,
        )
    elif count > 1000:
        inference.error("tseries() keeps at most 1000 intervals here", node)
    else:
        if inference.final and inference.settings.unstable_tseries == "error":
            inference.error(
                "Hit an unstable feature: tseries. Enable it with the config variable "
                "unstable_tseries",
                node,
            )
        return types.TimeSeriesType(interval, count, aggregation, signed)
    return None


# --- functions


def _nothing(inference: Inference, node: tree.FunctionCall) -> ValueType:
    """Walk through the arguments of the call `node` of a function that gives no value.

    Errors are noted in `inference`.
    """
    for argument in node.arguments:
        inference.type(argument)
    return _NOTHING


def _format(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of printf() and its like: a literal format, and values that fit it.

    Errors are noted in `inference`; that values do not fit, in the last walk only.

    Returns:
        VoidType(); None: the format is missing, or no literal.
    """
    if not node.arguments:
        inference.error(f"{node.name}() requires at least one argument (0 provided)", node)
        return None
    text = node.arguments[0]
    kinds = [inference.type(argument) for argument in node.arguments]
    if not isinstance(text, tree.StringLiteral):
        if kinds[0] is not None:
            inference.error(
                f"{node.name}() expects a string literal ({base_name(kinds[0])} provided)", text
            )
        return None
    values = list[ValueType]()
    for argument, kind in zip(node.arguments[1:], kinds[1:], strict=True):
        if kind is None:
            return _NOTHING
        value = (
            inference.readable(kind, argument) if isinstance(kind, types.AggregateType) else kind
        )
        if value is None:
            return _NOTHING
        values.append(settled(value))
    if inference.final:
        from .printf import Format

        wrong = Format.parse(text.value.decode("utf-8", "surrogateescape")).problem(values, name_of)
        if wrong is not None:
            inference.error(wrong, node)
    return _NOTHING


def _print(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of print(), and note errors in `inference`.

    The type of a map that is printed whole is entered in `typing.of`.

    Returns:
        VoidType(); None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 1, 3):
        return None
    first = node.arguments[0]
    if isinstance(first, tree.MapName):
        facts = inference.map(first.name, first.span)
        if facts.keyed is None and facts.value is None and inference.final:
            inference.error(
                f"Undefined map: {first.name}",
                first,
                *did_you_mean(first.name, inference.known_maps()),
            )
        if facts.value is not None:
            inference.typing.of[first] = facts.value
        for number in node.arguments[1:]:
            inference.type(number)
            if not isinstance(number, tree.NumberLiteral):
                inference.error("print() only supports literal arguments for top and div", number)
        return _NOTHING
    kind = inference.type(first)
    if len(node.arguments) > 1:
        inference.error(f"Non-map print() only takes 1 argument, {len(node.arguments)} found", node)
    if isinstance(kind, types.VoidType):
        inference.error(f"{name_of(kind)} type passed to print() is not printable", node)
    return _NOTHING


def _of_map(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of clear() or zero(), and note errors in `inference`.

    Returns:
        VoidType(); None: the argument is no map, or not one.
    """
    if not _counted(inference, node, 1, 1):
        return None
    first = node.arguments[0]
    if not isinstance(first, tree.MapName):
        inference.error(f"{node.name}() expects a map argument", first)
        return None
    facts = inference.map(first.name, first.span)
    if facts.value is None and inference.final:
        inference.error(
            f"Undefined map: {first.name}", first, *did_you_mean(first.name, inference.known_maps())
        )
    return _NOTHING


def _exit(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check exit() or exit(code), `code` an integer, and note errors in `inference`.

    Returns VoidType(); None where the number of arguments is wrong.
    """
    if not _counted(inference, node, 0, 1):
        return None
    for argument in node.arguments:
        inference.number(argument, "exit() only supports int arguments ({} provided)")
    return _NOTHING


def _time(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of time(), and note errors in `inference`.

    Returns:
        VoidType(); None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 0, 1):
        return None
    for argument in node.arguments:
        if not isinstance(argument, tree.StringLiteral):
            inference.error("time() expects a string literal", argument)
    return _NOTHING


def _join(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of join(), and note errors in `inference`.

    Its arguments are the address of an array of pointers, and perhaps a delimiter, a literal.

    Returns:
        VoidType(); None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 1, 2):
        return None
    kinds = [inference.type(argument) for argument in node.arguments]
    if kinds[0] is not None and not isinstance(kinds[0], (IntegerType, types.PointerType)):
        inference.error(
            f"join() only supports int or pointer arguments ({base_name(kinds[0])} provided)",
            node.arguments[0],
        )
    for argument, kind in zip(node.arguments[1:], kinds[1:], strict=True):
        if kind is not None and not isinstance(argument, tree.StringLiteral):
            inference.error(
                f"join() expects a string literal ({base_name(kind)} provided)", argument
            )
    return _NOTHING


def _string(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of str(): a string as long as a literal length plus 1, or as the settings
    say.

    Errors in the call `node` are noted in `inference`.

    Returns:
        The type, also where that of the argument is not known yet; None: the number of arguments is
        wrong, the literal length negative, or the first argument no string, array, integer or
        pointer.
    """
    if not _counted(inference, node, 1, 2):
        return None
    kind = inference.type(node.arguments[0])
    most = inference.settings.max_strlen
    size = most if most >= 1024 else most + 1
    if len(node.arguments) == 2:
        length = node.arguments[1]
        inference.number(length, "str() only supports int arguments ({} provided)")
        if isinstance(length, tree.NumberLiteral):
            if length.value < 0:
                inference.error(f"str cannot use negative length ({length.value})", node)
                return None
            if length.value + 1 > most:
                inference.warn(
                    f"length param ({length.value}) is too long and will be shortened to {most} "
                    "bytes (see BPFTRACE_MAX_STRLEN)",
                    node,
                )
            else:
                size = length.value + 1
    text = node.arguments[0]
    if isinstance(text, tree.StringLiteral) and len(text.value) == most == size - 1:
        size += 1  # it is whole: one that fills its room counts as cut
    if kind is None:
        return types.StringType(size)
    if not isinstance(kind, (IntegerType, types.PointerType, types.StringType, types.ArrayType)):
        inference.error(
            f"str() expects a string, integer or a pointer type as first argument ({name_of(kind)} "
            "provided)",
            node,
        )
        return None
    return types.StringType(size)


def _buffer(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of buf(), a buffer.

    It is as long as a literal length says. With another length it is as long as the settings allow;
    without one, as its argument, a string or array. In no case it is longer than the settings
    allow. Errors in the call `node` are noted in `inference`.

    Returns:
        The type, also where that of the argument is not known yet; None: the number of arguments is
        wrong, the literal length is negative, there is no length and the argument is neither string
        nor array, or it is none of string, array, integer and pointer.
    """
    if not _counted(inference, node, 1, 2):
        return None
    kind = inference.type(node.arguments[0])
    size = inference.settings.max_strlen
    if len(node.arguments) == 2:
        length = node.arguments[1]
        inference.number(length, "buf() only supports int arguments ({} provided)")
        if isinstance(length, tree.NumberLiteral):
            if length.value < 0:
                inference.error(f"buf cannot use negative length ({length.value})", node)
                return None
            size = min(size, length.value)
    elif isinstance(kind, types.ArrayType):
        size = min(size, layout.size_of(kind, inference.world.bits // 8))
    elif isinstance(kind, types.StringType):
        size = min(size, kind.size)
    elif kind is not None:
        inference.error(
            f"buf() expects a length argument for non-array type {base_name(kind)}", node
        )
        return None
    if kind is not None and not isinstance(
        kind, (IntegerType, types.PointerType, types.StringType, types.ArrayType)
    ):
        inference.error(
            f"buf() expects an integer, string, or array argument but saw {base_name(kind)}", node
        )
        return None
    return types.BufferType(max(size, 1))


def _register(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of reg(), an integer; note an error in `inference` where the call is wrong.

    That the guest has no such register is noted in the last walk only.

    Returns:
        The type, also for a register that the guest has not; None: the number of arguments is
        wrong, or the name no literal.
    """
    if not _counted(inference, node, 1, 1):
        return None
    first = node.arguments[0]
    if not isinstance(first, tree.StringLiteral):
        inference.error("reg() expects a string literal", first)
        return None
    register = first.value.decode("utf-8", "replace")
    if inference.world.register(register) is None and inference.final:
        inference.error(
            f"'{register}' is not a valid register on this architecture",
            node,
            *did_you_mean(register, inference.world.registers()),
        )
    return _U64


def _address(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of kaddr(), an integer, or uaddr(), a pointer to a number of the symbol's
    size.

    Errors in the call `node` are noted in `inference`; that the guest has no such symbol, in the
    last walk.

    Returns:
        The type, also for an unknown symbol; None: the number of arguments is wrong, or the name no
        literal.
    """
    if not _counted(inference, node, 1, 1):
        return None
    first = node.arguments[0]
    if not isinstance(first, tree.StringLiteral):
        inference.error(f"{node.name}() expects a string literal", first)
        return None
    symbol = first.value.decode("utf-8", "replace")
    found = inference.world.symbol(symbol)
    if found is None and inference.final:
        text = (
            "Failed to resolve kernel symbol"
            if node.name == "kaddr"
            else "Could not resolve symbol"
        )
        inference.error(f"{text}: {symbol}", node, *did_you_mean(symbol, inference.world.names()))
    if node.name == "kaddr":
        return _U64
    bits = {1: 8, 2: 16, 4: 32}.get(found[1] if found else 0, 64)
    return types.PointerType(IntegerType(bits, True))


def _symbol(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of ksym() or usym(): an address that is shown by its symbol.

    An argument that is neither integer nor pointer is an error in `inference`.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if not _counted(inference, node, 1, 1):
        return None
    kind = inference.type(node.arguments[0])
    if kind is not None and not isinstance(kind, (IntegerType, types.PointerType)):
        inference.error(f"{node.name}() expects an integer or pointer argument", node)
    return types.SymbolType(node.name == "usym")


def _stack(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of kstack() or ustack(): a call stack with its mode and limit.

    Errors in the call `node` are noted in `inference`.

    Returns:
        The type, also after the error of a mode that does not exist; None: there are too many
        arguments, the first of two is no mode, or the limit is no literal from 1 to 1024.
    """
    user = node.name == "ustack"
    mode, limit = inference.settings.stack_mode, 127
    arguments = list(node.arguments)
    if len(arguments) > 2:
        inference.error("Invalid number of arguments", node)
        return None
    if arguments and isinstance(arguments[0], tree.Name):
        if arguments[0].name not in STACK_MODES:
            inference.error(
                f"{node.name}: Invalid value for stack_mode: valid values are bpftrace, raw, perf, "
                "and build_id.",
                arguments[0],
                *did_you_mean(arguments[0].name, STACK_MODES),
            )
        else:
            mode = arguments[0].name
        arguments = arguments[1:]
    elif len(arguments) == 2:
        inference.error("Expected stack mode as first argument", node)
        return None
    if arguments:
        if not isinstance(arguments[0], tree.NumberLiteral) or arguments[0].value < 1:
            inference.error(f"{node.name}: invalid limit value", node)
            return None
        limit = arguments[0].value
    if limit > 1024:
        inference.error(
            f"{node.name}([int limit]): limit shouldn't exceed 1024, {limit} given", node
        )
        return None
    if mode == "build_id":
        inference.error(
            "'build_id' stack mode has no meaning here: frames are shown by their symbols", node
        )
    return types.StackType(user, mode, limit)


def _inet(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of ntop(), an Internet address as text.

    An argument that is neither an integer nor 4 or 16 bytes is an error in `inference`.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if not _counted(inference, node, 1, 2):
        return None
    kinds = [inference.type(argument) for argument in node.arguments]
    last = kinds[-1]
    if last is not None:
        size = layout.size_of(last) if isinstance(last, (types.ArrayType, types.StringType)) else 4
        if not isinstance(last, (IntegerType, types.ArrayType, types.StringType)):
            inference.error(
                f"ntop() expects an integer or array argument, got {name_of(last)}", node
            )
        elif size not in (4, 16):
            inference.error("ntop() argument must be 4 or 16 bytes in size", node)
    return types.TextType("inet")


def _pton(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of pton(): an array of the address's 4 or 16 bytes.

    Returns:
        None, after an error in `inference`: the call `node` does not have one argument, a literal
        address.
    """
    if not _counted(inference, node, 1, 1):
        return None
    first = node.arguments[0]
    if not isinstance(first, tree.StringLiteral):
        inference.error("pton() expects an string literal at the first argument", node)
        return None
    try:
        packed = ipaddress.ip_address(first.value.decode("utf-8", "replace")).packed
    except ValueError:
        inference.error(
            "pton() expects a valid IPv4/IPv6 address, got "
            f"{first.value.decode('utf-8', 'replace')}",
            node,
        )
        return None
    return types.ArrayType(_U8, len(packed))


def _mac(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of macaddr(), a MAC address as text.

    An argument of another type, or a literal string, is an error in `inference`.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if not _counted(inference, node, 1, 1):
        return None
    kind = inference.type(node.arguments[0])
    if kind is not None and not isinstance(
        kind, (types.ArrayType, types.PointerType, types.StringType)
    ):
        inference.error(
            f"macaddr() only supports array or pointer arguments ({name_of(kind)} provided)", node
        )
    if isinstance(node.arguments[0], tree.StringLiteral):
        inference.error("macaddr() does not support literal string arguments", node)
    return types.TextType("mac_address")


def _strftime(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of strftime(), a time as text.

    A format that is no literal, or a time that is no integer, is an error in `inference`.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if not _counted(inference, node, 2, 2):
        return None
    if not isinstance(node.arguments[0], tree.StringLiteral):
        inference.error("strftime() expects a string literal", node.arguments[0])
    inference.number(node.arguments[1], "strftime() only supports int arguments ({} provided)")
    return types.TextType("timestamp")


def _order(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of memcmp(), a signed integer; note errors in `inference`.

    Args:
        inference: the walk.
        node: the call: two strings or arrays, and how many bytes of both are compared.

    Returns:
        None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 3, 3):
        return None
    *values, most = node.arguments
    if not isinstance(most, tree.NumberLiteral) or most.value < 0:
        inference.error("memcmp() expects a number of bytes that is a literal", most)
        return _INT32
    for value in values:
        kind = inference.type(value)
        if kind is None:
            continue
        if not isinstance(kind, (types.StringType, types.ArrayType)):
            inference.error(
                f"memcmp() only supports strings and arrays ({base_name(kind)} provided)", value
            )
        elif most.value > layout.size_of(kind, inference.world.bits // 8):
            inference.error(
                f"memcmp() of {most.value} bytes, and this has "
                f"{layout.size_of(kind, inference.world.bits // 8)}",
                value,
            )
    return _INT32


def _texts(
    least: int, most: int, result: ValueType
) -> Callable[[Inference, tree.FunctionCall], ValueType | None]:
    """Return the check of a function whose arguments are strings, the third one a literal number.

    Args:
        least: the fewest arguments.
        most: the most arguments.
        result: the type that the function gives.

    Returns:
        A function (inference, node) that checks a call, and returns `result`; None where the number
        of arguments is wrong.
    """

    def check(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
        """Check the arguments of the call `node`, note errors in `inference`, and return `result`;
        None: their number is wrong.
        """
        if not _counted(inference, node, least, most):
            return None
        for number, argument in enumerate(node.arguments):
            kind = inference.type(argument)
            if number == 2:
                if not isinstance(argument, tree.NumberLiteral) or argument.value < 0:
                    inference.error(
                        f"Builtin {node.name} requires a non-negative literal"
                        if isinstance(argument, tree.NumberLiteral)
                        else f"{node.name}() expects a int literal",
                        argument,
                    )
            elif kind is not None and not isinstance(kind, types.StringType):
                inference.error(
                    f"{node.name}() only supports string arguments ({base_name(kind)} provided)",
                    argument,
                )
        return result

    return check


def _length(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of len(), an integer; its argument must be a map with keys, or a stack.

    Another argument is an error in `inference`.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if not _counted(inference, node, 1, 1):
        return None
    first = node.arguments[0]
    if isinstance(first, tree.MapName):
        facts = inference.map(first.name, first.span)
        if facts.keyed is False:
            inference.error("call to len() expects a map with explicit keys (non-scalar map)", node)
        return _I64
    kind = inference.type(first)
    if kind is not None and not isinstance(kind, types.StackType):
        inference.error("call to len() expects a map, ustack, or kstack", node)
    return _I64


def _key(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of delete(), has_key() and find(), a boolean.

    The types of the map's keys, and of find()'s variable, are widened. Errors in the call `node`
    are noted in `inference`.

    Returns:
        None: the number of arguments is wrong, or the first is no map.
    """
    arguments = node.arguments
    if node.name == "delete" and len(arguments) == 1:
        first = arguments[0]
        if isinstance(first, tree.MapAccess | tree.MapName):
            facts = inference.map(
                first.name if isinstance(first, tree.MapName) else first.map.name, first.span
            )
            if isinstance(first, tree.MapName) and facts.keyed:
                inference.error(
                    "call to delete() with a single argument expects a map without explicit keys "
                    "(scalar map)",
                    node,
                )
                return _BOOLEAN
            inference.key(first)
            return _BOOLEAN
        inference.error("delete() expects a map argument", first)
        return None
    if not _counted(inference, node, *((2, 2) if node.name != "find" else (3, 3))):
        return None
    first = arguments[0]
    if not isinstance(first, tree.MapName):
        inference.error(f"{node.name}() expects a map argument", first)
        return None
    facts = inference.map(first.name, first.span)
    if facts.keyed is False:
        what = {"delete": "delete() with two arguments", "has_key": "has_key()", "find": "find"}[
            node.name
        ]
        inference.error(f"call to {what} expects a map with explicit keys (non-scalar map)", node)
        return _BOOLEAN
    if facts.keyed is None:
        facts.keyed = inference.changed = True
    inference.widen_key(facts, arguments[1], node)
    if node.name == "find":
        target = arguments[2]
        if not isinstance(target, tree.ScratchVariable):
            inference.error("find() expects a scratch variable as its third argument", target)
        elif facts.value is not None:
            value = (
                inference.readable(facts.value, node)
                if isinstance(facts.value, types.AggregateType)
                else facts.value
            )
            inference.fill(target)
            inference.type(target)
            slot = inference.typing.slots.get(target)
            if slot is not None and value is not None:
                inference.assign(slot, value, node)
    return _BOOLEAN


def _swap(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of bswap(): an unsigned integer as wide as its argument.

    Returns:
        None: the argument's type is not known yet, or an error was noted in `inference`: the call
        `node` does not have one argument, an integer.
    """
    if not _counted(inference, node, 1, 1):
        return None
    number = inference.number(
        node.arguments[0], "bswap() only supports integer arguments ({} provided)"
    )
    return IntegerType(number.bits, False) if number is not None else None


def _same(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of kptr() and uptr(), which is that of the argument.

    Returns:
        None: the argument's type is not known yet, or an error was noted in `inference`.
    """
    return inference.type(node.arguments[0]) if _counted(inference, node, 1, 1) else None


def _numbers(
    least: int, most: int, result: ValueType
) -> Callable[[Inference, tree.FunctionCall], ValueType | None]:
    """Return the check of a function whose arguments are numbers, pointers or strings.

    Args:
        least: the fewest arguments.
        most: the most arguments.
        result: the type that the function gives.

    Returns:
        A function (inference, node) that checks a call, and returns `result`; None where the number
        of arguments is wrong.
    """

    def check(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
        """Check the arguments of the call `node`, note errors in `inference`, and return `result`;
        None: their number is wrong.
        """
        if not _counted(inference, node, least, most):
            return None
        for argument in node.arguments:
            kind = inference.type(argument)
            if (
                kind is not None
                and not isinstance(kind, (types.PointerType, types.StringType))
                and inference.as_integer(kind, argument) is None
            ):
                inference.error(
                    f"{node.name}() only supports integer arguments ({name_of(kind)} provided)",
                    argument,
                )
        return result

    return check


def _predicate(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of a builtin that asks about a type (PREDICATES), a boolean.

    It takes one argument, of any type, which may not be known yet. Errors in the call `node` are
    noted in `inference`.

    Returns:
        None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 1, 1):
        return None
    inference.type(node.arguments[0])
    return _BOOLEAN


def _assert(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of assert() or static_assert().

    Errors are noted in `inference`; a static_assert() that is known not to hold is one, in the last
    walk.

    Returns:
        VoidType(); None: the number of arguments is wrong.
    """
    if not _counted(inference, node, 2, 2):
        return None
    inference.condition(node.arguments[0])
    inference.type(node.arguments[1])
    if (
        node.name == "static_assert"
        and inference.final
        and inference.known(node.arguments[0]) is False
    ):
        message = constant(inference, node.arguments[1])
        inference.error(str(message), node)
    return _NOTHING


def _fail(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Note an error with the message of the call `node` of fail() in `inference`, in the last walk
    only.

    Returns VoidType().
    """
    if inference.final:
        text = node.arguments[0] if node.arguments else None
        if not isinstance(text, tree.StringLiteral):
            inference.error("first argument to fail() must be a string literal", node)
            return _NOTHING
        values = [constant(inference, argument) for argument in node.arguments[1:]]
        message = text.value.decode("utf-8", "replace")
        for value in values:
            message = re.sub(r"%[a-z]+", str(value).replace("\\", r"\\"), message, count=1)
        inference.error(message, node)
    return _NOTHING


def _function(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of the builtin func: an address that is shown by its symbol.

    Returns:
        None, after an error in `inference`: the call `node` has an argument.
    """
    if not _counted(inference, node, 0, 0):
        return None
    return types.SymbolType(all(point.user for point in inference.probe.points))


def _result(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of retval: that of the function's result, or a 64-bit integer if it is not
    known.

    Returns:
        None, after an error in `inference`: the block has a probe that is not at a return, or the
        call `node` an argument.
    """
    if not _counted(inference, node, 0, 0):
        return None
    if not all(point.returns for point in inference.probe.points):
        kinds = "/".join(sorted({point.kind for point in inference.probe.points}))
        inference.error(
            "The retval builtin can only be used with kretprobe, uretprobe and fexit probes, and "
            f"this is {kinds}",
            node,
        )
        return None
    return inference.probe.result or _U64


def _probe(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of the builtin probe: a string with room for the longest attach point of the
    block.

    Args:
        inference: the walk, which knows the block.
        node: not used.
    """
    longest = max((len(point.text.encode()) for point in inference.probe.points), default=0)
    return types.StringType(longest + 1)


def _pid(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of pid() and tid(), an integer of 32 bits, in any case.

    An argument other than `curr_ns` and `init` is an error in `inference`.
    """
    if _counted(inference, node, 0, 1) and node.arguments:
        which = node.arguments[0]
        if not isinstance(which, tree.Name) or which.name not in ("curr_ns", "init"):
            inference.error(
                f"Invalid PID namespace mode: {getattr(which, 'name', '?')} (expects: curr_ns or "
                "init)",
                node,
            )
    return _U32


def _comm(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of comm(), a string of 16 bytes.

    Returns:
        None, after an error in `inference`: the call `node` has an argument.
    """
    if node.arguments:
        inference.error(
            "comm(PID) asks Linux's kernel for another task's name, and there is none here", node
        )
        return None
    return types.StringType(16)


def _nsecs(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of nsecs(), a 64-bit integer, in any case.

    An argument that names no clock is an error in `inference`.
    """
    if _counted(inference, node, 0, 1) and node.arguments:
        which = node.arguments[0]
        if not isinstance(which, tree.Name) or which.name not in CLOCKS:
            inference.error(
                f"Invalid timestamp mode: {getattr(which, 'name', '?')}",
                node,
                *did_you_mean(getattr(which, "name", ""), CLOCKS),
            )
    return _U64


def _unsafe_number(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Check the call `node` of override(), which takes a number. Returns VoidType().

    Errors are noted in `inference`; a block with other probes than kprobes and uprobes is one.
    """
    if _counted(inference, node, 1, 1):
        inference.number(
            node.arguments[0], f"{node.name}() only supports int arguments ({{}} provided)"
        )
    if node.name == "override" and any(
        point.kind not in ("kprobe", "uprobe") for point in inference.probe.points
    ):
        inference.error("override() can only be used inside kprobes", node)
    return _NOTHING


def _refused(reason: str) -> Callable[[Inference, tree.FunctionCall], ValueType | None]:
    """Return the check of a function that is not supported with the arguments that it has.

    Args:
        reason: why it is not supported, for the error.

    Returns:
        A function (inference, node) that notes an error, and returns None.
    """

    def refuse(inference: Inference, node: tree.FunctionCall) -> None:
        inference.error(f"{node.name}() is not supported here: {reason}", node)

    return refuse


def _concatenation(inference: Inference, node: tree.FunctionCall) -> ValueType | None:
    """Return the type of str_concat(): a string as long as both together, at most 1024 bytes.

    An argument that is no string is an error in `inference`, and counts as empty.

    Returns:
        None: the number of arguments of the call `node` is wrong.
    """
    if _texts(2, 2, _NOTHING)(inference, node) is None:
        return None
    sizes = [inference.typing.of.get(argument) for argument in node.arguments]
    size = sum(kind.size for kind in sizes if isinstance(kind, types.StringType))
    return types.StringType(min(1024, max(1, size - 1)))


_CALLS: Final[dict[str, Callable[[Inference, tree.FunctionCall], ValueType | None]]] = {
    **dict.fromkeys(("printf", "errorf", "warnf", "cat", "system"), _format),
    "print": _print,
    "clear": _of_map,
    "zero": _of_map,
    "exit": _exit,
    "time": _time,
    "join": _join,
    "str": _string,
    "buf": _buffer,
    "reg": _register,
    "kaddr": _address,
    "uaddr": _address,
    "ksym": _symbol,
    "usym": _symbol,
    "kstack": _stack,
    "ustack": _stack,
    "ntop": _inet,
    "pton": _pton,
    "macaddr": _mac,
    "strftime": _strftime,
    "strncmp": _texts(3, 3, _U64),
    "memcmp": _order,
    "strcontains": _texts(2, 2, _BOOLEAN),
    "strlen": _texts(1, 1, _U64),
    "strstr": _texts(2, 2, _I64),
    "strcap": _texts(1, 1, _U64),
    "str_concat": _concatenation,
    "len": _length,
    "has_key": _key,
    "delete": _key,
    "find": _key,
    "bswap": _swap,
    "kptr": _same,
    "uptr": _same,
    **dict.fromkeys(PREDICATES, _predicate),
    "is_err": _numbers(1, 1, _BOOLEAN),
    "assert": _assert,
    "static_assert": _assert,
    "assert_str": _nothing,
    "fail": _fail,
    "func": _function,
    "retval": _result,
    "probe": _probe,
    "pid": _pid,
    "tid": _pid,
    "comm": _comm,
    "nsecs": _nsecs,
    "override": _unsafe_number,
    "container_of": _refused("it takes a pointer, typeof(TYPE) and the name of a member"),
    "config": _refused("it takes no argument"),
    "getopt": _nothing,
}
