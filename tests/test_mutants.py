"""tools/mutants.py draws only changes that a test could notice, and says what it lacks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent / "tools" / "mutants.py"

SOURCE = """\
from typing import TYPE_CHECKING, Protocol
if TYPE_CHECKING:
    a = 1 + 2
class Shape(Protocol):
    size: int = 3
def area(width: "int | None" = 4) -> "int | None":
    height: "int | None" = 5
    return width * height
class Square(Shape):
    size = 6
"""


def test_what_is_never_evaluated_is_not_changed() -> None:
    sys.path.insert(0, str(TOOL.parent))
    try:
        from mutants import unevaluated
    finally:
        sys.path.pop(0)
    spans = [*unevaluated(ast.parse(SOURCE))]
    found = {node.value: any(start <= (node.lineno, node.col_offset) < end for start, end in spans)
             for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Constant)}
    assert found == {1: True, 2: True, 3: True, "int | None": True, 4: False, 5: False, 6: False}


def test_without_cosmic_ray_it_says_so(tmp_path: Path) -> None:
    code = (f"import sys; sys.argv = ['mutants', {str(tmp_path / 'new')!r}]; sys.modules['cosmic_ray'] = None; "
            f"sys.path.insert(0, {str(TOOL.parent)!r}); import mutants; mutants.main()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pip install cosmic-ray" in done.stderr
    assert not (tmp_path / "new").exists()
