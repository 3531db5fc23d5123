"""The source of the host code: assembly of every host, and what the names in it stand for.

Nothing at run time reads this. `python -m kprobes.machine.unicorn.host.source` assembles it (it takes Keystone) and
writes ready.py, the bytes that the library comes with; a test compares them. See hostcode.py for what the functions do.

A function's registers are the C ABI's scratch registers only. Its site's words are at rax or x4, those of the followed
calls at r8 or x5.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from ..assembler import assemble
from .counting import BLOCK, TICK
from .hostcode import CALLS, SITE, WHERE
from .known import NUMBERS
from .outside import ABOUT, ASK, EXECUTE, LOOKING, ROW, WITH_WORDS
from .running import BACK, PROGRAM

_KEYSTONE = {"x86_64": "x86_64", "aarch64": "arm64"}

#: An area's words: its guest address and size, then the address of a site's words for every eight bytes of it. `inside`
#: counts hooks that have not returned: see machine._processor.
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
#: The same for one instruction: its data is the site's words.
_HERE = {
    "x86_64": """
        mov rax, rcx; mov r8, [rax + {calls}]; inc qword ptr [r8 + {inside}]
        push r8; call qword ptr [rax]; pop r8
        dec qword ptr [r8 + {inside}]; ret""",
    "aarch64": """
        mov x4, x3; ldr x5, [x4, #{calls}]; ldr x6, [x5, #{inside}]; add x6, x6, #1; str x6, [x5, #{inside}]
        stp x30, x5, [sp, #-16]!; ldr x6, [x4]; blr x6; ldp x30, x5, [sp], #16
        ldr x6, [x5, #{inside}]; sub x6, x6, #1; str x6, [x5, #{inside}]; ret""",
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
#: {rcx}, {x10} and the like are a guest word's part of rcx, x10. Where the guest has windows, registers are behind a
#: pointer.
_FRAME = {
    "x86_64": "mov r10, [r8 + {sp}]; mov {r10}, [r10]",
    "aarch64": "ldr x8, [x5, #{sp}]; ldr {x8}, [x8]",
}
_FRAME_IN_WINDOW = {
    "x86_64": """
        mov r10, [r8 + {sp}]; mov r10, [r10]; mov r11, [r8 + {sp_at}]
        mov {r10}, [r10 + r11]; add {r10}, [r8 + {sp_bias}]""",
    "aarch64": """
        ldr x8, [x5, #{sp}]; ldr x8, [x8]; ldr x12, [x5, #{sp_at}]
        ldr {x8}, [x8, x12]; ldr {x12}, [x5, #{sp_bias}]; add {x8}, {x8}, {x12}""",
}
#: The return address is a register's cell or a word of the stack.
_WHERE_CELL = {
    "x86_64": "mov r11, [r8 + {link}]",
    "aarch64": "ldr x9, [x5, #{link}]",
}
_WHERE_WINDOW = {
    "x86_64": "mov r11, [r8 + {link}]; mov r11, [r11]; add r11, [r8 + {link_at}]",
    "aarch64": "ldr x9, [x5, #{link}]; ldr x9, [x9]; ldr x12, [x5, #{link_at}]; add x9, x9, x12",
}
_WHERE_STACK = {
    "x86_64": """
        mov r11, r10; sub r11, [r8 + {stack}]; cmp r11, [r8 + {room}]; jae python
        add r11, [r8 + {host}]""",
    "aarch64": """
        ldr x9, [x5, #{stack}]; sub x9, x8, x9; ldr x10, [x5, #{room}]; cmp x9, x10; b.hs python
        ldr x10, [x5, #{host}]; add x9, x9, x10""",
}
_PLACES = {"cell": _WHERE_CELL, "window": _WHERE_WINDOW, "stack": _WHERE_STACK, "swapped": _WHERE_STACK}
_BIAS = {
    "x86_64": ("add {0}, [r8 + {bias}]", "sub {0}, [r8 + {bias}]"),
    "aarch64": ("ldr {x12}, [x5, #{bias}]; add {0}, {0}, {x12}", "ldr {x12}, [x5, #{bias}]; sub {0}, {0}, {x12}"),
}
_SWAP = {"x86_64": ("bswap {0}",) * 2, "aarch64": ("rev {0}, {0}",) * 2}
_AS_IT_IS = {"x86_64": ("", ""), "aarch64": ("", "")}
_CHANGES = {"cell": _BIAS, "window": _BIAS, "stack": _AS_IT_IS, "swapped": _SWAP}
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
#: The same where Python has the say: its callback, which sees the return address as it was, answers whether the call is
#: followed.
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
#: The trampoline: the youngest followed call returns, if its frame is the one that does; then the Python callback of
#: its site.
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
    "aarch64": {"x7": "w7", "x8": "w8", "x10": "w10", "x11": "w11", "x12": "w12"},
}
#: Where the return address is put right: a return that reloads the link register has done it, and Python looks at what
#: shows the trampoline.
_PUT = {
    "x86_64": {False: ("jne", "{write_rcx}; mov [r11], {rcx}"), True: ("je", "")},
    "aarch64": {False: ("b.ne", "{write_x11}; str {x11}, [x9]"), True: ("b.eq", "")},
}
#: A hook on marked instructions: its data is a range's start, the function to call, the engine's that writes a
#: register, pc's number, and a byte for each of the range. See marks.py.
_MARKED = {
    "x86_64": """
        mov rax, rsi; sub rax, [rcx]; cmp byte ptr [rcx + rax + 32], 0; jne marked; ret
        marked: push rbx; push rdi; push rax
        mov rbx, rcx; call qword ptr [rcx + 8]
        mov [rsp], rax; inc rax; jz stay
        mov rdi, [rsp + 8]; mov esi, [rbx + 24]; mov rdx, rsp; call qword ptr [rbx + 16]
        stay: add rsp, 16; pop rbx; ret""",
    "aarch64": """
        ldr x4, [x3]; sub x4, x1, x4; add x4, x3, x4; ldrb w4, [x4, #32]; cbnz w4, marked; ret
        marked: stp x29, x30, [sp, #-48]!; stp x0, x3, [sp, #16]
        ldr x4, [x3, #8]; blr x4
        str x0, [sp, #32]; cmn x0, #1; b.eq stay
        ldp x0, x3, [sp, #16]; ldr w1, [x3, #24]; add x2, sp, #32; ldr x4, [x3, #16]; blr x4
        stay: ldp x29, x30, [sp], #48; ret""",
}
#: In front of a function of the engine's with three arguments: the third is lowered to what it may be at most. Its two
#: words stand behind it, from byte 24 on: the function's address, and that number. (The assembler takes what LDR loads
#: by its address, from the function's start on.) See translator.py.
_AT_MOST = {
    "x86_64": "cmp edx, dword ptr [rip + 26]; cmovg edx, dword ptr [rip + 19]; jmp qword ptr [rip + 5]; nop; nop; "
              "nop; nop; nop",
    "aarch64": "ldr w3, #32; cmp w2, w3; csel w2, w3, w2, gt; ldr x16, #24; br x16; nop",
}
#: A function that the engine calls with two arguments: a word is copied, then another function has its say, if there is
#: one. The address of its words stands behind it. See noting.py.
_NOTE = {
    "x86_64": """
        mov rax, qword ptr [rip + 25]; mov rcx, [rax]; mov rcx, [rcx]; mov [rax + 16], rcx
        mov rax, [rax + 8]; test rax, rax; je none; jmp rax
        none: ret; nop; nop; nop""",
    "aarch64": """
        ldr x4, #40; ldr x5, [x4]; ldr x5, [x5]; str x5, [x4, #16]
        ldr x5, [x4, #8]; cbz x5, none; br x5
        none: mov w0, #0; ret; nop""",
}
_ALWAYS = {"serve": _SERVE, "here": _HERE, "count": _COUNT, "program": PROGRAM, "back": BACK, "marked": _MARKED,
           "tick": TICK, "block": BLOCK, "at-most": _AT_MOST, "note": _NOTE,
           "with-words": WITH_WORDS, "look": LOOKING, "execute": EXECUTE, "stop-soon": ASK}
_NAMES = {**SITE, **CALLS, **ROW, **ABOUT, **NUMBERS}
_FOLLOWING = {"enter": _ENTER, "ask": _ASK, "leave": _LEAVE, "leave-reloaded": _LEAVE}


def functions(host: str) -> dict[str, str]:
    """Name -> assembly of every function of a host."""
    texts = {name: text[host].format(**_NAMES) for name, text in _ALWAYS.items()}
    for kind, where, bits in product(_FOLLOWING, WHERE, (32, 64)):
        if kind != "leave-reloaded" or where in ("cell", "window"):
            texts[f"{kind}-{where}-{bits}"] = _following(host, kind, where, bits)
    return texts


def _following(host: str, kind: str, where: str, bits: int) -> str:
    """A function that follows calls, for guests whose words have so many bits and whose return addresses are there."""
    names = {name: half if bits == 32 else name for name, half in _HALVES[host].items()}
    values: dict[str, int | str] = {**names, **SITE, **CALLS}
    read, write = _CHANGES[where][host]
    for name, part in names.items():
        values[f"read_{name}"], values[f"write_{name}"] = (text.format(part, **values) for text in (read, write))
    unless_shown, put = _PUT[host][kind == "leave-reloaded"]
    frame = _FRAME_IN_WINDOW if where == "window" else _FRAME
    parts = {"load_frame": frame[host], "where": _PLACES[where][host], "put": put}
    values |= {name: text.format(**values) for name, text in parts.items()}
    return _FOLLOWING[kind][host].format(entry=_ENTRY[host].format(**values), unless_shown=unless_shown, **values)


def assembled(host: str) -> dict[str, bytes]:
    """Name -> machine code of every function of a host. Raises Unsupported where Keystone is not installed."""
    return {name: assemble(_lines(text), _KEYSTONE[host], 0) for name, text in functions(host).items()}


def _lines(text: str) -> str:
    """One statement a line, none empty."""
    return "\n".join(statement.strip() for statement in text.replace("\n", ";").split(";") if statement.strip())


def module() -> str:
    """The text of ready.py."""
    lines = ['"""Host code as bytes, in hexadecimal. Written by source.py: do not edit."""', "", "READY = {"]
    for host in _KEYSTONE:
        lines.append(f'    "{host}": {{')
        for name, code in assembled(host).items():
            words = code.hex()
            pieces = [f'            "{words[at : at + 104]}"' for at in range(0, len(words), 104)]
            lines += [f'        "{name}":', *pieces[:-1], f"{pieces[-1]},"]
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    Path(__file__).with_name("ready.py").write_text(module())
