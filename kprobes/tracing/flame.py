"""A flame graph as SVG: one picture, no script needed; pointing at a frame shows its weight."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from html import escape

from attrs import Factory, define

WIDTH = 1200
ROW = 18
LETTER = 7.2
NARROWEST = 0.3  #: pixels of the narrowest frame that is drawn


@define
class FlameFrame:
    """A box of a flame graph: a function, called by the same callers.

    Attributes:
        name: of the function.
        weight: that of the function and of what it calls.
        inner: the functions that it calls here: name -> box.
    """

    name: str
    weight: int = 0
    inner: dict[str, FlameFrame] = Factory(dict)


def flame_graph(stacks: Mapping[tuple[str, ...], int], unit: str) -> str:
    """Return a flame graph as the text of an SVG file.

    Args:
        stacks: names of functions, outermost first -> weight.
        unit: what weights count, such as "hits"; it is shown beside each weight.
    """
    root = FlameFrame("all")
    for frames, weight in sorted(stacks.items()):
        frame = root
        frame.weight += weight
        for name in frames:
            frame = frame.inner.setdefault(name, FlameFrame(name))
            frame.weight += weight
    drawn = list(_boxes(root))
    height = ROW * (max((depth for _, depth, _, _ in drawn), default=0) + 2)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 '
        f'{WIDTH} {height}" font-family="monospace" font-size="12">\n'
    )
    return (
        head
        + "".join(
            _box(frame, height - ROW * (depth + 1), x, width, root.weight, unit)
            for frame, depth, x, width in drawn
        )
        + "</svg>\n"
    )


def _boxes(root: FlameFrame) -> Iterator[tuple[FlameFrame, int, float, float]]:
    """Yield (frame, depth, left edge, width) of each frame that is NARROWEST or wider.

    Depth is 0 for `root`; edges and widths are in pixels. What is inside a narrower frame is left
    out, too.
    """
    todo: list[tuple[FlameFrame, int, float]] = [(root, 0, 0.0)]
    while todo:
        frame, depth, x = todo.pop()
        width = WIDTH * frame.weight / max(root.weight, 1)
        if width < NARROWEST:
            continue
        yield frame, depth, x, width
        for inner in frame.inner.values():
            todo.append((inner, depth + 1, x))
            x += WIDTH * inner.weight / max(root.weight, 1)


def _box(frame: FlameFrame, y: int, x: float, width: float, total: int, unit: str) -> str:
    """Return the SVG of one frame, with its name, weight and share of the total as a tip.

    The name that stands in the box is cut to its width, and left out where fewer than three letters
    fit.

    Args:
        frame: the function and its weight.
        y: top edge, in pixels.
        x: left edge, in pixels.
        width: of the box, in pixels.
        total: weight of the whole graph, which the percentage is of.
        unit: of weights.
    """
    hue = zlib.crc32(frame.name.encode("utf-8", "backslashreplace")) % 55
    share = 100 * frame.weight / max(total, 1)
    title = escape(f"{frame.name}: {frame.weight} {unit}, {share:.1f}%".translate(_NO_CONTROLS))
    letters = int((width - 4) / LETTER)
    text = escape(frame.name[:letters].translate(_NO_CONTROLS)) if letters >= 3 else ""
    return (
        f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{ROW - 1}" rx="2" fill="hsl({hue},80%,65%)"/><text x="{x + 3:.1f}" '
        f'y="{y + ROW - 5}">{text}</text></g>\n'
    )


_NO_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32)], "?")
