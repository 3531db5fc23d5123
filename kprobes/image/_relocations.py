"""Relocation types by machine and number, and their application.

A row says of a type what is computed (formula) and where the value goes (field); _types has the
rows as text.
"""

from __future__ import annotations

import functools

from ._fields import ArmBranch, ThumbBranch, field_of
from ._formulas import LATE, SLOTS, formula_of, terms
from ._sites import RelocationField, RelocationRow, RelocationSite, RelocationTarget
from ._types import MIPS, PPC64, SPARCV9, TABLES

#: formulas whose value is the symbol's address or the bias, plus an addend
PLAIN = ("B+A", "S+A", "S")
#: fields that are an address: every value fits, whatever is checked
WHOLE = {32: ("n", "w31:0"), 64: ("n", "d63:0")}
# machines on which code of another image expects more than its address in pc
_CALLS_BY_VENEER = (MIPS, PPC64)


def apply(rows: list[RelocationRow], x: RelocationSite) -> None:
    """Compute a relocation's value and write it into the image's memory.

    Nothing is written for a call of an absent weak symbol, and for types that do nothing, are left
    to the thread-local code, or are copies. Of MIPS's composed types each takes the result of the
    one before as its addend.

    Args:
        rows: the rows of its type, one or more.
        x: where it is applied; its addend and target change where there is more than one row.

    Raises:
        ImageError: the value does not fit where it is written, or cannot be computed.
    """
    for row in rows[:-1]:
        x.a = row.compute(x)
        x.target = RelocationTarget()
    last = rows[-1]
    if last.formula not in ("-", "TLS", "COPY") and not (x.target.absent and last.calls):
        last.field.write(x, last.compute(x))


def _row(
    name: str,
    formula: str,
    picture: str,
    where: RelocationField,
    check: str,
    machine: int,
    bits: int,
) -> RelocationRow:
    """Make the row of a relocation type, with the flags that follow from its formula.

    Args:
        name: as the supplement prints it.
        formula: in _types' notation.
        picture: its field in _types' notation.
        where: the same field.
        check: in _types' notation.
        machine: e_machine.
        bits: of an address.
    """
    used = {term for _, term in terms(formula)}
    branch = isinstance(where, ArmBranch | ThumbBranch)
    return RelocationRow(
        name,
        formula,
        where,
        formula_of(formula),
        calls=check == "c" or branch,
        late=bool(used & LATE),
        slots=bool(used & SLOTS),
        veneers=branch or ("L" in used and machine in _CALLS_BY_VENEER),
        tls=formula.startswith("TLS"),
        # some of PPC64's copy descriptors
        plain=formula in PLAIN and picture in WHOLE[bits] and check != "c" and machine != PPC64,
    )


@functools.cache
def table(machine: int, bits: int) -> dict[int, RelocationRow]:
    """Return the relocation types of a machine: number -> row.

    Args:
        machine: e_machine; {} is returned where it is not known here.
        bits: of an address.
    """
    prefix, text = TABLES.get(machine, ("", ""))
    known: dict[int, RelocationRow] = {}
    for line in filter(None, text.splitlines()):
        formula, picture, check, *names = line.split()
        where = field_of(picture, check, bits, machine)
        for name, numbers in (name.split("=") for name in names):
            first, _, last = numbers.partition("..")
            for number in range(int(first), int(last or first) + 1):
                known[number] = _row(
                    prefix + name + (f" ({number})" if last else ""),
                    formula,
                    picture,
                    where,
                    check,
                    machine,
                    bits,
                )
    return known


def rows(machine: int, bits: int, kind: int) -> list[RelocationRow]:
    """Return the rows of a relocation type: one, or up to three where MIPS composes them.

    Args:
        machine: e_machine.
        bits: of an address.
        kind: the type as the file has it; MIPS: of three bytes; SPARC V9: with a second addend
            above.

    Returns:
        [] where the type is not known.
    """
    known = table(machine, bits)
    kinds = [kind & 0xFF if machine == SPARCV9 else kind]
    if machine == MIPS:
        kinds = [kind & 0xFF, *(k for k in (kind >> 8 & 0xFF, kind >> 16 & 0xFF) if k)]
    return [known[k] for k in kinds] if all(k in known for k in kinds) else []
