"""Which of the compiled programs run under QEMU here."""

from __future__ import annotations

import pytest
from arches import ARCH_OF_PROGRAM, PROGRAMS

from kprobes import Unsupported
from kprobes.machine.remote.launch import NAMES, OLDEST, find_qemu

#: Programs of tests/programs that qemu-user does not run, each with the reason.
NOT_HERE = {
    "armeb32": "no architecture yet", "cortexm": "a microcontroller's program is no Linux process",
    "sparc64": "linked for 4 KiB pages: QEMU wants 8", "sparc": "QEMU's default CPU lacks LEON's casa",
    "sparcw": "the same",
}
RUN_HERE = sorted(p.stem for p in (PROGRAMS / "bin").glob("*-O2.elf") if p.stem.rpartition("-")[0] not in NOT_HERE)


def qemu_for(stem: str) -> str:
    """Skips where there is no QEMU for a program."""
    name = stem.rpartition("-")[0]
    arch = ARCH_OF_PROGRAM.get(name, name)
    try:
        return find_qemu(f"qemu-{NAMES.get(arch, arch)}", OLDEST)
    except Unsupported as error:
        pytest.skip(str(error))
