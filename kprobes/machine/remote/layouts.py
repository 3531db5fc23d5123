"""Register files of stubs that describe none, and what stubs call the architectures' registers.

Stubs number registers and send them in that order; most describe them by target.xml. QEMU does not for MIPS and SPARC:
their files are GDB's for these targets. Names are the architecture's own where nothing is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import frozen


@frozen
class Slot:
    """A register of the stub's: its number in p and P packets, and its size in bytes."""

    name: str
    number: int
    size: int


@frozen
class Part:
    """Where an architecture's register is found: `width` bits of the stub's register `name`, from bit `low` on."""

    name: str
    low: int = 0
    width: int = 0  #: 0: all above `low`
    place: int = 0  #: bit of the architecture's register where they stand


def _slots(word: int, *groups: str) -> tuple[Slot, ...]:
    """Registers in order; each group is "SIZE names", a size of 0 being the word's."""
    out: list[Slot] = []
    for group in groups:
        size, *names = group.split()
        out += [Slot(name, len(out) + n, int(size) or word) for n, name in enumerate(names)]
    return tuple(out)


def _row(prefix: str, first: int, last: int, step: int = 1) -> str:
    return " ".join(f"{prefix}{n}" for n in range(first, last + 1, step))


def _mips(bits: int) -> tuple[Slot, ...]:
    temporaries = "a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7" if bits == 32 else "a0 a1 a2 a3 a4 a5 a6 a7 t0 t1 t2 t3"
    general = f"0 zero at v0 v1 {temporaries} {_row('s', 0, 7)} t8 t9 k0 k1 gp sp fp ra"
    return _slots(bits // 8, general, "0 status lo hi badvaddr cause pc", f"0 {_row('f', 0, 31)} fcsr fir")


_SPARC_GENERAL = f"0 {_row('g', 0, 7)} {_row('o', 0, 7)} {_row('l', 0, 7)} {_row('i', 0, 7)}"
_ALPHA = _slots(8, f"0 {_row('r', 0, 31)} {_row('f', 0, 30)} fpcr pc virtual unique")
#: PA-RISC's floating-point registers are two halves each; npc is the address behind pc's in its queue of instructions.
_PARISC = _slots(4, f"0 psw {_row('r', 1, 31)} sar iaoq_f iasq_f npc iasq_b eiem iir isr ior ipsw goto",
                 f"0 sr4 {_row('sr', 0, 3)} {_row('sr', 5, 7)} cr0 cr8 cr9 ccr cr12 cr13 {_row('cr', 24, 30)}",
                 "0 " + " ".join(f"fr{n} fr{n}r" for n in range(32)))
_SH = _slots(4, f"0 {_row('r', 0, 15)} pc pr gbr vbr mach macl sr fpul fpscr {_row('fr', 0, 15)} ssr spc")
SPARC32 = _slots(4, _SPARC_GENERAL, f"4 {_row('f', 0, 31)}", "4 y psr wim tbr pc npc fsr csr")
SPARC64 = _slots(8, _SPARC_GENERAL, f"4 {_row('f', 0, 31)}", f"8 {_row('f', 32, 62, 2)}", "8 pc npc state fsr fprs y")

#: architecture's name, or how it begins -> the register file where the stub describes none
FILES: dict[str, tuple[Slot, ...]] = {
    "mips64": _mips(64), "mips": _mips(32), "sparc64": SPARC64, "sparc": SPARC32, "alpha": _ALPHA, "parisc": _PARISC,
    "sh4": _SH,
}
_X86 = {"rflags": Part("eflags"), "fpcw": Part("fctrl"), "fpsw": Part("fstat"), "fptag": Part("ftag")}
_S390X = {"pc": Part("pswa"), **{f"a{n}": Part(f"acr{n}") for n in range(16)},
          **{f"v{n}_low": Part(f"v{n}l") for n in range(16)},
          **{f"v{n}_low": Part(f"v{n}", 0, 64) for n in range(16, 32)},
          **{f"f{n}": Part(f"v{n}", 64, 64) for n in range(16, 32)}}
_RISCV = {"s0": Part("fp"), **{f"f{n}": Part(name) for n, name in enumerate(
    [*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(2, 12)),
     "ft8", "ft9", "ft10", "ft11"])}}
_ARM64 = {"nzcv": Part("cpsr", 28, 4, 28), "tpidr_el0": Part("TPIDR_EL0"),
          **{f"v{n}": Part(f"z{n}", 0, 128) for n in range(32)}}
_PPC = {f"cr{n}": Part("cr", 28 - 4 * n, 4) for n in range(8)}
_M68K = {"a6": Part("fp"), "a7": Part("sp"), "ccr": Part("ps", 0, 5), "fpcr": Part("fpcontrol"),
         "fpsr": Part("fpstatus")}
#: architecture's name, or how it begins -> its register -> where the stub has it
PARTS: dict[str, Mapping[str, Part]] = {
    "x86_64": _X86, "i386": _X86, "s390x": _S390X, "riscv": _RISCV, "arm64": _ARM64, "ppc": _PPC, "m68k": _M68K,
    "loongarch": {"fcsr0": Part("fcsr")},
    "arm": {"tpidruro": Part("TPIDRURO")}, "cortexm": {}, "sparc64": {"ccr": Part("state", 32, 8)},
    "sparc": {"icc": Part("psr", 20, 4)},
    "parisc": {"pc": Part("iaoq_f", 2, 30, 2)},  # the low bits are the privilege level
}
#: architecture -> (the stub's register, bits that say: the next instruction does nothing)
NULLIFIED = {"parisc": ("psw", 1 << 21)}

#: registers of SPARC's stubs that say which window others are in: they are written first
WINDOW = frozenset({"psr", "state"})


def _reversed(data: bytes) -> bytes:
    return data[::-1]


#: architecture -> registers that QEMU's stub (10) does not take as it shows them -> how it does: it reads eight bytes
#: for four, in the host's order, the upper half of sixteen
TAKEN: dict[str, Mapping[str, Callable[[bytes], bytes]]] = {
    "arm64be": {"cpsr": lambda data: bytes(4) + data, "fpcr": _reversed, "fpsr": _reversed},
    "armeb": {f"d{n}": _reversed for n in range(32)},
    "s390x": {f"v{n}l": lambda data: bytes(8) + data for n in range(16)},
}


def _of(table: Mapping[str, object], arch: str) -> Iterator[str]:
    """Keys that fit an architecture, the longest first."""
    return (key for key in sorted(table, key=len, reverse=True) if arch.startswith(key))


def file_of(arch: str) -> tuple[Slot, ...]:
    """The register file of an architecture's stub that describes none; () where none is known."""
    return next((FILES[key] for key in _of(FILES, arch)), ())


def parts_of(arch: str, slots: Mapping[str, Slot]) -> Mapping[str, Part]:
    """What a stub with these registers calls an architecture's, where the names differ (arm64: only a CPU with SVE has
    z0, not v0)."""
    found = next((PARTS[key] for key in _of(PARTS, arch)), {})
    return {name: part for name, part in found.items() if part.name in slots or name not in slots}
