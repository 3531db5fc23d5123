"""PowerPC, 64 bit: `ppc64` (big endian, ELFv1 and ELFv2 images) and `ppc64le` (ELFv2).

The common rows are in rows.py. In ELFv1 a function pointer, and a function's symbol, is the address
of a descriptor: code address, TOC, environment. In ELFv2 it is the code's, and a function that
needs its TOC sets r2 from r12 first; callers in the same image skip that. Parameters of one letter
are fields of a row's picture: t register, d, e, f and o pieces of a displacement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._addresses import following
from .._base import Abi, Arch, Entry, Files, Insn, Order, OutOfLine, Pointers, Results, Walking, displacement, signed
from .._decode import DecodeTable, Row, fixed_width
from .._words import TRANSACTION
from . import addresses
from .rows import OVERWRITTEN, R, powerpc, rows, word

MASK = (1 << 64) - 1
Read = Callable[[int, int], bytes]


def addpcis(regs: Regs, insn: Insn, t: int, d: int, e: int, f: int) -> int:
    """Simulate ADDPCIS: put the next address plus the displacement times 64 KiB into register `t`.

    The displacement is in the pieces `d`, `e` and `f`.
    """
    regs[R[t]] = insn.next + (signed(d << 6 | e << 1 | f, 16) << 16) & MASK
    return insn.next


def addpcis_elsewhere(order: Order, insn: Insn, to: int, t: int, d: int, e: int, f: int) -> bytes:
    """Return code that puts ADDPCIS's original address into register `t`: its `displace`.

    lis, ori, sldi by 32, oris, ori.

    Args:
        order: byte order of code.
        insn: the instruction at its original address.
        to: where the code will stand; not used: it is the same everywhere.
        t: number of the register.
        d: upper piece of the displacement.
        e: middle piece of the displacement.
        f: lowest bit of the displacement.
    """
    value = insn.next + (signed(d << 6 | e << 1 | f, 16) << 16) & MASK
    same = t << 21 | t << 16
    code = (15 << 26 | t << 21 | value >> 48, 24 << 26 | same | value >> 32 & 0xFFFF,
            30 << 26 | same | 0x07C6,
            25 << 26 | same | value >> 16 & 0xFFFF, 24 << 26 | same | value & 0xFFFF)  # fmt: skip
    return b"".join(word(each, order) for each in code)


#: Suffix's opcode -> bytes of the operand, the more of the two types of prefix; paddi (14) only
#: works its address out.
ACCESS = {14: 0, **dict.fromkeys((34, 35, 38, 39), 1), **dict.fromkeys((40, 44), 2),
          **dict.fromkeys((32, 36, 41, 43, 47, 48, 52), 4),
          **dict.fromkeys((42, 46, 57, 61), 8), **dict.fromkeys((50, 51, 54, 55, 56, 60), 16)}


def operand(insn: Insn, d: int, o: int) -> Insn:
    """Return a prefixed instruction with R = 1 with its operand, which counts from its own address.

    Args:
        d: the displacement.
        o: opcode of the suffix, which tells the operand's bytes.
    """
    return evolve(insn, operand=insn.addr + signed(d, 34) & MASK, data=ACCESS.get(o, 32))


INVISIBLE = "TAR and the branch history are not among the registers an engine shows"


def words(order: Order) -> DecodeTable:
    """Make the table of instructions of one word, for a byte order."""
    return DecodeTable((
        *rows(MASK, order),
        # "Fixed-Point Arithmetic Instructions"
        Row("010011 ttttt eeeee dddddddddd 00010 f", "addpcis", addpcis, displace=partial(addpcis_elsewhere, order)),
        Row("010011 ----- ----- --- -- 1000110000 -", "bctar", reject=INVISIBLE),
        Row("011111 ----- ----- ----- 0100101110 -", "mfbhrbe", reject=INVISIBLE),
        Row("011111 ----- 11100 00000 0101010011 -", "mfspr CFAR", reject=OVERWRITTEN),
        # "Transactional Memory Facility": tbegin. to tsr., tabortwc. to trechkpt.
        Row("011111 ----- ----- ----- 101--01110 -", "tbegin., tend.", reject=TRANSACTION),
        Row("011111 ----- ----- ----- 11---01110 -", "tabort.", reject=TRANSACTION),
    ))  # fmt: skip


#: "Prefixed Instructions": prefix and suffix as one number. Types 8LS and MLS have an R bit, the
#: others have not.
PAIRS = DecodeTable((
    Row("000001 -0 0 -- 1 -- dddddddddddddddddd oooooo ----- ----- dddddddddddddddd", "prefixed, pc-relative",
        extra=operand),
))  # fmt: skip


def decoder(order: Order) -> Callable[[bytes, int], Insn]:
    """Make the `Arch.decode` of a byte order, (code, address) -> Insn: instructions are one word,
    or with a prefix two.
    """
    single = fixed_width(words(order), order.value)

    def decode(code: bytes, addr: int) -> Insn:
        """Return the instruction at the start of `code`, of 4 bytes or with a prefix of 8, at
        `addr`.

        It is refused where its bytes are not all there, or it has a prefix and crosses a boundary
        of 64 bytes.
        """
        first = int.from_bytes(code[:4], order.value)
        if first >> 26 != 1 or len(code) < 4:
            return single(code, addr)
        raw = bytes(code[:8])
        if len(raw) < 8:
            return Insn.truncated(addr, raw)
        if addr % 64 == 60:
            return Insn(addr=addr, raw=raw, name="prefixed",
                        reject="crosses a 64-byte boundary, which is an alignment error")
        return PAIRS.decode(first << 32 | int.from_bytes(raw[4:], order.value),
                            Insn(addr=addr, raw=raw, name="prefixed"))

    return decode


def relocator(order: Order) -> Callable[[Insn, int], bytes]:
    """Make the `OutOfLine.relocate` of a byte order, (insn, to) -> body that runs at `to`.

    A pc-relative operand is 8 GiB away at most, and so may be the slot.
    """

    def relocate(insn: Insn, to: int) -> bytes:
        """Return a prefixed instruction for address `to` with its pc-relative operand where it was.

        The body of any other is returned as it is.

        Raises:
            OutOfReach: the operand is farther than 8 GiB from `to`.
        """
        if insn.operand is None:
            return insn.body
        offset = displacement(to, insn.operand, 34, 1, MASK)
        prefix, suffix = (
            int.from_bytes(half, order.value) for half in (insn.body[:4], insn.body[4:])
        )
        halves = prefix & ~0x3FFFF | offset >> 16, suffix & ~0xFFFF | offset & 0xFFFF
        return b"".join(half.to_bytes(4, order.value) for half in halves)

    return relocate


# --- functions


def descriptor(addr: int, read: Read) -> int | None:
    """Return the code address in the ELFv1 descriptor at `addr`; None where none is there.

    A descriptor is aligned to 8 bytes. Its first word is the high half of an address: no
    instruction (opcode 0), or in the kernel's half the same as the descriptor's own. At the address
    that it has there is an instruction. None also where memory is not mapped.

    Args:
        addr: a function pointer.
        read: (address, bytes) -> original bytes; raises GuestFault.
    """
    try:
        code = int.from_bytes(read(addr, 8), "big")
        if addr % 8 or not code or code % 4 or (code >> 58 and code >> 32 != addr >> 32):
            return None
        return code if read(code, 4)[0] >> 2 else None
    except GuestFault:
        return None


def sets_toc(first: int, second: int) -> bool:
    """Whether two instructions are those with which an ELFv2 function sets r2, its TOC.

    The code model chooses between three pairs: two set it from r12, one to a constant.

    Args:
        first: encoding of the function's first instruction.
        second: encoding of its second instruction.
    """
    if second == 0x7C426214:  # add r2,r2,r12
        return first >> 16 == 0xE84C  # ld r2,..(r12)
    # addi r2,r2 after addis r2,r12 or lis r2
    return second >> 16 == 0x3842 and first >> 16 in (0x3C4C, 0x3C40)


def code_address(order: Order) -> Callable[[int, Read], Entry]:
    """Make the `Pointers.code_address` of a byte order, (pointer, read) -> Entry."""

    def address(addr: int, read: Read) -> Entry:
        """Return the entry that a function pointer means.

        It is read from a descriptor, where one is there; else the function has a second entry
        behind the code that sets r2 (`local`), if it begins with that. Memory that cannot be read
        counts as code with one entry.
        """
        code = descriptor(addr, read) if order is Order.BIG else None
        if code is not None:
            return Entry(addr=code)
        try:
            start = read(addr, 8)
        except GuestFault:
            return Entry(addr=addr)
        words = (int.from_bytes(half, order.value) for half in (start[:4], start[4:]))
        return Entry(addr=addr, entries=(0, 8), local=8) if sets_toc(*words) else Entry(addr=addr)

    return address


def call_stub(order: Order) -> re.Pattern[bytes]:
    """Make the pattern of linkers' call stubs for a byte order (`Walking.stubs`).

    std r2, 24(r1); addis r11 or r12, r2, ... (may be missing); ld r12, ...(r2, r11 or r12);
    mtctr r12; bctr.
    Source: ELFv2 ABI, section 4.2.5.3, "Procedure Linkage Table".
    """
    any_byte = rb"[\s\S]"
    words_ = (rb"\xf8\x41\x00\x18", rb"\x3d[\x62\x82]" + 2 * any_byte,
              rb"\xe9[\x82\x8b\x8c]" + 2 * any_byte,
              rb"\x7d\x89\x03\xa6", rb"\x4e\x80\x04\x20")
    if order is Order.LITTLE:
        words_ = (rb"\x18\x00\x41\xf8", 2 * any_byte + rb"[\x62\x82]\x3d",
                  2 * any_byte + rb"[\x82\x8b\x8c]\xe9",
                  rb"\xa6\x03\x89\x7d", rb"\x20\x04\x80\x4e")
    keep, high, load, move, jump = words_
    return re.compile(keep + b"(?:" + high + b")?" + load + move + jump)


def enter(regs: Regs, function: int) -> None:
    """Set the register by which a function finds its data (`Abi.enter`).

    r2 is its TOC where it is reached through a descriptor, else r12 its own address.

    Args:
        regs: registers of the call that is made.
        function: address of the function, or of its descriptor.
    """
    if regs.arch.order is Order.BIG and descriptor(function, regs.read) is not None:
        regs["r2"] = regs.word(function + 8)
    else:
        regs["r12"] = function


#: bytes of the parameter save area, which the caller provides for the eight arguments in registers
#: too
HOMES = 64
V1 = Abi(args=R[3:11], returns=("r3", "r4"), char_signed=False, results=Results(registers=0, memory=0),
         stack_args=48 + HOMES,
         reserve=48 + HOMES, enter=enter)
V2 = evolve(V1, results=Results(registers=16, memory=64, floats=True), stack_args=32 + HOMES,
            reserve=32 + HOMES)


def ppc64(
    name: str, order: Order, abi: Abi, choose: Callable[[int, str], Arch] | None = None
) -> Arch:
    """Make the architecture of one byte order.

    Args:
        name: of the architecture.
        order: byte order of code and data.
        abi: how functions are called.
        choose: Files.choose; None: it runs all such files.
    """
    return powerpc(
        64, order, decoder(order), abi, name=name, max_insn=8,
        out_of_line=OutOfLine(relocate=relocator(order), max_displaced=20),
        walking=Walking(resyncs=True, follow=following(partial(addresses.use, order), 64),
                        stubs=call_stub(order)),
        pointers=Pointers(code_address=code_address(order)),
        files=Files(machines=((21, 64, order.value),), choose=choose),
    )  # fmt: skip


def big_endian(flags: int, _: str) -> Arch:
    """Return the architecture for a big-endian file (`Files.choose`): with ELFv2's ABI or ELFv1's.

    A file that does not say is ELFv1, as raw code is taken to be.

    Args:
        flags: e_flags, whose low two bits are the ABI's number.
        _: not used.
    """
    return evolve(PPC64, abi=V2) if flags & 3 == 2 else PPC64


PPC64 = ppc64("ppc64", Order.BIG, V1, big_endian)
PPC64LE = ppc64("ppc64le", Order.LITTLE, V2)

ARCHES = (PPC64, PPC64LE)
