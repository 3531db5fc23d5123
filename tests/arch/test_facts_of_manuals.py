"""Facts of manuals that only rare guests meet: each was changed once by a mutant that no test noticed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from arch_rows import LINUX

from kprobes import arch
from kprobes.arch.mips.interrupts import BEV, EXL, IE, IV, enter
from kprobes.arch.sh.tables import loaded

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("status, cause, ebase, vector", [
    (IE, 0, 0x80000000, 0x80000180), (IE, IV, 0x80000000, 0x80000200),
    (IE, 0, 0x80123FFF, 0x80123180), (IE, IV, 0x00123FFF, 0x80123200),
    (IE | BEV, 0, 0x80000000, 0xBFC00380), (IE | BEV, IV, 0x80123000, 0xBFC00400)])
def test_where_mips_takes_interrupts(status: int, cause: int, ebase: int, vector: int) -> None:
    """MIPS32 Architecture Volume III, 6.2.2: Status.BEV, Cause.IV and EBase choose the vector."""
    system = {"status": status, "cause": cause, "ebase": ebase}
    cpu = SimpleNamespace(regs=SimpleNamespace(pc=0x1004), system=system.__getitem__, set_system=system.__setitem__)
    assert enter(cpu, 2) == vector  # type: ignore[arg-type]
    assert (system["status"], system["epc"], system["cause"]) == (status | EXL, 0x1004, cause)


@pytest.mark.parametrize("high, name, leaves", [
    (0x1E00000C, "PCADDU18I", True),  # $t0, 0; jirl $zero, $t0, 0 goes behind it
    (0x1E00000D, "PCADDU18I", False),  # another register
    (0x1C00000C, "PCADDU12I", False)])
def test_which_jumps_of_loongarch_leave_a_function(high: int, name: str, leaves: bool) -> None:
    """LoongArch Reference Manual 2.2.1.9, 2.2.5.3: PCADDU18I and JIRL of one register are one far jump."""
    isa = arch.get("loongarch64")
    before, jump = isa.decode(high.to_bytes(4, "little"), 0x1000), isa.decode(bytes.fromhex("8001004c"), 0x1004)
    assert (before.name, jump.name) == (name, "JIRL")
    assert (isa.walking.leaves(jump, [before]) is before) is leaves
    assert isa.walking.leaves(jump, []) is None
    assert isa.walking.leaves(jump, [before, jump]) is None


@pytest.mark.parametrize("name, code, sr, goes_to", [
    ("BT", 0x8901, 1, 0x1006), ("BT", 0x8901, 0, 0x1002), ("BF", 0x8B01, 0, 0x1006), ("BF", 0x8B01, 1, 0x1002),
    ("BT/S", 0x8D01, 1, 0x1006), ("BT/S", 0x8D01, 0, 0x1004), ("BF/S", 0x8F01, 0, 0x1006), ("BF/S", 0x8F01, 1, 0x1004)])
def test_which_way_conditional_branches_of_sh_go(name: str, code: int, sr: int, goes_to: int) -> None:
    """SH-4 Software Manual, section 10, BF, BF/S, BT and BT/S: the ones branch where T is 0, the others where it is 1."""
    insn = arch.get("sh4").decode(code.to_bytes(2, "little") + bytes.fromhex("0900"), 0x1000)  # NOP in the slot
    assert insn.name == name and insn.simulate is not None
    assert insn.simulate({"sr": sr}) == goes_to  # type: ignore[arg-type]


@pytest.mark.parametrize("load, size, increments", [
    (0x6100, 1, False), (0x6101, 2, False), (0x6102, 4, False), (0x6104, 1, True), (0x6105, 2, True), (0x6106, 4, True),
    (0x6103, 0, False), (0x6107, 0, False), (0x6112, 0, False), (0xF108, 4, False), (0xF109, 4, True)])
def test_what_loads_of_sh_read_through_r0(load: int, size: int, increments: bool) -> None:
    """SH-4 Software Manual, section 10: MOV.B, MOV.W, MOV.L and FMOV.S from @R0 and @R0+; not MOV, NOT, or @R1."""
    assert loaded(load) == (size, increments)


@pytest.mark.parametrize("index", [0, 1, 5, 0xFFFFFFFF])
def test_where_bv_of_parisc_goes(index: int) -> None:
    """PA-RISC 2.0 Architecture, chapter 7, BRANCH VECTORED: the index is shifted left by three bits, and the low two
    bits of the sum are a privilege level."""
    insn = arch.get("parisc").decode(bytes.fromhex("e841c000 08000240"), 0x1000)  # bv r1(r2); nop
    assert insn.name == "BV" and insn.simulate is not None
    regs = {"r1": index, "r2": 0x40000003}
    assert insn.simulate(regs) == (0x40000000 + 8 * index) % 2**32  # type: ignore[arg-type]


@pytest.mark.parametrize("slot", ["08000240", "34420002"])
def test_branches_of_parisc_with_a_link_elsewhere(slot: str) -> None:
    """PA-RISC 2.0 Architecture, chapter 7, BRANCH: displaced, it links to the original's return address
    (behind its delay slot), goes to the original target, and its delay slot comes along."""
    isa = arch.get("parisc")
    insn = isa.decode(bytes.fromhex("e8400010" + slot), 0x1000)  # b,l 0x1010,r2
    assert insn.displace is not None
    code = insn.displace(0x8000)
    assert code[:8].hex() == "20402000" + "34420016"  # ldil L%0x1008,r2; ldo 11(r2),r2: with the user's privilege level, 3
    moved = isa.decode(code[8:], 0x8008)
    assert (moved.target, moved.delay_slot, code[12:].hex()) == (0x1010, True, slot)


@pytest.mark.parametrize("name, opcode, size", [
    ("FLD.S", 0b0010101100, 4), ("FST.S", 0b0010101101, 4), ("FLD.D", 0b0010101110, 8), ("FST.D", 0b0010101111, 8),
    ("VLD", 0b0010110000, 16), ("VST", 0b0010110001, 16), ("XVLD", 0b0010110010, 32), ("XVST", 0b0010110011, 32),
    ("LD.B", 0b0010100000, 1), ("LD.D", 0b0010100011, 8), ("ST.W", 0b0010100110, 4), ("LD.WU", 0b0010101010, 4)])
def test_what_loads_and_stores_of_loongarch_access(name: str, opcode: int, size: int) -> None:
    """LoongArch Reference Manual, volume 1, appendix B: bits 31:22 of each; 12 bits of displacement, from a register."""
    isa = arch.get("loongarch64")
    insn = isa.decode((opcode << 22 | 0xFF8 << 10 | 4 << 5 | 5).to_bytes(4, "little"), 0x1000)  # -8 from $a0
    assert isa.walking.follow is not None
    assert isa.walking.follow(insn, {4: 0x20000}) == (0x1FFF8, size)


@pytest.mark.parametrize("name, at, code, known, found", [
    ("mips", 0x1000, "8c620010", {3: 0xFFFFFFF8}, (8, 4)),  # lw $v0, 16($v1)
    ("mips64", 0x1000, "8c628000", {3: 0x10}, (2**64 - 0x7FF0, 4)),  # lw $v0, -32768($v1)
    ("arm64", 0x1000, "611040f9", {3: 2**64 - 16}, (16, 8)),  # ldr x1, [x3, #32]
    ("ppc", 0x1000, "80630010", {3: 0xFFFFFFF8}, (8, 4))])  # lwz r3, 16(r3)
def test_addresses_wrap(name: str, at: int, code: str, known: dict[int, int], found: tuple[int, int]) -> None:
    """Effective addresses are sums modulo 2**32 or 2**64: MIPS Architecture Volume II, LW; DDI 0487, C6.2, LDR
    (immediate); Power ISA, 1.10.3."""
    isa = arch.get(name)
    assert isa.walking.follow is not None
    assert isa.walking.follow(isa.decode(bytes.fromhex(code), at), known) == found


@pytest.mark.parametrize("at", [0x1000, 0x1002])
@pytest.mark.parametrize("words, behind", [(0, 1), (1, 1), (2, 1), (255, 1), (1, 0), (5, 0), (255, 0)])
def test_where_ldrd_of_thumb_reads_its_literal(words: int, behind: int, at: int) -> None:
    """DDI 0406C, A8.8.74, LDRD (literal): imm32 is imm8:'00', counted from Align(PC, 4); two words are read."""
    first = 0xE95F | behind << 7
    code = first.to_bytes(2, "little") + (0x0100 | words).to_bytes(2, "little")  # ldrd r0, r1, [pc, #...]
    insn = arch.get("arm").decode(code, at | 1)
    pc = at + 4 & ~3
    assert (insn.name, insn.operand, insn.data) == ("LDRD literal", pc + 4 * words * (1 if behind else -1), 8)


@pytest.mark.parametrize("mode, code, target", [
    (0, "000000fa", 0x1008), (0, "000000fb", 0x100A), (0, "feffffeb", 0x1000),  # blx; blx with H; bl
    (1, "00f000e8", 0x1004), (1, "00f000f8", 0x1004)])  # blx; bl
def test_which_calls_of_arm_change_the_instruction_set(mode: int, code: str, target: int) -> None:
    """DDI 0406C, A8.8.25, BL, BLX (immediate): BLX goes to the other instruction set, BL stays."""
    insn = arch.get("arm").decode(bytes.fromhex(code), 0x1000 | mode)
    assert (insn.target, insn.links, insn.exchanges) == (target, True, insn.name.startswith("BLX"))
    assert insn.exchanges is ((code[-1] in "ab" and code[-2] == "f") or code == "00f000e8")


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("opcode, rs, rt, slot", [
    (0b000110, 0, 1, True), (0b000110, 1, 1, True), (0b000110, 1, 2, True), (0b000110, 1, 0, False),  # POP06; BLEZ
    (0b000111, 0, 4, True), (0b000111, 6, 0, False),  # POP07; BGTZ
    (0b110110, 1, 0, True), (0b110110, 0, 1, False), (0b111110, 1, 0, True), (0b111110, 0, 1, False),  # BEQZC, JIC ...
    (0b001000, 1, 2, True), (0b011000, 1, 2, True), (0b010110, 0, 1, True), (0b010111, 0, 1, True),
    (0b110010, 0, 0, False), (0b000100, 1, 2, False)])  # BC; BEQ
def test_which_branches_of_mips_have_a_forbidden_slot(order: str, opcode: int, rs: int, rt: int, slot: bool) -> None:
    """MIPS Architecture Volume II-A, release 6, 7.1 and POP06 ... POP76: conditional compact branches, which share
    their opcodes with others that have none."""
    isa = arch.get("mips64r6" if order == "big" else "mips64r6el")
    assert isa.walking.conditioned is not None
    insn = isa.decode(bytes(4), 0x1004)
    assert isa.walking.conditioned(insn, (opcode << 26 | rs << 21 | rt << 16 | 4).to_bytes(4, order)) is slot  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(name for name, linux in LINUX.items() if linux.memory and linux.calls))
def test_how_linux_maps_memory(name: str) -> None:
    """The numbers of mmap() and munmap() are those of the kernel's own tables of system calls."""
    linux = LINUX[name]
    assert linux.memory is not None and linux.calls is not None
    table = linux.calls.table
    tables = pytest.importorskip(f"system_calls.tables.{table}")
    numbers: dict[str, int] = getattr(tables, f"syscalls_{table}")
    assert linux.memory.map in (numbers.get("mmap"), numbers.get("mmap2"))
    assert linux.memory.unmap == numbers["munmap"]


def test_registers_of_parisc_in_events() -> None:
    """PA-RISC 2.0 Architecture, chapter 2: 32 general registers, and 8 space registers."""
    assert LINUX["parisc"].event_names[:40] == (*(f"gr{n}" for n in range(32)), *(f"sr{n}" for n in range(8)))
