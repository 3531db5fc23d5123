"""Programs compiled for SPARC."""

from __future__ import annotations

from .._compiling import Compiling, Triple

#: code that keeps to its caller's window: LLVM makes such of functions that call nothing and use
#: neither locals nor outs; see _flat()
FLAT = ",".join(["+reserve-g5", *(f"+reserve-l{n}" for n in range(8)),
                 *(f"+reserve-o{n}" for n in range(6))])
MOV_O7_G5 = bytes.fromhex("8a10000f")
RETL = bytes.fromhex("81c3e008")
JMP_G5 = bytes.fromhex("81c16008")


def _flat(code: bytes) -> bytes:
    """Change LLVM's code of a function so that it returns by %g5.

    LLVM takes %o7 for a register like others there, and leaves %g5 alone.
    """
    words = [code[at : at + 4] for at in range(0, len(code), 4)]
    return MOV_O7_G5 + b"".join(JMP_G5 if word == RETL else word for word in words)


ROWS = {"sparc": Compiling(triple=Triple("sparc-unknown-elf", "v8"), shifts=32),
        "sparc64": Compiling(triple=Triple("sparcv9-unknown-elf", "", FLAT), finish=_flat)}
