"""Rebuild images.tar.xz from the image_*.c beside it: python tests/data/build_images.py

Needs ziglang, and for what LLVM cannot link or compile Debian's gcc-{m68k,sparc64,powerpc64}-linux-gnu and gcc (x86-64).
"""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent
FLAGS = ["-O1", "-g0", "-nostdlib", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-ident"]
ZIG = {
    "x86_64": "x86_64-linux-musl", "i386": "x86-linux-musl", "aarch64": "aarch64-linux-musl", "aarch64_be": "aarch64_be-linux-musl",
    "arm": "arm-linux-musleabi", "armeb": "armeb-linux-musleabi -mcpu=arm926ej_s", "thumb": "thumb-linux-musleabi",
    "mips": "mips-linux-musleabi", "mipsel": "mipsel-linux-musleabi", "mips64": "mips64-linux-muslabi64",
    "mips64el": "mips64el-linux-muslabi64", "ppc": "powerpc-linux-musleabi", "ppc64v2": "powerpc64-linux-musl",
    "ppc64le": "powerpc64le-linux-musl", "riscv64": "riscv64-linux-musl", "riscv32": "riscv32-linux-musl",
    "s390x": "s390x-linux-musl", "sparc": "sparc-linux-gnu -mcpu=v8",
}
GNU = {
    "sparcgnu": ["sparc64-linux-gnu-gcc", "-m32", "-mcpu=v8", "-Wl,-z,max-page-size=0x2000"], "m68k": ["m68k-linux-gnu-gcc"], "sparc64": ["sparc64-linux-gnu-gcc", "-mflat", "-Wl,-z,max-page-size=0x2000"],
    "ppc64": ["powerpc64-linux-gnu-gcc", "-Wl,-z,max-page-size=0x1000"], "ppc64small": ["powerpc64-linux-gnu-gcc", "-mcmodel=small"],
    "x86_64gnu": ["gcc", "-fcf-protection"],
}
FEATURES = {
    "features.so": ["image_features.c", "-fPIC", "-shared", "-fcf-protection", "-Wl,-z,now", "-Wl,--version-script=VERSIONS"],
    "static": ["image_static.c", "-static", "-no-pie", "-fno-pie"],
    "copy": ["image_copy.c", "B_SO", "-no-pie", "-fno-pie"],
    "relr": ["image_copy.c", "image_b.c", "-static-pie", "-fPIE", "-Wl,-z,pack-relative-relocs"],
}


def build(command: list[str], out: pathlib.Path) -> bytes:
    subprocess.run([*command, "-o", str(out)], check=True, cwd=HERE)
    return out.read_bytes()


def images(command: list[str], scratch: pathlib.Path, shared: bool) -> dict[str, bytes]:
    """The variants of one target."""
    made = {}
    for name, arguments in {"a.o": ["-c", "image_a.c", "-fno-pic", "-fcommon"], "a.pic.o": ["-c", "image_a.c", "-fPIC"],
                            "b.o": ["-c", "image_b.c", "-fno-pic"], "a.so": ["-shared", "-fPIC", "image_a.c"]}.items():
        if shared or not name.endswith(".so"):
            made[name] = build([*command, *FLAGS, *arguments], scratch / name)
    return made


def features(scratch: pathlib.Path) -> dict[str, bytes]:
    """What only GNU's x86-64 linker makes."""
    versions, library = scratch / "versions", scratch / "libb.so"
    versions.write_text("V1 { global: f; }; V2 { global: *; } V1;")
    build(["gcc", *FLAGS, "-shared", "-fPIC", "image_b.c"], library)
    known = {"B_SO": str(library), "-Wl,--version-script=VERSIONS": f"-Wl,--version-script={versions}"}
    return {name: build(["gcc", *FLAGS, *(known.get(a, a) for a in arguments)], scratch / name)
            for name, arguments in FEATURES.items()}


def main() -> None:
    zig = [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all", "-fno-unwind-tables"]
    with tempfile.TemporaryDirectory() as folder, tarfile.open(HERE / "images.tar.xz", "w:xz") as archive:
        scratch = pathlib.Path(folder)
        targets = {name: images([*zig, "-target", *triple.split()], scratch, name != "sparc") for name, triple in ZIG.items()}
        targets |= {name: images(command, scratch, name != "ppc64small") for name, command in GNU.items()}
        targets["features"] = features(scratch)
        for target, files in targets.items():
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{target}/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
