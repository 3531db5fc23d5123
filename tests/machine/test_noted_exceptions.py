"""Power: a floating point exception that is not enabled is noted by the engine, and no fault of what comes behind it."""

from __future__ import annotations

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine

BASE, NOWHERE = 0x10000, 0x900000
#: mtfsf 0xff, f1: FPSCR has and enables all exceptions, MSR none; nop; mtctr r3; bctr
CODE = {"ppc": "fdfe0d8e 60000000 7c6903a6 4e800420"}
CODE["ppc64"] = CODE["ppc"]


@pytest.mark.parametrize("arch", CODE)
@pytest.mark.parametrize("places", [(), (4,), (8,), (12,), (0, 4, 8, 12)])
def test_a_fetch_that_fails_behind_it(arch: str, places: tuple[int, ...]) -> None:
    with UnicornMachine.from_code(bytes.fromhex(CODE[arch]), arch=arch, base=BASE) as m, Kprobes(m) as k:
        m.regs["f1"], m.regs["r3"] = 0xFFFFFFFF, NOWHERE
        for place in places:
            k.register(Kprobe(addr=BASE + place, pre_handler=lambda p, regs: None))
        with pytest.raises(GuestFault) as failed:
            m.run(BASE)
        assert (failed.value.access, failed.value.pc, failed.value.address) == ("fetch", NOWHERE, NOWHERE)
