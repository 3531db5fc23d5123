"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .controls import CONTROLS


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table whose cells are text, never markup."""
    from html import escape  # its table of entities takes a command as long to load as five modules of ours

    def cells(values: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(value).translate(CONTROLS))}</{tag}>"
                                for value in values) + "</tr>"

    body = "".join(cells(row, "td") for row in rows)
    head = cells(heads, "th")
    return f"<table><caption>{escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"
