"""Stacks that the host's library walks: the words that it reads. See kprobes/native/stacks.c.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.

Implements machine._base.StackWalking.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container
from typing import Any

from .... import native
from ....arch._base import same_address
from ....regs import Regs
from ....stacks import INCOMPLETE, Step
from ....symbols import Symbols
from ..._base import FollowedToReturn
from ..cpu import UnicornCpu
from ..registers.windows import Windowed
from ..runstate import RunState
from .callsites import FollowedCalls

_REGISTERS = 128  # that have numbers, as in stacks.c
_STEP, _BY_POINTER, _BY_PYTHON = 1, 2, 3  # kinds of a row, as there
_ENTRY = {None: 0, False: 1, True: 2}  # of a row
_ON_STACK, _IN_REGISTER = 1, 2  # where a return address is
_ROWS = 256  # of a table at first
_MOST = 1 << 16  # rows, before all are forgotten
_MASK = (1 << 64) - 1

Kept = Callable[[Regs], tuple[int, ...]]
Walk = Callable[[Regs, int], tuple[int, ...] | None]


class HostStackWalking:
    """Makes what walks stacks of one CPU by host code. Implements machine._base.StackWalking."""

    def __init__(self, cpu: UnicornCpu, followed: FollowedCalls, state: RunState) -> None:
        """Prepare; nothing is walked.

        Args:
            cpu: whose stacks are walked.
            followed: the calls that host code follows; it knows their true return addresses.
            state: has the address of the page where runs end.
        """
        self._cpu = cpu
        self._followed = followed
        self._state = state

    def begin(
        self,
        calls: FollowedToReturn,
        symbols: Symbols,
        look: Callable[[int], None],
        above: int,
        points: Container[int],
    ) -> HostStackWalk:
        """Make an object that walks the stacks of hits.

        Args:
            calls: the calls that return probes follow.
            symbols: the machine's.
            look: (pc) has put() called for that address. It is called for an address that is not
                known, and before the first walk after symbols have changed.
            above: bytes from a canonical frame address to the caller's stack pointer register.
            points: addresses that are probed.
        """
        walk = HostStackWalk(self._cpu, look, above)
        walk.tell(
            view=self._cpu.view_address,
            calls=self._followed.address,
            # where the caller skips something, what a call returns to is not what it has noted
            simple=self._followed.skip is None,
        )
        walk.keep(
            own=calls.own,
            followed=calls,
            trampoline="trampoline",
            symbols=symbols,
            points=points,
            files="files",
            changes="changes",
            state=self._state,
            exit="exit",
        )
        return walk


class HostStackWalk:
    """Walks stacks by host code; implements machine._base.StackWalk.

    Attributes:
        walk: (regs, the most addresses) -> pc and return addresses; None: something on the way is
            not usual, and nothing is known.
    """

    def __init__(self, cpu: UnicornCpu, look: Callable[[int], None], above: int) -> None:
        """Make the words by which host code walks stacks.

        Args:
            cpu: whose stacks are walked.
            look: (pc) has put() called for that address.
            above: bytes from a canonical frame address to the caller's stack pointer register.
        """
        self._names = native.words("walk")
        self._row = len(native.words("row"))
        self._words = (ctypes.c_uint64 * len(self._names))()
        self._kept: dict[str, object] = {}
        self._step = len(native.words("step"))
        self._steps: dict[Step, Any] = {}
        self._cells = cpu.cells | cpu.windowed
        self._bits = cpu.arch.bits
        self._pc = cpu.arch.regs.pc
        self._widths = cpu.arch.regs.widths
        self._places = (ctypes.c_uint64 * (len(native.words("place")) * _REGISTERS))()
        self._numbers: dict[str, int] = {}
        self._number(cpu.arch.regs.sp)
        arch, linkage = cpu.arch, cpu.arch.linkage
        self.tell(
            places=ctypes.addressof(self._places),
            mask=arch.mask,
            mode_bits=arch.pointers.mode_bits,
            is_signed=arch.pointers.without_signature is not same_address,
            above=above,
            bias=linkage.bias if linkage is not None else 0,
            upwards=arch.callers < 0,
        )
        if linkage is not None and linkage.pushed:
            self.tell(linked=_ON_STACK, pushed=linkage.pushed)
        elif linkage is not None and linkage.register:
            self.tell(linked=_IN_REGISTER, link=self._number(linkage.register))
        returns = linkage.exceptions if linkage is not None else None
        if returns is not None:
            self.tell(return_mask=returns.mask, return_value=returns.value)
        frame = linkage.frame if linkage is not None else None
        if frame is not None:
            self.tell(
                pointer=1,
                frame=self._number(frame.register),
                next=frame.next,
                address=frame.address,
                outside=frame.above,
            )
        self.keep(regs=cpu.regs, look=look, mark=INCOMPLETE)
        self.forget((), -1)
        self.walk: Walk = _function("stack_walker", self._address, self)

    @property
    def _address(self) -> int:
        """Address of the words in this process."""
        return ctypes.addressof(self._words)

    def keeper(self, plain: Kept) -> Kept:
        """Return a function in host code from registers to a stack as records keep it: a tuple of
        addresses.

        Args:
            plain: (regs) -> the same in Python, for stacks that host code cannot walk.
        """
        made: Kept = _function("stack_keeper", self._address, self, plain)
        return made

    def tell(self, **values: int) -> None:
        """Set words of host code that are numbers.

        Args:
            values: name of a word -> its value; it is cut to 64 bits.
        """
        for name, value in values.items():
            self._words[self._names[name]] = value & _MASK

    def keep(self, **objects: object) -> None:
        """Set words of host code that are Python objects, and keep these alive.

        Args:
            objects: name of a word -> object.
        """
        for name, value in objects.items():
            self._kept[name] = value
            self._words[self._names[name]] = id(value)

    def forget(self, files: object, changes: int) -> None:
        """Forget what put() has said of all addresses, as symbols have changed.

        Args:
            files: the loaded files at present; host code sees by this object whether they are still
                the same.
            changes: number of changes of the symbols so far.
        """
        self._rows: dict[int, tuple[int, int, int, int]] = {}
        self._steps.clear()
        self.keep(seen_files=files)
        self.tell(seen_changes=changes)
        self._write(_ROWS)

    def put(
        self, pc: int, step: Step | None, known: bool, outermost: bool, entry: bool | None
    ) -> None:
        """Note how to find the caller of the function at an address.

        Without a step that host code understands, it goes by the frame pointer where there is no
        call frame information, and leaves the walk to Python where there is. Where very many
        addresses are known, they are forgotten first.

        Args:
            pc: the address.
            step: how call frame information says it; None: it does not.
            known: True where there is call frame information.
            outermost: True where the function has no caller in the guest.
            entry: True where a function begins there, False where none does; None: it was not
                looked at.
        """
        if len(self._rows) >= _MOST:
            self.forget(self._kept["seen_files"], self._words[self._names["seen_changes"]])
        made = None if step is None else self._made(step)
        if made is not None:
            kind = _STEP
        else:
            kind = _BY_PYTHON if known else _BY_POINTER
        row = kind, 0 if made is None else ctypes.addressof(made), int(outermost), _ENTRY[entry]
        self._rows[pc] = row
        if 2 * len(self._rows) > self._last:
            self._write(4 * self._last)
        else:
            self._place(pc, row)

    def _write(self, size: int) -> None:
        """Make a new table of all known addresses for host code.

        Args:
            size: rows; it is rounded down to a power of two.
        """
        size = 1 << size.bit_length() - 1
        self._last = size - 1
        self._table = (ctypes.c_uint64 * (self._row * size))()
        self.tell(rows=ctypes.addressof(self._table), last=self._last)
        for pc, row in self._rows.items():
            self._place(pc, row)

    def _place(self, pc: int, row: tuple[int, int, int, int]) -> None:
        """Write the row of an address into the hash table in which host code looks it up, over the
        row that the address has already.

        Args:
            pc: the address.
            row: (kind, address of the step's words or 0, outermost, entry): the words of struct row
                in kprobes/native/stacks.c behind its pc.
        """
        at = (pc * 0x9E3779B97F4A7C15 & _MASK) >> 40 & self._last
        while self._table[self._row * at + 1] and self._table[self._row * at] != pc:
            at = at + 1 & self._last
        self._table[self._row * at : self._row * (at + 1)] = [pc, *row]

    def _made(self, step: Step) -> Any:
        """Return the words of a step for host code; None: it has more registers than can have
        numbers.

        Args:
            step: how to find the caller, by call frame information.
        """
        made = self._steps.get(step)
        if made is not None:
            return made
        try:
            on_stack = step.link is not None
            link = step.link if step.link is not None else self._number(step.link_register)
            words = [self._number(step.base), step.offset, on_stack, link, len(step.saved)]
            for name, where in step.saved:
                words += [self._number(name), where is None, where or 0]
        except IndexError:
            return None
        made = self._steps[step] = (ctypes.c_uint64 * len(words))(*(n & _MASK for n in words))
        return made

    def _number(self, name: str) -> int:
        """Return the number by which host code knows a register. A new register gets one, and its
        place, if it is known, is written for host code.

        Args:
            name: of the register.

        Raises:
            IndexError: all numbers are given.
        """
        number = self._numbers.get(name)
        if number is not None:
            return number
        number = len(self._numbers)
        if number == _REGISTERS:
            raise IndexError(name)
        self._numbers[name] = number
        found = self._cells.get(name)
        whole = self._widths.get(name, self._bits) == self._bits
        if found is not None and name != self._pc and whole:
            size = self._bits // 8
            windowed = isinstance(found, Windowed)
            offset = found.index * size if isinstance(found, Windowed) else 0
            width = len(self._places) // _REGISTERS
            at = width * number
            self._places[at : at + width] = [found.address, offset, windowed, size]
        self.tell(names=len(self._numbers))
        return number


def _function(name: str, *kept: object) -> Any:
    """Make a function in host code.

    Args:
        name: of the library's function that makes it.
        kept: what it needs, which lives as long as it.
    """
    return native.function(name, ctypes.py_object, ctypes.py_object)(kept)
