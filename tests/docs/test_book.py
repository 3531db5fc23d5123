"""The built book in a real browser: its search finds pages, its pictures follow the theme.

`.ci/more` builds it, and names it: KPROBES_BOOK.
"""

from __future__ import annotations

import base64
import functools
import http.server
import os
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from browser import Browser

BOOK = os.environ.get("KPROBES_BOOK")
LOADED = "document.readyState === 'complete' && location.protocol === 'http:'"
pytestmark = pytest.mark.skipif(BOOK is None, reason="KPROBES_BOOK names no built book")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the book is served, on this computer alone."""
    handler = functools.partial(Quiet, directory=BOOK)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def colour(browser: Browser, x: int, y: int) -> tuple[int, ...]:
    """A pixel of what is shown: red, green, blue."""
    clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
    data = base64.b64decode(browser.do("Page.captureScreenshot", format="png", clip=clip)["data"])
    at, packed = 8, b""
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    # one line of one pixel, whose filter byte means nothing
    return tuple(zlib.decompress(packed)[1:4])


@pytest.mark.parametrize("words, page", [("trampoline", "kretprobe"), ("watchpoint", "events"), ("AFL", "fuzzing")])
def test_search_finds_pages(browser: Browser, address: str, words: str, page: str) -> None:
    browser.show(f"{address}/search.html?q={words}", 1200, 800, ready=LOADED)
    links = "[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))"
    browser.wait(f"{links}.length > 0")
    browser.wait(f"{links}.some(link => link.startsWith('{page}.html'))")


@pytest.mark.parametrize("chosen", ["light", "dark"])
@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("page, picture", [("how-a-hit-works", "hit"), ("how-a-hit-works", "arming"), ("cost", "cost")])
def test_pictures_follow_the_theme(browser: Browser, address: str, chosen: str, system: str, page: str,
                                   picture: str) -> None:
    """The one that the reader has chosen, whatever the browser prefers."""
    browser.show(f"{address}/{page}.html", 1200, 800, system == "dark", ready=LOADED)
    browser.ask(f"document.body.dataset.theme = '{chosen}'")
    image = f"document.querySelector('img[src*=\"{picture}.svg\"]')"
    browser.ask(f"{image}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    browser.wait(f"{image}.complete && {image}.naturalWidth > 0")
    left, top = (int(browser.ask(f"{image}.getBoundingClientRect().{side}")) for side in ("left", "top"))
    scrolled = int(browser.ask("scrollY"))
    shown = colour(browser, left + 12, top + scrolled + 12)
    assert (max(shown) < 80) == (chosen == "dark"), shown
    assert (min(shown) > 200) == (chosen == "light"), shown
