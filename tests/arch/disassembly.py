"""Disassembly for the tests, by Capstone where it knows the ISA; only to see that the text of a case is of its
bytes."""

from __future__ import annotations

import re

import capstone as cs

from kprobes import KprobeError
from kprobes.machine.unicorn.assembler import assemble

BIG, THUMB = cs.CS_MODE_BIG_ENDIAN, cs.CS_MODE_THUMB
MODES: dict[tuple[str, int], tuple[int, int]] = {  # (architecture, mode bits) -> Capstone's kind and mode
    ("x86_64", 0): (cs.CS_ARCH_X86, cs.CS_MODE_64),
    ("i386", 0): (cs.CS_ARCH_X86, cs.CS_MODE_32),
    ("arm", 0): (cs.CS_ARCH_ARM, cs.CS_MODE_V8),
    ("arm", 1): (cs.CS_ARCH_ARM, cs.CS_MODE_V8 | THUMB),
    ("arm64", 0): (cs.CS_ARCH_ARM64, cs.CS_MODE_ARM),
    ("arm64be", 0): (cs.CS_ARCH_ARM64, cs.CS_MODE_ARM),
    ("mips", 0): (cs.CS_ARCH_MIPS, cs.CS_MODE_MIPS32 | BIG),
    ("mipsel", 0): (cs.CS_ARCH_MIPS, cs.CS_MODE_MIPS32),
    ("mips64", 0): (cs.CS_ARCH_MIPS, cs.CS_MODE_MIPS64 | BIG),
    ("mips64el", 0): (cs.CS_ARCH_MIPS, cs.CS_MODE_MIPS64),
    ("ppc", 0): (cs.CS_ARCH_PPC, cs.CS_MODE_32 | BIG),
    ("ppc64", 0): (cs.CS_ARCH_PPC, cs.CS_MODE_64 | BIG),
    ("ppc64le", 0): (cs.CS_ARCH_PPC, cs.CS_MODE_64),
    ("riscv32", 0): (cs.CS_ARCH_RISCV, cs.CS_MODE_RISCV32 | cs.CS_MODE_RISCVC),
    ("riscv64", 0): (cs.CS_ARCH_RISCV, cs.CS_MODE_RISCV64 | cs.CS_MODE_RISCVC),
    ("s390x", 0): (cs.CS_ARCH_SYSZ, BIG),
    ("sparc", 0): (cs.CS_ARCH_SPARC, BIG),
    ("sparc64", 0): (cs.CS_ARCH_SPARC, BIG | cs.CS_MODE_V9),
    ("tricore", 0): (cs.CS_ARCH_TRICORE, cs.CS_MODE_TRICORE_162),
    ("m68k", 0): (cs.CS_ARCH_M68K, BIG | cs.CS_MODE_M68K_040),
}


def mnemonic(arch: str, mode: int, code: bytes, address: int) -> str | None:
    """Capstone's mnemonic for the whole of `code`; None where it does not know."""
    if (arch, mode) not in MODES:
        return None
    insn = next(cs.Cs(*MODES[arch, mode]).disasm(code, address), None)
    return insn.mnemonic if insn is not None and insn.size == len(code) else None


def agrees(arch: str, asm: str, known: str, code: bytes, address: int) -> bool:
    """True where a case's text may be what Capstone calls `known`: a word of it, or of its family, or Keystone says
    so."""
    words = re.findall(r"[a-z][\w.]*", asm.lower())
    names = known.lower().split()
    if any(word.split(".")[0][:3] == name.split(".")[0][:3] for word in words for name in names):
        return True
    try:
        return assemble(asm.replace(".", hex(address), 1), arch, address).startswith(code)
    except KprobeError:
        return False
