"""An architecture's answer about one instruction, `Insn`, and the types of its parts. Part of the
contract in _base.py.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from attrs import frozen

from ..regs import Regs


class Atomic(enum.Enum):
    """How an instruction takes part in an exclusive (load-reserved / store-conditional) sequence.
    """

    OPENS = "opens"
    CLOSES = "closes"
    #: gives it up: CLREX, and instructions that wait until somebody writes what was loaded
    DROPS = "drops"


class Decoded(enum.Enum):
    """The result of decoding."""

    WHOLE = "whole"
    TRUNCATED = "truncated"  #: memory ends within the instruction
    UNDEFINED = "undefined"  #: no instruction has this encoding


class Annul(int):
    """The next target, returned by a simulation of a delayed branch when the delay slot must not
    run.
    """


#: `Insn.executes` where registers tell.
COMPUTED = -1

#: Applies the instruction's effect that must happen at its own address and returns the target to go
#: to next. Runs before the body. `Annul(target)` skips the body (an annulled delay slot). Memory
#: goes through regs.word and regs.set_word; a GuestFault that escapes is reported to the guest at
#: the instruction's address, so memory is read and written before any register changes.
Simulate = Callable[[Regs], int]


@frozen(kw_only=True, slots=False)
class Insn:
    """The instruction at an address, and how it may be executed elsewhere.

    Walks of large programs make hundreds of thousands of them. Without slots, attrs makes one in
    half the time.
    """

    # what it is
    addr: int  #: address, mode bits stripped
    raw: bytes  #: original bytes; their length is the instruction's length
    name: str  #: row name (the manual's mnemonic), for messages and tests
    mode: int = 0  #: bits or-ed into every target that stays in this instruction's mode (Thumb: 1)
    #: whether there is an instruction at all; see truncated() and undefined()
    decoded: Decoded = Decoded.WHOLE
    #: addresses to the next instruction, where `raw` is a bundle that it shares with others
    span: int = 0

    # how it is executed, where a probe is
    reject: str = ""  #: why it must not be probed; empty = fine
    simulate: Simulate | None = None  #: effect at the original address; returns where to go next
    body: bytes = b""  #: what runs out of line: the instruction, its delay slot, or nothing
    #: a breakpoint in its place, or in a bundle a jump, is executed under its condition only
    conditional: bool = False
    boostable: bool = True  #: the body may be followed by a jump back instead of a trap
    #: where no jump can lead to `next`, within its bundle: (to) -> code that does there what
    #: follows it in the bundle, at the same place in a bundle of its own, and goes on behind that.
    #: Raises OutOfReach
    onward: Callable[[int], bytes] | None = None
    #: where it is simulated: (to) -> code that does there all that it does at home, its delay slot
    #: included, and nothing else, and falls through to `next`; where it faults, nothing is changed
    #: (its delay slot: but the link), and it can be executed again from its start. Raises
    #: OutOfReach
    displace: Callable[[int], bytes] | None = None

    # where the guest goes on
    target: int | None = None  #: a direct branch's absolute target, for region checks
    exchanges: bool = False  #: its target is in the other mode (BLX)
    #: a computed jump within the function (not a call, not a return), for region checks
    indirect: bool = False
    falls_through: bool = True  #: False: it never goes on to `next`, where data may stand
    #: it keeps `next` as a return address: what follows it at home must stay there
    links: bool = False
    #: bytes of an entry, where the instruction jumps through a table that follows it: offsets from
    #: the table
    table: int = 0
    #: bytes that an unsigned entry counts; 0: entries are signed and count bytes
    table_unit: int = 0

    #: why no jump may stand here, where pages may be guarded: indirect branches lead to one like it
    lands: str = ""
    #: why it may not be done elsewhere, where pages may be guarded: it would be another kind of
    #: branch
    sends: str = ""

    # whom else it concerns
    delay_slot: bool = False  #: the next instruction is its delay slot
    skips: int = 0  #: bytes behind it that it may skip, or nullify: behind its copy as well
    #: an engine executes it once for each element: a hook on it is called as often
    repeats: bool = False
    #: so many instructions after it go where it goes, and as they are (Thumb: an IT block)
    together: int = 0
    atomic: Atomic | None = None  #: opens or closes an exclusive sequence
    #: absolute address of a pc-relative operand, or of the table that a jump reads
    operand: int | None = None
    #: bytes that it reads or writes there, at most: no code; 0: the address alone counts
    data: int = 0
    #: address of another instruction, which this one executes in its own place; or COMPUTED
    executes: int | None = None

    def changed(self, **attributes: Any) -> Insn:
        """Return a copy with other values of some attributes, as attrs' evolve() does in ten times
        the time.

        Args:
            attributes: name -> value; names of others than Insn has are a mistake that is not seen.
        """
        new = object.__new__(Insn)
        new.__dict__.update(self.__dict__)
        new.__dict__.update(attributes)
        return new

    @classmethod
    def truncated(cls, addr: int, raw: bytes, mode: int = 0) -> Insn:
        """Return the Insn where mapped memory ends within the instruction: it is refused.

        Args:
            addr: address, mode bits stripped.
            raw: the bytes that there are.
            mode: mode bits of the code.
        """
        return cls(
            addr=addr,
            raw=bytes(raw) or b"\0",
            mode=mode,
            name="truncated",
            decoded=Decoded.TRUNCATED,
            reject="half an instruction: mapped memory ends here",
        )

    @classmethod
    def undefined(
        cls, addr: int, raw: bytes, reject: str = "undefined instruction", mode: int = 0
    ) -> Insn:
        """Return the Insn of an encoding that no instruction has: it is refused.

        Args:
            addr: address, mode bits stripped.
            raw: the bytes that are passed over where decoding goes on behind them.
            reject: why it is refused.
            mode: mode bits of the code.
        """
        return cls(
            addr=addr,
            raw=bytes(raw),
            mode=mode,
            name="undefined",
            decoded=Decoded.UNDEFINED,
            reject=reject,
        )

    @property
    def size(self) -> int:
        """Length in bytes; in a bundle its `span`."""
        return self.span or len(self.raw)

    @property
    def next(self) -> int:
        """Address after the instruction, and after its delay slot where it has one."""
        return self.addr + self.size * (2 if self.delay_slot else 1)
