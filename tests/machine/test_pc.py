"""pc by its word in the engine does what the engine's API does. See Guest.plain_pc."""

from __future__ import annotations

import pytest
import unicorn
from unicorn import x86_const

from kprobes import UnicornMachine
from kprobes.machine.unicorn.assembler import assemble
from kprobes.machine.unicorn.engine import Engine
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.machine.unicorn.registers import cells
from kprobes.machine.unicorn.registers.cells import peek

BASE, TARGET = 0x10000, 0x11000
BEHIND = 0x4000  # bytes of the CPU's state behind its first register
#: Of them, those of AArch64's pc, which the API sets as well: a 32-bit guest has none.
UNUSED = {"arm": {*range(0x140, 0x148)}, "armeb": {*range(0x140, 0x148)}, "cortexm": {*range(0x140, 0x148)}}


def engine(arch: str) -> UnicornMachine:
    """A bare engine full of breakpoints; the machine around it has no hooks."""
    guest = GUESTS[arch]
    uc = guest.cpu.fresh().uc
    uc.mem_map(BASE, 0x4000)
    traps = guest.breakpoint.traps or UnicornMachine.attach(uc, arch=arch).arch.traps
    trap = traps.end[min(traps.end)]
    uc.mem_write(BASE, trap * (0x4000 // len(trap)))
    return UnicornMachine.attach(uc, arch=arch)


@pytest.mark.parametrize("arch", sorted(name for name, guest in GUESTS.items() if guest.pc.plain))
def test_a_write_by_the_api_changes_nothing_but_the_word(arch: str) -> None:
    """At a breakpoint, and for targets without mode bits. What differs once is our own: the heap behind the CPU's
    state."""
    assert not changed_by_a_write(arch) & changed_by_a_write(arch) & changed_by_a_write(arch)


def changed_by_a_write(arch: str) -> set[int]:
    """Offsets of bytes behind the first register that an API write of pc changes, besides pc."""
    m = engine(arch)
    mode = min(m.arch.traps.end)
    pc, first = m.parts.cpu.cells[m.arch.regs.pc], min(cell.address for cell in m.parts.cpu.cells.values())
    seen: list[tuple[bytes, bytes]] = []

    def hook(uc: unicorn.Uc, number: int, data: object) -> None:
        before = peek(first, BEHIND)
        m.parts.cpu.write_pc(TARGET | mode)
        after = peek(first, BEHIND)
        at = pc.address - first
        seen.append((before[:at] + TARGET.to_bytes(m.arch.bits // 8, "little") + before[at + m.arch.bits // 8 :],
                     after))
        uc.emu_stop()

    m.uc.hook_add(unicorn.UC_HOOK_INTR, hook)
    m.uc.emu_start(BASE + 0x100 | mode, 0)
    [(expected, after)] = seen
    assert len(after) == BEHIND
    assert m.parts.cpu.read_pc() == TARGET
    return {at for at in range(BEHIND) if expected[at] != after[at]} - UNUSED.get(arch, set())


@pytest.mark.parametrize("arch", ["arm", "armeb"])
def test_the_mode_follows_the_guest(arch: str) -> None:
    """The word that tells whether a target changes the mode is the one that BX writes, too."""
    m = engine(arch)
    word, flags = m.parts.cpu.mode_word(m.parts.cpu.cells["pc"]), m.parts.cpu.register("cpsr")
    seen: list[tuple[int, int]] = []

    def hook(uc: unicorn.Uc, number: int, data: object) -> None:
        seen.append((word[0], uc.reg_read(flags) >> 5 & 1))
        uc.emu_stop()

    m.uc.hook_add(unicorn.UC_HOOK_INTR, hook)
    for at, target in ((BASE, TARGET | 1), (TARGET + 0x40 | 1, BASE + 0x40), (BASE, TARGET | 1)):
        m.write(at & ~1, bytes.fromhex("0047" if at & 1 else "10ff2fe1"))  # BX r0
        m.regs["r0"] = target
        m.uc.emu_start(at, 0)
    assert seen == [(1, 1), (0, 0), (1, 1)]


#: A branch, where it leads to, and an instruction aside: each followed by a breakpoint, of which the first is in the
#: delay slot.
PLACES = {BASE: "beq $zero, $zero, 0x10020", BASE + 0x20: "addiu $v0, $v0, 2", BASE + 0x40: "addiu $v0, $v0, 16"}


@pytest.mark.parametrize("arch", ["mips", "mipsel", "mips64", "mips64el", "mips32r6", "mips64r6el"])
@pytest.mark.parametrize("by_word", [False, True])
def test_a_pending_branch_survives_either_way(arch: str, by_word: bool) -> None:
    """A breakpoint in a delay slot, whose hook sends the guest aside: one instruction is executed there, then the
    branch is taken."""
    m = engine(arch)
    for at, text in PLACES.items():
        m.write(at, assemble(text, "mips", at)[:4][:: 1 if m.arch.order.value == "big" else -1])
    cell, seen = m.parts.cpu.cells["pc"], []

    def hook(uc: unicorn.Uc, number: int, data: object) -> None:
        seen.append(cell.reader()())
        if len(seen) > 1:
            uc.emu_stop()
        else:
            (cell.writer() if by_word else m.parts.cpu.write_pc)(BASE + 0x40)

    m.regs["v0"] = 0
    m.uc.hook_add(unicorn.UC_HOOK_INTR, hook)
    m.uc.emu_start(BASE, 0)
    assert seen == [BASE + 8, BASE + 0x28]
    assert m.regs["v0"] == 16 + 2


def test_a_build_is_searched_for_its_cpu_once(monkeypatch):
    """The handle's pointers are tried for the first engine of a build; later searches go to the one
    that was found, and find the same places.
    """
    tried = []
    search = cells.offset

    def counted(engine, number, bits, start, *size):
        tried.append(start)
        return search(engine, number, bits, start, *size)

    monkeypatch.setattr(cells, "offset", counted)
    monkeypatch.setattr(cells, "_layouts", {})
    monkeypatch.setattr(cells, "_pointers", {})
    numbers = {"rbx": x86_const.UC_X86_REG_RBX, "r15": x86_const.UC_X86_REG_R15}
    places, searched = [], []
    for layout in ("one", "another"):
        engine = Engine(unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64))
        found = cells.find_cells(engine, layout, numbers, 64)
        places.append(found["r15"].address - found["rbx"].address)
        searched.append(len(set(tried)))
        tried.clear()
    assert places[0] == places[1] != 0
    assert searched[0] > 2 >= searched[1]
