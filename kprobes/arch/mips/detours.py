"""Detours on MIPS: Architecture For Programmers volume II-A; the o32 and n64 ABIs."""

from __future__ import annotations

from .._detours import DetourCode, Saving, numbered, some, words

_O32 = "zero at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7 s0 s1 s2 s3 s4 s5 s6 s7 t8 t9 k0 k1 gp sp fp ra"
_N64 = _O32.replace("t0 t1 t2 t3 t4 t5 t6 t7", "a4 a5 a6 a7 t0 t1 t2 t3")


def _mips_constant(register: int, value: int, bits: int) -> list[int]:
    """Return the instructions that put a constant into a register.

    LUI, ORI, then DSLL by 16 and ORI for each halfword more.

    Args:
        register: its number.
        value: of `bits` bits.
        bits: 32 or 64.
    """
    top = [0x3C000000 | register << 16 | value >> bits - 16 & 0xFFFF]
    rest = [value >> at & 0xFFFF for at in range(bits - 32, -1, -16)]
    code = top
    for n, half in enumerate(rest):
        code = code + ([register << 16 | register << 11 | 16 << 6 | 0x38] if n else [])
        code = code + [0x34000000 | register << 21 | register << 16 | half]
    return code


def _mips(order: str, bits: int, release6: bool) -> Saving:
    """Make the description of how detours save registers on one kind of MIPS.

    Args:
        order: "little" or "big".
        bits: 32 (o32) or 64 (n64).
        release6: True: LL and SC have release 6's encodings, and there are no HI and LO.
    """
    names = _N64 if bits == 64 else _O32
    access = (0xFC000000, 0xDC000000) if bits == 64 else (0xAC000000, 0x8C000000)
    add = 0x67BD0000 if bits == 64 else 0x27BD0000  # (D)ADDIU sp, sp, n
    linked, conditional = (0x7D090036, 0x7D090026) if release6 else (0xC1090000, 0xE1090000)

    def lock(at: int) -> tuple[bytes, bytes]:
        """Return (code that takes the lock in the word at `at`, code that gives it back).

        Both begin by putting `at` into t0: LL t1, (t0); BNEZ t1, -4; ORI t1, zero, 1; SC t1, (t0);
        BEQZ t1, -16; NOP; SYNC, and SYNC; SW zero, (t0)
        """
        word = _mips_constant(8, at, bits)
        return (
            words(order, *word, linked, 0x1520FFFE, 0x34090001, conditional, 0x1120FFFB, 0, 0xF),
            words(order, *word, 0xF, 0xAD000000),
        )

    # MFHI, MTHI t0 (n64: a4); MFLO, MTLO
    moves = (("hi", 0x4010, 0x01000011), ("lo", 0x4012, 0x01000013))
    return Saving(
        numbers=numbered(names), volatile=some("at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t8 t9 gp ra "
                                               + ("a4 a5 a6 a7" if bits == 64 else "t4 t5 t6 t7")),
        word=bits // 8, area=16, scratch=8, move=lambda n: words(order, add | n & 0xFFFF),
        store=lambda r, at: words(order, access[0] | 29 << 21 | r << 16 | at),
        load=lambda r, at: words(order, access[1] | 29 << 21 | r << 16 | at),
        special=tuple((name, words(order, read), words(order, write)) for name, read, write in moves
                      if not release6),
        call=lambda environment, entry: words(
            order, *_mips_constant(4, environment, bits), *_mips_constant(25, entry, bits),
            0x0320F809, 0x03A02825),  # JALR t9; OR a1, sp, zero
        lock=lock)


ROWS = {f"mips{size}{end}": DetourCode(process=_mips(order, bits, release6))
        for end, order in (("", "big"), ("el", "little"))
        for size, bits, release6 in (("", 32, False), ("64", 64, False), ("32r6", 32, True),
                                     ("64r6", 64, True))}
