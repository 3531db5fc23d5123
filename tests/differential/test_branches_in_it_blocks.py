"""A conditional branch in an IT block of Thumb is UNPREDICTABLE, and an undefined instruction in the engine: no probe may
be there, which would let it branch. Blocks of every length, with narrow and wide instructions before it."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine, Unprobeable

BASE = 0x40000
#: adds r0, r0, r1 as one halfword, or as two (add.w)
NARROW, WIDE = bytes.fromhex("4018"), bytes.fromhex("00eb0100")
#: bne .+8, of one halfword, and of two
BRANCHES = (bytes.fromhex("02d1"), bytes.fromhex("40f00280"))
#: IT's of one to four instructions, all of which are executed while Z is 0
BLOCKS = (bytes.fromhex("18bf"), bytes.fromhex("1cbf"), bytes.fromhex("1ebf"), bytes.fromhex("1fbf"))


def end(m: UnicornMachine) -> tuple[Any, ...]:
    """How a run ends that begins without flags."""
    m.regs["cpsr" if m.arch.name != "cortexm" else "xpsr"] = 0x30 if m.arch.name != "cortexm" else 1 << 24
    m.regs["r0"], m.regs["r1"] = 1, 2
    try:
        m.run(BASE | 1, max_insns=12)
    except GuestFault as error:
        return error.access, error.pc, m.regs["r0"]
    return ("bounded", m.regs["r0"])


@pytest.mark.parametrize("arch", ["arm", "armeb", "cortexm"])
@pytest.mark.parametrize("branch", BRANCHES, ids=["narrow", "wide"])
@pytest.mark.parametrize("before", [NARROW, WIDE], ids=["after a narrow one", "after a wide one"])
def test_conditional_branches(arch: str, branch: bytes, before: bytes) -> None:
    refused = 0
    for length, block in enumerate(BLOCKS, 1):
        for place in range(5):  # of the branch, behind IT; from `length` on it is behind the block
            code = NARROW + block + before * place + branch + NARROW * 6
            m = UnicornMachine.from_code(code + bytes.fromhex("00de") * 8, arch=arch, base=BASE, symbols={"f": (BASE | 1, len(code))})
            plain = end(m)
            at = BASE + len(NARROW + block + before * place)
            assert (plain[:2] == ("undefined", at)) is (place < length), (length, place, plain)
            with Kprobes(m) as k:
                if place < length:
                    with pytest.raises(Unprobeable, match="IT block"):
                        k.register(Kprobe(addr=at | 1))
                    refused += 1
                else:
                    k.register(Kprobe(addr=at | 1, pre_handler=lambda p, regs: None))
                assert end(m) == plain
    assert refused == 10


#: cbz r0, .+8; cbnz r0, .+8; ite ne
OTHERS = (bytes.fromhex("10b1"), bytes.fromhex("10b9"), bytes.fromhex("14bf"))


@pytest.mark.parametrize("other", OTHERS, ids=["cbz", "cbnz", "it"])
def test_what_else_may_not_be_in_a_block(other: bytes) -> None:
    for length, block in enumerate(BLOCKS, 1):
        for place in range(5):
            code = NARROW + block + NARROW * place + other + NARROW * 6
            with UnicornMachine.from_code(code, arch="arm", base=BASE, symbols={"f": (BASE | 1, len(code))}) as m, Kprobes(m) as k:
                probe = Kprobe(addr=BASE + 4 + 2 * place | 1)
                if place < length:
                    with pytest.raises(Unprobeable, match="IT block"):
                        k.register(probe)
                else:
                    k.register(probe)


#: b.w .+8; bl .+8; bx lr; pop {pc}; mov pc, lr; ldr pc, [r0]
LAST = ("00f004b8", "00f002f8", "7047", "00bd", "f746", "d0f800f0")


@pytest.mark.parametrize("branch", LAST)
def test_other_branches_must_be_the_last_of_a_block(branch: str) -> None:
    for length, block in enumerate(BLOCKS, 1):
        for place in range(5):
            code = NARROW + block + NARROW * place + bytes.fromhex(branch) + NARROW * 6
            with UnicornMachine.from_code(code, arch="arm", base=BASE, symbols={"f": (BASE | 1, len(code))}) as m, Kprobes(m) as k:
                probe = Kprobe(addr=BASE + 4 + 2 * place | 1)
                if place < length - 1:
                    with pytest.raises(Unprobeable, match="not its last"):
                        k.register(probe)
                else:
                    k.register(probe)


def test_behind_an_instruction_whose_second_half_looks_like_a_first_one() -> None:
    """add.w r2, r1, r2, of which the second half could be the first of a wide instruction; itet hi; blx lr; ble."""
    code = bytes.fromhex("43e8c0f0 01f30200 01fa02f0 8abf f047 1ed8 c1e8af0f")
    with (UnicornMachine.from_code(code, arch="cortexm", base=BASE, symbols={"f": (BASE | 1, len(code))}) as m,
          Kprobes(m) as k, pytest.raises(Unprobeable, match="IT block")):
        k.register(Kprobe(addr=BASE + 16 | 1))
