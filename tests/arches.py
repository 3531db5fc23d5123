"""Which architectures there are, their case files and programs, and who may lack them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from kprobes import UnicornMachine
from kprobes import arch as architectures
from kprobes.arch._base import Arch
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.testing import CaseFile, read_cases

HERE = Path(__file__).resolve().parent
CASES = HERE / "arch" / "cases"
PROGRAMS = HERE / "programs"
ARCHES = architectures.names()
RUNNABLE = tuple(name for name in ARCHES if name in GUESTS)

#: Architectures that lack a case file, an engine or programs, each with the reason. Nothing else may lack them.
NO_CASES: dict[str, str] = {}
NO_ENGINE: dict[str, str] = {
    "loongarch64": "Unicorn 2.1.4 has no LoongArch; see below, under QEMU",
    "alpha": "Unicorn 2.1.4 has no Alpha; see below, under QEMU",
    **dict.fromkeys(("sh4", "sh4eb"), "Unicorn 2.1.4 has no SuperH; see below, under QEMU"),
    "parisc": "Unicorn 2.1.4 has no PA-RISC; see below, under QEMU",
    "ia64": "no emulator has Itanium; tests/machine/test_ia64.py runs it on a model of ours",
}
NO_PROGRAMS: dict[str, str] = {
    "ia64": "no compiler in PyPI, npm or Debian; tests/machine/test_ia64.py has functions by GNU as",
    "tricore": "no compiler in PyPI, npm or Debian; tests/differential/test_tricore.py has a program assembled by hand",
    "mips32r6": "the compiler at hand makes release 6 code for little endian only; mips32r6el has the same decode rows",
    "mips64r6": "the compiler at hand makes release 6 code for little endian only; mips64r6el has the same decode rows",
}
#: Programs that no architecture runs, each with the reason.
UNUSED_PROGRAMS: dict[str, str] = {
    "armeb32": "BE32, big-endian instructions as before ARMv6: no architecture yet",
}


def cases_of(arch: str) -> CaseFile:
    """The case file of an architecture; empty where there is none (test_contract.py says whether that is allowed)."""
    path = CASES / f"{arch}.txt"
    return read_cases(path) if path.exists() else CaseFile()


#: Programs whose name is not the architecture that runs them.
ARCH_OF_PROGRAM = {"armhf": "arm", "thumb": "arm", "ppc64v1": "ppc64", "sparcw": "sparc"}


def programs_of(arch: str) -> list[Path]:
    """The compiled programs that an architecture runs."""
    files = sorted((PROGRAMS / "bin").glob("*.elf"))
    return [f for f in files if ARCH_OF_PROGRAM.get(name := f.stem.rpartition("-")[0], name) == arch]


@cache
def expected() -> dict[str, Any]:
    """Results of the programs' functions, by name and seed."""
    return dict(json.loads((PROGRAMS / "expected.json").read_text()))


@cache
def limits(stem: str) -> dict[str, str]:
    """Functions of a program that this engine cannot run, with the reason."""
    return dict(json.loads((PROGRAMS / "engine_limits.json").read_text())).get(stem, {})


def results(stem: str, machine: UnicornMachine) -> dict[str, list[int]]:
    """The test functions of a loaded program that the engine can run, each with its result for every seed."""
    table = {**expected()["tests"], "run_all": expected()["run_all"][stem.rpartition("-")[0]]}
    return {name: values for name, values in table.items() if name in machine.symbols and name not in limits(stem)}


def integer(arch: Arch, value: int) -> int:
    """A C `uint32_t` as the calling convention passes it: some 64-bit ones sign-extend even unsigned 32-bit
    integers."""
    extends = arch.bits == 64 and arch.name.startswith(("riscv", "mips", "loongarch", "alpha"))
    return value - (1 << 32) if extends and value >> 31 else value
