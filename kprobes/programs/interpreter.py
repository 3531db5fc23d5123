"""The interpreter: what a program means.

Registers are unsigned 64-bit integers, pointers are host addresses, and every access is checked, so
that even a program that no verifier has seen can do no harm: it ends in a ProgramError. Each slot
becomes a function of the run (a Step), made once: it returns the slot where the program goes on;
None: at the slot that follows, pc + 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from . import isa, operations
from .call import RunPlace
from .code import CONTEXT_SIZE, Code
from .helpers import HELPERS
from .isa import FRAMES, STACK_SIZE, U32, U64, Instruction, signed
from .maps import ENOENT, ByAddress, Map, Programs, Ring, UserRing
from .meanings import TAIL_CALL, TAILS
from .memory import Invalid, ProgramMemory

if TYPE_CHECKING:
    from .verifier import Facts

#: the most instructions of a run
LIMIT: Final = 1 << 22
_END: Final = -1
_FORMATS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Run(ProgramMemory):
    """A run of a program, as its instructions and helpers see it (a call.ProgramRun).

    Attributes:
        r: the registers, r0 to r10.
        frames: (slot to return to, r6 to r10) of each caller.
        tail: the Interpreter of the program that the run goes on with (bpf_tail_call); None: none.
        tails: how many tail calls have led to this program.
    """

    tail: Interpreter | None

    def __init__(self, code: Code, context: int) -> None:
        """Allocate the run's memory.

        Args:
            code: the program.
            context: bytes of the largest context.
        """
        super().__init__(code.maps, context)
        self.maps: Mapping[int, Map] = ByAddress(code.maps)
        self.tails = 0
        self.tail = None
        self.order = code.order
        self.r = [0] * 11
        self.frames: list[tuple[int, list[int]]] = []
        self.place: RunPlace
        self.printed: Callable[[str], None]


Step = Callable[[Run], "int | None"]


class Interpreter:
    """Runs one program by a Python function for each instruction (an engines.ProgramEngine)."""

    def __init__(self, code: Code, facts: Facts | None = None) -> None:
        """Make the function (step) of each instruction.

        Args:
            code: the program.
            facts: findings of the verifier; None: the program was not verified.
        """
        self._code = code
        self._steps = [_step(code, facts, pc, i) for pc, i in enumerate(code.instructions)]
        self._steps.append(_refuse("goes on behind the last instruction"))
        self._idle: list[Run] = []

    def run(
        self,
        context: bytes | bytearray,
        place: RunPlace,
        printed: Callable[[str], None] = lambda text: None,
        limit: int = LIMIT,
        tails: int = 0,
    ) -> int:
        """Run the program, and those that it tail-calls. Where it fails, the records that it has
        reserved and not given back are discarded.

        Args:
            context: bytes at r1, zeros behind them; a bytearray gets what the program has written.
            place: the guest at the probe, as helpers see it.
            printed: called with each line of trace_printk.
            limit: the most instructions to run.
            tails: how many tail calls have led to this program.

        Returns:
            r0 at the end, unsigned.

        Raises:
            ProgramError: the program did what it may not do, or did not end within `limit`
                instructions; maps keep what it has done.
            BaseException: whatever a helper, or `printed`, has raised.
        """
        size = max(len(context), CONTEXT_SIZE)
        run = self._idle.pop() if self._idle and size <= CONTEXT_SIZE else Run(self._code, size)
        run.place = place
        run.printed = printed
        run.begin(context, size)
        run.frames.clear()
        run.tails = tails
        run.r[:] = [0, run.context, len(context), 0, 0, 0, 0, 0, 0, 0, run.top]
        try:
            left = self._go(run, limit)
            if run.tail is None:
                return run.r[0]
            following = run.tail
            run.tail = None
        finally:
            run.end(context)
            for record in run.kept:  # of a program that failed
                HELPERS[133].run(run, record, 0)
            del run.place, run.printed  # which know the machine
            if size <= CONTEXT_SIZE:
                self._idle.append(run)
        return following.run(context, place, printed, left, tails + 1)

    def _go(self, run: Run, limit: int) -> int:
        """Run this program from its first slot to its end, or to a tail call.

        Args:
            run: the run, whose registers and memory are set up.
            limit: the most instructions to run.

        Returns:
            How many instructions are left.

        Raises:
            ProgramError: the program does what it may not do, executes more than `limit`
                instructions, or ends with a reserved record.
        """
        steps = self._steps
        pc = 0
        left = limit
        try:
            while pc >= 0:
                if left == 0:
                    raise Invalid(f"has not ended after {limit:,} instructions")
                left -= 1
                following = steps[pc](run)
                pc = pc + 1 if following is None else following
            if run.kept:
                raise Invalid("ends with a record that it has neither submitted nor discarded")
        except Invalid as e:
            raise self._code.error(str(e), max(pc, 0), "verify() says more") from None
        return left


def _refuse(reason: str) -> Step:
    """Return a step that, when it is run, raises Invalid.

    Args:
        reason: why, as a clause about the instruction.
    """

    def step(run: Run) -> None:
        raise Invalid(reason)

    return step


def _step(code: Code, facts: Facts | None, pc: int, i: Instruction) -> Step:
    """Return a function that does one instruction on a run's registers and memory.

    It returns the slot to go on at; None: the next one. For an instruction that is illegal, or
    writes r10, it raises Invalid.

    Args:
        code: the program.
        facts: findings of the verifier; None: it was not verified.
        pc: slot of the instruction.
        i: the instruction.
    """
    why = i.why_illegal()
    if why:
        return _refuse(f"is no instruction: {why}")
    if i.cls in (isa.ALU, isa.ALU64):
        return _unary(code, i) if i.op == isa.END else _arithmetic(i)
    if i.cls in (isa.JMP, isa.JMP32):
        return _control(code, facts, pc, i)
    if i.wide:
        return _wide(code, pc, i)
    if i.cls == isa.LDX:
        return _load(code, i)
    return _atomic(code, i) if i.mode == isa.ATOMIC else _store(code, i)


# ---- arithmetic


def _arithmetic(i: Instruction) -> Step:
    """Return the Step (a function of a run) of an ALU or ALU64 instruction, but for swaps.

    The step raises Invalid where the instruction writes r10.
    """
    bits, mask = (64, U64) if i.cls == isa.ALU64 else (32, U32)
    dst = i.dst
    src = i.src
    constant = i.imm & mask
    if dst == 10:
        return _refuse("writes r10, which is read-only")
    if i.op == isa.MOV and i.offset:
        width = i.offset

        def extend(run: Run) -> None:
            run.r[dst] = signed(run.r[src], width) & mask

        return extend
    f = (operations.SIGNED if i.offset else operations.ARITHMETIC)[i.op]
    if i.by_register:

        def by_register(run: Run) -> None:
            r = run.r
            r[dst] = f(r[dst] & mask, r[src] & mask, bits) & mask

        return by_register

    def by_constant(run: Run) -> None:
        r = run.r
        r[dst] = f(r[dst] & mask, constant, bits) & mask

    return by_constant


def _unary(code: Code, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does a byte swap.

    Where the byte order needs none, the step only cuts the number; it raises Invalid for r10.

    Args:
        code: the program.
        i: the instruction.
    """
    dst = i.dst
    bits = i.imm
    mask = (1 << i.imm) - 1
    if dst == 10:
        return _refuse("writes r10, which is read-only")
    wanted = "big" if i.by_register else "little"
    if i.cls == isa.ALU and wanted == code.order:

        def cut(run: Run) -> None:
            run.r[dst] &= mask

        return cut

    def swap(run: Run) -> None:
        run.r[dst] = operations.swap(run.r[dst], bits)

    return swap


def _wide(code: Code, pc: int, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does LDDW, which takes two slots: the step always
    returns pc + 2.

    Where LDDW loads something that does not exist here, the step raises Invalid.

    Args:
        code: the program.
        pc: slot of the instruction.
        i: the instruction.
    """
    dst = i.dst
    following = pc + 2
    if dst == 10:
        return _refuse("writes r10, which is read-only")
    if i.src == isa.VALUE64:
        value = i.value
    elif i.src in (isa.MAP, isa.MAP_VALUE) and 0 <= i.imm < len(code.maps):
        m = code.maps[i.imm]
        if i.src == isa.MAP_VALUE and not m.span[1]:
            return _refuse(f"takes the address of a value of map {m.name}, which has none")
        value = m.address if i.src == isa.MAP else m.span[0] + i.high & U64
    else:
        return _refuse("loads an address that there is not here")

    def step(run: Run) -> int:
        run.r[dst] = value
        return following

    return step


# ---- jumps and calls


def _control(code: Code, facts: Facts | None, pc: int, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does a jump, a call or the end.

    The step of a jump that leads out of the program raises Invalid.

    Args:
        code: the program.
        facts: findings of the verifier; None: the program was not verified.
        pc: slot of the instruction.
        i: the instruction.
    """
    if i.op == isa.EXIT:
        return _exit
    if i.op == isa.CALL:
        return _call(code, facts, pc, i)
    target = i.target(pc)
    if not 0 <= target < len(code.instructions):
        return _refuse(f"jumps to slot {target}, outside the program")
    if i.op == isa.JA:
        return lambda run: target
    f = operations.CONDITIONS[i.op]
    dst = i.dst
    src = i.src
    bits, mask = (64, U64) if i.cls == isa.JMP else (32, U32)
    constant = i.imm & mask
    if i.by_register:
        return lambda run: target if f(run.r[dst] & mask, run.r[src] & mask, bits) else None
    return lambda run: target if f(run.r[dst] & mask, constant, bits) else None


def _exit(run: Run) -> int:
    """Do EXIT: return to the caller's frame; in the entry function, end the run. A step.

    Returns:
        The slot to go on at; _END: the run has ended.
    """
    if not run.frames:
        return _END
    back, saved = run.frames.pop()
    run.r[6:] = saved
    run.depth -= 1
    return back


def _call(code: Code, facts: Facts | None, pc: int, i: Instruction) -> Step:
    """Return the Step (a function of a run) that calls a helper or a function of the program's.

    For a call of anything else the step raises Invalid, as for a map argument that is no map.

    Args:
        code: the program.
        facts: findings of the verifier, which tell what a helper's format may show as text; no
            check is left out for them. None: the program was not verified.
        pc: slot of the instruction.
        i: the instruction.
    """
    if i.src == isa.LOCAL:
        return _call_local(code, pc, i.target(pc))
    helper = HELPERS.get(i.imm) if i.src == isa.HELPER else None
    if helper is None:
        kind = "helper" if i.src == isa.HELPER else "kernel function"
        return _refuse(f"calls {kind} {i.imm}, which there is not here")
    if helper.number == TAIL_CALL:
        return _tail_call
    takes_map = _map_argument(i.imm)
    f = helper.run
    allowed = helper.maps
    void = helper.returns.name == "VOID"
    if helper.formats and facts is not None and pc in facts.calls:
        f = partial(f, texts=facts.calls[pc].texts)

    rings = [m for m in code.maps if isinstance(m, (Ring, UserRing))]
    if rings:
        f = _fenced(f, rings)

    def step(run: Run) -> None:
        """Call the helper with r1 to r5, and set r0 to its result, or to 0. Raises Invalid where
        the helper takes a map, and another value is given.
        """
        r = run.r
        if takes_map >= 0:
            m = run.maps.get(r[takes_map])
            if m is None or (allowed is not None and m.type not in allowed):
                raise Invalid("calls a helper with what is no map for it")
        result = f(run, r[1], r[2], r[3], r[4], r[5]) & U64
        r[0] = 0 if void else result

    return step


def _tail_call(run: Run) -> int | None:
    """Do bpf_tail_call: set `run.tail` to the program at index r3 of array r2. A step.

    Returns:
        _END: this program ends, and run() goes on with that one. None, with ENOENT in r0: the
        array has no such program, or there were too many tail calls.

    Raises:
        Invalid: r2 is no program array.
    """
    m = run.maps.get(run.r[2])
    if not isinstance(m, Programs):
        raise Invalid("goes on with a program of what is no program array")
    following = m.ready(run.r[3] & U32)
    if not isinstance(following, Interpreter) or run.tails >= TAILS:
        run.r[0] = ENOENT & U64
        return None
    run.tail = following
    return _END


def _fenced(run: Callable[..., int], rings: Sequence[Ring | UserRing]) -> Callable[..., int]:
    """Return a function that calls a helper with this run's reserved records protected.

    Another program may run within the helper and fail, which discards records that are not
    complete: those of this run must stay.

    Args:
        run: the helper: (run of the program, r1 .. r5) -> r0.
        rings: the rings that the program uses.
    """

    def fenced(*arguments: object, **more: object) -> int:
        """Run the helper with the rings fenced."""
        with ExitStack() as stack:
            for ring in rings:
                stack.enter_context(ring.fenced())
            return run(*arguments, **more)

    return fenced


def _map_argument(number: int) -> int:
    """Return the number of the register (1 to 5) in which a helper gets a map; -1: none.

    Args:
        number: Linux's number of the helper.
    """
    return next((n for n, arg in enumerate(HELPERS[number].args, 1) if arg.name == "MAP"), -1)


def _call_local(code: Code, pc: int, target: int) -> Step:
    """Return the Step (a function of a run) that calls one of the program's own functions.

    The step raises Invalid where the call leads out of the program, or is too deep.

    Args:
        code: the program.
        pc: slot of the call.
        target: slot where the function begins.
    """
    if not 0 <= target < len(code.instructions):
        return _refuse(f"calls slot {target}, outside the program")

    def step(run: Run) -> int:
        """Save r6 to r10 and the return slot, begin a frame, and return the function's slot, where
        the run goes on. Raises Invalid: FRAMES frames are active already.
        """
        if run.depth == FRAMES:
            raise Invalid(f"calls deeper than {FRAMES} frames")
        run.frames.append((pc + 1, run.r[6:]))
        run.enter()
        run.r[10] -= STACK_SIZE
        return target

    return step


# ---- memory


def _struct(code: Code, size: int, sign: bool = False) -> struct.Struct:
    """Return the codec of a number in the program's byte order.

    Args:
        code: the program.
        size: bytes: 1, 2, 4 or 8.
        sign: True for a signed number.
    """
    form = _FORMATS[size]
    return struct.Struct(
        ("<" if code.order == "little" else ">") + (form.lower() if sign else form)
    )


def _load(code: Code, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does a load.

    The step raises Invalid where the program may not read there, or the load is into r10.

    Args:
        code: the program.
        i: the instruction.
    """
    dst = i.dst
    src = i.src
    offset = i.offset
    size = i.size
    unpack = _struct(code, size, i.mode == isa.MEMSX).unpack_from
    if dst == 10:
        return _refuse("writes r10, which is read-only")

    def step(run: Run) -> None:
        view, at = run.find(run.r[src] + offset & U64, size, False)
        run.r[dst] = unpack(view, at)[0] & U64

    return step


def _store(code: Code, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does a store.

    The step raises Invalid where the program may not write there.

    Args:
        code: the program.
        i: the instruction.
    """
    dst = i.dst
    src = i.src
    offset = i.offset
    size = i.size
    mask = (1 << 8 * size) - 1
    pack = _struct(code, size).pack_into
    constant = i.imm & mask
    by_register = i.cls == isa.STX

    def step(run: Run) -> None:
        view, at = run.find(run.r[dst] + offset & U64, size, True)
        pack(view, at, run.r[src] & mask if by_register else constant)

    return step


def _atomic(code: Code, i: Instruction) -> Step:
    """Return the Step (a function of a run) that does an atomic operation.

    The step raises Invalid where the program may not write there, the address is not aligned, or
    r10 would get the old value.

    Args:
        code: the program.
        i: the instruction.
    """
    dst = i.dst
    src = i.src
    offset = i.offset
    size = i.size
    bits = 8 * i.size
    mask = (1 << bits) - 1
    form = _struct(code, size)
    f = operations.ATOMIC.get(i.imm & ~isa.FETCH)
    result = src if i.imm & isa.FETCH else -1
    if i.imm == isa.CMPXCHG:
        result = 0
    if result == 10:
        return _refuse("writes r10, which is read-only")

    def step(run: Run) -> None:
        """Read the old value, write the new one, and set the register that gets the old one. Raises
        Invalid: the program may not write there, or the address is not aligned.
        """
        r = run.r
        addr = r[dst] + offset & U64
        view, at = run.find(addr, size, True)
        if addr % size:
            raise Invalid(
                f"an atomic operation of {size} bytes at an address that is not a multiple of them"
            )
        old = form.unpack_from(view, at)[0]
        operand = r[src] & mask
        if f is not None:
            form.pack_into(view, at, f(old, operand, bits) & mask)
        elif i.imm == isa.XCHG or old == r[0] & mask:
            form.pack_into(view, at, operand)
        if result >= 0:
            r[result] = old

    return step
