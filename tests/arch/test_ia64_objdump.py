"""Itanium's decoding held against objdump: what is special in random bundles, and where branches lead."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kprobes import OutOfReach, arch
from kprobes.arch._base import Decoded, Insn
from kprobes.arch.ia64 import bundle
from kprobes.arch.ia64.displace import word_of
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


# --- the same bundles elsewhere

FAR = AT + 0x300000  # every near branch of a random bundle that is displaced to here reaches


def bundles() -> list[tuple[int, bytes]]:
    lines = [line for line in LISTING.read_text().splitlines() if line[0] != "#"]
    return [(AT + 16 * n, bytes.fromhex(line.partition(" ")[0])) for n, line in enumerate(lines)]


def same(there: Insn, insn: Insn) -> None:
    """What it says of itself, but for its place; the displacement is another one, to the same target."""
    assert (there.name, there.target, there.conditional) == (insn.name, insn.target, insn.conditional)
    if insn.target is None:
        assert word_of(there) == word_of(insn)


def test_what_goes_along_is_the_rest_of_the_bundle() -> None:
    """Each instruction behind in its slot, with its target; nothing before it; then the next bundle."""
    value, along = arch.get("ia64"), Counter[str]()
    for start, code in bundles():
        for slot in range(3):
            insn = value.decode(code, start | slot)
            if insn.onward is None:
                continue
            try:
                made = insn.onward(FAR)
            except OutOfReach:
                along["out of reach"] += 1
                continue
            assert len(made) == value.out_of_line.max_onward
            assert value.decode(made[16:], FAR + 16 + 1).target == start + 16
            for other in range(3):
                there = value.decode(made[:16], FAR | other)
                if there.decoded is Decoded.WHOLE and other > slot:
                    same(there, value.decode(code, start | other))
                    along[there.name] += 1
                elif there.decoded is Decoded.WHOLE:
                    unit = bundle.units(made[0] & 31)[other]
                    assert word_of(there) == bundle.NOP[unit]
    assert {"insn", "br.cond", "br.ret", "br.ctop", "chk.a", "chk.s.i", "fchkf", "brl.cond"} <= set(along)


def test_displaced_branches_lead_where_they_led() -> None:
    value, seen = arch.get("ia64"), Counter[str]()
    for start, code in bundles():
        for insn in (value.decode(code, start | slot) for slot in range(3)):
            if insn.displace is None:
                continue
            try:
                made = insn.displace(FAR)
            except OutOfReach:
                continue
            assert len(made) <= value.out_of_line.max_displaced
            long = insn.name in ("br.cond", "brl.cond", "mov.ip")
            there = value.decode(made, FAR | (1 if long else insn.addr & 3))
            if insn.name == "mov.ip":
                assert (there.name, there.conditional) == ("insn", insn.conditional)
            else:
                assert (there.target, there.conditional) == (insn.target, insn.conditional)
            seen[insn.name] += 1
    assert {"br.cond", "br.cond.b", "br.ret", "br.ctop", "br.cloop", "brl.cond", "mov.ip", "chk.a", "chk.s.i",
            "fchkf"} <= set(seen)
