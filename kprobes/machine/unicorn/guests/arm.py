"""Arm in Unicorn: A32 and T32, the M profile, and AArch64."""

from __future__ import annotations

import struct
from collections.abc import Callable

import unicorn
from unicorn import arm64_const, arm_const

from ....arch._base import Traps
from ..engine import Engine
from ..registers.system import ByNumber, ByPlace, SystemRegister
from .guest import (
    INTR,
    Blocks,
    Breakpoint,
    Compares,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Mended,
    Pc,
    RegisterFile,
    SystemCalls,
)

_ITSTATE = 0x0600FC00  # of CPSR


def _leave_block(engine: Engine) -> Callable[[], None]:
    """Make the function that a hook of accesses calls last, to clear ITSTATE in the CPU
    (Mended.undo).

    Translated code keeps ITSTATE to itself while it runs, and in the CPU it is 0 until the code
    ends. The report of an access sets it in the CPU, which would be in an IT block afterwards.

    Args:
        engine: the engine whose CPU it is.

    Returns:
        The function, without arguments.
    """
    number = arm_const.UC_ARM_REG_CPSR
    read, write = engine.reader(number, 32), engine.writer(number, 32)

    def leave() -> None:
        """Clear ITSTATE in the CPSR, if it is set."""
        flags = read()
        if flags & _ITSTATE:
            write(flags & ~_ITSTATE)

    return leave


def _block(profile_m: bool) -> bytes:
    """Return code with a load in an IT block, by which hooks of accesses are checked (Mended.code).

    Args:
        profile_m: True for the M profile. False: A32 code that changes to T32 is in front.
    """
    # movs r2, 1; lsls r2, 16; cmp r2, r2; itet eq
    block = struct.pack(
        "<8H",
        0x2201,
        0x0412,
        0x4292,
        0xBF0A,
        # ldreq r1, [r2]; addne r3, 1; addeq r4, 1; adds r5, 1
        0x6811,
        0x3301,
        0x3401,
        0x3501,
    )
    # add ip, pc, 1; bx ip
    return block if profile_m else struct.pack("<2I", 0xE28FC001, 0xE12FFF1C) + block


#: of the M profile, and of the others: (coprocessor, 64 bits, secure, CRn, CRm, opcode 1, opcode 2)
SYSTEM_M: dict[str, SystemRegister] = {
    name: ByNumber(name.upper())
    for name in ("msp", "psp", "control", "ipsr", "primask", "basepri", "faultmask")
}
SYSTEM_A: dict[str, SystemRegister] = {
    "cpsr": ByNumber("CPSR"),
    "spsr": ByNumber("SPSR"),
    "sctlr": ByPlace((15, 0, 0, 1, 0, 0, 0)),
    "vbar": ByPlace((15, 0, 0, 12, 0, 0, 0)),
}
#: of AArch64: (CRn, CRm, op0, op1, op2)
SYSTEM_64: dict[str, SystemRegister] = {
    "pstate": ByNumber("PSTATE"),
    "elr_el1": ByNumber("ELR_EL1"),
    "vbar_el1": ByNumber("VBAR_EL1"),
    "spsr_el1": ByPlace((4, 0, 3, 0, 0)),
}


def _arm(mode: int) -> Guest:
    """Make the engine's row of 32-bit Arm.

    UDF in an IT block is skipped where the block's condition fails, BKPT is not: so BKPT is the
    breakpoint, in A32 as well (an A32 one whose first half is a T32 one). Writing an even pc leaves
    T32. YIELD and WFE end the run with an error.

    Args:
        mode: Unicorn's UC_MODE_ bits; with UC_MODE_MCLASS it is the M profile.
    """
    a32, t32 = bytes.fromhex("78be20e1"), bytes.fromhex("78be")
    profile_m = bool(mode & unicorn.UC_MODE_MCLASS)
    traps = (
        Traps(probe={2: t32}, end={1: t32})
        if profile_m
        else Traps(probe={4: a32}, end={0: a32, 1: t32}, modes={1: {2: t32}})
    )

    def enable_fpu(engine: Engine) -> None:
        """Turn the FPU on in a new engine: access to it, and FPEXC.EN."""
        access = arm_const.UC_ARM_REG_C1_C0_2
        engine.uc.reg_write(access, engine.uc.reg_read(access) | 0xF << 20)
        engine.uc.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)

    def start_floats(engine: Engine) -> None:
        """Set FPCA and SFPA in CONTROL of a new engine (M profile).

        Otherwise the first instruction that uses the FPU sets FPSCR anew, whatever was written to
        it.
        """
        engine.uc.reg_write(arm_const.UC_ARM_REG_CONTROL, 12)

    def exception_return(number: int, pc: int) -> int:
        """Return the number by which an interrupt of the M profile is reported
        (Interrupts.renumber).

        The engine raises 8 where BX and the like lead to 0xFFFFFFxx, a return from an exception;
        but 3, as for any refused fetch, where the library has written such a pc. That becomes 8,
        too.

        Args:
            number: the engine's number of the interrupt.
            pc: the engine's pc.
        """
        return 8 if number == 3 and pc >= 0xFEFFFFFE else number

    return Guest(
        cpu=Cpu(
            arch=unicorn.UC_ARCH_ARM,
            mode=mode,
            state_mode=unicorn.UC_MODE_THUMB,
            setup=start_floats if profile_m else enable_fpu,
        ),
        registers=RegisterFile(
            constants=arm_const,
            prefix="ARM",
            names={"tpidruro": "C13_C0_3"},
            system=SYSTEM_M if profile_m else SYSTEM_A,
        ),
        breakpoint=Breakpoint(channel=INTR, number=7, traps=traps),
        pc=Pc(plain=True, modes=1, mode_bit=24 if profile_m else 5, written_again=not profile_m),
        interrupts=Interrupts(
            bias={2: 4, 13: 4},
            mode_bias={1: {2: 2, 13: 4}},
            renumber=exception_return if profile_m else None,
            call=2 if profile_m else None,
            leave=8 if profile_m else None,
        ),
        faults=Faults(
            undefined=frozenset({1, 17, 18}),
            breakpoints=frozenset({7}),
            fetches=frozenset({3, 8}),
            late_stores=True,  # of IT blocks
        ),
        calls=SystemCalls(linux=None if profile_m else 2, skip={2: 0, 13: 0}),
        blocks=Blocks(compares=Compares.COMPARISONS),
        memory=Mapped(
            mended=Mended(_leave_block, _block(profile_m)),
            devices_swapped=bool(mode & unicorn.UC_MODE_ARMBE8),
        ),
    )


def _arm64(mode: int) -> Guest:
    """Make the engine's row of AArch64.

    Args:
        mode: unicorn's UC_MODE_ bits of the byte order; 0: little.
    """
    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_ARM64, mode=unicorn.UC_MODE_ARM | mode),
        registers=RegisterFile(constants=arm64_const, prefix="ARM64", system=SYSTEM_64),
        breakpoint=Breakpoint(channel=INTR, number=7),
        pc=Pc(plain=True),
        blocks=Blocks(served_in_place=True),
        interrupts=Interrupts(bias={2: 4, 13: 4}),
        faults=Faults(
            undefined=frozenset({1}),
            breakpoints=frozenset({7}),
            late_stores=True,  # DC ZVA
        ),
        calls=SystemCalls(linux=2, skip={2: 0, 13: 0}),
        memory=Mapped(devices_swapped=bool(mode)),
    )


GUESTS = {
    "arm64": _arm64(0),
    "arm64be": _arm64(unicorn.UC_MODE_BIG_ENDIAN),
    "arm": _arm(unicorn.UC_MODE_ARM),
    "armeb": _arm(unicorn.UC_MODE_ARM | unicorn.UC_MODE_ARMBE8),
    "cortexm": _arm(unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS),
}
