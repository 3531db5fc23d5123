"""Rebuild unwind.tar.xz: `python tests/data/build_unwind.py` (Debian's gcc, llvm, binutils-aarch64-linux-gnu 2.40 and
linux-kbuild-6.1; pip install ziglang==0.17.0).

unwind_tables.c with call frame information only (ARCH/frames), with SFrame only (ARCH/sframe), and with the ORC of Linux's
objtool only (x86_64/orc); module.o is an object file with SFrame only.
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
OBJTOOL = "/usr/lib/linux-kbuild-6.1/tools/objtool/objtool"
WITHOUT = {"frames": [".sframe", ".orc_unwind", ".orc_unwind_ip"], "sframe": [".eh_frame"], "orc": [".eh_frame"],
           "module.o": [".eh_frame", ".rela.eh_frame"]}


def compile_programs(arch: str, folder: Path) -> None:
    """Make an architecture's programs in a folder that has the source."""
    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, check=True)

    def keep(source: str, name: str) -> None:
        run("llvm-objcopy", *[f"--remove-section={each}" for each in WITHOUT[name]], source, name)

    if arch == "x86_64":
        options = ["-O2", "-fno-pie", "-fcf-protection=none", "-fno-stack-protector"]
        link = ["-no-pie", "-nostdlib", "-static", "-Wl,-e,main", "-Wl,--build-id=none"]
        run("gcc", *options, "-Wa,--gsframe", "-c", "tables.c", "-o", "sframe.o")
        run("gcc", *link, "sframe.o", "-o", "with_sframe")
        run("gcc", *options, "-c", "tables.c", "-o", "orc.o")
        run(OBJTOOL, "--orc", "orc.o")
        run("gcc", *link, "orc.o", "-o", "with_orc")
        keep("with_orc", "orc")
        keep("sframe.o", "module.o")
    else:
        run(*ZIG, "clang", "-target", "aarch64-linux-musl", "-O2", "-fno-stack-protector", "-fno-addrsig", "-S", "tables.c", "-o",
            "tables.s")
        run("aarch64-linux-gnu-as", "--gsframe", "tables.s", "-o", "tables.o")
        run("aarch64-linux-gnu-ld", "-e", "main", "tables.o", "-o", "with_sframe")
    keep("with_sframe", "sframe")
    keep("with_sframe", "frames")


def main() -> None:
    with tempfile.TemporaryDirectory() as place, tarfile.open(HERE / "unwind.tar.xz", "w:xz") as archive:
        for arch in ("x86_64", "arm64"):
            folder = Path(place) / arch
            folder.mkdir()
            shutil.copy(HERE / "unwind_tables.c", folder / "tables.c")
            compile_programs(arch, folder)
            for path in sorted(folder.iterdir()):
                if path.name in WITHOUT:
                    member = tarfile.TarInfo(f"{arch}/{path.name}")
                    member.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(member, file)


if __name__ == "__main__":
    main()
