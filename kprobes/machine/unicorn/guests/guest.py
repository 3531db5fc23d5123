"""A row: how Unicorn 2.1.4 is opened for a guest, and where the engine differs from the ISA.

Every fact here was measured (docs/engine.md); the self-test checks the ones that would corrupt a guest when wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import unicorn
from attrs import field, frozen

from ....arch._base import Traps
from ....regs import Regs
from ..registers.conditions import Access

if TYPE_CHECKING:
    from ..engine import Engine

INTR, INVALID, HOOK = "interrupt", "invalid instruction", "hook"


@frozen
class SystemCall:
    """A system call instruction that the engine reports as an instruction, not as an interrupt; or else passes over."""

    number: int  #: to report it by
    size: int  #: in bytes: the engine adds it to pc behind the hook
    effect: Callable[[Regs, int], None] | None = None  #: (registers, address behind it): what it does itself


@frozen
class WordCheck:
    """For the self-test of a register that is a word at a fixed distance. set, get: code in hex that makes it `value`, and that reads it."""

    name: str
    set: str
    value: int
    get: str
    register: str  #: which `get` reads it into
    mask: int = 0xFFFFFFFF  #: bits that the guest can set


@frozen
class Served:
    """Where the engine keeps the exception that the CPU serves, which nobody but an operating system ever ends: with the next one it would
    count as a double fault. code: raises one, for the self-test; number: its number."""

    find: Callable[[Engine], Access]
    code: bytes
    number: int


@frozen(kw_only=True)
class Guest:
    """An architecture in Unicorn."""

    uc_arch: int
    uc_mode: int
    constants: object  #: module with the register numbers
    prefix: str  #: of the register constants: UC_<prefix>_REG_<NAME>
    channel: str  #: how our breakpoint arrives; HOOK: not at all, _stops.py sees to it
    number: int = 0  #: its interrupt number
    pc_bias: int = 0  #: engine's pc in that hook minus the breakpoint's address
    traps: Traps | None = None  #: breakpoints that arrive, where Linux's do not
    registers: Mapping[str, str] = field(factory=dict)  #: our register name -> Unicorn's, where they differ
    setup: Callable[[Engine], None] | None = None  #: brings the CPU into the state compiled code expects
    recognise: Callable[[unicorn.Uc], bool] | None = None  #: tells engines of the same kind and mode apart
    #: a pc write in a CODE hook may be lost (A32 code translated after T32 code that ends in an IT block): the trap behind the
    #: call site then arrives, and the write is repeated
    loses_pc: bool = False
    state_mode: int = 0  #: bits of the engine's mode that follow the CPU's state
    #: mode bits of the code -> fault_bias of instructions in that mode, where it differs
    mode_bias: Mapping[int, Mapping[int, int]] = field(factory=dict)
    cpu_model: int | None = None
    page_size: int = 0x1000  #: the engine maps memory in multiples of this many bytes
    #: finds (read, write) of the CPU's state in the engine, where saved contexts hold nothing
    context: Callable[[Engine], tuple[Callable[[], Any], Callable[[Any], None]]] | None = None
    #: our register name -> finds it in the engine: registers that Unicorn's API lacks, or reads wrongly (_conditions.py)
    hidden: Mapping[str, Callable[[Engine], Access]] = field(factory=dict)
    flag_checks: tuple[tuple[str, int], ...] = ()  #: (code in hex, what Registers.flags is behind it), for the self-test
    word_checks: tuple[WordCheck, ...] = ()  #: of the words among `hidden`, for the self-test
    exception: Served | None = None  #: the CPU remembers the exception that it serves
    #: a run stops at `until`, where it is to; elsewhere it passes it, or is late by an instruction, and a trap is put there
    until_stops: bool = True
    until_pc: bool = True  #: pc is right after a run ended at `until`
    #: registers whose place in the engine changes while it runs (banks): never touched but through the API
    moving: frozenset[str] = frozenset()
    windowed: frozenset[str] = frozenset()  #: registers behind a pointer of the engine's, see _windows.py
    moves: tuple[str, ...] = ()  #: code in hex that moves it, one after the other
    #: a breakpoint's hook may read and set pc by its word in the engine; elsewhere a pc write does more than that (npc, T bit)
    plain_pc: bool = False
    pc_modes: int = 0  #: bits of a target that select a mode: the engine's API writes one that is not the present one
    mode_bit: int | None = None  #: the flags' bit that shows it; None: it is 0 at all breakpoints
    #: where the next pc's word is behind pc's, and a hook of invalid instructions may set both: an instruction that does nothing, for
    #: the self-test
    next_pc: bytes = b""
    counts_insns: bool = True  #: a CODE hook on every instruction is harmless (on SPARC it destroys a jump whose delay slot it is on)
    arithmetic: frozenset[int] = frozenset()  #: interrupt numbers of division and other arithmetic errors
    undefined: frozenset[int] = frozenset()  #: interrupt numbers of undefined instructions
    breakpoints: frozenset[int] = frozenset()  #: interrupt numbers of the guest's own breakpoints
    fetches: frozenset[int] = frozenset()  #: interrupt numbers of refused instruction fetches
    #: (interrupt number, pc) -> the number to report, where the engine's depends on how the guest came to pc
    renumber: Callable[[int, int], int] | None = None
    #: interrupt number -> engine's pc minus the address of the instruction at fault, where that is not 0 (or pc_bias for `number`)
    fault_bias: Mapping[int, int] = field(factory=dict)
    #: interrupt number of a system call -> what to add to the engine's pc to go on behind it; others go on at the instruction
    call_skip: Mapping[int, int] = field(factory=dict)
    calls: Mapping[int, SystemCall] = field(factory=dict)  #: Unicorn's number of an instruction -> what it passes over unless hooked
    undefined_unrecorded: bool = False  #: a translation that ends in an undefined instruction is recorded without it
    #: runs under the virtual TLB (setup() switches it on): the machine fills it
    virtual_tlb: bool = False
    text_writable: bool = False  #: code executes only in pages that can be written
    ambiguous: frozenset[int] = frozenset()  #: numbers of interrupts that may be failed accesses: the virtual TLB would tell
    outside_context: tuple[str, ...] = ()  #: registers that a saved context lacks
    #: first two bytes of an instruction -> True where a CODE hook sees it twice in a row
    reported_twice: Callable[[bytes], bool] | None = None
    #: interrupt number of an unaligned access -> "read" or "write"
    unaligned: Mapping[int, str] = field(factory=dict)
    #: (start, bytes) of windows of the guest's addresses onto memory from 0 on: the engine's functions know that one only
    segments: tuple[tuple[int, int], ...] = ()
    reach: int = 0  #: addresses from here on cannot be used, although memory can be mapped there; 0: all can
    #: pc is right at interrupts of `number` only; at every other one it is what the last of those left behind
    lost_pc: bool = False
    #: after a failed instruction fetch the next translation kills the process: nothing may run any more
    fetch_fault_kills: bool = False
    #: whether an instruction of 4 bytes, as a word of the host's, ends a block: where the engine dies of long ones (longblocks.py)
    ends_block: Callable[[int], bool] | None = None
    #: a run that stops in a delay slot leaves its branch pending: one instruction at the next start, then off to the old
    #: target. This one does nothing; it is run in place of the delay slot where the guest is sent elsewhere. b"": no such thing
    settle: bytes = b""
    #: (engine, registers, address, bytes): make that memory the CPU's, for the contexts that it saves, or its tables
    furnish: Callable[[Engine, Regs, int, int], None] | None = None
    contexts_near: int = 0x10000000  #: where that memory should be
    rewind: Callable[[Engine], tuple[Callable[[], int], Callable[[int], None]]] | None = None  #: see Engine.rewind
    #: (registers, pc) -> where the guest's CPU has taken a trap itself and stands at its vector: the trap's number, the address of
    #: the instruction, and an instruction that undoes it (b"": nothing can); None: it stands elsewhere
    trap_taken: Callable[[Regs, int], tuple[int, int, bytes] | None] | None = None
