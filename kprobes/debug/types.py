"""C types, of DWARF's entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from attrs import evolve, frozen

from ..arch._base import Arch
from .file import DAMAGE, children, text
from .signatures import entry_by_signature, type_entry

KINDS = {
    "base_type": "int",
    "pointer_type": "pointer",
    "reference_type": "pointer",
    "rvalue_reference_type": "pointer",
    "structure_type": "struct",
    "class_type": "struct",
    "union_type": "union",
    "enumeration_type": "enum",
    "array_type": "array",
    "subroutine_type": "function",
}
TRANSPARENT = (
    "typedef",
    "const_type",
    "volatile_type",
    "restrict_type",
    "atomic_type",
    "immutable_type",
    "packed_type",
)
#: DW_ATE: numbers of encodings (7.8); those that are not here are of kind "other"
_ENCODINGS = {
    2: "bool",
    3: "complex",
    4: "float",
    **dict.fromkeys((1, 5, 6, 7, 8, 0x10, 0x11, 0x12), "int"),
}
#: forms whose value is a constant (7.5.5); a reference is a number, too
_CONSTANT = (
    "DW_FORM_data1",
    "DW_FORM_data2",
    "DW_FORM_data4",
    "DW_FORM_data8",
    "DW_FORM_sdata",
    "DW_FORM_udata",
    "DW_FORM_implicit_const",
)
#: forms in which compilers write the upper bound -1 -> how it reads. In a form of one or two bytes
#: the same bits are 255 and 65,535: `char text[256]`.
_ONES = {
    "DW_FORM_data4": 0xFFFF_FFFF,
    "DW_FORM_data8": 0xFFFF_FFFF_FFFF_FFFF,
}
_TABLE = [0x12, 0x06]  #: DW_OP_dup, DW_OP_deref
_BELOW = [0x1C, 0x06, 0x22]  #: DW_OP_minus, DW_OP_deref, DW_OP_plus
DEEPEST = 64  #: types within types
MOST = 20_000  #: members of a type, and of those within it


@frozen
class Member:
    """A member of a structure.

    Attributes:
        name: of the member; "" for a base class or an anonymous structure.
        type: of the member.
        offset: of its first byte.
        bits: width of a bit field; 0: it is none.
        shift: lowest bit of a bit field in the guest's number of `unit` bytes at the offset.
        unit: bytes in which a bit field lies.
        alignment: bytes of which the program asks that its addresses are multiples; 1: it does not
            ask.
    """

    name: str
    type: CType
    offset: int
    bits: int = 0
    shift: int = 0
    unit: int = 0
    alignment: int = 1


@frozen
class VirtualMember:
    """A member of a virtual base class; where the base is, each object says in memory.

    Attributes:
        bases: the way from the object to the base, as steps (bytes to the part that has a table of
            virtual functions, bytes from that table down to the word that has the distance from
            the part to the base).
        base: offset of the base's entry: ways to the same base lead to the same place.
        member: the member, whose offset counts from the base.
    """

    bases: tuple[tuple[int, int], ...]
    base: int
    member: Member


@frozen
class Variants:
    """The variants of an enumeration of Rust.

    Attributes:
        discriminant: the number that says which variant it is; None: there is only one variant.
        members: value of the discriminant -> the variant; the key None is for all other values.
    """

    discriminant: Member | None
    members: Mapping[int | None, Member]


class CType:
    """A C, C++ or Rust type of the guest, read from its entry of debug information when asked for.

    Attributes:
        name: as C writes it.
        kind: "int", "float", "complex", "bool", "char", "pointer", "struct", "union", "enum",
            "array", "function", "void", or "other": something whose values are not understood.
        size: bytes; 0 where unknown.
        signed: of numbers.
    """

    def __init__(
        self,
        die: Any,
        word: int,
        order: str,
        find: Callable[[Any], CType | None],
        depth: int = 0,
        budget: list[int] | None = None,
    ) -> None:
        """Wrap an entry, and follow its qualifiers and typedefs to the type itself; an entry that
        only has a signature is replaced by that type unit's.

        Args:
            die: the type's entry, None for void.
            word: bytes of a pointer.
            order: the guest's byte order, "little" or "big".
            find: entry of a declaration -> its definition; None where there is none.
            depth: how many types this one is nested in; ends damaged files' endless nesting.
            budget: [how many members may still be read], shared with the types within; None: MOST.
        """
        self._word = word
        self._order = order
        self._find = find
        self._depth = depth
        self._die = die
        self._budget = [MOST] if budget is None else budget
        self.alias = ""
        while self._die is not None and (tag := _tag(self._die)) in TRANSPARENT and depth < DEEPEST:
            self.alias = self.alias or (text(self._die, "DW_AT_name") if tag == "typedef" else "")
            self._die, depth = _type_of(self._die), depth + 1
        if self._die is not None and "DW_AT_signature" in self._die.attributes:
            with suppress(*DAMAGE):  # where no unit has it, the declaration is what is known
                self._die = entry_by_signature(self._die)

    def _other(self, die: Any) -> CType:
        """Make the type of another entry, nested one level deeper in this one; void for None."""
        return CType(die, self._word, self._order, self._find, self._depth + 1, self._budget)

    @property
    def die_line(self) -> int:
        """The source line in which the type is declared; 0: not told."""
        return _number(self._die, "DW_AT_decl_line") if self._die is not None else 0

    @property
    def definition(self) -> Any:
        """The entry that defines the type; the declaration where no definition is found; None for
        void.
        """
        return self._full

    @property
    def die(self) -> Any:
        """The type's entry, behind all qualifiers and typedefs; None for void."""
        return self._die

    @cached_property
    def kind(self) -> str:
        """The kind of the type, as the class lists them; "void" also where there is no entry, or
        more than DEEPEST types are around it. "char" is the type of that name, of 1 byte; `signed
        char` and other characters are "int".
        """
        if self._die is None or self._depth > DEEPEST:
            return "void"
        kind = KINDS.get(_tag(self._die), "other")
        if kind == "int":
            kind = _ENCODINGS.get(_number(self._die, "DW_AT_encoding"), "other")
            return (
                "char"
                if self.base_name == "char" and _number(self._die, "DW_AT_byte_size") == 1
                else kind
            )
        return kind

    @property
    def is_reference(self) -> bool:
        """Whether it is a reference of C++: members are accessed by `.`, not `->`."""
        return self._die is not None and _tag(self._die) in (
            "reference_type",
            "rvalue_reference_type",
        )

    @cached_property
    def is_vector(self) -> bool:
        """Whether it is a vector of a CPU's registers, as `vector_size(16)` makes: an array of its
        elements that calls pass as a number.
        """
        if self.kind != "array" or self._die is None:
            return False
        return "DW_AT_GNU_vector" in self._die.attributes

    @cached_property
    def base_name(self) -> str:
        """The name that the type's own entry has, without "struct "; "" where it has none."""
        return text(self._die, "DW_AT_name") if self._die is not None else ""

    @cached_property
    def name(self) -> str:
        """The type's name as C writes it: "struct table", "char *"; the typedef's, where it has
        one.
        """
        if self.alias:
            return self.alias
        if self.kind == "pointer" and self.target is not None:
            return f"{self.target.name} *".replace("* *", "**")
        if self.kind == "array" and self.target is not None:
            return (
                f"{self.element.name} {''.join('[]' if n is None else f'[{n}]' for n in self.dims)}"
            )
        name = self.base_name
        return (
            f"{self.kind} {name or '(anonymous)'}"
            if self.kind in ("struct", "union", "enum")
            else name or self.kind
        )

    @cached_property
    def size(self) -> int:
        """Bytes of the type; 0: not known."""
        if self.kind == "pointer":
            return self._word
        if self.kind == "array" and self.target is not None:
            return self.count * self.target.size
        return _number(self._full, "DW_AT_byte_size") if self._die is not None else 0

    @cached_property
    def bits(self) -> int:
        """Bits of a number that count; fewer than its bytes have for C's _BitInt."""
        whole = 8 * self.size
        given = _number(self._die, "DW_AT_bit_size") if self.kind == "int" else 0
        return given if 0 < given < whole else whole

    @cached_property
    def order(self) -> str:
        """Byte order of the type's numbers, "little" or "big": the guest's, unless the type has its
        own.
        """
        own = _number(self._die, "DW_AT_endianity") if self._die is not None else 0
        return {1: "big", 2: "little"}.get(own, self._order)

    @cached_property
    def _full(self) -> Any:
        """The entry that defines the type; the type's own where that is none or there is no
        other.
        """
        if (
            self._die is not None
            and "DW_AT_declaration" in self._die.attributes
            and self._depth < DEEPEST
        ):
            found = self._find(self._die)
            return found._die if found is not None else self._die
        return self._die

    @cached_property
    def signed(self) -> bool:
        """True for a signed integer or char, and for an enumeration whose underlying type is
        signed; where that is not told, for one with negative values.
        """
        if self.kind == "enum":
            below = _type_of(self._full)
            if below is not None and _tag(below) == "base_type":
                return self._other(below).signed
            return any(value < 0 for value in self.values.values())
        return self._die is not None and _number(self._die, "DW_AT_encoding") in (5, 6)

    @cached_property
    def target(self) -> CType | None:
        """The type that a pointer points at, or that an array's elements have: of several
        dimensions, its rows.

        None for other types.
        """
        if self.kind == "array" and len(self.dims) > 1:
            return Derived.array(self.element, self.dims[1:])
        return self._other(_type_of(self._die)) if self.kind in ("pointer", "array") else None

    @cached_property
    def element(self) -> CType:
        """The type of an array's innermost elements, whatever its dimensions."""
        return self._other(_type_of(self._die))

    @cached_property
    def dims(self) -> tuple[int | None, ...]:
        """Number of elements in each dimension of an array; None in the place of one that is not
        told.
        """
        return tuple(_elements(child) for child in self.subranges) or (None,)

    @cached_property
    def subranges(self) -> list[Any]:
        """The entries of an array's dimensions, from which `dims` is read."""
        found = children(self._die) if self.kind == "array" else []
        return [child for child in found if _tag(child) in ("subrange_type", "enumeration_type")]

    @property
    def bounded(self) -> bool:
        """Whether the type says how many elements an array has; True for all other types."""
        return self.kind != "array" or self.dims[0] is not None

    @cached_property
    def count(self) -> int:
        """Elements of an array in its first dimension; 0 where the type does not say."""
        return (self.dims[0] or 0) if self.kind == "array" else 0

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Name -> value of each enumerator of an enumeration; {} for other types."""
        entries = children(self._full) if self.kind == "enum" else []
        return {
            text(c, "DW_AT_name"): _number(c, "DW_AT_const_value")
            for c in entries
            if _tag(c) == "enumerator"
        }

    @property
    def members(self) -> Mapping[str, Member]:
        """Name -> member of a structure or union, with those of anonymous members and base
        classes.
        """
        return self._members[0]

    @cached_property
    def bases(self) -> list[Member]:
        """The base classes of a class, as members without a name; without virtual ones, which are
        where each object says.
        """
        return self._fields("inheritance")

    @cached_property
    def fields(self) -> list[Member]:
        """The members that a structure or union has itself, anonymous ones and base classes
        included; without static ones, and those in `hidden`.

        Calls pass a structure by these: `members` lacks one of a base whose name is taken.
        """
        return self._fields("inheritance", "member")

    def _fields(self, *tags: str) -> list[Member]:
        """Return the members whose entries have one of some tags, without DW_TAG_."""
        inside = children(self._full) if self.kind in ("struct", "union") else []
        found = [
            self._member(child)
            for child in inside
            if _tag(child) in tags
            and "DW_AT_declaration" not in child.attributes
            and "DW_AT_external" not in child.attributes
        ]
        return [member for member in found if member is not None]

    @cached_property
    def own(self) -> list[str]:
        """The names of the members that a class has itself, without those of its bases."""
        inside = children(self._full) if self.kind in ("struct", "union") else []
        names = {text(child, "DW_AT_name") for child in inside if _tag(child) == "member"}
        return [name for name in self.members if name in names]

    @property
    def hidden(self) -> Mapping[str, str]:
        """Name -> why the type alone does not say where this member is; also those in `virtual`."""
        return self._members[1]

    @property
    def virtual(self) -> Mapping[str, VirtualMember]:
        """Name -> member of a virtual base class, which is found by reading the object."""
        return self._members[2]

    @cached_property
    def _members(self) -> tuple[dict[str, Member], dict[str, str], dict[str, VirtualMember]]:
        """The members of a structure or union, with those of base classes and anonymous members;
        static members are left out.

        (name -> member, name -> why the place of such a member is not known, name -> member of a
        virtual base). A member of the type itself hides others of its name; a name that several
        bases have is in the second.
        """
        own: dict[str, Member] = {}
        merged: dict[str, Member] = {}
        hidden: dict[str, str] = {}
        virtual: dict[str, VirtualMember | None] = {}  # None: several bases have one
        for child in children(self._full) if self.kind in ("struct", "union") else []:
            self._budget[0] -= 1
            if self._budget[0] < 0:  # a damaged file can have structures within themselves
                break
            # a declaration is a static member (DWARF 4 has these as members)
            if (
                _tag(child) not in ("member", "inheritance")
                or "DW_AT_declaration" in child.attributes
            ):
                continue
            member = self._member(child)
            inside = member.type if member is not None else self._other(_type_of(child))
            name = text(child, "DW_AT_name")
            if name and member is not None:
                own[name] = member
            elif name:
                hidden[name] = "where it is depends on the object, or on a byte order of its own"
            elif inside.kind in ("struct", "union") and self._depth < DEEPEST:
                self._merge(merged, hidden, inside, member.offset if member is not None else None)
                for key, found in _virtual_members(child, inside, member):
                    other = virtual.setdefault(key, found)
                    if other is not None and (other.base, other.member.offset) != (
                        found.base,
                        found.member.offset,
                    ):
                        virtual[key] = None
        hidden = {name: why for name, why in hidden.items() if name not in own}
        known = {
            name: each
            for name, each in virtual.items()
            if each is not None and name not in own and name not in merged
        }
        members = {name: m for name, m in merged.items() if name not in hidden} | own
        return members, hidden, known

    @cached_property
    def variants(self) -> Variants | None:
        """The variants of an enumeration of Rust; None for other types. A variant that several
        values of the discriminant stand for is left out.
        """
        inside = children(self._full) if self.kind == "struct" else []
        parts = [child for child in inside if _tag(child) == "variant_part"]
        if len(parts) != 1:
            return None
        part = parts[0]
        discriminant = None
        if "DW_AT_discr" in part.attributes:
            discriminant = self._member(part.get_DIE_from_attribute("DW_AT_discr"))
        found: dict[int | None, Member] = {}
        for child in children(part):
            own = [each for each in children(child) if _tag(each) == "member"]
            member = self._member(own[0]) if _tag(child) == "variant" and len(own) == 1 else None
            if member is not None and "DW_AT_discr_list" not in child.attributes:
                found[constant(child, "DW_AT_discr_value")] = member
        return Variants(discriminant, found)

    def template(self, name: str) -> CType | None:
        """Return the type that a C++ template's or Rust generic's parameter stands for: "T".

        Returns:
            None: the type has no parameter of this name.
        """
        key = "template_type_param", name
        if key not in self._within:
            self._within[key] = self._entry_within(*key, _type_of)
        return self._within[key]

    def inner(self, name: str) -> CType | None:
        """Return the type that a typedef within a C++ class, or within one of its bases, names.

        Returns:
            None: there is no such typedef.
        """
        key = "typedef", name
        if key not in self._within:
            found = self._entry_within(*key, lambda child: child)
            for base in self.bases if found is None and self._depth < DEEPEST else []:
                found = found or base.type.inner(name)
            self._within[key] = found
        return self._within[key]

    @cached_property
    def _within(self) -> dict[tuple[str, str], CType | None]:
        """Types that template() and inner() have found: (tag without DW_TAG_, name) -> type. A type
        that is made anew reads its members again, and they are counted.
        """
        return {}

    def _entry_within(self, tag: str, name: str, of: Callable[[Any], Any]) -> CType | None:
        """Return the type that an entry within this one's stands for; None: there is no such entry.

        Args:
            tag: of the entry, without DW_TAG_.
            name: of the entry.
            of: returns the type's entry of the entry.
        """
        for child in children(self._full) if self._die is not None else []:
            if _tag(child) == tag and text(child, "DW_AT_name") == name:
                return self._other(of(child))
        return None

    @staticmethod
    def _merge(
        merged: dict[str, Member], hidden: dict[str, str], inside: CType, offset: int | None
    ) -> None:
        """Add the members of a base class or an anonymous structure to those of the type around it.

        Members that `merged` has already, and all members of a virtual base, are added to `hidden`.

        Args:
            merged: name -> member; is changed.
            hidden: name -> why its place is not known; is changed.
            inside: the type of the base class or anonymous structure.
            offset: bytes from the type around it; None: a virtual base, whose offset the object
                says.
        """
        hidden |= inside.hidden
        for name, member in inside.members.items():
            if offset is None:
                hidden[name] = f"{inside.name} is a virtual base, which is where the object says"
            elif name in merged:
                hidden[name] = "several base classes have one"
            else:
                merged[name] = evolve(member, offset=offset + member.offset)

    def _member(self, die: Any) -> Member | None:
        """Return the member or base class that an entry describes; None: its offset is no constant,
        or it is a bit field of another byte order than the guest's.
        """
        type = self._other(_type_of(die))
        name = text(die, "DW_AT_name")
        offset = _constant_place(die)
        bits = _number(die, "DW_AT_bit_size")
        if not bits or offset is None:
            alignment = _number(die, "DW_AT_alignment") or 1
            return None if offset is None else Member(name, type, offset, alignment=alignment)
        if type.order != self._order:
            return None
        return self._bit_field(die, name, type, offset, bits)

    def _bit_field(self, die: Any, name: str, type: CType, offset: int, bits: int) -> Member:
        """Return a bit field, with the bytes to read it from, and where its bits are in them.

        Args:
            die: the member's entry.
            name: its name.
            type: its type.
            offset: bytes from the structure to where its bits are counted from.
            bits: how many.
        """
        unit = _number(die, "DW_AT_byte_size") or type.size
        if (
            "DW_AT_bit_offset" in die.attributes
        ):  # DWARF 3: from the most significant bit of the storage
            given = _number(die, "DW_AT_bit_offset")
            given -= (given >> 63 == 1) << 64  # negative in an unsigned form
            first = 8 * offset + (given if self._order == "big" else 8 * unit - bits - given)
        else:  # counted as the guest counts its bits
            first = 8 * offset + _number(die, "DW_AT_data_bit_offset")
        offset, rest = (
            (first // (8 * unit) * unit, first % (8 * unit)) if unit else (first // 8, first % 8)
        )
        if rest + bits > 8 * unit:  # packed, across its type's unit
            offset, rest = first // 8, first % 8
            unit = (rest + bits + 7) // 8
        shift = rest if self._order == "little" else 8 * unit - bits - rest
        return Member(name, type, offset, bits, shift, unit)

    def __repr__(self) -> str:
        return f"<CType {self.name}, {self.size} bytes>"

    def __str__(self) -> str:
        """Return the type as C declares it: an enumeration with its values, a structure or union
        with members and their offsets; else its name.
        """
        if self.kind == "enum":
            return (
                f"{self.name} "
                f"{{ {', '.join(f'{name} = {value}' for name, value in self.values.items())} }}"
            )
        if self.kind not in ("struct", "union"):
            return self.name
        lines = [
            f"    {m.type.name} {m.name}{f' : {m.bits}' if m.bits else ''};  // +{m.offset}"
            for m in self.members.values()
        ]
        return "\n".join([f"{self.name} {{  // {self.size} bytes", *lines, "}"])


def _virtual_members(
    die: Any, inside: CType, member: Member | None
) -> Iterator[tuple[str, VirtualMember]]:
    """Yield (name, member) of each member that a base class brings in from virtual bases.

    The base class may be a virtual one itself, or have some. Of a virtual one nothing is yielded
    where _slot() does not understand its place.

    Args:
        die: the entry of the base class.
        inside: its type.
        member: the base class as a member; None: it is virtual: its offset is no constant.
    """
    if member is not None:
        for name, each in inside.virtual.items():
            offset, below = each.bases[0]
            bases = ((member.offset + offset, below), *each.bases[1:])
            yield name, evolve(each, bases=bases)
        return
    slot = _slot(die)
    if slot is None or inside.definition is None:
        return
    for name, found in inside.members.items():
        yield name, VirtualMember(((0, slot),), inside.definition.offset, found)
    for name, each in inside.virtual.items():
        yield name, evolve(each, bases=((0, slot), *each.bases))


def _slot(die: Any) -> int | None:
    """Return where the offset of a virtual base is: bytes below the table of virtual functions.

    Compilers write it (Itanium C++ ABI, 2.5.2) as DW_OP_dup, DW_OP_deref, a constant, DW_OP_minus,
    DW_OP_deref, DW_OP_plus.

    Args:
        die: entry of the inheritance.

    Returns:
        Bytes; None: the place is written in another way.
    """
    from elftools.dwarf.dwarf_expr import DWARFExprParser  # few types have virtual bases

    found = die.attributes.get("DW_AT_data_member_location")
    if found is None or not isinstance(found.value, list | bytes):
        return None
    operations = DWARFExprParser(die.cu.structs).parse_expr(found.value)
    if [each.op for each in operations[:2]] != _TABLE or [
        each.op for each in operations[3:]
    ] != _BELOW:
        return None
    number = operations[2]
    if number.op_name.startswith("DW_OP_const"):
        return int(number.args[0])
    if number.op_name.startswith("DW_OP_lit"):
        return int(number.op_name.removeprefix("DW_OP_lit"))
    return None


def _tag(die: Any) -> str:
    """Return an entry's tag without DW_TAG_: "structure_type"."""
    return str(die.tag).removeprefix("DW_TAG_")


def _number(die: Any, name: str, default: int = 0) -> int:
    """Return the integer of an entry's attribute.

    Args:
        die: the entry.
        name: of the attribute.
        default: returned where there is no such attribute, or it is no integer.
    """
    found = die.attributes.get(name)
    return found.value if found is not None and isinstance(found.value, int) else default


def constant(die: Any, name: str) -> int | None:
    """Return the value of an attribute that is a constant number; None: it is another, or there is
    none.
    """
    found = die.attributes.get(name)
    return found.value if found is not None and found.form in _CONSTANT else None


def _elements(subrange: Any) -> int | None:
    """Return the number of elements of an array's dimension; 0 for an upper bound of -1; None: it
    has no bound, as `text[]`, or one that is no constant.

    Args:
        subrange: entry of the dimension.
    """
    count = constant(subrange, "DW_AT_count")
    if count is not None:
        return max(count, 0)
    upper = constant(subrange, "DW_AT_upper_bound")
    if upper is None:
        return None
    if upper == _ONES.get(subrange.attributes["DW_AT_upper_bound"].form):  # -1: none
        return 0
    return max(upper + 1 - (constant(subrange, "DW_AT_lower_bound") or 0), 0)


def _constant_place(die: Any) -> int | None:
    """Return the bytes from an object's beginning to a member, 0 where the entry has no place;
    None: they are no constant.

    Args:
        die: the member's entry.
    """
    found = die.attributes.get("DW_AT_data_member_location")
    if found is None:
        return 0
    if isinstance(found.value, int) and not found.form.startswith(
        ("DW_FORM_sec_offset", "DW_FORM_loclistx")
    ):
        return found.value
    data = bytes(found.value) if isinstance(found.value, list | bytes) else b""
    if data[:1] != b"\x23":  # DW_OP_plus_uconst: of DWARF 2
        return None
    offset, shift = 0, 0
    for n, byte in enumerate(data[1:]):
        offset |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return offset if n + 2 == len(data) else None
    return None


def _type_of(die: Any) -> Any:
    """Return the entry of an entry's type; None: it is void, or damaged."""
    if "DW_AT_type" not in die.attributes:
        return None
    try:
        return type_entry(die)
    except DAMAGE:
        return None


class Derived(CType):
    """A number, pointer or array type that is made here, not read from an entry of a file."""

    @classmethod
    def number(cls, kind: str, name: str, size: int, signed: bool, arch: Arch) -> Derived:
        """Make the type of a number, or void.

        Args:
            kind: "int", "float", "complex", "bool" or "void".
            name: as C writes it.
            size: bytes; 0 of void.
            signed: of an integer.
            arch: the guest's architecture.
        """
        made = cls(None, arch.bits // 8, arch.order.value, lambda die: None)
        made.__dict__.update(
            kind=kind,
            name=name,
            base_name=name,
            size=size,
            bits=8 * size,
            order=arch.order.value,
            signed=signed,
            target=None,
            values={},
        )
        return made

    @classmethod
    def of(cls, target: CType, arch: Arch, count: int | None) -> Derived:
        """Make the type of a pointer to a type, or of an array of it.

        Args:
            target: the type.
            arch: the guest's architecture.
            count: elements of an array; None: a pointer.
        """
        if count is not None:
            return cls.array(target, (count,))
        made = cls(None, arch.bits // 8, arch.order.value, lambda die: None)
        made.__dict__.update(
            kind="pointer",
            target=target,
            dims=(None,),
            signed=False,
            _members=({}, {}, {}),
            values={},
        )
        return made

    @classmethod
    def array(cls, element: CType, dims: tuple[int | None, ...]) -> Derived:
        """Make an array type. With several dimensions it is an array of arrays: its `target` has
        all but the first.

        Args:
            element: type of its elements.
            dims: elements in each dimension; None where they are not known.
        """
        made = cls(None, element._word, element._order, lambda die: None, element._depth + 1)
        target = element if len(dims) == 1 else cls.array(element, dims[1:])
        made.__dict__.update(
            kind="array",
            target=target,
            element=element,
            dims=dims,
            signed=False,
            _members=({}, {}, {}),
            values={},
        )
        return made
