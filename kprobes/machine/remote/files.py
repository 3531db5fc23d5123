"""Finds the program and libraries that a remote guest has loaded, as a debugger does.

System V ABI, "Process Initialization" (the auxiliary vector) and <link.h> (struct r_debug, struct
link_map).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from ...arch import described, get, of_elf
from ...arch._base import Arch
from ...errors import ImageError, KprobeError, Unsupported
from ...image import Image, read_elf
from ...symbols import Symbols
from .target import RemoteTarget

# types of entries of the auxiliary vector
AT_PHDR = 3
AT_PHENT = 4
AT_PHNUM = 5
AT_PAGESZ = 6
AT_BASE = 7
AT_ENTRY = 9
AT_RANDOM = 25
# types of program headers, and tags of the dynamic section
PT_DYNAMIC = 2
PT_PHDR = 6
DT_DEBUG = 21
DT_MIPS_RLD_MAP = 0x70000016
DT_MIPS_RLD_MAP_REL = 0x70000035

LARGEST = 1 << 20  #: the most bytes of a function or object of a module
STACK = 1 << 15  #: bytes of a stack that are certainly mapped
MOST = 4096  #: the most entries of the dynamic section, and the most libraries

Read = Callable[[int, int], bytes]


@frozen
class RemoteFile:
    """An image in guest memory.

    Attributes:
        image: the file.
        bias: address in memory less the link address.
        module: its name; "": the program itself.
    """

    image: Image
    bias: int
    module: str

    def executable(self, addr: int) -> bool:
        """Return True for a guest address in a segment of the image that may be executed."""
        return any(
            "x" in s.perms and s.addr <= addr - self.bias < s.addr + s.memsz
            for s in self.image.segments
        )

    @property
    def end(self) -> int:
        """The address behind the image in guest memory."""
        return self.bias + self.image.lowest + self.image.span

    @property
    def start(self) -> int:
        """The address of the image's first byte in guest memory."""
        return self.bias + self.image.lowest

    def tell(self, symbols: Symbols) -> None:
        """Add what is known of the image to a symbol table: its symbols, the addresses of its
        segments, the file (for its debug information), and its data amid code.

        Args:
            symbols: the table.
        """
        placed = self.image.place(self.bias, lambda name: 0, module=self.module, relocate=False)
        for s in placed.symbols:
            symbols.add(s.name, s.address, s.size, s.module, s.mode, s.kind)
        symbols.add_image([(s.addr, s.addr + s.memsz) for s in placed.segments], self.module)
        symbols.add_file(self.image.file, self.bias, self.module, self.image.path)
        for start, end in placed.data:
            symbols.add_data(start, end, self.module)


def auxiliary(data: bytes, word: int, order: str) -> dict[int, int]:
    """Parse an auxiliary vector, and return it as type -> value. An entry that is cut off at the
    end is left out; of several entries of one type the last counts.

    Args:
        data: the vector's bytes, as the stub sends them.
        word: bytes of a word.
        order: byte order of a word, "little" or "big".
    """
    words = [
        int.from_bytes(data[at : at + word], order)  # type: ignore[arg-type]
        for at in range(0, len(data) - len(data) % (2 * word), word)
    ]
    return dict(zip(words[::2], words[1::2], strict=True))


class Linked:
    """The list of loaded libraries that a dynamic linker keeps in guest memory. That memory may
    hold anything.
    """

    def __init__(self, read: Read, vector: dict[int, int], bits: int, order: str) -> None:
        """Prepare; nothing is read.

        Args:
            read: (address, size) -> guest memory.
            vector: the auxiliary vector, type -> value.
            bits: width of a word.
            order: byte order of a word, "little" or "big".
        """
        self._read = read
        self._vector = vector
        self._word = bits // 8
        self._order = order

    def libraries(self) -> Iterator[tuple[int, str]]:
        """Yield (bias, path) of each loaded library: bytes that it lies above its link address,
        path in the guest.

        The first entry, which is the program itself, and entries without a path are left out. A
        damaged list is followed as far as it is sound, and for 4,096 entries (MOST) at most.
        """
        seen: set[int] = set()
        try:
            entry = self._at(self._debug() + self._word)
            while entry and entry not in seen and len(seen) < MOST:
                seen.add(entry)
                bias, name = self._at(entry), self._at(entry + self._word)
                path = self._string(name)
                if path and len(seen) > 1:
                    yield bias, path
                entry = self._at(entry + 3 * self._word)
        except KprobeError:
            return

    def _debug(self) -> int:
        """Return the address of the dynamic linker's struct r_debug, found by the program's
        headers; 0: the dynamic linker has not written it yet.

        Raises:
            ImageError: the program is not linked dynamically.
            GuestFault: memory cannot be read.
        """
        table, size, number = (self._vector.get(key, 0) for key in (AT_PHDR, AT_PHENT, AT_PHNUM))
        headers = [self._header(table + n * size) for n in range(min(number, 64))]
        bias = next((table - address for kind, address in headers if kind == PT_PHDR), 0)
        dynamic = next((bias + address for kind, address in headers if kind == PT_DYNAMIC), 0)
        for at in range(dynamic, dynamic + MOST * 2 * self._word, 2 * self._word):
            tag, value = (self._at(at), self._at(at + self._word)) if dynamic else (0, 0)
            if tag == DT_DEBUG:
                return value
            if tag == DT_MIPS_RLD_MAP:
                return self._at(value)
            if tag == DT_MIPS_RLD_MAP_REL:
                return self._at(at + value & (1 << 8 * self._word) - 1)
            if not tag:
                break
        raise ImageError("the program is not linked dynamically")

    def _header(self, at: int) -> tuple[int, int]:
        """Return (type, link address) of the program header at address `at`."""
        return self._at(at, 4), self._at(at + (16 if self._word == 8 else 8))

    def _at(self, addr: int, size: int = 0) -> int:
        """Read an unsigned number from guest memory.

        Args:
            addr: its address.
            size: its bytes; 0: those of a word.
        """
        order: Any = self._order
        return int.from_bytes(self._read(addr, size or self._word), order)

    def _string(self, addr: int) -> str:
        """Read a path from guest memory, up to its NUL or for 4 KiB; "" where `addr` is 0."""
        text = b""
        while addr and len(text) < 4096 and b"\0" not in text:
            at = addr + len(text)
            text += self._read(at, 64 - at % 64)
        return os.fsdecode(text.partition(b"\0")[0])


def find(path: str, sysroot: str | None) -> Path:
    """Return where a guest's file would be on this computer: in `sysroot` if it is there, else at
    the guest's own path, whether it is there or not.

    Args:
        path: the guest's, absolute.
        sysroot: folder that stands for the guest's root; None: there is none.
    """
    inside = Path(sysroot or "/") / path.lstrip("/")
    return inside if sysroot and inside.exists() else Path(path)


def read_library(path: str, sysroot: str | None) -> Image | None:
    """Return a library's file; None where it is not on this computer, or is no ELF file that can be
    read.

    Args:
        path: the guest's, absolute.
        sysroot: folder that stands for the guest's root; None: there is none.
    """
    try:
        return read_elf(find(path, sysroot), os.path.basename(path))
    except ImageError:
        return None


class Loads:
    """The files that a guest has loaded: its program, and libraries as they come.

    Attributes:
        vector: the auxiliary vector, type -> value.
    """

    def __init__(
        self, symbols: Symbols, vector: dict[int, int], arch: Arch, sysroot: str | None
    ) -> None:
        """Prepare; no file is loaded yet.

        Args:
            symbols: the machine's symbol table, which gets the files' symbols.
            vector: the auxiliary vector, type -> value.
            arch: the guest's architecture.
            sysroot: folder that stands for the guest's root; None: there is none.
        """
        self._symbols = symbols
        self.vector = vector
        self._arch = arch
        self._sysroot = sysroot
        self._loaded: list[RemoteFile] = []

    def program(self, image: Image | None) -> None:
        """Note where the program itself is loaded, add its symbols to the table, and make its name
        the table's `main`.

        Args:
            image: the program's file; None: it is not known, and nothing is done.
        """
        if image is None:
            return
        entry = self.vector.get(AT_ENTRY)
        bias = 0
        if image.kind != "exec" and entry is not None and image.entry is not None:
            bias = entry - image.entry
        self._enter(image, bias, "")
        self._symbols.main = image.name

    def libraries(self, read: Read) -> tuple[str, ...]:
        """Find the shared libraries that the guest has loaded since the last call, and add their
        symbols to the table.

        Args:
            read: (address, size) -> guest memory.

        Returns:
            Names of those that are new. A library is left out where its file is not on this
            computer, or has the name of a file that is known to be loaded.
        """
        known = {loaded.module for loaded in self._loaded}
        new = []
        for bias, path in Linked(
            read, self.vector, self._arch.bits, self._arch.order.value
        ).libraries():
            image = None if os.path.basename(path) in known else read_library(path, self._sysroot)
            if image is not None:
                self._enter(image, bias, image.name)
                new.append(image.name)
        return tuple(new)

    def _enter(self, image: Image, bias: int, module: str) -> None:
        """Note that a file is loaded, and add its symbols to the table.

        Args:
            image: the file.
            bias: address in memory less the link address.
            module: its name; "": the program itself.
        """
        self._loaded.append(RemoteFile(image, bias, module))
        self._loaded[-1].tell(self._symbols)

    def unload(self, name: str, page: int) -> list[int]:
        """Forget a module and its symbols.

        Args:
            name: of the module.
            page: bytes of a page.

        Returns:
            Addresses of the pages that its symbols were in, sorted; of a symbol of more than 1 MiB
            (LARGEST) those of its first 1 MiB.

        Raises:
            Unsupported: no symbol of it is known.
        """
        symbols = self._symbols
        ends = {
            s.address: min(symbols.extent(s), s.address + LARGEST)
            for s in symbols
            if s.module == name and name
        }
        if not ends:
            raise Unsupported(
                f"no module {name!r} is known", hint="load its symbols while it is there"
            )
        symbols.remove_module(name)
        self._loaded = [loaded for loaded in self._loaded if loaded.module != name]
        parts = (range(start & -page, max(end, start + 1), page) for start, end in ends.items())
        return sorted({place for part in parts for place in part})

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(start, end) of every segment of the loaded files, in guest memory."""
        return [
            (loaded.bias + s.addr, loaded.bias + s.addr + s.memsz)
            for loaded in self._loaded
            for s in loaded.image.segments
        ]

    def regions(self) -> list[tuple[int, int]]:
        """Return (start, end) of what is known to be mapped, sorted: segments of files, and 32 KiB
        of the stack where the auxiliary vector shows it.
        """
        spans = set(self.spans)
        outermost = self.vector.get(AT_RANDOM)  # an address near the stack's outermost end
        if outermost is not None:
            upwards = self._arch.abi is not None and self._arch.abi.upwards
            start = outermost if upwards else outermost - STACK
            spans.add((start, start + STACK))
        return sorted(span for span in spans if span[0] < span[1])

    @property
    def nothing(self) -> bool:
        """Whether no file is known to be loaded."""
        return not self._loaded

    def executable(self, addr: int) -> bool:
        """Return True for a guest address in code of a loaded file."""
        return any(loaded.executable(addr) for loaded in self._loaded)

    def start(self, addr: int) -> int:
        """Return the guest address where the file begins that has code at `addr`; 0: none has."""
        return min((loaded.start for loaded in self._loaded if loaded.executable(addr)), default=0)

    def end(self, addr: int) -> int:
        """Return the guest address behind the file that has code at `addr`; 0: none has."""
        return max((loaded.end for loaded in self._loaded if loaded.executable(addr)), default=0)


def arch_of(target: RemoteTarget, image: Image | None, name: str | None) -> Arch:
    """Return the guest's architecture, by its file, else by name, else as the stub says.

    Args:
        target: the stub.
        image: the program's file; None: it is not known.
        name: the architecture's name, where the user has given one. It decides between several
            architectures that a file may be for.

    Raises:
        ImageError: nothing tells the architecture.
        RemoteError: the stub's description is no XML, or the stub is gone.
        Unsupported: the architecture is not known.
    """
    if image is not None:
        return of_elf(image.machine, image.bits, image.order, image.flags, image.profile, name)
    found = name or described(target.described()[0])
    if found is None:
        raise ImageError(
            "neither the stub nor a file tells the architecture", hint="pass arch= or image="
        )
    return get(found)
