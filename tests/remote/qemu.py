"""Which of the compiled programs run under QEMU here."""

from __future__ import annotations

import pytest
from arches import ARCH_OF_PROGRAM, PROGRAMS, expected
from attrs import frozen

from kprobes import Kprobe, Kprobes, Kretprobe, Machine, Unsupported
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


def compiled_functions(m: Machine, k: Kprobes) -> int:
    """Every function of a compiled program, with probes of every kind on it: the results that the host's compiler
    gives. The number of functions."""
    wanted, seeds = expected()["tests"], expected()["seeds"]
    names = [name for name in wanted if name in m.symbols]
    assert len(names) > 20
    for name in names:
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
