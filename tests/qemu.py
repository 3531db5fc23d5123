"""Which of the compiled programs run under QEMU here, and the table of the support matrix that says what they prove."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from arch_rows import QEMU_NAMES
from arches import ARCH_OF_PROGRAM, NO_ENGINE, NO_PROGRAMS, PROGRAMS, expected
from attrs import frozen
from portion import portion

from kprobes import Kprobe, Kprobes, Kretprobe, Machine, QemuMachine, Unsupported
from kprobes.conformance import Conformance
from kprobes.machine.remote.launch import OLDEST, find_qemu

USER_MODE = "Under QEMU's user mode"  #: a table of the support matrix
#: Programs of tests/programs that qemu-user does not run, each with the reason.
NOT_HERE = {
    "armeb32": "no architecture yet", "cortexm": "a microcontroller's program is no Linux process",
}
#: architectures without a row in that table, each with the reason
NO_ROW = {"cortexm": "a microcontroller's program is no Linux process", "tricore": "QEMU has no user mode for it",
          "ia64": "no QEMU has it",
          **{arch: reason for arch, reason in NO_PROGRAMS.items() if arch.startswith("mips")}}
RUN_HERE = sorted(p.stem for p in (PROGRAMS / "bin").glob("*-O2.elf") if p.stem.rpartition("-")[0] not in NOT_HERE)


def arch_of(stem: str) -> str:
    """The architecture that runs a program."""
    name = stem.rpartition("-")[0]
    return ARCH_OF_PROGRAM.get(name, name)


def table_of(conformance: Conformance, arch: str) -> Conformance:
    """Where what needs no QEMU is said: of an architecture that nothing else runs with the rest that it has proved."""
    return conformance.under(USER_MODE) if arch in NO_ENGINE and arch not in NO_ROW else conformance


def qemu_for(stem: str) -> str:
    """Skips where there is no QEMU for a program."""
    arch = arch_of(stem)
    try:
        return find_qemu(f"qemu-{QEMU_NAMES.get(arch, arch)}", OLDEST)
    except Unsupported as error:
        pytest.skip(str(error))


def executable(path: Path, folder: Path) -> Path:
    """A program's copy that may be executed. sparc64's are linked for pages of 4 KiB, and QEMU wants 8: there its
    segments become one, which can be written."""
    copy = folder / path.stem
    copy.write_bytes(one_segment(path.read_bytes()) if path.stem.startswith("sparc64") else path.read_bytes())
    copy.chmod(0o755)
    return copy


def one_segment(data: bytes, page: int = 8192) -> bytes:
    """A big-endian ELF64 file with all that is loaded in a segment of its own, at the file's end."""
    table, (size, count) = int.from_bytes(data[32:40], "big"), struct.unpack_from(">HH", data, 54)
    heads = {at: struct.unpack_from(">IIQQQQQQ", data, at) for at in range(table, table + size * count, size)}
    loads = {at: head for at, head in heads.items() if head[0] == 1}
    start, whole, place = min(head[3] for head in loads.values()), b"", -(-len(data) // page) * page
    end = max(head[3] + head[6] for head in loads.values())
    for _, _, offset, address, _, stored, _, _ in loads.values():
        whole = whole.ljust(address - start, b"\0") + data[offset:offset + stored]
    out = bytearray(data.ljust(place, b"\0") + whole)
    for n, at in enumerate(loads):
        struct.pack_into(">IIQQQQQQ", out, at, not n, 7, place, start, start, len(whole), end - start, page)
    return bytes(out)


def process(path: Path) -> QemuMachine:
    """A compiled program as a Linux process, its file gone again. Skips where there is no QEMU for it."""
    qemu_for(path.stem)
    copy = executable(path, Path(tempfile.mkdtemp()))
    try:
        return QemuMachine.user([copy], env={}, timeout=20, stdout=subprocess.DEVNULL)
    finally:
        shutil.rmtree(copy.parent)


def compiled_functions(m: Machine, k: Kprobes, thorough: bool) -> int:
    """Functions of a compiled program, with probes of every kind on it: the results that the host's compiler gives.

    Args:
        m: a machine of it.
        k: the probes of m.
        thorough: False for a third of the functions.

    Returns:
        the number of functions.
    """
    wanted, seeds = expected()["tests"], expected()["seeds"]
    names = [name for name in wanted if name in m.symbols]
    assert len(names) > 20
    for name in (names := portion(names, thorough, m.arch.name, 3)):
        probe, after = Kprobe(symbol_name=name), Kprobe(symbol_name=name, post_handler=lambda p, regs, flags: None)
        back = Kretprobe(symbol_name=name, handler=lambda ri, regs: None)
        k.register_kprobes([probe, after])
        k.register_kretprobe(back)
        assert m.call(name, seeds[0]) & 0xFFFFFFFF == wanted[name][0], name
        assert probe.nhit == after.nhit == back.nreturned >= 1, name
    return len(names)


@frozen
class Seen:
    """What an instruction has left behind."""

    regs: dict[str, int]
    pc: int
    memory: bytes
    fault: tuple[str, int | None] | None

    def differs(self, other: Seen) -> list[str]:
        out = [f"{name}: {value:#x}, not {other.regs[name]:#x}"
               for name, value in self.regs.items() if value != other.regs[name]]
        out += [f"pc: {self.pc:#x}, not {other.pc:#x}"] * (self.pc != other.pc)
        out += [f"fault: {self.fault}, not {other.fault}"] * (self.fault != other.fault)
        return out + ["memory"] * (self.memory != other.memory)


def start(stem: str, programs: Callable[[str], Path]) -> QemuMachine:
    """A process of a program, which says nothing."""
    qemu_for(stem)
    return QemuMachine.user([programs(stem)], env={}, timeout=20, stdout=subprocess.DEVNULL)
