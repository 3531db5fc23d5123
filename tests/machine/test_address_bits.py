"""The engine looks at 52 bits of an x86-64 address: memory as the library reads it is that which the guest reads."""

from __future__ import annotations

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine

CODE = 0x40000


@pytest.mark.quick
def test_upper_bits_that_the_engine_leaves_away() -> None:
    """CALL [rbx], simulated and not; rbx holds an address that is not canonical."""
    ends = []
    for probed in (False, True):
        with UnicornMachine.from_code(bytes.fromhex("ff13") + b"\xf4" * 16, arch="x86_64", base=CODE) as m:
            data = m.alloc(64)
            target = (CODE + 8).to_bytes(8, "little")
            m.write(data | 1 << 60, target)
            assert m.read(data, 8) == m.read(data | 1 << 63, 8) == target
            m.regs["rbx"] = data | 1 << 60
            with Kprobes(m) as k:
                if probed:
                    k.register_kprobe(Kprobe(addr=CODE, pre_handler=lambda p, regs: None))
                m.run(CODE, until=CODE + 8)
                ends.append((m.regs.pc, m.regs.sp, m.read(m.regs.sp, 8)))
            for beyond in (data | 1 << 64, data | 1 << 51):
                with pytest.raises(GuestFault):
                    m.read(beyond, 8)
    assert ends[0] == ends[1]
