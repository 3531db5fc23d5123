"""Rebuild sdt.tar.xz and sdt_objects.tar.xz: `python tests/data/build_sdt.py` (pip install ziglang==0.17.0). sdt.c for
every target of the compiler, linked and not."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from build_debug import FLAGS, HERE, TARGETS, build

UNLINKED = {"sdt": ["-fno-asynchronous-unwind-tables"]}


def main() -> None:
    build("sdt_objects.tar.xz", UNLINKED, ".o", ["-c"], "sdt.c")
    with tempfile.TemporaryDirectory() as directory, tarfile.open(HERE / "sdt.tar.xz", "w:xz") as archive:
        for name, target in TARGETS.items():
            out = Path(directory, f"{name}.elf")
            command = [sys.executable, "-m", "ziglang", "cc", "-target", *target, *FLAGS,
                       "-fno-asynchronous-unwind-tables", "sdt.c", "-o", str(out)]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[:2]}")
                continue
            data = out.read_bytes()
            info = tarfile.TarInfo(out.name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            print(f"{out.name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
