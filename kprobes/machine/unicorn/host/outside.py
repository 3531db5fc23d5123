"""Stops by another thread: a signal, a timeout, m.stop().

The engine looks whether its run is to stop where a block begins, behind each hook and behind each access to memory. At
the last of these an instruction is half done: its access is made, pc still stands in front of it, and it is made once
more when the run goes on. One that adds to memory adds twice; one that loads the register that it loads through goes
astray. And uc_emu_stop() has hooks left out, so that another thread must not call it either.

So another thread asks. Two functions of ours stand where the library looks for two of its own (library.py): that which
leaves a block, and that which executes blocks until there is something else to do. A look that finds nothing but that
somebody asked goes on; where the next block begins the engine comes out, and is stopped there by its own thread. A look
that finds more, a hook's stop or an access that failed, leaves the block as ever.

Words of an engine (ROW): its handle, or FREE; its CPU, from its first run on; whether somebody asks; whether it is deaf
to that, which waits. Rows are never freed, and used again. Behind the last of a piece there is 0, and the address of
the next piece.
"""

from __future__ import annotations

import ctypes
import platform
import re
import weakref
from functools import cache

from . import hostcode
from .library import GUESTS, WORD, address, called
from .ready import READY

ROW = {name: WORD * n for n, name in enumerate(("engine", "cpu", "asked", "deaf"))}
#: Words of the two functions: the library's own; where the look begins; the first row; two more of the library's.
ABOUT = {name: WORD * n for n, name in enumerate(("theirs", "look", "rows", "exit", "stop"))}
LOOK = 192  # bytes that a look is shorter than
#: Bytes of a look's frame; from the handle to what says that a hook has stopped the run, and to its error; no block has
#: as many.
NUMBERS = {"LOOK": LOOK, "FRAME": 0x20, "STOPPED": 0x56D, "FAILED": 0x590, "FAR": 0x8000}
AT_ONCE, FREE = 64, 1
_SIZE = len(ROW) * WORD
_ASKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
#: What the library's functions look like where NUMBERS are right: a look, uc_emu_stop, uc_emu_start. AArch64's have not
#: held on their own host yet: threads there stop the engine themselves.
_KNOWN = {
    "x86_64": (rb"\x4c\x8b\x87\xb8\x01\0\0\x41\x8b\x80....\x85\xc0\x79.\x85\xf6\x74.\xc3.{0,16}\x48\x83\xec\x18"
               rb"\x83\xbf.{4}\x01\x74.\x80\xbf.{4}\0\x41\xc7\x80.{4}\0\0\0\0\x74.\xc6\x87.{4}\0\x4c\x89\xc7\xe8.{4}"
               rb"\x48\x8b\x74\x24\x18\x4c\x89\xc7\xe8",
               rb".{0,64}\xc6[\x80-\x87]\x6d\x05\0\0\x01", rb".{0,512}\xc7[\x80-\x87]\x90\x05\0\0\0\0\0\0"),
}


#: In front of a function of ours that stands in for one with two arguments: it gets the address of its words as a
#: third. Both addresses stand behind it, from byte 16 on.
WITH_WORDS = {
    "x86_64": "mov rdx, qword ptr [rip + 9]; jmp qword ptr [rip + 11]; nop; nop; nop",
    "aarch64": "ldr x2, #16; ldr x16, #24; br x16; nop",
}
#: Leaving a block: (CPU, return address there). If it is a look that leaves, not the block's first, and only as
#: somebody asks, that look returns. Looks are told by how they are called: MOVABS RDI, engine; XOR ESI, ESI; CALL (5
#: bytes, or 6), and ... MOV W1, #0; ADRP, ADD, BLR X30. A block begins at a multiple of 16, and its address is
#: among the words in front.
LOOKING = {
    "x86_64": """
        mov rax, [rsp]; sub rax, [rdx + {look}]; cmp rax, {LOOK}; jae theirs
        mov rcx, [rdx + {rows}]
        next: cmp [rcx + {cpu}], rdi; je found
        mov rax, [rcx]; add rcx, 32; test rax, rax; jne next
        mov rcx, [rcx - 24]; test rcx, rcx; jne next
        theirs: jmp qword ptr [rdx]
        found: cmp qword ptr [rcx + {asked}], 0; je theirs
        mov rax, [rcx]; cmp dword ptr [rax + {FAILED}], 0; jne theirs
        cmp byte ptr [rax + {STOPPED}], 0; jne theirs
        cmp rsi, [rsp + {FRAME}]; jne theirs
        lea rcx, [rsi - 17]; cmp word ptr [rsi - 6], 0x15ff; jne near
        dec rcx
        near: cmp word ptr [rcx], 0xbf48; jne theirs
        cmp word ptr [rcx + 10], 0xf633; jne theirs
        mov rax, [rcx + 2]; lea r9, [rsi - {FAR}]
        back: test cl, 15; jne earlier
        mov r8, -32
        words: cmp [rcx + 8 * r8], rcx; je theirs
        inc r8; jnz words
        earlier: cmp rcx, r9; je theirs
        dec rcx; cmp [rcx + 2], rax; jne back
        cmp word ptr [rcx], 0xbf48; jne back
        cmp word ptr [rcx + 10], 0xf633; jne back
        add rsp, {FRAME}; ret""",
    "aarch64": """
        ldr x3, [x2, #{look}]; sub x3, x30, x3; cmp x3, #{LOOK}; b.hs theirs
        ldr x4, [x2, #{rows}]
        next: ldr x3, [x4, #{cpu}]; cmp x3, x0; b.eq found
        ldr x3, [x4]; add x4, x4, #32; cbnz x3, next
        ldur x4, [x4, #-24]; cbnz x4, next
        theirs: ldr x16, [x2]; br x16
        found: ldr x3, [x4, #{asked}]; cbz x3, theirs
        ldr x3, [x4]; ldr w5, [x3, #{FAILED}]; cbnz w5, theirs
        ldrb w5, [x3, #{STOPPED}]; cbnz w5, theirs
        ldr x5, [sp, #8]; cmp x5, x1; b.ne theirs
        ldur w3, [x1, #-4]; movz w4, #0x03c0; movk w4, #0xd63f, lsl #16; cmp w3, w4; b.ne theirs
        ldur w5, [x1, #-16]; movz w4, #1; movk w4, #0x5280, lsl #16; cmp w5, w4; b.ne theirs
        ldur w6, [x1, #-8]; mov x8, x1; sub x9, x1, #{FAR}
        back: sub x8, x8, #4; cmp x8, x9; b.eq theirs
        tst x8, #15; b.ne earlier
        sub x10, x8, #256
        words: ldr x11, [x10], #8; cmp x11, x8; b.eq theirs
        cmp x10, x8; b.ne words
        earlier: ldur w10, [x8, #-4]; cmp w10, w3; b.ne back
        ldur w10, [x8, #-8]; cmp w10, w6; b.ne back
        ldur w10, [x8, #-16]; cmp w10, w5; b.ne back
        ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #{FRAME}; ret""",
}
#: Executing blocks: (engine, CPU). Who asks before it begins is heard at its first block; when it has come out, the run
#: is stopped.
EXECUTE = {
    "x86_64": """
        mov rcx, [rdx + {rows}]
        next: mov rax, [rcx]; cmp rax, rdi; je found
        add rcx, 32; test rax, rax; jne next
        mov rcx, [rcx - 24]; test rcx, rcx; jne next
        jmp qword ptr [rdx]
        found: push rbx; push r12; sub rsp, 8; mov rbx, rcx; mov r12, rdx
        cmp [rbx + {cpu}], rsi; je same
        mov rax, rsi; xchg [rbx + {cpu}], rax
        same: cmp qword ptr [rbx + {asked}], 0; je go
        cmp qword ptr [rbx + {deaf}], 0; jne go
        mov rdi, rsi; call qword ptr [r12 + {exit}]
        go: mov rdi, [rbx]; mov rsi, [rbx + {cpu}]; call qword ptr [r12]
        cmp qword ptr [rbx + {asked}], 0; je done
        cmp qword ptr [rbx + {deaf}], 0; jne done
        mov qword ptr [rbx + {asked}], 0
        mov [rsp], rax; mov rdi, [rbx]; call qword ptr [r12 + {stop}]; mov rax, [rsp]
        done: add rsp, 8; pop r12; pop rbx; ret""",
    "aarch64": """
        ldr x4, [x2, #{rows}]
        next: ldr x3, [x4]; cmp x3, x0; b.eq found
        add x4, x4, #32; cbnz x3, next
        ldur x4, [x4, #-24]; cbnz x4, next
        ldr x16, [x2]; br x16
        found: stp x29, x30, [sp, #-48]!; stp x19, x20, [sp, #16]; mov x29, sp; mov x19, x4; mov x20, x2
        str x1, [x19, #{cpu}]; dmb ish
        ldr x3, [x19, #{asked}]; cbz x3, go
        ldr x3, [x19, #{deaf}]; cbnz x3, go
        mov x0, x1; ldr x16, [x20, #{exit}]; blr x16
        go: ldr x0, [x19]; ldr x1, [x19, #{cpu}]; ldr x16, [x20]; blr x16
        dmb ish
        ldr x3, [x19, #{asked}]; cbz x3, done
        ldr x3, [x19, #{deaf}]; cbnz x3, done
        str xzr, [x19, #{asked}]
        str x0, [sp, #32]; ldr x0, [x19]; ldr x16, [x20, #{stop}]; blr x16; ldr x0, [sp, #32]
        done: ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #48; ret""",
}
#: What another thread calls: (row, the engine's function that has it look). All threads see the one before the other.
ASK = {
    "x86_64": """
        mov eax, 1; xchg [rdi + {asked}], rax
        mov rdi, [rdi + {cpu}]; test rdi, rdi; je none; jmp rsi
        none: ret""",
    "aarch64": """
        mov x3, #1; str x3, [x0, #{asked}]; dmb ish
        ldr x0, [x0, #{cpu}]; cbz x0, none; br x1
        none: ret""",
}


class Outside:
    """How other threads stop an engine that nobody else runs. Where the library is made otherwise, or without host
    code, they cannot so (`known`)."""

    def __init__(self, handle: int, owner: object) -> None:
        """owner: what lives as long as the engine."""
        self._row = _take(handle) if _standing() else None
        self._end = None if self._row is None else weakref.finalize(owner, _give_back, self._row)

    @property
    def known(self) -> bool:
        """True where another thread may ask()."""
        return self._end is not None and self._end.alive

    def ask(self) -> None:
        """Have the engine come out where the next block begins, or its next run does, and be stopped."""
        assert self._row is not None
        _asking()(ctypes.addressof(self._row), address("cpu_exit"))

    def forget(self) -> None:
        """Nobody asks any more."""
        if self._row is not None:
            self._row[2] = 0

    def turn(self, deaf: int) -> int:
        """Whether runs are not to be stopped from now on (1): who asks waits until they are (0). Returns what was."""
        assert self._row is not None
        before, self._row[3] = self._row[3], deaf
        if self._row[2] and not deaf:
            self.ask()
        return int(before)

    def end(self) -> None:
        """Somebody else may run the engine."""
        if self._end is not None:
            self._end()


_Row = ctypes.Array[ctypes.c_uint64]
_free: list[_Row] = []
_pieces: list[_Row] = []
_words: list[_Row] = []  # of functions, for as long as the process lives


def _take(handle: int) -> _Row:
    if not _free:
        _free.extend(_piece())
    row = _free.pop()
    row[1], row[2], row[3] = 0, 0, 0
    row[0] = handle  # last: it is found from here on
    return row


def _give_back(row: _Row) -> None:
    row[0], row[1] = FREE, 0
    _free.append(row)


def _piece() -> list[_Row]:
    """More rows, and the first ones."""
    words = (ctypes.c_uint64 * (len(ROW) * AT_ONCE + 2))()
    rows = [(ctypes.c_uint64 * len(ROW)).from_buffer(words, n * _SIZE) for n in range(AT_ONCE)]
    for row in rows:
        row[0] = FREE
    if _pieces:
        _pieces[-1][len(ROW) * AT_ONCE + 1] = ctypes.addressof(words)
    _pieces.append(words)
    return rows


@cache
def _asking() -> ctypes._CFunctionType:
    return _ASKED(hostcode.address("stop-soon"))


@cache
def _standing() -> bool:
    """Put the functions of ours where they belong, if that has not been done. False where they cannot be."""
    if not hostcode.available() or platform.machine() not in _KNOWN:
        return False
    try:
        functions = called()
        looks = [address(f"helper_check_exit_request_{guest}") for guest in GUESTS]
        if not all(map(_is_known, looks, [0] * len(looks))) or not _is_known(address("uc_emu_stop"), 1) or (
                not _is_known(address("uc_emu_start"), 2)):
            return False
        leaving, running = (functions.places([f"{name}_{guest}" for guest in GUESTS])
                            for name in ("cpu_loop_exit_restore", "cpu_exec"))
    except (AttributeError, ValueError, OSError):
        return False
    _free.extend(_piece())
    about = [(functions.there[place], look) for place, look in zip([*leaving, *running], looks * 2, strict=True)]
    entries = _entries(about, [hostcode.address("look")] * len(looks) + [hostcode.address("execute")] * len(looks))
    for place, entry in zip([*leaving, *running], entries, strict=False):
        functions.put(place, entry)
    return bool(entries)


def _entries(about: list[tuple[int, int]], functions: list[int]) -> list[int]:
    """Where functions begin that are to find these words: (the library's own, the look)."""
    words = (ctypes.c_uint64 * (len(ABOUT) * len(about)))()
    shared = ctypes.addressof(_pieces[0]), address("cpu_exit"), address("uc_emu_stop")
    for n, pair in enumerate(about):
        words[len(ABOUT) * n:len(ABOUT) * (n + 1)] = [*pair, *shared]
    _words.append(words)
    code = bytes.fromhex(READY[platform.machine()]["with-words"])
    places = [ctypes.addressof(words) + len(ABOUT) * WORD * n for n in range(len(about))]
    start = hostcode.executable(b"".join(code + place.to_bytes(WORD, "little") + function.to_bytes(WORD, "little")
                                         for place, function in zip(places, functions, strict=True)))
    return [start + n * (len(code) + 2 * WORD) for n in range(len(about))] if start else []


def _is_known(function: int, which: int) -> bool:
    """True if a function of the library's is as its kind is known to be."""
    text = ctypes.string_at(function, 1200 if which else LOOK)
    return re.match(_KNOWN[platform.machine()][which], text, re.DOTALL) is not None
