"""The context of a probe: 128 words of 64 bits at r1, the same for every architecture.

Words 0 to 103 are the guest's first 104 registers in the order of `Registers.names`, zero-extended;
of wider ones the lower 64 bits. Words 104 to 127 mean the same on every architecture, so that one
object serves all guests:

    104 PC
    105 SP
    106 return value
    107 return address
    108 frame pointer (0 where there is none)
    109 bits of a word of the guest (32, 64)
    110 1 where the guest is big-endian
    111 number of registers
    112 .. 127 integer arguments 1 to 16 at function entry, by the calling convention: registers or
        stack words

Words between the last register and 104 are of no architecture: a program that reads them is refused
where it is attached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

from ..arch._base import Arch, Order
from ..errors import KprobeError
from ..regs import Regs

WORDS: Final = 128
UNIFORM: Final = 104
PC, SP, RESULT, RETURN, FRAME, BITS, BIG, COUNT, ARGUMENT = range(UNIFORM, UNIFORM + 9)
_MASK: Final = (1 << 64) - 1


@frozen
class WordSource:
    """The source of a word of the context: exactly one of these is given.

    Attributes:
        register: name of a register.
        argument: number of an argument that is on the stack, counted from 0 among all arguments;
            -1: it is no argument.
        value: a constant; -1: it is none.
        linkage: True for the return address, read by the architecture's linkage.
    """

    register: str = ""
    argument: int = -1
    value: int = -1
    linkage: bool = False


def source(arch: Arch, word: int) -> WordSource | None:
    """Return where a word of the context comes from; None: this architecture has no such word.

    Args:
        arch: the guest's architecture.
        word: its number, from 0 to 127.
    """
    names, abi = arch.regs.names, arch.abi
    if word < UNIFORM:
        return WordSource(register=names[word]) if word < len(names) else None
    if word >= ARGUMENT:
        n = word - ARGUMENT
        if abi is None:
            return None
        return WordSource(register=abi.args[n]) if n < len(abi.args) else WordSource(argument=n)
    constants = {BITS: arch.bits, BIG: int(arch.order is Order.BIG), COUNT: len(names)}
    if word in constants:
        return WordSource(value=constants[word])
    if word == RETURN:
        return WordSource(linkage=True) if arch.linkage else None
    if word == FRAME:
        return (
            WordSource(register=arch.linkage.frame.register)
            if arch.linkage and arch.linkage.frame
            else WordSource(value=0)
        )
    if word == RESULT:
        return WordSource(register=abi.returns[0]) if abi else None
    if word == SP and arch.regs.sp_bias:
        return WordSource(register="sp")
    return WordSource(register=arch.regs.pc if word == PC else arch.regs.sp)


def word_of(arch: Arch, name: str) -> int | None:
    """Return the number of the context's word that holds a register.

    Args:
        arch: the guest's architecture.
        name: the register's name, or an alias.

    Returns:
        None: the context does not have this register.
    """
    names = arch.regs.names
    name = arch.regs.aliases.get(name, name)
    if name == arch.regs.pc:
        return PC
    if name == arch.regs.sp:
        return SP
    number = names.index(name) if name in names else UNIFORM
    return number if number < UNIFORM else None


def reader(arch: Arch, word: int) -> Callable[[Regs], int]:
    """Return a function that reads a word of the context from the registers of a hit.

    Args:
        arch: the guest's architecture.
        word: number of the word.

    Returns:
        (registers) -> the word; 0 where the guest has no such word, or its memory is not mapped.
    """
    where = source(arch, word)
    if where is None or where.value >= 0:
        constant = where.value if where else 0
        return lambda regs: constant
    if where.linkage:
        return _quietly(lambda regs: regs.return_address)
    if where.argument >= 0:
        return _quietly(lambda regs: regs.arg(where.argument))
    if word == PC:
        return lambda regs: regs.pc & _MASK
    if word == SP:
        return lambda regs: regs.sp & _MASK
    return lambda regs: regs[where.register] & _MASK


def _quietly(read: Callable[[Regs], int]) -> Callable[[Regs], int]:
    """Return a function that calls `read` and cuts the result to 64 bits; 0 where `read` fails.

    A guest whose stack pointer is bad has no arguments there; that is not the program's failure.

    Args:
        read: (registers) -> a number; may raise KprobeError.
    """

    def quiet(regs: Regs) -> int:
        """Return what is read; 0 where reading it fails."""
        try:
            return read(regs) & _MASK
        except KprobeError:
            return 0

    return quiet


def absent(arch: Arch, words: Iterable[int]) -> list[int]:
    """Return, sorted, the numbers of those context words that an architecture does not have.

    Args:
        arch: the architecture.
        words: numbers of words of the context, 0 to 127.
    """
    return [word for word in sorted(words) if source(arch, word) is None]
