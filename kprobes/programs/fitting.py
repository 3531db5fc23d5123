"""Checks whether a program is for a guest: its byte order, its CPUs, and the registers that it
reads.
"""

from __future__ import annotations

import sys
from typing import Protocol

from ..arch._base import Arch
from ..regs import Regs
from . import header
from .code import Code
from .context import WORDS, absent
from .maps import PER_CPU
from .program import Program


class FittedGuest(Protocol):
    """The machine, as far as these checks need it.

    Attributes:
        arch: the guest's architecture.
        cpus: number of its CPUs.
    """

    arch: Arch
    cpus: int

    @property
    def cpu_regs(self) -> list[Regs]:
        """The registers of each CPU."""


def fits(code: Code, machine: FittedGuest) -> None:
    """Check that a program's byte order, register names and per-CPU maps are right for a machine.

    Args:
        code: the program.
        machine: the guest's machine.

    Raises:
        ProgramError: one of them is wrong.
    """
    if code.order != sys.byteorder:
        mine = "el" if sys.byteorder == "little" else "eb"
        raise code.error(
            f"is a {code.order}-endian object, and contexts are {sys.byteorder}-endian here",
            hint=f"compile it with -target bpf{mine}; the guest's byte order does not matter",
        )
    other = min(
        (name for name in code.names if not header.has(machine.arch.regs.names, name)), default=None
    )
    if other is not None:
        raise code.error(
            f"names register {other}, and the guest is {machine.arch.name}",
            hint="attach it to that architecture's guests; PT_REGS_* are there on all",
        )
    few = next((m for m in code.maps if m.type in PER_CPU and m.cpus < machine.cpus), None)
    if few is not None:
        raise code.error(
            f"map {few.name} has values for {few.cpus} CPUs, and the machine has {machine.cpus}",
            hint=f"load the program with cpus={machine.cpus}",
        )


def words(program: Program, machine: FittedGuest) -> list[int]:
    """Verify a program, and return the numbers (0 to 127) of the context's words that it reads.

    A program that uses the context's address at an offset that varies counts as reading every word
    but the registers that the machine does not show.

    Args:
        program: the program.
        machine: the guest's machine.

    Returns:
        The numbers, sorted, each once.

    Raises:
        ProgramError: the program is refused, or reads a word that this architecture does not have,
            or a register that the machine does not show.
    """
    facts = program.verify()
    code = program.code
    arch = machine.arch
    hidden = {
        n: name for n, name in enumerate(arch.regs.names) if name not in machine.cpu_regs[0].names
    }
    if facts.whole_context:
        return [word for word in range(WORDS) if word not in hidden]
    reads = {
        pc: access.offset // 8
        for pc, access in facts.accesses.items()
        if access.kind == "ctx" and access.offset is not None
    }
    missing = absent(arch, reads.values())
    if missing:
        pc = next(pc for pc, word in reads.items() if word == missing[0])
        raise code.error(
            f"reads word {missing[0]} of the context, which {arch.name} has not: "
            f"it has {len(arch.regs.names)} registers",
            pc,
            "is it for another architecture? PT_REGS_* and KPROBES_REG(ctx, <arch>_<name>) name "
            "what there is",
        )
    at = next((pc for pc, word in reads.items() if word in hidden), None)
    if at is not None:
        raise code.error(
            f"reads register {hidden[reads[at]]}, which this machine does not show",
            at,
            "regs.names has those that it shows",
        )
    return sorted(set(reads.values()))
