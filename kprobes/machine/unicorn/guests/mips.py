"""MIPS in Unicorn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Literal

import unicorn
from unicorn import mips_const

from ....arch._base import Traps
from ..engine import Engine
from ..registers.conditions import word
from ..registers.system import ByCode, ByNumber, SystemRegister
from .guest import (
    FETCHED,
    INTR,
    Blocks,
    Breakpoint,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Mended,
    Pc,
    RegisterFile,
    Runs,
    SystemCalls,
)

#: KSEG0 and KSEG1; the same for 64 bits, and XKPHYS with its eight ways of caching
SEGMENTS = ((0x80000000, 1 << 29), (0xA0000000, 1 << 29))
SEGMENTS_64 = (
    *((start | 0xFFFFFFFF << 32, size) for start, size in SEGMENTS),
    *(((16 | way) << 59, 1 << 36) for way in range(8)),
)
#: major opcodes of branches and jumps; what release 6 has in place of other instructions; SPECIAL's
#: functions JR, JALR, SYSCALL, BREAK
ENDS, ENDS_R6, ENDS_SPECIAL = (
    {2, 3, 4, 5, 6, 7, 0x14, 0x15, 0x16, 0x17},
    {8, 0x18, 0x32, 0x36, 0x3A, 0x3E},
    {8, 9, 12, 13},
)


def _ends_block(swapped: bool, r6: bool, word: int) -> bool:
    """Return True where an instruction ends a translated block (Blocks.ends): a branch, a jump,
    SYSCALL, BREAK.

    Args:
        swapped: True where the guest's byte order is not the host's.
        r6: True for release 6.
        word: the instruction, as a number of the host's.
    """
    if swapped:
        word = int.from_bytes(word.to_bytes(4, "little"), "big")
    opcode = word >> 26
    if opcode == 0:
        return word & 63 in ENDS_SPECIAL
    if opcode == 1:
        return not word >> 16 & 0xC  # BLTZ, BGEZ and their forms
    return (
        opcode in ENDS
        or (r6 and opcode in ENDS_R6)
        or (opcode == 0x11 and word >> 21 & 31 in (8, 9, 13))
    )


def _system(order: Literal["big", "little"]) -> dict[str, SystemRegister]:
    """Return the system registers of a 32-bit CPU, CP0's: name -> how it is reached.

    But for Status, only MFC0 and MTC0 with k0 reach them.

    Args:
        order: the guest's byte order.
    """

    def code(register: int, select: int) -> ByCode:
        """Return how a CP0 register is reached: by MFC0 and MTC0 with k0.

        Args:
            register: number of the register.
            select: its sel field.
        """
        get, put = (
            (0x10 << 26 | way << 21 | 26 << 16 | register << 11 | select).to_bytes(4, order)
            for way in (0, 4)
        )
        return ByCode("k0", get, put)

    return {
        "status": ByNumber("CP0_STATUS"),
        "cause": code(13, 0),
        "epc": code(14, 0),
        "ebase": code(15, 1),
    }


_HFLAGS = {32: 11152, 64: 15932}  # bytes from register 1 to the engine's word about the CPU's state
_BRANCH = 0x87B800  # its bits that say which branch the instruction's slot belongs to


def _leave_slot(bits: int, engine: Engine) -> Callable[[], None]:
    """Make the function that a hook of accesses calls last, to take the CPU out of a delay slot or
    a forbidden slot (Mended.undo).

    Translated code keeps to itself that it is in such a slot, and takes the branch at its end.

    Args:
        bits: of the guest, 32 or 64.
        engine: its engine.

    Raises:
        Unsupported: the engine's registers are not found in this process.
    """
    read, write = word(mips_const.UC_MIPS_REG_1, bits, _HFLAGS[bits])(engine)

    def leave() -> None:
        """Clear the bits that say that the CPU is in a branch's slot, if one is set."""
        state = read()
        if state & _BRANCH:
            write(state & ~_BRANCH)

    return leave


def _slot(order: Literal["big", "little"]) -> bytes:
    """Return code that loads in the delay slot of a branch (Mended.code).

    It is run with and without a hook of accesses, to see whether the hook disturbs the branch.

    Args:
        order: the guest's byte order.
    """
    words = (
        0x3C080001,
        0x10000002,
        0x8D090000,  # lui t0, 1; b 1f; lw t1, 0(t0)
        # addiu t2, t2, 1; 1: addiu t3, t3, 1; addiu t4, t4, 1
        0x254A0001,
        0x256B0001,
        0x258C0001,
    )
    return b"".join(code.to_bytes(4, order) for code in words)


def _mips(mode: int, model: int, status: int, *, r6: bool = False) -> Guest:
    """Make the engine's row of a MIPS guest.

    Only SYSCALL arrives with a usable pc, so it is the breakpoint, with codes that nobody uses and
    that are reserved in MIPS16: there a jump to an odd address would take a page of them for one
    long block.

    Args:
        mode: of the engine: byte order and width.
        model: the engine's number of the CPU model.
        status: bits of CP0 Status that compiled code needs (29 CU1: FPU, 26 FR: 64-bit FPU
            registers, 24 MX: DSP, 7 to 5: 64-bit addressing). ERL, set at reset, stays: it makes
            addresses below 2 GiB physical. Those above go through the CPU's TLB, which is empty, or
            are shorthands of low ones (KSEG0, KSEG1).
        r6: True for release 6.
    """
    order: Literal["big", "little"] = "big" if mode & unicorn.UC_MODE_BIG_ENDIAN else "little"
    probe, end = ((code << 6 | 0b001100).to_bytes(4, order) for code in (0xB03F5, 0xB03F6))
    bits = 64 if mode & unicorn.UC_MODE_MIPS64 else 32
    n64 = (
        {**{f"a{n}": str(4 + n) for n in range(8)}, **{f"t{n}": str(12 + n) for n in range(4)}}
        if bits == 64
        else {}
    )

    def set_up(engine: Engine) -> None:
        """Set the bits `status` in CP0 Status of a new engine."""
        register = mips_const.UC_MIPS_REG_CP0_STATUS
        engine.uc.reg_write(register, engine.uc.reg_read(register) | status)

    def recognise(uc: unicorn.Uc) -> bool:
        """Return True where an engine's CPU is of release 6, or of an earlier one, as `r6` says.

        FIR of release 6 has FREP (bit 29) but not UFRP (28).
        """
        return bool((uc.reg_read(mips_const.UC_MIPS_REG_FIR) >> 28 & 3 == 2) == r6)

    return Guest(
        cpu=Cpu(
            arch=unicorn.UC_ARCH_MIPS, mode=mode, model=model, recognise=recognise, setup=set_up
        ),
        registers=RegisterFile(
            constants=mips_const,
            prefix="MIPS",
            names={**n64, "userlocal": "CP0_USERLOCAL"},
            system=_system(order) if bits == 32 else {},
        ),
        breakpoint=Breakpoint(
            channel=INTR, number=17, bias=4, traps=Traps(probe={4: probe}, end={0: end})
        ),
        # the 64-bit models have no MIPS16
        pc=Pc(plain=True, modes=int(bits == 32), odd=bits == 64),
        # JALR zero, ra
        runs=Runs(until_pc=False, settle=bytes(4), jump=0x03E00009.to_bytes(4, order)),
        blocks=Blocks(
            ends=partial(_ends_block, sys.byteorder != order, r6), fetch_fault_kills=True
        ),
        interrupts=Interrupts(
            lost_pc=True,
            refused=word(mips_const.UC_MIPS_REG_1, bits, 1280 if bits == 32 else 1600, bits),
        ),
        faults=Faults(
            arithmetic=frozenset({21, 22, 23}),
            undefined=frozenset({19, 20, 33, 34}),
            breakpoints=frozenset({16, 18}),
            unaligned={12: "read", 13: "write"},
            fetches=frozenset({12 + FETCHED}),
        ),
        calls=SystemCalls(linux=17),
        memory=Mapped(
            segments=SEGMENTS if mode & unicorn.UC_MODE_MIPS32 else SEGMENTS_64,
            reach=1 << 31,
            mended=Mended(partial(_leave_slot, bits), _slot(order)),
        ),
    )


GUESTS = {
    "mips": _mips(
        unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN,
        mips_const.UC_CPU_MIPS32_74KF,
        1 << 29 | 1 << 24,
    ),
    "mipsel": _mips(unicorn.UC_MODE_MIPS32, mips_const.UC_CPU_MIPS32_74KF, 1 << 29 | 1 << 24),
    "mips64": _mips(
        unicorn.UC_MODE_MIPS64 | unicorn.UC_MODE_BIG_ENDIAN,
        mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC,
        0x240000E0,
    ),
    "mips64el": _mips(
        unicorn.UC_MODE_MIPS64, mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC, 0x240000E0
    ),
    "mips32r6": _mips(
        unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN,
        mips_const.UC_CPU_MIPS32_MIPS32R6_GENERIC,
        0x24000000,
        r6=True,
    ),
    "mips32r6el": _mips(
        unicorn.UC_MODE_MIPS32, mips_const.UC_CPU_MIPS32_MIPS32R6_GENERIC, 0x24000000, r6=True
    ),
    "mips64r6": _mips(
        unicorn.UC_MODE_MIPS64 | unicorn.UC_MODE_BIG_ENDIAN,
        mips_const.UC_CPU_MIPS64_I6400,
        0x240000E0,
        r6=True,
    ),
    "mips64r6el": _mips(
        unicorn.UC_MODE_MIPS64, mips_const.UC_CPU_MIPS64_I6400, 0x240000E0, r6=True
    ),
}
