"""Whole machines: bare-metal firmware under qemu-system, which is where $KPROBES_QEMU_DIR or PATH has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from arch_rows import QEMU_NAMES

from kprobes import GuestTimeout, Kprobe, Kprobes, Kretprobe, QemuMachine, Unsupported
from kprobes.machine.remote.launch import find_qemu

FIRMWARE = Path(__file__).parent / "firmware"
ROM = 0x1000  #: where the RISC-V `virt` boards start
#: architecture -> where memory of QEMU's `virt` board starts, how it starts an image
BOARDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "arm": (0x40000000, ()), "arm64": (0x40000000, ("-cpu", "cortex-a53")),
    "riscv32": (0x80000000, ("-bios", "none")), "riscv64": (0x80000000, ("-bios", "none")),
}


def needs(arch: str) -> None:
    """Skips where there is no QEMU for it."""
    try:
        find_qemu(f"qemu-system-{QEMU_NAMES.get(arch, arch)}", 7)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(params=BOARDS)
def name(request: pytest.FixtureRequest) -> str:
    needs(arch := str(request.param))
    return arch


def board(name: str) -> QemuMachine:
    """Where the firmware calls body()."""
    start, arguments = BOARDS[name]
    image = FIRMWARE / f"{name}.elf"
    m = QemuMachine.system(["-M", "virt", "-m", "32", "-nic", "none", "-display", "none", "-serial", "none",
                            "-monitor", "none", *arguments,
                            "-kernel", str(image)], arch=name, symbols=image, scratch=(start + 0xA0000, 0x10000))
    m.run("_start", until="body", timeout=100)
    return m


def test_registers_that_the_stub_shows(name: str) -> None:
    """Vector registers of a CPU without SVE have names of their own."""
    with board(name) as m:
        assert set(m.arch.regs.names) == set(m.regs.names)
        assert all(m.regs[register] >= 0 for register in m.regs.names)


def test_firmware(name: str) -> None:
    """Probes and return probes while it runs, calls into it, and an endless loop that is stopped."""
    with board(name) as m, Kprobes(m) as k:
        arguments: list[int] = []
        results: list[int] = []
        probe = Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: arguments.append(regs.arg(0)))
        k.register(probe)
        k.register_kretprobes([Kretprobe(symbol_name=symbol,
                                         handler=lambda ri, regs: results.append(regs.return_value))
                               for symbol in ("leaf", "work")])
        m.run(until="finished", timeout=100)
        assert (arguments, results) == (list(range(10)), [*range(1, 20, 2), 100])
        assert m.call("work", 5, timeout=100) == 25 and probe.nhit == 15
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.2)
        assert m.call("work", 5, timeout=100) == 25 and probe.nhit == 20
        assert m.exit_status is None


@pytest.mark.parametrize("arch", ["riscv32", "riscv64"])
def test_rom(arch: str) -> None:
    """Code in read-only memory, where the board starts: each of its instructions is probed, and none is written."""
    needs(arch)
    with board(arch) as m, Kprobes(m) as k:
        code = m.read(ROM, 24)
        k.register_kprobes(probes := [Kprobe(addr=ROM + 4 * n) for n in range(6)])
        m.run(ROM, until=BOARDS[arch][0], timeout=20)
        assert [probe.nhit for probe in probes] == [1] * 6 and m._target.read(ROM, 24) == code
