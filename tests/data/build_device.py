"""Rebuild device.txt, a function of loads and stores of every size for each architecture: `python
tests/data/build_device.py`.

Compiled by zig (tests/programs/build.py has the version, targets and flags) from the C below, or written by hand where
zig has no such target.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))

SOURCE = """
#include <stdint.h>
uint32_t copy(volatile char *p) {
    *(volatile uint8_t *)(p + 16) = *(volatile uint8_t *)p;
    *(volatile uint16_t *)(p + 18) = *(volatile uint16_t *)(p + 2);
    *(volatile uint32_t *)(p + 20) = *(volatile uint32_t *)(p + 4);
    *(volatile uint64_t *)(p + 24) = *(volatile uint64_t *)(p + 8);
    return *(volatile uint16_t *)(p + 2);
}
"""


def _sparc(wide: bool) -> str:
    def access(op: int, register: int, offset: int) -> int:
        return 3 << 30 | register << 25 | op << 19 | 8 << 14 | 1 << 13 | offset

    load, store = (0x0B, 0x0E) if wide else (3, 7)
    words = [access(1, 1, 0), access(5, 1, 16), access(2, 1, 2), access(6, 1, 18), access(0, 1, 4), access(4, 1, 20),
             access(load, 2, 8), access(store, 2, 24), 0x81C3E008, access(2, 8, 2)]
    return b"".join(word.to_bytes(4, "big") for word in words).hex()


def _tricore() -> str:
    def access(store: bool, op: int, register: int, offset: int) -> int:
        return (offset >> 6) << 28 | op << 22 | (offset & 63) << 16 | 4 << 12 | register << 8 | (0x89 if store
            else 0x09)

    words = [access(store, op - (store and op in (0x21, 0x23)), 0, offset)
             for op, at in ((0x21, 0), (0x23, 2), (0x24, 4), (0x25, 8))
             for store, offset in ((False, at), (True, at + 16))]
    # behind MOV.A a4,d4
    return "6044" + b"".join(word.to_bytes(4, "little") for word in [*words, access(False, 0x23, 2, 2)]).hex() + "0090"


SH = "6543 7510 6040 2500 8541 8151 5141 1511 5142 1512 5143 1513 8541 000b 600d"
BY_HAND = {
    "sparc": _sparc(False), "sparc64": _sparc(True), "tricore": _tricore(),
    "m68k": "206f0004 11500010 316800020012 216800040014 216800080018 2168000c001c 7000 30280002 4e75".replace(" ", ""),
    "sh4": b"".join(bytes.fromhex(half)[::-1] for half in SH.split()).hex(), "sh4eb": SH.replace(" ", ""),
    "parisc": "0f40101c 635c0020 0f44105c 675c0024 0f48109c 6b5c0028 0f50109c 0f58109d 6b5c0030 6b5d0038 e840c000 0f44105c".replace(" ", ""),
}


def main() -> None:
    from build import TARGETS, zig, zig_command
    from elftools.elf.elffile import ELFFile

    targets = {name: target for name, target in TARGETS.items() if target.compiler == "zig"
               and name not in ("armhf", "thumb", "armeb32")}
    targets |= {"mips32r6": zig("mips-freestanding-eabihf", "-mcpu=mips32r6"),
                "mips64r6": zig("mips64-freestanding-none", "-mcpu=mips64r6")}
    lines = [f"{name} {code}" for name, code in BY_HAND.items()]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "copy.c"), Path(folder, "copy.o")
        source.write_text(SOURCE)
        for name, target in targets.items():
            run = subprocess.run([*zig_command(), *target.flags, "-c", "-O1", "-ffreestanding", "-fomit-frame-pointer",
                                  "-fno-stack-protector",
                                  "-fno-asynchronous-unwind-tables", "-g0", "-o", str(out), str(source)], check=False,
                                  capture_output=True, text=True)
            if run.returncode:
                print(f"{name}: {run.stderr.splitlines()[:1]}", file=sys.stderr)
                continue
            with out.open("rb") as file:
                elf = ELFFile(file)
                text = elf.get_section_by_name(".text")
                symbol = elf.get_section_by_name(".symtab").get_symbol_by_name("copy")[0]
                start, size = symbol["st_value"] & ~1, symbol["st_size"]
                code = text.data()[start : start + size]
                if name == "armeb":  # what a linker does for BE8
                    code = b"".join(code[at : at + 4][::-1] for at in range(0, size, 4))
                lines.append(f"{name} {code.hex()}")
                if elf.get_section_by_name(".rela.text") or elf.get_section_by_name(".rel.text"):
                    print(f"{name}: has relocations", file=sys.stderr)
    HERE.joinpath("device.txt").write_text("\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    main()
