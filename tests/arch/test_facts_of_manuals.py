"""Facts of manuals that only rare guests meet: each was changed once by a mutant that no test noticed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kprobes import arch
from kprobes.arch.mips.interrupts import BEV, EXL, IE, IV, enter

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("status, cause, ebase, vector", [
    (IE, 0, 0x80000000, 0x80000180), (IE, IV, 0x80000000, 0x80000200),
    (IE, 0, 0x80123FFF, 0x80123180), (IE, IV, 0x00123FFF, 0x80123200),
    (IE | BEV, 0, 0x80000000, 0xBFC00380), (IE | BEV, IV, 0x80123000, 0xBFC00400)])
def test_where_mips_takes_interrupts(status: int, cause: int, ebase: int, vector: int) -> None:
    """MIPS32 Architecture Volume III, 6.2.2: Status.BEV, Cause.IV and EBase choose the vector."""
    system = {"status": status, "cause": cause, "ebase": ebase}
    cpu = SimpleNamespace(regs=SimpleNamespace(pc=0x1004), system=system.__getitem__, set_system=system.__setitem__)
    assert enter(cpu, 2) == vector  # type: ignore[arg-type]
    assert (system["status"], system["epc"], system["cause"]) == (status | EXL, 0x1004, cause)


@pytest.mark.parametrize("high, name, leaves", [
    (0x1E00000C, "PCADDU18I", True),  # $t0, 0; jirl $zero, $t0, 0 goes behind it
    (0x1E00000D, "PCADDU18I", False),  # another register
    (0x1C00000C, "PCADDU12I", False)])
def test_which_jumps_of_loongarch_leave_a_function(high: int, name: str, leaves: bool) -> None:
    """LoongArch Reference Manual 2.2.1.9, 2.2.5.3: PCADDU18I and JIRL of one register are one far jump."""
    isa = arch.get("loongarch64")
    before, jump = isa.decode(high.to_bytes(4, "little"), 0x1000), isa.decode(bytes.fromhex("8001004c"), 0x1004)
    assert (before.name, jump.name) == (name, "JIRL")
    assert (isa.walking.leaves(jump, [before]) is before) is leaves
    assert isa.walking.leaves(jump, []) is None
    assert isa.walking.leaves(jump, [before, jump]) is None
