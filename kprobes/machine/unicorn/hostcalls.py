"""Guest calls whose registers host code sets and puts back.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.

These are calls whose arguments are numbers in registers, and that are inside no run. See
kprobes/native/calls.c.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ... import native
from .._passing import BELOW
from .cpu import UnicornCpu
from .engine import CONTEXT_RESTORE, CONTEXT_SAVE
from .registers.cells import Cell
from .registers.windows import Windowed


class HostCalls:
    """Sets registers for calls of one guest's functions by host code, and puts them back.

    Attributes:
        end: () is called when the function has returned: puts the registers back, and returns the
            function's integer result.
    """

    def __init__(self, cpu: UnicornCpu) -> None:
        """Make the words and functions of host code. Only where possible(). When a block of guest
        memory is removed, host code forgets where the stack is.

        Args:
            cpu: whose registers they are.
        """
        abi, linkage = cpu.arch.abi, cpu.arch.linkage
        assert abi is not None
        assert linkage is not None
        self._engine = cpu.engine
        self._regs = cpu.regs
        self._blocks = cpu.memory.blocks
        self._names = native.words("guest_call")
        self._words = (ctypes.c_uint64 * len(self._names))()
        self._kept: Any = None  # the engine's context with the registers of before the call
        self._mode = linkage.mode
        self._bias = linkage.bias
        self._mask = cpu.arch.mask
        self._whole = not cpu.engine.beside and cpu.engine.rewind is None  # contexts have all
        registers: dict[str, Cell | Windowed] = {**cpu.cells, **cpu.windowed}
        link = None if linkage.pushed else registers[linkage.register]
        self._word = cpu.arch.bits // 8
        self._set(
            engine=cpu.engine.handle.value or 0,
            save=CONTEXT_SAVE,
            restore=CONTEXT_RESTORE,
            view=cpu.view_address,
            room=BELOW + abi.stack_args,
            align=abi.stack_align,
            link=0 if link is None else link.address,
            link_at=link.index * self._word if isinstance(link, Windowed) else 0,
            windowed=isinstance(link, Windowed),
            pushed=linkage.pushed,
            reserve=abi.reserve,
        )
        address = ctypes.addressof(self._words)
        self._set_up = _made("call_setter_up", address)
        self._end = _made("call_ender", address)
        self.end: Callable[[], int] = self._end if self._whole else self._end_beside
        cpu.memory.blocks.on_remove(self._forget_stack)

    @staticmethod
    def possible(cpu: UnicornCpu) -> bool:
        """Return True if host code (native/calls.c) can set this CPU's registers for a guest call.

        Host code must know where the engine keeps the stack pointer, the arguments, the result and
        the return address, unless calls push that as a word. The stack must grow downwards.
        """
        abi, linkage, table = cpu.arch.abi, cpu.arch.linkage, cpu.arch.regs
        if not cpu.view_address or abi is None or linkage is None:
            return False
        known = cpu.cells.keys() | cpu.windowed.keys()
        return (
            not abi.upwards
            and {table.sp, abi.returns[0], *abi.args} <= known
            and (linkage.pushed == cpu.arch.bits // 8 or linkage.register in known)
        )

    def _set(self, **words: int) -> None:
        """Set words of host code: name -> value."""
        for name, value in words.items():
            self._words[self._names[name]] = value

    def set_up(self, exit_address: int, arguments: tuple[Any, ...]) -> bool:
        """Keep the registers for `end`, and set them as at the entry of a function: stack pointer,
        return address and arguments, but not pc. The function is not run here.

        Args:
            exit_address: where the function returns to, without mode bits.
            arguments: numbers for the registers of arguments, the first ones first.

        Returns:
            True: it is done. False: there are more arguments than registers for them that host code
            knows, or the stack is in no block that it may write; no register has changed.
        """
        if self._kept is None:
            self._kept = self._engine.save()
            until = (exit_address | self._mode) - self._bias & self._mask
            self._set(kept=self._kept.value or 0, until=until)
        if not self._whole:
            self._engine.save_beside(self._kept)
        return bool(self._set_up(arguments)) or (
            self._find_stack() and bool(self._set_up(arguments))
        )

    def _end_beside(self) -> int:
        """Do what `end` does on engines whose contexts lack registers: put these back as well, and
        return the function's result.
        """
        self._engine.rewind_to(self._kept)
        result: int = self._end()
        self._engine.restore_beside(self._kept)
        return result

    def _find_stack(self) -> bool:
        """Tell host code which block of host memory the guest's stack is in; return False where
        there is none that it may write.
        """
        block = self._blocks.find(self._regs.sp, self._word)
        if block is None or not block.room:
            return False
        self._set(stack=block.start, bytes=block.room, host=block.host)
        return True

    def _forget_stack(self) -> None:
        """Have host code reach no stack until the next call finds it. Called when a block of guest
        memory is removed.
        """
        self._set(bytes=0)

    def give_up(self) -> Any:
        """Return the engine's context in which set_up() has kept the registers; None: there is
        none.

        The context is the caller's from now on, and set_up() makes a new one. Called where a call
        has failed, and when the machine is closed.
        """
        kept, self._kept = self._kept, None
        return kept


def _made(maker: str, address: int) -> Any:
    """Make a function in host code.

    Args:
        maker: name of the library's function that makes it.
        address: of the words that the function works on.
    """
    return native.function(maker, ctypes.py_object, ctypes.py_object)(address)
