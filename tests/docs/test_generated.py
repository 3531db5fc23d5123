"""The generated parts of the documentation are what the code says now, and nothing public is left out."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import kprobes
from kprobes.core.hit import ctlblk
from kprobes.core.hit.ctlblk import TABLE
from kprobes.core.patch import arming

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


def test_the_diagrams_have_every_transition_and_are_shown(generate: ModuleType) -> None:
    diagrams = generate.helper(DOCS, "diagrams")
    for table, states, places in ((TABLE, ctlblk.HitState, diagrams.CONTROL),
                                  (arming.TABLE, arming.Arming, diagrams.ARMING)):
        edges = diagrams.edges(table, states)
        for (state, event), target in table.items():
            assert event.name in [*edges.get((state.name, target.name), []), *edges.get(("any other", target.name), [])]
        assert {*places} == {place for edge in edges for place in edge}
        drawn = {event for events in edges.values() for event in events}
        assert (sum(len(events) for events in edges.values()) <= len(table)
                and drawn == {event.name for _, event in table})
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    assert all(f"](pictures/{name})" in pages for name in diagrams.pictures())
    assert {path.name for path in (DOCS / "pictures").iterdir()} == {*diagrams.pictures()}


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
    pages = [*DOCS.glob("*.md"), *(DOCS / "cookbook").glob("*.md")]
    assert [str(page) for page in pages if page.relative_to(DOCS).with_suffix("").as_posix() not in book] == []


def test_every_recipe_is_in_the_cookbooks_index() -> None:
    index = (DOCS / "cookbook" / "index.md").read_text()
    missing = [page.name for page in (DOCS / "cookbook").glob("*.md") if page.name != "index.md"
               and f"({page.name})" not in index]
    assert missing == []


def test_every_example_is_shown_whole_and_run_in_a_page() -> None:
    """Pages run what they show, so that no script is left untested."""
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *DOCS.rglob("*.md")])
    examples = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.py")
                if path.name != "build.py"}
    shown = set(re.findall(r"<!-- generated: source (examples/\S+\.py) -->", pages))
    run = {script for script in examples if f"python {script}" in pages or f"$ kprobes fuzz {script}" in pages}
    assert shown == examples and run == examples - {"examples/rv32i/rv32i.py"}  # which prove.py imports


def test_the_architecture_of_the_cookbook_is_the_guides() -> None:
    """Every function, and every fact, of examples/rv32i/rv32i.py stands in docs/adding-an-architecture.md."""
    guide = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / "adding-an-architecture.md").read_text(), re.DOTALL))
    told = {ast.unparse(node) for node in ast.walk(ast.parse(guide))
            if isinstance(node, ast.FunctionDef | ast.Assign | ast.Call)}
    package = ast.parse((ROOT / "examples" / "rv32i" / "rv32i.py").read_text())
    whole = ("BRANCHES", "ROWS", "rv32i")  # which the guide grows, from grade to grade
    for node in package.body:
        if (isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Assign)
                                                  and ast.unparse(node.targets[0]) not in whole)):
            assert ast.unparse(node) in told
    assert {"Jump(size=4, encode=jump)", "OutOfLine(max_displaced=8)"} <= told


def test_what_an_index_of_packages_shows_has_no_link_that_leads_nowhere() -> None:
    """pyproject.toml says how the README becomes the long description."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 brings it")
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text()
    assert "](docs/" in text
    for change in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith("https://")] == []
    assert "Tutorial | Kprobes, return probes, jprobes | How a hit works" in text and "![" not in text
