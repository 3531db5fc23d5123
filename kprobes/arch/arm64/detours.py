"""Detours on AArch64: the Architecture Reference Manual; AAPCS64."""

from __future__ import annotations

from attrs import evolve

from .._detours import DetourCode, Saving, numbered, some, words


def _a64_constant(register: int, value: int) -> list[int]:
    """Return MOVZ and three MOVKs, which put a value of 64 bits into a register by its number."""
    return [
        (0xF2800000 if n else 0xD2800000) | n << 21 | (value >> 16 * n & 0xFFFF) << 5 | register
        for n in range(4)
    ]


def _a64_begin(environment: int) -> bytes:
    """Return code that sets a program's arguments: x0 to the environment, x1 to the stack
    pointer.
    """
    return words("little", *_a64_constant(0, environment), 0x910003E1)  # MOV x1, SP


def _a64_lock(at: int) -> tuple[bytes, bytes]:
    """Return (code that takes the lock in the word at `at`, code that gives it back).

    MOV x0, at; MOV w1, #1; LDAXR w2, [x0]; CBNZ w2, -4; STXR w3, w1, [x0]; CBNZ w3, -12, and MOV
    x0, at; STLR wzr, [x0]
    """
    word = _a64_constant(0, at)
    return (words("little", *word, 0x52800021, 0x885FFC02, 0x35FFFFE2, 0x88037C01, 0x35FFFFA3),
            words("little", *word, 0x889FFC1F))


def _a64_patient(at: int) -> bytes:
    """Return code that takes the lock in the word at `at`, and calls sched_yield() while it waits.

    MOV x0, at; MOV w1, #1; LDAXR w2, [x0]; CBNZ w2, +12; STXR w3, w1, [x0]; CBZ w3, +16; MOV x8,
    #124; SVC #0; B to the start
    """
    word = _a64_constant(0, at)
    return words(
        "little",
        *word,
        0x52800021,
        0x885FFC02,
        0x35000062,
        0x88037C01,
        0x34000083,
        0xD2800F88,
        0xD4000001,
        0x17FFFFF5,
    )


_ARM64 = Saving(
    numbers=numbered(" ".join(f"x{n}" for n in range(31))),
    volatile=some(" ".join(f"x{n}" for n in (*range(19), 30))),
    word=8, special=(("nzcv", words("little", 0xD53B4200), words("little", 0xD51B4200)),),  # MRS, MSR x0, NZCV
    move=lambda n: words("little", (0xD10003FF if n < 0 else 0x910003FF) | abs(n) << 10),  # SUB, ADD SP, SP, #n
    store=lambda r, at: words("little", 0xF9000000 | at // 8 << 10 | 31 << 5 | r),
    load=lambda r, at: words("little", 0xF9400000 | at // 8 << 10 | 31 << 5 | r),
    begin=_a64_begin, returns=words("little", 0xD65F03C0), lock=_a64_lock, patient=_a64_patient,
    call=lambda environment, entry: _a64_begin(environment) + words("little", *_a64_constant(16, entry),
                                                                    0xD63F0200))  # BLR x16

# MRS x0, DAIF; MSR DAIFSet, #2 (I), and MSR DAIF, x0
_KERNEL = evolve(_ARM64, patient=None, special=(
    *_ARM64.special, ("", words("little", 0xD53B4220, 0xD50342DF), words("little", 0xD51B4220))))
ROWS = {"arm64": DetourCode(process=_ARM64, kernel=_KERNEL), "arm64be": DetourCode(process=_ARM64)}
