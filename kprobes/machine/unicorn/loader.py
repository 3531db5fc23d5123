"""Puts a parsed ELF image into a Unicorn machine: mappings, imports, symbols, stack, entry.

A stub is code of the library's that stands for an imported function; when the guest calls it, it
traps (stubs.py).
"""

from __future__ import annotations

import glob
import os
import platform

from unicorn import unicorn_const as const

from ...errors import AlreadyRegistered, GuestFault, ImageError, NoMemory, Unsupported
from ...image import (
    TLSDESC,
    CodeLayout,
    Image,
    Placed,
    Segment,
    collector_paused,
    page_size,
    read_elf,
)
from ...symbols import Symbols
from .._listed import SymbolList, add_symbols
from .functions import Functions
from .layout import PAGE, whole
from .memory import IMAGE_BASE, GuestMemory
from .process import LinuxProcess
from .stackandexit import StackAndExit
from .stubs import Stubs

#: name -> address or (address, size in bytes); or a file of symbols
STUB = 16  # bytes per imported function
DESCRIPTOR = 32  # bytes of a function descriptor (24), rounded up


def read(file: str | os.PathLike[str] | bytes, name: str | None) -> Image:
    """Parse an ELF file, and return the image.

    Args:
        file: its path or its bytes. A name without a slash that is no file here is looked up among
            the system's libraries.
        name: of the image; None: the file's.

    Raises:
        ImageError: the file cannot be read, or is none that can be loaded.
    """
    if isinstance(file, str) and "/" not in file and not os.path.exists(file):
        file = _library(file) or file
    return read_elf(file, name)


def _library(name: str) -> str | None:
    """Search the folders where the system keeps libraries, those of LD_LIBRARY_PATH first, for a
    file name, and return its path; None: it is in none.
    """
    places = [
        *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
        "/usr/local/lib",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    ]
    native = f"{platform.machine()}-linux-gnu*"
    for place in filter(None, [*places, f"/lib/{native}", f"/usr/lib/{native}"]):
        for path in glob.glob(os.path.join(place, glob.escape(name))):
            if os.path.isfile(path):
                return path
    return None


class Loader:
    """Loads images into a machine's memory.

    Attributes:
        modules: name of an image -> (start, bytes) of each range that it has mapped.
    """

    def __init__(
        self,
        memory: GuestMemory,
        functions: Functions,
        stubs: Stubs,
        stack_and_exit: StackAndExit,
        process: LinuxProcess,
    ) -> None:
        """Prepare; nothing is loaded.

        Args:
            memory: the guest's.
            functions: sets pc to an entry, and has the symbols.
            stubs: serves imports that no module has.
            stack_and_exit: maps the stack.
            process: lays out thread-local storage.
        """
        self._memory = memory
        self._functions = functions
        self._stubs = stubs
        self._stack_and_exit = stack_and_exit
        self._process = process
        self.modules: dict[str, list[tuple[int, int]]] = {}

    @property
    def snapshot_state(self) -> dict[str, list[tuple[int, int]]]:
        """The modules, as a copy for a snapshot; setting it goes back to such a copy.

        Modules loaded since then lose their symbols; those unloaded since do not get them back.
        """
        return self.modules.copy()

    @snapshot_state.setter
    def snapshot_state(self, then: dict[str, list[tuple[int, int]]]) -> None:
        """Set the modules to what a snapshot has kept, and remove the symbols of those loaded
        since.
        """
        if then != self.modules:
            for name in self.modules.keys() - then.keys():
                self._functions.symbols.remove_module(name)
            self.modules = then.copy()

    def place(self, image: Image, base: int | None, *, main: bool) -> Placed:
        """Map an image, bind its imports and add its symbols; the main image also gets a stack, and
        pc at its entry.

        Args:
            image: the image.
            base: address of the image; None: where there is room, or where it is linked for.
            main: True for the main image.

        Returns:
            The image at its addresses.

        Raises:
            ImageError, NoMemory: it cannot be placed; what was mapped by then stays.
            Unsupported: thread-local storage is set up already, and has no room for the image's.
        """
        with collector_paused():
            return self._place(image, base, main)

    def _place(self, image: Image, base: int | None, main: bool) -> Placed:
        """Put an image into guest memory: map and fill its segments, bind imports, add its symbols.

        The ranges that were mapped are noted in `modules`, and in StackAndExit.thread_local whether
        an image has thread-local storage. The main image also gets a stack, and the guest stands at
        its entry.

        Args:
            image: the image.
            base: address of the image; None: where there is room, or where it is linked for.
            main: True for the main image.

        Returns:
            The image at its addresses.

        Raises:
            ImageError, NoMemory: it cannot be placed.
            Unsupported: thread-local storage is set up already, and has no room for the image's.
        """
        memory, symbols = self._memory, self._functions.symbols
        bias = self._bias(image, base)
        if main:
            memory.settle_in(bias + image.lowest)
        imports = _Imports(
            memory, symbols, self._stubs, image, bias + image.lowest, "" if main else image.name
        )
        tls = self._process.reserve(image, bias)
        placed = image.place(
            bias, imports.resolve, imports.resolve_ifunc, module="" if main else image.name, tls=tls
        )
        self.modules[image.name] = [(s.addr, s.memsz) for s in placed.segments] + imports.mapped
        self._stack_and_exit.thread_local = self._stack_and_exit.thread_local or image.tls
        for segment in placed.segments:
            self._map(image, segment)
            memory.write(segment.addr, segment.data)
        for copy in placed.copies:
            try:
                memory.write(copy.to, memory.read(copy.frm, copy.size))
            except GuestFault as fault:
                raise ImageError(
                    f"{image.name}: {copy.size:#x} bytes are to be copied from another image, "
                    "which has less",
                    address=fault.address,
                    hint="load the version of the library that it was linked with",
                ) from None
        self._process.loaded(image, placed, main)
        symbols.add_all(placed.symbols)
        symbols.add_image(
            [(s.addr, s.addr + s.memsz) for s in placed.segments], "" if main else image.name
        )
        symbols.add_loaded(image.in_file, bias, "" if main else image.name)
        if image.layout is not None:
            symbols.add_layout(image.layout.moved(bias, "" if main else image.name))
        symbols.add_file(image.file, bias, "" if main else image.name, image.path)
        for start, end in placed.data:
            symbols.add_data(start, end, "" if main else image.name)
        if main:
            symbols.main = image.name
            self._stack_and_exit.bring()
            if placed.entry is not None:
                self._functions.stand_at(placed.entry)
        return placed

    def _map(self, image: Image, segment: Segment) -> None:
        """Map memory for a segment of an image. The segment's data are not written here.

        Args:
            image: the image.
            segment: the segment, at its address.

        Raises:
            NoMemory: the memory cannot be mapped. Where the file can stand at one address only, the
                hint does not propose another base.
        """
        try:
            self._memory.map(segment.addr, segment.memsz, segment.perms)
        except NoMemory as error:
            if image.kind != "exec":
                raise
            raise NoMemory(
                error.reason,
                address=segment.addr,
                hint=f"{image.name} is linked for this place: load it first, or unmap what is "
                "there",
            ) from None

    def add(self, image: Image, base: int | None) -> str:
        """Load an image beside the main one. Where that fails, nothing of it stays.

        Args:
            image: the image.
            base: its address; None: where there is room.

        Returns:
            The module's name.

        Raises:
            AlreadyRegistered: a module of that name is loaded.
            ImageError, NoMemory: it cannot be placed.
            Unsupported: thread-local storage is set up already, and has no room for the image's.
        """
        if image.name in self.modules:
            raise AlreadyRegistered(
                f"module {image.name} is loaded", hint="unload it first, or pass name="
            )
        before, reserved = set(self._memory.regions()), self._process.reserved
        stubs = self._stubs
        imports, ifuncs = stubs.imports.copy(), stubs.ifuncs.copy()
        try:
            self.place(image, base, main=False)
        except BaseException:
            for start, end in set(self._memory.regions()) - before:
                self._memory.unmap_pages(start, end - start)
            self.modules.pop(image.name, None)
            self._functions.symbols.remove_module(image.name)
            self._process.reserved = reserved
            stubs.imports = imports
            stubs.ifuncs = ifuncs
            raise
        return image.name

    def unload(self, name: str) -> None:
        """Unmap a module and remove its symbols; probes in it become GONE.

        Stubs of imports whose jumps lead into the module get their traps back.

        Raises:
            Unsupported: no module has the name.
            MachineBusy: the engine is in the middle of an instruction; the module stays.
        """
        if name not in self.modules:
            raise Unsupported(
                f"no module {name!r}", hint=f"loaded: {', '.join(self.modules) or 'none'}"
            )
        self._memory.check_settled()
        gone = self.modules.pop(name)
        for start, size in gone:
            self._memory.unmap(start, size)
        self._functions.symbols.remove_module(name)
        self._stubs.trap_again(
            lambda trap, pointer: any(start <= pointer < start + size for start, size in gone)
        )

    def place_code(self, code: bytes, base: int, name: str = "") -> None:
        """Map raw code, which the guest may also write, and a stack; set pc to the beginning of the
        code.

        On engines that die of long blocks (Blocks.ends) the rest of the pages is full of traps, on
        others of zeros. With a name, the code is noted in `modules`, and is the main image of the
        symbols.

        Args:
            code: the bytes.
            base: address of the first one.
            name: of the image that they are, for `modules`; "": they are none.

        Raises:
            NoMemory: the code, or the stack, cannot be mapped.
        """
        memory = self._memory
        first = base & -memory.page_size
        size = whole(base + max(len(code), 1), memory.page_size) - first
        memory.settle_in(base)
        memory.map_plain(first, size, const.UC_PROT_ALL)
        if memory.guest.blocks.ends is not None:
            memory.fill(first, size)
        memory.write(base, code)
        self._stack_and_exit.bring()
        self._functions.regs.pc = base
        self._functions.symbols.add_layout(CodeLayout(((base, base + len(code)),), raw=True))
        if name:
            self.modules[name] = [(base, len(code))]
            self._functions.symbols.main = name
            self._functions.symbols.add_loaded([(0, base, len(code))], 0)

    def add_symbols(self, symbols: SymbolList | None) -> None:
        """Add symbols to the machine's table.

        Args:
            symbols: name -> address or (address, bytes), or a file of symbols; None: none are
                added.
        """
        add_symbols(self._functions.symbols, symbols)

    def _bias(self, image: Image, base: int | None) -> int:
        """Return what is to be added to an image's link addresses, to have it where it is loaded; 0
        for one that is linked for its place. Nothing is mapped.

        Args:
            image: the image.
            base: address of the image; None: where there is room, or where it is linked for.

        Raises:
            ImageError: it is linked for its place, and `base` is another.
            NoMemory: there is no room, or the engine's guests do not reach its place.
        """
        if image.kind == "exec":
            if base not in (None, image.lowest):
                raise ImageError(
                    f"{image.name}: linked for {image.lowest:#x}, cannot be loaded at {base:#x}",
                    hint="leave base out",
                )
            reach = self._memory.guest.memory.reach
            in_segment = self._memory.windows.place(image.lowest) != image.lowest
            if reach and not in_segment and image.lowest + image.span > reach:
                raise NoMemory(
                    f"{image.name} is linked for this place, and this engine's "
                    f"{self._memory.arch.name} guests reach addresses below {reach:#x} only",
                    address=image.lowest,
                    hint="link it for a lower one, or give --qemu, where QEMU has it",
                    python="which is QemuMachine",
                )
            return 0
        if base is None:
            memory = self._memory
            base = memory.gap(image.span, IMAGE_BASE, page_size(image.machine))
        return base - image.lowest


class _Imports:
    """Addresses for what one image imports: other modules' symbols, else a stub that names the
    import when it is called.

    An imported object that no module has gets zeroed memory of its size.

    Attributes:
        mapped: (start, bytes) of the memory that was mapped for stubs and objects.
    """

    def __init__(
        self,
        memory: GuestMemory,
        symbols: Symbols,
        stubs: Stubs,
        image: Image,
        near: int,
        module: str,
    ) -> None:
        """Map memory for the image's stubs and imported objects.

        Args:
            memory: the guest's.
            symbols: the machine's, where imports are looked up; stubs are added.
            stubs: serves calls of stubs.
            image: the image.
            near: address where the image will be.
            module: its name in symbols; "": the main image.

        Raises:
            NoMemory: there is no room.
        """
        self._memory = memory
        self._symbols = symbols
        self._stub_table = stubs
        self._image = image
        self._module = module
        self._linked = {s.name for s in image.symbols if s.name.endswith("@plt")}
        objects = sum(
            -(-(i.size or 8) // 16) * 16 if i.kind == "object" else DESCRIPTOR * image.descriptors
            for i in image.imports.values()
        )
        ifuncs = 1 + sum(s.kind == "ifunc" for s in image.symbols) + len(image.relocations)
        room = image.span
        self.mapped: list[tuple[int, int]] = []
        self._near = near + room
        self._stubs = self._area(min(STUB * (len(image.imports) + ifuncs), 1 << 20), "rwx")
        self._data = self._area(objects, "rw")
        self._known: dict[str | int, int] = {}

    def _area(self, size: int, perms: str) -> list[int]:
        """Map an area outside of the addresses that the image takes, and add it to `mapped`.

        Args:
            size: bytes; 0: nothing is mapped.
            perms: what the guest may do there; with "x" the area is filled with traps.

        Returns:
            [address of the first byte, which _take_room() moves on; address behind the area];
            [0, 0] where nothing is mapped.

        Raises:
            NoMemory: there is no room.
        """
        if not size:
            return [0, 0]
        page = max(PAGE, self._memory.page_size)
        size = -(-size // page) * page
        start = self._image.lowest if self._image.kind == "exec" else self._near - self._image.span
        addr = self._memory.gap(size, self._near, page, besides=(start, start + self._image.span))
        self._memory.map(addr, size, perms)
        if "x" in perms:
            self._memory.fill(addr, size)
        self.mapped.append((addr, size))
        return [addr, addr + size]

    def resolve(self, name: str) -> int | None:
        """Return the address that an import is bound to, as pointers have it.

        It is a loaded symbol's, or for a loaded ifunc that of a stub; else that of new zeroed
        memory for an object, or of a stub for a function. The same name gets the same address
        again.

        Args:
            name: of the import.

        Returns:
            The address; None for a weak import that no image has, and for a name that is no import
            (TLSDESC always counts as one).

        Raises:
            ImageError: there are more imports than room.
        """
        symbol = self._symbols.find(name)
        if symbol is not None:
            return (
                self.resolve_ifunc(symbol.address | symbol.mode)
                if symbol.kind == "ifunc"
                else symbol.address | symbol.mode
            )
        wanted = self._image.imports.get(name)
        if name != TLSDESC and (wanted is None or wanted.weak):
            return None
        if name not in self._known:
            if wanted is not None and wanted.kind == "object":
                self._known[name] = self._take_room(self._data, -(-(wanted.size or 8) // 16) * 16)
            else:
                self._known[name] = self._function(name)
        return self._known[name]

    def _function(self, name: str) -> int:
        """Make a stub for an import and add its symbol; return a pointer to it.

        The symbol is NAME@plt, or NAME@import where the image has a NAME@plt of its own. Where the
        ABI has function descriptors, the pointer is to a descriptor of the stub.

        Args:
            name: of the import.

        Raises:
            ImageError: there are more imports than room.
        """
        stub = self._stub()
        self._stub_table.stand_for(stub, name)
        linkage = self._memory.arch.linkage
        # where the image has no stub of its own, this is it
        kind = "import" if f"{name}@plt" in self._linked else "plt"
        self._symbols.add(
            f"{name}@{kind}", stub, STUB, self._module, linkage.mode if linkage is not None else 0
        )
        if not self._image.descriptors:
            return stub | (self._memory.arch.linkage.mode if self._memory.arch.linkage else 0)
        descriptor = self._take_room(self._data, DESCRIPTOR)
        # code, TOC: PLT code takes a TOC of 0 for a function that is not bound yet
        words = stub, descriptor
        self._memory.write(
            descriptor, b"".join(word.to_bytes(8, self._memory.arch.order.value) for word in words)
        )
        return descriptor

    def resolve_ifunc(self, resolver: int) -> int:
        """Make a stub that calls an ifunc's resolver when it is first called, and goes to the
        function that the resolver chooses.

        Args:
            resolver: address of the resolver, mode bits included.

        Returns:
            Address of the stub; for the same resolver the same.

        Raises:
            ImageError: there are more imports than room.
        """
        if resolver not in self._known:
            self._known[resolver] = self._stub()
            self._stub_table.ifuncs[self._known[resolver]] = resolver
        return self._known[resolver]

    def _stub(self) -> int:
        """Take room for a new stub, and return its address."""
        return self._take_room(self._stubs, STUB)

    def _take_room(self, area: list[int], size: int) -> int:
        """Take bytes from an area; return the address of the first.

        Args:
            area: [address of the first free byte, address behind the area]; the first moves on.
            size: bytes.

        Raises:
            ImageError: so many are not free.
        """
        if area[0] + size > area[1]:
            raise ImageError(
                f"{self._image.name}: too many imports", hint="load the libraries it needs first"
            )
        area[0] += size
        return area[0] - size
