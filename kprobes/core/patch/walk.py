"""A walk through text, from an address where an instruction is known to begin.

The walk decodes one instruction after the other and notes what each says of other text: where
branches lead, which bytes are data, which instructions are in a delay slot or in an exclusive
sequence. It goes as far as it is asked to (Walk.reach), and on from there when it is asked again.

Data amid code is the difficult part. Three things tell of it: a symbol marks it; an instruction
reads or writes it (Walk.literals); or an instruction works out its address and nothing is known to
lead there (Walk.pointed). The last two may come to light when the walk has already passed the data
and has taken it for code: then the walk starts again, with what it knows now.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from ...arch._base import COMPUTED, Arch, Atomic, Decoded, Insn, signed
from . import exclusive

#: Marks of a byte: no instruction begins there, one does, one that is in a delay slot does.
NOTHING, PLAIN, DELAY_SLOT = range(3)
#: The most instructions that a walk decodes. Without a bound the first question about a large
#: stretch of zeros would take minutes.
MOST = 1 << 16
_CHUNK = 1024  # bytes read at a time
_ROUNDS = 16  # how often a walk starts again because data was taken for code
_PRECEDING = 64  # instructions remembered that precede the next one
_PROOF = 16  # of these, the last ones that may prove that a computed jump leaves the function
#: The most bytes of padding between a call that does not return and data behind it.
_PADDING = 16
_CONDITION = 16  # bytes before an instruction that may make it conditional (Thumb's IT)


@frozen
class WalkedText:
    """The text that walks go through.

    Attributes:
        arch: the guest's architecture.
        read: (addr, size) -> original bytes, fewer where memory ends.
        data_end: (addr) -> end of the data that symbols mark at an address; 0 where none is.
        starts: (addr) -> True where a symbol says that a function, or code, begins.
    """

    arch: Arch
    read: Callable[[int, int], bytes]
    data_end: Callable[[int], int]
    starts: Callable[[int], bool]


class Walk:
    """The instructions from `start` on, and not beyond `end`.

    Where an attribute maps to an instruction, that is its address, unless said otherwise.

    Attributes:
        start: where the walk begins.
        end: where it must end.
        mode: mode bits of the code.
        code: the bytes read so far, from `start` on.
        marks: a mark for each of them: NOTHING, PLAIN or DELAY_SLOT.
        pos: address of the next instruction.
        stopped: why the walk cannot go on; "" while it can.
        literals: address of a byte of data -> the instruction that reads or writes it.
        exclusive: addresses inside exclusive sequences.
        executed: target of an EXECUTE, or COMPUTED -> the EXECUTE (an Insn).
        pointers: address that the text works out -> the instruction that does.
        pointed: start of data that is known only by its address -> (its end, the instruction that
            works the address out).
        targets: addresses that direct branches lead to.
        tables: jump through a table -> where the table's entries lead.
        jumps: computed jump -> its name. Jumps through tables are among them.
        leaving: computed jump that is a return or a tail call -> the first of the instructions
            that prove it.
    """

    __slots__ = (
        "_behind_call",
        "_count",
        "_earlier_pointers",
        "_earlier_targets",
        "_executes_computed",
        "_guessed_tables",
        "_in_slot",
        "_needs_round",
        "_preceding",
        "_reached",
        "_recent_pointers",
        "_registers",
        "_slot_ends",
        "_slot_of_jump",
        "_source",
        "_table_bases",
        "_unreached",
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
    )

    def __init__(self, source: WalkedText, start: int, end: int, mode: int) -> None:
        """Begin at `start`; nothing is decoded yet (reach() does that).

        Args:
            source: the text.
            start: address of the first instruction.
            end: address that the walk must not go beyond.
            mode: mode bits of the code.
        """
        self._source = source
        self.start = start
        self.end = end
        self.mode = mode
        self.code = bytearray()
        self.literals: dict[int, int] = {}
        # what earlier rounds have found out about text that they had already passed:
        self._earlier_pointers: dict[int, int] = {}  # as `pointers`, of data taken for code
        self._earlier_targets: set[int] = set()  # as `targets`, of code taken for data
        self._executes_computed = False  # there is an EXECUTE whose target is computed
        self._begin()

    def _begin(self) -> None:
        """Start a round at `start`: forget all that the last one has noted but for `literals`, and
        the targets and pointers that it was repeated for.
        """
        self.marks = bytearray(len(self.code))
        self.pos = self.start
        self.stopped = ""
        self.exclusive: set[int] = set()
        self.executed: dict[int, Insn] = {}
        self.pointers: dict[int, int] = self._earlier_pointers.copy()
        self.pointed: dict[int, tuple[int, int]] = {}
        self.targets: set[int] = self._earlier_targets.copy()
        self.tables: dict[int, list[int]] = {}
        self.jumps: dict[int, str] = {}
        self.leaving: dict[int, int] = {}
        self._needs_round = False  # as bytes before `pos` are not what they seemed
        self._count = 0  # instructions so far
        self._preceding: list[Insn] = []  # those that always come before the next one
        # of the instruction at `pos`:
        self._in_slot = False  # it is in a delay slot
        self._slot_of_jump = False  # that of a call or a jump that is always taken
        self._slot_ends = False  # that of an instruction behind which the guest does not go on
        self._reached = True  # something is known to lead to it
        self._behind_call = -_PADDING  # address behind the last call, which may not return
        # stretches (start, end) that were decoded although nothing is known to lead there
        self._unreached: list[tuple[int, int]] = []
        # jump tables (start, end) whose end is only supposed
        self._guessed_tables: list[tuple[int, int]] = []
        # addresses worked out since the last branch, call or branch target
        self._recent_pointers: list[int] = []
        self._table_bases: set[int] = set()  # addresses that a computed jump may have as its base
        self._registers: dict[int, int] = {}  # register -> the address that it holds, where known

    # --- questions

    def mark(self, addr: int) -> int:
        """Return the mark of an address: PLAIN where an instruction begins, DELAY_SLOT where one in
        a delay slot does.

        NOTHING elsewhere, and where the walk has not come yet.
        """
        if self.start <= addr < self.start + len(self.marks):
            return self.marks[addr - self.start]
        return NOTHING

    def begins(self) -> list[int]:
        """Return the addresses where instructions begin, as far as the walk has come."""
        return [self.start + offset for offset, mark in enumerate(self.marks) if mark]

    def reader(self, start: int, end: int) -> int | None:
        """Return the address of an instruction that reads or writes a byte of [start, end).

        Of several instructions it is one that uses the lowest byte.

        Args:
            start: address of the first byte.
            end: address behind the last byte.

        Returns:
            None: no instruction does, as far as the walk has come.
        """
        for addr in range(start, end):
            if addr in self.literals:
                return self.literals[addr]
        return None

    def data_user(self, start: int, end: int) -> tuple[int, str] | None:
        """Find an instruction that shows that [start, end) holds data.

        Args:
            start: address of the first byte.
            end: address behind the last byte.

        Returns:
            (address of the instruction, what it does with the data); None: no instruction shows it.
        """
        reader = self.reader(start, end)
        if reader is not None:
            return reader, "reads or writes it"
        for at, (behind, maker) in self.pointed.items():
            if at < end and start < behind:
                return maker, "works out its address, and nothing is known to lead there"
        return None

    def decode(self, addr: int) -> Insn:
        """Return the instruction at an address, in the walk's mode."""
        arch = self._source.arch
        size = 2 * arch.max_insn
        text = arch.text_of(addr)
        offset = text - self.start
        code = bytes(self.code[offset : offset + size]) if offset >= 0 else b""
        if len(code) != size:
            code = self._source.read(text, size)
        return arch.decode(code, addr | self.mode)

    def _is_conditioned(self, insn: Insn) -> bool:
        """Return True if an earlier instruction may make this one conditional (Thumb's IT)."""
        conditioned = self._source.arch.walking.conditioned
        if conditioned is None:
            return False
        offset = max(insn.addr - self.start, 0)
        return conditioned(insn, bytes(self.code[max(offset - _CONDITION, 0) : offset]))

    def _unconditioned(self, addr: int) -> Insn:
        """Return the instruction at an address; if an earlier one may make it conditional,
        `falls_through` is True.

        Decoding alone does not tell that (Thumb's IT).
        """
        insn = self.decode(addr)
        if insn.falls_through or not self._is_conditioned(insn):
            return insn
        return evolve(insn, falls_through=True)

    def _fetch(self) -> None:
        """Read the text that the next instruction needs, and more: of a short function all, and
        behind `end` as much as two instructions may have.

        `code` and `marks` grow; nothing happens where memory ends.
        """
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
        """Walk on until an address is passed, or the walk cannot go on (`stopped`) or is at `end`.

        Where data turns out to have been taken for code, the walk starts again from `start`; after
        _ROUNDS rounds what the last one says stays.

        Args:
            addr: the address.
        """
        addr = min(addr, self.end - 1)
        for _ in range(_ROUNDS):
            self._advance(addr)
            if not self._needs_round:
                if self.stopped or self.pos >= self.end:
                    self._preceding.clear()  # free it: no instruction follows
                return
            # what was said by instructions that turned out to be data does not count
            self._earlier_pointers = {
                at: maker
                for at, maker in self._earlier_pointers.items()
                if not self._is_data(maker)
            }
            said_by_data = {at for at, reader in self.literals.items() if self._is_data(reader)}
            self.literals = {
                at: reader for at, reader in self.literals.items() if at not in said_by_data
            }
            self._begin()
        self._advance(addr)
        # the text contradicts itself: be content with what the last round says
        while self._needs_round:
            self._needs_round = False
            self._advance(addr)

    def _advance(self, addr: int) -> None:
        """Decode instructions from `pos` on until `addr` is passed.

        Ends earlier where the walk is stopped (`stopped`), or needs a new round (`_needs_round`).

        Args:
            addr: the address.
        """
        arch = self._source.arch
        while self.pos <= addr and not self.stopped and not self._needs_round:
            if self.pos in self.targets or (not self._reached and self._source.starts(self.pos)):
                self._reached = True
                self._behind_call = self.pos - _PADDING
                self._recent_pointers.clear()
            data = self._data_end(self.pos) or self._pointed_end(self.pos)
            if data:
                self.pos = -(-data // arch.insn_align) * arch.insn_align
                self._in_slot = False
                self._reached = False
                self._preceding.clear()
                self._registers.clear()
                continue
            self._fetch()
            insn = self.decode(self.pos)
            if not self._reached:
                inside = min(
                    (at for at in self.pointers if self.pos < at < self.pos + insn.size), default=0
                )
                if inside and not self._source.starts(inside):
                    # the bytes before the data at `inside` are no instruction: data, or padding
                    self.pos = inside
                    continue
            if insn.decoded is Decoded.TRUNCATED or (
                insn.decoded is Decoded.UNDEFINED and not arch.in_step
            ):
                self.stopped = f"bytes at {self.pos:#x} are no instruction ({insn.reject})"
            elif self._count == MOST:
                self.stopped = (
                    f"instructions are followed to {self.pos:#x}, {MOST:,} of them, and no farther"
                )
            else:
                self._take(insn)

    def _data_end(self, addr: int) -> int:
        """Return the address behind the data that an address lies in; 0: it is in no known data.

        Known is data that has a symbol or a mapping symbol, and data that an instruction of the
        walk reads or writes (`literals`).
        """
        end = self._source.data_end(addr)
        if not end and addr in self.literals:
            end = addr + 1
            while end in self.literals:
                end += 1
            if self.literals[addr] not in self.jumps:
                end = max(end, self._pointed_end(addr))
        return end

    def _is_data(self, addr: int) -> bool:
        """Return True if an address is known to hold data."""
        return addr in self.literals or any(
            at <= addr < end for at, (end, _) in self.pointed.items()
        )

    def _pointed_end(self, addr: int) -> int:
        """Find data at `addr` that is known only by its address; note it in `pointed`; return its
        end. 0: there is none.

        An address is taken for that of data where an instruction works it out and the guest is not
        known to come there: no branch leads to it, and the code before it does not go on to it. (A
        call right before it may be one that never returns.) The data ends at the next address that
        a branch leads to, or else where the walk must end.

        Nothing is taken for data where the function's end is not known, because the address may be
        that of another function; nor where an EXECUTE has a computed target, because the
        instruction that is executed may be there; nor what a computed jump may have as its base.
        """
        maker = self.pointers.get(addr)
        if maker is None:
            return 0
        # The last call may not return, and then nothing leads here. It does return if more than
        # padding lies between, or the very code that works this address out.
        returns = addr - self._behind_call >= _PADDING or self._behind_call <= maker < addr
        if self._reached and returns:
            return 0
        if self._executes_computed or addr in self._table_bases or not self._may_be_data(addr):
            return 0
        end = min((to for to in self.targets if to > addr), default=self.end)
        self.pointed[addr] = end, maker
        return end

    def _take(self, insn: Insn) -> None:
        """Note what an instruction says of other text, and set `pos` to where the walk goes on.

        That is behind the instruction, or behind the jump table that follows it.

        Args:
            insn: the instruction at `pos`.
        """
        self._count += 1
        self.marks[insn.addr - self.start] = DELAY_SLOT if self._in_slot else PLAIN
        if not self._reached:
            continues = self._unreached and self._unreached[-1][1] == insn.addr
            start = self._unreached.pop()[0] if continues else insn.addr
            self._unreached.append((start, insn.addr + insn.size))
        self._in_slot = insn.delay_slot
        self.pos += insn.size
        if insn.atomic is Atomic.OPENS:
            self.exclusive |= exclusive.inside(insn, self._unconditioned)
        if insn.operand is not None:
            self._note_operand(insn)
        if insn.executes is not None:
            self.executed.setdefault(insn.executes, insn)
            self._executes_computed = self._executes_computed or insn.executes == COMPUTED
        if insn.target is not None:
            self._note_target(insn.target)
        if insn.table:
            self.tables[insn.addr] = []
            self.pos = self._behind_table(insn)
        read = self._source.arch.walking.table
        table = read(insn, self._preceding) if read is not None else None
        if table is not None:
            targets = table.targets(self._source.read, self.start, self.end)
            if insn.indirect or table.base is not None:
                self.tables[insn.addr] = targets
            self._note_operand(evolve(insn, operand=table.start, data=table.size * len(targets)))
        for target in self.tables.get(insn.addr, ()):
            self._note_target(target)
        self._note_worked_out(insn)
        if insn.indirect:
            self._note_computed_jump(insn)
        self._note_preceding(insn)
        self._note_reach(insn)

    def _note_worked_out(self, insn: Insn) -> None:
        """Note an address that several instructions work out together, where `insn` completes it.

        Args:
            insn: the instruction that the walk has just taken.
        """
        follow = self._source.arch.walking.follow
        use = follow(insn, self._registers) if follow is not None else None
        if use is not None:
            self._note_operand(evolve(insn, operand=use[0], data=use[1]))

    def _note_target(self, target: int) -> None:
        """Add an address to `targets`, as a branch leads there.

        If what is there was taken for data, the walk starts again; also if it seemed unreached and
        goes on into what was taken for data for that reason.

        Args:
            target: the address.
        """
        self.targets.add(target)
        doubted = [
            *((at, end) for at, (end, _) in self.pointed.items()),
            *((low, high) for low, high in self._unreached if high in self.pointed),
            *self._guessed_tables,
        ]
        if target not in self._earlier_targets and any(
            low <= target < high for low, high in doubted
        ):
            self._earlier_targets.add(target)
            self._needs_round = True

    def _note_reach(self, insn: Insn) -> None:
        """Update what is known of the code behind an instruction: whether it is reached, or follows
        a call.

        Addresses that were worked out are forgotten at a branch, a call and an end of the path;
        what registers hold, at a call and an end.

        Args:
            insn: the instruction that the walk has just taken.
        """
        if insn.target is not None and insn.target != insn.next:
            self._recent_pointers.clear()
        if insn.links and insn.target != insn.next:
            self._behind_call = insn.next
            self._recent_pointers.clear()
            self._registers.clear()
        if self._ends_here(insn):
            self._reached = False
            self._recent_pointers.clear()
            self._registers.clear()

    def _ends_here(self, insn: Insn) -> bool:
        """Return True where the guest does not go on behind an instruction.

        For a jump with a delay slot this is False, and True for the instruction in the slot, which
        is asked about next. Remembers in `_slot_ends` that it is to be so.

        Args:
            insn: the instruction.
        """
        ends, self._slot_ends = self._slot_ends, False
        if insn.falls_through or insn.links or self._is_conditioned(insn):
            return ends
        self._slot_ends = insn.delay_slot
        return not insn.delay_slot

    def _note_operand(self, insn: Insn) -> None:
        """Note what a pc-relative operand refers to: data, or an address that the text works out.

        If that was passed already and taken for code, the walk starts again.

        Args:
            insn: an instruction; `operand` is the address, `data` the bytes of data there, 0 where
                only the address is worked out.
        """
        start = insn.operand or 0
        end = start + insn.data
        if not insn.data:
            self.pointers.setdefault(start, insn.addr)
            self._recent_pointers.append(start)
            walked = any(low <= start < high for low, high in self._unreached)
            if (
                walked
                and start not in self._earlier_pointers
                and insn.executes is None
                and self._may_be_data(start)
            ):
                self._earlier_pointers[start] = insn.addr
                self._needs_round = True
        elif self.start < end and start < self.end:
            self.literals.update(dict.fromkeys(range(start, end), insn.addr))
            lo = max(start, self.start) - self.start
            hi = min(end, insn.addr) - self.start
            self._needs_round = self._needs_round or any(self.marks[lo:hi])

    def _may_be_data(self, addr: int) -> bool:
        """Return True if an address that the text computes may be an address of data.

        False where code is known to begin at the address. False for every address where the end of
        the function is not known.
        """
        bounded = self.end <= self._source.arch.mask
        return (
            bounded
            and addr != self.start
            and addr not in self.executed
            and not self._source.starts(addr)
        )

    def _behind_table(self, insn: Insn) -> int:
        """Read the jump table behind a jump: add its targets to `tables`, and return where code
        goes on.

        Code goes on where the table ends. A comparison before the jump says how many entries it
        has. Otherwise it ends at the lowest of its targets that lies ahead, or where a branch
        leads; such an end is noted as a guess, which a later branch may prove wrong.

        Args:
            insn: the jump; its table begins at `pos`, and the jump is a key in `tables` already.
        """
        start = self.pos
        size = insn.table  # bytes of an entry
        order = self._source.arch.order
        bound = self._source.arch.walking.entries
        count = bound(insn, self._preceding) if bound is not None else None
        align = self._source.arch.insn_align
        # no entry lies behind `last`; code goes on at `end`
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
            value = int.from_bytes(entry, order.value, signed=not insn.table_unit)
            target = start + value * (insn.table_unit or 1)
            if target != start:  # an entry of 0 only aligns the code behind the table
                self.tables[insn.addr].append(target)
            if at <= target < end:
                end = target
        if count is None:
            self._guessed_tables.append((start, end))
        return end

    def _note_address_table(self, at: int, jump: Insn) -> None:
        """Note the bytes of a computed jump's table in `literals`; `tables` stays as it is.

        Args:
            at: where the table begins. Each entry is a word: an aligned address in this text, or
                its distance from the table's beginning. The table ends before the first entry that
                is neither.
            jump: the computed jump.
        """
        arch = self._source.arch
        size = arch.bits // 8
        table = at
        while len(entry := self._source.read(at, size)) == size:
            value = int.from_bytes(entry, arch.order.value)
            if not any(
                self.start <= to < self.end and to % arch.insn_align == 0
                for to in (value, table + signed(value, arch.bits))
            ):
                return
            self.literals.update(dict.fromkeys(range(at, at + size), jump.addr))
            at += size

    def _note_computed_jump(self, insn: Insn) -> None:
        """Note a computed jump in `jumps`, and in `leaving` where it is proved to leave the
        function.

        The bytes of its table are added to `literals` where that begins at the jump's operand, or
        right behind the jump if the text works that address out. Any address worked out since the
        last branch, call or branch target may be a table's base: all are added to `_table_bases`.
        `tables` stays as it is.

        Args:
            insn: the jump that the walk has just taken.
        """
        self.jumps[insn.addr] = insn.name
        self._table_bases.update(self._recent_pointers)
        if insn.operand is not None and not insn.data:
            self._note_address_table(insn.operand, insn)
        elif self.pos in self.pointers and not insn.falls_through:
            self._note_address_table(self.pos, insn)
        leaves = self._source.arch.walking.leaves
        if leaves is None:
            return
        last_branch = max(
            (n for n, i in enumerate(self._preceding) if i.indirect or i.target is not None),
            default=0,
        )
        proof = leaves(insn, self._preceding[last_branch:][-_PROOF:])
        if proof is not None:
            self.leaving[insn.addr] = proof.addr

    def _note_preceding(self, insn: Insn) -> None:
        """Add an instruction to those that precede the next one (`_preceding`).

        A call and a jump that is always taken end the list: another path may lead behind them.
        Nothing is noted where the architecture looks for neither tables nor jumps that leave a
        function.

        Args:
            insn: the instruction that the walk has just taken.
        """
        if self._source.arch.walking.leaves is None and self._source.arch.walking.table is None:
            return
        ends = insn.links or not insn.falls_through
        if ends:
            self._preceding.clear()
        elif not self._slot_of_jump:
            self._preceding.append(insn)
            del self._preceding[:-_PRECEDING]
        self._slot_of_jump = ends and insn.delay_slot
