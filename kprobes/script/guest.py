"""A guest as a script sees it: its functions, types and registers."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from ..arch._base import Order
from ..debug.info import DebugInfo
from ..debug.operands import Unfetchable, operand_of, resolved
from ..errors import KprobeError, ProgramError
from ..names import demangle, literal_words, means, name_matcher
from ..programs.context import ARGUMENT, PC, RESULT, SP, UNIFORM, WORDS
from ..symbols import names_like
from . import layout, types
from .inference import ArgumentPart, ArgumentSource, MarkerArgument
from .types import ValueType

if TYPE_CHECKING:
    from ..debug.passing import Arrival
    from ..debug.placing import ParameterPart
    from ..debug.types import CType
    from ..image._symbol import Symbol
    from ..machine._base import Machine

#: structures within structures that are followed
_DEEPEST = 6
#: types whose arrays are texts; a typedef of one is none, as in bpftrace
_CHARACTERS = ("char", "signed char", "unsigned char")
#: why an argument in memory is not known at the return
_CHANGED = "it is in memory, which the function may have changed"
#: numbers that an instruction of a program holds
_I32 = range(-(1 << 31), 1 << 31)


class GuestWorld:
    """Knowledge that a script can have of a machine's guest (a World).

    Attributes:
        bits: bits of its addresses.
        order: its byte order.
        cpus: number of its CPUs.
        stacked: bytes from the stack pointer to the first argument on the stack; negative where the
            stack grows upwards.
        callers: direction of the next argument on the stack: 1 above, -1 below.
        machine: whose guest it is.
        debug: its debug information.
    """

    def __init__(self, machine: Machine) -> None:
        """Take the machine's architecture; types and functions are looked up later, when they are
        asked for.

        Args:
            machine: the machine, with the guest loaded.
        """
        self.machine = machine
        self.debug = DebugInfo(machine)
        arch = machine.arch
        self.bits = arch.bits
        self.cpus = machine.cpus
        self.order = "big" if arch.order is Order.BIG else "little"
        self.callers = arch.callers
        self.stacked = arch.abi.stack_args * arch.callers if arch.abi is not None else 0
        self._types: dict[str, ValueType | None] = {}
        self._sized: dict[str, bool] = {}
        self._enumerators: dict[str, tuple[int, types.EnumType]] | None = None

    # --- types

    def type(self, name: str) -> ValueType | None:
        """Return a type of the guest, given by its name, as scripts have it; None: there is
        none, or its debug information cannot be understood. The answer is kept for the next call.
        """
        if name not in self._types:
            self._types[name] = None
            try:
                self._types[name] = self.converted(self.debug.type(name))
            except KprobeError:
                pass
        return self._types[name]

    def enumerator(self, name: str) -> tuple[int, types.EnumType] | None:
        """Return (number, type) of an enumerator; None: no enumeration that has a name has it.

        The first call looks through all enumerations, and keeps what it finds; of enumerators with
        the same name the first counts.
        """
        if self._enumerators is None:
            self._enumerators = {}
            for spelled in self.debug.type_names("enum "):
                kind = self.type(spelled)
                if isinstance(kind, types.EnumType):
                    for one, number in self.debug.type(spelled).values.items():
                        self._enumerators.setdefault(one, (number, kind))
        return self._enumerators.get(name)

    def converted(self, type: CType, depth: int = 0) -> ValueType:
        """Return the script's type for a type of debug information.

        Integers, bool, floating point, enums (with their names), pointers, arrays, structures and
        unions each become a type of their kind. An array of char, which is unsigned on some
        architectures, signed char or unsigned char becomes a string that is one byte longer than
        the array, for a NUL. Any other type (void, a function) becomes VoidType(). A structure or
        union that a pointer points at has no members, only name and size.

        Args:
            type: the C type.
            depth: how many structures and pointers `type` is inside of; 0: none. Where these are
                too many (_DEEPEST), structures get no members, and pointers to anything but
                structures and unions point at VoidType().
        """
        if type.kind in ("int", "char"):
            size = type.size if type.size in (1, 2, 4, 8) else 8
            return types.IntegerType(8 * size, type.signed)
        if type.kind == "bool":
            return types.BooleanType()
        if type.kind == "float":
            return types.FloatType(8 * type.size)
        if type.kind == "enum":
            members = {value: name for name, value in type.values.items()}
            size = type.size if type.size in (1, 2, 4, 8) else 4
            return types.EnumType(type.name.removeprefix("enum "), 8 * size, type.signed, members)
        if type.kind == "pointer":
            return types.PointerType(self._target(type.target, depth))
        if type.kind == "array" and type.target is not None:
            element = self.converted(type.target, depth)
            if element == types.IntegerType(8, True) or type.target.name in _CHARACTERS:
                return types.StringType(type.count + 1)
            return types.ArrayType(element, type.count)
        if type.kind in ("struct", "union"):
            return self._structure(type, depth)
        return types.VoidType()

    def _target(self, type: CType | None, depth: int) -> ValueType:
        """Return the type that a pointer points at, in the script's types.

        Of a structure or union it has only name and size.

        Args:
            type: the C type; None: void.
            depth: how many types are around it; behind too many it is VoidType().
        """
        if type is None or type.kind in ("void", "function"):
            return types.VoidType()
        if type.kind in ("struct", "union"):
            return types.StructType(type.name, type.size, ())
        return self.converted(type, depth + 1) if depth < _DEEPEST else types.VoidType()

    def _structure(self, type: CType, depth: int) -> ValueType:
        """Return a structure or union in the script's types, with its members in order of offset.

        Members of anonymous structures and unions in it are among them.

        Args:
            type: the C type.
            depth: how many types are around it; behind too many it has no members.
        """
        if depth > _DEEPEST:
            return types.StructType(type.name, type.size, ())
        fields = []
        for member in type.members.values():
            kind = self.converted(member.type, depth + 1)
            if member.bits:
                shift = member.shift
                if self.order == "big":
                    shift = 8 * member.unit - member.bits - member.shift
                fields.append(
                    types.RecordField(member.name, kind, member.offset, shift, member.bits)
                )
            else:
                fields.append(types.RecordField(member.name, kind, member.offset))
        # `members` has those of anonymous structures and unions first
        fields.sort(key=lambda field: field.offset)
        return types.StructType(type.name, type.size, tuple(fields))

    # --- names

    def names_like(self, name: str) -> list[str]:
        """Return names of C++ and Rust, as people write them, that may be meant by one that no
        function has.

        Args:
            name: the name.
        """
        return names_like(self.machine.symbols, name)

    def names(self) -> Sequence[str]:
        """Return the names of functions and data."""
        return [symbol.name for symbol in self.machine.symbols]

    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return (address with mode bits, size) of a symbol; None: there is none."""
        found = self.machine.symbols.find(name)
        return None if found is None else (found.address | found.mode, found.size)

    def describe(self, address: int) -> tuple[str | None, int, str]:
        """Return the symbol at an address.

        Returns:
            (its name, bytes from it to the address, image); (None, 0, "") where there is no symbol.
            The image is its file's absolute path where that is known, else its module's name.
        """
        symbols = self.machine.symbols
        found = symbols.covering(address)
        if found is None:
            return None, 0, ""
        path = next((file.path for file in self.debug.files if file.module == found.module), "")
        image = os.path.abspath(path) if path else found.module or str(symbols.main or "")
        return found.name, address - found.address, image

    def describe_as_written(self, address: int) -> tuple[str | None, int, str]:
        """Return the symbol at an address as describe() does, a C++ or Rust name as people write
        it.
        """
        name, offset, image = self.describe(address)
        return None if name is None else demangle(name), offset, image

    def sources(self, address: int) -> list[tuple[str, str, bool]]:
        """Return the functions that an address is part of, innermost first.

        Each is (name, `file.c:12` or "", inlined).
        """
        return [
            (frame.function, f"{frame.path}:{frame.line}" if frame.line else "", frame.inlined)
            for frame in self.debug.frames(address)
        ]

    def register(self, name: str) -> int | None:
        """Return the number of the context's word that has a register; None: no such register, or
        one that the context does not have.

        `ip`, `pc` and `sp` are known for every guest; `ax` and the like also stand for `rax`.

        Args:
            name: the register's name, or another name that its architecture has for it.
        """
        regs = self.machine.arch.regs
        if name in ("ip", "pc"):
            return PC
        if name == "sp" and name not in regs.names:
            return SP
        if name in ("ax", "bx", "cx", "dx", "si", "di", "bp") and f"r{name}" in regs.names:
            name = f"r{name}"
        name = regs.aliases.get(name, name)
        if name not in regs.names:
            return None
        number = regs.names.index(name)
        return number if number < UNIFORM else None

    def marker_argument(self, written: str) -> MarkerArgument:
        """Return how an argument of a USDT marker is read.

        Args:
            written: the argument as the compiler wrote it: `-4@%eax`.

        Raises:
            ProgramError: programs cannot read it.
        """
        try:
            symbols = self.machine.symbols
            operand = resolved(operand_of(written, self.machine.arch, symbols), symbols)
        except Unfetchable as error:
            raise ProgramError(str(error)) from None
        word = None
        if operand.register:
            word = self.register(operand.register)
            if word is None:
                raise ProgramError(f"programs do not see the register {operand.register}")
            if operand.number not in _I32:
                raise ProgramError("it is too far behind its register")
        return MarkerArgument(
            type=types.IntegerType(8 * operand.size, operand.signed),
            word=word,
            shift=operand.shift,
            number=operand.number,
            memory=operand.memory,
        )

    def registers(self) -> Sequence[str]:
        """Return the names of registers."""
        regs = self.machine.arch.regs
        return [*regs.names, *regs.aliases, "ip", "sp"]

    # --- functions

    def functions(self, pattern: str, image: str) -> Iterator[Symbol]:
        """Yield the guest's functions whose name fits a glob, each address once.

        A glob means stubs of imports, whose names have an @ (`puts@plt`), only if it has an @. A
        pattern with `::` also means C++ and Rust names as people write them, without a glob all
        functions of that name, whatever their parameters.

        Args:
            pattern: a glob of the names.
            image: a glob of the names of images that they are in; "": any.
        """
        matches = name_matcher(pattern)
        plain = not re.search(r"[*?\[]", pattern)
        words = literal_words(pattern)
        seen = set[int]()
        for symbol in self.machine.symbols:
            if symbol.kind not in ("func", "ifunc") or symbol.address in seen:
                continue
            if plain:
                same = symbol.name == pattern
                if not same and "::" in pattern and all(word in symbol.name for word in words):
                    same = means(pattern, demangle(symbol.name))
            else:
                same = bool(matches(symbol.name)) and ("@" in pattern or "@" not in symbol.name)
            if same and self.is_of(symbol.module, image):
                seen.add(symbol.address)
                yield symbol

    def images(self) -> list[str]:
        """Return the names of the guest's images without their folders, the guest's own file first,
        each once.
        """
        main = str(self.machine.symbols.main or "")
        modules = dict.fromkeys(symbol.module or main for symbol in self.machine.symbols)
        names = dict.fromkeys(os.path.basename(module) for module in [main, *modules])
        return [name for name in names if name]

    def knows_sizes(self, module: str) -> bool:
        """Return True where at least one function of an image has a size in the symbols.

        Those of an ELF file have, those of a map may not. The answer is kept for the next call.

        Args:
            module: of the image's symbols.
        """
        if module not in self._sized:
            self._sized[module] = any(
                symbol.size and symbol.kind == "func" and symbol.module == module
                for symbol in self.machine.symbols
            )
        return self._sized[module]

    def is_of(self, module: str | None, image: str) -> bool:
        """Return True where the image that a script names is the file of a symbol or marker.

        A path stands for the file's name; `libc` also for `libc.so.6`. Where the guest's own file
        has no name, any image stands for it.

        Args:
            module: the image of a symbol or a marker; None: it is of the guest's own file.
            image: the image as written in the script, which may be a glob; "" and * are all.
        """
        if image in ("", "*"):
            return True
        name = str(module or self.machine.symbols.main or "")
        ours = os.path.basename(image)
        base = os.path.basename(name)
        if not module and not base:
            return True
        return (
            fnmatch.fnmatchcase(name, image)
            or fnmatch.fnmatchcase(base, ours)
            or base.startswith(f"{ours}.so")
        )

    def arguments(
        self, address: int, kept: bool = False
    ) -> tuple[types.StructType, dict[str, ArgumentSource]] | None:
        """Return a function's arguments, from debug information; those without a name are left out.

        Args:
            address: address of the function.
            kept: True: they are read at the function's return; those in memory, which the function
                may have changed, then have a reason instead of a place.

        Returns:
            (a structure with their names and types, name -> where it is at the entry: one that
            programs cannot read is missing, or has a reason); None: debug information has nothing
            of the function.
        """
        if self.debug.parameters(address) is None:
            return None
        fields = list[types.RecordField]()
        sources = dict[str, ArgumentSource]()
        size = 0
        for variable, arrival in self.debug.arrivals(address):
            if not variable.name:
                continue
            kind = self.converted(variable.type)
            fields.append(types.RecordField(variable.name, kind, size))
            size += layout.size_in_guest(kind, self.bits // 8) + 7 & ~7
            source = self._source(arrival, address)
            if source is None and arrival.reason:
                source = ArgumentSource(0, reason=arrival.reason)
            if kept and source is not None and not source.reason:
                source = self._kept(source)
            if source is not None:
                sources[variable.name] = source
        return types.StructType("args", size, tuple(fields)), sources

    def _kept(self, source: ArgumentSource) -> ArgumentSource:
        """Return where an argument is at the return: in words of the context that have the entry's
        arguments. One that is elsewhere gets a reason.

        Args:
            source: where it is at the entry.
        """
        if source.in_memory:
            return ArgumentSource(0, reason=_CHANGED)
        parts = tuple(evolve(part, word=self._argument_word(part.word)) for part in source.parts)
        kept = evolve(source, word=self._argument_word(source.word), parts=parts)
        if min(kept.words) < ARGUMENT:
            return ArgumentSource(0, reason="it is in no register of arguments")
        return kept

    def _argument_word(self, word: int) -> int:
        """Return the word of the context that has the same argument as a register's word does; the
        word itself where the register is no argument's.
        """
        abi = self.machine.arch.abi
        names = self.machine.arch.regs.names
        if abi is None or word >= len(names) or names[word] not in abi.args:
            return word
        return ARGUMENT + abi.args.index(names[word])

    def _source(self, arrival: Arrival, address: int) -> ArgumentSource | None:
        """Return where a parameter is at its function's entry; None: programs cannot read it.

        Args:
            arrival: what debug information says.
            address: address of the entry.
        """
        if arrival.kind == "argument":
            return ArgumentSource(ARGUMENT + arrival.number)
        if arrival.kind == "register":
            word = self.register(arrival.name)
            return None if word is None else ArgumentSource(word)
        if arrival.kind == "frame" and (frame := self.debug.cfa(address)) is not None:
            base = self.register(frame[0])
            return None if base is None else ArgumentSource(base, frame[1] + arrival.number)
        return self._in_parts(arrival.parts) if arrival.parts else None

    def _in_parts(self, parts: Sequence[ParameterPart]) -> ArgumentSource | None:
        """Return where a parameter is that the calling convention passes in several parts.

        Args:
            parts: registers and memory, in the order of the parameter's bytes.

        Returns:
            None: programs cannot read it.
        """
        first = parts[0]
        if first.kind == "stack" and len(parts) == 1:
            return ArgumentSource(SP, first.offset)
        if first.kind == "behind":
            word = self.register(first.name) if first.name else self._stack_word(first.offset)
            return None if word is None else ArgumentSource(word, 0)
        known = list[ArgumentPart]()
        for part in parts:
            if part.kind == "stack":
                known.append(ArgumentPart(SP, part.size, part.offset))
                continue
            low = part.kind == "register" and not part.offset
            word = self.register(part.name) if low else None
            if word is None:
                return None
            known.append(ArgumentPart(word, part.size))
        return ArgumentSource(known[0].word, parts=tuple(known))

    def _stack_word(self, offset: int) -> int | None:
        """Return the number of the context's word that has a word of the stack at an entry.

        Args:
            offset: bytes from the stack pointer to the word.

        Returns:
            None: it is not one of the first arguments, which the context has.
        """
        abi = self.machine.arch.abi
        if abi is None:
            return None
        behind, rest = divmod(offset - abi.stack_args, self.bits // 8)
        number = ARGUMENT + len(abi.args) + behind
        return number if behind >= 0 and not rest and number < WORDS else None

    def result(self, address: int) -> tuple[ValueType, ArgumentSource | None] | None:
        """Return a function's result, from debug information.

        Args:
            address: address of the function.

        Returns:
            (its type, where it is at the return); None: debug information does not know it. The
            second is None for all but an integer of two words and a structure, and for those where
            programs cannot read it; it may have a reason instead of a place.
        """
        found = self.debug.result(address)
        if found is None:
            return None
        kind = self.converted(found)
        if isinstance(kind, types.IntegerType | types.EnumType) and kind.bits > self.bits:
            return kind, self._pair()
        if not isinstance(kind, types.StructType):
            return kind, None
        arrival = self.debug.result_arrival(address)
        if arrival is None:
            return kind, None
        if arrival.kind == "refused":
            return kind, ArgumentSource(RESULT, reason=arrival.reason)
        first = arrival.parts[0]
        if first.kind == "given":
            return kind, ArgumentSource(RESULT, 0, given=first.name)
        return kind, self._in_parts(arrival.parts)

    def _pair(self) -> ArgumentSource | None:
        """Return where a result of two words is: in the two result registers of the calling
        convention.

        Returns:
            None: the second register is not known.
        """
        abi = self.machine.arch.abi
        if abi is None or len(abi.returns) < 2:
            return None
        second = self.register(abi.returns[1])
        if second is None:
            return None
        parts = (ArgumentPart(RESULT, self.bits // 8), ArgumentPart(second, self.bits // 8))
        return ArgumentSource(RESULT, parts=parts)
