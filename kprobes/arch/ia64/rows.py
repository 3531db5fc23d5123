"""Decode rows of Itanium's instructions that are special, unit by unit.

"Instruction Formats", volume 3, chapter 4. A word without a row is straight line. The last six bits
of a picture are the qualifying predicate; `i` is a displacement in bundles, the sign first. The
functions here are a row's `extra`: they take the instruction and its fields by letter, and return
it with its target and facts.
"""

from __future__ import annotations

from functools import partial

from attrs import evolve

from .._base import Insn, signed
from .._decode import DecodeTable, Row
from .._words import EXCEPTION, PRIVILEGED, TRAP_RETURN
from . import bundle, displace, simulate
from .bundle import MASK, SIZE

CHECKS = "branches by what no register shows: it cannot be simulated, and from a slot it would lead away"
LEVEL = "changes the privilege level by the page that it is on"
IA32 = "goes on with IA-32 code"

# --- `extra`: what a row cannot say


def near(insn: Insn, i: int, **fields: int) -> Insn:
    """Return a branch with its target, `i` (21 bits) bundles away, and whether it may fall through:
    all but a br.cond without a predicate may.

    A check, which must not be probed, gets its `displace` all the same.
    """
    always = not fields.get("q") and not insn.links and insn.name == "br.cond"
    target = (insn.addr & -SIZE) + (signed(i, 21) << 4) & MASK
    insn = evolve(insn, target=target, falls_through=not always)
    return (
        evolve(insn, displace=partial(displace.near, insn, pieces=MOVED[insn.name]))
        if insn.reject
        else insn
    )


def far(insn: Insn, q: int, **_: int) -> Insn:
    """Return a long branch with its target, 60 bits of bundles away, and whether it may fall
    through.

    It may where it has a predicate (q, the predicate's number, is not 0), or calls.
    """
    upper, word = bundle.parts(insn.raw)[1][1:]
    target = (insn.addr & -SIZE) + bundle.long_offset(word, upper) & MASK
    return evolve(insn, target=target, falls_through=bool(q) or insn.links)


def computed(insn: Insn, q: int, **_: int) -> Insn:
    """Return a branch through a register with its facts: all but returns may stay in the
    function.
    """
    return evolve(insn, indirect=insn.name == "br.cond.b", falls_through=bool(q))


# --- rows

Q = "qqqqqq"
IMM20 = "iiiiiiiiiiiiiiiiiiii"
BREAK = f"0000 - 000 000000 - -------------------- {Q}"

#: cmp.unc and its like write their predicates whether they are executed or not; frcpa clears its
#: own.
A = (
    *(Row(f"11{op} 0 0- 0 {'-' * 20} 1 ------ {Q}", "cmp.unc") for op in ("00", "01", "10")),
    *(Row(f"11{op} - 1- 0 {'-' * 20} 1 ------ {Q}", "cmp.unc.imm") for op in ("00", "01", "10")),
)
M = DecodeTable([
    *A,
    Row(BREAK, "break.m", reject=EXCEPTION),
    Row(f"0000 i 1-- {IMM20} ------- {Q}", "chk.a", reject=CHECKS, extra=near),
    Row(f"0001 i 001 {'i' * 13} ------- {'i' * 7} {Q}", "chk.s.m", reject=CHECKS, extra=near),
    Row(f"0001 i 011 {'i' * 13} ------- {'i' * 7} {Q}", "chk.s.f", reject=CHECKS, extra=near),
    Row(f"0001 - 110 {'-' * 27} {Q}", "alloc"),
    Row(f"0000 - 000 00 1100 {'-' * 21} {Q}", "flushrs"),
    Row(f"0000 - 000 00 1010 {'-' * 21} {Q}", "loadrs"),
    Row(f"0000 - 000 -- 0110 {'-' * 21} {Q}", "ssm", reject=PRIVILEGED),
    Row(f"0000 - 000 -- 0111 {'-' * 21} {Q}", "rsm", reject=PRIVILEGED),
    Row(f"0001 - 000 0000-- {'-' * 21} {Q}", "mov.to.region", reject=PRIVILEGED),  # rr, dbr, ibr, pkr
    Row(f"0001 - 000 0010-- {'-' * 21} {Q}", "ptc", reject=PRIVILEGED),
    Row(f"0001 - 000 0011-- {'-' * 21} {Q}", "ptr.itr", reject=PRIVILEGED),
    Row(f"0001 - 000 1011-- {'-' * 21} {Q}", "mov.to.cr", reject=PRIVILEGED),  # cr, psr.l, itc.d, itc.i
    Row(f"0001 - 000 110100 {'-' * 21} {Q}", "ptc.e", reject=PRIVILEGED),
])  # fmt: skip
I = DecodeTable([  # noqa: E741
    *A,
    Row(BREAK, "break.i", reject=EXCEPTION),
    Row(f"0000 i 001 {'i' * 13} ------- {'i' * 7} {Q}", "chk.s.i", reject=CHECKS, extra=near),
    Row(f"0000 - 000 110000 {'-' * 14} ddddddd {Q}", "mov.ip", simulate.mov_ip, displace=displace.mov_ip),
    Row(f"0101 0 00 0 {'-' * 20} 1 ------ {Q}", "tbit.unc"),
])
F = DecodeTable([
    Row(f"0000 - -- 0 000000 - -------------------- {Q}", "break.f", reject=EXCEPTION),
    Row(f"0000 i -- 0 001000 - {IMM20} {Q}", "fchkf", reject=CHECKS, extra=near),
    Row(f"0100 - -- - {'-' * 20} 1 ------ {Q}", "fcmp.unc"),
    Row(f"0101 - -- - {'-' * 20} 1 ------ {Q}", "fclass.unc"),
    Row(f"000- - -- 1 {'-' * 27} {Q}", "frcpa"),  # frsqrta, fprcpa, fprsqrta
])
B = DecodeTable([
    *(Row(f"0100 i - -- {IMM20} - --- {kind:03b} {Q}", name, effect, displace=away, extra=near)
      for kind, name, effect, away in (
        (0, "br.cond", simulate.br_cond, displace.br_cond),
        (2, "br.wexit", simulate.br_wexit, displace.near),
        (3, "br.wtop", simulate.br_wtop, displace.near),
        (5, "br.cloop", simulate.br_cloop, displace.near),
        (6, "br.cexit", simulate.br_cexit, displace.near),
        (7, "br.ctop", simulate.br_ctop, displace.near))),
    Row(f"0101 i - -- {IMM20} - --- aaa {Q}", "br.call", simulate.br_call, links=True, extra=near),
    Row(f"0001 - - -- {'-' * 17} bbb - --- aaa {Q}", "br.call.b", simulate.br_call_b, links=True),
    Row(f"0000 - - -- 100000 {'-' * 11} bbb - --- 000 {Q}", "br.cond.b", simulate.br_cond_b,
        displace=displace.alone, extra=computed),
    Row(f"0000 - - -- 100000 {'-' * 11} --- - --- 001 {Q}", "br.ia", reject=IA32),
    Row(f"0000 - - -- 100001 {'-' * 11} bbb - --- 100 {Q}", "br.ret", simulate.br_ret,
        displace=displace.alone, extra=computed),
    Row(f"0000 - - -- 000000 {'-' * 21} {Q}", "break.b", reject=EXCEPTION),
    Row(f"0000 - - -- 000010 {'-' * 21} {Q}", "cover"),
    Row(f"0000 - - -- 00010- {'-' * 21} {Q}", "clrrrb"),
    Row(f"0111 {'-' * 37}", "brp"),
    Row(f"0010 - - -- 01000- {'-' * 27}", "brp"),
    Row(f"0000 - - -- 001000 {'-' * 21} {Q}", "rfi", reject=TRAP_RETURN),
    Row(f"0000 - - -- 00110- {'-' * 21} {Q}", "bsw", reject=PRIVILEGED),
    Row(f"0000 - - -- 010000 {'-' * 21} {Q}", "epc", reject=LEVEL),
    Row(f"0000 - - -- 01100- {'-' * 21} {Q}", "vmsw", reject=PRIVILEGED),
])  # fmt: skip
X = DecodeTable([
    Row(BREAK, "break.x", reject=EXCEPTION),
    Row(f"1100 - - -- {'-' * 20} - --- --- {Q}", "brl.cond", simulate.br_cond, displace=displace.brl_cond, extra=far),
    Row(f"1101 - - -- {'-' * 20} - --- aaa {Q}", "brl.call", simulate.br_call, links=True, extra=far),
])
TABLES = {"M": M, "I": I, "F": F, "B": B, "X": X}

#: Their breakpoints are always executed: they do something when their predicate is false, or have
#: none.
ALWAYS = frozenset({"cmp.unc", "cmp.unc.imm", "tbit.unc", "fcmp.unc", "fclass.unc", "frcpa",
                    "alloc", "flushrs", "loadrs", "cover", "clrrrb", "br.wexit", "br.wtop",
                    "br.cloop", "br.cexit", "br.ctop", "brp", "rfi", "bsw", "epc",
                    "vmsw"})  # fmt: skip
#: What may stand behind another instruction in its copy, and how it then gets the displacement that
#: it had.
MOVED = {**dict.fromkeys(("br.cond", "br.wexit", "br.wtop", "br.cloop", "br.cexit", "br.ctop",
                          "chk.a"), bundle.BRANCH),
         **dict.fromkeys(("chk.s.m", "chk.s.f", "chk.s.i"), bundle.CHK_S), "fchkf": bundle.FCHKF}  # fmt: skip
SAME = frozenset({"br.cond.b", "br.ret"})
