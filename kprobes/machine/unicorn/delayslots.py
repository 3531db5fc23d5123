"""Branches that wait for their delay slot when a run stops (Runs.settle).

The engine keeps such a branch pending: it takes the branch after the next instruction that it
executes, whichever that is.
"""

from __future__ import annotations

from unicorn import unicorn_const as const

from ...arch._base import Insn
from .cpu import UnicornCpu
from .engine import CODE
from .runstate import RunState
from .starts import Starts


class DelaySlots:
    """Deals with branches that wait for their delay slot: has them taken or dropped before the
    guest is sent elsewhere, and makes others wait.

    Attributes:
        pending: the guest may have stopped in a delay slot.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, starts: Starts) -> None:
        """Prepare; nothing is executed.

        Args:
            cpu: whose branches are dealt with.
            state: of its runs.
            starts: starts the engine, to execute single instructions.
        """
        self._cpu = cpu
        self._state = state
        self._starts = starts
        self.pending = False
        # (pc, bytes of the instructions there) where no branch waits, of the last look
        self._free: tuple[int, bytes] = (-1, b"")
        self._edge = 0  # address of the second of two pages, for _jump_across(); 0: not mapped yet
        self._stopping = CODE(lambda *_: cpu.engine.stop())

    @property
    def snapshot_state(self) -> bool:
        """The part of this object that a snapshot keeps: `pending`."""
        return self.pending

    @snapshot_state.setter
    def snapshot_state(self, then: bool) -> None:
        """Set `pending` to what a snapshot has kept."""
        self.pending = then

    def finish_branch(self, reported: int | None) -> None:
        """Have the engine execute a branch that waits for its delay slot, so that the branch takes
        no effect where the guest is sent next.

        Called before the caller sets pc. A NOP is executed in place of the instruction in the delay
        slot (leave()), and `pending` becomes False. Where the CPU has a next pc, that is made to
        follow pc instead: the branch is dropped. Without a waiting branch nothing is executed.

        Args:
            reported: address of the instruction that was reported, which may be in the delay slot;
                None: the guest's pc is that address.
        """
        m, state = self._cpu, self._state
        if m.pair is not None:
            m.write_pc(m.pair[0])
        if m.guest.runs.settle and state.exit and self.waits(reported):
            self.pending = False
            self.leave()

    def waits(self, reported: int | None) -> bool:
        """Return True where the guest may stand in a delay slot (or in a forbidden slot), so that
        the engine would apply the branch before it to whatever is executed next. Only on guests
        with Runs.settle.

        Args:
            reported: address of the instruction that was reported; None: the guest's pc is that
                address.
        """
        if self.pending and self._state.depth == 0:
            return True
        pc = self._cpu.read_pc() if reported is None else reported
        code = self._code(pc)
        if self._free == (pc, code):
            return False
        found = self._behind_branch(*self._decoded(pc, code))
        if not found:
            self._free = pc, code
        return found

    def _behind_branch(self, before: Insn, insn: Insn) -> bool:
        """Return True where an instruction is in a delay slot, or in the forbidden slot of a
        conditional compact branch (MIPS release 6).

        The engine takes the next instruction for the one in that slot, wherever it is.

        Args:
            before: the instruction before.
            insn: the instruction that may be in the slot.
        """
        conditioned = self._cpu.arch.walking.conditioned
        return before.delay_slot or (conditioned is not None and conditioned(insn, before.raw))

    def wait(self, slot: int, target: int) -> None:
        """Have the guest stand in the delay slot of a branch that is pending: set pc to the slot,
        and have the branch taken when the guest goes on.

        Nothing is done, and pc stays, where the CPU has no next pc and the engine no jump for this
        (Runs.jump), or where `target` follows the slot.

        Args:
            slot: address of the delay slot.
            target: address that the branch leads to.
        """
        m, jump = self._cpu, self._cpu.guest.runs.jump
        if m.pair is not None:
            m.pair[0], m.pair[1] = slot, target
        elif jump and target != slot + len(jump):
            self._jump_across(target)
            m.write_pc(m.arch.pointers.same_mode(m.regs, slot))

    def _jump_across(self, target: int) -> None:
        """Execute a jump to `target` at the end of a page of the library's, so that the guest stops
        in the jump's delay slot, in the next page.

        The two pages are mapped at the first call. The jump goes by the link register, which is put
        back. A hook there would do the same, but an attached engine's owner may have one, too.
        """
        m, jump = self._cpu, self._cpu.guest.runs.jump
        if not self._edge:
            self._edge = m.memory.map_code(pages=2) + m.memory.page_size
            m.memory.fill(self._edge - m.memory.page_size, 2 * m.memory.page_size)
            m.memory.patch(self._edge - len(jump), jump)
        assert m.arch.linkage is not None
        link = m.arch.linkage.register
        before, m.regs[link] = m.regs[link], target
        try:
            self._starts.start_outside_of_run(self._edge - len(jump), self._edge)
        finally:
            m.regs[link] = before

    def leave(self) -> None:
        """Execute a NOP in place of the instruction in the delay slot, which takes the pending
        branch, and stop before its target is fetched.

        pc is the branch's target afterwards.
        """
        m, state, nop = self._cpu, self._state, self._cpu.guest.runs.settle
        place = state.exit + m.memory.page_size - 2 * len(nop)
        trap = m.engine.read(place, len(nop)) or b""
        m.memory.patch(place, nop)
        hook = m.engine.hook(const.UC_HOOK_CODE, self._stopping, place, place)
        # a target that cannot be fetched is no fault: the guest does not go there
        state.trial = True
        try:
            self._starts.start_outside_of_run(place, 0)
        finally:
            state.trial = False
            m.engine.unhook(hook)
            m.memory.patch(place, trap)

    def holds(self, pc: int) -> bool:
        """Return True where the instruction at `pc` is in a delay slot."""
        return self._two(pc)[0].delay_slot

    def goes_along(self, pc: int) -> bool:
        """Return True where the instruction at `pc` is executed together with the branch before it,
        and counts as one with it: it is in a delay slot or forbidden slot, and neither jumps itself
        nor is one that no probe may be at (Insn.reject).

        A jump alone may be a loop.
        """
        before, insn = self._two(pc)
        jumps = insn.target is not None or insn.links or not insn.falls_through or insn.reject
        return self._behind_branch(before, insn) and not (insn.delay_slot or jumps)

    def _two(self, pc: int) -> tuple[Insn, Insn]:
        """Return the decoded instructions in front of `pc` and at it."""
        return self._decoded(pc, self._code(pc))

    def _code(self, pc: int) -> bytes:
        """Return the bytes of the instructions in front of `pc` and at it, without the core's
        patches; b"": they are not mapped.
        """
        sink, size = self._state.sink, len(self._cpu.guest.runs.settle)
        code = self._cpu.engine.read(pc - size, 2 * size) or b""
        return code if sink is None else sink.without_patches(pc - size, code)

    def _decoded(self, pc: int, code: bytes) -> tuple[Insn, Insn]:
        """Decode the instructions in front of `pc` and at it.

        Args:
            pc: address of the second one.
            code: bytes of both.
        """
        m, size = self._cpu, len(self._cpu.guest.runs.settle)
        return m.arch.decode(code, pc - size), m.arch.decode(code[size:], pc)
