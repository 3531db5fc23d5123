"""The frame of every page: title, facts, warnings, tabs, legends, themes; the text of a page that
needs no other file.

For a page of HTML of one's own (coverage, reports):

    page("Trials of demo", [ChartView(key="trials", title="Trials", body="<table>...</table>")],
         facts=["92 % of 1,204 trials"], style="td.hit { background: var(--good) }")

`body` and `style` are trusted: escape what comes of a guest or a file with `escaped`. Colours are
variables that both themes have: --ink, --muted, --line, --panel, --ground, --accent; --good, --bad,
--warn are grounds for --ink.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from attrs import frozen

from ..controls import CONTROLS

#: name of a chart's script in scripts/ -> the libraries that it uses, of libraries/
CHARTS: Mapping[str, tuple[str, ...]] = {
    "flame": (),
    "timeline": ("d3",),
    "heat": ("d3",),
    "histogram": ("uplot",),
    "callgraph": ("d3", "dagre"),
    "coverage": (),
}
#: library -> what it is called, and its licence
LIBRARIES = {
    "d3": "d3-scale 4.0.3, d3-scale-chromatic 3.1.1, d3-zoom 3.0.1, d3-selection 3.0.1 (ISC)",
    "dagre": "dagre 3.1.3 (MIT)",
    "uplot": "uPlot 1.6.32 (MIT)",
}
#: browsers load nothing from anywhere
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
HEIGHT = 640  #: pixels of a page in a notebook
_TEXT = {code: shown for code, shown in CONTROLS.items() if chr(code) not in "\t\n"}


@frozen(kw_only=True)
class ChartView:
    """A tab of a page.

    Attributes:
        key: the tab's name in the page's address (`x.html#flame`).
        title: what the tab is called.
        chart: name of the script that draws `data`, one of CHARTS; "": none.
        data: what the script draws: anything that JSON has.
        body: trusted HTML that stands above the chart.
        legend: (CSS colour or variable, words) of each entry.
    """

    key: str
    title: str
    chart: str = ""
    data: Any = None
    body: str = ""
    legend: Sequence[tuple[str, str]] = ()


@frozen(repr=False)
class Picture:
    """A page that notebooks show, in a frame of its own.

    Attributes:
        html: the text of the page.
    """

    html: str

    def __repr__(self) -> str:
        return (
            f"<Picture of {len(self.html):,} characters: save(path), or the last line of a "
            "notebook's cell>"
        )

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="kprobes" '
            f'style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file as HTML. Raises OSError."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)


def escaped(text: object) -> str:
    """Return a text of a guest or a file escaped for HTML, its control characters made visible.

    Args:
        text: the text; another object is turned into one by str().
    """
    return escape(str(text).translate(_TEXT))


def page(
    title: str,
    views: Sequence[ChartView],
    *,
    facts: Sequence[str] = (),
    warnings: Sequence[str] = (),
    style: str = "",
) -> str:
    """Return the HTML of a page, which needs no other file.

    Args:
        title: title of the page: what was recorded.
        views: what the page shows, a tab for each; a single view has no tab.
        facts: short texts that stand below the title: numbers of records, clocks.
        warnings: texts about what was lost or left out, which stand out.
        style: CSS that is added; it is trusted.
    """
    charts = list(dict.fromkeys(view.chart for view in views if view.chart))
    libraries = list(dict.fromkeys(name for chart in charts for name in CHARTS[chart]))
    styles = [
        _file("page.css"),
        *(_file(f"libraries/{name}.css") for name in libraries if name == "uplot"),
        style,
    ]
    scripts = [
        *(_file(f"libraries/{name}.js") for name in libraries),
        _file("page.js"),
        *(_file(f"scripts/{name}.js") for name in charts),
        "kp.start();",
    ]
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{escaped(title)}</title>\n",
            *(f"<style>\n{text}\n</style>\n" for text in styles if text),
            f"</head><body>\n{_head(title, facts, warnings)}{_tabs(views)}<main>\n",
            *map(_section, views),
            f"</main>\n{_foot(libraries)}",
            *(f"<script>\n{text}\n</script>\n" for text in scripts),
            "</body></html>\n",
        )
    )


def _head(title: str, facts: Sequence[str], warnings: Sequence[str]) -> str:
    """Return a page's header as HTML: title, list of facts, warnings. All texts are escaped."""
    shown = "".join(f"<li>{escaped(fact)}</li>" for fact in facts)
    lost = "".join(
        f'<p class="warning" role="note">{escaped(warning)}</p>\n' for warning in warnings
    )
    return (
        f'<header><div class="title"><h1>{escaped(title)}</h1><button id="theme" type="button" '
        'title="Light or dark (t)">Theme</button></div>\n<ul '
        f'class="facts">{shown}</ul>\n{lost}</header>\n'
    )


def _tabs(views: Sequence[ChartView]) -> str:
    """Return the tabs that choose a view, as HTML; "" where there is only one view."""
    if len(views) < 2:
        return ""
    tabs = "".join(
        f'<button role="tab" id="tab-{view.key}" aria-controls="{view.key}" type="button">'
        f"{escaped(view.title)}</button>"
        for view in views
    )
    return f'<nav role="tablist" aria-label="Pictures">{tabs}</nav>\n'


def _section(view: ChartView) -> str:
    """Return one view as HTML: its title, body and legend, and the data that its chart draws."""
    entries = "".join(
        f'<li><i style="background:{escape(colour)}"></i>{escaped(words)}</li>'
        for colour, words in view.legend
    )
    legend = f'<ul class="legend">{entries}</ul>\n' if entries else ""
    data = (
        ""
        if not view.chart
        else '<div class="chart"></div><script '
        f'type="application/json">{_json(view.data)}</script>\n'
    )
    return (
        f'<section id="{view.key}" data-chart="{view.chart}" role="tabpanel" '
        f'aria-label="{escaped(view.title)}">'
        f"<h2>{escaped(view.title)}</h2>\n{view.body}{legend}{data}</section>\n"
    )


def _foot(libraries: Sequence[str]) -> str:
    """Return a page's footer as HTML: a hint at keys, and the libraries' licences."""
    texts = "".join(
        f"<details><summary>{escaped(LIBRARIES[name])}</summary><pre>"
        f"{escape(_file(f'libraries/{name}.LICENSE'))}</pre></details>\n"
        for name in libraries
    )
    return f"<footer><p>Made by kprobes. Keys: <kbd>?</kbd></p>\n{texts}</footer>\n"


def _json(data: Any) -> str:
    """Return data as JSON whose `<` are escaped, so that no text ends the script that it is in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _file(name: str) -> str:
    """Return the text of a file of this package, given by its path from here."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
