"""The shape of a program, checked before any of it is walked: functions, jumps, and which registers
matter where.

Refused here: what does not decode, jumps out of a function, code that no path reaches, recursion,
calls of what does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Final

from .. import isa
from ..code import Code
from ..helpers import HELPERS, Arg
from ..isa import Instruction
from ..maps import MapType
from .budget import Budget

#: instructions of one program; also how many may be walked (Linux's number)
LIMIT: Final = 1_000_000
_CALLER_SAVED: Final = 0b111111  # r0 .. r5
_ARGUMENTS: Final = 0b111110
CALLEE_SAVED: Final = 0b1111000000
#: kinds of LDDW -> what it loads, what to do instead
_USELESS: Final = {
    isa.CODE: ("the address of a function", "call it directly"),
    isa.VARIABLE: ("a kernel's variable", ""),
}


class ProgramFlow:
    """The shape of a program.

    Attributes:
        starts: first slot of each function.
        joins: slots that several ways lead to.
        leaving: slots of conditional jumps that may leave a loop.
        live: slot -> bits of the registers whose values may still be used when it is reached.
        exact: slot -> bits of those registers that may bear upon an address, a size, a branch or
            the stack; of the others it only matters that they are numbers.
    """

    def __init__(self, code: Code, budget: Budget) -> None:
        """Find the program's shape, and check it.

        Args:
            code: the program.
            budget: how long the whole verification may take.

        Raises:
            ProgramError: the program is refused for its shape, or the time is over.
        """
        self.code = code
        self._budget = budget
        self._stores = False
        self._decided: Set[int] = frozenset()
        self._insns = code.instructions
        if not self._insns:
            raise code.error("there are no instructions", hint="a program is at least r0 = 0; exit")
        if len(self._insns) > LIMIT:
            raise code.error(f"{len(self._insns)} instructions", hint=f"{LIMIT} are the most")
        self._heads = {pc for pc, _ in isa.steps(self._insns)}
        for pc in budget.rounds(self._heads):
            self._check(pc, self._insns[pc])
        self.starts = self._functions()
        self._owner = self._owners()
        self.joins = self._walk()
        self._order = self._check_calls()
        self.leaving = self._leaving()
        self.find_exact(self.leaving, False)

    def find_exact(self, decided: Set[int], stores: bool) -> None:
        """Compute `live` and `exact` anew; called before each walk over all paths.

        Args:
            decided: slots of branches that are walked only as the numbers that they compare allow:
                so these numbers matter.
            stores: True where the program stores to the stack by other registers than r10: so the
                numbers that any store stores matter.

        Raises:
            ProgramError: the time is over.
        """
        self._decided = decided
        self._stores = stores
        self.live = [0] * len(self._insns)
        self.exact = [0] * len(self._insns)
        slots: dict[int, list[int]] = {start: [] for start in self.starts}
        for pc in sorted(self._heads, reverse=True):
            slots[self._owner[pc]].append(pc)
        for start in self._order:
            self._flow_back(slots[start])

    # ---- single instructions

    def _check(self, pc: int, insn: Instruction) -> None:
        """Check an instruction by itself: it decodes, r10 stays, and what it calls or loads exists.

        Args:
            pc: slot of the instruction.
            insn: the instruction.

        Raises:
            ProgramError: one of these does not hold.
        """
        why = insn.why_illegal()
        if why:
            raise self.code.error(
                f"is not a legal instruction: {why}",
                pc,
                "compile with clang's BPF target, -mcpu=v4 or below",
            )
        if insn.cls in (isa.ALU, isa.ALU64, isa.LDX, isa.LD) and insn.dst == 10:
            raise self.code.error(
                "writes to r10, the frame pointer, which is read-only",
                pc,
                "copy it to another register first",
            )
        if insn.wide:
            self._check_wide(pc, insn)
        elif insn.opcode == isa.JMP | isa.CALL and insn.src == isa.BTF_CALL:
            raise self.code.error(
                f"calls kernel function {insn.imm}, and there is no kernel here", pc, "use a helper"
            )
        elif insn.is_helper_call and insn.imm not in HELPERS:
            raise self.code.error(
                f"calls helper {insn.imm}, which there is not here",
                pc,
                "docs/programs.md lists the helpers",
            )

    def _check_wide(self, pc: int, insn: Instruction) -> None:
        """Check that an LDDW loads a number, a map, or the address of a variable.

        Args:
            pc: slot of the LDDW.
            insn: the LDDW.

        Raises:
            ProgramError: it loads something else; a map that the program does not have; or an
                address in a map that is no array with one entry, or beyond that entry.
        """
        if insn.src == isa.VALUE64:
            return
        if insn.src not in (isa.MAP, isa.MAP_VALUE):
            what, hint = _USELESS.get(insn.src, ("a map by its file descriptor", ""))
            raise self.code.error(f"loads {what}, which there is no use for here", pc, hint)
        if not 0 <= insn.imm < len(self.code.maps):
            raise self.code.error(
                f"loads map {insn.imm}, but the program has {len(self.code.maps)}", pc
            )
        of = self.code.maps[insn.imm]
        if insn.src == isa.MAP_VALUE:
            if of.type is not MapType.ARRAY or of.max_entries != 1:
                raise self.code.error(
                    f"loads the address of a value of map {of.name}",
                    pc,
                    "that is for arrays with one entry; use bpf_map_lookup_elem()",
                )
            if not 0 <= insn.high <= of.value_size:
                what = f"byte {insn.high} of map {of.name}, which has {of.value_size}"
                raise self.code.error(f"loads the address of {what}", pc)

    # ---- functions and jumps

    def _functions(self) -> tuple[int, ...]:
        """Return the first slots of all functions, in order.

        Raises:
            ProgramError: a local call leads to no instruction.
        """
        starts = {0, *self._heads & self.code.functions.keys()}
        for pc in self._heads:
            if self._insns[pc].is_local_call:
                starts.add(self._target(pc))
        return tuple(sorted(starts))

    def _target(self, pc: int) -> int:
        """Return the slot that a jump or a call leads to.

        Args:
            pc: slot of the jump or call.

        Raises:
            ProgramError: no instruction begins there.
        """
        to = self._insns[pc].target(pc)
        if to not in self._heads:
            where = (
                "the middle of an instruction"
                if 0 <= to < len(self._insns)
                else "outside the program"
            )
            raise self.code.error(
                f"leads to {where} ({to})",
                pc,
                f"the program has instructions 0..{len(self._insns) - 1}",
            )
        return to

    def _owners(self) -> list[int]:
        """Return for each slot the first slot of its function."""
        owners = []
        starts = set(self.starts)
        current = 0
        for pc in range(len(self._insns)):
            current = pc if pc in starts else current
            owners.append(current)
        return owners

    def following(self, pc: int) -> Iterator[int]:
        """Yield the slots where an instruction may go on within its function.

        A call goes on behind itself.

        Args:
            pc: slot of the instruction.

        Raises:
            ProgramError: a jump leads to no instruction.
        """
        insn = self._insns[pc]
        if insn.is_exit:
            return
        if insn.is_jump:
            yield self._target(pc)
        if not insn.is_jump or insn.is_conditional:
            yield pc + (2 if insn.wide else 1)

    def _walk(self) -> set[int]:
        """Check that every instruction is reached, and that no jump leaves its function.

        Returns:
            The slots that several ways lead to.

        Raises:
            ProgramError: a jump leaves its function, code is never reached, or the time is over.
        """
        seen = set(self.starts)
        joins = set()
        todo = list(self.starts)
        for pc in self._budget.rounds(_popped(todo)):
            for to in self.following(pc):
                if to >= len(self._insns) or self._owner[to] != self._owner[pc]:
                    where = (
                        "leads into another function"
                        if to < len(self._insns)
                        else "runs past the program's end"
                    )
                    raise self.code.error(
                        where, pc, "a function ends with exit; functions are called"
                    )
                if to in seen:
                    joins.add(to)
                else:
                    seen.add(to)
                    todo.append(to)
        dead = self._heads - seen
        if dead:
            raise self.code.error("is unreachable: no path leads there", min(dead), "remove it")
        return joins

    def _check_calls(self) -> list[int]:
        """Check that no function calls itself, and that each is called. `_callees` is set.

        Returns:
            The functions' first slots, callees before their callers.

        Raises:
            ProgramError: there is recursion, calls that are too deep, or a function that nothing
                calls; or the time is over.
        """
        callees: dict[int, dict[int, int]] = {start: {} for start in self.starts}
        for pc in sorted(self._heads):
            if self._insns[pc].is_local_call:
                callees[self._owner[pc]].setdefault(self._target(pc), pc)
        done: dict[int, None] = {}  # in order
        active: list[int] = []

        def visit(start: int, at: int | None) -> None:
            """Walk the functions that a function calls, and enter it into `done` behind them.

            Args:
                start: its first slot.
                at: slot of the call that leads to it, for the error; None: it is the entry
                    function.

            Raises:
                ProgramError: the function is among its own callers, or the calls are too deep.
            """
            if start in active:
                name = self.code.functions.get(start, f"the function at {start}")
                raise self.code.error(
                    f"calls {name}, which is running already: recursion",
                    at,
                    "use a loop with a bound",
                )
            if start in done:
                return
            active.append(start)
            if len(active) > isa.FRAMES:
                raise self.code.error(
                    f"calls are {len(active)} deep",
                    at,
                    f"{isa.FRAMES} functions may be active at a time; inline some",
                )
            for callee, pc in self._budget.rounds(callees[start].items()):
                visit(callee, pc)
            active.pop()
            done[start] = None

        visit(0, None)
        for start in self.starts:
            if start not in done:
                raise self.code.error(
                    "is unreachable: no instruction calls this function", start, "remove it"
                )
        self._callees = callees
        return list(done)

    def deepest(self, stack: Mapping[int, int]) -> tuple[int, tuple[int, ...]]:
        """Find the chain of calls whose functions take the most stack together.

        Args:
            stack: first slot of a function -> bytes of its stack.

        Returns:
            (bytes, these functions, callers first).
        """

        @cache
        def of(start: int) -> tuple[int, tuple[int, ...]]:
            size, chain = max((of(callee) for callee in self._callees[start]), default=(0, ()))
            return size + stack.get(start, 0), (start, *chain)

        return of(0)

    def _leaving(self) -> frozenset[int]:
        """Return the slots of conditional jumps in loops that have one way out of the loop.

        Raises:
            ProgramError: the time is over.
        """
        before: dict[int, list[int]] = {}
        for pc in self._heads:
            for to in self.following(pc):
                before.setdefault(to, []).append(pc)
        found = set()
        for begin, ways in self._budget.rounds(before.items()):
            todo = [pc for pc in ways if pc >= begin]
            if not todo:
                continue
            inside = {begin, *todo}
            for pc in self._budget.rounds(_popped(todo)):
                if pc != begin:
                    todo.extend(p for p in before.get(pc, ()) if p not in inside)
                    inside.update(before.get(pc, ()))
            found |= {
                pc
                for pc in inside
                if self._insns[pc].is_conditional and not inside.issuperset(self.following(pc))
            }
        return frozenset(found)

    # ---- registers that matter

    def _flow_back(self, slots: Sequence[int]) -> None:
        """Set `live` and `exact` of one function's instructions; those of its callees must be set.

        Args:
            slots: slots of the function's instructions, the last first.

        Raises:
            ProgramError: the time is over.
        """
        changed = True
        while changed:
            changed = False
            for pc in self._budget.rounds(slots):
                live = exact = 0
                for to in self.following(pc):
                    live |= self.live[to]
                    exact |= self.exact[to]
                before = self._before(pc, live, exact)
                if before != (self.live[pc], self.exact[pc]):
                    self.live[pc], self.exact[pc] = before
                    changed = True

    def _before(self, pc: int, live: int, exact: int) -> tuple[int, int]:
        """Return (live, exact) before an instruction: masks of registers, bit n for rn.

        A register that it writes is in neither mask, unless it reads that register, too. What it
        reads is live. That is exact where it is an address; an operand of arithmetic whose result
        is exact; r0 at the exit of a called function; an operand of a conditional jump in
        `_decided`; or an argument of a call, but for those of a format.

        Args:
            pc: slot of the instruction.
            live: mask of the registers that are live behind the instruction.
            exact: mask of those of them whose exact values matter.
        """
        insn = self._insns[pc]
        dst = 1 << insn.dst
        src = 1 << insn.src
        if insn.cls in (isa.ALU, isa.ALU64):
            used = (src if insn.by_register and insn.op != isa.END else 0) | (
                0 if insn.op == isa.MOV else dst
            )
            return live & ~dst | used, exact & ~dst | (used if exact & dst else 0)
        if insn.wide:
            return live & ~dst, exact & ~dst
        if insn.cls == isa.LDX:
            return live & ~dst | src, exact & ~dst | src
        if insn.cls in (isa.ST, isa.STX):
            return self._before_store(insn, live, exact)
        if insn.is_exit:
            return 1, 0 if self._owner[pc] == 0 else 1
        if insn.opcode == isa.JMP | isa.CALL:
            if insn.is_local_call:
                used = shown = self.live[self._target(pc)] & _ARGUMENTS
            else:
                used = _arguments(insn.imm, False)
                shown = _arguments(insn.imm, True)
            return live & ~_CALLER_SAVED | shown, exact & ~_CALLER_SAVED | used
        used = 0 if not insn.is_conditional else dst | (src if insn.by_register else 0)
        return live | used, exact | (used if pc in self._decided else 0)

    def _before_store(self, insn: Instruction, live: int, exact: int) -> tuple[int, int]:
        """Return (live, exact) before a store: masks of registers, bit n for rn.

        All registers that the store reads are live. The address is exact, and so is the number that
        a plain store stores by r10, or by any register where the program stores to the stack by
        others than r10. What an atomic operation adds, stores or compares need not be exact, and
        the register that receives the old number (r0 in a CMPXCHG) is exact no more.

        Args:
            insn: the store, which may be an atomic operation.
            live: mask of the registers that are live behind the store.
            exact: mask of those of them whose exact values matter.
        """
        dst = 1 << insn.dst
        src = 1 << insn.src
        if insn.cls == isa.ST:
            return live | dst, exact | dst
        if insn.mode != isa.ATOMIC:
            return live | dst | src, exact | dst | (src if insn.dst == 10 or self._stores else 0)
        if insn.imm == isa.CMPXCHG:
            return live | dst | src | 1, exact & ~1 | dst
        if insn.imm & isa.FETCH:
            return live | dst | src, exact & ~src | dst
        return live | dst | src, exact | dst


def _popped(todo: list[int]) -> Iterator[int]:
    """Yield and remove items from the end of a list, to which more may be added meanwhile."""
    while todo:
        yield todo.pop()


@cache
def _arguments(number: int, shown: bool) -> int:
    """Return the registers that a helper takes: a mask, bit n for rn.

    Args:
        number: the helper's number.
        shown: True to add those that are arguments of a format, which may be anything.
    """
    return sum(
        1 << register
        for register, kind in enumerate(HELPERS[number].args, 1)
        if shown or kind is not Arg.ANY
    )
