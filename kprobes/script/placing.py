"""Where a script's probes go: attach points to addresses of the guest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


from .compiler import Front
from .inference import TypedProbe
from .points import Point
from .world import World

if TYPE_CHECKING:
    from ..core.kprobes import Kprobes
    from ..programs.program import Program
    from .script import Script

#: kinds of probes that need no guest
OUTSIDE = ("begin", "end", "self", "interval", "profile", "test", "bench")


def placed(front: Front, kprobes: Kprobes | None, world: World) -> list[TypedProbe]:
    """The blocks of a script with attach points that exist.

    Errors go to `front.found`.
    """
    out = list[TypedProbe]()
    for probe, points in zip(front.script.probes, front.points, strict=True):
        groups: dict[Any, list[Point]] = {}
        for point in points:
            if point.kind in OUTSIDE:
                groups.setdefault(point.kind, []).append(point)
            elif kprobes is None:
                front.found.error(f"{point.text}: there is no guest that could be probed", point.span,
                                  "give a guest, or use begin, interval and end probes only")
            else:
                groups.setdefault(point.kind, []).append(point)
        out += [TypedProbe(probe, group) for group in groups.values()]

    return out


def attach(script: Script, kprobes: Kprobes, probe: TypedProbe, program: Program, clock: Any,
           engine: str | None) -> None:
    """Put a program at all its attach points in the guest."""
