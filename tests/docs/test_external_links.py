"""The check of addresses outside: which it finds, and what is dead to it."""

from __future__ import annotations

import http.server
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import external_links

pytestmark = pytest.mark.quick


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the path is."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_what_is_dead(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        named = {f"{base}/{status}": ["docs/engine.md"] for status in (200, 403, 404, 410, 503)}
        monkeypatch.setattr(external_links, "addresses", lambda: named)
        assert external_links.main() == 1
        server.shutdown()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[2].partition("/")[2] for line in lines[:-1]] == ["404", "410", "503"]
    assert lines[-1] == "5 addresses, 3 dead"


def test_without_a_network_it_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(external_links, "addresses", lambda: {"http://127.0.0.1:9/": ["README.md"]})
    assert external_links.main() == 0
    assert "no network" in capsys.readouterr().out


def test_documents_are_searched() -> None:
    found = external_links.addresses()
    assert "README.md" in found["https://frida.re"]
    assert any(page.startswith("docs/") for pages in found.values() for page in pages)
    assert not any(address.endswith((".", ",", ")")) for address in found)
