"""Every architecture against its contract, and nothing shipped without its proof."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from arches import (
    ARCHES,
    CASES,
    HERE,
    NO_CASES,
    NO_ENGINE,
    NO_PROGRAMS,
    PROGRAMS,
    UNUSED_PROGRAMS,
    cases_of,
    programs_of,
)
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from kprobes import BadArgument, UnicornMachine, Unsupported
from kprobes import arch as architectures
from kprobes.arch import get
from kprobes.arch._base import Insn
from kprobes.arch._decode import DecodeTable, Row, fixed_width
from kprobes.conformance import CAPABILITIES, Conformance
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.testing import Bench, check_arch

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("arch", ARCHES)
def test_contract(arch: str) -> None:
    assert check_arch(architectures.get(arch)) == []


def test_addresses_that_are_not_direct() -> None:
    """A mode is found where somebody says that there is none."""
    made = architectures.get("cortexm")
    wrong = evolve(made, pointers=evolve(made.pointers, direct=True))
    assert any("though direct" in problem for problem in check_arch(wrong))


@pytest.mark.parametrize("bits", [0, 8, 24, 128])
def test_widths_that_nobody_supports(bits: int) -> None:
    """Words, masks and addresses have 16, 32 or 64 bits; another width is refused where it is written down."""
    with pytest.raises(ValueError, match="bits"):
        evolve(architectures.get("x86_64"), bits=bits)


@pytest.mark.parametrize("path", sorted((HERE.parent / "docs" / "arch").glob("*.md")), ids=lambda path: path.stem)
def test_pages_name_files_that_are_there(path: Path) -> None:
    """Sources, relative to the project or to the page's family."""
    family, text = HERE.parent / "kprobes" / "arch" / path.stem, path.read_text().split("\n## ")[0]
    named = [word for word in re.findall(r"`([^`]*[.]py)`", text) if "*" not in word]
    assert named
    assert [name for name in named if not (HERE.parent / name).is_file() and not (family / name).is_file()] == []


@pytest.mark.parametrize("arch", [name for name in ARCHES
                                  if name in GUESTS and GUESTS[name].breakpoint.traps is not None])
def test_engines_breakpoints(arch: str) -> None:
    """The breakpoints that an engine puts in place of Linux's obey the same contract."""
    traps = GUESTS[arch].breakpoint.traps
    assert traps is not None
    assert check_arch(evolve(architectures.get(arch), traps=traps)) == []


@pytest.mark.parametrize("arch", ARCHES)
def test_has_cases(arch: str) -> None:
    """A case file with cases of every outcome, the flag bits, and delay-slot instructions where there are delay
    slots."""
    if arch in NO_CASES:
        pytest.skip(NO_CASES[arch])
    file, value = cases_of(arch), architectures.get(arch)
    assert {case.outcome for case in file.cases} == {"step", "simulate",
                                                     "reject"}, f"{CASES / arch}.txt proves too little"
    assert value.regs.flags is None or file.flags, "which bits are condition flags? add a %flags line"
    assert {*file.flags, *file.keep} <= {*value.regs.names, *value.regs.aliases}
    slots = any(value.decode(c.code + bytes(32), 0x10000 | c.mode).delay_slot for c in file.cases)
    assert not slots or file.slots, "what may stand in a delay slot? add %slot lines"


@pytest.mark.parametrize("arch", ARCHES)
def test_has_engine(arch: str) -> None:
    assert (arch in GUESTS) != (arch in NO_ENGINE), "a row in kprobes/machine/unicorn/guests/, or a reason in NO_ENGINE"


@pytest.mark.parametrize("arch", NO_ENGINE)
def test_without_engine(arch: str, conformance: Conformance) -> None:
    """What nothing else has proved is blank in the support matrix, with the reason."""
    for capability in CAPABILITIES:
        conformance.blank(arch, capability, NO_ENGINE[arch])


@pytest.mark.parametrize("arch", ARCHES)
def test_has_programs(arch: str) -> None:
    """Compiled programs, unoptimized and optimized."""
    assert bool(programs_of(arch)) != (arch in NO_PROGRAMS), "programs in tests/programs/bin, or a reason in NO_PROGRAMS"


def test_exemptions_are_needed() -> None:
    """No reason is given for what is there."""
    assert not set(NO_CASES) & {p.stem for p in CASES.glob("*.txt")}
    assert {*NO_CASES, *NO_ENGINE, *NO_PROGRAMS} <= set(ARCHES)


def test_every_program_is_used() -> None:
    """Each built program belongs to an architecture, so that none is forgotten."""
    used = {path for arch in ARCHES for path in programs_of(arch)}
    unused = {path.stem.rpartition("-")[0] for path in {*(PROGRAMS / "bin").glob("*.elf")} - used}
    assert unused == set(UNUSED_PROGRAMS)


def test_a_table_whose_rows_have_two_widths_names_one() -> None:
    with pytest.raises(ValueError, match=r"one width: LONG '.*' has 32 bits, SHORT has 16"):
        DecodeTable([Row("0" * 16, "SHORT"), Row("0" * 32, "LONG")])


def test_check_arch_takes_a_name() -> None:
    assert check_arch("mips") == check_arch(get("mips"))
    with pytest.raises(Unsupported, match="no architecture 't16'; there are: alpha"):
        check_arch("t16")


def test_a_bench_is_made_of_a_machine() -> None:
    with pytest.raises(BadArgument, match="not the Arch of mips; where no engine runs it"):
        Bench(get("mips"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [5, None, ["fact", 3]])
def test_a_symbol_is_found_by_text(name: Any) -> None:
    with UnicornMachine.from_code(bytes(4), arch="mips") as m, pytest.raises(BadArgument, match="name is text, not"):
        m.symbols[name]


def test_what_is_wrong_with_rows_is_found() -> None:
    """A simulation that does not take the picture's fields; a picture of other signs than bits."""
    def jump(regs: Any, insn: Insn, i: int) -> int:
        return i

    row = Row("1" * 8 + "t" * 24, "JUMP", jump)
    wrong = evolve(get("mips"), decode=fixed_width(DecodeTable([row]), "big"))
    assert any("simulate does not take its fields (t)" in problem for problem in check_arch(wrong))
    with pytest.raises(ValueError, match=r"JUMP '0000 000\?': '\?' is no bit; draw 0, 1, -"):
        Row("0000 000?", "JUMP")


def test_traps_have_to_fit_the_shortest_instruction() -> None:
    thumb = get("cortexm")
    wrong = evolve(thumb, traps=evolve(thumb.traps, probe={4: thumb.traps.probe[2] + bytes(2)}))
    assert any("no probe trap fits" in problem and "of 2 bytes" in problem for problem in check_arch(wrong))


def test_a_misspelt_capability_is_an_error() -> None:
    noted: list[Any] = []
    declare = Conformance(lambda name, value: noted.append(value))
    declare("mips", "simulate")
    declare("mips", "tricore")
    with pytest.raises(ValueError, match="no capability 'optimise': did you mean 'optimize'"):
        declare("mips", "optimise")
    assert len(noted) == 2


def test_changed_instructions_are_as_attrs_evolves_them() -> None:
    """And the instruction itself is what it was."""
    insn = get("arm").decode(bytes.fromhex("08bdc046"), 0x1001)  # pop {r3, pc}
    before = evolve(insn)
    changes = {"falls_through": True, "operand": 0x2000, "data": 4, "reject": "why", "body": b""}
    assert insn.changed(**changes) == evolve(insn, **changes) != insn  # type: ignore[arg-type]
    assert insn.changed() == insn == before and insn.changed() is not insn
    with pytest.raises(FrozenInstanceError):
        insn.changed().name = "other"  # type: ignore[misc]
