"""A limit for the memory that an item takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import Unsupported


@contextmanager
def limited(memory: int | None) -> Iterator[None]:
    """Let this process have no more than so many bytes beyond what it has. None: no limit.

    Raises:
        Unsupported: this system has no such limit.
    """
    if memory is None:
        yield
        return
    if not sys.platform.startswith("linux"):
        raise Unsupported(f"{sys.platform} does not limit a process's memory", hint="leave `memory` out")
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
