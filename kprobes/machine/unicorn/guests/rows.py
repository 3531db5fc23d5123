"""One row per guest: how Unicorn 2.1.4 is opened for it, and where the engine differs from the ISA.

Every fact here was measured (docs/engine.md); the self-test checks the ones that would corrupt a guest when wrong.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import unicorn
from unicorn import arm64_const, arm_const, m68k_const, mips_const, ppc_const, riscv_const, s390x_const, sparc_const, tricore_const

from ....arch._base import Traps
from ..registers.conditions import m68k_ccr, sparc_codes, sparc_context, word
from . import tricore, x86
from .guest import HOOK, INTR, INVALID, Guest, WordCheck

if TYPE_CHECKING:
    from ..engine import Engine

FP, VECTORS, VSX = 1 << 13, 1 << 25, 1 << 23  # of PowerPC's MSR


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


#: KSEG0 and KSEG1; the same for 64 bits, and XKPHYS with its eight ways of caching
SEGMENTS = ((0x80000000, 1 << 29), (0xA0000000, 1 << 29))
SEGMENTS_64 = (*((start | 0xFFFFFFFF << 32, size) for start, size in SEGMENTS), *(((16 | way) << 59, 1 << 36) for way in range(8)))
#: major opcodes of branches and jumps; what release 6 has in place of other instructions; SPECIAL's functions JR, JALR, SYSCALL, BREAK
ENDS, ENDS_R6, ENDS_SPECIAL = {2, 3, 4, 5, 6, 7, 0x14, 0x15, 0x16, 0x17}, {8, 0x18, 0x32, 0x36, 0x3A, 0x3E}, {8, 9, 12, 13}


def _ends_block(swapped: bool, r6: bool, word: int) -> bool:
    """Guest.ends_block: branches, jumps, SYSCALL and BREAK."""
    if swapped:
        word = int.from_bytes(word.to_bytes(4, "little"), "big")
    opcode = word >> 26
    if opcode == 0:
        return word & 63 in ENDS_SPECIAL
    if opcode == 1:
        return not word >> 16 & 0xC  # BLTZ, BGEZ and their forms
    return opcode in ENDS or (r6 and opcode in ENDS_R6) or (opcode == 0x11 and word >> 21 & 31 in (8, 9, 13))


def _mips(mode: int, model: int, status: int, *, r6: bool = False) -> Guest:
    """Only SYSCALL arrives with a usable pc, so it is the breakpoint, with codes that nobody uses and that are reserved in MIPS16:
    there a jump to an odd address would take a page of them for one long block.

    status: bits of CP0 Status that compiled code needs (29 CU1: FPU, 26 FR: 64-bit FPU registers, 24 MX: DSP, 7 to 5: 64-bit
    addressing). ERL, set at reset, stays: it makes addresses below 2 GiB physical. Those above go through the CPU's TLB, which is
    empty, or are shorthands of low ones (KSEG0, KSEG1).
    """
    order: Literal["big", "little"] = "big" if mode & unicorn.UC_MODE_BIG_ENDIAN else "little"
    probe, end = ((code << 6 | 0b001100).to_bytes(4, order) for code in (0xB03F5, 0xB03F6))
    n64 = {**{f"a{n}": str(4 + n) for n in range(8)}, **{f"t{n}": str(12 + n) for n in range(4)}} if mode & unicorn.UC_MODE_MIPS64 else {}

    def set_up(engine: Engine) -> None:
        register = mips_const.UC_MIPS_REG_CP0_STATUS
        engine.uc.reg_write(register, engine.uc.reg_read(register) | status)

    def recognise(uc: unicorn.Uc) -> bool:
        """FIR of release 6 has FREP (bit 29) but not UFRP (28)."""
        return bool((uc.reg_read(mips_const.UC_MIPS_REG_FIR) >> 28 & 3 == 2) == r6)

    return Guest(segments=SEGMENTS if mode & unicorn.UC_MODE_MIPS32 else SEGMENTS_64,
                 uc_arch=unicorn.UC_ARCH_MIPS, uc_mode=mode, constants=mips_const, prefix="MIPS", channel=INTR, number=17, pc_bias=4,
                 traps=Traps(probe={4: probe}, end={0: end}), registers={**n64, "userlocal": "CP0_USERLOCAL"}, setup=set_up, recognise=recognise,
                 cpu_model=model, until_pc=False, plain_pc=True, pc_modes=1, arithmetic=frozenset({21, 22, 23}),
                 undefined=frozenset({19, 20, 33, 34}), breakpoints=frozenset({16, 18}), unaligned={12: "read", 13: "write"},
                 reach=1 << 31, lost_pc=True, fetch_fault_kills=True, ends_block=partial(_ends_block, sys.byteorder != order, r6), settle=bytes(4))


def _ppc(wide: bool, msr: int) -> Guest:
    """64 bit: with the CPU's own TLB every fetch is refused (interrupt 70). Little endian is a bit of the MSR, not a mode of the engine."""

    def set_up(engine: Engine) -> None:
        if wide:
            engine.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        register = ppc_const.UC_PPC_REG_MSR
        engine.uc.reg_write(register, engine.uc.reg_read(register) | msr)

    def recognise(uc: unicorn.Uc) -> bool:
        return bool(uc.reg_read(ppc_const.UC_PPC_REG_MSR) & 1 == msr & 1)

    names = {**{f"r{n}": str(n) for n in range(32)}, **{f"f{n}": f"FPR{n}" for n in range(32)}}
    return Guest(uc_arch=unicorn.UC_ARCH_PPC, uc_mode=(unicorn.UC_MODE_PPC64 if wide else unicorn.UC_MODE_PPC32) | unicorn.UC_MODE_BIG_ENDIAN,
                 constants=ppc_const, prefix="PPC", channel=INTR, number=6, pc_bias=4, plain_pc=True, registers=names, setup=set_up,
                 recognise=recognise, moving=frozenset({"msr", "fpscr"}), undefined=frozenset({96}), breakpoints=frozenset({6}),
                 fault_bias=dict.fromkeys(range(128), 4), call_skip={8: 0}, virtual_tlb=wide)


def _s390x() -> Guest:
    """A translation that ends in 0002 is recorded without it, and at the start of a page it may fail before its CODE hook is called: so
    SVC is the breakpoint, of a number that makes it SVC from its odd byte on, too (the engine branches to odd addresses). Under the
    virtual TLB a store that fails does not end MVC, STAM and others; the CPU's own TLB is exact, but does not tell a failed access
    from an undefined instruction, and executes nothing in pages that cannot be written."""

    def set_up(engine: Engine) -> None:
        engine.uc.reg_write(s390x_const.UC_S390X_REG_PSWM, 0x180000000)  # 64-bit addressing; the engine starts with 24
        control = s390x_const.UC_S390X_REG_CR0
        engine.uc.reg_write(control, engine.uc.reg_read(control) | 0x60000)  # FPC and vector instructions

    return Guest(uc_arch=unicorn.UC_ARCH_S390X, uc_mode=unicorn.UC_MODE_BIG_ENDIAN, constants=s390x_const, prefix="S390X", channel=INTR, number=2,
                 traps=Traps(probe={2: b"\x0a\x0a"}, end={0: b"\x0a\x0a"}),
                 plain_pc=True, registers={f"v{n}_low": f"F{n}_HI" for n in range(32)}, setup=set_up, undefined=frozenset({3}), call_skip={2: 2},
                 undefined_unrecorded=True, ambiguous=frozenset({3}), text_writable=True,
                 reported_twice=lambda code: code[0] == 0x44 or (code[0] == 0xC6 and code[1] & 15 == 0))  # EX, EXRL


def _arm(mode: int) -> Guest:
    """UDF in an IT block is skipped where the block's condition fails, BKPT is not: so BKPT is the breakpoint, in A32 as well (an
    A32 one whose first half is a T32 one). Writing an even pc leaves T32. YIELD and WFE end the run with an error."""
    a32, t32 = bytes.fromhex("78be20e1"), bytes.fromhex("78be")
    profile_m = bool(mode & unicorn.UC_MODE_MCLASS)
    traps = Traps(probe={2: t32, 4: t32}, end={1: t32}) if profile_m else Traps(probe={2: t32, 4: a32}, end={0: a32, 1: t32})

    def enable_fpu(engine: Engine) -> None:
        access = arm_const.UC_ARM_REG_C1_C0_2
        engine.uc.reg_write(access, engine.uc.reg_read(access) | 0xF << 20)
        engine.uc.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)

    def exception_return(number: int, pc: int) -> int:
        """M profile: only BX and the like raise 8 at 0xFFFFFFxx, our pc write raises 3, which is the refused fetch elsewhere."""
        return 8 if number == 3 and pc >= 0xFEFFFFFE else number

    return Guest(uc_arch=unicorn.UC_ARCH_ARM, uc_mode=mode, state_mode=unicorn.UC_MODE_THUMB, constants=arm_const, prefix="ARM", channel=INTR,
                 number=7, traps=traps, loses_pc=not profile_m, registers={"tpidruro": "C13_C0_3"}, setup=None if profile_m else enable_fpu,
                 plain_pc=True, pc_modes=1, mode_bit=24 if profile_m else 5,
                 undefined=frozenset({1, 17, 18}), breakpoints=frozenset({7}), fetches=frozenset({3, 8}),
                 renumber=exception_return if profile_m else None, fault_bias={2: 4, 13: 4}, mode_bias={1: {2: 2, 13: 4}},
                 call_skip={2: 0, 13: 0})


def _m68k() -> Guest:
    """A 68040; Unicorn's names of the models are one off. BKPT hangs the process. The API's SR is wrong, and reading it in a hook
    destroys the condition codes: nobody does, the CCR is read where the engine keeps it."""
    d0 = m68k_const.UC_M68K_REG_D0

    def set_up(engine: Engine) -> None:
        m68k_ccr(d0)(engine)[1](0)  # a fresh CPU has no condition codes: a conditional branch would end the process

    return Guest(uc_arch=unicorn.UC_ARCH_M68K, uc_mode=unicorn.UC_MODE_BIG_ENDIAN, cpu_model=3, constants=m68k_const, prefix="M68K", channel=INTR,
                 number=4, plain_pc=True, setup=set_up, hidden={"ccr": m68k_ccr(d0), "fpcr": word(d0, 32, 256), "fpsr": word(d0, 32, 260)},
                 word_checks=M68K_WORDS,
                 arithmetic=frozenset({5}), undefined=frozenset({4, 10, 11}), flag_checks=M68K_FLAGS, call_skip=dict.fromkeys(range(32, 48), 2))


def _sparc(bits: int) -> Guest:
    """Reading PSR or CCR before anything has set condition codes ends the process, so setup sets them. pc is npc at interrupts."""
    g1, size = sparc_const.UC_SPARC_REG_G1, bits // 8
    codes = sparc_codes(g1, bits)
    names = [f"{kind}{n}" for kind in "oli" for n in range(8)]
    wide: dict[str, Any] = {"page_size": 0x2000, "context": sparc_context(g1)} if bits == 64 else {}
    own: dict[str, Any] = {"fsr": word(g1, 32, 72)} if bits == 32 else {}
    moves = ("81e00000",) * 9 + ("81e80000",) * 9 if bits == 32 else ()  # SAVE, RESTORE, past all windows; version 9 traps at both
    calls, unaligned, division = (0x80, 7, 0x2A) if bits == 32 else (0x100, 0x34, 0x28)

    def set_up(engine: Engine) -> None:
        codes(engine)[1](0)
        if bits == 64:
            engine.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)  # the CPU's own refuses addresses above the lower half
        else:
            engine.uc.reg_write(sparc_const.UC_SPARC_REG_PSR, 0x10C0)  # FPU and supervisor
            codes(engine)[1](0)

    mode = unicorn.UC_MODE_SPARC64 if bits == 64 else unicorn.UC_MODE_SPARC32
    return Guest(counts_insns=False, uc_arch=unicorn.UC_ARCH_SPARC, uc_mode=mode | unicorn.UC_MODE_BIG_ENDIAN, constants=sparc_const, prefix="SPARC",
                 channel=INVALID, next_pc=bytes.fromhex("01000000"), windowed=frozenset(names), setup=set_up,
                 hidden={"y": word(g1, bits, (11 if bits == 32 else 10) * size, bits), "ccr" if bits == 64 else "icc": codes, **own},
                 until_stops=False, arithmetic=frozenset({division}), unaligned={unaligned: "read"}, fault_bias=dict.fromkeys(range(0x200), 4),
                 call_skip=dict.fromkeys(range(calls, calls + 0x80), 0), flag_checks=SPARC_FLAGS[bits],
                 moves=moves, word_checks=SPARC_WORDS[bits], **wide)


#: MOV -1,G1; then operations of each kind on it, or on G0.
SPARC_FLAGS = {32: (("82103fff80806001", 0x5), ("80a02001", 0x9), ("80882000", 0x4), ("031fffff80804001", 0xA), ("80c02000", 0x4),
                    ("80e02001", 0x9), ("81002001", 0x2)),
               64: (("82103fff80806001", 0x55), ("80a02001", 0x99), ("80882000", 0x44), ("031fffff80804001", 0x0A), ("80c02000", 0x44),
                    ("80e02001", 0x99))}

#: MOVEQ #n,D0; MOVE #m,CCR; then an operation of each kind that the engine tells apart.
M68K_FLAGS = (("44fc001f", 0x1F), ("44fc000a", 0x0A), ("70ff7201d081", 0x15), ("44fc0010707fd000", 0x0A), ("708072019081", 0x08),
              ("707f72ff44fc00109001", 0x1B), ("70017202b081", 0x09), ("7080b03c0001", 0x02), ("44fc001f70004a80", 0x14), ("70ff4480", 0x11))

#: MOVE.L #n,D0; FMOVE.L D0,FPCR (FPSR); FMOVE.L FPCR (FPSR),D1
M68K_WORDS = (WordCheck("fpcr", "203c00000050f2009000", 0x50, "f201b000", "d1", 0xF0),
              WordCheck("fpsr", "203c05000000f2008800", 0x05000000, "f201a800", "d1", 0x0F000000))
#: MOV n,G1; WR G1,Y; RD Y,G2. SETHI n,G1; ST G1,[G3]; LD [G3],FSR; ST FSR,[G3]; LD [G3],G2, with G3 = 0x11000
SPARC_Y = WordCheck("y", "8210255581806000", 0x555, "85400000", "g2")
SPARC_WORDS = {32: (SPARC_Y, WordCheck("fsr", "070000440310000082106100c220c000c108c000", 0x40000100, "07000044c128c000c400c000", "g2",
                                       0xC00003E0)), 64: (SPARC_Y,)}

GUESTS: dict[str, Guest] = {
    "m68k": _m68k(),
    "sparc": _sparc(32),
    "sparc64": _sparc(64),
    "x86_64": x86.X86_64,
    "i386": x86.I386,
    "arm64": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_ARM64, uc_mode=unicorn.UC_MODE_ARM,
                   constants=arm64_const, prefix="ARM64", channel=INTR, number=7, fault_bias={2: 4, 13: 4}, call_skip={2: 0, 13: 0},
                   undefined=frozenset({1}), breakpoints=frozenset({7})),
    "arm64be": Guest(plain_pc=True, uc_arch=unicorn.UC_ARCH_ARM64, uc_mode=unicorn.UC_MODE_ARM | unicorn.UC_MODE_BIG_ENDIAN, constants=arm64_const,
                     prefix="ARM64", channel=INTR, number=7, fault_bias={2: 4, 13: 4}, call_skip={2: 0, 13: 0},
                     undefined=frozenset({1}), breakpoints=frozenset({7})),
    "riscv32": _riscv(unicorn.UC_MODE_RISCV32),
    "riscv64": _riscv(unicorn.UC_MODE_RISCV64),
    "mips": _mips(unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN, mips_const.UC_CPU_MIPS32_74KF, 1 << 29 | 1 << 24),
    "mipsel": _mips(unicorn.UC_MODE_MIPS32, mips_const.UC_CPU_MIPS32_74KF, 1 << 29 | 1 << 24),
    "mips64": _mips(unicorn.UC_MODE_MIPS64 | unicorn.UC_MODE_BIG_ENDIAN, mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC, 0x240000E0),
    "mips64el": _mips(unicorn.UC_MODE_MIPS64, mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC, 0x240000E0),
    "mips32r6": _mips(unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN, mips_const.UC_CPU_MIPS32_MIPS32R6_GENERIC, 0x24000000, r6=True),
    "mips32r6el": _mips(unicorn.UC_MODE_MIPS32, mips_const.UC_CPU_MIPS32_MIPS32R6_GENERIC, 0x24000000, r6=True),
    "mips64r6": _mips(unicorn.UC_MODE_MIPS64 | unicorn.UC_MODE_BIG_ENDIAN, mips_const.UC_CPU_MIPS64_I6400, 0x240000E0, r6=True),
    "mips64r6el": _mips(unicorn.UC_MODE_MIPS64, mips_const.UC_CPU_MIPS64_I6400, 0x240000E0, r6=True),
    "ppc": _ppc(False, FP | VECTORS),
    "ppc64": _ppc(True, FP | VECTORS | VSX),
    "ppc64le": _ppc(True, FP | VECTORS | VSX | 1),
    "arm": _arm(unicorn.UC_MODE_ARM),
    "armeb": _arm(unicorn.UC_MODE_ARM | unicorn.UC_MODE_ARMBE8),
    "cortexm": _arm(unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS),
    "s390x": _s390x(),
    "tricore": Guest(uc_arch=unicorn.UC_ARCH_TRICORE, uc_mode=unicorn.UC_MODE_LITTLE_ENDIAN, constants=tricore_const, prefix="TRICORE",
                     channel=HOOK, traps=Traps(probe=dict.fromkeys((2, 4), tricore.TRAP), end={0: tricore.TRAP}), setup=tricore.set_up,
                     page_size=0x4000, furnish=tricore.link_areas, contexts_near=0x70100000, rewind=tricore.rewind,
                     trap_taken=tricore.trap_taken, hidden={"psw": tricore.psw}, flag_checks=tricore.FLAGS, arithmetic=frozenset({0x501, 0x502}),
                     undefined=frozenset({0x201, 0x202, 0x203})),
}
