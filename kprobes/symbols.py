"""Symbols: name <-> address, sizes, modules. The guest's kallsyms."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import frozen

from .arguments import blame, checked, shown
from .controls import CONTROLS
from .errors import AmbiguousSymbol, BadArgument, ImageError, UnknownSymbol
from .image import (
    FOLDERS,
    CodeLayout,
    LoadedFile,
    Symbol,
    build_id,
    fetched,
    find_separate,
    has_dwarf,
    is_of_same_build,
    read_names,
    write_names,
)
from .names import demangle, is_mangled, literal_words, means, name_matcher, spellings

__all__ = ["CONTROLS", "SourceLine", "Symbol", "Symbols", "name_matcher", "spellings"]

_DEMANGLED = 2000  #: names that are demangled for one hint, at most
#: what stands in each name of C++ and Rust, as people write it, that has a dot
_AROUND_DOTS = re.compile(r"::|[(<{\[ ]")
_REMEMBERED = 1 << 12  #: names as people write them whose symbols are remembered


@frozen
class SourceLine:
    """A line of source code that has code at an address.

    Attributes:
        path: of the source file, as the compiler saw it.
        line: its number, from 1.
        address: guest address at which the line's code begins.
    """

    path: str
    line: int
    address: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@checked("covering", "data_end")
class Symbols:
    """A table of symbols. Lookup by `name`, `module:name`; `at(addr)` the other way."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Symbol]] = {}
        self._addresses: list[int] = []  # sorted, made when first needed
        #: for each, how far it and those before reach; made when an address lies in no symbol, or
        #: not in the one that begins last before it
        self._ends: list[int] = []
        self._at: dict[int, list[Symbol]] = {}
        self._sorted = True
        self._data: list[tuple[int, int, str]] = []  # sorted (start, end, module)
        self._loaded: dict[str, list[tuple[int, int, int]]] = {}
        self._images: list[
            tuple[int, int, str]
        ] = []  # sorted (start, end, module) of what images have mapped
        self.files: tuple[
            LoadedFile, ...
        ] = ()  #: loaded ones that say more than names: call frames, types, lines, conventions
        self.layouts: tuple[CodeLayout, ...] = ()  #: where loaded images have code
        #: the main image's name, in places of the form module:name (its symbols' module is "")
        self.main = ""
        #: bits of a function's address that select the mode of its code, where lists do not say
        #: which they are
        self.mode_bits = 0
        self._read: dict[str, list[Symbol]] = {}
        self._read_at = -1
        self.changes = 0  #: counts additions and removals; whoever caches lookups compares it

    def add(
        self,
        name: str,
        address: int,
        size: int = 0,
        module: str = "",
        mode: int = 0,
        kind: str = "func",
    ) -> Symbol:
        """Add a symbol, unless the same one is there, and return it. `changes` grows by 1 if it is
        new.

        Args:
            name: without a module.
            address: without mode bits.
            size: in bytes; 0: it reaches to the next symbol.
            module: the image's name; "" for the main one.
            mode: mode bits of the code there.
            kind: "func", "object", "ifunc" or another kind that a file tells.
        """
        symbol = Symbol(name, address, size, module, mode, kind)
        known = self._by_name.setdefault(name, [])
        if symbol not in known:
            known.append(symbol)
            self._at.setdefault(address, []).append(symbol)
            self._sorted = False
            self.changes += 1
        return symbol

    def add_all(self, symbols: Iterable[Symbol]) -> None:
        """Add many symbols that are made already, such as those of a large library.

        `changes` grows by 1 for each that is new.

        Args:
            symbols: the symbols; those that are in the table already are left out.

        Raises:
            BadArgument: one of them is no Symbol. None is added then.
        """
        try:
            symbols = list(symbols)
        except TypeError:
            raise BadArgument(f"symbols is {shown(symbols)}", hint="pass Symbols") from None
        for symbol in symbols:
            if not isinstance(symbol, Symbol):
                raise BadArgument(f"symbols has {shown(symbol)}", hint="pass Symbols")
        for symbol in symbols:
            known = self._by_name.setdefault(symbol.name, [])
            if symbol not in known:
                known.append(symbol)
                self._at.setdefault(symbol.address, []).append(symbol)
                self.changes += 1
        self._sorted = False

    def load(
        self,
        path: str | os.PathLike[str],
        bias: int = 0,
        format: str | None = None,
        module: str = "",
    ) -> int:
        """Add the functions and objects that a file names, and return how many were new. Debug
        information or BTF that the file has is added with them.

        Args:
            path: of the file.
            bias: bytes that guest memory is above the file's addresses. Where it is 0, and a file
                of the same build is loaded, that file's bias is taken.
            format: "elf" (the same code, with symbols), "nm" (also System.map and /proc/kallsyms,
                whose modules are kept), "btf" (types and prototypes of a kernel, such as
                /sys/kernel/btf/vmlinux: names no address, adds none), "map" (of GNU ld or lld),
                "ida" (its map file), "table" (lines or columns of names and addresses: what Ghidra
                and IDA export), "idc" (a script of IDA's that sets names), "json" (a list of
                objects with name and address); None: as the file looks.
            module: that the symbols are to belong to; "": the one that the file tells.

        Raises:
            ImageError: there is no such format; or the file cannot be read, is damaged, or has
                nothing in it.
        """
        before = len(self)
        names, data = read_names(path, format)
        if data and not bias:
            bias = next((file.bias for file in self.files if is_of_same_build(file.data, data)), 0)
        self._add_names(names, data, bias, module, os.path.abspath(os.fspath(path)))
        return len(self) - before

    def find_debug(
        self, *, folders: Sequence[str] = FOLDERS, servers: Sequence[str] = ()
    ) -> list[str]:
        """Load the separate debug information of all loaded files that have none, with its names.

        It is looked for as gdb does: by build-id and by .gnu_debuglink, beside the file, in
        `.debug` there, and in `folders`; then servers are asked.

        Args:
            folders: that have debug information of all files.
            servers: addresses of debuginfod servers, such as those in $DEBUGINFOD_URLS; none: no
                network is used.

        Returns:
            The paths, or build-ids, of what was found.

        Raises:
            BadArgument: `folders` or `servers` are no texts.
            ImageError: what was found is damaged; no server has it, and nothing was found for any
                file.
        """
        for what, given in (("folders", folders), ("servers", servers)):
            if isinstance(given, str) or not all(isinstance(each, str) for each in given):
                raise BadArgument(f"{what} is {shown(given)}", hint="pass a list of texts")
        found: list[str] = []
        failed: ImageError | None = None
        for file in self.files:
            if has_dwarf(file.data) or any(
                other is not file
                and other.bias == file.bias
                and has_dwarf(other.data)
                and is_of_same_build(other.data, file.data)
                for other in self.files
            ):
                continue
            separate = find_separate(file.data, file.path, folders)
            if separate is None and servers:
                try:
                    separate = build_id(file.data), fetched(build_id(file.data), servers)
                except ImageError as error:
                    failed = error
            if separate is not None:
                names, data = read_names(separate[1], "elf")
                self._add_names(names, data, file.bias, file.module, separate[0])
                found.append(separate[0])
        if failed is not None and not found:
            raise failed
        return found

    def _add_names(
        self, names: Iterable[Symbol], data: bytes, bias: int, module: str, path: str
    ) -> None:
        """Add the symbols that a file names, and the file itself if it has more than names.

        Args:
            names: the symbols, with the file's addresses.
            data: contents of the file, for types and stacks; b"": it has no more than names.
            bias: bytes that guest memory is above the file's addresses.
            module: that the symbols are to belong to; "": the one that each symbol tells.
            path: of the file.
        """
        self.add_file(data, bias, module, path)
        added = []
        for s in names:
            mode = s.mode or (s.address & self.mode_bits if s.kind != "object" else 0)
            address = s.address - (0 if s.mode else mode) + bias
            added.append(Symbol(s.name, address, s.size, module or s.module, mode, s.kind))
        self.add_all(added)

    def export(self, format: str, pattern: str = "*") -> str:
        """Return the table as other tools read it.

        Args:
            format: "ghidra" (for its ImportSymbolsScript), "ida" (a script in IDC), "binja" (JSON),
                "map" (as nm -S prints it).
            pattern: a shell glob of the names wanted.

        Raises:
            ImageError: there is no such format.
        """
        matches = name_matcher(pattern)
        return write_names((s for s in self if matches(s.name)), format)

    def add_file(self, data: bytes, bias: int, module: str = "", path: str = "") -> None:
        """Add an ELF file whose code is in guest memory: for stacks, types and lines.

        It adds no names.

        Args:
            data: contents of the file; b"": nothing is added.
            bias: bytes that guest memory is above the file's link addresses.
            module: the image's name; "" for the main one.
            path: of the file.
        """
        if data:
            self.files = (*self.files, LoadedFile(data, bias, module, path))

    def add_layout(self, layout: CodeLayout) -> None:
        """Add an image's layout, which says where it has code.

        Args:
            layout: at its addresses in guest memory.

        Raises:
            BadArgument: `layout` is no CodeLayout.
        """
        if not isinstance(layout, CodeLayout):
            raise BadArgument(
                f"layout is {shown(layout)}",
                hint="pass a CodeLayout, as Image.layout.moved() gives one",
            )
        self.layouts = (*self.layouts, layout)

    def add_loaded(
        self, parts: Iterable[tuple[int, int, int]], bias: int, module: str = ""
    ) -> None:
        """Note where the parts of a file lie in guest memory, for in_file().

        An earlier note of the module is lost.

        Args:
            parts: (offset in the file, link address, bytes), in the order in which they are to be
                searched.
            bias: bytes that guest memory is above link addresses.
            module: the image's name; "" for the main one.

        Raises:
            BadArgument: `parts` is something else.
        """
        try:
            self._loaded[module] = [
                (offset, address + bias, size) for offset, address, size in parts
            ]
        except (TypeError, ValueError):
            raise BadArgument(
                f"parts is {shown(parts)}", hint="pass (offset, address, size) of each"
            ) from None

    def add_image(self, parts: Iterable[tuple[int, int]], module: str = "") -> None:
        """Note where an image lies.

        Its symbols without a size reach no farther than their part of it. A part that begins where
        another of the same module ends is joined to that. `changes` grows by 1.

        Args:
            parts: (first address, the one behind the last) of each part.
            module: the image's, "" for the main one.

        Raises:
            BadArgument: `parts` is something else.
        """
        try:
            placed = sorted((operator.index(start), operator.index(end)) for start, end in parts)
        except (TypeError, ValueError):
            raise BadArgument(
                f"parts is {shown(parts)}", hint="pass (start, end) of each"
            ) from None
        for start, end in placed:
            neighbours = [part for part in self._images if part[1] == start and part[2] == module]
            for part in neighbours:
                self._images.remove(part)
            bisect.insort(self._images, (neighbours[0][0] if neighbours else start, end, module))
        self._sorted = False
        self.changes += 1

    def _reach(self, symbol: Symbol) -> int:
        """Return the address at which a symbol ends at the latest: it covers nothing from there on.

        For a symbol with a size that is its end. For one without, it is the end of its image's
        part; where that is not known, the beginning of the next image, FARTHEST bytes on at most.
        The next symbol may begin before. One without a size at the very end of its image's part
        covers nothing.
        """
        if symbol.size:
            return symbol.address + symbol.size
        own = [part for part in self._images if part[2] == symbol.module]
        for start, end, _ in own:
            if start <= symbol.address < end:
                return end
            if symbol.address == end:  # a linker's, of the end
                return symbol.address
        others = (start for start, _, _ in self._images if start > symbol.address)
        return min([symbol.address + FARTHEST, *itertools.islice(others, 1)])

    def in_file(self, module: str, offset: int) -> int | None:
        """Return the guest address of a byte of a loaded file; None: that byte is not loaded.

        Args:
            module: the image's name.
            offset: of the byte in the file.
        """
        parts = self._loaded.get("" if module == self.main else module, ())
        return next(
            (
                address + offset - start
                for start, address, size in parts
                if start <= offset < start + size
            ),
            None,
        )

    def add_data(self, start: int, end: int, module: str = "") -> None:
        """Mark [start, end) as data amid code (a literal pool, a jump table): no probe may be
        there.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
            module: the image's name; "" for the main one.
        """
        bisect.insort(self._data, (start, end, module))
        self.changes += 1

    def data_end(self, addr: int) -> int:
        """Return the end of the data amid code that `addr` lies in; 0: it lies in none.

        Raises:
            BadArgument: `addr` is no integer.
        """
        try:
            at = bisect.bisect_right(self._data, (addr, math.inf, "")) - 1
        except TypeError as error:
            raise blame(error, addr=addr) from None
        return self._data[at][1] if at >= 0 and addr < self._data[at][1] else 0

    def remove_module(self, module: str) -> None:
        """Forget every symbol of a module, and all that is known of its file.

        `changes` grows by 1.
        """
        self._data = [data for data in self._data if data[2] != module]
        self._images = [part for part in self._images if part[2] != module]
        self.files = tuple(file for file in self.files if file.module != module)
        self.layouts = tuple(layout for layout in self.layouts if layout.module != module)
        self._loaded.pop(module, None)
        for symbol in [s for s in self if s.module == module]:
            self._by_name[symbol.name].remove(symbol)
            if not self._by_name[symbol.name]:
                del self._by_name[symbol.name]
            self._at[symbol.address].remove(symbol)
            if not self._at[symbol.address]:
                del self._at[symbol.address]
        self._sorted = False
        self.changes += 1

    def __getitem__(self, name: str) -> Symbol:
        """Return the symbol of a name, or of `module:name`.

        Raises:
            UnknownSymbol: there is none; the hint has names that are like it.
            AmbiguousSymbol: several addresses have the name.
            BadArgument: it is no text.
        """
        if not isinstance(name, str):
            raise BadArgument(
                f"a symbol's name is text, not {name!r}",
                hint="symbols.covering(address) gives the symbol of an address",
            )
        found = self._by_name.get(name) or self._elsewhere(name)
        if len(found) == 1:
            return found[0]
        if not found:
            raise UnknownSymbol("no such symbol", symbol=name, hint=self._hint(name))
        addresses = tuple(sorted({s.address for s in found}))
        if len(addresses) > 1:
            modules = dict.fromkeys(s.module or self.main for s in found)
            raise AmbiguousSymbol(name, addresses, tuple(modules))
        return found[0]

    def place(self, name: str) -> Symbol:
        """Return the symbol of a name, or of an address that is written as "0x8000020".

        For an address it is the symbol that begins there, or a new one without a size.

        Raises:
            UnknownSymbol: there is no such name.
            AmbiguousSymbol: several addresses have it.
        """
        number = address_of(name)
        if number is None or name in self._by_name:
            return self[name]
        address = number & ~self.mode_bits
        here = max(self._at.get(address, ()), key=_preference, default=None)
        return Symbol(name, address, mode=number & self.mode_bits) if here is None else here

    def _elsewhere(self, name: str) -> list[Symbol]:
        """Return the symbols that a name means which no symbol has exactly; [] for an address as
        text.

        Args:
            name: `module:name`, or a C++ or Rust name as people write it.
        """
        module, colon, base = name.rpartition(":")
        wanted = "" if module == self.main else module
        found = [s for s in self._by_name.get(base, ()) if s.module == wanted] if colon else []
        if found or address_of(name) is not None:
            return found
        return self._spelled(name)

    def _spelled(self, name: str) -> list[Symbol]:
        """Return the symbols that a C++ or Rust name means, as people write it, found by
        demangling.

        The result is remembered until symbols change.

        Args:
            name: with its parameters or without, of a template perhaps without its arguments;
                without a module.
        """
        if "." in name and not _AROUND_DOTS.search(name):
            return []  # of a file: `shop.c:12`
        if self._read_at != self.changes:
            self._read.clear()
            self._read_at = self.changes
        if name not in self._read:
            if len(self._read) > _REMEMBERED:
                self._read.clear()
            found = []
            for symbol in perhaps_spelled(self, name):
                if means(name, demangle(symbol.name)):
                    found.append(symbol)
            self._read[name] = found
        return self._read[name]

    def find(self, name: str) -> Symbol | None:
        """Return the symbol of exactly this name that was added first; None where none has the
        name.

        Args:
            name: as in the symbol table, without a module.
        """
        found = self._by_name.get(name)
        return found[0] if found else None

    def of_name(self, name: str) -> tuple[Symbol, ...]:
        """Return all symbols of a name; none where there is no such name."""
        return tuple(self._by_name.get(name, ()))

    def __contains__(self, name: str) -> bool:
        return bool(self._by_name.get(name) or self._elsewhere(name))

    def __iter__(self) -> Iterator[Symbol]:
        for symbols in list(self._by_name.values()):
            yield from symbols

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values()))

    def at(self, addr: int) -> tuple[Symbol, int]:
        """Return the symbol that an address lies in, and the offset in it: (symbol, bytes).

        Raises:
            UnknownSymbol: it lies in none.
            BadArgument: `addr` is no integer.
        """
        found = self.covering(addr)
        if found is None:
            raise UnknownSymbol(
                "lies in no symbol",
                address=addr,
                python="add one with machine.symbols.add(name, addr, size)",
            )
        return found, addr - found.address

    def covering(self, addr: int) -> Symbol | None:
        """Return the symbol that `addr` lies in; None: it lies in none.

        Of symbols that overlap it is the one that begins last. A symbol without a size reaches to
        the end of its image, where it covers what no symbol behind it covers. The search ends at a
        symbol that does not cover `addr` and begins more than 1 MiB before it.

        Raises:
            BadArgument: `addr` is no integer.
        """
        if not self._sorted:
            self._addresses = sorted(self._at)
            self._ends = []
            self._sorted = True
        try:
            i = bisect.bisect_right(self._addresses, addr) - 1
        except TypeError as error:
            raise blame(error, addr=addr) from None
        while i >= 0:
            best = max(self._at[self._addresses[i]], key=_preference)
            if addr < self._reach(best):
                return best
            if addr - best.address > 1 << 20:
                return None
            i -= 1
            if not self._ends:
                self._ends = self._farthest()
            if i < 0 or addr >= self._ends[i]:
                break  # nothing that starts before reaches so far
        return None

    def _farthest(self) -> list[int]:
        """Return for each of the addresses that symbols have, in their order, how far its symbols
        and those of lower addresses reach.
        """
        ends = []
        end = 0
        for address in self._addresses:
            for symbol in self._at[address]:
                size = symbol.size
                end = max(end, address + size if size else self._reach(symbol))
            ends.append(end)
        return ends

    def starts(self, addr: int) -> bool:
        """Return True where a symbol that is no object has this address."""
        return any(s.kind != "object" for s in self._at.get(addr, ()))

    def extent(self, symbol: Symbol) -> int:
        """Return the address behind a symbol; 0: it is not known.

        That is its address + size; without a size, the next symbol's address or the end of its
        image, whichever comes first.

        Args:
            symbol: of this table.
        """
        if symbol.size:
            return symbol.address + symbol.size
        self.covering(symbol.address)
        i = bisect.bisect_right(self._addresses, symbol.address)
        following = self._addresses[i] if i < len(self._addresses) else 0
        image = next(
            (
                end
                for start, end, module in self._images
                if module == symbol.module and start <= symbol.address < end
            ),
            0,
        )
        return min(filter(None, (following, image)), default=0)

    def describe(self, addr: int) -> str:
        """Return an address as text: `name+0xOFF`, or the bare address where no symbol covers
        it.
        """
        found = self.covering(addr)
        return f"{addr:#x}" if found is None else f"{found.name}+{addr - found.address:#x}"

    def _hint(self, name: str) -> str:
        """Return a hint for a message about a name that is not in the table: names that are like
        it.

        C++'s and Rust's are named as people write them. Where there are none, the hint says how to
        list or find names.
        """
        import difflib  # errors alone want it

        bare = name if "::" in name else name.rpartition(":")[2]  # without a module
        known = [each for each in self._by_name if is_mangled(bare) or not is_mangled(each)]
        near = difflib.get_close_matches(bare, known, 3)
        if not near:
            near = difflib.get_close_matches(bare, names_like(self, bare), 3)
        if not near:
            return where_names_are(self)
        return f"did you mean {' or '.join(near).translate(CONTROLS)}?"


#: Bytes that a symbol without a size, of which nobody knows the image, reaches at most.
FARTHEST = 1 << 24


def names_like(symbols: Symbols, name: str) -> list[str]:
    """Return names of C++ and Rust that may be meant by a name: those with one of its words, or all
    where there are none; at most `_DEMANGLED`, as people write them, without parameters.

    Args:
        symbols: where to look.
        name: the name, which no symbol has; without a module.
    """
    words = [f"{len(word)}{word}" for word in literal_words(name)]  # as mangled names have them
    mangled = [symbol.name for symbol in perhaps_spelled(symbols, "")]
    sharing = [each for each in mangled if any(word in each for word in words)]
    ways = [spellings(each) for each in (sharing or mangled)[:_DEMANGLED]]
    return list(dict.fromkeys(way[1:3][-1] for way in ways))


def where_names_are(symbols: Iterable[Any]) -> str:
    """Return a hint for a message about a name that none of some symbols has: how to list or find
    names.

    Args:
        symbols: those that there are.
    """
    if any(symbol.kind in ("func", "ifunc") for symbol in symbols):
        return "`kprobes symbols FILE` lists what there is"
    return "no function has a name here: --discover or m.discover() finds them"


def add_names(
    symbols: Symbols,
    file: str | os.PathLike[str] | None,
    debug_files: Iterable[str],
    servers: Sequence[str],
) -> None:
    """Add the names that options of a command give to a machine's.

    Args:
        symbols: the machine's; what is loaded already gets its separate debug information.
        file: with names; None: there is none.
        debug_files: ELF files with debug information of what is loaded.
        servers: addresses of debuginfod servers; none: no network is used.

    Raises:
        ImageError: a file cannot be read, or is damaged; debug information is of another build; or
            no server has debug information.
    """
    if file is not None:
        symbols.load(file)
    for path in debug_files:
        _refuse_other_build(symbols, path)
        symbols.load(path, format="elf")
    symbols.find_debug(servers=servers)


def _refuse_other_build(symbols: Symbols, path: str) -> None:
    """Raise ImageError where a file of debug information is of no loaded file, by build-ids.

    Nothing is raised where the file, or one that is loaded, has no build-id.

    Args:
        symbols: has the files that are loaded.
        path: of the file of debug information.
    """
    own = build_id(read_names(path, "elf")[1])
    loaded = [build_id(file.data) for file in symbols.files]
    if own and loaded and all(loaded) and own not in loaded:
        raise ImageError(
            f"{path}: it is of another build: its build-id is {own[:16]}..., what is loaded has "
            f"{' and '.join(f'{each[:16]}...' for each in loaded)}",
            hint="give the debug information of this build",
        )


def address_of(name: str) -> int | None:
    """Return the address that is written as a text like "0x8000020"; None: the text is no
    address.
    """
    digits = name[2:]
    if (
        name[:2] not in ("0x", "0X")
        or not 0 < len(digits) <= 16
        or not set(digits) <= set("0123456789abcdefABCDEF")
    ):
        return None
    return int(digits, 16)


def _preference(symbol: Symbol) -> tuple[bool, bool, bool, int]:
    """Return a key by which the best of several symbols at an address is the largest.

    A function comes before an object, then one with a size, one without leading underscores, a
    short name.
    """
    return (
        symbol.kind != "object",
        symbol.size > 0,
        not symbol.name.startswith("_"),
        -len(symbol.name),
    )


def perhaps_spelled(symbols: Symbols, pattern: str) -> Iterator[Symbol]:
    """Yield the symbols with mangled names that a C++ or Rust name may stand for.

    Names are not demangled; those that lack a word that must stand in them are left out.

    Args:
        symbols: where to look.
        pattern: the name as people write it, or a glob of such names; "": any.
    """
    words = literal_words(pattern)
    rarest = max(words, key=len, default="")
    for symbol in symbols:
        name = symbol.name
        if rarest in name and is_mangled(name) and all(word in name for word in words):
            yield symbol
