"""Which code was executed: blocks and edges as the machine counts them, and the files that other tools read coverage
from."""

from __future__ import annotations

import os
import posixpath
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from attrs import frozen

from ..arguments import checked, shown
from ..core.register.alone import alone
from ..debug.file import DAMAGE, dwarf
from ..errors import BadArgument, Unsupported
from ..image import LoadedFile
from ..machine._base import Machine, blocks_of
from ..machine._blocks import BlockCounts
from ..newfile import NewFile
from ..symbols import CONTROLS

FORMATS = {".drcov": "drcov", ".info": "lcov", ".afl": "afl"}
REACH = 1 << 31  # bytes of guest memory that stand for a module of their own, where blocks are in none


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format that a file of coverage has: `format`, or as the file's name ends. Raises BadArgument: there is no
    such."""
    kind = FORMATS.get(os.path.splitext(path)[1]) if format is None else format
    if kind is None or kind not in FORMATS.values():
        raise BadArgument(f"no format {kind!r} for {os.fspath(path)!r}", hint="pass format='drcov', 'lcov' or 'afl'")
    return kind


@frozen(order=True)
class Block:
    """A block of guest code. size: bytes. count: how often it was executed since the start, or since reset()."""

    address: int
    size: int
    count: int


@frozen
class Module:
    """A row of drcov's table of modules."""

    base: int
    end: int
    path: str


@checked()
class Coverage:
    """Counts every block that the guest executes, until close(). A context manager.

    Blocks are what the engine translates at a time: they begin where something jumps to, and at pages and breakpoints
    as well, so that one may lie within another. Each execution counts for the block that it began with. The library's
    own code is none.
    """

    def __init__(self, machine: Machine) -> None:
        """Raises Unsupported where the machine does not tell of blocks, MachineBusy while another thread runs it."""
        self._machine, self.busy = machine, machine.busy
        self._counts = self._counting()
        self._told = 0

    @alone
    def _counting(self) -> BlockCounts:
        return blocks_of(self._machine).count_blocks()

    @property
    def blocks(self) -> list[Block]:
        """Every block seen so far, by address."""
        return sorted(Block(*row) for row in self._counts.rows(self._counts.found))

    def new(self) -> list[Block]:
        """The blocks that were first seen since this was called last, in that order."""
        told, self._told = self._told, len(self._counts.found)
        return [Block(*row) for row in self._counts.rows(self._counts.found[told:])] if self._told > told else []

    @property
    def bitmap(self) -> memoryview:
        """65,536 counters of 8 bits, live: of the edges between blocks, each by a number that two may share (AFL's
        map)."""
        return self._counts.edges.toreadonly()

    def clear(self) -> None:
        """The bitmap is all zeros: another run begins."""
        self._counts.forget_edges()

    def reset(self) -> None:
        """All counts are zero. Blocks stay known: new() tells of others only."""
        self._counts.reset()

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write a file: drcov (version 2), lcov (lines of files with line tables) or afl (the bitmap).

        format: None: as the name ends, .drcov, .info or .afl. Raises BadArgument, Unsupported where no file has lines,
        OSError.
        """
        data = self.contents(format_of(path, format))
        with NewFile(path, binary=True) as new:
            new.file.write(data)

    def contents(self, format: str) -> bytes:
        """What save() writes: "drcov", "lcov" or "afl". Raises BadArgument, Unsupported where no file has lines."""
        if format not in FORMATS.values():
            raise BadArgument(f"format is {shown(format)}", hint="pass 'drcov', 'lcov' or 'afl'")
        return self._drcov() if format == "drcov" else self._lcov() if format == "lcov" else bytes(self.bitmap)

    @alone
    def close(self) -> None:
        """Count no more. What was counted stays. MachineBusy while another thread runs the machine."""
        self._counts.close()

    def __enter__(self) -> Coverage:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._counts.found)

    def __repr__(self) -> str:
        return f"<coverage: {len(self):,} blocks, {sum(map(bool, self.bitmap)):,} edges>"

    # --- drcov

    def _drcov(self) -> bytes:
        blocks = [block for block in self.blocks if block.count]
        modules = sorted(self._modules(blocks), key=lambda module: module.base)
        bases, rows = [module.base for module in modules], []
        for block in blocks:
            number = bisect_right(bases, block.address) - 1
            rows.append(struct.pack("<IHH", block.address - bases[number], min(block.size, 0xFFFF), number))
        table = "".join(f"{n:3}, {m.base:#018x}, {m.end:#018x}, {0:#018x}, {m.path.translate(CONTROLS)}\n"
                        for n, m in enumerate(modules))
        head = (f"DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\nModule Table: version 2, count {len(modules)}\n"
                f"Columns: id, base, end, entry, path\n{table}BB Table: {len(rows)} bbs\n")
        return head.encode() + b"".join(rows)

    def _modules(self, blocks: Iterable[Block]) -> Iterator[Module]:
        """The images, and mapped memory that holds what is in none."""
        images = [Module(start, end, name) for name, (start, end) in self._machine.modules.items()]
        yield from images
        regions = self._machine.regions()
        others = [block for block in blocks if not any(image.base <= block.address < image.end for image in images)]
        while others:
            first = others[0].address
            there = next((region for region in regions if region[0] <= first < region[1]), None)
            if there is None:  # mapped no more, or known by another address
                start = first & -self._machine.page_size
                end = max(block.address + block.size for block in others if block.address < start + REACH)
            else:  # without the images in it
                start = max([there[0], *(image.end for image in images if image.end <= first)])
                end = min([there[1], *(image.base for image in images if image.base > first)])
            base = start + (first - start) // REACH * REACH
            end = min(end, base + REACH)
            yield Module(base, end, f"memory at {start:#x}")
            others = [block for block in others if not base <= block.address < end]

    # --- lcov

    def _lcov(self) -> bytes:
        executed = Executed(self.blocks)
        files: dict[str, Counter[int]] = {}
        for loaded in self._machine.symbols.files:
            for name, line, address in lines_of(loaded):
                counts = files.setdefault(name, Counter())
                counts[line] = max(counts[line], executed.count(address + loaded.bias))
        if not files:
            raise Unsupported("no loaded file has line tables", hint="compile with -g, or save .drcov")
        return "".join(_record(name, lines) for name, lines in sorted(files.items())).encode()


class Executed:
    """How often each address was executed."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        steps: Counter[int] = Counter()
        for block in blocks:
            steps[block.address] += block.count
            steps[block.address + block.size] -= block.count
        self._cuts = sorted(steps)
        self._counts = [*accumulate(steps[cut] for cut in self._cuts)]

    def count(self, address: int) -> int:
        """Of one address."""
        at = bisect_right(self._cuts, address) - 1
        return self._counts[at] if at >= 0 else 0


def lines_of(file: LoadedFile) -> Iterator[tuple[str, int, int]]:
    """(source file, line, link address) of every row of a file's line tables; nothing where there are none, or damaged
    ones."""
    try:
        info = dwarf(file)
        for unit in info.iter_CUs() if info is not None and info.has_debug_info else ():
            program = info.line_program_for_CU(unit)
            states = ([entry.state for entry in program.get_entries() if entry.state is not None]
                      if program is not None else [])
            names = _Names(unit, program)
            for state, following in pairwise(states):
                if not state.end_sequence and state.line and following.address > state.address:
                    yield names.of(state.file), state.line, state.address
    except DAMAGE:
        return


class _Names:
    """Of the source files of a unit."""

    def __init__(self, unit: Any, program: Any) -> None:
        self._program, self._known = program, dict[int, str]()
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        self._folder = folder.value.decode(errors="replace") if folder is not None else ""

    def of(self, number: int) -> str:
        """By the number in the table: from 0 on in version 5, before from 1 on."""
        if number not in self._known:
            header = self._program.header
            old = header.version < 5
            entry = header.file_entry[number - old]
            folders = [b"", *header.include_directory] if old else [*header.include_directory]
            folder, name = folders[entry.dir_index].decode(errors="replace"), entry.name.decode(errors="replace")
            self._known[number] = posixpath.normpath(posixpath.join(self._folder, folder, name))
        return self._known[number]


def _record(name: str, lines: Counter[int]) -> str:
    found = "".join(f"DA:{line},{lines[line]}\n" for line in sorted(lines))
    return f"TN:\nSF:{name}\n{found}LF:{len(lines)}\nLH:{sum(map(bool, lines.values()))}\nend_of_record\n"
