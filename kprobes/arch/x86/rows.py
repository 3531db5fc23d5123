"""x86_64 and i386: decoding, simulations of near branches, and what must not be probed.

An x87 instruction in a slot leaves the slot's address in FIP, where FNSTENV and FXSAVE show it, as
on Linux.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, partial

from attrs import frozen

from ...errors import GuestFault
from ...regs import Regs
from .._base import Entry, Frame, Insn, Jump, Linkage, Simulate, Traps
from .._words import EXCEPTION, TRANSACTION
from .displace import displaced, to_label
from .shape import DEFINED, FS, GS, LOCKED, MAPS, NULL, TWO_BYTE_MAP, EncodingShape, measure

#: One-byte opcodes that REP repeats.
STRINGS = {*range(0x6C, 0x70), *range(0xA4, 0xA8), *range(0xAA, 0xB0)}
#: Map and opcode of instructions whose memory operand is only an address: LEA, PREFETCH, NOP.
POINTERS = {(0, 0x8D), *((TWO_BYTE_MAP, opcode) for opcode in (0x0D, *range(0x18, 0x20)))}

# --- Near branches. A simulation reads and writes memory before it changes a register.


@frozen(eq=False)
class Near:
    """A near branch at its address, ready to be simulated.

    The functions that take it change registers and memory as the branch does, and return the target
    to go to next.

    Attributes:
        shape: where the instruction's parts are.
        after: address of the next instruction.
        immediate: signed; 0: it has none.
        width: bytes of a return address.
        counter: name of the register that LOOP and JCXZ read.
        where: (regs) -> where it goes when it is taken.
    """

    shape: EncodingShape
    after: int  #: address of the next instruction
    immediate: int
    width: int  #: bytes of a return address
    counter: str  #: (R/E)CX
    where: Simulate  #: where it goes when it is taken


def call(near: Near, regs: Regs) -> int:
    """Simulate CALL: push the return address; return the target."""
    # before the push: CALL [ESP+n] and CALL ESP use the old stack pointer
    target = near.where(regs)
    sp = regs.sp - near.width
    regs.set_word(sp, near.after, near.width)
    regs.sp = sp
    return target


def ret(near: Near, regs: Regs) -> int:
    """Simulate RET: pop and return the target; release as many bytes more as the immediate says."""
    sp = regs.sp
    target = regs.word(sp, near.width)
    # unsigned, though QEMU takes 8000 and more as negative
    regs.sp = sp + near.width + (near.immediate & 0xFFFF)
    return target


def jmp(near: Near, regs: Regs) -> int:
    """Simulate JMP: return the target."""
    return near.where(regs)


def jcc(near: Near, regs: Regs) -> int:
    """Simulate Jcc: return the target where its condition holds, else the next address."""
    holds = CONDITIONS[near.shape.opcode >> 1 & 7](regs.flags)
    return near.where(regs) if bool(holds) != bool(near.shape.opcode & 1) else near.after


def loop(near: Near, regs: Regs) -> int:
    """Simulate LOOP, LOOPE and LOOPNE: count (R/E)CX down; return the target unless it is 0 then,
    else the next address.

    LOOPE returns the target only where ZF is set as well, LOOPNE only where ZF is clear.
    """
    mask = (1 << 8 * near.shape.address) - 1
    old = regs[near.counter]
    count = old - 1 & mask
    # writing ECX clears the high half of RCX
    regs[near.counter] = old & ~0xFFFF | count if mask == 0xFFFF else count
    # LOOPNE E0, LOOPE E1
    equal = near.shape.opcode == 0xE2 or near.shape.opcode & 1 == regs.flags >> 6 & 1
    return near.where(regs) if count and equal else near.after


def jcxz(near: Near, regs: Regs) -> int:
    """Simulate JCXZ, JECXZ and JRCXZ: return the target where (R/E)CX is 0, else the next
    address.
    """
    return (
        near.after if regs[near.counter] & (1 << 8 * near.shape.address) - 1 else near.where(regs)
    )


#: O B Z BE S P L LE, from CF 1, PF 4, ZF 0x40, SF 0x80, OF 0x800; odd condition numbers negate
CONDITIONS: tuple[Callable[[int], int], ...] = (
    lambda f: f & 0x800, lambda f: f & 1, lambda f: f & 0x40, lambda f: f & 0x41,
    lambda f: f & 0x80, lambda f: f & 4,
    lambda f: (f >> 7 ^ f >> 11) & 1, lambda f: f & 0x40 or (f >> 7 ^ f >> 11) & 1)


def _terms(shape: EncodingShape, raw: bytes) -> list[tuple[int, int]]:
    """Return the registers in a memory operand's address, each as (number, factor).

    Args:
        shape: where the instruction's parts are.
        raw: its bytes.
    """
    rm = shape.modrm & 7
    if shape.relative:
        return []
    if shape.address == 2:  # SDM table 2-1
        pair = ((3, 6), (3, 7), (5, 6), (5, 7), (6,), (7,), (5,) if shape.modrm >> 6 else (), (3,))[
            rm
        ]
        return [(number, 1) for number in pair]
    sib = raw[shape.disp_at - 1] if rm == 4 else 0x20 | rm  # 0x20: no index
    base, index = sib & 7, sib >> 3 & 7 | (shape.seen >> 6 & 8 if rm == 4 else 0)
    terms = [(index, 1 << (sib >> 6))] if index != 4 else []
    return terms if base == 5 and shape.modrm < 0x40 else [*terms, (base | shape.seen >> 5 & 8, 1)]


def _table_of(shape: EncodingShape, raw: bytes) -> int | None:
    """Return where the table of a jump through `[index * scale + table]` begins; None where the
    operand has another form (SDM table 2-3: SIB without a base).

    Args:
        shape: where the instruction's parts are.
        raw: its bytes.
    """
    has_sib = shape.memory and shape.address != 2 and shape.modrm & 7 == 4
    if not has_sib or shape.modrm >= 0x40 or raw[shape.disp_at - 1] & 7 != 5:
        return None
    return _number(raw[shape.disp_at : shape.imm_at]) & (1 << 8 * shape.address) - 1


# --- Rows: what is not straight line


@frozen
class OpcodeRow:
    """Opcodes that are not straight line, and what is done with them.

    Attributes:
        at: the opcodes, in DEFINED's notation.
        name: the manual's mnemonic.
        simulate: (branch, regs) -> next target; None, with reject "": it runs out of line, and is
            not boosted.
        reject: why it must not be probed; "": it may.
        direct: the immediate is the displacement of a branch.
        indirect: a computed jump.
    """

    at: str
    name: str
    simulate: Callable[[Near, Regs], int] | None = None
    reject: str = ""
    direct: bool = False  #: the immediate is the displacement of a branch
    indirect: bool = False  #: a computed jump


AS_JMP = "it would be a push and a jump elsewhere, and a kernel's shadow stack would not know of the call"
FAR = "far transfer: loads CS"

ROWS = (
    OpcodeRow("one-byte|* E8", "CALL rel", call, direct=True),
    OpcodeRow("one-byte|* FF/2", "CALL r/m", call),
    OpcodeRow("one-byte|* E9 EB", "JMP rel", jmp, direct=True),
    OpcodeRow("one-byte|* FF/4", "JMP r/m", jmp, indirect=True),
    OpcodeRow("one-byte|* 70-7F", "Jcc rel8", jcc, direct=True),
    OpcodeRow("0F|* 80-8F", "Jcc rel32", jcc, direct=True),
    OpcodeRow("one-byte|* E0-E2", "LOOP", loop, direct=True),
    OpcodeRow("one-byte|* E3", "JCXZ", jcxz, direct=True),
    OpcodeRow("one-byte|* C2-C3", "RET", ret),
    OpcodeRow("one-byte|* 9D", "POPF"),  # may set TF, which must not trap on the jump back
    OpcodeRow("one-byte|* CA-CB CF FFm/3|32 9A\n0F|F3 01=EC", "far CALL, RET, IRET", reject=FAR),
    OpcodeRow("one-byte|* FFm/5|32 EA", "far JMP", reject=FAR, indirect=True),
    OpcodeRow("one-byte|* CC-CD F1|32 CE", "INT", reject=EXCEPTION),
    OpcodeRow("0F|* 0B B9 FF", "UD", reject=EXCEPTION),
    OpcodeRow("0F|* 05 07 34-35", "SYSCALL",
              reject="enters or leaves the system, which is told the address after it"),
    OpcodeRow("one-byte|* 8E/2|32 17", "MOV SS",
        reject="holds traps off for one instruction: the slot's end would be passed over"),
    OpcodeRow("one-byte|* FA-FB", "CLI, STI",
              reject="changes whether interrupts arrive before the slot's end"),
    OpcodeRow("one-byte|* 6C-6F E4-E7 EC-EF", "IN, OUT",
              reject="port access: a device would see the slot's address"),
    OpcodeRow("one-byte|* F4\n0F|* 01=C9 01=FB", "HLT, MWAIT",
        reject="waits for an event: what ends that would find the guest in the slot"),
    OpcodeRow("one-byte|* C7=F8", "XBEGIN", reject=TRANSACTION, direct=True),
    OpcodeRow("one-byte|* C6=F8\n0F|* 01=D5", "XABORT, XEND", reject=TRANSACTION),
    OpcodeRow("0F|* 00/2-3 01m/2-3 01/6 01=D1 01=F8 22-23 30", "MOV CR",
        reject="changes system state that the slot's end depends on"),
    OpcodeRow("0F|* 01r/0 01=CF 01=D4 01=D7-DF 01=FE-FF 37 AA C7m/6-7|- 78-79\n0F38|66 80-81m",
              "VMX",
        reject="enters, leaves or manages a virtual machine, an enclave or system management mode"),
)


def _cells(table: str, wide: bool) -> Iterator[tuple[int, int]]:
    """Parse a table of opcodes; yield (key, bit set of its ModRM bytes) of every opcode.

    The key has the map, the mandatory prefix and the opcode in one number.

    Args:
        table: in DEFINED's notation.
        wide: True in 64-bit mode.
    """
    prefixes = {"-": (0,), "66": (1,), "F3": (2,), "F2": (3,), "*": range(4), "L": (LOCKED,),
                "32": range(0 if wide else 4)}
    pattern = re.compile(
        r"(\w\w)(?:-([0-9A-F]{2}))?([mr]?)(?:/(\d)(?:-(\d))?)?(?:=(\w\w)(?:-(\w\w))?)?"
    )
    for maps, *groups in (line.split("|") for line in table.split("\n") if line):
        for prefix, *tokens in map(str.split, groups):
            for match in map(pattern.fullmatch, tokens):
                first, last, *which = match.groups()  # type: ignore[union-attr]
                opcodes = range(int(first, 16), int(last or first, 16) + 1)
                for name, number, opcode in itertools.product(
                    maps.split(), prefixes[prefix], opcodes
                ):
                    yield (MAPS.index(name) << 3 | number) << 8 | opcode, _modrms(*which)


@cache
def _modrms(
    kind: str, reg: str | None, reg_end: str | None, byte: str | None, byte_end: str | None
) -> int:
    """Return the bit set of ModRM bytes: bit n is set where byte n is meant.

    Args:
        kind: "m": memory; "r": a register; "": both.
        reg: first /reg, a digit; None: any.
        reg_end: last /reg; None: `reg` alone.
        byte: first byte, hexadecimal; None: any.
        byte_end: last byte; None: `byte` alone.
    """
    regs = range(int(reg or "0"), int(reg_end or reg or "7") + 1)
    values = range(int(byte or "0", 16), int(byte_end or byte or "FF", 16) + 1)
    return sum(1 << b for b in values if b >> 3 & 7 in regs and kind != ("m" if b >= 0xC0 else "r"))


# --- Modes


@frozen(eq=False)
class Mode:
    """Decodes code of one mode: 64-bit mode, or 32-bit protected mode with flat segments.

    Attributes:
        bits: of a word.
        names: general registers, by number.
        bases: segment override (FS, GS) -> register that has the segment's address.
    """

    bits: int
    names: tuple[str, ...]  #: general registers, by number
    #: segment override (FS, GS) -> register that holds the segment's address
    bases: Mapping[int, str]
    @cached_property
    def defined(self) -> dict[int, int]:
        """Key of an opcode (map, mandatory prefix, opcode) -> bit set of the ModRM bytes that are
        defined; made from DEFINED when it is first asked for.
        """
        defined: dict[int, int] = {}
        for key, modrms in _cells(DEFINED, self.bits == 64):
            defined[key] = defined.get(key, 0) | modrms
        return defined

    @cached_property
    def rows(self) -> dict[int, list[tuple[int, OpcodeRow]]]:
        """Key of an opcode -> [(bit set of ModRM bytes, the row of the instructions that have
        them)]; made from ROWS when it is first asked for.
        """
        rows: dict[int, list[tuple[int, OpcodeRow]]] = {}
        for row in ROWS:
            for key, modrms in _cells(row.at, self.bits == 64):
                rows.setdefault(key, []).append((modrms, row))
        return rows

    def decode(self, code: bytes, addr: int) -> Insn:
        """Return the instruction at the start of `code`, which lies at `addr` (`Arch.decode`); one
        that is refused where no instruction has this encoding, or `code` ends within it.
        """
        window = bytes(code[:15])
        try:
            shape = measure(window, self.bits == 64)
        except IndexError:
            if len(window) == 15:
                return Insn.undefined(addr, window, "undefined instruction: longer than 15 bytes")
            return Insn.truncated(addr, window)
        raw = window[: shape.size]
        key = (shape.map << 3 | shape.prefix) << 8 | shape.opcode
        if not self.defined.get(key, 0) >> shape.modrm & 1:
            return Insn.undefined(addr, raw)
        for modrms, row in self.rows.get(key, ()):
            if modrms >> shape.modrm & 1:
                return self._special(row, shape, raw, addr)
        operand = self._relative(shape, raw, addr)
        data = (
            _widest(shape)
            if operand is not None and (shape.map, shape.opcode) not in POINTERS
            else 0
        )
        repeats = shape.map == 0 and shape.prefix in (2, 3) and shape.opcode in STRINGS
        return Insn(addr=addr, raw=raw, name=MAPS[shape.map], body=raw, operand=operand, data=data,
                    repeats=repeats)

    def _relative(self, shape: EncodingShape, raw: bytes, addr: int) -> int | None:
        """Return the address of a rip-relative operand; None where there is none.

        Args:
            shape: where the instruction's parts are.
            raw: its bytes.
            addr: its address.
        """
        if not shape.relative:
            return None
        return (
            addr + shape.size + _number(raw[shape.disp_at : shape.imm_at])
            & (1 << 8 * shape.address) - 1
        )

    def _special(self, row: OpcodeRow, shape: EncodingShape, raw: bytes, addr: int) -> Insn:
        """Return the Insn of an instruction that has a row.

        It is simulated, refused, or run out of line and not boosted.

        Args:
            row: says which.
            shape: where its parts are.
            raw: its bytes.
            addr: its address.
        """
        after = addr + shape.size & (1 << self.bits) - 1
        width = 2 if shape.operand == 2 else self.bits // 8
        immediate = _number(raw[shape.imm_at :])
        target = after + immediate & (1 << 8 * width) - 1 if row.direct else None
        reject = row.reject or (self._doubt(shape) if row.simulate else "")
        simulate = None
        displace = None
        if not reject and row.simulate is None:
            return Insn(addr=addr, raw=raw, name=row.name, body=raw, boostable=False)
        if not reject and row.simulate:
            where = (
                self._operand(shape, raw, after, width) if target is None else lambda regs: target
            )
            simulate = partial(
                row.simulate, Near(shape, after, immediate, width, self.names[1], where)
            )
            displace = displaced(row.name, shape, raw, self.bits, after, target)
        fixed = shape.memory and not _terms(shape, raw)  # an import's cell: no switch
        operand = self._relative(shape, raw, addr)
        if row.simulate is jmp and not fixed:
            operand = _table_of(shape, raw)
        return Insn(addr=addr, raw=raw, name=row.name, reject=reject, simulate=simulate,
                    displace=displace,
                    links=row.simulate is call,
                    sends=AS_JMP if row.simulate is call and target is None else "",
                    falls_through=row.simulate not in (jmp, ret), target=target,
                    indirect=row.indirect and not fixed,
                    operand=operand,
                    data=width if shape.relative else 0)

    def _doubt(self, shape: EncodingShape) -> str:
        """Return why a near branch cannot be simulated faithfully; "": it can.

        It cannot with an operand size of 16 bits in 64-bit mode, where CPUs differ; with a segment
        override that engine and CPU understand differently; and through FS or GS where the
        segment's address is not known.

        Args:
            shape: where the instruction's parts are.
        """
        # not even the length is sure; it is taken as AMD and QEMU have it
        if self.bits == 64 and shape.operand == 2:
            return "operand-size prefix on a near branch: Intel ignores it, AMD truncates the address to 16 bits"
        segment = shape.memory and shape.seen & (FS | GS)
        if segment and shape.seen & NULL:
            return "CS, DS, ES or SS override after FS or GS: the CPU ignores it, QEMU does not"
        return (
            "the base address of its segment is not known"
            if segment and segment not in self.bases
            else ""
        )

    def _operand(self, shape: EncodingShape, raw: bytes, after: int, width: int) -> Simulate:
        """Make a function that computes a near branch's target from its register or memory operand.

        Args:
            shape: of the instruction.
            raw: its bytes.
            after: address behind it, which rip-relative operands count from.
            width: bytes of the operand.

        Returns:
            (regs) -> the operand's value.
        """
        if not shape.memory:
            name, mask = self.names[shape.modrm & 7 | shape.seen >> 5 & 8], (1 << 8 * width) - 1
            return lambda regs: regs[name] & mask
        disp = _number(raw[shape.disp_at : shape.imm_at]) + (after if shape.relative else 0)
        terms = [(self.names[number], scale) for number, scale in _terms(shape, raw)]
        wrap, base = (1 << 8 * shape.address) - 1, self.bases.get(shape.seen & (FS | GS))

        def load(regs: Regs) -> int:
            """Read the operand from memory."""
            at = sum([regs[name] * scale for name, scale in terms], disp) & wrap
            return regs.word(at + (regs[base] if base else 0), width)

        return load


def _number(data: bytes) -> int:
    """Return little-endian bytes as a signed number; 0 for none."""
    return int.from_bytes(data, "little", signed=True)


def _widest(shape: EncodingShape) -> int:
    """Return how many bytes of its memory operand an instruction is taken to use.

    The opcode decides: 512 for FXSAVE's, else 16 in map 0F and 64 in later maps (vectors); for x87
    108 where it is FNSAVE's, 28 where it is FNSTENV's, else 10; 8 or 1 for general registers.
    """
    if shape.map == TWO_BYTE_MAP:
        return 512 if shape.opcode == 0xAE else 16
    if shape.map:
        return 64
    if 0xD8 <= shape.opcode <= 0xDF:
        if shape.modrm >> 3 & 5 != 4:
            return 10
        return {0xDD: 108, 0xD9: 28}.get(shape.opcode, 10)  # /4 and /6
    return 1 if shape.opcode < 0x40 and not shape.opcode & 1 else 8


# --- Powers

TRAPS = Traps(probe={1: b"\xcc"}, end={0: b"\xcc"})  # INT3


def jump(bits: int) -> Jump:
    """Make the Jump of a mode: JMP rel32, 2 GiB either way; in 32-bit mode that is everywhere."""
    return Jump(size=5, encode=lambda frm, to: to_label(frm, to, bits))


def linkage(pushed: int) -> Linkage:
    """Make the linkage of calls that push a return address of `pushed` bytes.

    The trampoline's LEA moves the stack pointer down without touching flags, before it returns as
    well.
    """
    back, frame_pointer = ("488d6424f8c3", "rbp") if pushed == 8 else ("8d6424fcc3", "ebp")
    return Linkage.on_stack(pushed, back=bytes.fromhex(back),
                            frame=Frame(register=frame_pointer, address=pushed, next=0))


def landing(marker: bytes) -> Callable[[int, Callable[[int, int], bytes]], Entry]:
    """Make `Pointers.code_address` where a function may start with ENDBR, the bytes of `marker`:
    (address, read) -> Entry, with a second entry behind an ENDBR.
    """

    def code_address(addr: int, read: Callable[[int, int], bytes]) -> Entry:
        """Return the entry of a function at `addr`; two entries where it starts with the marker.
        Memory that cannot be read has one.
        """
        try:
            first = read(addr, len(marker))
        except GuestFault:  # a one-byte function may end a mapping
            first = b""
        return Entry(addr=addr, entries=(0, len(marker)) if first == marker else (0,))

    return code_address
