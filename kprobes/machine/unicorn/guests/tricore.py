"""TriCore in Unicorn: how its CPU is set up, and how to leave the traps that it takes itself.

DEBUG and SYSCALL do nothing here, so the breakpoint is an undefined instruction, under a CODE hook
(stops.py), without which it stops stray guests; and SYSCALL is found by its bytes (passedover.py).
What traps goes to the guest's vector, where nothing is mapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import unicorn
from unicorn import tricore_const as const

from ....arch._base import Traps
from ....errors import NoMemory
from ....regs import Regs
from ..engine import Engine
from ..registers.cells import find_cells
from ..registers.conditions import Access
from .guest import (
    HOOK,
    Breakpoint,
    Contexts,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    PassedOverCall,
    RegisterFile,
    SelfTestCode,
    SystemCalls,
)

TRAP = bytes.fromhex("0010")
VECTORS = 0xFFFFFF00  # 32 bytes for each class of traps
UNCOUNTED = 0xBFF  # PSW after reset, but for the call depth counter, which allows 64 nested calls
NO_CONTEXT = 0x304  # the trap that saves none, as none is free
LINK = 0xFFFFF  # of FCX and PCXI: where a context lies
SYSTEM_CALL = 0x600  #: class 6; TIN is the low byte of the instruction's constant
#: SYSCALL const9: opcode AD, 4 in bits 27 to 21, the constant in 20 to 12
SYSCALL = re.compile(
    rb"(?=\xad[\x00-\xff][\x80-\x9f][" + b"".join(b"\\x%x0" % n for n in range(16)) + rb"])"
)
RETURN_FROM_EXCEPTION = bytes.fromhex("0080")
#: MOV d0,-1; ADDX d1,d0,d0: C. MOVH d0,0x4000; ADD d0,d0: V, SV, AV, SAV.
FLAGS = (("82f00b004010", 0x80000000), ("7b0000044200", 0x78000000))


def set_up(engine: Engine) -> None:
    """Set the base of the trap vectors, and a PSW that does not count calls (Cpu.setup).

    Args:
        engine: a new engine.
    """
    engine.uc.reg_write(const.UC_TRICORE_REG_BTV, VECTORS)
    engine.uc.reg_write(const.UC_TRICORE_REG_PSW, UNCOUNTED)


def area(link: int) -> int:
    """Return the guest address of a context save area.

    Args:
        link: as FCX and PCXI hold it: a segment, and 16 bits of the area's number in it.
    """
    return link >> 16 << 28 | (link & 0xFFFF) << 6


def link_areas(_engine: Engine, regs: Regs, start: int, size: int) -> None:
    """Make the list of free context save areas in guest memory, and set FCX to it.

    Called once for each machine, when its memory for saved contexts is mapped (Contexts.furnish).

    A link holds a segment and 16 bits of an area's number in it.

    Args:
        _engine: not used.
        regs: the CPU's registers; guest memory is written through them.
        start: address of the memory for the areas, a multiple of 64.
        size: its bytes, a multiple of 64: an area has 64.

    Raises:
        NoMemory: the memory is not in the first 4 MiB of a segment.
    """
    if start % (1 << 28) + size > 1 << 22:
        raise NoMemory(
            "contexts can be saved in the first 4 MiB of a segment only",
            address=start,
            hint="leave room there",
        )
    places = range(start, start + size, 64)
    links = [place >> 28 << 16 | place >> 6 & 0xFFFF for place in places]
    for place, following in zip(places, [*links[1:], 0], strict=True):
        regs.set_word(place, following)
    regs["fcx"] = links[0]


def rewind(engine: Engine) -> tuple[Callable[[], int], Callable[[int], None]]:
    """Return functions that undo what calls have taken of the list of context save areas
    (Contexts.rewind).

    Contexts that were saved since a mark, and not restored as no function has returned, go back to
    the free list.

    Args:
        engine: the engine.

    Returns:
        (() -> a mark, (mark): puts the areas back).
    """
    free = engine.reader(const.UC_TRICORE_REG_FCX, 32)
    last = engine.reader(const.UC_TRICORE_REG_PCXI, 32)

    def to(mark: int) -> None:
        """Put the areas that calls have taken since a mark back on the free list.

        Nothing is written where the list does not lead to the mark.

        Args:
            mark: what the first function returned: FCX at that time.
        """
        links = [free() & LINK]
        following = last() & LINK
        while links[-1] != mark & LINK and following and following not in links:
            links.append(following)
            saved = engine.read(area(following), 4)
            following = int.from_bytes(saved, "little") & LINK if saved is not None else 0
        if links[-1] == mark & LINK:
            for link, later in zip(links[1:], links, strict=False):
                engine.write(area(link), later.to_bytes(4, "little"))

    return free, to


def trap_taken(regs: Regs, pc: int) -> tuple[int, int, bytes] | None:
    """Return the trap that the CPU has taken itself, if it stands at a trap vector
    (Interrupts.taken). Nothing is changed.

    Args:
        regs: the CPU's registers.
        pc: where it stands.

    Returns:
        (class and TIN of the trap as one number, address of the instruction, code that returns from
        the trap; b"": nothing can); None: it stands elsewhere.
    """
    if pc < VECTORS or pc & 31:
        return None
    number = (pc - VECTORS) << 3 | regs["d15"]
    return number, regs["a11"], b"" if number == NO_CONTEXT else RETURN_FROM_EXCEPTION


def system_call(code: bytes) -> int:
    """Return the number by which a SYSCALL instruction is reported (PassedOverCall.number).

    Args:
        code: its four bytes.
    """
    return SYSTEM_CALL | int.from_bytes(code, "little") >> 12 & 0xFF


def psw(engine: Engine) -> Access:
    """Make functions that read and write the PSW with its user status bits.

    Each of these bits is a word of its own in the engine: C is set by any bit of it, the others by
    the highest.

    Args:
        engine: the engine.

    Returns:
        (() -> the PSW, (value) writes it).
    """
    numbers = [const.UC_TRICORE_REG_PSW] + [
        getattr(const, f"UC_TRICORE_REG_PSW_USB_{name}") for name in ("C", "V", "SV", "AV", "SAV")
    ]
    cells = find_cells(engine, "tricore, psw", {str(number): number for number in numbers}, 32)
    words = [
        (engine.reader(number, 32), engine.writer(number, 32))
        if cell is None
        else (cell.reader(), cell.writer())
        for number in numbers
        for cell in [cells.get(str(number))]
    ]
    (read_rest, write_rest), (read_carry, _), *others = words
    overflows = [(access[0], 30 - n) for n, access in enumerate(others)]
    writers = [(access[1], 31 - n) for n, access in enumerate(words[1:])]

    def read() -> int:
        """Return PSW, with the status bits that the engine keeps in words of their own."""
        value = read_rest() & (1 << 27) - 1
        if read_carry():
            value |= 1 << 31
        for read_word, bit in overflows:
            value |= read_word() >> 31 << bit
        return value

    def write(value: int) -> None:
        """Write the PSW, and its status bits to the words in which the engine keeps them."""
        write_rest(value)
        for write_word, bit in writers:
            write_word((value >> bit & 1) << 31)

    return read, write


GUESTS = {
    "tricore": Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_TRICORE, mode=unicorn.UC_MODE_LITTLE_ENDIAN, setup=set_up),
        registers=RegisterFile(constants=const, prefix="TRICORE", hidden={"psw": psw}),
        breakpoint=Breakpoint(
            channel=HOOK, traps=Traps(probe=dict.fromkeys((2, 4), TRAP), end={0: TRAP})
        ),
        interrupts=Interrupts(taken=trap_taken),
        faults=Faults(
            arithmetic=frozenset({0x501, 0x502}), undefined=frozenset({0x201, 0x202, 0x203})
        ),
        calls=SystemCalls(
            skip=dict.fromkeys(range(SYSTEM_CALL, SYSTEM_CALL + 0x100), 4),
            decoded=PassedOverCall(pattern=SYSCALL, size=4, number=system_call),
        ),
        memory=Mapped(page_size=0x4000),
        contexts=Contexts(rewind=rewind, furnish=link_areas, near=0x70100000),
        checks=SelfTestCode(flags=FLAGS),
    )
}
