"""32-bit Arm: `arm` (ARMv7-A, A32 and T32 with interworking), `armeb` (the same, big-endian data:
BE8), `cortexm` (M profile).

Bit 0 of a target selects T32. Code is little endian in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from attrs import evolve

from ...errors import Unsupported
from ...regs import Regs
from .._addresses import following
from .._base import (
    MOST_BEFORE,
    Abi,
    Arch,
    Entry,
    Files,
    Insn,
    Jump,
    Lane,
    Linkage,
    Order,
    OutOfLine,
    Pointers,
    Registers,
    Results,
    Traps,
    Walking,
)
from .._decode import DecodeTable
from . import addresses, interrupts
from .a32 import decode_word
from .encode import b, b_wide
from .nvic import RETURNS, Nvic
from .shared import D, R, with_it_state
from .tables import entries, table
from .thumb import A_TABLE, M_TABLE
from .thumb16 import TABLE16, is_wide

ALIASES = {"r13": "sp", "r14": "lr", "r15": "pc", "sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12"}
WIDTHS = dict.fromkeys(D, 64)

#: singles: halves of the first sixteen doubles
SINGLES = {f"s{n}": Lane(D[n // 2], 32 * (n & 1), 32, keeps=True) for n in range(32)}
A_REGISTERS = Registers(names=(*R, "cpsr", *D, "fpscr", "tpidruro"), pc="pc", sp="sp", flags="cpsr",
                        aliases=ALIASES,
                        widths=WIDTHS, lanes=SINGLES, reals=frozenset(D))
M_REGISTERS = Registers(names=(*R, "xpsr", *D[:16], "fpscr"), pc="pc", sp="sp", flags="xpsr",
                        aliases=ALIASES, widths=dict.fromkeys(D[:16], 64), lanes=SINGLES,
                        reals=frozenset(D[:16]))  # fmt: skip

# --- decoding


def decode_a32(code: bytes, addr: int) -> Insn:
    """Return the A32 instruction at the start of `code`, which lies at `addr`; one that is refused
    where fewer than 4 bytes are there, or `addr` is no multiple of 4.
    """
    raw = bytes(code[:4])
    if len(raw) < 4:
        return Insn.truncated(addr, raw)
    if addr & 2:
        return Insn(addr=addr, raw=raw, name="misaligned",
                    reject="A32 code is aligned to 4 bytes; add 1 to the address of T32 code")
    return decode_word(int.from_bytes(raw, "little"), Insn(addr=addr, raw=raw, name="insn"))


def decode_thumb(table: DecodeTable, code: bytes, addr: int) -> Insn:
    """Return the T32 instruction at the start of `code`; one that is refused where its bytes are
    not all there.

    Args:
        table: rows of the 32-bit instructions.
        code: its bytes and what follows.
        addr: its address, without mode bits.
    """
    first = int.from_bytes(code[:2], "little")
    wide = is_wide(first)
    raw = bytes(code[: 4 if wide else 2])
    if len(raw) < (4 if wide else 2):
        return Insn.truncated(addr, raw, mode=1)
    insn = Insn(addr=addr, raw=raw, mode=1, name="insn")
    if wide:
        return table.decode(first << 16 | int.from_bytes(raw[2:], "little"), insn)
    return TABLE16.decode(first, insn)


def decode_a(code: bytes, addr: int) -> Insn:
    """Return the A profile's instruction at the start of `code`: T32 where bit 0 of `addr`
    is set.
    """
    return decode_thumb(A_TABLE, code, addr & ~1) if addr & 1 else decode_a32(code, addr)


def decode_m(code: bytes, addr: int) -> Insn:
    """Return the M profile's instruction at the start of `code`, which is always T32."""
    return decode_thumb(M_TABLE, code, addr & ~1)


# --- powers


def same_mode(regs: Regs, pc: int) -> int:
    """Return a pc that a user wrote as a target: an even one stays in the current
    instruction set.
    """
    return pc if pc & 1 else pc | regs.flags >> 5 & 1


def conditioned(insn: Insn, before: bytes) -> bool:
    """Whether a T32 instruction may be in an IT block, by the code before it
    (`Walking.conditioned`).

    Args:
        insn: the instruction; never True for A32.
        before: up to 16 original bytes before it.
    """
    for distance in range(1, min(len(before) // 2, 7) + 1) if insn.mode else ():
        halfword = int.from_bytes(before[len(before) - 2 * distance :][:2], "little")
        if distance // 2 < _covered(halfword):
            return True
    return False


IN_BLOCK = "is UNPREDICTABLE in an IT block"
NOT_LAST = "branches in an IT block, but is not its last instruction: UNPREDICTABLE"


def reserved(insn: Insn, before: bytes) -> str:
    """Return why a branch of T32 in an IT block must not be probed; "" for any other instruction,
    and where the code before it leaves open whether there is an IT (`Walking.reserved`).

    What a conditional branch, CBZ, CBNZ and IT do there is UNPREDICTABLE (Armv7-A/R ARM, A8.8.18,
    A8.8.29, A8.8.54); the engine takes the first for an undefined instruction. Any other that
    writes PC must be the block's last one.

    Args:
        insn: the instruction.
        before: up to MOST_BEFORE original bytes before it, of its function; fewer begin with an
            instruction.
    """
    nowhere = _is_unpredictable_in_block(insn.raw)
    branches = insn.target is not None or insn.indirect or insn.links or not insn.falls_through
    if not insn.mode or not (nowhere or branches):
        return ""
    halfwords = [int.from_bytes(before[n : n + 2], "little") for n in range(0, len(before), 2)]
    if len(before) < MOST_BEFORE:
        starts = [0]
    else:
        # an IT, unless it may be the second half of a wide instruction
        starts = [n for n in range(1, len(halfwords))
                  if _covered(halfwords[n]) and not _is_wide(halfwords[n - 1])]
    left = max((_left_in_block(halfwords[n:]) for n in starts), default=0)
    if nowhere and left:
        return IN_BLOCK
    return NOT_LAST if left > 1 else ""


def _left_in_block(halfwords: Sequence[int]) -> int:
    """Return how many instructions behind these an IT makes conditional.

    Args:
        halfwords: instructions, of which the first begins with the first halfword.

    Returns:
        0 also where the last halfword is only the first half of an instruction.
    """
    at, left = 0, 0
    while at < len(halfwords):
        left = _covered(halfwords[at]) or max(left - 1, 0)
        at += 2 if _is_wide(halfwords[at]) else 1
    return left if at == len(halfwords) else 0


def _is_wide(halfword: int) -> bool:
    """Whether a halfword is the first of a T32 instruction of two, if it is the first of any."""
    return halfword >> 11 >= 0b11101


def _is_unpredictable_in_block(raw: bytes) -> bool:
    """Whether a T32 instruction is a branch with a condition of its own, CBZ, CBNZ or IT."""
    first = int.from_bytes(raw[:2], "little")
    if len(raw) == 2:
        if first & 0xF500 == 0xB100 or _covered(first):  # CBZ, CBNZ; IT
            return True
        return first >> 12 == 0b1101 and first >> 9 & 7 != 0b111
    second = int.from_bytes(raw[2:4], "little")
    return first >> 11 == 0b11110 and first >> 7 & 7 != 0b111 and second & 0xD000 == 0x8000


def covers(insn: Insn) -> int:
    """Return how many instructions behind it an IT makes conditional, up to four; 0: it is
    no IT.

    A return among them does not end the function, so that discovery of functions goes on behind it.
    """
    if not insn.mode or insn.size != 2:
        return 0
    return _covered(int.from_bytes(insn.raw, "little"))


def _covered(halfword: int) -> int:
    """Return how many instructions a T32 halfword makes conditional, if it is an IT; 0: it is
    none.
    """
    mask = halfword & 15
    return 5 - (mask & -mask).bit_length() if halfword >> 8 == 0xBF and mask else 0


def of_profile(_: int, profile: str) -> Arch:
    """Return the architecture for a little-endian file: `cortexm` for profile "M", else `arm`."""
    return CORTEXM if profile == "M" else ARM


def be8(flags: int, profile: str) -> Arch:
    """Return `armeb` for a big-endian file whose code is little-endian (`Files.choose`).

    Without EF_ARM_BE8 code is big endian, too: BE32, and object files that no linker has seen.

    Args:
        flags: e_flags.
        profile: "M" for the M profile, or "".

    Raises:
        Unsupported: big-endian code, or the M profile.
    """
    if profile == "M":
        raise Unsupported(
            "a big-endian program of the M profile", hint="build it for little endian"
        )
    if not flags & 0x00800000:
        raise Unsupported(
            "big-endian Arm code (BE32, or not linked yet)", hint="link it with --be8"
        )
    return ARMEB


def leave_block(regs: Regs, function: int) -> None:
    """Clear ITSTATE before a function is called from a handler.

    Else it would start in the IT block that the handler's probe may be in.
    """
    regs.flags = with_it_state(regs.flags, 0)


#: A T32 breakpoint covers the first halfword of a 32-bit instruction, too. Linux copies A32's
#: condition: see docs.
A32_UDF, T32_UDF = bytes.fromhex("f801f0e7"), bytes.fromhex("18de")
#: Every return of ARMv7 interworks, or stays in T32 (MOV PC, LR there): so the trampoline is T32
#: code, BX LR.
LINKAGE = Linkage.in_register("lr", mode=1, back=bytes.fromhex("7047"))

WIDE = Jump(size=4, encode=b_wide)
#: PUSH with LR, and STR LR, [SP, #-4]!
OPENS = {0: re.compile(rb"[\s\S][\x40-\x7f\xc0-\xff]\x2d\xe9|\x04\xe0\x2d\xe5"),
         1: re.compile(rb"[\s\S]\xb5|\x2d\xe9[\s\S][\x40-\x5f]")}

ARM = Arch(
    package="kprobes.arch.arm",
    name="arm", bits=32, order=Order.LITTLE, insn_align=2, max_insn=4, regs=A_REGISTERS,
    traps=Traps(probe={4: A32_UDF}, end={0: A32_UDF, 1: T32_UDF}, modes={1: {2: T32_UDF}}),
    decode=decode_a,
    abi=Abi(args=R[:4], returns=R[:2], char_signed=False, results=Results(registers=4, memory=32, floats=True),
            stack_align=8,
            enter=leave_block),
    linkage=LINKAGE,
    jump=Jump(size=4, encode=b, modes={1: WIDE}), out_of_line=OutOfLine(max_displaced=18),
    pointers=Pointers(mode_bits=1, mode="Thumb", same_mode=same_mode,
                      code_address=lambda addr, read: Entry(addr=addr & ~1, mode=addr & 1)),
    walking=Walking(conditioned=conditioned, covers=covers, reserved=reserved, opens=OPENS,
                    table=partial(table, Order.LITTLE),
                    entries=entries, follow=following(addresses.use, 32, addresses.begins)),
    files=Files(machines=((40, 32, "little"),), choose=of_profile),
    interrupts=interrupts.CONTROLLER,
)  # fmt: skip
ARMEB = evolve(ARM, name="armeb", order=Order.BIG, interrupts=None,
               walking=evolve(ARM.walking, table=partial(table, Order.BIG)),
               files=Files(machines=((40, 32, "big"),), choose=be8))
CORTEXM = evolve(
    ARM, name="cortexm", regs=M_REGISTERS, decode=decode_m,
    linkage=evolve(LINKAGE, exceptions=RETURNS),
    traps=Traps(probe={2: T32_UDF}, end={1: T32_UDF}),
    jump=WIDE,
    pointers=Pointers(mode_bits=1, mode="Thumb", same_mode=lambda regs, pc: pc | 1,
                      code_address=lambda addr, read: Entry(addr=addr & ~1, mode=1)),
    files=Files(machines=ARM.files.machines,
                # Armv7-M ARM B1.5.3
                vectors=lambda image: (int.from_bytes(image[:4], "little"),
                                       int.from_bytes(image[4:8], "little"))),
    interrupts=Nvic,
)  # fmt: skip

ARCHES = (ARM, ARMEB, CORTEXM)
