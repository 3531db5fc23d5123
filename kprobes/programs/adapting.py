"""A program as it is for one guest: numbers of the guest's types, and the words of its context.

An object that was made for Linux reads registers from a kernel's `struct pt_regs`, or arguments
from fentry's list. Where the guest's architecture is the one that the structure is of, these reads
are turned into reads of the context that programs have here; elsewhere the program is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import evolve

from ..arch._base import Arch, Order
from ..arch._linux import Linux
from ..arch._rows import row
from . import isa
from .assembler import Assembler
from .code import Code
from .context import ARGUMENT, WORDS, word_of
from .isa import Instruction
from .listed import ListLayout
from .meanings import GUEST_IS_BIG
from .program import Program
from .relocations import GuestTypes, relocated

_LISTED: Final = WORDS - ARGUMENT  # arguments that a list may have


def adapted(
    program: Program,
    arch: Arch,
    types: Callable[[], GuestTypes],
    listed: bool,
    layout: ListLayout | None = None,
) -> Program:
    """Return a program adapted to a guest: its reads of types' members, registers and arguments.

    The result shares maps and variables with `program`, and is `program` itself where nothing
    changes. A call that asks for the guest's byte order becomes a constant.

    Args:
        program: one program.
        arch: the guest's architecture.
        types: returns the guest's types; called only where the program has relocations (CO-RE).
        listed: True where the program is at a function's entry, and takes its context for fentry's
            list of arguments.
        layout: of that list, whose words a probe's context has; None: the n-th is the n-th argument
            of the calling convention.

    Raises:
        ProgramError: the program reads a register or an argument that the context does not have, or
            reads such a context at an offset that varies, or is not safe.
    """
    code = program.code
    if code.relocations:
        code = relocated(code, types(), arch.order.value)
    if any(i.is_helper_call and i.imm == GUEST_IS_BIG for i in code.instructions):
        big = Instruction(isa.MOV | isa.ALU64, imm=int(arch.order is Order.BIG))
        code = evolve(
            code,
            instructions=tuple(
                big if i.is_helper_call and i.imm == GUEST_IS_BIG else i for i in code.instructions
            ),
        )
    if code.foreign and code.members:
        code = _own_registers(code, arch)
    if listed:
        code = _moved(code, lambda pc, at: _argument(code, pc, at, layout))
    return program if code is program.code else program.replaced(code)


def _argument(code: Code, pc: int, at: int, layout: ListLayout | None) -> int:
    """Return the offset in the context, in bytes, of an argument of fentry's list.

    The context has a word for each of the first 16 arguments, whatever register or stack word has
    it.

    Args:
        code: the program, for the error.
        pc: slot of the instruction that reads it.
        at: offset in fentry's list, in bytes; it may lie within an argument.
        layout: of the list; None: it is not known.

    Raises:
        ProgramError: the list, or the context, has no argument of that number.
    """
    if layout is not None:
        layout.check_word(code, pc, at // 8, False)
        word = layout.arguments[at // 8].word
        assert word is not None
        return 8 * word + at % 8
    if at // 8 >= _LISTED:
        raise code.error(f"reads argument {at // 8 + 1}, and {_LISTED} are the most", pc)
    return at + 8 * ARGUMENT


def _own_registers(code: Code, arch: Arch) -> Code:
    """Turn a program's reads of a kernel's registers into reads of the context.

    Args:
        code: the program.
        arch: the guest's architecture.

    Returns:
        The changed program, which takes its context for nothing foreign any more. `code` itself,
        where the members that `code` reads are not those of this architecture's kernel structure.

    Raises:
        ProgramError: the program reads a register that the context does not have, or at an offset
            that varies, or is not safe.
    """
    layout = (row(arch, Linux) or Linux()).kernel_registers
    if layout is None or not set(layout.marks) & set(code.members.values()):
        return code
    words = {at: word_of(arch, layout.register(name)) for at, name in code.members.items()}

    def moved(pc: int, at: int) -> int:
        """Return the offset in the context of what is at offset `at` of the kernel's registers.
        Raises ProgramError: it is not in the context.
        """
        word = words.get(at & ~7)
        if word is None:
            name = code.members.get(at & ~7, f"byte {at}")
            raise code.error(
                f"reads {name} of {code.foreign}, which is not in a guest's context", pc
            )
        return 8 * word + at % 8

    return evolve(_moved(code, moved), foreign="", members={})


def _moved(code: Code, to: Callable[[int, int], int]) -> Code:
    """Return a program with the offset of each of its reads of the context replaced.

    A call of a helper that copies from the context becomes a call of a new function that loads.

    Args:
        code: the program.
        to: (slot of the instruction that reads, offset in the context that it reads at) -> offset
            in the context that it is to read at; all in bytes but the slot.

    Raises:
        ProgramError: the program is not safe, or reads the context at an offset that varies.
    """
    from .verifier import verify

    facts = verify(evolve(code, foreign=""), copies=True)
    copies = [pc for pc in sorted(facts.accesses) if code.instructions[pc].is_helper_call]
    if copies:
        code = _loading(code, {pc: facts.accesses[pc].size for pc in copies})
        facts = verify(evolve(code, foreign=""))
    instructions = list(code.instructions)
    for pc, access in facts.accesses.items():
        if access.kind != "ctx":
            continue
        if access.offset is None:
            raise code.error(
                "reads the context at an offset that varies", pc, "read it at constants"
            )
        i = instructions[pc]
        instructions[pc] = evolve(i, offset=i.offset + to(pc, access.offset) - access.offset)
    return evolve(code, instructions=tuple(instructions))


def _loading(code: Code, copies: Mapping[int, int]) -> Code:
    """Replace calls that copy from the context by calls of new functions that load from it.

    Objects for a kernel copy registers by bpf_probe_read_kernel(to, size, from): the new function
    has the same arguments and result. Each call gets one of its own, whose load is of one place.

    Args:
        code: the program.
        copies: slot of a call -> bytes that it copies: 1, 2, 4 or 8.

    Returns:
        The program with the functions behind its others.
    """
    instructions = list(code.instructions)
    functions = dict(code.functions)
    for pc, size in copies.items():
        start = len(instructions)
        instructions[pc] = Instruction(isa.CALL | isa.JMP, src=isa.LOCAL, imm=start - pc - 1)
        asm = Assembler()
        asm.load(0, 3, 0, size)
        asm.store(1, 0, 0, size)
        asm.set(0, 0)
        asm.exit()
        instructions += asm.finish()[0]
        functions[start] = f"copies_{size}_bytes_at_{pc}"
    return evolve(code, instructions=tuple(instructions), functions=functions)
