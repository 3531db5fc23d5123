"""Guest memory as C sees it: `m.view("struct table *", address).first.value`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from numbers import Complex
from operator import index
from typing import Any, NoReturn, Protocol

from ..arch._base import Arch
from ..arguments import look, look_at_width, shown
from ..errors import BadArgument, GuestFault, Unsupported
from ..symbols import CONTROLS
from .libraries import CUT, NotLaidOut, library_text, library_type
from .numbers import number, real_number_bits
from .types import CType, Member, VirtualMember

_SMALLER = "write a smaller number"
LARGEST = 64  #: bytes of a number
SHOWN = 16  #: elements that a repr shows
LONGEST = 4 * SHOWN  #: characters
DEEPEST = 4  #: objects within objects whose members a repr shows
#: kinds of types whose values are numbers
SCALARS = frozenset({"int", "float", "complex", "bool", "char", "enum"})


class ViewedMemory(Protocol):
    """A machine, as far as views need it: guest memory and its architecture."""

    arch: Any

    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


class Held:
    """Stands for a machine whose memory is one variable that is in registers, or a constant.

    A View of such a variable reads its bytes from here, at addresses from 0.

    Args:
        machine: the machine, whose memory its pointers point at.
        data: the bytes, as memory would have them.
        known: a byte for each of them, 0 where the compiler has not kept it; None: all are kept.
    """

    def __init__(self, machine: ViewedMemory, data: bytes, known: bytes | None = None) -> None:
        self.machine = machine
        self.arch = machine.arch
        self._data = data
        self._known = known

    def read(self, addr: int, size: int) -> bytes:
        """Return some of the bytes.

        Args:
            addr: index of the first byte.
            size: how many.

        Raises:
            GuestFault: there are no such bytes.
            Unsupported: the compiler has not kept them.
        """
        end = addr + size
        if end > len(self._data):
            raise GuestFault("the variable has no such bytes", address=addr, access="read")
        if self._known is not None and 0 in self._known[addr:end]:
            raise Unsupported(
                "the compiler has not kept this part here",
                hint="look at it elsewhere in the function",
            )
        return self._data[addr:end]

    def write(self, addr: int, data: bytes) -> None:
        """Raise Unsupported: such a variable is not in memory; its register is written by name."""
        raise Unsupported(
            "the variable is not in memory here", hint='write the register, as in regs["rax"] = 1'
        )


class View:
    """A C value in guest memory, such as a structure. Reads guest memory each time it is asked.

    Members are attributes, also of what a pointer points at; those whose names Python has use for
    are read by `view["name"]`. Assigning a member writes guest memory. Pointers and arrays take
    indices; a structure, or a pointer to one, is a mapping of its members: dict(view). Numbers and
    enumerations come as int, float and bool. int() is the address: of a pointer, what it points
    at.

    Args:
        machine: the machine, or a Held.
        type: of the value.
        address: of its first byte; of a pointer, what it points at.
    """

    __slots__ = ("_address", "_machine", "_type")

    def __init__(self, machine: ViewedMemory, type: CType, address: int) -> None:
        for name, value in (
            ("_machine", machine),
            ("_type", type),
            ("_address", address & machine.arch.mask),
        ):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Read a member from guest memory: a number, or a View.

        Raises:
            AttributeError: the type has no such member.
            Unsupported: where the member is is not known.
            GuestFault: memory cannot be read.
        """
        member = _struct(self._type).members.get(name)
        if member is None:
            virtual = _struct(self._type).virtual.get(name)
            if virtual is not None:
                return self._at_base(virtual)._read(virtual.member)
            active = self.variant
            if active is None or active.name != name:
                if name == "keys" and _is_mapping(self._type):
                    return self.__dir__  # not a method: structures have members of this name
                self._lacks(name)
            member = active
        return self._read(member)

    def _at_base(self, virtual: VirtualMember) -> View:
        """Return a View whose address is that of this object's virtual base; its type stays the
        object's.

        Only members whose offsets count from the base may be read through it.

        Args:
            virtual: a member of the base.

        Raises:
            GuestFault: the object, or its table of virtual functions, cannot be read.
        """
        machine = self._machine
        memory = machine.machine if isinstance(machine, Held) else machine
        size = machine.arch.bits // 8
        order = machine.arch.order.value
        at = self._address
        for offset, slot in virtual.bases:
            at += offset
            table = int.from_bytes(machine.read(at & machine.arch.mask, size), order)
            below = memory.read(table - slot & machine.arch.mask, size)
            at += int.from_bytes(below, order, signed=True)
        return View(machine, self._type, at)

    @property
    def variant(self) -> Member | None:
        """The variant that a Rust enumeration has now; None for other types, and where none fits.
        Without a discriminant in memory it is the first one.

        Raises:
            GuestFault: it cannot be read.
        """
        variants = _struct(self._type).variants
        if variants is None:
            return None
        if variants.discriminant is None:
            return next(iter(variants.members.values()), None)
        which = int(self._read(variants.discriminant))
        size = variants.discriminant.type.size
        fits = [
            member
            for value, member in variants.members.items()
            if value is not None and value & (1 << 8 * size) - 1 == which & (1 << 8 * size) - 1
        ]
        return fits[0] if fits else variants.members.get(None)

    def _lacks(self, name: str) -> NoReturn:
        """Raise the error for a member that cannot be read.

        Args:
            name: of the member.

        Raises:
            Unsupported: the type has it, but where it is is not known.
            AttributeError: the type has no member of this name.
        """
        shape = _struct(self._type)
        if name in shape.hidden:
            raise Unsupported(
                f"the place of {name!r} in {shape.name} is not known: {shape.hidden[name]}",
                hint="view the part that has it by its own type",
            )
        raise AttributeError(
            f"{self._type.name} has no member {name!r}; it has {', '.join(shape.members) or 'none'}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Write a member's value, a number or an address, into guest memory.

        Raises:
            AttributeError: the type has no such member.
            Unsupported: where the member is is not known, or the value is not in memory.
            BadArgument: the value cannot be written as the member's type.
            GuestFault: memory cannot be read or written.
        """
        member = _struct(self._type).members.get(name)
        if member is None:
            virtual = _struct(self._type).virtual.get(name)
            if virtual is None:
                self._lacks(name)
            self._at_base(virtual)._write(virtual.member, value)
        else:
            self._write(member, value)

    def _write(self, member: Member, value: Any) -> None:
        """Write a member into guest memory; of a bit field, only its bits.

        Args:
            member: a member of the View's type.
            value: a number; a View, whose address is written; of an array what store() takes.

        Raises:
            BadArgument: the value cannot be written as the member's type.
            GuestFault: memory cannot be read or written.
            Unsupported: the value is not in memory.
        """
        address, type = self._address + member.offset, member.type
        if member.bits:
            look(member.name, value)
            if type.kind == "bool":
                value = int(value != 0)
            look_at_width(member.name, value, member.bits, _SMALLER)
            mask = (1 << member.bits) - 1 << member.shift
            raw = self._unit(member) & ~mask | value << member.shift & mask
            self._machine.write(
                address & self._machine.arch.mask,
                raw.to_bytes(member.unit, self._machine.arch.order.value),
            )
        else:
            store(self._machine, type, address, value)

    def __getitem__(self, key: int | str) -> Any:
        """Read a member by its name, or an element of an array or behind a pointer by its index.

        Args:
            key: the name, or the index; what an index of a pointer reads has no bounds.

        Returns:
            A number, or a View.

        Raises:
            IndexError: an array has no such element.
            BadArgument: the type has no elements.
            AttributeError, Unsupported, GuestFault: as __getattr__() of a member that cannot be
                read.
        """
        if isinstance(key, str):
            return View.__getattr__(self, key)
        return load(self._machine, *self._element(key))

    def __setitem__(self, key: int | str, value: Any) -> None:
        """Write a member by its name, or an element of an array or behind a pointer by its index.

        Args:
            key: the name, or the index; what an index of a pointer writes has no bounds.
            value: a number; a View, whose address is written; of an array what store() takes.

        Raises:
            IndexError: an array has no such element.
            BadArgument: the type has no elements, or the value cannot be written as theirs.
            AttributeError, Unsupported, GuestFault: as __setattr__() of a member.
        """
        if isinstance(key, str):
            View.__setattr__(self, key, value)
        else:
            store(self._machine, *self._element(key), value)

    def _at(self, type: CType, address: int) -> Any:
        """Return what lies at an address of the guest, or of the same Held.

        Args:
            type: of what lies there.
            address: of its first byte.

        Raises:
            GuestFault, BadArgument, Unsupported: as load().
        """
        return load(self._machine, type, address)

    def _element(self, key: int) -> tuple[CType, int]:
        """Return the type and the address of an element of an array, or behind a pointer.

        Args:
            key: the index.

        Raises:
            IndexError: an array has no such element.
            BadArgument: the type has no elements, or the index is no integer.
        """
        look("index", key)
        target, count = self._type.target, self._type.count
        if target is None or not target.size:
            raise BadArgument(
                f"{self._type.name} has no elements", hint="index arrays and pointers"
            )
        if self._type.kind == "array" and self._type.bounded and not 0 <= key < count:
            raise IndexError(f"{self._type.name} has elements 0 to {count - 1}")
        return target, self._address + key * target.size

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the elements of an array, or the names of a structure's members.

        Raises:
            TypeError: it is neither.
        """
        if _is_mapping(self._type):
            return iter(self.__dir__())
        return (self[n] for n in range(len(self)))

    def __len__(self) -> int:
        """Return the number of elements of an array, or of members of a structure.

        Raises:
            TypeError: it is neither.
        """
        if _is_mapping(self._type):
            return len(self.__dir__())
        if self._type.kind != "array":
            raise TypeError(f"{self._type.name} has no length")
        return int(self._type.count)

    def __bool__(self) -> bool:
        """Return False for a null pointer, True for everything else."""
        return bool(self._type.kind != "pointer" or self._address != 0)

    def __int__(self) -> int:
        return int(self._address)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return bool(self._address == (int(other) if isinstance(other, View | int) else None))

    def __hash__(self) -> int:
        return hash(self._address)

    def __dir__(self) -> list[str]:
        """Return the names of the members, those of virtual bases and of a Rust variant
        included.
        """
        active = self.variant
        shape = _struct(self._type)
        return [*shape.members, *shape.virtual, *([] if active is None else [active.name])]

    def __bytes__(self) -> bytes:
        """Read the text of a char array or pointer, up to its NUL; of all else its memory.

        Of a pointer to something else that is the memory of what it points at. A text without
        bounds ends after 4096 bytes.

        Raises:
            GuestFault: memory cannot be read.
        """
        target = self._type.target
        if target is not None and target.kind == "char":
            return self._text(self._room(4096))
        return bytes(
            self._machine.read(
                self._address,
                self._type.size if self._type.kind != "pointer" or target is None else target.size,
            )
        )

    def _room(self, most: int) -> int:
        """Return how many bytes a text may have: those of the array, or `most` where it has no
        bounds.
        """
        return self._type.count if self._type.kind == "array" and self._type.bounded else most

    def _text(self, limit: int) -> bytes:
        """Read the bytes of a text up to its NUL.

        Args:
            limit: how many bytes are read at most.

        Raises:
            GuestFault: memory cannot be read.
        """
        out = b""
        while len(out) < limit and b"\0" not in out:
            at = self._address + len(out)
            out += self._machine.read(at, min(64 - at % 64, limit - len(out)))
        return out.partition(b"\0")[0]

    def __str__(self) -> str:
        """Return the text of a char array or pointer; of anything else the repr."""
        target = self._type.target
        return (
            bytes(self).decode("utf-8", "backslashreplace")
            if target is not None and target.kind == "char"
            else repr(self)
        )

    def __repr__(self) -> str:
        where = "in registers" if isinstance(self._machine, Held) else f"{self._address:#x}"
        return f"({self._type.name}) {where}{self._shown()}"

    def _shown(self, depth: int = 0) -> str:
        """Return the value as the repr ends: " " and a text in quotes, a number, or elements or
        members in braces.

        " (fault)" and " (not kept)" stand for a value that cannot be read; "" for a null pointer's.

        Args:
            depth: how many objects this one is a part of.
        """
        try:
            target = self._type.target
            if target is not None and target.kind == "char":
                room = self._room(LONGEST)
                return f' "{self._text(min(room, LONGEST)).decode("latin-1").translate(CONTROLS)}"'
            if self._type.kind == "array":
                items = ", ".join(self._item(n, depth) for n in range(min(len(self), SHOWN)))
                return f" {{{items}{', ...' * (len(self) > SHOWN)}}}"
            if self._type.kind in SCALARS:
                return f" {load(self._machine, self._type, self._address)}"
            known = library_type(_struct(self._type)) if self else None
            if known is not None:
                with suppress(NotLaidOut):
                    there = View(self._machine, _struct(self._type), self._address)
                    return f" {_joined(known.read(_TextReader(), there, depth))}"
            members = self.__dir__() if self else []
            return (
                f" {{{', '.join(f'{name} = {self._item(name, depth)}' for name in members)}}}"
                if members
                else ""
            )
        except GuestFault:
            return " (fault)"
        except Unsupported:
            return " (not kept)"

    def _item(self, key: int | str, depth: int) -> str:
        """Return an element (int) or member (str) as a repr has it; "?": it cannot be read.

        Args:
            key: of the element or member.
            depth: how many objects this one is a part of.

        Raises:
            GuestFault: memory cannot be read, and the member is not one of a virtual base.
        """
        try:
            return _brief(self[key], depth + 1)
        except Unsupported:
            return "?"
        except GuestFault:
            if key in _struct(self._type).virtual:
                return "?"
            raise

    def _unit(self, member: Member) -> int:
        """Read the bytes that a bit field is in, as an unsigned number in the guest's byte order.

        Raises:
            BadArgument: they are more than LARGEST: the debug information is damaged.
            GuestFault: memory cannot be read.
        """
        if member.unit > LARGEST:
            raise BadArgument(
                f"a bit field of {member.unit} bytes", hint="its debug information is damaged"
            )
        data = self._machine.read(
            self._address + member.offset & self._machine.arch.mask, member.unit
        )
        return int.from_bytes(data, self._machine.arch.order.value)

    def _read(self, member: Member) -> Any:
        """Read a member of the object: a number or a View; of a bit field, the number of its bits.

        Raises:
            GuestFault: memory cannot be read.
            BadArgument, Unsupported: the member is too large, or a number of a format that is not
                known.
        """
        if not member.bits:
            return load(self._machine, member.type, self._address + member.offset)
        value = self._unit(member) >> member.shift & (1 << member.bits) - 1
        if member.type.kind == "bool":
            return bool(value)
        return value - (value >> member.bits - 1 << member.bits) if member.type.signed else value


class _TextReader:
    """Makes texts, as a repr has them, of what values of a library consist of.

    In all methods `depth` is how many objects a value is a part of.
    """

    def whole(self, value: Any, depth: int) -> str:
        """Return a value as one short text."""
        return _brief(value, depth)

    def text(self, value: View, at: int, size: int, width: int = 1) -> str:
        """Return the text of a library's string in quotes, cut at LONGEST bytes.

        Args:
            value: a View, from whose machine the memory is read.
            at: address of the first byte.
            size: characters of the text, as the library counts them.
            width: bytes of each.

        Raises:
            GuestFault: memory cannot be read.
        """
        read = library_text(value, at, size, width, LONGEST)
        return "?" if read is None else f'"{read.translate(CONTROLS)}"'

    def elements(
        self, value: View, element: CType, at: int, count: int, depth: int
    ) -> tuple[str, ...]:
        """Return the elements of a list that lie behind each other, at most SHOWN and "...".

        Args:
            value: a View, from whose machine the memory is read.
            element: type of each.
            at: address of the first one.
            count: how many the list has.
            depth: of the list.

        Raises:
            GuestFault: memory cannot be read.
        """
        size = element.size
        return self.items((value._at(element, at + n * size) for n in range(count)), depth)

    def items(self, items: Iterator[Any], depth: int) -> tuple[str, ...]:
        """Return the elements of a list, at most SHOWN and "...".

        Args:
            items: the elements, numbers or Views.
            depth: of the list.

        Raises:
            GuestFault: memory cannot be read.
        """
        found = [_brief(item, depth + 1) for item in islice(items, SHOWN + 1)]
        return (*found[:SHOWN], CUT) if len(found) > SHOWN else tuple(found)

    def pairs(self, pairs: Iterator[tuple[Any, Any]], depth: int) -> tuple[str, ...]:
        """Return pairs as texts `{FIRST, SECOND}`, at most SHOWN and "...".

        Args:
            pairs: two values each, numbers or Views.
            depth: of the list that has them.

        Raises:
            GuestFault: memory cannot be read.
        """
        found = [
            f"{{{_brief(first, depth + 2)}, {_brief(second, depth + 2)}}}"
            for first, second in islice(pairs, SHOWN + 1)
        ]
        return (*found[:SHOWN], CUT) if len(found) > SHOWN else tuple(found)


def _joined(value: Any) -> str:
    """Return what a library's value consists of as one text: elements in braces, an address in
    hexadecimal.
    """
    if isinstance(value, tuple):
        return f"{{{', '.join(value)}}}"
    return f"{value:#x}" if isinstance(value, int) else str(value)


def _struct(type: CType) -> CType:
    """Return the type whose members a View of `type` has: of a pointer, what it points at."""
    return type.target if type.kind == "pointer" and type.target is not None else type


def _is_mapping(type: CType) -> bool:
    """Return True if a View of a type has members: of a structure, or of a pointer to one."""
    return _struct(type).kind in ("struct", "union")


def _brief(value: Any, depth: int) -> str:
    """Return a value as one short text: a string in quotes, a number, members in braces, or the
    address of what a pointer points at, in hexadecimal.

    Args:
        value: a number, or a View.
        depth: how many objects it is a part of; from DEEPEST on its address stands for members.
    """
    if isinstance(value, View):
        kind, target = value._type.kind, value._type.target
        whole = kind in ("struct", "union", "array") and depth < DEEPEST
        is_text = target is not None and target.kind == "char"
        text = value._shown(depth) if whole or is_text else ""
        return text.strip() or f"{int(value):#x}"
    return str(value)


def _raw(machine: ViewedMemory, type: CType, address: int) -> int:
    """Read a value of a type as an unsigned number, in the type's byte order.

    Args:
        machine: has the memory.
        type: says how many bytes there are.
        address: of the first byte.

    Raises:
        GuestFault: the memory cannot be read.
        BadArgument: the type is larger than LARGEST.
    """
    if type.size > LARGEST:
        raise BadArgument(
            f"{type.name} has {type.size} bytes", hint="its debug information is damaged"
        )
    return int.from_bytes(machine.read(address & machine.arch.mask, type.size), _order(type))


def _order(type: CType) -> Any:
    return type.order


def load(machine: ViewedMemory, type: CType, address: int) -> Any:
    """Read the value of a type at an address of the guest.

    Args:
        machine: has the memory.
        type: of what lies there.
        address: of its first byte.

    Returns:
        A number; a View of a structure or array there, which is not read yet; of a pointer, a View
        with the address that the pointer has.

    Raises:
        GuestFault: the memory cannot be read.
        BadArgument: a number or pointer of more than LARGEST bytes.
        Unsupported: the type is a number of a format that is not known.
    """
    if type.kind in ("struct", "union", "array", "function", "void", "other"):
        return View(machine, type, address)
    raw = _raw(machine, type, address)
    if type.kind == "pointer":
        return View(machine.machine if isinstance(machine, Held) else machine, type, raw)
    return number(type, raw, machine.arch)


def store(machine: ViewedMemory, type: CType, address: int, value: Any) -> None:
    """Write a number, an address, or the elements of an array into guest memory.

    Args:
        machine: has the memory.
        type: of what is written there.
        address: of its first byte.
        value: the number; a View, whose address is written; of an array a list or tuple of its
            elements; of a char array also bytes or text, which becomes UTF-8. Behind these a
            terminating 0 is written where there is room.

    Raises:
        GuestFault: the memory cannot be written.
        Unsupported: `machine` stands for a variable that is not in memory (Held).
        BadArgument: the type is no number, pointer or array of them, or the value is none that
            fits.
    """
    machine.write(address & machine.arch.mask, packed(type, value, machine.arch))


def packed(type: CType, value: Any, arch: Arch) -> bytes:
    """Return the bytes that memory has of a value of a type.

    Args:
        type: the type.
        value: as store() takes it.
        arch: the guest's architecture.

    Raises:
        BadArgument: as store().
        Unsupported: the format of the type's numbers is not known.
    """
    if type.kind == "array" and type.target is not None:
        return _packed_array(type, type.target, value, arch)
    if type.kind == "float" and hasattr(value, "__float__"):
        try:
            real = float(value)
        except (OverflowError, TypeError, ValueError):  # an integer beyond the largest double
            raise _not_written(type, value) from None
        raw = real_number_bits(type, real, arch)
        if math.isfinite(real) and abs(number(type, raw, arch)) == math.inf:
            raise _not_written(type, value)
    elif type.kind == "bool" and isinstance(value, int | View):
        raw = int(int(value) != 0)  # C 6.3.1.2: whatever is not 0 becomes 1
    elif type.kind == "complex" and isinstance(value, Complex):
        try:
            parts = [float(value.real), float(value.imag)]
        except OverflowError:
            raise _not_written(type, value) from None
        return b"".join(
            real_number_bits(type, part, arch).to_bytes(type.size // 2, _order(type))
            for part in parts
        )
    elif type.kind in ("int", "char", "enum", "pointer") and hasattr(value, "__index__"):
        try:
            whole = index(value)
        except TypeError:  # an array of numpy
            raise _not_written(type, value) from None
        look_at_width(f"the value of type {type.name}", whole, 8 * type.size, _SMALLER)
        raw = whole & (1 << 8 * type.size) - 1
    else:
        raise _not_written(type, value)
    return raw.to_bytes(type.size, _order(type))


def _packed_array(type: CType, element: CType, value: Any, arch: Arch) -> bytes:
    """Return the bytes that memory has of an array: fewer than it has room for where bytes or text
    are shorter. Behind bytes and text for an array of char comes a 0, if there is room.

    Args:
        type: the array's.
        element: its elements'.
        value: as store() takes it.
        arch: the guest's architecture.

    Raises:
        BadArgument: as store(); there are more or fewer elements than the array has.
    """
    if isinstance(value, str) and element.kind == "char":
        try:
            value = value.encode()
        except UnicodeEncodeError:
            raise _not_written(type, value) from None
    if isinstance(value, bytes | bytearray) and element.size == 1:
        if type.bounded and len(value) > type.count:
            raise BadArgument(f"{len(value)} bytes do not fit into {type.name}", hint="write fewer")
        has_room = not type.bounded or len(value) < type.count
        return bytes(value) + b"\0" * (has_room and element.kind == "char")
    if not isinstance(value, list | tuple):
        raise _not_written(type, value)
    if type.bounded and len(value) != type.count:
        raise BadArgument(
            f"{type.name} has {type.count} elements, not {len(value)}",
            hint="write all of them, or single ones by their index",
        )
    return b"".join(packed(element, each, arch) for each in value)


def _not_written(type: CType, value: Any) -> BadArgument:
    """Make the error for a value that cannot be written as a type; the caller raises it."""
    return BadArgument(
        f"{shown(value)} cannot be written as {type.name}", hint="write numbers, member by member"
    )
