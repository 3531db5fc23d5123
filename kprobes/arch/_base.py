"""The contract between the core and an architecture: `Arch` and its parts.

An architecture is one frozen `Arch`: tables, and a few functions that only answer. The core drives.
Optional powers are None when absent. Addresses that it receives are stripped of mode bits, unless
it says "target": what a branch register would hold (on ARM bit 0 selects Thumb).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from attrs import field, frozen
from attrs.validators import in_

from ..errors import OutOfReach, UnknownRegister
from ..regs import Regs
from ._calls import (
    Abi,
    ExceptionReturns,
    Frame,
    Interrupted,
    Linkage,
    Results,
    Returning,
    Skips,
)
from ._insn import COMPUTED, Annul, Atomic, Decoded, Insn, Simulate
from ._interrupts import ExceptionCpu, InterruptController
from ._tables import Table

__all__ = ["COMPUTED", "Abi", "Annul", "Arch", "Atomic", "Bundles", "Decoded", "Entry",
           "ExceptionReturns", "Executing", "Files", "Frame", "Insn", "Interrupted", "Jump",
           "Lane", "Linkage", "Order", "OutOfLine", "Pointers",
           "Registers", "Results", "Returning", "Simulate", "Skips", "Table",
           "Traps", "Walking",
           "displacement", "identity", "plain_address", "signed", "verbatim"]


class Order(enum.Enum):
    """Byte order of data; the value is what int.from_bytes takes."""

    LITTLE = "little"
    BIG = "big"


@frozen
class Lane:
    """A part of a register that has a name of its own: d0 is the low half of v0 on AArch64.

    Attributes:
        register: name of the register.
        low: its lowest bit that is in the part.
        bits: how many bits the part has.
        keeps: True: a write leaves the rest of the register alone; False: it writes zeros there.
    """

    register: str
    low: int
    bits: int
    keeps: bool = False


@frozen(kw_only=True)
class Registers:
    """The guest's register names: which there are, which have a role, and other names for them."""

    names: tuple[str, ...]  #: every register the guest shows, in order
    pc: str
    sp: str
    flags: str | None = None
    aliases: Mapping[str, str] = field(factory=dict)  #: Linux's event names and the ABI's -> names
    widths: Mapping[str, int] = field(factory=dict)  #: bits, where they differ from Arch.bits
    lanes: Mapping[str, Lane] = field(factory=dict)  #: names of parts of registers
    reals: frozenset[str] = frozenset()  #: registers, of `names`, that may be set to a float
    sp_bias: int = 0  #: added to the stack pointer register to get the address (sparc64: 2047)

    def unknown(self, name: str) -> UnknownRegister:
        """Make the error for a name that is no register of this machine; the caller raises it.

        Where the architecture has the register, the error says that this machine does not show it.
        Else the hint has similar names, then the list of all.
        """
        known = [*self.names, *self.aliases, *self.lanes]
        if name in known:
            return UnknownRegister(f"this machine does not show register {name!r}",
                                   hint="regs.names has those that it shows")
        import difflib  # errors alone want it

        near = difflib.get_close_matches(str(name), known, 3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        return UnknownRegister(f"no register {name!r}", hint=f"{hint}registers: {' '.join(known)}")


@frozen(kw_only=True)
class Traps:
    """The bytes of breakpoint instructions, which are written over an instruction's start."""

    #: at a probepoint: by the instruction's length; the shortest one for lengths that are not there
    probe: Mapping[int, bytes]
    end: Mapping[int, bytes]  #: by mode: after a slot's body, and at return trampolines
    #: mode -> `probe` there, where it differs (Thumb)
    modes: Mapping[int, Mapping[int, bytes]] = field(factory=dict)

    def of(self, insn: Insn) -> bytes:
        """Return the breakpoint bytes to write over an instruction, by its mode and length."""
        probe = self.modes.get(insn.mode, self.probe)
        return probe.get(insn.size) or probe[min(probe)]

    def every(self) -> set[bytes]:
        """Return the bytes of every breakpoint: those of `end`, `probe` and `modes`."""
        return {*self.end.values(), *self.probe.values(), *(code for probe in self.modes.values()
                                                            for code in probe.values())}


@frozen(kw_only=True)
class Bundles:
    """Instructions that share their bytes (Itanium): several in one bundle.

    The address of an instruction is the bundle's plus the number of the instruction in it.
    Arch.decode gets the text from the bundle's start on. Branches lead to bundles' starts only.
    `Insn.span` says where the next instruction is.
    """

    size: int  #: bytes of a bundle, a power of two: what bundles are aligned to
    #: address of an instruction -> that of the first byte with a bit of its own
    place: Callable[[int], int]
    #: (insn) -> what stands from that byte on while it has a breakpoint, and which of these bits
    #: are its own
    trap: Callable[[Insn], tuple[bytes, bytes]]
    #: (insn, to, where each of those behind it in its bundle is executed meanwhile) -> the bundle
    #: while the instruction is a jump, under its condition; those before it stay. Raises OutOfReach
    jump: Callable[[Insn, int, Sequence[int]], bytes]
    no_jump: Callable[[Insn], str]  #: why there can be no such bundle; "": there is one

    def start(self, addr: int) -> int:
        """Return the address of the bundle that an instruction's address is in."""
        return addr & -self.size


@frozen(kw_only=True)
class Entry:
    """The meaning of a code address (a symbol's value, a function pointer): where the function is
    entered.
    """

    addr: int  #: first instruction, mode bits stripped
    mode: int = 0  #: mode bits of targets there
    #: offsets from addr that count as function entry (ENDBR, BTI, local entry point)
    entries: tuple[int, ...] = (0,)
    #: of them, the one that every call passes: a probe of the function's name stands there
    local: int = 0

    def place(self, offset: int) -> int:
        """Return the address that `function+offset` means; of offset 0 the entry that every call
        passes.
        """
        return self.addr + (offset or self.local)


@frozen(kw_only=True)
class Jump:
    """How to encode an unconditional jump that changes nothing but pc, for boost and
    optimization.
    """

    size: int  #: bytes
    encode: Callable[[int, int], bytes]  #: (from, to) -> bytes; raises OutOfReach
    #: the jump in other modes than 0, where it differs (Thumb)
    modes: Mapping[int, Jump] = field(factory=dict)

    def back(self, frm: int, insn: Insn) -> bytes:
        """Return code that goes from behind a copy of an instruction to what follows the original:
        a jump, or what the instruction's `onward` gives where it has one.

        What the instruction may skip may skip this jump: then a second jump follows, to behind what
        is skipped.

        Args:
            frm: address behind the copy, where the code will stand.
            insn: the instruction at its original address.

        Raises:
            OutOfReach: no jump reaches.
        """
        if insn.onward is not None:
            return insn.onward(frm)
        code = self.encode(frm, insn.next)
        return code + self.encode(frm + self.size, insn.next + insn.skips) if insn.skips else code


def verbatim(insn: Insn, to: int) -> bytes:
    """Return the instruction's body as it is: the default of `relocate`, where bodies run
    anywhere.
    """
    return insn.body


def identity(regs: Regs, pc: int) -> int:
    """Return pc itself: the default of `same_mode`, where addresses have no mode bits."""
    return pc


def plain_address(addr: int, read: Callable[[int, int], bytes]) -> Entry:
    """Return the address as an Entry: the default of `code_address`, where it is the first
    instruction's.
    """
    return Entry(addr=addr)


@frozen(kw_only=True)
class OutOfLine:
    """How instructions are executed at another address than their own: in a slot, or displaced."""

    #: (insn, to) -> body that runs at `to`; raises OutOfReach
    relocate: Callable[[Insn, int], bytes] = verbatim
    max_body: int = 0  #: longest relocated body, bytes; 0: Arch.max_insn
    max_displaced: int = 0  #: longest code of an `Insn.displace`, bytes
    max_onward: int = 0  #: and of an `Insn.onward`


def same_address(address: int) -> int:
    """Return the address that is passed."""
    return address


@frozen(kw_only=True)
class Pointers:
    """The meaning of code addresses beyond the address of an instruction: mode bits, function
    descriptors.
    """

    #: bits of a target that select a mode and are not part of the address (ARM: 1)
    mode_bits: int = 0
    mode: str = ""  #: what code is called that they select
    same_mode: Callable[[Regs, int], int] = identity  #: a pc as users write it -> target
    #: return address as code keeps it on the stack, where it may be signed -> the address itself
    without_signature: Callable[[int], int] = same_address
    #: (code address: a symbol's value or a function pointer, read original bytes) -> where it
    #: really starts
    code_address: Callable[[int, Callable[[int, int], bytes]], Entry] = plain_address
    #: that is the address itself: what is read says only what else is function entry
    direct: bool = False


MOST_BEFORE = 16  #: original bytes before an instruction that Walking's functions get, at most


@frozen(kw_only=True)
class Walking:
    """Facts for a walk through a function's code: what instructions say of their neighbours."""

    #: not of fixed width, yet decoding is soon in step from any multiple of insn_align
    resyncs: bool = False
    #: (insn, up to MOST_BEFORE original bytes before it) -> whether one of them may make it conditional, so
    #: that a jump in its place or behind its body would be conditional as well (Thumb's IT); None:
    #: nothing does that
    conditioned: Callable[[Insn, bytes], bool] | None = None
    #: (instruction) -> how many behind it are executed under its condition (Thumb's IT); None: no
    #: instruction has any
    covers: Callable[[Insn], int] | None = None
    #: (insn, up to MOST_BEFORE original bytes before it; fewer begin with an instruction) -> why it
    #: is a reserved instruction behind these, "" where it is none (MIPS release 6: branches behind
    #: compact branches); None: nothing is.
    #: Neither may be probed: executed elsewhere, the two would not stand one behind the other
    reserved: Callable[[Insn, bytes], str] | None = None
    #: (computed jump, up to 16 instructions that always precede it; the first may be a branch that
    #: was not taken) -> the first that is needed to prove that it returns, or calls at the
    #: function's tail; None: nothing proves it. None: only the instruction itself tells
    leaves: Callable[[Insn, Sequence[Insn]], Insn | None] | None = None
    #: (instruction, register -> the address that it holds, brought up to date by the call) -> (an
    #: address that the instruction completes, or reads or writes at; bytes that it reads or writes
    #: there, at most). What is not known to keep a register forgets its address. None: it does
    #: neither. None for all: an address is told by `Insn.operand`
    follow: Callable[[Insn, dict[int, int]], tuple[int, int] | None] | None = None
    #: (instruction) -> by how many of its first bytes it is of its size and its kind, whatever the
    #: others are: where it has a target, they are how far that is behind it. None: by all of them
    decide: Callable[[Insn], int] | None = None
    #: mode -> what functions begin with that save registers or make a frame: tried on code that
    #: nothing else tells of
    opens: Mapping[int, re.Pattern[bytes]] = field(factory=dict)
    #: what linkers put in the text for calls of other modules, and no compiler writes: no function
    #: begins with it; None: they put nothing there
    stubs: re.Pattern[bytes] | None = None
    #: (instruction, up to 64 before it, as above) -> data of the text that it reads through a
    #: register; None: none
    table: Callable[[Insn, Sequence[Insn]], Table | None] | None = None
    #: (jump whose table follows it (`Insn.table`), up to 64 before it, as above) -> how many
    #: entries it has, as a comparison among them says; None: none does
    entries: Callable[[Insn, Sequence[Insn]], int | None] | None = None


@frozen(kw_only=True)
class Executing:
    """Instructions that execute another one in their own place (EXECUTE)."""

    #: `Insn.executes`, worked out from the registers; None: it executes no other
    target: Callable[[Regs, Insn], int | None]
    #: the instruction that is executed, as registers change it; None: it executes no other, or one
    #: that cannot be read
    instruction: Callable[[Regs, Insn], Insn | None]
    #: (text, its address) -> (an instruction in it, what that may execute in its own place), of all
    #: that begin at any even address
    all: Callable[[bytes, int], Iterable[tuple[int, int]]]


@frozen(kw_only=True)
class Files:
    """The kinds of files that hold such code."""

    #: (e_machine, ELF class 32/64, "little"/"big") it runs
    machines: tuple[tuple[int, int, str], ...] = ()
    #: of the first that runs such files: (e_flags, the CPU's profile that the file names or "") ->
    #: the Arch for it; None: this one
    choose: Callable[[int, str], Arch] | None = None
    #: (a raw image's first 8 bytes or more) -> (stack pointer, target) that it starts with; None:
    #: such images start with code
    vectors: Callable[[bytes], tuple[int, int]] | None = None


@frozen(kw_only=True)
class Arch:
    """An instruction set, as the core and the engines see it.

    What has a default may be left out: the architecture then lacks that power, or does as usual.
    """

    name: str
    #: width of a pointer and of a general register: 16, 32 or 64
    bits: int = field(validator=in_((16, 32, 64)))
    order: Order
    insn_align: int  #: instructions start at multiples of this many bytes
    max_insn: int  #: longest instruction, bytes

    regs: Registers
    traps: Traps
    #: (original bytes from addr on, or from the start of its bundle, addr | mode bits) -> Insn. At
    #: least max_insn bytes, and two instructions' worth where mapped memory allows; fewer bytes
    #: than the instruction needs, or an encoding nobody defines: an Insn with `reject`.
    decode: Callable[[bytes, int], Insn]

    abi: Abi | None = None
    linkage: Linkage | None = None
    jump: Jump | None = None

    bundles: Bundles | None = None
    out_of_line: OutOfLine = OutOfLine()
    pointers: Pointers = Pointers()
    walking: Walking = Walking()
    executing: Executing | None = None
    files: Files = Files()
    #: the interrupts of a CPU, and how it takes them; None: nothing is known of that
    interrupts: Callable[[ExceptionCpu], InterruptController] | None = None
    #: the Python package whose modules have rows for it (see kprobes/arch/_rows.py); "": there are
    #: none
    package: str = ""

    @cached_property
    def in_step(self) -> bool:
        """Whether decoding may start at any multiple of insn_align and still finds the real
        instructions.
        """
        return self.walking.resyncs or self.max_insn == self.insn_align

    @cached_property
    def callers(self) -> int:
        """Direction of the older frames of a stack: 1 above the stack pointer, -1 below it."""
        return -1 if self.abi is not None and self.abi.upwards else 1

    @cached_property
    def mask(self) -> int:
        """A number with all bits of an address set."""
        return (1 << self.bits) - 1

    @property
    def max_body(self) -> int:
        """The longest code of one instruction in a slot, in bytes."""
        return self.out_of_line.max_body or self.max_insn

    def text_of(self, addr: int) -> int:
        """Return the address from which decode() needs the text to decode an instruction.

        That is the instruction's own address, or its bundle's.
        """
        return addr if self.bundles is None else self.bundles.start(addr)

    def last_of(self, addr: int) -> int:
        """Return the last address of the bundle that an instruction is in; without bundles its own
        address.
        """
        return addr if self.bundles is None else self.bundles.start(addr) + self.bundles.size - 1

    def place_of(self, addr: int) -> int:
        """Return the address of the first byte that changes when a breakpoint is put at an
        instruction.
        """
        return addr if self.bundles is None else self.bundles.place(addr)

    def trap_for(self, insn: Insn) -> tuple[int, bytes, bytes]:
        """Return what to write to put a breakpoint over an instruction; nothing is written yet.

        Returns:
            (address of the first byte that changes, the breakpoint's bytes, a mask of the bits that
            are the instruction's own and change; b"": all bits).
        """
        if self.bundles is None:
            return insn.addr, self.traps.of(insn), b""
        return (self.bundles.place(insn.addr), *self.bundles.trap(insn))

    def jump_for(self, insn: Insn, to: int, places: Sequence[tuple[int, Insn]]) -> bytes:
        """Return the bytes to write from text_of() on so that an instruction becomes a jump.

        Args:
            insn: the instruction.
            to: target of the jump.
            places: (address, instruction) of each instruction that the jump overwrites: where it is
                executed instead. The first is `insn` itself.

        Raises:
            OutOfReach: no jump reaches the target.
        """
        jump = self.jump_in(insn.mode)
        assert jump is not None
        return (jump.encode(insn.addr, to) if self.bundles is None
                else self.bundles.jump(insn, to, [place for place, _ in places[1:]]))

    def jump_in(self, mode: int) -> Jump | None:
        """Return how jumps are encoded in a mode (mode bits); None: the architecture has no
        jump.
        """
        return None if self.jump is None else self.jump.modes.get(mode, self.jump)

    def end_bytes(self, mode: int) -> bytes:
        """Return the bytes of the trap that ends a slot whose code is in a mode (mode bits)."""
        return self.traps.end[mode]


def displacement(frm: int, to: int, bits: int, scale: int, mask: int) -> int:
    """Return a signed displacement as a field of an instruction.

    Args:
        frm: address that the displacement counts from.
        to: address of the target.
        bits: width of the field.
        scale: bytes that a unit of the field stands for.
        mask: the greatest address; the way from `frm` to `to` may wrap around there.

    Returns:
        The field's bits, not shifted into place.

    Raises:
        OutOfReach: the displacement does not fit, or is no multiple of `scale`.
    """
    delta = (to - frm + (mask + 1 >> 1) & mask) - (mask + 1 >> 1)
    if delta % scale or not -(1 << bits - 1) <= delta // scale < 1 << bits - 1:
        raise OutOfReach(
            f"no {bits}-bit displacement reaches {to:#x}", address=frm, hint="map code nearer"
        )
    return delta // scale & (1 << bits) - 1


def signed(value: int, bits: int) -> int:
    """Return the two's complement value of the low `bits` bits of a number."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)
