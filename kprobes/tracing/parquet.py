"""A trace as a Parquet file: the columns of its Arrow table, for DuckDB, Spark, polars, pandas."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from .columns import save_parquet

if TYPE_CHECKING:
    from .trace import Trace


def write(trace: Trace, file: IO[bytes], format: str) -> None:
    """Write a trace to an open file as Parquet.

    Args:
        trace: the records.
        file: open for bytes.
        format: not used: writers of all formats are called in one way.

    Raises:
        Unsupported: pyarrow is not installed (extra `arrow`).
    """
    save_parquet(*trace.record_batches(), file)
