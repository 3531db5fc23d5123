"""C types, of DWARF's entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen

from ..arch._base import Arch
from .file import DAMAGE, children

KINDS = {"base_type": "int", "pointer_type": "pointer", "reference_type": "pointer",
         "rvalue_reference_type": "pointer", "structure_type": "struct",
         "class_type": "struct", "union_type": "union", "enumeration_type": "enum", "array_type": "array",
         "subroutine_type": "function"}
TRANSPARENT = ("typedef", "const_type", "volatile_type", "restrict_type", "atomic_type")
_ENCODINGS = {2: "bool", 4: "float"}
DEEPEST = 64  #: types within types
MOST = 20_000  #: members of a type, and of those within it


@frozen
class Member:
    """A member of a structure. offset: bytes. bits: width of a bit field, 0: none; shift: its lowest bit in the guest's
    number of its type."""

    name: str
    type: CType
    offset: int
    bits: int = 0
    shift: int = 0


class CType:
    """A type of the guest's.

    Attributes:
        name: as C writes it. kind: "int", "float", "bool", "char", "pointer", "struct", "union", "enum", "array",
            "function", "void".
        size: bytes; 0 where unknown. signed: of numbers.
    """

    def __init__(self, die: Any, word: int, order: str, find: Callable[[str], CType | None], depth: int = 0,
                 budget: list[int] | None = None) -> None:
        """die: its entry, None for void. word: bytes of a pointer. find: `struct NAME` -> its definition, where this is
        a declaration."""
        self._word, self._order, self._find, self._depth = word, order, find, depth
        self._die, self._budget = die, [MOST] if budget is None else budget
        self.alias = ""
        while self._die is not None and (tag := _tag(self._die)) in TRANSPARENT and depth < DEEPEST:
            self.alias = self.alias or (_text(self._die, "DW_AT_name") if tag == "typedef" else "")
            self._die, depth = _type_of(self._die), depth + 1

    def _other(self, die: Any) -> CType:
        return CType(die, self._word, self._order, self._find, self._depth + 1, self._budget)

    @cached_property
    def kind(self) -> str:
        if self._die is None or self._depth > DEEPEST:
            return "void"
        kind = KINDS.get(_tag(self._die), "void")
        if kind == "int":
            kind = _ENCODINGS.get(_number(self._die, "DW_AT_encoding"), "int")
            return "char" if _text(self._die, "DW_AT_name") == "char" else kind
        return kind

    @cached_property
    def name(self) -> str:
        if self.alias:
            return self.alias
        if self.kind == "pointer" and self.target is not None:
            return f"{self.target.name} *".replace("* *", "**")
        if self.kind == "array" and self.target is not None:
            return f"{self.target.name} [{self.count}]"
        name = _text(self._die, "DW_AT_name") if self._die is not None else ""
        return f"{self.kind} {name or '(anonymous)'}" if self.kind in ("struct", "union", "enum") else name or self.kind

    @cached_property
    def size(self) -> int:
        if self.kind == "pointer":
            return self._word
        if self.kind == "array" and self.target is not None:
            return self.count * self.target.size
        return _number(self._full, "DW_AT_byte_size") if self._die is not None else 0

    @cached_property
    def _full(self) -> Any:
        """Its definition, where it is only declared here."""
        if self._die is not None and "DW_AT_declaration" in self._die.attributes and self._depth < DEEPEST:
            found = self._find(self.name)
            return found._die if found is not None else self._die
        return self._die

    @cached_property
    def signed(self) -> bool:
        if self.kind == "enum":
            return any(value < 0 for value in self.values.values())
        return self._die is not None and _number(self._die, "DW_AT_encoding") in (5, 6)

    @cached_property
    def target(self) -> CType | None:
        """What a pointer points at, what an array is of; None for other types."""
        return self._other(_type_of(self._die)) if self.kind in ("pointer", "array") else None

    @cached_property
    def count(self) -> int:
        """Elements of an array; of several dimensions, of all."""
        out = 1
        for child in children(self._die) if self.kind == "array" else []:
            if _tag(child) == "subrange_type":
                upper = _number(child, "DW_AT_upper_bound", -1)
                out *= _number(child, "DW_AT_count", upper + 1)
        return max(out, 0)

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Names and values of an enumeration."""
        entries = children(self._full) if self.kind == "enum" else []
        return {_text(c, "DW_AT_name"): _number(c, "DW_AT_const_value") for c in entries if _tag(c) == "enumerator"}

    @cached_property
    def members(self) -> Mapping[str, Member]:
        """Of a structure or union, by name; those of anonymous ones within it, too."""
        found: dict[str, Member] = {}
        for child in children(self._full) if self.kind in ("struct", "union") else []:
            self._budget[0] -= 1
            if self._budget[0] < 0:  # a damaged file can have structures within themselves
                break
            if _tag(child) not in ("member", "inheritance"):
                continue
            member = self._member(child)
            if member.name:
                found[member.name] = member
            elif member.type.kind in ("struct", "union") and self._depth < DEEPEST:
                found |= {m.name: Member(m.name, m.type, member.offset + m.offset, m.bits, m.shift)
                          for m in member.type.members.values()}
        return found

    def _member(self, die: Any) -> Member:
        type, offset, bits = self._other(_type_of(die)), _number(die,
                                                                 "DW_AT_data_member_location"), _number(die,
                                                                     "DW_AT_bit_size")
        if not bits:
            return Member(_text(die, "DW_AT_name"), type, offset)
        whole = 8 * type.size
        if "DW_AT_data_bit_offset" in die.attributes:  # counted as the guest counts its bits
            at = _number(die, "DW_AT_data_bit_offset")
            offset, first = at // whole * type.size if whole else 0, at % whole if whole else 0
            shift = first if self._order == "little" else whole - bits - first
        else:
            shift = whole - bits - _number(die, "DW_AT_bit_offset")  # DWARF 3: from the most significant bit
        return Member(_text(die, "DW_AT_name"), type, offset, bits, max(shift, 0))

    def __repr__(self) -> str:
        return f"<CType {self.name}, {self.size} bytes>"

    def __str__(self) -> str:
        """As C declares it."""
        if self.kind == "enum":
            return f"{self.name} {{ {', '.join(f'{name} = {value}' for name, value in self.values.items())} }}"
        if self.kind not in ("struct", "union"):
            return self.name
        lines = [f"    {m.type.name} {m.name}{f' : {m.bits}' if m.bits else ''};  // +{m.offset}"
                 for m in self.members.values()]
        return "\n".join([f"{self.name} {{  // {self.size} bytes", *lines, "}"])


def _tag(die: Any) -> str:
    return str(die.tag).removeprefix("DW_TAG_")


def _text(die: Any, name: str) -> str:
    found = die.attributes.get(name)
    return (found.value.decode("utf-8", "backslashreplace") if found is not None and isinstance(found.value, bytes)
            else "")


def _number(die: Any, name: str, default: int = 0) -> int:
    found = die.attributes.get(name)
    return found.value if found is not None and isinstance(found.value, int) else default


def _type_of(die: Any) -> Any:
    """The entry that an entry's type is; None for void."""
    if "DW_AT_type" not in die.attributes:
        return None
    try:
        return die.get_DIE_from_attribute("DW_AT_type")
    except DAMAGE:
        return None


class Derived(CType):
    """A pointer to a type, or an array of it, that no file names."""

    @classmethod
    def of(cls, target: CType, arch: Arch, count: int | None) -> Derived:
        """count: elements of an array; None: a pointer."""
        made = cls(None, arch.bits // 8, arch.order.value, lambda name: None)
        made.__dict__.update(kind="pointer" if count is None else "array", target=target, count=count or 0,
                             signed=False, members={}, values={})
        return made
