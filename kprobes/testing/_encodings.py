"""Makes random instructions of an architecture, most of them valid."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..arch._base import Arch
from ._cases import CaseFile


def encodings(rng: random.Random, arch: Arch, file: CaseFile) -> Iterator[tuple[bytes, int]]:
    """Yield random instructions without end, most of them valid: (code, mode bits).

    Of eight, seven are a case with one to six bits changed, and one is random bytes.

    Args:
        rng: source of random numbers.
        arch: the architecture; random bytes are as long as its longest instruction.
        file: the cases to begin with.
    """
    while True:
        case = rng.choice(file.cases)
        code = bytearray(case.code)
        kind = rng.randrange(8)
        if kind == 0:
            code = bytearray(rng.randbytes(arch.max_insn))
        else:
            for _ in range(rng.choice((1, 1, 2, 3, 6))):
                bit = rng.randrange(8 * len(code))
                code[bit // 8] ^= 1 << bit % 8
        yield bytes(code), case.mode
