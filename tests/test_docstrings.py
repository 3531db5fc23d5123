"""Docstrings name parameters that there are, and say Yield where the function yields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "kprobes"
ARGS = re.compile(r"^Args:\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"\s*\**`?([\w, *`]+?)`?(?: \([^)]*\))?:")


def parameters(function: ast.FunctionDef) -> set[str]:
    a = function.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return {each.arg for each in every}


def described(doc: str) -> Iterator[str]:
    """The names that the section Args explains."""
    found = ARGS.search(doc)
    lines = [line for line in found[1].splitlines() if line.strip()] if found else []
    depth = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    for line in lines:
        if len(line) - len(line.lstrip()) == depth:
            entry = ENTRY.match(line)
            yield from re.split(r",\s*", re.sub("[`*]", "", entry[1]) if entry else line.strip())


def yields(function: ast.FunctionDef) -> bool:
    left = list[ast.AST](function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)
    return False


def wrong(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        doc = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        if doc is None:
            continue
        assert isinstance(node, ast.FunctionDef)
        for again in node.body[1:]:
            if isinstance(again, ast.Expr) and isinstance(again.value, ast.Constant) and isinstance(again.value.value, str):
                yield f"{node.name}: a second docstring"
        for name in described(doc):
            if name not in parameters(node):
                yield f"{node.name}: no parameter {name!r}"
        iterates = "Iterator" in ast.unparse(node.returns) if node.returns else False
        manages = any("contextmanager" in ast.unparse(each) for each in node.decorator_list)
        if doc.startswith("Yield") and not yields(node) and not iterates:
            yield f"{node.name}: says Yield, and returns"
        if doc.startswith("Return") and yields(node) and not manages:
            yield f"{node.name}: says Return, and yields"


@pytest.mark.quick
def test_they_say_what_is_there() -> None:
    found = [f"{path.relative_to(PACKAGE)}: {what}" for path in sorted(PACKAGE.rglob("*.py")) for what in wrong(path.read_text())]
    assert not found, "\n".join(found)


def test_what_is_found() -> None:
    assert [*wrong('''
def one(a, *b):
    """Return a.

    Args:
        a, c: numbers.
        b: more
            of them.
    """
    yield a
def two():
    """Yield nothing."""
    """Return."""
''')] == ["one: no parameter 'c'", "one: says Return, and yields", "two: a second docstring",
                    "two: says Yield, and returns"]
