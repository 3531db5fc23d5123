"""Rebuild sdt.tar.xz and sdt_objects.tar.xz: `python tests/data/build_sdt.py` (pip install ziglang==0.17.0). sdt.c for
every target of the compiler, linked and not."""

from __future__ import annotations

from build_debug import build

PLAIN = ["-fno-asynchronous-unwind-tables"]

if __name__ == "__main__":
    build("sdt_objects.tar.xz", "sdt.c", {"-sdt.o": [*PLAIN, "-c"]})
    build("sdt.tar.xz", "sdt.c", {".elf": PLAIN})
