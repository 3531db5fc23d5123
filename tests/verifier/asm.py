"""Instructions from the text that `isa.disassemble` gives, with labels: `loop: add64 r1, 1; jne r1, 5, loop; exit`.

Maps are `map[0]`, their values' addresses `map[0].value+8`; local calls are `call local NAME` where NAME is a label.
"""

from __future__ import annotations

import re

from kprobes.programs import isa
from kprobes.programs.code import Code
from kprobes.programs.isa import Instruction, lddw
from kprobes.programs.maps import Map, MapType, Spec, create

ALU = {n.lower(): getattr(isa, n) for n in ["ADD", "SUB", "MUL", "DIV", "OR", "AND", "LSH", "RSH", "NEG", "MOD", "XOR",
                                            "MOV", "ARSH"]}
JMP = {n.lower(): getattr(isa, n) for n in ["JEQ", "JGT", "JGE", "JSET", "JNE", "JSGT", "JSGE", "JLT", "JLE", "JSLT",
                                            "JSLE"]}
SIZES = {"w": isa.W, "h": isa.H, "b": isa.B, "dw": isa.DW}
ATOMIC = {"add": isa.ADD, "or": isa.OR, "and": isa.AND, "xor": isa.XOR, "xchg": isa.XCHG, "cmpxchg": isa.CMPXCHG}


def maps() -> tuple[Map, ...]:
    """0 array of 64 u64, 1 hash u64 -> 48 bytes, 2 ring buffer, 3 one value of 64 bytes, 4 the same read-only, 5 queue,
    6 stack traces."""
    return tuple(create(Spec(**s)) for s in (
        {"type": MapType.ARRAY, "name": "counts", "key_size": 4, "value_size": 8, "max_entries": 64},
        {"type": MapType.HASH, "name": "hash", "key_size": 8, "value_size": 48, "max_entries": 16},
        {"type": MapType.RINGBUF, "name": "ring", "max_entries": 4096},
        {"type": MapType.ARRAY, "name": ".bss", "key_size": 4, "value_size": 64, "max_entries": 1},
        {"type": MapType.ARRAY, "name": ".rodata", "key_size": 4, "value_size": 64, "max_entries": 1, "readonly": True},
        {"type": MapType.QUEUE, "name": "queue", "value_size": 8, "max_entries": 16},
        {"type": MapType.STACK_TRACE, "name": "stacks", "key_size": 4, "value_size": 64, "max_entries": 16},
    ))


def assemble(text: str) -> tuple[Instruction, ...]:
    """One statement a line, or separated by `;`."""
    statements, labels, at = [], {}, 0
    for raw in re.split(r"[;\n]", text):
        statement = raw.split("#")[0].strip()
        while m := re.match(r"([a-z_]\w*):\s*", statement):
            labels[m[1]] = at
            statement = statement[m.end():]
        if statement:
            statements.append((at, statement))
            at += 2 if statement.startswith("lddw") else 1
    out: list[Instruction] = []
    for pc, statement in statements:
        out.extend(_one(pc, statement, labels))
    return tuple(out)


def code(text: str, **fields: object) -> Code:
    insns = assemble(text)
    return Code("prog", insns, fields.pop("maps", None) or maps(), "kprobe/f", **fields)  # type: ignore[arg-type]


def _one(pc: int, statement: str, labels: dict[str, int]) -> tuple[Instruction, ...]:
    word, _, rest = statement.partition(" ")
    ops = [o.strip() for o in rest.split(",")] if rest else []

    def far(text: str) -> int:
        return labels[text] - pc - 1 if text in labels else int(text, 0)

    if word == "exit":
        return (Instruction(isa.JMP | isa.EXIT),)
    if word == "call":
        kind, _, to = rest.rpartition(" ")
        src = {"": isa.HELPER, "local": isa.LOCAL, "btf": isa.BTF_CALL}[kind]
        return (Instruction(isa.JMP | isa.CALL, src=src, imm=far(to) if src == isa.LOCAL else int(to)),)
    if word == "ja":
        return (Instruction(isa.JMP | isa.JA, offset=far(rest)),)
    if word == "lddw":
        return _wide(int(ops[0][1:]), ops[1])
    if m := re.fullmatch(r"(j\w+?)(32)?", word):
        return (_two(JMP[m[1]] | (isa.JMP32 if m[2] else isa.JMP), ops, far(ops[2])),)
    if m := re.fullmatch(r"(le|be|bswap)(16|32|64)", word):
        opcode = isa.END | (isa.ALU64 if m[1] == "bswap" else isa.ALU | (isa.X if m[1] == "be" else 0))
        return (Instruction(opcode, int(ops[0][1:]), imm=int(m[2])),)
    if m := re.fullmatch(r"movsx(8|16|32)_(32|64)", word):
        return (_two(isa.MOV | (isa.ALU64 if m[2] == "64" else isa.ALU), ops, int(m[1])),)
    if m := re.fullmatch(r"(s?)([a-z]+)(64|32)", word):
        cls = isa.ALU64 if m[3] == "64" else isa.ALU
        name, signed = (m[1] + m[2], 0) if m[1] + m[2] in ALU else (m[2], 1)
        return ((_two(ALU[name] | cls, ops, signed),
                ) if name != "neg" else (Instruction(isa.NEG | cls, int(ops[0][1:])),))
    return (_access(word, rest, ops),)


def _two(opcode: int, ops: list[str], offset: int = 0) -> Instruction:
    dst = int(ops[0][1:])
    if ops[1].startswith("r"):
        return Instruction(opcode | isa.X, dst, int(ops[1][1:]), offset)
    return Instruction(opcode, dst, 0, offset, isa.signed(int(ops[1], 0), 32))


def _wide(dst: int, what: str) -> tuple[Instruction, ...]:
    if m := re.fullmatch(r"map\[(\d+)\](?:\.value([+-]\d+))?", what):
        return lddw(dst, int(m[1]), isa.MAP_VALUE, int(m[2])) if m[2] else lddw(dst, int(m[1]), isa.MAP, 0)
    return lddw(dst, int(what, 0))


def _access(word: str, rest: str, ops: list[str]) -> Instruction:
    base, offset = re.search(r"\[r(\d+)([+-]\d+)\]", rest).groups()  # type: ignore[union-attr]
    if word == "lock":
        m = re.match(r"([a-z]+)(_fetch)?(64|32)", rest)
        assert m
        size = isa.DW if m[3] == "64" else isa.W
        imm = ATOMIC[m[1]] | (isa.FETCH if m[2] else 0)
        return Instruction(isa.STX | isa.ATOMIC | size, int(base), int(ops[-1][1:]), int(offset), imm)
    m = re.fullmatch(r"(ldxs|ldx|stx|st)(dw|w|h|b)", word)
    assert m, word
    size = SIZES[m[2]]
    if m[1].startswith("ldx"):
        return Instruction(isa.LDX | size | (isa.MEMSX if m[1] == "ldxs" else isa.MEM), int(ops[0][1:]), int(base),
                           int(offset))
    if m[1] == "stx":
        return Instruction(isa.STX | size | isa.MEM, int(base), int(ops[1][1:]), int(offset))
    return Instruction(isa.ST | size | isa.MEM, int(base), 0, int(offset), int(ops[1], 0))
