"""Every case of Alpha, LoongArch and SuperH, which Unicorn lacks, under QEMU: probed == unprobed, in registers, memory,
target and fault. A branch has one of the case file's instructions in its delay slot.

Each runs in random states: alone, under a boosted probe, under one with a post_handler; and its displaced code by
itself, near its home and far away. The generated words are changes of the cases in one field.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from arches import PROGRAMS, cases_of
from qemu import USER_MODE, Seen, qemu_for

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, QemuMachine
from kprobes.arch._base import Insn
from kprobes.conformance import Conformance
from kprobes.errors import OutOfReach
from kprobes.testing import Case
from kprobes.testing._states import States

STATES = 1
GENERATED = 2  #: words made of each case
SHOWN = 20
#: registers of which only some bits may take any value: others make every instruction trap
ONLY = {"alpha": {"fpcr": 0}, "loongarch64": {"fcsr0": 0x300},
        "sh4": {"sr": 0x303, "fpscr": 0x180003}}  # SZ and PR, the rounding mode
ONLY["sh4eb"] = ONLY["sh4"]


class Lab:
    """One process: a place for the instruction, data, and places for displaced code.

    faults: so many instructions, or their delay slots, have ended in one.
    """

    def __init__(self, arch: str, m: Any) -> None:
        self.faults = 0
        self.m, self.k, self.file = m, Kprobes(m), cases_of(arch)
        self.home, self.near = m.map_code(), m.map_code()
        self.far = m.map_code(self.home + (1 << 26))
        self.data = m.map_code(self.home + (1 << 30))  # where states point to: no jump from there leads into a slot
        self.fill = random.Random(1).randbytes(4096)
        self.only = ONLY[arch]
        self.states = States(m.regs, (self.data, self.data + 4096), (self.data, self.data + 2048), {}, set(self.only))
        self.kept = {name: m.regs[name] & ~mask for name, mask in self.only.items()}
        m.write(self.home, self.fill)  # literals
        m.symbols.add("lab", self.home, 2 * m.arch.max_insn)

    def decode(self, code: bytes) -> Insn:
        return self.m.arch.decode(code + bytes(8), self.home)

    def with_slot(self, code: bytes, seed: str) -> bytes:
        """An instruction, and what is in its delay slot."""
        delayed = self.m.arch.decode(2 * code, self.home).delay_slot
        return code + random.Random(seed).choice(self.file.slots) if delayed else code

    def state(self, seed: str) -> dict[str, int]:
        rng = random.Random(seed)
        self.states.randomize(rng, {name: self.kept[name] | rng.getrandbits(32) & mask
                                    for name, mask in self.only.items()})
        self.m.regs.sp = self.data + 2048  # aligned: what one CPU accesses in two pieces another does not
        return self.m._threads.save()

    def run(self, state: dict[str, int], place: int, size: int = 0) -> Seen:
        """One instruction at `place`; size: all of the code there, up to where it leaves that."""
        m, fault = self.m, None
        m.write(self.data, self.fill)
        m._threads.restore(state)
        at = place
        try:
            while True:
                try:
                    m._control.run(at, None, 10, 1, call=True)
                except GuestTimeout as error:
                    assert "1 instructions" in str(error), f"{m.read(place, 4).hex()} at {place:#x}: {error}"
                    at = m.regs.pc
                if not place <= at < place + size:
                    break
        except GuestFault as error:
            fault, at = (error.access, error.address), m.regs.pc
        regs = m._threads.save()
        del regs[m.arch.regs.pc]
        return Seen(regs, at, m.read(self.data, 4096), fault)

    def probed(self, state: dict[str, int], **handlers: Any) -> Seen:
        probe = Kprobe(addr=self.home, **handlers)
        self.k.register(probe)
        try:
            seen = self.run(state, self.home)
            assert probe.nhit == 1
        finally:
            self.k.unregister(probe)
        return seen

    def displaced(self, insn: Insn, state: dict[str, int], place: int, failing: int) -> Seen | None:
        """None: it does not reach, or there is nothing to run. failing: where it fails at home."""
        assert insn.displace is not None
        try:
            code = insn.displace(place)
        except OutOfReach:
            return None
        assert len(code) <= self.m.arch.out_of_line.max_displaced
        if not code:
            return None  # it does nothing
        self.m.write(place, code)
        seen = self.run(state, place, len(code))
        home = insn.next if seen.pc == place + len(code) else seen.pc
        if seen.fault and place <= seen.pc < place + len(code):
            home = failing  # itself, or its delay slot: what is probed tells them apart
        return Seen(seen.regs, home, seen.memory, seen.fault)

    def check(self, code: bytes, seed: str, slot: bytes = b"", **registers: int) -> list[str]:
        """What is different. slot: what is in its delay slot; else one of the file's. registers: what is in them."""
        code = code + slot if slot else self.with_slot(code, seed)
        self.m.write(self.home, code)
        insn, state = self.decode(code), {**self.state(seed), **registers}
        plain = self.run(state, self.home)
        self.faults += plain.fault is not None
        runs: dict[str, Seen | None] = {"boosted": self.probed(state),
                                        "post": self.probed(state, post_handler=lambda p, regs, flags: None)}
        if insn.displace is not None:
            runs |= {how: self.displaced(insn, state, place, plain.pc)
                     for how, place in (("near", self.near), ("far", self.far))}
        return [f"{code.hex()} {insn.name}, {how}, {seed}: {text}" for how, seen in runs.items() if seen is not None
                for text in seen.differs(plain)]


@pytest.fixture(scope="module", params=list(ONLY))
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    stem = f"{request.param}-O2"
    qemu_for(stem)
    program = tmp_path_factory.mktemp("lab") / stem
    shutil.copy(PROGRAMS / "bin" / f"{stem}.elf", program)
    program.chmod(0o755)
    with QemuMachine.user([program], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        yield Lab(request.param, m)


def straight(lab: Lab) -> list[Case]:
    return [case for case in lab.file.cases if case.outcome != "reject" and not lab.file.skip(case.code)]


def test_probed_is_unprobed(lab: Lab, conformance: Conformance) -> None:
    problems, done = [], {"step": 0, "simulate": 0}
    for case in straight(lab):
        for n in range(STATES):
            problems += [f"{case}: {text}" for text in lab.check(case.code, f"{case.code.hex()} {n}")]
            done[case.outcome] += 1
    assert not problems, "\n".join(problems[:SHOWN])
    for outcome, count in done.items():
        conformance.under(USER_MODE)(lab.m.arch.name, outcome, count)


def generated(lab: Lab) -> Iterator[bytes]:
    """Words that begin as a case's does, and are of the same row: other registers and offsets."""
    rng, size = random.Random(7), lab.m.arch.max_insn
    for case in straight(lab):
        for _ in range(GENERATED):
            changed = rng.getrandbits(32) & rng.getrandbits(32) & (0x03FFFFFF if size == 4 else 0x0FFF)
            word = int.from_bytes(case.code, lab.m.arch.order.value) ^ changed
            code = word.to_bytes(size, lab.m.arch.order.value)
            insn = lab.decode(lab.with_slot(code, f"{code.hex()} generated"))
            if insn.simulate is not None:
                yield code


def test_generated_words(lab: Lab) -> None:
    """Whatever is simulated."""
    problems: list[str] = []
    count = 0
    for code in generated(lab):
        problems += lab.check(code, f"{code.hex()} generated")
        count += 1
    assert count > 50
    assert not problems, "\n".join(problems[:SHOWN])


#: in delay slots: loads and stores through r1, which branches read as well, r4, and one that would change its pointer
FAILING = [bytes.fromhex(word) for word in ("6242", "2422", "6442", "6246", "6112", "2142")]


def test_delay_slots_that_fault(lab: Lab) -> None:
    """Every branch that has one, taken and not; what it has done is done once, and the fault is where it is without."""
    problems: list[str] = []
    count, before, rng = 0, lab.faults, random.Random(5)
    branches = {case.code for case in straight(lab)} | {code for code in generated(lab) for _ in range(2)}
    for code in sorted(code for code in branches if lab.m.arch.decode(2 * code, lab.home).delay_slot):
        for n, slot in enumerate(rng.sample(FAILING, 2)):  # all were tried, too
            word = slot if lab.m.arch.order.value == "big" else slot[::-1]
            if lab.decode(code + word).reject:
                continue
            status = lab.kept["sr"] | n & 1 | rng.getrandbits(2) << 8  # T both ways; Q and M
            registers = {"r1": 0x10, "r4": 0x10, "sr": status}
            problems += lab.check(code, f"{code.hex()} failing {n}", word, **registers)
            count += 1
    assert lab.faults - before >= count // 2 and (count > 50) == lab.m.arch.name.startswith("sh4")
    assert not problems, f"{len(problems)}\n" + "\n".join(problems[:SHOWN])
