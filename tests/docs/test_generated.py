"""The generated parts of the documentation are what the code says now, and nothing public is left out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import kprobes
from kprobes.core.hit.ctlblk import TABLE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_pages_are_up_to_date(generate: ModuleType, page: Path) -> None:
    text = page.read_text()
    assert generate.filled(text) == text, "out of date: run python docs/generate.py"


def test_pictures_are_up_to_date(generate: ModuleType) -> None:
    assert {path: path.read_text()
            for path in generate.pictures()} == generate.pictures(), "out of date: run python docs/generate.py"


def test_every_part_is_used_and_the_tables_are_whole(generate: ModuleType) -> None:
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert set(re.findall(r"<!-- generated: ([\w-]+)", pages)) == set(generate.PARTS)
    cells = [cell for line in generate.control_block("").split("\n\n")[0].splitlines()[2:]
             for cell in line.split(" | ")[1:]]
    assert sum(bool(cell.strip(" |")) for cell in cells) == len(TABLE)


def test_a_stale_part_is_seen(generate: ModuleType) -> None:
    page = "a\n<!-- generated: patches -->\nold\n<!-- end -->\nb\n"
    assert generate.filled(page) != page
    assert "breakpoint" in generate.filled(page)


def test_every_public_name_is_documented() -> None:
    """Each name that `from kprobes import *` gives stands in a page in code font."""
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    missing = [name for name in kprobes.__all__ if not re.search(rf"\b{name}\b", pages)]
    assert missing == []


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    missing = [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index]
    assert missing == []


def test_every_page_is_in_the_book() -> None:
    book = (DOCS / "contents.rst").read_text().split()
    assert [page.name for page in DOCS.glob("*.md") if page.stem not in book] == []


def test_every_example_script_is_shown_in_a_page() -> None:
    """Pages run what they show, so that no script is left untested."""
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *DOCS.rglob("*.md")])
    missing = [script.name for script in (ROOT / "examples").glob("*_example.py")
               if f"python examples/{script.name}" not in pages]
    assert missing == []
