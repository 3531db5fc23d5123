"""Formulas: what is added to what. The notation is in _types.

A formula computes the value of a relocation from its site: `x.sum` is the symbol's address plus the
addend, `x.p` the address of the field. A row's field then takes bits of that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ._sites import RelocationSite


def _call_pair(x: RelocationSite) -> int:
    """Compute RISC-V's distance for auipc + jalr: the low part is signed, so the high part is
    rounded.
    """
    value = x.sum - x.p
    return value + 0x800 & ~0xFFF | value & 0xFFF


def _hi20(x: RelocationSite, value: int) -> int:
    """Keep a value for the low part's relocation, and return it rounded up for the high part.

    RISC-V: the low part's symbol stands at the auipc that has the high part, and not at the target.

    Args:
        x: the relocation of the high part.
        value: what both parts together are.
    """
    x.binder.hi20[x.p] = value
    return value + 0x800


def _lo12(x: RelocationSite) -> int:
    """Return the whole value that a HI20 relocation has kept at the address of this one's symbol.

    Raises:
        ImageError: there was none.
    """
    if x.target.address not in x.binder.hi20:
        raise x.refuse(
            "has no high part, or a thread-local one",
            "link it into an executable or a shared object",
        )
    return x.binder.hi20[x.target.address]


def _i386_got(x: RelocationSite) -> int:
    """Compute the operand that names the symbol's GOT slot, which is filled the first time.

    That is the slot's address where the instruction has no base register (ModRM 00 xxx 101), else
    its distance from the GOT.
    """
    slot = x.binder.slot(x.target.address) + x.a
    return slot if x.binder.memory.read(x.p - 1, 1) & 0xC7 == 5 else slot - x.binder.got


def _m68k_got(x: RelocationSite) -> int:
    """Compute the distance of R_68K_GOT* from its place.

    It is to the GOT for _GLOBAL_OFFSET_TABLE_, and to the symbol's slot for any other symbol.
    """
    own = x.target.name == "_GLOBAL_OFFSET_TABLE_"
    return (x.target.address if own else x.binder.slot(x.target.address)) + x.a - x.p


def _mips_high(x: RelocationSite) -> int:
    """Compute the value for a high half, rounded: S + A, or of `_gp_disp` the distance to GP."""
    return (x.binder.gp + x.a - x.p if x.target.name == "_gp_disp" else x.sum) + 0x8000


def _mips_low(x: RelocationSite) -> int:
    """Compute the value for a low half: S + A; for `_gp_disp` the distance from the high half to
    GP.
    """
    # the low half stands 4 bytes behind the high half, and the distance is measured from that one
    return x.binder.gp + x.a - x.p + 4 if x.target.name == "_gp_disp" else x.sum


def _mips_rel32(x: RelocationSite) -> int:
    """Compute S + A; without a symbol the load bias plus A."""
    return x.sum if x.target.name else x.binder.bias + x.a


def _page_slot(x: RelocationSite) -> int:
    """Return the address of a GOT slot that holds S + A, rounded to 64 KiB; the first time, fill
    one.
    """
    return x.binder.slot(x.sum + 0x8000 & ~0xFFFF)


def _mips_got16(x: RelocationSite) -> int:
    """Compute the distance from GP to the symbol's slot in the GOT, which is filled the first time.

    The slot holds S + A; that of local symbols, which share slots, the 64 KiB page of S + A, whose
    low half is the LO16 of the pair.
    """
    return (_page_slot(x) if x.target.local else x.binder.slot(x.sum)) - x.binder.gp


_WHOLE: dict[str, Callable[[RelocationSite], int]] = {
    "-": lambda x: 0,
    "COPY": lambda x: 0,
    "TLS": lambda x: 0,
    "TLS0": lambda x: x.binder.tls[0],
    "TLSA": lambda x: x.sum - x.binder.tls[2],
    "TLSP": lambda x: x.sum + x.binder.tls[1],
    "TLSD": lambda x: x.binder.describe(x),
    "TLSN": lambda x: -x.sum - x.binder.tls[1],
    "PAIR": _call_pair,
    "HI20": lambda x: _hi20(x, x.sum - x.p),
    "LO12": _lo12,
    "GHI20": lambda x: _hi20(x, x.binder.slot(x.target.address) + x.a - x.p),
    "G386": _i386_got,
    "G68K": _m68k_got,
    "HI": _mips_high,
    "LO": _mips_low,
    "REL32": _mips_rel32,
    "GOT16": _mips_got16,
    "HIX": lambda x: ~x.sum,
    "LOX": lambda x: x.sum & 0x3FF | 0x1C00,
    "OLO": lambda x: (x.sum & 0x3FF) + x.extra,
    "GOP": lambda x: x.binder.slot(x.target.address) - x.binder.got & 0x3FF,
}
_TERMS: dict[str, Callable[[RelocationSite], int]] = {
    "S": lambda x: x.target.address,
    "T": lambda x: x.target.thumb,
    "A": lambda x: x.a,
    "P": lambda x: x.p,
    "N": lambda x: x.thumb_sum,
    "B": lambda x: x.binder.bias,
    "Z": lambda x: x.target.size,
    "L": lambda x: x.binder.code(x),
    "I": lambda x: x.binder.ifunc(x.binder.bias + x.a),
    "V": lambda x: x.row.field.read(x.binder.memory, x.p),
    "P8": lambda x: x.p & ~7,
    "G": lambda x: x.binder.slot(x.target.address | x.target.thumb),
    "D": lambda x: x.binder.slot(x.sum),
    "Q": _page_slot,
    "GOT": lambda x: x.binder.got,
    "GP": lambda x: x.binder.gp,
    "TOC": lambda x: x.binder.toc,
    "PS": lambda x: x.sum & ~0xFFF,
    "PP": lambda x: x.p & ~0xFFF,
    "PD": lambda x: x.binder.slot(x.sum) & ~0xFFF,
    "PGOT": lambda x: x.binder.got & ~0xFFF,
}
SLOTS = {"G", "D", "Q", "PD", "GHI20", "G386", "G68K", "GOT16", "GOP"}
LATE = {"L", "LO12"}  # they need what the others leave: code addresses in descriptors, high parts


def terms(formula: str) -> list[tuple[int, str]]:
    """Split a formula into signed terms: `S+A-P` is [(1, "S"), (1, "A"), (-1, "P")]."""
    return [
        (-1 if sign == "-" else 1, term) for sign, term in re.findall(r"([+-]?)([^+-]+)", formula)
    ]


def formula_of(text: str) -> Callable[[RelocationSite], int]:
    """Return the function (relocation site) -> value that a formula describes.

    Args:
        text: a formula, such as `S+A-P`. What the letters stand for is explained at the top of
            _types.py.
    """
    if text in _WHOLE:
        return _WHOLE[text]
    constant = sum(sign * int(term, 16) for sign, term in terms(text) if term not in _TERMS)
    plus = [_TERMS[term] for sign, term in terms(text) if sign > 0 and term in _TERMS]
    minus = [_TERMS[term] for sign, term in terms(text) if sign < 0]
    return lambda x: sum(term(x) for term in plus) - sum(term(x) for term in minus) + constant
