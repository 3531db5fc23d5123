"""Code of this process's own machine, which the engine calls at call sites where nothing need be asked of Python.

A hook is called as hook(uc, address, size, data) by the C ABI. `serve` is the hook of a whole area; it finds the call site's
words by the address and calls the function there: a Python callback, or one of those below. They use the ABI's scratch
registers only. Where the host is another machine, or forbids it, there are none, and Python does it all.

Words of a call site (SITE) and of the calls being followed (CALLS) are of 64 bits; see machine._callsites.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from functools import cache

from attrs import frozen

from ..assembler import assemble

SITE = {name: 8 * n for n, name in enumerate(("function", "hits", "python", "spare", "calls", "entered", "returned"))}
CALLS = {name: 8 * n for n, name in enumerate(("gate", "top", "base", "limit", "sp", "link", "trampoline", "pushed", "stack", "room", "host",
                                               "frame", "target", "inside"))}
#: Bytes of the gate, each a reason why Python is to be asked: a displaced instruction runs; the run was stopped, or another one was
#: nested in it; this one is nested; there are guest tasks, which only matters where calls are followed.
HIT, DISTURBED, NESTED, TASKS = 0, 1, 2, 4
CALL = 24  # bytes of a followed call: frame, return address, call site

#: An area's words: its guest address and size, then the address of a site's words for every eight bytes of it. `inside` counts hooks
#: that have not returned: see machine._processor.
_SERVE = {
    "x86_64": """
        mov rax, rsi; sub rax, [rcx]; test al, 7; jne none
        cmp rax, [rcx + 8]; jae none
        mov rax, [rcx + rax + 16]; test rax, rax; je none
        mov r8, [rax + {calls}]; inc qword ptr [r8 + {inside}]
        push r8; call qword ptr [rax]; pop r8
        dec qword ptr [r8 + {inside}]
        none: ret""",
    "aarch64": """
        ldr x4, [x3]; sub x5, x1, x4; tst x5, #7; b.ne none
        ldr x4, [x3, #8]; cmp x5, x4; b.hs none
        add x4, x3, x5; ldr x4, [x4, #16]; cbz x4, none
        ldr x5, [x4, #{calls}]; ldr x6, [x5, #{inside}]; add x6, x6, #1; str x6, [x5, #{inside}]
        stp x30, x5, [sp, #-16]!; ldr x6, [x4]; blr x6; ldp x30, x5, [sp], #16
        ldr x6, [x5, #{inside}]; sub x6, x6, #1; str x6, [x5, #{inside}]
        none: ret""",
}
#: From here on the site's words are at rax, x4.
_COUNT = {
    "x86_64": """
        mov r8, [rax + {calls}]; cmp dword ptr [r8 + {gate}], 0; jne python
        inc qword ptr [rax + {hits}]
        ret
        python: jmp qword ptr [rax + {python}]""",
    "aarch64": """
        ldr x5, [x4, #{calls}]; ldr w5, [x5, #{gate}]; cbnz w5, python
        ldr x5, [x4, #{hits}]; add x5, x5, #1; str x5, [x4, #{hits}]
        ret
        python: ldr x5, [x4, #{python}]; br x5""",
}
#: {rcx}, {x10} and the like are a guest word's part of rcx, x10. Where the guest has windows, registers are behind a pointer.
_FRAME = {
    "x86_64": "mov r10, [r8 + {sp}]; mov {r10}, [r10]",
    "aarch64": "ldr x8, [x5, #{sp}]; ldr {x8}, [x8]",
}
_FRAME_IN_WINDOW = {
    "x86_64": "mov r10, [r8 + {sp}]; mov r10, [r10]; mov {r10}, [r10 + {sp_at}]; add {r10}, {sp_bias}",
    "aarch64": "ldr x8, [x5, #{sp}]; ldr x8, [x8]; ldr {x8}, [x8, #{sp_at}]; add {x8}, {x8}, #{sp_bias}",
}
#: The return address is a register's cell or a word of the stack.
_WHERE_LINK = {
    "x86_64": "mov r11, [r8 + {link}]",
    "aarch64": "ldr x9, [x5, #{link}]",
}
_WHERE_IN_WINDOW = {
    "x86_64": "mov r11, [r8 + {link}]; mov r11, [r11]; add r11, {link_at}",
    "aarch64": "ldr x9, [x5, #{link}]; ldr x9, [x9]; add x9, x9, #{link_at}",
}
_WHERE_STACK = {
    "x86_64": "mov r11, r10; sub r11, [r8 + {stack}]; cmp r11, [r8 + {room}]; jae python; add r11, [r8 + {host}]",
    "aarch64": "ldr x9, [x5, #{stack}]; sub x9, x8, x9; ldr x10, [x5, #{room}]; cmp x9, x10; b.hs python; ldr x10, [x5, #{host}]; add x9, x9, x10",
}
#: A function entry: the frame is in r10, x8, the return address in rcx, x10 and at r11, x9, the trampoline in rdx, x11.
_ENTRY = {
    "x86_64": """
        mov r8, [rax + {calls}]; cmp qword ptr [r8 + {gate}], 0; jne python
        mov r9, [r8 + {top}]; cmp r9, [r8 + {limit}]; je python
        cmp qword ptr [rax + {spare}], 0; je python
        {load_frame}
        {where}
        mov {rcx}, [r11]; {read_rcx}
        mov rdx, [r8 + {trampoline}]; cmp rcx, rdx; je python""",
    "aarch64": """
        ldr x5, [x4, #{calls}]; ldr x6, [x5, #{gate}]; cbnz x6, python
        ldr x6, [x5, #{top}]; ldr x7, [x5, #{limit}]; cmp x6, x7; b.eq python
        ldr x7, [x4, #{spare}]; cbz x7, python
        {load_frame}
        {where}
        ldr {x10}, [x9]; {read_x10}
        ldr x11, [x5, #{trampoline}]; cmp x10, x11; b.eq python""",
}
_ENTER = {
    "x86_64": """
        {entry}
        mov [r9], r10; mov [r9 + 8], rcx; mov [r9 + 16], rax
        {write_rdx}; mov [r11], {rdx}
        add r9, 24; mov [r8 + {top}], r9
        dec qword ptr [rax + {spare}]; inc qword ptr [rax + {hits}]
        ret
        python: jmp qword ptr [rax + {python}]""",
    "aarch64": """
        {entry}
        str x8, [x6]; str x10, [x6, #8]; str x4, [x6, #16]
        {write_x11}; str {x11}, [x9]
        add x6, x6, #24; str x6, [x5, #{top}]
        sub x7, x7, #1; str x7, [x4, #{spare}]
        ldr x7, [x4, #{hits}]; add x7, x7, #1; str x7, [x4, #{hits}]
        ret
        python: ldr x5, [x4, #{python}]; br x5""",
}
#: The same where Python has the say: its callback, which sees the return address as it was, answers whether the call is followed.
_ASK = {
    "x86_64": """
        {entry}
        mov [r8 + {frame}], r10; mov [r8 + {target}], rcx
        inc qword ptr [rax + {hits}]
        push rax; call qword ptr [rax + {entered}]; pop rcx
        test eax, eax; je declined
        mov r8, [rcx + {calls}]; mov r9, [r8 + {top}]
        mov rdx, [r8 + {frame}]; mov [r9], rdx; mov rdx, [r8 + {target}]; mov [r9 + 8], rdx; mov [r9 + 16], rcx
        add r9, 24; mov [r8 + {top}], r9
        dec qword ptr [rcx + {spare}]
        declined: ret
        python: jmp qword ptr [rax + {python}]""",
    "aarch64": """
        {entry}
        str x8, [x5, #{frame}]; str x10, [x5, #{target}]
        ldr x7, [x4, #{hits}]; add x7, x7, #1; str x7, [x4, #{hits}]
        stp x4, x30, [sp, #-16]!; ldr x5, [x4, #{entered}]; blr x5; ldp x4, x30, [sp], #16
        cbz w0, declined
        ldr x5, [x4, #{calls}]; ldr x6, [x5, #{top}]
        ldr x7, [x5, #{frame}]; str x7, [x6]; ldr x7, [x5, #{target}]; str x7, [x6, #8]; str x4, [x6, #16]
        add x6, x6, #24; str x6, [x5, #{top}]
        ldr x7, [x4, #{spare}]; sub x7, x7, #1; str x7, [x4, #{spare}]
        declined: ret
        python: ldr x5, [x4, #{python}]; br x5""",
}
#: The trampoline: the youngest followed call returns, if its frame is the one that does; then the Python callback of its site.
_LEAVE = {
    "x86_64": """
        mov r8, [rax + {calls}]; cmp qword ptr [r8 + {gate}], 0; jne python
        mov r9, [r8 + {top}]; cmp r9, [r8 + {base}]; je python
        {load_frame}; sub {r10}, [r8 + {pushed}]
        cmp r10, [r9 - 24]; jne python
        {where}
        mov {rcx}, [r11]; {read_rcx}
        cmp rcx, [r8 + {trampoline}]; {unless_shown} python
        mov rcx, [r9 - 16]
        mov [r8 + {frame}], r10; mov [r8 + {target}], rcx
        {put}
        mov rdx, [r9 - 8]
        sub r9, 24; mov [r8 + {top}], r9
        inc qword ptr [rdx + {spare}]
        jmp qword ptr [rdx + {returned}]
        python: jmp qword ptr [rax + {python}]""",
    "aarch64": """
        ldr x5, [x4, #{calls}]; ldr x6, [x5, #{gate}]; cbnz x6, python
        ldr x6, [x5, #{top}]; ldr x7, [x5, #{base}]; cmp x6, x7; b.eq python
        {load_frame}; ldr x7, [x5, #{pushed}]; sub {x8}, {x8}, {x7}
        sub x6, x6, #24
        ldr x7, [x6]; cmp x8, x7; b.ne python
        {where}
        ldr {x10}, [x9]; {read_x10}
        ldr x11, [x5, #{trampoline}]; cmp x10, x11; {unless_shown} python
        ldr x11, [x6, #8]
        str x8, [x5, #{frame}]; str x11, [x5, #{target}]
        {put}
        ldr x7, [x6, #16]
        str x6, [x5, #{top}]
        ldr x6, [x7, #{spare}]; add x6, x6, #1; str x6, [x7, #{spare}]
        ldr x5, [x7, #{returned}]; br x5
        python: ldr x5, [x4, #{python}]; br x5""",
}
_HALVES = {
    "x86_64": {"r10": "r10d", "rcx": "ecx", "rdx": "edx"},
    "aarch64": {"x7": "w7", "x8": "w8", "x10": "w10", "x11": "w11"},
}
_SWAP = {"x86_64": "bswap {0}", "aarch64": "rev {0}, {0}"}
_BIAS = {"x86_64": ("add {0}, {1}", "sub {0}, {1}"), "aarch64": ("add {0}, {0}, #{1}", "sub {0}, {0}, #{1}")}
#: Where the return address is put right: a return that reloads the link register has done it, and Python looks at what shows the trampoline.
_PUT = {
    "x86_64": {False: ("jne", "{write_rcx}; mov [r11], {rcx}"), True: ("je", "")},
    "aarch64": {False: ("b.ne", "{write_x11}; str {x11}, [x9]"), True: ("b.eq", "")},
}
_pages: list[mmap.mmap] = []  #: where the functions are
_KEYSTONE = {"x86_64": "x86_64", "aarch64": "arm64"}


@frozen
class Convention:
    """How a guest's calls leave the return address.

    Attributes:
        bits: of a word. pushed: on the stack. swapped: in the other byte order than the host's. bias: what is to be added to it.
        window: bytes from what the pointer points at to the stack pointer and to the return address, where registers are behind one.
        sp_bias: what is to be added to the stack pointer then. reloaded: returns put the register back to what it was before the call.
    """

    bits: int
    pushed: bool
    swapped: bool
    bias: int = 0
    window: tuple[int, int] | None = None
    sp_bias: int = 0
    reloaded: bool = False


def serve(host: str) -> str:
    """Assembly of an area's hook."""
    return _fill(host, _SERVE[host], Convention(64, False, False))


def count(host: str) -> str:
    """Assembly of a site that is only counted."""
    return _fill(host, _COUNT[host], Convention(64, False, False))


def enter(host: str, convention: Convention) -> str:
    """Assembly of a function entry whose call is to be followed."""
    return _fill(host, _ENTER[host], convention)


def ask(host: str, convention: Convention) -> str:
    """Assembly of a function entry where Python is asked whether the call is to be followed."""
    return _fill(host, _ASK[host], convention)


def leave(host: str, convention: Convention) -> str:
    """Assembly of the return trampoline."""
    return _fill(host, _LEAVE[host], convention)


def _fill(host: str, text: str, convention: Convention) -> str:
    halves = _HALVES[host]
    names = {name: half if convention.bits == 32 else name for name, half in halves.items()}
    read, write = (_SWAP[host],) * 2 if convention.swapped else _BIAS[host] if convention.bias else ("", "")
    sp_at, link_at = convention.window or (0, 0)
    values: dict[str, int | str] = {**names, **SITE, **CALLS, "sp_at": sp_at, "link_at": link_at, "sp_bias": convention.sp_bias}
    for name in halves:
        values[f"read_{name}"], values[f"write_{name}"] = read.format(names[name], convention.bias), write.format(names[name], convention.bias)
    frame = _FRAME_IN_WINDOW if convention.window else _FRAME
    where = _WHERE_STACK if convention.pushed else _WHERE_IN_WINDOW if convention.window else _WHERE_LINK
    unless_shown, put = _PUT[host][convention.reloaded]
    values |= {"load_frame": frame[host].format(**values), "where": where[host].format(**values), "put": put.format(**values)}
    return text.format(entry=_ENTRY[host].format(**values), unless_shown=unless_shown, **values)


@cache
def available() -> bool:
    """True where this process can have such functions."""
    return platform.system() == "Linux" and platform.machine() in _SERVE and address(count(platform.machine())) != 0


@cache
def address(text: str) -> int:
    """Where the function of this assembly is; 0 where memory cannot be made executable."""
    host = platform.machine()
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE)
        page.write(assemble(clean(text), _KEYSTONE[host], 0))
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        # Writable first, executable then: an ARM host's kernel makes the instruction cache coherent when it maps a page so.
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_EXEC):
            return 0
    except (OSError, ValueError):
        return 0
    _pages.append(page)
    return start


def clean(text: str) -> str:
    """One statement a line, none empty."""
    return "\n".join(statement.strip() for statement in text.replace("\n", ";").split(";") if statement.strip())
