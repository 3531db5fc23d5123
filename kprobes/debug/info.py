"""m.debug: what the debug information of a machine's files says of a guest address or a C name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Protocol

from ..arch._base import Arch, Results
from ..arguments import SORTS, checked, kind_of, look
from ..errors import BadArgument, GuestFault, UnknownSymbol, Unsupported
from ..image import LoadedFile, has_dwarf, is_of_same_build
from ..regs import Regs
from ..symbols import SourceLine, Symbols
from .arguments import EntryArguments
from .calls import TypedCall
from .expression import UnknownValue
from .file import (
    DAMAGE,
    attribute_of,
    byte_of,
    cached,
    flags_of,
    loaded_bytes,
    missing_alternative,
    text,
)
from .inlined import copies_at
from .lines import source_path
from .markers import Marker, markers_of
from .numbers import number, real_of_x87, single_of_double
from .passing import Arrival, FunctionEntry, c_convention, is_by_reference, is_of_btf, result_of
from .places import SourceFrame, frames, told
from .placing import ParameterPart
from .prototypes import FunctionConvention, Prototype, parse_prototype
from .registers import facts, register
from .scopes import (
    FrameVariables,
    Variable,
    enclosing,
    entries,
    hosts_of,
    left_out,
    variables_of,
)
from .signatures import type_entry
from .sources import (
    SourcePlace,
    copies,
    first_line,
    has_lines,
    labels,
    line_places,
    line_statements,
    lines_near,
    units_of_source,
)
from .types import CType, Derived
from .units import (
    Function,
    Units,
    location,
    named,
    scopes_of,
    spelling,
    static_address,
    units_of,
)
from .unwind import Unwinder
from .view import Held, View, load

_COMPARED = 64  #: definitions of a name that are compared
_LARGEST_SOURCE = 1 << 24  #: bytes of a source file that is read
_WHOLE = (
    "struct",
    "union",
    "array",
    "function",
    "void",
    "other",
)  #: kinds of types that are no numbers
_TAGS = {
    "DW_TAG_structure_type": "struct ",
    "DW_TAG_class_type": "struct ",
    "DW_TAG_union_type": "union ",
    "DW_TAG_enumeration_type": "enum ",
}
_DIMENSIONS = re.compile(r"(\s*\[\s*\d+\s*\])+\s*$")  #: of an array


class DebuggedMachine(Protocol):
    """The part of a machine that debug information needs: guest memory, symbols, architecture."""

    arch: Arch
    symbols: Symbols

    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


_TAGGED = ("struct ", "union ", "enum ")  #: what C writes before names that it has given


@checked()
class DebugInfo:
    """The debug information (DWARF, BTF) of all files that a machine has loaded.

    Where something is not described, or damaged, a method returns None or raises an UnknownSymbol
    that says so. Addresses are the guest's unless a docstring says "link address", which is one in
    the file, without the bias by which it is loaded.

    Args:
        machine: whose files and memory are read.
    """

    def __init__(self, machine: DebuggedMachine) -> None:
        self._machine, self.arch = machine, machine.arch
        #: (`prototype` as typed_call() takes it, address) of a function that was called -> types
        self._prototypes: dict[tuple[str | Literal[True], int], Prototype] = {}
        #: (Symbols.changes, Symbols.files) when `_prototypes` were read
        self._prototypes_of: tuple[int, tuple[LoadedFile, ...]] = (-1, ())

    @property
    def files(self) -> tuple[LoadedFile, ...]:
        """The files that debug information comes from."""
        return self._machine.symbols.files

    def _units(self) -> Iterator[tuple[LoadedFile, Units]]:
        """Yield (file, its units of debug information) of each loaded file. Damaged files are left
        out, and files whose separate debug file is loaded as well; a file without debug information
        has empty units.
        """
        for file in self.files:
            if len(self.files) > 1 and self._has_loaded_separate(file):
                continue
            try:
                yield file, units_of(file, self._machine.symbols, self.arch.bits)
            except DAMAGE:
                continue

    def _units_of_types(self) -> Iterator[Units]:
        """Yield the units of debug information of each loaded file, as _units(), each followed by
        those of the file's alternative file (dwz -m), if there is one.
        """
        for _, units in self._units():
            yield units
            if units.alternative is not None:
                yield units.alternative

    def lacking(self) -> str:
        """Return a clause that names a file to which dwz -m has moved a part of the debug
        information, and which is not here; "": nothing is missing.
        """
        for file in self.files:
            if missing := missing_alternative(file):
                name = file.path or file.module or "the file"
                return (
                    f"a part of the debug information of {name} is in {missing}, which is not here"
                )
        return ""

    def _has_loaded_separate(self, file: LoadedFile) -> bool:
        """Whether a file lacks debug information, and the separate file that has it is loaded as
        well. The answer is kept in the file's cache until the number of files changes.
        """
        key = "loaded separate", len(self.files)
        if key[0] not in file.cache or file.cache[key[0]][0] != key[1]:
            found = not has_dwarf(file.data) and any(
                other is not file
                and other.bias == file.bias
                and has_dwarf(other.data)
                and is_of_same_build(file.data, other.data)
                for other in self.files
            )
            file.cache[key[0]] = key[1], found
        return bool(file.cache[key[0]][1])

    # --- types

    def type(self, name: str) -> CType:
        """Return a type by its name in C or C++: "struct table", "char [16]", "geo::Table *".

        Raises:
            UnknownSymbol: no file has it, or a file has several that differ.
        """
        rows = _DIMENSIONS.search(name)
        if rows is not None:
            return Derived.array(
                self.type(name[: rows.start()]), tuple(map(int, re.findall(r"\d+", rows[0])))
            )
        if name.rstrip().endswith("*"):
            return Derived.of(self.type(name.rstrip()[:-1]), self._machine.arch, None)
        found = self._find(name)
        if found is None:
            known = self.type_names()
            import difflib  # errors alone want it

            near = difflib.get_close_matches(spelling(name), known, 3)
            hint = (
                self.lacking()
                or self._damage()
                or "build the guest with -g, or m.symbols.load() a file that was"
            )
            if near:
                hint = f"did you mean {' or '.join(near)}?"
            raise UnknownSymbol("no such type", symbol=name, hint=hint)
        return found

    def _damage(self) -> str:
        """Return what is damaged of the files' debug information, as a clause that names the file
        and the section; "": nothing is known to be.
        """
        from .damage import damaged_section  # errors alone want it

        for file in self.files:
            if section := damaged_section(file):
                name = file.path or file.module or "the file"
                return f"the debug information of {name} is damaged: section {section}"
        return ""

    def type_names(self, prefix: str = "") -> list[str]:
        """Return the names of types that begin so, each once, as C spells them: "enum kind".

        Args:
            prefix: what they begin with.
        """
        found = (name for units in self._units_of_types() for name in units.type_names)
        return list(dict.fromkeys(name for name in found if name.startswith(prefix)))

    def _find(self, name: str) -> CType | None:
        """Return the type of a name in C: "table", "struct table"; no pointer or array.

        Without "struct", "union" or "enum" the name may be of any of these. Types within functions
        are looked for last.

        Returns:
            The type; None: no file has it.

        Raises:
            UnknownSymbol: a file has several that differ.
        """
        wanted = spelling(name)
        if wanted == "void":
            return self._ctype(None)
        # C++ and Rust need not say what kind of type it is
        tags = ("",) if wanted.startswith(_TAGGED) else ("", *_TAGGED)
        for entries_of in (Units.types, Units.local_types):  # the latter reads everything
            for tag in tags:
                found = self._spelled(tag + wanted, name, entries_of)
                if found is not None:
                    return found
        return None

    def _spelled(
        self, wanted: str, name: str, entries_of: Callable[[Units, str], list[Any]]
    ) -> CType | None:
        """Return the type of a spelling, from the first file that has it; damaged files are passed
        over.

        Args:
            wanted: the spelling, as spelling() gives it: "struct table".
            name: as the caller wrote it, for the error.
            entries_of: (units of a file, spelling) -> the entries that define it there.

        Returns:
            The type; None: no file has it.

        Raises:
            UnknownSymbol: a file has several that differ (of the first _COMPARED).
        """
        for units in self._units_of_types():
            try:
                found = [self._ctype(die) for die in entries_of(units, wanted)]
                shapes = {_shape(type) for type in found[:_COMPARED]} if len(found) > 1 else set()
            except DAMAGE:
                continue
            if len(shapes) > 1:
                lines = sorted({each.die_line for each in found})
                raise UnknownSymbol(
                    "several types of this name differ",
                    symbol=name,
                    hint=f"they are declared at lines {', '.join(map(str, lines[:8]))}; write "
                    "a C++ "
                    "type with its namespace, or view memory by a type that has it as member",
                )
            if found:
                return found[0]
        return None

    def _ctype(self, die: Any) -> CType:
        """Return the type that an entry of debug information defines; void for None."""
        arch = self._machine.arch
        return CType(die, arch.bits // 8, arch.order.value, self._definition)

    def _definition(self, die: Any) -> CType | None:
        """Return the definition of a type that an entry only declares, found by its name in all
        files.

        Returns:
            The type; None: no file defines it, or definitions differ.
        """
        try:
            return self._find(
                f"{_TAGS.get(str(die.tag), '')}{scopes_of(die)}{text(die, 'DW_AT_name')}"
            )
        except UnknownSymbol:
            return None

    def variable(self, name: str) -> tuple[int, CType] | None:
        """Return the (address, type) of a global variable.

        Returns:
            None: no file describes it, or it has no fixed address in memory.
        """
        for file, units in self._units():
            try:
                for die in units.variables(name):
                    address = static_address(die)
                    if address is not None:
                        typed = die if "DW_AT_type" in die.attributes else named(die)
                        return address + file.bias, self._ctype(type_entry(typed))
            except DAMAGE:
                continue
        return None

    def view(self, type: str | CType, address: int) -> View:
        """Return a View of guest memory as a type.

        Args:
            type: the type, or its name.
            address: of a pointer, what it points at; of anything else, where it is.

        Raises:
            UnknownSymbol: no file has a type of this name, or several that differ.
        """
        return View(self._machine, self.type(type) if isinstance(type, str) else type, address)

    # --- functions and their variables

    def function(self, address: int) -> tuple[LoadedFile, Function] | None:
        """Return the (file, function) that has code at an address; None: no debug information has
        one.
        """
        for file, units in self._units():
            try:
                found = units.function_at(address - file.bias)
            except DAMAGE:
                continue
            if found is not None:
                return file, found
        return None

    def parameters(self, address: int) -> list[Variable] | None:
        """Return the parameters of the function at an address, in order; None: no function is
        there.
        """
        found = self.function(address)
        return None if found is None else self._parameters(*found, address)

    def _parameters(self, file: LoadedFile, function: Function, address: int) -> list[Variable]:
        """Return a function's own parameters in order: names, types and indices.

        Damaged ones are left out, and those of functions that are inlined in it. Indices count all.
        A parameter that a variable of the same name hides at `address` is one of them.

        Args:
            file: has the function.
            function: the function.
            address: any guest address in the function; all give the same parameters.
        """
        found = dict[int, Variable]()
        for die, origin, parameter in entries(function, address - file.bias, True):
            if parameter is not None and parameter not in found:
                variable = self._variable(die, origin, parameter)
                if variable is not None:
                    found[parameter] = variable
        return [found[number] for number in sorted(found)]

    def _variables(self, function: Function, address: int, own: bool = False) -> Iterator[Variable]:
        """Yield the parameters and variables in scope at an address.

        Of several with the same name only the innermost; damaged ones are left out.

        Args:
            function: the function that has the address.
            address: as the file was linked, without its bias.
            own: True: leave out those of functions that are inlined at the address.
        """
        seen = set()
        for die, origin, parameter in entries(function, address, own):
            variable = self._variable(die, origin, parameter)
            if variable is not None and (variable.name not in seen or not variable.name):
                seen.add(variable.name)
                yield variable

    def _variable(self, die: Any, origin: Any, parameter: int | None) -> Variable | None:
        """Return the Variable of an entry; None: its type is damaged.

        Args:
            die: the variable's entry.
            origin: the entry with its name and type.
            parameter: its index among the parameters; None: it is none.
        """
        # a copy's array may have bounds of its own
        typed = die if "DW_AT_type" in die.attributes else origin
        try:
            type = self._ctype(type_entry(typed))
        except DAMAGE:
            return None
        return Variable(text(origin, "DW_AT_name"), type, parameter, die, origin)

    def arrivals(self, address: int) -> list[tuple[Variable, Arrival]]:
        """Return (parameter, where the caller puts it) of each parameter of a function, in order.

        Args:
            address: guest address of the function's entry.

        Returns:
            [] where no function is known at the address, or it has no parameters.
        """
        entry = self._entry(address)
        return [] if entry is None else entry.arrivals()

    def _entry(self, address: int) -> FunctionEntry | None:
        """Return what tells where a function's parameters and result are; None: it is not known.

        Args:
            address: guest address of the function's entry.
        """
        found = self.function(address)
        if found is None:
            return None
        file, function = found
        symbol = self._machine.symbols.covering(function.start + file.bias)
        return FunctionEntry(
            self.arch,
            function,
            address - file.bias,
            self._parameters(file, function, address),
            self._ctype,
            symbol.name if symbol is not None else "",
            self._way_of(file),
            self._results_of(file),
        )

    def _way_of(self, file: LoadedFile) -> str:
        """Return how a file says that its functions get floating-point numbers, as RealFlags.ways
        has it; "": it does not.
        """
        for known in facts(self.arch).real_flags:
            if known.attribute is not None:
                flags = attribute_of(file, known.attribute)
            elif known.section:
                flags = byte_of(file, known.section, known.at)
            else:
                flags = flags_of(file)
            way = "" if flags is None else known.ways.get(flags & known.mask, "")
            if way:
                return way
        return ""

    def typed_call(
        self, arguments: Sequence[Any], prototype: str | Literal[True], entry: int
    ) -> TypedCall:
        """Prepare a call of a function by its types.

        Args:
            arguments: values of the kinds that TypedCall takes.
            prototype: the types, as C writes them; True: those of debug information.
            entry: address of the function, without mode bits.

        Raises:
            BadArgument: the types are not known, `prototype` is no prototype, or the arguments are
                not of these types.
            Unsupported: how the architecture, or the file, passes a type is not known; or the
                compiler has removed parameters, or debug information is damaged.
        """
        symbols = self._machine.symbols
        if self._prototypes_of != (symbols.changes, symbols.files):
            self._prototypes.clear()
            self._prototypes_of = symbols.changes, symbols.files
        if prototype is not True:
            look("prototype", prototype, SORTS["str"])
        types = self._prototypes.get((prototype, entry))
        if types is None:
            types = self._prototype_at(arguments, prototype, entry)
            self._prototypes[prototype, entry] = types
        return TypedCall(self, self._machine, types, arguments)

    def _prototype_at(
        self, arguments: Sequence[Any], prototype: str | Literal[True], entry: int
    ) -> Prototype:
        """Return the types of a function, for typed_call().

        Args:
            arguments: of the call; an error names one that needs types.
            prototype: the types, as C writes them; True: those of debug information.
            entry: address of the function, without mode bits.

        Raises:
            BadArgument: the types are not known, or `prototype` is no prototype.
            Unsupported: the compiler has removed parameters, or debug information is damaged.
        """
        if prototype is not True:
            return parse_prototype(
                prototype, self.arch, self.type, partial(self._convention_at, entry)
            )
        function = self._entry(entry)
        if function is None:
            plain = (int, bytes, bytearray, memoryview)
            odd = [
                (n, one)
                for n, one in enumerate(arguments, 1)
                if one is not None and not isinstance(one, plain)
            ]
            why = f"argument {odd[0][0]} is {kind_of(odd[0][1])}, and " if odd else ""
            raise BadArgument(
                f"{why}the function's types are not known",
                hint='say them, as in prototype="double f(double, int)"; debug information '
                "also does",
            )
        try:
            return function.prototype()
        except DAMAGE:
            raise Unsupported(
                "the debug information of the function's types is damaged",
                hint="prototype= says them",
            ) from None

    def _convention_at(self, address: int, variadic: bool) -> FunctionConvention:
        """Return how a C function is called, as far as its file says that.

        Where the function's file is not known, all loaded files have to agree. Where no file is
        loaded, functions get floating-point numbers in registers.

        Args:
            address: of the function.
            variadic: True for a function with `...`.
        """
        symbol = self._machine.symbols.covering(address)
        files = [file for file in self.files if symbol and file.module == symbol.module]
        ways = {self._way_of(file) for file in files or self.files} - {""}
        if not self.files:
            possible = [way for each in facts(self.arch).real_flags for way in each.ways.values()]
            ways = {"registers"}.intersection(possible)
        abi = self.arch.abi
        results = None if abi is None else abi.results
        if len(files) == 1:
            results = self._results_of(files[0])
        way = ways.pop() if len(ways) == 1 else ""
        return c_convention(self.arch, way, results, is_by_reference, variadic)

    def _results_of(self, file: LoadedFile) -> Results | None:
        """Return where functions of a file return structures; None: not known.

        Where it depends on how the file was compiled, a tag of .gnu.attributes says it.
        """
        abi = self.arch.abi
        said = facts(self.arch).result_flags
        told = None if said is None else said.ways.get(attribute_of(file, said.attribute) or 0)
        if told is not None:
            return told
        return None if abi is None else abi.results

    def cfa(self, address: int) -> tuple[str, int] | None:
        """Return how the canonical frame address (CFA) is computed at an instruction.

        Args:
            address: of the instruction.

        Returns:
            (name of a register, bytes to add to its value); None: it is computed otherwise, or not
            known.
        """
        row = Unwinder(self.arch, self._machine.symbols).row(address)
        name = (
            register(self.arch, row.cfa.reg) if row is not None and row.cfa.expr is None else None
        )
        return None if row is None or name is None else (name, row.cfa.offset)

    def result(self, address: int) -> CType | None:
        """Return the type of a function's result.

        Args:
            address: any in the function.

        Returns:
            The type, of kind "void" for a function without result; None: nothing is known of the
            function.
        """
        found = self.function(address)
        if found is None:
            return None
        try:
            return result_of(found[1], self._ctype)
        except DAMAGE:
            return None

    def result_arrival(self, address: int) -> Arrival | None:
        """Return where the result of the function at an address is when it returns.

        Args:
            address: of the function's entry. Its result takes more than a word, or is no integer.

        Returns:
            An Arrival of kind "parts": registers, or memory whose address a register has or had at
            the entry. "refused": the language, the architecture or the type is not understood, the
            type has no bytes, or debug information is damaged. None: nothing is known of the
            function.
        """
        entry = self._entry(address)
        return None if entry is None else entry.result()

    def result_changed(self, address: int) -> str:
        """Return why the function at an address may not return its result as others do.

        Args:
            address: of the function's entry.

        Returns:
            A clause; "": it does, or nothing is known of the function.
        """
        entry = self._entry(address)
        return "" if entry is None else entry.result_changed()

    def arrived(self, variable: Variable, arrival: Arrival, regs: Regs) -> Any:
        """Read a parameter's value at its function's entry.

        Args:
            variable: the parameter.
            arrival: where the caller puts it, from arrivals().
            regs: the registers at the entry.

        Returns:
            A number or a View; None: the compiler has not kept it, memory cannot be read, or its
            type or debug information is not understood.
        """
        try:
            return self._arrived_at(variable, arrival, regs)
        except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
            return None

    def in_parts(self, type: CType, parts: Sequence[ParameterPart], regs: Regs) -> Any:
        """Read a value from the registers or stack in which the calling convention passes it.

        Args:
            type: of the value.
            parts: where the parts of it are.
            regs: the registers, at the function's entry or, for a result, at its return.

        Returns:
            A number, or a View.

        Raises:
            GuestFault: its memory is not mapped.
            UnknownValue: it is of a type that no register holds.
        """
        return self._in_parts(type, parts, regs)

    def locals(self, regs: Regs) -> dict[str, Any]:
        """Return the values of all parameters and local variables in scope at a hit.

        Args:
            regs: the registers, at an instruction of the function.

        Returns:
            name -> number or View; None as a value: the compiler has not kept it, or it is
            unreadable.
        """
        return {v.name: value for v, value in self._values(regs)}

    def local(self, regs: Regs, name: str) -> Any:
        """Return the value of one variable in scope at a hit.

        Args:
            regs: the registers, at an instruction of the function.
            name: of the variable.

        Returns:
            A number or View; None: the compiler has not kept it there, or it cannot be read.

        Raises:
            UnknownSymbol: no variable of this name is in scope, or nothing is known of the
                function.
        """
        names = []
        for variable, value in self._values(regs):
            names.append(variable.name)
            if variable.name == name:
                return value
        raise UnknownSymbol(
            "no such variable here",
            symbol=name,
            address=regs.pc,
            hint=f"there are: {', '.join(names)}" if names else "build the guest with -g",
        )

    @cached_property
    def passed(self) -> EntryArguments:
        """Reads parameters at functions' entries; remembers where they are, for callers that ask
        often.
        """
        return EntryArguments(self, self._arrived_at)

    def _values(self, regs: Regs) -> Iterator[tuple[Variable, Any]]:
        """Yield (variable, value) of each parameter and variable in scope at a hit.

        Variables of functions that are inlined at pc, and of the functions in which a nested
        function stands, are in scope as well. At a function's entry its parameters are read from
        where the caller has put them; all others are read as anywhere else. A value is None where
        the compiler keeps no value at this instruction, or where the value cannot be read.

        Args:
            regs: the registers at the hit. Nothing is yielded where no function is known at pc.
        """
        found = self.function(regs.pc)
        if found is None:
            return
        file, function = found
        there = self._variables_at(file, function, regs)
        entered = self._entered(file, function, regs.pc)
        ways = {v.name: way for v, way in self.arrivals(regs.pc)} if entered else {}
        seen = set()
        for variable in self._variables(function, regs.pc - file.bias, own=entered):
            seen.add(variable.name)
            try:
                if variable.name in ways and variable.parameter is not None:
                    yield variable, self._arrived(variable, ways[variable.name], there, regs)
                else:
                    yield variable, self._value(variable, there)
            except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
                yield variable, None
        if entered:  # where a function that stands inlined begins there, too
            yield from self._inlined_at_entry(function, regs.pc - file.bias, seen, there)
        if enclosing(function) is not None:
            yield from self._of_hosts(there, seen, entered)

    def _of_hosts(
        self, there: FrameVariables, seen: set[str], entered: bool
    ) -> Iterator[tuple[Variable, Any]]:
        """Yield (variable, value) of the functions in which a nested function stands.

        Variables of their blocks are left out. The value is None where it cannot be read. Nothing
        more is yielded from the first function on whose frame cannot be found.

        Args:
            there: reads the nested function's variables.
            seen: names of variables that hide others; those that are found are added.
            entered: True: the nested function has not made its frame.
        """
        while True:
            try:
                host = there.host(entered)
            except (UnknownValue, GuestFault, *DAMAGE):
                return
            if host is None:
                return
            there, entered = host, False
            for die in there.outermost():
                variable = self._variable(die, named(die), None)
                if variable is None or variable.name in seen:
                    continue
                seen.add(variable.name)
                try:
                    yield variable, self._value(variable, there)
                except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
                    yield variable, None

    def _inlined_at_entry(
        self, function: Function, address: int, seen: set[str], there: FrameVariables
    ) -> Iterator[tuple[Variable, Any]]:
        """Yield (variable, value) of functions whose inlined code begins at another function's
        entry.

        Args:
            function: the function that is entered.
            address: link address of its entry.
            seen: names of its own variables; inlined ones of the same names are left out.
            there: finds and reads variables at this hit.
        """
        for variable in self._variables(function, address):
            if variable.name not in seen:
                try:
                    yield variable, self._value(variable, there)
                except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
                    yield variable, None

    def _variables_at(self, file: LoadedFile, function: Function, regs: Regs) -> FrameVariables:
        """Return the object that finds and reads the variables of a function at this hit."""
        return FrameVariables(self.arch, self._machine.symbols, self.function, file, function, regs)

    def _arrived_at(self, variable: Variable, arrival: Arrival, regs: Regs) -> Any:
        """Read a parameter's value at its function's entry, which regs.pc is.

        Args:
            variable: the parameter.
            arrival: where the caller puts it.
            regs: the registers at the entry.

        Raises:
            UnknownValue: it is not kept.
            GuestFault: its memory is not mapped.
            Unsupported: its type is not understood.
            errors in DAMAGE: the debug information is damaged.
        """
        found = self.function(regs.pc)
        if found is None:
            raise UnknownValue
        return self._arrived(variable, arrival, self._variables_at(*found, regs), regs)

    def _arrived(
        self, variable: Variable, arrival: Arrival, there: FrameVariables, regs: Regs
    ) -> Any:
        """Read a parameter's value at its function's entry, from where the caller has put it.

        Args:
            variable: the parameter.
            arrival: where the caller has put the value.
            there: reads the parameter where the parameter's own location expression has to say
                where the value is: `arrival.kind` is "frame" or "place".
            regs: the registers at the entry.

        Returns:
            A number, or a View.

        Raises:
            UnknownValue: the value is not kept, or `arrival.kind` is "refused".
            GuestFault: the value's memory is not mapped.
            Unsupported: the parameter's type is not understood.
            errors in DAMAGE: the debug information is damaged.
        """
        if arrival.kind == "refused":
            raise UnknownValue
        if arrival.kind == "argument":
            return self.typed(variable.type, regs.arg(arrival.number))
        if arrival.kind == "register":
            return self.typed(variable.type, regs[arrival.name])
        if arrival.kind == "value":
            return self.typed(variable.type, arrival.number)
        if arrival.kind == "parts":
            return self._in_parts(variable.type, arrival.parts, regs)
        return self._value(variable, there)

    def _in_parts(self, type: CType, parts: Sequence[ParameterPart], regs: Regs) -> Any:
        """Do the work of in_parts(): read a value in registers and on the stack, or at one place.

        Args:
            type: of the value.
            parts: where the parts of it are: in registers or on the stack, or a single one at an
                address that is passed.
            regs: the registers, at the function's entry or, for a result, at its return.

        Returns:
            A number, or a View: of guest memory, or of a copy of the bytes where some are in
            registers.

        Raises:
            GuestFault: its memory is not mapped.
            UnknownValue: it is of a type that no register holds.
            Unsupported: the format of the type's numbers is not known.
        """
        first = parts[0]
        if first.kind == "stack" and len(parts) == 1:
            return load(self._machine, type, regs.sp + first.offset)
        if first.kind == "behind":
            return load(
                self._machine,
                type,
                regs[first.name] if first.name else regs.word(regs.sp + first.offset),
            )
        order: Any = self.arch.order.value
        data = b""
        for part in parts:
            if part.kind == "stack":
                data += self._machine.read(regs.sp + part.offset, part.size)
            elif part.kind == "single":
                data += single_of_double(regs[part.name]).to_bytes(part.size, order)
            elif part.kind == "x87":
                data += real_of_x87(regs[part.name], part.size).to_bytes(part.size, order)
            else:
                held = regs[part.name] >> 8 * part.offset & (1 << 8 * part.size) - 1
                data += held.to_bytes(part.size, order)
        data = data.ljust(type.size, b"\0")  # a long double has bytes that no register has
        return (
            self._held(type, data)
            if type.kind in _WHOLE
            else self.typed(type, int.from_bytes(data, order))
        )

    def _value(self, variable: Variable, there: FrameVariables) -> Any:
        """Read a variable where its debug information says that it is: a constant, memory,
        registers, or the symbol of an extern declaration.

        Args:
            variable: the variable.
            there: finds its place at this hit, and reads it.

        Returns:
            A number, or a View.

        Raises:
            UnknownValue: the compiler has not kept it, or the bounds of its type are not known.
            GuestFault: its memory is not mapped.
            Unsupported: the format of the type's numbers is not known.
            errors in DAMAGE: the debug information is damaged.
        """
        type = there.sized(variable.type)
        if not type.bounded:
            raise UnknownValue
        constant = variable.die.attributes.get("DW_AT_const_value")
        if constant is not None:
            return self._constant(type, constant.value)
        if (
            "DW_AT_location" not in variable.die.attributes
            and "DW_AT_declaration" in variable.origin.attributes
        ):
            return self._declared(variable, type)
        place = there.place(variable.die)
        if place.kind == "memory":
            return load(self._machine, type, place.value)
        if type.kind in _WHOLE:
            return self._held(type, *there.contents(place, type.size))
        return self.typed(type, there.raw(place, type.size))

    def _constant(self, type: CType, value: Any) -> Any:
        """Return the value of a variable that the compiler has replaced by a constant.

        Args:
            type: of the variable.
            value: DW_AT_const_value: a number, or the bytes that memory would have.

        Returns:
            A number; of a structure or array a View of the bytes.

        Raises:
            UnknownValue: there are more bytes than the type has, or fewer; or a number for a
                structure or array.
            Unsupported: the format of the type's numbers is not known.
        """
        if not isinstance(value, list | bytes):
            return self.typed(type, int(value))
        data = bytes(value)
        if len(data) != type.size:
            raise UnknownValue
        if type.kind in _WHOLE:
            return self._held(type, data)
        return self.typed(type, int.from_bytes(data, type.order))  # type: ignore[arg-type]

    def _declared(self, variable: Variable, type: CType) -> Any:
        """Read a global variable that a block declares as extern, at its symbol's address.

        Args:
            variable: the declaration.
            type: its type.

        Returns:
            A number, or a View.

        Raises:
            UnknownValue: there is no symbol of its name.
            GuestFault: its memory is not mapped.
        """
        symbol = self._machine.symbols.find(
            text(variable.origin, "DW_AT_linkage_name") or variable.name
        )
        if symbol is None:
            raise UnknownValue
        return load(self._machine, type, symbol.address)

    def _held(self, type: CType, data: bytes, known: bytes | None = None) -> View:
        """Return a View of a structure or array that is in no memory: it is in registers, or
        constant.

        Args:
            type: of the value.
            data: its bytes, as memory would have them.
            known: a byte for each of them: 0 where the compiler has not kept it; None: all are
                kept.

        Raises:
            UnknownValue: the type is no structure, union or array, or nothing is kept.
        """
        if type.kind not in ("struct", "union", "array"):
            raise UnknownValue
        if known is not None and 1 not in known:
            raise UnknownValue
        return View(Held(self._machine, data, known), type, 0)

    def typed(self, type: CType, raw: int) -> Any:
        """Interpret a word, from a register or argument, as a value of a type.

        Args:
            type: the type.
            raw: the word; bits beyond the type's size are ignored.

        Returns:
            A number, or a View of a pointer.

        Raises:
            UnknownValue: the type is a structure, array or another that no word holds.
            Unsupported: the format of the type's numbers is not known.
        """
        if type.kind in _WHOLE:
            raise UnknownValue
        raw &= (1 << 8 * max(type.size, 1)) - 1
        return (
            View(self._machine, type, raw)
            if type.kind == "pointer"
            else number(type, raw, self.arch)
        )

    def _entered(self, file: LoadedFile, function: Function, pc: int) -> bool:
        """Whether an address is a function's entry, where its frame is not set up yet.

        A function may have a second entry behind its first instructions. A breakpoint may stand on
        those in memory: the file says what they are.

        Args:
            file: has the function.
            function: the function.
            pc: guest address.
        """
        code_address = self._machine.arch.pointers.code_address
        start = function.start + file.bias
        if pc - start in code_address(start, self._machine.read).entries:
            return True

        def read_file(address: int, size: int) -> bytes:
            found = loaded_bytes(file, address - file.bias, size)
            if not found:
                raise GuestFault("the file has nothing there", address=address)
            return found

        try:
            entry = cached(
                file, f"entry {function.start:#x}", lambda: code_address(start, read_file)
            )
        except DAMAGE:
            return False
        return pc - start in entry.entries

    def names(self, address: int) -> list[str]:
        """Return the names of the variables in scope at a guest address; [] where no function is
        known. Variables of functions inlined there are among them, those of functions in which a
        nested function stands are not.
        """
        found = self.function(address)
        if found is None:
            return []
        return [variable.name for variable in self._variables(found[1], address - found[0].bias)]

    def has_only_prototype(self, address: int) -> bool:
        """Return True where BTF tells a function's parameters, and nothing tells where they are
        behind its entry.

        Args:
            address: guest address in the function.
        """
        found = self.function(address)
        return found is not None and is_of_btf(found[1])

    def type_of(self, address: int, name: str) -> CType | None:
        """Return the type of a variable in scope at an address, also of one of the functions in
        which a nested function stands; None: there is none of this name.

        Args:
            address: in the function.
            name: of the variable.
        """
        found = self.function(address)
        if found is None:
            return None
        for variable in self._variables(found[1], address - found[0].bias):
            if variable.name == name:
                return variable.type
        return self._outer_type(address, name)

    def is_kept(self, address: int, name: str) -> bool:
        """Return False for a variable of which the compiler keeps no value at an instruction.

        gdb says `<optimized out>` of it. True also where there is no such variable, and where only
        a hit can tell.

        Args:
            address: of the instruction.
            name: of a parameter or variable in scope there.
        """
        found = self.function(address)
        if found is None:
            return True
        file, function = found
        link_address = address - file.bias
        variables = self._variables(function, link_address)
        variable = next((each for each in variables if each.name == name), None)
        return variable is None or self._is_kept(variable, function, link_address)

    @staticmethod
    def _is_kept(variable: Variable, function: Function, link_address: int) -> bool:
        """Return False where the compiler keeps no value of a variable at an instruction.

        Args:
            variable: of the function.
            function: the function.
            link_address: of the instruction.
        """
        if "DW_AT_const_value" in variable.die.attributes:
            return True
        if "DW_AT_location" not in variable.die.attributes:
            return "DW_AT_declaration" in variable.origin.attributes
        try:
            return bool(location(variable.die, function, link_address))
        except UnknownValue:
            return False
        except DAMAGE:
            return True

    def variables_of_copies(self, address: int, name: str) -> list[tuple[Variable, bool]]:
        """Return (variable, whether the compiler keeps its value there) of each parameter and
        variable of the inlined copies of a function that begin at an address.

        A copy may have no code of its own there, so that its variables are not among those in
        scope at the address: what it computes is mixed with the code around.

        Args:
            address: guest address.
            name: of the inlined function, in C++ perhaps with scopes.
        """
        found = self.function(address)
        if found is None:
            return []
        file, function = found
        link_address = address - file.bias
        variables = []
        try:
            for copy in copies_at(function, link_address, name):
                dies = [(die, named(die)) for die in variables_of(copy)]
                dies += [(die, die) for die in left_out(copy)]
                variables += [self._variable(die, origin, None) for die, origin in dies]
        except DAMAGE:
            return []
        return [
            (each, self._is_kept(each, function, link_address))
            for each in variables
            if each is not None
        ]

    def value_at(self, variable: Variable, regs: Regs) -> Any:
        """Return the value of a variable at a hit; None: it is not kept, or cannot be read.

        Args:
            variable: of the function at pc, or of a copy that is inlined there.
            regs: the registers at the hit.
        """
        found = self.function(regs.pc)
        if found is None:
            return None
        try:
            return self._value(variable, self._variables_at(*found, regs))
        except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
            return None

    def _outer_type(self, address: int, name: str) -> CType | None:
        """Return the type of a variable of the functions in which a nested function stands.

        Args:
            address: in the nested function.
            name: of the variable.

        Returns:
            None: the function is not nested, or there is none of this name.
        """
        found = self.function(address)
        for host in () if found is None else hosts_of(found[1]):
            for die in variables_of(host):
                variable = self._variable(die, named(die), None)
                if variable is not None and variable.name == name:
                    return variable.type
        return None

    # --- lines

    def line(self, address: int) -> SourceLine | None:
        """Return the source line whose code an address is in; None: no line is known."""
        for file, units in self._units():
            try:
                found = units.line_at(address - file.bias)
            except DAMAGE:
                continue
            if found is not None:
                return SourceLine(found.path, found.line, found.start + file.bias)
        return None

    def frames(self, address: int) -> list[SourceFrame]:
        """Return the source frames of an address: inlined functions, then the function itself.

        Args:
            address: of an instruction.

        Returns:
            The frames, innermost first; [] where no function is known.
        """
        found, line = self.function(address), self.line(address)
        if found is None:
            return []
        try:
            return frames(
                found[1],
                address - found[0].bias,
                line.path if line else "",
                line.line if line else 0,
            )
        except DAMAGE:
            return []

    def where(self, address: int) -> str:
        """Return the source line of an address as text, with the functions that are inlined there.

        Args:
            address: of an instruction.

        Returns:
            `a.c:12 in f, inlined at a.c:30 in g`; "" where no line is known.
        """
        return told(self.frames(address))

    def lines(self, start: int, end: int) -> list[SourceLine]:
        """Return the source lines with code in a range, by address, each where its code begins.

        Args:
            start: guest address of the range's first byte.
            end: guest address behind the range.
        """
        out: list[SourceLine] = []
        for file, units in self._units():
            try:
                found = [
                    line for line in units.lines_in(start - file.bias, end - file.bias) if line.line
                ]
            except DAMAGE:
                continue
            out += [SourceLine(line.path, line.line, line.start + file.bias) for line in found]
        return sorted(out, key=lambda line: line.address)

    # --- places in the source

    def at_line(self, path: str, line: int) -> list[SourcePlace]:
        """Return where the code of a source line is: a place in each function and inlined copy.

        Args:
            path: the file's name, or the end of its path.
            line: its number.

        Returns:
            The places, one file after the other, by address in each.

        Raises:
            UnknownSymbol: the line has no code, or no source file has this name.
        """
        found: list[SourcePlace] = []
        near: list[int] | None = None
        for file, units in self._units():
            try:
                places = line_places(units, path, line)
                found += [place.moved(file.bias) for place in places]
                near = lines_near(units, path, line) if near is None and not places else near
            except DAMAGE:
                continue
        if not found:
            hint = (
                "build the guest with -g"
                if near is None
                else f"there is code at line {' and '.join(map(str, near))}"
            )
            raise UnknownSymbol(
                "no code is of this line" if near else "no source file has this name",
                symbol=f"{path}:{line}",
                hint=hint,
            )
        return found

    def statements(self, path: str, line: int) -> list[SourcePlace]:
        """Return where each statement of a source line begins: the line of a loop has several.

        Args:
            path: the file's name, or the end of its path.
            line: its number.

        Returns:
            The places, one file after the other, by address in each; [] for a line without code.
        """
        found: list[SourcePlace] = []
        for file, units in self._units():
            try:
                found += [place.moved(file.bias) for place in line_statements(units, path, line)]
            except DAMAGE:
                continue
        return found

    def has_source(self, path: str) -> bool:
        """Return True where a loaded file has code of a source file.

        Args:
            path: the source file's name, or the end of its path.
        """
        return any(has_lines(units, path) for _, units in self._units())

    def at_function_line(self, address: int, number: int) -> list[SourcePlace]:
        """Return where the code of a function's line is.

        Args:
            address: in the function.
            number: how many lines behind the one in which the function is declared; 0: that line,
                or the function's entry where the line has no code.

        Raises:
            UnknownSymbol: the line has no code, or the function's source is not known.
        """
        found = self.function(address)
        line = None if found is None else first_line(found[1])
        path = "" if found is None else self._path_of(found[1])
        if found is None or not line or not path:
            raise UnknownSymbol(
                "nothing is known of its source", address=address, hint="build the guest with -g"
            )
        file, function = found
        start, end = function.start + file.bias, function.end + file.bias
        try:
            places = [
                place for place in self.at_line(path, line + number) if start <= place.address < end
            ]
        except UnknownSymbol:
            places = []
        if not places and not number:
            return [SourcePlace(start, function.name)]
        return places or self._none(function, number)

    @staticmethod
    def _none(function: Function, number: int) -> list[SourcePlace]:
        """Raise UnknownSymbol: a function has no code at the line `number` behind its first one."""
        raise UnknownSymbol(
            f"there is no code at its line {number}",
            symbol=function.name,
            hint=f"`kprobes list FILE '{function.name}:*'` shows where there is",
        )

    @staticmethod
    def _path_of(function: Function) -> str:
        """Return the path of the source file that a function is declared in; "": it is not told."""
        for die in (function.die, named(function.die)):
            found = die.attributes.get("DW_AT_decl_file")
            if found is not None:
                try:
                    return source_path(function.unit, found.value)
                except DAMAGE:
                    return ""
        return ""

    def source_of(self, address: int) -> tuple[str, int]:
        """Return where the function at an address is declared.

        Returns:
            (path, number of the first line); ("", 0) where nothing is known of a function there.
        """
        found = self.function(address)
        return ("", 0) if found is None else (self._path_of(found[1]), first_line(found[1]))

    def source_lines(self, path: str) -> list[SourceLine]:
        """Return the statements of a source file that have code, and the code of lines that begin
        no statement: by line, then by address; [] where no file has this name.

        Args:
            path: the source file's name, or the end of its path; the results have it as it is here.
        """
        found: set[tuple[int, int]] = set()
        others: set[tuple[int, int]] = set()
        for file, units in self._units():
            try:
                codes = [code for _, some in units.lines_of(path) for code in some if code.line]
            except DAMAGE:
                continue
            for code in codes:
                (found if code.is_stmt else others).add((code.line, code.start + file.bias))
        begun = {line for line, _ in found}
        found |= {(line, address) for line, address in others if line not in begun}
        return [SourceLine(path, line, address) for line, address in sorted(found)]

    def source_folders(self, path: str) -> list[str]:
        """Return the working directories of the compiler runs that compiled a source file: each
        once, in the order of the compilations, "" where one does not tell its own.

        Args:
            path: the source file's name, or the end of its path.
        """
        found: dict[str, None] = {}
        for _, units in self._units():
            for n in units_of_source(units, path):
                found[text(units.unit(n).get_top_DIE(), "DW_AT_comp_dir")] = None
        return [*found]

    def source_file(self, path: str) -> str:
        """Return where a source file is on this computer; "": it is not here, or has more than
        16 MiB.

        It is looked for in the working directories of the compiler runs that read it, then by its
        path, then by its name in the current folder.

        Args:
            path: of the source file, as a SourceLine has it.
        """
        folders = [] if os.path.isabs(path) else self.source_folders(path)
        for where in (
            *(os.path.join(folder, path) for folder in folders if folder),
            path,
            os.path.basename(path),
        ):
            try:
                if os.path.isfile(where) and os.path.getsize(where) <= _LARGEST_SOURCE:
                    return where
            except (OSError, ValueError):
                continue
        return ""

    def labels(self, address: int) -> dict[str, int]:
        """Return the labels of the function at an address: name -> guest address; {} where no
        function is known.
        """
        found = self.function(address)
        if found is None:
            return {}
        return {name: at + found[0].bias for name, at in labels(found[1]).items()}

    def copies(self, name: str) -> list[SourcePlace]:
        """Return the first instruction of each inlined copy of a function: one file after the
        other, by address in each; [] where there is none.

        Args:
            name: of the function.
        """
        found: list[SourcePlace] = []
        for file, units in self._units():
            try:
                found += [place.moved(file.bias) for place in copies(units, name)]
            except DAMAGE:
                continue
        return found

    def markers(self) -> list[Marker]:
        """Return the static tracepoints of all files, by address."""
        return sorted(
            (marker for file in self.files for marker in markers_of(file)),
            key=lambda marker: marker.address,
        )

    def inlined(self, name: str) -> list[int]:
        """Return the addresses at which inlined copies of a function begin, ascending.

        Args:
            name: of the function.
        """
        return sorted(place.address for place in self.copies(name))


def _shape(type: CType) -> tuple[Any, ...]:
    """Return what tells two definitions of a type apart; those of equal shape are interchangeable.

    Returns:
        (kind, bytes, signed, ((name, offset, bits, shift, type's name) of each member), ((name,
        value) of each enumerator)).
    """
    members = tuple((m.name, m.offset, m.bits, m.shift, m.type.name) for m in type.members.values())
    return type.kind, type.size, type.signed, members, tuple(type.values.items())
