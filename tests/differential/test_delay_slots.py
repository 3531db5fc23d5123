"""Delay slots that fault, of every branch and by every kind of fault, wherever the probes are; displaced branches whose
slot is repaired, or left by the guest; runs that stop there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, Regs, UnicornMachine
from kprobes.machine.unicorn.assembler import assemble

BASE, NOWHERE = 0x10000, 0x50000000
BRANCH, SLOT, FALLEN, TAKEN, ASIDE = (BASE + offset for offset in (0x10, 0x14, 0x18, 0x2C, 0x3C))

MIPS = """.set noreorder; or $t1, $ra, $zero; addiu $v0, $zero, 0; lui $t0, 1; ori $t0, $t0, 0x2c; {}; {}; addiu $v0, $v0, 1; or $ra, $t1, $zero;
jr $ra; addu $v0, $v0, $v1; nop; taken: addiu $v0, $v0, 2; or $ra, $t1, $zero; jr $ra; addu $v0, $v0, $v1; or $ra, $t1, $zero; jr $ra;
addiu $v0, $zero, 99"""
SPARC = """mov %o7, %g3; clr %g1; sethi %hi(0x10000), %g4; or %g4, 0x2c, %g4; {}; {}; add %g1, 1, %g1; mov %g3, %o7; retl; add %g1, %g5, %o0; nop;
taken: add %g1, 2, %g1; mov %g3, %o7; retl; add %g1, %g5, %o0; mov %g3, %o7; retl; mov 99, %o0"""
#: (slot that loads, slot that stores; code around them)
PROGRAMS = {"mips": (("lw $v1, 0($a0)", "sw $t1, 0($a0)"), MIPS), "sparc": (("ld [%o0], %g5", "st %g3, [%o0]"), SPARC)}
OF_ALL = {  # the word is JAL, which Keystone makes position-independent
    "mips": ("beq $zero, $zero, taken", "bne $zero, $zero, taken", "bltz $zero, taken", "bgezal $zero, taken",
             "j taken", ".word 0x0c00400b", "jalr $t0"),
    "sparc": ("ba taken", "bn taken", "bne taken", "be taken", "bne,a taken", "call taken", "jmp %g4", "jmpl %g4, %g2",
              "jmpl %g4, %o7"),
}
BRANCHES = [
    *(("mips", "mips", branch) for branch in (*OF_ALL["mips"], "beql $zero, $zero, taken", "bgezl $zero, taken",
                                              "bgezall $zero, taken")),
    *(("mips32r6", "mips", branch) for branch in (*OF_ALL["mips"], "jr $t0")),
    *((arch, "sparc", branch) for arch in ("sparc", "sparc64") for branch in OF_ALL["sparc"]),
]


def code_of(arch: str, family: str, branch: str, slot: str) -> bytes:
    """The program. Release 6 has JALR only."""
    code = assemble(PROGRAMS[family][1].format(branch, slot), family, BASE)
    words = [int.from_bytes(code[n : n + 4], "big") for n in range(0, len(code), 4)]
    order: Literal["little", "big"] = "little" if arch.endswith("el") else "big"
    return b"".join((w | ("r6" in arch and w & 0xFC1FFFFF == 8)).to_bytes(4, order) for w in words)


class Scene:
    """One branch; `f(pointer)` executes it."""

    def __init__(self, arch: str, family: str, branch: str, store: bool) -> None:
        code = code_of(arch, family, branch, PROGRAMS[family][0][store])
        self.m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": (BASE, len(code)), "taken": (TAKEN, 0)})
        self.here = self.m.alloc(16)
        self.m.write(self.here, b"\0\0\0\7" * 4)
        self.kprobes = Kprobes(self.m)

    def probe(self, **handlers: Callable[..., object]) -> Kprobe:
        """An optimized probe at the branch."""
        probe = Kprobe(addr=BRANCH, pre_handler=handlers.pop("pre", lambda p, regs: None), **handlers)
        self.kprobes.register(probe)
        self.kprobes.flush_optimizer()
        assert probe.optimized, probe.why_not_optimized
        return probe

    def fault(self) -> tuple[object, ...]:
        """How f fails where nothing is mapped."""
        with pytest.raises(GuestFault) as caught:
            self.m.call("f", NOWHERE)
        return caught.value.access, caught.value.address, caught.value.pc


@pytest.fixture(params=[(*branch, store) for branch in BRANCHES for store in (False, True)],
                ids=lambda b: f"{b[0]} {b[2]}, {'store' if b[3] else 'load'}")
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(*request.param)
    yield made
    made.kprobes.close()
    made.m.close()


def test_the_same_result(scene: Scene) -> None:
    plain = scene.m.call("f", scene.here)
    probe = scene.probe()
    assert [scene.m.call("f", scene.here) for _ in range(2)] == [plain, plain]
    assert (probe.nhit, probe.nmissed) == (2, 0)


def test_a_fault_is_at_the_slot_and_nothing_waits_for_it(scene: Scene) -> None:
    plain, result = scene.fault(), scene.m.call("f", scene.here)
    seen: list[int] = []
    scene.probe(fault_handler=lambda p, regs, trapnr: seen.append(regs.pc))
    for _ in range(2):
        assert scene.fault() == plain == (plain[0], NOWHERE, SLOT)
        assert scene.m.call("f", scene.here) == result
    assert seen == [BRANCH, BRANCH]


def test_a_repaired_fault_goes_on(scene: Scene) -> None:
    plain = scene.m.call("f", scene.here)

    def repair(p: Kprobe, regs: Regs, trapnr: int) -> bool:
        regs[regs.arch.abi.args[0]] = scene.here
        return True

    probe = scene.probe(fault_handler=repair)
    assert [scene.m.call("f", NOWHERE) for _ in range(2)] == [plain, plain]
    assert probe.nhit == 2


def test_a_fault_handler_leads_aside(scene: Scene) -> None:
    def aside(p: Kprobe, regs: Regs, trapnr: int) -> bool:
        regs.pc = ASIDE
        return True

    scene.probe(fault_handler=aside)
    assert [scene.m.call("f", NOWHERE) for _ in range(2)] == [99, 99]


def test_stopped_by_its_handler_it_comes_to_rest_behind_the_branch(scene: Scene) -> None:
    plain = scene.m.call("f", scene.here)
    scene.probe(pre=lambda p, regs: scene.m.stop())
    regs = scene.m.regs
    regs[regs.arch.abi.args[0]] = scene.here
    scene.m.run("f")
    assert regs.pc in (FALLEN, TAKEN)
    scene.m.run()
    assert regs.return_value == plain


def stops(m: UnicornMachine, pointer: int) -> list[int]:
    """Where runs of 1, 2, ... instructions stop; two where the engine cannot count beyond a jump."""
    out = []
    for bound in range(1, 12 if m.guest.blocks.hooked_delay_slots else 3):
        try:
            out.append(m.call("f", pointer, max_insns=bound))
        except GuestTimeout as stopped:
            out.append(stopped.pc)
    return out


def test_bounded_runs_stop_where_they_do_without(scene: Scene) -> None:
    plain = stops(scene.m, scene.here)
    scene.probe()
    assert stops(scene.m, scene.here) == plain


# --- every fault is in its slot, with the same registers, whether or not it is probed

#: fault -> (its instruction on MIPS, on SPARC)
FAULTS = {
    "load": ("lw $v1, 0($a0)", "ld [%o0], %g5"),
    "store": ("sw $t1, 0($a0)", "st %g3, [%o0]"),
    "unaligned load": ("lw $v1, 0($a1)", "ld [%o1], %g5"),
    "unaligned store": ("sw $t1, 0($a1)", "st %g3, [%o1]"),
    "arithmetic": ("teq $zero, $zero", "udiv %g3, %g0, %g5"),
    "undefined": (".word 0x7000003e", "unimp 5"),
}
MIPSES = ("mips", "mipsel", "mips64", "mips64el", "mips32r6", "mips32r6el", "mips64r6", "mips64r6el")
RETURNS = {"mips": "jr $ra", "sparc": "retl"}
LIKELY = tuple(branch for arch, _, branch in BRANCHES if arch == "mips" and branch not in OF_ALL["mips"])
PLACED = [*((arch, "mips", branch) for arch in MIPSES for branch in
            ("nop", *OF_ALL["mips"], RETURNS["mips"], *(() if "r6" in arch else LIKELY))),
          *((arch, "sparc", branch) for arch in ("sparc", "sparc64") for branch in
            ("nop", *OF_ALL["sparc"], RETURNS["sparc"])),
          *(("sparc64", "sparc", branch) for branch in ("brz %g0, taken", "brnz,a %g4, taken", "bne,pt %xcc, taken"))]


def none(*_: object) -> None:
    """A handler."""


#: where a probe is, and what it has: stepped, boosted, a jump, counted; in whose region the branch is; where it goes
WAYS = ((BRANCH, {"post_handler": none}), (BRANCH, {"pre_handler": none, "optimize": False}),
        (BRANCH, {"pre_handler": none}), (BRANCH, {}), (BRANCH - 4, {"pre_handler": none}),
        (TAKEN, {"pre_handler": none}))


def outcome(m: UnicornMachine, there: int, bound: int | None) -> tuple[object, ...]:
    """The fault, and every register."""
    sp = m.regs.sp
    with pytest.raises(GuestFault) as caught:
        m.call("f", NOWHERE, there + 1, max_insns=bound)
    fault = caught.value
    found = (fault.access, fault.address, fault.pc, fault.number, fault.reason, fault.symbol,
             {name: m.regs[name] for name in m.arch.regs.names})
    m.regs.sp = sp
    return found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("branch", PLACED, ids=lambda b: f"{b[0]} {b[2]}")
def test_a_fault_is_where_it_is_without_the_probe(branch: tuple[str, str, str], fault: str) -> None:
    arch, family, text = branch
    if "r6" in arch and fault.startswith("unaligned"):
        return  # release 6 has no such fault
    code = code_of(arch, family, text, FAULTS[fault][family == "sparc"])
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": (BASE, len(code)), "taken": (TAKEN, 0)})
    there = m.alloc(16)
    for bound in (None, *((50,) if m.guest.blocks.hooked_delay_slots else ())):
        plain = outcome(m, there, bound)
        assert (plain[2], m.regs.pc) == (SLOT, SLOT)
        assert plain[0] == (fault.rpartition(" ")[2].replace("load", "read").replace("store", "write"))
        for addr, fields in WAYS:
            with Kprobes(m) as k:
                k.register(probe := Kprobe(addr=addr, **fields))
                k.flush_optimizer()
                for _ in range(2):
                    assert outcome(m, there, bound) == plain, (hex(addr), fields, bound)
                assert probe.nhit == (0 if addr == TAKEN else 2)
    m.close()
