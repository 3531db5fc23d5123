"""Programs compiled for Arm's 32-bit processors."""

from __future__ import annotations

from .._compiling import Compiling, Triple


def _reversed(code: bytes) -> bytes:
    """Reverse the bytes of each instruction.

    Objects for big-endian ARM have them big-endian until a linker turns them; the CPU's are
    little-endian.
    """
    return b"".join(code[at : at + 4][::-1] for at in range(0, len(code), 4))


ROWS = {
    "arm": Compiling(triple=Triple("armv7-none-eabi"), divides=0),
    "armeb": Compiling(triple=Triple("armebv7-none-eabi"), divides=0, finish=_reversed),
    "cortexm": Compiling(triple=Triple("thumbv7m-none-eabi"), mode=1),
}
