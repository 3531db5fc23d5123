"""A row: how Unicorn 2.1.4 is opened for a guest, and where the engine differs from the ISA. A
group of facts for each part of the machine.

Every fact here was measured (docs/engine.md); the self-test checks the ones that would corrupt a
guest when wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import unicorn
from attrs import field, frozen

from ....arch._base import Traps
from ....regs import Regs
from ..engine import Engine
from ..registers.conditions import Access
from ..registers.system import SystemRegister

INTR, INVALID, HOOK = "interrupt", "invalid instruction", "hook"


@frozen(kw_only=True)
class Cpu:
    """How the engine is opened for a guest, and how such an engine is recognised.

    Attributes:
        arch: one of unicorn's UC_ARCH constants.
        mode: its UC_MODE constants, all that the mode consists of.
        model: of the CPU; None: the engine's choice.
        state_mode: bits of the mode that follow the CPU's state.
        recognise: (engine) -> True: tells engines of the same kind and mode apart.
        setup: (engine) brings the CPU into the state that compiled code expects.
    """

    arch: int  #: one of unicorn's UC_ARCH constants
    mode: int  #: of its UC_MODE constants, all that it consists of
    model: int | None = None  #: of the CPU; None: the engine's choice
    state_mode: int = 0  #: bits of the mode that follow the CPU's state
    #: tells engines of the same kind and mode apart
    recognise: Callable[[unicorn.Uc], bool] | None = None
    #: brings the CPU into the state compiled code expects
    setup: Callable[[Engine], None] | None = None

    def open(self) -> unicorn.Uc:
        """Return a new engine that is not set up."""
        return unicorn.Uc(self.arch, self.mode, self.model)

    def start(self, engine: Engine) -> None:
        """Bring a new engine's CPU into the state that compiled code expects (`setup`)."""
        if self.setup is not None:
            self.setup(engine)

    def fresh(self) -> Engine:
        """Open a new engine, bring its CPU into the state that compiled code expects, and return
        it.
        """
        engine = Engine(self.open())
        self.start(engine)
        return engine


@frozen(kw_only=True)
class RegisterFile:
    """The engine's names of registers, and where it keeps those that its API cannot be asked
    for.
    """

    constants: object  #: module with the register numbers
    prefix: str  #: of the register constants: UC_<prefix>_REG_<NAME>
    #: our register name -> Unicorn's, where they differ
    names: Mapping[str, str] = field(factory=dict)
    #: our register name -> finds it in the engine: registers that Unicorn's API lacks, or reads
    #: wrongly (registers/conditions.py)
    hidden: Mapping[str, Callable[[Engine], Access]] = field(factory=dict)
    #: registers whose place in the engine changes while it runs (banks), or whose word is not all
    #: that a write changes (MXCSR's rounding mode): never touched but through the API
    moving: frozenset[str] = frozenset()
    #: those that interrupts change, see arch.interrupts
    system: Mapping[str, SystemRegister] = field(factory=dict)
    #: registers behind a pointer of the engine's, see registers/windows.py
    windowed: frozenset[str] = frozenset()

    def number(self, name: str) -> int:
        """Return the engine's number of the register that the architecture's table calls `name`."""
        return int(
            getattr(self.constants, f"UC_{self.prefix}_REG_{self.names.get(name, name.upper())}")
        )


@frozen(kw_only=True)
class Breakpoint:
    """How the engine reports a breakpoint of the core's."""

    channel: str  #: INTR, INVALID; or HOOK: not at all, stops.py sees to it
    number: int = 0  #: its interrupt number
    bias: int = 0  #: engine's pc in that hook minus the breakpoint's address
    traps: Traps | None = None  #: breakpoints that arrive, where Linux's do not


@frozen(kw_only=True)
class Pc:
    """How pc is read and written in a hook."""

    #: a breakpoint's hook may read and set pc by its word in the engine; elsewhere a pc write does
    #: more than that (npc, T bit)
    plain: bool = False
    #: bits of a target that select a mode: the engine's API writes one that is not the present one
    modes: int = 0
    #: the CPU goes to odd addresses, whose fetch fails; the engine's API takes the bit for a mode
    odd: bool = False
    mode_bit: int | None = None  #: the flags' bit that shows it; None: it is 0 at all breakpoints
    #: where the next pc's word is behind pc's, and a hook of invalid instructions may set both: an
    #: instruction that does nothing, for the self-test
    next: bytes = b""
    #: a pc write in a CODE hook may be lost (A32 code translated after T32 code that ends in an IT
    #: block): the trap behind the call site then arrives, and the write is repeated
    written_again: bool = False


@frozen(kw_only=True)
class Runs:
    """How a run ends."""

    #: a run stops at `until`; elsewhere it passes it, or is late by an instruction, and a trap is
    #: put there
    until_stops: bool = True
    until_pc: bool = True  #: pc is right after a run ended at `until`
    #: a run that stops in a delay slot leaves its branch pending: one instruction at the next
    #: start, then off to the old target. This one does nothing; it is run in place of the delay
    #: slot where the guest is sent elsewhere. b"": no such thing
    settle: bytes = b""
    jump: bytes = b""  #: there: goes to the link register, behind a delay slot


FETCHED = 0x100  #: how much more an unaligned access's number is where it is an instruction's fetch


class Compares(Enum):
    """The operands that the engine's hook on TCG's operations reports: edgemap.py."""

    COMPARISONS = "comparisons, each with its instruction's address"
    SUBTRACTIONS = "subtractions, comparisons among them, without addresses"


@frozen(kw_only=True)
class Blocks:
    """How the engine translates code, and what hooks on it do."""

    #: a CODE hook may be on a delay slot (on SPARC it destroys the jump): all instructions can be
    #: counted
    hooked_delay_slots: bool = True
    #: a CODE hook may be on any instruction, changes nothing, and is called once for each
    #: execution, but for Insn.repeats: inplace.py
    served_in_place: bool = False
    #: first two bytes of an instruction -> True where a CODE hook sees it twice in a row
    reported_twice: Callable[[bytes], bool] | None = None
    #: a CODE hook sees each repetition of an instruction that repeats itself (Insn.repeats)
    repetitions_reported: bool = False
    #: whether an instruction of 4 bytes, as a word of the host's, ends a block: where the engine
    #: dies of long ones (longblocks.py)
    ends: Callable[[int], bool] | None = None
    #: a translation that ends in an undefined instruction is recorded without it
    undefined_unrecorded: bool = False
    #: after a failed instruction fetch the next translation kills the process, unless the one that
    #: failed is forgotten (aborted.py)
    fetch_fault_kills: bool = False
    compares: Compares | None = None  #: what UC_HOOK_TCG_OPCODE reports; None: nothing


@frozen
class Served:
    """The engine's word of the exception that the CPU serves.

    Only an operating system ends an exception; without one the next would count as a double fault.

    Attributes:
        find: returns (read, write) of the word.
        code: raises an exception, for the self-test.
        number: of that exception.
    """

    find: Callable[[Engine], Access]
    code: bytes
    number: int


@frozen
class SingleStep:
    """The CPU's single-step mode: an exception follows each instruction that begins in it.

    Attributes:
        number: of the exception.
        find: finds the word of the engine's that has the mode's bit.
        bit: the bit's mask.
    """

    number: int
    find: Callable[[Engine], Access]
    bit: int


@frozen(kw_only=True)
class Interrupts:
    """The state of the guest at an interrupt of its own."""

    #: interrupt number -> engine's pc minus the address of the instruction at fault, where that is
    #: not 0 (or Breakpoint.bias for its number)
    bias: Mapping[int, int] = field(factory=dict)
    #: mode bits of the code -> bias of instructions in that mode, where it differs
    mode_bias: Mapping[int, Mapping[int, int]] = field(factory=dict)
    #: pc is right at breakpoints only, where it stands for the instruction: what the engine had
    #: before is noted (raised.py)
    lost_pc: bool = False
    #: (interrupt number, pc) -> the number to report, where the engine's depends on how the guest
    #: came to pc
    renumber: Callable[[int, int], int] | None = None
    #: number of a supervisor call that the CPU takes by its own rules (Arch.interrupts)
    call: int | None = None
    #: number of a branch to a value that stands for a return from an exception
    leave: int | None = None
    #: where a nested run has ended by an interrupt, a stop of the outer one is reported as the same
    #: once more; -1: not
    lingers: int = -1
    served: Served | None = None  #: the CPU remembers the exception that it serves
    step: SingleStep | None = None  #: None: a guest cannot turn single-step mode on
    #: finds where it keeps the address of an unaligned access
    refused: Callable[[Engine], Access] | None = None
    #: (registers, pc) -> where the guest's CPU has taken a trap itself and stands at its vector:
    #: the trap's number, the address of the instruction, and an instruction that undoes it (b"":
    #: nothing can); None: it stands elsewhere
    taken: Callable[[Regs, int], tuple[int, int, bytes] | None] | None = None


@frozen
class HookedFlags:
    """Flags that the engine gets wrong where an instruction with a CODE hook on it fails: before
    the instruction it has worked them out, and then takes what it keeps for what it kept before.
    """

    find: Callable[[Engine], Access]  #: where the flags are that it has worked out
    mask: int  #: those of the flags' register
    code: bytes  #: sets flags, then fails to write memory at 0: for the self-test
    #: of interrupts that instructions raise while they are executed, not behind them
    numbers: frozenset[int]


@frozen(kw_only=True)
class Faults:
    """Meanings of the numbers of interrupts."""

    arithmetic: frozenset[int] = frozenset()  #: division and other arithmetic errors
    undefined: frozenset[int] = frozenset()  #: undefined instructions
    breakpoints: frozenset[int] = frozenset()  #: the guest's own breakpoints
    #: refused instruction fetches, unaligned ones by FETCHED more than the engine's number
    fetches: frozenset[int] = frozenset()
    unaligned: Mapping[int, str] = field(factory=dict)  #: an unaligned access -> "read" or "write"
    #: an instruction -> whether an unaligned access of its is a write, where the number does not
    #: say so
    writes: Callable[[bytes], bool] | None = None
    ambiguous: frozenset[int] = frozenset()  #: maybe failed accesses: the virtual TLB would tell
    #: the flags are wrong behind a failed instruction with a CODE hook on it
    hooked_flags: HookedFlags | None = None
    #: behind some stores that fail the engine executes the rest of the block before it says so
    late_stores: bool = False


@frozen
class SystemCall:
    """A system call instruction that the engine reports as an instruction, not as an interrupt; or
    else passes over.
    """

    number: int  #: to report it by
    size: int  #: in bytes: the engine adds it to pc behind the hook
    #: (registers, address behind it): what it does itself
    effect: Callable[[Regs, int], None] | None = None


@frozen(kw_only=True)
class PassedOverCall:
    """A system call instruction that the engine passes over, with no hook for it
    (passedover.py).
    """

    pattern: re.Pattern[bytes]  #: its bytes, looked at from each of them on
    size: int  #: in bytes
    number: Callable[[bytes], int]  #: to report it by


@frozen(kw_only=True)
class SystemCalls:
    """How the guest's system calls arrive, and how it goes on behind one."""

    #: interrupt number of the one by which processes call Linux; None: there are no such processes
    linux: int | None = None
    #: interrupt number -> what to add to the engine's pc; others go on at the instruction
    skip: Mapping[int, int] = field(factory=dict)
    #: Unicorn's number of an instruction -> what it passes over unless hooked
    unreported: Mapping[int, SystemCall] = field(factory=dict)
    decoded: PassedOverCall | None = None  #: one that it passes over in any case


@frozen
class Silenced:
    """A guest whose accesses the engine reports no more, once a store has changed its own block
    (silenced.py).
    """

    note: int  #: bytes from the engine's handle to the size of the store that is under way
    code: bytes  #: such a store, of four bytes, and NOPs: for a test


@frozen
class Mended:
    """State of the CPU that the engine leaves wrong when it reports an access (mended.py)."""

    undo: Callable[[Engine], Callable[[], None]]  #: makes what a hook calls last
    code: bytes  #: accesses memory at 0x10000 in such a place: for a test


@frozen(kw_only=True)
class Mapped:
    """Limits of what memory can be mapped, and reached."""

    page_size: int = 0x1000  #: the engine maps memory in multiples of this many bytes
    #: (start, bytes) of windows of the guest's addresses onto memory from 0 on: the engine's
    #: functions know that one only
    segments: tuple[tuple[int, int], ...] = ()
    #: addresses from here on cannot be used, although memory can be mapped there; 0: all can
    reach: int = 0
    #: bits of an address that the engine looks at; it leaves the upper ones away. 0: all
    address_bits: int = 0
    text_writable: bool = False  #: code executes only in pages that can be written
    #: a report of an access leaves the CPU in that instruction's slot or block
    mended: Mended | None = None
    #: accesses are reported no more behind a block that has changed itself
    silenced: Silenced | None = None
    #: the engine hands values to and from devices in the other byte order
    devices_swapped: bool = False
    #: runs under the virtual TLB (Cpu.setup switches it on): the machine fills it
    virtual_tlb: bool = False


@frozen(kw_only=True)
class Contexts:
    """State that a saved context lacks, and memory that the CPU keeps for itself."""

    beside: tuple[str, ...] = ()  #: registers that a saved context lacks
    #: finds (read, write) of the CPU's state in the engine, where saved contexts hold nothing
    state: Callable[[Engine], tuple[Callable[[], Any], Callable[[Any], None]]] | None = None
    #: see Engine.rewind
    rewind: Callable[[Engine], tuple[Callable[[], int], Callable[[int], None]]] | None = None
    #: (engine, registers, address, bytes): make that memory the CPU's, for the contexts that it
    #: saves, or its tables
    furnish: Callable[[Engine, Regs, int, int], None] | None = None
    near: int = 0x10000000  #: where that memory should be


@frozen
class WordCheck:
    """For the self-test of a register that is a word at a fixed distance. set, get: code in hex
    that makes it `value`, and that reads it.
    """

    name: str
    set: str
    value: int
    get: str
    register: str  #: which `get` reads it into
    mask: int = 0xFFFFFFFF  #: bits that the guest can set


@frozen(kw_only=True)
class SelfTestCode:
    """Code that the self-test runs, in hex."""

    flags: tuple[tuple[str, int], ...] = ()  #: (code, what Registers.flags is behind it)
    words: tuple[WordCheck, ...] = ()  #: of the words among RegisterFile.hidden
    #: code that moves the registers of RegisterFile.windowed, one after the other
    moves: tuple[str, ...] = ()


@frozen(kw_only=True)
class Guest:
    """An architecture in Unicorn. The first three say how it is opened and probed; the others,
    where the engine is not like the CPU.
    """

    cpu: Cpu
    registers: RegisterFile
    breakpoint: Breakpoint
    pc: Pc = Pc()
    runs: Runs = Runs()
    blocks: Blocks = Blocks()
    interrupts: Interrupts = Interrupts()
    faults: Faults = Faults()
    calls: SystemCalls = SystemCalls()
    memory: Mapped = Mapped()
    contexts: Contexts = Contexts()
    checks: SelfTestCode = SelfTestCode()
