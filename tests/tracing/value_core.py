"""A core file of a machine's state, which gdb reads as if the program had stopped there.

gdb then judges the same bytes that the library reads: also those of variables that are not set yet.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

#: the registers of elf_gregset_t of x86-64, in its order; "": not kept
GENERAL = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "",
           "rip", "", "rflags", "rsp", "", "fs_base", "gs_base", "", "", "", "")
STATUS, GENERAL_AT, PID_AT = 336, 112, 32  #: struct elf_prstatus: its size, and where these stand in it
FLOAT, XMM_AT = 512, 160  #: struct user_fpregs_struct, FXSAVE's image
PAGE = 4096
LARGEST = 64 << 20  #: a larger region is left out


def write_core(machine: Any, regs: Any, path: Path) -> None:
    """Write a core of an x86-64 machine: its registers, and its memory but for regions above LARGEST.

    Args:
        machine: the machine.
        regs: registers of a hit.
        path: of the core.
    """
    status, floats = bytearray(STATUS), bytearray(FLOAT)
    values = [0 if not name else regs.pc if name == "rip" else regs[name] for name in GENERAL]
    struct.pack_into(f"<{len(values)}Q", status, GENERAL_AT, *values)
    struct.pack_into("<I", status, PID_AT, 1)
    for n in range(16):
        floats[XMM_AT + 16 * n:XMM_AT + 16 * n + 16] = int(regs[f"xmm{n}"]).to_bytes(16, "little")
    notes = _note(1, status) + _note(2, floats)
    regions = [(start, machine.read(start, end - start)) for start, end in machine.regions() if end - start <= LARGEST]
    headers = len(regions) + 1
    at = 64 + 56 * headers
    ident = b"\x7fELF\2\1\1" + bytes(9)
    head = bytearray(ident + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, headers, 0, 0, 0))
    head += struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 0)
    place = -(-(at + len(notes)) // PAGE) * PAGE
    with path.open("wb") as core:
        for start, data in regions:
            head += struct.pack("<IIQQQQQQ", 1, 7, place, start, 0, len(data), len(data), PAGE)
            core.seek(place)
            core.write(data)
            place += -(-len(data) // PAGE) * PAGE
        core.seek(0)
        core.write(head + notes)


def _note(kind: int, data: bytes) -> bytes:
    return struct.pack("<III", 5, len(data), kind) + b"CORE".ljust(8, b"\0") + data
