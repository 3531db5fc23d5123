"""Text far apart, on jumps that do not reach everywhere: slots and detours are taken near each probe."""

from __future__ import annotations

import pytest

from kprobes import Kprobe, Kprobes, UnicornMachine

NOPS = {"riscv64": "13000000", "arm64": "1f2003d5", "arm": "00f020e3", "sparc": "01000000", "ppc": "60000000",
        "mips": "00000000"}
HERE, FAR = 0x10000, (0x4000000, 0x20000000)


@pytest.mark.parametrize("arch", NOPS)
def test_far_text_is_optimized_too(arch: str) -> None:
    code = bytes.fromhex(NOPS[arch]) * 64
    with UnicornMachine.from_code(code, arch=arch, base=HERE,
                                  symbols={"here": (HERE, len(code))}) as m, Kprobes(m) as k:
        for start in FAR:
            m.map(start, m.page_size)
            m.write(start, code)
            m.symbols.add(f"far_{start:x}", start, len(code))
        for start in (HERE, *FAR, HERE + 64):
            with k.kprobe(addr=start + 16, pre_handler=lambda p, regs: None) as probe:
                assert probe.boosted, hex(start)
                k.flush_optimizer()
                assert probe.optimized, probe.why_not_optimized
                m.run(start, start + 32)
                assert probe.nhit == 1


def test_without_room_in_reach_it_is_stepped() -> None:
    """RISC-V's jump reaches 1 MiB, and nothing nearer is free: two traps, and the reason."""
    size = 4 << 20
    with UnicornMachine.from_code(bytes.fromhex(NOPS["riscv64"]) * 64, arch="riscv64", base=HERE) as m, Kprobes(m) as k:
        m.map(0x8000000, size)
        middle = 0x8000000 + size // 2
        m.write(middle, bytes.fromhex(NOPS["riscv64"]) * 64)
        m.symbols.add("middle", middle, 256)
        seen: list[int] = []
        probe = Kprobe(symbol_name="middle", offset=16, pre_handler=lambda p, regs: seen.append(regs.pc))
        k.register_kprobe(probe)
        assert not probe.boosted
        m.run(middle, middle + 64)
        assert seen == [middle + 16]
        assert not probe.optimized
        assert "reach" in probe.why_not_optimized
