"""The verifier: what it accepts neither crashes nor hangs, and writes to nothing but its stack, map
values and records.

`verify(code)` returns `Facts` for compilers, or raises `ProgramError` with the instruction, its
source line, the reason and what to do. It walks all paths of a program with sets of numbers in
place of numbers, after the rules of Linux's verifier as far as its objects exist here. What holds
of an accepted program, in every engine:

- Each load, store and atomic operation is within the context (loads only), the running functions'
  stacks, a map value, or a record that is held; atomic ones are aligned. Helpers get what they
  take.
- No run executes more than `Facts.steps` instructions, loops that call may_loop() aside, which have
  ROUNDS rounds. At most 8 functions are active, with 512 bytes of stack together.
- Each record that is reserved is submitted or discarded, once.
- No address of the host's is stored where anybody else can see it, and nothing depends on what the
  stack held before, provided that engines zero the bytes of `Facts.cleared`.

It relies upon: r1 is the address of CONTEXT_SIZE bytes (8-aligned; in a test run of `memory()`), r2
a number up to that, r10 the end of the stack (8-aligned); map values are 8-aligned and have
`value_size` bytes; records are 8-aligned; helpers return what their table says, and of those with a
buffer and its size at most that size.

Rooms, each importing only those before it:

    scalar        sets of numbers: bits, and arcs on the circles of 2**64 and 2**32
    alu           arithmetic on them
    branches      what comparisons tell of them
    state         pointers, stack slots, frames; whether one state is a case of another
    facts         what is found out
    budget        how long it may take
    path          one path, and how it is refused
    memory        loads and stores
    calls         helpers
    flow          functions, jumps, which registers matter where
    steps         what single instructions do
    explore       all paths
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...errors import ProgramError
from ..code import CONTEXT_SIZE, Code
from ..isa import STACK_SIZE
from ..relocations import unresolved
from .budget import Budget
from .explore import Exploration
from .facts import ANY, Access, Facts, HelperCall
from .flow import ProgramFlow
from .state import CTX, MemoryRegion

#: how long a verification may take, in seconds of this thread on the processor
SECONDS: Final = 10.0


def verify(
    code: Code,
    seconds: float = SECONDS,
    context: MemoryRegion | None = None,
    copies: bool = False,
) -> Facts:
    """Check that a program is safe on all paths, and return what was found out.

    Where the check has used a constant (.rodata), all constants of its section are frozen: they
    cannot be set any more.

    Args:
        code: the program.
        seconds: the most time of the processor to take, whatever else runs beside (1,000,000
            instructions walked are the most in any case).
        context: what r1 points at; None: a probe's context.
        copies: True allows calls of helpers that copy from the context, as objects for a kernel do;
            the calls are among the facts' accesses. They are to be replaced by loads.

    Returns:
        What holds for every run of the program.

    Raises:
        ProgramError: (EINVAL) the program is not safe, or that could not be shown.
    """
    for pc, relocation in unresolved(code).items():
        raise code.error(
            f"depends on the guest's {relocation}", pc, "attach it: the guest's types tell then"
        )
    budget = Budget(code, seconds)
    flow = ProgramFlow(code, budget)
    walk = _walk(code, flow, budget, context or MemoryRegion(CTX, 0, CONTEXT_SIZE, False))
    found = walk.findings
    if context is None and code.foreign:
        _refuse_foreign(code, found.accesses)
    if not copies:
        _refuse_copies(code, found.accesses)
    depth, chain = flow.deepest(found.stack)
    if depth > STACK_SIZE:
        names = " -> ".join(code.functions.get(start, f"function at {start}") for start in chain)
        raise code.error(
            f"{names} take {depth} bytes of stack together, and {STACK_SIZE} are the most",
            chain[-1],
            "put large data into an array map with one entry",
        )
    stack = {start: found.stack.get(start, 0) for start in flow.starts}
    return Facts(
        found.accesses,
        found.calls,
        stack,
        found.cleared,
        depth,
        found.frames,
        walk.visited,
        found.whole_context,
    )


def _refuse_foreign(code: Code, accesses: Mapping[int, Access]) -> None:
    """Check that a program which takes its context for a kernel's registers does not access it.

    Args:
        code: the program.
        accesses: slot -> what the instruction there accesses.

    Raises:
        ProgramError: the program accesses its context.
    """
    at = min((pc for pc, access in accesses.items() if access.kind == CTX), default=None)
    if at is not None:
        raise code.error(
            f"takes the context for {code.foreign}, and here it is the same on every architecture",
            at,
            "compile the source with #include <kprobes/bpf.h> in place of a kernel's headers: "
            "PT_REGS_PARM1(ctx), PT_REGS_RC(ctx), KPROBES_REG(ctx, x86_64_rdi)",
        )


def _refuse_copies(code: Code, accesses: Mapping[int, Access]) -> None:
    """Check that no helper copies from the context.

    Args:
        code: the program.
        accesses: slot -> what the instruction there accesses.

    Raises:
        ProgramError: a helper does.
    """
    at = min((pc for pc in accesses if code.instructions[pc].is_helper_call), default=None)
    if at is not None:
        raise code.error(
            "argument 3 (r3) is a number, but the context is given", at, "read the context itself"
        )


def memory(size: int, writable: bool) -> MemoryRegion:
    """Return the context of a test run, for verify(): plain memory, unlike a probe's context.

    The program may access it at any offset, and helpers take its address.

    Args:
        size: bytes of it; r2 is a number up to that.
        writable: whether the program may write it.
    """
    return MemoryRegion(CTX, 0, size, writable, plain=True)


def _walk(code: Code, flow: ProgramFlow, budget: Budget, context: MemoryRegion) -> Exploration:
    """Walk all paths of the program, again and more exactly as long as a refusal may be due to
    what a walk has ignored.

    Args:
        code: the program.
        flow: the program's shape; its `exact` is set for each walk.
        budget: how long the whole verification may take.
        context: what r1 points at.

    Returns:
        The last walk, with what it has found out.

    Raises:
        ProgramError: something is wrong on one path.
    """
    decided = flow.leaving
    stores = False
    while True:
        walk = Exploration(code, flow, decided, budget, context)
        try:
            walk.run()
        except ProgramError:
            if not walk.doubtful:
                raise
            decided |= walk.doubtful
        else:
            if stores or not walk.findings.stores:
                return walk
        # numbers reach the stack by other ways than r10: what is stored there matters
        stores |= walk.findings.stores
        flow.find_exact(decided, stores)


__all__ = ["ANY", "SECONDS", "Access", "Facts", "HelperCall", "memory", "verify"]
