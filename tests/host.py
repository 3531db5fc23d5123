"""Tests and host code, which may be turned off (KPROBES_HOST_CODE=0) or not to be had on this host.

`@pytest.mark.host_code` is for tests of what host code does: they are skipped without it. Tests of what holds either
way ask why_python() here where they want to know who serves an event's hits.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from warnings import catch_warnings, simplefilter

from kprobes.machine.unicorn.host import hostcode

#: what events and attached programs say where it is the only reason for Python
NO_HOST_CODE = "this machine runs no code of the host's at its call sites"


@cache
def host_code() -> bool:
    """True where tests may expect it, asked once: some tests turn it off, or on, for themselves."""
    with catch_warnings():
        simplefilter("ignore", hostcode.SlowHost)  # skipped tests say it too
        return hostcode.available()


def why_python(event: Any) -> str:
    """event.why_python; without host code every event has a reason, and is told here if it has another one."""
    if host_code():
        return str(event.why_python)
    assert event.why_python, "its hits cannot be served by programs"
    return "" if event.why_python == NO_HOST_CODE else str(event.why_python)
