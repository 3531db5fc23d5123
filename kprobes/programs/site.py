"""Programs at a probe of a machine whose guest host code can see: registers are read where the
engine keeps them.

What a machine shows is a `HostCodeView`; see machine.unicorn.programs, which has one.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..arch._base import Arch
from ..errors import Unsupported
from ..machine._views import HostCodeView
from . import context, host, native, support
from .code import CONTEXT_SIZE, Code
from .emit import end_if_failed
from .host import Environment, HostCode
from .hostclock import clock_of
from .inline import Inlined
from .llvm import generate
from .writer import CodeTarget, IrWriter, Slot

if TYPE_CHECKING:
    from .verifier import Facts

_PC: Final = ("pc", 0)
_OVERRIDE: Final = 58
_WORD = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


class ProbeContext:
    """The context of a program at a probe: each of its words is read when the program reads it.

    context.py says what the words are.
    """

    def __init__(self, view: HostCodeView) -> None:
        """Prepare.

        Args:
            view: where the machine keeps registers.
        """
        self._view = view
        self._arch = view.arch

    def load(self, w: IrWriter, offset: int, size: int) -> str:
        """Write a read of the context, and return the name of the value, an i64.

        Args:
            w: writes the function.
            offset: bytes from the context's beginning.
            size: bytes; the verifier lets no read pass that crosses words.
        """
        return part(w, word(w, self._arch, self, offset // 8), offset % 8, size)

    def address(self, w: IrWriter) -> str:
        """Emit code that puts all words of the context into memory, if the program needs it.

        Args:
            w: writes the IR.

        Returns:
            The IR value that is the memory's address; "0": the program needs no such memory.
        """
        if not w.module.places.escapes:
            return "0"
        at = w.word(("context", 0))
        for n in range(context.WORDS):
            value = w.swap(word(w, self._arch, self, n), 64)
            w.do(f"store i64 {value}, ptr {w.pointer(w.emit(f'add i64 {at}, {8 * n}'))}")
        return at

    def sp(self, w: IrWriter) -> str:
        """Write a read of the stack pointer, its bias added, and return the value's name, an
        i64.
        """
        table = self._arch.regs
        value = w.emit(
            f"add i64 {self._value(w, table.sp, table.names.index(table.sp))}, {table.sp_bias}"
        )
        return w.emit(f"and i64 {value}, {self._arch.mask}")

    def linkage(self, w: IrWriter, index: int) -> str:
        """Write a call of Python for the return address, and return the name of the value, an i64.

        Args:
            w: writes the function.
            index: number of the context's word.
        """
        function = w.pointer(w.word(("word", 0)))
        value = w.emit(f"call i64 {function}(i64 {index})")
        end_if_failed(w)
        return value

    def register(self, w: IrWriter, name: str, index: int) -> str:
        """Write a read of a register, and return the name of the value, an i64.

        Args:
            w: writes the function.
            name: the register.
            index: number of the context's word; to that of the stack pointer the bias is added.
        """
        biased = index == context.SP and self._arch.regs.sp_bias
        return self.sp(w) if biased else self._value(w, name, index)

    def _value(self, w: IrWriter, name: str, index: int) -> str:
        """Write IR that reads a register where the engine keeps it; return its i64 value.

        Args:
            w: the writer of the IR.
            name: name of the register, or an alias.
            index: number of the context's word that shows the register; Python is asked by it where
                host code cannot read the register.

        Returns:
            The value's name in the IR.
        """
        where = self._view.where(self._arch.regs.aliases.get(name, name))
        if where.way == "none":
            return "0"
        if where.way == "pc":
            target = w.emit(f"load i64, ptr {w.pointer(w.word(_PC))}")
            return w.emit(f"and i64 {target}, {~where.place}")
        if where.way == "python":
            return self.linkage(w, index)
        if where.way == "api":
            support.need(w.module, "engine_register")
            engine = w.word(("uc", 0))
            function = w.word(("uc_reg_read", 0))
            return w.emit(
                f"call i64 @engine_register(i64 {engine}, i64 {function}, i32 {where.place})"
            )
        base = w.pointer(w.word(("base", 0)))
        at = w.emit(f"getelementptr i8, ptr {base}, i64 {where.place}")
        if where.way == "window":
            at = w.emit(f"getelementptr i8, ptr {w.emit(f'load ptr, ptr {at}')}, i64 {where.index}")
        value = w.emit(f"load i{where.bits}, ptr {at}")
        return value if where.bits == 64 else w.emit(f"zext i{where.bits} {value} to i64")


class WordSources(Protocol):
    """The sources of a context's words that differ among guests.

    Methods write a read, and return the name of the value, an i64.
    """

    def sp(self, w: IrWriter) -> str:
        """Return the stack pointer."""

    def linkage(self, w: IrWriter, index: int) -> str:
        """Write a read of the return address, which is the context's word of number `index`."""

    def register(self, w: IrWriter, name: str, index: int) -> str:
        """Write a read of the register `name`, which is the context's word of number `index`."""


def word(w: IrWriter, arch: Arch, words: WordSources, index: int) -> str:
    """Return a word of the context; "0" where the architecture has none.

    Args:
        w: writes the IR.
        arch: the guest's.
        words: where words come from.
        index: number of the word.
    """
    source = context.source(arch, index) if 0 <= index < context.WORDS else None
    if source is None:
        return "0"
    if source.value >= 0:
        return str(source.value)
    if source.argument >= 0:
        return stacked(w, arch, source.argument, words.sp(w))
    return words.linkage(w, index) if source.linkage else words.register(w, source.register, index)


def part(w: IrWriter, value: str, inside: int, size: int) -> str:
    """Return bytes of a word.

    Args:
        w: writes the IR.
        value: the word.
        inside: number of the first byte, as memory has them.
        size: bytes: 1, 2, 4 or 8.
    """
    shift = 8 * (8 - inside - size if w.module.target.program_order == "big" else inside)
    if shift > 0:
        value = w.emit(f"lshr i64 {value}, {shift}")
    return value if size == 8 else w.emit(f"and i64 {value}, {(1 << 8 * size) - 1}")


def stacked(w: IrWriter, arch: Arch, n: int, sp: str) -> str:
    """Write a read of an argument that is on the stack, and return the name of the value.

    Args:
        w: writes the function.
        arch: the guest's architecture.
        n: number of the argument, from 0; those in registers count.
        sp: name of the stack pointer.

    Returns:
        The argument is 0 where no memory is mapped.
    """
    assert arch.abi is not None
    return word_at(w, arch, sp, arch.abi.stack_args + (n - len(arch.abi.args)) * (arch.bits // 8))


def word_at(w: IrWriter, arch: Arch, base: str, offset: int) -> str:
    """Write a read of a word of guest memory, and return the name of the value, an i64.

    Args:
        w: writes the function.
        arch: the guest's architecture.
        base: name of the guest address.
        offset: bytes behind it.

    Returns:
        The word is 0 where no memory is mapped.
    """
    support.need(w.module, "read")
    size = arch.bits // 8
    at = w.emit(f"and i64 {w.emit(f'add i64 {base}, {offset}')}, {arch.mask}")
    room = w.room(8)
    w.emit(f"call i64 @read(ptr {room}, i64 {size}, i64 {at}, {support.memory(w)})")
    value = w.emit(f"load i{8 * size}, ptr {room}")
    if arch.order.value != w.module.target.order:
        value = w.reversed(value, 8 * size)
    return value if size == 8 else w.emit(f"zext i32 {value} to i64")


def compiled(code: Code, view: HostCodeView, clock: str, facts: Facts) -> HostCode:
    """Compile a program to host code that runs at probes of such machines.

    Args:
        code: the program.
        view: the machine's.
        clock: what ktime_get_ns is: HOST_CLOCK or INSTRUCTION_CLOCK, which the code reads by
            itself; "": it calls Python.
        facts: findings of the verifier.

    Raises:
        Unsupported: it cannot be compiled, or not here.
    """
    if any(i.is_helper_call and i.imm == _OVERRIDE for i in code.instructions):
        raise Unsupported("a program that moves the guest is left to the core")
    target = CodeTarget(order=sys.byteorder, program_order=code.order)
    inlined = Inlined(code.maps, guest=True, clock=clock, calls=facts.calls)
    text, slots = generate(code.instructions, target, inlined, ProbeContext(view), facts.cleared)
    return HostCode(host.load(native.compiled(text, host.triple())), slots, facts.calls)


class SiteProgram:
    """A program at one probe, as a machine runs it at a call site (a machine._base.HostProgram)."""

    def __init__(
        self,
        code: Code,
        view: HostCodeView,
        call: Any,
        returns: bool = False,
        clock: str = "",
        made: HostCode | None = None,
        called: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        """Make the program's environment.

        Args:
            code: the program.
            view: the machine's.
            call: a run, as helpers see it.
            returns: True where it runs when a function has returned.
            clock: what ktime_get_ns is: HOST_CLOCK or INSTRUCTION_CLOCK, which the code reads by
                itself; "": it calls Python.
            made: what compiled() gave for the same program, view and clock; None: it is compiled
                here.
            called: called with True before, and with False behind each call of Python.

        Raises:
            ProgramError: the program is not safe.
            Unsupported: it cannot be compiled.
        """
        self._view = view
        self._returns = returns
        self._called = called
        self._handled = False
        if made is None:
            from .verifier import verify  # most sites get a program that is compiled already

            made = compiled(code, view, clock, verify(code))
        self._made = made
        self._pc = (
            ctypes.c_uint64.from_address(view.words["returned_to"])
            if returns
            else ctypes.c_uint64()
        )
        known: dict[Slot, int] = {
            ("base", 0): view.base,
            _PC: ctypes.addressof(self._pc),
            **{(name, 0): value for name, value in view.words.items()},
        }
        if ("context", 0) in made.slots:
            self._context = ctypes.create_string_buffer(CONTEXT_SIZE)
            known["context", 0] = ctypes.addressof(self._context)
        if ("word", 0) in made.slots:
            self._told = _WORD(self._word)
            known["word", 0] = host.address_of(self._told)
        if ("clock", 0) in made.slots:
            self._clock = clock_of(view)
            known["clock", 0] = self._clock.address
        self._environment = Environment(code, made, known, call, view.fail, self._report)

    @property
    def address(self) -> int:
        """The address of its environment."""
        return self._environment.address

    @property
    def asks(self) -> bool:
        """True if it may call Python."""
        return any(kind in ("call", "format", "word") for kind, _ in self._made.slots)

    def at(self, address: int, function: int = 0, cookie: int = 0) -> None:
        """Set the words of the environment that say where the program is.

        Of a program that runs at returns the pc is set by the machine, at each return.

        Args:
            address: the probe's address.
            function: returned by get_func_ip.
            cookie: returned by get_attach_cookie.
        """
        if not self._returns:
            self._pc.value = address
        for name, value in (("func_ip", function), ("cookie", cookie)):
            self._environment.set((name, 0), value)

    def run(self, pc: int) -> None:
        """Run the program in a handler, at a hit that the machine has left to the core.

        What a helper raises is raised.

        Args:
            pc: the address that was hit.
        """
        outer = self._pc.value
        self._pc.value = pc
        handled = self._handled
        self._handled = True
        try:
            self._environment.run(0, 0)
        finally:
            self._pc.value = outer
            self._handled = handled

    def _report(self, begins: bool) -> None:
        """Show a helper in Python the registers as a handler sees them, unless it is called in one.

        Args:
            begins: True where the helper is about to run, False where it has run.
        """
        if self._handled:
            return
        self._view.regs.at(self._shown() if begins else None)
        self._called(begins)

    def _shown(self) -> int:
        """Return the address that a helper sees as the pc."""
        return self._pc.value & ~self._view.arch.pointers.mode_bits

    def _word(self, index: int) -> int:
        """Return a word of the context; called by the program's code where it cannot read the word.

        What reading raises ends the run instead.

        Args:
            index: number of the word.
        """
        try:
            self._report(True)
            return context.reader(self._view.arch, index)(self._view.regs) & (1 << 64) - 1
        except BaseException as error:
            self._environment.fail(error)
            return 0
        finally:
            self._report(False)
