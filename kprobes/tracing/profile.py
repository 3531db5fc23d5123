"""The stacks that hits come from: folded stacks, speedscope's JSON, a flame graph."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from ..symbols import CONTROLS

if TYPE_CHECKING:
    from .trace import Trace

Folded = Mapping["tuple[str, ...]", int]  #: frames, outermost first -> how often


def folded(trace: Trace) -> dict[tuple[str, ...], int]:
    """Return stacks of functions with the number of hits that came from each.

    A stack begins with the outermost function and ends with the hit's event. The stack of a record
    without one is the probed function and the event.

    Returns:
        (names of the functions, outermost first, then the event's name) -> number of hits.
    """
    hits: dict[tuple[int, tuple[int, ...]], int] = {}
    for batch in trace.batches():
        # (where it is first, event and stack, hits)
        first: list[tuple[int, tuple[int, tuple[int, ...]], int]] = []
        for part in batch.parts:
            if part.stacks:
                places = dict(zip(reversed(part.stacks), reversed(part.places), strict=True))
                first += [
                    (places[stack], (part.event, stack), many)
                    for stack, many in Counter(part.stacks).items()
                ]
            elif part.places:
                first.append((part.places[0], (part.event, ()), len(part.places)))
        for _, key, many in sorted(first):
            hits[key] = hits.get(key, 0) + many
    found: Counter[tuple[str, ...]] = Counter()
    for (event, stack), many in hits.items():
        info = trace.events[event]
        found[_frames(trace, info.function, info.name, stack)] += many
    return dict(found)


def _frames(trace: Trace, function: str, event: str, stack: tuple[int, ...]) -> tuple[str, ...]:
    """Return a hit's frames by name, the outermost function first and the event last.

    Args:
        trace: names addresses.
        function: the event's, which stands for a stack that was not recorded.
        event: its name.
        stack: addresses, innermost first; () where none was recorded.
    """
    frames = [name.partition("+")[0] for name in reversed(trace.names(stack))] or [function]
    return (*frames, event)


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write the stacks of a trace.

    Args:
        trace: the records.
        file: an open text file.
        format: "folded" (a line `a;b;c 3` for each stack), "speedscope" or "svg" (a flame graph).
    """
    write_folded(folded(trace), file, format, "hits", trace.readable)


def write_folded(
    stacks: Folded, file: IO[str], format: str, unit: str, readable: Callable[[str], str]
) -> None:
    """Write stacks of functions, their names without control characters; in "folded", a `;` in a
    name becomes a colon.

    Args:
        stacks: names of functions, outermost first -> weight.
        file: an open text file.
        format: "folded", "speedscope" or "svg".
        unit: what weights count, such as "hits".
        readable: returns a function's name as it is shown.
    """
    shown = Counter[tuple[str, ...]]()
    for frames, weight in stacks.items():
        shown[tuple([readable(frame).translate(CONTROLS) for frame in frames])] += weight
    stacks = shown
    if format == "folded":
        file.writelines(
            f"{';'.join(frame.replace(';', ':') for frame in frames)} {weight}\n"
            for frames, weight in sorted(stacks.items())
        )
    elif format == "speedscope":
        json.dump(speedscope(stacks, unit), file)
        file.write("\n")
    else:
        from .flame import flame_graph

        file.write(flame_graph(stacks, unit))


def speedscope(stacks: Folded, unit: str) -> dict[str, Any]:
    """Return stacks in speedscope's file format: one sampled profile.

    Args:
        stacks: names of functions, outermost first -> their weight.
        unit: what weights count, such as "hits"; it becomes the profile's name.
    """
    names = {
        name: n
        for n, name in enumerate(dict.fromkeys(name for frames in stacks for name in frames))
    }
    weights = list(stacks.values())
    profile = {
        "type": "sampled",
        "name": unit,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[names[name] for name in frames] for frames in stacks],
        "weights": weights,
    }
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": "kprobes",
        "exporter": "kprobes",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": [profile],
    }
