"""The context of a test run is memory: any access is the same on every engine, and what runs a program is told."""

from __future__ import annotations

import random

import pytest
from verifier.asm import assemble, maps

from kprobes import Program, ProgramError, Unsupported
from kprobes.programs.code import Code
from kprobes.programs.engines import ENGINES

SIZES = {"b": 1, "h": 2, "w": 4, "dw": 8}


def program(text: str) -> Program:
    return Program("p", {"p": Code("p", assemble(text), maps())}, {})


def engines() -> list[str]:
    """Those that there are here."""
    found = []
    for name in ENGINES:
        try:
            program("mov64 r0, 0; exit").engine(name)
        except Unsupported:
            continue
        found.append(name)
    return found


def accesses() -> dict[str, str]:
    """Every load, store and atomic operation at offsets that are aligned and that are not; and a helper that writes."""
    out = {}
    for size, count in SIZES.items():
        for at in range(0, 9):
            out[f"ldx{size} {at}"] = f"ldx{size} r0, [r1+{at}]; exit"
            out[f"stx{size} {at}"] = f"lddw r3, 0x8182838485868788; stx{size} [r1+{at}], r3; mov64 r0, 0; exit"
            out[f"st{size} {at}"] = f"st{size} [r1+{at}], -2; mov64 r0, 0; exit"
            if count < 8:
                out[f"ldxs{size} {at}"] = f"ldxs{size} r0, [r1+{at}]; exit"
    for bits in (32, 64):
        for op in ("add", "or", "and", "xor", "add_fetch", "xchg", "cmpxchg"):
            out[f"{op}{bits}"] = f"mov64 r0, 5; mov64 r3, 77; lock {op}{bits} [r1+8], r3; mov64 r0, r3; exit"
    out["a varying offset"] = ("mov64 r0, 0; jlt r2, 9, end; ldxb r3, [r1+0]; and64 r3, 7; add64 r1, r3; ldxdw r0, [r1+0]; "
                               "stxh [r1+1], r2; end: exit")
    out["a helper writes"] = "mov64 r2, 12; call 16; exit"
    out["a helper reads"] = "mov64 r2, 12; lddw r3, map[4].value+0; call 182; exit"
    out["behind its end"] = "ldxdw r0, [r1+1016]; stxdw [r1+1000], r2; exit"
    return out


ACCESSES = accesses()


@pytest.mark.parametrize("name", ACCESSES)
def test_every_access_of_a_context(name: str) -> None:
    """Aligned or not, by the interpreter and by compiled code (engine="host"): stores reach a bytearray, and are refused
    where the context is bytes."""
    writes = any(word in name for word in ("st", "add", "or", "and", "xchg", "varying", "writes", "behind"))
    raw, seen = random.Random(name).randbytes(24), []
    for engine in (*engines(), None):
        context = bytearray(raw)
        one = program(ACCESSES[name])
        seen.append((one.run(context, engine), bytes(context)))
        assert one.why_interpreter == "" or "host" not in engines()
        if writes:
            with pytest.raises(ProgramError, match="read-only"):
                program(ACCESSES[name]).run(raw, engine)
        else:
            assert program(ACCESSES[name]).run(raw, engine) == seen[-1][0]
    assert len(set(seen)) == 1


def test_sizes_of_contexts() -> None:
    """r2 is no more than the verifier has walked with, however large the context is."""
    text = "mov64 r0, 0; jlt r2, 8, end; mov64 r3, r1; add64 r3, r2; ldxdw r0, [r3-8]; end: exit"
    on_stack = "mov64 r3, r10; add64 r3, -512; rsh64 r2, 2; add64 r3, r2; stb [r3+0], 1; mov64 r0, 0; exit"
    for size in (0, 7, 8, 1023, 1024, 1025, 5000, 70_000):
        context = random.Random(size).randbytes(size)
        wanted = int.from_bytes(context[-8:], "little") if size >= 8 else 0
        for engine in (*engines(), None):
            assert program(text).run(context, engine) == wanted
        if size > 2048 and "host" in engines():
            with pytest.raises(ProgramError, match="bytes of stack at"):
                program(on_stack).run(context, "host")


def test_a_probe_s_context_is_as_it_was() -> None:
    """Read only, in whole words."""
    for text, why in (("stdw [r1+0], 1", "read-only"), ("ldxdw r0, [r1+1]", "not a multiple")):
        with pytest.raises(ProgramError, match=why):
            program(f"{text}; mov64 r0, 0; exit").verify()


def test_who_runs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """engine=None falls back to the interpreter, and says why."""
    unsafe = program("ldxdw r0, [r10-8]; exit")
    assert unsafe.run() == 0
    assert unsafe.why_interpreter.startswith("it is refused by the verifier: reads stack")
    assert unsafe.run(engine="interpreter") == 0
    assert unsafe.why_interpreter == ""
    monkeypatch.setenv("KPROBES_HOST_CODE", "0")
    plain = program("mov64 r0, 7; exit")
    assert plain.run() == 7
    assert "KPROBES_HOST_CODE=0" in plain.why_interpreter
