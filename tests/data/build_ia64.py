"""Make ia64.txt from ia64.s: symbols and text. Needs ia64-linux-gnu-as, -nm and -objcopy (binutils 2.40)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(tools: str = "ia64-linux-gnu-") -> None:
    """tools: what the names of the programs start with."""
    with tempfile.TemporaryDirectory() as work:
        made, text = Path(work, "made.o"), Path(work, "text")
        subprocess.run([f"{tools}as", "-o", made, HERE / "ia64.s"], check=True)
        subprocess.run([f"{tools}objcopy", "-O", "binary", "-j", ".text", made, text], check=True)
        symbols = subprocess.run([f"{tools}nm", "-n", made], check=True, capture_output=True, text=True).stdout
        lines = [" ".join(line.split()[::2]) for line in symbols.splitlines()]
        code = text.read_bytes()
        lines += [code[at : at + 16].hex() for at in range(0, len(code), 16)]
        Path(HERE, "ia64.txt").write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
