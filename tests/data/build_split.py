"""Rebuild split.tar.xz: `python tests/data/build_split.py` (Debian's gcc and llvm, pip install ziglang==0.17.0).

split_shop.c and split_item.c, compiled with their debug information in .dwo files (ARCH/split) and
without (ARCH/whole): by gcc for x86_64, whose .dwp is llvm-dwp's, by clang for the others.
split_typed.cc has its types in units of their own (types/split, types/signed) or not (types/whole).
All in DWARF 5, and in DWARF 4 (ARCH.4, types.4).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("shop", "item")
TARGETS = {
    "i386": ["i386-linux-musl"], "arm": ["arm-linux-musleabi"], "arm64": ["aarch64-linux-musl"],
    "mips": ["mips-linux-musleabi"], "ppc64": ["powerpc64-linux-musl"], "riscv64": ["riscv64-linux-musl", "-mno-relax"],
    "s390x": ["s390x-linux-musl"],
}


def compile_with_gcc(folder: Path, version: int) -> None:
    """Make x86_64's programs in a folder, with a .dwp beside the .dwo files.

    Args:
        folder: has the sources.
        version: of DWARF.
    """
    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, check=True)

    options = ["-O2", f"-gdwarf-{version}", "-fdebug-prefix-map=" + str(folder) + "=.", "-fno-pie", "-fcf-protection=none"]
    link = ["-nostdlib", "-static", "-no-pie", "-Wl,-e,main", "-Wl,--build-id=none"]
    for name in NAMES:
        run("gcc", *options, "-gsplit-dwarf", "-c", f"{name}.c")
    run("gcc", *link, "shop.o", "item.o", "-o", "split")
    run("llvm-dwp", "-e", "split", "-o", "split.dwp")
    run("gcc", *options, *link, "shop.c", "item.c", "-o", "whole")


def compile_types(folder: Path, version: int) -> None:
    """Make the programs of split_typed.cc in a folder.

    Args:
        folder: has the source.
        version: of DWARF.
    """
    options = ["-O1", f"-gdwarf-{version}", f"-fdebug-prefix-map={folder}=.", "-fno-rtti", "-fno-exceptions", "-fno-pie",
               "-fcf-protection=none"]
    link = ["-nostdlib", "-static", "-no-pie", "-Wl,-e,main", "-Wl,--build-id=none"]
    signed = "-fdebug-types-section"
    for name, more in (("whole", []), ("signed", [signed]), ("split", [signed, "-gsplit-dwarf"])):
        subprocess.run(["g++", *options, *more, "-c", "typed.cc", "-o", f"{name}.o"], cwd=folder, check=True)
        subprocess.run(["g++", *link, f"{name}.o", "-o", name], cwd=folder, check=True)
    subprocess.run(["llvm-dwp", "-e", "split", "-o", "split.dwp"], cwd=folder, check=True)


def compile_with_clang(folder: Path, target: list[str], version: int) -> None:
    """Make another architecture's programs in a folder.

    Args:
        folder: has the sources.
        target: clang's name of the architecture.
        version: of DWARF.
    """
    def run(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "ziglang", *words], cwd=folder, check=True)

    options = ["-target", *target, "-O1", f"-gdwarf-{version}", "-fdebug-compilation-dir=.", "-c"]
    for name in NAMES:
        run("clang", *options, "-gsplit-dwarf", f"{name}.c", "-o", f"{name}.o")
        run("clang", *options, f"{name}.c", "-o", f"whole_{name}.o")
    run("ld.lld", "-e", "main", "shop.o", "item.o", "-o", "split")
    run("ld.lld", "-e", "main", "whole_shop.o", "whole_item.o", "-o", "whole")


def main() -> None:
    with tempfile.TemporaryDirectory() as place, tarfile.open(HERE / "split.tar.xz", "w:xz") as archive:
        for arch, version in product(("x86_64", "types", *TARGETS), (5, 4)):
            folder = Path(place) / (arch if version == 5 else f"{arch}.4")
            folder.mkdir()
            for name in NAMES:
                shutil.copy(HERE / f"split_{name}.c", folder / f"{name}.c")
            shutil.copy(HERE / "split_typed.cc", folder / "typed.cc")
            if arch == "x86_64":
                compile_with_gcc(folder, version)
            elif arch == "types":
                compile_types(folder, version)
            else:
                compile_with_clang(folder, TARGETS[arch], version)
            for path in sorted(folder.iterdir()):
                if path.suffix not in (".o", ".c", ".cc"):
                    member = tarfile.TarInfo(f"{folder.name}/{path.name}")
                    member.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(member, file)


if __name__ == "__main__":
    main()
