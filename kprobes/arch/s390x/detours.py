"""Detours on z/Architecture: Principles of Operation; its ELF ABI."""

from __future__ import annotations

from functools import partial

from .._detours import DetourCode, Saving, numbered, some


def _s390x_access(opcode: int, register: int, offset: int) -> bytes:
    """Return a load or store of a register at `offset` from the stack pointer.

    Args:
        opcode: the instruction's last byte, which tells load from store.
        register: number of the register.
        offset: bytes.
    """
    return bytes(
        [0xE3, register << 4, 0xF0 | offset >> 8 & 15, offset & 255, offset >> 12 & 255, opcode]
    )


def _s390x_constant(register: int, value: int) -> bytes:
    """Return LLIHF and IILF, which put 64 bits into a register; they keep the condition code."""
    return (bytes([0xC0, register << 4 | 14]) + (value >> 32).to_bytes(4, "big")
            + bytes([0xC0, register << 4 | 9]) + (value & 0xFFFF_FFFF).to_bytes(4, "big"))


_S390X = Saving(
    numbers=numbered(" ".join(f"r{n}" for n in range(16))), volatile=some("r0 r1 r2 r3 r4 r5 r14"),
    word=8, area=160,
    special=(("", bytes.fromhex("b2220000"), bytes.fromhex("0400")),),  # IPM, SPM r0
    move=lambda n: _s390x_access(0x71, 15, n & 0xFFFFF), store=partial(_s390x_access, 0x24),  # LAY; STG
    load=partial(_s390x_access, 0x04),
    call=lambda environment, entry: (_s390x_constant(2, environment) + bytes.fromhex("b904003f")  # LGR r3, r15
                                     + _s390x_constant(1, entry) + bytes.fromhex("0de1")),  # BASR r14, r1
    # LHI r2, 1; LHI r0, 0; CS r0, r2, 0(r1); BRC 7, -8, and LHI r0, 0; BCR 14, 0; ST r0, 0(r1)
    lock=lambda at: (_s390x_constant(1, at) + bytes.fromhex("a7280001 a7080000 ba021000 a774fffc"),
                     _s390x_constant(1, at) + bytes.fromhex("a7080000 07e0 50001000")))

ROWS = {"s390x": DetourCode(process=_S390X)}
