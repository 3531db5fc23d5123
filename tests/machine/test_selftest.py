"""The self-test says what is wrong with an engine, and an old one is refused by its library's version."""

from __future__ import annotations

import errno
from operator import attrgetter
from typing import Any

import pytest
from arches import RUNNABLE
from attrs import evolve

from kprobes import UnicornMachine, Unsupported
from kprobes import arch as architectures
from kprobes.machine.unicorn import GUESTS, Guest, version
from kprobes.machine.unicorn.engine import Engine
from kprobes.machine.unicorn.guests.guest import Contexts, Interrupts, SelfTestCode
from kprobes.machine.unicorn.registers.conditions import word
from kprobes.machine.unicorn.selftest import context_verdict, exception_verdict, words_verdict

pytestmark = pytest.mark.quick


def guests_with(field: str) -> list[str]:
    return [arch for arch in RUNNABLE if attrgetter(field)(GUESTS[arch])]


@pytest.mark.parametrize("arch", RUNNABLE)
def test_this_engine_is_right(arch: str) -> None:
    guest = GUESTS[arch]
    assert [words_verdict(guest, architectures.get(arch)), exception_verdict(guest),
            context_verdict(guest, architectures.get(arch))] == ["", "", ""]


@pytest.mark.parametrize("arch", RUNNABLE)
def test_every_fixed_distance_is_checked(arch: str) -> None:
    """What is hidden is a word with a check of its own, or the flags (flag_checks), or goes through the API."""
    hidden = set(GUESTS[arch].registers.hidden) - {check.name
                                                   for check in GUESTS[arch].checks.words} - {"cs", "ss", "ds", "es",
                                                       "fs", "gs"}
    assert hidden <= {architectures.get(arch).regs.flags}
    assert not hidden or GUESTS[arch].checks.flags


@pytest.mark.parametrize("arch", guests_with("checks.words"))
def test_a_word_elsewhere(arch: str) -> None:
    guest = GUESTS[arch]
    number = guest.registers.number({"m68k": "d0", "s390x": "r1"}.get(arch, "g1"))
    bits = architectures.get(arch).bits
    for check in guest.checks.words:
        for distance in (16 * bits, 16 * bits + 8):  # behind what is used
            hidden = {**guest.registers.hidden, check.name: word(number, bits, distance)}
            moved = evolve(guest, registers=evolve(guest.registers, hidden=hidden), checks=SelfTestCode(words=(check,)))
            assert check.name in words_verdict(moved, architectures.get(arch))


@pytest.mark.parametrize("arch", guests_with("interrupts.served"))
def test_the_exception_elsewhere(arch: str) -> None:
    served = GUESTS[arch].interrupts.served
    assert served is not None
    bits = architectures.get(arch).bits
    number = GUESTS[arch].registers.number("rax" if bits == 64 else "eax")
    for distance in (0, 0x1574, 0x157C):
        moved = evolve(GUESTS[arch], interrupts=Interrupts(served=evolve(served, find=word(number, bits, distance))))
        assert "exception" in exception_verdict(moved)


@pytest.mark.parametrize("arch", guests_with("contexts.state"))
def test_a_context_that_lacks_registers(arch: str) -> None:
    def half(engine: Engine) -> tuple[Any, Any]:
        read, write = GUESTS[arch].contexts.state(engine)  # type: ignore[misc]
        return read, lambda saved: write(saved[:100] + read()[100:])

    assert "cannot be put back" in context_verdict(evolve(GUESTS[arch], contexts=Contexts(state=half)),
                                                   architectures.get(arch))


def test_a_machine_says_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Guest] = {**GUESTS, "m68k": evolve(GUESTS["m68k"],
                                                        breakpoint=evolve(GUESTS["m68k"].breakpoint, number=5))}
    monkeypatch.setattr("kprobes.machine.unicorn.guests.rows.GUESTS", wrong)
    monkeypatch.setattr("kprobes.machine.unicorn.selftest._seen", {})
    with pytest.raises(Unsupported, match="differs from what is known for m68k: a breakpoint arrives as"):
        UnicornMachine.from_code(b"Nu", arch="m68k")


@pytest.mark.parametrize("found", [(1, 0, 3), (2, 0, 1), (2, 1, 1), (2, 1, 3)])
def test_old_engines_are_refused(monkeypatch: pytest.MonkeyPatch, found: tuple[int, int, int]) -> None:
    """Measured with the engines themselves, too: see docs/install.md."""
    uc = UnicornMachine.from_code(b"\xc3", arch="x86_64").uc
    monkeypatch.setattr(version, "version", lambda: found)
    for make in (lambda: UnicornMachine.from_code(b"\xc3", arch="x86_64"), lambda: UnicornMachine.attach(uc)):
        with pytest.raises(Unsupported,
                           match=r"Unicorn \d\.\d\.\d is too old.*install unicorn 2\.1\.4 or newer") as refused:
            make()
        assert refused.value.errno == errno.EOPNOTSUPP


@pytest.mark.parametrize("found", [(2, 1, 4), (2, 1, 5), (2, 2, 0), (3, 0, 0)])
def test_newer_engines_are_left_to_the_self_test(monkeypatch: pytest.MonkeyPatch, found: tuple[int, int, int]) -> None:
    monkeypatch.setattr(version, "version", lambda: found)
    UnicornMachine.from_code(b"\xc3", arch="x86_64").close()
