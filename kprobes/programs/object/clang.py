"""From C to an object, by the clang that ziglang brings."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ...errors import ProgramError

INCLUDE: Final = Path(__file__).resolve().parent.parent / "include"
#: seconds that a compilation may take
TIMEOUT: Final = 120
#: lines of the compiler's that an error shows
LINES: Final = 24
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*[.]c")
_FLAGS: Final = (
    "-O2",
    "-g",
    "-mcpu=v3",
    "-fno-stack-protector",
    "-Wall",
    "-Wno-unused-function",
    "-fdebug-compilation-dir=.",
    "-I",
    str(INCLUDE),
    "-c",
)


@lru_cache(maxsize=64)
def compiled(text: str, name: str, include: tuple[str, ...] = ()) -> bytes:
    """Compile C to a BPF object, and return the object's bytes; kept for the last 64 sources.

    Args:
        text: the source.
        name: name of its file, for messages.
        include: absolute paths of folders with other headers.

    Raises:
        ProgramError: the source does not compile (with what clang says), ziglang is not installed,
            or the compiler does not run or takes more than TIMEOUT seconds.
    """
    if find_spec("ziglang") is None:
        raise ProgramError(
            "C needs a compiler, and ziglang is not installed",
            program=name,
            hint="pip install 'kprobes[jit]', or compile it elsewhere and use from_elf",
        )
    target = "bpfel" if sys.byteorder == "little" else "bpfeb"
    with tempfile.TemporaryDirectory(prefix="kprobes-") as place:
        source = Path(place, name if _FILE.fullmatch(name) else "program.c")
        out = Path(place, "program.o")
        source.write_bytes(text.encode(errors="surrogateescape"))
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "clang",
            "-target",
            target,
            *_FLAGS,
            *(word for folder in include for word in ("-I", folder)),
            source.name,
            "-o",
            out.name,
        ]
        try:
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProgramError(f"the compiler did not run: {error}", program=name) from None
        if done.returncode or not out.exists():
            said = done.stderr.strip().splitlines()
            more = ["..."] if len(said) > LINES else []
            raise ProgramError("\n".join(["does not compile:", *said[:LINES], *more]), program=name)
        return out.read_bytes()
