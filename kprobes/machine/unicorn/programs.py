"""Shows the guest's registers and memory to programs that were compiled for the host.

Nothing here knows what a program is. The core's programs are host code with an environment of
64-bit words, see CallsInPlace.program_at; who compiles them asks HostView where things are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from attrs import frozen

from .._base import HostProgram
from .clock import InstructionClock
from .cpu import UnicornCpu
from .engine import MEM_READ, READ
from .host.callsites import FollowedCalls
from .host.hostcode import CALLS


@frozen
class ProgramPlace:
    """The place of a register's value, for host code.

    Attributes:
        way: "cell": at base + place. "window": `index` bytes behind where the pointer at base +
            place points. "api": the engine's register number `place`. "pc": who runs the program
            knows; `place` are its mode bits. "none": it is always 0. "python": only regs tells.
        place: what `way` says: bytes from HostView.base, a number or bits.
        index: bytes, for "window".
        bits: width of the value there.
    """

    way: str
    place: int = 0
    index: int = 0
    bits: int = 64


class HostView:
    """Facts about the guest for a compiler of programs for the host.

    Attributes:
        base: an address in the engine's CPU structure.
        arch: the guest's architecture.
        regs: its CPU's registers.
        words: name -> number for host code: the addresses of the engine (`uc`), of its functions
            (`uc_reg_read`, `uc_mem_read`), of the table of blocks (`blocks`, see BlockTable), of
            the instruction clock, and of words of followed calls.
        fail: (exception) what a program's helper has raised goes there; the run raises it.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        followed: FollowedCalls,
        clock: InstructionClock,
        fail: Callable[[BaseException], None],
    ) -> None:
        """Look up where things are.

        Args:
            cpu: the guest's CPU.
            followed: the words of followed calls.
            clock: the instruction clock.
            fail: (exception) takes what a program's helper has raised.
        """
        self._cpu = cpu
        self.arch = cpu.arch
        self.regs = cpu.regs
        self.fail = fail
        places = [cell.address for cell in (cpu.cells | cpu.windowed).values()]
        self.base = min(places, default=0)
        self.words = {
            "uc": cpu.engine.handle.value or 0,
            "uc_reg_read": READ,
            "uc_mem_read": MEM_READ,
            "blocks": cpu.memory.block_table.address,
            "instructions": clock.address,
            "returned_to": followed.address + 8 * CALLS["target"],
            "followed_top": followed.address + 8 * CALLS["top"],
            "followed_base": followed.idle[1],
        }

    def where(self, name: str) -> ProgramPlace:
        """Return where a program finds the value of a register, as ProgramPlace describes it.

        Args:
            name: of the register; no alias.
        """
        cpu, table = self._cpu, self._cpu.arch.regs
        bits = table.widths.get(name, cpu.arch.bits)
        if not bits:
            return ProgramPlace("none")
        if name == table.pc:
            return ProgramPlace("pc", cpu.arch.pointers.mode_bits)
        if name in cpu.cells:
            return ProgramPlace("cell", cpu.cells[name].address - self.base, 0, bits)
        if name in cpu.windowed:
            found = cpu.windowed[name]
            return ProgramPlace("window", found.address - self.base, found.index * bits // 8, bits)
        if name in cpu.guest.registers.hidden:
            return ProgramPlace("python")
        return ProgramPlace("api", cpu.register(name), 0, bits)


def chain(programs: Sequence[HostProgram]) -> int:
    """Link programs so that each runs after the one before: write the address of the next one's
    environment into the second word of each environment.

    Args:
        programs: in the order in which they run.

    Returns:
        Address of the first program's environment; 0 where there is none.
    """
    for n, program in enumerate(programs):
        following = programs[n + 1].address if n + 1 < len(programs) else 0
        ctypes.c_uint64.from_address(program.address + 8).value = following
    return programs[0].address if programs else 0
