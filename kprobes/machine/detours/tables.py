"""The architectures whose detours run programs, and how each saves registers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from attrs import evolve

from ...arch._base import Arch
from .locks import x64_patient, x86_lock, x86_patient
from .saving import Saving, numbered, some, words

# --- x86: Intel SDM volume 2; System V ABIs

_X64: Final = numbered("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")
_X86: Final = numbered("eax ecx edx ebx esp ebp esi edi")


def _x64_access(opcode: int, register: int, offset: int) -> bytes:
    head = bytes([0x48 | (register >> 3) << 2, opcode, 0x84 | (register & 7) << 3, 0x24])
    return head + offset.to_bytes(4, "little")


def _x86_access(opcode: int, register: int, offset: int) -> bytes:
    return bytes([opcode, 0x84 | register << 3, 0x24]) + offset.to_bytes(4, "little")


def _x64_begin(environment: int) -> bytes:
    """MOV RDI, environment; MOV RSI, RSP"""
    return b"\x48\xbf" + environment.to_bytes(8, "little") + bytes.fromhex("4889e6")


def _x64_call(environment: int, entry: int) -> bytes:
    """MOV RAX, entry; CALL RAX"""
    return _x64_begin(environment) + b"\x48\xb8" + entry.to_bytes(8, "little") + b"\xff\xd0"


def _x86_call(environment: int, entry: int) -> bytes:
    """MOV EAX, ESP; PUSH EAX; PUSH environment; MOV EAX, entry; CALL EAX; LEA ESP, [ESP+8]"""
    return (bytes.fromhex("89e0 50 68") + environment.to_bytes(4, "little") + b"\xb8" + entry.to_bytes(4, "little")
            + bytes.fromhex("ffd0 8d642408"))


_FLAGS: Final = "", bytes.fromhex("9c 58 fc"), bytes.fromhex("50 9d")  # PUSHF; POP rAX; CLD, and PUSH rAX; POPF
# emulators leave their fast path at POPF: TEST AH, 4 (DF); JNZ; MOV ECX, EAX; SHR ECX, 11; AND CL, 1; MOV AH, AL;
# ADD CL, 0x7F (sets OF); SAHF (the others of programs); JMP; PUSH rAX; POPF
_FAST_FLAGS: Final = "", _FLAGS[1], bytes.fromhex("f6c404 7510 89c1 c1e90b 80e101 88c4 80c17f 9e eb02") + _FLAGS[2]
_X86_64: Final = Saving(
    numbers=_X64, volatile=some("rax rcx rdx rsi rdi r8 r9 r10 r11"), word=8, below=128, special=(_FAST_FLAGS,),
    move=lambda n: bytes.fromhex("488da424") + n.to_bytes(4, "little", signed=True),  # LEA RSP, [RSP+n]
    store=partial(_x64_access, 0x89), load=partial(_x64_access, 0x8B), call=_x64_call,
    begin=_x64_begin, returns=b"\xc3", lock=x86_lock(b"\x48\xb8", 8), patient=x64_patient)
_I386: Final = Saving(
    numbers=_X86, volatile=some("eax ecx edx"), word=4, special=(_FAST_FLAGS,),
    move=lambda n: bytes.fromhex("8da424") + n.to_bytes(4, "little", signed=True),
    store=partial(_x86_access, 0x89), load=partial(_x86_access, 0x8B), call=_x86_call, lock=x86_lock(b"\xb8", 4),
    patient=x86_patient)

# --- Arm: the Architecture Reference Manuals; AAPCS, AAPCS64


def _a64_constant(register: int, value: int) -> list[int]:
    """MOVZ, then MOVK for each 16 bits more"""
    return [(0xF2800000 if n else 0xD2800000) | n << 21 | (value >> 16 * n & 0xFFFF) << 5 | register for n in range(4)]


def _a64_begin(environment: int) -> bytes:
    return words("little", *_a64_constant(0, environment), 0x910003E1)  # MOV x1, SP


def _a64_lock(at: int) -> tuple[bytes, bytes]:
    """MOV x0, at; MOV w1, #1; LDAXR w2, [x0]; CBNZ w2, -4; STXR w3, w1, [x0]; CBNZ w3, -12, and STLR wzr, [x0]"""
    word = _a64_constant(0, at)
    return (words("little", *word, 0x52800021, 0x885FFC02, 0x35FFFFE2, 0x88037C01, 0x35FFFFA3),
            words("little", *word, 0x889FFC1F))


def _a64_patient(at: int) -> bytes:
    """MOV x0, at; MOV w1, #1; LDAXR w2, [x0]; CBNZ w2, +12; STXR w3, w1, [x0]; CBZ w3, +16; MOV x8, #124; SVC #0;
    B to the start"""
    word = _a64_constant(0, at)
    return words("little", *word, 0x52800021, 0x885FFC02, 0x35000062, 0x88037C01, 0x34000083, 0xD2800F88, 0xD4000001,
                 0x17FFFFF5)


_ARM64: Final = Saving(
    numbers=numbered(" ".join(f"x{n}" for n in range(31))), volatile=some(" ".join(f"x{n}" for n in (*range(19), 30))),
    word=8, special=(("nzcv", words("little", 0xD53B4200), words("little", 0xD51B4200)),),  # MRS, MSR x0, NZCV
    move=lambda n: words("little", (0xD10003FF if n < 0 else 0x910003FF) | abs(n) << 10),  # SUB, ADD SP, SP, #n
    store=lambda r, at: words("little", 0xF9000000 | at // 8 << 10 | 31 << 5 | r),
    load=lambda r, at: words("little", 0xF9400000 | at // 8 << 10 | 31 << 5 | r),
    begin=_a64_begin, returns=words("little", 0xD65F03C0), lock=_a64_lock, patient=_a64_patient,
    call=lambda environment, entry: _a64_begin(environment) + words("little", *_a64_constant(16, entry),
                                                                    0xD63F0200))  # BLR x16


def _a32_constant(register: int, value: int) -> list[int]:
    """MOVW, MOVT"""
    return [opcode | (half >> 12) << 16 | register << 12 | half & 0xFFF
            for opcode, half in ((0xE3000000, value & 0xFFFF), (0xE3400000, value >> 16))]


def _a32_lock(at: int) -> tuple[bytes, bytes]:
    """MOV r0, at; MOV r1, #1; LDREX r2, [r0]; CMP r2, #0; BNE -8; STREX r3, r1, [r0]; CMP r3, #0; BNE -20; DMB ISH,
    and MOV r1, #0; DMB ISH; STR r1, [r0]"""
    word = _a32_constant(0, at)
    return (words("little", *word, 0xE3A01001, 0xE1902F9F, 0xE3520000, 0x1AFFFFFC, 0xE1803F91, 0xE3530000, 0x1AFFFFF9,
                  0xF57FF05B),
            words("little", *word, 0xE3A01000, 0xF57FF05B, 0xE5801000))


_ARM: Final = Saving(
    numbers=numbered("r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 - lr"), volatile=some("r0 r1 r2 r3 r12 lr"), word=4,
    special=(("", words("little", 0xE10F0000), words("little", 0xE12CF000)),),  # MRS r0, CPSR; MSR CPSR_fs, r0
    move=lambda n: words("little", (0xE24DD000 if n < 0 else 0xE28DD000) | abs(n)),  # SUB, ADD sp, sp, #n: n <= 255
    store=lambda r, at: words("little", 0xE58D0000 | r << 12 | at),
    load=lambda r, at: words("little", 0xE59D0000 | r << 12 | at),
    call=lambda environment, entry: words("little", *_a32_constant(0, environment), 0xE1A0100D,  # MOV r1, sp
                                          *_a32_constant(12, entry), 0xE12FFF3C),  # BLX r12
    lock=_a32_lock)

# --- RISC-V: the unprivileged manual, its ABI; LoongArch: Reference Manual volume 1, its ABI

_RISCV_NAMES: Final = ("zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 "
                       "t3 t4 t5 t6")


def _riscv_constant(register: int, value: int, bits: int) -> list[int]:
    """ADDI, then SLLI and ADDI for each eleven bits more: all of them positive"""
    steps = range((bits - 1) // 11 * 11, -1, -11)
    return [word for n, at in enumerate(steps)
            for word in ([register << 15 | 11 << 20 | 0x1013 | register << 7] if n else [])
            + [(value >> at & 0x7FF) << 20 | (register if n else 0) << 15 | 0x13 | register << 7]]


def _riscv(bits: int) -> Saving:
    width = 3 if bits == 64 else 2

    def begin(environment: int) -> bytes:
        return words("little", *_riscv_constant(10, environment, bits), 2 << 15 | 11 << 7 | 0x13)  # MV a1, sp

    return Saving(
        numbers=numbered(_RISCV_NAMES), volatile=some("ra t0 t1 t2 a0 a1 a2 a3 a4 a5 a6 a7 t3 t4 t5 t6"),
        word=bits // 8, scratch=5, move=lambda n: words("little", (n & 0xFFF) << 20 | 2 << 15 | 2 << 7 | 0x13),
        store=lambda r, at: words("little", at >> 5 << 25 | r << 20 | 2 << 15 | width << 12 | (at & 31) << 7 | 0x23),
        load=lambda r, at: words("little", at << 20 | 2 << 15 | width << 12 | r << 7 | 3),
        begin=begin, returns=words("little", 0x8067),
        call=lambda environment, entry: begin(environment) + words(
            "little", *_riscv_constant(5, entry, bits), 5 << 15 | 1 << 7 | 0x67),  # JALR ra, t0
        # LI t1, 1; AMOSWAP.W.AQ t1, t1, (t0); BNEZ t1, -4, and AMOSWAP.W.RL zero, zero, (t0)
        lock=lambda at: (words("little", *_riscv_constant(5, at, bits), 0x00100313, 0x0C62A32F, 0xFE031EE3),
                         words("little", *_riscv_constant(5, at, bits), 0x0A02A02F)))


def _la_constant(register: int, value: int) -> list[int]:
    """LU12I.W, ORI, LU32I.D, LU52I.D"""
    return [0x14000000 | (value >> 12 & 0xFFFFF) << 5 | register,
            0x03800000 | (value & 0xFFF) << 10 | register << 5 | register,
            0x16000000 | (value >> 32 & 0xFFFFF) << 5 | register,
            0x03000000 | (value >> 52 & 0xFFF) << 10 | register << 5 | register]


def _la_begin(environment: int) -> bytes:
    return words("little", *_la_constant(4, environment), 0x00150065)  # OR a1, sp, zero


_LOONGARCH: Final = Saving(
    numbers=numbered(" ".join(f"r{n}" for n in range(32))),
    volatile=some(" ".join(f"r{n}" for n in (1, *range(4, 21)))), word=8, scratch=12,
    move=lambda n: words("little", 0x02C00063 | (n & 0xFFF) << 10),  # ADDI.D sp, sp, n
    store=lambda r, at: words("little", 0x29C00060 | at << 10 | r),
    load=lambda r, at: words("little", 0x28C00060 | at << 10 | r),
    begin=_la_begin, returns=words("little", 0x4C000020),
    call=lambda environment, entry: _la_begin(environment) + words("little", *_la_constant(12, entry),
                                                                   0x4C000181),  # JIRL ra, t0, 0
    # ORI t1, zero, 1; AMSWAP_DB.W t2, t1, t0; BNEZ t2, -4, and AMSWAP_DB.W t2, zero, t0
    lock=lambda at: (words("little", *_la_constant(12, at), 0x0380040D, 0x3869358E, 0x47FFFDDF),
                     words("little", *_la_constant(12, at), 0x3869018E)))

# --- MIPS: Architecture For Programmers volume II-A; the o32 and n64 ABIs

_O32: Final = "zero at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7 s0 s1 s2 s3 s4 s5 s6 s7 t8 t9 k0 k1 gp sp fp ra"
_N64: Final = _O32.replace("t0 t1 t2 t3 t4 t5 t6 t7", "a4 a5 a6 a7 t0 t1 t2 t3")


def _mips_constant(register: int, value: int, bits: int) -> list[int]:
    """LUI, ORI, then DSLL by 16 and ORI"""
    top = [0x3C000000 | register << 16 | value >> bits - 16 & 0xFFFF]
    rest = [value >> at & 0xFFFF for at in range(bits - 32, -1, -16)]
    code = top
    for n, half in enumerate(rest):
        code = code + ([register << 16 | register << 11 | 16 << 6 | 0x38] if n else [])
        code = code + [0x34000000 | register << 21 | register << 16 | half]
    return code


def _mips(order: str, bits: int, release6: bool) -> Saving:
    names = _N64 if bits == 64 else _O32
    access = (0xFC000000, 0xDC000000) if bits == 64 else (0xAC000000, 0x8C000000)
    add = 0x67BD0000 if bits == 64 else 0x27BD0000  # (D)ADDIU sp, sp, n
    linked, conditional = (0x7D090036, 0x7D090026) if release6 else (0xC1090000, 0xE1090000)

    def lock(at: int) -> tuple[bytes, bytes]:
        """LL t1, (t0); BNEZ t1, -4; ORI t1, zero, 1; SC t1, (t0); BEQZ t1, -16; NOP; SYNC, and SYNC; SW zero, (t0)"""
        word = _mips_constant(8, at, bits)
        return (words(order, *word, linked, 0x1520FFFE, 0x34090001, conditional, 0x1120FFFB, 0, 0xF),
                words(order, *word, 0xF, 0xAD000000))

    moves = (("hi", 0x4010, 0x01000011), ("lo", 0x4012, 0x01000013))  # MFHI, MTHI t0 (n64: a4); MFLO, MTLO
    return Saving(
        numbers=numbered(names), volatile=some("at v0 v1 a0 a1 a2 a3 t0 t1 t2 t3 t8 t9 gp ra "
                                               + ("a4 a5 a6 a7" if bits == 64 else "t4 t5 t6 t7")),
        word=bits // 8, area=16, scratch=8, move=lambda n: words(order, add | n & 0xFFFF),
        store=lambda r, at: words(order, access[0] | 29 << 21 | r << 16 | at),
        load=lambda r, at: words(order, access[1] | 29 << 21 | r << 16 | at),
        special=tuple((name, words(order, read), words(order, write)) for name, read, write in moves
                      if not release6),
        call=lambda environment, entry: words(
            order, *_mips_constant(4, environment, bits), *_mips_constant(25, entry, bits),
            0x0320F809, 0x03A02825),  # JALR t9; OR a1, sp, zero
        lock=lock)

# --- Power ISA; the 32-bit ABI, ELFv1, ELFv2


def _ppc_constant(register: int, value: int, bits: int) -> list[int]:
    """LIS, ORI, then SLDI by 32, ORIS, ORI"""
    def two(first: int, at: int) -> list[int]:
        return [first | value >> at + 16 & 0xFFFF, 0x60000000 | register << 21 | register << 16 | value >> at & 0xFFFF]
    lis, oris = 0x3C000000 | register << 21, 0x64000000 | register << 21 | register << 16
    if bits == 32:
        return two(lis, 0)
    return [*two(lis, 32), 0x780007C6 | register << 21 | register << 16, *two(oris, 0)]


def _ppc(order: str, bits: int) -> Saving:
    access = (0xF8000000, 0xE8000000) if bits == 64 else (0x90000000, 0x80000000)
    # MFCR, MTCRF; MFLR, MTLR; MFCTR, MTCTR; MFXER, MTXER: all r0
    moves = (("cr", 0x7C000026, 0x7C0FF120), ("lr", 0x7C0802A6, 0x7C0803A6), ("ctr", 0x7C0902A6, 0x7C0903A6),
             ("", 0x7C0102A6, 0x7C0103A6))
    return Saving(
        numbers=numbered(" ".join(f"r{n}" for n in range(32))),
        volatile=some(" ".join(f"r{n}" for n in (0, *range(2, 13)))), word=bits // 8, area=48,  # r2: TOC
        below=288 if bits == 64 else 0, move=lambda n: words(order, 0x38210000 | n & 0xFFFF),  # ADDI r1, r1, n
        store=lambda r, at: words(order, access[0] | r << 21 | 1 << 16 | at),
        load=lambda r, at: words(order, access[1] | r << 21 | 1 << 16 | at),
        special=tuple((name, words(order, read), words(order, write)) for name, read, write in moves),
        call=lambda environment, entry: words(
            order, *_ppc_constant(3, environment, bits), 0x7C240B78, *_ppc_constant(12, entry, bits),  # MR r4, r1
            0x7D8903A6, 0x4E800421),  # MTCTR r12; BCTRL
        # LI r5, 1; LWARX r4, 0, r3; CMPWI r4, 0; BNE -8; STWCX. r5, 0, r3; BNE -16; ISYNC, and
        # LI r5, 0; LWSYNC; STW r5, 0(r3)
        lock=lambda at: (words(order, *_ppc_constant(3, at, bits), 0x38A00001, 0x7C801828, 0x2C040000, 0x4082FFF8,
                               0x7CA0192D, 0x4082FFF0, 0x4C00012C),
                         words(order, *_ppc_constant(3, at, bits), 0x38A00000, 0x7C2004AC, 0x90A30000)))

# --- z/Architecture Principles of Operation; its ELF ABI


def _s390x_access(opcode: int, register: int, offset: int) -> bytes:
    return bytes([0xE3, register << 4, 0xF0 | offset >> 8 & 15, offset & 255, offset >> 12 & 255, opcode])


def _s390x_constant(register: int, value: int) -> bytes:
    """LLIHF, IILF: neither changes the condition code"""
    return (bytes([0xC0, register << 4 | 14]) + (value >> 32).to_bytes(4, "big")
            + bytes([0xC0, register << 4 | 9]) + (value & 0xFFFF_FFFF).to_bytes(4, "big"))


_S390X: Final = Saving(
    numbers=numbered(" ".join(f"r{n}" for n in range(16))), volatile=some("r0 r1 r2 r3 r4 r5 r14"), word=8, area=160,
    special=(("", bytes.fromhex("b2220000"), bytes.fromhex("0400")),),  # IPM, SPM r0
    move=lambda n: _s390x_access(0x71, 15, n & 0xFFFFF), store=partial(_s390x_access, 0x24),  # LAY; STG
    load=partial(_s390x_access, 0x04),
    call=lambda environment, entry: (_s390x_constant(2, environment) + bytes.fromhex("b904003f")  # LGR r3, r15
                                     + _s390x_constant(1, entry) + bytes.fromhex("0de1")),  # BASR r14, r1
    # LHI r2, 1; LHI r0, 0; CS r0, r2, 0(r1); BRC 7, -8, and LHI r0, 0; BCR 14, 0; ST r0, 0(r1)
    lock=lambda at: (_s390x_constant(1, at) + bytes.fromhex("a7280001 a7080000 ba021000 a774fffc"),
                     _s390x_constant(1, at) + bytes.fromhex("a7080000 07e0 50001000")))

#: architecture -> how its registers are saved
SAVINGS: Final[Mapping[str, Saving]] = {
    "x86_64": _X86_64, "i386": _I386, "arm64": _ARM64, "arm64be": _ARM64, "arm": _ARM, "armeb": _ARM,
    "riscv32": _riscv(32), "riscv64": _riscv(64), "loongarch64": _LOONGARCH, "s390x": _S390X,
    "mips": _mips("big", 32, False), "mipsel": _mips("little", 32, False),
    "mips64": _mips("big", 64, False), "mips64el": _mips("little", 64, False),
    "mips32r6": _mips("big", 32, True), "mips32r6el": _mips("little", 32, True),
    "mips64r6": _mips("big", 64, True), "mips64r6el": _mips("little", 64, True),
    "ppc": _ppc("big", 32), "ppc64": _ppc("big", 64), "ppc64le": _ppc("little", 64)}


#: the same in a kernel: no interrupt comes between, so no other task comes to the same program meanwhile
IN_KERNELS: Final[Mapping[str, Saving]] = {
    # CLI after PUSHF; POPF puts the flag back
    "x86_64": evolve(_X86_64, patient=None, special=(("", _FLAGS[1] + b"\xfa", _FLAGS[2]),)),
    # MRS x0, DAIF; MSR DAIFSet, #2 (I), and MSR DAIF, x0
    "arm64": evolve(_ARM64, patient=None, special=(*_ARM64.special, ("", words("little", 0xD53B4220, 0xD50342DF),
                                                                        words("little", 0xD51B4220))))}


def saving_of(arch: Arch, kernel: bool = False) -> Saving | None:
    """None where nobody has said how."""
    return (IN_KERNELS if kernel else SAVINGS).get(arch.name)
