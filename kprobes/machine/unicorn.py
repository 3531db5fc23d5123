"""UnicornMachine: guest code in the Unicorn engine.

The rules each cost a crash or a corruption to learn (docs/engine.md): one hook per channel, added once through ctypes and
never raising (an exception is parked, the run stopped, and the run raises it); translations are dropped by range after
every patch; pc is written with a single register write; nested runs end at their own `until`, never by a stop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import unicorn
from unicorn import unicorn_const as const

from .. import arch as architectures
from ..arch._base import Arch
from ..errors import AlreadyRegistered, GuestFault, GuestTimeout, ReentryError, Unsupported
from ..regs import Regs
from ..symbols import Symbol, Symbols
from . import _engine, _loader
from ._base import Fault, Sink
from ._counters import Counters, host_function
from ._engine import CALL, CODE, DIRECT, ERRORS, INTR, INVALID, MEM, TLB
from ._guests import GUESTS, Guest
from ._guests import INTR as BY_INTERRUPT
from ._interrupts import interruptible
from ._layout import find_gap
from ._memory import IMAGE_BASE
from ._processor import Processor
from ._selftest import self_test

Argument = int | bool | bytes | bytearray | str | None
DIRECT_CALLS = 128  # bytes at the start of a call area whose call sites have their own hooks
STACK_SIZE = 1 << 20
NEAR = 0x10000  # bytes from the thread pointer, either way, that count as thread-local
SINGLE_STEP = 2  # instructions: one, or a branch and its delay slot
MAX_DEPTH = 16  # nested runs; the engine dies at 64


class UnicornMachine(Processor):
    """A CPU, its memory and its symbols. Make one with load(), from_code() or attach(); a context manager.

    Attributes:
        arch: the architecture. symbols: its symbol table. regs: the CPU's registers now.
        cpu_task: regs -> identity of the running guest task; None: one task per CPU.
        interrupt_handler: (regs, number) -> True if it served an interrupt of the guest's (a system call, say); the guest
            goes on at regs.pc. None: such an interrupt is a GuestFault.
        uc: the unicorn.Uc beneath, for what this class does not offer.
    """

    image_base = IMAGE_BASE
    call_area = 1 << 16
    _dead = False  # see Guest.fetch_fault_kills
    _pending = False  # the guest may have stopped in a delay slot, see Guest.settle
    _seen = _seen_before = 0  # the last places known in this run, see Guest.lost_pc

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest, *, owned: bool = True) -> None:
        """Use load(), from_code() or attach()."""
        super().__init__(uc, arch, guest)
        self.symbols = Symbols()
        self.interrupt_handler: Callable[[Regs, int], bool] | None = None
        self._owned = owned
        self._trap: Callable[[Regs], bool] | None = None  # the sink's, looked up once
        self._services: dict[int, Callable[[Regs], None]] = {}  # the sink's
        self._failed_at: int | None = None  # the same, where the service raised
        self._sent: int | None = None  # where the last service sent the guest, if the engine may not have noticed
        self._disturbed = False  # the run was stopped, or another one was nested in it, since the last service
        self._skip = -1  # address in a call area that was served already
        self._call_hooks: dict[int, list[int]] = {}
        self._direct: dict[int, dict[int, int]] = {}  # area -> call site -> its own hook
        self._counters: dict[int, Counters] = {}
        self._depth = 0
        self._end = -1  # where the innermost run ends, see Guest.until_stops
        self._parked: BaseException | None = None
        self._interrupt: tuple[int, int] | None = None  # number, pc
        self._again = False  # an instruction that failed is executed once more, only to learn why
        self._why_stopped = ""
        self._inner_stop = False
        self._rested = False  # the last run came to rest because of a Ctrl-C
        self._timed_out = 0  # depth of the run whose time is up
        self._bounds: list[int] = []
        self._hooks: list[int] = []
        self._bound_hook: int | None = None
        self._imports: dict[int, str] = {}  # stub -> import it stands for
        self._bound: dict[str, Callable[[Regs], int | None]] = {}  # import -> Python function in its place
        self._ifuncs: dict[int, int] = {}  # stub -> resolver of the function it stands for
        self._resolved: dict[int, int] = {}  # resolver -> the function it chose
        self._modules: dict[str, list[tuple[int, int]]] = {}
        self._thread_pointer = 0
        self._thread_local = False  # an image uses thread-local storage, which nobody has set up
        self._abandoned: Any = None
        self._exit = 0
        self_test(guest, self.arch)
        if owned:
            if guest.setup is not None:
                guest.setup(self._engine)
            self._add_hooks()

    # --- making one

    @classmethod
    def load(cls, file: str | os.PathLike[str] | bytes, *, base: int | None = None, name: str | None = None) -> UnicornMachine:
        """A machine with an ELF file in it: an executable, a shared object, or an object file.

        base: address of the image (not for fixed executables). A name without a slash that is no file here is looked up
        among the system's libraries. Raises ImageError, Unsupported.
        """
        image = _loader.read(file, name)
        machine = cls._open(architectures.of_elf(image.machine, image.bits, image.order, image.flags))
        _loader.place(machine, image, base, main=True)
        return machine

    @classmethod
    def from_code(cls, code: bytes | str, *, arch: str, base: int = 0x10000,
                  symbols: Mapping[str, int | tuple[int, int]] | None = None) -> UnicornMachine:
        """A machine with raw code (bytes, or assembly text where an assembler knows the ISA) at `base`.

        symbols: name -> address or (address, size in bytes). Raises Unsupported, ImageError.
        """
        if isinstance(code, str):
            from ._assembler import assemble

            code = assemble(code, arch, base)
        machine = cls._open(architectures.get(arch))
        first = base & -machine.page_size
        size = -(-(base + max(len(code), 1)) // machine.page_size) * machine.page_size - first
        machine._map(first, size, const.UC_PROT_ALL)
        if machine._guest.long_blocks_kill:
            machine._write_filler(first, size)
        machine.write(base, code)
        machine._add_symbols(symbols)
        machine._furnish()
        machine.regs.pc = base
        return machine

    @classmethod
    def attach(cls, uc: unicorn.Uc, *, arch: str | None = None, symbols: Mapping[str, int | tuple[int, int]] | None = None) -> UnicornMachine:
        """A machine around an engine made elsewhere, whose owner goes on calling uc.emu_start().

        arch: its name, where the engine's mode does not tell. Raises Unsupported.
        """
        name = arch or _arch_of(uc)
        machine = cls(uc, architectures.get(name), GUESTS[name], owned=False)
        machine._add_symbols(symbols)
        return machine

    @classmethod
    def _open(cls, arch: Arch) -> UnicornMachine:
        guest = GUESTS.get(arch.name)
        if guest is None:
            raise Unsupported(f"Unicorn does not run {arch.name}", hint="use another machine")
        return cls(unicorn.Uc(guest.uc_arch, guest.uc_mode, guest.cpu_model), arch, guest)

    def _furnish(self) -> None:
        """Stack, and the place where calls end."""
        stack = self._map_anywhere(STACK_SIZE)
        self.regs.sp = stack + STACK_SIZE - 4096
        self._exit = self.map_code()
        self._write_filler(self._exit, self.page_size)
        if self.arch.abi is not None and self.arch.abi.thread:
            # One page with its own address first (the psABI's tcbhead) serves stack protectors. Variables lie below it, where
            # nothing is mapped: using them is a fault that says so.
            self._thread_pointer = self._map_anywhere(self.page_size)
            self.regs[self.arch.abi.thread] = self._thread_pointer
            self.regs.set_word(self._thread_pointer, self._thread_pointer)

    def _enter(self, entry: int) -> None:
        """Stand at a program's entry, which returns to the place where runs end."""
        if self.arch.linkage is not None:
            self._regs.sp -= self.arch.linkage.pushed
            self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
        self._introduce(entry)
        self._write_pc(self._target(entry))

    def _add_symbols(self, symbols: Mapping[str, int | tuple[int, int]] | None) -> None:
        for name, where in (symbols or {}).items():
            addr, size = where if isinstance(where, tuple) else (where, 0)
            mode = addr & self.arch.mode_bits
            self.symbols.add(name, addr - mode, size, mode=mode)

    # --- images

    def load_module(self, file: str | os.PathLike[str] | bytes, *, base: int | None = None, name: str | None = None) -> str:
        """Load another image beside the main one and return its module name. Imports are bound to symbols there are."""
        image = _loader.read(file, name)
        if image.name in self._modules:
            raise AlreadyRegistered(f"module {image.name} is loaded", hint="unload it first, or pass name=")
        _loader.place(self, image, base, main=False)
        return image.name

    def bind(self, name: str, function: Callable[[Regs], int | None]) -> None:
        """Serve an import by a Python function: it gets Regs as at function entry, and its result (None: leave the return
        register) goes back to the caller. Before that an import leads to a loaded module's symbol of that name, or is a fault.
        """
        self._bound[name] = function

    def unload_module(self, name: str) -> None:
        """Unmap a module; probes in it are GONE. Raises UnknownSymbol-like Unsupported where there is no such module."""
        if name not in self._modules:
            raise Unsupported(f"no module {name!r}", hint=f"loaded: {', '.join(self._modules) or 'none'}")
        for start, size in self._modules.pop(name):
            self.unmap(start, size)
        self.symbols.remove_module(name)

    # --- reports

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink`; None: to nobody. AlreadyRegistered where another one listens."""
        if sink is not None and self._sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="use that one, or close it first")
        self._sink = sink
        self._trap = None if sink is None else self._noting(sink.trap) if self._guest.lost_pc else sink.trap
        self._services = {} if sink is None else sink.services
        if not self._owned:
            if sink is not None:
                self._add_hooks()
                self._shadow_emu_start()
            else:
                self._remove_hooks()

    def map_calls(self, near: int) -> int:
        """An area in which every instruction executed is reported to Sink.services first: one CODE hook over most of it.

        The first call sites have a hook of their own, which costs half: see call_at().
        """
        area = self._map_area(near)
        callback = CALL(self._call_callback())
        self._call_hooks[area] = [self._engine.hook(const.UC_HOOK_CODE, callback, area + DIRECT_CALLS, area + self.call_area - 1)]
        self._direct[area] = {}
        return area

    def call_at(self, addr: int) -> None:
        """A service is there from now on."""
        direct = self._direct[addr & -self.call_area]
        if addr & self.call_area - 1 < DIRECT_CALLS and addr not in direct:
            direct[addr] = self._engine.hook(const.UC_HOOK_CODE, DIRECT(self._direct_callback(addr)), addr, addr)

    def unmap_calls(self, area: int) -> None:
        """Unmap an area from map_calls()."""
        for hook in [*self._call_hooks.pop(area), *self._direct.pop(area, {}).values()]:
            self._engine.unhook(hook)
        self._unmap(area, self.call_area)

    def map_counts(self, near: int) -> int:
        """An area in which executions are counted by host code."""
        area = self._map_area(near)
        counters = self._counters[area] = Counters(area, self.call_area)
        self._call_hooks[area] = [self._engine.hook(const.UC_HOOK_CODE, host_function(), area, area + self.call_area - 1, counters.data)]
        return area

    def unmap_counts(self, area: int) -> None:
        """Unmap an area from map_counts()."""
        self.unmap_calls(area)
        _retired.append(self._counters.pop(area))  # a deleted hook may be called once more

    @property
    def can_count(self) -> bool:
        """True if executions in map_counts() areas are counted without Python."""
        return host_function() != 0

    def count(self, addr: int) -> int:
        """How often the instruction at `addr` in a map_counts() area was executed."""
        return self._counters[addr & -self.call_area].read(addr)

    def _map_area(self, near: int) -> int:
        area = find_gap(self._regions(), self.call_area, near, self.arch.bits, self.call_area)
        self._map(area, self.call_area, const.UC_PROT_ALL)
        return area

    def stop_at(self, addr: int) -> None:
        """Breakpoints in memory arrive by themselves."""

    def release(self, addr: int) -> None:
        """Breakpoints in memory go by themselves."""

    def _add_hooks(self) -> None:
        add = self._engine.hook
        self._hooks = [add(const.UC_HOOK_INTR, INTR(self._interrupt_callback()))]
        if self._guest.channel != BY_INTERRUPT:
            self._hooks.append(add(const.UC_HOOK_INSN_INVALID, INVALID(self._invalid_callback())))
        if self._guest.virtual_tlb and self._owned:
            self._hooks.append(add(const.UC_HOOK_TLB_FILL, TLB(self._fill_callback())))

    def _fill_callback(self) -> Callable[[int, int, int, Any, int], bool]:
        """The hook of the virtual TLB: the engine itself makes an entry for one kind of access, which evicts the other's.

        Stores through an entry that may be executed are slow, as they look for translations: only code gets such. What
        is not mapped or not allowed still fails, at the access.
        """
        is_code, fetch, code, data = self._is_code, const.UC_MEM_FETCH, const.UC_PROT_ALL, const.UC_PROT_READ | const.UC_PROT_WRITE

        def on_miss(_uc: int, address: int, kind: int, entry: Any, _user: int) -> bool:
            entry[0].paddr = address
            entry[0].perms = code if kind == fetch or is_code(address) else data
            return True

        return on_miss

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            self._engine.unhook(hook)
        self._hooks = []
        self.uc.__dict__.pop("emu_start", None)

    def _interrupt_callback(self) -> Callable[[int, int, int], None]:
        """The engine's interrupt hook. It never raises: what is raised inside is parked.

        The hottest code of the library: registers are moved by the engine's own calls with prebuilt arguments, and the
        report's pc is put into Regs directly.
        """
        regs, bias = self._regs, self._guest.pc_bias
        ours = self._guest.number if self._guest.channel == BY_INTERRUPT else -1
        cell = self._cells.get(self.arch.regs.pc) or _Register(self._read_pc, self._write_pc)
        view, index, mask = cell.view, cell.index, self.arch.mask

        def on_interrupt(_uc: int, number: int, _user: int) -> None:
            try:
                pc = view[index]
                if number == ours and self._trap is not None:
                    regs._pc = pc = pc - bias
                    if self._trap(regs):
                        target = regs._target
                        view[index] = pc if target is None else target & mask
                        regs._pc = regs._target = None
                        return
                    pc += bias
                self._unclaimed(number, pc)
            except BaseException as error:
                if regs._target is not None:
                    self._write_pc(regs._target)
                self._park(error)
            regs._pc = regs._target = None

        return on_interrupt

    def _call_callback(self) -> Callable[[int, int], None]:
        """The hook of the call areas. It does without a pc write unless the sink moves the guest."""

        def on_call(_uc: int, address: int) -> None:
            self._serve_call(address)

        return on_call

    def _direct_callback(self, address: int) -> Callable[[], None]:
        """The hook of one call site: the engine need not say which. As short as it can be; see _serve_call()."""
        regs, services, write_pc = self._regs, self._services, self._send if self._guest.loses_pc else self._write_pc

        def on_direct() -> None:
            if self._disturbed or services is not self._services:
                self._serve_call(address)
                return
            try:
                services[address](regs)
                if regs._target is not None:
                    write_pc(regs._target)
                    regs._target = None
                elif self._disturbed:
                    self._settle_call(address)
            except BaseException as error:
                self._failed_call(address, error)
            regs._pc = None

        return on_direct

    def _serve_call(self, address: int) -> None:
        regs = self._regs
        try:
            if self._skip == address:  # it was served when its own service stopped the guest, and is now resumed
                self._skip, self._disturbed = -1, False
                return
            self._disturbed = False
            service = self._services.get(address)
            if service is None:
                return  # not the first instruction of a call site
            service(regs)
            if regs._target is not None:
                self._send(regs._target)
                regs._target = None
            elif self._disturbed:
                self._settle_call(address)
        except BaseException as error:
            self._failed_call(address, error)
        regs._pc = None

    def _settle_call(self, address: int) -> None:
        """The service has stopped the run, or run other guest code: the engine executes the call site again."""
        self._skip = address
        if not self._why_stopped:
            self._write_pc(self.arch.same_mode(self._regs, address))  # the nested run has left the engine elsewhere

    def _send(self, target: int) -> None:
        """Write pc in a CODE hook, and remember it where the engine may lose that: see Guest.loses_pc."""
        self._write_pc(target)
        if self._guest.loses_pc:
            self._sent = target

    def _send_again(self) -> bool:
        """True, and the guest sent on, where it is only here because the last pc write was lost."""
        target, self._sent = self._sent, None
        if target is None:
            return False
        self._write_pc(target)
        return True

    def _failed_call(self, address: int, error: BaseException) -> None:
        if self._services.get(address) is None:
            return
        if self._regs._target is not None:
            self._send(self._regs._target)
            self._failed_at, self._sent = self._sent, None
            self._regs._target = None
        self._park(error)

    def _invalid_callback(self) -> Callable[[int, int], bool]:
        """The engine's invalid-instruction hook, where breakpoints arrive that way. True: go on at pc."""
        regs, read_pc, write_pc, bias = self._regs, self._read_pc, self._write_pc, self._guest.pc_bias

        def on_invalid(_uc: int, _user: int) -> bool:
            outer = regs._pc, regs._target
            try:
                pc = read_pc() - bias
                if pc == self._end:
                    return False  # an error ends this run alone, a stop would end the outer ones as well
                regs.at(pc)
                if self._sink is not None and self._sink.trap(regs):
                    write_pc(regs._target if regs._target is not None else pc)
                    return True
                if self._serve_stub(pc):
                    return True
            except BaseException as error:
                if regs._target is not None:
                    write_pc(regs._target)
                self._park(error)
                return True
            finally:
                regs._pc, regs._target = outer
            return False

        return on_invalid

    def _park(self, error: BaseException) -> None:
        if self._parked is None:
            self._parked = error
        self._engine.stop()

    def _unclaimed(self, number: int, pc: int) -> None:
        """An interrupt that is not ours: the guest's own."""
        if self._again or pc - self._guest.pc_bias == self._end:
            self._engine.stop()
            return
        if self._guest.renumber is not None:
            number = self._guest.renumber(number, pc)
        stub = pc - self._guest.pc_bias
        if number == self._guest.number and ((stub in self._services and self._send_again()) or self._serve_stub(stub)):
            return
        biases = self._guest.mode_bias.get(self.arch.same_mode(self._regs, 0), self._guest.fault_bias)
        home = stub if number == self._guest.number else pc - biases.get(number, 0)
        if self._guest.lost_pc and number != self._guest.number:
            home = pc = self._seen_before if self._sink is not None and self._sink.ours(self._seen) else self._seen
            if self._owned:
                self._write_pc(home)
        strayed = (self._sink is not None and self._sink.ours(stub)) or stub & -self.page_size == self._exit  # no system call of the guest's
        if self.interrupt_handler is not None and not strayed:
            ahead = pc + self._guest.call_skip.get(number, -biases.get(number, 0))
            self._regs.at(ahead)
            if self.interrupt_handler(self._regs, number):
                self._write_pc(self._regs.target if self._regs.target is not None else self.arch.same_mode(self._regs, ahead))
                return
        if self._owned:
            if home != pc:
                self._write_pc(self.arch.same_mode(self._regs, home))
            self._interrupt = number, home
            self._engine.stop()
        elif not any(type(c).__name__ == "HOOK_INTR_CFUNC" or isinstance(c, _OWNERS_INTR) for c in self.uc._callbacks.values()):
            self._park(unicorn.UcError(const.UC_ERR_EXCEPTION))  # what the engine says when nobody hooks interrupts

    def _serve_stub(self, stub: int) -> bool:
        """A call of an import, or of a function that chooses its implementation: go where it leads, if anywhere."""
        if stub in self._ifuncs:
            self._write_pc(self._choose(self._ifuncs[stub]))
            return True
        name = self._imports.get(stub)
        if name is None:
            return False
        if name in self._bound:
            self._call_python(stub, self._bound[name])
            return True
        if self.symbols.find(name) is None:
            return False
        pointer = self._pointer(name)
        self._introduce(pointer)
        self._write_pc(self._target(pointer))
        return True

    def _call_python(self, stub: int, function: Callable[[Regs], int | None]) -> None:
        """A Python function in an import's place: its result is the return value, and the guest goes back to its caller."""
        regs, linkage, abi = self._regs, self.arch.linkage, self.arch.abi
        assert linkage is not None and abi is not None
        regs.at(stub)
        back = linkage.get(regs)
        result = function(regs)
        if result is not None:
            regs.return_value = int(result)
        if linkage.pushed:
            regs.sp += linkage.pushed
        self._write_pc(back if regs.target is None else regs.target)

    def _noting(self, trap: Callable[[Regs], bool]) -> Callable[[Regs], bool]:
        """The sink's trap, for guests that lose pc: remember where it was."""

        def noting(regs: Regs) -> bool:
            self._seen_before, self._seen = self._seen, regs.pc
            return trap(regs)

        return noting

    # --- running

    def call(self, function: str | int, *args: Argument, timeout: float | None = None, max_insns: int | None = None) -> int:
        """Call guest code by the architecture's calling convention and return its integer result.

        function: symbol or address. Arguments: integers; bytes, bytearray and str are copied into guest memory
        (NUL-terminated) and passed as pointers, a bytearray is copied back; None is 0. Registers are put back afterwards.
        From inside a handler the guest runs nested, and probes hit there are missed. timeout: seconds; max_insns:
        instructions. Raises GuestFault, GuestTimeout (registers are then left where the guest stopped), UnknownSymbol.
        """
        pointer = self._pointer(function)
        target = self._target(pointer)
        if self.arch.abi is None or self.arch.linkage is None:
            raise Unsupported(f"{self.arch.name} has no calling convention", hint="set registers and use run()")
        if not self._exit:
            self._exit = self.map_code()
            self._write_filler(self._exit, self.page_size)
        if self._depth == 0 and self._abandoned is not None:
            self._engine.restore(self._abandoned)
            self._engine.discard(self._abandoned)
            self._abandoned = None
        outer = self._regs._pc, self._regs._target
        saved = self._engine.save()
        self._regs.at(None)
        copies: list[tuple[int, bytearray | None, int]] = []
        failed = True
        try:
            self._settle()
            self._pass(args, copies)
            self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
            self._introduce(pointer)
            self._run(target, self._exit, timeout, max_insns)
            result = self._regs.return_value
            failed = False
            return result
        finally:
            for addr, source, size in copies:
                if source is not None:
                    source[:] = self.read(addr, size)
                self.free(addr)
            if failed and self._depth == 0:
                self._abandoned = saved
            else:
                self._engine.restore(saved)
                self._engine.discard(saved)
                self._regs._pc, self._regs._target = outer

    def _pointer(self, function: str | int) -> int:
        """A function's address as its pointers have it."""
        if not isinstance(function, str):
            return function
        symbol = self.symbols[function]
        value = symbol.address | symbol.mode
        return self._choose(value) if symbol.kind == "ifunc" else value

    def _target(self, pointer: int) -> int:
        """Where the function of a pointer starts."""
        entry = self.arch.code_address(pointer, self.read)
        return entry.addr | entry.mode

    def _introduce(self, pointer: int) -> None:
        """Set the registers that a function finds its data by."""
        if self.arch.abi is not None and self.arch.abi.enter is not None:
            self.arch.abi.enter(self._regs, pointer)

    def _choose(self, resolver: int) -> int:
        """The function that an ifunc's resolver chooses."""
        if resolver not in self._resolved:
            self._resolved[resolver] = self.call(resolver)
        return self._resolved[resolver]

    def _pass(self, args: tuple[Argument, ...], copies: list[tuple[int, bytearray | None, int]]) -> None:
        """Set up the arguments and the stack as at function entry (before the return address is set)."""
        abi, linkage, regs = self.arch.abi, self.arch.linkage, self._regs
        assert abi is not None and linkage is not None
        words = [self._word(a, copies) for a in args]
        spilled = max(len(words) - len(abi.args), 0) * (self.arch.bits // 8)
        below = 512  # bytes beyond any red zone: 128 on x86_64, 288 on ppc64
        regs.sp = (regs.sp - below - abi.stack_args - spilled) // abi.stack_align * abi.stack_align - linkage.pushed
        if abi.reserve:
            self.write(regs.sp + linkage.pushed, bytes(abi.reserve))  # a back chain ends here
        for n, word in enumerate(words):
            abi.set_argument(regs, n, word)

    def _word(self, value: Argument, copies: list[tuple[int, bytearray | None, int]]) -> int:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, (bytes, bytearray)):
            addr = self.alloc(len(value) + 1)
            copies.append((addr, value if isinstance(value, bytearray) else None, len(value)))
            self.write(addr, bytes(value) + b"\0")
            return addr
        return int(value or 0) & self.arch.mask

    def run(self, start: int | str | None = None, until: int | str | None = None, *, timeout: float | None = None,
            max_insns: int | None = None) -> None:
        """Run the guest from `start` (default: where it stands) until `until`, or until the code it started in returns.

        timeout: seconds; max_insns: instructions. Raises GuestFault, GuestTimeout.
        """
        end = self._exit if until is None else self._target(self._pointer(until))
        if until is not None:  # code translated before does not stop there
            stop = end & ~self.arch.mode_bits
            self._engine.drop_translations(stop, stop + self.arch.insn_align)
        if start is None:
            target = self._regs.target if self._regs.target is not None else self.arch.same_mode(self._regs, self._regs.pc)
        else:
            target = self._target(self._pointer(start))
            if isinstance(start, str):
                self._introduce(self._pointer(start))
            if self.arch.linkage is not None and self._exit:
                self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
        if start is not None or self._regs.target is not None:
            self._settle()
        self._regs.at(None)
        if max_insns == 0:
            self._write_pc(target)
            raise GuestTimeout("max_insns is 0", pc=target & ~self.arch.mode_bits)
        self._run(target, end, timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run guest code with the registers as they are until it returns; then put all registers back."""
        assert self.arch.linkage is not None
        start = self._target(target)
        outer = self._regs._pc, self._regs._target
        saved = self._engine.save()
        self._regs.at(None)
        try:
            self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
            self._introduce(target)
            self._run(start, self._exit, None, None)
        finally:
            self._engine.restore(saved)
            self._engine.discard(saved)
            self._regs._pc, self._regs._target = outer

    def stop(self) -> None:
        """Stop the run, from a handler or another thread: the guest comes to rest before an instruction, and run() returns."""
        self._why_stopped = self._why_stopped or "stop"
        self._disturbed = True
        self._engine.stop()

    def _run(self, target: int, until: int, timeout: float | None, max_insns: int | None) -> None:
        if self._depth >= MAX_DEPTH:
            raise ReentryError(f"{MAX_DEPTH} guest runs are nested", hint="a handler's guest call leads back to that handler")
        if self._depth == 0:
            self._why_stopped = ""
            self._inner_stop = False
            if self._sink is not None:
                self._sink.starting(target)
        nested = self._sink if self._depth else None
        seen = self._seen, self._seen_before
        self._depth += 1
        if nested is not None:
            nested.nesting(True)
        try:
            with self._bounded(timeout, max_insns):
                if self._depth > 1:
                    self._loop(target, until)
                    return
                with interruptible(self._stop_for_sigint) as interrupted:
                    try:
                        self._loop(target, until)
                        while self._rested and not interrupted():  # an earlier Ctrl-C's stop came late: not this run's business
                            self._loop(self.arch.same_mode(self._regs, self._read_pc()), until)
                    finally:
                        if interrupted():
                            self._why_stopped = ""
                if interrupted():
                    raise KeyboardInterrupt
        finally:
            if nested is not None:
                nested.nesting(False)
            self._seen, self._seen_before = seen
            self._depth -= 1
            self._disturbed = self._depth > 0

    def _start(self, begin: int, until: int) -> int:
        """Run the engine."""
        self._check_alive()
        self._seen = self._seen_before = begin
        error = self._start_until(begin, until) if self._guest.until_stops else self._start_to_trap(begin, until)
        if self._guest.fetch_fault_kills and ERRORS.get(error, ("",))[0] == "fetch":
            self._dead = True
            if self._depth > 1:  # outer runs must not go on either
                self._inner_stop = True
                self._engine.stop()
        return error

    def _start_until(self, begin: int, until: int) -> int:
        """Run the engine until `until`, or until an interrupt there: the first address of a page has one on s390x where the page
        before is not mapped."""
        outer, self._end = self._end, until or -1
        try:
            return self._engine.start(begin, until)
        finally:
            self._end = outer

    def _start_to_trap(self, begin: int, until: int) -> int:
        """Run the engine until a trap put at `until`. See Guest.until_stops."""
        outer, self._end = self._end, until if until else -1
        trap = self.arch.end_bytes(min(self.arch.traps.end))
        old = self._engine.read(until, len(trap)) if until else None
        if old is not None and old != trap:
            self.patch(until, trap)
        try:
            error = self._engine.start(begin, 0)
            return 0 if error == const.UC_ERR_INSN_INVALID and until and self._read_pc() == until else error
        finally:
            self._end = outer
            if old is not None and old != trap:
                self.patch(until, old)

    def _check_alive(self) -> None:
        """Unsupported once a failed fetch has made the next translation deadly."""
        if self._dead:
            raise Unsupported(f"Unicorn {self._engine.version} cannot run {self.arch.name} code any more after a failed instruction fetch",
                              hint="make a new machine")

    def _settle(self) -> None:
        """The guest is sent elsewhere: let go of a branch that waits for its delay slot. See Guest.settle."""
        if self._guest.settle and self._depth == 0 and self._exit and (self._pending or self._in_delay_slot(self._read_pc())):
            self._pending = False
            self._run_nop()

    def _run_nop(self) -> None:
        """Takes the pending branch and stops: before a stop in a delay slot works, and before the target is fetched."""
        nop = self._guest.settle
        place = self._exit + self.page_size - 2 * len(nop)
        self.patch(place, nop)
        hook = self._engine.hook(const.UC_HOOK_CODE, CODE(lambda *_: self._engine.stop()), place, place)
        try:
            self._start(place, 0)
        finally:
            self._engine.unhook(hook)
            self._engine.drop_translations(place, place + len(nop))

    def _in_delay_slot(self, pc: int) -> bool:
        size = len(self._guest.settle)
        return self.arch.decode(self._engine.read(pc - size, 2 * size) or b"", pc - size).delay_slot

    def _stop_for_sigint(self) -> None:
        self._why_stopped = "interrupt"
        self._disturbed = True
        self._engine.stop()

    def _loop(self, target: int, until: int) -> None:
        """Run until `until`, resuming after handled faults and after stops that belonged to an inner run."""
        self._rested = False
        while True:
            error = self._start(target, until & ~self.arch.mode_bits)
            if self._parked is not None:
                if self._failed_at is not None:
                    self._write_pc(self._failed_at)
                    self._failed_at = None
                parked, self._parked = self._parked, None
                self._inner_stop = self._depth > 1
                raise parked
            if self._interrupt is not None and ERRORS.get(error, ("",))[0] in ("read", "write") and self._interrupt[0] not in self._guest.unaligned:
                self._interrupt = None  # the access failed first: the engine notices some only instructions later
                self._inner_stop = self._depth > 1
            if self._interrupt is not None:
                (number, pc), self._interrupt = self._interrupt, None
                self._inner_stop = self._depth > 1
                target = self._fault(pc, self._interrupt_fault(number, pc))
            elif error:
                pc = self._read_pc()
                target = self._fault(pc, self._engine_fault(error, pc))
            elif self._why_stopped:
                self._inner_stop = self._depth > 1  # the engine has stopped the outer runs, too
                self._come_to_rest()
                return
            elif self._inner_stop:
                self._inner_stop = False
                target = self.arch.same_mode(self._regs, self._read_pc())
            else:
                self._arrived(until)
                return

    def _arrived(self, until: int) -> None:
        pc = self._read_pc()
        if pc == until & ~self.arch.mode_bits:
            return
        if self._guest.until_pc or self._exit in (pc, until & ~self.arch.mode_bits):  # a jump leads to the exit: pc is right there
            self._raise_fault(pc, Fault(access="engine", trapnr=5, text="the guest halted"))
        self._write_pc(until)

    def _come_to_rest(self) -> None:
        """After a stop: let a displaced instruction finish, then say why."""
        reason, self._why_stopped = self._why_stopped, ""
        sink = self._sink
        while sink is not None and sink.ours(self._read_pc()):
            self._bounds.append(0)
            try:
                self._install_bound_hook()
                error = self._start(self.arch.same_mode(self._regs, self._read_pc()), 0)
            finally:
                self._bounds.pop()
            self._why_stopped = ""
            if self._parked is not None:
                parked, self._parked = self._parked, None
                raise parked
            if error:
                self._fault(self._read_pc(), self._engine_fault(error, self._read_pc()))
        if reason == "interrupt" or (reason == "stop" and self._depth == 1):
            self._rested = reason == "interrupt"
            self._why_stopped = "interrupt" if reason == "interrupt" and self._depth > 1 else ""
            return
        if reason == "timeout" and self._timed_out < self._depth:
            self._why_stopped = reason  # it is an outer run's time that is up
        raise GuestTimeout({"stop": "stopped", "timeout": "the time is up", "max_insns": "max_insns instructions are executed"}[reason],
                           pc=self._read_pc())

    # --- bounds

    @contextmanager
    def _bounded(self, timeout: float | None, max_insns: int | None) -> Iterator[None]:
        if max_insns is not None and max_insns > SINGLE_STEP and not self._guest.counts_insns:
            raise Unsupported(f"this engine cannot count {self.arch.name} instructions beyond a jump", hint="bound the run with timeout=")
        done = threading.Event()
        timer = None
        if timeout is not None:
            timer = threading.Thread(target=self._expire, args=(done, timeout, self._depth), daemon=True, name="kprobes-timeout")
            timer.start()
        if max_insns is not None:
            self._bounds.append(max_insns)
            self._install_bound_hook()
            if self._sink is not None:
                self._sink.exact(True)
        try:
            yield
        finally:
            done.set()
            if timer is not None:
                timer.join()  # or its stop would reach the next run
            if max_insns is not None:
                if self._sink is not None:
                    self._sink.exact(False)
                self._bounds.pop()
                if self._depth == 1:
                    self._remove_bound_hook()

    def _expire(self, done: threading.Event, seconds: float, depth: int) -> None:
        if done.wait(seconds):
            return
        self._timed_out = depth
        while not done.wait(0.005):  # a stop before the engine has started is lost, so repeat it
            self._why_stopped = "timeout"
            self._disturbed = True
            self._engine.stop()

    def _install_bound_hook(self) -> None:
        if self._bound_hook is None:
            self._bound_hook = self._engine.hook(const.UC_HOOK_CODE, CODE(self._bound_callback()))
            self._retranslate()

    def _remove_bound_hook(self) -> None:
        if self._bound_hook is not None:
            self._engine.unhook(self._bound_hook)
            self._bound_hook = None
            self._retranslate()

    def _retranslate(self) -> None:
        for start, end, perms in self.uc.mem_regions():
            if perms & const.UC_PROT_EXEC:
                self._engine.drop_translations(start, end + 1)

    def _bound_callback(self) -> Callable[[int, int, int, int], None]:
        """Counts the guest's own instructions, not those in slots; never stops inside a slot. Where no stop is possible in delay
        slots (Guest.settle), a branch and what stands behind it count as one."""
        twice, last = self._guest.reported_twice, -1
        delayed: dict[int, bool] | None = {} if self._guest.settle else None

        def on_instruction(_uc: int, address: int, _size: int, _user: int) -> None:
            nonlocal last
            if not self._bounds or (self._sink is not None and self._sink.ours(address)):
                return
            if twice is not None:
                again, last = address == last and twice(self._engine.read(address, 2) or b"\0\0"), address
                if again:
                    last = -1
                    return
            if delayed is not None:
                if address not in delayed:
                    delayed[address] = self._in_delay_slot(address)
                if delayed[address]:
                    return
            if self._bounds[-1] <= 0:
                self._why_stopped = self._why_stopped or "max_insns"
                self._engine.stop()
            else:
                self._bounds[-1] -= 1

        return on_instruction

    # --- faults

    def _fault(self, pc: int, fault: Fault) -> int:
        """Report a fault at `pc`. Returns where to go on if a handler has handled it, else raises GuestFault."""
        regs = self._regs
        home = None if self._sink is None or fault.lost else self._sink.home(pc)
        regs.at(pc)
        try:
            handled = self._sink is not None and self._sink.fault(regs, fault)
            target = regs.target
        finally:
            moved = regs.target
            regs.at(None)
            if moved is not None:
                self._write_pc(moved)
        if handled:
            return target if target is not None else self.arch.same_mode(regs, pc)
        if fault.lost:
            self._pending = True
            text = f"{fault.text}, here or later: the engine does not say where" if moved is None else fault.text
            fault = Fault(access=fault.access, trapnr=fault.trapnr, number=fault.number, text=text)
        self._raise_fault(home if home is not None else pc if moved is None else moved & ~self.arch.mode_bits, fault)
        raise AssertionError

    def _raise_fault(self, pc: int, fault: Fault) -> None:
        if pc in self._imports:
            raise GuestFault(f"call of the unresolved import {self._imports[pc]}", address=pc, pc=pc, access="fetch", symbol=self._imports[pc])
        if fault.access == "fetch" and pc & -self.page_size == self._exit:
            raise GuestFault("the guest ran into the library's exit page", address=pc, pc=pc, access="fetch")
        where = self.symbols.describe(pc)
        at = f" at {fault.address:#x}" if fault.address is not None and fault.address != pc else ""
        if self._thread_local and fault.address is not None and self._near_thread_pointer(fault.address):
            at += ", where thread-local storage would be: it is not set up"
        raise GuestFault(f"{fault.text or fault.access}{at}", address=pc if fault.address is None else fault.address, pc=pc, access=fault.access,
                         symbol=None if where.startswith("0x") else where, number=fault.number)

    def _near_thread_pointer(self, addr: int) -> bool:
        distance = addr - self._thread_pointer & self.arch.mask
        return min(distance, self.arch.mask + 1 - distance) < NEAR

    def _interrupt_fault(self, number: int, pc: int) -> Fault:
        guest = self._guest
        if number in guest.ambiguous and (failed := self._failed_access(pc)) is not None:
            return Fault(access=failed[0], address=failed[1], text=f"invalid memory {failed[0]}")
        lost = guest.lost_pc and number != guest.number
        if number in guest.arithmetic:
            return Fault(access="arithmetic", trapnr=8, number=number, text="division or arithmetic error", lost=lost)
        if number in guest.undefined:
            return Fault(access="undefined", trapnr=4, number=number, text="undefined instruction", lost=lost)
        if number in guest.breakpoints:
            return Fault(access="trap", trapnr=5, number=number, text="breakpoint instruction of the guest's own", lost=lost)
        if number in guest.fetches:
            return Fault(access="fetch", address=pc, number=number, text="instruction fetch refused", lost=lost)
        if number in guest.unaligned:
            return Fault(access=guest.unaligned[number], trapnr=7, number=number, text="unaligned access", lost=lost)
        text = f"interrupt {number} (no operating system; set machine.interrupt_handler)"
        return Fault(access="interrupt", trapnr=5, number=number, text=text, lost=lost)

    def _engine_fault(self, error: int, pc: int) -> Fault:
        access, signal = ERRORS.get(error, ("engine", 11))
        itself = access == "fetch" and (self._guest.fetch_fault_kills or not self.executable(pc))  # else a part of it, or EXECUTE's target
        address = pc if itself else self._fault_address(pc, access) if access in ("read", "write", "fetch") else None
        where = ", in the delay slot of a branch to here, or shortly before" if self._guest.settle and access == "write" and address is None else ""
        return Fault(access=access, address=address, trapnr=signal, text=f"{unicorn.UcError(error)}{where}")

    def _fault_address(self, pc: int, access: str) -> int | None:
        """The engine does not say which address failed: execute the instruction once more under a hook that does."""
        if not self._guest.settle:
            seen = self._execute_again(pc)
            self._write_pc(self.arch.same_mode(self._regs, pc))
            return seen[0][1] if seen else None
        # With delay slots: under the hook nothing may execute in one, and after a store in one pc is the branch's target,
        # where an innocent instruction stands (a probe's trap or jump, for instance).
        in_slot = self._in_delay_slot(pc)
        insn = self.arch.decode(self._engine.read(pc, self.arch.max_insn) or b"", pc)
        if insn.reject or insn.simulate is not None or (in_slot and (self._depth > 1 or not self._exit)):
            return None
        saved = self._engine.save()
        try:
            if in_slot:
                self._run_nop()
            with self._sealed(access == "write") as sealed:
                seen = self._execute_again(pc)
        finally:
            self._engine.restore(saved)
            self._engine.discard(saved)
        return next((a for _, a in seen if not any(start <= a < start + size for start, size, _ in sealed)), None)

    def _failed_access(self, pc: int) -> tuple[str, int] | None:
        """The access that an ambiguous interrupt stands for, by executing the instruction once more under the virtual TLB; None: it
        stands for something else."""
        saved, trap, services = self._engine.save(), self._trap, self._services
        self._again, self._trap, self._services = True, None, {}  # what comes after a store that fails is executed, too
        self.uc.ctl_set_tlb_mode(const.UC_TLB_VIRTUAL)
        try:
            with self._sealed(True) as sealed:
                seen = self._execute_again(pc)
        finally:
            self.uc.ctl_set_tlb_mode(const.UC_TLB_CPU)
            self._again, self._trap, self._services = False, trap, services
            self._engine.restore(saved)
            self._engine.discard(saved)
        return next((s for s in seen if not (s[0] == "write" and any(start <= s[1] < start + size for start, size, _ in sealed))), None)

    def _execute_again(self, pc: int) -> list[tuple[str, int]]:
        """Execute an instruction that fails; the accesses that it cannot make, and their addresses."""
        seen: list[tuple[str, int]] = []

        def on_failure(_uc: int, access: int, address: int, _size: int, _value: int, _user: int) -> bool:
            kind = "write" if access in _WRITES else "fetch" if access in _FETCHES else "read"
            seen.append((kind, address))
            return False

        hook = self._engine.hook(const.UC_HOOK_MEM_INVALID, MEM(on_failure))
        bounds, self._bounds = self._bounds, []  # max_insns has counted this instruction already
        try:
            insn = self.arch.decode(self._engine.read(pc, self.arch.max_insn) or b"", pc)
            self._start(self.arch.same_mode(self._regs, pc), insn.next)
        finally:
            self._bounds = bounds
            self._interrupt = None  # where the failure is noticed late, this executed an innocent instruction
            self._engine.unhook(hook)
        return seen

    @contextmanager
    def _sealed(self, needed: bool) -> Iterator[list[tuple[int, int, int]]]:
        """If needed, nothing can be written in guest memory meanwhile. The ranges that could: (start, size, permissions)."""
        write = const.UC_PROT_WRITE
        ranges = [(start, end + 1 - start, perms) for start, end, perms in self.uc.mem_regions() if needed and perms & write]
        for start, size, perms in ranges:
            self.uc.mem_protect(start, size, perms & ~write)
        try:
            yield ranges
        finally:
            for start, size, perms in ranges:
                self.uc.mem_protect(start, size, perms)

    # --- an engine that belongs to somebody else

    def _shadow_emu_start(self) -> None:
        """The owner's uc.emu_start() raises what handlers raise, and reports faults of displaced instructions at home."""
        start = self.uc.emu_start

        def emu_start(begin: int, until: int, timeout: int = 0, count: int = 0) -> None:
            self._depth += 1
            outer = self._regs._pc, self._regs._target
            self._regs.at(None)
            self._executable.clear()  # the owner maps memory as he likes
            if self._depth == 1 and self._sink is not None:
                self._sink.starting(begin)
            try:
                while True:
                    begin = self._owners_run(start, begin, until, timeout, count)
                    if begin < 0:
                        return
            finally:
                self._regs._pc, self._regs._target = outer
                self._depth -= 1

        self.uc.__dict__["emu_start"] = emu_start

    def _owners_run(self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int) -> int:
        """One stretch of the owner's run; returns where to go on, or -1."""
        self._check_alive()
        try:
            start(begin, until, timeout, count)
        except unicorn.UcError as error:
            if self._parked is None:
                regs, pc = self._regs, self._read_pc()
                access, signal = ERRORS.get(error.errno, ("engine", 11))
                self._dead = self._guest.fetch_fault_kills and access == "fetch"
                regs.at(pc)
                try:
                    handled = self._sink is not None and self._sink.fault(regs, Fault(access=access, trapnr=signal, text=str(error)))
                    target = regs.target
                finally:
                    regs.at(None)
                if target is not None:
                    self._write_pc(target)
                if handled and target is not None:
                    return target
                raise
        if self._parked is not None:
            parked, self._parked = self._parked, None
            self._inner_stop = self._depth > 1
            raise parked
        if self._inner_stop:
            self._inner_stop = False
            return self.arch.same_mode(self._regs, self._read_pc())
        self._why_stopped = ""
        return -1

    # --- the end

    def close(self) -> None:
        """Take the hooks away; an engine of our own is closed with its last reference."""
        if self._hooks:
            self._remove_hooks()
        self._remove_bound_hook()
        self._engine.close()
        self._sink = self._trap = None

    def __enter__(self) -> UnicornMachine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


#: Memory that a hook of an area that is no more may still write to.
_retired: list[Counters] = []


class _Register:
    """A pc that only the API may write, in the shape of a cell."""

    def __init__(self, read: Callable[[], int], write: Callable[[int], None]) -> None:
        self.view, self.index, self._read, self._write = self, 0, read, write

    def __getitem__(self, index: int) -> int:
        return self._read()

    def __setitem__(self, index: int, value: int) -> None:
        self._write(value)


_WRITES = (const.UC_MEM_WRITE_UNMAPPED, const.UC_MEM_WRITE_PROT)
_FETCHES = (const.UC_MEM_FETCH_UNMAPPED, const.UC_MEM_FETCH_PROT)
_OWNERS_INTR = getattr(unicorn.unicorn_py3.unicorn, "HOOK_INTR_CFUNC", _engine.INTR)


def _arch_of(uc: unicorn.Uc) -> str:
    """The architecture of an engine, by its kind and mode."""
    kind, mode = uc.query(const.UC_QUERY_ARCH), uc.query(const.UC_QUERY_MODE)
    for name, guest in GUESTS.items():
        if guest.uc_arch == kind and not (guest.uc_mode ^ mode) & ~guest.state_mode and (guest.recognise is None or guest.recognise(uc)):
            return name
    raise Unsupported(f"no architecture for Unicorn's arch {kind} in mode {mode:#x}", hint=f"pass arch=, one of {', '.join(GUESTS)}")


__all__ = ["Symbol", "UnicornMachine"]
