"""RISC-V in Unicorn."""

from __future__ import annotations

import unicorn
from unicorn import riscv_const

from ....arch._base import Traps
from ..engine import Engine
from ..registers.system import ByNumber, SystemRegister
from .guest import (
    INTR,
    Blocks,
    Breakpoint,
    Contexts,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Pc,
    RegisterFile,
    SystemCalls,
)

SYSTEM: dict[str, SystemRegister] = {
    name: ByNumber(name.upper())
    for name in ("mstatus", "mie", "mip", "mepc", "mcause", "mtval", "mtvec", "priv")
}


def _riscv(mode: int) -> Guest:
    """Make the engine's row of a RISC-V guest.

    EBREAK ends the run with an error, so a reserved C.JR is the breakpoint (two zero bytes are
    illegal too, but a translation that ends in them is recorded without them and survives their
    replacement). pc is 4 too far at every interrupt.

    Args:
        mode: of the engine: UC_MODE_RISCV32 or UC_MODE_RISCV64.
    """
    trap = bytes.fromhex("0280")

    def enable_fpu(engine: Engine) -> None:
        """Turn the FPU on in a new engine (mstatus.FS)."""
        status = riscv_const.UC_RISCV_REG_MSTATUS
        engine.uc.reg_write(status, engine.uc.reg_read(status) | 3 << 13)

    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_RISCV, mode=mode, setup=enable_fpu),
        registers=RegisterFile(constants=riscv_const, prefix="RISCV", system=SYSTEM),
        breakpoint=Breakpoint(
            channel=INTR, number=2, bias=4, traps=Traps(probe={2: trap, 4: trap}, end={0: trap})
        ),
        pc=Pc(plain=True),
        blocks=Blocks(undefined_unrecorded=True),
        interrupts=Interrupts(bias=dict.fromkeys(range(24), 4)),
        faults=Faults(undefined=frozenset({2}), unaligned={4: "read", 6: "write"}),
        calls=SystemCalls(linux=8, skip={8: 0}),
        contexts=Contexts(beside=("fflags",)),
    )


GUESTS = {
    "riscv32": _riscv(unicorn.UC_MODE_RISCV32),
    "riscv64": _riscv(unicorn.UC_MODE_RISCV64),
}
