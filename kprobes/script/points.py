"""Attach points, parsed: what stands before a probe's block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from .scanner import integer
from .source import Diagnostics, Span, did_you_mean
from .tree import AttachPoint

#: kinds of probes by all their names
_KINDS: Final = {
    "begin": "begin",
    "end": "end",
    "self": "self",
    "test": "test",
    "bench": "bench",
    "kprobe": "kprobe",
    "k": "kprobe",
    "kretprobe": "kretprobe",
    "kr": "kretprobe",
    "uprobe": "uprobe",
    "u": "uprobe",
    "uretprobe": "uretprobe",
    "ur": "uretprobe",
    "fentry": "fentry",
    "f": "fentry",
    "kfunc": "fentry",
    "fexit": "fexit",
    "fr": "fexit",
    "kretfunc": "fexit",
    "usdt": "usdt",
    "U": "usdt",
    "watchpoint": "watchpoint",
    "w": "watchpoint",
    "asyncwatchpoint": "asyncwatchpoint",
    "aw": "asyncwatchpoint",
    "interval": "interval",
    "i": "interval",
    "profile": "profile",
    "p": "profile",
    "tracepoint": "tracepoint",
    "t": "tracepoint",
    "rawtracepoint": "rawtracepoint",
    "rt": "rawtracepoint",
    "software": "software",
    "s": "software",
    "hardware": "hardware",
    "h": "hardware",
    "iter": "iter",
    "it": "iter",
}
#: kinds of probes that need no guest
OUTSIDE: Final = ("begin", "end", "self", "interval", "profile", "test", "bench")
_REFUSED: Final = {
    "tracepoint": "tracepoints are places in Linux's kernel that its own build declares",
    "rawtracepoint": "raw tracepoints are places in Linux's kernel that its own build declares",
    "software": "software events are counted by Linux's kernel",
    "hardware": "hardware events are counted by the performance counters of a processor",
    "iter": "iterators walk through objects of Linux's kernel",
}
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_OFFSET: Final = re.compile(r"(.*?)\+(0[xX][0-9a-fA-F]+|[0-9]+)", re.DOTALL)
_LINE: Final = re.compile(r"[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[0-9][0-9_]*([eE][0-9]+)?")
_DURATION: Final = re.compile(r"([0-9]{1,20})(ns|us|ms|s|m|h|d)")


@frozen(kw_only=True)
class Point:
    """An attach point.

    Attributes:
        kind: `kprobe`, `begin`, ...
        span: the part of the script that it is.
        text: as bpftrace shows it, its name written out.
        image: the file or module that is meant; "" for any.
        function: the function's name, which may be a glob; "" where an address is given.
        offset: bytes behind the function.
        address: in place of a function; None otherwise.
        line: (file, line number) in place of a function; None otherwise.
        provider: of a USDT marker.
        period: of a timer, nanoseconds between two runs.
        unit: of a timer: `ms`, `s`, `us`, `hz` ... as written.
        size: bytes of a watchpoint.
        access: of a watchpoint: letters of `rwx`.
        signal: of `self:signal`.
        operands: operands of a USDT marker, as the compiler wrote them.
        semaphore: address of 16 bits that count the tracers of a USDT marker; 0: there are none.
    """

    kind: str
    span: Span
    text: str
    image: str = ""
    function: str = ""
    offset: int = 0
    address: int | None = None
    line: tuple[str, int] | None = None
    provider: str = ""
    period: int = 0
    unit: str = ""
    size: int = 0
    access: str = ""
    signal: str = ""
    operands: tuple[str, ...] = ()
    semaphore: int = 0

    @property
    def returns(self) -> bool:
        """Whether the probe is one of a function's return."""
        return self.kind in ("kretprobe", "uretprobe", "fexit")

    @property
    def at_code(self) -> bool:
        """Whether the probe is one of an instruction or a return."""
        return self.kind in (
            "kprobe",
            "kretprobe",
            "uprobe",
            "uretprobe",
            "fentry",
            "fexit",
            "usdt",
        )

    @property
    def user(self) -> bool:
        """Whether the probe is one of a program or library, as opposed to a kernel."""
        return self.kind in ("uprobe", "uretprobe", "usdt")


def read(point: AttachPoint, found: Diagnostics) -> list[Point]:
    """Parse an attach point.

    Args:
        point: the attach point as written.
        found: where errors go.

    Returns:
        A list of one Point; an empty list where the attach point is wrong.
    """
    parts = split(point.text)
    kind = _KINDS.get(parts[0]) or _KINDS.get(parts[0].lower())
    if kind is None:
        found.error(
            f"Invalid probe type: {parts[0]}" if parts[0] else "Invalid probe type: empty",
            point.span,
            *did_you_mean(parts[0], [name for name in _KINDS if len(name) > 2]),
        )
        return []
    if kind in _REFUSED:
        found.error(
            f"{kind} probes have no meaning in this guest: {_REFUSED[kind]}",
            point.span,
            "probe the function that the event stands for, with kprobe or uprobe",
        )
        return []
    text = ":".join([kind, *parts[1:]])
    made = _READERS[kind](evolve(Point(kind=kind, span=point.span, text=text)), parts[1:], found)
    return [] if made is None else [made]


def split(text: str) -> list[str]:
    """Return the words of an attach point, which colons separate, without double quotes; within
    quotes a colon is a part of the word.
    """
    words = list[str]()
    word = ""
    quoted = False
    for char in text:
        if char == '"':
            quoted = not quoted
        elif char == ":" and not quoted:
            words.append(word)
            word = ""
        else:
            word += char
    return [*words, word]


def joined_name(kind: str, words: Sequence[str]) -> list[str]:
    """Return the words of a function's attach point with its name in one word.

    `a.out:cpp:NAME` is `a.out:NAME`, and the colons of a C++ or Rust name need no quotes.

    Args:
        kind: of the probe; one of the kernel's names no image, but perhaps a module.
        words: what stands behind the kind, between colons.
    """
    if kind in ("kprobe", "kretprobe", "fentry", "fexit") and "" in words[1:-1]:
        return [":".join(words)]
    image, *name = words
    if len(name) > 1 and name[0] == "cpp":
        del name[0]
    if "" in name[1:-1]:
        name = [":".join(name)]
    return [image, *name]


def _plain(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a probe without arguments.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons.
        found: where errors go.

    Returns:
        The point; None: it is wrong.
    """
    if words and any(words):
        found.error(f"{point.kind} probe type requires 0 arguments, found {len(words)}", point.span)
        return None
    return evolve(point, text=point.kind)


def _named(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a probe whose one word is a name, as `bench:NAME`.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons.
        found: where errors go.

    Returns:
        The point with the name; None: it is wrong.
    """
    if len(words) != 1 or not words[0]:
        found.error(f"{point.kind} probe type requires 1 argument, found {len(words)}", point.span)
        return None
    return evolve(point, function=words[0])


def _self(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse `self:signal:SIGUSR1`.

    Args:
        point: the attach point so far: its kind, span and text.
        words: the parts between colons, without the first, which is the kind.
        found: where errors go.

    Returns:
        The point with its signal; None: an error was noted.
    """
    if len(words) != 2 or words[0] != "signal":
        found.error("self probe type only supports signal", point.span, "self:signal:SIGUSR1")
        return None
    if words[1] != "SIGUSR1":
        found.error(f"{words[1]} is not a supported signal", point.span, "self:signal:SIGUSR1")
        return None
    return evolve(point, signal=words[1])


def _function(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a probe of a function, an address or a source line.

    Of three words, a second one that is no source file is ignored; `cpp` is always.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons.
        found: where errors go.

    Returns:
        The point with image, and function and offset, address, or (file, line); None: it is wrong.
    """
    words = joined_name(point.kind, words) if words else words
    if not 1 <= len(words) <= 3:
        found.error(
            f"{point.kind} probe type requires 1 or 2 arguments, found {len(words)}", point.span
        )
        return None
    target = words[-1]
    point = evolve(point, image=words[0] if len(words) > 1 else "")
    if not target:
        found.error(
            f"{point.kind} probe needs a function, an address or FILE@SOURCE:LINE", point.span
        )
        return None
    is_line = _LINE.fullmatch(target) is not None
    if len(words) == 3 and words[1] and is_line:  # IMAGE:source.c:22
        return evolve(point, line=(words[1].removeprefix("@"), int(target)))
    if "@" in point.image and is_line:  # IMAGE@source.c:22
        image, _, source = point.image.partition("@")
        return evolve(point, image=image, line=(source, int(target)))
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", target):
        address = _place_number(point, target, found)
        return None if address is None else evolve(point, address=address)
    match = _OFFSET.fullmatch(target)
    name = match[1] if match else target
    offset = _place_number(point, match[2], found) if match else 0
    if offset is None:
        return None
    if offset and point.returns:
        found.error(f"Offset not allowed on {point.kind}", point.span)
        return None
    if offset and "*" in name:
        found.error("Offset not allowed with wildcards", point.span)
        return None
    return evolve(point, function=name, offset=offset)


def _marker(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a probe of a USDT marker.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons.
        found: where errors go.

    Returns:
        The point with image, provider and name; None: it is wrong.
    """
    if not 1 <= len(words) <= 3:
        found.error(f"usdt probe type requires 2 or 3 arguments, found {len(words)}", point.span)
        return None
    image = words[0] if len(words) > 1 else ""
    provider = words[1] if len(words) == 3 else ""
    return evolve(point, image=image, provider=provider, function=words[-1])


def _number(text: str) -> int:
    """Return the value of a decimal number such as 1_000 or 1e3; 0: the text is no number."""
    value = integer(text)
    return value if isinstance(value, int) else 0


def _timer(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a timer: `10ms`, `ms:10`, `1000000` nanoseconds, or `hz:99`, times a second.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons: "10ms", a number, or unit and count.
        found: where errors go.

    Returns:
        The point with its period in nanoseconds, and its unit; None: it is wrong.
    """
    if len(words) == 1 and (match := _DURATION.fullmatch(words[0])):
        return evolve(
            point, period=int(match.group(1)) * _UNITS[match.group(2)], unit=match.group(2)
        )
    if len(words) == 1 and _NUMBER.fullmatch(words[0]):
        period = _number(words[0])
        if period < _UNITS["us"]:
            found.error(
                f"Invalid rate of {point.kind} probe. Minimum is 1000 or 1us. Found: {period} "
                "nanoseconds",
                point.span,
            )
            return None
        return evolve(point, period=period, unit="ns")
    if len(words) != 2:
        found.error(f"{point.kind} probe must be of format '{point.kind}:unit:count'", point.span)
        return None
    unit, count = words
    known = ("ms", "s", "us", "hz")
    if unit not in known:
        found.error(
            f"{unit} is not an accepted unit for {point.kind} probes",
            point.span,
            *did_you_mean(unit, known),
        )
        return None
    number = _number(count) if _NUMBER.fullmatch(count) else 0
    if not number:
        found.error(f"{point.kind} duration must be an integer above 0, not '{count}'", point.span)
        return None
    period = 10**9 // number if unit == "hz" else number * _UNITS[unit]
    return evolve(point, period=max(1, period), unit=unit)


def _watchpoint(point: Point, words: list[str], found: Diagnostics) -> Point | None:
    """Parse a watchpoint; a fourth word, in front of the three, is ignored.

    Args:
        point: kind, text and place in the script.
        words: what stands behind the kind, between colons: address or name, size, access.
        found: where errors go.

    Returns:
        The point with address or name, size in bytes, and access; None: it is wrong.
    """
    if not 3 <= len(words) <= 4:
        found.error(
            f"{point.kind} probe type requires 3 arguments (address, length, mode), found "
            f"{len(words)}",
            point.span,
        )
        return None
    where, size, access = words[-3:]
    if not size.isdecimal() or size not in ("1", "2", "4", "8"):
        found.error("watchpoint length must be one of (1, 2, 4, 8)", point.span)
        return None
    if not access or not set(access) <= set("rwx"):
        found.error("watchpoint mode must be combination of (r,w,x)", point.span)
        return None
    point = evolve(point, size=int(size), access=access)
    if not re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", where):
        return evolve(point, function=where)
    address = _place_number(point, where, found)
    return None if address is None else evolve(point, address=address)


def _place_number(point: Point, text: str, found: Diagnostics) -> int | None:
    """Return the address or offset in an attach point: in C's notation, so octal with a 0.

    Args:
        point: the attach point.
        text: the number's digits, perhaps behind 0x.
        found: where errors go.

    Returns:
        None: it is no number, or one of more than 64 bits, which is an error.
    """
    value = integer(text)
    if isinstance(value, str):
        found.error(f"{point.kind} probe: {value}", point.span)
        return None
    return value


_READERS: Final = {
    "begin": _plain,
    "end": _plain,
    "self": _self,
    "test": _named,
    "bench": _named,
    **dict.fromkeys(("kprobe", "kretprobe", "uprobe", "uretprobe", "fentry", "fexit"), _function),
    "usdt": _marker,
    "interval": _timer,
    "profile": _timer,
    "watchpoint": _watchpoint,
    "asyncwatchpoint": _watchpoint,
}
