"""m68k's effective addresses, and how long they make an instruction.

M68000PM/AD, section 2. Addressing modes by number: 0 Dn, 1 An, 2 (An), 3 (An)+, 4 -(An), 5
(d16,An), 6 indexed, 7 (xxx).W, 8 (xxx).L, 9 (d16,PC), 10 indexed by PC, 11 immediate.
"""

from __future__ import annotations

from attrs import frozen

from .._base import Insn, signed

D, A = tuple(f"d{n}" for n in range(8)), tuple(f"a{n}" for n in range(8))
MASK = 0xFFFFFFFF

ANY = frozenset(range(12))
DATA = ANY - {1}
ALTERABLE = frozenset(range(9))
DATA_ALTERABLE = ALTERABLE - {1}
MEMORY_ALTERABLE = DATA_ALTERABLE - {0}
CONTROL = frozenset({2, 5, 6, 7, 8, 9, 10})
STORE_MANY = MEMORY_ALTERABLE - {3}
LOAD_MANY = CONTROL | {3}
SHORT, LONG, PC_DISPLACED, PC_INDEXED = 7, 8, 9, 10
UNDEFINED = "undefined encoding"


def mode(e: int) -> int:
    """Return the number of the addressing mode in a 6-bit effective address field; 12 to 14 are
    reserved.
    """
    return e >> 3 if e < 0o70 else e - 0o70 + 7


def half(code: bytes, at: int) -> int:
    """Return the 16-bit word at an offset; 0 beyond the end."""
    return int.from_bytes(code[at : at + 2], "big")


def extension(e: int, code: bytes, at: int, immediate: int) -> int:
    """Return how many bytes of extension words an effective address has.

    Args:
        e: effective address field.
        code: the instruction's bytes and what follows.
        at: offset of the extension words in it.
        immediate: bytes of an immediate operand.

    Returns:
        -1 for a reserved form.
    """
    number = mode(e)
    if number in (6, 10):
        return indexed(half(code, at))
    return (0, 0, 0, 0, 0, 2, 0, 2, 4, 2, 0, immediate, -1, -1, -1)[number]


def indexed(word: int) -> int:
    """Return how many bytes an indexed mode's extension words have, from its first word.

    2 in brief format, more in full format with displacements (2.2.7 to 2.2.10); -1: reserved.
    """
    if not word & 0x100:
        return 2
    base, selection = word >> 4 & 3, word & 7
    if not base or word & 8 or selection == 4 or (word & 0x40 and selection > 4):
        return -1
    return 2 + (0, 0, 2, 4)[base] + (0, 0, 2, 4)[selection & 3]


@frozen(kw_only=True)
class OperandShape:
    """The words that follow an opcode word: a row's `extra`, which measures the instruction and makes its
    Insn.

    Methods take fields of the row's picture by their letters: `e` the effective address (mode and
    register), `z` the operand's size (0 byte, 1 word, 2 long word), `d` the destination of MOVE,
    `s` a displacement of 8 bits.

    Attributes:
        words: bytes between the opcode word and the effective address's words.
        sized: an immediate operand of size `z` follows these.
        ea: the addressing modes allowed; None: there is no effective address.
        operand: bytes of an immediate effective address; 0: by size `z`.
        data: bytes of an operand in memory; 0: only its address counts; None: as many as of an
            immediate one.
        move: the field `d` is a destination.
        floating: the first word is a coprocessor command that says more.
        predicate: the second word is a floating-point condition.
        indirect: a jump: the effective address is its target.
        relative: a branch: its displacement is in the words, in `s` where it has 8 bits.
    """

    words: int = 0
    sized: bool = False
    ea: frozenset[int] | None = None
    operand: int = 0
    data: int | None = None
    move: bool = False
    floating: bool = False
    predicate: bool = False  #: the second word is a floating-point condition
    indirect: bool = False
    #: a branch: the displacement is in the words, `s` where it is 8 bits wide
    relative: bool = False

    def allows(self, e: int = 0, d: int = 0, z: int = -1, **_: int) -> bool:
        """`when` of a row: the fields are ones that the instruction may have.

        That is: the addressing mode is allowed, the size is none that is reserved (3), nor a byte
        of an address register; the destination of MOVE may be written to.
        """
        if self.ea is not None and (mode(e) not in self.ea or z == 3 or (z == 0 and e >> 3 == 1)):
            return False
        return not self.move or mode(destination(d)) in DATA_ALTERABLE

    def place(self, code: bytes, z: int) -> tuple[int, int, frozenset[int] | None]:
        """Return where the effective address's extension words are, and what they may be.

        Args:
            code: the instruction's bytes and what follows.
            z: its size field.

        Returns:
            (their offset in the instruction, bytes of an immediate operand, the modes allowed or
            None).
        """
        if self.floating:
            return floating_operand(half(code, 2))
        word = 4 if z == 2 else 2
        immediate = word if self.sized else 0
        return 2 + self.words + immediate, self.operand or word, self.ea

    def length(self, code: bytes, e: int = 0, z: int = 0, d: int = 0, **_: int) -> int:
        """Return how many bytes the instruction at the start of `code` has; -1 where it is
        undefined.

        Args:
            code: its bytes and what follows.
            e: field of the effective address.
            z: field of the operand's size.
            d: field of MOVE's destination.
        """
        at, operand, allowed = self.place(code, z)
        if self.predicate and half(code, 2) > 31:
            return -1
        if allowed is None:
            return -1 if e and half(code, 2) >> 10 == FMOVECR else at
        if mode(e) not in allowed:
            return -1
        more = extension(e, code, at, operand)
        if more >= 0 and self.move:
            at += more
            more = extension(destination(d), code, at, 0)
        return -1 if more < 0 else at + more

    def __call__(self, insn: Insn, **fields: int) -> Insn:
        """Return the instruction with its length, target or operand: the row's `extra`.

        Args:
            insn: the instruction as the row has it; `raw` has more bytes than it may need.
            fields: of the row's picture.

        Returns:
            One that is refused where the encoding is undefined, or `raw` too short.
        """
        code = insn.raw
        size = self.length(code, **fields)
        if size < 0:
            return Insn.undefined(insn.addr, code[:2], UNDEFINED)
        if size > len(code):
            return Insn.truncated(insn.addr, code)
        raw = code[:size]
        target, operand = None, self.address(insn.addr, raw, **fields)
        if self.relative:
            near = fields.get("s", 0)
            target = (
                insn.addr
                + 2
                + (
                    signed(int.from_bytes(raw[2:], "big"), 8 * size - 16)
                    if size > 2
                    else signed(near, 8)
                )
                & MASK
            )
        elif self.indirect:
            target, operand = operand, None
        table = 2 if self.indirect and fields["e"] == 0o73 and half(raw, 2) & 0x87FF == 2 else 0
        data = 0
        if operand is not None:
            data = self.place(raw, fields.get("z", 0))[1] if self.data is None else self.data
        reject = insn.reject or ("leads to an odd address, where there is no instruction"
                                 if target is not None and target & 1 else "")
        return Insn(addr=insn.addr, raw=raw, name=insn.name, reject=reject, body=raw if insn.body else b"",
                    links=insn.links,
                    falls_through=insn.falls_through, target=target,
                    indirect=self.indirect and target is None,
                    table=table, operand=operand, data=data)

    def address(self, addr: int, raw: bytes, e: int = 0, z: int = 0, **others: int) -> int | None:
        """Return the address that a pc-relative operand, or the operand of a jump, names.

        Args:
            addr: the instruction's address.
            raw: its bytes.
            e: its effective address.
            z: its size field.

        Returns:
            None: there is no such operand, or registers tell its address. An absolute address
            counts only as that of a jump.
        """
        at, _, allowed = self.place(raw, z)
        kind = mode(e)
        if not allowed or kind not in (
            (PC_DISPLACED, SHORT, LONG) if self.indirect else (PC_DISPLACED,)
        ):
            return None
        if kind == LONG:
            return int.from_bytes(raw[at : at + 4], "big")
        return (addr + at if kind == PC_DISPLACED else 0) + signed(half(raw, at), 16) & MASK


FMOVECR = 0b010111  # the command word's first bits; it has no effective address


def destination(d: int) -> int:
    """Return the destination of MOVE as an effective address: it has the register before
    the mode.
    """
    return (d & 7) << 3 | d >> 3


def floating_operand(command: int) -> tuple[int, int, frozenset[int] | None]:
    """Return what OperandShape.place() returns, for a floating-point instruction (section 5):
    (offset of the effective address's extension words in the instruction, bytes of an immediate
    operand, the addressing modes allowed or None: there is no effective address; none at all: the
    command is reserved).

    Args:
        command: its second word, the coprocessor command.
    """
    kind, form = command >> 13, command >> 10 & 7
    if kind == 0 or (kind == 2 and form == 7):
        return 4, 0, None  # from register to register; FMOVECR
    if kind == 1:
        return 4, 0, frozenset()
    if kind in (2, 3):
        wide = form in (2, 3, 5, 7)  # extended, packed, double: not in a data register
        allowed = (DATA if kind == 2 else DATA_ALTERABLE) - ({0} if wide else set())
        return 4, (4, 4, 12, 12, 2, 8, 2, 12)[form], allowed
    if kind in (4, 5):  # control registers
        return 4, 4 * max(form.bit_count(), 1), ANY if kind == 4 else ALTERABLE
    return 4, 0, LOAD_MANY if kind == 6 else STORE_MANY
