"""Memory that a stub says cannot be written as it is: GDB's manual, "Memory Map Format"."""

from __future__ import annotations

from xml.etree import ElementTree

from .breakpoints import Spans
from .target import EndlessObject, RemoteTarget


def unwritable(target: RemoteTarget) -> Spans:
    """Ask the stub for its memory map, and return (start, end) of each ROM and flash in it.

    The result is () where the stub has no memory map, or one that is no XML, has entities, has an
    address or size that is no number, or has 1 MiB and more: breakpoints are then tried.

    Raises:
        RemoteError: the connection is lost.
    """
    if target.features.get("qXfer:memory-map:read") != "+":
        return ()
    try:
        text = target.transfer("memory-map")
    except EndlessObject:
        return ()
    if not text or b"<!ENTITY" in text:
        return ()
    try:
        places = [
            (int(element.get("start", ""), 0), int(element.get("length", ""), 0))
            for element in ElementTree.fromstring(text).iter("memory")
            if element.get("type") in ("rom", "flash")
        ]
    except (ElementTree.ParseError, ValueError):
        return ()
    return tuple((start, start + length) for start, length in places)
