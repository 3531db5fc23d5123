"""What a guest starts with, read by an instruction of its own: the unit is enabled, and set as its ABI says a process
finds it."""

from __future__ import annotations

import pytest
from arches import RUNNABLE
from attrs import frozen

from kprobes import UnicornMachine

pytestmark = pytest.mark.quick


@frozen
class Start:
    """What a function that reads a control register returns. code: its words, the highest byte first. little: how they
    lie in memory. bits: those that the ABI speaks of. value: of them. source: who says so.
    """

    what: str
    code: str
    source: str
    little: int = 0  # bytes of a unit that is stored lowest byte first
    bits: int = 0xFFFF_FFFF
    value: int = 0


SYSV = "System V ABI, process initialization"
_AMD64, _I386 = ("x86-64 psABI, 3.4.1 Initial stack and register state",
                 "i386 psABI, 2.3.1 Initial stack and register state")
_X86 = ("d97c24f8 0fb74424f8 c3", "0fae5c24f8 8b4424f8 c3")  # fnstcw [sp - 8]; movzx eax; ret; and stmxcsr, mov
# fnstenv [sp - 32]; movzx eax, word [sp - 24]; ret: all empty. pushf; pop eax; ret: direction, trap, alignment check
_TAGS, _FLAGS = ("d97424e0 0fb74424e8 c3", "9c 58 c3")
_A64 = [Start("fpcr", "d53b4400 d65f03c0", "AAPCS64, 6.1.3; Linux: start_thread clears it", 4),
        Start("fpsr", "d53b4420 d65f03c0", "AAPCS64, 6.1.3; Linux: start_thread clears it", 4)]
_A32 = [Start("fpscr", "eef10a10 e12fff1e", "AAPCS32, 6.1.2.1; Linux: a new VFP state is zero", 4)]
_RISCV = [Start("fcsr", "00302573 00008067", "RISC-V psABI, floating-point registers; Linux: FS is Initial, fcsr 0", 4)]
_NAN = 0xFFF3_FFFF  # ABS2008 and NAN2008 are the CPU's, or the program's ELF header's
# cfc1 v0, fcr31; jr ra, and JALR as release 6 has it
_CFC1 = "4442f800 03e00008 00000000", "4442f800 03e00009 00000000"
_MIPS, _MIPS6 = ([Start("fcsr", code, f"MIPS psABI, {SYSV}", bits=_NAN)] for code in _CFC1)
_MIPSEL, _MIPS6EL = ([Start("fcsr", code, f"MIPS psABI, {SYSV}", 4, _NAN)] for code in _CFC1)
_PPC = "fc00048e d801fff8 8061fffc 4e800020"  # mffs f0; stfd; lwz of its lower half; blr
_POWER = [Start("fpscr", _PPC, "PowerPC ELF ABI, FPSCR at process entry")]
# st fsr, [sp - 8]; ld; retl. Not its version
_SPARC = [Start("fsr", "c12bbff8 d003bff8 81c3e008 01000000", f"SPARC Compliance Definition, {SYSV}", bits=0xFFF1_FFFF)]
_SPARC9 = [Start("fprs", "91418000 81c3e008 01000000", "SPARC Compliance Definition 2.4: FEF is set", bits=4, value=4),
           Start("fsr", "c12ba7f7 d003a7f7 81c3e008 01000000", f"SPARC Compliance Definition, {SYSV}", bits=0xFFF1_FFFF)]
STARTS = {
    "x86_64": [Start("x87 control word", _X86[0], _AMD64, value=0x37F), Start("mxcsr", _X86[1], _AMD64, value=0x1F80),
               Start("x87 tags", _TAGS, _AMD64, value=0xFFFF), Start("flags", _FLAGS, _AMD64, bits=0x40500)],
    "i386": [Start("x87 control word", _X86[0], _I386, value=0x37F), Start("mxcsr", _X86[1], _I386, value=0x1F80),
             Start("x87 tags", _TAGS, _I386, value=0xFFFF), Start("flags", _FLAGS, _I386, bits=0x40500)],
    **dict.fromkeys(("arm64", "arm64be"), _A64), **dict.fromkeys(("arm", "armeb"), _A32),
    "cortexm": [Start("fpscr", "eef1 0a10 4770", "AAPCS32, 6.1.2.1; ARMv7-M: FPDSCR resets to 0", 2)],
    **dict.fromkeys(("riscv32", "riscv64"), _RISCV),
    **dict.fromkeys(("mips", "mips64"), _MIPS),
    **dict.fromkeys(("mipsel", "mips64el"), _MIPSEL),
    **dict.fromkeys(("mips32r6", "mips64r6"), _MIPS6),
    **dict.fromkeys(("mips32r6el", "mips64r6el"), _MIPS6EL),
    **dict.fromkeys(("ppc", "ppc64"), _POWER),
    "ppc64le": [Start("fpscr", _PPC.replace("8061fffc", "8061fff8"), "ELFv2, FPSCR at process entry", 4)],
    "s390x": [Start("fpc", "b38c0020 07fe", f"s390x ELF ABI supplement, {SYSV}")],
    "sparc": _SPARC, "sparc64": _SPARC9,
    "m68k": [Start("fpcr", "f200b000 4e75", f"M68000 psABI, {SYSV}"),
             Start("fpsr", "f200a800 4e75", f"M68000 psABI, {SYSV}")],
    "tricore": [Start("psw", "4d40e02f 0090", "TriCore EABI, 2.2.1: status bits are clear, RM is to nearest",
                      bits=0xFF00_0000)],
}


@frozen
class Rounding:
    """Where a guest's rounding mode is. shift: of its bits in the register. modes: to nearest, towards zero, up, down.
    code: of f(p) that divides p[0] by p[1] into p[2], words of single precision; little: as of `Start`."""

    register: str
    shift: int
    modes: tuple[int, int, int, int]
    code: str
    little: int = 0


_DIVIDE = {
    "x86": "f30f1007 f30f5e4704 f30f114708 c3", "i386": "8b442404 f30f1000 f30f5e4004 f30f114008 c3",
    "x87": "d907 d87704 d95f08 c3", "i387": "8b442404 d900 d87004 d95808 c3",
    "arm64": "bd400000 bd400401 1e211800 bd000800 d65f03c0", "arm": "ed900a00 edd00a01 ee800a20 ed800a02 e12fff1e",
    "thumb": "ed90 0a00 edd0 0a01 ee80 0a20 ed80 0a02 4770", "riscv": "00052507 00452587 18b57553 00a52427 00008067",
    "mips": "c4800000 c4820004 46020003 e4800008 03e00008 00000000", "s390x": "78002000 ed002004000d 70002008 07fe",
    "mips6": "c4800000 c4820004 46020003 e4800008 03e00009 00000000", "ppc": "c0230000 c0430004 ec211024 d0230008 4e800020",
    "sparc": "c1020000 c3022004 81a009a1 c1222008 81c3e008 01000000", "m68k": "206f0004 f2104400 f22844200004 f22864000008 4e75",
    "tricore": "6044 4440 4441 4b105120 7442 0090",
}
_UP2, _UP3, _X86_MODES, _ARM_MODES = (0, 1, 2, 3), (0, 1, 3, 2), (0, 3, 2, 1), (0, 3, 1, 2)
ROUNDINGS = {
    "x86_64": (Rounding("mxcsr", 13, _X86_MODES, _DIVIDE["x86"]), Rounding("fpcw", 10, _X86_MODES, _DIVIDE["x87"])),
    "i386": (Rounding("mxcsr", 13, _X86_MODES, _DIVIDE["i386"]), Rounding("fpcw", 10, _X86_MODES, _DIVIDE["i387"])),
    **dict.fromkeys(("arm64", "arm64be"), (Rounding("fpcr", 22, _ARM_MODES, _DIVIDE["arm64"], 4),)),
    **dict.fromkeys(("arm", "armeb"), (Rounding("fpscr", 22, _ARM_MODES, _DIVIDE["arm"], 4),)),
    "cortexm": (Rounding("fpscr", 22, _ARM_MODES, _DIVIDE["thumb"], 2),),
    **dict.fromkeys(("riscv32", "riscv64"), (Rounding("fcsr", 5, _UP3, _DIVIDE["riscv"], 4),
                                             Rounding("frm", 0, _UP3, _DIVIDE["riscv"], 4))),
    **dict.fromkeys(("mips", "mips64"), (Rounding("fcsr", 0, _UP2, _DIVIDE["mips"]),)),
    **dict.fromkeys(("mipsel", "mips64el"), (Rounding("fcsr", 0, _UP2, _DIVIDE["mips"], 4),)),
    **dict.fromkeys(("mips32r6", "mips64r6"), (Rounding("fcsr", 0, _UP2, _DIVIDE["mips6"]),)),
    **dict.fromkeys(("mips32r6el", "mips64r6el"), (Rounding("fcsr", 0, _UP2, _DIVIDE["mips6"], 4),)),
    **dict.fromkeys(("ppc", "ppc64"), (Rounding("fpscr", 0, _UP2, _DIVIDE["ppc"]),)),
    "ppc64le": (Rounding("fpscr", 0, _UP2, _DIVIDE["ppc"], 4),),
    "s390x": (Rounding("fpc", 0, _UP2, _DIVIDE["s390x"]),),
    **dict.fromkeys(("sparc", "sparc64"), (Rounding("fsr", 30, _UP2, _DIVIDE["sparc"]),)),
    "m68k": (Rounding("fpcr", 4, _UP3, _DIVIDE["m68k"]),),
    "tricore": (Rounding("psw", 24, _ARM_MODES, _DIVIDE["tricore"]),),
}


def laid(start: Start | Rounding) -> bytes:
    """The code as it lies in memory."""
    code = bytes.fromhex(start.code)
    unit = start.little
    return code if not unit else b"".join(code[at : at + unit][::-1] for at in range(0, len(code), unit))


def test_every_guest_has_a_row() -> None:
    assert set(STARTS) == set(RUNNABLE)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_control_registers_are_as_a_process_finds_them(arch: str) -> None:
    for start in STARTS[arch]:
        m = UnicornMachine.from_code(laid(start), arch=arch, base=0x10000)
        for _ in range(2):  # and a call that has come back has not changed it
            assert m.call(0x10000 | (arch == "cortexm")) & start.bits == start.value, (start.what, start.source)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_what_was_read_may_be_written_back(arch: str) -> None:
    """Every register, and the guest reads what it read before."""
    for start in STARTS[arch]:
        m = UnicornMachine.from_code(laid(start), arch=arch, base=0x10000)
        for name in m.arch.regs.names:
            if name != m.arch.regs.pc:
                m.regs[name] = m.regs[name]
        assert m.call(0x10000 | (arch == "cortexm")) & start.bits == start.value, (start.what, start.source)


#: 1/3 and -1/3 of single precision: to nearest, towards zero, up, down
THIRDS = [(0x3EAAAAAB, 0xBEAAAAAB), (0x3EAAAAAA, 0xBEAAAAAA), (0x3EAAAAAB, 0xBEAAAAAA), (0x3EAAAAAA, 0xBEAAAAAB)]
ONE, MINUS_ONE, THREE = 0x3F800000, 0xBF800000, 0x40400000


def divided(m: UnicornMachine, numbers: int) -> tuple[int, int]:
    """1/3 and -1/3, as the guest makes them."""
    results = []
    for dividend in (ONE, MINUS_ONE):
        m.write(numbers, b"".join(n.to_bytes(4, m.arch.order.value) for n in (dividend, THREE, 0)))
        m.call(0x10000 | (m.arch.name == "cortexm"), numbers)
        results.append(int.from_bytes(m.read(numbers + 8, 4), m.arch.order.value))
    return results[0], results[1]


@pytest.mark.parametrize("arch", sorted({*RUNNABLE} - {"tricore"}))
def test_a_rounding_mode_that_is_written_is_obeyed(arch: str) -> None:
    """Each, also after another, by the guest's own arithmetic; and a snapshot puts it back."""
    for rounding in ROUNDINGS[arch]:
        m = UnicornMachine.from_code(laid(rounding), arch=arch, base=0x10000)
        numbers, kept = m.alloc(16), m.regs[rounding.register] & ~(3 << rounding.shift)
        for mode in (0, 1, 2, 3, 1, 0, 3, 2):
            m.regs[rounding.register] = kept | rounding.modes[mode] << rounding.shift
            assert divided(m, numbers) == THIRDS[mode], (rounding.register, mode)
            assert m.regs[rounding.register] >> rounding.shift & 3 == rounding.modes[mode]
        saved = m.snapshot()
        m.regs[rounding.register] = kept
        assert divided(m, numbers) == THIRDS[0]
        m.restore(saved)
        assert divided(m, numbers) == THIRDS[2]


@pytest.mark.parametrize("mode", range(4))
def test_tricore_rounds_to_nearest(mode: int) -> None:
    """The engine hears neither the guest's own MTCR nor ours: it takes the mode's two bits for a byte, unshifted."""
    rounding = ROUNDINGS["tricore"][0]
    for own in ("", "cd45e00f"):  # mtcr psw, d5
        m = UnicornMachine.from_code(bytes.fromhex(own + rounding.code), arch="tricore", base=0x10000)
        numbers, psw = m.alloc(16), m.regs["psw"] | rounding.modes[mode] << rounding.shift
        m.regs["psw"] = psw
        m.write(numbers, ONE.to_bytes(4, "little") + THREE.to_bytes(4, "little"))
        m.call(0x10000, numbers, psw)
        assert m.read(numbers + 8, 4) == THIRDS[0][0].to_bytes(4, "little"), "the engine is mended: take this test out"
