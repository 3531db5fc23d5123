"""Between the engine and its translators: no block of more than MOST instructions is translated at
once.

A translator has 512 temporaries, and room for 512 instructions (on MIPS for 341). It counts
neither: some instructions never give their temporaries back, and what comes behind the last of them
is the translator's own. So a long straight line of code would kill the process, wherever it comes
from: a file, the guest, an engine's owner. The engine's library calls each guest's translator
through its own table of functions, by a name that it exports; there a function of the library's
stands in between, and lowers the number of instructions that is asked for. This is so for every
engine of the process from the first machine on. Blocks that are cut are chained by the engine, as
at a page's end.
"""

from __future__ import annotations

import ctypes
from functools import cache

from . import hostcode
from .library import GUESTS, called

MOST = 64  # instructions of a block; see docs/engine.md for what they take
#: the engine's function by which a translator reads instructions -> (our function that takes its
#: place, our variable that keeps the address of the engine's)
READING = {
    "cpu_ldl_code_sparc": ("read_sparc", "sparc_instruction"),
    "cpu_ldl_code_sparc64": ("read_sparc64", "sparc64_instruction"),
    "cpu_lduw_code_m68k": ("read_m68k", "m68k_word"),
    "cpu_lduw_code_s390x": ("read_s390x", "s390x_half"),
}
NAMES = [f"gen_intermediate_code{'' if guest == 's390x' else f'_{guest}'}" for guest in GUESTS]


@cache
def bounded(most: int = MOST) -> bool:
    """Put functions of the host's library between the engine and its translators, for every engine
    of this process.

    From then on no block of more than `most` instructions is translated at once. And where a
    translator would end the process at an instruction (a reserved one, mostly), the translator
    reads an undefined instruction instead. A second call with the same `most` does nothing.

    Args:
        most: instructions that a block has at most.

    Returns:
        True: it is done. False: it cannot be done: there is no host code, or the engine's library
        is made otherwise than expected.
    """
    if not hostcode.available():
        return False
    try:
        functions = called()
        places = functions.places(NAMES)
        reading = functions.places([*READING])
    except (AttributeError, ValueError, OSError):
        return False
    words = (ctypes.c_uint64 * (2 * len(NAMES))).from_address(hostcode.address("translators"))
    ours = (ctypes.c_uint64 * len(NAMES)).from_address(hostcode.address("translate"))
    for n, place in enumerate(places):
        words[2 * n] = functions.originals[place]
        words[2 * n + 1] = most
        functions.put(place, ours[n])
    for place, (read, theirs) in zip(reading, READING.values(), strict=True):
        ctypes.c_uint64.from_address(hostcode.address(theirs)).value = functions.originals[place]
        functions.put(place, hostcode.address(read))
    return True
