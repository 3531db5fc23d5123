"""Stacks by call frame information (DWARF 5, 6.4): where a function's caller goes on, and the registers that it had.

`.eh_frame` and `.debug_frame` of every file that a machine has loaded are read; where code has neither, the frame
pointer is followed, on architectures that have such a convention.

SPARC's functions with a register window have their caller's registers in the window above, in the processor: the
machine says what is there, where it can look (Regs.callers_window). What is there no more is not known.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from ..arch._base import Arch
from ..errors import GuestFault
from ..image import LoadedFile
from ..regs import Regs
from ..symbols import Symbols
from .expression import Surroundings, Unknown, evaluate
from .file import DAMAGE, cached, dwarf
from .registers import has_windows, register, sp_at_call

NUMBERED = ("OFFSET", "VAL_OFFSET", "REGISTER")  #: rules whose argument is a number
#: opcodes of call frame instructions: steps by bytes of code, a jump, and the window
ADVANCE, SET, WINDOW_SAVE = (0x40, 2, 3, 4), 1, 0x2D
SHARED = tuple(f"o{n}" for n in range(8)), tuple(f"i{n}" for n in range(8))
OWN = (*(f"l{n}" for n in range(8)), *SHARED[1])
Seen = Callable[[int], int]  #: a return address as it is found -> the true one


@frozen
class Row:
    """How a caller's registers are found at an instruction. cfa: a register's number and an offset, or an expression.

    rules: DWARF number -> pyelftools' rule. link: DWARF number of the return address. structs: what expressions are
    parsed with. window: the function has a register window of its own.
    """

    cfa: Any
    rules: dict[int, Any]
    link: int
    structs: Any
    window: bool


class Frames:
    """The call frame information of one file."""

    def __init__(self, file: LoadedFile) -> None:
        self._bias = file.bias
        self._found = cached(file, "frames", partial(_entries, file))
        self._starts = [start for start, _, _ in self._found]

    def row(self, pc: int) -> Row | None:
        """The row of an instruction; None where there is none."""
        at = bisect.bisect_right(self._starts, pc - self._bias) - 1
        if at < 0 or pc - self._bias >= self._found[at][1]:
            return None
        entry = self._found[at][2]
        table = entry.get_decoded().table
        n = bisect.bisect_right([line["pc"] for line in table], pc - self._bias) - 1
        if n < 0:
            return None
        line = table[n]
        rules = {number: rule for number, rule in line.items() if isinstance(number, int)}
        sound = (line["cfa"].expr is not None or (isinstance(line["cfa"].reg, int)
                                                  and isinstance(line["cfa"].offset, int)))
        if not sound or any(rule.type in NUMBERED and not isinstance(rule.arg, int) for rule in rules.values()):
            return None
        return Row(line["cfa"], rules, entry.cie["return_address_register"], entry.structs,
                   pc - self._bias >= _window_saved(entry))


def _entries(file: LoadedFile) -> list[tuple[int, int, Any]]:
    """(start, end, entry) of each function, by link address."""
    info = dwarf(file)
    entries = [*(info.EH_CFI_entries() if info.has_EH_CFI() else ()), *(info.CFI_entries() if info.has_CFI() else ())]
    found: dict[int, tuple[int, int, Any]] = {}
    for entry in entries:
        if type(entry).__name__ == "FDE" and entry["address_range"]:
            start = entry["initial_location"]
            found.setdefault(start, (start, start + entry["address_range"], entry))
    return [found[start] for start in sorted(found)]


def _window_saved(entry: Any) -> float:
    """From which link address on an entry's function has a register window of its own."""
    at, unit = entry["initial_location"], entry.cie["code_alignment_factor"]
    for instruction in entry.instructions:
        if instruction.opcode == WINDOW_SAVE:
            return int(at)
        if instruction.opcode in ADVANCE:
            at += instruction.args[0] * unit
        elif instruction.opcode == SET:
            at = instruction.args[0]
    return math.inf


def entry_of(file: LoadedFile) -> int:
    """Where a file's program begins, as a guest address without mode bits; 0 where it has no entry."""
    head = file.data[:32]
    if len(head) < 32 or head[:4] != b"\x7fELF":
        return 0
    size = 8 if head[4] == 2 else 4
    entry = int.from_bytes(head[24:24 + size], "big" if head[5] == 2 else "little")
    return entry + file.bias if entry else 0


class Unwinder:
    """Walks stacks of a machine."""

    def __init__(self, arch: Arch, symbols: Symbols) -> None:
        self._arch, self._symbols = arch, symbols
        self._rows: dict[int, Row | None] = {}
        self._known: tuple[LoadedFile, ...] = ()

    def row(self, pc: int) -> Row | None:
        """The row of an instruction, of whatever file has it."""
        if self._known is not self._symbols.files:
            self._known = self._symbols.files
            self._rows.clear()
        if pc not in self._rows:
            if len(self._rows) > 1 << 16:
                self._rows.clear()
            self._rows[pc] = self._look_up(pc)
        return self._rows[pc]

    def _look_up(self, pc: int) -> Row | None:
        for file in self._known:
            try:
                row = cached(file, "rows", partial(Frames, file)).row(pc)
            except DAMAGE:
                continue
            if row is not None:
                return row
        return None

    def walk(self, regs: Regs, seen: Seen) -> Generator[int, None, bool]:
        """Walk from pc to the outermost caller.

        Args:
            regs: of the CPU.
            seen: a return address as it is found -> the true one.

        Yields:
            Return addresses, innermost first; none where the code at pc has no call frame information.

        Returns:
            True where the last function's information says that it has no caller; False where the walk
            ends for lack of information, or at memory that cannot be read.
        """
        frame, lookup, first = Frame(self._arch, regs), regs.pc, True
        try:
            while True:
                row = self.row(lookup)
                above = frame.caller(row) if row is not None else frame.by_pointer()
                if above is None:
                    return row is not None
                target = seen(above.pc) & ~self._arch.pointers.mode_bits
                yield target
                # only the innermost function may have no stack of its own
                if not first and (above.sp - frame.sp) * self._arch.callers <= 0:
                    return False
                frame, lookup, first = above, target - 1, False
        except (GuestFault, Unknown):
            return False

    def begins_program(self, address: int) -> bool:
        """Whether an address is in the function that a loaded file's ELF header gives as its entry: it has no
        caller."""
        function = self._symbols.covering(address)
        return function is not None and any(function.address <= entry < self._symbols.extent(function)
                                            for entry in map(entry_of, self._symbols.files) if entry)


class Frame:
    """The registers of a function that has called another one. pc: where it goes on, mode bits and all. windows: how
    many register windows its own is above the processor's."""

    def __init__(self, arch: Arch, regs: Regs, values: dict[str, int | None] | None = None, pc: int = 0,
                 windows: int = 0) -> None:
        self._arch, self._regs, self.values, self.pc, self.windows = arch, regs, values or {}, pc, windows

    @property
    def sp(self) -> int:
        return self._get(self._arch.regs.sp)

    def _get(self, name: str) -> int:
        value = self.values.get(name, -1)
        if value is None:
            raise Unknown
        return self._regs[name] if value == -1 else value

    def get(self, number: int) -> int:
        """A register by DWARF's number."""
        name = register(self._arch, number)
        if name is None:
            raise Unknown
        return self._get(name)

    def cfa(self, row: Row) -> int:
        """The canonical frame address of this function."""
        if row.cfa.expr is not None:
            return self._evaluate(row, row.cfa.expr, ())
        return int(self.get(row.cfa.reg) + row.cfa.offset & self._arch.mask)

    def _evaluate(self, row: Row, expression: Any, first: Sequence[int]) -> int:
        from elftools.dwarf.dwarf_expr import DWARFExprParser

        try:
            ops = DWARFExprParser(row.structs).parse_expr(expression)
        except DAMAGE as error:
            raise Unknown from error
        return evaluate(ops, Surroundings(register=self.get, word=self._regs.word, bits=self._arch.bits), first).value

    def caller(self, row: Row) -> Frame | None:
        """The caller's frame; None where this function has none."""
        cfa, arch = self.cfa(row), self._arch
        windowed = row.window and has_windows(arch)
        values = {**self.values, **(self._window_above() if windowed else {})}
        link = None if row.link in row.rules else self.get(row.link)
        values[arch.regs.sp] = sp_at_call(arch, cfa)
        for number, rule in row.rules.items():
            name, value = register(arch, number), self._restored(row, rule, number, cfa)
            if name is not None:
                values[name] = value
            if number == row.link:
                link = value
        bias = arch.linkage.bias if arch.linkage is not None else 0
        return (Frame(arch, self._regs, values, link + bias & arch.mask, self.windows + windowed) if link else None)

    def _window_above(self) -> dict[str, int | None]:
        """The registers of the caller's window, as far as they are known."""
        look = self._regs.callers_window
        own = None if look is None else look(self.windows + 1)
        shared = {out: self._get(kept) for out, kept in zip(*SHARED, strict=True)}
        return {**shared, **dict(zip(OWN, own or (None,) * len(OWN), strict=True))}

    def _restored(self, row: Row, rule: Any, number: int, cfa: int) -> int | None:
        kind, mask = rule.type, self._arch.mask
        if kind == "OFFSET":
            return self._regs.word(cfa + rule.arg & mask)
        if kind == "SAME_VALUE":
            return self.get(number)
        if kind == "REGISTER":
            return self.get(rule.arg)
        if kind == "VAL_OFFSET":
            return int(cfa + rule.arg & mask)
        if kind in ("EXPRESSION", "VAL_EXPRESSION"):
            value = self._evaluate(row, rule.arg, (cfa,))
            return self._regs.word(value) if kind == "EXPRESSION" else value
        return None

    def by_pointer(self) -> Frame | None:
        """The caller's frame by the frame pointer: of code without call frame information."""
        linkage = self._arch.linkage
        shape = linkage.frame if linkage is not None else None
        if shape is None or self.values.get(shape.register, 0) is None:
            return None
        base = self._get(shape.register)
        above = self._regs.word(base + shape.next)
        if not base or above <= base:
            return None
        link = self._regs.word((above if shape.above else base) + shape.address)
        return (Frame(self._arch, self._regs, {**self.values, shape.register: above, self._arch.regs.sp: base}, link)
                if link else None)
