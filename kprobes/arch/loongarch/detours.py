"""Detours on LoongArch: Reference Manual volume 1; its ABI."""

from __future__ import annotations

from .._detours import DetourCode, Saving, numbered, some, words


def _la_constant(register: int, value: int) -> list[int]:
    """Return LU12I.W, ORI, LU32I.D and LU52I.D, which put a value of 64 bits into a register."""
    return [0x14000000 | (value >> 12 & 0xFFFFF) << 5 | register,
            0x03800000 | (value & 0xFFF) << 10 | register << 5 | register,
            0x16000000 | (value >> 32 & 0xFFFFF) << 5 | register,
            0x03000000 | (value >> 52 & 0xFFF) << 10 | register << 5 | register]


def _la_begin(environment: int) -> bytes:
    """Return code that sets a program's arguments: a0 to the environment, a1 to the stack
    pointer.
    """
    return words("little", *_la_constant(4, environment), 0x00150065)  # OR a1, sp, zero


_LOONGARCH = Saving(
    numbers=numbered(" ".join(f"r{n}" for n in range(32))),
    volatile=some(" ".join(f"r{n}" for n in (1, *range(4, 21)))), word=8, scratch=12,
    move=lambda n: words("little", 0x02C00063 | (n & 0xFFF) << 10),  # ADDI.D sp, sp, n
    store=lambda r, at: words("little", 0x29C00060 | at << 10 | r),
    load=lambda r, at: words("little", 0x28C00060 | at << 10 | r),
    begin=_la_begin, returns=words("little", 0x4C000020),
    call=lambda environment, entry: _la_begin(environment) + words("little", *_la_constant(12, entry),
                                                                   0x4C000181),  # JIRL ra, t0, 0
    # ORI t1, zero, 1; AMSWAP_DB.W t2, t1, t0; BNEZ t2, -4, and AMSWAP_DB.W t2, zero, t0
    lock=lambda at: (words("little", *_la_constant(12, at), 0x0380040D, 0x3869358E, 0x47FFFDDF),
                     words("little", *_la_constant(12, at), 0x3869018E)))

ROWS = {"loongarch64": DetourCode(process=_LOONGARCH)}
