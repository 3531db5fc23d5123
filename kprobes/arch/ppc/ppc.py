"""PowerPC, 32 bit, big endian: `ppc`. The rows are in rows.py."""

from __future__ import annotations

import re
from functools import partial

from .._addresses import following
from .._base import Abi, Files, Order, OutOfLine, Results, Walking
from .._decode import DecodeTable, fixed_width
from . import addresses
from .rows import R, powerpc, rows

OPENS = re.compile(rb"\x94\x21[\x80-\xff][\s\S]|\x7c\x08\x02\xa6")  #: stwu r1, -n(r1); mflr r0
PPC = powerpc(
    32, Order.BIG, fixed_width(DecodeTable(rows(0xFFFFFFFF, Order.BIG)), "big"), name="ppc",
    max_insn=4,
    out_of_line=OutOfLine(max_displaced=12),
    walking=Walking(opens={0: OPENS}, follow=following(partial(addresses.use, Order.BIG), 32)),
    files=Files(machines=((20, 32, "big"),)),
    # System V ABI, PowerPC supplement: back chain and LR save word, then the arguments
    abi=Abi(args=R[3:11], returns=("r3", "r4"), char_signed=False, results=Results(registers=0, memory=8),
            stack_args=8, reserve=8),
)  # fmt: skip

ARCHES = (PPC,)
