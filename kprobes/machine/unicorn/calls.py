"""Guest calls and runs, by the architecture's calling convention."""

from __future__ import annotations

from operator import index
from typing import Any

import unicorn

from ...arch._base import Arch
from ...errors import BadArgument, GuestStopped, GuestTimeout, Unsupported
from ...symbols import Symbols
from .bounds import check_bounds
from .guests.guest import Guest
from .runner import Runs

Argument = int | bool | bytes | bytearray | str | None
STACK_SIZE = 1 << 20
SAVED_CONTEXTS = 1 << 16  # bytes


class Calls(Runs):
    """A processor that calls functions, by name or address."""

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self.symbols = Symbols()
        self.symbols.mode_bits = arch.mode_bits
        self._thread_pointer = 0
        self._stack_top = 0
        self._thread_local = False  # an image uses thread-local storage, which nobody has set up
        self._abandoned: Any = None

    def call(self, function: str | int, *args: Argument, timeout: float | None = None, max_insns: int | None = None) -> int:
        """Call guest code by the architecture's calling convention and return its integer result.

        function: symbol or address. Arguments: integers; bytes, bytearray and str are copied into guest memory
        (NUL-terminated) and passed as pointers, a bytearray is copied back; None is 0. Registers are put back afterwards.
        From inside a handler the guest runs nested, and probes hit there are missed. timeout: seconds; max_insns:
        instructions. Raises GuestFault, GuestTimeout, GuestStopped after stop() (registers are then left where the guest stopped),
        UnknownSymbol, BadArgument, MachineBusy.
        """
        check_bounds(timeout, max_insns)
        arguments = [self._argument(place, value) for place, value in enumerate(args, 1)]
        if not self._begin():
            return self._call(function, arguments, timeout, max_insns)
        try:
            return self._call(function, arguments, timeout, max_insns)
        finally:
            self._finish()

    def _call(self, function: str | int, arguments: list[int | bytes | bytearray], timeout: float | None, max_insns: int | None) -> int:
        pointer = self._pointer(function)
        target = self._target(pointer)
        if self.arch.abi is None or self.arch.linkage is None:
            raise Unsupported(f"{self.arch.name} has no calling convention", python="set registers and use run()")
        if not self._exit:
            self._exit = self.map_code()
            self._write_filler(self._exit, self.page_size)
        self._forget_failure()
        outer = self._regs._pc, self._regs._target
        saved = self._engine.save()
        self._regs.at(None)
        copies: list[tuple[int, bytearray | None, int]] = []
        failed = True
        try:
            self._delay_slots.settle()
            self._pass(arguments, copies)
            self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
            self._introduce(pointer)
            if self._run(target, self._exit, timeout, max_insns):
                raise GuestStopped(pc=self._read_pc())
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

    def _forget_failure(self) -> None:
        """The registers of before a call that failed, which have been the guest's as it stopped."""
        if self._depth == 0 and self._abandoned is not None:
            self._engine.restore(self._abandoned)
            self._engine.discard(self._abandoned)
            self._abandoned = None

    def run(self, start: int | str | None = None, until: int | str | None = None, *, timeout: float | None = None,
            max_insns: int | None = None) -> None:
        """Run the guest from `start` (default: where it stands) until `until`, or until the code it started in returns.

        After stop() it returns as well. timeout: seconds; max_insns: instructions. Raises GuestFault, GuestTimeout, UnknownSymbol,
        BadArgument, MachineBusy.
        """
        check_bounds(timeout, max_insns)
        outermost = self._begin()
        try:
            self._run_from(start, until, timeout, max_insns)
        finally:
            if outermost:
                self._finish()

    def _run_from(self, start: int | str | None, until: int | str | None, timeout: float | None, max_insns: int | None) -> None:
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
            self._delay_slots.settle()
        self._regs.at(None)
        if max_insns == 0:
            self._write_pc(target)
            raise GuestTimeout("max_insns is 0", pc=target & ~self.arch.mode_bits)
        self._run(target, end, timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run guest code with the registers as they are until it returns; then put all registers back."""
        outermost = self._begin()
        try:
            self._invoke(target)
        finally:
            if outermost:
                self._finish()

    def _invoke(self, target: int) -> None:
        assert self.arch.linkage is not None
        start = self._target(target)
        outer = self._regs._pc, self._regs._target
        saved = self._engine.save()
        self._regs.at(None)
        try:
            self.arch.linkage.set(self._regs, self._exit | self.arch.linkage.mode)
            self._introduce(target)
            if self._run(start, self._exit, None, None):
                raise GuestStopped(pc=self._read_pc())
        finally:
            self._engine.restore(saved)
            self._engine.discard(saved)
            self._regs._pc, self._regs._target = outer

    def _argument(self, place: int, value: Argument) -> int | bytes | bytearray:
        """An argument as it is passed: a register's value, or what to copy. BadArgument."""
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, (bytes, bytearray)):
            return value
        try:
            number = index(0 if value is None else value)
        except TypeError:
            raise BadArgument(f"argument {place} is a {type(value).__name__}",
                              hint="pass integers, bytes or text; floating point goes into m.regs, for run()") from None
        if not ~(self.arch.mask >> 1) <= number <= self.arch.mask:
            raise BadArgument(f"argument {place}, {number:#x}, does not fit into {self.arch.bits} bits", hint="pass a wide one in two halves")
        return number & self.arch.mask

    def _pass(self, args: list[int | bytes | bytearray], copies: list[tuple[int, bytearray | None, int]]) -> None:
        """Set up the arguments and the stack as at function entry (before the return address is set)."""
        abi, linkage, regs = self.arch.abi, self.arch.linkage, self._regs
        assert abi is not None and linkage is not None
        apart = (str, bytes, bytearray) if abi.pointers else ()
        pointers = [self._word(a, copies) for a in args if isinstance(a, apart)]
        if len(pointers) > len(abi.pointers):
            raise Unsupported(f"{len(pointers)} pointer arguments", hint=f"only {len(abi.pointers)} go in registers: copy the others yourself")
        words = [self._word(a, copies) for a in args if not isinstance(a, apart)]
        spilled = max(len(words) - len(abi.args), 0) * (self.arch.bits // 8)
        below = 512  # bytes beyond any red zone: 128 on x86_64, 288 on ppc64
        regs.sp = (regs.sp - below - abi.stack_args - spilled) // abi.stack_align * abi.stack_align - linkage.pushed
        if abi.reserve:
            self.write(regs.sp + linkage.pushed, bytes(abi.reserve))  # a back chain ends here
        for n, word in enumerate(words):
            abi.set_argument(regs, n, word)
        for name, pointer in zip(abi.pointers, pointers, strict=False):
            regs[name] = pointer

    def _word(self, value: int | bytes | bytearray, copies: list[tuple[int, bytearray | None, int]]) -> int:
        if isinstance(value, int):
            return value
        addr = self.alloc(len(value) + 1)
        copies.append((addr, value if isinstance(value, bytearray) else None, len(value)))
        self.write(addr, bytes(value) + b"\0")
        return addr

    def _pointer(self, function: str | int) -> int:
        """A function's address as its pointers have it."""
        if not isinstance(function, str):
            return function
        symbol = self.symbols[function]
        value = symbol.address | symbol.mode
        return self._stubs.choose(value) if symbol.kind == "ifunc" else value

    def _target(self, pointer: int) -> int:
        """Where the function of a pointer starts."""
        entry = self.arch.code_address(pointer, self.read)
        return entry.addr | entry.mode

    def _introduce(self, pointer: int) -> None:
        """Set the registers that a function finds its data by."""
        if self.arch.abi is not None and self.arch.abi.enter is not None:
            self.arch.abi.enter(self._regs, pointer)

    def _furnish(self) -> None:
        """Stack, and the place where calls end."""
        stack = self._map_anywhere(STACK_SIZE)
        self._stack_top = stack + STACK_SIZE
        self.regs.sp = self._stack_top - 4096
        self._exit = self.map_code()
        self._write_filler(self._exit, self.page_size)
        if self._guest.furnish is not None:
            self._guest.furnish(self._engine, self._regs, self._map_anywhere(SAVED_CONTEXTS, self._guest.contexts_near), SAVED_CONTEXTS)
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
