"""Locks that x86 guests take: a word is 1 while somebody has it. Intel SDM volume 2; system calls are Linux's."""

from __future__ import annotations

from collections.abc import Callable


def x86_lock(head: bytes, size: int) -> Callable[[int], tuple[bytes, bytes]]:
    """MOV rAX, at; LOCK BTS DWORD [rAX], 0; JNC +4; PAUSE; JMP -11, and MOV rAX, at; MOV DWORD [rAX], 0"""
    def lock(at: int) -> tuple[bytes, bytes]:
        word = head + at.to_bytes(size, "little")
        return word + bytes.fromhex("f00fba2800 7304 f390 ebf5"), word + bytes.fromhex("c70000000000")
    return lock


def x64_patient(at: int) -> bytes:
    """MOV RAX, at; LOCK BTS DWORD [RAX], 0; JNC +19; MOV EAX, 24; SYSCALL; MOV RAX, at; JMP -26"""
    word = b"\x48\xb8" + at.to_bytes(8, "little")
    return word + bytes.fromhex("f00fba2800 7313 b818000000 0f05") + word + bytes.fromhex("ebe6")


def x86_patient(at: int) -> bytes:
    """MOV EAX, at; LOCK BTS DWORD [EAX], 0; JNC +14; MOV EAX, 158; INT 80H; MOV EAX, at; JMP -21"""
    word = b"\xb8" + at.to_bytes(4, "little")
    return word + bytes.fromhex("f00fba2800 730e b89e000000 cd80") + word + bytes.fromhex("ebeb")
