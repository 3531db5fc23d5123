"""Everything that a machine's files say of its source, by guest address: m.debug."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

from attrs import frozen

from ..arch._base import Arch
from ..arguments import checked
from ..errors import GuestFault, UnknownSymbol
from ..image import LoadedFile
from ..regs import Regs
from ..symbols import Symbols
from .arguments import Passed
from .expression import Place, Surroundings, Unknown, evaluate
from .file import DAMAGE, children
from .markers import Marker, markers_of
from .places import SourceFrame, frames, told
from .registers import register
from .types import CType, Derived
from .units import Function, Units, inlined_in, location, named, spelling, takes_a_word, text, units_of
from .unwind import Frame, Unwinder
from .view import View, load, number

_POINTERS = re.compile(r"\s*(\*|\[\s*(\d+)\s*\])\s*$")


class Machine(Protocol):
    """What this needs of a machine."""

    arch: Arch
    symbols: Symbols

    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


@frozen
class Variable:
    """A parameter or local variable. parameter: which one, from 0; None: a local one."""

    name: str
    type: CType
    parameter: int | None
    die: Any


@frozen
class SourceLine:
    """A line of source code that has code at an address. path: as the compiler saw it."""

    path: str
    line: int
    address: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@checked()
class DebugInfo:
    """DWARF of all files that a machine has loaded. What is not there, or damaged, is None or an UnknownSymbol that
    says so."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self.arch = machine, machine.arch

    @property
    def files(self) -> tuple[LoadedFile, ...]:
        """What is known comes from these."""
        return self._machine.symbols.files

    def _units(self) -> Iterator[tuple[LoadedFile, Units]]:
        for file in self.files:
            try:
                yield file, units_of(file)
            except DAMAGE:
                continue

    # --- types

    def type(self, name: str) -> CType:
        """A type as C writes it: "struct table", "table_t *", "unsigned long", "char [16]". Raises UnknownSymbol."""
        made = _POINTERS.search(name)
        if made is not None:
            return Derived.of(self.type(name[: made.start()]), self._machine.arch, int(made[2]) if made[2] else None)
        found = self._find(name)
        if found is None:
            known = [spelled for _, units in self._units() for spelled in units.types]
            near = difflib.get_close_matches(spelling(name), known, 3)
            hint = (f"did you mean {' or '.join(near)}?" if near
                    else "build the guest with -g, or m.symbols.load() a file that was")
            raise UnknownSymbol("no such type", symbol=name, hint=hint)
        return found

    def _find(self, name: str) -> CType | None:
        wanted = spelling(name)
        if wanted == "void":
            return self._ctype(None)
        for _, units in self._units():
            try:
                die = units.types.get(wanted)
            except DAMAGE:
                continue
            if die is not None:
                return self._ctype(die)
        return None

    def _ctype(self, die: Any) -> CType:
        arch = self._machine.arch
        return CType(die, arch.bits // 8, arch.order.value, self._find)

    def view(self, type: str | CType, address: int) -> View:
        """Guest memory as a type: of a pointer, `address` is what it points at; of anything else, where it is."""
        return View(self._machine, self.type(type) if isinstance(type, str) else type, address)

    # --- functions and their variables

    def function(self, address: int) -> tuple[LoadedFile, Function] | None:
        """The function that has code at an address."""
        for file, units in self._units():
            try:
                found = units.function_at(address - file.bias)
            except DAMAGE:
                continue
            if found is not None:
                return file, found
        return None

    def parameters(self, address: int) -> list[Variable] | None:
        """The parameters of the function at an address, in order; None where nothing is known of it."""
        found = self.function(address)
        return None if found is None else [v for v in self._variables(found[1]) if v.parameter is not None]

    def _variables(self, function: Function) -> Iterator[Variable]:
        todo, count = children(function.die)[::-1], 0
        while todo:
            die = todo.pop()
            tag = str(die.tag).removeprefix("DW_TAG_")
            if tag == "lexical_block":
                todo += children(die)[::-1]
            if tag not in ("formal_parameter", "variable"):
                continue
            origin = named(die)
            try:
                type = self._ctype(origin.get_DIE_from_attribute("DW_AT_type"))
            except DAMAGE:
                continue
            yield Variable(text(origin, "DW_AT_name"), type, count if tag == "formal_parameter" else None, die)
            count += tag == "formal_parameter"

    def locals(self, regs: Regs) -> dict[str, Any]:
        """Parameters and local variables at a hit, by name: numbers and views; None where the compiler has not kept
        one."""
        return {v.name: value for v, value in self._values(regs)}

    def local(self, regs: Regs, name: str) -> Any:
        """One of them. Raises UnknownSymbol: there is none of this name, or nothing is known of the function."""
        names = []
        for variable, value in self._values(regs):
            names.append(variable.name)
            if variable.name == name:
                return value
        raise UnknownSymbol("no such variable here", symbol=name, address=regs.pc,
                            hint=f"there are: {', '.join(names)}" if names else "build the guest with -g")

    @cached_property
    def passed(self) -> Passed:
        """Parameters at functions' entries, for who asks at every call."""
        return Passed(self)

    def _values(self, regs: Regs) -> Iterator[tuple[Variable, Any]]:
        found = self.function(regs.pc)
        if found is None:
            return
        file, function = found
        for variable in self._variables(function):
            try:
                yield variable, self._value(variable, file, function, regs)
            except (Unknown, GuestFault, *DAMAGE):
                yield variable, None

    def _value(self, variable: Variable, file: LoadedFile, function: Function, regs: Regs) -> Any:
        arch = self._machine.arch
        if variable.parameter is not None and self._entered(file, function, regs.pc):
            return self.typed(variable.type, self._passed(variable, function, regs))
        place = self.place(variable, file, function, regs)
        if place.kind == "memory":
            return load(self._machine, variable.type, place.value)
        if place.kind == "register":
            name = register(arch, place.value)
            if name is None:
                raise Unknown
            raw = regs[name]
        else:
            raw = place.value
        return self.typed(variable.type, raw)

    def typed(self, type: CType, raw: int) -> Any:
        """A word of a register or argument as its type has it. Raises Unknown: it is not all of it."""
        raw &= (1 << 8 * max(type.size, 1)) - 1
        if type.kind in ("struct", "union", "array"):
            raise Unknown  # in registers
        return View(self._machine, type, raw) if type.kind == "pointer" else number(type, raw)

    def _entered(self, file: LoadedFile, function: Function, pc: int) -> bool:
        """True at a function's entry, where its variables' places are not those that the file tells."""
        arch = self._machine.arch
        return pc - file.bias - function.start in arch.pointers.code_address(function.start + file.bias,
            self._machine.read).entries

    def _passed(self, variable: Variable, function: Function, regs: Regs) -> int:
        """A parameter as the calling convention passes it."""
        before = [v for v in self._variables(function) if v.parameter is not None
                  and v.parameter <= (variable.parameter or 0)]
        if self._machine.arch.abi is None or not all(takes_a_word(v.type, self._machine.arch) for v in before):
            raise Unknown
        return regs.arg(variable.parameter or 0)

    def place(self, variable: Variable, file: LoadedFile, function: Function, regs: Regs) -> Place:
        """Where a variable is at a hit. Raises Unknown, GuestFault, and what is in DAMAGE."""
        ops = location(variable.die, function, regs.pc - file.bias)
        return evaluate(ops, self._around(file, function, regs))

    def _around(self, file: LoadedFile, function: Function, regs: Regs) -> Surroundings:
        arch = self._machine.arch

        def cfa() -> int:
            row = Unwinder(arch, self._machine.symbols).row(regs.pc)
            if row is None:
                raise Unknown
            return Frame(arch, regs).cfa(row)

        frame = Frame(arch, regs)
        around = Surroundings(register=frame.get, word=regs.word, bits=arch.bits, bias=file.bias, cfa=cfa)

        def frame_base() -> int:
            found = evaluate(location(function.die, function, regs.pc - file.bias, "DW_AT_frame_base"), around)
            return frame.get(found.value) if found.kind == "register" else found.value

        return Surroundings(register=frame.get, word=regs.word, bits=arch.bits, bias=file.bias, cfa=cfa,
                            frame_base=frame_base)

    def names(self, address: int) -> list[str]:
        """The names of what is at an address."""
        found = self.function(address)
        return [] if found is None else [variable.name for variable in self._variables(found[1])]

    def type_of(self, address: int, name: str) -> CType | None:
        """The type of a parameter or variable of the function at an address."""
        found = self.function(address)
        return None if found is None else next((v.type for v in self._variables(found[1]) if v.name == name), None)

    # --- lines

    def line(self, address: int) -> SourceLine | None:
        """The source line of an address, or None."""
        for file, units in self._units():
            try:
                found = units.line_at(address - file.bias)
            except DAMAGE:
                continue
            if found is not None:
                return SourceLine(found.path, found.line, found.start + file.bias)
        return None

    def frames(self, address: int) -> list[SourceFrame]:
        """The functions that an address is part of, innermost first: those inlined there, and that whose code it is.
        Empty where none is known."""
        found, line = self.function(address), self.line(address)
        if found is None:
            return []
        try:
            return frames(found[1], address - found[0].bias, line.path if line else "", line.line if line else 0)
        except DAMAGE:
            return []

    def where(self, address: int) -> str:
        """The source line of an address, and what is inlined there into what: `a.c:12 in f, inlined at a.c:30 in g`; ""
        where no file tells."""
        return told(self.frames(address))

    def lines(self, start: int, end: int) -> list[SourceLine]:
        """The lines that have code in [start, end), by address, each where it begins."""
        out: list[SourceLine] = []
        for file, units in self._units():
            try:
                found = [line for line in units.lines if start <= line.start + file.bias < end and line.line]
            except DAMAGE:
                continue
            out += [SourceLine(line.path, line.line, line.start + file.bias) for line in found]
        return sorted(out, key=lambda line: line.address)

    def markers(self) -> list[Marker]:
        """The static tracepoints of all files, by address."""
        return sorted((marker for file in self.files for marker in markers_of(file)), key=lambda marker: marker.address)

    def inlined(self, name: str) -> list[int]:
        """Addresses where a function's code stands inlined in others."""
        found = []
        for file, units in self._units():
            try:
                found += [file.bias + start for f in units.functions if f.end for start in inlined_in(f.die, name)]
            except DAMAGE:
                continue
        return sorted(found)
