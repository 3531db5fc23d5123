"""The files of /sys/kernel/debug/kprobes: list, blacklist."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..patch.arming import Arming
from ..patch.probepoint import Probepoint
from ..probe import is_off


@frozen(kw_only=True)
class Listed:
    """A registered probe, as the file `list` shows it.

    Attributes:
        address: address of the probepoint.
        type: "k" (kprobe), "r" (return probe) or "j" (jprobe).
        symbol: name of the function; "" where unknown.
        offset: bytes from its start.
        module: name of the image that it is in; "" where unknown.
        flags: those of "GONE", "DISABLED" and "OPTIMIZED" that hold.
        nmissed: number of hits that were missed.
        nhit: number of hits.
    """

    address: int
    type: str
    symbol: str
    offset: int
    module: str
    flags: tuple[str, ...]
    nmissed: int
    nhit: int


def records(points: Iterable[Probepoint]) -> list[Listed]:
    """Return a record of each probe, by address; at one address the newest first."""
    out = []
    for point in sorted(points, key=lambda p: p.address):
        for probe in point.probes:
            flags = []
            if probe.gone or point.state is Arming.GONE:
                flags.append("GONE")
            elif is_off(probe):
                flags.append("DISABLED")
            if point.optimized:
                flags.append("OPTIMIZED")
            missed = getattr(probe, "nmissed", 0)
            out.append(
                Listed(
                    address=point.address,
                    type=probe.family,
                    symbol=point.symbol,
                    offset=point.offset,
                    module=point.module,
                    flags=tuple(flags),
                    nmissed=missed,
                    nhit=probe.nhit,
                )
            )
    return out


def format_list(listed: Iterable[Listed]) -> str:
    """Return the text of the debugfs `list` file.

    A line has address, type, symbol+offset, module (a blank where there is none) and flags; without
    a symbol: address, type, address and flags.

    Args:
        listed: a record for each line.
    """
    lines = []
    for p in listed:
        place = f"0x{p.address:x}"
        if p.symbol:
            place = f"{p.symbol}+0x{p.offset:x}  {p.module or ' '}"
        flags = "".join(f"[{flag}]" for flag in p.flags)
        lines.append(f"{p.address:016x}  {p.type}  {place} {flags}\n")
    return "".join(lines)


def format_blacklist(entries: Iterable[tuple[int, int, str]]) -> str:
    """Return the text of the debugfs `blacklist` file.

    Args:
        entries: (start, end, name) for each line; where the name is "" the start stands for it.
    """
    return "".join(
        f"0x{start:016x}-0x{end:016x}\t{name or f'0x{start:x}'}\n" for start, end, name in entries
    )
