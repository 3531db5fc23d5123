"""The kits find what is planted: a suite that cannot fail proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from arches import PROGRAMS, cases_of
from attrs import evolve

from kprobes import Kprobe, Kretprobe, UnicornMachine
from kprobes import arch as architectures
from kprobes.arch._base import Arch, Insn, Jump, verbatim
from kprobes.testing import Bench, Comparison, check_arch, transparency

pytestmark = pytest.mark.quick
Change = Callable[[Insn], Insn]


def with_insn(arch: Arch, row: str, change: Change) -> Arch:
    """The architecture with one decode row's result changed."""

    def decode(code: bytes, addr: int) -> Insn:
        insn = arch.decode(code, addr)
        return change(insn) if insn.name == row and not insn.reject else insn

    return evolve(arch, decode=decode)


def simulating(change: Callable[[Any, int, Insn], int]) -> Change:
    """After the right simulation, something else: change(regs, target, insn) -> target."""

    def planted(insn: Insn) -> Insn:
        simulate = insn.simulate
        assert simulate is not None
        return evolve(insn, simulate=lambda regs: change(regs, simulate(regs), insn))

    return planted


def spoil_link(regs: Any, target: int, insn: Insn) -> int:
    regs["x30"] = insn.addr
    return target


def spoil_flags(regs: Any, target: int, insn: Insn) -> int:
    regs["nzcv"] = regs["nzcv"] ^ 1 << 28
    return target


def spoil_memory(regs: Any, target: int, insn: Insn) -> int:
    regs.set_word(regs.sp - 64, 1)
    return target


def run_in_slot(insn: Insn) -> Insn:
    return evolve(insn, simulate=None, body=insn.raw)


PLANTED: list[tuple[str, str, Change]] = [
    ("BL", "02000094", simulating(spoil_link)),
    ("BL", "02000094", simulating(lambda regs, target, insn: target + 4)),
    ("B.cond", "40000054", simulating(lambda regs, target, insn: insn.next if regs["nzcv"] >> 28 & 1 else target)),
    ("B.cond", "40000054", simulating(spoil_flags)),
    # 32 bits count
    ("CBZ", "40000034", simulating(lambda regs, target, insn: insn.next if regs["x0"] else insn.target or 0)),
    ("ADR", "20000010", simulating(spoil_link)),
    ("ADR", "20000010", simulating(spoil_memory)),
    ("ADR", "20000010", run_in_slot),
    ("LDR literal", "41000018", run_in_slot),
    ("LDR literal", "41000018",
     simulating(lambda regs, target, insn: regs.__setitem__("x1", regs.word(insn.addr + 4, 4)) or target)),
    ("RET", "c0035fd6", run_in_slot),
]


@pytest.mark.parametrize(("row", "code", "change"), PLANTED, ids=range(len(PLANTED)))
def test_bench_finds_a_wrong_simulation(row: str, code: str, change: Change) -> None:
    machine = Bench.make_machine("arm64")
    machine.arch = with_insn(machine.arch, row, change)
    bench = Bench(machine, cases_of("arm64"))
    assert bench.decode(bytes.fromhex(code)).name == row
    assert bench.check(bytes.fromhex(code), states=8)
    bench.close()


def test_bench_finds_a_wrong_jump() -> None:
    """The jump of boosted probes goes one instruction too far."""
    machine = Bench.make_machine("arm64")
    jump = machine.arch.jump
    assert jump is not None
    machine.arch = evolve(machine.arch, jump=Jump(size=4, encode=lambda frm, to: jump.encode(frm, to + 4)))
    bench = Bench(machine, cases_of("arm64"))
    assert bench.check(bytes.fromhex("2000028b"))
    bench.close()


def test_bench_finds_a_missing_relocation() -> None:
    machine = Bench.make_machine("x86_64")
    machine.arch = evolve(machine.arch, out_of_line=evolve(machine.arch.out_of_line, relocate=verbatim))
    bench = Bench(machine, cases_of("x86_64"))
    assert bench.check(bytes.fromhex("8b0510000000"))  # mov eax, [rip + 16]
    bench.close()


@pytest.mark.parametrize("code", ["02000094", "40000054", "20000010", "c0035fd6"])
def test_bench_finds_wrong_displaced_code(code: str) -> None:
    """A branch that is left out, or executed elsewhere as it is."""
    machine = Bench.make_machine("arm64")
    decode = machine.arch.decode

    def planted(raw: bytes, addr: int) -> Insn:
        insn = decode(raw, addr)
        return evolve(insn, displace=insn.displace and (lambda to: b"" if insn.name == "RET" else insn.raw))

    machine.arch = evolve(machine.arch, decode=planted)
    bench = Bench(machine, cases_of("arm64"))
    found = bench.check(bytes.fromhex(code))
    assert [d for d in found if "displaced" in d.where]
    bench.close()


@pytest.mark.parametrize("code", ["2000028b", "40000054", "20000010", "c0035fd6"])
def test_bench_finds_nothing_where_nothing_is(code: str) -> None:
    bench = Bench("arm64", cases_of("arm64"))
    assert bench.check(bytes.fromhex(code), states=8) == []
    assert bench.tally.runs >= 16
    bench.close()


def load() -> UnicornMachine:
    return UnicornMachine.load(PROGRAMS / "bin" / "arm64-O2.elf")


def call(machine: UnicornMachine) -> int:
    return machine.call("test_crc", 7)


def scribble(p: Any, regs: Any) -> None:
    regs.write(regs.sp + 512, b"!")  # the caller's frames


def test_transparency_finds_a_handler_that_writes() -> None:
    assert transparency(load, call, lambda m: [Kprobe(symbol_name="crc32", pre_handler=lambda p, regs: None)]) == []
    assert transparency(load, call, lambda m: [Kprobe(symbol_name="test_crc",
                                                      pre_handler=lambda p, regs: regs.set_arg(0, 8))])
    assert transparency(load, lambda m: m.run("test_crc"),
                        lambda m: [Kprobe(symbol_name="test_crc", pre_handler=scribble)])


def test_transparency_finds_a_wrong_linkage() -> None:
    """The trampoline sends the guest to a place after the caller."""

    def machine() -> UnicornMachine:
        made = load()
        linkage = made.arch.linkage
        assert linkage is not None
        made.arch = evolve(made.arch, linkage=evolve(linkage, get=lambda regs: linkage.get(regs) + 4, register="",
                                                     back=b""))
        return made

    probe = [Kretprobe(symbol_name="crc32", handler=lambda ri, regs: None)]
    assert transparency(load, call, lambda m: probe) == []
    assert transparency(machine, call, lambda m: probe)


def test_comparison_finds_text_left_behind() -> None:
    comparison = Comparison(load(), call)
    address = comparison.machine.symbols["crc32"].address
    comparison.machine.patch(address + 8, bytes(4))
    assert [d.what for d in comparison.text_changed()] == [f"memory {address + 8:#x}"]
    comparison.close()


def broken_arches() -> list[tuple[str, Arch]]:
    arm64, x86 = architectures.get("arm64"), architectures.get("x86_64")
    regs, jump, linkage = arm64.regs, arm64.jump, arm64.linkage
    assert jump is not None and linkage is not None and arm64.abi is not None
    return [
        ("registers", evolve(arm64, regs=evolve(regs, names=(*regs.names, "x0")))),
        ("registers", evolve(arm64, regs=evolve(regs, aliases={"lr": "x31"}))),
        ("linux_names", evolve(x86, regs=evolve(x86.regs, aliases={}))),
        ("traps", evolve(arm64, traps=evolve(arm64.traps, probe={4: bytes.fromhex("1f2003d5")}))),  # NOP
        ("abi", evolve(arm64, abi=evolve(arm64.abi, args=("x0", "x0")))),
        ("linkage", evolve(arm64, linkage=evolve(linkage, set=lambda regs, target: None))),
        ("jump", evolve(arm64, jump=evolve(jump, encode=lambda frm, to: jump.encode(frm, to + 4)))),
        ("jump", evolve(arm64, jump=evolve(jump, encode=lambda frm, to: b"\x14\0\0\0"))),
        ("links", evolve(x86, decode=lambda code, addr: evolve(x86.decode(code, addr), links=False))),
        ("falls_through", evolve(x86, decode=lambda code, addr: evolve(x86.decode(code, addr), falls_through=True))),
        ("falls_through", evolve(x86, decode=lambda code, addr: evolve(x86.decode(code, addr), falls_through=False))),
        ("truncation", evolve(arm64, decode=lambda code, addr: arm64.decode(code.ljust(8, b"\0"), addr))),
        # IndexError on no bytes
        ("fuzz", evolve(arm64, decode=lambda code, addr: arm64.decode(code[: code[0] and 8], addr))),
        ("fuzz", evolve(arm64, decode=lambda code, addr: evolve(arm64.decode(code, addr), body=b"", simulate=None))),
    ]


@pytest.mark.parametrize(("part", "arch"), broken_arches(), ids=lambda value: value if isinstance(value, str) else "")
def test_check_arch_finds(part: str, arch: Arch) -> None:
    problems = check_arch(arch)
    assert [p for p in problems if p.startswith(f"{part}:")], problems
