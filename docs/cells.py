"""examples/notebook.ipynb, made from a script whose cells begin with `# %%`; the outputs are those of a run."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CELL = re.compile(r"^# %%(?P<markdown> \[markdown\])?\n(?P<text>.*?)(?=^# %%|\Z)", re.DOTALL | re.MULTILINE)


def notebook(script: Path, folder: Path) -> str:
    """The notebook's text. Its cells are run, in `folder`."""
    found, names, here = CELL.finditer(script.read_text()), dict[str, Any](), Path.cwd()
    os.chdir(folder)
    try:
        cells = [_markdown(n, cell["text"]) if cell["markdown"] else _code(n, cell["text"].strip(), names)
                 for n, cell in enumerate(found)]
    finally:
        os.chdir(here)
    language = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": language, "nbformat": 4, "nbformat_minor": 5}, indent=1,
                      ensure_ascii=False) + "\n"


def _markdown(number: int, text: str) -> dict[str, Any]:
    lines = re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE)
    return {"cell_type": "markdown", "id": f"cell{number}", "metadata": {}, "source": lines.splitlines(keepends=True)}


def _code(number: int, text: str, names: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "id": f"cell{number}", "metadata": {}, "execution_count": None,
            "source": text.splitlines(keepends=True), "outputs": [*_run(text, names)]}


def _run(text: str, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a cell prints, and what its last expression shows."""
    body, printed, shown = ast.parse(text).body, io.StringIO(), None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)}
    if shown is not None:
        data = {"text/plain": [repr(shown)], **({"text/html": [shown._repr_html_()]} if hasattr(shown, "_repr_html_")
                                                else {})}
        yield {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
