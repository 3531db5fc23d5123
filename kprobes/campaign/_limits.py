"""A limit for the memory that an item takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import BadArgument, Unsupported

#: No process has more bytes: rlim_t is signed where Python passes it on.
_MOST = (1 << 62) - 1


def check_limit(memory: int | None) -> None:
    """Check that `limited(memory)` can work, without limiting this process.

    Args:
        memory: bytes; None: no limit.

    Raises:
        BadArgument: `memory` is not positive, or more than _MOST.
        Unsupported: this system has no such limit.
    """
    if memory is None:
        return
    if not 1 <= memory <= _MOST:
        raise BadArgument(f"memory is {memory} bytes", hint=f"give 1 to {_MOST}, or None")
    if not sys.platform.startswith("linux"):
        raise Unsupported(
            f"{sys.platform} does not limit a process's memory", hint="leave `memory` out"
        )


@contextmanager
def limited(memory: int | None) -> Iterator[None]:
    """Limit the memory of this process inside a with block.

    What asks for more gets a MemoryError, in other threads, too: only for a worker process. The
    former limit is back at the end of the block.

    Args:
        memory: bytes beyond what the process has now; None: no limit. A lower limit that the
            process has already stays.
    """
    if memory is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + memory
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
