"""Walks stacks by call frame information (DWARF 5, 6.4): return addresses and callers' registers.

`.eh_frame` and `.debug_frame` of every file that a machine has loaded are read, and where they have
nothing of some code, other tables (unwind_tables.py); where code has none of them, the frame
pointer is followed, on architectures that have such a convention.

SPARC's functions with a register window have their caller's registers in the window above, in the
processor: the machine reads them, where it can (Regs.callers_window). Else they are not known.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from ..arch._base import Arch, ExceptionReturns
from ..errors import GuestFault
from ..image import LoadedFile
from ..regs import Regs
from ..stacks import Step
from ..symbols import Symbols
from .expression import Surroundings, UnknownValue, evaluate
from .file import DAMAGE, cached, dwarf
from .frame_entries import FrameSection, understood
from .registers import has_windows, register, sp_at_call
from .unwind_tables import tables_of

NUMBERED = ("OFFSET", "VAL_OFFSET", "REGISTER")  #: rules whose argument is a number
#: opcodes of call frame instructions: steps by bytes of code, a jump, and the window
ADVANCE, SET, WINDOW_SAVE = (0x40, 2, 3, 4), 1, 0x2D
SHARED = tuple(f"o{n}" for n in range(8)), tuple(f"i{n}" for n in range(8))
OWN = (*(f"l{n}" for n in range(8)), *SHARED[1])
Seen = Callable[[int], int]  #: a return address as it is found -> the true one


@frozen
class UnwindRow:
    """A row of call frame information: where the caller's registers are, at one instruction.

    Attributes:
        cfa: how the canonical frame address is computed: a register's DWARF number and an offset,
            or an expression.
        rules: DWARF number of a register -> pyelftools' rule.
        link: DWARF number of the return address.
        structs: pyelftools' structs, by which expressions are parsed.
        window: True where the function has a register window of its own.
    """

    cfa: Any
    rules: dict[int, Any]
    link: int
    structs: Any
    window: bool


class Frames:
    """The unwind information of one file: call frame information, and other tables.

    Args:
        file: the file.
    """

    def __init__(self, file: LoadedFile) -> None:
        self._bias = file.bias
        self._found = cached(file, "frames", partial(_entries, file))
        self._starts = [each[0] for each in self._found]
        self._tables = tables_of(file)

    def row(self, pc: int) -> UnwindRow | None:
        """Return the row for an instruction: of call frame information, else of another table.

        Args:
            pc: guest address of the instruction.

        Returns:
            The row; None: the file has none.

        Raises:
            errors in DAMAGE: the call frame information is damaged.
        """
        found = self._row(pc)
        if found is None:
            for table in self._tables:
                try:
                    row = table.row(pc - self._bias)
                except DAMAGE:
                    continue
                if row is not None:
                    return UnwindRow(row.cfa, row.rules, row.link, row.structs, window=False)
        return found

    def _row(self, pc: int) -> UnwindRow | None:
        """Return the row of call frame information for an instruction; None: there is none, or its
        numbers make no sense.

        Args:
            pc: guest address of the instruction.

        Raises:
            errors in DAMAGE: the entry is damaged.
        """
        at = bisect.bisect_right(self._starts, pc - self._bias) - 1
        if at < 0 or pc - self._bias >= self._found[at][1]:
            return None
        _, _, offset, frames = self._found[at]
        entry = frames.entry(offset)
        table = entry.get_decoded().table
        n = bisect.bisect_right([line["pc"] for line in table], pc - self._bias) - 1
        if n < 0:
            return None
        line = table[n]
        rules = {number: rule for number, rule in line.items() if isinstance(number, int)}
        sound = line["cfa"].expr is not None or (
            isinstance(line["cfa"].reg, int) and isinstance(line["cfa"].offset, int)
        )
        if not sound or any(
            rule.type in NUMBERED and not isinstance(rule.arg, int) for rule in rules.values()
        ):
            return None
        return UnwindRow(
            line["cfa"],
            rules,
            entry.cie["return_address_register"],
            entry.structs,
            pc - self._bias >= _window_saved(entry),
        )


def _entries(file: LoadedFile) -> list[tuple[int, int, int, FrameSection | _ReadFrames]]:
    """Return where the functions are that have call frame information, by link address.

    Args:
        file: the file.

    Returns:
        (start, end, offset of the entry, the section that has the entry) of each.
    """
    info = dwarf(file)
    found: dict[int, tuple[int, int, int, FrameSection | _ReadFrames]] = {}
    for section, eh in ((info.debug_frame_sec, False), (info.eh_frame_sec, True)):
        if section is None:
            continue
        frames: FrameSection | _ReadFrames
        try:
            frames = FrameSection(info, section, eh)
        except DAMAGE:
            frames = _ReadFrames(info, eh)
        # of two with the same start the first one counts
        for start, end, offset in reversed(frames.functions):
            found[start] = start, end, offset, frames
    return [found[start] for start in sorted(found)]


class _ReadFrames:
    """The entries of an unusual section, all read by pyelftools; takes the place of a FrameSection.

    Attributes:
        functions: (start, end, offset of the entry) of each function, link addresses.
    """

    def __init__(self, info: Any, eh: bool) -> None:
        """Read all entries.

        Args:
            info: pyelftools' DWARFInfo of the file.
            eh: True: the section is .eh_frame; False: .debug_frame.

        Raises:
            errors in DAMAGE: the section is damaged.
        """
        self.functions: list[tuple[int, int, int]] = []
        self._entries: dict[int, Any] = {}
        for entry in info.EH_CFI_entries() if eh else info.CFI_entries():
            if type(entry).__name__ == "FDE" and entry["address_range"]:
                start = entry["initial_location"]
                self.functions.append((start, start + entry["address_range"], entry.offset))
                self._entries[entry.offset] = entry

    def entry(self, offset: int) -> Any:
        """Return pyelftools' view of the entry at an offset, from `functions`."""
        return understood(self._entries[offset])


def _window_saved(entry: Any) -> float:
    """Return the link address from which on a function has a register window of its own (SPARC).

    Args:
        entry: the function's entry of call frame information.

    Returns:
        math.inf: it never has.
    """
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
    """Return the guest address of a file's ELF entry point; 0 where it has none, or is no
    ELF file.
    """
    head = file.data[:32]
    if len(head) < 32 or head[:4] != b"\x7fELF":
        return 0
    size = 8 if head[4] == 2 else 4
    entry = int.from_bytes(head[24 : 24 + size], "big" if head[5] == 2 else "little")
    return entry + file.bias if entry else 0


_NOT_YET = Step("", 0, None, "", ())


def _step_of(arch: Arch, row: UnwindRow) -> Step | None:
    """Convert a row of unwind information to a Step, which is quicker to apply.

    Args:
        arch: the guest's architecture.
        row: the row.

    Returns:
        The step; None: the row has expressions or rules that a Step cannot say.
    """
    base = register(arch, row.cfa.reg) if row.cfa.expr is None else None
    link_register = register(arch, row.link) or ""
    windowed = row.window and has_windows(
        arch
    )  # elsewhere the same opcode says that a link is signed
    if base is None or windowed or (row.link not in row.rules and not link_register):
        return None
    link: int | None = None
    saved: list[tuple[str, int | None]] = []
    for number, rule in row.rules.items():
        if rule.type not in ("OFFSET", "UNDEFINED", "SAME_VALUE") or (
            number == row.link and rule.type != "OFFSET"
        ):
            return None
        if number == row.link:
            link = rule.arg
        name = register(arch, number)
        if name is not None and rule.type != "SAME_VALUE":
            saved.append((name, rule.arg if rule.type == "OFFSET" else None))
    sp = arch.regs.sp
    return Step(
        base, row.cfa.offset, link, link_register, tuple(each for each in saved if each[0] != sp)
    )


class _Walked:
    """The registers of the function that a walk has come to. Values are read when they are asked
    for.

    Attributes:
        sp: the function's stack pointer register.
    """

    def __init__(self, arch: Arch, regs: Regs, above: int) -> None:
        """Begin at a hit, with the registers of the CPU.

        Args:
            arch: the guest's.
            regs: of the CPU.
            above: bytes from a canonical frame address to the caller's stack pointer register,
                modulo the address space.
        """
        self._arch = arch
        self._regs = regs
        self._above = above
        self._load = regs.words()[0]
        self._mask = arch.mask
        self._sp = arch.regs.sp
        self._bias = arch.linkage.bias if arch.linkage is not None else 0
        self._saved: dict[str, int] = {}  # register -> where its value is
        self._values: dict[str, int | None] = {}
        self._windows = 0
        self.sp = regs[self._sp]

    def _get(self, name: str) -> int:
        """Return the value that a register has in the function that the walk has come to.

        Args:
            name: the register's name.

        Raises:
            UnknownValue: the value is lost: a function called since has not saved the register.
            GuestFault: the memory where the value was saved cannot be read.
        """
        if name == self._sp:
            return self.sp
        where = self._saved.get(name)
        if where is not None:
            return self._load(where)
        value = self._values.get(name, -1)
        if value is None:
            raise UnknownValue
        return self._regs[name] if value == -1 else value

    def up(self, step: Step) -> int:
        """Replace the function's registers by its caller's.

        Args:
            step: the row of unwind information for the function.

        Returns:
            The address where the caller goes on, mode bits included; 0: there is no caller.

        Raises:
            UnknownValue: a register that is needed has not been saved.
            GuestFault: memory cannot be read.
        """
        base, offset, link, link_register, saved = step
        mask = self._mask
        cfa = (self.sp if base == self._sp else self._get(base)) + offset & mask
        back = self._get(link_register) if link is None else self._load(cfa + link & mask)
        for name, where in saved:
            if where is None:
                self._saved.pop(name, None)
                self._values[name] = None
            else:
                self._saved[name] = cfa + where & mask
        self.sp = cfa + self._above & mask
        return back + self._bias & mask if back else 0

    def up_slowly(self, row: UnwindRow | None) -> int:
        """Replace the function's registers by its caller's, as up() does, by a row of any kind.

        Args:
            row: the row of unwind information; None: the frame pointer leads to the caller.

        Returns:
            The address where the caller goes on; 0: there is no caller, and nothing was changed.

        Raises:
            UnknownValue: a register that is needed has not been saved.
            GuestFault: memory cannot be read.
        """
        values: dict[str, int | None] = {**self._values, self._sp: self.sp}
        for name, where in self._saved.items():
            values[name] = self._load(where)
        frame = UnwindFrame(self._arch, self._regs, values, windows=self._windows)
        above = frame.caller(row) if row is not None else frame.by_pointer()
        if above is None:
            return 0
        self._saved.clear()
        self._values = above.values
        self._windows = above.windows
        self.sp = above.sp
        return above.pc

    def up_to_interrupted(self, returns: ExceptionReturns, link: int) -> int:
        """Replace the registers, which are those when an exception's handler returns, by those of
        the interrupted code.

        Args:
            returns: the architecture's.
            link: the handler's return address, one of `returns`.

        Returns:
            The address where the interrupted code goes on, without mode bits.

        Raises:
            UnknownValue: the machine cannot tell where the exception's frame is.
            GuestFault: memory cannot be read.
        """
        found = returns.interrupted(link, self.sp, self._system_register, self._load)
        if found is None:
            raise UnknownValue
        self._saved.update(found.saved)
        self.sp = found.sp
        return found.pc

    def _system_register(self, name: str) -> int:
        """Return the value of a system register. Raises UnknownValue: the machine cannot read it.

        Args:
            name: of the register.
        """
        read = self._regs.system_register
        if read is None:
            raise UnknownValue
        return read(name)


class Unwinder:
    """Walks stacks of a machine; remembers the rows of unwind information by address.

    Args:
        arch: the guest's.
        symbols: the machine's, whose files have the unwind information.

    Attributes:
        above: bytes from a canonical frame address to the caller's stack pointer register.
    """

    def __init__(self, arch: Arch, symbols: Symbols) -> None:
        self._arch, self._symbols = arch, symbols
        self._rows: dict[int, UnwindRow | None] = {}
        self._steps: dict[int, Step | None] = {}
        #: bytes from a canonical frame address to the caller's stack pointer register
        self.above = sp_at_call(arch, 0)
        self._known: tuple[LoadedFile, ...] = ()

    def row(self, pc: int) -> UnwindRow | None:
        """Return the row of unwind information for an instruction, of any file; None: none has one.

        Args:
            pc: guest address of the instruction.
        """
        if self._known is not self._symbols.files:
            self._known = self._symbols.files
            self._rows.clear()
            self._steps.clear()
        if pc not in self._rows:
            if len(self._rows) > 1 << 16:
                self._rows.clear()
                self._steps.clear()
            self._rows[pc] = self._look_up(pc)
        return self._rows[pc]

    def _look_up(self, pc: int) -> UnwindRow | None:
        """Search all files for the row of an instruction; row() remembers what this finds.

        Args:
            pc: guest address of the instruction.

        Returns:
            None: no file has one.
        """
        for file in self._known:
            try:
                row = cached(file, "rows", partial(Frames, file)).row(pc)
            except DAMAGE:
                continue
            if row is not None:
                return row
        return None

    def walk(
        self,
        regs: Regs,
        seen: Seen,
        found: list[int],
        limit: int,
        end: int = 0,
        entered_from: int | None = None,
    ) -> bool:
        """Append the return addresses of a stack to `found`, from the innermost caller outwards.

        Args:
            regs: registers of the CPU; regs.pc is in the innermost function.
            seen: return address in the guest -> the true one (a return probe replaces it, a
                signature changes it).
            found: receives the return addresses, without mode bits; none where the code at pc has
                no unwind information.
            limit: how many it may have in all.
            end: a return address at which the walk stops, once it is appended; 0: none.
            entered_from: the return address of a function of which pc is the entry: the walk begins
                at its caller, and the caller's return address is the first that is appended. None:
                it begins at pc. For one of an exception's handler: where the interrupted code goes
                on is the first.

        Returns:
            True at `end`, and where the last function's information says that it has no caller;
            False where the walk ends for lack of information, at the limit, or at memory that
            cannot be read.
        """
        mode_bits = ~self._arch.pointers.mode_bits
        callers = self._arch.callers
        walked = _Walked(self._arch, regs, self.above)
        linkage = self._arch.linkage
        returns = linkage.exceptions if linkage is not None else None
        lookup, first = regs.pc, True
        steps = self._steps if self._known is self._symbols.files else {}
        try:
            if entered_from is not None:
                if returns is not None and returns.include(entered_from):
                    lookup = walked.up_to_interrupted(returns, entered_from)
                    found.append(lookup)
                else:  # the registers are the caller's, but for what its call has pushed
                    walked.sp += linkage.pushed if linkage is not None else 0
                    lookup = entered_from - 1
            while len(found) < limit:
                before = walked.sp
                step = steps.get(lookup, _NOT_YET)
                if step is _NOT_YET:
                    step = self._step(lookup)
                if step is not None:
                    link = walked.up(step)
                    if not link:
                        return True
                else:
                    row = self.row(lookup)
                    link = walked.up_slowly(row)
                    if not link:
                        return row is not None
                link = seen(link)
                if returns is not None and returns.include(link):
                    lookup = walked.up_to_interrupted(returns, link)
                    found.append(lookup)
                    first = True  # interrupted code may have no stack of its own, or another one
                    continue
                target = link & mode_bits
                found.append(target)
                if target == end:
                    return True
                # only the innermost function may have no stack of its own
                if not first and (walked.sp - before) * callers <= 0:
                    return False
                lookup = target - 1
                first = False
        except (GuestFault, UnknownValue):
            return False
        return False

    def _step(self, pc: int) -> Step | None:
        """Convert the row of an instruction to a Step, and remember it; None: it cannot be, or
        there is none.

        Args:
            pc: guest address of the instruction.
        """
        row = self.row(pc)  # which forgets steps where files have changed
        made = self._steps[pc] = None if row is None else _step_of(self._arch, row)
        return made

    def step(self, pc: int) -> Step | None:
        """Return the Step that leads from a function to its caller.

        Args:
            pc: guest address of an instruction of the function.

        Returns:
            None: there is no unwind information, or it is not of the usual kind.
        """
        return (
            self._steps[pc]
            if self._known is self._symbols.files and pc in self._steps
            else self._step(pc)
        )

    def begins_program(self, address: int) -> bool:
        """Whether an address is in the function that a loaded file's ELF header gives as its entry.

        Such a function has no caller.

        Args:
            address: a guest address.
        """
        function = self._symbols.covering(address)
        return function is not None and any(
            function.address <= entry < self._symbols.extent(function)
            for entry in map(entry_of, self._symbols.files)
            if entry
        )


class UnwindFrame:
    """The registers of one function on a stack, for unwind information of any kind.

    Args:
        arch: the guest's.
        regs: the registers at the hit.
        values: name -> value of each register that differs from the one at the hit; the value is
            None where it is not kept.
        pc: guest address where the function goes on, mode bits included.
        windows: how many register windows its own is above the processor's (SPARC).
    """

    def __init__(
        self,
        arch: Arch,
        regs: Regs,
        values: dict[str, int | None] | None = None,
        pc: int = 0,
        windows: int = 0,
    ) -> None:
        self._arch = arch
        self._regs = regs
        self.values = values or {}
        self.pc = pc
        self.windows = windows

    @property
    def sp(self) -> int:
        """The function's stack pointer register. Raises UnknownValue: it is not kept."""
        return self._get(self._arch.regs.sp)

    def _get(self, name: str) -> int:
        """Return the value of a register by name: the one in `values`, else the one at the hit.

        Raises UnknownValue: it is not kept.
        """
        value = self.values.get(name, -1)
        if value is None:
            raise UnknownValue
        return self._regs[name] if value == -1 else value

    def get(self, number: int) -> int:
        """Return the value of a register. Raises UnknownValue: it is not kept, or no register has
        this number.

        Args:
            number: the register's DWARF number.
        """
        name = register(self._arch, number)
        if name is None:
            raise UnknownValue
        return self._get(name)

    def cfa(self, row: UnwindRow) -> int:
        """Return the canonical frame address of this function.

        Args:
            row: of unwind information, for `pc`.

        Raises:
            UnknownValue: it depends on a register that has not been saved.
            GuestFault: memory cannot be read.
        """
        if row.cfa.expr is not None:
            return self._evaluate(row, row.cfa.expr, ())
        return int(self.get(row.cfa.reg) + row.cfa.offset & self._arch.mask)

    def _evaluate(self, row: UnwindRow, expression: Any, first: Sequence[int]) -> int:
        """Evaluate an expression of a row.

        Args:
            row: the row, for its file's formats.
            expression: the expression's bytes.
            first: numbers that are on the stack before the first operation, the last one on top.

        Raises:
            UnknownValue: it is damaged, or depends on a register that has not been saved.
            GuestFault: memory cannot be read.
        """
        from elftools.dwarf.dwarf_expr import DWARFExprParser

        try:
            ops = DWARFExprParser(row.structs).parse_expr(expression)
        except DAMAGE as error:
            raise UnknownValue from error
        return evaluate(
            ops, Surroundings(register=self.get, word=self._regs.word, bits=self._arch.bits), first
        ).value

    def caller(self, row: UnwindRow) -> UnwindFrame | None:
        """Return the frame of the function's caller; this one stays as it is.

        Args:
            row: of unwind information, for `pc`.

        Returns:
            None: the function is the outermost one.

        Raises:
            UnknownValue: it depends on a register that has not been saved.
            GuestFault: memory cannot be read.
        """
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
        return (
            UnwindFrame(arch, self._regs, values, link + bias & arch.mask, self.windows + windowed)
            if link
            else None
        )

    def _window_above(self) -> dict[str, int | None]:
        """Return the registers that the caller has in its register window (SPARC).

        Returns:
            name -> value, None where it is not known.
        """
        look = self._regs.callers_window
        own = None if look is None else look(self.windows + 1)
        shared = {out: self._get(kept) for out, kept in zip(*SHARED, strict=True)}
        return {**shared, **dict(zip(OWN, own or (None,) * len(OWN), strict=True))}

    def _restored(self, row: UnwindRow, rule: Any, number: int, cfa: int) -> int | None:
        """Apply the rule of one register: return the value that it had in the caller.

        Args:
            row: the row of unwind information.
            rule: the register's rule in it.
            number: DWARF number of the register.
            cfa: the canonical frame address.

        Returns:
            The value; None: it has not been saved.

        Raises:
            UnknownValue: it depends on a register that has not been saved.
            GuestFault: memory cannot be read.
        """
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

    def by_pointer(self) -> UnwindFrame | None:
        """Return the caller's frame by the chain of frame pointers, for code without unwind
        information.

        Returns:
            The frame; None: the architecture has no such convention, the pointer is not known, or
            it leads to no caller.

        Raises:
            GuestFault: memory cannot be read.
        """
        linkage = self._arch.linkage
        shape = linkage.frame if linkage is not None else None
        if shape is None or self.values.get(shape.register, 0) is None:
            return None
        base = self._get(shape.register)
        above = self._regs.word(base + shape.next)
        if not base or above <= base:
            return None
        link = self._regs.word((above if shape.above else base) + shape.address)
        return (
            UnwindFrame(
                self._arch,
                self._regs,
                {**self.values, shape.register: above, self._arch.regs.sp: base},
                link,
            )
            if link
            else None
        )
