"""Itanium's decoding held against objdump: what is special in random bundles, and where branches lead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kprobes import arch
from kprobes.arch._base import Insn
from kprobes.arch.ia64.rows import ALWAYS

pytestmark = pytest.mark.quick
LISTING = Path(__file__).resolve().parent.parent / "data" / "ia64_objdump.txt"
AT = 0x40000000
NOT_KNOWN = "data8"
#: What objdump writes -> the row; the first that matches. None does: straight line.
ROWS = (
    (r"(break\.[mifbx]|brp|fchkf|alloc|flushrs|loadrs|[sr]sm|cover|clrrrb|rfi|bsw|epc|vmsw|chk\.a|ptc\.e)\b", r"\1"),
    (r"chk\.s(\.m)? f", "chk.s.f"), (r"(chk\.s\.[mi])", r"\1"),
    (r"ptc\.(l|g|ga) ", "ptc"), (r"(ptr\.|itr\.|mov [id]tr\[)", "ptr.itr"),
    (r"mov r\d+=ip", "mov.ip"), (r"mov (rr|dbr|ibr|pkr)\[", "mov.to.region"), (r"(mov cr\.|mov psr\.l|itc\.)", "mov.to.cr"),
    (r"cmp4?\.\w+\.unc p\d+,p\d+=-?\d", "cmp.unc.imm"), (r"cmp4?\.\w+\.unc ", "cmp.unc"),
    (r"(tbit|tnat|tf)\.n?z\.unc", "tbit.unc"), (r"(fcmp|fclass)\.\w+\.unc", r"\1.unc"), (r"fp?r(cp|sqrt)a", "frcpa"),
    (r"br\.(ia|ret)\b", r"br.\1"), (r"br\.call\S* b\d=b", "br.call.b"), (r"br\.call", "br.call"),
    (r"br\.(cloop|ctop|cexit|wtop|wexit)", r"br.\1"), (r"br\.\S+ b\d", "br.cond.b"), (r"br\.", "br.cond"),
    (r"brl\.call", "brl.call"), (r"brl\.", "brl.cond"),
)


def row_of(text: str) -> str:
    for picture, row in ROWS:
        found = re.match(picture, text)
        if found:
            return found.expand(row)
    return "insn"


def listed() -> list[tuple[Insn, str]]:
    """Every slot, as we decode it and as objdump writes it, where it knows it."""
    out, decode = [], arch.get("ia64").decode
    lines = [line for line in LISTING.read_text().splitlines() if line[0] != "#"]
    for n, line in enumerate(lines):
        code, *slots = line.split(" | ")
        out += [(decode(bytes.fromhex(code), AT + 16 * n | slot), text) for slot, text in enumerate(slots)]
    return [(insn, text) for insn, text in out if not text.startswith(NOT_KNOWN)]


def test_rows() -> None:
    named = [(insn, re.sub(r"^\(p\d+\) ", "", text)) for insn, text in listed()]
    wrong = [f"{insn.addr:#x}: {insn.name}, {text}" for insn, text in named if insn.name != row_of(text)]
    assert wrong == []
    assert len({insn.name for insn, _ in listed()}) > 40


def test_targets_and_predicates() -> None:
    leads = re.compile(r"(\(p\d+\) )?(brl?\.|f?chk).*0x")
    branches = [(insn, text) for insn, text in listed() if leads.match(text)]
    assert len(branches) > 100
    for insn, text in branches:
        assert insn.target == int(text.rpartition("0x")[2], 16), text
    for insn, text in listed():
        predicate = re.match(r"\(p(\d+)\)", text)
        assert insn.conditional == (predicate is not None and insn.name not in ALWAYS), text
