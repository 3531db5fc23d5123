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
import weakref
from functools import cache

from . import hostcode
from .known import Known, known
from .library import GUESTS, WORD, address, called
from .ready import READY

ROW = {name: WORD * n for n, name in enumerate(("engine", "cpu", "asked", "deaf"))}
#: Words of the two functions: the library's own; where the look begins; the first row; two more of the library's; that
#: which finds the translation of a return address, and in there where its code is.
ABOUT = {name: WORD * n for n, name in enumerate(("theirs", "look", "rows", "exit", "stop", "block", "code"))}
AT_ONCE, FREE = 64, 1
_SIZE = len(ROW) * WORD
_ASKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
#: In front of a function of ours that stands in for one with two arguments: it gets the address of its words as a
#: third. Both addresses stand behind it, from byte 16 on.
WITH_WORDS = {
    "x86_64": "mov rdx, qword ptr [rip + 9]; jmp qword ptr [rip + 11]; nop; nop; nop",
    "aarch64": "ldr x2, #16; ldr x16, #24; br x16; nop",
}
#: Leaving a block: (CPU, return address there). If it is a look that leaves, not the block's first, and only as
#: somebody asks, that look returns. It is the first if nothing in front of it in the block's code calls the same: a
#: relative call (E8), or one through a word (FF 15) that the block's calls of one function share; BL, or BLR X30 behind
#: ADRP and ADD, or behind LDR of a word. The arguments say nothing: how the engine is named depends on where it is, and
#: in delay slots the other is not constant. Where the block's translation has gone its end is near.
#: An AArch64 host's threads may see the engine made to look (cpu_exit) before who asks, and before what ends the run:
#: so there is a barrier, and the engine's own thread has it look once more.
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
        push rdi; push rsi; push rdx
        mov rdi, [rax + {TRANSLATOR}]; call qword ptr [rdx + {block}]
        pop rdx; pop rsi; pop rdi
        test rax, rax; je on
        mov rcx, [rdx + {code}]; mov rcx, [rax + rcx]; add rcx, 5
        movsxd r8, dword ptr [rsi - 4]; add r8, rsi; mov r9b, [rsi - 5]
        earlier: cmp rcx, rsi; jae theirs
        movsxd rax, dword ptr [rcx - 4]; add rax, rcx; inc rcx; cmp rax, r8; jne earlier
        cmp [rcx - 6], r9b; jne earlier
        on: add rsp, {FRAME}; ret""",
    "aarch64": """
        ldr x3, [x2, #{look}]; sub x3, x30, x3; cmp x3, #{LOOK}; b.hs theirs
        ldr x4, [x2, #{rows}]
        next: ldr x3, [x4, #{cpu}]; cmp x3, x0; b.eq found
        ldr x3, [x4]; add x4, x4, #32; cbnz x3, next
        ldur x4, [x4, #-24]; cbnz x4, next
        theirs: ldr x16, [x2]; br x16
        found: dmb ishld; ldr x3, [x4, #{asked}]; cbz x3, theirs
        ldr x3, [x4]; ldr w5, [x3, #{FAILED}]; cbnz w5, theirs
        ldrb w5, [x3, #{STOPPED}]; cbnz w5, theirs
        ldr x5, [sp, #8]; cmp x5, x1; b.ne theirs
        stp x0, x1, [sp, #-32]!; stp x2, x30, [sp, #16]
        ldr x0, [x3, #{TRANSLATOR}]; ldr x16, [x2, #{block}]; blr x16
        mov x3, x0; ldp x2, x30, [sp, #16]; ldp x0, x1, [sp], #32
        cbz x3, on
        ldr x4, [x2, #{code}]; ldr x3, [x3, x4]
        ldr x4, [x2, #{look}]; sub x6, x1, #4
        movz w9, #0x03c0; movk w9, #0xd63f, lsl #16
        movz w10, #0x03de; movk w10, #0x9100, lsl #16; bfi w10, w4, #10, #12
        movz w11, #0x001e; movk w11, #0x5800, lsl #16; movz w12, #0x001f; movk w12, #0xff00, lsl #16
        earlier: cmp x3, x6; b.hs first
        sub x7, x4, x3; lsr x7, x7, #2; movz w8, #0x9400, lsl #16; bfi w8, w7, #0, #26
        ldr w7, [x3], #4; cmp w7, w8; b.eq on
        cmp w7, w9; b.ne earlier
        ldur w7, [x3, #-8]; and w8, w7, w12; cmp w8, w11; b.ne pair
        sbfx x8, x7, #5, #19; add x8, x3, x8, lsl #2; ldur x8, [x8, #-8]; cmp x8, x4; b.ne earlier; b on
        pair: cmp w7, w10; b.ne earlier
        sub x8, x3, #12; lsr x8, x8, #12; lsr x7, x4, #12; sub x8, x7, x8
        movz w7, #0x001e; movk w7, #0x9000, lsl #16; bfi w7, w8, #29, #2; lsr x8, x8, #2; bfi w7, w8, #5, #19
        ldur w8, [x3, #-12]; cmp w7, w8; b.ne earlier
        on: ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #{FRAME}; ret
        first: stp x0, x1, [sp, #-32]!; stp x2, x30, [sp, #16]; ldr x16, [x2, #{exit}]; blr x16
        ldp x2, x30, [sp, #16]; ldp x0, x1, [sp], #32; b theirs""",
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
    if not hostcode.available():
        return False
    try:
        functions, guests = called(), [known(guest) for guest in GUESTS]
        leaving, running = (functions.places([f"{name}_{guest}" for guest in GUESTS])
                            for name in ("cpu_loop_exit_restore", "cpu_exec"))
    except (AttributeError, ValueError, OSError):
        return False
    _free.extend(_piece())
    places = [*leaving, *running]
    entries = _entries([functions.there[place] for place in places], guests * 2,
                       [hostcode.address(name) for name in ("look", "execute") for _ in guests])
    for place, entry in zip(places, entries, strict=False):
        functions.put(place, entry)
    return bool(entries)


def _entries(theirs: list[int], guests: list[Known], functions: list[int]) -> list[int]:
    """Where functions begin that are to find words: of the library's own, of its guests."""
    words = (ctypes.c_uint64 * (len(ABOUT) * len(theirs)))()
    shared = ctypes.addressof(_pieces[0]), address("cpu_exit"), address("uc_emu_stop")
    for n, (own, guest) in enumerate(zip(theirs, guests, strict=True)):
        words[len(ABOUT) * n:len(ABOUT) * (n + 1)] = [own, guest.look, *shared, guest.block, guest.code]
    _words.append(words)
    code = bytes.fromhex(READY[platform.machine()]["with-words"])
    places = [ctypes.addressof(words) + len(ABOUT) * WORD * n for n in range(len(theirs))]
    start = hostcode.executable(b"".join(code + place.to_bytes(WORD, "little") + function.to_bytes(WORD, "little")
                                         for place, function in zip(places, functions, strict=True)))
    return [start + n * (len(code) + 2 * WORD) for n in range(len(theirs))] if start else []
