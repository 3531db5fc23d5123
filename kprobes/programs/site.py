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
from ..machine._views import HostCodeView
from . import context, host, native, support
from .code import CONTEXT_SIZE, Code
from .emit import end_if_failed
from .host import Environment, HostCode
from .hostclock import clock_of
from .inline import Inlined
from .isa import steps
from .llvm import generate
from .writer import CodeTarget, IrWriter, Slot

if TYPE_CHECKING:
    from .verifier import Facts

_PC: Final = ("pc", 0)
_OVERRIDE: Final = 58
BRIEF: Final = 256  #: instructions of a program that is brief, at most
_WORD = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


class ProbeContext:
    """Emits IR by which host code of a program at a probe reads the words of its context.

    A word is read from the engine when the program reads it; context.py says what the words are.
    """

    def __init__(self, view: HostCodeView) -> None:
        """Prepare; nothing is emitted yet.

        Args:
            view: the machine's view for host code, which tells where registers are kept.
        """
        self._view = view
        self._arch = view.arch

    def load(self, w: IrWriter, offset: int, size: int) -> str:
        """Emit IR for a read of the context, and return the name of the value, an i64.

        Args:
            w: writer of the IR of the current function.
            offset: bytes from the context's beginning.
            size: bytes; the verifier lets no read pass that crosses words.
        """
        return part(w, word(w, self._arch, self, offset // 8), offset % 8, size)

    def address(self, w: IrWriter) -> str:
        """Emit IR that writes all words of the context to memory, if the program needs memory.

        Args:
            w: writer of the IR of the current function.

        Returns:
            IR name of the memory's address, the value of r1; "0": the program only reads words at
            constant offsets, and nothing is emitted.
        """
        if not w.module.places.escapes:
            return "0"
        at = w.word(("context", 0))
        for n in range(context.WORDS):
            value = w.swap(word(w, self._arch, self, n), 64)
            w.append(f"store i64 {value}, ptr {w.pointer(w.emit(f'add i64 {at}, {8 * n}'))}")
        return at

    def sp(self, w: IrWriter) -> str:
        """Emit IR that reads the stack pointer and adds its bias; return the i64's name.

        Args:
            w: writer of the IR of the current function.
        """
        table = self._arch.regs
        value = w.emit(
            f"add i64 {self._value(w, table.sp, table.names.index(table.sp))}, {table.sp_bias}"
        )
        return w.emit(f"and i64 {value}, {self._arch.mask}")

    def linkage(self, w: IrWriter, index: int) -> str:
        """Emit IR that calls Python for a word of the context; return the i64's name.

        Used for the return address, and for registers that host code cannot read.

        Args:
            w: writer of the IR of the current function.
            index: number of the context's word, 0 to 127.
        """
        function = w.pointer(w.word(("word", 0)))
        value = w.emit(f"call i64 {function}(i64 {index})")
        end_if_failed(w)
        return value

    def register(self, w: IrWriter, name: str, index: int) -> str:
        """Emit IR for a read of a register, and return the name of the value, an i64.

        Args:
            w: writer of the IR of the current function.
            name: name of the register, or an alias.
            index: number of the context's word that shows the register; to the word SP the
                architecture's stack bias is added.
        """
        biased = index == context.SP and self._arch.regs.sp_bias
        return self.sp(w) if biased else self._value(w, name, index)

    def _value(self, w: IrWriter, name: str, index: int) -> str:
        """Emit IR that reads a register where the engine keeps it.

        Args:
            w: writer of the IR of the current function.
            name: name of the register, or an alias.
            index: number of the context's word that shows the register; Python is asked by it where
                host code cannot read the register.

        Returns:
            IR name of the value, an i64; "0": the machine does not have the register.
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
    """Emits reads of those words of a context that differ among kinds of machines.

    Each method emits IR that reads a value, and returns the IR name of that value, an i64.
    """

    def sp(self, w: IrWriter) -> str:
        """Emit IR that reads the stack pointer."""

    def linkage(self, w: IrWriter, index: int) -> str:
        """Emit IR that reads the return address, which is word number `index` of the context."""

    def register(self, w: IrWriter, name: str, index: int) -> str:
        """Emit IR that reads register `name`, which is word number `index` of the context."""


def word(w: IrWriter, arch: Arch, words: WordSources, index: int) -> str:
    """Emit IR that reads a word of the context.

    Args:
        w: writer of the IR of the current function.
        arch: the guest's architecture.
        words: emits reads of registers, stack pointer and return address.
        index: number of the word, 0 to 127.

    Returns:
        IR name of the value, an i64, or a constant as text; "0": the architecture has no such word.
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
    """Emit IR that takes some bytes out of a word of the context; return the i64's name.

    Args:
        w: writer of the IR of the current function.
        value: IR name of the whole word, an i64.
        inside: offset of the first byte in the word, in the program's byte order.
        size: how many bytes: 1, 2, 4 or 8.
    """
    shift = 8 * (8 - inside - size if w.module.target.program_order == "big" else inside)
    if shift > 0:
        value = w.emit(f"lshr i64 {value}, {shift}")
    return value if size == 8 else w.emit(f"and i64 {value}, {(1 << 8 * size) - 1}")


def stacked(w: IrWriter, arch: Arch, n: int, sp: str) -> str:
    """Emit IR that reads an argument of the probed function which is on the guest's stack.

    Args:
        w: writer of the IR of the current function.
        arch: the guest's architecture.
        n: number of the argument, from 0; those in registers count.
        sp: IR name of the stack pointer, an i64.

    Returns:
        IR name of the argument, an i64; it is 0 where no memory is mapped.
    """
    assert arch.abi is not None
    return word_at(w, arch, sp, arch.abi.stack_args + (n - len(arch.abi.args)) * (arch.bits // 8))


def word_at(w: IrWriter, arch: Arch, base: str, offset: int) -> str:
    """Emit IR that reads a word of guest memory: as many bits as the architecture's.

    Args:
        w: writer of the IR of the current function.
        arch: the guest's architecture.
        base: IR name of a guest address, an i64.
        offset: bytes that are added to that address.

    Returns:
        IR name of the word, zero-extended to an i64; it is 0 where no memory is mapped.
    """
    support.need(w.module, "read")
    size = arch.bits // 8
    at = w.emit(f"and i64 {w.emit(f'add i64 {base}, {offset}')}, {arch.mask}")
    room = w.allocate(8)
    w.emit(f"call i64 @read(ptr {room}, i64 {size}, i64 {at}, {support.memory(w)})")
    value = w.emit(f"load i{8 * size}, ptr {room}")
    if arch.order.value != w.module.target.order:
        value = w.reversed(value, 8 * size)
    return value if size == 8 else w.emit(f"zext i32 {value} to i64")


def compiled(code: Code, view: HostCodeView, clock: str, facts: Facts) -> HostCode:
    """Compile a program to host code that runs at probes of a machine.

    Args:
        code: the program.
        view: the machine's view for host code.
        clock: what ktime_get_ns is: HOST_CLOCK or INSTRUCTION_CLOCK, which the code reads by
            itself; "": it calls Python.
        facts: findings of the verifier.

    Raises:
        Unsupported: the program overrides functions' results, LLVM is not installed, or compiled
            programs do not run on this computer.
    """
    overriding = [
        pc for pc, i in steps(code.instructions) if i.is_helper_call and i.imm == _OVERRIDE
    ]
    if overriding:
        raise code.not_compiled("a program that moves the guest is left to the core", overriding)
    target = CodeTarget(order=sys.byteorder, program_order=code.order)
    inlined = Inlined(code.maps, guest=True, clock=clock, calls=facts.calls)
    text, slots = generate(code.instructions, target, inlined, ProbeContext(view), facts.cleared)
    address = host.load(native.compiled(text, host.triple()))
    return HostCode(address, slots, facts.calls, _is_brief(code))


def _is_brief(code: Code) -> bool:
    """Return True if a program has at most BRIEF instructions, jumps only forward, and calls none
    of its own functions: so it executes none of them twice.
    """
    return len(code.instructions) <= BRIEF and all(
        i.target(pc) > pc if i.is_jump else not i.is_local_call
        for pc, i in enumerate(code.instructions)
    )


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
            view: the machine's view for host code.
            call: what helpers in Python get as the program's run (a call.ProgramRun).
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
        """The address of the program's environment, whose first word is the address of its code."""
        return self._environment.address

    @property
    def asks(self) -> bool:
        """True if the code may call Python: for a helper, or for a word of the context."""
        return any(kind in ("call", "format", "word") for kind, _ in self._made.slots)

    @property
    def brief(self) -> bool:
        """True if it surely takes some microseconds at most, and calls no Python."""
        return self._made.brief and not self.asks

    def at(self, address: int, function: int = 0, cookie: int = 0) -> None:
        """Tell the program where its probe is: write it into the environment.

        Called when the probe is registered. For a program that runs at returns `address` is not
        used: the machine sets the pc at each return.

        Args:
            address: the probe's address.
            function: what the helper get_func_ip returns.
            cookie: what the helper get_attach_cookie returns.
        """
        if not self._returns:
            self._pc.value = address
        for name, value in (("func_ip", function), ("cookie", cookie)):
            self._environment.set((name, 0), value)

    def run(self, pc: int) -> None:
        """Run the program from a probe's handler, at a hit that the machine has left to the core.

        Args:
            pc: the address that was hit.

        Raises:
            BaseException: whatever a helper in Python has raised.
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
        """Let a helper in Python read the guest's registers while it runs.

        Called just before and just after each helper in Python. Does nothing within run(), whose
        caller, a handler, has the registers already.

        Args:
            begins: True where the helper is about to run, False where it has run.
        """
        if self._handled:
            return
        self._view.regs.at(self._shown() if begins else None)
        self._called(begins)

    def _shown(self) -> int:
        """Return the address that a helper sees as the pc: without bits that select a mode."""
        return self._pc.value & ~self._view.arch.pointers.mode_bits

    def _word(self, index: int) -> int:
        """Read a word of the context; called by the program's code where it cannot read the word.

        Raises nothing: an error makes the program's run fail, and 0 is returned.

        Args:
            index: number of the word, 0 to 127.

        Returns:
            The word, as an unsigned number of 64 bits.
        """
        try:
            self._report(True)
            return context.reader(self._view.arch, index)(self._view.regs) & (1 << 64) - 1
        except BaseException as error:
            self._environment.fail(error)
            return 0
        finally:
            self._report(False)
