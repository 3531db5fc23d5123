"""An assembler of programs: labels, registers, helpers by name, maps by number.

What writes eBPF writes it here: each method appends instructions, and its docstring says what these
do when the program runs. `finish()` returns the instructions, its jumps bound to their labels, and
the source lines that were named on the way.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from . import isa
from .code import CodeLine
from .helpers import HELPERS
from .isa import Instruction, lddw

_HELPERS: Final = {helper.name: helper.number for helper in HELPERS.values()}
_OPERATIONS: Final = {
    "+": isa.ADD,
    "-": isa.SUB,
    "*": isa.MUL,
    "/": isa.DIV,
    "%": isa.MOD,
    "|": isa.OR,
    "&": isa.AND,
    "^": isa.XOR,
    "<<": isa.LSH,
    ">>": isa.RSH,
    "s>>": isa.ARSH,
}
_CONDITIONS: Final = {
    "==": isa.JEQ,
    "!=": isa.JNE,
    "<": isa.JLT,
    "<=": isa.JLE,
    ">": isa.JGT,
    ">=": isa.JGE,
    "s<": isa.JSLT,
    "s<=": isa.JSLE,
    "s>": isa.JSGT,
    "s>=": isa.JSGE,
    "&": isa.JSET,
}
_SIZES: Final = {1: isa.B, 2: isa.H, 4: isa.W, 8: isa.DW}
_I32: Final = range(-(1 << 31), 1 << 31)


class Assembler:
    """Instructions of one program, one after the other.

    Registers are numbers, 0 to 10. Operations are written as in C: `+ - * / % | & ^ << >>`, with
    `s>>` for the shift that keeps the sign, and conditions `== != < <= > >= &` with `s<` and its
    like for signed numbers.
    """

    def __init__(self) -> None:
        """Begin without instructions."""
        self._code: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        self._lines: dict[int, CodeLine] = {}
        self._count = 0

    # --- numbers

    def set(self, register: int, value: int) -> None:
        """Append instructions that load a constant into a register.

        Args:
            register: number of the register.
            value: 64 bits, signed or unsigned.
        """
        value = isa.signed(value, 64)
        if value in _I32:
            self._put(isa.MOV | isa.ALU64, register, imm=value)
        else:
            self._code += lddw(register, value & isa.U64)

    def move(self, register: int, source: int) -> None:
        """Copy the register `source` to `register`; nothing is appended if they are the same."""
        if register != source:
            self._put(isa.MOV | isa.X | isa.ALU64, register, source)

    def extend(self, register: int, bits: int, signed: bool) -> None:
        """Append instructions that extend a register's lower bits to 64; none where `bits` is 64.

        Args:
            register: number of the register.
            bits: how many lower bits are kept: 8, 16, 32 or 64.
            signed: True to copy the highest of these bits upwards, False to fill with zeros.
        """
        if bits == 64:
            return
        if signed:
            self._put(isa.MOV | isa.X | isa.ALU64, register, register, offset=bits)
        elif bits == 32:
            self._put(isa.MOV | isa.X | isa.ALU, register, register)
        else:
            self._put(isa.AND | isa.ALU64, register, imm=(1 << bits) - 1)

    def compute(self, operation: str, register: int, source: int) -> None:
        """Compute `register = register operation source` in 64 bits; both are registers."""
        self._put(_OPERATIONS[operation] | isa.X | isa.ALU64, register, source)

    def compute_with(self, operation: str, register: int, number: int) -> None:
        """Compute `register = register operation number` in 64 bits.

        Args:
            operation: the operation, as C writes it.
            register: number of the register.
            number: a constant, 32 bits with a sign.
        """
        assert number in _I32, number
        self._put(_OPERATIONS[operation] | isa.ALU64, register, imm=number)

    def divide_signed(self, operation: str, register: int, source: int) -> None:
        """Compute `register = register / source`, or `%`, of signed 64-bit numbers.

        Args:
            operation: "/" or "%"; quotients are truncated toward zero.
            register: number of the register with the dividend, which gets the result.
            source: number of the register with the divisor.
        """
        self._put(_OPERATIONS[operation] | isa.X | isa.ALU64, register, source, offset=1)

    def negate(self, register: int) -> None:
        """Replace a register by its two's complement."""
        self._put(isa.NEG | isa.ALU64, register)

    def swap(self, register: int, bits: int) -> None:
        """Reverse the lower 16, 32 or 64 bits of a register byte by byte, and clear those above."""
        self._put(isa.END | isa.ALU64, register, imm=bits)

    # --- memory

    def load(self, register: int, base: int, offset: int, size: int, signed: bool = False) -> None:
        """Load memory of the program's own into a register, extended to 64 bits.

        Args:
            register: number of the register that is loaded.
            base: register with the address.
            offset: bytes that are added to it, 16 bits with a sign.
            size: bytes: 1, 2, 4 or 8.
            signed: True to extend by the sign, False by zeros.
        """
        mode = isa.MEMSX if signed and size < 8 else isa.MEM
        self._put(mode | _SIZES[size] | isa.LDX, register, base, offset)

    def store(self, base: int, offset: int, register: int, size: int) -> None:
        """Store the lower `size` bytes of a register in memory of the program's own.

        Args:
            base: register with the address.
            offset: bytes that are added to it, 16 bits with a sign.
            register: number of the register that is stored.
            size: bytes: 1, 2, 4 or 8.
        """
        self._put(isa.MEM | _SIZES[size] | isa.STX, base, register, offset)

    def store_number(self, base: int, offset: int, number: int, size: int) -> None:
        """Store a constant in memory of the program's own.

        Args:
            base: register with the address.
            offset: bytes that are added to it, 16 bits with a sign.
            number: the constant, 32 bits with a sign.
            size: bytes: 1, 2, 4 or 8.
        """
        self._put(isa.MEM | _SIZES[size] | isa.ST, base, offset=offset, imm=isa.signed(number, 32))

    def map(self, register: int, index: int) -> None:
        """Load the address of a map into a register, as helpers take it.

        Args:
            register: number of the register that is loaded.
            index: index of the map in the program's maps.
        """
        self._code += lddw(register, index, isa.MAP, 0)

    def value(self, register: int, index: int, offset: int) -> None:
        """Load the address of a byte in the only value of an array.

        Args:
            register: number of the register that is loaded.
            index: index of the map in the program's maps.
            offset: bytes from the value's beginning.
        """
        self._code += lddw(register, index, isa.MAP_VALUE, offset)

    # --- control

    def is_target(self, label: str) -> bool:
        """Return True where a jump that was appended so far leads to a label."""
        return any(other == label for _, other in self._jumps)

    def label(self) -> str:
        """Return a new label; place() says later where it is."""
        self._count += 1
        return f"L{self._count}"

    @property
    def size(self) -> int:
        """Number of the instruction slots appended so far."""
        return len(self._code)

    def place(self, label: str) -> None:
        """Put a label here: jumps to it lead to the next instruction that is appended."""
        self._labels[label] = len(self._code)

    def jump(self, label: str) -> None:
        """Jump to a label, however far it is."""
        self._jumps.append((len(self._code), label))
        self._put(isa.JA | isa.JMP32)

    def jump_if(self, condition: str, register: int, source: int, label: str) -> None:
        """Jump to `label` if `register condition source` holds; both operands are registers."""
        self._branch(_CONDITIONS[condition] | isa.X, label, register, source, 0)

    def jump_if_number(self, condition: str, register: int, number: int, label: str) -> None:
        """Jump to a label if a comparison of a register with a constant holds.

        Args:
            condition: the comparison, as C writes it.
            register: the first operand.
            number: the second operand, 32 bits with a sign.
            label: the label.
        """
        assert number in _I32, number
        self._branch(_CONDITIONS[condition], label, register, 0, number)

    def _branch(self, opcode: int, label: str, register: int, source: int, number: int) -> None:
        """Append a conditional jump.

        Args:
            opcode: the comparison; with isa.X it is with `source`, else with `number`.
            label: where it jumps to.
            register: the first operand.
            source: register that is the second operand.
            number: constant that is the second operand.
        """
        self._jumps.append((len(self._code), label))
        self._put(opcode | isa.JMP, register, source, imm=number)

    def call(self, helper: str) -> None:
        """Call a helper, whose arguments are in r1 to r5; its result is in r0.

        Args:
            helper: its name without `bpf_`.
        """
        self._put(isa.CALL | isa.JMP, imm=_HELPERS[helper])

    def exit(self) -> None:
        """End the program, with r0."""
        self._put(isa.EXIT | isa.JMP)

    def line(self, line: CodeLine) -> None:
        """Note the source line of the instructions that are appended from now on, until the next
        call.
        """
        self._lines[len(self._code)] = line

    def finish(self) -> tuple[tuple[Instruction, ...], dict[int, CodeLine]]:
        """Bind all jumps to their labels, and return the program; called once, at the end.

        Instructions that no path reaches are left out. A conditional jump reaches 32,767
        instructions: one that leads farther is replaced by a short one and a far jump.

        Returns:
            (the instructions, one for each slot; slot -> the source line from there on).
        """
        self._prune()
        while self._widen():
            pass
        for pc, label in self._jumps:
            i = self._code[pc]
            distance = self._labels[label] - pc - 1
            far = i.opcode == isa.JA | isa.JMP32
            self._code[pc] = evolve(i, imm=distance) if far else evolve(i, offset=distance)
        return tuple(self._code), dict(self._lines)

    def _prune(self) -> None:
        """Remove instructions that no path reaches, as verifiers refuse them; labels, jumps and
        lines are moved.
        """
        jumps = dict(self._jumps)
        seen = set[int]()
        todo = [0]
        while todo:
            pc = todo.pop()
            if pc in seen or pc >= len(self._code):
                continue
            seen.add(pc)
            i = self._code[pc]
            if i.wide:
                seen.add(pc + 1)
            if pc in jumps:
                todo.append(self._labels[jumps[pc]])
            if not i.is_exit and not (i.is_jump and not i.is_conditional):
                todo.append(pc + (2 if i.wide else 1))
        kept = sorted(seen)
        places = {pc: n for n, pc in enumerate(kept)}
        following = dict[int, int]()
        at = len(kept)
        for pc in range(len(self._code), -1, -1):
            at = places.get(pc, at)
            following[pc] = at
        self._code = [self._code[pc] for pc in kept]
        self._labels = {name: following[pc] for name, pc in self._labels.items()}
        self._jumps = [(places[pc], label) for pc, label in self._jumps if pc in places]
        self._lines = {following[pc]: line for pc, line in self._lines.items()}

    def _widen(self) -> bool:
        """Replace one conditional jump that leads too far by a short one and a far jump.

        Returns:
            False, with nothing changed: no jump leads too far.
        """
        for number, (pc, label) in enumerate(self._jumps):
            i = self._code[pc]
            distance = self._labels[label] - pc - 1
            if i.opcode == isa.JA | isa.JMP32 or -32768 <= distance <= 32767:
                continue
            # if c goto L  ->  if c goto +1; goto +1; goto L
            self._insert(pc + 1, 2)
            self._code[pc] = evolve(i, offset=1)
            self._code[pc + 1] = Instruction(isa.JA | isa.JMP, offset=1)
            self._code[pc + 2] = Instruction(isa.JA | isa.JMP32)
            self._jumps[number] = (pc + 2, label)
            return True
        return False

    def _insert(self, at: int, count: int) -> None:
        """Insert empty instructions, and move labels, jumps and lines that are behind them.

        Args:
            at: slot of the first inserted instruction.
            count: how many are inserted.
        """
        self._code[at:at] = [Instruction(0)] * count
        self._labels = {name: pc + count * (pc >= at) for name, pc in self._labels.items()}
        self._jumps = [(pc + count * (pc >= at), label) for pc, label in self._jumps]
        self._lines = {pc + count * (pc >= at): line for pc, line in self._lines.items()}

    def _put(self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> None:
        """Append an instruction of these fields, as isa.Instruction has them."""
        self._code.append(Instruction(opcode, dst, src, offset, imm))
