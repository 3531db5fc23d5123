"""The common part of A32 and T32: registers, flags and conditions, ITSTATE, branches that
interwork, VFP transfers.

Sections name the Arm Architecture Reference Manual, ARMv7-A and ARMv7-R edition (DDI 0406C). A
*target* has bit 0 set for T32.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Parameters of one letter are fields of a row's picture: p pre-indexed, u upwards, w write back, f
load, n base, t the register that is transferred, r register list, i immediate; h, d, z of VFP as
below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...errors import OutOfReach
from ...regs import Regs
from .. import _words as words
from .._base import Insn
from .._decode import Row

MASK = 0xFFFFFFFF
R = (*(f"r{n}" for n in range(13)), "sp", "lr", "pc")
D = tuple(f"d{n}" for n in range(32))
SP, LR, PC = 13, 14, 15
GENERAL = frozenset("ademnt")  #: in the pictures, these letters stand for general registers

EXCEPTION, PRIVILEGED, WAITS, EXCEPTION_RETURN = words.EXCEPTION, words.PRIVILEGED, words.WAITS, words.EXCEPTION_RETURN
UNPREDICTABLE = "uses pc where the manual leaves the result open (UNPREDICTABLE)"
RESERVED = "reserved bits are set (UNPREDICTABLE)"
MONITOR = "part of an exclusive sequence: a trap inside clears the monitor"
BANKED = "accesses another mode's registers, which an exception may change"
ENDIAN = "changes the byte order of data"

# --- registers and flags


def here(insn: Insn) -> int:
    """Return what PC reads as in an instruction: two instructions ahead (A2.3)."""
    return insn.addr + (4 if insn.mode else 8) & MASK


def literal(insn: Insn, u: int, offset: int) -> int:
    """Return the address `offset` bytes behind (`u` 1) or before PC, rounded down to 4."""
    return (here(insn) & ~3) + (offset if u else -offset) & MASK


def after(insn: Insn) -> int:
    """Return the address behind an instruction as a target, with its mode bit."""
    return insn.next | insn.mode


def r(regs: Regs, insn: Insn, n: int) -> int:
    """Return the value of register number `n` as an operand; PC reads as two instructions ahead."""
    return here(insn) if n == PC else regs[R[n]]


def holds(flags: int, c: int) -> bool:
    """Whether a condition holds (ConditionPassed, A8.3.1).

    Odd conditions invert the even one below; 111x always holds.

    Args:
        flags: CPSR or XPSR.
        c: the condition's number, 0 to 15.
    """
    n, z, c_flag, v = (flags >> bit & 1 for bit in (31, 30, 29, 28))
    even = (z, c_flag, n, v, c_flag and not z, n == v, n == v and not z, True)[c >> 1]
    return bool(even) != (c & 1 == 1 and c < 14)


def set_nz(regs: Regs, result: int, carry: int, overflow: int) -> None:
    """Set the condition flags as a data-processing instruction does.

    Args:
        result: 32 bits; N and Z follow from it.
        carry: 0 or 1.
        overflow: 0 or 1.
    """
    regs.flags = (
        regs.flags & 0x0FFFFFFF
        | result & 1 << 31
        | (not result) << 30
        | carry << 29
        | overflow << 28
    )


def it_state(flags: int) -> int:
    """Return ITSTATE (A2.5.2) from CPSR or XPSR, which keep its low two bits apart from the
    others.
    """
    return flags >> 8 & 0xFC | flags >> 25 & 3


def with_it_state(flags: int, state: int) -> int:
    """Return CPSR or XPSR (`flags`) with another ITSTATE (`state`, eight bits)."""
    return flags & ~0x0600FC00 | (state & 0xFC) << 8 | (state & 3) << 25


def it_advance(state: int) -> int:
    """Return the ITSTATE behind the next instruction of an IT block; 0 behind the last (A2.5.2)."""
    return state & 0xE0 | state << 1 & 0x1F if state & 7 else 0


def put(regs: Regs, insn: Insn, t: int, value: int) -> int:
    """Write a loaded word into a register; return the next target, which is the word itself for PC.

    A load into PC is a branch that interworks (LoadWritePC, A2.3.1).

    Args:
        regs: the guest's registers.
        insn: the instruction that loads.
        t: number of the register.
        value: the word; for PC a target.
    """
    if t == PC:
        return value
    regs[R[t]] = value
    return after(insn)


# --- simulations that both instruction sets have (A8.8)


def b(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate B: return its target, in the same instruction set."""
    assert insn.target is not None
    return insn.target | insn.mode


def bl(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BL: set LR to the next address; return the target."""
    regs["lr"] = after(insn)
    return b(regs, insn)


def blx(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BLX to a label: set LR to the next address; return the target, in the other
    instruction set.
    """
    assert insn.target is not None
    regs["lr"] = after(insn)
    return insn.target | insn.mode ^ 1


def bx(regs: Regs, insn: Insn, m: int, **_: int) -> int:
    """Simulate BX: return the value of register `m`, which is a target."""
    return r(regs, insn, m)


def blx_register(regs: Regs, insn: Insn, m: int, **_: int) -> int:
    """Simulate BLX to register `m`: set LR to the next address, and return the register's old
    value, which is a target.
    """
    target = regs[R[m]]  # first: BLX LR goes to the old LR
    regs["lr"] = after(insn)
    return target


def hint(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate an instruction that does nothing: return the next target."""
    return after(insn)


def ldm(regs: Regs, insn: Insn, p: int, u: int, w: int, n: int, r: int) -> int:
    """Simulate LDM of registers and PC: the lowest register from the lowest address.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        p: 1: the base moves before each access; 0: after it.
        u: 1: addresses go up; 0: down.
        w: 1: the base is written back.
        n: number of the base register.
        r: list of the registers, a bit each, without PC.

    Returns:
        The word loaded for PC, which is the next target.
    """
    base, length = regs[R[n]], 4 * r.bit_count() + 4
    start = block_start(base, length, p, u)
    *words, target = [regs.word(start + offset) for offset in range(0, length, 4)]
    if w:
        regs[R[n]] = base + (length if u else -length) & MASK
    for k in range(15):
        if r >> k & 1:
            regs[R[k]] = words.pop(0)
    return target


def block_start(base: int, length: int, p: int, u: int) -> int:
    """Return the lowest address that a block transfer (LDM, STM) accesses.

    Args:
        base: value of the base register.
        length: bytes of the transfer.
        p: 1: the base moves before each access; 0: after it.
        u: 1: addresses go up; 0: down.
    """
    return (base if u else base - length) + (4 if p == u else 0) & MASK


def vfp_literal(
    regs: Regs, insn: Insn, p: int, u: int, h: int, f: int, d: int, z: int, i: int
) -> int:
    """Simulate VLDR, VSTR, VLDM or VSTM relative to PC; return the next target.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        p: 1: VLDR or VSTR; 0: VLDM or VSTM.
        u: 1: the offset of VLDR and VSTR is added; 0: subtracted.
        h: the bit of the first register that the manual calls D.
        f: 1: a load; 0: a store.
        d: the field Vd of the first register.
        z: 1: double registers; 0: single ones.
        i: the immediate, in words: the offset, or how much is transferred.
    """
    base = here(insn) & ~3
    start = base
    if p:
        start += 4 * i if u else -4 * i
    first, count = vfp_registers(p, h, d, z, i)
    size = 8 if z else 4
    if f:
        loaded = [regs.word(start + size * k, size) for k in range(count)]
        for k, value in enumerate(loaded):
            set_vfp(regs, first + k, z, value)
    else:
        for k in range(count):
            regs.set_word(start + size * k, get_vfp(regs, first + k, z), size)
    return after(insn)


def vfp_registers(p: int, h: int, d: int, z: int, i: int) -> tuple[int, int]:
    """Return (number of the first register, count) of a VFP transfer.

    Doubles (`z` 1) are numbered D:Vd, singles Vd:D.

    Args:
        p: 1: one register; 0: as many as `i` has words.
        h: the bit that the manual calls D.
        d: the field Vd.
        z: 1: doubles.
        i: the immediate, in words.
    """
    first = h << 4 | d if z else d << 1 | h
    if p:
        return first, 1
    return first, i // 2 if z else i


def get_vfp(regs: Regs, n: int, z: int) -> int:
    """Return the bits of VFP register number `n`: a double where `z` is 1, else a single."""
    return regs[f"d{n}"] if z else regs[f"d{n // 2}"] >> 32 * (n & 1) & MASK


def set_vfp(regs: Regs, n: int, z: int, value: int) -> None:
    """Write the bits of VFP register number `n`: a double where `z` is 1, else a single.

    A double is two singles, of which the even one is its low half.
    """
    if not z:
        shift = 32 * (n & 1)
        value = regs[f"d{n // 2}"] & ~(MASK << shift) | value << shift
    regs[f"d{n if z else n // 2}"] = value


# --- facts and conditions of rows


def pc_used(**fields: int) -> bool:
    """`when` of a row: one of the picture's general registers is PC."""
    return any(value == PC and name in GENERAL for name, value in fields.items())


def to(
    offset: Callable[..., int], align: int = 1, *, exchanges: bool = False
) -> Callable[..., Insn]:
    """Make the `extra` of a direct branch, (insn, **fields) -> the branch with its target.

    Args:
        offset: (**fields) -> bytes from PC to the target.
        align: PC is rounded down to a multiple of that first (BLX: 4).
        exchanges: True: the target is in the other instruction set.
    """
    return lambda insn, **fields: insn.changed(
        target=(here(insn) & -align) + offset(**fields) & MASK, exchanges=exchanges
    )


def goes(insn: Insn, c: int = 14, **_: int) -> Insn:
    """Return a branch with `falls_through` set: only a conditional one goes on to the next
    instruction.

    In an IT block it is set as if the branch were unconditional.
    """
    return insn.changed(falls_through=c != 14)


def computed(insn: Insn, **fields: int) -> Insn:
    """Return a jump through a register with its facts; through LR (`m`) it counts as a return."""
    return goes(insn, **fields).changed(indirect=fields.get("m") != LR)


def reads(insn: Insn, address: int, size: int) -> Insn:
    """Return the instruction with its pc-relative operand.

    Args:
        insn: the instruction.
        address: of the operand.
        size: bytes of data that are read or written there.
    """
    return insn.changed(operand=address, data=size)


def refuse(insn: Insn, why: str) -> Insn:
    """Return the instruction as one that must not be probed, for the reason `why`."""
    return insn.changed(reject=why, body=b"", simulate=None)


def stays(insn: Insn) -> OutOfReach:
    """Make the error that `displace` raises where code elsewhere would need another register."""
    return OutOfReach(
        f"{insn.name} would take a register elsewhere", address=insn.addr, hint="it is simulated"
    )


def msr_rules(insn: Insn, q: int, k: int, m: int = 0, **_: int) -> Insn:
    """Return MSR; refuse it where it changes more than the condition flags.

    Args:
        q: 1: it writes SPSR.
        k: mask of CPSR's bytes; bits 0 and 1 are the control and the extension byte.
        m: the source register; 0 for an immediate.
    """
    if q:
        return refuse(insn, BANKED)
    if k & 3:
        return refuse(insn, PRIVILEGED)
    return refuse(insn, UNPREDICTABLE) if m == PC else insn


def vfp_rules(doubles: int) -> Callable[..., Insn]:
    """Make the `extra` of VFP transfers relative to PC, (insn, **fields) -> the instruction with
    its operand, or refused.

    Args:
        doubles: how many double registers there are; transfers of others are refused.
    """

    def extra(insn: Insn, p: int, u: int, h: int, d: int, z: int, i: int, **_: int) -> Insn:
        """Return a VFP load or store with its pc-relative operand; refuse what is UNPREDICTABLE: no
        register, more than 32 words, or registers that there are not.

        The fields are those of vfp_literal().
        """
        first, count = vfp_registers(p, h, d, z, i)
        if not 0 < count <= (16 if z else 32) or first + count > (doubles if z else 32):
            return refuse(insn, UNPREDICTABLE)
        return reads(
            insn, (here(insn) & ~3) + (4 * i if u else -4 * i) * p & MASK, (8 if z else 4) * count
        )

    return extra


def not_pc(insn: Insn, **fields: int) -> Insn:
    """Return the instruction; refuse it where it names PC, which is UNPREDICTABLE."""
    return refuse(insn, UNPREDICTABLE) if pc_used(**fields) else insn


def coprocessor(
    row: Callable[..., Row], prefix: str, doubles: int, *, based: bool
) -> Iterator[Row]:
    """Yield the decode rows of coprocessor and VFP instructions that name a general register.

    A7.5 to A7.9; the same in A32 and T32.

    Args:
        row: (picture, name, ...) -> a row.
        prefix: the picture's bits in front.
        doubles: number of double-precision registers.
        based: True: PC may be the base of VSTR, VLDM and VSTM (A32).
    """
    transfer, rules = prefix + "110 p u h 0 f 1111 dddd 101 z iiiiiiii", vfp_rules(doubles)
    yield row(
        transfer, "VLDR literal", vfp_literal, extra=rules, when=lambda p, f, **_: bool(p and f)
    )
    if based:
        yield row(
            transfer,
            "VSTR literal",
            vfp_literal,
            extra=rules,
            when=lambda p, f, **_: bool(p and not f),
        )
        yield row(
            transfer,
            "VLDM, VSTM literal",
            vfp_literal,
            extra=rules,
            when=lambda p, u, **_: bool(u and not p),
        )
    else:
        yield row(transfer, "VSTR, VLDM, VSTM pc", reject=UNPREDICTABLE,
                  when=lambda p, u, f, **_: bool((u and not p) or (p and not f)))
    yield row(
        prefix + "110 - - - 1 - 1111 ---- 101- --------", "VLDM, VSTM pc!", reject=UNPREDICTABLE
    )
    yield row(prefix + "110 - - - - - 1111 ---- kkkk --------", "LDC, STC literal",
              reject="a coprocessor's transfer relative to pc",
              when=lambda k, **_: k not in {10, 11})  # fmt: skip
    yield row(
        prefix + "1100 010 - nnnn tttt ---- ---- ----",
        "MCRR, MRRC",
        reject=UNPREDICTABLE,
        when=pc_used,
    )
    # cp14, cp15
    yield row(
        prefix + "110- ---- ---- ---- 111- ---- ----",
        "LDC, STC, MCRR of the system",
        reject=PRIVILEGED,
    )
    yield row(prefix + "1100 0101 nnnn tttt 111- ---- ----", "MRRC of the system", extra=not_pc)
    yield row(
        prefix + "1110 ---0 ---- tttt ---- ---1 ----", "MCR", reject=UNPREDICTABLE, when=pc_used
    )
    yield row(prefix + "1110 ---1 ---- 1111 101- ---1 ----", "VMOV to pc", reject=UNPREDICTABLE)
    yield row(prefix + "1110 1111 0001 1111 1010 0001 0000", "VMRS APSR_nzcv")
    yield row(prefix + "1110 ---0 ---- ---- 111- ---1 ----", "MCR of the system", reject=PRIVILEGED)
    for name, rest in (
        ("CP15DMB", "0111 tttt 1111 1011 1010"),
        ("CP15DSB", "0111 tttt 1111 1001 1010"),
        ("CP15ISB", "0111 tttt 1111 1001 0101"),
        ("MCR TPIDRURW", "1101 tttt 1111 0101 0000"),
    ):
        yield row(prefix + "1110 0000 " + rest, name, extra=not_pc)


#: coprocessor numbers that are vector instructions in the unconditional space
VECTORS = {8, 9, 10, 11, 13}

COPROCESSOR_2 = (  # of the unconditional space, which T32 has as well
    Row("1111 110- ---- 1111 ---- kkkk ---- ----", "LDC2, STC2 literal",
        reject="a coprocessor's transfer relative to pc", when=lambda k: k not in VECTORS),
    Row("1111 1100 010- nnnn tttt kkkk ---- ----", "MCRR2, MRRC2", reject=UNPREDICTABLE,
        when=lambda k, n, t: PC in (n, t) and k not in VECTORS),
    Row("1111 110- ---- ---- ---- 111- ---- ----", "LDC2, STC2, MCRR2 of the system", reject=PRIVILEGED),
    Row("1111 1110 ---0 ---- 1111 kkkk ---1 ----", "MCR2", reject=UNPREDICTABLE, when=lambda k: k not in VECTORS),
    Row("1111 1110 ---0 ---- ---- 111- ---1 ----", "MCR2 of the system", reject=PRIVILEGED),
)  # fmt: skip
