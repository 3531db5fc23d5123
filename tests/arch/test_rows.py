"""Decode rows and cases mirror each other: every row is hit by a case, every case decodes and reads as it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from arches import ARCHES, cases_of
from disassembly import agrees, mnemonic
from qemu import table_of

from kprobes import arch as architectures
from kprobes.arch._base import Arch, Insn
from kprobes.arch._decode import DecodeTable, Row
from kprobes.conformance import Conformance
from kprobes.testing import Case, decode_tables, row_names

pytestmark = pytest.mark.quick
ADDRESS = 0x8000000  # room for branches either way
WITH_CASES = [arch for arch in ARCHES if cases_of(arch).cases]
MISNAMED = 0.05  # of a file's cases may be called otherwise by Capstone: aliases and its own mistakes


def decode(arch: Arch, case: Case) -> Insn:
    rest = b"" if case.row == "truncated" else bytes(2 * arch.max_insn)
    return arch.decode(case.code + rest, ADDRESS | case.mode)


def outcome(insn: Insn) -> str:
    return "reject" if insn.reject else "simulate" if insn.simulate is not None else "step"


@contextmanager
def rows_found(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """Which rows the decode tables give meanwhile, by identity."""
    found: set[int] = set()
    find = DecodeTable.find

    def spy(table: DecodeTable, word: int) -> Row | None:
        row = find(table, word)
        found.add(id(row))
        return row

    with monkeypatch.context() as patch:
        patch.setattr(DecodeTable, "find", spy)
        yield found


@pytest.mark.parametrize("arch", WITH_CASES)
def test_cases_decode_as_they_say(arch: str, conformance: Conformance) -> None:
    value, cases = architectures.get(arch), cases_of(arch).cases
    wrong = []
    for case in cases:
        insn = decode(value, case)
        seen = (outcome(insn), insn.name, insn.raw if not insn.reject else case.code)
        if seen != (case.outcome, case.row, case.code):
            wrong.append(f"line {case.line}, {case}: {insn.raw.hex()} {seen[0]}, {insn.name!r} {insn.reject}")
    assert not wrong, "\n".join(wrong)
    table_of(conformance, arch)(arch, "decode", len(cases))


@pytest.mark.parametrize("arch", WITH_CASES)
def test_every_row_is_hit(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, cases = architectures.get(arch), cases_of(arch).cases
    with rows_found(monkeypatch) as found:
        names = {decode(value, case).name for case in cases}
    assert [name for name in row_names(value) if name not in names] == []
    missed = [f"{row.name}: {row.picture}" for table in decode_tables(value) for row in table.rows
              if id(row) not in found]
    assert missed == [], "no case hits these rows"


@pytest.mark.parametrize("arch", WITH_CASES)
def test_cases_are_what_they_are_called(arch: str) -> None:
    """Capstone's mnemonic is the case's, give or take an alias."""
    wrong, known = [], 0
    for case in cases_of(arch).cases:
        name = mnemonic(arch, case.mode, case.code, ADDRESS)
        known += name is not None
        if name is not None and not agrees(arch, case.asm, name, case.code, ADDRESS):
            wrong.append(f"line {case.line}, {case}: Capstone says {name}")
    assert len(wrong) <= MISNAMED * known, "\n".join(wrong)

