"""Addresses relative to pc on MIPS release 6: Unicorn does not know these instructions, so nothing can be compared
without a probe."""

from __future__ import annotations

import pytest

from kprobes import Kprobes, UnicornMachine

BASE = 0x12345670
#: instruction -> (its encoding, what it works out)
CASES = {
    "addiupc $2, 16": (0xEC400004, BASE + 0x10),
    "addiupc $2, -0x100000": (0xEC440000, BASE - 0x100000),
    "auipc $2, 1": (0xEC5E0001, BASE + 0x10000),
    "auipc $2, -0x1000": (0xEC5EF000, BASE - 0x10000000),
    "aluipc $2, 2": (0xEC5F0002, BASE + 0x20000 & ~0xFFFF),
}


@pytest.mark.parametrize("arch", ["mips32r6", "mips32r6el", "mips64r6", "mips64r6el"])
@pytest.mark.parametrize("case", CASES)
def test_simulated_and_displaced(arch: str, case: str) -> None:
    number, address = CASES[case]
    order = "little" if arch.endswith("el") else "big"
    code = b"".join(word.to_bytes(4, order) for word in (number, 0x03E00009, 0))
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": (BASE, len(code))})
    with Kprobes(m) as kprobes, kprobes.kprobe(addr=BASE, optimize=False):
        assert m.call("f") == address
    with Kprobes(m) as kprobes, kprobes.kprobe(addr=BASE) as probe:
        kprobes.flush_optimizer()
        assert probe.optimized
        assert [m.call("f"), m.call("f")] == [address, address]
        assert probe.nhit == 2
    m.close()
