"""Rebuild images.tar.xz from the image_*.c and relocations.txt beside it: python tests/data/build_images.py

Needs ziglang, and for what LLVM cannot link or compile Debian's gcc-{m68k,sparc64,powerpc64}-linux-gnu and gcc
(x86-64).
"""

from __future__ import annotations

import io
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from elftools.elf.elffile import ELFFile

HERE = pathlib.Path(__file__).parent
ZIG = [sys.executable, "-m", "ziglang"]
FLAGS = ["-O1", "-g0", "-nostdlib", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident"]
TRIPLES = {
    "x86_64": "x86_64-linux-musl", "i386": "x86-linux-musl", "aarch64": "aarch64-linux-musl",
    "aarch64_be": "aarch64_be-linux-musl",
    "arm": "arm-linux-musleabi", "armeb": "armeb-linux-musleabi -mcpu=arm926ej_s", "thumb": "thumb-linux-musleabi",
    "mips": "mips-linux-musleabi", "mipsel": "mipsel-linux-musleabi", "mips64": "mips64-linux-muslabi64",
    "mips64el": "mips64el-linux-muslabi64", "ppc": "powerpc-linux-musleabi", "ppc64v2": "powerpc64-linux-musl",
    "ppc64le": "powerpc64le-linux-musl", "riscv64": "riscv64-linux-musl", "riscv32": "riscv32-linux-musl",
    "s390x": "s390x-linux-musl", "sparc": "sparc-linux-gnu -mcpu=v8",
}
GNU = {
    "sparcgnu": ["sparc64-linux-gnu-gcc", "-m32", "-mcpu=v8", "-Wl,-z,max-page-size=0x2000"],
    "m68k": ["m68k-linux-gnu-gcc"],
    "sparc64": ["sparc64-linux-gnu-gcc", "-mflat", "-Wl,-z,max-page-size=0x2000"],
    "ppc64": ["powerpc64-linux-gnu-gcc", "-Wl,-z,max-page-size=0x1000"],
    "ppc64small": ["powerpc64-linux-gnu-gcc", "-mcmodel=small"],
    "x86_64gnu": ["gcc", "-fcf-protection"],
}
LINKERS = {"sparcgnu": ["sparc64-linux-gnu-ld", "-melf32_sparc"], "m68k": ["m68k-linux-gnu-ld"],
           "sparc64": ["sparc64-linux-gnu-ld"], "ppc64": ["powerpc64-linux-gnu-ld"]}
UNLINKED = ("sparc", "ppc64small")  # LLVM has no linker for the first; the second's would equal ppc64's
VARIANTS = {"a.o": ["-c", "image_a.c", "-fno-pic", "-fcommon"], "a.pic.o": ["-c", "image_a.c", "-fPIC"],
            "b.o": ["-c", "image_b.c", "-fno-pic"], "a.so": ["-shared", "-fPIC", "image_a.c"],
            "b.so": ["-shared", "-fPIC", "image_b.c"]}
FEATURES = {
    "features.so": ["image_features.c", "-fPIC", "-shared", "-fcf-protection", "-Wl,-z,now",
                    "-Wl,--version-script=versions"],
    "static": ["image_static.c", "-static", "-no-pie", "-fno-pie"],
    "copy": ["image_copy.c", "libb.so", "-no-pie", "-fno-pie"],
    "relr": ["image_copy.c", "image_b.c", "-static-pie", "-fPIE", "-Wl,-z,pack-relative-relocs"],
}


def build(command: list[str], scratch: pathlib.Path, out: str) -> bytes:
    """Run in the folder of the sources' copies, so that no path gets into a file."""
    subprocess.run([*command, "-o", out], check=True, cwd=scratch)
    return (scratch / out).read_bytes()


def compiler(target: str) -> list[str]:
    if target in GNU:
        return GNU[target]
    return [*ZIG, "cc", "-fno-sanitize=all", "-fno-unwind-tables", "-target", *TRIPLES[target].split()]


def programs(target: str, scratch: pathlib.Path) -> dict[str, bytes]:
    """The variants of the program for one target."""
    return {name: build([*compiler(target), *FLAGS, *arguments], scratch, name) for name, arguments in VARIANTS.items()
            if target not in UNLINKED or not name.endswith(".so")}


def features(scratch: pathlib.Path) -> dict[str, bytes]:
    """What only GNU's x86-64 linker makes, and thread-local code."""
    (scratch / "versions").write_text("V1 { global: f; }; V2 { global: *; } V1;")
    build(["gcc", *FLAGS, "-shared", "-fPIC", "image_b.c"], scratch, "libb.so")
    made = {name: build(["gcc", *FLAGS, *arguments], scratch, name) for name, arguments in FEATURES.items()}
    thread_local = {f"tls.{target}.o": [*compiler(target), *FLAGS, "-fPIC", "-c", "image_tls.c"]
                    for target in ("riscv64", "aarch64")}
    return made | {name: build(command, scratch, name) for name, command in thread_local.items()}


def relocations(scratch: pathlib.Path) -> dict[str, bytes]:
    """target.o, and target.text as a linker made it."""
    made: dict[str, bytes] = {}
    head, *sections = (HERE / "relocations.txt").read_text().split("\n## ")
    symbols = [line.split()[1:] for line in head.splitlines() if line.startswith("#=")]
    for section in sections:
        targets, _, source = section.partition("\n")
        (scratch / "rows.s").write_text(f".text\n{source}\n")
        for target in targets.split():
            modern = ["-mcpu=cortex_a15"] if target == "armeb" else ["-fno-pic"] if target in GNU else []
            made[f"{target}.o"] = build([*compiler(target), *modern, "-g0", "-c", "rows.s"], scratch, "rows.o")
            wide = ELFFile(io.BytesIO(made[f"{target}.o"])).elfclass == 64
            defined = [f"--defsym={name}={value}" for name, value in symbols if wide or int(value, 16) < 1 << 32]
            link = [*LINKERS.get(target, [*ZIG, "ld.lld"]), "-Ttext=0x10000000", "-e", "0", "--no-relax", *defined]
            linked = ELFFile(io.BytesIO(build([*link, "rows.o"], scratch, "rows")))
            made[f"{target}.text"] = linked.get_section_by_name(".text").data()
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(HERE / "images.tar.xz", "w:xz") as archive:
        scratch = pathlib.Path(folder)
        for source in HERE.glob("image_*.c"):
            shutil.copy(source, scratch)
        groups = {target: programs(target, scratch) for target in [*TRIPLES, *GNU]}
        groups |= {"features": features(scratch), "relocations": relocations(scratch)}
        for group, files in groups.items():
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{group}/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
