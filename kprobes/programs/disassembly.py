"""eBPF instructions as text, in RFC 9669's words."""

from __future__ import annotations

from . import isa
from .isa import Instruction

_ALU_NAMES = {
    isa.ADD: "add",
    isa.SUB: "sub",
    isa.MUL: "mul",
    isa.DIV: "div",
    isa.OR: "or",
    isa.AND: "and",
    isa.LSH: "lsh",
    isa.RSH: "rsh",
    isa.NEG: "neg",
    isa.MOD: "mod",
    isa.XOR: "xor",
    isa.MOV: "mov",
    isa.ARSH: "arsh",
}
_JMP_NAMES = {
    isa.JEQ: "jeq",
    isa.JGT: "jgt",
    isa.JGE: "jge",
    isa.JSET: "jset",
    isa.JNE: "jne",
    isa.JSGT: "jsgt",
    isa.JSGE: "jsge",
    isa.JLT: "jlt",
    isa.JLE: "jle",
    isa.JSLT: "jslt",
    isa.JSLE: "jsle",
}
_SIZE_NAMES = {isa.W: "w", isa.H: "h", isa.B: "b", isa.DW: "dw"}
_ATOMIC_NAMES = {isa.ADD: "add", isa.OR: "or", isa.AND: "and", isa.XOR: "xor"}


def disassemble(i: Instruction) -> str:
    """Return an instruction's line in the RFC's mnemonics: `add64 r1, r2`, `jeq32 r1, 5, +3`,
    `ldxdw r0, [r1+8]`, `call 5`.

    Of an opcode that does not exist the fields are shown: `.slot 0xff, r1, r2, +0, 0`.
    """
    if i.opcode not in isa.USES:
        return f".slot {i.opcode:#04x}, r{i.dst}, r{i.src}, {i.offset:+}, {i.imm}"
    if i.cls in (isa.ALU, isa.ALU64):
        return _arithmetic(i)
    if i.cls in (isa.JMP, isa.JMP32):
        return _jump(i)
    if i.wide:
        return f"lddw r{i.dst}, {_loaded(i)}"
    return _access(i)


def _arithmetic(i: Instruction) -> str:
    """Return the text of an ALU or ALU64 instruction: `add64 r1, r2`, `sdiv32 r1, 3`,
    `movsx8_64 r1, r2`, `be16 r1`.
    """
    bits = 64 if i.cls == isa.ALU64 else 32
    if i.op == isa.END:
        kind = "be" if i.by_register else "le"
        if i.cls == isa.ALU64:
            kind = "bswap"
        return f"{kind}{i.imm} r{i.dst}"
    if i.op == isa.NEG:
        return f"neg{bits} r{i.dst}"
    name = _ALU_NAMES[i.op]
    if i.offset and i.op == isa.MOV:
        name = f"movsx{i.offset}"
    elif i.offset:
        name = f"s{name}"
    return f"{name}{'_' * name.startswith('movsx')}{bits} r{i.dst}, {_second(i)}"


def _second(i: Instruction) -> str:
    """Return the second operand as text: a register, or a constant."""
    return f"r{i.src}" if i.by_register else str(i.imm)


def _jump(i: Instruction) -> str:
    """Return the text of a JMP or JMP32 instruction: `jeq32 r1, 5, +3`, `ja +3`, `call 5`,
    `call local +7`, `exit`.
    """
    if i.op == isa.EXIT:
        return "exit"
    if i.op == isa.CALL and i.imm == isa.MISSING:
        return "call missing"
    if i.op == isa.CALL:
        kind = ("", "local ", "btf ")[i.src] if i.src <= 2 else f"{i.src}: "
        return f"call {kind}{i.imm:{'+' if i.src == isa.LOCAL else ''}}"
    if i.op == isa.JA:
        return f"ja {i.offset:+}" if i.cls == isa.JMP else f"ja32 {i.imm:+}"
    width = "32" if i.cls == isa.JMP32 else ""
    return f"{_JMP_NAMES[i.op]}{width} r{i.dst}, {_second(i)}, {i.offset:+}"


def _access(i: Instruction) -> str:
    """Return the text of a load or store: `ldxdw r0, [r1+8]`, `stw [r10-4], 0`,
    `lock add_fetch64 [r1+0], r2`.
    """
    size = _SIZE_NAMES[i.opcode & 0x18]
    if i.cls == isa.LDX:
        return f"ldx{'s' if i.mode == isa.MEMSX else ''}{size} r{i.dst}, [r{i.src}{i.offset:+}]"
    there = f"[r{i.dst}{i.offset:+}]"
    if i.cls == isa.ST:
        return f"st{size} {there}, {i.imm}"
    if i.mode == isa.MEM:
        return f"stx{size} {there}, r{i.src}"
    name = {isa.XCHG: "xchg", isa.CMPXCHG: "cmpxchg"}.get(i.imm)
    if name is None:
        name = _ATOMIC_NAMES.get(i.imm & ~isa.FETCH, hex(i.imm & isa.U32))
        if i.imm & isa.FETCH:
            name += "_fetch"
    return f"lock {name}{64 if size == 'dw' else 32} {there}, r{i.src}"


def _loaded(i: Instruction) -> str:
    """Return what an LDDW loads, as text: `map[0]`, `0x10`."""
    if i.src in (isa.MAP_VALUE, isa.MAP_VALUE_FD):
        return f"{'map' if i.src == isa.MAP_VALUE else 'map_fd'}[{i.imm}].value{i.high:+}"
    names = {
        isa.MAP: f"map[{i.imm}]",
        isa.MAP_FD: f"map_fd[{i.imm}]",
        isa.CODE: f"code {i.imm:+}",
        isa.VARIABLE: f"variable {i.imm}",
    }
    return names.get(i.src, f"{i.value:#x}")
