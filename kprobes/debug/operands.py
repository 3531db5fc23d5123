"""Operands of static tracepoints, as the assembler of the architecture writes them.

`%eax`, `x0`, `[sp, #16]`, `16($sp)`, `$5`: a number, a register, or memory behind one.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import evolve, frozen

from ..arch._assembly import AssemblyText
from ..arch._base import Arch
from ..arch._rows import row
from ..errors import KprobeError
from ..regs import Regs
from ..symbols import Symbols

_SIZED: Final = re.compile(r"(-?)(1|2|4|8)(f?)@(.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[#$i]?(-?(?:0x[0-9a-fA-F]+|\d+))")
_BRACKETS: Final = re.compile(r"\[([%$]?\w+)(?:[,+]?#?(-?\w+))?\]")
_BEHIND: Final = re.compile(r"(.*?)\(([%$]?\w+)\)", re.DOTALL)
_LOW: Final = re.compile(r"%lo\((\w+)([+-]\d+)?\)")
_SYMBOL: Final = re.compile(r"([A-Za-z_.][\w.$@]*)([+-]\d+)?")


class Unfetchable(Exception):
    """An operand of a static tracepoint cannot be read; the text says why."""


@frozen(kw_only=True)
class Operand:
    """How to read an operand of a static tracepoint.

    The sum of the register's value (or 0) and `number` is the operand, or with `memory` its
    address.

    Attributes:
        size: bytes, 1 to 8.
        signed: True for a number with a sign.
        sized: False where the marker does not say how many bytes there are: it is a word.
        register: name of the register; "": none.
        number: added to the register's value.
        memory: True where the sum is the address of the operand.
        symbol: name of a symbol, perhaps with "+8", whose address resolved() is still to put into
            `number`; "": none.
        shift: for a part of a register: bits of the register below the operand.
    """

    size: int
    signed: bool = False
    sized: bool = True
    register: str = ""
    number: int = 0
    memory: bool = False
    symbol: str = ""
    shift: int = 0

    def value(self, regs: Regs) -> int:
        """Read the operand's value at a hit.

        Args:
            regs: the registers at the hit.

        Raises:
            KprobeError: its memory is not mapped.
        """
        found = (regs[self.register] >> self.shift if self.register else 0) + self.number
        if self.memory:
            raw = regs.read(found & (1 << regs.arch.bits) - 1, self.size)
            found = int.from_bytes(raw, regs.arch.order.value)
        bits = 8 * self.size
        found &= (1 << bits) - 1
        return found - (1 << bits) if self.signed and found >> bits - 1 else found


def operand_of(written: str, arch: Arch, symbols: Symbols) -> Operand:
    """Parse an operand as a marker's note has written it.

    Args:
        written: "SIZE@PLACE", as in `-4@%eax`: bytes, negative where they are signed. Without
            "SIZE@" it is an unsigned word.
        arch: of the guest.
        symbols: of the guest; the place may name one.

    Raises:
        Unfetchable: it cannot be read: a floating-point number, another size than 1, 2, 4 or 8, two
            registers, signed bytes in a register's middle, or a place that is not understood.
    """
    sized = _SIZED.fullmatch(written)
    if sized is None and "@" in written:
        raise Unfetchable("numbers of 1, 2, 4 and 8 bytes can be fetched")
    sign, digits, float, body = sized.groups() if sized else ("", str(arch.bits // 8), "", written)
    if float:
        raise Unfetchable("floating-point numbers are not fetched")
    size, body = int(digits), re.sub(r"\s", "", body)
    found = _parts(
        Operand(size=size, signed=bool(sign), sized=sized is not None), body, arch, symbols
    )
    if found.register and not found.memory and 8 * size > arch.bits:
        raise Unfetchable("it is in two registers")
    if found.shift and sign:
        raise Unfetchable("signed bytes of a register's middle are not fetched")
    return found


def resolved(operand: Operand, symbols: Symbols) -> Operand:
    """Replace an operand's symbol by its address: `number` becomes the address plus the offset.

    Args:
        operand: the operand; it is returned itself where it has no symbol. `symbol` may end in an
            offset: `name+8`.
        symbols: of the guest.

    Raises:
        Unfetchable: the guest has no such symbol.
    """
    whole = _SYMBOL.fullmatch(operand.symbol)
    if whole is None:
        return operand
    found = symbols.find(whole[1])
    if found is None:
        raise Unfetchable(f"the guest has no symbol {whole[1]}")
    return evolve(operand, symbol="", number=found.address + int(whole[2] or 0))


def _parts(operand: Operand, body: str, arch: Arch, symbols: Symbols) -> Operand:
    """Parse what an operand reads: memory behind a register, a number, a register, or a symbol.

    Args:
        operand: has the size and sign.
        body: the operand's text behind the @.
        arch: the guest's architecture.
        symbols: of the guest.

    Returns:
        A copy of `operand` with the rest filled in.

    Raises:
        Unfetchable: it is of another form.
    """
    brackets, behind = _BRACKETS.fullmatch(body), _BEHIND.fullmatch(body)
    if brackets is not None:
        return _memory(operand, brackets[1], brackets[2] or "0", arch, symbols)
    if behind is not None:
        return _memory(operand, behind[2], behind[1] or "0", arch, symbols)
    if not body:
        raise Unfetchable("there is nothing behind the @")
    number = _NUMBER.fullmatch(body)
    if number is not None and not _is_register(body, arch):
        return evolve(operand, number=int(number[1], 0 if "x" in number[1] else 10))
    name, shift = _register(body, arch)
    if name is not None:
        return evolve(operand, register=name, shift=shift)
    if _SYMBOL.fullmatch(body) and body[0] not in "%$#":
        return evolve(operand, symbol=body, memory=True)
    raise Unfetchable("it has more parts than a register and an offset")


def _memory(operand: Operand, register: str, offset: str, arch: Arch, symbols: Symbols) -> Operand:
    """Return an operand that is memory at a register plus an offset.

    It is written `[sp, #16]`, `-8(%rbp)`, `counter(%rip)` or `%lo(counter)(a0)`.

    Args:
        operand: its size and sign; the place is filled in, in a copy.
        register: the register as written: "sp", "%rbp".
        offset: as written: a number of bytes, "%lo(SYMBOL)", or before (%rip) a symbol.
        arch: the guest's architecture.
        symbols: the guest's symbols, for %lo().

    Raises:
        Unfetchable: the register, the offset or its symbol is not known.
    """
    if register == "%rip" and _SYMBOL.fullmatch(offset):
        return evolve(operand, symbol=offset, memory=True)
    name, shift = _register(register, arch)
    low = _LOW.fullmatch(offset)
    if low is not None:
        try:
            behind = (symbols[low[1]].address + int(low[2] or 0) + 0x800 & 0xFFF) - 0x800
        except KprobeError as error:
            raise Unfetchable(error.plain) from None
    else:
        try:
            behind = int(offset, 0)
        except ValueError:
            raise Unfetchable("it has more parts than a register and an offset") from None
    if not name or shift:
        raise Unfetchable(f"{register} is no register that memory is behind")
    return evolve(operand, register=name, number=behind, memory=True)


def _text(arch: Arch) -> AssemblyText:
    """Return the architecture's rules for reading its assembly text."""
    return row(arch, AssemblyText) or AssemblyText()


def _is_register(body: str, arch: Arch) -> bool:
    """Whether an operand that looks like a number names a register: `9` on PowerPC, `$9` on MIPS.

    Args:
        body: the operand's text behind the @.
        arch: the guest's architecture.
    """
    return _text(arch).is_register(body)


def _register(body: str, arch: Arch) -> tuple[str | None, int]:
    """Return the register that an operand names, and where in it the operand begins.

    Args:
        body: the operand's text: "%eax", "x0".
        arch: the guest's architecture.

    Returns:
        (name, bits of the register below the operand); the name is "" for a register that is
        always 0, None where `body` names no register.
    """
    name = body.removeprefix("%").removeprefix("$")
    name = f"r{name}" if name.isdecimal() else name
    name, shift = _text(arch).register(name, arch.bits)
    return (
        name if not name or name in arch.regs.names or name in arch.regs.aliases else None
    ), shift
