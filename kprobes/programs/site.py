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
    """The context of a program at a probe: its words are read when the program reads them. See
    context.py for what they are.
    """

    def __init__(self, view: HostCodeView) -> None:
        self._view = view
        self._arch = view.arch

    def load(self, w: IrWriter, offset: int, size: int) -> str:
        """Part of a word. The verifier lets no read pass that crosses words."""
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
        table = self._arch.regs
        value = w.emit(
            f"add i64 {self._value(w, table.sp, table.names.index(table.sp))}, {table.sp_bias}"
        )
        return w.emit(f"and i64 {value}, {self._arch.mask}")

    def linkage(self, w: IrWriter, index: int) -> str:
        """As every word that Python finds."""
        function = w.pointer(w.word(("word", 0)))
        value = w.emit(f"call i64 {function}(i64 {index})")
        end_if_failed(w)
        return value

    def register(self, w: IrWriter, name: str, index: int) -> str:
        biased = index == context.SP and self._arch.regs.sp_bias
        return self.sp(w) if biased else self._value(w, name, index)

    def _value(self, w: IrWriter, name: str, index: int) -> str:
        """Write IR that reads a register where the engine keeps it; return its i64 value.

        Args:
            w: the writer of the IR.
            name: of the register, or an alias.
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
            engine, function = w.word(("uc", 0)), w.word(("uc_reg_read", 0))
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
    """The sources of a context's words that differ among guests: the stack pointer, the return
    address, registers.
    """

    def sp(self, w: IrWriter) -> str: ...
    def linkage(self, w: IrWriter, index: int) -> str: ...
    def register(self, w: IrWriter, name: str, index: int) -> str: ...


def word(w: IrWriter, arch: Arch, words: WordSources, index: int) -> str:
    """A word of the context, by its number; 0 where the architecture has none."""
    source = context.source(arch, index) if 0 <= index < context.WORDS else None
    if source is None:
        return "0"
    if source.value >= 0:
        return str(source.value)
    if source.argument >= 0:
        return stacked(w, arch, source.argument, words.sp(w))
    return words.linkage(w, index) if source.linkage else words.register(w, source.register, index)


def part(w: IrWriter, value: str, inside: int, size: int) -> str:
    """`size` bytes of a word, from byte `inside` on as memory has them."""
    shift = 8 * (8 - inside - size if w.module.target.program_order == "big" else inside)
    if shift > 0:
        value = w.emit(f"lshr i64 {value}, {shift}")
    return value if size == 8 else w.emit(f"and i64 {value}, {(1 << 8 * size) - 1}")


def stacked(w: IrWriter, arch: Arch, n: int, sp: str) -> str:
    """Argument `n`, on the stack; 0 where there is no memory."""
    assert arch.abi is not None
    return word_at(w, arch, sp, arch.abi.stack_args + (n - len(arch.abi.args)) * (arch.bits // 8))


def word_at(w: IrWriter, arch: Arch, base: str, offset: int) -> str:
    """The guest's word at an address and an offset; 0 where there is no memory."""
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
    """The program as host code that runs at probes of such machines. Unsupported where it cannot be
    compiled, or not here.
    """
    if any(i.is_helper_call and i.imm == _OVERRIDE for i in code.instructions):
        raise Unsupported("a program that moves the guest is left to the core")
    target = CodeTarget(order=sys.byteorder, program_order=code.order)
    inlined = Inlined(code.maps, guest=True, clock=clock, calls=facts.calls)
    text, slots = generate(code.instructions, target, inlined, ProbeContext(view), facts.cleared)
    return HostCode(host.load(native.compiled(text, host.triple())), slots, facts.calls)


class SiteProgram:
    """A program at one probe, as a machine runs it at a call site. See machine._base.HostProgram.

    view: the machine's. call: a run, as helpers see it. returns: it runs when a function has
    returned. clock: its ktime_get_ns, see Inlined. made: what compiled() gave for the same program,
    view and clock. called: told True and False around each call of Python.
    """

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
        known: dict[Slot, int] = {("base", 0): view.base, _PC: ctypes.addressof(self._pc),
                                  **{(name, 0): value for name, value in view.words.items()}}
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
        """Of its environment."""
        return self._environment.address

    @property
    def asks(self) -> bool:
        """True if it may call Python."""
        return any(kind in ("call", "format", "word") for kind, _ in self._made.slots)

    def at(self, address: int, function: int = 0, cookie: int = 0) -> None:
        """Set the place.

        Args:
            address: of the probe.
            function: returned by get_func_ip.
            cookie: returned by get_attach_cookie.
        """
        if not self._returns:
            self._pc.value = address
        for name, value in (("func_ip", function), ("cookie", cookie)):
            self._environment.set((name, 0), value)

    def run(self, pc: int) -> None:
        """Run it in a handler, at a hit that the machine has left to us. Raises what a helper
        raises.
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
        """A helper in Python runs: it sees the registers as a handler does, unless it is in one."""
        if self._handled:
            return
        self._view.regs.at(self._shown() if begins else None)
        self._called(begins)

    def _shown(self) -> int:
        return self._pc.value & ~self._view.arch.pointers.mode_bits

    def _word(self, index: int) -> int:
        try:
            self._report(True)
            return context.reader(self._view.arch, index)(self._view.regs) & (1 << 64) - 1
        except BaseException as error:
            self._environment.fail(error)
            return 0
        finally:
            self._report(False)
