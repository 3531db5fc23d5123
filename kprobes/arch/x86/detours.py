"""Detours on i386 and x86-64: Intel SDM volume 2; System V ABIs; system calls are Linux's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from .._detours import DetourCode, Saving, numbered, some

_X64 = numbered("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")
_X86 = numbered("eax ecx edx ebx esp ebp esi edi")


def _lock(head: bytes, size: int) -> Callable[[int], tuple[bytes, bytes]]:
    """Make `Saving.lock`: (address of a word) -> (code that takes the lock, code that gives it
    back).

    MOV rAX, at; LOCK BTS DWORD [rAX], 0; JNC +4; PAUSE; JMP -11, and MOV rAX, at; MOV DWORD [rAX],
    0

    Args:
        head: opcode of the MOV.
        size: bytes of an address.
    """
    def lock(at: int) -> tuple[bytes, bytes]:
        """Return (code that takes the lock in the word at `at`, code that gives it back)."""
        word = head + at.to_bytes(size, "little")
        return word + bytes.fromhex("f00fba2800 7304 f390 ebf5"), word + bytes.fromhex(
            "c70000000000"
        )
    return lock


def _x64_patient(at: int) -> bytes:
    """Return code that takes the lock in the word at `at`, and calls sched_yield() while it waits.

    MOV RAX, at; LOCK BTS DWORD [RAX], 0; JNC +19; MOV EAX, 24; SYSCALL; MOV RAX, at; JMP -26
    """
    word = b"\x48\xb8" + at.to_bytes(8, "little")
    return word + bytes.fromhex("f00fba2800 7313 b818000000 0f05") + word + bytes.fromhex("ebe6")


def _x86_patient(at: int) -> bytes:
    """Return code that takes the lock in the word at `at`, and calls sched_yield() while it waits.

    MOV EAX, at; LOCK BTS DWORD [EAX], 0; JNC +14; MOV EAX, 158; INT 80H; MOV EAX, at; JMP -21
    """
    word = b"\xb8" + at.to_bytes(4, "little")
    return word + bytes.fromhex("f00fba2800 730e b89e000000 cd80") + word + bytes.fromhex("ebeb")


def _x64_access(opcode: int, register: int, offset: int) -> bytes:
    """Return MOV of a register to or from [RSP+offset]; `opcode` tells which direction."""
    head = bytes([0x48 | (register >> 3) << 2, opcode, 0x84 | (register & 7) << 3, 0x24])
    return head + offset.to_bytes(4, "little")


def _x86_access(opcode: int, register: int, offset: int) -> bytes:
    """Return MOV of a register to or from [ESP+offset]; `opcode` tells which direction."""
    return bytes([opcode, 0x84 | register << 3, 0x24]) + offset.to_bytes(4, "little")


def _x64_begin(environment: int) -> bytes:
    """Return code that sets a program's arguments: MOV RDI, environment; MOV RSI, RSP."""
    return b"\x48\xbf" + environment.to_bytes(8, "little") + bytes.fromhex("4889e6")


def _x64_call(environment: int, entry: int) -> bytes:
    """Return code that calls a program at `entry`: its arguments, MOV RAX, entry; CALL RAX."""
    return _x64_begin(environment) + b"\x48\xb8" + entry.to_bytes(8, "little") + b"\xff\xd0"


def _x86_call(environment: int, entry: int) -> bytes:
    """Return code that calls a program, with the environment and the stack pointer as arguments.

    MOV EAX, ESP; PUSH EAX; PUSH environment; MOV EAX, entry; CALL EAX; LEA ESP, [ESP+8].

    Args:
        environment: the first argument, an address.
        entry: address of the function.
    """
    return (
        bytes.fromhex("89e0 50 68")
        + environment.to_bytes(4, "little")
        + b"\xb8"
        + entry.to_bytes(4, "little")
        + bytes.fromhex("ffd0 8d642408")
    )


# PUSHF; POP rAX; CLD, and PUSH rAX; POPF
_FLAGS = "", bytes.fromhex("9c 58 fc"), bytes.fromhex("50 9d")
# emulators leave their fast path at POPF: TEST AH, 4 (DF); JNZ; MOV ECX, EAX; SHR ECX, 11; AND CL,
# 1; MOV AH, AL; ADD CL, 0x7F (sets OF); SAHF (the others of programs); JMP; PUSH rAX; POPF
_FAST_FLAGS = "", _FLAGS[1], bytes.fromhex("f6c404 7510 89c1 c1e90b 80e101 88c4 80c17f 9e eb02") + _FLAGS[2]
_X86_64 = Saving(
    numbers=_X64, volatile=some("rax rcx rdx rsi rdi r8 r9 r10 r11"), word=8, below=128,
    special=(_FAST_FLAGS,),
    move=lambda n: bytes.fromhex("488da424") + n.to_bytes(4, "little", signed=True),  # LEA RSP, [RSP+n]
    store=partial(_x64_access, 0x89), load=partial(_x64_access, 0x8B), call=_x64_call,
    begin=_x64_begin, returns=b"\xc3", lock=_lock(b"\x48\xb8", 8), patient=_x64_patient)
_I386 = Saving(
    numbers=_X86, volatile=some("eax ecx edx"), word=4, special=(_FAST_FLAGS,),
    move=lambda n: bytes.fromhex("8da424") + n.to_bytes(4, "little", signed=True),
    store=partial(_x86_access, 0x89), load=partial(_x86_access, 0x8B), call=_x86_call,
    lock=_lock(b"\xb8", 4),
    patient=_x86_patient)

ROWS = {
    # in kernels, CLI after PUSHF; POPF puts the flag back
    "x86_64": DetourCode(process=_X86_64, kernel=evolve(_X86_64, patient=None,
                                                        special=(("", _FLAGS[1] + b"\xfa", _FLAGS[2]),))),
    "i386": DetourCode(process=_I386),
}
