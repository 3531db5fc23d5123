"""SPARC in Unicorn: versions 8 and 9."""

from __future__ import annotations

import unicorn
from unicorn import sparc_const

from ..engine import Engine
from ..registers.conditions import (
    DOWN,
    NEAREST,
    UP,
    ZERO,
    CpuMode,
    control,
    sparc_codes,
    sparc_context,
    sparc_floats,
    word,
)
from .guest import (
    INVALID,
    Blocks,
    Breakpoint,
    Compares,
    Contexts,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Pc,
    RegisterFile,
    Runs,
    SelfTestCode,
    SystemCalls,
    WordCheck,
)

#: MOV -1,G1; then operations of each kind on it, or on G0.
SPARC_FLAGS = {
    32: (
        ("82103fff80806001", 0x5),
        ("80a02001", 0x9),
        ("80882000", 0x4),
        ("031fffff80804001", 0xA),
        ("80c02000", 0x4),
        ("80e02001", 0x9),
        ("81002001", 0x2),
    ),
    64: (
        ("82103fff80806001", 0x55),
        ("80a02001", 0x99),
        ("80882000", 0x44),
        ("031fffff80804001", 0x0A),
        ("80c02000", 0x44),
        ("80e02001", 0x99),
    ),
}
#: MOV n,G1; WR G1,Y; RD Y,G2. SETHI n,G1; ST G1,[G3]; LD [G3],FSR; ST FSR,[G3]; LD [G3],G2, with G3
#: = 0x11000
SPARC_Y = WordCheck("y", "8210255581806000", 0x555, "85400000", "g2")
SPARC_FSR = WordCheck(
    "fsr",
    "070000440310000082106100c220c000c108c000",
    0x40000100,
    "07000044c128c000c400c000",
    "g2",
    0xC00003E0,
)


def _stores(insn: bytes) -> bool:
    """Return True where an instruction on memory writes: bit 2 of its op3 is set then.

    Args:
        insn: its four bytes.
    """
    word = int.from_bytes(insn, "big")
    return word >> 30 == 3 and bool(word >> 19 & 4)


def _sparc(bits: int) -> Guest:
    """Make the engine's row of a SPARC guest.

    Reading PSR or CCR before anything has set condition codes ends the process, so `setup` sets
    them.

    Args:
        bits: 32: version 8; 64: version 9.
    """
    g1, size = sparc_const.UC_SPARC_REG_G1, bits // 8
    codes = sparc_codes(g1, bits)
    names = [f"{kind}{n}" for kind in "oli" for n in range(8)]
    distance, rounding = (72, 2653) if bits == 32 else (136, 6961)
    fsr = control(g1, bits, distance, CpuMode(30, (NEAREST, ZERO, UP, DOWN), rounding), size=bits)
    hidden = {
        "y": word(g1, bits, (11 if bits == 32 else 10) * size, bits),
        "ccr" if bits == 64 else "icc": codes,
        "fsr": fsr,
    }
    # SAVE, RESTORE, past all windows; version 9 traps at both
    moves = ("81e00000",) * 9 + ("81e80000",) * 9 if bits == 32 else ()
    calls, unaligned, division = (0x80, 7, 0x2A) if bits == 32 else (0x100, 0x34, 0x28)

    def set_up(engine: Engine) -> None:
        """Turn floating point on in a new engine, and set its condition codes to 0; in 32 bits
        choose supervisor mode, in 64 bits the engine's virtual TLB.
        """
        codes(engine)[1](0)
        if bits == 64:
            # the CPU's own refuses addresses above the lower half
            engine.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
            sparc_floats(engine, g1)
        else:
            engine.uc.reg_write(sparc_const.UC_SPARC_REG_PSR, 0x10C0)  # FPU and supervisor
            codes(engine)[1](0)

    mode = unicorn.UC_MODE_SPARC64 if bits == 64 else unicorn.UC_MODE_SPARC32
    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_SPARC, mode=mode | unicorn.UC_MODE_BIG_ENDIAN, setup=set_up),
        registers=RegisterFile(
            constants=sparc_const, prefix="SPARC", hidden=hidden, windowed=frozenset(names)
        ),
        breakpoint=Breakpoint(channel=INVALID),
        pc=Pc(next=bytes.fromhex("01000000")),
        runs=Runs(until_stops=False),
        blocks=Blocks(hooked_delay_slots=False, compares=Compares.SUBTRACTIONS),
        interrupts=Interrupts(lost_pc=True),
        faults=Faults(
            arithmetic=frozenset({division}), unaligned={unaligned: "read"}, writes=_stores
        ),
        calls=SystemCalls(
            linux=calls + (0x10 if bits == 32 else 0x6D),
            skip=dict.fromkeys(range(calls, calls + 0x80), 0),
        ),
        memory=Mapped(page_size=0x2000 if bits == 64 else 0x1000),
        contexts=Contexts(state=sparc_context(g1) if bits == 64 else None),
        checks=SelfTestCode(flags=SPARC_FLAGS[bits], words=(SPARC_Y, SPARC_FSR), moves=moves),
    )


GUESTS = {
    "sparc": _sparc(32),
    "sparc64": _sparc(64),
}
