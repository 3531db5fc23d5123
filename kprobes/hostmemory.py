"""Memory of this process for others than Python: the guest's, and that of programs."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from typing import Final

#: bytes that come in small pages: most buffers of records are never used beyond them
SMALL: Final = 1 << 21


def zeroed(size: int, filled: bool = False) -> mmap.mmap:
    """Return new memory of zeros that is private: a process that is forked has its own.

    Args:
        size: number of bytes.
        filled: True: the memory will be filled from the start towards the end. Of more than twice
            SMALL, what lies behind the first SMALL bytes then comes in huge pages, where the system
            has them: a small page takes 2 us when it is first touched, 40 ns for each record of 64
            bytes; a huge one 3.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    huge = getattr(mmap, "MADV_HUGEPAGE", None)
    if filled and huge is not None and size > 2 * SMALL:
        with suppress(OSError):  # a kernel built without
            memory.madvise(huge, SMALL)
    return memory
