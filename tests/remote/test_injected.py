"""What a guest is made to execute for us is right wherever it stands, and a QEMU that ends at once is said to have."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from arch_rows import LINUX
from qemu import qemu_for

from kprobes import QemuMachine, RemoteError, get_arch
from kprobes.machine.remote.scratch import ProcessPages

#: architecture -> the bytes that make a system call there
CODE = {"arm64": "df2403d5 010000d4", "arm64be": "df2403d5 010000d4", "arm": "000000ef", "armeb": "000000ef",
        "x86_64": "0f05", "i386": "cd80", "riscv64": "73000000", "ppc64": "44000002", "ppc64le": "02000044",
        "mips": "0000000c", "mipsel": "0c000000"}


@pytest.mark.quick
@pytest.mark.parametrize("name", CODE)
def test_the_code_of_a_system_call(name: str) -> None:
    """arm64's begins with BTI: the program may stand where only an instruction may be that a branch leads to."""
    seen = []

    def execute(code: bytes, values: Mapping[str, int], laid: bytes, result: str) -> int:
        seen.append(code)
        return 0x10000

    assert name in LINUX and ProcessPages(get_arch(name), execute).map(0x10000, 0x1000) == 0x10000
    assert seen[0].hex() == CODE[name].replace(" ", "")


def asking_for(interpreter: bytes) -> bytes:
    """The demo program, with a dynamic linker: what was the stack's program header names it."""
    raw = bytearray((Path(__file__).resolve().parents[2] / "examples" / "demo.arm64").read_bytes())
    first, size, count = *struct.unpack_from("<Q", raw, 32), *struct.unpack_from("<HH", raw, 54)
    for at in range(first, first + size * count, size):
        if struct.unpack_from("<I", raw, at)[0] == 0x6474E551:
            struct.pack_into("<IIQQQQQQ", raw, at, 3, 4, len(raw), 0, 0, len(interpreter), len(interpreter), 1)
    return bytes(raw) + interpreter


def test_a_qemu_that_ends_at_once(tmp_path: Path) -> None:
    """A program whose dynamic linker is not here: QEMU says so, and we say where it is looked for."""
    qemu_for("arm64-O2")
    program = tmp_path / "program"
    program.write_bytes(asking_for(b"/nowhere/ld.so\0"))
    program.chmod(0o755)
    with pytest.raises(RemoteError, match=r"ended before the program began .*sysroot"):
        QemuMachine.user([program])
