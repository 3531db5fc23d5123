"""A walk through text from where an instruction is known to begin: what each instruction says of itself and of its
neighbours.

It goes as far as somebody asked, and on from there when somebody asks for more.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from ...arch._base import COMPUTED, Arch, Atomic, Decoded, Insn, signed
from . import exclusive

NOTHING, PLAIN, DELAY_SLOT = range(3)
#: Instructions from the start that are followed; without a bound a stretch of zeros would hold up its first question
#: for minutes.
MOST = 1 << 16
_CHUNK = 1024  # bytes read at a time
_ROUNDS = 16  # walks from the start again, for data that came to light behind
_RUN, _PROOF = 64, 16  # instructions remembered, and of them those that a computed jump is told of
_PADDING = 16  # bytes behind a call that does not return, up to the data that follows it


@frozen
class WalkedText:
    """The text of a walk.

    Attributes:
        read: (addr, size) -> bytes, fewer where memory ends.
        data_end: (addr) -> where the data that is marked there ends; 0 where none is.
        starts: (addr) -> True where a symbol says that a function, or code, begins.
    """

    arch: Arch
    read: Callable[[int, int], bytes]
    data_end: Callable[[int], int]
    starts: Callable[[int], bool]


class Walk:
    """The instructions from `start` on, and not beyond `end`.

    Attributes:
        code: the bytes read so far.
        marks: for each of them, whether an instruction begins there.
        pos: where the walk has come to.
        stopped: why it cannot go on, "" while it can.
        literals: byte of data -> the instruction that reads or writes it there.
        exclusive: addresses inside exclusive sequences.
        executed: address (or COMPUTED) -> the instruction that executes what is there.
        pointers: address that the text works out -> the instruction that does.
        pointed: where data begins that only its address tells of -> (where it ends, the
            instruction that works it out).
        targets: of direct branches.
        tables: jump through a table -> where its entries lead.
        jumps: other computed jumps, by name.
        leaving: of them, those that return or call at their tail -> the first of the
            instructions that prove it.
    """

    __slots__ = (
        "_bases",
        "_behind",
        "_count",
        "_doubt",
        "_ending",
        "_executing",
        "_guessed",
        "_in_slot",
        "_known",
        "_leads",
        "_made",
        "_orphans",
        "_points",
        "_reached",
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
        "pointed",
        "pointers",
        "pos",
        "start",
        "stopped",
        "tables",
        "targets",
    )  # fmt: skip

    def __init__(self, source: WalkedText, start: int, end: int, mode: int) -> None:
        self._source = source
        self.start = start
        self.end = end
        self.mode = mode
        self.code = bytearray()
        self.literals: dict[int, int] = {}
        # what earlier rounds have found out: data that only its address tells of, by the instruction that works it out;
        # branches' targets in what was taken for such
        self._points: dict[int, int] = {}
        self._leads: set[int] = set()
        self._executing = False  # an instruction executes another one out of its place, whose address is worked out
        self._begin()

    def _begin(self) -> None:
        self.marks = bytearray(len(self.code))
        self.pos = self.start
        self.stopped = ""
        self.exclusive: set[int] = set()
        self.executed: dict[int, Insn] = {}
        self.pointers: dict[int, int] = self._points.copy()
        self.pointed: dict[int, tuple[int, int]] = {}
        self.targets: set[int] = self._leads.copy()
        self.tables: dict[int, list[int]] = {}
        self.jumps: dict[int, str] = {}
        self.leaving: dict[int, int] = {}
        self._run: list[Insn] = []
        self._count = 0
        self._skipped = False  # the next instruction is the delay slot of a call or a jump: nothing comes after it
        self._in_slot = self._behind = False  # the next instruction is in a delay slot; data came to light behind `pos`
        self._reached = True  # something is known to lead to `pos`
        self._doubt = -_PADDING  # behind a call, which may not return
        self._ending = False  # the delay slot of an instruction that does not go on comes next
        self._orphans: list[tuple[int, int]] = []  # what was walked though nothing is known to lead there
        self._guessed: list[tuple[int, int]] = []  # jump tables whose end is only supposed
        self._made: list[int] = []  # addresses worked out since the last branch, call or place that a branch leads to
        self._bases: set[int] = set()  # of them, those from which a computed jump may count
        self._known: dict[int, int] = {}  # register -> an address that it holds

    # --- questions

    def mark(self, addr: int) -> int:
        """PLAIN or DELAY_SLOT where an instruction begins, NOTHING elsewhere."""
        return self.marks[addr - self.start] if self.start <= addr < self.start + len(self.marks) else NOTHING

    def begins(self) -> list[int]:
        """Return the addresses where instructions begin, as far as the walk has come."""
        return [self.start + offset for offset, mark in enumerate(self.marks) if mark]

    def reader(self, start: int, end: int) -> int | None:
        """The instruction that reads or writes data in [start, end) of the text; None where there is none."""
        return next((self.literals[addr] for addr in range(start, end) if addr in self.literals), None)

    def data_user(self, start: int, end: int) -> tuple[int, str] | None:
        """Find the instruction by which [start, end) of the text holds data.

        Returns:
            (the instruction, what it does with the data), None where nothing says so.
        """
        reader = self.reader(start, end)
        if reader is not None:
            return reader, "reads or writes it"
        makers = (maker for at, (behind, maker) in self.pointed.items() if at < end and start < behind)
        maker = next(makers, None)
        return None if maker is None else (maker, "works out its address, and nothing is known to lead there")

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
        """Have the text that follows, where there is any: a piece of it, of a short function what it has."""
        ahead = 2 * self._source.arch.max_insn
        while (missing := self.pos - self.start + ahead - len(self.code)) > 0:
            left = self.end - self.start + ahead - len(self.code)
            more = self._source.read(self.start + len(self.code), max(missing, min(_CHUNK, left)))
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
                if self.stopped or self.pos >= self.end:
                    self._run.clear()  # nothing comes behind it
                return
            read_by_data = {byte for byte, reader in self.literals.items() if self._is_data(reader)}
            self._points = {at: maker for at, maker in self._points.items() if not self._is_data(maker)}
            self.literals = {byte: reader for byte, reader in self.literals.items() if byte not in read_by_data}
            self._begin()
        self._advance(addr)
        while self._behind:  # so much contradicts itself that no round was the last
            self._behind = False
            self._advance(addr)

    def _advance(self, addr: int) -> None:
        arch = self._source.arch
        while self.pos <= addr and not self.stopped and not self._behind:
            if self.pos in self.targets or (not self._reached and self._source.starts(self.pos)):
                self._reached = True
                self._doubt = self.pos - _PADDING
                self._made.clear()
            data = self._data_end(self.pos) or self._pointed_end(self.pos)
            if data:
                self.pos = -(-data // arch.insn_align) * arch.insn_align
                self._in_slot = False
                self._reached = False
                self._run.clear()
                self._known.clear()
                continue
            self._fetch()
            insn = self.decode(self.pos)
            if not self._reached:
                inside = min((at for at in self.pointers if self.pos < at < self.pos + insn.size), default=0)
                if inside and not self._source.starts(inside):  # these bytes are data as well, or padding
                    self.pos = inside
                    continue
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
            if self.literals[addr] not in self.jumps:
                end = max(end, self._pointed_end(addr))
        return end

    def _is_data(self, addr: int) -> bool:
        return addr in self.literals or any(at <= addr < end for at, (end, _) in self.pointed.items())

    def _pointed_end(self, addr: int) -> int:
        """The end of the data at an address that the text works out, and that nothing leads to; 0: it is no such one.

        It goes on to the next place that a branch leads to. Where nobody knows the function's end an address is as
        likely another function's; and it may be that of an instruction to be executed out of its place.
        """
        maker = self.pointers.get(addr)
        if maker is None:
            return 0
        # Code that itself stands between a call and the address shows that the call returns.
        returns = addr - self._doubt >= _PADDING or self._doubt <= maker < addr
        if self._reached and returns:
            return 0
        if self._executing or addr in self._bases or not self._may_be_data(addr):
            return 0
        end = min((to for to in self.targets if to > addr), default=self.end)
        self.pointed[addr] = end, maker
        return end

    def _note(self, insn: Insn) -> None:
        """Take down an instruction, and go on behind it."""
        self._count += 1
        self.marks[insn.addr - self.start] = DELAY_SLOT if self._in_slot else PLAIN
        if not self._reached:
            follows = self._orphans and self._orphans[-1][1] == insn.addr
            start = self._orphans.pop()[0] if follows else insn.addr
            self._orphans.append((start, insn.addr + insn.size))
        self._in_slot = insn.delay_slot
        self.pos += insn.size
        if insn.atomic is Atomic.OPENS:
            self.exclusive |= exclusive.inside(insn, self._unconditioned)
        if insn.operand is not None:
            self._operand(insn)
        if insn.executes is not None:
            self.executed.setdefault(insn.executes, insn)
            self._executing = self._executing or insn.executes == COMPUTED
        if insn.target is not None:
            self._lead(insn.target)
        if insn.table:
            self.tables[insn.addr] = []
            self.pos = self._behind_table(insn)
        read = self._source.arch.walking.table
        table = read(insn, self._run) if read is not None else None
        if table is not None:
            targets = table.targets(self._source.read, self.start, self.end)
            self.tables |= {insn.addr: targets} if insn.indirect or table.base is not None else {}
            self._operand(evolve(insn, operand=table.start, data=table.size * len(targets)))
        for target in self.tables.get(insn.addr, ()):
            self._lead(target)
        self._follow(insn)
        if insn.indirect:
            self._computed(insn)
        self._remember(insn)
        self._leave(insn)

    def _follow(self, insn: Insn) -> None:
        """Addresses that several instructions work out, and what is read or written there."""
        follow = self._source.arch.walking.follow
        use = follow(insn, self._known) if follow is not None else None
        if use is not None:
            self._operand(evolve(insn, operand=use[0], data=use[1]))

    def _lead(self, target: int) -> None:
        """A branch leads to an address."""
        self.targets.add(target)
        # Code that seemed unreached may go on into what was therefore taken for data.
        doubted = [*((at, end) for at, (end, _) in self.pointed.items()),
                   *((low, high) for low, high in self._orphans if high in self.pointed), *self._guessed]
        if any(low <= target < high for low, high in doubted) and target not in self._leads:
            self._leads.add(target)
            self._behind = True

    def _leave(self, insn: Insn) -> None:
        """Note whether the code behind an instruction is reached from it."""
        if insn.target is not None and insn.target != insn.next:
            self._made.clear()
        if insn.links and insn.target != insn.next:
            self._doubt = insn.next
            self._made.clear()
            self._known.clear()
        if self._ends_here(insn):
            self._reached = False
            self._made.clear()
            self._known.clear()

    def _ends_here(self, insn: Insn) -> bool:
        """True where the guest does not go on behind an instruction, or not behind the delay slot that it is."""
        ends, self._ending = self._ending, False
        if insn.falls_through or insn.links:
            return ends
        conditioned, offset = self._source.arch.walking.conditioned, insn.addr - self.start
        if conditioned is not None and conditioned(insn, bytes(self.code[max(offset - 16, 0) : offset])):
            return ends
        self._ending = insn.delay_slot
        return not insn.delay_slot

    def _operand(self, insn: Insn) -> None:
        """Note the target of a pc-relative operand: data, or an address that the text works out."""
        start, end = insn.operand or 0, (insn.operand or 0) + insn.data
        if not insn.data:
            self.pointers.setdefault(start, insn.addr)
            self._made.append(start)
            walked = any(low <= start < high for low, high in self._orphans)
            if walked and start not in self._points and insn.executes is None and self._may_be_data(start):
                self._points[start] = insn.addr
                self._behind = True
        elif self.start < end and start < self.end:
            self.literals.update(dict.fromkeys(range(start, end), insn.addr))
            lo, hi = max(start, self.start) - self.start, min(end, insn.addr) - self.start
            self._behind = self._behind or any(self.marks[lo:hi])

    def _may_be_data(self, addr: int) -> bool:
        """False where an address that the text works out is that of code, whatever leads there."""
        bounded = self.end <= self._source.arch.mask
        return bounded and addr != self.start and addr not in self.executed and not self._source.starts(addr)

    def _behind_table(self, insn: Insn) -> int:
        """Return the address where code goes on behind a jump table.

        That is where its entries end, as many as a comparison before the jump says; or the lowest
        of its targets that lies ahead, or another place that a branch leads to.
        """
        start, size, order = self.pos, insn.table, self._source.arch.order
        bound = self._source.arch.walking.entries
        count = bound(insn, self._run) if bound is not None else None
        align = self._source.arch.insn_align
        if count is None:
            last = end = min((to for to in self.targets if to > start), default=self.end)
        else:
            last = min(start + count * size, self.end)
            end = -(-last // align) * align
        at = start
        while at + size <= min(last, end):
            entry = self._source.read(at, size)
            if len(entry) < size:
                return at
            at += size
            target = start + int.from_bytes(entry, order.value, signed=not insn.table_unit) * (insn.table_unit or 1)
            if target != start:  # else it aligns the code behind it
                self.tables[insn.addr].append(target)
            if at <= target < end:
                end = target
        if count is None:
            self._guessed.append((start, end))
        return end

    def _addresses(self, at: int, jump: Insn) -> None:
        """Note as data the table of a computed jump: addresses in this text, or their distances
        from the table.
        """
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
        self._bases.update(self._made)
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
        """Remember the instructions that always precede the next one, if nothing jumps between; a
        branch that was not taken comes first.
        """
        if self._source.arch.walking.leaves is None and self._source.arch.walking.table is None:
            return
        moves = insn.links or insn.indirect or insn.target is not None or not insn.falls_through
        if moves and (insn.links or not insn.falls_through):
            self._run.clear()
        if not self._skipped and (not moves or (insn.falls_through and not insn.links)):
            self._run.append(insn)
            del self._run[:-_RUN]
        self._skipped = moves and insn.delay_slot and (insn.links or not insn.falls_through)
