"""Rebuild btf.tar.xz: `python tests/data/build_btf.py` (Debian's gcc, llvm and pahole, pip install ziglang==0.17.0).

btf_shop.c with DWARF (ARCH/dwarf), with BTF that pahole has made of it (ARCH/btf), with neither (ARCH/bare) and its BTF as a
file (ARCH/types). btf_module.c as a module of that program: its BTF counts on from the program's (x86_64/module).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ZIG = [sys.executable, "-m", "ziglang"]
KEPT = ("dwarf", "btf", "bare", "types", "module")


def compile_program(arch: str, folder: Path) -> None:
    """Make an architecture's programs in a folder that has the sources."""
    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, check=True)

    if arch == "x86_64":
        options = ["-O2", "-gdwarf-4", "-fno-pie", "-fcf-protection=none", "-fdebug-prefix-map=" + str(folder) + "=."]
        run("gcc", *options, "-no-pie", "-nostdlib", "-static", "-Wl,-e,main", "-Wl,--build-id=none", "shop.c", "-o", "dwarf")
        run("gcc", *options, "-c", "module.c", "-o", "module")
    else:
        run(*ZIG, "clang", "-target", "s390x-linux-musl", "-O1", "-gdwarf-4", "-fdebug-compilation-dir=.", "-c", "shop.c", "-o", "shop.o")
        run(*ZIG, "ld.lld", "-e", "main", "shop.o", "-o", "dwarf")
    run("llvm-objcopy", "--strip-debug", "dwarf", "bare")
    run("pahole", "--btf_encode_detached", "types", "--btf_gen_floats", "dwarf")
    run("llvm-objcopy", "--add-section", ".BTF=types", "bare", "btf")
    if arch == "x86_64":
        run("pahole", "-J", "--btf_base", "types", "--btf_gen_floats", "module")
        run("llvm-objcopy", "--strip-debug", "module")


def main() -> None:
    with tempfile.TemporaryDirectory() as place, tarfile.open(HERE / "btf.tar.xz", "w:xz") as archive:
        for arch in ("x86_64", "s390x"):
            folder = Path(place) / arch
            folder.mkdir()
            for name in ("shop", "module"):
                shutil.copy(HERE / f"btf_{name}.c", folder / f"{name}.c")
            compile_program(arch, folder)
            for path in sorted(folder.iterdir()):
                if path.name in KEPT:
                    member = tarfile.TarInfo(f"{arch}/{path.name}")
                    member.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(member, file)


if __name__ == "__main__":
    main()
