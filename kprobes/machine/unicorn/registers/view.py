"""Tells the host's library where to read what handlers read most: arguments, stack pointer, result.

See kprobes/native/hits.c.
"""

from __future__ import annotations

import ctypes
import sys

from ....arch._base import Arch
from ....native import words
from .cells import Cell
from .windows import Windowed

_ARGUMENTS = 8  # that fit into the words, as in hits.c
_WORDS = (1 << 64) - 1


class RegisterView:
    """The words by which the host's library finds the registers of one CPU (struct view). They must
    live as long as the registers object that reads by them.

    Attributes:
        address: of the words.
    """

    def __init__(self, arch: Arch, places: dict[str, Cell | Windowed], blocks: int) -> None:
        """Make the words for a CPU.

        Args:
            arch: of the guest.
            places: name -> where a register is, of those whose place in the engine is known.
            blocks: address of the memory's BlockTable.
        """
        self._names = words("view")
        self._place = len(words("place"))
        self._words = (ctypes.c_uint64 * (len(self._names) + self._place * (2 + _ARGUMENTS)))()
        self._arch = arch
        self._places = places
        self.address = ctypes.addressof(self._words)
        word = arch.bits // 8
        self._set(
            mask=arch.mask,
            bias=arch.regs.sp_bias,
            word=word,
            step=word * arch.callers,
            blocks=blocks,
            swapped=arch.order.value != sys.byteorder,
        )
        has_sp = self._put(0, arch.regs.sp)
        if arch.abi is None:
            return
        self._put(1, arch.abi.returns[0])
        if arch.abi.args:
            known = 0
            while known < min(len(arch.abi.args), _ARGUMENTS) and self._put(
                2 + known, arch.abi.args[known]
            ):
                known += 1
            self._set(arguments=known)
        elif has_sp:
            self._set(arguments=_ARGUMENTS, on_stack=1, first=arch.abi.stack_args)

    def _set(self, **values: int) -> None:
        """Set words: name -> value, which is cut to 64 bits."""
        for name, value in values.items():
            self._words[self._names[name]] = value & _WORDS

    def _put(self, n: int, name: str) -> bool:
        """Write for host code where a register is.

        Args:
            n: number of the place in the words: 0: stack pointer, 1: result, 2 and more: arguments.
            name: of the register.

        Returns:
            False where it is not known where the register is, or its width is not the
            architecture's; nothing was written then.
        """
        found = self._places.get(name)
        if found is None or self._arch.regs.widths.get(name, self._arch.bits) != self._arch.bits:
            return False
        word = self._arch.bits // 8
        windowed = isinstance(found, Windowed)
        offset = found.index * word if isinstance(found, Windowed) else 0
        start = len(self._names) + n * self._place
        self._words[start : start + self._place] = [found.address, offset, windowed, word]
        return True
