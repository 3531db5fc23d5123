"""A guest that has failed in a delay slot goes on there when that is mended, and its branch is taken: for every branch and
kind of fault, wherever the probes are, as without them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import unicorn
from test_delay_slots import BASE, NOWHERE, PLACED, SLOT, TAKEN, WAYS, code_of

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine
from kprobes.machine.unicorn.assembler import assemble
from kprobes.machine.unicorn.guests.rows import GUESTS

#: fault -> its instruction on MIPS, on SPARC: of three arguments one makes it fail
FAULTS = {
    "load": ("lw $v1, 0($a0)", "ld [%o0], %g5"),
    "store": ("sw $t1, 0($a0)", "st %g3, [%o0]"),
    "unaligned load": ("lw $v1, 0($a1)", "ld [%o1], %g5"),
    "unaligned store": ("sw $t1, 0($a1)", "st %g3, [%o1]"),
    "arithmetic": ("teq $a2, $zero", "udiv %g3, %o2, %g5"),
}
CASES = [(arch, family, branch, fault) for arch, family, branch in PLACED for fault in FAULTS
         if not ("r6" in arch and fault.startswith("unaligned"))]  # release 6 has no such fault


class Scene:
    """One branch, in `f(pointer, pointer, divisor)`; `g` does nothing and returns."""

    def __init__(self, arch: str, family: str, branch: str, fault: str) -> None:
        code = code_of(arch, family, branch, FAULTS[fault][family == "sparc"])
        other = assemble({"mips": ".set noreorder; jr $ra; nop", "sparc": "retl; nop"}[family], family, BASE)
        self.g = BASE + len(code)
        words = [int.from_bytes(other[n : n + 4], "big") for n in (0, 4)]
        other = b"".join((w | ("r6" in arch and w & 0xFC1FFFFF == 8)).to_bytes(
            4, "little" if arch.endswith("el") else "big") for w in words)
        self.m = UnicornMachine.from_code(code + other, arch=arch, base=BASE, symbols={"f": (BASE, len(code)), "taken": (TAKEN, 0)})
        self.there = self.m.alloc(16)
        self.m.write(self.there, b"\0\0\0\7" * 4)
        self.sp = self.m.regs.sp

    def arguments(self, *values: int) -> None:
        regs = self.m.regs
        for name, value in zip(regs.arch.abi.args, values, strict=False):
            regs[name] = value

    def mend(self) -> None:
        self.arguments(self.there, self.there, 1)

    def fail(self) -> None:
        """f fails in its delay slot."""
        self.m.regs.sp = self.sp
        self.arguments(NOWHERE, self.there + 1, 0)
        with pytest.raises(GuestFault) as caught:
            self.m.run("f")
        assert (caught.value.pc, self.m.regs.pc) == (SLOT, SLOT)

    def result(self) -> tuple[object, ...]:
        """Every register but the stack pointer's."""
        return tuple(self.m.regs[name] for name in self.m.arch.regs.names), self.m.read(self.there, 16)

    # --- ways to go on

    def run(self) -> tuple[object, ...]:
        self.mend()
        self.m.run()
        return self.result()

    def after_a_call(self) -> tuple[object, ...]:
        """The state of the guest is put back behind a call, and what waits is part of it."""
        self.m.call(self.g)
        return self.run()

    def after_another_failure(self) -> tuple[object, ...]:
        """It fails there again."""
        with pytest.raises(GuestFault) as caught:
            self.m.run()
        assert caught.value.pc == SLOT
        return self.run()

    def restored(self) -> tuple[object, ...]:
        """Twice from a snapshot."""
        snapshot = self.m.snapshot()
        first = self.run()
        self.m.restore(snapshot)
        assert self.m.regs.pc == SLOT
        assert self.run() == first
        return first

    def sent_there(self) -> tuple[object, ...]:
        """Who writes pc says where the guest is: in no branch's delay slot."""
        self.m.regs.pc = SLOT
        return self.run()

    def started_there(self) -> tuple[object, ...]:
        self.mend()
        self.m.run(SLOT)
        return self.result()

    def called_there(self) -> tuple[object, ...]:
        return self.m.call(SLOT, self.there, self.there, 1), *self.run()

    def bounded(self) -> tuple[object, ...]:
        """By instructions, where the engine can count them."""
        if not self.m.guest.blocks.hooked_delay_slots:
            return self.run()
        self.mend()
        stopped = None
        try:
            self.m.run(max_insns=1)
        except GuestTimeout as stop:
            stopped = stop.pc
            self.m.run(max_insns=50)
        return stopped, *self.result()


TAKEN_UP = (Scene.run, Scene.after_a_call, Scene.after_another_failure, Scene.restored)
LEFT = (Scene.sent_there, Scene.started_there)
OTHERS = (Scene.called_there, Scene.bounded)


def outcomes(scene: Scene, wholly: bool) -> dict[str, tuple[object, ...]]:
    """What comes of it, by each way to go on."""
    out = {}
    for go_on in (*TAKEN_UP, *LEFT, *OTHERS) if wholly else (Scene.run, Scene.sent_there):
        scene.m.write(scene.there, b"\0\0\0\7" * 4)
        scene.fail()
        out[go_on.__name__] = go_on(scene)
    return out


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} {case[2]}, {case[3]}")
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(*request.param)
    yield made
    made.m.close()


def test_the_branch_is_taken_when_the_guest_goes_on(scene: Scene) -> None:
    scene.mend()
    scene.m.run("f")
    right = scene.result()
    plain = outcomes(scene, True)
    assert [plain[way.__name__] for way in TAKEN_UP] == [right] * len(TAKEN_UP)
    assert plain["bounded"][-2:] == plain["called_there"][-2:] == right
    assert plain["sent_there"] == plain["started_there"]
    for n, (addr, fields) in enumerate(WAYS):
        with Kprobes(scene.m) as k:
            k.register(probe := Kprobe(addr=addr, **fields))
            k.flush_optimizer()
            scene.m.regs.pc = BASE
            found = outcomes(scene, n < 2)
            assert found == {name: plain[name] for name in found}, (hex(addr), fields)
            assert probe.nhit or addr == TAKEN


@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_single_steps_go_on_there(arch: str) -> None:
    scene, stops = Scene(arch, "sparc", "ba taken", "load"), []
    for _ in range(2):
        scene.fail()
        scene.mend()
        for _ in range(2):
            with pytest.raises(GuestTimeout) as stopped:
                scene.m.run(max_insns=1)
            stops.append(stopped.value.pc)
    assert stops == [TAKEN, TAKEN + 4] * 2


@pytest.mark.parametrize(("arch", "family", "branch"), [
    ("mips", "mips", "b taken"), ("mips64r6el", "mips", "b taken"), ("sparc", "sparc", "ba taken"),
    ("sparc64", "sparc", "ba taken")])
def test_pages_that_this_takes_hold_traps(arch: str, family: str, branch: str) -> None:
    """For guests that stray there."""
    m = (scene := Scene(arch, family, branch, "store")).m
    m.call(scene.g)
    before = m.parts.memory.own_code.ranges()
    scene.fail()
    scene.run()
    for page in {page for start, end in m.parts.memory.own_code.ranges() for page in range(start, end, m.page_size)
                 if not any(start <= page < end for start, end in before)}:
        with pytest.raises(GuestFault) as caught:
            m.run(page)
        assert caught.value.pc == page
    assert m.parts.memory.own_code.ranges() != before


# --- on an engine of somebody else's

DATA = 0x40000


class Owner:
    """One branch, on an engine that runs by uc.emu_start()."""

    def __init__(self, arch: str, family: str, branch: str, fault: str) -> None:
        self.uc = GUESTS[arch].cpu.fresh().uc
        self.uc.mem_map(BASE, 0x4000)
        self.uc.mem_map(DATA, 0x4000)
        self.uc.mem_write(BASE, code_of(arch, family, branch, FAULTS[fault][family == "sparc"]))
        self.m = UnicornMachine.attach(self.uc, arch=arch)
        self.end = BASE + 0x100

    def arguments(self, *values: int) -> None:
        for name, value in zip(self.m.arch.abi.args, values, strict=False):
            self.m.regs[name] = value

    def returns(self) -> None:
        """To the end."""
        self.m.write(DATA, bytes(16))
        linkage = self.m.arch.linkage
        self.m.regs[linkage.register] = self.end - linkage.bias

    def fail(self) -> int:
        """Where it is then."""
        self.returns()
        self.arguments(NOWHERE, DATA + 1, 0)
        with pytest.raises(unicorn.UcError):
            self.uc.emu_start(BASE, self.end)
        self.arguments(DATA, DATA, 1)
        return self.m.regs.pc

    def result(self) -> tuple[int, ...]:
        return tuple(self.m.regs[name] for name in self.m.arch.regs.names)


@pytest.mark.parametrize("case", [(arch, family, branch, fault) for arch, family, branch in PLACED
                                  for fault in ("load", "arithmetic") if arch in ("mips", "sparc") and branch != "nop"],
                         ids=lambda case: f"{case[0]} {case[2]}, {case[3]}")
def test_an_owners_guest_comes_home_to_the_slot(case: tuple[str, str, str, str]) -> None:
    """It goes on by run() as it would have gone on without the fault; by emu_start(), as without the probe."""
    owner = Owner(*case)
    m, lost = owner.m, case[1] == "sparc"
    owner.returns()
    owner.arguments(DATA, DATA, 1)
    m.run(BASE, until=owner.end, timeout=20)
    right = owner.result()
    for addr, fields in (WAYS[0], WAYS[2]):
        for lib in (True,) if lost else (True, False):
            with Kprobes(m) as k:
                k.register(Kprobe(addr=addr, **fields))
                k.flush_optimizer()
                assert owner.fail() == SLOT
                if lib:
                    m.run(until=owner.end, timeout=20)
                else:
                    owner.uc.emu_start(SLOT, owner.end)
                assert owner.result() == right, (hex(addr), fields, lib)
    m.close()
