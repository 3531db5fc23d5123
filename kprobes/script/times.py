"""Points in time as `strftime()`, `time()` and time series print them."""

import time

_BILLION = 1_000_000_000
_UNKNOWN = "(?)"
#: The longest text that `time()` prints, in bytes, as in bpftrace: its buffer is 64 with a NUL.
LONGEST = 63


def strftime(format: str, nanoseconds: int) -> str:
    """Return a point in time as `strftime()` of scripts does, in the host's time zone; `(?)` where
    the text is empty.

    Args:
        format: a format of C's strftime, with %f for microseconds, %l for milliseconds and %k for
            nanoseconds.
        nanoseconds: since 1970. The first second of 1970 prints as `(?)`, as in bpftrace.
    """
    seconds, rest = divmod(nanoseconds, _BILLION)
    if not seconds:
        return _UNKNOWN
    format = format.replace("%f", f"{rest // 1000:06}")
    format = format.replace("%k", f"{rest:09}").replace("%l", f"{rest // 1_000_000:03}")
    return time.strftime(format, time.localtime(seconds)) or _UNKNOWN


def time_of_day(format: str, seconds: float) -> str | None:
    """Return what `time()` prints, or None where the text is empty or too long.

    Args:
        format: a format of C's strftime.
        seconds: since 1970.
    """
    text = time.strftime(format, time.localtime(seconds))
    return text if 0 < len(text.encode("utf-8", "surrogateescape")) <= LONGEST else None
