"""Every example of the documentation runs, and prints what the page says.

In README.md and docs/**/*.md:

- ```python blocks of a page run in order, in one namespace. What they print must be the ```text block that follows
  directly.
- ```console blocks: lines that start with `$ ` are shell commands, run in the repository's root; the lines behind them
  are what the command prints, stdout before stderr. A command without such lines only has to succeed. `pip install ...`
  is left out: that the tests run shows that it worked; of `pip install ./FOLDER`, a package of examples/, entry points
  and modules are there for the page's other commands. A last line `(exit status N)` is for commands that fail.
- `...` in expected output stands for anything, on a line of its own for any lines.
- `<!-- no-test: why -->` on the line before a block leaves it alone, `<!-- needs: MODULE, libNAME.so.N or
  qemu-ARCH -->` where that is not installed here: the page counts as skipped then.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import pytest
from attrs import frozen

from kprobes import Unsupported
from kprobes.machine.remote.launch import OLDEST, find_qemu

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTED = ("python", "console", "text")
LANGUAGES = (*TESTED, "", "c", "asm", "bash", "toml", "json", "yaml", "rust")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NO_TEST = re.compile(r"<!-- no-test: .+ -->\n$")
_NEEDS = re.compile(r"<!-- needs: (\S+) -->\n$")
_OURS = re.compile(r"pip install \./(examples/\w+)")
_INSTALL = re.compile(r"pip install [^&|;]*(&& *)?")
_STATUS = re.compile(r"\(exit status (\d+)\)\n$")


@frozen
class Block:
    """A fenced block. line: of its first line of text. follows: directly behind the block before it. needs: what it
    takes, or empty."""

    language: str
    text: str
    line: int
    tested: bool
    follows: bool
    needs: str = ""


def blocks(source: str) -> list[Block]:
    """The fenced blocks of a page."""
    out: list[Block] = []
    end = 0
    for found in _FENCE.finditer(source):
        between = source[end : found.start()]
        needs = _NEEDS.search(between)
        out.append(Block(language=found[1], text=found[2], line=source.count("\n", 0, found.start(2)) + 1,
                         needs=needs[1] if needs else "",
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


def there(needed: str) -> bool:
    """True if a library, a QEMU or a Python module is installed here."""
    if needed.startswith("qemu-"):
        try:
            return bool(find_qemu(needed, OLDEST))
        except Unsupported:
            return False
    if ".so" not in needed:
        return importlib.util.find_spec(needed) is not None
    try:
        return bool(ctypes.CDLL(needed))
    except OSError:
        return False


def installed(package: Path, site: Path) -> None:
    """What pip would do for a package of modules in one folder, without asking an index for its build tools."""
    described = (package / "pyproject.toml").read_text()
    name = re.search(r'^name = "(.+)"$', described, re.MULTILINE)
    points = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:.+\n)+)', described, re.MULTILINE)
    assert name and points
    info = site / f"{name[1].replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name[1]}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{lines}".replace('"', "") for group, lines in points))
    for module in package.glob("*.py"):
        (site / module.name).write_text(module.read_text())


def run_console(block: Block, where: str, site: Path) -> None:
    """Run the commands of a console block. site: where packages of ours are installed."""
    paths: Mapping[str, str] = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(site)}
    environment = {**os.environ, "NO_COLOR": "1",
                   **{name: os.pathsep.join(filter(None, (first, os.environ.get(name))))
                      for name, first in paths.items()}}
    for command, expected in commands(block.text):
        for package in _OURS.findall(command):
            installed(ROOT / package, site)
        rest = _INSTALL.sub("", command)
        if not rest:
            continue
        done = subprocess.run(["bash", "-c", rest], cwd=ROOT, env=environment, capture_output=True, text=True,
                              timeout=500, check=False)
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
    """Run a page's examples; returns how many there were. Skips the test if some could not be."""
    with tempfile.TemporaryDirectory() as site:
        ran, missing = run_blocks(source, name, Path(site))
    if missing:
        pytest.skip(f"{name}: examples were left out that need {', '.join(missing)}")
    return ran


def run_blocks(source: str, name: str, site: Path) -> tuple[int, list[str]]:
    """How many ran, and what others need."""
    found = blocks(source)
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran, missing = 0, []
    for block, after in zip_longest(found, found[1:]):
        where = f"{name}:{block.line}"
        assert block.language in LANGUAGES, f"{where}: a block of language {block.language!r}, which is none of {LANGUAGES}"
        if not block.tested or block.language == "text":
            continue
        if block.needs and not there(block.needs):
            missing.append(block.needs)
            continue
        ran += 1
        if block.language == "console":
            run_console(block, where, site)
        else:
            output = after.text if after is not None and after.follows and after.language == "text" else ""
            run_python(block, namespace, output, where)
    return ran, missing


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
    with pytest.raises(pytest.skip.Exception, match="no_such_module"):
        run_page("<!-- needs: no_such_module -->\n```python\n1 / 0\n```\n", "left out")
    assert matches("a ... c\n...\nd\n", "a b c\n1\n2\nd\n") and not matches("a\n", "b\n")
