"""Proof kits: what shows that a probe, an architecture or an engine keeps its promises. They need
no test framework.

- Recorder makes handlers that write a transcript.
- Bench compares single instructions with and without a probe; transparency() compares whole runs.
- check_arch() and check_machine() are the contracts' own tests.
"""

from ._bench import Bench
from ._cases import Case, CaseFile, Skip, read_cases
from ._check_arch import check_arch
from ._check_decode import decode_tables, row_names
from ._check_machine import check_machine
from ._difference import Difference
from ._encodings import encodings
from ._judge import Tally
from ._recorder import Recorder
from ._transparency import (
    Comparison,
    functions,
    instructions,
    kprobes_everywhere,
    kretprobes_everywhere,
    transparency,
)

__all__ = [
    "Bench",
    "Case",
    "CaseFile",
    "Comparison",
    "Difference",
    "Recorder",
    "Skip",
    "Tally",
    "check_arch",
    "check_machine",
    "decode_tables",
    "encodings",
    "functions",
    "instructions",
    "kprobes_everywhere",
    "kretprobes_everywhere",
    "read_cases",
    "row_names",
    "transparency",
]
