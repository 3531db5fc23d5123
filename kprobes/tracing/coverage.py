"""The code that was executed: blocks and edges as the machine counts them, and the files that other
tools read coverage from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from attrs import frozen

from ..arguments import checked, shown
from ..core.register.alone import alone
from ..errors import BadArgument, UnknownSymbol, Unsupported
from ..machine._base import Machine, blocks_of
from ..machine._blocks import BlockCounts
from ..newfile import NewFile
from ..symbols import name_matcher
from .coverfiles import (
    Block,
    ExecutionCounts,
    Module,
    SourceCoverage,
    coverage_page,
    drcov,
    lcov,
    source_coverage,
)

__all__ = ["FORMATS", "Block", "Coverage", "Edge", "format_of"]

FORMATS = {".drcov": "drcov", ".info": "lcov", ".afl": "afl", ".html": "html"}
PASS = "pass 'drcov', 'lcov', 'html' or 'afl'"
#: What AFL makes of a count: one of eight bits, so that loops which differ a little are alike.
CLASSES = bytes(
    next(
        bit
        for least, bit in (
            (128, 128),
            (32, 64),
            (16, 32),
            (8, 16),
            (4, 8),
            (3, 4),
            (2, 2),
            (1, 1),
            (0, 0),
        )
        if count >= least
    )
    for count in range(256)
)


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the format of a file of coverage: "drcov", "lcov", "html" or "afl".

    Args:
        path: of the file, whose name's end tells the format, by FORMATS.
        format: the format; None: as the name ends.

    Raises:
        BadArgument: there is no such format, or the name tells none.
    """
    if format is None:
        found = FORMATS.get(os.path.splitext(path)[1])
        if found is None:
            endings = ", ".join(FORMATS)
            raise BadArgument(
                f"{os.fspath(path)!r}: the name tells no format", hint=f"end it in one of {endings}"
            )
        return found
    if format not in FORMATS.values():
        raise BadArgument(f"no format {format!r} for {os.fspath(path)!r}", hint=PASS)
    return format


@frozen(order=True)
class Edge:
    """An edge between two blocks.

    Attributes:
        start: address of the block that was left.
        target: address of the block that was entered.
        count: how often, since the start, or since reset().
    """

    start: int
    target: int
    count: int


@checked()
class Coverage:
    """Counts every block that the guest executes, until close(). A context manager.

    Blocks are what the engine translates at a time: they begin where something jumps to, and at
    pages and breakpoints as well, so that one may lie within another. Each execution counts for the
    block that it began with. The library's own code is none.
    """

    def __init__(
        self,
        machine: Machine,
        modules: str | Sequence[str] = (),
        functions: str | Sequence[str] = (),
        edges: bool = False,
    ) -> None:
        """Begin to count.

        Args:
            machine: whose guest it is.
            modules: globs of modules; only blocks in these are counted. (): all are.
            functions: globs of functions; only blocks in these are counted. (): all are.
            edges: count each edge by itself, for the property `edges`, besides the bitmap.

        Raises:
            Unsupported: the machine does not tell of blocks.
            MachineBusy: another thread runs it.
            BadArgument: there is no such module.
            UnknownSymbol: there is no such function.
        """
        self._machine = machine
        self.busy = machine.busy
        self._modules = _globs("modules", modules)
        self._functions = _globs("functions", functions)
        self._function_matchers = [name_matcher(glob) for glob in self._functions]
        self._check_globs()
        self._one_by_one = edges
        self._counts = self._counting()
        self._told = 0

    def _check_globs(self) -> None:
        """Check that each glob names something in the guest. Globs of functions are looked for in
        all modules.

        Raises:
            BadArgument: there is no module of that name.
            UnknownSymbol: there is no function of that name.
        """
        there = list(self._machine.modules)
        for glob in self._modules:
            if not any(fnmatchcase(name, glob) for name in there):
                raise BadArgument(
                    f"no module is called {shown(glob)}",
                    hint=f"there are {', '.join(there) or 'none'}",
                )
        for glob, matches in zip(self._functions, self._function_matchers, strict=True):
            if not any(matches(s.name) for s in self._machine.symbols if s.kind != "object"):
                raise UnknownSymbol(glob, hint="give the name of a function, or a glob of such")

    @alone
    def _counting(self) -> BlockCounts:
        """Begin to count the blocks that the machine executes, and return the counts, which grow as
        it runs.

        Raises:
            Unsupported: the machine does not tell of blocks.
            MachineBusy: another thread runs it.
        """
        return blocks_of(self._machine).count_blocks(self._wanted, self._one_by_one)

    @property
    def _wanted(self) -> Callable[[int], bool] | None:
        """The function from a block's address to whether the block is counted; None: all are."""
        return self._wants if self._modules or self._functions else None

    def _wants(self, address: int) -> bool:
        """Return True where the block at an address is to be counted: it is in a module that a glob
        of modules names, and in a function that one of functions names; where there are no such
        globs, in any.
        """
        if self._modules and not any(
            start <= address < end and fnmatchcase(name, glob)
            for name, (start, end) in self._machine.modules.items()
            for glob in self._modules
        ):
            return False
        if not self._functions:
            return True
        symbol = self._machine.symbols.covering(address)
        return symbol is not None and any(
            matches(symbol.name) for matches in self._function_matchers
        )

    @property
    def blocks(self) -> list[Block]:
        """Every block seen so far, by address."""
        return sorted(Block(*row) for row in self._counts.rows(self._counts.found))

    def new(self) -> list[Block]:
        """Return the blocks that were first executed since the previous call of this method, in the
        order of their first execution.
        """
        told = self._told
        self._told = len(self._counts.found)
        return (
            [Block(*row) for row in self._counts.rows(self._counts.found[told:])]
            if self._told > told
            else []
        )

    @property
    def bitmap(self) -> memoryview:
        """The map of edges as AFL has it: 65,536 counters of 8 bits, which change while the guest
        runs.

        An edge between two blocks counts at a number made of both addresses, so that two edges may
        share a counter.
        """
        return self._counts.edges.toreadonly()

    @property
    def classes(self) -> bytes:
        """Return the bitmap as AFL compares it: each count is replaced by one of eight bits, for 1,
        2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more.
        """
        return bytes(self.bitmap).translate(CLASSES)

    @property
    def edges(self) -> list[Edge]:
        """Every edge seen so far, sorted by the address of its first block, then of its second.

        The last block of a run and the first block of the next run make an edge as well, unless
        clear() is called between them.

        Raises:
            BadArgument: this Coverage was made without `edges=True`, and has only the bitmap.
        """
        if not self._one_by_one:
            raise BadArgument(
                "edges are counted in the bitmap only", hint="ask for them: k.coverage(edges=True)"
            )
        return sorted(Edge(*row) for row in self._counts.arcs())

    def clear(self) -> None:
        """Set the bitmap to zeros, before another run; the last block so far makes no edge with the
        next one. Counts of blocks and of `edges` stay.
        """
        self._counts.forget_edges()

    def reset(self) -> None:
        """Set all counts to zero. Blocks stay known: new() does not return them again."""
        self._counts.reset()

    def save(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        sources: str | os.PathLike[str] = ".",
        demangle: bool = True,
    ) -> None:
        """Write a file: drcov (version 2), lcov or html (lines and functions of files with line
        tables) or afl (the bitmap).

        Args:
            path: of the file.
            format: None: as the name ends, .drcov, .info, .html or .afl.
            sources: of html: the folder where relative paths of source files begin.
            demangle: of html: False: C++ and Rust names are as in the debug information.

        Raises:
            BadArgument: there is no such format, or the name tells none.
            Unsupported: no loaded file has lines, which lcov and html need.
            OSError: the file cannot be written.
        """
        data = self.contents(format_of(path, format), sources, demangle)
        with NewFile(path, binary=True) as new:
            new.file.write(data)

    def contents(
        self, format: str, sources: str | os.PathLike[str] = ".", demangle: bool = True
    ) -> bytes:
        """Return the bytes of the file that save() writes.

        Args:
            format: "drcov", "lcov", "html" or "afl".
            sources: of html: the folder where relative paths of source files begin.
            demangle: of html: False: C++ and Rust names are as in the debug information.

        Raises:
            BadArgument: there is no such format.
            Unsupported: no loaded file has lines, which lcov and html need.
        """
        if format not in FORMATS.values():
            raise BadArgument(f"format is {shown(format)}", hint=PASS)
        if format == "drcov":
            return self._drcov()
        if format == "lcov":
            return lcov(self._sources())
        if format == "html":
            return coverage_page(self._sources(), os.fspath(sources), demangle)
        return bytes(self.bitmap)

    def _drcov(self) -> bytes:
        """Return the executed blocks as a file of drcov's."""
        machine = self._machine
        images = [Module(start, end, name) for name, (start, end) in machine.modules.items()]
        return drcov(
            [block for block in self.blocks if block.count],
            images,
            machine.regions(),
            machine.page_size,
        )

    def _sources(self) -> dict[str, SourceCoverage]:
        """Return how often lines and functions were executed, by path of the source files that
        loaded files name; those that never were are among them.

        Raises:
            Unsupported: no loaded file has lines.
        """
        found = source_coverage(
            self._machine.symbols.files, ExecutionCounts(self.blocks), self._wanted
        )
        if not found:
            raise Unsupported(
                "no loaded file has line tables", hint="compile with -g, or save .drcov"
            )
        return found

    @alone
    def close(self) -> None:
        """Stop counting. What was counted stays readable. Closing again does nothing.

        Raises:
            MachineBusy: another thread runs the machine.
        """
        self._counts.close()

    def __enter__(self) -> Coverage:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._counts.found)

    def __repr__(self) -> str:
        return f"<coverage: {len(self):,} blocks, {sum(map(bool, self.bitmap)):,} edges>"


def _globs(name: str, globs: str | Sequence[str]) -> tuple[str, ...]:
    """Return globs as a tuple; a single text is one glob.

    Args:
        name: of the parameter, for the error.
        globs: what the user passed.

    Raises:
        BadArgument: a glob is no text.
    """
    found = (globs,) if isinstance(globs, str) else tuple(globs)
    for glob in found:
        if not isinstance(glob, str):
            raise BadArgument(f"{name} has {shown(glob)}", hint="pass names or globs")
    return found
