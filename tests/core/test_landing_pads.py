"""Guests with guarded pages (AArch64's branch target identification): a jump where an indirect branch may lead faults."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import Kprobe, Kprobes, UnicornMachine

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
        assert not probe.optimized and probe.nhit == 3 and "a kernel's guarded pages" in probe.why_not_optimized
