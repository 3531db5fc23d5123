"""Values as BTF describes them: integers, text, lists, and ctypes structures."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from ... import btf as b
from ...btf import Btf
from ..isa import signed
from ..maps import Codec, Plain

_INTEGERS: Final = {
    (1 << n, sign): letter
    for sign, letters in ((False, "BHIQ"), (True, "bhiq"))
    for n, letter in enumerate(letters)
}
_DEEP: Final = 32
#: elements of the largest array that is shown by its type
MOST: Final = 1 << 16


class StructureRecord:
    """A base of ctypes structures: compared by content, with a repr, and bitfields as attributes.

    Values makes a subclass for each structure of a program's.
    """

    _bits: ClassVar[dict[str, tuple[int, int, bool]]] = {}
    _order: ClassVar[Literal["little", "big"]] = "little"
    _shown: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return bool(bytes(self) == bytes(other))  # type: ignore[call-overload]

    def __hash__(self) -> int:
        return hash(bytes(self))  # type: ignore[call-overload]

    def __getattr__(self, name: str) -> int:
        if name not in type(self)._bits:
            raise AttributeError(
                f"{type(self).__name__} has no member {name}; it has {', '.join(self._shown)}"
            )
        offset, size, sign = type(self)._bits[name]
        raw = bytes(self)  # type: ignore[call-overload]
        above = offset  # bits of big-endian numbers count from the other end
        if self._order == "big":
            above = 8 * len(raw) - offset - size
        value = int.from_bytes(raw, self._order) >> above
        return signed(value, size) if sign else value & (1 << size) - 1

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={_text(getattr(self, name))}" for name in self._shown)
        return f"{type(self).__name__}({members})"


def _text(value: Any) -> str:
    """Return a member's value as text."""
    return str(list(value)) if isinstance(value, ctypes.Array) else repr(value)


class _Little(StructureRecord, ctypes.LittleEndianStructure):
    pass


class _Big(StructureRecord, ctypes.BigEndianStructure):
    pass


class _Union(StructureRecord, ctypes.Union):
    pass


class TypedCodec:
    """A codec for structures and arrays: their bytes <-> an instance of a ctypes type."""

    def __init__(self, kind: Any, show: Callable[[Any], Any]) -> None:
        """Prepare.

        Args:
            kind: the ctypes type.
            show: (instance of it) -> what load() returns.
        """
        self.kind = kind
        self._show = show

    def load(self, raw: bytes) -> Any:
        """Return what Python shows for bytes."""
        return self._show(self.kind.from_buffer_copy(raw))

    def store(self, value: Any) -> bytes:
        """Return the bytes of a structure or array.

        Args:
            value: an instance; bytes; the members or elements in their order; a dict member ->
                value; or a text, as str or, for an array of characters, as bytes: it is padded
                with zeros.

        Raises:
            ValueError: the bytes are too many or too few.
            TypeError, IndexError: a member or element has another type, or there are too many.
        """
        if isinstance(value, dict):
            value = self.kind(**value)
        elif isinstance(value, (tuple, list)):
            value = self.kind(*value)
        elif isinstance(value, str):
            value = value.encode().ljust(ctypes.sizeof(self.kind), b"\0")
        raw = bytes(value)
        if getattr(self.kind, "_type_", None) is ctypes.c_char:
            raw = raw.ljust(ctypes.sizeof(self.kind), b"\0")
        if len(raw) != ctypes.sizeof(self.kind):
            raise ValueError(f"{len(raw)} bytes where {ctypes.sizeof(self.kind)} are needed")
        return raw


class NumberCodec:
    """A codec for an integer, a truth value or a floating-point number."""

    def __init__(
        self, size: int, order: str, form: str, show: Callable[[Any], Any] = lambda value: value
    ) -> None:
        """Prepare.

        Args:
            size: bytes of the number.
            order: "little" or "big".
            form: the letter that the module struct has for the number.
            show: (number) -> what load() returns.
        """
        self._struct = struct.Struct(("<" if order == "little" else ">") + form)
        self._size = size
        self._order = order
        self._show = show

    def load(self, raw: bytes) -> Any:
        """Return what Python shows for bytes."""
        return self._show(self._struct.unpack(raw)[0])

    def store(self, value: Any) -> bytes:
        """Return the bytes of a number.

        Args:
            value: an integer, a truth value, a float, or the bytes themselves.

        Raises:
            BadArgument, struct.error: the number does not fit.
        """
        if isinstance(value, float):
            return self._struct.pack(value)
        return Plain(self._size, self._order).store(int(value) if isinstance(value, int) else value)


class Values:
    """Codecs, and ctypes types, for the types of one object."""

    def __init__(self, btf: Btf) -> None:
        """Prepare.

        Args:
            btf: the object's types.
        """
        self._btf = btf
        self._made: dict[int, Any] = {}

    def codec(self, number: int, key: bool = False) -> Codec:
        """Return a codec for values of a type, given by its number in the BTF.

        Python shows integers, enumerations, pointers and floats as numbers, a bool as one,
        structures, unions and arrays as instances of ctypes types, and what ctypes cannot have as
        integers or bytes (Plain).

        Args:
            number: the type's.
            key: True for keys of a map, from which their bytes must come again: text has what is
                behind a NUL, and other arrays are tuples.

        Raises:
            ValueError: types contain each other more than _DEEP deep, or a member does not fit its
                structure.
        """
        t = self._btf.plain(number)
        size = self._btf.size(number)
        if t.kind in (b.INT, b.ENUM, b.ENUM64, b.PTR, b.FLOAT) and size in (1, 2, 4, 8):
            form = self._form(t)
            boolean = t.kind == b.INT and t.items[0][0] >> 24 & 4
            return NumberCodec(size, self._btf.order, form, bool if boolean else _same)
        kind = self._ctype(number, 0) if t.kind in (b.STRUCT, b.UNION, b.ARRAY) else None
        if kind is None or ctypes.sizeof(kind) != size:
            return Plain(size, self._btf.order)
        if t.kind != b.ARRAY:
            return TypedCodec(kind, _same)
        return TypedCodec(kind, _key_elements if key else _elements)

    def structure(self, name: str) -> Any:
        """Return the ctypes structure (or union) of a name; None: the object has none of this name,
        or only a union of the other byte order, which ctypes cannot have.

        Raises:
            ValueError: its description is damaged.
        """
        numbers = (
            n
            for n, t in enumerate(self._btf.types)
            if t.kind in (b.STRUCT, b.UNION) and t.name == name
        )
        return next((made for n in numbers if (made := self._ctype(n, 0)) is not None), None)

    def names(self) -> list[str]:
        """Return the names of the structures and unions."""
        return [t.name for t in self._btf.types if t.kind in (b.STRUCT, b.UNION) and t.name]

    def _form(self, t: b.BtfType) -> str:
        """Return the letter that the module struct has for numbers of a type.

        Args:
            t: an integer, enumeration, pointer or float, without qualifiers. Pointers are 8 bytes.
        """
        if t.kind == b.FLOAT:
            return {4: "f", 8: "d"}.get(t.size, "B")
        sign = (
            t.flag
            if t.kind in (b.ENUM, b.ENUM64)
            else t.kind == b.INT and bool(t.items[0][0] >> 24 & 1)
        )
        return _INTEGERS[8 if t.kind == b.PTR else t.size, sign]

    def _ctype(self, number: int, depth: int) -> Any:
        """Return the ctypes type of a BTF type, made once; None: its values are shown as bytes.

        Shown as bytes are a union of the other byte order, an array of too many elements or of
        elements shown as bytes, and what is no structure, union, array, pointer or number of 1, 2,
        4 or 8 bytes.

        Args:
            number: the type's number in the BTF.
            depth: how many structures, unions and arrays it is in; 0: none.

        Raises:
            ValueError: types contain each other more than 32 deep, or a member does not
                fit its structure.
        """
        if depth > _DEEP:
            raise ValueError(f"BTF types contain each other more than {_DEEP} deep")
        t = self._btf.plain(number)
        if t.kind == b.UNION and self._btf.order != sys.byteorder:
            return None  # ctypes has no unions in structures of the other byte order
        if t.kind in (b.STRUCT, b.UNION):
            if number not in self._made:
                self._made[number] = self._structure(t, depth)
            return self._made[number]
        if t.kind == b.ARRAY:
            return self._array(t, depth)
        if t.kind == b.INT and t.size == 1 and t.items[0][0] >> 24 & 4:
            # ctypes has no bool in structures of the other byte order
            return ctypes.c_bool if self._btf.order == sys.byteorder else ctypes.c_uint8
        if t.kind in (b.INT, b.ENUM, b.ENUM64, b.PTR, b.FLOAT):
            return (
                _scalar(self._form(t), self._btf.order)
                if self._btf.size(number) in (1, 2, 4, 8)
                else None
            )
        return None

    def _array(self, t: b.BtfType, depth: int) -> Any:
        """Return the ctypes type of an array; None: it is shown as bytes.

        Those are arrays of more than MOST elements (but for char), and of elements that are shown
        as bytes.

        Args:
            t: the array's type.
            depth: how many structures, unions and arrays it is in; 0: none.

        Raises:
            ValueError: types contain each other more than _DEEP deep, or a member does not fit.
        """
        element, _, count = t.items[0]
        of = self._btf.plain(element)
        if (
            of.kind == b.INT
            and of.size == 1
            and (of.name in ("char", "signed char") or of.items[0][0] >> 24 & 2)
        ):
            return ctypes.c_char * count
        inner = self._ctype(element, depth + 1) if count <= MOST else None
        return None if inner is None else inner * count

    def _structure(self, t: b.BtfType, depth: int) -> Any:
        """Make the ctypes type of a structure or union; members that ctypes cannot have are bytes.
        Bit fields are no fields of ctypes': the type's `_bits` says where they are.

        Args:
            t: the structure's type.
            depth: how many structures, unions and arrays it is in; 0: none.

        Raises:
            ValueError: a member does not fit the structure's size, or types contain each other more
                than _DEEP deep.
        """
        fields: list[tuple[str, Any]] = []
        bits: dict[str, tuple[int, int, bool]] = {}
        at = 0
        for position, (name, kind, where) in enumerate(t.items):
            offset, width = (where & 0xFFFFFF, where >> 24) if t.flag else (where, 0)
            made = None if width else self._ctype(kind, depth + 1)
            if width:
                bits[name] = offset, width, self._form(self._btf.plain(kind)).islower()
                continue
            size = self._btf.size(kind)
            if made is None or ctypes.sizeof(made) != size:
                made = ctypes.c_ubyte * size
            start = offset // 8
            if t.kind == b.STRUCT and start > at:
                fields.append((f"_{at}", ctypes.c_ubyte * (start - at)))
            if start + size > t.size or (t.kind == b.STRUCT and start < at):
                raise ValueError(f"member {name} of {t.name} does not fit")
            fields.append((name or f"anonymous_{position}", made))
            at = start + size
        if t.size > at and (t.kind == b.STRUCT or not fields):
            fields.append((f"_{at}", ctypes.c_ubyte * (t.size - at)))
        base: type = _Little if self._btf.order == "little" else _Big
        if t.kind == b.UNION:
            base = _Union
        shown = tuple(name for name, *_ in t.items if name)
        hidden = [
            name
            for name, made in fields
            if name.startswith("anonymous_") and issubclass(made, StructureRecord)
        ]
        return type(
            t.name or "anonymous",
            (base,),
            {
                "_pack_": 1,
                "_layout_": "ms",
                "_anonymous_": hidden,
                "_fields_": fields,
                "_bits": bits,
                "_order": self._btf.order,
                "_shown": shown,
            },
        )


def _same(value: Any) -> Any:
    """Return the value itself: a `show` that changes nothing."""
    return value


def _elements(array: Any) -> Any:
    """Return the text of an array of characters, or a list of the elements of others."""
    return array.value if hasattr(array, "value") else list(array)


def _key_elements(array: Any) -> Any:
    """Return an array of characters as bytes without the zeros at its end, or a tuple of the
    elements of others.
    """
    return array.raw.rstrip(b"\0") if hasattr(array, "raw") else tuple(array)


def _scalar(form: str, order: str) -> Any:
    """Return the ctypes type of a number.

    Args:
        form: the letter that the module struct has for it.
        order: byte order, "little" or "big".
    """
    kind = {
        "B": ctypes.c_uint8,
        "H": ctypes.c_uint16,
        "I": ctypes.c_uint32,
        "Q": ctypes.c_uint64,
        "b": ctypes.c_int8,
        "h": ctypes.c_int16,
        "i": ctypes.c_int32,
        "q": ctypes.c_int64,
        "f": ctypes.c_float,
        "d": ctypes.c_double,
    }[form]
    return kind if order == "little" or not hasattr(kind, "__ctype_be__") else kind.__ctype_be__


class Types(Mapping[str, Any]):
    """Name -> ctypes structure of an object.

    `types["event"].from_buffer_copy(record)` reads a record.

    An object has those that its variables, maps and functions' parameters refer to. Where their
    description is damaged, looking them up raises ProgramError.
    """

    def __init__(self, values: Values | None = None) -> None:
        """Prepare.

        Args:
            values: makes the structures of the object; None: there are none.
        """
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if self._values is None:
            raise KeyError(name)
        from .elf import damage_is_error  # what reads no object does without its parser

        with damage_is_error(name):
            found = self._values.structure(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._values.names() if self._values else ())

    def __len__(self) -> int:
        return len(list(iter(self)))
