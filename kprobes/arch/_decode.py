"""Decode tables, made of rows that picture encodings bit by bit.

A row is the encoding as the manual prints it, most significant bit first: `0`/`1` fixed, `-`
ignored, a letter one bit of the field of that name; blanks, `_` and `|` separate. Fields become
keyword arguments of the row's functions. Of two rows that both match, one must be strictly more
specific, and wins; any other overlap is an error when the table is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

from attrs import evolve, field, frozen

from ._base import Atomic, Insn


@frozen
class Row:
    """An encoding and how it is probed.

    `mask`, `value` and `fields` are computed from the picture; attributes that are not listed are
    those of Insn.

    Attributes:
        picture: its bits, as the manual prints them.
        name: the mnemonic.
        simulate: (regs, insn, **fields) -> next target; None: it is not simulated.
        reject: why it must not be probed; "": it may be.
        body: what runs out of line: "self" (the instruction itself), "slot" (its delay slot) or ""
            (nothing); None: nothing if it is simulated or refused, else the instruction.
        extra: (insn, **fields) -> Insn; adds what depends on a field (operand, target, a reject).
    """

    picture: str
    name: str
    simulate: Callable[..., int] | None = None
    reject: str = ""
    body: str | None = None
    boostable: bool = True
    delay_slot: bool = False
    links: bool = False
    lands: str = ""
    sends: str = ""
    falls_through: bool = True
    atomic: Atomic | None = None
    #: (insn, to, **fields) -> Insn.displace's code; see as_it_is
    displace: Callable[..., bytes] | None = None
    extra: Callable[..., Insn] | None = None
    #: a further condition on the fields; the row does not match where it is false
    when: Callable[..., bool] | None = None
    bits: int = field(init=False)
    mask: int = field(init=False)
    value: int = field(init=False)
    #: name -> ((shift, width), ...) high part first
    fields: Mapping[str, tuple[tuple[int, int], ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Compute mask, value and fields from the picture."""
        picture = "".join(c for c in self.picture if c not in " _|")
        mask = value = 0
        runs: dict[str, list[tuple[int, int]]] = {}
        for i, c in enumerate(picture):
            shift = len(picture) - 1 - i
            if c in "01":
                mask |= 1 << shift
                value |= int(c) << shift
            elif c != "-":
                if not (c.isascii() and c.isalpha()):
                    raise ValueError(
                        f"row {self.name} {self.picture!r}: {c!r} is no bit; draw 0, 1, - for any "
                        "bit, and letters for fields"
                    )
                parts = runs.setdefault(c, [])
                if parts and i and picture[i - 1] == c:
                    parts[-1] = (shift, parts[-1][1] + 1)
                else:
                    parts.append((shift, 1))
        put = partial(object.__setattr__, self)
        put("bits", len(picture))
        put("mask", mask)
        put("value", value)
        put("fields", {name: tuple(parts) for name, parts in runs.items()})

    def extract(self, word: int) -> dict[str, int]:
        """Return the fields of an encoding that this row matches: letter -> value.

        Args:
            word: the encoding as a number.
        """
        out = {}
        for name, parts in self.fields.items():
            value = 0
            for shift, width in parts:
                value = value << width | word >> shift & (1 << width) - 1
            out[name] = value
        return out

    def make(self, insn: Insn, word: int, rest: bytes) -> Insn:
        """Return the Insn of an encoding that this row matches.

        Its `simulate` and `displace` are the row's, bound to this instruction and its fields; an
        instruction that `extra` refuses, or gives a `simulate` of its own, does not get them.

        Args:
            insn: has the address, bytes, span and mode.
            word: the encoding as a number.
            rest: the bytes behind the instruction, which begin with its delay slot.
        """
        fields = self.extract(word)
        kind = self.body
        if kind is None:
            kind = "" if self.simulate or self.reject else "self"
        body = b""
        if kind == "self":
            body = insn.raw
        elif kind == "slot":
            body = rest[: len(insn.raw)]
        insn = Insn(addr=insn.addr, raw=insn.raw, span=insn.span, mode=insn.mode, name=self.name,
                    reject=self.reject, body=body, boostable=self.boostable,
                    delay_slot=self.delay_slot, links=self.links, lands=self.lands,
                    sends=self.sends, falls_through=self.falls_through, atomic=self.atomic)
        if self.extra is not None:
            insn = self.extra(insn, **fields)
        if self.simulate is not None and insn.simulate is None and not insn.reject:
            displace = (
                partial(_displace, self.displace, insn, fields)
                if self.displace is not None
                else insn.displace
            )
            simulate = partial(_simulate, self.simulate, insn, fields)
            insn = insn.changed(simulate=simulate, displace=displace)
        return insn


def _simulate(simulate: Callable[..., int], insn: Insn, fields: dict[str, int], regs: Any) -> int:
    """Call a row's simulation with the fields of one instruction: becomes `Insn.simulate`."""
    return simulate(regs, insn, **fields)


def _displace(displace: Callable[..., bytes], insn: Insn, fields: dict[str, int], to: int) -> bytes:
    """Call a row's `displace` with the fields of one instruction: becomes `Insn.displace`."""
    return displace(insn, to, **fields)


def as_it_is(insn: Insn, to: int, **_: int) -> bytes:
    """Return the jump's own bytes and its delay slot's, to stand at `to`.

    For use as `Row.displace` of a jump that neither reads nor keeps its own address.
    """
    return insn.raw + insn.body


class _Buckets(dict[int, list[tuple[int, int, Row]]]):
    """First byte of an encoding -> [(mask, value, row)] of the rows that may match, most specific
    first.

    A bucket is made when a byte is looked up for the first time: a guest's code has few of the 256,
    and a process makes tables of architectures whose code it never sees.

    Args:
        ordered: all rows, the most specific first.
        top: number of bits below the first byte.
    """

    def __init__(self, ordered: list[Row], top: int) -> None:
        """Begin without buckets."""
        super().__init__()
        self._ordered = ordered
        self._top = top

    def __missing__(self, byte: int) -> list[tuple[int, int, Row]]:
        """Make the bucket of a byte, keep it, and return it."""
        first = 0xFF << self._top
        self[byte] = [(row.mask, row.value, row) for row in self._ordered
                      if (byte << self._top ^ row.value) & row.mask & first == 0]
        return self[byte]


class DecodeTable:
    """The rows of one instruction width, searched by find() and decode().

    Args:
        rows: at least one; all of one width.

    Raises:
        ValueError: two rows overlap, and neither is more specific; or rows have several widths.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self.bits = self.rows[0].bits
        for row in self.rows:
            if row.bits != self.bits:
                raise ValueError(
                    f"a table has one width: {row.name} {row.picture!r} has {row.bits} bits, "
                    f"{self.rows[0].name} has {self.bits}"
                )
        self._check()
        ordered = sorted(self.rows, key=lambda r: (-r.mask.bit_count(), r.when is None))
        self._top = self.bits - 8
        self._buckets = _Buckets(ordered, self._top)

    def _check(self) -> None:
        """Raise ValueError where two rows may match one encoding and neither is more specific.

        The more specific of two rows fixes all bits that the other fixes, and more. Rows with a
        condition (Row.when) are not checked.
        """
        for i, a in enumerate(self.rows):
            for b in self.rows[i + 1 :]:
                meet = not (a.value ^ b.value) & a.mask & b.mask
                specific = (a.mask | b.mask) in (a.mask, b.mask) and a.mask != b.mask
                if meet and not specific and not (a.when or b.when):
                    raise ValueError(
                        f"decode rows overlap: {a.name} {a.picture!r} and {b.name} {b.picture!r}"
                    )

    def find(self, word: int) -> Row | None:
        """Return the most specific row that matches an encoding (a number) and whose condition
        (`when`) holds; None: there is none.
        """
        for mask, value, row in self._buckets[word >> self._top]:
            if word & mask == value and (row.when is None or row.when(**row.extract(word))):
                return row
        return None

    def decode(self, word: int, insn: Insn, rest: bytes = b"") -> Insn:
        """Return a new Insn for an encoding; one without a row runs out of line as it is.

        Args:
            word: the encoding as a number.
            insn: has the address, bytes, span and mode.
            rest: the bytes behind the instruction, which begin with its delay slot.
        """
        row = self.find(word)
        if row is None:
            return Insn(addr=insn.addr, raw=insn.raw, span=insn.span, mode=insn.mode,
                        name=insn.name, body=insn.raw)
        return row.make(insn, word, rest)


def fixed_width(table: DecodeTable, order: Any) -> Callable[[bytes, int], Insn]:
    """Make the `Arch.decode` of an ISA whose instructions all have the table's width: (code,
    address) -> Insn.

    Args:
        table: its rows.
        order: byte order of code, "little" or "big".
    """
    size = table.bits // 8

    def decode(code: bytes, addr: int) -> Insn:
        """Return the instruction at the start of `code`, which lies at `addr`; one that is refused
        where its bytes are not all there.
        """
        raw = bytes(code[:size])
        if len(raw) < size:
            return Insn.truncated(addr, raw)
        insn = Insn(addr=addr, raw=raw, name="insn")
        return table.decode(int.from_bytes(raw, order), insn, code[size:])

    return decode


def with_delay_slots(table: DecodeTable, order: Literal["little", "big"], *, nop: bytes,
                     may_stand: str = "") -> Callable[[bytes, int], Insn]:
    """Make the `Arch.decode` of an ISA with one instruction width and delay slots: (code, address)
    -> Insn.

    A branch is refused where the instruction in its delay slot may not run anywhere (one that is
    simulated or refused itself), or mapped memory ends before it. The branch's body is its delay
    slot, b"" where that is `nop`; it has no `displace` where the slot's row is not boostable.

    Args:
        table: its rows.
        order: byte order of code.
        nop: the instruction that does nothing; a delay slot with it has no body.
        may_stand: name of a row that is allowed in a delay slot though it refuses probes: its
            instruction faults there, and the fault is reported at the original address.
    """
    alone = fixed_width(table, order)

    def decode(code: bytes, addr: int) -> Insn:
        """Return the instruction at the start of `code`, which lies at `addr`; its delay slot
        follows it.
        """
        insn = alone(code, addr)
        if not insn.delay_slot or insn.reject:
            return insn
        slot = insn.body
        if len(slot) < len(nop):
            return evolve(insn, reject="its delay slot is missing: mapped memory ends here")
        if slot == nop:
            return evolve(insn, body=b"")  # it has nothing to run
        row = table.find(int.from_bytes(slot, order))
        if row is not None and (row.simulate is not None or row.reject) and row.name != may_stand:
            return evolve(
                insn,
                reject=f"{row.name} in its delay slot: {row.reject or 'a branch, or it reads pc'}",
            )
        return insn if row is None or row.boostable else evolve(insn, displace=None)

    return decode
