"""docs/hit-in-the-source.md: every function that it names is there, and a hit calls those of the steps in their order."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "hit-in-the-source.md").read_text()
NAMED = re.compile(r"\[`([\w.]+)`\]\(\.\./(kprobes/[\w/]+\.py)\)")
STEPS = re.compile(r"^ ?\d+\. (?:.+\n)+?(?=\n| ?\d+\. )", re.MULTILINE)
#: prints (file, name) of each function of the package that is called, in their order
RECORDER = """
import json, sys

root, program = sys.argv[1:]
called = []


def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        called.append((code.co_filename, code.co_name))


program = compile(program, "program", "exec")
import kprobes
sys.setprofile(note)
exec(program, {})
sys.setprofile(None)
print(json.dumps(called))
"""


def definitions(file: Path) -> set[str]:
    """The functions and classes of a module: "f", "C", "C.f", "C.f.within"."""
    found = set[str]()

    def look(node: ast.AST, around: str) -> None:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                found.add(around + inner.name)
                look(inner, f"{around}{inner.name}.")
            else:
                look(inner, around)

    look(ast.parse(file.read_text()), "")
    return found


def steps() -> list[tuple[str, str]]:
    """(file, function) of the numbered steps, in their order; of a class, what makes it."""
    named = [found for step in STEPS.findall(TEXT) for found in NAMED.findall(step)]
    return [(file, "__init__" if name[0].isupper() and "." not in name else name.rpartition(".")[2]) for name, file in named]


@pytest.mark.parametrize(("name", "file"), sorted({*NAMED.findall(TEXT)}))
def test_what_is_named_is_there(name: str, file: str) -> None:
    assert name in definitions(ROOT / file)


def test_a_hit_goes_through_the_steps_in_their_order() -> None:
    program = re.search(r"```python\n(.+?)```", TEXT, re.DOTALL)
    assert program is not None
    environment = {**os.environ, "KPROBES_HOST_CODE": "0", "PYTHONPATH": str(ROOT)}
    said = subprocess.run([sys.executable, "-c", RECORDER, str(ROOT / "kprobes") + os.sep, program[1]], cwd=ROOT,
                          env=environment, capture_output=True, text=True, check=True).stdout
    called = iter([(os.path.relpath(file, ROOT).replace(os.sep, "/"), name) for file, name in json.loads(said.splitlines()[-1])])
    wanted = steps()
    assert len(wanted) >= 30
    for step in wanted:
        assert step in called, f"{step} is not called, or not behind those before it"
