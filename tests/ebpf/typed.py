"""Guests with debug information: builds of tests/data/debug.c, see tests/data/build_debug.py."""

from __future__ import annotations

import tarfile
from pathlib import Path

from kprobes import UnicornMachine


def _read() -> dict[str, bytes]:
    with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "debug.tar.xz") as archive:
        files = ((m.name, archive.extractfile(m)) for m in archive.getmembers())
        return {name.removesuffix(".elf"): file.read() for name, file in files if file is not None}


FILES = _read()


def load(name: str) -> UnicornMachine:
    """A machine with one of them."""
    return UnicornMachine.load(FILES[name], name=name, arch="cortexm" if name.startswith("cortexm") else None)
