"""Run the programs on Unicorn alone, without probes: `python tests/programs/check_plain.py [arch | arch-O0 ...]`.

A developer's tool: it tells an engine that cannot run a program from a library that breaks it. Each test function of
each executable is called by the machine's calling convention, for every seed, and its result compared with
expected.json. engine_limits.json lists what this Unicorn cannot run, with the reason; an entry that is no longer true
is an error.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import unicorn as uc
from attrs import frozen
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const as a64
from unicorn import arm_const as a32
from unicorn import m68k_const as m68k
from unicorn import mips_const as mips
from unicorn import ppc_const as ppc
from unicorn import riscv_const as riscv
from unicorn import s390x_const as s390x
from unicorn import sparc_const as sparc
from unicorn import x86_const as x86

HERE = Path(__file__).resolve().parent
IMAGE, IMAGE_SIZE = 0x400000, 0x100000
EXIT, STACK, STACK_SIZE = 0x600000, 0x700000, 0x20000
TOP = STACK + STACK_SIZE - 0x400  # room above for argument save areas
TIMEOUT = 500_000  # microseconds; a call takes a thousandth of this
MIPS_STATUS = 1 << 29 | 1 << 26 | 0xE0  # FPU on, 64-bit FPU registers, 64-bit addressing
MIPS32_STATUS = 1 << 29
BIG, LITTLE = uc.UC_MODE_BIG_ENDIAN, uc.UC_MODE_LITTLE_ENDIAN


@frozen(kw_only=True)
class Guest:
    """One machine: how to open it, what to set before the first call, where argument, result and return address go.

    Attributes:
        argument: register of the first argument; None: on the stack. link: register of the return address; None: on the
            stack.
        link_offset: added to the return address in `link`. entry: register that has to hold the function's address.
        signed: 32-bit arguments are sign-extended, unsigned ones too. descriptors: a function's symbol is its
            descriptor.
        setup: writes the registers compiled code needs. exit_insn: fills the page that functions return to,
            where zeros would not do: CODE hooks do not reliably fire on an instruction the engine cannot decode.
    """

    arch: int
    mode: int
    model: int | None = None
    argument: int | None
    result: int
    sp: int
    link: int | None = None
    link_offset: int = 0
    entry: int | None = None
    signed: bool = False
    stack_bias: int = 0
    descriptors: bool = False
    virtual_tlb: bool = False
    setup: Callable[[uc.Uc], None] = lambda engine: None
    exit_insn: bytes = b""


def vfp(engine: uc.Uc) -> None:
    engine.reg_write(a32.UC_ARM_REG_C1_C0_2, engine.reg_read(a32.UC_ARM_REG_C1_C0_2) | 0xF << 20)
    engine.reg_write(a32.UC_ARM_REG_FPEXC, 1 << 30)


def or_into(register: int, bits: int) -> Callable[[uc.Uc], None]:
    def setup(engine: uc.Uc) -> None:
        engine.reg_write(register, engine.reg_read(register) | bits)

    return setup


def s390x_setup(engine: uc.Uc) -> None:
    engine.reg_write(s390x.UC_S390X_REG_PSWM, 0x180000000)  # else 24-bit addresses
    engine.reg_write(s390x.UC_S390X_REG_CR0, engine.reg_read(s390x.UC_S390X_REG_CR0) | 0x60000)


def run_compare(engine: uc.Uc) -> None:
    """Reading the condition codes before any instruction has set them crashes Unicorn."""
    engine.mem_write(EXIT, bytes.fromhex("80a00000 01000000 01000000"))  # cmp %g0, %g0; nop; nop
    engine.emu_start(EXIT, 0, count=1)


def sparc_setup(engine: uc.Uc) -> None:
    run_compare(engine)
    engine.reg_write(sparc.UC_SPARC_REG_PSR, 0x10C0)  # FPU and supervisor


def arm(mode: int, setup: Callable[[uc.Uc], None] = lambda engine: None, model: int | None = None) -> Guest:
    return Guest(arch=uc.UC_ARCH_ARM, mode=mode, model=model, argument=a32.UC_ARM_REG_R0, result=a32.UC_ARM_REG_R0,
                 sp=a32.UC_ARM_REG_SP, link=a32.UC_ARM_REG_LR, setup=setup,
                 link_offset=1 if mode & uc.UC_MODE_THUMB else 0)  # fmt: skip


def arm64(mode: int) -> Guest:
    return Guest(arch=uc.UC_ARCH_ARM64, mode=mode, argument=a64.UC_ARM64_REG_X0, result=a64.UC_ARM64_REG_X0,
                 sp=a64.UC_ARM64_REG_SP, link=a64.UC_ARM64_REG_LR)  # fmt: skip


def mips_guest(mode: int, model: int, status: int) -> Guest:
    # a long run of nops crashes the translator
    trap = bytes.fromhex("0000000c") if mode & BIG else bytes.fromhex("0c000000")
    return Guest(arch=uc.UC_ARCH_MIPS, mode=mode, model=model, argument=mips.UC_MIPS_REG_A0, result=mips.UC_MIPS_REG_V0,
                 sp=mips.UC_MIPS_REG_SP, link=mips.UC_MIPS_REG_RA, entry=mips.UC_MIPS_REG_T9, signed=True,
                 exit_insn=trap,
                 setup=or_into(mips.UC_MIPS_REG_CP0_STATUS, status))  # fmt: skip


def ppc_guest(mode: int, msr: int, *, descriptors: bool = False) -> Guest:
    wide = bool(mode & uc.UC_MODE_PPC64)
    return Guest(arch=uc.UC_ARCH_PPC, mode=mode | BIG, argument=ppc.UC_PPC_REG_3, result=ppc.UC_PPC_REG_3,
                 sp=ppc.UC_PPC_REG_1,
                 link=ppc.UC_PPC_REG_LR, entry=ppc.UC_PPC_REG_12, setup=or_into(ppc.UC_PPC_REG_MSR, msr),
                 virtual_tlb=wide,
                 descriptors=descriptors)  # fmt: skip


def riscv_guest(mode: int) -> Guest:
    return Guest(arch=uc.UC_ARCH_RISCV, mode=mode, argument=riscv.UC_RISCV_REG_A0, result=riscv.UC_RISCV_REG_A0,
                 sp=riscv.UC_RISCV_REG_SP, link=riscv.UC_RISCV_REG_RA, signed=True, exit_insn=b"\x01\x00",
                 setup=or_into(riscv.UC_RISCV_REG_MSTATUS, 3 << 13))  # fmt: skip


def sparc_guest(mode: int, setup: Callable[[uc.Uc], None], bias: int = 0) -> Guest:
    return Guest(arch=uc.UC_ARCH_SPARC, mode=mode | BIG, argument=sparc.UC_SPARC_REG_O0, result=sparc.UC_SPARC_REG_O0,
                 sp=sparc.UC_SPARC_REG_SP, link=sparc.UC_SPARC_REG_O7, link_offset=-8, setup=setup, stack_bias=bias,
                 exit_insn=bytes.fromhex("01000000"))  # fmt: skip


A, T, M64, P64 = uc.UC_MODE_ARM, uc.UC_MODE_THUMB, uc.UC_MODE_MIPS64, uc.UC_MODE_PPC64
FP_VEC = 1 << 13 | 1 << 25
FP_VEC_VSX = FP_VEC | 1 << 23
R6 = mips.UC_CPU_MIPS32_MIPS32R6_GENERIC
R2_64, R6_64 = mips.UC_CPU_MIPS64_MIPS64R2_GENERIC, mips.UC_CPU_MIPS64_I6400
MIPS_74K = mips.UC_CPU_MIPS32_74KF

GUESTS: dict[str, Guest] = {
    "x86_64": Guest(arch=uc.UC_ARCH_X86, mode=uc.UC_MODE_64, argument=x86.UC_X86_REG_RDI, result=x86.UC_X86_REG_RAX,
                    sp=x86.UC_X86_REG_RSP),
    "i386": Guest(arch=uc.UC_ARCH_X86, mode=uc.UC_MODE_32, argument=None, result=x86.UC_X86_REG_EAX,
                  sp=x86.UC_X86_REG_ESP),
    "arm": arm(A),
    "armhf": arm(A, vfp),
    "thumb": arm(T, vfp),
    "armeb": arm(A | uc.UC_MODE_ARMBE8),
    "armeb32": arm(A | BIG),
    "cortexm": arm(T | uc.UC_MODE_MCLASS),
    "arm64": arm64(A),
    "arm64be": arm64(A | BIG),
    "mips": mips_guest(uc.UC_MODE_MIPS32 | BIG, MIPS_74K, MIPS32_STATUS),
    "mipsel": mips_guest(uc.UC_MODE_MIPS32 | LITTLE, MIPS_74K, MIPS32_STATUS),
    "mips64": mips_guest(M64 | BIG, R2_64, MIPS_STATUS),
    "mips64el": mips_guest(M64 | LITTLE, R2_64, MIPS_STATUS),
    "mips32r6el": mips_guest(uc.UC_MODE_MIPS32 | LITTLE, R6, MIPS32_STATUS | 1 << 26),
    "mips64r6el": mips_guest(M64 | LITTLE, R6_64, MIPS_STATUS),
    "ppc": ppc_guest(uc.UC_MODE_PPC32, FP_VEC),
    "ppc64": ppc_guest(P64, FP_VEC_VSX),
    "ppc64le": ppc_guest(P64, FP_VEC_VSX | 1),
    "ppc64v1": ppc_guest(P64, FP_VEC_VSX, descriptors=True),
    "riscv32": riscv_guest(uc.UC_MODE_RISCV32),
    "riscv64": riscv_guest(uc.UC_MODE_RISCV64),
    "s390x": Guest(arch=uc.UC_ARCH_S390X, mode=BIG, argument=s390x.UC_S390X_REG_R2, result=s390x.UC_S390X_REG_R2,
                   sp=s390x.UC_S390X_REG_R15, link=s390x.UC_S390X_REG_R14, setup=s390x_setup, exit_insn=b"\x07\x00"),
    "sparc": sparc_guest(uc.UC_MODE_SPARC32, sparc_setup),
    "sparcw": sparc_guest(uc.UC_MODE_SPARC32, sparc_setup),
    "sparc64": sparc_guest(uc.UC_MODE_SPARC64, run_compare, bias=2047),
    "m68k": Guest(arch=uc.UC_ARCH_M68K, mode=BIG, model=3, argument=None, result=m68k.UC_M68K_REG_D0,
                  sp=m68k.UC_M68K_REG_A7),
}  # fmt: skip


class Runner:
    """A program in an engine of its own."""

    def __init__(self, path: Path) -> None:
        self.guest = GUESTS[path.stem.split("-")[0]]
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            self.segments = [(s["p_vaddr"], s.data()) for s in elf.iter_segments("PT_LOAD")]
            symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
            self.word = (">" if not elf.little_endian else "<") + ("Q" if elf.elfclass == 64 else "I")
        self.functions = {s.name: s["st_value"] for s in symbols if s["st_info"]["type"] == "STT_FUNC"}
        self.open()

    def open(self) -> None:
        """A fresh engine: after a failure nothing of the old one can be trusted."""
        guest = self.guest
        self.engine = (uc.Uc(guest.arch, guest.mode) if guest.model is None
                       else uc.Uc(guest.arch, guest.mode, guest.model))
        if guest.virtual_tlb:
            self.engine.ctl_set_tlb_mode(uc.UC_TLB_VIRTUAL)
        self.engine.mem_map(IMAGE, IMAGE_SIZE)
        self.engine.mem_map(EXIT, 0x10000)
        self.engine.mem_map(STACK, STACK_SIZE)
        for address, data in self.segments:
            self.engine.mem_write(address, bytes(data))
        guest.setup(self.engine)
        if guest.exit_insn:
            self.engine.mem_write(EXIT, guest.exit_insn * (0x1000 // len(guest.exit_insn)))
        self.engine.hook_add(uc.UC_HOOK_CODE, lambda engine, *_: engine.emu_stop(), begin=EXIT, end=EXIT)

    def tests(self) -> list[str]:
        return [*sorted(name for name in self.functions if name.startswith("test_")), "run_all"]

    def put(self, register: int | None, value: int) -> None:
        if register is not None:
            self.engine.reg_write(register, value)

    def call(self, name: str, seed: int) -> int:
        """Call one function; its result, 32 bits. Raises UcError; TimeoutError where it did not return."""
        guest, address = self.guest, self.functions[name]
        if guest.descriptors:
            address, toc = struct.unpack(">QQ", self.engine.mem_read(address, 16))
            self.put(ppc.UC_PPC_REG_2, toc)
        self.put(guest.sp, self.stack(seed) - guest.stack_bias)
        self.put(guest.argument, seed - (1 << 32) if guest.signed and seed >> 31 else seed)
        self.put(guest.link, EXIT + guest.link_offset)
        self.put(guest.entry, address)
        started = time.monotonic()
        self.engine.emu_start(address, 0, timeout=TIMEOUT)  # not `until`: sparc64 runs past it
        if (time.monotonic() - started) * 1e6 >= TIMEOUT:
            raise TimeoutError("did not return")
        return int(self.engine.reg_read(guest.result)) & 0xFFFFFFFF

    def stack(self, seed: int) -> int:
        """The stack pointer at entry: with the return address and the argument on it where they belong there."""
        words = [EXIT] if self.guest.link is None else []
        words += [seed] if self.guest.argument is None else []
        for n, value in enumerate(words):
            self.engine.mem_write(TOP - 8 + n * struct.calcsize(self.word), struct.pack(self.word, value))
        return TOP - 8 if words else TOP


def mismatches(runner: Runner, name: str, want: list[int], seeds: list[int]) -> Iterator[str]:
    """What is wrong with one function, seed by seed."""
    for seed, value in zip(seeds, want, strict=True):
        try:
            got = runner.call(name, seed)
        except (uc.UcError, TimeoutError) as error:
            yield f"seed {seed:#x}: {error}"
            runner.open()
            return
        if got != value:
            yield f"seed {seed:#x}: {got:#010x}, expected {value:#010x}"
            runner.open()


def check(path: Path, expected: dict[str, Any], limits: dict[str, str]) -> bool:
    """Run one program and print a line for it, and one for each function that did not do what was expected of it."""
    runner, arch = Runner(path), path.stem.split("-")[0]
    started, good, bad = time.monotonic(), 0, 0
    for name in runner.tests():
        want = expected["run_all"][arch] if name == "run_all" else expected["tests"][name]
        problem = next(mismatches(runner, name, want, expected["seeds"]), "")
        if bool(problem) == (name in limits):
            good += 1
            continue
        bad += 1
        print(f"  {path.stem} {name}: {problem or 'listed in engine_limits.json, but it works'}")
    seconds = time.monotonic() - started
    print(f"{path.stem}: {good} as expected, {bad} not, {len(limits)} known limits, {seconds:.2f} s", flush=True)
    return bad == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="*", help="arm64, arm64-O2, ...; default: all")
    wanted = set(parser.parse_args().program)
    expected = json.loads((HERE / "expected.json").read_text())
    limits = json.loads((HERE / "engine_limits.json").read_text())
    paths = [p for p in sorted((HERE / "bin").glob("*.elf")) if p.stem.split("-")[0] in GUESTS
             and (not wanted or wanted & {p.stem, p.stem.split("-")[0]})]
    if not paths:
        sys.exit(f"no such program; there are: {' '.join(GUESTS)}")
    results = [check(path, expected, limits.get(path.stem, {})) for path in paths]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
