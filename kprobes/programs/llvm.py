"""eBPF instructions to LLVM IR: one generator for the host and for guests.

The IR is text, made without LLVM. Each of the program's functions becomes an internal function of
five words and the *environment*: 64-bit words in the host's memory, or the guest's, by which the
code finds all that is not in it. So compiled code has neither relocations nor data: the bytes of
one section that run wherever they are put, for any number of attachments.

Registers are stack slots of LLVM's until its passes make values of them. An access through the
frame pointer or the context at a known offset is written as one, so that these passes see through
it; other addresses are plain integers. No address is checked here: the verifier has done that, or
the caller answers for the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..errors import Unsupported
from . import emit, isa, places, support
from .isa import Instruction
from .meanings import TAIL_CALL
from .places import Places
from .writer import CodeTarget, ContextSource, Inline, IrModule, IrWriter, Slot, no_inline

#: no library calls, no tables and no vectors: all of them would be data or code elsewhere
_NOTHING_ELSEWHERE: Final = (
    'nounwind noimplicitfloat "no-builtins" "no-jump-tables"="true" "frame-pointer"="none"'
)
_ATTRIBUTES: Final = (
    f"attributes #0 = {{ {_NOTHING_ELSEWHERE} }}\n"
    f"attributes #1 = {{ alwaysinline {_NOTHING_ELSEWHERE} }}\n"
    f"attributes #2 = {{ noinline {_NOTHING_ELSEWHERE} }}"
)
_CALLS: Final = 2  # at so many places a support function is put there; a program's own at one
MOST: Final = 20_000  # instructions that are put into one function
#: addresses that maps may have; what loads are said to be invariant by
_METADATA: Final = f"!0 = !{{i64 4096, i64 {1 << 56}}}\n!1 = !{{}}"
_RUN: Final = """define i64 @run(ptr %env, i64 %ctx, i64 %size) #0 {
  %r = call i64 @f0(i64 %ctx, i64 %size, i64 0, i64 0, i64 0, ptr %env)
  ret i64 %r
}"""
_RUN_ALONE: Final = """define void @run(ptr %env) #0 {{
  %ctxp = getelementptr i8, ptr %env, i32 {}
  %ctx = load i64, ptr %ctxp
  %sizep = getelementptr i8, ptr %env, i32 {}
  %size = load i64, ptr %sizep
  %r = call i64 @f0(i64 %ctx, i64 %size, i64 0, i64 0, i64 0, ptr %env)
  %resultp = getelementptr i8, ptr %env, i32 {}
  store i64 %r, ptr %resultp
  ret void
}}"""

_RUN_COUNTING: Final = """define void @run(ptr %env, ptr %frame) #0 {{
  %countp = getelementptr i8, ptr %env, i32 8
  %count = load i64, ptr %countp
  %more = add i64 %count, 1
  store i64 %more, ptr %countp
{}  ret void
}}"""
_CALL_FRAME: Final = """  %at = ptrtoint ptr %frame to i64
  %r = call i64 @f0(i64 %at, i64 0, i64 0, i64 0, i64 0, ptr %env)
"""
#: IR that only counts
COUNT: Final = f"{_RUN_COUNTING.format('')}\n{_ATTRIBUTES}\n"
NOTHING: Final = f"define void @run() #0 {{\n  ret void\n}}\n{_ATTRIBUTES}\n"


def generate(
    code: Iterable[Instruction],
    target: CodeTarget,
    inline: Inline = no_inline,
    context: ContextSource | None = None,
    cleared: Mapping[int, int] | None = None,
    parameters: Sequence[Slot] = (),
    framed: bool = False,
) -> tuple[str, tuple[Slot, ...]]:
    """Generate the LLVM IR of a program, whose function `@run(environment, r1, r2)` returns r0.

    Args:
        code: the instructions.
        target: the properties of the machine that it is compiled for.
        inline: writes the code of helpers that are not called.
        context: writes reads of the context's words; None: the context is memory at r1.
        cleared: first slot of a function -> bytes below r10 that must be zero as it begins.
        parameters: three slots of the environment. With these, `@run(environment)` reads r1 and r2
            from the first two, and writes r0 to the third.
        framed: True makes it `@run(environment, frame)`, which adds 1 to the header's second word
            at each run; `frame` is r1, from which `context` reads.

    Returns:
        (IR, what each word of the environment behind the header is).

    Raises:
        Unsupported: the program has a tail call; it has more than MOST instructions once all its
            functions are put into one, as for a guest (`target.alone`); or an instruction has no
            meaning outside of an operating system.
    """
    code = tuple(code)
    if any(i.is_helper_call and i.imm == TAIL_CALL for _, i in isa.steps(code)):
        raise Unsupported("a tail call goes on in another program", hint="the interpreter runs it")
    module = IrModule(code, places.find(code), target, inline, context)
    begin = _RUN
    if framed:
        begin = _RUN_COUNTING.format(_CALL_FRAME)
    elif parameters:
        begin = _RUN_ALONE.format(*map(module.slot, parameters))
    if target.alone and _whole_size(module.places, code, 0) > MOST:
        raise Unsupported(
            f"with its functions put into one, the program has more than {MOST:,} instructions",
            hint="call fewer functions",
        )
    functions = {
        f"f{entry}": _function(IrWriter(module, entry), (cleared or {}).get(entry, 0))
        for entry in sorted(module.places.functions)
    }
    functions.update(module.support)
    whole = "\n".join([begin, *functions.values()])
    parts = []
    for name, text in functions.items():
        most = _CALLS if name in module.support else 1
        inlined = target.alone or whole.count(f"@{name}(") <= 1 + most
        parts.append(text.replace("#0 {", "#1 {") if inlined else text)
    return "\n".join(
        [support.library(target).head, begin, *parts, _ATTRIBUTES, _METADATA, ""]
    ), tuple(module.slots)


def _whole_size(found: Places, code: Sequence[Instruction], entry: int, depth: int = 0) -> int:
    """Return how many instructions a function has once all its local calls are inlined.

    Above MOST the result is not exact: it only says that there are too many.

    Args:
        found: the program's functions.
        code: its instructions.
        entry: slot where the function begins.
        depth: how many calls lead from the entry function to this one.
    """
    size = len(found.functions[entry])
    for pc in found.functions[entry]:
        if code[pc].is_local_call and size <= MOST:
            size += (
                MOST
                if depth >= isa.FRAMES
                else _whole_size(found, code, code[pc].target(pc), depth + 1)
            )
    return size


def _function(w: IrWriter, cleared: int) -> str:
    """Return the IR of one function.

    Args:
        w: a new writer; its `entry` says which function it is. Its lines are filled.
        cleared: bytes below r10 that the function zeroes as it begins.
    """
    code, slots = w.module.code, w.module.places.functions[w.entry]
    leaders = {
        w.entry,
        *(to for pc in slots if code[pc].is_jump for to in places.successors(code, pc)),
    }
    arguments = ", ".join(f"i64 %a{n}" for n in range(1, 6))
    _prologue(w, cleared)
    for n, pc in enumerate(slots):
        if pc in leaders:
            w.start_block(f"i{pc}")
        emit.instruction(w, pc, code[pc])
        follow = places.successors(code, pc)
        if (
            not code[pc].is_jump
            and follow
            and (follow[0] in leaders or n + 1 == len(slots) or slots[n + 1] != follow[0])
        ):
            w.append(f"br label %i{follow[0]}")
    return "\n".join(
        [
            f"define internal i64 @f{w.entry}({arguments}, ptr %env) #0 {{",
            "entry:",
            *w.rooms,
            *w.lines,
            "}",
        ]
    )


def _prologue(w: IrWriter, cleared: int) -> None:
    """Emit IR for the beginning of a function: its registers, its stack, its arguments.

    Args:
        w: writer of the IR of the current function.
        cleared: bytes below r10 that are zeroed; a multiple of 8.
    """
    for n in range(11):
        w.append(f"%r{n} = alloca i64")
    w.append(f"%frame = alloca [{isa.STACK_SIZE} x i8], align 16")
    for at in range(isa.STACK_SIZE - cleared, isa.STACK_SIZE, 8):
        w.append(f"store i64 0, ptr {w.emit(f'getelementptr i8, ptr %frame, i64 {at}')}")
    for n in range(1, 6):
        w.put(n, f"%a{n}")
    if w.entry == 0 and w.module.context is not None:
        w.put(1, w.module.context.address(w))
    end = w.emit(f"getelementptr i8, ptr %frame, i64 {isa.STACK_SIZE}")
    w.put(10, w.emit(f"ptrtoint ptr {end} to i64"))
    w.append(f"br label %i{w.entry}")


__all__ = ["CodeTarget", "ContextSource", "Inline", "Slot", "generate"]
