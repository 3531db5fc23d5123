"""Which architectures there are, their case files and programs, and who may lack them."""

from __future__ import annotations

from pathlib import Path

from kprobes import arch as architectures
from kprobes.machine._guests import GUESTS
from kprobes.testing import CaseFile, read_cases

HERE = Path(__file__).resolve().parent
CASES = HERE / "arch" / "cases"
PROGRAMS = HERE / "programs"
ARCHES = architectures.names()
RUNNABLE = tuple(name for name in ARCHES if name in GUESTS)

#: Architectures that lack a case file, an engine or programs, each with the reason. Nothing else may lack them.
NO_CASES: dict[str, str] = {}
NO_ENGINE: dict[str, str] = {}
NO_PROGRAMS: dict[str, str] = {}


def cases_of(arch: str) -> CaseFile:
    """The case file of an architecture; empty where there is none (test_contract.py says whether that is allowed)."""
    path = CASES / f"{arch}.txt"
    return read_cases(path) if path.exists() else CaseFile()


#: Programs whose name is not the architecture that runs them.
ARCH_OF_PROGRAM = {"armhf": "arm", "thumb": "arm"}


def programs_of(arch: str) -> list[Path]:
    """The compiled programs that an architecture runs."""
    files = sorted((PROGRAMS / "bin").glob("*.elf"))
    return [f for f in files if ARCH_OF_PROGRAM.get(name := f.stem.rpartition("-")[0], name) == arch]
