"""Images: what an ELF file asks for, and what guest memory holds once it has an address.

`Image.place` only computes: nothing here maps memory or runs code.

Thread-local storage is not set up here. Without `tls` words that hold offsets from the thread
pointer are bound as if the storage were where that points at, so that code which uses them faults
at a small address; `Placed.warnings` says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from attrs import field, frozen

from ..errors import ImageError
from ._elf import Relocation, SymbolEntry, damage_is_error
from ._layout import CodeLayout
from ._relocations import apply, rows
from ._sites import RelocationRow, RelocationSite, RelocationTarget, signed
from ._symbol import Symbol
from ._types import ARM, MIPS, PPC64, SPARCV9
from ._values import (
    FUNCTIONS,
    SPECIAL,
    TLSDESC,
    Copy,
    Import,
    Placed,
    Resolve,
    ResolveIfunc,
    Segment,
    TlsBlock,
    memory_of,
    page_size,
    segment_at,
)
from ._veneers import CODE, SIZES

COPIED = "R_PPC64_JMP_SLOT"  # what it names is copied, where functions have descriptors
_DESCRIPTOR = 24  # bytes: code address, TOC, environment (PPC64 ELFv1)


@frozen(kw_only=True)
class Image:
    """A parsed file. Addresses are link addresses; `place` moves them.

    Attributes:
        name: module name, the file's base name.
        machine, flags: the file's e_machine and e_flags.
        bits: 32 or 64.
        profile: of the CPU ("M": a microcontroller), where the file names one.
        order: "little" or "big"; of ARM files whose flags have 0x00800000 (BE8), code is
            little-endian all the same.
        kind: "exec" (fixed addresses), "dyn" (shared object or PIE), "rel" (.o, .ko; laid
            out here from address 0).
        entry: None where there is none.
        symbols: functions and objects, a PLT stub of f as `f@plt`.
        imports: undefined symbols by name.
        tls: it has thread-local storage.
        init: (address, 0) of an initialisation function, (address, bytes) of a table of
            them, in the order in which they are due.
        local_entries: PPC64 ELFv2: function address -> bytes from it to the entry for callers of
            the same image.
        descriptors: PPC64 ELFv1: function symbols are descriptors.
        relocates_itself: a static PIE with addends in place, see `place`.
        own_words: (link address, value in the file) of words that a static program's
            start-up code relocates, and whose addends stand in place: placing has put
            something else there.
        warnings: what could not be read.
    """

    name: str
    machine: int
    flags: int
    bits: int
    order: str
    kind: str
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = field(repr=lambda symbols: f"<{len(symbols)} symbols>")
    relocations: tuple[Relocation, ...] = field(
        repr=lambda relocations: f"<{len(relocations)} relocations>"
    )
    #: the symbol table that relocations count in
    entries: tuple[SymbolEntry, ...] = field(repr=False)
    imports: dict[str, Import] = field(repr=lambda imports: f"<{len(imports)} imports>")
    entry: int | None = None
    init: tuple[tuple[int, int], ...] = ()
    tls: bool = False
    tls_block: TlsBlock | None = None  #: its template, where it is no relocatable file
    #: the program headers in memory: link address, bytes of each, how many
    headers: tuple[int, int, int] | None = None
    relocates_itself: bool = False
    own_words: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    local_entries: dict[int, int] = field(factory=dict)
    #: (start, end) of data amid code
    data: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    profile: str = ""
    got: int = 0  #: relocatable files: where the slots are that relocations ask for
    #: relocatable files: where the code stands that calls of other images go through
    veneers: int = 0
    warnings: tuple[str, ...] = ()
    path: str = ""  #: of the file; "" where it was given as bytes
    #: all of it, where it says anything of its source; b"": it does not
    file: bytes = field(default=b"", repr=False)
    #: (offset in the file, link address, bytes) of what is loaded, code first
    in_file: tuple[tuple[int, int, int], ...] = ()
    #: where it has code; None: relocatable files
    layout: CodeLayout | None = field(default=None, repr=False)

    @property
    def lowest(self) -> int:
        """Lowest link address, a multiple of the page size."""
        return self.segments[0].addr

    @property
    def span(self) -> int:
        """Bytes from the lowest address to the end of the highest segment, a multiple of the page
        size.
        """
        return self.segments[-1].addr + self.segments[-1].memsz - self.lowest

    @property
    def descriptors(self) -> bool:
        """PPC64 ELFv1: function symbols are descriptors.

        Old files do not say so; little-endian ones never are.
        """
        return self.machine == PPC64 and self.flags & 3 != 2 and self.order == "big"

    def place(
        self,
        base: int,
        resolve: Resolve,
        resolve_ifunc: ResolveIfunc | None = None,
        *,
        module: str | None = None,
        relocate: bool = True,
        tls: tuple[int, int, int] = (0, 0, 0),
    ) -> Placed:
        """Compute the memory of the image, loaded `base` bytes above its link addresses.

        This image stays as it is, and no memory is mapped. `resolve` and `resolve_ifunc` are called
        for the symbols that relocations name. KprobeErrors that they raise go to the caller; other
        errors of Python's (LookupError, ValueError, TypeError ...) become ImageError.

        Args:
            base: a multiple of page_size(machine); 0 for kind "exec".
            resolve: name of an undefined symbol -> its address, or None: a weak symbol is 0 then.
            resolve_ifunc: address of a resolver -> the function that it chooses; without it such
                functions are bound to 0.
            module: of the symbols; None: the image's name.
            relocate: False: leave that to the start-up code of a static PIE, which would add the
                base a second time where addends stand in place.
            tls: (the image's number for __tls_get_addr, 0: no thread-local storage is set up; bytes
                from the thread pointer to the image's storage; bytes that the ABI subtracts from
                offsets within that storage).

        Returns:
            The image at its address: relocated memory, symbols, what is to be copied after mapping,
            and warnings.

        Raises:
            ImageError: the image cannot be at `base`, a symbol has no address, or a value does not
                fit where it is written.
        """
        end, page = base + self.lowest + self.span, page_size(self.machine)
        if (
            base % page
            or base + self.lowest < 0
            or end > 1 << self.bits
            or (self.kind == "exec" and base)
        ):
            raise ImageError(
                f"{self.name}: cannot be moved by {base:#x}",
                hint=f"the base is a multiple of {page:#x}, and 0 for executables with fixed "
                "addresses",
            )
        with damage_is_error(self.name):
            return _Placing(self, base, resolve, resolve_ifunc, tls).placed(
                self.name if module is None else module, relocate
            )


class _Placing:
    """An image while it gets its address: its memory is computed, and relocations are applied to
    it.

    It is the Binder of these relocations: it answers what their formulas ask for (slot(), veneer(),
    code(), ifunc() ...).
    """

    def __init__(
        self,
        image: Image,
        base: int,
        resolve: Resolve,
        resolve_ifunc: ResolveIfunc | None,
        tls: tuple[int, int, int],
    ) -> None:
        """Copy the image's bytes to their addresses; placed() relocates them.

        Args:
            image: gets an address.
            base: bytes that are added to its link addresses.
            resolve: name of an undefined symbol -> its address, or None.
            resolve_ifunc: address of a resolver -> the function that it chooses; None: such
                functions are 0.
            tls: (the image's number, bytes from the thread pointer to its thread-local storage,
                bytes that words with offsets in it leave out).
        """
        self._of = image
        self._resolve = resolve
        self._resolve_ifunc = resolve_ifunc
        self.tls = tls
        self.memory = memory_of(image.segments, base, image.order, image.name)
        self.image = image.name
        self.bias = base
        self.got = base + image.got
        # the middle of what 16 signed bits reach
        self.gp = self.got + 0x7FF0
        self.toc = self.got + 0x8000
        self.hi20: dict[int, int] = {}
        self._slots: dict[int, int] = {}
        self._veneers: dict[tuple[int, str], int] = {}
        self._targets: dict[int, RelocationTarget] = {}
        self._thread_local: list[str] = []
        self._ifuncs = 0
        self._copies: list[Copy] = []
        self._warnings = list(image.warnings)

    def placed(self, module: str, relocate: bool) -> Placed:
        """Relocate where that is asked for, and return the image at its address.

        Args:
            module: the symbols' module.
            relocate: False: leave the bytes as in the file, and return no initialisation functions.
        """
        if relocate:
            self._relocate()
        image, base = self._of, self.bias
        segments = tuple(
            Segment(addr=addr, data=bytes(data), memsz=size, perms=s.perms)
            for (addr, size, data), s in zip(self.memory.regions, image.segments, strict=True)
        )
        return Placed(
            name=image.name,
            base=base,
            segments=segments,
            symbols=tuple(self._symbols(module)),
            entry=None if image.entry is None else image.entry + base,
            init=tuple(self._init()) if relocate else (),
            local_entries={addr + base: offset for addr, offset in image.local_entries.items()},
            data=tuple((start + base, end + base) for start, end in image.data),
            copies=tuple(self._copies),
            warnings=tuple(self._warnings),
        )

    def _relocate(self) -> None:
        """Apply all relocations to `memory`, note what is to be copied after mapping, and add
        warnings of what is bound to nothing useful.

        The last ones are those that need what others leave (RelocationRow.late): code addresses in
        descriptors, low parts of an address whose high part has its own relocation.
        """
        known = {kind: self._rows(kind) for kind in {r.type for r in self._of.relocations}}
        plain = {kind for kind, found in known.items() if len(found) == 1 and found[0].plain}
        word = self._of.bits // 8
        for late in (False, True):
            kinds = {kind for kind, found in known.items() if found[-1].late == late}
            mine = (r for r in self._of.relocations if r.type in kinds)
            for simple, group in itertools.groupby(mine, lambda r: r.type in plain):
                if simple:
                    self.memory.write_words(self._plain_words(group, known), word)
                else:
                    for r in group:
                        self._apply(r, known[r.type])
        if self._thread_local and not self.tls[0]:
            words = (
                f"{len(self._thread_local)} thread-local words (the first: "
                f"{self._thread_local[0] or 'unnamed'})"
            )
            self._warnings.append(
                f"{words} are bound as if the thread pointer were 0: code that uses them faults"
            )
        if self._ifuncs:
            self._warnings.append(
                f"{self._ifuncs} ifuncs are bound to 0: place() was given no resolve_ifunc"
            )
        if self._of.relocates_itself:
            self._warnings.append(
                "its start-up code relocates it again: to run it from its entry, place it with "
                "relocate=False"
            )

    def _rows(self, kind: int) -> list[RelocationRow]:
        """Return the rows of a relocation type: what it computes and where the value goes.

        Args:
            kind: the type's number.

        Raises:
            ImageError: the type is not known.
        """
        found = rows(self._of.machine, self._of.bits, kind)
        if not found:
            raise ImageError(
                f"{self.image}: relocation type {kind & 0xFFFF} of e_machine "
                f"{self._of.machine} is not "
                "supported",
                hint="link it into an executable or a shared object, with fewer kinds of "
                "relocations",
            )
        return found

    def _apply(self, r: Relocation, found: list[RelocationRow]) -> None:
        """Apply a relocation: write its value into memory, or note what is to be copied after
        mapping. The symbol of a thread-local one is noted, to be warned of. A type that does
        nothing (formula "-") is passed over.

        Args:
            r: the relocation, at its link address.
            found: the rows of its type, one or more.
        """
        row, p = found[-1], r.offset + self.bias
        if row.formula == "-":
            return
        if row.tls:
            self.hi20[p] = 0  # RISC-V: the low part, which names this place, has nothing to add
            self._thread_local.append(
                self._of.entries[r.symbol].name if r.symbol < len(self._of.entries) else ""
            )
        if row.formula == "COPY":
            self._copy(self._entry(r.symbol), p)
        elif row.name == COPIED and self._of.descriptors:
            if not self._target(r.symbol).absent:
                self._copies.append(
                    Copy(to=p, frm=self._target(r.symbol).address, size=_DESCRIPTOR)
                )
        else:
            extra = signed(r.type >> 8, 24) if self._of.machine == SPARCV9 else 0
            apply(found, RelocationSite(p, r.addend or 0, self._target(r.symbol), self, row, extra))

    def _plain_words(
        self, relocations: Iterable[Relocation], known: dict[int, list[RelocationRow]]
    ) -> Iterator[tuple[int, int]]:
        """Yield (run address, value) for relocations that make a whole address the sum of a few
        numbers.

        It takes a tenth of the time of _apply().

        Args:
            relocations: at their link addresses; their rows are `plain`.
            known: the rows of each type.
        """
        formulas = {kind: found[0].formula for kind, found in known.items()}
        for r in relocations:
            formula = formulas[r.type]
            value = self.bias if formula == "B+A" else self._target(r.symbol).address
            if formula != "S":
                value += r.addend or 0
            yield r.offset + self.bias, value

    def _copy(self, e: SymbolEntry, p: int) -> None:
        """Note that a library's object is to be copied into the program's own; add a warning where
        no image has it.

        Args:
            e: the object's symbol. It is defined in this program, so its original is looked up by
                name.
            p: run address of the program's copy.
        """
        original = self._resolve(e.name)
        if original:
            self._copies.append(Copy(to=p, frm=original, size=e.size))
        else:
            self._warnings.append(f"nobody has the original of {e.name}: its copy is zero")

    def _entry(self, index: int) -> SymbolEntry:
        """Return an entry of the symbol table that relocations count in.

        Args:
            index: of the entry.

        Raises:
            ImageError: it is out of range.
        """
        if index >= len(self._of.entries):
            raise ImageError(
                f"{self.image}: a relocation names symbol {index} of {len(self._of.entries)}",
                hint="the file is damaged: build or fetch it again",
            )
        return self._of.entries[index]

    def _target(self, index: int) -> RelocationTarget:
        """Return what a symbol means at run time; it is found the first time, as _bind() does, and
        kept.

        Args:
            index: of the symbol in the symbol table; 0 is no symbol: address 0.
        """
        if index not in self._targets:
            self._targets[index] = self._bind(self._entry(index)) if index else RelocationTarget()
        return self._targets[index]

    def _bind(self, e: SymbolEntry) -> RelocationTarget:
        """Return what a symbol means at run time. The address of a thread-local symbol is its
        offset. For an ifunc its resolver is run in the guest; without `resolve_ifunc` the address
        is 0, and the ifunc is counted.

        Raises:
            ImageError: the symbol is undefined, not weak, and has no address.
        """
        if e.type == "STT_TLS":
            return RelocationTarget(e.name, e.value)
        if e.section == "SHN_UNDEF":
            return self._undefined(e)
        address = e.value + (0 if e.section in ("SHN_ABS", "none") else self.bias)
        if e.type == "STT_LOOS":
            address = self.ifunc(address)
        thumb = address & 1 if self._of.machine == ARM and e.type in FUNCTIONS else 0
        return RelocationTarget(
            e.name or "a section", address - thumb, thumb, e.size, local=e.bind == "STB_LOCAL"
        )

    def _undefined(self, e: SymbolEntry) -> RelocationTarget:
        """Return what an undefined symbol means: a name of the linker's own, or what `resolve`
        gives. A weak symbol without an address is at 0, and `absent`.

        Args:
            e: the symbol's entry.

        Raises:
            ImageError: there is no address, and the symbol is not weak.
        """
        if e.name in SPECIAL and self._of.kind == "rel":
            return RelocationTarget(
                e.name,
                {"_GLOBAL_OFFSET_TABLE_": self.got, ".TOC.": self.toc}.get(e.name, self.gp),
                local=False,
            )
        address = self._resolve(e.name) if e.name else 0
        if address is None and e.bind != "STB_WEAK":
            raise ImageError(
                f"{self.image}: undefined symbol",
                symbol=e.name,
                hint="load what has it, or let resolve give an address",
            )
        thumb = (address or 0) & 1 if self._of.machine == ARM else 0
        return RelocationTarget(
            e.name,
            (address or 0) - thumb,
            thumb,
            e.size,
            local=False,
            imported=bool(address),
            absent=not address,
        )

    def slot(self, content: int) -> int:
        """Return the address of a GOT slot that holds a word; the first time, fill one.

        Args:
            content: the word.

        Raises:
            ImageError: the image is no relocatable file.
        """
        word = self._of.bits // 8
        if content not in self._slots:
            self._refuse_linked()
            self._slots[content] = self.got + len(self._slots) * word
            self.memory.write(self._slots[content], word, content)
        return self._slots[content]

    def veneer(self, target: int, kind: str) -> int:
        """Return the address of a veneer, code that jumps to a target; write it the first time.

        Args:
            target: run address, with the Thumb bit.
            kind: of the veneer, a key of _veneers.CODE.

        Raises:
            ImageError: the image is no relocatable file.
        """
        if (target, kind) not in self._veneers:
            self._refuse_linked()
            at = self._veneers[target, kind] = (
                self.bias + self._of.veneers + len(self._veneers) * SIZES[self._of.machine]
            )
            for size, value in CODE[kind](target):
                self.memory.write(at, size, value)
                at += size
        return self._veneers[target, kind]

    def _refuse_linked(self) -> None:
        """Check that the image is a relocatable file: only these have room for slots and veneers.

        Raises:
            ImageError: it is not.
        """
        if self._of.kind != "rel":
            raise ImageError(
                f"{self.image}: a relocation that only a relocatable file can have",
                hint="link it again",
            )

    def code(self, x: RelocationSite) -> int:
        """Return the address that a direct call is to jump to.

        That is the function, but for MIPS and PPC64. A function of another image wants its address
        (MIPS, below 0x80000000) or its TOC (PPC64) in a register: then it is a veneer, made here,
        that sets it. On PPC64 a function of this image is entered at its local entry point (ELFv2),
        or where its descriptor says (ELFv1).

        Args:
            x: the place of the relocation, in the call.
        """
        target, machine = x.target, self._of.machine
        if machine == MIPS:
            return (
                self.veneer(target.address, "mips")
                if target.imported and target.address < 1 << 31
                else target.address
            )
        if machine != PPC64 or target.absent or (target.imported and target.name.startswith(".")):
            return target.address
        if target.imported:
            return self._toc_veneer(x)
        if not self._of.descriptors:
            return target.address + self._of.local_entries.get(target.address - self.bias, 0)
        segment = segment_at(self._of.segments, target.address - self.bias)
        return (
            target.address
            if segment is None or "x" in segment.perms
            else self.memory.read(target.address, 8)
        )

    def _toc_veneer(self, x: RelocationSite) -> int:
        """Return the address of a veneer that saves r2 and goes to the site's symbol.

        The nop behind the call, which compilers leave for this, is made to restore r2.

        Args:
            x: the place of the relocation, in the call.
        """
        if self.memory.read(x.p, 4) & 1 and self.memory.read(x.p + 4, 4) == 0x60000000:
            # ld r2, 40(r1) or 24(r1)
            self.memory.write(x.p + 4, 4, 0xE8410028 if self._of.descriptors else 0xE8410018)
        return self.veneer(x.target.address, "elfv1" if self._of.descriptors else "elfv2")

    def describe(self, x: RelocationSite) -> int:
        """Fill the second word of a thread-local variable's descriptor, and return what the first
        one is.

        The second word is the variable's offset from the thread pointer.

        Args:
            x: the place of the relocation, at the descriptor.

        Returns:
            The address of the function that answers the second word; 0 where no image has it.
        """
        word = self._of.bits // 8
        self.memory.write(x.p + word, word, x.sum + self.tls[1] & (1 << self._of.bits) - 1)
        return self._resolve(TLSDESC) or 0

    def ifunc(self, resolver: int) -> int:
        """Return the function that an ifunc's resolver chooses; the resolver is run in the guest.

        Args:
            resolver: its address.

        Returns:
            The function's address; 0 where there is no `resolve_ifunc`: this is counted, and warned
            of.
        """
        if self._resolve_ifunc is None:
            self._ifuncs += 1
            return 0
        return self._resolve_ifunc(resolver)

    def _symbols(self, module: str) -> Iterator[Symbol]:
        """Yield the image's symbols at run addresses; of a function descriptor f also its code, as
        `.f`.

        Args:
            module: that they belong to.
        """
        names = {s.name for s in self._of.symbols} if self._of.descriptors else set()
        for s in self._of.symbols:
            moved = Symbol(s.name, s.address + self.bias, s.size, module, s.mode, s.kind)
            yield moved
            if self._of.descriptors and s.kind == "func" and f".{s.name}" not in names:
                yield from self._code_symbol(moved)

    def _code_symbol(self, descriptor: Symbol) -> Iterator[Symbol]:
        """Yield `.f`, the code of an ELFv1 descriptor f.

        Args:
            descriptor: the symbol f, at its run address; nothing is yielded where it is code
                itself.
        """
        segment = segment_at(self._of.segments, descriptor.address - self.bias)
        if segment is not None and "x" not in segment.perms:
            code = self.memory.read(descriptor.address, 8)
            yield Symbol(f".{descriptor.name}", code, descriptor.size, descriptor.module)

    def _init(self) -> Iterator[int]:
        """Yield the run addresses of the initialisation functions, in the order in which they are
        due.

        Entries of 0 and -1 in tables are none.
        """
        word = self._of.bits // 8
        for addr, size in self._of.init:
            table = [
                self.memory.read(at + self.bias, word) for at in range(addr, addr + size, word)
            ]
            nobody = (0, (1 << self._of.bits) - 1)
            yield from (f for f in table if f not in nobody) if size else (addr + self.bias,)
