"""MIPS's unmapped segments, where firmware and kernels live: loaded, run and probed by the addresses that the guest
uses."""

from __future__ import annotations

import pytest
from arches import RUNNABLE

from kprobes import GuestFault, Kprobe, KprobeError, Kprobes, Kretprobe, NoMemory, UnicornMachine
from kprobes.testing import Comparison

pytestmark = pytest.mark.quick

NARROW = (0x80000000, 0xA0000000, 0xBFC00000)
WIDE = (*(start | 0xFFFFFFFF << 32 for start in NARROW), 0x9000000000000000, 0x9800000000000000, 0xA800000000000000)
SEGMENTS = [(arch, start) for arch in RUNNABLE if arch.startswith("mips")
            for start in (WIDE if "64" in arch else NARROW)]
F, G = 0, 36  # offsets


def words(arch: str, *codes: str) -> bytes:
    return b"".join(bytes.fromhex(code)[:: -1 if arch.endswith("el") else 1] for code in codes)


def machine_of(arch: str, start: int) -> tuple[UnicornMachine, int]:
    """f keeps a frame and calls g; g(x) = x + 2, by way of a delay slot."""
    wide, jr = "64" in arch, "03e00009" if "r6" in arch else "03e00008"
    down, save, load, up = (("67bdfff8", "ffbf0000", "dfbf0000", "67bd0008") if wide
                            else ("27bdfff8", "afbf0004", "8fbf0004", "27bd0008"))
    code = words(arch, down, save, "04110006", "00000000", load, up, jr, "00000000", "00000000", "24820001", jr,
                 "24420001", "00000000")
    base = start + 0x10000
    return UnicornMachine.from_code(code, arch=arch, base=base, symbols={"f": (base, G), "g": (base + G, 12)}), base


@pytest.mark.parametrize(("arch", "start"), SEGMENTS)
def test_probes(arch: str, start: int) -> None:
    """Everything of the library's is in the same segment; every probe is hit."""
    m, base = machine_of(arch, start)
    returned: list[int] = []
    comparison = Comparison(m, lambda machine: machine.call("f", 5))
    assert comparison.plain.result == 7
    k = comparison.kprobes
    probes: list[Kprobe] = []
    for at in (0, 4, 8, 16, 20, 24, G, G + 4):
        for post in (None, lambda *_: None):
            probe = Kprobe(addr=base + at, post_handler=post)
            try:
                k.register_kprobe(probe)
            except KprobeError:
                continue
            probes.append(probe)
    k.register_kretprobe(Kretprobe(symbol_name="g", handler=lambda instance, regs: returned.append(regs.return_value)))
    k.flush_optimizer()
    for n in range(3):
        assert comparison.again(str(n)) == []
    assert {p.nhit for p in probes} == {3}
    assert len(probes) >= 14
    assert returned == [7] * 3
    assert {own & -(1 << 29) for own, _, name in k.blacklist if name == "kprobe_insn_page"} == {base & -(1 << 29)}
    comparison.close()
    assert m.call("f", 1) == 3


@pytest.mark.parametrize(("arch", "start"), SEGMENTS)
def test_optimized_probes(arch: str, start: int) -> None:
    m, base = machine_of(arch, start)
    with Kprobes(m) as k:
        k.register_kprobe(p := Kprobe(addr=base + 16))
        k.flush_optimizer()
        assert p.optimized
        assert [m.call("f", n) for n in range(4)] == [2, 3, 4, 5]
        assert p.nhit == 4


@pytest.mark.parametrize(("arch", "start"), SEGMENTS)
def test_memory(arch: str, start: int) -> None:
    """The same memory by all its addresses; holes, faults and probes that go with it."""
    m, base = machine_of(arch, start)
    data = start + 0x100000
    place = m.parts.memory.windows.place(data)
    m.map(data, 0x3000)
    m.write(data + 0xFFE, b"abcd")
    for alias in (data, place):
        assert m.read(alias + 0xFFE, 4) == b"abcd"
    assert m.executable(data)
    assert m.executable(place)
    with pytest.raises(NoMemory):
        m.map(place, 0x1000)
    m.unmap(data + 0x1000, 0x1000)
    assert m.read(data, 4) == bytes(4)
    for alias in (data, place):
        with pytest.raises(GuestFault) as fault:
            m.read(alias + 0xFFE, 4)
        assert fault.value.address == alias + 0x1000
    for code, access in (("8c820000", "read"), ("ac820000", "write")):
        m.write(base + G, words(arch, code))
        with pytest.raises(GuestFault) as fault:
            m.call("g", data + 0x1000 & m.arch.mask)
        assert (fault.value.access, fault.value.address, fault.value.pc) == (access, data + 0x1000, base + G)
    with Kprobes(m) as k:
        k.register_kprobe(p := Kprobe(symbol_name="f"))
        m.unmap(m.parts.memory.windows.place(base), 0x1000)
        assert p.gone


@pytest.mark.parametrize("arch", [arch for arch in RUNNABLE if arch.startswith("mips")])
def test_what_goes_through_the_tlb_is_refused(arch: str) -> None:
    """KSEG2 and the like: the engine's TLB is empty."""
    for base in (0xC0000000, 0xFFFFFFFFC0000000, 0x9FFFF000):
        if base < 1 << 32 or "64" in arch:
            with pytest.raises(NoMemory):
                UnicornMachine.from_code(bytes(0x2000), arch=arch, base=base)


@pytest.mark.parametrize(("arch", "start"), SEGMENTS)
def test_a_long_line(arch: str, start: int) -> None:
    """It is written by one address and executed by another one."""
    m, _ = machine_of(arch, start)
    text = start + 0x200000
    m.map(m.parts.memory.windows.place(text), 0x4000, "rx")
    m.write(m.parts.memory.windows.place(text), words(arch, "24420001") * 2000)
    m.regs["v0"] = 0
    m.run(text, until=text + 8000)
    assert m.regs["v0"] == 2000
