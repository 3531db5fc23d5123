"""The header for programs in C, and the part of it that is made from the architectures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .. import arch
from .context import UNIFORM
from .object.clang import INCLUDE

BPF_H: Final = INCLUDE / "kprobes" / "bpf.h"
REGISTERS_H: Final = INCLUDE / "kprobes" / "registers.h"


def bpf_header() -> str:
    """Return the text of <kprobes/bpf.h>, in one piece."""
    return BPF_H.read_text().replace("#include <kprobes/registers.h>\n", REGISTERS_H.read_text())


def registers() -> str:
    """Return the text of <kprobes/registers.h>: each register's number in struct pt_regs, for each
    architecture.
    """
    out = ["enum {"]
    for name in arch.names():
        seen = arch.get(name).regs.names[:UNIFORM]
        numbers = (f"KPROBES_REG_{name}_{register} = {n}" for n, register in enumerate(seen))
        out.append(f"    {', '.join(numbers)},")
    return "\n".join([*out, "};", ""])


def has(names: Sequence[str], register: str) -> bool:
    """Return True where a register, as KPROBES_REG() names it, is the guest's.

    Args:
        names: names of the guest's registers.
        register: `ARCH_NAME`.
    """
    owner = max(
        (name for name in arch.names() if register.startswith(f"{name}_")), key=len, default=None
    )
    return owner is not None and arch.get(owner).regs.names == tuple(names)
