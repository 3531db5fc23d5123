"""PowerPC in Unicorn."""

from __future__ import annotations

import unicorn
from unicorn import ppc_const

from ..engine import Engine
from ..registers.system import ByCode, ByNumber, SystemRegister
from .guest import (
    INTR,
    Breakpoint,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Pc,
    RegisterFile,
    SystemCalls,
)

FP, VECTORS, VSX = 1 << 13, 1 << 25, 1 << 23  # of the MSR


def _special(number: int) -> ByCode:
    """Return how a special purpose register is reached: by MFSPR and MTSPR with r0.

    Args:
        number: of the register (SPR).
    """
    field = (number & 31) << 16 | number >> 5 << 11
    return ByCode(
        "r0", *((31 << 26 | field | operation << 1).to_bytes(4, "big") for operation in (339, 467))
    )


SYSTEM: dict[str, SystemRegister] = {
    "msr": ByNumber("MSR"),
    "srr0": _special(26),
    "srr1": _special(27),
}


def _ppc(wide: bool, msr: int) -> Guest:
    """Make the engine's row of a PowerPC guest.

    64 bit: with the CPU's own TLB every fetch is refused (interrupt 70), so the engine's virtual
    one is used. Little endian is a bit of the MSR, not a mode of the engine.

    Args:
        wide: True for 64 bits.
        msr: bits of the MSR to be set at the start.
    """

    def set_up(engine: Engine) -> None:
        """Set bits of the MSR (`msr`) of a new engine, and in 64 bits choose its virtual TLB."""
        if wide:
            engine.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        register = ppc_const.UC_PPC_REG_MSR
        engine.uc.reg_write(register, engine.uc.reg_read(register) | msr)

    def recognise(uc: unicorn.Uc) -> bool:
        """Return True where an engine's byte order (MSR.LE) is this guest's."""
        return bool(uc.reg_read(ppc_const.UC_PPC_REG_MSR) & 1 == msr & 1)

    names = {**{f"r{n}": str(n) for n in range(32)}, **{f"f{n}": f"FPR{n}" for n in range(32)}}
    return Guest(
        cpu=Cpu(
            arch=unicorn.UC_ARCH_PPC,
            mode=(unicorn.UC_MODE_PPC64 if wide else unicorn.UC_MODE_PPC32)
            | unicorn.UC_MODE_BIG_ENDIAN,
            recognise=recognise,
            setup=set_up,
        ),
        registers=RegisterFile(
            constants=ppc_const,
            prefix="PPC",
            names=names,
            moving=frozenset({"msr", "fpscr"}),
            system={} if wide else SYSTEM,
        ),
        breakpoint=Breakpoint(channel=INTR, number=6, bias=4),
        pc=Pc(plain=True),
        interrupts=Interrupts(bias=dict.fromkeys(range(128), 4)),
        faults=Faults(
            undefined=frozenset({96}),
            breakpoints=frozenset({6}),
            late_stores=True,  # STMW
        ),
        calls=SystemCalls(linux=8, skip={8: 0}),
        memory=Mapped(virtual_tlb=wide, devices_swapped=bool(msr & 1)),
    )


GUESTS = {
    "ppc": _ppc(False, FP | VECTORS),
    "ppc64": _ppc(True, FP | VECTORS | VSX),
    "ppc64le": _ppc(True, FP | VECTORS | VSX | 1),
}
