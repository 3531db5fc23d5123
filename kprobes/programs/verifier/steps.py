"""Instructions that go on behind themselves: `step(..)` compiles one to a function of the path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import isa
from ..code import Code
from ..helpers import HELPERS
from ..isa import Instruction
from . import alu, calls, memory
from .path import Path
from .scalar import M64, Scalar, const, extended, swapped, truncated
from .state import MAP, STACK, START, VALUE, MemoryRegion, Pointer, Value

Step = Callable[[Path], None]


def step(code: Code, insn: Instruction, regions: dict[int, MemoryRegion]) -> Step:
    """Compile an instruction other than jumps, local calls and exit to a function that walks it.

    Args:
        code: the program.
        insn: the instruction.
        regions: index of a map -> the region of its only value, which LDDW points into; filled.

    Returns:
        (path, which is at the instruction) -> None: checks the instruction, and changes the path's
        registers and stack, but not its `pc`. It raises ProgramError where something is wrong.
    """
    if insn.wide:
        return _wide(code, insn, regions)
    if insn.cls in (isa.ALU, isa.ALU64):
        return _ALU_FORMS.get(insn.op, _arithmetic)(code, insn)
    if insn.cls == isa.JMP:
        helper = HELPERS[insn.imm]
        return lambda path: calls.call(path, helper)
    if insn.cls == isa.LDX:
        return _load(insn)
    return _atomic(insn) if insn.cls == isa.STX and insn.mode == isa.ATOMIC else _store(insn)


def _wide(code: Code, insn: Instruction, regions: dict[int, MemoryRegion]) -> Step:
    """Return the Step (a function of a path) that walks an LDDW.

    Args:
        code: the program.
        insn: the LDDW.
        regions: index of a map -> the region of its only value; filled, so that all LDDWs of a map
            load pointers into one region.
    """
    dst = insn.dst
    if insn.src == isa.VALUE64:
        value: Value = const(insn.value)
    elif insn.src == isa.MAP:
        value = Pointer(MemoryRegion(MAP, 0, 0, False, code.maps[insn.imm]), START)
    else:
        of = code.maps[insn.imm]
        region = regions.setdefault(
            insn.imm, MemoryRegion(VALUE, 0, of.value_size, not of.readonly, of)
        )
        value = Pointer(region, const(insn.high))

    def load(path: Path) -> None:
        path.state.regs[dst] = value

    return load


# ---- arithmetic


def number(path: Path, register: int) -> Scalar:
    """Return what is known of the number in a register.

    Args:
        path: the path that reads the register.
        register: number of the register, 0 to 10.

    Raises:
        ProgramError: the register holds an address, or nothing was written to it.
    """
    value = path.read(register)
    if isinstance(value, Scalar):
        return value
    raise path.refuse(
        f"r{register} is a pointer ({value}), and this is for numbers only",
        "with pointers go 64-bit addition and subtraction, loads, stores and comparisons",
    )


def _arithmetic(_code: Code, insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks an ALU instruction with two operands.

    Args:
        insn: the instruction.
    """
    dst = insn.dst
    src = insn.src
    by_register = insn.by_register
    wide = insn.cls == isa.ALU64
    operation = (alu.ALU64 if wide else alu.ALU32)[insn.op | insn.offset]
    imm = const(insn.imm & M64)

    def compute(path: Path) -> None:
        """Set the destination to the result. Raises ProgramError: a pointer is neither added to nor
        subtracted from, or a register has no value.
        """
        regs = path.state.regs
        a = regs[dst]
        b = regs[src] if by_register else imm
        if type(a) is Scalar and type(b) is Scalar:
            regs[dst] = operation(a, b)
        elif a is None or b is None:
            path.read(dst if a is None else src)
        elif wide and insn.op in (isa.ADD, isa.SUB):
            regs[dst] = _moved(path, insn, a, b)
        else:
            number(path, dst if isinstance(a, Pointer) else src)

    return compute


def _moved(path: Path, insn: Instruction, a: Value, b: Value) -> Value:
    """Return the sum or difference of a pointer and a number, or of two pointers.

    With a number it is a pointer into the same region, which may lead outside; the difference of
    two pointers into one region is a number.

    Args:
        path: the path with the instruction.
        insn: ADD or SUB of 64 bits.
        a: value of the destination register.
        b: value of the source.

    Raises:
        ProgramError: such a sum or difference has no meaning, or a pointer may be NULL or is a
            map's.
    """
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        if (
            insn.op == isa.SUB
            and a.region is b.region
            and not a.null
            and not b.null
            and a.region.kind != MAP
        ):
            return alu.sub(a.offset, b.offset)
        raise path.refuse(
            f"{'subtracts' if insn.op == isa.SUB else 'adds'} pointers: {a} and {b}",
            "pointers into the same variable or map value have a difference, and nothing else has",
        )
    pointer, other = (a, b) if isinstance(a, Pointer) else (b, a)
    assert isinstance(pointer, Pointer) and isinstance(other, Scalar)
    if pointer.null:
        raise path.refuse(
            f"moves a pointer that may be NULL: {pointer}",
            "compare it with NULL before anything else",
        )
    if pointer.region.kind == MAP:
        raise path.refuse(
            "moves the address of a map", "get a value's address with bpf_map_lookup_elem()"
        )
    if insn.op == isa.SUB:
        if pointer is b:
            raise path.refuse("subtracts a pointer from a number", "")
        return Pointer(pointer.region, alu.sub(pointer.offset, other))
    return Pointer(pointer.region, alu.add(pointer.offset, other))


def _move(_code: Code, insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks MOV or MOVSX.

    Args:
        insn: the instruction.
    """
    dst = insn.dst
    src = insn.src
    sign = insn.offset
    wide = insn.cls == isa.ALU64
    if not insn.by_register:
        value = const(insn.imm & (M64 if wide else 0xFFFF_FFFF))

        def load(path: Path) -> None:
            path.state.regs[dst] = value

        return load

    def copy(path: Path) -> None:
        """Set the destination to the source: the same object, where all its 64 bits are moved.
        Raises ProgramError: it has no value, or a part of a pointer is moved.
        """
        if wide and not sign:
            path.state.regs[dst] = path.read(src)
            return
        a = number(path, src)
        if sign:
            a = extended(a, sign)
        path.state.regs[dst] = a if wide else truncated(a, 32)

    return copy


def _negate(_code: Code, insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks NEG: it negates the register dst.

    Args:
        insn: the instruction.
    """

    def negate(path: Path) -> None:
        a = alu.negated(number(path, insn.dst))
        path.state.regs[insn.dst] = a if insn.cls == isa.ALU64 else truncated(a, 32)

    return negate


def _swap(code: Code, insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks a byte swap.

    Args:
        code: the program.
        insn: the instruction.
    """
    to_big = insn.by_register
    swaps = insn.cls == isa.ALU64 or to_big != (code.order == "big")

    def swap(path: Path) -> None:
        a = number(path, insn.dst)
        path.state.regs[insn.dst] = swapped(a, insn.imm) if swaps else truncated(a, insn.imm)

    return swap


_ALU_FORMS: Final = {isa.MOV: _move, isa.NEG: _negate, isa.END: _swap}


# ---- memory


def _load(insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks a load.

    Args:
        insn: the instruction.
    """
    dst = insn.dst
    src = insn.src
    offset = insn.offset
    size = insn.size
    sign = insn.mode == isa.MEMSX

    def load(path: Path) -> None:
        path.state.regs[dst] = memory.load(path, memory.pointed(path, src), offset, size, sign)

    return load


def _store(insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks a store.

    The step sets `findings.stores` where the store goes to the stack by another register than r10.

    Args:
        insn: the instruction.
    """
    imm = const(insn.imm & M64) if insn.cls == isa.ST else None

    def store(path: Path) -> None:
        """Store the register or constant where the destination points; a store to the stack by
        another register than r10 sets `findings.stores`. Raises ProgramError: the store is not
        allowed, or a register has no value.
        """
        value = path.read(insn.src) if imm is None else imm
        pointer = memory.pointed(path, insn.dst)
        if insn.dst != 10 and pointer.region.kind == STACK:
            path.findings.stores = True
        memory.store(path, pointer, insn.offset, insn.size, value)

    return store


def _atomic(insn: Instruction) -> Step:
    """Return the Step (a function of a path) that walks an atomic operation.

    Args:
        insn: the instruction.
    """
    size = insn.size

    def atomic(path: Path) -> None:
        """Check the operation, and set the register that gets the old value. Raises ProgramError:
        it is not allowed, or an operand is no number.
        """
        number(path, insn.src)
        if insn.imm == isa.CMPXCHG:
            number(path, 0)
        old = memory.atomic(path, memory.pointed(path, insn.dst), insn.offset, size)
        if insn.imm == isa.CMPXCHG:
            path.state.regs[0] = old
        elif insn.imm & isa.FETCH:
            path.state.regs[insn.src] = old

    return atomic
