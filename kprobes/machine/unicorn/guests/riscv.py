"""RISC-V in Unicorn."""

from __future__ import annotations

import unicorn
from unicorn import riscv_const

from ....arch._base import Traps
from ..engine import Engine
from .guest import INTR, Guest


def _riscv(mode: int) -> Guest:
    """EBREAK ends the run with an error, so a reserved C.JR is the breakpoint (two zero bytes are illegal too, but a translation
    that ends in them is recorded without them and survives their replacement). pc is 4 too far at every interrupt."""
    trap = bytes.fromhex("0280")

    def enable_fpu(engine: Engine) -> None:
        status = riscv_const.UC_RISCV_REG_MSTATUS
        engine.uc.reg_write(status, engine.uc.reg_read(status) | 3 << 13)

    return Guest(uc_arch=unicorn.UC_ARCH_RISCV, uc_mode=mode, constants=riscv_const, prefix="RISCV", channel=INTR, number=2, pc_bias=4, plain_pc=True,
                 traps=Traps(probe={2: trap, 4: trap}, end={0: trap}), setup=enable_fpu, undefined=frozenset({2}),
                 fault_bias=dict.fromkeys(range(24), 4), call_skip={8: 0}, unaligned={4: "read", 6: "write"}, outside_context=("fflags",),
                 undefined_unrecorded=True)


GUESTS = {
    "riscv32": _riscv(unicorn.UC_MODE_RISCV32),
    "riscv64": _riscv(unicorn.UC_MODE_RISCV64),
}
