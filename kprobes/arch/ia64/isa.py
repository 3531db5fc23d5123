"""Itanium: `ia64`, little endian, 64 bits.

Titles in quotes are sections of the Intel Itanium Architecture Software Developer's Manual. No
emulator runs it: what is proved is proved on the model in kprobes/machine/ia64.
"""

from __future__ import annotations

from functools import lru_cache, partial

from attrs import evolve

from .._base import Abi, Arch, Bundles, Files, Insn, Jump, Linkage, Order, OutOfLine, Registers, Results, Traps, Walking
from . import bundle, jumps
from .bundle import NOP, SIZE
from .displace import alone, jump, word_of
from .rows import ALWAYS, MOVED, SAME, TABLES

R = tuple(f"r{n}" for n in range(128))
#: As Linux's struct pt_regs has them: `pr` all predicates; `cfm` the current frame; `pc` the bundle
#: and the slot.
SPECIAL = (*(f"b{n}" for n in range(8)), "pr", "cfm",
           "ar_pfs", "ar_lc", "ar_ec", "ar_bsp", "ar_ccv", "ar_unat", "ar_rsc", "ar_fpsr")
F = tuple(f"f{n}" for n in range(2, 128))  # f0 is 0.0, f1 is 1.0

REGISTERS = Registers(
    names=(*R[:32], *SPECIAL, "pc", *R[32:], *F), pc="pc", sp="r12", flags="pr",
    aliases={"gp": "r1", "sp": "r12", "tp": "r13", "rp": "b0", "ip": "pc", "cr_iip": "pc",
             "cr_ifs": "cfm",
             **{f"ret{n}": f"r{8 + n}" for n in range(4)}},
    widths={"r0": 0, "cfm": 38, "ar_ec": 6, **dict.fromkeys(F, 82)},
)

# --- decoding


def _slots(units: str) -> tuple[int, ...]:
    """Return the slots of a bundle in which instructions begin: (0, 1, 2), or (0, 1) with a long
    one.

    Args:
        units: unit of each slot, a letter each.
    """
    return tuple(range(len(units)))


def _span(units: str, slot: int) -> int:
    """Return how many addresses it is from a slot to the next instruction, perhaps in the next
    bundle.

    Args:
        units: unit of each slot of the bundle, a letter each.
        slot: number of the slot.
    """
    return 1 if slot < len(units) - 1 else SIZE - slot


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at `addr`; `code` is the text from the start of its bundle on."""
    return _decoded(bytes(code[:SIZE]), addr)


@lru_cache(
    1 << 11
)  # the model decodes an instruction at each step, with those that follow it in its bundle
def _decoded(raw: bytes, addr: int) -> Insn:
    """Return the instruction at an address, which is the bundle's plus 0, 1 or 2; `raw`: the
    bundle. One that is refused where the bundle is not whole, its template is reserved, or no
    instruction begins at that address. The latest results are remembered.
    """
    slot = addr % SIZE
    if len(raw) < SIZE:
        return evolve(Insn.truncated(addr, raw), span=SIZE - slot)
    template, words = bundle.parts(raw)
    units = bundle.units(template)
    if slot >= len(units):
        slots = "a bundle has slots 0, 1 and 2, and 0 and 1 where one is long"
        why = slots if units else f"template {template:#x} is reserved"
        return evolve(Insn.undefined(addr, raw, why), span=SIZE - slot)
    return _complete(_alone(raw, addr, units, words), units)


def _alone(raw: bytes, addr: int, units: str, words: list[int]) -> Insn:
    """Decode an instruction without its neighbours.

    Args:
        raw: the bundle.
        addr: the bundle's address plus the slot.
        units: unit of each slot, a letter each, "MLX" with a long instruction.
        words: the three slots.
    """
    slot = addr % SIZE
    unit = units[slot]
    word = words[2 if unit == "X" else slot]
    insn = TABLES[unit].decode(word, Insn(addr=addr, raw=raw, span=_span(units, slot), name="insn"))
    return evolve(insn, conditional=bool(word & 63) and insn.name not in ALWAYS)


def _complete(insn: Insn, units: str) -> Insn:
    """Return an instruction with what may run out of line: a body, alone in a bundle, and `onward`.

    `onward` is for one that others follow in its bundle: they are executed with the boost. Where
    they cannot be, the instruction is not boostable.

    Args:
        insn: the instruction as _alone() decodes it; one that is refused or simulated is returned
            as it is.
        units: unit of each slot, a letter each.
    """
    if insn.reject or insn.simulate is not None:
        return insn
    insn = evolve(insn, body=alone(insn, insn.addr))
    if insn.addr % SIZE + insn.span == SIZE:
        return insn
    _, words = bundle.parts(insn.raw)
    start = insn.addr - insn.addr % SIZE
    rest = [
        _alone(insn.raw, start + slot, units, words)
        for slot in _slots(units)[insn.addr % SIZE + 1 :]
    ]
    if not all(_goes_along(each) for each in rest):
        return evolve(insn, boostable=False)
    return evolve(insn, onward=partial(_onward, rest))


def _goes_along(insn: Insn) -> bool:
    """Whether an instruction does the same in the same slot elsewhere, its displacement
    adjusted.
    """
    plain = not insn.reject and insn.simulate is None
    return plain or insn.name in MOVED or insn.name in SAME or insn.name == "brl.cond"


def _onward(rest: list[Insn], to: int) -> bytes:
    """Return code that executes the rest of a bundle elsewhere, then jumps to the next bundle.

    It becomes `Insn.onward`.

    Args:
        rest: the instructions of the bundle that are executed, in the order of their slots.
        to: address of the bundle where the code will stand.

    Returns:
        A bundle with these instructions in their own slots, and a jump to the bundle that follows
        theirs in the text.

    Raises:
        OutOfReach: a branch among them does not reach its target from there.
    """
    first = rest[0]
    copy = bundle.only(first.raw, [insn.addr % SIZE for insn in rest])
    for insn in rest:
        if insn.target is None:
            continue
        if insn.name == "brl.cond":
            _, (_, upper, word) = bundle.parts(bundle.far(word_of(insn), to, insn.target))
            copy = bundle.with_slot(bundle.with_slot(copy, 1, upper), 2, word)
        else:
            moved = bundle.near(word_of(insn), to, insn.target, MOVED[insn.name])
            copy = bundle.with_slot(copy, insn.addr % SIZE, moved)
    return copy + jump(to + SIZE, first.addr - first.addr % SIZE + SIZE & bundle.MASK)


# --- breakpoints

BREAK = 0x81000 << 6  #: break 0x81000, with p0; the same 41 bits in every unit
END = bundle.join(0x09, (BREAK, NOP["M"], NOP["I"]))


def place(addr: int) -> int:
    """Return the address of the first byte that has a bit of an instruction's slot
    (`Bundles.place`).

    Slots have the bits 5 to 45, 46 to 86 and 87 to 127.
    """
    return addr - addr % SIZE + (0, 5, 10)[min(addr % SIZE, 2)]


def trap(insn: Insn) -> tuple[bytes, bytes]:
    """Return the breakpoint over an instruction (`Bundles.trap`), for the bytes from place() on.

    It keeps the qualifying predicate, unless the instruction does something when that is false.

    Returns:
        (bytes with the breakpoint, mask of the bits that are the instruction's).
    """
    slot, qp = insn.addr % SIZE, jumps.predicate(insn)
    template, words = bundle.parts(insn.raw)
    own = [0, 0, 0]
    words[slot], own[slot] = BREAK | qp, bundle.ONES
    if bundle.units(template)[slot] == "X":
        words[1:], own[2] = (0, BREAK | qp), bundle.ONES
    frm, to = place(slot), SIZE if own[2] else (6, 11)[slot]
    return bundle.join(template, words)[frm:to], bundle.join(0, own)[frm:to]


# --- calls and powers

ABI = Abi(args=R[32:40], returns=("r8", "r9"), results=Results(registers=0, memory=0, apart=True),
          stack_args=16)
BACK = bundle.join(0x11, (NOP["M"], NOP["I"], 0x20 << 27 | 1 << 12))  # br.cond.sptk.many b0

ARCHES = (
    Arch(
        package="kprobes.arch.ia64",
        name="ia64", bits=64, order=Order.LITTLE, insn_align=1, max_insn=SIZE, regs=REGISTERS,
        traps=Traps(probe={SIZE: END}, end={0: END}), decode=decode,
        bundles=Bundles(size=SIZE, place=place, trap=trap, jump=jumps.home, no_jump=jumps.why_none),
        abi=ABI, linkage=Linkage.in_register("b0", back=BACK), jump=Jump(size=SIZE, encode=jump),
        out_of_line=OutOfLine(max_displaced=SIZE, max_onward=2 * SIZE),
        walking=Walking(resyncs=True),
        files=Files(machines=((50, 64, "little"),)),
    ),
)
