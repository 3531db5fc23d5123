"""What architectures' packages say, by architecture: the rows that parts of the library find one at a time."""

from __future__ import annotations

from typing import TypeVar

from arches import ARCHES

from kprobes import get_arch
from kprobes.arch._compiling import Compiling
from kprobes.arch._detours import DetourCode
from kprobes.arch._linux import Linux
from kprobes.arch._rows import RowKind, row
from kprobes.arch._stub import StubFacts

T = TypeVar("T", bound=RowKind)


def rows_of(kind: type[T]) -> dict[str, T]:
    """Architecture's name -> its row, of those that have one."""
    found = {name: row(get_arch(name), kind) for name in ARCHES}
    return {name: known for name, known in found.items() if known is not None}


SAVINGS = {name: code.process for name, code in rows_of(DetourCode).items() if code.process is not None}
IN_KERNELS = {name: code.kernel for name, code in rows_of(DetourCode).items() if code.kernel is not None}
TRIPLES = rows_of(Compiling)
LINUX = rows_of(Linux)
STUBS = rows_of(StubFacts)
THREADS = {name: linux.storage for name, linux in LINUX.items() if linux.storage is not None}
STOPPING = {name: linux.trap for name, linux in LINUX.items() if linux.trap is not None}
QEMU_NAMES = {name: facts.qemu for name, facts in STUBS.items() if facts.qemu}
