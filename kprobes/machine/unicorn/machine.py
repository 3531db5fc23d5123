"""UnicornMachine: guest code in the Unicorn engine.

The rules each cost a crash or a corruption to learn (docs/engine.md): one hook per channel, added once through ctypes and
never raising (an exception is parked, the run stopped, and the run raises it); translations are dropped by range after
every patch; pc is written with a single register write; nested runs end at their own `until`, never by a stop.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points

import unicorn
from unicorn import unicorn_const as const

from ... import arch as architectures
from ...arch._base import Arch
from ...errors import AlreadyRegistered, Unsupported
from ...image import raw_bytes
from ...regs import Regs
from ...symbols import Symbols
from .._base import Sink
from .._passing import Argument
from .bounds import Bounds
from .calls import Calls
from .delayslots import DelaySlots
from .faults import Faults
from .functions import Functions
from .furniture import Furniture
from .guests.guest import Guest
from .guests.rows import GUESTS
from .loader import Loader, read
from .owner import Owner
from .process import Process, Text
from .reports import Reports
from .runner import Runner
from .selftest import self_test
from .starts import Starts
from .stops import Stops
from .stubs import Stubs
from .version import check_version

__all__ = ["GUESTS", "Guest", "UnicornMachine"]


class UnicornMachine(Reports):
    """A CPU, its memory and its symbols. Make one with load(), from_code() or attach(); a context manager.

    Attributes:
        arch: the architecture. symbols: its symbol table. regs: the CPU's registers now.
        cpu_task: regs -> identity of the running guest task; None: one task per CPU.
        interrupt_handler: (regs, number) -> True if it served an interrupt of the guest's (a system call, say); the guest
            goes on at regs.pc. None: such an interrupt is a GuestFault.
        stdin: what process() was given, for an interrupt_handler that serves read().
        uc: the unicorn.Uc beneath, for what this class does not offer.
    """

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest, *, owned: bool = True) -> None:
        """Use load(), from_code() or attach()."""
        super().__init__(uc, arch, guest)
        self.stdin = io.BytesIO()
        self.symbols = Symbols()
        self.symbols.mode_bits = arch.pointers.mode_bits
        functions = Functions(self, self.symbols)
        furniture = Furniture(self)
        self.starts = Starts(self)
        self.stubs = Stubs(self, functions, self.call)
        delay_slots = DelaySlots(self, self.starts)
        self.bounds = Bounds(self, delay_slots)
        self.stops = Stops(self, self.bounds)
        self._process = Process(self, functions, self.stubs, furniture)
        faults = Faults(self, self.starts, self.bounds, delay_slots, self.stubs, self.symbols, furniture, self._process)
        runner = Runner(self, self.starts, self.bounds, faults)
        self._calls = Calls(self, runner, functions, self.stubs, delay_slots, furniture)
        self._furniture = furniture
        self._loader = Loader(self, functions, self.stubs, furniture, self._process)
        self.owner = None if owned else Owner(self, self.starts, runner, faults)
        self_test(guest, self.arch)
        if owned:
            guest.cpu.start(self.engine)
            self._add_hooks()

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink`; None: to nobody. AlreadyRegistered where another one listens."""
        if sink is None:
            self.clock.reset()  # the sink was asked to have each instruction executed at its own address
        super().report_to(sink)

    # --- making one

    @classmethod
    def load(cls, file: str | os.PathLike[str] | bytes, *, base: int | None = None, name: str | None = None,
             arch: str | None = None) -> UnicornMachine:
        """A machine with an ELF file in it: an executable, a shared object, or an object file.

        base: address of the image (not for fixed executables). arch: its name, where the file does not tell which of those that
        run its header it is for ("cortexm" for firmware without build attributes). A name without a slash that is no file here
        is looked up among the system's libraries. Raises ImageError, Unsupported.
        """
        image = read(file, name)
        machine = cls._open(architectures.of_elf(image.machine, image.bits, image.order, image.flags, image.profile, arch))
        machine._loader.place(image, base, main=True)
        return machine

    @classmethod
    def from_code(cls, code: bytes | str, *, arch: str, base: int = 0x10000,
                  symbols: Mapping[str, int | tuple[int, int]] | None = None) -> UnicornMachine:
        """A machine with raw code (bytes, or assembly text where an assembler knows the ISA) at `base`.

        symbols: name -> address or (address, size in bytes). Raises Unsupported, ImageError.
        """
        if isinstance(code, str):
            from .assembler import assemble

            code = assemble(code, arch, base)
        machine = cls._open(architectures.get(arch))
        first = base & -machine.page_size
        size = -(-(base + max(len(code), 1)) // machine.page_size) * machine.page_size - first
        machine.settle_in(base)
        machine._map(first, size, const.UC_PROT_ALL)
        if machine.guest.blocks.ends is not None:
            machine.fill(first, size)
        machine.write(base, code)
        machine._add_symbols(symbols)
        machine._furniture.bring()
        machine.regs.pc = base
        return machine

    @classmethod
    def load_raw(cls, file: str | os.PathLike[str] | bytes, *, arch: str, base: int, entry: int | None = None,
                 symbols: Mapping[str, int | tuple[int, int]] | str | os.PathLike[str] | None = None) -> UnicornMachine:
        """A machine with a raw image (firmware, a memory dump) at `base`, standing at `entry`.

        entry: address, mode bits included; None: what the image's vector table says where the architecture has one there
        (Armv7-M: stack pointer, then reset), else `base`. symbols: as from_code() takes them, or a file that symbols.load()
        takes. Raises ImageError (unreadable, empty), Unsupported.
        """
        code = raw_bytes(file)
        listed = isinstance(symbols, (str, os.PathLike))
        machine = cls.from_code(code, arch=arch, base=base, symbols=None if listed else symbols)  # type: ignore[arg-type]
        try:
            if listed:
                machine.symbols.load(symbols)  # type: ignore[arg-type]
            if entry is None and machine.arch.files.vectors is not None and len(code) >= 8:
                machine.regs.sp, entry = machine.arch.files.vectors(code)
            machine.regs.go(base if entry is None else entry)
        except BaseException:
            machine.close()
            raise
        return machine

    @classmethod
    def attach(cls, uc: unicorn.Uc, *, arch: str | None = None, symbols: Mapping[str, int | tuple[int, int]] | None = None) -> UnicornMachine:
        """A machine around an engine made elsewhere, whose owner goes on calling uc.emu_start().

        arch: its name, where the engine's mode does not tell. Raises Unsupported.
        """
        check_version()
        name = arch or _arch_of(uc)
        machine = cls(uc, architectures.get(name), _guest_of(name), owned=False)
        machine._add_symbols(symbols)
        return machine

    @classmethod
    def _open(cls, arch: Arch) -> UnicornMachine:
        check_version()
        guest = _guest_of(arch.name)
        return cls(guest.cpu.open(), arch, guest)

    def _add_symbols(self, symbols: Mapping[str, int | tuple[int, int]] | None) -> None:
        for name, where in (symbols or {}).items():
            addr, size = where if isinstance(where, tuple) else (where, 0)
            mode = addr & self.arch.pointers.mode_bits
            self.symbols.add(name, addr - mode, size, mode=mode)

    # --- running it

    def call(self, function: str | int, *args: Argument, timeout: float | None = None, max_insns: int | None = None) -> int:
        """Call guest code by the architecture's calling convention and return its integer result.

        function: symbol or address. Arguments: integers; bytes, bytearray and str are copied into guest memory
        (NUL-terminated) and passed as pointers, a bytearray is copied back; None is 0. Registers are put back afterwards.
        From inside a handler the guest runs nested, and probes hit there are missed. timeout: seconds; max_insns:
        instructions. Raises GuestFault, GuestTimeout, GuestStopped after stop() (registers are then left where the guest stopped),
        UnknownSymbol, BadArgument, MachineBusy.
        """
        return self._calls.call(function, args, timeout, max_insns)

    def run(self, start: int | str | None = None, until: int | str | None = None, *, timeout: float | None = None,
            max_insns: int | None = None) -> None:
        """Run the guest from `start` (default: where it stands) until `until`, or until the code it started in returns.

        After stop() it returns as well. timeout: seconds; max_insns: instructions. Raises GuestFault, GuestTimeout, UnknownSymbol,
        BadArgument, MachineBusy.
        """
        self._calls.run(start, until, timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run guest code with the registers as they are until it returns; then put all registers back."""
        self._calls.invoke(target)

    # --- images

    def load_module(self, file: str | os.PathLike[str] | bytes, *, base: int | None = None, name: str | None = None) -> str:
        """Load another image beside the main one and return its module name. Imports are bound to symbols there are."""
        image = read(file, name)
        if image.name in self._loader.modules:
            raise AlreadyRegistered(f"module {image.name} is loaded", hint="unload it first, or pass name=")
        self._loader.place(image, base, main=False)
        return image.name

    def bind(self, name: str, function: Callable[[Regs], int | None]) -> None:
        """Serve an import by a Python function: it gets Regs as at function entry, and its result (None: leave the return
        register) goes back to the caller. Before that an import leads to a loaded module's symbol of that name, or is a fault.
        """
        self.stubs.bound[name] = function

    def process(self, argv: Sequence[Text] = ("program",), env: Mapping[str, str] | None = None, stdin: bytes = b"") -> None:
        """Make what is loaded a process as Linux starts one: run() then executes it from its entry.

        argv, env: go to the initial stack, with an auxiliary vector; the thread pointer is set, and the thread-local storage
        of every image that is loaded is laid out and filled, so that calls of functions of a library find it, too. stdin: what
        `m.stdin` reads. System calls are your interrupt_handler's. Raises Unsupported where Linux has no such processes, BadArgument.
        """
        self._calls.forget_failure()
        self.stdin = io.BytesIO(stdin)
        self._process.start(argv, env or {}, argv[0] if argv else "")

    def set_thread_pointer(self, value: int) -> None:
        """Set the thread pointer wherever the architecture has it: what set_thread_area, arch_prctl and their like do. Raises Unsupported."""
        self._process.set_pointer(value)

    def unload_module(self, name: str) -> None:
        """Unmap a module; probes in it are GONE. Raises UnknownSymbol-like Unsupported where there is no such module."""
        if name not in self._loader.modules:
            raise Unsupported(f"no module {name!r}", hint=f"loaded: {', '.join(self._loader.modules) or 'none'}")
        for start, size in self._loader.modules.pop(name):
            self.unmap(start, size)
        self.symbols.remove_module(name)

    # --- the end

    def close(self) -> None:
        """Take the hooks away; an engine of our own is closed with its last reference."""
        self._remove_hooks()
        self.bounds.close()
        self.engine.close()
        self.sink = self.trap = None

    def __enter__(self) -> UnicornMachine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _guest_of(arch: str) -> Guest:
    """The row of an architecture: ours, or of the entry-point group `kprobes.unicorn` (its name: the architecture's; its value: a Guest)."""
    if arch in GUESTS:
        return GUESTS[arch]
    for entry in entry_points(group="kprobes.unicorn", name=arch):
        guest = entry.load()
        if not isinstance(guest, Guest):
            raise Unsupported(f"the entry point {entry.value!r} is no Guest", hint="see docs/adding-an-architecture.md")
        return guest
    raise Unsupported(f"Unicorn does not run {arch}, as far as anybody has told", hint="use another machine, or add an entry point kprobes.unicorn")


def _arch_of(uc: unicorn.Uc) -> str:
    """The architecture of an engine, by its kind and mode."""
    kind, mode = uc.query(const.UC_QUERY_ARCH), uc.query(const.UC_QUERY_MODE)
    for name, guest in GUESTS.items():
        cpu = guest.cpu
        if cpu.arch == kind and not (cpu.mode ^ mode) & ~cpu.state_mode and (cpu.recognise is None or cpu.recognise(uc)):
            return name
    raise Unsupported(f"no architecture for Unicorn's arch {kind} in mode {mode:#x}", hint=f"pass arch=, one of {', '.join(GUESTS)}")
