"""Detours on RISC-V: the unprivileged manual; its ABI."""

from __future__ import annotations

from .._detours import DetourCode, Saving, numbered, some, words

_RISCV_NAMES = ("zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 "
                       "t3 t4 t5 t6")


def _riscv_constant(register: int, value: int, bits: int) -> list[int]:
    """Return the instructions that put a constant into a register.

    ADDI, then SLLI and ADDI for each eleven bits more, all of them positive.

    Args:
        register: its number.
        value: of `bits` bits.
        bits: 32 or 64.
    """
    steps = range((bits - 1) // 11 * 11, -1, -11)
    return [word for n, at in enumerate(steps)
            for word in ([register << 15 | 11 << 20 | 0x1013 | register << 7] if n else [])
            + [(value >> at & 0x7FF) << 20 | (register if n else 0) << 15 | 0x13 | register << 7]]


def _riscv(bits: int) -> Saving:
    """Make the description of how detours save registers of `bits` bits."""
    width = 3 if bits == 64 else 2

    def begin(environment: int) -> bytes:
        """Return code that sets a program's arguments: a0 to the environment, a1 to the stack
        pointer.
        """
        # MV a1, sp
        return words("little", *_riscv_constant(10, environment, bits), 2 << 15 | 11 << 7 | 0x13)

    return Saving(
        numbers=numbered(_RISCV_NAMES),
        volatile=some("ra t0 t1 t2 a0 a1 a2 a3 a4 a5 a6 a7 t3 t4 t5 t6"),
        word=bits // 8,
        scratch=5,
        move=lambda n: words("little", (n & 0xFFF) << 20 | 2 << 15 | 2 << 7 | 0x13),
        store=lambda r, at: words(
            "little", at >> 5 << 25 | r << 20 | 2 << 15 | width << 12 | (at & 31) << 7 | 0x23
        ),
        load=lambda r, at: words("little", at << 20 | 2 << 15 | width << 12 | r << 7 | 3),
        begin=begin,
        returns=words("little", 0x8067),
        call=lambda environment, entry: (
            begin(environment)
            + words("little", *_riscv_constant(5, entry, bits), 5 << 15 | 1 << 7 | 0x67)
        ),  # JALR ra, t0
        # LI t1, 1; AMOSWAP.W.AQ t1, t1, (t0); BNEZ t1, -4, and AMOSWAP.W.RL zero, zero, (t0)
        lock=lambda at: (
            words("little", *_riscv_constant(5, at, bits), 0x00100313, 0x0C62A32F, 0xFE031EE3),
            words("little", *_riscv_constant(5, at, bits), 0x0A02A02F),
        ),
    )


ROWS = {"riscv32": DetourCode(process=_riscv(32)), "riscv64": DetourCode(process=_riscv(64))}
