"""Rebuild tests/heap/bin from cases.c: `python tests/heap/build.py [--check]`.

The executables are part of the repository. The compiler is that of tests/programs/build.py; the same version gives the
same bytes everywhere.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: what the programs are compiled for, as tests/programs/build.py names it
NAMES = ("x86_64", "i386", "arm", "thumb", "arm64", "arm64be", "riscv32", "riscv64", "ppc", "ppc64", "ppc64le", "s390x", "mips",
         "mipsel", "mips64")
FLAGS = ["-std=gnu11", "-O1", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fno-stack-protector",
         "-fno-ident", "-fno-sanitize=all", "-fno-unroll-loops", "-fno-vectorize", "-fno-optimize-sibling-calls",
         "-fasynchronous-unwind-tables", "-fno-omit-frame-pointer", "-g", "-gdwarf-4", "-fdebug-compilation-dir=.",
         "-Wall", "-Wextra", "-Werror", "-Wno-array-bounds",
         "-Wl,--build-id=none,-e,_start,-z,noexecstack,--image-base=0x400000,-z,max-page-size=4096"]


def targets() -> dict[str, tuple[str, ...]]:
    """Machine -> the compiler's flags for it."""
    spec = importlib.util.spec_from_file_location("programs_build", HERE.parent / "programs" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {name: module.TARGETS[name].flags for name in NAMES}


def main() -> None:
    """Build all, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something would change")
    check = parser.parse_args().check
    stale = []
    for name, flags in targets().items():
        kept = HERE / "bin" / f"{name}.elf"
        with tempfile.TemporaryDirectory() as folder:
            fresh = Path(folder) / "out"
            subprocess.run([sys.executable, "-m", "ziglang", "cc", *FLAGS, *flags, "cases.c", "-o", str(fresh)],
                           cwd=HERE, check=True)
            if not kept.exists() or kept.read_bytes() != fresh.read_bytes():
                stale.append(kept.name)
                if not check:
                    kept.write_bytes(fresh.read_bytes())
    print(f"different: {', '.join(stale)}" if stale else "unchanged")
    if check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
