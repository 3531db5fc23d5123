"""How functions are called and return: `Abi` and `Linkage`, parts of an `Arch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from ..regs import Regs


@frozen(kw_only=True)
class Results:
    """Where functions return what is no word: in registers, or in memory whose address is passed.

    Attributes:
        registers: a structure of at most so many bytes surely comes in registers.
        memory: a structure of more bytes surely comes in memory; in between it depends on its
            members.
        apart: True: the address has a register of its own; False: it is passed as an argument
            before the first.
        wide: True: numbers of more than 8 bytes come in registers.
        floats: True: in between, what has no floating-point member comes in memory.
    """

    registers: int
    memory: int
    apart: bool = False
    wide: bool = False
    floats: bool = False


@frozen(kw_only=True)
class Abi:
    """The calling convention of ordinary C functions, for integers and pointers."""

    args: tuple[str, ...]  #: argument registers in order
    returns: tuple[str, ...]  #: return register, then the one with the high half
    #: registers of pointers, where these are counted apart; args and argument() are integers then
    pointers: tuple[str, ...] = ()
    results: Results | None = None  #: of what is no word; None: not known
    char_signed: bool = True  #: whether C's `char` has a sign where nothing says it
    stack_args: int = 0  #: bytes from sp, at function entry, to the first argument on the stack
    stack_align: int = 16  #: alignment of sp at a call, in bytes
    #: bytes above sp that the callee may use (home area, back chain), included in stack_args
    reserve: int = 0
    #: the stack grows upwards: these areas lie below sp, and the first word of the arguments
    #: highest
    upwards: bool = False
    #: thread pointer register where ordinary code reads what it points at (x86-64: the stack
    #: protector's canary)
    thread: str = ""
    #: (regs, function pointer): set the registers besides the arguments that a function finds its
    #: data by (t9, r12, TOC)
    enter: Callable[[Regs, int], None] | None = None

    def argument(self, regs: Regs, n: int) -> int:
        """Return an integer argument, read from registers or the stack.

        Args:
            regs: registers at a function's entry.
            n: the argument's number, from 0 on.

        Raises:
            ValueError: `n` is negative.
            GuestFault: it is on the stack, and memory is not mapped there.
        """
        if n < 0:
            raise ValueError("arguments are counted from 0")
        if n < len(self.args):
            return regs[self.args[n]]
        return regs.word(self._slot(regs, n))

    def set_argument(self, regs: Regs, n: int, value: int) -> None:
        """Replace an integer argument, in a register or on the stack.

        Args:
            regs: registers at a function's entry.
            n: the argument's number, from 0 on.
            value: the new one.

        Raises:
            ValueError: `n` is negative.
            GuestFault: it is on the stack, and memory is not mapped there.
        """
        if n < 0:
            raise ValueError("arguments are counted from 0")
        if n < len(self.args):
            regs[self.args[n]] = value
        else:
            regs.set_word(self._slot(regs, n), value)

    def _slot(self, regs: Regs, n: int) -> int:
        """Return the address of the n-th argument on the stack at a function's entry."""
        distance = self.stack_args + (n - len(self.args)) * int(regs.arch.bits // 8)
        return regs.sp - distance if self.upwards else regs.sp + distance


@frozen(kw_only=True)
class Frame:
    """Where a function that keeps a frame pointer has its return address and its caller's frame.

    Attributes:
        register: the frame pointer.
        address: bytes from it to the return address.
        next: bytes from it to the caller's frame pointer, which is saved there.
        above: True: `address` counts from the caller's frame pointer: functions save the return
            address in their caller's frame.
    """

    register: str
    address: int  #: of the return address
    next: int  #: of the caller's frame pointer
    #: `address` counts from the caller's frame pointer: functions save it in their caller's frame
    above: bool = False


#: (regs) -> (where a function returns to by itself -> where its caller wants it to, and the other
#: way round)
Skips = Callable[[Regs], tuple[Callable[[int], int], Callable[[int], int]]]


@frozen(kw_only=True)
class Returning:
    """Effects of a return besides going where Linkage.get() says."""

    #: (regs, sp at entry, target): at the return trampoline, put the true target wherever the ISA
    #: still shows the trampoline
    restore: Callable[[Regs, int, int], None] | None = None
    #: the link register is then what it was before the call: restore() need look only where it
    #: shows the trampoline
    reloaded: bool = False
    skips: Skips | None = None  #: it skips something that the caller has there
    shares_frames: bool = False  #: a call needs no stack: sp may be the caller's all along
    may_pop: tuple[int, ...] = ()  #: bytes that some return instructions pop besides Linkage.pushed

    @property
    def plain(self) -> bool:
        """Whether a return goes just where the caller wants it, and leaves the link
        register alone.
        """
        return self.skips is None and not self.reloaded


@frozen(kw_only=True)
class Interrupted:
    """Registers of code that an exception has interrupted, as far as the CPU restores them; the
    others are what the handler leaves in them.

    Attributes:
        pc: where the code goes on, without mode bits.
        sp: its stack pointer register.
        saved: register -> address where its value is saved, a word.
    """

    pc: int
    sp: int
    saved: Mapping[str, int]


@frozen(kw_only=True)
class ExceptionReturns:
    """Return addresses that are none: a handler that returns to one goes back to interrupted code.

    Attributes:
        mask, value: a return address is such a one where its bits in `mask` are those of `value`;
            `mask` has no mode bits.
        interrupted: (return address, stack pointer register when the handler returns, reader of a
            system register by name, reader of a word of memory by address) -> the interrupted
            code's registers. None: no exception returns by this address. It raises what the readers
            raise.
    """

    mask: int
    value: int
    interrupted: Callable[
        [int, int, Callable[[str], int], Callable[[int], int]], Interrupted | None
    ]

    def include(self, link: int) -> bool:
        """Whether a return address is such a one.

        Args:
            link: the return address; mode bits do not matter.
        """
        return link & self.mask == self.value


@frozen(kw_only=True)
class Linkage:
    """Where a call leaves the return address, and how to read and replace it there.

    Made by in_register(), on_stack(), or with functions of its own.
    """

    get: Callable[[Regs], int]  #: at function entry: the target this function returns to
    set: Callable[[Regs, int], None]  #: at function entry: make it return to this target instead
    register: str = ""  #: the link register, where get() and set() are reads and writes of one
    bias: int = 0  #: where the function returns to, minus what is in that register
    #: bytes of return address that the return instruction pops (0: a link register)
    pushed: int = 0
    mode: int = 0  #: mode bits of the trampoline's address
    #: code that goes where get() says (else pc is written), and changes nothing but pc: the
    #: trampoline is served in place; b"": it is a trap
    back: bytes = b""
    returning: Returning = Returning()
    frame: Frame | None = None  #: where older return addresses are
    #: return addresses of exceptions' handlers; None: such handlers return by instructions
    exceptions: ExceptionReturns | None = None

    @classmethod
    def in_register(cls, name: str, **rest: Any) -> Linkage:
        """Make the linkage of calls that leave the return address in a register.

        At the trampoline the register may still hold the trampoline's address: the core puts the
        real one there, since a function may return by another register.

        Args:
            name: of the register.
            rest: further attributes of Linkage.
        """
        return cls(
            get=lambda regs: regs[name],
            set=lambda regs, target: regs.__setitem__(name, target),
            register=name,
            **rest,
        )

    @classmethod
    def on_stack(cls, size: int, **rest: Any) -> Linkage:
        """Make the linkage of calls that push the return address.

        At the trampoline it still stands below the stack pointer.

        Args:
            size: bytes of the address on the stack.
            rest: further attributes of Linkage.
        """
        return cls(
            get=lambda regs: regs.stack(0),
            set=lambda regs, target: regs.set_word(regs.sp, target),
            pushed=size,
            **rest,
        )
