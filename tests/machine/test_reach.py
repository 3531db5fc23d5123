"""Text far apart, on jumps that do not reach everywhere: slots and detours are taken near each probe."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kprobes import ImageError, Kprobe, Kprobes, NoMemory, UnicornMachine

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


def program_at(base: int) -> bytes:
    """A program of mips64el that is linked for an address: `jr $ra`."""
    code = bytes.fromhex("0800e00300000000")
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 8, 1, base + 0x78, 0x40, 0, 0x60000020, 64, 56, 1,
                         64, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, 0x80, 0x80, 0x1000) + code


def test_a_program_linked_beyond_what_the_engine_reaches(tmp_path: Path) -> None:
    """As MIPS's static 64-bit programs are, at 0x120000000: another base is no advice for those."""
    (far := tmp_path / "far").write_bytes(program_at(0x120000000))
    with pytest.raises(NoMemory, match=r"linked for this place, .* reach addresses below 0x80000000 only; "
                                       r"link it for a lower one, or give --qemu") as error:
        UnicornMachine.load(far)
    assert error.value.address == 0x120000000 and "another base" not in str(error.value)
    with pytest.raises(ImageError, match="linked for 0x120000000, cannot be loaded at 0x10000; leave base out"):
        UnicornMachine.load(far, base=0x10000)
    (near := tmp_path / "near").write_bytes(program_at(0x20000000))
    with UnicornMachine.load(near) as m:
        m.call(0x20000078)
    with UnicornMachine.load(near) as m, pytest.raises(NoMemory, match="load it first, or unmap what is there"):
        (again := tmp_path / "again").write_bytes(program_at(0x20000000))
        m.load_module(again)
