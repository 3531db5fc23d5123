"""Calls whose parameters' types are known: where the arguments go, and where the result is."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from numbers import Complex, Real
from operator import index
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define, frozen

from ..arch._base import Arch
from ..arguments import kind_of, shown
from ..errors import BadArgument, Unsupported
from ..regs import real_bits
from .library import machine_of, type_of
from .numbers import real_number_bits
from .placing import WORDS, NotKnown, ParameterPart, alignment
from .prototypes import Prototype
from .registers import facts
from .types import CType, Derived
from .view import View, ViewedMemory, load, packed
from .whole import Members, whole

if TYPE_CHECKING:
    from ..regs import Regs

_BUFFERS: Final = (bytes, bytearray, memoryview)
#: values of structures, and of arrays of them
_COMPOSED: Final = (Mapping, View, list, tuple, *_BUFFERS)


class ResultReader(Protocol):
    """The part of DebugInfo that reads values in registers."""

    def typed(self, type: CType, raw: int) -> Any:
        """Return the value of a type that a register's bits `raw` stand for."""

    def in_parts(self, type: CType, parts: Sequence[ParameterPart], regs: Regs) -> Any:
        """Return the value of a type whose bytes are in `parts`, read from `regs` and memory."""


@frozen
class PlacedArguments:
    """The registers and the stack as a caller sets them before a function is entered.

    Attributes:
        registers: name -> value.
        stack: (offset in bytes from the stack pointer at the entry, bytes to write there) of each
            argument, or part of one.
        alignment: bytes of which the stack pointer has to be a multiple for the arguments, before
            a return address is pushed.
    """

    registers: Mapping[str, int]
    stack: Sequence[tuple[int, bytes]]
    alignment: int


@define
class _StructureMemory:
    """Memory, at addresses from 0, of a structure that is being filled: a View writes to it.

    Attributes:
        arch: the guest's, as a View asks its memory for it.
        data: the structure's bytes so far.
    """

    arch: Any
    data: bytearray

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes from address `addr` on."""
        return bytes(self.data[addr : addr + size])

    def write(self, addr: int, data: bytes) -> None:
        """Replace the bytes from address `addr` on."""
        self.data[addr : addr + len(data)] = data


class TypedCall:
    """The arguments and the result of one call.

    Attributes:
        to_copy: number of an argument, from 0 -> what has to be copied into guest memory, where
            the function gets the copy's address: a buffer, or a structure that is passed by its
            address.
        result_size: bytes of guest memory that the function wants for its result; 0: none.
    """

    def __init__(
        self,
        info: ResultReader,
        machine: ViewedMemory,
        prototype: Prototype,
        arguments: Sequence[Any],
    ) -> None:
        """Check the arguments, and find their places. Nothing is written to the guest.

        Args:
            info: the machine's debug information, which reads the result.
            machine: whose memory has the result, and whose architecture says the convention.
            prototype: the function's types.
            arguments: numbers; for a pointer also bytes, bytearray or memoryview; for a structure
                or union a mapping of its members, of which those left out are 0, a View of one, or
                all its bytes; for a complex number a complex. A member that is an array is a
                sequence of all elements, or a mapping of some by their index.

        Raises:
            BadArgument: an argument cannot be passed as its parameter's type, or there are too few
                or too many.
            Unsupported: how the architecture, or the file, passes a type is not known.
        """
        self._info = info
        self._machine = machine
        self._arch: Arch = machine.arch
        self._result = prototype.result
        typed = self._types_and_values(prototype, arguments)
        self._types = [type for type, _ in typed]
        self._parts = self._argument_parts(prototype)
        self._result_parts = self._parts_of_result(prototype)
        self.to_copy: dict[int, Any] = {}
        self._values: list[int | bytes] = []
        for n, (type, value) in enumerate(typed):
            if type.kind in WORDS and isinstance(value, _BUFFERS):
                if type.size != self._arch.bits // 8:
                    raise _misfit(_argument(n), value, type)
                self.to_copy[n] = value
                self._values.append(0)
                continue
            data = self._bytes_of(n, type, value)
            if self._parts is not None and [part.kind for part in self._parts[n]] == ["behind"]:
                self.to_copy[n] = data
            self._values.append(data)
        in_memory = [part for part in self._result_parts if part.kind in ("given", "behind")]
        self.result_size = in_memory[0].size if in_memory else 0

    @property
    def has_places(self) -> bool:
        """Whether placed() says where the arguments are; False: all are words, in the order of the
        architecture's argument registers.
        """
        return self._parts is not None

    def words(self, addresses: Mapping[int, int]) -> list[int]:
        """Return the arguments as words, where has_places is False.

        Args:
            addresses: number of an argument in `to_copy` -> address of the copy.
        """
        return [self._word(n, addresses) for n in range(len(self._types))]

    @property
    def pointers(self) -> list[bool]:
        """Whether each argument is a pointer."""
        return [type.kind == "pointer" for type in self._types]

    @property
    def returns_pointer(self) -> bool:
        """Whether the result is a pointer."""
        return self._result.kind == "pointer"

    def _types_and_values(
        self, prototype: Prototype, arguments: Sequence[Any]
    ) -> list[tuple[CType, Any]]:
        """Return (the type that the argument is passed as, its value) of each argument.

        Args:
            prototype: the function's types.
            arguments: the values.

        Raises:
            BadArgument: there are too few arguments, or too many.
            Unsupported: how a float behind `...` is passed is not known.
        """
        types = prototype.parameters
        many = len(types)
        if len(arguments) < many or (len(arguments) > many and not prototype.variadic):
            raise BadArgument(
                f"{len(arguments)} arguments are given, and the function has {many}",
                hint="pass one for each; prototype= says other types",
            )
        named = list(zip(types, arguments, strict=False))
        return [*named, *map(self._variadic_argument, arguments[many:])]

    def _variadic_argument(self, value: Any) -> tuple[CType, Any]:
        """Return the type and the value that an argument behind `...` is passed as.

        A float is passed as a double, or as an integer of the double's bits; a buffer as a pointer;
        all others as an integer of a register's size.

        Raises:
            Unsupported: the value is a float, and how one is passed there is not known.
        """
        integer = Derived.number(
            "int", "an integer behind `...`", self._arch.bits // 8, True, self._arch
        )
        if isinstance(value, _BUFFERS):
            return Derived.of(integer, self._arch, None), value
        if not isinstance(value, Real) or hasattr(value, "__index__"):
            return integer, value
        value = float(value)
        way = facts(self._arch).variadic_reals
        if way == "word":
            return integer, real_bits(value, 8)
        if way == "named":
            return Derived.number("float", "double", 8, True, self._arch), value
        raise Unsupported(
            f"how {self._arch.name} passes floating point behind `...` is not known here",
            python="set registers and use run()",
        )

    def _argument_parts(self, prototype: Prototype) -> list[tuple[ParameterPart, ...]] | None:
        """Return the parts of each argument by the function's convention.

        Returns:
            None: arguments and result are all words, which the argument registers take in order.

        Raises:
            Unsupported: the convention of a type is not known.
        """
        word = self._arch.bits // 8
        every = [*self._types, self._result]
        if all(type.kind == "void" or _is_word(type, word) for type in every):
            return None
        try:
            parts = prototype.convention.parameters(self._types, self._result)
            for type, places in zip(self._types, parts, strict=True):
                if type.size and not places and type.kind not in ("struct", "union"):
                    raise NotKnown(f"how {self._arch.name} passes {type.name} is not known here")
        except NotKnown as error:
            raise Unsupported(
                f"the function cannot be called by its types: {error}",
                python="set registers and use run()",
            ) from None
        return parts

    def _parts_of_result(self, prototype: Prototype) -> tuple[ParameterPart, ...]:
        """Return the parts of the result; () for a word, for void, and for no bytes.

        Raises:
            Unsupported: the place of such a result is not known.
        """
        type = self._result
        if type.kind == "void" or _is_word(type, self._arch.bits // 8):
            return ()
        try:
            return prototype.convention.result(type)
        except NotKnown as error:
            raise self._unknown(type, str(error)) from None

    def _unknown(self, type: CType, why: str) -> Unsupported:
        """Make the error for a type whose place is not known; the caller raises it."""
        return Unsupported(
            f"{type.name} cannot be passed or returned in a call: {why}",
            python="set registers and use run()",
        )

    def _bytes_of(self, n: int, type: CType, value: Any) -> int | bytes:
        """Return the bytes of an argument as memory has them; for a word the number.

        Args:
            n: number of the argument, from 0.
            type: that the argument is passed as.
            value: the argument, no buffer for a pointer.

        Raises:
            BadArgument: the value is not of the type.
            GuestFault: the memory of a View cannot be read.
            Unsupported: numbers of the type cannot be written.
        """
        if type.kind in ("struct", "union"):
            return self._bytes_of_structure(_argument(n), type, value)
        if type.kind in ("float", "complex"):
            return self._bytes_of_real(n, type, value)
        if isinstance(value, float):
            raise BadArgument(
                f"argument {n + 1} is a float, and the parameter an integer or a pointer",
                hint="pass an integer",
            )
        if type.kind not in WORDS:
            raise self._unknown(type, "its values are not understood")
        try:
            number = 0 if value is None else index(value)
        except TypeError:
            raise _misfit(_argument(n), value, type) from None
        data = packed(type, number, self._arch)
        if type.size > self._arch.bits // 8:
            return data
        return int.from_bytes(data, self._order, signed=type.signed)

    def _bytes_of_structure(self, where: str, type: CType, value: Any) -> bytes:
        """Return the bytes of a structure or union.

        Args:
            where: the argument, or its member, as errors name it.
            type: the structure's.
            value: a View, its bytes, or a mapping of its members.

        Raises:
            BadArgument: the value has another size or other members, or a member is not of its
                type.
            GuestFault: the View's memory cannot be read.
        """
        if isinstance(value, View):
            value = bytes(value)
        if isinstance(value, _BUFFERS):
            if len(value) != type.size:
                raise BadArgument(
                    f"{where} has {len(value)} bytes, and {type.name} has {type.size}",
                    hint="pass all its bytes, or a mapping of its members",
                )
            return bytes(value)
        if not isinstance(value, Mapping):
            raise _misfit(where, value, type)
        memory = _StructureMemory(self._arch, bytearray(type.size))
        view = View(memory, type, 0)
        for name, member in value.items():
            self._write_part(f"{where}, {shown(name)}", view, name, member)
        return bytes(memory.data)

    def _write_part(self, where: str, view: View, key: Any, value: Any) -> None:
        """Write a member of a structure, or an element of an array.

        Args:
            where: the part, as errors name it.
            view: the structure or array, in _StructureMemory.
            key: the member's name, or the element's index.
            value: as TypedCall takes it for an argument; of an array a sequence of all elements,
                or a mapping of some: index -> value.

        Raises:
            BadArgument: there is no such part, or the value is not of its type.
            GuestFault: the memory of a View that is copied cannot be read.
        """
        try:
            inside = view[key] if value is None or isinstance(value, _COMPOSED) else None
            type = type_of(inside) if isinstance(inside, View) else None
            if isinstance(inside, View) and type is not None:
                if type.kind in ("struct", "union"):
                    data = self._bytes_of_structure(where, type, value)
                    machine_of(inside).write(int(inside), data)
                    return
                parts = _elements(type, value)
                if parts is not None:
                    for n, each in parts.items():
                        self._write_part(f"{where}, {shown(n)}", inside, n, each)
                    return
                if value is None and type.kind == "pointer":
                    value = 0
            elif isinstance(inside, complex) and isinstance(value, Mapping):
                value = complex(value["real"], value["imag"])
            view[key] = value
        except BadArgument as error:
            if error.reason.startswith(where):
                raise
            raise BadArgument(f"{where}: {error.reason}", hint=error.hint) from None
        except (AttributeError, LookupError, TypeError) as error:
            raise BadArgument(f"{where}: {error}", hint="name its members") from None

    def _bytes_of_real(self, n: int, type: CType, value: Any) -> bytes:
        """Return the bytes of a floating-point or complex number.

        Args:
            n: number of the argument, from 0.
            type: the parameter's.
            value: the argument.

        Raises:
            BadArgument: the value is no number, or an integer beyond the largest float.
            Unsupported: the format of the type's numbers is not known.
        """
        pair = type.kind == "complex"
        size = type.size // 2 if pair else type.size
        try:
            if not isinstance(value, Complex if pair else Real):
                raise TypeError
            parts = [float(value.real), float(value.imag)] if pair else [float(value)]  # type: ignore[arg-type]
        except OverflowError:
            raise BadArgument(
                f"argument {n + 1} is beyond the largest floating-point number",
                hint="pass a smaller one",
            ) from None
        except TypeError:
            raise BadArgument(
                f"argument {n + 1} is {kind_of(value)}, and the parameter a floating-point number",
                hint="pass a float or an integer",
            ) from None
        return b"".join(
            real_number_bits(type, each, self._arch).to_bytes(size, self._order) for each in parts
        )

    @property
    def _order(self) -> Any:
        """The guest's byte order: "little" or "big"."""
        return self._arch.order.value

    # --- placing

    def placed(self, addresses: Mapping[int, int], result: int) -> PlacedArguments:
        """Return what registers and stack have at the entry, where has_places is True.

        Args:
            addresses: number of an argument in `to_copy` -> address of the copy.
            result: address of `result_size` bytes of memory; 0 where `result_size` is 0.
        """
        assert self._parts is not None
        registers: dict[str, int] = {}
        stack: list[tuple[int, bytes]] = []
        for n, parts in enumerate(self._parts):
            if [part.kind for part in parts] == ["behind"]:
                self._place_word(parts[0], addresses[n], registers, stack)
            elif self._is_word(n):
                self._place_word(parts[0], self._word(n, addresses), registers, stack)
            else:
                self._place_bytes(n, parts, registers, stack)
        known = facts(self._arch)
        if known.real_count:
            registers[known.real_count] = len(self._arch.regs.reals.intersection(registers))
        if result:
            self._place_word(self._result_address(), result, registers, stack)
        spilled = [
            type
            for type, parts in zip(self._types, self._parts, strict=True)
            if any(part.kind == "stack" for part in parts)
        ]
        return PlacedArguments(registers, stack, max([1, *map(_alignment, spilled)]))

    def alignment(self, n: int) -> int:
        """Return the number of bytes of which an argument's address is a multiple.

        Args:
            n: number of the argument, from 0.
        """
        return _alignment(self._types[n])

    @property
    def result_alignment(self) -> int:
        """The number of bytes of which the address of the result is a multiple."""
        return _alignment(self._result)

    def _result_address(self) -> ParameterPart:
        """Return where the function gets the address of the memory for the result: a register, or
        the first word on the stack (i386).
        """
        (part,) = self._result_parts
        if part.kind == "given":
            return part
        abi = self._arch.abi
        assert abi is not None  # "behind": the function returns the address itself
        word = self._arch.bits // 8
        if abi.args:
            return ParameterPart("register", word, abi.args[0])
        return ParameterPart("stack", word, offset=abi.stack_args)

    def _is_word(self, n: int) -> bool:
        """Whether an argument is an integer or pointer of at most a register."""
        return _is_word(self._types[n], self._arch.bits // 8)

    def _word(self, n: int, addresses: Mapping[int, int]) -> int:
        """Return the value that a register has of an argument that is a word, sign-extended where
        the convention asks for that.

        Args:
            n: number of the argument, from 0.
            addresses: number of an argument in `to_copy` -> address of the copy.
        """
        value = addresses.get(n, self._values[n])
        assert isinstance(value, int)
        if facts(self._arch).sign_extended and self._types[n].size == 4 and value >> 31:
            value |= -1 << 32
        return value & self._arch.mask

    def _place_word(
        self,
        part: ParameterPart,
        value: int,
        registers: dict[str, int],
        stack: list[tuple[int, bytes]],
    ) -> None:
        """Place a word, extended to the width of a register.

        Args:
            part: where the word belongs.
            value: the word.
            registers: name -> value; one may be added.
            stack: (offset, bytes); one may be added.
        """
        if part.name:
            registers[part.name] = value
            return
        word = self._arch.bits // 8
        start = part.offset // word * word  # a shorter one on a big-endian guest is behind it
        stack.append((start, value.to_bytes(word, self._order)))

    def _place_bytes(
        self,
        n: int,
        parts: Sequence[ParameterPart],
        registers: dict[str, int],
        stack: list[tuple[int, bytes]],
    ) -> None:
        """Place an argument that is no word.

        Args:
            n: number of the argument, from 0.
            parts: where the argument's bytes belong, in their order.
            registers: name -> value; some may be added.
            stack: (offset, bytes); some may be added.
        """
        data = self._values[n]
        assert isinstance(data, bytes)
        known = facts(self._arch)
        at = 0
        for part in parts:
            piece = data[at : at + part.size]
            at += part.size
            if part.kind == "stack":
                stack.append((part.offset, piece))
                continue
            if part.kind == "single":  # registers of PowerPC have a float as a double
                (number,) = struct.unpack("<f" if self._order == "little" else ">f", piece)
                registers[part.name] = real_bits(number, 8)
                continue
            bits = int.from_bytes(piece, self._order) << 8 * part.offset
            # RISC-V's manual, "NaN Boxing of Narrower Values": all higher bits are 1
            if known.boxed and part.name in self._arch.regs.reals and len(piece) < 8:
                bits |= (1 << 64) - (1 << 8 * len(piece))
            registers[part.name] = registers.get(part.name, 0) | bits

    # --- the result

    def result(self, regs: Regs, address: int) -> Any:
        """Return the result of the call.

        Args:
            regs: the registers, where the function has returned.
            address: of the `result_size` bytes that placed() was given; 0: there are none.

        Returns:
            None for void; a number, also a complex one; the address of a pointer; of a structure
            its Members.

        Raises:
            GuestFault: the result's memory cannot be read.
            Unsupported: the format of the type's numbers is not known.
        """
        type = self._result
        if type.kind == "void":
            return None
        if type.kind in ("struct", "union") and not self._result_parts:
            return Members()  # an empty structure of GNU C
        if not self._result_parts:
            value = self._info.typed(type, regs.return_value)
        elif self.result_size:
            value = load(self._machine, type, address)
        else:
            value = self._info.in_parts(type, self._result_parts, regs)
        if type.kind == "pointer":
            return int(value)
        return value if type.kind == "complex" else whole(value)


def _alignment(type: CType) -> int:
    """Return the alignment of a type in bytes; 1 where it is not known."""
    try:
        return alignment(type)
    except NotKnown:
        return 1


def _is_word(type: CType, word: int) -> bool:
    """Whether a type is an integer or pointer of at most `word` bytes."""
    return type.kind in WORDS and type.size <= word


def _elements(type: CType, value: Any) -> Mapping[Any, Any] | None:
    """Return the elements that a value gives of an array of structures or arrays: index -> value.

    Args:
        type: the array's.
        value: a sequence of all elements, or a mapping.

    Returns:
        None: the type is no array, or the value can be written as a whole.

    Raises:
        BadArgument: a sequence has another number of elements.
    """
    if type.kind != "array":
        return None
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list | tuple) or type.element.kind not in ("struct", "union"):
        return None
    if len(value) != type.count:
        raise BadArgument(
            f"{type.name} has {type.count} elements, not {len(value)}",
            hint="pass all of them, or a mapping of some by their index",
        )
    return dict(enumerate(value))


def _argument(n: int) -> str:
    """Return how errors name an argument.

    Args:
        n: number of the argument, from 0.
    """
    return f"argument {n + 1}"


def _misfit(where: str, value: Any, type: CType) -> BadArgument:
    """Make the error for a value that is not of its parameter's type; the caller raises it.

    Args:
        where: the argument, or its member, as errors name it.
        value: the value.
        type: the parameter's, or the member's.
    """
    return BadArgument(
        f"{where} is {kind_of(value)}, and the parameter {type.name}",
        hint="pass a value of its type",
    )
