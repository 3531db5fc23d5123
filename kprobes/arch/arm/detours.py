"""Detours in A32 code: the Architecture Reference Manual; AAPCS."""

from __future__ import annotations

from attrs import evolve

from .._base import Order
from .._detours import DetourCode, Saving, numbered, some, words


def _a32_constant(register: int, value: int) -> list[int]:
    """Return MOVW and MOVT, which put a value of 32 bits into a register by its number."""
    return [opcode | (half >> 12) << 16 | register << 12 | half & 0xFFF
            for opcode, half in ((0xE3000000, value & 0xFFFF), (0xE3400000, value >> 16))]


def _a32_lock(at: int) -> tuple[bytes, bytes]:
    """Return (code that takes the lock in the word at `at`, code that gives it back).

    MOV r0, at; MOV r1, #1; LDREX r2, [r0]; CMP r2, #0; BNE -8; STREX r3, r1, [r0]; CMP r3, #0; BNE
    -20; DMB ISH, and MOV r0, at; MOV r1, #0; DMB ISH; STR r1, [r0]
    """
    word = _a32_constant(0, at)
    return (
        words(
            "little",
            *word,
            0xE3A01001,
            0xE1902F9F,
            0xE3520000,
            0x1AFFFFFC,
            0xE1803F91,
            0xE3530000,
            0x1AFFFFF9,
            0xF57FF05B,
        ),
        words("little", *word, 0xE3A01000, 0xF57FF05B, 0xE5801000),
    )


#: BX pc; NOP of Thumb: what follows is ARM code
TO_ARM = bytes.fromhex("7847c046")
#: LDR pc, [pc, #-4], which takes mode bits
LOAD = bytes.fromhex("04f01fe5")
_ARM = Saving(
    numbers=numbered("r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 - lr"),
    volatile=some("r0 r1 r2 r3 r12 lr"), word=4,
    special=(("", words("little", 0xE10F0000), words("little", 0xE12CF000)),),  # MRS r0, CPSR; MSR CPSR_fs, r0
    move=lambda n: words("little", (0xE24DD000 if n < 0 else 0xE28DD000) | abs(n)),  # SUB, ADD sp, sp, #n: n <= 255
    store=lambda r, at: words("little", 0xE58D0000 | r << 12 | at),
    load=lambda r, at: words("little", 0xE59D0000 | r << 12 | at),
    call=lambda environment, entry: words("little", *_a32_constant(0, environment), 0xE1A0100D,  # MOV r1, sp
                                          *_a32_constant(12, entry), 0xE12FFF3C),  # BLX r12
    lock=_a32_lock, ahead={1: TO_ARM})


def _row(order: Order) -> DetourCode:
    """Make the row of one architecture: how detours save registers; `order` is that of data."""
    return DetourCode(
        process=evolve(_ARM, far=lambda target: LOAD + target.to_bytes(4, order.value))
    )


ROWS = {"arm": _row(Order.LITTLE), "armeb": _row(Order.BIG)}
