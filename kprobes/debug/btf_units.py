"""BTF as DWARF: the types and functions of a kernel that has no debug information.

The types of a section .BTF, or of a file such as /sys/kernel/btf/vmlinux, become the entries of one
unit of DWARF 4, so that whoever reads DWARF finds them. Where functions are, BTF does not say:
symbols do. It says nothing of lines, and of parameters no places: they are where the calling
convention has them. Types of the kernel that a module names are declarations, which the kernel's
own file defines.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

from .. import btf as b
from ..btf import Btf, BtfType, byte_order
from ..image import LoadedFile, Symbol
from .file import DAMAGE, SECTIONS, cached, elf_of

#: DW_AT_producer of the unit
PRODUCER: Final = "BTF"
#: DW_TAG
_ARRAY_TYPE, _ENUMERATION, _PARAMETER, _POINTER, _UNIT = 0x01, 0x04, 0x05, 0x0F, 0x11
_STRUCTURE, _SUBROUTINE, _TYPEDEF, _UNION, _UNSPECIFIED = 0x13, 0x15, 0x16, 0x17, 0x18
_SUBRANGE, _BASE, _CONST, _ENUMERATOR, _FUNCTION = 0x21, 0x24, 0x26, 0x28, 0x2E
_VOLATILE, _RESTRICT, _MEMBER = 0x35, 0x37, 0x0D
#: DW_AT
_NAME, _SIZE, _LOW, _HIGH, _LANGUAGE, _CONST_VALUE = 0x03, 0x0B, 0x11, 0x12, 0x13, 0x1C
_PRODUCER, _PROTOTYPED, _COUNT, _PLACE, _DECLARATION = 0x25, 0x27, 0x37, 0x38, 0x3C
_ENCODING, _EXTERNAL, _TYPE, _BITS, _BIT_OFFSET = 0x3E, 0x3F, 0x49, 0x0D, 0x6B
#: DW_FORM
_AS_ADDRESS, _DATA4, _DATA8, _STRING, _DATA1, _SDATA, _REF4, _FLAG = (
    0x01,
    0x06,
    0x07,
    0x08,
    0x0B,
    0x0D,
    0x13,
    0x19,
)
#: DW_ATE: boolean, float, signed, signed_char, unsigned, unsigned_char
_BOOLEAN, _FLOAT, _SIGNED, _SIGNED_CHAR, _UNSIGNED, _UNSIGNED_CHAR = 2, 4, 5, 6, 7, 8
_C99: Final = 0x0C
_QUALIFIERS: Final = {
    b.PTR: _POINTER,
    b.TYPEDEF: _TYPEDEF,
    b.VOLATILE: _VOLATILE,
    b.CONST: _CONST,
    b.RESTRICT: _RESTRICT,
}
#: kinds of which a module names those of its kernel by a declaration
_DECLARED: Final = {
    b.STRUCT: _STRUCTURE,
    b.UNION: _UNION,
    b.ENUM: _ENUMERATION,
    b.ENUM64: _ENUMERATION,
}
#: name -> (link address, bytes) of each function
Functions = Mapping[str, Sequence[tuple[int, int]]]


def btf_of(file: LoadedFile, others: Sequence[LoadedFile]) -> Btf | None:
    """Return a file's BTF types, decoded; those of a module count on from the kernel's.

    Types that are understood without another file are kept in the file's cache.

    Args:
        file: an ELF file, or one of BTF only.
        others: the guest's other files. Where `file` cannot be understood alone, each of them is
            tried as the kernel that its numbers of types count on from; the first that fits is
            taken.

    Returns:
        The types; None where the file has no BTF, or it is damaged.
    """
    data = _contents(file)
    order = byte_order(data)
    if order is None:
        return None
    try:
        return cached(file, "btf", lambda: Btf(data, order))
    except DAMAGE:
        pass
    for other in others:
        if other is file or byte_order(_contents(other)) != order:
            continue
        try:
            base = cached(other, "btf", lambda other=other: Btf(_contents(other), order))  # type: ignore[misc]
            return Btf(data, order, base)
        except DAMAGE:
            continue
    return None


def _contents(file: LoadedFile) -> bytes:
    """Return a file's BTF: the file itself, or its section .BTF; b"" where it has none or is
    damaged.
    """
    if byte_order(file.data) is not None:
        return file.data
    try:
        return cached(file, "btf section", lambda: _section(file))
    except DAMAGE:
        return b""


def _section(file: LoadedFile) -> bytes:
    """Return the contents of a file's section .BTF; b"" where it has none."""
    section = elf_of(file).get_section_by_name(".BTF")
    return b"" if section is None else bytes(section.data())


def identity_of_btf(
    file: LoadedFile, others: Sequence[LoadedFile], symbols: Iterable[Symbol], bits: int
) -> bytes:
    """Return a digest of all that entries_of_btf() makes a file's entries from.

    Equal digests mean equal entries, so that those made before can be taken again.

    Args:
        file: an ELF file, or one of BTF only.
        others: the guest's other files, one of which may be the kernel of a module.
        symbols: the file's symbols, which say where functions are.
        bits: of an address.

    Returns:
        20 bytes; b"" where the file has no BTF.
    """
    if byte_order(_contents(file)) is None:
        return b""
    digest = hashlib.blake2b(f"{bits} {file.bias} {len(others)}".encode(), digest_size=20)
    for each in (file, *others):
        data = _contents(each)
        digest.update(len(data).to_bytes(8, "little") + data)
    places = [f"{symbol.name} {symbol.address:x} {symbol.size:x}" for symbol in symbols]
    digest.update("\n".join(places).encode("utf-8", "surrogatepass"))
    return digest.digest()


def entries_of_btf(types: Btf, functions: Functions, bits: int) -> tuple[bytes, bytes]:
    """Write BTF types as DWARF: one unit, with an entry for each type and for each known function.

    Args:
        types: the types.
        functions: name -> (link address, bytes) of each function of this name; a function of BTF
            that is not here gets no entry.
        bits: of an address.

    Returns:
        (contents of .debug_info, contents of .debug_abbrev).

    Raises:
        errors in DAMAGE: the types are damaged.
    """
    return _Writer(types, functions, bits // 8).run()


def info_of_entries(entries: tuple[bytes, bytes], file: LoadedFile, bits: int) -> DWARFInfo:
    """Wrap the sections that entries_of_btf() wrote as pyelftools' view of DWARF.

    Args:
        entries: (contents of .debug_info, contents of .debug_abbrev).
        file: the file of the types; it gives the byte order.
        bits: of an address.
    """
    config = DwarfConfig(byte_order(_contents(file)) == "little", "", bits // 8)
    sections: dict[str, Any] = dict.fromkeys(SECTIONS)
    sections["debug_info_sec"] = _descriptor(entries[0])
    sections["debug_abbrev_sec"] = _descriptor(entries[1])
    return DWARFInfo(config, **sections)


def _descriptor(data: bytes) -> DebugSectionDescriptor:
    """Wrap the contents of a section as pyelftools' description of one, without name and
    address.
    """
    return DebugSectionDescriptor(io.BytesIO(data), "", None, len(data), 0)


#: entries that are named and have a type, as _Writer has their shapes
_PARAMETER_SHAPE: Final = (_PARAMETER, False, ((_NAME, _STRING), (_TYPE, _REF4)))
_MEMBER_SHAPE: Final = (_MEMBER, False, ((_NAME, _STRING), (_TYPE, _REF4), (_PLACE, _DATA4)))


class _Writer:
    """Writes BTF types as the two sections of DWARF that entries_of_btf() returns.

    Entries are the unit's, those of the file's own types in their order, then types of the kernel
    that they refer to. References are left as zeros and written by _fill(), when all have offsets.

    Args:
        types: the types.
        functions: name -> (link address, bytes) of each function of this name.
        word: bytes of an address.
    """

    def __init__(self, types: Btf, functions: Functions, word: int) -> None:
        self._btf = types
        self._functions = functions
        self._word = word
        self._order = types.order
        self._out = bytearray()
        self._sizes = {_DATA1: 1, _DATA4: 4, _DATA8: 8, _AS_ADDRESS: word}
        self._codes: dict[
            tuple[int, bool, tuple[tuple[int, int], ...]], bytes
        ] = {}  # number of each abbreviation
        self._starts: dict[int, int] = {}  # number of a type -> offset of its entry
        self._holes: list[tuple[int, int]] = []  # (offset of a reference, number of the type)

    def run(self) -> tuple[bytes, bytes]:
        """Write everything; called once.

        Returns:
            (contents of .debug_info, contents of .debug_abbrev).

        Raises:
            errors in DAMAGE: the types are damaged.
        """
        out = self._out
        out += bytes(4) + self._number(4, 2) + bytes(4) + bytes([self._word])
        self._entry(_UNIT, [(_PRODUCER, _STRING, PRODUCER), (_LANGUAGE, _DATA1, _C99)], True)
        for number in range(self._btf.own, len(self._btf.types)):
            if (
                self._btf.types[number].kind != b.FUNC_PROTO
            ):  # those that pointers point at are written by _fill()
                self._type(number)
        self._fill()
        out.append(0)
        out[:4] = self._number(len(out) - 4, 4)
        return bytes(out), self._abbreviations()

    def _number(self, value: int, size: int) -> bytes:
        """Return a number as `size` bytes in the guest's byte order."""
        return value.to_bytes(size, self._order)

    def _fill(self) -> None:
        """Write the references that are still zeros.

        A type that has no entry yet is written now, at the end: a function's type that a pointer
        points at, or a type of the kernel.

        Raises:
            ValueError: a reference is to a type that does not exist.
        """
        reference = struct.Struct("<I" if self._order == "little" else ">I")
        while self._holes:
            holes, self._holes = self._holes, []
            for at, number in holes:
                if number not in self._starts:
                    if not 0 < number < len(self._btf.types):
                        raise ValueError(f"there is no BTF type {number}")
                    self._type(number, shared=True)
                # a kind that is no type, as a variable, is what nobody can refer to
                reference.pack_into(self._out, at, self._starts[number])

    def _entry(
        self, tag: int, attributes: list[tuple[int, int, Any]], children: bool = False
    ) -> int:
        """Append an entry to .debug_info. References get their bytes later, from _fill().

        Args:
            tag: DW_TAG.
            attributes: (DW_AT, DW_FORM, value) of each; the value of a reference is the BTF number
                of the type. One to void is left out: void has no entry.
            children: True where the caller writes entries within this one next, and a 0 behind
                them.

        Returns:
            The entry's offset in .debug_info.
        """
        out = self._out
        at = len(out)
        written = [
            each for each in attributes if each[1] != _REF4 or self._plain(each[2])
        ]  # void has no entry
        out += self._code((tag, children, tuple([each[:2] for each in written])))
        for _, form, value in written:
            if form == _STRING:
                out += value.encode("utf-8", "backslashreplace") + b"\0"
            elif form == _REF4:
                self._holes.append((len(out), self._plain(value)))
                out += b"\0\0\0\0"
            elif form == _SDATA:
                out += _leb(value, signed=True)
            elif form != _FLAG:
                out += value.to_bytes(self._sizes[form], self._order)
        return at

    def _code(self, shape: tuple[int, bool, tuple[tuple[int, int], ...]]) -> bytes:
        """Return the number of an abbreviation as LEB128: the first bytes of each of its entries.

        A shape that is new gets the next number, and an abbreviation in _abbreviations().

        Args:
            shape: (DW_TAG, whether entries within it follow, (DW_AT, DW_FORM) of each attribute).
        """
        code = self._codes.get(shape)
        if code is None:
            code = self._codes[shape] = _leb(len(self._codes) + 1)
        return code

    def _named_entry(self, shape: Any, name: str, number: int, more: bytes = b"") -> bool:
        """Append an entry that has a name and a type, as most of a kernel's have; quicker than
        _entry().

        Args:
            shape: (DW_TAG, whether entries within it follow, (DW_AT, DW_FORM) of each attribute),
                whose first two attributes are the name and the type.
            name: the name.
            number: of the type.
            more: bytes of the other attributes' values.

        Returns:
            True: it is written. False: nothing is, since the name is empty or the type is void.
        """
        target = self._plain(number)
        if not target or not name:
            return False
        out = self._out
        out += self._code(shape) + name.encode("utf-8", "backslashreplace") + b"\0\0\0\0\0"
        self._holes.append((len(out) - 4, target))
        out += more
        return True

    def _plain(self, number: int) -> int:
        """Follow a type's tags (btf_type_tag, which DWARF does not have) to the type within them.

        Args:
            number: of a type, tagged or not.

        Returns:
            The number of the first type that is no tag.

        Raises:
            ValueError: there is no type of this number, or tags refer to each other in a ring.
        """
        types = self._btf.types
        if 0 <= number < len(types) and types[number].kind != b.TYPE_TAG:
            return number
        for _ in range(64):
            if not 0 <= number < len(self._btf.types):
                raise ValueError(f"there is no BTF type {number}")
            if self._btf.types[number].kind != b.TYPE_TAG:
                return number
            number = self._btf.types[number].size
        raise ValueError("BTF types refer to each other in a ring")

    def _type(self, number: int, shared: bool = False) -> None:
        """Append the entries of a type, and note its offset for _fill(). Of a function: one at each
        of its addresses, to which nothing refers.

        Args:
            number: of the type.
            shared: True where _fill() writes it for a reference: a function's type, or a type of
                the kernel, to which a module refers. A named structure, union or enumeration is
                then only declared.

        Raises:
            errors in DAMAGE: the type is damaged.
        """
        each = self._btf.types[number]
        if each.kind == b.FUNC and not shared:
            for start, size in self._functions.get(each.name, ()):
                self._function(each, start, size)
            return
        at = len(self._out)
        name: list[tuple[int, int, Any]] = [(_NAME, _STRING, each.name)] if each.name else []
        if shared and each.kind in _DECLARED and each.name:
            self._entry(_DECLARED[each.kind], [*name, (_DECLARATION, _FLAG, True)])
        elif each.kind in _QUALIFIERS:
            self._entry(_QUALIFIERS[each.kind], [*name, self._reference(each.size)])
        elif each.kind == b.FWD:
            self._entry(_UNION if each.flag else _STRUCTURE, [*name, (_DECLARATION, _FLAG, True)])
        elif each.kind in (b.STRUCT, b.UNION):
            self._structure(each, name)
        elif each.kind in (b.ENUM, b.ENUM64):
            self._enumeration(each, name)
        elif each.kind in (b.INT, b.FLOAT):
            encoding = _FLOAT if each.kind == b.FLOAT else _encoding(each)
            self._entry(_BASE, [*name, (_SIZE, _DATA4, each.size), (_ENCODING, _DATA1, encoding)])
        elif each.kind == b.ARRAY:
            self._array(each)
        elif each.kind == b.FUNC_PROTO:
            self._entry(_SUBROUTINE, [self._reference(each.size), (_PROTOTYPED, _FLAG, True)], True)
            self._parameters(each)
        else:
            self._entry(_UNSPECIFIED, name)
        self._starts[number] = at

    @staticmethod
    def _reference(number: int) -> tuple[int, int, Any]:
        """Return the attribute "type" as _entry() takes it: (DW_AT_type, DW_FORM_ref4, number of
        the type).
        """
        return _TYPE, _REF4, number

    def _function(self, function: BtfType, start: int, size: int) -> None:
        """Append the entries of a function and its parameters.

        Args:
            function: the BTF type, of kind FUNC.
            start: its link address.
            size: its bytes.

        Raises:
            ValueError: it has no prototype.
        """
        prototype = self._btf.types[function.size]
        if prototype.kind != b.FUNC_PROTO:
            raise ValueError("a BTF function has no prototype")
        self._entry(
            _FUNCTION,
            [
                (_NAME, _STRING, function.name),
                (_EXTERNAL, _FLAG, True),
                (_PROTOTYPED, _FLAG, True),
                (_LOW, _AS_ADDRESS, start),
                (_HIGH, _DATA8, size),
                self._reference(prototype.size),
            ],
            True,
        )
        self._parameters(prototype)

    def _parameters(self, prototype: BtfType) -> None:
        """Append an entry for each parameter of a prototype, and the 0 that ends them. The `...` of
        a variadic function is left out.
        """
        for name, number in prototype.items:
            # the last one of a function with `...` is void
            if number and not self._named_entry(_PARAMETER_SHAPE, name, number):
                self._entry(_PARAMETER, [(_NAME, _STRING, name), self._reference(number)])
        self._out.append(0)

    def _structure(self, each: BtfType, name: list[tuple[int, int, Any]]) -> None:
        """Append the entries of a structure or union and of its members. A member of fewer bits
        than its integer type has becomes a bit field.

        Args:
            each: the BTF type.
            name: [] or one attribute as _entry() takes it: (DW_AT_name, DW_FORM_string, name).
        """
        self._entry(
            _UNION if each.kind == b.UNION else _STRUCTURE,
            [*name, (_SIZE, _DATA4, each.size)],
            True,
        )
        for member, number, where in each.items:
            offset, bits = (where & 0xFFFFFF, where >> 24) if each.flag else (where, 0)
            plain = self._btf.plain(number)
            if (
                plain.kind == b.INT and not bits
            ):  # an integer of fewer bits than its bytes have is a bit field
                about = plain.items[0][0]
                own = about & 0xFF
                bits = own if own != 8 * plain.size or offset % 8 else 0
                offset += about >> 16 & 0xFF if bits else 0
            if not bits and self._named_entry(
                _MEMBER_SHAPE, member, number, self._number(offset // 8, 4)
            ):
                continue
            shown: list[tuple[int, int, Any]] = [(_NAME, _STRING, member)] if member else []
            place = (
                [(_BITS, _DATA4, bits), (_BIT_OFFSET, _DATA4, offset)]
                if bits
                else [(_PLACE, _DATA4, offset // 8)]
            )
            self._entry(_MEMBER, [*shown, self._reference(number), *place])
        self._out.append(0)

    def _enumeration(self, each: BtfType, name: list[tuple[int, int, Any]]) -> None:
        """Append the entries of an enumeration and of its values.

        Args:
            each: the BTF type.
            name: [] or one attribute as _entry() takes it: (DW_AT_name, DW_FORM_string, name).
        """
        self._entry(_ENUMERATION, [*name, (_SIZE, _DATA4, each.size)], True)
        width = 64 if each.kind == b.ENUM64 else 32
        for item in each.items:
            value = item[1] | (item[2] << 32 if each.kind == b.ENUM64 else 0)
            if each.flag:
                value -= value >> width - 1 << width
            self._entry(_ENUMERATOR, [(_NAME, _STRING, item[0]), (_CONST_VALUE, _SDATA, value)])
        self._out.append(0)

    def _array(self, each: BtfType) -> None:
        """Append an array's entry, with one for each dimension: in BTF it is an array of arrays. A
        dimension of 0 elements is written without a count.

        Raises:
            ValueError: the type of its elements does not exist.
        """
        counts: list[int] = []
        element = each
        number = 0
        while element.kind == b.ARRAY and len(counts) < 64:
            number, _, count = element.items[0]
            counts.append(count)
            if not 0 <= number < len(self._btf.types):
                raise ValueError(f"there is no BTF type {number}")
            element = self._btf.types[number]
        self._entry(_ARRAY_TYPE, [self._reference(number)], True)
        for count in counts:
            # `[]` and `[0]` are the same in BTF; of the first gdb shows no elements either
            self._entry(_SUBRANGE, [(_COUNT, _DATA4, count)] if count else [])
        self._out.append(0)

    def _abbreviations(self) -> bytes:
        """Return the contents of .debug_abbrev: the abbreviations to which _code() has given
        numbers.
        """
        out = bytearray()
        for (tag, children, attributes), code in self._codes.items():
            out += code + _leb(tag) + bytes([children])
            for name, form in attributes:
                out += _leb(name) + _leb(form)
            out += b"\0\0"
        return bytes(out + b"\0")


def _encoding(each: BtfType) -> int:
    """Return the DW_ATE number (signed, unsigned, a character's, boolean) of a BTF integer.

    BTF's word on it has the encoding in bits 24 to 27, then the offset in bits, then the bits. An
    integer of one byte is a character if its name has "char" in it.

    Args:
        each: the BTF type, of kind INT.
    """
    encoding = each.items[0][0] >> 24 & 15
    if encoding & 4:
        return _BOOLEAN
    # BTF's sign for characters, bit 1, is set by nobody: their names say it
    is_char = each.size == 1 and "char" in each.name
    if encoding & 1:
        return _SIGNED_CHAR if is_char else _SIGNED
    return _UNSIGNED_CHAR if is_char else _UNSIGNED


def _leb(number: int, signed: bool = False) -> bytes:
    """Return a number as LEB128.

    Args:
        number: the number.
        signed: True for signed LEB128.
    """
    out = bytearray()
    while True:
        byte = number & 0x7F
        number >>= 7
        if (number == 0 and not (signed and byte & 0x40)) or (
            number == -1 and signed and byte & 0x40
        ):
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)
