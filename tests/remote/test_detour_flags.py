"""Flags that a detour puts back on x86 without POPF: all combinations, after programs that leave others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from arch_rows import IN_KERNELS, SAVINGS
from qemu import qemu_for

from kprobes import QemuMachine, UnicornMachine

FLAGS = (0x1, 0x4, 0x10, 0x40, 0x80, 0x400, 0x800)  #: CF PF AF ZF SF DF OF (SDM volume 1, 3.4.3)
#: PUSH of the argument; POPF
SET = {"x86_64": "57 9d", "i386": "ff742404 9d"}
#: instruction after which flags are ZF and PF; CF and OF; SF, OF, AF and PF
LEFT = ("31c9", "b180 80c1ff", "b9ffffff7f 83c101")


def differing(m: Any, saving: Any) -> list[tuple[int, str, int]]:
    """(flags before, what has run, flags after) where they are not the same."""
    (_, read, write), = saving.special
    at, found = m.map_code(), []
    for left in LEFT:
        # PUSH eax; what has run; POP eax; put back; PUSHF; POP eax; CLD; RET
        m.write(at, bytes.fromhex(SET[m.arch.name]) + read + b"\x50" + bytes.fromhex(left) + b"\x58" + write
                + bytes.fromhex("9c 58 fc c3"))
        for flags in map(sum, product(*((0, flag) for flag in FLAGS))):
            if (after := m.call(at, flags | 0x202) & sum(FLAGS)) != flags:
                found.append((flags, left, after))
    return found


@pytest.mark.quick
@pytest.mark.parametrize("arch", SET)
def test_in_the_engine(arch: str) -> None:
    m = UnicornMachine.from_code(bytes(16), arch=arch)
    assert not differing(m, SAVINGS[arch])


@pytest.mark.parametrize("arch", SET)
def test_under_qemu(arch: str, programs: Callable[[str], Path]) -> None:
    """That a program's flags are the same is what tests of detours see by their results; here by all flags."""
    stem = f"{arch}-O2"
    qemu_for(stem)
    with QemuMachine.user([programs(stem)], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        assert not differing(m, m.guest_view.saving)


def test_a_kernels_interrupts_are_put_back() -> None:
    """Whose flags have IF: by POPF."""
    (_, read, write), = IN_KERNELS["x86_64"].special
    assert b"\xfa" in read and write == bytes.fromhex("50 9d")
