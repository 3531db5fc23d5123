"""The version of Unicorn, by its library: a binding may say otherwise, and its modules differ."""

from __future__ import annotations

from typing import Any

import unicorn

from ...errors import Unsupported

OLDEST = (2, 1, 4)


def library() -> Any:
    """Return Unicorn's C library as the binding has loaded it."""
    try:
        from unicorn.unicorn_py3.unicorn import uclib
    except ImportError:  # before 2.1
        from unicorn.unicorn import _uc as uclib
    return uclib


def version() -> tuple[int, int, int]:
    """Return the version of the engine's library: major, minor, patch."""
    number = int(library().uc_version(None, None))
    return number >> 24 & 0xFF, number >> 16 & 0xFF, number >> 8 & 0xFF


def check_version() -> None:
    """Check that the engine is not too old.

    Raises:
        Unsupported: it is older than OLDEST.
    """
    found = version()
    if found < OLDEST:
        raise Unsupported(
            f"Unicorn {_text(found)} is too old: its registers and its errors are other ones (the "
            f"binding is {unicorn.__version__})",
            hint=f"install unicorn {_text(OLDEST)} or newer",
        )


def _text(numbers: tuple[int, int, int]) -> str:
    """Return version numbers as text, as "2.1.4"."""
    return ".".join(map(str, numbers))
