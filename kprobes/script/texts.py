"""Code that walks through strings, byte by byte; `g` writes the program.

Positions in strings are kept in memory, where the verifier knows nothing of them, so that each
round of a loop looks the same to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .blocks import BlockWriter
from .storage import Area


def _byte(g: BlockWriter, register: int, text: Area, size: int, index: int, behind: str) -> None:
    """Write code that loads a byte of a string into a register.

    Args:
        g: writes the program.
        register: number of the register that gets the byte.
        text: the string's area.
        size: bytes of the area.
        index: number of the register that has the byte's offset in the string.
        behind: label to jump to where the offset is `size` or more.
    """
    g.asm.jump_if_number(">=", index, size, behind)
    g.point(register, text)
    g.asm.compute("+", register, index)
    g.asm.load(register, register, 0, 1)


def cut(g: BlockWriter, text: Area, size: int, room: int) -> None:
    """Write code that cuts a string to `size` - 1 bytes: zeros follow up to the end of its area.

    Args:
        g: writes the program.
        text: the string's area.
        size: bytes that stay, the NUL included.
        room: bytes of the area.
    """
    first = max(size - 1, 0)
    at = first + 7 & ~7
    g.point(1, text)
    for byte in range(first, min(at, room)):
        g.asm.store_number(1, byte, 0, 1)
    if room > at:
        g.clear(text.at(at), room - at)


def clear_from(g: BlockWriter, area: Area, size: int) -> None:
    """Write code that stores zeros in an area from the byte on whose offset is in r0.

    Args:
        g: writes the program.
        area: the area; nothing is stored behind its end.
        size: bytes of the area.
    """
    asm = g.asm
    state = g.storage.variable(8)
    g.point(1, state)
    asm.store(1, 0, 0, 8)
    top = asm.label()
    out = asm.label()
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 0, 8)
    asm.jump_if_number(">=", 2, size, out)
    g.point(5, area)
    asm.compute("+", 5, 2)
    asm.store_number(5, 0, 0, 1)
    asm.compute_with("+", 2, 1)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(out)


def length(g: BlockWriter, text: Area, size: int) -> None:
    """Write code that loads into r0 the number of bytes before a string's NUL: `size` where there
    is none.

    Args:
        g: writes the program.
        text: the string's area.
        size: bytes of the area.
    """
    asm = g.asm
    state = g.storage.variable(8)
    g.clear(state, 8)
    top = asm.label()
    out = asm.label()
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 0, 8)
    _byte(g, 3, text, size, 2, out)
    asm.jump_if_number("==", 3, 0, out)
    asm.compute_with("+", 2, 1)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(out)
    g.point(1, state)
    asm.load(0, 1, 0, 8)


def differs(
    g: BlockWriter, left: Area, left_size: int, right: Area, right_size: int, most: int
) -> None:
    """Write code that loads into r0 whether two strings differ in their first bytes: 0 or 1.

    What is behind a NUL does not count; behind an area is a NUL.

    Args:
        g: writes the program.
        left: area of the one string.
        left_size: bytes of that.
        right: area of the other.
        right_size: bytes of that.
        most: bytes that are compared at most.
    """
    asm = g.asm
    state = g.storage.variable(16)
    g.clear(state, 16)
    top, out, unequal, none, short = (asm.label() for _ in range(5))
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 0, 8)
    asm.jump_if_number(">=", 2, min(most, 1 << 30), out)
    asm.set(3, 0)
    _byte(g, 3, left, left_size, 2, none)
    asm.place(none)
    asm.set(4, 0)
    asm.jump_if_number(">=", 2, right_size, short)
    g.point(5, right)
    asm.compute("+", 5, 2)
    asm.load(4, 5, 0, 1)
    asm.place(short)
    asm.jump_if("!=", 3, 4, unequal)
    asm.jump_if_number("==", 3, 0, out)
    asm.compute_with("+", 2, 1)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(unequal)
    g.point(1, state)
    asm.store_number(1, 8, 1, 8)
    asm.place(out)
    g.point(1, state)
    asm.load(0, 1, 8, 8)


def order(g: BlockWriter, left: Area, right: Area, size: int) -> None:
    """Write code that loads into r0 the difference of the first bytes that differ; 0: none does.

    Args:
        g: writes the program.
        left: area of the one value.
        right: area of the other.
        size: bytes that are compared, a NUL or not.
    """
    asm = g.asm
    state = g.storage.variable(16)
    g.clear(state, 16)
    top, out, unequal = (asm.label() for _ in range(3))
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 0, 8)
    _byte(g, 3, left, size, 2, out)
    _byte(g, 4, right, size, 2, out)
    asm.jump_if("!=", 3, 4, unequal)
    asm.compute_with("+", 2, 1)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(unequal)
    asm.compute("-", 3, 4)
    g.point(1, state)
    asm.store(1, 8, 3, 8)
    asm.place(out)
    g.point(1, state)
    asm.load(0, 1, 8, 8)


def position(g: BlockWriter, text: Area, size: int, part: Area, part_size: int) -> None:
    """Write code that loads into r0 the offset of a string's first occurrence in another.

    It is -1 where there is none, and 0 for an empty string.

    Args:
        g: writes the program.
        text: area of the string that is searched.
        size: bytes of that.
        part: area of the string that is looked for.
        part_size: bytes of that.
    """
    asm = g.asm
    state = g.storage.variable(24)  # place in the text, place in the part, result
    g.clear(state, 16)
    asm.store_number(1, 16, -1, 8)
    top, out, found, onward = (asm.label() for _ in range(4))
    g.top(top, out)
    g.point(1, state)
    asm.load(2, 1, 8, 8)
    _byte(g, 3, part, part_size, 2, found)
    asm.jump_if_number("==", 3, 0, found)
    asm.load(4, 1, 0, 8)
    asm.compute("+", 4, 2)
    _byte(g, 5, text, size, 4, out)
    asm.jump_if_number("==", 5, 0, out)
    asm.jump_if("!=", 3, 5, onward)
    asm.compute_with("+", 2, 1)
    asm.store(1, 8, 2, 8)
    asm.jump(top)
    asm.place(onward)
    asm.store_number(1, 8, 0, 8)
    asm.load(2, 1, 0, 8)
    asm.compute_with("+", 2, 1)
    asm.store(1, 0, 2, 8)
    asm.jump(top)
    asm.place(found)
    asm.load(2, 1, 0, 8)
    asm.store(1, 16, 2, 8)
    asm.place(out)
    g.point(1, state)
    asm.load(0, 1, 16, 8)


def join(g: BlockWriter, to: Area, size: int, parts: Sequence[tuple[Area, int]]) -> None:
    """Write code that stores strings one behind the other in an area of zeros; what is too long is
    cut.

    Args:
        g: writes the program.
        to: the area that gets them.
        size: bytes of the result, its NUL included.
        parts: (area, bytes of it) of each string.
    """
    asm = g.asm
    state = g.storage.variable(16)  # place in the result, place in the part
    g.clear(state, 16)
    for part, part_size in parts:
        g.point(1, state)
        asm.store_number(1, 8, 0, 8)
        top = asm.label()
        out = asm.label()
        g.top(top, out)
        g.point(1, state)
        asm.load(2, 1, 8, 8)
        _byte(g, 3, part, part_size, 2, out)
        asm.jump_if_number("==", 3, 0, out)
        asm.load(4, 1, 0, 8)
        asm.jump_if_number(">=", 4, size - 1, out)
        g.point(5, to)
        asm.compute("+", 5, 4)
        asm.store(5, 0, 3, 1)
        asm.compute_with("+", 2, 1)
        asm.store(1, 8, 2, 8)
        asm.compute_with("+", 4, 1)
        asm.store(1, 0, 4, 8)
        asm.jump(top)
        asm.place(out)
