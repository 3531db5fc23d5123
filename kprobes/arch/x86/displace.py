"""Writes code that does x86's near branches at another address than their own.

The code goes where the branch goes, and pushes the return address that it pushes at its original
address. A push comes before anything else changes, so whatever faults leaves the guest as it was. A
CALL through memory is not here: it loads before it pushes, and has no register to keep the target
in.
"""

from __future__ import annotations

from collections.abc import Callable

from .._base import displacement
from .shape import EncodingShape


def to_label(frm: int, target: int, bits: int) -> bytes:
    """Return JMP rel32 from `frm` to `target`; raise OutOfReach beyond 2 GiB (never in 32-bit
    mode).
    """
    return b"\xe9" + displacement(frm + 5, target, 32, 1, (1 << bits) - 1).to_bytes(4, "little")


def reaching(raw: bytes, shape: EncodingShape, operand: int, to: int) -> bytes:
    """Return an instruction for address `to` with its rip-relative operand where it was.

    Args:
        raw: its bytes.
        shape: where its parts are.
        operand: address of the operand.
        to: its new address.

    Raises:
        OutOfReach: the operand is more than 2 GiB away.
    """
    after = to + shape.size
    if shape.address == 4:  # eip-relative wraps at 4 GiB, so it reaches from everywhere
        disp = operand - after & 0xFFFFFFFF
    else:
        disp = displacement(after, operand, 32, 1, (1 << 64) - 1)
    return raw[: shape.disp_at] + disp.to_bytes(4, "little") + raw[shape.imm_at :]


def push(value: int, bits: int) -> bytes:
    """Return code that pushes an address, and touches no flags.

    PUSH imm32, which sign-extends; beyond that two MOV and an LEA.

    Args:
        value: the address.
        bits: of a word, 32 or 64.
    """
    low = (value & 0xFFFFFFFF).to_bytes(4, "little")
    if bits == 32 or value < 1 << 31:
        return b"\x68" + low
    return bytes.fromhex("c74424f8") + low + bytes.fromhex("c74424fc") + (value >> 32).to_bytes(4,
        "little") + bytes.fromhex("488d6424f8")


def displaced(
    name: str, shape: EncodingShape, raw: bytes, bits: int, after: int, target: int | None
) -> Callable[[int], bytes] | None:
    """Make the `Insn.displace` of a near branch, which writes the branch for another address.

    Args:
        name: name of the branch's row in the table.
        shape: where the parts of the instruction are.
        raw: bytes of the instruction.
        bits: width of the guest's words, 32 or 64.
        after: original address of the next instruction.
        target: target of a direct branch; None: the target is computed.

    Returns:
        (new address) -> code; raises OutOfReach. None: the branch has to be simulated: a CALL
        through memory, through ESP or RSP, or with an operand size of 16 bits.
    """
    call = name.startswith("CALL")
    number = shape.modrm & 7 | shape.seen >> 5 & 8
    # a push changes ESP
    if call and (shape.memory or shape.operand == 2 or (target is None and number == 4)):
        return None
    operand = (
        after + int.from_bytes(raw[shape.disp_at : shape.imm_at], "little", signed=True)
        if shape.relative
        else None
    )
    pushed = push(after, bits) if call else b""

    def displace(to: int) -> bytes:
        """Return the branch's code for address `to`; raise OutOfReach."""
        at = to + len(pushed)
        if target is None:
            # JMP r/m is /4
            branch = raw[: shape.disp_at - 1] + bytes([shape.modrm & 0xC7 | 0x20]) if call else raw
            return pushed + (branch if operand is None else reaching(raw, shape, operand, to))
        if name.startswith("Jcc"):
            jcc = to_label(at + 1, target, bits)
            return bytes([0x0F, 0x80 | shape.opcode & 15]) + jcc[1:]
        if name in ("LOOP", "JCXZ"):
            skip = raw[:-1].replace(b"\x66", b"") + b"\x02\xeb\x05"  # an operand size would cut eip
            return skip + to_label(at + len(skip), target, bits)
        return pushed + to_label(at, target, bits)

    return displace
