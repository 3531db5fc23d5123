"""A model of an Itanium: as much of it as ordinary integer code needs, for proofs, teaching and
trying things out.

No emulator runs ia64. This one executes an instruction at a time: loads and stores, integer and
predicate arithmetic, the register stack, rotation, branches, the significands of floating-point
registers. It knows no NaT bits, no ALAT and no stops: what the instructions of a group do at once,
it does in order.
"""

from __future__ import annotations

from ...arch import get
from ...arch._base import Insn
from ...arch.ia64 import bundle
from ...arch.ia64.displace import word_of
from ...arch.ia64.rows import ALWAYS
from ...arch.ia64.simulate import holds
from ...errors import GuestFault
from ...regs import Regs
from ..paper import PaperMachine
from .encodings import EFFECTS

__all__ = ["model"]
STACK, BACKING_STORE = 0xCF00, 0xC000  # of PaperMachine's data page


Where = int | tuple[int, int]


def model(
    code: bytes, *, base: int = 0x1000, symbols: dict[str, Where] | None = None, cpus: int = 1
) -> PaperMachine:
    """Make a machine that executes Itanium code: 64 KiB of memory, a stack and a backing store.

    The stack grows down, the backing store up. m.call() makes a frame of eight inputs.

    Args:
        code: bundles.
        base: address of the first byte.
        symbols: name -> address, or (address, size in bytes), of code; None: there are none.
        cpus: number of CPUs.
    """
    machine = PaperMachine(
        code,
        base=base,
        symbols=symbols,
        cpus=cpus,
        arch=get("ia64"),
        execute=_execute,
        breaks=_breaks,
    )
    for regs in machine.cpu_regs:
        regs["pr"], regs["cfm"], regs["ar_bsp"], regs.sp = 1, 8, BACKING_STORE, STACK
    return machine


def _breaks(regs: Regs, insn: Insn) -> bool:
    """Return True for a breakpoint whose predicate holds."""
    return insn.name.startswith("break.") and holds(regs, word_of(insn) & 63)


def _execute(regs: Regs, insn: Insn) -> None:
    """Execute an instruction that does not branch, if its predicate holds; one of ALWAYS in any
    case.

    Args:
        regs: the CPU's registers.
        insn: the instruction.

    Raises:
        GuestFault: the model does not know it.
    """
    word, (template, slots) = word_of(insn), bundle.parts(insn.raw)
    if not holds(regs, word & 63) and insn.name not in ALWAYS:
        return
    unit = bundle.units(template)[insn.addr % bundle.SIZE]
    if not EFFECTS[unit].run(regs, word, slots[1]):
        what = f"the model does not know {insn.name} {word:011x} of the {unit} unit"
        raise GuestFault(what, access="undefined")
