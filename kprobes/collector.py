"""Python's cyclic collector, which has nothing to find while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 50_000  #: young objects over which the collector walks for some milliseconds


def put_among_old() -> None:
    """Move all objects into the collector's oldest generation, if very many young ones were made.

    Otherwise the collector's next look at young objects walks over all that have been made while it
    was paused. A later full collection finds what is garbage. Nothing is done where the caller of
    this package has frozen objects (gc.freeze), which this would thaw.
    """
    # the second one counts by walking over all that are frozen, a million in our own tests
    if gc.get_count()[0] < _MANY or gc.get_freeze_count():
        return
    gc.freeze()
    gc.unfreeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic collector inside a with block, where very many objects are made that all
    stay.

    The collector would walk over them again and again, for a third of the time that a large library
    takes. At the end put_among_old() is called, and the collector is on again. Nothing is done
    where it is off already.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        put_among_old()
        gc.enable()
