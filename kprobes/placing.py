"""Images: what an ELF file asks for, and what guest memory holds once it has an address.

`Image.place` only computes: nothing here maps memory or runs code.

Thread-local storage is not set up: words that hold offsets from the thread pointer are bound as if it were 0, so code that
uses them faults at a small (or, negative, a very high) address; `Placed.warnings` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import field, frozen

from .elf import Entry, Relocation
from .errors import ImageError
from .relocation_types import ARM, PPC64, SPARCV9, TRICORE
from .relocations import Memory, Row, Site, Target, apply, rows, signed
from .symbols import Symbol

_PAGES = {SPARCV9: 0x2000, TRICORE: 0x4000}  # bytes; 0x1000 elsewhere
FUNCTIONS = ("STT_FUNC", "STT_LOOS", "STT_LOPROC")  # STT_LOOS: an ifunc; STT_LOPROC: Thumb code in old ARM files
SPECIAL = ("_GLOBAL_OFFSET_TABLE_", "_gp_disp", "_gp", "__gnu_local_gp", ".TOC.")  # the linker's own; of a .o, ours
_DESCRIPTOR = 24  # bytes: code address, TOC, environment (PPC64 ELFv1)


def page_size(machine: int) -> int:
    """Bytes of the smallest page of an e_machine; segments are cut and merged at multiples of it."""
    return _PAGES.get(machine, 0x1000)


@frozen(kw_only=True)
class Segment:
    """Memory to map. addr and memsz (bytes) are multiples of the page size; what is beyond `data` is zero. perms: of "rwx"."""

    addr: int
    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    memsz: int
    perms: str


@frozen(kw_only=True)
class Import:
    """An undefined symbol. kind: "func", "object" or "" where the file does not say. size: bytes, of objects, or 0."""

    name: str
    weak: bool
    kind: str
    size: int


@frozen(kw_only=True)
class Copy:
    """Bytes of another image: after everything is mapped, copy `size` bytes from address `frm` to `to`."""

    to: int
    frm: int
    size: int


#: name of an undefined symbol -> its address (on ARM with bit 0 set for Thumb code; on PPC64 ELFv1 the function descriptor's,
#: and the code itself is asked for as `.name`), or None where nobody has it
Resolve = Callable[[str], int | None]
#: address of an ifunc's resolver function -> the address to use for the function
ResolveIfunc = Callable[[int], int]


@frozen(kw_only=True)
class Placed:
    """An image at its address.

    Attributes:
        segments: disjoint, in order, relocated. symbols: at run addresses. entry: where a program starts, or None.
        init: addresses of initialisation functions in the order in which they are due; nobody has called them.
        local_entries: PPC64 ELFv2: function address -> bytes from it to the entry for callers of the same image.
        copies: to be done after mapping. warnings: what will not work, one sentence each.
    """

    name: str
    base: int
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    entry: int | None
    init: tuple[int, ...]
    local_entries: dict[int, int]
    copies: tuple[Copy, ...]
    warnings: tuple[str, ...]


@frozen(kw_only=True)
class Image:
    """A parsed file. Addresses are link addresses; `place` moves them.

    Attributes:
        name: module name, the file's base name. machine, flags: e_machine and e_flags of the file. bits: 32 or 64. order: "little" or "big".
        kind: "exec" (fixed addresses), "dyn" (shared object or PIE), "rel" (.o, .ko; laid out here from address 0).
        entry: None where there is none. symbols: functions and objects, a PLT stub of f as `f@plt`.
        imports: undefined symbols by name. tls: it has thread-local storage.
        init: (address, 0) of an initialisation function, (address, bytes) of a table of them, in the order in which they are due.
        local_entries: see Placed. descriptors: PPC64 ELFv1: function symbols are descriptors.
        relocates_itself: a static PIE with addends in place, see `place`. warnings: what could not be read.
    """

    name: str
    machine: int
    flags: int
    bits: int
    order: str
    kind: str
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    relocations: tuple[Relocation, ...] = field(repr=lambda relocations: f"<{len(relocations)} relocations>")
    entries: tuple[Entry, ...] = field(repr=False)  #: the symbol table that relocations count in
    imports: dict[str, Import] = field(repr=lambda imports: f"<{len(imports)} imports>")
    entry: int | None = None
    init: tuple[tuple[int, int], ...] = ()
    tls: bool = False
    relocates_itself: bool = False
    local_entries: dict[int, int] = field(factory=dict)
    got: int = 0  #: relocatable files: where the slots are that relocations ask for
    warnings: tuple[str, ...] = ()

    @property
    def lowest(self) -> int:
        """Lowest link address, a multiple of the page size."""
        return self.segments[0].addr

    @property
    def span(self) -> int:
        """Bytes from the lowest address to the end of the highest segment, a multiple of the page size."""
        return self.segments[-1].addr + self.segments[-1].memsz - self.lowest

    @property
    def descriptors(self) -> bool:
        """PPC64 ELFv1: function symbols are descriptors. Old files do not say so; little-endian ones never are."""
        return self.machine == PPC64 and self.flags & 3 != 2 and self.order == "big"

    def place(self, base: int, resolve: Resolve, resolve_ifunc: ResolveIfunc | None = None, *,
              module: str | None = None, relocate: bool = True) -> Placed:
        """What memory holds with the image loaded `base` bytes above its link addresses.

        base: a multiple of page_size(machine); 0 for kind "exec". resolve: addresses of undefined symbols; where it has none a weak symbol
        is 0. resolve_ifunc: without it functions that choose their implementation at load time are bound to 0.
        module: of the symbols; default: the image's name. relocate=False: leave that to the start-up code of a static PIE,
        which would add the base a second time where addends stand in place.
        Raises ImageError: no room, an undefined symbol, a relocation that is unknown or does not reach.
        """
        end, page = base + self.lowest + self.span, page_size(self.machine)
        if base % page or base + self.lowest < 0 or end > 1 << self.bits or (self.kind == "exec" and base):
            raise ImageError(f"{self.name}: cannot be moved by {base:#x}",
                             hint=f"the base is a multiple of {page:#x}, and 0 for executables with fixed addresses")
        return _Placing(self, base, resolve, resolve_ifunc).placed(self.name if module is None else module, relocate)


def memory_of(segments: Iterable[Segment], base: int, order: str, name: str) -> Memory:
    """The segments' bytes, `base` bytes above their addresses."""
    return Memory(((s.addr + base, s.memsz, s.data) for s in segments), order, name)


def segment_at(segments: Iterable[Segment], addr: int) -> Segment | None:
    """The segment that covers an address."""
    return next((s for s in segments if s.addr <= addr < s.addr + s.memsz), None)


class _Placing:
    """An image while it gets its address; the Binder of its relocations."""

    def __init__(self, image: Image, base: int, resolve: Resolve, resolve_ifunc: ResolveIfunc | None) -> None:
        self._of, self._resolve, self._resolve_ifunc = image, resolve, resolve_ifunc
        self.memory = memory_of(image.segments, base, image.order, image.name)
        self.image, self.bias, self.got = image.name, base, base + image.got
        self.gp, self.toc = self.got + 0x7FF0, self.got + 0x8000  # the middle of what 16 signed bits reach
        self.hi20: dict[int, int] = {}
        self._slots: dict[int, int] = {}
        self._targets: dict[int, Target] = {}
        self._thread_local: list[str] = []
        self._ifuncs = 0
        self._copies: list[Copy] = []
        self._warnings = list(image.warnings)

    def placed(self, module: str, relocate: bool) -> Placed:
        if relocate:
            self._relocate()
        image, base = self._of, self.bias
        segments = tuple(Segment(addr=addr, data=bytes(data), memsz=size, perms=s.perms)
                         for (addr, size, data), s in zip(self.memory.regions, image.segments, strict=True))
        return Placed(
            name=image.name, base=base, segments=segments, symbols=tuple(self._symbols(module)),
            entry=None if image.entry is None else image.entry + base, init=tuple(self._init()) if relocate else (),
            local_entries={addr + base: offset for addr, offset in image.local_entries.items()},
            copies=tuple(self._copies), warnings=tuple(self._warnings))

    def _relocate(self) -> None:
        known = {kind: self._rows(kind) for kind in {r.type for r in self._of.relocations}}
        for late in (False, True):
            for r in self._of.relocations:
                if known[r.type][-1].late == late:
                    self._apply(r, known[r.type])
        if self._thread_local:
            words = f"{len(self._thread_local)} thread-local words (the first: {self._thread_local[0] or 'unnamed'})"
            self._warnings.append(f"{words} are bound as if the thread pointer were 0: code that uses them faults")
        if self._ifuncs:
            self._warnings.append(f"{self._ifuncs} ifuncs are bound to 0: place() was given no resolve_ifunc")
        if self._of.relocates_itself:
            self._warnings.append("its start-up code relocates it again: to run it from its entry, place it with relocate=False")

    def _rows(self, kind: int) -> list[Row]:
        found = rows(self._of.machine, self._of.bits, kind)
        if not found:
            raise ImageError(f"{self.image}: relocation type {kind & 0xFFFF} of e_machine {self._of.machine} is not supported",
                             hint="link it into an executable or a shared object, with fewer kinds of relocations")
        return found

    def _apply(self, r: Relocation, found: list[Row]) -> None:
        row, p = found[-1], r.offset + self.bias
        if row.tls:
            self._thread_local.append(self._of.entries[r.symbol].name if r.symbol < len(self._of.entries) else "")
        if row.formula == "COPY":
            self._copy(self._entry(r.symbol), p)
        elif row.name == "R_PPC64_JMP_SLOT" and self._of.descriptors:
            if not self._target(r.symbol).absent:
                self._copies.append(Copy(to=p, frm=self._target(r.symbol).address, size=_DESCRIPTOR))
        else:
            extra = signed(r.type >> 8, 24) if self._of.machine == SPARCV9 else 0
            apply(found, Site(p, r.addend or 0, self._target(r.symbol), self, row, extra))

    def _copy(self, e: Entry, p: int) -> None:
        """The program's own copy of a library's object; its symbol is defined here, so ask for the original."""
        original = self._resolve(e.name)
        if original:
            self._copies.append(Copy(to=p, frm=original, size=e.size))
        else:
            self._warnings.append(f"nobody has the original of {e.name}: its copy is zero")

    def _entry(self, index: int) -> Entry:
        if index >= len(self._of.entries):
            raise ImageError(f"{self.image}: a relocation names symbol {index} of {len(self._of.entries)}",
                             hint="the file is damaged: build or fetch it again")
        return self._of.entries[index]

    def _target(self, index: int) -> Target:
        if index not in self._targets:
            self._targets[index] = self._bind(self._entry(index)) if index else Target()
        return self._targets[index]

    def _bind(self, e: Entry) -> Target:
        if e.type == "STT_TLS":
            return Target(e.name, e.value)
        if e.section == "SHN_UNDEF":
            return self._undefined(e)
        address = e.value + (0 if e.section in ("SHN_ABS", "none") else self.bias)
        if e.type == "STT_LOOS":
            address = self.ifunc(address)
        thumb = address & 1 if self._of.machine == ARM and e.type in FUNCTIONS else 0
        return Target(e.name or "a section", address - thumb, thumb, e.size, local=e.bind == "STB_LOCAL")

    def _undefined(self, e: Entry) -> Target:
        if e.name in SPECIAL and self._of.kind == "rel":
            return Target(e.name, {"_GLOBAL_OFFSET_TABLE_": self.got, ".TOC.": self.toc}.get(e.name, self.gp), local=False)
        address = self._resolve(e.name) if e.name else 0
        if address is None and e.bind != "STB_WEAK":
            raise ImageError(f"{self.image}: undefined symbol", symbol=e.name, hint="load what has it, or let resolve give an address")
        thumb = (address or 0) & 1 if self._of.machine == ARM else 0
        return Target(e.name, (address or 0) - thumb, thumb, e.size, local=False, absent=not address)

    def slot(self, content: int) -> int:
        """Address of a GOT slot that holds `content`."""
        word = self._of.bits // 8
        if content not in self._slots:
            if self._of.kind != "rel":
                raise ImageError(f"{self.image}: a relocation of a linked file asks for a GOT slot", hint="link it again")
            self._slots[content] = self.got + len(self._slots) * word
            self.memory.write(self._slots[content], word, content)
        return self._slots[content]

    def code(self, target: Target) -> int:
        """Where a direct call lands: PPC64 has local entry points (ELFv2) and descriptors (ELFv1)."""
        if not self._of.descriptors:
            return target.address + self._of.local_entries.get(target.address - self.bias, 0)
        segment = segment_at(self._of.segments, target.address - self.bias)
        if segment is None:
            return target.address if target.name.startswith(".") else self._resolve(f".{target.name}") or target.address
        return target.address if "x" in segment.perms else self.memory.read(target.address, 8)

    def ifunc(self, resolver: int) -> int:
        """What to use for the function that the resolver at this address chooses."""
        if self._resolve_ifunc is None:
            self._ifuncs += 1
            return 0
        return self._resolve_ifunc(resolver)

    def _symbols(self, module: str) -> Iterator[Symbol]:
        names = {s.name for s in self._of.symbols}
        for s in self._of.symbols:
            moved = Symbol(s.name, s.address + self.bias, s.size, module, s.mode, s.kind)
            yield moved
            if self._of.descriptors and s.kind == "func" and f".{s.name}" not in names:
                yield from self._code_symbol(moved)

    def _code_symbol(self, descriptor: Symbol) -> Iterator[Symbol]:
        """ELFv1: `.f` is f's code."""
        segment = segment_at(self._of.segments, descriptor.address - self.bias)
        if segment is not None and "x" not in segment.perms:
            code = self.memory.read(descriptor.address, 8)
            yield Symbol(f".{descriptor.name}", code, descriptor.size, descriptor.module)

    def _init(self) -> Iterator[int]:
        word = self._of.bits // 8
        for addr, size in self._of.init:
            table = [self.memory.read(at + self.bias, word) for at in range(addr, addr + size, word)]
            nobody = (0, (1 << self._of.bits) - 1)
            yield from (f for f in table if f not in nobody) if size else (addr + self.bias,)
