"""docs/cost.svg: a dot per architecture and kind of probe, on a logarithmic axis whose 1 is the raw hook."""

from __future__ import annotations

import math

from report import KINDS, Results, by_name

SHOWN = {"k": "#777777", "b": "#0072b2", "j": "#e69f00", "o": "#009e73", "c": "#d55e00"}  #: kind of probe -> its colour
LOW, HIGH = 0.01, 3.0
LEFT, TOP, WIDTH, STEP = 110, 74, 560, 19
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)


def across(ratio: float) -> float:
    """Where a ratio is."""
    kept = min(max(ratio, LOW), HIGH)
    return LEFT + WIDTH * math.log(kept / LOW) / math.log(HIGH / LOW)


def words(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    """A piece of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{text}</text>'


def svg(results: Results) -> str:
    """The picture."""
    bottom = TOP + STEP * len(results["architectures"])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {bottom + 44}" '
           'font-family="sans-serif" font-size="12">',
           # on a dark page light and dark change places, and colours stay
           "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(.93) hue-rotate(180deg) } }</style>",
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           words(LEFT, 20, "A hit, against a raw engine hook that does the same",
                 more=' font-size="15" font-weight="bold"')]
    for number, (kind, colour) in enumerate(SHOWN.items()):
        x = LEFT + number * WIDTH / len(SHOWN)
        out += [f'<circle cx="{x + 5:.1f}" cy="42" r="4.5" fill="{colour}"/>',
                words(x + 14, 46, f"{kind}: {KINDS[kind].split(':')[0]}")]
    for tick in TICKS:
        colour, broad = ("#000000", 1.5) if tick == 1 else ("#dddddd", 1)
        out += [f'<line x1="{across(tick):.1f}" y1="{TOP - 8}" x2="{across(tick):.1f}" y2="{bottom}" '
                f'stroke="{colour}" stroke-width="{broad}"/>',
                words(across(tick), bottom + 16, f"{tick:g}", "middle")]
    out.append(words(LEFT + WIDTH / 2, bottom + 36,
                     "ratio of the costs (two arguments read; c: nothing done); left of 1 is faster", "middle"))
    for number, arch in enumerate(results["architectures"]):
        out += line(results, arch, TOP + STEP * number + STEP / 2)
    return "\n".join([*out, "</svg>\n"])


def line(results: Results, arch: str, y: float) -> list[str]:
    """An architecture's name and dots."""
    out = [words(LEFT - 10, y + 4, arch, "end")]
    for kind, colour in SHOWN.items():
        ratio = by_name(results, arch)["c" if kind == "c" else f"{kind}, two arguments"].get("ratio")
        if ratio is not None:
            out.append(f'<circle cx="{across(ratio):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{arch}, {kind}: '
                       f'{ratio}</title></circle>')
    return out
