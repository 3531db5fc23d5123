"""SFrame, ORC and Arm's index: unwind information for code that has no call frame information.

SFrame (`.sframe`, versions 1 and 2) is what gas writes with --gsframe: where the caller's frame and
its frame pointer are, for x86-64 and AArch64. ORC (`.orc_unwind`, `.orc_unwind_ip`) is the same for
Linux's text on x86-64. Compilers for 32-bit Arm write an index of functions (`.ARM.exidx`) with
operations by which an exception that a call throws leaves each function. Damaged tables, and rows
of kinds that are not known here, give no row.
Source: the SFrame specification (sourceware.org/binutils/docs/sframe-spec.html); Linux,
Documentation/arch/x86/orc-unwinder.rst; Exception Handling ABI for the Arm Architecture (EHABI32).
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol

from attrs import frozen
from elftools.dwarf.callframe import CFARule, RegisterRule
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from ..image import LoadedFile
from .file import DAMAGE, elf_of, loaded_bytes

_MAGIC: Final = 0xDEE2


class _Abi(NamedTuple):
    """The numbers in DWARF of the registers that SFrame's rows mean without naming them.

    Attributes:
        sp: of the stack pointer.
        fp: of the frame pointer.
        link: of the return address.
    """

    sp: int
    fp: int
    link: int


#: SFRAME_ABI -> its registers
_ABIS: Final = {1: _Abi(31, 29, 30), 2: _Abi(31, 29, 30), 3: _Abi(7, 6, 16)}
_PCREL: Final = (
    4  #: flag: functions' addresses count from the field that has them, not from the section
)
_STUB: Final = (
    16  #: bytes of a stub of x86-64's procedure linkage table, which version 1 does not tell
)
#: ORC_REG -> number of DWARF: dx, di, bp, sp, r10, r13
_ORC_REGISTERS: Final = {2: 1, 3: 5, 4: 6, 5: 7, 6: 10, 7: 13}
_ORC_PREVIOUS, _ORC_BP_INDIRECT, _ORC_SP_INDIRECT = 1, 8, 9
_ORC_LAST = 4  #: flag, before Linux 6.4: of a row without a frame, that nothing called its code
_ORC_END, _ORC_CALL, _ORC_REGS = 1, 2, 3  #: ORC_TYPE as Linux 6.4 and later have it
#: number of DWARF -> where an interrupt keeps the register, from the frame's beginning
_KEPT: Final = {
    15: 0,
    14: 8,
    13: 16,
    12: 24,
    6: 32,
    3: 40,
    11: 48,
    10: 56,
    9: 64,
    8: 72,
    0: 80,
    2: 88,
    1: 96,
    4: 104,
    5: 112,
    16: 128,
}
_KEPT_SP: Final = 152


@frozen
class TableRow:
    """Where a caller's registers are, at one instruction, in the terms of call frame information.

    Attributes:
        cfa: how the canonical frame address is computed, as pyelftools has it: a register's DWARF
            number and an offset, or an expression.
        rules: DWARF number of a register -> pyelftools' rule.
        link: DWARF number of the return address.
        structs: pyelftools' structs, by which expressions are parsed.
    """

    cfa: CFARule
    rules: dict[int, Any]
    link: int
    structs: DWARFStructs


class UnwindTable(Protocol):
    """A table of unwind information of one file: SFrame's, ORC's or Arm's."""

    def row(self, address: int) -> TableRow | None:
        """Return the row for a link address; None where there is none.

        Raises:
            errors in DAMAGE: the table is damaged.
        """


def tables_of(file: LoadedFile) -> list[UnwindTable]:
    """Return a file's tables of SFrame, ORC and Arm; [] where it has none. Damaged ones are left
    out.
    """
    found: list[UnwindTable] = []
    for make in (_sframe, _orc, partial(_arm_index, file)):
        try:
            table = make(elf_of(file))
        except DAMAGE:
            continue
        if table is not None:
            found.append(table)
    return found


# --- SFrame


@frozen
class _SFunction:
    """A function in an SFrame table.

    Attributes:
        start: link address.
        size: bytes.
        rows: offset of its rows in the section.
        count: how many rows there are.
        kind: width of a row's address: 0, 1, 2 for 1, 2, 4 bytes.
        repeated: the code consists of blocks of so many bytes (a PLT's stubs), and the rows are for
            each of them; 0: the rows are for the whole function.
    """

    start: int
    size: int
    rows: int
    count: int
    kind: int
    repeated: int


def _sframe(elf: ELFFile) -> SFrame | None:
    """Return a file's SFrame table; None where it has none.

    Raises:
        errors in DAMAGE: it is damaged.
    """
    section = elf.get_section_by_name(".sframe")
    if section is None:
        return None
    order: Literal["little", "big"] = "little" if elf.little_endian else "big"
    return SFrame(section.data(), section["sh_addr"], order, elf["e_type"] == "ET_REL")


class SFrame:
    """The table of a section .sframe."""

    def __init__(
        self, data: bytes, address: int, order: Literal["little", "big"], unlinked: bool = False
    ) -> None:
        """Read the list of functions.

        Args:
            data: the section.
            address: its link address.
            order: byte order.
            unlinked: True for an object file (.o), where addresses count from their own fields.

        Raises:
            ValueError, struct.error: it is damaged, or of a version or an ABI that is not known
            here.
        """
        self._data = data
        mark = "<" if order == "little" else ">"
        self._mark = mark
        magic, version, flags, abi, _, ra, more, functions, _, _, first, rows = struct.unpack_from(
            mark + "HBBBbbBIIIII", data
        )
        if magic != _MAGIC or version not in (1, 2) or abi not in _ABIS:
            raise ValueError(f"SFrame of version {version}, ABI {abi}")
        self._abi = _ABIS[abi]
        self._fixed = ra  # from the caller's frame to the return address; 0: rows say it
        self._structs = DWARFStructs(order == "little", 32, 8)
        begin = 28 + more
        width = 17 if version == 1 else 20
        found = []
        if begin + first + functions * width > len(data):
            raise ValueError("SFrame's table of functions is cut off")
        for at in range(begin + first, begin + first + functions * width, width):
            start, size, offset, count, info = struct.unpack_from(mark + "iIIIB", data, at)
            start += address + (at if flags & _PCREL or unlinked else 0)
            block = data[at + 17] if version == 2 else _STUB
            found.append(
                _SFunction(
                    start, size, begin + rows + offset, count, info & 15, block if info & 16 else 0
                )
            )
        self._functions = sorted(found, key=lambda each: each.start)
        self._starts = [each.start for each in self._functions]

    def row(self, address: int) -> TableRow | None:
        """Return the row for a link address; None: the table has none."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._starts[at] + self._functions[at].size:
            return None
        function = self._functions[at]
        offset = address - function.start
        if function.repeated:
            offset %= function.repeated
        return self._found(function, offset)

    def _found(self, function: _SFunction, offset: int) -> TableRow | None:
        """Return a function's last row that begins at or before an offset.

        Args:
            function: the function.
            offset: bytes behind its start.

        Returns:
            The row; None: there is none, or it has no offsets.
        """
        width = {0: 1, 1: 2, 2: 4}[function.kind]
        data, at = self._data, function.rows
        chosen = None
        for _ in range(function.count):
            begin = int.from_bytes(data[at : at + width], "little" if self._mark == "<" else "big")
            info = data[at + width]
            size = {0: 1, 1: 2, 2: 4}[info >> 5 & 3]
            many = info >> 1 & 15
            if begin > offset:
                break
            chosen = (
                info & 1,
                struct.unpack_from(f"{self._mark}{many}{' bh i'[size]}", data, at + width + 1),
            )
            at += width + 1 + many * size
        if chosen is None or not chosen[1]:
            return None
        by_sp, (cfa, *saved) = chosen
        rules: dict[int, Any] = {}
        if self._fixed:
            rules[self._abi.link] = RegisterRule("OFFSET", self._fixed)
        elif saved:
            rules[self._abi.link] = RegisterRule("OFFSET", saved.pop(0))
        if saved:
            rules[self._abi.fp] = RegisterRule("OFFSET", saved[0])
        return TableRow(
            CFARule(self._abi.sp if by_sp else self._abi.fp, cfa),
            rules,
            self._abi.link,
            self._structs,
        )


# --- ORC


def _orc(elf: ELFFile) -> Orc | None:
    """Return a file's ORC table; None where it has none.

    Raises:
        errors in DAMAGE: it is damaged.
    """
    places, rows = (elf.get_section_by_name(name) for name in (".orc_unwind_ip", ".orc_unwind"))
    if places is None or rows is None or elf["e_machine"] != "EM_X86_64":
        return None
    new = elf.get_section_by_name(".orc_header") is not None
    return Orc(places.data(), places["sh_addr"], rows.data(), new)


class Orc:
    """The table of the sections .orc_unwind_ip and .orc_unwind."""

    def __init__(self, places: bytes, address: int, rows: bytes, new: bool) -> None:
        """Read where rows begin.

        Args:
            places: contents of .orc_unwind_ip.
            address: its link address.
            rows: contents of .orc_unwind.
            new: True: they have the layout of Linux 6.4 and later.

        Raises:
            ValueError: one section has more rows than the other.
        """
        count = len(places) // 4
        if count != len(rows) // 6:
            raise ValueError("ORC's sections do not fit")
        offsets = struct.unpack_from(f"<{count}i", places)
        found = sorted((address + 4 * n + offset, n) for n, offset in enumerate(offsets))
        self._starts = [start for start, _ in found]
        self._numbers = [n for _, n in found]
        self._rows = rows
        self._new = new
        self._structs = DWARFStructs(True, 32, 8)

    def row(self, address: int) -> TableRow | None:
        """Return the row for a link address; None: there is none, or one of a kind not known here.
        In code that has no caller the row's return address is UNDEFINED.
        """
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        offset, frame, registers, kinds = struct.unpack_from(
            "<hhBB", self._rows, 6 * self._numbers[at]
        )
        base = registers & 15
        kind = kinds & 7 if self._new else (kinds & 3) + _ORC_CALL
        if kind == _ORC_END if self._new else not base and kinds & _ORC_LAST:
            return TableRow(CFARule(7, 0), {16: RegisterRule("UNDEFINED")}, 16, self._structs)
        cfa = self._frame(base, offset)
        if cfa is None or kind not in (_ORC_CALL, _ORC_REGS):
            return None
        if kind == _ORC_REGS:
            rules = {number: RegisterRule("OFFSET", place) for number, place in _KEPT.items()}
            # DW_OP_plus_uconst: from the frame, which is on the stack of the expression
            rules[7] = RegisterRule("EXPRESSION", [0x23, *_leb(_KEPT_SP)])
            return TableRow(cfa, rules, 16, self._structs)
        rules = {16: RegisterRule("OFFSET", -8)}
        if registers >> 4 == _ORC_PREVIOUS:
            rules[6] = RegisterRule("OFFSET", frame)
        elif registers >> 4:
            rules[6] = RegisterRule("UNDEFINED")
        return TableRow(cfa, rules, 16, self._structs)

    def _frame(self, base: int, offset: int) -> CFARule | None:
        """Convert ORC's rule for the caller's frame to pyelftools'.

        Args:
            base: ORC_REG: the register, or memory at one, to count from.
            offset: bytes to add to it.

        Returns:
            None: ORC_REG is of a kind that is not known here.
        """
        if base in _ORC_REGISTERS:
            return CFARule(_ORC_REGISTERS[base], offset)
        # DW_OP_breg6 and 7, DW_OP_deref, DW_OP_consts, DW_OP_plus
        if base == _ORC_BP_INDIRECT:
            return CFARule(expr=[0x76, *_leb(offset), 0x06])
        if base == _ORC_SP_INDIRECT:
            return CFARule(expr=[0x77, 0, 0x06, 0x11, *_leb(offset), 0x22])
        return None


# --- Arm's index of functions

_SP, _LINK, _PC = 13, 14, 15
_CANNOT_UNWIND: Final = 1  #: EXIDX_CANTUNWIND: no exception leaves the function
_COMPACT: Final = 1 << 31  #: set in a word that has operations, clear in one that is an offset


def _arm_index(file: LoadedFile, elf: ELFFile) -> ArmIndex | None:
    """Return a file's index of functions; None for an object file, and for one without an index.

    Args:
        file: the file.
        elf: pyelftools' view of the file.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    section = elf.get_section_by_name(".ARM.exidx")
    if section is None or elf["e_machine"] != "EM_ARM" or elf["e_type"] == "ET_REL":
        return None
    order: Literal["little", "big"] = "little" if elf.little_endian else "big"
    return ArmIndex(section.data(), section["sh_addr"], order, partial(loaded_bytes, file))


class ArmIndex:
    """The index of functions of section .ARM.exidx (EHABI32).

    Each entry has two words: where a function begins, and the operations that leave the function or
    the place of these in .ARM.extab.
    """

    def __init__(
        self,
        entries: bytes,
        address: int,
        order: Literal["little", "big"],
        read: Callable[[int, int], bytes],
    ) -> None:
        """Read where functions begin.

        Args:
            entries: contents of .ARM.exidx.
            address: link address of .ARM.exidx.
            order: byte order of words.
            read: (link address, size) -> bytes of the file's segments; b"": nothing is there.
        """
        self._order = order
        self._read = read
        count = len(entries) // 4
        prefix = "<" if order == "little" else ">"
        words = struct.unpack_from(f"{prefix}{count}I", entries)
        self._starts = [
            _prel31(word, address + 8 * n) for n, word in enumerate(words[: 2 * (count // 2) : 2])
        ]
        self._words = words[1::2]
        self._address = address
        self._structs = DWARFStructs(order == "little", 32, 4)

    def row(self, address: int) -> TableRow | None:
        """Return the row for a call, whose frame is made.

        Args:
            address: link address of the call's last byte, which is odd. For an even one, an
                instruction's, there is no row: the frame may be made in part.

        Returns:
            None: there is no row, or one that cannot be told.

        Raises:
            IndexError, ValueError: the operations are damaged, or of a kind that is not known here.
        """
        if not address & 1:
            return None
        n = bisect.bisect_right(self._starts, address) - 1
        if n < 0:
            return None
        word = self._words[n]
        if word == _CANNOT_UNWIND:
            return None
        return self._row_of(self._operations(word, self._address + 8 * n + 4))

    def _operations(self, word: int, at: int) -> bytes:
        """Return the bytes of the operations of an entry, in order.

        Args:
            word: the entry's second word, not _CANNOT_UNWIND.
            at: link address of the word.

        Raises:
            ValueError: the entry is of a kind that is not known here, or refers to where nothing
                is.
        """
        if word & _COMPACT:
            return word.to_bytes(4, "big")[1:]
        place = _prel31(word, at)
        first = self._word(place)
        if not first & _COMPACT:  # a routine of the language: GNU's want operations behind it
            place += 4
            return self._following(place, self._word(place) >> 24, 3)
        kind = first >> 24 & 15
        if kind == 0:
            return first.to_bytes(4, "big")[1:]
        if kind > 2:
            raise ValueError("an entry of the index is of no known kind")
        return self._following(place, first >> 16 & 0xFF, 2)

    def _following(self, place: int, count: int, first: int) -> bytes:
        """Return the bytes of operations in a word and in those behind it.

        Args:
            place: link address of the first word.
            count: how many words follow.
            first: how many bytes of operations the first word has, its lowest ones.

        Raises:
            ValueError: nothing is there.
        """
        words = [self._word(place + 4 * n).to_bytes(4, "big") for n in range(count + 1)]
        return b"".join(words)[4 - first :]

    def _word(self, address: int) -> int:
        """Return the word at a link address.

        Raises:
            ValueError: no segment of the file has the word.
        """
        data = self._read(address, 4)
        if not data:
            raise ValueError("the index refers to where nothing is")
        return int.from_bytes(data, self._order)

    def _row_of(self, operations: bytes) -> TableRow | None:
        """Return the row that says what operations do one by one.

        Args:
            operations: the bytes of all operations of a function.

        Returns:
            None: an operation is of a kind that is not known here, or none finds the return
            address.

        Raises:
            IndexError: the bytes end within an operation.
        """
        base = _SP
        offset = 0  # from `base` to the stack pointer
        places = dict[int, int]()  # register -> bytes from `base` to where it is kept
        for operation in _arm_operations(operations):
            if operation is None or (operation.base is not None and places):
                return None
            if operation.base is not None:
                base = operation.base
                offset = 0
            for register in operation.popped:
                places[register] = offset
                offset += 4
            offset += operation.added
        link = places.pop(_PC, places.get(_LINK))
        if link is None or _SP in places:
            return None
        places[_LINK] = link
        rules = {
            register: RegisterRule("OFFSET", place - offset) for register, place in places.items()
        }
        return TableRow(CFARule(base, offset), rules, _LINK, self._structs)


class _ArmOperation(NamedTuple):
    """One step of leaving a function.

    Attributes:
        popped: numbers of the registers that are popped from the stack, in the order of addresses.
        added: bytes that are added to the stack pointer after that.
        base: number of the register whose value is put into the stack pointer before that; None:
            the stack pointer stays.
    """

    popped: tuple[int, ...] = ()
    added: int = 0
    base: int | None = None


def _arm_operations(data: bytes) -> Iterator[_ArmOperation | None]:
    """Yield the operations of a function of Arm's index; None for one that is not known here.

    Source: EHABI32, section 10.3, "Frame unwinding instructions".

    Args:
        data: the bytes of the operations.

    Raises:
        IndexError: the bytes end within an operation.
    """
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code < 0x40:
            yield _ArmOperation(added=4 * code + 4)
        elif code < 0x80:
            yield _ArmOperation(added=-4 * (code & 0x3F) - 4)
        elif code < 0x90:
            mask = (code & 15) << 8 | data[at]
            at += 1
            yield _ArmOperation(_registers(mask, 4)) if mask else None
        elif code < 0xA0:
            yield None if code & 15 in (_SP, _PC) else _ArmOperation(base=code & 15)
        elif code < 0xB0:
            link = (_LINK,) if code & 8 else ()
            yield _ArmOperation((*range(4, 5 + (code & 7)), *link))
        elif code == 0xB0:
            return
        elif code == 0xB1:
            mask = data[at]
            at += 1
            yield _ArmOperation(_registers(mask, 0)) if 0 < mask < 16 else None
        elif code == 0xB2:
            number = shift = 0
            more = True
            while more:
                number |= (data[at] & 0x7F) << shift
                more = data[at] >= 0x80
                shift += 7
                at += 1
            yield _ArmOperation(added=0x204 + 4 * number)
        elif code in (0xB3, 0xC8, 0xC9):  # registers of VFP; FSTMFDX (0xB3) stores a word more
            count = (data[at] & 15) + 1
            at += 1
            yield _ArmOperation(added=8 * count + 4 * (code == 0xB3))
        elif code & 0xF8 in (0xB8, 0xD0):
            yield _ArmOperation(added=8 * (code & 7) + 8 + 4 * (code < 0xC0))
        else:
            yield None


def _registers(mask: int, first: int) -> tuple[int, ...]:
    """Return the numbers of the registers in a mask.

    Args:
        mask: a bit for each register, at most 12.
        first: number of the register that the lowest bit stands for.
    """
    return tuple(first + n for n in range(12) if mask >> n & 1)


def _prel31(word: int, place: int) -> int:
    """Return the link address that an offset of 31 bits leads to (AAELF32, R_ARM_PREL31).

    Args:
        word: the offset; the highest of 32 bits does not count.
        place: link address of the word.
    """
    offset = (word & 0x7FFFFFFF) - ((word & 0x40000000) << 1)
    return place + offset & 0xFFFFFFFF


def _leb(number: int) -> bytes:
    """Return a number as signed LEB128. For numbers from 0 to 63 that is unsigned LEB128, too."""
    out = bytearray()
    while not -64 <= number < 64:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number & 0x7F)
    return bytes(out)
