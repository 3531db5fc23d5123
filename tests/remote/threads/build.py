"""Builds the program of threads for every architecture that takes turns, those of children, other threads and tasks for
some: static, with the C library that zig brings, which is built first: some two minutes for each architecture.
`python build.py [ARCH ...]`; needs llvm-objcopy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = {
    "x86_64": "x86_64-linux-musl", "i386": "x86-linux-musl", "arm64": "aarch64-linux-musl",
    "arm64be": "aarch64_be-linux-musl", "arm": "arm-linux-musleabihf", "armeb": "armeb-linux-musleabihf",
    "riscv32": "riscv32-linux-musl", "riscv64": "riscv64-linux-musl", "loongarch64": "loongarch64-linux-musl",
    "s390x": "s390x-linux-musl", "mips": "mips-linux-musleabi", "mipsel": "mipsel-linux-musleabi",
    "mips64": "mips64-linux-muslabi64", "mips64el": "mips64el-linux-muslabi64", "ppc": "powerpc-linux-musleabi",
    "ppc64": "powerpc64-linux-musl", "ppc64le": "powerpc64le-linux-musl"}
MORE = dict.fromkeys(("arm", "armeb"), ("-marm",))  #: detours are not written for Thumb
CHILDREN = {"x86_64", "i386", "arm64", "arm", "riscv64", "s390x", "mipsel", "ppc64le"}
OTHERS = {"x86_64", "arm64", "riscv64"}
TASKS = {"x86_64", "arm64", "riscv64", "mips"}

for name in sys.argv[1:] or TARGETS:
    sources = [HERE / "threads.c"]
    if name in CHILDREN:
        sources.append(HERE.parent / "children" / "children.c")
    if name in OTHERS:
        sources.append(HERE.parent / "other_threads" / "others.c")
    if name in TASKS:
        sources.append(HERE.parent / "tasks" / "tasks.c")
    for source in sources:
        made = source.with_name(f"{name}.elf")
        subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[name], *MORE.get(name, ()), "-O1",
                        "-static", "-o", made, source], check=True)
        subprocess.run(["llvm-objcopy", "--strip-debug", made], check=True)
