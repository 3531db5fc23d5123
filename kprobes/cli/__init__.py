"""The `kprobes` command: script, run, trace, record, report, stat, hist, top, graph, cover, heap,
convert, list, check, symbols, archs, demo, campaign, fuzz.

Exit status: 0 done, 1 the guest failed or `heap` has found something, 2 the command line or an
event is wrong, 130 interrupted, 141 nobody reads the output. `script` has bpftrace's: 1 where the
script is wrong, 255 where a probe cannot be attached, and what its exit() says. Results go to
stdout; the guest's answer, the table of hits and every message go to stderr.
"""

from __future__ import annotations

from ._commands import LazyCommands
from ._main import command, main

__all__ = ["command", "main"]

main.commands = LazyCommands({
    "trace": "_trace", "record": "_trace", "stat": "_trace", "graph": "_trace",
    "report": "_report", "convert": "_report",
    "hist": "_count", "top": "_count", "cover": "_count", "heap": "_heap",
    "list": "_look:list_", "check": "_look", "symbols": "_look", "archs": "_look",
    "demo": "_demo", "campaign": "_campaign", "fuzz": "_fuzz", "script": "_script", "run": "_run",
})  # fmt: skip
