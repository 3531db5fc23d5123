"""Campaigns: one job for many items: files, inputs, architectures; on all processors of a machine,
or on a cluster.

    from kprobes.campaign import Calls, run

    for outcome in run(Calls("examples/demo.x86_64", "parse_settings(@input)"), [b"width=640",
    b"=?"], timeout=10):
        print(outcome.item, outcome.result or outcome.error)

Work is written against `concurrent.futures.Executor`. Processes of this machine come from pebble
(extra `kprobes[campaign]`): an item that crashes or hangs its process costs that item and nothing
else. A cluster's come from `dask.distributed`: `Client.get_executor()`.
"""

from ._dataset import gather
from ._jobs import Calls, Checks
from ._journal import Journal, JournalEntry, merged
from ._local import local
from ._run import Outcome, run

__all__ = [
    "Calls",
    "Checks",
    "Journal",
    "JournalEntry",
    "Outcome",
    "gather",
    "local",
    "merged",
    "run",
]
