"""m68k in Unicorn."""

from __future__ import annotations

import unicorn
from unicorn import m68k_const

from ..engine import Engine
from ..registers.conditions import DOWN, NEAREST, UP, ZERO, CpuMode, control, m68k_ccr, word
from .guest import (
    INTR,
    Breakpoint,
    Cpu,
    Faults,
    Guest,
    Pc,
    RegisterFile,
    SelfTestCode,
    SystemCalls,
    WordCheck,
)

#: MOVEQ #n,D0; MOVE #m,CCR; then an operation of each kind that the engine tells apart.
M68K_FLAGS = (
    ("44fc001f", 0x1F),
    ("44fc000a", 0x0A),
    ("70ff7201d081", 0x15),
    ("44fc0010707fd000", 0x0A),
    ("708072019081", 0x08),
    ("707f72ff44fc00109001", 0x1B),
    ("70017202b081", 0x09),
    ("7080b03c0001", 0x02),
    ("44fc001f70004a80", 0x14),
    ("70ff4480", 0x11),
)
#: MOVE.L #n,D0; FMOVE.L D0,FPCR (FPSR); FMOVE.L FPCR (FPSR),D1
M68K_WORDS = (
    WordCheck("fpcr", "203c00000050f2009000", 0x50, "f201b000", "d1", 0xF0),
    WordCheck("fpsr", "203c05000000f2008800", 0x05000000, "f201a800", "d1", 0x0F000000),
)


def _m68k() -> Guest:
    """Make the engine's row of m68k, a 68040.

    Unicorn's names of the models are one off. BKPT hangs the process. The API's SR is wrong, and
    reading it in a hook destroys the condition codes: so the CCR is read where the engine keeps it,
    and SR is never read.
    """
    d0 = m68k_const.UC_M68K_REG_D0

    #: the value 3 of the precision is undefined, and changes nothing
    fpcr = control(
        d0, 32, 256, CpuMode(4, (NEAREST, ZERO, DOWN, UP), 265), CpuMode(6, (80, 32, 64, None), 267)
    )

    def set_up(engine: Engine) -> None:
        """Set the condition codes of a new engine to 0."""
        # a fresh CPU has no condition codes: a conditional branch would end the process
        m68k_ccr(d0)(engine)[1](0)

    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_M68K, mode=unicorn.UC_MODE_BIG_ENDIAN, model=3, setup=set_up),
        registers=RegisterFile(
            constants=m68k_const,
            prefix="M68K",
            hidden={"ccr": m68k_ccr(d0), "fpcr": fpcr, "fpsr": word(d0, 32, 260)},
        ),
        breakpoint=Breakpoint(channel=INTR, number=4),
        pc=Pc(plain=True),
        faults=Faults(arithmetic=frozenset({5}), undefined=frozenset({4, 10, 11})),
        calls=SystemCalls(linux=32, skip=dict.fromkeys(range(32, 48), 2)),
        checks=SelfTestCode(flags=M68K_FLAGS, words=M68K_WORDS),
    )


GUESTS = {
    "m68k": _m68k(),
}
