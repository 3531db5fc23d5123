"""Calls by the types of the function, which debug information or a prototype tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from ..errors import Unsupported
from ..regs import Regs
from ._passing import ALLOC_ALIGN, PLAIN, ArgumentMemory, Passing, is_plain, plain_value


def needs_types(arguments: Iterable[object]) -> bool:
    """Return True if a call can be made only by the types of the function, because an argument is
    none of integer, None, text and buffer, but a float or a structure, say.

    Args:
        arguments: of the call.
    """
    for value in arguments:  # noqa: SIM110  (quicker than any())
        if type(value) not in PLAIN and not is_plain(value):
            return True
    return False


class TypedPassing(Passing):
    """The arguments of one guest call by the types of its parameters, and its result.

    debug.calls.TypedCall says what goes where by the convention. This class copies what goes into
    guest memory, and sets registers and stack.
    """

    def __init__(
        self,
        memory: ArgumentMemory,
        arguments: Sequence[Any],
        prototype: str | Literal[True],
        debug: Any,
        entry: Callable[[], int],
    ) -> None:
        """Check the arguments of a call, and find their places. Nothing is written to the guest.

        Args:
            memory: the guest's, where buffers, strings and structures will be copied to.
            arguments: of the call: integers, None (0), text, buffers, floats, complex numbers, and
                structures (mappings of members, or Views).
            prototype: the function's types, as C writes them; True: those of debug information.
            debug: the machine's DebugInfo.
            entry: () -> address of the function, without mode bits.

        Raises:
            BadArgument: the types are not known; an argument cannot be passed as its parameter's
                type, or there are too few or too many.
            Unsupported: how the architecture, or the file, passes a type is not known.
        """
        super().__init__(memory, ())
        values = [plain_value(place, value) for place, value in enumerate(arguments, 1)]
        self._call = debug.typed_call(values, prototype, entry())
        self._result_memory = 0  # its address; 0: the function wants none
        abi = self._arch.abi
        apart = () if abi is None else abi.pointers
        if apart and (self._call.returns_pointer or sum(self._call.pointers) > len(apart)):
            raise Unsupported(
                f"{self._arch.name} returns pointers elsewhere, and takes {len(apart)} of them",
                python="set registers and use run()",
            )

    def set_up(self, regs: Regs) -> None:
        """Set registers and stack as at function entry, but for the return address.

        Buffers, strings and structures are copied into new guest memory.

        Args:
            regs: the registers to set.

        Raises:
            Unsupported: the architecture has no calling convention.
            NoMemory: there is no room for a copy.
            GuestFault: arguments go on the stack, which is not mapped.
        """
        call = self._call
        abi, pushed = self._convention()
        addresses = {n: self._copy(data, call.alignment(n)) for n, data in call.to_copy.items()}
        if not call.has_places:
            words = call.words(addresses)
            apart = call.pointers if abi.pointers else [False] * len(words)
            self._set_words(
                regs,
                abi,
                pushed,
                [word for word, is_apart in zip(words, apart, strict=True) if is_apart],
                [word for word, is_apart in zip(words, apart, strict=True) if not is_apart],
            )
            return
        if call.result_size:
            zeros = bytes(call.result_size)
            self._result_memory = self._copy(zeros, call.result_alignment)
        placed = call.placed(addresses, self._result_memory)
        word = self._arch.bits // 8
        end = max((offset + len(data) for offset, data in placed.stack), default=0)
        spilled = -(-max(end - abi.stack_args, 0) // word) * word
        self._make_room(regs, abi, pushed, spilled, placed.alignment)
        for offset, data in placed.stack:
            self._memory.write(regs.sp + offset, data)
        for name, value in placed.registers.items():
            regs[name] = value

    def _copy(self, data: bytes | bytearray | memoryview, alignment: int) -> int:
        """Copy a buffer or a structure to new guest memory, and return the address of the copy.

        finish() frees the copy.

        Args:
            data: what is copied.
            alignment: bytes of which the address of the copy has to be a multiple.

        Raises:
            NoMemory: there is no room for the copy.
        """
        if alignment <= ALLOC_ALIGN:
            return self._word(data)
        start = -(-self._word(bytes(len(data) + alignment)) // alignment) * alignment
        self._memory.write(start, bytes(data))
        return start

    def result(self, regs: Regs) -> Any:
        """Return the function's result as a value of its type; None for void.

        Called after the call, before finish() frees memory that has the result.

        Args:
            regs: the registers, where the function has returned.

        Raises:
            GuestFault: the result's memory cannot be read.
            Unsupported: the format of the result's numbers is not known.
        """
        return self._call.result(regs, self._result_memory)
