"""Relocations: computes formulas and puts the bits in their fields. The types themselves are rows of relocation_types."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from attrs import define, frozen

from .errors import ImageError
from .relocation_types import AARCH64, MIPS, SPARCV9, TABLES

NEARER = "place the image and what it imports nearer to each other, or build it with -fPIC"
VENEER = "link it into a shared object: the linker makes a veneer"


class Memory:
    """The image's bytes at their addresses. `regions`: (address, size in memory, bytes from the file)."""

    def __init__(self, regions: Iterable[tuple[int, int, bytes]], order: str, image: str) -> None:
        self.regions = [(start, size, bytearray(data)) for start, size, data in sorted(regions)]
        self.little = order == "little"
        self._starts = [start for start, _, _ in self.regions]
        self._image = image

    def read(self, addr: int, size: int, little: bool | None = None) -> int:
        """The unsigned number of `size` bytes at `addr`; raises ImageError outside the image."""
        data, at = self._find(addr, size)
        return int.from_bytes(data[at:at + size], "little" if (self.little if little is None else little) else "big")

    def write(self, addr: int, size: int, value: int, little: bool | None = None) -> None:
        """Store the low `size` bytes of `value`; raises ImageError outside the image."""
        data, at = self._find(addr, size)
        number = value & (1 << 8 * size) - 1
        data[at:at + size] = number.to_bytes(size, "little" if (self.little if little is None else little) else "big")

    def _find(self, addr: int, size: int) -> tuple[bytearray, int]:
        i = bisect.bisect_right(self._starts, addr) - 1
        start, room, data = self.regions[i] if i >= 0 else (0, 0, bytearray())
        if addr + size > start + room:
            raise ImageError(f"{self._image}: a relocation or table lies outside every segment", address=addr,
                             hint="the file is damaged: build or fetch it again")
        if (end := addr - start + size) > len(data):  # in BSS
            data.extend(bytes(end - len(data)))
        return data, addr - start


@frozen
class Target:
    """What a relocation's symbol stands for, at run time.

    Attributes:
        address: mode bits stripped; of a thread-local symbol, its offset. thumb: 1 for Thumb code. size: bytes.
        local: known in this file only. absent: weak and undefined.
    """

    name: str = ""
    address: int = 0
    thumb: int = 0
    size: int = 0
    local: bool = True
    absent: bool = False


class Binder(Protocol):
    """What formulas need besides place, symbol and addend. hi20: what the RISC-V high parts at these addresses hold."""

    memory: Memory
    image: str
    bias: int
    got: int
    gp: int
    toc: int
    hi20: dict[int, int]

    def slot(self, content: int) -> int:
        """Address of a GOT slot that holds `content`."""

    def code(self, target: Target) -> int:
        """Where a direct call of this symbol lands."""

    def ifunc(self, resolver: int) -> int:
        """What to use for the function that the resolver at this address chooses."""


@define
class Site:
    """A relocation being computed: place p, addend a; extra is SPARC's second addend."""

    p: int
    a: int
    target: Target
    binder: Binder
    row: Row
    extra: int = 0

    @property
    def sum(self) -> int:
        """S + A."""
        return self.target.address + self.a

    def refuse(self, reason: str, hint: str) -> ImageError:
        """The error for this relocation."""
        to = f" to {self.target.name!r}" if self.target.name else ""
        return ImageError(f"{self.binder.image}: relocation {self.row.name}{to} {reason}", address=self.p, hint=hint)


def _call_pair(x: Site) -> int:
    """RISC-V auipc + jalr: the low part is signed, so the high part is rounded."""
    value = x.sum - x.p
    return value + 0x800 & ~0xFFF | value & 0xFFF


def _hi20(x: Site, value: int) -> int:
    """RISC-V: the low part names the auipc and not the symbol; keep the value for it."""
    x.binder.hi20[x.p] = value
    return value + 0x800


def _lo12(x: Site) -> int:
    if x.target.address not in x.binder.hi20:
        raise x.refuse("has no high part, or a thread-local one", "link it into an executable or a shared object")
    return x.binder.hi20[x.target.address]


def _i386_got(x: Site) -> int:
    """Without a base register (ModRM 00 xxx 101) the operand is the slot's address, else its distance from the GOT."""
    slot = x.binder.slot(x.target.address) + x.a
    return slot if x.binder.memory.read(x.p - 1, 1) & 0xC7 == 5 else slot - x.binder.got


def _m68k_got(x: Site) -> int:
    """The same type means the GOT itself for its own symbol, and a slot for any other."""
    own = x.target.name == "_GLOBAL_OFFSET_TABLE_"
    return (x.target.address if own else x.binder.slot(x.target.address)) + x.a - x.p


def _mips_high(x: Site) -> int:
    return (x.binder.gp + x.a - x.p if x.target.name == "_gp_disp" else x.sum) + 0x8000


def _mips_low(x: Site) -> int:
    # the low half stands 4 bytes behind the high half, and the distance is measured from that one
    return x.binder.gp + x.a - x.p + 4 if x.target.name == "_gp_disp" else x.sum


def _mips_rel32(x: Site) -> int:
    return x.sum if x.target.name else x.binder.bias + x.a


def _page_slot(x: Site) -> int:
    return x.binder.slot(x.sum + 0x8000 & ~0xFFFF)


def _mips_got16(x: Site) -> int:
    """Local symbols share slots that hold 64 KiB pages; the low half is the LO16 of the pair."""
    return (_page_slot(x) if x.target.local else x.binder.slot(x.sum)) - x.binder.gp


def _sparc_got_high(x: Site) -> int:
    """A pair that is xor-ed: of a negative distance the high part is complemented, and the low part's sign flips it back."""
    value = x.sum - x.binder.got
    return value if value >= 0 else ~value


def _sparc_got_low(x: Site) -> int:
    value = x.sum - x.binder.got
    return value & 0x3FF | (0x1C00 if value < 0 else 0)


_WHOLE: dict[str, Callable[[Site], int]] = {
    "-": lambda x: 0, "COPY": lambda x: 0, "TLS": lambda x: 0, "TLS0": lambda x: 0, "TLSA": lambda x: x.sum,
    "PAIR": _call_pair, "HI20": lambda x: _hi20(x, x.sum - x.p), "LO12": _lo12,
    "GHI20": lambda x: _hi20(x, x.binder.slot(x.target.address) + x.a - x.p),
    "G386": _i386_got, "G68K": _m68k_got, "HI": _mips_high, "LO": _mips_low, "REL32": _mips_rel32, "GOT16": _mips_got16,
    "HIX": lambda x: ~x.sum, "LOX": lambda x: x.sum & 0x3FF | 0x1C00, "OLO": lambda x: (x.sum & 0x3FF) + x.extra,
    "SHIX": _sparc_got_high, "SLOX": _sparc_got_low, "GOP": lambda x: x.binder.slot(x.target.address) - x.binder.got & 0x3FF,
}
_TERMS: dict[str, Callable[[Site], int]] = {
    "S": lambda x: x.target.address, "T": lambda x: x.target.thumb, "A": lambda x: x.a, "P": lambda x: x.p,
    "N": lambda x: x.sum | x.target.thumb, "B": lambda x: x.binder.bias, "Z": lambda x: x.target.size,
    "L": lambda x: x.binder.code(x.target), "I": lambda x: x.binder.ifunc(x.binder.bias + x.a),
    "V": lambda x: x.row.field.read(x.binder.memory, x.p), "P8": lambda x: x.p & ~7,
    "G": lambda x: x.binder.slot(x.target.address | x.target.thumb), "D": lambda x: x.binder.slot(x.sum), "Q": _page_slot,
    "GOT": lambda x: x.binder.got, "GP": lambda x: x.binder.gp, "TOC": lambda x: x.binder.toc,
    "PS": lambda x: x.sum & ~0xFFF, "PP": lambda x: x.p & ~0xFFF, "PD": lambda x: x.binder.slot(x.sum) & ~0xFFF,
    "PGOT": lambda x: x.binder.got & ~0xFFF,
}
_SLOTS = {"G", "D", "Q", "PD", "GHI20", "G386", "G68K", "GOT16", "GOP"}
_LATE = {"L", "LO12"}  # they need what the others leave: code addresses in descriptors, high parts


def _terms(formula: str) -> list[tuple[int, str]]:
    """[(sign, term)] of `S+A-P`."""
    return [(-1 if sign == "-" else 1, term) for sign, term in re.findall(r"([+-]?)([^+-]+)", formula)]


def _formula(text: str) -> Callable[[Site], int]:
    if text in _WHOLE:
        return _WHOLE[text]
    constant = sum(sign * int(term, 16) for sign, term in _terms(text) if term not in _TERMS)
    plus = [_TERMS[term] for sign, term in _terms(text) if sign > 0 and term in _TERMS]
    minus = [_TERMS[term] for sign, term in _terms(text) if sign < 0]
    return lambda x: sum(term(x) for term in plus) - sum(term(x) for term in minus) + constant


class Field(Protocol):
    """Where a value goes."""

    def read(self, memory: Memory, p: int) -> int:
        """The value in place."""

    def write(self, x: Site, value: int) -> None:
        """Put the value in place; raises ImageError where it does not fit."""


def signed(value: int, bits: int) -> int:
    """Two's complement value of the low `bits` bits."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


@frozen
class Picture:
    """Value bits (high, low) at a unit's bit; relocation_types has the notation. bits: of an address."""

    unit: str
    parts: tuple[tuple[int, int, int], ...]
    check: str
    bits: int
    scale: int = 0
    insn_little: bool = False

    @property
    def top(self) -> int:
        """Number of value bits that are kept or shifted out."""
        return max(high for high, _, _ in self.parts) + 1

    def _little(self) -> bool | None:
        return True if self.insn_little and self.unit == "i" else None

    def _load(self, memory: Memory, p: int) -> int:
        if self.unit == "t":
            return memory.read(p, 2) << 16 | memory.read(p + 2, 2)
        return memory.read(p, {"b": 1, "h": 2, "d": 8}.get(self.unit, 4), self._little())

    def _store(self, memory: Memory, p: int, unit: int) -> None:
        if self.unit == "t":
            memory.write(p, 2, unit >> 16)
            memory.write(p + 2, 2, unit)
        else:
            memory.write(p, {"b": 1, "h": 2, "d": 8}.get(self.unit, 4), unit, self._little())

    def read(self, memory: Memory, p: int) -> int:
        unit = self._load(memory, p)
        value = sum((unit >> at & (1 << high - low + 1) - 1) << low for high, low, at in self.parts)
        return signed(value, self.top) >> self.scale

    def write(self, x: Site, value: int) -> None:
        self._refuse_misfit(x, value)
        unit = self._load(x.binder.memory, x.p)
        for high, low, at in self.parts:
            mask = (1 << high - low + 1) - 1
            unit = unit & ~(mask << at) | (value >> low & mask) << at
        self._store(x.binder.memory, x.p, unit)

    def _refuse_misfit(self, x: Site, value: int) -> None:
        lost = (1 << min(low for _, low, _ in self.parts)) - 1
        if ("a" in self.check or "c" in self.check) and value & lost:
            raise x.refuse(f"is not a multiple of {lost + 1}", "its target must be aligned")
        if not self._in_range(x, signed(value, self.bits)):
            raise x.refuse(f"is out of reach: {signed(value, self.bits):#x} does not fit in {self.top} bits", NEARER)

    def _in_range(self, x: Site, value: int) -> bool:
        if "r" in self.check:
            return (value ^ x.p + 4) & (1 << self.bits) - 1 < 1 << self.top
        lowest = -1 << self.top - 1 if self.check[0] in "scx" else 0
        end = 1 << self.top - (self.check[0] in "sc")
        return self.top >= self.bits or self.check in "-a" or lowest <= value < end


class ArmBranch:
    """A32 BL, BLX, B: imm24; a BL to Thumb code becomes BLX and the other way round, a B cannot."""

    def read(self, memory: Memory, p: int) -> int:
        return signed(memory.read(p, 4) << 2, 26)

    def write(self, x: Site, value: int) -> None:
        word = x.binder.memory.read(x.p, 4)
        if word >> 24 in (0xEB, 0xFA, 0xFB):
            word = 0xFA000000 | (value & 2) << 23 if value & 1 else 0xEB000000
        if (value & 1 and word >> 24 != 0xFA) or not _within(value, 26):
            word |= 0xE1000000 if word >> 24 == 0xFA else 0  # a BLX that does not reach: BL to the veneer
            value = x.binder.veneer(x.thumb_sum + 8, thumb=False) - 8 - x.p
        if not _within(value, 26):
            raise x.refuse("is out of reach (32 MiB)", NEARER)
        x.binder.memory.write(x.p, 4, word & 0xFF000000 | value >> 2 & 0xFFFFFF)


class ThumbBranch:
    """T32 BL, BLX, B.W: S:I1:I2:imm10:imm11 with J = NOT(I XOR S); a BL to ARM code becomes BLX, a B.W cannot."""

    def read(self, memory: Memory, p: int) -> int:
        first, second = memory.read(p, 2), memory.read(p + 2, 2)
        sign = first >> 10 & 1
        i1, i2 = (second >> 13 ^ sign ^ 1) & 1, (second >> 11 ^ sign ^ 1) & 1
        return signed(sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1, 25)

    def write(self, x: Site, value: int) -> None:
        memory, second, thumb = x.binder.memory, x.binder.memory.read(x.p + 2, 2), value & 1
        if not second & 0x4000 and not thumb:
            raise x.refuse("jumps from Thumb to ARM code", VENEER)
        value = signed(value - 1 if thumb else value + (x.p & 2), 32)  # BLX counts from Align(PC, 4)
        if not -1 << 24 <= value < 1 << 24:
            raise x.refuse("is out of reach (16 MiB)", NEARER)
        sign = value >> 24 & 1
        j1, j2 = (value >> 23 ^ sign ^ 1) & 1, (value >> 22 ^ sign ^ 1) & 1
        memory.write(x.p, 2, 0xF000 | sign << 10 | value >> 12 & 0x3FF)
        memory.write(x.p + 2, 2, second & 0xC000 | thumb << 12 | j1 << 13 | j2 << 11 | value >> 1 & 0x7FF)


class Uleb128:
    """A number of 7-bit groups that keeps its length."""

    def _length(self, memory: Memory, p: int) -> int:
        return next((n + 1 for n in range(10) if not memory.read(p + n, 1) & 0x80), 10)

    def read(self, memory: Memory, p: int) -> int:
        return sum((memory.read(p + n, 1) & 0x7F) << 7 * n for n in range(self._length(memory, p)))

    def write(self, x: Site, value: int) -> None:
        length = self._length(x.binder.memory, x.p)
        for n in range(length):
            x.binder.memory.write(x.p + n, 1, value >> 7 * n & 0x7F | (0x80 if n + 1 < length else 0))


@frozen
class SparcPlt:
    """A PLT entry is code: sethi %hi(S), %g1; jmpl %g1 + %lo(S), %g0, and for high addresses V9's six instructions."""

    bits: int

    def read(self, memory: Memory, p: int) -> int:
        return 0

    def write(self, x: Site, value: int) -> None:
        value &= (1 << self.bits) - 1
        low = (0x03000000 | value >> 10 & 0x3FFFFF, 0x81C06000 | value & 0x3FF, 0x01000000)
        high = (0x03000000 | value >> 42, 0x0B000000 | value >> 10 & 0x3FFFFF, 0x82106000 | value >> 32 & 0x3FF, 0x83287020,
                0x82104005, 0x81C06000 | value & 0x3FF, 0x01000000)
        for n, word in enumerate(high if value >> 32 else low):
            x.binder.memory.write(x.p + 4 * n, 4, word)


@frozen
class Row:
    """A relocation type. name: as the supplement prints it. calls: it is a direct call or jump. late: it is computed after
    the others. slots: it makes a GOT slot. tls: it is thread-local."""

    name: str
    formula: str
    field: Field
    compute: Callable[[Site], int]
    calls: bool
    late: bool
    slots: bool
    tls: bool


def apply(rows: list[Row], x: Site) -> None:
    """Compute and store. Of MIPS's composed types each takes the result of the one before as its addend."""
    for row in rows[:-1]:
        x.a, x.target = row.compute(x), Target()
    last = rows[-1]
    if last.formula not in ("-", "TLS", "COPY") and not (x.target.absent and last.calls):
        last.field.write(x, last.compute(x))


_PICTURE = re.compile(r"([bhwdit])([\d:@,]+)(?:/(\d+))?")


def _field(text: str, check: str, bits: int, machine: int) -> Field:
    special: dict[str, Field] = {"a32": ArmBranch(), "t32": ThumbBranch(), "uleb": Uleb128(), "plt": SparcPlt(bits)}
    if text in special:
        return special[text]
    text = {"n": "d63:0" if bits == 64 else "w31:0", "-": "b7:0"}.get(text, text)
    found = _PICTURE.fullmatch(text)
    assert found, text
    unit, picture, scale = found.groups()
    parts = [re.split("[:@]", part) for part in picture.split(",")]
    places = tuple((int(high), int(low), int(at[0]) if at else 0) for high, low, *at in parts)
    return Picture(unit, places, check, bits, int(scale or 0), machine == AARCH64)


def _row(name: str, formula: str, where: Field, check: str) -> Row:
    terms = {term for _, term in _terms(formula)}
    calls = check == "c" or isinstance(where, ArmBranch | ThumbBranch)
    return Row(name, formula, where, _formula(formula), calls, bool(terms & _LATE), bool(terms & _SLOTS),
               formula.startswith("TLS"))


@functools.cache
def table(machine: int, bits: int) -> dict[int, Row]:
    """Relocation types of an e_machine whose addresses have `bits` bits; empty for a machine not known here."""
    prefix, text = TABLES.get(machine, ("", ""))
    known: dict[int, Row] = {}
    for line in filter(None, text.splitlines()):
        formula, picture, check, *names = line.split()
        where = _field(picture, check, bits, machine)
        for name, numbers in (name.split("=") for name in names):
            first, _, last = numbers.partition("..")
            for number in range(int(first), int(last or first) + 1):
                known[number] = _row(prefix + name + (f" ({number})" if last else ""), formula, where, check)
    return known


def rows(machine: int, bits: int, kind: int) -> list[Row]:
    """The rows of a relocation's type: one, or up to three where MIPS composes them. Empty: not known."""
    known = table(machine, bits)
    kinds = [kind & 0xFF if machine == SPARCV9 else kind]
    if machine == MIPS:
        kinds = [kind & 0xFF, *(k for k in (kind >> 8 & 0xFF, kind >> 16 & 0xFF) if k)]
    return [known[k] for k in kinds] if all(k in known for k in kinds) else []
