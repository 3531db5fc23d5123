"""SuperH's text without an engine: what is data amid code, what is no place for a probe."""

from __future__ import annotations

import pytest

from kprobes import Kprobes
from kprobes import arch as architectures
from kprobes.machine.paper import PaperMachine

pytestmark = pytest.mark.quick
AT = 0x1000
NOP, RTS = 0x0009, 0x000B
#: extu.b of the index, where a table has bytes without sign; in between what has nothing to do with it
SWITCH = (0xC703, 0x7201, 0x014C, 0x611C, 0x0123, NOP)  # mova .+16,r0; add; mov.b @(r0,r4),r1; extu.b; braf r1; nop


def kprobes(arch: str, *halves: int) -> Kprobes:
    order = architectures.get(arch).order.value
    code = b"".join(half.to_bytes(2, order) for half in halves)
    return Kprobes(PaperMachine(code, arch=architectures.get(arch), execute=lambda regs, insn: None,
                                symbols={"f": (AT, len(code))}))


def why(k: Kprobes, offset: int) -> str:
    found = k.check(AT + offset)
    return "" if found.probeable else found.reason


@pytest.fixture(params=["sh4", "sh4eb"])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def table(arch: str, *entries: int) -> tuple[int, ...]:
    """Bytes, two of them a halfword in memory."""
    order = architectures.get(arch).order.value
    pairs = zip(entries[::2], entries[1::2], strict=True)
    return tuple(int.from_bytes(bytes(pair), order) for pair in pairs)


def test_a_jump_table_is_data(arch: str) -> None:
    """What follows the table is code."""
    code = (*SWITCH, NOP, NOP, *table(arch, 8, 12, 8, 12), RTS, NOP, RTS, NOP)
    with kprobes(arch, *code) as k:
        assert "data: BRAF" in why(k, 16) and "data: BRAF" in why(k, 18)
        assert [why(k, offset) for offset in (0, 2, 4, 6, 8)] == [""] * 5
        assert "delay slot" in why(k, 10)
        flow = k._registry._rooms.survey.flow(k.machine.symbols["f"])
        assert not flow.unknown
        assert {AT + 20, AT + 24} <= flow.targets
        assert why(k, 20) == why(k, 24) == ""


def test_a_table_with_signs_leads_back(arch: str) -> None:
    """mov.w: distances of two bytes; the first that leads behind the table ends it."""
    code = (NOP, NOP, 0xC702, 0x314C, 0x011D, 0x0123, NOP, NOP, (-14) & 0xFFFF, 6, RTS, NOP)
    with kprobes(arch, *code) as k:
        assert "data: BRAF" in why(k, 16) and "data: BRAF" in why(k, 18)
        assert why(k, 20) == why(k, 0) == ""


def test_constants_are_data(arch: str) -> None:
    """mova .+20,r0; fmov.s @r0+,fr1; bt; fmov.s @r0+,fr2: a branch that is not taken changes nothing."""
    loads = (0xC704, 0xF109, 0x8901, NOP, 0xF209, NOP, RTS, NOP)
    with kprobes(arch, *loads, *[NOP] * 6) as k:
        assert [n for n in range(28) if not n % 2 and "is data" in why(k, n)] == [20, 22, 24, 26]
    with kprobes(arch, *loads[:4], 0xE010, *loads[4:], *[NOP] * 6) as k:  # mov #16,r0
        assert [n for n in range(28) if not n % 2 and "is data" in why(k, n)] == [20, 22, 24, 26]
        assert "reads or writes it" in why(k, 22)
        assert "nothing is known to lead there" in why(k, 24)
    with kprobes(arch, 0xC703, 0xF3FD, 0xF109, NOP, NOP, NOP, RTS, NOP, *[NOP] * 4) as k:  # fschg
        assert [n for n in range(24) if not n % 2 and "is data" in why(k, n)] == [16, 18, 20, 22]
    with kprobes(arch, 0xC702, 0x6102, RTS, NOP, NOP, NOP, NOP, NOP) as k:  # mov.l @r0,r1
        assert [n for n in range(16) if not n % 2 and "is data" in why(k, n)] == [12, 14]


def test_what_no_table_is_known_for(arch: str) -> None:
    """A call of position-independent code, and a load that nobody can follow."""
    for code in ((0xD102, 0x0123, NOP, NOP), (0x014C, 0x0123, NOP, NOP), (0xC701, 0x6122, 0x0123, NOP)):
        with kprobes(arch, *code, RTS, NOP, RTS, NOP) as k:
            assert why(k, 0) == ""
            assert k._registry._rooms.survey.flow(k.machine.symbols["f"]).unknown


def test_literals_are_data(arch: str) -> None:
    with kprobes(arch, 0xD101, 0x9202, RTS, NOP, 0x1234, 0x5678, 0x0009, NOP) as k:
        assert [n for n in range(0, 16, 2) if why(k, n)] == [6, 8, 10]
        assert "data: MOV.L" in why(k, 8)


def test_atomic_sequences(arch: str) -> None:
    """Linux's: mova end,r0; mov r15,r1; mov #-6,r15; load; change; store; mov r1,r15."""
    with kprobes(arch, 0xC703, NOP, 0x61F3, 0xEFFA, 0x6342, 0x7301, 0x2432, 0x6F13, NOP, RTS, NOP) as k:
        found = [why(k, offset) for offset in range(0, 18, 2)]
    assert found[0] == found[1] == found[2] == found[8] == ""
    assert "gUSA" in found[3] and "gUSA" in found[7]
    assert all("exclusive sequence" in text for text in found[4:7])
    with kprobes(arch, 0x0463, 0x7001, 0x0473, 0x8BFB, RTS, NOP) as k:  # movli.l @r4,r0; add; movco.l r0,@r4; bf
        found = [why(k, offset) for offset in range(0, 8, 2)]
    assert "reservation" in found[0] and "exclusive" in found[1] and "reservation" in found[2]
    assert found[3] == ""


@pytest.mark.parametrize("slot", [0xA000, 0x8900, 0xD102, 0xC700, 0xC316, 0xFFFD, 0x440E, 0x000B, 0x0423, 0xEFFA])
def test_what_is_illegal_in_a_delay_slot(arch: str, slot: int) -> None:
    with kprobes(arch, 0x430B, slot, RTS, NOP, RTS, NOP) as k:
        assert "in its delay slot" in why(k, 0)
        assert why(k, 2)


def test_a_branch_at_the_end_of_memory(arch: str) -> None:
    value = architectures.get(arch)
    assert "missing" in value.decode((0x430B).to_bytes(2, value.order.value), AT).reject
    assert value.decode(b"\x0b", AT).reject


def test_files_that_are_refused() -> None:
    from kprobes import Unsupported

    for flags in (0xA, 0x8009):
        with pytest.raises(Unsupported):
            architectures.of_elf(42, 32, "little", flags)
    assert architectures.of_elf(42, 32, "big", 9).name == "sh4eb"
