"""Raw images: firmware and memory dumps."""

from __future__ import annotations

from pathlib import Path

import pytest
from arches import RUNNABLE

from kprobes import GuestTimeout, ImageError, Kprobe, Kprobes, UnicornMachine
from kprobes.board import Board

pytestmark = pytest.mark.quick
FLASH = 0x08000000
#: Vector table: stack pointer, reset; then reset: movs r0, #42; bx lr
FIRMWARE = bytes.fromhex("00100020 09000008 2a20 7047")


@pytest.mark.parametrize("arch", RUNNABLE)
def test_an_image_is_where_it_was_said(arch: str) -> None:
    base = 0x80000000 if arch == "tricore" else 0x400000
    with UnicornMachine.load_raw(bytes(range(64)), arch=arch, base=base, entry=base + 32) as m:
        assert m.read(base, 64) == bytes(range(64))
        assert m.regs.pc == base + 32


def test_firmware_starts_by_its_vector_table(tmp_path: Path) -> None:
    (tmp_path / "fw.bin").write_bytes(FIRMWARE)
    (tmp_path / "fw.map").write_text("0x08000009 reset\n")
    with UnicornMachine.load_raw(tmp_path / "fw.bin", arch="cortexm", base=FLASH, symbols=tmp_path / "fw.map") as m:
        assert (m.regs.pc, m.regs.sp) == (FLASH + 8, 0x20001000)
        m.map(0x20000000, 0x1000)
        with Kprobes(m) as k:
            probe = Kprobe(symbol_name="reset")
            k.register(probe)
            assert (m.call("reset"), probe.nhit) == (42, 1)
            with k.event("p fw.bin:0x8") as event:  # by its place in the file
                assert (m.call("fw.bin:reset"), event.hits) == (42, 1)
        assert m.modules == {"fw.bin": (FLASH, FLASH + len(FIRMWARE))}


@pytest.mark.parametrize("file", [b"", "/no/such/file", "/"])
def test_files_that_are_none(file: bytes | str) -> None:
    with pytest.raises(ImageError):
        UnicornMachine.load_raw(file, arch="arm", base=0)


def test_symbols_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ImageError):
        UnicornMachine.load_raw(FIRMWARE, arch="cortexm", base=FLASH, symbols=tmp_path / "none")


def test_an_entry_of_a_cpu_that_has_only_thumb() -> None:
    """An even address is one of Thumb code, as for run() and call()."""
    code = bytes.fromhex("4123 fee7")  # movs r3, #0x41; b .
    board = Board(arch="cortexm", base=FLASH, entry=FLASH)
    for m in (UnicornMachine.load_raw(code, arch="cortexm", base=FLASH, entry=FLASH), board.machine(code)):
        with m:
            with pytest.raises(GuestTimeout):
                m.run(max_insns=3)
            assert m.regs["r3"] == 0x41
