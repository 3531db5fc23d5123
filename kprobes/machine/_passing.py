"""Arguments of guest calls, by the calling convention: integers, text and buffers."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any, Protocol, Union

from ..arch._base import Abi, Arch
from ..arguments import kind_of, look, look_at_width, shown
from ..errors import BadArgument, Unsupported
from ..regs import Regs

Argument = Union[
    int, bool, bytes, bytearray, memoryview, str, None, "array[Any]", "ctypes.Array[Any]"
]
#: types whose values are passed without knowing the parameter's type; is_plain() knows others
PLAIN = frozenset({int, bool, type(None), str, bytes, bytearray})
_BUFFERS = (bytes, bytearray, memoryview)  # tuples: isinstance() is quicker with them
_AS_THEY_ARE = (bytes, bytearray, int)
BELOW = 512  # bytes beyond any red zone: 128 on x86_64, 288 on ppc64
ALLOC_ALIGN = 16  #: bytes of which addresses of alloc() are multiples


class ArgumentMemory(Protocol):
    """The guest's memory as arguments of calls need it: buffers and strings are copied there.

    alloc(size) returns the address of new guest memory, which free() takes back.
    """

    arch: Arch

    def alloc(self, size: int) -> int: ...
    def free(self, addr: int) -> None: ...
    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


class Passing:
    """The arguments of one guest call: integers, and addresses of copies of text and buffers.

    They are checked when the object is made, copied to the guest by set_up() before the call, and
    copied back and freed by finish() after it.
    """

    def __init__(
        self,
        memory: ArgumentMemory,
        arguments: Sequence[Argument],
    ) -> None:
        """Check the arguments of a call, and convert them. Nothing is written to the guest.

        Args:
            memory: the guest's, where buffers and strings will be copied to.
            arguments: integers, None (0), text and buffers; what is in a buffer afterwards is
                copied back where it can be written.

        Raises:
            BadArgument: one cannot be passed.
        """
        self._memory = memory
        self._arch = memory.arch
        self._arguments = [
            register_value(self._arch, place, value) for place, value in enumerate(arguments, 1)
        ]
        self._copies: list[tuple[int, bytearray | memoryview | None, int]] = []

    def set_up(self, regs: Regs) -> None:
        """Set registers and stack as at function entry, but for the return address.

        Buffers and strings are copied into new guest memory.

        Args:
            regs: the registers to set.

        Raises:
            Unsupported: the architecture has no calling convention, or there are more pointers than
                it passes in registers.
            NoMemory: there is no room for a copy.
            GuestFault: arguments, or the end of a back chain, go on the stack, which is not mapped.
        """
        abi, pushed = self._convention()
        self._set_words(regs, abi, pushed, *self._words_by_kind(abi))

    def _convention(self) -> tuple[Abi, int]:
        """Return the calling convention, and the bytes of the return address that a call pushes.

        Raises:
            Unsupported: the architecture has no calling convention.
        """
        abi, linkage = self._arch.abi, self._arch.linkage
        if abi is None or linkage is None:
            raise Unsupported(
                f"{self._arch.name} has no calling convention", python="set registers and use run()"
            )
        return abi, linkage.pushed

    def _set_words(
        self, regs: Regs, abi: Abi, pushed: int, pointers: Sequence[int], words: Sequence[int]
    ) -> None:
        """Set registers and stack to the arguments of a call.

        Args:
            regs: the registers.
            abi: the architecture's calling convention.
            pushed: bytes of the return address that a call pushes.
            pointers: arguments for registers that take pointers only (Abi.pointers).
            words: all other arguments, in their order.

        Raises:
            GuestFault: arguments, or the end of a back chain, go on the stack, which is not mapped.
        """
        on_stack = max(len(words) - len(abi.args), 0)
        self._make_room(regs, abi, pushed, on_stack * (self._arch.bits // 8))
        for n, word in enumerate(words):
            abi.set_argument(regs, n, word)
        for name, pointer in zip(abi.pointers, pointers, strict=False):
            regs[name] = pointer

    def _make_room(
        self, regs: Regs, abi: Abi, pushed: int, spilled: int, alignment: int = 1
    ) -> None:
        """Move the stack pointer to where it stands at function entry: past a red zone (BELOW),
        past the room for arguments and the pushed return address, and aligned as the ABI asks for.

        Where the ABI has a back chain, zeros are written to the stack as its end.

        Args:
            regs: the registers; sp is set.
            abi: the architecture's calling convention.
            pushed: bytes of the return address that a call pushes.
            spilled: bytes of arguments that go on the stack.
            alignment: bytes of which arguments on the stack want the stack pointer to be a
                multiple; what the ABI asks for holds in any case.

        Raises:
            GuestFault: a back chain's end is to be written, and the stack is not mapped.
        """
        room = BELOW + abi.stack_args + spilled
        align = max(abi.stack_align, alignment)
        if abi.upwards:
            regs.sp = -(-(regs.sp + room) // align) * align
        else:
            regs.sp = (regs.sp - room) // align * align - pushed
        if abi.reserve:  # a back chain ends here
            self._memory.write(
                regs.sp - abi.reserve if abi.upwards else regs.sp + pushed, bytes(abi.reserve)
            )

    def _words_by_kind(self, abi: Abi) -> tuple[list[int], list[int]]:
        """Copy buffers into guest memory, and return all arguments as words. The addresses of the
        copies are apart where the ABI has registers for pointers (TriCore).

        Args:
            abi: the architecture's calling convention.

        Returns:
            (words for registers that take pointers only, all other words). The first list is empty
            where the ABI has no such registers.

        Raises:
            Unsupported: there are more pointers than such registers.
            NoMemory: there is no room for a copy.
        """
        apart = (bytes, bytearray, memoryview) if abi.pointers else ()
        pointers = [self._word(a) for a in self._arguments if isinstance(a, apart)]
        if len(pointers) > len(abi.pointers):
            raise Unsupported(
                f"{len(pointers)} pointer arguments",
                hint=f"only {len(abi.pointers)} go in registers: copy the others yourself",
            )
        return pointers, [self._word(a) for a in self._arguments if not isinstance(a, apart)]

    def result(self, regs: Regs) -> Any:
        """Return the function's result: an integer of a register's width.

        Args:
            regs: the registers, where the function has returned.
        """
        return regs.return_value

    def finish(self) -> None:
        """Copy buffers that can be written back from the guest, and free the copies there.

        Called after the call. A second call does nothing.

        Raises:
            GuestFault: a copy is not mapped any more.
        """
        for addr, source, size in self._copies:
            if source is not None:
                source[:] = self._memory.read(addr, size)
            self._memory.free(addr)
        self._copies.clear()

    def _word(self, value: int | bytes | bytearray | memoryview) -> int:
        """Return an argument as one word: a number as it is, a buffer as the address of a copy.

        The copy is in new guest memory, with a NUL behind it; it is noted for finish().

        Args:
            value: a number, or what to copy.

        Raises:
            NoMemory: there is no room for the copy.
        """
        if isinstance(value, int):
            return value
        addr = self._memory.alloc(len(value) + 1)
        back = value if isinstance(value, (bytearray, memoryview)) else None
        self._copies.append((addr, back, len(value)))
        self._memory.write(addr, bytes(value) + b"\0")
        return addr


def room_maker(memory: ArgumentMemory, regs: Regs) -> Callable[[], None]:
    """Return a function that moves the stack pointer to where it stands at a function's entry.

    For calls without arguments the function does what Passing.set_up() does, but quicker: it is
    made once, and used for every call.

    Args:
        memory: the guest's.
        regs: its registers.

    Returns:
        A function without parameters that moves the stack pointer of `regs`. Room for a pushed
        return address is left, which the caller writes.
    """
    arch = regs.arch
    abi, linkage, bias, mask = arch.abi, arch.linkage, arch.regs.sp_bias, arch.mask
    if abi is None or linkage is None or abi.upwards or abi.reserve:
        return partial(Passing(memory, ()).set_up, regs)
    read, write = regs.accessors(arch.regs.sp)
    room, align, pushed = BELOW + abi.stack_args, abi.stack_align, linkage.pushed

    def make_room() -> None:
        """Move the stack pointer down: past a red zone, aligned, and by the bytes of a pushed
        return address.
        """
        sp = read() + bias & mask
        write((sp - room) // align * align - pushed - bias & mask)

    return make_room


def are_numbers(arguments: Sequence[object], mask: int) -> bool:
    """Return True if each argument is an integer, and no bool, that a register can hold without
    conversion.

    Args:
        arguments: of a call.
        mask: the greatest value of a register.
    """
    for value in arguments:  # noqa: SIM110  (quicker than all())
        if type(value) is not int or not 0 <= value <= mask:
            return False
    return True


def register_value(arch: Arch, place: int, value: Argument) -> int | bytes | bytearray | memoryview:
    """Return an argument as it is passed: a register's value, or the bytes to copy.

    Args:
        arch: the guest's architecture.
        place: number of the argument, from 1 on, for the error.
        value: the argument. None is 0; a negative integer becomes its two's complement, text
            UTF-8.

    Raises:
        BadArgument: it is of a wrong kind, or does not fit into a register.
    """
    plain = value if type(value) is int else plain_value(place, value)
    if isinstance(plain, _BUFFERS):
        return plain
    try:
        number = index(0 if plain is None else plain)
    except TypeError:
        raise BadArgument(
            f"argument {place} is {kind_of(value)}",
            hint="pass integers, bytes or text",
        ) from None
    look_at_width(f"argument {place}", number, arch.bits, "pass a wide one in two halves")
    return number & arch.mask


def plain_value(place: int, value: Any) -> Any:
    """Return an argument as bytes if it is text (UTF-8), or has a buffer (a memoryview where it can
    be written); all others as they are.

    Args:
        place: number of the argument, from 1 on, for the error.
        value: the argument.

    Raises:
        BadArgument: it is text that has no UTF-8.
    """
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadArgument(
                f"argument {place}, {shown(value)}, is no text", hint="pass bytes"
            ) from None
    if isinstance(value, _AS_THEY_ARE):
        return value
    buffer = None if hasattr(value, "__index__") else _buffer(value)
    return value if buffer is None else buffer


def is_plain(value: object) -> bool:
    """Return True for an argument that is passed without knowing the parameter's type: an integer,
    None, text, or what has a buffer.
    """
    if value is None or isinstance(value, int | str | bytes | bytearray | memoryview):
        return True
    return hasattr(value, "__index__") or (
        not isinstance(value, float | complex) and _buffer(value) is not None
    )


def _buffer(value: object) -> bytes | memoryview | None:
    """Return the bytes of an object that has a buffer; a view where they can be written.

    Args:
        value: any object.

    Returns:
        None: it has no buffer, or is a number of ctypes or numpy, whose value was probably meant;
            or its bytes do not lie together.
    """
    if isinstance(value, ctypes._SimpleCData):
        return None
    try:
        whole = memoryview(value)  # type: ignore[arg-type]
        if whole.readonly and not whole.ndim:
            return None
        view = whole.cast("B")
    except TypeError:
        return None
    return bytes(view) if view.readonly else view


def code_pointer(value: int, bits: int) -> int:
    """Check that a value is an address, and return it as it is.

    Args:
        value: what the user has given.
        bits: of an address.

    Raises:
        BadArgument: it is no integer from 0 to the highest address.
    """
    if type(value) is not int:
        look("the address", value)
    if not 0 <= value < 1 << bits:
        raise BadArgument(
            f"{value:#x} is no address of {bits} bits", hint="pass an address, or a symbol's name"
        )
    return value


def check_bounds(timeout: float | None, max_insns: int | None) -> None:
    """Check that values can bound a run.

    Args:
        timeout: seconds; None: no bound.
        max_insns: instructions; None: no bound.

    Raises:
        BadArgument: one is negative, or no number.
    """
    try:
        if timeout is not None and not timeout >= 0:  # NaN is neither
            raise BadArgument(f"timeout={timeout!r} is no time", hint="pass seconds, 0 or more")
        if max_insns is not None and index(max_insns) < 0:
            raise BadArgument(
                f"max_insns={max_insns!r} is negative",
                hint="pass a number of instructions, 0 or more",
            )
    except TypeError as error:
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(
            f"timeout={timeout!r}, max_insns={max_insns!r}: not numbers",
            hint="pass seconds and instructions",
        ) from None
