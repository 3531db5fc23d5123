"""LLVM IR of each instruction.

`w` is always the writer of the function; values are names of the IR, so "return a value" means that
code which computes it is written, and its name returned.
"""

from __future__ import annotations

from typing import Final

from ..errors import Unsupported
from . import isa, support
from .isa import Instruction
from .places import PlaceKind
from .writer import FAILED, IrWriter

_OPS: Final = {
    isa.ADD: "add",
    isa.SUB: "sub",
    isa.MUL: "mul",
    isa.OR: "or",
    isa.AND: "and",
    isa.XOR: "xor",
    isa.LSH: "shl",
    isa.RSH: "lshr",
    isa.ARSH: "ashr",
}
_SHIFTS: Final = (isa.LSH, isa.RSH, isa.ARSH)
_CONDITIONS: Final = {
    isa.JEQ: "eq",
    isa.JNE: "ne",
    isa.JGT: "ugt",
    isa.JGE: "uge",
    isa.JLT: "ult",
    isa.JLE: "ule",
    isa.JSGT: "sgt",
    isa.JSGE: "sge",
    isa.JSLT: "slt",
    isa.JSLE: "sle",
}
_ATOMICS: Final = {
    isa.ADD: "add",
    isa.OR: "or",
    isa.AND: "and",
    isa.XOR: "xor",
    isa.XCHG & ~isa.FETCH: "xchg",
}


def instruction(w: IrWriter, pc: int, i: Instruction) -> None:
    """Emit IR for one eBPF instruction, the branches of a jump included.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.
    """
    if i.cls in (isa.ALU, isa.ALU64):
        _swaps(w, i) if i.op == isa.END else _arithmetic(w, i)
    elif i.cls in (isa.JMP, isa.JMP32):
        _jump(w, pc, i)
    elif i.wide:
        w.put(i.dst, _constant(w, pc, i))
    elif i.cls == isa.LDX:
        _loads(w, pc, i)
    elif i.cls == isa.STX and i.mode == isa.ATOMIC:
        _atomic(w, pc, i)
    else:
        value = w.get(i.src, 8 * i.size) if i.cls == isa.STX else str(isa.signed(i.imm, 8 * i.size))
        w.store(value, w.address(pc, i.dst, i.offset), 8 * i.size)


# --- arithmetic


def _arithmetic(w: IrWriter, i: Instruction) -> None:
    """Emit IR for an ALU or ALU64 instruction, but for byte swaps.

    Args:
        w: writer of the IR of the current function.
        i: the instruction.
    """
    bits = 64 if i.cls == isa.ALU64 else 32
    if i.op == isa.MOV:
        w.put(i.dst, _moved(w, i, bits), bits)
        return
    old = w.get(i.dst, bits)
    operand = w.get(i.src, bits) if i.by_register else str(i.imm)
    if i.op == isa.NEG:
        value = w.emit(f"sub i{bits} 0, {old}")
    elif i.op in (isa.DIV, isa.MOD):
        value = _divided(w, bits, "s" if i.offset else "u", i.op == isa.MOD, old, operand)
    else:
        if i.op in _SHIFTS:
            operand = w.emit(f"and i{bits} {operand}, {bits - 1}")
        in_steps = i.op in _SHIFTS and bits > w.module.target.shifts and i.by_register
        value = (
            _shifted(w, _OPS[i.op], old, operand)
            if in_steps
            else w.emit(f"{_OPS[i.op]} i{bits} {old}, {operand}")
        )
    w.put(i.dst, value, bits)


def _shifted(w: IrWriter, op: str, value: str, by: str) -> str:
    """Emit IR for a shift of 64 bits by a variable distance, out of 32-bit shifts; return its name.

    Used where the target has no instruction for that.

    Bits that cross the halves are shifted by 31 less the distance modulo 32, and by 1: a shift of a
    half by 32 has no meaning.

    Args:
        w: writer of the IR of the current function.
        op: "shl", "lshr" or "ashr".
        value: IR name of the i64 that is shifted.
        by: IR name of the distance, an i64 below 64.
    """

    def half(bits: str) -> str:
        return w.emit(f"trunc i64 {bits} to i32")

    left = op == "shl"
    low = half(value)
    high = half(w.emit(f"lshr i64 {value}, 32"))
    distance = half(by)
    # the half that gets bits of the other, and that
    first, second = (high, low) if left else (low, high)
    inside = w.emit(f"and i32 {distance}, 31")
    once, onward = ("lshr", "shl") if left else ("shl", "lshr")
    across = w.emit(
        f"{once} i32 {w.emit(f'{once} i32 {second}, 1')}, {w.emit(f'xor i32 {inside}, 31')}"
    )
    near = w.emit(f"or i32 {w.emit(f'{onward} i32 {first}, {inside}')}, {across}")
    rest = w.emit(f"{op} i32 {second}, {inside}")
    fill = w.emit(f"ashr i32 {high}, 31") if op == "ashr" else "0"
    far = w.emit(f"icmp ugt i32 {distance}, 31")
    one = w.emit(f"select i1 {far}, i32 {rest}, i32 {near}")
    other = w.emit(f"select i1 {far}, i32 {fill}, i32 {rest}")
    up, down = (one, other) if left else (other, one)
    upper = w.emit(f"shl i64 {w.emit(f'zext i32 {up} to i64')}, 32")
    return w.emit(f"or i64 {upper}, {w.emit(f'zext i32 {down} to i64')}")


def _moved(w: IrWriter, i: Instruction, bits: int) -> str:
    """Emit IR for the value that MOV or MOVSX moves; return its IR name, or a constant as text.

    Args:
        w: writer of the IR of the current function.
        i: the instruction.
        bits: 32 or 64, the width of the result.
    """
    if not i.by_register:
        return str(i.imm)
    if not i.offset:
        return w.get(i.src, bits)
    return w.emit(f"sext i{i.offset} {w.get(i.src, i.offset)} to i{bits}")


def _divided(w: IrWriter, bits: int, sign: str, remainder: bool, old: str, by: str) -> str:
    """Emit IR for a division or remainder as RFC 9669 has it; return the result's IR name.

    By zero the quotient is 0 and the remainder the dividend; the least number divided by -1 wraps.

    Args:
        w: writer of the IR of the current function.
        bits: 32 or 64, the width of both numbers.
        sign: "s" for signed numbers, "u" for unsigned ones.
        remainder: True for the remainder instead of the quotient.
        old: IR name of the dividend.
        by: IR name of the divisor, or a constant as text.
    """
    name = f"{sign}{'rem' if remainder else 'div'}"
    zero = w.emit(f"icmp eq i{bits} {by}, 0")
    special = zero
    if sign == "s":
        minus = w.emit(f"icmp eq i{bits} {by}, -1")
        special = w.emit(f"or i1 {zero}, {minus}")
    safe = w.emit(f"select i1 {special}, i{bits} 1, i{bits} {by}")
    value = (
        w.emit(f"{name} i{bits} {old}, {safe}")
        if bits <= w.module.target.divides
        else _by_hand(w, bits, sign, remainder, old, safe)
    )
    if sign == "s" and not remainder:
        negated = w.emit(f"sub i{bits} 0, {old}")
        value = w.emit(f"select i1 {minus}, i{bits} {negated}, i{bits} {value}")
    return w.emit(f"select i1 {zero}, i{bits} {old if remainder else 0}, i{bits} {value}")


def _by_hand(w: IrWriter, bits: int, sign: str, remainder: bool, old: str, by: str) -> str:
    """Emit IR for a division that calls a function of support.c.

    Used where the target has no instruction to divide numbers of that width: LLVM would call a
    function of a library.

    Args:
        w: writer of the IR of the current function.
        bits: 32 or 64, the width of both numbers.
        sign: "s" for signed numbers, "u" for unsigned ones.
        remainder: True for the remainder instead of the quotient.
        old: IR name of the dividend.
        by: IR name of the divisor, which is not 0.

    Returns:
        The result's IR name.
    """
    support.need(w.module, "rest" if remainder else "quotient")
    wide = []
    extend = "sext" if sign == "s" else "zext"
    for number in (old, by):
        value = w.emit(f"{extend} i{bits} {number} to i64") if bits < 64 else number
        wide.append((value, w.emit(f"ashr i64 {value}, 63") if sign == "s" else "0"))
    sizes = [
        w.emit(f"sub i64 {w.emit(f'xor i64 {value}, {minus}')}, {minus}") for value, minus in wide
    ]
    value = w.emit(
        f"call i64 @{'rest' if remainder else 'quotient'}(i64 {sizes[0]}, i64 {sizes[1]})"
    )
    minus = wide[0][1] if remainder else w.emit(f"xor i64 {wide[0][1]}, {wide[1][1]}")
    value = w.emit(f"sub i64 {w.emit(f'xor i64 {value}, {minus}')}, {minus}")
    return value if bits == 64 else w.emit(f"trunc i64 {value} to i{bits}")


def _swaps(w: IrWriter, i: Instruction) -> None:
    """Emit IR for a byte swap; where the byte order needs none, the value is only cut to its bits.

    Args:
        w: writer of the IR of the current function.
        i: the instruction.
    """
    value = w.get(i.dst, i.imm)
    to_big = i.by_register
    if i.cls == isa.ALU64 or to_big != (w.module.target.program_order == "big"):
        value = w.reversed(value, i.imm)
    w.put(i.dst, value, i.imm)


def _constant(w: IrWriter, pc: int, i: Instruction) -> str:
    """Emit IR for the value that LDDW loads; return its IR name, or a constant as text.

    Of a function's address it is "0": nothing reads it.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.

    Raises:
        Unsupported: only an operating system has what it loads.
    """
    if i.src == isa.VALUE64:
        return str(i.value)
    if i.src == isa.MAP:
        return w.word(("map", i.imm))
    if i.src == isa.MAP_VALUE:
        return w.emit(f"add nuw i64 {w.word(('value', i.imm))}, {i.high & isa.U32}")
    if i.src == isa.CODE:
        # only helpers that are emitted as code take functions, and they look at the instruction
        return "0"
    raise Unsupported(f"instruction {pc} loads what only an operating system has (kind {i.src})")


# --- jumps and calls


def _jump(w: IrWriter, pc: int, i: Instruction) -> None:
    """Emit IR for a jump, a conditional jump, a call, or the function's end (EXIT).

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.
    """
    if i.is_exit:
        w.append(f"ret i64 {w.get(0)}")
    elif i.op == isa.CALL:
        w.put(0, _called(w, pc, i))
    elif i.op == isa.JA:
        w.append(f"br label %i{i.target(pc)}")
    else:
        bits = 64 if i.cls == isa.JMP else 32
        old = w.get(i.dst, bits)
        operand = w.get(i.src, bits) if i.by_register else str(i.imm)
        if i.op == isa.JSET:
            both = w.emit(f"and i{bits} {old}, {operand}")
            true = w.emit(f"icmp ne i{bits} {both}, 0")
        else:
            true = w.emit(f"icmp {_CONDITIONS[i.op]} i{bits} {old}, {operand}")
        w.append(f"br i1 {true}, label %i{i.target(pc)}, label %i{pc + 1}")


def _called(w: IrWriter, pc: int, i: Instruction) -> str:
    """Emit IR for a call of a local function or of a helper; return the result's IR name.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.

    Raises:
        Unsupported: it calls a function of an operating system's.
    """
    if i.src == isa.BTF_CALL:
        raise Unsupported(f"instruction {pc} calls a function of an operating system's")
    if i.src == isa.LOCAL:
        return call_local(w, i.target(pc), [w.get(n) for n in range(1, 6)])
    value = w.module.inline(w, pc, i.imm)
    return value if value is not None else call_helper(w, i.imm)


def call_local(w: IrWriter, entry: int, arguments: list[str]) -> str:
    """Emit IR for a call of another function of the program's.

    Behind the call, a branch ends the run where a helper has failed in it; guest code has none.

    Args:
        w: writer of the IR of the current function.
        entry: slot where the called function begins.
        arguments: IR names of the values of r1 to r5.

    Returns:
        The result's IR name.
    """
    value = w.emit(f"call i64 @f{entry}({', '.join(f'i64 {a}' for a in arguments)}, ptr %env)")
    if not w.module.target.alone:  # where there is nobody to call that could fail
        end_if_failed(w)
    return value


def call_helper(w: IrWriter, number: int, what: str = "call") -> str:
    """Emit IR for a call of the function whose address is in a word of the environment.

    Its arguments are r1 to r5. Behind the call, a branch ends the run where the helper has failed.

    Args:
        w: writer of the IR of the current function.
        number: number of the helper; for "format", slot of the call.
        what: kind of the environment's word: "call", or "format" for a helper with a format.

    Returns:
        The IR name of the result, an i64.
    """
    function = w.pointer(w.word((what, number)))
    value = w.emit(f"call i64 {function}({', '.join(f'i64 {w.get(n)}' for n in range(1, 6))})")
    end_if_failed(w)
    return value


def end_if_failed(w: IrWriter) -> None:
    """Emit IR for a branch that ends the function, with 0 as its result, where a helper in Python
    has raised something.

    Called behind each call of a helper, and of a function that may call one. A helper that has
    raised leaves a note. The branch of a called function leaves it there for the caller; that of
    the entry function removes it, for the next run.

    Args:
        w: writer of the IR of the current function.
    """
    failed = w.label()
    onward = w.label()
    word = w.emit(f"getelementptr i8, ptr %env, i64 {w.module.slot(FAILED)}")
    flag = w.emit(f"load i64, ptr {word}")
    raised = w.emit(f"icmp ne i64 {flag}, 0")
    w.append(f"br i1 {raised}, label %{failed}, label %{onward}")
    w.start_block(failed)
    if not w.entry:  # the next run begins well
        w.append(f"store i64 0, ptr {word}")
    w.append("ret i64 0")
    w.start_block(onward)


# --- memory


def _loads(w: IrWriter, pc: int, i: Instruction) -> None:
    """Emit IR for a load (LDX) from memory, or from the context by the module's `context`.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.
    """
    place = w.module.places.at(pc, i.src)
    bits = 8 * i.size
    context = w.module.context
    if place.kind is PlaceKind.CONTEXT and context is not None:
        value = context.load(w, place.offset + i.offset, i.size)
        bits, low = 64, bits
        if i.mode == isa.MEMSX:
            value = w.emit(f"sext i{low} {w.emit(f'trunc i64 {value} to i{low}')} to i64")
    else:
        value = w.load(w.address(pc, i.src, i.offset), bits)
        if i.mode == isa.MEMSX:
            value = w.emit(f"sext i{bits} {value} to i64")
            bits = 64
    w.put(i.dst, value, bits)


def _atomic(w: IrWriter, pc: int, i: Instruction) -> None:
    """Emit IR for an atomic operation; with FETCH the old value goes into a register, too.

    Args:
        w: writer of the IR of the current function.
        pc: slot of the instruction.
        i: the instruction.
    """
    bits = 8 * i.size
    pointer = w.address(pc, i.dst, i.offset)
    operand = w.get(i.src, bits)
    at_once = w.module.target.atomic and not w.module.target.swapped
    old = (_at_once if at_once else _in_steps)(w, i, bits, pointer, operand)
    if i.imm & isa.FETCH:
        w.put(0 if i.imm == isa.CMPXCHG else i.src, old, bits)


def _at_once(w: IrWriter, i: Instruction, bits: int, pointer: str, operand: str) -> str:
    """Emit IR for an atomic operation as one atomic instruction of the target's.

    Args:
        w: writer of the IR of the current function.
        i: the instruction.
        bits: 32 or 64.
        pointer: IR name of the pointer to the memory.
        operand: IR name of the source register's value.

    Returns:
        The IR name of the memory's old value.
    """
    if i.imm == isa.CMPXCHG:
        pair = w.emit(
            f"cmpxchg ptr {pointer}, i{bits} {w.get(0, bits)}, i{bits} {operand} seq_cst seq_cst"
        )
        return w.emit(f"extractvalue {{ i{bits}, i1 }} {pair}, 0")
    ordering = "seq_cst" if i.imm & isa.FETCH else "monotonic"
    return w.emit(
        f"atomicrmw {_ATOMICS[i.imm & ~isa.FETCH]} ptr {pointer}, i{bits} {operand} {ordering}"
    )


def _in_steps(w: IrWriter, i: Instruction, bits: int, pointer: str, operand: str) -> str:
    """Emit IR for an atomic operation as a load, a computation and a store, which is not atomic.

    That is right only where a single thread runs.

    Args:
        w: writer of the IR of the current function.
        i: the instruction.
        bits: 32 or 64.
        pointer: IR name of the pointer to the memory.
        operand: IR name of the source register's value.

    Returns:
        The IR name of the memory's old value.
    """
    old = w.load(pointer, bits)
    if i.imm == isa.CMPXCHG:
        same = w.emit(f"icmp eq i{bits} {old}, {w.get(0, bits)}")
        new = w.emit(f"select i1 {same}, i{bits} {operand}, i{bits} {old}")
    elif i.imm == isa.XCHG:
        new = operand
    else:
        new = w.emit(f"{_ATOMICS[i.imm & ~isa.FETCH]} i{bits} {old}, {operand}")
    w.store(new, pointer, bits)
    return old
