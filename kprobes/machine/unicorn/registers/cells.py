"""The CPU's registers where the engine keeps them.

A register read through Unicorn's API costs a call into C; a word of memory costs a tenth of it.
General registers lie as plain words in the engine's CPU structure, so this room finds them: it
writes random values through the API and looks for them behind the pointers in the engine's handle.
Nothing is assumed about the layout. A register is used only after it was seen to follow the API in
both directions on this very engine; whatever does not (lazily computed flags, register windows,
another operating system) stays with the API.
"""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from attrs import frozen

from ..engine import PAGE, Engine

HANDLE_SIZE = 0x1000  # bytes of the handle searched for pointers
STATE_SIZE = 1 << 17  # bytes searched behind each
BESIDE = 0x1000  # bytes before and behind the first register, searched for the others at first
NEAR = 0x800  # bytes behind pc searched for the mode
#: (engine version, layout) -> offset in the handle of the pointer to the CPU structure, and of each
#: register in it
_layouts: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
#: (engine version, its architecture, its mode) -> offset in the handle of the pointer to the CPU
#: structure
_pointers: dict[tuple[str, int, int], int] = {}


class RegisterWord(Protocol):
    """A place in this process where a register's value is: reader() returns a function that reads
    it, writer() one that writes it.
    """

    def reader(self) -> Callable[[], int]: ...
    def writer(self) -> Callable[[int], None]: ...


@frozen(kw_only=True)
class Cell:
    """A register's word in the engine: view[index] is its value.

    Attributes:
        view: words of the engine's CPU structure.
        index: which of them.
        mask: the largest value.
    """

    view: memoryview
    index: int
    mask: int

    @property
    def address(self) -> int:
        """Address of the register in this process."""
        return (
            ctypes.addressof(ctypes.c_char.from_buffer(self.view)) + self.index * self.view.itemsize
        )

    def onward(self, words: int) -> memoryview:
        """Return a view of `words` words: this one and those behind it."""
        size = self.view.itemsize
        return (
            memoryview((ctypes.c_char * (words * size)).from_address(self.address))
            .cast("B")
            .cast("Q" if size == 8 else "I")
        )

    def reader(self) -> Callable[[], int]:
        """Return a function that reads the register."""
        return partial(self.view.__getitem__, self.index)

    def writer(self) -> Callable[[int], None]:
        """Return a function that writes the register; the value is cut to its width."""
        view, index, mask = self.view, self.index, self.mask

        def write(value: int) -> None:
            """Write a value, cut to the register's width."""
            try:
                view[index] = value
            except ValueError:
                view[index] = value & mask

        return write


def find_cells(
    engine: Engine, layout: str, registers: dict[str, int], bits: int
) -> dict[str, Cell]:
    """Return the words of registers in the engine, by name; {} where none can be found.

    Registers whose word is not found, or does not follow the engine's API, are left out. In later
    engines of the same layout only the first and the last are tried: where one is wrong, the result
    is {}.

    Args:
        engine: the engine; its registers are written and put back.
        layout: name of the engine's build of this guest. Engines of the same name keep their
            registers in the same places; the search is made once for each.
        registers: name -> engine's number.
        bits: width of each register.
    """
    if not registers:
        return {}
    key = engine.version, layout
    fresh = key not in _layouts
    if fresh:
        _layouts[key] = _search(engine, registers, bits)
    pointer_at, offsets = _layouts[key]
    if not offsets:
        return {}
    engine.reader(next(iter(registers.values())), bits)()  # see _search
    start = int.from_bytes(peek((engine.handle.value or 0) + pointer_at, 8), "little")
    end = max(offsets.values()) + bits // 8
    if len(peek(start, end)) < end:
        return {}
    view = (
        memoryview((ctypes.c_char * (end + 7 & ~7)).from_address(start))
        .cast("B")
        .cast("Q" if bits == 64 else "I")
    )
    cells = {
        name: Cell(view=view, index=offset * 8 // bits, mask=(1 << bits) - 1)
        for name, offset in offsets.items()
    }
    # later: the first and the last
    checked = cells if fresh else dict([*cells.items()][:: max(len(cells) - 1, 1)])
    wrong = {
        name for name, cell in checked.items() if not agrees(engine, registers[name], bits, cell)
    }
    if wrong and not fresh:
        return {}
    _layouts[key] = (
        pointer_at,
        {name: offset for name, offset in offsets.items() if name not in wrong},
    )
    return {name: cell for name, cell in cells.items() if name not in wrong}


def _search(engine: Engine, registers: dict[str, int], bits: int) -> tuple[int, dict[str, int]]:
    """Find the pointer to the CPU structure in the engine's handle, and registers in the structure.

    Other blocks may lie before the structure, at a distance that differs between engines: so it is
    the pointer from which the first register is nearest.

    Args:
        engine: the engine.
        registers: name -> the engine's number; the first one decides on the pointer.
        bits: width of each of them.

    Returns:
        (bytes from the handle to the pointer, name -> bytes from the structure to the register, for
        those that were found); (0, {}): the structure was not found.
    """
    first = next(iter(registers.values()))
    engine.reader(first, bits)()  # the engine makes its CPU when it is first asked
    words = peek(engine.handle.value or 0, HANDLE_SIZE)
    pointers = {
        int.from_bytes(words[at : at + 8], "little"): at for at in range(0, len(words) - 7, 8)
    }
    build = engine.version, engine.uc.ctl_get_arch(), engine.uc.ctl_get_mode()
    known = {pointer for pointer, at in pointers.items() if at == _pointers.get(build)}
    seen = [
        (place, pointer)
        for pointer in known or pointers
        if 0x10000 <= pointer < 1 << 47 and pointer % 8 == 0
        for place in [offset(engine, first, bits, pointer)]
        if place is not None
    ]
    if not seen:
        return 0, {}
    near, start = min(seen)
    _pointers[build] = pointers[start]
    found = {
        name: _offset_near(engine, number, bits, start, near) for name, number in registers.items()
    }
    return pointers[start], {name: place for name, place in found.items() if place is not None}


def _offset_near(engine: Engine, number: int, bits: int, start: int, near: int) -> int | None:
    """Search the CPU structure for a register, near another one first, and return its offset; None:
    it is not found.

    Most registers are near each other, and a short piece is searched in no time.

    Args:
        engine: the engine.
        number: the engine's number of the register.
        bits: its width.
        start: address of the structure.
        near: offset of another register, in bytes.
    """
    begin = max(near - BESIDE, 0) & ~7
    place = offset(engine, number, bits, start + begin, near + BESIDE - begin)
    if place is not None:
        return begin + place
    return offset(engine, number, bits, start)


def offset(
    engine: Engine, number: int, bits: int, start: int, size: int = STATE_SIZE
) -> int | None:
    """Search a piece of this process's memory for a register, and return its offset; None: it is
    not found there.

    It is where each of three random values is seen that are written by the API, and where the API
    sees what is written. The first alone is not enough: the values pass through our own buffers,
    too, which may lie there. The register has its value again afterwards.

    Args:
        engine: the engine.
        number: the engine's number of the register.
        bits: its width.
        start: address of the piece.
        size: its bytes.
    """
    read, write = engine.reader(number, bits), engine.writer(number, bits)
    old = read()
    places: set[int] | None = None
    try:
        for _ in range(3):
            value = _value(bits)
            write(value)
            if read() != value:
                return None
            here = _places(peek(start, size), value.to_bytes(bits // 8, "little"))
            places = here if places is None else places & here
            if not places:
                return None
    finally:
        write(old)
    return next(
        (
            place
            for place in sorted(places or ())
            if agrees(engine, number, bits, _cell(start, place, bits))
        ),
        None,
    )


def _value(bits: int) -> int:
    """Return a random number for a register of `bits` bits, which stands in memory by no chance,
    and which pc may have: in its lowest bits some guests see a mode.
    """
    return (random.getrandbits(bits - 2) | 1 << bits - 3) & ~3


def _cell(start: int, offset: int, bits: int) -> Cell:
    """Return a Cell at an address of this process.

    Args:
        start: address of a structure.
        offset: bytes from there to the word.
        bits: of the word, 32 or 64.
    """
    view = (
        memoryview((ctypes.c_char * (bits // 8)).from_address(start + offset))
        .cast("B")
        .cast("Q" if bits == 64 else "I")
    )
    return Cell(view=view, index=0, mask=(1 << bits) - 1)


def _places(block: bytes, pattern: bytes) -> set[int]:
    """Return the offsets at which a pattern stands, of those that are multiples of its size.

    Args:
        block: the bytes that are searched.
        pattern: what is looked for.
    """
    found, at = set(), block.find(pattern)
    while at >= 0:
        if at % len(pattern) == 0:
            found.add(at)
        at = block.find(pattern, at + 1)
    return found


def agrees(engine: Engine, number: int, bits: int, cell: RegisterWord) -> bool:
    """Return True where the engine's API sees what is written into a word, and the other way round.

    The register is written meanwhile; it is as before afterwards.

    Args:
        engine: the engine.
        number: the engine's number of the register.
        bits: its width.
        cell: the word that may be the register.
    """
    read, write = engine.reader(number, bits), engine.writer(number, bits)
    old = read()
    one, other = _value(bits), _value(bits)
    write(one)
    seen = cell.reader()() == one
    if seen:
        cell.writer()(other)
        seen = read() == other
    write(old)
    return seen and cell.reader()() == old


def find_mode(
    engine: Engine, layout: str, pc: Cell, number: int, flags: int, bit: int
) -> memoryview | None:
    """Find the word beside pc that holds the mode of the code (Thumb), and return a view of it;
    None where there is none.

    The lowest bit of a pc that is written through the API selects that mode. pc and the mode are
    put back.

    Args:
        engine: the engine.
        layout: name of the engine's build of this guest; what is found is kept for it.
        pc: the word of pc.
        number: the engine's number of pc.
        flags: the engine's number of the flags' register.
        bit: which of its bits shows the mode.
    """
    write, shows = engine.writer(number, 32), engine.reader(flags, 32)
    old, mode = engine.reader(number, 32)(), shows() >> bit & 1
    key = engine.version, f"mode of {layout}"
    try:
        for distance in (_layouts[key][0],) if key in _layouts else range(4, NEAR, 4):
            word = _cell(pc.address, distance, 32).view
            if all(_selects(write, shows, bit, word, value) for value in (1, 0, 1, 1, 0)):
                _layouts[key] = distance, {}
                return word
    finally:
        write(old & ~1 | mode)
    return None


def _selects(
    write: Callable[[int], None], shows: Callable[[], int], bit: int, word: memoryview, value: int
) -> bool:
    """Write pc, and return True where a word then is the mode that was written, and the flags
    follow what is written into the word.

    Args:
        write: (value) writes pc through the API.
        shows: () -> the flags.
        bit: which of their bits shows the mode.
        word: a view of the word.
        value: the mode that is written, 0 or 1.
    """
    write(_value(32) | value)
    if word[0] != value:
        return False
    word[0] = 1 - value
    seen = shows() >> bit & 1
    word[0] = value
    return seen == 1 - value


def peek(address: int, size: int) -> bytes:
    """Return memory of this process, less than asked for where it is not mapped.

    Args:
        address: of the first byte; any number.
        size: bytes.
    """
    if os.name == "nt":
        return _peek_on_windows(address, size)
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
    except (OverflowError, ValueError):
        return b""
    # it is not there; or there is no such file, or this process may not look at itself
    except OSError:
        return _peek_by_pipe(address, size)


def _peek_on_windows(address: int, size: int) -> bytes:
    """Return memory of this process, less than asked for where it is not mapped, as Windows' call
    for debuggers reads it: it fails at a bad address, and no exception comes.

    Args:
        address: of the first byte; any number.
        size: bytes.
    """
    read: Any = getattr(ctypes, "WinDLL")("kernel32").ReadProcessMemory  # noqa: B009  (not in Linux's ctypes)
    end = address + size
    pieces = []
    while 0 <= address < min(end, 1 << 47):
        length = min(end, (address | PAGE - 1) + 1) - address
        piece = ctypes.create_string_buffer(length)
        count = ctypes.c_size_t()
        this_process = ctypes.c_void_p(-1)
        place = ctypes.c_void_p(address)
        if not read(this_process, place, piece, ctypes.c_size_t(length), ctypes.byref(count)):
            break
        pieces.append(piece.raw)
        address += length
    return b"".join(pieces)


def _peek_by_pipe(address: int, size: int) -> bytes:
    """Return memory of this process, less than asked for where it is not mapped, by way of a pipe.

    A system call that is given a bad address fails, and no signal comes. This is used where there
    is no file of the memory.

    Args:
        address: of the first byte.
        size: bytes.
    """
    if os.name != "posix":
        return b""
    write, end, pieces = ctypes.CDLL(None).write, address + size, []
    out, into = os.pipe()
    try:
        while address < end:
            length = min(end, (address | PAGE - 1) + 1) - address
            if write(into, ctypes.c_void_p(address), ctypes.c_size_t(length)) != length:
                break
            pieces.append(os.read(out, length))
            address += length
    finally:
        os.close(out)
        os.close(into)
    return b"".join(pieces)


class ApiCell:
    """A register that only the engine's API may read and write, in the shape of a Cell: view[index]
    reads and writes it.
    """

    def __init__(self, read: Callable[[], int], write: Callable[[int], None]) -> None:
        """Wrap two functions.

        Args:
            read: () -> the register's value.
            write: (value) writes it.
        """
        self.view = self
        self.index = 0
        self._read = read
        self._write = write

    def __getitem__(self, index: int) -> int:
        """Return the register's value, whatever the index."""
        return self._read()

    def __setitem__(self, index: int, value: int) -> None:
        """Write the register, if `index` is its own; else do nothing."""
        if index == self.index:
            self._write(value)
