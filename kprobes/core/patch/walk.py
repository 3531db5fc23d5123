"""A walk through text from where an instruction is known to begin: what each instruction says of itself and of its
neighbours.

It goes as far as somebody asked, and on from there when somebody asks for more.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from ...arch._base import Arch, Atomic, Decoded, Insn, signed
from . import exclusive

NOTHING, PLAIN, DELAY_SLOT = range(3)
#: Instructions from the start that are followed; without a bound a stretch of zeros would hold up its first question
#: for minutes.
MOST = 1 << 16
_CHUNK = 1024  # bytes read at a time
_ROUNDS = 4  # walks from the start again, for data that came to light behind
_RUN, _PROOF = 64, 16  # instructions remembered, and of them those that a computed jump is told of


@frozen
class Source:
    """Where a walk gets its text: `read(addr, size)` gives fewer bytes where memory ends, `data_end` 0 where no data is
    marked."""

    arch: Arch
    read: Callable[[int, int], bytes]
    data_end: Callable[[int], int]


class Walk:
    """The instructions from `start` on, and not beyond `end`.

    Attributes:
        code: the bytes read so far. marks: for each of them, whether an instruction begins there. pos: where the walk
            has come to.
        stopped: why it cannot go on, "" while it can. literals: byte of data -> the instruction that reads or writes it
            there.
        exclusive: addresses inside exclusive sequences. executed: address (or COMPUTED) -> the instruction that
            executes what is there. pointers: addresses that the text works out. targets: of direct branches. tables:
            jump through a table -> where its entries lead. jumps: other computed jumps, by name. leaving: of them,
            those that return or call at their tail -> the first of the instructions that prove it.
    """

    __slots__ = (
        "_behind",
        "_count",
        "_in_slot",
        "_run",
        "_skipped",
        "_source",
        "code",
        "end",
        "exclusive",
        "executed",
        "jumps",
        "leaving",
        "literals",
        "marks",
        "mode",
        "pointers",
        "pos",
        "start",
        "stopped",
        "tables",
        "targets",
    )  # fmt: skip

    def __init__(self, source: Source, start: int, end: int, mode: int) -> None:
        self._source, self.start, self.end, self.mode = source, start, end, mode
        self.code = bytearray()
        self.literals: dict[int, int] = {}
        self._begin()

    def _begin(self) -> None:
        self.marks = bytearray(len(self.code))
        self.pos, self.stopped = self.start, ""
        self.exclusive: set[int] = set()
        self.executed: dict[int, Insn] = {}
        self.pointers: set[int] = set()
        self.targets: set[int] = set()
        self.tables: dict[int, list[int]] = {}
        self.jumps: dict[int, str] = {}
        self.leaving: dict[int, int] = {}
        self._run: list[Insn] = []
        self._count = 0
        self._skipped = False  # the next instruction is the delay slot of a call or a jump: nothing comes after it
        self._in_slot = self._behind = False  # the next instruction is in a delay slot; data came to light behind `pos`

    # --- questions

    def mark(self, addr: int) -> int:
        """PLAIN or DELAY_SLOT where an instruction begins, NOTHING elsewhere."""
        return self.marks[addr - self.start] if self.start <= addr < self.start + len(self.marks) else NOTHING

    def begins(self) -> list[int]:
        """Where instructions begin, as far as the walk has come."""
        return [self.start + offset for offset, mark in enumerate(self.marks) if mark]

    def reader(self, start: int, end: int) -> int | None:
        """The instruction that reads or writes data in [start, end) of the text; None where there is none."""
        return next((self.literals[addr] for addr in range(start, end) if addr in self.literals), None)

    def decode(self, addr: int) -> Insn:
        """The instruction at an address, in the walk's mode."""
        arch = self._source.arch
        size, text = 2 * arch.max_insn, arch.text_of(addr)
        code = bytes(self.code[text - self.start : text - self.start + size]) if text >= self.start else b""
        return arch.decode(code if len(code) == size else self._source.read(text, size), addr | self.mode)

    def _unconditioned(self, addr: int) -> Insn:
        """The instruction at an address; it may fall through where what stands before it may make it conditional."""
        insn, conditioned, offset = self.decode(addr), self._source.arch.walking.conditioned, max(addr - self.start, 0)
        if (insn.falls_through or conditioned is None
            or not conditioned(insn, bytes(self.code[max(offset - 16, 0) : offset]))):
            return insn
        return evolve(insn, falls_through=True)

    def _fetch(self) -> None:
        """Have the text that follows, where there is any."""
        while len(self.code) < self.pos - self.start + 2 * self._source.arch.max_insn:
            more = self._source.read(self.start + len(self.code), _CHUNK)
            if not more:
                return
            self.code += more
            self.marks += bytes(len(more))

    # --- walking

    def reach(self, addr: int) -> None:
        """Walk on until `addr` is passed, if that is possible."""
        addr = min(addr, self.end - 1)
        for _ in range(_ROUNDS):
            self._advance(addr)
            if not self._behind:
                return
            read_by_data = {byte for byte, reader in self.literals.items() if reader in self.literals}
            self.literals = {byte: reader for byte, reader in self.literals.items() if byte not in read_by_data}
            self._begin()
        self._advance(addr)

    def _advance(self, addr: int) -> None:
        arch = self._source.arch
        while self.pos <= addr and not self.stopped and not self._behind:
            data = self._data_end(self.pos)
            if data:
                self.pos, self._in_slot = -(-data // arch.insn_align) * arch.insn_align, False
                self._run.clear()
                continue
            self._fetch()
            insn = self.decode(self.pos)
            if insn.decoded is Decoded.TRUNCATED or (insn.decoded is Decoded.UNDEFINED and not arch.in_step):
                self.stopped = f"bytes at {self.pos:#x} are no instruction ({insn.reject})"
            elif self._count == MOST:
                self.stopped = f"instructions are followed to {self.pos:#x}, {MOST:,} of them, and no farther"
            else:
                self._note(insn)

    def _data_end(self, addr: int) -> int:
        """The end of the data that begins or goes on at an address; 0: it is none, as far as is known."""
        end = self._source.data_end(addr)
        if not end and addr in self.literals:
            end = addr + 1
            while end in self.literals:
                end += 1
        return end

    def _note(self, insn: Insn) -> None:
        """Take down an instruction, and go on behind it."""
        self._count += 1
        self.marks[insn.addr - self.start] = DELAY_SLOT if self._in_slot else PLAIN
        self._in_slot = insn.delay_slot
        self.pos += insn.size
        if insn.atomic is Atomic.OPENS:
            self.exclusive |= exclusive.inside(insn, self._unconditioned)
        if insn.operand is not None:
            self._operand(insn)
        if insn.executes is not None:
            self.executed.setdefault(insn.executes, insn)
        if insn.target is not None:
            self.targets.add(insn.target)
        if insn.table:
            self.tables[insn.addr] = []
            self.pos = self._behind_table(insn)
        read = self._source.arch.walking.table
        table = read(insn, self._run) if read is not None else None
        if table is not None:
            targets = table.targets(self._source.read, self.start, self.end)
            self.tables |= {insn.addr: targets} if insn.indirect else {}
            self._operand(evolve(insn, operand=table.start, data=table.size * len(targets)))
        if insn.indirect:
            self._computed(insn)
        self._remember(insn)

    def _operand(self, insn: Insn) -> None:
        """What a pc-relative operand refers to is data, or an address that the text works out."""
        start, end = insn.operand or 0, (insn.operand or 0) + insn.data
        if not insn.data:
            self.pointers.add(start)
        elif self.start < end and start < self.end:
            self.literals.update(dict.fromkeys(range(start, end), insn.addr))
            lo, hi = max(start, self.start) - self.start, min(end, insn.addr) - self.start
            self._behind = self._behind or any(self.marks[lo:hi])

    def _behind_table(self, insn: Insn) -> int:
        """Where code goes on behind a jump table: at the lowest of its targets that lies ahead."""
        start, size, order = self.pos, insn.table, self._source.arch.order
        at, end = start, self.end
        while at + size <= end:
            entry = self._source.read(at, size)
            if len(entry) < size:
                return at
            at += size
            target = start + int.from_bytes(entry, order.value, signed=not insn.table_unit) * (insn.table_unit or 1)
            if target != start:  # else it aligns the code behind it
                self.tables[insn.addr].append(target)
            if at <= target < end:
                end = target
        return end

    def _addresses(self, at: int, jump: Insn) -> None:
        """What a computed jump's table holds is data: addresses in this text, or their distances from the table."""
        arch, size, table = self._source.arch, self._source.arch.bits // 8, at
        while len(entry := self._source.read(at, size)) == size:
            value = int.from_bytes(entry, arch.order.value)
            if not any(self.start <= to < self.end and to % arch.insn_align == 0
                       for to in (value, table + signed(value, arch.bits))):
                return
            self.literals.update(dict.fromkeys(range(at, at + size), jump.addr))
            at += size

    def _computed(self, insn: Insn) -> None:
        self.jumps[insn.addr] = insn.name
        if insn.operand is not None and not insn.data:
            self._addresses(insn.operand, insn)
        elif self.pos in self.pointers and not insn.falls_through:
            self._addresses(self.pos, insn)
        leaves = self._source.arch.walking.leaves
        branch = max((n for n, i in enumerate(self._run) if i.indirect or i.target is not None), default=0)
        proof = leaves(insn, self._run[branch:][-_PROOF:]) if leaves is not None else None
        if proof is not None:
            self.leaving[insn.addr] = proof.addr

    def _remember(self, insn: Insn) -> None:
        """What always precedes the next instruction, if nothing jumps between; a branch that was not taken comes
        first."""
        if self._source.arch.walking.leaves is None and self._source.arch.walking.table is None:
            return
        moves = insn.links or insn.indirect or insn.target is not None or not insn.falls_through
        if moves and (insn.links or not insn.falls_through):
            self._run.clear()
        if not self._skipped and (not moves or (insn.falls_through and not insn.links)):
            self._run.append(insn)
            del self._run[:-_RUN]
        self._skipped = moves and insn.delay_slot and (insn.links or not insn.falls_through)
