"""Pages of HTML: one file each, which loads nothing, whatever texts are in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from kprobes.pictures.page import CHARTS, LIBRARIES, ChartView, escaped, page

pytestmark = pytest.mark.quick
HOSTILE = "</script><script>alert(1)</script>\x1b[31m <b>&"


class Tags(HTMLParser):
    """The tags of a page, and what is in each <script>."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_page_loads_nothing() -> None:
    views = [ChartView(key=name, title=name, chart=name, data=[]) for name in CHARTS]
    tags = Tags(page("all", views)).found
    assert [(tag, attrs) for tag, attrs in tags if {"src", "href"} & {*attrs} or tag in ("link", "img", "iframe")] == []
    assert any("default-src 'none'" in (attrs.get("content") or "") for _, attrs in tags)


def test_texts_of_guests_are_no_markup() -> None:
    view = ChartView(key="x", title=HOSTILE, chart="flame", data={"names": [HOSTILE]}, legend=[("red", HOSTILE)])
    text = page(HOSTILE, [view, view], facts=[HOSTILE], warnings=[HOSTILE])
    assert "alert(1)</script>" not in text.replace(escaped(HOSTILE), "") and "\x1b" not in text
    assert [attrs for tag, attrs in Tags(text).found if tag == "b"] == []


def test_libraries_are_named_with_their_licences() -> None:
    for chart, libraries in CHARTS.items():
        text = page("x", [ChartView(key="x", title="x", chart=chart, data=[])])
        for name, shown in LIBRARIES.items():
            assert (escaped(shown) in text) == (name in libraries)
            assert not libraries or re.search("Permission (to use|is hereby granted)", text)
