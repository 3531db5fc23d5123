"""Programs at a probe of a machine whose guest host code can see: registers are read where the engine keeps them.

What a machine shows is a `View`; see machine.unicorn.programs, which has one.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from . import host, native, support
from .code import CONTEXT_SIZE, Code
from .host import Environment, HostCode
from .inline import Inlined
from .llvm import generate
from .writer import Slot, Target, Writer

_PC: Final = ("pc", 0)
_REGISTER = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


class Where(Protocol):
    """Where a register's value is. way: "cell", "window", "api", "pc", "none" or "python"; see machine.unicorn.programs."""

    @property
    def way(self) -> str: ...
    @property
    def place(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def bits(self) -> int: ...


class View(Protocol):
    """A guest as host code sees it; see machine.unicorn.programs.HostView."""

    base: int
    words: dict[str, int]
    fail: Callable[[BaseException], None]

    @property
    def registers(self) -> Sequence[Where]: ...
    def read(self, index: int) -> int: ...


class RegisterContext:
    """The context of a program at a probe: words of registers, which are read when the program reads them."""

    def __init__(self, registers: Sequence[Where]) -> None:
        self._registers = registers

    def load(self, w: Writer, offset: int, size: int) -> str:
        """Part of a register. The verifier lets none pass that crosses a word."""
        value, inside = self._word(w, offset // 8), offset % 8
        shift = 8 * (8 - inside - size if w.module.target.program_order == "big" else inside)
        if shift > 0:
            value = w.emit(f"lshr i64 {value}, {shift}")
        return value if size == 8 else w.emit(f"and i64 {value}, {(1 << 8 * size) - 1}")

    def address(self, w: Writer) -> str:
        """Memory with all registers, where the program needs it; else nothing looks there."""
        if not w.module.places.escapes:
            return "0"
        at = w.word(("context", 0))
        for n in range(len(self._registers)):
            value = w.swap(self._word(w, n), 64)
            w.do(f"store i64 {value}, ptr {w.pointer(w.emit(f'add i64 {at}, {8 * n}'))}")
        return at

    def _word(self, w: Writer, index: int) -> str:
        if not 0 <= index < len(self._registers) or self._registers[index].way == "none":
            return "0"
        where = self._registers[index]
        if where.way == "pc":
            target = w.emit(f"load i64, ptr {w.pointer(w.word(_PC))}")
            return w.emit(f"and i64 {target}, {~where.place}")
        if where.way == "python":
            function = w.pointer(w.word(("register", 0)))
            return w.emit(f"call i64 {function}(i64 {index})")
        if where.way == "api":
            w.module.need("register", support.REGISTER)
            engine, function = w.word(("uc", 0)), w.word(("uc_reg_read", 0))
            return w.emit(f"call i64 @register(i64 {engine}, i64 {function}, i32 {where.place})")
        base = w.pointer(w.word(("base", 0)))
        at = w.emit(f"getelementptr i8, ptr {base}, i64 {where.place}")
        if where.way == "window":
            at = w.emit(f"getelementptr i8, ptr {w.emit(f'load ptr, ptr {at}')}, i64 {where.index}")
        value = w.emit(f"load i{where.bits}, ptr {at}")
        return value if where.bits == 64 else w.emit(f"zext i{where.bits} {value} to i64")


def compiled(code: Code, view: View) -> HostCode:
    """The program as host code that runs at probes of such machines. Unsupported where it cannot be compiled, or not here."""
    target = Target(order=sys.byteorder, program_order=code.order)
    text, slots = generate(code.instructions, target, Inlined(code.maps, guest=True), RegisterContext(view.registers))
    return HostCode(host.load(native.compiled(text, host.triple())), slots)


class SiteProgram:
    """A program at one probe: what a machine runs at a call site, and what a handler may run anywhere.

    view: the machine's. call: a run, as helpers see it. address: of the probed instruction; None: it runs at returns, where pc is the
    return address.

    Attributes:
        address: of its environment; see machine._base.HostProgram.
    """

    def __init__(self, code: Code, view: View, call: Any, address: int | None, words: Mapping[str, int] | None = None) -> None:
        self._view, self._host = view, compiled(code, view)
        self._pc = ctypes.c_uint64(address or 0)
        self._context = ctypes.create_string_buffer(CONTEXT_SIZE)
        self._register = _REGISTER(self._read_register)
        known: dict[Slot, int] = {
            ("base", 0): view.base, ("context", 0): ctypes.addressof(self._context),
            ("register", 0): ctypes.cast(self._register, ctypes.c_void_p).value or 0,
            _PC: ctypes.addressof(self._pc) if address is not None else view.words["returned_to"],
            **{(name, 0): value for name, value in (*view.words.items(), *(words or {}).items())},
        }
        self._environment = Environment(code, self._host, known, call, view.fail)

    @property
    def address(self) -> int:
        return self._environment.address

    def _read_register(self, index: int) -> int:
        try:
            return self._view.read(index)
        except BaseException as error:
            self._environment.fail(error)
            return 0

    def run(self, pc: int) -> int:
        """Run it from a handler; pc: what the program sees. Its result; raises what a helper raised."""
        at = ctypes.c_uint64.from_address(self._environment[_PC]) if _PC in self._host.slots else self._pc
        at.value = pc
        return self._environment.run(0, 0)
