"""Builds a program of two threads without a C library, for architectures whose threads do not take turns:
`python build.py [ARCH ...]`. Needs Debian's gcc cross compilers, of the release in tests/programs/build.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = {
    "alpha": ("alpha-linux-gnu-gcc", "-mcpu=ev67", "-Wl,-z,max-page-size=8192"),
    "m68k": ("m68k-linux-gnu-gcc", "-m68040"),
    "parisc": ("hppa-linux-gnu-gcc", "-march=1.1", "-Wl,--defsym=$global$=0"),
    "sh4": ("sh4-linux-gnu-gcc", "-m4", "-ml"),
    "sh4eb": ("sh4-linux-gnu-gcc", "-m4", "-mb", "-Wl,-mshlelf_linux,-EB"),
    "sparc": ("sparc64-linux-gnu-gcc", "-m32", "-mcpu=leon3"),
    "sparc64": ("sparc64-linux-gnu-gcc", "-m64", "-mcpu=v9", "-mno-fpu", "-Wl,-z,max-page-size=8192"),
}
FLAGS = ("-std=gnu11", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fno-stack-protector",
         "-fno-asynchronous-unwind-tables", "-fno-ident", "-g0", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-pie",
         "-no-pie", "-Wl,--build-id=none", "-Wl,-e,_start", "-Wl,-z,noexecstack", "-Wl,-Ttext-segment=0x400000")

for name in sys.argv[1:] or TARGETS:
    compiler, *flags = TARGETS[name]
    subprocess.run([compiler, *flags, *FLAGS, "-o", HERE / f"{name}.elf", HERE / "threads.c"], check=True)
