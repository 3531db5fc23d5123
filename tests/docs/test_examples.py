"""Every example of the documentation runs, and prints what the page says.

In README.md and docs/**/*.md:

- ```python blocks of a page run in order, in one namespace. What they print must be the ```text block that follows
  directly.
- ```console blocks: lines that start with `$ ` are shell commands, run in the repository's root; the lines behind them
  are what the command prints, stdout before stderr. A command without such lines only has to succeed. `pip install ...`
  is left out: that the tests run shows that it worked. A last line `(exit status N)` is for commands that fail.
- `...` in expected output stands for anything, on a line of its own for any lines.
- `<!-- no-test: why -->` on the line before a block leaves it alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTED = ("python", "console", "text")
LANGUAGES = (*TESTED, "", "c", "asm", "bash", "toml", "json")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NO_TEST = re.compile(r"<!-- no-test: .+ -->\n$")
_INSTALL = re.compile(r"pip install [^&|;]*(&& *)?")
_STATUS = re.compile(r"\(exit status (\d+)\)\n$")


@frozen
class Block:
    """A fenced block. line: of its first line of text. follows: directly behind the block before it."""

    language: str
    text: str
    line: int
    tested: bool
    follows: bool


def blocks(source: str) -> list[Block]:
    """The fenced blocks of a page."""
    out: list[Block] = []
    end = 0
    for found in _FENCE.finditer(source):
        between = source[end : found.start()]
        out.append(Block(language=found[1], text=found[2], line=source.count("\n", 0, found.start(2)) + 1,
                         tested=found[1] in TESTED and not _NO_TEST.search(between),
                         follows=bool(out) and not between.strip()))
        end = found.end()
    return out


def matches(expected: str, actual: str) -> bool:
    """True if the output is as expected; `...` stands for anything."""
    lines = ["(?:.*\n)*?" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*")
             for line in expected.splitlines(keepends=True)]
    return re.fullmatch("".join(lines), actual) is not None


def check(expected: str, actual: str, where: str) -> None:
    """Fail with both texts where they differ."""
    if not matches(expected, actual):
        pytest.fail(f"{where}: the page says\n{expected}\nbut this is printed:\n{actual}", pytrace=False)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, expected output) of a console block."""
    lines = text.splitlines(keepends=True)
    while lines:
        first = lines.pop(0)
        assert first.startswith("$ "), f"a console block starts with `$ `, not {first!r}"
        command = first[2:]
        while command.endswith("\\\n"):
            command += lines.pop(0)
        expected = ""
        while lines and not lines[0].startswith("$ "):
            expected += lines.pop(0)
        yield command.strip(), expected


def run_console(block: Block, where: str) -> None:
    """Run the commands of a console block."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                   "NO_COLOR": "1"}
    for command, expected in commands(block.text):
        rest = _INSTALL.sub("", command)
        if not rest:
            continue
        done = subprocess.run(["bash", "-c", rest], cwd=ROOT, env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        status = _STATUS.search(expected)
        wanted = expected[: status.start()] if status else expected
        assert done.returncode == (int(status[1]) if status else 0), f"{where}: {command}: {done.stdout}{done.stderr}"
        if expected:
            check(wanted, done.stdout + done.stderr, f"{where}: {command}")


def run_python(block: Block, namespace: dict[str, object], expected: str, where: str) -> None:
    """Run a Python block in the page's namespace."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, where, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    check(expected, printed.getvalue(), where)


def run_page(source: str, name: str) -> int:
    """Run a page's examples; returns how many there were."""
    found = blocks(source)
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block, after in zip_longest(found, found[1:]):
        where = f"{name}:{block.line}"
        assert block.language in LANGUAGES, f"{where}: a block of language {block.language!r}; one of {LANGUAGES} is expected"
        if not block.tested or block.language == "text":
            continue
        ran += 1
        if block.language == "console":
            run_console(block, where)
        else:
            output = after.text if after is not None and after.follows and after.language == "text" else ""
            run_python(block, namespace, output, where)
    return ran


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_page(page.read_text(), page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Relative links name files that are there, and headings that are in them."""
    prose = _FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose):
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{page.name}: {target} leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{page.name}: {target}: no such heading"


def test_the_runner_can_fail() -> None:
    """A wrong output, a failing command, an exception and a missing output are seen."""
    assert run_page("```python\nx = 1\n```\ntext\n```python\nprint(x)\n```\n```text\n1\n```\n```console\n$ echo "
                    "a\na\n```\n", "good") == 3
    for bad in ("```python\nprint(1)\n```\n```text\n2\n```\n", "```python\nprint(1)\n```\n",
                "```console\n$ echo a\nb\n```\n",
                "```console\n$ false\n```\n", "```console\n$ exit 3\n(exit status 2)\n```\n"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            run_page(bad, "bad")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "bad")
    assert matches("a ... c\n...\nd\n", "a b c\n1\n2\nd\n") and not matches("a\n", "b\n")
