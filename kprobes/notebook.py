"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .controls import CONTROLS


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as HTML text. Cells are text, never markup; control characters in them are
    replaced.

    Args:
        caption: text above the table.
        heads: names of the columns.
        rows: a sequence of values for each row, one for each column.
    """
    from html import (
        escape,
    )  # its table of entities takes a command as long to load as five modules of ours

    def cells(values: Sequence[Any], tag: str) -> str:
        """Return a row of the table, each value in a cell of kind `tag`."""
        return (
            "<tr>"
            + "".join(
                f"<{tag}>{escape(str(value).translate(CONTROLS))}</{tag}>" for value in values
            )
            + "</tr>"
        )

    body = "".join(cells(row, "td") for row in rows)
    head = cells(heads, "th")
    title = f"<caption>{escape(caption)}</caption>"
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"
