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
    """Return the text of <kprobes/bpf.h>, with <kprobes/registers.h> put in for its #include."""
    return BPF_H.read_text().replace("#include <kprobes/registers.h>\n", REGISTERS_H.read_text())


def registers() -> str:
    """Make the text of <kprobes/registers.h> from the architectures.

    It is an enum: for each register of each architecture the number of its word in the context.
    """
    out = ["enum {"]
    for name in arch.names():
        seen = arch.get(name).regs.names[:UNIFORM]
        numbers = (f"KPROBES_REG_{name}_{register} = {n}" for n, register in enumerate(seen))
        out.append(f"    {', '.join(numbers)},")
    return "\n".join([*out, "};", ""])


def has(names: Sequence[str], register: str) -> bool:
    """Return True where a register's name begins with the name of the guest's architecture.

    An architecture with the same registers counts as the guest's. Whether there is a register of
    that name is not looked at.

    Args:
        names: names of all registers of the guest's architecture, in order.
        register: the name as KPROBES_REG() has it, `<arch>_<register>`: `arm64_x19`.
    """
    owner = max(
        (name for name in arch.names() if register.startswith(f"{name}_")), key=len, default=None
    )
    return owner is not None and arch.get(owner).regs.names == tuple(names)
