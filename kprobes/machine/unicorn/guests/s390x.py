"""s390x in Unicorn."""

from __future__ import annotations

import unicorn
from unicorn import s390x_const

from ....arch._base import Traps
from ..engine import Engine
from ..registers.conditions import DOWN, NEAREST, ODD, UP, ZERO, CpuMode, control
from .guest import (
    INTR,
    Blocks,
    Breakpoint,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Pc,
    RegisterFile,
    SelfTestCode,
    SystemCalls,
    WordCheck,
)

#: LGHI r1,n; SFPC r1. EFPC r2
S390X_WORDS = (WordCheck("fpc", "a7190002b3840010", 2, "b38c0020", "r2", 3),)


def _s390x() -> Guest:
    """Make the engine's row of s390x.

    A translation that ends in 0002 is recorded without it, and at the start of a page it may fail
    before its CODE hook is called: so SVC is the breakpoint, of a number that makes it SVC from its
    odd byte on, too (the engine branches to odd addresses). Under the virtual TLB a store that
    fails does not end MVC, STAM and others; the CPU's own TLB is exact, but does not tell a failed
    access from an undefined instruction, and executes nothing in pages that cannot be written.
    """

    r1 = s390x_const.UC_S390X_REG_R1
    fpc = control(r1, 64, 748, CpuMode(0, (NEAREST, ZERO, UP, DOWN, None, None, None, ODD), 758))

    def set_up(engine: Engine) -> None:
        """Set 64-bit addressing in a new engine, and turn FPC and vector instructions on."""
        # 64-bit addressing; the engine starts with 24
        engine.uc.reg_write(s390x_const.UC_S390X_REG_PSWM, 0x180000000)
        control = s390x_const.UC_S390X_REG_CR0
        # FPC and vector instructions
        engine.uc.reg_write(control, engine.uc.reg_read(control) | 0x60000)

    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_S390X, mode=unicorn.UC_MODE_BIG_ENDIAN, setup=set_up),
        registers=RegisterFile(
            constants=s390x_const,
            prefix="S390X",
            names={f"v{n}_low": f"F{n}_HI" for n in range(32)},
            hidden={"fpc": fpc},
        ),
        breakpoint=Breakpoint(
            channel=INTR, number=2, traps=Traps(probe={2: b"\x0a\x0a"}, end={0: b"\x0a\x0a"})
        ),
        pc=Pc(plain=True),
        blocks=Blocks(
            undefined_unrecorded=True,
            # EX, EXRL
            reported_twice=lambda code: code[0] == 0x44 or (code[0] == 0xC6 and code[1] & 15 == 0),
        ),
        faults=Faults(undefined=frozenset({3}), ambiguous=frozenset({3})),
        interrupts=Interrupts(lingers=3),
        calls=SystemCalls(linux=2, skip={2: 2}),
        memory=Mapped(text_writable=True),
        checks=SelfTestCode(words=S390X_WORDS),
    )


GUESTS = {
    "s390x": _s390x(),
}
