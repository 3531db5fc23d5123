"""Instructions that execute another one in their own place: z/Architecture's EX and EXRL.

The target is fetched as data: a breakpoint there would be executed in its place, and a jump there silently.
"""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import ExecutedElsewhere, Kprobe, KprobeError, Kprobes, UnicornMachine, Unprobeable

BASE = 0x10000
LA, BR = "41202001", "07fe"  # la %r2,1(%r2); br %r14
NOPS = "0700" * 4


def machine(code: str, **symbols: tuple[int, int]) -> UnicornMachine:
    """Code in hex at BASE; symbols: name -> (offset, bytes), by default one function of all."""
    raw = bytes.fromhex(code)
    places = symbols or {"f": (0, len(raw))}
    return UnicornMachine.from_code(raw, arch="s390x", base=BASE,
                                    symbols={name: (BASE + at, size) for name, (at, size) in places.items()})


def refused(k: Kprobes, m: UnicornMachine, name: str = "f") -> dict[int, str]:
    """Offset -> reason of every instruction of a function that may not be probed."""
    start = m.symbols[name].address
    verdicts = [(insn.addr - start, k.check(insn.addr)) for insn in k._survey.instructions(m.symbols[name])]
    return {offset: verdict.reason for offset, verdict in verdicts if not verdict.probeable}


EXRL_BEHIND = f"c65000000004 {BR} {LA} {BR}"  # exrl %r5,.+8: the target stands behind the return
EXRL_BEFORE = f"a7f40005 0700 {LA} c650fffffffe {BR}"  # j over; la; exrl %r5,.-4: the target stands right in front
EX_BY_LARL = f"c01000000006 44501000 {BR} {LA} {BR}"  # larl %r1,.+12; ex %r5,0(%r1)


@pytest.mark.parametrize(("code", "target", "by"), [
    (EXRL_BEHIND, 8, "EXRL at 0x10000"), (EXRL_BEFORE, 6, "EXRL at 0x1000a"), (EX_BY_LARL, 12, "EX at 0x10006")])
def test_a_target_that_the_code_tells_is_refused(code: str, target: int, by: str) -> None:
    with machine(code) as m, Kprobes(m) as k:
        why = refused(k, m)
        assert list(why) == [target]
        assert by in why[target]
        with pytest.raises(Unprobeable, match=by):
            k.register_kprobe(Kprobe(addr=BASE + target))
        for insn in k._survey.instructions(m.symbols["f"]):
            if insn.addr != BASE + target:
                k.register_kprobe(Kprobe(addr=insn.addr, pre_handler=lambda p, regs: None))
        k.flush_optimizer()
        assert m.call("f", 41) == 42


@pytest.mark.parametrize(("code", "by"), [
    (f"{LA} {BR} 0700 c650fffffffc {BR}", "EXRL at 0x10008"),  # exrl %r5,f
    (f"{LA} {BR} 0700 c010fffffffc 1852 44001000 {BR}", "EX at 0x10010")])  # larl %r1,f; lr; ex %r0,0(%r1)
def test_a_target_in_another_function_is_refused(code: str, by: str) -> None:
    with machine(code, f=(0, 6), g=(8, 14)) as m, Kprobes(m) as k:
        plain = m.call("g", 41)
        assert by in k.check("f").reason
        assert by in k.check(BASE).reason
        assert k.check("f+4").probeable
        k.register_kprobe(Kprobe(symbol_name="g", pre_handler=lambda p, regs: None))
        assert m.call("g", 41) == plain == 42


RELATIVE = [("BRXH", "84230010"), ("BRC", "a7f40010"), ("LARL", "c02000000010"), ("LGRL", "c42800000010")]


@pytest.mark.parametrize(("name", "target"), RELATIVE)
def test_an_execute_of_a_relative_instruction_is_refused(name: str, target: str) -> None:
    """The architecture counts from the target's address, Unicorn and older QEMUs from the EXRL's."""
    with machine(f"c60000000010 {BR}".replace(" ", "").ljust(0x40, "0") + target) as m, Kprobes(m) as k:
        assert not m.counts_from_executed
        verdict = k.check("f")
        assert not verdict.probeable
        assert f"executes {name} at 0x10020, whose relative address" in verdict.reason


@pytest.mark.parametrize(("name", "target"), RELATIVE)
@pytest.mark.parametrize("post", [False, True])
def test_an_execute_of_a_computed_relative_instruction_gives_way(name: str, target: str, post: bool) -> None:
    """Only at the hit is it known what it executes: the pre-handler runs once, then the probe is disabled."""
    code = f"44001000 {BR}".replace(" ", "").ljust(0x40, "0") + target.ljust(0x10, "0")  # ex %r0,0(%r1)
    code += ("41202003" + BR) * 8  # where the branches lead: from the EX, or from 0x20 bytes behind it

    def results(probed: bool) -> Any:
        with machine(code.replace(" ", ""), f=(0, 6)) as m, Kprobes(m) as k:
            hits: list[int] = []
            probe = Kprobe(symbol_name="f", pre_handler=lambda p, regs: hits.append(regs.pc),
                           post_handler=(lambda p, regs, flags: hits.append(-1)) if post else None)
            if probed:
                k.register_kprobe(probe)
            found = []
            for _ in range(2):
                m.regs["r1"] = BASE + 0x20
                found.append((m.call("f", 5, 2), [m.regs[name] for name in ("r1", "r2", "r3", "pswm")]))
            if probed:
                assert hits == [BASE]
                assert not probe.enabled
                assert k.idle
            return found

    plain = results(False)
    with pytest.warns(ExecutedElsewhere, match=f"EX executes {name} at 0x10020, whose relative"):
        assert results(True) == plain


def test_an_execute_whose_first_hit_was_diverted_gives_way_later() -> None:
    """No machine serves its hits by itself: each has to look at what is executed."""
    code = (f"44001000 {BR}".replace(" ", "").ljust(0x40, "0") + f"c02000000100{BR}").replace(" ", "")  # larl %r2,.+0x200
    away = BASE + 4  # the return behind the EX

    def results(probed: bool) -> Any:
        with machine(code, f=(0, 6)) as m, Kprobes(m) as k:
            hits: list[int] = []

            def divert(_probe: Kprobe, regs: Any) -> bool:
                hits.append(regs.pc)
                if len(hits) == 1:
                    regs.pc = away
                return len(hits) == 1

            if probed:
                k.register_kprobe(Kprobe(symbol_name="f", pre_handler=divert))
                m.regs["r1"] = BASE + 0x20
                m.call("f")
            found = []
            for _ in range(3):
                m.regs["r1"] = BASE + 0x20
                found.append(m.call("f"))
            return found

    plain = results(False)
    assert plain == [BASE + 0x20 + 0x200] * 3 or plain == [BASE + 0x200] * 3
    with pytest.warns(ExecutedElsewhere, match="LARL"):
        assert results(True) == plain


def test_what_registers_make_of_an_instruction_counts() -> None:
    """LGFI, which is not relative, becomes BRASL by a register's last byte."""
    code = f"44501000 {BR}".replace(" ", "").ljust(0x40, "0") + "c02100000010"  # ex %r5,0(%r1); lgfi %r2,16
    with machine(code, f=(0, 6)) as m, Kprobes(m) as k:
        probe = Kprobe(symbol_name="f", pre_handler=lambda p, regs: None)
        k.register_kprobe(probe)
        m.regs["r1"], m.regs["r5"] = BASE + 0x20, 0
        assert m.call("f") == 16
        assert probe.enabled
        m.regs["r1"], m.regs["r5"] = BASE + 0x20, 4
        with pytest.warns(ExecutedElsewhere, match="EX executes BRASL"), pytest.raises(KprobeError):
            m.call("f")
        assert not probe.enabled


def test_a_jump_does_not_cover_a_target_of_another_function() -> None:
    code = f"0700 {LA} {BR} c650fffffffd {BR}"  # nop; la; br; g: exrl %r5,f+2
    with machine(code, f=(0, 8), g=(8, 8)) as m, Kprobes(m) as k:
        assert "executes the one at 0x10002, inside the region" in k.check("f").why_not_optimized
        with k.kprobe("f", pre_handler=lambda p, regs: None):
            k.flush_optimizer()
            assert m.call("g", 41) == 42


def test_a_jump_does_not_cover_a_target() -> None:
    """The jump over a 4-byte instruction would reach into the target that stands behind it."""
    with machine(f"c65000000007 0700 {BR} {LA} {LA} {BR}") as m, Kprobes(m) as k:  # exrl %r5,.+14
        assert "0x10000 executes the one at 0x1000e, inside the region" in k.check("f+0xa").why_not_optimized
        assert m.call("f", 40) == 41


@pytest.mark.parametrize("target", [f"{LA} 07fe", "d20020003000", "07fe 07fe", "47f01004 07fe"])
@pytest.mark.parametrize("also", ["nothing", "the EX", "the EX, with a post_handler"])
def test_a_target_that_only_registers_tell_gives_way(target: str, also: str) -> None:
    """The guest does what it does without a probe; the probe is disabled, and a warning says so. Targets: LA, MVC, BCR,
    BC."""
    code = f"44001000 {BR}".replace(" ", "").ljust(0x40, "0") + target  # ex %r0,0(%r1)
    expected = run(code, None, also)
    with pytest.warns(ExecutedElsewhere, match=r"0x10020 is executed by the EX at 0x10000"):
        assert run(code, BASE + 0x20, also) == expected


def run(code: str, probe: int | None, also: str) -> Any:
    """What a call of f leaves behind, with and without a probe at the target of its EX."""
    with machine(code, f=(0, 6)) as m, Kprobes(m) as k:
        log: list[str] = []
        data = m.alloc(16)
        m.write(data, b"abcdefgh")
        target = Kprobe(addr=probe or BASE + 0x20, pre_handler=lambda p, regs: log.append("target"),
                        disabled=probe is None)
        k.register_kprobe(target)
        if also != "nothing":
            post = (lambda p, regs, flags: log.append(f"post {regs.pc:#x}")) if "post" in also else None
            k.register_kprobe(Kprobe(symbol_name="f", pre_handler=lambda p, regs: log.append("pre"), post_handler=post))
        k.flush_optimizer()
        assert not target.optimized
        results = []
        for _ in range(2):
            m.regs["r1"] = BASE + 0x20
            m.regs["r5"] = 7
            regs = (data, data + 4)
            results.append((m.call("f", *regs), m.read(data, 8),
                            [m.regs[name] for name in ("r1", "r2", "r3", "r5", "pswm")]))
        assert not target.enabled
        assert k.idle
        return results, log


def test_the_warning_as_an_error_leaves_the_guest_at_its_ex(recwarn: pytest.WarningsRecorder) -> None:
    """filterwarnings turns it into one (pyproject.toml): the next run goes on as if nothing had happened."""
    import warnings

    code = f"44001000 {BR}".replace(" ", "").ljust(0x40, "0") + LA
    with machine(code, f=(0, 6)) as m, Kprobes(m) as k, warnings.catch_warnings():
        warnings.simplefilter("error")
        k.register_kprobe(Kprobe(addr=BASE + 0x20))
        m.regs["r1"] = BASE + 0x20
        with pytest.raises(ExecutedElsewhere):
            m.call("f", 1)
        assert m.regs.pc == BASE
        assert m.call("f", 1) == 2
