"""Python's cyclic collector, which has nothing to find while a file is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector where hundreds of thousands of objects are made that all stay: it would
    walk over them again and again, for a third of the time that a large library takes.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
