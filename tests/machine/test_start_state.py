"""What a guest starts with, read by an instruction of its own: the unit is enabled, and set as its ABI says a process
finds it."""

from __future__ import annotations

from typing import Any

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
# not its version
_SPARC = [Start("fsr", "c12bbff8 d003bff8 81c3e008 01000000", f"SPARC Compliance Definition, {SYSV}", bits=0xFFF1_FFFF)]
STARTS = {
    "x86_64": [Start("x87 control word", _X86[0], _AMD64, value=0x37F), Start("mxcsr", _X86[1], _AMD64, value=0x1F80)],
    "i386": [Start("x87 control word", _X86[0], _I386, value=0x37F), Start("mxcsr", _X86[1], _I386, value=0x1F80)],
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
    **dict.fromkeys(("sparc", "sparc64"), _SPARC),
    "m68k": [Start("fpcr", "f200b000 4e75", f"M68000 psABI, {SYSV}"),
             Start("fpsr", "f200a800 4e75", f"M68000 psABI, {SYSV}")],
    "tricore": [Start("psw", "4d40e02f 0090", "TriCore EABI, 2.2.1: status bits are clear, RM is to nearest",
                      bits=0xFF00_0000)],
}


def laid(start: Start) -> bytes:
    """The code as it lies in memory."""
    code = bytes.fromhex(start.code)
    unit = start.little
    return code if not unit else b"".join(code[at : at + unit][::-1] for at in range(0, len(code), unit))


#: Where the unit is off, each with the reason
OFF = {"sparc64": "the engine starts it with floating point off in a mode that may not turn it on, and offers neither "
                  "PSTATE nor FPRS"}


def arches() -> list[Any]:
    """Every guest; those of OFF are to fail, and as soon as they do not this says so."""
    return [pytest.param(arch, marks=[pytest.mark.xfail(strict=True, reason=OFF[arch])] if arch in OFF else [])
            for arch in RUNNABLE]


def test_every_guest_has_a_row() -> None:
    assert set(STARTS) == set(RUNNABLE)


@pytest.mark.parametrize("arch", arches())
def test_control_registers_are_as_a_process_finds_them(arch: str) -> None:
    for start in STARTS[arch]:
        m = UnicornMachine.from_code(laid(start), arch=arch, base=0x10000)
        for _ in range(2):  # and a call that has come back has not changed it
            assert m.call(0x10000 | (arch == "cortexm")) & start.bits == start.value, (start.what, start.source)


@pytest.mark.parametrize("arch", arches())
def test_what_was_read_may_be_written_back(arch: str) -> None:
    """Every register, and the guest reads what it read before."""
    for start in STARTS[arch]:
        m = UnicornMachine.from_code(laid(start), arch=arch, base=0x10000)
        for name in m.arch.regs.names:
            if name != m.arch.regs.pc:
                m.regs[name] = m.regs[name]
        assert m.call(0x10000 | (arch == "cortexm")) & start.bits == start.value, (start.what, start.source)
