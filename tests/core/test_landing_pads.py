"""Guests with guarded pages (AArch64's branch target identification): a jump where an indirect branch may lead faults."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import BadLocation, Kprobe, Kprobes, UnicornMachine
from kprobes import arch as architectures

pytestmark = pytest.mark.quick
PADS = {"paciasp": 0xD503233F, "pacibsp": 0xD503237F, "bti": 0xD503241F, "bti c": 0xD503245F, "bti j": 0xD503249F,
        "bti jc": 0xD50324DF}
RET, NOP = 0xD65F03C0, 0xD503201F


class Kernel:
    """Where programs read no memory."""

    reads = False


class Remote(UnicornMachine):
    """Compiles for the guest, as remote machines do: its pages may be guarded."""

    guest_view: Any = Kernel()


@pytest.mark.parametrize("arch", ["arm64", "arm64be"])
@pytest.mark.parametrize(("first", "remote", "jumps"), [
    *((pad, remote, not remote) for pad in PADS.values() for remote in (False, True)), (NOP, True, True)])
def test_no_jump_stands_where_indirect_branches_land(arch: str, first: int, remote: bool, jumps: bool) -> None:
    code = b"".join(word.to_bytes(4, "little") for word in (first, NOP, NOP, RET))
    machine = (Remote if remote else UnicornMachine).from_code(code, arch=arch, symbols={"f": (0x10000, len(code))})
    with machine as m, Kprobes(m) as k:
        probe = Kprobe(symbol_name="f", pre_handler=lambda p, regs: None)
        k.register(probe)
        for _ in range(3):
            m.call("f")
        assert (probe.optimized, probe.nmissed) == (jumps, 0)
        assert ("indirect branches may lead to" in probe.why_not_optimized) == (not jumps)


@pytest.mark.parametrize("arch", ["arm64", "arm64be"])
def test_no_indirect_call_is_made_from_elsewhere_in_a_kernel(arch: str) -> None:
    """BLR X1 elsewhere is BR X1, which must lead to BTI j: the function that it calls begins with BTI c."""
    code = b"".join(word.to_bytes(4, "little") for word in (0xAA1E03F3, 0x10000081, 0xD63F0020, 0xD65F0260, 0, RET))
    with Remote.from_code(code, arch=arch, symbols={"f": (0x10000, len(code))}) as m, Kprobes(m) as k:
        probe = Kprobe(symbol_name="f", offset=8, pre_handler=lambda p, regs: None)
        k.register(probe)
        for _ in range(3):
            m.call("f")
        assert not probe.optimized and probe.nhit == 3 and "guarded pages of a kernel" in probe.why_not_optimized


@pytest.mark.parametrize(("code", "shadow"), [("ffd0", True), ("ff10", True), ("e800000000", False)])
def test_what_an_architecture_says_of_its_calls(code: str, shadow: bool) -> None:
    """x86 has other reasons: a push and a jump are no call. A direct one leads where it leads."""
    insn = architectures.get("x86_64").decode(bytes.fromhex(code).ljust(16, b"\x90"), 0x1000)
    assert insn.links and ("shadow stack" in insn.sends) == shadow and not insn.lands


@pytest.mark.parametrize("arch", ["arm", "cortexm"])
def test_an_address_of_another_mode_is_named_by_the_architecture(arch: str) -> None:
    """Arm's odd addresses are Thumb's. Of Cortex-M all code is."""
    code = bytes.fromhex("1eff2fe1" if arch == "arm" else "7047 7047")
    with (UnicornMachine.from_code(code, arch=arch, base=0x10000, symbols={"f": (0x10000, 4)}) as m,
          Kprobes(m) as k):
        if arch == "cortexm":
            for addr in (0x10000, 0x10001):
                k.register(Kprobe(addr=addr))
        else:
            with pytest.raises(BadLocation, match="an address of Thumb code"):
                k.register(Kprobe(addr=0x10001))
