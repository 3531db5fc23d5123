"""Detours on PowerPC: Power ISA; the 32-bit ABI, ELFv1, ELFv2."""

from __future__ import annotations

from .._detours import DetourCode, Saving, numbered, some, words


def _ppc_constant(register: int, value: int, bits: int) -> list[int]:
    """Return the instructions that put a constant into a register.

    LIS, ORI; for 64 bits then SLDI by 32, ORIS, ORI.

    Args:
        register: its number.
        value: of `bits` bits.
        bits: 32 or 64.
    """
    def two(first: int, at: int) -> list[int]:
        """Return two instructions for the 32 bits of the value from bit `at` on: `first`,
        then ORI.
        """
        return [
            first | value >> at + 16 & 0xFFFF,
            0x60000000 | register << 21 | register << 16 | value >> at & 0xFFFF,
        ]
    lis, oris = 0x3C000000 | register << 21, 0x64000000 | register << 21 | register << 16
    if bits == 32:
        return two(lis, 0)
    return [*two(lis, 32), 0x780007C6 | register << 21 | register << 16, *two(oris, 0)]


def _ppc(order: str, bits: int) -> Saving:
    """Make the description of how detours save registers on one kind of PowerPC.

    Args:
        order: "little" or "big".
        bits: 32 or 64.
    """
    access = (0xF8000000, 0xE8000000) if bits == 64 else (0x90000000, 0x80000000)
    # MFCR, MTCRF; MFLR, MTLR; MFCTR, MTCTR; MFXER, MTXER: all r0
    moves = (
        ("cr", 0x7C000026, 0x7C0FF120),
        ("lr", 0x7C0802A6, 0x7C0803A6),
        ("ctr", 0x7C0902A6, 0x7C0903A6),
        ("", 0x7C0102A6, 0x7C0103A6),
    )
    return Saving(
        numbers=numbered(" ".join(f"r{n}" for n in range(32))),
        volatile=some(" ".join(f"r{n}" for n in (0, *range(2, 13)))),
        word=bits // 8,
        area=48,  # r2: TOC
        below=288 if bits == 64 else 0,
        move=lambda n: words(order, 0x38210000 | n & 0xFFFF),  # ADDI r1, r1, n
        store=lambda r, at: words(order, access[0] | r << 21 | 1 << 16 | at),
        load=lambda r, at: words(order, access[1] | r << 21 | 1 << 16 | at),
        special=tuple(
            (name, words(order, read), words(order, write)) for name, read, write in moves
        ),
        call=lambda environment, entry: words(
            order,
            *_ppc_constant(3, environment, bits),
            0x7C240B78,
            *_ppc_constant(12, entry, bits),  # MR r4, r1
            0x7D8903A6,
            0x4E800421,
        ),  # MTCTR r12; BCTRL
        # LI r5, 1; LWARX r4, 0, r3; CMPWI r4, 0; BNE -8; STWCX. r5, 0, r3; BNE -16; ISYNC, and
        # LI r5, 0; LWSYNC; STW r5, 0(r3)
        lock=lambda at: (
            words(
                order,
                *_ppc_constant(3, at, bits),
                0x38A00001,
                0x7C801828,
                0x2C040000,
                0x4082FFF8,
                0x7CA0192D,
                0x4082FFF0,
                0x4C00012C,
            ),
            words(order, *_ppc_constant(3, at, bits), 0x38A00000, 0x7C2004AC, 0x90A30000),
        ),
    )


ROWS = {"ppc": DetourCode(process=_ppc("big", 32)), "ppc64": DetourCode(process=_ppc("big", 64)),
        "ppc64le": DetourCode(process=_ppc("little", 64))}
