"""Jumps, local calls and exit: `control(insn, pc)` compiles one to a function of the path, which
tells whether the path goes on.

Branches are walked both ways, though the numbers may show that only one is possible, and
comparisons of two registers tell nothing, **until that turns out to matter** (`Path.decided`). So
what is compared need not be the same from path to path, and more of them end where others have
been.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import isa
from ..isa import Instruction
from .branches import NOT, refined
from .path import FRAME_BITS, Path, stack_of
from .scalar import M64, Scalar, const
from .state import MAP, RECORD, SAMPLE, STACK, START, PathState, Pointer, ProgramFrame, Value

Control = Callable[[Path], bool]
_AS_OFFSETS: Final = {isa.JGT: isa.JSGT, isa.JGE: isa.JSGE, isa.JLT: isa.JSLT, isa.JLE: isa.JSLE}
_FRAME: Final = (1 << FRAME_BITS) - 1


def control(insn: Instruction, pc: int) -> Control:
    """Compile a jump, a local call or an exit to a function that walks it on a path.

    Args:
        insn: the instruction.
        pc: slot of the instruction.

    Returns:
        (path, which is at the instruction) -> True: the path goes on at its new `pc`; False: the
        program has ended. The function raises ProgramError where the instruction is wrong.
    """
    if insn.is_exit:
        return _exit
    to = insn.target(pc)
    if insn.is_local_call:
        return lambda path: _call(path, to)
    if insn.is_conditional:
        return _branch(insn, to)

    def jump(path: Path) -> bool:
        path.pc = to
        return True

    return jump


def _call(path: Path, to: int) -> bool:
    """Walk a local call: begin a frame with the caller's r1 to r5, and go to the first slot.

    Args:
        path: the path with the call.
        to: the function's first slot.

    Returns:
        True: the path goes on.

    Raises:
        ProgramError: calls are too deep.
    """
    state = path.state
    depth = len(state.frames)
    if depth == isa.FRAMES:
        raise path.refuse(
            f"calls are {depth + 1} deep",
            f"{isa.FRAMES} functions may be active at a time; inline some",
        )
    regs: list[Value | None] = [
        None,
        *state.regs[1:6],
        None,
        None,
        None,
        None,
        Pointer(stack_of(depth), START),
    ]
    state.regs[:6] = [None] * 6
    state.frames.append(ProgramFrame(to, path.pc + 1, regs, {}))
    state.regs = regs
    path.writes |= _FRAME << depth * FRAME_BITS  # nothing is left there of earlier calls
    path.findings.frames = max(path.findings.frames, depth + 1)
    path.pc = to
    return True


def _exit(path: Path) -> bool:
    """Walk an exit: go on in the caller's frame with the result in r0, or end the program.

    Args:
        path: the path with the exit.

    Returns:
        True: the path goes on in the caller; False: the program has ended.

    Raises:
        ProgramError: the result is an address that ends with the function, or of the whole program
            any address; or a record is still held at the end.
    """
    state = path.state
    depth = len(state.frames) - 1
    if depth:
        result = state.regs[0]  # a function that returns nothing leaves nothing there
        if (
            isinstance(result, Pointer)
            and result.region.kind == STACK
            and result.region.frame == depth
        ):
            raise path.refuse(
                "returns the address of a local variable", "it ends with its function"
            )
        path.pc = state.frames.pop().back
        state.regs = state.frames[-1].regs
        state.regs[0] = result
        return True
    result = path.read(0)
    if isinstance(result, Pointer):
        raise path.refuse(f"returns a pointer: {result}", "a program returns a number")
    if state.held:
        held = state.held[0].map
        raise path.refuse(
            f"a record of map {held.name if held is not None else '?'} is still held at the end",
            "call bpf_ringbuf_submit() or bpf_ringbuf_discard() on every path; of a dynptr "
            "bpf_ringbuf_submit_dynptr() or bpf_ringbuf_discard_dynptr(), even if it was not made",
        )
    return False


# ---- branches


def _branch(insn: Instruction, to: int) -> Control:
    """Compile a conditional jump to a function that walks it on a path.

    Where both ways are possible it forks the path, and narrows the numbers by the comparison. One
    that is impossible is walked, too, until the branch is in `path.decided`; until then comparisons
    of two registers narrow nothing. Both are noted in the path (assume(), ignore()).

    Args:
        insn: the jump.
        to: the slot that it jumps to.
    """
    dst = insn.dst
    src = insn.src
    by_register = insn.by_register
    op = insn.op
    wide = insn.cls == isa.JMP
    imm = const(insn.imm & M64)
    opposite = NOT[insn.op]

    def branch(path: Path) -> bool:
        """Go on with one way of the jump, and keep the other for later, where both are walked.
        Returns True: the path goes on. Raises ProgramError: the comparison has no meaning, or
        a register has no value.
        """
        state = path.state
        a = state.regs[dst]
        b = state.regs[src] if by_register else imm
        if type(a) is not Scalar or type(b) is not Scalar:
            return _other(path, insn, to)
        taken = refined(op, a, b, wide)
        other = refined(opposite, a, b, wide) if taken is not None else None
        if taken is None or other is None:  # one way is sure: it tells nothing new
            way, never = (to, path.pc + 1) if taken is not None else (path.pc + 1, to)
            if path.pc not in path.decided:
                path.assume()
                path.fork(never, state.copy())
            path.pc = way
            return True
        if by_register and path.pc not in path.decided:
            path.ignore()
            return _both_ways(path, to, state.copy())
        jump = state.copy()
        _learn(jump, a, b, *taken)
        path.fork(to, jump)
        _learn(state, a, b, *other)
        path.pc += 1
        return True

    return branch


def _learn(state: PathState, a: Scalar, b: Scalar, new_a: Scalar, new_b: Scalar) -> None:
    """Replace two numbers in a state by what a comparison has told of them.

    Args:
        state: the state; copies and relatives of the numbers are replaced, too.
        a: the first number.
        b: the second.
        new_a: the first, as it is known now.
        new_b: the second, as it is known now.
    """
    state.learn(a, new_a)
    if b is not a:
        state.learn(b, new_b)


def _other(path: Path, insn: Instruction, to: int) -> bool:
    """Walk a branch that compares something else than two numbers.

    Args:
        path: the path with the branch.
        insn: the branch.
        to: the slot that it jumps to.

    Returns:
        True: the path goes on.

    Raises:
        ProgramError: the comparison has no meaning, or a register has no value.
    """
    a = path.read(insn.dst)
    b = path.read(insn.src) if insn.by_register else const(insn.imm & M64)
    if insn.cls != isa.JMP or insn.op == isa.JSET:
        raise path.refuse(
            f"tests bits of a pointer: {a if isinstance(a, Pointer) else b}",
            "addresses are compared as a whole",
        )
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return _pointers(path, insn, to, a, b)
    pointer, number = (a, b) if isinstance(a, Pointer) else (b, a)
    assert isinstance(pointer, Pointer) and isinstance(number, Scalar)
    if insn.op not in (isa.JEQ, isa.JNE) or number.mask or number.value:
        raise path.refuse(
            f"compares a pointer ({pointer}) with a number ({number})",
            "pointers are compared with NULL and with pointers",
        )
    if insn.by_register and path.pc not in path.decided:
        path.assume()
        return _both_ways(path, to, path.state.copy())
    return _null_check(
        path, pointer, *((to, path.pc + 1) if insn.op == isa.JEQ else (path.pc + 1, to))
    )


def _pointers(path: Path, insn: Instruction, to: int, a: Pointer, b: Pointer) -> bool:
    """Walk a branch that compares two pointers.

    Args:
        path: the path with the branch.
        insn: the branch.
        to: the slot that it jumps to.
        a: the first pointer.
        b: the second.

    Returns:
        True: the path goes on.

    Raises:
        ProgramError: they point into different regions, which have no order.
    """
    if a.region is b.region and not a.null and not b.null and a.region.kind != MAP:
        return _within(path, insn, to, a, b)
    if insn.op in (isa.JEQ, isa.JNE):
        return _both_ways(path, to, path.state.copy())
    raise path.refuse(
        f"compares pointers to different things: {a} and {b}",
        "only pointers into one variable or map value have an order",
    )


def _null_check(path: Path, pointer: Pointer, when_null: int, otherwise: int) -> bool:
    """Walk both ways from a comparison of a pointer with 0; return True: the path goes on.

    On the way where the pointer is NULL, a record that it stands for is not held any more. Where
    the pointer cannot be NULL and lies within its object, only the other way is walked once the
    branch is in `path.decided`.

    Args:
        path: the path that comes to the comparison.
        pointer: the pointer that is compared.
        when_null: slot where the jump leads if the pointer is NULL.
        otherwise: slot where it leads if it is not.
    """
    region, at = pointer.region, pointer.offset
    if pointer.null:
        null = path.state.copy()
        if region.kind in (RECORD, SAMPLE):
            null.held = tuple(r for r in null.held if r is not region)
        null.replace(pointer, START)
        path.fork(when_null, null)
        path.state.replace(pointer, Pointer(region, at))
    # beyond its object, an address may be anything, even 0
    elif path.pc not in path.decided or not _inside(pointer):
        path.assume()
        path.fork(when_null, path.state.copy())
    path.pc = otherwise
    return True


def _inside(pointer: Pointer) -> bool:
    """Return True where a pointer certainly points into its region, or at its end."""
    return pointer.region.low <= pointer.offset.smin and pointer.offset.smax <= pointer.region.high


def _within(path: Path, insn: Instruction, to: int, a: Pointer, b: Pointer) -> bool:
    """Walk a branch that compares pointers into one region, which are ordered as their offsets.

    Once the branch is in `path.decided`, and both pointers are within the region, only possible
    ways are walked, and the offsets are narrowed. Before, both ways are.

    Args:
        path: the path with the branch.
        insn: the branch.
        to: the slot that it jumps to.
        a: the first pointer.
        b: the second.

    Returns:
        True: the path goes on.
    """
    if path.pc not in path.decided or not _inside(a) or not _inside(b):
        path.assume()
        return _both_ways(path, to, path.state.copy())
    op = _AS_OFFSETS.get(insn.op, insn.op)
    taken = refined(op, a.offset, b.offset, True)
    other = refined(NOT[op], a.offset, b.offset, True)
    if taken is None or other is None:
        path.pc = path.pc + 1 if taken is None else to
        return True
    jump = path.state.copy()
    for state, (new_a, new_b) in ((jump, taken), (path.state, other)):
        state.replace(a, Pointer(a.region, new_a))
        state.replace(b, Pointer(b.region, new_b))
    return _both_ways(path, to, jump)


def _both_ways(path: Path, to: int, jump: PathState) -> bool:
    """Go on behind a jump, and keep a path from its target, to be walked later.

    Args:
        path: the path with the jump.
        to: the target.
        jump: the state of the path that is kept.

    Returns:
        True: the path goes on.
    """
    path.fork(to, jump)
    path.pc += 1
    return True
