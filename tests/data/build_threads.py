"""Builds threads.tar.xz: a library with thread-local variables for each target and model, and a static program with a C
library.

    python tests/data/build_threads.py [TARGET ...]

Needs ziglang (`pip install '.[dev]'`). The libraries take a tenth of a second each. The static programs take minutes
each, because the first one of a target builds musl; targets that are not named keep what the archive has. threads/*.c
are the sources.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHIVE = HERE / "threads.tar.xz"
#: architecture -> (Zig's name of it, musl's ABI)
TARGETS = {
    "x86_64": ("x86_64", "musl"), "i386": ("x86", "musl"), "arm": ("arm", "musleabi"), "armeb": ("armeb", "musleabi"),
    "arm64": ("aarch64", "musl"),
    "arm64be": ("aarch64_be", "musl"), "mips": ("mips", "musleabi"), "mipsel": ("mipsel", "musleabi"),
    "mips64": ("mips64", "muslabi64"),
    "mips64el": ("mips64el", "muslabi64"), "ppc": ("powerpc", "musleabi"), "ppc64": ("powerpc64", "musl"),
    "ppc64le": ("powerpc64le", "musl"),
    "riscv32": ("riscv32", "musl"), "riscv64": ("riscv64", "musl"), "s390x": ("s390x", "musl"),
}
MODELS = ("initial-exec", "global-dynamic")
#: What the compiler makes that cannot run anywhere: calls through a PLT whose base register nobody sets.
BROKEN = {("ppc", "global-dynamic")}
LIBRARY = ("-nostdlib", "-fno-sanitize=undefined", "-fPIC", "-shared", "-O1", "-s")


def compiled(*arguments: str) -> bytes:
    """What the compiler makes of these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run([sys.executable, "-m", "ziglang", "cc", *arguments, "-o", str(out)], check=True)
        return out.read_bytes()


def main(targets: list[str]) -> None:
    """Write the archive."""
    files: dict[str, bytes] = {}
    if ARCHIVE.exists():
        with tarfile.open(ARCHIVE) as archive:
            files = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]
    for name, (cpu, abi) in TARGETS.items():
        more = ("-mabicalls",) if cpu.startswith("mips") else ()
        for model in MODELS:
            if (name, model) not in BROKEN:
                files[f"{name}/{model}.so"] = compiled("-target", f"{cpu}-linux-none", *LIBRARY, *more,
                                                       f"-ftls-model={model}", str(HERE / "threads/library.c"))
        if name in targets:
            files[f"{name}/static"] = compiled("-target", f"{cpu}-linux-{abi}", "-static", "-O2", "-s",
                                               str(HERE / "threads/static.c"))
    with tarfile.open(ARCHIVE, "w:xz") as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    main(sys.argv[1:])
