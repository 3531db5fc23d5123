"""The values that images are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import field, frozen

from ._sites import ImageMemory
from ._symbol import Symbol
from ._types import SPARCV9, TRICORE

_PAGES = {SPARCV9: 0x2000, TRICORE: 0x4000}  # bytes; 0x1000 elsewhere
#: STT_LOOS: an ifunc; STT_LOPROC: Thumb code in old ARM files
FUNCTIONS = ("STT_FUNC", "STT_LOOS", "STT_LOPROC")
#: what is asked for the function that descriptors of thread-local variables begin with
TLSDESC = "_dl_tlsdesc"
#: the linker's own; of a .o, ours
SPECIAL = ("_GLOBAL_OFFSET_TABLE_", "_gp_disp", "_gp", "__gnu_local_gp", ".TOC.")


def page_size(machine: int) -> int:
    """Return the bytes of the smallest page; segments are cut and merged at multiples of it.

    Args:
        machine: e_machine of the file.
    """
    return _PAGES.get(machine, 0x1000)


@frozen(kw_only=True)
class Segment:
    """Memory to map.

    Attributes:
        addr: a multiple of the page size.
        data: its first bytes; memory beyond them is zero.
        memsz: bytes in memory, a multiple of the page size.
        perms: those of "rwx" that hold.
    """

    addr: int
    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    memsz: int
    perms: str


@frozen(kw_only=True)
class TlsBlock:
    """An image's template of thread-local storage, which each thread gets a copy of.

    Attributes:
        addr: link address of the template.
        filesz: bytes that are copied from there.
        memsz: bytes of the block; what is beyond `filesz` is zero.
        align: of the block, in bytes.
    """

    addr: int
    filesz: int
    memsz: int
    align: int


@frozen(kw_only=True)
class Import:
    """An undefined symbol.

    Attributes:
        name: of the symbol.
        weak: True: it may stay undefined.
        kind: "func", "object" or "" where the file does not say.
        size: bytes, of objects; else 0.
    """

    name: str
    weak: bool
    kind: str
    size: int


@frozen(kw_only=True)
class Copy:
    """Bytes of another image that are to be copied after everything is mapped.

    Attributes:
        to: run address to which they go.
        frm: run address where they are.
        size: bytes.
    """

    to: int
    frm: int
    size: int


#: name of an undefined symbol -> its address (of Thumb code with bit 0 set; of functions on PPC64
#: ELFv1 the descriptor's), or None where nobody has it
Resolve = Callable[[str], int | None]
#: address of an ifunc's resolver function -> the address to use for the function
ResolveIfunc = Callable[[int], int]


@frozen(kw_only=True)
class Placed:
    """An image at its address.

    Attributes:
        segments: disjoint, in order, relocated.
        symbols: at run addresses.
        entry: where a program starts, or None.
        init: addresses of initialisation functions in the order in which they are due;
            nobody has called them.
        local_entries: PPC64 ELFv2: function address -> bytes from it to the entry for
            callers of the same image.
        data: (start, end) of data amid code.
        copies: to be done after mapping.
        warnings: what will not work, one sentence each.
    """

    name: str
    base: int
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    entry: int | None
    init: tuple[int, ...]
    local_entries: dict[int, int]
    data: tuple[tuple[int, int], ...]
    copies: tuple[Copy, ...]
    warnings: tuple[str, ...]


def memory_of(segments: Iterable[Segment], base: int, order: str, name: str) -> ImageMemory:
    """Return an image's bytes as memory that relocations can be read from and written to.

    Args:
        segments: of the image.
        base: bytes that are added to their addresses.
        order: "little" or "big".
        name: names the image in errors.
    """
    return ImageMemory(((s.addr + base, s.memsz, s.data) for s in segments), order, name)


def segment_at(segments: Iterable[Segment], addr: int) -> Segment | None:
    """Return the segment that covers an address; None: none does."""
    return next((s for s in segments if s.addr <= addr < s.addr + s.memsz), None)
