"""The work that a fuzzer leaves: all inputs of a folder run again, and of each what it covers and
what went wrong.

Replay is a campaign's job. Its results are what a journal can keep, so that a campaign that was
killed goes on.
"""

from __future__ import annotations

import base64
import ctypes
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ..campaign._limits import limited
from ..errors import BadArgument
from ..kprobes import Kprobes
from .bench import InputRunner, Map
from .crash import examine
from .target import CallTarget, PythonTarget

SIZE: Final = 1 << 16  #: bytes of the map, unless said otherwise
LARGEST: Final = 1 << 20  #: bytes of an input, unless said otherwise: AFL++'s own limit
_MACHINES: Final = 2  # that a process keeps
_SLOWER: Final = 10  # how many times as long a run may take that is looked at
_BESIDE: Final = frozenset(
    {
        "README.txt",
        "fuzz_bitmap",
        "fuzzer_setup",
        "fuzzer_stats",
        "plot_data",
        "cmdline",
        "target_hash",
        "fastresume.bin",
    }
)  # AFL++'s own files, which are no inputs
_WITH_INPUTS: Final = ("queue", "crashes", "hangs")  # of an instance of AFL++'s

#: a counter -> the class that AFL puts it in, as an exponent: 1, 2, 3, 4-7, 8-15, 16-31, 32-127,
#: 128-255
_CLASSES: Final = bytes([0, 1, 2, 3, *[4] * 4, *[5] * 8, *[6] * 16, *[7] * 96, *[8] * 128])


def inputs_of(folder: Path) -> list[Path]:
    """Return the paths of the inputs in a folder: those of a fuzzer's output, or all files.

    Args:
        folder: AFL++'s output, one of its instances, its queue, or any folder of inputs; or one
            input.

    Raises:
        BadArgument: the folder has no input.
        OSError: the folder cannot be read.
    """
    if folder.is_file():
        return [folder]
    found = sorted(_walk(folder))
    if not found:
        raise BadArgument(
            f"{folder} has no inputs",
            hint="give AFL++'s output, its queue or crashes, or a folder of inputs, one file each",
        )
    return found


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the paths of inputs below a folder, in order of their names.

    Files that AFL++ writes beside its inputs, and hidden ones, are left out; of an instance of
    AFL++'s only its folders queue, crashes and hangs are searched.
    """
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    names = {entry.name for entry in entries}
    instance = "fuzzer_stats" in names or "fuzzer_setup" in names
    for entry in entries:
        if entry.name.startswith(".") or (instance and entry.name not in _WITH_INPUTS):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        elif _is_file(entry) and entry.name not in _BESIDE:
            yield Path(entry.path)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return True if an entry is, or links to, a regular file; False for links in a circle."""
    try:
        return entry.is_file()
    except OSError:
        return False


def input_at(path: str, most: int = LARGEST) -> bytes:
    """Read an input, and return its bytes.

    Args:
        path: path of a file, or of a pipe.
        most: the most bytes that the input may have.

    Raises:
        BadArgument: the input has more bytes.
        OSError: the input cannot be read, or `path` is a folder.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; --replay FOLDER runs all inputs of one")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size  # 0: a pipe, of which nobody knows
        data = file.read(most + 1) if size <= most else b""
    if size <= most and len(data) <= most:
        return data
    known = f"{size:,}" if size > most else f"more than {most:,}"
    raise BadArgument(
        f"an input of {known} bytes is not run: at most {most:,} are",
        hint="give more to --max-input, or a smaller input; AFL++ makes none beyond 1 MiB",
    )


@frozen
class Replay:
    """The job of a replay: called with an input's path, it runs the input in the target.

    The call returns {"bytes": size of the input, "edges": what packed() gives of the edges that it
    covers, "finding": Finding.to_json()}. The finding is None where the run returned, and where it
    did not fail again when it was repeated to be described.

    Attributes:
        target: what is run.
        stamp: hash of the target's file; a journal goes on only where it is the same.
        seconds: what a run may take; None: there is no limit.
        memory: bytes that a run may take beyond what its process has when the target is loaded;
            None: as many as there are.
        size: bytes of the map of edges, a power of two.
        most: the most bytes that an input may have.

    Raises, called:
        BadArgument: the target fails to load, or the input is too large.
        OSError: the input cannot be read.
        OutOfTime: the run has taken longer than it may.
        GuestTimeout: the run has reached a bound of the target's own.
    """

    target: PythonTarget | CallTarget
    stamp: str = ""
    seconds: float | None = None
    memory: int | None = None
    size: int = SIZE
    most: int = LARGEST

    def __call__(self, item: str) -> dict[str, Any]:
        data = input_at(item, self.most)
        bench, counters = _bench(self)
        with limited(self.memory):
            return self._run(bench, counters, data)

    def _run(self, bench: InputRunner, counters: Map, data: bytes) -> dict[str, Any]:
        """Run one input. Where it fails, run it once more to describe the crash, for at most
        _SLOWER times as long.

        Args:
            bench: runs inputs.
            counters: the map of edges, which is cleared first.
            data: the input.

        Returns:
            The result of a call, as the class says.

        Raises:
            OutOfTime: the run has taken longer than it may.
            GuestTimeout: the run has reached a bound of the target's own.
        """
        ctypes.memset(counters, 0, self.size)
        fate = bench.run(data, self.seconds)
        edges = edges_of(counters)
        if fate.timeout and fate.error is not None:
            raise fate.error
        patience = None if self.seconds is None else _SLOWER * self.seconds
        finding = examine(bench, data, patience)[1] if fate.signal else None
        return {
            "bytes": len(data),
            "edges": packed(edges),
            "finding": finding.to_json() if finding is not None else None,
        }


@lru_cache(_MACHINES)
def _bench(job: Replay) -> tuple[InputRunner, Map]:
    """Load a job's target, once in a process; return (runner of inputs, its map of edges)."""
    counters = (ctypes.c_uint8 * job.size)()
    return InputRunner(job.target.load(), counters), counters


def edges_of(counters: Map) -> array[int]:
    """Return what a run has covered, of its map of edges.

    Args:
        counters: the map: a counter for each edge.

    Returns:
        For each edge whose counter is not 0: its index in the map * 16 + AFL's class of the
        counter, 1 to 8.
    """
    classes = bytes(counters).translate(_TABLE)
    return array("I", [number << 4 | kind for number, kind in enumerate(classes) if kind])


_TABLE: Final = _CLASSES[:256]


def packed(edges: array[int]) -> str:
    """Return edges, as edges_of() gives them, as a short text for a journal: zlib in base64."""
    return base64.b64encode(zlib.compress(edges.tobytes(), 1)).decode()


def unpacked(text: str) -> array[int]:
    """Return the edges of a text that packed() gave.

    Raises:
        ValueError: the text is something else.
    """
    edges = array("I")
    try:
        edges.frombytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    return edges


def smallest(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Choose few and small inputs that together cover all edges, as afl-cmin does.

    Each edge's smallest input is looked for, the rarest edges first; an input that was chosen
    covers all of its edges. Different counts of an edge are different edges here.

    Args:
        results: path of an input -> the value that Replay returned for it.

    Returns:
        The chosen inputs, in the order of `results`.

    Raises:
        KeyError, TypeError, ValueError: a result is none of Replay's.
    """
    best: dict[int, tuple[int, str]] = {}
    often: dict[int, int] = {}
    for name, result in results.items():
        for edge in unpacked(result["edges"]):
            often[edge] = often.get(edge, 0) + 1
            rank = result["bytes"], name
            if edge not in best or rank < best[edge]:
                best[edge] = rank
    covered: set[int] = set()
    chosen: set[str] = set()
    for edge in sorted(best, key=lambda edge: (often[edge], edge)):
        if edge in covered:
            continue
        name = best[edge][1]
        chosen.add(name)
        covered.update(unpacked(results[name]["edges"]))
    return [name for name in results if name in chosen]


def edges_in(results: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of different edges that inputs have covered together, whatever their
    counts.

    Args:
        results: the value that Replay returned for each input.
    """
    found: set[int] = set()
    for result in results:
        found.update(edge >> 4 for edge in unpacked(result["edges"]))
    return len(found)


@frozen
class Cover:
    """A job that writes coverage: called with the paths of inputs, it runs them in the target.

    The call writes to a file which code they have executed together, and returns how many blocks
    that are. Runs that fail count as well.

    Attributes:
        target: what is run.
        path: path of the file to write; its ending says which format.
        seconds: what a run may take; None: there is no limit.
        most: the most bytes that an input may have.
    """

    target: PythonTarget | CallTarget
    path: str
    seconds: float | None = None
    most: int = LARGEST

    def __call__(self, items: tuple[str, ...]) -> int:
        target = self.target.load()
        bench = InputRunner(target)
        kprobes = target.kprobes if target.kprobes is not None else Kprobes(target.machine)
        with kprobes.coverage() as coverage:
            for item in items:
                bench.run(input_at(item, self.most), self.seconds)
            coverage.save(self.path)
            return len(coverage)
