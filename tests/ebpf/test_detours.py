"""Code that runs programs in a detour, on Unicorn: every register that a program may read is what it was, and all are
afterwards what they were before."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arch_rows import SAVINGS, TRIPLES
from arches import RUNNABLE
from attrs import frozen

from kprobes import UnicornMachine
from kprobes.arch import get
from kprobes.arch._base import Arch
from kprobes.arch._detours import Saving
from kprobes.machine.detours import inlined as inlined_module
from kprobes.machine.detours.inlined import MOST, bodies
from kprobes.programs import framed
from kprobes.programs.isa import ALU64, DW, EXIT, JMP, LDX, MAP_VALUE, MEM, MOV, STX, Instruction, K, X, lddw
from kprobes.programs.maps import MapType, Spec, create
from kprobes.programs.program import Program
from kprobes.programs.writer import HEADER

pytest.importorskip("llvmlite")
GUESTS = [name for name in RUNNABLE if name in SAVINGS]
BASE = 0x10000
#: what else must survive: register -> bits of it that the guest may set
MORE = {"rflags": 0x8D5, "eflags": 0x8D5, "nzcv": 0xF0000000, "cpsr": 0xF0000000, "hi": 0xFFFFFFFF, "lo": 0xFFFFFFFF,
        "lr": 0xFFFFFFFC, "ctr": 0xFFFFFFFF, "cr": 0xFFFFFFFF, "pswm": 3 << 44}
MTXER_R31, MFXER_R30, XER = 0x7FE103A6, 0x7FC102A6, 0xE000007F
#: nothing, a call, a computed jump, and what asks where it stands
PIECES = {
    "x86_64": ("90", "e800000000", "ffe0", "488d0500000000"),
    **dict.fromkeys(("arm64", "arm64be"), ("1f2003d5", "00000094", "00001fd6", "00000010")),
    **dict.fromkeys(("riscv32", "riscv64"), ("13000000", "ef000000", "67800200", "17050000")),
    "loongarch64": ("00004003", "00000054", "8001004c", "04000018")}
#: registers that no function may change, and no test either
FIXED = {"zero", "k0", "k1"}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def reading(words: list[int], table: Any) -> Any:
    """A program that writes these words of its context into an array's value."""
    code = [Instruction(MOV | X | ALU64, 6, 1), lddw(7, 0, MAP_VALUE, 0)]
    for n, word in enumerate(words):
        code += [Instruction(LDX | MEM | DW, 1, 6, 8 * word), Instruction(STX | MEM | DW, 7, 1, 8 * n)]
    code += [Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]
    flat = [i for part in code for i in (part if isinstance(part, tuple | list) else [part])]
    return Program.from_instructions(flat, {"t": table})


@frozen
class Detours:
    """A guest's, as framed wants it."""

    arch: Arch
    saving: Saving
    reads: bool = True


class Placed:
    """A detour with one program in a machine: run() goes through it."""

    def __init__(self, arch: str, words: list[int], inlined: bool = False) -> None:
        self.m = UnicornMachine.from_code(bytes(0x8000), arch=arch, base=BASE)
        self.saving = SAVINGS[arch]
        self.table: Any = create(Spec(type=MapType.ARRAY, name="t", key_size=4, value_size=8 * len(words),
                                      max_entries=1))
        program = reading(words, self.table)
        made = framed.compiled(program.code, Detours(self.m.arch, self.saving), program.verify().cleared)
        m, order = self.m, self.m.arch.order.value
        entry = BASE + 0x4000
        m.write(entry, made.text)
        self.map = m.alloc(self.table.block.size)
        self.environment = m.alloc(8 * (HEADER + len(made.slots)))
        known = {"map": self.map, "value": self.map, "pc": 0x1234}
        m.write(self.environment, b"".join(value.to_bytes(8, order) for value in (
            entry, 0, *(known.get(kind, 0) for kind, _ in made.slots))))
        calls = bodies(m.arch, self.saving.returns, [(self.environment, entry, made.text if inlined else b"")] * 2)
        assert all(bool(body) == inlined for _, _, body in calls)
        code = self.saving.code(calls, made.reads)
        if arch.startswith("ppc"):  # the engine's XER is not the guest's
            before, after = ((word).to_bytes(4, order) for word in (MTXER_R31, MFXER_R30))
            code = before + code + after
        m.write(BASE, code)
        self.end = BASE + len(code)

    def run(self) -> list[int]:
        """What the program has read."""
        self.m.run(BASE, self.end)
        raw = self.m.read(self.map, self.table.value_size)
        return [int.from_bytes(raw[n : n + 8], "little") for n in range(0, len(raw), 8)]

    @property
    def runs(self) -> int:
        return int.from_bytes(self.m.read(self.environment + 8, 8), self.m.arch.order.value)


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in SAVINGS if SAVINGS[name].returns])
def test_what_may_stand_in_a_detour(arch: str) -> None:
    """No call, no computed jump, nothing that asks where it stands, all that is decoded, and a return at the end."""
    table, returns = get(arch), SAVINGS[arch].returns
    jump, (nop, call, away, other) = table.jump, map(bytes.fromhex, PIECES[arch])
    fine = [returns, nop + returns, jump.encode(0, jump.size + len(nop)) + nop + returns,
            jump.encode(0, jump.size) + returns]
    wrong = [b"", nop, returns + nop, call + returns, away + returns, other + returns, jump.encode(0, 64) + returns,
             nop * (MOST // len(nop)) + returns, returns[:-1]]
    for text in fine:
        assert bodies(table, returns, [(1, 2, text)]) == [(1, 2, text[:-len(returns)])]
    for text in wrong:
        assert bodies(table, returns, [(1, 2, text)]) == [(1, 2, b"")]
        assert bodies(table, b"", [(1, 2, text)]) == [(1, 2, b"")]
    early = bodies(table, returns, [(1, 2, returns + nop + returns)])[0][2]
    assert early == (jump.encode(0, jump.size + len(nop)) + nop if jump.size == len(returns) else b"")
    half = nop * ((MOST - len(returns)) // len(nop)) + returns
    several = bodies(table, returns, [(n, 0, half) for n in range(4)])
    assert [bool(body) for _, _, body in several] == [True, True, False, False]


@pytest.mark.parametrize(("arch", "inlined"), [(arch, inlined) for arch in GUESTS
                                              for inlined in [False] + [True] * bool(SAVINGS[arch].returns)])
def test_registers_are_read_and_survive(arch: str, inlined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlined_module, "MOST", 1 << 12)
    saving = SAVINGS[arch]
    table = UnicornMachine.from_code(bytes(64), arch=arch, base=BASE).arch.regs
    names = [name for name in table.names if saving.offset(name) is not None or name in (table.pc, table.sp)]
    placed = Placed(arch, [table.names.index(name) for name in names], inlined)
    regs, bits = placed.m.regs, placed.m.arch.bits
    free = [name for name in saving.numbers if name not in FIXED | {table.sp}]
    rng = random.Random(arch)
    for turn in range(1, 6):
        for name in free:
            regs[name] = rng.getrandbits(bits)
        for name, mask in MORE.items():
            if name in table.names:
                regs[name] = regs[name] & ~mask | rng.getrandbits(64) & mask
        before = {name: regs[name] for name in table.names}
        got = placed.run()
        after = {name: regs[name] for name in table.names}
        before[table.pc] = after[table.pc]
        link = placed.m.arch.linkage.register
        if link:  # run() has it lead to where runs end
            before[link] = regs[link]
            assert before[link] not in (0, BASE)
        if arch.startswith("ppc"):
            assert after["r30"] & XER == before["r31"] & XER
            before["r30"], before["xer"] = after["r30"], after["xer"]
            got[names.index("r30")] = after["r30"]
        assert after == before
        assert dict(zip(names, got, strict=True)) == {name: 0x1234 if name == table.pc else before[name]
                                                      for name in names}
        assert placed.runs == 2 * turn


@pytest.mark.quick
@pytest.mark.parametrize("arch", sorted(SAVINGS))
def test_every_frame_has_code(arch: str) -> None:
    saving = SAVINGS[arch]
    assert arch in TRIPLES and saving.volatile <= set(saving.numbers)
    code = saving.code([(0x12345678, 0x2345678, b"")])
    assert 40 < len(code) < 500 and saving.size % 16 == 0


@pytest.mark.quick
@pytest.mark.parametrize(("arch", "lock"), [
    (arch, lock) for arch in GUESTS if SAVINGS[arch].lock is not None
    for lock in (BASE + 0x2000, 0x12340000, 0x7FFF0000, 0x1234_5678_9000)
    if lock <= (0x7FFFFFFF if arch.startswith("mips") else get(arch).mask)])  # more: not on this engine
def test_who_takes_a_lock_gives_it_back(arch: str, lock: int) -> None:
    """Programs that run meanwhile change all volatile registers. Once more is only possible if the lock was given back;
    the words beside it are left alone. A lock may be anywhere."""
    take = SAVINGS[arch].lock
    assert take is not None
    taking, giving = take(lock)
    m = UnicornMachine.from_code(taking + giving, arch=arch, base=BASE)
    m.map(lock, 0x1000, "rw")
    beside = b"\x5a" * 16
    m.write(lock, bytes(8) + beside)
    between, end = BASE + len(taking), BASE + len(taking + giving)
    for _ in range(2):
        m.run(BASE, between, max_insns=100)
        assert m.regs.pc == between
        assert any(m.read(lock, 4))
        for name in SAVINGS[arch].volatile - FIXED:
            m.regs[name] = 0x55555555
        m.run(between, end, max_insns=100)
        assert m.read(lock, 4) == bytes(4)
    assert m.read(lock + 8, 16) == beside
