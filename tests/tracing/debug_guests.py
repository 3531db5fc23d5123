"""debug.c's builds: see tests/data/build_debug.py."""

from __future__ import annotations

import tarfile
from pathlib import Path

from kprobes import UnicornMachine

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "debug.tar.xz"


def _read() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {m.name.removesuffix(".elf"): archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]


FILES = _read()  #: "ARCH-eh" (.eh_frame, DWARF 5) and "ARCH-df" (.debug_frame, DWARF 4) -> the file; SPARC's are objects


def load(name: str) -> UnicornMachine:
    """A machine with one of them."""
    return UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None)
