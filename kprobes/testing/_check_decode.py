"""Checks of check_arch() about decoding: tables, truncated instructions, random code.

Each check takes the architecture and a source of random numbers, and yields a sentence for each
breach.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from ..arch._base import Arch, Insn
from ..arch._decode import DecodeTable, Row

FUZZ = 3000  # random pieces of code decoded


def home(arch: Arch) -> int:
    """Return the address at which checks decode instructions."""
    return 0x10000 if arch.bits > 16 else 0x4000


def decode_tables(arch: Arch) -> list[DecodeTable]:
    """Return the decode tables that `arch.decode` uses, found through its closures and fields."""
    return [thing for thing in _reachable(arch.decode) if isinstance(thing, DecodeTable)]


def row_names(arch: Arch) -> list[str]:
    """Return the names of the rows that `arch.decode` uses, whatever their class, sorted.

    A row is what has a name, a simulate and a reject.
    """
    rows = [
        t
        for t in _reachable(arch.decode)
        if all(hasattr(type(t), word) for word in ("name", "simulate", "reject"))
    ]
    return sorted({row.name for row in rows if not isinstance(row, Insn)})


def _reachable(root: Any) -> Iterator[Any]:
    """Yield the objects from which a decode function is made: closures, tables and rows."""
    seen: dict[int, Any] = {}
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) not in seen and not isinstance(thing, (int, str, bytes, type)):
            seen[id(thing)] = thing
            yield thing
            todo += _parts(thing)


def _parts(thing: Any) -> list[Any]:
    """Return the objects in an object's closure, arguments, items or fields, where a table may be.

    Args:
        thing: any object: a function (also the globals that it names), a partial, a list and so on.
    """
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return cells + [thing.__globals__.get(name) for name in thing.__code__.co_names]
    if isinstance(thing, MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple)):
        return list(thing)
    fields = [
        name for name in ("rows", "_rows", "tables", "_tables", "table") if hasattr(thing, name)
    ]
    return [getattr(thing, name) for name in fields]


def check_tables(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that every row of every decode table is found, and that its fields cover the bits they
    are drawn over.
    """
    for table in decode_tables(arch):
        for row in table.rows:
            words = [row.value | rng.getrandbits(row.bits) & ~row.mask for _ in range(64)]
            if not any(table.find(word) is row for word in words) and not _found_at_all(
                table, row, rng
            ):
                yield (
                    f"row {row.name} {row.picture!r} is never found: others hide it, or its "
                    "condition never holds"
                )
            yield from _misfits(row)
            for word in words[:4]:
                if _rebuilt(row, word) != word & _drawn(row):
                    yield f"row {row.name}: the fields of {word:#x} do not put it together again"


def _misfits(row: Row) -> Iterator[str]:
    """Check that each function of a row takes the fields that its picture has.

    Args:
        row: the row; its functions are not called.
    """
    for what, function, before in (
        ("simulate", row.simulate, 2),
        ("displace", row.displace, 2),
        ("extra", row.extra, 1),
        ("when", row.when, 0),
    ):
        # what `extra` sets may call the row's simulation in its own way
        if function is None or (what == "simulate" and row.extra is not None):
            continue
        try:
            signature = inspect.signature(function)
        except ValueError:  # of a builtin, which tells nothing
            continue
        try:
            signature.bind(*range(before), **dict.fromkeys(row.fields))
        except TypeError as error:
            yield (
                f"row {row.name} {row.picture!r}: {what} does not take its fields "
                f"({' '.join(row.fields) or 'none'}): {error}"
            )


def _found_at_all(table: DecodeTable, row: Row, rng: random.Random) -> bool:
    """Whether a row whose condition rarely holds is found in one of 20,000 tries.

    Args:
        table: has the row.
        row: the row.
        rng: source of random encodings that the row matches.
    """
    return any(
        table.find(row.value | rng.getrandbits(row.bits) & ~row.mask) is row for _ in range(20_000)
    )


def _rebuilt(row: Row, word: int) -> int:
    """Build an encoding from a row's fixed bits and the fields that the row extracts from a
    word.
    """
    out = row.value
    for name, value in row.extract(word).items():
        left = value
        for shift, width in reversed(row.fields[name]):
            out |= (left & (1 << width) - 1) << shift
            left >>= width
    return out


def _drawn(row: Row) -> int:
    """Return a mask of the bits that a row's picture fixes or gives to a field."""
    fields = sum(
        ((1 << width) - 1) << shift for parts in row.fields.values() for shift, width in parts
    )
    return row.mask | fields


def check_truncation(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that decode refuses (Insn.reject) every beginning of an instruction that is not the
    whole instruction, even one that could be a shorter instruction. The instructions are random
    bytes.

    Yields:
        A sentence about the first beginning that is not refused, whatever the mode; no more follow.
    """
    for mode in arch.traps.end:
        for _ in range(200):
            code = rng.randbytes(2 * arch.max_insn)
            insn = arch.decode(code, home(arch) | mode)
            for size in range(insn.size):
                short = arch.decode(code[:size], home(arch) | mode)
                if not insn.reject and not short.reject:
                    yield (
                        f"{code[:size].hex() or 'no bytes'}, a part of {insn.raw.hex()} "
                        f"({insn.name}), is not refused"
                    )
                    return


def check_fuzz(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that decode keeps the contract, and raises nothing, for random bytes. Only the first
    breach is reported.
    """
    for n in range(FUZZ):
        code = rng.randbytes(
            rng.choice((2 * arch.max_insn, 2 * arch.max_insn, rng.randrange(2 * arch.max_insn + 1)))
        )
        mode = rng.choice(tuple(arch.traps.end))
        addr = (
            (rng.getrandbits(arch.bits) if n % 4 == 0 else home(arch))
            & -arch.insn_align
            & ~arch.pointers.mode_bits
            & arch.mask
        )
        try:
            insn = arch.decode(code, addr | mode)
        except Exception as error:
            yield f"decode({code.hex()!r}) raises {type(error).__name__}: {error}"
            return
        for problem in _insn_problems(arch, insn, code, addr):
            yield f"decode({code.hex()!r}, {addr | mode:#x}), {insn.name}: {problem}"
            return


def _insn_problems(arch: Arch, insn: Insn, code: bytes, addr: int) -> Iterator[str]:
    """Yield sentences on what is wrong with a decoded instruction.

    Args:
        arch: the architecture.
        insn: what decode returned.
        code: the bytes that it was given.
        addr: the address that it was given, without mode bits.
    """
    if not isinstance(insn, Insn) or not insn.name:
        yield "gives no named Insn"
        return
    if insn.addr != addr:
        yield f"its address is {insn.addr:#x}"
    if not insn.reject:
        if (
            not code.startswith(insn.raw)
            or not 0 < insn.size <= arch.max_insn
            or insn.size % arch.insn_align
        ):
            yield f"its bytes are {insn.raw.hex()!r}"
        if insn.simulate is None and not insn.body:
            yield "neither simulated nor run out of line"
        if len(insn.body) > arch.max_body:
            yield f"its body has {len(insn.body)} bytes"
    if insn.target is not None and insn.target & ~arch.mask:
        yield f"its target {insn.target:#x} is wider than an address"
