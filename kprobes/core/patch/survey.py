"""Finds the instruction at an address, and tells whether a probe may stand there.

Functions are walked from their first instruction (walk.py). On variable-width instruction sets this
finds out where instructions begin; on all, it finds delay slots, exclusive sequences, data amid
code, and branches. A walk is kept, and continued when more of the function is asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from attrs import evolve, frozen

from ...arch._base import MOST_BEFORE, Arch, Decoded, Insn
from ...errors import GuestFault, NotAnInstruction, Unprobeable
from ...symbols import Symbol, Symbols
from .exclusive import LONGEST
from .executed import Executed
from .text import Text
from .walk import DELAY_SLOT, NOTHING, Walk, WalkedText

#: Bytes that are walked beyond the address in question, in a function that is too long to be walked
#: whole: instructions that use data refer to it from such a distance.
_AHEAD = 4096
#: Functions longer than this are not walked whole: only to the address in question; and where
#: decoding may start anywhere, only a piece around it.
_WHOLE = 1 << 16
#: Bytes of text whose walks are remembered.
_KEPT = 1 << 23
#: Bytes that each walk counts for in addition: most functions are short, and every walk has tables.
_BESIDES = 64


@frozen
class FunctionFlow:
    """The targets of a function's branches, and of its EXECUTEs.

    Attributes:
        targets: addresses that the function's branches lead to.
        end: address behind the function, as far as it is known.
        unknown: why there may be other targets; "": there are none.
        executed: target, or COMPUTED -> the instruction that executes it out of its place.
    """

    targets: frozenset[int]
    end: int
    unknown: str
    executed: dict[int, Insn]


class Survey:
    """Tells which instruction is at an address, and whether its place forbids a probe."""

    def __init__(
        self,
        arch: Arch,
        text: Text,
        symbols: Symbols,
        executable: Callable[[int], bool],
        counts_from_executed: bool,
    ) -> None:
        """Begin without walks: a function is walked when it is first asked about.

        Args:
            arch: decodes instructions.
            text: original guest text.
            symbols: the machine's.
            executable: (address) -> True where the guest may execute.
            counts_from_executed: as the machine has it.
        """
        self._arch = arch
        self._text = text
        self._symbols = symbols
        self._source = WalkedText(arch, self._bytes, symbols.data_end, symbols.starts)
        self._walks: dict[tuple[int, int, int], Walk] = {}
        # number of walks at which the next look is taken whether they are too much text
        self._most = 64
        self._flows: dict[Walk, FunctionFlow] = {}
        # a walk in _flows -> Text.generation() when its text was last compared
        self._compared: dict[Walk, int] = {}
        self.executed = Executed(arch, self._bytes, executable, symbols, counts_from_executed)

    def decode(self, addr: int, mode: int = 0) -> Insn:
        """Return the original instruction at an address.

        Whether a probe may be there is not looked at.

        Args:
            addr: the address.
            mode: mode bits of the code there.

        Returns:
            The instruction; where there is none, one whose `reject` says so.
        """
        return self._arch.decode(
            self._bytes(self._arch.text_of(addr), 2 * self._arch.max_insn), addr | mode
        )

    def at(self, addr: int, mode: int, symbol: Symbol | None) -> Insn:
        """Return the instruction at an address, if it may be probed there.

        Its `boostable` is False where an earlier instruction may make it conditional.

        Args:
            addr: the address.
            mode: mode bits of the code there.
            symbol: the function that has it; None: it is not known.

        Raises:
            NotAnInstruction: no instruction begins there.
            Unprobeable: the instruction, or its place, forbids a probe.
        """
        if addr % self._arch.insn_align:
            raise NotAnInstruction(
                f"instructions are aligned to {self._arch.insn_align} bytes",
                address=addr,
                hint=f"did you mean {addr - addr % self._arch.insn_align:#x}?",
            )
        insn = self.decode(addr, mode)
        walk = self._walked(addr, mode, symbol)
        if walk.mark(addr) == NOTHING:
            raise self._no_instruction(walk, addr)
        if insn.reject:
            raise Unprobeable(f"{insn.name}: {insn.reject}", address=addr, hint="probe a neighbour")
        self._check_bytes(walk, insn)
        self._check_place(walk, insn)
        self._check_neighbours(walk, insn, symbol)
        return evolve(insn, boostable=False) if self._conditioned(insn, symbol) else insn

    def _check_bytes(self, walk: Walk, insn: Insn) -> None:
        """Check that no instruction would read a breakpoint in the place of an instruction.

        One would that uses the bytes there as data, or executes them out of their place.

        Args:
            walk: the walk of the function that the instruction is in.
            insn: the instruction that is to be probed.

        Raises:
            Unprobeable, NotAnInstruction: one would.
        """
        addr, end = insn.addr, insn.addr + insn.size
        if walk.reader(addr, end) == addr:
            raise Unprobeable(
                "reads or writes its own bytes, where the breakpoint would be",
                address=addr,
                hint="probe a neighbour",
            )
        self._check_data(walk, addr, end)
        self.executed.check_probe(insn, walk.executed, walk.pointers, self.decode)

    def _check_data(self, walk: Walk, start: int, end: int) -> None:
        """Check that no instruction uses [start, end) as data.

        Args:
            walk: the walk of the function that the range is in.
            start: address of the first byte.
            end: address behind the last byte.

        Raises:
            NotAnInstruction: one does.
        """
        user = walk.data_user(start, end)
        if user is None:
            return
        what = f"is data: {self.decode(user[0], walk.mode).name} at {user[0]:#x} {user[1]}"
        read = walk.reader(start, end) is not None
        hint = "probe code" if read else "probe code; if this is code, add a symbol where it begins"
        raise NotAnInstruction(what, address=start, hint=hint)

    def _check_place(self, walk: Walk, insn: Insn) -> None:
        """Check that an instruction is in no delay slot and in no exclusive sequence.

        Args:
            walk: the walk of the function that the instruction is in.
            insn: the instruction.

        Raises:
            Unprobeable: it is.
        """
        if walk.mark(insn.addr) == DELAY_SLOT:
            raise Unprobeable(
                f"{insn.name} is in a delay slot",
                address=insn.addr,
                hint="probe the branch before it",
            )
        if insn.addr in walk.exclusive:
            raise Unprobeable(
                f"{insn.name} is inside an exclusive sequence, which a trap would break",
                address=insn.addr,
                hint="probe before the load-exclusive or after the store-exclusive",
            )

    def _check_neighbours(self, walk: Walk, insn: Insn, symbol: Symbol | None) -> None:
        """Check that the instruction is not one of two that are reserved when they stand together.

        An instance is a branch behind a compact branch (MIPS release 6): the second of the two
        faults, but only directly behind the first. With a breakpoint on either one they would be
        executed apart, and the guest would miss the fault.

        Args:
            walk: the walk of the function that the instruction is in.
            insn: the instruction that is to be probed.
            symbol: the function's symbol; None: it is not known. Bytes before the function are not
                looked at.

        Raises:
            Unprobeable: the instruction is the first or the second of such two.
        """
        reserved = self._arch.walking.reserved
        if reserved is None:
            return
        addr = insn.addr
        most = self._most_before(insn, symbol)
        # less than MOST_BEFORE, from where an instruction begins, if that is known
        sizes = range(min(most, MOST_BEFORE - 1), 0, -1)
        known = (size for size in sizes if walk.mark(addr - size) != NOTHING)
        if why := reserved(insn, self._before(addr, next(known, most))):
            raise Unprobeable(f"{insn.name} {why}", address=insn.addr, hint="probe a neighbour")
        behind = self.decode(insn.next, insn.mode)
        if why := reserved(behind, insn.raw):
            raise Unprobeable(
                f"{behind.name} behind the {insn.name} {why}: it would fault no more",
                address=insn.addr,
                hint="probe a neighbour",
            )

    def _no_instruction(self, walk: Walk, addr: int) -> NotAnInstruction:
        """Return the error for an address where no instruction begins.

        Args:
            walk: has passed the address, or has stopped before it.
            addr: the address.

        Raises:
            NotAnInstruction: raised at once where an instruction uses what is there as data.
        """
        data = self._symbols.data_end(addr)
        if data:
            return NotAnInstruction(
                "is data amid code", address=addr, hint=f"code goes on at {data:#x}"
            )
        self._check_data(walk, addr, addr + 1)
        if walk.stopped:
            return NotAnInstruction(
                f"cannot be reached: {walk.stopped}",
                address=addr,
                hint="data in the function? add a symbol at the code after it",
            )
        inside = next((a for a in range(addr - 1, walk.start - 1, -1) if walk.mark(a)), walk.start)
        insn = self.decode(inside, walk.mode)
        around = f"the {insn.size}-byte instruction {insn.raw.hex(' ')} at {inside:#x}"
        return NotAnInstruction(
            f"falls into {around}", address=addr, hint=f"did you mean {inside:#x}?"
        )

    def _conditioned(self, insn: Insn, symbol: Symbol | None) -> bool:
        """Return True where an earlier instruction may make this one conditional (Thumb's IT).

        A jump behind it would be conditional, too. False also where the instruction is not
        boostable.

        Args:
            insn: the instruction.
            symbol: its function's; None: none is known.
        """
        conditioned = self._arch.walking.conditioned
        return (
            conditioned is not None
            and insn.boostable
            and conditioned(insn, self._before(insn.addr, self._most_before(insn, symbol)))
        )

    def _most_before(self, insn: Insn, symbol: Symbol | None) -> int:
        """Return how many bytes before an instruction are looked at: its function's, at most
        MOST_BEFORE.
        """
        return MOST_BEFORE if symbol is None else min(insn.addr - symbol.address, MOST_BEFORE)

    def _before(self, addr: int, most: int) -> bytes:
        """Return original bytes that end at an address.

        Args:
            addr: the address.
            most: how many bytes are wanted; fewer are returned where memory is not mapped.
        """
        sizes = (
            size
            for size in range(most, 0, -self._arch.insn_align)
            if len(self._bytes(addr - size, size)) == size
        )
        size = next(sizes, 0)
        return self._bytes(addr - size, size)

    # --- whole functions

    def instructions(self, symbol: Symbol) -> list[Insn]:
        """Return the instructions of a function, without those that cannot be decoded.

        Where such a one does not tell where the next instruction begins, the list ends there.
        """
        end = self._end(symbol)
        walk = self._walk(symbol.address, self._limit(symbol), symbol.mode)
        walk.reach(end - 1)
        found = (self.decode(addr, symbol.mode) for addr in walk.begins() if addr < end)
        return [insn for insn in found if insn.decoded is not Decoded.UNDEFINED]

    def flow(self, symbol: Symbol) -> FunctionFlow:
        """Return where a function's branches lead, and why that may be incomplete.

        The result is remembered until the function's text changes.

        Args:
            symbol: the function's.
        """
        start, end, limit = symbol.address, self._end(symbol), self._limit(symbol)
        walk = self._walk(start, limit, symbol.mode)
        if walk in self._flows and self._outdated(walk, min(end - start, len(walk.code), _WHOLE)):
            self._forget(start, limit, symbol.mode)
            walk = self._walk(start, limit, symbol.mode)
        walk.reach(end - 1)
        if walk not in self._flows:
            self._flows[walk] = self._flow_of(walk, end)
        return self._flows[walk]

    def _outdated(self, walk: Walk, size: int) -> bool:
        """Return True if the text of a walk has changed since it was walked.

        The text of a page that nobody has written since the last call is not compared again.

        Args:
            walk: the walk.
            size: bytes that are compared, from the walk's start on.
        """
        generation = self._text.generation(walk.start, size)
        if self._compared.get(walk) == generation:
            return False
        self._compared[walk] = generation
        return walk.code[:size] != self._bytes(walk.start, size)

    def _flow_of(self, walk: Walk, end: int) -> FunctionFlow:
        """Work out where a function's branches lead, and why that may be incomplete.

        Targets are those of direct branches and of jump tables, addresses that the text works out,
        and targets of EXECUTEs. They may be incomplete where the walk has stopped before the end,
        or a computed jump goes through no table that was found and is not known to leave the
        function.

        Args:
            walk: a walk of the function, which has reached its end or cannot go on.
            end: address behind the function.
        """
        # what only looked like a jump table has entries that lead to no instruction
        tables = {
            jump: targets for jump, targets in walk.tables.items() if all(map(walk.mark, targets))
        }
        targets = frozenset(
            [*walk.targets, *walk.pointers, *chain(*tables.values()), *walk.executed]
        )
        unknown = walk.stopped if walk.pos < end else ""
        for jump, name in walk.jumps.items():
            if not unknown and jump not in tables and not self._leaves(walk, jump, targets):
                unknown = f"{name} at {jump:#x} may jump into the region"
        return FunctionFlow(targets, end, unknown, walk.executed)

    def _leaves(self, walk: Walk, jump: int, targets: frozenset[int]) -> bool:
        """Return True where a computed jump leaves the function: it is a return, or a tail call.

        The instructions before it prove that, unless a branch leads to the middle of them.

        Args:
            walk: the walk of the function.
            jump: address of the computed jump.
            targets: addresses that the function's branches lead to.
        """
        first = walk.leaving.get(jump)
        return first is not None and not any(first < target <= jump for target in targets)

    def data_in(self, start: int, end: int, symbol: Symbol) -> str:
        """Return why a jump over [start, end) of a function would cover data; "": no data is known
        there.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
            symbol: the function's.
        """
        marked = next((addr for addr in range(start, end) if self._symbols.data_end(addr)), None)
        if marked is not None:
            return f"the jump would cover data, at {marked:#x}"
        walk = self._walked(start, symbol.mode, symbol)
        user = walk.data_user(start, end)
        if user is None:
            return ""
        name = self.decode(user[0], symbol.mode).name
        return f"the jump would cover data: {name} at {user[0]:#x} {user[1]}"

    def _end(self, symbol: Symbol) -> int:
        """Return the address behind a function; where its size is not known, the end of its first
        page.
        """
        return self._symbols.extent(symbol) or symbol.address + 4096 - symbol.address % 4096

    def _limit(self, symbol: Symbol) -> int:
        """Return the address that no walk of a function goes beyond."""
        return self._symbols.extent(symbol) or self._arch.mask + 1

    # --- walks

    def _walked(self, addr: int, mode: int, symbol: Symbol | None) -> Walk:
        """Return a walk that has passed an address, and later instructions that may refer to it.

        A walk that cannot get so far is returned as well (Walk.stopped). A remembered walk is made
        anew where the text has changed.

        Args:
            addr: the address.
            mode: mode bits of the code.
            symbol: the function's; None: none is known.
        """
        start, end, until = self._stretch(addr, symbol)
        walk = self._walk(start, end, mode)
        offset = addr - start
        walked = walk.code[offset : offset + self._arch.max_insn]
        if walked and walked != self._bytes(addr, self._arch.max_insn)[: len(walked)]:
            # the text has changed since
            self._forget(start, end, mode)
            walk = self._walk(start, end, mode)
        walk.reach(until)
        return walk

    def _stretch(self, addr: int, symbol: Symbol | None) -> tuple[int, int, int]:
        """Decide which text to walk for an address.

        That is the function; of a long one only a piece: up to behind the address, and, on
        instruction sets where decoding may start anywhere, from not far before it. Without a symbol
        it is the instruction alone; its neighbours, too, where decoding may start anywhere.

        Args:
            addr: the address.
            symbol: the function's; None: none is known.

        Returns:
            (where the walk starts, where it must end, the address that it must at least reach).
        """
        step = self._arch.insn_align
        top = self._arch.mask + 1
        if symbol is None:
            if not self._arch.in_step:
                return addr, top, addr
            start = addr
            while start > addr - LONGEST * step and self._bytes(start - step, step):
                start -= step
            return start, top, addr + LONGEST * step
        start, end = symbol.address, max(self._limit(symbol), addr + 1)
        if self._symbols.extent(symbol) and end - start <= _WHOLE:
            return start, end, end - 1
        if self._arch.in_step and addr - start >= _WHOLE:
            start += (addr - start) // _WHOLE * _WHOLE - _AHEAD
        return start, end, min(addr + _AHEAD, end - 1)

    def _walk(self, start: int, end: int, mode: int) -> Walk:
        """Return the walk of [start, end); where none is remembered, make one that has not walked
        yet, and remember it.

        Where very many are remembered, some are forgotten first.

        Args:
            start: address of the first instruction.
            end: address behind the text.
            mode: mode bits of the code.
        """
        walk = self._walks.get((start, end, mode))
        if walk is None:
            if len(self._walks) >= self._most:
                self._shrink()
                self._most = max(64, len(self._walks) * 5 // 4)
            walk = self._walks[start, end, mode] = Walk(self._source, start, end, mode)
        return walk

    def _shrink(self) -> None:
        """Forget the oldest walks, until the others are no more than _KEPT bytes."""
        kept = sum(len(walk.code) + _BESIDES for walk in self._walks.values())
        for key, walk in list(self._walks.items()):
            if kept <= _KEPT:
                return
            self._forget(*key)
            kept -= len(walk.code) + _BESIDES

    def _forget(self, start: int, end: int, mode: int) -> None:
        """Forget a remembered walk, and the flow that was worked out from it.

        Args:
            start: address of its first instruction.
            end: address behind its text.
            mode: mode bits of its code.
        """
        walk = self._walks.pop((start, end, mode))
        self._flows.pop(walk, None)
        self._compared.pop(walk, None)

    def _bytes(self, addr: int, size: int) -> bytes:
        """Return original text, fewer bytes than asked for where mapped memory ends.

        Args:
            addr: address of the first byte.
            size: the most bytes.
        """
        while size > 0:
            try:
                return self._text.read(addr, size)
            except GuestFault:
                size = size - 1 if size <= 32 else size // 2
        return b""
