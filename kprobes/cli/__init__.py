"""The `kprobes` command: trace, record, report, stat, hist, top, graph, cover, convert, list, check, symbols, archs,
campaign.

Exit status: 0 done, 1 the guest failed, 2 the command line or an event is wrong, 130 interrupted, 141 nobody reads the
output. Results go to stdout; the guest's answer, the table of hits and every message go to stderr.
"""

from __future__ import annotations

from ..calltext import parse_call
from ._campaign import campaign
from ._count import cover, hist, top
from ._look import archs, check, list_, symbols
from ._main import main
from ._report import convert, report
from ._trace import graph, record, stat, trace

__all__ = ["main", "parse_call"]

for command in (trace, record, report, stat, hist, top, graph, cover, convert, list_, check, symbols, archs, campaign):
    main.add_command(command)
