"""The header for programs in C, and the part of it that is made from the architectures."""

from __future__ import annotations

from typing import Final

from .. import arch
from .object.clang import INCLUDE

BPF_H: Final = INCLUDE / "kprobes" / "bpf.h"
REGISTERS_H: Final = INCLUDE / "kprobes" / "registers.h"


def bpf_header() -> str:
    """The text of <kprobes/bpf.h>, in one piece."""
    return BPF_H.read_text().replace("#include <kprobes/registers.h>\n", REGISTERS_H.read_text())


def registers() -> str:
    """The text of <kprobes/registers.h>: the number of each register of each architecture in struct pt_regs."""
    out = ["enum {"]
    for name in arch.names():
        numbers = (f"KPROBES_REG_{name}_{register} = {n}" for n, register in enumerate(arch.get(name).regs.names))
        out.append(f"    {', '.join(numbers)},")
    return "\n".join([*out, "};", ""])
