"""Rebuild debug.tar.xz, values.tar.xz and debug_objects.tar.xz: `python tests/data/build_debug.py` (pip install ziglang==0.17.0).
debug.c for every target of the compiler, with .eh_frame (ARCH-eh.elf), and with .debug_frame (ARCH-df.elf); both with
DWARF, version 5 and 4. The objects are ARCH-eh.o, unlinked; SPARC's are all so."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = {
    "x86_64": ["x86_64-freestanding-none"], "i386": ["x86-freestanding-none"],
    "arm": ["arm-freestanding-eabi", "-mcpu=cortex_a15-fpregs"],
    "thumb": ["thumb-freestanding-eabi", "-mcpu=cortex_a15-fpregs"],
    "armeb": ["armeb-freestanding-eabi", "-mcpu=cortex_a15-fpregs"],
    "cortexm": ["thumb-freestanding-eabi", "-mcpu=cortex_m3"], "arm64": ["aarch64-freestanding-none"],
    "arm64be": ["aarch64_be-freestanding-none"],
    "mips": ["mips-freestanding-eabihf", "-mcpu=mips32r2"], "mipsel": ["mipsel-freestanding-eabihf", "-mcpu=mips32r2"],
    "mips64": ["mips64-freestanding-none", "-mcpu=mips64r2", "-Wno-option-ignored"],
    "mips64el": ["mips64el-freestanding-none", "-mcpu=mips64r2", "-Wno-option-ignored"],
    "mips32r6el": ["mipsel-freestanding-eabihf", "-mcpu=mips32r6"],
    "mips64r6el": ["mips64el-freestanding-none", "-mcpu=mips64r6", "-Wno-option-ignored"],
    "ppc": ["powerpc-freestanding-eabihf"], "ppc64": ["powerpc64-freestanding-none"],
    "ppc64le": ["powerpc64le-freestanding-none"],
    "riscv32": ["riscv32-freestanding-none", "-mcpu=baseline_rv32"],
    "riscv64": ["riscv64-freestanding-none", "-mcpu=baseline_rv64"],
    "s390x": ["s390x-freestanding-none", "-mcpu=z10"],
}
#: Whose programs the linker does not know: objects.
UNLINKED = {"sparc": ["sparc-freestanding-none", "-mcpu=v8", "-gz=none", "-c"]}
FLAGS = ["-std=gnu11", "-O1", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fno-pic",
         "-fno-stack-protector", "-fno-ident", "-fno-sanitize=all", "-fomit-frame-pointer",
         "-fno-optimize-sibling-calls", "-Wl,--build-id=none", "-Wl,-e,_start", "-Wl,--image-base=0x400000",
         "-Wl,-z,noexecstack", "-fdebug-compilation-dir=.", "-fdebug-prefix-map=" + str(HERE) + "=."]
KINDS = {"eh": ["-gdwarf-5", "-fasynchronous-unwind-tables"], "df": ["-gdwarf-4", "-fno-asynchronous-unwind-tables",
                                                                     "-fno-unwind-tables"]}


def main() -> None:
    build("debug.tar.xz", "debug.c", {f"-{kind}.elf": flags for kind, flags in KINDS.items()}, TARGETS | UNLINKED)
    build("values.tar.xz", "values.c", {"-5.elf": KINDS["eh"], "-4.elf": KINDS["df"]}, TARGETS)
    build("debug_objects.tar.xz", "debug.c", {"-eh.o": [*KINDS["eh"], "-gz=none", "-c"]}, TARGETS | UNLINKED)


def build(archive_name: str, source: str, kinds: dict[str, list[str]],
          targets: dict[str, list[str]] = TARGETS) -> None:
    """A file for each target and kind: how its name ends, and the compiler's flags."""
    with tempfile.TemporaryDirectory() as directory, tarfile.open(HERE / archive_name, "w:xz") as archive:
        for name, target in targets.items():
            for suffix, flags in kinds.items():
                out = Path(directory, name + suffix)
                command = [sys.executable, "-m", "ziglang", "cc", "-target", *target, *FLAGS, *flags,
                           source, "-o", str(out)]
                done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{out.name}: {done.stderr.strip().splitlines()[:2]}")
                    continue
                data = out.read_bytes()
                info = tarfile.TarInfo(out.name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
                print(f"{out.name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
