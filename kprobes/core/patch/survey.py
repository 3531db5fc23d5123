"""Where instructions start, and what their neighbours forbid.

Functions are walked from their first instruction, once: that is the instruction-boundary check on variable-width ISAs,
and it labels delay slots and exclusive (load-reserved / store-conditional) regions on all of them.
"""

from __future__ import annotations

from itertools import chain

from attrs import evolve, frozen

from ...arch._base import COMPUTED, Arch, Atomic, Insn
from ...errors import GuestFault, NotAnInstruction, Unprobeable
from ...symbols import Symbol, Symbols
from .text import Text

#: An exclusive sequence that has not closed after this many instructions never will: architectures promise progress only
#: for short ones (16 instructions on RISC-V, 128 bytes on Arm).
LONGEST_EXCLUSIVE = 32
WIDEST = 16  # bytes of the widest memory operand
PLAIN, DELAY_SLOT, EXCLUSIVE = range(3)
_KEPT = 64  # functions remembered


@frozen
class Flow:
    """Where a function's branches lead, and what it executes out of its place. unknown, executed: why that cannot be told ("": it can)."""

    targets: frozenset[int]
    unknown: str = ""
    executed: str = ""


class _Walk:
    """One function, walked as far as anybody asked."""

    __slots__ = ("code", "end", "executed", "flow", "in_slot", "label", "open", "pointers", "pos", "start", "stopped", "tables")

    def __init__(self, start: int, end: int, code: bytes) -> None:
        self.start, self.end, self.code = start, end, code
        self.pos = start
        self.label: dict[int, int] = {}
        self.executed: dict[int, Insn] = {}  # address (or COMPUTED) -> the instruction that executes what is there
        self.pointers: set[int] = set()  # addresses that the function works out
        self.tables: dict[int, list[int]] = {}  # jump through a table -> where its entries lead
        self.in_slot = False  # the next instruction is in a delay slot
        self.open = 0  # instructions left in which an exclusive sequence may close
        self.stopped = ""  # why the walk cannot go on
        self.flow: Flow | None = None


class Survey:
    """Answers what instruction is at an address, and whether its place forbids a probe."""

    def __init__(self, arch: Arch, text: Text, symbols: Symbols) -> None:
        self._arch, self._text, self._symbols = arch, text, symbols
        self._walks: dict[tuple[int, int], _Walk] = {}

    def decode(self, addr: int, mode: int = 0) -> Insn:
        """The original instruction at `addr`; an Insn with `reject` where there is none."""
        return self._arch.decode(self._bytes(addr, 2 * self._arch.max_insn), addr | mode)

    def at(self, addr: int, mode: int, symbol: Symbol | None) -> Insn:
        """The instruction at `addr`, if it may be probed there.

        Raises NotAnInstruction (no instruction starts there) or Unprobeable (the instruction, or its place, forbids it).
        """
        if addr % self._arch.insn_align:
            raise NotAnInstruction(f"instructions are aligned to {self._arch.insn_align} bytes", address=addr,
                                   hint=f"did you mean {addr - addr % self._arch.insn_align:#x}?")
        insn = self.decode(addr, mode)
        label, by = self._label(addr, mode, symbol)
        if insn.reject:
            raise Unprobeable(f"{insn.name}: {insn.reject}", address=addr, hint="probe a neighbour")
        if self._reads_itself(insn):
            raise Unprobeable("reads or writes its own bytes, where the breakpoint would be", address=addr, hint="probe a neighbour")
        if by is not None:
            raise Unprobeable(f"{insn.name} is executed by the {by.name} at {by.addr:#x}, which would execute the breakpoint", address=addr,
                              hint=f"probe the {by.name}")
        if label == DELAY_SLOT:
            raise Unprobeable(f"{insn.name} is in a delay slot", address=addr, hint="probe the branch before it")
        if label == EXCLUSIVE:
            raise Unprobeable(f"{insn.name} is inside an exclusive sequence, which a trap would break", address=addr,
                              hint="probe before the load-exclusive or after the store-exclusive")
        return evolve(insn, boostable=False) if self._conditioned(insn, symbol) else insn

    def _reads_itself(self, insn: Insn) -> bool:
        """True where an instruction reads or writes, or executes as another one, bytes of its own."""
        if insn.executes is not None and insn.executes != COMPUTED:
            start, width = insn.executes, self.decode(insn.executes, insn.mode).size
        elif insn.operand is not None and not insn.address_only:
            start, width = insn.operand, WIDEST
        else:
            return False
        return start < insn.addr + insn.size and insn.addr < start + width

    def _conditioned(self, insn: Insn, symbol: Symbol | None) -> bool:
        """True where the instruction may execute conditionally because of what stands before it: no jump may go with it."""
        conditioned, most = self._arch.conditioned, 16 if symbol is None else min(insn.addr - symbol.address, 16)
        return conditioned is not None and insn.boostable and conditioned(insn, self._before(insn.addr, most))

    def _before(self, addr: int, most: int) -> bytes:
        """Up to so many original bytes that end at `addr`."""
        sizes = (size for size in range(most, 0, -self._arch.insn_align) if len(self._bytes(addr - size, size)) == size)
        size = next(sizes, 0)
        return self._bytes(addr - size, size)

    def instructions(self, symbol: Symbol) -> list[Insn]:
        """Every instruction of a function, as far as it can be decoded; the walk stops at the first that cannot."""
        end = self._end(symbol)
        walk = self._walk(symbol.address, end, symbol.mode)  # which may reach beyond
        self._advance(walk, end - 1, symbol.mode)
        return [insn for addr in walk.label if addr < end and (insn := self.decode(addr, symbol.mode)).name != "undefined"]

    def flow(self, symbol: Symbol) -> Flow:
        """Where the direct branches of a function lead, if nothing else moves within it."""
        walk = self._walk(symbol.address, self._end(symbol), symbol.mode)
        if walk.flow is None:
            insns = self.instructions(symbol)
            # what is no table has entries that lead anywhere
            tables = {jump: targets for jump, targets in walk.tables.items() if walk.label.keys() >= set(targets)}
            computed = next((i for i in insns if i.indirect and i.addr not in tables), None)
            unknown = walk.stopped if walk.pos < self._end(symbol) else ""
            if computed is not None and not unknown:
                unknown = f"{computed.name} at {computed.addr:#x} may jump into the region"
            executing = walk.executed.get(COMPUTED)
            executed = f"{executing.name} at {executing.addr:#x} may execute what the jump replaces" if executing is not None else ""
            direct = (i.target for i in insns if i.target is not None)
            walk.flow = Flow(frozenset([*direct, *chain(*tables.values()), *walk.executed]), unknown, executed)
        return walk.flow

    def _end(self, symbol: Symbol) -> int:
        end = self._symbols.extent(symbol)
        if end:
            return end
        page = 4096
        return symbol.address + page - symbol.address % page

    def _label(self, addr: int, mode: int, symbol: Symbol | None) -> tuple[int, Insn | None]:
        """What the place forbids, and who executes the instruction out of its place."""
        start, end = self._stretch(addr, symbol)
        walk = self._walk(start, end, mode)
        offset = addr - start
        if walk.code[offset : offset + self._arch.max_insn] != self._bytes(addr, self._arch.max_insn):
            del self._walks[start, mode]
            walk = self._walk(start, end, mode)
        self._advance(walk, addr if self._arch.executed is None else end - 1, mode)
        if addr in walk.label:
            return walk.label[addr], walk.executed.get(addr) or (walk.executed.get(COMPUTED) if addr in walk.pointers else None)
        data = self._symbols.data_end(addr)
        if data:
            raise NotAnInstruction("is data amid code", address=addr, hint=f"code goes on at {data:#x}")
        if walk.stopped:
            raise NotAnInstruction(f"cannot be reached: {walk.stopped}", address=addr, hint="data in the function? add a symbol at the code after it")
        inside = max((a for a in walk.label if a < addr), default=start)
        insn = self.decode(inside, mode)
        around = f"the {insn.size}-byte instruction {insn.raw.hex(' ')} at {inside:#x}"
        raise NotAnInstruction(f"falls into {around}", address=addr, hint=f"did you mean {inside:#x}?")

    def _stretch(self, addr: int, symbol: Symbol | None) -> tuple[int, int]:
        """What to walk: the function; without a symbol the instruction alone, and where a walk may start anywhere what precedes it."""
        step = self._arch.insn_align
        if symbol is not None:
            return symbol.address, max(self._end(symbol), addr + 1)
        start = addr
        if self._arch.in_step:
            while start > addr - LONGEST_EXCLUSIVE * step and self._bytes(start - step, step):
                start -= step
        return start, addr + 1

    def _walk(self, start: int, end: int, mode: int) -> _Walk:
        walk = self._walks.get((start, mode))
        if walk is None or walk.end < end:
            code = self._bytes(start, end - start)
            if len(code) == end - start:
                code += self._bytes(end, self._arch.max_insn)  # the rest of its last instruction
            walk = self._walks[start, mode] = _Walk(start, end, code)
            if len(self._walks) > _KEPT:
                del self._walks[next(iter(self._walks))]
        return walk

    def _advance(self, walk: _Walk, addr: int, mode: int) -> None:
        """Walk on until `addr` is labelled or passed."""
        reach = 2 * self._arch.max_insn
        while walk.pos <= addr and walk.pos < walk.end and not walk.stopped:
            data = self._symbols.data_end(walk.pos)
            if data:
                walk.pos, walk.open, walk.in_slot = data, 0, False
                continue
            insn = self._decode_in(walk, walk.pos, reach, mode)
            if insn.name == "truncated" or (insn.name == "undefined" and not self._arch.in_step):
                walk.stopped = f"bytes at {walk.pos:#x} are no instruction ({insn.reject})"
                return
            closes = insn.atomic is Atomic.CLOSES
            walk.label[walk.pos] = DELAY_SLOT if walk.in_slot else EXCLUSIVE if walk.open and not closes else PLAIN
            walk.open = 0 if closes else LONGEST_EXCLUSIVE if insn.atomic is Atomic.OPENS else max(walk.open - 1, 0)
            if insn.executes is not None:
                walk.executed.setdefault(insn.executes, insn)
            if insn.address_only and insn.operand is not None:
                walk.pointers.add(insn.operand)
            walk.in_slot = insn.delay_slot
            walk.pos += insn.size
            if insn.table:
                targets = walk.tables[insn.addr] = []
                walk.pos = self._behind_table(walk, insn, targets)

    def _behind_table(self, walk: _Walk, insn: Insn, targets: list[int]) -> int:
        """Where code goes on behind a jump table: at the lowest of its targets that lies ahead. Adds them to `targets`."""
        start, size = walk.pos, insn.table
        at = start
        end = walk.end
        while at + size <= end:
            entry = walk.code[at - walk.start : at - walk.start + size]
            at += size
            target = start + int.from_bytes(entry, self._arch.order.value, signed=not insn.table_unit) * (insn.table_unit or 1)
            if target != start:  # else it aligns the code behind it
                targets.append(target)
            if at <= target < end:
                end = target
        return end

    def _decode_in(self, walk: _Walk, addr: int, reach: int, mode: int) -> Insn:
        offset = addr - walk.start
        return self._arch.decode(walk.code[offset : offset + reach], addr | mode)

    def _bytes(self, addr: int, size: int) -> bytes:
        """Original bytes, fewer where mapped memory ends."""
        while size > 0:
            try:
                return self._text.read(addr, size)
            except GuestFault:
                size = size - 1 if size <= 32 else size // 2
        return b""
