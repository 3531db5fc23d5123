"""One row per guest: how Unicorn 2.1.4 is opened for it, and where the engine differs from the ISA.

Every fact here was measured (docs/engine.md); the self-test checks the ones that would corrupt a guest when wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import unicorn
from attrs import field, frozen
from unicorn import arm64_const, riscv_const, x86_const

from ..arch._base import Traps

if TYPE_CHECKING:
    from ._engine import Engine

INTR, INVALID = "interrupt", "invalid instruction"


@frozen(kw_only=True)
class Guest:
    """An architecture in Unicorn."""

    uc_arch: int
    uc_mode: int
    constants: object  #: module with the register numbers
    prefix: str  #: of the register constants: UC_<prefix>_REG_<NAME>
    channel: str  #: how our breakpoint arrives
    number: int = 0  #: its interrupt number
    pc_bias: int = 0  #: engine's pc in that hook minus the breakpoint's address
    traps: Traps | None = None  #: breakpoints that arrive, where Linux's do not
    registers: Mapping[str, str] = field(factory=dict)  #: our register name -> Unicorn's, where they differ
    setup: Callable[[Engine], None] | None = None  #: brings the CPU into the state compiled code expects
    cpu_model: int | None = None
    until_pc: bool = True  #: pc is right after a run ended at `until`
    #: registers whose place in the engine changes while it runs (register windows, banks): never touched but through the API
    moving: frozenset[str] = frozenset()
    #: a breakpoint's hook may set pc by its word in the engine; elsewhere a pc write does more than that (npc, hflags, T bit)
    plain_pc: bool = False
    arithmetic: frozenset[int] = frozenset()  #: interrupt numbers of division and other arithmetic errors
    undefined: frozenset[int] = frozenset()  #: interrupt numbers of undefined instructions
    breakpoints: frozenset[int] = frozenset()  #: interrupt numbers of the guest's own breakpoints
    #: interrupt number -> engine's pc minus the address of the instruction at fault, where that is not 0 (or pc_bias for `number`)
    fault_bias: Mapping[int, int] = field(factory=dict)
    #: interrupt number of a system call -> what to add to the engine's pc to go on behind it; others go on at the instruction
    call_skip: Mapping[int, int] = field(factory=dict)


def _riscv(mode: int) -> Guest:
    """EBREAK ends the run with an error, so two zero bytes are the breakpoint. pc is 4 too far at every interrupt."""
    zero = bytes(2)

    def enable_fpu(engine: Engine) -> None:
        status = riscv_const.UC_RISCV_REG_MSTATUS
        engine.uc.reg_write(status, engine.uc.reg_read(status) | 3 << 13)

    return Guest(uc_arch=unicorn.UC_ARCH_RISCV, uc_mode=mode, constants=riscv_const, prefix="RISCV", channel=INTR, number=2, pc_bias=4, plain_pc=True,
                 traps=Traps(probe={2: zero, 4: zero}, end={0: zero}), setup=enable_fpu, undefined=frozenset({2}),
                 fault_bias=dict.fromkeys(range(24), 4), call_skip={8: 0})


GUESTS: dict[str, Guest] = {
    "x86_64": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_X86, uc_mode=unicorn.UC_MODE_64, constants=x86_const, prefix="X86", channel=INTR, number=3,
                    pc_bias=1, registers={"rflags": "EFLAGS"}, arithmetic=frozenset({0, 16, 19}), undefined=frozenset({6}),
                    breakpoints=frozenset({1, 3})),
    "i386": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_X86, uc_mode=unicorn.UC_MODE_32, constants=x86_const, prefix="X86", channel=INTR, number=3,
                  pc_bias=1, arithmetic=frozenset({0, 16, 19}), undefined=frozenset({6}), breakpoints=frozenset({1, 3})),
    "arm64": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_ARM64, uc_mode=unicorn.UC_MODE_ARM, constants=arm64_const, prefix="ARM64", channel=INTR, number=7,
                   undefined=frozenset({1}), breakpoints=frozenset({7})),
    "arm64be": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_ARM64, uc_mode=unicorn.UC_MODE_ARM | unicorn.UC_MODE_BIG_ENDIAN, constants=arm64_const,
                     prefix="ARM64", channel=INTR, number=7, undefined=frozenset({1}), breakpoints=frozenset({7})),
    "riscv32": _riscv(unicorn.UC_MODE_RISCV32),
    "riscv64": _riscv(unicorn.UC_MODE_RISCV64),
}
